//! The listeners of the log (the price history, sockets that follow a user, alerts, the meters of the journal), and the
//! connections of feed and edge.

use crate::metrics::journal::JournalMeters;
use ::integrations::owing::Owing;
use edge::ws::publish::BookNews;
use edge::ws::user_wakeups::UserWakeups;
use engine::command::{Answer, Command, Envelope};
use engine::id::UserId;
use engine::notice::Notice;
use engine::time::Timestamp;
use history::{Fills, Recorder};
use host::histogram::{Micros, Nanos};
use journal::commit::{CommitListener, OrderCounts, Reply};
use std::cell::RefCell;
use std::rc::Rc;
use tokio::sync::oneshot;
use venue::feed::Links;
use wal::{Files, Lsn};

/// The owner of the log, with these listeners; likewise for the types below.
pub type Committer = journal::commit::Committer<Files, Listeners>;
pub type CommitLane = journal::commit::CommitLane<Listeners>;
pub type CommitFigures = journal::commit::CommitFigures<Listeners>;
pub type Core = journal::core::Core<Listeners>;

/// The listeners of a server.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Shares filled, for the price history.
    pub fills: Fills,
    /// Wakes the streams that follow a user's orders.
    pub user_wakeups: UserWakeups,
    /// Users that are owed alerts.
    pub owing: Owing,
    /// Meters, if there is a listener for monitors.
    pub meters: Option<JournalMeters>,
}

impl CommitListener for Listeners {
    #[inline]
    fn notice(&self, notice: &Notice) {
        self.fills.observe(notice);
        self.user_wakeups.wake(notice.user);
        if let Some(meters) = &self.meters {
            meters.fact(&notice.what);
        }
    }

    fn owes(&self, owner: UserId) {
        self.owing.add(owner);
    }

    #[inline]
    fn orders(&self, shard: usize, count: impl FnOnce() -> OrderCounts) {
        if let Some(meters) = &self.meters {
            meters.note_orders(shard, count());
        }
    }

    #[inline]
    fn times_append(&self, after: Lsn) -> Option<&Nanos> {
        self.meters.as_ref().and_then(|meters| meters.times_append(after))
    }

    fn times_sync(&self) -> Option<&Micros> {
        self.meters.as_ref().map(JournalMeters::sync)
    }
}

/// The types that the feed of a server is connected to.
pub struct ServerLinks;

impl Links for ServerLinks {
    type Log = CommitLane;
    type Books = BookNews;
    type Prices = Recorder;
}

/// The feed's connection to log and shards.
pub type FeedLane = venue::feed::FeedLane<CommitLane>;

/// The core, for the thread that runs it.
pub struct CoreHere(pub Rc<RefCell<Core>>);

impl edge::engine_client::Core for CoreHere {
    #[inline]
    fn take(&self, envelope: Envelope<Reply>, now: Timestamp) {
        self.0.borrow_mut().take(envelope, now);
    }

    #[inline]
    fn ask(&self, owner: UserId, command: Command, now: Timestamp) -> Result<Answer, oneshot::Receiver<Answer>> {
        self.0.borrow_mut().ask(owner, command, now)
    }

    #[inline]
    fn warm(&self, owner: UserId) {
        self.0.borrow().warm(owner);
    }
}
