//! The durable rate while two other processes keep the cores busy: the log against itself, in alternating rounds.

use crate::journal::{Journal, read_back};
use crate::raw::{Raw, SYNC_FLOOR, with_short_slice};
use crate::report::{ONE_BY_ONE, Report, Size, timed};
use crate::role::Role;
use std::io::{BufRead, Write};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROUNDS: usize = 7;
const PROCESSES: usize = 2;
/// They occupy their cores before the clock starts, and release them afterwards.
const SETTLE: Duration = Duration::from_millis(50);

pub fn run(size: Size, report: &mut Report) {
    // Started here and not by the measuring thread, whose scheduler slice they would inherit.
    let mut beside: Vec<_> = (0..PROCESSES).map(|_| Busy::start()).collect();
    for (who, group) in [("1 a commit", 1), ("64 a commit", 64)] {
        let (measured, slice) = with_short_slice(|| measure(group, size, &mut beside));
        let Measured { ratios, probes, quiet, busy, kept } = measured;
        report.middle(&format!("{who}: quiet"), &quiet, "records a second");
        report.middle(&format!("{who}: with two busy processes"), &busy, "records a second");
        report.ratio_above(&[(&SYNC_FLOOR, &probes)], &format!("{who}: busy beside quiet"), ratios);
        report.note(&format!("{who}: slice of the thread"), slice);
        report.computed(kept);
    }
    report.rate_note(ONE_BY_ONE);
    report.durability("power: every group is covered by a sync before the next begins");
    report.not_included(
        "encoding the facts, waiting clients, making segments; the busy processes have the kernel's default slice",
    );
}

struct Measured {
    ratios: Vec<f64>,
    probes: Vec<f64>,
    quiet: Vec<f64>,
    busy: Vec<f64>,
    /// Digest of the log's records.
    kept: [u8; 32],
}

fn measure(group: usize, size: Size, beside: &mut [Busy]) -> Measured {
    let place = tempfile::tempdir().expect("a temporary directory");
    let directory = place.path().join("log");
    let mut log = Journal::create(&directory, size.pick(1 << 20, 16 << 20));
    let mut raw = Raw::filled(size.pick(1 << 20, 16 << 20));
    let mut measured =
        Measured { ratios: Vec::new(), probes: Vec::new(), quiet: Vec::new(), busy: Vec::new(), kept: [0; 32] };
    let (commits, rounds) = (size.pick(3, 1_500), size.pick(1, ROUNDS));
    for round in 0..rounds {
        measured.probes.push(raw.probe());
        let mut rate = || {
            log.tend();
            let (seconds, ()) = timed(|| (0..commits).for_each(|_| log.commit(group)));
            (commits * group) as f64 / seconds
        };
        let mut tell = |what: &str| {
            beside.iter_mut().for_each(|busy| busy.tell(what));
            std::thread::sleep(SETTLE);
        };
        let [mut quiet, mut busy] = [0.0; 2];
        // The order alternates: the second run of a round inherits log and device from the first.
        for quiet_is_next in [round.is_multiple_of(2), !round.is_multiple_of(2)] {
            if quiet_is_next {
                quiet = rate();
            } else {
                tell(RUN);
                busy = rate();
                tell(REST);
            }
        }
        measured.ratios.push(busy / quiet);
        measured.quiet.push(quiet);
        measured.busy.push(busy);
    }
    log.end();
    let (kept, digest) = read_back(&directory);
    assert_eq!(kept, (2 * rounds * commits * group) as u64, "every record is read back");
    Measured { kept: digest, ..measured }
}

const RUN: &str = "run";
const REST: &str = "rest";

/// A process that computes while it is enabled; killed when dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Busy {
        let child = Role::Busy.command().stdin(Stdio::piped()).spawn();
        Busy(child.expect("the system starts a process"))
    }

    fn tell(&mut self, what: &str) {
        let stdin = self.0.stdin.as_mut().expect("a pipe was requested");
        stdin.write_all(format!("{what}\n").as_bytes()).expect("it listens");
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs such a process until its standard input is closed.
pub fn be() {
    static RUNS: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        let mut sum = 0_u64;
        loop {
            if !RUNS.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            for number in 0..100_000 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
            }
        }
    });
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        RUNS.store(line == RUN, Ordering::Relaxed);
    }
}
