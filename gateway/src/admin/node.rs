//! `GET /v1/admin/node`: which server this is, the state of its log, and how far back the log reaches.

use crate::backup::Running;
use edge::api::health::bytes_in;
use edge::app::App;
use engine::time::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;
use wal::{Files, Lsn, Scan, Snapshots};
use wire::write;

/// Files of the data directory that are counted for its size.
const FILES_MAX: usize = 100_000;

/// The data of `GET /v1/admin/node`.
pub struct Node {
    app: Arc<App>,
    running: Running,
    /// The last horizon: finding its time requires reading a segment.
    horizon: Mutex<Option<Horizon>>,
}

/// The oldest moment whose state can still be rebuilt from what the directory keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Horizon {
    lsn: Lsn,
    /// Server time of that record, or of the first one after it if it was released with its segment.
    at: Option<Timestamp>,
}

impl Node {
    pub fn new(app: Arc<App>, running: Running) -> Node {
        Node { app, running, horizon: Mutex::new(None) }
    }

    /// The JSON of the response. Reads files: for a thread that may block.
    ///
    /// # Errors
    /// The error of the file that could not be read.
    pub fn json(&self) -> Result<Vec<u8>, wal::Error> {
        let Node { app, running, .. } = self;
        let (snapshot, horizon) = self.read_horizon()?;
        let mut files_left = FILES_MAX;
        let bytes = bytes_in(&running.directory, &mut files_left);
        let mut json = Vec::with_capacity(512);
        write::object(&mut json, |o| {
            o.text("version", env!("CARGO_PKG_VERSION"));
            o.text("instance", &app.instance.id);
            // This build has no forks, no disposable directories, and no named checkpoints.
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
        Ok(json)
    }

    /// The newest snapshot and the horizon.
    fn read_horizon(&self) -> Result<(Option<Lsn>, Horizon), wal::Error> {
        let Running { directory, marks, covered, .. } = &self.running;
        // Nothing is released between the two reads.
        let _pin = covered.pin();
        let storage = Files::open_existing(directory)?;
        let snapshots = Snapshots::of(&storage)?.list()?;
        let first = wal::segments(&storage)?.first().map_or(Lsn(1), |segment| segment.first_lsn);
        // The log reaches back to the older of the kept snapshots.
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
