//! How the rate of orders and the time of a start change as users, markets and open orders grow.
//!
//! Each size alternates with the small one in one run. In process, commands come over a ring, as in a server whose
//! shard has a thread of its own, and then one at a time, as in one whose shard shares the thread of the sockets. The
//! stream keeps the number of open orders: half rests and cancels of a random open order, one in ten takes; each
//! touches a random user and market, so a large world is mostly cold memory. Over HTTP both servers start from
//! snapshots of the same worlds; orders go round all users and to one live market. A start is timed from the beginning
//! of the process to its first ready answer.

use crate::crowd::{Crowd, Fitting};
use crate::http::Client;
use crate::journal::Journal;
use crate::load::{Load, Reached};
use crate::pulse;
use crate::report::{PREFAULTED, Report, Size, nanoseconds, timed};
use crate::seeded::Place;
use crate::server::Server;
use crate::steady::Steady;
use crate::world::{Out, World};
use engine::format::Formats;
use engine::id::UserId;
use engine::mutation::codec;
use engine::time::Timestamp;
use host::clock::Clock;
use journal::{checkpoint, recover};
use std::path::Path;
use std::rc::Rc;
use wal::Running;

const ROUNDS: usize = 5;
/// Connections of the HTTP load.
const CONNECTIONS: usize = 64;
/// Distance between the users of consecutive orders on a connection: large, and coprime to round numbers of users.
const USER_STRIDE: usize = 7_919;

/// Share of the constant part of a start below which the rest is not reported.
const TOLD_PART: f64 = 0.1;

/// How commands reach the shard in process: over a ring, which allows it to look ahead, as in P10; or one at a time.
const WAYS: [&str; 2] = ["in batches", "one at a time"];

/// What grows, its size, and the reason if the size is below the requested one.
type Grown = (&'static str, Crowd, Option<String>);

/// The small size, and the large ones.
fn sizes(size: Size) -> (Crowd, [Grown; 4]) {
    let small =
        size.pick(Crowd { users: 20, markets: 8, open: 200 }, Crowd { users: 1_000, markets: 200, open: 10_000 });
    let users = size.pick(200, 1_000_000);
    let markets = size.pick(40, 20_000);
    // In process two large worlds never exist at the same time.
    let fitting = Fitting::of(size.pick(2_000, 10_000_000), size);
    let open = fitting.orders;
    let grown = [
        ("users", Crowd { users, ..small }, None),
        ("markets", Crowd { markets, ..small }, None),
        ("open orders", Crowd { open, ..small }, fitting.refused()),
        ("all three", Crowd { users, markets, open }, fitting.refused()),
    ];
    (small, grown)
}

pub fn run(size: Size, report: &mut Report) {
    let (small, grown) = sizes(size);
    report.note("small", small.to_string());
    for (what, crowd, refused) in grown {
        let ratios = in_process(what, small, crowd, size, report);
        for (how, ratios) in WAYS.iter().zip(ratios) {
            let name = format!("in process, more {what}: rate {how} beside the small size");
            match &refused {
                Some(why) => report.refused(&name, why.clone()),
                None => report.ratio_to_itself(&name, ratios),
            }
        }
    }
    over_http(small, size, report);
    starts(size, report);
    report.rate_note(
        "none: over HTTP one order on each connection, the next when it is answered; in process in batches of up to 256 \
         commands that wait in a ring, or one after the other, as each row says",
    );
    report.note("memory in process", PREFAULTED);
    report.durability("process over HTTP; in process records are made and not kept");
    report.not_included("in process: making the command, the log; over HTTP: a feed beside it, TLS, a network");
}

/// Rates of the large size relative to the small one, in batches and one at a time.
fn in_process(what: &str, small: Crowd, large: Crowd, size: Size, report: &mut Report) -> [Vec<f64>; 2] {
    let count = size.pick(500, 200_000);
    let [mut small, mut large] = [small, large].map(|crowd| {
        Steady::new(crowd, |_, _, payload: &[u8]| {
            std::hint::black_box(payload);
        })
    });
    let mut ratios = [Vec::new(), Vec::new()];
    // By how commands come, then of the small and the large one.
    let mut rates: [[Vec<f64>; 2]; 2] = Default::default();
    for round in 0..=size.pick(1, ROUNDS) {
        let by_turns = [small.go_by_turns(count), large.go_by_turns(count)];
        let alone = [small.go(count), large.go(count)];
        // The first round only warms up.
        if round > 0 {
            for (ratios, [beside, grown]) in ratios.iter_mut().zip([by_turns, alone]) {
                ratios.push(beside / grown);
            }
            for (rates, seconds) in rates.iter_mut().zip([by_turns, alone]) {
                rates.iter_mut().zip(seconds).for_each(|(rates, seconds)| rates.push(count as f64 / seconds));
            }
        }
    }
    for (how, rates) in WAYS.iter().zip(&rates) {
        for (which, rates) in ["small", "large"].iter().zip(rates) {
            report.middle(&format!("in process, more {what}: commands {how}, {which}"), rates, "a second");
        }
    }
    for steady in [&small, &large] {
        report.computed(steady.world.digest());
    }
    report.note(&format!("more {what}"), large.crowd.to_string());
    ratios
}

/// Writes a world into the log of a server that is not running yet, with the users of `place`.
fn settle(place: &Place, crowd: Crowd) {
    assert_eq!(place.keys.len(), crowd.users, "every user has a key");
    let data = place.path().join("data");
    std::fs::remove_dir_all(&data).expect("the seeding left it");
    let mut journal = Journal::create(&data, place.segment_bytes());
    let mut record = |owner: UserId, now: Timestamp, payload: &[u8]| {
        journal.append(codec::VERSION, owner.0, now.0, payload);
    };
    let mut world = World::new(crowd.markets, &mut record);
    let mut out = Out::new(record);
    for key in &place.keys {
        world.add_trader(key.secret(), &mut out);
    }
    crowd.rest(&mut world, &mut out);
    drop(out);
    journal.end();
}

fn over_http(small: Crowd, size: Size, report: &mut Report) {
    let connections = size.pick(2, CONNECTIONS);
    let fitting = Fitting::of(size.pick(1_000, 10_000_000), size);
    let (users, markets) = size.pick((100, 20), (1_000_000, 20_000));
    let large = Crowd { users, markets, open: fitting.orders };
    let count = size.pick(100, 30_000);
    let [token, _] = &pulse::tokens();
    let mut servers = [small, large].map(|crowd| {
        let place = Place::seeded(crowd.users, size);
        settle(&place, crowd);
        // The first snapshot of a new log occupies the keeper for the first seconds after the start.
        take_snapshot(&place.path().join("data"), place.segment_bytes());
        let server = Server::start_on_pulse(&place.write_config("process"));
        (place, server)
    });
    // The connections are opened only now: the server closes a connection without a request after some seconds.
    let mut loads = [0, 1].map(|at: usize| {
        let (place, server) = &servers[at];
        let keys: Rc<[String]> = place.keys.iter().map(|key| key.expose().to_owned()).collect();
        let clients = (0..connections).map(|number| InTurn {
            client: Client::new(&format!("{at}-{number}"), &keys[0], token),
            keys: keys.clone(),
            // Not at the users of the other connections.
            next: number * keys.len() / connections,
        });
        Load::connect(server.address, clients).expect("the server listens")
    });
    let mut ratios = Vec::new();
    let mut latency = [nanoseconds(), nanoseconds()];
    for round in 0..=size.pick(1, ROUNDS) {
        let reached = [0, 1].map(|at: usize| well(loads[at].run(connections, count, None, InTurn::order), count));
        if round > 0 {
            ratios.push(reached[1].rate() / reached[0].rate());
            for (sum, reached) in latency.iter_mut().zip(&reached) {
                sum.add(&reached.latency).expect("histograms of one kind");
            }
        }
    }
    report.note("large over HTTP", large.to_string());
    let name = format!("over HTTP, {connections} connections: rate beside the small size");
    match fitting.refused() {
        Some(why) => report.refused(&name, why),
        None => report.ratio_to_itself(&name, ratios),
    }
    report.percentiles("order over HTTP, small", &latency[0]);
    report.percentiles("order over HTTP, large", &latency[1]);
    drop(loads);
    let rounds = size.pick(1, ROUNDS) + 1;
    for ((place, server), crowd) in servers.iter_mut().zip([small, large]) {
        server.kill();
        let kept = place.kept();
        assert_eq!(kept.orders, (crowd.open + rounds * count) as u64, "what was acknowledged is in the log");
        report.computed(kept.text);
    }
}

/// A connection that sends for all users in turn.
struct InTurn {
    client: Client,
    keys: Rc<[String]>,
    next: usize,
}

impl InTurn {
    fn order(&mut self, request: &mut Vec<u8>) {
        self.client.speak_as(&self.keys[self.next]);
        self.next = (self.next + USER_STRIDE) % self.keys.len();
        self.client.order(request);
    }
}

fn well(reached: std::io::Result<Reached>, count: usize) -> Reached {
    let reached = reached.expect("the server answers");
    reached.check_well(count);
    reached
}

/// Starts with growing numbers of open orders, from the log and from a snapshot.
fn starts(size: Size, report: &mut Report) {
    let rounds = size.pick(1, 3);
    let counts = size.pick(vec![200, 2_000], vec![10_000, 100_000, 1_000_000]);
    let mut known: Vec<(usize, [f64; 2])> = Vec::new();
    for open in counts {
        let crowd = Crowd { users: (open / 100).max(1), markets: 200, open };
        let place = Place::seeded(crowd.users, size);
        settle(&place, crowd);
        let mut least = [f64::MAX; 2];
        let config = place.write_config("process");
        for (at, from) in ["log", "snapshot"].into_iter().enumerate() {
            if from == "snapshot" {
                take_snapshot(&place.path().join("data"), place.segment_bytes());
            }
            for _ in 0..rounds {
                let (seconds, mut server) = timed(|| Server::start_on_pulse(&config));
                least[at] = least[at].min(seconds);
                server.kill();
            }
            report.figure(&format!("start over {open} open orders from the {from}, least"), least[at], "s");
        }
        let kept = place.kept();
        assert_eq!(kept.orders, open as u64, "all of them are there");
        report.computed(kept.text);
        known.push((open, least));
    }
    let [(_, base), (fewer, some), (more, many)] = known[..] else { return };
    for (at, from) in ["log", "snapshot"].into_iter().enumerate() {
        let name = format!("start from the {from}: growth beside that of the orders");
        match growth([base[at], some[at], many[at]], more as f64 / fewer as f64) {
            Some(growth) => report.figure(&name, growth, "×"),
            None => report
                .note(&name, format!("not reported: what {fewer} orders take is lost in the constant part of a start")),
        }
    }
}

/// How the seconds of a start grow from a middle size to one with `times` as many orders; 1 is linear. The constant
/// part is that of the smallest size, and is subtracted. `None`: next to it, the time of the middle size's orders
/// cannot be distinguished from noise.
fn growth([base, some, many]: [f64; 3], times: f64) -> Option<f64> {
    let is_told = some - base >= TOLD_PART * base && many > base;
    is_told.then(|| (many - base) / (some - base) / times)
}

/// Makes a snapshot of a stopped directory.
fn take_snapshot(data: &Path, segment_bytes: u64) {
    let options = crate::journal::options(segment_bytes);
    let recover::Recovery { dir, log, state, .. } = recover::recover(data, options, 1).expect("a sound log");
    let (lsn, crc) = (log.last_lsn, log.last_crc);
    let Running { mut snapshots, mut syncer, .. } =
        dir.start(log, Clock::wall().now().0, Box::new(|_| {})).expect("room for a log");
    syncer.turn().expect("the disk syncs");
    checkpoint::write_snapshot(Formats::Newest, &mut snapshots, &state, lsn, crc).expect("room for a snapshot");
    syncer.finish().expect("the disk syncs");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growth_is_reported_above_noise() {
        let rows = [
            ("linear", [0.1, 1.1, 10.1], Some(1.0)),
            ("half of it", [0.1, 1.1, 5.1], Some(0.5)),
            ("just distinguishable", [0.1, 0.12, 0.3], Some(1.0)),
            ("the middle one was faster", [0.1, 0.09, 0.5], None),
            ("they took the same time", [0.1, 0.1, 0.5], None),
            ("a random difference", [0.1, 0.105, 0.5], None),
            ("the large one was fastest", [0.1, 0.2, 0.09], None),
        ];
        for (name, seconds, expected) in rows {
            let rounded = growth(seconds, 10.0).map(|growth| (growth * 1e6).round() / 1e6);
            assert_eq!(rounded, expected, "{name}");
        }
        println!("growths: {} cases", rows.len());
    }
}
