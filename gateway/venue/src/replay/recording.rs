//! What a replay plays.

use crate::FeedUpdate;
use engine::time::Timestamp;

/// A recording: lines in order of time, and changes of markets that no line carries. "Line" is the unit that is handed
/// out together; in an archive it is a group of rows.
pub(crate) trait Recording: Send {
    /// Looks for lines that were added to a followed tape.
    fn look_again(&mut self) {}

    /// Appends the updates that list the markets known at the time of the first line, in their state at that time.
    fn begin(&mut self, first: Timestamp, updates: &mut Vec<FeedUpdate>);

    /// Time of the next line; `None` at the end, or at the current end of a followed tape.
    fn line_at(&self) -> Option<Timestamp>;

    /// Time of the next change that no line carries. There may be some after the last line.
    fn change_at(&self) -> Option<Timestamp>;

    /// Appends the updates of what comes next, a change before a line of the same time, and returns its connection.
    /// `None` if it was skipped. `at` is the time at which it is handed out, which never goes backwards.
    fn step(&mut self, at: Timestamp, updates: &mut Vec<FeedUpdate>) -> Option<u8>;

    /// A hash that identifies the recording in the journal; `None` while there is no line.
    fn first_line(&self) -> Option<[u8; 32]>;

    /// Its extent in a few words, e.g. `18 tapes`.
    fn describe(&self) -> String;
}
