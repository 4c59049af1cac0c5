//! Prices that the venue states apply if there is neither a midpoint nor a trade, and a relayed book has a hash that
//! the venue's clients can recompute.

use super::*;
use sha1::Digest as _;

/// The hash of a book in the venue's own clients: SHA-1 of ten fields in their order.
fn recomputed(book: &Value) -> String {
    let fields = ["market", "asset_id", "timestamp", "hash", "bids", "asks", "min_order_size", "tick_size", "neg_risk"];
    let mut parts = Vec::new();
    for name in fields.into_iter().chain(["last_trade_price"]) {
        let value = if name == "hash" { json!("") } else { book[name].clone() };
        let text = match value {
            // A level's fields have an order of their own.
            Value::Array(levels) => {
                let level = |level: &Value| format!(r#"{{"price":{},"size":{}}}"#, level["price"], level["size"]);
                format!("[{}]", levels.iter().map(level).collect::<Vec<_>>().join(","))
            }
            other => other.to_string(),
        };
        parts.push(format!("\"{name}\":{text}"));
    }
    let digest = sha1::Sha1::digest(format!("{{{}}}", parts.join(",")));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A market whose spread is too wide for a mark, without a trade since the server started.
#[test]
fn a_wide_book_never_traded_has_the_prices_that_the_venue_states() {
    let cases = Cases::of("stated prices");
    let (mut scene, [shown, traded]) = Scene::start(|fake, _| {
        let [shown, traded] = [31, 32].map(|number| fake.list(number));
        fake.change(&shown, json!({"outcomePrices": "[\"0.4525\", \"0.5475\"]"}));
        fake.change(&traded, json!({"outcomePrices": "[\"0.4525\", \"0.5475\"]", "lastTradePrice": 0.46}));
        [shown, traded]
    });
    for (market, price, last) in [(&shown, "0.4525", None), (&traded, "0.46", Some("0.46"))] {
        scene.shows(market, "0.40", "0.60");
        let detail = scene.market(market, |detail| at(detail, "/live_price/outcomes/0/price").is_string());
        assert_eq!((text(&detail, "/live_price/outcomes/0/price"), at(&detail, "/last_price").as_str()), (price, last));
        assert_eq!(text(&detail, "/live_price/outcomes/1/price"), "0.5475", "the other token states its own");
        let answer = scene.client.get(&format!("/v1/last-trade-price?token_id={}", market.tokens[0])).expect(200);
        assert_eq!((text(&answer, "/price"), text(&answer, "/side")), (last.unwrap_or("0.5"), ""));
        // 3 USD are 6 shares at the shown price and 3 at the worst price, too few for an order.
        let order = json!({"token_id": market.tokens[0], "side": "BUY", "order_type": "market", "amount": "3",
                           "price": "0.99", "time_in_force": "FAK"});
        let order = scene.client.post("/v1/orders", &order).expect(200);
        assert_eq!((text(&order, "/status"), text(&order, "/filled_quantity")), ("FILLED", "5"), "{order}");
        assert!(at(&order, "/slippage_bps").is_number(), "{order}");
        let positions = scene.client.get(&format!("/v1/account/positions?market_id={}", market.condition)).expect(200);
        let position = at(&positions, "/0");
        assert_eq!(text(position, "/current_price"), price, "{position}");
        // 5 shares for 3 USD.
        let value = 5 * micros(price);
        assert_eq!(micros_at(position, "/unrealized_pnl"), value - micros("3"), "{position}");
        cases.add(6);
    }
    // The stated price returns with the catalogue.
    scene.restart();
    let detail = scene.market(&traded, |detail| at(detail, "/last_price").is_string());
    assert_eq!(text(&detail, "/live_price/outcomes/0/price"), "0.46");
    cases.one();
}

#[test]
fn a_relayed_book_has_the_hash_that_its_fields_make() {
    let cases = Cases::of("relayed hashes");
    let (mut scene, market) = Scene::start(|fake, _| fake.list(33));
    scene.shows(&market, "0.40", "0.60");
    let token = market.tokens[0].clone();
    for (read, shown) in [("", Value::Null), ("&dialect=strict", json!(""))] {
        let book = scene.client.get(&format!("/v1/book?token_id={token}{read}")).expect(200);
        assert_eq!(book["last_trade_price"], shown, "no trade so far: {book}");
        let mut of_venue = book.clone();
        of_venue["last_trade_price"] = json!("");
        assert_eq!(text(&book, "/hash"), recomputed(&of_venue), "{book}");
        cases.one();
    }
    for (last, levels) in [("0.420", ["0.41", "900"]), ("0.42", ["0.42", "41.5"]), ("0.5", ["0.43", "7"])] {
        // Both tokens and both sources agree, so that nothing is requested again meanwhile.
        scene.fake.book(&market, &[(levels[0], levels[1])], &[("0.65", "250")]);
        scene.fake.tell_books(&market);
        let now = scene.fake.tick();
        let mut sent = json!({
            "event_type": "book", "market": market.condition, "asset_id": token, "timestamp": now.to_string(),
            "bids": [{"price": levels[0], "size": levels[1]}], "asks": [{"price": "0.65", "size": "250"}],
            "min_order_size": "5", "tick_size": "0.01", "neg_risk": false, "last_trade_price": last,
        });
        sent["hash"] = recomputed(&sent).into();
        scene.fake.say(&market, &sent.to_string());
        // The levels alone may be those of the message before.
        eventually("the book with this hash", || {
            let book = scene.client.get(&format!("/v1/book?token_id={token}")).expect(200);
            (text(&book, "/hash") == text(&sent, "/hash")).then_some(())
        });
        for read in ["", "&dialect=strict"] {
            let book = scene.client.get(&format!("/v1/book?token_id={token}{read}")).expect(200);
            assert_eq!(
                (text(&book, "/last_trade_price"), text(&book, "/hash")),
                (last, text(&sent, "/hash")),
                "{book}"
            );
            assert_eq!(recomputed(&book), text(&book, "/hash"), "{book}");
            cases.one();
        }
        let detail = scene.market(&market, |detail| at(detail, "/last_price").is_string());
        assert_eq!(micros_at(&detail, "/live_price/outcomes/0/price"), micros(last), "{detail}");
    }
    // An observed trade is newer than the stated price.
    let trade = json!({"event_type": "last_trade_price", "asset_id": token, "market": market.condition, "price": "0.61",
                       "size": "3", "side": "BUY", "timestamp": scene.fake.tick().to_string()});
    scene.fake.say(&market, &trade.to_string());
    scene.market(&market, |detail| at(detail, "/last_price") == "0.61");
    let book = scene.client.get(&format!("/v1/book?token_id={token}")).expect(200);
    assert_eq!((text(&book, "/last_trade_price"), text(&book, "/hash")), ("0.61", &*recomputed(&book)));
    cases.one();
}
