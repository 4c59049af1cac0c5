use super::*;
use crate::api::testing::Town;
use engine::amount::{Cash, Price};
use wire::read;
use wire::testing::Random;

/// Reads one body and hands the draft on.
fn draft<T>(town: &Town, body: &str, header_id: Option<&[u8]>, then: impl FnOnce(Draft<'_>) -> T) -> T {
    let value = read::json(body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {body}"));
    then(Draft::read(&value, &sender(&town.catalog, header_id)))
}

fn sender<'a>(catalog: &'a Catalog, header_id: Option<&'a [u8]>) -> Sender<'a> {
    Sender {
        key: KeyId(1),
        tier: Tier::Free,
        route: EntryRoute::Native,
        endpoint: "POST /v1/orders",
        header_id,
        catalog,
        max_shares: Qty::from_shares(1_000_000),
    }
}

/// The terms of a body, or the code and message of its fault.
fn terms(town: &Town, body: &str) -> Result<PlacementTerms, (Code, String)> {
    draft(town, body, None, |draft| match (draft.placement.terms, draft.fault) {
        (Ok(terms), None) => Ok(terms),
        (Err(InvalidTerms), Some(fault)) => Err((fault.code(), fault.message().to_owned())),
        _ => panic!("terms or a fault: {body}"),
    })
}

fn code(town: &Town, body: &str) -> Result<(), Code> {
    terms(town, body).map(drop).map_err(|(code, _)| code)
}

/// A sound order with some fields set; `null` takes one away.
fn with(fields: &[(&str, &str)]) -> String {
    let mut all = vec![
        ("token_id", "\"81140002\""),
        ("side", "\"BUY\""),
        ("order_type", "\"limit\""),
        ("price", "\"0.37\""),
        ("quantity", "\"20\""),
    ];
    all.retain(|(name, _)| !fields.iter().any(|(other, _)| other == name));
    all.extend_from_slice(fields);
    let fields: Vec<_> = all.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

#[test]
fn the_example_of_the_contract_is_read() {
    let town = Town::new();
    let body = format!(
        concat!(
            r#"{{"market_id":"{}","side":"BUY","outcome":"Yes","order_type":"limit","price":"0.37","quantity":"20","#,
            r#""time_in_force":"GTD","expiration":1791000000,"client_order_id":"g-0017"}}"#
        ),
        town.condition()
    );
    let read = terms(&town, &body).expect("a sound order");
    assert_eq!(read.instrument, Some(town.market.instrument(Outcome::First)));
    assert_eq!((read.side, read.order_type, read.time_in_force), (Side::Buy, OrderType::Limit, TimeInForce::Gtd));
    assert_eq!(read.size, Size::Shares { qty: Qty::from_shares(20), rounded_from: None });
    assert_eq!((read.price, read.post_only, read.wallet), (RequestedPrice::At(Price(3_700)), false, None));
    assert_eq!(read.expiration, Some(Timestamp::from_secs(1_791_000_000)));
    let request = draft(&town, &body, None, |draft| draft.placement.request).expect("it has an id");
    assert_eq!((request.client_order_id.as_str(), request.source), ("g-0017", IdSource::Body));
}

#[test]
fn words_are_taken_in_any_case_and_have_defaults() {
    let town = Town::new();
    for (fields, expected) in [
        (&[][..], (OrderType::Limit, TimeInForce::Gtc)),
        (&[("order_type", "null")], (OrderType::Market, TimeInForce::Fok)),
        (&[("order_type", "\"MARKET\"")], (OrderType::Market, TimeInForce::Fok)),
        (&[("order_type", "\"market\""), ("time_in_force", "\"gtc\"")], (OrderType::Market, TimeInForce::Gtc)),
        (&[("order_type", "\"market\""), ("time_in_force", "\"Ioc\"")], (OrderType::Market, TimeInForce::Ioc)),
        (&[("time_in_force", "\"fok\"")], (OrderType::Limit, TimeInForce::Fok)),
        (&[("time_in_force", "\"FAK\""), ("unknown", "[{}]")], (OrderType::Limit, TimeInForce::Fak)),
    ] {
        let read = terms(&town, &with(fields)).expect("a sound order");
        assert_eq!((read.order_type, read.time_in_force), expected, "{fields:?}");
    }
    assert_eq!(terms(&town, &with(&[("side", "\"sell\"")])).expect("sound").side, Side::Sell);
}

#[test]
fn sizes_and_prices_become_integers() {
    let town = Town::new();
    let shares = |qty: u64, from: Option<&str>| Size::Shares { qty: Qty(qty), rounded_from: from.map(str::to_owned) };
    let market = ("order_type", "\"market\"");
    for (fields, size, price) in [
        (&[("quantity", "20")][..], shares(20_000_000, None), RequestedPrice::At(Price(3_700))),
        (&[("quantity", "\"7.50009\"")], shares(7_500_000, Some("7.50009")), RequestedPrice::At(Price(3_700))),
        (&[("quantity", "7.50009")], shares(7_500_000, Some("7.50009")), RequestedPrice::At(Price(3_700))),
        (&[("quantity", "\"1000000\"")], shares(1_000_000_000_000, None), RequestedPrice::At(Price(3_700))),
        (&[("price", "0.37")], shares(20_000_000, None), RequestedPrice::At(Price(3_700))),
        (&[("price", "\"0.37000000\"")], shares(20_000_000, None), RequestedPrice::At(Price(3_700))),
        (&[("price", "\"0.37001\"")], shares(20_000_000, None), RequestedPrice::OffGrid),
        (&[("price", "\"1\"")], shares(20_000_000, None), RequestedPrice::At(Price(10_000))),
        (&[market, ("price", "\"0.37009\"")], shares(20_000_000, None), RequestedPrice::At(Price(3_700))),
        (
            &[market, ("price", "\"0.37001\""), ("side", "\"SELL\"")],
            shares(20_000_000, None),
            RequestedPrice::At(Price(3_701)),
        ),
        (
            &[market, ("quantity", "null"), ("amount", "\"21.0000019\"")],
            Size::Amount(Cash(21_000_001)),
            RequestedPrice::At(Price(3_700)),
        ),
    ] {
        let read = terms(&town, &with(fields)).unwrap_or_else(|fault| panic!("{fault:?}: {fields:?}"));
        assert_eq!((read.size, read.price), (size, price), "{fields:?}");
    }
}

#[test]
fn each_step_of_the_order_of_checks_has_its_code() {
    use Code::{InvalidQuantity, InvalidRequest, PriceRequired, ValidationFailed};
    let town = Town::new();
    let market = ("order_type", "\"market\"");
    let no_quantity = ("quantity", "null");
    let no_token = ("token_id", "null");
    let rows: &[(&[(&str, &str)], Code)] = &[
        // 1: types and bounds.
        (&[("side", "null")], ValidationFailed),
        (&[("side", "\"HOLD\"")], ValidationFailed),
        (&[("side", "1")], ValidationFailed),
        (&[("order_type", "\"stop\"")], ValidationFailed),
        (&[("order_type", "true")], ValidationFailed),
        (&[("time_in_force", "\"DAY\"")], ValidationFailed),
        (&[("time_in_force", "5")], ValidationFailed),
        (&[market, ("time_in_force", "\"GTD\"")], ValidationFailed),
        (&[("post_only", "\"true\"")], ValidationFailed),
        (&[("post_only", "1")], ValidationFailed),
        (&[("wallet_id", "\"3\"")], ValidationFailed),
        (&[("wallet_id", "1.0")], ValidationFailed),
        (&[("wallet_id", "1e3")], ValidationFailed),
        (&[("wallet_id", "9999999999999999999")], ValidationFailed),
        (&[("client_order_id", "7")], ValidationFailed),
        (&[("client_order_id", "\"a\\u0000b\"")], ValidationFailed),
        (&[("token_id", "81140002")], ValidationFailed),
        (&[no_token], ValidationFailed),
        (&[no_token, ("market_id", "\"\""), ("outcome", "\"Yes\"")], ValidationFailed),
        (&[no_token, ("market_id", "\"0x1\"")], ValidationFailed),
        (&[no_token, ("market_id", "\"0x1\""), ("outcome", "\"\"")], ValidationFailed),
        (&[("market_id", "5")], ValidationFailed),
        (&[no_quantity], ValidationFailed),
        (&[("quantity", "\"1000000.0001\"")], ValidationFailed),
        (&[("quantity", "1000001")], ValidationFailed),
        (&[market, no_quantity, ("amount", "\"9223372036855\"")], ValidationFailed),
        (&[("price", "\"0\"")], ValidationFailed),
        (&[("price", "\"1.0001\"")], ValidationFailed),
        (&[("price", "-0.5")], ValidationFailed),
        (&[market, ("price", "\"0.00009\"")], ValidationFailed),
        // 1 before 2.
        (&[("amount", "\"5\""), ("post_only", "0")], ValidationFailed),
        // 2: what contradicts itself.
        (&[market, ("amount", "\"5\"")], InvalidRequest),
        (&[no_quantity, ("amount", "\"5\"")], InvalidRequest),
        (&[market, no_quantity, ("amount", "\"5\""), ("side", "\"SELL\"")], InvalidRequest),
        (&[("outcome", "\"No\"")], InvalidRequest),
        // 2 before 3, 3 before 4.
        (&[market, ("amount", "\"5\""), ("price", "null")], InvalidRequest),
        (&[("price", "null"), ("quantity", "0")], PriceRequired),
        (&[("price", "null")], PriceRequired),
        (&[market, ("price", "null")], PriceRequired),
        // 4: more than nothing.
        (&[("quantity", "0")], InvalidQuantity),
        (&[("quantity", "\"-0\"")], InvalidQuantity),
        (&[("quantity", "-5")], InvalidQuantity),
        (&[("quantity", "\"0.00009\"")], InvalidQuantity),
        (&[market, no_quantity, ("amount", "\"0\"")], InvalidQuantity),
        (&[market, no_quantity, ("amount", "-1")], InvalidQuantity),
        (&[market, no_quantity, ("amount", "\"0.0000009\"")], InvalidQuantity),
    ];
    for (fields, expected) in rows {
        assert_eq!(code(&town, &with(fields)), Err(*expected), "{fields:?}");
    }
    for body in ["null", "5", "\"x\"", "[]", "{}"] {
        assert_eq!(code(&town, body), Err(ValidationFailed), "{body}");
    }
    let long = |chars| format!("\"{}\"", "é".repeat(chars));
    assert_eq!(code(&town, &with(&[("client_order_id", &long(256))])), Ok(()));
    assert_eq!(code(&town, &with(&[("client_order_id", &long(257))])), Err(ValidationFailed));
    assert_eq!(code(&town, &with(&[("outcome", &long(201))])), Err(ValidationFailed));
}

#[test]
fn every_numeric_field_takes_plain_decimals_only() {
    let town = Town::new();
    let market = ("order_type", "\"market\"");
    let abuse = [
        "1e400",
        "1e-400",
        "1E5",
        "\"1e5\"",
        "\"NaN\"",
        "\"Infinity\"",
        "\"0x10\"",
        "\"1_000\"",
        "\"+1\"",
        "\".5\"",
        "\"5.\"",
        "\"0.00000000000000000001\"",
        "\"9223372036854775807\"",
        "9223372036854775808",
        "18446744073709551616",
        "\"１２\"",
        "\"٣\"",
        "\"\"",
        "\" 1\"",
        "\"1\\u0000\"",
        "true",
        "[]",
        "{}",
    ];
    for value in abuse {
        for field in ["quantity", "price"] {
            assert_eq!(code(&town, &with(&[(field, value)])), Err(Code::ValidationFailed), "{field} {value}");
        }
        let by_amount = with(&[market, ("quantity", "null"), ("amount", value)]);
        assert_eq!(code(&town, &by_amount), Err(Code::ValidationFailed), "amount {value}");
        // A malformed expiration is refused later, with its own code, and only for GTD.
        let gtd = with(&[("time_in_force", "\"GTD\""), ("expiration", value)]);
        assert_eq!(terms(&town, &gtd).expect("sound in itself").expiration, None, "expiration {value}");
        assert_eq!(code(&town, &with(&[("expiration", value)])), Ok(()), "expiration {value}");
    }
    assert_eq!(code(&town, &with(&[("quantity", "\"00.5\"")])), Ok(()));
    for (value, expected) in [
        ("1791000000", Some(1_791_000_000)),
        ("\"1791000000\"", Some(1_791_000_000)),
        ("0", Some(0)),
        ("18446744073709", Some(18_446_744_073_709)),
        ("18446744073710", None),
        ("-1", None),
        ("1.0", None),
        ("null", None),
    ] {
        let gtd = with(&[("time_in_force", "\"GTD\""), ("expiration", value)]);
        let expected = expected.map(Timestamp::from_secs);
        assert_eq!(terms(&town, &gtd).expect("sound in itself").expiration, expected, "{value}");
    }
}

#[test]
fn an_instrument_is_named_by_token_or_by_market_and_outcome() {
    let town = Town::new();
    let condition = format!("{:?}", town.condition());
    let other = format!("{:?}", town.catalog.market(town.unquoted).expect("listed").listing.condition);
    let (yes, no) = (town.market.instrument(Outcome::First), town.market.instrument(Outcome::Second));
    let no_token = ("token_id", "null");
    let long = format!("{:?}", "8".repeat(81));
    // Fields changed, and the instrument found.
    type Row<'a> = (&'a [(&'a str, &'a str)], Result<Option<InstrumentId>, Code>);
    let rows: &[Row<'_>] = &[
        (&[], Ok(Some(yes))),
        (&[("token_id", "\"55200077\"")], Ok(Some(no))),
        (&[no_token, ("market_id", &condition), ("outcome", "\"yes\"")], Ok(Some(yes))),
        (&[no_token, ("market_id", &condition), ("outcome", "\"NO\"")], Ok(Some(no))),
        (&[("market_id", &condition), ("outcome", "\"Yes\"")], Ok(Some(yes))),
        (&[("market_id", &condition)], Ok(Some(yes))),
        (&[("outcome", "\"Yes\"")], Ok(Some(yes))),
        // Unknown parts are not found, later.
        (&[no_token, ("market_id", &condition), ("outcome", "\"Maybe\"")], Ok(None)),
        (&[no_token, ("market_id", "\"0x00\""), ("outcome", "\"Yes\"")], Ok(None)),
        (&[("token_id", "\"5\"")], Ok(None)),
        (&[("token_id", "\"abc\"")], Ok(None)),
        (&[("token_id", "\"\"")], Ok(None)),
        (&[("token_id", &long)], Ok(None)),
        (&[("token_id", "\"5\""), ("market_id", &condition)], Ok(None)),
        (&[("market_id", "\"0x00\"")], Ok(None)),
        (&[("outcome", "\"Maybe\"")], Ok(None)),
        // Known parts that disagree are refused.
        (&[("market_id", &other)], Err(Code::InvalidRequest)),
        (&[("market_id", &condition), ("outcome", "\"No\"")], Err(Code::InvalidRequest)),
    ];
    for (fields, expected) in rows {
        let found = terms(&town, &with(fields)).map(|terms| terms.instrument).map_err(|(code, _)| code);
        assert_eq!(found, *expected, "{fields:?}");
    }
}

#[test]
fn a_request_is_identified_by_header_or_field() {
    let town = Town::new();
    let identity = |body: &str, header: Option<&str>| {
        draft(&town, body, header.map(str::as_bytes), |draft| {
            let id = draft.placement.request.map(|request| (request.client_order_id, request.source));
            (id, draft.fault.is_some())
        })
    };
    let id = |text: &str, source| Some((text.to_owned(), source));
    let named = with(&[("client_order_id", "\"a\"")]);
    for (body, header, expected) in [
        (&with(&[]), None, (None, false)),
        (&named, None, (id("a", IdSource::Body), false)),
        (&named, Some(""), (id("a", IdSource::Body), false)),
        (&named, Some("a"), (id("a", IdSource::Header), false)),
        (&with(&[]), Some("b"), (id("b", IdSource::Header), false)),
        (&with(&[("client_order_id", "\"\"")]), None, (None, false)),
        (&with(&[("client_order_id", "\"\"")]), Some("b"), (id("b", IdSource::Header), false)),
        (&with(&[("client_order_id", "null")]), None, (None, false)),
        // A request without a valid id cannot be a replay; it is unsound.
        (&named, Some("b"), (None, true)),
        (&with(&[("client_order_id", "7")]), Some("b"), (None, true)),
        // An unsound order with a sound id may still be a replay.
        (&with(&[("client_order_id", "\"a\""), ("side", "7")]), None, (id("a", IdSource::Body), true)),
    ] {
        assert_eq!(identity(body, header), expected, "{body} {header:?}");
    }
    let bad_header = draft(&town, &with(&[]), Some(b"\xff"), |draft| (draft.placement.request, draft.fault.is_some()));
    assert!(bad_header.0.is_none() && bad_header.1);
}

#[test]
fn requests_that_say_the_same_have_one_digest() {
    let town = Town::new();
    let digest = |body: &str, header: Option<&str>| {
        let request = draft(&town, body, header.map(str::as_bytes), |draft| draft.placement.request);
        request.expect("it has an id").digest
    };
    let one = digest(r#"{"side":"BUY","quantity":"5","client_order_id":"a"}"#, None);
    assert_eq!(one, digest(r#"{ "client_order_id":"b", "quantity":"5", "side":"BUY" }"#, None));
    assert_eq!(one, digest(r#"{"side":"BUY","quantity":"5"}"#, Some("a")));
    assert_ne!(one, digest(r#"{"side":"BUY","quantity":"5.0"}"#, Some("a")));
    assert_ne!(one, digest(r#"{"side":"BUY","quantity":5}"#, Some("a")));
    assert_ne!(one, digest(r#"{"side":"BUY","quantity":"5","x":null}"#, Some("a")));
}

#[test]
fn refusals_name_the_fields_that_are_wrong() {
    let town = Town::new();
    let (code, message) = terms(&town, &with(&[("quantity", "\"x\""), ("side", "\"HOLD\"")])).expect_err("unsound");
    assert_eq!((code, message.as_str()), (Code::ValidationFailed, "side: must be one of BUY, SELL"));
}

#[test]
fn no_mutated_body_breaks_the_reader() {
    let town = Town::new();
    let seeds = [
        with(&[("client_order_id", "\"g-0017\""), ("expiration", "1791000000"), ("time_in_force", "\"GTD\"")]),
        with(&[("order_type", "\"market\""), ("amount", "12.5"), ("quantity", "null"), ("wallet_id", "3")]),
        with(&[("price", "0.4200001"), ("post_only", "true"), ("market_id", "\"0x51\""), ("outcome", "\"Yes\"")]),
    ];
    let alphabet = b"{}[]\",:\\u0123456789eE+-.tfnulgdGTD\x00\xc3\xa9/";
    let mut random = Random(23);
    let (mut read, mut sound) = (0, 0);
    for _ in 0..40_000 {
        let mut body = seeds[(random.next() % 3) as usize].clone().into_bytes();
        for _ in 0..=random.next() % 4 {
            let at = (random.next() % body.len() as u64) as usize;
            let letter = alphabet[(random.next() % alphabet.len() as u64) as usize];
            match random.next() % 3 {
                0 => body[at] = letter,
                1 => body.insert(at, letter),
                _ => drop(body.remove(at)),
            }
        }
        let Ok(value) = read::json(&body) else { continue };
        let draft = Draft::read(&value, &sender(&town.catalog, Some(b"h")));
        assert_eq!(draft.placement.terms.is_err(), draft.fault.is_some());
        read += 1;
        sound += usize::from(draft.fault.is_none());
    }
    assert!(read > 4_000 && sound > 400, "{read} read, {sound} sound");
}
