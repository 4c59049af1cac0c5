//! When a ratio may be published: a reference far below its usual rate shows that the machine was busy, and a ratio to
//! it says nothing about our code.

use crate::report::{Size, median};
use std::fmt;

/// The least rate of a reference for which a ratio is published. Each is a constant of its scenario, with its reason.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// Name of the reference's work, for the reader.
    pub of: &'static str,
    /// Operations a second.
    pub least: f64,
}

/// Why a ratio is withheld.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    of: &'static str,
    least: f64,
    reached: f64,
}

impl Floor {
    /// Whether the rates of the reference in the rounds, in any order, allow a ratio to be published: the median
    /// counts. The small size of the tests is never refused, since it is never published.
    ///
    /// # Panics
    /// Without a round.
    pub fn judge(&self, size: Size, reached: &[f64]) -> Result<(), Refused> {
        let reached = median(reached);
        if size == Size::Small || reached >= self.least {
            return Ok(());
        }
        Err(Refused { of: self.of, least: self.least, reached })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { of, least, reached } = self;
        write!(
            f,
            "refused: {of} reached {reached:.0} a second, below the floor of {least:.0}; the machine is not quiet"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Floor = Floor { of: "a loop", least: 5_000.0 };

    #[test]
    fn the_median_of_the_rounds_decides() {
        let cases: [(&[f64], bool); 7] = [
            (&[5_000.0], true),
            (&[4_999.0], false),
            (&[9_000.0, 100.0, 6_000.0], true),
            (&[9_000.0, 100.0, 200.0], false),
            // Of an even count the upper one.
            (&[4_000.0, 6_000.0], true),
            (&[0.0, 0.0, 0.0], false),
            (&[f64::INFINITY], true),
        ];
        for (reached, passes) in cases {
            assert_eq!(FLOOR.judge(Size::Full, reached).is_ok(), passes, "{reached:?}");
            assert_eq!(FLOOR.judge(Size::Small, reached), Ok(()), "the small size is never refused: {reached:?}");
        }
        println!("floors: {} cases", 2 * cases.len());
    }

    #[test]
    fn a_refusal_names_the_slow_reference() {
        let refused = FLOOR.judge(Size::Full, &[1_234.0]).expect_err("below");
        let expected = "refused: a loop reached 1234 a second, below the floor of 5000; the machine is not quiet";
        assert_eq!(refused.to_string(), expected);
    }
}
