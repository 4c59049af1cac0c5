//! Moments ↔ texts (gateway/docs/wire.md §2): RFC 3339 out; RFC 3339, a date, or Unix seconds in. UTC calendar
//! arithmetic only.

use super::decimal::pair;
use engine::time::{DAY, SECOND, Timestamp};
use std::cell::Cell;

/// Writes the native form: `2026-10-02T09:14:05.120000Z`, or without the fraction when it is zero.
pub fn ts(out: &mut Vec<u8>, at: Timestamp) {
    thread_local! {
        /// The second that was written last: most times in responses are in the present second.
        static LAST: Cell<(u64, [u8; 19])> = const { Cell::new((u64::MAX, [0; 19])) };
    }
    let (secs, micros) = (at.0 / SECOND, at.0 % SECOND);
    let (mut last, mut second) = LAST.get();
    if last != secs {
        (last, second) = (secs, second_text(secs));
        LAST.set((last, second));
    }
    let mut text = [0; 27];
    text[..19].copy_from_slice(&second);
    if micros > 0 {
        text[19..].copy_from_slice(b".000000Z");
        text[20..22].copy_from_slice(&pair(micros / 10_000));
        text[22..24].copy_from_slice(&pair(micros / 100 % 100));
        text[24..26].copy_from_slice(&pair(micros % 100));
        out.extend_from_slice(&text);
    } else {
        text[19] = b'Z';
        out.extend_from_slice(&text[..20]);
    }
}

/// The native form without fraction and zone.
fn second_text(secs: u64) -> [u8; 19] {
    let (year, month, day) = civil(secs * SECOND / DAY);
    let secs = secs * SECOND % DAY / SECOND;
    let mut text = *b"0000-00-00T00:00:00";
    digits(&mut text[..4], year);
    digits(&mut text[5..7], month);
    digits(&mut text[8..10], day);
    digits(&mut text[11..13], secs / 3_600);
    digits(&mut text[14..16], secs / 60 % 60);
    digits(&mut text[17..19], secs % 60);
    text
}

/// The form of the price streams, always with milliseconds: `2026-10-02T09:14:05.120Z` (gateway/docs/streams.md §2.2).
pub fn ts_millis(out: &mut Vec<u8>, at: Timestamp) {
    ts(out, Timestamp(at.0 - at.0 % SECOND));
    out.pop();
    let mut millis = *b".000Z";
    digits(&mut millis[1..4], at.0 % SECOND / 1_000);
    out.extend_from_slice(&millis);
}

/// The native form as a text.
pub fn ts_text(at: Timestamp) -> String {
    super::decimal::text(|out| ts(out, at))
}

/// An HTTP date (`Sun, 06 Nov 1994 08:49:37 GMT`), for the `Sunset` header.
pub fn http_date(at: Timestamp) -> String {
    let (year, month, day) = civil(at.0 / DAY);
    let secs = at.0 % DAY / SECOND;
    // 1970-01-01 was a Thursday.
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(at.0 / DAY % 7) as usize];
    let month =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][(month - 1) as usize];
    format!("{weekday}, {day:02} {month} {year:04} {:02}:{:02}:{:02} GMT", secs / 3_600, secs / 60 % 60, secs % 60)
}

/// A time as native routes accept it: RFC 3339 with offset (missing = UTC), `YYYY-MM-DD` (00:00 UTC), or Unix seconds.
/// Times before 1970 become 1970; digits finer than a microsecond are cut off. `None` for other texts.
pub fn read(text: &str) -> Option<Timestamp> {
    if !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(Timestamp::from_secs);
    }
    rfc3339(text)
}

/// An upper bound as native routes accept it: as [`read`], but a bare date includes its whole day.
pub fn read_end(text: &str) -> Option<Timestamp> {
    let at = read(text)?;
    Some(if text.len() == 10 && text.contains('-') { at.plus(DAY - 1) } else { at })
}

/// `YYYY-MM-DD`, or `YYYY-MM-DD` `T` `HH:MM:SS` with an optional fraction and an optional offset.
fn rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let (date, rest) = bytes.split_at_checked(10)?;
    if date[4] != b'-' || date[7] != b'-' {
        return None;
    }
    let days = days(number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?)?;
    if rest.is_empty() {
        return Some(micros(days * 86_400, 0));
    }
    let (time, rest) = rest.split_at_checked(9)?;
    if !matches!(time[0], b'T' | b't' | b' ') || time[3] != b':' || time[6] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&time[1..3])?, number(&time[4..6])?, number(&time[7..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, offset) = match rest {
        [b'.', rest @ ..] => {
            let width = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            (Some(&rest[..width]).filter(|digits| (1..=9).contains(&digits.len()))?, &rest[width..])
        }
        _ => (&b""[..], rest),
    };
    let mut fraction_micros = 0;
    for place in 0..6 {
        fraction_micros = fraction_micros * 10 + fraction.get(place).map_or(0, |digit| u64::from(digit - b'0'));
    }
    let offset_secs = match offset {
        b"" | b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), hours @ .., b':', m1, m2] if hours.len() == 2 => {
            let (hours, minutes) = (number(hours)?, number(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let secs = hours * 3_600 + minutes * 60;
            if *sign == b'-' { -secs } else { secs }
        }
        _ => return None,
    };
    Some(micros(days * 86_400 + hour * 3_600 + minute * 60 + second - offset_secs, fraction_micros))
}

fn micros(secs: i64, fraction: u64) -> Timestamp {
    u64::try_from(secs).map_or(Timestamp(0), |secs| Timestamp(secs * SECOND + fraction))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().all(u8::is_ascii_digit).then(|| digits.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0')))
}

/// The last digits of a value, as many as fit.
#[inline(always)]
fn digits(place: &mut [u8], value: u64) {
    let mut rest = value;
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// Year, month and day of a day since 1970 (Hinnant's algorithm: years that begin in March).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Days since 1970 of a date in the years 0 to 9999; `None` if there is no such date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_the_native_form() {
        for (micros, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_790_932_445_000_000, "2026-10-02T09:14:05Z"),
            (1_790_932_445_120_000, "2026-10-02T09:14:05.120000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999Z"),
            (253_402_300_799_000_000, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(ts_text(Timestamp(micros)), expected);
        }
        for (micros, expected) in
            [(1_790_932_445_000_000, "2026-10-02T09:14:05.000Z"), (1_790_932_445_012_999, "2026-10-02T09:14:05.012Z")]
        {
            assert_eq!(crate::decimal::text(|out| ts_millis(out, Timestamp(micros))), expected);
        }
        assert_eq!(http_date(Timestamp::from_secs(784_111_777)), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn times_are_read_in_three_forms() {
        for (text, expected) in [
            ("1791000000", Some(1_791_000_000_000_000)),
            ("0", Some(0)),
            ("2026-10-02", Some(1_790_899_200_000_000)),
            ("2026-10-02T09:14:05Z", Some(1_790_932_445_000_000)),
            ("2026-10-02T09:14:05", Some(1_790_932_445_000_000)),
            ("2026-10-02 09:14:05", Some(1_790_932_445_000_000)),
            ("2026-10-02T11:14:05.12+02:00", Some(1_790_932_445_120_000)),
            ("2026-10-02T09:14:05.123456789Z", Some(1_790_932_445_123_456)),
            ("1969-12-31T23:59:59Z", Some(0)),
            ("2024-02-29", Some(1_709_164_800_000_000)),
            ("2023-02-29", None),
            ("2026-13-01", None),
            ("2026-10-02T24:00:00Z", None),
            ("2026-10-02T09:14:60Z", None),
            ("2026-10-02T09:14Z", None),
            ("2026-10-02T09:14:05.Z", None),
            ("2026-10-02T09:14:05+0200", None),
            ("2026-10-02T09:14:05+02:00x", None),
            ("2026-10-02T09:14:05 Z", None),
            ("2026-1-2", None),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("9999999999999", None),
            ("２０２６-10-02", None),
            ("now", None),
        ] {
            let expected = expected.map(Timestamp);
            assert_eq!(read(text), expected, "{text:?}");
        }
        assert_eq!(read_end("2026-10-02"), Some(Timestamp(1_790_985_599_999_999)));
        assert_eq!(read_end("1791000000"), Some(Timestamp::from_secs(1_791_000_000)));
    }

    #[test]
    fn the_calendar_agrees_with_a_date_library() {
        let mut random = crate::testing::Random(5);
        for _ in 0..20_000 {
            let micros = random.next() % 253_402_300_800_000_000;
            let theirs = jiff::Timestamp::from_microsecond(micros as i64).unwrap();
            let ours = ts_text(Timestamp(micros));
            assert_eq!(ours.parse::<jiff::Timestamp>().unwrap(), theirs, "{ours}");
            assert_eq!(read(&ours), Some(Timestamp(micros)), "{ours}");
        }
    }
}
