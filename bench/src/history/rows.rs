//! Bytes of an ended order: those that it leaves in memory, on disk, and those that were written for it.

use super::past::{Past, Store};
use super::{Served, Servers};
use crate::device::{Device, caused_bytes};
use crate::report::{Report, Size};
use crate::role::Role;
use crate::world::World;
use ::history::{EndedSize, Sizes, merge, sizes};
use serde::{Deserialize, Serialize};
use tools::machine;

/// Orders by which memory is measured, for each order of the store: a change of a page is more than 2 bytes of few.
const TIMES: usize = 4;

/// The task of a process that measures its memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub users: usize,
    pub orders: usize,
}

impl Task {
    /// Orders end and leave memory. Prints the bytes by which its anonymous memory grew after the first quarter of them,
    /// and a hash of the state.
    pub fn run(self) {
        let Task { users, orders } = self;
        let place = tempfile::tempdir().expect("a temporary directory");
        let make = |record: &mut super::past::Record| World::new(64, record);
        let mut past = Past::create(&place.path().join("data"), 16 << 20, Store::Nowhere, make);
        past.world.add_traders(users, &mut past.out);
        past.live(orders / 4, 0..users);
        let before = own_bytes();
        past.live(orders - orders / 4, 0..users);
        let hash: String = past.world.digest().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        println!("{} {hash}", own_bytes() - before);
        past.close();
    }
}

fn own_bytes() -> i64 {
    machine::anonymous_bytes(std::process::id()).expect("this program runs") as i64
}

/// H2. The process has a shard and the checkpoint keeper's copy, and no store.
pub fn in_memory(size: Size, orders: usize, report: &mut Report) {
    let (users, orders) = size.pick((4, orders), (1_000, TIMES * orders));
    let output = Role::Leave(Task { users, orders }).command().output().expect("this program can be started");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let (bytes, hash) = stdout.trim().split_once(' ').expect("two words");
    let bytes: f64 = bytes.parse().expect("a number of bytes");
    let counted = orders - orders / 4;
    report.figure("memory that an ended order leaves, shard and keeper's copy", bytes / counted as f64, "bytes");
    report.note("counted in memory", format!("{counted} orders of {users} users after {} others", orders / 4));
    report.computed(hash);
}

/// Bytes that were written meanwhile.
pub struct Written {
    /// By the device, also for other programs; `None` without a counter.
    device: Option<u64>,
    /// By this process, by the kernel's account.
    own: u64,
}

/// What is written while `work` makes the directory of a server.
pub fn written_by(size: Size, work: impl FnOnce() -> Served) -> (Served, Written) {
    let device = Device::under(&std::env::temp_dir());
    let flush = || {
        // Pages that wait in the cache belong to one side of the measurement.
        if size == Size::Full {
            rustix::fs::sync();
        }
        (device.as_ref().map_or(0, Device::written_bytes), caused_bytes())
    };
    let before = flush();
    let served = work();
    let after = flush();
    let written = Written { device: device.as_ref().map(|_| after.0 - before.0), own: after.1 - before.1 };
    (served, written)
}

/// H10.
pub fn report_written(written: &Written, orders: usize, report: &mut Report) {
    let each = |bytes: u64| bytes as f64 / orders as f64;
    report.figure("written for an ended order: log, snapshots, store and its merges", each(written.own), "bytes");
    match written.device {
        Some(bytes) => report.figure("the same by the device, with other programs", each(bytes), "bytes"),
        None => report.note("the device", "the file system of the directory is on no block device with a counter"),
    }
}

/// H3: as the moves left the files, and merged.
pub fn on_disk(servers: &Servers, report: &mut Report) {
    let Served { place, count, .. } = &servers.many;
    let folder = place.path().join("data").join("history");
    let bytes = |report: &mut Report, what: &str| {
        let Sizes { ended, .. } = sizes(&folder).expect("the store is whole");
        for EndedSize { name, rows, bytes, .. } in &ended {
            if *rows > 0 {
                report.figure(&format!("{name}, {what}"), *bytes as f64 / *rows as f64, "bytes a row");
            }
        }
        let rows = |space: &str| ended.iter().find(|size| size.name == space).map_or(0, |size| size.rows);
        let rows = ["orders", "fills", "requests"].map(rows);
        assert_eq!(rows, [*count as u64; 3], "every ended order is in the store with its fill and its id");
        ended.iter().map(|size| size.bytes).sum::<u64>() as f64 / *count as f64
    };
    let left = bytes(report, "as it was moved");
    merge(&folder).expect("room for a merge");
    let merged = bytes(report, "merged");
    report.figure("an ended order on disk, as it was moved", left, "bytes");
    report.figure("an ended order on disk, merged", merged, "bytes");
    report.computed(count.to_le_bytes());
}
