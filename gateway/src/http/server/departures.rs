//! Answers of several connections leave together: behind the requests that came together, and not each between two of
//! them.
//!
//! A write wakes whoever reads at the other end, which costs the writer an interrupt of another processor when that one
//! sleeps. Written one behind the other, answers find it awake; written a request apart, it has gone to sleep again. So
//! answers wait until everything that was ready with them had its turn, but for no more than [`TOGETHER_MAX`] of them.

use super::socket::Socket;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Connections whose answers leave at the latest when there are so many: the work of the others is what one answer waits
/// for.
const TOGETHER_MAX: usize = 32;

/// The answers of one thread's connections that are about to leave.
#[derive(Default)]
pub(super) struct Departures {
    waiting: RefCell<Vec<(Socket, Waker)>>,
    /// Of [`Departures::run`], while it has nothing to do.
    runner: Cell<Option<Waker>>,
}

impl Departures {
    /// The connection's answers leave soon. It is woken if they cannot, or not all of them at once: the rest is its own.
    pub(super) fn add(&self, socket: &Socket, context: &Context<'_>) {
        let count = {
            let mut waiting = self.waiting.borrow_mut();
            waiting.push((socket.clone(), context.waker().clone()));
            waiting.len()
        };
        if count >= TOGETHER_MAX {
            self.leave();
        } else if let Some(runner) = self.runner.take() {
            // It goes behind all that is ready by now.
            runner.wake();
        }
    }

    /// Writes what waits, whenever nothing else is to do. Never ends.
    pub(super) async fn run(self: Rc<Self>) {
        std::future::poll_fn(|context| {
            self.leave();
            self.runner.set(Some(context.waker().clone()));
            Poll::<()>::Pending
        })
        .await;
    }

    /// Writes what waits.
    pub(super) fn leave(&self) {
        let mut leaving = self.waiting.take();
        for (socket, waker) in leaving.drain(..) {
            if !matches!(socket.flush(&mut Context::from_waker(&waker)), Poll::Ready(Ok(()))) {
                socket.stay_behind();
                waker.wake();
            }
        }
        // Nobody was added meanwhile; the room is used again.
        *self.waiting.borrow_mut() = leaving;
    }
}
