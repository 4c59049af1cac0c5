//! Requests to the admin listener of a running server.

use crate::Failure;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Timeout of the connection.
const CONNECTED_WITHIN: Duration = Duration::from_secs(20);
/// Timeout of an answer, for which a server may first read its log, and of each read after that.
pub const SENT_WITHIN: Duration = Duration::from_secs(600);
/// Longest body of an answer that is not a stream.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const TOKEN_BYTES_MAX: u64 = 4_096;

/// Malformed options. The exit code is 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// No server has answered: there is none, or the connection was lost.
#[derive(Debug)]
pub struct Unanswered(String);

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unanswered {}

/// Sends a body to a route of the admin listener at `url`, and returns the JSON of its answer.
///
/// # Errors
/// [`Usage`] for a malformed address or token; [`Unanswered`]; else the error of the server or the system.
pub fn post(url: &str, token_file: &Path, path: &str, body: &Value) -> Result<Value, Failure> {
    let (runtime, answer) = send(url, token_file, path, body)?;
    Ok(serde_json::from_slice(&whole(&runtime, answer)).unwrap_or_default())
}

/// The same; the body of the answer comes in pieces.
///
/// # Errors
/// As [`post`].
pub fn send(url: &str, token_file: &Path, path: &str, body: &Value) -> Result<(Runtime, Incoming), Failure> {
    let authority = authority(url)?;
    let token = token(token_file)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(ask(authority, &token, path, body));
    let (status, body) = asked.map_err(|error| Unanswered(format!("{authority}: {error}")))?;
    if status == StatusCode::OK {
        return Ok((runtime, body));
    }
    let answer: Value = serde_json::from_slice(&whole(&runtime, body)).unwrap_or_default();
    let word = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    Err(format!("{authority} refused: {} {} {}", status.as_u16(), word("error"), word("message")).trim_end().into())
}

/// The body of a short answer; empty if it cannot be read.
fn whole(runtime: &Runtime, body: Incoming) -> Bytes {
    let text = runtime.block_on(async { timeout(SENT_WITHIN, Limited::new(body, ANSWER_BYTES_MAX).collect()).await });
    text.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default()
}

/// Host and port of an address like `http://127.0.0.1:9464`.
fn authority(url: &str) -> Result<&str, Usage> {
    let rest = url.strip_prefix("http://").map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    let sound = |rest: &&str| {
        let port = rest.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        matches!(port, Some(Ok(1..)))
            && !rest.starts_with(':')
            && rest.bytes().all(|b| b.is_ascii_graphic() && !b"/?#@".contains(&b))
    };
    rest.filter(sound).ok_or_else(|| Usage(format!("--admin {url}: must be an address like http://127.0.0.1:9464")))
}

fn token(file: &Path) -> Result<String, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Usage(format!("--token-file {}: {why}", file.display()));
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(TOKEN_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| wrong(&error))?;
    let token = text.trim_end();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong(&"holds no token").into());
    }
    Ok(token.to_owned())
}

async fn ask(authority: &str, token: &str, path: &str, body: &Value) -> Result<(StatusCode, Incoming), Failure> {
    let stream = timeout(CONNECTED_WITHIN, TcpStream::connect(authority)).await;
    let stream = stream.map_err(|_| "no connection in time")??;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move { drop(connection.await) });
    let request = Request::post(path)
        .header(HOST, authority)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::<Bytes>::from(body.to_string()))?;
    let answer = timeout(SENT_WITHIN, sender.send_request(request)).await.map_err(|_| "no answer in time")??;
    Ok((answer.status(), answer.into_body()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port() {
        let rows = [
            ("http://127.0.0.1:9464", Some("127.0.0.1:9464")),
            ("http://localhost:9464/", Some("localhost:9464")),
            ("http://[::1]:9464", Some("[::1]:9464")),
            ("http://127.0.0.1", None),
            ("http://127.0.0.1:0", None),
            ("http://127.0.0.1:99999", None),
            ("http://:9464", None),
            ("127.0.0.1:9464", None),
            ("https://127.0.0.1:9464", None),
            ("http://127.0.0.1:9464/metrics", None),
            ("http://a@127.0.0.1:9464", None),
            ("http://a b:9464", None),
            ("", None),
        ];
        for (url, expected) in rows {
            assert_eq!(authority(url).ok(), expected, "{url:?}");
        }
        println!("addresses: {} cases", rows.len());
    }
}
