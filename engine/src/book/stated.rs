//! Prices that the venue states beside its books: what its catalogue shows for each token, and the price of the last
//! trade where the trade itself was not seen. They stand where there is neither a midpoint nor a trade.
//!
//! They have a table of their own, so that a market of the catalogue without a book costs a few bytes and no ladders.

use crate::amount::{Cash, Price};
use crate::book::registry::LastTrade;
use crate::id::Outcome;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What a row of a catalogue states of a market; `None` leaves what was stated before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The price shown for each token, 10⁻⁶ USD a share, between 0 and 1 USD.
    pub shown: [Option<Cash>; 2],
    /// The price of each token's last trade.
    pub last: [Option<Price>; 2],
}

/// The price of a token's last trade, as the venue told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPrice {
    pub price: Price,
    /// Decimals of the venue's own text, where a book came with one.
    pub decimals: Option<u8>,
    /// The trade itself; `None` where only its price was stated.
    pub trade: Option<LastTrade>,
}

/// The stated prices of one market.
#[derive(Default)]
pub(super) struct StatedCell {
    /// 10⁻⁶ USD; 0 = none.
    shown: [AtomicU32; 2],
    /// `with a book << 24 | (decimals + 1) << 16 | price`; 0 = none. Taken back by a trade that is seen.
    last: [AtomicU32; 2],
}

/// The statement came with a book: a catalogue, which lags, does not replace it.
const WITH_A_BOOK: u32 = 1 << 24;
/// Most decimals that a text of a price is shown with.
pub const DECIMALS_MAX: u8 = 9;

impl StatedCell {
    pub fn shown(&self, outcome: Outcome) -> Option<Cash> {
        let price = self.shown[outcome as usize].load(Relaxed);
        (price != 0).then_some(Cash(price.into()))
    }

    /// The price of the last trade and the decimals of its text, if it was stated since a trade was last seen.
    pub fn last(&self, outcome: Outcome) -> Option<(Price, Option<u8>)> {
        let packed = self.last[outcome as usize].load(Relaxed);
        (packed != 0).then(|| (Price(packed as u16), ((packed >> 16) as u8).checked_sub(1)))
    }

    /// Takes over what a catalogue states; `traded` says of which tokens a trade was seen. Answers whether it is new.
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

    /// Takes over what came with a book.
    pub fn with_book(&self, outcome: Outcome, price: Price, decimals: Option<u8>) {
        let decimals = decimals.filter(|decimals| *decimals <= DECIMALS_MAX).map_or(0, |decimals| decimals + 1);
        let packed = WITH_A_BOOK | u32::from(decimals) << 16 | u32::from(price.0);
        self.last[outcome as usize].store(packed, Relaxed);
    }

    /// A trade was seen: what was stated before is old.
    pub fn traded(&self, outcome: Outcome) {
        self.last[outcome as usize].store(0, Relaxed);
    }
}
