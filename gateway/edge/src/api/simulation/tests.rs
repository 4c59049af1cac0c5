//! The simulation routes on an archive of one market.

mod backtests;
mod exports;

use super::archive::{Archive, MadeMarket, Reading, Unreachable};
use crate::api::testing::{Answered, Text as _, Town};
use crate::groups::tables;
use crate::http::record::{Record, value};
use crate::http::testing::{NOW, World};
use engine::amount::{Price, Qty, TickSize};
use engine::backtest::{
    ArchivedBook, ArchivedMarket, ArchivedPair, Confidence, Coverage, Ends, Hour, HourState, Settled, SettlementSource,
    Verdict,
};
use engine::id::Outcome;
use engine::market::terms::{Category, Resolution};
use engine::time::{MILLISECOND, Timestamp};
use engine::user::{Permissions, Tier};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::{Arc, Mutex};

const ON: &str = "[flags]\nfeature_simulation_api_enabled = true\n\
                  [limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n";
const CONDITION: &str = "0x5151515151515151515151515151515151515151515151515151515151515151";
/// 2026-09-30T17: the first hour of the market.
const HOUR: Hour = Hour(497_441);

/// An archive of one market.
struct Shelf {
    market: ArchivedMarket,
    hours: Vec<HourState>,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    pair: Option<ArchivedPair>,
    is_broken: bool,
    /// The last moment asked for.
    asked: Option<(Outcome, Timestamp)>,
}

impl Shelf {
    fn new(hours: &[Verdict]) -> Shelf {
        let texts = |texts: [&str; 2]| texts.map(Arc::from);
        let states = hours.iter().enumerate();
        Shelf {
            market: ArchivedMarket {
                condition: CONDITION.into(),
                tokens: texts(["81140002", "55200077"]),
                outcomes: texts(["Yes", "No"]),
                category: Category::Weather,
                tick: TickSize(100),
                end: Ends::default(),
                settlement: Some(Settled {
                    resolution: Resolution::Winner(Outcome::First),
                    at: HOUR.end(),
                    source: SettlementSource::Upstream,
                }),
                hours: HOUR..Hour(HOUR.0 + hours.len() as u32),
            },
            hours: states.map(|(at, verdict)| HourState::new(Hour(HOUR.0 + at as u32), *verdict, true)).collect(),
            state: Mutex::new(State { pair: Some(pair()), is_broken: false, asked: None }),
        }
    }

    /// The same with partial hours after them that are not made yet.
    fn with_unmade(hours: &[Verdict], unmade: u32) -> Shelf {
        let mut shelf = Shelf::new(hours);
        let made_until = shelf.market.hours.end;
        shelf.market.hours.end = Hour(made_until.0 + unmade);
        let unmade = (made_until.0..shelf.market.hours.end.0).map(Hour);
        shelf.hours.extend(unmade.map(|hour| HourState::new(hour, Verdict::Partial, false)));
        shelf
    }

    fn read<'a, T: 'a>(&self, answer: T) -> Reading<'a, T> {
        let is_broken = self.state.lock().expect("no panic").is_broken;
        Box::pin(std::future::ready(if is_broken { Err(Unreachable) } else { Ok(answer) }))
    }
}

impl Archive for Shelf {
    fn market<'a>(&'a self, condition: &'a str) -> Reading<'a, Option<ArchivedMarket>> {
        self.read((condition == CONDITION).then(|| self.market.clone()))
    }

    fn hours<'a>(&'a self, _: &'a ArchivedMarket, window: Range<Hour>) -> Reading<'a, Vec<HourState>> {
        self.read(self.hours.iter().filter(|state| window.contains(&state.hour)).copied().collect())
    }

    fn made<'a>(&'a self, condition: &'a str, window: Range<Hour>) -> Reading<'a, Option<MadeMarket>> {
        let made = self.hours.iter().filter(|state| state.confidence != Confidence::Provisional).copied();
        let (market, coverage) = (self.market.clone(), Coverage::of(window, made));
        self.read((condition == CONDITION).then_some(MadeMarket { market, coverage }))
    }

    fn books<'a>(
        &'a self,
        _: &'a ArchivedMarket,
        outcome: Outcome,
        at: Timestamp,
    ) -> Reading<'a, Option<ArchivedPair>> {
        let mut state = self.state.lock().expect("no panic");
        state.asked = Some((outcome, at));
        let pair = state.pair.clone();
        drop(state);
        self.read(pair)
    }
}

/// The book of the reference's examples: 0.31 to 0.32, last changed 840 ms before 17:30.
fn pair() -> ArchivedPair {
    let level = |price, micros| (Price(price), Qty(micros));
    let own = ArchivedBook {
        bids: vec![level(3_100, 100_000_000), level(3_000, 50_000_000)],
        asks: vec![level(3_200, 60_500_049), level(3_300, 40_000_000)],
        last_message: Timestamp(HOUR.start().0 + 1_800_000_000 - 840 * MILLISECOND),
        hour: HOUR,
        verdict: Verdict::Valid,
        confidence: Confidence::High,
        is_stale: false,
        crossed_dropped: 0,
        deduped: 0,
    };
    ArchivedPair { own, complement: None }
}

struct Place {
    town: Town,
    shelf: Arc<Shelf>,
}

impl Place {
    fn new() -> Place {
        Place::of(&[Verdict::Valid, Verdict::Degraded])
    }

    fn of(hours: &[Verdict]) -> Place {
        let shelf = Arc::new(Shelf::new(hours));
        let town = Town::of(World::with_archive(ON, &tables(), shelf.clone(), None));
        Place { town, shelf }
    }

    fn state(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shelf.state.lock().expect("no panic"));
    }

    fn fill(&self, fields: &Value) -> Answered {
        self.fill_as(&self.town.key, fields)
    }

    /// The example with these fields changed; null removes one.
    fn fill_as(&self, key: &str, fields: &Value) -> Answered {
        let mut body = json!({"condition_id": CONDITION, "shares": "40", "at": "2026-09-30T17:30:00Z"});
        for (name, value) in fields.as_object().expect("fields") {
            match value {
                Value::Null => _ = body.as_object_mut().expect("fields").remove(name),
                value => body[name] = value.clone(),
            }
        }
        self.town.send_as(key, "POST", "/v1/simulation/fill", &body.to_string())
    }

    fn get(&self, target: &str) -> Answered {
        self.town.send("GET", target, "")
    }
}

#[test]
fn a_closed_gate_answers_after_the_credential() {
    let town = Town::new();
    for (method, path) in [
        ("POST", "/v1/simulation/fill"),
        ("GET", "/v1/simulation/coverage"),
        ("GET", "/v1/simulation/fill-models"),
        ("GET", "/v1/simulation/book"),
    ] {
        assert_eq!(town.send(method, path, "{}").code(), (404, "NOT_FOUND"), "{path}");
        assert_eq!(town.world.send(method, path, &[], "{}").code(), (401, "MISSING_API_KEY"), "{path}");
        let unknown = format!("svc_live_{}", "f".repeat(64));
        assert_eq!(town.send_as(&unknown, method, path, "{}").code(), (401, "INVALID_KEY"), "{path}");
        // The methods of a path that does not exist are not listed.
        assert_eq!(town.send("DELETE", path, "").code(), (404, "NOT_FOUND"), "{path}");
    }
    assert_eq!(town.send("GET", "/v1/simulation", "").code(), (404, "NOT_FOUND"));
}

#[test]
fn keys_that_may_read_are_enough() {
    let place = Place::new();
    let reader = place.town.world.key(Tier::Free, Permissions::Read);
    let models = "/v1/simulation/fill-models";
    assert_eq!(place.town.send_as(&reader, "GET", models, "").status, 200);
    let token = [("authorization", "Bearer x.y.z")];
    assert_eq!(place.town.world.send("GET", models, &token, "").code(), (401, "MISSING_API_KEY"));
    assert_eq!(place.town.send("POST", models, "{}").code(), (405, "HTTP_405"));
}

#[test]
fn the_example_of_a_fill_to_the_last_byte() {
    let place = Place::new();
    let expected = concat!(
        r#"{"vwap_fill_price":"0.3200","filled_shares":"40.0000","remaining_shares":"0.0000","slippage_bps":"159","#,
        r#""impact_bps":"0","levels_used":1,"fee":"0.4352","book_age_ms":840,"price_source":"archive","#,
        r#""confidence":"high","fill_model":"depth_walk","fee_model":"category_taker_v1","token_id":"81140002","#,
        r#""comp_token_id":"55200077","provenance":{"hour_status":"valid","bbo_confidence":"high","#,
        r#""ghost_guard_triggered":false,"deduped_events":0,"hour":"2026-09-30T17","stale":false},"#,
        r#""leakage":{"data_source":"archive","missing_periods":[],"fill_model":"depth_walk","#,
        r#""fee_model":"category_taker_v1","book_depth_available":true,"#,
        r#""signals_used_pre_decision_data_only":true,"slippage_model":"book_walk","latency_ms":0,"#,
        r#""queue_position":"1.0","queue_position_note":"Assumes last place at each price."}}"#,
    );
    let answer = place.fill(&json!({}));
    assert_eq!((answer.status, answer.text()), (200, expected));
    assert_eq!(serde_json::from_str::<Value>(expected).expect("JSON"), value(&super::fill::SimulatedFill::example()));
}

#[test]
fn fields_of_a_fill_have_their_effects() {
    let place = Place::new();
    let pro = place.town.world.key(Tier::ProPlus, Permissions::Read);
    // fields of the request; fields of the answer
    let cases = [
        (json!({"side": "SELL"}), json!({"vwap_fill_price": "0.3100", "impact_bps": "0"})),
        (json!({"shares": "100.50009"}), json!({"filled_shares": "100.5000", "levels_used": 2})),
        (json!({"shares": "200"}), json!({"filled_shares": "100.5000", "remaining_shares": "99.5000"})),
        (json!({"shares": 40}), json!({"filled_shares": "40.0000"})),
        (json!({"shares": "1000000", "fill_model": "midpoint"}), json!({"vwap_fill_price": "0.3150"})),
        (json!({"shares": "80", "fill_model": "top_of_book"}), json!({"filled_shares": "60.5000", "levels_used": 1})),
        (json!({"fill_model": "depth_walk_depletion"}), json!({"fill_model": "depth_walk_depletion"})),
        (
            json!({"limit_price": "0.3199"}),
            json!({"filled_shares": "0.0000", "vwap_fill_price": null, "fee": "0.0000"}),
        ),
        (json!({"limit_price": "0.31999"}), json!({"slippage_bps": null, "impact_bps": null, "levels_used": 0})),
        (json!({"limit_price": 0.32}), json!({"filled_shares": "40.0000"})),
        (json!({"side": "SELL", "limit_price": "0.31001"}), json!({"filled_shares": "0.0000"})),
        (json!({"outcome": "yes"}), json!({"token_id": "81140002"})),
        (json!({"outcome": "NO"}), json!({"token_id": "55200077", "comp_token_id": "81140002"})),
        (json!({"token_id": "55200077"}), json!({"token_id": "55200077"})),
        (json!({"token_id": "55200077", "outcome": "No"}), json!({"token_id": "55200077"})),
        (json!({"latency_ms": 1500}), json!({"book_age_ms": 2340})),
        (json!({"unknown": [1]}), json!({"filled_shares": "40.0000"})),
    ];
    for (fields, expected) in &cases {
        let answer = place.fill_as(&pro, fields);
        assert_eq!(answer.status, 200, "{fields}: {}", answer.text());
        let shown = answer.json();
        for (name, value) in expected.as_object().expect("fields") {
            assert_eq!(&shown[name], value, "{fields}: {name}");
        }
    }
    let leakage = |fields| place.fill(&fields).json()["leakage"].clone();
    let late = leakage(json!({"latency_ms": 1500, "queue_position": "0.50"}));
    assert_eq!((&late["latency_ms"], &late["queue_position"]), (&json!(1_500), &json!("0.50")));
    assert_eq!(late["queue_position_note"], "Not used: a fill takes liquidity and waits in no queue.");
    assert_eq!(leakage(json!({"fill_model": "midpoint"}))["slippage_model"], "none");
    // The book is that of the decision and the delay.
    let at = Timestamp(HOUR.start().0 + 1_801_500_000);
    place.fill(&json!({"latency_ms": 1500, "outcome": "No"}));
    assert_eq!(place.shelf.state.lock().expect("no panic").asked, Some((Outcome::Second, at)));
    println!("fills: {} cases", cases.len() + 3);
}

#[test]
fn provenance_is_that_of_the_book() {
    let place = Place::new();
    place.state(|state| {
        let own = &mut state.pair.as_mut().expect("a book").own;
        (own.verdict, own.confidence) = (Verdict::Partial, Confidence::Provisional);
        (own.is_stale, own.crossed_dropped, own.deduped) = (true, 2, 7);
        (own.bids, own.asks) = (Vec::new(), Vec::new());
    });
    let answer = place.fill(&json!({})).json();
    let expected = json!({"hour_status": "partial", "bbo_confidence": "provisional", "ghost_guard_triggered": true,
        "deduped_events": 7, "hour": "2026-09-30T17", "stale": true});
    assert_eq!((&answer["provenance"], &answer["confidence"]), (&expected, &json!("provisional")));
    assert_eq!(answer["leakage"]["book_depth_available"], false);
}

/// The order of the checks too: a case has every later mistake that it can have.
#[test]
fn wrong_fills_have_their_codes() {
    let place = Place::new();
    let long = "x".repeat(257);
    let window = (400, "INVALID_WINDOW");
    let invalid = (422, "VALIDATION_FAILED");
    let request = (400, "INVALID_REQUEST");
    let now = wire::instant::ts_text(NOW);
    let later = wire::instant::ts_text(NOW.plus(MILLISECOND));
    let cases = [
        (json!({"condition_id": null}), invalid),
        (json!({"condition_id": ""}), invalid),
        (json!({"condition_id": 5}), invalid),
        (json!({"condition_id": long}), invalid),
        (json!({"token_id": long}), invalid),
        (json!({"outcome": "x".repeat(201)}), invalid),
        (json!({"side": "buy"}), invalid),
        (json!({"side": 1}), invalid),
        (json!({"shares": null}), invalid),
        (json!({"shares": "0"}), invalid),
        (json!({"shares": "-1"}), invalid),
        (json!({"shares": "0.00009"}), invalid),
        (json!({"shares": "1000000.00001"}), invalid),
        (json!({"shares": "999999999999999999"}), invalid),
        (json!({"shares": "1e3"}), invalid),
        (json!({"shares": true}), invalid),
        (json!({"at": null}), invalid),
        (json!({"at": 1_790_000_000}), invalid),
        (json!({"fill_model": "touch"}), invalid),
        (json!({"fill_model": "DEPTH_WALK"}), invalid),
        (json!({"limit_price": "0"}), invalid),
        (json!({"limit_price": "1"}), invalid),
        (json!({"limit_price": "-0.5"}), invalid),
        (json!({"limit_price": "x"}), invalid),
        (json!({"latency_ms": -1}), invalid),
        (json!({"latency_ms": 60_001}), invalid),
        (json!({"latency_ms": "5"}), invalid),
        (json!({"latency_ms": 1.5}), invalid),
        (json!({"queue_position": "1.1"}), invalid),
        (json!({"queue_position": "-0.1"}), invalid),
        (json!({"queue_position": "last"}), invalid),
        (json!({"queue_position": "0.000000000000"}), (200, "")),
        (json!({"queue_position": "00000000000000000.5"}), invalid),
        // A wrong field is found before a wrong window.
        (json!({"latency_ms": 60_001, "at": "x"}), invalid),
        (json!({"at": ""}), window),
        (json!({"at": "yesterday"}), window),
        (json!({"at": "2026-09-31T17:30:00Z"}), window),
        (json!({"at": later}), window),
        (json!({"at": now, "latency_ms": 1}), window),
        (json!({"at": now}), (200, "")),
        // A wrong window before the plan, the plan before the market, the market before the outcome.
        (json!({"at": later, "fill_model": "depth_walk_depletion"}), window),
        (json!({"fill_model": "depth_walk_depletion", "condition_id": "0x1"}), (402, "UPGRADE_REQUIRED")),
        (json!({"condition_id": "0x1", "outcome": "Maybe"}), (404, "ARCHIVE_NOT_FOUND")),
        (json!({"condition_id": CONDITION.to_uppercase()}), (404, "ARCHIVE_NOT_FOUND")),
        (json!({"outcome": "Maybe"}), request),
        (json!({"outcome": ""}), request),
        (json!({"token_id": "1"}), request),
        (json!({"token_id": ""}), request),
        (json!({"token_id": "yes"}), request),
        (json!({"token_id": "primary"}), request),
        (json!({"token_id": "081140002"}), request),
        (json!({"token_id": "81140002", "outcome": "No"}), request),
        (json!({"token_id": "81140002", "outcome": "Maybe"}), request),
    ];
    for (fields, (status, code)) in &cases {
        let answer = place.fill(fields);
        assert_eq!((answer.status, answer.code().1), (*status, *code), "{fields}: {}", answer.text());
    }
    let answer = place.fill(&json!({"fill_model": "depth_walk_depletion"}));
    assert!(answer.text().contains(r#""feature_key":"dataset.historical_full","upgrade_url":"/pricing""#));
    for body in ["", "[]", "{", "5"] {
        let typed = [("content-type", "application/json")];
        let answer = place.town.send_with("POST", "/v1/simulation/fill", &typed, body);
        assert_eq!(answer.code(), (400, "INVALID_BODY"), "{body:?}");
    }
    println!("wrong fills: {} cases", cases.len() + 5);
}

#[test]
fn an_archive_that_cannot_be_read_is_unavailable() {
    let place = Place::new();
    let book = format!("/v1/simulation/book?condition_id={CONDITION}&at=2026-09-30T17:30:00Z");
    let coverage = format!("/v1/simulation/coverage?condition_id={CONDITION}");
    // Not covered, and an hour that must not be used.
    let wrong = ArchivedPair { own: ArchivedBook { verdict: Verdict::Quarantined, ..pair().own }, complement: None };
    for found in [None, Some(wrong)] {
        place.state(|state| state.pair = found);
        for answer in [place.fill(&json!({})), place.get(&book)] {
            assert_eq!(answer.code(), (404, "CONDITION_HOUR_NOT_COVERED"), "{}", answer.text());
        }
    }
    place.state(|state| state.is_broken = true);
    for answer in [place.fill(&json!({})), place.get(&book), place.get(&coverage)] {
        assert_eq!(answer.code(), (503, "ARCHIVE_UNAVAILABLE"), "{}", answer.text());
        assert_eq!(answer.header("retry-after"), Some("30"));
    }
    // A server without an archive.
    let town = Town::with(ON);
    let body = json!({"condition_id": CONDITION, "shares": "40", "at": "2026-09-30T17:30:00Z"}).to_string();
    for answer in
        [town.send("POST", "/v1/simulation/fill", &body), town.send("GET", &book, ""), town.send("GET", &coverage, "")]
    {
        assert_eq!(answer.code(), (503, "ARCHIVE_UNAVAILABLE"), "{}", answer.text());
    }
    assert_eq!(town.send("GET", "/v1/simulation/fill-models", "").status, 200);
}

#[test]
fn the_models_are_those_of_the_reference() {
    let shown = Place::new().get("/v1/simulation/fill-models").json();
    let rows: Vec<_> = shown["models"].as_array().expect("models").iter().collect();
    let expected = [
        ("midpoint", "Midpoint", false, true),
        ("top_of_book", "Top of book", false, true),
        ("depth_walk", "Depth walk", true, true),
        ("depth_walk_depletion", "Depth walk with depletion", true, false),
    ];
    assert_eq!(rows.len(), expected.len());
    for (row, (id, label, realistic, free)) in rows.iter().zip(expected) {
        let shown = [&row["id"], &row["label"], &row["realistic"], &row["free"]];
        assert_eq!(shown, [&json!(id), &json!(label), &json!(realistic), &json!(free)]);
        assert!(row["description"].as_str().is_some_and(|text| text.len() > 20));
    }
}

#[test]
fn the_example_of_a_book() {
    let place = Place::new();
    let target = format!("/v1/simulation/book?condition_id={CONDITION}&at=2026-09-30T17:30:00Z");
    let answer = place.get(&target);
    let expected = concat!(
        r#"{"condition_id":"0x5151515151515151515151515151515151515151515151515151515151515151","#,
        r#""token_id":"81140002","comp_token_id":"55200077","at":"2026-09-30T17:30:00Z","depth":10,"#,
        r#""bids":[{"price":"0.3100","size":"100.0000"},{"price":"0.3000","size":"50.0000"}],"#,
        r#""asks":[{"price":"0.3200","size":"60.5000"},{"price":"0.3300","size":"40.0000"}],"#,
        r#""best_bid":"0.3100","best_ask":"0.3200","book_age_ms":840,"provenance":{"hour_status":"valid","#,
        r#""bbo_confidence":"high","ghost_guard_triggered":false,"deduped_events":0,"hour":"2026-09-30T17","#,
        r#""stale":false},"leakage":{"data_source":"archive","missing_periods":[],"fill_model":"n/a","#,
        r#""fee_model":"category_taker_v1","book_depth_available":true,"#,
        r#""signals_used_pre_decision_data_only":true,"slippage_model":"none","latency_ms":0,"#,
        r#""queue_position":"1.0","queue_position_note":"Assumes last place at each price."}}"#,
    );
    assert_eq!((answer.status, answer.text()), (200, expected));
    let shallow = place.get(&format!("{target}&depth=1&outcome=no")).json();
    assert_eq!((shallow["bids"].as_array().map(Vec::len), &shallow["token_id"]), (Some(1), &json!("55200077")));
    place.state(|state| state.pair.as_mut().expect("a book").own.bids.clear());
    let one_sided = place.get(&target).json();
    assert_eq!((&one_sided["best_bid"], &one_sided["bids"]), (&Value::Null, &json!([])));
}

#[test]
fn wrong_books_have_their_codes() {
    let place = Place::new();
    let at = "at=2026-09-30T17:30:00Z";
    let cases = [
        (at.to_owned(), 422, "VALIDATION_FAILED"),
        (format!("condition_id=&{at}"), 422, "VALIDATION_FAILED"),
        (format!("condition_id={}&{at}", "x".repeat(257)), 422, "VALIDATION_FAILED"),
        (format!("condition_id={CONDITION}"), 422, "VALIDATION_FAILED"),
        (format!("condition_id={CONDITION}&{at}&depth=0"), 422, "VALIDATION_FAILED"),
        (format!("condition_id={CONDITION}&{at}&depth=501"), 422, "VALIDATION_FAILED"),
        (format!("condition_id={CONDITION}&{at}&depth="), 422, "VALIDATION_FAILED"),
        (format!("condition_id={CONDITION}&at="), 400, "INVALID_WINDOW"),
        (format!("condition_id={CONDITION}&at=2030-01-01"), 400, "INVALID_WINDOW"),
        (format!("condition_id=0x1&{at}"), 404, "ARCHIVE_NOT_FOUND"),
        (format!("condition_id={CONDITION}&{at}&outcome=Maybe"), 400, "INVALID_REQUEST"),
        (format!("condition_id={CONDITION}&{at}&token_id=secondary"), 400, "INVALID_REQUEST"),
    ];
    for (query, status, code) in &cases {
        let answer = place.get(&format!("/v1/simulation/book?{query}"));
        assert_eq!(answer.code(), (*status, *code), "{query}: {}", answer.text());
    }
    println!("wrong books: {} cases", cases.len());
}

#[test]
fn the_example_of_coverage() {
    let place = Place::new();
    let answer = place.get(&format!("/v1/simulation/coverage?condition_id={CONDITION}"));
    let expected = concat!(
        r#"{"condition_id":"0x5151515151515151515151515151515151515151515151515151515151515151","hours_available":2,"#,
        r#""hours_degraded":1,"hours_missing":0,"hours_quarantined":0,"bbo_confidence":"medium","#,
        r#""book_snapshot_coverage_pct":"100.00","settlement_known":true,"settlement_source":"upstream","#,
        r#""universe_eligible":true,"min_coverage_pct":"80.00","hours":[{"hour":"2026-09-30T17","verdict":"valid","#,
        r#""bbo_confidence":"high"},{"hour":"2026-09-30T18","verdict":"degraded","bbo_confidence":"medium"}],"#,
        r#""leakage":{"data_source":"archive","missing_periods":[],"fill_model":"n/a","#,
        r#""fee_model":"category_taker_v1","book_depth_available":true,"#,
        r#""signals_used_pre_decision_data_only":true,"slippage_model":"none","latency_ms":0,"#,
        r#""queue_position":"1.0","queue_position_note":"Assumes last place at each price."}}"#,
    );
    assert_eq!((answer.status, answer.text()), (200, expected));
}

#[test]
fn windows_of_coverage() {
    let place = Place::of(&[Verdict::Valid, Verdict::Quarantined, Verdict::Partial]);
    let path = format!("/v1/simulation/coverage?condition_id={CONDITION}");
    // window; available, missing, quarantined, percentage, eligible, missing hours
    let cases = [
        ("", 2, 0, 1, "66.67", false, vec!["2026-09-30T18"]),
        ("&start=2026-09-30T17:00:00Z&end=2026-09-30T18:00:00Z", 1, 0, 0, "100.00", true, vec![]),
        ("&start=2026-09-30T17:59:59Z&end=2026-09-30T18:00:01Z", 1, 0, 1, "50.00", false, vec!["2026-09-30T18"]),
        ("&start=2026-09-30T16:00:00Z&end=2026-09-30T18:00:00Z", 1, 1, 0, "50.00", false, vec!["2026-09-30T16"]),
        ("&end=2026-09-30T18:00:00Z", 1, 0, 0, "100.00", true, vec![]),
        ("&start=2026-09-30T19:30:00Z", 1, 0, 0, "100.00", true, vec![]),
    ];
    for (window, available, missing, quarantined, percentage, is_eligible, periods) in &cases {
        let shown = place.get(&format!("{path}{window}")).json();
        let counts = ["hours_available", "hours_missing", "hours_quarantined"].map(|name| shown[name].clone());
        assert_eq!(counts, [json!(available), json!(missing), json!(quarantined)], "{window}: {shown}");
        assert_eq!(shown["book_snapshot_coverage_pct"], *percentage, "{window}");
        assert_eq!(shown["universe_eligible"], *is_eligible, "{window}");
        assert_eq!(shown["leakage"]["missing_periods"], json!(periods), "{window}");
    }
    // 90 days are the most, named or not.
    let longest = place.get(&format!("{path}&end=2026-12-29T17:00:00Z")).json();
    assert_eq!(longest["hours"].as_array().map(Vec::len), Some(2_160), "the newest ones");
    let wrong = [
        ("&start=x", "INVALID_WINDOW"),
        ("&end=", "INVALID_WINDOW"),
        ("&start=2026-09-30T18:00:00Z&end=2026-09-30T18:00:00Z", "INVALID_WINDOW"),
        ("&start=2026-09-30T19:00:00Z&end=2026-09-30T18:00:00Z", "INVALID_WINDOW"),
        ("&start=2026-09-30T17:00:00Z&end=2026-12-29T17:00:01Z", "INVALID_WINDOW"),
        ("&start=2026-01-01", "INVALID_WINDOW"),
        ("&start=2026-10-01", "INVALID_WINDOW"),
        ("&end=2026-09-30T17:00:00Z", "INVALID_WINDOW"),
    ];
    for (window, code) in wrong {
        assert_eq!(place.get(&format!("{path}{window}")).code(), (400, code), "{window}");
    }
    for (query, status, code) in [
        ("", 422, "VALIDATION_FAILED"),
        ("?condition_id=", 422, "VALIDATION_FAILED"),
        ("?start=x", 422, "VALIDATION_FAILED"),
        ("?condition_id=0x1&start=x", 400, "INVALID_WINDOW"),
        ("?condition_id=0x1", 404, "ARCHIVE_NOT_FOUND"),
    ] {
        assert_eq!(place.get(&format!("/v1/simulation/coverage{query}")).code(), (status, code), "{query:?}");
    }
    println!("windows: {} cases", cases.len() + wrong.len() + 6);
}
