//! Connects the mover (`journal::mover`) with the history store, the filters over its names, and the shards.

mod far;

use crate::config::{Config, KeepSettings};
use crate::metrics::history::EndedFigures;
use edge::ended_rows::HistoryFrom;
use edge::engine_client::Reply;
use engine::command::{Command, Envelope};
use engine::departed::Leaving;
use engine::id::{MARKETS, UserId};
use engine::look_up::filters::keys_of;
use engine::ring::Ring;
use engine::time::UtcDay;
use engine::user::Users;
use far::FarCuts;
use history::filters::{FILTERS_FOLDER, FilterError, FilterWriter, OpenFilters};
use history::{EndedStore, EndedWriter, StoreError, Upto};
use host::clock::Clock;
use host::leap::Leap;
use host::thread::Stop;
use journal::mover::{AskCut, DropRows, GivenUp, Mover};
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
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
    (shown, leap, stop): (Arc<HistoryFrom>, Arc<Leap>, &Stop),
) -> Mover {
    let EndedFigures { bound, mover: moved, store, filters, reads: _ } = figures;
    moved.upto.store(needed.upto, Ordering::Relaxed);
    let room = Room { folder: config.data.dir.clone(), free_bytes_min: config.journal.reserve_bytes + MOVE_FREE_BYTES };
    let of_merges = room.clone();
    let moving = Moving {
        writer: store.writer(needed.log).until(stop.clone()).within(Box::new(move || of_merges.left())),
        names: Names {
            folder: config.data.dir.join("history").join(FILTERS_FOLDER),
            bytes_max: config.history.filter_bytes,
            ids_us: config.rules.client_ids_us,
            open: filters.clone(),
            clock: clock.clone(),
            writer: None,
            stop: stop.clone(),
        },
        store: store.clone(),
        needed,
        fits: false,
        room,
        cut: Cutting {
            keep: config.history.keep,
            far: FarCuts::new(clock.clone(), leap),
            shown,
            to: UtcDay(0),
            warned: false,
        },
    };
    let mover = Mover::new(Box::new(moving), config.history.window, drop_rows(inboxes.to_vec(), clock.clone()));
    mover.bounded(bound.clone()).noting(moved.clone()).cutting(ask_cut(inboxes[0].clone(), clock.clone()))
}

/// Asks one shard to journal that history is kept from a day on.
fn ask_cut(inbox: Arc<Ring<Envelope<Reply>>>, clock: Clock) -> AskCut {
    Box::new(move |day| {
        let (sender, answer) = sync_channel(1);
        let command = Command::CutHistory { day };
        let envelope = Envelope { owner: MARKETS, command, received_at: clock.now(), reply: Reply::Thread(sender) };
        inbox.push(envelope).is_ok().then_some(answer)
    })
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
    cut: Cutting,
}

/// The disk of the store, which is that of the log.
#[derive(Clone)]
struct Room {
    folder: PathBuf,
    free_bytes_min: u64,
}

impl Room {
    /// Bytes that are free beyond those that must be; none if the disk does not say it.
    fn left(&self) -> u64 {
        let free = Files::open_existing(&self.folder).ok().and_then(|files| files.free_bytes().ok());
        free.unwrap_or(0).saturating_sub(self.free_bytes_min)
    }

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

/// The oldest days.
struct Cutting {
    keep: KeepSettings,
    far: FarCuts,
    /// What answers say.
    shown: Arc<HistoryFrom>,
    /// The first day that the store keeps, as far as was asked of it.
    to: UtcDay,
    /// The days that are always kept take more than the bound; logged once.
    warned: bool,
}

/// The names of rows that have left memory.
struct Names {
    folder: PathBuf,
    bytes_max: u64,
    /// How long client order ids count.
    ids_us: u64,
    open: OpenFilters,
    clock: Clock,
    /// Ends their reading.
    stop: Stop,
    /// `None` until it is prepared.
    writer: Option<FilterWriter>,
}

impl Moving {
    /// Whether the store has the rows that this start needs.
    fn fits(&self) -> Result<(), StoreError> {
        let Needed { log, upto, end } = self.needed;
        if self.fits { Ok(()) } else { self.store.fits(log, upto, end) }
    }

    /// Opens the filters, and makes them again if they cannot be used or lack names.
    fn names(&mut self) -> Result<&mut FilterWriter, Box<dyn Error>> {
        if !self.fits {
            self.fits()?;
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
                    let stop = &self.names.stop;
                    let name = |name: Result<_, StoreError>| match stop.is_set() {
                        true => Err(NamesError::Stopped),
                        false => name.map_err(NamesError::from),
                    };
                    let names = || self.store.names(upto).map(name);
                    FilterWriter::rebuild(folder, log, *bytes_max, open, (upto, ids_from), names)?
                }
                Ok(opened) => opened,
            };
            self.names.writer = Some(opened);
        }
        Ok(self.names.writer.as_mut().expect("it was opened"))
    }

    fn write_rows(&mut self, users: &Users, leaving: &[Leaving], upto: Upto) -> Result<(), Box<dyn Error>> {
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
        if let Err(error) = names.sync(upto.lsn) {
            if error.is_full() {
                // The next move opens them again, without what was written in part.
                self.names.writer = None;
            }
            return Err(error.into());
        }
        self.writer.write(users, leaving, upto)?;
        let ids_from = self.names.ids_from();
        self.names()?.forget(ids_from);
        Ok(())
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
            Err(error) if is_stop(&*error) => false,
            Err(error) => {
                tracing::error!(%error, "the history store does not fit the log: what has left memory cannot be read, \
                    and nothing moves; papertape history verify says more");
                true
            }
            Ok(()) => true,
        }
    }

    fn ready(&mut self) -> Result<(), Box<dyn Error>> {
        self.writer.ready()?;
        self.fits()?;
        self.room.check(&[])
    }

    fn write(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn, record_crc: u32) -> Result<(), Box<dyn Error>> {
        let written = self.write_rows(users, leaving, Upto { lsn: upto.0, crc: Some(record_crc) });
        written.map_err(|error| if is_stop(&*error) { GivenUp.into() } else { error })
    }

    fn wanted_from(&mut self, today: UtcDay) -> Option<UtcDay> {
        let keep = self.cut.keep;
        let today = today.max(self.names.clock.now().day());
        let by_room = keep.bytes_max.and_then(|most| self.store.room().ok()?.first_day_within(most));
        let (wanted, is_too_much) = kept_from(keep, today, by_room);
        if is_too_much && !self.cut.warned {
            let days = keep.days_least;
            tracing::warn!(days, "the history store will take more than history.disk_bytes_max: its last days need it");
        }
        self.cut.warned = is_too_much;
        let known = self.store.shown_from();
        let wanted = wanted.filter(|day| *day > known && self.cut.far.may_cut(*day, self.store.first_day()));
        // The store may know a cut that the log lacks.
        wanted.or(Some(known).filter(|day| *day != UtcDay(0)))
    }

    fn cut(&mut self, day: UtcDay, users: Vec<UserId>) {
        // An answer that lacks a row says so.
        self.cut.shown.set(day, users);
        self.store.hide_before(day);
        self.cut.to = self.cut.to.max(day);
        self.tend();
    }

    fn tend(&mut self) {
        let day = self.cut.to;
        let cut = if day == UtcDay(0) { Ok(0) } else { self.writer.cut(day) };
        match cut {
            Ok(0) | Err(StoreError::Busy | StoreError::Opening | StoreError::Refused(_)) => {}
            Ok(orders) => {
                tracing::info!(orders, "history is kept from {} on: what ended before is cut", day.text());
            }
            Err(error) => {
                tracing::warn!(%error, "what was cut of the history is hidden, and stays on the disk");
                self.cut.to = UtcDay(0);
            }
        }
        match self.writer.tend(self.cut.keep.bytes_max) {
            Ok(false) => {}
            Ok(true) => tracing::info!("what was cut of the history is removed from the disk"),
            Err(error) => tracing::warn!(%error, "what was cut of the history stays on the disk until the next start"),
        }
    }
}

/// Whether the process stops, and nothing else is wrong.
fn is_stop(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref::<NamesError>(), Some(NamesError::Stopped))
        || matches!(error.downcast_ref::<StoreError>(), Some(StoreError::GivenUp))
}

/// The first day that is to be kept, and whether even that is too much for the disk. `by_room`: the first day for which there
/// is room, if there is not enough for all.
fn kept_from(keep: KeepSettings, today: UtcDay, by_room: Option<UtcDay>) -> (Option<UtcDay>, bool) {
    let before = |days: u32| UtcDay(today.0.saturating_sub(days));
    let latest = before(keep.days_least);
    let by_days = keep.days.map(before).filter(|day| *day != UtcDay(0));
    (by_days.max(by_room.map(|day| day.min(latest))), by_room.is_some_and(|day| day > latest))
}

/// Why names cannot be read or written.
#[derive(Debug)]
enum NamesError {
    Stopped,
    Store(StoreError),
    Filter(FilterError),
}

impl std::fmt::Display for NamesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NamesError::Stopped => f.write_str("the server stops"),
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

#[cfg(test)]
mod tests;
