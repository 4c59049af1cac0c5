//! Parts of files (RFC 9110 §14) and their conditions (§13): one range of bytes; several ranges, and texts that are no
//! ranges, are answered with the whole file.

use std::ops::Range;

/// What a request asks for of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Whole,
    /// Not empty, and within the file.
    Part(Range<u64>),
    /// Nothing of the range is in the file.
    Beyond,
}

/// What a value of `Range` asks for of a file with this many bytes.
pub fn asked(value: Option<&str>, bytes: u64) -> Asked {
    let Some((unit, range)) = value.and_then(|value| value.split_once('=')) else { return Asked::Whole };
    let Some((first, last)) = range.trim().split_once('-').filter(|_| unit.trim().eq_ignore_ascii_case("bytes")) else {
        return Asked::Whole;
    };
    match (number(first), number(last)) {
        // The last bytes of the file.
        (None, Some(count)) if first.is_empty() => match count.min(bytes) {
            0 => Asked::Beyond,
            count => Asked::Part(bytes - count..bytes),
        },
        (Some(first), None) if last.is_empty() => part(first, u64::MAX, bytes),
        (Some(first), Some(last)) if first <= last => part(first, last, bytes),
        _ => Asked::Whole,
    }
}

fn part(first: u64, last: u64, bytes: u64) -> Asked {
    if first < bytes { Asked::Part(first..last.saturating_add(1).min(bytes)) } else { Asked::Beyond }
}

/// A number of digits; those that are too large are the largest one.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Whether a value of `If-None-Match` names a tag, which has its quotation marks.
pub fn names(value: Option<&str>, tag: &str) -> bool {
    let is_it = |named: &str| {
        let named = named.trim();
        named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag
    };
    value.is_some_and(|value| value.split(',').any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let part = |range| Asked::Part(range);
        let cases = [
            ("bytes=0-0", part(0..1)),
            ("bytes=0-9", part(0..10)),
            ("bytes=0-99", part(0..100)),
            ("bytes=0-100", part(0..100)),
            ("bytes=0-99999999999999999999999", part(0..100)),
            ("bytes=0-18446744073709551615", part(0..100)),
            ("bytes=99-99", part(99..100)),
            ("bytes=99-", part(99..100)),
            ("bytes=0-", part(0..100)),
            ("bytes=50-", part(50..100)),
            ("bytes=-1", part(99..100)),
            ("bytes=-100", part(0..100)),
            ("bytes=-101", part(0..100)),
            ("bytes=-99999999999999999999999", part(0..100)),
            ("BYTES=1-2", part(1..3)),
            ("bytes= 1-2", part(1..3)),
            ("bytes=-0", Asked::Beyond),
            ("bytes=100-", Asked::Beyond),
            ("bytes=100-100", Asked::Beyond),
            ("bytes=99999999999999999999999-", Asked::Beyond),
            // Several ranges, and no ranges.
            ("bytes=0-1,3-4", Asked::Whole),
            ("bytes=0-1, ", Asked::Whole),
            ("bytes=,0-1", Asked::Whole),
            ("bytes=2-1", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=", Asked::Whole),
            ("bytes", Asked::Whole),
            ("bytes=--1", Asked::Whole),
            ("bytes=1-2-3", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("bytes=0x1-2", Asked::Whole),
            ("bytes=1 -2", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("items=0-1", Asked::Whole),
            ("=0-1", Asked::Whole),
            ("", Asked::Whole),
        ];
        for (value, expected) in &cases {
            assert_eq!(asked(Some(value), 100), *expected, "{value:?}");
        }
        assert_eq!(asked(None, 100), Asked::Whole);
        println!("ranges: {} cases", cases.len() + 1);
    }

    #[test]
    fn tags() {
        let cases = [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("\"b\",W/\"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
            ("\"A\"", false),
            ("w/\"a\"", false),
            ("", false),
        ];
        for (value, expected) in cases {
            assert_eq!(names(Some(value), "\"a\""), expected, "{value:?}");
        }
        assert!(!names(None, "\"a\""));
        println!("tags: {} cases", cases.len() + 1);
    }
}
