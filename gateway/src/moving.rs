//! Connects the mover (`journal::mover`) with the history store, the filters over its names, and the shards.

use crate::config::Config;
use crate::metrics::history::EndedFigures;
use edge::engine_client::Reply;
use engine::command::{Command, Envelope};
use engine::departed::Leaving;
use engine::id::MARKETS;
use engine::look_up::filters::keys_of;
use engine::ring::Ring;
use engine::user::Users;
use history::filters::{FILTERS_FOLDER, FilterError, FilterWriter, OpenFilters};
use history::{EndedStore, EndedWriter, StoreError};
use host::clock::Clock;
use journal::mover::{DropRows, Mover};
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::{Files, Lsn, Storage as _};

/// A file beside the filters: they were made of a store that lacks rows, and lack the names of those.
pub const FILTERS_LACK: &str = "filters.lack";

/// Nothing moves unless the disk has this much more than the reserve of the log: what the store writes while it merges
/// files must not take the room of the log, whose orders would be refused first.
const MOVE_FREE_BYTES: u64 = 64 << 20;
/// What an order with its rows in all tables takes before they are merged, at most, usually.
const ROW_BYTES: u64 = 1_024;

/// What the recovered state and the log say about rows that have left memory.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    /// The identity of the log.
    pub log: u128,
    /// The LSN up to which rows have left; 0: none have.
    pub upto: u64,
    /// The last record of the log at this start.
    pub end: u64,
}

/// The mover of a server.
pub fn mover(
    config: &Config,
    figures: &EndedFigures,
    needed: Needed,
    inboxes: &[Arc<Ring<Envelope<Reply>>>],
    clock: &Clock,
) -> Mover {
    let EndedFigures { bound, mover: moved, store, filters, reads: _ } = figures;
    moved.upto.store(needed.upto, Ordering::Relaxed);
    let moving = Moving {
        writer: store.writer(needed.log),
        names: Names {
            folder: config.data.dir.join("history").join(FILTERS_FOLDER),
            bytes_max: config.history.filter_bytes,
            ids_us: config.rules.client_ids_us,
            open: filters.clone(),
            clock: clock.clone(),
            writer: None,
        },
        store: store.clone(),
        needed,
        fits: false,
        room: Room { folder: config.data.dir.clone(), free_bytes_min: config.journal.reserve_bytes + MOVE_FREE_BYTES },
    };
    let mover = Mover::new(Box::new(moving), config.history.window, drop_rows(inboxes.to_vec(), clock.clone()));
    mover.bounded(bound.clone()).noting(moved.clone())
}

/// Hands rows to every shard. A shard that gets them twice, because the queue of another was full, passes over those that
/// it has dropped.
fn drop_rows(inboxes: Vec<Arc<Ring<Envelope<Reply>>>>, clock: Clock) -> DropRows {
    Box::new(move |departures| {
        let envelope = || Envelope {
            owner: MARKETS,
            command: Command::Depart(departures.clone()),
            received_at: clock.now(),
            reply: Reply::Discard,
        };
        inboxes.iter().all(|inbox| inbox.push(envelope()).is_ok())
    })
}

/// Where ended rows go.
struct Moving {
    store: EndedStore,
    writer: EndedWriter,
    names: Names,
    needed: Needed,
    /// The store has the rows that this start needs.
    fits: bool,
    room: Room,
}

/// The disk of the store, which is that of the log.
struct Room {
    folder: PathBuf,
    free_bytes_min: u64,
}

impl Room {
    /// # Errors
    /// Why nothing may be written for now.
    fn check(&self, leaving: &[Leaving]) -> Result<(), Box<dyn Error>> {
        let rows: usize = leaving.iter().map(|of| of.orders.len() + of.positions.len()).sum();
        let needed = self.free_bytes_min + rows as u64 * ROW_BYTES;
        let free = Files::open_existing(&self.folder)?.free_bytes()?;
        match free < needed {
            true => Err(format!("the disk has {free} bytes free, and needs {needed} for a move").into()),
            false => Ok(()),
        }
    }
}

/// The names of rows that have left memory.
struct Names {
    folder: PathBuf,
    bytes_max: u64,
    /// How long client order ids count.
    ids_us: u64,
    open: OpenFilters,
    clock: Clock,
    /// `None` until it is prepared.
    writer: Option<FilterWriter>,
}

impl Moving {
    /// Opens the filters, and makes them again if they cannot be used or lack names.
    fn names(&mut self) -> Result<&mut FilterWriter, Box<dyn Error>> {
        if !self.fits {
            let Needed { log, upto, end } = self.needed;
            self.store.fits(log, upto, end)?;
            self.fits = true;
            let holes = self.store.holes();
            if !holes.is_empty() {
                tracing::warn!(
                    users = holes.len(),
                    "the history store lacks rows since it was rebuilt: what needs them is refused with \
                     PERSISTENCE_UNKNOWN; papertape history verify names the users"
                );
                if self.names.lacking().exists() {
                    self.names.open.lack(holes);
                }
            }
        }
        let Names { folder, bytes_max, open, .. } = &self.names;
        if self.names.writer.is_none() {
            let (log, upto) = (self.needed.log, self.store.upto()?);
            let opened = match FilterWriter::open(folder, log, *bytes_max, open, upto) {
                Err(FilterError::Missing) if upto == 0 => FilterWriter::create(folder, log, *bytes_max, open)?,
                Err(error) => {
                    if !matches!(error, FilterError::Missing) {
                        tracing::warn!(%error, "filters of the history store are made again");
                    }
                    let holes = self.store.holes();
                    if !holes.is_empty() {
                        // They will lack the names of rows that the store lacks, from now on.
                        self.names.note_lacking()?;
                        self.names.open.lack(holes);
                    }
                    let ids_from = self.names.ids_from();
                    let names = || self.store.names(upto).map(|name| name.map_err(NamesError::from));
                    FilterWriter::rebuild(folder, log, *bytes_max, open, (upto, ids_from), names)?
                }
                Ok(opened) => opened,
            };
            self.names.writer = Some(opened);
        }
        Ok(self.names.writer.as_mut().expect("it was opened"))
    }
}

impl Names {
    /// A file that is there if the filters lack names of rows that the store lacks.
    fn lacking(&self) -> PathBuf {
        self.folder.with_file_name(FILTERS_LACK)
    }

    fn note_lacking(&self) -> io::Result<()> {
        let path = self.lacking();
        File::create(&path)?.sync_all()?;
        File::open(path.parent().expect("it is in a folder"))?.sync_all()
    }

    /// The first hour whose ids count.
    fn ids_from(&self) -> u32 {
        engine::time::Timestamp(self.clock.now().0.saturating_sub(self.ids_us)).hour()
    }
}

impl journal::mover::EndedStore for Moving {
    fn prepare(&mut self) -> bool {
        let prepared = self.names().map(drop);
        match prepared {
            Err(error)
                if error.downcast_ref::<StoreError>().is_some_and(|error| matches!(error, StoreError::Opening)) =>
            {
                false
            }
            Err(error) => {
                tracing::error!(%error, "the history store does not fit the log: what has left memory cannot be read, \
                    and nothing moves; papertape history verify says more");
                true
            }
            Ok(()) => true,
        }
    }

    fn write(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn) -> Result<(), Box<dyn Error>> {
        self.names()?;
        self.room.check(leaving)?;
        self.store.belongs_to(self.needed.log, users)?;
        self.writer.ready()?;
        // Names first: a name without rows costs a look-up in vain, and after a crash between the two, filters that lack
        // names would have to be made again from all rows.
        let names = self.names()?;
        for of in leaving {
            let user = users.get(of.user).expect("it has rows that leave");
            for order in of.orders.iter().filter_map(|id| user.order(*id)) {
                keys_of(of.user, order, user.request_of(order.id)).for_each(|name| names.add(name));
            }
        }
        names.sync(upto.0)?;
        self.writer.write(users, leaving, upto.0)?;
        let ids_from = self.names.ids_from();
        self.names()?.forget(ids_from);
        Ok(())
    }
}

/// Why names cannot be read or written.
#[derive(Debug)]
enum NamesError {
    Store(StoreError),
    Filter(FilterError),
}

impl std::fmt::Display for NamesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NamesError::Store(error) => error.fmt(f),
            NamesError::Filter(error) => error.fmt(f),
        }
    }
}

impl Error for NamesError {}

impl From<StoreError> for NamesError {
    fn from(error: StoreError) -> NamesError {
        NamesError::Store(error)
    }
}

impl From<FilterError> for NamesError {
    fn from(error: FilterError) -> NamesError {
        NamesError::Filter(error)
    }
}
