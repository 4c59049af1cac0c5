//! wal-db: an append returns when the system has the record; a sync is a call of its own.

use super::{AppendPeer, Commit, CommitPeer, GIVEN_BYTES};
use crate::report::timed;
use std::path::Path;
use wal_db::Wal;

pub const COMMIT: CommitPeer = CommitPeer { name: "wal-db", open };
pub const APPEND: AppendPeer = AppendPeer { name: "wal-db", append };

fn open(directory: &Path) -> Box<dyn Commit> {
    Box::new(Log(start(directory)))
}

fn start(directory: &Path) -> Wal {
    std::fs::create_dir(directory).expect("a new directory");
    Wal::open(directory.join("log")).expect("a new log")
}

struct Log(Wal);

impl Commit for Log {
    fn commit(&mut self, group: usize, commits: usize) -> f64 {
        let record = [0x5a; GIVEN_BYTES];
        let (seconds, ()) = timed(|| {
            for _ in 0..commits {
                for _ in 0..group {
                    let _lsn = self.0.append(&record).expect("room");
                }
                self.0.sync().expect("the disk syncs");
            }
        });
        seconds
    }
}

fn append(directory: &Path, count: u64, turns: u64) -> Vec<f64> {
    let log = start(directory);
    let mut record = [0x5a; GIVEN_BYTES];
    let mut turn = |turn: u64| {
        timed(|| {
            for number in turn * count / turns..(turn + 1) * count / turns {
                record[..8].copy_from_slice(&number.to_le_bytes());
                let _lsn = log.append(&record).expect("room");
            }
        })
    };
    (0..turns).map(|number| turn(number).0).collect()
}
