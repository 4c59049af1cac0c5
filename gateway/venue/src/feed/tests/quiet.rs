//! Silent books, and the calls to the venue at a start.

use super::*;
use crate::Upstream;
use crate::testing::POLYMARKET;
use engine::market::terms::{Asset, Interval, UpDown};

/// A live venue that hands out the updates of the test and notes the calls of the feed.
#[derive(Clone, Default)]
struct QuietVenue {
    updates: Arc<Mutex<Vec<(bool, FeedUpdate)>>>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl QuietVenue {
    fn frame(&self, update: FeedUpdate) {
        self.updates.lock().push((false, update));
    }

    fn answer(&self, update: FeedUpdate) {
        self.updates.lock().push((true, update));
    }

    fn take_calls(&self) -> String {
        self.calls.lock().drain(..).collect::<Vec<_>>().join("; ")
    }

    fn note(&self, what: String) {
        self.calls.lock().push(what);
    }
}

impl Venue for QuietVenue {
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        let venue_now = server_now.min(until);
        for (is_answer, update) in self.updates.lock().drain(..) {
            // Markets 5 and 6 have a connection of their own.
            let other =
                matches!(&update, FeedUpdate::BookSnapshot { token, .. } if &**token == "50" || &**token == "60");
            let connection = u8::from(other);
            frame(Frame { connection, received: venue_now, is_answer, updates: &[update] });
        }
        Polled { venue_now, wake_at: None }
    }

    fn drives_clock(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "a calm venue".into()
    }

    fn recall(&mut self, market: &engine::market::Market) {
        self.note(format!("recall {}", market.listing.tokens[0]));
    }

    fn stake(&mut self, condition: &str) {
        let number = (1..9).find(|number| super::condition(*number) == condition);
        self.note(format!("stake {}", number.map_or("?".into(), token)));
    }

    fn check(&mut self, tokens: &[&str]) {
        self.note(format!("check {}", tokens.join(" ")));
    }

    fn resubscribe(&mut self, token: &str) {
        self.note(format!("resubscribe {token}"));
    }

    fn upstream(&self) -> Upstream {
        Upstream { venues: vec![(POLYMARKET, Arc::default())], ..Upstream::default() }
    }
}

#[test]
fn silent_books_are_checked_and_subscribed_again_if_they_differ() {
    let directory = tempfile::tempdir().expect("a directory");
    let venue = QuietVenue::default();
    let mut life = Life::start(directory.path(), venue.clone(), NOW);
    life.feed.begin().expect("it runs");
    let numbers = [1, 2, 3, 5, 6];
    for number in numbers {
        let FeedUpdate::Listed { mut listing, state } = listed(number) else { unreachable!("it lists") };
        listing.venue = engine::market::terms::Venue::Polymarket;
        venue.frame(FeedUpdate::Listed { listing, state });
    }
    numbers.iter().for_each(|&number| venue.frame(snapshot(number, 4_000, 6_000)));
    life.turn_after(1);
    assert_eq!(venue.take_calls(), "");
    let mut rows = 0;
    let mut after = |life: &mut Life, seconds: u64, expected: &str| {
        // A turn does not go past the next cycle.
        (0..seconds).for_each(|_| life.turn_after(1));
        life.turn_after(0);
        assert_eq!(venue.take_calls(), expected, "row {rows}");
        rows += 1;
    };
    after(&mut life, 119, "");
    // Market 2 sends something; the others are checked, one connection at a time.
    venue.frame(bid(2, 4_100));
    after(&mut life, 2, "check 10 30");
    after(&mut life, 1, "");
    after(&mut life, 1, "check 50 60");
    // The response equals the folded book: no check for the whole period again.
    [1, 3].iter().for_each(|&number| venue.answer(snapshot(number, 4_000, 6_000)));
    after(&mut life, 2, "check 50 60");
    // The response differs: the book is shown, and marked stale until it is subscribed again.
    venue.answer(snapshot(5, 4_500, 6_000));
    after(&mut life, 0, "resubscribe 50");
    let stale = |life: &Life, number: u8| life.books.gap(life.catalog.by_token(&token(number)).expect("it is listed"));
    assert_eq!((life.best("50"), stale(&life, 5)), (Some([Some(4_500), Some(6_000)]), true));
    assert!(!stale(&life, 6) && !stale(&life, 1));
    venue.frame(snapshot(5, 4_600, 6_000));
    after(&mut life, 2, "check 60");
    assert!(!stale(&life, 5));
    // A differing response soon after a message of the socket does not mean a lost subscription.
    venue.answer(snapshot(2, 4_200, 6_000));
    after(&mut life, 0, "");
    assert!(!stale(&life, 2));
    // The book of a market that is left has the maximum age.
    let tokens = listing(2, [&token(2), "21"]).tokens;
    venue.frame(FeedUpdate::Left { tokens });
    after(&mut life, 0, "");
    let instrument = life.catalog.by_token("20").expect("it is listed");
    assert!(stale(&life, 2) && life.books.quote_age(instrument, life.clock.now()) > Some(3_600 * SECOND));
    println!("quiet books: {} cases", rows + 5);
}

#[test]
fn a_start_recalls_stakes_then_windows_then_the_rest() {
    let directory = tempfile::tempdir().expect("a directory");
    {
        let venue = Script::default();
        let mut life = Life::start(directory.path(), venue.clone(), NOW);
        life.feed.begin().expect("it runs");
        let window = |number: u8, end: u64| {
            let FeedUpdate::Listed { mut listing, state } = listed(number) else { unreachable!("it lists") };
            let (start, end) = (NOW, NOW.plus(end * SECOND));
            listing.updown = Some(UpDown { asset: Asset::Btc, interval: Interval::FiveMinutes, start, end });
            listing.end = Some(end);
            FeedUpdate::Listed { listing, state }
        };
        venue.send([listed(1), listed(2), window(3, 2), window(4, 900), listed(5), window(6, 900)]);
        life.turn_after(1);
        life.turn_after(5);
    }
    let venue = QuietVenue::default();
    let mut life = Life::staked(directory.path(), venue.clone(), NOW.plus(60 * SECOND), &[MarketId(4), MarketId(5)]);
    life.feed.begin().expect("it runs");
    let calls = venue.take_calls();
    let expected = "recall 60; stake 60; recall 50; stake 50; recall 40; recall 10; recall 20; recall 30";
    assert!(calls.starts_with(expected), "{calls}");
    println!("markets recalled at a start: 6 cases");
}
