//! What the services state about the fees of a market.

use super::*;
use engine::market::terms::FeeSchedule;

const CONDITION: &str = "0xaa00000000000000000000000000000000000000000000000000000000000009";

/// A row of the catalogue with these fields.
fn row(fields: &str) -> String {
    format!(
        r#"[{{"id":"9","conditionId":"{CONDITION}","slug":"s","clobTokenIds":"[\"91\",\"92\"]","active":true,
            "acceptingOrders":true,"orderPriceMinTickSize":0.01{fields}}}]"#
    )
}

/// The stated fees in updates; `None` in the list: unusable ones.
fn fees(updates: &[FeedUpdate]) -> Vec<Option<FeeSchedule>> {
    let stated = updates.iter().filter_map(|update| match update {
        FeedUpdate::Fees { condition, schedule } => {
            assert_eq!(condition, CONDITION);
            Some(*schedule)
        }
        _ => None,
    });
    stated.collect()
}

fn is(rate: u32, exponent: u16, taker_only: bool, rebate_rate: u32) -> Vec<Option<FeeSchedule>> {
    vec![Some(FeeSchedule { rate, exponent, taker_only, rebate_rate })]
}

#[test]
fn a_row_states_its_fees_or_nothing() {
    let unusable = || vec![None];
    let cases = [
        ("", vec![], 0),
        (r#","feesEnabled":true,"feeType":"crypto_fees_v2""#, vec![], 0),
        (
            r#","feesEnabled":true,"feeSchedule":{"rate":0.07,"exponent":1,"takerOnly":true,"rebateRate":0.2}"#,
            is(70_000, 1, true, 200_000),
            0,
        ),
        (r#","feeSchedule":{"exponent":2,"rate":"0.25","takerOnly":false}"#, is(250_000, 2, false, 0), 0),
        (r#","feesEnabled":false"#, vec![Some(FeeSchedule::FREE)], 0),
        // A market without fees may still have a schedule.
        (r#","feesEnabled":"false","feeSchedule":{"rate":0.07,"exponent":1}"#, vec![Some(FeeSchedule::FREE)], 0),
        (r#","feesEnabled":true,"feeSchedule":null"#, vec![], 0),
        (r#","feeSchedule":{"rate":1.5,"exponent":1}"#, unusable(), 1),
        (r#","feeSchedule":{"rate":0.07,"exponent":9}"#, unusable(), 1),
        (r#","feeSchedule":{"rate":0.07}"#, unusable(), 1),
        (r#","feeSchedule":{}"#, unusable(), 1),
        (r#","feeSchedule":[]"#, unusable(), 1),
        (r#","feeSchedule":"0.07""#, unusable(), 1),
        (r#","feeSchedule":7"#, unusable(), 1),
    ];
    for (fields, expected, skipped) in &cases {
        let mut world = World::new();
        let updates = world.rest("/markets", &row(fields));
        assert_eq!(listings(&updates).len(), 1, "{fields}");
        assert_eq!(fees(&updates), *expected, "{fields}");
        assert_eq!(world.skips.get(Skip::UnusableFees), *skipped, "{fields}");
        // The listing comes first, and a repetition changes nothing.
        assert!(matches!(updates[0], FeedUpdate::Listed { .. }));
        assert_eq!(fees(&world.rest("/markets", &row(fields))), [], "{fields}");
    }
    println!("fees of rows: {} cases", cases.len());
}

/// The order book's service, the catalogue, the message: the first that states something counts, at any time.
#[test]
fn the_first_of_three_sources_counts() {
    let message = |schedule: &str| {
        format!(
            r#"{{"event_type":"new_market","id":"9","market":"{CONDITION}","slug":"s","question":"q",
                "assets_ids":["91","92"],"outcomes":["Yes","No"],"active":true,"order_price_min_tick_size":"0.01",
                "fee_schedule":{schedule}}}"#
        )
    };
    let mut world = World::new();
    let by_message = r#"{"rate":"0.03","exponent":"1","taker_only":true,"rebate_rate":"0.25"}"#;
    assert_eq!(fees(&world.frame(&message(by_message))), is(30_000, 1, true, 250_000), "of the message");
    let with = |schedule: &str| row(&format!(r#","feeSchedule":{schedule}"#));
    let by_row = |rate: &str| with(&format!(r#"{{"rate":{rate},"exponent":1,"takerOnly":true,"rebateRate":0.15}}"#));
    assert_eq!(fees(&world.rest("/markets", &by_row("0.05"))), is(50_000, 1, true, 150_000), "of the row");
    assert_eq!(fees(&world.rest("/markets", &row(""))), [], "a shorter row takes nothing back");
    let clob = |fees: &str| format!(r#"{{"c":"{CONDITION}","t":[],"mts":0.01{fees}}}"#);
    let path = format!("/clob-markets/{CONDITION}");
    assert_eq!(fees(&world.rest(&path, &clob(""))), []);
    // It states no rebate: that of the row stays.
    let found = fees(&world.rest(&path, &clob(r#","fd":{"r":0.04,"e":1,"to":false}"#)));
    assert_eq!(found, is(40_000, 1, false, 150_000), "of the order book's service");
    assert_eq!(fees(&world.rest("/markets", &by_row("0.06"))), [], "it stays the first");
    assert_eq!(fees(&world.rest(&path, &clob(r#","fd":{"r":40,"e":1}"#))), [None], "unusable, and the table counts");
    assert_eq!(world.skips.get(Skip::UnusableFees), 1);
    // Of an unknown market, of no market, of no object.
    for body in
        [clob("").replace("09", "08").as_str(), r#"{"c":null,"fd":{"r":0.04,"e":1}}"#, r#"{"c":7,"fd":7}"#, "[]"]
    {
        assert_eq!(fees(&world.rest(&path, body)), [], "{body}");
    }
    println!("sources of fees: 11 cases");
}

/// A translator that continues after a pause states no fees again, and knows which source came first.
#[test]
fn stated_fees_survive_a_pause() {
    let mut world = World::new();
    world.rest("/markets", &row(r#","feesEnabled":false"#));
    let path = format!("/clob-markets/{CONDITION}");
    let clob = format!(r#"{{"c":"{CONDITION}","fd":{{"r":0.04,"e":1,"to":true}}}}"#);
    assert_eq!(fees(&world.rest(&path, &clob)).len(), 1);
    let mut later = World::new();
    assert!(later.translate.restore(&world.translate.save().expect("small")));
    assert_eq!(fees(&later.rest(&path, &clob)), []);
    assert_eq!(fees(&later.rest("/markets", &row(r#","feesEnabled":true,"feeSchedule":{"rate":1,"exponent":0}"#))), []);
    println!("pauses: 2 cases");
}
