//! The whole service compared with the paper trader that a user could install instead: a market order of about ten
//! dollars that is filled immediately from a deep book. Ours over HTTP with every check on, from 256 connections,
//! durable or with process durability; and in process. The peer has no server: it is called in its own process.

use crate::floor::Floor;
use crate::load::{Load, Reached};
use crate::peers;
use crate::pulse;
use crate::raw::{Raw, SYNC_FLOOR, with_short_slice};
use crate::report::{PREFAULTED, Report, Size, timed};
use crate::seeded::Place;
use crate::server::Server;
use crate::world::{Out, Step, World};
use engine::id::OrderId;
use engine::order::Side;
use std::fmt::Write as _;

pub const NAME: &str = "service";

const ROUNDS: usize = 5;
/// The peer makes 3,000 and more on a quiet core; at a quarter of that the core was shared.
const PEER_FLOOR: Floor = Floor { of: peers::paper_trader::NAME, least: 800.0 };
/// Nineteen shares at the best ask of 0.51 are almost the peer's ten dollars.
const SHARES: u64 = 19;
/// Most buys of one user in one market of the world in process: a user may not take more than its book shows.
const BUYS_MAX: usize = 8;

pub fn run(size: Size, report: &mut Report) {
    let connections = size.pick(2, 256);
    let count = size.pick(20, 40_000);
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut peer = match report.with_peers() {
        false => None,
        true => match peers::paper_trader::PaperTrader::install(place.path()) {
            Ok(peer) => Some(peer),
            Err(why) => {
                report.note("the peer could not be installed", why);
                None
            }
        },
    };
    let [mut durable, mut process] =
        ["power", "process"].map(|durability| Service::start(durability, connections, size));
    let mut direct = Direct::new(size);
    let mut rates: [Vec<f64>; 4] = Default::default();
    let (mut raw, mut probes) = (Raw::filled(1 << 20), Vec::new());
    for round in 0..=size.pick(1, ROUNDS) {
        let peers = peer.as_mut().map(|peer| {
            let buys = size.pick(5, 1_000);
            buys as f64 / peer.buy(buys)
        });
        let reached = [durable.go(count), process.go(count), direct.go()];
        // The first round only warms up.
        if round > 0 {
            rates.iter_mut().zip(reached).for_each(|(rates, rate)| rates.push(rate));
            rates[3].extend(peers);
            probes.push(with_short_slice(|| raw.probe()).0);
        }
    }
    let ours = ["durable over HTTP", "over HTTP, process", "in process"];
    let [.., peers] = rates.clone();
    for (what, rates) in ours.iter().zip(rates) {
        report.middle(&format!("market orders {what}"), &rates, "a second");
        if !peers.is_empty() {
            let ratios = rates.iter().zip(&peers).map(|(ours, peer)| ours / peer).collect();
            let mut references = vec![(&PEER_FLOOR, &peers[..])];
            if *what == ours[0] {
                references.push((&SYNC_FLOOR, &probes));
            }
            report.ratio_above(&references, &format!("{what} beside {}", peers::paper_trader::NAME), ratios);
        }
    }
    if !peers.is_empty() {
        report.middle(&format!("market orders of {}", peers::paper_trader::NAME), &peers, "a second");
    }
    for service in [durable, process] {
        report.computed(service.end(count * (size.pick(1, ROUNDS) + 1)));
    }
    report.computed(direct.world.digest());
    report.note("order", format!("a market buy of {SHARES} shares at 0.51; the peer's is of 10 dollars"));
    report.rate_note(format!("none: {connections} connections with one order each, the next when it is answered"));
    report.note("memory in process", PREFAULTED);
    report.durability("power and process as each row says; in process records are made and not kept");
    report.not_included("a feed beside it, TLS, a network; the load shares the same cores");
}

/// A server and its buyers.
struct Service {
    place: Place,
    server: Server,
    /// Buys that each of them has sent so far.
    made: u64,
}

impl Service {
    fn start(durability: &str, connections: usize, size: Size) -> Service {
        let place = Place::seeded(connections, size);
        let server = Server::start_on_pulse(&place.write_config(durability));
        Service { place, server, made: 0 }
    }

    /// On fresh connections: during the rounds of the others these would be idle for longer than a server keeps them.
    fn go(&mut self, count: usize) -> f64 {
        let connections = self.place.keys.len();
        let made = self.made;
        let buyers =
            self.place.keys.iter().map(|key| Buyer { key: key.expose().to_owned(), made, body: String::new() });
        let mut load = Load::connect(self.server.address, buyers).expect("the server listens");
        self.made += count.div_ceil(connections) as u64;
        let reached: Reached = load.run(connections, count, None, Buyer::order).expect("the server answers");
        reached.check_well(count);
        reached.rate()
    }

    /// The content of the server's log afterwards.
    fn end(mut self, count: usize) -> String {
        self.server.kill();
        let kept = self.place.kept();
        assert_eq!(kept.orders, count as u64, "what was acknowledged is in the log, and nothing else");
        kept.text
    }
}

/// One user on one connection.
struct Buyer {
    key: String,
    made: u64,
    body: String,
}

impl Buyer {
    fn order(&mut self, request: &mut Vec<u8>) {
        let [token, _] = pulse::tokens();
        self.made += 1;
        self.body.clear();
        write!(
            self.body,
            "{{\"token_id\":\"{token}\",\"side\":\"BUY\",\"order_type\":\"market\",\"price\":\"0.99\",\
             \"quantity\":\"{SHARES}\",\"client_order_id\":\"buy-{}\"}}",
            self.made
        )
        .expect("writing to a string succeeds");
        let head = format!(
            "POST /v1/orders HTTP/1.1\r\nHost: bench\r\nX-API-Key: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{}",
            self.key,
            self.body.len(),
            self.body
        );
        request.extend_from_slice(head.as_bytes());
    }
}

/// Buys of many users in many markets, one after the other.
struct Direct {
    world: World,
    out: Out<fn(engine::id::UserId, engine::time::Timestamp, &[u8])>,
    users: usize,
    markets: usize,
    made: usize,
    piece: usize,
}

impl Direct {
    fn new(size: Size) -> Direct {
        let (users, markets) = size.pick((10, 4), (1_000, 64));
        let mut world = World::new(markets as u32, &mut |_, _, _| {});
        let mut out: Out<fn(_, _, &[u8])> = Out::new(|_, _, payload| {
            std::hint::black_box(payload);
        });
        world.add_traders(users, &mut out);
        out.orders = vec![OrderId(0)];
        let piece = users * markets * BUYS_MAX / (ROUNDS + 1);
        Direct { world, out, users, markets, made: 0, piece }
    }

    fn go(&mut self) -> f64 {
        let Direct { world, out, users, markets, made, piece } = self;
        let mut seconds = 0.0;
        for first in (0..*piece).step_by(4_096) {
            let envelopes: Vec<_> = (first..(first + 4_096).min(*piece))
                .map(|at| {
                    let number = *made + at;
                    let (trader, turn) = (number % *users, number / *users);
                    let market = ((turn + trader) % *markets) as u32;
                    world.envelope(0, Step::Take { trader, market, side: Side::Buy }, &[])
                })
                .collect();
            seconds += timed(|| envelopes.into_iter().for_each(|envelope| world.take(envelope, out))).0;
        }
        *made += *piece;
        assert_eq!(out.refused, 0, "every buy fills");
        *piece as f64 / seconds
    }
}
