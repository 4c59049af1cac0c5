//! Numbers of placements in the venue's shapes: values that break parsers, and values that must be returned unchanged.

use crate::clob_bodies::{flat, signed, v1};
use crate::numbers::texts;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::cases::Cases;
use tests::http::{Request, Response};
use tests::json::{micros_at, text};
use tests::world::{World, changed};

/// Hostile numbers in every numeric field of the three routes.
#[test]
fn numbers_that_break_parsers_break_no_order() {
    let cases = Cases::of("abuse numbers");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let order = v1(rain.yes(), "BUY", "3000000", "10000000");
    let mut accepted = BTreeSet::new();
    let fields = [
        "makerAmount",
        "takerAmount",
        "salt",
        "expiration",
        "side",
        "signatureType",
        "feeRateBps",
        "nonce",
        "tokenId",
        "signature",
    ];
    let mut numbers: Vec<(String, bool)> = texts().into_iter().map(|(_, raw, sound)| (raw, sound)).collect();
    numbers.push(("null".to_owned(), true));
    for kind in ["GTC", "GTD", "FOK"] {
        for field in fields {
            for (raw, sound) in &numbers {
                let mut signed = signed(&order, kind);
                signed["order"][field] = json!("@@");
                let body = signed.to_string().replace("\"@@\"", raw);
                for (path, body) in [("/v1/order", body.clone()), ("/v1/orders", format!("[{body}]"))] {
                    let answer = client.send(&Request::post(path).text("application/json", &body));
                    let code = code_of(&answer);
                    let fine: &[&str] = match (*sound, field) {
                        (false, _) => &["INVALID_BODY"],
                        (true, "makerAmount" | "takerAmount" | "side") => &["INVALID_ORDER_PAYLOAD"],
                        (true, "expiration") if kind == "GTD" => &["INVALID_ORDER_EXPIRATION"],
                        (true, "tokenId") if kind == "GTD" => &["INVALID_ORDER_PAYLOAD", "INVALID_ORDER_EXPIRATION"],
                        (true, "tokenId") => &["INVALID_ORDER_PAYLOAD", "MARKET_NOT_FOUND"],
                        // The expiration of a GTD order is "0" in the base.
                        (true, _) if kind == "GTD" => &["INVALID_ORDER_EXPIRATION"],
                        (true, _) if kind == "FOK" => &["FOK_ORDER_NOT_FILLED_ERROR"],
                        (true, _) => &[""],
                    };
                    // A side of 0 has a meaning.
                    let meant = field == "side" && raw == "0";
                    assert!(meant || fine.contains(&code.as_str()), "{path} {kind} {field} {raw}: {}", answer.lossy());
                    assert!(answer.status < 500, "{path} {kind} {field} {raw}: {}", answer.lossy());
                    accepted.insert(code);
                    cases.one();
                }
            }
        }
    }
    assert!(accepted.len() >= 5, "{accepted:?}");
    for field in ["price", "size", "expiration", "client_order_id", "token_id", "side"] {
        for (raw, _) in &numbers {
            let mut body = changed(&flat(rain.yes(), "BUY", "0.01", "5"), &json!({"order_type": "GTD"}));
            body[field] = json!("@@");
            let body = body.to_string().replace("\"@@\"", raw);
            let answer = client.send(&Request::post("/v1/clob/order").text("application/json", &body));
            let known = [
                "INVALID_BODY",
                "INVALID_ORDER_PAYLOAD",
                "INVALID_QUANTITY",
                "PRICE_REQUIRED",
                "INVALID_ORDER_EXPIRATION",
                "MARKET_NOT_FOUND",
                "VALIDATION_FAILED",
            ];
            assert!(
                answer.status < 500 && (answer.status == 200 || known.contains(&answer.code().as_str())),
                "{field} {raw}: {}",
                answer.lossy()
            );
            cases.one();
        }
    }
    let balance = client.get("/v1/account/balance").expect(200);
    assert!(micros_at(&balance, "/balance") >= 0, "{balance}");
}

/// The code of a refusal, of the envelope or of the only entry of a batch; empty when the order is accepted.
fn code_of(answer: &Response) -> String {
    let body = answer.json();
    let entry = body.get(0).unwrap_or(&body);
    entry.get("error").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Every field of a signed order is exact: the order is shown as it was placed, for each tick.
#[test]
fn prices_and_sizes_come_back_as_they_were_placed() {
    let cases = Cases::of("round trips");
    let world = World::start(1);
    let mut client = world.user(0);
    let markets = &world.markets;
    for (market, tick, steps) in
        [(&markets.game, 1_000, 4), (&markets.rain, 100, 41), (&markets.vote, 10, 120), (&markets.treaty, 1, 150)]
    {
        for step in 1..=steps {
            let price = step * tick;
            let shares: u64 = 5_000_000 + step * 10_000;
            let body = v1(market.yes(), "BUY", &(price * shares / 10_000).to_string(), &shares.to_string());
            let placed = client.post("/v1/order", &changed(&signed(&body, "GTC"), &json!({"postOnly": true})));
            if placed.status != 200 {
                // Prices at which it would take liquidity.
                placed.refused(400, "INVALID_POST_ONLY_ORDER");
                continue;
            }
            let id = text(&placed.json(), "/orderID").to_owned();
            let row = client.get(&format!("/v1/data/order/{id}")).expect(200);
            assert_eq!(micros_at(&row, "/price"), price as i64 * 100, "{row}");
            assert_eq!(micros_at(&row, "/original_size"), shares as i64, "{row}");
            cases.one();
        }
    }
}
