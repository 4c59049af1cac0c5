//! What is older than `history.keep_days` is cut: lists begin where the history begins, answers say so, and totals stay
//! (gateway/docs/history.md §8).

use engine::time::UtcDay;
use serde_json::{Value, json};
use tests::binary::command;
use tests::cases::Cases;
use tests::departing::leaving_soon;
use tests::eventually;
use tests::http::{Client, Response};
use tests::json::{int, list, text};
use tests::world::{World, changed, limit, market};

const DAY: u64 = 86_400;
const FROM: &str = "X-Svc-History-From";

/// Orders that have ended: filled, sold, cancelled. Returns their ids.
fn lived(world: &World, client: &mut Client) -> Vec<i64> {
    let (m, mut made) = (&world.markets, Vec::new());
    for round in 0..3 {
        for body in [
            changed(&market(&m.rain, "BUY", "0.42", "5"), &json!({"client_order_id": format!("old-{round}")})),
            market(&m.rain, "SELL", "0.01", "5"),
        ] {
            made.push(int(&client.post("/v1/orders", &body).expect(200), "/order_id"));
        }
        made.push(cancelled(world, client));
    }
    made
}

fn cancelled(world: &World, client: &mut Client) -> i64 {
    let order = limit(&world.markets.vote, "BUY", "0.01", "10");
    let id = int(&client.post("/v1/orders", &order).expect(200), "/order_id");
    client.delete(&format!("/v1/orders/{id}")).expect(200);
    id
}

/// Ids of the rows of a list.
fn ids(page: &Value, rows: &str, id: &str) -> Vec<String> {
    let of = |row: &Value| row.pointer(id).map(|id| id.as_str().map_or(id.to_string(), str::to_owned));
    list(page, rows).iter().map(|row| of(row).expect("an id")).collect()
}

/// Answers that say from when on they show history.
fn says(client: &mut Client, target: &str, from: Option<&str>, cases: &Cases) -> Response {
    let answer = client.get(target);
    assert_eq!(answer.header(FROM), from, "{target}: {}", answer.lossy());
    cases.one();
    answer
}

/// Everything about a user whose old rows were cut, and who has these young ones.
fn is_cut(client: &mut Client, old: &[i64], young: &[i64], from: &str, cases: &Cases) {
    let newest_first: Vec<String> = young.iter().rev().map(i64::to_string).collect();
    let orders = says(client, "/v1/orders?limit=200", Some(from), cases).expect(200);
    assert_eq!(ids(&orders, "/orders", "/order_id"), newest_first);
    assert_eq!(orders.pointer("/total_hint"), Some(&Value::Null), "what is kept is not counted without reading it");
    for path in
        ["/v1/account/history?limit=200", "/v1/account/positions?status=CLOSED", "/v1/data/trades?dialect=plain"]
    {
        let rows = says(client, path, Some(from), cases).expect(200);
        let rows = rows.as_array().or_else(|| rows.get("data")?.as_array()).expect("a list");
        assert!(rows.is_empty(), "{path}: {rows:?}");
    }
    for path in ["/v1/account/portfolio", "/v1/account/settlements", "/v1/account/profile-analysis"] {
        says(client, path, Some(from), cases).expect(200);
    }
    let csv = says(client, "/v1/export/trades.csv", Some(from), cases);
    assert_eq!(csv.text().lines().filter(|line| !line.is_empty()).count(), 1, "the head alone: {}", csv.text());
    for id in old {
        for path in [format!("/v1/orders/{id}"), format!("/v1/data/order/{id}?dialect=strict")] {
            assert_eq!(says(client, &path, Some(from), cases).status, 404, "{path}");
        }
    }
    for id in young {
        says(client, &format!("/v1/orders/{id}"), Some(from), cases).expect(200);
    }
    says(client, "/v1/orders/by-client-id/old-0", Some(from), cases).refused(404, "ORDER_NOT_FOUND");
    for path in ["/v1/account/equity", "/v1/account/balance", "/v1/me/wallets", "/v1/markets"] {
        says(client, path, None, cases);
    }
}

/// Figures that no cut changes.
fn totals(client: &mut Client) -> Value {
    let portfolio = client.get("/v1/account/portfolio").expect(200);
    let analysis = client.get("/v1/account/profile-analysis").expect(200);
    let of = |name: &str| analysis.get(name).cloned().unwrap_or_default();
    json!({"portfolio": portfolio, "balances": of("balances"), "wallet": of("wallet")})
}

#[test]
fn what_is_older_than_keep_days_is_cut() {
    let cases = Cases::of("history that was cut");
    let mut world = World::start_with(3, |place| {
        leaving_soon(place);
        place.set("history", "keep_days", "4").clock_ahead(0);
    });
    let mut client = world.user(0);
    let old = lived(&world, &mut client);
    world.depart_everything(1);
    let before = client.get("/v1/orders?limit=200").expect(200);
    assert_eq!(list(&before, "/orders").len(), old.len());
    let first = client.get("/v1/orders?limit=2").expect(200);
    let cursor = text(&first, "/next_cursor").to_owned();
    let kept = totals(&mut client);
    assert_eq!(world.figure("papertape_history_from_seconds"), 0);
    says(&mut client, "/v1/orders", None, &cases).expect(200);
    // Five days later the first move finds what is too old. More than two days of rows would wait for a day.
    world.place.clock_ahead(5 * DAY);
    let young: Vec<i64> = (0..3).map(|_| cancelled(&world, &mut client)).collect();
    let mut newcomer = world.user(2);
    cancelled(&world, &mut newcomer);
    world.depart_everything(1);
    let from = eventually("the cut", || client.get("/v1/orders").header(FROM).map(str::to_owned));
    let day = world.figure("papertape_history_from_seconds") / DAY;
    assert_eq!(from, UtcDay(day as u32).text());
    is_cut(&mut client, &old, &young, &from, &cases);
    assert_eq!(totals(&mut client), kept, "totals stay");
    says(&mut newcomer, "/v1/orders", None, &cases).expect(200);
    // A cursor of before goes on where the history is kept: nothing is older.
    let next = client.get(&format!("/v1/orders?limit=2&cursor={cursor}")).expect(200);
    assert_eq!(list(&next, "/orders").len(), 0, "{next}");
    // The same from snapshot and store.
    drop((client, newcomer));
    world.crash();
    let mut client = world.user(0);
    is_cut(&mut client, &old, &young, &from, &cases);
    assert_eq!(totals(&mut client), kept, "totals stay");
    drop(client);
    let World { place, server, .. } = world;
    server.stop();
    for verb in ["stats", "verify"] {
        let output = command().args(["history", verb, "--json"]).arg(place.data()).output().expect("it can be run");
        let printed = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success(), "{verb}: {printed}");
        assert!(printed.contains(&format!("{{\"ended_from\":\"{from}\"}}")), "{verb}: {printed}");
        cases.one();
    }
}
