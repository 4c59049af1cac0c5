//! What a refused order is answered with: the code of its rule, and the venue's sentence (gateway/docs/rehearsal.md §2).

use super::super::words::{self, OrderEcho};
use super::rules::{Grid, Subject};
use crate::http::code::Code;
use crate::http::reply::Refusal;
use crate::rehearsal::{Found, explained};
use engine::amount::Qty;
use engine::describe::Words as _;
use engine::order::Side;
use engine::rehearsal::Rule;
use wire::{decimal, write};

const ORDER_VERSION_MISMATCH: &str = "order_version_mismatch";
const OWNER: &str = "the order owner has to be the owner of the API KEY";
const SIGNATURE: &str = "invalid signature";
const SIGNER: &str = "the order signer address has to be the address of the API KEY";
const MAKER: &str = "maker address not allowed, please use the deposit wallet flow";
const BALANCE: &str = "not enough balance / allowance";
const UNAUTHORIZED: &str = "Unauthorized/Invalid api key";

/// The refusal of an order by its first finding.
pub fn refusal(found: Found, subject: &Subject<'_, '_>, echo: &OrderEcho) -> Refusal {
    let refused = match found.rule {
        Rule::S01 => Refusal::new(Code::OrderVersionMismatch, ORDER_VERSION_MISMATCH),
        Rule::S02 => Refusal::new(Code::OwnerNotKey, OWNER),
        Rule::S03 | Rule::S04 | Rule::S05 => Refusal::new(Code::InvalidSignature, SIGNATURE),
        Rule::S06 => Refusal::new(Code::SignerNotKey, SIGNER),
        Rule::S07 => Refusal::new(Code::MakerNotAllowed, MAKER),
        Rule::S09 => Refusal::new(Code::InvalidAmounts, accuracy(subject)),
        Rule::S10 if subject.grid() == Some(Grid::Minimum) => {
            Refusal::new(Code::InvalidOrderMinSize, words::below_minimum(echo, subject.minimum()))
        }
        Rule::S10 => Refusal::new(Code::InvalidOrderMinTickSize, words::off_tick(echo, subject.tick)),
        Rule::S11 => Refusal::new(Code::MarketableMin, too_small(subject)),
        Rule::S12 => Refusal::new(Code::InvalidOrderExpiration, "invalid expiration"),
        Rule::S14 => Refusal::new(Code::InsufficientBalance, BALANCE),
        Rule::S15 => unauthorized(),
        // S13; no other rule refuses.
        _ => Refusal::new(Code::InvalidOrderPayload, "Invalid order payload"),
    };
    named(refused, found)
}

/// The refusal of an order that was sent before.
pub fn duplicated(refused: Refusal, hash: &[u8; 32], found: Found) -> Refusal {
    let hash = decimal::text(|out| {
        out.extend_from_slice(b"0x");
        super::super::ids::hex(out, hash);
    });
    named(refused.with_message(format!("order {hash} is invalid. Duplicated.")), found)
}

/// The refusal of a request whose signature is not made with the key's secret.
pub fn unauthorized() -> Refusal {
    Refusal::new(Code::InvalidKey, UNAUTHORIZED)
}

/// The refusal of a batch that is too large for the venue.
pub fn too_many(sent: usize, most: usize) -> Refusal {
    Refusal::new(Code::BatchLimitExceeded, format!("Too many orders in payload: {sent}, max allowed: {most}"))
}

/// Adds the rule and the diagnosis.
pub fn named(refused: Refusal, found: Found) -> Refusal {
    let refused = refused.field("rule", |out| write::string(out, Rule::NAMES[found.rule as usize]));
    refused.field("diagnosis", |out| match explained(found.diagnosis) {
        Some(text) => write::string(out, text),
        None => out.extend_from_slice(b"null"),
    })
}

fn accuracy(subject: &Subject<'_, '_>) -> String {
    let (maker, taker) = subject.accuracy().unwrap_or_default();
    let orders = match (subject.terms.side, subject.terms.time_in_force.immediate()) {
        (Side::Buy, true) => "market buy",
        (Side::Buy, false) => "buy",
        (Side::Sell, _) => "sell",
    };
    format!(
        "invalid amounts, the {orders} orders maker amount supports a max accuracy of {maker} decimals, taker amount a \
         max of {taker} decimals"
    )
}

fn too_small(subject: &Subject<'_, '_>) -> String {
    let usd = decimal::text(|out| decimal::size(out, Qty(subject.amounts.maker())));
    format!("invalid amount for a marketable BUY order (${usd}), min size: $1")
}
