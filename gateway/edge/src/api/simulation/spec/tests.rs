use super::*;
use crate::http::record::{Record as _, value};
use crate::http::testing::NOW;
use serde_json::json;
use wire::read;

fn spec(body: &serde_json::Value) -> Result<Spec, (u16, Code, String)> {
    let text = body.to_string();
    let value = read::json(text.as_bytes()).expect("JSON");
    Spec::read(&value, NOW).map_err(|refusal| (refusal.status().as_u16(), refusal.code(), refusal.message().to_owned()))
}

/// The example with one field changed; a dot goes into the strategy, null removes.
fn changed(path: &str, to: serde_json::Value) -> serde_json::Value {
    let mut body = value(&NewBacktest::example());
    let (place, name) = match path.split_once('.') {
        Some((_, name)) => (&mut body["strategy"], name),
        None => (&mut body, path),
    };
    let fields = place.as_object_mut().expect("an object");
    if to.is_null() {
        _ = fields.remove(name)
    } else {
        _ = fields.insert(name.to_owned(), to)
    }
    body
}

#[test]
fn the_example_of_the_reference() {
    let spec = spec(&value(&NewBacktest::example())).expect("sound");
    assert_eq!((spec.conditions, spec.bankroll), (vec![CONDITION.to_owned()], Cash::from_dollars(500)));
    assert_eq!(spec.end.since(spec.start), 2 * engine::time::HOUR);
    let at = |operator, value| Predicate { field: Field::Price, operator, value: Threshold(value) };
    let expected = Strategy {
        side: Side::Buy,
        outcome: "Yes".to_owned(),
        size: Qty::from_shares(25),
        model: FillModel::DepthWalk,
        entry: vec![at(Operator::LessOrEqual, 310_000_000_000)],
        exit: vec![at(Operator::GreaterOrEqual, 450_000_000_000)],
    };
    assert_eq!(spec.strategy, expected);
    assert_eq!((spec.seed, spec.seeds, spec.latency, spec.haircut), (0, 1, Latency::Constant(0), Haircut(0)));
}

#[test]
fn a_stored_spec_is_read_back() {
    let bodies = [
        value(&NewBacktest::example()),
        changed("token_ids", json!({CONDITION: "123"})),
        changed("latency_ms", json!({"uniform": [5, 10]})),
        changed("latency_ms", json!({"lognormal": {"p50": 1, "p99": 2, "max": 2}})),
        changed("latency_ms", json!({"constant": 10000})),
        changed("latency_ms", json!(60_000)),
        changed("haircut", json!("0.1234")),
        changed("seed", json!(i64::MAX)),
        changed("seeds", json!(256)),
        changed("tick_mode", json!("event")),
        changed("initial_bankroll", json!("0.000001")),
        changed("s.size", json!(7.12345)),
        changed("s.side", json!("SELL")),
        changed("s.outcome", json!("Größer \"x\"")),
        changed("s.fill_model", json!("midpoint")),
        changed("s.entry", json!([{"field": "spread", "op": "eq", "value": "-0.000000000001"}])),
        changed("s.exit", json!([{"field": "depth", "op": "gt", "value": 999999999999999999_u64}])),
        changed("s.exit", json!(null)),
    ];
    for body in &bodies {
        let first = spec(body).expect("sound");
        let stored: serde_json::Value = serde_json::from_str(&first.to_json()).expect("JSON");
        assert_eq!(spec(&stored), Ok(first), "{body}");
    }
    println!("specs: {} cases", bodies.len());
}

#[test]
fn wrong_requests_have_their_codes() {
    let many = |count: usize| (0..count).map(|number| format!("0x{number}")).collect::<Vec<_>>();
    let predicate =
        |field: &str, op: &str, value: serde_json::Value| json!([{"field": field, "op": op, "value": value}]);
    let invalid = [
        ("condition_ids", json!(null)),
        ("condition_ids", json!("0x1")),
        ("condition_ids", json!([])),
        ("condition_ids", json!([1])),
        ("condition_ids", json!([""])),
        ("condition_ids", json!(["x".repeat(257)])),
        ("condition_ids", json!(["a", "a"])),
        ("condition_ids", json!(many(101))),
        ("start", json!(null)),
        ("end", json!(5)),
        ("strategy", json!(null)),
        ("strategy", json!([])),
        ("initial_bankroll", json!("0")),
        ("initial_bankroll", json!("-1")),
        ("initial_bankroll", json!("10000000.01")),
        ("initial_bankroll", json!("0.0000001")),
        ("token_ids", json!([])),
        ("token_ids", json!({CONDITION: 5})),
        ("token_ids", json!({CONDITION: "1".repeat(257)})),
        ("tick_mode", json!("minute")),
        ("seed", json!(-1)),
        ("seed", json!(9_223_372_036_854_775_808_u64)),
        ("seeds", json!(0)),
        ("seeds", json!(257)),
        ("haircut", json!("0.91")),
        ("haircut", json!("-0.1")),
        ("haircut", json!("0.12345")),
        ("latency_ms", json!(-1)),
        ("latency_ms", json!(60_001)),
        ("latency_ms", json!("5")),
        ("latency_ms", json!({})),
        ("latency_ms", json!({"constant": 10_001})),
        ("latency_ms", json!({"uniform": [2, 1]})),
        ("latency_ms", json!({"uniform": [1]})),
        ("latency_ms", json!({"uniform": [1, 2, 3]})),
        ("latency_ms", json!({"lognormal": {"p50": 0, "p99": 5, "max": 9}})),
        ("latency_ms", json!({"lognormal": {"p50": 5, "p99": 5, "max": 9}})),
        ("latency_ms", json!({"lognormal": {"p50": 5, "p99": 10, "max": 9}})),
        ("latency_ms", json!({"file": "/etc/passwd", "pick": "draw"})),
        ("latency_ms", json!({"constant": 1, "uniform": [1, 2]})),
        ("s.spec_version", json!("2")),
        ("s.side", json!("buy")),
        ("s.outcome", json!("x".repeat(201))),
        ("s.size", json!(null)),
        ("s.size", json!("0.00001")),
        ("s.size", json!("1000000.1")),
        ("s.fill_model", json!("touch")),
        ("s.entry", json!({})),
        ("s.entry", json!([5])),
        ("s.entry", predicate("volume", "lt", json!("1"))),
        ("s.entry", predicate("price", "ne", json!("1"))),
        ("s.entry", predicate("price", "lt", json!("x"))),
        ("s.entry", predicate("price", "lt", json!(null))),
        ("s.exit", json!(vec![json!({"field": "mid", "op": "lt", "value": "1"}); 17])),
    ];
    for (path, to) in &invalid {
        let refused = spec(&changed(path, to.clone())).expect_err(path);
        assert_eq!((refused.0, refused.1), (422, Code::ValidationFailed), "{path} {to}: {}", refused.2);
    }
    let others = [
        ("start", json!("x"), Code::InvalidWindow),
        ("start", json!("2026-09-30T19:00:00Z"), Code::InvalidWindow),
        ("end", json!("2026-09-30T16:00:00Z"), Code::InvalidWindow),
        ("end", json!("2026-10-02T09:14:06Z"), Code::InvalidWindow),
        ("token_ids", json!({"0x1": "5"}), Code::InvalidRequest),
    ];
    for (path, to, code) in &others {
        let refused = spec(&changed(path, to.clone())).expect_err(path);
        assert_eq!((refused.0, refused.1), (400, *code), "{path} {to}: {}", refused.2);
    }
    assert!(spec(&changed("end", json!("2026-10-02T09:14:05Z"))).is_ok(), "now is not the future");
    for body in [json!(null), json!([]), json!("x"), json!({})] {
        assert_eq!(spec(&body).expect_err("not an object of fields").1, Code::ValidationFailed, "{body}");
    }
    println!("wrong specs: {} cases", invalid.len() + others.len() + 5);
}

#[test]
fn market_hours_are_rounded_up() {
    let with = |end: &str, markets: usize| {
        let conditions: Vec<String> = (0..markets).map(|number| number.to_string()).collect();
        let mut body = changed("condition_ids", json!(conditions));
        body["end"] = json!(end);
        spec(&body).expect("sound").market_hours()
    };
    for (end, markets, thousandths) in [
        ("2026-09-30T19:00:00Z", 1, 2_000),
        ("2026-09-30T19:00:00Z", 100, 200_000),
        ("2026-09-30T17:00:00.000001Z", 1, 1),
        ("2026-09-30T17:00:03.600001Z", 1, 2),
        ("2026-09-30T17:00:01.8Z", 3, 2),
    ] {
        assert_eq!(with(end, markets), thousandths, "{end} {markets}");
    }
}

#[test]
fn thresholds_have_short_texts() {
    for (picos, text) in [(0, "0"), (310_000_000_000, "0.31"), (-1, "-0.000000000001"), (25 * 10_i128.pow(12), "25")] {
        assert_eq!(picos_text(picos), text);
    }
}
