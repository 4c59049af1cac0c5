use super::text_cache::CacheKey;
use super::view::{self, BookRequest};
use crate::api::testing::{Text as _, Town, shows};
use engine::amount::{Price, Qty, TickSize};
use engine::book::{BookSide, LastTrade};
use engine::fact;
use engine::id::Outcome;
use engine::market::mutation::MarketMutation;
use engine::time::Timestamp;
use sha1::Digest as _;

const BOOK: &str = concat!(
    r#"{"token_id":"81140002","asset_id":"81140002","market":"CONDITION","hash":"e6eba9311b85732b7ac68ef3fe9dd38403be2e50","#,
    r#""bids":[{"price":"0.40","size":"310"},{"price":"0.41","size":"85"}],"#,
    r#""asks":[{"price":"0.44","size":"120"},{"price":"0.42","size":"60.5"}],"min_order_size":"5","#,
    r#""tick_size":"0.01","neg_risk":false,"last_trade_price":"0.42","mid":"0.415","spread":"0.01","#,
    r#""timestamp":"1790932444120","stale":false,"source":"clob"}"#
);

#[test]
fn a_book_has_the_shape_of_the_contract_on_every_route() {
    let town = Town::new();
    let expected = BOOK.replace("CONDITION", town.condition());
    for target in [
        "/v1/book?token_id=81140002",
        "/v1/book?token=81140002",
        "/v1/clob/book/81140002",
        &format!("/v1/markets/{}/book", town.condition()),
        &format!("/v1/markets/{}/book?outcome=YES", town.condition()),
        &format!("/v1/markets/{}/book?token_id=81140002", town.condition()),
        "/v1/book?token_id=81140002&depth=500",
    ] {
        let answer = town.send("GET", target, "");
        assert_eq!((answer.status, answer.text()), (200, expected.as_str()), "{target}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    for body in [r#"[{"token_id":"81140002","side":"BUY"}]"#, r#"{"items":[{"token_id":"81140002"}]}"#] {
        assert_eq!(town.send("POST", "/v1/books", body).text(), format!("[{expected}]"));
    }
}

#[test]
fn the_best_levels_stay_when_a_book_is_trimmed() {
    let town = Town::new();
    let answer = town.send("GET", "/v1/book?token_id=81140002&depth=1", "");
    let expected = concat!(
        r#"{"bids":[{"price":"0.41","size":"85"}],"asks":[{"price":"0.42","size":"60.5"}],"mid":"0.415","#,
        r#""spread":"0.01"}"#
    );
    shows(answer.text().as_bytes(), expected);
    // Other levels make another hash.
    assert_ne!(answer.json()["hash"], "e6eba9311b85732b7ac68ef3fe9dd38403be2e50");
    for (depth, status) in [("0", 422), ("501", 422), ("x", 422), ("-1", 422), ("", 422), ("500", 200)] {
        let answer = town.send("GET", &format!("/v1/book?token_id=81140002&depth={depth}"), "");
        assert_eq!(answer.status, status, "{depth}");
    }
}

/// The digest of a changed book, over the text that the venue's own clients would hash.
#[test]
fn a_changed_book_has_a_hash_of_its_own() {
    let town = Town::new();
    let first = town.market.instrument(Outcome::First);
    let at = Timestamp(1_790_932_445_000_000);
    town.writer.borrow_mut().frame(0, at, |frame| {
        frame.delta(first, &[(BookSide::Bid, Price(4_100), Qty(1_234_500))], at);
    });
    let answer = town.send("GET", "/v1/book?token_id=81140002", "").json();
    let text = concat!(
        r#"{"market":"CONDITION","asset_id":"81140002","timestamp":"1790932445000","hash":"","#,
        r#""bids":[{"price":"0.40","size":"310"},{"price":"0.41","size":"1.2345"}],"#,
        r#""asks":[{"price":"0.44","size":"120"},{"price":"0.42","size":"60.5"}],"min_order_size":"5","#,
        r#""tick_size":"0.01","neg_risk":false,"last_trade_price":"0.42"}"#
    );
    let digest = sha1::Sha1::digest(text.replace("CONDITION", town.condition()).as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(answer["hash"], digest);
}

/// The hash that the venue's TypeScript client computes: the digest of the whole text, with an empty hash.
fn hashed_as_given(text: &str) -> String {
    let (before, rest) = text.split_once(r#""hash":""#).expect("a book has a hash");
    let (_, after) = rest.split_once('"').expect("it ends");
    let digest = sha1::Sha1::digest(format!(r#"{before}"hash":""{after}"#).as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// In the strict dialect there are the venue's fields alone, so that its clients verify the text that they get.
#[test]
fn a_strict_book_verifies_as_it_is_given() {
    let town = Town::new();
    let expected = concat!(
        r#"{"market":"CONDITION","asset_id":"81140002","timestamp":"1790932444120","#,
        r#""hash":"e6eba9311b85732b7ac68ef3fe9dd38403be2e50","#,
        r#""bids":[{"price":"0.40","size":"310"},{"price":"0.41","size":"85"}],"#,
        r#""asks":[{"price":"0.44","size":"120"},{"price":"0.42","size":"60.5"}],"min_order_size":"5","#,
        r#""tick_size":"0.01","neg_risk":false,"last_trade_price":"0.42"}"#
    );
    let expected = expected.replace("CONDITION", town.condition());
    assert_eq!(hashed_as_given(&expected), "e6eba9311b85732b7ac68ef3fe9dd38403be2e50");
    let plain = town.send("GET", "/v1/book?token_id=81140002", "");
    for _ in 0..2 {
        let answer = town.send("GET", "/v1/book?token_id=81140002&dialect=strict", "");
        assert_eq!((answer.status, answer.text()), (200, expected.as_str()));
        let both = town.send("POST", "/v1/books?dialect=strict", r#"[{"token_id":"81140002"}]"#);
        assert_eq!(both.text(), format!("[{expected}]"));
        assert_eq!(town.send("GET", "/v1/book?token_id=81140002", "").text(), plain.text(), "a text is of one dialect");
    }
    let trimmed = town.send("GET", "/v1/book?token_id=81140002&depth=1&dialect=strict", "");
    assert_eq!(hashed_as_given(trimmed.text()), trimmed.json()["hash"]);
}

#[test]
fn one_side_is_a_book_too() {
    let town = Town::new();
    let first = town.unquoted.instrument(Outcome::First);
    let at = Timestamp(1_790_932_445_000_000);
    town.writer.borrow_mut().frame(0, at, |frame| {
        frame.snapshot(first, &[(Price(4_155), Qty(1_000_000))], &[], at, None);
    });
    let answer = town.send("GET", "/v1/book?token_id=90000001", "");
    let expected = concat!(
        r#"{"bids":[{"price":"0.4155","size":"1"}],"asks":[],"mid":null,"spread":null,"last_trade_price":null,"#,
        r#""min_order_size":"1","tick_size":"0.001"}"#
    );
    shows(answer.text().as_bytes(), expected);
    // The venue's own clients read an empty text, which both hashes are made of.
    let strict = town.send("GET", "/v1/book?token_id=90000001&dialect=strict", "");
    shows(strict.text().as_bytes(), r#"{"last_trade_price":""}"#);
    assert_eq!(hashed_as_given(strict.text()), strict.json()["hash"]);
    assert_eq!(strict.json()["hash"], answer.json()["hash"]);
    let again = town.send("GET", "/v1/book?token_id=90000001", "");
    assert_eq!(again.text(), answer.text(), "a cached text is of one dialect");
}

/// The text of the last price is the venue's where a book came with it.
#[test]
fn a_stated_last_price_is_shown_as_the_venue_writes_it() {
    let town = Town::new();
    let first = town.unquoted.instrument(Outcome::First);
    let at = Timestamp(1_790_932_445_000_000);
    for (price, decimals, expected) in [
        (4_200, Some(3), "0.420"),
        (4_200, Some(2), "0.42"),
        (5_000, Some(1), "0.5"),
        (4_155, Some(4), "0.4155"),
        (4_155, Some(1), "0.4155"),
        (4_155, Some(6), "0.415500"),
        (5_000, None, "0.50"),
        (4_155, Some(200), "0.4155"),
    ] {
        town.writer.borrow_mut().frame(0, at, |frame| {
            frame.snapshot(first, &[], &[], at, None);
            frame.last_price(first, Price(price), decimals, at);
        });
        for dialect in ["plain", "strict"] {
            let answer = town.send("GET", &format!("/v1/book?token_id=90000001&dialect={dialect}"), "");
            assert_eq!(answer.json()["last_trade_price"], expected, "{price} {decimals:?}");
        }
    }
}

#[test]
fn a_missing_book_has_its_code() {
    let town = Town::new();
    let condition = town.condition().to_owned();
    let no_outcome = format!("/v1/markets/{condition}/book?outcome=Maybe");
    let foreign = format!("/v1/markets/{condition}/book?token_id=90000001");
    for (target, expected) in [
        ("/v1/book", (400, "INVALID_TOKEN_ID")),
        ("/v1/book?token_id=", (400, "INVALID_TOKEN_ID")),
        ("/v1/book?token_id=x", (400, "INVALID_TOKEN_ID")),
        ("/v1/book?token_id=0x51", (404, "BOOK_UNAVAILABLE")),
        ("/v1/book?token_id=5", (404, "BOOK_UNAVAILABLE")),
        ("/v1/book?token_id=90000001", (404, "BOOK_UNAVAILABLE")),
        ("/v1/clob/book/x", (404, "BOOK_UNAVAILABLE")),
        ("/v1/markets/0x00/book", (404, "MARKET_NOT_FOUND")),
        (&no_outcome, (404, "MARKET_NOT_FOUND")),
        (&foreign, (404, "MARKET_NOT_FOUND")),
    ] {
        assert_eq!(town.send("GET", target, "").code(), expected, "{target}");
    }
    town.resolve(Outcome::First);
    assert_eq!(town.send("GET", "/v1/book?token_id=81140002", "").code(), (404, "BOOK_UNAVAILABLE"));
}

#[test]
fn a_batch_leaves_out_what_has_no_book() {
    let town = Town::new();
    let many = |count: usize| format!("[{}]", vec![r#"{"token_id":"5"}"#; count].join(","));
    let body =
        r#"[{"token_id":"5"},{"token_id":"81140002","depth":1},{"token_id":"90000001"},{"token_id":"81140002"}]"#;
    let answer = town.send("POST", "/v1/books", body);
    let books = answer.json();
    let books = books.as_array().expect("an array");
    let levels: Vec<_> = books.iter().map(|book| book["bids"].as_array().expect("levels").len()).collect();
    assert_eq!(levels, [1, 2]);
    assert_eq!(
        town.send("POST", "/v1/books?depth=1", r#"[{"token_id":"81140002"}]"#).json()[0]["asks"][0]["price"],
        "0.42"
    );
    assert_eq!(town.send("POST", "/v1/books", &many(500)).text(), "[]");
    for (body, expected) in [
        (many(501).as_str(), (400, "INVALID_BODY")),
        ("[]", (400, "INVALID_BODY")),
        ("{}", (400, "INVALID_BODY")),
        ("", (400, "INVALID_BODY")),
        ("5", (400, "INVALID_BODY")),
        ("[5]", (400, "INVALID_TOKEN_ID")),
        (r#"[{"token_id":5}]"#, (400, "INVALID_TOKEN_ID")),
        (r#"[{}]"#, (400, "INVALID_TOKEN_ID")),
        (r#"[{"token_id":"81140002","depth":0}]"#, (422, "VALIDATION_FAILED")),
        (r#"[{"token_id":"81140002","depth":"1"}]"#, (422, "VALIDATION_FAILED")),
    ] {
        assert_eq!(town.send("POST", "/v1/books", body).code(), expected, "{}", &body[..body.len().min(40)]);
    }
}

#[test]
fn a_book_without_messages_is_stale() {
    let town = Town::new();
    town.clock.set(Timestamp(1_790_932_445_000_000 + 31_000_000));
    let answer = town.send("GET", "/v1/book?token_id=81140002", "");
    shows(answer.text().as_bytes(), r#"{"stale":true,"bids":[{"price":"0.40"},{"price":"0.41"}]}"#);
}

/// A text that the test puts into the cache is the next answer.
#[test]
fn the_second_answer_is_the_cached_text() {
    let town = Town::new();
    let instrument = town.market.instrument(Outcome::First);
    let rows = [
        ("/v1/book?token_id=81140002", None, r#"{"kept":"all"}"#),
        ("/v1/book?token_id=81140002&depth=1", Some(1), r#"{"kept":"one"}"#),
    ];
    for (target, levels_max, by_hand) in rows {
        let written = town.send("GET", target, "").body;
        let books = &town.edge.app.reads.books;
        let key = CacheKey {
            instrument,
            levels_max,
            version: books.version(instrument),
            last: books.last_price(instrument),
            tick: town.catalog.market(town.market).expect("listed").tick(),
            stale: books.stale(instrument, town.edge.app.reads.clock.now()),
            is_strict: false,
        };
        let mut found = Vec::new();
        assert!(town.edge.book_texts.write(&mut found, &key) && found == written, "{target}: it is cached");
        town.edge.book_texts.insert(key, by_hand.as_bytes());
    }
    // After both, so that neither has evicted the other.
    for (target, _, by_hand) in rows {
        assert_eq!(town.send("GET", target, "").text(), by_hand, "{target}");
    }
    println!("cached answers: {} cases", rows.len());
}

/// Each value that a text shows may change alone. The answer after a change shows it, and the next one, which is cached, is
/// the same.
#[test]
fn a_cached_text_is_never_outdated() {
    type Step = (&'static str, fn(&Town));
    const AT: Timestamp = Timestamp(1_790_932_445_000_000);
    fn first(town: &Town) -> engine::id::InstrumentId {
        town.market.instrument(Outcome::First)
    }
    let steps: [Step; 9] = [
        ("nothing", |_| {}),
        ("a level", |town| {
            let levels = [(BookSide::Bid, Price(4_100), Qty(7_000_000))];
            town.writer.borrow_mut().frame(0, AT, |frame| frame.delta(first(town), &levels, AT));
        }),
        ("a trade", |town| {
            let trade = LastTrade { price: Price(4_100), size: Qty(1), taker_buys: false, at: AT };
            town.writer.borrow_mut().frame(0, AT, |frame| frame.trade(first(town), trade));
        }),
        ("the complement", |town| {
            let other = town.market.instrument(Outcome::Second);
            let asks = [(Price(6_000), Qty(1_000_000))];
            town.writer.borrow_mut().frame(0, AT, |frame| frame.snapshot(other, &[], &asks, AT, None));
        }),
        ("a tick", |town| {
            let change =
                MarketMutation::TickChanged(fact::TickChanged { market: town.market, tick: TickSize(10), at: AT });
            town.catalog.publish(&change);
        }),
        ("a gap", |town| town.writer.borrow_mut().gap(first(town))),
        ("a snapshot", |town| {
            let (bids, asks) = ([(Price(4_055), Qty(5_000_000))], [(Price(4_300), Qty(6_000_000))]);
            town.writer.borrow_mut().frame(0, AT, |frame| frame.snapshot(first(town), &bids, &asks, AT, Some("7c")));
        }),
        ("an outage", |town| town.writer.borrow_mut().outage(true)),
        ("its end", |town| town.writer.borrow_mut().outage(false)),
    ];
    let town = Town::new();
    let targets = [
        ("/v1/book?token_id=81140002", None),
        ("/v1/clob/book/81140002", None),
        ("/v1/book?token=81140002&depth=1", Some(1)),
    ];
    let mut before = [String::new(), String::new(), String::new()];
    for (what, step) in steps {
        step(&town);
        for ((target, levels_max), before) in targets.iter().zip(&mut before) {
            let cell = town.catalog.market(town.market).expect("listed");
            let mut fresh = Vec::new();
            let request = BookRequest { cell, instrument: first(&town), levels_max: *levels_max, is_strict: false };
            view::book(&mut fresh, request, &town.edge.app.reads, town.edge.app.reads.clock.now()).expect("a book");
            for _ in 0..2 {
                assert_eq!(town.send("GET", target, "").body, fresh, "{what}: {target}");
            }
            let depth = levels_max.map_or(String::new(), |max| format!("?depth={max}"));
            let batch = town.send("POST", &format!("/v1/books{depth}"), r#"[{"token_id":"81140002"}]"#);
            assert_eq!(batch.body, [b"[", &fresh[..], b"]"].concat(), "{what}: {target} among others");
            let shows = what != "the complement";
            let now = String::from_utf8(fresh).expect("JSON is UTF-8");
            assert_eq!(*before != now, shows, "{what}: {target}");
            *before = now;
        }
    }
    town.resolve(Outcome::First);
    assert_eq!(town.send("GET", targets[0].0, "").code(), (404, "BOOK_UNAVAILABLE"), "no text outlives its market");
    println!("cached texts: {} changes of {} answers", steps.len(), targets.len());
}
