//! Published hours are downloaded and imported (gateway/docs/archive-tools.md §4).
//!
//! | File | Holds |
//! |---|---|
//! | `download.rs` | one file: requests, what of an answer is believed, retries |
//! | `part.rs` | the bytes of a file that are on disk so far |
//! | `sums.rs` | published digests |
//!
//! Two files are downloaded at a time, by a thread of their own, while the hours before them are imported. Hours come in
//! order of time, so that each is chained to the one before.

mod download;
mod part;
mod sums;

pub use download::{Pace, Source};
pub use sums::{Sums, parse_digest};

use super::build::BuildError;
use super::import::{Fetched, Import, ImportError};
use super::seal::{SealError, Sealed};
use crate::origin::Origin;
use archive::store::hour_name;
use download::Downloaded;
use engine::backtest::Hour;
use futures_util::{StreamExt, stream};
use host::thread::Stop;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Files that are downloaded at a time.
const AT_ONCE: usize = 2;
/// Files that are downloaded or wait for their import.
const AHEAD_MAX: usize = 4;
/// Missing hours in a row after which the archive counts as ended.
const MISSING_MAX: u32 = 24;
/// Hours in a row that the server refuses or cannot send, after which it is left alone.
const FAILED_MAX: u32 = 3;
/// How often the stop flag is looked at.
const STOP_EVERY: Duration = Duration::from_millis(100);

/// What became of an hour.
pub enum Told {
    Hour(Box<Sealed>),
    /// The archive has an hour with that name, which is left alone.
    There(u32),
    /// The server does not have it.
    Missing(u32),
    /// It could not be downloaded or is not taken, and why.
    Refused(u32, String),
    /// The published digests cannot be used, and why: hours are not verified.
    NoSums(String),
}

/// Why the rest of the hours was left out.
#[derive(Debug)]
pub enum FetchError {
    /// The stop flag was set.
    Stopped,
    /// This number of hours in a row was missing.
    Missing(u32),
    /// This number of hours in a row could not be downloaded.
    Failed(u32),
    /// The published digests cannot be read now.
    Sums(String),
    Io(std::io::Error),
}

impl std::fmt::Display for FetchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FetchError::Stopped => f.write_str("stopped; complete hours stay"),
            FetchError::Missing(count) => write!(f, "{count} hours in a row are missing: the archive may have ended"),
            FetchError::Failed(count) => write!(f, "{count} hours in a row could not be downloaded"),
            FetchError::Sums(reason) => f.write_str(reason),
            FetchError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FetchError {}

/// Hours to download.
pub struct Fetch<'a> {
    pub import: &'a Import,
    pub source: &'a Source,
    pub origin: Origin,
    pub hours: RangeInclusive<u32>,
    /// Digests that the user gave; `None`: those that are published.
    pub sums: Option<Sums>,
}

/// An hour that the thread of downloads has dealt with.
struct Item {
    hour: u32,
    /// `None`: the archive has it.
    downloaded: Option<Downloaded>,
    /// Given back when the hour is imported.
    _room: OwnedSemaphorePermit,
}

impl Fetch<'_> {
    /// Downloads and imports the hours in order of time. An hour that cannot be had does not keep the next one out.
    ///
    /// # Errors
    /// The rest was left out.
    pub fn run(&self, stop: &Stop, tell: &mut dyn FnMut(Told)) -> Result<(), FetchError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(FetchError::Io)?;
        let sums = match &self.sums {
            Some(sums) => sums.clone(),
            None => {
                let found = runtime.block_on(until_stopped(stop, self.source.sums())).ok_or(FetchError::Stopped)?;
                let (sums, unusable) = found.map_err(FetchError::Sums)?;
                unusable.into_iter().for_each(|reason| tell(Told::NoSums(reason)));
                sums
            }
        };
        std::thread::scope(|scope| {
            let (send, receive) = mpsc::unbounded_channel();
            let downloads = || runtime.block_on(until_stopped(stop, self.download_all(send)));
            std::thread::Builder::new()
                .name("archive-fetch".into())
                .spawn_scoped(scope, downloads)
                .map_err(FetchError::Io)?;
            self.import_all(&sums, receive, stop, tell)
        })
    }

    /// Downloads all hours that are not there, in order, and hands each out. Ends when the receiver is gone.
    async fn download_all(&self, send: mpsc::UnboundedSender<Item>) {
        let room = Arc::new(Semaphore::new(AHEAD_MAX));
        let items = stream::iter(self.hours.clone()).map(|hour| {
            let room = room.clone();
            async move {
                let room = room.acquire_owned().await.ok()?;
                let downloaded = match (self.is_there(hour), self.import.options.place.has_room()) {
                    (true, _) => None,
                    (false, Ok(())) => Some(self.source.download(&self.name(hour)).await),
                    (false, Err(error)) => Some(Downloaded::Failed(error.to_string())),
                };
                Some(Item { hour, downloaded, _room: room })
            }
        });
        let mut items = std::pin::pin!(items.buffered(AT_ONCE));
        let all = async {
            while let Some(Some(item)) = items.next().await {
                if send.send(item).is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = all => {}
            () = send.closed() => {}
        }
    }

    fn import_all(
        &self,
        sums: &Sums,
        mut receive: mpsc::UnboundedReceiver<Item>,
        stop: &Stop,
        tell: &mut dyn FnMut(Told),
    ) -> Result<(), FetchError> {
        let (mut missing, mut failed) = (0, 0);
        let mut left = self.hours.clone();
        while let Some(Item { hour, downloaded, _room }) = receive.blocking_recv() {
            left.next();
            (missing, failed) = match &downloaded {
                Some(Downloaded::Missing) => (missing + 1, 0),
                Some(Downloaded::Failed(_)) => (0, failed + 1),
                Some(Downloaded::Whole(_)) | None => (0, 0),
            };
            match downloaded {
                None => tell(Told::There(hour)),
                Some(Downloaded::Missing) => tell(Told::Missing(hour)),
                Some(Downloaded::Failed(reason)) => tell(Told::Refused(hour, reason)),
                Some(Downloaded::Whole(part)) => match self.import_one(hour, &part, sums, stop) {
                    Ok(sealed) => tell(Told::Hour(Box::new(sealed))),
                    Err(_) if stop.is_set() => return Err(FetchError::Stopped),
                    Err(reason) => tell(Told::Refused(hour, reason)),
                },
            }
            if missing == MISSING_MAX {
                return Err(FetchError::Missing(missing));
            }
            if failed == FAILED_MAX {
                return Err(FetchError::Failed(failed));
            }
        }
        // The thread of downloads ends early only by the flag.
        if left.is_empty() { Ok(()) } else { Err(FetchError::Stopped) }
    }

    /// Imports a downloaded file. One that is refused is removed, so that the next run downloads it again.
    fn import_one(&self, hour: u32, part: &part::Part, sums: &Sums, stop: &Stop) -> Result<Sealed, String> {
        let name = self.name(hour);
        let sha256 = match sums.of(&name) {
            Ok(sha256) => sha256,
            Err(reason) => {
                part.remove();
                return Err(reason);
            }
        };
        let (origin, url) = (self.origin, self.source.url(&name));
        let fetched = Fetched { path: part.path().to_path_buf(), name, origin, hour, url, sha256 };
        let imported = self.import.fetched(&fetched, stop);
        let stays = match &imported {
            Err(ImportError::Build(BuildError::Stopped)) => true,
            Err(ImportError::Build(BuildError::Seal(error))) => matches!(
                error,
                SealError::Stopped
                    | SealError::Io(..)
                    | SealError::NoRoom { .. }
                    | SealError::Archive(archive::Error::Io(..))
            ),
            _ => false,
        };
        if !stays {
            part.remove();
        }
        imported.map_err(|error| error.to_string())
    }

    /// Whether the archive has a good hour with that name, which is not to be replaced.
    fn is_there(&self, hour: u32) -> bool {
        let place = &self.import.options.place;
        let entry = place.store.hour(self.origin.name(), Hour(hour));
        !place.replace && entry.is_some_and(|entry| entry.sidecar().is_ok())
    }

    fn name(&self, hour: u32) -> String {
        format!("{}.parquet", hour_name(self.origin.name(), Hour(hour)))
    }
}

/// The result of a future; `None`: the stop flag was set before.
async fn until_stopped<T>(stop: &Stop, future: impl Future<Output = T>) -> Option<T> {
    let stopped = async {
        while !stop.is_set() {
            tokio::time::sleep(STOP_EVERY).await;
        }
    };
    tokio::select! {
        done = future => Some(done),
        () = stopped => None,
    }
}

#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;
