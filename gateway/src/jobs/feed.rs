//! The job `feed`: polls the venue.

use crate::listeners::ServerLinks;
use host::job::{Next, Work};
use host::thread::Stop;
use std::convert::Infallible;
use tokio::sync::oneshot;
use venue::feed::{Feed, FeedParts};

/// A feed, made on the job's thread.
pub struct Polling {
    feed: Feed<ServerLinks>,
    /// Notified when the first frames are applied and the listener may open; `None` from then on.
    is_fed: Option<oneshot::Sender<()>>,
}

impl Polling {
    pub fn new(parts: FeedParts<ServerLinks>, is_fed: oneshot::Sender<()>) -> Polling {
        Polling { feed: Feed::new(parts), is_fed: Some(is_fed) }
    }
}

impl Work for Polling {
    type Error = Infallible;

    /// The work is over when the process stops while the feed waits for the core.
    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        if self.is_fed.is_some() {
            if self.feed.begin().is_err() {
                return Ok(Next::Over);
            }
            if let Some(is_fed) = self.is_fed.take() {
                // The receiver is gone only if the start was given up.
                let _ = is_fed.send(());
            }
        }
        Ok(match self.feed.turn() {
            Ok(sleep) if sleep.is_zero() => Next::Again,
            Ok(sleep) => Next::SleepFor(sleep),
            Err(_) => Next::Over,
        })
    }

    fn end(self) {
        // A feed that has not begun has nothing to write.
        if self.is_fed.is_none() {
            self.feed.end();
        }
    }
}
