//! The server as this package sees it, and `GET /v1/admin/node`: which server this is, the state of its log, and how far
//! back the log reaches.

use crate::addresses::NotDeclared;
use crate::clock::{ClockStatus, NoStep};
use crate::notices::Notifies;
use crate::users::{Deed, Done, Named, NoDeed};
use engine::id::UserId;
use engine::realism::RealismSets;
use engine::rehearsal::DeclaredAddress;
use engine::time::Timestamp;
use host::moments::{StepBy, Stepped};
use host::thread::Stop;
use std::fmt;
use std::io::Write;
use std::pin::Pin;
use tokio::sync::oneshot;
use wire::write;

/// A running server. Its methods read files: they are called on threads that may block.
pub trait Node: Notifies + Send + Sync + 'static {
    /// The present state.
    ///
    /// # Errors
    /// The text says which file could not be read, and why.
    fn status(&self) -> Result<Status, String>;

    /// Decides the files of a backup, and keeps them unchanged until it is copied or dropped. `stays` is called between
    /// two reads, also during the copy.
    ///
    /// # Errors
    /// [`NoBackup`].
    fn backup(&self, with_secrets: bool, stays: Stays) -> Result<Copying, NoBackup>;

    /// The clock now; reads no file.
    fn clock(&self) -> ClockStatus;

    /// Begins a step of the clock, whose result the receiver gets.
    ///
    /// # Errors
    /// [`NoStep`].
    fn step(&self, by: StepBy) -> Result<oneshot::Receiver<Stepped>, NoStep>;

    /// Does something for a user; the receiver gets what was done when it is in the log.
    ///
    /// # Errors
    /// [`NoDeed`].
    fn administer(&self, user: &Named, deed: Deed) -> Result<(UserId, Doing), NoDeed>;

    /// Returns a whole payment of a user at the payment provider.
    ///
    /// # Errors
    /// [`NoDeed::UnknownUser`].
    fn refund(&self, user: &Named, payment: String) -> Result<(UserId, Refunding), NoDeed>;

    /// The user that a text or number names.
    ///
    /// # Errors
    /// [`NoDeed::UnknownUser`].
    fn user(&self, user: &Named) -> Result<UserId, NoDeed>;

    /// The sets of realism of this server.
    fn sets(&self) -> &RealismSets;

    /// Declares what an address is.
    ///
    /// # Errors
    /// [`NotDeclared`].
    fn declare(&self, address: [u8; 20], declared: DeclaredAddress) -> Result<Declaring, NotDeclared>;

    /// Set when the server stops.
    fn stop(&self) -> &Stop;
}

/// Whether it was declared, once it is in the log.
pub type Declaring = Pin<Box<dyn Future<Output = Result<Result<(), NotDeclared>, Lost>>>>;

/// What was done, once it is in the log; [`NoDeed`]: nothing was.
pub type Doing = Pin<Box<dyn Future<Output = Result<Result<Done, NoDeed>, Lost>>>>;

/// The id of the refund at the provider.
pub type Refunding = Pin<Box<dyn Future<Output = Result<String, NoRefund>>>>;

/// Why nothing is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRefund {
    /// There is no provider, no such purchase of the user, or it was returned already; the text says which.
    Impossible(&'static str),
    /// The provider does not answer, or refuses.
    Away,
    /// The shard of the user, or the calls to the provider, have no room, or the log writes a format without billing.
    Busy,
}

/// The shard of the user has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// Whether the requester of a backup still waits for it.
pub type Stays = Box<dyn Fn() -> bool + Send + Sync>;

/// Writes a backup as a tar stream. The error says which file could not be read or written, and why; what was written is
/// then not a backup.
pub type Copying = Box<dyn FnOnce(&mut dyn Write) -> Result<Taken, String>>;

/// A backup that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The last record in it.
    pub lsn: u64,
    pub files: usize,
    pub bytes: u64,
    pub with_secrets: bool,
}

/// Why there is no backup, each with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoBackup {
    /// The server stops, or its last records do not reach the device.
    Ending(String),
    /// It was cancelled while it was planned: the peer has left, or orders need the room.
    GivenUp(String),
    /// A file could not be read.
    Failed(String),
}

impl fmt::Display for NoBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (NoBackup::Ending(why) | NoBackup::GivenUp(why) | NoBackup::Failed(why)) = self;
        f.write_str(why)
    }
}

/// The data of `GET /v1/admin/node`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Which copy of the directory this is.
    pub instance: String,
    /// The last record that was appended, and the last one on the device.
    pub appended: u64,
    pub synced: u64,
    /// The record up to which the newest snapshot goes.
    pub snapshot: Option<u64>,
    pub horizon: Horizon,
    /// Server time is that of the recording: a back-test with a bot.
    pub is_on_venue_time: bool,
    /// Size of the data directory.
    pub data_bytes: u64,
}

/// The oldest moment whose state can still be rebuilt from what the directory keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    pub lsn: u64,
    /// Server time of that record, or of the first one after it if it was released with its segment.
    pub at: Option<Timestamp>,
}

impl Status {
    pub(crate) fn json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(512);
        write::object(&mut json, |o| {
            o.text("version", env!("CARGO_PKG_VERSION"));
            o.text("instance", &self.instance);
            // This build has no forks, no disposable directories, and no named checkpoints.
            o.null("forked_from");
            o.array("lineage", [(); 0], |_, ()| {});
            o.boolean("disposable", false);
            o.object("lsn", |o| {
                o.integer("appended", self.appended);
                o.integer("synced", self.synced);
                o.integer_or_null("snapshot", self.snapshot);
            });
            o.object("horizon", |o| {
                o.ts_or_null("at", self.horizon.at);
                o.integer("lsn", self.horizon.lsn);
            });
            o.word("clock", if self.is_on_venue_time { "venue" } else { "wall" });
            o.array("checkpoints", [(); 0], |_, ()| {});
            o.integer("data_bytes", self.data_bytes);
        });
        json
    }
}
