//! What is said on each channel, for machines: one file per channel, and [`CHANNELS`] lists them. The frames themselves
//! are written by the channels; the tests hold every frame they see against these.

pub mod executions;
pub mod market;
pub mod prices;
pub mod trade;
pub mod user;

use super::asyncapi::{Channel, Message};
use crate::http::schema::{CONDITION_ID, Format, INTEGER, Param, Schema, Shape, TEXT, field, optional};

/// Every channel there is.
pub const CHANNELS: &[Channel] =
    &[market::CHANNEL, prices::CHANNEL, executions::CHANNEL, user::CHANNEL, trade::CHANNEL];

/// A moment as streams show it: whole seconds, milliseconds or microseconds.
const INSTANT: Schema = Schema::Format(&Format {
    name: "Instant",
    about: "A moment in UTC.",
    pattern: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3}([0-9]{3})?)?Z$",
});
const SECONDS: Schema =
    Schema::Format(&Format { name: "Seconds", about: "Unix seconds as a string.", pattern: "^[0-9]{1,13}$" });
const SIDE: Schema = Schema::Word(&["BUY", "SELL"]);
const CONDITION_IDS: Schema = Schema::Array(&CONDITION_ID);
const TEXTS: Schema = Schema::Array(&TEXT);

const TOKEN: Param = Param::query("token", TEXT, "A minted token: good for one handshake.");
const KEY: Param = Param::header("X-API-Key", TEXT, "A key, in place of the token.");
const DIALECT: Param = Param::query(
    "dialect",
    Schema::Word(&["plain", "strict"]),
    "Types of the frames. Default: strict for clients of the venue's kind, else plain.",
);
const FROM_SEQ: Param = Param::query("from_seq", INTEGER, "Sends first, each once, what came after this `user_seq`.");

const PING: Message = Message::text("PING", "Answered by `PONG`.", &Schema::Word(&["PING"]), "PING");
const PONG: Message = Message::text("PONG", "The answer to `PING`.", &Schema::Word(&["PONG"]), "PONG");
const PING_JSON: Message = Message::json(
    "ping",
    "Answered by `pong`. One of the two fields is enough.",
    &Schema::Object(&Shape::new(
        "Ping",
        "A heartbeat of the client.",
        &[optional("action", Schema::Word(&["ping"]), ""), optional("type", Schema::Word(&["ping"]), "")],
    )),
    r#"{"action":"ping"}"#,
);
const PONG_JSON: Message = Message::json(
    "pong",
    "The answer to `ping`.",
    &Schema::Object(&Shape::new(
        "Pong",
        "The server is there.",
        &[
            field("type", Schema::Word(&["pong"]), ""),
            field("ts", INTEGER, "Unix milliseconds."),
            field("timestamp", INSTANT, "The same moment."),
        ],
    )),
    r#"{"type":"pong","ts":1793871202417,"timestamp":"2026-11-05T09:33:22.417Z"}"#,
);

const ERROR_CODE: Schema =
    Schema::Word(&["INVALID_BODY", "INVALID_REQUEST", "MARKET_NOT_FOUND", "SUBSCRIPTION_LIMIT", "INVALID_KEY"]);
const ERROR: Message = Message::json(
    "error",
    "What was wrong with a frame; the socket stays open.",
    &Schema::Object(&Shape::new(
        "StreamError",
        "A frame that was not understood, or not in full.",
        &[
            field("type", Schema::Word(&["error"]), ""),
            field("code", ERROR_CODE, ""),
            field("message", TEXT, "For people."),
            optional("action", TEXT, "Of the frame."),
            optional("markets", TEXTS, "The ids that it is about."),
        ],
    )),
    r#"{"type":"error","code":"INVALID_REQUEST","message":"markets must be an array of condition ids","action":"subscribe"}"#,
);
/// The same where the venue's clients listen: only when it was asked for.
const ERROR_EVENT: Message = Message::json(
    "error",
    "Only when the handshake asked for errors: what was wrong with a frame.",
    &Schema::Object(&Shape::new(
        "StreamErrorEvent",
        "A frame that was not understood, or not in full.",
        &[
            field("event_type", Schema::Word(&["error"]), ""),
            field("code", ERROR_CODE, ""),
            field("message", TEXT, "For people."),
            optional("action", TEXT, "Of the frame."),
            optional("markets", TEXTS, "The ids that it is about."),
        ],
    )),
    r#"{"event_type":"error","code":"INVALID_BODY","message":"the frame is no JSON"}"#,
);
const ERRORS: Param = Param::query("errors", Schema::Word(&["1"]), "Tells in frames what was wrong with one.");

const GAP: Message = Message::json(
    "gap",
    "First after a handshake with a `from_seq` that cannot be gone on from: older facts were asked for than are kept, or newer ones than there are (of another data directory).",
    &Schema::Object(&Shape::new(
        "Gap",
        "The stream goes on elsewhere than was asked for.",
        &[
            field("type", Schema::Word(&["gap"]), ""),
            field("from_seq", INTEGER, "The `user_seq` from which on facts are sent."),
        ],
    )),
    r#"{"type":"gap","from_seq":1017}"#,
);
const USER_SEQ: &str = "Number of the order fact among those of the user, from 1.";
const SEQ: &str = "Number among the frames of this socket that carry one, from 1.";
