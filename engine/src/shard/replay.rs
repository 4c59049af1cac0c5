//! Replay: applies records to a state. Recovery, checkpoint, tools and simulator all use [`fold`].
//!
//! It needs no market data, flags or clock: a record contains outcomes. The shard of a user follows from the present
//! count of shards.

use super::shard_of;
use crate::command::Ahead;
use crate::fact;
use crate::id::{KeyId, MARKETS, UserId};
use crate::market::Markets;
use crate::market::mutation::MarketMutation;
use crate::mutation::Mutation;
use crate::mutation::codec::{CodecError, decode, each, sets_back};
use crate::realism::RealismSets;
use crate::time::Timestamp;
use crate::user::users::AHEAD_MAX;
use crate::user::{User, Users};

/// The whole state: markets, and users by shard.
#[derive(Debug, Default)]
pub struct State {
    pub markets: Markets,
    /// One per shard.
    pub users: Vec<Users>,
}

impl State {
    /// An empty state of `shards_count` shards.
    pub fn new(shards_count: usize) -> State {
        State { markets: Markets::default(), users: (0..shards_count.max(1)).map(|_| Users::default()).collect() }
    }

    /// A user, in any shard.
    pub fn user(&self, id: UserId) -> Option<&User> {
        self.users[shard_of(id, self.users.len())].get(id)
    }

    /// Adds a user to its shard.
    pub fn insert(&mut self, user: User) {
        let shard = shard_of(user.id, self.users.len());
        self.users[shard].insert(user);
    }

    /// Stops listing resting orders ([`Users::check_all`] then compares none) until [`State::list_again`]: for folding
    /// many records without serving.
    pub fn unlist(&mut self) {
        self.users.iter_mut().for_each(Users::unlist);
    }

    /// Lists all resting orders if they are unlisted: required before serving.
    pub fn list_again(&mut self) {
        self.users.iter_mut().for_each(Users::list_again);
    }

    /// The same state with another count of shards.
    pub fn repartition(mut self, shards_count: usize) -> State {
        let mut other = State::new(shards_count);
        other.markets = std::mem::take(&mut self.markets);
        let departed_upto = self.users.iter().map(Users::departed_upto).max().unwrap_or(0);
        other.users.iter_mut().for_each(|users| users.set_departed_upto(departed_upto));
        for users in &mut self.users {
            for id in users.ids() {
                other.insert(users.take(id).expect("its own list names it"));
            }
        }
        other
    }

    /// Limits the times of users' events to at most `at`: the clock was wrong, and all of them happened before the
    /// correction. So ids and times of a user still ascend together. Requested dates (the expiration of an order, the
    /// end of a grant) stay.
    ///
    /// # Errors
    /// As [`State::may_set_back`]. Nothing is changed then.
    pub fn set_back(&mut self, at: Timestamp) -> Result<(), CodecError> {
        self.may_set_back(at)?;
        self.users.iter_mut().for_each(|users| users.set_back(at));
        Ok(())
    }

    /// Whether the clock can be set back to `at`.
    ///
    /// # Errors
    /// [`CodecError::SetBack`] when a row that has left memory has a later time, which cannot be limited.
    pub fn may_set_back(&self, at: Timestamp) -> Result<(), CodecError> {
        match self.newest_departed() {
            Some((user, newest)) if newest > at => Err(CodecError::SetBack { user, newest, at }),
            _ => Ok(()),
        }
    }

    /// The user whose rows that have left memory have the newest time, and that time.
    pub fn newest_departed(&self) -> Option<(UserId, Timestamp)> {
        self.users.iter().filter_map(Users::newest_departed).max_by_key(|(user, at)| (*at, *user))
    }

    /// A key, of any user, whose chosen set of realism is not one of these, and the name of that set.
    pub fn unknown_realism(&self, sets: &RealismSets) -> Option<(KeyId, String)> {
        let choices = self.users.iter().flat_map(Users::unordered).flat_map(User::realism_choices);
        let mut unknown = choices.filter(|(_, set)| sets.get(set).is_none());
        unknown.next().map(|(key, set)| (key, set.to_owned()))
    }

    /// Checks the invariants of money, shares and indexes. Returns the first violation.
    pub fn check_all(&self) -> Result<(), String> {
        self.users.iter().try_for_each(Users::check_all)
    }
}

/// Applies the payload of one record and returns its count of facts. A correction of the clock before the times of rows
/// that have left memory is an error ([`State::may_set_back`]). After an error the state has a part of the record
/// and must be dropped.
pub fn fold(state: &mut State, owner: UserId, version: u16, payload: &[u8]) -> Result<usize, CodecError> {
    if owner == MARKETS {
        let mut set_back = None;
        let count = each(version, payload, |fact: &MarketMutation| {
            state.markets.apply(fact);
            if let MarketMutation::ClockSetBack(fact::ClockSetBack { at, .. }) = fact {
                set_back = Some(*at);
            }
        })?;
        if let Some(at) = set_back {
            state.set_back(at)?;
        }
        return Ok(count);
    }
    let shard = shard_of(owner, state.users.len());
    let users = &mut state.users[shard];
    each(version, payload, |fact: &Mutation| users.apply(owner, fact))
}

/// One record of the log.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub owner: UserId,
    pub version: u16,
    pub payload: &'a [u8],
}

/// Facts that are prefetched together before they are applied.
const FACTS_PER_GROUP: usize = AHEAD_MAX;

/// Applies many records: the same state as [`fold`] one by one, faster with many users. A fact mostly waits for memory,
/// one access after the other; here the waits of a group of facts overlap. Returns the count of facts.
pub fn fold_batch(state: &mut State, records: &[Record<'_>]) -> Result<usize, CodecError> {
    let shards_count = state.users.len();
    let mut group: Vec<(UserId, Mutation)> = Vec::with_capacity(FACTS_PER_GROUP);
    let mut count = 0;
    for record in records {
        if record.owner == MARKETS {
            // It applies to the result of all records before it.
            if sets_back(record.payload) {
                apply_group(&mut state.users, shards_count, &mut group);
            }
            count += fold(state, record.owner, record.version, record.payload)?;
            continue;
        }
        for fact in decode::<Mutation>(record.version, record.payload)? {
            if group.len() == FACTS_PER_GROUP {
                apply_group(&mut state.users, shards_count, &mut group);
            }
            group.push((record.owner, fact?));
            count += 1;
        }
    }
    apply_group(&mut state.users, shards_count, &mut group);
    Ok(count)
}

/// Whether every fact of a record can be decoded: to find the record that made [`fold_batch`] fail.
pub fn is_readable(record: &Record<'_>) -> bool {
    let Record { owner, version, payload } = *record;
    if owner == MARKETS {
        return each(version, payload, |_: &MarketMutation| {}).is_ok();
    }
    each(version, payload, |_: &Mutation| {}).is_ok()
}

/// The part of its user's state that a fact reads.
fn concerned(fact: &Mutation) -> Ahead<'_> {
    match fact {
        Mutation::RequestRemembered(fact::RequestRemembered { client_order_id, .. }) => Ahead::Request(client_order_id),
        Mutation::OrderFilled(fact::OrderFilled { order, .. })
        | Mutation::OrderRested(fact::OrderRested { order, .. })
        | Mutation::OrderClosed(fact::OrderClosed { order, .. }) => Ahead::Order(*order),
        _ => Ahead::User,
    }
}

/// Whether a record sets the clock back: that it cannot be applied may follow from the state, not from its bytes.
pub fn is_set_back(record: &Record<'_>) -> bool {
    record.owner == MARKETS && sets_back(record.payload)
}

fn apply_group(shards: &mut [Users], shards_count: usize, group: &mut Vec<(UserId, Mutation)>) {
    if let [users] = shards {
        users.warm(group.iter().map(|(owner, fact)| (*owner, concerned(fact))));
    }
    for (owner, fact) in group.drain(..) {
        shards[shard_of(owner, shards_count)].apply(owner, &fact);
    }
}

#[cfg(test)]
mod tests;
