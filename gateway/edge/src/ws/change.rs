//! One change of a market, and its frames. Each frame is made when the first socket needs it, and is shared by the
//! sockets of all threads.

use super::frame::Frame;
use super::market_text::{self as text, LevelSize, TokenLevels};
use super::shape::market::TickSizeChangeEvent;
use crate::api::books::view::BookCopy;
use engine::amount::{Bps, TickSize};
use engine::book::{Depth, LastPrice, LastTrade, SnapshotHash, Top};
use engine::id::{MarketId, Outcome};
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use std::sync::OnceLock;

/// A change of the books of one market.
#[derive(Debug)]
pub struct Change {
    pub market: MarketId,
    /// Counts all published changes without gaps ([`News::number`](super::news::News::number)).
    pub number: u64,
    /// Version of the pair of books after this change.
    pub version: u64,
    pub tokens: [TokenChange; 2],
    /// The tick before and after, if it changed.
    pub ticks: Option<(TickSize, TickSize)>,
    /// The current tick.
    pub tick: TickSize,
    pub fee_rate: Bps,
    /// Timestamp of `price_change`.
    pub at: Timestamp,
    /// By the tokens that a socket follows: the first, the second, both.
    price_changes: [OnceLock<Frame>; 3],
}

/// The change of one token.
#[derive(Debug, Default)]
pub struct TokenChange {
    /// `None` if the book did not change.
    pub book: Option<BookChange>,
    pub trades: Vec<Trade>,
    /// Timestamp of `tick_size_change` and `book`.
    pub at: Timestamp,
    tick: OnceLock<Frame>,
}

/// A book after a change.
#[derive(Debug)]
pub struct BookChange {
    pub content: BookContent,
    /// As in `GET /v1/book`.
    pub hash: SnapshotHash,
    pub top: Top,
    whole: OnceLock<Frame>,
    best: OnceLock<Frame>,
}

/// The changed part of a book.
#[derive(Debug)]
pub enum BookContent {
    /// New sizes of these levels.
    Levels(Vec<LevelSize>),
    /// The whole book, because the venue sent all of it or its terms changed.
    Whole { depth: Box<Depth>, last: Option<LastPrice> },
}

/// A trade at the venue.
#[derive(Debug)]
pub struct Trade {
    pub trade: LastTrade,
    /// Timestamp of its frame.
    pub at: Timestamp,
    /// Hash of the book after the venue's frame; `None` without a book.
    pub hash: Option<SnapshotHash>,
    frame: OnceLock<Frame>,
}

/// The tokens of a market that a socket follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follows(pub [bool; 2]);

impl Follows {
    pub fn has(self, outcome: Outcome) -> bool {
        self.0[outcome as usize]
    }

    /// The followed tokens, first outcome first.
    pub fn outcomes(self) -> impl Iterator<Item = Outcome> {
        [Outcome::First, Outcome::Second].into_iter().filter(move |outcome| self.has(*outcome))
    }
}

impl Change {
    /// A change without content.
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
        let event = || TickSizeChangeEvent::new(cell, outcome, ticks, token.at);
        Some(token.tick.get_or_init(|| Frame::record(&event())))
    }

    /// `book` of a token, if the change has the whole book.
    pub fn book_frame(&self, cell: &MarketCell, outcome: Outcome) -> Option<&Frame> {
        let token = self.token(outcome);
        let book = token.book.as_ref()?;
        let BookContent::Whole { depth, last } = &book.content else { return None };
        let shown = BookCopy { cell, instrument: cell.instrument(outcome), depth, last: *last, tick: self.tick };
        Some(book.whole.get_or_init(|| Frame::json(|out| text::book(out, shown, &book.hash, token.at))))
    }

    /// `price_change`, with the followed tokens only.
    pub fn levels_frame(&self, cell: &MarketCell, follows: Follows) -> Option<&Frame> {
        let moved = |outcome: Outcome| {
            let book = self.token(outcome).book.as_ref()?;
            let BookContent::Levels(levels) = &book.content else { return None };
            let moved = TokenLevels { outcome, levels, hash: book.hash, top: book.top };
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
        let at = if matches!(book.content, BookContent::Levels(_)) { self.at } else { self.token(outcome).at };
        Some(book.best.get_or_init(|| Frame::json(|out| text::best_bid_ask(out, cell, outcome, book.top, at))))
    }

    /// `last_trade_price` of a token, one for each trade, with its timestamp.
    pub fn trade_frames<'a>(
        &'a self,
        cell: &'a MarketCell,
        outcome: Outcome,
    ) -> impl Iterator<Item = (Timestamp, &'a Frame)> {
        self.token(outcome).trades.iter().map(move |trade| {
            let write = |out: &mut Vec<u8>| text::last_trade_price(out, cell, outcome, trade, self.fee_rate);
            (trade.at, trade.frame.get_or_init(|| Frame::json(write)))
        })
    }

    pub fn token(&self, outcome: Outcome) -> &TokenChange {
        &self.tokens[outcome as usize]
    }
}

impl BookChange {
    pub fn new(content: BookContent, hash: SnapshotHash, top: Top) -> BookChange {
        BookChange { content, hash, top, whole: OnceLock::new(), best: OnceLock::new() }
    }
}

impl Trade {
    pub fn new(trade: LastTrade, at: Timestamp, hash: Option<SnapshotHash>) -> Trade {
        Trade { trade, at, hash, frame: OnceLock::new() }
    }
}
