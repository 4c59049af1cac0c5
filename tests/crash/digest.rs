//! The digest of a state by the recipe of engine/docs/digest.md, from the exported log alone: nothing here is of the
//! program that is tested.

use crate::golden::{directories, expected_of, place_of};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use tests::binary::run_well;
use tests::cases::Cases;
use tests::json::{at, int, list, text};
use tests::server::{ServerDir, digest_of};
use tests::world::World;

/// Words in the order of their numbers, as engine/docs/facts.md lists them.
const SIDES: &[&str] = &["Buy", "Sell"];
const TYPES: &[&str] = &["Market", "Limit"];
const TIMES: &[&str] = &["Gtc", "Gtd", "Fok", "Fak", "Ioc"];
const ROUTES: &[&str] = &["Native", "Batch", "Venue", "Clob"];
const MODELS: &[&str] = &["Touch", "Cross", "Through", "Queue", "QueueProb"];
const LIQUIDITIES: &[&str] = &["Taker", "Maker"];
const SOURCES: &[&str] = &[
    "BookWalk",
    "MatchingEngine",
    "BestAsk",
    "BestBid",
    "ClobMidpointCached",
    "LastTrade",
    "Display",
    "EmergencyExitEntryPrice",
    "EmergencyExitEntryPricePostExpiry",
];
const REASONS: &[&str] = &[
    "FokNotFilled",
    "FakNoFill",
    "FakRest",
    "ExecutionFailed",
    "UserCancelled",
    "CancelAll",
    "CancelMarket",
    "GtdExpired",
    "HeartbeatLapsed",
    "AutoCancelled",
    "BalanceReset",
    "WalletArchived",
    "MarketResolved",
    "MarketClosed",
];

/// A number of either sign in eight bytes.
fn bits(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_i64().map(|number| number as u64))
}

fn signed(value: &Value, field: &str) -> i64 {
    value[field].as_i64().unwrap_or_else(|| panic!("no number {field:?} in {value}"))
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("no number {field:?} in {value}"))
}

fn flag(value: &Value, field: &str) -> bool {
    value[field].as_bool().unwrap_or_else(|| panic!("no flag {field:?} in {value}"))
}

fn word(value: &Value, field: &str, words: &[&str]) -> u8 {
    let found = value[field].as_str().and_then(|word| words.iter().position(|known| *known == word));
    found.unwrap_or_else(|| panic!("no word {field:?} in {value}")) as u8
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

/// The bytes of a row.
struct Row(Vec<u8>);

impl Row {
    fn of(kind: u8) -> Row {
        Row(vec![kind])
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn optional(&mut self, field: u8, number: Option<u64>) {
        if let Some(number) = number {
            self.byte(field);
            self.number(number);
        }
    }

    fn optional_text(&mut self, field: u8, value: &Value) {
        if let Some(text) = value.as_str() {
            self.byte(field);
            self.text(text);
        }
    }
}

/// An order, and what its facts changed.
struct Order {
    terms: Value,
    at: u64,
    filled: u64,
    notional: i64,
    fee: i64,
    filled_at: Option<u64>,
    closed: Option<(u8, u64)>,
    reserved_cash: i64,
    reserved_qty: u64,
    fills: Vec<u64>,
    awaiting_book: bool,
    held: bool,
    resting: bool,
}

impl Order {
    fn is_buy(&self) -> bool {
        self.terms["side"] == "Buy"
    }

    /// Pending, filled, cancelled, expired.
    fn status(&self) -> u8 {
        let is_immediate = matches!(text(&self.terms, "/time_in_force"), "Fok" | "Fak" | "Ioc");
        match self.closed.map(|(reason, _)| REASONS[usize::from(reason)]) {
            Some("FakRest") => 1,
            Some("MarketResolved" | "MarketClosed") => 3,
            Some(_) => 2,
            None => u8::from(self.filled >= number(&self.terms, "quantity") || is_immediate),
        }
    }

    fn row(&self, id: u64) -> Vec<u8> {
        let (terms, quality, mut row) = (&self.terms, &self.terms["quality"], Row::of(1));
        row.number(id);
        for field in ["wallet", "key", "instrument", "limit", "quantity", "fee_rate"] {
            row.number(number(terms, field));
        }
        for number in [self.at, self.filled, self.notional as u64, self.fee as u64] {
            row.number(number);
        }
        for (field, words) in [("side", SIDES), ("order_type", TYPES), ("time_in_force", TIMES), ("route", ROUTES)] {
            row.byte(word(terms, field, words));
        }
        let flags = [
            flag(terms, "post_only"),
            flag(terms, "marketable"),
            flag(quality, "high_slippage"),
            flag(quality, "stale_quote"),
            self.awaiting_book,
            self.held,
            self.resting,
        ];
        row.byte((0..).zip(flags).map(|(bit, flag)| u8::from(flag) << bit).sum());
        row.optional(1, bits(&terms["amount"]));
        row.optional(2, bits(&terms["expiration"]));
        let figures = ["displayed", "quote_age_ms", "spread_bps", "slippage_bps", "impact_bps", "book_walk_levels"];
        for (field, name) in (3..).zip(figures.into_iter().chain(["fillable"])) {
            row.optional(field, bits(&quality[name]));
        }
        row.optional_text(10, &terms["client_order_id"]);
        row.optional_text(11, &terms["rounded_from"]);
        if let Some(hash) = terms["order_hash"].as_str() {
            row.byte(12);
            row.0.extend(unhex(hash));
        }
        row.optional(13, self.filled_at);
        if let Some((reason, at)) = self.closed {
            row.byte(14);
            row.byte(reason);
            row.number(at);
        }
        let reserved = if self.is_buy() { self.reserved_cash as u64 } else { self.reserved_qty };
        row.optional(15, (reserved != 0).then_some(reserved));
        if !self.fills.is_empty() {
            row.byte(16);
            row.number(self.fills.len() as u64);
            self.fills.iter().for_each(|fill| row.number(*fill));
        }
        let fill = &terms["fill"];
        if fill.is_object() {
            row.byte(17);
            row.byte(word(fill, "model", MODELS));
            for field in ["n", "cancel_share", "depth_share", "match_window_ms", "half_life_s"] {
                row.number(number(fill, field));
            }
        }
        row.0
    }
}

/// An episode of holding an instrument.
#[derive(Default)]
struct Position {
    wallet: u64,
    instrument: u64,
    qty: u64,
    reserved: u64,
    cost: i64,
    realized: i64,
    opened_at: u64,
    is_reset: bool,
    last_open: Option<(u64, i64)>,
    closed_at: Option<u64>,
    settlement: Option<[u64; 5]>,
}

impl Position {
    fn end(&mut self, at: u64) {
        (self.last_open, self.closed_at) = (Some((self.qty, self.cost)), Some(at));
        (self.qty, self.cost) = (0, 0);
    }

    fn row(&self, id: u64) -> Vec<u8> {
        let mut row = Row::of(3);
        let numbers = [id, self.wallet, self.instrument, self.qty, self.reserved, self.cost as u64];
        numbers.into_iter().chain([self.realized as u64, self.opened_at]).for_each(|number| row.number(number));
        row.byte(self.is_reset.into());
        if let Some((qty, cost)) = self.last_open {
            row.byte(1);
            row.number(qty);
            row.number(cost as u64);
        }
        row.optional(2, self.closed_at);
        if let Some(settlement) = self.settlement {
            row.byte(3);
            settlement.into_iter().for_each(|number| row.number(number));
        }
        row.0
    }
}

/// The rows of a user, and the cash of each wallet.
#[derive(Default)]
struct User {
    cash: BTreeMap<u64, i64>,
    orders: BTreeMap<u64, Order>,
    positions: BTreeMap<u64, Position>,
    /// Fills and requests do not change: their bytes.
    fixed: Vec<Vec<u8>>,
}

impl User {
    fn apply(&mut self, fact: &Value) {
        match text(fact, "/fact") {
            "WalletOpened" | "WalletReset" => {
                self.cash.insert(number(fact, "wallet"), signed(fact, "baseline"));
            }
            "OrderPlaced" => {
                let order = Order {
                    terms: fact["terms"].clone(),
                    at: number(fact, "at"),
                    filled: 0,
                    notional: 0,
                    fee: 0,
                    filled_at: None,
                    closed: None,
                    reserved_cash: 0,
                    reserved_qty: 0,
                    fills: Vec::new(),
                    awaiting_book: false,
                    held: false,
                    resting: false,
                };
                self.orders.insert(number(fact, "order"), order);
            }
            "OrderFilled" => self.fill(fact),
            // It follows its fill.
            "FillCharged" => {
                let mut fill = Row(self.fixed.pop().expect("its fill is there"));
                fill.optional(3, Some(1));
                self.fixed.push(fill.0);
            }
            "RebatePaid" => {
                *self.cash.get_mut(&number(fact, "wallet")).expect("it was opened") += signed(fact, "amount");
            }
            "OrderRested" => {
                let order = self.orders.get_mut(&number(fact, "order")).expect("it was placed");
                let before = order.reserved_qty;
                (order.reserved_cash, order.reserved_qty) =
                    (signed(fact, "reserved_cash"), number(fact, "reserved_qty"));
                (order.awaiting_book, order.held) = (flag(fact, "awaiting_book"), flag(fact, "held"));
                order.resting = true;
                let (wallet, instrument) = (number(&order.terms, "wallet"), number(&order.terms, "instrument"));
                let after = order.reserved_qty;
                if after != before {
                    let held = self.open_mut(wallet, instrument).expect("a resting SELL holds shares");
                    held.reserved = held.reserved - before + after;
                }
            }
            "OrderClosed" => {
                let order = self.orders.get_mut(&number(fact, "order")).expect("it was placed");
                order.closed = Some((word(fact, "reason", REASONS), number(fact, "at")));
                let before = std::mem::take(&mut order.reserved_qty);
                (order.reserved_cash, order.awaiting_book, order.resting) = (0, false, false);
                let (wallet, instrument) = (number(&order.terms, "wallet"), number(&order.terms, "instrument"));
                if before > 0 {
                    self.open_mut(wallet, instrument).expect("a resting SELL holds shares").reserved -= before;
                }
            }
            "OrderHeld" => {
                self.orders.get_mut(&number(fact, "order")).expect("it was placed").held = flag(fact, "held");
            }
            "RequestRemembered" => self.remember(fact),
            "PositionSettled" => {
                let position = self.positions.get_mut(&number(fact, "position")).expect("it was opened");
                let (price, payout, at) =
                    (number(fact, "payout_per_share"), signed(fact, "payout"), number(fact, "at"));
                position.settlement = Some([position.qty, position.cost as u64, price, payout as u64, at]);
                position.realized += payout - position.cost;
                position.end(at);
                *self.cash.get_mut(&position.wallet).expect("it was opened") += payout;
            }
            "PositionReset" => {
                let position = self.positions.get_mut(&number(fact, "position")).expect("it was opened");
                position.end(number(fact, "at"));
                position.is_reset = true;
            }
            // They move cash, and are not in these logs.
            name @ ("PurchaseNoted" | "RefundNoted" | "BoughtResetUsed") => panic!("{name} is not expected"),
            _ => {}
        }
    }

    fn open_mut(&mut self, wallet: u64, instrument: u64) -> Option<&mut Position> {
        let is_it = |held: &&mut Position| (held.wallet, held.instrument) == (wallet, instrument);
        self.positions.values_mut().filter(|held| held.closed_at.is_none()).find(is_it)
    }

    fn fill(&mut self, fact: &Value) {
        let order = self.orders.get_mut(&number(fact, "order")).expect("it was placed");
        let (qty, notional, fee) = (number(fact, "qty"), signed(fact, "notional"), signed(fact, "fee"));
        let (at, before, trade) = (number(fact, "at"), order.reserved_qty, number(fact, "trade"));
        order.filled += qty;
        order.notional += notional;
        order.fee += fee;
        order.filled_at = Some(at);
        order.fills.push(trade);
        (order.reserved_cash, order.reserved_qty) = (signed(fact, "reserved_cash"), number(fact, "reserved_qty"));
        if order.resting && order.status() != 0 {
            (order.resting, order.awaiting_book) = (false, false);
        }
        let (is_buy, after) = (order.is_buy(), order.reserved_qty);
        let (wallet, instrument) = (number(&order.terms, "wallet"), number(&order.terms, "instrument"));
        let held = self.positions.entry(number(fact, "position")).or_insert_with(|| Position {
            wallet,
            instrument,
            opened_at: at,
            ..Position::default()
        });
        let cash = self.cash.get_mut(&wallet).expect("it was opened");
        if is_buy {
            held.qty += qty;
            held.cost += notional;
            *cash -= notional + fee;
        } else {
            let (open, cost_out) = ((held.qty, held.cost), signed(fact, "cost_out"));
            held.qty -= qty;
            held.cost -= cost_out;
            held.realized += notional - cost_out;
            held.reserved = held.reserved - before + after;
            *cash += notional - fee;
            if held.qty == 0 {
                (held.last_open, held.closed_at) = (Some(open), Some(at));
            }
        }
        let mut row = Row::of(2);
        for number in [trade, number(fact, "order"), qty, notional as u64, fee as u64, at, number(fact, "fee_rate")] {
            row.number(number);
        }
        row.byte(word(fact, "liquidity", LIQUIDITIES));
        row.byte(word(fact, "source", SOURCES));
        row.optional(1, bits(&fact["quote_age_ms"]));
        row.optional(2, bits(&fact["venue_at"]));
        self.fixed.push(row.0);
    }

    /// A request has the state of its moment.
    fn remember(&mut self, fact: &Value) {
        let id = number(fact, "order");
        let order = &self.orders[&id];
        let (wallet, instrument) = (number(&order.terms, "wallet"), number(&order.terms, "instrument"));
        let of_wallet = self.orders.values().filter(|order| number(&order.terms, "wallet") == wallet);
        let reserved: i64 = of_wallet.map(|order| order.reserved_cash).sum();
        let mut row = Row::of(4);
        row.number(id);
        row.text(text(fact, "/client_order_id"));
        row.0.extend(unhex(text(fact, "/digest")));
        row.byte(order.status());
        row.byte(u8::from(order.held) | u8::from(order.filled_at.is_some()) << 1);
        let available = self.cash[&wallet] - reserved;
        for number in [order.filled, order.notional as u64, order.fee as u64, available as u64] {
            row.number(number);
        }
        if let Some((reason, _)) = order.closed {
            row.byte(1);
            row.byte(reason);
        }
        if let Some(held) = self.open_mut(wallet, instrument) {
            row.byte(2);
            row.number(held.qty);
            row.number(held.cost as u64);
        }
        self.fixed.push(row.0);
    }

    /// All rows.
    fn rows(&self) -> Vec<Vec<u8>> {
        let orders = self.orders.iter().map(|(id, order)| order.row(*id));
        let positions = self.positions.iter().map(|(id, position)| position.row(*id));
        orders.chain(positions).chain(self.fixed.iter().cloned()).collect()
    }
}

/// The sum of the hashes of all rows, byte by byte from the last.
fn sum(rows: &[Vec<u8>]) -> String {
    let mut sum = [0_u8; 32];
    for row in rows {
        let mut carry = 0;
        for (place, byte) in sum.iter_mut().zip(Sha256::digest(row)).rev() {
            let added = u16::from(*place) + u16::from(byte) + carry;
            (*place, carry) = (added as u8, added >> 8);
        }
    }
    hex(&sum)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The users of an exported log.
fn users_of(place: &ServerDir) -> BTreeMap<u64, User> {
    let exported = String::from_utf8(place.log("export").stdout).expect("UTF-8");
    let mut users = BTreeMap::<u64, User>::new();
    for line in exported.lines() {
        let record: Value = serde_json::from_str(line).expect("export writes JSON lines");
        let owner = number(&record, "owner");
        for fact in list(&record, "/facts").iter().filter(|_| owner > 0) {
            users.entry(owner).or_default().apply(fact);
        }
    }
    users
}

/// The lines of `papertape log digest --parts`.
fn parts_of(place: &ServerDir) -> Vec<Value> {
    let words = [OsString::from("log"), "digest".into(), "--parts".into(), place.data().into()];
    run_well(words).lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect()
}

/// The parts of a directory's digest are those of its exported log, and make the digest. Returns the rows by kind.
pub fn recomputed(place: &ServerDir, name: &str) -> [usize; 4] {
    let (users, parts) = (users_of(place), parts_of(place));
    let (markets, last) = (&parts[0], &parts[parts.len() - 1]);
    let mut all = Sha256::new();
    all.update(2_u32.to_le_bytes());
    all.update(unhex(text(markets, "/markets")));
    all.update((users.len() as u64).to_le_bytes());
    let (mut counts, mut seen) = ([0; 4], 0);
    for part in &parts[1..parts.len() - 1] {
        let id = number(part, "user");
        let rows = users[&id].rows();
        assert_eq!(text(part, "/rows"), sum(&rows), "{name}: the rows of user {id}");
        rows.iter().for_each(|row| counts[usize::from(row[0]) - 1] += 1);
        all.update(id.to_le_bytes());
        all.update(unhex(text(part, "/rest")));
        all.update(unhex(text(part, "/rows")));
        seen += 1;
    }
    assert_eq!(seen, users.len(), "{name}: users");
    assert_eq!((text(last, "/digest"), int(last, "/encoding")), (hex(&all.finalize()).as_str(), 2), "{name}");
    assert_eq!(text(last, "/digest"), digest_of(&place.data()), "{name}");
    counts
}

#[test]
fn an_outsider_recomputes_the_digest_from_the_exported_log() {
    let cases = Cases::of("digests recomputed");
    let mut rows = [0; 4];
    let mut add = |counts: [usize; 4]| rows.iter_mut().zip(counts).for_each(|(all, one)| *all += one);
    for directory in directories() {
        if at(&expected_of(&directory), "/whole_log") == &json!(true) {
            let place = place_of(&directory);
            add(recomputed(&place, &directory.display().to_string()));
            cases.one();
        }
    }
    // Every kind of end, a position that is sold, one that stays, and reservations.
    let mut world = World::start(2);
    let (rain, coin) = (world.markets.rain.yes().to_owned(), world.markets.coin.yes().to_owned());
    for number in 0..2 {
        let mut user = world.user(number);
        let order = |token: &str, side: &str, kind: &str, quantity: &str, price: &str, id: &str| {
            json!({
                "token_id": token, "side": side, "order_type": kind, "quantity": quantity, "price": price,
                "client_order_id": id,
            })
        };
        let bought = order(&rain, "BUY", "market", "30", "0.99", "first");
        user.post("/v1/orders", &bought).expect(200);
        let mut amount =
            json!({"token_id": coin, "side": "BUY", "order_type": "market", "amount": "5", "price": "0.99"});
        user.post("/v1/orders", &amount).expect(200);
        amount["client_order_id"] = json!("é");
        user.post("/v1/orders", &amount).expect(200);
        user.post("/v1/orders", &order(&rain, "SELL", "market", "10", "0.01", "part")).expect(200);
        user.post("/v1/orders", &order(&rain, "BUY", "limit", "20", "0.30", "rests")).expect(200);
        let resting = user.post("/v1/orders", &order(&rain, "SELL", "limit", "15", "0.90", "offered")).expect(200);
        let killed = json!({
            "token_id": rain, "side": "BUY", "order_type": "limit", "time_in_force": "FOK", "quantity": "5000",
            "price": "0.42", "client_order_id": "killed",
        });
        assert_eq!(user.post("/v1/orders", &killed).status, 400);
        let partly = json!({
            "token_id": rain, "side": "BUY", "order_type": "limit", "time_in_force": "FAK", "quantity": "5000",
            "price": "0.42",
        });
        user.post("/v1/orders", &partly).expect(200);
        if number == 0 {
            user.delete(&format!("/v1/orders/{}", int(&resting, "/order_id"))).expect(200);
        }
        cases.one();
    }
    world.server.kill();
    add(recomputed(&world.place, "a world"));
    cases.one();
    assert!(rows.iter().all(|count| *count > 0), "orders, fills, episodes and requests: {rows:?}");
    println!("rows of orders, fills, episodes and requests: {rows:?}");
}
