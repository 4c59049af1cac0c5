//! Who is told of what the log takes: the price history, sockets that follow a user, and the meters of the journal.

use crate::metrics::journal::JournalMeters;
use crate::ws::bells::Bells;
use engine::notice::Notice;
use history::Fills;
use host::histogram::{Micros, Nanos};
use journal::commit::CommitListener;
use wal::Lsn;

/// The owner of the log, with these listeners; and so for all of them here.
pub type Committer = journal::commit::Committer<Listeners>;
pub type CommitLane = journal::commit::CommitLane<Listeners>;
pub type CommitFigures = journal::commit::CommitFigures<Listeners>;
pub type Core = journal::core::Core<Listeners>;

/// The listeners of a server.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Shares filled, for the price history.
    pub fills: Fills,
    /// Whoever follows a user's orders.
    pub bells: Bells,
    /// Where a monitor may ask.
    pub meters: Option<JournalMeters>,
}

impl CommitListener for Listeners {
    #[inline]
    fn notice(&self, notice: &Notice) {
        self.fills.observe(notice);
        self.bells.ring(notice.user);
        if let Some(meters) = &self.meters {
            meters.fact(&notice.what);
        }
    }

    #[inline]
    fn open(&self, shard: usize, count: impl FnOnce() -> usize) {
        if let Some(meters) = &self.meters {
            meters.note_open(shard, count());
        }
    }

    #[inline]
    fn times_append(&self, behind: Lsn) -> Option<&Nanos> {
        self.meters.as_ref().and_then(|meters| meters.times_append(behind))
    }

    fn times_sync(&self) -> Option<&Micros> {
        self.meters.as_ref().map(JournalMeters::sync)
    }
}
