//! The write batch of a thread: responses of several connections are written together after the requests that arrived
//! together, instead of between two of them.
//!
//! A write wakes the reader at the other end. If that processor sleeps, this costs the writer an interrupt. With writes
//! in a row the reader is awake; with a request between two writes it sleeps again. So a response waits for the
//! requests that were ready when it was made. It is written earlier if [`BATCH_CONNECTIONS_MAX`] connections are in the
//! batch, or if another task of the thread is about to write ([`WriteBatch::flush`]), so that it never waits for frames
//! to many sockets.

use super::socket::Socket;
use host::thread::guard;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Most connections of one batch.
const BATCH_CONNECTIONS_MAX: usize = 32;

/// Connections of one thread with gathered responses that are not written yet.
#[derive(Default)]
pub struct WriteBatch {
    waiting: RefCell<Vec<(Socket, Waker)>>,
    /// Waker of [`WriteBatch::run`] while the batch is empty.
    runner: Cell<Option<Waker>>,
}

impl WriteBatch {
    /// Adds a connection. It is woken if the batch cannot write all of its responses, and then writes the rest itself.
    pub(super) fn add(&self, socket: &Socket, context: &Context<'_>) {
        let count = {
            let mut waiting = self.waiting.borrow_mut();
            waiting.push((socket.clone(), context.waker().clone()));
            waiting.len()
        };
        if count >= BATCH_CONNECTIONS_MAX {
            self.flush();
        } else if let Some(runner) = self.runner.take() {
            // The task runs after all tasks that are ready now.
            runner.wake();
        }
    }

    /// Removes a connection, which writes for itself from now on.
    pub(super) fn remove(&self, socket: &Socket) {
        self.waiting.borrow_mut().retain(|(waits, _)| !waits.is(socket));
    }

    /// Writes the batch each time, after the tasks that were ready with it have run. Never returns. A panic ends the
    /// process: without this task every response of the thread would be late.
    pub(super) async fn run(self: Rc<Self>) {
        std::future::poll_fn(|context| {
            guard(|| self.flush());
            self.runner.set(Some(context.waker().clone()));
            Poll::<()>::Pending
        })
        .await;
    }

    /// Writes the batch now.
    pub fn flush(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let mut batch = self.waiting.take();
        for (socket, waker) in batch.drain(..) {
            if !matches!(socket.flush(&mut Context::from_waker(&waker)), Poll::Ready(Ok(()))) {
                socket.set_unsent();
                waker.wake();
            }
        }
        // If no connection was added in the meantime, the buffer is used again.
        *self.waiting.borrow_mut() = batch;
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

    /// A connection with this many gathered bytes, and its peer.
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
    fn a_batch_is_written_when_it_is_full() {
        run(async {
            let write_batch = WriteBatch::default();
            let waker = noop_waker();
            let context = Context::from_waker(&waker);
            let mut all = Vec::new();
            for number in 1..=2 * BATCH_CONNECTIONS_MAX {
                let (socket, peer) = gathered(number).await;
                assert!(socket.may_be_batched());
                write_batch.add(&socket, &context);
                all.push((socket, peer));
                let waits = number % BATCH_CONNECTIONS_MAX;
                assert_eq!(write_batch.waiting.borrow().len(), waits, "after {number}");
                let written = all.iter().filter(|(socket, _)| !socket.may_be_batched()).count();
                assert_eq!(written, number - waits);
            }
            for (number, (_, mut peer)) in (1..).zip(all) {
                let mut bytes = vec![0; number];
                peer.read_exact(&mut bytes).await.expect("its own response");
                assert_eq!(bytes, vec![b'x'; number]);
            }
        });
        println!("batched responses: {} cases", 2 * BATCH_CONNECTIONS_MAX);
    }

    /// A peer that is gone and a peer that reads nothing, among others that get their responses.
    #[test]
    fn a_response_that_cannot_be_written_is_left_to_its_connection() {
        const MORE_THAN_A_PEER_HOLDS: usize = 64 << 20;
        run(async {
            let write_batch = WriteBatch::default();
            let waker = noop_waker();
            let mut context = Context::from_waker(&waker);
            let (gone, peer) = gathered(10).await;
            peer.set_zero_linger().expect("an open socket");
            drop(peer);
            let (stuck, _peer) = gathered(MORE_THAN_A_PEER_HOLDS).await;
            let (well, mut reads) = gathered(5).await;
            for socket in [&gone, &stuck, &well] {
                write_batch.add(socket, &context);
            }
            write_batch.flush();
            let mut bytes = [0; 5];
            reads.read_exact(&mut bytes).await.expect("its response");
            assert!(gone.is_unsent() && stuck.is_unsent() && !well.is_unsent());
            assert!(!gone.may_be_batched() && !stuck.may_be_batched(), "they are not batched again");
            assert!(matches!(gone.flush(&mut context), Poll::Ready(Err(_))), "the connection finds the same");
            assert!(stuck.flush(&mut context).is_pending());
        });
        println!("responses that cannot be written: 3 cases");
    }

    /// After an upgrade the stream belongs to the other protocol.
    #[test]
    fn a_removed_connection_is_the_last_owner_of_its_socket() {
        run(async {
            let write_batch = WriteBatch::default();
            let waker = noop_waker();
            let mut context = Context::from_waker(&waker);
            let (other, mut others) = gathered(3).await;
            let (socket, _peer) = gathered(5).await;
            for socket in [&socket, &other, &socket] {
                write_batch.add(socket, &context);
            }
            write_batch.remove(&socket);
            assert!(matches!(socket.flush(&mut context), Poll::Ready(Ok(()))));
            assert!(socket.into_stream().is_some(), "no other clone is left");
            write_batch.flush();
            others.read_exact(&mut [0; 3]).await.expect("its response");
        });
        println!("removed connections: 1 case");
    }
}
