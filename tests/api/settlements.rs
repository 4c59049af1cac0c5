//! Settlements (gateway/docs/accounts.md §3).

use engine::order::Side;
use engine::time::Timestamp;
use engine::user::WalletKind;
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::history::Trade;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::world::World;

/// 2026-03-01T12:00:00Z.
const NOON: u64 = 1_772_366_400_000_000;
const DAY: u64 = 86_400_000_000;
const PATH: &str = "/v1/account/settlements";

/// Payouts of user 0 on four days: won and lost in the decided market, twice a fraction in others.
fn paid(world: &mut World) {
    world.past(0, |history, markets| {
        let of = |market, outcome| history.instrument(market, outcome);
        let rows = [
            (of(&markets.decided, 0), WalletKind::Api, 10_000),
            (of(&markets.decided, 1), WalletKind::Main, 0),
            (of(&markets.vote, 0), WalletKind::Api, 5_000),
            (of(&markets.coin, 1), WalletKind::Api, 2_500),
        ];
        for (number, (instrument, wallet, per_share)) in (0..).zip(rows) {
            let at = NOON + number * DAY;
            let trade = Trade {
                instrument,
                wallet,
                side: Side::Buy,
                qty: 3_000_000,
                notional: 1_000_000,
                fee: 0,
                at: Timestamp(at - DAY / 2),
            };
            history.trade(trade);
            history.settle(wallet, instrument, per_share, Timestamp(at));
        }
    });
}

#[track_caller]
fn days(client: &mut Client, query: &str) -> Vec<String> {
    let page = client.get(&format!("{PATH}{query}")).expect(200);
    list(&page, "/data").iter().map(|row| text(row, "/settled_at")[8..10].to_string()).collect()
}

#[test]
fn a_settlement_shows_holdings_and_payout() {
    let cases = Cases::of("settlement rows");
    let mut world = World::start(1);
    assert_eq!(world.user(0).get(PATH).expect(200), json!({"data": [], "next_cursor": ""}));
    paid(&mut world);
    let page = world.user(0).get(&format!("{PATH}?wallet_id=all")).expect(200);
    let rows = list(&page, "/data");
    let market = &world.markets;
    let expected = [
        (&market.coin, 1, "0.25", "0.75", "-0.25", "partial", Value::Null),
        (&market.vote, 0, "0.50", "1.50", "0.50", "split", Value::Null),
        (&market.decided, 1, "0.00", "0.00", "-1.00", "lost", json!("Yes")),
        (&market.decided, 0, "1.00", "3.00", "2.00", "won", json!("Yes")),
    ];
    assert_eq!((rows.len(), text(&page, "/next_cursor")), (4, ""));
    for (row, (market, outcome, per_share, payout, realized, result, winner)) in rows.iter().zip(expected) {
        let row_without = |row: &Value| {
            let mut row = row.clone();
            for name in ["position_id", "wallet_id", "settled_at"] {
                assert!(row.as_object_mut().unwrap().remove(name).is_some(), "{name}");
            }
            row
        };
        let expected = json!({
            "market_id": market.condition, "market_question": market.question, "outcome": market.outcomes[outcome],
            "token_id": market.tokens[outcome], "quantity": "3", "avg_entry_price": "0.333333", "cost_basis": "1.00",
            "payout": payout, "payout_per_share": per_share, "realized_pnl": realized, "result": result,
            "resolved_outcome": winner
        });
        assert_eq!(row_without(row), expected);
        cases.one();
    }
    assert_eq!(text(&rows[0], "/settled_at"), "2026-03-04T12:00:00Z");
    // The same rows as lines of CSV.
    let csv = world.user(0).get("/v1/export/settlements.csv");
    for (row, line) in rows.iter().zip(csv.text().split("\r\n").skip(1)) {
        let cells: Vec<_> = row.as_object().unwrap().len().to_string().chars().collect();
        assert!(!cells.is_empty());
        assert!(line.starts_with(&format!("{},{},", int(row, "/position_id"), int(row, "/wallet_id"))), "{line}");
        let winner = at(row, "/resolved_outcome").as_str().unwrap_or_default();
        let end = format!(",{},{winner},{}", text(row, "/result"), text(row, "/settled_at"));
        assert!(line.ends_with(&end), "{line} {end}");
        cases.one();
    }
}

#[test]
fn parameters_choose_the_settlements() {
    let cases = Cases::of("settlement parameters");
    let mut world = World::start(2);
    paid(&mut world);
    let mut client = world.user(0);
    let all = client.get(&format!("{PATH}?wallet_id=all")).expect(200);
    let main = int(&list(&all, "/data")[2], "/wallet_id");
    let (decided, coin) = (world.markets.decided.condition.clone(), world.markets.coin.condition.clone());
    let rows: Vec<(String, &[&str])> = vec![
        (String::new(), &["04", "03", "01"]),
        ("?wallet_id=api".into(), &["04", "03", "01"]),
        ("?wallet_id=all".into(), &["04", "03", "02", "01"]),
        (format!("?wallet_id={main}"), &["02"]),
        (format!("?wallet_id=all&market_id={decided}"), &["02", "01"]),
        (format!("?market_id={coin}"), &["04"]),
        ("?market_id=0x00".into(), &[]),
        ("?from=2026-03-03".into(), &["04", "03"]),
        ("?to=2026-03-03".into(), &["03", "01"]),
        ("?from=2026-03-03T12:00:00Z&to=2026-03-03T12:00:00Z".into(), &["03"]),
        ("?from=2026-03-03T12:00:00.000001Z&to=2026-03-03".into(), &[]),
        ("?limit=2".into(), &["04", "03"]),
        ("?limit=500".into(), &["04", "03", "01"]),
        ("?cursor=LTE=".into(), &[]),
        ("?cursor=MA==".into(), &["04", "03", "01"]),
        ("?cursor=".into(), &["04", "03", "01"]),
    ];
    for (query, expected) in rows {
        assert_eq!(days(&mut client, &query), expected, "{query}");
        cases.one();
    }
    for (query, status, code) in [
        ("limit=0", 422, "VALIDATION_FAILED"),
        ("limit=501", 422, "VALIDATION_FAILED"),
        ("limit=x", 422, "VALIDATION_FAILED"),
        ("from=x", 422, "VALIDATION_FAILED"),
        ("to=2026-13-01", 422, "VALIDATION_FAILED"),
        ("wallet_id=x", 422, "VALIDATION_FAILED"),
        ("wallet_id=77", 404, "WALLET_NOT_FOUND"),
        ("cursor=7001", 400, "INVALID_CURSOR"),
        ("cursor=!", 400, "INVALID_CURSOR"),
        ("cursor=eA", 400, "INVALID_CURSOR"),
        ("cursor=x&limit=0", 422, "VALIDATION_FAILED"),
    ] {
        client.get(&format!("{PATH}?{query}")).refused(status, code);
        cases.one();
    }
    world.user(1).get(&format!("{PATH}?wallet_id={main}")).refused(404, "WALLET_NOT_FOUND");
    assert!(days(&mut world.user(1), "?wallet_id=all").is_empty());
    cases.add(2);
    // Across pages each row comes once.
    for size in 1..=4 {
        let (mut cursor, mut seen) = (String::new(), Vec::new());
        loop {
            let page = client.get(&format!("{PATH}?wallet_id=all&limit={size}&cursor={cursor}")).expect(200);
            seen.extend(list(&page, "/data").iter().map(|row| int(row, "/position_id")));
            cursor = text(&page, "/next_cursor").to_string();
            if cursor.is_empty() {
                break;
            }
        }
        let whole: Vec<_> = list(&all, "/data").iter().map(|row| int(row, "/position_id")).collect();
        assert_eq!(seen, whole, "pages of {size}");
        cases.one();
    }
}
