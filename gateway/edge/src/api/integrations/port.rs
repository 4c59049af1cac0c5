//! What sends alerts, as the routes see it: a port. What is owed, and to what, is state of the user; the outcomes of the
//! last attempts are kept by the other side, in memory.

use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::AlertTarget;
use engine::user::alerts::{AlertKind, Channel};
use std::pin::Pin;

/// Most deliveries of a target that are shown.
pub const DELIVERIES_MAX: usize = 50;

/// An answer of the other side.
pub type Waiting<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A test mail that was taken by the mailer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMail {
    /// Its `Message-ID`, without brackets.
    pub message_id: String,
    pub at: Timestamp,
}

/// Why a test was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// Too many tests wait, or the user has one in flight; none was sent.
    Busy,
    /// The next test mail of this user is possible after this many seconds.
    TooSoon(u32),
    /// The mailer or the target failed; in words.
    Failed(String),
}

/// Why an address cannot be a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTarget {
    /// Too many addresses are being checked, of all users or of this one.
    Busy,
    /// In words, for the client.
    Wrong(String),
}

/// An attempt to deliver an alert to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub at: Timestamp,
    /// The alert's id as its receiver sees it.
    pub event: [u8; 16],
    pub kind: AlertKind,
    /// From 1.
    pub attempt: u32,
    pub outcome: DeliveryOutcome,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    pub error: Option<String>,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// Another attempt follows.
    Failed,
    /// It was the last attempt.
    GivenUp,
    /// The target wants no more, or has failed too often in a row.
    Disabled,
}

/// Sends alerts.
pub trait Integrations: Send + Sync {
    /// Whether this server sends mail.
    fn has_mailer(&self) -> bool;

    /// Sends a test mail to a user, at most one a minute. [`NotSent::Busy`] leaves the minute.
    fn test_mail(&self, user: UserId, to: &str, now: Timestamp) -> Waiting<Result<SentMail, NotSent>>;

    /// Checks whether alerts of a user may go to an address, and returns it in its normal form.
    fn check(&self, user: UserId, channel: Channel, url: &str) -> Waiting<Result<String, NoTarget>>;

    /// Sends a test to a target, once.
    fn test(&self, user: UserId, target: &AlertTarget, now: Timestamp) -> Waiting<Result<(), NotSent>>;

    /// The last attempts to deliver to a target, newest first; at most [`DELIVERIES_MAX`].
    fn deliveries(&self, user: UserId, target: u32) -> Vec<Delivery>;

    /// A target was removed: its attempts are forgotten.
    fn forget(&self, user: UserId, target: u32);
}
