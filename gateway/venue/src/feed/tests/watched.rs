//! Calls between feed and venue besides frames: outages, traded markets, and news that arrived while the feed was busy.

use super::*;
use crate::Outages;
use engine::market::terms;
use engine::reject::Reject;

/// A script with outages and a news flag; it notes the traded markets.
#[derive(Clone, Default)]
struct Watched {
    script: Script,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    outages: Outages,
    has_news: bool,
    staked: Vec<String>,
}

impl Venue for Watched {
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        self.script.poll(server_now, until, frame)
    }

    fn drives_clock(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "a script with outages".into()
    }

    fn stake(&mut self, condition: &str) {
        self.state.lock().staked.push(condition.to_owned());
    }

    fn outages(&self, _: Timestamp) -> Outages {
        self.state.lock().outages
    }

    fn has_news(&self) -> bool {
        self.state.lock().has_news
    }
}

const POLYMARKET: u8 = 1;
const KALSHI: u8 = 2;

fn listed_by(number: u8, venue: terms::Venue) -> FeedUpdate {
    match listed(number) {
        FeedUpdate::Listed { mut listing, state } => {
            listing.venue = venue;
            FeedUpdate::Listed { listing, state }
        }
        _ => unreachable!("a listing"),
    }
}

/// A book deep enough for all orders of a test.
fn deep(number: u8) -> FeedUpdate {
    let level = |price| vec![(Price(price), Qty(1_000_000_000))];
    let (bids, asks) = (level(4_000), level(5_000));
    FeedUpdate::BookSnapshot { token: token(number).into(), bids, asks, venue_ts: NOW, hash: None }
}

/// Two markets, one of each venue, with books, and a user.
fn begun(directory: &Path) -> (Watched, Life) {
    let venue = Watched::default();
    venue.script.send([
        listed_by(POLYMARKET, terms::Venue::Polymarket),
        listed_by(KALSHI, terms::Venue::Kalshi),
        deep(POLYMARKET),
        deep(KALSHI),
    ]);
    let mut life = Life::start(directory, venue.clone(), NOW);
    life.feed.begin().expect("it runs");
    life.call(create_user());
    (venue, life)
}

/// Why a market order is refused there; `None` if it fills.
fn refusal(life: &Life, number: u8) -> Option<&'static str> {
    let market = life.feed.desk.markets.by_condition(&condition(number)).expect("listed");
    match life.call(buy(market, Outcome::First)) {
        Answer::Order(_) => None,
        Answer::Refused(Reject::StaleQuote { .. }) => Some("STALE_QUOTE"),
        Answer::Refused(Reject::VenueUnavailable) => Some("VENUE_UNAVAILABLE"),
        Answer::Refused(other) => panic!("{other:?}"),
        _ => panic!("not the answer to an order"),
    }
}

#[test]
fn orders_meet_no_book_of_an_absent_venue_until_its_next_snapshot() {
    let directory = tempfile::tempdir().expect("a directory");
    let (venue, mut life) = begun(directory.path());
    let (stale, unavailable) = (Some("STALE_QUOTE"), Some("VENUE_UNAVAILABLE"));
    let outages = |polymarket: bool, kalshi: bool| {
        let venues = [(polymarket, crate::testing::POLYMARKET), (kalshi, crate::testing::KALSHI)];
        let out = venues.into_iter().filter_map(|(is_out, origin)| is_out.then_some(origin)).collect();
        Outages { out, all: polymarket && kalshi, no_contact: false }
    };
    let mut cases = 0;
    // (outages; new snapshots; refusals of an order on Polymarket and on Kalshi)
    for (out, snapshots, refusals) in [
        ([false, false], vec![], [None, None]),
        // The other venue is traded on.
        ([false, true], vec![], [None, stale]),
        // The end of the outage is not enough: its books are still old.
        ([false, false], vec![], [None, stale]),
        ([false, false], vec![KALSHI], [None, None]),
        ([true, false], vec![], [stale, None]),
        // Snapshots during the outage are new, even if the outage ends late.
        ([true, false], vec![POLYMARKET], [None, None]),
        ([true, true], vec![], [unavailable, unavailable]),
        ([false, false], vec![], [None, stale]),
        ([false, false], vec![POLYMARKET, KALSHI], [None, None]),
    ] {
        venue.state.lock().outages = outages(out[0], out[1]);
        venue.script.send(snapshots.into_iter().map(deep));
        life.turn_after(1);
        assert_eq!(life.books.outage(), out == [true, true], "case {cases}: {out:?}");
        assert_eq!([POLYMARKET, KALSHI].map(|number| refusal(&life, number)), refusals, "case {cases}: {out:?}");
        cases += 1;
    }
    // No message since the start: neither an outage nor empty books.
    for (no_contact, refusals) in [(true, [unavailable, unavailable]), (false, [None, None])] {
        venue.state.lock().outages = Outages { no_contact, ..Outages::default() };
        life.turn_after(1);
        assert!(!life.books.outage());
        assert_eq!([POLYMARKET, KALSHI].map(|number| refusal(&life, number)), refusals, "no_contact: {no_contact}");
        cases += 1;
    }
    println!("outages: {cases} cases");
}

#[test]
fn the_venue_is_notified_once_of_each_traded_market() {
    let directory = tempfile::tempdir().expect("a directory");
    let (venue, mut life) = begun(directory.path());
    life.turn_after(2);
    assert!(venue.state.lock().staked.is_empty(), "no user has traded");
    assert_eq!(refusal(&life, POLYMARKET), None);
    life.turn_after(0);
    assert!(venue.state.lock().staked.is_empty(), "the interval has not passed");
    life.turn_after(1);
    assert_eq!(venue.state.lock().staked, [condition(POLYMARKET)]);
    assert_eq!(refusal(&life, POLYMARKET), None);
    life.turn_after(1);
    assert_eq!(venue.state.lock().staked, [condition(POLYMARKET)], "a second order changes nothing");
    assert_eq!(refusal(&life, KALSHI), None);
    let resolution = Resolution::Winner(Outcome::First);
    venue.script.send([FeedUpdate::Resolved { condition: condition(KALSHI), resolution, venue_ts: NOW }]);
    life.turn_after(1);
    let rest = venue.state.lock().staked.split_off(1);
    assert!(!rest.contains(&condition(KALSHI)), "a resolved market is not announced: {rest:?}");
    println!("traded markets: 5 cases");
}

#[test]
fn news_that_came_while_the_feed_was_busy_is_taken_without_a_sleep() {
    let directory = tempfile::tempdir().expect("a directory");
    let (venue, mut life) = begun(directory.path());
    let mut cases = 0;
    for has_news in [false, true, false] {
        venue.state.lock().has_news = has_news;
        let sleep = life.feed.turn().expect("it runs");
        assert_eq!(sleep.is_zero(), has_news);
        cases += 1;
    }
    println!("news after a poll: {cases} cases");
}
