//! Writes the last use of keys to the journal, after the requests that arrived together, with one task for all keys of
//! a thread.
//!
//! A use is an admitted request, or a socket that was opened with the key or with a token minted by it. A socket that
//! stays open is not a further use. `usage.rs` counts requests, including each operation of a socket, but not
//! handshakes and frames.
//!
//! The use of a key is written once a minute. With many users most orders are the first of a key in its minute, so a
//! write has to be cheap: no task, no channel, no wait for its answer. It is made after the requests for two reasons.
//! With `power`, a response waits for the sync of the records before it, which would include this one. And the user's
//! request has just read the rows that the write needs. Uses that are pending when the thread ends are lost: the last
//! use of such a key is then up to a minute too early.

use crate::engine_client::EngineClient;
use engine::command::Command;
use engine::id::{KeyId, UserId};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Uses that are written before other tasks of the thread run.
const NOTED_PER_TURN: usize = 64;

/// Uses of one thread that are not written yet.
#[derive(Default)]
pub struct LastUsed {
    waiting: RefCell<Vec<(UserId, KeyId)>>,
    /// Waker of [`LastUsed::run`] while no use is pending.
    runner: Cell<Option<Waker>>,
}

impl LastUsed {
    /// Adds a use of that key. It is written soon, without a guarantee.
    pub fn add(&self, user: UserId, key: KeyId) {
        self.waiting.borrow_mut().push((user, key));
        if let Some(runner) = self.runner.take() {
            runner.wake();
        }
    }

    /// Writes uses, each time after the tasks that were ready with them. Never returns.
    pub async fn run(self: Rc<Self>, engine: EngineClient) {
        loop {
            poll_fn(|context| {
                if !self.waiting.borrow().is_empty() {
                    return Poll::Ready(());
                }
                self.runner.set(Some(context.waker().clone()));
                Poll::Pending
            })
            .await;
            // Runs after the responses of the requests that are ready.
            tokio::task::yield_now().await;
            let mut noting = self.waiting.take();
            let left = noting.split_off(noting.len().min(NOTED_PER_TURN));
            for (user, key) in noting.drain(..) {
                engine.tell(user, Command::NoteKeyUsed { key });
            }
            // If no use was added in the meantime, the buffer is used again.
            *self.waiting.borrow_mut() = if left.is_empty() { noting } else { left };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::run;
    use engine::command::Answer;

    /// Each use is written once, and none before the tasks that were ready with it.
    #[test]
    fn uses_are_written_after_ready_tasks() {
        let mut cases = 0;
        for count in [1, 2, NOTED_PER_TURN, NOTED_PER_TURN + 1, 3 * NOTED_PER_TURN + 7] {
            let written: Rc<RefCell<Vec<(UserId, KeyId)>>> = Rc::default();
            let writing = Rc::clone(&written);
            let engine = EngineClient::canned(Rc::new(move |user, command| {
                let Command::NoteKeyUsed { key } = command else { panic!("a use: {command:?}") };
                writing.borrow_mut().push((user, key));
                Ok(Answer::Done)
            }));
            let uses = Rc::<LastUsed>::default();
            let all: Vec<_> = (0..count as u64).map(|number| (UserId(number), KeyId(number + 7))).collect();
            run(async {
                let running = tokio::task::spawn_local(Rc::clone(&uses).run(engine));
                // So that the use is pending.
                tokio::task::yield_now().await;
                let requests: Vec<_> = all
                    .iter()
                    .copied()
                    .map(|(user, key)| {
                        let (uses, written) = (Rc::clone(&uses), Rc::clone(&written));
                        tokio::task::spawn_local(async move {
                            uses.add(user, key);
                            assert!(written.borrow().is_empty(), "{count} uses: all of them come first");
                        })
                    })
                    .collect();
                for request in requests {
                    request.await.expect("no use is noted before");
                }
                while written.borrow().len() < count {
                    tokio::task::yield_now().await;
                }
                tokio::task::yield_now().await;
                assert!(!running.is_finished(), "it goes on");
            });
            assert_eq!(*written.borrow(), all, "{count} uses");
            cases += 1;
        }
        println!("uses noted together: {cases} cases");
    }
}
