//! A backup of a running server, as its admin listener sends it.

use crate::Failure;
use crate::admin_client::{SENT_WITHIN, send};
use bytes::{Buf as _, Bytes};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::json;
use std::io::{self, Read};
use std::path::Path;
use tokio::runtime::Runtime;
use tokio::time::timeout;

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
/// [`crate::admin_client::Usage`] for a malformed address or token; else the error of the server or the system.
pub fn begin(url: &str, token_file: &Path, with_secrets: bool) -> Result<Answer, Failure> {
    let (runtime, body) = send(url, token_file, "/v1/admin/backup", &json!({ "with_secrets": with_secrets }))?;
    Ok(Answer { runtime, body, piece: Bytes::new() })
}
