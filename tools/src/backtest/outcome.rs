//! The result of a back-test with a bot: orders, trades and equity of all users, and the hash of what they are.

use crate::settings::hex;
use ::simulation::report::{self, BotFill, BotRun};
use edge::api::orders::words;
use engine::amount::{Cash, Price, Qty};
use engine::backtest::EquityPoint;
use engine::id::{InstrumentId, OrderId, UserId};
use engine::mark::Marks;
use engine::order::{Fill, Order};
use engine::shard::replay::State;
use engine::time::{DAY, Timestamp};
use engine::user::{User, Wallet};
use gateway::boot::Started;
use host::moments::Figures;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitStatus;
use wire::instant::ts_text;

/// What decides the result of a run besides the bot.
pub struct Spec {
    pub gate: String,
    /// Identifies the recording.
    pub recording: Option<String>,
    /// First and last hour, as they were given.
    pub hours: [Option<String>; 2],
    pub settings: Vec<(String, String)>,
}

/// The result of a run.
pub struct Outcome {
    pub report: Value,
    /// SHA-256 of the canonical JSON of specification, orders, trades and equity.
    pub hash: String,
    pub course: Course,
}

/// The course of a run, for its page.
pub struct Course {
    span: Range<Timestamp>,
    initial: Cash,
    /// All wallets with orders together, oldest first.
    points: Vec<EquityPoint>,
    /// Oldest first.
    fills: Vec<BotFill>,
}

/// Fields of a trade of the report, and of a point of equity.
pub const TRADE_FIELDS: [&str; 9] =
    ["order", "ts", "condition_id", "outcome", "side", "shares", "notional", "fee", "liquidity"];
pub const POINT_FIELDS: [&str; 5] = ["user", "ts", "equity", "cash", "position_value"];

impl Spec {
    fn json(&self) -> Value {
        let settings: BTreeMap<&str, &str> =
            self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        json!({
            "gate": self.gate, "recording": self.recording, "from": self.hours[0], "to": self.hours[1],
            "settings": settings,
        })
    }
}

impl Outcome {
    /// The result of a run from the first moment to the last, from the state of its log and the last books. `exit`: how
    /// the command ended by itself.
    pub fn of(
        spec: &Spec,
        state: &State,
        started: &Started,
        (start, end): (Timestamp, Timestamp),
        figures: Figures,
        exit: Option<ExitStatus>,
    ) -> Outcome {
        let marks = Marks { catalog: &started.catalog, books: &started.books };
        let mut sums = Sums::default();
        for user in users(state) {
            sums.add(user, marks, end);
        }
        let course = sums.course(start..end);
        let Sums { orders, trades, equity, initial, last, fees, far_ahead, .. } = sums;
        let spec = spec.json();
        let hashed = json!({"spec": spec, "orders": orders, "trades": trades, "equity": equity});
        let hash = hex(&Sha256::digest(canonical(&hashed).as_bytes()));
        let is_good = exit.is_none_or(|exit| exit.success());
        let mut warnings = Vec::new();
        if far_ahead > 0 {
            warnings.push(format!(
                "{far_ahead} GTD orders expire more than a day after they were placed: the host's date is not the \
                 recording's"
            ));
        }
        if figures.late > 0 {
            let late = figures.late;
            warnings
                .push(format!("{late} operations began after the clock had left the moment that they responded to"));
        }
        let pnl = Cash(last.0 - initial.0);
        let report = json!({
            "status": if is_good { "completed" } else { "failed" },
            "exit": exit.map(|exit| exit.to_string()),
            "spec": spec,
            "start": ts_text(start),
            "end": ts_text(end),
            "events": figures.passed.events,
            "cycles": figures.passed.cycles,
            "operations": figures.operations,
            "late": figures.late,
            "num_orders": orders.len(),
            "num_trades": trades.len(),
            "initial_bankroll": exact(initial.0),
            "final_equity": exact(last.0),
            "total_pnl": exact(pnl.0),
            "total_fees": exact(fees.0),
            "warnings": warnings,
            "orders": orders,
            "trades": trades,
            "equity": equity,
        });
        Outcome { report, hash, course }
    }
}

/// The report without its lists.
pub fn summary(report: &Value) -> Value {
    let fields = report.as_object().cloned().unwrap_or_default();
    let is_figure = |name: &str| !["orders", "trades", "equity"].contains(&name);
    Value::Object(fields.into_iter().filter(|(name, _)| is_figure(name)).collect())
}

/// All users, in the order of their creation.
fn users(state: &State) -> Vec<&User> {
    let mut users: Vec<&User> = state.users.iter().flat_map(|users| users.iter()).collect();
    users.sort_by_key(|user| user.id);
    users
}

/// What users did. Nothing in it is made of random numbers or of the wall clock: users and orders are numbered as they
/// came.
#[derive(Default)]
struct Sums {
    users: BTreeMap<UserId, usize>,
    order_numbers: BTreeMap<OrderId, usize>,
    orders: Vec<Value>,
    trades: Vec<Value>,
    equity: Vec<Value>,
    initial: Cash,
    last: Cash,
    fees: Cash,
    far_ahead: usize,
    /// What each wallet with orders had in the beginning, and its later values: time, cash, positions.
    wallets: Vec<(Cash, Vec<EquityPoint>)>,
    fills: Vec<BotFill>,
}

impl Sums {
    fn add(&mut self, user: &User, marks: Marks<'_>, end: Timestamp) {
        let number = self.users.len();
        self.users.insert(user.id, number);
        for order in user.orders().iter() {
            self.order_numbers.insert(order.id, self.orders.len());
            let ahead = order.terms.expiration().map_or(0, |expires| expires.since(order.created_at));
            self.far_ahead += usize::from(ahead > DAY);
            self.orders.push(order_json(number, order, marks));
        }
        for fill in user.fills().iter() {
            self.fees = Cash(self.fees.0 + fill.fee.0);
            let order = user.order(fill.order);
            self.trades.push(trade_json(self.order_numbers.get(&fill.order).copied(), order, fill, marks));
            self.fills.extend(order.map(|order| bot_fill(order, fill, marks)));
        }
        let is_used = |wallet: &&Wallet| user.orders().iter().any(|order| order.terms.wallet == wallet.id);
        for wallet in user.wallets.iter().filter(is_used) {
            let value = marks.value_of(user, wallet.id);
            self.initial = Cash(self.initial.0 + wallet.baseline.0);
            self.last = Cash(self.last.0 + wallet.cash.0 + value.0);
            let earlier = user.equity(wallet.id).into_iter().flat_map(|equity| equity.points());
            let mut points: Vec<EquityPoint> = earlier
                .map(|of| EquityPoint { at: Timestamp::of_hour(of.hour), cash: of.cash, position_value: of.value })
                .collect();
            points.push(EquityPoint { at: end, cash: wallet.cash, position_value: value });
            self.equity.extend(points.iter().map(|point| point_json(number, point)));
            self.wallets.push((wallet.baseline, points));
        }
    }

    fn course(&mut self, span: Range<Timestamp>) -> Course {
        let mut fills = std::mem::take(&mut self.fills);
        fills.sort_by_key(|fill| fill.at);
        let points = together(span.start, &self.wallets);
        Course { span, initial: self.initial, points, fills }
    }
}

/// The sum of these wallets at each moment at which one has a value; each has what it had in the beginning until then.
fn together(start: Timestamp, wallets: &[(Cash, Vec<EquityPoint>)]) -> Vec<EquityPoint> {
    let zero = Cash::ZERO;
    let mut now: Vec<(Cash, Cash)> = wallets.iter().map(|(initial, _)| (*initial, zero)).collect();
    let mut changes: BTreeMap<Timestamp, Vec<(usize, EquityPoint)>> = BTreeMap::from([(start, Vec::new())]);
    for (number, (_, points)) in wallets.iter().enumerate() {
        for point in points {
            changes.entry(point.at.max(start)).or_default().push((number, *point));
        }
    }
    let mut sum = |(at, changes): (Timestamp, Vec<(usize, EquityPoint)>)| {
        for (number, point) in changes {
            now[number] = (point.cash, point.position_value);
        }
        let [cash, position_value] =
            now.iter().fold([zero; 2], |[cash, value], of| [Cash(cash.0 + of.0.0), Cash(value.0 + of.1.0)]);
        EquityPoint { at, cash, position_value }
    };
    changes.into_iter().map(&mut sum).collect()
}

fn bot_fill(order: &Order, fill: &Fill, marks: Marks<'_>) -> BotFill {
    let [condition, outcome] = named(order.terms.instrument, marks).map(|(_, name)| name.unwrap_or_default());
    BotFill {
        at: fill.at,
        side: order.terms.side,
        condition,
        outcome,
        shares: fill.qty,
        notional: fill.notional,
        fee: fill.fee,
        liquidity: fill.liquidity,
    }
}

/// The report as a page.
pub fn page(report: &Value, course: &Course) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let spec = &report["spec"];
    let mut inputs = vec![("Gate", text(&spec["gate"])), ("Recording", text(&spec["recording"]))];
    for (name, field) in [("First hour", "from"), ("Last hour", "to")] {
        inputs.extend(Some((name, text(&spec[field]))).filter(|_| !spec[field].is_null()));
    }
    for (name, value) in spec["settings"].as_object().into_iter().flatten() {
        inputs.push((name.as_str(), text(value)));
    }
    inputs.push(("Late operations", text(&report["late"])));
    inputs.extend(Some(("Command", text(&report["exit"]))).filter(|_| !report["exit"].is_null()));
    if let Some(is_deterministic) = report["deterministic"].as_bool() {
        let runs = report["runs"].as_array().map_or(0, Vec::len);
        let equal = if is_deterministic { "equal" } else { "different" };
        inputs.push(("Runs", format!("{runs}, with {equal} results")));
    }
    inputs.push(("Program", concat!("papertape ", env!("CARGO_PKG_VERSION")).to_owned()));
    inputs.push(("Result hash", text(&report["hash"])));
    let warnings: Vec<String> = report["warnings"].as_array().into_iter().flatten().map(text).collect();
    report::bot_html(&BotRun {
        span: course.span.clone(),
        is_completed: report["status"] == "completed",
        initial: course.initial,
        points: &course.points,
        orders: report["num_orders"].as_u64().unwrap_or(0),
        fills: &course.fills,
        inputs: &inputs,
        warnings: &warnings,
    })
}

fn point_json(user: usize, point: &EquityPoint) -> Value {
    json!({
        "user": user, "ts": ts_text(point.at), "equity": exact(point.equity().0), "cash": exact(point.cash.0),
        "position_value": exact(point.position_value.0),
    })
}

fn order_json(user: usize, order: &Order, marks: Marks<'_>) -> Value {
    let terms = &order.terms;
    let mut row = Map::new();
    row.insert("user".into(), json!(user));
    row.extend(named_json(terms.instrument, marks));
    row.insert("ts".into(), json!(ts_text(order.created_at)));
    row.insert("side".into(), json!(words::side(terms.side)));
    row.insert("type".into(), json!(words::order_type(terms.order_type)));
    row.insert("time_in_force".into(), json!(words::time_in_force(terms.time_in_force)));
    row.insert("price".into(), json!(price(terms.limit)));
    row.insert("shares".into(), json!(qty(terms.quantity)));
    row.insert("post_only".into(), json!(terms.post_only));
    row.insert("expiration".into(), json!(terms.expiration().map(ts_text)));
    row.insert("unfilled".into(), json!(qty(order.unfilled())));
    row.insert("status".into(), json!(words::status(order.status())));
    row.insert("closed".into(), json!(order.closed().and_then(|(reason, _)| words::cancelled_reason(reason))));
    row.insert("closed_at".into(), json!(order.closed().map(|(_, at)| ts_text(at))));
    Value::Object(row)
}

fn trade_json(number: Option<usize>, order: Option<&Order>, fill: &Fill, marks: Marks<'_>) -> Value {
    let mut row = Map::new();
    row.insert("order".into(), json!(number));
    row.insert("ts".into(), json!(ts_text(fill.at)));
    if let Some(order) = order {
        row.extend(named_json(order.terms.instrument, marks));
        row.insert("side".into(), json!(words::side(order.terms.side)));
    }
    row.insert("shares".into(), json!(qty(fill.qty)));
    row.insert("notional".into(), json!(exact(fill.notional.0)));
    row.insert("fee".into(), json!(exact(fill.fee.0)));
    row.insert("liquidity".into(), json!(words::liquidity(fill.liquidity)));
    Value::Object(row)
}

/// The market and the outcome of an instrument.
fn named(instrument: InstrumentId, marks: Marks<'_>) -> [(&'static str, Option<String>); 2] {
    let cell = marks.catalog.of_instrument(instrument);
    let listing = cell.map(|cell| &cell.listing);
    let outcome = listing.map(|listing| listing.outcomes[instrument.outcome() as usize].clone());
    [("condition_id", listing.map(|listing| listing.condition.clone())), ("outcome", outcome)]
}

fn named_json(instrument: InstrumentId, marks: Marks<'_>) -> impl Iterator<Item = (String, Value)> {
    named(instrument, marks).into_iter().map(|(field, name)| (field.to_owned(), json!(name)))
}

/// Millionths as a plain decimal without trailing zeros.
fn exact(micros: i64) -> String {
    let (sign, micros) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
    match (micros / 1_000_000, micros % 1_000_000) {
        (whole, 0) => format!("{sign}{whole}"),
        (whole, part) => format!("{sign}{whole}.{}", format!("{part:06}").trim_end_matches('0')),
    }
}

fn price(price: Price) -> String {
    exact(i64::from(price.0) * 100)
}

fn qty(qty: Qty) -> String {
    exact(i64::try_from(qty.0).unwrap_or(i64::MAX))
}

/// One text for one value: names sorted, no spaces.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&str, &Value> = fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
            let fields = sorted.iter().map(|(name, value)| format!("{}:{}", json!(name), canonical(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        let rows = [
            (0, "0"),
            (1, "0.000001"),
            (-1, "-0.000001"),
            (1_500_000, "1.5"),
            (-2_000_000, "-2"),
            (i64::MAX, "9223372036854.775807"),
            (i64::MIN, "-9223372036854.775808"),
        ];
        for (micros, text) in rows {
            assert_eq!(exact(micros), text);
        }
        println!("amounts: {} cases", rows.len());
    }

    #[test]
    fn wallets_are_added_over_time() {
        let point = |at, cash, value| EquityPoint { at: Timestamp(at), cash: Cash(cash), position_value: Cash(value) };
        type Case = (Vec<(Cash, Vec<EquityPoint>)>, Vec<EquityPoint>);
        let cases: [Case; 4] = [
            (vec![], vec![point(10, 0, 0)]),
            (vec![(Cash(100), vec![point(50, 90, 15)])], vec![point(10, 100, 0), point(50, 90, 15)]),
            (
                vec![
                    (Cash(100), vec![point(20, 80, 20), point(50, 90, 0)]),
                    (Cash(7), vec![point(30, 6, 0), point(50, 5, 1)]),
                ],
                vec![point(10, 107, 0), point(20, 87, 20), point(30, 86, 20), point(50, 95, 1)],
            ),
            // A point of an hour that began before the run.
            (vec![(Cash(100), vec![point(5, 99, 0), point(50, 98, 0)])], vec![point(10, 99, 0), point(50, 98, 0)]),
        ];
        for (wallets, expected) in &cases {
            assert_eq!(together(Timestamp(10), wallets), *expected, "{wallets:?}");
        }
        println!("wallets together: {} cases", cases.len());
    }

    #[test]
    fn equal_values_have_one_text() {
        let read = |text: &str| canonical(&serde_json::from_str(text).expect("JSON"));
        let rows = [
            (r#"{"b":1,"a":[1,{"d":null,"c":"\""}]}"#, r#"{"a":[1,{"c":"\"","d":null}],"b":1}"#),
            (
                r#" { "a" : [ 1 , { "c" : "\u0022" , "d" : null } ] , "b" : 1 } "#,
                r#"{"a":[1,{"c":"\"","d":null}],"b":1}"#,
            ),
            ("[]", "[]"),
            ("{}", "{}"),
            ("true", "true"),
        ];
        for (text, expected) in rows {
            assert_eq!(read(text), expected, "{text}");
        }
        println!("canonical texts: {} cases", rows.len());
    }
}
