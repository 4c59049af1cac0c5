//! Snapshot and log to state: used by every start, and by tools that only read.

use engine::id::UserId;
use engine::mutation::codec::CodecError;
use engine::shard::replay::{Record, State};
use engine::shard::{digest as digests, replay, snapshot};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;
use wal::{Dir, Files, Kind, Lsn, Options, Recovered, Scan, Snapshots, Storage};

/// The folder inside a target in which a restore works.
pub const RESTORING: &str = "restoring";
/// Records that [`Replay`] folds together.
const RECORDS_PER_BATCH: usize = 64;
/// With more records than this, a start lists resting orders only after it has read all: listing them takes as long as
/// reading these.
const UNLISTED_FROM: u64 = 100_000;

/// What a start recovered, for the banner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records replayed after the snapshot.
    pub records: u64,
    /// The last record.
    pub lsn: Lsn,
    /// The snapshot it began with; [`Lsn::ZERO`] = none.
    pub snapshot: Lsn,
    pub millis: u64,
    /// Bytes of a torn tail that were cut off.
    pub bytes_cut: u64,
    /// Spare segments that were not empty and were removed: [`Recovered::spares_dirty`].
    pub spares_dirty: u32,
    /// The last process stopped cleanly.
    pub clean_stop: bool,
    pub users: usize,
    pub markets: usize,
    /// Time of the last record, µs since 1970; 0 if there is none.
    pub last_time: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lsn == Lsn::ZERO {
            return f.write_str("nothing: a new data directory");
        }
        let Report { records, lsn, millis, bytes_cut, spares_dirty, users, .. } = self;
        write!(f, "{records} records up to LSN {lsn} in {millis} ms, {bytes_cut} bytes cut from a torn tail, ")?;
        write!(f, "{users} user{}", if *users == 1 { "" } else { "s" })?;
        if self.snapshot != Lsn::ZERO {
            write!(f, ", after the snapshot of LSN {}", self.snapshot)?;
        }
        match spares_dirty {
            0 => Ok(()),
            1 => f.write_str(", 1 spare segment was not empty and was removed (it held no promised record)"),
            _ => write!(
                f,
                ", {spares_dirty} spare segments were not empty and were removed (they held no promised record)"
            ),
        }
    }
}

/// Why recovery failed.
#[derive(Debug)]
pub enum RecoverError {
    Log(wal::Error),
    /// A whole record or snapshot that this program cannot read.
    Content {
        lsn: Lsn,
        why: String,
    },
    /// A restore into the directory was not completed.
    Restoring,
    /// A file that the server keeps beside the log cannot be used.
    Kept(io::Error),
    /// No snapshot covers the records that the log has released.
    Snapshots {
        /// The first record of the log.
        begins: Lsn,
        /// Why each of the snapshots cannot be used, newest first.
        faults: Vec<wal::Error>,
        /// The error of the log without one.
        error: wal::Error,
    },
    /// The records up to here were read, and their state breaks an invariant of money, shares or indexes.
    Broken {
        lsn: Lsn,
        why: String,
    },
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverError::Log(error) => error.fmt(f),
            RecoverError::Content { lsn, why } => write!(f, "record {lsn}: {why}"),
            RecoverError::Restoring => f.write_str(
                "a restore into this directory is under way or was interrupted: remove the directory, and restore \
                 again",
            ),
            RecoverError::Kept(error) => error.fmt(f),
            RecoverError::Snapshots { begins, faults, error } => {
                write!(f, "the log begins at LSN {begins}, and no snapshot covers the records before it: ")?;
                if faults.is_empty() {
                    f.write_str("there is none")?;
                }
                for (place, fault) in faults.iter().enumerate() {
                    write!(f, "{}{fault}", if place == 0 { "" } else { "; " })?;
                }
                write!(
                    f,
                    " (without a snapshot: {error}). Nothing was changed. Put a whole snapshot of this directory back"
                )
            }
            RecoverError::Broken { lsn, why } => write!(f, "the state up to record {lsn} breaks an invariant: {why}"),
        }
    }
}

impl std::error::Error for RecoverError {}

impl From<wal::Error> for RecoverError {
    fn from(error: wal::Error) -> RecoverError {
        RecoverError::Log(error)
    }
}

/// A state, and the log positioned after it.
pub struct Recovery<S: Storage = Files> {
    pub dir: Dir<S>,
    pub log: Recovered<S>,
    pub state: State,
    pub report: Report,
}

/// Locks the directory, reads its newest snapshot and every record after it into a state of `shards_count` shards, and
/// cuts a torn tail.
///
/// # Errors
/// [`RecoverError`]: the directory is held by another process, promised records are missing, or a format is newer.
pub fn recover(directory: &Path, options: Options, shards_count: usize) -> Result<Recovery, RecoverError> {
    let storage = Files::open(directory)?;
    refuse_restoring(directory)?;
    recover_from(storage, options, shards_count)
}

/// A restore is complete once its epoch file is in place, even if an empty folder remains.
fn refuse_restoring(directory: &Path) -> Result<(), RecoverError> {
    let is_left = std::fs::read_dir(directory.join(RESTORING)).is_ok_and(|mut inside| inside.next().is_some());
    if is_left { Err(RecoverError::Restoring) } else { Ok(()) }
}

/// [`recover`] from any storage.
///
/// # Errors
/// As [`recover`].
pub fn recover_from<S: Storage>(
    storage: S,
    options: Options,
    shards_count: usize,
) -> Result<Recovery<S>, RecoverError> {
    let started = Instant::now();
    let dir = Dir::open(storage.clone(), options)?;
    let newest = dir.newest_snapshot()?;
    let used = newest.as_ref().map_or(Lsn::ZERO, |snapshot| snapshot.lsn);
    for lsn in dir.snapshots().list()?.into_iter().filter(|lsn| *lsn > used) {
        tracing::warn!(%lsn, "a damaged snapshot is skipped; an older one and the log replace it");
    }
    let explain = |error| explained(&storage, used, error);
    // It starts to read the end of the log, so it comes before the snapshot.
    let mut recovery = dir.recover(newest.as_ref(), false).map_err(explain)?;
    let mut state = begin_with(&dir.snapshots(), newest.as_ref(), shards_count)?;
    fold(&mut recovery, &mut state).map_err(|error| match error {
        RecoverError::Log(error) => explain(error),
        other => other,
    })?;
    let log = recovery.finish()?;
    let report = Report {
        records: log.records,
        lsn: log.last_lsn,
        snapshot: used,
        millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        bytes_cut: log.bytes_cut,
        spares_dirty: log.spares_dirty,
        clean_stop: log.clean_stop,
        users: users_count(&state),
        markets: state.markets.len(),
        last_time: log.last_time,
    };
    Ok(Recovery { dir, log, state, report })
}

/// A source of records: a log that is about to be owned, or one that is only read.
trait Records {
    fn next(&mut self) -> Result<Option<wal::Entry<'_>>, wal::Error>;
}

impl<S: Storage> Records for wal::Recovery<S> {
    fn next(&mut self) -> Result<Option<wal::Entry<'_>>, wal::Error> {
        wal::Recovery::next(self)
    }
}

impl<S: Storage> Records for Scan<S> {
    fn next(&mut self) -> Result<Option<wal::Entry<'_>>, wal::Error> {
        Scan::next(self)
    }
}

/// The state to which the records are applied: that of the newest snapshot, or an empty one.
fn begin_with<S: Storage>(
    snapshots: &Snapshots<S>,
    newest: Option<&wal::Snapshot>,
    shards_count: usize,
) -> Result<State, RecoverError> {
    newest.map_or_else(|| Ok(State::new(shards_count)), |newest| read_snapshot(snapshots, newest, shards_count))
}

/// Applies all records; returns their number.
fn fold(records: &mut impl Records, state: &mut State) -> Result<u64, RecoverError> {
    let (mut replay, mut count) = (Replay::default(), 0);
    while let Some(entry) = records.next()? {
        count += 1;
        if count == UNLISTED_FROM {
            state.unlist();
        }
        replay.take(state, &entry)?;
    }
    replay.end(state)?;
    state.list_again();
    Ok(count)
}

/// Why a log cannot be read after the snapshot `used`: if it begins later than that, its snapshots are the cause.
fn explained<S: Storage>(storage: &S, used: Lsn, error: wal::Error) -> RecoverError {
    let segments = match &error {
        wal::Error::Format { .. } | wal::Error::Lost(_) => wal::segments(storage).unwrap_or_default(),
        _ => Vec::new(),
    };
    let begins = segments.first().map_or(Lsn::ZERO, |segment| segment.first_lsn);
    if begins <= used.next() {
        return RecoverError::Log(error);
    }
    let Ok(snapshots) = Snapshots::of_start(storage) else { return RecoverError::Log(error) };
    let later = snapshots.list().unwrap_or_default().into_iter().rev().filter(|lsn| *lsn > used);
    let faults = later.filter_map(|lsn| snapshots.verify(lsn).err()).collect();
    RecoverError::Snapshots { begins, faults, error }
}

/// The state of a snapshot, checked against its digest (wal/docs/format.md §5).
///
/// # Errors
/// [`RecoverError`] for damage, or bytes that are not a state.
pub fn read_snapshot<S: Storage>(
    snapshots: &Snapshots<S>,
    of: &wal::Snapshot,
    shards_count: usize,
) -> Result<State, RecoverError> {
    let content = |why: String| RecoverError::Content { lsn: of.lsn, why };
    let mut reader = snapshots.open(of.lsn)?;
    let state = snapshot::read_checked(&mut reader, shards_count, of.digest);
    state.map_err(|error| content(format!("the snapshot does not hold a state: {error}")))
}

/// Applies records in batches: applying a fact waits for memory, and the waits of several records overlap. The state
/// includes all records taken only after [`Replay::end`].
#[derive(Default)]
pub struct Replay {
    waiting: Vec<Waiting>,
    /// Payloads of the waiting records, one after the other.
    bytes: Vec<u8>,
}

struct Waiting {
    lsn: Lsn,
    owner: UserId,
    version: u16,
    payload: Range<usize>,
}

impl Replay {
    /// Takes one record.
    ///
    /// # Errors
    /// [`RecoverError::Content`] if a record cannot be read: this one, or one of the batch. The state is then unusable.
    pub fn take(&mut self, state: &mut State, entry: &wal::Entry<'_>) -> Result<(), RecoverError> {
        if entry.kind != Kind::Mutations {
            return Ok(());
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(entry.payload);
        let payload = begin..self.bytes.len();
        self.waiting.push(Waiting { lsn: entry.lsn, owner: UserId(entry.owner), version: entry.version, payload });
        if self.waiting.len() < RECORDS_PER_BATCH { Ok(()) } else { self.end(state) }
    }

    /// Applies the facts of all records that were taken.
    ///
    /// # Errors
    /// As [`Replay::take`].
    pub fn end(&mut self, state: &mut State) -> Result<(), RecoverError> {
        let Replay { waiting, bytes } = self;
        let record =
            |of: &Waiting| Record { owner: of.owner, version: of.version, payload: &bytes[of.payload.clone()] };
        let records: Vec<Record<'_>> = waiting.iter().map(record).collect();
        if let Err(error) = replay::fold_batch(state, &records) {
            let unreadable = match error {
                CodecError::SetBack { .. } => records.iter().position(replay::is_set_back),
                _ => records.iter().position(|record| !replay::is_readable(record)),
            };
            let lsn = unreadable.map_or(Lsn::ZERO, |at| waiting[at].lsn);
            return Err(RecoverError::Content { lsn, why: error.to_string() });
        }
        waiting.clear();
        bytes.clear();
        Ok(())
    }
}

/// Reads the state of a directory as a start does, without owning or changing it: for tools. With `from_nothing` no
/// snapshot is used, which needs the whole log.
///
/// # Errors
/// [`RecoverError`].
pub fn look(directory: &Path, from_nothing: bool) -> Result<(State, Report), RecoverError> {
    let storage = Files::open_existing(directory)?;
    refuse_restoring(directory)?;
    let newest = if from_nothing { None } else { Snapshots::of_start(&storage)?.newest()? };
    look_from(&storage, newest, from_nothing)
}

/// The states of a directory that begin before that of a start, which have rows in memory that have left it since: from
/// nothing if the whole log is there, else from each older snapshot.
///
/// # Errors
/// [`RecoverError`] of the directory; snapshots that cannot be read are passed over.
pub fn look_before(directory: &Path) -> Result<Vec<State>, RecoverError> {
    if let Ok((whole, _)) = look(directory, true) {
        return Ok(vec![whole]);
    }
    let storage = Files::open_existing(directory)?;
    let snapshots = Snapshots::of_start(&storage)?;
    let newest = snapshots.newest()?.map(|newest| newest.lsn);
    let older = snapshots.list()?.into_iter().filter(|lsn| Some(*lsn) < newest);
    let read = |lsn| Some(look_from(&storage, Some(snapshots.verify(lsn).ok()?), false).ok()?.0);
    Ok(older.filter_map(read).collect())
}

/// The state after a snapshot, or from nothing.
fn look_from(
    storage: &Files,
    newest: Option<wal::Snapshot>,
    from_nothing: bool,
) -> Result<(State, Report), RecoverError> {
    let started = Instant::now();
    let snapshots = Snapshots::of_start(storage)?;
    let used = newest.as_ref().map_or(Lsn::ZERO, |newest| newest.lsn);
    let explain = |error| if from_nothing { RecoverError::Log(error) } else { explained(storage, used, error) };
    let scan = Scan::of_start(storage, newest.as_ref()).map_err(explain)?;
    let mut state = begin_with(&snapshots, newest.as_ref(), 1)?;
    let mut report = Report { snapshot: used, ..Report::default() };
    let Some(mut scan) = scan else { return Ok((state, report)) };
    report.records = fold(&mut scan, &mut state).map_err(|error| match error {
        RecoverError::Log(error) => explain(error),
        other => other,
    })?;
    report.lsn = scan.last_lsn();
    report.last_time = scan.last_time();
    report.bytes_cut = match scan.tail() {
        Some(wal::Tail::Torn { bytes }) => bytes,
        _ => 0,
    };
    report.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    report.users = users_count(&state);
    report.markets = state.markets.len();
    Ok((state, report))
}

/// The state digest; independent of the number of shards.
pub fn digest(state: &State) -> [u8; 32] {
    digests::digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
}

/// The same in an encoding that was stored; `None` if this build does not know it.
pub fn digest_in(encoding: u32, state: &State) -> Option<[u8; 32]> {
    digests::digest_in(encoding, &state.markets, &state.users.iter().collect::<Vec<_>>())
}

/// Users in all shards.
pub fn users_count(state: &State) -> usize {
    state.users.iter().map(|users| users.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::fact;
    use engine::mutation::{Mutation, codec};
    use engine::time::Timestamp;
    use std::path::PathBuf;

    fn options() -> Options {
        Options { segment_bytes: 1 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() }
    }

    /// A directory whose log creates `users` users, one record each; record number `broken` (from 0) ends too early.
    fn directory(users: u64, broken: Option<u64>) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().expect("a temporary directory");
        // Created by the log itself, which accepts only a directory that is private to its user.
        let data = place.path().join("data");
        let dir = Dir::open(Files::open(&data).expect("a directory"), options()).expect("not locked");
        let log = dir.recover(None, false).expect("an empty directory").finish().expect("nothing to read");
        let mut running = dir.start(log, 1, Box::new(|_| {})).expect("room for a log");
        for number in 0..users {
            let mut payload = Vec::new();
            let sub = Some(format!("user {number}"));
            codec::encode(
                codec::VERSION,
                &[Mutation::UserCreated(fact::UserCreated { sub, email: None, at: Timestamp(2) })],
                &mut payload,
            );
            payload.truncate(payload.len() - usize::from(broken == Some(number)));
            let appended = running.log.append(Kind::Mutations, codec::VERSION, number + 1, 2, &payload);
            appended.expect("one segment holds them");
        }
        running.syncer.finish().expect("the disk syncs");
        (place, data)
    }

    #[test]
    fn every_record_is_folded_in_logs_of_any_length() {
        let batch = RECORDS_PER_BATCH as u64;
        let counts = [0, 1, batch - 1, batch, batch + 1, 3 * batch + 7];
        for users in counts {
            let (_place, data) = directory(users, None);
            let (looked, _) = look(&data, true).expect("a sound log");
            let recovery = recover(&data, options(), 3).expect("a sound log");
            assert_eq!((users_count(&looked), recovery.report.users), (users as usize, users as usize));
            for number in 0..users {
                let user = recovery.state.user(UserId(number + 1)).expect("it was made");
                assert_eq!(user.sub(), Some(format!("user {number}").as_str()));
            }
            assert_eq!(digest(&looked), digest(&recovery.state), "{users} users");
        }
        println!("logs: {} cases", counts.len());
    }

    /// A dirty spare is not reported as a torn tail.
    #[test]
    fn the_banner_reports_what_was_recovered() {
        let of =
            |bytes_cut, spares_dirty| Report { records: 3, lsn: Lsn(7), bytes_cut, spares_dirty, ..Report::default() };
        let found = "3 records up to LSN 7 in 0 ms, ";
        let rows = [
            (Report::default(), "nothing: a new data directory".to_owned()),
            (of(0, 0), format!("{found}0 bytes cut from a torn tail, 0 users")),
            (of(9, 0), format!("{found}9 bytes cut from a torn tail, 0 users")),
            (
                of(0, 1),
                format!(
                    "{found}0 bytes cut from a torn tail, 0 users, 1 spare segment was not empty and was removed \
                     (it held no promised record)"
                ),
            ),
            (
                of(9, 2),
                format!(
                    "{found}9 bytes cut from a torn tail, 0 users, 2 spare segments were not empty and were removed \
                     (they held no promised record)"
                ),
            ),
        ];
        for (report, expected) in &rows {
            assert_eq!(report.to_string(), *expected);
        }
        println!("banners: {} cases", rows.len());
    }

    #[test]
    fn the_error_names_an_unreadable_record() {
        let batch = RECORDS_PER_BATCH as u64;
        // (records, the broken one)
        let cases =
            [(1, 0), (3, 1), (batch + 2, batch - 2), (batch + 2, batch - 1), (2 * batch, batch), (batch + 1, batch)];
        for (records, broken) in cases {
            let (_place, data) = directory(records, Some(broken));
            // The start's own record comes first.
            let expected = Lsn(broken + 2);
            for refused in [
                look(&data, true).map(drop).expect_err("broken"),
                recover(&data, options(), 2).map(drop).expect_err("broken"),
            ] {
                let RecoverError::Content { lsn, .. } = refused else { panic!("{refused}") };
                assert_eq!(lsn, expected, "{records} records, number {broken} broken");
            }
        }
        println!("broken records: {} cases", 2 * cases.len());
    }
}
