//! Round trip of a text: `PING` and `PONG` on our socket, compared with an echo of the bare frame library.
//!
//! A peer that sends more than 30 texts a second is closed, so each socket stays below that, on both servers, and the
//! round-trip times are compared. Many sockets make the load; nothing here is a maximum rate.

use crate::flight::{Answer, Flights, Speaks, UNASKED};
use crate::floor::Floor;
use crate::load::Reached;
use crate::reference::Kind;
use crate::report::{Report, Size, nanoseconds};
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use crate::wire::Door;
use std::time::Duration;
use tools::frame::{self, Frame, TEXT};

const ROUNDS: usize = 5;
/// Nothing here runs at full speed, so the reference is judged by the reciprocal of its median time (measured: 6,000 a
/// second with 64 sockets and 12,000 with one).
const LIBRARY_FLOOR: Floor = Floor { of: "the library's echo, by the median of its times", least: 2_000.0 };
/// Between two texts of a socket: 25 a second, and fewer than 30 even across two rounds.
const PAUSE: Duration = Duration::from_millis(40);

/// Sends the same text each time; the answer is the text itself or `PONG`.
#[derive(Clone)]
pub struct Echo(pub Vec<u8>);

impl Speaks for Echo {
    fn request(&mut self, _: u64, out: &mut Vec<u8>) {
        frame::text(out, |out| out.extend_from_slice(&self.0));
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let Frame { first, payload, bytes } = frame::read(bytes)?;
        let status = match first {
            TEXT if payload == self.0 || payload == b"PONG" => 200,
            frame::PING => UNASKED,
            _ => 500,
        };
        Some(Answer { bytes, number: None, status })
    }
}

pub fn run(size: Size, report: &mut Report) {
    // (connections, texts of one round); the largest first, since a socket without traffic for a minute is closed
    let plan: &[(usize, usize)] = match size {
        Size::Small => &[(8, 40), (2, 10)],
        Size::Full => &[(64, 8_000), (16, 2_000), (1, 125)],
    };
    let most = plan.iter().map(|(connections, _)| *connections).max().expect("a plan has rows");
    let place = Place::seeded(1, size);
    let ours = Server::start_on_pulse(&place.write_config("process"));
    let bare = Server::reference(Kind::Echo, None);
    let door = Door { key: Some(place.keys[0].expose().to_owned()), ..Door::new(ours.address, "/v1/ws/trade") };
    let open = |door: Door| {
        let open = |_: &Echo| async { door.open().await.map(|(stream, _)| stream) };
        let flights = Flights::open(std::iter::repeat_n(Echo(b"PING".to_vec()), most), open);
        flights.expect("the server listens").with_pause(PAUSE)
    };
    let (mut our_flights, mut bare_flights) = (open(door), open(Door::new(bare.address, "/")));
    for (connections, count) in plan.iter().copied() {
        let name = |what: &str| format!("{connections} sockets: {what}");
        let go = |flights: &mut Flights<Echo>, server: &Server| -> (Reached, u64) {
            let before = server.ticks();
            let reached = flights.run(connections, 1, count).expect("it answers");
            reached.check_well(count);
            (reached, server.ticks() - before)
        };
        let (mut ratios, mut library_rates, mut ticks) = (Vec::new(), Vec::new(), [0; 2]);
        let (mut here, mut there) = (nanoseconds(), nanoseconds());
        for _ in 0..size.pick(1, ROUNDS) {
            let (reference, reference_ticks) = go(&mut bare_flights, &bare);
            let (reached, our_ticks) = go(&mut our_flights, &ours);
            let median = |reached: &Reached| reached.latency.value_at_quantile(0.5) as f64;
            ratios.push(median(&reached) / median(&reference));
            library_rates.push(1e9 / median(&reference));
            here.add(&reached.latency).expect("histograms of one kind");
            there.add(&reference.latency).expect("histograms of one kind");
            ticks = [ticks[0] + our_ticks, ticks[1] + reference_ticks];
        }
        let what = name("p50 beside the frame library alone");
        report.ratio_above(&[(&LIBRARY_FLOOR, &library_rates)], &what, ratios);
        let micros = |ticks: u64| ticks as f64 * TICK_MICROS / (size.pick(1, ROUNDS) * count) as f64;
        report.figure(&name("processor time, ours"), micros(ticks[0]), "us");
        report.figure(&name("processor time, library"), micros(ticks[1]), "us");
        report.percentiles(&name("ours"), &here);
        report.percentiles(&name("library"), &there);
    }
    report.rate_note("25 texts a second on each socket, each after the answer to the one before");
    report.not_included("TLS, a network; the load shares the same cores");
}
