//! Follows the order facts of one user: each fact once, in order, from a given number on and then live
//! (gateway/docs/streams.md §1.6).
//!
//! Resuming and live use the same code. After each wake-up of the user, the facts after the last one are queried from
//! the shard, in pages, and sent. A resume starts with an older number. The shard's answer is released after the facts
//! that it contains, so no frame has a fact that the journal could lose, or that REST would not return.

use super::close::Close;
use super::frame::Frame;
use super::outbox::Tag;
use super::session::{Socket, caught};
use super::shape::Gap;
use super::user_wakeups::UserWakeup;
use crate::app::Edge;
use crate::engine_client::AskError;
use crate::http::reply::Refusal;
use engine::command::{Answer, Command, Query};
use engine::id::UserId;
use engine::shard::facts::FACTS_PER_PAGE_MAX;
use engine::view::{FactPage, FactView};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use wire::fields::Params;
use wire::query::Query as QueryText;

/// Pause before a full shard is queried again.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// Tag of all frames about facts.
const FACTS: Tag = Tag(0);

/// Larger integers are not exact in every JSON reader.
const FROM_SEQ_MAX: u64 = (1 << 53) - 1;

/// Makes a channel's frames of a fact.
pub trait FrameEncoder: 'static {
    /// Appends the frames for this fact, if any.
    fn encode(&self, fact: &FactView, frames: &mut Vec<Frame>);
}

/// Follows until dropped.
pub struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Parses `from_seq` of a handshake.
///
/// # Errors
/// 422 if it is not a number in range.
pub fn from_seq(query: &QueryText<'_>) -> Result<Option<u64>, Refusal> {
    let mut params = Params::new(query);
    let from = params.integer("from_seq", 0..=FROM_SEQ_MAX);
    if params.problems.is_empty() { Ok(from) } else { Err(Refusal::validation(&params.problems)) }
}

/// Sends all facts after number `from`, or new ones only, to a socket, and continues until the result is dropped.
/// Returns when the past facts are queued. If `from` is not a known number, a `gap` frame comes first: the client's
/// history is not that of this server.
///
/// # Errors
/// The close code for the socket.
pub async fn follow(
    socket: Rc<Socket>,
    edge: Rc<Edge>,
    user: UserId,
    from: Option<u64>,
    encoder: impl FrameEncoder,
) -> Result<Following, Close> {
    // Before the first query, so that every later fact causes a wake-up.
    let wakeup = edge.app.streams.user_wakeups.follow(user);
    let follower = Follower { socket, edge, user, last: Cell::new(0), encoder };
    let now = follower.query(u64::MAX, 1).await?;
    follower.last.set(from.unwrap_or(now.newest).min(now.newest));
    if follower.last.get() + 1 < now.oldest {
        follower.last.set(now.oldest - 1);
    }
    if from.is_some_and(|from| from != follower.last.get()) {
        follower.socket.send(&Frame::record(&Gap::new(follower.last.get() + 1)));
    }
    follower.catch_up(Past::Resumed).await?;
    let task = tokio::task::spawn_local(follower.live(wakeup));
    Ok(Following(task.abort_handle()))
}

/// Where facts come from.
#[derive(Clone, Copy)]
enum Past {
    /// From the time before the client came.
    Resumed,
    /// From a stream that is open.
    Followed,
}

struct Follower<T> {
    socket: Rc<Socket>,
    edge: Rc<Edge>,
    user: UserId,
    /// Number of the last fact that was queued.
    last: Cell<u64>,
    encoder: T,
}

impl<T: FrameEncoder> Follower<T> {
    async fn live(self, wakeup: UserWakeup) {
        loop {
            wakeup.woken().await;
            if let Err(close) = caught(self.catch_up(Past::Followed)).await.unwrap_or(Err(Close::INTERNAL)) {
                return self.socket.close(close);
            }
        }
    }

    /// Queues the facts since the last one, at the pace of the peer. The facts that the shard keeps extend the queue,
    /// so a burst of thousands does not close a socket whose peer reads. If the peer is so slow that facts are dropped
    /// before they are queried, the socket is closed. While a client resumes, facts about orders of days that are not kept
    /// any more are passed over with a `gap` frame.
    async fn catch_up(&self, past: Past) -> Result<(), Close> {
        let mut frames = Vec::new();
        while self.socket.is_open() {
            let page = self.query(self.last.get(), FACTS_PER_PAGE_MAX).await?;
            // Facts were dropped in the meantime. A gap in an open socket is not allowed.
            if page.oldest > self.last.get() + 1 {
                match past {
                    Past::Followed => return Err(Close::SLOW_CONSUMER),
                    Past::Resumed => {
                        self.socket.send(&Frame::record(&Gap::new(page.oldest)));
                        self.last.set(page.oldest - 1);
                    }
                }
            }
            for fact in &page.facts {
                self.encoder.encode(fact, &mut frames);
                for frame in frames.drain(..) {
                    self.queue(&frame).await;
                }
                self.last.set(fact.seq);
            }
            if self.last.get() >= page.newest {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn queue(&self, frame: &Frame) {
        while !self.socket.offer(FACTS, frame) {
            let drained = Rc::new(Notify::new());
            let notify = drained.clone();
            self.socket.when_drained(move || notify.notify_one());
            drained.notified().await;
        }
    }

    async fn query(&self, after: u64, limit: usize) -> Result<FactPage, Close> {
        loop {
            let query = Command::Query(Query::Facts { after, limit });
            match self.edge.engine.ask(self.user, query, self.edge.app.reads.clock.now()).await {
                Ok(Answer::Facts(page)) => return Ok(page),
                // The shard did not take the query.
                Err(AskError::Busy) => tokio::time::sleep(BUSY_PAUSE).await,
                Ok(_) | Err(AskError::Unknown | AskError::Overshot(_)) => return Err(Close::INTERNAL),
            }
        }
    }
}
