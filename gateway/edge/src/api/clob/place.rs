//! Placement in the venue's shapes: one signed order, a batch of them, one flat order (gateway/docs/venue-clients.md §5).

use super::flat::FlatOrder;
use super::ids::{ORDER_EXAMPLE, OrderIds};
use super::rehearsal::{Looked, Made, Rehearsal};
use super::signed::{SignedOrder, SignedRequest};
use super::words::{self, OrderEcho};
use crate::api::orders::terms::Sender;
use crate::api::orders::words::{self as native, SideName};
use crate::api::refuse::{rejected, unexpected};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::record::{EmptyList, forms, record};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::scalar::{Blank, Digits, OrderHexId, Price, Quantity, Volume, Zero, words};
use crate::rehearsal::{Found, explained};
use engine::command::{Answer, BatchEntry, Command, Placement};
use engine::describe::Words as _;
use engine::order::{EntryRoute, Order, Side};
use engine::rehearsal::Rule;
use engine::reject::Reject;
use engine::time::Timestamp;
use engine::view::OrderView;
use hyper::header::HeaderName;
use wire::value::Value;

const SIGNED: &str = "POST /v1/order";
const BATCH: &str = "POST /v1/orders";
const FLAT: &str = "POST /v1/clob/order";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

words! {
    /// `live`: a part of the order rests.
    pub PlacedStatus = "live", "matched", "unmatched";
    pub FailedStatus = "unmatched", "";
}

record! {
    /// The order was accepted.
    pub struct PlacedOrder<'a> {
        success: bool = true, "Always true.";
        #[serde(rename = "errorMsg")]
        error_msg: Blank = "".into();
        #[serde(rename = "orderID")]
        order_id: OrderHexId<'a> = ORDER_EXAMPLE.into();
        status: PlacedStatus = "live".into(),
            "`live`: a part of it rests; `unmatched`: a repeat of an order that was cancelled since.";
        #[serde(rename = "makingAmount")]
        making_amount: Volume = Volume(0), "Given so far, without fees.";
        #[serde(rename = "takingAmount")]
        taking_amount: Volume = Volume(0), "Taken so far.";
        #[serde(rename = "transactionsHashes")]
        transactions_hashes: EmptyList = EmptyList;
        #[serde(rename = "tradeIDs")]
        trade_ids: Vec<Digits> = Vec::new(), "Empty, unless the server is set to name trades.";
    }

    /// An entry that was refused or killed.
    pub struct FailedOrder {
        success: bool = false, "False; true, as at the venue, where the rehearsal refuses.";
        #[serde(rename = "errorMsg")]
        error_msg: String = "Invalid order payload".to_owned(), "The venue's sentence.";
        #[serde(rename = "orderID")]
        order_id: Blank = "".into();
        status: FailedStatus = "unmatched".into(), "Empty, as at the venue, where the rehearsal refuses.";
        #[serde(rename = "makingAmount")]
        making_amount: Zero = "0".into();
        #[serde(rename = "takingAmount")]
        taking_amount: Zero = "0".into();
        #[serde(rename = "transactionsHashes")]
        transactions_hashes: EmptyList = EmptyList;
        #[serde(rename = "tradeIDs")]
        trade_ids: EmptyList = EmptyList;
        error: String = "INVALID_ORDER_PAYLOAD".to_owned(), "The code; in the strict dialect the sentence again.";
        message: Option<String> = None, "Strict: the sentence.", skip_serializing_if;
        code: Option<&'static str> = None, "Strict: the code.", skip_serializing_if;
        rule: Option<&'static str> = None, "The rule of the rehearsal that refused it.", skip_serializing_if;
        diagnosis: Option<&'static str> = None, "What a closer look showed.", skip_serializing_if;
    }

    /// The order was accepted.
    pub struct PlacedFlatOrder<'a> {
        success: bool = true, "Always true.";
        #[serde(rename = "orderID")]
        order_id: OrderHexId<'a> = ORDER_EXAMPLE.into();
        status: PlacedStatus = "live".into(),
            "`live`: a part of it rests; `unmatched`: a repeat of an order that was cancelled since.";
        price: Price = Price::of("0.41"), "Its limit.";
        size: Quantity = Quantity::of("10"), "Shares asked for.";
        side: SideName = "BUY".into();
        #[serde(rename = "transactID")]
        transact_id: Blank = "".into();
        #[serde(rename = "errorMsg")]
        error_msg: Blank = "".into();
        #[serde(rename = "makingAmount")]
        making_amount: Volume = Volume(0), "Given so far, without fees.";
        #[serde(rename = "takingAmount")]
        taking_amount: Volume = Volume(0), "Taken so far.";
    }
}

forms! {
    // An entry of a batch.
    pub PlacedOrFailed<'a> = Placed(PlacedOrder<'a>), Failed(FailedOrder); PlacedOrFailed::Placed(PlacedOrder::example());
}

/// `POST /v1/order`.
pub async fn signed(call: Call) -> Outcome {
    let body = body(&call)?;
    let read = SignedOrder::read(&body, &sender(&call, SIGNED, EntryRoute::Venue));
    let order = read.in_dialect(call.dialect(), &call.reads().catalog);
    if let Some(rehearsal) = Rehearsal::of(&call) {
        return Box::pin(rehearsed(&call, rehearsal, order)).await;
    }
    let SignedOrder { placement, request } = order;
    match call.ask(Command::Place(Box::new(placement))).await? {
        Answer::Order(view) => Ok(placed(&call, &view)),
        other => Err(refused(&other, request.echo(SIGNED), request.fault, call.now)),
    }
}

/// The same while the venue's checks are rehearsed.
async fn rehearsed(call: &Call, rehearsal: Rehearsal<'_>, mut order: SignedOrder<'_, '_>) -> Outcome {
    let looked = rehearsal.look(&mut order, SIGNED);
    let SignedOrder { placement, request } = order;
    let answer = call.ask(Command::Place(Box::new(placement))).await;
    let made = Made::of(&answer);
    let outcome = answer.and_then(|answer| match answer {
        Answer::Order(view) => Ok(placed(call, &view)),
        Answer::Refused(reject) => {
            let refused = refused(&Answer::Refused(reject), request.echo(SIGNED), request.fault, call.now);
            Err(rehearsal.worded(&reject, looked.as_ref(), refused))
        }
        other => Err(refused(&other, request.echo(SIGNED), request.fault, call.now)),
    });
    let rules = rehearsal.end(vec![(looked, made)]);
    rehearsal.headed(outcome, rules)
}

fn placed(call: &Call, view: &OrderView) -> Reply {
    Reply::json(&PlacedOrder::new(view, &OrderIds::of(call), names_trades(call, &view.order)))
}

/// Whether the answer to a placement names its trades.
fn names_trades(call: &Call, order: &Order) -> bool {
    let compat = &call.front().settings.compat;
    compat.trade_ids || (compat.rehearsal.profile.names_trades() && order.terms.time_in_force.immediate())
}

/// `POST /v1/orders` with a JSON array: entries in their order. Each succeeds or fails independently; the status is 200
/// either way.
pub async fn batch(call: &Call, orders: &[Value<'_>]) -> Outcome {
    let front = call.front();
    let most = front.settings.limits.tier(call.caller().tier).max_batch_size as usize;
    if orders.is_empty() {
        return Err(Refusal::new(Code::InvalidBody, "The list has no orders."));
    }
    if orders.len() > most {
        let message = format!("{} orders were sent; the tier allows {most} in one batch.", orders.len());
        return Err(Refusal::new(Code::BatchLimitExceeded, message));
    }
    let mut rehearsal = Rehearsal::of(call);
    if let Some(rehearsal) = &mut rehearsal {
        rehearsal.batch(orders.len())?;
    }
    // A header names one request, not its entries.
    let sender = Sender { header_id: None, ..sender(call, BATCH, EntryRoute::Venue) };
    let read = |order| SignedOrder::read(order, &sender).in_dialect(call.dialect(), sender.catalog);
    let mut read: Vec<SignedOrder<'_, '_>> = orders.iter().map(read).collect();
    let looked: Vec<Option<Looked>> = match &rehearsal {
        Some(rehearsal) => read.iter_mut().map(|order| rehearsal.look(order, BATCH)).collect(),
        None => Vec::new(),
    };
    let (placements, requests): (Vec<Placement>, Vec<SignedRequest<'_, '_>>) =
        read.into_iter().map(|SignedOrder { placement, request }| (placement, request)).unzip();
    let answer = call.ask(Command::PlaceBatch(placements)).await;
    let mut made = Vec::new();
    let outcome = answer.and_then(|answer| match answer {
        Answer::Batch(entries) if entries.len() == requests.len() => {
            if rehearsal.is_some() {
                made = entries.iter().map(Made::of_entry).collect();
            }
            let ids = OrderIds::of(call);
            let results = entries.iter().zip(requests).enumerate().map(|(at, (entry, request))| match entry {
                BatchEntry::Placed(view) => {
                    PlacedOrFailed::Placed(PlacedOrder::new(view, &ids, names_trades(call, &view.order)))
                }
                BatchEntry::Killed { reject, .. } | BatchEntry::Refused(reject) => {
                    let echo = request.echo(BATCH);
                    let refusal = match (reject, request.fault) {
                        (Reject::InvalidTerms, Some(fault)) => fault,
                        _ => words::worded(rejected(reject, call.now), Some(reject), &echo),
                    };
                    PlacedOrFailed::Failed(match &rehearsal {
                        Some(rehearsal) => {
                            let looked = looked.get(at).and_then(Option::as_ref);
                            let refusal = rehearsal.worded(reject, looked, refusal);
                            let failed = FailedOrder::new(&refusal, call.dialect());
                            let reason = rehearsal.reason(reject, looked);
                            if rehearsal.enforces() { failed.in_venue_form(reason) } else { failed }
                        }
                        None => FailedOrder::new(&refusal, call.dialect()),
                    })
                }
            });
            Ok(Reply::json(&results.collect::<Vec<_>>()))
        }
        other => Err(unexpected(&other, call.now)),
    });
    match &rehearsal {
        Some(rehearsal) => {
            // Without an answer no order has a row.
            made.resize(looked.len(), Made::default());
            let rules = rehearsal.end(looked.into_iter().zip(made).collect());
            rehearsal.headed(outcome, rules)
        }
        None => outcome,
    }
}

/// `POST /v1/clob/order`.
pub async fn flat(call: Call) -> Outcome {
    let body = body(&call)?;
    let FlatOrder { placement, fault, echo } = FlatOrder::read(&body, &sender(&call, FLAT, EntryRoute::Clob));
    match call.ask(Command::Place(Box::new(placement))).await? {
        Answer::Order(view) => Ok(Reply::json(&PlacedFlatOrder::new(&view.order, &OrderIds::of(&call)))),
        other => Err(refused(&other, echo, fault, call.now)),
    }
}

/// The body of a placement. JSON that does not describe an order is refused by the shard, after its checks of repeats and
/// of the daily limit.
fn body(call: &Call) -> Result<Value<'_>, Refusal> {
    call.json()?.ok_or_else(|| Refusal::new(Code::InvalidBody, "The body is empty."))
}

fn sender<'a>(call: &'a Call, endpoint: &'static str, route: EntryRoute) -> Sender<'a> {
    let reads = call.reads();
    Sender {
        key: call.key(),
        tier: call.caller().tier,
        route,
        endpoint,
        header_id: call.headers.get(IDEMPOTENCY_KEY).map(|id| id.as_bytes()),
        catalog: &reads.catalog,
        max_shares: reads.rules.max_shares_per_order,
    }
}

/// The refusal of an order, in the venue's words.
fn refused(answer: &Answer, echo: OrderEcho, fault: Option<Refusal>, now: Timestamp) -> Refusal {
    match (answer, fault) {
        (Answer::Refused(Reject::InvalidTerms), Some(fault)) => fault,
        (Answer::Refused(reject) | Answer::Killed { reject, .. }, _) => {
            words::worded(unexpected(answer, now), Some(reject), &echo)
        }
        (answer, _) => unexpected(answer, now),
    }
}

impl PlacedOrder<'_> {
    fn new(view: &OrderView, ids: &OrderIds, names_trades: bool) -> Self {
        let (making_amount, taking_amount) = amounts(&view.order);
        let trades = if names_trades { &view.fills[..] } else { &[] };
        PlacedOrder {
            success: true,
            error_msg: "".into(),
            order_id: ids.shown(&view.order),
            status: words::placed(&view.order).into(),
            making_amount,
            taking_amount,
            transactions_hashes: EmptyList,
            trade_ids: trades.iter().map(|fill| Digits(fill.id.0)).collect(),
        }
    }
}

impl PlacedFlatOrder<'_> {
    fn new(order: &Order, ids: &OrderIds) -> Self {
        let (making_amount, taking_amount) = amounts(order);
        PlacedFlatOrder {
            success: true,
            order_id: ids.shown(order),
            status: words::placed(order).into(),
            price: order.terms.limit.into(),
            size: order.terms.quantity.into(),
            side: native::side(order.terms.side).into(),
            transact_id: "".into(),
            error_msg: "".into(),
            making_amount,
            taking_amount,
        }
    }
}

impl FailedOrder {
    fn new(refusal: &Refusal, dialect: Dialect) -> FailedOrder {
        let (message, code) = (refusal.message().to_owned(), refusal.code().text());
        let is_strict = dialect.is_strict();
        FailedOrder {
            success: false,
            error_msg: message.clone(),
            order_id: "".into(),
            status: "unmatched".into(),
            making_amount: "0".into(),
            taking_amount: "0".into(),
            transactions_hashes: EmptyList,
            trade_ids: EmptyList,
            error: if is_strict { message.clone() } else { code.to_owned() },
            message: is_strict.then_some(message),
            code: is_strict.then_some(code),
            rule: None,
            diagnosis: None,
        }
    }

    /// In the form of the venue, with the finding that it is refused for.
    fn in_venue_form(self, found: Option<Found>) -> FailedOrder {
        FailedOrder {
            success: true,
            status: "".into(),
            rule: found.map(|found| Rule::NAMES[found.rule as usize]),
            diagnosis: found.and_then(|found| explained(found.diagnosis)),
            ..self
        }
    }
}

/// The given and the taken amount so far, without fees: USD and shares of a BUY, shares and USD of a SELL.
fn amounts(order: &Order) -> (Volume, Volume) {
    // Fills are never negative.
    let (usd, shares) = (Volume(order.notional.0.unsigned_abs()), Volume(order.filled.0));
    match order.terms.side {
        Side::Buy => (usd, shares),
        Side::Sell => (shares, usd),
    }
}
