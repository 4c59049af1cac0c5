//! What was dropped on the way in, counted by kind: nothing a venue says can stop the server, and nothing it says is
//! dropped without a trace.

use super::loose::Fault;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// Why something a venue said was not used.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Skip {
            $($(#[$doc])* $kind,)*
        }

        impl Skip {
            /// All kinds, in the order of their numbers.
            pub const ALL: &[Skip] = &[$(Skip::$kind),*];

            /// The name under which the count is shown.
            pub fn name(self) -> &'static str {
                match self { $(Skip::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// Not JSON, or of a shape that no message has.
    BadJson = "bad_json",
    /// A message or event type that is not known here.
    UnknownType = "unknown_type",
    /// A field without which the message means nothing.
    MissingField = "missing_field",
    /// A number or moment that cannot be read, or is out of all bounds.
    BadNumber = "bad_number",
    /// A text of a listing beyond its bound: it was cut or dropped; with an id of that kind the market was.
    TextTooLong = "text_too_long",
    /// A level finer than 1/10 000 dollar: the level was dropped.
    PriceTooFine = "price_too_fine",
    /// A level at 0, at 1 or beyond: the level was dropped.
    PriceOutOfRange = "price_out_of_range",
    /// A tick size that is no divisor of a dollar: the market is not tradable.
    UnknownTick = "unknown_tick",
    /// A market that has not exactly two outcomes.
    NotBinary = "not_binary",
    /// A message about a token or market that was never listed.
    Unlisted = "unlisted",
    /// A signed change that leads below zero: taken as a gap.
    BelowZero = "below_zero",
    /// A number of the venue's sequence is missing: taken as a gap.
    SequenceGap = "sequence_gap",
    /// A signed change with no snapshot to apply it to.
    NoSnapshot = "no_snapshot",
    /// Older than what is known already.
    OutOfOrder = "out_of_order",
    /// The same message again, as overlapping connections send it.
    Duplicate = "duplicate",
    /// A result that cannot be paid out here: the market stays closed.
    UnsupportedResult = "unsupported_result",
    /// Two sources name different results: the market stays closed, or what was resolved stays.
    ResultsDisagree = "results_disagree",
    /// A book whose hash is another than the one it carries; it is used all the same.
    HashDiffers = "hash_differs",
    /// A REST answer with another status than 200.
    HttpStatus = "http_status",
    /// A line of a tape that has no time or fits no form.
    UnknownLine = "unknown_line",
    /// A line of a tape longer than its bound.
    LineTooLong = "line_too_long",
    /// A file that cannot be read to its end.
    UnreadableFile = "unreadable_file",
}

/// A number that was not taken, as a kind.
impl From<Fault> for Skip {
    fn from(fault: Fault) -> Skip {
        match fault {
            Fault::Missing => Skip::MissingField,
            Fault::Malformed => Skip::BadNumber,
            Fault::TooFine => Skip::PriceTooFine,
            Fault::OutOfRange => Skip::PriceOutOfRange,
        }
    }
}

/// Counts by kind; written by the venue's thread, read by anyone.
#[derive(Debug, Default)]
pub struct Skips([AtomicU64; Skip::ALL.len()]);

impl Skips {
    /// Counts one and logs the first of its kind with what was seen.
    pub fn count(&self, kind: Skip, seen: impl FnOnce() -> String) {
        if self.0[kind as usize].fetch_add(1, Ordering::Relaxed) == 0 {
            let mut seen = seen();
            const SHOWN_CHARS: usize = 300;
            if let Some((at, _)) = seen.char_indices().nth(SHOWN_CHARS) {
                seen.truncate(at);
            }
            tracing::warn!(kind = kind.name(), seen, "skipped; further ones of this kind are only counted");
        }
    }

    /// How many of a kind there were.
    pub fn get(&self, kind: Skip) -> u64 {
        self.0[kind as usize].load(Ordering::Relaxed)
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        Skip::ALL.iter().map(|&kind| self.get(kind)).sum()
    }

    /// All kinds, with their counts.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Skip::ALL.iter().map(|&kind| (kind.name(), self.get(kind)))
    }

    /// The kinds that occurred, with their counts.
    pub fn nonzero(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.all().filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_count() {
        let skips = Skips::default();
        for (number, &kind) in Skip::ALL.iter().enumerate() {
            assert_eq!(kind as usize, number);
            (0..=number).for_each(|_| skips.count(kind, || "x".repeat(1_000)));
        }
        let counts: Vec<u64> = skips.nonzero().map(|(_, count)| count).collect();
        assert_eq!(counts, (1..=Skip::ALL.len() as u64).collect::<Vec<_>>());
        assert_eq!(skips.total(), counts.iter().sum::<u64>());
    }
}
