//! The markets of live venues, and the requests that the feed makes to the adapters about each.

use super::room::{Class, Move, Rank, Room};
use crate::FeedUpdate;
use crate::tape::Origin;
use ahash::{AHashMap, AHashSet};
use engine::market::Market;
use engine::market::terms::{Listing, MarketState};
use engine::time::Timestamp;
use std::sync::Arc;

/// A request of the feed to an adapter.
#[derive(Clone, Debug)]
pub enum Request {
    /// Follow the books of this market.
    Subscribe(Arc<Subject>),
    /// Stop following them.
    Unsubscribe(Arc<Subject>),
    /// Read the full books of this market again: the folded ones are wrong.
    Resync(Arc<Subject>),
    /// No message about these markets arrived for a long time: read their books, to compare with the folded ones.
    Check(Vec<Arc<Subject>>),
    /// The comparison failed: subscribe this market again. The venue sends nothing for it although its connection is
    /// alive.
    Resubscribe(Arc<Subject>),
    /// Read the state of these markets: they have ended, a user has a stake in them, or only a message announced them.
    Status(Vec<Arc<Subject>>),
}

/// A market in requests to an adapter.
#[derive(Debug, PartialEq, Eq)]
pub struct Subject {
    pub origin: Origin,
    /// The venue's own id.
    pub id: String,
    pub condition: String,
    pub tokens: [String; 2],
}

/// All markets of all live venues.
pub struct Roster {
    markets: AHashMap<String, Entry>,
    /// Condition by token.
    tokens: AHashMap<String, String>,
    /// Conditions of markets that users trade.
    stakes: AHashSet<String>,
    /// The markets to follow, by venue.
    rooms: Vec<Room>,
    moves: Vec<Move>,
}

struct Entry {
    subject: Arc<Subject>,
    end: Option<Timestamp>,
    rank: Rank,
    is_window: bool,
    wanted: bool,
    /// The venue has sent something about it since the start.
    is_confirmed: bool,
}

impl Roster {
    /// With a limit of followed markets for each venue, in the order of their rows.
    pub fn new(markets_max: impl IntoIterator<Item = usize>) -> Roster {
        Roster {
            markets: AHashMap::new(),
            tokens: AHashMap::new(),
            stakes: AHashSet::new(),
            rooms: markets_max.into_iter().map(Room::new).collect(),
            moves: Vec::new(),
        }
    }

    /// Applies an update, and appends the resulting requests.
    pub fn note(&mut self, update: &FeedUpdate, requests: &mut Vec<Request>) {
        if let Some(entry) = subject_of(update).and_then(|condition| self.markets.get_mut(condition)) {
            entry.is_confirmed = true;
        }
        match update {
            FeedUpdate::Listed { listing, state } => {
                self.add(listing, true);
                self.state(&listing.condition, *state, requests);
            }
            FeedUpdate::StateChanged { condition, state } => self.state(condition, *state, requests),
            FeedUpdate::EndChanged { condition, end } => {
                if let Some(entry) = self.markets.get_mut(condition) {
                    entry.end = *end;
                }
            }
            FeedUpdate::Figures { condition, figures } => {
                if let Some((entry, volume)) = self.markets.get_mut(condition).zip(figures.volume_24h) {
                    entry.rank.volume = volume;
                    self.place(condition, requests);
                }
            }
            FeedUpdate::Resolved { condition, .. } => {
                if let Some(entry) = self.markets.get_mut(condition) {
                    entry.wanted = false;
                    self.place(condition, requests);
                    self.forget(condition);
                }
            }
            _ => {}
        }
    }

    /// Adds a market that the journal has as unresolved, and appends the resulting requests. Its state is requested
    /// until the venue sends something about it, listed there or not.
    pub fn recall(&mut self, market: &Market, requests: &mut Vec<Request>) {
        self.add(&market.listing, false);
        let condition = &market.listing.condition;
        if let Some(entry) = self.markets.get_mut(condition) {
            entry.end = market.end;
            // A window that has ended since needs no precedence.
            entry.is_window &= !market.ended;
        }
        self.state(condition, market.state, requests);
    }

    /// A user trades this market. On its first trade the state is requested without waiting for the interval.
    pub fn stake(&mut self, condition: &str, requests: &mut Vec<Request>) {
        let Some(entry) = self.markets.get_mut(condition) else { return };
        entry.rank.class = Class::Staked;
        if self.stakes.insert(condition.to_owned()) {
            requests.push(Request::Status(vec![entry.subject.clone()]));
        }
        self.place(condition, requests);
    }

    /// Whether the books of this token are followed.
    pub fn follows(&self, token: &str) -> bool {
        self.by_token(token).is_some_and(|subject| self.rooms[subject.origin.index()].follows(&subject.condition))
    }

    /// The market of a token.
    pub fn by_token(&self, token: &str) -> Option<&Arc<Subject>> {
        Some(&self.markets.get(self.tokens.get(token)?)?.subject)
    }

    /// Markets whose state must be requested: those that have ended, those that users trade, and those that only the
    /// journal has so far.
    pub fn status_due(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Subject>> {
        let is_due = move |entry: &&Entry| {
            !entry.is_confirmed
                || entry.end.is_some_and(|end| end <= now)
                || self.stakes.contains(&entry.subject.condition)
        };
        self.markets.values().filter(is_due).map(|entry| &entry.subject)
    }

    fn add(&mut self, listing: &Listing, is_confirmed: bool) {
        let Some(origin) = Origin::of(listing.venue) else { return };
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
        let entry = self.markets.entry(listing.condition.clone()).or_insert_with(|| Entry {
            subject: subject(),
            end: None,
            rank: Rank::default(),
            is_window: listing.updown.is_some(),
            wanted: false,
            is_confirmed,
        });
        entry.end = listing.end;
    }

    fn forget(&mut self, condition: &str) {
        self.stakes.remove(condition);
        if let Some(entry) = self.markets.remove(condition) {
            entry.subject.tokens.iter().for_each(|token| drop(self.tokens.remove(token)));
        }
    }

    /// Books are followed while trading is possible or may resume; a closed market stays followed until its result.
    fn state(&mut self, condition: &str, state: MarketState, requests: &mut Vec<Request>) {
        let Some(entry) = self.markets.get_mut(condition) else { return };
        entry.wanted = match state {
            MarketState::Active | MarketState::Halted => true,
            MarketState::Upcoming | MarketState::Resolved => false,
            MarketState::Closed => entry.wanted,
        };
        entry.rank.class = match state {
            _ if self.stakes.contains(condition) => Class::Staked,
            MarketState::Closed => Class::Over,
            _ if entry.is_window => Class::Window,
            _ => Class::Other,
        };
        self.place(condition, requests);
    }

    /// Adds a market to the selection or removes it, and appends the resulting requests for all markets.
    fn place(&mut self, condition: &str, requests: &mut Vec<Request>) {
        let Some(entry) = self.markets.get(condition) else { return };
        let room = &mut self.rooms[entry.subject.origin.index()];
        match entry.wanted {
            true => room.put(condition, entry.rank, &mut self.moves),
            false => room.take(condition, &mut self.moves),
        }
        let subject = |markets: &AHashMap<String, Entry>, of: &str| Some(markets.get(of)?.subject.clone());
        requests.extend(self.moves.drain(..).filter_map(|moved| match moved {
            Move::In(of) => Some(Request::Subscribe(subject(&self.markets, &of)?)),
            Move::Out(of) => Some(Request::Unsubscribe(subject(&self.markets, &of)?)),
        }));
    }
}

/// The condition of a catalogue update.
fn subject_of(update: &FeedUpdate) -> Option<&str> {
    match update {
        FeedUpdate::Listed { listing, .. } => Some(&listing.condition),
        FeedUpdate::StateChanged { condition, .. }
        | FeedUpdate::EndChanged { condition, .. }
        | FeedUpdate::Stated { condition, .. }
        | FeedUpdate::Figures { condition, .. } => Some(condition),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figures;
    use engine::amount::TickSize;
    use engine::market::terms::{Asset, Category, Interval, UpDown, Venue};

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
    fn a_recalled_market_is_followed_and_its_state_requested_until_the_venue_confirms_it() {
        use MarketState::{Active, Closed, Halted, Upcoming};
        let is_due = |roster: &Roster, now: u64| roster.status_due(Timestamp(now)).count();
        let cases = [
            // venue, state in the journal, whether its books are followed
            (Venue::Polymarket, Active, true),
            (Venue::Kalshi, Halted, true),
            (Venue::Polymarket, Upcoming, false),
            (Venue::Kalshi, Closed, false),
        ];
        for (venue, state, wanted) in cases {
            let (mut roster, mut requests) = (Roster::new([1, usize::MAX]), Vec::new());
            roster.recall(&market(venue, state), &mut requests);
            assert_eq!(matches!(requests[..], [Request::Subscribe(_)]), wanted, "{venue:?} {state:?}: {requests:?}");
            assert_eq!(roster.follows("11"), wanted, "{venue:?} {state:?}");
            assert_eq!(is_due(&roster, 0), 1, "{venue:?} {state:?}");
            let figures = FeedUpdate::Figures { condition: "0x1".into(), figures: Default::default() };
            roster.note(&figures, &mut requests);
            assert_eq!(requests.len(), usize::from(wanted), "{requests:?}");
            assert_eq!((is_due(&roster, 999), is_due(&roster, 1_000)), (0, 1), "{venue:?} {state:?}: its end");
            requests.clear();
            (0..2).for_each(|_| roster.stake("0x1", &mut requests));
            assert!(
                matches!(requests[..], [Request::Status(_)]),
                "{venue:?} {state:?}: a stake, requested once: {requests:?}"
            );
            assert_eq!(is_due(&roster, 0), 1, "{venue:?} {state:?}: a stake");
            assert!(roster.by_token("12").is_some());
        }
        let (mut roster, mut requests) = (Roster::new([1, usize::MAX]), Vec::new());
        roster.recall(&market(Venue::Synthetic, Active), &mut requests);
        assert!(requests.is_empty() && is_due(&roster, 9_999) == 0);
        println!("recalled markets: {} cases", cases.len() + 1);
    }

    #[test]
    fn stakes_and_windows_are_followed_first_where_room_is_short() {
        use MarketState::{Active, Closed, Upcoming};
        let named = |name: &str, window: bool| {
            let mut market = market(Venue::Polymarket, Active);
            market.listing.condition = name.into();
            market.listing.tokens = [format!("{name}1"), format!("{name}2")];
            let updown =
                UpDown { asset: Asset::Btc, interval: Interval::FiveMinutes, start: Timestamp(1), end: Timestamp(301) };
            market.listing.updown = window.then_some(updown);
            market
        };
        let listed = |name: &str, window: bool| FeedUpdate::Listed {
            listing: Box::new(named(name, window).listing),
            state: Active,
        };
        let state = |name: &str, state| FeedUpdate::StateChanged { condition: name.into(), state };
        let figures = |name: &str, dollars: u64| FeedUpdate::Figures {
            condition: name.into(),
            figures: Figures { volume_24h: Some(dollars * 1_000_000), ..Figures::default() },
        };
        let resolved = |name: &str| FeedUpdate::Resolved {
            condition: name.into(),
            resolution: engine::market::terms::Resolution::Split,
            venue_ts: Timestamp(1),
        };
        type Step<'a> = Box<dyn Fn(&mut Roster, &mut Vec<Request>) + 'a>;
        let note =
            |update: FeedUpdate| -> Step<'_> { Box::new(move |roster, requests| roster.note(&update, requests)) };
        let recall = |name: &'static str, window: bool, ended: bool| -> Step<'_> {
            Box::new(move |roster, requests| {
                let market = Market { ended, ..named(name, window) };
                roster.recall(&market, requests);
            })
        };
        let stake = |name: &'static str| -> Step<'_> { Box::new(move |roster, requests| roster.stake(name, requests)) };
        let rows = [
            // room for two markets
            (recall("a", false, false), "+a"),
            (recall("old", true, true), "+old"),
            (recall("b", false, false), ""),
            (note(listed("w", true)), "-old +w"),
            (stake("b"), "-a +b"),
            (note(figures("a", 1_000_000)), ""),
            (note(listed("v", true)), ""),
            (note(state("w", Closed)), "-w +v"),
            (note(state("v", Upcoming)), "-v +a"),
            (note(resolved("a")), "-a +old"),
            (note(figures("w", 9_000_000)), ""),
            (note(figures("old", 5_000)), ""),
            (note(resolved("b")), "-b +w"),
            (stake("unknown"), ""),
        ];
        let (mut roster, count) = (Roster::new([2, usize::MAX]), rows.len());
        for (number, (step, expected)) in rows.into_iter().enumerate() {
            let mut requests = Vec::new();
            step(&mut roster, &mut requests);
            requests.retain(|request| !matches!(request, Request::Status(_)));
            let changes = requests.iter().map(|request| match request {
                Request::Subscribe(subject) => format!("+{}", subject.condition),
                Request::Unsubscribe(subject) => format!("-{}", subject.condition),
                other => format!("{other:?}"),
            });
            assert_eq!(changes.collect::<Vec<_>>().join(" "), expected, "row {number}");
        }
        assert!(roster.follows("old2") && roster.follows("w1") && !roster.follows("v1") && !roster.follows("a1"));
        println!("markets where room is short: {count} cases");
    }
}
