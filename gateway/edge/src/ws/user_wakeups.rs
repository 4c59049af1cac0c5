//! Wake-ups of the followers of a user. A shard reports that a user has new order facts, and nothing about them. The
//! follower then queries the shard.
//!
//! A wake-up may arrive before the fact is released, and one may stand for many facts. The answer to the query is held
//! until all facts before it are released, and contains all of them. So a wake-up has nothing that could be early, late
//! or lost.
//!
//! Followers are counted in a fixed number of buckets, by user. A fact of a user in a bucket without followers costs
//! one load of a counter, on the shard's thread.

use ahash::AHashMap;
use engine::id::UserId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Buckets of followers.
const BUCKETS: usize = 256;

/// The wake-ups of all users; shared by shards and IO threads.
#[derive(Clone, Debug)]
pub struct UserWakeups(Arc<[Bucket]>);

#[derive(Debug, Default)]
struct Bucket {
    /// Number of its followers. A follower is counted before it queries facts, and a shard answers the query after the
    /// facts for which it woke followers. So a fact for which the shard did not see the follower yet is in the answer.
    count: AtomicUsize,
    followers: Mutex<AHashMap<UserId, Vec<Arc<Notify>>>>,
}

impl Default for UserWakeups {
    fn default() -> UserWakeups {
        UserWakeups((0..BUCKETS).map(|_| Bucket::default()).collect())
    }
}

impl UserWakeups {
    /// Wakes all followers of this user.
    pub fn wake(&self, user: UserId) {
        let bucket = self.bucket(user);
        if bucket.count.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(followers) = bucket.followers.lock().get(&user) {
            followers.iter().for_each(|follower| follower.notify_one());
        }
    }

    /// Follows a user until the returned value is dropped.
    pub fn follow(&self, user: UserId) -> UserWakeup {
        let (bucket, notify) = (self.bucket(user), Arc::new(Notify::new()));
        bucket.count.fetch_add(1, Ordering::AcqRel);
        bucket.followers.lock().entry(user).or_default().push(notify.clone());
        UserWakeup { all: self.clone(), user, notify }
    }

    fn bucket(&self, user: UserId) -> &Bucket {
        // Ids come from one counter, so this spreads them evenly.
        &self.0[user.0 as usize % BUCKETS]
    }
}

/// The wake-ups of one follower.
#[derive(Debug)]
pub struct UserWakeup {
    all: UserWakeups,
    user: UserId,
    notify: Arc<Notify>,
}

impl UserWakeup {
    /// Waits for a wake-up since the last call; several count as one.
    pub async fn woken(&self) {
        self.notify.notified().await;
    }
}

impl Drop for UserWakeup {
    fn drop(&mut self) {
        let bucket = self.all.bucket(self.user);
        let mut followers = bucket.followers.lock();
        if let Some(of_user) = followers.get_mut(&self.user) {
            of_user.retain(|follower| !Arc::ptr_eq(follower, &self.notify));
            if of_user.is_empty() {
                followers.remove(&self.user);
            }
        }
        bucket.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::runtime::runtime;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_woken(wakeup: &UserWakeup) -> bool {
        pin!(wakeup.woken()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_follower_is_woken_once_for_several_facts_of_its_user() {
        let all = UserWakeups::default();
        // The second is in the bucket of the first.
        let users = [UserId(7), UserId(7 + BUCKETS as u64), UserId(8)];
        let [first, same_bucket, other] = users.map(|user| all.follow(user));
        let second = all.follow(UserId(7));
        for user in [9, 7, 7, 7, 8] {
            all.wake(UserId(user));
        }
        let woken = |wakeup: &UserWakeup| (is_woken(wakeup), is_woken(wakeup));
        assert_eq!(woken(&first), (true, false));
        assert_eq!(woken(&second), (true, false));
        assert_eq!(woken(&other), (true, false));
        assert_eq!(woken(&same_bucket), (false, false));
        drop(first);
        all.wake(UserId(7));
        assert_eq!(woken(&second), (true, false));
        drop((second, same_bucket, other));
        for bucket in all.0.iter() {
            assert_eq!((bucket.count.load(Ordering::Relaxed), bucket.followers.lock().len()), (0, 0));
        }
    }

    /// A wake-up on another thread reaches the follower, whenever the follower begins to wait.
    #[test]
    fn a_wakeup_reaches_another_thread() {
        const FACTS: usize = 20_000;
        // The lock acts as the shard's inbox, which orders queries and facts.
        let (all, facts) = (UserWakeups::default(), Arc::new(Mutex::new(0)));
        let shard = {
            let (all, facts) = (all.clone(), facts.clone());
            std::thread::spawn(move || {
                for _ in 0..FACTS {
                    *facts.lock() += 1;
                    all.wake(UserId(3));
                }
            })
        };
        let wakeup = all.follow(UserId(3));
        let mut wakeups = 0;
        runtime().expect("a runtime").block_on(async {
            // Like a channel: one query first, then one after each wake-up.
            while *facts.lock() < FACTS {
                wakeup.woken().await;
                wakeups += 1;
            }
        });
        shard.join().expect("it runs to its end");
        println!("{FACTS} facts with {wakeups} wake-ups");
    }
}
