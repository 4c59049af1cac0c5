//! The output of the server: records that the model accounts for, answers that are checked, facts of the feed that are
//! published once they are released.

use super::{InFlight, Made, NEWS_PER_RECORD_MAX, Verdict, Why, World};
use crate::judge;
use crate::model::User;
use engine::book::publish;
use engine::command::{Answer, Command};
use engine::fact;
use engine::id::MarketId;
use engine::market::mutation::MarketMutation;
use engine::shard::Room;
use journal::commit::Reply;
use sha2::Digest as _;
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{TryRecvError, sync_channel};

impl World {
    /// Pairs the records of the log with the model's expected ones. Users never share a record, so each user's records
    /// are in order; the order among users is up to the shard.
    pub(super) fn match_records(&mut self, before: usize, died: bool) -> Verdict {
        let mut waiting: BTreeMap<u64, VecDeque<User>> = BTreeMap::new();
        for (owner, user) in self.model.records.drain(..) {
            waiting.entry(owner).or_default().push_back(user);
        }
        for (owner, _) in &self.life.tape[before..] {
            let Some(user) = waiting.get_mut(owner).and_then(VecDeque::pop_front) else {
                return Err(format!("a record of user {owner} that nothing accounts for"));
            };
            self.made.push((*owner, Made::User(Box::new(user))));
        }
        let missing = waiting.iter().find(|(_, left)| !left.is_empty());
        match missing {
            Some((owner, left)) if !died => Err(format!("{} records of user {owner} are missing", left.len())),
            _ => Ok(()),
        }
    }

    /// Released answers are checked; their effects must never be lost.
    pub(super) fn hear(&mut self) -> Verdict {
        let (mut published, mut settled) = (Vec::new(), Vec::new());
        let waiting: Vec<u64> = self.asked.keys().copied().collect();
        for number in waiting {
            let asked = self.asked.get_mut(&number).expect("listed");
            let answer = match asked.early.take().map_or_else(|| asked.receiver.try_recv(), Ok) {
                Err(TryRecvError::Empty) => continue,
                answer => answer.ok(),
            };
            let asked = self.asked.remove(&number).expect("listed");
            if let (Some(Answer::Elsewhere(_)), Some((_, upto))) = (&answer, &asked.expected) {
                self.told_lsn = self.told_lsn.max(*upto);
                if let Some(Answer::Elsewhere(elsewhere)) = answer {
                    self.complete_later(number, asked, elsewhere);
                }
                continue;
            }
            let InFlight { owner, command, why, expected, .. } = asked;
            let Some(answer) = answer else {
                if !self.life.marks.is_poisoned() {
                    return Err(format!("an answer was dropped: {command:?}"));
                }
                // The client must look the order up.
                self.count.unknown += 1;
                continue;
            };
            let text = format!("{answer:?}");
            self.story.update(text.as_bytes());
            let Some((expected, upto)) = expected else {
                return Err(format!("an answer to a command that no shard has taken: {text}"));
            };
            judge::answer(&expected, &answer).map_err(|wrong| {
                format!("{command:?} of user {owner}: {wrong}\n  answer {text}\n  right {expected:?}")
            })?;
            self.told_lsn = self.told_lsn.max(upto);
            self.count.hear(&answer);
            if let Why::Settle(market) = why {
                settled.push(market);
            }
        }
        if let Some((receiver, ..)) = &self.flushing
            && receiver.try_recv().is_ok()
        {
            let (_, facts, markets) = self.flushing.take().expect("looked up just now");
            published = facts;
            self.model.markets = markets;
        }
        for fact in &published {
            publish(fact, &self.life.catalog, &mut self.life.writer);
            if let MarketMutation::MarketResolved(fact::MarketResolved { market, .. }) = fact {
                self.settle(*market);
            }
        }
        for market in settled {
            let waits = self.asked.values().any(|asked| asked.why == Why::Settle(market));
            if !waits && self.settling.contains(&market) {
                self.settling.retain(|other| *other != market);
                self.settled(market);
            }
        }
        if published.is_empty() { Ok(()) } else { self.flush() }
    }

    pub(super) fn settle(&mut self, market: MarketId) {
        self.settling.push(market);
        self.ask_all(|| Command::Settle { market }, Why::Settle(market));
    }

    /// The feed's facts go to the log, one record at a time, when there is room.
    pub(crate) fn flush(&mut self) -> Verdict {
        if self.stopping || self.flushing.is_some() || self.pending.is_empty() || self.life.room() == Room::None {
            return Ok(());
        }
        let count = self.pending.len().min(NEWS_PER_RECORD_MAX);
        let (mut facts, mut markets) = (Vec::new(), Vec::new());
        for (more, after) in self.pending.drain(..count) {
            facts.extend(more);
            markets = after;
        }
        let (sender, receiver) = sync_channel(1);
        let (now, reply) = (self.now, Reply::Thread(sender));
        self.made.push((0, Made::Markets(markets.clone())));
        self.flushing = Some((receiver, facts.clone(), markets));
        self.guarded(|world| world.life.record_markets(&facts, now, reply)).map(drop)
    }
}
