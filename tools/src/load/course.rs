//! What all connections of a run share: its phase, its counts, and the operations in flight.

use super::keys::Keys;
use super::model::{ModelWriter, OrderName, Row, What};
use super::options::Mix;
use super::protocol::Protocol;
use super::tally::Tally;
use super::trader::{Action, Verdict};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What connections begin on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing but what they are given: before and after a run, and in an open loop.
    Handed,
    /// Each keeps its pipeline full.
    Closed,
    /// Each cancels the orders that it has at rest.
    Clean,
}

/// One run, on one thread.
pub struct Course {
    pub address: SocketAddr,
    pub protocol: Protocol,
    pub keys: Keys,
    /// What every id of this run begins with.
    pub run: String,
    pub mix: Mix,
    /// Most operations without an answer on one connection.
    pub pipeline: usize,
    pub phase: Cell<Phase>,
    pub tally: RefCell<Tally>,
    /// Where the model of the orders goes, if one is written.
    pub model: RefCell<Option<ModelWriter>>,
    begun: Cell<Instant>,
    /// Offered, and neither answered nor given up.
    under_way: Cell<u64>,
    idle: Notify,
}

impl Course {
    pub fn new(
        address: SocketAddr,
        protocol: Protocol,
        keys: Keys,
        run: String,
        mix: Mix,
        pipeline: usize,
        tally: Tally,
    ) -> Course {
        Course {
            address,
            protocol,
            keys,
            run,
            mix,
            pipeline,
            phase: Cell::new(Phase::Handed),
            tally: RefCell::new(tally),
            model: RefCell::new(None),
            begun: Cell::new(Instant::now()),
            under_way: Cell::new(0),
            idle: Notify::new(),
        }
    }

    /// The run begins now.
    pub fn begin(&self) {
        self.begun.set(Instant::now());
    }

    /// Since the beginning.
    pub fn now(&self) -> Duration {
        self.begun.get().elapsed()
    }

    /// Adds an operation of a connection to the model; `answer` is the whole answer, empty without one.
    pub fn note(&self, lane: usize, action: Action, verdict: Verdict, answer: &[u8]) {
        let mut model = self.model.borrow_mut();
        let Some(model) = &mut *model else { return };
        let is_cancel = matches!(action, Action::Cancel { .. });
        let what = match (verdict, is_cancel) {
            (Verdict::Refused { .. }, _) | (Verdict::Killed, true) => return,
            (Verdict::Done, true) => What::Cancelled,
            (Verdict::There | Verdict::Unknown, true) => What::CancelUnknown,
            (Verdict::Done | Verdict::There, false) => What::There,
            (Verdict::Killed, false) => What::Killed,
            (Verdict::Unknown, false) => What::Unknown,
        };
        let order = action.order();
        let name = OrderName { run: model.run(), lane: lane as u16, number: order.number };
        let row = Row::new(self.keys.users[order.user as usize].user_id, name, what, action.traded());
        let placed = (verdict == Verdict::Done && !is_cancel).then(|| self.protocol.placed(answer)).flatten();
        model.add(&placed.and_then(|placed| row.answered(&placed)).unwrap_or(row));
    }

    /// One more operation is in flight.
    pub fn offer(&self) {
        self.under_way.set(self.under_way.get() + 1);
        self.tally.borrow_mut().offered += 1;
    }

    pub fn under_way(&self) -> u64 {
        self.under_way.get()
    }

    /// `count` operations are answered or given up.
    pub fn finish(&self, count: u64) {
        self.under_way.set(self.under_way.get() - count);
        if self.under_way.get() == 0 {
            self.idle.notify_one();
        }
    }

    /// Returns when nothing is in flight.
    pub async fn idle(&self) {
        while self.under_way.get() > 0 {
            self.idle.notified().await;
        }
    }
}
