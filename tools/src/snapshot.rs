//! `snapshot`: creates, lists and verifies snapshots of a stopped data directory.

use crate::Failure;
use crate::settings::{DirectoryArgument, hex, print_line};
use clap::Subcommand;
use engine::shard::digest::ENCODING;
use host::clock::Clock;
use journal::checkpoint;
use journal::recover::{self, Recovery};
use wal::{Files, Options, Running, Snapshots};

#[derive(Subcommand)]
pub enum SnapshotVerb {
    /// Write a snapshot of the state as it is now.
    Create(DirectoryArgument),
    /// List the snapshots.
    List(DirectoryArgument),
    /// Read every snapshot from end to end.
    Verify(DirectoryArgument),
}

impl SnapshotVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            SnapshotVerb::Create(dir) => create(&dir),
            SnapshotVerb::List(dir) => {
                let snapshots = open(&dir)?;
                for lsn in snapshots.list()? {
                    print_line(format_args!("{lsn}"));
                }
                Ok(())
            }
            SnapshotVerb::Verify(dir) => {
                let snapshots = open(&dir)?;
                for lsn in snapshots.list()? {
                    let snapshot = snapshots.verify(lsn)?;
                    let state = recover::read_snapshot(&snapshots, &snapshot, 1)?;
                    print_line(format_args!(
                        "{lsn}: whole, {} bytes, {} users, {} markets, digest {} (encoding {ENCODING})",
                        snapshot.bytes,
                        recover::users_count(&state),
                        state.markets.len(),
                        hex(&recover::digest(&state))
                    ));
                }
                Ok(())
            }
        }
    }
}

fn open(dir: &DirectoryArgument) -> Result<Snapshots<Files>, Failure> {
    Ok(Snapshots::of(&Files::open_existing(dir.path())?)?)
}

fn create(dir: &DirectoryArgument) -> Result<(), Failure> {
    // A typing error in the path must not create a new directory.
    Files::open_existing(dir.path())?;
    let Recovery { dir, log, state, .. } = recover::recover(dir.path(), Options::default(), 1)?;
    let (lsn, crc) = (log.last_lsn, log.last_crc);
    let running = dir.start(log, Clock::wall().now().0, Box::new(|_| {}))?;
    let Running { mut log, mut syncer, mut snapshots, .. } = running;
    syncer.turn()?;
    let snapshot = checkpoint::write_snapshot(engine::format::Formats::Previous, &mut snapshots, &state, lsn, crc)?;
    // Without room the mark of a clean stop is missing: the next start reads a log without one, which is sound.
    let _ = log.append_clean_stop(Clock::wall().now().0);
    syncer.finish()?;
    let (bytes, digest) = (snapshot.bytes, hex(&recover::digest(&state)));
    print_line(format_args!("{lsn}: {bytes} bytes, digest {digest} (encoding {ENCODING})"));
    Ok(())
}
