//! Prices that the venue states outside of its books: the catalogue's price of each token, and the price of the last
//! trade if the trade itself was not received. They are used where there is neither a midpoint nor a trade.
//!
//! They have a separate table, so that a listed market without a book costs a few bytes and no ladders.

use crate::amount::{Cash, Price};
use crate::book::registry::LastTrade;
use crate::id::Outcome;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The prices in a catalogue row of a market; `None` keeps the earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The price shown for each token, 10⁻⁶ USD a share, between 0 and 1 USD.
    pub shown: [Option<Cash>; 2],
    /// The price of each token's last trade.
    pub last: [Option<Price>; 2],
}

/// The price of a token's last trade, by the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPrice {
    pub price: Price,
    /// Decimals of the venue's text, if a book had one.
    pub decimals: Option<u8>,
    /// The trade itself; `None` if only its price was stated.
    pub trade: Option<LastTrade>,
}

/// The stated prices of one market.
#[derive(Default)]
pub(super) struct StatedCell {
    /// 10⁻⁶ USD; 0 = none.
    shown: [AtomicU32; 2],
    /// `with a book << 24 | (decimals + 1) << 16 | price`; 0 = none. Cleared when a trade is received.
    last: [AtomicU32; 2],
}

/// The price came with a book: a catalogue, which lags, does not replace it.
const WITH_A_BOOK: u32 = 1 << 24;
/// Maximum count of decimals of a price's text.
pub const DECIMALS_MAX: u8 = 9;

impl StatedCell {
    pub fn shown(&self, outcome: Outcome) -> Option<Cash> {
        let price = self.shown[outcome as usize].load(Relaxed);
        (price != 0).then_some(Cash(price.into()))
    }

    /// The price of the last trade and the decimals of its text, if it was stated after the last trade received.
    pub fn last(&self, outcome: Outcome) -> Option<(Price, Option<u8>)> {
        let packed = self.last[outcome as usize].load(Relaxed);
        (packed != 0).then(|| (Price(packed as u16), ((packed >> 16) as u8).checked_sub(1)))
    }

    /// Stores the prices of a catalogue; `traded`: a trade of that token was received. Returns whether anything is new.
    pub fn by_catalogue(&self, stated: &Stated, traded: [bool; 2]) -> bool {
        let mut changed = false;
        let mut set = |to: &AtomicU32, value: u32| {
            changed |= to.load(Relaxed) != value;
            to.store(value, Relaxed);
        };
        for (outcome, traded) in traded.into_iter().enumerate() {
            let shown = stated.shown[outcome].and_then(|price| u32::try_from(price.0).ok());
            if let Some(price) = shown.filter(|price| (1..1_000_000).contains(price)) {
                set(&self.shown[outcome], price);
            }
            let known = self.last[outcome].load(Relaxed) & WITH_A_BOOK != 0 || traded;
            if let Some(price) = stated.last[outcome].filter(|_| !known) {
                set(&self.last[outcome], u32::from(price.0));
            }
        }
        changed
    }

    /// Stores the price that came with a book.
    pub fn with_book(&self, outcome: Outcome, price: Price, decimals: Option<u8>) {
        let decimals = decimals.filter(|decimals| *decimals <= DECIMALS_MAX).map_or(0, |decimals| decimals + 1);
        let packed = WITH_A_BOOK | u32::from(decimals) << 16 | u32::from(price.0);
        self.last[outcome as usize].store(packed, Relaxed);
    }

    /// A trade was received: earlier stated prices are obsolete.
    pub fn traded(&self, outcome: Outcome) {
        self.last[outcome as usize].store(0, Relaxed);
    }
}
