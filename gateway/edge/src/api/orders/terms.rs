//! The body of one native order → [`Placement`] (gateway/docs/trading.md §1; engine/docs/orders.md §2, steps 1 to 4).
//!
//! A repeated request and a spent daily limit are reported before the faults that are found here, and only the user's shard
//! knows them. So an unsound request becomes a placement too, and its fault is stored with it until the shard refuses it.

use super::words::{ORDER_TYPES, SIDES, TIMES_IN_FORCE};
use crate::api::refuse;
use crate::http::buffer;
use crate::http::code::Code;
use crate::http::reply::Refusal;
use engine::amount::Qty;
use engine::command::{IdSource, InvalidTerms, Placement, PlacementTerms, RequestIdentity, RequestedPrice, Size};
use engine::id::{InstrumentId, KeyId, Outcome, WalletId};
use engine::market::catalog::{Catalog, MarketCell};
use engine::order::{EntryRoute, OrderType, Side, TimeInForce};
use engine::rules::CLIENT_ORDER_ID_CHARS_MAX;
use engine::time::{SECOND, Timestamp};
use engine::user::Tier;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use wire::decimal::Decimal;
use wire::fields::{Body, Problems, is_longer};
use wire::value::Value;

const MARKET_ID_CHARS_MAX: usize = 256;
const OUTCOME_CHARS_MAX: usize = 200;
/// Longer texts are not token ids; they are not looked up.
const TOKEN_ID_CHARS_MAX: usize = 80;
/// Digits of an integer in a body.
const INTEGER_DIGITS_MAX: usize = 18;

/// The sender of orders, and the endpoint.
#[derive(Clone, Copy)]
pub struct Sender<'a> {
    pub key: KeyId,
    /// The key's effective tier.
    pub tier: Tier,
    pub route: EntryRoute,
    /// Method and path, part of a request's identity.
    pub endpoint: &'static str,
    /// `Idempotency-Key`; `None` on routes that ignore it.
    pub header_id: Option<&'a [u8]>,
    pub catalog: &'a Catalog,
    /// `MAX_SHARES_PER_ORDER`.
    pub max_shares: Qty,
}

/// One order request as it goes to the shard, and its fault, for when the shard finds it unsound.
pub struct Draft<'a> {
    pub placement: Placement,
    pub fault: Option<Refusal>,
    pub echo: Echo<'a>,
}

/// The values of a request that a refused batch entry repeats.
#[derive(Clone, Debug, Default)]
pub struct Echo<'a> {
    pub side: Option<Side>,
    pub order_type: Option<OrderType>,
    pub time_in_force: Option<TimeInForce>,
    pub outcome: Option<Cow<'a, str>>,
    pub market_id: Option<Cow<'a, str>>,
    /// A plain decimal, as sent.
    pub quantity: Option<Cow<'a, str>>,
    pub client_order_id: Option<Cow<'a, str>>,
    pub instrument: Option<InstrumentId>,
}

impl Echo<'_> {
    /// The same without a borrow of the request.
    pub fn into_owned(self) -> Echo<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Echo {
            side: self.side,
            order_type: self.order_type,
            time_in_force: self.time_in_force,
            outcome: owned(self.outcome),
            market_id: owned(self.market_id),
            quantity: owned(self.quantity),
            client_order_id: owned(self.client_order_id),
            instrument: self.instrument,
        }
    }
}

impl<'a> Draft<'a> {
    /// Reads one order object.
    pub fn read(order: &'a Value<'_>, sender: &Sender<'_>) -> Draft<'a> {
        let mut body = Body::new(order);
        if !matches!(order, Value::Object(_)) {
            body.problems.add("body", "", "model_type", format!("is {}, not an order object", order.kind()));
        }
        let (client_order_id, request) = identity(&mut body, order, sender);
        let fields = Fields::read(&mut body, sender.max_shares);
        let named = fields.named(sender.catalog);
        let echo = Echo {
            side: fields.side,
            order_type: fields.order_type,
            time_in_force: fields.time_in_force,
            outcome: fields.outcome.map(Cow::Borrowed),
            market_id: fields.market_id.map(Cow::Borrowed),
            quantity: fields.quantity.map(|(_, text)| Cow::Borrowed(text)),
            client_order_id: client_order_id.map(Cow::Borrowed),
            instrument: named.ok().flatten(),
        };
        let terms = if body.problems.is_empty() {
            fields.sound(named, body.get("expiration")).map_err(Refusal::from)
        } else {
            Err(Refusal::validation(&body.problems))
        };
        let (terms, fault) = match terms {
            Ok(terms) => (Ok(terms), None),
            Err(fault) => (Err(InvalidTerms), Some(fault)),
        };
        let placement = Placement { request, ..Placement::new(sender.key, sender.tier, sender.route, terms) };
        Draft { placement, fault, echo }
    }
}

/// The request's id and identity (gateway/docs/wire.md §11): header before field, and they must agree.
pub fn identity<'a>(
    body: &mut Body<'a, '_>,
    order: &Value<'_>,
    sender: &Sender<'_>,
) -> (Option<&'a str>, Option<RequestIdentity>) {
    let problems_before = body.problems.is_empty();
    let field = body.text("client_order_id", CLIENT_ORDER_ID_CHARS_MAX).filter(|id| !id.is_empty());
    if field.is_some_and(|id| !printable(id)) {
        body.problems.add("body", "client_order_id", "string_pattern", "has characters that cannot be printed");
    }
    let header = header_id(sender.header_id, CLIENT_ORDER_ID_CHARS_MAX, &mut body.problems);
    if let (Some(field), Some(header)) = (field, header)
        && field != header
    {
        body.problems.add("body", "client_order_id", "value_error", "differs from the header Idempotency-Key");
    }
    // An invalid id identifies nothing.
    let sound = problems_before == body.problems.is_empty();
    let id = header.map(|id| (id, IdSource::Header)).or(field.map(|id| (id, IdSource::Body)));
    let request = id.filter(|_| sound).map(|(id, source)| RequestIdentity {
        client_order_id: id.to_owned(),
        digest: digest(sender.endpoint, order),
        source,
    });
    (field, request)
}

/// The id of a request in its header `Idempotency-Key`; `None` if it has none, and with a problem if it is not a printable
/// text.
pub fn header_id<'a>(value: Option<&'a [u8]>, chars_max: usize, problems: &mut Problems) -> Option<&'a str> {
    let value = value.filter(|id| !id.is_empty())?;
    let id = std::str::from_utf8(value).ok().filter(|id| !is_longer(id, chars_max) && printable(id));
    if id.is_none() {
        let message = format!("is not a printable text of at most {chars_max} characters");
        problems.add("header", "Idempotency-Key", "string_pattern", message);
    }
    id
}

fn printable(text: &str) -> bool {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    plain || !text.chars().any(char::is_control)
}

/// SHA-256 over method, path and canonical body without `client_order_id`.
pub fn digest(endpoint: &str, order: &Value<'_>) -> [u8; 32] {
    let mut canonical = buffer::take();
    canonical.extend_from_slice(endpoint.as_bytes());
    canonical.push(b'\n');
    order.canonical(Some("client_order_id"), &mut canonical);
    let digest = Sha256::digest(&canonical).into();
    buffer::give_back(canonical);
    digest
}

/// The fields of one order, each of its type and within its bounds, or absent.
struct Fields<'a> {
    market_id: Option<&'a str>,
    outcome: Option<&'a str>,
    token_id: Option<&'a str>,
    side: Option<Side>,
    order_type: Option<OrderType>,
    time_in_force: Option<TimeInForce>,
    quantity: Option<(Decimal, &'a str)>,
    amount: Option<Decimal>,
    price: Option<Decimal>,
    post_only: bool,
    wallet: Option<WalletId>,
}

impl<'a> Fields<'a> {
    /// Step 1: types and bounds; faults are added to `body.problems`.
    fn read(body: &mut Body<'a, '_>, max_shares: Qty) -> Fields<'a> {
        let token_id = body.text("token_id", MARKET_ID_CHARS_MAX);
        let needs_market = body.get("token_id").is_none();
        let market_id = name(body, "market_id", MARKET_ID_CHARS_MAX, needs_market);
        let outcome = name(body, "outcome", OUTCOME_CHARS_MAX, needs_market);
        let side = word(body, "side", &SIDES);
        if body.get("side").is_none() {
            body.missing("side");
        }
        let order_type = match body.get("order_type") {
            None => Some(OrderType::Market),
            Some(_) => word(body, "order_type", &ORDER_TYPES),
        };
        let quantity = quantity(body, max_shares);
        let amount = body.decimal("amount");
        if amount.is_some_and(|amount| amount.cash_down().is_none()) {
            body.problems.add("body", "amount", "less_than_equal", "is out of range");
        }
        if body.get("quantity").is_none() && body.get("amount").is_none() {
            body.missing("quantity");
        }
        let price = body.decimal("price");
        if price.is_some_and(|price| !price.is_positive() || price > Decimal::ONE) {
            body.problems.add("body", "price", "decimal_range", "is not above 0 and at most 1");
        }
        let time_in_force = word(body, "time_in_force", &TIMES_IN_FORCE);
        if (order_type, time_in_force) == (Some(OrderType::Market), Some(TimeInForce::Gtd)) {
            body.problems.add("body", "time_in_force", "value_error", "a market order cannot be GTD");
        }
        if let (Some(OrderType::Market), Some(Side::Buy), Some(price)) = (order_type, side, price)
            && price.price_down().is_some_and(|price| price.0 == 0)
        {
            body.problems.add("body", "price", "decimal_range", "is below 0.0001, the lowest worst price of a BUY");
        }
        let post_only = body.boolean("post_only").unwrap_or(false);
        let wallet = wallet(body);
        Fields {
            market_id,
            outcome,
            token_id,
            side,
            order_type,
            time_in_force,
            quantity,
            amount,
            price,
            post_only,
            wallet,
        }
    }

    /// The instrument that is meant; `Ok(None)` where a part is unknown, `Err` where known parts disagree.
    fn named(&self, catalog: &Catalog) -> Result<Option<InstrumentId>, Contradiction> {
        let by_token = match self.token_id {
            Some(token) => match catalog.by_token(token).filter(|_| token.len() <= TOKEN_ID_CHARS_MAX) {
                None => return Ok(None),
                found => found,
            },
            None => None,
        };
        let market = match self.market_id {
            Some(condition) => match catalog.by_condition(condition) {
                None => return Ok(None),
                found => found,
            },
            None => by_token.map(InstrumentId::market),
        };
        let Some(cell) = market.and_then(|market| catalog.market(market)) else { return Ok(None) };
        let outcome = match self.outcome {
            Some(label) => match outcome_labelled(cell, label) {
                None => return Ok(None),
                found => found,
            },
            None => by_token.map(InstrumentId::outcome),
        };
        let Some(outcome) = outcome else { return Ok(None) };
        let by_names = cell.instrument(outcome);
        match by_token {
            Some(by_token) if by_token != by_names => Err(Contradiction),
            _ => Ok(Some(by_names)),
        }
    }

    /// Steps 2 to 4, and the request in integers.
    fn sound(
        &self,
        named: Result<Option<InstrumentId>, Contradiction>,
        expiration: Option<&Value<'_>>,
    ) -> Result<PlacementTerms, Fault> {
        // Step 1 has found both.
        let (Some(side), Some(order_type)) = (self.side, self.order_type) else { return Err(Fault::Missing) };
        let (market, buys) = (order_type == OrderType::Market, side == Side::Buy);
        if self.amount.is_some() && self.quantity.is_some() {
            return Err(Fault::Contradicts("Send either quantity or amount, not both."));
        }
        if self.amount.is_some() && !(market && buys) {
            return Err(Fault::Contradicts("Only market BUY orders can be sized by amount."));
        }
        let instrument = named
            .map_err(|Contradiction| Fault::Contradicts("token_id is not the token of that market and outcome."))?;
        let price = self.price.ok_or(Fault::Code(Code::PriceRequired))?;
        let price = if !market {
            price.price_exact().map_or(RequestedPrice::OffGrid, RequestedPrice::At)
        } else {
            // A worst price finer than 10⁻⁴ is tightened.
            let tightened = if buys { price.price_down() } else { price.price_up() };
            RequestedPrice::At(tightened.ok_or(Fault::Missing)?)
        };
        let size = self.size()?;
        let default = if market { TimeInForce::Fok } else { TimeInForce::Gtc };
        let time_in_force = self.time_in_force.unwrap_or(default);
        let is_gtd = time_in_force == TimeInForce::Gtd;
        Ok(PlacementTerms {
            wallet: self.wallet,
            instrument,
            side,
            order_type,
            time_in_force,
            size,
            price,
            expiration: expiration.filter(|_| is_gtd).and_then(unix_secs),
            post_only: self.post_only,
        })
    }

    fn size(&self) -> Result<Size, Fault> {
        let too_small = Fault::Code(Code::InvalidQuantity);
        match (self.quantity, self.amount) {
            (Some((quantity, text)), _) => match quantity.order_qty_down() {
                Some((qty, cut)) if !qty.is_zero() => {
                    Ok(Size::Shares { qty, rounded_from: cut.then(|| text.to_owned()) })
                }
                _ => Err(too_small),
            },
            (None, Some(amount)) => match amount.cash_down() {
                Some(cash) if cash.0 > 0 => Ok(Size::Amount(cash)),
                _ => Err(too_small),
            },
            (None, None) => Err(Fault::Missing),
        }
    }
}

/// Known names that mean different instruments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Contradiction;

/// A fault that steps 2 to 4 find.
enum Fault {
    Contradicts(&'static str),
    Code(Code),
    /// A field that step 1 has checked to be there.
    Missing,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        match fault {
            Fault::Contradicts(message) => Refusal::new(Code::InvalidRequest, message),
            Fault::Code(code) => Refusal::from(code),
            Fault::Missing => Refusal::from(Code::ValidationFailed),
        }
    }
}

/// A non-empty text.
fn name<'a>(body: &mut Body<'a, '_>, field: &str, chars_max: usize, required: bool) -> Option<&'a str> {
    if required && body.get(field).is_none() {
        body.missing(field);
    }
    let text = body.text(field, chars_max)?;
    if text.is_empty() {
        body.problems.add("body", field, "string_too_short", "is empty");
        return None;
    }
    Some(text)
}

/// One of these words, in any case.
fn word<T: Copy>(body: &mut Body<'_, '_>, field: &str, words: &[(&str, T)]) -> Option<T> {
    let text = body.text(field, MARKET_ID_CHARS_MAX)?;
    let found = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
    if found.is_none() {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        body.problems.add("body", field, "literal_error", format!("must be one of {}", words.join(", ")));
    }
    found.map(|(_, meaning)| *meaning)
}

/// Shares with their text. A quantity above the cap is a fault here; one below zero has a code of its own later.
fn quantity<'a>(body: &mut Body<'a, '_>, max_shares: Qty) -> Option<(Decimal, &'a str)> {
    let quantity = body.decimal("quantity")?;
    if quantity > Decimal::from(max_shares) {
        body.problems.add("body", "quantity", "less_than_equal", refuse::above_cap(max_shares));
        return None;
    }
    match body.get("quantity")? {
        Value::Text(text) => Some((quantity, text)),
        Value::Number(text) => Some((quantity, text)),
        _ => None,
    }
}

/// A wallet's number. An unknown number is refused later; only a value that is not an integer is a fault here.
fn wallet(body: &mut Body<'_, '_>) -> Option<WalletId> {
    let value = body.get("wallet_id")?;
    let wallet = match value {
        Value::Number(text) => crate::api::wallets::numbered(text),
        _ => None,
    };
    if wallet.is_none() {
        body.problems.add("body", "wallet_id", "int_type", "is not an integer");
    }
    wallet
}

/// The outcome with this label, in any case.
pub fn outcome_labelled(cell: &MarketCell, label: &str) -> Option<Outcome> {
    let same = |outcome: &Outcome| {
        let own = cell.outcome(*outcome);
        own.eq_ignore_ascii_case(label) || (!label.is_ascii() && own.to_lowercase() == label.to_lowercase())
    };
    [Outcome::First, Outcome::Second].into_iter().find(same)
}

/// Unix seconds as an integer or its text; `None` for any other value and for a number that exceeds a timestamp.
pub fn unix_secs(value: &Value<'_>) -> Option<Timestamp> {
    let text = match value {
        Value::Text(text) => text.as_ref(),
        Value::Number(text) => text,
        _ => return None,
    };
    let digits = (1..=INTEGER_DIGITS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let secs: u64 = digits.then(|| text.parse().ok()).flatten()?;
    secs.checked_mul(SECOND).map(Timestamp)
}

#[cfg(test)]
mod tests;
