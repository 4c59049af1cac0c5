//! Reads of one market over HTTP while the feed changes its book 100,000 times a second, compared with a bare hyper
//! server that sends the same bytes; in alternating rounds, on the same core, with the load on another. The idle server
//! is stopped, together with its feed. Every check is on: requests without a key are counted by address, with limits
//! that are not reached. A refused read fails the run, and counts for no rate.

use crate::flight::{Answer, Flights, Speaks};
use crate::floor::Floor;
use crate::load;
use crate::pulse::{self, Beats};
use crate::reference::{Kind, hyper_floor};
use crate::report::{Report, Size, nanoseconds, timed};
use crate::seats::Seats;
use crate::seeded::Place;
use crate::server::TICK_MICROS;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

const ROUNDS: usize = 5;
/// Changes of a burst, and its interval: together 100,000 a second.
const CHANGES: u32 = 100;
const EVERY_US: u64 = 1_000;
/// With fewer changes the result would answer another question.
const CHANGES_FLOOR: Floor = Floor { of: "changes of the book", least: 90_000.0 };
/// The largest possible value, since several servers receive requests within a minute.
const LIMITS: &str =
    "[limits]\nmeter_loopback = true\npublic_ip_per_second = 1000000\npublic_ip_per_minute = 1000000\n";

pub fn run(size: Size, report: &mut Report) {
    let seats = Seats::take(report);
    let [token, _] = pulse::tokens();
    let targets = [
        ("book", format!("/v1/book?token_id={token}")),
        ("midpoint", format!("/v1/midpoint?token_id={token}")),
        ("price", format!("/v1/price?token_id={token}&side=BUY")),
    ];
    // (connections, in flight on each, requests of one round)
    let plan: &[(usize, usize, usize)] =
        size.pick(&[(2, 2, 40)][..], &[(1, 1, 4_000), (16, 1, 30_000), (64, 1, 30_000), (16, 16, 60_000)][..]);
    let most = plan.iter().map(|(connections, ..)| *connections).max().expect("a plan has rows");
    for (what, target) in &targets {
        // A server for each row: none may exceed what an address may request in a minute.
        let place = Place::seeded(1, size);
        let config = place.write_config("process");
        let text = std::fs::read_to_string(&config).expect("just written");
        std::fs::write(&config, text.replacen("[limits]\n", LIMITS, 1)).expect("room for a configuration");
        let mut ours = seats.start_on_pulse(&config);
        let sample = one_answer(ours.address, target);
        let template = place.path().join(what);
        std::fs::write(&template, &sample).expect("room for an answer");
        let bare = seats.reference(Kind::Hyper, Some(&template));
        let open = |address: SocketAddr| {
            let readers = (0..most).map(|_| Reader::new(target));
            Flights::open(readers, move |_| tokio::net::TcpStream::connect(address)).expect("the server listens")
        };
        let (mut here, mut beside) = (open(ours.address), open(bare.address));
        // A connection without a request is closed after some seconds.
        for flights in [&mut here, &mut beside] {
            flights.run(most, 1, most).expect("the server answers");
        }
        for (connections, in_flight, count) in plan.iter().copied() {
            let name = |row: &str| format!("{what}, {connections} x {in_flight}: {row}");
            let (mut ratios, mut rates, mut bare_rates) = (Vec::new(), Vec::new(), Vec::new());
            let (mut reading, mut answering) = (nanoseconds(), nanoseconds());
            let (mut ticks, mut refused, mut changes) = (0, 0, Vec::new());
            for _ in 0..size.pick(1, ROUNDS) {
                let texts = ours.paused(|| beside.run(connections, in_flight, count)).expect("the reference answers");
                // As long as a round can last; stopped after it.
                let times = size.pick(20, 20_000);
                let begun = ours.ticks();
                let (seconds, (reads, applied)) = bare.paused(|| {
                    timed(|| {
                        ours.tell(Beats { changes: CHANGES, times, every_us: EVERY_US, whole: false });
                        let reads = here.run(connections, in_flight, count).expect("the server answers");
                        ticks += ours.ticks() - begun;
                        (reads, ours.rest())
                    })
                });
                changes.push(applied as f64 / seconds);
                texts.check_well(count);
                // A feed that loses its core in the middle of a write delays its readers: some might give up.
                let well = reads.statuses.get(&200).copied().unwrap_or_default();
                refused += count as u64 - well;
                let rate = well as f64 / reads.seconds;
                rates.push(rate);
                bare_rates.push(texts.rate());
                ratios.push(rate / texts.rate());
                reading.add(&reads.latency).expect("histograms of one kind");
                answering.add(&texts.latency).expect("histograms of one kind");
            }
            report.middle(&name("median of the rounds"), &rates, "a second");
            report.middle(&name("changes applied meanwhile"), &changes, "a second");
            let references = [(hyper_floor(connections, in_flight), &bare_rates[..]), (&CHANGES_FLOOR, &changes[..])];
            report.ratio_above(&references, &name("beside a bare hyper"), ratios);
            let micros = ticks as f64 * TICK_MICROS / (size.pick(1, ROUNDS) * count) as f64;
            report.figure(&name("processor time, with the feed's"), micros, "us");
            report.figure(&name("refused"), refused as f64, "");
            if refused > 0 {
                report.failed(name(&format!("{refused} reads were refused, and no read may be")));
            }
            report.percentiles(&name("ours"), &reading);
            report.percentiles(&name("bare hyper"), &answering);
        }
        report.note(&format!("{what}: answer"), format!("{} bytes of JSON from both", sample.len()));
        report.computed(standing(&one_answer(ours.address, target)));
    }
    report.rate_note(
        "100,000 changes a second of one level of that book, applied as each row says; reads as fast as they go",
    );
    report.not_included("TLS, a network");
}

/// Sends the same request repeatedly.
struct Reader {
    request: Vec<u8>,
}

impl Reader {
    fn new(target: &str) -> Reader {
        Reader { request: format!("GET {target} HTTP/1.1\r\nHost: bench\r\n\r\n").into_bytes() }
    }
}

impl Speaks for Reader {
    fn request(&mut self, _: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.request);
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let (status, length) = load::head(bytes)?;
        (bytes.len() >= length).then_some(Answer { bytes: length, number: None, status })
    }
}

/// The part of an answer that is the same each time: of a book the levels except the changing one, else the price
/// without its age.
fn standing(answer: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(answer).expect("the server answers JSON");
    let sides: Vec<_> = ["bids", "asks"].iter().filter_map(|side| answer[side].as_array()).collect();
    if sides.is_empty() {
        return ["mid", "price"].iter().filter_map(|name| answer[name].as_str()).collect();
    }
    let changing = format!("0.{}", pulse::BEAT_CENTS);
    let levels = sides.into_iter().flatten().filter(|level| level["price"] != changing.as_str());
    levels.map(|level| format!("{level}\n")).collect()
}

/// The body of the answer to a read.
fn one_answer(address: SocketAddr, target: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(&Reader::new(target).request).expect("the server reads");
    let (mut answer, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let read = stream.read(&mut piece).expect("the server answers");
        assert!(read > 0, "the server answers in full");
        answer.extend_from_slice(&piece[..read]);
        if let Some((status, bytes)) = load::head(&answer)
            && answer.len() >= bytes
        {
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
            let body = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends");
            return answer.split_off(body + 4);
        }
    }
}
