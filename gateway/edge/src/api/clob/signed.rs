//! The body of one signed order, of either client generation → [`Placement`] (gateway/docs/venue-clients.md §5.1, §5.2,
//! §5.4).
//!
//! Fields that the signature covers beyond token, side, amounts and expiration are ignored here, and the signature is not
//! verified: the key identifies the caller. (A rehearsal looks at them: `rehearsal/`.) As in native placement an unsound
//! order becomes a placement too, and its fault is stored with it until the shard refuses it.

use super::amounts::{Amounts, amount};
use super::order_hash::order_hash;
use super::words::{self, OrderEcho};
use crate::api::orders::terms::{Sender, digest, identity, unix_secs};
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::reply::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::amount::Qty;
use engine::command::{IdSource, InvalidTerms, Placement, PlacementTerms, RequestIdentity, RequestedPrice, Size};
use engine::id::InstrumentId;
use engine::market::catalog::Catalog;
use engine::order::{OrderType, Side, TimeInForce};
use sha2::{Digest as _, Sha256};
use wire::decimal;
use wire::fields::Body;
use wire::value::Value;

/// Longer texts are not token ids; they are not looked up.
const TOKEN_ID_CHARS_MAX: usize = 80;
/// The wire's words; IOC is FAK.
const ORDER_TYPES: [(&str, TimeInForce); 5] = [
    ("GTC", TimeInForce::Gtc),
    ("GTD", TimeInForce::Gtd),
    ("FOK", TimeInForce::Fok),
    ("FAK", TimeInForce::Fak),
    ("IOC", TimeInForce::Fak),
];

/// One signed order as it goes to the shard, and what its answer needs of the request.
pub struct SignedOrder<'a, 'v> {
    pub placement: Placement,
    pub request: SignedRequest<'a, 'v>,
}

/// What the answer to a signed order needs of its request.
pub struct SignedRequest<'a, 'v> {
    /// The refusal when the shard finds it unsound.
    pub fault: Option<Refusal>,
    body: &'a Value<'v>,
    amounts: Option<Amounts>,
}

/// A fault of the order itself.
enum Fault {
    Payload,
    OrderType,
}

impl<'a, 'v> SignedOrder<'a, 'v> {
    /// Reads one order with its options.
    pub fn read(body: &'a Value<'v>, sender: &Sender<'_>) -> SignedOrder<'a, 'v> {
        let mut fields = Body::new(body);
        let (_, request) = identity(&mut fields, body, sender);
        let fields_fault = (!fields.problems.is_empty()).then(|| Refusal::validation(&fields.problems));
        let signed = body.get("order").filter(|order| matches!(order, Value::Object(_)));
        let amounts = signed.and_then(amounts);
        let terms = signed.ok_or(Fault::Payload).and_then(|signed| {
            let amounts = amounts.ok_or(Fault::Payload)?;
            terms(body, signed, &amounts, sender)
        });
        let fault = match &terms {
            Err(Fault::Payload) => Some(words::worded(Code::InvalidOrderPayload.into(), None, &OrderEcho::default())),
            Err(Fault::OrderType) => Some(Code::UnsupportedOrderType.into()),
            Ok(_) => fields_fault,
        };
        let terms = terms.ok().filter(|_| fault.is_none()).ok_or(InvalidTerms);
        let request = request.or_else(|| signed.and_then(|signed| implicit(body, signed, sender)));
        let (key, tier, route) = (sender.key, sender.tier, sender.route);
        let placement = Placement { request, ..Placement::new(key, tier, route, terms) };
        SignedOrder { placement, request: SignedRequest { fault, body, amounts } }
    }

    /// In the strict dialect the order's id is the hash of what was signed, where that can be computed.
    pub fn in_dialect(mut self, dialect: Dialect, catalog: &Catalog) -> SignedOrder<'a, 'v> {
        if let (true, Ok(terms)) = (dialect.is_strict(), &self.placement.terms) {
            let market = terms.instrument.and_then(|instrument| catalog.of_instrument(instrument));
            let signed = self.request.body.get("order");
            self.placement.order_hash =
                market.zip(signed).and_then(|(market, signed)| order_hash(signed, market.listing.neg_risk));
        }
        self
    }
}

impl<'a, 'v> SignedRequest<'a, 'v> {
    /// The order with its options, as it was sent.
    pub fn body(&self) -> &'a Value<'v> {
        self.body
    }

    /// `None` when an amount or the side is wrong.
    pub fn amounts(&self) -> Option<Amounts> {
        self.amounts
    }

    /// What the sentence of a refusal repeats of it.
    pub fn echo(&self, endpoint: &str) -> OrderEcho {
        let price = self.amounts.map(|amounts| amounts.shown_price()).unwrap_or_default();
        let size = self.amounts.map(|amounts| amounts.shares()).unwrap_or_default();
        OrderEcho { price, size, digest: digest(endpoint, self.body) }
    }
}

/// Side and amounts; `None` when one of them is absent or wrong.
fn amounts(signed: &Value<'_>) -> Option<Amounts> {
    let side = match signed.get("side")? {
        Value::Text(text) if text.eq_ignore_ascii_case("BUY") => Side::Buy,
        Value::Text(text) if text.eq_ignore_ascii_case("SELL") => Side::Sell,
        Value::Number("0") => Side::Buy,
        Value::Number("1") => Side::Sell,
        _ => return None,
    };
    let read = |name| match signed.get(name)? {
        Value::Text(text) => amount(text),
        Value::Number(text) => amount(text),
        _ => None,
    };
    Amounts::new(side, read("makerAmount")?, read("takerAmount")?)
}

fn terms(
    body: &Value<'_>,
    signed: &Value<'_>,
    amounts: &Amounts,
    sender: &Sender<'_>,
) -> Result<PlacementTerms, Fault> {
    let Some(Value::Text(token)) = signed.get("tokenId").filter(|token| **token != Value::Text("".into())) else {
        return Err(Fault::Payload);
    };
    let post_only = match body.get("postOnly") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(yes)) => *yes,
        Some(_) => return Err(Fault::Payload),
    };
    let time_in_force = match body.get("orderType") {
        None | Some(Value::Null) => TimeInForce::Gtc,
        Some(Value::Text(word)) => {
            let found = ORDER_TYPES.iter().find(|(known, _)| word.eq_ignore_ascii_case(known));
            found.map(|(_, meaning)| *meaning).ok_or(Fault::OrderType)?
        }
        Some(_) => return Err(Fault::OrderType),
    };
    let shares = amounts.shares();
    if shares > sender.max_shares {
        return Err(Fault::Payload);
    }
    let instrument = instrument(sender.catalog, token);
    let immediate = time_in_force.immediate();
    let side = amounts.side();
    let price = match instrument.and_then(|instrument| sender.catalog.of_instrument(instrument)) {
        Some(market) if immediate => amounts.worst(market.tick()),
        Some(market) => amounts.limit(market.tick()),
        // The shard looks for the market before it looks at the price.
        None => RequestedPrice::OffGrid,
    };
    let size = if immediate && side == Side::Buy { Size::Amount(amounts.budget()) } else { whole(shares) };
    Ok(PlacementTerms {
        wallet: None,
        instrument,
        side,
        // An order that takes immediately is the venue's market order: its price is the worst one, not a limit.
        order_type: if immediate { OrderType::Market } else { OrderType::Limit },
        time_in_force,
        size,
        price,
        expiration: signed.get("expiration").filter(|_| time_in_force == TimeInForce::Gtd).and_then(unix_secs),
        post_only,
    })
}

/// Shares cut down to 4 decimals.
fn whole(shares: Qty) -> Size {
    let qty = shares.floored_to_order_step();
    let cut = qty != shares;
    Size::Shares { qty, rounded_from: cut.then(|| decimal::text(|out| decimal::size(out, shares))) }
}

pub(super) fn instrument(catalog: &Catalog, token: &str) -> Option<InstrumentId> {
    if token.len() <= TOKEN_ID_CHARS_MAX { catalog.by_token(token) } else { None }
}

/// The identity of a request without a client order id: salt and signature, which a client that repeats a request sends
/// again. The text begins with a character that no client's id can have.
fn implicit(body: &Value<'_>, signed: &Value<'_>, sender: &Sender<'_>) -> Option<RequestIdentity> {
    let text = |name| match signed.get(name)? {
        Value::Text(text) => Some(text.as_ref()).filter(|text| !text.is_empty()),
        Value::Number(text) => Some(*text),
        _ => None,
    };
    let mut hash = Sha256::new();
    hash.update(text("salt")?);
    hash.update(b"\n");
    hash.update(text("signature")?);
    let hash: [u8; 32] = hash.finalize().into();
    let mut id = String::with_capacity(23);
    id.push('\u{1}');
    // Half of the hash: a user has few of these ids, and each is stored as long as ids count.
    URL_SAFE_NO_PAD.encode_string(&hash[..16], &mut id);
    Some(RequestIdentity { client_order_id: id, digest: digest(sender.endpoint, body), source: IdSource::Implicit })
}

#[cfg(test)]
mod tests;
