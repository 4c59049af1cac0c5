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
        ("latency_ms", json!({"lognormal": {"p50": 1, "p99": 2, "max": 9, "min": 1}})),
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

/// The route ignores unknown fields; the command refuses them by name.
#[test]
fn unknown_fields_have_a_name() {
    let predicate = |name: &str| json!([{"field": "mid", "op": "lt", "value": "1"}, {name: "1"}]);
    let cases = [
        (value(&NewBacktest::example()), None),
        (changed("seeds", json!(3)), None),
        (changed("token_ids", json!({CONDITION: "1"})), None),
        (changed("latency_ms", json!({"constant": 1})), None),
        (changed("seedz", json!(3)), Some("seedz")),
        (changed("latency", json!(5)), Some("latency")),
        (changed("s.sise", json!("5")), Some("strategy.sise")),
        (changed("s.entry", predicate("fields")), Some("strategy.entry.fields")),
        (changed("s.exit", predicate("operator")), Some("strategy.exit.operator")),
        (json!([{"seedz": 1}]), None),
        (json!({}), None),
    ];
    for (body, expected) in &cases {
        let text = body.to_string();
        let read = read::json(text.as_bytes()).expect("JSON");
        assert_eq!(unknown_field(&read).as_deref(), *expected, "{body}");
        // Where only its name is wrong, the route takes the request.
        if expected.is_some_and(|name| !name.contains('.')) {
            assert!(Spec::read(&read, NOW).is_ok(), "{body}");
        }
    }
    // The lists are those of the description.
    let fields = |schema: schemars::Schema| -> Vec<String> {
        let properties = schema.as_value()["properties"].as_object().cloned().unwrap_or_default();
        let mut names: Vec<String> = properties.into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    };
    let sorted = |names: &[&str]| {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(fields(schemars::schema_for!(NewBacktest<'static>)), sorted(&FIELDS));
    assert_eq!(fields(schemars::schema_for!(StrategySpec<'static>)), sorted(&STRATEGY_FIELDS));
    assert_eq!(fields(schemars::schema_for!(PredicateSpec<'static>)), sorted(&PREDICATE_FIELDS));
    println!("unknown fields: {} cases", cases.len() + 3);
}

/// What is stored of a request has a bound, though its body may have a mebibyte: gateway/docs/simulation.md §6.2.
#[test]
fn a_stored_request_is_bounded() {
    const STORED_BYTES_MAX: usize = 64 << 10;
    // The archive knows ids of 66 characters only. A token has at most 256 digits, a label 200 characters of six bytes.
    let ids: Vec<String> = (0..MARKETS_MAX).map(|number| format!("0x{number:064x}")).collect();
    let tokens: serde_json::Map<String, serde_json::Value> =
        ids.iter().map(|id| (id.clone(), json!("9".repeat(ID_CHARS_MAX)))).collect();
    let longest =
        json!({"field": "time_to_resolution_hours", "op": "lte", "value": "-999999999999999999.999999999999"});
    let mut body = changed("condition_ids", json!(ids));
    body["token_ids"] = json!(tokens);
    body["initial_bankroll"] = json!("9999999.999999");
    body["seed"] = json!(i64::MAX);
    body["latency_ms"] = json!({"lognormal": {"p50": 9_998, "p99": 9_999, "max": 10_000}});
    body["haircut"] = json!("0.8999");
    body["strategy"] = json!({
        "outcome": "\u{1}".repeat(LABEL_CHARS_MAX), "size": "999999.9999", "fill_model": "depth_walk_depletion",
        "entry": vec![longest.clone(); PREDICATES_MAX], "exit": vec![longest; PREDICATES_MAX],
    });
    body["note"] = json!("x".repeat(500_000));
    let stored = spec(&body).expect("sound").to_json().len();
    assert!(stored <= STORED_BYTES_MAX, "{stored} bytes");
    // That of one market, without a token.
    let small = spec(&changed("s.outcome", json!("\u{1}".repeat(LABEL_CHARS_MAX)))).expect("sound").to_json().len();
    assert!(small <= 4 << 10, "{small} bytes");
    println!("stored requests: {stored} and {small} bytes");
}
