//! Correction of a wrong clock by an operator: a stopped directory whose newest record is in the future continues from
//! now.
//!
//! One fact records it, [`MarketMutation::ClockSetBack`], in the one record whose time may be before that of the record
//! before it. Before this record nothing has changed that counts; after it, the correction is complete. From there on,
//! everything that the state has at a later time counts as of now ([`State::set_back`]); records of the log are
//! unchanged.
//!
//! [`State::set_back`]: engine::shard::replay::State::set_back

use crate::directory_venue;
use engine::fact;
use engine::id::{MARKETS, UserId};
use engine::market::mutation::MarketMutation;
use engine::mutation::codec;
use engine::shard::replay::State;
use engine::time::Timestamp;
use host::leap;
use journal::recover::{self, RecoverError, Recovery};
use std::fmt;
use std::io;
use std::path::Path;
use wal::{Dir, Files, Lsn, Options, Running};
use wire::instant::ts_text;

/// The beginning of 2026: a correct clock cannot be earlier.
const EARLIEST: Timestamp = Timestamp(1_767_225_600_000_000);

/// Why nothing was set back.
#[derive(Debug)]
pub enum SetBackError {
    /// The directory is in use, damaged, or has no log.
    Log(RecoverError),
    /// There is no record.
    Empty,
    /// The wall clock is not before the newest record.
    NotBehind { newest: Timestamp, now: Timestamp },
    /// The wall clock cannot be right.
    Impossible { now: Timestamp },
    /// Rows of a user that have left memory are later than the wall clock: their times cannot be limited.
    Departed { user: UserId, newest: Timestamp, now: Timestamp },
    /// A file beside the log could not be read or written.
    Io { what: &'static str, error: io::Error },
}

impl fmt::Display for SetBackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetBackError::Log(error @ RecoverError::Log(wal::Error::Locked { .. })) => {
                write!(f, "{error}: stop it first")
            }
            SetBackError::Log(error) => error.fmt(f),
            SetBackError::Empty => f.write_str("there is no log in this directory: nothing to set back"),
            SetBackError::NotBehind { newest, now } => write!(
                f,
                "the wall clock says {}, and the newest record is of {}: it is not in the future, so there is nothing \
                 to set \
                 back. Check the clock of this machine.",
                ts_text(*now),
                ts_text(*newest)
            ),
            SetBackError::Impossible { now } => {
                write!(f, "the wall clock says {}, which cannot be right: correct it first", ts_text(*now))
            }
            SetBackError::Departed { user, newest, now } => write!(
                f,
                "the wall clock says {}, but orders of user {user} are of {} and have left memory for the history store, \
                 where their times cannot be corrected. Nothing was changed. Restore a backup, or wait until the clock has \
                 passed that time",
                ts_text(*now),
                ts_text(*newest)
            ),
            SetBackError::Io { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for SetBackError {}

impl From<RecoverError> for SetBackError {
    fn from(error: RecoverError) -> SetBackError {
        SetBackError::Log(error)
    }
}

impl From<wal::Error> for SetBackError {
    fn from(error: wal::Error) -> SetBackError {
        SetBackError::Log(error.into())
    }
}

/// What was set back, or would be with `dry_run` off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetBack {
    /// Time of the newest record.
    pub from: Timestamp,
    /// Where journal time continues.
    pub to: Timestamp,
    /// The record of the correction; `None`: nothing was written.
    pub lsn: Option<Lsn>,
    /// Why the price history was not set back; it may still have prices of the future.
    pub history_left: Option<String>,
}

/// Sets the journal time of a stopped directory back to `now`, by the wall clock. With `dry_run` it only reports what
/// it would do, and changes nothing but the text of the lock file.
///
/// # Errors
/// [`SetBackError`]. Users, orders and markets are then unchanged.
pub fn set_back(directory: &Path, now: Timestamp, dry_run: bool) -> Result<SetBack, SetBackError> {
    let storage = Files::open_existing(directory)?;
    if wal::origin(&storage)?.is_none() {
        return Err(SetBackError::Empty);
    }
    if now < EARLIEST {
        return Err(SetBackError::Impossible { now });
    }
    if dry_run {
        let _locked = Dir::open(storage, Options::default())?;
        let (state, report) = recover::look(directory, false)?;
        let from = behind(report.last_time, now)?;
        check_departed(&state, now)?;
        return Ok(SetBack { from, to: now, lsn: None, history_left: None });
    }
    let Recovery { dir, log, state, .. } = recover::recover(directory, Options::default(), 1)?;
    let from = behind(log.last_time, now)?;
    check_departed(&state, now)?;
    // First, so that a repeated call does what a kill left undone. Prices of a recording are in its own time.
    let of_recordings = directory_venue::is_of_recordings(directory);
    let mut history_left = None;
    if !of_recordings.map_err(|error| SetBackError::Io { what: "the names of the venues", error })? {
        // Trading does not depend on it.
        history_left = history::set_back(&directory.join("history"), now.secs()).err().map(|error| error.to_string());
    }
    leap::forget_doubt(directory).map_err(|error| SetBackError::Io { what: "the doubted clock", error })?;
    let Running { mut log, mut syncer, mut preparer, .. } = dir.start(log, now.0, Box::new(|_| {}))?;
    let mut payload = Vec::new();
    codec::encode(
        codec::VERSION_SET_BACK,
        &[MarketMutation::ClockSetBack(fact::ClockSetBack { from, at: now })],
        &mut payload,
    );
    let append = |log: &mut wal::Log| log.append_set_back(codec::VERSION_SET_BACK, MARKETS.0, now.0, &payload);
    let lsn = match append(&mut log) {
        Ok(lsn) => lsn,
        Err(_) => {
            syncer.turn()?;
            preparer.turn()?;
            append(&mut log).map_err(wal::Error::from)?
        }
    };
    // Without room there is no mark of a clean stop, which is not an error.
    let _ = log.append_clean_stop(now.0);
    syncer.finish()?;
    Ok(SetBack { from, to: now, lsn: Some(lsn), history_left })
}

/// The time of the newest record, which must be after `now`.
fn behind(last_time: u64, now: Timestamp) -> Result<Timestamp, SetBackError> {
    let newest = Timestamp(last_time);
    if newest > now { Ok(newest) } else { Err(SetBackError::NotBehind { newest, now }) }
}

/// No row that has left memory is later than `now`.
fn check_departed(state: &State, now: Timestamp) -> Result<(), SetBackError> {
    match state.newest_departed() {
        Some((user, newest)) if newest > now => Err(SetBackError::Departed { user, newest, now }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::mutation::Mutation;
    use engine::time::{DAY, SECOND};
    use journal::recover::{digest, look, recover};
    use std::path::PathBuf;
    use wal::Kind;

    const NOW: Timestamp = Timestamp(1_790_932_445_000_000);

    fn options() -> Options {
        Options { segment_bytes: 1 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() }
    }

    /// A directory with a user created at each of these moments.
    fn directory(moments: &[Timestamp]) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().expect("a temporary directory");
        let data = place.path().join("data");
        let Recovery { dir, log, .. } = recover(&data, options(), 1).expect("a new log");
        let first = moments.first().copied().unwrap_or(NOW);
        let Running { mut log, syncer, .. } = dir.start(log, first.0, Box::new(|_| {})).expect("room");
        for (number, at) in moments.iter().enumerate() {
            let mut payload = Vec::new();
            codec::encode(
                codec::VERSION,
                &[Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at: *at })],
                &mut payload,
            );
            log.append(Kind::Mutations, codec::VERSION, number as u64 + 1, at.0, &payload).expect("room");
        }
        syncer.finish().expect("a sync");
        (place, data)
    }

    fn created(data: &Path) -> Vec<Timestamp> {
        let (state, _) = look(data, true).expect("a sound log");
        (1..).map_while(|id| state.user(UserId(id)).map(|user| user.created_at)).collect()
    }

    #[test]
    fn journal_time_goes_on_from_now() {
        let year = NOW.plus(365 * DAY);
        let (_place, data) = directory(&[Timestamp(NOW.0 - DAY), year, year.plus(SECOND)]);
        let before = created(&data);
        let dry = set_back(&data, NOW, true).expect("it is in the future");
        assert_eq!(dry, SetBack { from: year.plus(SECOND), to: NOW, lsn: None, history_left: None });
        assert_eq!(created(&data), before, "nothing was written");
        let done = set_back(&data, NOW, false).expect("it is in the future");
        assert_eq!((done.from, done.to), (year.plus(SECOND), NOW));
        assert_eq!(created(&data), [Timestamp(NOW.0 - DAY), NOW, NOW]);
        // The next start, a second later.
        let Recovery { dir, log, state, report } = recover(&data, options(), 2).expect("a sound log");
        assert_eq!((log.last_time, report.last_time), (NOW.0, NOW.0));
        assert_eq!(digest(&state), digest(&look(&data, true).expect("a sound log").0), "by replay");
        let running = dir.start(log, NOW.0 + SECOND, Box::new(|_| {})).expect("room");
        assert_eq!(running.log.last_time(), NOW.0 + SECOND);
        assert!(matches!(
            set_back(&data, NOW, false),
            Err(SetBackError::Log(RecoverError::Log(wal::Error::Locked { .. })))
        ));
    }

    /// A price history that cannot be set back stays as it is, and the log is set back.
    #[test]
    fn a_history_that_cannot_be_read_does_not_hold_up_the_log() {
        let cases: [(&str, &[u8]); 3] = [
            ("history/store/version", b"FJL\x04"),
            ("history/store/version", b"noise"),
            ("history/store/notes.txt", b"mine"),
        ];
        for (name, bytes) in cases {
            let (_place, data) = directory(&[NOW.plus(DAY)]);
            let file = data.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(&file, bytes).expect("written");
            let done = set_back(&data, NOW, false).expect("the log is sound");
            assert!(done.lsn.is_some() && done.history_left.is_some(), "{name}: {done:?}");
            assert_eq!(created(&data), [NOW], "{name}");
            assert_eq!(std::fs::read(&file).expect("it is there"), bytes);
        }
        let (_place, data) = directory(&[NOW.plus(DAY)]);
        assert_eq!(set_back(&data, NOW, false).expect("the log is sound").history_left, None);
        println!("histories that stay: {} cases", cases.len() + 1);
    }

    /// Rows that have left memory are out of reach of a correction before them.
    #[test]
    fn a_clock_before_rows_that_have_left_is_refused() {
        use engine::amount::{Cash, Price, Qty};
        use engine::id::{InstrumentId, KeyId, OrderId, WalletId};
        use engine::order::{CloseReason, OrderTerms, Side};
        use engine::user::WalletKind;
        let (owner, at) = (UserId(7), NOW.plus(DAY));
        let (wallet, order) = (WalletId(owner.object(1)), OrderId(owner.object(2)));
        let (kind, baseline, generation) = (WalletKind::Api, Cash::from_dollars(9), 1);
        let terms = OrderTerms::limit(wallet, KeyId(0), InstrumentId(3), Side::Buy, Price(5_000), Qty(100));
        let facts: [Mutation; 4] = [
            fact::UserCreated { sub: None, email: None, at }.into(),
            fact::WalletOpened { wallet, kind, label: None, baseline, generation, parent: None, at }.into(),
            fact::OrderPlaced { order, terms, counted: true, at }.into(),
            fact::OrderClosed { order, reason: CloseReason::UserCancelled, at: at.plus(SECOND) }.into(),
        ];
        let mut state = State::new(2);
        let users = &mut state.users[engine::shard::shard_of(owner, 2)];
        facts.iter().for_each(|fact| users.apply(owner, fact));
        assert!(check_departed(&state, NOW).is_ok(), "all rows are in memory");
        let users = &mut state.users[engine::shard::shard_of(owner, 2)];
        let leaving = users.leaving(Timestamp(u64::MAX), 0);
        assert_eq!(leaving.len(), 1);
        users.depart(&leaving[0]);
        // (the wall clock, whether it is refused)
        let cases = [(NOW, true), (at, true), (at.plus(SECOND), false), (at.plus(DAY), false)];
        for (now, is_refused) in cases {
            let found = check_departed(&state, now);
            assert_eq!(found.is_err(), is_refused, "{now:?}");
            if let Err(refused) = found {
                assert!(
                    matches!(refused, SetBackError::Departed { user, newest, .. } if (user, newest) == (owner, at.plus(SECOND)))
                );
                let text = refused.to_string();
                assert!(text.contains("user 7") && text.contains("Restore a backup"), "{text}");
            }
        }
        println!("rows that have left: {} cases", cases.len());
    }

    #[test]
    fn a_journal_that_is_not_in_the_future_is_refused_and_unchanged() {
        let (_place, data) = directory(&[NOW]);
        let look_at = || std::fs::read_dir(&data).expect("it is there").count();
        let files = look_at();
        for (now, is_impossible) in [(NOW, false), (NOW.plus(1), false), (NOW.plus(DAY), false), (Timestamp(5), true)] {
            for dry_run in [true, false] {
                let refused = set_back(&data, now, dry_run);
                let expected = match refused {
                    Err(SetBackError::NotBehind { newest, .. }) => !is_impossible && newest == NOW,
                    Err(SetBackError::Impossible { .. }) => is_impossible,
                    _ => false,
                };
                assert!(expected, "{now:?}: {refused:?}");
                assert_eq!((created(&data), look_at()), (vec![NOW], files));
            }
        }
        let nothing = tempfile::tempdir().expect("a temporary directory");
        for dry_run in [true, false] {
            assert!(set_back(&nothing.path().join("none"), NOW, dry_run).is_err());
        }
        println!("refusals: 10 cases");
    }
}
