//! The recorder: a thread writes captures as lines (gateway/docs/live-venues.md §7), so that neither the sockets nor
//! the feed wait for a disk.
//!
//! A recording marks what it lacks: where captures are missing (the process was down, the disk too slow or full), each
//! connection gets a gap line before its next line. No failure of the recorder stops the server.
//!
//! - A line is written to the file within about 20 ms, since a follower must get it within 100 ms.
//! - A file is synced every ten seconds. A power loss costs at most ten seconds of a recording, and the disk writes in
//!   small pieces beside the log.

pub mod hours;
#[cfg(test)]
mod tests;

use super::capture::{Capture, Payload, Source};
use crate::tape::{LINE_BYTES_MAX, Origin};
use engine::time::{SECOND, Timestamp};
use host::clock::Clock;
use host::thread::{self, Stop};
use hours::{Closer, Connections, Folder, note_connections};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most captures that wait for the disk, and most bytes of their texts.
const WAITING_MAX: usize = 65_536;
const WAITING_BYTES_MAX: u64 = 256 << 20;
/// How long lines are collected before one write call.
const GATHER: Duration = Duration::from_millis(20);
/// Interval at which the idle thread checks its timers.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Size of a batch, in bytes, that is written immediately.
const BATCH_BYTES: usize = 256 << 10;
const SYNC_EVERY: u64 = 10 * SECOND;
/// Wait before the next attempt after a failed write.
const RETRY_AFTER: u64 = SECOND;
/// How long a file stays open after its hour, for captures of that hour that are still queued.
const HOUR_GRACE: u64 = 2 * SECOND;

/// Reasons of gap lines that stand for captures that were not recorded.
pub(crate) const TOO_SLOW: &str = "the disk could not follow";
pub(crate) const NOT_WRITTEN: &str = "the recording could not be written";
pub(crate) const TOO_LONG: &str = "a message was too long to be recorded";

/// Counters of a recording since its start; no other memory access is ordered by them.
#[derive(Debug, Default)]
pub struct Figures {
    /// Lines written, gap lines included, and their bytes.
    pub lines: AtomicU64,
    pub bytes: AtomicU64,
    /// Captures that were not recorded.
    pub dropped: AtomicU64,
    /// Gap lines written: lost connections, and captures that were not recorded.
    pub gaps: AtomicU64,
}

/// The sending end of a recording.
#[derive(Clone)]
pub struct RecordSender {
    captures: SyncSender<Queued>,
    shared: Arc<Shared>,
    figures: Arc<Figures>,
}

/// State shared by the senders and the writer.
#[derive(Default)]
struct Shared {
    waiting_bytes: AtomicU64,
    /// How often the queue became full. Each capture carries the count at its time, so that the writer sees between
    /// which two captures some are missing.
    losses: AtomicU64,
    /// The last capture found no room.
    is_losing: AtomicBool,
}

/// A capture in the queue.
struct Queued {
    capture: Capture,
    losses: u64,
}

/// A running recorder.
pub struct Recorder {
    thread: Option<JoinHandle<()>>,
    stop: Stop,
    figures: Arc<Figures>,
}

impl Recorder {
    /// Records into a folder, which is created if it is missing.
    ///
    /// # Errors
    /// The folder or the file cannot be written, another recorder uses the folder, or the thread cannot be started.
    pub fn start(folder: &Path, clock: Clock) -> io::Result<(Recorder, RecordSender)> {
        let (captures, receiver) = sync_channel(WAITING_MAX);
        let (stop, figures, shared) = (Stop::default(), Arc::<Figures>::default(), Arc::<Shared>::default());
        let mut writer = Writer::open(Folder::take(folder)?, clock, figures.clone())?;
        let (stopping, taken) = (stop.clone(), shared.clone());
        let body = move || {
            writer.begin();
            take_all(&mut writer, &receiver, &taken, &stopping);
            writer.end();
        };
        let lost = || tracing::error!("the recorder thread died: nothing is recorded until the next start");
        let thread = thread::spawn_spare("recorder", body, lost)?;
        Ok((
            Recorder { thread: Some(thread), stop, figures: figures.clone() },
            RecordSender { captures, shared, figures },
        ))
    }

    pub fn figures(&self) -> Arc<Figures> {
        self.figures.clone()
    }
}

impl RecordSender {
    /// Queues a capture; never waits.
    pub fn send(&self, capture: &Capture) {
        if matches!(capture.payload, Payload::Alive) {
            return;
        }
        let RecordSender { captures, shared, figures } = self;
        let bytes = capture.text_bytes() as u64;
        let room = shared.waiting_bytes.fetch_add(bytes, Relaxed) + bytes <= WAITING_BYTES_MAX;
        let queued = || Queued { capture: capture.clone(), losses: shared.losses.load(Relaxed) };
        if room && captures.try_send(queued()).is_ok() {
            if shared.is_losing.swap(false, Relaxed) {
                tracing::info!(dropped = figures.dropped.load(Relaxed), "the recording continues");
            }
            return;
        }
        shared.waiting_bytes.fetch_sub(bytes, Relaxed);
        figures.dropped.fetch_add(1, Relaxed);
        if !shared.is_losing.swap(true, Relaxed) {
            shared.losses.fetch_add(1, Relaxed);
            tracing::warn!("the disk is slower than the venue: captures are dropped from the recording");
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been logged already.
            let _ = thread.join();
        }
    }
}

/// Writes captures until all senders are gone or the stop flag is set.
fn take_all(writer: &mut Writer, captures: &Receiver<Queued>, shared: &Shared, stop: &Stop) {
    let take = |writer: &mut Writer, queued: Queued| {
        shared.waiting_bytes.fetch_sub(queued.capture.text_bytes() as u64, Relaxed);
        writer.take(&queued);
    };
    loop {
        match captures.recv_timeout(LOOK_EVERY) {
            Ok(first) => {
                take(writer, first);
                if !stop.is_set() {
                    std::thread::sleep(GATHER);
                }
                for _ in 0..WAITING_MAX {
                    let Ok(next) = captures.try_recv() else { break };
                    take(writer, next);
                }
            }
            Err(RecvTimeoutError::Timeout) if stop.is_set() => return,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        writer.turn();
    }
}

/// The file of the current hour.
struct Open {
    hour: u32,
    path: PathBuf,
    file: File,
}

/// Writes lines into the hourly files.
struct Writer {
    folder: Folder,
    clock: Clock,
    figures: Arc<Figures>,
    closer: Closer,
    /// `None` after a failed write.
    open: Option<Open>,
    connections: Connections,
    /// Lines may be missing before the first one of an unknown connection.
    is_broken_off: bool,
    /// Lines that are not written yet.
    batch: Vec<u8>,
    /// The count of losses of the last capture.
    losses: u64,
    is_failing: bool,
    retry_at: Timestamp,
    synced_at: Timestamp,
    /// Time of the last line; times of lines never go backwards.
    last_at: Timestamp,
}

impl Writer {
    fn open(folder: Folder, clock: Clock, figures: Arc<Figures>) -> io::Result<Writer> {
        let now = clock.now();
        let hour = now.hour();
        let (path, file) = folder.open(hour)?;
        Ok(Writer {
            is_broken_off: folder.continues,
            folder,
            clock,
            figures,
            closer: Closer::start()?,
            open: Some(Open { hour, path, file }),
            connections: Connections::new(),
            batch: Vec::new(),
            losses: 0,
            is_failing: false,
            retry_at: now,
            synced_at: now,
            last_at: now,
        })
    }

    /// Finishes what an earlier run left: adds gap lines for its connections and packs its hours.
    fn begin(&mut self) {
        let files = self.folder.open_files().unwrap_or_default();
        for path in &files {
            if let Err(error) = note_connections(path, &mut self.connections) {
                tracing::warn!(file = %path.display(), %error, "a file of an earlier recording cannot be read; it gets no gap line for the pause");
            }
        }
        self.break_off("the recording was interrupted", |is_alive| is_alive);
        self.flush();
        self.pack_closed();
    }

    fn take(&mut self, Queued { capture, losses }: &Queued) {
        if self.losses != *losses {
            self.losses = *losses;
            self.is_broken_off = true;
            self.break_off(TOO_SLOW, |_| true);
        }
        self.last_at = self.last_at.max(capture.received);
        if self.open.is_none() && !self.try_again() {
            self.figures.dropped.fetch_add(1, Relaxed);
            return;
        }
        let hour = self.last_at.hour();
        if self.open.as_ref().is_some_and(|open| open.hour < hour) && !self.roll(hour) {
            self.figures.dropped.fetch_add(1, Relaxed);
            return;
        }
        let Source { origin, name, .. } = &*capture.source;
        let is_gap = matches!(capture.payload, Payload::Gap(_));
        if self.mark(*origin, name, !is_gap) && self.is_broken_off && !is_gap {
            self.gap(*origin, name, "the recording was interrupted");
        }
        let begins = self.batch.len();
        capture.line(&mut self.batch);
        if self.batch.len() - begins > LINE_BYTES_MAX {
            // Readers reject longer lines.
            self.batch.truncate(begins);
            self.figures.dropped.fetch_add(1, Relaxed);
            self.gap(*origin, name, TOO_LONG);
        } else if is_gap {
            self.figures.gaps.fetch_add(1, Relaxed);
        }
        if self.batch.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Between captures: writes the batch, ends an hour, syncs the file.
    fn turn(&mut self) {
        self.flush();
        let now = self.clock.now();
        if self.open.as_ref().is_some_and(|open| now.since(Timestamp::of_hour(open.hour + 1)) >= HOUR_GRACE) {
            self.roll(now.hour());
        }
        if let Some(open) = &self.open
            && now.since(self.synced_at) >= SYNC_EVERY
        {
            self.synced_at = now;
            self.closer.sync(&open.file);
        }
    }

    /// Ends the recording.
    fn end(&mut self) {
        self.last_at = self.last_at.max(self.clock.now());
        self.break_off("the recording ended", |is_alive| is_alive);
        self.flush();
        if let Some(Err(error)) = self.open.as_ref().map(|open| open.file.sync_all()) {
            tracing::warn!(%error, "the recording cannot be synced: its last seconds may be lost in a power failure");
        }
    }

    /// Writes gap lines for the connections that `wanted` selects.
    fn break_off(&mut self, reason: &str, wanted: impl Fn(bool) -> bool) {
        let mut connections = std::mem::take(&mut self.connections);
        for (venue, names) in &mut connections {
            let Some(origin) = Origin::named(venue) else { continue };
            for (name, is_alive) in names.iter_mut().filter(|(_, is_alive)| wanted(**is_alive)) {
                self.gap(origin, name, reason);
                *is_alive = false;
            }
        }
        self.connections = connections;
    }

    /// Notes whether a connection is alive; true: it is new.
    fn mark(&mut self, origin: Origin, name: &str, is_alive: bool) -> bool {
        let names = self.connections.entry(origin.name()).or_default();
        match names.get_mut(name) {
            Some(known) => {
                *known = is_alive;
                false
            }
            None => {
                names.insert(name.to_owned(), is_alive);
                true
            }
        }
    }

    /// Writes a gap line. Does nothing while the file cannot be written: after the failure every connection gets one.
    fn gap(&mut self, origin: Origin, name: &str, reason: &str) {
        if self.open.is_none() {
            return;
        }
        let source = Arc::new(Source { origin, number: 0, name: name.to_owned() });
        Capture { received: self.last_at, source, payload: Payload::Gap(reason.into()) }.line(&mut self.batch);
        self.figures.gaps.fetch_add(1, Relaxed);
    }

    /// Writes the batch; false if that failed.
    fn flush(&mut self) -> bool {
        let mut written = 0;
        let mut failed = None;
        while let Some(open) = &mut self.open
            && written < self.batch.len()
            && failed.is_none()
        {
            match open.file.write(&self.batch[written..]) {
                Ok(0) => failed = Some(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => failed = Some(error),
            }
        }
        let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.figures.bytes.fetch_add(written as u64, Relaxed);
        self.figures.lines.fetch_add(lines(&self.batch[..written]), Relaxed);
        self.figures.dropped.fetch_add(lines(&self.batch[written..]), Relaxed);
        self.batch.clear();
        self.batch.shrink_to(4 * BATCH_BYTES);
        if let Some(error) = failed {
            self.fail(&error);
        }
        self.open.is_some()
    }

    /// Marks the recording as failed; logged once, until a write succeeds.
    fn fail(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(%error, "the recording cannot be written: captures are dropped, and the write is retried every second");
        }
        self.open = None;
        self.is_broken_off = true;
        self.retry_at = self.clock.now().plus(RETRY_AFTER);
    }

    /// Opens the file again after a failure, when the retry is due.
    fn try_again(&mut self) -> bool {
        let now = self.clock.now();
        if now < self.retry_at || !self.begin_hour(self.last_at.max(now).hour()) {
            return false;
        }
        self.break_off(NOT_WRITTEN, |_| true);
        // If these lines cannot be written, more cannot either.
        if !self.flush() {
            return false;
        }
        self.is_failing = false;
        tracing::info!(dropped = self.figures.dropped.load(Relaxed), "the recording continues");
        self.pack_closed();
        true
    }

    /// Completes the file of the hour and begins the next one.
    fn roll(&mut self, hour: u32) -> bool {
        if !self.flush() {
            return false;
        }
        let is_open = self.begin_hour(hour);
        self.pack_closed();
        is_open
    }

    fn begin_hour(&mut self, hour: u32) -> bool {
        match self.folder.open(hour) {
            Ok((path, file)) => {
                self.open = Some(Open { hour, path, file });
                true
            }
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    /// Packs all hours except the current one.
    fn pack_closed(&self) {
        let Some(open) = &self.open else { return };
        let files = self.folder.open_files().unwrap_or_default();
        files.into_iter().filter(|path| *path != open.path).for_each(|path| self.closer.pack(path));
    }
}
