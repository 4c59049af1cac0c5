//! Changes of one market that arrived together. Most sockets that follow the market get all of them, so the bytes are
//! put together once for all sockets with the same frame selection.

use super::change::{Change, Follows};
use super::frame::{Frame, Frames};
use super::news::{Item, Lost, Outlet};
use engine::amount::Price;
use engine::book::Top;
use engine::id::Outcome;
use engine::time::Timestamp;
use std::sync::Arc;

/// Most changes of one batch.
const CHANGES_MAX: usize = 64;
/// Most bytes and frames of one piece, unless it is a single frame. A longer piece would delay the first frames.
const PIECE_BYTES_MAX: usize = 64 << 10;
const PIECE_FRAMES_MAX: usize = 64;
/// Frame selections that one batch caches.
const SELECTIONS_MAX: usize = 8;

/// The best bid and ask of a token.
pub type Best = [Option<Price>; 2];

pub fn best(top: Top) -> Best {
    [top.bid.map(|quote| quote.price), top.ask.map(|quote| quote.price)]
}

/// What decides which frames of a batch a socket gets, if it has seen nothing in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSelection {
    pub follows: Follows,
    /// The best prices of the tokens that the socket was sent last, if it gets `best_bid_ask`.
    pub bests: Option<[Best; 2]>,
}

/// One or more changes of one market, in order.
pub struct Batch {
    changes: Vec<Arc<Change>>,
    /// By token: the best prices after the last change of its book.
    bests: [Option<Best>; 2],
    /// The earliest time in a frame that a newer book makes obsolete.
    earliest: Timestamp,
    made: Vec<(FrameSelection, Vec<Frames>)>,
}

impl Batch {
    pub fn new(changes: Vec<Arc<Change>>) -> Batch {
        let best_of = |outcome: Outcome| {
            let mut tops = changes.iter().rev().filter_map(|change| change.token(outcome).book.as_ref());
            tops.next().map(|book| best(book.top))
        };
        let bests = [Outcome::First, Outcome::Second].map(best_of);
        let times = changes.iter().flat_map(|change| {
            let ticks = change.tokens.iter().filter(|_| change.ticks.is_some()).map(|token| token.at);
            ticks.chain(change.tokens.iter().flat_map(|token| token.trades.iter().map(|trade| trade.at)))
        });
        let earliest = times.min().unwrap_or(Timestamp(u64::MAX));
        Batch { changes, bests, earliest, made: Vec::new() }
    }

    pub fn changes(&self) -> &[Arc<Change>] {
        &self.changes
    }

    /// Whether a socket has seen nothing of this batch. Its subscription began at change `number`, and its last `book`
    /// frame had this `version` and was of the time `shown_at`.
    pub fn is_new_after(&self, number: u64, version: u64, shown_at: Timestamp) -> bool {
        let first = &self.changes[0];
        first.number > number && first.version > version && self.earliest >= shown_at
    }

    /// The best prices of a token after the batch, if its book changed.
    pub fn best(&self, outcome: Outcome) -> Option<Best> {
        self.bests[outcome as usize]
    }

    /// The pieces for this selection, if they are made.
    pub fn made(&self, selection: &FrameSelection) -> Option<&[Frames]> {
        self.made.iter().find(|(other, _)| other == selection).map(|(_, pieces)| &pieces[..])
    }

    /// Makes the pieces for this selection of these frames.
    pub fn make(&mut self, selection: FrameSelection, frames: &[Frame]) {
        if self.made.len() == SELECTIONS_MAX {
            self.made.pop();
        }
        self.made.push((selection, pieces(frames)));
    }
}

fn pieces(frames: &[Frame]) -> Vec<Frames> {
    let (mut pieces, mut begins, mut bytes) = (Vec::new(), 0, 0);
    for (number, frame) in frames.iter().enumerate() {
        let more = frame.bytes().len();
        if number > begins && (bytes + more > PIECE_BYTES_MAX || number - begins == PIECE_FRAMES_MAX) {
            pieces.push(Frames::join(&frames[begins..number]));
            (begins, bytes) = (number, 0);
        }
        bytes += more;
    }
    if begins < frames.len() {
        pieces.push(Frames::join(&frames[begins..]));
    }
    pieces
}

/// Takes news from an outlet, with consecutive changes of a market as one batch.
pub struct Batches<'a> {
    outlet: &'a Outlet,
    /// Taken from the outlet after a batch that it does not belong to.
    peeked: Option<Result<Item, Lost>>,
}

/// News that are delivered together.
pub enum Delivery {
    Changes(Batch),
    Other(Item),
}

impl<'a> Batches<'a> {
    pub fn of(outlet: &'a Outlet) -> Batches<'a> {
        Batches { outlet, peeked: None }
    }

    /// The next news, if there are any.
    ///
    /// # Errors
    /// Those of [`Outlet::take`].
    pub fn take_next(&mut self) -> Result<Option<Delivery>, Lost> {
        let first = match self.take() {
            None => return Ok(None),
            Some(Err(Lost)) => return Err(Lost),
            Some(Ok(Item::Change(first))) => first,
            Some(Ok(other)) => return Ok(Some(Delivery::Other(other))),
        };
        let (market, mut changes) = (first.market, vec![first]);
        while changes.len() < CHANGES_MAX {
            match self.take() {
                Some(Ok(Item::Change(change))) if change.market == market => changes.push(change),
                other => {
                    self.peeked = other;
                    break;
                }
            }
        }
        Ok(Some(Delivery::Changes(Batch::new(changes))))
    }

    fn take(&mut self) -> Option<Result<Item, Lost>> {
        self.peeked.take().or_else(|| self.outlet.take().transpose())
    }
}
