//! Reads of the archive for routes: on threads beside those of the sockets, a few at a time.

use crate::past::{Made, Past, PastError};
use edge::api::simulation::archive::{Archive, MadeMarket, Reading, Unreachable};
use engine::backtest::{ArchivedMarket, ArchivedPair, Hour, HourState};
use engine::id::Outcome;
use engine::time::Timestamp;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Reads at a time, and how long one more waits.
const READS_MAX: usize = 4;
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The archive as routes read it.
pub struct Reads {
    past: Arc<Past>,
    free: Arc<Semaphore>,
}

impl Reads {
    pub fn new(past: Arc<Past>) -> Reads {
        Reads { past, free: Arc::new(Semaphore::new(READS_MAX)) }
    }

    /// Runs a read on another thread. It goes on, and keeps its place, if its request is dropped.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Past) -> Result<T, PastError> + Send + 'static,
    ) -> Result<T, Unreachable> {
        let waited = tokio::time::timeout(WAIT_MAX, self.free.clone().acquire_owned()).await;
        let Ok(Ok(place)) = waited else { return Err(Unreachable) };
        let past = self.past.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            read(&past)
        });
        match done.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(PastError::Busy)) => Err(Unreachable),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the archive cannot be read");
                Err(Unreachable)
            }
            // A panic was logged by its hook.
            Err(_) => Err(Unreachable),
        }
    }
}

impl Archive for Reads {
    fn market<'a>(&'a self, condition: &'a str) -> Reading<'a, Option<ArchivedMarket>> {
        let condition = condition.to_owned();
        Box::pin(self.read(move |past| past.market(&condition)))
    }

    fn hours<'a>(&'a self, market: &'a ArchivedMarket, window: Range<Hour>) -> Reading<'a, Vec<HourState>> {
        let market = market.clone();
        Box::pin(self.read(move |past| past.hours(&market, window)))
    }

    fn made<'a>(&'a self, condition: &'a str, window: Range<Hour>) -> Reading<'a, Option<MadeMarket>> {
        let condition = condition.to_owned();
        Box::pin(self.read(move |past| {
            let made = past.made(&condition, window)?;
            Ok(made.map(|Made { market, coverage, .. }| MadeMarket { market, coverage }))
        }))
    }

    fn books<'a>(
        &'a self,
        market: &'a ArchivedMarket,
        outcome: Outcome,
        at: Timestamp,
    ) -> Reading<'a, Option<ArchivedPair>> {
        let market = market.clone();
        Box::pin(self.read(move |past| past.books(&market, outcome, at)))
    }
}
