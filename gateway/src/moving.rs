//! Connects the mover (`journal::mover`) with the history store, the filters over its names, and the shards.

use crate::config::Config;
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
use std::path::PathBuf;
use std::sync::Arc;
use wal::Lsn;

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
    store: &EndedStore,
    filters: &OpenFilters,
    needed: Needed,
    inboxes: &[Arc<Ring<Envelope<Reply>>>],
    clock: &Clock,
) -> Mover {
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
    };
    Mover::new(Box::new(moving), config.history.window, drop_rows(inboxes.to_vec(), clock.clone()))
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
        self.store.belongs_to(self.needed.log, users)?;
        self.writer.write(users, leaving, upto.0)?;
        let names = self.names()?;
        for of in leaving {
            let user = users.get(of.user).expect("it has rows that leave");
            for order in of.orders.iter().filter_map(|id| user.order(*id)) {
                keys_of(of.user, order, user.request_of(order.id)).for_each(|name| names.add(name));
            }
        }
        names.sync(upto.0)?;
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
