use super::list::filter;
use crate::api::clob;
use crate::api::testing::{Text as _, Town, Trader, WALLET, shows};
use crate::engine_client::AskError;
use crate::http::code::Code;
use crate::http::testing::NOW;
use engine::amount::{Price, Qty};
use engine::command::{Answer, BeatName, Command, MarketFilter, OrderFilter, Query, Wallets};
use engine::fact;
use engine::id::{OrderId, Outcome, WalletId};
use engine::mutation::Mutation;
use engine::order::{CloseReason, Side, Status};
use engine::reject::Reject;
use engine::time::Timestamp;
use engine::user::WalletKind;
use engine::view::{OrderPage, OrderView};
use std::cell::RefCell;
use std::rc::Rc;
use wire::cursor::OrderCursor;
use wire::query::Query as QueryText;

/// Records the commands that the shard of a town gets, each answered by `answer`.
fn recorded(town: &Town, answer: impl Fn(&Command) -> Result<Answer, AskError> + 'static) -> Rc<RefCell<Vec<Command>>> {
    let commands = Rc::new(RefCell::new(Vec::new()));
    let record = Rc::clone(&commands);
    town.shard(move |_, command| {
        record.borrow_mut().push(command.clone());
        answer(&command)
    });
    commands
}

fn resting(town: &Town) -> OrderView {
    let mut trader = Trader::new(100_000_000, town.market.instrument(Outcome::First));
    let terms = trader.terms(3_700, 20);
    trader.place(90_415, terms, Timestamp::from_secs(1_790_932_800));
    trader.view(90_415)
}

#[test]
fn a_list_is_filtered_by_its_parameters() {
    let town = Town::new();
    let catalog = &town.catalog;
    let condition = town.condition();
    let default = OrderFilter {
        wallets: Wallets::Api,
        status: None,
        market: None,
        side: None,
        after: None,
        offset: 0,
        limit: 50,
    };
    let (at, order) = (Timestamp::from_secs(1_790_932_800), OrderId(90_415));
    let (after, cursor) = (Some((at, order)), OrderCursor::write(at, order));
    let read = |query: &str| {
        let query = QueryText::read(query);
        filter(&query, catalog).map(|filter| filter.map(|filter| format!("{filter:?}"))).map_err(|r| r.code())
    };
    let with = |change: &dyn Fn(&mut OrderFilter)| {
        let mut filter = default.clone();
        change(&mut filter);
        Ok(Some(format!("{filter:?}")))
    };
    for (query, expected) in [
        ("".to_owned(), with(&|_| {})),
        (
            "status=pending&side=buy".to_owned(),
            with(&|f| {
                f.status = Some(Status::Pending);
                f.side = Some(Side::Buy);
            }),
        ),
        ("status=OPEN".to_owned(), with(&|f| f.status = Some(Status::Pending))),
        ("status=live".to_owned(), with(&|f| f.status = Some(Status::Pending))),
        ("status=MATCHED".to_owned(), with(&|f| f.status = Some(Status::Filled))),
        ("status=canceled".to_owned(), with(&|f| f.status = Some(Status::Cancelled))),
        ("status=Expired".to_owned(), with(&|f| f.status = Some(Status::Expired))),
        ("status=all".to_owned(), with(&|_| {})),
        ("status=rejected".to_owned(), with(&|f| f.market = Some(MarketFilter::Unknown))),
        (format!("market_id={condition}"), with(&|f| f.market = Some(MarketFilter::Only(town.market)))),
        ("market_id=0x00".to_owned(), with(&|f| f.market = Some(MarketFilter::Unknown))),
        ("market_id=".to_owned(), with(&|_| {})),
        ("limit=200&offset=7".to_owned(), with(&|f| (f.limit, f.offset) = (200, 7))),
        ("wallet_id=all".to_owned(), with(&|f| f.wallets = Wallets::All)),
        ("wallet_id=3".to_owned(), with(&|f| f.wallets = Wallets::One(WalletId(3)))),
        (format!("cursor={cursor}&offset=9"), with(&|f| f.after = after)),
        (format!("next_cursor={cursor}"), with(&|f| f.after = after)),
        (format!("next_cursor=x&cursor={cursor}"), with(&|f| f.after = after)),
        ("cursor=MA==".to_owned(), with(&|_| {})),
        ("cursor=LTE=".to_owned(), Ok(None)),
        ("cursor=x".to_owned(), Err(Code::InvalidCursor)),
        ("limit=0".to_owned(), Err(Code::ValidationFailed)),
        ("limit=201".to_owned(), Err(Code::ValidationFailed)),
        ("offset=-1".to_owned(), Err(Code::ValidationFailed)),
        ("offset=1.5".to_owned(), Err(Code::ValidationFailed)),
        ("side=hold".to_owned(), Err(Code::ValidationFailed)),
        ("status=done".to_owned(), Err(Code::ValidationFailed)),
        ("wallet_id=main".to_owned(), Err(Code::ValidationFailed)),
    ] {
        assert_eq!(read(&query), expected, "{query}");
    }
}

#[test]
fn a_page_has_the_shape_of_the_contract() {
    let town = Town::new();
    let view = resting(&town);
    let one = view.clone();
    town.shard(move |_, _| {
        Ok(Answer::Orders(OrderPage { orders: vec![one.clone()], has_more: false, total_hint: Some(1) }))
    });
    let answer = town.send("GET", "/v1/orders?status=PENDING", "");
    let expected =
        r#"{"orders":[{"order_id":90415,"status":"PENDING"}],"next_cursor":"LTE=","has_more":false,"total_hint":1}"#;
    shows(answer.text().as_bytes(), expected);
    let cursor = OrderCursor::write(view.order.created_at, view.order.id);
    town.shard(move |_, _| {
        Ok(Answer::Orders(OrderPage { orders: vec![view.clone()], has_more: true, total_hint: None }))
    });
    let expected = format!(r#"{{"next_cursor":"{cursor}","has_more":true,"total_hint":null}}"#);
    shows(town.send("GET", "/v1/orders", "").text().as_bytes(), &expected);
    let answer = town.send("GET", "/v1/orders?cursor=LTE=", "");
    assert_eq!(answer.text(), r#"{"orders":[],"next_cursor":"LTE=","has_more":false,"total_hint":null}"#);
}

#[test]
fn an_order_is_found_by_id_kind_and_wallet() {
    let town = Town::new();
    let view = resting(&town);
    let mut wallet = Trader::new(0, town.market.instrument(Outcome::First)).user().wallets[0].clone();
    wallet.id = WALLET;
    let mut main = wallet.clone();
    (main.id, main.kind) = (WalletId(2), WalletKind::Main);
    recorded(&town, move |command| match command {
        Command::Query(Query::Order(OrderId(90_415))) => Ok(Answer::Order(view.clone())),
        Command::Query(Query::OrderByClientId(id)) if id == "g 1/2" => Ok(Answer::Order(view.clone())),
        Command::Query(Query::User) => Ok(Answer::User(Box::new(engine::view::UserView {
            id: engine::id::UserId(1),
            sub: None,
            email: None,
            created_at: Timestamp(1),
            grant: None,
            active_keys: 1,
            wallets: vec![main.clone(), wallet.clone()],
        }))),
        _ => Ok(Answer::Refused(Reject::OrderNotFound)),
    });
    for (target, expected) in [
        ("/v1/orders/90415", (200, "")),
        ("/v1/orders/90415?source=pending", (200, "")),
        ("/v1/orders/90415?source=filled", (404, "ORDER_NOT_FOUND")),
        ("/v1/orders/90415?source=FILLED", (400, "INVALID_SOURCE")),
        ("/v1/orders/90415?source=", (400, "INVALID_SOURCE")),
        ("/v1/orders/90415?wallet_id=api", (200, "")),
        ("/v1/orders/90415?wallet_id=all", (200, "")),
        ("/v1/orders/90415?wallet_id=3", (200, "")),
        ("/v1/orders/90415?wallet_id=2", (404, "ORDER_NOT_FOUND")),
        ("/v1/orders/90415?wallet_id=9", (404, "WALLET_NOT_FOUND")),
        ("/v1/orders/90415?wallet_id=x", (422, "VALIDATION_FAILED")),
        ("/v1/orders/7", (404, "ORDER_NOT_FOUND")),
        ("/v1/orders/x", (404, "ORDER_NOT_FOUND")),
        ("/v1/orders/-1", (404, "ORDER_NOT_FOUND")),
        ("/v1/orders/99999999999999999999", (404, "ORDER_NOT_FOUND")),
        ("/v1/orders/by-client-id/g%201%2F2", (200, "")),
        ("/v1/orders/by-client-id/other", (404, "ORDER_NOT_FOUND")),
    ] {
        assert_eq!(town.send("GET", target, "").code(), expected, "{target}");
    }
    let answer = town.send("GET", "/v1/orders/90415", "");
    shows(answer.text().as_bytes(), r#"{"order_id":90415,"limit_price":"0.37","fills":[],"requested_quantity":"20"}"#);
}

#[test]
fn a_placement_is_answered_by_its_result() {
    let town = Town::new();
    let view = resting(&town);
    let body = r#"{"token_id":"81140002","side":"BUY","order_type":"limit","price":"0.37","quantity":"20"}"#;
    let standing = view.clone();
    let commands = recorded(&town, move |_| Ok(Answer::Order(standing.clone())));
    let answer = town.send_with("POST", "/v1/orders", &[("idempotency-key", "k-1")], body);
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("private, no-store")));
    shows(answer.text().as_bytes(), r#"{"order_id":90415,"status":"PENDING","notional":"7.40"}"#);
    let Some(Command::Place(placement)) = commands.borrow_mut().pop() else { panic!("one placement") };
    assert_eq!(placement.request.expect("by header").client_order_id, "k-1");
    assert_eq!(placement.terms.expect("sound").instrument, Some(town.market.instrument(Outcome::First)));

    let fok = Reject::FokNotFilled {
        order: OrderId(90_415),
        fillable: Qty::from_shares(3),
        requested: Qty::from_shares(20),
        limit: Price(3_700),
    };
    let at = Timestamp(view.order.created_at.0);
    let daily = Reject::DailyLimit { limit: 100, used: 100, resets_at: at.day().end() };
    for (answer, status, code, headers) in [
        (Ok(Answer::Refused(Reject::MarketClosed)), 400, "MARKET_CLOSED", vec![]),
        (
            Ok(Answer::Killed { reject: fok, order: view.clone() }),
            400,
            "FOK_ORDER_NOT_FILLED_ERROR",
            vec![("x-svc-order-id", "90415")],
        ),
        (Ok(Answer::Refused(daily)), 429, "FREE_TIER_DAILY_LIMIT", vec![("retry-after", "53155")]),
        (Ok(Answer::Refused(Reject::VenueUnavailable)), 503, "VENUE_UNAVAILABLE", vec![("retry-after", "60")]),
        (Ok(Answer::Refused(Reject::WaitedTooLong)), 409, "TRADE_IN_PROGRESS", vec![("retry-after", "1")]),
        (Ok(Answer::Refused(Reject::PostOnlyWouldCross)), 400, "POST_ONLY_WOULD_CROSS", vec![]),
        (Err("busy"), 503, "SERVER_BUSY", vec![("retry-after", "1")]),
        (Err("unknown"), 503, "PERSISTENCE_UNKNOWN", vec![]),
        (Err("late"), 503, "DEADLINE_OVERSHOT_BUT_PERSISTED", vec![("x-svc-order-id", "90415")]),
    ] {
        let late = view.clone();
        town.shard(move |_, _| match &answer {
            Ok(answer) => Ok(answer.clone()),
            Err("busy") => Err(AskError::Busy),
            Err("unknown") => Err(AskError::Unknown),
            Err(_) => Err(AskError::Overshot(Box::new(Answer::Order(late.clone())))),
        });
        let answer = town.send("POST", "/v1/orders", body);
        assert_eq!(answer.code(), (status, code));
        for (name, value) in headers {
            assert_eq!(answer.header(name), Some(value), "{code}");
        }
    }
}

#[test]
fn an_unsound_placement_is_refused_after_the_shard() {
    let town = Town::new();
    let verbose = [("x-svc-verbose", "true")];
    let body = r#"{"token_id":"81140002","side":"HOLD","price":"0.37","quantity":"x"}"#;
    town.shard(|_, command| match command {
        Command::Place(placement) if placement.terms.is_err() => Ok(Answer::Refused(Reject::InvalidTerms)),
        _ => panic!("an unsound placement"),
    });
    let answer = town.send_with("POST", "/v1/orders", &verbose, body);
    assert_eq!(answer.code(), (422, "VALIDATION_FAILED"));
    let expected = concat!(
        r#"{"error":"VALIDATION_FAILED","message":"side: must be one of BUY, SELL","details":{"errors":["#,
        r#"{"loc":["body","side"],"type":"literal_error","msg":"must be one of BUY, SELL"},"#,
        r#"{"loc":["body","quantity"],"type":"decimal_parsing","msg":"is not a plain decimal"}]}}"#
    );
    shows(answer.text().as_bytes(), expected);
    // A body that is not an order object is refused before it.
    for body in ["", "[]", "null", "{", "{\"a\":1,\"a\":2}", "\u{feff}{}"] {
        let headers = [("content-type", "application/json")];
        assert_eq!(town.send_with("POST", "/v1/orders", &headers, body).code(), (400, "INVALID_BODY"), "{body}");
    }
}

#[test]
fn verbose_refusals_name_their_figures() {
    let town = Town::new();
    let cash = engine::amount::Cash;
    for (reject, details) in [
        (
            Reject::InsufficientBalance { available: cash(1_500_000), required: cash(7_400_000) },
            r#"{"available":"1.50","required":"7.40"}"#,
        ),
        (
            Reject::InsufficientPosition { available: Qty::ZERO, requested: Qty::from_shares(900) },
            r#"{"available":"0","requested":"900"}"#,
        ),
        (Reject::OffTick { tick: engine::amount::TickSize(100) }, r#"{"tick_size":"0.01"}"#),
        (Reject::BelowMinimum { minimum: Qty::from_shares(5) }, r#"{"min_order_size":"5"}"#),
        (Reject::StaleQuote { age_ms: 61_000, max_age_ms: 60_000 }, r#"{"quote_age_ms":61000,"max_age_ms":60000}"#),
        (
            Reject::FokNotFilled {
                order: OrderId(1),
                fillable: Qty(60_500_000),
                requested: Qty::from_shares(100),
                limit: Price(4_200),
            },
            r#"{"fillable":"60.5","requested":"100","limit":"0.42"}"#,
        ),
        (
            Reject::DailyLimit { limit: 100, used: 100, resets_at: Timestamp::from_secs(1_790_985_600) },
            r#"{"limit":100,"used":100,"resets_at":"2026-10-03T00:00:00Z"}"#,
        ),
        (Reject::MarketClosed, "null"),
    ] {
        town.shard(move |_, _| Ok(Answer::Refused(reject)));
        let body = r#"{"token_id":"81140002","side":"BUY","price":"0.37","quantity":"20"}"#;
        let answer = town.send_with("POST", "/v1/orders", &[("x-svc-verbose", "1")], body);
        shows(answer.text().as_bytes(), &format!(r#"{{"details":{details}}}"#));
    }
}

#[test]
fn cancels_and_sweeps_become_their_commands() {
    let town = Town::new();
    let (market, first) = (town.market, town.market.instrument(Outcome::First));
    let sweep = |wallets, market, instrument| format!("{:?}", Command::CancelMarket { market, instrument, wallets });
    let all = |wallets| format!("{:?}", Command::CancelAll { wallets });
    let condition = town.condition().to_owned();
    let in_body = format!(r#"{{"market":"{condition}","asset_id":""}}"#);
    let in_query = format!("/v1/cancel-market-orders?market={condition}&wallet_id=all");
    let api = Wallets::Api;
    let commands = recorded(&town, |_| Ok(Answer::Cancelled(Default::default())));
    for (method, target, body, expected) in [
        ("POST", "/v1/cancel-all?confirm=true", "", Ok(all(api))),
        ("POST", "/v1/cancel-all?confirm=1&wallet_id=all", "", Ok(all(Wallets::All))),
        ("POST", "/v1/cancel-all?confirm=true", r#"{"wallet_id":3}"#, Ok(all(Wallets::One(WalletId(3))))),
        ("POST", "/v1/cancel-all", "", Err((400, "CONFIRMATION_REQUIRED"))),
        ("POST", "/v1/cancel-all?confirm=false", "", Err((400, "CONFIRMATION_REQUIRED"))),
        ("POST", "/v1/cancel-all?confirm=yes", "", Err((422, "VALIDATION_FAILED"))),
        ("POST", "/v1/cancel-all?confirm=true&wallet_id=x", "", Err((422, "VALIDATION_FAILED"))),
        ("POST", "/v1/cancel-all?confirm=true", "[]", Err((400, "INVALID_BODY"))),
        ("DELETE", "/v1/cancel-all", "", Ok(all(api))),
        ("DELETE", "/v1/cancel-market-orders", in_body.as_str(), Ok(sweep(api, Some(market), None))),
        ("POST", in_query.as_str(), "", Ok(sweep(Wallets::All, Some(market), None))),
        ("POST", "/v1/cancel-market-orders?asset_id=81140002", "", Ok(sweep(api, None, Some(first)))),
        ("POST", "/v1/cancel-market-orders?asset_id=5&market=", "", Ok(sweep(api, None, None))),
        ("POST", "/v1/cancel-market-orders?asset_id=5", in_body.as_str(), Ok(sweep(api, None, None))),
        ("DELETE", "/v1/cancel-market-orders", "", Err((400, "INVALID_REQUEST"))),
        ("DELETE", "/v1/cancel-market-orders", r#"{"market":"","asset_id":""}"#, Err((400, "INVALID_REQUEST"))),
        ("DELETE", "/v1/cancel-market-orders", r#"{"market":5}"#, Err((422, "VALIDATION_FAILED"))),
        ("DELETE", "/v1/cancel-market-orders", "5", Err((400, "INVALID_BODY"))),
    ] {
        let answer = town.send(method, target, body);
        let command = commands.borrow_mut().pop().map(|command| format!("{command:?}"));
        match expected {
            Ok(expected) => assert_eq!((answer.status, command), (200, Some(expected)), "{method} {target} {body}"),
            Err(code) => assert_eq!((answer.code(), command), (code, None), "{method} {target} {body}"),
        }
    }
    let by_header = town.send_with("POST", "/v1/cancel-all", &[("x-confirm-cancel-all", "true")], "");
    assert_eq!((by_header.status, by_header.text()), (200, r#"{"canceled":[],"not_canceled":{}}"#));
    assert_eq!(by_header.header("deprecation"), None);
    let deprecated = town.send("DELETE", "/v1/cancel-all", "");
    assert_eq!(deprecated.header("deprecation"), Some("true"));
    assert_eq!(deprecated.header("sunset"), Some("Fri, 31 Dec 2027 23:59:59 GMT"));
    assert!(deprecated.header("x-deprecation").is_some());
}

#[test]
fn a_cancelled_order_is_shown() {
    let town = Town::new();
    let mut trader = Trader::new(100_000_000, town.market.instrument(Outcome::First));
    let terms = trader.terms(3_700, 20);
    trader.place(90_415, terms, Timestamp::from_secs(1_790_932_800));
    let at = Timestamp::from_secs(1_790_932_801);
    trader.apply(&Mutation::OrderClosed(fact::OrderClosed {
        order: OrderId(90_415),
        reason: CloseReason::UserCancelled,
        at,
    }));
    let view = trader.view(90_415);
    town.shard(move |_, command| match command {
        Command::Cancel { order: OrderId(90_415) } => Ok(Answer::Order(view.clone())),
        Command::Cancel { order: OrderId(7) } => Ok(Answer::Refused(Reject::OrderNotCancellable)),
        _ => Ok(Answer::Refused(Reject::OrderNotFound)),
    });
    let answer = town.send("DELETE", "/v1/orders/90415", "");
    shows(answer.text().as_bytes(), r#"{"status":"CANCELLED","cancelled_reason":"user_cancelled"}"#);
    assert_eq!(town.send("DELETE", "/v1/orders/7", "").code(), (400, "ORDER_NOT_CANCELLABLE"));
    assert_eq!(town.send("DELETE", "/v1/orders/x", "").code(), (404, "ORDER_NOT_FOUND"));
}

#[test]
fn a_batch_answers_entry_by_entry() {
    let town =
        Town::with("[limits.tiers.free]\nrequests_per_second = 1000\nrequests_per_minute = 1000\nmax_batch_size = 3\n");
    let view = resting(&town);
    town.shard(move |_, command| {
        let Command::PlaceBatch(placements) = command else { panic!("a batch") };
        let entries = placements.into_iter().map(|placement| match placement.terms {
            Err(_) => engine::command::BatchEntry::Refused(Reject::InvalidTerms),
            Ok(terms) if terms.side == Side::Sell => {
                engine::command::BatchEntry::Refused(Reject::InsufficientPosition {
                    available: Qty::ZERO,
                    requested: Qty::from_shares(900),
                })
            }
            Ok(_) => engine::command::BatchEntry::Placed(view.clone()),
        });
        Ok(Answer::Batch(entries.collect()))
    });
    let good = r#"{"token_id":"81140002","side":"BUY","order_type":"limit","price":"0.37","quantity":"20"}"#;
    let short = r#"{"token_id":"81140002","side":"SELL","price":"0.37","quantity":"900"}"#;
    let bad = r#"{"side":"BUY","outcome":"Yes","price":"x","client_order_id":"c"}"#;
    let answer = town.send("POST", "/v1/orders/batch", &format!(r#"{{"orders":[{good},{short},{bad}]}}"#));
    assert_eq!(answer.status, 200);
    let expected = concat!(
        r#"{"results":[{"order_id":90415,"status":"PENDING","error":null},{"order_id":0,"status":"REJECTED","#,
        r#""side":"SELL","outcome":"Yes","price":"0","quantity":"900","notional":"0","fee":"0","#,
        r#""error":"INSUFFICIENT_POSITION","error_message":"Held position is smaller than the order."},"#,
        r#"{"order_id":0,"status":"REJECTED","side":"BUY","outcome":"Yes","client_order_id":"c","#,
        r#""error":"VALIDATION_FAILED"}],"succeeded":1,"failed":2}"#
    );
    shows(answer.text().as_bytes(), expected);
    let over = town.send("POST", "/v1/orders/batch", &format!("[{good},{good},{good},{good}]"));
    assert_eq!(over.code(), (400, "BATCH_LIMIT_EXCEEDED"));
    assert!(over.text().contains("4 orders were sent; the tier allows 3"), "{}", over.text());
    assert_eq!(town.send("POST", "/v1/orders/batch", "").code(), (400, "INVALID_BODY"));
    town.shard(|_, _| Ok(Answer::Refused(Reject::WaitedTooLong)));
    assert_eq!(town.send("POST", "/v1/orders/batch", &format!("[{good}]")).code(), (409, "TRADE_IN_PROGRESS"));
}

#[test]
fn a_heartbeat_has_an_interval_and_a_label() {
    let town = Town::new();
    let commands = recorded(&town, |command| match command {
        Command::Beat { .. } => Ok(Answer::Beating { lapses_at: Timestamp(1_790_932_451_250_999) }),
        _ => Ok(Answer::Done),
    });
    let answer = town.send("POST", "/v1/heartbeats", r#"{"interval_ms":5000,"client_label":"bot"}"#);
    assert_eq!(answer.text(), r#"{"ok":true,"expires_at_ms":1790932451250}"#);
    let Some(Command::Beat { label, interval_ms: 5_000 }) = commands.borrow_mut().pop() else { panic!("a beat") };
    assert_eq!(label, "bot");
    assert_eq!(town.send("POST", "/v1/heartbeats", r#"{"interval_ms":1000}"#).status, 200);
    let long = format!(r#"{{"interval_ms":5000,"client_label":"{}"}}"#, "x".repeat(65));
    for body in [
        "{}",
        r#"{"interval_ms":999}"#,
        r#"{"interval_ms":60001}"#,
        r#"{"interval_ms":"5000"}"#,
        r#"{"interval_ms":5000.0}"#,
        r#"{"interval_ms":5000,"client_label":5}"#,
        r#"{"interval_ms":5000,"client_label":"\u0001venue"}"#,
        r#"{"interval_ms":1,"heartbeat_id":""}"#,
        r#"{"interval_ms":null}"#,
        long.as_str(),
    ] {
        assert_eq!(town.send("POST", "/v1/heartbeats", body).code(), (422, "VALIDATION_FAILED"), "{body}");
    }
    assert_eq!(town.send("POST", "/v1/heartbeats", "[]").code(), (400, "INVALID_BODY"));
    assert_eq!(town.send("DELETE", "/v1/heartbeats", "").text(), r#"{"ok":true}"#);
}

/// The beat of a venue client names the one before it (gateway/docs/venue-clients.md §8).
#[test]
fn a_beat_of_the_venues_form_is_named() {
    let town = Town::new();
    let commands = recorded(&town, |command| match command {
        Command::BeatByName { shown: BeatName::Nonsense, .. } => Ok(Answer::WrongBeat { current: None }),
        Command::BeatByName { shown: BeatName::Known(_), .. } => Ok(Answer::WrongBeat { current: Some([0x5f; 16]) }),
        _ => Ok(Answer::Beating { lapses_at: NOW }),
    });
    for first in [r#"{"heartbeat_id":null}"#, r#"{"heartbeat_id":""}"#, r#"{"heartbeat_id":"","interval_ms":null}"#] {
        let answer = town.send("POST", "/v1/heartbeats", first).json();
        let Some(Command::BeatByName { shown: BeatName::First, next }) = commands.borrow_mut().pop() else {
            panic!("a first beat: {first}")
        };
        assert_eq!(answer, serde_json::json!({"heartbeat_id": clob::ids::uuid_text(&next)}));
    }
    for (shown, current) in [
        ("\"5f5f5f5f-5f5f-5f5f-5f5f-5f5f5f5f5f50\"", "5f5f5f5f-5f5f-5f5f-5f5f-5f5f5f5f5f5f"),
        ("\"mine\"", ""),
        ("7", ""),
        ("true", ""),
        ("[]", ""),
    ] {
        let answer = town.send("POST", "/v1/heartbeats", &format!("{{\"heartbeat_id\":{shown}}}"));
        assert_eq!(answer.code(), (400, "INVALID_REQUEST"), "{shown}");
        let expected = serde_json::json!({
            "error": "INVALID_REQUEST",
            "message": "Invalid Heartbeat ID",
            "error_msg": "Invalid Heartbeat ID",
            "heartbeat_id": current,
        });
        assert_eq!(answer.json(), expected, "{shown}");
    }
}
