//! Standard output and standard error of a server. A full disk, a closed pipe or a stalled reader must neither end nor
//! stop the process: log lines go through a bounded queue to a separate thread, and lines that cannot be written are
//! counted.
//!
//! `tracing-appender` does not do that: it does not count failed writes, and it prints its own failures to the stream
//! that failed.

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Log lines that wait to be written; further ones are lost.
const LINES_MAX: usize = 1_024;
/// Least time between two log lines that report lost ones.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Pause before a full non-blocking stream is tried again.
const FULL_PAUSE: Duration = Duration::from_millis(10);
/// How long the end of the process waits for its last lines.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The log of the process. There is one standard error, so there is one log.
static LOG: OnceLock<LogLines> = OnceLock::new();

/// The queue to the log's stream. Each `write` is one line; it never blocks and never fails.
#[derive(Clone, Debug)]
pub struct LogLines {
    queue: Sender<Item>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Item {
    Line(Box<[u8]>),
    /// Answered when all lines before it are written or lost.
    Flush(Sender<()>),
}

impl LogLines {
    /// Starts a thread that writes lines to `stream`.
    ///
    /// # Errors
    /// The system's, if no thread can be created.
    fn start(stream: impl Write + Send + 'static) -> io::Result<LogLines> {
        let (queue, items) = bounded(LINES_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let counter = lost.clone();
        Builder::new().name("log".to_owned()).spawn(move || Writer::new(stream, counter).run(&items))?;
        Ok(LogLines { queue, lost })
    }

    /// Lines that could not be written so far.
    fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Waits until the lines so far are written, at most for `patience`.
    fn flush_within(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let (done, flushed) = bounded(1);
        if self.queue.send_deadline(Item::Flush(done), until).is_ok() {
            let _ = flushed.recv_deadline(until);
        }
    }
}

impl Write for LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.queue.try_send(Item::Line(line.into())) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => _ = self.lost.fetch_add(1, Relaxed),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of the process on standard error, started by the first call.
///
/// # Errors
/// The system's, if no thread can be created.
pub fn log_lines() -> io::Result<LogLines> {
    if let Some(log) = LOG.get() {
        return Ok(log.clone());
    }
    let started = LogLines::start(io::stderr())?;
    Ok(LOG.get_or_init(|| started).clone())
}

/// Log lines of the process that could not be written so far.
pub fn log_lines_lost() -> u64 {
    LOG.get().map_or(0, LogLines::lost)
}

/// Gives the log a second to write its last lines; for the end of the process.
pub fn flush_log() {
    if let Some(log) = LOG.get() {
        log.flush_within(LAST_WORDS);
    }
}

/// Writes a text to standard output or standard error, and gives up after a second: a pipe without a reader does not
/// block the caller.
pub fn write_with_timeout<W: Write>(stream: impl FnOnce() -> W + Send + 'static, text: String) {
    let (done, written) = bounded(1);
    let write = move || {
        let mut stream = stream();
        // A stream that accepts nothing cannot be reported anywhere.
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
        let _ = done.send(());
    };
    if Builder::new().name("say".to_owned()).spawn(write).is_ok() {
        let _ = written.recv_timeout(LAST_WORDS);
    }
}

/// Sends the messages of panics through the log: the standard hook writes to standard error itself, and would block on
/// a pipe without a reader. A panic often ends the process, so the hook waits up to a second for its message to be
/// written.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let backtrace = std::backtrace::Backtrace::capture();
        let mut text = format!("thread '{}' panicked: {panic}\n", thread.name().unwrap_or("<unnamed>"));
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            text.push_str(&format!("{backtrace}\n"));
        }
        match LOG.get() {
            Some(log) => {
                let _ = log.clone().write(text.as_bytes());
                log.flush_within(LAST_WORDS);
            }
            None => write_with_timeout(io::stderr, text),
        }
    }));
}

/// The receiving end of the queue.
struct Writer<W> {
    stream: W,
    lost: Arc<AtomicU64>,
    /// The number of lost lines that the log has reported, and when it last did.
    reported: u64,
    reported_at: Option<Instant>,
    /// The last write stopped inside a line.
    is_inside_line: bool,
}

impl<W: Write> Writer<W> {
    fn new(stream: W, lost: Arc<AtomicU64>) -> Writer<W> {
        Writer { stream, lost, reported: 0, reported_at: None, is_inside_line: false }
    }

    fn run(mut self, items: &Receiver<Item>) {
        let mut works = true;
        loop {
            match items.recv_timeout(REPORT_EVERY) {
                Ok(Item::Line(line)) => works = self.line(&line),
                Ok(Item::Flush(done)) => _ = done.send(()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if works {
                self.report_lost();
            }
        }
    }

    /// Writes one line; returns false if it is lost.
    fn line(&mut self, line: &[u8]) -> bool {
        let written = (!self.is_inside_line || self.whole(b"\n")) && self.whole(line);
        if !written {
            self.lost.fetch_add(1, Relaxed);
        }
        written
    }

    /// Writes all of these bytes, which end a line. Returns whether that succeeded.
    fn whole(&mut self, line: &[u8]) -> bool {
        let is_whole = self.bytes(line).is_ok();
        if is_whole {
            self.is_inside_line = false;
        }
        is_whole
    }

    fn bytes(&mut self, mut left: &[u8]) -> io::Result<()> {
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    left = &left[bytes..];
                    self.is_inside_line = true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(FULL_PAUSE),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reports how many lines are missing, through the log itself so that the line has its format.
    fn report_lost(&mut self) {
        let lost = self.lost.load(Relaxed);
        if lost == self.reported || self.reported_at.is_some_and(|at| at.elapsed() < REPORT_EVERY) {
            return;
        }
        let lines = lost - self.reported;
        tracing::warn!(lines, "log lines before this one are lost: standard error could not be written");
        self.reported = lost;
        self.reported_at = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    /// Results of the stream's next writes; a write without an entry succeeds.
    #[derive(Clone, Copy, Debug)]
    enum Taken {
        Bytes(usize),
        Fault(ErrorKind),
    }

    #[derive(Clone, Default)]
    struct Stream {
        answers: Arc<Mutex<Vec<Taken>>>,
        text: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Stream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut answers = self.answers.lock();
            let taken = if answers.is_empty() { Taken::Bytes(bytes.len()) } else { answers.remove(0) };
            match taken {
                Taken::Bytes(count) => {
                    let count = count.min(bytes.len());
                    self.text.lock().extend_from_slice(&bytes[..count]);
                    Ok(count)
                }
                Taken::Fault(kind) => Err(kind.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lost_lines_are_counted_and_the_next_line_is_whole() {
        use Taken::{Bytes, Fault};
        // Results of the stream's writes, what three lines leave in it, and how many are lost.
        let rows: &[(&[Taken], &str, u64)] = &[
            (&[], "one\ntwo\nthree\n", 0),
            (&[Bytes(1), Bytes(2), Bytes(1)], "one\ntwo\nthree\n", 0),
            (&[Fault(ErrorKind::Interrupted)], "one\ntwo\nthree\n", 0),
            (&[Fault(ErrorKind::WouldBlock), Bytes(2), Fault(ErrorKind::WouldBlock)], "one\ntwo\nthree\n", 0),
            (&[Fault(ErrorKind::StorageFull)], "two\nthree\n", 1),
            (&[Fault(ErrorKind::BrokenPipe), Fault(ErrorKind::BrokenPipe)], "three\n", 2),
            (&[Bytes(2), Fault(ErrorKind::StorageFull)], "on\ntwo\nthree\n", 1),
            // The line after half a line fails, too: while it ends the half line, and after that.
            (&[Bytes(2), Fault(ErrorKind::StorageFull), Fault(ErrorKind::StorageFull)], "on\nthree\n", 2),
            (&[Bytes(2), Fault(ErrorKind::StorageFull), Bytes(1), Fault(ErrorKind::BrokenPipe)], "on\nthree\n", 2),
            (&[Bytes(0)], "two\nthree\n", 1),
        ];
        for (answers, text, lost) in rows {
            let stream = Stream::default();
            *stream.answers.lock() = answers.to_vec();
            let mut log = LogLines::start(stream.clone()).expect("a thread");
            for line in ["one\n", "two\n", "three\n"] {
                log.write_all(line.as_bytes()).expect("it never fails");
            }
            log.flush_within(Duration::from_secs(60));
            assert_eq!(
                (String::from_utf8_lossy(&stream.text.lock()).as_ref(), log.lost()),
                (*text, *lost),
                "{answers:?}"
            );
        }
        println!("streams that fail: {} cases", rows.len());
    }

    /// A stream that blocks until it is opened.
    struct Stalled(Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Open permanently once the sender is gone.
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stalled_reader_costs_lines_and_blocks_no_thread() {
        let (open, closed) = bounded(0);
        let mut log = LogLines::start(Stalled(closed)).expect("a thread");
        for _ in 0..3 * LINES_MAX {
            log.write_all(b"line\n").expect("it never fails");
        }
        // The thread may hold one line.
        let least = 2 * LINES_MAX as u64 - 1;
        assert!((least..=least + 1).contains(&log.lost()), "{}", log.lost());
        // Returns although nothing is written.
        log.flush_within(Duration::from_millis(1));
        drop(open);
        log.flush_within(Duration::from_secs(60));
        let lost = log.lost();
        log.write_all(b"line\n").expect("it never fails");
        log.flush_within(Duration::from_secs(60));
        assert_eq!(log.lost(), lost, "it accepts lines again");
    }
}
