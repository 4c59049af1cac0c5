//! What venues state about the fees of a market (gateway/docs/live-venues.md §1). Numbers are read exactly or not at all:
//! nothing is rounded or cut to its bounds.

use crate::loose::{Loose, scaled};
use engine::market::terms::FeeSchedule;
use wincode::{SchemaRead, SchemaWrite};

/// A statement about fees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SchemaWrite, SchemaRead)]
pub(crate) enum Statement {
    /// Nothing was stated.
    #[default]
    Nothing,
    /// It is out of bounds or unreadable.
    Unusable,
    Is(FeeSchedule),
}

impl Statement {
    /// This one, or `other` if this one says nothing.
    pub fn or(self, other: Statement) -> Statement {
        if self == Statement::Nothing { other } else { self }
    }

    /// As the feed takes it; `None`: nothing was stated.
    pub fn schedule(self) -> Option<Option<FeeSchedule>> {
        match self {
            Statement::Nothing => None,
            Statement::Unusable => Some(None),
            Statement::Is(schedule) => Some(Some(schedule)),
        }
    }

    /// A schedule from its fields. Rate and exponent are required; without the others takers pay, and makers get
    /// nothing back.
    pub fn of(rate: Loose<'_>, exponent: Loose<'_>, taker_only: Loose<'_>, rebate_rate: Loose<'_>) -> Statement {
        let read = || {
            let schedule = FeeSchedule {
                rate: millionths(rate)?,
                exponent: u16::try_from(scaled(&exponent.text()?, 0).ok()?).ok()?,
                taker_only: if taker_only.is_absent() { true } else { taker_only.flag()? },
                rebate_rate: if rebate_rate.is_absent() { 0 } else { millionths(rebate_rate)? },
            };
            schedule.is_valid().then_some(schedule)
        };
        read().map_or(Statement::Unusable, Statement::Is)
    }
}

/// A decimal in 10⁻⁶; `None`: unreadable, or it has more decimals.
pub(crate) fn millionths(field: Loose<'_>) -> Option<u32> {
    u32::try_from(scaled(&field.text()?, 6).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(rate: u32, exponent: u16, taker_only: bool, rebate_rate: u32) -> Statement {
        Statement::Is(FeeSchedule { rate, exponent, taker_only, rebate_rate })
    }

    #[test]
    fn fields_are_read_exactly_or_not_at_all() {
        use Statement::Unusable;
        let long = format!("\"0.{}\"", "1".repeat(100_000));
        let cases = [
            // rate, exponent, taker only, rebate rate
            (["0.07", "1", "true", "0.2"], is(70_000, 1, true, 200_000)),
            (["\"0.03\"", "\"1\"", "\"true\"", "\"0.25\""], is(30_000, 1, true, 250_000)),
            (["0", "0", "false", "0"], is(0, 0, false, 0)),
            (["1", "4", "true", "1"], is(1_000_000, 4, true, 1_000_000)),
            (["0.012345", "2.0", "", ""], is(12_345, 2, true, 0)),
            (["7e-2", "1", "null", "null"], is(70_000, 1, true, 0)),
            // Out of bounds.
            (["1.000001", "1", "", ""], Unusable),
            (["-0.01", "1", "", ""], Unusable),
            (["0.01", "5", "", ""], Unusable),
            (["0.01", "-1", "", ""], Unusable),
            (["0.01", "1.5", "", ""], Unusable),
            (["0.01", "1", "", "1.1"], Unusable),
            (["0.01", "99999999999999999999", "", ""], Unusable),
            (["4294.967297", "1", "", ""], Unusable),
            (["1e99", "1", "", ""], Unusable),
            // More decimals than are held.
            (["0.0123456", "1", "", ""], Unusable),
            // Missing or of another kind.
            (["", "1", "", ""], Unusable),
            (["0.01", "", "", ""], Unusable),
            (["null", "1", "", ""], Unusable),
            (["true", "1", "", ""], Unusable),
            (["[0.01]", "1", "", ""], Unusable),
            (["{}", "1", "", ""], Unusable),
            (["\"\"", "1", "", ""], Unusable),
            (["\"NaN\"", "1", "", ""], Unusable),
            (["0.01", "1", "1", ""], Unusable),
            (["0.01", "1", "\"yes\"", ""], Unusable),
            (["0.01", "1", "", "[]"], Unusable),
            ([&long, "1", "", ""], Unusable),
        ];
        for (fields, expected) in &cases {
            let [rate, exponent, taker_only, rebate_rate] = fields.map(Loose::of);
            let found = Statement::of(rate, exponent, taker_only, rebate_rate);
            assert_eq!(found, *expected, "{:?}", fields.map(|field| &field[..field.len().min(40)]));
        }
        println!("fields of fees: {} cases", cases.len());
    }

    #[test]
    fn the_first_statement_counts() {
        use Statement::{Nothing, Unusable};
        let free = Statement::Is(FeeSchedule::FREE);
        let cases =
            [(Nothing, free, free), (Unusable, free, Unusable), (free, Unusable, free), (Nothing, Nothing, Nothing)];
        for (one, other, expected) in cases {
            assert_eq!(one.or(other), expected);
        }
        assert_eq!(
            [Nothing, Unusable, free].map(Statement::schedule),
            [None, Some(None), Some(Some(FeeSchedule::FREE))]
        );
        println!("order of statements: {} cases", cases.len() + 3);
    }
}
