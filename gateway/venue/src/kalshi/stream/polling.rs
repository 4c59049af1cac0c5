//! Books by REST (gateway/docs/live-venues.md §4.2): all of them without credentials, those of a socket that has been
//! down for long, and those of markets that exceed the subscription limit.
//!
//! The call budget makes a round over many markets long, so three of four calls go to markets that users trade. A
//! response is a sign of life of its own market only ([`SINGLE_ANSWERS`](engine::book::SINGLE_ANSWERS)), so the age of
//! a quote is that of its last response.

use super::books::LinkState;
use super::encoded;
use crate::live::Fetch;
use ahash::AHashMap;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Concurrent calls, so that one slow response does not delay the others.
pub const WORKERS: usize = 4;
/// Shortest interval between two requests for the same book.
const EVERY_MIN: Duration = Duration::from_secs(1);
/// Interval at which an idle worker checks for due books.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// After a check without a due book, the pause before the next one: there may be thousands of markets.
const QUIET: Duration = Duration::from_millis(500);
/// One of this many calls goes to the round over all markets.
const TURNS: u32 = 4;

/// The polled markets and their order.
pub struct Polls {
    /// A socket counts as down after this time.
    down_after: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    markets: AHashMap<String, Market>,
    /// All markets, in order of their turns.
    round: VecDeque<String>,
    /// Markets that users trade, or whose book is wrong.
    urgent: VecDeque<String>,
    turn: u32,
    /// No check before this moment, because nothing was due; cleared when a market is added or becomes urgent.
    quiet_until: Option<Instant>,
}

struct Market {
    /// The socket that brings its book.
    link: Option<Arc<LinkState>>,
    /// Exceeds the subscription limit: polled only while users trade it.
    over_limit: bool,
    traded_until: Option<Instant>,
    is_urgent: bool,
    requested_at: Option<Instant>,
    in_flight: bool,
}

impl Polls {
    pub fn new(down_after: Duration) -> Polls {
        Polls { down_after, state: Mutex::default() }
    }

    /// Adds a market, with the socket that carries its book, if any.
    pub fn add(&self, ticker: &str, link: Option<Arc<LinkState>>, over_limit: bool) {
        let mut state = self.state.lock();
        match state.markets.get_mut(ticker) {
            Some(market) => (market.link, market.over_limit) = (link, over_limit),
            None => {
                let market = Market {
                    link,
                    over_limit,
                    traded_until: None,
                    is_urgent: false,
                    requested_at: None,
                    in_flight: false,
                };
                state.markets.insert(ticker.to_owned(), market);
                state.round.push_back(ticker.to_owned());
                state.quiet_until = None;
            }
        }
    }

    /// Removes a market.
    pub fn remove(&self, ticker: &str) {
        // Its entries in the queues are dropped at their next turn.
        self.state.lock().markets.remove(ticker);
    }

    /// Users trade this market; valid for `lasts`.
    pub fn traded(&self, ticker: &str, lasts: Duration) {
        self.state.lock().urgent(ticker, Some(lasts), false);
    }

    /// The book of this market is wrong: it is polled next.
    pub fn wrong(&self, ticker: &str) {
        self.state.lock().urgent(ticker, None, true);
    }

    /// The added markets that are not in `listed`.
    pub fn missing_in(&self, listed: &ahash::AHashSet<String>) -> Vec<String> {
        self.state.lock().markets.keys().filter(|ticker| !listed.contains(*ticker)).cloned().collect()
    }

    /// Requests due books, one at a time.
    pub async fn work(self: Arc<Polls>, fetch: Fetch) {
        loop {
            let Some(ticker) = self.next() else {
                sleep(LOOK_EVERY).await;
                continue;
            };
            fetch.get(&format!("/markets/{}/orderbook?depth=100", encoded(&ticker))).await;
            if let Some(market) = self.state.lock().markets.get_mut(&ticker) {
                market.in_flight = false;
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
            state.next_of_all(self.down_after).or_else(|| state.next_urgent(self.down_after))
        } else {
            state.next_urgent(self.down_after).or_else(|| state.next_of_all(self.down_after))
        };
        let Some(ticker) = ticker else {
            state.quiet_until = Some(Instant::now() + QUIET);
            return None;
        };
        let market = state.markets.get_mut(&ticker)?;
        (market.requested_at, market.in_flight) = (Some(Instant::now()), true);
        Some(ticker)
    }
}

impl State {
    fn urgent(&mut self, ticker: &str, lasts: Option<Duration>, now: bool) {
        let Some(market) = self.markets.get_mut(ticker) else { return };
        self.quiet_until = None;
        if let Some(lasts) = lasts {
            market.traded_until = Some(Instant::now() + lasts);
        }
        if !std::mem::replace(&mut market.is_urgent, true) {
            if now { self.urgent.push_front(ticker.to_owned()) } else { self.urgent.push_back(ticker.to_owned()) }
        }
    }

    fn next_urgent(&mut self, down_after: Duration) -> Option<String> {
        for _ in 0..self.urgent.len() {
            let ticker = self.urgent.pop_front()?;
            let Some(market) = self.markets.get_mut(&ticker) else { continue };
            let traded = market.traded();
            let due = market.is_due(down_after);
            // A market that is only wrong leaves the queue after one request, or if its socket is up.
            if traded || !due && market.is_polled(down_after) {
                self.urgent.push_back(ticker.clone());
            } else {
                market.is_urgent = false;
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

    /// Whether no socket brings its book.
    fn is_polled(&self, down_after: Duration) -> bool {
        match &self.link {
            Some(link) => link.closed_for().is_some_and(|closed| closed >= down_after),
            None => !self.over_limit || self.traded(),
        }
    }

    fn is_due(&self, down_after: Duration) -> bool {
        let has_paused = self.requested_at.is_none_or(|requested_at| requested_at.elapsed() >= EVERY_MIN);
        !self.in_flight && has_paused && self.is_polled(down_after)
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
            polls.state.lock().markets.get_mut(&ticker).unwrap().in_flight = false;
            calls.push(ticker);
        }
        calls
    }

    #[tokio::test(start_paused = true)]
    async fn traded_markets_come_first_and_every_market_has_its_turn() {
        let polls = Polls::new(DOWN_AFTER);
        for ticker in ["A", "B", "C", "D", "E", "F"] {
            polls.add(ticker, None, false);
        }
        polls.add("BEYOND", None, true);
        polls.traded("E", Duration::from_secs(60));
        assert_eq!(calls(&polls, 9), ["E", "A", "B", "C", "D", "F"], "at most once a second each");
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
        assert_eq!(later, ["B", "C", "D", "E", "F"], "the market over the limit is not traded any more");
    }

    #[tokio::test(start_paused = true)]
    async fn subscribed_books_are_polled_only_while_their_socket_is_down() {
        let polls = Polls::new(DOWN_AFTER);
        let link = LinkState::new();
        polls.add("A", Some(link.clone()), false);
        polls.traded("A", Duration::from_secs(600));
        for (after_s, requested_at) in [(14, false), (1, true), (0, false), (1, true)] {
            tokio::time::advance(Duration::from_secs(after_s)).await;
            assert_eq!(!calls(&polls, 1).is_empty(), requested_at, "{after_s}");
        }
        link.set_open(true);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(calls(&polls, 1), [""; 0]);
        link.set_open(false);
        tokio::time::advance(DOWN_AFTER).await;
        assert_eq!(calls(&polls, 1), ["A"]);
    }
}
