//! Requests for digests of the state, to the keeper of the checkpoints ([`crate::checkpoint`]): it has the only state that can
//! be read at leisure.

use crate::recover::RecoverError;
use host::job::JobWaker;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;
use wal::Lsn;

/// How often a requester of a digest checks whether it is still wanted.
const WANTED_CHECK_EVERY: Duration = Duration::from_millis(250);

/// The state up to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digested {
    /// The record.
    pub lsn: Lsn,
    pub digest: [u8; 32],
    /// The LSN up to which rows have left the state for the history store; 0: none have.
    pub departed_upto: u64,
}

/// The receiver of a digest.
pub(crate) type Answer = SyncSender<Result<Digested, RecoverError>>;

/// Requests a digest from a running keeper, which has the only state that can be read at leisure.
#[derive(Clone)]
pub struct Digests {
    requests: Sender<Answer>,
    keeper: JobWaker,
}

/// The keeper's end of [`Digests`].
pub struct DigestRequests {
    pub(crate) requests: Receiver<Answer>,
    pub(crate) waker: JobWaker,
}

impl Digests {
    /// Both ends of a queue of requests.
    pub fn channel() -> (Digests, DigestRequests) {
        let (sender, requests) = channel();
        let waker = JobWaker::default();
        (Digests { requests: sender, keeper: waker.clone() }, DigestRequests { requests, waker })
    }

    /// The digest of the state up to a record that is on the device, at or after all that were there when this was
    /// called. Waits for a checkpoint in progress as long as `stays` returns true.
    ///
    /// # Errors
    /// [`RecoverError`] of the log; `None` if the keeper has ended, or `stays` returned false.
    pub fn ask(&self, stays: impl Fn() -> bool) -> Option<Result<Digested, RecoverError>> {
        let (answer, digested) = sync_channel(1);
        self.requests.send(answer).ok()?;
        self.keeper.wake();
        loop {
            match digested.recv_timeout(WANTED_CHECK_EVERY) {
                Ok(digested) => return Some(digested),
                Err(RecvTimeoutError::Timeout) if stays() => {}
                Err(_) => return None,
            }
        }
    }
}
