//! Tests of the log as a whole, over the file system in memory and over real files.

use std::io::Write;

use crate::fault::Faults;
use crate::{Dir, Error, Kind, Lsn, Options, Recovered, Running};

mod accepted;
mod chain;
mod damage;
mod files;
mod full_pages;
mod model;
mod moved;
mod order;
mod removed;
mod reserve;
mod set_back;
mod spares;
mod strangers;
mod torn;

/// A record as tests compare it.
type Fact = (Lsn, Kind, Vec<u8>);

/// Segments of one page: a few records each.
fn tiny() -> Options {
    Options { segment_bytes: 4096, spares_count: 1, reserve_bytes: 0, ..Options::default() }
}

/// Recovers, and returns the replayed records and the result of recovery.
fn recover(dir: &Dir<Faults>, accept_loss: bool) -> Result<(Vec<Fact>, Recovered<Faults>), Error> {
    let snapshot = dir.newest_snapshot()?;
    let mut recovery = dir.recover(snapshot.as_ref(), accept_loss)?;
    let mut facts = Vec::new();
    while let Some(entry) = recovery.next()? {
        facts.push((entry.lsn, entry.kind, entry.payload.to_vec()));
    }
    Ok((facts, recovery.finish()?))
}

fn start(world: &Faults, accept_loss: bool) -> Result<(Running<Faults>, Vec<Fact>), Error> {
    let dir = Dir::open(world.clone(), tiny())?;
    let (facts, recovered) = recover(&dir, accept_loss)?;
    Ok((dir.start(recovered, 1, Box::new(|_| {}))?, facts))
}

/// Appends a record, making room if there is none.
fn append(running: &mut Running<Faults>, payload: &[u8]) -> Fact {
    let log = &mut running.log;
    let lsn = log.append(Kind::Mutations, 1, 2, 3, payload).unwrap_or_else(|_| {
        running.preparer.turn().expect("room on the disk");
        log.append(Kind::Mutations, 1, 2, 3, payload).expect("a spare is ready")
    });
    (lsn, Kind::Mutations, payload.to_vec())
}

/// Takes a snapshot of everything, which must be synced; with a wrong checksum of the record unless `crc_change` is 0.
fn snapshot(running: &mut Running<Faults>, crc_change: u32) {
    let lsn = running.log.last_lsn();
    assert_eq!(running.marks.synced(), lsn, "a snapshot covers synced records");
    let mut writer = running.snapshots.create(lsn, running.log.last_crc() ^ crc_change).expect("room");
    writer.write_all(format!("state after {lsn}").as_bytes()).expect("room");
    running.snapshots.commit(writer, [7; 32]).expect("room");
}

fn put_changed(world: &Faults, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = world.contents(name).expect("the file is there");
    change(&mut bytes);
    world.put(name, &bytes);
}
