//! Commands to the shards, until they are answered.

use edge::ended_rows::EndedRows;
use edge::engine_client::Reply;
use engine::command::{Answer, Command, Envelope};
use engine::id::UserId;
use engine::reject::Reject;
use engine::ring::Ring;
use engine::shard::elsewhere::Elsewhere;
use engine::shard::shard_of;
use host::clock::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// The pause before a command is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Commands that wait for their shards at the same time, so that orders find room in the queues.
const ASKED_MAX: usize = 32;

/// The queues to the shards.
pub struct Shards {
    inboxes: Vec<Arc<Ring<Envelope<Reply>>>>,
    pub clock: Clock,
    places: Semaphore,
    /// Orders and positions that have left memory.
    ended: Arc<dyn EndedRows>,
}

impl Shards {
    pub fn new(inboxes: Vec<Arc<Ring<Envelope<Reply>>>>, clock: Clock, ended: Arc<dyn EndedRows>) -> Shards {
        Shards { inboxes, clock, places: Semaphore::new(ASKED_MAX), ended }
    }

    /// The answer of the user's shard; the command is sent again until there is one. It does not return while the log has
    /// no room or has failed, or rows that have left memory cannot be read: its task ends with the server.
    pub async fn ask(&self, owner: UserId, command: impl Fn() -> Command) -> Answer {
        match self.answer(owner, command).await {
            Answer::Elsewhere(rest) => self.completed(rest).await,
            answer => answer,
        }
    }

    /// The answer of the shard alone.
    async fn answer(&self, owner: UserId, command: impl Fn() -> Command) -> Answer {
        let inbox = &self.inboxes[shard_of(owner, self.inboxes.len())];
        let _place = self.places.acquire().await;
        loop {
            let (sender, answered) = oneshot::channel();
            let reply = Reply::Request(sender);
            let envelope = Envelope { owner, command: command(), received_at: self.clock.now(), reply };
            if inbox.push(envelope).is_ok() {
                match answered.await {
                    // A shard without time or room, or a log that has failed.
                    Err(_) | Ok(Answer::Refused(Reject::NoRoom | Reject::Busy | Reject::WaitedTooLong)) => {}
                    Ok(answer) => return answer,
                }
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// The answer with rows that have left memory; they are read again until they can be. It holds up no other answer.
    async fn completed(&self, rest: Box<Elsewhere>) -> Answer {
        loop {
            if let Ok(Ok(answer)) = self.ended.complete(rest.clone()).await {
                return answer;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edge::ended_rows::{EndedAnswer, FoundCommand, Unread, answered};
    use edge::testing::{OneOrder, one_ended_order};
    use engine::command::Query;
    use engine::look_up::LookUp;
    use engine::time::Timestamp;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Refuses for a while, then completes.
    struct Later(AtomicUsize, OneOrder);

    impl EndedRows for Later {
        fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => answered(Err(Unread::Busy)),
                1 => answered(Err(Unread::Unreadable)),
                // A defect of a reader.
                2 => oneshot::channel().1,
                _ => {
                    let Ok(answer) = elsewhere.complete(&self.1);
                    answered(Ok(answer))
                }
            }
        }

        fn look_up(&self, _: Box<LookUp>) -> FoundCommand {
            answered(Err(Unread::Unreadable))
        }
    }

    /// Rows that left memory are read until they can be, and the shard is asked only once.
    #[test]
    fn an_answer_waits_for_ended_rows() {
        let (rest, rows) = one_ended_order();
        let inbox: Arc<Ring<Envelope<Reply>>> = Arc::new(Ring::new(4));
        let ended = Arc::new(Later(AtomicUsize::new(0), rows));
        let shards = Shards::new(vec![inbox.clone()], Clock::fake(Timestamp(1)), ended.clone());
        let runtime = host::runtime::runtime().expect("a runtime");
        let shard = async {
            let Envelope { reply, .. } = inbox.pop().expect("it was handed over");
            reply.fill(Answer::Elsewhere(rest));
        };
        let query = || Command::Query(Query::OwedAlert(None));
        let asked = runtime.block_on(async { tokio::join!(shards.ask(UserId(1), query), shard).0 });
        assert!(matches!(asked, Answer::Order(_)), "{asked:?}");
        assert_eq!((ended.0.load(Ordering::Relaxed), inbox.is_empty()), (4, true));
    }
}
