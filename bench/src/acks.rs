//! Acknowledgements a second for one thread that keeps 1,024 records in flight. Our log publishes one durable mark that
//! the thread compares with; other logs wake a waiter for each record.

use crate::journal::{Journal, options, read_back};
use crate::peers;
use crate::raw::{Raw, SYNC_FLOOR, with_short_slice};
use crate::report::{Report, Size, timed};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

const ROUNDS: usize = 9;
/// Most records appended and not yet acknowledged.
const IN_FLIGHT: u64 = 1_024;
/// Longest sleep before the next look, even without a wake-up.
const PATIENCE: Duration = Duration::from_millis(100);

pub fn run(size: Size, report: &mut Report) {
    let ((), slice) = with_short_slice(|| measure(size, report));
    report.note("slice of the threads", slice);
    report.rate_note("none: 1,024 in flight, the next when one is acknowledged");
    report.durability("power: acknowledged when a sync has covered it");
    report.not_included("encoding the facts, making segments, a device that acknowledges too early");
}

fn measure(size: Size, report: &mut Report) {
    let count = size.pick(4 * IN_FLIGHT, 250_000);
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut raw = Raw::filled(size.pick(1 << 20, 16 << 20));
    let (mut ours_rates, mut probes) = (Vec::new(), Vec::new());
    let mut others = vec![(Vec::new(), Vec::new()); peers::FLIGHT.len()];
    for round in 0..size.pick(1, ROUNDS) {
        probes.push(raw.probe());
        let directory = place.path().join(format!("ours-{round}"));
        let ours = count as f64 / ours(&directory, size, count);
        let (kept, digest) = read_back(&directory);
        assert_eq!(kept, count, "what was acknowledged is read back");
        report.computed(digest);
        ours_rates.push(ours);
        if report.with_peers() {
            for (peer, (rates, ratios)) in peers::FLIGHT.iter().zip(&mut others) {
                let fewer = (count / peer.slower_by).max(IN_FLIGHT);
                let directory = place.path().join(format!("{}-{round}", peer.name));
                let rate = fewer as f64 / (peer.fly)(&directory, IN_FLIGHT, fewer);
                rates.push(rate);
                ratios.push(ours / rate);
            }
        }
    }
    report.middle("1024 in flight: acknowledged", &ours_rates, "records a second");
    for (peer, (rates, ratios)) in peers::FLIGHT.iter().zip(others).filter(|(_, (rates, _))| !rates.is_empty()) {
        report.middle(&format!("1024 in flight: {}", peer.way), &rates, "records a second");
        report.ratio_above(&[(&SYNC_FLOOR, &probes)], &format!("1024 in flight: beside {}", peer.way), ratios);
    }
}

/// Seconds from the first append until all records are acknowledged, with a sync thread as in a server.
fn ours(directory: &std::path::Path, size: Size, count: u64) -> f64 {
    let appender: Arc<OnceLock<Thread>> = Arc::default();
    let sleeper = appender.clone();
    let waker = Box::new(move |_| {
        if let Some(thread) = sleeper.get() {
            thread.unpark();
        }
    });
    let Journal { running, .. } = Journal::create_with(directory, options(size.pick(1 << 20, 64 << 20)), waker);
    let wal::Running { mut log, mut syncer, marks, .. } = running;
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                if syncer.turn().expect("the disk syncs") == wal::Progress::Idle {
                    syncer.wait(PATIENCE);
                }
            }
        });
        appender.set(std::thread::current()).expect("set once");
        let before = log.last_lsn().0;
        let (seconds, ()) = timed(|| {
            let (mut appended, mut acknowledged) = (0, 0);
            while acknowledged < count {
                while appended < count && appended - acknowledged < IN_FLIGHT {
                    let done = log.append(wal::Kind::Mutations, 1, appended, 1, &crate::journal::PAYLOAD);
                    done.expect("there are spares for all of them");
                    appended += 1;
                }
                let synced = marks.synced().0.saturating_sub(before);
                if synced == acknowledged {
                    // A wake-up that came in between makes this return immediately.
                    std::thread::park_timeout(PATIENCE);
                }
                acknowledged = synced;
            }
        });
        stop.store(true, Ordering::Release);
        marks.wake();
        seconds
    })
}
