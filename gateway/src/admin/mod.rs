//! The admin listener (`[admin] listen`): `/metrics` for monitors, and controls of a running server for operators under
//! `/v1/admin/` (gateway/docs/admin.md §1), on a separate thread.
//!
//! | File | Holds |
//! |---|---|
//! | `listener.rs` | the listener, its thread, and its deadlines |
//! | `node.rs` | `GET /v1/admin/node`: description of this server |
//! | `backup.rs` | `POST /v1/admin/backup`: a backup of the running server |
//! | `pipe.rs` | bytes from a thread that may block to a connection, and the detection of slow peers |
//!
//! Every route of the namespace needs the admin token, on loopback, too. Controls run one at a time.

mod backup;
pub mod listener;
mod node;
mod pipe;

use crate::config::Secret;
use backup::{BackupRequest, Backups};
use edge::http::body::Body;
use edge::http::code::Code;
use edge::http::names::Names;
use edge::http::pipeline::{request_id, wants_details};
use edge::http::reply::{Outcome, Refusal, Reply};
use edge::http::response_head::{Cache, ResponseHead};
use edge::http::server::gate::Peer;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response};
use listener::{Admitted, Deadline};
use node::Node;
use sha2::{Digest as _, Sha256};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The prefix of all routes of the namespace.
const PREFIX: &str = "/v1/admin/";
const NODE: &str = "/v1/admin/node";
const BACKUP: &str = "/v1/admin/backup";
/// How long a control waits for the one before it.
const CONTROL_WAIT: Duration = Duration::from_secs(10);
/// Bound of the body of a control, and how long it may take to arrive.
const BODY_BYTES_MAX: usize = 64 << 10;
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// The routes under `/v1/admin/`.
struct Namespace {
    token: Token,
    node: Arc<Node>,
    backups: Backups,
    /// Held by the one control that runs.
    control: Arc<Semaphore>,
}

/// The token that every request of the namespace must show. Only its hash is kept.
struct Token([u8; 32]);

impl Token {
    fn of(secret: &Secret) -> Token {
        Token(Sha256::digest(secret.expose()).into())
    }

    /// Checks the token in these headers. Takes the same time for all tokens of one length.
    fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(first), None) = (shown.next(), shown.next()) else {
            let shown = headers.contains_key(header::AUTHORIZATION);
            return Err(if shown { invalid() } else { Refusal::saying(Code::MissingAuth, MISSING) });
        };
        let (scheme, token) = first.as_bytes().split_at(first.len().min(BEARER.len()));
        if !scheme.eq_ignore_ascii_case(BEARER) {
            return Err(if first.is_empty() { Refusal::saying(Code::MissingAuth, MISSING) } else { invalid() });
        }
        let hash = Sha256::digest(token);
        // Compares hashes: the first differing byte reveals nothing about the token.
        let differs = hash.iter().zip(&self.0).fold(0, |differs, (a, b)| differs | (a ^ b));
        if differs == 0 { Ok(()) } else { Err(invalid()) }
    }
}

const BEARER: &[u8] = b"Bearer ";
const MISSING: &str = "This route needs the admin token: Authorization: Bearer, with what is in admin.token_file.";

fn invalid() -> Refusal {
    Refusal::saying(Code::InvalidToken, "This is not the admin token.")
}

impl Namespace {
    /// The response to a request of the namespace. Its deadline is extended once it has shown the token.
    async fn answer(
        &self,
        names: &Names,
        request: Request<Incoming>,
        deadline: &Rc<Deadline>,
        peer: &Peer,
    ) -> Response<Body> {
        let headers = request.headers();
        let mut head = ResponseHead::with_id(names, request_id(headers.get(&names.request_id)));
        head.verbose = wants_details(names, headers);
        head.is_head = request.method() == Method::HEAD;
        (head.cache, head.private) = (Cache::ByCredential, true);
        head.response(self.run(request, deadline, peer).await)
    }

    async fn run(&self, request: Request<Incoming>, deadline: &Rc<Deadline>, peer: &Peer) -> Outcome {
        let (parts, body) = request.into_parts();
        // The listener is not for browsers.
        if parts.headers.contains_key(header::ORIGIN) {
            return Err(Code::AdminForbidden.into());
        }
        self.token.check(&parts.headers)?;
        let admitted = Admitted::by(deadline);
        let allowed: &[Method] = match parts.uri.path() {
            NODE => &[Method::GET, Method::HEAD],
            BACKUP => &[Method::POST],
            _ => return Err(Code::NotFound.into()),
        };
        if !allowed.contains(&parts.method) {
            let allowed: Vec<&str> = allowed.iter().map(Method::as_str).collect();
            return Err(Refusal::method_not_allowed(allowed.join(", ")));
        }
        is_json(&parts.headers, !body.is_end_stream())?;
        let body = whole(body).await?;
        match parts.uri.path() {
            NODE => {
                let node = Arc::clone(&self.node);
                let json = tokio::task::spawn_blocking(move || node.json()).await;
                let json = json.map_err(|_| Refusal::from(Code::InternalError))?;
                json.map(Reply::json).map_err(|error| Refusal::saying(Code::InternalError, format!("{error}.")))
            }
            _ => {
                let request = BackupRequest::read(&body)?;
                // A request whose peer has left must not wait or read.
                peer.is_watched();
                let control = self.control("backup").await?;
                self.backups.take(request.with_secrets, control, admitted).await
            }
        }
    }

    /// The permit of the one control that runs.
    async fn control(&self, name: &'static str) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = Arc::clone(&self.control).acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(CONTROL_WAIT, place).await else {
            tracing::info!(control = name, "an admin control is refused: another one is running");
            return Err(Code::AdminBusy.into());
        };
        tracing::info!(control = name, "an admin control was requested");
        Ok(place)
    }
}

/// A body must have the JSON type: pages in a browser can send other types without a preflight request.
fn is_json(headers: &HeaderMap, has_body: bool) -> Result<(), Refusal> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let named = types.next().map(HeaderValue::as_bytes);
    let json = named.is_some_and(|named| {
        let essence = named.split(|byte| *byte == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
    });
    let sound = types.next().is_none() && if named.is_some() { json } else { !has_body };
    if sound { Ok(()) } else { Err(Refusal::saying(Code::AdminForbidden, "A body must be application/json.")) }
}

async fn whole(body: Incoming) -> Result<Vec<u8>, Refusal> {
    let read = tokio::time::timeout(BODY_WITHIN, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    let read = read.map_err(|_| Refusal::broken("The body did not arrive in time."))?;
    match read {
        Ok(body) => Ok(body.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::from(Code::Http413).closing()),
        Err(_) => Err(Refusal::broken("The body cannot be read.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers<'a> = &'a [(&'static str, &'a str)];

    fn headers(of: Headers<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(*name, HeaderValue::from_str(value).expect("a header's value"));
        }
        headers
    }

    #[test]
    fn one_token_opens_and_nothing_else() {
        const TOKEN: &str = "0123456789abcdef0123456789abcdef";
        let token = Token::of(&Secret::new(TOKEN.to_owned()));
        let (right, long) = (format!("Bearer {TOKEN}"), format!("Bearer {TOKEN}0"));
        let (bare, twice) = (TOKEN, [("authorization", right.as_str()), ("authorization", right.as_str())]);
        let rows: &[(Headers<'_>, Option<Code>)] = &[
            (&[("authorization", &right)], None),
            (&[("authorization", &format!("bearer {TOKEN}"))], None),
            (&[], Some(Code::MissingAuth)),
            (&[("authorization", "")], Some(Code::MissingAuth)),
            (&[("x-api-key", &right)], Some(Code::MissingAuth)),
            (&[("authorization", bare)], Some(Code::InvalidToken)),
            (&[("authorization", "Bearer")], Some(Code::InvalidToken)),
            (&[("authorization", "Bearer ")], Some(Code::InvalidToken)),
            (&[("authorization", &format!("Basic {TOKEN}"))], Some(Code::InvalidToken)),
            (&[("authorization", &format!("Bearer  {TOKEN}"))], Some(Code::InvalidToken)),
            (&[("authorization", &right[..right.len() - 1])], Some(Code::InvalidToken)),
            (&[("authorization", &long)], Some(Code::InvalidToken)),
            (&[("authorization", &right.to_uppercase())], Some(Code::InvalidToken)),
            (&twice, Some(Code::InvalidToken)),
        ];
        for (of, expected) in rows {
            let found = token.check(&headers(of)).err().map(|refusal| refusal.code());
            assert_eq!(found, *expected, "{of:?}");
        }
        println!("admin tokens: {} cases", rows.len());
    }

    #[test]
    fn bodies_are_json_by_their_type() {
        let rows: &[(Headers<'_>, bool, bool)] = &[
            (&[], false, true),
            (&[], true, false),
            (&[("content-type", "application/json")], true, true),
            (&[("content-type", "Application/JSON; charset=utf-8")], true, true),
            (&[("content-type", "application/json")], false, true),
            (&[("content-type", "text/plain")], true, false),
            (&[("content-type", "text/plain")], false, false),
            (&[("content-type", "text/plain; x=application/json")], true, false),
            (&[("content-type", "application/jsonx")], true, false),
            (&[("content-type", "application/x-www-form-urlencoded")], true, false),
            (&[("content-type", "application/json"), ("content-type", "text/plain")], true, false),
        ];
        for (of, has_body, expected) in rows {
            let found = is_json(&headers(of), *has_body).map_err(|refusal| refusal.code());
            assert_eq!(found, if *expected { Ok(()) } else { Err(Code::AdminForbidden) }, "{of:?}");
        }
        println!("types of bodies: {} cases", rows.len());
    }
}
