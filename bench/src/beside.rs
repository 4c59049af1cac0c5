//! Orders over HTTP on a server whose archive is built and whose back-tests run meanwhile, compared with the same server
//! without that work.
//!
//! The work is what the server's own jobs do, in its process and on threads of low priority: hours are built from lines,
//! and back-tests run, one after the other. These threads share the core of the load, so that the server's core is its
//! own. Both servers have the same users; they alternate, and the idle one is stopped with all its threads.

use crate::backtest;
use crate::hour;
use crate::http::{self, Users};
use crate::report::{Report, Size, median};
use crate::role::Role;
use crate::seats::Seats;
use crate::seeded::Place;
use crate::server::Server;
use engine::backtest::{BookFrame, Job as BackTest};
use host::job::{Job, Next, Work};
use host::thread::Stop;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Each has four looks; the ratio of a look is the median of its rounds.
const ROUNDS: usize = 10;
/// Memory of the sort, bytes.
const MEMORY_BYTES: u64 = 128 << 20;

/// Connections, requests in flight on each, requests of one round.
const ROWS: [(usize, usize, usize); 3] = [(16, 1, 30_000), (64, 1, 30_000), (16, 16, 60_000)];
const SMALL_ROWS: [(usize, usize, usize); 1] = [(2, 1, 40)];

pub fn run(size: Size, report: &mut Report) {
    let rows = size.pick(&SMALL_ROWS[..], &ROWS[..]);
    let most = rows.iter().map(|(connections, ..)| *connections).max().expect("rows");
    let lines = tempfile::tempdir().expect("a temporary directory");
    let tape = lines.path().join("tape.ndjson");
    hour::write_tape(&tape, None, size.pick(2_000, 250_000));
    let seats = Seats::take(report);
    let mut servers = [None, Some(tape.as_path())].map(|tape| start(tape, most, &seats, size));
    let mut orders = 0;
    for (connections, in_flight, count) in rows.iter().copied() {
        let (mut ratios, mut rates) = (Vec::new(), [Vec::new(), Vec::new()]);
        // The first round is cold.
        for round in 0..=size.pick(1, ROUNDS) {
            orders += count as u64;
            let mut reached = [0.0; 2];
            // The order alternates: the second inherits the state of the machine from the first.
            for at in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
                let One { server, users, .. } = &mut servers[at];
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
        report.figure(&format!("{name}: orders without that work"), median(&rates[0]), "a second");
        report.figure(&format!("{name}: orders beside it"), median(&rates[1]), "a second");
        report.ratio_to_itself(&format!("{name}: beside a build and a back-test"), ratios);
    }
    for One { place, mut server, users } in servers {
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

/// A server and its users; it is stopped.
struct One {
    place: Place,
    server: Server,
    users: Users,
}

fn start(tape: Option<&Path>, most: usize, seats: &Seats, size: Size) -> One {
    let place = Place::seeded(most, size);
    let token = http::write_tape(&place.tape());
    let config = place.write_config("process");
    let server = match tape {
        Some(tape) => seats.start_working(&config, tape),
        None => seats.start(&config),
    };
    let users = Users::connect(server.address, &place, &token, "beside");
    server.pause();
    One { place, server, users }
}

/// Starts the work on threads of low priority, then does the role. The threads keep the cores of this one.
pub fn work(tape: PathBuf, role: Role) -> Result<(), Box<dyn std::error::Error>> {
    let stop = Stop::new();
    let sleep = Duration::ZERO;
    let builds = Job::new("archive", sleep, move || Builds { tape }).low_priority().start(&stop)?;
    let tests = Job::new("back-test", sleep, BackTests::default).low_priority().start(&stop)?;
    let done = role.run();
    stop.set();
    drop((builds, tests));
    done
}

/// Builds the same hour again and again.
struct Builds {
    tape: PathBuf,
}

impl Work for Builds {
    type Error = io::Error;

    fn take_turn(&mut self, _: &Stop) -> io::Result<Next> {
        let place = tempfile::tempdir()?;
        hour::built(&self.tape, place.path(), MEMORY_BYTES);
        Ok(Next::Again)
    }
}

/// Runs the same back-test again and again.
struct BackTests {
    job: BackTest,
    frames: Vec<BookFrame>,
}

impl Default for BackTests {
    fn default() -> BackTests {
        const TICKS: usize = 200_000;
        BackTests { job: backtest::job(), frames: backtest::frames(&backtest::moments(TICKS)) }
    }
}

impl Work for BackTests {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        backtest::ran(&self.job, &self.frames);
        Ok(Next::Again)
    }
}
