//! The levels of one side as files have them: `[["price","size"],…]`, and decimals as texts.

use crate::row::{LEVELS_BYTES_MAX, SIZE_MAX, is_price};
use engine::amount::{Price, Qty};

/// Decimals of a price and of a size.
const PRICE_SCALE: u32 = 4;
const SIZE_SCALE: u32 = 6;

/// A number in a text.
enum Number {
    Exact(u64),
    /// It has digits below the scale, which are never rounded.
    Finer,
}

/// Reads levels into `levels`, which is cleared first. Numbers may be texts or JSON numbers without exponent. Returns
/// how many levels were left out because their price or size is finer than the scale; `None`: not such a list, a
/// price outside of 0 to 1, a negative size, or longer than the bound.
pub(crate) fn read(text: &[u8], levels: &mut Vec<(Price, Qty)>) -> Option<u32> {
    levels.clear();
    if text.len() > LEVELS_BYTES_MAX {
        return None;
    }
    let mut reader = Reader { bytes: text, at: 0 };
    let mut dropped = 0;
    reader.expect(b'[')?;
    if !reader.accept(b']') {
        loop {
            reader.expect(b'[')?;
            let price = reader.number(PRICE_SCALE)?;
            reader.expect(b',')?;
            let size = reader.number(SIZE_SCALE)?;
            reader.expect(b']')?;
            match (price, size) {
                (Number::Exact(price), Number::Exact(size)) => {
                    let price = u16::try_from(price).ok().map(Price).filter(|price| is_price(*price))?;
                    levels.push((price, Some(Qty(size)).filter(|size| *size <= SIZE_MAX)?));
                }
                _ => dropped += 1,
            }
            if reader.accept(b']') {
                break;
            }
            reader.expect(b',')?;
        }
    }
    reader.space();
    (reader.at == text.len()).then_some(dropped)
}

/// Appends levels, with the fewest digits.
pub(crate) fn write(levels: &[(Price, Qty)], out: &mut Vec<u8>) {
    out.push(b'[');
    for (number, (price, size)) in levels.iter().enumerate() {
        out.extend_from_slice(if number == 0 { b"[\"" } else { b",[\"" });
        decimal(out, u64::from(price.0), PRICE_SCALE);
        out.extend_from_slice(b"\",\"");
        decimal(out, size.0, SIZE_SCALE);
        out.extend_from_slice(b"\"]");
    }
    out.push(b']');
}

/// Most bytes that [`write`] appends for a level.
pub(crate) const LEVEL_BYTES_MAX: usize = 36;

fn decimal(out: &mut Vec<u8>, value: u64, scale: u32) {
    let one = 10u64.pow(scale);
    let (whole, mut part) = (value / one, value % one);
    let mut digits = [0u8; 20];
    let (mut at, mut left) = (digits.len(), whole);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    if part > 0 {
        out.push(b'.');
        let mut place = one / 10;
        while part > 0 {
            out.push(b'0' + (part / place) as u8);
            part %= place;
            place /= 10;
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        if self.bytes.get(self.at) != Some(&byte) {
            self.space();
        }
        let is_there = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.accept(byte).then_some(())
    }

    /// A number in units of 10^-`scale`.
    fn number(&mut self, scale: u32) -> Option<Number> {
        let is_quoted = self.accept(b'"');
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.digit() {
            value = value.checked_mul(10)?.checked_add(digit)?;
        }
        let whole_digits = self.at - start;
        let (mut left, mut is_finer, mut part_digits) = (scale, false, 0);
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            while let Some(digit) = self.digit() {
                part_digits += 1;
                if left > 0 {
                    left -= 1;
                    value = value.checked_mul(10)?.checked_add(digit)?;
                } else {
                    is_finer |= digit != 0;
                }
            }
            if part_digits == 0 {
                return None;
            }
        }
        if whole_digits + part_digits == 0 {
            return None;
        }
        value = value.checked_mul(10u64.pow(left))?;
        if is_quoted {
            (self.bytes.get(self.at) == Some(&b'"')).then_some(())?;
            self.at += 1;
        }
        Some(if is_finer { Number::Finer } else { Number::Exact(value) })
    }

    fn digit(&mut self) -> Option<u64> {
        let byte = *self.bytes.get(self.at)?;
        byte.is_ascii_digit().then(|| {
            self.at += 1;
            u64::from(byte - b'0')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(text: &str) -> Option<(Vec<(u16, u64)>, u32)> {
        let mut levels = Vec::new();
        let dropped = read(text.as_bytes(), &mut levels)?;
        Some((levels.into_iter().map(|(price, size)| (price.0, size.0)).collect(), dropped))
    }

    #[test]
    fn levels_of_other_writers() {
        let longest = format!("[[\"0.5\",\"1\"]{}]", " ".repeat(LEVELS_BYTES_MAX));
        let cases = [
            ("[]", Some((vec![], 0))),
            (" [ ] ", Some((vec![], 0))),
            (r#"[["0.5","100"],[".48","0.000001"]]"#, Some((vec![(5_000, 100_000_000), (4_800, 1)], 0))),
            (r#"[[0.5, 100.50], ["0.9999", 0]]"#, Some((vec![(5_000, 100_500_000), (9_999, 0)], 0))),
            (r#"[["0.50000","1.0000000"]]"#, Some((vec![(5_000, 1_000_000)], 0))),
            (r#"[["0.12345","1"],["0.1","1.0000001"],["0.2","3"]]"#, Some((vec![(2_000, 3_000_000)], 2))),
            (r#"[["0.5","999999999999.999999"]]"#, Some((vec![(5_000, SIZE_MAX.0)], 0))),
            (r#"[["0.5","1000000000000"]]"#, None),
            (r#"[["0","1"]]"#, None),
            (r#"[["1","1"]]"#, None),
            (r#"[["1.2","1"]]"#, None),
            (r#"[["7.0","1"]]"#, None),
            (r#"[["0.5","-1"]]"#, None),
            (r#"[["-0.5","1"]]"#, None),
            (r#"[["0.5","1e3"]]"#, None),
            (r#"[["0.5"]]"#, None),
            (r#"[["0.5","1","2"]]"#, None),
            (r#"[["0.5","1"],]"#, None),
            (r#"[["0.5","1"]]x"#, None),
            (r#"[["0.5","1]]"#, None),
            (r#"[["0.","1"]]"#, None),
            (r#"[["","1"]]"#, None),
            (r#"[["0.5","99999999999999999999999999"]]"#, None),
            ("{}", None),
            ("", None),
            ("[[", None),
            (longest.as_str(), None),
        ];
        for (text, expected) in &cases {
            assert_eq!(levels(text), *expected, "{}", &text[..text.len().min(80)]);
        }
        println!("texts of levels: {} cases", cases.len());
    }

    #[test]
    fn written_levels_are_read_back() {
        let all: Vec<(Price, Qty)> = (1..10_000)
            .map(|price| (Price(price), Qty(u64::from(price).pow(4) % (SIZE_MAX.0 + 1))))
            .chain([(Price(1), SIZE_MAX), (Price(9_999), Qty(0))])
            .collect();
        let (mut text, mut back) = (Vec::new(), Vec::new());
        write(&all, &mut text);
        assert_eq!(read(&text, &mut back), Some(0));
        assert_eq!(back, all);
        text.clear();
        write(&[(Price(9_999), SIZE_MAX)], &mut text);
        assert!(text.len() <= LEVEL_BYTES_MAX + 2, "{}", text.len());
        text.clear();
        write(&[(Price(5_000), Qty(1_500_000)), (Price(1), Qty(0))], &mut text);
        assert_eq!(text, br#"[["0.5","1.5"],["0.0001","0"]]"#);
        println!("levels: {} cases", all.len());
    }
}
