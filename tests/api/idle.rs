//! What a connection costs that asks for nothing (reliability.md 36).

use std::io::{Read, Write};
use std::net::TcpStream;
use tests::cases::Cases;
use tests::http::connect;
use tests::world::World;

/// Of one connection that is idle, in bytes.
const IDLE_BYTES_MAX: u64 = 16 << 10;
const COUNT: u64 = 400;

/// Resident memory of a process, bytes.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux says it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of its own");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// Connections that have asked once and were answered.
fn rested(world: &World, count: u64, lines: &str) -> Vec<TcpStream> {
    let key = &world.users[0].key;
    let request = format!("GET /v1/account/balance HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n{lines}\r\n");
    (0..count)
        .map(|_| {
            let mut stream = connect(world.server.address()).expect("a connection");
            stream.write_all(request.as_bytes()).expect("it is read");
            assert!(stream.read(&mut [0; 4_096]).expect("an answer") > 0);
            stream
        })
        .collect()
}

#[test]
fn an_idle_connection_costs_little() {
    let cases = Cases::of("idle connections");
    let world = World::start_with(1, |place| {
        place.set("limits.tiers.enterprise", "requests_per_second", "1000000");
        place.set("limits.tiers.enterprise", "requests_per_minute", "1000000");
    });
    // On the short way, by the library, and with as large a head as there may be.
    let large = format!("X-Other: {}\r\n", "x".repeat(15_000));
    for lines in ["", "X-Other: 1\r\n", &large] {
        // What the first ones need is not theirs.
        let mut held = rested(&world, 50, lines);
        let before = resident(world.server.pid());
        held.extend(rested(&world, COUNT, lines));
        let each = resident(world.server.pid()).saturating_sub(before) / COUNT;
        println!("a connection behind {} bytes of head: {each} bytes", lines.len());
        assert!(each <= IDLE_BYTES_MAX, "an idle connection holds {each} bytes behind {} bytes of head", lines.len());
        cases.one();
    }
}
