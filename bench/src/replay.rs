//! The log replayed by the tools: the same state each time, and its speed compared with a start. And the cost of a
//! snapshot of a large state for orders on another thread.

use crate::crowd::{Crowd, Fitting};
use crate::journal::{Journal, options};
use crate::report::{ONE_BY_ONE, Report, Size, nanoseconds, timed};
use crate::steady::{Steady, Timings};
use engine::format::Formats;
use engine::id::UserId;
use engine::mutation::codec;
use engine::shard::replay::State;
use engine::time::Timestamp;
use host::clock::Clock;
use journal::{checkpoint, recover};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wal::{Lsn, Running};

const ROUNDS: usize = 5;

pub fn run(size: Size, report: &mut Report) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let log = place.path().join("log");
    let segment_bytes = size.pick(1 << 20, 64 << 20);
    let fitting = Fitting::of(size.pick(2_000, 1_000_000), size);
    let crowd = Crowd { users: size.pick(20, 10_000), markets: 64, open: fitting.orders };
    let live = write(&log, segment_bytes, crowd);
    report.computed(live);
    report.note("state", crowd.to_string());

    let (mut ratios, mut least) = (Vec::new(), f64::MAX);
    for _ in 0..size.pick(1, ROUNDS) {
        let (start, recovery) = timed(|| recover::recover(&log, options(segment_bytes), 1).expect("a sound log"));
        assert_eq!(recover::digest(&recovery.state), live, "a start restores the state");
        drop(recovery);
        let (replay, (state, seen)) = timed(|| recover::look(&log, true).expect("a sound log"));
        assert_eq!(recover::digest(&state), live, "a replay restores the state");
        ratios.push(start / replay);
        least = least.min(replay / seen.records as f64);
    }
    report.figure("replay from nothing, least of the rounds", 1.0 / least, "records a second");
    report.ratio_to_itself("replay: rate beside that of a start", ratios);

    let recover::Recovery { dir, log: recovered, state, .. } =
        recover::recover(&log, options(segment_bytes), 1).expect("a sound log");
    let (lsn, crc) = (recovered.last_lsn, recovered.last_crc);
    let running = dir.start(recovered, Clock::wall().now().0, Box::new(|_| {})).expect("room for a log");
    beside_trading(running, (&state, lsn, crc), fitting.refused(), size, report);
    report.rate_note(ONE_BY_ONE);
    report
        .durability("the snapshot is synced and read back; the records of the orders beside it are made and not kept");
    report.not_included("a cold page cache; the log of the orders that are timed");
}

/// Writes the log of a crowd; returns the digest of the live state.
fn write(log: &Path, segment_bytes: u64, crowd: Crowd) -> [u8; 32] {
    let mut journal = Journal::create(log, segment_bytes);
    let record = |owner: UserId, now: Timestamp, payload: &[u8]| {
        journal.append(codec::VERSION, owner.0, now.0, payload);
    };
    let (world, out, _) = crowd.fill(record);
    let digest = world.digest();
    drop(out);
    journal.end();
    digest
}

/// Orders one at a time, with and without a thread that writes snapshots. With a reason to refuse, the state is smaller
/// than the goals require.
fn beside_trading(
    running: Running<wal::Files>,
    (state, lsn, crc): (&State, Lsn, u32),
    refused: Option<String>,
    size: Size,
    report: &mut Report,
) {
    let Running { mut snapshots, mut syncer, .. } = running;
    syncer.turn().expect("the disk syncs");
    let crowd = Crowd { users: size.pick(20, 1_000), markets: 64, open: size.pick(200, 10_000) };
    let mut steady = Steady::new(crowd, |_, _, payload: &[u8]| {
        std::hint::black_box(payload);
    })
    .with_ids();
    let piece = size.pick(100, 20_000);
    steady.go(piece);
    let (mut alone, mut beside) = (nanoseconds(), nanoseconds());
    let (mut tails, mut millis) = (Vec::new(), Vec::new());
    for _ in 0..size.pick(1, ROUNDS) {
        let (mut quiet, mut busy, mut pieces) = (Timings::new(), Timings::new(), 0);
        let writing = AtomicBool::new(true);
        let seconds = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (seconds, written) =
                    timed(|| checkpoint::write_snapshot(Formats::Newest, &mut snapshots, state, lsn, crc));
                // Pairs with no other operation: it ends a loop.
                writing.store(false, Ordering::Relaxed);
                written.expect("room for a snapshot");
                seconds
            });
            while writing.load(Ordering::Relaxed) {
                steady.go_one_by_one(piece, &mut busy);
                pieces += 1;
            }
            writer.join().expect("the thread wrote snapshots")
        });
        // As many again without snapshots.
        let (quiet, busy) = (&mut quiet, &busy.placements);
        for _ in 0..pieces {
            steady.go_one_by_one(piece, quiet);
        }
        let p99 = |nanos: &hdrhistogram::Histogram<u64>| nanos.value_at_quantile(0.99) as f64;
        if !busy.is_empty() {
            tails.push(p99(busy) / p99(&quiet.placements));
        }
        millis.push(seconds * 1e3);
        alone.add(&quiet.placements).expect("histograms of one kind");
        beside.add(busy).expect("histograms of one kind");
    }
    syncer.finish().expect("the disk syncs");
    let [of_time, of_tail] =
        ["snapshot, off the hot thread, median", "orders in process: p99 beside a snapshot, of its value alone"];
    match refused {
        Some(why) => [of_time, of_tail].into_iter().for_each(|what| report.refused(what, &why)),
        None => {
            report.middle(of_time, &millis, "ms");
            report.figure("snapshot, greatest", millis.iter().copied().fold(0.0, f64::max), "ms");
            if !tails.is_empty() {
                report.ratio_to_itself(of_tail, tails);
            }
        }
    }
    report.percentiles("order in process, alone", &alone);
    report.percentiles("order in process, beside a snapshot", &beside);
    report.computed(snapshots.verify(lsn).expect("the snapshot is whole").digest);
}
