//! Orders over HTTP on a real server in a process of its own, beside a bare hyper server that reads the same requests
//! and answers the same bytes without a look at them.
//!
//! The server is this program once more, serving an empty directory with seeded users; its venue is a recording in
//! which the books stand still, so that every fill is known beforehand. Both servers run on the same core, in turns, and
//! the load on another (`seats.rs`). After the last order the server is killed,
//! and what its log holds is part of the result.

use crate::flight::Flights;
use crate::floor::Floor;
use crate::load::{self, Load, Reached};
use crate::orders::{FILLS_EVERY, Orders};
use crate::raw::{Raw, SYNC_FLOOR, with_short_slice};
use crate::reference::{Kind, hyper_floor};
use crate::report::{Report, Size, median, nanoseconds};
use crate::seats::Seats;
use crate::seeded::Place;
use crate::server::TICK_MICROS;
use crate::trader::{Over, Trader};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const ROUNDS: usize = 5;
/// Orders before the first round.
const WARMING: usize = 4_000;
/// The rate of the open load, as a part of what the same connections reached.
const OPEN_PART: f64 = 0.5;
/// Least part of the rate of an open load that must have been reached: below it the load was not the one that was asked for.
const OFFERED_PART: f64 = 0.95;

/// Connections, requests in flight on each, requests of one round.
type Row = (usize, usize, usize);

pub fn run(size: Size, report: &mut Report) {
    let seats = Seats::take(report);
    for durability in ["process", "power"] {
        let plan: &[Row] = match (size, durability) {
            (Size::Small, _) => &[(2, 1, 40), (2, 4, 40)],
            (Size::Full, "process") => &[(1, 1, 4_000), (16, 1, 30_000), (64, 1, 30_000), (16, 16, 60_000)],
            (Size::Full, _) => &[(1, 1, 2_000), (16, 1, 15_000), (64, 1, 30_000), (256, 1, 40_000)],
        };
        measure(durability, plan, &seats, size, report);
    }
    measure_sleepless(&seats, size, report);
    report.rate_note(
        "as each row of an open load says; else none: as many in flight as a row says, the next when one is answered",
    );
    report.durability("both: process and power, as each row says");
    report.note("mix", format!("limit orders with client ids, 1 in {FILLS_EVERY} filled at once, the others rest"));
    report.not_included("a feed beside it (the books stand still), TLS, a network");
}

/// Users on a server: one request at a time each, and many.
struct Users {
    alone: Load<Client>,
    together: Flights<Trader>,
}

impl Users {
    fn connect(address: SocketAddr, place: &Place, token: &str, name: &str) -> Users {
        let keys = || place.keys.iter().enumerate();
        let clients = keys().map(|(number, key)| Client::new(&format!("{name}-{number}"), key.expose(), token));
        let traders =
            keys().map(|(number, key)| Trader::new(Over::Http, &format!("{name}-{number}"), key.expose(), token, 1));
        Users {
            alone: Load::connect(address, clients).expect("the server listens"),
            together: Flights::open(traders, |_| tokio::net::TcpStream::connect(address)).expect("the server listens"),
        }
    }

    /// One round at full speed.
    fn go(&mut self, (connections, in_flight, count): Row) -> Reached {
        let reached = match in_flight {
            1 => self.alone.run(connections, count, None, Client::order),
            _ => self.together.run(connections, in_flight, count),
        };
        well(reached, count)
    }

    /// So many a second, whatever becomes of them.
    fn go_at(&mut self, connections: usize, count: usize, rate: f64) -> Reached {
        well(self.alone.run(connections, count, Some(rate), Client::order), count)
    }
}

fn well(reached: std::io::Result<Reached>, count: usize) -> Reached {
    let reached = reached.expect("the server answers");
    assert_eq!(reached.statuses, BTreeMap::from([(200, count as u64)]), "everything is answered well");
    reached
}

fn measure(durability: &str, plan: &[Row], seats: &Seats, size: Size, report: &mut Report) {
    let users = plan.iter().map(|(connections, ..)| *connections).max().expect("a plan has rows");
    let place = Place::seeded(users, size);
    let token = write_tape(&place.tape());
    let mut server = seats.start(&place.write_config(durability));
    let answer = place.path().join("answer.json");
    let sample = one_answer(server.address, Client::new("sample", place.keys[0].expose(), &token));
    std::fs::write(&answer, &sample).expect("room for an answer");
    let bare = seats.reference(Kind::Hyper, Some(&answer));
    let mut ours = Users::connect(server.address, &place, &token, "ours");
    let mut beside = Users::connect(bare.address, &place, &token, "bare");
    let mut raw = Raw::filled(1 << 20);
    let mut orders = 1;

    // Both are warm before the clock starts. And a connection that says nothing at first is closed after some seconds, and
    // most wait for their turn for longer.
    let warming = users.max(size.pick(0, WARMING));
    for in_flight in [1, 2] {
        ours.go((users, in_flight, warming));
        beside.go((users, in_flight, warming));
        orders += warming;
    }
    for row @ (connections, in_flight, count) in plan.iter().copied() {
        let name = |what: &str| format!("{durability}, {connections} x {in_flight}: {what}");
        let (mut ratios, mut tails, mut rates, mut bare_rates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut placing, mut answering) = (nanoseconds(), nanoseconds());
        let p99 = |reached: &Reached| reached.latency.value_at_quantile(0.99) as f64;
        let add = |to: &mut Histogram<u64>, reached: &Reached| {
            to.add(&reached.latency).expect("histograms of one kind");
        };
        let (mut ticks, mut probes) = ([0; 2], Vec::new());
        for round in 0..size.pick(2, ROUNDS) {
            if durability == "power" {
                probes.push(with_short_slice(|| raw.probe()).0);
            }
            let before = [server.ticks(), bare.ticks()];
            // Who is second finds the machine as the first one left it: they take turns.
            let (answered, placed) = if round % 2 == 0 {
                let answered = beside.go(row);
                (answered, ours.go(row))
            } else {
                let placed = ours.go(row);
                (beside.go(row), placed)
            };
            orders += count;
            ticks = [ticks[0] + server.ticks() - before[0], ticks[1] + bare.ticks() - before[1]];
            ratios.push(placed.rate() / answered.rate());
            tails.push(p99(&placed) / p99(&answered));
            rates.push(placed.rate());
            bare_rates.push(answered.rate());
            add(&mut placing, &placed);
            add(&mut answering, &answered);
        }
        let median = median(&rates);
        report.figure(&name("orders, median of the rounds"), median, "a second");
        let mut references = vec![(hyper_floor(connections, in_flight), &bare_rates[..])];
        if durability == "power" {
            references.push((&SYNC_FLOOR, &probes));
        }
        report.ratio_above(&references, &name("orders beside a bare hyper"), ratios);
        report.ratio_above(&references, &name("their p99 beside its, full speed"), tails);
        // The one figure that other work on the machine changes little.
        let micros = |ticks: u64| ticks as f64 * TICK_MICROS / (size.pick(2, ROUNDS) * count) as f64;
        report.figure(&name("processor time, order"), micros(ticks[0]), "us");
        report.figure(&name("processor time, bare hyper"), micros(ticks[1]), "us");
        report.percentiles(&name("order, full speed"), &placing);
        report.percentiles(&name("bare hyper, full speed"), &answering);
        if in_flight == 1 {
            // The same offered to both, so that a tail is not longer only because more was asked.
            let asked = median * OPEN_PART;
            let (mut placing, mut answering, mut tails) = (nanoseconds(), nanoseconds(), Vec::new());
            let mut reached = [Vec::new(), Vec::new()];
            for round in 0..size.pick(2, ROUNDS) {
                let go = |users: &mut Users| users.go_at(connections, count, asked);
                let (placed, answered) = if round % 2 == 0 {
                    let answered = go(&mut beside);
                    (go(&mut ours), answered)
                } else {
                    (go(&mut ours), go(&mut beside))
                };
                orders += count;
                reached[0].push(placed.rate());
                reached[1].push(answered.rate());
                tails.push(p99(&placed) / p99(&answered));
                add(&mut placing, &placed);
                add(&mut answering, &answered);
            }
            report.rate(&name("orders, open load"), asked, self::median(&reached[0]));
            report.rate(&name("bare hyper, open load"), asked, self::median(&reached[1]));
            // Neither is judged by what was not offered.
            let least = asked * OFFERED_PART;
            let offered = ["ours under an open load", "a bare hyper under an open load"].map(|of| Floor { of, least });
            references.extend(offered.iter().zip(&reached).map(|(floor, reached)| (floor, &reached[..])));
            report.ratio_above(&references, &name("their p99 beside its, open load"), tails);
            report.percentiles(&name("order, from when it was due"), &placing);
            report.percentiles(&name("bare hyper, from when it was due"), &answering);
        }
    }
    report.note(&format!("{durability}: answer"), format!("{} bytes of JSON from both", sample.len()));

    drop((ours, beside));
    server.kill();
    let kept = place.kept();
    assert_eq!(kept.orders, orders as u64, "what was acknowledged is in the log, and nothing else");
    report.computed(kept.text);
}

/// One connection on a server that never sleeps, beside one that does; whichever is not asked is stopped meanwhile.
fn measure_sleepless(seats: &Seats, size: Size, report: &mut Report) {
    let mut servers: Vec<_> = [false, true]
        .into_iter()
        .map(|busy_poll| {
            let place = Place::seeded(1, size);
            let token = write_tape(&place.tape());
            let config = place.write_config("process");
            if busy_poll {
                let text = std::fs::read_to_string(&config).expect("just written");
                let text = text.replacen("[server]\n", "[server]\nbusy_poll = true\n", 1);
                std::fs::write(&config, text).expect("room for a configuration");
            }
            let server = seats.start(&config);
            let users = Users::connect(server.address, &place, &token, "alone");
            server.pause();
            (place, server, users)
        })
        .collect();
    let count = size.pick(40, 4_000);
    let (mut ratios, mut orders) = (Vec::new(), 0);
    let mut latency = [nanoseconds(), nanoseconds()];
    for round in 0..=size.pick(1, ROUNDS) {
        orders += count as u64;
        let rates: Vec<f64> = servers
            .iter_mut()
            .zip(&mut latency)
            .map(|((_, server, users), latency)| {
                server.resume();
                let reached = users.go((1, 1, count));
                server.pause();
                if round > 0 {
                    latency.add(&reached.latency).expect("histograms of one kind");
                }
                reached.rate()
            })
            .collect();
        // The first one finds everything cold.
        if round > 0 {
            ratios.push(rates[1] / rates[0]);
        }
    }
    report.ratio_to_itself("process, 1 x 1: busy polling beside sleeping", ratios);
    report.percentiles("process, 1 x 1: order, sleeping", &latency[0]);
    report.percentiles("process, 1 x 1: order, busy polling", &latency[1]);
    for (place, mut server, users) in servers {
        drop(users);
        server.kill();
        assert_eq!(place.kept().orders, orders, "what was acknowledged is in the log, and nothing else");
    }
}

/// The JSON that answers an order.
fn one_answer(address: SocketAddr, mut client: Client) -> Vec<u8> {
    let (mut request, mut answer, mut piece) = (Vec::new(), Vec::new(), [0; 4_096]);
    client.order(&mut request);
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(&request).expect("the server reads");
    loop {
        let read = stream.read(&mut piece).expect("the server answers");
        assert!(read > 0, "the server answers in full");
        answer.extend_from_slice(&piece[..read]);
        if let Some((200, bytes)) = load::head(&answer)
            && answer.len() >= bytes
        {
            let body = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends");
            return answer.split_off(body + 4);
        }
    }
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
    /// `name` is in all its client ids.
    pub fn new(name: &str, key: &str, token: &str) -> Client {
        let head = format!(
            "POST /v1/orders HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
             Content-Length: "
        );
        Client { head, orders: Orders::new(name.to_owned(), token), body: String::new() }
    }

    pub fn order(&mut self, request: &mut Vec<u8>) {
        self.body.clear();
        self.orders.write(&mut self.body);
        request.extend_from_slice(self.head.as_bytes());
        request.extend_from_slice(self.body.len().to_string().as_bytes());
        request.extend_from_slice(b"\r\n\r\n");
        request.extend_from_slice(self.body.as_bytes());
    }
}
