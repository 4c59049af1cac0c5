//! Messages of sockets, and requested books.

use super::*;
use crate::BookSide;
use smallvec::smallvec;

#[test]
fn books_are_sorted_best_first_and_cleaned() {
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
        assert_eq!(brief(&world.frame(text)), expected, "{text}");
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
        assert_eq!(brief(&world.frame(text)), expected, "{text}");
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
fn old_and_repeated_messages_are_dropped() {
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
        // Older than another change but not than the snapshot: sizes are absolute, so it is applied.
        (change(1_050, "c"), "1001:1", None),
        (change(999, "d"), "", Some(Skip::OutOfOrder)),
        (book(1_150, "e"), "", Some(Skip::OutOfOrder)),
        (book(1_200, "f"), "1001=1/0", None),
    ] {
        let before = skipped.map_or(0, |kind| world.skips.get(kind));
        assert_eq!(brief(&world.frame(&text)), expected, "{text}");
        assert_eq!(skipped.map_or(0, |kind| world.skips.get(kind)), before + u64::from(skipped.is_some()), "{text}");
    }
    // After a gap the same snapshot makes the book current again.
    let mut updates = Vec::new();
    world.translate.gap(3, "reconnect", &mut updates);
    assert_eq!(brief(&updates), "gap");
    assert_eq!(brief(&world.frame(&book(1_200, "f"))), "1001=1/0");
    // The same after its market was left and is followed or subscribed again.
    assert_eq!(brief(&world.frame(&book(1_200, "f"))), "");
    world.translate.forget(&["1001".into(), "unknown".into()]);
    assert_eq!(brief(&world.frame(&change(1_300, "g"))), "", "a change without a book");
    assert_eq!(brief(&world.frame(&book(1_300, "f"))), "1001=1/0");
    world.translate.forget(&["1001".into()]);
    assert_eq!(brief(&world.frame(&book(1_200, "f"))), "1001=1/0", "an old snapshot");
    // REST responses are never repetitions.
    assert_eq!(brief(&world.rest("/book?token_id=1001", &book(1_200, "f"))), "1001=1/0");
    assert_eq!(brief(&world.rest("/books", &format!("[{},{{}}]", book(1_200, "f")))), "1001=1/0");
    world.translate.rest(("/book", 404, r#"{"error":"No orderbook exists"}"#), 0, NOW, &mut updates);
    assert_eq!(world.skips.get(Skip::HttpStatus), 0);
    world.translate.rest(("/events", 503, "{}"), 0, NOW, &mut updates);
    assert_eq!(world.skips.get(Skip::HttpStatus), 1);
}

#[test]
fn best_prices_come_last_and_only_if_they_can_be_compared() {
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
        assert_eq!(brief(&world.frame(&frame(std::slice::from_ref(change)))), *expected, "{change}");
    }
    let changes = [change(1001, "0.1", "0.5"), change(1002, "0.5", "0.9"), change(1001, "0.2", "0.5")];
    assert_eq!(brief(&world.frame(&frame(&changes))), "1001:1 1002:1 1001:1 top 1002 5000/9000 top 1001 2000/5000");
    let two = format!("[{},{}]", frame(&changes[..1]), frame(&changes[2..]));
    assert_eq!(brief(&world.frame(&two)), "1001:1 1001:1 top 1001 2000/5000", "one per token and frame");
    println!("best prices: {} cases", cases.len() + 2);
}

#[test]
fn changes_before_a_book_wait_for_it_and_future_times_are_replaced() {
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
        // Microseconds instead of milliseconds: treated as the time of arrival, so that later messages are not old.
        (book(now * 1_000), "1001=1/1"),
        (change(now + 1, "0.34"), "1001:1 top 1001 3400/5000"),
    ];
    for (number, (frame, expected)) in rows.iter().enumerate() {
        assert_eq!(brief(&world.frame(frame)), *expected, "row {number}");
    }
    assert_eq!(world.skips.get(Skip::NoSnapshot), 2);
    println!("changes before a book: {} cases", rows.len());
}

#[test]
fn later_changes_are_applied_to_a_requested_book() {
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
    // Requested, and older than changes that came meanwhile: they are applied, and the hash no longer fits.
    assert_eq!(world.rest("/books", &book(1_150, "b")), [merged(&[(3_000, 1)], 1_200, None, &[(6_000, 3)])]);
    assert_eq!(world.rest("/books", &book(1_300, "c")), [merged(&[(3_000, 1)], 1_300, Some("c"), &[(5_000, 1)])]);
    // Older than another snapshot.
    assert_eq!(world.rest("/books", &book(1_250, "d")), []);
    // The socket sends the same book: it is applied.
    assert_eq!(brief(&world.frame(&book(1_300, "c"))), "1001=1/1");
    // After a gap, older changes do not count, and a book dated before the last change is applied.
    world.frame(&change(1_400, "BUY", "0.31", "4"));
    world.translate.gap(3, "reconnect", &mut Vec::new());
    assert_eq!(world.frame(&book(1_350, "e")), [merged(&[(3_000, 1)], 1_350, Some("e"), &[(5_000, 1)])]);
    println!("requested books: 5 cases");
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
        assert_eq!(brief(&world.frame(text)), *expected, "{text}");
        assert_eq!(world.skips.total(), before + u64::from(expected.is_empty()), "skips are counted: {text}");
    }
    println!("prices of assets: {} cases", cases.len());
}

#[test]
fn one_book_in_a_hundred_is_checked_against_its_hash() {
    let mut world = World::listed();
    // The hash covers this text with an empty hash.
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
        world.translate.books_seen = 100;
        assert!(!brief(&world.rest("/book", &body)).is_empty(), "a book is used with any hash: {body}");
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
    assert_eq!(brief(&world.frame(&tick("1001", "0.001"))), "tick 10");
    assert_eq!(brief(&world.frame(&tick("1002", "0.001"))), "", "the second report of a tick");
    assert_eq!(brief(&world.frame(&tick("1002", "0.03"))), "");
    assert_eq!(world.skips.get(Skip::UnknownTick), 1);
    let trade = r#"{"event_type":"last_trade_price","asset_id":"1002","price":"0.69","side":"SELL","size":"85.36","timestamp":"1788000000100","fee_rate_bps":"0"}"#;
    let expected = FeedUpdate::LastTrade {
        token: "1002".into(),
        price: Price(6_900),
        size: Qty(85_360_000),
        taker_buys: false,
        venue_ts: Timestamp::from_millis(1_788_000_000_100),
        id: None,
        fee_rate_bps: Some(0),
    };
    assert_eq!(world.frame(trade), std::slice::from_ref(&expected));
    let hash = format!("0x{}", "a1".repeat(32));
    let hashed = trade.replace(r#""size""#, &format!(r#""transaction_hash":"{hash}","size""#));
    let updates = world.frame(&hashed);
    let [FeedUpdate::LastTrade { id, .. }] = &updates[..] else { panic!("{updates:?}") };
    assert_eq!(id.as_deref(), Some(hash.as_str()));
    assert_eq!(world.frame(&hashed.replace(&hash, "")), [expected], "an empty hash names no transaction");
    // The taker side is never inferred.
    let sideless = r#"{"event_type":"last_trade_price","asset_id":"1002","price":"0.69","side":"","size":"85.36","timestamp":"1788000000100"}"#;
    let expected = FeedUpdate::SidelessTrade {
        token: "1002".into(),
        price: Price(6_900),
        size: Qty(85_360_000),
        venue_ts: Timestamp::from_millis(1_788_000_000_100),
    };
    assert_eq!(world.frame(sideless), [expected]);
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
    assert_eq!(brief(&world.frame(&new("0.01"))), "");
    for (text, units) in [("0.005", 50), ("0.0025", 25)] {
        assert_eq!(brief(&World::new().frame(&new(text))), "listed Active", "{text}");
        assert_eq!(brief(&world.frame(&tick("1001", text))), format!("tick {units}"));
        assert_eq!(brief(&world.frame(&tick("1002", text))), "", "{text}");
    }
    // An unknown tick: listed, not tradable.
    assert_eq!(brief(&World::new().frame(&new("0.02"))), "listed Halted");
    // An unknown tick later: not tradable until a row has another one.
    assert_eq!(brief(&world.frame(&tick("1001", "0.02"))), "tick 200 Halted");
    assert_eq!(brief(&world.frame(&tick("1002", "0.02"))), "");
    assert_eq!(world.skips.get(Skip::UnknownTick), 2);
}

/// After an unreadable message the followed book may differ from the venue's, so it waits for a snapshot.
#[test]
fn an_unreadable_change_makes_the_book_stale() {
    let change = |field: &str, value: &str| {
        let plain = [("price", r#""0.51""#), ("size", r#""5""#), ("side", r#""BUY""#)];
        let fields = plain.map(|(name, usual)| format!(r#""{name}":{}"#, if name == field { value } else { usual }));
        format!(
            r#"{{"event_type":"price_change","market":"{ADAMS}","price_changes":[{{"asset_id":"1001",{}}}],"timestamp":"1788000000100"}}"#,
            fields.join(",")
        )
    };
    let rows = [
        (change("", ""), "1001:1"),
        (change("size", "null"), "gap"),
        (change("size", r#""1e300""#), "gap"),
        (change("size", "{}"), "gap"),
        (change("side", r#""HOLD""#), "gap"),
        (change("price", "null"), "gap"),
        (change("price", r#""abc""#), "gap"),
        // No ladder has such a level.
        (change("price", r#""0.51234""#), ""),
        (change("price", r#""1.5""#), ""),
        // Neither the levels nor the token can be read.
        (
            format!(
                r#"{{"event_type":"price_change","market":"{ADAMS}","price_changes":"x","timestamp":"1788000000100"}}"#
            ),
            "gap",
        ),
        (r#"{"event_type":"book","asset_id":"1001","bids":5,"asks":[],"timestamp":"1788000000100"}"#.into(), "gap"),
        // No followed token.
        (r#"{"event_type":"book","asset_id":"9","bids":5,"asks":[],"timestamp":"1788000000100"}"#.into(), ""),
        (r#"{"event_type":"price_change","market":"0x0","price_changes":"x"}"#.into(), ""),
        (r#"{"event_type":"new_market","bids":5}"#.into(), ""),
    ];
    for (frame, expected) in &rows {
        let mut world = World::listed().with_books();
        assert_eq!(brief(&world.frame(frame)), *expected, "{frame}");
        if *expected == "gap" {
            assert_eq!(brief(&world.frame(frame)), "", "reported twice: {frame}");
            assert_eq!(brief(&world.frame(&change("", ""))), "", "a change without a snapshot: {frame}");
            let book = r#"{"event_type":"book","asset_id":"1001","timestamp":"1788000000200","bids":[],"asks":[]}"#;
            assert_eq!(brief(&world.frame(book)), "1001=0/0", "{frame}");
        }
    }
    println!("unreadable changes: {} cases", rows.len());
}
