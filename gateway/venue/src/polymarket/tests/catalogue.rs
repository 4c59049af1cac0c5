//! Catalogue rows: listings, dates, strikes, categories, states and results.

use super::*;

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
    assert_eq!(brief(&updates), "", "listed twice");
}

#[test]
fn windows_are_recognised_by_slug_and_dated_by_the_venue() {
    let mut world = World::new();
    let updates = world.rest("/markets?slug=btc-updown-5m-1773307200", &format!("[{WINDOW}]"));
    let (listing, state) = listings(&updates)[0];
    let window = listing.updown.unwrap();
    assert_eq!((window.asset, window.interval), (Asset::Btc, Interval::FiveMinutes));
    assert_eq!((window.start.secs(), window.end.secs()), (1_773_307_200, 1_773_307_500));
    assert_eq!((listing.category, listing.start), (Category::Crypto, Some(window.start)));
    // Its end is long past and its book is empty.
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
fn strikes_come_from_the_market_and_its_event() {
    let strikes = |row: &str| -> Vec<(Option<String>, Option<String>)> {
        let updates = World::new().rest("/markets", row);
        let brief = updates.into_iter().filter_map(|update| match update {
            FeedUpdate::Strike { strike, price_to_beat, .. } => Some((strike, price_to_beat)),
            _ => None,
        });
        brief.collect()
    };
    let with = |fields: &str| format!("[{}]", WINDOW.replacen('{', &format!("{{{fields},"), 1));
    let of_event =
        |field: &str| format!("[{}]", WINDOW.replace(r#"{"id": "260654""#, &format!(r#"{{{field},"id": "260654""#)));
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (format!("[{WINDOW}]"), vec![]),
        (with(r#""groupItemThreshold":"2511.40""#), vec![(text("2511.40"), None)]),
        (with(r#""groupItemThreshold":2511.4"#), vec![(text("2511.4"), None)]),
        // 0 means none.
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
fn states_and_results_follow_the_rows_in_order() {
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
        let seen: Vec<String> = rows.iter().map(|body| brief(&world.rest("/markets?closed=true", body))).collect();
        assert_eq!(seen.join(";"), expected, "{rows:?}");
        let disagreements = u64::from(expected.ends_with(";;"));
        assert_eq!(world.skips.get(Skip::ResultsDisagree), disagreements);
    }
}

#[test]
fn an_announced_winner_confirms_final_prices_and_never_overrides_them() {
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
    assert_eq!(brief(&world.frame(&announced("1001"))), "Closed");
    assert_eq!(brief(&world.rest("/markets", &prices(1))), "Winner(First)");
    assert_eq!(brief(&world.frame(&announced("1001"))), "");
    let mut world = World::listed();
    assert_eq!(brief(&world.rest("/markets", &prices(1))), "Closed");
    assert_eq!(brief(&world.frame(&announced("1001"))), "Winner(First)");
    let mut world = World::listed();
    world.frame(&announced("1002"));
    assert_eq!(brief(&world.rest("/markets", &prices(1))), "");
    assert_eq!(world.skips.get(Skip::ResultsDisagree), 1);
    world.frame(&announced("9"));
    assert_eq!(world.skips.get(Skip::MissingField), 2, "one row of the fixture, and this winner");
}

#[test]
fn the_order_book_service_lists_and_resolves_too() {
    let mut world = World::new();
    let updates = world.rest("https://clob.example/markets", CLOB);
    let (listing, state) = listings(&updates)[0];
    assert_eq!((listing.category, listing.tick, state), (Category::Weather, TickSize(10), MarketState::Active));
    let closed = CLOB.replace("\"closed\": false", "\"closed\": true").replace("0.4,", "1,").replace("0.6,", "0,");
    assert_eq!(brief(&world.rest("/sampling-markets", &closed)), "Closed");
    let won = closed.replacen("\"winner\": false", "\"winner\": true", 1);
    assert_eq!(brief(&world.rest("/markets", &won)), "Winner(First)");
}

#[test]
fn an_older_page_reverts_nothing() {
    let row = |second: Option<u8>, fields: &str| {
        let changed = second.map(|second| format!(r#""updatedAt":"2026-08-28T10:00:{second:02}.123456Z","#));
        let changed = changed.unwrap_or_default();
        format!(r#"[{{"conditionId":"{ADAMS}","active":true,"endDate":"2026-11-03T00:00:00Z",{changed}{fields}}}]"#)
    };
    let open = r#""closed":false,"outcomePrices":"[\"0.5\",\"0.5\"]""#;
    let halted = r#""closed":false,"acceptingOrders":false"#;
    let closed = r#""closed":true,"outcomePrices":"[\"0.7\",\"0.3\"]""#;
    let won = r#""closed":true,"outcomePrices":"[\"1\",\"0\"]","umaResolutionStatus":"resolved""#;
    let rows = [
        // `updatedAt` of the row, its content, the change
        (Some(5), open, ""),
        (Some(10), closed, "Closed"),
        // Requested before the closing, received after it.
        (Some(5), open, ""),
        (Some(10), open, ""),
        // A row without `updatedAt` opens nothing either.
        (None, open, ""),
        (Some(11), open, "Active"),
        (Some(10), closed, ""),
        (Some(10), halted, ""),
        (Some(12), halted, "Halted"),
        (None, closed, "Closed"),
        (Some(12), open, ""),
        (Some(13), open, "Active"),
        (None, won, "Winner(First)"),
        (Some(14), open, ""),
    ];
    let mut world = World::listed();
    for (number, (second, fields, expected)) in rows.iter().enumerate() {
        assert_eq!(brief(&world.rest("/markets?limit=50", &row(*second, fields))), *expected, "row {number}");
    }
    assert_eq!(world.skips.get(Skip::OutOfOrder), 3);
    println!("pages of different age: {} cases", rows.len());
}

#[test]
fn a_new_market_waits_for_its_row_if_there_is_a_catalogue() {
    let mut world = World::listed();
    world.translate.wait_for_rows();
    let condition = |number: u64| format!("0x{number:064x}");
    let new = |number: u64| {
        format!(
            r#"{{"event_type":"new_market","id":"{number}","market":"{}","slug":"new-{number}","assets_ids":["{number}1","{number}2"],"outcomes":["Yes","No"],"tags":["stocks"],"active":true}}"#,
            condition(number)
        )
    };
    let row = |number: u64, more: &str| {
        format!(
            r#"[{{"conditionId":"{}","slug":"new-{number}","clobTokenIds":"[\"{number}1\",\"{number}2\"]","active":true{more}}}]"#,
            condition(number)
        )
    };
    let waiting = |world: &mut World| {
        let ids = |listing: &Listing| listing.venue_market_id.clone();
        let new: Vec<String> = world.translate.newly_announced().map(ids).collect();
        let all: Vec<String> = world.translate.announced().map(ids).collect();
        format!("{} of {}", new.join(" "), all.join(" "))
    };
    for number in [5, 6, 5, 7] {
        assert_eq!(brief(&world.frame(&new(number))), "", "{number}");
    }
    assert_eq!(waiting(&mut world), "5 6 7 of 5 6 7");
    assert_eq!(waiting(&mut world), " of 5 6 7", "returned once as new");
    world.frame(&new(8));
    // The row has fields that the message lacks.
    let updates = world.rest("/markets", &row(8, r#","feeType":"crypto_fees_v2","negRisk":true"#));
    let (listing, state) = listings(&updates)[0];
    assert_eq!((listing.category, listing.neg_risk, state), (Category::Crypto, true, MarketState::Active));
    assert_eq!(waiting(&mut world), " of 5 6 7");
    // The message has tags that the row lacks.
    let updates = world.rest("/markets", &row(6, r#","negRisk":false"#));
    assert_eq!(
        (listings(&updates)[0].0.category, &*listings(&updates)[0].0.tags),
        (Category::Finance, &["stocks".to_owned()][..])
    );
    assert_eq!(brief(&world.frame(&new(6))), "");
    assert_eq!(waiting(&mut world), " of 5 7", "a listed market does not wait");
    (100..1_200).for_each(|number| drop(world.frame(&new(number))));
    assert_eq!(world.translate.newly_announced().count(), 1_024, "the bound of waiting markets");
    assert_eq!(world.translate.announced().next().map(|listing| &*listing.slug), Some("new-176"));
    println!("announced markets: 9 cases");
}

/// Prices that rows and books state; 0 and 1 are results and placeholders.
#[test]
fn stated_prices_are_emitted() {
    let stated = |updates: &[FeedUpdate]| {
        updates.iter().find_map(|update| match update {
            FeedUpdate::Stated { prices, .. } => {
                Some((prices.shown.map(|price| price.map(|price| price.0)), prices.last.map(|p| p.map(|p| p.0))))
            }
            _ => None,
        })
    };
    let gamma = |fields: &str| {
        format!(
            r#"[{{"id":"7","conditionId":"{}","clobTokenIds":"[\"71\",\"72\"]","outcomes":"[\"Yes\",\"No\"]","active":true,"closed":false,{fields}}}]"#,
            ADAMS.replace("aa", "ee")
        )
    };
    let both = Some(([Some(452_500), Some(547_500)], [Some(4_600), None]));
    let cases = [
        (gamma(r#""outcomePrices":"[\"0.4525\", \"0.5475\"]","lastTradePrice":0.46"#), both),
        (gamma(r#""outcomePrices":["0.4525","0.5475"],"lastTradePrice":"0.46""#), both),
        (gamma(r#""outcomePrices":"[\"0.45255\", \"0.54745\"]""#), Some(([Some(452_550), Some(547_450)], [None; 2]))),
        (gamma(r#""outcomePrices":"[\"0\", \"1\"]""#), None),
        (gamma(r#""outcomePrices":"[\"0\", \"0\"]","lastTradePrice":0"#), None),
        (gamma(r#""outcomePrices":"""#), None),
        (gamma(r#""outcomePrices":"[\"x\", \"0.5\", \"0.1\"]","lastTradePrice":1"#), None),
        (gamma(r#""lastTradePrice":0.001"#), Some(([None; 2], [Some(10), None]))),
        (
            // The order book's service, with its tokens in any order.
            format!(
                r#"{{"condition_id":"{}","question":"q","minimum_tick_size":0.01,"active":true,"closed":false,"tokens":[{{"token_id":"71","outcome":"Yes","price":0.31}},{{"token_id":"72","outcome":"No","price":0.69}}]}}"#,
                ADAMS.replace("aa", "ee")
            ),
            Some(([Some(310_000), Some(690_000)], [None; 2])),
        ),
    ];
    for (row, expected) in &cases {
        assert_eq!(stated(&World::new().rest("/markets", row)), *expected, "{row}");
    }
    let last = |text: &str, rest: bool| {
        let book = format!(
            r#"{{"event_type":"book","asset_id":"1001","timestamp":"1788000000100","hash":"h","bids":[],"asks":[],"last_trade_price":{text}}}"#
        );
        let mut world = World::listed();
        brief(&if rest { world.rest("/book", &book) } else { world.frame(&book) })
    };
    let books = [
        (r#""0.420""#, "1001=0/0 last 1001 4200 Some(3)"),
        (r#""0.5""#, "1001=0/0 last 1001 5000 Some(1)"),
        (r#"".42""#, "1001=0/0 last 1001 4200 None"),
        (r#""""#, "1001=0/0"),
        ("null", "1001=0/0"),
        (r#""0""#, "1001=0/0"),
        (r#""1""#, "1001=0/0"),
        (r#""0.42001""#, "1001=0/0"),
        (r#""up""#, "1001=0/0"),
        ("[]", "1001=0/0"),
    ];
    for (text, expected) in books {
        for rest in [false, true] {
            assert_eq!(last(text, rest), expected, "{text} {rest}");
        }
    }
    println!("stated prices: {} cases", cases.len() + 2 * books.len());
}
