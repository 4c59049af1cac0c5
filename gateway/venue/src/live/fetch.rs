//! REST calls to a venue: within its budget, patient with what passes, and everything that is answered goes to the feed.

use super::budget::Budget;
use super::outlet::Port;
use super::pace::Pace;
use engine::time::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{AGE, DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Attempts of one call.
const ATTEMPTS_MAX: u32 = 4;
/// Longest wait that a venue may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Idle connections to one host.
const IDLE_MAX: usize = 4;

/// One REST service of a venue.
#[derive(Clone)]
pub struct Fetch {
    client: Client,
    /// Scheme, host and prefix, without a slash at the end.
    base: String,
    /// Answers of calls that belong to no connection.
    port: Port,
    budget: Arc<Budget>,
    pace: Pace,
}

/// What a call came to, when it came to an answer.
pub struct Answer {
    pub status: u16,
    pub body: Utf8Bytes,
}

/// The client that all services of a process share.
///
/// # Errors
/// The system's roots of trust cannot be read.
pub fn client(pace: Pace) -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(concat!("papertape/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(10))
        .timeout(pace.call_timeout)
        .pool_max_idle_per_host(IDLE_MAX)
        .build()
}

impl Fetch {
    pub fn new(client: Client, base: &str, port: Port, budget: Budget, pace: Pace) -> Fetch {
        Fetch { client, base: base.trim_end_matches('/').to_owned(), port, budget: Arc::new(budget), pace }
    }

    /// `GET path`; the answer has gone to the feed when this returns. `None`: no answer in all attempts, or the feed is
    /// gone.
    pub async fn get(&self, path: &str) -> Option<Answer> {
        self.call(&self.port, path, || self.client.get(format!("{}{path}", self.base)), || true).await
    }

    /// The same on behalf of a connection, whose frames continue what is answered.
    pub async fn get_for(&self, port: &Port, path: &str) -> Option<Answer> {
        self.call(port, path, || self.client.get(format!("{}{path}", self.base)), || true).await
    }

    /// `POST path` with a JSON body, on behalf of a connection. An answer goes to the feed only while it `counts`: one
    /// that crosses the end of what it was asked for is dropped, and is none.
    pub async fn post_for(&self, port: &Port, path: &str, body: &str, counts: impl Fn() -> bool) -> Option<Answer> {
        let request = || {
            let request = self.client.post(format!("{}{path}", self.base));
            request.header("content-type", "application/json").body(body.to_owned())
        };
        self.call(port, path, request, counts).await
    }

    async fn call(
        &self,
        port: &Port,
        path: &str,
        request: impl Fn() -> reqwest::RequestBuilder,
        counts: impl Fn() -> bool,
    ) -> Option<Answer> {
        let mut wait = self.pace.retry_first;
        for attempt in 1.. {
            self.budget.take().await;
            let (failure, asked_wait, refused) = match request().send().await {
                Ok(response) => {
                    let status = response.status();
                    let asked_wait = retry_after(&response);
                    if let Some(time) = told_time(response.headers()) {
                        port.health.time.tells(time);
                    }
                    let refused = status == StatusCode::TOO_MANY_REQUESTS || asked_wait.is_some() && passes(status);
                    if refused {
                        // It is not this call that there are too many of.
                        self.budget.hold(asked_wait.unwrap_or(wait));
                    }
                    match read(response).await {
                        Ok(body) if !passes(status) || attempt == ATTEMPTS_MAX => {
                            // An answer that says "not now" is a failed call all the same.
                            self.count(port, !passes(status));
                            if !counts() {
                                return None;
                            }
                            // In line before whatever is told of the connection from now on.
                            port.answer(path, status.as_u16(), body.clone()).await.ok()?;
                            return Some(Answer { status: status.as_u16(), body });
                        }
                        Ok(_) => (format!("status {status}"), asked_wait, refused),
                        Err(error) => (error, asked_wait, refused),
                    }
                }
                Err(error) => (reason(error), None, false),
            };
            self.count(port, false);
            if attempt == ATTEMPTS_MAX {
                tracing::warn!(path, failure, "the venue does not answer; the call is given up");
                break;
            }
            tracing::debug!(path, failure, attempt, "a call failed; it is made again");
            // Where all calls are held, this one waits with them.
            if !refused {
                tokio::time::sleep(asked_wait.unwrap_or(wait)).await;
            }
            wait *= 2;
        }
        None
    }

    fn count(&self, port: &Port, answered: bool) {
        match answered {
            true => port.health.rest_failures.store(0, Relaxed),
            false => {
                port.health.rest_failures.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Whether a status says that the same call may be answered later (upstream.md §3.1).
fn passes(status: StatusCode) -> bool {
    matches!(status.as_u16(), 425 | 429) || status.is_server_error()
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds: u64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// The time of the venue's server as an answer tells it: the second of its `Date`, and how long a cache had it since.
fn told_time(headers: &HeaderMap) -> Option<Timestamp> {
    let date = rfc2822::DateTimeParser::new().parse_timestamp(headers.get(DATE)?.as_bytes()).ok()?;
    let age = headers.get(AGE).and_then(|age| age.to_str().ok()?.trim().parse::<u32>().ok()).unwrap_or(0);
    Some(Timestamp::from_secs(u64::try_from(date.as_second()).ok()? + u64::from(age)))
}

/// What went wrong, down to the cause; the outermost words say only that something did.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

async fn read(mut response: Response) -> Result<Utf8Bytes, String> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(reason)? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(format!("an answer of more than {ANSWER_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    String::from_utf8(body).map(Utf8Bytes::from).map_err(|_| "an answer that is no text".into())
}
