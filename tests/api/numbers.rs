//! Numbers that break parsers, in every field that takes a number.
//!
//! The answer is never a 5xx, a number is never rounded silently, and the code is the contract's.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::cases::Cases;
use tests::http::{Client, Request, Response};
use tests::json::{list, text};
use tests::token::unix_now;
use tests::world::{World, changed, limit, market};

/// Numbers as JSON tokens.
pub const RAW: [&str; 26] = [
    "0",
    "-0",
    "-1",
    "1e400",
    "1e-400",
    "1E5",
    "NaN",
    "Infinity",
    "-Infinity",
    "0x10",
    "1_000",
    "+1",
    ".5",
    "5.",
    "00.5",
    "0.00000000000000000001",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "999999999999999999999999999999999999999",
    "true",
    "[]",
    "{}",
    "--1",
    "1.2.3",
    "1 2",
];

/// The same and more as JSON strings, without the quotes.
pub const QUOTED: [&str; 31] = [
    "0",
    "-0",
    "-1",
    "1e400",
    "1e-400",
    "1E5",
    "NaN",
    "Infinity",
    "inf",
    "0x10",
    "1_000",
    "+1",
    ".5",
    "5.",
    "00.5",
    "0.00000000000000000001",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "１２",
    "٣",
    "",
    " 1",
    "1 ",
    "1\\u0000",
    "1,5",
    "--1",
    "1.2.3",
    "$1",
    "½",
    "1\\n",
];

/// A text by the grammar of gateway/docs/wire.md §1.
enum Meaning {
    /// Not a number of the contract.
    Refused,
    Zero,
    BelowZero,
    Half,
}

fn meaning(number: &str) -> Meaning {
    match number {
        "0" | "-0" => Meaning::Zero,
        "-1" => Meaning::BelowZero,
        "00.5" => Meaning::Half,
        _ => Meaning::Refused,
    }
}

fn is_json(raw: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(raw).is_ok()
}

/// Sends the body with `field` set to a raw piece of JSON text.
fn send(client: &mut Client, body: &Value, field: &str, raw: &str) -> Response {
    let body = changed(body, &json!({field: "@"})).to_string().replace("\"@\"", raw);
    client.send(&Request::post("/v1/orders").text("application/json", &body))
}

fn assert_answer(answer: &Response, expected: (u16, &str), what: &str) {
    assert_eq!((answer.status, answer.code().as_str()), expected, "{what}: {}", answer.lossy());
    if answer.status >= 400 {
        answer.assert_envelope();
    }
}

/// Every number of RAW and QUOTED with the JSON text that carries it, and whether that is JSON.
pub fn texts() -> Vec<(String, String, bool)> {
    let raw = RAW.iter().map(|raw| (raw.to_string(), raw.to_string(), is_json(raw)));
    let quoted = QUOTED.iter().map(|quoted| (quoted.to_string(), format!("\"{quoted}\""), true));
    raw.chain(quoted).collect()
}

/// A number of RAW or QUOTED in a query.
fn in_query(number: &str) -> String {
    let number = number.replace("\\u0000", "\0").replace("\\n", "\n");
    let encoded = |byte| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'.' | b'-' | b'_' => (byte as char).to_string(),
        _ => format!("%{byte:02X}"),
    };
    number.bytes().map(encoded).collect()
}

/// Each number of RAW and QUOTED once in a query, the limits of 64 bits, and bytes that are not text.
pub fn in_queries() -> BTreeSet<String> {
    let numbers = RAW.iter().chain(&QUOTED).map(|number| in_query(number));
    numbers.chain(["18446744073709551615", "%ff"].map(str::to_owned)).collect()
}

#[test]
fn quantity_amount_and_price_read_one_grammar() {
    let cases = Cases::of("decimals of an order");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let invalid = (422, "VALIDATION_FAILED");
    for (number, raw, sound) in texts() {
        let rows = [
            (
                "quantity",
                limit(rain, "BUY", "0.01", "5"),
                match meaning(&number) {
                    Meaning::Refused => invalid,
                    Meaning::Zero | Meaning::BelowZero => (400, "INVALID_QUANTITY"),
                    Meaning::Half => (400, "INVALID_ORDER_MIN_SIZE"),
                },
            ),
            (
                "amount",
                changed(&market(rain, "BUY", "0.42", "5"), &json!({"quantity": null})),
                match meaning(&number) {
                    Meaning::Refused => invalid,
                    Meaning::Zero | Meaning::BelowZero => (400, "INVALID_QUANTITY"),
                    Meaning::Half => (400, "INVALID_ORDER_MIN_SIZE"),
                },
            ),
            (
                "price",
                changed(&limit(rain, "BUY", "0.01", "5"), &json!({"post_only": true})),
                match meaning(&number) {
                    Meaning::Half => (400, "INVALID_POST_ONLY_ORDER"),
                    _ => invalid,
                },
            ),
        ];
        for (field, body, expected) in rows {
            let answer = send(&mut client, &body, field, &raw);
            let expected = if sound { expected } else { (400, "INVALID_BODY") };
            assert_answer(&answer, expected, &format!("{field}: {raw}"));
            cases.one();
        }
    }
    assert_eq!(list(&client.get("/v1/orders").expect(200), "/orders").len(), 0, "nothing was accepted");
}

#[test]
fn whole_numbers_of_an_order_never_break_it() {
    let cases = Cases::of("integers of an order");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let gtd =
        changed(&limit(rain, "BUY", "0.01", "5"), &json!({"time_in_force": "GTD", "expiration": unix_now() + 99}));
    for (_, raw, sound) in texts() {
        let answer = send(&mut client, &gtd, "expiration", &raw);
        let code = answer.code();
        // None of them is a time in the next ten years.
        let fine = match answer.status {
            400 => {
                (code == "INVALID_BODY") != sound
                    && ["INVALID_BODY", "INVALID_ORDER_EXPIRATION"].contains(&code.as_str())
            }
            422 => sound && code == "VALIDATION_FAILED" && ["true", "[]", "{}"].contains(&raw.as_str()),
            _ => false,
        };
        assert!(fine, "expiration {raw}: {} {}", answer.status, answer.lossy());
        cases.one();
        let answer = send(&mut client, &limit(rain, "BUY", "0.01", "5"), "wallet_id", &raw);
        let fine = match (answer.status, answer.code().as_str()) {
            (404, "WALLET_NOT_FOUND") | (422, "VALIDATION_FAILED") => sound,
            (400, "INVALID_BODY") => !sound,
            _ => false,
        };
        assert!(fine, "wallet_id {raw}: {} {}", answer.status, answer.lossy());
        cases.one();
    }
}

#[test]
fn texts_that_are_numbers_never_break_an_order() {
    let cases = Cases::of("numbers as texts");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let by_token =
        changed(&limit(rain, "BUY", "0.01", "5"), &json!({"market_id": null, "outcome": null, "token_id": rain.yes()}));
    let fields = ["market_id", "outcome", "side", "order_type", "time_in_force", "post_only", "client_order_id"];
    for (_, raw, sound) in texts() {
        for (field, body) in
            fields.iter().map(|field| (*field, limit(rain, "BUY", "0.01", "5"))).chain([("token_id", by_token.clone())])
        {
            let answer = send(&mut client, &body, field, &raw);
            assert!(answer.status < 500, "{field} {raw}: {} {}", answer.status, answer.lossy());
            if !sound {
                assert_answer(&answer, (400, "INVALID_BODY"), &format!("{field}: {raw}"));
            } else if answer.status >= 400 {
                answer.assert_envelope();
            } else {
                // Any printable text is an id, an empty field is absent, and `true` is accepted by this one.
                let fine = field == "client_order_id" || raw == "\"\"" || (field == "post_only" && raw == "true");
                assert!(fine, "{field} {raw} was accepted");
            }
            cases.one();
        }
    }
}

#[test]
fn products_that_overflow_are_only_too_dear() {
    let cases = Cases::of("products");
    let world = World::start(1);
    let mut client = world.user(0);
    let treaty = &world.markets.treaty;
    let rows = [
        (limit(treaty, "BUY", "0.9999", "1000000"), 400, "INSUFFICIENT_BALANCE"),
        (limit(treaty, "BUY", "0.0001", "1000000"), 200, ""),
        (limit(treaty, "SELL", "0.9999", "1000000"), 400, "INSUFFICIENT_POSITION"),
        (limit(treaty, "BUY", "0.9999", "999999999999999999"), 422, "VALIDATION_FAILED"),
        (limit(treaty, "BUY", "0.9999", "999999999999999999.999999999999"), 422, "VALIDATION_FAILED"),
        (limit(treaty, "BUY", "0.999999999999", "1000000"), 400, "INVALID_ORDER_MIN_TICK_SIZE"),
        (
            changed(&market(treaty, "BUY", "1", "5"), &json!({"quantity": null, "amount": "999999999999999999"})),
            400,
            "FOK_ORDER_NOT_FILLED_ERROR",
        ),
        (
            changed(
                &market(treaty, "BUY", "1", "5"),
                &json!({"quantity": null, "amount": "999999999999999999.999999999999"}),
            ),
            400,
            "FOK_ORDER_NOT_FILLED_ERROR",
        ),
    ];
    for (body, status, code) in rows {
        let answer = client.post("/v1/orders", &body);
        // A budget beyond all shares may also be reported as out of range.
        if body.get("amount").is_some() && [400, 422].contains(&answer.status) {
            answer.assert_envelope();
        } else {
            assert_answer(&answer, (status, code), &body.to_string());
        }
        cases.one();
    }
    let account = client.get("/v1/account/balance").expect(200);
    assert_eq!((text(&account, "/balance"), text(&account, "/reserved")), ("9900.00", "100.00"));
}

/// Most rows that a list skips.
const OFFSET_MAX: usize = i64::MAX as usize;

#[test]
fn query_numbers_are_in_range_or_refused() {
    let cases = Cases::of("numbers in queries");
    let world = World::start(1);
    let mut client = world.user(0);
    let condition = &world.markets.rain.condition;
    let token = world.markets.rain.yes();
    let doors = [
        ("/v1/orders?limit=".to_string(), 200),
        ("/v1/orders?offset=".into(), OFFSET_MAX),
        ("/v1/account/history?limit=".into(), 200),
        ("/v1/account/history?offset=".into(), OFFSET_MAX),
        ("/v1/markets?limit=".into(), 200),
        ("/v1/markets?offset=".into(), OFFSET_MAX),
        ("/v1/events?limit=".into(), 200),
        ("/v1/events?offset=".into(), OFFSET_MAX),
        ("/v1/me/wallets?limit=".into(), 200),
        ("/v1/me/wallets?offset=".into(), OFFSET_MAX),
        ("/v1/keys?limit=".into(), 200),
        ("/v1/keys?offset=".into(), OFFSET_MAX),
        (format!("/v1/book?token_id={token}&depth="), 500),
        (format!("/v1/clob/book/{token}?depth="), 500),
        (format!("/v1/markets/{condition}/book?depth="), 500),
    ];
    for (door, most) in &doors {
        for number in RAW.iter().chain(&QUOTED) {
            let answer = client.get(&format!("{door}{}", in_query(number)));
            let least = if *most == OFFSET_MAX { 0 } else { 1 };
            let valid = number.parse::<usize>().is_ok_and(|value| (least..=*most).contains(&value));
            let whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            if valid && whole {
                // An offset beyond a list is an empty page.
                assert_eq!(answer.status, 200, "{door}{number}: {}", answer.lossy());
            } else {
                assert_answer(&answer, (422, "VALIDATION_FAILED"), &format!("{door}{number}"));
            }
            cases.one();
        }
    }
    for number in RAW.iter().chain(&QUOTED) {
        for door in
            ["/v1/orders/", "/v1/orders?wallet_id=", "/v1/orders?cursor=", "/v1/book?token_id=", "/v1/tick-size/"]
        {
            let answer = client.get(&format!("{door}{}", in_query(number)));
            assert!(answer.status < 500, "{door}{number}: {} {}", answer.status, answer.lossy());
            if answer.status >= 400 {
                answer.assert_envelope();
            }
            cases.one();
        }
    }
}
