//! Sends commands to the shard of a user, waits for the released answer, and turns a late answer into its meaning. An
//! answer that needs rows which have left memory is completed before it is returned, and a command that needs such rows is
//! sent again with them.

use crate::ended_rows::{EndedRows, NoEndedRows, Unread};
use engine::command::{Answer, Command, Envelope};
use engine::id::UserId;
use engine::look_up::LookUp;
use engine::reject::Reject;
use engine::ring::Ring;
use engine::rules::WAIT_MAX_US;
use engine::shard::elsewhere::Elsewhere;
use engine::shard::shard_of;
use engine::time::{SECOND, Timestamp};
use host::clock::Clock;
use host::slot::Slot;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Deadline of an answer, from when its request was read. In microseconds.
pub const ANSWER_DEADLINE_US: u64 = 10 * SECOND;

/// Why a request has no answer in time.
#[derive(Debug)]
pub enum AskError {
    /// The shard's queue is full, or that of the readers of ended rows, or they have not read them in time. The command
    /// has no effect (`SERVER_BUSY`).
    Busy,
    /// The command was started and its commit is not confirmed: the client must look the order up. Or it needs ended rows that
    /// cannot be read (`PERSISTENCE_UNKNOWN`).
    Unknown,
    /// The command was committed after the deadline (`DEADLINE_OVERSHOT_BUT_PERSISTED`).
    Overshot(Box<Answer>),
}

/// The receiver of a shard's answer.
pub type Reply = Slot<Answer>;

/// A shard and its committer on this thread.
pub trait Core {
    /// Runs one command. Its answer goes to the reply slot of the envelope when it is released.
    fn take(&self, envelope: Envelope<Reply>, now: Timestamp);

    /// Runs one command that is answered within one turn. Returns the answer if it is already released.
    ///
    /// # Errors
    /// The receiver of an answer that is released later.
    fn ask(&self, owner: UserId, command: Command, now: Timestamp) -> Result<Answer, oneshot::Receiver<Answer>>;

    /// Prefetches the rows that a command of that user reads.
    fn warm(&self, owner: UserId);
}

/// Access to the core from one IO thread. Cheap to clone.
#[derive(Clone)]
pub struct EngineClient {
    lane: Lane,
    clock: Clock,
    ended: Arc<dyn EndedRows>,
}

#[derive(Clone)]
enum Lane {
    /// Shard and committer are on this thread: a command is one call.
    Inline(Rc<dyn Core>),
    /// One inbox per shard thread.
    Threaded(Arc<[Arc<Ring<Envelope<Reply>>>]>),
    /// Answers made by a test.
    #[cfg(any(test, feature = "testing"))]
    Canned(Canned),
}

/// The answers of a test in place of a shard.
#[cfg(any(test, feature = "testing"))]
pub type Canned = Rc<dyn Fn(UserId, Command) -> Result<Answer, AskError>>;

impl EngineClient {
    /// The core on this thread.
    pub fn inline(core: Rc<dyn Core>, clock: Clock) -> EngineClient {
        EngineClient::of(Lane::Inline(core), clock)
    }

    /// Shard threads, by their inboxes.
    pub fn threaded(inboxes: Arc<[Arc<Ring<Envelope<Reply>>>]>, clock: Clock) -> EngineClient {
        EngineClient::of(Lane::Threaded(inboxes), clock)
    }

    /// Answers made by a test.
    #[cfg(any(test, feature = "testing"))]
    pub fn canned(answer: Canned) -> EngineClient {
        EngineClient::of(Lane::Canned(answer), Clock::wall())
    }

    fn of(lane: Lane, clock: Clock) -> EngineClient {
        EngineClient { lane, clock, ended: Arc::new(NoEndedRows) }
    }

    /// With these rows that have left memory; without them there are none.
    pub fn with_ended(self, ended: Arc<dyn EndedRows>) -> EngineClient {
        EngineClient { ended, ..self }
    }

    /// Whether commands run on this thread. Most answers are then ready when the call returns.
    pub fn is_here(&self) -> bool {
        !matches!(self.lane, Lane::Threaded(_))
    }

    /// Prefetches the rows that a command of that user reads, if the core is on this thread. The memory accesses then
    /// overlap.
    pub fn warm(&self, owner: UserId) {
        if let Lane::Inline(core) = &self.lane {
            core.warm(owner);
        }
    }

    /// Sends a command without waiting for its answer. The command is dropped if the shard's queue is full.
    pub fn tell(&self, owner: UserId, command: Command) {
        let now = self.clock.now();
        let envelope = |command| Envelope { owner, command, received_at: now, reply: Reply::Discard };
        match &self.lane {
            Lane::Inline(core) => core.take(envelope(command), now),
            Lane::Threaded(inboxes) => drop(inboxes[shard_of(owner, inboxes.len())].push(envelope(command))),
            #[cfg(any(test, feature = "testing"))]
            Lane::Canned(answer) => drop(answer(owner, command)),
        }
    }

    /// Sends a command to the shard of `owner`. `received_at` is when the request was read: the deadline of the answer
    /// counts from it. The shard counts its own waiting time from the call, so a body that arrives slowly does not use
    /// it up.
    ///
    /// # Errors
    /// [`AskError`] if no answer is released within [`ANSWER_DEADLINE_US`], or none can be.
    pub async fn ask(&self, owner: UserId, command: Command, received_at: Timestamp) -> Result<Answer, AskError> {
        // What takes longer is a separate future. So the future of a request that is answered immediately stays small.
        let longer = match self.hand_over(owner, command, received_at) {
            Handed::Answered(answer) if !needs_ended(&answer) => return answer,
            handed => Box::pin(self.finish(handed, self.clock.deadline_from(received_at))),
        };
        longer.await
    }

    /// Waits for the answer, and reads the ended rows that it needs. The deadline counts from `begun`.
    async fn finish(&self, handed: Handed, begun: Timestamp) -> Result<Answer, AskError> {
        let answer = match handed {
            Handed::Answered(answer) => answer?,
            Handed::Waits(waiting) => self.wait(waiting).await?,
        };
        match answer {
            Answer::Elsewhere(rest) => self.complete(rest, begun).await,
            Answer::LookUp(look_up) => self.look_up(look_up, begun).await,
            answer => Ok(answer),
        }
    }

    /// Has a command looked up away from the core thread, and sends it again with what was found, as often as the shard
    /// asks for more. Its wait for the shard counts from its first arrival, and so does the deadline, from `begun`.
    async fn look_up(&self, mut look_up: Box<LookUp>, begun: Timestamp) -> Result<Answer, AskError> {
        loop {
            let mut ending = Ending { client: self, owner: look_up.owner(), end: Some(look_up.end()) };
            let left = WAIT_MAX_US.saturating_sub(self.clock.now().since(look_up.received_at()));
            let found = match tokio::time::timeout(Duration::from_micros(left), self.ended.look_up(look_up)).await {
                Ok(Ok(Ok(found))) => found,
                Ok(Ok(Err(Unread::Busy))) => return Err(AskError::Busy),
                // The reader failed.
                Ok(Ok(Err(Unread::Unreadable)) | Err(_)) => return Err(AskError::Unknown),
                Err(_) => return Ok(Answer::Refused(Reject::WaitedTooLong)),
            };
            let handed = self.hand_back(found, begun);
            if !matches!(handed, Handed::Answered(Err(AskError::Busy))) {
                // The shard ends the look-up.
                ending.end = None;
            }
            let answer = match handed {
                Handed::Answered(answer) => answer,
                Handed::Waits(waiting) => self.wait(waiting).await,
            };
            match answer {
                Ok(Answer::LookUp(again)) => look_up = again,
                answer => return answer,
            }
        }
    }

    /// Hands over a command that was looked up.
    fn hand_back(&self, found: Envelope<()>, begun: Timestamp) -> Handed {
        let Envelope { owner, command, received_at, reply: () } = found;
        let (now, handed_at) = self.clock.both();
        let (sender, receiver) = oneshot::channel();
        let envelope = |command| Envelope { owner, command, received_at, reply: Reply::Request(sender) };
        match &self.lane {
            Lane::Inline(core) => core.take(envelope(command), now),
            Lane::Threaded(inboxes) => {
                if inboxes[shard_of(owner, inboxes.len())].push(envelope(command)).is_err() {
                    return Handed::Answered(Err(AskError::Busy));
                }
            }
            #[cfg(any(test, feature = "testing"))]
            Lane::Canned(answer) => return Handed::Answered(answer(owner, command)),
        }
        Handed::Waits(Waiting { receiver, handed_at, begun, changes: true })
    }

    /// Completes an answer with rows that have left memory. A query has no effect, so one that is not answered in time
    /// may be sent again.
    async fn complete(&self, rest: Box<Elsewhere>, begun: Timestamp) -> Result<Answer, AskError> {
        let completed = self.ended.complete(rest);
        match tokio::time::timeout(self.left(begun), completed).await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(Unread::Busy))) | Err(_) => Err(AskError::Busy),
            Ok(Ok(Err(Unread::Unreadable)) | Err(_)) => Err(AskError::Unknown),
        }
    }

    /// The time until the deadline of a request.
    fn left(&self, begun: Timestamp) -> Duration {
        Duration::from_micros(ANSWER_DEADLINE_US.saturating_sub(self.clock.steady().since(begun)))
    }

    /// Hands the command over; returns the answer if it is ready.
    fn hand_over(&self, owner: UserId, command: Command, received_at: Timestamp) -> Handed {
        let changes = !matches!(command, Command::Query(_));
        let (handed_at, steady_at) = self.clock.both();
        let begun = self.clock.deadline_from(received_at);
        let envelope =
            |command, sender| Envelope { owner, command, received_at: handed_at, reply: Reply::Request(sender) };
        let asked = match &self.lane {
            Lane::Inline(core) if is_answered_in_turn(&command) => core.ask(owner, command, handed_at),
            Lane::Inline(core) => {
                let (sender, receiver) = oneshot::channel();
                core.take(envelope(command, sender), handed_at);
                Err(receiver)
            }
            Lane::Threaded(inboxes) => {
                let (sender, receiver) = oneshot::channel();
                let inbox = &inboxes[shard_of(owner, inboxes.len())];
                if inbox.push(envelope(command, sender)).is_err() {
                    return Handed::Answered(Err(AskError::Busy));
                }
                Err(receiver)
            }
            #[cfg(any(test, feature = "testing"))]
            Lane::Canned(answer) => return Handed::Answered(answer(owner, command)),
        };
        match asked {
            // The answer has the time of its decision and needs no timer.
            Ok(answer) => Handed::Answered(in_time(answer, steady_at, begun, changes)),
            Err(receiver) => Handed::Waits(Waiting { receiver, handed_at: steady_at, begun, changes }),
        }
    }

    /// Waits for an answer.
    async fn wait(&self, waiting: Waiting) -> Result<Answer, AskError> {
        let Waiting { mut receiver, handed_at, begun, changes } = waiting;
        // The call may have answered it already.
        if let Ok(answer) = receiver.try_recv() {
            return in_time(answer, handed_at, begun, changes);
        }
        match tokio::time::timeout(self.left(begun), receiver).await {
            Ok(Ok(answer)) => in_time(answer, self.clock.steady(), begun, changes),
            // The slot was dropped: the log is poisoned, or the core is gone.
            Ok(Err(_)) | Err(_) => Err(AskError::Unknown),
        }
    }
}

/// Whether rows that have left memory must be read before there is an answer.
fn needs_ended(answer: &Result<Answer, AskError>) -> bool {
    matches!(answer, Ok(Answer::Elsewhere(_) | Answer::LookUp(_)))
}

/// Ends a look-up that has no outcome: the rows cannot be read, or the client has gone. The later commands of its user
/// then go on.
struct Ending<'a> {
    client: &'a EngineClient,
    owner: UserId,
    end: Option<Command>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            self.client.tell(self.owner, end);
        }
    }
}

/// A command that was passed to the core.
#[expect(clippy::large_enum_variant, reason = "most answers are ready")]
enum Handed {
    Answered(Result<Answer, AskError>),
    Waits(Waiting),
}

/// A command whose answer is pending.
struct Waiting {
    receiver: oneshot::Receiver<Answer>,
    /// When it was passed on, and from when its deadline counts; both as [`Clock::steady`] counts.
    handed_at: Timestamp,
    begun: Timestamp,
    /// Whether the command is not a query.
    changes: bool,
}

/// The result of an answer at `at` to a request that was read at `begun`, both steady times.
fn in_time(answer: Answer, at: Timestamp, begun: Timestamp, changes: bool) -> Result<Answer, AskError> {
    let overshot = at.since(begun) > ANSWER_DEADLINE_US;
    match answer {
        Answer::Refused(Reject::NoRoom | Reject::Busy) => Err(AskError::Busy),
        // Neither a refusal nor a look-up has an effect, so a late refusal is an ordinary one.
        answer if overshot && changes && !matches!(answer, Answer::Refused(_) | Answer::LookUp(_)) => {
            Err(AskError::Overshot(Box::new(answer)))
        }
        answer => Ok(answer),
    }
}

/// Whether a shard answers such a command within one turn. Other commands may take several.
fn is_answered_in_turn(command: &Command) -> bool {
    matches!(command, Command::Place(_) | Command::PlaceBatch(_) | Command::Cancel { .. } | Command::Query(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ended_rows::{EndedAnswer, answered};
    use crate::testing::{OneOrder, one_ended_order};
    use host::runtime::runtime;

    /// The shard's limit of 2 s counts from the call, the deadline of 10 s from when the request was read.
    #[test]
    fn a_slow_body_does_not_count_as_waiting_for_the_shard() {
        let clock = Clock::fake(Timestamp(1_790_932_500 * SECOND));
        let inbox: Arc<Ring<Envelope<Reply>>> = Arc::new(Ring::new(4));
        let client = EngineClient::threaded(Arc::from([inbox.clone()]), clock.clone());
        let mut cases = 0;
        for (body_us, is_answered) in [(0, true), (2 * SECOND + 1, true), (9 * SECOND, true), (10 * SECOND + 1, false)]
        {
            let read_at = clock.now();
            clock.set(read_at.plus(body_us));
            let shard = async {
                let Envelope { received_at, reply, .. } = inbox.pop().expect("it was handed over");
                assert_eq!(received_at, clock.now(), "{body_us} µs of body are no wait");
                // The request may have timed out.
                let Reply::Request(sender) = reply else { panic!("a request waits") };
                let _ = sender.send(Answer::Done);
            };
            let asking = async { tokio::join!(client.ask(UserId(1), Command::EndBeats, read_at), shard).0 };
            let answer = runtime().expect("a runtime").block_on(asking);
            assert_eq!(matches!(answer, Ok(Answer::Done)), is_answered, "{body_us} µs of body: {answer:?}");
            assert!(is_answered || matches!(answer, Err(AskError::Unknown | AskError::Overshot(_))), "{answer:?}");
            cases += 1;
        }
        println!("slow bodies: {cases} cases");
    }

    /// What ended rows answer.
    #[derive(Clone, Copy, Debug)]
    enum Reader {
        Completes,
        Refuses(Unread),
        /// A defect: the receiver is closed.
        Fails,
        Never,
    }

    impl EndedRows for (Reader, OneOrder) {
        fn look_up(&self, _: Box<LookUp>) -> crate::ended_rows::FoundCommand {
            answered(Err(Unread::Unreadable))
        }

        fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer {
            match self.0 {
                Reader::Completes => {
                    let Ok(answer) = elsewhere.complete(&self.1);
                    answered(Ok(answer))
                }
                Reader::Refuses(why) => answered(Err(why)),
                Reader::Fails => tokio::sync::oneshot::channel().1,
                Reader::Never => {
                    let (sender, receiver) = tokio::sync::oneshot::channel();
                    // Until the process ends.
                    std::mem::forget(sender);
                    receiver
                }
            }
        }
    }

    /// An answer that needs ended rows, of a shard on this thread and of one behind a queue.
    #[test]
    fn ended_rows_complete_an_answer_or_say_why_not() {
        let clock = Clock::fake(Timestamp(1_790_932_500 * SECOND));
        let (rest, rows) = one_ended_order();
        let runtime = runtime().expect("a runtime");
        let mut cases = 0;
        for (reader, body_us, expected) in [
            (Reader::Completes, 0, "an order"),
            (Reader::Refuses(Unread::Busy), 0, "busy"),
            (Reader::Refuses(Unread::Unreadable), 0, "unknown"),
            (Reader::Fails, 0, "unknown"),
            // Nothing is left of the ten seconds: what is there is taken, and nothing is waited for.
            (Reader::Completes, ANSWER_DEADLINE_US + 1, "an order"),
            (Reader::Never, ANSWER_DEADLINE_US + 1, "busy"),
        ] {
            let read_at = clock.now();
            let ended = Arc::new((reader, rows.clone()));
            let answer = rest.clone();
            let here = EngineClient {
                clock: clock.clone(),
                ..EngineClient::canned(Rc::new(move |_, _| Ok(Answer::Elsewhere(answer.clone()))))
            };
            let inbox: Arc<Ring<Envelope<Reply>>> = Arc::new(Ring::new(4));
            let queued = EngineClient::threaded(Arc::from([inbox.clone()]), clock.clone());
            clock.set(read_at.plus(body_us));
            for (client, is_queued) in [(here, false), (queued, true)] {
                if is_queued && body_us > 0 {
                    // Its wait for the shard has ended before.
                    continue;
                }
                let client = client.with_ended(ended.clone());
                let shard = async {
                    if is_queued {
                        let Envelope { reply, .. } = inbox.pop().expect("it was handed over");
                        reply.fill(Answer::Elsewhere(rest.clone()));
                    }
                };
                let query = Command::Query(engine::command::Query::User);
                let asking = async { tokio::join!(client.ask(UserId(1), query, read_at), shard).0 };
                let found = match runtime.block_on(asking) {
                    Ok(Answer::Order(_)) => "an order",
                    Err(AskError::Busy) => "busy",
                    Err(AskError::Unknown) => "unknown",
                    other => panic!("{other:?}"),
                };
                assert_eq!(found, expected, "{reader:?}, queued: {is_queued}");
                cases += 1;
            }
        }
        println!("answers with ended rows: {cases} cases");
    }
}
