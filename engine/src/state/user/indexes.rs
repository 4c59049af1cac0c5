//! Indexes of a shard over its users' state, and their shared rows: derived by `apply`, never part of a snapshot or
//! digest.

use super::shared_rows::Shared;
use super::sorted::Sorted;
use super::{RowCounts, Safeguard, User};
use crate::id::{InstrumentId, PositionId, UserId};
use crate::order::resting::{Resting, Standing};
use crate::time::{Timestamp, UtcDay};
use ahash::AHashMap;
use std::collections::BTreeSet;

/// Count of instruments up to which an empty list of holders stays for reuse.
const HOLDERS_KEPT: usize = 1_024;

/// Resting orders, holders of instruments, heartbeats by the time of their lapse.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    pub resting: Resting,
    /// Open episodes of an instrument; their ids name their users.
    pub holders: AHashMap<InstrumentId, Sorted<PositionId>>,
    /// Users by the prefixes that they were granted; nearly always empty.
    prefixes: AHashMap<UserId, UserId>,
    pub lapses: BTreeSet<(Timestamp, UserId, Box<str>)>,
    /// Users that may need a point at the next hour: with an open position, or with cash that moved since their last
    /// point.
    pub watched: BTreeSet<UserId>,
    /// Users that are to be paid rebates, by the first day on which they are.
    pub rebates: BTreeSet<(UtcDay, UserId)>,
    /// Users with remembered requests in memory, by the moment at which the order of the oldest was placed.
    pub remembering: BTreeSet<(Timestamp, UserId)>,
    /// Counts of rows in memory.
    pub rows: RowCounts,
    /// Count of open episodes.
    pub open_positions: usize,
    /// Blocks that all users share.
    pub shared: Shared,
}

impl Indexes {
    /// The user of this shard that an object belongs to.
    #[inline]
    pub fn owner_of(&self, object: u64) -> UserId {
        let prefix = UserId::of_object(object);
        if self.prefixes.is_empty() { prefix } else { self.prefixes.get(&prefix).copied().unwrap_or(prefix) }
    }

    /// A user was granted a prefix.
    pub fn prefix_granted(&mut self, owner: UserId, prefix: UserId) {
        let other = self.prefixes.insert(prefix, owner);
        assert!(other.is_none(), "a prefix is granted once: {prefix} to user {owner}");
    }

    /// An episode of an instrument was opened.
    pub fn position_opened(&mut self, position: PositionId, instrument: InstrumentId) {
        self.holders.entry(instrument).or_default().insert(position);
        self.open_positions += 1;
    }

    /// An episode of an instrument was closed.
    pub fn position_closed(&mut self, position: PositionId, instrument: InstrumentId) {
        let holders = self.holders.get_mut(&instrument).expect("an open episode is indexed under its instrument");
        assert!(holders.remove(position), "an open episode is indexed under its instrument: position {position}");
        self.open_positions -= 1;
        if holders.is_empty() && self.holders.len() > HOLDERS_KEPT {
            self.holders.remove(&instrument);
        }
    }

    /// A heartbeat was registered or beaten: it lapses at its `lapses_at`.
    pub fn armed(&mut self, owner: UserId, safeguard: &Safeguard) {
        self.lapses.insert((safeguard.lapses_at, owner, safeguard.label.clone()));
    }

    /// A registration ended, unless it was armed again for that very moment.
    pub fn ended(&mut self, owner: UserId, safeguard: &Safeguard, next: Option<Timestamp>) {
        if next != Some(safeguard.lapses_at) {
            self.lapses.remove(&(safeguard.lapses_at, owner, safeguard.label.clone()));
        }
    }

    /// Adds a user.
    pub fn enter(&mut self, user: &User) {
        for order in user.open_orders() {
            self.resting.put(order, false);
        }
        self.enter_others(user);
    }

    /// The same, without its orders, which are listed later together with others.
    pub fn enter_unlisted(&mut self, user: &User, standing: &mut Vec<Standing>) {
        for order in user.open_orders() {
            self.resting.put_unlisted(order, standing);
        }
        self.enter_others(user);
    }

    fn enter_others(&mut self, user: &User) {
        self.rows.add(RowCounts::of(user));
        for prefix in user.granted_prefixes() {
            self.prefix_granted(user.id, *prefix);
        }
        for position in user.open_positions() {
            self.position_opened(position.id, position.instrument);
        }
        for safeguard in user.safeguards() {
            self.armed(user.id, safeguard);
        }
        if user.watched {
            self.watched.insert(user.id);
        }
        self.remembering.extend(user.trading().oldest_request().map(|at| (at, user.id)));
        self.rebates.extend(user.rebates_due_day().map(|day| (day, user.id)));
    }

    /// Removes a user.
    pub fn leave(&mut self, user: &User) {
        self.rows.remove(RowCounts::of(user));
        for prefix in user.granted_prefixes() {
            self.prefixes.remove(prefix);
        }
        for order in user.open_orders() {
            self.resting.remove(order);
        }
        for position in user.open_positions() {
            self.position_closed(position.id, position.instrument);
        }
        for safeguard in user.safeguards() {
            self.ended(user.id, safeguard, None);
        }
        self.watched.remove(&user.id);
        if let Some(at) = user.trading().oldest_request() {
            self.remembering.remove(&(at, user.id));
        }
        if let Some(day) = user.rebates_due_day() {
            self.rebates.remove(&(day, user.id));
        }
    }
}
