//! The price channel (gateway/docs/streams.md §2).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::json::{at, int, list, text};
use tests::socket::{Socket, token};
use tests::tape::Market;
use tests::world::World;

fn open(world: &World) -> Socket {
    let mut socket = Socket::open(world.server.address(), "/v1/ws/prices", &[("X-API-Key", &world.users[0].key)]);
    let connected = socket.json();
    assert_eq!((text(&connected, "/type"), int(&connected, "/max_subscriptions")), ("connected", 500));
    assert!(text(&connected, "/connection_id").starts_with("c-") && connected["ts"].is_u64());
    socket
}

#[test]
fn a_price_has_its_shape() {
    let cases = Cases::of("prices");
    let mut world = World::start(1);
    let (rain, bidsonly, silent) =
        (world.markets.rain.clone(), world.markets.bidsonly.clone(), world.markets.silent.clone());
    let mut socket = open(&world);
    socket.send(&json!({"action": "subscribe", "markets": [rain.condition]}));
    let acknowledged = socket.json();
    assert_eq!(acknowledged, json!({"type": "subscribed", "markets": [rain.condition], "count": 1}));
    let mut price = socket.json();
    let fields = price.as_object_mut().expect("an object");
    for moving in ["emit_ts_ms", "updated_at", "ws_updated_at"] {
        let value = fields.remove(moving).expect("it exists");
        assert_eq!(value.is_u64(), moving == "emit_ts_ms");
        assert!(value.is_u64() || value.as_str().is_some_and(|at| at.len() == 24 && at.ends_with('Z')), "{value}");
    }
    let at = fields["outcomes"][0].as_object_mut().expect("an object").remove("last_trade_at");
    assert!(at.is_some());
    let expected = json!({
        "type": "price", "market_id": rain.condition, "condition_id": rain.condition, "source": "websocket",
        "outcomes": [
            {"label": "Yes", "price": "0.415", "token_id": rain.yes(), "best_bid": "0.41", "best_ask": "0.42",
                "last_trade": "0.42"},
            {"label": "No", "price": "0.585", "token_id": rain.no(), "best_bid": "0.58", "best_ask": "0.59"},
        ],
        "tokens": {
            rain.yes(): {"label": "Yes", "price": "0.415"},
            rain.no(): {"label": "No", "price": "0.585"},
        },
        "volume": "9999", "buy": "0.41", "sell": "0.42", "best_bid": "0.41", "best_ask": "0.42",
        "last_trade": "0.42", "last_trade_side": "BUY", "last_trade_size": "7",
        "active": true, "closed": false, "stale": false, "seq": 1,
    });
    assert_eq!(price, expected);
    cases.one();

    // A change of the book changes a price.
    world.tape.level(&rain, 0, "BUY", "0.41", "0");
    let price = socket.json();
    assert_eq!((text(&price, "/best_bid"), int(&price, "/seq")), ("0.40", 2));
    cases.one();

    // The other outcome has no depth of its own: its keys are left out, its price is not.
    socket.send(&json!({"action": "subscribe", "conditions": [bidsonly.condition, silent.condition]}));
    assert_eq!(int(&socket.json(), "/count"), 3);
    let price = socket.json();
    assert_eq!((&price["best_bid"], &price["best_ask"], &price["sell"]), (&json!("0.20"), &Value::Null, &Value::Null));
    assert_eq!((&price["outcomes"][1]["best_bid"], &price["outcomes"][1]["best_ask"]), (&Value::Null, &Value::Null));
    assert_eq!(at_count(&price, "/outcomes/1"), 3, "{price}");
    cases.one();
    // Never quoted.
    let price = socket.json();
    assert_eq!(
        (text(&price, "/source"), &price["best_bid"], &price["last_trade"]),
        ("cache", &Value::Null, &Value::Null)
    );
    assert!(price["updated_at"].is_string() && price["ws_updated_at"].is_string());
    cases.one();
}

#[test]
fn a_price_is_the_own_midpoint_else_the_last_trade() {
    let cases = Cases::of("what a price is made of");
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    let mut socket = open(&world);
    socket.send(&json!({"action": "subscribe", "markets": [rain.condition]}));
    socket.until("price");
    type Levels = &'static [(&'static str, &'static str)];
    /// The case, own bids and asks, a trade, and the prices of both outcomes.
    type Row = (&'static str, Levels, Levels, Option<&'static str>, [&'static str; 2]);
    let rows: [Row; 5] = [
        // The other outcome's book is 0.30 to 0.35 throughout: its mirror is 0.65 to 0.70.
        ("however wide", &[("0.20", "8")], &[("0.80", "9")], None, ["0.50", "0.325"]),
        ("narrow", &[("0.66", "8")], &[("0.67", "9")], None, ["0.665", "0.325"]),
        ("one side gives no midpoint", &[("0.20", "8")], &[], Some("0.44"), ["0.44", "0.325"]),
        ("nor does an empty book", &[], &[], Some("0.43"), ["0.43", "0.325"]),
        ("a midpoint has precedence over a trade", &[("0.20", "8")], &[("0.30", "9")], Some("0.77"), ["0.25", "0.325"]),
    ];
    world.tape.book(&rain, 1, &[("0.30", "5")], &[("0.35", "5")]);
    for (about, bids, asks, trade, expected) in rows {
        world.tape.book(&rain, 0, bids, asks);
        if let Some(price) = trade {
            world.tape.trade(&rain, 0, "BUY", price, "2");
        }
        // Prices are sent four times a second: intermediate ones are skipped.
        let frame = loop {
            let frame = socket.until("price");
            let traded = trade.is_none_or(|price| frame["last_trade"] == price);
            let best = |levels: Levels| levels.first().map_or(Value::Null, |(price, _)| json!(price));
            if traded && frame["best_bid"] == best(bids) && frame["best_ask"] == best(asks) {
                break frame;
            }
        };
        assert_eq!([0, 1].map(|place| text(&frame, &format!("/outcomes/{place}/price"))), expected, "{about}: {frame}");
        for (token, price) in rain.tokens.iter().zip(expected) {
            assert_eq!(text(&frame, &format!("/tokens/{token}/price")), price, "{about}");
        }
        cases.one();
    }
}

fn at_count(value: &Value, path: &str) -> usize {
    at(value, path).as_object().expect("an object").len()
}

/// A market's price is sent at most four times a second on a socket, including the first one; later changes are sent
/// then.
#[test]
fn a_price_rests_for_a_quarter_of_a_second() {
    let cases = Cases::of("conflation");
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    // Another socket gets the market at other times.
    let mut earlier = open(&world);
    earlier.send(&json!({"action": "subscribe", "markets": [rain.condition]}));
    for round in 0..4 {
        let mut socket = open(&world);
        world.tape.level(&rain, 0, "BUY", "0.40", &format!("{}", 100 + round));
        earlier.until("price");
        socket.send(&json!({"action": "subscribe", "markets": [rain.condition]}));
        let mut at = int(&socket.until("price"), "/emit_ts_ms");
        for step in 0..2 {
            let best = format!("0.4{}", 1 - step);
            world.tape.level(&rain, 0, "BUY", "0.41", if step == 0 { "50" } else { "0" });
            let frame = socket.until("price");
            let next = int(&frame, "/emit_ts_ms");
            assert!(next - at >= 249, "round {round}: {} ms after the one before", next - at);
            assert_eq!(text(&frame, "/best_bid"), best);
            at = next;
            cases.one();
        }
    }
}

#[test]
fn subscriptions_are_acknowledged() {
    let cases = Cases::of("price subscriptions");
    let world = World::start(1);
    let m = &world.markets;
    let (rain, vote) = (m.rain.condition.as_str(), m.vote.condition.as_str());
    let mut socket = open(&world);
    let token = m.rain.yes();
    for (message, error, acknowledged, prices) in [
        (json!({"action": "subscribe", "markets": [rain], "conditions": [vote, rain]}), None, json!([rain, vote]), 2),
        (json!({"action": "subscribe", "markets": [rain]}), None, json!([rain]), 0),
        (json!({"action": "subscribe", "token_ids": [token]}), None, json!([]), 0),
        (json!({"action": "subscribe", "markets": []}), None, json!([]), 0),
        (json!({"action": "subscribe", "markets": null}), None, json!([]), 0),
        (json!({"action": "subscribe", "markets": [token, rain]}), Some(json!([token])), json!([rain]), 0),
        (json!({"action": "subscribe", "markets": ["0x00"]}), Some(json!(["0x00"])), json!([]), 0),
        (json!({"action": "unsubscribe", "markets": ["0x00", vote]}), None, json!([vote]), 0),
        (json!({"action": "unsubscribe", "markets": [vote]}), None, json!([]), 0),
        (json!({"action": "subscribe", "markets": [vote]}), None, json!([vote]), 1),
    ] {
        socket.send(&message);
        if let Some(ids) = error {
            let frame = socket.json();
            assert_eq!((text(&frame, "/type"), text(&frame, "/code")), ("error", "MARKET_NOT_FOUND"), "{message}");
            assert_eq!((&frame["markets"], text(&frame, "/action")), (&ids, "subscribe"));
        }
        let frame = socket.json();
        assert_eq!(frame["type"], format!("{}d", text(&message, "/action")), "{message}");
        assert_eq!(frame["markets"], acknowledged, "{message}");
        let frame = socket.so_far();
        assert_eq!(frame.len(), prices, "{message}: {frame:?}");
        assert!(frame.iter().all(|price| price["type"] == "price"));
        cases.one();
    }
    for (message, code) in [
        ("nonsense", "INVALID_BODY"),
        ("5", "INVALID_REQUEST"),
        (r#"{"action":"dance"}"#, "INVALID_REQUEST"),
        (r#"{"markets":[]}"#, "INVALID_REQUEST"),
        (r#"{"action":"subscribe","markets":"0x00"}"#, "INVALID_REQUEST"),
        (r#"{"action":"subscribe","conditions":[5]}"#, "INVALID_REQUEST"),
    ] {
        socket.send_text(message);
        let frame = socket.json();
        assert_eq!((text(&frame, "/type"), text(&frame, "/code")), ("error", code), "{message}");
        cases.one();
    }
}

#[test]
fn more_than_the_limit_is_left_out() {
    let mut world = World::start_with(1, |place| {
        place.set("streams", "max_subscriptions", "50");
    });
    let markets: Vec<Market> = (100..151).map(|n| Market::new(n, &format!("many-{n}"), "weather", 0.01)).collect();
    world.tape.list(&markets.iter().collect::<Vec<_>>());
    let last = markets.last().expect("fifty-one");
    world.until(&format!("/v1/markets/{}", last.condition), |_| true);
    let ids: Vec<&str> = markets.iter().map(|market| market.condition.as_str()).collect();
    let mut socket =
        Socket::open(world.server.address(), &format!("/v1/ws/prices?token={}", token(&mut world.user(0))), &[]);
    assert_eq!(int(&socket.json(), "/max_subscriptions"), 50);
    socket.send(&json!({"action": "subscribe", "markets": ids}));
    assert_eq!(text(&socket.json(), "/code"), "SUBSCRIPTION_LIMIT");
    let frame = socket.json();
    assert_eq!((list(&frame, "/markets").len(), int(&frame, "/count")), (50, 50));
    println!("price limits: 1 case");
}

#[test]
fn a_resolved_market_shows_its_result() {
    let cases = Cases::of("resolved prices");
    let mut world = World::start(1);
    let (rain, decided) = (world.markets.rain.clone(), world.markets.decided.clone());
    let mut socket = open(&world);
    // Decided before: its price is its payout, and nothing follows.
    socket.send(&json!({"action": "subscribe", "markets": [decided.condition, rain.condition]}));
    let price = socket.until("price");
    assert_eq!((text(&price, "/condition_id"), &price["closed"]), (decided.condition.as_str(), &json!(true)));
    assert_eq!((text(&price, "/outcomes/0/price"), text(&price, "/outcomes/1/price")), ("1.00", "0.00"));
    let frame = socket.json();
    let expected = json!({"type": "resolved", "condition_id": decided.condition, "winning_outcome": "Yes",
        "winning_token_id": decided.yes(), "ts": frame["ts"]});
    assert_eq!(frame, expected);
    cases.one();
    world.tape.resolve(&rain, ["0.5", "0.5"]);
    let frame = socket.until("resolved");
    assert_eq!(
        (&frame["condition_id"], &frame["winning_outcome"], &frame["winning_token_id"]),
        (&json!(rain.condition), &Value::Null, &Value::Null)
    );
    world.tape.level(&rain, 0, "BUY", "0.39", "12");
    world.tape.level(&world.markets.vote, 0, "BUY", "0.6", "12");
    world.until(&format!("/v1/book?token_id={}&depth=500", world.markets.vote.yes()), |book| {
        list(book, "/bids").len() == 2
    });
    assert!(socket.so_far().is_empty(), "no more prices");
    cases.one();
}
