//! Ring: a bounded hand-off from any number of producers to one consumer, the one concurrency primitive between threads.
//!
//! A full ring refuses and gives the value back; nobody ever waits to push. An empty ring may be waited for: the consumer
//! parks its thread ([`Ring::wait`]), or, as a task of a runtime, arms a waker ([`Ring::set_waker`], [`Ring::arm`]).
//! Producers wake only a consumer that sleeps, so a busy ring costs no system call.

use crate::atomic::{ArrayQueue, AtomicBool, Mutex, Ordering, Thread, fence, thread};
use crossbeam::utils::CachePadded;
use std::sync::{OnceLock, PoisonError};
use std::time::Duration;

/// What wakes a consumer that is not a thread of its own.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// Bounded queue whose consumer can sleep.
pub struct Ring<T> {
    queue: ArrayQueue<T>,
    /// The consumer is asleep or about to be. Padded: producers read it at every push.
    asleep: CachePadded<AtomicBool>,
    /// The thread that parked last. A cold lock: taken only around a park.
    parked: Mutex<Option<Thread>>,
    waker: OnceLock<Waker>,
}

impl<T> Ring<T> {
    /// A ring of `slots` values.
    ///
    /// # Panics
    /// When `slots` is 0.
    pub fn new(slots: usize) -> Ring<T> {
        Ring {
            queue: ArrayQueue::new(slots),
            asleep: CachePadded::new(AtomicBool::new(false)),
            parked: Mutex::new(None),
            waker: OnceLock::new(),
        }
    }

    /// Hands `value` over and wakes the consumer if it sleeps. A full ring gives it back.
    #[inline]
    pub fn push(&self, value: T) -> Result<(), T> {
        self.queue.push(value)?;
        self.wake();
        Ok(())
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        self.queue.pop()
    }

    /// Values waiting now.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Values it can hold.
    pub fn slots(&self) -> usize {
        self.queue.capacity()
    }

    /// Wakes the consumer if it sleeps, without a value: for a change of its own (shutdown, a mark that moved).
    #[inline]
    pub fn wake(&self) {
        // The fences here and in `arm` order "value in, then look whether it sleeps" against "says that it sleeps, then
        // looks for a value". Without them both could look before either is seen, and the value would lie until the
        // timeout.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            self.wake_up();
        }
    }

    #[cold]
    fn wake_up(&self) {
        match self.waker.get() {
            Some(waker) => waker(),
            None => {
                let parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(thread) = parked.as_ref() {
                    thread.unpark();
                }
            }
        }
    }

    /// Parks the calling thread until there is a value, someone calls [`Ring::wake`], or `timeout` is over; may also
    /// return early without reason. Only the consumer waits, and only without a waker.
    pub fn wait(&self, timeout: Duration) {
        self.wait_unless(timeout, || false);
    }

    /// As [`Ring::wait`], and returns at once when `has_work` says so. It is asked when [`Ring::wake`] already finds the
    /// consumer asleep: of a change that is made in front of a wake, and this look, one sees the other.
    pub fn wait_unless(&self, timeout: Duration, has_work: impl FnOnce() -> bool) {
        *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        if self.arm() {
            if !has_work() {
                thread::park_timeout(timeout);
            }
            self.asleep.store(false, Ordering::Relaxed);
        }
    }

    /// From now on a sleeping consumer is woken by this call instead of being unparked. Set once, before the first push.
    ///
    /// # Panics
    /// When there is one already.
    pub fn set_waker(&self, waker: Waker) {
        assert!(self.waker.set(waker).is_ok(), "a ring has one waker");
    }

    /// The consumer is about to sleep: the next push will call the waker. `false`: there is a value already, do not
    /// sleep. One arming is good for one call of the waker.
    pub fn arm(&self) -> bool {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.queue.is_empty() {
            return true;
        }
        self.asleep.store(false, Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::time::Instant;

    #[test]
    fn a_full_ring_gives_the_value_back() {
        let ring = Ring::new(2);
        assert_eq!((ring.push(1), ring.push(2), ring.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((ring.pop(), ring.push(3), ring.len(), ring.slots()), (Some(1), Ok(()), 2, 2));
        assert_eq!((ring.pop(), ring.pop(), ring.pop()), (Some(2), Some(3), None));
    }

    /// Two producers and a consumer that parks whenever it finds nothing: every value arrives, in the order of its
    /// producer, and no wake-up is lost (a lost one would cost a whole second).
    #[test]
    fn a_parked_consumer_misses_nothing() {
        const VALUES: u64 = 20_000;
        let ring = Ring::new(16);
        let started = Instant::now();
        std::thread::scope(|scope| {
            for producer in 0..2_u64 {
                let ring = &ring;
                scope.spawn(move || {
                    for value in 0..VALUES {
                        let mut value = (producer, value);
                        while let Err(back) = ring.push(value) {
                            value = back;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let (mut next, mut parks) = ([0, 0], 0_u64);
            while next != [VALUES, VALUES] {
                match ring.pop() {
                    Some((producer, value)) => {
                        assert_eq!(value, next[producer as usize], "producer {producer}");
                        next[producer as usize] += 1;
                    }
                    None => {
                        parks += 1;
                        ring.wait(Duration::from_secs(1));
                    }
                }
            }
            println!("{parks} waits in {:?}", started.elapsed());
        });
        assert!(started.elapsed() < Duration::from_secs(20), "wake-ups were lost: {:?}", started.elapsed());
    }

    #[test]
    fn a_waker_is_called_once_per_arming() {
        let ring = Ring::new(4);
        let called = Arc::new(AtomicUsize::new(0));
        let counter = called.clone();
        ring.set_waker(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        ring.push(1).expect("room");
        assert_eq!(called.load(Ordering::Relaxed), 0, "nobody sleeps");
        assert!(!ring.arm(), "there is a value");
        ring.pop();
        assert!(ring.arm());
        ring.push(2).expect("room");
        ring.push(3).expect("room");
        assert_eq!(called.load(Ordering::Relaxed), 1);
        ring.pop();
        ring.pop();
        assert!(ring.arm());
        ring.wake();
        assert_eq!(called.load(Ordering::Relaxed), 2);
    }
}
