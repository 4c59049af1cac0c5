//! The markets that a live venue told of, and what the feed wants of its adapter about each.

use crate::venue::FeedUpdate;
use crate::venue::tape::Origin;
use ahash::{AHashMap, AHashSet};
use engine::market::Market;
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
    /// The venue spoke of it since the start.
    is_told: bool,
}

impl Roster {
    /// Takes an update over; what it means for the adapter.
    pub fn note(&mut self, update: &FeedUpdate) -> Option<Want> {
        if let Some(entry) = subject_of(update).and_then(|condition| self.markets.get_mut(condition)) {
            entry.is_told = true;
        }
        match update {
            FeedUpdate::Listed { listing, state } => {
                self.add(listing, true)?;
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

    /// A market that the journal knows and has not seen resolved: asked about until the venue tells of it, whether it is
    /// still listed there or not. What it means for the adapter.
    pub fn recall(&mut self, market: &Market) -> Option<Want> {
        self.add(&market.listing, false)?;
        let condition = &market.listing.condition;
        self.markets.get_mut(condition)?.end = market.end;
        self.state(condition, market.state)
    }

    /// Somebody here trades this market; named where that is new.
    pub fn stake(&mut self, condition: &str) -> Option<Arc<Subject>> {
        let entry = self.markets.get(condition)?;
        self.stakes.insert(condition.to_owned()).then(|| entry.subject.clone())
    }

    /// The market of a token.
    pub fn by_token(&self, token: &str) -> Option<&Arc<Subject>> {
        Some(&self.markets.get(self.tokens.get(token)?)?.subject)
    }

    /// Markets whose standing must be asked for: those that have ended, those that somebody here trades, and those of
    /// which only the journal tells so far.
    pub fn questions(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Subject>> {
        let asked = move |entry: &&Entry| {
            !entry.is_told || entry.end.is_some_and(|end| end <= now) || self.stakes.contains(&entry.subject.condition)
        };
        self.markets.values().filter(asked).map(|entry| &entry.subject)
    }

    fn add(&mut self, listing: &Listing, is_told: bool) -> Option<()> {
        let origin = origin(listing)?;
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
        entry.or_insert_with(|| Entry { subject: subject(), end: None, wanted: false, is_told }).end = listing.end;
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

/// The live venue of a market, if it is of one.
pub fn origin(listing: &Listing) -> Option<Origin> {
    match listing.venue {
        Venue::Polymarket => Some(Origin::Polymarket),
        Venue::Kalshi => Some(Origin::Kalshi),
        Venue::Synthetic => None,
    }
}

/// Condition of the market whose row said this.
fn subject_of(update: &FeedUpdate) -> Option<&str> {
    match update {
        FeedUpdate::Listed { listing, .. } => Some(&listing.condition),
        FeedUpdate::StateChanged { condition, .. }
        | FeedUpdate::EndChanged { condition, .. }
        | FeedUpdate::Figures { condition, .. } => Some(condition),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::TickSize;
    use engine::market::terms::Category;

    fn market(venue: Venue, state: MarketState) -> Market {
        let listing = Listing {
            venue,
            condition: "0x1".into(),
            tokens: ["11".into(), "12".into()],
            outcomes: ["Yes".into(), "No".into()],
            slug: "s".into(),
            question: "q".into(),
            description: None,
            image: None,
            label: None,
            category: Category::Other,
            tags: Vec::new(),
            event: None,
            tick: TickSize(100),
            min_order_size: None,
            neg_risk: false,
            start: None,
            end: Some(Timestamp(1_000)),
            updown: None,
            sports: false,
            venue_market_id: "1".into(),
        };
        Market::listed(listing, state, Timestamp(1))
    }

    #[test]
    fn a_recalled_market_is_wanted_as_it_stood_and_asked_about_until_it_is_told_of() {
        use MarketState::{Active, Closed, Halted, Upcoming};
        let asked = |roster: &Roster, now: u64| roster.questions(Timestamp(now)).count();
        let cases = [
            // venue, state in the journal, its books are wanted
            (Venue::Polymarket, Active, true),
            (Venue::Kalshi, Halted, true),
            (Venue::Polymarket, Upcoming, false),
            (Venue::Kalshi, Closed, false),
        ];
        for (venue, state, wanted) in cases {
            let mut roster = Roster::default();
            let want = roster.recall(&market(venue, state));
            assert_eq!(matches!(want, Some(Want::Books(_))), wanted, "{venue:?} {state:?}: {want:?}");
            assert_eq!(asked(&roster, 0), 1, "{venue:?} {state:?}");
            let figures = FeedUpdate::Figures { condition: "0x1".into(), figures: Default::default() };
            assert!(roster.note(&figures).is_none());
            assert_eq!((asked(&roster, 999), asked(&roster, 1_000)), (0, 1), "{venue:?} {state:?}: its end");
            let named = [(); 2].map(|()| roster.stake("0x1").is_some());
            assert_eq!((asked(&roster, 0), named), (1, [true, false]), "{venue:?} {state:?}: a stake, named once");
            assert!(roster.by_token("12").is_some());
        }
        let mut roster = Roster::default();
        assert!(roster.recall(&market(Venue::Synthetic, Active)).is_none() && asked(&roster, 9_999) == 0);
        println!("recalled markets: {} cases", cases.len() + 1);
    }
}
