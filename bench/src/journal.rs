//! A log in a directory, with all its parts on this thread.

use sha2::{Digest, Sha256};
use std::path::Path;
use wal::{Dir, Files, Kind, Lsn, Options, Prepared, Running, Scan};

/// Bytes of the record that logs are measured with: 56 of header and 72 of payload.
pub const RECORD_BYTES: usize = 128;
pub const PAYLOAD: [u8; 72] = [0x5a; 72];

/// Bytes appended between two steps of maintenance; far below the spares.
const TEND_BYTES: usize = 8 << 20;

/// The log.
pub struct Journal {
    pub running: Running<Files>,
    behind_bytes: usize,
    last_time: u64,
}

/// Options of the benches: a small reserve, since they clean up.
pub fn options(segment_bytes: u64) -> Options {
    Options { segment_bytes, spares_count: 2, reserve_bytes: 0, ..Options::default() }
}

impl Journal {
    /// A new log in `directory`, with its spares.
    pub fn create(directory: &Path, segment_bytes: u64) -> Journal {
        Journal::create_with(directory, options(segment_bytes), Box::new(|_| {}))
    }

    /// The same with other options, and a listener of each sync.
    pub fn create_with(directory: &Path, options: Options, waker: wal::Waker) -> Journal {
        let storage = Files::open(directory).expect("a new directory");
        let dir = Dir::open(storage, options).expect("it is not locked");
        let recovered = dir.recover(None, false).expect("an empty directory").finish().expect("nothing to read");
        let running = dir.start(recovered, 1, waker).expect("room for a log");
        let mut journal = Journal { running, behind_bytes: 0, last_time: 1 };
        journal.tend();
        journal
    }

    pub fn append(&mut self, version: u16, owner: u64, time: u64, payload: &[u8]) {
        self.append_untended(version, owner, time, payload);
        if self.behind_bytes > TEND_BYTES {
            self.tend();
        }
    }

    /// The same; the caller maintains the log.
    #[inline]
    pub fn append_untended(&mut self, version: u16, owner: u64, time: u64, payload: &[u8]) {
        self.last_time = self.last_time.max(time);
        let appended = self.running.log.append(Kind::Mutations, version, owner, self.last_time, payload);
        appended.expect("spares are prepared in time");
        self.behind_bytes += payload.len();
    }

    /// One more record of [`RECORD_BYTES`], not synced. The caller maintains the log.
    #[inline]
    pub fn append_one(&mut self, owner: u64) -> Lsn {
        let appended = self.running.log.append(Kind::Mutations, 1, owner, self.last_time, &PAYLOAD);
        appended.expect("spares are prepared in time")
    }

    /// `count` records of [`RECORD_BYTES`], and a sync that covers them.
    pub fn commit(&mut self, count: usize) {
        for owner in 0..count as u64 {
            self.append_one(owner);
        }
        self.running.syncer.turn().expect("the disk syncs");
    }

    /// Syncs what was appended, and prepares spares for used segments.
    pub fn tend(&mut self) {
        self.running.syncer.turn().expect("the disk syncs");
        self.prepare();
        self.behind_bytes = 0;
    }

    /// Prepares spares for used segments.
    pub fn prepare(&mut self) {
        while self.running.preparer.turn().expect("room for spares") == Prepared::One {}
    }

    /// A clean stop.
    pub fn end(mut self) {
        self.running.log.append_clean_stop(self.last_time).expect("room for one more");
        self.running.syncer.finish().expect("the disk syncs");
    }
}

/// Number of the engine's records in a log, and a digest of them as they are read back: number, owner, format and
/// payload of each, without times and epochs.
pub fn read_back(directory: &Path) -> (u64, [u8; 32]) {
    let storage = Files::open_existing(directory).expect("a log");
    let mut scan = Scan::open(&storage, Lsn::ZERO).expect("a sound log");
    let (mut count, mut digest) = (0, Sha256::new());
    while let Some(entry) = scan.next().expect("a sound log") {
        if entry.kind == Kind::Mutations {
            count += 1;
            digest.update(entry.lsn.0.to_le_bytes());
            digest.update(entry.owner.to_le_bytes());
            digest.update(entry.version.to_le_bytes());
            digest.update(entry.payload);
        }
    }
    (count, digest.finalize().into())
}
