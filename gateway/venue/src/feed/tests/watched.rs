//! What the feed hears from the venue beside frames, and tells it: outages, markets that are traded here, news that came
//! while it was busy.

use super::*;
use crate::Outages;
use engine::market::terms;
use engine::reject::Reject;

/// A script that is a live venue as well: who is out, whether something has come, and what it was told.
#[derive(Clone, Default)]
struct Watched {
    script: Script,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
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
        "a script that is watched".into()
    }

    fn stake(&mut self, condition: &str) {
        self.seen.lock().staked.push(condition.to_owned());
    }

    fn outages(&self, _: Timestamp) -> Outages {
        self.seen.lock().outages
    }

    fn has_news(&self) -> bool {
        self.seen.lock().has_news
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

/// Two markets, one of either venue, with books, and a user.
fn begun(place: &Path) -> (Watched, Life) {
    let venue = Watched::default();
    venue.script.say([
        listed_by(POLYMARKET, terms::Venue::Polymarket),
        listed_by(KALSHI, terms::Venue::Kalshi),
        deep(POLYMARKET),
        deep(KALSHI),
    ]);
    let mut life = Life::start(place, venue.clone(), NOW);
    life.feed.begin().expect("it runs");
    life.ask(create_user());
    (venue, life)
}

/// What becomes of a market order there: nothing if it fills, else why not.
fn refusal(life: &Life, number: u8) -> Option<&'static str> {
    let market = life.feed.desk.markets.by_condition(&condition(number)).expect("listed");
    match life.ask(buy(market, Outcome::First)) {
        Answer::Order(_) => None,
        Answer::Refused(Reject::StaleQuote { .. }) => Some("STALE_QUOTE"),
        Answer::Refused(Reject::VenueUnavailable) => Some("VENUE_UNAVAILABLE"),
        Answer::Refused(other) => panic!("{other:?}"),
        _ => panic!("an order was placed"),
    }
}

#[test]
fn orders_meet_no_book_of_a_venue_that_is_out_until_it_comes_anew() {
    let place = tempfile::tempdir().expect("a directory");
    let (venue, mut life) = begun(place.path());
    let (stale, unavailable) = (Some("STALE_QUOTE"), Some("VENUE_UNAVAILABLE"));
    let outages = |polymarket, kalshi| Outages { polymarket, kalshi, all: polymarket && kalshi, unheard: false };
    let mut cases = 0;
    // (who is out; books that come anew; refusals of an order on Polymarket and on Kalshi)
    for (out, anew, refusals) in [
        ([false, false], vec![], [None, None]),
        // The other one is traded on.
        ([false, true], vec![], [None, stale]),
        // To be back is not enough: what it shows is as old as before.
        ([false, false], vec![], [None, stale]),
        ([false, false], vec![KALSHI], [None, None]),
        ([true, false], vec![], [stale, None]),
        // Books that came while it counts as out are new, whatever the count is late by.
        ([true, false], vec![POLYMARKET], [None, None]),
        ([true, true], vec![], [unavailable, unavailable]),
        ([false, false], vec![], [None, stale]),
        ([false, false], vec![POLYMARKET, KALSHI], [None, None]),
    ] {
        venue.seen.lock().outages = outages(out[0], out[1]);
        venue.script.say(anew.into_iter().map(deep));
        life.turn_after(1);
        assert_eq!(life.books.outage(), out == [true, true], "case {cases}: {out:?}");
        assert_eq!([POLYMARKET, KALSHI].map(|number| refusal(&life, number)), refusals, "case {cases}: {out:?}");
        cases += 1;
    }
    // Nothing was heard since the start: that is no outage yet, and no empty book.
    for (unheard, refusals) in [(true, [unavailable, unavailable]), (false, [None, None])] {
        venue.seen.lock().outages = Outages { unheard, ..Outages::default() };
        life.turn_after(1);
        assert!(!life.books.outage());
        assert_eq!([POLYMARKET, KALSHI].map(|number| refusal(&life, number)), refusals, "unheard: {unheard}");
        cases += 1;
    }
    println!("outages: {cases} cases");
}

#[test]
fn the_venue_is_told_soon_and_once_of_markets_that_are_traded_here() {
    let place = tempfile::tempdir().expect("a directory");
    let (venue, mut life) = begun(place.path());
    life.turn_after(2);
    assert!(venue.seen.lock().staked.is_empty(), "nobody has traded");
    assert_eq!(refusal(&life, POLYMARKET), None);
    life.turn_after(0);
    assert!(venue.seen.lock().staked.is_empty(), "it is told with the next look");
    life.turn_after(1);
    assert_eq!(venue.seen.lock().staked, [condition(POLYMARKET)]);
    assert_eq!(refusal(&life, POLYMARKET), None);
    life.turn_after(1);
    assert_eq!(venue.seen.lock().staked, [condition(POLYMARKET)], "a second order is no news");
    assert_eq!(refusal(&life, KALSHI), None);
    let resolution = Resolution::Winner(Outcome::First);
    venue.script.say([FeedUpdate::Resolved { condition: condition(KALSHI), resolution, venue_ts: NOW }]);
    life.turn_after(1);
    let told = venue.seen.lock().staked.split_off(1);
    assert!(!told.contains(&condition(KALSHI)), "what is resolved stands as it stands: {told:?}");
    println!("markets that are traded here: 5 cases");
}

#[test]
fn what_came_while_the_feed_was_busy_is_taken_at_once() {
    let place = tempfile::tempdir().expect("a directory");
    let (venue, mut life) = begun(place.path());
    let mut cases = 0;
    for has_news in [false, true, false] {
        venue.seen.lock().has_news = has_news;
        let sleep = life.feed.turn().expect("it runs");
        assert_eq!(sleep.is_zero(), has_news);
        cases += 1;
    }
    println!("news behind a poll: {cases} cases");
}
