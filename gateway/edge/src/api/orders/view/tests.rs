use super::*;
use crate::api::orders::records::{OrderDetail, OrderFill, OrderPosition, OrderResponse};
use crate::api::testing::{Filled, Town, Trader, shows};
use crate::http::record::{Record as _, write_record};
use engine::amount::Price;
use engine::fact;
use engine::id::Outcome;
use engine::mutation::Mutation;
use engine::order::{OrderTerms, Quality, Side, TimeInForce};
use engine::time::Timestamp;

/// 2026-10-02T09:15:00.004211Z.
const FILLED_AT: Timestamp = Timestamp(1_790_932_500_004_211);

fn immediate(at: Timestamp) -> Filled {
    Filled { liquidity: Liquidity::Taker, source: PriceSource::BookWalk, quote_age_ms: Some(310), at }
}

fn rested(at: Timestamp) -> Filled {
    Filled { liquidity: Liquidity::Maker, source: PriceSource::MatchingEngine, quote_age_ms: Some(40), at }
}

fn written(view: &OrderView, town: &Town) -> Vec<u8> {
    let mut out = Vec::new();
    order(&mut out, view, &town.catalog, None);
    out
}

fn trader(town: &Town) -> Trader {
    Trader::new(100_000_000, town.market.instrument(Outcome::First))
}

fn market_order(trader: &Trader) -> OrderTerms {
    OrderTerms {
        order_type: OrderType::Market,
        time_in_force: TimeInForce::Fok,
        client_order_id: Some("m-1".to_owned()),
        quality: Quality {
            slippage_bps: Some(120),
            spread_bps: Some(241),
            impact_bps: Some(0),
            book_walk_levels: Some(1),
            quote_age_ms: Some(310),
            ..Quality::default()
        },
        ..trader.terms(4_300, 50)
    }
}

#[test]
fn a_filled_order_is_shown_as_in_the_contract() {
    let town = Town::new();
    let mut trader = trader(&town);
    let terms = market_order(&trader);
    trader.place(90_412, terms, FILLED_AT);
    trader.fill(90_412, 90_413, (50_000_000, 21_000_000, 609_000), immediate(FILLED_AT));
    let example = concat!(
        r#"{"order_id":90412,"status":"FILLED","order_type":"market","side":"BUY","outcome":"Yes","price":"0.42","#,
        r#""quantity":"50","notional":"21.00","fee":"0.609","filled_at":"2026-10-02T09:15:00.004211Z","#,
        r#""cancelled_reason":null,"fill_source":"synchronous","price_source":"book_walk","slippage_bps":120,"#,
        r#""quote_age_ms":310,"spread_bps":241,"impact_bps":0,"book_walk_levels":1,"account_balance":"78.391","#,
        r#""position":{"market_id":"CONDITION","outcome":"Yes","quantity":"50","avg_entry_price":"0.42","#,
        r#""status":"OPEN"},"client_order_id":"m-1","error":null,"error_message":null,"amount_interpreted_as":null,"#,
        r#""is_replay":false,"warnings":[]"#
    );
    let example = example.replace("CONDITION", town.condition());
    let text = String::from_utf8(written(&trader.view(90_412), &town)).unwrap();
    assert!(text.starts_with(&example), "{text}");
    let rest = format!(
        concat!(
            r#"{{"requested_quantity":"50","filled_quantity":"50","remaining_quantity":"0","token_id":"81140002","#,
            r#""market_id":"{}","time_in_force":"FOK","requested_time_in_force":"FOK","wallet_id":3,"#,
            r#""created_at":"2026-10-02T09:15:00.004211Z","hold_reason":null,"fee_rate_bps":500,"liquidity":"TAKER"}}"#
        ),
        town.condition()
    );
    shows(text.as_bytes(), &rest);
    // A replay says the same without repeating the walk.
    let replay = OrderView { is_replay: true, ..trader.view(90_412) };
    let expected = concat!(
        r#"{"is_replay":true,"slippage_bps":120,"quote_age_ms":310,"spread_bps":null,"impact_bps":null,"#,
        r#""book_walk_levels":null}"#
    );
    shows(&written(&replay, &town), expected);
}

#[test]
fn a_resting_order_is_shown_as_in_the_contract() {
    let town = Town::new();
    let mut trader = trader(&town);
    let terms = OrderTerms {
        time_in_force: TimeInForce::Gtd,
        expiration: Some(Timestamp::from_secs(1_791_000_000)),
        client_order_id: Some("g-0017".to_owned()),
        ..trader.terms(3_700, 20)
    };
    // 2026-10-02T09:20:00Z.
    trader.place(90_415, terms, Timestamp::from_secs(1_790_932_800));
    trader.apply(&Mutation::OrderRested(fact::OrderRested {
        order: engine::id::OrderId(90_415),
        reserved_cash: Cash(7_400_000),
        reserved_qty: Qty::ZERO,
        awaiting_book: false,
        held: false,
        at: Timestamp::from_secs(1_790_932_800),
    }));
    let view = trader.view(90_415);
    let mut out = Vec::new();
    write_record(&mut out, &OrderRow::new(&view, &town.catalog));
    let example = concat!(
        r#"{"order_id":90415,"market_id":"CONDITION","side":"BUY","outcome":"Yes","order_type":"limit","#,
        r#""limit_price":"0.37","quantity":"20","time_in_force":"GTD","status":"PENDING","client_order_id":"g-0017","#,
        r#""created_at":"2026-10-02T09:20:00Z","filled_at":null,"fill_price":null,"cancelled_at":null,"#,
        r#""cancelled_reason":null,"hold_reason":null,"filled_quantity":"0","token_id":"81140002","wallet_id":3,"#,
        r#""expiration":1791000000,"post_only":false,"fill_model":"cross","queue_ahead":null,"queue_total":null,"#,
        r#""queue_confidence":null}"#
    );
    assert_eq!(String::from_utf8(out).unwrap(), example.replace("CONDITION", town.condition()));
    let expected = concat!(
        r#"{"status":"PENDING","price":"0.37","quantity":"20","notional":"7.40","fee":"0.00","filled_at":null,"#,
        r#""fill_source":null,"price_source":null,"slippage_bps":null,"quote_age_ms":null,"spread_bps":null,"#,
        r#""account_balance":"92.60","position":null,"remaining_quantity":"20","fee_rate_bps":null,"liquidity":null,"#,
        r#""warnings":[]}"#
    );
    shows(&written(&view, &town), expected);
    let mut out = Vec::new();
    detail(&mut out, &view, &town.catalog);
    shows(&out, r#"{"limit_price":"0.37","fill_price":null,"expiration":1791000000,"post_only":false,"fills":[]}"#);
}

#[test]
fn a_slice_is_filled_and_says_what_it_lacks() {
    let town = Town::new();
    let mut trader = trader(&town);
    let terms = OrderTerms {
        time_in_force: TimeInForce::Fak,
        rounded_from: Some("100.00009".to_owned()),
        quality: Quality {
            slippage_bps: Some(612),
            quote_age_ms: Some(70_000),
            high_slippage: true,
            stale_quote: true,
            ..Quality::default()
        },
        ..trader.terms(4_200, 100)
    };
    trader.place(90_416, terms, FILLED_AT);
    trader.fill(90_416, 90_417, (60_500_000, 25_410_000, 736_890), immediate(FILLED_AT));
    let id = engine::id::OrderId(90_416);
    trader.apply(&Mutation::OrderClosed(fact::OrderClosed { order: id, reason: CloseReason::FakRest, at: FILLED_AT }));
    let expected = concat!(
        r#"{"order_id":90416,"status":"FILLED","order_type":"limit","side":"BUY","outcome":"Yes","price":"0.42","#,
        r#""quantity":"60.5","notional":"25.41","fee":"0.73689","time_in_force":"IOC","cancelled_reason":null,"#,
        r#""requested_time_in_force":"FAK","requested_quantity":"100","remaining_quantity":"0","slippage_bps":null,"#,
        r#""warnings":["partial_fill:filled=60.5,requested=100","high_slippage_bps_612","#,
        r#""quantity_rounded:requested=100.00009,used=100","stale_quote:age_ms=70000"]}"#
    );
    shows(&written(&trader.view(90_416), &town), expected);
}

#[test]
fn fills_of_several_moments_differ() {
    let town = Town::new();
    let mut trader = trader(&town);
    let terms = trader.terms(4_200, 100);
    trader.place(90_420, terms, FILLED_AT);
    trader.fill(90_420, 90_421, (60_000_000, 24_600_000, 700_000), immediate(FILLED_AT));
    let part = r#"{"status":"PENDING","warnings":["partial_fill:filled=60,requested=100"],"remaining_quantity":"40"}"#;
    shows(&written(&trader.view(90_420), &town), part);
    trader.fill(90_420, 90_422, (40_000_000, 16_800_000, 0), rested(FILLED_AT.plus(1_000_000)));
    let view = trader.view(90_420);
    let whole = concat!(
        r#"{"status":"FILLED","price":"0.414","quantity":"100","notional":"41.40","fee":"0.70","#,
        r#""fill_source":"matching_engine","price_source":"matching_engine","quote_age_ms":40,"liquidity":"MIXED","#,
        r#""fee_rate_bps":500,"warnings":["partial_fill:filled=60,requested=100"]}"#
    );
    shows(&written(&view, &town), whole);
    let mut out = Vec::new();
    detail(&mut out, &view, &town.catalog);
    let fills = concat!(
        r#"{"fills":[{"trade_id":90421,"price":"0.41","quantity":"60","notional":"24.60","fee":"0.70","#,
        r#""fee_rate_bps":500,"liquidity":"TAKER","filled_at":"2026-10-02T09:15:00.004211Z","#,
        r#""price_source":"book_walk"},{"trade_id":90422,"price":"0.42","quantity":"40","notional":"16.80","#,
        r#""fee":"0.00","fee_rate_bps":0,"liquidity":"MAKER","filled_at":"2026-10-02T09:15:01.004211Z","#,
        r#""price_source":"matching_engine"}],"fill_price":"0.414"}"#
    );
    shows(&out, fills);
}

#[test]
fn what_was_killed_or_cancelled_says_why() {
    let town = Town::new();
    let mut trader = trader(&town);
    for (order, reason, status, text) in [
        (90_430, CloseReason::FokNotFilled, "CANCELLED", "fok_not_filled"),
        (90_431, CloseReason::UserCancelled, "CANCELLED", "user_cancelled"),
        (90_432, CloseReason::MarketResolved, "EXPIRED", "market_resolved"),
    ] {
        let terms = trader.terms(4_200, 10);
        trader.place(order, terms, FILLED_AT);
        trader.apply(&Mutation::OrderClosed(fact::OrderClosed {
            order: engine::id::OrderId(order),
            reason,
            at: FILLED_AT,
        }));
        let mut out = Vec::new();
        detail(&mut out, &trader.view(order), &town.catalog);
        let expected = format!(
            concat!(
                r#"{{"status":"{}","cancelled_reason":"{}","notional":"0.00","price":"0.42","quantity":"10","#,
                r#""remaining_quantity":"0","cancelled_at":"2026-10-02T09:15:00.004211Z"}}"#
            ),
            status, text
        );
        shows(&out, &expected);
    }
    let failure = Some((Code::FokOrderNotFilled, "Too little."));
    let mut out = Vec::new();
    order(&mut out, &trader.view(90_430), &town.catalog, failure);
    shows(&out, r#"{"order_id":90430,"error":"FOK_ORDER_NOT_FILLED_ERROR","error_message":"Too little."}"#);
}

#[test]
fn a_refused_entry_repeats_its_request() {
    let town = Town::new();
    let echo =
        Echo { side: Some(Side::Sell), outcome: Some("yes".into()), quantity: Some("900".into()), ..Echo::default() };
    let known = Echo { instrument: Some(town.market.instrument(Outcome::First)), ..echo.clone() };
    let mut out = Vec::new();
    let code = Code::InsufficientPosition;
    write_record(&mut out, &RefusedEntry::new(&known, code, code.message(), &town.catalog));
    let example = concat!(
        r#"{"order_id":0,"status":"REJECTED","side":"SELL","outcome":"Yes","price":"0","quantity":"900","#,
        r#""notional":"0","fee":"0","error":"INSUFFICIENT_POSITION","#,
        r#""error_message":"Held position is smaller than the order."}"#
    );
    shows(&out, example);
    let fields = |json: &[u8]| -> Vec<String> {
        let value: serde_json::Value = serde_json::from_slice(json).expect("JSON");
        value.as_object().expect("an object").keys().cloned().collect()
    };
    let mut trader = trader(&town);
    let terms = trader.terms(4_200, 10);
    trader.place(90_440, terms, FILLED_AT);
    assert_eq!(fields(&out), fields(&written(&trader.view(90_440), &town)), "every field of an order");
    let mut out = Vec::new();
    write_record(&mut out, &RefusedEntry::new(&Echo::default(), Code::ServerBusy, "", &town.catalog));
    shows(&out, r#"{"status":"ERROR","side":null,"outcome":null,"quantity":"0","error":"SERVER_BUSY"}"#);
}

#[test]
fn a_sweep_lists_ids_as_texts() {
    let id = engine::id::OrderId;
    let swept = engine::view::CancelledOrders {
        cancelled: vec![id(90_415)],
        not_cancellable: vec![id(7)],
        ..Default::default()
    };
    let mut out = Vec::new();
    write_record(&mut out, &Cancelled::new(&swept));
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"canceled":["90415"],"not_canceled":{"7":"ORDER_NOT_CANCELLABLE"}}"#
    );
    let mut out = Vec::new();
    write_record(&mut out, &Cancelled::new(&CancelledOrders::default()));
    assert_eq!(out, br#"{"canceled":[],"not_canceled":{}}"#);
}

/// A maker fill has the limit as its price, for every rounding of its notional.
#[test]
fn a_fill_at_the_limit_has_exactly_that_price() {
    let rows = [
        // quantity and notional of the fills, in 10⁻⁶; maker; what the order and its last fill show
        (vec![(550_400, 307_619)], true, "0.5589", "0.5589"),
        (vec![(550_400, 307_618)], true, "0.5589", "0.5589"),
        (vec![(550_400, 307_620)], true, "0.5589", "0.5589"),
        (vec![(100, 56)], true, "0.5589", "0.5589"),
        (vec![(550_400, 307_619), (1_300, 727), (100, 56)], true, "0.5589", "0.5589"),
        // Not at the limit: the walked price, with the flag off.
        (vec![(550_400, 307_000)], true, "0.557776", "0.557776"),
        // A taker pays what the walk came to.
        (vec![(550_400, 307_620)], false, "0.558903", "0.558903"),
        (vec![(1_000_000, 550_000)], false, "0.55", "0.55"),
    ];
    for (fills, is_maker, of_order, of_fill) in &rows {
        let town = Town::new();
        let mut trader = trader(&town);
        let terms = trader.terms(5_589, 50);
        trader.place(1, terms, FILLED_AT);
        for (number, (qty, notional)) in (2..).zip(fills) {
            let how = if *is_maker { rested(FILLED_AT) } else { immediate(FILLED_AT) };
            trader.fill(1, number, (*qty, *notional, 0), how);
        }
        let mut out = Vec::new();
        detail(&mut out, &trader.view(1), &town.catalog);
        let shown: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let last = shown["fills"].as_array().and_then(|fills| fills.last()).expect("a fill");
        let prices = [&shown["price"], &shown["fill_price"], &last["price"]];
        assert_eq!(prices, [*of_order, *of_order, *of_fill], "{fills:?}");
    }
    println!("prices of fills: {} cases", rows.len());
}

/// The bytes of the writers are those of the records that the machine description has.
#[test]
fn the_writers_write_the_records() {
    const ORDER: u64 = 90_412;
    let town = Town::new();
    let later = FILLED_AT.plus(1_000_000);
    let market_id = town.condition();
    let placed = |change: &dyn Fn(OrderTerms) -> OrderTerms| {
        let mut trader = trader(&town);
        let terms = change(trader.terms(3_700, 20));
        trader.place(ORDER, terms, FILLED_AT);
        trader
    };
    let close = |trader: &mut Trader, reason| {
        let order = engine::id::OrderId(ORDER);
        trader.apply(&Mutation::OrderClosed(fact::OrderClosed { order, reason, at: later }));
    };
    let position = |quantity, average| {
        Some(OrderPosition {
            market_id: market_id.into(),
            quantity: scalar::Quantity::of(quantity),
            avg_entry_price: scalar::Price::of(average),
            ..OrderPosition::example()
        })
    };
    // A GTC BUY of 20 at 0.37 that rests, and the example of a filled market order.
    let resting = || OrderResponse {
        order_id: ORDER,
        account_balance: scalar::Money::of("100.00"),
        client_order_id: None,
        token_id: "81140002".into(),
        market_id: market_id.into(),
        time_in_force: "GTC".into(),
        requested_time_in_force: "GTC".into(),
        wallet_id: 3,
        created_at: scalar::Timestamp(FILLED_AT),
        ..OrderResponse::resting()
    };
    let filled = || OrderResponse {
        order_id: ORDER,
        position: position("50", "0.42"),
        token_id: "81140002".into(),
        market_id: market_id.into(),
        wallet_id: 3,
        created_at: scalar::Timestamp(FILLED_AT),
        ..OrderResponse::example()
    };
    let detailed = |order| OrderDetail { order, expiration: None, ..OrderDetail::example() };
    let detailed_filled = |order| OrderDetail {
        limit_price: scalar::Price::of("0.43"),
        fill_price: Some(scalar::Price::of("0.42")),
        fills: vec![OrderFill { trade_id: 90_413, ..OrderFill::example() }],
        ..detailed(order)
    };
    let maker_fill = |trade_id, price, quantity, notional| OrderFill {
        trade_id,
        price: scalar::Price::of(price),
        quantity: scalar::Quantity::of(quantity),
        notional: scalar::Money::of(notional),
        fee: scalar::Money::of("0.00"),
        fee_rate_bps: 0,
        liquidity: "MAKER".into(),
        filled_at: scalar::Timestamp(later),
        price_source: "matching_engine".into(),
        venue_time: None,
        fee_source: "none".into(),
    };
    let bought = |change: &dyn Fn(OrderTerms) -> OrderTerms| {
        let mut trader = trader(&town);
        let terms = change(market_order(&trader));
        trader.place(ORDER, terms, FILLED_AT);
        trader.fill(ORDER, 90_413, (50_000_000, 21_000_000, 609_000), immediate(FILLED_AT));
        trader.view(ORDER)
    };
    let mut cases: Vec<(&str, OrderView, OrderDetail<'_>)> = Vec::new();

    cases.push(("filled", bought(&|terms| terms), detailed_filled(filled())));
    let replay = OrderView { is_replay: true, ..bought(&|terms| terms) };
    let no_walk =
        OrderResponse { is_replay: true, spread_bps: None, impact_bps: None, book_walk_levels: None, ..filled() };
    cases.push(("a replay of a filled order", replay, detailed_filled(no_walk)));
    let by_amount = bought(&|terms| OrderTerms {
        amount: Some(Cash(21_000_000)),
        client_order_id: Some("\"\\\u{7}\n€".to_owned()),
        ..terms
    });
    let record =
        OrderResponse {
            amount_interpreted_as: Some("usd".into()), client_order_id: Some("\"\\\u{7}\n€"), ..filled()
        };
    cases.push(("an amount, and an id with escapes", by_amount, detailed_filled(record)));

    let trader_at_rest = placed(&|terms| OrderTerms {
        time_in_force: TimeInForce::Gtd,
        expiration: Some(Timestamp::from_secs(1_791_000_000)),
        client_order_id: Some("g-0017".to_owned()),
        rounded_from: Some("20.00009".to_owned()),
        ..terms
    });
    let record = OrderResponse {
        client_order_id: Some("g-0017"),
        time_in_force: "GTD".into(),
        requested_time_in_force: "GTD".into(),
        warnings: vec!["quantity_rounded:requested=20.00009,used=20".into()],
        ..resting()
    };
    let record = OrderDetail { expiration: Some(1_791_000_000), ..detailed(record) };
    cases.push(("resting", trader_at_rest.view(ORDER), record));
    let replay = OrderView { is_replay: true, ..placed(&|terms| terms).view(ORDER) };
    cases.push(("a replay of a resting order", replay, detailed(OrderResponse { is_replay: true, ..resting() })));

    let mut held = placed(&|terms| OrderTerms { post_only: true, ..terms });
    held.apply(&Mutation::OrderRested(fact::OrderRested {
        order: engine::id::OrderId(ORDER),
        reserved_cash: Cash(7_400_000),
        reserved_qty: Qty::ZERO,
        awaiting_book: false,
        held: true,
        at: FILLED_AT,
    }));
    let record = OrderResponse {
        account_balance: scalar::Money::of("92.60"),
        hold_reason: Some("venue_outage".into()),
        ..resting()
    };
    cases.push(("held", held.view(ORDER), OrderDetail { post_only: true, ..detailed(record) }));

    for (reason, status, text) in [
        (CloseReason::UserCancelled, "CANCELLED", "user_cancelled"),
        (CloseReason::MarketResolved, "EXPIRED", "market_resolved"),
    ] {
        let mut trader = placed(&|terms| terms);
        close(&mut trader, reason);
        let record = OrderResponse {
            status: status.into(),
            notional: scalar::Money::of("0.00"),
            cancelled_reason: Some(text.into()),
            remaining_quantity: scalar::Quantity::of("0"),
            ..resting()
        };
        let record = OrderDetail { cancelled_at: Some(scalar::Timestamp(later)), ..detailed(record) };
        cases.push((text, trader.view(ORDER), record));
    }
    let mut part = placed(&|terms| terms);
    part.fill(ORDER, 90_413, (12_000_000, 4_440_000, 0), rested(later));
    close(&mut part, CloseReason::CancelAll);
    let record = OrderResponse {
        status: "CANCELLED".into(),
        quantity: scalar::Quantity::of("12"),
        notional: scalar::Money::of("4.44"),
        filled_at: Some(scalar::Timestamp(later)),
        cancelled_reason: Some("cancel_all".into()),
        fill_source: Some("matching_engine".into()),
        price_source: Some("matching_engine".into()),
        quote_age_ms: Some(40),
        account_balance: scalar::Money::of("95.56"),
        position: position("12", "0.37"),
        filled_quantity: scalar::Quantity::of("12"),
        remaining_quantity: scalar::Quantity::of("0"),
        fee_rate_bps: Some(0),
        liquidity: Some("MAKER".into()),
        ..resting()
    };
    let record = OrderDetail {
        fill_price: Some(scalar::Price::of("0.37")),
        cancelled_at: Some(scalar::Timestamp(later)),
        fills: vec![maker_fill(90_413, "0.37", "12", "4.44")],
        ..detailed(record)
    };
    cases.push(("cancelled after a part", part.view(ORDER), record));

    let mut mixed = placed(&|terms| OrderTerms { limit: Price(4_200), quantity: Qty::from_shares(100), ..terms });
    mixed.fill(ORDER, 90_413, (60_000_000, 24_600_000, 700_000), immediate(FILLED_AT));
    mixed.fill(ORDER, 90_414, (40_000_000, 16_800_000, 0), rested(later));
    let record = OrderResponse {
        status: "FILLED".into(),
        price: scalar::Price::of("0.414"),
        quantity: scalar::Quantity::of("100"),
        notional: scalar::Money::of("41.40"),
        fee: scalar::Money::of("0.70"),
        filled_at: Some(scalar::Timestamp(later)),
        fill_source: Some("matching_engine".into()),
        price_source: Some("matching_engine".into()),
        quote_age_ms: Some(40),
        account_balance: scalar::Money::of("57.90"),
        position: position("100", "0.414"),
        warnings: vec!["partial_fill:filled=60,requested=100".into()],
        requested_quantity: scalar::Quantity::of("100"),
        filled_quantity: scalar::Quantity::of("100"),
        remaining_quantity: scalar::Quantity::of("0"),
        fee_rate_bps: Some(500),
        liquidity: Some("MIXED".into()),
        ..resting()
    };
    let taker_fill = OrderFill {
        trade_id: 90_413,
        price: scalar::Price::of("0.41"),
        quantity: scalar::Quantity::of("60"),
        notional: scalar::Money::of("24.60"),
        fee: scalar::Money::of("0.70"),
        ..OrderFill::example()
    };
    let record = OrderDetail {
        limit_price: scalar::Price::of("0.42"),
        fill_price: Some(scalar::Price::of("0.414")),
        fills: vec![taker_fill, maker_fill(90_414, "0.42", "40", "16.80")],
        ..detailed(record)
    };
    cases.push(("taker and maker", mixed.view(ORDER), record));

    let mut slice = placed(&|terms| OrderTerms {
        time_in_force: TimeInForce::Fak,
        limit: Price(4_200),
        quantity: Qty::from_shares(100),
        rounded_from: Some("100.00009".to_owned()),
        quality: Quality {
            slippage_bps: Some(612),
            quote_age_ms: Some(70_000),
            high_slippage: true,
            stale_quote: true,
            ..Quality::default()
        },
        ..terms
    });
    slice.fill(ORDER, 90_413, (50_000_000, 21_000_000, 609_000), immediate(FILLED_AT));
    close(&mut slice, CloseReason::FakRest);
    let record = OrderResponse {
        order_type: "limit".into(),
        slippage_bps: None,
        spread_bps: None,
        impact_bps: None,
        book_walk_levels: None,
        client_order_id: None,
        warnings: [
            "partial_fill:filled=50,requested=100",
            "high_slippage_bps_612",
            "quantity_rounded:requested=100.00009,used=100",
            "stale_quote:age_ms=70000",
        ]
        .map(Into::into)
        .into(),
        requested_quantity: scalar::Quantity::of("100"),
        time_in_force: "IOC".into(),
        requested_time_in_force: "FAK".into(),
        ..filled()
    };
    let record = OrderDetail { limit_price: scalar::Price::of("0.42"), ..detailed_filled(record) };
    cases.push(("a slice with every warning", slice.view(ORDER), record));

    let json = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    };
    let count = 3 * cases.len();
    for (name, view, mut record) in cases {
        let written = json(&|out| detail(out, &view, &town.catalog));
        assert_eq!(written, json(&|out| write_record(out, &record)), "{name}");
        let written = json(&|out| order(out, &view, &town.catalog, None));
        assert_eq!(written, json(&|out| write_record(out, &record.order)), "{name}");
        // The entry of a batch that was killed.
        let code = Code::FokOrderNotFilled;
        let written = json(&|out| order(out, &view, &town.catalog, Some((code, "Too \"little\"."))));
        (record.order.error, record.order.error_message) = (Some(code.text()), Some("Too \"little\"."));
        assert_eq!(written, json(&|out| write_record(out, &record.order)), "{name}, killed");
    }
    println!("orders as records: {count} cases");
}
