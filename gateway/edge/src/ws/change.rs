//! One change of a market as the feed saw it, and its frames: each is made when the first listener needs it, and all
//! listeners of all threads share it.

use super::frame::Frame;
use super::market_text::{self as text, Moved, Stands};
use crate::api::books::view::BookCopy;
use engine::amount::{Bps, TickSize};
use engine::book::{Depth, LastPrice, LastTrade, SnapshotHash, Top};
use engine::id::{MarketId, Outcome};
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use std::sync::OnceLock;

/// What the feed did to the books of one market at once.
#[derive(Debug)]
pub struct Change {
    pub market: MarketId,
    /// Dense over all changes told ([`News::number`](super::news::News::number)).
    pub number: u64,
    /// Of the pair of books, behind this change.
    pub version: u64,
    pub tokens: [TokenChange; 2],
    /// The tick before and after, where it changed.
    pub ticks: Option<(TickSize, TickSize)>,
    /// The tick that counts now.
    pub tick: TickSize,
    pub fee_rate: Bps,
    /// What `price_change` says.
    pub at: Timestamp,
    /// By the tokens that a listener follows: the first, the second, both.
    price_changes: [OnceLock<Frame>; 3],
}

/// What became of one token.
#[derive(Debug, Default)]
pub struct TokenChange {
    /// `None`: its book is as it was.
    pub book: Option<BookChange>,
    pub trades: Vec<Trade>,
    /// What `tick_size_change` and `book` say.
    pub at: Timestamp,
    tick: OnceLock<Frame>,
}

/// A book behind a change.
#[derive(Debug)]
pub struct BookChange {
    pub what: BookContent,
    /// As `GET /v1/book` shows it.
    pub hash: SnapshotHash,
    pub top: Top,
    whole: OnceLock<Frame>,
    best: OnceLock<Frame>,
}

/// How a book changed.
#[derive(Debug)]
pub enum BookContent {
    /// These levels stand so now.
    Levels(Vec<Stands>),
    /// The venue showed the whole book, or its terms changed.
    Whole { depth: Box<Depth>, last: Option<LastPrice> },
}

/// A trade at the venue.
#[derive(Debug)]
pub struct Trade {
    pub trade: LastTrade,
    /// What its frame says.
    pub at: Timestamp,
    /// Of the book after the venue's frame; `None`: there is no book.
    pub hash: Option<SnapshotHash>,
    frame: OnceLock<Frame>,
}

/// Which tokens of a market a listener follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follows(pub [bool; 2]);

impl Follows {
    pub fn has(self, outcome: Outcome) -> bool {
        self.0[outcome as usize]
    }

    /// Those followed, first outcome first.
    pub fn outcomes(self) -> impl Iterator<Item = Outcome> {
        [Outcome::First, Outcome::Second].into_iter().filter(move |outcome| self.has(*outcome))
    }
}

impl Change {
    /// Nothing happened yet.
    pub fn empty(market: MarketId, number: u64) -> Change {
        Change {
            market,
            number,
            version: 0,
            tokens: Default::default(),
            ticks: None,
            tick: TickSize(100),
            fee_rate: Bps(0),
            at: Timestamp(0),
            price_changes: Default::default(),
        }
    }

    /// `tick_size_change` of a token.
    pub fn tick_frame(&self, cell: &MarketCell, outcome: Outcome) -> Option<&Frame> {
        let (ticks, token) = (self.ticks?, self.token(outcome));
        let write = |out: &mut Vec<u8>| text::tick_size_change(out, cell, outcome, ticks, token.at);
        Some(token.tick.get_or_init(|| Frame::json(write)))
    }

    /// `book` of a token, where the whole of it is told.
    pub fn book_frame(&self, cell: &MarketCell, outcome: Outcome) -> Option<&Frame> {
        let token = self.token(outcome);
        let book = token.book.as_ref()?;
        let BookContent::Whole { depth, last } = &book.what else { return None };
        let shown = BookCopy { cell, instrument: cell.instrument(outcome), depth, last: *last, tick: self.tick };
        Some(book.whole.get_or_init(|| Frame::json(|out| text::book(out, shown, &book.hash, token.at))))
    }

    /// `price_change`, restricted to what is followed.
    pub fn levels_frame(&self, cell: &MarketCell, follows: Follows) -> Option<&Frame> {
        let moved = |outcome: Outcome| {
            let book = self.token(outcome).book.as_ref()?;
            let BookContent::Levels(levels) = &book.what else { return None };
            let moved = Moved { outcome, levels, hash: book.hash, top: book.top };
            (!levels.is_empty()).then_some(moved)
        };
        let mut frame = None;
        if follows.outcomes().any(|outcome| moved(outcome).is_some()) {
            let place = usize::from(follows.0[0]) + 2 * usize::from(follows.0[1]) - 1;
            let write =
                |out: &mut Vec<u8>| text::price_change(out, cell, follows.outcomes().filter_map(moved), self.at);
            frame = Some(self.price_changes[place].get_or_init(|| Frame::json(write)));
        }
        frame
    }

    /// `best_bid_ask` of a token whose book changed.
    pub fn top_frame(&self, cell: &MarketCell, outcome: Outcome) -> Option<&Frame> {
        let book = self.token(outcome).book.as_ref()?;
        let at = if matches!(book.what, BookContent::Levels(_)) { self.at } else { self.token(outcome).at };
        Some(book.best.get_or_init(|| Frame::json(|out| text::best_bid_ask(out, cell, outcome, book.top, at))))
    }

    /// `last_trade_price` of a token, one for each trade, with what it says.
    pub fn trade_frames<'a>(
        &'a self,
        cell: &'a MarketCell,
        outcome: Outcome,
    ) -> impl Iterator<Item = (Timestamp, &'a Frame)> {
        self.token(outcome).trades.iter().map(move |told| {
            let write = |out: &mut Vec<u8>| text::last_trade_price(out, cell, outcome, told, self.fee_rate);
            (told.at, told.frame.get_or_init(|| Frame::json(write)))
        })
    }

    pub fn token(&self, outcome: Outcome) -> &TokenChange {
        &self.tokens[outcome as usize]
    }
}

impl BookChange {
    pub fn new(what: BookContent, hash: SnapshotHash, top: Top) -> BookChange {
        BookChange { what, hash, top, whole: OnceLock::new(), best: OnceLock::new() }
    }
}

impl Trade {
    pub fn new(trade: LastTrade, at: Timestamp, hash: Option<SnapshotHash>) -> Trade {
        Trade { trade, at, hash, frame: OnceLock::new() }
    }
}
