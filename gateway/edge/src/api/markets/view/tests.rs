use super::*;
use crate::api::testing::{Town, shows};
use crate::http::record::write_record;
use crate::http::testing::NOW;
use engine::amount::Cash;
use engine::book::Stated;
use engine::fact;
use engine::market::mutation::MarketMutation;
use serde::Serialize;

fn text(record: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    write_record(&mut out, record);
    out
}

fn shown(town: &Town, market: engine::id::MarketId, now: Timestamp) -> Vec<u8> {
    let cell = town.catalog.market(market).expect("listed");
    text(&MarketDetail::new(cell, &town.edge.app.reads, now, false))
}

#[test]
fn a_summary_has_every_field_in_order() {
    let town = Town::new();
    let cell = town.catalog.market(town.market).expect("listed");
    let out = text(&MarketSummary::new(cell, &town.edge.app.reads, NOW));
    let expected = concat!(
        r#"{"condition_id":"CONDITION","slug":"rain-in-lisbon-oct-3","question":"Rain in Lisbon on 3 October?","#,
        r#""outcomes":["Yes","No"],"active":true,"closed":false,"is_hot":true,"image_url":null,"category":"weather","#,
        r#""display_label":null,"clob_token_ids":["81140002","55200077"],"volume_24h":"1822.5","#,
        r#""volume_total":"9310","last_price":"0.42","live_price":{"buy":"0.41","sell":"0.42","volume":"9310","#,
        r#""updated_at":"2026-10-02T09:14:04.120000Z","source":"clob","outcomes":[{"label":"Yes","price":"0.415","#,
        r#""token_id":"81140002"},{"label":"No","price":"0.585","token_id":"55200077"}],"#,
        r#""synced_at":"2026-10-02T09:14:00Z"},"id":81}"#
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected.replace("CONDITION", town.condition()));
}

#[test]
fn what_was_never_quoted_has_no_live_price() {
    let town = Town::new();
    let expected = concat!(
        r#"{"live_price":null,"last_price":null,"volume_24h":null,"volume_total":null,"is_hot":false,"#,
        r#""category":"geopolitics","fee_rate_bps":0,"taker_base_fee":0,"tick_size":"0.001","#,
        r#""minimum_tick_size":0.001,"min_order_size":"1","minimum_order_size":1,"event_group_id":null,"#,
        r#""tokens":[{"token_id":"90000001","outcome":"Yes","price":null,"winner":false},"#,
        r#"{"token_id":"90000002","outcome":"No","price":null,"winner":false}]}"#
    );
    shows(&shown(&town, town.unquoted, NOW), expected);
    // A price from market data replaces both sides.
    let stated = Stated { shown: [Some(Cash(300_000)), Some(Cash(700_000))], last: [None; 2] };
    town.writer.borrow_mut().stated(town.unquoted, &stated);
    let expected = concat!(
        r#"{"live_price":{"buy":"0.30","sell":"0.30","updated_at":null,"source":"upstream_meta","synced_at":null,"#,
        r#""outcomes":[{"price":"0.30"},{"price":"0.70"}]},"tokens":[{"price":0.3},{"price":0.7}]}"#
    );
    shows(&shown(&town, town.unquoted, NOW), expected);
}

#[test]
fn a_detail_shows_the_state_of_its_market() {
    let town = Town::new();
    let fresh = concat!(
        r#"{"event_group_id":"e-771","event_title":"Lisbon weather","end_date":"2026-10-04T00:00:00Z","#,
        r#""resolved_outcome":null,"archived":false,"archived_at":null,"question_id":"CONDITION","#,
        r#""market_slug":"rain-in-lisbon-oct-3","neg_risk":false,"tick_size":"0.01","min_order_size":"5","#,
        r#""fee_rate_bps":500,"description":null,"venue":"synthetic","accepting_orders":true,"active":true,"#,
        r#""closed":false,"minimum_tick_size":0.01,"minimum_order_size":5,"end_date_iso":"2026-10-04T00:00:00Z","#,
        r#""taker_base_fee":1000,"rewards":{"rates":null,"min_size":0,"max_spread":0},"tags":[],"#,
        r#""tokens":[{"price":0.415,"winner":false},{"price":0.585,"winner":false}]}"#
    );
    shows(&shown(&town, town.market, NOW), &fresh.replace("CONDITION", town.condition()));
    town.catalog.publish(&MarketMutation::MarketStateChanged(fact::MarketStateChanged {
        market: town.market,
        state: MarketState::Closed,
        ended: true,
        at: NOW,
    }));
    shows(&shown(&town, town.market, NOW), r#"{"active":false,"closed":true,"accepting_orders":false}"#);
    town.resolve(Outcome::Second);
    let resolved = concat!(
        r#"{"active":false,"closed":true,"resolved_outcome":"No","archived":false,"#,
        r#""tokens":[{"price":0,"winner":false},{"price":1,"winner":true}]}"#
    );
    shows(&shown(&town, town.market, NOW.plus(30 * DAY - 1)), resolved);
    let archived = r#"{"archived":true,"archived_at":"2026-11-01T09:14:05Z"}"#;
    shows(&shown(&town, town.market, NOW.plus(30 * DAY)), archived);
}

#[test]
fn a_detail_carries_its_book_when_asked() {
    let town = Town::new();
    let cell = town.catalog.market(town.market).expect("listed");
    for (market, expected) in [
        (
            cell,
            r#"{"order_book":{"token_id":"81140002","hash":"e6eba9311b85732b7ac68ef3fe9dd38403be2e50","mid":"0.415"}}"#,
        ),
        (town.catalog.market(town.unquoted).expect("listed"), r#"{"order_book":null}"#),
    ] {
        shows(&text(&MarketDetail::new(market, &town.edge.app.reads, NOW, true)), expected);
    }
    // `enable_order_book` is another field.
    assert!(!String::from_utf8(shown(&town, town.market, NOW)).unwrap().contains("\"order_book\""));
}

/// The venue's own number where it has one, else a number made of the condition id.
#[test]
fn a_market_has_a_number_that_never_changes() {
    let town = Town::new();
    let listing = &town.catalog.market(town.market).expect("listed").listing;
    for (own, expected) in [
        ("3047949", 3_047_949),
        ("0", 0),
        ("9007199254740991", 9_007_199_254_740_991),
        // SHA-256 of the condition id begins with these 53 bits.
        ("9007199254740992", MADE),
        ("KXRAIN-26SEP01-T1", MADE),
        ("0x5151", MADE),
        ("", MADE),
        ("-1", MADE),
    ] {
        let listing = Listing { venue_market_id: own.into(), ..listing.clone() };
        assert_eq!(number(&listing), expected, "{own:?}");
    }
}

/// 53 bits of SHA-256 of `0x5151…51`.
const MADE: u64 = 2_406_524_530_623_146;
