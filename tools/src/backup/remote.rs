//! A backup of a running server, as its admin listener sends it.

use super::Usage;
use crate::Failure;
use bytes::{Buf as _, Bytes};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Timeout of the connection.
const CONNECTED_WITHIN: Duration = Duration::from_secs(20);
/// Timeout of the answer, for which the server first reads its log, and of each read after that.
const SENT_WITHIN: Duration = Duration::from_secs(600);
/// Longest body of a refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
const TOKEN_BYTES_MAX: u64 = 4_096;

/// The body of the answer; reads block.
pub struct Answer {
    runtime: Runtime,
    body: Incoming,
    piece: Bytes,
}

impl Read for Answer {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Answer { runtime, body, piece } = self;
        while piece.is_empty() {
            let next = runtime.block_on(async { timeout(SENT_WITHIN, body.frame()).await });
            match next.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the server sends nothing"))? {
                None => return Ok(0),
                Some(Err(error)) => return Err(io::Error::other(error)),
                Some(Ok(frame)) => *piece = frame.into_data().unwrap_or_default(),
            }
        }
        let bytes = piece.len().min(into.len());
        piece.copy_to_slice(&mut into[..bytes]);
        Ok(bytes)
    }
}

/// Requests a backup from the admin listener at `url`.
///
/// # Errors
/// [`Usage`] for a malformed address or token; else the error of the server or the system.
pub fn begin(url: &str, token_file: &Path, with_secrets: bool) -> Result<Answer, Failure> {
    let authority = authority(url)?;
    let token = token(token_file)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(ask(authority, &token, with_secrets));
    let (status, body) = asked.map_err(|error| format!("{authority}: {error}"))?;
    if status == StatusCode::OK {
        return Ok(Answer { runtime, body, piece: Bytes::new() });
    }
    let text = runtime.block_on(async { timeout(SENT_WITHIN, Limited::new(body, REFUSAL_BYTES_MAX).collect()).await });
    let text = text.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    let word = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    Err(format!("{authority} refused: {} {} {}", status.as_u16(), word("error"), word("message")).trim_end().into())
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

async fn ask(authority: &str, token: &str, with_secrets: bool) -> Result<(StatusCode, Incoming), Failure> {
    let stream = timeout(CONNECTED_WITHIN, TcpStream::connect(authority)).await;
    let stream = stream.map_err(|_| "no connection in time")??;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move { drop(connection.await) });
    let request = Request::post("/v1/admin/backup")
        .header(HOST, authority)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::<Bytes>::from(json!({ "with_secrets": with_secrets }).to_string()))?;
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
