//! Tokens of a socket whose books are missing: subscribed ones without a snapshot (the first dump of a socket may be
//! empty), and those that the feed requested again.

use crate::loose::Loose;
use ahash::AHashMap;
use serde::Deserialize;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Longest wait for a book on the socket.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Most tokens in one call; the venue allows 500.
const TOKENS_MAX: usize = 400;

/// Shared by the socket, which expects books, and by the task that requests them.
pub struct MissingBooks {
    state: Mutex<State>,
    added: Notify,
    wait: Duration,
}

#[derive(Default)]
struct State {
    /// Without a connection no change would follow a book.
    open: bool,
    /// Number of subscriptions and unsubscriptions so far, over all connections.
    turn: u64,
    /// The subscribed tokens, and the turn of each subscription.
    subscribed: AHashMap<String, u64>,
    /// When each missing book is to be requested.
    tokens: AHashMap<String, Instant>,
}

/// The tokens of one call.
#[derive(Debug)]
pub struct BookRequest {
    pub tokens: Vec<String>,
    /// The turn at the time of the call.
    turn: u64,
}

/// The fields of a frame that are used here.
#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow, default)]
    event_type: Loose<'a>,
    #[serde(borrow, default)]
    asset_id: Loose<'a>,
}

impl MissingBooks {
    /// `silent_after` is the timeout of the socket; books are requested well before it.
    pub fn new(silent_after: Duration) -> MissingBooks {
        MissingBooks { state: Mutex::default(), added: Notify::new(), wait: WAIT_MAX.min(silent_after / 3) }
    }

    /// The connection is open, with these tokens subscribed.
    pub fn open(&self, tokens: &[&str]) {
        self.lock().open = true;
        self.expect(tokens);
    }

    /// The connection has ended: the next one sends all books again, and pending responses do not count.
    pub fn close(&self) {
        let mut state = self.lock();
        *state = State { turn: state.turn + 1, ..State::default() };
    }

    /// These tokens were subscribed: their books are expected on the socket.
    pub fn expect(&self, tokens: &[&str]) {
        let due = Instant::now() + self.wait;
        let mut state = self.lock();
        state.turn += 1;
        let turn = state.turn;
        state.subscribed.extend(tokens.iter().map(|token| ((*token).to_owned(), turn)));
        state.tokens.extend(tokens.iter().map(|token| ((*token).to_owned(), due)));
        self.added.notify_one();
    }

    /// Requests books immediately, by a call.
    pub fn request(&self, tokens: &[String]) {
        let mut state = self.lock();
        let now = Instant::now();
        for token in tokens {
            if state.subscribed.contains_key(token) {
                state.tokens.insert(token.clone(), now);
            }
        }
        self.added.notify_one();
    }

    /// Whether a response still counts: all its tokens have been subscribed without interruption since before the call.
    /// A change during an interruption would be neither in the response nor in later frames.
    pub fn is_current(&self, request: &BookRequest) -> bool {
        let state = self.lock();
        let is_subscribed = |token: &String| state.subscribed.get(token).is_some_and(|turn| *turn <= request.turn);
        state.open && request.tokens.iter().all(is_subscribed)
    }

    /// The call failed: the books are requested again later.
    pub fn retry(&self, request: BookRequest) {
        let mut state = self.lock();
        let due = Instant::now() + self.wait;
        for token in request.tokens {
            if state.subscribed.contains_key(&token) {
                state.tokens.entry(token).or_insert(due);
            }
        }
    }

    /// These tokens were unsubscribed.
    pub fn forget(&self, tokens: &[&str]) {
        let mut state = self.lock();
        for token in tokens {
            state.subscribed.remove(*token);
            state.tokens.remove(*token);
        }
    }

    /// Looks for books in a frame of the socket; they need not be requested.
    pub fn receive(&self, text: &str) {
        let mut state = self.lock();
        // Books come after a subscription and rarely otherwise: most frames end here.
        if state.tokens.is_empty() || !text.contains("\"book\"") {
            return;
        }
        let text = Loose::of(text.trim());
        for part in text.elements().unwrap_or_else(|| vec![text]) {
            if let Some(Header { event_type, asset_id }) = part.object()
                && event_type.text().as_deref() == Some("book")
                && let Some(token) = asset_id.text()
            {
                state.tokens.remove(&*token);
            }
        }
    }

    /// Waits for the next due tokens, and stops expecting their books.
    pub async fn due(&self) -> BookRequest {
        loop {
            let next = {
                let mut state = self.lock();
                let now = Instant::now();
                let due = state.tokens.iter().filter(|(_, due)| **due <= now);
                let due: Vec<String> = due.take(TOKENS_MAX).map(|(token, _)| token.clone()).collect();
                if !due.is_empty() {
                    for token in &due {
                        state.tokens.remove(token);
                    }
                    return BookRequest { tokens: due, turn: state.turn };
                }
                state.tokens.values().min().copied()
            };
            match next {
                // Checked again at that time or when tokens are added.
                Some(next) => drop(timeout_at(next, self.added.notified()).await),
                None => self.added.notified().await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn books_that_no_socket_brings_are_requested() {
        let missing = MissingBooks::new(Duration::from_secs(30));
        let request = async |wait_ms: u64| {
            let request = tokio::time::timeout(Duration::from_millis(wait_ms), missing.due()).await;
            let mut request = request.unwrap_or(BookRequest { tokens: Vec::new(), turn: 0 });
            request.tokens.sort();
            request
        };
        let due = async |wait_ms: u64| request(wait_ms).await.tokens.join(" ");
        missing.request(&["9".into()]);
        assert_eq!(due(10_000).await, "", "requested without a connection");
        missing.open(&["1", "2", "3", "4"]);
        for frame in [
            r#"[{"event_type":"book","asset_id":"1"},{"event_type":"price_change","asset_id":"4"}]"#,
            r#"{"event_type":"book","asset_id":"2"}"#,
            r#"{"event_type":"last_trade_price","asset_id":"3","x":"book"}"#,
            r#"[{"event_type":"book","#,
        ] {
            missing.receive(frame);
        }
        missing.expect(&["5", "6"]);
        missing.forget(&["5"]);
        assert_eq!(due(2_000).await, "", "requested before the wait is over");
        assert_eq!(due(2_000).await, "3 4 6");
        assert_eq!(due(10_000).await, "", "once");
        missing.request(&["1".into(), "3".into()]);
        let failed = request(10).await;
        assert_eq!(failed.tokens.join(" "), "1 3", "a request of the feed is due immediately");
        missing.forget(&["1"]);
        missing.retry(failed);
        assert_eq!(due(10_000).await, "3", "a failed request is repeated for subscribed tokens");
        missing.expect(&["1"]);
        assert_eq!(due(10_000).await, "1");
        missing.expect(&["1"]);
        missing.close();
        assert_eq!(due(10_000).await, "", "the next connection sends them");
        println!("missing books: 9 cases");
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_after_an_interruption_does_not_count() {
        type Row = (&'static str, fn(&MissingBooks), bool);
        let rows: &[Row] = &[
            ("nothing", |_| {}, true),
            ("another subscription", |missing| missing.expect(&["3"]), true),
            ("another is unsubscribed", |missing| missing.forget(&["2"]), true),
            ("the end of the connection", MissingBooks::close, false),
            (
                "the next connection",
                |missing| {
                    missing.close();
                    missing.open(&["1", "2"]);
                },
                false,
            ),
            ("it is unsubscribed", |missing| missing.forget(&["1"]), false),
            (
                "it is unsubscribed and subscribed again",
                |missing| {
                    missing.forget(&["1"]);
                    missing.expect(&["1"]);
                },
                false,
            ),
            ("it is subscribed again", |missing| missing.expect(&["1"]), false),
        ];
        for (meanwhile, act, counts) in rows {
            let missing = MissingBooks::new(Duration::from_secs(30));
            missing.open(&["1", "2"]);
            missing.receive(r#"[{"event_type":"book","asset_id":"1"},{"event_type":"book","asset_id":"2"}]"#);
            missing.request(&["1".into()]);
            let request = missing.due().await;
            act(&missing);
            assert_eq!(missing.is_current(&request), *counts, "{meanwhile}");
        }
        println!("responses and interruptions: {} cases", rows.len());
    }
}
