//! Answers about what has ended are the same bytes before and after its rows have left memory: every list and lookup, both
//! dialects, exports, analysis, portfolio, with the cursors of before (gateway/docs/trading.md §3).

use crate::clob_bodies::{signed, v1};
use engine::id::UserId;
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;
use tests::cases::Cases;
use tests::departing::leaving_soon;
use tests::http::{Client, Response};
use tests::json::{int, text};
use tests::world::{World, changed, limit, market};

/// The pages of one list that are followed at most.
const PAGES_MAX: usize = 40;

/// Orders with every end, with and without ids, signed and not, filled in parts, in two wallets; positions that were
/// closed by a sale and by a resolution. Returns their ids and those of their hashes.
fn lived(world: &World, client: &mut Client, rounds: Range<u64>) -> (Vec<i64>, Vec<String>) {
    let (mut made, mut hashes) = (Vec::new(), Vec::new());
    let m = &world.markets;
    let sandbox = int(&client.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).expect(201), "/id");
    for round in rounds {
        for body in [
            changed(&limit(&m.rain, "BUY", "0.30", "10"), &json!({"client_order_id": format!("rests-{round}")})),
            changed(&market(&m.rain, "BUY", "0.42", "20"), &json!({"client_order_id": format!("taken-{round}")})),
            market(&m.vote, "BUY", "0.65", "10"),
            market(&m.rain, "SELL", "0.01", "5"),
            changed(&limit(&m.rain, "BUY", "0.20", "10"), &json!({"time_in_force": "FOK"})),
            changed(&market(&m.coin, "BUY", "0.99", "6"), &json!({"wallet_id": sandbox})),
            changed(&market(&m.coin, "SELL", "0.01", "6"), &json!({"wallet_id": sandbox})),
        ] {
            let answer = client.post("/v1/orders", &body);
            made.push(match answer.header("X-Svc-Order-Id") {
                Some(id) => id.parse().expect("an order id is a number"),
                None => int(&answer.expect(200), "/order_id"),
            });
        }
        let cancelled = int(&client.post("/v1/orders", &limit(&m.vote, "BUY", "0.5", "10")).expect(200), "/order_id");
        client.delete(&format!("/v1/orders/{cancelled}")).expect(200);
        made.push(cancelled);
        let cents = 4_400_000 + round;
        let taken = signed(&v1(m.rain.yes(), "BUY", &cents.to_string(), "10000000"), "FAK");
        hashes.push(text(&client.post("/v1/order", &taken).expect(200), "/orderID").to_owned());
    }
    // Every order of one wallet ends, and its shares are sold.
    client.send(&tests::http::Request::new("DELETE", "/v1/cancel-all")).expect(200);
    (made, hashes)
}

/// What is asked, without pages.
fn targets(world: &World, made: &[i64], hashes: &[String]) -> Vec<String> {
    let rain = &world.markets.rain;
    let mut targets: Vec<String> = Vec::new();
    for wallet in ["", "&wallet_id=api", "&wallet_id=all"] {
        for filter in [
            "limit=1",
            "limit=3",
            "limit=200",
            "limit=7&offset=5",
            "limit=50&offset=30",
            "status=FILLED&limit=2",
            "status=CANCELLED&limit=2",
            "status=PENDING",
            "status=EXPIRED",
            "side=SELL&limit=2",
            "side=BUY&limit=9",
            "status=FILLED&side=SELL&limit=2",
            "status=CANCELLED&side=BUY&limit=3",
            "status=CANCELLED&side=SELL",
        ] {
            targets.push(format!("/v1/orders?{filter}{wallet}"));
        }
        for filter in ["", "&status=FILLED", "&side=SELL"] {
            targets.push(format!("/v1/orders?market_id={}&limit=4{filter}{wallet}", rain.condition));
        }
        for path in ["/v1/account/history?limit=3", "/v1/account/history?limit=200&offset=4"] {
            targets.push(format!("{path}{wallet}"));
        }
        for status in ["", "&status=OPEN", "&status=CLOSED"] {
            targets.push(format!("/v1/account/positions?envelope=true{status}{wallet}"));
            targets.push(format!("/v1/account/positions?x=1{status}{wallet}"));
        }
        targets.push(format!("/v1/account/settlements?limit=2{wallet}"));
        targets.push(format!("/v1/account/portfolio?x=1{wallet}"));
        targets.push(format!("/v1/account/balance?x=1{wallet}"));
        targets.push(format!("/v1/account/profile-analysis?recent_trades=20{wallet}"));
        for filter in ["x=1", "to=2099-01-01", "from=2001-01-01&to=2099-01-01"] {
            targets.push(format!("/v1/export/trades.csv?{filter}{wallet}"));
        }
        targets.push(format!("/v1/export/trades.csv?market_id={}{wallet}", rain.condition));
        targets.push(format!("/v1/export/settlements.csv?x=1{wallet}"));
    }
    targets.extend(made.iter().map(|id| format!("/v1/orders/{id}")));
    targets.push(format!("/v1/orders/{}", made.iter().max().expect("orders") + 100_000));
    for round in 0..4 {
        targets.push(format!("/v1/orders/by-client-id/rests-{round}"));
        targets.push(format!("/v1/orders/by-client-id/taken-{round}"));
    }
    targets.push("/v1/orders/by-client-id/never-sent".to_owned());
    for dialect in ["plain", "strict"] {
        for path in ["/v1/data/orders", "/v1/data/trades"] {
            for filter in ["", "&limit=1", "&limit=4"] {
                targets.push(format!("{path}?dialect={dialect}{filter}"));
                targets.push(format!("{path}?dialect={dialect}{filter}&market={}", rain.condition));
                targets.push(format!("{path}?dialect={dialect}{filter}&asset_id={}", rain.yes()));
                targets.push(format!("{path}?dialect={dialect}{filter}&after=1&before=99999999999"));
            }
        }
        for order in made.iter().map(i64::to_string).chain(hashes.iter().cloned()) {
            targets.push(format!("/v1/data/order/{order}?dialect={dialect}"));
            targets.push(format!("/v1/data/orders?dialect={dialect}&id={order}"));
        }
    }
    for path in ["positions", "trades", "value", "v2/positions", "v2/trades", "v2/value"] {
        targets.push(format!("/v1/data-api/{path}?user={{address}}"));
    }
    targets
}

/// Status and body, but the moment at which an analysis was made: headers count requests and time them.
fn shown(answer: &Response) -> (u16, String) {
    const MADE_AT: &str = "\"analysis_generated_at\":\"";
    let mut body = String::from_utf8_lossy(&answer.body).into_owned();
    if let Some(begin) = body.find(MADE_AT).map(|at| at + MADE_AT.len())
        && let Some(length) = body[begin..].find('"')
    {
        body.replace_range(begin..begin + length, "");
    }
    (answer.status, body)
}

/// The answers to all targets and to the pages that follow them, by the target that was sent.
fn answers(client: &mut Client, targets: &[String]) -> BTreeMap<String, (u16, String)> {
    let mut all = BTreeMap::new();
    for target in targets {
        let (mut next, mut pages) = (Some(target.clone()), 0);
        while let Some(at) = next.take().filter(|_| pages < PAGES_MAX) {
            let answer = client.get(&at);
            assert!(answer.status < 500, "{at}: {}", answer.lossy());
            let page: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let cursor = page.get("next_cursor").and_then(|cursor| cursor.as_str()).filter(|cursor| *cursor != "LTE=");
            let joint = if target.contains('?') { '&' } else { '?' };
            next = cursor.map(|cursor| format!("{target}{joint}next_cursor={cursor}&cursor={cursor}"));
            pages += 1;
            all.insert(at, shown(&answer));
        }
    }
    all
}

#[test]
fn answers_do_not_depend_on_where_rows_are() {
    everywhere(&Cases::of("answers from memory and store"), None);
}

/// The same for a user whose later half of objects has ids of another prefix.
#[test]
fn answers_over_two_prefixes_do_not_depend_on_where_rows_are() {
    everywhere(&Cases::of("answers over two prefixes"), Some(UserId(1_000)));
}

fn everywhere(cases: &Cases, prefix: Option<UserId>) {
    let mut world = World::start_with(2, |place| {
        leaving_soon(place);
        place.set("venue", "facade", "true");
    });
    let mut client = world.user(0);
    let (mut made, mut hashes) = lived(&world, &mut client, 0..2);
    if let Some(prefix) = prefix {
        drop(client);
        world.past(0, |history, _| history.extend(prefix));
        client = world.user(0);
    }
    let (later, more) = lived(&world, &mut client, 2..4);
    let of_prefix =
        |ids: &[i64]| prefix.is_some_and(|prefix| ids.iter().all(|id| UserId::of_object(*id as u64) == prefix));
    assert_eq!((of_prefix(&made), of_prefix(&later)), (false, prefix.is_some()));
    made.extend(later);
    hashes.extend(more);
    let trades = client.get("/v1/data/trades?dialect=strict").expect(200);
    let address = text(&trades, "/data/0/maker_address").to_owned();
    let targets: Vec<String> =
        targets(&world, &made, &hashes).into_iter().map(|target| target.replace("{address}", &address)).collect();
    let before = answers(&mut client, &targets);
    // Without a move they are the same twice, or the comparison would mean nothing.
    let again = answers(&mut client, &targets);
    let changed: Vec<&String> = before.keys().filter(|target| again.get(*target) != before.get(*target)).collect();
    assert!(changed.is_empty(), "answers that change by themselves: {changed:#?}");
    world.depart_everything(1);
    // The cursors of before.
    for (target, answer) in &before {
        assert_eq!(shown(&client.get(target)), *answer, "{target}");
        cases.one();
    }
    // New orders stand before old ones, and old cursors go on where they stood.
    let new = limit(&world.markets.rain, "BUY", "0.30", "10");
    let newest = int(&client.post("/v1/orders", &new).expect(200), "/order_id");
    let page = client.get("/v1/orders?limit=200").expect(200);
    assert_eq!(int(&page, "/orders/0/order_id"), newest);
    // The hint of native lists counts the new order.
    let is_page = |target: &str| target.contains("next_cursor=") && !target.starts_with("/v1/orders?");
    for (target, answer) in before.iter().filter(|(target, _)| is_page(target)) {
        assert_eq!(shown(&client.get(target)), *answer, "{target}");
        cases.one();
    }
    // The same after a start, from snapshot and store alone.
    drop(client);
    world.crash();
    let mut client = world.user(0);
    client.delete(&format!("/v1/orders/{newest}")).expect(200);
    for (target, answer) in before.iter().filter(|(target, _)| target.starts_with("/v1/orders/")) {
        assert_eq!(shown(&client.get(target)), *answer, "{target}");
        cases.one();
    }
    // No user gets the prefix as its id.
    let (mut newcomer, _) = world.newcomer("later");
    let id = int(&newcomer.get("/v1/me").expect(200), "/user_id") as u64;
    assert!(prefix.is_none_or(|prefix| id > prefix.0), "{id}");
    cases.one();
}

/// The first answer to a signed order is remembered under an id that the order does not have, and found when both have
/// left memory: after a reset of the wallet nothing else says what it had then.
#[test]
fn a_signed_order_that_left_memory_has_its_first_balance() {
    let cases = Cases::of("first balances of signed orders");
    let mut world = World::start_with(2, |place| {
        leaving_soon(place);
        place.set("venue", "facade", "true");
    });
    let mut client = world.user(0);
    let (mut targets, mut before) = (Vec::new(), Vec::new());
    for round in 0..4 {
        let cents = 4_400_000 + round;
        let taken = signed(&v1(world.markets.rain.yes(), "BUY", &cents.to_string(), "10000000"), "FAK");
        client.post("/v1/order", &taken).expect(200);
        let newest = client.get("/v1/orders?limit=1").expect(200);
        targets.push(format!("/v1/orders/{}", int(&newest, "/orders/0/order_id")));
    }
    for target in &targets {
        before.push(client.get(target).expect(200));
    }
    client.post("/v1/account/reset-api-balance", &json!({})).expect(200);
    let check = |client: &mut Client| {
        for (target, before) in targets.iter().zip(&before) {
            let now = client.get(target).expect(200);
            assert_eq!(now.pointer("/account_balance"), before.pointer("/account_balance"), "{target}: {now}");
            assert!(now.pointer("/account_balance").is_some(), "{now}");
            cases.one();
        }
    };
    check(&mut client);
    let balances: std::collections::BTreeSet<String> =
        before.iter().map(|order| order["account_balance"].to_string()).collect();
    assert_eq!(balances.len(), before.len(), "each left another balance");
    world.depart_everything(1);
    check(&mut client);
    drop(client);
    world.crash();
    check(&mut world.user(0));
}
