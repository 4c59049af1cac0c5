//! Snapshot and log to state: what every start goes through, and the tools that only look.

use engine::id::UserId;
use engine::shard::replay::State;
use engine::shard::{replay, snapshot};
use std::fmt;
use std::path::Path;
use std::time::Instant;
use wal::{Dir, Files, Kind, Lsn, Options, Recovered, Scan, Snapshots, Storage};

/// What a start found, for the banner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records replayed behind the snapshot.
    pub records: u64,
    /// The last record.
    pub lsn: Lsn,
    /// The snapshot it began with; [`Lsn::ZERO`] = none.
    pub snapshot: Lsn,
    pub millis: u64,
    /// Bytes of a torn tail that were cut off.
    pub bytes_cut: u64,
    /// The last process stopped in order.
    pub clean_stop: bool,
    pub users: usize,
    pub markets: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lsn == Lsn::ZERO {
            return f.write_str("nothing: a new data directory");
        }
        let Report { records, lsn, millis, bytes_cut, users, .. } = self;
        write!(f, "{records} records up to LSN {lsn} in {millis} ms, {bytes_cut} bytes cut from a torn tail, ")?;
        write!(f, "{users} user{}", if *users == 1 { "" } else { "s" })?;
        if self.snapshot != Lsn::ZERO {
            write!(f, ", behind the snapshot of LSN {}", self.snapshot)?;
        }
        Ok(())
    }
}

/// Why there is no state.
#[derive(Debug)]
pub enum RecoverError {
    Log(wal::Error),
    /// A record or snapshot that is whole, and that this program cannot read.
    Content {
        lsn: Lsn,
        why: String,
    },
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverError::Log(error) => error.fmt(f),
            RecoverError::Content { lsn, why } => write!(f, "record {lsn}: {why}"),
        }
    }
}

impl std::error::Error for RecoverError {}

impl From<wal::Error> for RecoverError {
    fn from(error: wal::Error) -> RecoverError {
        RecoverError::Log(error)
    }
}

/// State with the log positioned behind it.
pub struct Recovery<S: Storage = Files> {
    pub dir: Dir<S>,
    pub log: Recovered<S>,
    pub state: State,
    pub report: Report,
}

/// Locks the directory, reads its newest snapshot and every record behind it into a state of `shards_count` shards, and
/// cuts a torn tail.
///
/// # Errors
/// [`RecoverError`]: the directory is held by another process, promised records are missing, or a format is newer.
pub fn recover(directory: &Path, options: Options, shards_count: usize) -> Result<Recovery, RecoverError> {
    recover_from(Files::open(directory)?, options, shards_count)
}

/// [`recover`] from any storage.
///
/// # Errors
/// As there.
pub fn recover_from<S: Storage>(
    storage: S,
    options: Options,
    shards_count: usize,
) -> Result<Recovery<S>, RecoverError> {
    let begun = Instant::now();
    let dir = Dir::open(storage, options)?;
    let newest = dir.newest_snapshot()?;
    let mut state = match &newest {
        Some(newest) => read_snapshot(&dir.snapshots(), newest, shards_count)?,
        None => State::new(shards_count),
    };
    let mut recovery = dir.recover(newest.as_ref(), false)?;
    while let Some(entry) = recovery.next()? {
        fold(&mut state, &entry)?;
    }
    let log = recovery.finish()?;
    let report = Report {
        records: log.records,
        lsn: log.last_lsn,
        snapshot: newest.map_or(Lsn::ZERO, |newest| newest.lsn),
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        bytes_cut: log.bytes_cut,
        clean_stop: log.clean_stop,
        users: users_count(&state),
        markets: state.markets.len(),
    };
    Ok(Recovery { dir, log, state, report })
}

/// The state of a snapshot, checked against the digest it carries (reliability.md 16).
///
/// # Errors
/// [`RecoverError`] for damage, or bytes that are no state.
pub fn read_snapshot<S: Storage>(
    snapshots: &Snapshots<S>,
    of: &wal::Snapshot,
    shards_count: usize,
) -> Result<State, RecoverError> {
    let content = |why: String| RecoverError::Content { lsn: of.lsn, why };
    let mut reader = snapshots.open(of.lsn)?;
    let state = snapshot::read(&mut reader, shards_count);
    let state = state.map_err(|error| content(format!("the snapshot is no state: {error}")))?;
    if digest(&state) != of.digest {
        return Err(content("the snapshot's state is not the one its digest names".into()));
    }
    Ok(state)
}

/// Makes the facts of one record true.
///
/// # Errors
/// [`RecoverError::Content`] when they cannot be read.
pub fn fold(state: &mut State, entry: &wal::Entry<'_>) -> Result<(), RecoverError> {
    if entry.kind != Kind::Mutations {
        return Ok(());
    }
    replay::fold(state, UserId(entry.owner), entry.version, entry.payload)
        .map(drop)
        .map_err(|error| RecoverError::Content { lsn: entry.lsn, why: error.to_string() })
}

/// Reads the state of a directory without owning or changing it: for tools. With `from_nothing` no snapshot is used,
/// which needs the whole log.
///
/// # Errors
/// [`RecoverError`].
pub fn look(directory: &Path, from_nothing: bool) -> Result<(State, Report), RecoverError> {
    let begun = Instant::now();
    let storage = Files::open_existing(directory)?;
    let snapshots = Snapshots::of(&storage)?;
    let newest = if from_nothing { None } else { snapshots.newest()? };
    let (mut state, mut scan) = match &newest {
        Some(newest) => {
            let state = read_snapshot(&snapshots, newest, 1)?;
            (state, Scan::open(&storage, newest.lsn)?.behind_crc(newest.record_crc))
        }
        None => (State::new(1), Scan::open(&storage, Lsn::ZERO)?),
    };
    let mut report = Report { snapshot: newest.map_or(Lsn::ZERO, |newest| newest.lsn), ..Report::default() };
    while let Some(entry) = scan.next()? {
        fold(&mut state, &entry)?;
        report.records += 1;
    }
    report.lsn = scan.last_lsn();
    report.bytes_cut = match scan.tail() {
        Some(wal::Tail::Torn { bytes }) => bytes,
        _ => 0,
    };
    report.millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    report.users = users_count(&state);
    report.markets = state.markets.len();
    Ok((state, report))
}

/// The state digest; the same for any count of shards.
pub fn digest(state: &State) -> [u8; 32] {
    snapshot::digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
}

/// Users in all shards.
pub fn users_count(state: &State) -> usize {
    state.users.iter().map(|users| users.len()).sum()
}
