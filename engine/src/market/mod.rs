//! Markets: the journaled state of every market ever listed. These records belong to owner 0.
//!
//! The feed is the only writer. The `decide` half compares a message of the venue with the state and returns what is
//! new, often nothing; the feed logs these facts and applies them. The read sides ([`catalog::Catalog`], the books) see
//! a fact after its release ([`publish`](crate::book::publish)). A resolved market never changes again; the first
//! resolution counts (engine/docs/execution.md §12). Not here: figures such as volumes (never journaled), ladders,
//! positions.

pub mod catalog;
pub mod mutation;
pub mod spot;
pub mod terms;

#[cfg(test)]
mod tests;

use crate::amount::TickSize;
use crate::bytes::{Bytes, CodecError, leaf, put_list, take_list};
use crate::fact;
use crate::id::MarketId;
use crate::rehearsal::DeclaredAddress;
use crate::time::{Timestamp, UtcDay};
use ahash::AHashMap;
use mutation::MarketMutation;
use std::collections::{BTreeMap, BTreeSet};
use terms::{FeeSchedule, Listing, MarketState, Resolution};
use wincode::{SchemaRead, SchemaWrite};

/// A market.
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct Market {
    /// As first listed; tick and end may have changed since.
    pub listing: Listing,
    pub listed_at: Timestamp,
    pub tick: TickSize,
    pub end: Option<Timestamp>,
    pub state: MarketState,
    /// Venue time has passed the end date.
    pub ended: bool,
    pub resolution: Option<(Resolution, Timestamp)>,
    pub settled_at: Option<Timestamp>,
}

leaf! { Market, FeeSchedule }

impl Market {
    /// A new market.
    pub fn listed(listing: Listing, state: MarketState, at: Timestamp) -> Market {
        let (tick, end) = (listing.tick, listing.end);
        Market { listing, listed_at: at, tick, end, state, ended: false, resolution: None, settled_at: None }
    }
}

/// All markets, the position reached in each tape, from when on history is kept, and declared addresses.
#[derive(Clone, Debug, Default)]
pub struct Markets {
    markets: Vec<Market>,
    tapes: BTreeMap<[u8; 32], Timestamp>,
    history_from: UtcDay,
    /// Of markets that have ever stated one; absent: the table counts again.
    fee_schedules: BTreeMap<MarketId, Option<FeeSchedule>>,
    addresses: BTreeMap<[u8; 20], DeclaredAddress>,
    // Derived:
    conditions: AHashMap<String, MarketId>,
    /// Unresolved markets with an end date in the future.
    ends: BTreeSet<(Timestamp, MarketId)>,
    unsettled: BTreeSet<MarketId>,
}

impl Markets {
    pub fn new() -> Markets {
        Markets::default()
    }

    /// All markets, in the order of their listing.
    pub fn iter(&self) -> impl Iterator<Item = &Market> {
        self.markets.iter()
    }

    /// The market with that id.
    pub fn market(&self, market: MarketId) -> Option<&Market> {
        self.markets.get(market.0 as usize)
    }

    /// The market with that condition id.
    pub fn by_condition(&self, condition: &str) -> Option<MarketId> {
        self.conditions.get(condition).copied()
    }

    /// Count of markets ever listed.
    pub fn len(&self) -> usize {
        self.markets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.markets.is_empty()
    }

    /// Resolved markets without a record of their settlement: boot settles them again.
    pub fn unsettled(&self) -> impl Iterator<Item = MarketId> + '_ {
        self.unsettled.iter().copied()
    }

    /// Markets that may still change: the venue is queried for them after a pause.
    pub fn unresolved(&self) -> impl Iterator<Item = &Market> {
        self.markets.iter().filter(|market| market.resolution.is_none())
    }

    /// The position reached in this tape (gateway/docs/live-venues.md §7).
    pub fn tape_reached(&self, tape: &[u8; 32]) -> Option<Timestamp> {
        self.tapes.get(tape).copied()
    }

    /// The first day that is kept of what has left memory: what ended before it is not shown. Day 0: everything is kept.
    pub fn history_from(&self) -> UtcDay {
        self.history_from
    }

    /// The fees that a market states, if they can be used.
    pub fn fee_schedule(&self, market: MarketId) -> Option<FeeSchedule> {
        *self.fee_schedules.get(&market)?
    }

    /// Whether a market has ever stated its fees.
    pub fn has_fee_schedules(&self) -> bool {
        !self.fee_schedules.is_empty()
    }

    /// What administrators declared about addresses, in the order of these.
    pub fn addresses(&self) -> impl Iterator<Item = (&[u8; 20], &DeclaredAddress)> {
        self.addresses.iter()
    }

    /// Whether there is anything that came with snapshot format 6.
    pub(crate) fn needs_newest_format(&self) -> bool {
        self.history_from != UtcDay(0) || self.has_fee_schedules() || !self.addresses.is_empty()
    }
}

/// `decide`: facts for what is new in a message of the venue. Nothing here changes state.
impl Markets {
    /// A market is named. An unknown market is listed. Of a known market state, tick and end may have changed; its
    /// other terms stay as first listed. `at` is server time; `venue_now` decides whether the end has passed.
    pub fn list(
        &self,
        listing: &Listing,
        state: MarketState,
        venue_now: Timestamp,
        at: Timestamp,
    ) -> Vec<MarketMutation> {
        if let Some(market) = self.by_condition(&listing.condition) {
            let mut facts = self.tick(market, listing.tick, at);
            facts.extend(self.end(market, listing.end, venue_now, at));
            // A moved end may have changed `ended` already: one fact covers both.
            facts.retain(|fact| !matches!(fact, MarketMutation::MarketStateChanged(_)));
            let ended = has_ended(listing.end, venue_now);
            facts.extend(self.state_and_end(market, state, ended, at));
            return facts;
        }
        let market = MarketId(u32::try_from(self.markets.len()).expect("the count of markets fits in a u32"));
        let mut facts = vec![MarketMutation::MarketListed(fact::MarketListed {
            market,
            listing: Box::new(listing.clone()),
            state,
            at,
        })];
        if has_ended(listing.end, venue_now) {
            facts.push(MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, state, ended: true, at }));
        }
        facts
    }

    /// The venue reports the state of a market. [`MarketState::Resolved`] is ignored here: see [`Markets::resolve`].
    pub fn state(&self, market: MarketId, state: MarketState, at: Timestamp) -> Option<MarketMutation> {
        self.state_and_end(market, state, self.market(market)?.ended, at)
    }

    /// The venue reports a price grid.
    pub fn tick(&self, market: MarketId, tick: TickSize, at: Timestamp) -> Vec<MarketMutation> {
        let changed = self.open(market).is_some_and(|known| known.tick != tick);
        changed.then_some(MarketMutation::TickChanged(fact::TickChanged { market, tick, at })).into_iter().collect()
    }

    /// The venue reports an end date: it may move from one side of `venue_now` to the other.
    pub fn end(
        &self,
        market: MarketId,
        end: Option<Timestamp>,
        venue_now: Timestamp,
        at: Timestamp,
    ) -> Vec<MarketMutation> {
        let Some(known) = self.open(market).filter(|known| known.end != end) else { return Vec::new() };
        let mut facts = vec![MarketMutation::EndChanged(fact::EndChanged { market, end, at })];
        facts.extend(self.state_and_end(market, known.state, has_ended(end, venue_now), at));
        facts
    }

    /// The venue reports the fees of a market; `None`: those that it states cannot be used.
    ///
    /// # Panics
    /// When a number is out of its bounds.
    pub fn fees(&self, market: MarketId, schedule: Option<FeeSchedule>, at: Timestamp) -> Option<MarketMutation> {
        assert!(schedule.is_none_or(|schedule| schedule.is_valid()), "a schedule within its bounds: {schedule:?}");
        self.open(market)?;
        let changed = self.fee_schedule(market) != schedule;
        changed.then_some(MarketMutation::FeeScheduleChanged(fact::FeeScheduleChanged { market, schedule, at }))
    }

    /// Markets whose end date has passed by `venue_now` without a fact that says so.
    pub fn end_passed(&self, venue_now: Timestamp, at: Timestamp) -> Vec<MarketMutation> {
        let passed = self.ends.range(..=(venue_now, MarketId(u32::MAX)));
        let fact = |(_, market): &(Timestamp, MarketId)| {
            self.state_and_end(*market, self.markets[market.0 as usize].state, true, at)
        };
        passed.filter_map(fact).collect()
    }

    /// The next end date: until then [`Markets::end_passed`] returns nothing.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// The venue reports the result of a market. The first resolution counts.
    pub fn resolve(&self, market: MarketId, resolution: Resolution, at: Timestamp) -> Option<MarketMutation> {
        self.open(market).map(|_| MarketMutation::MarketResolved(fact::MarketResolved { market, resolution, at }))
    }

    /// Every shard has paid out.
    pub fn settle(&self, market: MarketId, at: Timestamp) -> Option<MarketMutation> {
        self.unsettled.contains(&market).then_some(MarketMutation::MarketSettled(fact::MarketSettled { market, at }))
    }

    /// A tape was applied up to `reached`, which never decreases.
    pub fn tape(&self, tape: [u8; 32], reached: Timestamp) -> Option<MarketMutation> {
        let further = self.tape_reached(&tape).is_none_or(|before| before < reached);
        further.then_some(MarketMutation::TapeReached(fact::TapeReached { tape, reached }))
    }

    /// The market, if it may change: known and not resolved.
    fn open(&self, market: MarketId) -> Option<&Market> {
        self.market(market).filter(|market| market.resolution.is_none())
    }

    fn state_and_end(
        &self,
        market: MarketId,
        state: MarketState,
        ended: bool,
        at: Timestamp,
    ) -> Option<MarketMutation> {
        let known = self.open(market)?;
        // A payout needs a resolution: a market that is reported resolved without one is closed.
        let state = if state == MarketState::Resolved { MarketState::Closed } else { state };
        let changed = (known.state, known.ended) != (state, ended);
        changed.then_some(MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, state, ended, at }))
    }
}

fn has_ended(end: Option<Timestamp>, venue_now: Timestamp) -> bool {
    end.is_some_and(|end| end <= venue_now)
}

/// `apply`: the only change of state. Cannot fail.
impl Markets {
    /// Applies one fact.
    ///
    /// # Panics
    /// When the fact does not fit the state: the log was read in another order than it was written.
    pub fn apply(&mut self, fact: &MarketMutation) {
        match fact {
            MarketMutation::MarketListed(fact::MarketListed { market, listing, state, at }) => {
                self.add(*market, listing, *state, *at)
            }
            MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, state, ended, .. }) => {
                self.change(*market, |market| (market.state, market.ended) = (*state, *ended));
            }
            MarketMutation::TickChanged(fact::TickChanged { market, tick, .. }) => {
                self.change(*market, |market| market.tick = *tick)
            }
            MarketMutation::EndChanged(fact::EndChanged { market, end, .. }) => {
                self.change(*market, |market| market.end = *end)
            }
            MarketMutation::MarketResolved(fact::MarketResolved { market, resolution, at }) => {
                self.change(*market, |market| {
                    market.resolution = Some((*resolution, *at));
                    market.state = MarketState::Resolved;
                })
            }
            MarketMutation::MarketSettled(fact::MarketSettled { market, at }) => {
                self.change(*market, |market| market.settled_at = Some(*at));
            }
            MarketMutation::TapeReached(fact::TapeReached { tape, reached }) => {
                self.tapes.insert(*tape, *reached);
            }
            // A note for readers of the log.
            MarketMutation::Restored(_) => {}
            MarketMutation::ClockSetBack(fact::ClockSetBack { at, .. }) => self.set_back(*at),
            MarketMutation::HistoryCut(fact::HistoryCut { day, .. }) => {
                self.history_from = self.history_from.max(UtcDay(*day));
            }
            MarketMutation::FeeScheduleChanged(fact::FeeScheduleChanged { market, schedule, .. }) => {
                assert!((market.0 as usize) < self.markets.len(), "a fact about a market follows its listing");
                self.fee_schedules.insert(*market, *schedule);
            }
            MarketMutation::AddressDeclared(fact::AddressDeclared { address, declared, .. }) => {
                self.addresses.insert(*address, *declared);
            }
        }
    }

    /// Limits all times to at most `at`. An unresolved market whose end is later than `at` has not ended; a payout is
    /// never reverted. Positions of tapes are times of the recordings and stay.
    fn set_back(&mut self, at: Timestamp) {
        for id in 0..self.markets.len() as u32 {
            self.change(MarketId(id), |market| {
                market.listed_at = market.listed_at.min(at);
                if let Some((_, resolved_at)) = &mut market.resolution {
                    *resolved_at = (*resolved_at).min(at);
                } else if market.end.is_some_and(|end| end > at) {
                    market.ended = false;
                }
                market.settled_at = market.settled_at.map(|settled_at| settled_at.min(at));
            });
        }
    }

    fn add(&mut self, id: MarketId, listing: &Listing, state: MarketState, at: Timestamp) {
        assert!(id.0 as usize == self.markets.len(), "market ids are dense: {} of {}", id.0, self.markets.len());
        self.markets.push(Market::listed(listing.clone(), state, at));
        self.index(id);
    }

    fn change(&mut self, id: MarketId, change: impl FnOnce(&mut Market)) {
        let market = self.markets.get_mut(id.0 as usize).expect("a fact about a market follows its listing");
        if let Some(end) = market.end {
            self.ends.remove(&(end, id));
        }
        change(market);
        self.index(id);
    }

    /// Updates the derived fields of one market.
    fn index(&mut self, id: MarketId) {
        let market = &self.markets[id.0 as usize];
        if !self.conditions.contains_key(&market.listing.condition) {
            self.conditions.insert(market.listing.condition.clone(), id);
        }
        if let Some(end) = market.end.filter(|_| !market.ended && market.resolution.is_none()) {
            self.ends.insert((end, id));
        }
        if market.resolution.is_some() && market.settled_at.is_none() {
            self.unsettled.insert(id);
        } else {
            self.unsettled.remove(&id);
        }
    }
}

/// The newest version of a market state.
pub(crate) const STATE_VERSION: u16 = 2;
/// Starts a market state with an explicit version. Version 1 starts with the count of markets, which has 32 bits.
const NAMES_VERSION: u64 = u64::MAX;

/// Appends the prefix of the newest version, which precedes the bytes of [`Markets::encode`].
pub(crate) fn put_version(out: &mut Vec<u8>) {
    NAMES_VERSION.put(out);
    out.extend_from_slice(&STATE_VERSION.to_le_bytes());
}

/// The version of a market state, and the remaining bytes.
///
/// # Errors
/// [`CodecError::Version`] when this build cannot read it.
pub(crate) fn take_version(bytes: &[u8]) -> Result<(u16, &[u8]), CodecError> {
    let Some(rest) = bytes.strip_prefix(&NAMES_VERSION.to_le_bytes()) else { return Ok((1, bytes)) };
    let (version, rest) = rest.split_first_chunk().ok_or(CodecError::Length)?;
    match u16::from_le_bytes(*version) {
        STATE_VERSION => Ok((STATE_VERSION, rest)),
        found => Err(CodecError::Version { found, newest: STATE_VERSION }),
    }
}

/// Snapshot bytes: equal states have equal bytes, with any history.
impl Markets {
    /// Appends all markets, tapes, the first day of the history, the fees that markets state and the declared addresses to
    /// `out`: these bytes are in the digest. The last three take no byte unless one of them, or one after it, is there.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_list(self.markets.len(), self.markets.iter(), out);
        (self.tapes.len() as u64).put(out);
        for (tape, reached) in &self.tapes {
            tape.put(out);
            reached.put(out);
        }
        if self.needs_newest_format() {
            self.history_from.put(out);
        }
        if self.has_fee_schedules() || !self.addresses.is_empty() {
            (self.fee_schedules.len() as u64).put(out);
            for (market, schedule) in &self.fee_schedules {
                market.put(out);
                schedule.put(out);
            }
        }
        if !self.addresses.is_empty() {
            (self.addresses.len() as u64).put(out);
            for (address, declared) in &self.addresses {
                address.put(out);
                declared.put(out);
            }
        }
    }

    /// Decodes what [`Markets::encode`] wrote. Allocations are bounded by the length of the bytes.
    ///
    /// # Errors
    /// [`CodecError`] for other bytes.
    pub fn decode(mut bytes: &[u8]) -> Result<Markets, CodecError> {
        let mut markets = Markets::default();
        take_list(&mut bytes, |market| markets.markets.push(market))?;
        for _ in 0..u64::take(&mut bytes)? {
            let (tape, reached) = (Bytes::take(&mut bytes)?, Bytes::take(&mut bytes)?);
            markets.tapes.insert(tape, reached);
        }
        if !bytes.is_empty() {
            markets.history_from = Bytes::take(&mut bytes)?;
            if !bytes.is_empty() {
                markets.take_fee_schedules(&mut bytes)?;
                if !bytes.is_empty() {
                    markets.take_addresses(&mut bytes)?;
                } else if !markets.has_fee_schedules() {
                    return Err(CodecError::Rest);
                }
            } else if markets.history_from == UtcDay(0) {
                return Err(CodecError::Rest);
            }
        }
        (0..markets.markets.len() as u32).for_each(|market| markets.index(MarketId(market)));
        Ok(markets)
    }

    /// Takes the fees: markets that ascend, none if there are addresses.
    fn take_fee_schedules(&mut self, bytes: &mut &[u8]) -> Result<(), CodecError> {
        let count = u64::take(bytes)?;
        for _ in 0..count {
            let (market, schedule): (MarketId, Option<FeeSchedule>) = (Bytes::take(bytes)?, Bytes::take(bytes)?);
            let follows = self.fee_schedules.last_key_value().is_none_or(|(last, _)| *last < market);
            let is_valid = schedule.is_none_or(|schedule| schedule.is_valid());
            if !follows || !is_valid || market.0 as usize >= self.markets.len() {
                return Err(CodecError::Reference);
            }
            self.fee_schedules.insert(market, schedule);
        }
        Ok(())
    }

    /// Takes the addresses to the last byte: at least one, ascending.
    fn take_addresses(&mut self, bytes: &mut &[u8]) -> Result<(), CodecError> {
        for _ in 0..u64::take(bytes)? {
            let (address, declared): ([u8; 20], DeclaredAddress) = (Bytes::take(bytes)?, Bytes::take(bytes)?);
            if self.addresses.last_key_value().is_some_and(|(last, _)| *last >= address) {
                return Err(CodecError::Reference);
            }
            self.addresses.insert(address, declared);
        }
        if self.addresses.is_empty() || !bytes.is_empty() { Err(CodecError::Rest) } else { Ok(()) }
    }
}
