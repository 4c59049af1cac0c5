//! Cost of an idle server; memory of an idle HTTP connection; and memory and processor time of an idle WebSocket, with
//! and without a subscription to a market.

use crate::listeners::{Listeners, subscription};
use crate::report::{Report, Size};
use crate::seeded::Place;
use crate::server::{Server, TICK_MICROS};
use crate::wire::Door;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The server pings each peer every 20 s: the interval includes some pings.
const IDLE: Duration = Duration::from_secs(10);

/// A start prepares spares first; only then is a server idle.
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
            // One-time allocations of the first socket are not part of the next one's cost.
            let first = Listeners::open(&door, 1, subscription).expect("the server listens");
            let before = server.anonymous_bytes();
            let listeners = Listeners::open(&door, count, subscription).expect("descriptors for all of them");
            let grown = server.anonymous_bytes().saturating_sub(before);
            report.figure(&name("memory of one"), grown as f64 / count as f64, "bytes");
            report.figure(&name("processor time of a second"), micros_a_second(&server, size), "us");
            drop((first, listeners));
        }
    }
    report.rate_note("none: no request is sent");
    report.not_included(
        "what the system keeps for a socket outside of the process; pages of the log, which belong to files; memory \
         made ahead of its use (engine.prefault_bytes)",
    );
}

/// No client is connected, and the venue has no changes.
fn idle(size: Size, report: &mut Report) {
    let place = Place::seeded(1, size);
    let server = Server::start_on_pulse(&place.write_config("process"));
    std::thread::sleep(size.pick(Duration::ZERO, SETTLES));
    report.figure("no client: processor time of a second", micros_a_second(&server, size), "us");
}

/// Connections without a request, and those with one answer: from the fast path, and from the HTTP library.
fn idle_connections(size: Size, report: &mut Report) {
    let count = size.pick(5, 1_000);
    let place = Place::seeded(1, size);
    let server = Server::start_on_pulse(&place.write_config_to_weigh());
    let key = place.keys[0].expose();
    let head =
        |target: &str| format!("GET {target} HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nAccept: */*\r\n\r\n");
    let requests = [
        ("without a request", None),
        ("read the balance", Some(head("/v1/account/balance"))),
        ("read a path that does not exist", Some(head("/nothing"))),
    ];
    for (what, request) in requests {
        let open =
            |count| -> Vec<TcpStream> { (0..count).map(|_| spoken(server.address, request.as_deref())).collect() };
        // One-time allocations of the first connection are not part of the next one's cost.
        let first = open(1);
        let before = server.anonymous_bytes();
        let connections = open(count);
        let grown = server.anonymous_bytes().saturating_sub(before);
        report.figure(&format!("{count} connections that {what}: memory of one"), grown as f64 / count as f64, "bytes");
        drop((first, connections));
        // Closed connections leave free memory for the next ones, as in a long-lived server.
        std::thread::sleep(size.pick(Duration::ZERO, SETTLES));
    }
}

/// A connection that has received its answer, if it sent a request.
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

/// Processor time of all its threads while nothing happens.
fn micros_a_second(server: &Server, size: Size) -> f64 {
    let length = size.pick(Duration::from_millis(10), IDLE);
    let ticks = server.ticks();
    std::thread::sleep(length);
    (server.ticks() - ticks) as f64 * TICK_MICROS / length.as_secs_f64()
}
