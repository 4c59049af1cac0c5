//! One event of one token: what an hour is made of, in any file form.

use engine::amount::{Price, Qty, TickSize};
use engine::book::BookSide;
use engine::time::Timestamp;
use std::fmt;
use std::sync::Arc;

/// Most digits of a token id.
pub const TOKEN_DIGITS_MAX: usize = 78;
/// Longest text of the levels of one side, in bytes (gateway/docs/archive.md §6).
pub const LEVELS_BYTES_MAX: usize = 1 << 20;
/// Largest size that a file can hold: decimal(18,6).
pub const SIZE_MAX: Qty = Qty(999_999_999_999_999_999);

/// One event of one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Receipt by the recorder, whole milliseconds.
    pub received: Timestamp,
    /// The venue's own time, whole milliseconds. It may be weeks earlier and orders nothing.
    pub source: Timestamp,
    pub market: Condition,
    /// Decimal digits, 1..=[`TOKEN_DIGITS_MAX`].
    pub token: Arc<str>,
    pub event: Event,
}

/// What happened. Prices are in 1..=9 999, sizes at most [`SIZE_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The whole book. Levels are in the order of the file: Polymarket sends bids ascending and asks descending.
    Book { bids: Vec<(Price, Qty)>, asks: Vec<(Price, Qty)> },
    /// One level. The size is absolute, 0 deletes. The best prices are those the venue states after the change; `None`:
    /// not stated, or an empty side.
    PriceChange { price: Price, size: Qty, side: BookSide, best_bid: Option<Price>, best_ask: Option<Price> },
    /// A trade.
    LastTradePrice {
        price: Price,
        size: Qty,
        taker_buys: bool,
        fee_rate_bps: Option<u16>,
        transaction_hash: Option<Arc<str>>,
    },
    /// The price grid of the market changed.
    TickSizeChange { old: Option<TickSize>, new: TickSize },
}

/// Kind of an event, by its name in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Book,
    LastTradePrice,
    PriceChange,
    TickSizeChange,
}

/// Id of a market: 32 bytes, written as `0x` and 64 lower-case hexadecimal digits. Ids and their texts have the same
/// order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition(pub [u8; 32]);

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Book, Kind::LastTradePrice, Kind::PriceChange, Kind::TickSizeChange];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Book => "book",
            Kind::LastTradePrice => "last_trade_price",
            Kind::PriceChange => "price_change",
            Kind::TickSizeChange => "tick_size_change",
        }
    }

    /// The kind of a name; `None` for other texts.
    pub fn parse(name: &[u8]) -> Option<Kind> {
        Some(match name {
            b"book" => Kind::Book,
            b"last_trade_price" => Kind::LastTradePrice,
            b"price_change" => Kind::PriceChange,
            b"tick_size_change" => Kind::TickSizeChange,
            _ => return None,
        })
    }
}

impl Event {
    pub fn kind(&self) -> Kind {
        match self {
            Event::Book { .. } => Kind::Book,
            Event::PriceChange { .. } => Kind::PriceChange,
            Event::LastTradePrice { .. } => Kind::LastTradePrice,
            Event::TickSizeChange { .. } => Kind::TickSizeChange,
        }
    }
}

impl Event {
    /// Whether its prices, sizes and grids are within their bounds.
    pub(crate) fn is_valid(&self) -> bool {
        let is_level = |price: Price, size: Qty| is_price(price) && size <= SIZE_MAX;
        match self {
            Event::Book { bids, asks } => bids.iter().chain(asks).all(|(price, size)| is_level(*price, *size)),
            Event::PriceChange { price, size, best_bid, best_ask, .. } => {
                is_level(*price, *size) && best_bid.iter().chain(best_ask).all(|price| is_price(*price))
            }
            Event::LastTradePrice { price, size, .. } => is_level(*price, *size),
            Event::TickSizeChange { old, new } => old.iter().chain([new]).all(|tick| is_tick(*tick)),
        }
    }
}

impl Condition {
    /// Bytes of its text.
    pub const TEXT_LEN: usize = 66;

    /// Reads `0x` and 64 hexadecimal digits in lower case; `None` for other texts.
    pub fn parse(text: &str) -> Option<Condition> {
        Condition::parse_bytes(text.as_bytes())
    }

    /// [`Condition::parse`] of a text in a file.
    pub fn parse_bytes(text: &[u8]) -> Option<Condition> {
        let digits = text.strip_prefix(b"0x").filter(|digits| digits.len() == 64)?;
        let mut id = [0; 32];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Condition(id))
    }

    /// Its text.
    pub fn text(&self) -> [u8; Self::TEXT_LEN] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'0'; Self::TEXT_LEN];
        text[1] = b'x';
        for (pair, byte) in text[2..].chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Whether a text is a token id: 1..=[`TOKEN_DIGITS_MAX`] decimal digits.
pub fn is_token(text: &[u8]) -> bool {
    (1..=TOKEN_DIGITS_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

/// Whether a grid of prices can be that of a market.
pub(crate) fn is_tick(tick: TickSize) -> bool {
    (1..=10_000).contains(&tick.0)
}

/// Whether a price can be that of a level.
pub(crate) fn is_price(price: Price) -> bool {
    (Price::LOWEST..=Price::HIGHEST).contains(&price)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_their_texts() {
        let text = format!("0x{}{}", "0123456789abcdef".repeat(3), "00".repeat(8));
        assert_eq!(Condition::parse(&text).expect("an id").to_string(), text);
        let mut cases = 1;
        for wrong in ["", "0x", &text[..65], &text.to_uppercase(), &format!("{text}0"), &text.replace('a', "g")] {
            assert_eq!(Condition::parse(wrong), None, "{wrong}");
            cases += 1;
        }
        let (low, high) = (Condition([0x09; 32]), Condition([0x0a; 32]));
        assert!(low < high && low.text() < high.text());
        println!("conditions: {cases} cases");
    }

    #[test]
    fn tokens_are_digits() {
        let longest = "9".repeat(TOKEN_DIGITS_MAX);
        let too_long = "9".repeat(TOKEN_DIGITS_MAX + 1);
        let cases = [("1", true), (&longest, true), (&too_long, false), ("", false), ("1a", false), ("-1", false)];
        for (text, expected) in cases {
            assert_eq!(is_token(text.as_bytes()), expected, "{text}");
        }
        println!("tokens: {} cases", cases.len());
    }

    #[test]
    fn names_of_kinds() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name().as_bytes()), Some(kind));
        }
        assert_eq!(Kind::parse(b"Book"), None);
        println!("kinds: {} cases", Kind::ALL.len());
    }
}
