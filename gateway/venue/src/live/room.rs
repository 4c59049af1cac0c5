//! Which markets are followed where there is room for so many only: those with stakes before new up-or-down windows
//! before all others, and among those the more traded ones.

use ahash::AHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a market is followed for. A later one has precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing is traded on it any more; it would only tell its result, which is asked for besides.
    Over,
    #[default]
    Other,
    /// An up-or-down window: open for minutes, so it cannot wait.
    Window,
    /// Somebody here has a position or an order.
    Staked,
}

/// How much a market matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub class: Class,
    /// Of the last day, in 10⁻⁶ dollar; 0 where the venue has not told it.
    pub volume: u64,
}

/// Places of two markets are not changed for less: volumes move all day, and a book that is left is stale.
const VOLUME_TIMES_MIN: u64 = 2;
const VOLUME_MORE_MIN: u64 = 1_000_000_000;

impl Rank {
    /// Whether a market of this rank takes the place of one of that.
    fn displaces(self, other: Rank) -> bool {
        let much_more = self.volume / VOLUME_TIMES_MIN > other.volume.saturating_add(VOLUME_MORE_MIN);
        self.class > other.class || self.class == other.class && much_more
    }
}

/// What changes for a market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// It is followed from now on.
    In(Arc<str>),
    /// And this one no more.
    Out(Arc<str>),
}

/// A market in its order: the last one matters most, of equal ones the one that came first.
type Place = (Rank, Reverse<u64>, Arc<str>);

/// The markets of one venue whose books are wanted.
pub struct Room {
    max: usize,
    within: BTreeSet<Place>,
    waiting: BTreeSet<Place>,
    /// By condition; whether it is within.
    known: AHashMap<Arc<str>, (Rank, Reverse<u64>, bool)>,
    came: u64,
    said_full: bool,
}

impl Room {
    /// For so many markets.
    pub fn new(max: usize) -> Room {
        let (within, waiting) = (BTreeSet::new(), BTreeSet::new());
        Room { max, within, waiting, known: AHashMap::new(), came: 0, said_full: false }
    }

    /// Whether this market is followed.
    pub fn follows(&self, condition: &str) -> bool {
        self.known.get(condition).is_some_and(|(.., within)| *within)
    }

    /// Its books are wanted, or matter differently from now on.
    pub fn put(&mut self, condition: &str, rank: Rank, moves: &mut Vec<Move>) {
        let (name, place) = match self.known.get_key_value(condition) {
            Some((_, (before, ..))) if *before == rank => return,
            Some((name, place)) => (name.clone(), *place),
            None => {
                self.came += 1;
                (condition.into(), (rank, Reverse(self.came), false))
            }
        };
        let (before, came, within) = place;
        let side = if within { &mut self.within } else { &mut self.waiting };
        side.remove(&(before, came, name.clone()));
        side.insert((rank, came, name.clone()));
        self.known.insert(name, (rank, came, within));
        self.settle(moves);
    }

    /// Its books are not wanted any more.
    pub fn take(&mut self, condition: &str, moves: &mut Vec<Move>) {
        let Some((name, (rank, came, within))) = self.known.remove_entry(condition) else { return };
        let side = if within { &mut self.within } else { &mut self.waiting };
        side.remove(&(rank, came, name.clone()));
        if within {
            moves.push(Move::Out(name));
            self.settle(moves);
        }
    }

    /// Lets in whoever matters most, as long as there is room or somebody matters less.
    fn settle(&mut self, moves: &mut Vec<Move>) {
        while let Some((best, ..)) = self.waiting.last().cloned() {
            if self.within.len() >= self.max {
                if !std::mem::replace(&mut self.said_full, true) {
                    tracing::warn!(markets = self.max, "no room for the books of more markets");
                }
                if !self.within.first().is_some_and(|(weakest, ..)| best.displaces(*weakest)) {
                    return;
                }
                let Some(weakest) = self.within.pop_first() else { return };
                self.mark(&weakest, false);
                moves.push(Move::Out(weakest.2.clone()));
                self.waiting.insert(weakest);
            }
            let Some(best) = self.waiting.pop_last() else { return };
            self.mark(&best, true);
            moves.push(Move::In(best.2.clone()));
            self.within.insert(best);
        }
    }

    fn mark(&mut self, place: &Place, within: bool) {
        if let Some(known) = self.known.get_mut(&place.2) {
            known.2 = within;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{Other, Over, Staked, Window};

    #[test]
    fn who_matters_more_takes_the_place_of_who_matters_less() {
        enum Step {
            Put(&'static str, Class, u64),
            Take(&'static str),
        }
        use Step::{Put, Take};
        let rows = [
            // two places
            (Put("a", Other, 0), "+a"),
            (Put("b", Other, 5_000), "+b"),
            (Put("c", Other, 0), ""),
            (Put("c", Other, 0), ""),
            (Put("d", Other, 900), ""),
            // More than twice, and by a thousand dollars.
            (Put("d", Other, 2_001), "-a +d"),
            (Put("a", Other, 4_000), ""),
            (Put("w", Window, 0), "-d +w"),
            (Put("v", Window, 0), "-b +v"),
            (Put("s", Staked, 0), "-v +s"),
            (Put("c", Staked, 0), "-w +c"),
            (Put("s", Over, 0), "-s +w"),
            (Take("c"), "-c +v"),
            // What waits and is not wanted is passed over.
            (Take("b"), ""),
            (Take("w"), "-w +a"),
            (Take("v"), "-v +d"),
            (Take("nobody"), ""),
            (Take("d"), "-d +s"),
            (Take("s"), "-s"),
            (Take("a"), "-a"),
            (Put("b", Other, 0), "+b"),
        ];
        let mut room = Room::new(2);
        let count = rows.len();
        for (number, (step, expected)) in rows.into_iter().enumerate() {
            let mut moves = Vec::new();
            match step {
                Put(market, class, dollars) => {
                    room.put(market, Rank { class, volume: dollars * 1_000_000 }, &mut moves);
                }
                Take(market) => room.take(market, &mut moves),
            }
            let told: Vec<String> = moves
                .iter()
                .map(|moved| match moved {
                    Move::In(market) => format!("+{market}"),
                    Move::Out(market) => format!("-{market}"),
                })
                .collect();
            assert_eq!(told.join(" "), expected, "row {number}");
            assert!(room.within.len() <= 2 && room.known.len() == room.within.len() + room.waiting.len());
        }
        assert!(room.follows("b") && !room.follows("a"));
        println!("room: {count} cases");
    }
}
