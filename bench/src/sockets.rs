//! What a server costs of which nobody wants anything; what an idle HTTP connection costs: memory; and what an open
//! WebSocket costs that says nothing: memory, and processor time, of those who follow nothing and of those who follow one
//! market.

use crate::listeners::{Listeners, subscription};
use crate::report::{Report, Size};
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use crate::wire::Door;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The server pings each peer every 20 s: some of it lies within.
const IDLE: Duration = Duration::from_secs(10);

/// A start prepares what comes after it; only then is a server idle.
const SETTLES: Duration = Duration::from_secs(3);

pub fn run(size: Size, report: &mut Report) {
    idle(size, report);
    idle_connections(size, report);
    let counts: &[usize] = size.pick(&[5], &[1_000, 10_000]);
    let text = subscription();
    for (what, subscription) in [("nothing", None), ("a market", Some(text.as_str()))] {
        for count in counts.iter().copied() {
            let name = |unit: &str| format!("{count} that follow {what}: {unit}");
            let place = Place::seeded(1, size);
            let server = Server::start_on_pulse(&place.write_config_to_weigh());
            let key = Some(place.keys[0].expose().to_owned());
            let door = Door { key, ..Door::new(server.address, "/v1/ws/market") };
            // Whatever the first one makes is no cost of the next.
            let first = Listeners::open(&door, 1, subscription).expect("the server listens");
            let before = server.anonymous_bytes();
            let listeners = Listeners::open(&door, count, subscription).expect("descriptors for all of them");
            let grown = server.anonymous_bytes().saturating_sub(before);
            report.figure(&name("memory of one"), grown as f64 / count as f64, "bytes");
            report.figure(&name("processor time of a second"), micros_a_second(&server, size), "us");
            drop((first, listeners));
        }
    }
    report.rate_note("none: nobody says anything");
    report.not_included(
        "what the system keeps for a socket outside of the process; pages of the log, which belong to files; memory made \
         ahead of its use (engine.prefault_bytes)",
    );
}

/// Nobody is connected, and the venue says nothing.
fn idle(size: Size, report: &mut Report) {
    let place = Place::seeded(1, size);
    let server = Server::start_on_pulse(&place.write_config("process"));
    std::thread::sleep(size.pick(Duration::ZERO, SETTLES));
    report.figure("nobody is there: processor time of a second", micros_a_second(&server, size), "us");
}

/// Connections that were opened and never spoke, and those that got an answer: on the short way of plain requests, and from
/// the HTTP library.
fn idle_connections(size: Size, report: &mut Report) {
    let count = size.pick(5, 1_000);
    let place = Place::seeded(1, size);
    let server = Server::start_on_pulse(&place.write_config_to_weigh());
    let key = place.keys[0].expose();
    let head =
        |target: &str| format!("GET {target} HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nAccept: */*\r\n\r\n");
    let said = [
        ("never spoke", None),
        ("read the balance", Some(head("/v1/account/balance"))),
        ("asked for nothing there is", Some(head("/nothing"))),
    ];
    for (what, request) in said {
        let open =
            |count| -> Vec<TcpStream> { (0..count).map(|_| spoken(server.address, request.as_deref())).collect() };
        // Whatever the first one makes is no cost of the next.
        let first = open(1);
        let before = server.anonymous_bytes();
        let connections = open(count);
        let grown = server.anonymous_bytes().saturating_sub(before);
        report.figure(&format!("{count} connections that {what}: memory of one"), grown as f64 / count as f64, "bytes");
        drop((first, connections));
        // What they leave is room for the next ones, as it is in a server that lives on.
        std::thread::sleep(size.pick(Duration::ZERO, SETTLES));
    }
}

/// A connection that has got its answer, if it asked for one.
fn spoken(address: SocketAddr, request: Option<&str>) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    if let Some(request) = request {
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut answer = Vec::new();
        let mut room = [0; 4_096];
        while !answer.windows(4).any(|window| window == b"\r\n\r\n") {
            let count = stream.read(&mut room).expect("the server answers");
            assert!(count > 0, "the server ended the connection");
            answer.extend_from_slice(&room[..count]);
        }
    }
    stream
}

/// What all its threads take while nothing happens.
fn micros_a_second(server: &Server, size: Size) -> f64 {
    let length = size.pick(Duration::from_millis(10), IDLE);
    let ticks = server.ticks();
    std::thread::sleep(length);
    (server.ticks() - ticks) as f64 * TICK_MICROS / length.as_secs_f64()
}
