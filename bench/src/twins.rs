//! Orders over HTTP on two servers that differ in one thing, in alternating rounds.
//!
//! Both have the same users and the same constant books, and the load has a core of its own. The idle server is stopped
//! with all its threads.

use crate::http::Users;
use crate::report::{Report, Size, median};
use crate::seeded::Place;
use crate::server::Server;

/// Connections, requests in flight on each, requests of all rounds together. Nine of ten orders rest, and a user has
/// 65,536 open orders at most, so more rounds are shorter ones.
const ROWS: [(usize, usize, usize); 3] = [(16, 1, 300_000), (64, 1, 300_000), (16, 16, 600_000)];
const SMALL_ROWS: [(usize, usize, usize); 1] = [(2, 1, 40)];

/// Orders of all users before the first round, with one in flight and with two.
const WARMING: usize = 4_000;

/// One of the two, with its users.
pub struct Twin {
    place: Place,
    server: Server,
    users: Users,
}

impl Twin {
    /// Of a server that is ready. It is stopped until its first round.
    pub fn of(place: Place, server: Server, token: &str) -> Twin {
        let users = Users::connect(server.address, &place, token, "twin");
        server.pause();
        Twin { place, server, users }
    }

    /// Users that each of them needs.
    pub fn users_count(size: Size) -> usize {
        rows(size).iter().map(|(connections, ..)| *connections).max().expect("rows")
    }
}

fn rows(size: Size) -> &'static [(usize, usize, usize)] {
    size.pick(&SMALL_ROWS[..], &ROWS[..])
}

/// Compares the second with the first, which lacks what `what` names; the ratio of a row is the median of its `rounds`.
pub fn compare(mut twins: [Twin; 2], what: &str, rounds: usize, size: Size, report: &mut Report) {
    // A connection without a request is closed after some seconds, and most wait longer for their round.
    let most = Twin::users_count(size);
    let warming = most.max(size.pick(0, WARMING));
    for Twin { server, users, .. } in &mut twins {
        server.resume();
        for in_flight in [1, 2] {
            users.go((most, in_flight, warming));
        }
        server.pause();
    }
    let mut orders = 2 * warming as u64;
    let rounds = size.pick(1, rounds);
    for (connections, in_flight, all) in rows(size).iter().copied() {
        let count = all / rounds;
        let (mut ratios, mut rates) = (Vec::new(), [Vec::new(), Vec::new()]);
        // The first round of a row is cold.
        for round in 0..=rounds {
            orders += count as u64;
            let mut reached = [0.0; 2];
            // The order alternates: the second inherits the state of the machine from the first.
            for at in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
                let Twin { server, users, .. } = &mut twins[at];
                server.resume();
                reached[at] = users.go((connections, in_flight, count)).rate();
                server.pause();
            }
            if round > 0 {
                ratios.push(reached[1] / reached[0]);
                (0..2).for_each(|at| rates[at].push(reached[at]));
            }
        }
        let name = format!("{connections} x {in_flight}");
        report.figure(&format!("{name}: orders without {what}"), median(&rates[0]), "a second");
        report.figure(&format!("{name}: orders with {what}"), median(&rates[1]), "a second");
        report.ratio_to_itself(&format!("{name}: with {what} beside without"), ratios);
    }
    for Twin { place, mut server, users } in twins {
        drop(users);
        server.resume();
        server.kill();
        let kept = place.kept();
        assert_eq!(kept.orders, orders, "what was acknowledged is in the log, and nothing else");
        report.computed(kept.text);
    }
    report.rate_note("none: as many in flight as a row says, the next when one is answered");
    report.durability("process");
    report.not_included("a feed beside it (the books are constant), TLS, a network");
}
