//! writeahead: its own thread writes; a task awaits the durability of its record.

use super::{Commit, CommitPeer, FlightPeer, GIVEN_BYTES, ReadPeer};
use crate::report::timed;
use futures::Stream;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use writeahead::{SimpleFile, WriteAhead, WriteAheadOptions};

pub const COMMIT: CommitPeer = CommitPeer { name: "writeahead", open };
pub const FLIGHT: FlightPeer =
    FlightPeer { name: "writeahead", way: "writeahead, tasks of one thread", slower_by: 2, fly };
pub const READ: ReadPeer = ReadPeer { name: "writeahead", write, read };

/// Records of a group when a log is written to be read back.
const GROUP: usize = 1_024;

fn start(directory: &Path) -> WriteAhead<SimpleFile> {
    let options = WriteAheadOptions {
        log_dir: directory.to_path_buf(),
        // No task may wait for the queue.
        queue_capacity: 4_096,
        max_batch_bytes: 64 << 20,
        ..WriteAheadOptions::default()
    };
    let mut log = WriteAhead::with_options(options);
    log.start().expect("it is not locked");
    log
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime of one thread")
}

fn open(directory: &Path) -> Box<dyn Commit> {
    Box::new(Log { log: start(directory), runtime: runtime() })
}

struct Log {
    log: WriteAhead<SimpleFile>,
    runtime: Runtime,
}

impl Commit for Log {
    fn commit(&mut self, group: usize, commits: usize) -> f64 {
        let groups: Vec<_> = (0..commits).map(|_| vec![vec![0x5a; GIVEN_BYTES]; group]).collect();
        let (seconds, ()) = timed(|| {
            self.runtime.block_on(async {
                for group in groups {
                    self.log.write_batch(group).await.expect("the disk syncs");
                }
            });
        });
        seconds
    }
}

fn fly(directory: &Path, in_flight: u64, count: u64) -> f64 {
    let log = start(directory);
    let runtime = runtime();
    let tasks = LocalSet::new();
    let (seconds, ()) = timed(|| {
        tasks.block_on(&runtime, async {
            let each = count / in_flight;
            let writers: Vec<_> = (0..in_flight)
                .map(|_| {
                    let writer = log.writer().expect("it was started");
                    tokio::task::spawn_local(async move {
                        for _ in 0..each {
                            writer.write(vec![0x5a; GIVEN_BYTES]).await.expect("the disk syncs");
                        }
                    })
                })
                .collect();
            for writer in writers {
                writer.await.expect("no task panics");
            }
        });
    });
    // The remainder of the division was not written.
    seconds * count as f64 / (count / in_flight * in_flight) as f64
}

fn write(directory: &Path, count: u64) {
    let log = start(directory);
    runtime().block_on(async {
        let mut left = count as usize;
        while left > 0 {
            let group = left.min(GROUP);
            log.write_batch(vec![vec![0x5a; GIVEN_BYTES]; group]).await.expect("the disk syncs");
            left -= group;
        }
    });
}

fn read(directory: &Path) -> u64 {
    let log = start(directory);
    let mut records = pin!(log.create_stream().expect("it was started"));
    runtime().block_on(async {
        let mut count = 0;
        while let Some(record) = poll_fn(|context| records.as_mut().poll_next(context)).await {
            let (_, record) = record.expect("a sound log");
            count += u64::from(record.len() == GIVEN_BYTES);
        }
        count
    })
}
