//! Users that are owed something. A shard adds them and never waits: the lock is held for one insertion. The dispatcher
//! takes them.

use ahash::AHashSet;
use engine::id::UserId;
use host::job::JobWaker;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// The users; shared by shards and dispatcher. Each is in it once, so their number is its bound.
#[derive(Clone, Debug, Default)]
pub struct Owing(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    users: Mutex<Users>,
    /// Wakes the dispatcher while it sends, and while it sleeps.
    notify: Notify,
    waker: JobWaker,
}

#[derive(Debug, Default)]
struct Users {
    /// The longest waiting first.
    queue: VecDeque<UserId>,
    /// Those in the queue.
    waiting: AHashSet<UserId>,
}

impl Owing {
    /// A user is owed something; its record may not be released yet. The dispatcher asks the shard, whose answer is held
    /// until it is.
    pub fn add(&self, user: UserId) {
        let is_new = {
            let users = &mut *self.0.users.lock();
            let is_new = users.waiting.insert(user);
            if is_new {
                users.queue.push_back(user);
            }
            is_new
        };
        if is_new {
            self.wake();
        }
    }

    /// At most `count` users, those that have waited longest. They may be added again.
    pub fn take(&self, count: usize) -> Vec<UserId> {
        let users = &mut *self.0.users.lock();
        let count = count.min(users.queue.len());
        let taken: Vec<UserId> = users.queue.drain(..count).collect();
        for user in &taken {
            users.waiting.remove(user);
        }
        taken
    }

    pub fn len(&self) -> usize {
        self.0.users.lock().queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
