//! Orders over HTTP on a server with a thousand sockets that follow a market and never read, compared with the same
//! orders without them. The market changes all the time in both.

use crate::http::Client;
use crate::listeners::{Listeners, subscription};
use crate::load::Load;
use crate::pulse::{self, Beats};
use crate::report::{Report, Size, median, nanoseconds};
use crate::seeded::Place;
use crate::server::Server;
use crate::wire::Door;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const CONNECTIONS: usize = 16;
/// Orders a second.
const RATE: f64 = 4_000.0;
/// Pause between two changes of the market.
const CHANGE_US: u64 = 2_000;
/// Socket buffer of a listener that does not read.
const STALLED_BYTES: u32 = 4 << 10;
/// Whole books, until every queue is full: the system buffers megabytes of them for each socket, and our queue a
/// thousand.
const WHOLE: Beats = Beats { changes: 1, times: 1_800, every_us: 4_000, whole: true };
/// The server has settled when it used less than this much in that time, in hundredths of a second.
const LOOK: Duration = Duration::from_millis(200);
const SETTLED_TICKS: u64 = 5;
/// Stuck sockets are closed after 15 s, so no wait is longer than this.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

pub fn run(size: Size, report: &mut Report) {
    let stalled_count = size.pick(10, 1_000);
    let orders_count = size.pick(200, 10_000);
    let place = Place::seeded(CONNECTIONS + 1, size);
    let mut server = Server::start_on_pulse(&place.write_config("process"));
    let [token, _] = pulse::tokens();
    let (watcher, traders) = place.keys.split_last().expect("there are keys");
    let clients =
        traders.iter().enumerate().map(|(number, key)| Client::new(&number.to_string(), key.expose(), &token));
    let mut load = Load::connect(server.address, clients).expect("the server listens");
    let door = Door {
        key: Some(watcher.expose().to_owned()),
        receive_buffer_bytes: Some(STALLED_BYTES),
        ..Door::new(server.address, "/v1/ws/market")
    };
    let mut go = |server: &mut Server| {
        let times = (orders_count as f64 / RATE * 1e6) as u32 / CHANGE_US as u32;
        server.tell(Beats { changes: 1, times, every_us: CHANGE_US, whole: false });
        let reached = load.run(CONNECTIONS, orders_count, Some(RATE), Client::order).expect("the server answers");
        reached.check_well(orders_count);
        reached
    };
    go(&mut server);
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    let (mut with, mut without) = (nanoseconds(), nanoseconds());
    let before = server.anonymous_bytes();
    let (mut most, mut rounds) = (0, 0);
    for _ in 0..size.pick(1, ROUNDS) {
        let alone = go(&mut server);
        let stalled =
            Listeners::open(&door, stalled_count, Some(&subscription())).expect("descriptors for all of them");
        let whole = Beats { times: size.pick(20, WHOLE.times), ..WHOLE };
        server.tell(whole);
        std::thread::sleep(Duration::from_micros(u64::from(whole.times) * whole.every_us));
        settle(&server);
        let beside = go(&mut server);
        most = most.max(server.anonymous_bytes());
        drop(stalled);
        settle(&server);
        let p99 = |reached: &crate::load::Reached| reached.latency.value_at_quantile(0.99) as f64;
        ratios.push(p99(&beside) / p99(&alone));
        rates.push(beside.rate());
        with.add(&beside.latency).expect("histograms of one kind");
        without.add(&alone.latency).expect("histograms of one kind");
        rounds += 1;
    }
    report.ratio_to_itself("p99 of orders with listeners that do not read", ratios);
    report.percentiles("orders, from when due, alone", &without);
    report.percentiles("orders, from when due, with them", &with);
    report.rate("orders with them", RATE, median(&rates));
    report.figure("memory before", before as f64, "bytes");
    report.figure("most memory with them", most as f64, "bytes");
    report.note("listeners that do not read", format!("{stalled_count}, opened again in each of {rounds} rounds"));
    report.rate_note("open: as its row says, from when each order was due");
    report.durability("process: in the mapping, not synced");
    drop(load);
    server.kill();
    let kept = place.kept();
    assert_eq!(kept.orders, (orders_count * (2 * rounds + 1)) as u64, "what was acknowledged is in the log");
    report.computed(kept.text);
    report.not_included("TLS, a network; what the system keeps for sockets outside of the process; pages of the log");
}

/// Waits until the server has finished all earlier work.
fn settle(server: &Server) {
    let begun = Instant::now();
    let mut before = server.ticks();
    while begun.elapsed() < SETTLED_WITHIN {
        std::thread::sleep(LOOK);
        let now = server.ticks();
        if now - before < SETTLED_TICKS {
            return;
        }
        before = now;
    }
}
