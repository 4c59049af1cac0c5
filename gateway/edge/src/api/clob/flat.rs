//! The body of `POST /v1/clob/order` → [`Placement`] (gateway/docs/venue-clients.md §5.6): a flat order in plain decimals.

use super::signed::instrument;
use super::words::{self, OrderEcho};
use crate::api::orders::terms::{Sender, digest, identity, unix_secs};
use crate::api::orders::words::SIDES;
use crate::http::code::Code;
use crate::http::reply::Refusal;
use engine::amount::{Cash, Qty};
use engine::command::{InvalidTerms, Placement, PlacementTerms, RequestedPrice, Size};
use engine::order::{OrderType, TimeInForce};
use wire::decimal::Decimal;
use wire::fields::Body;
use wire::value::Value;

/// Longest texts that are looked at.
const TOKEN_ID_CHARS_MAX: usize = 256;
const WORD_CHARS_MAX: usize = 256;
/// IOC has no word here.
const ORDER_TYPES: [(&str, TimeInForce); 4] =
    [("GTC", TimeInForce::Gtc), ("GTD", TimeInForce::Gtd), ("FOK", TimeInForce::Fok), ("FAK", TimeInForce::Fak)];

/// One flat order as it goes to the shard.
pub struct FlatOrder {
    pub placement: Placement,
    /// The refusal when the shard finds it unsound.
    pub fault: Option<Refusal>,
    /// What the sentence of a refusal repeats of it.
    pub echo: OrderEcho,
}

impl FlatOrder {
    pub fn read(body: &Value<'_>, sender: &Sender<'_>) -> FlatOrder {
        let mut fields = Body::new(body);
        let (_, request) = identity(&mut fields, body, sender);
        let id_fault = (!fields.problems.is_empty()).then(|| Refusal::validation(&fields.problems));
        let mut fields = Body::new(body);
        let mut echo = OrderEcho::default();
        let terms = terms(&mut fields, sender, &mut echo);
        let fault = match &terms {
            Err(Code::InvalidOrderPayload) => Some(payload(&fields)),
            Err(code) => Some((*code).into()),
            Ok(_) => id_fault,
        };
        if fault.is_none() {
            echo.digest = digest(sender.endpoint, body);
        }
        let terms = terms.ok().filter(|_| fault.is_none()).ok_or(InvalidTerms);
        let (key, tier, route) = (sender.key, sender.tier, sender.route);
        FlatOrder { placement: Placement { request, ..Placement::new(key, tier, route, terms) }, fault, echo }
    }
}

/// The refusal of a body that does not describe an order, with its problems as verbose details.
fn payload(fields: &Body<'_, '_>) -> Refusal {
    let refusal = words::worded(Code::InvalidOrderPayload.into(), None, &OrderEcho::default());
    if fields.problems.is_empty() { refusal } else { refusal.details(fields.problems.details()) }
}

/// Checks in this order: types and bounds, price, size.
fn terms(fields: &mut Body<'_, '_>, sender: &Sender<'_>, echo: &mut OrderEcho) -> Result<PlacementTerms, Code> {
    let token = fields.text("token_id", TOKEN_ID_CHARS_MAX).filter(|token| !token.is_empty());
    let side = fields.text("side", WORD_CHARS_MAX);
    let side = side.and_then(|side| SIDES.iter().find(|(word, _)| side.eq_ignore_ascii_case(word)));
    let word = fields.text("order_type", WORD_CHARS_MAX);
    let post_only = fields.boolean("post_only").unwrap_or(false);
    let price = fields.decimal("price");
    let size_name = if fields.get("size").is_some() { "size" } else { "quantity" };
    let (size_sent, size) = (fields.get(size_name), fields.decimal(size_name));
    let bounded = |price: &Decimal| price.is_positive() && *price <= Decimal::ONE;
    let in_bounds = price.as_ref().is_none_or(bounded) && size.is_none_or(|size| size <= sender.max_shares.into());
    let (Some(token), Some((_, side)), Some(_), true) = (token, side, size_sent, in_bounds) else {
        return Err(Code::InvalidOrderPayload);
    };
    if !fields.problems.is_empty() {
        return Err(Code::InvalidOrderPayload);
    }
    let time_in_force = match word {
        None => TimeInForce::Gtc,
        Some(word) => {
            let found = ORDER_TYPES.iter().find(|(known, _)| word.eq_ignore_ascii_case(known));
            found.map(|(_, meaning)| *meaning).ok_or(Code::UnsupportedOrderType)?
        }
    };
    let price = price.ok_or(Code::PriceRequired)?;
    let text = match size_sent {
        Some(Value::Text(text)) => text.as_ref(),
        Some(Value::Number(text)) => text,
        _ => "",
    };
    let (qty, cut) = size.and_then(Decimal::order_qty_down).ok_or(Code::InvalidQuantity)?;
    if qty == Qty::ZERO {
        return Err(Code::InvalidQuantity);
    }
    (echo.price, echo.size) = (price.cash_down().unwrap_or(Cash::ZERO), qty);
    Ok(PlacementTerms {
        wallet: None,
        instrument: instrument(sender.catalog, token),
        side: *side,
        order_type: OrderType::Limit,
        time_in_force,
        size: Size::Shares { qty, rounded_from: cut.then(|| text.to_owned()) },
        price: price.price_exact().map_or(RequestedPrice::OffGrid, RequestedPrice::At),
        expiration: fields.get("expiration").filter(|_| time_in_force == TimeInForce::Gtd).and_then(unix_secs),
        post_only,
    })
}
