//! Hours of an archive: their verdicts, and how much of a window they cover (gateway/docs/simulation.md §1, §4).

use crate::time::{DAY, HOUR, Timestamp, civil, days};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Hours that one coverage lists at most.
pub const COVERAGE_HOURS_MAX: u32 = 2_160;
/// The least coverage of an eligible market, in 10⁻⁴ of the hours: 80.00 percent.
pub const COVERAGE_MIN: u64 = 8_000;

/// An hour of UTC, counted from 1970. Its text is `YYYY-MM-DDTHH`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(pub u32);

/// What an archive has of one market in one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Nothing was dropped.
    Valid,
    /// Messages were dropped, or there was an outage of at most ten minutes.
    Degraded,
    /// Not to be used: no sidecar, a wrong digest, a gap of more than ten minutes, or too many losses or differing prices.
    Quarantined,
    /// It is still being written, or the recording begins or ends in it.
    Partial,
    /// No message.
    Missing,
}

/// How far the best prices of an hour can be trusted, the most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    High,
    Medium,
    Low,
    /// The hour is not sealed: later messages may still change it.
    Provisional,
}

/// One hour of one market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourState {
    pub hour: Hour,
    pub verdict: Verdict,
    pub confidence: Confidence,
}

/// How much of a window an archive has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Every hour of the window once, ascending.
    pub hours: Vec<HourState>,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Verdict; 5] =
        [Verdict::Valid, Verdict::Degraded, Verdict::Quarantined, Verdict::Partial, Verdict::Missing];

    /// The word in sidecars and answers.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Degraded => "degraded",
            Verdict::Quarantined => "quarantined",
            Verdict::Partial => "partial",
            Verdict::Missing => "missing",
        }
    }

    /// The verdict of exactly that word.
    pub fn named(name: &str) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// Whether its books may be used. Of a partial hour only the moments that it has.
    pub fn is_usable(self) -> bool {
        matches!(self, Verdict::Valid | Verdict::Degraded | Verdict::Partial)
    }
}

impl Confidence {
    /// All of them, the most trusted first.
    pub const ALL: [Confidence; 4] = [Confidence::High, Confidence::Medium, Confidence::Low, Confidence::Provisional];

    /// The confidence of an hour with this verdict. An hour without usable books has the lowest of a sealed hour.
    pub fn of(verdict: Verdict, is_sealed: bool) -> Confidence {
        match verdict {
            Verdict::Missing | Verdict::Quarantined => Confidence::Low,
            _ if !is_sealed => Confidence::Provisional,
            Verdict::Valid => Confidence::High,
            Verdict::Degraded => Confidence::Medium,
            Verdict::Partial => Confidence::Low,
        }
    }

    /// The word in answers.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::High => "high",
            Confidence::Medium => "medium",
            Confidence::Low => "low",
            Confidence::Provisional => "provisional",
        }
    }
}

impl HourState {
    /// The state of an hour with this verdict.
    pub fn new(hour: Hour, verdict: Verdict, is_sealed: bool) -> HourState {
        HourState { hour, verdict, confidence: Confidence::of(verdict, is_sealed) }
    }
}

impl Coverage {
    /// The coverage of a window: known hours in any order, those outside of it are ignored. An hour without a state is
    /// missing.
    pub fn of(window: Range<Hour>, known: impl IntoIterator<Item = HourState>) -> Coverage {
        let missing = |hour| HourState::new(Hour(hour), Verdict::Missing, true);
        let mut hours: Vec<HourState> = (window.start.0..window.end.0).map(missing).collect();
        for state in known.into_iter().filter(|state| window.contains(&state.hour)) {
            hours[(state.hour.0 - window.start.0) as usize] = state;
        }
        Coverage { hours }
    }

    /// Count of hours with this verdict.
    pub fn count(&self, verdict: Verdict) -> u64 {
        self.hours.iter().filter(|state| state.verdict == verdict).count() as u64
    }

    /// Count of hours with usable books.
    pub fn available(&self) -> u64 {
        self.hours.iter().filter(|state| state.verdict.is_usable()).count() as u64
    }

    /// Count of hours of the window.
    pub fn asked(&self) -> u64 {
        self.hours.len() as u64
    }

    /// The lowest confidence of the usable hours; without one, [`Confidence::Low`].
    pub fn confidence(&self) -> Confidence {
        let usable = self.hours.iter().filter(|state| state.verdict.is_usable());
        usable.map(|state| state.confidence).max().unwrap_or(Confidence::Low)
    }

    /// Hours without usable books.
    pub fn missing_periods(&self) -> impl Iterator<Item = Hour> + '_ {
        self.hours.iter().filter(|state| !state.verdict.is_usable()).map(|state| state.hour)
    }

    /// Whether a market may be back-tested over this window: enough usable hours, and none of them quarantined.
    pub fn is_eligible(&self) -> bool {
        let is_enough = self.available() * 10_000 >= self.asked() * COVERAGE_MIN;
        self.asked() > 0 && is_enough && self.count(Verdict::Quarantined) == 0
    }
}

impl Hour {
    /// The hour of a moment.
    pub fn of(at: Timestamp) -> Hour {
        Hour(at.hour())
    }

    /// The hours that a window of moments touches; its end does not belong to it.
    pub fn touched(window: Range<Timestamp>) -> Range<Hour> {
        Hour::of(window.start)..Hour((window.end.0.div_ceil(HOUR)) as u32)
    }

    /// The first moment.
    pub fn start(self) -> Timestamp {
        Timestamp::of_hour(self.0)
    }

    /// The first moment after it.
    pub fn end(self) -> Timestamp {
        Timestamp((u64::from(self.0) + 1) * HOUR)
    }

    pub fn next(self) -> Hour {
        Hour(self.0.saturating_add(1))
    }
}

const HOURS_PER_DAY: u32 = (DAY / HOUR) as u32;

impl fmt::Display for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0 / HOURS_PER_DAY);
        write!(f, "{year:04}-{month:02}-{day:02}T{:02}", self.0 % HOURS_PER_DAY)
    }
}

/// A text that is not an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnHour;

impl FromStr for Hour {
    type Err = NotAnHour;

    /// Reads `YYYY-MM-DDTHH` exactly, from 1970 on.
    fn from_str(text: &str) -> Result<Hour, NotAnHour> {
        let bytes = text.as_bytes();
        if bytes.len() != 13 || (bytes[4], bytes[7], bytes[10]) != (b'-', b'-', b'T') {
            return Err(NotAnHour);
        }
        let number = |range: Range<usize>| {
            let digits = &bytes[range];
            let value = digits.iter().fold(0, |value, digit| value * 10 + u32::from(digit.wrapping_sub(b'0')));
            digits.iter().all(u8::is_ascii_digit).then_some(value).ok_or(NotAnHour)
        };
        let (year, month, day, hour) = (number(0..4)?, number(5..7)?, number(8..10)?, number(11..13)?);
        if year < 1_970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour >= HOURS_PER_DAY {
            return Err(NotAnHour);
        }
        let days = days(year, month, day);
        // A day that its month does not have is a day of the next one.
        if civil(days) != (year, month, day) {
            return Err(NotAnHour);
        }
        Ok(Hour(days * HOURS_PER_DAY + hour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_have_texts() {
        let cases = [
            ("1970-01-01T00", 0),
            ("1970-01-01T23", 23),
            ("1970-03-01T00", 59 * 24),
            ("2000-02-29T12", 11_016 * 24 + 12),
            ("2026-09-30T17", 497_441),
            ("2100-02-28T23", 47_540 * 24 + 23),
            ("2100-03-01T00", 47_541 * 24),
            ("9999-12-31T23", 70_389_527),
        ];
        for (text, hour) in cases {
            assert_eq!(text.parse(), Ok(Hour(hour)), "{text}");
            assert_eq!(Hour(hour).to_string(), text);
        }
        let wrong = [
            "",
            "2026-09-30",
            "2026-09-30T24",
            "2026-02-29T00",
            "2026-13-01T00",
            "2026-00-01T00",
            "2026-01-00T00",
            "2026-04-31T00",
            "1969-12-31T23",
            "2026-09-30t17",
            "2026-09-30 17",
            "2026-09-30T7 ",
            "2026-09-30T17Z",
            "+026-09-30T17",
            "２026-09-3T17",
            "2026-09-30T1７",
        ];
        for text in wrong {
            assert_eq!(text.parse::<Hour>(), Err(NotAnHour), "{text:?}");
        }
        println!("hours: {} texts", cases.len() + wrong.len());
    }

    #[test]
    fn every_day_of_four_centuries_is_read_back() {
        // Four centuries, after which the calendar repeats, twice.
        let days = 2 * 146_097;
        for day in 0..days {
            let hour = Hour(day * HOURS_PER_DAY + day % HOURS_PER_DAY);
            assert_eq!(hour.to_string().parse(), Ok(hour), "{hour}");
        }
        println!("hours: {days} days");
    }

    #[test]
    fn a_window_touches_its_hours() {
        let at = |minutes: u64| Timestamp(minutes * 60_000_000);
        for (start, end, first, last) in
            [(0, 60, 0, 1), (0, 61, 0, 2), (59, 60, 0, 1), (60, 120, 1, 2), (30, 150, 0, 3), (60, 60, 1, 1)]
        {
            assert_eq!(Hour::touched(at(start)..at(end)), Hour(first)..Hour(last), "{start}..{end}");
        }
        assert_eq!((Hour(1).start(), Hour(1).end(), Hour(1).next()), (at(60), at(120), Hour(2)));
    }

    #[test]
    fn verdicts_have_words_and_confidences() {
        use Confidence::{High, Low, Medium, Provisional};
        let rows = [
            (Verdict::Valid, "valid", true, High, Provisional),
            (Verdict::Degraded, "degraded", true, Medium, Provisional),
            (Verdict::Partial, "partial", true, Low, Provisional),
            (Verdict::Quarantined, "quarantined", false, Low, Low),
            (Verdict::Missing, "missing", false, Low, Low),
        ];
        for (verdict, name, is_usable, sealed, open) in rows {
            assert_eq!((verdict.name(), verdict.is_usable()), (name, is_usable));
            assert_eq!(Verdict::named(name), Some(verdict));
            assert_eq!((Confidence::of(verdict, true), Confidence::of(verdict, false)), (sealed, open), "{name}");
        }
        for name in ["", "Valid", "low"] {
            assert_eq!(Verdict::named(name), None, "{name:?}");
        }
        assert_eq!(Confidence::ALL.map(Confidence::name), ["high", "medium", "low", "provisional"]);
        println!("verdicts: {} rows", rows.len());
    }

    /// One letter an hour: valid, degraded, partial, open, quarantined, missing; a space has no state at all.
    fn coverage(hours: &str) -> Coverage {
        let state = |(at, letter): (usize, char)| {
            let (verdict, is_sealed) = match letter {
                'v' => (Verdict::Valid, true),
                'd' => (Verdict::Degraded, true),
                'p' => (Verdict::Partial, true),
                'o' => (Verdict::Partial, false),
                'q' => (Verdict::Quarantined, true),
                'm' => (Verdict::Missing, true),
                _ => return None,
            };
            Some(HourState::new(Hour(100 + at as u32), verdict, is_sealed))
        };
        let window = Hour(100)..Hour(100 + hours.len() as u32);
        // Those outside do not count.
        let outside = [99, 100 + hours.len() as u32].map(|hour| HourState::new(Hour(hour), Verdict::Valid, true));
        Coverage::of(window, hours.chars().enumerate().filter_map(state).chain(outside))
    }

    #[test]
    fn coverage_counts_hours() {
        use Confidence::{High, Low, Medium, Provisional};
        // hours; available, degraded, missing, quarantined, confidence, eligible
        let rows = [
            ("vd", 2, 1, 0, 0, Medium, true),
            ("v", 1, 0, 0, 0, High, true),
            ("vvvvm", 4, 0, 1, 0, High, true),
            ("vvvv ", 4, 0, 1, 0, High, true),
            ("vvvmm", 3, 0, 2, 0, High, false),
            ("vvvvvvvvvq", 9, 0, 0, 1, High, false),
            ("vvvvo", 5, 0, 0, 0, Provisional, true),
            ("vdp", 3, 1, 0, 0, Low, true),
            ("m", 0, 0, 1, 0, Low, false),
            ("", 0, 0, 0, 0, Low, false),
            // Four fifths are enough, less is too little.
            ("vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvmmmmmmmmmm", 40, 0, 10, 0, High, true),
            ("vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvmmmmmmmmmm", 39, 0, 10, 0, High, false),
        ];
        for (hours, available, degraded, missing, quarantined, confidence, is_eligible) in rows {
            let coverage = coverage(hours);
            let counts = [Verdict::Degraded, Verdict::Missing, Verdict::Quarantined].map(|of| coverage.count(of));
            assert_eq!(coverage.asked(), hours.len() as u64, "{hours:?}");
            assert_eq!((coverage.available(), counts), (available, [degraded, missing, quarantined]), "{hours:?}");
            assert_eq!((coverage.confidence(), coverage.is_eligible()), (confidence, is_eligible), "{hours:?}");
            assert_eq!(coverage.missing_periods().count() as u64, missing + quarantined, "{hours:?}");
        }
        let missing: Vec<String> = coverage("vmq ").missing_periods().map(|hour| hour.to_string()).collect();
        assert_eq!(missing, [Hour(101), Hour(102), Hour(103)].map(|hour| hour.to_string()));
        println!("coverage: {} rows", rows.len());
    }
}
