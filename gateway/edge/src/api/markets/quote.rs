//! The prices that a market is quoted at, from which every `live_price` is made (gateway/docs/market-data.md §2).

use crate::api::account::valuation::Marks;
use crate::http::record::record;
use crate::http::scalar::{self, TokenId, words};
use crate::reads::Reads;
use engine::amount::{Cash, Price};
use engine::book::{BookSide, Depth};
use engine::id::Outcome;
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use std::cell::RefCell;

pub const OUTCOMES: [Outcome; 2] = [Outcome::First, Outcome::Second];

thread_local! {
    /// A copy without levels: a consistent view of the best prices and the time of the last change.
    static TOP: RefCell<Depth> = RefCell::default();
}

words! {
    pub QuoteSource = "clob", "upstream_meta";
}

record! {
    /// An outcome with its displayed price.
    pub struct QuotedOutcome<'a> {
        pub label: &'a str = "Yes";
        pub price: Option<scalar::Price> = Some(scalar::Price::of("0.415"));
        pub token_id: TokenId<'a> = "81140002".into();
    }
}

/// A consistent view of a market's prices, 10⁻⁶ USD a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Best bid of the first outcome; its displayed price where there are no bids.
    pub buy: Option<Cash>,
    /// Best ask of the first outcome; its displayed price where there are no asks.
    pub sell: Option<Cash>,
    /// The displayed prices.
    pub outcomes: [Option<Cash>; 2],
    /// When the book last changed; `None` without a book, where the prices are from market data.
    pub changed_at: Option<Timestamp>,
}

impl Quote {
    /// `None` before the first quote.
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

    /// The origin of the prices.
    pub fn source(&self) -> QuoteSource {
        if self.changed_at.is_some() { "clob" } else { "upstream_meta" }.into()
    }

    /// The displayed prices with their outcomes.
    pub fn outcomes<'a>(&self, cell: &'a MarketCell) -> [QuotedOutcome<'a>; 2] {
        OUTCOMES.map(|outcome| QuotedOutcome {
            label: cell.outcome(outcome),
            price: self.outcomes[outcome as usize].map(scalar::Price),
            token_id: cell.token(outcome).into(),
        })
    }
}

fn per_share(price: Price) -> Cash {
    scalar::Price::from(price).0
}
