//! Moments: arguments, never read from a clock. They never go backwards within a shard.

use wincode::{SchemaRead, SchemaWrite};

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct Timestamp(pub u64);

/// An optional moment in eight bytes: the start of 1970, at which nothing happens, stands for no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Date(u64);

/// Days since 1970-01-01, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct UtcDay(pub u32);

/// Microseconds in a millisecond, a second, a minute, an hour and a day.
pub const MILLISECOND: u64 = 1_000;
pub const SECOND: u64 = 1_000_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;

impl Timestamp {
    pub fn from_secs(secs: u64) -> Timestamp {
        Timestamp(secs.saturating_mul(SECOND))
    }

    pub fn from_millis(millis: u64) -> Timestamp {
        Timestamp(millis.saturating_mul(MILLISECOND))
    }

    pub fn secs(self) -> u64 {
        self.0 / SECOND
    }

    pub fn millis(self) -> u64 {
        self.0 / MILLISECOND
    }

    /// This moment plus `micros`, saturating.
    pub fn plus(self, micros: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(micros))
    }

    /// Microseconds since `earlier`; 0 when that is later.
    pub fn since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Full minutes since 1970.
    pub fn minute(self) -> u32 {
        (self.0 / MINUTE) as u32
    }

    /// The start of a minute, counted since 1970.
    pub fn of_minute(minute: u32) -> Timestamp {
        Timestamp(u64::from(minute) * MINUTE)
    }

    /// Full hours since 1970.
    pub fn hour(self) -> u32 {
        (self.0 / HOUR) as u32
    }

    /// The start of an hour, counted since 1970.
    pub fn of_hour(hour: u32) -> Timestamp {
        Timestamp(u64::from(hour) * HOUR)
    }

    /// The calendar month of this moment, UTC: `YYYYMM`.
    pub fn month(self) -> u32 {
        let (year, month, _) = civil(self.day().0);
        year * 100 + month
    }

    /// The start of the next calendar month, UTC.
    pub fn next_month(self) -> Timestamp {
        let (year, month, _) = civil(self.day().0);
        let (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        Timestamp(u64::from(days(year, month, 1)) * DAY)
    }

    /// The UTC day of this moment.
    pub fn day(self) -> UtcDay {
        UtcDay((self.0 / DAY) as u32)
    }
}

impl Date {
    pub const NONE: Date = Date(0);

    pub fn get(self) -> Option<Timestamp> {
        (self != Date::NONE).then_some(Timestamp(self.0))
    }

    pub fn is_none(self) -> bool {
        self == Date::NONE
    }

    pub fn is_some(self) -> bool {
        !self.is_none()
    }
}

impl From<Option<Timestamp>> for Date {
    /// # Panics
    /// At the start of 1970, which encodes none.
    fn from(at: Option<Timestamp>) -> Date {
        assert!(at != Some(Timestamp(0)), "a moment is after the start of 1970");
        Date(at.unwrap_or_default().0)
    }
}

impl UtcDay {
    /// The start of the next day: daily caps reset here.
    pub fn end(self) -> Timestamp {
        Timestamp((u64::from(self.0) + 1) * DAY)
    }

    /// Its start.
    pub fn start(self) -> Timestamp {
        Timestamp(u64::from(self.0) * DAY)
    }

    /// `YYYY-MM-DD`.
    pub fn text(self) -> String {
        let (year, month, day) = civil(self.0);
        format!("{year:04}-{month:02}-{day:02}")
    }
}

/// Days of 400 years, after which the calendar repeats, and those from 0000-03-01 to 1970-01-01.
const ERA_DAYS: u32 = 146_097;
const EPOCH_DAYS: u32 = 719_468;

/// Year, month and day of a day since 1970.
pub(crate) fn civil(days: u32) -> (u32, u32, u32) {
    let days = u64::from(days) + u64::from(EPOCH_DAYS);
    let (era, day) = (days / u64::from(ERA_DAYS), (days % u64::from(ERA_DAYS)) as u32);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on, so that the leap day is the last one.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era as u32 * 400 + u32::from(month <= 2), month, day)
}

/// Days since 1970 of a date from 1970 on; a day that its month does not have is a day of the next one.
pub(crate) fn days(year: u32, month: u32, day: u32) -> u32 {
    let year = year - u32::from(month <= 2);
    let (era, year) = (year / 400, year % 400);
    let month = if month > 2 { month - 3 } else { month + 9 };
    era * ERA_DAYS + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_of_the_calendar() {
        for (day, month, next) in [
            ((1970, 1, 1), 197_001, (1970, 2, 1)),
            ((2026, 10, 2), 202_610, (2026, 11, 1)),
            ((2026, 12, 31), 202_612, (2027, 1, 1)),
            ((2028, 2, 29), 202_802, (2028, 3, 1)),
        ] {
            let start = |(year, of, day): (u32, u32, u32)| Timestamp(u64::from(days(year, of, day)) * DAY);
            for at in [start(day), start(day).plus(DAY - 1)] {
                assert_eq!((at.month(), at.next_month()), (month, start(next)), "{day:?}");
            }
            let text = format!("{:04}-{:02}-{:02}", day.0, day.1, day.2);
            assert_eq!((start(day).day().text(), start(day).day().start()), (text, start(day)));
        }
    }
}
