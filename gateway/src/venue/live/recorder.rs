//! The recording: a thread of its own writes captures down as lines (upstream.md §7), so that neither the sockets nor
//! the feed wait for a disk.

use super::capture::Capture;
use crate::thread::{self, Stop};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Captures that wait for the disk at most.
const WAITING_MAX: usize = 65_536;
/// A line is on its way to the file after at most this long, so that a recording can be followed.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

/// The way into a recording.
#[derive(Clone)]
pub struct Keep {
    captures: SyncSender<Capture>,
}

/// A recording in the making.
pub struct Recorder {
    thread: Option<JoinHandle<()>>,
    stop: Stop,
}

impl Recorder {
    /// Records into a folder, which is made where it is missing.
    ///
    /// # Errors
    /// The folder or the file cannot be written, or there is no thread.
    pub fn start(folder: &Path) -> io::Result<(Recorder, Keep)> {
        std::fs::create_dir_all(folder)?;
        let file = OpenOptions::new().create(true).append(true).open(folder.join("tape.ndjson"))?;
        let (captures, receiver) = sync_channel(WAITING_MAX);
        let stop = Stop::default();
        let stopping = stop.clone();
        let thread = thread::spawn("recorder", move || write(BufWriter::new(file), &receiver, &stopping))?;
        Ok((Recorder { thread: Some(thread), stop }, Keep { captures }))
    }
}

impl Keep {
    /// Records it; never waits.
    pub fn keep(&self, capture: &Capture) {
        let _ = self.captures.try_send(capture.clone());
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

fn write(mut file: BufWriter<File>, captures: &Receiver<Capture>, stop: &Stop) {
    let mut line = Vec::new();
    loop {
        match captures.recv_timeout(FLUSH_EVERY) {
            Ok(capture) => {
                line.clear();
                capture.line(&mut line);
                let _ = file.write_all(&line);
            }
            Err(RecvTimeoutError::Timeout) => {
                let _ = file.flush();
                if stop.is_set() {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
