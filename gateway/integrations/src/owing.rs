//! Users that are owed something. A shard adds them and never waits: the lock is held for one insertion. The dispatcher
//! takes them.

use ahash::AHashSet;
use engine::id::UserId;
use host::job::JobWaker;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

/// The users; shared by shards and dispatcher. Each is in it once, so their number is its bound.
#[derive(Clone, Debug, Default)]
pub struct Owing(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    users: Mutex<AHashSet<UserId>>,
    /// Wakes the dispatcher while it sends, and while it sleeps.
    notify: Notify,
    waker: JobWaker,
}

impl Owing {
    /// A user is owed something; its record may not be released yet. The dispatcher asks the shard, whose answer is held
    /// until it is.
    pub fn add(&self, user: UserId) {
        if self.0.users.lock().insert(user) {
            self.wake();
        }
    }

    /// All users that were added since the last call.
    pub fn take(&self) -> AHashSet<UserId> {
        std::mem::take(&mut *self.0.users.lock())
    }

    pub fn is_empty(&self) -> bool {
        self.0.users.lock().is_empty()
    }

    /// Wakes the dispatcher for another reason.
    pub fn wake(&self) {
        self.0.notify.notify_one();
        self.0.waker.wake();
    }

    /// Waits for a wake-up since the last call.
    pub async fn woken(&self) {
        self.0.notify.notified().await;
    }

    pub fn waker(&self) -> &JobWaker {
        &self.0.waker
    }
}
