//! Orders over HTTP on a real server in a process of its own, beside its own liveness answers on the same sockets.
//!
//! The server is this program once more, serving an empty directory with seeded users; its venue is a recording in
//! which the books stand still, so that every fill is known beforehand. After the last order the server is killed,
//! and what its log holds is part of the result.

use crate::journal::Journal;
use crate::load::{Load, Reached};
use crate::report::{Report, Size, nanoseconds};
use crate::world::{Out, World};
use engine::mutation::codec;
use engine::user::WalletKind;
use gateway::config::Config;
use gateway::http::auth::RawKey;
use gateway::recover;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const ROUNDS: usize = 5;
/// One order in so many is filled at once, the others rest.
const FILLS_EVERY: u64 = 10;
const START_WITHIN: Duration = Duration::from_secs(30);
/// The rate of the open load, as a part of what the same connections reached.
const OPEN_PART: f64 = 0.5;

/// Linux counts processor time in hundredths of a second.
const TICK_MICROS: f64 = 10_000.0;

/// Serves until it is killed; what the child process does.
pub fn serve(config: &Path) -> Result<(), Box<dyn std::error::Error>> {
    Ok(gateway::boot::serve(Config::load(Some(config), [])?)?)
}

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
    let place = tempfile::tempdir().expect("a temporary directory");
    let users = plan.iter().map(|(connections, _)| *connections).max().expect("a plan has rows");
    let segment_bytes = size.pick(1 << 20, 64 << 20);
    let keys = seed(&place.path().join("data"), segment_bytes, users);
    let token = write_tape(&place.path().join("tape.ndjson"));
    let mut server = Server::start(&write_config(place.path(), durability, segment_bytes));
    let clients = keys.iter().enumerate().map(|(number, key)| Client::new(number, key.expose(), &token));
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
    let kept = kept(&place.path().join("data"));
    assert_eq!(kept.orders, orders as u64, "what was acknowledged is in the log, and nothing else");
    report.computed(kept.text);
}

/// What the log of a killed server holds.
struct Kept {
    orders: u64,
    /// Everything about each user that no clock is in.
    text: String,
}

fn kept(data: &Path) -> Kept {
    let (state, _) = recover::look(data, true).expect("a sound log");
    state.check_all().expect("every promise about money holds");
    let mut kept = Kept { orders: 0, text: String::new() };
    let mut users: Vec<_> = state.users.iter().flat_map(|users| users.iter()).collect();
    users.sort_by_key(|user| user.id);
    for user in users {
        let cash = user.wallet_of(WalletKind::Api).map_or(0, |wallet| wallet.cash.0);
        let reserved: i64 = user.open_orders().map(|order| order.reserved_cash().0).sum();
        let (orders, open, fills) = (user.orders().len(), user.open_orders_count(), user.fills().len());
        kept.orders += orders as u64;
        writeln!(kept.text, "{} {cash} {reserved} {orders} {open} {fills}", user.id).expect("a string grows");
    }
    kept
}

/// Users with one key each, straight into the log of a server that does not run yet.
fn seed(data: &Path, segment_bytes: u64, count: usize) -> Vec<RawKey> {
    let mut journal = Journal::create(data, segment_bytes);
    let mut world = World::new(0, &mut |_, _, _| {});
    let mut out = Out::new(|owner: engine::id::UserId, now: engine::time::Timestamp, payload: &[u8]| {
        journal.append(codec::VERSION, owner.0, now.0, payload);
    });
    let mint = || RawKey::mint("svc", "live").expect("the system has randomness");
    let keys: Vec<_> = (0..count).map(|_| mint()).collect();
    for key in &keys {
        world.add_trader(key.secret(), &mut out);
    }
    drop(out);
    journal.end();
    keys
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

/// All checks are on; no limit is reached.
fn write_config(place: &Path, durability: &str, segment_bytes: u64) -> PathBuf {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n\
         [data]\ndir = {:?}\n\
         [journal]\ndurability = \"{durability}\"\nsegment_bytes = {segment_bytes}\n\
         [venue]\nkind = \"replay\"\ntape = {:?}\nfollow = true\n\
         [http]\nidle_timeout_ms = 3600000\n\
         [book]\nstale_after_s = 3600\n\
         [flags]\ntrade_quote_max_age_ms = 3600000\n\
         [limits]\nplacements_per_user = 1000000\nplacements_per_server = 1000000\n\
         [limits.tiers.enterprise]\n\
         requests_per_second = 1000000\nrequests_per_minute = 1000000\nin_flight = 1000000\n",
        place.join("data"),
        place.join("tape.ndjson"),
    );
    let path = place.join("bench.toml");
    std::fs::write(&path, text).expect("room for a configuration");
    path
}

/// One user on one connection.
struct Client {
    number: usize,
    /// Of an order, up to the value of the length.
    head: String,
    token: String,
    orders: u64,
    body: String,
}

impl Client {
    fn new(number: usize, key: &str, token: &str) -> Client {
        let head = format!(
            "POST /v1/orders HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
             Content-Length: "
        );
        Client { number, head, token: token.to_owned(), orders: 0, body: String::new() }
    }

    /// The next order: a bid somewhere below the book, or one that is filled at the best ask.
    fn order(&mut self, request: &mut Vec<u8>) {
        self.orders += 1;
        let cents = if self.orders.is_multiple_of(FILLS_EVERY) { 51 } else { 1 + self.orders * 7 % 40 };
        self.body.clear();
        let (token, number, order) = (&self.token, self.number, self.orders);
        write!(
            self.body,
            "{{\"token_id\":\"{token}\",\"side\":\"BUY\",\"order_type\":\"limit\",\"price\":\"0.{cents:02}\",\
             \"quantity\":\"5\",\"client_order_id\":\"bench-{number}-{order}\"}}"
        )
        .expect("a string grows");
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

/// This program once more, serving; killed when dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(config: &Path) -> Server {
        let mut command = Command::new(std::env::current_exe().expect("a running program has a path"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PAPERTAPE_") {
                command.env_remove(name);
            }
        }
        command.arg("--serve").arg(config).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe was asked for")).lines();
        let address = lines.find_map(|line| line.ok()?.split_once("on http://")?.1.trim().parse().ok());
        // Whatever else it says is read and forgotten, so that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Server { child, address: address.expect("a server that starts says where it listens") };
        server.wait_ready();
        server
    }

    fn wait_ready(&self) {
        let begun = Instant::now();
        let mut load = Load::connect(self.address, [()]).expect("the server listens");
        let ready = |(): &mut (), request: &mut Vec<u8>| {
            request.extend_from_slice(b"GET /v1/health/ready HTTP/1.1\r\nHost: bench\r\n\r\n");
        };
        while !load.run(1, 1, None, ready).is_ok_and(|reached| reached.statuses.contains_key(&200)) {
            assert!(begun.elapsed() < START_WITHIN, "the server is ready in time");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Processor time of all its threads so far, user's and system's.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // Behind the name, which may hold anything: state is field 3, the two times are fields 14 and 15.
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        behind.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
    }

    fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
