//! The journal: durations of appends and syncs, bytes that are not durable, room, the result of recovery, and facts
//! about orders since the start.

use super::family::{Family, Writer};
use crate::listeners::CommitLane;
use engine::fee::FeeSource;
use engine::notice::OrderFact;
use engine::shard::{Outbox as _, Room};
use engine::user::RowCounts;
use host::histogram::{Micros, Nanos};
use journal::commit::OrderCounts;
use journal::recover::Report;
use std::fmt::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use wal::{Files, Lsn, Marks, Snapshots, Storage as _};

const APPEND: Family = Family::new(
    "papertape_journal_append_seconds",
    "Copying one record into the mapping of the log; one record in 64 is timed",
);
const SYNC: Family =
    Family::new("papertape_journal_sync_seconds", "One sync of the log; its count is that of all syncs");
const APPENDED: Family = Family::new(
    "papertape_journal_appended_lsn",
    "Number of the last record appended; records are numbered without gaps",
);
const SYNCED: Family = Family::new("papertape_journal_synced_lsn", "Number of the last record on the device");
const UNSYNCED: Family =
    Family::new("papertape_journal_unsynced_bytes", "Bytes of log that loss of power would lose now");
const POISONED: Family = Family::new(
    "papertape_journal_poisoned",
    "1 when a sync has failed or an invariant was broken: the server is ending",
);
const ROOM: Family =
    Family::new("papertape_journal_room_bytes", "Bytes that the log can certainly take without a new segment");
const ROOM_STATE: Family = Family::new(
    "papertape_journal_room_state",
    "2: ample; 1: reserve only, orders are refused and cancels are accepted; 0: none, every write is refused",
);
const SPARES: Family = Family::new("papertape_journal_spares", "Segments prepared and not in use yet");
const SEGMENTS: Family = Family::new("papertape_journal_segments", "Segments in use, the open one among them");
const LOG_BYTES: Family = Family::new("papertape_journal_log_bytes", "Length of the segments in use");
const SNAPSHOT_LSN: Family =
    Family::new("papertape_snapshot_lsn", "Number of the last record in the newest snapshot; 0: there is none");
const SNAPSHOT_AGE: Family = Family::new("papertape_snapshot_age_seconds", "Age of the newest snapshot");
const DISK_FREE: Family =
    Family::new("papertape_disk_free_bytes", "Bytes that the file system of the directory has free for this user");

const RECOVERY: Family = Family::new("papertape_recovery_seconds", "How long this start read snapshot and log");
const RECOVERY_RECORDS: Family =
    Family::new("papertape_recovery_records", "Records that this start replayed after its snapshot");
const RECOVERY_CUT: Family =
    Family::new("papertape_recovery_cut_bytes", "Bytes of a torn tail that this start cut off");
const RECOVERY_LSN: Family = Family::new(
    "papertape_recovery_snapshot_lsn",
    "Number of the last record in the snapshot this start began with; 0: none",
);
const RECOVERY_CLEAN: Family =
    Family::new("papertape_recovery_clean_stop", "1 when the process before this one had stopped cleanly");

const PLACED: Family =
    Family::new("papertape_orders_placed_total", "Orders accepted since the start, filled immediately or resting");
const FILLS: Family =
    Family::new("papertape_fills_total", "Fills since the start: taking at placement, or of resting orders");
const FILLS_BY_FEE: Family = Family::new(
    "papertape_fills_by_fee_source_total",
    "Fills since the start by what decided their fee: the schedule of the market, the table of categories, or nothing",
);
const CLOSED: Family = Family::new(
    "papertape_orders_closed_total",
    "Orders that ended otherwise than by their last fill since the start: cancelled, expired, killed",
);

const OPEN: Family = Family::new("papertape_orders_open", "Resting orders, including those placed before the start");
const IN_MEMORY: Family = Family::new(
    "papertape_orders_in_memory",
    "Resting orders, and those that have ended and not left memory for the history store",
);
const ENDED: Family = Family::new(
    "papertape_ended_in_memory",
    "Rows that have not left memory for the history store: ended orders, all fills, closed positions",
);

/// One append in this many is timed: two readings of the clock cost about as much as an append.
const APPENDS_PER_TIMED: u64 = 64;

/// Meters of the journal, counted while there is a listener to read them.
#[derive(Debug, Default)]
pub struct JournalMeters {
    append: Nanos,
    sync: Micros,
    placed: AtomicU64,
    taken: AtomicU64,
    rested: AtomicU64,
    /// Fills, in the order of [`FeeSource::ALL`].
    by_fee: [AtomicU64; FeeSource::ALL.len()],
    closed: AtomicU64,
    /// Resting orders, by shard.
    open: Box<[AtomicU64]>,
    /// Orders in memory, by shard.
    in_memory: Box<[AtomicU64]>,
    /// Ended orders, fills and closed positions in memory, by shard.
    ended: Box<[[AtomicU64; 3]]>,
}

impl JournalMeters {
    /// Nothing counted yet, for that many shards.
    pub fn new(shards_count: usize) -> JournalMeters {
        let zeros = || (0..shards_count).map(|_| AtomicU64::new(0)).collect();
        let ended = (0..shards_count).map(|_| Default::default()).collect();
        JournalMeters { open: zeros(), in_memory: zeros(), ended, ..JournalMeters::default() }
    }

    /// Records the numbers of orders of a shard, after the records that changed them.
    pub fn note_orders(&self, shard: usize, count: OrderCounts) {
        // Pairs with the Acquire in `Facts::of`, as the facts do.
        self.open[shard].store(count.open as u64, Ordering::Release);
        self.in_memory[shard].store(count.in_memory as u64, Ordering::Release);
        let RowCounts { orders, fills, positions, .. } = count.ended;
        for (figure, count) in self.ended[shard].iter().zip([orders, fills, positions]) {
            figure.store(count as u64, Ordering::Release);
        }
    }

    /// The histogram for the append after record `after`, if that append is timed.
    pub fn times_append(&self, after: Lsn) -> Option<&Nanos> {
        after.0.is_multiple_of(APPENDS_PER_TIMED).then_some(&self.append)
    }

    /// The histogram of syncs.
    pub fn sync(&self) -> &Micros {
        &self.sync
    }

    /// Counts a fact whose record is in flight.
    pub fn fact(&self, fact: &OrderFact) {
        if let OrderFact::Filled { fee, .. } = fact {
            self.by_fee[*fee as usize].fetch_add(1, Ordering::Release);
        }
        let counter = match fact {
            OrderFact::Placed => &self.placed,
            OrderFact::Filled { resting: false, .. } => &self.taken,
            OrderFact::Filled { resting: true, .. } => &self.rested,
            OrderFact::Closed => &self.closed,
        };
        // Pairs with the Acquire in `Facts::of`: a reader that counts the fact sends its marker after the fact's
        // record.
        counter.fetch_add(1, Ordering::Release);
    }
}

/// Facts counted at one moment.
struct Facts {
    placed: u64,
    taken: u64,
    rested: u64,
    by_fee: [u64; FeeSource::ALL.len()],
    closed: u64,
    open: u64,
    in_memory: u64,
    ended: [u64; 3],
}

impl Facts {
    fn of(meters: &JournalMeters) -> Facts {
        // Pairs with the Release in `JournalMeters::fact` and `JournalMeters::note_orders`.
        let [placed, taken, rested, closed] = [&meters.placed, &meters.taken, &meters.rested, &meters.closed]
            .map(|counter| counter.load(Ordering::Acquire));
        let sum = |counts: &[AtomicU64]| counts.iter().map(|count| count.load(Ordering::Acquire)).sum();
        let (open, in_memory) = (sum(&meters.open), sum(&meters.in_memory));
        let of_kind = |kind: usize| meters.ended.iter().map(|rows| rows[kind].load(Ordering::Acquire)).sum();
        let by_fee = meters.by_fee.each_ref().map(|count| count.load(Ordering::Acquire));
        Facts { placed, taken, rested, by_fee, closed, open, in_memory, ended: [0, 1, 2].map(of_kind) }
    }
}

/// The sources of the journal's figures.
pub(super) struct Journal<'a> {
    pub meters: Option<&'a JournalMeters>,
    pub marks: &'a Marks,
    pub lane: &'a CommitLane,
    pub dir: &'a Path,
    pub report: &'a Report,
}

pub(super) fn write(journal: &Journal<'_>, out: &mut Writer<'_>) -> Result<(), Error> {
    let Journal { meters, marks, lane, dir, report } = journal;
    if let Some(meters) = meters {
        out.histograms(&APPEND, [(&[][..], meters.append.counted())])?;
        out.histograms(&SYNC, [(&[][..], meters.sync.counted())])?;
    }
    out.gauge(&APPENDED, marks.appended().0)?;
    out.gauge(&SYNCED, marks.synced().0)?;
    out.gauge(&UNSYNCED, marks.unsynced_bytes())?;
    out.gauge(&POISONED, u32::from(marks.is_poisoned()))?;
    out.gauge(&ROOM, lane.room_bytes())?;
    let room: u32 = match lane.room() {
        Room::Ample => 2,
        Room::ReserveOnly => 1,
        Room::None => 0,
    };
    out.gauge(&ROOM_STATE, room)?;
    out.gauge(&SPARES, marks.spares_ready())?;
    write_files(dir, out)?;
    out.gauge(&RECOVERY, report.millis as f64 / 1e3)?;
    out.gauge(&RECOVERY_RECORDS, report.records)?;
    out.gauge(&RECOVERY_CUT, report.bytes_cut)?;
    out.gauge(&RECOVERY_LSN, report.snapshot.0)?;
    out.gauge(&RECOVERY_CLEAN, u32::from(report.clean_stop))
}

/// Facts of records, unlike the rest: written only once they are as durable as promised.
pub(super) fn write_orders(meters: Option<&JournalMeters>, out: &mut Writer<'_>) -> Result<(), Error> {
    let Some(meters) = meters else { return Ok(()) };
    let Facts { placed, taken, rested, by_fee, closed, open, in_memory, ended } = Facts::of(meters);
    out.counter(&PLACED, placed)?;
    out.counters(&FILLS, [(&[("side", "taking")][..], taken), (&[("side", "resting")][..], rested)])?;
    let sources = FeeSource::ALL.map(|source| [("source", source.name())]);
    out.counters(&FILLS_BY_FEE, sources.iter().map(|labels| &labels[..]).zip(by_fee))?;
    out.counter(&CLOSED, closed)?;
    out.gauge(&OPEN, open)?;
    out.gauge(&IN_MEMORY, in_memory)?;
    let kinds = ["orders", "fills", "positions"].map(|kind| [("kind", kind)]);
    out.gauges(&ENDED, kinds.iter().map(|labels| &labels[..]).zip(ended))
}

/// Figures of the directory. Its files come and go while it is read: a file that cannot be read has no row.
fn write_files(dir: &Path, out: &mut Writer<'_>) -> Result<(), Error> {
    let storage = Files::open_existing(dir).ok();
    let segments = storage.as_ref().and_then(|storage| wal::segments(storage).ok());
    let bytes = segments.as_ref().map(|segments| segments.iter().map(|segment| segment.bytes).sum::<u64>());
    out.gauges(&SEGMENTS, segments.map(|segments| (&[][..], segments.len())))?;
    out.gauges(&LOG_BYTES, bytes.map(|bytes| (&[][..], bytes)))?;
    let newest = storage.as_ref().and_then(|storage| Snapshots::of(storage).ok()?.list().ok()?.pop());
    out.gauge(&SNAPSHOT_LSN, newest.map_or(0, |lsn| lsn.0))?;
    let written = newest.and_then(|lsn| std::fs::metadata(dir.join(wal::snapshot_name(lsn))).ok()?.modified().ok());
    let age = written.and_then(|at| at.elapsed().ok());
    out.gauges(&SNAPSHOT_AGE, age.map(|age| (&[][..], age.as_secs_f64())))?;
    let free = storage.and_then(|storage| storage.free_bytes().ok());
    out.gauges(&DISK_FREE, free.map(|free| (&[][..], free)))
}
