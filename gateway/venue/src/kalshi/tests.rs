mod live;

use super::*;
use crate::skips::{Skip, Skips};
use crate::suite::broken;
use crate::{BookSide, FeedUpdate};
use engine::amount::{Price, Qty, TickSize};
use engine::id::Outcome;
use engine::market::terms::{Category, Listing, MarketState, Resolution};
use engine::time::Timestamp;
use smallvec::smallvec;
use std::sync::Arc;

const METADATA: &str = include_str!("fixtures/metadata.json");
const EVENTS: &str = include_str!("fixtures/events.json");
const RAIN: &str = "KXRAIN-26SEP01-T1";
const NOW: Timestamp = Timestamp(1_788_000_000_000_000);

struct World {
    translate: Translate,
    skips: Arc<Skips>,
}

impl World {
    fn new(sequence: Sequence) -> World {
        let skips = Arc::new(Skips::default());
        World { translate: Translate::new(sequence, skips.clone(), Default::default()), skips }
    }

    fn with_rain(sequence: Sequence) -> (World, Listing) {
        let mut world = World::new(sequence);
        let listing = world.translate.metadata(METADATA).remove(0).listing;
        (world, listing)
    }

    fn frame(&mut self, text: &str) -> Vec<FeedUpdate> {
        let mut updates = Vec::new();
        self.translate.frame(text, 3, NOW, &mut updates);
        updates
    }

    fn rest(&mut self, url: &str, body: &str) -> Vec<FeedUpdate> {
        let mut updates = Vec::new();
        self.translate.rest(url, 200, body, NOW, &mut updates);
        updates
    }
}

fn snapshot(yes: &str, no: &str) -> String {
    format!(
        r#"{{"type":"orderbook_snapshot","sid":1,"seq":1,"msg":{{"market_ticker":"{RAIN}","yes_dollars_fp":{yes},"no_dollars_fp":{no}}}}}"#
    )
}

fn delta(seq: u64, side: &str, price: &str, change: &str) -> String {
    format!(
        r#"{{"type":"orderbook_delta","sid":1,"seq":{seq},"msg":{{"market_ticker":"{RAIN}","price_dollars":{price},"delta_fp":{change},"side":"{side}","ts_ms":1788000000123}}}}"#
    )
}

#[test]
fn a_market_is_listed_with_lasting_fields_only() {
    let mut world = World::new(Sequence::Ignored);
    let dated = world.translate.metadata(METADATA).remove(0);
    let listing = dated.listing;
    assert_eq!(listing.condition, crate::ids::condition("kalshi:KXRAIN-26SEP01-T1"));
    assert_eq!(listing.tokens[1], crate::ids::token("kalshi:KXRAIN-26SEP01-T1:no"));
    assert_eq!((&*listing.question, &*listing.slug), ("Rain in Lisbon: More than 1 mm", "kxrain-26sep01-t1"));
    assert_eq!((listing.category, listing.tick), (Category::Weather, TickSize(100)));
    let event = listing.event.unwrap();
    assert_eq!((&*event.id, &*event.slug), ("kalshi:KXRAIN-26SEP01", "kxrain-26sep01"));
    let at = |text| crate::loose::instant(text).unwrap();
    assert_eq!(
        dated.changes,
        [
            (at("2026-09-01T08:00:00Z"), Change::Open),
            (at("2026-09-01T20:00:00Z"), Change::Close),
            (at("2026-09-01T20:05:30.25Z"), Change::Settle(Resolution::Winner(Outcome::Second))),
        ]
    );
    assert!(world.translate.metadata(METADATA).is_empty(), "listed twice");
}

#[test]
fn books_of_both_tokens_are_folded_in_one_frame() {
    let (mut world, listing) = World::with_rain(Sequence::Ignored);
    let updates = world.frame(&snapshot(r#"[["0.0100","5.00"],["0.4000","7.50"]]"#, r#"[["0.5500","3.00"]]"#));
    let [FeedUpdate::BookSnapshot { token, bids, asks, .. }, FeedUpdate::BookSnapshot { token: no, bids: no_bids, .. }] =
        updates.as_slice()
    else {
        panic!("{updates:?}")
    };
    assert_eq!([&**token, &**no], listing.tokens.each_ref().map(String::as_str));
    assert_eq!(bids, &[(Price(4_000), Qty(7_500_000)), (Price(100), Qty(5_000_000))]);
    assert_eq!(asks, &[(Price(4_500), Qty(3_000_000))]);
    assert_eq!(no_bids, &[(Price(5_500), Qty(3_000_000))]);

    let updates = world.frame(&delta(2, "no", "\"0.5500\"", "\"-1.25\""));
    let level = |token: usize, side, price| FeedUpdate::BookDelta {
        token: listing.tokens[token].as_str().into(),
        levels: smallvec![(side, Price(price), Qty(1_750_000))],
        venue_ts: Timestamp::from_millis(1_788_000_000_123),
    };
    assert_eq!(updates, [level(0, BookSide::Ask, 4_500), level(1, BookSide::Bid, 5_500)]);
}

#[test]
fn an_empty_side_is_left_out_or_null() {
    let (mut world, _) = World::with_rain(Sequence::Ignored);
    for msg in [r#""no_dollars_fp":null"#, r#""no_dollars_fp":[]"#, r#""market_id":"x""#] {
        let text = format!(r#"{{"type":"orderbook_snapshot","msg":{{"market_ticker":"{RAIN}",{msg}}}}}"#);
        let updates = world.frame(&text);
        assert!(
            matches!(&updates[..], [FeedUpdate::BookSnapshot { bids, asks, .. }, _] if bids.is_empty() && asks.is_empty()),
            "{updates:?}"
        );
    }
    assert_eq!(world.skips.total(), 0);
}

#[test]
fn a_size_below_zero_is_a_gap_until_the_next_snapshot() {
    let (mut world, listing) = World::with_rain(Sequence::Ignored);
    assert_eq!(world.frame(&delta(1, "yes", "\"0.4000\"", "\"1.00\"")), []);
    assert_eq!(world.skips.get(Skip::NoSnapshot), 1);
    world.frame(&snapshot(r#"[["0.4000","2.00"]]"#, "[]"));
    let updates = world.frame(&delta(2, "yes", "\"0.4000\"", "\"-2.01\""));
    assert!(matches!(&updates[..], [FeedUpdate::Gap { tokens, .. }] if *tokens == listing.tokens), "{updates:?}");
    assert_eq!(world.frame(&delta(3, "yes", "\"0.4000\"", "\"1.00\"")), []);
    assert_eq!((world.skips.get(Skip::BelowZero), world.skips.get(Skip::NoSnapshot)), (1, 2));
    assert_eq!(world.frame(&snapshot("[]", "[]")).len(), 2);
    assert_eq!(world.frame(&delta(4, "yes", "\"0.4000\"", "\"1.00\"")).len(), 2);
}

#[test]
fn missing_sequence_numbers_are_a_gap_in_live_data() {
    for (sequence, gaps) in [(Sequence::Checked, 1), (Sequence::Ignored, 0)] {
        let (mut world, _) = World::with_rain(sequence);
        world.frame(&snapshot(r#"[["0.4000","2.00"]]"#, "[]"));
        assert_eq!(world.frame(&delta(2, "yes", "\"0.4000\"", "\"1.00\"")).len(), 2);
        world.frame(&delta(4, "yes", "\"0.4000\"", "\"1.00\""));
        assert_eq!(world.skips.get(Skip::SequenceGap), gaps, "{sequence:?}");
        assert_eq!(world.skips.get(Skip::NoSnapshot), gaps, "{sequence:?}");
    }
}

#[test]
fn numbers_come_as_texts_or_numbers_in_dollars_or_cents() {
    let (mut world, _) = World::with_rain(Sequence::Ignored);
    world.frame(&format!(
        r#"{{"type":"orderbook_snapshot","msg":{{"market_ticker":"{RAIN}","yes":[[41,250]],"no":[["55","3"]]}}}}"#
    ));
    for (text, size) in [
        (delta(1, "yes", "0.41", "10"), 260),
        (delta(1, "yes", "\"0.410000\"", "\"-5.000000\""), 255),
        (
            format!(
                r#"{{"type":"orderbook_delta","msg":{{"market_ticker":"{RAIN}","price":41,"delta":-55,"side":"yes"}}}}"#
            ),
            200,
        ),
    ] {
        let updates = world.frame(&text);
        assert!(
            matches!(&updates[..], [FeedUpdate::BookDelta { levels, .. }, _] if levels[0].2 == Qty::from_shares(size)),
            "{text}: {updates:?}"
        );
    }
    assert_eq!(world.frame(&delta(1, "yes", "\"0.41001\"", "\"1\"")), []);
    assert_eq!(world.frame(&delta(1, "yes", "\"1.0000\"", "\"1\"")), []);
    assert_eq!((world.skips.get(Skip::PriceTooFine), world.skips.get(Skip::PriceOutOfRange)), (1, 1));
}

#[test]
fn a_trade_is_on_the_takers_token() {
    let (mut world, listing) = World::with_rain(Sequence::Ignored);
    for (side, token, price) in [("yes", 0, 3_300), ("no", 1, 6_700)] {
        let updates = world.frame(&format!(
            r#"{{"type":"trade","sid":2,"seq":7,"msg":{{"trade_id":"t","market_ticker":"{RAIN}","yes_price_dollars":"0.3300","no_price_dollars":"0.6700","count_fp":"5.78","taker_side":"{side}","ts":1786405577,"ts_ms":1786405577414}}}}"#
        ));
        let expected = FeedUpdate::LastTrade {
            token: listing.tokens[token].as_str().into(),
            price: Price(price),
            size: Qty(5_780_000),
            taker_buys: true,
            venue_ts: Timestamp::from_millis(1_786_405_577_414),
            id: Some("t".into()),
            fee_rate_bps: None,
        };
        assert_eq!(updates, [expected]);
    }
}

#[test]
fn the_tick_of_a_tapered_market_follows_its_midpoint() {
    let mut world = World::new(Sequence::Ignored);
    let updates = world.rest("https://host/trade-api/v2/events?with_nested_markets=true", EVENTS);
    let [FeedUpdate::Listed { listing, state }, FeedUpdate::Figures { figures, .. }] = updates.as_slice() else {
        panic!("{updates:?}")
    };
    assert_eq!((listing.tick, *state), (TickSize(10), MarketState::Active));
    assert_eq!((&*listing.question, listing.category), ("Fed decision in September: Cut", Category::Economics));
    assert_eq!((figures.volume_24h, figures.liquidity), (Some(10_250_000), Some(77_123_400)));
    assert_eq!(world.skips.get(Skip::NotBinary), 1);

    let book = |yes: &str, no: &str| {
        format!(r#"{{"orderbook_fp":{{"yes_dollars":[["{yes}","5"]],"no_dollars":[["{no}","5"]]}}}}"#)
    };
    let url = "/trade-api/v2/markets/KXFED-26SEP-CUT/orderbook";
    for (yes, no, tick) in [("0.5000", "0.4900", Some(100)), ("0.4000", "0.4900", None), ("0.0500", "0.9400", Some(10))]
    {
        let updates = world.rest(url, &book(yes, no));
        let changed = updates.iter().find_map(|update| match update {
            FeedUpdate::TickChanged { tick, .. } => Some(tick.0),
            _ => None,
        });
        assert_eq!(changed, tick, "{yes} {no}");
    }
}

#[test]
fn a_rest_row_changes_state_end_and_result_once() {
    let mut world = World::new(Sequence::Ignored);
    world.rest("/events", EVENTS);
    let row = |status: &str, result: &str, close: &str| {
        format!(
            r#"{{"market":{{"ticker":"KXFED-26SEP-CUT","status":"{status}","result":"{result}","close_time":"{close}","settlement_value_dollars":"1.0000"}}}}"#
        )
    };
    let (close, later) = ("2026-09-17T18:00:00Z", "2026-09-18T18:00:00Z");
    for (body, expected) in [
        (row("active", "", close), ""),
        (row("inactive", "", close), "StateChanged Halted"),
        (row("active", "", later), "EndChanged;StateChanged Active"),
        (row("determined", "yes", later), "StateChanged Closed"),
        (row("finalized", "scalar", later).replace("1.0000", "0.3"), ""),
        (row("finalized", "yes", later), "Resolved Winner(First)"),
        (row("finalized", "yes", later), ""),
        (row("finalized", "no", later).replace("1.0000", "0"), ""),
        (row("active", "", close), ""),
    ] {
        let updates = world.rest("https://h/trade-api/v2/markets/KXFED-26SEP-CUT", &body);
        let seen: Vec<String> = updates
            .iter()
            .map(|update| match update {
                FeedUpdate::StateChanged { state, .. } => format!("StateChanged {state:?}"),
                FeedUpdate::EndChanged { .. } => "EndChanged".into(),
                FeedUpdate::Resolved { resolution, .. } => format!("Resolved {resolution:?}"),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(seen.join(";"), expected, "{body}");
    }
    assert_eq!((world.skips.get(Skip::UnsupportedResult), world.skips.get(Skip::ResultsDisagree)), (1, 1));
}

#[test]
fn lifecycle_frames_list_and_change_markets() {
    let mut world = World::new(Sequence::Ignored);
    let event = |kind: &str, more: &str| {
        format!(
            r#"{{"type":"market_lifecycle_v2","sid":3,"msg":{{"market_ticker":"KXNEW-1","event_type":"{kind}"{more}}}}}"#
        )
    };
    let created = event(
        "created",
        r#","open_ts":1788000100,"close_ts":1788086400,"additional_metadata":{"event_ticker":"KXNEW","title":"New?","yes_sub_title":"New?"}"#,
    );
    assert_eq!(world.frame(&event("activated", "")), []);
    assert_eq!(world.skips.get(Skip::Unlisted), 1);
    let updates = world.frame(&created);
    let [FeedUpdate::Listed { listing, state: MarketState::Upcoming }] = updates.as_slice() else {
        panic!("{updates:?}")
    };
    assert_eq!((&*listing.question, listing.end), ("New?", Some(Timestamp::from_secs(1_788_086_400))));
    assert_eq!(world.frame(&created), []);
    let condition = listing.condition.clone();
    let state = |state| FeedUpdate::StateChanged { condition: condition.clone(), state };
    assert_eq!(world.frame(&event("activated", "")), [state(MarketState::Active)]);
    assert_eq!(world.frame(&event("deactivated", "")), [state(MarketState::Halted)]);
    assert_eq!(world.frame(&event("determined", r#","result":"no""#)), [state(MarketState::Closed)]);
    let resolution = Resolution::Winner(Outcome::Second);
    assert_eq!(
        world.frame(&event("settled", "")),
        [FeedUpdate::Resolved { condition: condition.clone(), resolution, venue_ts: NOW }]
    );
    assert_eq!(world.frame(&event("settled", r#","result":"yes""#)), []);
    assert_eq!(world.skips.get(Skip::ResultsDisagree), 1);
}

#[test]
fn no_broken_message_stops_the_translator() {
    let created = r#"{"type":"market_lifecycle_v2","sid":3,"msg":{"market_ticker":"KXNEW-1","event_type":"created","open_ts":1788000100,"close_ts":1788086400,"additional_metadata":{"event_ticker":"KXNEW","title":"New?"}}}"#;
    let trade = r#"{"type":"trade","sid":2,"seq":7,"msg":{"market_ticker":"KXRAIN-26SEP01-T1","yes_price_dollars":"0.3300","no_price_dollars":"0.6700","count_fp":"5.78","taker_side":"yes","ts_ms":1786405577414}}"#;
    let frames = [
        snapshot(r#"[["0.4000","2.00"],["0.1000","1"]]"#, r#"[["0.5000","2.00"]]"#),
        delta(1, "yes", "\"0.4000\"", "\"1.00\""),
        format!("[{}]", delta(1, "no", "\"0.5000\"", "\"-1.00\"")),
        trade.to_string(),
        created.to_string(),
    ];
    let book = r#"{"orderbook_fp":{"yes_dollars":[["0.4","5"]],"no_dollars":null}}"#;
    let answers = [
        ("/events", EVENTS),
        ("/markets/KXRAIN-26SEP01-T1/orderbook", book),
        ("/series/KXRAIN", r#"{"series":{"ticker":"KXRAIN","category":"Sports"}}"#),
    ];
    let (mut cases, mut counted) = (0, 0);
    for sequence in [Sequence::Checked, Sequence::Ignored] {
        let (mut world, _) = World::with_rain(sequence);
        for case in frames.iter().flat_map(|payload| broken(payload)) {
            world.frame(&case);
            cases += 1;
        }
        for (url, case) in answers.iter().flat_map(|(url, body)| broken(body).into_iter().map(move |case| (url, case)))
        {
            world.rest(url, &case);
            cases += 1;
        }
        for case in broken(METADATA) {
            world.translate.metadata(&case);
            cases += 1;
        }
        counted += world.skips.total();
        // The translator continues to work.
        let unnumbered = snapshot("[]", r#"[["0.5000","2.00"]]"#).replace(r#""sid":1,"seq":1,"#, "");
        assert_eq!(world.frame(&unnumbered).len(), 2);
    }
    println!("{cases} broken messages, {counted} skips counted");
    assert!(cases > 1_000 && counted > 1_000, "{cases} cases, {counted} counted");
}

/// The last price of a row is that of Yes; its complement is that of No.
#[test]
fn the_last_price_of_a_row_is_handed_out() {
    let cases = [
        (r#""last_price_dollars":"0.4100""#, Some([4_100, 5_900])),
        (r#""last_price_dollars":"0.4155","last_price":40"#, Some([4_155, 5_845])),
        (r#""last_price":41"#, Some([4_100, 5_900])),
        (r#""last_price_dollars":"0.0000""#, None),
        (r#""last_price_dollars":"1.0000""#, None),
        (r#""last_price_dollars":"""#, None),
        (r#""last_price":0"#, None),
        (r#""title":"t""#, None),
    ];
    for (fields, expected) in cases {
        let row = format!(r#"{{"markets":[{{"ticker":"KXP-1","status":"active",{fields}}}]}}"#);
        let updates = World::new(Sequence::Ignored).rest("/markets", &row);
        let last = updates.iter().find_map(|update| match update {
            FeedUpdate::Stated { prices, .. } => Some(prices.last.map(|price| price.expect("both").0)),
            _ => None,
        });
        assert_eq!(last, expected, "{fields}");
    }
    println!("last prices: {} cases", cases.len());
}

/// The fees of a market are those of its series, in any order of arrival; a change of the series is one of all its markets.
#[test]
fn the_fees_of_a_series_are_those_of_its_markets() {
    let event = |markets: &str| {
        format!(
            r#"{{"events":[{{"event_ticker":"KXA-1","series_ticker":"KXA","title":"t","category":"Sports","markets":[{markets}]}}]}}"#
        )
    };
    let market = |ticker: &str| format!(r#"{{"ticker":"{ticker}","status":"active"}}"#);
    let series = |fields: &str| format!(r#"{{"series":{{"ticker":"KXA","category":"Sports"{fields}}}}}"#);
    let quadratic = |times: &str| series(&format!(r#","fee_type":"quadratic","fee_multiplier":{times}"#));
    let fees = |updates: Vec<FeedUpdate>| -> Vec<Option<u32>> {
        let stated = updates.into_iter().filter_map(|update| match update {
            FeedUpdate::Fees { schedule, .. } => Some(schedule.map(|schedule| schedule.rate)),
            _ => None,
        });
        stated.collect()
    };
    for sequence in [Sequence::Checked, Sequence::Ignored] {
        let mut world = World::new(sequence);
        assert_eq!(fees(world.rest("/events", &event(&market("KXA-1-T1")))), [], "nothing is known yet");
        assert_eq!(fees(world.rest("/series/KXA", &series(""))), []);
        assert_eq!(fees(world.rest("/series/KXA", &quadratic("1"))), [Some(70_000)]);
        assert_eq!(fees(world.rest("/series/KXA", &quadratic("1"))), [], "no news");
        let both = format!("{},{}", market("KXA-1-T1"), market("KXA-1-T2"));
        assert_eq!(fees(world.rest("/events", &event(&both))), [Some(70_000)], "of the new market");
        assert_eq!(fees(world.rest("/series/KXA", &quadratic("0.5"))), [Some(35_000), Some(35_000)]);
        assert_eq!(fees(world.rest("/series/KXA", &series(r#","fee_type":"flat""#))), [None, None]);
        assert_eq!(world.skips.get(Skip::UnusableFees), 1);
        // Of another series.
        assert_eq!(fees(world.rest("/series/KXB", &quadratic("1").replace("KXA", "KXB"))), []);
        let mut later = World::new(sequence);
        assert!(later.translate.restore(&world.translate.save().expect("small")));
        assert_eq!(fees(later.rest("/series/KXA", &series(r#","fee_type":"flat""#))), [], "known before the pause");
        assert_eq!(fees(later.rest("/series/KXA", &quadratic("2"))), [Some(140_000), Some(140_000)]);
    }
    println!("fees of series: 2 × 10 cases");
}
