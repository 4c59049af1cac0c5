//! The book of a token at an instant, from the rows of one hour (gateway/docs/archive.md §5).
//!
//! The rows between two anchors are a [`Segment`]: it is decoded once, with the folded book at every few thousand
//! events, and kept in memory as long as there is room. A moment then needs a search and a short fold.

use crate::error::Error;
use crate::fold::{Change, Folded};
use crate::index::{Anchor, AnchorKind, TimeIndex, TokenRows};
use crate::read::HourFile;
use engine::amount::{Price, Qty};
use engine::book::BookSide;
use engine::time::Timestamp;
use std::io::{self, ErrorKind};
use std::ops::Range;

/// Events between two folded books of a segment.
const STEP: usize = 4_096;
/// Most bytes of decoded events of a segment.
const SEGMENT_BYTES_MAX: usize = 64 << 20;
/// Bytes of a segment at which the next one begins: half of what a reader takes, since one more row may follow.
pub(crate) const SEGMENT_BYTES: usize = if cfg!(test) { 1 << 20 } else { SEGMENT_BYTES_MAX / 2 };

/// The files of an hour.
pub(crate) struct OpenHour {
    pub(crate) file: HourFile,
    pub(crate) index: TimeIndex,
}

/// The events of a token between two anchors.
pub(crate) struct Segment {
    events: Vec<Event>,
    levels: Vec<(Price, Qty)>,
    /// Numbers of events, each with the book before them.
    folded: Vec<(usize, Folded)>,
    bytes: usize,
}

/// An event in little memory; times in milliseconds.
struct Event {
    received: u64,
    source: u64,
    what: What,
}

enum What {
    /// Ranges of the segment's levels.
    Book {
        bids: Range<u32>,
        asks: Range<u32>,
    },
    Level {
        side: BookSide,
        price: Price,
        stated: [Option<Price>; 2],
        size: Qty,
    },
    Trade,
}

/// Where the book of a token at a moment is.
pub(crate) enum Place {
    /// No row of the token was received until then, and no earlier book is known.
    Before,
    /// The state of an anchor.
    Anchor(Anchor),
    /// In the rows after an anchor (`None`: from the first row), which the number identifies.
    Segment { number: u32, from: Option<Anchor>, rows: Range<u64> },
}

/// Bytes that a segment grows by with a change, if `events` are before it; `folded` is the book before it.
pub(crate) fn growth(events: usize, folded: &Folded, change: &Change<'_>) -> usize {
    let levels = match change {
        Change::Book { bids, asks } => bids.len() + asks.len(),
        Change::Level { .. } | Change::Trade => 0,
    };
    let kept = if events.is_multiple_of(STEP) { folded.memory() } else { 0 };
    size_of::<Event>() + levels * size_of::<(Price, Qty)>() + kept
}

impl OpenHour {
    /// Finds the book of a token at a moment.
    pub(crate) fn place(&self, token: &TokenRows, at: Timestamp) -> Result<Place, Error> {
        let anchors = self.index.anchors(token)?;
        let is_past = |anchor: &Anchor| anchor.through.is_none_or(|through| through <= at);
        let past = anchors.iter().take_while(|anchor| is_past(anchor)).count();
        let from = past.checked_sub(1).map(|last| anchors[last]);
        Ok(match from {
            Some(anchor) if anchor.kind == AnchorKind::End => Place::Anchor(anchor),
            Some(anchor) if token.first > at => Place::Anchor(anchor),
            None if token.first > at => Place::Before,
            from => {
                let end = anchors.get(past).map_or(token.rows.end, |next| next.row);
                let rows = from.map_or(token.rows.start, |anchor| anchor.row)..end;
                Place::Segment { number: past as u32, from, rows }
            }
        })
    }

    /// Decodes the rows of a segment.
    ///
    /// # Errors
    /// A damaged page; more than 64 MiB of events.
    pub(crate) fn segment(&self, from: Option<Anchor>, rows: Range<u64>) -> Result<Segment, Error> {
        let mut folded = from.map(|anchor| self.index.state(&anchor)).transpose()?.unwrap_or_default();
        let mut segment = Segment { events: Vec::new(), levels: Vec::new(), folded: Vec::new(), bytes: 0 };
        self.file.changes(rows, |_, received, source, change| {
            if segment.events.len().is_multiple_of(STEP) {
                segment.bytes += folded.memory();
                segment.folded.push((segment.events.len(), folded.clone()));
            }
            let (received, source) = (received.millis(), source.millis());
            folded.change(received, source, change);
            segment.push(received, source, change);
            if segment.len() > SEGMENT_BYTES_MAX {
                // A bound, and no damage of the file.
                let error = "the rows between two anchors take more than 64 MiB";
                return Err(Error::Io(self.file.path().to_owned(), io::Error::new(ErrorKind::FileTooLarge, error)));
            }
            Ok(())
        })?;
        if segment.folded.is_empty() {
            segment.bytes += folded.memory();
            segment.folded.push((0, folded));
        }
        segment.events.shrink_to_fit();
        segment.levels.shrink_to_fit();
        segment.bytes = segment.len();
        Ok(segment)
    }
}

impl Segment {
    /// Bytes of folded books, events and levels.
    fn len(&self) -> usize {
        self.bytes + self.events.len() * size_of::<Event>() + self.levels.len() * size_of::<(Price, Qty)>()
    }

    fn push(&mut self, received: u64, source: u64, change: Change<'_>) {
        let what = match change {
            Change::Book { bids, asks } => {
                let mut add = |side: &[(Price, Qty)]| {
                    let start = self.levels.len() as u32;
                    self.levels.extend_from_slice(side);
                    start..self.levels.len() as u32
                };
                What::Book { bids: add(bids), asks: add(asks) }
            }
            Change::Level { side, price, size, stated } => What::Level { side, price, size, stated },
            Change::Trade => What::Trade,
        };
        self.events.push(Event { received, source, what });
    }

    /// Bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + size_of::<Segment>()
    }

    /// The book after the last event received until a moment.
    pub(crate) fn at(&self, at: Timestamp) -> Folded {
        let end = self.events.partition_point(|event| event.received <= at.millis());
        let step = self.folded.partition_point(|(number, _)| *number <= end).saturating_sub(1);
        let (start, folded) = &self.folded[step];
        let mut folded = folded.clone();
        let side = |range: &Range<u32>| &self.levels[range.start as usize..range.end as usize];
        for Event { received, source, what } in &self.events[*start..end] {
            let change = match what {
                What::Book { bids, asks } => Change::Book { bids: side(bids), asks: side(asks) },
                What::Level { side, price, stated, size } => {
                    Change::Level { side: *side, price: *price, size: *size, stated: *stated }
                }
                What::Trade => Change::Trade,
            };
            folded.change(*received, *source, change);
        }
        folded
    }
}
