//! Comparison of the files that are read with the digests in their sidecar, once for each version of a file.
//!
//! Reading a gigabyte for its digest takes about a second, and a reader waits no longer than two. So it is done beside the
//! reads, by one thread at low priority, which begins when it is needed first. Reads find damage by themselves where
//! pages and blocks have checksums: pages of our Parquet files, and all of an index.

use super::{HourEntry, index_path};
use crate::error::{Error, Refusal};
use crate::files;
use crate::sidecar::Piece;
use parking_lot::{Condvar, Mutex};
use rustix::process::setpriority_process;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

/// Hours that wait. Those beyond it are asked for again when they are read again.
const WAITING_MAX: usize = 256;

/// The lowest priority, as nice(2) has it.
const PRIORITY: i32 = 19;

/// The thread, and what it has to do. Dropped, it ends.
pub(super) struct Checker {
    work: Arc<Work>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Work {
    queue: Mutex<Queue>,
    changed: Condvar,
    is_ended: AtomicBool,
    /// Of the store: it grows when an hour becomes quarantined.
    version: Arc<AtomicU64>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<HourEntry>>,
    is_busy: bool,
}

impl Checker {
    pub(super) fn new(version: Arc<AtomicU64>) -> Checker {
        let work = Work { queue: Mutex::default(), changed: Condvar::new(), is_ended: AtomicBool::new(false), version };
        Checker { work: Arc::new(work), thread: Mutex::new(None) }
    }

    /// Asks for the comparison of an hour's files, if that was not asked for before.
    pub(super) fn ask(&self, entry: &Arc<HourEntry>) {
        let mut queue = self.work.queue.lock();
        if queue.waiting.len() >= WAITING_MAX || entry.found.is_asked.swap(true, Ordering::Relaxed) {
            return;
        }
        queue.waiting.push_back(entry.clone());
        drop(queue);
        self.work.changed.notify_all();
        let mut thread = self.thread.lock();
        if thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let work = self.work.clone();
            // Without a thread, only reads find damage. The next hour that is read tries again.
            *thread = Builder::new().name("archive-check".to_owned()).spawn(move || work.run()).ok();
        }
    }

    /// Compares the files of an hour now, on this thread.
    #[cfg(test)]
    pub(super) fn check(&self, entry: &HourEntry) {
        self.work.check_and_note(entry);
    }

    /// Waits until nothing is left to do.
    #[cfg(test)]
    pub(super) fn finish(&self) {
        let mut queue = self.work.queue.lock();
        while queue.is_busy || !queue.waiting.is_empty() {
            self.work.changed.wait(&mut queue);
        }
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        self.work.is_ended.store(true, Ordering::Relaxed);
        // Under the lock, so that the thread is not between its look at the flag and its wait.
        drop(self.work.queue.lock());
        self.work.changed.notify_all();
        // It ends after the piece of a file that it reads.
        if let Some(thread) = self.thread.get_mut().take() {
            let _ = thread.join();
        }
    }
}

impl Work {
    fn run(&self) {
        // On Linux a priority belongs to the thread. The work is done without it, too.
        let _ = setpriority_process(None, PRIORITY);
        while let Some(entry) = self.next() {
            self.check_and_note(&entry);
            self.end();
        }
    }

    /// The next hour; `None`: the end.
    fn next(&self) -> Option<Arc<HourEntry>> {
        let mut queue = self.queue.lock();
        loop {
            if self.is_ended.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(entry) = queue.waiting.pop_front() {
                queue.is_busy = true;
                return Some(entry);
            }
            self.changed.wait(&mut queue);
        }
    }

    fn end(&self) {
        self.queue.lock().is_busy = false;
        self.changed.notify_all();
    }

    fn check_and_note(&self, entry: &HourEntry) {
        if self.check(entry) {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Compares the files of an hour with their digests. Returns whether it is quarantined now and was not before.
    fn check(&self, entry: &HourEntry) -> bool {
        let Ok(sidecar) = entry.stated() else { return false };
        let index = index_path(&entry.path);
        let files = [(&entry.path, &sidecar.parquet), (&index, &sidecar.index)];
        files.into_iter().any(|(path, piece)| {
            let found = self.compare(path, piece);
            // Files that were replaced or removed meanwhile are of no interest: the hour gets another entry.
            found.is_err_and(|refusal| entry.is_as_listed() && entry.note_damage(path, &refusal))
        })
    }

    fn compare(&self, path: &Path, piece: &Piece) -> Result<(), Refusal> {
        match files::digest_until(path, &self.is_ended) {
            Ok(Some((digest, bytes))) if (crate::hex(&digest), bytes) != (piece.sha256.clone(), piece.bytes) => {
                Err(Refusal::new("the file has another digest than its sidecar states"))
            }
            Err(Error::Refused(_, refusal)) => Err(refusal),
            // A file that cannot be read now may be readable later.
            Ok(_) | Err(Error::Io(..)) => Ok(()),
        }
    }
}
