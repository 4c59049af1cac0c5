//! Requests to the server outside of the measurement, one at a time: what is traded, what it is, which orders it has.

use super::keys::Keys;
use super::options::Target;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Timeout of one answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Most retries of a request that the server refused because it was full.
const TRIES_MAX: u32 = 100;
/// Keys that are tried before the file is reported as wrong.
const KEYS_TRIED_MAX: usize = 16;
/// Length of an answer that is shown in an error.
const SHOWN_BYTES_MAX: usize = 200;

/// A client of one server.
pub struct Ask {
    target: Target,
    address: SocketAddr,
    sender: Option<SendRequest<Empty<Bytes>>>,
}

impl Ask {
    /// Resolves the server's address, or returns one sentence that says why it cannot.
    pub async fn open(target: &Target) -> Result<Ask, String> {
        let silent = |why: String| format!("no server answers at {target}: {why}");
        let found = timeout(PATIENCE, tokio::net::lookup_host((target.host.as_str(), target.port))).await;
        let found = found.map_err(|_| silent("its name was not resolved in time".into()))?;
        let addresses = found.map_err(|error| silent(error.to_string()))?;
        let mut why = "its name has no address".to_owned();
        for address in addresses {
            match connect(address).await {
                Ok(sender) => return Ok(Ask { target: target.clone(), address, sender: Some(sender) }),
                Err(error) => why = error,
            }
        }
        Err(silent(why))
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The first of these keys that the server accepts; the others are not checked before the run.
    pub async fn key_let_in(&mut self, keys: &Keys) -> Result<String, String> {
        let mut refused = String::new();
        let tried = keys.users.iter().take(KEYS_TRIED_MAX);
        for user in tried.clone() {
            let (status, _, body) = self.get("/v1/markets?limit=1", &user.api_key).await?;
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                return Ok(user.api_key.clone());
            }
            refused = shown(status, &body);
        }
        Err(format!("{} lets in none of the first {} keys: {refused}", self.target, tried.len()))
    }

    /// An answer that must be there.
    pub async fn read<T: DeserializeOwned>(&mut self, path: &str, key: &str) -> Result<T, String> {
        self.read_if_there(path, key).await?.ok_or_else(|| format!("{}{path} does not exist", self.target))
    }

    /// An answer, or `None` for 404.
    pub async fn read_if_there<T: DeserializeOwned>(&mut self, path: &str, key: &str) -> Result<Option<T>, String> {
        let (status, body) = self.answer(path, key).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            _ => self.understood(path, status, &body).map(Some),
        }
    }

    /// An answer that must exist for an accepted key; the inner error is the refusal of the key.
    pub async fn read_as<T: DeserializeOwned>(&mut self, path: &str, key: &str) -> Result<Result<T, String>, String> {
        let (status, body) = self.answer(path, key).await?;
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(Err(shown(status, &body))),
            _ => self.understood(path, status, &body).map(Ok),
        }
    }

    fn understood<T: DeserializeOwned>(&self, path: &str, status: StatusCode, body: &[u8]) -> Result<T, String> {
        let target = &self.target;
        if status != StatusCode::OK {
            return Err(format!("{target}{path} answers {}", shown(status, body)));
        }
        serde_json::from_slice(body)
            .map_err(|error| format!("{target}{path} sent an answer that cannot be parsed: {error}"))
    }

    /// Any answer. A request that the server refuses because it is full is sent again.
    async fn answer(&mut self, path: &str, key: &str) -> Result<(StatusCode, Bytes), String> {
        for _ in 0..TRIES_MAX {
            let (status, retry_after, body) = self.get(path, key).await?;
            match status {
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => sleep(retry_after).await,
                _ => return Ok((status, body)),
            }
        }
        Err(format!("{}{path} was refused {TRIES_MAX} times because the server was full", self.target))
    }

    /// Passes on the body of an answer piece by piece; the inner error is the refusal of the request, or that of `each`.
    pub async fn stream(
        &mut self,
        path: &str,
        key: &str,
        mut each: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<Result<(), String>, String> {
        let failed = |why: String| format!("{}{path}: {why}", self.target);
        for _ in 0..TRIES_MAX {
            // A connection of its own, since a half-read answer would occupy another.
            let mut sender = connect(self.address).await.map_err(failed)?;
            let request = Request::get(path).header(HOST, &self.target.authority).header("X-API-Key", key);
            let request = request.body(Empty::new()).map_err(|error| failed(error.to_string()))?;
            let late = || failed(format!("no answer within {} s", PATIENCE.as_secs()));
            let answered = timeout(PATIENCE, sender.send_request(request)).await.map_err(|_| late())?;
            let answer = answered.map_err(|error| failed(error.to_string()))?;
            let (status, retry_after) = (answer.status(), retry_after(&answer));
            let mut body = answer.into_body();
            match status {
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                    sleep(retry_after).await;
                    continue;
                }
                StatusCode::OK => {}
                _ => {
                    let text = body.collect().await.map_err(|error| failed(error.to_string()))?.to_bytes();
                    return Ok(Err(format!("{path} answers {}", shown(status, &text))));
                }
            }
            while let Some(frame) = timeout(PATIENCE, body.frame()).await.map_err(|_| late())? {
                let frame = frame.map_err(|error| failed(error.to_string()))?;
                if let Some(Err(why)) = frame.data_ref().map(|data| each(data)) {
                    return Ok(Err(format!("{path}: {why}")));
                }
            }
            return Ok(Ok(()));
        }
        Err(failed(format!("refused {TRIES_MAX} times because the server was full")))
    }

    async fn get(&mut self, path: &str, key: &str) -> Result<(StatusCode, Duration, Bytes), String> {
        // The server closes an idle connection without notice; the second one is new.
        for last in [false, true] {
            let mut sender = match self.sender.take().filter(|sender| !sender.is_closed()) {
                Some(sender) => sender,
                None => connect(self.address)
                    .await
                    .map_err(|error| format!("no server answers at {}: {error}", self.target))?,
            };
            let request = Request::get(path).header(HOST, &self.target.authority).header("X-API-Key", key);
            let request = request.body(Empty::new()).map_err(|error| format!("{path}: {error}"))?;
            let answered = timeout(PATIENCE, async {
                let answer = sender.send_request(request).await?;
                let (status, retry_after) = (answer.status(), retry_after(&answer));
                Ok::<_, hyper::Error>((status, retry_after, answer.into_body().collect().await?.to_bytes()))
            });
            match answered.await {
                Ok(Ok(answer)) => {
                    self.sender = Some(sender);
                    return Ok(answer);
                }
                Ok(Err(_)) if !last => {}
                Ok(Err(error)) => return Err(format!("{}{path}: {error}", self.target)),
                Err(_) => return Err(format!("{}{path} is not answered within {} s", self.target, PATIENCE.as_secs())),
            }
        }
        unreachable!("the last try returns")
    }
}

/// The beginning of an answer that is an error.
fn shown(status: StatusCode, body: &[u8]) -> String {
    format!("{} {}", status.as_u16(), String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]))
}

/// The delay that a refusal advises; one second if it advises none.
fn retry_after<T>(answer: &Response<T>) -> Duration {
    let seconds = answer.headers().get(RETRY_AFTER).map(HeaderValue::to_str);
    let seconds = seconds.and_then(|text| text.ok()?.parse().ok()).unwrap_or(1);
    Duration::from_secs(seconds).min(PATIENCE)
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Empty<Bytes>>, String> {
    let stream = timeout(PATIENCE, TcpStream::connect(address)).await;
    let stream = stream.map_err(|_| format!("no connection within {} s", PATIENCE.as_secs()))?;
    let stream = stream.map_err(|error| error.to_string())?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // The next request sees how the connection ended.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}
