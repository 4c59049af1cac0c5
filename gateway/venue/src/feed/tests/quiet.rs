//! Books of which nothing is heard, and what the venue is told of at a start.

use super::*;
use crate::Upstream;
use crate::tape::Origin;
use engine::market::terms::{Asset, Interval, UpDown};

/// A live venue that says what it is told to say, and keeps what it is told.
#[derive(Clone, Default)]
struct Calm {
    says: Arc<Mutex<Vec<(bool, FeedUpdate)>>>,
    hears: Arc<Mutex<Vec<String>>>,
}

impl Calm {
    fn frame(&self, update: FeedUpdate) {
        self.says.lock().push((false, update));
    }

    fn answer(&self, update: FeedUpdate) {
        self.says.lock().push((true, update));
    }

    fn heard(&self) -> String {
        self.hears.lock().drain(..).collect::<Vec<_>>().join("; ")
    }

    fn hear(&self, what: String) {
        self.hears.lock().push(what);
    }
}

impl Venue for Calm {
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        let venue_now = server_now.min(until);
        for (is_answer, update) in self.says.lock().drain(..) {
            // Markets 5 and 6 are on a connection of their own.
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
        self.hear(format!("recall {}", market.listing.tokens[0]));
    }

    fn stake(&mut self, condition: &str) {
        let number = (1..9).find(|number| super::condition(*number) == condition);
        self.hear(format!("stake {}", number.map_or("?".into(), token)));
    }

    fn look(&mut self, tokens: &[&str]) {
        self.hear(format!("look {}", tokens.join(" ")));
    }

    fn resubscribe(&mut self, token: &str) {
        self.hear(format!("resubscribe {token}"));
    }

    fn upstream(&self) -> Upstream {
        Upstream { venues: vec![(Origin::Polymarket, Arc::default())], ..Upstream::default() }
    }
}

#[test]
fn what_is_quiet_for_long_is_asked_about_and_subscribed_anew_where_it_has_changed() {
    let place = tempfile::tempdir().expect("a directory");
    let venue = Calm::default();
    let mut life = Life::start(place.path(), venue.clone(), NOW);
    life.feed.begin().expect("it runs");
    let numbers = [1, 2, 3, 5, 6];
    for number in numbers {
        let FeedUpdate::Listed { mut listing, state } = listed(number) else { unreachable!("it lists") };
        listing.venue = engine::market::terms::Venue::Polymarket;
        venue.frame(FeedUpdate::Listed { listing, state });
    }
    numbers.iter().for_each(|&number| venue.frame(snapshot(number, 4_000, 6_000)));
    life.turn_after(1);
    assert_eq!(venue.heard(), "");
    let mut rows = 0;
    let mut after = |life: &mut Life, seconds: u64, expected: &str| {
        // A turn goes no further than the next cycle.
        (0..seconds).for_each(|_| life.turn_after(1));
        life.turn_after(0);
        assert_eq!(venue.heard(), expected, "row {rows}");
        rows += 1;
    };
    after(&mut life, 119, "");
    // One that says something is not asked about; the others are, each connection in its turn.
    venue.frame(bid(2, 4_100));
    after(&mut life, 2, "look 10 30");
    after(&mut life, 1, "");
    after(&mut life, 1, "look 50 60");
    // What comes is what was folded: it is good for as long again.
    [1, 3].iter().for_each(|&number| venue.answer(snapshot(number, 4_000, 6_000)));
    after(&mut life, 2, "look 50 60");
    // What comes is another book: it is shown, and said to be broken until it is subscribed again.
    venue.answer(snapshot(5, 4_500, 6_000));
    after(&mut life, 0, "resubscribe 50");
    let stale = |life: &Life, number: u8| life.books.gap(life.catalog.by_token(&token(number)).expect("it is listed"));
    assert_eq!((life.best("50"), stale(&life, 5)), (Some([Some(4_500), Some(6_000)]), true));
    assert!(!stale(&life, 6) && !stale(&life, 1));
    venue.frame(snapshot(5, 4_600, 6_000));
    after(&mut life, 2, "look 60");
    assert!(!stale(&life, 5));
    // A differing answer that was asked for otherwise, soon behind a word of the socket, is no loss.
    venue.answer(snapshot(2, 4_200, 6_000));
    after(&mut life, 0, "");
    assert!(!stale(&life, 2));
    // A market that is left is as old as can be.
    let tokens = listing(2, [&token(2), "21"]).tokens;
    venue.frame(FeedUpdate::Left { tokens });
    after(&mut life, 0, "");
    let instrument = life.catalog.by_token("20").expect("it is listed");
    assert!(stale(&life, 2) && life.books.quote_age(instrument, life.clock.now()) > Some(3_600 * SECOND));
    println!("quiet books: {} cases", rows + 5);
}

#[test]
fn a_start_tells_of_stakes_then_windows_then_the_rest() {
    let place = tempfile::tempdir().expect("a directory");
    {
        let venue = Script::default();
        let mut life = Life::start(place.path(), venue.clone(), NOW);
        life.feed.begin().expect("it runs");
        let window = |number: u8, end: u64| {
            let FeedUpdate::Listed { mut listing, state } = listed(number) else { unreachable!("it lists") };
            let (start, end) = (NOW, NOW.plus(end * SECOND));
            listing.updown = Some(UpDown { asset: Asset::Btc, interval: Interval::FiveMinutes, start, end });
            listing.end = Some(end);
            FeedUpdate::Listed { listing, state }
        };
        venue.say([listed(1), listed(2), window(3, 2), window(4, 900), listed(5), window(6, 900)]);
        life.turn_after(1);
        life.turn_after(5);
    }
    let venue = Calm::default();
    let mut life = Life::staked(place.path(), venue.clone(), NOW.plus(60 * SECOND), &[MarketId(4), MarketId(5)]);
    life.feed.begin().expect("it runs");
    let told = venue.heard();
    let expected = "recall 60; stake 60; recall 50; stake 50; recall 40; recall 10; recall 20; recall 30";
    assert!(told.starts_with(expected), "{told}");
    println!("markets told of at a start: 6 cases");
}
