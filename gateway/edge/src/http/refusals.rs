//! A log line for each refused request, at `debug`: why a client does not get on is then told by the server.
//!
//! An operation of `/v1/ws/trade` that is refused leaves one like its HTTP twin; its request id is made here, and a verbose
//! answer shows it. A line has the request id, the operation, status and code, and of a key that was shown at most its prefix, which is no
//! secret. Nothing else that a client sent is in it. At most [`LINES_PER_SECOND_MAX`] lines a second are written; the others
//! are counted, and told once a second.

use super::code::Code;
use crate::app::App;
use engine::time::{SECOND, Timestamp};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Lines of one second, of all threads together.
pub const LINES_PER_SECOND_MAX: u32 = 1_000;
/// Characters of a key that may be shown: those of `key_prefix` (keys.md §1).
const PREFIX_CHARS: usize = 16;
/// Shorter texts are not shown at all: what follows the prefix would be too little to be a secret.
const KEY_CHARS_MIN: usize = 2 * PREFIX_CHARS;

/// The beginning of a key that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown([u8; PREFIX_CHARS]);

impl Shown {
    /// The beginning of `text` where it looks like a key of this brand: its prefix, `_live_` or `_test_`, then lower-case
    /// hex. Of anything else nothing is shown.
    pub fn of(text: &[u8], key_prefix: &str) -> Option<Shown> {
        let rest = text.strip_prefix(key_prefix.as_bytes())?;
        let random = rest.strip_prefix(b"_live_").or_else(|| rest.strip_prefix(b"_test_"))?;
        let is_hex = random.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        // Of a long brand the prefix alone may be all that is shown.
        let sound = is_hex && text.len() >= KEY_CHARS_MIN && random.len() >= PREFIX_CHARS;
        sound.then(|| Shown(*text.first_chunk().expect("it is longer")))
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// How many lines there were in this second.
#[derive(Debug, Default)]
pub struct Refusals(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    second: u64,
    written: u32,
    left_out: u64,
}

impl Lines {
    /// Whether a line may be written at `now`; else it is counted, and true for the first one of a second.
    fn take(&mut self, now: Timestamp) -> Result<(), bool> {
        let second = now.0 / SECOND;
        if second != self.second {
            (self.second, self.written) = (second, 0);
        }
        if self.written < LINES_PER_SECOND_MAX {
            self.written += 1;
            return Ok(());
        }
        self.left_out += 1;
        Err(self.left_out == 1)
    }
}

/// Whether refusals are logged: one load where they are not.
#[inline]
pub fn is_on() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

impl Refusals {
    /// Logs a refused request. Where that is one too many, a task of this thread tells the number a second later.
    #[cold]
    pub fn tell(
        &self,
        app: &App,
        request_id: &str,
        operation: Option<&str>,
        shown: Option<Shown>,
        code: Code,
        status: u16,
    ) {
        let taken = self.0.lock().take(app.clock.now());
        match taken {
            Ok(()) => {
                let key = shown.as_ref().map(Shown::text);
                tracing::debug!(request_id, operation, status, code = code.header(), key, "request refused");
            }
            Err(false) => {}
            Err(true) => {
                let lines = Arc::clone(&self.0);
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let left_out = std::mem::take(&mut lines.lock().left_out);
                    tracing::debug!(left_out, "more requests were refused than are logged in a second");
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_key_is_shown() {
        let hex = "4f0c9d2ab1e35f77".repeat(4);
        let rows = [
            (format!("svc_live_{hex}"), Some("svc_live_4f0c9d2")),
            (format!("svc_test_{hex}"), Some("svc_test_4f0c9d2")),
            (format!("svc_live_{}", &hex[..40]), Some("svc_live_4f0c9d2")),
            (format!("svc_live_{}", &hex[..22]), None),
            ("svc_live_".to_owned(), None),
            (format!("svc_live_{}", "secret words".repeat(6)), None),
            (format!("svc_live_{}", hex.to_uppercase()), None),
            (format!("other_live_{hex}"), None),
            (hex.clone(), None),
            ("550e8400-e29b-41d4-a716-446655440000".to_owned(), None),
            ("a password of somebody, long enough to be a key".to_owned(), None),
            (String::new(), None),
        ];
        for (text, expected) in &rows {
            let shown = Shown::of(text.as_bytes(), "svc");
            assert_eq!(shown.as_ref().map(Shown::text), *expected, "{text}");
        }
        println!("keys in the log: {} cases", rows.len());
    }

    #[test]
    fn a_second_has_so_many_lines_and_the_rest_is_counted() {
        let mut lines = Lines::default();
        let mut taken = |second: u64| lines.take(Timestamp(second * SECOND + 5));
        for line in 0..LINES_PER_SECOND_MAX {
            assert_eq!(taken(7), Ok(()), "line {line}");
        }
        assert_eq!((taken(7), taken(7), taken(8)), (Err(true), Err(false), Ok(())));
        assert_eq!(lines.left_out, 2);
    }
}
