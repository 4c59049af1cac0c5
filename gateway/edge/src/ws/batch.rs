//! Changes of one market that came together. Most who listen to it are to hear all of them and nothing else, so what they
//! are sent is put together once: one piece of bytes for each way of listening.

use super::change::{Change, Follows};
use super::frame::{Frame, Frames};
use super::news::{Item, Lost, Outlet};
use engine::amount::Price;
use engine::book::Top;
use engine::id::Outcome;
use engine::time::Timestamp;
use std::sync::Arc;

/// Changes that are handed out together at most.
const CHANGES_MAX: usize = 64;
/// Bytes and frames of one piece at most, where it is more than one frame: a longer one has more use of leaving at once.
const PIECE_BYTES_MAX: usize = 64 << 10;
const PIECE_FRAMES_MAX: usize = 64;
/// Ways of listening that are remembered.
const WAYS_MAX: usize = 8;

/// The best bid and ask of a token.
pub type Best = [Option<Price>; 2];

pub fn best(top: Top) -> Best {
    [top.bid.map(|quote| quote.price), top.ask.map(|quote| quote.price)]
}

/// What decides which frames of a batch somebody is sent who has heard of nothing in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSelection {
    pub follows: Follows,
    /// The best prices of the tokens as he was told last, where he is told of them.
    pub told: Option<[Best; 2]>,
}

/// At least one change; all are of one market, in their order.
pub struct Batch {
    changes: Vec<Arc<Change>>,
    /// By token: the best prices behind the last change of its book.
    bests: [Option<Best>; 2],
    /// The earliest time that a frame of it may carry which a fresh book makes stale.
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

    /// Whether all of it is news to somebody whose subscription began at that number, whose copy of a book holds that
    /// version, and to whom it was shown as of that time.
    pub fn is_news_behind(&self, number: u64, version: u64, shown_at: Timestamp) -> bool {
        let first = &self.changes[0];
        first.number > number && first.version > version && self.earliest >= shown_at
    }

    /// The best prices of a token behind it, where its book changed.
    pub fn best(&self, outcome: Outcome) -> Option<Best> {
        self.bests[outcome as usize]
    }

    /// What was put together for this way of listening.
    pub fn made(&self, way: &FrameSelection) -> Option<&[Frames]> {
        self.made.iter().find(|(other, _)| other == way).map(|(_, pieces)| &pieces[..])
    }

    /// Puts frames together for this way of listening.
    pub fn make(&mut self, way: FrameSelection, frames: &[Frame]) {
        if self.made.len() == WAYS_MAX {
            self.made.pop();
        }
        self.made.push((way, pieces(frames)));
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

/// News as they are handed out: changes of a market that follow each other come as one batch.
pub struct Batches<'a> {
    outlet: &'a Outlet,
    /// Taken behind a batch that it is no part of.
    ahead: Option<Result<Item, Lost>>,
}

/// What is handed out at once.
pub enum Delivery {
    Changes(Batch),
    Other(Item),
}

impl<'a> Batches<'a> {
    pub fn of(outlet: &'a Outlet) -> Batches<'a> {
        Batches { outlet, ahead: None }
    }

    /// What comes next, if anything waits.
    ///
    /// # Errors
    /// As [`Outlet::take`] says.
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
                    self.ahead = other;
                    break;
                }
            }
        }
        Ok(Some(Delivery::Changes(Batch::new(changes))))
    }

    fn take(&mut self) -> Option<Result<Item, Lost>> {
        self.ahead.take().or_else(|| self.outlet.take().transpose())
    }
}
