//! Selects the markets to follow when there are more than the limit: markets that users trade come before up-or-down
//! windows, and these before all others; within a class, markets with more volume come first.

use ahash::AHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why a market is followed; later variants have precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Trading has ended. Only its result is missing, and that is requested separately.
    Over,
    #[default]
    Other,
    /// An up-or-down window: open for minutes, so it must not wait.
    Window,
    /// A user has a position or an order in it.
    Staked,
}

/// The precedence of a market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub class: Class,
    /// Volume of the last 24 hours, in 10⁻⁶ dollars; 0 while the venue has not reported it.
    pub volume: u64,
}

/// Smallest difference in volume for which one market replaces another: volumes change all day, and the book of a
/// dropped market is stale.
const VOLUME_TIMES_MIN: u64 = 2;
const VOLUME_MORE_MIN: u64 = 1_000_000_000;

impl Rank {
    /// Whether a market of this rank replaces one of rank `other`.
    fn displaces(self, other: Rank) -> bool {
        let much_more = self.volume / VOLUME_TIMES_MIN > other.volume.saturating_add(VOLUME_MORE_MIN);
        self.class > other.class || self.class == other.class && much_more
    }
}

/// A change of the selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// This market is followed from now on.
    In(Arc<str>),
    /// This market is not followed any more.
    Out(Arc<str>),
}

/// A market in order of precedence: the last one ranks highest; of equal ranks, the one that was added first.
type Ranked = (Rank, Reverse<u64>, Arc<str>);

/// The markets of one venue whose books are wanted: selected ones and waiting ones.
pub struct Room {
    max: usize,
    selected: BTreeSet<Ranked>,
    waiting: BTreeSet<Ranked>,
    /// By condition: rank, order of arrival, and whether it is selected.
    known: AHashMap<Arc<str>, (Rank, Reverse<u64>, bool)>,
    came: u64,
    has_warned: bool,
}

impl Room {
    /// With a limit of `max` followed markets.
    pub fn new(max: usize) -> Room {
        let (selected, waiting) = (BTreeSet::new(), BTreeSet::new());
        Room { max, selected, waiting, known: AHashMap::new(), came: 0, has_warned: false }
    }

    /// Whether this market is followed.
    pub fn follows(&self, condition: &str) -> bool {
        self.known.get(condition).is_some_and(|(.., selected)| *selected)
    }

    /// Adds a market, or changes its rank.
    pub fn put(&mut self, condition: &str, rank: Rank, moves: &mut Vec<Move>) {
        let (name, place) = match self.known.get_key_value(condition) {
            Some((_, (before, ..))) if *before == rank => return,
            Some((name, place)) => (name.clone(), *place),
            None => {
                self.came += 1;
                (condition.into(), (rank, Reverse(self.came), false))
            }
        };
        let (before, came, selected) = place;
        let side = if selected { &mut self.selected } else { &mut self.waiting };
        side.remove(&(before, came, name.clone()));
        side.insert((rank, came, name.clone()));
        self.known.insert(name, (rank, came, selected));
        self.settle(moves);
    }

    /// Removes a market.
    pub fn take(&mut self, condition: &str, moves: &mut Vec<Move>) {
        let Some((name, (rank, came, selected))) = self.known.remove_entry(condition) else { return };
        let side = if selected { &mut self.selected } else { &mut self.waiting };
        side.remove(&(rank, came, name.clone()));
        if selected {
            moves.push(Move::Out(name));
            self.settle(moves);
        }
    }

    /// Selects the highest ranked waiting markets while there is room or a selected one may be replaced.
    fn settle(&mut self, moves: &mut Vec<Move>) {
        while let Some((best, ..)) = self.waiting.last().cloned() {
            if self.selected.len() >= self.max {
                if !std::mem::replace(&mut self.has_warned, true) {
                    tracing::warn!(
                        markets = self.max,
                        "the limit of followed books is reached: lower ranked markets have no book; to follow more, \
                         raise venue.polymarket.tokens_max"
                    );
                }
                if !self.selected.first().is_some_and(|(weakest, ..)| best.displaces(*weakest)) {
                    return;
                }
                let Some(weakest) = self.selected.pop_first() else { return };
                self.mark(&weakest, false);
                moves.push(Move::Out(weakest.2.clone()));
                self.waiting.insert(weakest);
            }
            let Some(best) = self.waiting.pop_last() else { return };
            self.mark(&best, true);
            moves.push(Move::In(best.2.clone()));
            self.selected.insert(best);
        }
    }

    fn mark(&mut self, place: &Ranked, selected: bool) {
        if let Some(known) = self.known.get_mut(&place.2) {
            known.2 = selected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{Other, Over, Staked, Window};

    #[test]
    fn a_higher_ranked_market_replaces_a_lower_ranked_one() {
        enum Step {
            Put(&'static str, Class, u64),
            Take(&'static str),
        }
        use Step::{Put, Take};
        let rows = [
            // room for two markets
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
            // A waiting market that was removed is not selected.
            (Take("b"), ""),
            (Take("w"), "-w +a"),
            (Take("v"), "-v +d"),
            (Take("unknown"), ""),
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
            let changes: Vec<String> = moves
                .iter()
                .map(|moved| match moved {
                    Move::In(market) => format!("+{market}"),
                    Move::Out(market) => format!("-{market}"),
                })
                .collect();
            assert_eq!(changes.join(" "), expected, "row {number}");
            assert!(room.selected.len() <= 2 && room.known.len() == room.selected.len() + room.waiting.len());
        }
        assert!(room.follows("b") && !room.follows("a"));
        println!("room: {count} cases");
    }
}
