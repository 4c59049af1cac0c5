//! Opaque page cursors (gateway/docs/wire.md §9). A client's cursor is validated completely before any of it is used.

use super::{decimal, instant};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use engine::id::OrderId;
use engine::time::Timestamp;

/// Cursor of the first page: base64 of `0`.
pub const FIRST: &str = "MA==";
/// Cursor after the last page: base64 of `-1`.
pub const END: &str = "LTE=";

/// Longest cursor that is read.
const TEXT_LENGTH_MAX: usize = 128;

/// A text that is not a cursor (`INVALID_CURSOR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// Where a page of orders begins, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderCursor {
    First,
    /// Strictly after this key in descending order of (created, id).
    After(Timestamp, OrderId),
    /// After the last page: an empty page.
    End,
}

impl OrderCursor {
    /// Reads the output of [`OrderCursor::write`], the two constants, and a raw ISO time (rows created before it).
    pub fn read(text: &str) -> Result<OrderCursor, Invalid> {
        match text {
            "" | FIRST => return Ok(OrderCursor::First),
            END => return Ok(OrderCursor::End),
            _ if text.len() > TEXT_LENGTH_MAX => return Err(Invalid),
            _ => {}
        }
        if text.as_bytes().get(4) == Some(&b'-')
            && let Some(before) = instant::read(text)
        {
            return Ok(OrderCursor::After(before, OrderId(0)));
        }
        let key = URL_SAFE_NO_PAD.decode(text).map_err(|_| Invalid)?;
        let (created, id) = std::str::from_utf8(&key).ok().and_then(|key| key.split_once('~')).ok_or(Invalid)?;
        let created = instant::read(created).filter(|at| instant::ts_text(*at) == created).ok_or(Invalid)?;
        Ok(OrderCursor::After(created, OrderId(plain_integer(id).ok_or(Invalid)?)))
    }

    /// The cursor after a row: url-safe base64 without padding of `<created_at>~<order_id>`.
    pub fn write(created: Timestamp, id: OrderId) -> String {
        let key = decimal::text(|out| {
            instant::ts(out, created);
            out.push(b'~');
            decimal::integer(out, id.0);
        });
        URL_SAFE_NO_PAD.encode(key)
    }
}

/// Where a page of markets begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetCursor {
    At(usize),
    End,
}

impl OffsetCursor {
    /// Standard base64 of a decimal offset; a text of digits only is the offset itself.
    pub fn read(text: &str) -> Result<OffsetCursor, Invalid> {
        if text.is_empty() {
            return Ok(OffsetCursor::At(0));
        }
        if text == END {
            return Ok(OffsetCursor::End);
        }
        if text.len() > TEXT_LENGTH_MAX {
            return Err(Invalid);
        }
        let offset = if text.bytes().all(|b| b.is_ascii_digit()) {
            plain_integer(text)
        } else {
            let decoded = STANDARD.decode(text).map_err(|_| Invalid)?;
            std::str::from_utf8(&decoded).ok().and_then(plain_integer)
        };
        offset.and_then(|offset| usize::try_from(offset).ok()).map(OffsetCursor::At).ok_or(Invalid)
    }

    /// The cursor of the page that begins at `offset`.
    pub fn write(offset: usize) -> String {
        STANDARD.encode(offset.to_string())
    }
}

/// Where a page of rows with descending ids continues: url-safe base64 without padding of the last row's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdCursor {
    First,
    /// Strictly below this id.
    Below(u64),
    /// After the last page: an empty page.
    End,
}

impl IdCursor {
    /// Reads the output of [`IdCursor::write`], with or without padding, and the two constants.
    pub fn read(text: &str) -> Result<IdCursor, Invalid> {
        match text {
            "" | FIRST => return Ok(IdCursor::First),
            END => return Ok(IdCursor::End),
            _ if text.len() > TEXT_LENGTH_MAX => return Err(Invalid),
            _ => {}
        }
        let id = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| Invalid)?;
        let id = std::str::from_utf8(&id).ok().and_then(plain_integer);
        id.map(IdCursor::Below).ok_or(Invalid)
    }

    /// The cursor after the row with this id.
    pub fn write(id: u64) -> String {
        URL_SAFE_NO_PAD.encode(id.to_string())
    }
}

/// An integer of at most 18 digits without sign.
fn plain_integer(text: &str) -> Option<u64> {
    ((1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_cursors_come_back_unchanged() {
        for id in [0, 1, 7_001, (1 << 53) - 1] {
            assert_eq!(IdCursor::read(&IdCursor::write(id)), Ok(IdCursor::Below(id)), "{id}");
        }
        for (text, expected) in [
            ("", Ok(IdCursor::First)),
            (FIRST, Ok(IdCursor::First)),
            (END, Ok(IdCursor::End)),
            ("NzAwMQ", Ok(IdCursor::Below(7_001))),
            ("NzAwMQ==", Ok(IdCursor::Below(7_001))),
            ("7001", Err(Invalid)),
            ("LTE", Err(Invalid)),
            ("eA", Err(Invalid)),
            ("!", Err(Invalid)),
            ("MTIzNDU2Nzg5MDEyMzQ1Njc4OQ", Err(Invalid)),
            (&"A".repeat(200), Err(Invalid)),
        ] {
            assert_eq!(IdCursor::read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn order_cursors_come_back_unchanged() {
        for (created, id) in [(0, 1), (1_790_932_445_120_000, 90_412), (1_790_932_445_000_000, (1 << 53) - 1)] {
            let text = OrderCursor::write(Timestamp(created), OrderId(id));
            assert_eq!(OrderCursor::read(&text), Ok(OrderCursor::After(Timestamp(created), OrderId(id))), "{text}");
        }
        for (text, expected) in [
            ("", Ok(OrderCursor::First)),
            ("MA==", Ok(OrderCursor::First)),
            ("LTE=", Ok(OrderCursor::End)),
            ("1970-01-01T00:00:01Z", Ok(OrderCursor::After(Timestamp(1_000_000), OrderId(0)))),
            ("LTE", Err(Invalid)),
            ("MA", Err(Invalid)),
            ("NTA=", Err(Invalid)),
            ("x", Err(Invalid)),
            ("____", Err(Invalid)),
            ("1970-01-01T00:00:01", Ok(OrderCursor::After(Timestamp(1_000_000), OrderId(0)))),
            ("1970-99-01", Err(Invalid)),
            ("12345678901234567890", Err(Invalid)),
        ] {
            assert_eq!(OrderCursor::read(text), expected, "{text:?}");
        }
        for key in [
            "~",
            "~1",
            "1970-01-01T00:00:00Z~",
            "1970-01-01~1",
            "1970-01-01T00:00:00Z~-1",
            "5~5",
            "1970-01-01T00:00:00Z~1~2",
            "1970-01-01T00:00:00+00:00~1",
            "1970-01-01T00:00:00Z~9999999999999999999",
        ] {
            assert_eq!(OrderCursor::read(&URL_SAFE_NO_PAD.encode(key)), Err(Invalid), "{key}");
        }
        assert_eq!(OrderCursor::read(&"A".repeat(4_000)), Err(Invalid));
    }

    #[test]
    fn offset_cursors_are_base64_or_digits() {
        assert_eq!(OffsetCursor::write(50), "NTA=");
        assert_eq!(OffsetCursor::write(0), FIRST);
        for (text, expected) in [
            ("", Ok(OffsetCursor::At(0))),
            ("MA==", Ok(OffsetCursor::At(0))),
            ("NTA=", Ok(OffsetCursor::At(50))),
            ("50", Ok(OffsetCursor::At(50))),
            ("LTE=", Ok(OffsetCursor::End)),
            ("NTA", Err(Invalid)),
            ("-1", Err(Invalid)),
            ("LTI=", Err(Invalid)),
            ("9999999999999999999", Err(Invalid)),
            ("null", Err(Invalid)),
        ] {
            assert_eq!(OffsetCursor::read(text), expected, "{text:?}");
        }
    }
}
