//! `GET /v1/admin/node`: which server this is, where its log stands, and how far back it reaches.

use crate::backup::Running;
use edge::api::health::bytes_in;
use edge::app::App;
use engine::time::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;
use wal::{Files, Lsn, Scan, Snapshots};
use wire::write;

/// Files of the data directory that are looked at for its size.
const FILES_MAX: usize = 100_000;

/// What is asked.
pub struct Node {
    app: Arc<App>,
    running: Running,
    /// The last horizon: to find its time takes the reading of a segment.
    horizon: Mutex<Option<Horizon>>,
}

/// The oldest moment whose state can still be made of what the directory keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Horizon {
    lsn: Lsn,
    /// Server time of that record, or of the first one behind it where it was given up with its segment.
    at: Option<Timestamp>,
}

impl Node {
    pub fn new(app: Arc<App>, running: Running) -> Node {
        Node { app, running, horizon: Mutex::new(None) }
    }

    /// The answer's JSON. Reads files: for a thread that may wait.
    ///
    /// # Errors
    /// What could not be read.
    pub fn tell(&self) -> Result<Vec<u8>, wal::Error> {
        let Node { app, running, .. } = self;
        let (snapshot, horizon) = self.look()?;
        let mut files_left = FILES_MAX;
        let bytes = bytes_in(&running.directory, &mut files_left);
        let mut told = Vec::with_capacity(512);
        write::object(&mut told, |o| {
            o.text("version", env!("CARGO_PKG_VERSION"));
            o.text("instance", &app.instance);
            // There are no forks and no disposable directories, and nothing has a name but what the log has.
            o.null("forked_from");
            o.array("lineage", [(); 0], |_, ()| {});
            o.boolean("disposable", false);
            o.object("lsn", |o| {
                o.integer("appended", running.marks.appended().0);
                o.integer("synced", running.marks.synced().0);
                o.integer_or_null("snapshot", snapshot.map(|lsn| lsn.0));
            });
            o.object("horizon", |o| {
                o.ts_or_null("at", horizon.at);
                o.integer("lsn", horizon.lsn.0);
            });
            o.word("clock", "wall");
            o.array("checkpoints", [(); 0], |_, ()| {});
            o.integer("data_bytes", bytes);
        });
        Ok(told)
    }

    /// The newest snapshot and the horizon.
    fn look(&self) -> Result<(Option<Lsn>, Horizon), wal::Error> {
        let Running { directory, marks, covered, .. } = &self.running;
        // Nothing is given up between two looks.
        let _pin = covered.pin();
        let storage = Files::open_existing(directory)?;
        let snapshots = Snapshots::of(&storage)?.list()?;
        let first = wal::segments(&storage)?.first().map_or(Lsn(1), |segment| segment.first_lsn);
        // Of the kept snapshots the older one is what the log reaches back to.
        let older = snapshots.iter().nth_back(1).or(snapshots.last()).copied();
        let lsn = if first <= Lsn(1) { Lsn(1) } else { older.unwrap_or(first) };
        let mut known = self.horizon.lock();
        if let Some(horizon) = known.filter(|known| known.lsn == lsn && known.at.is_some()) {
            return Ok((snapshots.last().copied(), horizon));
        }
        let after = if first <= lsn { lsn.before() } else { lsn };
        let synced = marks.synced();
        let at = match after < synced {
            true => Scan::open(&storage, after)?.until(synced).next()?.map(|entry| Timestamp(entry.time)),
            false => None,
        };
        let horizon = Horizon { lsn, at };
        *known = Some(horizon);
        Ok((snapshots.last().copied(), horizon))
    }
}
