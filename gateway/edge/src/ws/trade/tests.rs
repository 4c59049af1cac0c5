use super::*;
use crate::api::orders::records::{BatchResults, Cancelled, EntryResult, OrderDetail, OrderResponse};
use crate::api::testing::{Town, Trader};
use crate::http::limit::Payer;
use crate::http::record::{Record as _, write_record};
use crate::http::scalar::{self, Digits, Money};
use crate::http::testing::{NOW, run};
use crate::ws::shape::trade::{BatchAnswer, CancelAllAnswer, OperationId, OrderAnswer, Rate, Refused, StatusAnswer};
use engine::amount::{Price, Qty};
use engine::command::{Answer, BatchEntry, Command};
use engine::fact;
use engine::id::{OrderId, Outcome, UserId};
use engine::mutation::Mutation;
use engine::reject::Reject;
use engine::time::{SECOND, Timestamp};
use engine::user::{Permissions, Tier};
use engine::view::{CancelledOrders, OrderView};
use serde_json::Value as Json;
use std::cell::RefCell;

const ORDER: u64 = 90_415;
/// A resting BUY.
const PLACE: &str = r#"{"token_id":"81140002","side":"BUY","order_type":"limit","price":"0.37","quantity":"20","client_order_id":"g-1"}"#;

fn principal(town: &Town, key: &str) -> engine::directory::Principal {
    let hash = crate::http::auth::key_hash(key.as_bytes(), "svc").expect("a key");
    town.directory().principal(&hash).expect("known")
}

fn desk(town: &Town, key: &str, verbose: bool) -> Desk {
    let source = Source { address: [1, 2, 3, 4].into(), local: false };
    let principal = principal(town, key);
    let by = Operator { key: principal.key, key_slot: principal.slot, source };
    Desk::new(Rc::clone(&town.edge), by, verbose)
}

fn answer_to(desk: &Desk, frame: &str) -> Json {
    let answer = text_of_answer(desk, frame);
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

fn text_of_answer(desk: &Desk, frame: &str) -> String {
    let operation = desk.read(frame);
    String::from_utf8(run(desk.answer(operation)).payload().to_vec()).expect("JSON is UTF-8")
}

fn resting(town: &Town) -> OrderView {
    let mut trader = Trader::new(100_000_000, town.market.instrument(Outcome::First));
    let terms = trader.terms(3_700, 20);
    trader.place(ORDER, terms, NOW);
    trader.view(ORDER)
}

/// A shard that accepts everything, or refuses everything with `reject`. Returns the commands that it received.
fn shard(town: &Town, reject: Option<Reject>) -> Rc<RefCell<Vec<String>>> {
    let received = Rc::new(RefCell::new(Vec::new()));
    let (record, view) = (Rc::clone(&received), resting(town));
    town.shard(move |_, command| {
        record.borrow_mut().push(format!("{command:?}"));
        Ok(match (&reject, command) {
            (_, Command::PlaceBatch(placements)) => {
                Answer::Batch(placements.iter().map(|_| BatchEntry::Placed(view.clone())).collect())
            }
            (Some(reject), _) => Answer::Refused(*reject),
            (None, Command::CancelAll { .. }) => {
                let cancelled = vec![OrderId(ORDER)];
                Answer::Cancelled(CancelledOrders { cancelled, ..CancelledOrders::default() })
            }
            (None, _) => Answer::Order(view.clone()),
        })
    });
    received
}

/// Answers are written by hand.
#[test]
fn a_refusal_is_written_as_its_record() {
    let town = Town::new();
    let refusal = Refusal::from(Code::RateLimitExceeded).retry_after(1);
    let rate = RateState {
        per_minute: 120,
        remaining: 117,
        reset: 1_793_871_240,
        per_second: 10,
        remaining_per_second: 0,
        tier: Tier::Free,
    };
    let head = ResponseHead { rate: Some(rate), ..ResponseHead::with_id(&town.edge.app.front.names, no_request_id()) };
    let (mut written, mut expected) = (Vec::new(), Vec::new());
    write_answer(&mut written, Some(&Id::Number("1".to_owned())), Err(refusal), StatusCode::TOO_MANY_REQUESTS, &head);
    write_record(&mut expected, &Refused::example());
    assert_eq!(String::from_utf8(written), String::from_utf8(expected));
}

/// The result is the body of the REST twin; the rest of an answer is written by hand.
#[test]
fn an_answer_is_written_as_its_record() {
    let rates = "requests_per_second = 1000000\nrequests_per_minute = 1000000\n";
    let town = Town::with(&format!("[limits.tiers.free]\nmax_batch_size = 2\n{rates}"));
    let desk = desk(&town, &town.key, false);
    let order = || OrderResponse {
        order_id: ORDER,
        account_balance: Money::of("100.00"),
        client_order_id: None,
        token_id: "81140002".into(),
        market_id: town.condition().into(),
        wallet_id: 3,
        time_in_force: "GTC".into(),
        requested_time_in_force: "GTC".into(),
        created_at: scalar::Timestamp(NOW),
        ..OrderResponse::resting()
    };
    let detail = || OrderDetail { order: order(), expiration: None, ..OrderDetail::example() };
    let results = || vec![EntryResult::Order(Box::new(order())), EntryResult::Order(Box::new(order()))];
    // Every operation counts in both windows.
    let rate = |number: u32| Rate {
        limit: 1_000_000,
        remaining: 1_000_000 - number,
        reset: NOW.secs() / 60 * 60 + 60,
        limit_per_second: 1_000_000,
        remaining_per_second: 1_000_000 - number,
        tier: "free".into(),
    };
    let written = |record: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        record(&mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    };
    shard(&town, None);
    let (number, text) = (OperationId::Number, OperationId::Text);
    let answer = |id, rate| OrderAnswer { id, status: 200, result: order(), rate };
    let batch = BatchAnswer {
        id: number(i64::MIN),
        status: 200,
        result: BatchResults { results: results(), succeeded: 2, failed: 0 },
        rate: rate(3),
    };
    let swept = Cancelled { canceled: vec![Digits(ORDER)], ..Cancelled::example() };
    let swept = CancelAllAnswer { id: text("\"\\\u{7}€"), status: 200, result: swept, rate: rate(4) };
    let status = StatusAnswer { id: text("s-4"), status: 200, result: detail(), rate: rate(5) };
    let cancel = r#"{"id":"","op":"order.cancel","params":{"order_id":90415}}"#;
    let rows = [
        (
            format!(r#"{{"id":1,"op":"order.place","params":{PLACE}}}"#),
            written(&|out| write_record(out, &answer(number(1), rate(1)))),
        ),
        (cancel.to_owned(), written(&|out| write_record(out, &answer(text(""), rate(2))))),
        (
            format!(r#"{{"id":{},"op":"order.batch","params":[{PLACE},{PLACE}]}}"#, i64::MIN),
            written(&|out| write_record(out, &batch)),
        ),
        (
            r#"{"id":"\"\\\u0007€","op":"cancel_all","params":{"confirm":true}}"#.to_owned(),
            written(&|out| write_record(out, &swept)),
        ),
        (
            r#"{"id":"s-4","op":"order.status","params":{"order_id":90415}}"#.to_owned(),
            written(&|out| write_record(out, &status)),
        ),
    ];
    for (frame, expected) in &rows {
        assert_eq!(text_of_answer(&desk, frame), *expected, "{frame}");
    }
    println!("answers as records: {} cases", rows.len());
}

#[test]
fn an_operation_is_its_rest_twin() {
    // (op, params, method, target, body)
    let batch = format!(r#"{{"orders":[{PLACE},{{"side":"HOLD"}}]}}"#);
    let bare = format!("[{PLACE}]");
    let many = format!("[{}]", vec!["{}"; 101].join(","));
    let deep = format!(r#"{{"market_id":{}1{}}}"#, "[".repeat(31), "]".repeat(31));
    let long = "x".repeat(9_000);
    let long_id = format!(r#"{{"client_order_id":"{long}"}}"#);
    let long_path = format!("/v1/orders/by-client-id/{long}");
    let all = r#"{"confirm":true,"wallet_id":"all"}"#;
    let rows = [
        ("order.place", PLACE, "POST", "/v1/orders", PLACE),
        ("order.place", "{}", "POST", "/v1/orders", "{}"),
        ("order.place", r#"{"side":"HOLD","price":2}"#, "POST", "/v1/orders", r#"{"side":"HOLD","price":2}"#),
        ("order.place", &deep, "POST", "/v1/orders", &deep),
        ("order.batch", &batch, "POST", "/v1/orders/batch", &batch),
        ("order.batch", &bare, "POST", "/v1/orders/batch", &bare),
        ("order.batch", "{}", "POST", "/v1/orders/batch", "{}"),
        ("order.batch", "[]", "POST", "/v1/orders/batch", "[]"),
        ("order.batch", "7", "POST", "/v1/orders/batch", "7"),
        ("order.batch", &many, "POST", "/v1/orders/batch", &many),
        ("order.cancel", r#"{"order_id":90415}"#, "DELETE", "/v1/orders/90415", ""),
        ("order.cancel", r#"{"order_id":"90415","client_order_id":null}"#, "DELETE", "/v1/orders/90415", ""),
        ("order.cancel", r#"{"order_id":"batch"}"#, "DELETE", "/v1/orders/b%61tch", ""),
        ("order.cancel", r#"{"order_id":1.5}"#, "DELETE", "/v1/orders/1.5", ""),
        ("order.cancel", r#"{"client_order_id":"g-1"}"#, "DELETE", "/v1/orders/by-client-id/g-1", ""),
        (
            "order.cancel",
            r#"{"client_order_id":"a/b €?"}"#,
            "DELETE",
            "/v1/orders/by-client-id/a%2Fb%20%E2%82%AC%3F",
            "",
        ),
        ("order.cancel", &long_id, "DELETE", &long_path, ""),
        ("order.status", r#"{"order_id":90415}"#, "GET", "/v1/orders/90415", ""),
        ("order.status", r#"{"order_id":90415,"source":"pending"}"#, "GET", "/v1/orders/90415?source=pending", ""),
        ("order.status", r#"{"order_id":90415,"source":"filled"}"#, "GET", "/v1/orders/90415?source=filled", ""),
        ("order.status", r#"{"order_id":90415,"source":"a&b"}"#, "GET", "/v1/orders/90415?source=a%26b", ""),
        ("order.status", r#"{"order_id":90415,"wallet_id":"x"}"#, "GET", "/v1/orders/90415?wallet_id=x", ""),
        ("order.status", r#"{"client_order_id":"g-1"}"#, "GET", "/v1/orders/by-client-id/g-1", ""),
        ("cancel_all", all, "POST", "/v1/cancel-all?confirm=true", r#"{"wallet_id":"all"}"#),
        ("cancel_all", r#"{"confirm":"1"}"#, "POST", "/v1/cancel-all?confirm=1", "{}"),
        ("cancel_all", r#"{"confirm":false}"#, "POST", "/v1/cancel-all?confirm=false", "{}"),
        ("cancel_all", r#"{"confirm":"maybe"}"#, "POST", "/v1/cancel-all?confirm=maybe", "{}"),
        ("cancel_all", "{}", "POST", "/v1/cancel-all", "{}"),
        (
            "cancel_all",
            r#"{"confirm":true,"wallet_id":[]}"#,
            "POST",
            "/v1/cancel-all?confirm=true",
            r#"{"wallet_id":[]}"#,
        ),
    ];
    let town = Town::new();
    let desk = desk(&town, &town.key, false);
    let rejects = [
        None,
        Some(Reject::OrderNotFound),
        Some(Reject::WaitedTooLong),
        Some(Reject::PostOnlyWouldCross),
        Some(Reject::VenueUnavailable),
        Some(Reject::DailyLimit { limit: 100, used: 100, resets_at: NOW.plus(60 * SECOND) }),
        Some(Reject::FokNotFilled { order: OrderId(ORDER), fillable: Qty(1), requested: Qty(2), limit: Price(3_700) }),
    ];
    let mut cases = 0;
    for reject in rejects {
        for (op, params, method, target, body) in rows {
            let by_rest = shard(&town, reject);
            let rest = town.send(method, target, body);
            let by_frame = shard(&town, reject);
            let answer = answer_to(&desk, &format!(r#"{{"id":7,"op":"{op}","params":{params}}}"#));
            assert_eq!(by_frame, by_rest, "{op} {params}");
            let status = u64::from(rest.status);
            assert_eq!(
                (&answer["id"], answer["status"].as_u64()),
                (&7.into(), Some(status)),
                "{op} {params}: {answer}"
            );
            let part = if status == 200 { "result" } else { "error" };
            assert_eq!(answer[part], rest.json(), "{op} {params}");
            let header = |name: &str| rest.header(name).map(|text| text.parse::<u64>().expect("a number"));
            assert_eq!(answer["code"].as_str(), rest.header("x-svc-code"), "{op} {params}");
            assert_eq!(answer["retry_after"].as_u64(), header("retry-after"), "{op} {params}");
            assert_eq!(answer["order_id"].as_u64(), header("x-svc-order-id"), "{op} {params}");
            assert_eq!(answer["rate"]["limit"].as_u64(), header("x-ratelimit-limit"), "{op} {params}");
            cases += 1;
        }
    }
    println!("operations and their twins: {cases} cases");
}

#[test]
fn a_frame_that_is_not_an_operation_is_refused() {
    let town = Town::new();
    let desk = desk(&town, &town.key, false);
    town.shard(|_, command| panic!("{command:?}"));
    let (long, fits) = ("x".repeat(65), "€".repeat(64));
    let with_id = |id: &str| format!(r#"{{"id":{id},"op":"nothing","params":{{}}}}"#);
    let rows = [
        ("x".to_owned(), Json::Null, "INVALID_BODY"),
        (String::new(), Json::Null, "INVALID_BODY"),
        ("[1]".to_owned(), Json::Null, "INVALID_BODY"),
        ("7".to_owned(), Json::Null, "INVALID_BODY"),
        (r#"{"id":1,"id":2,"op":"cancel_all","params":{}}"#.to_owned(), Json::Null, "INVALID_BODY"),
        (r#"{"op":"cancel_all","params":{}}"#.to_owned(), Json::Null, "INVALID_REQUEST"),
        (with_id("null"), Json::Null, "INVALID_REQUEST"),
        (with_id("true"), Json::Null, "INVALID_REQUEST"),
        (with_id("1.5"), Json::Null, "INVALID_REQUEST"),
        (with_id("1e3"), Json::Null, "INVALID_REQUEST"),
        (with_id("9223372036854775808"), Json::Null, "INVALID_REQUEST"),
        (with_id("[]"), Json::Null, "INVALID_REQUEST"),
        (with_id(&format!("\"{long}\"")), Json::Null, "INVALID_REQUEST"),
        (with_id(&format!("\"{fits}\"")), fits.as_str().into(), "INVALID_REQUEST"),
        (with_id("\"\""), "".into(), "INVALID_REQUEST"),
        (with_id(r#""a\"b\u0007""#), "a\"b\u{7}".into(), "INVALID_REQUEST"),
        (with_id("0"), 0.into(), "INVALID_REQUEST"),
        (with_id("-5"), (-5).into(), "INVALID_REQUEST"),
        (with_id("9223372036854775807"), i64::MAX.into(), "INVALID_REQUEST"),
        (r#"{"id":1}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"params":{}}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":7,"params":{}}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"ORDER.PLACE","params":{}}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"order.place"}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"order.place","params":null}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"order.place","params":[]}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"order.batch"}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"cancel_all"}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"cancel_all","params":7}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"cancel_all","params":{"confirm":{}}}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"order.cancel","params":{}}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"order.cancel","params":{"order_id":""}}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (r#"{"id":1,"op":"order.cancel","params":{"order_id":[]}}"#.to_owned(), 1.into(), "INVALID_REQUEST"),
        (
            r#"{"id":1,"op":"order.status","params":{"order_id":1,"client_order_id":"a"}}"#.to_owned(),
            1.into(),
            "INVALID_REQUEST",
        ),
    ];
    for (frame, id, code) in &rows {
        let answer = answer_to(&desk, frame);
        let envelope = (answer["id"].clone(), &answer["status"], &answer["error"]["error"], &answer["code"]);
        assert_eq!(envelope, (id.clone(), &400.into(), &(*code).into(), &(*code).into()), "{frame}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
        assert_eq!(answer.get("rate"), None, "nothing was counted: {answer}");
    }
    println!("no operations: {} cases", rows.len());
}

/// Each operation checks whether the key is still valid.
#[test]
fn a_key_is_checked_as_in_rest_for_each_operation() {
    type Change = fn(&Town, UserId, engine::id::KeyId);
    let rows: [(&str, Permissions, Change, &str, u64, &str); 7] = [
        ("a sound key", Permissions::ReadTrade, |_, _, _| {}, "order.place", 200, ""),
        ("a reader places", Permissions::Read, |_, _, _| {}, "order.place", 403, "INSUFFICIENT_PERMISSION"),
        ("a reader sweeps", Permissions::Read, |_, _, _| {}, "cancel_all", 403, "INSUFFICIENT_PERMISSION"),
        ("a reader reads", Permissions::Read, |_, _, _| {}, "order.status", 200, ""),
        (
            "revoked",
            Permissions::ReadTrade,
            |town, user, key| town.note(user, Mutation::KeyRevoked(fact::KeyRevoked { key, at: NOW })),
            "order.status",
            401,
            "INVALID_KEY",
        ),
        (
            "expired",
            Permissions::ReadTrade,
            |town, user, key| {
                town.note(
                    user,
                    Mutation::KeyExpiring(fact::KeyExpiring { key, expires_at: NOW, replaced_by: key, at: NOW }),
                )
            },
            "order.place",
            401,
            "KEY_EXPIRED",
        ),
        (
            "not yet expired",
            Permissions::ReadTrade,
            |town, user, key| {
                town.note(
                    user,
                    Mutation::KeyExpiring(fact::KeyExpiring {
                        key,
                        expires_at: Timestamp(NOW.0 + 1),
                        replaced_by: key,
                        at: NOW,
                    }),
                );
            },
            "order.place",
            200,
            "",
        ),
    ];
    for (what, permissions, change, op, status, code) in rows {
        let town = Town::new();
        shard(&town, None);
        let key = town.world.key(Tier::Free, permissions);
        let desk = desk(&town, &key, false);
        let principal = principal(&town, &key);
        change(&town, principal.user, principal.key);
        let (params, method, target) = match op {
            "order.place" => (PLACE, "POST", "/v1/orders"),
            "cancel_all" => (r#"{"confirm":true}"#, "POST", "/v1/cancel-all?confirm=true"),
            _ => (r#"{"order_id":90415}"#, "GET", "/v1/orders/90415"),
        };
        let answer = answer_to(&desk, &format!(r#"{{"id":"a","op":"{op}","params":{params}}}"#));
        assert_eq!(answer["status"], status, "{what}: {answer}");
        assert_eq!(answer["code"].as_str().unwrap_or_default(), code, "{what}: {answer}");
        let rest = town.send_as(&key, method, target, if method == "POST" { params } else { "" });
        assert_eq!(u64::from(rest.status), status, "{what}");
        assert_eq!(answer.get("rate").is_some(), rest.header("x-ratelimit-limit").is_some(), "{what}");
    }
    println!("keys: {} cases", rows.len());
}

#[test]
fn windows_and_caps_are_those_of_the_key() {
    let town = Town::with(
        "[limits]\nplacements_per_user = 1\n[limits.tiers.free]\nrequests_per_second = 4\nrequests_per_minute = 100\nin_flight = 2\n",
    );
    shard(&town, None);
    let desk = desk(&town, &town.key, false);
    let limits = &town.edge.app.front.limits;
    let principal = principal(&town, &town.key);
    let place = format!(r#"{{"id":1,"op":"order.place","params":{PLACE}}}"#);
    let batch = format!(r#"{{"id":1,"op":"order.batch","params":[{PLACE},{PLACE},{PLACE}]}}"#);

    // One REST request, one operation and one batch of three: three requests of four.
    assert_eq!(town.send("GET", "/v1/orders/90415", "").header("x-ratelimit-remaining-per-second"), Some("3"));
    assert_eq!(answer_to(&desk, &place)["rate"]["remaining_per_second"], 2);
    assert_eq!(answer_to(&desk, &batch)["rate"]["remaining_per_second"], 1);
    // A frame that is not an operation does not count, and neither does one that is too large.
    answer_to(&desk, "{}");
    assert_eq!(
        answer_to(&desk, &place)["rate"],
        serde_json::json!({
            "limit": 100, "remaining": 96, "reset": NOW.secs() / 60 * 60 + 60,
            "limit_per_second": 4, "remaining_per_second": 0, "tier": "free",
        })
    );
    let refused = answer_to(&desk, &place);
    let shown = (&refused["status"], &refused["code"], &refused["retry_after"], &refused["rate"]["remaining"]);
    assert_eq!(shown, (&429.into(), &"RATE_LIMIT_EXCEEDED".into(), &1.into(), &96.into()), "{refused}");
    assert_eq!(town.send("GET", "/v1/orders/90415", "").status, 429, "one window for both");

    // Two requests are in flight: a third is refused.
    town.clock.set(NOW.plus(SECOND));
    let payer = Payer::Key(principal.slot);
    let first = limits.request(payer, Tier::Free, town.clock.now()).expect("room");
    let second = limits.request(payer, Tier::Free, town.clock.now()).expect("room");
    let refused = answer_to(&desk, &place);
    assert_eq!((&refused["status"], &refused["code"]), (&429.into(), &"RATE_LIMIT_EXCEEDED".into()), "{refused}");
    drop((first, second));
    // A placement of the user is in flight: a second one is refused, and a read is not.
    let held = limits.placement(principal.user).expect("room");
    let refused = answer_to(&desk, &place);
    assert_eq!((&refused["code"], &refused["error"]["retry_after_ms"]), (&"RATE_LIMITED".into(), &250.into()));
    assert_eq!(refused["retry_after"], 1);
    assert_eq!(answer_to(&desk, r#"{"id":1,"op":"order.status","params":{"order_id":90415}}"#)["status"], 200);
    drop(held);
    town.clock.set(NOW.plus(2 * SECOND));
    assert_eq!(answer_to(&desk, &place)["status"], 200);
    assert_eq!(limits.in_flight(payer), 0);

    let report = town.edge.app.front.usage.report(Some(principal.slot), 1, 1, town.clock.now());
    let last: Vec<_> = report.recent.iter().take(3).map(|row| (row.method, row.route, row.status)).collect();
    let place = ("POST", "/v1/orders");
    assert_eq!(last, [(place.0, place.1, 200), ("GET", "/v1/orders/{order_id}", 200), (place.0, place.1, 429)]);
    println!("windows and caps: 10 cases");
}

#[test]
fn a_body_is_bounded_as_in_rest() {
    let town = Town::with("[http]\nbody_bytes_max = 1024\n[limits.tiers.free]\nrequests_per_second = 1000000\n");
    shard(&town, None);
    let desk = desk(&town, &town.key, false);
    for (length, status) in [(1_024, 200), (1_025, 413)] {
        let blanks = " ".repeat(length - PLACE.len());
        let body = PLACE.replacen('{', &format!("{{{blanks}"), 1);
        assert_eq!(body.len(), length);
        assert_eq!(answer_to(&desk, &format!(r#"{{"id":1,"op":"order.place","params":{body}}}"#))["status"], status);
        assert_eq!(u64::from(town.send("POST", "/v1/orders", &body).status), status);
    }
    println!("bounds: 2 cases");
}

#[test]
fn a_handshake_with_verbose_gets_details() {
    let town = Town::new();
    let desk = desk(&town, &town.key, true);
    shard(&town, Some(Reject::InvalidTerms));
    let answer = answer_to(&desk, r#"{"id":1,"op":"order.place","params":{}}"#);
    assert!(answer["error"]["details"].is_object() || answer["error"]["details"].is_array(), "{answer}");
    assert!(answer["error"]["request_id"].as_str().is_some_and(|id| id.len() == 36), "{answer}");
}

#[test]
fn a_handler_that_panics_is_answered() {
    let town = Town::new();
    let desk = desk(&town, &town.key, false);
    town.shard(|_, command| panic!("{command:?}"));
    let answer = answer_to(&desk, &format!(r#"{{"id":"x","op":"order.place","params":{PLACE}}}"#));
    assert_eq!(
        (&answer["id"], &answer["status"], &answer["code"]),
        (&"x".into(), &500.into(), &"INTERNAL_ERROR".into())
    );
}

/// Slot 0 is that of another key.
#[test]
fn without_a_slot_no_operation_runs() {
    let by = |key| Bearer { user: UserId(1), key, tier: Tier::Free, permissions: Permissions::ReadTrade, alias: None };
    let known = |key: KeyId| (key == KeyId(7)).then_some(3);
    for (bearer, expected) in [
        (Some(by(Some(KeyId(7)))), Ok((KeyId(7), 3))),
        (Some(by(Some(KeyId(8)))), Err(Close::INVALID_KEY)),
        (Some(by(None)), Err(Close::NO_PERMISSION)),
        (None, Err(Close::NO_PERMISSION)),
    ] {
        assert_eq!(operates(bearer.as_ref(), known), expected, "{bearer:?}");
    }
    println!("slots: 4 cases");
}
