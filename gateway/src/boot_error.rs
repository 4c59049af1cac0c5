//! Why a server does not run.

use crate::directory_venue::OtherVenue;
use journal::recover::RecoverError;
use std::fmt;
use venue::VenueError;

/// Why the server does not run, or stopped.
#[derive(Debug)]
pub enum BootError {
    Recover(RecoverError),
    Venue(VenueError),
    /// A file, thread or socket could not be opened or created; `what` names it.
    Io {
        what: String,
        error: std::io::Error,
    },
    /// The log failed while serving: acknowledged writes are safe, the outcome of others is unknown. The next start
    /// recovers.
    Journal(String),
    /// The data directory was used with another venue.
    OtherVenue(OtherVenue),
    /// The feed ended before the listener opened.
    Feed,
    /// The route table or the brand's names are inconsistent.
    Edge(String),
    /// Alerts cannot be sent with these settings.
    Alerts(String),
    /// A back-test with a bot cannot be made of this configuration, or its recording is empty.
    Bot(String),
    /// A key has a set of realism that the settings do not have.
    Realism(String),
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootError::Recover(error) => error.fmt(f),
            BootError::Venue(error) => error.fmt(f),
            BootError::OtherVenue(error) => error.fmt(f),
            BootError::Io { what, error } => write!(f, "{what}: {error}"),
            BootError::Journal(why) => {
                write!(f, "the journal failed and the server stopped: {why}; the next start recovers")
            }
            BootError::Edge(why) | BootError::Alerts(why) | BootError::Bot(why) | BootError::Realism(why) => {
                f.write_str(why)
            }
            BootError::Feed => {
                f.write_str("the feed stopped before it was ready; the log lines before this one say why")
            }
        }
    }
}

impl std::error::Error for BootError {}

impl From<RecoverError> for BootError {
    fn from(error: RecoverError) -> BootError {
        BootError::Recover(error)
    }
}

/// An error of the system, with the name of the file, thread or socket.
pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> BootError {
    let what = what.into();
    |error| BootError::Io { what, error }
}
