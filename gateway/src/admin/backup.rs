//! `POST /v1/admin/backup`: a tar stream of the running server, as `papertape backup` makes of a stopped one.
//!
//! A separate thread reads and writes, with a fifth of a core and bounded memory. The log keeps its segments meanwhile,
//! so its disk use grows with every write until the stream ends, the peer leaves, or the peer is too slow.

use super::listener::Admitted;
use super::pipe::{Inlet, Pace, pipe};
use crate::backup::manifest::Manifest;
use crate::backup::{BackupError, Running, Source, Stream};
use edge::http::code::Code;
use edge::http::reply::{Outcome, Refusal, Reply};
use host::clock::Clock;
use host::thread;
use std::io;
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
    /// `400 INVALID_BODY`, `422 VALIDATION_FAILED`.
    pub fn read(body: &[u8]) -> Result<BackupRequest, Refusal> {
        if body.is_empty() {
            return Ok(BackupRequest { with_secrets: false });
        }
        let value = read::json(body).map_err(|_| Refusal::from(Code::InvalidBody))?;
        if !matches!(value, Value::Object(_)) {
            return Err(Code::InvalidBody.into());
        }
        let mut body = Body::new(&value);
        let with_secrets = body.boolean("with_secrets").unwrap_or(false);
        if body.problems.is_empty() {
            Ok(BackupRequest { with_secrets })
        } else {
            Err(Refusal::validation(&body.problems))
        }
    }
}

/// Takes backups of this server.
pub struct Backups {
    running: Running,
    clock: Clock,
    /// How long a peer that is too slow is waited for.
    slow_peer: Duration,
}

impl Backups {
    pub fn new(running: Running, clock: Clock, slow_peer: Duration) -> Backups {
        Backups { running, clock, slow_peer }
    }

    /// Returns the stream, once its files are decided. `control` is released when the thread has ended; `admitted` is
    /// kept as long as the connection takes from the stream. Everything ends with the request, at any stage.
    pub async fn take(&self, with_secrets: bool, control: OwnedSemaphorePermit, admitted: Admitted) -> Outcome {
        // Dropped with the request, or with the stream after its response.
        let here = Arc::new(());
        let waits = Arc::downgrade(&here);
        let stays = move || waits.strong_count() > 0;
        let (inlet, taken) = pipe(Pace::new(self.slow_peer), self.running.stop.clone());
        let (planned, is_planned) = oneshot::channel();
        let (running, now) = (self.running.clone(), self.clock.now());
        let making = move || {
            thread::lower_priority();
            match Source::live(&running, with_secrets, now, stays) {
                Ok(source) => match planned.send(Ok(())) {
                    Ok(()) => log_result(copy(source, inlet)),
                    Err(_) => tracing::warn!("a backup was cancelled: the peer has left"),
                },
                Err(error) => {
                    match &error {
                        BackupError::GivenUp(why) => {
                            tracing::warn!(%why, "a backup was cancelled while it was planned")
                        }
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
            .map_err(|error| Refusal::saying(Code::ServerBusy, format!("No thread can be created: {error}.")))?;
        let outlet = taken.of(thread.thread().clone());
        admitted.is_written_by(thread);
        match is_planned.await {
            Ok(Ok(())) => Ok(Reply::streamed("application/x-tar", outlet.pages((admitted, here)))),
            Ok(Err(error @ (BackupError::Ending | BackupError::GivenUp(_)))) => {
                Err(Refusal::saying(Code::ServerBusy, format!("No backup: {error}.")))
            }
            Ok(Err(error)) => Err(Refusal::saying(Code::InternalError, format!("No backup: {error}."))),
            Err(_) => Err(Code::InternalError.into()),
        }
    }
}

/// Copies everything into the pipe, and then the end mark.
fn copy(source: Source, mut inlet: Inlet) -> Result<Manifest, BackupError> {
    let manifest = source.copy(Stream::begin(&mut inlet))?;
    inlet.end().map_err(|error: io::Error| BackupError::Io { file: "the stream".to_owned(), error })?;
    Ok(manifest)
}

fn log_result(taken: Result<Manifest, BackupError>) {
    match taken {
        Ok(manifest) => {
            let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
            let (lsn, with_secrets, files) = (manifest.lsn, manifest.with_secrets, manifest.files.len());
            tracing::info!(lsn, files, bytes, with_secrets, "a backup was taken");
        }
        Err(error) => tracing::warn!(%error, "a backup was cut off"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_requested_by_one_field() {
        let parsed = |body: &str| {
            BackupRequest::read(body.as_bytes()).map(|request| request.with_secrets).map_err(|no| no.code())
        };
        let rows = [
            ("", Ok(false)),
            ("{}", Ok(false)),
            (r#"{"with_secrets":true}"#, Ok(true)),
            (r#"{"with_secrets":false,"other":1}"#, Ok(false)),
            (r#"{"with_secrets":null}"#, Ok(false)),
            (r#"{"with_secrets":"true"}"#, Err(Code::ValidationFailed)),
            (r#"{"with_secrets":1}"#, Err(Code::ValidationFailed)),
            ("[]", Err(Code::InvalidBody)),
            ("true", Err(Code::InvalidBody)),
            ("{", Err(Code::InvalidBody)),
            (" ", Err(Code::InvalidBody)),
            ("\u{1}", Err(Code::InvalidBody)),
        ];
        for (body, expected) in &rows {
            assert_eq!(parsed(body), *expected, "{body:?}");
        }
        assert_eq!(BackupRequest::read(&[0xff; 40]).map_err(|no| no.code()), Err(Code::InvalidBody));
        println!("bodies of a backup: {} cases", rows.len() + 1);
    }
}
