//! Compares a model with the history that a server answers: the oldest orders by their ids, every trade of the CSV export,
//! the figures of the profile analysis, the points of equity.
//!
//! An order without an answer may exist or not. An order may be filled after its answer, up to its size: such fills are
//! counted, and are no difference. Trades of other orders of a user count for the user's figures only.
//!
//! Memory: the orders of one file of the model ([`super::model::FILES`]), and a part of an export.

mod export;

use super::ask::Ask;
use super::check::Wrong;
use super::keys::Keys;
use super::model::{FILES, Known, Model, What, micros};
use export::{Export, Trades};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};

/// Orders that are looked up by their ids, of all users together.
const LOOK_UPS: usize = 10_000;

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Reconciled {
    pub users: u64,
    /// Orders of the model.
    pub orders: u64,
    /// Of them looked up by their ids.
    pub looked_up: u64,
    /// Trades of the exports, and those of them that belong to orders of the model.
    pub trades: u64,
    pub known_trades: u64,
    /// Orders that were filled further after their answers.
    pub filled_later: u64,
    /// Orders without an answer that have trades.
    pub unknown_traded: u64,
    /// Points of equity.
    pub points: u64,
    /// By what differs.
    pub differences: BTreeMap<&'static str, Wrong>,
    /// Users whose history could not be read, and why.
    pub unread: Wrong,
}

impl Reconciled {
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty() && self.unread.count == 0
    }

    fn differs(&mut self, what: &'static str, id: impl FnOnce() -> String) {
        self.differences.entry(what).or_default().add(id);
    }

    /// Two amounts that must be equal.
    fn compare(&mut self, what: &'static str, id: impl Fn() -> String, server: Option<i64>, model: i64) {
        if server != Some(model) {
            let server = server.map_or_else(|| "nothing".to_owned(), |server| server.to_string());
            self.differs(what, || format!("{} ({server} instead of {model})", id()));
        }
    }

    /// One line, and one more for each kind of difference.
    pub fn lines(&self) -> Vec<String> {
        let word = match (self.differences.is_empty(), self.unread.count) {
            (false, _) => "DIFFERENT",
            (true, 0) => "equal",
            (true, _) => "INCOMPLETE",
        };
        let Reconciled { users, orders, looked_up, trades, known_trades, filled_later, unknown_traded, points, .. } =
            self;
        let mut lines = vec![format!(
            "{word}: {users} users, {orders} orders, {looked_up} of them by id, {trades} trades of which {known_trades} of \
             these orders, {filled_later} orders filled later, {unknown_traded} without an answer and traded, {points} \
             points of equity"
        )];
        lines.extend(self.differences.iter().map(|(what, wrong)| named(wrong, what)));
        if self.unread.count > 0 {
            lines.push(named(&self.unread, "users whose history could not be read"));
        }
        lines
    }
}

fn named(wrong: &Wrong, what: &str) -> String {
    let more = if wrong.count > wrong.ids.len() as u64 { "; …" } else { "" };
    format!("{} {what}: {}{more}", wrong.count, wrong.ids.join("; "))
}

/// An order as it is looked up.
#[derive(Deserialize)]
struct Detail {
    order_id: u64,
    status: String,
    side: String,
    token_id: String,
    client_order_id: Option<String>,
    price: String,
    notional: String,
    fee: String,
    requested_quantity: String,
    filled_quantity: String,
    fills: Vec<Fill>,
}

#[derive(Deserialize)]
struct Fill {
    quantity: String,
    notional: String,
    fee: String,
}

#[derive(Deserialize)]
struct Analysis {
    balance: Balance,
    open_positions: Vec<Position>,
    trading_stats: Stats,
}

#[derive(Deserialize)]
struct Balance {
    starting_api_balance: String,
    realized_pnl: String,
}

#[derive(Deserialize)]
struct Position {
    cost_basis: String,
}

#[derive(Deserialize)]
struct Stats {
    total_trades: u64,
    total_buys: u64,
    total_sells: u64,
    total_volume: String,
    total_fees_paid: String,
}

#[derive(Deserialize)]
struct Point {
    timestamp: String,
    cash_balance: String,
    position_value: String,
    total_value: String,
    pnl: String,
}

/// Compares everything. The server must not be trading for these users meanwhile.
///
/// # Errors
/// One sentence if the model cannot be read, or the server does not answer.
pub async fn reconcile(ask: &mut Ask, keys: &Keys, model: &Model) -> Result<Reconciled, String> {
    let mut by_id: HashMap<u64, &str> = HashMap::new();
    for user in keys.users.iter() {
        by_id.entry(user.user_id).or_insert(&user.api_key);
    }
    let mut found = Reconciled::default();
    let look_ups = LOOK_UPS.div_ceil(by_id.len());
    for place in 0..FILES {
        let orders = model.orders(place)?;
        for orders in orders.chunk_by(|one, other| one.row.user == other.row.user) {
            let user = orders[0].row.user;
            found.users += 1;
            found.orders += orders.len() as u64;
            let Some(key) = by_id.get(&user) else {
                found.unread.add(|| format!("user {user}: not in {}", keys.file.display()));
                continue;
            };
            let mut of_user = OfUser { ask, key, user, model, orders, found: &mut found };
            if let Err(why) = of_user.compare(look_ups).await? {
                found.unread.add(|| format!("user {user}: {why}"));
            }
        }
    }
    Ok(found)
}

/// The history of one user.
struct OfUser<'a> {
    ask: &'a mut Ask,
    key: &'a str,
    user: u64,
    model: &'a Model,
    orders: &'a [Known],
    found: &'a mut Reconciled,
}

impl OfUser<'_> {
    /// The inner error is the refusal of the key, or of a part of the history.
    async fn compare(&mut self, look_ups: usize) -> Result<Result<(), String>, String> {
        // The first ones that were answered.
        let answered = self.orders.iter().filter(|known| known.row.what == What::Placed);
        for known in answered.take(look_ups).copied().collect::<Vec<_>>() {
            let id = self.model.id(known.row.name);
            for path in [format!("/v1/orders/{}", known.row.order), format!("/v1/orders/by-client-id/{id}")] {
                let detail = self.ask.read_if_there::<Detail>(&path, self.key).await?;
                self.look(&known, &id, detail);
            }
            self.found.looked_up += 1;
        }
        let mut trades = Trades::of(self.model, self.orders);
        let mut export = Export::default();
        let path = "/v1/export/trades.csv?wallet_id=api";
        let read =
            self.ask.stream(path, self.key, |bytes| export.take(bytes, |trade| trades.take(trade, self.found))).await?;
        if let Err(why) = read.and_then(|()| export.end()) {
            return Ok(Err(why));
        }
        trades.end(self.found);
        let analysis = match self.read("/v1/account/profile-analysis").await? {
            Ok(analysis) => analysis,
            Err(refused) => return Ok(Err(refused)),
        };
        self.analysis(&analysis, &trades);
        match self.read::<Vec<Point>>("/v1/account/equity").await? {
            Ok(points) => self.equity(&points, &analysis, &trades),
            Err(refused) => return Ok(Err(refused)),
        }
        Ok(Ok(()))
    }

    async fn read<T: DeserializeOwned>(&mut self, path: &str) -> Result<Result<T, String>, String> {
        self.ask.read_as(path, self.key).await
    }

    /// An order that was looked up.
    fn look(&mut self, known: &Known, id: &str, detail: Option<Detail>) {
        let (row, found) = (&known.row, &mut *self.found);
        let Some(detail) = detail else {
            return found.differs("orders that were acknowledged and are missing", || id.to_owned());
        };
        let name = || id.to_owned();
        let is_named = detail.order_id == row.order && detail.client_order_id.as_deref() == Some(id);
        if !is_named || detail.side != row.sort.side() || detail.token_id != self.model.token(row) {
            found.differs("orders with another id, side or token", name);
        }
        let filled = micros(&detail.filled_quantity);
        found.compare("orders of another size", name, micros(&detail.requested_quantity), row.quantity);
        let is_cancelled = detail.status == "CANCELLED";
        if known.cancel == Some(What::Cancelled) && !is_cancelled {
            found.differs("orders that are not cancelled", name);
        }
        if filled.is_some_and(|filled| filled > row.filled && filled <= row.quantity) {
            // The trades say more.
            return;
        }
        found.compare("orders filled by another quantity", name, filled, row.filled);
        found.compare("orders at another price", name, micros(&detail.price), i64::from(row.price));
        if row.filled == row.quantity && detail.status != "FILLED" {
            found.differs("orders that are not filled", name);
        }
        if row.filled > 0 {
            let sum = |of: fn(&Fill) -> &str| detail.fills.iter().map(|fill| micros(of(fill))).sum::<Option<i64>>();
            found.compare("orders with another sum of fills", name, sum(|fill| &fill.quantity), row.filled);
            for (what, order, fills, model) in [
                ("orders with another notional", micros(&detail.notional), sum(|fill| &fill.notional), row.notional),
                ("orders with another fee", micros(&detail.fee), sum(|fill| &fill.fee), row.fee),
            ] {
                found.compare(what, name, order, model);
                found.compare(what, name, fills, model);
            }
        }
    }

    fn analysis(&mut self, analysis: &Analysis, trades: &Trades<'_>) {
        let (stats, sums, user) = (&analysis.trading_stats, trades.sums, self.user);
        let name = || format!("user {user}");
        let count = |count: u64| i64::try_from(count).ok();
        let costs = analysis.open_positions.iter().map(|position| micros(&position.cost_basis)).sum::<Option<i64>>();
        // What was bought is sold or still held at its cost.
        let realized = costs.map(|costs| sums.sold - sums.bought + costs);
        let rows = [
            ("counts of trades in the analysis", count(stats.total_trades), (sums.buys + sums.sells) as i64),
            ("counts of buys in the analysis", count(stats.total_buys), sums.buys as i64),
            ("counts of sales in the analysis", count(stats.total_sells), sums.sells as i64),
            ("volumes in the analysis", micros(&stats.total_volume), sums.bought + sums.sold),
            ("fees in the analysis", micros(&stats.total_fees_paid), sums.fees),
            ("realized gains in the analysis", micros(&analysis.balance.realized_pnl), realized.unwrap_or(i64::MIN)),
        ];
        for (what, server, model) in rows {
            self.found.compare(what, name, server, model);
        }
    }

    fn equity(&mut self, points: &[Point], analysis: &Analysis, trades: &Trades<'_>) {
        let (sums, user) = (trades.sums, self.user);
        let starting = micros(&analysis.balance.starting_api_balance).unwrap_or_default();
        self.found.points += points.len() as u64;
        for point in points {
            let name = || format!("user {user} at {}", point.timestamp);
            let [cash, value, total, pnl] =
                [&point.cash_balance, &point.position_value, &point.total_value, &point.pnl].map(|text| micros(text));
            let parts = cash.zip(value).map(|(cash, value)| cash + value);
            self.found.compare(
                "points of equity that are not cash and positions",
                name,
                total,
                parts.unwrap_or_default(),
            );
            let begun = total.zip(pnl).map(|(total, pnl)| total - pnl);
            self.found.compare("points of equity with another beginning", name, begun, starting);
        }
        let cash = points.last().and_then(|now| micros(&now.cash_balance));
        let expected = starting + sums.sold - sums.bought - sums.fees;
        self.found.compare("cash at the end", || format!("user {user}"), cash, expected);
    }
}
