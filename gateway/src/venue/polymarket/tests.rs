use super::*;
use crate::venue::skips::{Skip, Skips};
use crate::venue::suite::{Witness, broken, recorded};
use crate::venue::{BookSide, FeedUpdate, Frame};
use engine::amount::{Price, Qty, TickSize};
use engine::id::Outcome;
use engine::market::terms::{Asset, Category, Interval, Listing, MarketState, Resolution};
use engine::time::Timestamp;
use smallvec::smallvec;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

const EVENTS: &str = include_str!("fixtures/gamma_events.json");
const WINDOW: &str = include_str!("fixtures/gamma_window.json");
const CLOB: &str = include_str!("fixtures/clob_market.json");
const ADAMS: &str = "0xaa00000000000000000000000000000000000000000000000000000000000001";
/// 2026-08-29.
const NOW: Timestamp = Timestamp(1_788_000_000_000_000);

struct World {
    translate: Translate,
    skips: Arc<Skips>,
}

impl World {
    fn new() -> World {
        let skips = Arc::new(Skips::default());
        World { translate: Translate::new(skips.clone(), Default::default()), skips }
    }

    fn listed() -> World {
        let mut world = World::new();
        world.rest("https://gamma-api.example/events?limit=100", EVENTS);
        world
    }

    /// With an empty book of each token, as old as can be: changes follow on it.
    fn with_books(mut self) -> World {
        let tokens: Vec<_> = self.translate.by_token.keys().cloned().collect();
        for token in tokens {
            self.frame(&format!(r#"{{"event_type":"book","asset_id":"{token}","timestamp":"1","bids":[],"asks":[]}}"#));
        }
        self
    }

    fn frame(&mut self, text: &str) -> Vec<FeedUpdate> {
        let mut updates = Vec::new();
        self.translate.frame(text, 3, NOW, &mut updates);
        updates
    }

    fn rest(&mut self, url: &str, body: &str) -> Vec<FeedUpdate> {
        let mut updates = Vec::new();
        self.translate.rest((url, 200, body), 0, NOW, &mut updates);
        updates
    }
}

fn listings(updates: &[FeedUpdate]) -> Vec<(&Listing, MarketState)> {
    let listed = updates.iter().filter_map(|update| match update {
        FeedUpdate::Listed { listing, state } => Some((&**listing, *state)),
        _ => None,
    });
    listed.collect()
}

/// Updates in a few words.
fn told(updates: &[FeedUpdate]) -> String {
    let words = updates.iter().map(|update| match update {
        FeedUpdate::Listed { state, .. } => format!("listed {state:?}"),
        FeedUpdate::StateChanged { state, .. } => format!("{state:?}"),
        FeedUpdate::EndChanged { .. } => "end".into(),
        FeedUpdate::TickChanged { tick, .. } => format!("tick {}", tick.0),
        FeedUpdate::Resolved { resolution, .. } => format!("{resolution:?}"),
        FeedUpdate::BookDelta { token, levels, .. } => format!("{token}:{}", levels.len()),
        FeedUpdate::BookSnapshot { token, bids, asks, .. } => format!("{token}={}/{}", bids.len(), asks.len()),
        FeedUpdate::LastTrade { token, .. } => format!("trade {token}"),
        FeedUpdate::Gap { .. } => "gap".into(),
        FeedUpdate::Figures { .. } => "figures".into(),
        FeedUpdate::Strike { .. } => "strike".into(),
        FeedUpdate::Top { token, bid, ask } => {
            let units = |price: &Option<Price>| price.map_or("none".into(), |price| price.0.to_string());
            format!("top {token} {}/{}", units(bid), units(ask))
        }
        FeedUpdate::Spot { asset, family, micros, at } => {
            format!("{} {family:?} {micros} at {}", asset.name(), at.millis())
        }
    });
    words.filter(|word| word != "figures").collect::<Vec<_>>().join(" ")
}

#[test]
fn a_page_of_events_lists_its_binary_markets() {
    let mut world = World::new();
    let updates = world.rest("/events", EVENTS);
    let listed = listings(&updates);
    let [(adams, MarketState::Active), (berger, MarketState::Halted)] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((&*adams.condition, &*adams.tokens[1], &*adams.outcomes[0]), (ADAMS, "1002", "Yes"));
    assert_eq!((adams.category, adams.tick, adams.neg_risk), (Category::Politics, TickSize(100), true));
    assert_eq!((adams.label.as_deref(), adams.min_order_size), (Some("Adams"), Some(Qty::from_shares(5))));
    assert_eq!((berger.tick, &*berger.tokens[0]), (TickSize(10), "2001"));
    let event = adams.event.as_ref().unwrap();
    assert_eq!((&*event.id, &*event.title), ("9001", "Next mayor of Port Elm"));
    let figures = updates.iter().find_map(|update| match update {
        FeedUpdate::Figures { figures, .. } => Some(*figures),
        _ => None,
    });
    let figures = figures.unwrap();
    assert_eq!((figures.volume_total, figures.volume_24h), (Some(5_000_123_456), Some(20_500_000)));
    assert_eq!((world.skips.get(Skip::MissingField), world.skips.get(Skip::NotBinary)), (1, 1));
    let updates = world.rest("/events/keyset?limit=5", &format!("{{\"events\":{EVENTS},\"next_cursor\":\"x\"}}"));
    assert_eq!(told(&updates), "", "known already");
}

#[test]
fn windows_are_told_by_slug_and_dated_by_the_venue() {
    let mut world = World::new();
    let updates = world.rest("/markets?slug=btc-updown-5m-1773307200", &format!("[{WINDOW}]"));
    let (listing, state) = listings(&updates)[0];
    let window = listing.updown.unwrap();
    assert_eq!((window.asset, window.interval), (Asset::Btc, Interval::FiveMinutes));
    assert_eq!((window.start.secs(), window.end.secs()), (1_773_307_200, 1_773_307_500));
    assert_eq!((listing.category, listing.start), (Category::Crypto, Some(window.start)));
    // Its end passed long before and nobody quotes it.
    assert_eq!(state, MarketState::Halted);
    for (slug, end, interval) in [
        ("bitcoin-up-or-down-march-12-2026-5am-et", "2026-03-12T10:00:00Z", Interval::Hour),
        ("btc-updown-4h-1773307200", "", Interval::FourHours),
        ("ndx-up-or-down-on-march-12-2026", "2026-03-12T16:00:00Z", Interval::Daily),
    ] {
        let body = WINDOW.replace("btc-updown-5m-1773307200", slug).replace("eventStartTime", "ignored");
        let body = body.replace("2026-03-12T09:25:00Z", end).replace("crypto_fees_v2", "");
        let updates = World::new().rest("/markets", &body);
        let listing = listings(&updates)[0].0;
        assert_eq!(listing.updown.unwrap().interval, interval, "{slug}");
        let finance = listing.updown.unwrap().asset == Asset::Ndx;
        assert_eq!(listing.category == Category::Finance, finance, "{slug}");
    }
}

#[test]
fn what_must_be_beaten_is_told_by_the_market_and_its_event() {
    let strikes = |row: &str| -> Vec<(Option<String>, Option<String>)> {
        let updates = World::new().rest("/markets", row);
        let told = updates.into_iter().filter_map(|update| match update {
            FeedUpdate::Strike { strike, price_to_beat, .. } => Some((strike, price_to_beat)),
            _ => None,
        });
        told.collect()
    };
    let with = |fields: &str| format!("[{}]", WINDOW.replacen('{', &format!("{{{fields},"), 1));
    let of_event =
        |field: &str| format!("[{}]", WINDOW.replace(r#"{"id": "260654""#, &format!(r#"{{{field},"id": "260654""#)));
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (format!("[{WINDOW}]"), vec![]),
        (with(r#""groupItemThreshold":"2511.40""#), vec![(text("2511.40"), None)]),
        (with(r#""groupItemThreshold":2511.4"#), vec![(text("2511.4"), None)]),
        // 0 stands for none.
        (with(r#""groupItemThreshold":"0""#), vec![]),
        (with(r#""groupItemThreshold":"1e5""#), vec![]),
        (of_event(r#""eventMetadata":{"priceToBeat":64999.53}"#), vec![(None, text("64999.53"))]),
        (of_event(r#""eventMetadata":{"priceToBeat":"0.5e3"}"#), vec![]),
        (of_event(r#""eventMetadata":{"finalPrice":1}"#), vec![]),
        (with(r#""groupItemThreshold":"7","x":1"#).replace("btc-updown-5m-1773307200", "will-btc-rise"), vec![]),
    ];
    for (row, expected) in &cases {
        assert_eq!(&strikes(row), expected, "{row}");
    }
    println!("strikes: {} cases", cases.len());
}

#[test]
fn a_category_comes_from_fee_type_then_name_then_tags() {
    for (more, expected) in [
        (r#""feeType":"sports_fees_v1","category":"Tech","tags":[{"slug":"crypto"}]"#, Category::Sports),
        (r#""category":"Tech","tags":[{"slug":"crypto"}]"#, Category::Tech),
        (r#""category":"US-current-affairs","tags":[{"slug":"fed"}]"#, Category::Economics),
        (r#""tags":["Pop Culture"]"#, Category::Culture),
        (r#""sportsMarketType":"moneyline","tags":[{"slug":"politics"}]"#, Category::Sports),
        (r#""feeType":"maker_v2","events":[{"id":"1","category":"Science"}]"#, Category::Tech),
        (r#""x":1"#, Category::Other),
    ] {
        let body =
            format!(r#"{{"conditionId":"{ADAMS}","clobTokenIds":"[\"1\",\"2\"]","slug":"s","active":true,{more}}}"#);
        let updates = World::new().rest("/markets", &body);
        assert_eq!(listings(&updates)[0].0.category, expected, "{more}");
    }
}

#[test]
fn states_and_results_follow_the_table_in_order() {
    let row = |fields: &str| {
        format!(
            r#"[{{"conditionId":"{ADAMS}","clobTokenIds":"[\"1001\",\"1002\"]","active":true,"endDate":"2026-11-03T00:00:00Z",{fields}}}]"#
        )
    };
    let closed = r#""closed":true,"acceptingOrders":false"#;
    for (rows, expected) in [
        (vec![row(r#""acceptingOrders":false"#), row(r#""acceptingOrders":true"#)], "Halted;Active"),
        (vec![row(r#""enableOrderBook":false"#)], "Halted"),
        (vec![row(&format!(r#"{closed},"outcomePrices":"[\"0\",\"0\"]""#))], "Closed"),
        (vec![row(&format!(r#"{closed},"outcomePrices":"[\"1\",\"0\"]""#))], "Closed"),
        (
            vec![row(&format!(r#"{closed},"outcomePrices":"[\"0.999\",\"0.001\"]","umaResolutionStatus":"resolved""#))],
            "Closed",
        ),
        (vec![row(&format!(r#"{closed},"outcomePrices":"[\"1\",\"0\"]","umaResolutionStatus":"disputed""#))], "Closed"),
        (
            vec![
                row(&format!(r#"{closed},"outcomePrices":"[\"0\",\"1\"]","umaResolutionStatus":"proposed""#)),
                row(&format!(r#"{closed},"outcomePrices":"[\"0\",\"1\"]","umaResolutionStatus":"resolved""#)),
                row(&format!(r#"{closed},"outcomePrices":"[\"1\",\"0\"]","umaResolutionStatus":"resolved""#)),
                row(r#""closed":false"#),
            ],
            "Closed;Winner(Second);;",
        ),
        (vec![row(&format!(r#"{closed},"outcomePrices":["0.5",0.5],"automaticallyResolved":true"#))], "Split"),
    ] {
        let mut world = World::listed();
        let seen: Vec<String> = rows.iter().map(|body| told(&world.rest("/markets?closed=true", body))).collect();
        assert_eq!(seen.join(";"), expected, "{rows:?}");
        let disagreements = u64::from(expected.ends_with(";;"));
        assert_eq!(world.skips.get(Skip::ResultsDisagree), disagreements);
    }
}

#[test]
fn an_announced_winner_confirms_final_prices_and_never_overrules_them() {
    let announced = |token: &str| {
        format!(
            r#"{{"event_type":"market_resolved","market":"{ADAMS}","winning_asset_id":"{token}","timestamp":"1788000000500"}}"#
        )
    };
    let prices = |first: u8| {
        format!(
            r#"{{"conditionId":"{ADAMS}","closed":true,"outcomePrices":"[\"{first}\",\"{}\"]","endDate":"2026-11-03T00:00:00Z"}}"#,
            1 - first
        )
    };
    let mut world = World::listed();
    assert_eq!(told(&world.frame(&announced("1001"))), "Closed");
    assert_eq!(told(&world.rest("/markets", &prices(1))), "Winner(First)");
    assert_eq!(told(&world.frame(&announced("1001"))), "");
    let mut world = World::listed();
    assert_eq!(told(&world.rest("/markets", &prices(1))), "Closed");
    assert_eq!(told(&world.frame(&announced("1001"))), "Winner(First)");
    let mut world = World::listed();
    world.frame(&announced("1002"));
    assert_eq!(told(&world.rest("/markets", &prices(1))), "");
    assert_eq!(world.skips.get(Skip::ResultsDisagree), 1);
    world.frame(&announced("9"));
    assert_eq!(world.skips.get(Skip::MissingField), 2, "one row of the fixture, and this winner");
}

#[test]
fn the_order_books_service_lists_and_resolves_too() {
    let mut world = World::new();
    let updates = world.rest("https://clob.example/markets", CLOB);
    let (listing, state) = listings(&updates)[0];
    assert_eq!((listing.category, listing.tick, state), (Category::Weather, TickSize(10), MarketState::Active));
    let closed = CLOB.replace("\"closed\": false", "\"closed\": true").replace("0.4,", "1,").replace("0.6,", "0,");
    assert_eq!(told(&world.rest("/sampling-markets", &closed)), "Closed");
    let won = closed.replacen("\"winner\": false", "\"winner\": true", 1);
    assert_eq!(told(&world.rest("/markets", &won)), "Winner(First)");
}

#[test]
fn books_are_turned_best_first_and_cleaned() {
    let mut world = World::listed();
    let updates = world.frame(
        r#"[{"event_type":"book","asset_id":"1001","market":"x","timestamp":"1788000000100","hash":"h1",
            "bids":[{"price":"0.30","size":"5"},{"price":".31","size":"7.5"},{"price":0.29,"size":1},{"price":"0.28","size":"0"}],
            "asks":[{"price":"0.99","size":"3"},{"price":"0.33","size":"2"},{"price":"0.32001","size":"9"},{"price":"1","size":"1"},{"price":"0.33","size":"4"}],
            "last_trade_price":"","tick_size":"0.001"}]"#,
    );
    let [
        FeedUpdate::TickChanged { tick: TickSize(10), .. },
        FeedUpdate::BookSnapshot { token, bids, asks, venue_ts, hash },
    ] = updates.as_slice()
    else {
        panic!("{updates:?}")
    };
    let shares = |hundredths: u64| Qty(hundredths * 10_000);
    assert_eq!((&**token, venue_ts.millis(), hash.as_deref()), ("1001", 1_788_000_000_100, Some("h1")));
    assert_eq!(bids, &[(Price(3_100), shares(750)), (Price(3_000), shares(500)), (Price(2_900), shares(100))]);
    assert_eq!(asks, &[(Price(3_300), shares(400)), (Price(9_900), shares(300))]);
    assert_eq!((world.skips.get(Skip::PriceTooFine), world.skips.get(Skip::PriceOutOfRange)), (1, 1));
    for (text, expected) in [
        (r#"{"event_type":"book","asset_id":"1002","timestamp":"1788000000100"}"#, "1002=0/0"),
        (
            r#"{"event_type":"book","asset_id":"1002","timestamp":"1788000000100","buys":[{"price":"0.5","size":"1"}],"sells":[]}"#,
            "1002=1/0",
        ),
        (r#"{"event_type":"book","asset_id":"1003","timestamp":"1788000000100"}"#, ""),
        ("[]", ""),
        ("PONG", ""),
    ] {
        assert_eq!(told(&world.frame(text)), expected, "{text}");
    }
    assert_eq!(world.skips.get(Skip::Unlisted), 1);
}

#[test]
fn changes_come_in_three_forms_and_for_both_tokens_at_once() {
    let mut world = World::listed().with_books();
    for (text, expected) in [
        (
            r#"{"event_type":"price_change","market":"x","timestamp":"1788000000100","price_changes":[
                {"asset_id":"1001","price":"0.3","size":"10","side":"BUY","hash":"a","best_bid":"0.3","best_ask":"0.32"},
                {"asset_id":"1001","price":"0.29","size":"0","side":"BUY","hash":"a"},
                {"asset_id":"1002","price":"0.7","size":"10","side":"SELL","hash":"b"}]}"#,
            "1001:2 1002:1 top 1001 3000/3200",
        ),
        (
            r#"{"event_type":"price_change","asset_id":"1001","timestamp":"1788000000200","changes":[
                {"price":"0.3","size":"11","side":"BUY"},{"price":"0.4","size":"12","side":"SELL"}]}"#,
            "1001:2",
        ),
        (
            r#"{"event_type":"price_change","asset_id":"1001","price":"0.514","side":"SELL","size":"21574.08","timestamp":"1788000000300","hash":"c"}"#,
            "1001:1",
        ),
        (
            r#"{"price_changes":[{"asset_id":"1002","price":"0.6","size":"1","side":"SELL"},{"asset_id":"9","price":"0.6","size":"1","side":"SELL"}],"timestamp":"1788000000300"}"#,
            "1002:1",
        ),
    ] {
        assert_eq!(told(&world.frame(text)), expected, "{text}");
    }
    let text = r#"{"event_type":"price_change","asset_id":"1001","price":"0.5","side":"SELL","size":"0","timestamp":"1788000000400"}"#;
    let deletion = FeedUpdate::BookDelta {
        token: "1001".into(),
        levels: smallvec![(BookSide::Ask, Price(5_000), Qty::ZERO)],
        venue_ts: Timestamp::from_millis(1_788_000_000_400),
    };
    assert_eq!(world.frame(text), [deletion]);
}

#[test]
fn what_is_old_or_told_twice_is_dropped() {
    let mut world = World::listed();
    let book = |at: u64, hash: &str| {
        format!(
            r#"{{"event_type":"book","asset_id":"1001","timestamp":"{at}","hash":"{hash}","bids":[{{"price":"0.3","size":"1"}}],"asks":[]}}"#
        )
    };
    let change = |at: u64, hash: &str| {
        format!(
            r#"{{"event_type":"price_change","timestamp":"{at}","price_changes":[{{"asset_id":"1001","price":"0.3","size":"2","side":"BUY","hash":"{hash}"}}]}}"#
        )
    };
    for (text, expected, skipped) in [
        (book(1_000, "a"), "1001=1/0", None),
        (book(1_000, "a"), "", Some(Skip::Duplicate)),
        (change(1_100, "b"), "1001:1", None),
        (change(1_100, "b"), "", Some(Skip::Duplicate)),
        (change(1_200, "b"), "1001:1", None),
        // Older than another change, but not than the snapshot: absolute, so it counts.
        (change(1_050, "c"), "1001:1", None),
        (change(999, "d"), "", Some(Skip::OutOfOrder)),
        (book(1_150, "e"), "", Some(Skip::OutOfOrder)),
        (book(1_200, "f"), "1001=1/0", None),
    ] {
        let before = skipped.map_or(0, |kind| world.skips.get(kind));
        assert_eq!(told(&world.frame(&text)), expected, "{text}");
        assert_eq!(skipped.map_or(0, |kind| world.skips.get(kind)), before + u64::from(skipped.is_some()), "{text}");
    }
    // Behind a gap the same snapshot again is what makes the token good.
    let mut updates = Vec::new();
    world.translate.gap(3, "reconnect", &mut updates);
    assert_eq!(told(&updates), "gap");
    assert_eq!(told(&world.frame(&book(1_200, "f"))), "1001=1/0");
    // REST answers are asked for and never a repetition.
    assert_eq!(told(&world.rest("/book?token_id=1001", &book(1_200, "f"))), "1001=1/0");
    assert_eq!(told(&world.rest("/books", &format!("[{},{{}}]", book(1_200, "f")))), "1001=1/0");
    world.translate.rest(("/book", 404, r#"{"error":"No orderbook exists"}"#), 0, NOW, &mut updates);
    assert_eq!(world.skips.get(Skip::HttpStatus), 0);
    world.translate.rest(("/events", 503, "{}"), 0, NOW, &mut updates);
    assert_eq!(world.skips.get(Skip::HttpStatus), 1);
}

#[test]
fn best_prices_are_told_last_and_only_where_they_can_be_compared() {
    let mut world = World::listed().with_books();
    let change = |token: u16, bid: &str, ask: &str| {
        format!(r#"{{"asset_id":"{token}","price":"0.3","size":"10","side":"BUY","best_bid":{bid},"best_ask":{ask}}}"#)
    };
    let frame = |changes: &[String]| {
        format!(
            r#"{{"event_type":"price_change","timestamp":"1788000000100","price_changes":[{}]}}"#,
            changes.join(",")
        )
    };
    let cases = [
        (change(1001, r#""0.3""#, "0.32"), "1001:1 top 1001 3000/3200"),
        (change(1001, r#""0""#, r#""1""#), "1001:1 top 1001 none/none"),
        (change(1001, r#""""#, r#""0.5""#), "1001:1 top 1001 none/5000"),
        (change(1001, "null", r#""0.5""#), "1001:1"),
        (change(1001, r#""0.30005""#, r#""0.5""#), "1001:1"),
        (change(1001, r#""7""#, r#""0.5""#), "1001:1"),
        (change(1001, r#""-1""#, r#""0.5""#), "1001:1"),
        (change(9, r#""0.3""#, r#""0.5""#), ""),
    ];
    for (change, expected) in &cases {
        assert_eq!(told(&world.frame(&frame(std::slice::from_ref(change)))), *expected, "{change}");
    }
    let changes = [change(1001, "0.1", "0.5"), change(1002, "0.5", "0.9"), change(1001, "0.2", "0.5")];
    assert_eq!(told(&world.frame(&frame(&changes))), "1001:1 1002:1 1001:1 top 1002 5000/9000 top 1001 2000/5000");
    let two = format!("[{},{}]", frame(&changes[..1]), frame(&changes[2..]));
    assert_eq!(told(&world.frame(&two)), "1001:1 1001:1 top 1001 2000/5000", "one of each token in a frame");
    println!("best prices: {} cases", cases.len() + 2);
}

#[test]
fn changes_before_a_book_wait_for_it_and_no_book_comes_from_the_future() {
    let mut world = World::listed();
    let change = |at: u64, price: &str| {
        format!(
            r#"{{"event_type":"price_change","timestamp":"{at}","price_changes":[{{"asset_id":"1001","price":"{price}","size":"7","side":"BUY","hash":"h","best_bid":"{price}","best_ask":"0.5"}}]}}"#
        )
    };
    let book = |at: u64| {
        format!(
            r#"{{"event_type":"book","asset_id":"1001","timestamp":"{at}","hash":"h","bids":[{{"price":"0.3","size":"1"}}],"asks":[{{"price":"0.5","size":"1"}}]}}"#
        )
    };
    let now = NOW.millis();
    let rows = [
        (change(now - 20, "0.31"), ""),
        (change(now - 10, "0.32"), ""),
        (book(now - 10), "1001=1/1"),
        (change(now - 5, "0.33"), "1001:1 top 1001 3300/5000"),
        // Microseconds where milliseconds belong: it counts as of now, and what follows is not old.
        (book(now * 1_000), "1001=1/1"),
        (change(now + 1, "0.34"), "1001:1 top 1001 3400/5000"),
    ];
    for (number, (frame, expected)) in rows.iter().enumerate() {
        assert_eq!(told(&world.frame(frame)), *expected, "row {number}");
    }
    assert_eq!(world.skips.get(Skip::NoSnapshot), 2);
    println!("changes before a book: {} cases", rows.len());
}

#[test]
fn a_book_that_was_asked_for_takes_later_changes_in() {
    let mut world = World::listed();
    let book = |at: u64, hash: &str| {
        format!(
            r#"{{"event_type":"book","asset_id":"1001","timestamp":"{at}","hash":"{hash}","bids":[{{"price":"0.3","size":"1"}}],"asks":[{{"price":"0.5","size":"1"}}]}}"#
        )
    };
    let change = |at: u64, side: &str, price: &str, size: &str| {
        format!(
            r#"{{"event_type":"price_change","timestamp":"{at}","price_changes":[{{"asset_id":"1001","price":"{price}","size":"{size}","side":"{side}"}}]}}"#
        )
    };
    let millis = |at: u64| Timestamp::from_millis(at);
    world.frame(&book(1_000, "a"));
    world.frame(&change(1_100, "BUY", "0.31", "4"));
    world.frame(&change(1_200, "SELL", "0.5", "0"));
    world.frame(&change(1_200, "SELL", "0.6", "3"));
    let merged = |bids: &[(u16, u64)], at: u64, hash: Option<&str>, asks: &[(u16, u64)]| {
        let levels = |side: &[(u16, u64)]| side.iter().map(|&(p, q)| (Price(p), Qty(q * 1_000_000))).collect();
        let hash = hash.map(String::from);
        FeedUpdate::BookSnapshot {
            token: "1001".into(),
            bids: levels(bids),
            asks: levels(asks),
            venue_ts: millis(at),
            hash,
        }
    };
    // Asked for, and older than what came meanwhile: that is taken in, and the hash is no longer the book's.
    assert_eq!(world.rest("/books", &book(1_150, "b")), [merged(&[(3_000, 1)], 1_200, None, &[(6_000, 3)])]);
    assert_eq!(world.rest("/books", &book(1_300, "c")), [merged(&[(3_000, 1)], 1_300, Some("c"), &[(5_000, 1)])]);
    // Older than another whole book.
    assert_eq!(world.rest("/books", &book(1_250, "d")), []);
    // The socket tells the same book again: it is news all the same.
    assert_eq!(told(&world.frame(&book(1_300, "c"))), "1001=1/1");
    // Behind a gap nothing older counts, and a book that is dated before the last change is taken.
    world.frame(&change(1_400, "BUY", "0.31", "4"));
    world.translate.gap(3, "reconnect", &mut Vec::new());
    assert_eq!(world.frame(&book(1_350, "e")), [merged(&[(3_000, 1)], 1_350, Some("e"), &[(5_000, 1)])]);
    println!("books asked for: 5 cases");
}

#[test]
fn prices_of_assets_are_read_from_their_digits() {
    let mut world = World::listed();
    let now = NOW.millis();
    let price = |topic: &str, symbol: &str, more: &str| {
        format!(r#"{{"topic":"{topic}","type":"update","timestamp":{now},"payload":{{"symbol":"{symbol}",{more}}}}}"#)
    };
    let cases = [
        (price("crypto_prices", "btcusdt", r#""timestamp":1788000000000,"value":61035.86"#), "BTC Binance 61035860000 at 1788000000000"),
        (
            price("crypto_prices_chainlink", "eth/usd", r#""timestamp":1788000000001,"value":2000.1234567890123,"full_accuracy_value":"2000123456789012345678""#),
            "ETH Chainlink 2000123456 at 1788000000001",
        ),
        (
            price("crypto_prices_chainlink", "xrp/usd", r#""timestamp":"1788000000001","full_accuracy_value":"523412345678901234""#),
            "XRP Chainlink 523412 at 1788000000001",
        ),
        (price("crypto_prices", "solusdt", r#""full_accuracy_value":"150.07000000""#), "SOL Binance 150070000 at 1788000000000"),
        (price("crypto_prices", "btcusdt", r#""timestamp":99999999999999,"value":1"#), "BTC Binance 1000000 at 1788000000000"),
        (
            r#"{"topic":"crypto_prices","type":"subscribe","timestamp":1788000000000,"payload":{"symbol":"btcusdt","data":[{"timestamp":1787999999000,"value":5},{"timestamp":1788000000000,"value":6}]}}"#.into(),
            "BTC Binance 6000000 at 1788000000000",
        ),
        (price("crypto_prices", "btcusdt", r#""value":0"#), ""),
        (price("crypto_prices", "btcusdt", r#""value":-5"#), ""),
        (price("crypto_prices", "btcusdt", r#""value":1e400"#), ""),
        (price("crypto_prices", "btcusdt", r#""value":"NaN""#), ""),
        (price("crypto_prices", "dogeusdt", r#""value":5"#), ""),
        (price("equity_prices", "aapl", r#""value":5"#), ""),
        (r#"{"topic":"crypto_prices","type":"update"}"#.into(), ""),
        (r#"{"topic":"crypto_prices","payload":[1]}"#.into(), ""),
    ];
    for (text, expected) in &cases {
        let before = world.skips.total();
        assert_eq!(told(&world.frame(text)), *expected, "{text}");
        assert_eq!(world.skips.total(), before + u64::from(expected.is_empty()), "what is not read is counted: {text}");
    }
    println!("prices of assets: {} cases", cases.len());
}

#[test]
fn one_book_in_a_hundred_is_held_to_its_hash() {
    let mut world = World::listed();
    // The hash is of this text with an empty hash in it.
    let text = |hash: &str| {
        format!(
            r#"{{"market":"0xaa","asset_id":"1001","timestamp":"1788000000000","hash":"{hash}","bids":[{{"price":"0.3","size":"1"}}],"asks":[],"min_order_size":"5","tick_size":"0.01","neg_risk":false,"last_trade_price":"0.3"}}"#
        )
    };
    let right = "390794b290bc8552df6d5be0fd4ec676bfefb9b7";
    let lacking = r#"{"asset_id":"1001","timestamp":"1788000000000","hash":"x","bids":[],"asks":[]}"#;
    for (body, differs) in
        [(text(right), 0), (text(right).replace(",", ", "), 0), (text("wrong"), 1), (lacking.into(), 1)]
    {
        world.translate.books_heard = 100;
        assert!(!told(&world.rest("/book", &body)).is_empty(), "it is used all the same: {body}");
        world.rest("/book", &text("wrong"));
        assert_eq!(world.skips.get(Skip::HashDiffers), differs, "{body}");
    }
    println!("hashes: 4 cases");
}

#[test]
fn ticks_trades_and_new_markets() {
    let mut world = World::listed();
    let tick = |token: &str, tick: &str| {
        format!(
            r#"{{"event_type":"tick_size_change","asset_id":"{token}","old_tick_size":"0.01","new_tick_size":"{tick}","timestamp":"1"}}"#
        )
    };
    assert_eq!(told(&world.frame(&tick("1001", "0.001"))), "tick 10");
    assert_eq!(told(&world.frame(&tick("1002", "0.001"))), "", "each token reports it");
    assert_eq!(told(&world.frame(&tick("1002", "0.03"))), "");
    assert_eq!(world.skips.get(Skip::UnknownTick), 1);
    let trade = r#"{"event_type":"last_trade_price","asset_id":"1002","price":"0.69","side":"SELL","size":"85.36","timestamp":"1788000000100","fee_rate_bps":"0"}"#;
    let expected = FeedUpdate::LastTrade {
        token: "1002".into(),
        price: Price(6_900),
        size: Qty(85_360_000),
        taker_buys: false,
        venue_ts: Timestamp::from_millis(1_788_000_000_100),
    };
    assert_eq!(world.frame(trade), [expected]);
    let new = |tick: &str| {
        format!(
            r#"{{"event_type":"new_market","id":"5","question":"New?","market":"{}","slug":"new","assets_ids":["71","72"],"outcomes":["Yes","No"],
            "event_message":{{"id":"8","slug":"news","title":"News"}},"tags":["stocks"],"active":true,"order_price_min_tick_size":"{tick}","line":"","timestamp":"1766790415550"}}"#,
            ADAMS.replace("aa", "dd")
        )
    };
    let updates = world.frame(&new("0.01"));
    let (listing, state) = listings(&updates)[0];
    assert_eq!((state, listing.category, listing.sports), (MarketState::Active, Category::Finance, false));
    assert_eq!(told(&world.frame(&new("0.01"))), "");
    // A tick that is none of the specification's: listed, not tradable.
    assert_eq!(told(&World::new().frame(&new("0.005"))), "listed Halted");
}

#[test]
fn nothing_a_venue_writes_stops_the_translator() {
    let frames = [
        r#"{"event_type":"book","asset_id":"1001","market":"x","timestamp":"1788000000100","hash":"h","bids":[{"price":"0.30","size":"5"}],"asks":[{"price":"0.99","size":"3"}],"tick_size":"0.001"}"#,
        r#"{"event_type":"price_change","timestamp":"1788000000100","price_changes":[{"asset_id":"1001","price":"0.3","size":"2","side":"BUY","hash":"k"}]}"#,
        r#"{"event_type":"price_change","asset_id":"1001","timestamp":"1788000000200","changes":[{"price":"0.3","size":"11","side":"BUY"}]}"#,
        r#"{"event_type":"tick_size_change","asset_id":"1001","new_tick_size":"0.001","timestamp":"1"}"#,
        r#"{"event_type":"last_trade_price","asset_id":"1002","price":"0.69","side":"SELL","size":"85.36","timestamp":"1788000000100"}"#,
        r#"{"event_type":"new_market","id":"5","market":"0xdd00000000000000000000000000000000000000000000000000000000000001","assets_ids":["71","72"],"outcomes":["Yes","No"],"event_message":{"id":"8"},"tags":["stocks"]}"#,
        r#"{"event_type":"market_resolved","market":"0xaa00000000000000000000000000000000000000000000000000000000000002","winning_asset_id":"2001","timestamp":"1"}"#,
    ];
    let answers = [
        ("/events", EVENTS),
        ("/markets/1", WINDOW),
        ("/markets", CLOB),
        ("/book", r#"{"asset_id":"1001","timestamp":"1788000000100","bids":[{"price":"0.30","size":"5"}],"asks":[]}"#),
    ];
    let mut world = World::listed();
    let mut cases = 0;
    for case in frames.iter().flat_map(|payload| broken(payload)) {
        world.frame(&case);
        world.frame(&format!("[{case}]"));
        cases += 2;
    }
    for (url, case) in answers.iter().flat_map(|(url, body)| broken(body).into_iter().map(move |case| (url, case))) {
        world.rest(url, &case);
        cases += 1;
    }
    let counted = world.skips.total();
    println!("{cases} broken messages, {counted} skips counted: {:?}", world.skips.nonzero().collect::<Vec<_>>());
    assert!(cases > 2_000 && counted > 2_000, "{cases} cases, {counted} counted");
    // And goes on.
    let at = NOW.plus(super::spot::AHEAD_MAX).millis();
    let book = format!(r#"{{"event_type":"book","asset_id":"1001","timestamp":"{at}","bids":[],"asks":[]}}"#);
    assert_eq!(told(&world.frame(&book)), "1001=0/0");
}

/// Recorded and abbreviated messages: catalogue rows first, then everything as a frame; none is broken.
#[test]
fn recorded_messages_are_understood() {
    let Some(folder) = recorded("adapter_samples") else { return };
    let read = |path: &Path| std::fs::read_to_string(path).expect("a sample");
    let mut world = World::new();
    let mut witness = Witness::default();
    let mut listed = 0;
    let markets = folder.join("http/markets.json");
    for (url, path) in [
        ("/markets", markets),
        ("/markets", folder.join("http/market.json")),
        ("/events", folder.join("test_data/gamma_event.json")),
        ("/markets", folder.join("test_data/gamma_market.json")),
        ("/markets", folder.join("test_data/gamma_market_closed_binary_accepting_false.json")),
        ("/markets", folder.join("test_data/clob_market_closed_binary_accepting_false.json")),
        ("/markets", folder.join("test_data/gamma_market_closed_zero_zero_legacy.json")),
        ("/markets", folder.join("test_data/gamma_market_closed_nonbinary_legacy.json")),
        ("/markets", folder.join("test_data/gamma_market_sports_market_money_line.json")),
        ("/markets", folder.join("http/markets_list.json")),
    ] {
        let updates = world.rest(url, &read(&path));
        listed += listings(&updates).len();
        witness.see(&Frame { connection: 0, received: NOW, updates: &updates });
    }
    println!("{listed} markets, {:?}, skips {:?}", witness.counts, world.skips.nonzero().collect::<Vec<_>>());
    assert!(listed > 95, "{listed}");
    let page: serde_json::Value = serde_json::from_str(&read(&folder.join("http/markets.json"))).expect("a page");
    for row in page["data"].as_array().expect("rows") {
        let won = row["tokens"].as_array().is_some_and(|tokens| tokens.iter().any(|token| token["winner"] == true));
        let condition = row["condition_id"].as_str().unwrap_or_default();
        assert_eq!(witness.resolutions.contains_key(condition), won, "{condition}: final prices alone settle nothing");
    }
    assert_eq!(world.skips.get(Skip::BadJson) + world.skips.get(Skip::ResultsDisagree), 0);
    let katana = witness.resolutions["0x8ccc3f4951ff02c1d34b87988752b4444ad17228732780a6cf22afefe8478bb6"];
    assert_eq!(katana.0, Resolution::Winner(Outcome::Second));

    // The tokens of the sample messages, listed so that the messages count.
    for (number, token) in [
        "48331043336612883890938759509493159234755048973500640148014422747788308965732",
        "71321045679252212594626385532706912750332728571942532289631379312455583992563",
        "52114319501245915516055106046884209969926127482827954674443846427813813222426",
        "115474063863764126958837769719736461272619491980773624567012766320777398670353",
        "85354956062430465315924116860125388538595433819574542752031640332592237464430",
    ]
    .iter()
    .enumerate()
    {
        let condition = format!("0x{:064x}", number + 1);
        let row = format!(r#"{{"conditionId":"{condition}","clobTokenIds":["{token}","{number}"],"active":true}}"#);
        world.rest("/markets", &row);
    }
    world = world.with_books();
    for (file, expected) in [
        ("ws/book.json", "snapshot"),
        ("ws/price_change.json", "delta"),
        ("ws/price_change_v2.json", "delta"),
        ("ws/tick_size_change.json", "tick"),
        ("ws/last_trade_price.json", "trade"),
        ("test_data/ws_market_book_msg.json", "snapshot"),
        ("test_data/ws_market_price_change_msg.json", "delta"),
        ("test_data/ws_market_last_trade_msg.json", "trade"),
        ("test_data/ws_market_best_bid_ask_msg.json", ""),
        ("test_data/ws_market_new_market_msg.json", "listed"),
        ("test_data/ws_book_snapshot.json", "snapshot"),
        ("test_data/ws_quotes.json", "delta"),
    ] {
        // Samples are of all years; each is looked at for itself.
        let text = read(&folder.join(file)).replace("\"timestamp\"", "\"recorded\"");
        let updates = world.frame(&text);
        let kind = match updates.first() {
            Some(FeedUpdate::BookSnapshot { bids, .. }) if !bids.is_empty() => "snapshot",
            Some(FeedUpdate::BookDelta { .. }) => "delta",
            Some(FeedUpdate::TickChanged { .. }) => "tick",
            Some(FeedUpdate::LastTrade { .. }) => "trade",
            Some(FeedUpdate::Listed { .. }) => "listed",
            _ => "",
        };
        assert_eq!(kind, expected, "{file}: {updates:?}");
    }
}

/// Complete Gamma rows of two days of 5-minute windows: all are listed, and resolved as they are recorded.
#[test]
fn recorded_windows_resolve_as_they_did() {
    let Some(folder) = recorded("polymarket_gamma") else { return };
    let mut resolved = 0;
    for day in ["2026-06-08", "2026-07-24"] {
        let mut text = String::new();
        let file = std::fs::File::open(folder.join(format!("BTC-5m-markets-{day}.jsonl.gz"))).expect("a recorded day");
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("a whole file");
        let mut world = World::new();
        for line in text.lines() {
            let row: serde_json::Value = serde_json::from_str(line).expect("a line");
            let updates = world.rest("/markets", &row["raw"].to_string());
            let (listing, _) = listings(&updates)[0];
            let window = listing.updown.expect("a window");
            assert_eq!(
                (window.start.secs(), window.end.secs()),
                (row["start_sec"].as_u64().unwrap(), row["end_sec"].as_u64().unwrap())
            );
            assert_eq!(
                (listing.category, &*listing.tokens[0]),
                (Category::Crypto, row["token_ids"][0].as_str().unwrap())
            );
            let winner = match row["outcome_prices"][0].as_str() {
                Some("1") => "Winner(First)",
                _ => "Winner(Second)",
            };
            if row["resolved"] == true {
                assert!(told(&updates).ends_with(winner), "{line}");
                resolved += 1;
            } else {
                assert!(!told(&updates).contains("Winner"), "{line}");
            }
        }
        assert_eq!(world.skips.total(), 0);
    }
    println!("{resolved} windows resolved");
    assert!(resolved > 500, "{resolved}");
}
