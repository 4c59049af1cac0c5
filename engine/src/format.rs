//! Formats of what is written down: which there were, and which a process writes.
//!
//! | What is written | previous | newest |
//! |---|---|---|
//! | facts of a journal record | 1; 2 with `Restored`, 3 with `ClockSetBack` | 4 |
//! | snapshot | 4 | 5 |
//! | market state in a snapshot | 1, which names no version | 2 |
//!
//! A process reads all of them. It writes the newest, or the previous ones while a server of the build before may still
//! have to read them: a cluster is upgraded node by node, and an upgrade that is tried out can be taken back. What only
//! the newest format can hold is then not decided at all, so state and journal stay equal.
//!
//! `engine/docs/adding-a-field.md` says how a format follows another.

/// Which formats a process writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// Those that the build before this one reads.
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

    /// Whether what the newest format brought may be decided: the recording's time of a fill, the hash of a signed order.
    pub fn is_newest(self) -> bool {
        self == Formats::Newest
    }
}
