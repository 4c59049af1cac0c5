//! Segments in reserve: made ahead of need by a thread that may wait for the disk, and made again out of old ones.
//!
//! A spare is zeroed, synced, named, mapped and touched before the log hears of it. A full disk shows here, and only here:
//! then there are no new spares, [`crate::Log::room`] shrinks, and it grows again by itself when there is space.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crate::dir::{Name, Options, create_anew, making_name, parse_name, read_contents, spare_name};
use crate::error::Error;
use crate::segment::fill_with_zeros;
use crate::storage::{Files, SegmentMap, Storage, StoredFile};
use crate::sync::{Marks, OPENED_MAX};
use crate::{Lsn, Point, Points};

/// A segment ready for use: all zeros, warm.
pub(crate) struct Spare<S: Storage> {
    /// For the sync thread.
    pub file: S::File,
    pub map: S::Map,
    pub name: String,
}

/// What a turn of the [`Preparer`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// There are as many spares as wanted.
    Enough,
    /// One more spare is ready; there may be work for another turn.
    One,
    /// The disk has too little room for a spare: so many bytes are free. Ask again later.
    DiskFull {
        /// Free bytes of the file system, the configured reserve included.
        free_bytes: u64,
    },
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
    /// For the names of spares.
    next_number: u64,
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
            next_number: 1,
            _lock: lock,
        }
    }

    /// Makes at most one spare, if one is wanted and the disk has room for it above the reserve.
    ///
    /// # Errors
    /// [`Error::Io`] for anything but a full disk, which is an answer.
    pub fn turn(&mut self) -> Result<Prepared, Error> {
        if !self.wants_spare() {
            return Ok(Prepared::Enough);
        }
        let free_bytes = self.free_bytes()?;
        if free_bytes < self.reserve_bytes.saturating_add(self.segment_bytes) {
            return Ok(Prepared::DiskFull { free_bytes });
        }
        let making = making_name(self.next_number);
        let made = create_anew(&self.storage, &making)
            .and_then(|file| fill_with_zeros(&file, &making, self.segment_bytes).map(|()| file))
            .and_then(|file| self.adopt(file, &making));
        match made {
            Ok(()) => Ok(Prepared::One),
            Err(error) if error.is_full() => {
                // What was begun takes the room that others need.
                let _ = self.storage.remove(&making);
                Ok(Prepared::DiskFull { free_bytes: self.free_bytes()? })
            }
            Err(error) => Err(error),
        }
    }

    /// Bytes that the file system would still give this user.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn free_bytes(&self) -> Result<u64, Error> {
        self.storage.free_bytes().map_err(Error::io("look at the free space of", &self.storage.place()))
    }

    /// Gives up the segments whose records are all at or below `covered`: the LSN of the *older* of the two snapshots that
    /// are kept ([`crate::Snapshots::covered`]). They become spares, zeroed again, as far as spares are wanted; the rest is
    /// removed. Returns how many segments it were.
    ///
    /// Oldest first, and each made durable before the next, so that a crash leaves no gap between those that remain.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`].
    ///
    /// # Panics
    /// When `covered` is not yet synced: no snapshot may stand for records that could still vanish.
    pub fn recycle(&mut self, covered: Lsn) -> Result<u32, Error> {
        let synced = self.marks.synced();
        assert!(covered <= synced, "a snapshot covers synced records only: {covered} > {synced}");
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

    /// Takes over spares that an earlier process left and recovery found to be all zeros; removes those of another size.
    pub(crate) fn take_leftovers(&mut self, names: Vec<String>) -> Result<(), Error> {
        for name in &names {
            if let Name::Spare(number) = parse_name(name) {
                self.next_number = self.next_number.max(number + 1);
            }
        }
        for name in names {
            let file = self.storage.open(&name).map_err(Error::io("open", &name))?;
            let bytes = file.bytes().map_err(Error::io("look at", &name))?;
            if bytes == self.segment_bytes && self.wants_spare() {
                self.hand_over(file, name)?;
            } else {
                self.storage.remove(&name).map_err(Error::io("remove", &name))?;
            }
        }
        self.sync_directory()
    }

    fn wants_spare(&self) -> bool {
        let (ready, pending) = (self.marks.spares_ready(), self.marks.opened_pending());
        // The second bound holds back when the sync thread hangs: it keeps the queue of opened segments from overflowing.
        ready < self.spares_count && ready + pending < OPENED_MAX
    }

    fn make_spare_of(&mut self, name: &str) -> Result<(), Error> {
        let making = making_name(self.next_number);
        self.storage.rename(name, &making).map_err(Error::io("rename", name))?;
        self.sync_directory()?;
        let file = self.storage.open(&making).map_err(Error::io("open", &making))?;
        // A reader may have brought it into memory in large pages: see `segment` on those.
        file.forget();
        fill_with_zeros(&file, &making, self.segment_bytes)?;
        self.adopt(file, &making)
    }

    /// Names a zeroed file and hands it to the log.
    fn adopt(&mut self, file: S::File, making: &str) -> Result<(), Error> {
        let name = spare_name(self.next_number);
        self.next_number += 1;
        self.points.pass(Point::Rename);
        self.storage.rename(making, &name).map_err(Error::io("rename", making))?;
        self.sync_directory()?;
        self.hand_over(file, name)
    }

    fn hand_over(&mut self, file: S::File, name: String) -> Result<(), Error> {
        let mut map = self.storage.map(&file, self.segment_bytes).map_err(Error::io("map", &name))?;
        map.touch(0);
        if self.spares.try_send(Spare { file, map, name }).is_ok() {
            self.marks.add_spare();
        }
        Ok(())
    }

    fn sync_directory(&self) -> Result<(), Error> {
        self.storage.sync_directory().map_err(Error::io("sync", &self.storage.place()))
    }
}
