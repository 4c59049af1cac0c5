//! Replay: records folded onto a state. Recovery, checkpoint, tools and simulator all use [`fold`].
//!
//! It needs no market data, no flags and no clock: a record holds outcomes. Which shard a user is in is decided here,
//! by the count of today.

use super::shard_of;
use crate::id::{MARKETS, UserId};
use crate::market::Markets;
use crate::market::mutation::MarketMutation;
use crate::mutation::Mutation;
use crate::mutation::codec::{CodecError, each};
use crate::user::{User, Users};

/// The whole state: markets, and users by shard.
#[derive(Debug, Default)]
pub struct State {
    pub markets: Markets,
    /// One per shard.
    pub users: Vec<Users>,
}

impl State {
    /// An empty state of so many shards.
    pub fn new(shards_count: usize) -> State {
        State { markets: Markets::default(), users: (0..shards_count.max(1)).map(|_| Users::default()).collect() }
    }

    /// A user, wherever it is.
    pub fn user(&self, id: UserId) -> Option<&User> {
        self.users[shard_of(id, self.users.len())].get(id)
    }

    /// Takes a user in, into its shard.
    pub fn insert(&mut self, user: User) {
        let shard = shard_of(user.id, self.users.len());
        self.users[shard].insert(user);
    }

    /// The same state in another number of shards.
    pub fn repartition(mut self, shards_count: usize) -> State {
        let mut other = State::new(shards_count);
        other.markets = std::mem::take(&mut self.markets);
        for users in &mut self.users {
            for id in users.ids() {
                other.insert(users.take(id).expect("its own list names it"));
            }
        }
        other
    }

    /// Every promise about money, shares and indexes. Says the first that is broken.
    pub fn check_all(&self) -> Result<(), String> {
        self.users.iter().try_for_each(Users::check_all)
    }
}

/// Folds the payload of one record onto the state and says how many facts it held. After an error the state holds
/// part of the record: it is of no further use.
pub fn fold(state: &mut State, owner: UserId, version: u16, payload: &[u8]) -> Result<usize, CodecError> {
    if owner == MARKETS {
        return each(version, payload, |fact: &MarketMutation| state.markets.apply(fact));
    }
    let shard = shard_of(owner, state.users.len());
    let users = &mut state.users[shard];
    each(version, payload, |fact: &Mutation| users.apply(owner, fact))
}

/// One record as the log hands it over.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub owner: UserId,
    pub version: u16,
    pub payload: &'a [u8],
}

/// Folds many records, user by user: the same state as [`fold`] of one after the other, since users do not touch each
/// other, several times faster, since a user's state is brought into the caches once. A segment of the log is a good
/// size. Says how many facts there were.
pub fn fold_batch(state: &mut State, records: &[Record<'_>]) -> Result<usize, CodecError> {
    let mut order: Vec<(UserId, u32)> =
        records.iter().enumerate().map(|(at, record)| (record.owner, at as u32)).collect();
    // By owner, and the records of one in their order.
    order.sort_unstable();
    let mut count = 0;
    for (owner, at) in order {
        let record = &records[at as usize];
        count += fold(state, owner, record.version, record.payload)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
