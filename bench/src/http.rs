//! Orders over HTTP on a real server in a process of its own, compared with a bare hyper server that reads the same
//! requests and sends the same bytes without inspecting them.
//!
//! The server is another instance of this program, with an empty directory and seeded users; its venue is a recording
//! with constant books, so that every fill is known in advance. Both servers run on the same core in alternating
//! rounds, and the idle one is stopped meanwhile; the load is on another core (`seats.rs`). After the last order the
//! server is killed, and the content of its log is part of the result.
//!
//! A busy-polling server does not poll if it may use only one core: this server and the sleeping one beside it are
//! moved to that core once they serve.

use crate::flight::Flights;
use crate::floor::Floor;
use crate::load::{self, Load, Reached};
use crate::orders::{FILLS_EVERY, Orders};
use crate::raw::{Raw, SYNC_FLOOR, with_short_slice};
use crate::reference::{Kind, hyper_floor};
use crate::report::{Report, Size, median, nanoseconds, timed};
use crate::role::Role;
use crate::seats::Seats;
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use crate::trader::{Over, Trader};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ROUNDS: usize = 5;
/// Orders before the first round.
const WARMING: usize = 4_000;
/// The rate of the open load, as a share of the full-speed rate of the same connections.
const OPEN_PART: f64 = 0.5;
/// Share of a round of the open load before its clock starts: a server that was stopped first catches up with its feed
/// and its sync, which clients of a running server would not see.
const AHEAD_PART: f64 = 0.2;
/// Least share of the offered rate that an open load must reach: below it the load was not the offered one.
const OFFERED_PART: f64 = 0.95;
/// Largest delay of the load itself, relative to the reference's latency, both at p99: above it the ratio would compare
/// the load with itself.
const LATENESS_PART_MAX: f64 = 0.5;
/// Syncs that a durable answer to one connection may wait for, in addition to a bare answer.
const SYNCS_PER_ANSWER: f64 = 1.3;
/// Looks at an idle server that may be busy polling; other work may use its core during some of them.
const LOOKS_MAX: usize = 10;

/// Connections, requests in flight on each, requests of one round.
pub type Row = (usize, usize, usize);

pub fn run(size: Size, report: &mut Report) {
    let seats = Seats::take(report);
    for durability in ["process", "power"] {
        let plan: &[Row] = match (size, durability) {
            (Size::Small, _) => &[(1, 1, 20), (2, 1, 40), (2, 4, 40)],
            (Size::Full, "process") => &[(1, 1, 4_000), (16, 1, 30_000), (64, 1, 30_000), (16, 16, 60_000)],
            (Size::Full, _) => &[(1, 1, 2_000), (16, 1, 15_000), (64, 1, 30_000), (256, 1, 40_000)],
        };
        measure(durability, plan, &seats, size, report);
    }
    drop(seats);
    measure_sleepless(size, report);
    report.rate_note(
        "as each row of an open load says; else none: as many in flight as a row says, the next when one is answered",
    );
    report.durability("both: process and power, as each row says");
    report.note("mix", format!("limit orders with client ids, 1 in {FILLS_EVERY} filled immediately, the others rest"));
    report.not_included("a feed beside it (the books are constant), TLS, a network");
}

/// Users of a server: with one request in flight, and with many.
pub struct Users {
    alone: Load<Client>,
    together: Flights<Trader>,
}

impl Users {
    /// One for each key of the place, which buy this token. `name` is part of all their client ids.
    pub fn connect(address: SocketAddr, place: &Place, token: &str, name: &str) -> Users {
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
    pub fn go(&mut self, (connections, in_flight, count): Row) -> Reached {
        let reached = match in_flight {
            1 => self.alone.run(connections, count, None, Client::order),
            _ => self.together.run(connections, in_flight, count),
        };
        well(reached, count)
    }

    /// `rate` requests a second, independent of the answers. The first `ahead` are sent at the same rate and not
    /// counted.
    fn go_at(&mut self, connections: usize, ahead: usize, count: usize, rate: f64) -> Reached {
        let mut go = |count| well(self.alone.run(connections, count, Some(rate), Client::order), count);
        go(ahead);
        go(count)
    }
}

fn well(reached: std::io::Result<Reached>, count: usize) -> Reached {
    let reached = reached.expect("the server answers");
    reached.check_well(count);
    reached
}

/// Our server and a bare one on one core, each with its users.
struct Pair {
    server: Server,
    bare: Server,
    ours: Users,
    beside: Users,
    /// Orders sent to our server so far.
    orders: usize,
}

impl Pair {
    /// One round of each; ours is the first of the result. The idle server is stopped.
    fn turns(&mut self, round: usize, count: usize, go: impl Fn(&mut Users) -> Reached) -> [Reached; 2] {
        let Pair { server, bare, ours, beside, orders } = self;
        *orders += count;
        let mut place = || bare.paused(|| go(ours));
        let mut answer = || server.paused(|| go(beside));
        // The order alternates: the second inherits the state of the machine from the first.
        if round.is_multiple_of(2) {
            let answered = answer();
            [place(), answered]
        } else {
            [place(), answer()]
        }
    }

    /// A look at the device while it is idle.
    fn probe(&self, raw: &mut Raw, nanos: &mut Histogram<u64>) -> f64 {
        let Pair { server, bare, .. } = self;
        server.paused(|| bare.paused(|| with_short_slice(|| raw.probe_into(nanos)).0))
    }

    fn ticks(&self) -> [u64; 2] {
        [self.server.ticks(), self.bare.ticks()]
    }
}

/// Latency of both over the rounds, and the ratio of their p99 in each.
struct Tails {
    placing: Histogram<u64>,
    answering: Histogram<u64>,
    p99_ratios: Vec<f64>,
}

impl Tails {
    fn new() -> Tails {
        Tails { placing: nanoseconds(), answering: nanoseconds(), p99_ratios: Vec::new() }
    }

    fn add(&mut self, placed: &Reached, answered: &Reached) {
        self.placing.add(&placed.latency).expect("histograms of one kind");
        self.answering.add(&answered.latency).expect("histograms of one kind");
        self.p99_ratios.push(at(&placed.latency, 0.99) / at(&answered.latency, 0.99));
    }
}

fn at(nanos: &Histogram<u64>, quantile: f64) -> f64 {
    nanos.value_at_quantile(quantile) as f64
}

/// The rates of a bare server and of the device at full speed, in the rounds: a ratio is published if they are above
/// their floors.
struct References {
    bare: Vec<f64>,
    /// Empty if nothing is synced.
    probes: Vec<f64>,
}

impl References {
    fn floors(&self, (connections, in_flight, _): Row) -> Vec<(&'static Floor, &[f64])> {
        let mut floors = vec![(hyper_floor(connections, in_flight), &self.bare[..])];
        if !self.probes.is_empty() {
            floors.push((&SYNC_FLOOR, &self.probes[..]));
        }
        floors
    }
}

fn measure(durability: &str, plan: &[Row], seats: &Seats, size: Size, report: &mut Report) {
    let most = plan.iter().map(|(connections, ..)| *connections).max().expect("a plan has rows");
    let place = Place::seeded(most, size);
    let token = write_tape(&place.tape());
    let server = seats.start(&place.write_config(durability));
    let answer = place.path().join("answer.json");
    let sample = one_answer(server.address, Client::new("sample", place.keys[0].expose(), &token));
    std::fs::write(&answer, &sample).expect("room for an answer");
    let bare = seats.reference(Kind::Hyper, Some(&answer));
    let ours = Users::connect(server.address, &place, &token, "ours");
    let beside = Users::connect(bare.address, &place, &token, "bare");
    let mut pair = Pair { server, bare, ours, beside, orders: 1 };
    let mut raw = (durability == "power").then(|| Raw::filled(1 << 20));

    // Both are warm before the clock starts. Besides, a connection without a request is closed after some seconds, and
    // most wait longer for their round.
    let warming = most.max(size.pick(0, WARMING));
    for in_flight in [1, 2] {
        pair.turns(0, warming, |users| users.go((most, in_flight, warming)));
    }
    for row @ (connections, in_flight, _) in plan.iter().copied() {
        let name = |what: &str| format!("{durability}, {connections} x {in_flight}: {what}");
        let (rate, references) = full_speed(&mut pair, row, raw.as_mut(), size, report, &name);
        if in_flight == 1 {
            open_load(&mut pair, row, rate * OPEN_PART, &references, size, report, &name);
        }
    }
    report.note(&format!("{durability}: answer"), format!("{} bytes of JSON from both", sample.len()));

    let Pair { mut server, orders, .. } = pair;
    server.kill();
    let kept = place.kept();
    assert_eq!(kept.orders, orders as u64, "what was acknowledged is in the log, and nothing else");
    report.computed(kept.text);
}

/// At full speed. Returns our rates, and those of the reference in the same rounds.
fn full_speed(
    pair: &mut Pair,
    row: Row,
    mut raw: Option<&mut Raw>,
    size: Size,
    report: &mut Report,
    name: &impl Fn(&str) -> String,
) -> (f64, References) {
    let (connections, in_flight, count) = row;
    let (mut ratios, mut rates, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    let (mut tails, mut ticks, mut all_syncs) = (Tails::new(), [0; 2], nanoseconds());
    let mut references = References { bare: Vec::new(), probes: Vec::new() };
    for round in 0..size.pick(2, ROUNDS) {
        let mut syncs = nanoseconds();
        if let Some(raw) = &mut raw {
            references.probes.push(pair.probe(raw, &mut syncs));
        }
        let before = pair.ticks();
        let [placed, answered] = pair.turns(round, count, |users| users.go(row));
        let after = pair.ticks();
        ticks = [0, 1].map(|who: usize| ticks[who] + after[who] - before[who]);
        ratios.push(placed.rate() / answered.rate());
        rates.push(placed.rate());
        references.bare.push(answered.rate());
        let allowed = at(&answered.latency, 0.5) + SYNCS_PER_ANSWER * at(&syncs, 0.5);
        waits.push(at(&placed.latency, 0.5) / allowed);
        tails.add(&placed, &answered);
        all_syncs.add(&syncs).expect("histograms of one kind");
    }
    let rate = median(&rates);
    report.figure(&name("orders, median of the rounds"), rate, "a second");
    let floors = references.floors(row);
    report.ratio_above(&floors, &name("orders beside a bare hyper"), ratios);
    report.ratio_above(&floors, &name("their p99 beside its, full speed"), tails.p99_ratios);
    // The figure that other work on the machine changes least.
    let micros = |ticks: u64| ticks as f64 * TICK_MICROS / (size.pick(2, ROUNDS) * count) as f64;
    report.figure(&name("processor time, order"), micros(ticks[0]), "us");
    report.figure(&name("processor time, bare hyper"), micros(ticks[1]), "us");
    report.percentiles(&name("order, full speed"), &tails.placing);
    report.percentiles(&name("bare hyper, full speed"), &tails.answering);
    if raw.is_some() {
        report.percentiles(&name("raw write of 4 KiB and fdatasync"), &all_syncs);
        if (connections, in_flight) == (1, 1) {
            let what = format!("p50 beside bare p50 + {SYNCS_PER_ANSWER} × raw p50");
            report.ratio_above(&floors, &name(&what), waits);
        }
    }
    (rate, references)
}

/// The same rate for both, so that a longer tail is not caused by a higher rate.
fn open_load(
    pair: &mut Pair,
    row: Row,
    asked: f64,
    references: &References,
    size: Size,
    report: &mut Report,
    name: &impl Fn(&str) -> String,
) {
    let (connections, _, count) = row;
    let ahead = (count as f64 * AHEAD_PART) as usize;
    let (mut tails, mut late_parts, mut lateness) = (Tails::new(), Vec::new(), nanoseconds());
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..size.pick(2, ROUNDS) {
        let both = pair.turns(round, ahead + count, |users| users.go_at(connections, ahead, count, asked));
        let [placed, answered] = &both;
        for (of_one, reached) in rates.iter_mut().zip(&both) {
            of_one.push(reached.rate());
            lateness.add(&reached.lateness).expect("histograms of one kind");
        }
        let late = at(&placed.lateness, 0.99).max(at(&answered.lateness, 0.99));
        late_parts.push(late / at(&answered.latency, 0.99));
        tails.add(placed, answered);
    }
    report.rate(&name("orders, open load"), asked, median(&rates[0]));
    report.rate(&name("bare hyper, open load"), asked, median(&rates[1]));
    // A server is not judged by requests that were not sent, or not in time.
    let least = asked * OFFERED_PART;
    let offered = ["ours under an open load", "a bare hyper under an open load"].map(|of| Floor { of, least });
    let mut floors = references.floors(row);
    floors.extend(offered.iter().zip(&rates).map(|(floor, reached)| (floor, &reached[..])));
    let what = name("their p99 beside its, open load");
    let late_part = median(&late_parts);
    if size == Size::Full && late_part > LATENESS_PART_MAX {
        report.refused(
            &what,
            format!(
                "refused: the load itself was late by {late_part:.2} of a bare hyper's p99, above the bound of \
                 {LATENESS_PART_MAX}"
            ),
        );
    } else {
        report.ratio_above(&floors, &what, tails.p99_ratios);
    }
    report.percentiles(&name("order, from when it was due"), &tails.placing);
    report.percentiles(&name("bare hyper, from when it was due"), &tails.answering);
    report.percentiles(&name("the open load's own lateness"), &lateness);
    report.note(&name("before the clock of each round"), format!("{ahead} more at the same rate, which do not count"));
}

/// One connection to a server that busy-polls, compared with one to a server that sleeps; the idle one is stopped
/// meanwhile.
fn measure_sleepless(size: Size, report: &mut Report) {
    let name = |what: &str| format!("process, 1 x 1: {what}");
    if !std::thread::available_parallelism().is_ok_and(|count| count.get() > 1) {
        report.note(&name("busy polling"), "not measured: a server does not poll on the only core");
        return;
    }
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
            let server = Server::start_as(&Role::Server { config, has_pulse: false });
            let users = Users::connect(server.address, &place, &token, "alone");
            server.pause();
            (place, server, users)
        })
        .collect();
    let seats = Seats::take(report);
    servers.iter().for_each(|(_, server, _)| seats.seat(server));
    let [_, (_, sleepless, _)] = &servers[..] else { panic!("one that sleeps, and one that polls") };
    if !spins(sleepless, size) {
        report.failed("the busy-polling server sleeps when it is idle: nothing was measured");
        return;
    }
    let count = size.pick(40, 4_000);
    let (mut ratios, mut orders) = (Vec::new(), 0);
    let (mut latency, mut turns) = ([nanoseconds(), nanoseconds()], [0, 1]);
    for round in 0..=size.pick(1, ROUNDS) {
        orders += count as u64;
        let mut rates = [0.0; 2];
        for at in turns {
            let (_, server, users) = &mut servers[at];
            server.resume();
            let reached = users.go((1, 1, count));
            server.pause();
            if round > 0 {
                latency[at].add(&reached.latency).expect("histograms of one kind");
            }
            rates[at] = reached.rate();
        }
        // The order alternates: the second inherits the state of the machine from the first.
        turns.reverse();
        // The first round is cold.
        if round > 0 {
            ratios.push(rates[1] / rates[0]);
        }
    }
    report.ratio_to_itself(&name("busy polling beside sleeping"), ratios);
    report.percentiles(&name("order, sleeping"), &latency[0]);
    report.percentiles(&name("order, busy polling"), &latency[1]);
    for (place, mut server, users) in servers {
        drop(users);
        server.kill();
        assert_eq!(place.kept().orders, orders, "what was acknowledged is in the log, and nothing else");
    }
}

/// Whether a stopped server uses about a core after it continues without requests; it is stopped again.
fn spins(server: &Server, size: Size) -> bool {
    let length = size.pick(Duration::from_millis(100), Duration::from_secs(1));
    // Tests run other work at the same time; a sleeping server uses a hundredth.
    let least = size.pick(0.2, 0.8);
    server.resume();
    let spins = (0..LOOKS_MAX).any(|_| {
        let before = server.ticks();
        let (seconds, ()) = timed(|| std::thread::sleep(length));
        (server.ticks() - before) as f64 * TICK_MICROS >= least * seconds * 1e6
    });
    server.pause();
    spins
}

/// The body of the answer to an order.
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

/// A recording of one market with one deep book and no changes; returns the traded token.
pub fn write_tape(path: &Path) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as u64;
    let condition = format!("0x{:064x}", 1);
    let tokens = [format!("{}1", "7".repeat(75)), format!("{}2", "8".repeat(75))];
    let market = json!({
        "id": "1", "conditionId": condition, "questionID": condition, "slug": "still", "question": "Will it be constant?",
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
    /// The head of an order's request up to the value of the length.
    head: String,
    orders: Orders,
    body: String,
}

impl Client {
    /// `name` is part of all its client ids.
    pub fn new(name: &str, key: &str, token: &str) -> Client {
        Client::with(Orders::new(name.to_owned(), token), key)
    }

    pub fn with(orders: Orders, key: &str) -> Client {
        let mut client = Client { head: String::new(), orders, body: String::new() };
        client.speak_as(key);
        client
    }

    /// From here on the orders are those of another user.
    pub fn speak_as(&mut self, key: &str) {
        let Client { head, .. } = self;
        head.clear();
        write!(
            head,
            "POST /v1/orders HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
             Content-Length: "
        )
        .expect("writing to a string succeeds");
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
