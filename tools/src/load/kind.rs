//! The kinds of operations.

use std::fmt;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A limit order far from the touch.
    Rest,
    /// A market order that takes immediately: a buy, or the sale of an earlier buy.
    Cross,
    /// The cancel of an own resting order.
    Cancel,
}

impl Kind {
    pub const COUNT: usize = 3;
    pub const ALL: [Kind; Kind::COUNT] = [Kind::Rest, Kind::Cross, Kind::Cancel];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Rest => "rest",
            Kind::Cross => "cross",
            Kind::Cancel => "cancel",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
