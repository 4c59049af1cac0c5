use super::*;
use crate::testing::{FIRST, Shelf, condition, rising, spec, token};
use engine::backtest::Verdict;
use serde_json::{Value, json};
use std::cell::Cell;

fn plan(shelf: &Shelf, markets: &[u64], hours: u32, changes: &Value) -> Result<Plan, PlanError> {
    Plan::of(&spec(markets, hours, changes), &shelf.past(), &|| true)
}

#[test]
fn a_plan_names_outcomes_hours_and_digests() {
    let shelf = Shelf::new();
    rising(&shelf, 1, 3);
    let strategy = |outcome: &str| json!({"strategy": {"outcome": outcome, "size": "5"}});
    let by_token = |outcome: u64| json!({"token_ids": {condition(1).to_string(): &*token(1, outcome)}, "strategy": {"outcome": "x", "size": "5"}});
    let mut cases = 0;
    for (changes, outcome) in [
        (strategy("Token A"), Outcome::First),
        (strategy("TOKEN b"), Outcome::Second),
        (by_token(0), Outcome::First),
        (by_token(1), Outcome::Second),
    ] {
        let plan = plan(&shelf, &[1], 3, &changes).expect("a plan");
        let market = &plan.job.markets[0];
        assert_eq!(market.outcome, outcome, "{changes}");
        assert_eq!(&**plan.label(0), if outcome == Outcome::First { "Token A" } else { "Token B" });
        assert_eq!(plan.hours, FIRST..Hour(FIRST.0 + 3));
        assert_eq!(market.coverage.count(Verdict::Valid), 3);
        let digests: Vec<(Hour, String)> =
            market.digests.iter().map(|(hour, digest)| (*hour, archive::hex(digest))).collect();
        let of = |hour: u32| {
            let entry = shelf.store.hour(crate::testing::VENUE, Hour(FIRST.0 + hour)).expect("an hour");
            (entry.hour, entry.sidecar().expect("a sidecar").parquet.sha256.clone())
        };
        assert_eq!(digests, [of(0), of(1), of(2)]);
        cases += 1;
    }
    println!("plans: {cases} cases");
}

#[test]
fn what_an_archive_does_not_have_is_named() {
    let shelf = Shelf::new();
    rising(&shelf, 1, 3);
    let named = |outcome: &str| json!({"strategy": {"outcome": outcome, "size": "5"}});
    let token_of = |token: &str| json!({"token_ids": {condition(1).to_string(): token}});
    let rows = [
        (vec![1, 2], 3, json!({}), "market_unknown"),
        (vec![1], 3, named("Yes"), "outcome_unknown"),
        (vec![1], 3, named(""), "outcome_unknown"),
        (vec![1], 3, token_of("1"), "outcome_unknown"),
        (vec![1], 3, token_of("Token A"), "outcome_unknown"),
        // Three of four hours are less than four fifths.
        (vec![1], 4, json!({}), "hours_gone"),
    ];
    for (markets, hours, changes, expected) in &rows {
        let error = plan(&shelf, markets, *hours, changes).err().expect("no plan");
        assert_eq!(error.name(), *expected, "{markets:?} {changes}: {error}");
    }
    // The hour that is missing first, by its name.
    let error = plan(&shelf, &[1], 4, &json!({})).err().expect("no plan");
    assert!(error.to_string().ends_with(&Hour(FIRST.0 + 3).to_string()), "{error}");
    let asked = Cell::new(0);
    let goes_on = || {
        asked.set(asked.get() + 1);
        false
    };
    let ended = Plan::of(&spec(&[1], 3, &json!({})), &shelf.past(), &goes_on).err();
    assert!(matches!(ended, Some(PlanError::Ended)) && asked.get() == 1);
    println!("plans that there are not: {} cases", rows.len() + 2);
}

/// Retention removes an hour only after the plans that use it are gone.
#[test]
fn a_plan_holds_its_hours() {
    use archive::store::{Settings, Store};
    let shelf = Shelf::new();
    rising(&shelf, 1, 3);
    let settings = Settings { keep_days: 1, ..Settings::default() };
    let store = Arc::new(Store::open(shelf.store.root(), settings).expect("an archive"));
    let past = Past::new(store.clone(), venue::category::Names::default());
    let lock = store.lock().expect("the lock");
    let later = Hour(FIRST.0 + 1_000).start();
    // The window begins with the second hour; the first one is held for opening books.
    let start = wire::instant::ts_text(Hour(FIRST.0 + 1).start());
    let held = Plan::of(&spec(&[1], 3, &json!({"start": start})), &past, &|| true).expect("a plan");
    assert_eq!(store.retain(&lock, later).expect("retained").hours.len(), 0);
    drop(held);
    assert_eq!(store.retain(&lock, later).expect("retained").hours.len(), 3);
}
