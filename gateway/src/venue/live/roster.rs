//! The markets that a live venue told of, and what the feed wants of its adapter about each.

use crate::venue::FeedUpdate;
use crate::venue::tape::Origin;
use ahash::{AHashMap, AHashSet};
use engine::market::terms::{Listing, MarketState, Venue};
use engine::time::Timestamp;
use std::sync::Arc;

/// What an adapter is asked for.
#[derive(Clone, Debug)]
pub enum Want {
    /// The books of this market, from now on.
    Books(Arc<Subject>),
    /// No more of them.
    Leave(Arc<Subject>),
    /// The whole books of this market anew: what was folded cannot be right.
    Resync(Arc<Subject>),
    /// How these markets stand: they have ended, or somebody here has a stake in them.
    Standing(Vec<Arc<Subject>>),
}

/// A market as its adapter knows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Subject {
    pub origin: Origin,
    /// The venue's own id: Gamma id, Kalshi ticker.
    pub id: String,
    pub condition: String,
    pub tokens: [String; 2],
}

/// All markets of all live venues.
#[derive(Default)]
pub struct Roster {
    markets: AHashMap<String, Entry>,
    /// Condition by token.
    tokens: AHashMap<String, String>,
    /// Conditions that somebody here trades.
    stakes: AHashSet<String>,
}

struct Entry {
    subject: Arc<Subject>,
    end: Option<Timestamp>,
    wanted: bool,
}

impl Roster {
    /// Takes an update over; what it means for the adapter.
    pub fn note(&mut self, update: &FeedUpdate) -> Option<Want> {
        match update {
            FeedUpdate::Listed { listing, state } => {
                self.add(listing)?;
                self.state(&listing.condition, *state)
            }
            FeedUpdate::StateChanged { condition, state } => self.state(condition, *state),
            FeedUpdate::EndChanged { condition, end } => {
                self.markets.get_mut(condition)?.end = *end;
                None
            }
            FeedUpdate::Resolved { condition, .. } => {
                let entry = self.markets.remove(condition)?;
                self.stakes.remove(condition);
                entry.subject.tokens.iter().for_each(|token| drop(self.tokens.remove(token)));
                entry.wanted.then_some(Want::Leave(entry.subject))
            }
            _ => None,
        }
    }

    /// A market that the journal knows and has not seen resolved: asked about, whether the venue still lists it or not.
    pub fn recall(&mut self, listing: &Listing) {
        if self.add(listing).is_some() {
            self.stakes.insert(listing.condition.clone());
        }
    }

    /// Somebody here trades this market.
    pub fn stake(&mut self, condition: &str) {
        if self.markets.contains_key(condition) {
            self.stakes.insert(condition.to_owned());
        }
    }

    /// The market of a token.
    pub fn by_token(&self, token: &str) -> Option<&Arc<Subject>> {
        Some(&self.markets.get(self.tokens.get(token)?)?.subject)
    }

    /// Markets whose standing must be asked for: those that have ended, and those that somebody here trades.
    pub fn questions(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Subject>> {
        let asked = move |entry: &&Entry| {
            entry.end.is_some_and(|end| end <= now) || self.stakes.contains(&entry.subject.condition)
        };
        self.markets.values().filter(asked).map(|entry| &entry.subject)
    }

    fn add(&mut self, listing: &Listing) -> Option<()> {
        let origin = match listing.venue {
            Venue::Polymarket => Origin::Polymarket,
            Venue::Kalshi => Origin::Kalshi,
            Venue::Synthetic => return None,
        };
        let subject = || {
            Arc::new(Subject {
                origin,
                id: listing.venue_market_id.clone(),
                condition: listing.condition.clone(),
                tokens: listing.tokens.clone(),
            })
        };
        for token in &listing.tokens {
            self.tokens.insert(token.clone(), listing.condition.clone());
        }
        let entry = self.markets.entry(listing.condition.clone());
        entry.or_insert_with(|| Entry { subject: subject(), end: None, wanted: false }).end = listing.end;
        Some(())
    }

    /// Books are wanted while trading is possible or may begin again; a closed market is still heard, for its result.
    fn state(&mut self, condition: &str, state: MarketState) -> Option<Want> {
        let entry = self.markets.get_mut(condition)?;
        let wanted = match state {
            MarketState::Active | MarketState::Halted => true,
            MarketState::Upcoming | MarketState::Resolved => false,
            MarketState::Closed => entry.wanted,
        };
        let before = std::mem::replace(&mut entry.wanted, wanted);
        match (before, wanted) {
            (false, true) => Some(Want::Books(entry.subject.clone())),
            (true, false) => Some(Want::Leave(entry.subject.clone())),
            _ => None,
        }
    }
}
