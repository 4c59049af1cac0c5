//! Reads of what has left memory: one order by its id, and every trade of a user.

use super::{CROWD, SMALL_CROWD, Servers, past_of};
use crate::chance::Chance;
use crate::flight::{Answer, Flights, Speaks};
use crate::http::Client;
use crate::load::{self, Load, Reached};
use crate::orders::Orders;
use crate::pulse;
use crate::report::{Report, Size, nanoseconds, timed};
use crate::seeded::Place;
use crate::server::Server;
use ::history::EndedStore;
use ::journal::recover;
use bytes::Bytes;
use engine::departed::Departed as _;
use engine::user::Users;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use wal::Files;

const ROUNDS: usize = 5;
/// Bytes of the store's rows in memory: the default of a server.
const CACHE_BYTES: u64 = 8 << 20;
/// Connections of the orders beside an export, and the rate of their open load as a share of their full speed.
const CONNECTIONS: usize = 16;
const OPEN_PART: f64 = 0.3;
/// How often the memory of a server is read.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// H7, in process: each sampled order is read once to fill the cache of files, and then in another order.
pub fn in_process(servers: &Servers, size: Size, report: &mut Report) {
    let served = &servers.many;
    let data = served.place.path().join("data");
    let (state, _) = recover::look(&data, false).expect("a sound log");
    let upto = state.users.iter().map(Users::departed_upto).max().expect("a shard");
    let origin = wal::origin(&Files::open_existing(&data).expect("a log")).expect("it can be read");
    let log = u128::from_be_bytes(origin.expect("a log has an origin").directory);
    let store = EndedStore::open(&data.join("history"), CACHE_BYTES).expect("the store is whole");
    let reader = store.reader(log);
    let mut chance = Chance::seeded(43);
    let (mut nanos, mut shares) = (nanoseconds(), 0);
    let reads = size.pick(200, 5 * served.ended.len());
    for number in 0..served.ended.len() + reads {
        let is_warm = number >= served.ended.len();
        let at = if is_warm { chance.below(served.ended.len() as u64) as usize } else { number };
        let (user, order) = served.ended[at];
        let begun = Instant::now();
        let found =
            reader.of(user, upto).order(order).expect("the store is whole").expect("every ended order is there");
        if is_warm {
            nanos.saturating_record(begun.elapsed().as_nanos() as u64);
        }
        assert_eq!((found.order.id, found.fills.len()), (order, 1));
        shares += found.fills[0].qty.0;
    }
    report.percentiles("one order by its id, from the store", &nanos);
    report.note("reads of the store", format!("{reads} of {} orders among {}", served.ended.len(), served.count));
    report.computed(shares.to_le_bytes());
}

/// Requests orders by their ids, in a random order.
struct ById {
    requests: Vec<Vec<u8>>,
    chance: Chance,
}

impl Speaks for ById {
    fn request(&mut self, _: u64, out: &mut Vec<u8>) {
        let at = self.chance.below(self.requests.len() as u64) as usize;
        out.extend_from_slice(&self.requests[at]);
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let (status, length) = load::head(bytes)?;
        (bytes.len() >= length).then_some(Answer { bytes: length, number: None, status })
    }
}

/// H7 over HTTP: an ended order beside one that rests, on one connection of the running server.
pub fn over_http(servers: &Servers, mut server: Server, size: Size, report: &mut Report) {
    let served = &servers.many;
    let request = |user: u64, order: u64| {
        let key = served.place.keys[user as usize - 1].expose();
        format!("GET /v1/orders/{order} HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\n\r\n").into_bytes()
    };
    let ended = served.ended.iter().map(|(user, order)| request(user.0, order.0)).collect();
    let open = served.open.iter().map(|open| request(u64::from(open.trader) + 1, open.order.0)).collect();
    let mut flights = [open, ended].map(|requests| {
        let speaker = ById { requests, chance: Chance::seeded(47) };
        Flights::open([speaker], |_| TcpStream::connect(server.address)).expect("the server listens")
    });
    let count = size.pick(40, 5_000);
    let (mut ratios, mut all) = (Vec::new(), [nanoseconds(), nanoseconds()]);
    for round in 0..=size.pick(1, ROUNDS) {
        let mut p50 = [0.0; 2];
        for at in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            let reached = flights[at].run(1, 1, count).expect("the server answers");
            reached.check_well(count);
            p50[at] = reached.latency.value_at_quantile(0.5) as f64;
            if round > 0 {
                all[at].add(&reached.latency).expect("histograms of one kind");
            }
        }
        if round > 0 {
            ratios.push(p50[1] / p50[0]);
        }
    }
    report.ratio_to_itself("one order by its id over HTTP: p50 of an ended one beside an open one", ratios);
    report.percentiles("over HTTP, an open order", &all[0]);
    report.percentiles("over HTTP, an ended order", &all[1]);
    drop(flights);
    server.kill();
}

/// H8: every trade of one user, alone, and beside orders of others.
pub fn exports(size: Size, orders: usize, report: &mut Report) {
    let connections = size.pick(2, CONNECTIONS);
    let place = Place::seeded(connections + 1, size);
    let [token, _] = pulse::tokens();
    let mut past = past_of(&place, size.pick(SMALL_CROWD, CROWD).markets);
    past.live(orders, connections..connections + 1);
    past.close();
    let config = place.write_config("process");
    let mut text = std::fs::read_to_string(&config).expect("just written");
    text.push_str("[export]\nmax_rows = 100000000\n");
    std::fs::write(&config, text).expect("room for a configuration");
    let mut server = Server::start_on_pulse(&config);
    let key = place.keys[connections].expose().to_owned();

    let (mut rates, mut most) = (Vec::new(), 0);
    // The first answer of the store fills the cache of files.
    let before = {
        assert_eq!(trades(server.address, &key), orders as u64, "every trade has a row");
        server.anonymous_bytes()
    };
    for _ in 0..size.pick(1, ROUNDS) {
        let (seconds, ()) = timed(|| most = most.max(greatest_during(&server, || trades(server.address, &key))));
        rates.push(orders as f64 / seconds);
    }
    report.middle("trades.csv of one user", &rates, "rows a second");
    report.figure("trades.csv: memory of the server above that before it", more(most, before), "MiB");

    let clients = place.keys[..connections].iter().enumerate().map(|(number, key)| {
        let orders = Orders::new(format!("beside-{number}"), &token).all_filled();
        Client::with(orders, key.expose())
    });
    let mut load = Load::connect(server.address, clients).expect("the server listens");
    let count = size.pick(40, 20_000);
    let mut go = |count, rate| {
        let reached: Reached = load.run(connections, count, rate, Client::order).expect("the server answers");
        reached.check_well(count);
        reached
    };
    let rate = go(count, None).rate() * OPEN_PART;
    let (mut tails, mut all) = (Vec::new(), [nanoseconds(), nanoseconds()]);
    for round in 0..=size.pick(1, ROUNDS) {
        let alone = go(count, Some(rate));
        let beside = while_exporting(server.address, &key, || go(count, Some(rate)));
        if round > 0 {
            let p99 = |reached: &Reached| reached.latency.value_at_quantile(0.99) as f64;
            tails.push(p99(&beside) / p99(&alone));
            for (all, reached) in all.iter_mut().zip([&alone, &beside]) {
                all.add(&reached.latency).expect("histograms of one kind");
            }
        }
    }
    report.figure("orders beside trades.csv, offered", rate, "a second");
    report.percentiles("orders without trades.csv", &all[0]);
    report.percentiles("orders beside trades.csv", &all[1]);
    report.ratio_to_itself("orders: p99 beside trades.csv, of its value without", tails);
    server.kill();
}

fn more(bytes: u64, before: u64) -> f64 {
    bytes.saturating_sub(before) as f64 / f64::from(1 << 20)
}

/// The greatest anonymous memory of a server while `work` runs.
fn greatest_during<T>(server: &Server, work: impl FnOnce() -> T + Send) -> u64
where
    T: Send,
{
    let (over, most) = (AtomicBool::new(false), AtomicU64::new(server.anonymous_bytes()));
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            work();
            // Pairs with no other operation: it ends a loop.
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) && !working.is_finished() {
            most.fetch_max(server.anonymous_bytes(), Ordering::Relaxed);
            std::thread::sleep(LOOK_EVERY);
        }
        working.join().expect("the work is done");
    });
    most.into_inner()
}

/// Runs `work` while another thread reads all trades, again and again.
fn while_exporting<T>(address: SocketAddr, key: &str, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                trades(address, key);
            }
        });
        let made = work();
        // Pairs with no other operation: it ends a loop.
        over.store(true, Ordering::Relaxed);
        reading.join().expect("exports are whole");
        made
    })
}

/// Reads all trades of a user, piece by piece. Returns the count of their rows.
fn trades(address: SocketAddr, key: &str) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("it is HTTP");
        let connection = tokio::spawn(connection);
        let request = hyper::Request::get("/v1/export/trades.csv").header("host", "bench").header("x-api-key", key);
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let mut answer = sender.send_request(request).await.expect("the server answers");
        assert_eq!(answer.status(), 200, "{:?}", answer.headers());
        let mut lines = 0;
        while let Some(frame) = answer.body_mut().frame().await {
            let frame = frame.expect("the export is whole");
            lines += frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count() as u64);
        }
        connection.abort();
        // Without the header line.
        lines - 1
    })
}
