//! Count of accepted orders of one UTC day (gateway/docs/wire.md §8, daily cap). The cap is a rule, read in `decide`.

use crate::bytes::leaf;
use crate::time::UtcDay;
use wincode::{SchemaRead, SchemaWrite};

/// The count of accepted orders on the latest day with one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SchemaWrite, SchemaRead)]
pub struct Quota {
    pub day: UtcDay,
    pub used: u32,
}

leaf! { Quota }

impl Quota {
    /// Orders accepted on `day`.
    pub fn used_on(&self, day: UtcDay) -> u32 {
        if self.day == day { self.used } else { 0 }
    }

    pub(crate) fn count(&mut self, day: UtcDay) {
        self.used = self.used_on(day) + 1;
        self.day = day;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_day_starts_at_zero() {
        let mut quota = Quota::default();
        for (day, used) in [(5, 1), (5, 2), (6, 1), (6, 2), (9, 1)] {
            quota.count(UtcDay(day));
            assert_eq!(quota.used_on(UtcDay(day)), used);
            assert_eq!(quota.used_on(UtcDay(day + 1)), 0);
        }
    }
}
