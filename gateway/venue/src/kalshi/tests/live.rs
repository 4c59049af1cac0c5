//! Live messages beyond a recording of one market: complete sequences, books from two sources, markets before their
//! events, changing grids and results.

use super::*;
use crate::kalshi::translate::SEQUENCE_GAP;

#[test]
fn sequence_numbers_are_checked_per_subscription_and_for_data_only() {
    let (mut world, _) = World::with_rain(Sequence::Checked);
    let trade = |seq: u64| {
        format!(
            r#"{{"type":"trade","sid":2,"seq":{seq},"msg":{{"market_ticker":"{RAIN}","yes_price_dollars":"0.33","no_price_dollars":"0.67","count_fp":"1","taker_side":"yes","ts_ms":1788000000123}}}}"#
        )
    };
    let answer =
        |kind: &str, seq: u64| format!(r#"{{"type":"{kind}","id":4,"sid":1,"seq":{seq},"msg":{{"code":17}}}}"#);
    let change = |seq| delta(seq, "yes", "\"0.4000\"", "\"1.00\"");
    world.frame(&snapshot(r#"[["0.4000","2.00"]]"#, "[]"));
    for (text, updates, gaps, again) in [
        (change(2), 2, 0, 0),
        (change(2), 0, 0, 1),
        (trade(7), 1, 0, 1),
        (trade(9), 1, 1, 1),
        (trade(9), 0, 1, 2),
        (answer("ok", 1), 0, 1, 2),
        (answer("error", 2), 0, 1, 2),
        (change(3), 2, 1, 2),
        (answer("ok", 4), 0, 1, 2),
        (change(5), 2, 1, 2),
        // Going back is a gap too: the numbers in between were never seen.
        (change(4), 1, 2, 2),
        (change(5), 0, 2, 2),
    ] {
        assert_eq!(world.frame(&text).len(), updates, "{text}");
        assert_eq!((world.skips.get(Skip::SequenceGap), world.skips.get(Skip::Duplicate)), (gaps, again), "{text}");
    }
    assert_eq!(world.skips.get(Skip::UnknownType), 0, "a response to a command is unknown");
}

#[test]
fn an_unreadable_book_message_loses_the_book() {
    let good = || snapshot(r#"[["0.4000","2.00"]]"#, r#"[["0.5000","1.00"]]"#);
    let bad = |side: &str, price: &str, change: &str| delta(2, side, price, change);
    for (text, lost) in [
        (bad("up", "\"0.4000\"", "\"1\""), true),
        (bad("yes", "\"cheap\"", "\"1\""), true),
        (bad("yes", "\"0.4000\"", "\"x\""), true),
        (bad("yes", "\"0.4000\"", "\"9e99\""), true),
        (bad("yes", "\"0.4000\"", "null"), true),
        (bad("yes", "\"0.40005\"", "\"1\""), false),
        (bad("yes", "\"1.0000\"", "\"1\""), false),
        (snapshot("7", "[]"), true),
        (snapshot(r#"[["0.4000"]]"#, "[]"), true),
        (snapshot(r#"[["0.4000","x"]]"#, "[]"), true),
        (snapshot(r#"[["0.40005","1"],["1.0","1"]]"#, "[]"), false),
    ] {
        let (mut world, listing) = World::with_rain(Sequence::Ignored);
        world.frame(&good());
        let updates = world.frame(&text);
        let gap = matches!(&updates[..], [FeedUpdate::Gap { tokens, .. }] if *tokens == listing.tokens);
        assert_eq!(gap, lost, "{text}: {updates:?}");
        let after = world.frame(&delta(3, "no", "\"0.5000\"", "\"1.00\""));
        assert_eq!(after.is_empty(), lost, "{text}: the next change: {after:?}");
        let next = good().replace("\"seq\":1,", "\"seq\":4,");
        assert_eq!(world.frame(&next).len(), 2, "{text}: the next snapshot");
        assert!(world.skips.total() > 0, "{text}");
    }
}

#[test]
fn a_fetched_book_takes_no_changes_and_does_not_replace_a_followed_one() {
    let (mut world, _) = World::with_rain(Sequence::Ignored);
    let url = "/markets/KXRAIN-26SEP01-T1/orderbook";
    let fetched = r#"{"orderbook_fp":{"yes_dollars":[["0.3000","5"]],"no_dollars":null}}"#;
    assert_eq!(world.rest(url, fetched).len(), 2);
    assert_eq!(world.frame(&delta(1, "yes", "\"0.3000\"", "\"1\"")), [], "a change of a fetched book");
    assert_eq!(world.rest(url, fetched).len(), 2, "fetched again");
    world.frame(&snapshot(r#"[["0.4000","2.00"]]"#, "[]"));
    assert_eq!(world.rest(url, fetched), [], "an older book");
    assert_eq!(world.frame(&delta(2, "yes", "\"0.4000\"", "\"-2.00\"")).len(), 2);
    world.translate.gap(3, "lost", &mut Vec::new());
    assert_eq!(world.rest(url, fetched).len(), 2, "no book is followed");
    // A connection's changes do not apply to the book of another one.
    world.frame(&snapshot(r#"[["0.4000","2.00"]]"#, "[]"));
    let mut updates = Vec::new();
    world.translate.frame(&delta(3, "yes", "\"0.4000\"", "\"1\""), 4, NOW, &mut updates);
    assert_eq!(updates, []);
}

#[test]
fn a_live_market_is_listed_after_its_event_with_its_title() {
    let row = r#"{"markets":[{"ticker":"KXA-1-T","event_ticker":"KXA-1","status":"active","title":"Own title"}]}"#;
    let created = r#"{"type":"market_lifecycle_v2","sid":3,"msg":{"market_ticker":"KXA-1-T","event_type":"created","additional_metadata":{"event_ticker":"KXA-1","title":"Own title"}}}"#;
    let event = r#"{"event":{"event_ticker":"KXA-1","series_ticker":"KXA","title":"The event","markets":[{"ticker":"KXA-1-T","status":"active"}]}}"#;
    let with_category = event.replace(r#""title":"#, r#""category":"Crypto","title":"#);
    let without_series = event.replace(r#""series_ticker":"KXA","#, r#""series_ticker":"","#);
    let series = r#"{"series":{"ticker":"KXA","category":"Sports"}}"#;
    let missing = |path: &'static str| (path, 404, "{}");
    type Answers<'a> = Vec<(&'a str, u16, &'a str)>;
    let cases: [(Answers<'_>, Category, &str); 6] = [
        (vec![("/events/KXA-1", 200, &with_category)], Category::Crypto, "The event"),
        (
            vec![("/events/KXA-1", 200, event), ("/series/KXA", 200, series), ("/events/KXA-1", 200, event)],
            Category::Sports,
            "The event",
        ),
        (vec![("/series/KXA", 200, "{}"), ("/events/KXA-1", 200, event)], Category::Other, "The event"),
        (vec![missing("/series/KXA"), ("/events/KXA-1", 200, event)], Category::Other, "The event"),
        (vec![("/events/KXA-1", 200, &without_series)], Category::Other, "The event"),
        // The venue does not have the event: the market is listed without it.
        (vec![missing("/events/KXA-1"), ("/markets", 200, row)], Category::Other, "Own title"),
    ];
    for (answers, category, question) in &cases {
        let mut world = World::new(Sequence::Checked);
        assert_eq!(world.rest("/markets", row), [], "listed without its event");
        assert_eq!(world.frame(created), [], "listed without its event");
        let mut updates = Vec::new();
        for (at, (url, status, body)) in answers.iter().enumerate() {
            assert!(updates.is_empty(), "{answers:?}: listed before answer {at}");
            world.translate.rest(url, *status, body, NOW, &mut updates);
        }
        let Some(FeedUpdate::Listed { listing, .. }) = updates.first() else { panic!("{answers:?}: {updates:?}") };
        assert_eq!((listing.category, &*listing.question), (*category, *question), "{answers:?}");
    }
    // A recording does not wait for events.
    assert_eq!(World::new(Sequence::Ignored).rest("/markets", row).len(), 1);
    println!("listings: {} cases", cases.len());
}

#[test]
fn a_changed_grid_is_applied() {
    let mut world = World::new(Sequence::Ignored);
    let row = |more: &str| format!(r#"{{"market":{{"ticker":"KXG-1","status":"active"{more}}}}}"#);
    let ranges = |step: &str| format!(r#","price_ranges":[{{"start":"0","end":"1","step":"{step}"}}]"#);
    world.rest("/markets/KXG-1", &row(""));
    for (more, tick) in [
        (row(&ranges("0.001")), Some(10)),
        (row(&ranges("0.001")), None),
        (row(""), None),
        (row(r#","price_level_structure":"linear_cent""#), Some(100)),
        (row(r#","price_level_structure":"deci_cent""#), Some(10)),
        (row(r#","price_level_structure":"linear_cent""#), Some(100)),
        // Without a midpoint the tick is unchanged.
        (row(r#","price_level_structure":"tapered_deci_cent""#), None),
    ] {
        let updates = world.rest("/markets/KXG-1", &more);
        let changed = updates.iter().find_map(|update| match update {
            FeedUpdate::TickChanged { tick, .. } => Some(tick.0),
            _ => None,
        });
        assert_eq!(changed, tick, "{more}");
    }
    let book = r#"{"orderbook_fp":{"yes_dollars":[["0.05","5"]],"no_dollars":[["0.94","5"]]}}"#;
    let updates = world.rest("/markets/KXG-1/orderbook", book);
    assert!(matches!(&updates[..], [_, _, FeedUpdate::TickChanged { tick: TickSize(10), .. }]), "{updates:?}");
    // Levels that were rounded to the old grid are lost.
    let rounded = world.rest("/markets/KXG-1", &row(&ranges("0.002")));
    assert!(rounded.iter().any(|update| matches!(update, FeedUpdate::Gap { .. })), "{rounded:?}");
}

#[test]
fn a_dispute_withdraws_the_announced_result() {
    let frame = |kind: &str, more: &str| {
        format!(
            r#"{{"type":"market_lifecycle_v2","sid":3,"msg":{{"market_ticker":"{RAIN}","event_type":"{kind}"{more}}}}}"#
        )
    };
    let row = |status: &str, result: &str| {
        format!(r#"{{"market":{{"ticker":"{RAIN}","status":"{status}","result":"{result}"}}}}"#)
    };
    let announced = frame("determined", r#","result":"yes""#);
    for (between, resolved) in [
        (None, Some(Outcome::First)),
        (Some(row("disputed", "yes")), None),
        (Some(row("amended", "no")), Some(Outcome::Second)),
        (Some(row("determined", "no")), Some(Outcome::Second)),
        (Some(row("amended", "")), None),
        (Some(row("closed", "")), Some(Outcome::First)),
    ] {
        let (mut world, _) = World::with_rain(Sequence::Ignored);
        world.frame(&announced);
        if let Some(between) = &between {
            world.rest("/markets/x", between);
        }
        let updates = world.frame(&frame("settled", ""));
        let seen = updates.iter().find_map(|update| match update {
            FeedUpdate::Resolved { resolution: Resolution::Winner(outcome), .. } => Some(*outcome),
            _ => None,
        });
        assert_eq!(seen, resolved, "{between:?}");
    }
}

#[test]
fn a_recorded_gap_loses_the_same_books_as_the_live_one() {
    let first = snapshot(r#"[["0.4000","2.00"]]"#, r#"[["0.5000","1.00"]]"#);
    let change = |seq| delta(seq, "yes", "\"0.4000\"", "\"1.00\"");
    let later = |seq: u64| first.replacen("\"seq\":1,", &format!("\"seq\":{seq},"), 1);
    let cases = [
        // messages after the missing one
        vec![change(5), change(6)],
        vec![later(5), change(6)],
        vec![change(5), later(6), change(7)],
    ];
    for after_gap in &cases {
        let (mut live, _) = World::with_rain(Sequence::Checked);
        let (mut played, listing) = World::with_rain(Sequence::Ignored);
        for text in [&first, &change(2)] {
            assert_eq!(live.frame(text), played.frame(text), "{text}");
        }
        let live_updates = live.frame(&after_gap[0]);
        // The gap line in the recording.
        let mut replayed_updates = Vec::new();
        played.translate.gap(3, SEQUENCE_GAP, &mut replayed_updates);
        assert!(
            matches!(&replayed_updates[..], [FeedUpdate::Gap { tokens, .. }] if *tokens == listing.tokens),
            "{replayed_updates:?}"
        );
        replayed_updates.extend(played.frame(&after_gap[0]));
        assert_eq!(replayed_updates, live_updates);
        for text in &after_gap[1..] {
            assert_eq!(live.frame(text), played.frame(text), "{text}");
        }
        assert_eq!(live.skips.get(Skip::SequenceGap), 1);
    }
    println!("recorded gaps: {} cases", cases.len());
}
