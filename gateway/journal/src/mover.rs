//! The mover: a part of the checkpoint keeper. Rows that have ended leave its copy of the state for the history store,
//! then the core drops them.
//!
//! ```text
//! fold up to L ─► rows that leave ─► store: written, synced, read back, named ─► snapshot without them ─► core drops them
//! ```
//!
//! The oldest days may then be cut (`cutting.rs`).
//!
//! Rows that press against their bound ask for a checkpoint of their own, unless the store says that it takes nothing.
//!
//! The records up to L are on the device before anything moves. A crash between two steps repeats work: the rows are
//! still in the snapshot before, so the next keeper writes them again, which changes nothing.

mod cutting;

pub use cutting::AskCut;

use cutting::Cutter;
use engine::departed::{Departures, Leaving};
use engine::id::{OrderId, UserId};
use engine::shard::bound::EndedBound;
use engine::time::{Timestamp, UtcDay};
use engine::user::Users;
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wal::{Lsn, Marks};

/// Most orders that leave with one checkpoint, so that neither the memory for their list nor the time until the snapshot
/// grows with a long history that was never moved. The others leave with later ones.
const ORDERS_MAX: usize = 1 << 21;

/// How long a mover whose ended rows press waits from one attempt outside of the usual checkpoints to the next. After each
/// whose checkpoint moved nothing it waits twice as long, up to the second: a checkpoint reads and checks the whole state.
const PRESSED_EVERY: Duration = Duration::from_secs(5);
const PRESSED_PAUSE_MAX: Duration = Duration::from_secs(160);

/// What the mover did since its start. Plain numbers, not used to order memory accesses.
#[derive(Debug, Default)]
pub struct MoverFigures {
    pub orders: AtomicU64,
    pub fills: AtomicU64,
    pub positions: AtomicU64,
    /// The LSN up to which rows have moved, as far as this process knows; 0: none has.
    pub upto: AtomicU64,
    /// Server time of the last record when the last attempt succeeded, µs; 0: none did.
    pub succeeded_at: AtomicU64,
    /// The last attempt failed.
    pub is_failing: AtomicBool,
}

/// A move ended because the process stops, which says nothing about the store.
#[derive(Clone, Copy, Debug)]
pub struct GivenUp;

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server stops")
    }
}

impl Error for GivenUp {}

/// The history store, as the mover sees it.
pub trait EndedStore: Send {
    /// Opens what [`EndedStore::write`] needs, ahead of it. Called now and then until it returns true.
    fn prepare(&mut self) -> bool {
        true
    }

    /// Whether rows could be written now, as far as that is known without them. Takes no time: asked every few seconds.
    ///
    /// # Errors
    /// Why [`EndedStore::write`] would fail.
    fn ready(&mut self) -> Result<(), Box<dyn Error>> {
        Ok(())
    }

    /// Makes these rows of `users` durable, with `upto` as the LSN that they can be read with, whose record has this
    /// checksum. A repeated call with the same rows changes nothing.
    ///
    /// # Errors
    /// [`GivenUp`], or the store takes nothing for now; the rows stay in memory.
    fn write(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn, record_crc: u32) -> Result<(), Box<dyn Error>>;

    /// The first day that is to be kept, on this day or a later one: it is that of the last record. `None`: all are.
    fn wanted_from(&mut self, _today: UtcDay) -> Option<UtcDay> {
        None
    }

    /// History is kept from `day` on, says the log: rows that ended before are not read any more, and removed some time.
    /// `users`: those who have such rows, ascending. Called again with the same day when there may be more of them.
    fn cut(&mut self, _day: UtcDay, _users: Vec<UserId>) {}

    /// Goes on with what a cut has left to do. Called now and then.
    fn tend(&mut self) {}
}

/// How long ended rows stay in memory.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// After their end, in µs.
    pub hot_us: u64,
    /// Ended orders of a user, and closed positions, that stay at most.
    pub rows_max: usize,
    /// Ended orders of all users that stay at most. Each costs every snapshot its bytes.
    pub orders_max: usize,
}

/// What an attempt to relieve the memory of ended rows came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relief {
    /// The store takes nothing for now. This costs nothing to find out.
    NotReady,
    /// A checkpoint moved nothing, or failed.
    Nothing,
    Moved,
}

/// Hands rows to the shards to drop; false: a queue is full, and it is tried again.
pub type DropRows = Box<dyn FnMut(&Arc<Departures>) -> bool + Send>;

/// Moves ended rows.
pub struct Mover {
    store: Box<dyn EndedStore>,
    window: Window,
    drop_rows: DropRows,
    /// `None`: history is not cut.
    cutter: Option<Cutter>,
    /// Rows that left the copy, and that no snapshot is known to lack yet.
    moved: Vec<Arc<Departures>>,
    /// Rows that the newest snapshot lacks, and that the shards still have.
    due: VecDeque<Arc<Departures>>,
    is_prepared: bool,
    /// The last attempt failed; logged once.
    failing: bool,
    /// Of memory for ended rows.
    bound: Option<Arc<EndedBound>>,
    /// The end of the last attempt because of it, and the pause after that.
    pressed_at: Option<Instant>,
    pause: Duration,
    /// Placements are refused because of it; logged once.
    is_full: bool,
    figures: Arc<MoverFigures>,
}

impl Mover {
    pub fn new(store: Box<dyn EndedStore>, window: Window, drop_rows: DropRows) -> Mover {
        Mover {
            store,
            window,
            drop_rows,
            cutter: None,
            moved: Vec::new(),
            due: VecDeque::new(),
            is_prepared: false,
            failing: false,
            bound: None,
            pressed_at: None,
            pause: PRESSED_EVERY,
            is_full: false,
            figures: Arc::default(),
        }
    }

    /// Moves all that has ended, however recent, and does not wait for the usual checkpoint, while ended rows press against
    /// this bound.
    pub fn bounded(self, bound: Arc<EndedBound>) -> Mover {
        Mover { bound: Some(bound), ..self }
    }

    /// Notes what it does in these figures.
    pub fn noting(self, figures: Arc<MoverFigures>) -> Mover {
        Mover { figures, ..self }
    }

    fn is_under_pressure(&self) -> bool {
        self.bound.as_ref().is_some_and(|bound| bound.is_pressed())
    }

    /// Whether ended rows ask for a checkpoint now.
    pub(crate) fn presses(&self) -> bool {
        self.is_under_pressure() && self.pressed_at.is_none_or(|at| at.elapsed() >= self.pause)
    }

    /// An attempt to relieve the memory of ended rows is over. They ask again after a pause.
    pub(crate) fn relieved(&mut self, relief: Relief) {
        self.pressed_at = Some(Instant::now());
        self.pause = match relief {
            Relief::NotReady | Relief::Moved => PRESSED_EVERY,
            Relief::Nothing => (self.pause * 2).min(PRESSED_PAUSE_MAX),
        };
    }

    /// Whether the store would take rows, as far as that is known without them.
    pub(crate) fn is_ready(&mut self) -> bool {
        self.is_prepared = self.is_prepared || self.store.prepare();
        if !self.is_prepared {
            return false;
        }
        match self.store.ready() {
            Ok(()) => true,
            Err(error) => {
                self.note_failure(&*error);
                false
            }
        }
    }

    /// Whether rows have left the copy that no snapshot is known to lack.
    pub(crate) fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Cuts the history where the store wants it.
    pub fn cutting(self, ask: AskCut) -> Mover {
        Mover { cutter: Some(Cutter::new(ask)), ..self }
    }

    /// Whether that is to be decided without a checkpoint.
    pub(crate) fn decides(&self) -> bool {
        self.cutter.as_ref().is_some_and(Cutter::is_due)
    }

    /// Decides whether the history of `users` is to be cut; `known`: from when on it is kept in their state, whose last
    /// record has this time.
    pub(crate) fn decide_cut(&mut self, users: &Users, known: UtcDay, newest: Timestamp) {
        if let Some(cutter) = &mut self.cutter {
            cutter.decide(&mut *self.store, users, known, newest.day());
        }
    }

    /// Moves what has ended from `users`, the state up to `upto`, whose last record has this checksum and this time. `rest`
    /// is called between pieces. If the store fails, nothing leaves.
    pub(crate) fn move_ended(
        &mut self,
        users: &mut Users,
        (upto, record_crc): (Lsn, u32),
        newest: Timestamp,
        rest: impl Fn(),
    ) {
        let hot_us = if self.is_under_pressure() { 0 } else { self.window.hot_us };
        let ended_before = Timestamp(newest.0.saturating_sub(hot_us));
        let ended_before = ended_before.max(users.ended_before_keeping(self.window.orders_max));
        let mut leaving = users.leaving(ended_before, self.window.rows_max);
        shorten(&mut leaving, ORDERS_MAX);
        if leaving.is_empty() {
            return;
        }
        match self.store.write(users, &leaving, upto, record_crc) {
            Ok(()) => {}
            Err(error) if error.is::<GivenUp>() => return,
            Err(error) => return self.note_failure(&*error),
        }
        if std::mem::take(&mut self.failing) {
            tracing::info!("ended orders move to the history store again");
        }
        self.figures.is_failing.store(false, Ordering::Relaxed);
        let before = users.rows();
        let mut pieces = Vec::new();
        for leaving in &leaving {
            for piece in pieces_of(users, leaving) {
                rest();
                let sum = users.depart(&piece);
                pieces.push((piece, sum));
            }
        }
        users.set_departed_upto(upto.0);
        let after = users.rows();
        for (moved, count) in [
            (&self.figures.orders, before.orders - after.orders),
            (&self.figures.fills, before.fills - after.fills),
            (&self.figures.positions, before.positions - after.positions),
        ] {
            moved.fetch_add(count as u64, Ordering::Relaxed);
        }
        self.figures.upto.store(upto.0, Ordering::Relaxed);
        self.figures.succeeded_at.store(newest.0, Ordering::Relaxed);
        self.moved.push(Arc::new(Departures { upto: upto.0, pieces }));
    }

    /// Nothing moves, for this reason.
    fn note_failure(&mut self, error: &dyn Error) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(%error, "ended orders cannot move to the history store; they stay in memory, and the next \
                snapshot tries again");
        }
        self.figures.is_failing.store(true, Ordering::Relaxed);
    }

    /// A snapshot without the moved rows was published.
    pub(crate) fn published(&mut self) {
        self.due.extend(self.moved.drain(..));
        self.drop_due();
    }

    /// Prepares the store, and hands over what could not be handed over before. Must be called now and then.
    pub(crate) fn turn(&mut self, marks: &Marks) {
        self.is_prepared = self.is_prepared || self.store.prepare();
        self.drop_due();
        self.note_full();
        if let Some(cutter) = &mut self.cutter {
            cutter.turn(&mut *self.store, marks);
            self.store.tend();
        }
    }

    /// Logs that placements are refused, and the end of that.
    fn note_full(&mut self) {
        let Some(bound) = &self.bound else { return };
        let is_full = bound.is_full();
        match (std::mem::replace(&mut self.is_full, is_full), is_full) {
            (false, true) => tracing::error!(
                bytes = bound.bytes(),
                bytes_max = bound.bytes_max(),
                "ended orders fill the memory for them (history.hot_bytes_max): orders are refused until they move to \
                 the history store; cancels go on"
            ),
            (true, false) => tracing::info!(
                bytes = bound.bytes(),
                refused = bound.refused(),
                "ended orders have left memory: orders are taken again"
            ),
            _ => {}
        }
    }

    fn drop_due(&mut self) {
        while let Some(departures) = self.due.front() {
            if !(self.drop_rows)(departures) {
                return;
            }
            self.due.pop_front();
        }
    }
}

/// Leaves out what is beyond this many orders. Of a user who keeps some of them no position leaves: the remembered request
/// of an order that stays may show it.
fn shorten(leaving: &mut Vec<Leaving>, orders_max: usize) {
    let mut left = orders_max;
    for of in &mut *leaving {
        if of.orders.len() > left {
            of.orders.truncate(left);
            of.positions.clear();
        }
        of.positions.truncate(left);
        left -= of.orders.len();
    }
    leaving.retain(|of| !of.orders.is_empty() || !of.positions.is_empty());
}

/// The same rows in pieces that a shard drops in one turn: some orders with their fills, or some positions.
fn pieces_of(users: &Users, leaving: &Leaving) -> Vec<Leaving> {
    let user = leaving.user;
    let rows = |id: &OrderId| {
        let fills = users.get(user).and_then(|user| Some(user.fills_of(user.order(*id)?).len()));
        1 + fills.unwrap_or_default()
    };
    let mut pieces: Vec<Leaving> = Vec::new();
    let mut room = 0;
    for (order, rows) in leaving.orders.iter().map(|order| (*order, rows(order))) {
        if rows > room {
            pieces.push(Leaving { user, orders: Vec::new(), positions: Vec::new() });
            room = Departures::PIECE_ROWS;
        }
        pieces.last_mut().expect("one was begun").orders.push(order);
        room = room.saturating_sub(rows);
    }
    let positions = leaving.positions.chunks(Departures::PIECE_ROWS);
    pieces.extend(positions.map(|positions| Leaving { user, orders: Vec::new(), positions: positions.to_vec() }));
    pieces
}

#[cfg(test)]
mod tests;
