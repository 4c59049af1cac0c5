//! A text there and back: `PING` and `PONG` on our socket, beside the frame library alone sending back what it reads.
//!
//! Ours is the trade channel, the one on which a peer may send as often as it likes.

use crate::flight::{Answer, Flights, Speaks, UNASKED};
use crate::load::Reached;
use crate::reference::Kind;
use crate::report::{Report, Size, nanoseconds};
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use crate::wire::{self, Door, TEXT};
use std::collections::BTreeMap;

const ROUNDS: usize = 5;

/// Says the same text each time; it comes back as it is, or `PONG` does.
#[derive(Clone)]
pub struct Echo(pub Vec<u8>);

impl Speaks for Echo {
    fn request(&mut self, _: u64, out: &mut Vec<u8>) {
        wire::text(out, &self.0);
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let (first, payload, length) = wire::frame(bytes)?;
        let status = match first {
            TEXT if payload == self.0 || payload == b"PONG" => 200,
            wire::PING => UNASKED,
            _ => 500,
        };
        Some(Answer { bytes: length, number: None, status })
    }
}

pub fn run(size: Size, report: &mut Report) {
    // (connections, in flight on each, texts of one round)
    let plan: &[(usize, usize, usize)] = match size {
        Size::Small => &[(2, 1, 40), (2, 8, 80)],
        Size::Full => {
            &[(1, 1, 10_000), (16, 1, 60_000), (64, 1, 60_000), (1, 32, 200_000), (16, 32, 500_000), (64, 32, 500_000)]
        }
    };
    let most = plan.iter().map(|(connections, ..)| *connections).max().expect("a plan has rows");
    let place = Place::seeded(1, size);
    let ours = Server::start_on_pulse(&place.write_config("process"));
    let bare = Server::reference(Kind::Echo, None);
    let door = Door { key: Some(place.keys[0].expose().to_owned()), ..Door::new(ours.address, "/v1/ws/trade") };
    let open = |door: Door| {
        let open = |_: &Echo| async { door.open().await.map(|(stream, _)| stream) };
        Flights::open(std::iter::repeat_n(Echo(b"PING".to_vec()), most), open).expect("the server listens")
    };
    let (mut our_flights, mut bare_flights) = (open(door), open(Door::new(bare.address, "/")));
    let mut texts = 0;
    for (connections, in_flight, count) in plan.iter().copied() {
        let name = |what: &str| format!("{connections} x {in_flight}: {what}");
        let mut go = |flights: &mut Flights<Echo>, server: &Server| -> (Reached, u64) {
            let before = server.ticks();
            let reached = flights.run(connections, in_flight, count).expect("it answers");
            assert_eq!(reached.statuses, BTreeMap::from([(200, count as u64)]), "every text comes back");
            texts += count;
            (reached, server.ticks() - before)
        };
        let (mut ratios, mut rates, mut ticks) = (Vec::new(), Vec::new(), [0; 2]);
        let (mut here, mut there) = (nanoseconds(), nanoseconds());
        for _ in 0..size.pick(1, ROUNDS) {
            let (reference, reference_ticks) = go(&mut bare_flights, &bare);
            let (reached, our_ticks) = go(&mut our_flights, &ours);
            ratios.push(reached.rate() / reference.rate());
            rates.push(reached.rate());
            here.add(&reached.latency).expect("histograms of one kind");
            there.add(&reference.latency).expect("histograms of one kind");
            ticks = [ticks[0] + our_ticks, ticks[1] + reference_ticks];
        }
        rates.sort_by(f64::total_cmp);
        report.figure(&name("texts, median of the rounds"), rates[rates.len() / 2], "a second");
        report.ratio(&name("beside the frame library alone"), ratios);
        let micros = |ticks: u64| ticks as f64 * TICK_MICROS / (size.pick(1, ROUNDS) * count) as f64;
        report.figure(&name("processor time, ours"), micros(ticks[0]), "us");
        report.figure(&name("processor time, library"), micros(ticks[1]), "us");
        report.percentiles(&name("ours"), &here);
        report.percentiles(&name("library"), &there);
    }
    report.computed(texts.to_le_bytes());
    report.not_included("TLS, a network; the load takes its part of the same cores");
}
