//! Lenient parsing of venue messages: a field may be a string or a number, JSON inside a string, or missing.
//!
//! [`Loose`] keeps the raw JSON of a field, borrowed from the line. A wrong type costs only that field, nothing is
//! copied, and numbers are parsed from their digits: no float is involved in a price.

use engine::amount::{Price, Qty, TickSize};
use engine::time::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Largest size of a level or trade, in 10⁻⁶ shares: 10¹² shares. A larger one is a broken message.
pub const QTY_MAX: u64 = 1_000_000_000_000_000_000;

/// One JSON value as it was written; empty if the field was missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loose<'a>(&'a str);

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(|raw| Loose(raw.get()))
    }
}

impl<'a> Loose<'a> {
    /// A value with this JSON text.
    pub const fn of(raw: &'a str) -> Self {
        Loose(raw)
    }

    /// The JSON text; empty if the field was missing.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// Missing or `null`.
    pub fn is_absent(self) -> bool {
        matches!(self.0, "" | "null")
    }

    /// The text of a string, or the digits of a number. `None` for anything else.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let raw = self.0;
        match raw.as_bytes().first()? {
            b'"' if !raw.contains('\\') => Some(Cow::Borrowed(&raw[1..raw.len() - 1])),
            b'"' => serde_json::from_str(raw).ok().map(Cow::Owned),
            b'-' | b'0'..=b'9' => Some(Cow::Borrowed(raw)),
            _ => None,
        }
    }

    /// Like [`Loose::text`], but `None` for a blank text.
    pub fn filled(self) -> Option<Cow<'a, str>> {
        self.text().filter(|text| !text.trim().is_empty())
    }

    /// Like [`Loose::filled`], owned.
    pub fn owned(self) -> Option<String> {
        self.filled().map(Cow::into_owned)
    }

    /// `true` or `false`, also as strings.
    pub fn flag(self) -> Option<bool> {
        match self.0 {
            "true" | "\"true\"" => Some(true),
            "false" | "\"false\"" => Some(false),
            _ => None,
        }
    }

    /// The elements of an array, or of an array inside a string.
    pub fn with_elements<R>(self, read: impl FnOnce(&[Loose<'_>]) -> R) -> Option<R> {
        if self.0.starts_with('[') {
            let elements: Vec<Loose<'_>> = serde_json::from_str(self.0).ok()?;
            return Some(read(&elements));
        }
        let inside = self.text()?;
        let elements: Vec<Loose<'_>> = serde_json::from_str(&inside).ok()?;
        Some(read(&elements))
    }

    /// This field, or `other`, an older name of it, if this one is absent.
    pub fn or(self, other: Loose<'a>) -> Loose<'a> {
        if self.is_absent() { other } else { self }
    }

    /// The elements of an array; `None` for anything else.
    pub fn elements(self) -> Option<Vec<Loose<'a>>> {
        serde_json::from_str(self.0).ok()
    }

    /// The value as an object of type `T`.
    pub fn object<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.0).ok()
    }

    /// The texts of an array, or of an array inside a string.
    pub fn texts(self) -> Option<Vec<String>> {
        self.with_elements(|elements| elements.iter().filter_map(|element| element.owned()).collect())
    }

    /// A price in dollars, from 0.0001 to 0.9999.
    pub fn dollars(self) -> Result<Price, Fault> {
        self.price(4)
    }

    /// A price in cents, as in older messages.
    pub fn cents(self) -> Result<Price, Fault> {
        self.price(2)
    }

    fn price(self, places: u32) -> Result<Price, Fault> {
        price(&self.text().ok_or(Fault::Missing)?, places)
    }

    /// A size in shares.
    pub fn qty(self) -> Result<Qty, Fault> {
        qty(&self.text().ok_or(Fault::Missing)?)
    }

    /// A signed change of a size, in 10⁻⁶ shares.
    pub fn change(self) -> Result<i64, Fault> {
        change(&self.text().ok_or(Fault::Missing)?)
    }

    /// A tick size: a divisor of one dollar, 0.0001 to 0.1.
    pub fn tick(self) -> Result<TickSize, Fault> {
        tick(&self.text().ok_or(Fault::Missing)?)
    }

    /// An informational figure in 10⁻⁶, truncated after the sixth decimal.
    pub fn figure(self) -> Option<u64> {
        decimal(&self.text()?, 6).ok().map(|(units, _)| units)
    }

    /// A time in ISO 8601 (with `T` or a blank, zone `Z` or `+00`), a date, or Unix seconds or milliseconds.
    pub fn instant(self) -> Option<Timestamp> {
        instant(&self.text()?)
    }

    /// Unix milliseconds.
    pub fn millis(self) -> Option<Timestamp> {
        self.text()?.parse().ok().map(Timestamp::from_millis)
    }
}

/// Why a number was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Missing,
    Malformed,
    /// More decimals than the scale holds.
    TooFine,
    OutOfRange,
}

/// A price in dollars: see [`Loose::dollars`].
#[inline]
pub fn dollars(text: &str) -> Result<Price, Fault> {
    price(text, 4)
}

#[inline]
fn price(text: &str, places: u32) -> Result<Price, Fault> {
    match u16::try_from(scaled(text, places)?) {
        Ok(units) if (Price::LOWEST.0..=Price::HIGHEST.0).contains(&units) => Ok(Price(units)),
        _ => Err(Fault::OutOfRange),
    }
}

/// A size in shares.
#[inline]
pub fn qty(text: &str) -> Result<Qty, Fault> {
    scaled(text, 6).map(Qty)
}

/// A signed change of a size: see [`Loose::change`].
#[inline]
pub fn change(text: &str) -> Result<i64, Fault> {
    match text.strip_prefix('-') {
        Some(size) => scaled(size, 6).map(|units| -(units as i64)),
        None => scaled(text, 6).map(|units| units as i64),
    }
}

/// A tick size: see [`Loose::tick`].
pub fn tick(text: &str) -> Result<TickSize, Fault> {
    match scaled(text, 4)? {
        units @ 1..=1_000 if 10_000_u64.is_multiple_of(units) => Ok(TickSize(units as u16)),
        _ => Err(Fault::OutOfRange),
    }
}

/// Decimal text to integer units of 10^-places, exactly; at most [`QTY_MAX`].
pub fn scaled(text: &str, places: u32) -> Result<u64, Fault> {
    if let Some(units) = short(text, places) {
        return Ok(units);
    }
    match decimal(text, places)? {
        (units, true) => Ok(units),
        (_, false) => Err(Fault::TooFine),
    }
}

/// [`scaled`] for the usual form: a few digits with at most one point. `None` for other forms.
#[inline]
fn short(text: &str, places: u32) -> Option<u64> {
    /// Longest text that is read here. A number of this length cannot overflow.
    const BYTES_MAX: usize = 18;
    const TENS: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
    let bytes = text.as_bytes();
    if bytes.len() > BYTES_MAX {
        return None;
    }
    let (mut units, mut point) = (0_u64, None);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => units = units * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |at| bytes.len() - 1 - at);
    if bytes.len() == usize::from(point.is_some()) {
        return None;
    }
    let tens = TENS.get((places as usize).checked_sub(decimals)?)?;
    units.checked_mul(*tens).filter(|units| *units <= QTY_MAX)
}

/// Units of 10^-places, and whether the value is exact. Accepts exponents, as in JSON numbers.
fn decimal(text: &str, places: u32) -> Result<(u64, bool), Fault> {
    const DIGITS_MAX: usize = 64;
    let text = text.trim();
    if text.len() > DIGITS_MAX {
        return Err(Fault::OutOfRange);
    }
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        None => (text, 0),
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().map_err(|_| Fault::Malformed)?),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(Fault::Malformed);
    }
    // Number of digits that still count; the exponent moves the point.
    let mut left = i64::from(places) + i64::from(exponent) + whole.len() as i64;
    let (mut units, mut exact) = (0_u64, true);
    for digit in whole.bytes().chain(fraction.bytes()) {
        if !digit.is_ascii_digit() {
            return Err(Fault::Malformed);
        }
        if left > 0 {
            units =
                units.checked_mul(10).and_then(|u| u.checked_add(u64::from(digit - b'0'))).ok_or(Fault::OutOfRange)?;
        } else {
            exact &= digit == b'0';
        }
        left -= 1;
    }
    for _ in 0..left.min(DIGITS_MAX as i64) {
        units = units.checked_mul(10).ok_or(Fault::OutOfRange)?;
    }
    if units > QTY_MAX || (left > DIGITS_MAX as i64 && units > 0) {
        return Err(Fault::OutOfRange);
    }
    Ok((units, exact))
}

/// A time in one of the forms of [`Loose::instant`]; `None` for other forms and for years before 1970.
pub fn instant(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Seconds stay below this until the year 5138; milliseconds have been above it since 1973.
        const MILLIS_FROM: u64 = 100_000_000_000;
        let number: u64 = text.parse().ok()?;
        return Some(if number < MILLIS_FROM { Timestamp::from_secs(number) } else { Timestamp::from_millis(number) });
    }
    let micros = match text.parse::<jiff::Timestamp>() {
        Ok(moment) => moment.as_microsecond(),
        Err(_) => {
            let date: jiff::civil::Date = text.parse().ok()?;
            date.to_zoned_datetime(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_microsecond()
        }
    };
    u64::try_from(micros).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly_or_not_at_all() {
        for (text, places, expected) in [
            ("0.4100", 4, Ok(4_100)),
            ("0.41", 4, Ok(4_100)),
            (".5", 4, Ok(5_000)),
            ("0.41000000000000", 4, Ok(4_100)),
            ("0.41005", 4, Err(Fault::TooFine)),
            ("183.00", 6, Ok(183_000_000)),
            ("1e-4", 4, Ok(1)),
            ("1.5E2", 6, Ok(150_000_000)),
            ("12e-1", 0, Err(Fault::TooFine)),
            ("0e99", 6, Ok(0)),
            ("1e99", 6, Err(Fault::OutOfRange)),
            ("99999999999999999999", 6, Err(Fault::OutOfRange)),
            ("1000000000001", 6, Err(Fault::OutOfRange)),
            ("", 4, Err(Fault::Malformed)),
            (".", 4, Err(Fault::Malformed)),
            ("-1", 4, Err(Fault::Malformed)),
            ("1.2.3", 4, Err(Fault::Malformed)),
            ("NaN", 4, Err(Fault::Malformed)),
            ("1e", 4, Err(Fault::Malformed)),
            ("1e999999999999", 4, Err(Fault::Malformed)),
            ("٣", 4, Err(Fault::Malformed)),
        ] {
            assert_eq!(scaled(text, places), expected, "{text} at {places}");
        }
        assert_eq!(decimal("12232699.615479222", 6), Ok((12_232_699_615_479, false)));
    }

    #[test]
    fn short_decimals_are_read_like_all_others() {
        const ROUNDS: u64 = 100_000;
        const PIECES: &[u8] = b"0123456789900.. e-";
        let mut random = wire::testing::Random(5);
        let mut taken = 0;
        for round in 0..ROUNDS {
            let length = random.next() % 22;
            let kinds = if round % 4 == 0 { PIECES.len() } else { 14 } as u64;
            let text: String = (0..length).map(|_| char::from(PIECES[(random.next() % kinds) as usize])).collect();
            let places = (random.next() % 8) as u32;
            if let Some(units) = short(&text, places) {
                taken += 1;
                assert_eq!(decimal(&text, places), Ok((units, true)), "{text} at {places}");
            }
        }
        assert!(taken > ROUNDS / 10, "{taken} of {ROUNDS} are short");
        println!("short decimals: {ROUNDS} cases, {taken} of them short");
    }

    #[test]
    fn times_are_read_in_every_form_of_the_venues() {
        for (text, micros) in [
            ("2026-08-11T00:00:05.459018Z", Some(1_786_406_405_459_018)),
            ("2026-07-24 00:00:16+00", Some(1_784_851_216_000_000)),
            ("2026-07-24T00:00:16+02:00", Some(1_784_844_016_000_000)),
            ("2026-07-24", Some(1_784_851_200_000_000)),
            ("1784851200", Some(1_784_851_200_000_000)),
            ("1784851200123", Some(1_784_851_200_123_000)),
            ("0001-01-01T00:00:00Z", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(instant(text).map(|moment| moment.0), micros, "{text}");
        }
    }

    #[test]
    fn a_field_of_any_type_is_read() {
        #[derive(Deserialize)]
        struct Row<'a> {
            #[serde(borrow, default)]
            a: Loose<'a>,
            #[serde(borrow, default)]
            b: Loose<'a>,
        }
        let row: Row<'_> = serde_json::from_str(r#"{"a":"[\"Yes\", \"No\"]"}"#).unwrap();
        assert_eq!(row.a.texts().unwrap(), ["Yes", "No"]);
        assert!(row.b.is_absent() && row.b.text().is_none());
        let row: Row<'_> = serde_json::from_str(r#"{"a":["Yes",1],"b":0.41}"#).unwrap();
        assert_eq!(row.a.texts().unwrap(), ["Yes", "1"]);
        assert_eq!(row.b.dollars(), Ok(Price(4_100)));
        let row: Row<'_> = serde_json::from_str(r#"{"a":{"x":[1]},"b":"-4.00"}"#).unwrap();
        assert_eq!((row.a.text(), row.a.texts(), row.a.dollars()), (None, None, Err(Fault::Missing)));
        assert_eq!(row.b.change(), Ok(-4_000_000));
    }

    #[test]
    fn a_level_price_is_strictly_between_zero_and_one() {
        for (raw, expected) in [
            ("\"0.0001\"", Ok(Price(1))),
            ("\"0.9999\"", Ok(Price(9_999))),
            ("0", Err(Fault::OutOfRange)),
            ("\"1\"", Err(Fault::OutOfRange)),
            ("\"7\"", Err(Fault::OutOfRange)),
            ("null", Err(Fault::Missing)),
        ] {
            assert_eq!(Loose(raw).dollars(), expected, "{raw}");
        }
        assert_eq!(Loose("41").cents(), Ok(Price(4_100)));
        assert_eq!(Loose("0.0025").tick(), Ok(TickSize(25)));
        assert_eq!(Loose("0.03").tick(), Err(Fault::OutOfRange));
    }
}
