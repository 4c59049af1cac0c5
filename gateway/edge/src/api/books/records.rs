//! Records of the book routes. [`super::view`] writes books by hand, since they are read often; a test compares it with
//! [`Book`].

use crate::http::record::{List, forms, record};
use crate::http::scalar::{Blank, ConditionId, Decimal, Milliseconds, Price, Quantity, TokenId, words};
use serde_json::Value;

words! {
    pub BookSource = "clob";
}

forms! {
    // The last price as the venue writes it. A book that was never traded has an empty text in the strict dialect.
    pub LastTradePrice<'a> = Price(Decimal<'a>), Never(Blank); LastTradePrice::Price("0.42".into());
}

record! {
    /// The venue's own book of one outcome token. In the strict dialect it has the venue's ten fields alone, in the venue's
    /// order, so that its clients verify `hash` from the fields that they get.
    pub struct Book<'a> {
        token_id: Option<TokenId<'a>> = Some("81140002".into()),
            "The outcome token. This field, `mid`, `spread`, `stale` and `source` are absent in the strict dialect.",
            skip_serializing_if;
        asset_id: TokenId<'a> = "81140002".into(), "The same.";
        market: ConditionId<'a> = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4".into(), "Its market.";
        #[schemars(length(max = 64))]
        hash: &'a str = "9ae1", "SHA-1 of the venue's ten fields as they are shown, in the venue's order, with an empty hash.";
        bids: Vec<BookLevel> = vec![BookLevel::of("0.40", "310"), BookLevel::of("0.41", "85")],
            "Ascending: the best is last.";
        asks: Vec<BookLevel> = vec![BookLevel::of("0.44", "120"), BookLevel::of("0.42", "60.5")],
            "Descending: the best is last.";
        min_order_size: Quantity = Quantity::of("5"), "The least number of shares the venue takes.";
        tick_size: Decimal<'a> = "0.01".into(), "The grid of prices.";
        neg_risk: bool = false, "Belongs to a group of markets with one winner.";
        last_trade_price: Option<LastTradePrice<'a>> = Some(LastTradePrice::example()),
            "Of the last trade at the venue, seen or stated by it. Before the first one null; in the strict dialect empty.";
        #[schemars(extend("x-or-null" = true))]
        mid: Option<Option<Price>> = Some(Some(Price::of("0.415"))),
            "Half way between the best prices; null when a side is empty.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        spread: Option<Option<Price>> = Some(Some(Price::of("0.01"))),
            "Best ask less best bid; null when a side is empty.", skip_serializing_if;
        timestamp: Milliseconds = Milliseconds(1_790_932_499_120), "When the venue last changed the book.";
        stale: Option<bool> = Some(false), "No message about the book has arrived for too long.", skip_serializing_if;
        source: Option<BookSource> = Some("clob".into()), "An opaque label.", skip_serializing_if;
    }

    /// All orders at one price.
    pub struct BookLevel {
        pub price: Price = Price::of("0.41"), "US dollars per share.";
        pub size: Quantity = Quantity::of("85"), "Shares.";
    }

    /// One token of a batch.
    pub struct BookRequest<'a> {
        token_id: TokenId<'a> = "81140002".into(), "The outcome token.";
        #[schemars(range(min = 1, max = 500), extend("x-or-null" = true))]
        depth: Option<u64> = None, "The best levels of each side.", skip_serializing_if;
        side: Option<Value> = None, "Ignored.", skip_serializing_if;
    }

    /// The tokens of a batch.
    pub struct BookRequests<'a> {
        items: List<BookRequest<'a>, 1, 500> = List::example(), "The tokens.";
    }
}

forms! {
    pub BookBatch<'a> = List(List<BookRequest<'a>, 1, 500>), Object(BookRequests<'a>); BookBatch::List(List::example());
}

impl BookLevel {
    /// Values of examples.
    fn of(price: &str, size: &str) -> BookLevel {
        BookLevel { price: Price::of(price), size: Quantity::of(size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::books::view::{self, BookCopy};
    use crate::api::testing::{Text as _, Town};
    use crate::http::record::write_record;
    use engine::amount::Qty;
    use engine::book::Level;
    use engine::id::Outcome;
    use wire::decimal;

    /// The record of a book in the plain dialect, or in the strict one as its clients read it.
    fn record<'a>(copy: BookCopy<'a>, hash: &'a str, is_strict: bool) -> Book<'a> {
        let level = |level: Level| BookLevel { price: level.price.into(), size: Quantity::uncut(Qty(level.size.0)) };
        let last = copy.last.map(|last| decimal::text(|out| decimal::price(out, last.price)));
        let never = is_strict.then(|| LastTradePrice::Never("".into()));
        Book {
            token_id: (!is_strict).then(|| copy.token().to_owned().into()),
            asset_id: copy.token().to_owned().into(),
            market: copy.cell.listing.condition.as_str().into(),
            hash,
            bids: copy.depth.bids.iter().rev().map(level).collect(),
            asks: copy.depth.asks.iter().rev().map(level).collect(),
            min_order_size: Quantity::uncut(view::min_order_size(copy.cell)),
            tick_size: decimal::text(|out| decimal::tick(out, copy.tick)).into(),
            neg_risk: copy.cell.listing.neg_risk,
            last_trade_price: last.map(|last| LastTradePrice::Price(last.into())).or(never),
            mid: (!is_strict).then(|| copy.depth.top.midpoint().map(Price)),
            spread: (!is_strict).then(|| view::spread(copy.depth.top).map(Price::from)),
            timestamp: Milliseconds(copy.depth.changed_at.millis()),
            stale: (!is_strict).then_some(false),
            source: (!is_strict).then(|| "clob".into()),
        }
    }

    #[test]
    fn the_writer_writes_the_record() {
        let town = Town::new();
        let unquoted = town.unquoted.instrument(Outcome::First);
        let at = engine::time::Timestamp(1_790_932_445_000_000);
        town.writer.borrow_mut().frame(0, at, |frame| {
            frame.snapshot(unquoted, &[(engine::amount::Price(4_155), Qty(1_234_567))], &[], at, None);
        });
        let mut cases = 0;
        for (market, token) in [(town.market, "81140002"), (town.unquoted, "90000001")] {
            let cell = town.catalog.market(market).expect("listed");
            for (depth, levels_max) in [("1", 1), ("500", 500)] {
                let target = format!("/v1/book?token_id={token}&depth={depth}");
                let plain = town.send("GET", &target, "");
                let strict = town.send("GET", &format!("{target}&dialect=strict"), "");
                view::copied(&town.books, cell, market.instrument(Outcome::First), levels_max, |copy| {
                    let hash = copy.hash();
                    let mut text = Vec::new();
                    write_record(&mut text, &record(copy, hash.as_str(), false));
                    assert_eq!(plain.text(), String::from_utf8(text).expect("JSON is UTF-8"));
                    // The venue's order of fields differs.
                    let record = serde_json::to_value(record(copy, hash.as_str(), true)).expect("JSON");
                    assert_eq!(strict.json(), record);
                })
                .expect("a book");
                cases += 2;
            }
        }
        println!("books as records: {cases} cases");
    }
}
