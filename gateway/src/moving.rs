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
use history::{EndedStore, EndedWriter, StoreError};
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
    let moving = Moving {
        writer: store.writer(needed.log).until(stop.clone()),
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
        room: Room { folder: config.data.dir.clone(), free_bytes_min: config.journal.reserve_bytes + MOVE_FREE_BYTES },
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

    fn write_rows(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn) -> Result<(), Box<dyn Error>> {
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

    fn write(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn) -> Result<(), Box<dyn Error>> {
        let written = self.write_rows(users, leaving, upto);
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
mod tests {
    use super::*;
    use engine::book::Books;
    use engine::time::Timestamp;
    use history::{Fills, History};
    use host::job::Work as _;
    use std::path::Path;

    #[test]
    fn the_first_day_follows_from_settings_and_room() {
        let keep = |days: Option<u32>, days_least: u32| KeepSettings { days, bytes_max: None, days_least };
        let cases = [
            // Nothing is bounded, or there is room.
            (keep(None, 4), 100, None, None, false),
            (keep(Some(4), 4), 100, None, Some(96), false),
            (keep(Some(30), 4), 100, None, Some(70), false),
            // A server younger than that.
            (keep(Some(30), 4), 20, None, None, false),
            // The later of both bounds counts.
            (keep(None, 4), 100, Some(50), Some(50), false),
            (keep(Some(30), 4), 100, Some(50), Some(70), false),
            (keep(Some(30), 4), 100, Some(90), Some(90), false),
            // Never the last days, and as many as ids need.
            (keep(None, 4), 100, Some(96), Some(96), false),
            (keep(None, 4), 100, Some(97), Some(96), true),
            (keep(None, 8), 100, Some(96), Some(92), true),
            (keep(None, 8), 100, Some(200), Some(92), true),
        ];
        for (keep, today, by_room, expected, is_too_much) in cases {
            let found = kept_from(keep, UtcDay(today), by_room.map(UtcDay));
            assert_eq!(found, (expected.map(UtcDay), is_too_much), "{keep:?} {by_room:?}");
        }
        println!("first days: {} cases", cases.len());
    }

    /// Where rows go, with a disk of which this much must be free.
    fn moving(place: &Path, store: EndedStore, upto: u64, free_bytes_min: u64) -> Moving {
        let (clock, log) = (Clock::fake(Timestamp(0)), 7);
        Moving {
            writer: store.writer(log),
            names: Names {
                folder: place.join(FILTERS_FOLDER),
                bytes_max: 1 << 20,
                ids_us: 1,
                open: OpenFilters::default(),
                clock: clock.clone(),
                writer: None,
                stop: Stop::new(),
            },
            store,
            needed: Needed { log, upto, end: 10 },
            fits: false,
            room: Room { folder: place.to_owned(), free_bytes_min },
            cut: Cutting {
                keep: KeepSettings { days: None, bytes_max: None, days_least: 4 },
                far: FarCuts::new(clock, Arc::new(Leap::none())),
                shown: Arc::default(),
                to: UtcDay(0),
                warned: false,
            },
        }
    }

    /// What is known without rows: a missing store, one that lacks what the state needs, and a full disk.
    #[test]
    fn a_store_says_beforehand_that_it_takes_nothing() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let data = place.path().join("data");
        // Only its owner has access to it, unlike to the folder around it.
        drop(Files::open(&data).expect("a new directory"));
        let folder = Some(data.join("history"));
        let (mut history, ..) = History::open(folder, 8 << 20, Arc::new(Books::new()), Fills::default());
        // The first turn opens the store.
        history.take_turn(&Stop::new()).expect("a history does not fail");
        let (open, missing, all) = (history.ended(), EndedStore::missing(), u64::MAX >> 1);
        let mut cases = 0;
        // (store, LSN up to which rows have left, bytes that must be free, whether it is ready)
        for (store, upto, free_bytes_min, is_ready) in [
            (&open, 0, 0, true),
            (&open, 0, all, false),
            (&open, 5, 0, false),
            (&missing, 0, 0, false),
            (&missing, 5, all, false),
        ] {
            let mut moving = moving(&data, store.clone(), upto, free_bytes_min);
            let ready = journal::mover::EndedStore::ready(&mut moving);
            assert_eq!(ready.is_ok(), is_ready, "case {cases}: {ready:?}");
            cases += 1;
        }
        println!("stores that take nothing: {cases} cases");
    }

    /// Who sees that rows are passed over sees that answers have to say so, and for whom.
    #[test]
    fn what_is_hidden_was_published_before() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let (store, user, last) = (EndedStore::missing(), UserId(3), 20_000);
        let mut moving = moving(place.path(), store.clone(), 0, 0);
        let shown = moving.cut.shown.clone();
        let read = || {
            for reads in 1_u64.. {
                let hidden = store.shown_from();
                let is_published = || shown.of(user).is_some_and(|day| day >= hidden);
                assert!(hidden == UtcDay(0) || is_published(), "hidden before {}", hidden.0);
                if hidden.0 == last {
                    return reads;
                }
            }
            unreachable!("the last day is cut");
        };
        let reads = std::thread::scope(|scope| {
            let reading = scope.spawn(read);
            (1..=last).for_each(|day| journal::mover::EndedStore::cut(&mut moving, UtcDay(day), vec![user]));
            reading.join().expect("each cut was published")
        });
        println!("cuts that are published: {last} cases, {reads} reads beside them");
    }

    #[test]
    fn a_stop_is_no_failure() {
        let cases: [(Box<dyn Error>, bool); 6] = [
            (StoreError::GivenUp.into(), true),
            (NamesError::Stopped.into(), true),
            (StoreError::Busy.into(), false),
            (StoreError::Opening.into(), false),
            (NamesError::Filter(FilterError::Missing).into(), false),
            ("the disk is full".into(), false),
        ];
        for (error, expected) in &cases {
            assert_eq!(is_stop(&**error), *expected, "{error}");
        }
        println!("stops: {} cases", cases.len());
    }
}
