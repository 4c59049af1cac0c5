//! The market channel: books and their changes (gateway/docs/streams.md §1.6, §1.7, §4.1, §4.2).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::json::{at, list, text};
use tests::socket::Socket;
use tests::tape::Market;
use tests::token::token;
use tests::world::{World, changed};

fn open(world: &World, query: &str) -> Socket {
    Socket::open(world.server.address(), &format!("/v1/ws/market{query}"), &[])
}

fn subscribed(world: &World, ids: &[&str]) -> Socket {
    let mut socket = open(world, "?errors=1");
    socket.send(&json!({"type": "market", "assets_ids": ids}));
    list(&socket.json(), "").iter().for_each(|book| assert_eq!(text(book, "/event_type"), "book"));
    socket
}

fn tokens(books: &Value) -> Vec<String> {
    list(books, "").iter().map(|book| text(book, "/asset_id").to_owned()).collect()
}

#[test]
fn the_first_book_is_the_one_that_is_read() {
    let cases = Cases::of("first books");
    let world = World::start(1);
    let m = &world.markets;
    for market in [&m.rain, &m.vote, &m.coin, &m.treaty, &m.game, &m.bidsonly] {
        let mut socket = open(&world, "");
        socket.send(&json!({"type": "market", "assets_ids": [market.yes()]}));
        let books = socket.json();
        let [book] = list(&books, "") else { panic!("one book: {books}") };
        let shown = world.public().get(&format!("/v1/book?token_id={}&dialect=strict", market.yes())).expect(200);
        assert_eq!(text(book, "/event_type"), "book");
        for field in [
            "asset_id",
            "market",
            "timestamp",
            "hash",
            "bids",
            "asks",
            "tick_size",
            "last_trade_price",
            "min_order_size",
            "neg_risk",
        ] {
            assert_eq!(book[field], shown[field], "{field} of {book}");
        }
        assert_eq!(book.as_object().expect("an object").len(), 11, "{book}");
        cases.one();
    }
}

#[test]
fn subscriptions_are_taken_in_every_form() {
    let cases = Cases::of("subscriptions");
    let world = World::start(1);
    let (rain, vote, silent, decided) =
        (&world.markets.rain, &world.markets.vote, &world.markets.silent, &world.markets.decided);
    let both = |market: &Market| json!([market.yes(), market.no()]);
    for (message, expected) in [
        (json!({"type": "market", "assets_ids": [rain.yes()]}), json!([rain.yes()])),
        (json!({"type": "MARKET", "asset_ids": [rain.yes()]}), json!([rain.yes()])),
        (json!({"type": "Subscribe", "assets_ids": [rain.yes(), vote.no()]}), json!([rain.yes(), vote.no()])),
        (json!({"assets_ids": [rain.no()]}), json!([rain.no()])),
        (json!({"operation": "subscribe", "assets_ids": [rain.no()]}), json!([rain.no()])),
        (json!({"action": "subscribe", "assets_ids": [rain.no()]}), json!([rain.no()])),
        (json!({"type": "market", "markets": [rain.condition]}), both(rain)),
        (json!({"type": "market", "markets": [rain.condition], "assets_ids": [rain.yes()]}), both(rain)),
        (json!({"type": "market", "assets_ids": [rain.yes(), rain.yes()], "level": 2}), json!([rain.yes()])),
        (json!({"type": "market", "assets_ids": ["5", rain.yes(), "x"]}), json!([rain.yes()])),
        (json!({"type": "market", "assets_ids": ["5"], "markets": ["0x00"]}), json!([])),
        (json!({"type": "market", "assets_ids": []}), json!([])),
        (json!({"type": "market"}), json!([])),
        // Known, and without a book: never quoted, resolved.
        (json!({"type": "market", "assets_ids": [silent.yes(), decided.yes()]}), json!([])),
    ] {
        for path in ["/v1/ws/market", "/ws/market"] {
            let mut socket = Socket::open(world.server.address(), path, &[]);
            socket.send(&message);
            assert_eq!(json!(tokens(&socket.json())), expected, "{message}");
            assert!(socket.so_far().is_empty(), "{message}: nothing is acknowledged");
            cases.one();
        }
    }
    // Without a dump nothing is sent at first, and changes come nevertheless.
    let mut world = world;
    let mut socket = open(&world, "");
    let yes = world.markets.rain.yes().to_owned();
    socket.send(&json!({"type": "market", "assets_ids": [yes], "initial_dump": false}));
    assert!(socket.so_far().is_empty());
    world.tape.level(&world.markets.rain, 0, "BUY", "0.39", "12");
    assert_eq!(text(&socket.json(), "/event_type"), "price_change");
    // Subscribed again with a dump: the book once more.
    socket.send(&json!({"operation": "subscribe", "assets_ids": [yes]}));
    let books = socket.json();
    assert_eq!(tokens(&books), [yes]);
    assert_eq!(at(&books, "/0/bids/0"), &json!({"price": "0.39", "size": "12"}));
    cases.one();
}

#[test]
fn unsubscribed_is_silent() {
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    let mut socket = subscribed(&world, &[rain.yes(), rain.no()]);
    let mut other = subscribed(&world, &[rain.yes()]);
    socket.send(&json!({"operation": "unsubscribe", "assets_ids": [rain.yes(), "5"]}));
    assert_eq!(text(&socket.until("error"), "/code"), "MARKET_NOT_FOUND");
    socket.is_alive();
    world.tape.level(&rain, 0, "BUY", "0.39", "12");
    world.tape.level(&rain, 1, "SELL", "0.61", "12");
    assert_eq!(text(&other.json(), "/price_changes/0/size"), "12");
    let change = socket.json();
    assert_eq!(text(&change, "/price_changes/0/asset_id"), rain.no(), "{change}");
    socket.send(&json!({"operation": "unsubscribe", "markets": [rain.condition]}));
    socket.is_alive();
    world.tape.level(&rain, 0, "BUY", "0.39", "13");
    assert_eq!(text(&other.json(), "/price_changes/0/size"), "13");
    assert!(socket.so_far().is_empty());
    println!("unsubscribed: 3 cases");
}

#[test]
fn changes_have_the_present_size_of_a_level() {
    let cases = Cases::of("changes");
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    let mut both = subscribed(&world, &[rain.yes(), rain.no()]);
    let mut custom = open(&world, "");
    custom.send(&json!({"type": "market", "assets_ids": [rain.yes()], "custom_feature_enabled": true}));
    custom.json();
    let book = |world: &World, token: &str| {
        world.public().get(&format!("/v1/book?token_id={token}&dialect=strict")).expect(200)
    };

    // A level in the middle: the best prices stay.
    world.tape.level(&rain, 0, "BUY", "0.40", "55.5");
    let change = both.json();
    let shown = book(&world, rain.yes());
    let row = json!({"asset_id": rain.yes(), "price": "0.40", "size": "55.5", "side": "BUY", "hash": shown["hash"],
        "best_bid": "0.41", "best_ask": "0.42"});
    assert_eq!(change["price_changes"], json!([row]));
    assert_eq!((&change["market"], &change["timestamp"]), (&json!(rain.condition), &shown["timestamp"]));
    assert_eq!((change["event_type"].as_str(), change.as_object().map(|o| o.len())), (Some("price_change"), Some(4)));
    assert_eq!(custom.json(), change);
    cases.one();

    // The best bid goes: a change, and for sockets with that option the new best prices.
    world.tape.level(&rain, 0, "BUY", "0.41", "0");
    let change = both.json();
    assert_eq!(text(&change, "/price_changes/0/size"), "0");
    assert_eq!(text(&change, "/price_changes/0/best_bid"), "0.40");
    assert_eq!(custom.json(), change);
    let top = custom.json();
    let expected = json!({"event_type": "best_bid_ask", "market": rain.condition, "asset_id": rain.yes(),
        "best_bid": "0.40", "best_ask": "0.42", "spread": "0.02", "timestamp": change["timestamp"]});
    assert_eq!(top, expected);
    cases.one();

    // A side without depth has the venue's marks in the change, and is left out of the best prices.
    world.tape.level(&rain, 0, "BUY", "0.40", "0");
    let change = both.json();
    assert_eq!(text(&change, "/price_changes/0/best_bid"), "0");
    custom.json();
    let top = custom.json();
    assert_eq!((&top["best_bid"], &top["best_ask"], &top["spread"]), (&Value::Null, &json!("0.42"), &Value::Null));
    cases.one();

    // A trade changes no level of a book, only its hash.
    world.tape.trade(&rain, 0, "SELL", "0.43", "3.25");
    let trade = both.json();
    let expected = json!({"event_type": "last_trade_price", "market": rain.condition, "asset_id": rain.yes(),
        "price": "0.43", "size": "3.25", "side": "SELL", "fee_rate_bps": "500", "timestamp": trade["timestamp"],
        "hash": book(&world, rain.yes())["hash"]});
    assert_eq!(trade, expected);
    assert_ne!(trade["hash"], change["price_changes"][0]["hash"]);
    assert_eq!(custom.json(), trade);
    cases.one();

    // The whole book of both tokens from the venue: one `book` each.
    world.tape.books(&rain, &[("0.38", "10")], &[("0.43", "20")]);
    for token in [rain.yes(), rain.no()] {
        let frame = both.json();
        assert_eq!((text(&frame, "/event_type"), text(&frame, "/asset_id")), ("book", token));
        let shown = book(&world, token);
        for field in ["bids", "asks", "hash", "timestamp", "last_trade_price"] {
            assert_eq!(frame[field], shown[field], "{field}");
        }
        cases.one();
    }
    custom.json();
    assert_eq!(text(&custom.json(), "/event_type"), "best_bid_ask");

    // Its grid becomes finer: the old and the new, then the book.
    world.tape.tick(&rain, "0.01", "0.001");
    let tick = both.json();
    assert_eq!((text(&tick, "/event_type"), text(&tick, "/asset_id")), ("tick_size_change", rain.yes()));
    assert_eq!((text(&tick, "/old_tick_size"), text(&tick, "/new_tick_size")), ("0.01", "0.001"));
    assert_eq!(tick.as_object().map(|o| o.len()), Some(6));
    let frame = both.until("book");
    assert_eq!(text(&frame, "/tick_size"), "0.001");
    cases.one();
}

#[test]
fn a_book_that_begins_comes_before_its_changes() {
    let mut world = World::start(1);
    let silent = world.markets.silent.clone();
    let mut socket = open(&world, "");
    socket.send(&json!({"type": "market", "assets_ids": [silent.yes()]}));
    assert_eq!(socket.json(), json!([]));
    world.tape.book(&silent, 0, &[("0.20", "100")], &[]);
    let book = socket.json();
    assert_eq!((text(&book, "/event_type"), at(&book, "/asks")), ("book", &json!([])));
    world.tape.level(&silent, 0, "SELL", "0.30", "5");
    assert_eq!(text(&socket.json(), "/price_changes/0/best_ask"), "0.30");
    println!("a beginning book: 2 cases");
}

#[test]
fn markets_begin_and_end_for_sockets_with_that_option() {
    let cases = Cases::of("lives of markets");
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    let mut plain = subscribed(&world, &[rain.yes()]);
    let mut custom = open(&world, "");
    custom.send(&json!({"type": "market", "assets_ids": [rain.yes()], "custom_feature_enabled": true}));
    custom.json();
    // Once enabled it stays enabled.
    custom.send(&json!({"operation": "subscribe", "assets_ids": [rain.no()], "custom_feature_enabled": false}));
    custom.json();
    let mut stranger = open(&world, "");
    stranger.send(&json!({"type": "market", "custom_feature_enabled": true}));
    stranger.json();

    let new = Market::new(77, "snow", "weather", 0.01);
    world.tape.list(&[&new]);
    let frame = custom.json();
    let message = json!({"id": "77", "ticker": "snow", "slug": "snow", "title": new.question,
        "description": "Resolves on snow."});
    let expected = json!({"event_type": "new_market", "id": "77", "question": new.question, "market": new.condition,
        "slug": "snow", "description": "Resolves on snow.", "assets_ids": new.tokens, "outcomes": ["Yes", "No"],
        "event_message": message, "timestamp": frame["timestamp"], "tags": frame["tags"],
        "condition_id": new.condition, "active": true, "clob_token_ids": new.tokens,
        "order_price_min_tick_size": "0.01", "group_item_title": ""});
    assert_eq!(frame, expected);
    assert!(frame["tags"].is_array() && frame["timestamp"].is_string());
    assert_eq!(stranger.json(), frame, "with any subscription of the socket");
    cases.one();
    // A market that cannot be traded yet is new when it opens.
    let hail = Market::new(78, "hail", "weather", 0.01);
    let closed = changed(&hail.listed(None), &json!({"active": false}));
    world.tape.rest("/markets", &json!([closed]));
    let fog = Market::new(79, "fog", "weather", 0.01);
    world.tape.list(&[&fog]);
    assert_eq!(text(&stranger.json(), "/slug"), "fog");
    world.tape.list(&[&hail]);
    let frame = stranger.json();
    assert_eq!(
        (text(&frame, "/event_type"), text(&frame, "/slug"), &frame["active"]),
        ("new_market", "hail", &json!(true))
    );
    cases.one();

    world.tape.resolve(&rain, ["0", "1"]);
    let frame = custom.until("market_resolved");
    assert_eq!(
        (text(&frame, "/market"), text(&frame, "/winning_asset_id"), text(&frame, "/winning_outcome")),
        (rain.condition.as_str(), rain.no(), "No")
    );
    assert_eq!(
        (&frame["assets_ids"], &frame["outcomes"], text(&frame, "/slug")),
        (&json!(rain.tokens), &json!(["Yes", "No"]), "rain")
    );
    assert_eq!(frame.as_object().map(|o| o.len()), Some(13), "{frame}");
    assert!(stranger.so_far().is_empty(), "it has no subscription");
    for frame in plain.so_far() {
        assert!(["book", "price_change"].contains(&text(&frame, "/event_type")), "{frame}");
    }
    cases.one();
    // Its book is not shown any more.
    world.tape.level(&rain, 0, "BUY", "0.39", "12");
    world.tape.level(&world.markets.vote, 0, "BUY", "0.600", "12");
    custom.send(&json!({"operation": "subscribe", "assets_ids": [rain.yes()]}));
    assert_eq!(custom.json(), json!([]));
    cases.one();
}

#[test]
fn faults_are_sent_on_request() {
    let cases = Cases::of("faults");
    let world = World::start(1);
    let rain = &world.markets.rain;
    for (message, code, action) in [
        ("nonsense", "INVALID_BODY", ""),
        (r#"{"type":"market","type":"market"}"#, "INVALID_BODY", ""),
        ("[]", "INVALID_REQUEST", ""),
        ("5", "INVALID_REQUEST", ""),
        (r#"{"type":"user"}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"type":5}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"operation":"dance"}"#, "INVALID_REQUEST", ""),
        (r#"{"assets_ids":"5"}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"assets_ids":[5]}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"markets":{}}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"initial_dump":"yes"}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"custom_feature_enabled":1}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"assets_ids":["5"]}"#, "MARKET_NOT_FOUND", "subscribe"),
        (r#"{"operation":"unsubscribe","markets":["0x5"]}"#, "MARKET_NOT_FOUND", "unsubscribe"),
    ] {
        let mut verbose = open(&world, "?errors=1");
        verbose.send_text(message);
        let error = verbose.json();
        assert_eq!((text(&error, "/event_type"), text(&error, "/code")), ("error", code), "{message}");
        assert_eq!(text(&error, "/action"), action, "{message}");
        assert_eq!(error.get("markets").is_some(), code == "MARKET_NOT_FOUND", "{error}");
        let mut silent = open(&world, "");
        silent.send_text(message);
        let empty = |frame: &Value| *frame == json!([]);
        assert!(silent.so_far().iter().all(empty), "{message}: silence");
        // Both continue.
        for socket in [&mut verbose, &mut silent] {
            socket.send(&json!({"type": "market", "assets_ids": [rain.yes()]}));
            while socket.json() == json!([]) {}
        }
        cases.one();
    }
}

#[test]
fn a_socket_has_so_many_subscriptions() {
    let cases = Cases::of("subscription limits");
    let world = World::start_with(1, |place| {
        place.set("streams", "max_subscriptions", "52");
    });
    let markets: Vec<Market> = (100..130).map(|n| Market::new(n, &format!("many-{n}"), "weather", 0.01)).collect();
    let mut world = world;
    world.tape.list(&markets.iter().collect::<Vec<_>>());
    for market in &markets {
        world.tape.books(market, &[("0.40", "10")], &[("0.60", "10")]);
    }
    let last = markets.last().expect("thirty");
    world.until(&format!("/v1/book?token_id={}", last.no()), |_| true);
    let ids: Vec<&str> = markets.iter().flat_map(|market| [market.yes(), market.no()]).collect();
    let made = world.server.with_token(&token("free")).post("/v1/keys/bootstrap", &json!({})).expect(201);
    let free_key = text(&made, "/raw_key").to_owned();
    let key = world.users[0].key.clone();
    for (headers, max) in
        [(vec![], 50), (vec![("X-API-Key", free_key.as_str())], 50), (vec![("X-API-Key", key.as_str())], 52)]
    {
        let mut socket = Socket::open(world.server.address(), "/v1/ws/market?errors=1", &headers);
        socket.send(&json!({"type": "market", "assets_ids": ids}));
        assert_eq!(text(&socket.until("error"), "/code"), "SUBSCRIPTION_LIMIT");
        let mut books = tokens(&socket.json());
        assert_eq!(books.len(), 50, "no array is longer");
        if max > 50 {
            books.extend(tokens(&socket.json()));
        }
        assert_eq!(books, ids[..max]);
        // Subscribed tokens may be named again, and an unsubscribed one makes room for another.
        socket.send(&json!({"operation": "subscribe", "assets_ids": [ids[0], ids[max]]}));
        assert_eq!(text(&socket.json(), "/code"), "SUBSCRIPTION_LIMIT");
        assert_eq!(tokens(&socket.json()), ids[..1]);
        socket.send(&json!({"operation": "unsubscribe", "assets_ids": [ids[0]]}));
        socket.send(&json!({"operation": "subscribe", "assets_ids": [ids[max]]}));
        assert_eq!(tokens(&socket.json()), ids[max..=max]);
        cases.one();
    }
}
