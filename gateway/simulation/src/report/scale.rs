//! Axes: where values are in a chart, and the round values that are written beside it.

use engine::time::{DAY, HOUR, MINUTE, SECOND, Timestamp};
use std::ops::Range;
use wire::instant;

/// The side of a chart in its own units. It is stretched to the size that the page has for it.
pub(super) const SIDE: i64 = 10_000;

/// Times of an axis.
#[derive(Clone, Debug)]
pub(super) struct Times(pub Range<Timestamp>);

/// Values of an axis, in 10⁻⁶; the lower end is below the upper one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Values {
    pub low: i64,
    pub high: i64,
}

impl Times {
    pub fn place(&self, at: Timestamp) -> i64 {
        let span = u128::from(self.0.end.since(self.0.start).max(1));
        let passed = u128::from(at.max(self.0.start).since(self.0.start)).min(span);
        (passed * SIDE as u128 / span) as i64
    }

    /// Round times, at most seven, with their labels.
    pub fn marks(&self) -> Vec<(Timestamp, String)> {
        const STEPS: [u64; 17] = [
            SECOND,
            10 * SECOND,
            MINUTE,
            5 * MINUTE,
            10 * MINUTE,
            15 * MINUTE,
            30 * MINUTE,
            HOUR,
            2 * HOUR,
            3 * HOUR,
            6 * HOUR,
            12 * HOUR,
            DAY,
            2 * DAY,
            5 * DAY,
            10 * DAY,
            20 * DAY,
        ];
        let span = self.0.end.since(self.0.start);
        let step = STEPS.into_iter().find(|step| span / step < 7).unwrap_or(span.div_ceil(6 * DAY).max(1) * DAY);
        let first = self.0.start.0.div_ceil(step) * step;
        let label = |at: Timestamp| {
            // `2026-09-30T17:22:00Z`
            let text = instant::ts_text(at);
            let (date, clock) = (text.get(5..10).unwrap_or_default(), text.get(11..).unwrap_or_default());
            match step {
                DAY.. => date.to_owned(),
                // Of several days, midnight shows which one begins.
                _ if span >= DAY && clock.starts_with("00:00:00") => date.to_owned(),
                ..MINUTE => clock.get(..8).unwrap_or_default().to_owned(),
                _ => clock.get(..5).unwrap_or_default().to_owned(),
            }
        };
        let marks = (first..=self.0.end.0).step_by(step as usize).map(Timestamp);
        marks.map(|at| (at, label(at))).collect()
    }
}

impl Values {
    /// The axis of these values, with a little room at both ends. `None`: there are none.
    pub fn of(values: impl IntoIterator<Item = i64>) -> Option<Values> {
        let ends = values.into_iter().fold(None, |ends: Option<(i64, i64)>, value| {
            Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        });
        let (low, high) = ends?;
        let room = (i128::from(high) - i128::from(low)) / 20;
        // A line without any change is in the middle.
        let room = if room == 0 { (i128::from(high).abs() / 1_000).max(1_000) } else { room };
        let end = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Some(Values { low: end(i128::from(low) - room), high: end(i128::from(high) + room) })
    }

    /// From the top.
    pub fn place(&self, value: i64) -> i64 {
        let span = i128::from(self.high) - i128::from(self.low);
        let below = i128::from(self.high) - i128::from(value.clamp(self.low, self.high));
        (below * i128::from(SIDE) / span) as i64
    }

    /// Round values, three to six, ascending.
    pub fn marks(&self) -> Vec<i64> {
        let span = i128::from(self.high) - i128::from(self.low);
        let (mut unit, mut step) = (1_i128, 1_i128);
        while span / step > 5 {
            step = [2, 5, 10].into_iter().map(|by| by * unit).find(|next| *next > step).unwrap_or(step * 2);
            if step == 10 * unit {
                unit = step;
            }
        }
        let first = i128::from(self.low).div_euclid(step) + 1;
        let marks = (first..).map(|number| number * step).take_while(|mark| *mark < i128::from(self.high));
        marks.map(|mark| mark as i64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_values() {
        let cases: [(i64, i64, &[i64]); 7] = [
            (0, 10, &[2, 4, 6, 8]),
            (-1, 101, &[0, 20, 40, 60, 80, 100]),
            (499_000_000, 503_000_000, &[500_000_000, 501_000_000, 502_000_000]),
            (-5, 5, &[-4, -2, 0, 2, 4]),
            (290_000, 470_000, &[300_000, 350_000, 400_000, 450_000]),
            (7, 8, &[]),
            (0, 3, &[1, 2]),
        ];
        for (low, high, expected) in cases {
            assert_eq!(Values { low, high }.marks(), expected, "{low}..{high}");
        }
        // Any span has few of them.
        let mut count = 0;
        for low in [i64::MIN, -1_000_000, 0, 1, 999_999] {
            for bits in 4..63 {
                let Some(high) = low.checked_add(1 << bits) else { continue };
                let marks = Values { low, high }.marks();
                assert!((2..=6).contains(&marks.len()), "{low}..{high}: {marks:?}");
                count += 1;
            }
        }
        println!("round values: {} cases", cases.len() + count);
    }

    #[test]
    fn places_are_within_the_chart() {
        let values = Values::of([10, 20]).expect("values");
        assert_eq!(values, Values { low: -990, high: 1_020 });
        let cases = [(i64::MIN, SIDE), (-990, SIDE), (15, 5_000), (1_020, 0), (i64::MAX, 0)];
        for (value, expected) in cases {
            assert_eq!(values.place(value), expected, "{value}");
        }
        assert_eq!(Values::of([]), None);
        assert_eq!(Values::of([0]), Some(Values { low: -1_000, high: 1_000 }));
        assert_eq!(Values::of([0, 2_000]), Some(Values { low: -100, high: 2_100 }));
        let widest = Values::of([i64::MIN, i64::MAX]).expect("values");
        assert_eq!((widest.place(i64::MIN), widest.place(0), widest.place(i64::MAX)), (SIDE, 5_000 - 1, 0));
        let times = Times(Timestamp(100)..Timestamp(200));
        for (at, expected) in [(0, 0), (100, 0), (150, 5_000), (200, SIDE), (900, SIDE)] {
            assert_eq!(times.place(Timestamp(at)), expected, "{at}");
        }
        println!("places: {} cases", cases.len() + 10);
    }

    #[test]
    fn round_times() {
        // 2026-09-30T17:00
        let start = Timestamp(1_790_787_600_000_000);
        let cases: [(u64, &[&str]); 6] = [
            (2 * HOUR, &["17:00", "17:30", "18:00", "18:30", "19:00"]),
            (30 * MINUTE, &["17:00", "17:05", "17:10", "17:15", "17:20", "17:25", "17:30"]),
            (30 * SECOND, &["17:00:00", "17:00:10", "17:00:20", "17:00:30"]),
            (DAY, &["18:00", "10-01", "06:00", "12:00"]),
            (3 * DAY, &["10-01", "12:00", "10-02", "12:00", "10-03", "12:00"]),
            (6 * DAY, &["10-01", "10-02", "10-03", "10-04", "10-05", "10-06"]),
        ];
        for (span, expected) in cases {
            let labels: Vec<String> =
                Times(start..start.plus(span)).marks().into_iter().map(|(_, label)| label).collect();
            assert_eq!(labels, expected, "{span} µs");
        }
        let mut count = 0;
        for bits in 0..60 {
            let marks = Times(start..start.plus(1 << bits)).marks();
            assert!(marks.len() <= 8, "{bits}: {}", marks.len());
            count += 1;
        }
        println!("round times: {} cases", cases.len() + count);
    }
}
