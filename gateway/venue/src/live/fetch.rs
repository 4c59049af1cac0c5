//! REST calls to a venue: within its budget, with retries, and with every response passed to the feed.

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
/// Upper bound on a wait that the venue asks for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Upper bound on the size of a response, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Idle connections to one host.
const IDLE_MAX: usize = 4;

/// One REST service of a venue.
#[derive(Clone)]
pub struct Fetch {
    client: Client,
    /// Scheme, host and prefix, without a slash at the end.
    base: String,
    /// For responses of calls that belong to no connection.
    port: Port,
    budget: Arc<Budget>,
    pace: Pace,
}

/// The response to a call.
pub struct Answer {
    pub status: u16,
    pub body: Utf8Bytes,
}

/// The HTTP client that all services of a process share.
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

    /// `GET path`. The response has been passed to the feed when this returns. `None`: all attempts failed, or the feed
    /// has ended.
    pub async fn get(&self, path: &str) -> Option<Answer> {
        self.call(&self.port, path, || self.client.get(format!("{}{path}", self.base)), || true).await
    }

    /// The same on behalf of a connection, whose frames continue from the response.
    pub async fn get_for(&self, port: &Port, path: &str) -> Option<Answer> {
        self.call(port, path, || self.client.get(format!("{}{path}", self.base)), || true).await
    }

    /// `POST path` with a JSON body, on behalf of a connection. The response is dropped, and `None` returned, when
    /// `is_current` is false by then: the request was made for a connection that has ended since.
    pub async fn post_for(&self, port: &Port, path: &str, body: &str, is_current: impl Fn() -> bool) -> Option<Answer> {
        let request = || {
            let request = self.client.post(format!("{}{path}", self.base));
            request.header("content-type", "application/json").body(body.to_owned())
        };
        self.call(port, path, request, is_current).await
    }

    async fn call(
        &self,
        port: &Port,
        path: &str,
        request: impl Fn() -> reqwest::RequestBuilder,
        is_current: impl Fn() -> bool,
    ) -> Option<Answer> {
        let mut wait = self.pace.retry_first;
        for attempt in 1.. {
            self.budget.take().await;
            let (failure, requested_wait, refused) = match request().send().await {
                Ok(response) => {
                    let status = response.status();
                    let requested_wait = retry_after(&response);
                    if let Some(time) = server_time(response.headers()) {
                        port.health.time.report(time);
                    }
                    let refused =
                        status == StatusCode::TOO_MANY_REQUESTS || requested_wait.is_some() && is_temporary(status);
                    if refused {
                        // The limit covers all calls, not only this one.
                        self.budget.hold(requested_wait.unwrap_or(wait));
                    }
                    match read(response).await {
                        Ok(body) if !is_temporary(status) || attempt == ATTEMPTS_MAX => {
                            // A response such as 429 counts as a failed call too.
                            self.count(port, !is_temporary(status));
                            if !is_current() {
                                return None;
                            }
                            // Queued before later captures of the connection.
                            port.answer(path, status.as_u16(), body.clone()).await.ok()?;
                            return Some(Answer { status: status.as_u16(), body });
                        }
                        Ok(_) => (format!("status {status}"), requested_wait, refused),
                        Err(error) => (error, requested_wait, refused),
                    }
                }
                Err(error) => (reason(error), None, false),
            };
            self.count(port, false);
            if attempt == ATTEMPTS_MAX {
                tracing::warn!(path, failure, "the venue does not respond; the call is given up");
                break;
            }
            tracing::debug!(path, failure, attempt, "a call failed; it is retried");
            // A refused call waits for the hold instead.
            if !refused {
                tokio::time::sleep(requested_wait.unwrap_or(wait)).await;
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

/// Whether a status is temporary, so that the call may be retried (gateway/docs/live-venues.md §3.1).
fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 425 | 429) || status.is_server_error()
}

/// The wait that a response asks for, at most a minute.
pub(crate) fn retry_after(response: &Response) -> Option<Duration> {
    let seconds: u64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// The venue's server time: the `Date` of the response plus its `Age` in a cache, in whole seconds.
fn server_time(headers: &HeaderMap) -> Option<Timestamp> {
    let date = rfc2822::DateTimeParser::new().parse_timestamp(headers.get(DATE)?.as_bytes()).ok()?;
    let age = headers.get(AGE).and_then(|age| age.to_str().ok()?.trim().parse::<u32>().ok()).unwrap_or(0);
    Some(Timestamp::from_secs(u64::try_from(date.as_second()).ok()? + u64::from(age)))
}

/// The innermost cause of an error; the outer messages carry no detail.
pub(crate) fn reason(error: reqwest::Error) -> String {
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
            return Err(format!("a response of more than {ANSWER_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    String::from_utf8(body).map(Utf8Bytes::from).map_err(|_| "a response that is not UTF-8 text".into())
}
