//! Orders over HTTP on a real server in a process of its own, beside its own liveness answers on the same sockets.
//!
//! The server is this program once more, serving an empty directory with seeded users; its venue is a recording in
//! which the books stand still, so that every fill is known beforehand. After the last order the server is killed,
//! and what its log holds is part of the result.

use crate::load::{Load, Reached};
use crate::orders::{FILLS_EVERY, Orders};
use crate::report::{Report, Size, nanoseconds};
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const ROUNDS: usize = 5;
/// The rate of the open load, as a part of what the same connections reached.
const OPEN_PART: f64 = 0.5;

pub fn run(size: Size, report: &mut Report) {
    for durability in ["process", "power"] {
        // (connections, requests of one round)
        let plan: &[(usize, usize)] = match (size, durability) {
            (Size::Small, _) => &[(2, 40)],
            (Size::Full, "process") => &[(1, 4_000), (16, 30_000), (64, 30_000)],
            (Size::Full, _) => &[(1, 2_000), (16, 15_000), (64, 30_000), (256, 40_000)],
        };
        measure(durability, plan, size, report);
    }
    report.durability("both: process and power, as each row says");
    report.note("mix", format!("limit orders with client ids, 1 in {FILLS_EVERY} filled at once, the others rest"));
    report.not_included(
        "a feed beside it (the books stand still), TLS, a network; the load takes its part of the same cores",
    );
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Order,
    Health,
}

fn measure(durability: &str, plan: &[(usize, usize)], size: Size, report: &mut Report) {
    let users = plan.iter().map(|(connections, _)| *connections).max().expect("a plan has rows");
    let place = Place::seeded(users, size);
    let token = write_tape(&place.tape());
    let mut server = Server::start(&place.write_config(durability));
    let clients = place.keys.iter().enumerate().map(|(number, key)| Client::new(number, key.expose(), &token));
    let mut load = Load::connect(server.address, clients).expect("the server listens");
    let mut orders = 0;
    let mut go = |connections, count, rate, asked: Asked| {
        let request = match asked {
            Asked::Order => Client::order,
            Asked::Health => Client::health,
        };
        let reached = load.run(connections, count, rate, request).expect("the server answers");
        assert_eq!(reached.statuses, BTreeMap::from([(200, count as u64)]), "everything is answered well");
        orders += if asked == Asked::Order { count } else { 0 };
        reached
    };

    // A connection that says nothing at first is closed after some seconds, and most wait for their turn for longer.
    go(users, users, None, Asked::Health);
    for (connections, count) in plan.iter().copied() {
        let name = |what: &str| format!("{durability}, {connections} conns: {what}");
        let (mut ratios, mut rates) = (Vec::new(), Vec::new());
        let (mut placing, mut answering) = (nanoseconds(), nanoseconds());
        let add = |to: &mut hdrhistogram::Histogram<u64>, reached: &Reached| {
            to.add(&reached.latency).expect("histograms of one kind");
        };
        let (mut order_ticks, mut health_ticks) = (0, 0);
        for _ in 0..size.pick(1, ROUNDS) {
            let begin = server.ticks();
            let health = go(connections, count, None, Asked::Health);
            let between = server.ticks();
            let order = go(connections, count, None, Asked::Order);
            order_ticks += server.ticks() - between;
            health_ticks += between - begin;
            ratios.push(order.rate() / health.rate());
            rates.push(order.rate());
            add(&mut placing, &order);
            add(&mut answering, &health);
        }
        rates.sort_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        report.figure(&name("orders, median of the rounds"), median, "a second");
        report.ratio(&name("orders beside health answers"), ratios);
        // The one figure that other work on the machine changes little.
        let micros = |ticks: u64| ticks as f64 * TICK_MICROS / (size.pick(1, ROUNDS) * count) as f64;
        report.figure(&name("server's processor time, order"), micros(order_ticks), "us");
        report.figure(&name("server's processor time, health"), micros(health_ticks), "us");
        report.percentiles(&name("order, full speed"), &placing);
        report.percentiles(&name("health, full speed"), &answering);

        let asked = median * OPEN_PART;
        let order = go(connections, count, Some(asked), Asked::Order);
        let health = go(connections, count, Some(asked), Asked::Health);
        report.rate(&name("orders, open load"), asked, order.rate());
        report.percentiles(&name("order, from when it was due"), &order.latency);
        report.percentiles(&name("health, from when it was due"), &health.latency);
    }

    drop(load);
    server.kill();
    let kept = place.kept();
    assert_eq!(kept.orders, orders as u64, "what was acknowledged is in the log, and nothing else");
    report.computed(kept.text);
}

/// A recording of one market, listed with one deep book and then silent; gives the token that is traded.
fn write_tape(path: &Path) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as u64;
    let condition = format!("0x{:064x}", 1);
    let tokens = [format!("{}1", "7".repeat(75)), format!("{}2", "8".repeat(75))];
    let market = json!({
        "id": "1", "conditionId": condition, "questionID": condition, "slug": "still", "question": "Will it stand still?",
        "outcomes": "[\"Yes\", \"No\"]", "clobTokenIds": json!(tokens).to_string(),
        "outcomePrices": "[\"0.5\", \"0.5\"]", "category": "politics", "orderPriceMinTickSize": 0.01,
        "orderMinSize": 5, "negRisk": false, "active": true, "closed": false, "archived": false,
        "acceptingOrders": true, "enableOrderBook": true, "startDate": "2026-01-01T00:00:00Z",
        "endDate": "2038-01-01T00:00:00Z", "volumeNum": 1_000.0, "volume24hr": 10.0, "liquidityNum": 500.0
    });
    let levels = |cents: std::ops::Range<u64>| -> Value {
        cents.map(|cents| json!({ "price": format!("0.{cents:02}"), "size": "90000000" })).collect()
    };
    let book = |token: &str| {
        json!({
            "event_type": "book", "market": condition, "asset_id": token, "timestamp": now.to_string(),
            "hash": format!("{now:040x}"), "bids": levels(40..50), "asks": levels(51..61)
        })
    };
    let books = json!([book(&tokens[0]), book(&tokens[1])]);
    let lines = [
        json!({ "r": now, "v": "polymarket", "u": "/markets", "s": 200, "b": [market] }),
        json!({ "r": now + 1, "v": "polymarket", "c": "1", "m": books }),
    ];
    std::fs::write(path, lines.map(|line| format!("{line}\n")).concat()).expect("room for a tape");
    let [first, _] = tokens;
    first
}

/// One user on one connection.
pub struct Client {
    /// Of an order, up to the value of the length.
    head: String,
    orders: Orders,
    body: String,
}

impl Client {
    pub fn new(number: usize, key: &str, token: &str) -> Client {
        let head = format!(
            "POST /v1/orders HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
             Content-Length: "
        );
        Client { head, orders: Orders::new(number.to_string(), token), body: String::new() }
    }

    pub fn order(&mut self, request: &mut Vec<u8>) {
        self.body.clear();
        self.orders.write(&mut self.body);
        request.extend_from_slice(self.head.as_bytes());
        request.extend_from_slice(self.body.len().to_string().as_bytes());
        request.extend_from_slice(b"\r\n\r\n");
        request.extend_from_slice(self.body.as_bytes());
    }

    /// The reference: an answer that needs no credential, no shard and no log.
    fn health(&mut self, request: &mut Vec<u8>) {
        request.extend_from_slice(b"GET /v1/health/live HTTP/1.1\r\nHost: bench\r\n\r\n");
    }
}
