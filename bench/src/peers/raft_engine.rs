//! raft-engine: entries of one group with rising indexes; it groups the writes of concurrent threads.

use super::{Commit, CommitPeer, FILE_BYTES, FlightPeer, GIVEN_BYTES};
use crate::report::timed;
use protobuf::well_known_types::BytesValue;
use raft_engine::{Config, Engine, LogBatch, MessageExt, ReadableSize};
use std::path::Path;

pub const COMMIT: CommitPeer = CommitPeer { name: "raft-engine", open };
pub const FLIGHT: FlightPeer =
    FlightPeer { name: "raft-engine", way: "raft-engine, a thread for each", slower_by: 8, fly };

/// An entry is bytes that begin with its index.
struct Entries;

impl MessageExt for Entries {
    type Entry = BytesValue;

    fn index(entry: &BytesValue) -> u64 {
        u64::from_le_bytes(entry.value[..8].try_into().expect("an entry has more than eight bytes"))
    }
}

fn entry(index: u64) -> BytesValue {
    let mut entry = BytesValue::new();
    entry.value = vec![0x5a; GIVEN_BYTES];
    entry.value[..8].copy_from_slice(&index.to_le_bytes());
    entry
}

fn start(directory: &Path) -> Engine {
    let config = Config {
        dir: directory.to_str().expect("a temporary directory has a plain name").to_owned(),
        target_file_size: ReadableSize(u64::from(FILE_BYTES)),
        // Incompressible bytes: compression must not look like speed.
        batch_compression_threshold: ReadableSize(0),
        ..Config::default()
    };
    Engine::open(config).expect("a new directory")
}

fn open(directory: &Path) -> Box<dyn Commit> {
    Box::new(Log { engine: start(directory), next_index: 1 })
}

struct Log {
    engine: Engine,
    next_index: u64,
}

impl Commit for Log {
    fn commit(&mut self, group: usize, commits: usize) -> f64 {
        let first = self.next_index;
        self.next_index += (group * commits) as u64;
        let entries: Vec<_> = (first..self.next_index).map(entry).collect();
        let mut batch = LogBatch::with_capacity(group);
        let (seconds, ()) = timed(|| {
            for group in entries.chunks(group) {
                batch.add_entries::<Entries>(1, group).expect("room in a batch");
                self.engine.write(&mut batch, true).expect("the disk syncs");
            }
        });
        // Written entries are dropped from its index, or memory would grow from round to round.
        self.engine.compact_to(1, self.next_index);
        seconds
    }
}

fn fly(directory: &Path, in_flight: u64, count: u64) -> f64 {
    let engine = start(directory);
    let each = count / in_flight;
    let begin = std::sync::Barrier::new(in_flight as usize + 1);
    let seconds = std::thread::scope(|threads| {
        let (engine, begin) = (&engine, &begin);
        let writers: Vec<_> = (1..=in_flight)
            .map(|region| {
                let small = std::thread::Builder::new().stack_size(256 << 10);
                let write = move || {
                    let mut batch = LogBatch::with_capacity(1);
                    begin.wait();
                    for index in 1..=each {
                        batch.add_entries::<Entries>(region, &[entry(index)]).expect("room in a batch");
                        engine.write(&mut batch, true).expect("the disk syncs");
                    }
                };
                small.spawn_scoped(threads, write).expect("the system gives a thread")
            })
            .collect();
        begin.wait();
        timed(|| writers.into_iter().for_each(|writer| writer.join().expect("no writer panics"))).0
    });
    // The remainder of the division was not written.
    seconds * count as f64 / (each * in_flight) as f64
}
