//! State that the open streams of all threads share.

use crate::ws::admit::Seats;
use crate::ws::news::News;
use crate::ws::sse::EventSeats;
use crate::ws::user_frames::UserFrames;
use crate::ws::user_wakeups::UserWakeups;
use std::sync::Arc;

/// The shared state of WebSockets and event streams.
pub struct Streams {
    /// Changes from the feed.
    pub news: Arc<News>,
    /// Seats of open sockets.
    pub seats: Arc<Seats>,
    /// Seats of open event streams.
    pub events: Arc<EventSeats>,
    /// Wakes the followers of a user's orders.
    pub user_wakeups: UserWakeups,
    /// Frames that the sockets of one user share.
    pub user_frames: Arc<UserFrames>,
}
