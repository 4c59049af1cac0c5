//! Ring: a bounded queue from any count of producers to one consumer; the only concurrency primitive between threads.
//!
//! A full ring refuses and returns the value; a producer never waits. The consumer of an empty ring parks its thread
//! ([`Ring::wait`]) or, as a task of a runtime, arms a waker ([`Ring::set_waker`], [`Ring::arm`]). Producers wake only
//! a sleeping consumer, so a busy ring costs no system call.

use crate::atomic::{ArrayQueue, AtomicBool, Mutex, Ordering, Thread, fence, thread};
use crossbeam::utils::CachePadded;
use std::sync::{OnceLock, PoisonError};
use std::time::Duration;

/// Wakes a consumer that is a task.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// Bounded queue whose consumer can sleep.
pub struct Ring<T> {
    queue: ArrayQueue<T>,
    /// The consumer is asleep or about to sleep. Padded: producers read it at every push.
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

    /// Appends `value` and wakes the consumer if it sleeps. A full ring returns it.
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

    /// Values in the ring.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Its capacity.
    pub fn slots(&self) -> usize {
        self.queue.capacity()
    }

    /// Wakes the consumer if it sleeps, without a value: for shutdown, or a mark that advanced.
    #[inline]
    pub fn wake(&self) {
        // The fences here and in `arm` order "write the value, then check for a sleeper" against "announce the sleep,
        // then check for a value". Without them both checks could miss the other's write, and the value would wait
        // until the timeout.
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

    /// Parks the calling thread until there is a value, [`Ring::wake`] is called, or `timeout` has passed; it may also
    /// return early without a reason. Only the consumer waits, and only without a waker.
    pub fn wait(&self, timeout: Duration) {
        self.wait_unless(timeout, || false);
    }

    /// As [`Ring::wait`], and returns immediately if `has_work` is true. `has_work` runs after [`Ring::wake`] can see
    /// the consumer asleep: of a change before a wake, and this check, one sees the other.
    pub fn wait_unless(&self, timeout: Duration, has_work: impl FnOnce() -> bool) {
        *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        if self.arm() {
            if !has_work() {
                thread::park_timeout(timeout);
            }
            self.asleep.store(false, Ordering::Relaxed);
        }
    }

    /// From now on a sleeping consumer is woken by this call instead of an unpark. Set once, before the first push.
    ///
    /// # Panics
    /// When there is already one.
    pub fn set_waker(&self, waker: Waker) {
        assert!(self.waker.set(waker).is_ok(), "a ring has one waker");
    }

    /// Announces that the consumer is about to sleep: the next push calls the waker. `false`: there is already a value,
    /// do not sleep. One arming allows one call of the waker.
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

    /// Two producers and a consumer that parks whenever the ring is empty: every value arrives, in the order of its
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
        assert_eq!(called.load(Ordering::Relaxed), 0, "the consumer is awake");
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
