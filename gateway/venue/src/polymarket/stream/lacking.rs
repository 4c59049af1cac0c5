//! Which tokens of a socket lack their whole book: what was subscribed and was sent none (the first dump of a socket may
//! be empty), and what the feed asked to have anew.

use crate::loose::Loose;
use ahash::AHashMap;
use serde::Deserialize;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How long a book may take to come on the socket, at most.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Tokens of one call, of the 500 that the venue takes.
const TOKENS_MAX: usize = 400;

/// Shared by the socket, which expects books, and by the task that asks for them.
pub struct Lacking {
    state: Mutex<State>,
    bell: Notify,
    wait: Duration,
}

#[derive(Default)]
struct State {
    /// Without a connection nothing would carry on with a book.
    open: bool,
    /// How many times something was subscribed or given up, over all connections.
    turn: u64,
    /// What is subscribed, and at which turn.
    subscribed: AHashMap<String, u64>,
    /// When each is to be asked for.
    tokens: AHashMap<String, Instant>,
}

/// Tokens whose books are asked for by one call.
#[derive(Debug)]
pub struct Asked {
    pub tokens: Vec<String>,
    /// Of the moment it was asked.
    turn: u64,
}

/// What a frame says of itself.
#[derive(Deserialize)]
struct Heading<'a> {
    #[serde(borrow, default)]
    event_type: Loose<'a>,
    #[serde(borrow, default)]
    asset_id: Loose<'a>,
}

impl Lacking {
    /// `silent_after`: a socket that brings nothing for so long is given up, so a book is asked for well before.
    pub fn new(silent_after: Duration) -> Lacking {
        Lacking { state: Mutex::default(), bell: Notify::new(), wait: WAIT_MAX.min(silent_after / 3) }
    }

    /// The connection is open and these were subscribed on it.
    pub fn open(&self, tokens: &[&str]) {
        self.lock().open = true;
        self.expect(tokens);
    }

    /// The connection is gone: the next one tells all books anew, and no answer that is on its way counts.
    pub fn close(&self) {
        let mut state = self.lock();
        *state = State { turn: state.turn + 1, ..State::default() };
    }

    /// These were subscribed: their books should come on the socket now.
    pub fn expect(&self, tokens: &[&str]) {
        let due = Instant::now() + self.wait;
        let mut state = self.lock();
        state.turn += 1;
        let turn = state.turn;
        state.subscribed.extend(tokens.iter().map(|token| ((*token).to_owned(), turn)));
        state.tokens.extend(tokens.iter().map(|token| ((*token).to_owned(), due)));
        self.bell.notify_one();
    }

    /// Their books are wanted anew, by a call.
    pub fn ask(&self, tokens: &[String]) {
        let mut state = self.lock();
        let now = Instant::now();
        for token in tokens {
            if state.subscribed.contains_key(token) {
                state.tokens.insert(token.clone(), now);
            }
        }
        self.bell.notify_one();
    }

    /// Whether an answer still counts: its tokens have been subscribed, without a break, since before it was asked. What
    /// changed in a break would be in neither the answer nor the frames behind it.
    pub fn counts(&self, asked: &Asked) -> bool {
        let state = self.lock();
        let holds = |token: &String| state.subscribed.get(token).is_some_and(|turn| *turn <= asked.turn);
        state.open && asked.tokens.iter().all(holds)
    }

    /// They were asked for in vain.
    pub fn again(&self, asked: Asked) {
        let mut state = self.lock();
        let due = Instant::now() + self.wait;
        for token in asked.tokens {
            if state.subscribed.contains_key(&token) {
                state.tokens.entry(token).or_insert(due);
            }
        }
    }

    /// They are of no interest any more.
    pub fn forget(&self, tokens: &[&str]) {
        let mut state = self.lock();
        for token in tokens {
            state.subscribed.remove(*token);
            state.tokens.remove(*token);
        }
    }

    /// A frame of the socket: the books in it need not be asked for.
    pub fn hear(&self, text: &str) {
        let mut state = self.lock();
        // Books come behind a subscription, and else seldom: most frames cost no more than this.
        if state.tokens.is_empty() || !text.contains("\"book\"") {
            return;
        }
        let text = Loose::of(text.trim());
        for part in text.elements().unwrap_or_else(|| vec![text]) {
            if let Some(Heading { event_type, asset_id }) = part.object()
                && event_type.text().as_deref() == Some("book")
                && let Some(token) = asset_id.text()
            {
                state.tokens.remove(&*token);
            }
        }
    }

    /// The next ones whose time has come; they are expected no more.
    pub async fn due(&self) -> Asked {
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
                    return Asked { tokens: due, turn: state.turn };
                }
                state.tokens.values().min().copied()
            };
            match next {
                // Whichever comes first, things are looked at again.
                Some(next) => drop(timeout_at(next, self.bell.notified()).await),
                None => self.bell.notified().await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_no_socket_brings_is_asked_for() {
        let lacking = Lacking::new(Duration::from_secs(30));
        let asked = async |wait_ms: u64| {
            let asked = tokio::time::timeout(Duration::from_millis(wait_ms), lacking.due()).await;
            let mut asked = asked.unwrap_or(Asked { tokens: Vec::new(), turn: 0 });
            asked.tokens.sort();
            asked
        };
        let due = async |wait_ms: u64| asked(wait_ms).await.tokens.join(" ");
        lacking.ask(&["9".into()]);
        assert_eq!(due(10_000).await, "", "without a connection nothing is asked for");
        lacking.open(&["1", "2", "3", "4"]);
        for frame in [
            r#"[{"event_type":"book","asset_id":"1"},{"event_type":"price_change","asset_id":"4"}]"#,
            r#"{"event_type":"book","asset_id":"2"}"#,
            r#"{"event_type":"last_trade_price","asset_id":"3","x":"book"}"#,
            r#"[{"event_type":"book","#,
        ] {
            lacking.hear(frame);
        }
        lacking.expect(&["5", "6"]);
        lacking.forget(&["5"]);
        assert_eq!(due(2_000).await, "", "a socket has its time");
        assert_eq!(due(2_000).await, "3 4 6");
        assert_eq!(due(10_000).await, "", "once");
        lacking.ask(&["1".into(), "3".into()]);
        let vain = asked(10).await;
        assert_eq!(vain.tokens.join(" "), "1 3", "what the feed wants is asked for at once");
        lacking.forget(&["1"]);
        lacking.again(vain);
        assert_eq!(due(10_000).await, "3", "and again what is still wanted");
        lacking.expect(&["1"]);
        assert_eq!(due(10_000).await, "1");
        lacking.expect(&["1"]);
        lacking.close();
        assert_eq!(due(10_000).await, "", "the next connection brings them");
        println!("books that lack: 9 cases");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_crosses_a_break_does_not_count() {
        type Row = (&'static str, fn(&Lacking), bool);
        let rows: &[Row] = &[
            ("nothing", |_| {}, true),
            ("another subscription", |lacking| lacking.expect(&["3"]), true),
            ("another that is given up", |lacking| lacking.forget(&["2"]), true),
            ("the end of the connection", Lacking::close, false),
            (
                "the next connection",
                |lacking| {
                    lacking.close();
                    lacking.open(&["1", "2"]);
                },
                false,
            ),
            ("it is given up", |lacking| lacking.forget(&["1"]), false),
            (
                "it is given up and subscribed again",
                |lacking| {
                    lacking.forget(&["1"]);
                    lacking.expect(&["1"]);
                },
                false,
            ),
            ("it is subscribed anew", |lacking| lacking.expect(&["1"]), false),
        ];
        for (meanwhile, happens, counts) in rows {
            let lacking = Lacking::new(Duration::from_secs(30));
            lacking.open(&["1", "2"]);
            lacking.hear(r#"[{"event_type":"book","asset_id":"1"},{"event_type":"book","asset_id":"2"}]"#);
            lacking.ask(&["1".into()]);
            let asked = lacking.due().await;
            happens(&lacking);
            assert_eq!(lacking.counts(&asked), *counts, "{meanwhile}");
        }
        println!("answers that cross something: {} cases", rows.len());
    }
}
