//! Orders over the trade channel, compared with the same orders over HTTP and with an echo of the bare frame library,
//! all in one run; alone and in batches, one and many in flight. Servers share one core, the idle ones are stopped
//! meanwhile, and the load has another core.
//!
//! Afterwards the server is killed, and the content of its log is part of the result.

use crate::echo::Echo;
use crate::flight::Flights;
use crate::floor::Floor;
use crate::load::Reached;
use crate::orders::FILLS_EVERY;
use crate::pulse;
use crate::reference::{Kind, echo_floor};
use crate::report::{Report, Size, nanoseconds};
use crate::seats::Seats;
use crate::seeded::Place;
use crate::server::TICK_MICROS;
use crate::trader::{Over, Trader};
use crate::wire::Door;
use tokio::net::TcpStream;

const ROUNDS: usize = 5;
/// Orders of one batch: the bound of the highest tier.
const BATCH: usize = 25;
/// An echo of four thousand bytes is more work than one of an order (measured: 39 thousand a second and more, 57 with
/// 16 connections).
const BATCH_FLOOR: Floor = Floor { of: "the library's echo of a batch", least: 8_000.0 };

pub fn run(size: Size, report: &mut Report) {
    let seats = Seats::take(report);
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
    let bare = seats.reference(Kind::Echo, None);
    let [token, _] = &pulse::tokens();
    for batch in [1, BATCH] {
        let rows: Vec<_> = plan.iter().filter(|(_, _, orders, _)| *orders == batch).collect();
        let Some(most) = rows.iter().map(|(connections, ..)| *connections).max() else { continue };
        // A user may not have more than 100,000 open orders: batches get users of their own.
        let place = Place::seeded(most, size);
        let mut ours = seats.start_on_pulse(&place.write_config("process"));
        let mut orders = 0;
        let speakers = |over| {
            let keys = place.keys[..most].iter().enumerate();
            keys.map(move |(number, key)| Trader::new(over, &number.to_string(), key.expose(), token, batch))
        };
        let http = |_: &Trader| TcpStream::connect(ours.address);
        let mut http = Flights::open(speakers(Over::Http), http).expect("the server listens");
        let socket = |trader: &Trader| {
            let door = Door { key: Some(trader.key().to_owned()), ..Door::new(ours.address, "/v1/ws/trade") };
            async move { door.open().await.map(|(stream, _)| stream) }
        };
        let mut socket = Flights::open(speakers(Over::Socket), socket).expect("the server listens");
        let mut sample = Trader::new(Over::Http, "0", "", token, batch);
        // The first body of a user is the shortest; the library echoes it.
        let shortest = sample.body().as_bytes().to_vec();
        let echo = |_: &Echo| {
            let door = Door::new(bare.address, "/");
            async move { door.open().await.map(|(stream, _)| stream) }
        };
        let mut echo = Flights::open(std::iter::repeat_n(Echo(shortest), most), echo).expect("the reference listens");
        // A connection without a request is closed after some seconds, and most wait longer for their round.
        check(&http.run(most, 1, most).expect("the server answers"), most);
        orders += most * batch;
        for (connections, in_flight, _, count) in rows.into_iter().copied() {
            let of = if batch == 1 { String::new() } else { format!(", by {batch}") };
            let name = |what: &str| format!("{connections} x {in_flight}{of}: {what}");
            let (mut beside_http, mut beside_echo) = (Vec::new(), Vec::new());
            let (mut rates, mut echo_rates) = (Vec::new(), Vec::new());
            let (mut on_socket, mut on_http) = (nanoseconds(), nanoseconds());
            let mut ticks = [0; 2];
            for _ in 0..size.pick(1, ROUNDS) {
                let texts = ours.paused(|| echo.run(connections, in_flight, count)).expect("the reference answers");
                check(&texts, count);
                let begun = ours.ticks();
                let posts = bare.paused(|| http.run(connections, in_flight, count)).expect("the server answers");
                check(&posts, count);
                let between = ours.ticks();
                let frames = bare.paused(|| socket.run(connections, in_flight, count)).expect("the server answers");
                check(&frames, count);
                ticks = [ticks[0] + ours.ticks() - between, ticks[1] + between - begun];
                orders += 2 * count * batch;
                rates.push(frames.rate() * batch as f64);
                echo_rates.push(texts.rate());
                beside_http.push(frames.rate() / posts.rate());
                beside_echo.push(frames.rate() / texts.rate());
                on_socket.add(&frames.latency).expect("histograms of one kind");
                on_http.add(&posts.latency).expect("histograms of one kind");
            }
            report.middle(&name("orders, median of the rounds"), &rates, "a second");
            report.ratio_to_itself(&name("requests beside HTTP"), beside_http);
            let floor = if batch == 1 { echo_floor(connections, in_flight) } else { &BATCH_FLOOR };
            report.ratio_above(&[(floor, &echo_rates)], &name("requests beside the library's echo"), beside_echo);
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
    report.rate_note("none: as many in flight on each connection as a row says, the next when one is answered");
    report.durability("process: in the mapping, not synced");
    report.note("mix", format!("limit orders with client ids, 1 in {FILLS_EVERY} filled immediately, the others rest"));
    report.not_included("a feed beside it, TLS, a network");
}

fn check(reached: &Reached, count: usize) {
    reached.check_well(count);
}
