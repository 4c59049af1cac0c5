//! Orders over HTTP on a server whose archive is built and whose back-tests run meanwhile, compared with the same server
//! without that work.
//!
//! The work is what the server's own jobs do, in its process and on threads of low priority: hours are built from lines,
//! and back-tests run, one after the other. These threads share the core of the load, so that the server's core is its
//! own.

use crate::backtest;
use crate::hour;
use crate::http;
use crate::report::{Report, Size};
use crate::role::Role;
use crate::seats::Seats;
use crate::seeded::Place;
use crate::twins::{self, Twin};
use engine::backtest::{BookFrame, Job as BackTest};
use host::job::{Job, Next, Work};
use host::thread::Stop;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

const ROUNDS: usize = 10;
/// Memory of the sort, bytes.
const MEMORY_BYTES: u64 = 128 << 20;

pub fn run(size: Size, report: &mut Report) {
    let lines = tempfile::tempdir().expect("a temporary directory");
    let tape = lines.path().join("tape.ndjson");
    hour::write_tape(&tape, None, size.pick(2_000, 250_000));
    let seats = Seats::take(report);
    let twins = [None, Some(tape.as_path())].map(|tape| {
        let place = Place::seeded(Twin::users_count(size), size);
        let token = http::write_tape(&place.tape());
        let config = place.write_config("process");
        let server = match tape {
            Some(tape) => seats.start_working(&config, tape),
            None => seats.start(&config),
        };
        Twin::of(place, server, &token)
    });
    twins::compare(twins, "a build and a back-test", ROUNDS, size, report);
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
