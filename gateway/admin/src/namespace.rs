//! The routes under `/v1/admin/`.

use crate::addresses::{self, Declaration};
use crate::backup::{self, BackupRequest};
use crate::clock::{self, StepRequest};
use crate::deadline::{Admitted, Deadline};
use crate::node::Node;
use crate::notices::{self, NoticeRequest, To};
use crate::pipe::Stream;
use crate::realism;
use crate::refusal::Refusal;
use crate::token::Token;
use crate::users::{self, DeedRequest};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Method, Request};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The prefix of all routes of the namespace.
pub const PREFIX: &str = "/v1/admin/";
const NODE: &str = "/v1/admin/node";
const BACKUP: &str = "/v1/admin/backup";
const CLOCK: &str = "/v1/admin/clock";
const STEP: &str = "/v1/admin/clock/step";
const GRANTS: &str = "/v1/admin/grants";
const WALLETS: &str = "/v1/admin/wallets";
const REFUNDS: &str = "/v1/admin/refunds";
const NOTICES: &str = "/v1/admin/notices";
/// How long a control waits for the one before it.
const CONTROL_WAIT: Duration = Duration::from_secs(10);
/// Bound of the body of a control, and how long it may take to arrive.
const BODY_BYTES_MAX: usize = 64 << 10;
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// The answer to a request that was not refused.
pub enum Reply {
    Json(Vec<u8>),
    /// The same for a control that continues: 202.
    Accepted(Vec<u8>),
    /// A tar stream.
    Tar(Stream),
}

/// The routes of a server.
pub struct Namespace<N> {
    token: Token,
    node: Arc<N>,
    /// How long a peer that takes less than 1 MiB a second is waited for.
    slow_peer: Duration,
    /// Held by the one control that runs.
    control: Arc<Semaphore>,
}

impl<N: Node> Namespace<N> {
    pub fn new(token: Token, node: N, slow_peer: Duration) -> Namespace<N> {
        Namespace { token, node: Arc::new(node), slow_peer, control: Arc::new(Semaphore::new(1)) }
    }

    /// Answers a request below [`PREFIX`]. Its deadline is extended once it has shown the token. `watch` is called before
    /// a control waits or reads: from then on the request is dropped when its peer leaves.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn answer(
        &self,
        request: Request<Incoming>,
        deadline: &Rc<Deadline>,
        watch: impl FnOnce(),
    ) -> Result<Reply, Refusal> {
        let (parts, body) = request.into_parts();
        // The listener is not for browsers.
        if parts.headers.contains_key(header::ORIGIN) {
            return Err(Refusal::FromBrowser);
        }
        self.token.check(&parts.headers)?;
        let admitted = Admitted::by(deadline);
        let allowed: &[Method] = match parts.uri.path() {
            NODE | CLOCK => &[Method::GET, Method::HEAD],
            BACKUP | STEP | GRANTS | WALLETS | REFUNDS | NOTICES => &[Method::POST],
            path if realism::key_of(path).is_some() => &[Method::PUT],
            path if path.starts_with(addresses::PREFIX) => &[Method::PUT],
            _ => return Err(Refusal::NoRoute),
        };
        if !allowed.contains(&parts.method) {
            return Err(Refusal::Method(allowed));
        }
        is_json(&parts.headers, !body.is_end_stream())?;
        let body = whole(body).await?;
        if let Some(key) = realism::key_of(parts.uri.path()) {
            return realism::choose(&*self.node, key, &body).await;
        }
        match parts.uri.path() {
            NODE => {
                let node = Arc::clone(&self.node);
                let status = tokio::task::spawn_blocking(move || node.status()).await;
                let status = status.map_err(|_| Refusal::Lost)?.map_err(|why| Refusal::Failed(format!("{why}.")))?;
                Ok(Reply::Json(status.json()))
            }
            CLOCK => Ok(Reply::Json(self.node.clock().json())),
            STEP => {
                let request = StepRequest::read(&body)?;
                watch();
                let _control = self.control("clock step").await?;
                clock::step(&*self.node, &request).await
            }
            GRANTS => users::administer(&*self.node, DeedRequest::grant(&body)?).await,
            REFUNDS => users::refund(&*self.node, &body).await,
            NOTICES => match NoticeRequest::read(&body)? {
                NoticeRequest { text, to: To::One(user) } => notices::to_one(&*self.node, &user, &text).await,
                NoticeRequest { text, to: To::All { after } } => {
                    let control = self.control("notice to all users").await?;
                    notices::to_all(&self.node, text, after, control).await
                }
            },
            WALLETS => users::administer(&*self.node, DeedRequest::wallet(&body)?).await,
            path if path.starts_with(addresses::PREFIX) => {
                let named = &path[addresses::PREFIX.len()..];
                addresses::declare(&*self.node, Declaration::read(named, &body)?).await
            }
            _ => {
                let request = BackupRequest::read(&body)?;
                watch();
                let control = self.control("backup").await?;
                let stream = backup::take(&self.node, request, self.slow_peer, control, admitted).await?;
                Ok(Reply::Tar(stream))
            }
        }
    }

    /// The permit of the one control that runs.
    async fn control(&self, name: &'static str) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = Arc::clone(&self.control).acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(CONTROL_WAIT, place).await else {
            tracing::info!(control = name, "an admin control is refused: another one is running");
            return Err(Refusal::OtherControl);
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
    if sound { Ok(()) } else { Err(Refusal::NotJsonType) }
}

async fn whole(body: Incoming) -> Result<Vec<u8>, Refusal> {
    let read = tokio::time::timeout(BODY_WITHIN, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    match read.map_err(|_| Refusal::SlowBody)? {
        Ok(body) => Ok(body.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::LongBody),
        Err(_) => Err(Refusal::BrokenBody),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) type Headers<'a> = &'a [(&'static str, &'a str)];

    pub(crate) fn headers(of: Headers<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(*name, HeaderValue::from_str(value).expect("a header's value"));
        }
        headers
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
            let found = is_json(&headers(of), *has_body);
            assert_eq!(found, if *expected { Ok(()) } else { Err(Refusal::NotJsonType) }, "{of:?}");
        }
        println!("types of bodies: {} cases", rows.len());
    }
}
