//! Results of handlers: a reply or a refusal. [`super::response_head::ResponseHead`] makes the response of either.

use super::body::{Pages, Upgrade};
use super::buffer;
use super::code::{Code, Retry};
use super::dialect::Dialect;
use super::record::{Record, write_record};
use engine::time::Timestamp;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use std::borrow::Cow;
use wire::write;

/// The result of a handler.
pub type Outcome = Result<Reply, Refusal>;

/// A success, or a report like readiness whose status is not 2xx although it is not a refusal.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    /// Empty if there is no body.
    pub content_type: &'static str,
    pub body: Vec<u8>,
    /// Replaces `body`: pages that are made while they are sent.
    pub pages: Option<Pages>,
    /// The protocol after a 101.
    pub upgrade: Option<Upgrade>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long a public answer may be kept; `None`: five seconds.
    pub fresh: Option<Fresh>,
}

/// How long a public answer may be kept, where five seconds are not right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    FifteenSeconds,
    TenMinutes,
}

/// What a JSON body is made of: a record, or JSON that is already written.
pub trait JsonBody {
    /// The text.
    fn into_json(self) -> Vec<u8>;
}

impl<R: Record> JsonBody for &R {
    fn into_json(self) -> Vec<u8> {
        let mut body = buffer::take();
        body.reserve(512);
        write_record(&mut body, self);
        body
    }
}

impl JsonBody for Vec<u8> {
    fn into_json(self) -> Vec<u8> {
        self
    }
}

impl Reply {
    /// 200 with a JSON body.
    pub fn json(body: impl JsonBody) -> Reply {
        Reply {
            status: StatusCode::OK,
            content_type: "application/json",
            body: body.into_json(),
            pages: None,
            upgrade: None,
            headers: Vec::new(),
            fresh: None,
        }
    }

    /// 200 with a body that is made while it is sent.
    pub fn streamed(content_type: &'static str, pages: Pages) -> Reply {
        Reply { content_type, pages: Some(pages), ..Reply::json(Vec::new()) }
    }

    /// 101 with the protocol that follows.
    pub fn upgraded(upgrade: Upgrade) -> Reply {
        let status = StatusCode::SWITCHING_PROTOCOLS;
        Reply { status, content_type: "", upgrade: Some(upgrade), ..Reply::json(Vec::new()) }
    }

    /// 201 with a JSON body.
    pub fn created(body: impl JsonBody) -> Reply {
        Reply { status: StatusCode::CREATED, ..Reply::json(body) }
    }

    /// 200 with one JSON object.
    pub fn object(fields: impl FnOnce(&mut write::Object<'_>)) -> Reply {
        let mut body = buffer::take();
        body.reserve(512);
        write::object(&mut body, fields);
        Reply::json(body)
    }

    pub fn with_status(mut self, status: StatusCode) -> Reply {
        self.status = status;
        self
    }

    /// Lets a public answer be kept for another time than five seconds. With a credential it is not kept.
    pub fn fresh_for(mut self, fresh: Fresh) -> Reply {
        self.fresh = Some(fresh);
        self
    }

    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Reply {
        self.headers.push((name, value));
        self
    }
}

/// A refusal, sent as the error envelope. Boxed inside, because most requests are not refused.
#[derive(Debug)]
pub struct Refusal(pub(super) Box<Parts>);

/// The body and the headers of a refusal.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) code: Code,
    pub(super) status: StatusCode,
    message: Cow<'static, str>,
    pub(super) retry_after_secs: Option<u32>,
    /// Further fields of the body as `"name":value`, each with a comma before it.
    fields: Vec<u8>,
    /// The verbose `details` as JSON.
    details: Option<Vec<u8>>,
    pub(super) order_id: Option<u64>,
    pub(super) allow: Option<String>,
    /// Bytes of the file that the asked range is beyond of.
    pub(super) range_beyond: Option<u64>,
    pub(super) closes_connection: bool,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Refusal {
        Refusal(Box::new(Parts {
            code,
            status: code.status(),
            message: Cow::Borrowed(code.message()),
            retry_after_secs: match code.retry() {
                Retry::After(secs) => Some(secs),
                _ => None,
            },
            fields: Vec::new(),
            details: None,
            order_id: None,
            allow: None,
            range_beyond: None,
            closes_connection: false,
            headers: Vec::new(),
        }))
    }
}

impl Refusal {
    /// A refusal with this code and another message than the default.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Refusal {
        let mut refusal = Refusal::from(code);
        refusal.0.message = message.into();
        refusal
    }

    /// Replaces the message.
    pub fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Refusal {
        self.0.message = message.into();
        self
    }

    /// `422 VALIDATION_FAILED` with the invalid fields.
    pub fn validation(problems: &wire::fields::Problems) -> Refusal {
        Refusal::new(Code::ValidationFailed, problems.message()).details(problems.details())
    }

    /// `429 RATE_LIMIT_EXCEEDED`; `window` is `second`, `minute` or `concurrency`.
    pub fn rate_limit(window: &'static str, limit: u32, resets_at: Timestamp, retry_after_secs: u32) -> Refusal {
        let mut details = Vec::new();
        write::object(&mut details, |o| {
            o.word("window", window);
            o.integer("limit", u64::from(limit));
            o.ts("resets_at", resets_at);
        });
        Refusal::from(Code::RateLimitExceeded).retry_after(retry_after_secs).details(details)
    }

    /// `429 RATE_LIMITED` of the placement limiter.
    pub fn placements(retry_after_ms: u32) -> Refusal {
        Refusal::from(Code::RateLimited).field("retry_after_ms", |out| {
            wire::decimal::integer(out, u64::from(retry_after_ms));
        })
    }

    /// `402 UPGRADE_REQUIRED`.
    pub fn upgrade(feature_key: &'static str, upgrade_url: &str) -> Refusal {
        Refusal::from(Code::UpgradeRequired)
            .field("feature_key", |out| write::string(out, feature_key))
            .field("upgrade_url", |out| write::string(out, upgrade_url))
    }

    /// `405` with the allowed methods of the path.
    pub fn method_not_allowed(allow: String) -> Refusal {
        let mut refusal = Refusal::from(Code::Http405);
        refusal.0.allow = Some(allow);
        refusal
    }

    /// `416` for a range beyond a file of this many bytes.
    pub fn range_beyond(bytes: u64) -> Refusal {
        let mut refusal = Refusal::from(Code::Http416);
        refusal.0.range_beyond = Some(bytes);
        refusal
    }

    /// `400` for a request that breaks HTTP. The connection ends.
    pub fn broken(message: &'static str) -> Refusal {
        let mut refusal = Refusal::new(Code::Http400, message);
        refusal.0.closes_connection = true;
        refusal
    }

    /// Ends the connection after this response: the bytes after the request cannot be trusted or were not read.
    pub fn closing(mut self) -> Refusal {
        self.0.closes_connection = true;
        self
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Seconds to wait, if the code advises a wait.
    pub fn retry_after_secs(&self) -> Option<u32> {
        self.0.retry_after_secs
    }

    /// The order that exists in spite of the refusal.
    pub fn order(&self) -> Option<u64> {
        self.0.order_id
    }

    /// Replaces the status of the code.
    pub fn with_status(mut self, status: StatusCode) -> Refusal {
        self.0.status = status;
        self
    }

    pub fn retry_after(mut self, secs: u32) -> Refusal {
        self.0.retry_after_secs = Some(secs);
        self
    }

    /// Adds a field to the body.
    pub fn field(mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) -> Refusal {
        let fields = &mut self.0.fields;
        fields.extend_from_slice(b",\"");
        fields.extend_from_slice(name.as_bytes());
        fields.extend_from_slice(b"\":");
        write(fields);
        self
    }

    /// Adds a header.
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Refusal {
        self.0.headers.push((name, value));
        self
    }

    /// Sets the verbose `details`, as JSON.
    pub fn details(mut self, json: Vec<u8>) -> Refusal {
        self.0.details = Some(json);
        self
    }

    /// Sets the order that exists in spite of the refusal (`X-Svc-Order-Id`).
    pub fn order_id(mut self, order: u64) -> Refusal {
        self.0.order_id = Some(order);
        self
    }

    /// The body: two fields, further fields of some codes, and two more with `verbose`. In the strict dialect `error`
    /// is the message, because the venue's clients read it there, and `code` is the code.
    pub(crate) fn envelope(&self, dialect: Dialect, verbose: bool, request_id: &str) -> Vec<u8> {
        let Parts { code, message, fields, details, .. } = &*self.0;
        let mut body = Vec::with_capacity(128);
        match dialect {
            Dialect::Plain => {
                body.extend_from_slice(b"{\"error\":\"");
                body.extend_from_slice(code.text().as_bytes());
                body.extend_from_slice(b"\",\"message\":");
                write::string(&mut body, message);
            }
            Dialect::Strict => {
                for name in ["{\"error\":", ",\"message\":"] {
                    body.extend_from_slice(name.as_bytes());
                    write::string(&mut body, message);
                }
                body.extend_from_slice(b",\"code\":\"");
                body.extend_from_slice(code.text().as_bytes());
                body.push(b'"');
            }
        }
        body.extend_from_slice(fields);
        if verbose {
            body.extend_from_slice(b",\"details\":");
            body.extend_from_slice(details.as_deref().unwrap_or(b"null"));
            body.extend_from_slice(b",\"request_id\":");
            write::string(&mut body, request_id);
        }
        body.push(b'}');
        body
    }
}
