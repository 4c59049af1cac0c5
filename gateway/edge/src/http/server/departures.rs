//! Answers of several connections leave together: behind the requests that came together, and not each between two of
//! them.
//!
//! A write wakes whoever reads at the other end, which costs the writer an interrupt of another processor when that one
//! sleeps. Written one behind the other, answers find it awake; written a request apart, it has gone to sleep again. So
//! an answer waits for the requests that were ready when it was made. It leaves sooner when [`TOGETHER_MAX`] connections
//! wait, or when anybody else of the thread is about to write ([`Departures::leave`]): it never stands behind a crowd of
//! listeners.

use super::socket::Socket;
use host::thread::guard;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Connections that wait for each other at most.
const TOGETHER_MAX: usize = 32;

/// The answers of one thread's connections that are about to leave.
#[derive(Default)]
pub struct Departures {
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

    /// What the connection has gathered is its own to write from now on.
    pub(super) fn forget(&self, socket: &Socket) {
        self.waiting.borrow_mut().retain(|(waits, _)| !waits.is(socket));
    }

    /// Writes what waits, each time behind what was ready with it. Never ends; a panic ends the process, for without this
    /// every answer of the thread would be late.
    pub(super) async fn run(self: Rc<Self>) {
        std::future::poll_fn(|context| {
            guard(|| self.leave());
            self.runner.set(Some(context.waker().clone()));
            Poll::<()>::Pending
        })
        .await;
    }

    /// Writes what waits.
    pub fn leave(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::super::deadline::HeadDeadline;
    use super::*;
    use crate::http::testing::run;
    use futures_util::task::noop_waker;
    use std::time::Duration;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpStream};

    /// A connection with this much gathered, and its peer.
    async fn gathered(bytes: usize) -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("it listens");
        let (stream, _) = listener.accept().await.expect("a peer");
        let timeout = Duration::from_secs(5);
        let socket = Socket::new(stream, HeadDeadline::new(timeout, timeout), timeout);
        socket.gather(|out| out.resize(bytes, b'x'));
        (socket, peer)
    }

    #[test]
    fn answers_wait_for_others_and_leave_with_the_last_that_may_wait() {
        run(async {
            let departures = Departures::default();
            let waker = noop_waker();
            let context = Context::from_waker(&waker);
            let mut all = Vec::new();
            for number in 1..=2 * TOGETHER_MAX {
                let (socket, peer) = gathered(number).await;
                assert!(socket.may_leave_together());
                departures.add(&socket, &context);
                all.push((socket, peer));
                let waits = number % TOGETHER_MAX;
                assert_eq!(departures.waiting.borrow().len(), waits, "behind {number}");
                let left = all.iter().filter(|(socket, _)| !socket.may_leave_together()).count();
                assert_eq!(left, number - waits);
            }
            for (number, (_, mut peer)) in (1..).zip(all) {
                let mut bytes = vec![0; number];
                peer.read_exact(&mut bytes).await.expect("its own answer");
                assert_eq!(bytes, vec![b'x'; number]);
            }
        });
        println!("answers that leave together: {} cases", 2 * TOGETHER_MAX);
    }

    /// One peer that is gone and one that takes nothing, among others who get their answers.
    #[test]
    fn what_cannot_leave_is_left_to_its_connection() {
        const MORE_THAN_A_PEER_HOLDS: usize = 64 << 20;
        run(async {
            let departures = Departures::default();
            let waker = noop_waker();
            let mut context = Context::from_waker(&waker);
            let (gone, peer) = gathered(10).await;
            peer.set_zero_linger().expect("an open socket");
            drop(peer);
            let (stuck, _peer) = gathered(MORE_THAN_A_PEER_HOLDS).await;
            let (well, mut reads) = gathered(5).await;
            for socket in [&gone, &stuck, &well] {
                departures.add(socket, &context);
            }
            departures.leave();
            let mut bytes = [0; 5];
            reads.read_exact(&mut bytes).await.expect("its answer");
            assert!(gone.stays_behind() && stuck.stays_behind() && !well.stays_behind());
            assert!(!gone.may_leave_together() && !stuck.may_leave_together(), "they are not tried again with others");
            assert!(matches!(gone.flush(&mut context), Poll::Ready(Err(_))), "the connection finds the same");
            assert!(stuck.flush(&mut context).is_pending());
        });
        println!("answers that cannot leave: 3 cases");
    }

    /// Behind an upgrade the stream belongs to somebody else.
    #[test]
    fn a_forgotten_connection_is_the_last_to_hold_its_socket() {
        run(async {
            let departures = Departures::default();
            let waker = noop_waker();
            let mut context = Context::from_waker(&waker);
            let (other, mut others) = gathered(3).await;
            let (socket, _peer) = gathered(5).await;
            for socket in [&socket, &other, &socket] {
                departures.add(socket, &context);
            }
            departures.forget(&socket);
            assert!(matches!(socket.flush(&mut context), Poll::Ready(Ok(()))));
            assert!(socket.into_stream().is_some(), "nobody else holds it");
            departures.leave();
            others.read_exact(&mut [0; 3]).await.expect("its answer");
        });
        println!("connections that are forgotten: 1 case");
    }
}
