//! okaywal: an entry of chunks is one commit.

use super::{Commit, CommitPeer, FILE_BYTES, GIVEN_BYTES};
use crate::report::timed;
use okaywal::{Configuration, LogVoid, WriteAheadLog};
use std::path::Path;

pub const COMMIT: CommitPeer = CommitPeer { name: "okaywal", open };

fn open(directory: &Path) -> Box<dyn Commit> {
    let configuration = Configuration::default_for(directory)
        .preallocate_bytes(FILE_BYTES)
        .checkpoint_after_bytes(u64::from(FILE_BYTES) * 15 / 16);
    Box::new(Log(configuration.open(LogVoid).expect("a new directory")))
}

struct Log(WriteAheadLog);

impl Commit for Log {
    fn commit(&mut self, group: usize, commits: usize) -> f64 {
        let record = [0x5a; GIVEN_BYTES];
        let (seconds, ()) = timed(|| {
            for _ in 0..commits {
                let mut entry = self.0.begin_entry().expect("an active file");
                for _ in 0..group {
                    entry.write_chunk(&record).expect("room");
                }
                entry.commit().expect("the disk syncs");
            }
        });
        seconds
    }
}
