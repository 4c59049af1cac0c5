//! A reader's copies of one book as the venue shows it: levels ([`Depth`]) or the best of each side ([`Top`]).
//!
//! Copies are filled in place: a reader that reuses its `Depth` does not allocate.

use crate::amount::{Cash, Price, Qty};
use crate::book::ladder::{Ladder, SIZE_MAX, Slot};
use crate::book::side::DepthSide;
use crate::book::{BookSide, Stamp};
use crate::time::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One price of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    pub price: Price,
    pub size: Qty,
    pub stamp: Stamp,
}

/// A consistent copy of a book, as one frame of the venue left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Best first: descending prices.
    pub bids: DepthSide,
    /// Best first: ascending prices.
    pub asks: DepthSide,
    /// Best of both sides, for any count of copied levels.
    pub top: Top,
    /// The venue's time of the last change.
    pub changed_at: Timestamp,
    /// The venue's hash of the last snapshot, while the book equals it (gateway/docs/venue-clients.md §1.1).
    pub hash: Option<SnapshotHash>,
    /// The version of the pair: a later change of either token has a greater one.
    pub version: u64,
}

/// A price and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    pub price: Price,
    pub size: Qty,
}

/// The best level of both sides; an empty side is `None`, never 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Top {
    pub bid: Option<Quote>,
    pub ask: Option<Quote>,
}

/// The text of a venue's book hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SnapshotHash {
    len: u8,
    bytes: [u8; HASH_BYTES_MAX],
}

/// Longest hash text that is stored; the venue's have 40 hex digits.
const HASH_BYTES_MAX: usize = 64;

impl Depth {
    /// The levels of one side.
    pub fn side(&self, side: BookSide) -> &DepthSide {
        match side {
            BookSide::Bid => &self.bids,
            BookSide::Ask => &self.asks,
        }
    }

    /// Copies at most `levels_max` levels of one side. Runs inside a read of the book's sequence.
    #[inline]
    pub(super) fn fill(&mut self, side: BookSide, ladder: &Ladder, levels_max: usize) {
        match side {
            BookSide::Bid => self.bids.refill(ladder, levels_max),
            BookSide::Ask => self.asks.refill(ladder, levels_max),
        }
    }
}

impl Default for Depth {
    fn default() -> Depth {
        Depth {
            bids: DepthSide::new(BookSide::Bid),
            asks: DepthSide::new(BookSide::Ask),
            top: Top::default(),
            changed_at: Timestamp::default(),
            hash: None,
            version: 0,
        }
    }
}

impl Top {
    /// Best price of one side.
    pub fn price(&self, side: BookSide) -> Option<Price> {
        match side {
            BookSide::Bid => self.bid.map(|quote| quote.price),
            BookSide::Ask => self.ask.map(|quote| quote.price),
        }
    }

    /// The mean of the best prices, 10⁻⁶ USD; `None` when a side is empty.
    pub fn midpoint(&self) -> Option<Cash> {
        midpoint(self.price(BookSide::Bid), self.price(BookSide::Ask))
    }
}

/// The mean of two prices in 10⁻⁶ USD, exact.
pub(super) fn midpoint(bid: Option<Price>, ask: Option<Price>) -> Option<Cash> {
    Some(Cash((i64::from(bid?.0) + i64::from(ask?.0)) * 50))
}

impl SnapshotHash {
    /// `None` for an empty text and for one longer than 64 bytes: the hash is then computed where it is shown.
    pub fn new(text: &str) -> Option<SnapshotHash> {
        let mut bytes = [0; HASH_BYTES_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        (!text.is_empty()).then_some(SnapshotHash { len: text.len() as u8, bytes })
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("made from a text and copied whole")
    }
}

impl std::fmt::Debug for SnapshotHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// A [`SnapshotHash`] or none as atomics, part of a book's sequence.
#[derive(Default)]
pub(super) struct HashCell {
    len: AtomicU64,
    words: [AtomicU64; HASH_BYTES_MAX / 8],
}

impl HashCell {
    pub fn store(&self, hash: Option<&SnapshotHash>) {
        let Some(hash) = hash else { return self.len.store(0, Relaxed) };
        self.len.store(u64::from(hash.len), Relaxed);
        for (word, bytes) in self.words.iter().zip(hash.bytes.chunks_exact(8)) {
            word.store(u64::from_le_bytes(bytes.try_into().expect("eight bytes")), Relaxed);
        }
    }

    /// The bytes; only those of an untorn read may be shown as text.
    #[inline]
    pub fn load(&self) -> Option<SnapshotHash> {
        let len = self.len.load(Relaxed) as u8;
        if len == 0 {
            return None;
        }
        let mut hash = SnapshotHash { len, bytes: [0; HASH_BYTES_MAX] };
        for (word, bytes) in self.words.iter().zip(hash.bytes.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        Some(hash)
    }
}

/// The best level of a side as one atomic, part of a book's sequence: `price << 48 | size`, 0 = empty.
#[derive(Default)]
pub(super) struct TopCell(AtomicU64);

impl TopCell {
    pub fn store(&self, side: BookSide, best: Option<Slot>) {
        let packed = best.map_or(0, |slot| u64::from(side.price(slot.rank).0) << 48 | slot.size.0);
        self.0.store(packed, Relaxed);
    }

    #[inline]
    pub fn load(&self) -> PackedQuote {
        PackedQuote(self.0.load(Relaxed))
    }
}

/// The content of a [`TopCell`]. Readers unpack it after the sequence: one register instead of a structure that is
/// stored in parts and copied whole, which stalls the core for longer than the read.
#[derive(Clone, Copy)]
pub(super) struct PackedQuote(u64);

impl PackedQuote {
    #[inline]
    pub fn quote(self) -> Option<Quote> {
        (self.0 != 0).then_some(Quote { price: Price((self.0 >> 48) as u16), size: Qty(self.0 & SIZE_MAX) })
    }

    #[inline]
    pub fn price(self) -> Option<Price> {
        (self.0 != 0).then_some(Price((self.0 >> 48) as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_stored_whole_or_not_at_all() {
        let cell = HashCell::default();
        for (text, fits) in
            [("", false), ("a", true), (&"5".repeat(40), true), (&"é".repeat(32), true), (&"6".repeat(65), false)]
        {
            let hash = SnapshotHash::new(text);
            assert_eq!(hash.as_ref().map(SnapshotHash::as_str), fits.then_some(text));
            cell.store(hash.as_ref());
            assert_eq!(cell.load(), hash);
        }
    }

    #[test]
    fn the_midpoint_has_half_ticks() {
        let quote = |price| Some(Quote { price: Price(price), size: Qty(1) });
        for (bid, ask, midpoint) in [
            (quote(4_100), quote(4_200), Some(Cash(415_000))),
            (quote(1), quote(2), Some(Cash(150))),
            (None, quote(2), None),
            (quote(2), None, None),
        ] {
            assert_eq!(Top { bid, ask }.midpoint(), midpoint);
        }
    }
}
