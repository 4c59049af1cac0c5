//! A shard with its log, all on one thread: for verbs that write to the directory of a stopped server.

use crate::Failure;
use engine::book::registry::Books;
use engine::command::{Answer, Command, Envelope};
use engine::directory::Directory;
use engine::id::UserId;
use engine::market::catalog::Catalog;
use engine::shard::{Outbox as _, Room, Shard};
use engine::time::Timestamp;
use gateway::config::{Config, Durability};
use host::clock::Clock;
use host::leap::Leap;
use journal::commit::{CommitFigures, Committer, LogSize, Reply};
use journal::recover::{self, RESTORING, RecoverError, Recovery};
use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};
use wal::storage::LOCK_NAME;
use wal::{Files, Options, Prepared, Preparer, Running, Syncer};

/// Whether no server has ever had this directory; it may not exist. Creates nothing.
///
/// # Errors
/// [`RecoverError`]: the directory cannot be used.
pub fn is_unused(directory: &Path) -> Result<bool, RecoverError> {
    let files = match Files::open_existing(directory) {
        Err(wal::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened?,
    };
    let is_marked = [LOCK_NAME, RESTORING].iter().any(|name| directory.join(name).exists());
    Ok(!is_marked && wal::origin(&files)?.is_none())
}

/// The directory of a stopped server, recovered and locked by this process.
pub struct Recovered {
    recovery: Recovery,
    clock: Clock,
}

impl Recovered {
    /// # Errors
    /// [`RecoverError`]: the directory is in use, or damaged.
    pub fn of(config: &Config) -> Result<Recovered, RecoverError> {
        let options = Options {
            segment_bytes: config.journal.segment_bytes,
            spares_count: config.journal.spares_count,
            reserve_bytes: config.journal.reserve_bytes,
            ..Options::default()
        };
        let clock = Clock::ahead_of_wall(config.server.clock_ahead_file.as_deref());
        Ok(Recovered { recovery: recover::recover(&config.data.dir, options, 1)?, clock })
    }

    /// Whether there is no record yet.
    pub fn is_new(&self) -> bool {
        self.recovery.report.lsn == wal::Lsn::ZERO
    }

    /// Begins to write.
    ///
    /// # Errors
    /// Those of the log.
    pub fn start(self, config: &Config) -> Result<Desk, Failure> {
        let Recovered { recovery: Recovery { dir, log, mut state, .. }, clock } = self;
        // As at a start of the server: what is written now must not hide that the machine's clock is doubted.
        let newest = Some(Timestamp(log.last_time)).filter(|newest| *newest > Timestamp(0));
        Leap::of_start(&config.data.dir, newest, clock.wall_now(), config.clock.leap_wait)?;
        clock.not_before(newest.unwrap_or_default());
        let Running { log, syncer, preparer, .. } = dir.start(log, clock.now().0, Box::new(|_| {}))?;
        let directory = Arc::new(Directory::new());
        let users = state.users.pop().expect("a state of one shard");
        users.iter().for_each(|user| directory.add_user(user));
        let rules = Arc::new(config.rules.clone());
        let (books, catalog) = (Arc::new(Books::new()), Arc::new(Catalog::new()));
        let shard = Shard::new(0, 1, users, rules, books, catalog, directory.clone());
        let size = LogSize::of(config.journal.segment_bytes, config.journal.spares_count, 1);
        let figures = Arc::new(CommitFigures::default());
        let committer = Committer::new(log, Durability::Process, config.rules.formats.record(), size, figures);
        Ok(Desk { directory, shard, committer, preparer, syncer, clock })
    }
}

/// A shard with its log.
pub struct Desk {
    pub directory: Arc<Directory>,
    shard: Shard<Reply>,
    committer: Committer,
    preparer: Preparer,
    syncer: Syncer,
    clock: Clock,
}

impl Desk {
    /// # Errors
    /// The disk is full, or the log has failed.
    pub fn ask(&mut self, owner: UserId, command: Command) -> Result<Answer, Failure> {
        self.make_room()?;
        let now = self.clock.now();
        let (sender, receiver) = mpsc::sync_channel(1);
        let envelope = Envelope { owner, command, received_at: now, reply: Reply::Thread(sender) };
        self.shard.take(envelope, now, &mut self.committer);
        Ok(receiver.try_recv()?)
    }

    /// Prepares spare segments as they are used up, and syncs the filled ones.
    fn make_room(&mut self) -> Result<(), Failure> {
        while self.committer.room() != Room::Ample {
            // Releases the finished segments, so that there is room for more.
            self.syncer.turn()?;
            if let Prepared::DiskFull { free_bytes } = self.preparer.turn()? {
                return Err(format!("the disk is full: {free_bytes} bytes are free, and the reserve must stay").into());
            }
        }
        Ok(())
    }

    /// Everything is on the device when this returns.
    ///
    /// # Errors
    /// Those of the log.
    pub fn end(mut self) -> Result<(), Failure> {
        self.committer.stop(self.clock.now());
        self.syncer.finish()?;
        Ok(())
    }
}
