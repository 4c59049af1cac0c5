//! Faults on the wire, one after the other.

use super::*;

/// The fault, and the book that the server shows then; `None`: it is stale.
type Row = (&'static str, fn(&Fake, &Market), Option<(&'static str, &'static str)>);

/// Only the fault happens.
const RIGHT: Option<(&str, &str)> = Some(("0.40", "0.60"));

/// The book after the fault differs from the one before it, so that an unread book is detected.
const MOVED: Option<(&str, &str)> = Some(("0.41", "0.60"));

/// The venue's book changes, and no frame reports it.
fn move_silently(fake: &Fake, market: &Market) {
    fake.book(market, &[("0.41", "500"), ("0.30", "100")], &[("0.60", "500"), ("0.70", "100")]);
}

/// The venue's book changes by a frame.
fn move_by_frame(fake: &Fake, market: &Market) {
    fake.level(market, "BUY", "0.41", "100");
}

fn status(status: u16, retry_after: Option<u32>) -> RestFault {
    RestFault { status, retry_after, times: 3, ..RestFault::default() }
}

/// Rows of faults; after each the venue recovers, sends its books again, and an order fills.
const FAULTS: &[Row] = &[
    ("nothing", |_, _| {}, RIGHT),
    (
        "frames sent twice",
        |fake, market| {
            fake.twice(true);
            fake.level(market, "BUY", "0.41", "100");
            fake.level(market, "BUY", "0.42", "100");
            fake.level(market, "BUY", "0.42", "0");
            fake.level(market, "SELL", "0.59", "100");
        },
        Some(("0.41", "0.59")),
    ),
    (
        "a lost frame, and whole books after it",
        |fake, market| {
            fake.lose(1);
            fake.level(market, "BUY", "0.45", "100");
            fake.tell_books(market);
        },
        Some(("0.45", "0.60")),
    ),
    (
        "a lost frame, and best prices that differ after it",
        |fake, market| {
            fake.lose(1);
            fake.level(market, "BUY", "0.45", "100");
            ["1", "2", "3"].iter().for_each(|size| fake.level(market, "BUY", "0.20", size));
        },
        Some(("0.45", "0.60")),
    ),
    (
        "a crossed book",
        |fake, market| {
            move_silently(fake, market);
            let at = fake.tick();
            let token = &market.tokens[0];
            fake.say(market, &format!(
                r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{at}","bids":[{{"price":"0.6","size":"5"}}],"asks":[{{"price":"0.4","size":"5"}}]}}"#
            ));
        },
        MOVED,
    ),
    (
        "silence with pongs",
        |fake, _| {
            fake.mood(Mood::Silent);
            fake.fault(RestFault { path: "/books", status: 500, times: usize::MAX, ..RestFault::default() });
        },
        None,
    ),
    (
        "a socket that neither reads nor writes",
        |fake, _| {
            fake.mood(Mood::HalfOpen);
            fake.fault(RestFault { path: "/books", status: 500, times: usize::MAX, ..RestFault::default() });
        },
        None,
    ),
    (
        "closed sockets",
        |fake, market| {
            move_silently(fake, market);
            fake.close();
        },
        MOVED,
    ),
    (
        "an empty first dump",
        |fake, market| {
            move_silently(fake, market);
            fake.dumps(false);
            fake.close();
        },
        MOVED,
    ),
    (
        "an empty book",
        |fake, market| {
            fake.book(market, &[], &[]);
            fake.tell_books(market);
        },
        Some(("none", "none")),
    ),
    (
        "one side is empty",
        |fake, market| {
            fake.book(market, &[], &[("0.60", "500")]);
            fake.tell_books(market);
        },
        Some(("none", "0.60")),
    ),
    (
        "sides under their old names",
        |fake, market| {
            let at = fake.tick();
            let token = &market.tokens[0];
            fake.say(market, &format!(
            r#"{{"event_type":"book","asset_id":"{token}","timestamp":{at},"buys":[{{"price":".41","size":5}}],"sells":[{{"price":0.6,"size":"5.0"}}]}}"#
        ));
        },
        MOVED,
    ),
    (
        "levels finer than the grid",
        |fake, market| {
            let at = fake.tick();
            let token = &market.tokens[0];
            fake.say(market, &format!(
            r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{at}","bids":[{{"price":"0.41005","size":"5"}},{{"price":"0.41","size":"5"}}],"asks":[{{"price":"0.6","size":"5"}}]}}"#
        ));
        },
        MOVED,
    ),
    (
        "broken JSON",
        |fake, market| {
            for text in ["{", "[{\"event_type\":\"book\"", "\u{1}", "nul", "[[[[", "\"", "PONG?", "[]", "{}", "null"] {
                fake.say(market, text);
            }
            move_by_frame(fake, market);
        },
        MOVED,
    ),
    (
        "wrong types and huge numbers",
        |fake, market| {
            let token = &market.tokens[0];
            let huge = "9".repeat(400);
            for text in [
                format!(
                    r#"{{"event_type":"price_change","price_changes":[{{"asset_id":"{token}","price":{huge},"size":"1","side":"BUY"}}]}}"#
                ),
                format!(
                    r#"{{"event_type":"price_change","price_changes":[{{"asset_id":"{token}","price":"0.5","size":"{huge}","side":"BUY"}}]}}"#
                ),
                format!(
                    r#"{{"event_type":"price_change","price_changes":[{{"asset_id":"{token}","price":"0.5","size":"-5","side":"BUY"}}]}}"#
                ),
                format!(r#"{{"event_type":"price_change","price_changes":{{"asset_id":"{token}"}}}}"#),
                format!(
                    r#"{{"event_type":"price_change","price_changes":[{{"asset_id":"{token}","price":"NaN","size":"1","side":"UP"}}]}}"#
                ),
                format!(r#"{{"event_type":"book","asset_id":["{token}"],"bids":7}}"#),
                format!(r#"{{"event_type":{{}},"asset_id":"{token}"}}"#),
                format!(r#"{{"event_type":"tick_size_change","asset_id":"{token}","new_tick_size":"-1"}}"#),
                format!(r#"{{"event_type":"last_trade_price","asset_id":"{token}","price":"","size":null}}"#),
                r#"{"event_type":"market_resolved","market":"0x1","winning_asset_id":5}"#.into(),
                r#"{"event_type":"new_market","market":{"a":1},"assets_ids":["1"]}"#.into(),
            ] {
                fake.say(market, &text);
            }
            move_by_frame(fake, market);
        },
        MOVED,
    ),
    (
        "unknown events and tokens",
        |fake, market| {
            for text in [
                r#"{"event_type":"fireworks","asset_id":"1"}"#,
                r#"{"event_type":"book","asset_id":"7","timestamp":"1","bids":[],"asks":[]}"#,
                r#"{"event_type":"best_bid_ask","asset_id":"7","best_bid":"0.1","best_ask":"0.2"}"#,
            ] {
                fake.say(market, text);
            }
            move_by_frame(fake, market);
        },
        MOVED,
    ),
    (
        "an old book",
        |fake, market| {
            let token = &market.tokens[0];
            fake.say(market, &format!(
            r#"{{"event_type":"book","asset_id":"{token}","timestamp":"1000","bids":[{{"price":"0.1","size":"5"}}],"asks":[]}}"#
        ));
            move_by_frame(fake, market);
        },
        MOVED,
    ),
    (
        "a finer tick near the top",
        |fake, market| {
            fake.book(market, &[("0.96", "50")], &[("0.97", "50")]);
            fake.tell_books(market);
            for token in &market.tokens {
                let at = fake.tick();
                fake.say(market, &format!(
                r#"{{"event_type":"tick_size_change","asset_id":"{token}","old_tick_size":"0.01","new_tick_size":"0.001","timestamp":"{at}"}}"#
            ));
            }
            fake.level(market, "SELL", "0.965", "500");
        },
        Some(("0.96", "0.965")),
    ),
    (
        "a finer tick near the bottom",
        |fake, market| {
            fake.book(market, &[("0.03", "50")], &[("0.04", "50")]);
            fake.tell_books(market);
            fake.level(market, "BUY", "0.035", "500");
        },
        Some(("0.035", "0.04")),
    ),
    (
        "425 from everywhere",
        |fake, market| {
            move_silently(fake, market);
            fake.fault(status(425, None));
            fake.close();
        },
        MOVED,
    ),
    (
        "429 with a retry time",
        |fake, market| {
            move_silently(fake, market);
            fake.fault(RestFault { path: "/events", ..status(429, Some(1)) });
            fake.dumps(false);
            fake.close();
        },
        MOVED,
    ),
    (
        "500 from the order book's service",
        |fake, market| {
            move_silently(fake, market);
            fake.fault(RestFault { path: "/books", ..status(500, None) });
            fake.dumps(false);
            fake.close();
        },
        MOVED,
    ),
    (
        "slow pages",
        |fake, market| {
            let slow = Duration::from_millis(700);
            fake.fault(RestFault { slow, times: 4, ..RestFault::default() });
            move_by_frame(fake, market);
        },
        MOVED,
    ),
    (
        "pages that never arrive",
        |fake, market| {
            let slow = Duration::from_secs(30);
            fake.fault(RestFault { path: "/events", slow, times: 2, ..RestFault::default() });
            move_by_frame(fake, market);
        },
        MOVED,
    ),
    (
        "pages that are not pages",
        |fake, market| {
            for body in ["", "[", "{\"events\":7}", "[null,7,[],{\"markets\":\"x\"}]", "<html>"] {
                fake.fault(RestFault { body: Some(body.into()), times: 2, ..RestFault::default() });
            }
            move_by_frame(fake, market);
        },
        MOVED,
    ),
];

#[test]
fn after_any_fault_a_book_is_right_or_stale() {
    let cases = Cases::of("faults of a venue");
    let (mut scene, (market, other)) = Scene::start(|fake, place| {
        place.set("flags", "trade_quote_max_age_ms", "1000");
        // A silent venue is not an outage here.
        place.set("venue", "outage_after_ms", "60000");
        (fake.list(41), fake.list(42))
    });
    scene.shows(&market, "0.40", "0.60");
    for (name, wrong, expected) in FAULTS {
        println!("{name}");
        wrong(&scene.fake, &market);
        match expected {
            Some((bid, ask)) => scene.shows(&market, bid, ask),
            None => {
                scene.until_stale(&market);
                let refused = || Some(scene.buy(&market, "0.70", "10")).filter(|answer| answer.status != 200);
                eventually("a refusal", refused).refused(400, "STALE_QUOTE");
            }
        }
        // Each was met; then everything recovers.
        eventually("a call for each fault", || scene.fake.faults_are_met().then_some(()));
        scene.fake.mood(Mood::Well);
        scene.fake.no_faults();
        scene.fake.dumps(true);
        scene.fake.twice(false);
        // A book that no row has comes first: once it is visible, nothing of the fault is in flight any more.
        for bid in ["0.38", "0.40"] {
            scene.fake.book(&market, &[(bid, "500"), ("0.30", "100")], &[("0.60", "500"), ("0.70", "100")]);
            scene.fake.tell_books(&market);
            scene.shows(&market, bid, "0.60");
        }
        scene.shows(&other, "0.40", "0.60");
        // A second may pass before the order on a slow machine: the book is sent again then.
        let bought = || {
            let answer = scene.buy(&market, "0.70", "10");
            if answer.status != 200 {
                answer.refused(400, "STALE_QUOTE");
                scene.fake.tell_books(&market);
                return None;
            }
            Some(answer.expect(200))
        };
        let order = eventually("an order on a fresh book", bought);
        assert_eq!((text(&order, "/status"), text(&order, "/price")), ("FILLED", "0.60"), "{name}: {order}");
        cases.one();
    }
}
