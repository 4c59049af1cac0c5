//! Recorded messages, and broken variants of messages.

use super::*;

#[test]
fn no_broken_message_stops_the_translator() {
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
    // The translator continues to work.
    let at = NOW.plus(super::spot::AHEAD_MAX).millis();
    let book = format!(r#"{{"event_type":"book","asset_id":"1001","timestamp":"{at}","bids":[],"asks":[]}}"#);
    assert_eq!(brief(&world.frame(&book)), "1001=0/0");
}

/// Recorded and abbreviated messages: catalogue rows first, then frames; none is broken.
#[test]
fn recorded_messages_are_translated() {
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
        witness.see(&Frame { connection: 0, received: NOW, is_answer: false, updates: &updates });
    }
    println!("{listed} markets, {:?}, skips {:?}", witness.counts, world.skips.nonzero().collect::<Vec<_>>());
    assert!(listed > 95, "{listed}");
    let page: serde_json::Value = serde_json::from_str(&read(&folder.join("http/markets.json"))).expect("a page");
    for row in page["data"].as_array().expect("rows") {
        let won = row["tokens"].as_array().is_some_and(|tokens| tokens.iter().any(|token| token["winner"] == true));
        let condition = row["condition_id"].as_str().unwrap_or_default();
        assert_eq!(witness.resolutions.contains_key(condition), won, "{condition}: resolved without a winner");
    }
    assert_eq!(world.skips.get(Skip::BadJson) + world.skips.get(Skip::ResultsDisagree), 0);
    let katana = witness.resolutions["0x8ccc3f4951ff02c1d34b87988752b4444ad17228732780a6cf22afefe8478bb6"];
    assert_eq!(katana.0, Resolution::Winner(Outcome::Second));

    // The tokens of the sample messages, listed so that the messages are not skipped.
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
        // Samples are of different years; each is translated without its time.
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

/// Complete Gamma rows of 5-minute windows of two days: all are listed, and resolved as recorded.
#[test]
fn recorded_windows_resolve_as_recorded() {
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
                assert!(brief(&updates).ends_with(winner), "{line}");
                resolved += 1;
            } else {
                assert!(!brief(&updates).contains("Winner"), "{line}");
            }
        }
        assert_eq!(world.skips.total(), 0);
    }
    println!("{resolved} windows resolved");
    assert!(resolved > 500, "{resolved}");
}
