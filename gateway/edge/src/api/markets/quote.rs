//! What a market is quoted at: the figures behind every `live_price` (market-data.md §2).

use crate::api::account::valuation::Marks;
use crate::reads::Reads;
use engine::amount::{Cash, Price};
use engine::book::{BookSide, Depth};
use engine::id::Outcome;
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use std::cell::RefCell;
use wire::decimal;
use wire::write::{Object, object};

pub const OUTCOMES: [Outcome; 2] = [Outcome::First, Outcome::Second];

thread_local! {
    /// A copy without levels: best prices and time of the last change, of one moment.
    static TOP: RefCell<Depth> = RefCell::default();
}

/// Prices of one moment, 10⁻⁶ USD a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Best bid of the first outcome; its displayed price where nobody bids.
    pub buy: Option<Cash>,
    /// Best ask of the first outcome; its displayed price where nobody offers.
    pub sell: Option<Cash>,
    /// The displayed prices.
    pub outcomes: [Option<Cash>; 2],
    /// When the book last changed; `None`: there is no book, only prices from market data.
    pub changed_at: Option<Timestamp>,
}

impl Quote {
    /// `None` while nothing was ever quoted.
    pub fn of(cell: &MarketCell, reads: &Reads) -> Option<Quote> {
        let marks = Marks { catalog: &reads.catalog, books: &reads.books };
        let outcomes = OUTCOMES.map(|outcome| marks.mark(cell.instrument(outcome)));
        let first = cell.instrument(Outcome::First);
        let (top, changed_at) = TOP.with_borrow_mut(|depth| match reads.books.copy(first, 0, depth) {
            Ok(()) => (depth.top, Some(depth.changed_at)),
            Err(_) => Default::default(),
        });
        if changed_at.is_none() && outcomes == [None, None] {
            return None;
        }
        let best = |side| top.price(side).map(per_share).or(outcomes[0]);
        Some(Quote { buy: best(BookSide::Bid), sell: best(BookSide::Ask), outcomes, changed_at })
    }

    /// Where it comes from.
    pub fn source(&self) -> &'static str {
        if self.changed_at.is_some() { "clob" } else { "upstream_meta" }
    }

    /// `"buy"` and `"sell"`.
    pub fn write_sides(&self, o: &mut Object<'_>) {
        o.or_null("buy", self.buy, Object::average);
        o.or_null("sell", self.sell, Object::average);
    }

    /// `"outcomes"`: label, displayed price and token of both.
    pub fn write_outcomes(&self, o: &mut Object<'_>, cell: &MarketCell) {
        o.array("outcomes", OUTCOMES, |out, outcome| {
            object(out, |o| {
                o.text("label", cell.outcome(outcome));
                o.or_null("price", self.outcomes[outcome as usize], Object::average);
                o.text("token_id", cell.token(outcome));
            });
        });
    }
}

/// A price as a JSON number, shortest text.
pub fn number(o: &mut Object<'_>, name: &str, price: Cash) {
    decimal::vol(o.name(name), price.0.unsigned_abs());
}

fn per_share(price: Price) -> Cash {
    Cash(i64::from(price.0) * 100)
}
