//! The recording: a thread of its own writes captures down as lines (upstream.md §7), so that neither the sockets nor
//! the feed wait for a disk.
//!
//! A recording never lies by leaving out: where captures are missing (the process was gone, the disk too slow or full),
//! every connection gets a gap line before the next one that is kept. Nothing that happens to it stops the server.
//!
//! - A line is on its way to the file within some 20 ms: a follower must have it within 100 ms.
//! - A file is synced every ten seconds: a power loss costs at most so much of a recording, which can do without,
//!   and the disk writes what has gathered in small pieces beside the log's.

pub mod hours;
#[cfg(test)]
mod tests;

use super::capture::{Capture, Heard, Source};
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

/// Captures that wait for the disk at most, and how much their texts may hold.
const WAITING_MAX: usize = 65_536;
const WAITING_BYTES_MAX: u64 = 256 << 20;
/// How long lines gather before they are written: one call of the system for all of them.
const GATHER: Duration = Duration::from_millis(20);
/// How often the thread looks up while nothing comes.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Lines are written at the latest when so much of them has gathered.
const BATCH_BYTES: usize = 256 << 10;
const SYNC_EVERY: u64 = 10 * SECOND;
/// How long after a failed write the next one is tried.
const RETRY_AFTER: u64 = SECOND;
/// How long an hour may last beyond its end for what was heard in it and is still on its way.
const HOUR_GRACE: u64 = 2 * SECOND;

/// What a recording came to since its start; plain numbers, nothing is ordered by them.
#[derive(Debug, Default)]
pub struct Figures {
    /// Lines written, gap lines among them, and their bytes.
    pub lines: AtomicU64,
    pub bytes: AtomicU64,
    /// Captures that were not kept.
    pub dropped: AtomicU64,
    /// Gap lines written: connections that were lost, and what could not be kept.
    pub gaps: AtomicU64,
}

/// The way into a recording.
#[derive(Clone)]
pub struct Keep {
    captures: SyncSender<Kept>,
    way: Arc<Way>,
    figures: Arc<Figures>,
}

/// What senders and the writer share.
#[derive(Default)]
struct Way {
    waiting_bytes: AtomicU64,
    /// Times that captures found no room. Each capture carries the count of its moment, so that the writer knows
    /// between which two of them some are missing.
    losses: AtomicU64,
    /// The last capture found no room.
    is_losing: AtomicBool,
}

/// A capture on its way to the file.
struct Kept {
    capture: Capture,
    losses: u64,
}

/// A recording in the making.
pub struct Recorder {
    thread: Option<JoinHandle<()>>,
    stop: Stop,
    figures: Arc<Figures>,
}

impl Recorder {
    /// Records into a folder, which is made where it is missing.
    ///
    /// # Errors
    /// The folder or the file cannot be written, another recording runs there, or there is no thread.
    pub fn start(folder: &Path, clock: Clock) -> io::Result<(Recorder, Keep)> {
        let (captures, receiver) = sync_channel(WAITING_MAX);
        let (stop, figures, way) = (Stop::default(), Arc::<Figures>::default(), Arc::<Way>::default());
        let mut writer = Writer::open(Folder::take(folder)?, clock, figures.clone())?;
        let (stopping, taken) = (stop.clone(), way.clone());
        let body = move || {
            writer.begin();
            take_all(&mut writer, &receiver, &taken, &stopping);
            writer.end();
        };
        let lost = || tracing::error!("nothing is recorded any more: the recorder died");
        let thread = thread::spawn_spare("recorder", body, lost)?;
        Ok((Recorder { thread: Some(thread), stop, figures: figures.clone() }, Keep { captures, way, figures }))
    }

    pub fn figures(&self) -> Arc<Figures> {
        self.figures.clone()
    }
}

impl Keep {
    /// Records it; never waits.
    pub fn keep(&self, capture: &Capture) {
        if matches!(capture.heard, Heard::Alive) {
            return;
        }
        let Keep { captures, way, figures } = self;
        let bytes = capture.text_bytes() as u64;
        let room = way.waiting_bytes.fetch_add(bytes, Relaxed) + bytes <= WAITING_BYTES_MAX;
        let kept = || Kept { capture: capture.clone(), losses: way.losses.load(Relaxed) };
        if room && captures.try_send(kept()).is_ok() {
            if way.is_losing.swap(false, Relaxed) {
                tracing::info!(dropped = figures.dropped.load(Relaxed), "the recording goes on");
            }
            return;
        }
        way.waiting_bytes.fetch_sub(bytes, Relaxed);
        figures.dropped.fetch_add(1, Relaxed);
        if !way.is_losing.swap(true, Relaxed) {
            way.losses.fetch_add(1, Relaxed);
            tracing::warn!("the disk cannot follow the venue: captures are not recorded");
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A panic there has been told already.
            let _ = thread.join();
        }
    }
}

/// Writes down what comes until everybody who could send is gone, or the end is wanted.
fn take_all(writer: &mut Writer, captures: &Receiver<Kept>, way: &Way, stop: &Stop) {
    let take = |writer: &mut Writer, kept: Kept| {
        way.waiting_bytes.fetch_sub(kept.capture.text_bytes() as u64, Relaxed);
        writer.take(&kept);
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

/// The hour being written.
struct Open {
    hour: u32,
    path: PathBuf,
    file: File,
}

/// Writes lines into the files of the hours.
struct Writer {
    folder: Folder,
    clock: Clock,
    figures: Arc<Figures>,
    closer: Closer,
    /// `None` where the last write failed.
    open: Option<Open>,
    connections: Connections,
    /// Lines may be missing before the first one of a connection that is not known yet.
    is_broken_off: bool,
    /// Lines that were not written yet.
    batch: Vec<u8>,
    /// Count of losses that the last capture carried.
    losses: u64,
    is_failing: bool,
    retry_at: Timestamp,
    synced_at: Timestamp,
    /// Moment of the last line: none is before it.
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

    /// What an earlier run left: its connections are broken off, its hours are closed.
    fn begin(&mut self) {
        let files = self.folder.open_files().unwrap_or_default();
        for path in &files {
            if let Err(error) = note_connections(path, &mut self.connections) {
                tracing::warn!(file = %path.display(), %error, "an earlier recording cannot be read");
            }
        }
        self.break_off("the recording was interrupted", |heard| heard);
        self.flush();
        self.pack_closed();
    }

    fn take(&mut self, Kept { capture, losses }: &Kept) {
        if self.losses != *losses {
            self.losses = *losses;
            self.is_broken_off = true;
            self.break_off("the disk could not follow", |_| true);
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
        let is_gap = matches!(capture.heard, Heard::Gap(_));
        if self.hear(*origin, name, !is_gap) && self.is_broken_off && !is_gap {
            self.gap(*origin, name, "the recording was interrupted");
        }
        let begins = self.batch.len();
        capture.line(&mut self.batch);
        if self.batch.len() - begins > LINE_BYTES_MAX {
            // No reader would take it.
            self.batch.truncate(begins);
            self.figures.dropped.fetch_add(1, Relaxed);
            self.gap(*origin, name, "a message was too long to be recorded");
        } else if is_gap {
            self.figures.gaps.fetch_add(1, Relaxed);
        }
        if self.batch.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Between captures: what has gathered goes to the file, hours end, what was written is synced.
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

    /// Nothing more comes.
    fn end(&mut self) {
        self.last_at = self.last_at.max(self.clock.now());
        self.break_off("the recording ended", |heard| heard);
        self.flush();
        if let Some(Err(error)) = self.open.as_ref().map(|open| open.file.sync_all()) {
            tracing::warn!(%error, "the recording could not be synced");
        }
    }

    /// Gap lines for the connections of which `wanted` says so.
    fn break_off(&mut self, reason: &str, wanted: impl Fn(bool) -> bool) {
        let mut connections = std::mem::take(&mut self.connections);
        for (venue, names) in &mut connections {
            let Some(origin) = Origin::named(venue) else { continue };
            for (name, heard) in names.iter_mut().filter(|(_, heard)| wanted(**heard)) {
                self.gap(origin, name, reason);
                *heard = false;
            }
        }
        self.connections = connections;
    }

    /// Notes whether a connection spoke or broke; true: it is new.
    fn hear(&mut self, origin: Origin, name: &str, heard: bool) -> bool {
        let names = self.connections.entry(origin.name()).or_default();
        match names.get_mut(name) {
            Some(known) => {
                *known = heard;
                false
            }
            None => {
                names.insert(name.to_owned(), heard);
                true
            }
        }
    }

    /// While nothing can be written nothing is said: behind a failure every connection gets its line.
    fn gap(&mut self, origin: Origin, name: &str, reason: &str) {
        if self.open.is_none() {
            return;
        }
        let source = Arc::new(Source { origin, number: 0, name: name.to_owned() });
        Capture { received: self.last_at, source, heard: Heard::Gap(reason.into()) }.line(&mut self.batch);
        self.figures.gaps.fetch_add(1, Relaxed);
    }

    /// Writes what has gathered; false where that cannot be done.
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

    /// The recording cannot be written for now; told once, until it goes on.
    fn fail(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(%error, "the recording cannot be written: captures are dropped until it can");
        }
        self.open = None;
        self.is_broken_off = true;
        self.retry_at = self.clock.now().plus(RETRY_AFTER);
    }

    /// Opens the file anew behind a failure, when it is time.
    fn try_again(&mut self) -> bool {
        let now = self.clock.now();
        if now < self.retry_at || !self.begin_hour(self.last_at.max(now).hour()) {
            return false;
        }
        self.break_off("the recording could not be written", |_| true);
        // A disk that cannot take these cannot take more.
        if !self.flush() {
            return false;
        }
        self.is_failing = false;
        tracing::info!(dropped = self.figures.dropped.load(Relaxed), "the recording goes on");
        self.pack_closed();
        true
    }

    /// The hour is over: its file is complete, and the next one begins.
    fn roll(&mut self, hour: u32) -> bool {
        if !self.flush() {
            return false;
        }
        let begun = self.begin_hour(hour);
        self.pack_closed();
        begun
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

    /// Has all hours packed but the one being written.
    fn pack_closed(&self) {
        let Some(open) = &self.open else { return };
        let files = self.folder.open_files().unwrap_or_default();
        files.into_iter().filter(|path| *path != open.path).for_each(|path| self.closer.pack(path));
    }
}
