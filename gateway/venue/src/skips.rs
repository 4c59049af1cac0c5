//! Skipped input, counted by kind: no message of a venue stops the server, and none is dropped without a count.

use super::loose::Fault;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// Why a part of a venue's message was not used.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Skip {
            $($(#[$doc])* $kind,)*
        }

        impl Skip {
            /// All kinds, in numeric order.
            pub const ALL: &[Skip] = &[$(Skip::$kind),*];

            /// The name of the counter.
            pub fn name(self) -> &'static str {
                match self { $(Skip::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// Not JSON, or not of the shape of any message.
    BadJson = "bad_json",
    /// An unknown message or event type.
    UnknownType = "unknown_type",
    /// A required field is missing.
    MissingField = "missing_field",
    /// A number or time that cannot be read or is out of bounds.
    BadNumber = "bad_number",
    /// A text of a listing that is too long: it was cut or dropped; if it was an id, the market was skipped.
    TextTooLong = "text_too_long",
    /// A level with a price finer than 1/10 000 dollar: the level was dropped.
    PriceTooFine = "price_too_fine",
    /// A level whose price is not between 0 and 1: the level was dropped.
    PriceOutOfRange = "price_out_of_range",
    /// A tick size that does not divide a dollar: the market is not tradable.
    UnknownTick = "unknown_tick",
    /// A market without exactly two outcomes.
    NotBinary = "not_binary",
    /// A message about a token or market that was never listed.
    Unlisted = "unlisted",
    /// A relative change to a size below zero: treated as a gap.
    BelowZero = "below_zero",
    /// A missing number of the venue's sequence: treated as a gap.
    SequenceGap = "sequence_gap",
    /// A relative change without a snapshot before it.
    NoSnapshot = "no_snapshot",
    /// Older than the current state.
    OutOfOrder = "out_of_order",
    /// A repeated message, as overlapping connections send it.
    Duplicate = "duplicate",
    /// A result that cannot be paid out: the market stays closed.
    UnsupportedResult = "unsupported_result",
    /// Two sources report different results: the market stays closed, or keeps its first result.
    ResultsDisagree = "results_disagree",
    /// A book whose computed hash differs from the stated one; the book is used.
    HashDiffers = "hash_differs",
    /// A REST response with a status other than 200.
    HttpStatus = "http_status",
    /// A line of a tape without a time or of an unknown form.
    UnknownLine = "unknown_line",
    /// A line of a tape that is too long.
    LineTooLong = "line_too_long",
    /// A file that cannot be read completely.
    UnreadableFile = "unreadable_file",
    /// Fees of a market that are out of bounds or of an unknown kind: the table of categories counts.
    UnusableFees = "unusable_fees",
}

/// The kind of an unreadable number.
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

/// Counters by kind; written by the venue's thread, read by any thread.
#[derive(Debug, Default)]
pub struct Skips([AtomicU64; Skip::ALL.len()]);

impl Skips {
    /// Counts one, and logs the first of its kind with an excerpt.
    pub fn count(&self, kind: Skip, seen: impl FnOnce() -> String) {
        self.count_more(kind, 1, seen);
    }

    /// Counts several of a kind; `seen` is about the first of them.
    pub(crate) fn count_more(&self, kind: Skip, more: u64, seen: impl FnOnce() -> String) {
        if self.0[kind as usize].fetch_add(more, Ordering::Relaxed) == 0 {
            let mut seen = seen();
            const SHOWN_CHARS: usize = 300;
            if let Some((at, _)) = seen.char_indices().nth(SHOWN_CHARS) {
                seen.truncate(at);
            }
            tracing::warn!(
                kind = kind.name(),
                seen,
                "skipped a part of the venue's data; more of this kind are only counted"
            );
        }
    }

    /// The count of a kind.
    pub fn get(&self, kind: Skip) -> u64 {
        self.0[kind as usize].load(Ordering::Relaxed)
    }

    /// The sum over all kinds.
    pub fn total(&self) -> u64 {
        Skip::ALL.iter().map(|&kind| self.get(kind)).sum()
    }

    /// All kinds with their counts.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Skip::ALL.iter().map(|&kind| (kind.name(), self.get(kind)))
    }

    /// The kinds with a count above 0.
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
