//! Segments in reserve: made ahead of need by a thread that may block on the disk, and made from old ones.
//!
//! A spare is zeroed, synced, named, mapped and touched before the log receives it. A full disk is noticed here and
//! nowhere else: no new spares are made, [`crate::Log::room`] shrinks, and it grows again when there is space.
//!
//! Zeroing and touching take a few tenths of a second of a core. If the log leaves time, they are done in steps with
//! rests between them ([`Preparer::resting`]): done in one go, they took half of the core that serves orders.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use crate::Marks;
use crate::contents::read_contents;
use crate::dir::Options;
use crate::epoch::create_anew;
use crate::error::Error;
use crate::files::Files;
use crate::names::{Name, making_name, parse_name, spare_name};
use crate::segment::{STEP_BYTES, fill_with_zeros};
use crate::storage::{SegmentMap, Storage, StoredFile};
use crate::sync::OPENED_MAX;
use crate::{Lsn, Point, Points};

/// A segment ready for use: all zeros, warm.
pub(crate) struct Spare<S: Storage> {
    /// For the sync thread.
    pub file: S::File,
    pub map: S::Map,
    pub name: String,
    /// Set by the log when it uses the spare, or by the [`Preparer`] when the spare was removed.
    pub is_taken: Arc<AtomicBool>,
}

/// What the [`Preparer`] keeps about a spare that the log has.
struct Handed {
    name: String,
    is_taken: Arc<AtomicBool>,
}

impl Handed {
    /// Whether it still takes up a place in the queue to the log, used or not.
    fn is_queued(&self) -> bool {
        Arc::strong_count(&self.is_taken) > 1
    }
}

/// The result of a turn of the [`Preparer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// There are as many spares as the options want.
    Enough,
    /// One more spare is ready; there may be work for another turn.
    One,
    /// The disk has too little room for a spare. Try again later.
    DiskFull {
        /// Free bytes of the file system, the configured reserve included.
        free_bytes: u64,
    },
}

/// The thread that makes a spare rests while the finished share of the spare is at least this many times the share of
/// the room that the log has filled since.
const AHEAD_TIMES: u64 = 2;

/// Progress of a spare compared with that of the log. All in bytes.
struct FillProgress {
    /// The log's position when work on the spare began.
    begun_at: u64,
    /// The log's room for records at that time, in its open segment and in spares, less the bytes that must stay free.
    room: u64,
    /// Zeroed and touched so far, and the total of both.
    done: u64,
    all: u64,
}

impl FillProgress {
    fn begin(marks: &Marks, segment_bytes: u64, kept_bytes: u64, done: u64) -> FillProgress {
        let room = marks.open_bytes() + u64::from(marks.spares_ready()) * segment_bytes;
        let room = room.saturating_sub(kept_bytes);
        FillProgress { begun_at: marks.appended_bytes(), room, done, all: 2 * segment_bytes }
    }

    /// Whether there is time for a rest: at the log's pace the spare is ready when half of the room is filled.
    fn has_time(&self, appended_bytes: u64) -> bool {
        let filled = appended_bytes.saturating_sub(self.begun_at);
        let (done, filled) = (u128::from(self.done), u128::from(AHEAD_TIMES * filled));
        self.room > 0 && done * u128::from(self.room) >= filled * u128::from(self.all)
    }
}

/// A file of zeros with the name of a spare, not yet given to the log.
struct Zeroed<S: Storage> {
    file: S::File,
    name: String,
    /// The name survives a crash.
    is_durable: bool,
}

/// Makes spares and recycles old segments. Owned by one thread that may block.
pub struct Preparer<S: Storage = Files> {
    storage: S,
    marks: Marks,
    spares: SyncSender<Spare<S>>,
    segment_bytes: u64,
    spares_count: u32,
    reserve_bytes: u64,
    points: Points,
    /// Called between steps of work when there is time.
    rest: Option<Box<dyn FnMut() + Send>>,
    /// Bytes of prepared log below which there are no rests.
    kept_bytes: u64,
    /// For the name of the next spare.
    next_number: u64,
    /// Spares that an earlier process left, whose names could not be made durable, or that could not be mapped. They
    /// are tried before another one is made: one more file per attempt would fill the disk.
    to_adopt: Vec<Zeroed<S>>,
    /// Spares that the log has and has not used yet.
    handed: Vec<Handed>,
    _lock: Arc<S::Lock>,
}

impl<S: Storage> Preparer<S> {
    pub(crate) fn new(
        storage: S,
        lock: Arc<S::Lock>,
        options: &Options,
        marks: Marks,
        spares: SyncSender<Spare<S>>,
    ) -> Preparer<S> {
        Preparer {
            storage,
            marks,
            spares,
            segment_bytes: options.segment_bytes,
            spares_count: options.spares_count,
            reserve_bytes: options.reserve_bytes,
            points: options.points.clone(),
            rest: None,
            kept_bytes: 0,
            next_number: 1,
            to_adopt: Vec::new(),
            handed: Vec::new(),
            _lock: lock,
        }
    }

    /// Calls `rest` after each step of some 100 µs of work on a spare, while the spare grows twice as fast as the log
    /// fills its room. Room is the prepared log beyond `kept_bytes`: without room there are no rests, so `kept_bytes` must
    /// not be less than what the writers of the log need to continue.
    pub fn resting(self, kept_bytes: u64, rest: impl FnMut() + Send + 'static) -> Preparer<S> {
        Preparer { rest: Some(Box::new(rest)), kept_bytes, ..self }
    }

    /// Gives an existing spare to the log; otherwise makes at most one, if one is wanted and the disk has room for it
    /// above the reserve. A spare that was removed does not count.
    ///
    /// # Errors
    /// [`Error::Io`] for anything but a full disk, which is a result.
    pub fn turn(&mut self) -> Result<Prepared, Error> {
        self.withdraw_removed()?;
        if self.adopt_one()? {
            return Ok(Prepared::One);
        }
        if !self.wants_spare() {
            return Ok(Prepared::Enough);
        }
        let free_bytes = self.free_bytes()?;
        if free_bytes < self.reserve_bytes.saturating_add(self.segment_bytes) {
            return Ok(Prepared::DiskFull { free_bytes });
        }
        let making = making_name(self.next_number);
        let made = create_anew(&self.storage, &making).and_then(|file| self.fill_and_adopt(file, &making));
        match made {
            Ok(()) => Ok(Prepared::One),
            Err(error) if error.is_full() => {
                // The unfinished file takes the room that others need.
                let _ = self.storage.remove(&making);
                Ok(Prepared::DiskFull { free_bytes: self.free_bytes()? })
            }
            Err(error) => Err(error),
        }
    }

    /// Bytes that the file system still gives to this user.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn free_bytes(&self) -> Result<u64, Error> {
        self.storage.free_bytes().map_err(Error::io("read the free space of", &self.storage.place()))
    }

    /// Releases the segments whose records are all at or below `covered`: the LSN of the *older* of the two snapshots
    /// that are kept ([`crate::Snapshots::covered`]). Segments become spares, zeroed again, as long as spares are
    /// wanted; the rest are removed. Returns the number of segments released.
    ///
    /// Oldest first, and each made durable before the next, so that a crash leaves no gap between the remaining ones.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`].
    ///
    /// # Panics
    /// If `covered` is not yet synced: a snapshot must not replace records that could still vanish.
    pub fn recycle(&mut self, covered: Lsn) -> Result<u32, Error> {
        let synced = self.marks.synced();
        assert!(covered <= synced, "a snapshot may cover only synced records: {covered} > {synced}");
        let segments = read_contents(&self.storage, None)?.segments;
        let named: Vec<_> = segments.into_iter().filter(|segment| segment.is_named).collect();
        let mut count = 0;
        for pair in named.windows(2) {
            let (old, next) = (&pair[0], &pair[1]);
            if next.first_lsn > covered.next() {
                break;
            }
            self.points.pass(Point::Remove);
            if self.wants_spare() && old.bytes == self.segment_bytes {
                self.make_spare_of(&old.name)?;
            } else {
                self.storage.remove(&old.name).map_err(Error::io("remove", &old.name))?;
                self.sync_directory()?;
            }
            count += 1;
        }
        Ok(count)
    }

    /// Takes over spares that an earlier process left and recovery found to be all zeros, one in each of the next
    /// turns. Removes those that are not wanted.
    pub(crate) fn take_leftovers(&mut self, names: Vec<String>) -> Result<(), Error> {
        for name in &names {
            if let Name::Spare(number) = parse_name(name) {
                self.next_number = self.next_number.max(number + 1);
            }
        }
        for name in names {
            let file = self.storage.open(&name).map_err(Error::io("open", &name))?;
            let bytes = file.bytes().map_err(Error::io("stat", &name))?;
            if bytes == self.segment_bytes && self.wants_spare() {
                self.to_adopt.push(Zeroed { file, name, is_durable: true });
            } else {
                self.storage.remove(&name).map_err(Error::io("remove", &name))?;
            }
        }
        self.sync_directory()
    }

    fn wants_spare(&self) -> bool {
        let ready = self.marks.spares_ready() + self.to_adopt.len() as u32;
        let queued = self.handed.iter().filter(|handed| handed.is_queued()).count() + self.to_adopt.len();
        let pending = self.marks.opened_pending();
        // The second bound applies when the sync thread hangs. It keeps the queue of opened segments from overflowing,
        // and that of spares, in which removed ones stay until the log takes them out.
        ready < self.spares_count && queued as u32 + pending < OPENED_MAX
    }

    /// Checks whether the spares in the queue still exist, so that replacements are made before the log needs them.
    fn withdraw_removed(&mut self) -> Result<(), Error> {
        self.handed.retain(Handed::is_queued);
        for Handed { name, is_taken } in &self.handed {
            if is_taken.load(Ordering::Acquire) {
                continue;
            }
            match self.storage.open_to_read(name) {
                // If it was taken meanwhile, it may have the name of a segment now; if not, it cannot be taken any
                // more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if !is_taken.swap(true, Ordering::AcqRel) {
                        self.marks.withdraw_spare();
                    }
                }
                Err(error) => return Err(Error::io("open", name)(error)),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    fn make_spare_of(&mut self, name: &str) -> Result<(), Error> {
        let making = making_name(self.next_number);
        self.storage.rename(name, &making).map_err(Error::io("rename", name))?;
        self.sync_directory()?;
        let file = self.storage.open(&making).map_err(Error::io("open", &making))?;
        // A reader may have brought it into memory in large pages: see `segment` about those.
        file.forget(u64::MAX);
        self.fill_and_adopt(file, &making)
    }

    /// Zeroes a file, names it and adopts it.
    fn fill_and_adopt(&mut self, file: S::File, making: &str) -> Result<(), Error> {
        let mut progress = FillProgress::begin(&self.marks, self.segment_bytes, self.kept_bytes, 0);
        fill_with_zeros(&file, making, self.segment_bytes, |bytes| self.rest_if_ahead(&mut progress, bytes))?;
        let name = spare_name(self.next_number);
        self.points.pass(Point::Rename);
        self.storage.rename(making, &name).map_err(Error::io("rename", making))?;
        self.next_number += 1;
        self.adopt(Zeroed { file, name, is_durable: false }, progress)
    }

    /// Gives an existing spare to the log. Returns false if there is none.
    fn adopt_one(&mut self) -> Result<bool, Error> {
        let Some(zeroed) = self.to_adopt.pop() else { return Ok(false) };
        let progress = FillProgress::begin(&self.marks, self.segment_bytes, self.kept_bytes, self.segment_bytes);
        self.adopt(zeroed, progress)?;
        Ok(true)
    }

    /// Gives a zeroed and named file to the log; one that fails here is kept for the next turn.
    fn adopt(&mut self, mut zeroed: Zeroed<S>, mut progress: FillProgress) -> Result<(), Error> {
        let mut map = match self.map(&mut zeroed) {
            Ok(map) => map,
            Err(error) => {
                self.to_adopt.push(zeroed);
                return Err(error);
            }
        };
        let Zeroed { file, name, .. } = zeroed;
        let mut at = 0;
        while at < self.segment_bytes {
            let to = self.segment_bytes.min(at + STEP_BYTES);
            map.touch(at as usize, to as usize);
            self.rest_if_ahead(&mut progress, to - at);
            at = to;
        }
        let is_taken = Arc::new(AtomicBool::new(false));
        let handed = Handed { name: name.clone(), is_taken: is_taken.clone() };
        if self.spares.try_send(Spare { file, map, name, is_taken }).is_ok() {
            self.handed.push(handed);
            self.marks.add_spare();
        }
        Ok(())
    }

    /// Maps the file, and makes its name durable if it is not.
    fn map(&self, zeroed: &mut Zeroed<S>) -> Result<S::Map, Error> {
        let map = self.storage.map(&zeroed.file, self.segment_bytes).map_err(Error::io("map", &zeroed.name))?;
        if !zeroed.is_durable {
            self.sync_directory()?;
            zeroed.is_durable = true;
        }
        Ok(map)
    }

    /// Called after a step of `bytes` bytes.
    fn rest_if_ahead(&mut self, progress: &mut FillProgress, bytes: u64) {
        progress.done += bytes;
        if let Some(rest) = &mut self.rest
            && progress.has_time(self.marks.appended_bytes())
        {
            rest();
        }
    }

    fn sync_directory(&self) -> Result<(), Error> {
        self.storage.sync_directory().map_err(Error::io("sync", &self.storage.place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_time_while_a_spare_grows_faster_than_the_log() {
        // Of a segment of 100 bytes: left in the open one, kept, spares ready, done of 200, appended since, has time.
        let rows = [
            ("nothing done", 100, 25, 1, 0, 0, true),
            ("nothing done while the log appends", 100, 25, 1, 0, 1, false),
            ("twice as far", 25, 25, 1, 100, 25, true),
            ("not twice as far", 25, 25, 1, 100, 26, false),
            ("a segment more, twice as far", 100, 25, 1, 100, 43, true),
            ("a segment more, not twice as far", 100, 25, 1, 100, 44, false),
            ("no spare, and the segment is new", 100, 25, 0, 100, 18, true),
            ("the same, not twice as far", 100, 25, 0, 100, 19, false),
            ("no spare, and the segment is almost full", 25, 25, 0, 100, 0, false),
            ("no spare, and the segment is less than the kept bytes", 99, 100, 0, 199, 0, false),
            ("a spare, and both are exactly the kept bytes", 60, 160, 1, 199, 0, false),
            ("a spare, and a byte more than the kept bytes", 61, 160, 1, 199, 0, true),
            ("the log has used all of its room", 25, 25, 1, 199, 125, false),
            ("more spares", 25, 25, 2, 100, 50, true),
        ];
        for (name, left, kept_bytes, ready, done_bytes, since, expected) in rows {
            let marks = Marks::new(Lsn(9), 7_000);
            marks.set_end(7_000 + left);
            (0..ready).for_each(|_| marks.add_spare());
            let progress = FillProgress::begin(&marks, 100, kept_bytes, done_bytes);
            assert_eq!(progress.has_time(7_000 + since), expected, "{name}");
        }
        println!("rests: {} cases", rows.len());
    }
}
