//! `POST /v1/admin/backup`: a tar stream of the running server, as `papertape backup` makes of a stopped one.
//!
//! A separate thread reads and writes, with a fifth of a core and bounded memory. The log keeps its segments meanwhile,
//! so its disk use grows with every write until the stream ends, the peer leaves, or the peer is too slow.

use crate::deadline::Admitted;
use crate::node::{Copying, NoBackup, Node, Taken};
use crate::pipe::{Inlet, Pace, Stream, pipe};
use crate::refusal::Refusal;
use host::thread;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use wire::fields::Body;
use wire::read;
use wire::value::Value;

/// The body of the request. No body means an empty object.
#[derive(Debug, PartialEq, Eq)]
pub struct BackupRequest {
    pub with_secrets: bool,
}

impl BackupRequest {
    /// # Errors
    /// [`Refusal::NotObject`], [`Refusal::Fields`].
    pub fn read(body: &[u8]) -> Result<BackupRequest, Refusal> {
        if body.is_empty() {
            return Ok(BackupRequest { with_secrets: false });
        }
        let value = read::json(body).map_err(|_| Refusal::NotObject)?;
        if !matches!(value, Value::Object(_)) {
            return Err(Refusal::NotObject);
        }
        let mut body = Body::new(&value);
        let with_secrets = body.boolean("with_secrets").unwrap_or(false);
        if body.problems.is_empty() { Ok(BackupRequest { with_secrets }) } else { Err(Refusal::Fields(body.problems)) }
    }
}

/// Returns the stream, once its files are decided. `control` is released when the thread has ended; `admitted` is kept
/// as long as the connection takes from the stream. Everything ends with the request, at any stage. A peer that is too
/// slow is waited for as long as `slow_peer`.
///
/// # Errors
/// [`Refusal::Unavailable`], [`Refusal::Failed`], [`Refusal::Lost`].
pub async fn take<N: Node>(
    node: &Arc<N>,
    request: BackupRequest,
    slow_peer: Duration,
    control: OwnedSemaphorePermit,
    admitted: Admitted,
) -> Result<Stream, Refusal> {
    // Dropped with the request, or with the stream after its response.
    let here = Arc::new(());
    let waits = Arc::downgrade(&here);
    let stays = Box::new(move || waits.strong_count() > 0);
    let (inlet, taken) = pipe(Pace::new(slow_peer), node.stop().clone());
    let (planned, is_planned) = oneshot::channel();
    let node = Arc::clone(node);
    let making = move || {
        thread::lower_priority();
        match node.backup(request.with_secrets, stays) {
            Ok(copying) => match planned.send(Ok(())) {
                Ok(()) => log_result(copy(copying, inlet)),
                Err(_) => tracing::warn!("a backup was cancelled: the peer has left"),
            },
            Err(error) => {
                match &error {
                    NoBackup::GivenUp(why) => tracing::warn!(%why, "a backup was cancelled while it was planned"),
                    error => tracing::error!(%error, "a backup of this server failed"),
                }
                // The peer may have left.
                let _ = planned.send(Err(error));
            }
        }
        drop(control);
    };
    let lost = || tracing::error!("the thread of a backup panicked; the server continues");
    let thread = thread::spawn_spare("backup", making, lost)
        .map_err(|error| Refusal::Unavailable(format!("No thread can be created: {error}.")))?;
    let outlet = taken.of(thread.thread().clone());
    admitted.is_written_by(thread);
    match is_planned.await {
        Ok(Ok(())) => Ok(Stream::new(outlet, admitted, here)),
        Ok(Err(error @ (NoBackup::Ending(_) | NoBackup::GivenUp(_)))) => {
            Err(Refusal::Unavailable(format!("No backup: {error}.")))
        }
        Ok(Err(error)) => Err(Refusal::Failed(format!("No backup: {error}."))),
        Err(_) => Err(Refusal::Lost),
    }
}

/// Copies everything into the pipe, and then the end mark.
fn copy(copying: Copying, mut inlet: Inlet) -> Result<Taken, String> {
    let taken = copying(&mut inlet)?;
    inlet.end().map_err(|error| format!("the stream: {error}"))?;
    Ok(taken)
}

fn log_result(taken: Result<Taken, String>) {
    match taken {
        Ok(Taken { lsn, files, bytes, with_secrets }) => {
            tracing::info!(lsn, files, bytes, with_secrets, "a backup was taken");
        }
        Err(error) => {
            tracing::warn!(%error, "a backup ended early; its receiver has an incomplete stream and must take a new one")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_requested_by_one_field() {
        let read = |body: &str| match BackupRequest::read(body.as_bytes()) {
            Err(Refusal::Fields(_)) => Err("fields"),
            Err(Refusal::NotObject) => Err("not an object"),
            Err(other) => panic!("{other:?}"),
            Ok(request) => Ok(request.with_secrets),
        };
        let rows = [
            ("", Ok(false)),
            ("{}", Ok(false)),
            (r#"{"with_secrets":true}"#, Ok(true)),
            (r#"{"with_secrets":false,"other":1}"#, Ok(false)),
            (r#"{"with_secrets":null}"#, Ok(false)),
            (r#"{"with_secrets":"true"}"#, Err("fields")),
            (r#"{"with_secrets":1}"#, Err("fields")),
            ("[]", Err("not an object")),
            ("true", Err("not an object")),
            ("{", Err("not an object")),
            (" ", Err("not an object")),
            ("\u{1}", Err("not an object")),
        ];
        for (body, expected) in &rows {
            assert_eq!(read(body), *expected, "{body:?}");
        }
        assert_eq!(BackupRequest::read(&[0xff; 40]), Err(Refusal::NotObject));
        println!("bodies of a backup: {} cases", rows.len() + 1);
    }
}
