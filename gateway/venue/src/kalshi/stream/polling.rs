//! Books that no socket brings, asked for one by one (upstream.md §4.2): all of them where there are no credentials,
//! those of a socket that has been down for long, and those beyond the most that are subscribed.
//!
//! The venue's budget makes a round of many markets long, so markets that somebody here trades come first: three of
//! four calls are theirs. Each answer is a proof of life of its market alone
//! ([`SINGLE_ANSWERS`](engine::book::SINGLE_ANSWERS)), so the age of a quote is that of its own last answer.

use super::books::Line;
use super::encoded;
use crate::live::Fetch;
use ahash::AHashMap;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Calls on the way at a time, so that one slow answer does not hold the others.
pub const WORKERS: usize = 4;
/// The same book is asked for this often at most.
const EVERY_MIN: Duration = Duration::from_secs(1);
/// How soon an idle worker looks again.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// When nothing was due, all of the markets are gone through again so much later: there may be thousands.
const QUIET: Duration = Duration::from_millis(500);
/// Of so many calls in a row one goes to markets that nobody here trades.
const TURNS: u32 = 4;

/// The wanted markets and whose turn it is.
pub struct Polls {
    /// How long a socket must have been down.
    down_after: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    markets: AHashMap<String, Market>,
    /// Everybody, in order of turns.
    round: VecDeque<String>,
    /// Those that are traded here, or whose book cannot be right.
    first: VecDeque<String>,
    turn: u32,
    /// Nothing was due at the last look; until then, or until a market comes forward, nothing is looked for.
    quiet_until: Option<Instant>,
}

struct Market {
    /// The socket that brings its book.
    line: Option<Arc<Line>>,
    /// Beyond the most that are subscribed: asked for only while it is traded here.
    beyond: bool,
    traded_until: Option<Instant>,
    in_first: bool,
    asked: Option<Instant>,
    on_the_way: bool,
}

impl Polls {
    pub fn new(down_after: Duration) -> Polls {
        Polls { down_after, state: Mutex::default() }
    }

    /// This market is wanted, and comes by this socket.
    pub fn add(&self, ticker: &str, line: Option<Arc<Line>>, beyond: bool) {
        let mut state = self.state.lock();
        match state.markets.get_mut(ticker) {
            Some(market) => (market.line, market.beyond) = (line, beyond),
            None => {
                let market =
                    Market { line, beyond, traded_until: None, in_first: false, asked: None, on_the_way: false };
                state.markets.insert(ticker.to_owned(), market);
                state.round.push_back(ticker.to_owned());
                state.quiet_until = None;
            }
        }
    }

    /// No more of it.
    pub fn remove(&self, ticker: &str) {
        // The queues lose it at its next turn.
        self.state.lock().markets.remove(ticker);
    }

    /// It is traded here, for so long at least.
    pub fn traded(&self, ticker: &str, lasts: Duration) {
        self.state.lock().first(ticker, Some(lasts), false);
    }

    /// Its book cannot be right.
    pub fn wrong(&self, ticker: &str) {
        self.state.lock().first(ticker, None, true);
    }

    /// Those of the wanted markets that are not among these.
    pub fn missing_in(&self, listed: &ahash::AHashSet<String>) -> Vec<String> {
        self.state.lock().markets.keys().filter(|ticker| !listed.contains(*ticker)).cloned().collect()
    }

    /// Asks for one book after the other.
    pub async fn work(self: Arc<Polls>, fetch: Fetch) {
        loop {
            let Some(ticker) = self.next() else {
                sleep(LOOK_EVERY).await;
                continue;
            };
            fetch.get(&format!("/markets/{}/orderbook?depth=100", encoded(&ticker))).await;
            if let Some(market) = self.state.lock().markets.get_mut(&ticker) {
                market.on_the_way = false;
            }
        }
    }

    fn next(&self) -> Option<String> {
        let mut state = self.state.lock();
        if state.quiet_until.is_some_and(|until| until > Instant::now()) {
            return None;
        }
        state.turn = (state.turn + 1) % TURNS;
        let ticker = if state.turn == 0 {
            state.next_of_all(self.down_after).or_else(|| state.next_of_first(self.down_after))
        } else {
            state.next_of_first(self.down_after).or_else(|| state.next_of_all(self.down_after))
        };
        let Some(ticker) = ticker else {
            state.quiet_until = Some(Instant::now() + QUIET);
            return None;
        };
        let market = state.markets.get_mut(&ticker)?;
        (market.asked, market.on_the_way) = (Some(Instant::now()), true);
        Some(ticker)
    }
}

impl State {
    fn first(&mut self, ticker: &str, lasts: Option<Duration>, now: bool) {
        let Some(market) = self.markets.get_mut(ticker) else { return };
        self.quiet_until = None;
        if let Some(lasts) = lasts {
            market.traded_until = Some(Instant::now() + lasts);
        }
        if !std::mem::replace(&mut market.in_first, true) {
            if now { self.first.push_front(ticker.to_owned()) } else { self.first.push_back(ticker.to_owned()) }
        }
    }

    fn next_of_first(&mut self, down_after: Duration) -> Option<String> {
        for _ in 0..self.first.len() {
            let ticker = self.first.pop_front()?;
            let Some(market) = self.markets.get_mut(&ticker) else { continue };
            let traded = market.traded();
            let due = market.is_due(down_after);
            // One that is only wrong leaves once it was asked for, or needs no asking.
            if traded || !due && market.is_asked_for(down_after) {
                self.first.push_back(ticker.clone());
            } else {
                market.in_first = false;
            }
            if due {
                return Some(ticker);
            }
        }
        None
    }

    fn next_of_all(&mut self, down_after: Duration) -> Option<String> {
        for _ in 0..self.round.len() {
            let ticker = self.round.pop_front()?;
            let Some(market) = self.markets.get(&ticker) else { continue };
            let due = market.is_due(down_after);
            self.round.push_back(ticker.clone());
            if due {
                return Some(ticker);
            }
        }
        None
    }
}

impl Market {
    fn traded(&self) -> bool {
        self.traded_until.is_some_and(|until| until > Instant::now())
    }

    /// Whether nothing else brings its book.
    fn is_asked_for(&self, down_after: Duration) -> bool {
        match &self.line {
            Some(line) => line.closed_for().is_some_and(|closed| closed >= down_after),
            None => !self.beyond || self.traded(),
        }
    }

    fn is_due(&self, down_after: Duration) -> bool {
        let rested = self.asked.is_none_or(|asked| asked.elapsed() >= EVERY_MIN);
        !self.on_the_way && rested && self.is_asked_for(down_after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN_AFTER: Duration = Duration::from_secs(15);

    fn calls(polls: &Polls, count: usize) -> Vec<String> {
        let mut calls = Vec::new();
        for _ in 0..count {
            let Some(ticker) = polls.next() else { break };
            polls.state.lock().markets.get_mut(&ticker).unwrap().on_the_way = false;
            calls.push(ticker);
        }
        calls
    }

    #[tokio::test(start_paused = true)]
    async fn traded_markets_come_first_and_all_have_their_turn() {
        let polls = Polls::new(DOWN_AFTER);
        for ticker in ["A", "B", "C", "D", "E", "F"] {
            polls.add(ticker, None, false);
        }
        polls.add("BEYOND", None, true);
        polls.traded("E", Duration::from_secs(60));
        assert_eq!(calls(&polls, 9), ["E", "A", "B", "C", "D", "F"], "each once a second at most");
        tokio::time::advance(EVERY_MIN).await;
        polls.traded("BEYOND", Duration::from_secs(60));
        polls.wrong("D");
        let again = calls(&polls, 4);
        assert_eq!(
            again.iter().filter(|ticker| ["D", "E", "BEYOND"].contains(&ticker.as_str())).count(),
            3,
            "{again:?}"
        );
        polls.remove("A");
        tokio::time::advance(Duration::from_secs(61)).await;
        let mut later = calls(&polls, 20);
        later.sort();
        assert_eq!(later, ["B", "C", "D", "E", "F"], "nobody trades the one beyond any more");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_socket_brings_is_asked_for_only_while_it_is_down() {
        let polls = Polls::new(DOWN_AFTER);
        let line = Line::new();
        polls.add("A", Some(line.clone()), false);
        polls.traded("A", Duration::from_secs(600));
        for (after_s, asked) in [(14, false), (1, true), (0, false), (1, true)] {
            tokio::time::advance(Duration::from_secs(after_s)).await;
            assert_eq!(!calls(&polls, 1).is_empty(), asked, "{after_s}");
        }
        line.set_open(true);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(calls(&polls, 1), [""; 0]);
        line.set_open(false);
        tokio::time::advance(DOWN_AFTER).await;
        assert_eq!(calls(&polls, 1), ["A"]);
    }
}
