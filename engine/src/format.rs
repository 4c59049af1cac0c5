//! Formats of persistent data: which exist, and which a process writes.
//!
//! | Data | previous | newest |
//! |---|---|---|
//! | facts of a journal record | 1; 2 with `Restored`, 3 with `ClockSetBack` | 5; 4 is read |
//! | snapshot | 4 | 5; 6 when orders or positions have left memory, history was cut, a user has several prefixes, a market has stated its fees, or addresses were declared |
//! | market state in a snapshot | 1, which names no version | 2 |
//!
//! A state is written in snapshot format 6 only if it needs it: without such rows, prefixes, fees and addresses, the bytes
//! are those of format 5. No earlier build reads format 6: rows must not leave memory while a process writes the previous formats.
//!
//! A process reads all of them. It writes the newest, or the previous ones while a server of the previous build may
//! still have to read them: a cluster is upgraded node by node, and an upgrade can be reverted. With the previous
//! formats, nothing is decided that only the newest can hold, so state and journal stay equal.
//!
//! `engine/docs/adding-a-field.md` describes how to add a format.

/// The formats that a process writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// Those that the previous build reads.
    Previous,
    #[default]
    Newest,
}

impl Formats {
    /// Format of the facts in a record.
    pub fn record(self) -> u16 {
        match self {
            Formats::Previous => crate::mutation::codec::VERSION_FIRST,
            Formats::Newest => crate::mutation::codec::VERSION,
        }
    }

    /// Whether facts of the newest format may be decided: the recording's time of a fill, the hash of a signed order,
    /// back-tests, billing, alerts, prefixes, fees that markets state, declared addresses, cuts of order facts.
    pub fn is_newest(self) -> bool {
        self == Formats::Newest
    }
}
