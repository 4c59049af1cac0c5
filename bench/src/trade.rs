//! Orders over the trade channel, beside the same orders over HTTP and beside texts that the frame library alone sends
//! back, all in one run; alone and in batches, one and many in flight.
//!
//! Afterwards the server is killed, and what its log holds is part of the result.

use crate::echo::Echo;
use crate::flight::{Answer, Flights, Speaks, UNASKED};
use crate::load::{self, Reached};
use crate::orders::{FILLS_EVERY, Orders};
use crate::pulse;
use crate::reference::Kind;
use crate::report::{Report, Size, nanoseconds};
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use crate::wire::{self, Door, TEXT};
use std::collections::BTreeMap;
use tokio::net::TcpStream;

const ROUNDS: usize = 5;
/// Of one batch: the bound of the highest tier.
const BATCH: usize = 25;

/// What orders travel over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Http,
    Socket,
}

/// One user on one connection.
struct Trader {
    over: Over,
    key: String,
    orders: Orders,
    /// Orders of one request; 1 = no batch.
    batch: usize,
    body: String,
}

impl Trader {
    fn new(over: Over, number: usize, key: &str, batch: usize) -> Trader {
        let [token, _] = pulse::tokens();
        let orders = Orders::new(format!("{over:?}-{batch}-{number}"), &token);
        Trader { over, key: key.to_owned(), orders, batch, body: String::new() }
    }

    fn write_orders(&mut self) {
        self.body.clear();
        match self.batch {
            1 => self.orders.write(&mut self.body),
            count => self.orders.write_batch(count, &mut self.body),
        }
    }
}

impl Speaks for Trader {
    fn request(&mut self, number: u64, out: &mut Vec<u8>) {
        self.write_orders();
        let Trader { key, body, batch, .. } = self;
        let alone = *batch == 1;
        match self.over {
            Over::Http => {
                let path = if alone { "/v1/orders" } else { "/v1/orders/batch" };
                let length = body.len();
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
                     Content-Length: {length}\r\n\r\n"
                );
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(body.as_bytes());
            }
            Over::Socket => {
                let op = if alone { "order.place" } else { "order.batch" };
                wire::text(out, format!("{{\"id\":{number},\"op\":\"{op}\",\"params\":{body}}}").as_bytes());
            }
        }
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        if self.over == Over::Http {
            let (status, length) = load::head(bytes)?;
            return (bytes.len() >= length).then_some(Answer { bytes: length, number: None, status });
        }
        let (first, payload, length) = wire::frame(bytes)?;
        let (number, status) = match first {
            TEXT => said(payload).map_or((None, 500), |(number, status)| (Some(number), status)),
            _ => (None, UNASKED),
        };
        Some(Answer { bytes: length, number, status })
    }
}

/// Number and status of an answer on the trade channel.
fn said(payload: &[u8]) -> Option<(u64, u16)> {
    let rest = std::str::from_utf8(payload).ok()?.strip_prefix("{\"id\":")?;
    let (number, rest) = rest.split_once(",\"status\":")?;
    Some((number.parse().ok()?, rest.get(..3)?.parse().ok()?))
}

pub fn run(size: Size, report: &mut Report) {
    // (connections, in flight on each, orders of a request, requests of one round)
    let plan: &[(usize, usize, usize, usize)] = match size {
        Size::Small => &[(2, 1, 1, 20), (2, 8, 1, 40), (2, 2, BATCH, 8)],
        Size::Full => &[
            (1, 1, 1, 2_000),
            (16, 1, 1, 16_000),
            (64, 1, 1, 16_000),
            (1, 32, 1, 4_000),
            (16, 32, 1, 16_000),
            (1, 1, BATCH, 120),
            (16, 1, BATCH, 800),
            (16, 32, BATCH, 1_600),
        ],
    };
    let bare = Server::reference(Kind::Echo, None);
    for batch in [1, BATCH] {
        let rows: Vec<_> = plan.iter().filter(|(_, _, orders, _)| *orders == batch).collect();
        let Some(most) = rows.iter().map(|(connections, ..)| *connections).max() else { continue };
        // Nobody may have more than 100,000 open orders: batches get users of their own.
        let place = Place::seeded(most, size);
        let mut ours = Server::start_on_pulse(&place.write_config("process"));
        let mut orders = 0;
        let speakers = |over| {
            let keys = place.keys[..most].iter().enumerate();
            keys.map(move |(number, key)| Trader::new(over, number, key.expose(), batch))
        };
        let http = |_: &Trader| TcpStream::connect(ours.address);
        let mut http = Flights::open(speakers(Over::Http), http).expect("the server listens");
        let socket = |trader: &Trader| {
            let door = Door { key: Some(trader.key.clone()), ..Door::new(ours.address, "/v1/ws/trade") };
            async move { door.open().await.map(|(stream, _)| stream) }
        };
        let mut socket = Flights::open(speakers(Over::Socket), socket).expect("the server listens");
        let mut longest = Vec::new();
        let mut sample = Trader::new(Over::Http, 0, "", batch);
        sample.write_orders();
        longest.extend_from_slice(sample.body.as_bytes());
        let echo = |_: &Echo| {
            let door = Door::new(bare.address, "/");
            async move { door.open().await.map(|(stream, _)| stream) }
        };
        let mut echo = Flights::open(std::iter::repeat_n(Echo(longest), most), echo).expect("the reference listens");
        // A connection that says nothing at first is closed after some seconds, and most wait for their turn for longer.
        check(&http.run(most, 1, most).expect("the server answers"), most);
        orders += most * batch;
        for (connections, in_flight, _, count) in rows.into_iter().copied() {
            let of = if batch == 1 { String::new() } else { format!(", by {batch}") };
            let name = |what: &str| format!("{connections} x {in_flight}{of}: {what}");
            let (mut beside_http, mut beside_echo, mut rates) = (Vec::new(), Vec::new(), Vec::new());
            let (mut on_socket, mut on_http) = (nanoseconds(), nanoseconds());
            let mut ticks = [0; 2];
            for _ in 0..size.pick(1, ROUNDS) {
                let texts = echo.run(connections, in_flight, count).expect("the reference answers");
                check(&texts, count);
                let begun = ours.ticks();
                let posts = http.run(connections, in_flight, count).expect("the server answers");
                check(&posts, count);
                let between = ours.ticks();
                let frames = socket.run(connections, in_flight, count).expect("the server answers");
                check(&frames, count);
                ticks = [ticks[0] + ours.ticks() - between, ticks[1] + between - begun];
                orders += 2 * count * batch;
                rates.push(frames.rate() * batch as f64);
                beside_http.push(frames.rate() / posts.rate());
                beside_echo.push(frames.rate() / texts.rate());
                on_socket.add(&frames.latency).expect("histograms of one kind");
                on_http.add(&posts.latency).expect("histograms of one kind");
            }
            rates.sort_by(f64::total_cmp);
            report.figure(&name("orders, median of the rounds"), rates[rates.len() / 2], "a second");
            report.ratio(&name("requests beside HTTP"), beside_http);
            report.ratio(&name("requests beside the library's echo"), beside_echo);
            let micros = |ticks: u64| ticks as f64 * TICK_MICROS / (size.pick(1, ROUNDS) * count * batch) as f64;
            report.figure(&name("processor time of an order, socket"), micros(ticks[0]), "us");
            report.figure(&name("processor time of an order, HTTP"), micros(ticks[1]), "us");
            report.percentiles(&name("socket"), &on_socket);
            report.percentiles(&name("HTTP"), &on_http);
        }
        ours.kill();
        let kept = place.kept();
        assert_eq!(kept.orders, orders as u64, "what was acknowledged is in the log, and nothing else");
        report.computed(kept.text);
    }
    report.durability("process: in the mapping, not synced");
    report.note("mix", format!("limit orders with client ids, 1 in {FILLS_EVERY} filled at once, the others rest"));
    report.not_included("a feed beside it, TLS, a network; the load takes its part of the same cores");
}

fn check(reached: &Reached, count: usize) {
    assert_eq!(reached.statuses, BTreeMap::from([(200, count as u64)]), "everything is answered well");
}
