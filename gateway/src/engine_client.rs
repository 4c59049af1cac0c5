//! Ask a user's shard: choose it, hand the command over, wait for the released answer, and say what a late one means.

use crate::clock::Clock;
use crate::commit::Reply;
use crate::core::Core;
use engine::command::{Answer, Command, Envelope};
use engine::id::UserId;
use engine::reject::Reject;
use engine::ring::Ring;
use engine::shard::shard_of;
use engine::time::{SECOND, Timestamp};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time from reading a request to its answer (trading.md §9).
pub const ANSWER_DEADLINE_US: u64 = 10 * SECOND;

/// Why there is no answer in time.
#[derive(Debug)]
pub enum Late {
    /// The shard's queue is full: nothing happened (`SERVER_BUSY`).
    Busy,
    /// Begun, and its commit is not confirmed: the sender must look the order up (`PERSISTENCE_UNKNOWN`).
    Unknown,
    /// Committed, but after the deadline (`DEADLINE_OVERSHOT_BUT_PERSISTED`).
    Overshot(Box<Answer>),
}

/// The way into the core from one IO thread. Cheap to clone.
#[derive(Clone)]
pub struct EngineClient {
    lane: Lane,
    clock: Clock,
}

#[derive(Clone)]
enum Lane {
    /// Shard and committer live on this very thread: a command is one call.
    Inline(Rc<RefCell<Core>>),
    /// One inbox per shard thread.
    Threaded(Arc<[Arc<Ring<Envelope<Reply>>>]>),
    /// Answers made by a test.
    #[cfg(test)]
    Canned(Canned),
}

/// What a test answers in a shard's place.
#[cfg(test)]
pub type Canned = Rc<dyn Fn(UserId, Command) -> Result<Answer, Late>>;

impl EngineClient {
    /// The core on this thread.
    pub fn inline(core: Rc<RefCell<Core>>, clock: Clock) -> EngineClient {
        EngineClient { lane: Lane::Inline(core), clock }
    }

    /// Shard threads behind their inboxes.
    pub fn threaded(inboxes: Arc<[Arc<Ring<Envelope<Reply>>>]>, clock: Clock) -> EngineClient {
        EngineClient { lane: Lane::Threaded(inboxes), clock }
    }

    /// Answers made by a test.
    #[cfg(test)]
    pub fn canned(answer: Canned) -> EngineClient {
        EngineClient { lane: Lane::Canned(answer), clock: Clock::wall() }
    }

    /// Whether commands are run on this thread, and most answers are there when the call returns.
    pub fn is_here(&self) -> bool {
        !matches!(self.lane, Lane::Threaded(_))
    }

    /// Where the core is on this thread, has it read what a command of that user is about to read: the waits for memory are
    /// one then, and not one behind the other.
    pub fn warm(&self, owner: UserId) {
        if let Lane::Inline(core) = &self.lane {
            core.borrow().warm(owner);
        }
    }

    /// Hands a command over whose answer nobody waits for. Where the shard's queue is full, nothing comes of it.
    pub fn tell(&self, owner: UserId, command: Command) {
        let now = self.clock.now();
        let envelope = |command| Envelope { owner, command, received_at: now, reply: Reply::Nobody };
        match &self.lane {
            Lane::Inline(core) => core.borrow_mut().take(envelope(command), now),
            Lane::Threaded(inboxes) => drop(inboxes[shard_of(owner, inboxes.len())].push(envelope(command))),
            #[cfg(test)]
            Lane::Canned(answer) => drop(answer(owner, command)),
        }
    }

    /// Asks the shard of `owner`; `received_at` is when the request was read. The deadline counts from there, the wait
    /// for the shard from now: a slow body is nobody's turn.
    ///
    /// # Errors
    /// [`Late`] when no answer was released within [`ANSWER_DEADLINE_US`], or none ever will be.
    pub async fn ask(&self, owner: UserId, command: Command, received_at: Timestamp) -> Result<Answer, Late> {
        let changes = !matches!(command, Command::Query(_));
        let handed_at = self.clock.now();
        let envelope =
            |command, sender| Envelope { owner, command, received_at: handed_at, reply: Reply::Request(sender) };
        let asked = match &self.lane {
            Lane::Inline(core) if is_answered_at_once(&command) => core.borrow_mut().ask(owner, command, handed_at),
            Lane::Inline(core) => {
                let (sender, receiver) = oneshot::channel();
                core.borrow_mut().take(envelope(command, sender), handed_at);
                Err(receiver)
            }
            Lane::Threaded(inboxes) => {
                let (sender, receiver) = oneshot::channel();
                let inbox = &inboxes[shard_of(owner, inboxes.len())];
                if inbox.push(envelope(command, sender)).is_err() {
                    return Err(Late::Busy);
                }
                Err(receiver)
            }
            #[cfg(test)]
            Lane::Canned(answer) => return answer(owner, command),
        };
        let (answer, at) = match asked {
            // At the time that it was decided at. No timer needed.
            Ok(answer) => (answer, handed_at),
            Err(receiver) => self.wait(receiver, received_at, handed_at).await?,
        };
        let overshot = at.since(received_at) > ANSWER_DEADLINE_US;
        match answer {
            Answer::Refused(Reject::NoRoom | Reject::Busy) => Err(Late::Busy),
            // A refusal had no effect, so there is nothing that a late answer could hide.
            answer if overshot && changes && !matches!(answer, Answer::Refused(_)) => {
                Err(Late::Overshot(Box::new(answer)))
            }
            answer => Ok(answer),
        }
    }

    /// The answer, and when it came.
    async fn wait(
        &self,
        mut receiver: oneshot::Receiver<Answer>,
        received_at: Timestamp,
        handed_at: Timestamp,
    ) -> Result<(Answer, Timestamp), Late> {
        // Answered within the call already.
        if let Ok(answer) = receiver.try_recv() {
            return Ok((answer, handed_at));
        }
        let left = ANSWER_DEADLINE_US.saturating_sub(self.clock.now().since(received_at));
        match tokio::time::timeout(Duration::from_micros(left), receiver).await {
            Ok(Ok(answer)) => Ok((answer, self.clock.now())),
            // The slot was dropped: the log is poisoned, or the core is gone.
            Ok(Err(_)) | Err(_) => Err(Late::Unknown),
        }
    }
}

/// Whether a shard answers such a command before its run is over, however little of it there is to do. The others may
/// take several turns.
fn is_answered_at_once(command: &Command) -> bool {
    matches!(command, Command::Place(_) | Command::PlaceBatch(_) | Command::Cancel { .. } | Command::Query(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::runtime;

    /// trading.md §9: the 2 s are those of the wait for the shard, the 10 s those since the request was read.
    #[test]
    fn a_slow_body_is_no_wait_for_the_shard() {
        let clock = Clock::fake(Timestamp(1_790_932_500 * SECOND));
        let inbox: Arc<Ring<Envelope<Reply>>> = Arc::new(Ring::new(4));
        let client = EngineClient::threaded(Arc::from([inbox.clone()]), clock.clone());
        let mut cases = 0;
        for (body_us, is_told) in [(0, true), (2 * SECOND + 1, true), (9 * SECOND, true), (10 * SECOND + 1, false)] {
            let read_at = clock.now();
            clock.set(read_at.plus(body_us));
            let shard = async {
                let Envelope { received_at, reply, .. } = inbox.pop().expect("it was handed over");
                assert_eq!(received_at, clock.now(), "{body_us} µs of body are no wait");
                // Whoever asked may have given up.
                let Reply::Request(sender) = reply else { panic!("a request waits") };
                let _ = sender.send(Answer::Done);
            };
            let asking = async { tokio::join!(client.ask(UserId(1), Command::EndBeats, read_at), shard).0 };
            let told = runtime().expect("a runtime").block_on(asking);
            assert_eq!(matches!(told, Ok(Answer::Done)), is_told, "{body_us} µs of body: {told:?}");
            assert!(is_told || matches!(told, Err(Late::Unknown | Late::Overshot(_))), "{told:?}");
            cases += 1;
        }
        println!("slow bodies: {cases} cases");
    }
}
