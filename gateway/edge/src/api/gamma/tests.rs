use super::*;
use crate::api::testing::Town;
use crate::http::record::write_record;
use crate::http::testing::NOW;
use engine::id::Outcome;

#[test]
fn a_market_has_every_field_in_order() {
    let town = Town::new();
    town.resolve(Outcome::Second);
    let cell = town.catalog.market(town.market).expect("listed");
    let mut out = Vec::new();
    write_record(&mut out, &GammaMarket::new(cell, &town.edge.app.reads, NOW));
    let expected = concat!(
        r#"{"id":"81","question":"Rain in Lisbon on 3 October?","conditionId":"CONDITION","questionID":"CONDITION","#,
        r#""slug":"rain-in-lisbon-oct-3","resolutionSource":"","description":"","image":"","icon":"","#,
        r#""category":"weather","outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"81140002\",\"55200077\"]","#,
        r#""volume":"9310","volumeNum":9310,"volume24hr":1822.5,"volume24hrClob":1822.5,"#,
        r#""outcomePrices":"[\"0\",\"1\"]","lastTradePrice":0.42,"endDate":"2026-10-04T00:00:00Z","#,
        r#""endDateIso":"2026-10-04","createdAt":"2026-10-02T09:14:05Z","updatedAt":"2026-10-02T09:14:00Z","#,
        r#""active":true,"closed":true,"archived":false,"acceptingOrders":false,"enableOrderBook":true,"#,
        r#""ready":false,"funded":false,"new":false,"featured":false,"restricted":false,"negRiskOther":false,"#,
        r#""approved":true,"negRisk":false,"marketMakerAddress":"","orderPriceMinTickSize":0.01,"orderMinSize":5,"#,
        r#""secondsDelay":0,"makerBaseFee":1000,"takerBaseFee":1000,"feesEnabled":true,"#,
        r#""feeSchedule":{"exponent":1,"rate":0.05,"takerOnly":true,"rebateRate":0},"rewardsMinSize":0,"#,
        r#""rewardsMaxSpread":0,"automaticallyResolved":true,"umaResolutionStatuses":"[]","#,
        r#""umaResolutionStatus":"resolved","closedTime":"2026-10-02T09:14:05Z","events":[{"id":"e-771","#,
        r#""ticker":"lisbon-weather","slug":"lisbon-weather","title":"Lisbon weather","active":true,"closed":true,"#,
        r#""negRisk":false}],"tags":[]}"#
    );
    assert_eq!(String::from_utf8(out).expect("JSON"), expected.replace("CONDITION", town.condition()));
}
