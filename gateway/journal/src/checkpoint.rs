//! Checkpoints: folds sealed segments onto the previous snapshot, and publishes what both kept snapshots cover. After a
//! clean stop the rest of the log follows, if it is long.
//!
//! A job with a state of its own, by the same fold as recovery; serving never pauses. The price is memory for a second
//! copy of the users.

use crate::digests::{DigestRequests, Digested};
use crate::mover::Mover;
use crate::paced::Rests;
use crate::recover::{RecoverError, Replay, read_snapshot};
use crate::spares::Covered;
use engine::format::Formats;
use engine::shard::replay::State;
use engine::shard::{digest, snapshot};
use engine::time::{HOUR, Timestamp};
use engine::user::Users;
use host::job::{JobWaker, Next, Work};
use host::leap::Leap;
use host::thread::Stop;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use wal::{Files, Lsn, Marks, Scan, Snapshots, Storage};

/// This many records after the newest snapshot are worth another one when the server has stopped. A start reads 150,000
/// to 300,000 records a second, so fewer cost it less than reading and checking the snapshot; and a small or
/// short-lived server stops immediately.
const LAST_RECORDS_LEAST: u64 = 50_000;
/// How long it may take: it saves the next start seconds, and is not worth more. A million records after the newest
/// snapshot are read and written within this time. The log has all of them.
pub const LAST_WITHIN: Duration = Duration::from_secs(5);

/// A remembered request stays in snapshots this much longer than its id counts: times of decisions and of records differ
/// a little.
const FORGOTTEN_LATER_US: u64 = HOUR;
/// Requests that are dropped between two rests.
const FORGOTTEN_TOGETHER: usize = 256;

/// The result of a check of the log.
#[derive(Debug, PartialEq, Eq)]
pub enum CheckpointTurn {
    /// Nothing was appended since the last check.
    Unchanged,
    /// No checkpoint is due.
    Enough,
    /// A checkpoint is due, and not possible yet.
    Due,
    Made,
}

/// The job that makes the snapshots.
pub struct Keeper<S: Storage = Files> {
    storage: S,
    snapshots: Snapshots<S>,
    marks: Marks,
    covered: Covered,
    /// Sealed segments between two checkpoints.
    every: usize,
    /// The keeper's own copy of the state, and the record it covers with that record's checksum.
    state: Option<(State, Lsn, u32)>,
    /// Server time of the last record that was folded.
    newest: Timestamp,
    /// How long client order ids count; `None`: no request leaves the copy.
    ids_us: Option<u64>,
    /// The clock of this start: while it is in doubt, no request leaves the copy.
    leap: Option<Arc<Leap>>,
    seen: Lsn,
    /// The formats of new snapshots.
    formats: Formats,
    /// Moves ended rows to the history store; `None`: they stay.
    mover: Option<Mover>,
    /// The pacing of the thread; `None`: it does not rest.
    rests: Option<Rests>,
    requests: Option<DigestRequests>,
    /// The state broke an invariant.
    is_broken: bool,
    /// Takes the keeper after its last turn.
    handover: Option<SyncSender<Keeper<S>>>,
}

impl<S: Storage> Keeper<S> {
    pub fn new(storage: S, snapshots: Snapshots<S>, marks: Marks, every: usize, covered: Covered) -> Keeper<S> {
        Keeper {
            storage,
            snapshots,
            marks,
            covered,
            every,
            state: None,
            newest: Timestamp(0),
            ids_us: None,
            leap: None,
            seen: Lsn::ZERO,
            formats: Formats::Newest,
            mover: None,
            rests: None,
            requests: None,
            is_broken: false,
            handover: None,
        }
    }

    /// Writes snapshots in these formats.
    pub fn writing(self, formats: Formats) -> Keeper<S> {
        Keeper { formats, ..self }
    }

    /// Leaves remembered requests out of the copy, and so of snapshots, when their ids count no longer: after this time,
    /// in µs. Previous formats cannot hold such a state.
    pub fn forgetting(self, ids_us: u64) -> Keeper<S> {
        Keeper { ids_us: self.formats.is_newest().then_some(ids_us), ..self }
    }

    /// Moves ended rows out of the copy, and so out of snapshots and the core. Previous formats cannot hold such a state.
    pub fn moving(self, mover: Mover) -> Keeper<S> {
        Keeper { mover: self.formats.is_newest().then_some(mover), ..self }
    }

    /// Keeps all requests while this clock is in doubt: a correction of it may make their ids count again.
    pub fn doubting(self, leap: Arc<Leap>) -> Keeper<S> {
        Keeper { leap: Some(leap), ..self }
    }

    /// Makes the keeper answer requests for digests while it runs.
    pub fn answering(self, requests: DigestRequests) -> Keeper<S> {
        Keeper { requests: Some(requests), ..self }
    }

    /// Sends itself to `handover` after its last turn, for the checkpoint after a clean stop; unless the state broke an
    /// invariant.
    pub fn handed_to(self, handover: SyncSender<Keeper<S>>) -> Keeper<S> {
        Keeper { handover: Some(handover), ..self }
    }

    /// Paces the writing of a checkpoint with pauses, unless the next checkpoint becomes due before this one is
    /// written. The storages must use the same `rests`.
    pub fn resting(self, rests: Rests) -> Keeper<S> {
        Keeper { rests: Some(rests), ..self }
    }

    /// The digest of the state up to the last record on the device.
    fn digest(&mut self, stop: &Stop) -> Result<Digested, RecoverError> {
        if let Some(rests) = &self.rests {
            // No room and no restart depends on it.
            rests.begin(Lsn(u64::MAX));
        }
        let upto = self.marks.synced();
        // The mark of a clean stop is appended after the stop, and must stay after every kept state.
        if stop.is_set() || self.marks.is_poisoned() {
            return Err(RecoverError::Content { lsn: upto, why: "the server stops".to_owned() });
        }
        self.fold(upto)?;
        let (state, lsn, _) = self.state.as_ref().expect("it was folded");
        let shards: Vec<_> = state.users.iter().collect();
        let digest = digest::digest_while(&state.markets, &shards, |_| {
            self.breathe();
            !stop.is_set()
        });
        let stops = || RecoverError::Content { lsn: *lsn, why: "the server stops".to_owned() };
        let departed_upto = state.users.iter().map(Users::departed_upto).max().unwrap_or(0);
        Ok(Digested { lsn: *lsn, digest: digest.ok_or_else(stops)?, departed_upto })
    }

    /// The checkpoint after a clean stop, which spares the next start the log after the newest snapshot. Returns false
    /// if that is too short or not all on the device. Must be called after the log has ended.
    ///
    /// # Errors
    /// [`RecoverError`], also when it takes too long; the log still has everything.
    pub fn last(&mut self) -> Result<bool, RecoverError> {
        let newest = self.snapshots.list()?.last().copied().unwrap_or(Lsn::ZERO);
        // The last record marks the clean stop, and the next start must read it.
        let upto = self.marks.appended().before();
        if upto.0 < newest.0 + LAST_RECORDS_LEAST || upto > self.marks.synced() || self.marks.is_poisoned() {
            return Ok(false);
        }
        if let Some(rests) = &self.rests {
            rests.end_within(LAST_WITHIN);
        }
        // The snapshot of a stop takes a bounded time, so nothing moves with it.
        self.mover = None;
        self.checkpoint(newest, upto)?;
        Ok(true)
    }

    /// Makes one checkpoint if one is due and possible.
    ///
    /// # Errors
    /// [`RecoverError`]; the next check tries again.
    pub fn look(&mut self) -> Result<CheckpointTurn, RecoverError> {
        let appended = self.marks.appended();
        if appended == self.seen {
            return Ok(CheckpointTurn::Unchanged);
        }
        // A checkpoint that is due but not possible yet, or failed, is tried again.
        let newest = self.snapshots.list()?.last().copied().unwrap_or(Lsn::ZERO);
        let segments = wal::segments(&self.storage)?;
        let newer = segments.iter().filter(|segment| segment.first_lsn > newest).count();
        // The open segment is not sealed.
        if newer <= self.every {
            self.seen = appended;
            if segments.len() - newer > self.every + 1 {
                self.cover()?;
            }
            return Ok(CheckpointTurn::Enough);
        }
        let sealed = wal::sealed_lsn(&self.storage)?;
        if sealed <= newest || sealed > self.marks.synced() {
            return Ok(CheckpointTurn::Due);
        }
        self.checkpoint(newest, sealed)?;
        Ok(CheckpointTurn::Made)
    }

    /// Makes a checkpoint of the records up to `synced` if ended rows press against their bound, before one is due; also
    /// without a new record, since a full memory refuses the orders that would make some. Returns whether it did.
    ///
    /// # Errors
    /// [`RecoverError`]; it is tried again after a pause.
    pub(crate) fn relieve(&mut self, synced: Lsn) -> Result<bool, RecoverError> {
        if synced == Lsn::ZERO || self.marks.is_poisoned() || !self.mover.as_mut().is_some_and(Mover::presses) {
            return Ok(false);
        }
        let newest = self.snapshots.list()?.last().copied().unwrap_or(Lsn::ZERO);
        self.checkpoint(newest, synced.max(newest))?;
        Ok(true)
    }

    /// Publishes what the snapshots of clean stops cover: a server that stops more often than a checkpoint is due
    /// writes no others.
    fn cover(&mut self) -> Result<(), RecoverError> {
        if let Some(rests) = &self.rests {
            rests.begin(Lsn(u64::MAX));
        }
        if let Some(covered) = self.snapshots.covered()?.filter(|covered| *covered <= self.marks.synced()) {
            self.covered.note(covered);
        }
        Ok(())
    }

    /// Folds the log up to `upto`, checks all invariants of that state, writes a snapshot, and publishes which segments
    /// are unnecessary now. The newest snapshot covers the records up to `newest`; `upto` is on the device.
    ///
    /// # Errors
    /// [`RecoverError`]; what was folded is kept.
    pub fn checkpoint(&mut self, newest: Lsn, upto: Lsn) -> Result<(), RecoverError> {
        // A digest may have been made of a later state, all of it on the device.
        let upto = self.state.as_ref().map_or(upto, |(_, folded, _)| upto.max(*folded));
        if let Some(rests) = &self.rests {
            // After as many records again as this checkpoint covers, the next one is due: from then on the bound of the
            // disk goes before the latency of orders.
            rests.begin(Lsn(upto.0 + (upto.0 - newest.0)));
        }
        self.fold(upto)?;
        self.forget();
        let (state, ..) = self.state.as_ref().expect("it was folded");
        if let Err(why) = state.users.iter().try_for_each(|users| users.check_each(|| self.breathe())) {
            // A broken invariant is as final as a failed sync (wal/docs/durability.md §4).
            self.marks.poison();
            self.marks.wake();
            return Err(RecoverError::Broken { lsn: upto, why });
        }
        self.move_ended();
        let (state, _, crc) = self.state.as_ref().expect("it was folded");
        write_snapshot(self.formats, &mut self.snapshots, state, upto, *crc)?;
        self.mover.iter_mut().for_each(Mover::published);
        if let Some(covered) = self.snapshots.covered()? {
            self.covered.note(covered);
        }
        Ok(())
    }

    /// Folds the log up to `upto` onto the copy. If it is interrupted, for instance by a stop, what was folded is kept.
    fn fold(&mut self, upto: Lsn) -> Result<(), RecoverError> {
        let (mut state, mut lsn, mut crc) = match self.state.take() {
            Some(copy) => copy,
            None => match self.snapshots.newest()? {
                Some(newest) => (read_snapshot(&self.snapshots, &newest, 1)?, newest.lsn, newest.record_crc),
                None => (State::new(1), Lsn::ZERO, 0),
            },
        };
        // The copy serves no requests.
        state.unlist();
        let mut replay = Replay::default();
        let mut folded = Ok(());
        // Records that were folded but could not be written to a snapshot are not read again.
        let scan = (lsn < upto).then(|| Scan::open(&self.storage, lsn).map(|scan| scan.until(upto).after_crc(crc)));
        match scan {
            None => {}
            Some(Err(error)) => folded = Err(error),
            Some(Ok(mut scan)) => loop {
                match scan.next() {
                    Ok(Some(entry)) => {
                        (lsn, crc) = (entry.lsn, entry.crc);
                        self.newest = Timestamp(entry.time);
                        replay.take(&mut state, &entry)?;
                    }
                    Ok(None) => {
                        (lsn, crc) = (upto, scan.last_crc());
                        break;
                    }
                    Err(error) => {
                        folded = Err(error);
                        break;
                    }
                }
            },
        }
        replay.end(&mut state)?;
        self.state = Some((state, lsn, crc));
        Ok(folded?)
    }

    /// Drops remembered requests whose ids count no longer, in the server time of the last record. Requests that a start
    /// decides are later.
    fn forget(&mut self) {
        let Some(ids_us) = self.ids_us else { return };
        if self.leap.as_ref().is_some_and(|leap| leap.is_in_doubt()) {
            return;
        }
        let since = Timestamp(self.newest.0.saturating_sub(ids_us.saturating_add(FORGOTTEN_LATER_US)));
        let Some((mut state, lsn, crc)) = self.state.take() else { return };
        for users in &mut state.users {
            while users.forget_requests(since, FORGOTTEN_TOGETHER) {
                self.breathe();
            }
        }
        self.state = Some((state, lsn, crc));
    }

    /// Moves ended rows from the copy to the history store. While the clock is in doubt none does: a correction limits the
    /// times of rows in memory only.
    fn move_ended(&mut self) {
        let is_in_doubt = self.leap.as_ref().is_some_and(|leap| leap.is_in_doubt());
        let (Some(mover), Some((state, lsn, crc)), false) = (&mut self.mover, &mut self.state, is_in_doubt) else {
            return;
        };
        let rests = &self.rests;
        for users in &mut state.users {
            mover.move_ended(users, (*lsn, *crc), self.newest, || rests.iter().for_each(Rests::breathe));
            // The copy has one shard.
            mover.decide_cut(users, state.markets.history_from(), self.newest);
        }
    }

    fn breathe(&self) {
        if let Some(rests) = &self.rests {
            rests.breathe();
        }
    }
}

/// After a failed turn serving continues; the log grows until a later turn succeeds.
impl<S: Storage> Work for Keeper<S> {
    type Error = RecoverError;

    const FAILED: &'static str = "no snapshot could be written";

    fn take_turn(&mut self, stop: &Stop) -> Result<Next, RecoverError> {
        while !stop.is_set()
            && let Some(answer) = self.requests.as_ref().and_then(|of| of.requests.try_recv().ok())
        {
            // The requester may have gone.
            let _ = answer.send(self.digest(stop));
        }
        // Read before the flag: the mark of a clean stop is appended after that, and must stay after every kept state.
        let synced = self.marks.synced();
        if stop.is_set() {
            return Ok(Next::Wait);
        }
        self.mover.iter_mut().for_each(Mover::turn);
        let looked = match self.relieve(synced) {
            Ok(false) => self.look(),
            relieved => relieved.map(|_| CheckpointTurn::Made),
        };
        match looked {
            Ok(CheckpointTurn::Made) => Ok(Next::Again),
            Ok(CheckpointTurn::Enough) => Ok(Next::Sleep),
            // A due checkpoint that has to wait proves nothing about the storage that failed.
            Ok(CheckpointTurn::Due | CheckpointTurn::Unchanged) => Ok(Next::Wait),
            Err(error @ RecoverError::Broken { .. }) => {
                // The sync thread finds the log poisoned and ends the server. The segments stay as evidence.
                tracing::error!(%error, "the state breaks an invariant: no snapshot is written, and the server \
                    stops; keep the data directory and restore a backup");
                self.is_broken = true;
                Ok(Next::Over)
            }
            // An unfinished snapshot is removed later, and what was folded is kept.
            Err(_) if stop.is_set() => Ok(Next::Wait),
            Err(error) => Err(error),
        }
    }

    fn end(mut self) {
        // Later requests must not wait.
        self.requests = None;
        if !self.is_broken
            && let Some(handover) = self.handover.take()
        {
            // The receiver is gone if the start was given up.
            let _ = handover.send(self);
        }
    }

    fn waker(&self) -> Option<&JobWaker> {
        self.requests.as_ref().map(|requests| &requests.waker)
    }
}

/// Writes a snapshot of `state` that covers all records up to `lsn`; it counts once it was read back.
///
/// # Errors
/// [`RecoverError`]; the snapshots before it are then unchanged.
pub fn write_snapshot<S: Storage>(
    formats: Formats,
    snapshots: &mut Snapshots<S>,
    state: &State,
    lsn: Lsn,
    record_crc: u32,
) -> Result<wal::Snapshot, RecoverError> {
    let failed =
        |error: std::io::Error| RecoverError::Content { lsn, why: format!("the snapshot cannot be written: {error}") };
    let mut writer = snapshots.create(lsn, record_crc)?;
    let shards: Vec<_> = state.users.iter().collect();
    let digest = snapshot::write(formats, &state.markets, &shards, &mut writer).map_err(failed)?;
    Ok(snapshots.commit(writer, digest)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::Digests;
    use crate::recover::recover;
    use engine::amount::Cash;
    use engine::fact;
    use engine::id::{UserId, WalletId};
    use engine::mutation::{Mutation, codec};
    use engine::order::CloseReason;
    use engine::time::DAY;
    use engine::user::{Tier, WalletKind};
    use host::job::Job;
    use std::sync::mpsc::sync_channel;
    use wal::{Kind, Options, Running};

    fn options() -> Options {
        Options { segment_bytes: 1 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() }
    }

    /// Facts that `apply` accepts one by one; the unsound state breaks an invariant: an order is open and does not
    /// rest.
    fn records(is_sound: bool) -> Vec<Mutation> {
        let (owner, at) = (UserId(1), Timestamp(1_790_932_500_000_000));
        let (wallet, baseline) = (WalletId(owner.object(1)), Cash::from_dollars(100));
        let (kind, label, parent) = (WalletKind::Api, None, None);
        let mut facts = vec![
            Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at }),
            Mutation::WalletOpened(fact::WalletOpened { wallet, kind, label, baseline, generation: 1, parent, at }),
        ];
        if !is_sound {
            facts.push(crate::testing::placed(owner, 2));
        }
        facts
    }

    #[test]
    fn a_state_that_breaks_an_invariant_is_not_snapshotted_and_ends_the_log() {
        let mut cases = 0;
        for is_sound in [true, false] {
            let place = tempfile::tempdir().expect("a temporary folder");
            let recovery = recover(&place.path().join("log"), options(), 1).expect("a new directory");
            let running = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
            let Running { mut log, mut syncer, snapshots, marks, .. } = running;
            let mut payload = Vec::new();
            codec::encode(codec::VERSION, &records(is_sound), &mut payload);
            let lsn = log.append(Kind::Mutations, codec::VERSION, 1, 2, &payload).expect("there is room");
            syncer.turn().expect("the disk is there");
            let storage = Files::open_existing(place.path().join("log")).expect("it was made");
            let mut keeper = Keeper::new(storage, snapshots, marks.clone(), 1, Covered::default());
            let written = keeper.checkpoint(Lsn::ZERO, lsn);
            let listed = keeper.snapshots.list().expect("it can be read").len();
            assert_eq!((listed, marks.is_poisoned()), (usize::from(is_sound), !is_sound), "{written:?}");
            match written {
                Ok(()) => assert!(is_sound),
                Err(RecoverError::Broken { lsn: at, why }) => {
                    assert!(!is_sound && at == lsn, "{at}");
                    assert!(why.contains("an order is open as long as it rests"), "{why}");
                }
                Err(error) => panic!("{error}"),
            }
            assert_eq!(syncer.turn().is_err(), !is_sound, "the sync thread sees it");
            cases += 1;
        }
        println!("states before a snapshot: {cases} cases");
    }

    /// What a clean stop writes, by the length of the log.
    #[test]
    fn a_last_checkpoint_is_made_of_a_long_log() {
        let least = LAST_RECORDS_LEAST;
        // (records of users, whether all of them were synced, a last checkpoint, further records, another checkpoint)
        let rows = [
            (least - 3, true, false, 3, true),
            (least, true, true, 10, false),
            (least + 5, true, true, least, true),
            (least + 5, false, false, 0, true),
        ];
        for (records, synced, first, more, second) in rows {
            let place = tempfile::tempdir().expect("a temporary folder");
            let data = place.path().join("log");
            let options = Options { segment_bytes: 16 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() };
            let recovery = recover(&data, options.clone(), 1).expect("a new directory");
            let Running { mut log, mut syncer, preparer, snapshots, marks, .. } =
                recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
            let mut users = 0;
            let mut append = |log: &mut wal::Log<Files>, count: u64| {
                for _ in 0..count {
                    users += 1;
                    let mut payload = Vec::new();
                    let made = Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at: Timestamp(2) });
                    codec::encode(codec::VERSION, &[made], &mut payload);
                    log.append(Kind::Mutations, codec::VERSION, users, 2, &payload).expect("there is room");
                }
            };
            let storage = Files::open_existing(&data).expect("it was made");
            let mut keeper = Keeper::new(storage, snapshots, marks.clone(), 1, Covered::default());
            append(&mut log, records);
            if synced {
                syncer.turn().expect("the disk is there");
            }
            assert_eq!(keeper.last().expect("a sound log"), first, "{records} records");
            append(&mut log, more);
            log.append_clean_stop(3).expect("there is room");
            syncer.finish().expect("the disk is there");
            assert_eq!(keeper.last().expect("a sound log"), second, "{records} and {more} records");
            drop((keeper, log, preparer));
            let recovery = recover(&data, options, 1).expect("a sound log");
            assert!(recovery.report.clean_stop, "the mark of the clean stop is after every snapshot");
            assert_eq!(recovery.report.records == 1, second, "{:?}", recovery.report);
            assert_eq!(recovery.report.users as u64, records + more);
        }
        println!("last checkpoints: {} cases", 2 * rows.len());
    }

    /// A digest covers all that was synced when it was requested, and no snapshot of an earlier moment is made after
    /// it.
    #[test]
    fn a_digest_covers_the_state_that_a_start_would_read() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let data = place.path().join("log");
        let recovery = recover(&data, options(), 1).expect("a new directory");
        let Running { mut log, mut syncer, mut preparer, snapshots, marks, .. } =
            recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let stop = Stop::new();
        let storage = Files::open_existing(&data).expect("it was made");
        let ((digests, requests), (handover, kept)) = (Digests::channel(), sync_channel(1));
        let keeper = Keeper::new(storage, snapshots, marks.clone(), 1, Covered::default());
        let keeper = keeper.answering(requests).handed_to(handover);
        let running = Job::new("keeper", Duration::from_millis(250), move || keeper).start(&stop).expect("a thread");
        let mut cases = 0;
        for user in 1..=6_u64 {
            while preparer.turn().expect("room on the disk") == wal::Prepared::One {}
            let (sub, email, at) = (Some("x".repeat(400_000)), None, Timestamp(2));
            let mut payload = Vec::new();
            codec::encode(codec::VERSION, &[Mutation::UserCreated(fact::UserCreated { sub, email, at })], &mut payload);
            let last = log.append(Kind::Mutations, codec::VERSION, user, 2, &payload).expect("there is room");
            syncer.turn().expect("the disk is there");
            let Digested { lsn, digest, .. } = digests.ask(|| true).expect("the keeper runs").expect("a sound log");
            assert_eq!(lsn, last);
            let (state, report) = crate::recover::look(&data, false).expect("a sound log");
            assert_eq!((report.lsn, crate::recover::digest(&state)), (last, digest));
            cases += 1;
        }
        running.stop();
        let mut keeper = kept.recv().expect("a sound state");
        running.join();
        assert!(digests.ask(|| true).is_none(), "a keeper that has ended is not waited for");
        let folded = keeper.state.as_ref().map(|(_, lsn, _)| *lsn).expect("a copy");
        keeper.checkpoint(Lsn::ZERO, folded.before()).expect("room on the disk");
        let newest = keeper.snapshots.newest().expect("it can be read").expect("there is one");
        assert_eq!(newest.lsn, folded, "the state that is written is that of its name");
        let mut none = Keeper::new(keeper.storage, keeper.snapshots, marks, 1, Covered::default());
        assert!(none.digest(&stop).is_err(), "a server that stops digests nothing");
        println!("digests: {cases} cases");
    }

    /// A snapshot has no request whose id counts no longer; a replay of the whole log has the same digest.
    #[test]
    fn snapshots_leave_out_requests_whose_ids_count_no_longer() {
        let mut cases = 0;
        let ids_us = 2 * HOUR;
        let start = crate::testing::START;
        // (time from the placement to the last record, formats, whether the clock is in doubt, whether the request is
        // left out)
        let rows = [
            (ids_us, Formats::Newest, false, false),
            (ids_us + FORGOTTEN_LATER_US, Formats::Newest, false, false),
            (ids_us + FORGOTTEN_LATER_US + 1, Formats::Newest, false, true),
            (ids_us + FORGOTTEN_LATER_US + 1, Formats::Newest, true, false),
            (ids_us + FORGOTTEN_LATER_US + 1, Formats::Previous, false, false),
            (1_000 * HOUR, Formats::Newest, false, true),
            (1_000 * HOUR, Formats::Newest, true, false),
        ];
        for (after, formats, is_in_doubt, is_left_out) in rows {
            let place = tempfile::tempdir().expect("a temporary folder");
            let data = place.path().join("log");
            let recovery = recover(&data, options(), 1).expect("a new directory");
            let Running { mut log, mut syncer, snapshots, marks, .. } =
                recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
            let (owner, version) = (UserId(1), formats.record());
            let mut append = |facts: &[Mutation], at: Timestamp| {
                let mut payload = Vec::new();
                codec::encode(version, facts, &mut payload);
                log.append(Kind::Mutations, version, owner.0, at.0, &payload).expect("there is room")
            };
            append(&records(true), start);
            let mut placed = vec![crate::testing::placed(owner, 2)];
            let order = engine::id::OrderId(owner.object(2));
            placed.push(fact::OrderClosed { order, reason: CloseReason::UserCancelled, at: start }.into());
            let (client_order_id, digest) = ("a".to_owned(), [7; 32]);
            placed.push(fact::RequestRemembered { order, client_order_id, digest }.into());
            append(&placed, start);
            let grant = fact::GrantSet { tier: Tier::Pro, expires_at: None, at: start.plus(after) };
            let last = append(&[grant.into()], start.plus(after));
            syncer.turn().expect("the disk is there");
            let storage = Files::open_existing(&data).expect("it was made");
            let keeper = Keeper::new(storage, snapshots, marks, 1, Covered::default());
            let doubt = Leap::of(Some(start), start.plus(2 * DAY), Duration::from_secs(3_600));
            let leap = Arc::new(if is_in_doubt { doubt } else { Leap::none() });
            let mut keeper = keeper.writing(formats).forgetting(ids_us).doubting(leap);
            keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
            let newest = keeper.snapshots.newest().expect("it can be read").expect("it was written");
            let kept = read_snapshot(&keeper.snapshots, &newest, 1).expect("it is whole");
            let known = kept.user(owner).expect("it was made").remembered("a", Timestamp(0));
            assert_eq!(known.is_none(), is_left_out, "{after} {formats:?}, in doubt: {is_in_doubt}");
            let (replayed, _) = crate::recover::look(&data, true).expect("a sound log");
            let known = replayed.user(owner).expect("it was made").remembered("a", Timestamp(0));
            assert!(known.is_some(), "a replay leaves nothing out");
            assert_eq!(crate::recover::digest(&kept), crate::recover::digest(&replayed), "{after} {formats:?}");
            let stop = Stop::new();
            let Digested { digest, .. } = keeper.digest(&stop).expect("a sound log");
            assert_eq!(digest, crate::recover::digest(&replayed), "of the keeper's copy");
            cases += 1;
        }
        println!("requests in snapshots: {cases} cases");
    }

    /// Segments that snapshots of clean stops cover are released by a server that writes no snapshot itself.
    #[test]
    fn segments_covered_by_clean_stops_are_released_by_the_next_start() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let recovery = recover(&place.path().join("log"), options(), 1).expect("a new directory");
        let Running { mut log, mut syncer, mut preparer, snapshots, marks, .. } =
            recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let mut append = |records: usize| {
            let mut last = Lsn::ZERO;
            for _ in 0..records {
                while preparer.turn().expect("room on the disk") == wal::Prepared::One {}
                last = log.append(Kind::Mutations, 1, 1, 2, &[0; 64 << 10]).expect("there is room");
                syncer.turn().expect("the disk is there");
            }
            last
        };
        let storage = Files::open_existing(place.path().join("log")).expect("it was made");
        let covered = Covered::default();
        let mut keeper = Keeper::new(storage, snapshots, marks.clone(), 2, covered.clone());
        let older = append(60);
        write_snapshot(Formats::Newest, &mut keeper.snapshots, &State::new(1), older, 0).expect("room on the disk");
        let newer = append(30);
        write_snapshot(Formats::Newest, &mut keeper.snapshots, &State::new(1), newer, 0).expect("room on the disk");
        assert_eq!(keeper.look().expect("a sound log"), CheckpointTurn::Enough);
        assert_eq!(covered.get(), older);
        println!("covered by ends: 1 case");
    }
}
