//! The job `last`: the snapshot of a clean stop, for which the stop waits. It has normal priority, and one turn.

use host::job::{Job, Next, Work};
use host::thread::Stop;
use journal::checkpoint::Keeper;
use journal::paced::Paced;
use std::convert::Infallible;
use std::time::Duration;
use wal::Files;

/// The job, with the keeper as it has ended.
pub fn last(keeper: Keeper<Paced<Files>>) -> Job {
    Job::new("last", Duration::ZERO, move || Last(keeper))
}

struct Last(Keeper<Paced<Files>>);

impl Work for Last {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        match self.0.last() {
            Ok(true) => tracing::info!("a snapshot was written for the next start"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "no snapshot at the stop: the next start reads more of the log"),
        }
        Ok(Next::Over)
    }
}
