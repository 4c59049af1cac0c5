//! Keys and values of the history store.
//!
//! ```text
//! prices        market u32, minute u32    head │ open, high, low, close u16 │ shares filled of either outcome
//! price_hours   market u32, hour u32      the same, of a whole hour
//! about         name                      head │ what is known of the prices as a whole
//! ```
//!
//! Keys are big-endian, so that they sort by market, then time: newest last. Every value begins with a head. Its first
//! byte is the version of the value, which says what else the head has: rows that come from the log will have their
//! lineage index and the LSN at which they ended there. A price comes from a venue and not from the log, so its head is
//! the version alone. Numbers of values are little-endian, or LEB128 where they are mostly small.

use engine::amount::Qty;
use engine::book::candles::{Bucket, Candle, Grid, Mid, fold};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Version of a price.
const PRICE: u8 = 1;
/// Version of [`About`].
const ABOUT: u8 = 1;
/// Bytes of four prices.
const MIDS_BYTES: usize = 8;
/// Most bytes of a 64-bit number in LEB128.
const LEB_BYTES_MAX: usize = 10;
/// Bound of the hours in an [`About`].
pub const UNSEALED_MAX: usize = 256;

/// Bound of the market numbers of this server.
pub const MARKETS_MAX: u32 = 1 << 22;
/// How long minutes are kept.
pub const MINUTES_KEPT_HOURS: u32 = 7 * 24;
/// How long hours are kept.
pub const HOURS_KEPT_DAYS: u32 = 730;
/// Rows of one batch, where there are many.
pub const BATCH_ROWS: usize = 4_096;

/// A key of either kind of prices.
pub type Key = [u8; 8];

/// The candle of a market in one minute of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Minute of the hour; in a file of the earlier format also the hour of the day.
    pub slot: u16,
    pub candle: Candle,
}

/// What is known of the prices as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The newest minute with a price, since 1970; `None`: there are no prices.
    pub newest: Option<u32>,
    /// Minutes of hours before this one are gone, or about to be; their hours remain.
    pub minutes_from: u32,
    /// Hours before this one are gone, or about to be.
    pub hours_from: u32,
    /// Hours with minutes that are not folded into a row by hour yet.
    pub unsealed: BTreeSet<u32>,
}

pub fn key(market: u32, time: u32) -> Key {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&market.to_be_bytes());
    key[4..].copy_from_slice(&time.to_be_bytes());
    key
}

/// Market and minute or hour of a key.
pub fn read_key(key: &[u8]) -> Option<(u32, u32)> {
    let (market, time) = key.split_at_checked(4)?;
    Some((u32::from_be_bytes(market.try_into().ok()?), u32::from_be_bytes(time.try_into().ok()?)))
}

pub fn write_candle(candle: &Candle) -> Vec<u8> {
    let Candle { open, high, low, close, volume } = candle;
    let mut out = Vec::with_capacity(1 + MIDS_BYTES + 2);
    out.push(PRICE);
    for mid in [open, high, low, close] {
        out.extend_from_slice(&mid.0.to_le_bytes());
    }
    volume.iter().for_each(|volume| write_leb(volume.0, &mut out));
    out
}

/// `None` for bytes that no candle has, and for a later version.
pub fn read_candle(bytes: &[u8]) -> Option<Candle> {
    let (&version, rest) = bytes.split_first()?;
    let (mids, mut rest) = rest.split_at_checked(MIDS_BYTES)?;
    let mid = |at: usize| Mid(u16::from_le_bytes([mids[at], mids[at + 1]]));
    let (open, high, low, close) = (mid(0), mid(2), mid(4), mid(6));
    let volume = [Qty(read_leb(&mut rest)?), Qty(read_leb(&mut rest)?)];
    let is_sound = high <= Mid::ONE && [open, close].iter().all(|mid| (low..=high).contains(mid)) && rest.is_empty();
    (version == PRICE && is_sound).then_some(Candle { open, high, low, close, volume })
}

impl About {
    pub fn write(&self) -> Vec<u8> {
        let mut out = vec![ABOUT];
        // One more than the minute, so that zero says that there is none.
        write_leb(self.newest.map_or(0, |minute| u64::from(minute) + 1), &mut out);
        write_leb(u64::from(self.minutes_from), &mut out);
        write_leb(u64::from(self.hours_from), &mut out);
        // The newest ones, of more than can be read again.
        let left_out = self.unsealed.len().saturating_sub(UNSEALED_MAX);
        write_leb((self.unsealed.len() - left_out) as u64, &mut out);
        self.unsealed.iter().skip(left_out).for_each(|hour| write_leb(u64::from(*hour), &mut out));
        out
    }

    /// Moves what is kept on to the newest hour.
    pub fn keep_from(&mut self, newest: u32) {
        self.minutes_from = self.minutes_from.max(newest.saturating_sub(MINUTES_KEPT_HOURS));
        self.hours_from = self.hours_from.max((newest / 24).saturating_sub(HOURS_KEPT_DAYS) * 24);
    }

    /// The first minute that is kept.
    pub fn first_minute(&self) -> u32 {
        let hour = self.unsealed.first().map_or(self.minutes_from, |hour| self.minutes_from.min(*hour));
        hour.saturating_mul(60)
    }

    /// The version of the value, if it is a later one.
    pub fn later_version(bytes: &[u8]) -> Option<u8> {
        bytes.first().copied().filter(|version| *version > ABOUT)
    }

    /// `None` for bytes that were not written by [`About::write`].
    pub fn read(bytes: &[u8]) -> Option<About> {
        let (&version, mut rest) = bytes.split_first()?;
        let mut next = || read_leb(&mut rest);
        let newest = match next()? {
            0 => None,
            minute => Some(u32::try_from(minute - 1).ok()?),
        };
        let (minutes_from, hours_from) = (u32::try_from(next()?).ok()?, u32::try_from(next()?).ok()?);
        let count = usize::try_from(next()?).ok().filter(|count| *count <= UNSEALED_MAX)?;
        let hours: Option<BTreeSet<u32>> = (0..count).map(|_| u32::try_from(next()?).ok()).collect();
        let unsealed = hours.filter(|hours| hours.len() == count)?;
        (version == ABOUT && rest.is_empty()).then_some(About { newest, minutes_from, hours_from, unsealed })
    }
}

pub fn write_leb(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front. `None` if it does not end, or does not fit.
pub fn read_leb(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(LEB_BYTES_MAX) {
        // The tenth byte has room for one bit.
        let bits = u64::from(byte & 0x7f);
        if at + 1 == LEB_BYTES_MAX && bits > 1 {
            return None;
        }
        number |= bits << (7 * at);
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
    }
    None
}

pub fn minutes_of(hour: u32) -> RangeInclusive<u32> {
    let first = hour.saturating_mul(60);
    first..=first.saturating_add(59)
}

/// The candle of an hour, if there is one.
pub fn fold_hour(rows: &[Row]) -> Option<Candle> {
    let buckets = rows.iter().map(|row| Bucket { start: u64::from(row.slot) * 60, candle: row.candle });
    fold(buckets, Grid::HOUR).first().map(|bucket| bucket.candle)
}

/// The candle of a slot; a missing one is created as `fresh`.
pub fn slot(rows: &mut Vec<Row>, slot: u16, fresh: Candle) -> &mut Candle {
    let at = match rows.binary_search_by_key(&slot, |row| row.slot) {
        Ok(at) => at,
        Err(at) => {
            rows.insert(at, Row { slot, candle: fresh });
            at
        }
    };
    &mut rows[at].candle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candle(open: u16, high: u16, low: u16, close: u16, volume: [u64; 2]) -> Candle {
        Candle { open: Mid(open), high: Mid(high), low: Mid(low), close: Mid(close), volume: volume.map(Qty) }
    }

    fn about() -> About {
        let unsealed = BTreeSet::from([0, 497_481, u32::MAX]);
        About { newest: Some(29_848_860), minutes_from: 497_313, hours_from: 479_952, unsealed }
    }

    /// The bytes on disk: they do not change.
    #[test]
    fn values_have_these_bytes() {
        let cases = [
            (write_candle(&candle(8_300, 8_310, 8_290, 8_300, [0, 0])), "016c2076206220 6c20 00 00"),
            (write_candle(&candle(0, 20_000, 0, 1, [127, 128])), "0100 00204e000001007f8001"),
            (write_candle(&candle(1, 1, 1, 1, [u64::MAX, 0])), "010100010001000100ffffffffffffffffff0100"),
            (About::default().write(), "0100000000"),
            (about().write(), "019dea9d0ea1ad1ed0a51d03 00 c9ae1e ffffffff0f"),
            (key(1, 29_848_860).to_vec(), "0000000101c7751c"),
        ];
        for (bytes, expected) in &cases {
            let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(text, expected.replace(' ', ""));
        }
        println!("bytes of the store: {} cases", cases.len());
    }

    #[test]
    fn values_come_back_and_nothing_else_is_read() {
        let candles = [
            candle(0, 0, 0, 0, [0, 0]),
            candle(5, 9, 3, 3, [1, 1 << 56]),
            candle(20_000, 20_000, 0, 20_000, [u64::MAX; 2]),
        ];
        let mut cases = 0;
        for candle in candles {
            let bytes = write_candle(&candle);
            assert_eq!(read_candle(&bytes), Some(candle));
            for length in 0..bytes.len() {
                assert_eq!(read_candle(&bytes[..length]), None, "{length} bytes");
                cases += 1;
            }
            assert_eq!(read_candle(&[&bytes[..], &[0]].concat()), None, "longer");
            assert_eq!(read_candle(&[&[PRICE + 1], &bytes[1..]].concat()), None, "a later version");
            cases += 3;
        }
        // Prices above one, and a price outside of low and high.
        for wrong in [candle(1, 20_001, 1, 1, [0; 2]), candle(4, 9, 5, 6, [0; 2]), candle(6, 9, 5, 10, [0; 2])] {
            assert_eq!(read_candle(&write_candle(&wrong)), None, "{wrong:?}");
            cases += 1;
        }
        let bytes = about().write();
        assert_eq!((About::read(&bytes), About::later_version(&bytes)), (Some(about()), None));
        for length in 0..bytes.len() {
            assert_eq!(About::read(&bytes[..length]), None, "{length} bytes");
            cases += 1;
        }
        let later = [&[ABOUT + 1], &bytes[1..]].concat();
        assert_eq!((About::read(&later), About::later_version(&later)), (None, Some(ABOUT + 1)));
        // A count without its hours, a number that does not fit, one that does not end, the same hour twice.
        let hostile: [&[u8]; 5] = [
            &[ABOUT, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f],
            &[ABOUT, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0],
            &[ABOUT, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
            &[ABOUT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03, 0, 0, 0],
            &[ABOUT, 0, 0, 0, 2, 7, 7],
        ];
        for bytes in hostile {
            assert_eq!(About::read(bytes), None, "{bytes:?}");
        }
        assert_eq!(read_key(&key(7, 9)), Some((7, 9)));
        for length in [0, 3, 4, 7, 9] {
            assert_eq!(read_key(&[1; 9][..length]), None);
        }
        println!("values of the store: {} cases", cases + hostile.len() + 8);
    }
}
