//! `POST /v1/admin/backup`: a tar stream of the running server, as `papertape backup` makes it of a stopped one.
//!
//! A thread of its own reads and writes, with a fifth of a core; what it holds in memory is bounded. The log keeps its
//! segments meanwhile, so its disk grows by what is written until the stream ends, the peer leaves, or is too slow.

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

/// What the body of the request says. No body is an empty object.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub with_secrets: bool,
}

impl Asked {
    /// # Errors
    /// `400 INVALID_BODY`, `422 VALIDATION_FAILED`.
    pub fn read(body: &[u8]) -> Result<Asked, Refusal> {
        if body.is_empty() {
            return Ok(Asked { with_secrets: false });
        }
        let value = read::json(body).map_err(|_| Refusal::from(Code::InvalidBody))?;
        if !matches!(value, Value::Object(_)) {
            return Err(Code::InvalidBody.into());
        }
        let mut body = Body::new(&value);
        let with_secrets = body.boolean("with_secrets").unwrap_or(false);
        if body.problems.is_empty() { Ok(Asked { with_secrets }) } else { Err(Refusal::validation(&body.problems)) }
    }
}

/// Whoever takes backups of this server.
pub struct Backups {
    running: Running,
    clock: Clock,
    /// For so long a peer is waited for that is too slow.
    slow_peer: Duration,
}

impl Backups {
    pub fn new(running: Running, clock: Clock, slow_peer: Duration) -> Backups {
        Backups { running, clock, slow_peer }
    }

    /// The stream, once it is decided what belongs to it. `control` is given back when its thread has ended; `admitted` is
    /// kept as long as the connection takes from it. It ends with the request, too, whatever is being done for it.
    pub async fn take(&self, with_secrets: bool, control: OwnedSemaphorePermit, admitted: Admitted) -> Outcome {
        // Gone with the request, or behind its answer with the stream.
        let here = Arc::new(());
        let waits = Arc::downgrade(&here);
        let stays = move || waits.strong_count() > 0;
        let (inlet, taken) = pipe(Pace::new(self.slow_peer), self.running.stop.clone());
        let (planned, told) = oneshot::channel();
        let (running, now) = (self.running.clone(), self.clock.now());
        let making = move || {
            thread::lower_priority();
            match Source::live(&running, with_secrets, now, stays) {
                Ok(source) => match planned.send(Ok(())) {
                    Ok(()) => tell(copy(source, inlet)),
                    Err(_) => tracing::warn!("a backup was given up: the peer has left"),
                },
                Err(error) => {
                    match &error {
                        BackupError::GivenUp(why) => tracing::warn!(%why, "a backup was given up while it was planned"),
                        error => tracing::error!(%error, "no backup of this server can be taken"),
                    }
                    // He may have left.
                    let _ = planned.send(Err(error));
                }
            }
            drop(control);
        };
        let lost = || tracing::error!("the thread of a backup panicked; serving goes on");
        let thread = thread::spawn_spare("backup", making, lost)
            .map_err(|error| Refusal::saying(Code::ServerBusy, format!("No thread can be had: {error}.")))?;
        let outlet = taken.of(thread.thread().clone());
        admitted.is_written_by(thread);
        match told.await {
            Ok(Ok(())) => Ok(Reply::streamed("application/x-tar", outlet.pages((admitted, here)))),
            Ok(Err(error @ (BackupError::Ending | BackupError::GivenUp(_)))) => {
                Err(Refusal::saying(Code::ServerBusy, format!("No backup: {error}.")))
            }
            Ok(Err(error)) => Err(Refusal::saying(Code::InternalError, format!("No backup: {error}."))),
            Err(_) => Err(Code::InternalError.into()),
        }
    }
}

/// Everything into the pipe, and its sound end behind it.
fn copy(source: Source, mut inlet: Inlet) -> Result<Manifest, BackupError> {
    let manifest = source.copy(Stream::begin(&mut inlet))?;
    inlet.end().map_err(|error: io::Error| BackupError::Io { file: "the stream".to_owned(), error })?;
    Ok(manifest)
}

fn tell(taken: Result<Manifest, BackupError>) {
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
    fn secrets_are_asked_for_by_one_word() {
        let asked = |body: &str| Asked::read(body.as_bytes()).map(|asked| asked.with_secrets).map_err(|no| no.code());
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
            assert_eq!(asked(body), *expected, "{body:?}");
        }
        assert_eq!(Asked::read(&[0xff; 40]).map_err(|no| no.code()), Err(Code::InvalidBody));
        println!("bodies of a backup: {} cases", rows.len() + 1);
    }
}
