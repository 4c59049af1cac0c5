//! The channels for machines, and their frames as records: one file per channel, and [`CHANNELS`] lists them.
//!
//! A frame is a record ([`crate::http::record`]), so its text, its schema and its example come from one type. Frames of
//! books and trades of the venue are written by hand ([`super::market_text`]); a test compares them with their records.

pub mod executions;
pub mod market;
pub mod prices;
pub mod trade;
pub mod user;

use super::asyncapi::{Channel, Message};
use crate::api::orders::words::SideName;
use crate::http::record::record;
use crate::http::scalar::{self, Instant, words};
use crate::http::schema::{INTEGER, Param, Schema, TEXT};
use engine::time::{MILLISECOND, Timestamp};

/// Every channel.
pub const CHANNELS: &[Channel] =
    &[market::CHANNEL, prices::CHANNEL, executions::CHANNEL, user::CHANNEL, trade::CHANNEL];

const TOKEN: Param = Param::query("token", TEXT, "A token of `POST /v1/keys/ws-token`, valid for one handshake.");
const KEY: Param = Param::header("X-API-Key", TEXT, "An API key, in place of the token.");
const DIALECT: Param = Param::query(
    "dialect",
    Schema::Word(&["plain", "strict"]),
    "Types of the frames. Default: strict for clients of the venue, else plain.",
);
const FROM_SEQ: Param =
    Param::query("from_seq", INTEGER, "First sends the frames after this `user_seq`, each of them once.");
const ERRORS: Param = Param::query("errors", Schema::Word(&["1"]), "Sends `error` frames.");

const PING: Message = Message::text("PING", "Answered by `PONG`.", &Schema::Word(&["PING"]), "PING");
const PONG: Message = Message::text("PONG", "The answer to `PING`.", &Schema::Word(&["PONG"]), "PONG");
const PING_JSON: Message = Message::of::<Ping>("ping", "Answered by `pong`. One of the two fields is enough.");
const PONG_JSON: Message = Message::of::<Pong>("pong", "The answer to `ping`.");
const ERROR: Message = Message::of::<StreamError>("error", "An error in a frame; the socket stays open.");
/// The error frame of the venue's channels. Clients of the venue do not expect it, so it is sent only on request.
const ERROR_EVENT: Message =
    Message::of::<StreamErrorEvent>("error", "Only if the handshake has `errors=1`: an error in a frame.");
const GAP: Message = Message::of::<Gap>(
    "gap",
    "The first frame if the frames after `from_seq` are not all available: older facts are gone, or the number is of \
     another data directory.",
);

words! {
    PingWord = "ping";
    PongWord = "pong";
    ErrorWord = "error";
    GapWord = "gap";
    ConnectedWord = "connected";
    pub OrderWord = "order";
    SubscriptionChange = "subscribe", "unsubscribe";
    pub ErrorCode = "INVALID_BODY", "INVALID_REQUEST", "MARKET_NOT_FOUND", "SUBSCRIPTION_LIMIT", "INVALID_KEY";
}

record! {
    /// A heartbeat of the client.
    struct Ping {
        action: Option<PingWord> = Some("ping".into()), skip_serializing_if;
        r#type: Option<PingWord> = None, skip_serializing_if;
    }

    /// The server is there.
    pub struct Pong {
        r#type: PongWord = "pong".into();
        ts: u64 = 1_793_871_202_417, "Unix milliseconds.";
        // The one instant without milliseconds where they are zero.
        #[schemars(with = "Instant")]
        timestamp: scalar::Timestamp = scalar::Timestamp::of("2026-11-05T09:33:22.417Z"), "The same moment.";
    }

    /// A frame that was not accepted, or not in full.
    pub struct StreamError<'a> {
        r#type: ErrorWord = "error".into();
        code: ErrorCode = "INVALID_REQUEST".into();
        message: &'a str = "markets must be an array of condition ids", "For people.";
        action: Option<&'a str> = Some("subscribe"), "Of the frame.", skip_serializing_if;
        markets: Option<&'a [&'a str]> = None, "The ids that it is about.", skip_serializing_if;
    }

    /// A frame that was not accepted, or not in full.
    pub struct StreamErrorEvent<'a> {
        event_type: ErrorWord = "error".into();
        code: ErrorCode = "INVALID_BODY".into();
        message: &'a str = "the message is not JSON", "For people.";
        action: Option<&'a str> = None, "Of the frame.", skip_serializing_if;
        markets: Option<&'a [&'a str]> = None, "The ids that it is about.", skip_serializing_if;
    }

    /// The stream does not continue where the client wants it to.
    pub struct Gap {
        r#type: GapWord = "gap".into();
        from_seq: u64 = 1017, "The first `user_seq` that is sent.";
    }
}

/// An error in a message, or in a part of it.
pub struct Fault {
    pub code: &'static str,
    pub message: &'static str,
}

impl Fault {
    /// A message of JSON that is not a valid request.
    pub const fn request(message: &'static str) -> Fault {
        Fault { code: "INVALID_REQUEST", message }
    }
}

impl Pong {
    pub fn new(now: Timestamp) -> Pong {
        let at = Timestamp(now.0 - now.0 % MILLISECOND);
        Pong { r#type: "pong".into(), ts: at.millis(), timestamp: scalar::Timestamp(at) }
    }
}

impl<'a> StreamError<'a> {
    /// `action` is that of the frame. `ids`: those it is about, if any.
    pub fn new(fault: &Fault, action: &'a str, ids: &'a [&'a str]) -> StreamError<'a> {
        StreamError {
            r#type: "error".into(),
            code: fault.code.into(),
            message: fault.message,
            action: Some(action),
            markets: (!ids.is_empty()).then_some(ids),
        }
    }
}

impl<'a> StreamErrorEvent<'a> {
    /// As [`StreamError::new`].
    pub fn new(fault: &Fault, action: &'a str, ids: &'a [&'a str]) -> StreamErrorEvent<'a> {
        StreamErrorEvent {
            event_type: "error".into(),
            code: fault.code.into(),
            message: fault.message,
            action: Some(action),
            markets: (!ids.is_empty()).then_some(ids),
        }
    }
}

impl Gap {
    /// `from_seq`: number of the first fact that is sent.
    pub fn new(from_seq: u64) -> Gap {
        Gap { r#type: "gap".into(), from_seq }
    }
}
