//! A log line for each refused request, at `debug`, so that an operator sees why a client's requests fail.
//!
//! A refused operation of `/v1/ws/trade` has one as well. Its request id is made for the line, and a verbose response
//! has it. A line has the request id, the operation, status and code, and of a key at most its prefix, which is not
//! secret. It contains nothing else that a client sent. At most [`LINES_PER_SECOND_MAX`] lines a second are written;
//! the others are counted, and the count is logged once a second.

use super::code::Code;
use crate::reads::Reads;
use engine::time::{SECOND, Timestamp};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Lines of one second, for all threads together.
pub const LINES_PER_SECOND_MAX: u32 = 1_000;
/// Characters of a key that may be logged: the length of `key_prefix`.
const PREFIX_CHARS: usize = 16;
/// Shorter texts are not logged: the part after the prefix would be too short to be secret.
const KEY_CHARS_MIN: usize = 2 * PREFIX_CHARS;

/// The first characters of a key, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPrefix([u8; PREFIX_CHARS]);

impl KeyPrefix {
    /// The first characters of `text` if it looks like a key of this brand: its prefix, `_live_` or `_test_`, then
    /// lower-case hex digits. `None` for any other text.
    pub fn of(text: &[u8], key_prefix: &str) -> Option<KeyPrefix> {
        let rest = text.strip_prefix(key_prefix.as_bytes())?;
        let random = rest.strip_prefix(b"_live_").or_else(|| rest.strip_prefix(b"_test_"))?;
        let is_hex = random.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        // A long brand may be longer than the part that is logged.
        let sound = is_hex && text.len() >= KEY_CHARS_MIN && random.len() >= PREFIX_CHARS;
        sound.then(|| KeyPrefix(*text.first_chunk().expect("it is longer")))
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// The lines written in the current second.
#[derive(Debug, Default)]
pub struct Refusals(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    second: u64,
    written: u32,
    left_out: u64,
}

impl Lines {
    /// Counts a line at `now`. `Err`: the line must not be written; `true` for the first such line of a second.
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

/// Whether refusals are logged. One load if they are not.
#[inline]
pub fn is_on() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

impl Refusals {
    /// Logs a refused request. Over the limit, a task of this thread logs a second later how many lines were left out.
    #[cold]
    pub fn log(
        &self,
        reads: &Reads,
        request_id: &str,
        operation: Option<&str>,
        key_prefix: Option<KeyPrefix>,
        code: Code,
        status: u16,
    ) {
        let taken = self.0.lock().take(reads.clock.now());
        match taken {
            Ok(()) => {
                let key = key_prefix.as_ref().map(KeyPrefix::text);
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
    fn only_the_prefix_of_a_key_is_logged() {
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
            ("a password of a user, long enough to be a key".to_owned(), None),
            (String::new(), None),
        ];
        for (text, expected) in &rows {
            let prefix = KeyPrefix::of(text.as_bytes(), "svc");
            assert_eq!(prefix.as_ref().map(KeyPrefix::text), *expected, "{text}");
        }
        println!("keys in the log: {} cases", rows.len());
    }

    #[test]
    fn lines_over_the_limit_of_a_second_are_counted() {
        let mut lines = Lines::default();
        let mut taken = |second: u64| lines.take(Timestamp(second * SECOND + 5));
        for line in 0..LINES_PER_SECOND_MAX {
            assert_eq!(taken(7), Ok(()), "line {line}");
        }
        assert_eq!((taken(7), taken(7), taken(8)), (Err(true), Err(false), Ok(())));
        assert_eq!(lines.left_out, 2);
    }
}
