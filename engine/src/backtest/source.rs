//! Where a back-test reads its frames from.

use super::job::BookFrame;
use std::convert::Infallible;

/// Frames in the order of their receipt. A frame is borrowed: a source that makes frames reuses the space of the last
/// one, and one that has them all copies none.
pub trait FrameSource {
    /// Why frames cannot be read.
    type Error;

    /// The next frame; `None` after the last one.
    ///
    /// # Errors
    /// When it cannot be read. There is none after an error.
    fn next_frame(&mut self) -> Result<Option<&BookFrame>, Self::Error>;
}

/// Frames in memory.
impl FrameSource for std::slice::Iter<'_, BookFrame> {
    type Error = Infallible;

    #[inline]
    fn next_frame(&mut self) -> Result<Option<&BookFrame>, Infallible> {
        Ok(self.next())
    }
}
