//! Messages of a recording that were there before: its parts may overlap, and a signed change must not be applied twice.

use ahash::{AHashMap, RandomState};
use engine::time::Timestamp;

/// Messages that are remembered: at least this many, and at most twice that.
const KEPT: usize = if cfg!(test) { 64 } else { 65_536 };

/// The last messages, by their text. Messages have their number in their text, and all but snapshots the venue's time, so
/// that equal texts are one message. A snapshot may come again with the same number after a new start of the connection;
/// it counts as repeated only with the same time of receipt.
#[derive(Default)]
pub(super) struct Seen {
    hasher: RandomState,
    /// Connection and time of receipt, by hash of connection and text.
    newer: AHashMap<u64, (u8, Timestamp)>,
    older: AHashMap<u64, (u8, Timestamp)>,
}

impl Seen {
    /// Whether this message was there before; notes it.
    pub(super) fn repeats(&mut self, connection: u8, text: &str, is_snapshot: bool, received: Timestamp) -> bool {
        let hash = self.hasher.hash_one((connection, text));
        let known = self.newer.get(&hash).or_else(|| self.older.get(&hash)).copied();
        if known.is_some_and(|(_, at)| !is_snapshot || at == received) {
            return true;
        }
        if self.newer.len() == KEPT {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(hash, (connection, received));
        false
    }

    /// Forgets a connection: its books are unknown now, and begin again with any snapshot.
    pub(super) fn forget(&mut self, connection: u8) {
        for seen in [&mut self.newer, &mut self.older] {
            seen.retain(|_, (of, _)| *of != connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_remembered_for_a_while() {
        let at = Timestamp::from_secs;
        let mut seen = Seen::default();
        let steps = [
            // connection, text, whether it is a snapshot, second, whether it was there
            (0, "a", false, 1, false),
            (0, "a", false, 2, true),
            (1, "a", false, 2, false),
            (0, "s", true, 3, false),
            (0, "s", true, 3, true),
            (0, "s", true, 4, false),
            (0, "s", true, 4, true),
        ];
        for (connection, text, is_snapshot, second, expected) in steps {
            assert_eq!(seen.repeats(connection, text, is_snapshot, at(second)), expected, "{text} at {second}");
        }
        for number in 0..KEPT {
            assert!(!seen.repeats(2, &number.to_string(), false, at(5)), "{number}");
        }
        assert!((0..KEPT).all(|number| seen.repeats(2, &number.to_string(), false, at(5))));
        assert!(seen.newer.len() + seen.older.len() <= 2 * KEPT);
        seen.forget(2);
        assert!(!seen.repeats(2, "0", false, at(6)));
        let last = (KEPT - 1).to_string();
        assert!(seen.repeats(3, &last, false, at(6)) != seen.repeats(3, &last, false, at(6)));
        seen.forget(2);
        assert!(seen.repeats(3, &last, false, at(7)), "of another connection");
        println!("remembered messages: {} cases", steps.len() + 2 * KEPT + 4);
    }
}
