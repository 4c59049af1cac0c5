//! The markets that a live venue told of, and what the feed wants of its adapter about each.

use super::room::{Class, Move, Rank, Room};
use crate::FeedUpdate;
use crate::tape::Origin;
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
    /// Nothing was heard of these for long: whether the venue shows the books that were folded.
    Look(Vec<Arc<Subject>>),
    /// It did not: the venue tells nothing of this market any more, though its connection lives.
    Resubscribe(Arc<Subject>),
    /// How these markets stand: they have ended, somebody here has a stake in them, or only a message tells of them.
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
pub struct Roster {
    markets: AHashMap<String, Entry>,
    /// Condition by token.
    tokens: AHashMap<String, String>,
    /// Conditions that somebody here trades.
    stakes: AHashSet<String>,
    /// Which of them are followed. Kalshi's adapter has its own way with those beyond its room: it asks for them.
    polymarket: Room,
    kalshi: Room,
    moves: Vec<Move>,
}

struct Entry {
    subject: Arc<Subject>,
    end: Option<Timestamp>,
    rank: Rank,
    is_window: bool,
    wanted: bool,
    /// The venue spoke of it since the start.
    is_told: bool,
}

impl Roster {
    /// With room for so many markets of Polymarket.
    pub fn new(polymarket_max: usize) -> Roster {
        Roster {
            markets: AHashMap::new(),
            tokens: AHashMap::new(),
            stakes: AHashSet::new(),
            polymarket: Room::new(polymarket_max),
            kalshi: Room::new(usize::MAX),
            moves: Vec::new(),
        }
    }

    /// Takes an update over; what it means for the adapters.
    pub fn note(&mut self, update: &FeedUpdate, wants: &mut Vec<Want>) {
        if let Some(entry) = subject_of(update).and_then(|condition| self.markets.get_mut(condition)) {
            entry.is_told = true;
        }
        match update {
            FeedUpdate::Listed { listing, state } => {
                self.add(listing, true);
                self.state(&listing.condition, *state, wants);
            }
            FeedUpdate::StateChanged { condition, state } => self.state(condition, *state, wants),
            FeedUpdate::EndChanged { condition, end } => {
                if let Some(entry) = self.markets.get_mut(condition) {
                    entry.end = *end;
                }
            }
            FeedUpdate::Figures { condition, figures } => {
                if let Some((entry, volume)) = self.markets.get_mut(condition).zip(figures.volume_24h) {
                    entry.rank.volume = volume;
                    self.place(condition, wants);
                }
            }
            FeedUpdate::Resolved { condition, .. } => {
                if let Some(entry) = self.markets.get_mut(condition) {
                    entry.wanted = false;
                    self.place(condition, wants);
                    self.forget(condition);
                }
            }
            _ => {}
        }
    }

    /// A market that the journal knows and has not seen resolved: asked about until the venue tells of it, whether it is
    /// still listed there or not. What it means for the adapter.
    pub fn recall(&mut self, market: &Market, wants: &mut Vec<Want>) {
        self.add(&market.listing, false);
        let condition = &market.listing.condition;
        if let Some(entry) = self.markets.get_mut(condition) {
            entry.end = market.end;
            // A window that has ended in the meantime need not be hurried after.
            entry.is_window &= !market.ended;
        }
        self.state(condition, market.state, wants);
    }

    /// Somebody here trades this market. Whoever trades it first does not wait for the next round of questions.
    pub fn stake(&mut self, condition: &str, wants: &mut Vec<Want>) {
        let Some(entry) = self.markets.get_mut(condition) else { return };
        entry.rank.class = Class::Staked;
        if self.stakes.insert(condition.to_owned()) {
            wants.push(Want::Standing(vec![entry.subject.clone()]));
        }
        self.place(condition, wants);
    }

    /// Whether the books of this token are followed, as far as the adapter was told.
    pub fn follows(&self, token: &str) -> bool {
        self.by_token(token).is_some_and(|subject| self.room(subject.origin).follows(&subject.condition))
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

    fn add(&mut self, listing: &Listing, is_told: bool) {
        let Some(origin) = origin(listing) else { return };
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
            is_told,
        });
        entry.end = listing.end;
    }

    fn forget(&mut self, condition: &str) {
        self.stakes.remove(condition);
        if let Some(entry) = self.markets.remove(condition) {
            entry.subject.tokens.iter().for_each(|token| drop(self.tokens.remove(token)));
        }
    }

    /// Books are wanted while trading is possible or may begin again; a closed market is still heard, for its result.
    fn state(&mut self, condition: &str, state: MarketState, wants: &mut Vec<Want>) {
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
        self.place(condition, wants);
    }

    /// Gives a market its place, or takes it, and says what that means for it and for others.
    fn place(&mut self, condition: &str, wants: &mut Vec<Want>) {
        let Some(entry) = self.markets.get(condition) else { return };
        let room = match entry.subject.origin {
            Origin::Polymarket => &mut self.polymarket,
            Origin::Kalshi => &mut self.kalshi,
        };
        match entry.wanted {
            true => room.put(condition, entry.rank, &mut self.moves),
            false => room.take(condition, &mut self.moves),
        }
        let subject = |markets: &AHashMap<String, Entry>, of: &str| Some(markets.get(of)?.subject.clone());
        wants.extend(self.moves.drain(..).filter_map(|moved| match moved {
            Move::In(of) => Some(Want::Books(subject(&self.markets, &of)?)),
            Move::Out(of) => Some(Want::Leave(subject(&self.markets, &of)?)),
        }));
    }

    fn room(&self, origin: Origin) -> &Room {
        match origin {
            Origin::Polymarket => &self.polymarket,
            Origin::Kalshi => &self.kalshi,
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
    use engine::market::terms::{Asset, Category, Interval, UpDown};

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
            let (mut roster, mut wants) = (Roster::new(1), Vec::new());
            roster.recall(&market(venue, state), &mut wants);
            assert_eq!(matches!(wants[..], [Want::Books(_)]), wanted, "{venue:?} {state:?}: {wants:?}");
            assert_eq!(roster.follows("11"), wanted, "{venue:?} {state:?}");
            assert_eq!(asked(&roster, 0), 1, "{venue:?} {state:?}");
            let figures = FeedUpdate::Figures { condition: "0x1".into(), figures: Default::default() };
            roster.note(&figures, &mut wants);
            assert_eq!(wants.len(), usize::from(wanted), "{wants:?}");
            assert_eq!((asked(&roster, 999), asked(&roster, 1_000)), (0, 1), "{venue:?} {state:?}: its end");
            wants.clear();
            (0..2).for_each(|_| roster.stake("0x1", &mut wants));
            assert!(matches!(wants[..], [Want::Standing(_)]), "{venue:?} {state:?}: a stake, named once: {wants:?}");
            assert_eq!(asked(&roster, 0), 1, "{venue:?} {state:?}: a stake");
            assert!(roster.by_token("12").is_some());
        }
        let (mut roster, mut wants) = (Roster::new(1), Vec::new());
        roster.recall(&market(Venue::Synthetic, Active), &mut wants);
        assert!(wants.is_empty() && asked(&roster, 9_999) == 0);
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
        type Step<'a> = Box<dyn Fn(&mut Roster, &mut Vec<Want>) + 'a>;
        let note = |update: FeedUpdate| -> Step<'_> { Box::new(move |roster, wants| roster.note(&update, wants)) };
        let recall = |name: &'static str, window: bool, ended: bool| -> Step<'_> {
            Box::new(move |roster, wants| {
                let market = Market { ended, ..named(name, window) };
                roster.recall(&market, wants);
            })
        };
        let stake = |name: &'static str| -> Step<'_> { Box::new(move |roster, wants| roster.stake(name, wants)) };
        let rows = [
            // two markets have room
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
            (stake("nobody"), ""),
        ];
        let (mut roster, count) = (Roster::new(2), rows.len());
        for (number, (step, expected)) in rows.into_iter().enumerate() {
            let mut wants = Vec::new();
            step(&mut roster, &mut wants);
            wants.retain(|want| !matches!(want, Want::Standing(_)));
            let told = wants.iter().map(|want| match want {
                Want::Books(subject) => format!("+{}", subject.condition),
                Want::Leave(subject) => format!("-{}", subject.condition),
                other => format!("{other:?}"),
            });
            assert_eq!(told.collect::<Vec<_>>().join(" "), expected, "row {number}");
        }
        assert!(roster.follows("old2") && roster.follows("w1") && !roster.follows("v1") && !roster.follows("a1"));
        println!("markets where room is short: {count} cases");
    }
}
