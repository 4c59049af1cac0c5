//! Uses of keys on their way into the journal: noted behind the requests that came together, and by one task for all.
//!
//! A use is a request that was let in, or a socket that was opened with the key or with a token minted by it; one that stays
//! open is no further use. Requests alone are counted beside it (`usage.rs`): handshakes and frames are none (streams.md
//! §1.4), but each operation sent over a socket is.
//!
//! Each key in use is noted once a minute (keys.md §1). With many users most orders are the first of a key in its minute,
//! so a note costs as little as can be: no task, no channel, nothing that waits for its answer. It goes behind the
//! requests for two reasons: an answer that must be on the disk before it leaves (`power`) would wait for the note's
//! record, too, and what a note reads of its user has just been read by his request. What waits when the thread ends is not
//! noted: the key's last use is then told up to a minute too early.

use crate::engine_client::EngineClient;
use engine::command::Command;
use engine::id::{KeyId, UserId};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Uses that are noted before others get their turn on the thread.
const NOTED_PER_TURN: usize = 64;

/// The uses of one thread's requests that are to be noted.
#[derive(Default)]
pub struct LastUsed {
    waiting: RefCell<Vec<(UserId, KeyId)>>,
    /// Of [`LastUsed::run`], while it has nothing to do.
    runner: Cell<Option<Waker>>,
}

impl LastUsed {
    /// That key of that user is noted soon. Nobody waits for it, and nothing depends on it.
    pub fn add(&self, user: UserId, key: KeyId) {
        self.waiting.borrow_mut().push((user, key));
        if let Some(runner) = self.runner.take() {
            runner.wake();
        }
    }

    /// Notes what waits, each time behind what was ready with it. Never ends.
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
            // Behind the answers of the requests that are ready, which leave before.
            tokio::task::yield_now().await;
            let mut noting = self.waiting.take();
            let left = noting.split_off(noting.len().min(NOTED_PER_TURN));
            for (user, key) in noting.drain(..) {
                engine.tell(user, Command::NoteKeyUsed { key });
            }
            // Nobody was added meanwhile; the room is used again.
            *self.waiting.borrow_mut() = if left.is_empty() { noting } else { left };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::run;
    use engine::command::Answer;

    /// Each use is noted once, and none before what was ready with it has had its turn.
    #[test]
    fn uses_are_noted_behind_what_was_ready() {
        let mut cases = 0;
        for count in [1, 2, NOTED_PER_TURN, NOTED_PER_TURN + 1, 3 * NOTED_PER_TURN + 7] {
            let told: Rc<RefCell<Vec<(UserId, KeyId)>>> = Rc::default();
            let telling = Rc::clone(&told);
            let engine = EngineClient::canned(Rc::new(move |user, command| {
                let Command::NoteKeyUsed { key } = command else { panic!("a use: {command:?}") };
                telling.borrow_mut().push((user, key));
                Ok(Answer::Done)
            }));
            let uses = Rc::<LastUsed>::default();
            let all: Vec<_> = (0..count as u64).map(|number| (UserId(number), KeyId(number + 7))).collect();
            run(async {
                let running = tokio::task::spawn_local(Rc::clone(&uses).run(engine));
                // So that it waits.
                tokio::task::yield_now().await;
                let requests: Vec<_> = all
                    .iter()
                    .copied()
                    .map(|(user, key)| {
                        let (uses, told) = (Rc::clone(&uses), Rc::clone(&told));
                        tokio::task::spawn_local(async move {
                            uses.add(user, key);
                            assert!(told.borrow().is_empty(), "{count} uses: all of them come first");
                        })
                    })
                    .collect();
                for request in requests {
                    request.await.expect("no use is noted before");
                }
                while told.borrow().len() < count {
                    tokio::task::yield_now().await;
                }
                tokio::task::yield_now().await;
                assert!(!running.is_finished(), "it goes on");
            });
            assert_eq!(*told.borrow(), all, "{count} uses");
            cases += 1;
        }
        println!("uses noted together: {cases} cases");
    }
}
