//! The venue's catalogue service and its service of positions and trades (`[venue] facade`,
//! gateway/docs/venue-clients.md §9).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::Client;
use tests::json::{at, list, text};
use tests::server::ServerDir;
use tests::world::{World, market};

fn world() -> World {
    World::start_with(1, |place| _ = place.set("venue", "facade", "true"))
}

/// Condition ids of the rows, in their order.
fn conditions(rows: &Value) -> Vec<String> {
    list(rows, "").iter().map(|row| text(row, "/conditionId").to_owned()).collect()
}

/// The address of the account, as strict rows show it.
fn address(user: &mut Client) -> String {
    let rows = user.get("/v1/data/orders?status=ALL&dialect=strict").expect(200);
    text(&rows, "/data/0/maker_address").to_owned()
}

#[test]
fn there_is_no_facade_by_default() {
    let cases = Cases::of("facade, off");
    let world = World::start(1);
    for path in
        ["/v1/gamma/markets", "/v1/gamma/events", "/v1/gamma/tags", "/v1/data-api/positions", "/v1/data-api/value"]
    {
        world.user(0).get(path).refused(404, "NOT_FOUND");
        cases.one();
    }
}

#[test]
fn markets_are_those_of_the_catalogue() {
    let cases = Cases::of("gamma markets");
    let world = world();
    let m = &world.markets;
    let mut anyone = world.public();
    let row = anyone.get(&format!("/v1/gamma/markets?condition_ids={}", m.rain.condition)).expect(200)[0].clone();
    for (field, expected) in [
        ("conditionId", json!(m.rain.condition)),
        ("slug", json!(m.rain.slug)),
        ("outcomes", json!("[\"Yes\",\"No\"]")),
        ("clobTokenIds", json!(format!("[\"{}\",\"{}\"]", m.rain.yes(), m.rain.no()))),
        ("outcomePrices", json!("[\"0.415\",\"0.585\"]")),
        ("bestBid", json!(0.41)),
        ("bestAsk", json!(0.42)),
        ("spread", json!(0.01)),
        ("orderPriceMinTickSize", json!(0.01)),
        ("active", json!(true)),
        ("closed", json!(false)),
        ("acceptingOrders", json!(true)),
        ("negRisk", json!(false)),
        ("feeSchedule", json!({"exponent": 1, "rate": 0.05, "takerOnly": true, "rebateRate": 0})),
    ] {
        assert_eq!(row[field], expected, "{field}");
        cases.one();
    }
    let id = text(&row, "/id");
    for path in [format!("/v1/gamma/markets/{id}"), format!("/v1/gamma/markets/slug/{}", m.rain.slug)] {
        assert_eq!(anyone.get(&path).expect(200), row, "{path}");
        cases.one();
    }
    for path in ["/v1/gamma/markets/0", "/v1/gamma/markets/x", "/v1/gamma/markets/slug/none"] {
        anyone.get(path).refused(404, "MARKET_NOT_FOUND");
        cases.one();
    }
    // (query, listed markets): a closed market is only shown by name, or when closed ones are requested.
    let (rain, vote, decided) = (m.rain.condition.as_str(), m.vote.condition.as_str(), m.decided.condition.as_str());
    for (query, expected) in [
        (format!("slug={}", m.vote.slug), vec![vote]),
        (format!("clob_token_ids={}", m.rain.no()), vec![rain]),
        (format!("condition_ids={vote}&condition_ids={rain}"), vec![rain, vote]),
        (format!("condition_ids={rain},{vote}&limit=1"), vec![rain]),
        (format!("condition_ids={rain},{vote}&offset=1"), vec![vote]),
        (format!("condition_ids={decided}"), vec![decided]),
        (format!("condition_ids={decided}&closed=false"), vec![]),
        ("closed=true".to_owned(), vec![decided]),
        (format!("id={id}"), vec![rain]),
        ("condition_ids=0x1".to_owned(), vec![]),
    ] {
        let rows = anyone.get(&format!("/v1/gamma/markets?{query}")).expect(200);
        assert_eq!(conditions(&rows), expected, "{query}");
        cases.one();
    }
    // Pages with a cursor show each market once.
    let whole = conditions(&anyone.get("/v1/gamma/markets?limit=500").expect(200));
    for order in ["", "&order=volume24hr,id&ascending=false"] {
        let (mut paged, mut after) = (Vec::new(), String::new());
        loop {
            let page = anyone.get(&format!("/v1/gamma/markets/keyset?limit=2{order}{after}")).expect(200);
            paged.extend(conditions(at(&page, "/markets")));
            match page["next_cursor"].as_str() {
                Some(cursor) => after = format!("&after_cursor={}", cursor.replace('=', "%3D")),
                None => break,
            }
        }
        let (mut sorted, mut expected) = (paged.clone(), whole.clone());
        sorted.sort();
        expected.sort();
        assert_eq!(sorted, expected, "{order}");
        cases.one();
    }
}

#[test]
fn a_wrong_query_is_refused_with_its_fault() {
    let cases = Cases::of("facade, wrong queries");
    let world = world();
    for (path, status, code) in [
        ("/v1/gamma/markets?limit=0", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/markets?limit=501", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/markets?offset=-1", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/markets?active=perhaps", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/markets?order=1%3B%20DROP%20TABLE", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/markets?volume_num_min=NaN", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/markets?end_date_max=soon", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/markets/keyset?after_cursor=%25", 400, "INVALID_CURSOR"),
        ("/v1/gamma/events?limit=101", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/events/keyset?after_cursor=%25", 400, "INVALID_CURSOR"),
        ("/v1/gamma/tags?limit=301", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/public-search", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/public-search?q=rain&page=0", 422, "VALIDATION_FAILED"),
        ("/v1/gamma/events/none", 404, "NOT_FOUND"),
        ("/v1/data-api/positions?user=0x12", 422, "VALIDATION_FAILED"),
        ("/v1/data-api/positions?limit=501", 422, "VALIDATION_FAILED"),
        ("/v1/data-api/positions?sizeThreshold=x", 422, "VALIDATION_FAILED"),
        ("/v1/data-api/trades?side=HOLD", 422, "VALIDATION_FAILED"),
        ("/v1/data-api/trades?market=0x1,0x2", 422, "VALIDATION_FAILED"),
        ("/v1/data-api/value?user=me", 422, "VALIDATION_FAILED"),
        ("/v1/data-api/v2/trades?cursor=%25", 400, "INVALID_CURSOR"),
    ] {
        world.user(0).get(path).refused(status, code);
        cases.one();
    }
}

#[test]
fn events_hold_their_markets() {
    let cases = Cases::of("gamma events");
    let mut place = ServerDir::new();
    place.set("venue", "facade", "true");
    let server = place.start();
    let mut anyone = server.client();
    let events = anyone.get("/v1/gamma/events?limit=10").expect(200);
    assert_eq!(list(&events, "").len(), 10);
    for event in list(&events, "") {
        let (id, slug) = (text(event, "/id"), text(event, "/slug"));
        assert!(list(event, "/markets").iter().all(|market| market.get("events").is_none()), "{id}");
        for path in [format!("/v1/gamma/events/{id}"), format!("/v1/gamma/events/slug/{slug}")] {
            let one = anyone.get(&path).expect(200);
            assert_eq!(
                (text(&one, "/id"), list(&one, "/markets").len()),
                (id, list(event, "/markets").len()),
                "{path}"
            );
        }
        assert_eq!(text(&anyone.get(&format!("/v1/gamma/events?slug={slug}")).expect(200), "/0/id"), id);
        // Its markets name it, and have its tags.
        let market = text(event, "/markets/0/slug");
        let market = anyone.get(&format!("/v1/gamma/markets/slug/{market}")).expect(200);
        assert_eq!((text(&market, "/events/0/id"), &market["tags"]), (id, &event["tags"]));
        let tag = text(event, "/tags/0/id");
        for list_of in ["events", "markets"] {
            let tagged = anyone.get(&format!("/v1/gamma/{list_of}?tag_id={tag}&limit=100")).expect(200);
            assert!(list(&tagged, "").iter().all(|row| list(row, "/tags").iter().any(|one| one["id"] == tag)), "{tag}");
            assert!(!list(&tagged, "").is_empty(), "{tag}");
        }
        let slug = text(event, "/markets/0/slug");
        let found = anyone.get(&format!("/v1/gamma/public-search?q={slug}&limit_per_type=50")).expect(200);
        assert!(list(&found, "/events").iter().any(|found| text(found, "/id") == id), "{slug}");
        cases.one();
    }
    // Pages of a search, and of tags.
    let first = anyone.get("/v1/gamma/public-search?q=a&limit_per_type=1").expect(200);
    let second = anyone.get("/v1/gamma/public-search?q=a&limit_per_type=1&page=2").expect(200);
    assert_eq!(at(&first, "/pagination/hasMore"), &json!(true));
    assert_ne!(text(&first, "/events/0/id"), text(&second, "/events/0/id"));
    let tags = anyone.get("/v1/gamma/tags?limit=3").expect(200);
    assert_eq!(text(&anyone.get("/v1/gamma/tags?limit=1&offset=2").expect(200), "/0/slug"), text(&tags, "/2/slug"));
    cases.add(2);
}

#[test]
fn positions_and_trades_are_those_of_the_key() {
    let cases = Cases::of("data api");
    let world = world();
    let rain = &world.markets.rain;
    let mut user = world.user(0);
    user.post("/v1/orders", &market(rain, "BUY", "0.42", "20")).expect(200);
    let address = address(&mut user);
    let positions = user.get(&format!("/v1/data-api/positions?user={address}")).expect(200);
    for (field, expected) in [
        ("proxyWallet", json!(address)),
        ("asset", json!(rain.yes())),
        ("conditionId", json!(rain.condition)),
        ("size", json!(20)),
        ("avgPrice", json!(0.42)),
        ("initialValue", json!(8.4)),
        ("outcome", json!("Yes")),
        ("outcomeIndex", json!(0)),
        ("oppositeAsset", json!(rain.no())),
        ("redeemable", json!(false)),
    ] {
        assert_eq!(positions[0][field], expected, "{field}");
        cases.one();
    }
    let trades = user.get(&format!("/v1/data-api/trades?user={address}&market={}", rain.condition)).expect(200);
    let trade = &trades[0];
    assert_eq!([&trade["side"], &trade["size"], &trade["price"]], [&json!("BUY"), &json!(20), &json!(0.42)]);
    assert_eq!(text(trade, "/transactionHash").len(), 66);
    let value = user.get(&format!("/v1/data-api/value?user={address}")).expect(200);
    assert_eq!(value[0]["value"], positions[0]["currentValue"]);
    // The second generation shows the same, in pages.
    let page = user.get(&format!("/v1/data-api/v2/positions?user={address}")).expect(200);
    assert_eq!(page["data"][0]["current_size"], json!(20));
    assert_eq!(page["pagination"], json!({"has_more": false, "next_cursor": null}));
    let page = user.get(&format!("/v1/data-api/v2/trades?user={address}&limit=1")).expect(200);
    assert_eq!(page["data"][0]["transaction_hash"], trade["transactionHash"]);
    let worth = user.get(&format!("/v1/data-api/v2/value?user={address}")).expect(200);
    assert_eq!(worth["data"]["value"], value[0]["value"]);
    cases.add(6);
    // (query, rows): address in any case, filters, no rows of other users.
    let other = format!("0x{}", "1".repeat(40));
    let capitals = format!("0x{}", address[2..].to_ascii_uppercase());
    for (query, rows) in [
        (format!("user={capitals}"), 1),
        (format!("user={address}&market={}", rain.condition), 1),
        (format!("user={address}&market={}", world.markets.vote.condition), 0),
        (format!("user={address}&sizeThreshold=20.5"), 0),
        (format!("user={address}&limit=0"), 0),
        (format!("user={address}&offset=1"), 0),
        (format!("user={address}&redeemable=true"), 0),
        (format!("user={other}"), 0),
        (String::new(), 0),
    ] {
        let found = user.get(&format!("/v1/data-api/positions?{query}")).expect(200);
        assert_eq!(list(&found, "").len(), rows, "{query}");
        cases.one();
    }
    for path in ["positions", "trades", "value"] {
        let found = world.public().get(&format!("/v1/data-api/{path}?user={address}")).expect(200);
        assert_eq!(found, json!([]), "{path}, without a key");
        cases.one();
    }
}
