//! Keeps spare segments ready, and gives up those that the snapshots cover.
//!
//! On a thread of its own: a checkpoint of a large state takes seconds, and orders must not wait for room meanwhile.

use crate::thread::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wal::{Files, Lsn, Prepared, Preparer, Storage};

/// Longest sleep between two looks; whoever uses a spare up wakes the thread at once.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Up to where the snapshots cover the log: what is at or below it may be given up. Only ever grows.
#[derive(Clone, Debug, Default)]
pub struct Covered(Arc<AtomicU64>);

impl Covered {
    pub fn note(&self, lsn: Lsn) {
        // Pairs with the acquiring load in `get`: the snapshots are in place before their number is seen.
        self.0.fetch_max(lsn.0, Ordering::Release);
    }

    pub fn get(&self) -> Lsn {
        Lsn(self.0.load(Ordering::Acquire))
    }
}

/// The preparer at work.
pub struct Spares<S: Storage = Files> {
    preparer: Preparer<S>,
    covered: Covered,
    given_up: Lsn,
    disk_full: bool,
}

impl<S: Storage> Spares<S> {
    pub fn new(preparer: Preparer<S>, covered: Covered) -> Spares<S> {
        Spares { preparer, covered, given_up: Lsn::ZERO, disk_full: false }
    }

    /// Turns until the process stops.
    pub fn run(mut self, stop: &Stop) {
        while !stop.is_set() {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => std::thread::park_timeout(LOOK_EVERY),
                Err(error) => {
                    // Serving goes on from what is prepared; when that is used up, writes are refused by name.
                    tracing::error!(%error, "no segments can be prepared");
                    std::thread::park_timeout(LOOK_EVERY);
                }
            }
        }
    }

    /// Makes one spare, or gives up what is covered. False: there was nothing to do.
    ///
    /// # Errors
    /// [`wal::Error`]; the next turn tries anew.
    pub fn turn(&mut self) -> Result<bool, wal::Error> {
        let covered = self.covered.get();
        if covered > self.given_up {
            // Before a spare is made: what is given up becomes one.
            self.preparer.recycle(covered)?;
            self.given_up = covered;
            return Ok(true);
        }
        match self.preparer.turn()? {
            Prepared::One => {
                self.disk_full = false;
                return Ok(true);
            }
            Prepared::DiskFull { free_bytes } => {
                if !std::mem::replace(&mut self.disk_full, true) {
                    tracing::error!(
                        free_bytes,
                        "the disk is full: orders are refused when the prepared log is used up"
                    );
                }
            }
            Prepared::Enough => self.disk_full = false,
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Keeper, write_snapshot};
    use crate::recover::recover;
    use engine::shard::replay::State;
    use wal::{Kind, Options, Running};

    /// Records of one segment and a bit, again and again, with a keeper that never has its turn: the log has room all
    /// the time; what the snapshots cover is given up when it is said.
    #[test]
    fn there_is_room_while_a_checkpoint_takes_its_time() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let segment_bytes = 1 << 20;
        let options = Options { segment_bytes, spares_count: 2, reserve_bytes: 0, ..Options::default() };
        let recovery = recover(&place.path().join("log"), options, 1).expect("a new directory");
        let running = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let Running { mut log, mut syncer, preparer, mut snapshots, marks, .. } = running;
        let covered = Covered::default();
        let mut spares = Spares::new(preparer, covered.clone());
        let payload = vec![0; 64 << 10];
        let mut last = Lsn::ZERO;
        let segments = || {
            let storage = Files::open_existing(place.path().join("log")).expect("it was made");
            wal::segments(&storage).expect("it can be read").len()
        };
        let mut records = 0;
        for time in 2..100 {
            while spares.turn().expect("room on the disk") {}
            last = log.append(Kind::Mutations, 1, 1, time, &payload).expect("there is room");
            syncer.turn().expect("the disk is there");
            records += 1;
        }
        let before = segments();
        assert!(before >= 6, "{records} records are in {before} segments");
        // Two snapshots are kept, and the older one decides.
        for lsn in [last, last] {
            write_snapshot(&mut snapshots, &State::new(1), lsn, 0).expect("room on the disk");
        }
        covered.note(last);
        assert!(spares.turn().expect("room on the disk"), "there is something to give up");
        assert_eq!(segments(), 1, "the open one stays");
        assert!(!spares.turn().expect("room on the disk"), "it is given up once");
        let storage = Files::open_existing(place.path().join("log")).expect("it was made");
        drop(Keeper::new(storage, snapshots, marks, 1, covered));
        println!("spares: {records} records in {before} segments");
    }
}
