//! Follows the order facts of one user: each once and in their order, from a number on and then live (streams.md §1.6).
//!
//! There is one way for both. Whenever the user's bell rang the facts behind the last one are asked of the shard, in
//! pages, and told; a resume is that question with an older number. An answer is released behind what it tells of, so a
//! frame never tells what the journal could lose, or what REST would not find.

use super::close::Close;
use super::frame::Frame;
use super::outbox::Tag;
use super::session::{Socket, caught};
use super::user_wakeups::UserWakeup;
use crate::app::Edge;
use crate::engine_client::Late;
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
use wire::write::object;

/// How long a full shard is left alone.
const BUSY_REST: Duration = Duration::from_millis(10);
/// All frames about facts.
const TOLD: Tag = Tag(0);

/// Beyond it a number is not the same to every reader of JSON.
const FROM_SEQ_MAX: u64 = (1 << 53) - 1;

/// What a channel makes of a fact.
pub trait Teller: 'static {
    /// The frames that tell of it, if any.
    fn tell(&self, fact: &FactView, frames: &mut Vec<Frame>);
}

/// Goes on following until dropped.
pub struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The number that a handshake's `from_seq` names.
///
/// # Errors
/// What is no number, as any wrong parameter.
pub fn from_seq(query: &QueryText<'_>) -> Result<Option<u64>, Refusal> {
    let mut params = Params::new(query);
    let from = params.integer("from_seq", 0..=FROM_SEQ_MAX);
    if params.problems.is_empty() { Ok(from) } else { Err(Refusal::validation(&params.problems)) }
}

/// Tells a socket all facts behind number `from`, or those from now on, and goes on. Comes back when what was missed is
/// queued. A number that nothing has yet is now, and the peer is told so: it knows another history.
///
/// # Errors
/// Why the socket is to be closed.
pub async fn follow(
    socket: Rc<Socket>,
    edge: Rc<Edge>,
    user: UserId,
    from: Option<u64>,
    teller: impl Teller,
) -> Result<Following, Close> {
    // Before the first query, so that no fact falls between its answer and the first wake-up.
    let wakeup = edge.app.streams.user_wakeups.follow(user);
    let follower = Follower { socket, edge, user, last: Cell::new(0), teller };
    let now = follower.ask(u64::MAX, 1).await?;
    follower.last.set(from.unwrap_or(now.newest).min(now.newest));
    if follower.last.get() + 1 < now.oldest {
        follower.last.set(now.oldest - 1);
    }
    if from.is_some_and(|from| from != follower.last.get()) {
        follower.socket.send(&gap(follower.last.get() + 1));
    }
    follower.catch_up().await?;
    let task = tokio::task::spawn_local(follower.live(wakeup));
    Ok(Following(task.abort_handle()))
}

/// The first frame of a resume from before the oldest fact that is known, or from beyond the newest: where it goes on.
fn gap(oldest: u64) -> Frame {
    Frame::json(|out| {
        object(out, |o| {
            o.word("type", "gap");
            o.integer("from_seq", oldest);
        });
    })
}

struct Follower<T> {
    socket: Rc<Socket>,
    edge: Rc<Edge>,
    user: UserId,
    /// Number of the last fact that was told.
    last: Cell<u64>,
    teller: T,
}

impl<T: Teller> Follower<T> {
    async fn live(self, wakeup: UserWakeup) {
        loop {
            wakeup.woken().await;
            if let Err(close) = caught(self.catch_up()).await.unwrap_or(Err(Close::INTERNAL)) {
                return self.socket.close(close);
            }
        }
    }

    /// Tells what happened since the last fact that was told, as fast as the peer takes it: the facts that are kept are the
    /// queue behind the queue, so a burst of thousands closes nobody who reads. One who reads so slowly that facts are
    /// forgotten before they are asked for is closed.
    async fn catch_up(&self) -> Result<(), Close> {
        let mut frames = Vec::new();
        while self.socket.is_open() {
            let page = self.ask(self.last.get(), FACTS_PER_PAGE_MAX).await?;
            // More has happened since the last question than is kept: nothing is passed over in silence.
            if page.oldest > self.last.get() + 1 {
                return Err(Close::SLOW_CONSUMER);
            }
            for fact in &page.facts {
                self.teller.tell(fact, &mut frames);
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
        while !self.socket.offer(TOLD, frame) {
            let drained = Rc::new(Notify::new());
            let notify = drained.clone();
            self.socket.when_drained(move || notify.notify_one());
            drained.notified().await;
        }
    }

    async fn ask(&self, after: u64, limit: usize) -> Result<FactPage, Close> {
        loop {
            let query = Command::Query(Query::Facts { after, limit });
            match self.edge.engine.ask(self.user, query, self.edge.app.reads.clock.now()).await {
                Ok(Answer::Facts(page)) => return Ok(page),
                // Nothing was asked: the shard has its hands full.
                Err(Late::Busy) => tokio::time::sleep(BUSY_REST).await,
                Ok(_) | Err(Late::Unknown | Late::Overshot(_)) => return Err(Close::INTERNAL),
            }
        }
    }
}
