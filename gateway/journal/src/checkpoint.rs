//! Checkpoints: folds sealed segments onto the previous snapshot, and publishes what both kept snapshots cover. After a
//! clean stop the rest of the log follows, if it is long.
//!
//! A job with a state of its own, by the same fold as recovery; serving never pauses. The price is memory for a second
//! copy of the users.

use crate::digests::{DigestRequests, Digested};
use crate::mover::{Mover, Relief};
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
    /// without a new record, since a full memory refuses the orders that would make some. Returns whether it did: if no row
    /// can leave, there is no snapshot.
    ///
    /// # Errors
    /// [`RecoverError`]; it is tried again after a pause.
    pub(crate) fn relieve(&mut self, synced: Lsn) -> Result<bool, RecoverError> {
        let may_move = synced != Lsn::ZERO && !self.marks.is_poisoned() && !self.is_in_doubt();
        let Some(mover) = self.mover.as_mut().filter(|mover| may_move && mover.presses()) else { return Ok(false) };
        let relieved = match mover.is_ready() {
            true => self.move_pressing(synced),
            false => {
                // Old days may be what fills the disk.
                self.decide_cut();
                self.mover.iter_mut().for_each(|mover| mover.relieved(Relief::NotReady));
                return Ok(false);
            }
        };
        let relief = if matches!(relieved, Ok(true)) { Relief::Moved } else { Relief::Nothing };
        self.mover.iter_mut().for_each(|mover| mover.relieved(relief));
        relieved
    }

    fn move_pressing(&mut self, synced: Lsn) -> Result<bool, RecoverError> {
        let newest = self.snapshots.list()?.last().copied().unwrap_or(Lsn::ZERO);
        let upto = self.advance(newest, synced.max(newest))?;
        if !self.mover.as_ref().is_some_and(Mover::has_moved) {
            return Ok(false);
        }
        self.publish(upto)?;
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
        let upto = self.advance(newest, upto)?;
        self.publish(upto)
    }

    /// All of a checkpoint but its snapshot. Returns what that covers.
    fn advance(&mut self, newest: Lsn, upto: Lsn) -> Result<Lsn, RecoverError> {
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
        Ok(upto)
    }

    /// Writes the snapshot of the copy, and publishes which segments are unnecessary now.
    fn publish(&mut self, upto: Lsn) -> Result<(), RecoverError> {
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
        if self.is_in_doubt() {
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
        let is_in_doubt = self.is_in_doubt();
        let (Some(mover), Some((state, lsn, crc)), false) = (&mut self.mover, &mut self.state, is_in_doubt) else {
            return;
        };
        let rests = &self.rests;
        for users in &mut state.users {
            mover.move_ended(users, (*lsn, *crc), self.newest, || rests.iter().for_each(Rests::breathe));
        }
        self.decide_cut();
    }

    /// Decides whether the history is to be cut.
    fn decide_cut(&mut self) {
        let (Some(mover), Some((state, ..))) = (&mut self.mover, &self.state) else { return };
        // The copy has one shard.
        for users in &state.users {
            mover.decide_cut(users, state.markets.history_from(), self.newest);
        }
    }

    fn is_in_doubt(&self) -> bool {
        self.leap.as_ref().is_some_and(|leap| leap.is_in_doubt())
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
        let marks = &self.marks;
        self.mover.iter_mut().for_each(|mover| mover.turn(marks));
        if self.mover.as_ref().is_some_and(Mover::decides) && !self.is_in_doubt() {
            self.decide_cut();
        }
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
            // What was folded is kept.
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
/// [`RecoverError`]; the snapshots before it are then unchanged, and what was written is removed: on a full disk it would
/// keep the last of the room.
pub fn write_snapshot<S: Storage>(
    formats: Formats,
    snapshots: &mut Snapshots<S>,
    state: &State,
    lsn: Lsn,
    record_crc: u32,
) -> Result<wal::Snapshot, RecoverError> {
    let written = write_whole(formats, snapshots, state, lsn, record_crc);
    if written.is_err()
        && let Err(error) = snapshots.discard()
    {
        tracing::warn!(%error, "an unfinished snapshot keeps its room on the disk until the next one");
    }
    written
}

fn write_whole<S: Storage>(
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
mod tests;
