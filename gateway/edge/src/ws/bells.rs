//! Bells: a shard tells whoever listens that a user has new order facts, and nothing about them. The listener asks.
//!
//! A bell may ring before the fact is released, and rings once for many facts: the answer to the question is held until
//! everything before it is released, and tells all there is. So a bell carries nothing that could be early, late or lost.
//!
//! Who listens is known in a fixed number of places, by user, so that a fact of somebody in whose place nobody listens costs
//! one look at a number, on the thread that decides.

use ahash::AHashMap;
use engine::id::UserId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Places for listeners.
const PLACES: usize = 256;

/// The bells of all users; shared by shards and IO threads.
#[derive(Clone, Debug)]
pub struct Bells(Arc<[Place]>);

#[derive(Debug, Default)]
struct Place {
    /// Listeners in it. Whoever comes is counted before he asks for facts, and a shard answers him behind the facts that it
    /// rang for: what a shard rings for without seeing him is in his answer.
    count: AtomicUsize,
    listeners: Mutex<AHashMap<UserId, Vec<Arc<Notify>>>>,
}

impl Default for Bells {
    fn default() -> Bells {
        Bells((0..PLACES).map(|_| Place::default()).collect())
    }
}

impl Bells {
    /// Rings for everybody who listens to this user.
    pub fn ring(&self, user: UserId) {
        let place = self.place(user);
        if place.count.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(bells) = place.listeners.lock().get(&user) {
            bells.iter().for_each(|bell| bell.notify_one());
        }
    }

    /// Listens to a user until the bell is dropped.
    pub fn listen(&self, user: UserId) -> Bell {
        let (place, bell) = (self.place(user), Arc::new(Notify::new()));
        place.count.fetch_add(1, Ordering::AcqRel);
        place.listeners.lock().entry(user).or_default().push(bell.clone());
        Bell { bells: self.clone(), user, bell }
    }

    fn place(&self, user: UserId) -> &Place {
        // Ids come from one counter, so this spreads them evenly.
        &self.0[user.0 as usize % PLACES]
    }
}

/// One listener's bell.
#[derive(Debug)]
pub struct Bell {
    bells: Bells,
    user: UserId,
    bell: Arc<Notify>,
}

impl Bell {
    /// Waits until it has rung since the last time, however often.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let place = self.bells.place(self.user);
        let mut listeners = place.listeners.lock();
        if let Some(bells) = listeners.get_mut(&self.user) {
            bells.retain(|bell| !Arc::ptr_eq(bell, &self.bell));
            if bells.is_empty() {
                listeners.remove(&self.user);
            }
        }
        place.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::runtime::runtime;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn has_rung(bell: &Bell) -> bool {
        pin!(bell.rung()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_bell_rings_for_its_user_once_for_all_that_happened() {
        let bells = Bells::default();
        // The second shares its place with the first.
        let users = [UserId(7), UserId(7 + PLACES as u64), UserId(8)];
        let [ours, same_place, other] = users.map(|user| bells.listen(user));
        let again = bells.listen(UserId(7));
        for user in [9, 7, 7, 7, 8] {
            bells.ring(UserId(user));
        }
        let rung = |bell: &Bell| (has_rung(bell), has_rung(bell));
        assert_eq!(rung(&ours), (true, false));
        assert_eq!(rung(&again), (true, false));
        assert_eq!(rung(&other), (true, false));
        assert_eq!(rung(&same_place), (false, false));
        drop(ours);
        bells.ring(UserId(7));
        assert_eq!(rung(&again), (true, false));
        drop((again, same_place, other));
        for place in bells.0.iter() {
            assert_eq!((place.count.load(Ordering::Relaxed), place.listeners.lock().len()), (0, 0));
        }
    }

    /// What is rung on another thread wakes the one that waits, whenever it came to wait.
    #[test]
    fn a_bell_wakes_another_thread() {
        const FACTS: usize = 20_000;
        // The lock stands for the shard's inbox, which orders questions and facts.
        let (bells, facts) = (Bells::default(), Arc::new(Mutex::new(0)));
        let shard = {
            let (bells, facts) = (bells.clone(), facts.clone());
            std::thread::spawn(move || {
                for _ in 0..FACTS {
                    *facts.lock() += 1;
                    bells.ring(UserId(3));
                }
            })
        };
        let bell = bells.listen(UserId(3));
        let mut answers = 0;
        runtime().expect("a runtime").block_on(async {
            // As a channel does it: a look first, then one behind each bell.
            while *facts.lock() < FACTS {
                bell.rung().await;
                answers += 1;
            }
        });
        shard.join().expect("it rings and ends");
        println!("{FACTS} facts were told with {answers} bells");
    }
}
