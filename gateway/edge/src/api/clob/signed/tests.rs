use super::*;
use crate::api::testing::Town;
use engine::amount::{Cash, Price};
use engine::command::IdSource;
use engine::id::{KeyId, Outcome};
use engine::order::EntryRoute;
use engine::time::Timestamp;
use engine::user::Tier;
use serde_json::{Value as Json, json};
use wire::read;

/// As the first generation of clients sends it: BUY 10 at 0.41.
fn first() -> Json {
    json!({
        "order": {
            "salt": 479_249_096_354_u64,
            "maker": "0xA1b2C3d4E5f60718293a4b5c6d7e8f9012345678",
            "signer": "0xA1b2C3d4E5f60718293a4b5c6d7e8f9012345678",
            "taker": "0x0000000000000000000000000000000000000000",
            "tokenId": "81140002",
            "makerAmount": "4100000",
            "takerAmount": "10000000",
            "expiration": "0",
            "nonce": "0",
            "feeRateBps": "1000",
            "side": "BUY",
            "signatureType": 0,
            "signature": format!("0x{}1b", "5f".repeat(64)),
        },
        "owner": "svc_live_00",
        "orderType": "GTC",
        "postOnly": false,
    })
}

/// As the second one does: without taker, nonce and fee; with time, metadata and builder.
fn second() -> Json {
    let mut body = first();
    let order = body["order"].as_object_mut().expect("an object");
    for gone in ["taker", "nonce", "feeRateBps"] {
        order.remove(gone);
    }
    order.insert("salt".into(), json!(9_007_199_254_740_993_u64));
    order.insert("timestamp".into(), json!("1790932445000"));
    order.insert("metadata".into(), json!(format!("0x{}", "0".repeat(64))));
    order.insert("builder".into(), json!(format!("0x{}", "0".repeat(64))));
    body["deferExec"] = json!(false);
    body
}

/// `body` with this value at this place; null takes the field out.
fn with(body: &Json, place: &str, value: Json) -> Json {
    let mut body = body.clone();
    let (parent, field) = place.rsplit_once('/').expect("a pointer");
    let parent = body.pointer_mut(parent).and_then(Json::as_object_mut).expect("an object");
    if value.is_null() {
        parent.remove(field);
    } else {
        parent.insert(field.to_owned(), value);
    }
    body
}

/// The placement of a body, and the code of its fault.
fn drafted(town: &Town, body: &str, header_id: Option<&[u8]>) -> (Placement, Option<Code>) {
    let sender = Sender {
        key: KeyId(1),
        tier: Tier::Free,
        route: EntryRoute::Venue,
        endpoint: "POST /v1/order",
        header_id,
        catalog: &town.catalog,
        max_shares: Qty::from_shares(1_000_000),
    };
    let value = read::json(body.as_bytes()).expect("JSON");
    let SignedOrder { placement, request } = SignedOrder::read(&value, &sender);
    (placement, request.fault.map(|fault| fault.code()))
}

fn terms_of(town: &Town, body: &Json) -> PlacementTerms {
    let (placement, fault) = drafted(town, &body.to_string(), None);
    placement.terms.unwrap_or_else(|_| panic!("{fault:?}: {body}"))
}

#[test]
fn both_client_generations_are_read_alike() {
    let town = Town::new();
    for body in [first(), second()] {
        let terms = terms_of(&town, &body);
        assert_eq!(terms.instrument, Some(town.market.instrument(Outcome::First)));
        assert_eq!((terms.side, terms.order_type), (Side::Buy, OrderType::Limit));
        assert_eq!((terms.time_in_force, terms.price), (TimeInForce::Gtc, RequestedPrice::At(Price(4_100))));
        assert_eq!(terms.size, Size::Shares { qty: Qty::from_shares(10), rounded_from: None });
        assert_eq!((terms.wallet, terms.expiration, terms.post_only), (None, None, false));
    }
}

#[test]
fn the_fields_of_a_body_become_its_placement() {
    let town = Town::new();
    let shares = |shares| Size::Shares { qty: Qty(shares), rounded_from: None };
    let sell = with(&with(&first(), "/order/side", json!("SELL")), "/order/makerAmount", json!("10000000"));
    let sell = with(&sell, "/order/takerAmount", json!("4200000"));
    let at = |units| RequestedPrice::At(Price(units));
    let gtd = |expiration| with(&with(&first(), "/orderType", json!("GTD")), "/order/expiration", expiration);
    let market = |body: &Json, word: &str| with(body, "/orderType", json!(word));
    // (body, side, size, price, time in force)
    let rows = [
        (with(&first(), "/order/side", json!(0)), Side::Buy, shares(10_000_000), at(4_100), TimeInForce::Gtc),
        (with(&first(), "/order/side", json!("buy")), Side::Buy, shares(10_000_000), at(4_100), TimeInForce::Gtc),
        (
            with(&first(), "/order/makerAmount", json!(4_100_000)),
            Side::Buy,
            shares(10_000_000),
            at(4_100),
            TimeInForce::Gtc,
        ),
        (with(&first(), "/orderType", Json::Null), Side::Buy, shares(10_000_000), at(4_100), TimeInForce::Gtc),
        (sell.clone(), Side::Sell, shares(10_000_000), at(4_200), TimeInForce::Gtc),
        (with(&sell, "/order/side", json!(1)), Side::Sell, shares(10_000_000), at(4_200), TimeInForce::Gtc),
        (gtd(json!("1999999999")), Side::Buy, shares(10_000_000), at(4_100), TimeInForce::Gtd),
        (market(&sell, "FOK"), Side::Sell, shares(10_000_000), at(4_200), TimeInForce::Fok),
        (market(&sell, "fak"), Side::Sell, shares(10_000_000), at(4_200), TimeInForce::Fak),
        (market(&first(), "FOK"), Side::Buy, Size::Amount(Cash(4_100_000)), at(4_100), TimeInForce::Fok),
        (market(&first(), "IOC"), Side::Buy, Size::Amount(Cash(4_100_000)), at(4_100), TimeInForce::Fak),
        // Five decimals of a share: cut down, with the sent text.
        (
            with(&with(&first(), "/order/takerAmount", json!("10000010")), "/order/makerAmount", json!("4100004")),
            Side::Buy,
            Size::Shares { qty: Qty(10_000_000), rounded_from: Some("10.00001".to_owned()) },
            at(4_100),
            TimeInForce::Gtc,
        ),
        (
            with(&first(), "/order/makerAmount", json!("4150000")),
            Side::Buy,
            shares(10_000_000),
            RequestedPrice::OffGrid,
            TimeInForce::Gtc,
        ),
        (
            market(&with(&first(), "/order/makerAmount", json!("4150001")), "FOK"),
            Side::Buy,
            Size::Amount(Cash(4_150_001)),
            at(4_200),
            TimeInForce::Fok,
        ),
    ];
    for (body, side, size, price, time_in_force) in &rows {
        let terms = terms_of(&town, body);
        assert_eq!((terms.side, &terms.size, terms.price), (*side, size, *price), "{body}");
        assert_eq!(terms.time_in_force, *time_in_force, "{body}");
        assert_eq!(terms.order_type == OrderType::Market, time_in_force.immediate(), "{body}");
        let expires = (*time_in_force == TimeInForce::Gtd).then_some(Timestamp(1_999_999_999_000_000));
        assert_eq!(terms.expiration, expires, "{body}");
    }
    for expiration in [json!("0"), json!(0)] {
        assert_eq!(terms_of(&town, &gtd(expiration)).expiration, Some(Timestamp(0)));
    }
    for expiration in [Json::Null, json!("soon"), json!("-1"), json!("1e400"), json!(1.5), json!(true), json!([])] {
        assert_eq!(terms_of(&town, &gtd(expiration)).expiration, None);
    }
    let unknown = terms_of(&town, &with(&first(), "/order/tokenId", json!("7")));
    assert_eq!((unknown.instrument, unknown.price), (None, RequestedPrice::OffGrid));
    assert!(terms_of(&town, &with(&first(), "/postOnly", json!(true))).post_only);
    println!("{} cases", rows.len() + 11);
}

#[test]
fn a_malformed_order_is_refused() {
    let town = Town::new();
    let payload = Code::InvalidOrderPayload;
    let mut rows = vec![
        ("null".to_owned(), payload),
        ("7".to_owned(), payload),
        ("[]".to_owned(), payload),
        ("\"order\"".to_owned(), payload),
        ("{}".to_owned(), payload),
        (r#"{"order":null}"#.to_owned(), payload),
        (r#"{"order":[]}"#.to_owned(), payload),
        (r#"{"order":"0x1"}"#.to_owned(), payload),
        (r#"{"token_id":"81140002","price":"0.41","quantity":"10","side":"BUY"}"#.to_owned(), payload),
    ];
    for (place, values) in [
        ("/order/tokenId", vec![Json::Null, json!(""), json!(81_140_002), json!([])]),
        ("/order/side", vec![Json::Null, json!(""), json!("HOLD"), json!(2), json!("0"), json!(true)]),
        ("/postOnly", vec![json!("true"), json!(1)]),
        ("/order/takerAmount", vec![json!("1000000000001")]),
    ] {
        rows.extend(values.into_iter().map(|value| (with(&first(), place, value).to_string(), payload)));
    }
    for word in [json!("GTX"), json!(""), json!("market"), json!(1), json!([]), json!(true)] {
        rows.push((with(&first(), "/orderType", word).to_string(), Code::UnsupportedOrderType));
    }
    rows.push((with(&first(), "/client_order_id", json!("x".repeat(257))).to_string(), Code::ValidationFailed));
    rows.push((with(&first(), "/client_order_id", json!("\u{1}x")).to_string(), Code::ValidationFailed));
    rows.push((with(&first(), "/client_order_id", json!(7)).to_string(), Code::ValidationFailed));
    // A million shares and a bit are above the cap; a million is not.
    assert!(
        drafted(&town, &with(&first(), "/order/takerAmount", json!("1000000000000")).to_string(), None).1.is_none()
    );
    for (body, code) in &rows {
        let (placement, fault) = drafted(&town, body, None);
        assert_eq!((fault, placement.terms.is_err()), (Some(*code), true), "{body}");
    }
    println!("{} cases", rows.len() + 1);
}

#[test]
fn a_repeated_order_is_known_by_salt_and_signature() {
    let town = Town::new();
    let request = |body: &Json, header| drafted(&town, &body.to_string(), header).0.request;
    let base = request(&first(), None).expect("salt and signature");
    assert_eq!(base.source, IdSource::Implicit);
    assert!(base.client_order_id.starts_with('\u{1}') && base.client_order_id.len() == 23, "{base:?}");
    let same = request(&first(), None).expect("the same");
    assert_eq!((same.client_order_id, same.digest), (base.client_order_id.clone(), base.digest));
    // The same id for another body; another id for another salt or signature.
    let other_body = request(&with(&first(), "/order/makerAmount", json!("4000000")), None).expect("an id");
    assert!(other_body.client_order_id == base.client_order_id && other_body.digest != base.digest);
    for (place, value) in [("/order/salt", json!(1)), ("/order/signature", json!("0x00"))] {
        let other = request(&with(&first(), place, value), None).expect("an id");
        assert_ne!(other.client_order_id, base.client_order_id, "{place}");
    }
    let texts = [json!(479_249_096_354_u64), json!("479249096354")];
    let ids = texts.map(|salt| request(&with(&first(), "/order/salt", salt), None).expect("an id").client_order_id);
    assert_eq!(ids[0], ids[1], "a salt is its digits");
    // Without one of them there is no id, and an explicit id wins.
    for (place, value) in [
        ("/order/salt", Json::Null),
        ("/order/signature", Json::Null),
        ("/order/signature", json!("")),
        ("/order/salt", json!([])),
        ("/order/salt", json!(true)),
    ] {
        assert!(request(&with(&first(), place, value), None).is_none(), "{place}");
    }
    let explicit = request(&with(&first(), "/client_order_id", json!("mine")), None).expect("an id");
    assert_eq!((explicit.client_order_id.as_str(), explicit.source), ("mine", IdSource::Body));
    let header = request(&first(), Some(b"mine")).expect("an id");
    assert_eq!((header.client_order_id.as_str(), header.source), ("mine", IdSource::Header));
    let (_, fault) = drafted(&town, &with(&first(), "/client_order_id", json!("mine")).to_string(), Some(b"other"));
    assert_eq!(fault, Some(Code::ValidationFailed));
}
