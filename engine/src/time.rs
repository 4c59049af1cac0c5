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
}
