//! Decimal texts ↔ integers (gateway/docs/wire.md §1). The only place where numbers of the wire are parsed or written.
//!
//! In: one grammar, `-`? digits (`.` digits)?, for JSON strings and for the text of JSON numbers; never through a
//! binary float. Out: each format is written by hand into a byte buffer, without allocation.
//!
//! Each field decides about digits beyond its scale, so every conversion names its rounding direction.

use engine::amount::{Cash, Price, Qty};

/// Most digits before the point (gateway/docs/wire.md §1).
pub const INTEGER_DIGITS_MAX: usize = 18;
/// Most digits after the point.
pub const FRACTION_DIGITS_MAX: usize = 12;

/// An exact decimal in units of 10⁻¹²; below 10³⁰ in magnitude by its grammar, so it always fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(i128);

/// Why a text is not a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDecimal {
    /// Outside the grammar.
    Malformed,
    /// More than 18 digits before or 12 after the point.
    TooLong,
}

/// Units of [`Decimal`] in 1, and in one unit of each of the engine's types.
const ONE: i128 = 1_000_000_000_000;
const PER_PRICE: i128 = 100_000_000;
const PER_MICRO: i128 = 1_000_000;

impl Decimal {
    pub const ZERO: Decimal = Decimal(0);
    pub const ONE: Decimal = Decimal(ONE);

    /// Reads the whole text.
    pub fn parse(text: &str) -> Result<Decimal, NotDecimal> {
        let bytes = text.as_bytes();
        let (negative, digits) = match bytes {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, bytes),
        };
        let point = digits.iter().position(|b| *b == b'.');
        let (integer, fraction) = match point {
            Some(at) => (&digits[..at], &digits[at + 1..]),
            None => (digits, &[][..]),
        };
        let all_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        if !all_digits(integer) || (point.is_some() && !all_digits(fraction)) {
            return Err(NotDecimal::Malformed);
        }
        if integer.len() > INTEGER_DIGITS_MAX || fraction.len() > FRACTION_DIGITS_MAX {
            return Err(NotDecimal::TooLong);
        }
        let number = |part: &[u8]| part.iter().fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        let missing = (FRACTION_DIGITS_MAX - fraction.len()) as u32;
        let magnitude =
            i128::from(number(integer)) * ONE + i128::from(number(fraction)) * i128::from(10u64.pow(missing));
        Ok(Decimal(if negative { -magnitude } else { magnitude }))
    }

    /// Its value in units of 10⁻¹².
    pub fn picos(self) -> i128 {
        self.0
    }

    pub fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// The digits before the point; toward zero.
    pub fn whole(self) -> i128 {
        self.0 / ONE
    }

    /// That price, if it is on the 10⁻⁴ grid and in 0..=1; `None` otherwise.
    pub fn price_exact(self) -> Option<Price> {
        (self.0 % PER_PRICE == 0).then(|| self.price_down()).flatten()
    }

    /// Rounded down to 10⁻⁴ (tightens a BUY's worst price); `None` outside 0..=1.
    pub fn price_down(self) -> Option<Price> {
        (0..=ONE).contains(&self.0).then_some(Price((self.0 / PER_PRICE) as u16))
    }

    /// Rounded up to 10⁻⁴ (tightens a SELL's worst price); `None` outside 0..=1.
    pub fn price_up(self) -> Option<Price> {
        (0..=ONE).contains(&self.0).then(|| Price((self.0 as u128).div_ceil(PER_PRICE as u128) as u16))
    }

    /// Shares rounded down to the order grid of 4 decimals, and whether anything was cut off. `None` below zero and
    /// beyond the range of [`Qty`].
    pub fn order_qty_down(self) -> Option<(Qty, bool)> {
        let step = PER_MICRO * i128::from(Qty::ORDER_STEP.0);
        let steps = u64::try_from(self.0.max(-1).div_euclid(step)).ok()?;
        let qty = Qty(steps.checked_mul(Qty::ORDER_STEP.0)?);
        Some((qty, self.0 % step != 0))
    }

    /// Those USD, if on the grid of 6 decimals; `None` otherwise, and beyond the range of [`Cash`].
    pub fn cash_exact(self) -> Option<Cash> {
        (self.0 % PER_MICRO == 0).then(|| self.cash_down()).flatten()
    }

    /// USD cut to 6 decimals (toward zero). `None` beyond the range of [`Cash`].
    pub fn cash_down(self) -> Option<Cash> {
        i64::try_from(self.0 / PER_MICRO).ok().map(Cash)
    }
}

impl From<Qty> for Decimal {
    fn from(qty: Qty) -> Decimal {
        Decimal(i128::from(qty.0) * PER_MICRO)
    }
}

impl From<Cash> for Decimal {
    fn from(cash: Cash) -> Decimal {
        Decimal(i128::from(cash.0) * PER_MICRO)
    }
}

impl From<Price> for Decimal {
    fn from(price: Price) -> Decimal {
        Decimal(i128::from(price.0) * PER_PRICE)
    }
}

/// Format `price` of an exact price: at least 2, at most 4 decimals: `0.40`, `0.645`.
pub fn price(out: &mut Vec<u8>, price: Price) {
    fixed::<4>(out, u64::from(price.0), 2);
}

/// An exact price below 1 USD with this many decimals, more if further ones are not zero: `0.420`.
pub fn price_with(out: &mut Vec<u8>, price: Price, decimals: u8) {
    let from = out.len();
    fixed::<4>(out, u64::from(price.0), usize::from(decimals.min(4)));
    let written = out.len() - from - "0.".len();
    out.resize(out.len() + usize::from(decimals).saturating_sub(written), b'0');
}

/// Formats `price` and `money`, which are the same: at least 2, at most 6 decimals: `0.418333`, `-3.20`, `0.00`. Also
/// for averages and midpoints in 10⁻⁶ USD a share.
pub fn money(out: &mut Vec<u8>, cash: Cash) {
    if cash.0 < 0 {
        out.push(b'-');
    }
    fixed::<6>(out, cash.0.unsigned_abs(), 2);
}

/// Format `qty`: at most 4 decimals, the rest cut off: `12`, `7.5`, `23.8095`.
pub fn qty(out: &mut Vec<u8>, qty: Qty) {
    fixed::<4>(out, qty.0 / Qty::ORDER_STEP.0, 0);
}

/// Size of a book level, not cut: at most 6 decimals without trailing zeros (gateway/docs/venue-clients.md §1.1).
pub fn size(out: &mut Vec<u8>, size: Qty) {
    fixed::<6>(out, size.0, 0);
}

/// Format `vol` of a figure in 10⁻⁶: at most 6 decimals without trailing zeros: `48210.75`, `0`.
pub fn vol(out: &mut Vec<u8>, micros: u64) {
    fixed::<6>(out, micros, 0);
}

/// Format `base`: an integer in 10⁻⁶ units: `1000000` is 1.00.
pub fn base(out: &mut Vec<u8>, micros: u64) {
    integer(out, micros);
}

/// Format `pct` of a rate `part ÷ whole` with one decimal and the sign: `58.3%`, half-up. `whole` is not 0.
pub fn win_rate(out: &mut Vec<u8>, part: u64, whole: u64) {
    fixed::<1>(out, ratio_half_up(part, whole, 1_000), 1);
    out.push(b'%');
}

/// Format `pct` of a rate `part ÷ whole` with two decimals and no sign: `12.50`, half-up. `whole` is not 0.
pub fn pct(out: &mut Vec<u8>, part: u64, whole: u64) {
    fixed::<2>(out, ratio_half_up(part, whole, 10_000), 2);
}

/// An amount in 10⁻⁶ with exactly this many decimals, at most 6; a half is rounded away from zero: `0.3200`, `-2.93`.
pub fn exactly<const DECIMALS: u32>(out: &mut Vec<u8>, micros: i64) {
    let step = 10_u64.pow(6 - DECIMALS);
    let steps = micros.unsigned_abs().saturating_add(step / 2) / step;
    // There is one zero.
    if micros < 0 && steps > 0 {
        out.push(b'-');
    }
    let unit = 10_u64.pow(DECIMALS);
    integer(out, steps / unit);
    if DECIMALS > 0 {
        out.push(b'.');
        let mut place = unit / 10;
        while place > 0 {
            out.push(b'0' + (steps / place % 10) as u8);
            place /= 10;
        }
    }
}

/// Shortest text of a tick size, a JSON number on the wire: `0.1`, `0.01`, `0.0025`.
pub fn tick(out: &mut Vec<u8>, tick: engine::amount::TickSize) {
    fixed::<4>(out, u64::from(tick.0), 0);
}

/// A plain integer.
pub fn integer(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        return out.push(b'0' + value as u8);
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    while rest >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&pair(rest % 100));
        rest /= 100;
    }
    if rest > 0 {
        at -= 1;
        digits[at] = b'0' + rest as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// The two digits of a number below 100.
#[inline(always)]
pub(super) fn pair(number: u64) -> [u8; 2] {
    const PAIRS: [[u8; 2]; 100] = {
        let mut pairs = [[b'0'; 2]; 100];
        let mut number = 0;
        while number < 100 {
            pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
            number += 1;
        }
        pairs
    };
    PAIRS[number as usize % 100]
}

/// One of the formats above as a text, off the hot path.
pub fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::with_capacity(16);
    write(&mut out);
    String::from_utf8(out).expect("decimals are ASCII")
}

fn ratio_half_up(part: u64, whole: u64, scale: u64) -> u64 {
    let (part, whole, scale) = (u128::from(part), u128::from(whole), u128::from(scale));
    ((2 * part * scale + whole) / (2 * whole)) as u64
}

/// `value` in units of 10^−SCALE, trailing zeros removed down to `decimals_min`, and no bare point.
fn fixed<const SCALE: usize>(out: &mut Vec<u8>, value: u64, decimals_min: usize) {
    let unit = 10u64.pow(SCALE as u32);
    integer(out, value / unit);
    let mut fraction = value % unit;
    if fraction == 0 {
        // The most frequent case.
        if decimals_min > 0 {
            out.push(b'.');
            out.extend_from_slice(&[b'0'; SCALE][..decimals_min]);
        }
        return;
    }
    let mut digits = [b'0'; SCALE];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (fraction % 10) as u8;
        fraction /= 10;
    }
    let used = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1).max(decimals_min);
    out.push(b'.');
    out.extend_from_slice(&digits[..used]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_decimal::prelude::{Decimal as Oracle, RoundingStrategy};
    use std::str::FromStr;

    #[test]
    fn the_grammar_takes_plain_decimals_only() {
        use NotDecimal::{Malformed, TooLong};
        for (text, expected) in [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("-1", Ok(-ONE)),
            ("00.5", Ok(ONE / 2)),
            ("0.37", Ok(370_000_000_000)),
            ("999999999999999999", Ok(999_999_999_999_999_999 * ONE)),
            ("-999999999999999999.999999999999", Ok(-999_999_999_999_999_999_999_999_999_999)),
            ("0.000000000001", Ok(1)),
            ("0.0000000000001", Err(TooLong)),
            ("0.00000000000000000001", Err(TooLong)),
            ("1000000000000000000", Err(TooLong)),
            ("9223372036854775807", Err(TooLong)),
            ("9223372036854775808", Err(TooLong)),
            ("18446744073709551616", Err(TooLong)),
            ("0000000000000000000", Err(TooLong)),
            ("", Err(Malformed)),
            ("-", Err(Malformed)),
            (".", Err(Malformed)),
            ("-.5", Err(Malformed)),
            (".5", Err(Malformed)),
            ("5.", Err(Malformed)),
            ("1.2.3", Err(Malformed)),
            ("+1", Err(Malformed)),
            ("--1", Err(Malformed)),
            (" 1", Err(Malformed)),
            ("1 ", Err(Malformed)),
            ("1\u{0}", Err(Malformed)),
            ("1e400", Err(Malformed)),
            ("1e-400", Err(Malformed)),
            ("1E5", Err(Malformed)),
            ("NaN", Err(Malformed)),
            ("Infinity", Err(Malformed)),
            ("-inf", Err(Malformed)),
            ("0x10", Err(Malformed)),
            ("1_000", Err(Malformed)),
            ("1,000", Err(Malformed)),
            ("１２", Err(Malformed)),
            ("٣", Err(Malformed)),
            ("−1", Err(Malformed)),
            ("true", Err(Malformed)),
        ] {
            assert_eq!(Decimal::parse(text).map(|decimal| decimal.0), expected, "{text:?}");
        }
    }

    #[test]
    fn fixed_decimals_round_half_away_from_zero() {
        for (micros, four, two, three) in [
            (0, "0.0000", "0.00", "0.000"),
            (320_000, "0.3200", "0.32", "0.320"),
            (435_249, "0.4352", "0.44", "0.435"),
            (435_250, "0.4353", "0.44", "0.435"),
            (49, "0.0000", "0.00", "0.000"),
            (50, "0.0001", "0.00", "0.000"),
            (-49, "0.0000", "0.00", "0.000"),
            (-50, "-0.0001", "0.00", "0.000"),
            (-2_925_000, "-2.9250", "-2.93", "-2.925"),
            (1_000_000_000_000, "1000000.0000", "1000000.00", "1000000.000"),
            (i64::MAX, "9223372036854.7758", "9223372036854.78", "9223372036854.776"),
            (i64::MIN, "-9223372036854.7758", "-9223372036854.78", "-9223372036854.776"),
        ] {
            let texts = [text(|out| exactly::<4>(out, micros)), text(|out| exactly::<2>(out, micros))];
            assert_eq!(texts, [four, two], "{micros}");
            assert_eq!(text(|out| exactly::<3>(out, micros)), three, "{micros}");
        }
        assert_eq!(text(|out| exactly::<6>(out, -1)), "-0.000001");
        assert_eq!(text(|out| exactly::<0>(out, 2_500_000)), "3");
        assert_eq!(Decimal::parse("-0.5").map(Decimal::picos), Ok(-500_000_000_000));
    }

    #[test]
    fn each_field_rounds_in_its_own_direction() {
        let parsed = |text| Decimal::parse(text).expect("a decimal");
        for (text, exact, down, up) in [
            ("0.37", Some(3_700), Some(3_700), Some(3_700)),
            ("0.37001", None, Some(3_700), Some(3_701)),
            ("0.00001", None, Some(0), Some(1)),
            ("0.99999", None, Some(9_999), Some(10_000)),
            ("1", Some(10_000), Some(10_000), Some(10_000)),
            ("0", Some(0), Some(0), Some(0)),
            ("1.000000000001", None, None, None),
            ("-0.01", None, None, None),
            ("999999999999999999", None, None, None),
        ] {
            assert_eq!(parsed(text).price_exact().map(|p| p.0), exact, "{text} exact");
            assert_eq!(parsed(text).price_down().map(|p| p.0), down, "{text} down");
            assert_eq!(parsed(text).price_up().map(|p| p.0), up, "{text} up");
        }
        for (text, expected) in [
            ("20", Some((20_000_000, false))),
            ("20.00009", Some((20_000_000, true))),
            ("0.00009", Some((0, true))),
            ("0.0001", Some((100, false))),
            ("0", Some((0, false))),
            ("-0.00001", None),
            ("-5", None),
            ("18446744073709.5516", Some((18_446_744_073_709_551_600, false))),
            ("18446744073709.5517", None),
            ("999999999999999999", None),
        ] {
            assert_eq!(parsed(text).order_qty_down().map(|(qty, cut)| (qty.0, cut)), expected, "{text}");
        }
        for (text, expected) in [
            ("21.0000019", Some(21_000_001)),
            ("-3.2", Some(-3_200_000)),
            ("-0.0000001", Some(0)),
            ("9223372036854.775807", Some(i64::MAX)),
            ("9223372036854.775808", None),
        ] {
            assert_eq!(parsed(text).cash_down().map(|cash| cash.0), expected, "{text}");
        }
        for (text, expected) in [
            ("12.345678", Some(12_345_678)),
            ("12.345678000000", Some(12_345_678)),
            ("0.0000001", None),
            ("-0.0000001", None),
            ("-1", Some(-1_000_000)),
            ("9223372036854.775808", None),
        ] {
            assert_eq!(parsed(text).cash_exact().map(|cash| cash.0), expected, "{text}");
        }
    }

    #[test]
    fn formats_are_as_documented() {
        for (micros, expected) in [
            (87_160_000, "87.16"),
            (-3_200_000, "-3.20"),
            (0, "0.00"),
            (78_391_000, "78.391"),
            (418_333, "0.418333"),
            (-1, "-0.000001"),
            (i64::MIN, "-9223372036854.775808"),
            (i64::MAX, "9223372036854.775807"),
        ] {
            assert_eq!(text(|out| money(out, Cash(micros))), expected);
        }
        for (units, expected) in [(4_000, "0.40"), (6_450, "0.645"), (10_000, "1.00"), (1, "0.0001"), (0, "0.00")] {
            assert_eq!(text(|out| price(out, Price(units))), expected);
        }
        for (micros, cut, whole) in [
            (12_000_000, "12", "12"),
            (7_500_000, "7.5", "7.5"),
            (23_809_523, "23.8095", "23.809523"),
            (99, "0", "0.000099"),
            (0, "0", "0"),
            (u64::MAX, "18446744073709.5516", "18446744073709.551615"),
        ] {
            assert_eq!(text(|out| qty(out, Qty(micros))), cut);
            assert_eq!(text(|out| size(out, Qty(micros))), whole);
            assert_eq!(text(|out| vol(out, micros)), whole);
        }
        for number in [0, 9, 10, 99, 100, 101, 1_000, 1_000_000, 1_234_567, u64::MAX - 1, u64::MAX] {
            assert_eq!(text(|out| base(out, number)), number.to_string());
        }
        for (part, whole, rate, share) in
            [(7, 12, "58.3%", "58.33"), (1, 8, "12.5%", "12.50"), (0, 3, "0.0%", "0.00"), (2, 3, "66.7%", "66.67")]
        {
            assert_eq!(text(|out| win_rate(out, part, whole)), rate);
            assert_eq!(text(|out| pct(out, part, whole)), share);
        }
        for (units, expected) in [(1_000, "0.1"), (100, "0.01"), (10, "0.001"), (1, "0.0001"), (25, "0.0025")] {
            assert_eq!(text(|out| tick(out, engine::amount::TickSize(units))), expected);
        }
    }

    #[test]
    fn written_values_read_back_unchanged() {
        let mut random = crate::testing::Random(7);
        for _ in 0..20_000 {
            let bits = random.next();
            let micros = bits >> (bits % 60);
            let read = |text: String| Decimal::parse(&text).expect("a written decimal").0;
            assert_eq!(read(text(|out| money(out, Cash(micros as i64)))), i128::from(micros as i64) * PER_MICRO);
            assert_eq!(read(text(|out| size(out, Qty(micros)))), i128::from(micros) * PER_MICRO);
            let units = (micros % 10_001) as u16;
            assert_eq!(
                Decimal::parse(&text(|out| price(out, Price(units)))).unwrap().price_exact(),
                Some(Price(units))
            );
        }
    }

    #[test]
    fn conversions_agree_with_a_decimal_library() {
        let mut random = crate::testing::Random(11);
        for _ in 0..20_000 {
            let (integer, fraction) = (random.next() % 1_000_000, random.next() % 1_000_000_000_000);
            let width = (random.next() % 12 + 1) as usize;
            let sent = format!("{integer}.{}", &format!("{fraction:012}")[..width]);
            let oracle = Oracle::from_str(&sent).unwrap();
            let ours = Decimal::parse(&sent).unwrap();
            let scaled = |decimals, strategy| {
                let mut rounded = oracle.round_dp_with_strategy(decimals, strategy);
                rounded.rescale(decimals);
                rounded.mantissa()
            };
            let (qty, cut) = ours.order_qty_down().unwrap();
            let down = scaled(4, RoundingStrategy::ToZero);
            assert_eq!(i128::from(qty.0), down * 100, "{sent}");
            assert_eq!(cut, oracle != Oracle::from_i128_with_scale(down, 4), "{sent}");
            assert_eq!(i128::from(ours.cash_down().unwrap().0), scaled(6, RoundingStrategy::ToZero), "{sent}");
            if oracle <= Oracle::ONE {
                assert_eq!(i128::from(ours.price_down().unwrap().0), scaled(4, RoundingStrategy::ToZero), "{sent}");
                assert_eq!(i128::from(ours.price_up().unwrap().0), scaled(4, RoundingStrategy::AwayFromZero), "{sent}");
            }
        }
    }
}
