//! The channels as an AsyncAPI 3.0 document: `gateway/asyncapi.json`, and `GET /v1/asyncapi.json`.
//!
//! It is made of the channel declarations in [`super::shape`]. Each named schema is once in `components`, under the name
//! of its type.

use crate::http::components::Components;
use crate::http::record::{Example, Record};
use crate::http::schema::{Param, ParamIn, Schema};
use serde_json::{Map, Value, json};

/// The description of one socket route.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// Starts with `/v1`.
    pub path: &'static str,
    /// Also exists without `/v1` while `[venue] root_mount` is on.
    pub at_root: bool,
    pub name: &'static str,
    pub about: &'static str,
    /// Query and headers of the handshake.
    pub params: &'static [Param],
    /// Any one of these admits.
    pub credentials: &'static [Credential],
    pub takes: &'static [Message],
    pub sends: &'static [Message],
}

/// A way to authenticate on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// No credential.
    Anonymous,
    /// An API key in a header of the handshake.
    Key,
    /// A minted token in the query of the handshake.
    Ticket,
    /// A key in the first frame.
    FirstFrame,
}

/// One kind of frame.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Unique in its channel and direction.
    pub name: &'static str,
    pub about: &'static str,
    pub schema: Schema,
    pub example: Example,
    pub kind: Kind,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Json,
    /// JSON with the `id` of an operation: the operation or its answer.
    Correlated,
    /// A text that is not JSON.
    Text,
}

impl Message {
    /// A frame that is a record of this type.
    pub const fn of<T: Record>(name: &'static str, about: &'static str) -> Message {
        Message { name, about, schema: Schema::of::<T>(), example: Example::of::<T>(), kind: Kind::Json }
    }

    /// A frame with the client's `id` of an operation.
    pub const fn correlated(mut self) -> Message {
        self.kind = Kind::Correlated;
        self
    }

    /// A frame with exactly this text.
    pub const fn text(
        name: &'static str,
        about: &'static str,
        schema: &'static Schema,
        example: &'static str,
    ) -> Message {
        Message { name, about, schema: *schema, example: Example::Text(example), kind: Kind::Text }
    }
}

/// The document of these channels.
///
/// # Panics
/// If two schemas of one name differ, or an example is not JSON. The test that compares the checked-in file finds such
/// mistakes in a declaration.
pub fn document(channels: &[Channel], version: &str) -> Value {
    let mut components = Components::default();
    let (mut described, mut operations) = (Map::new(), Map::new());
    for channel in channels {
        described.insert(channel.name.to_owned(), self::channel(channel, &mut components));
        for (direction, action, messages) in [("takes", "receive", channel.takes), ("sends", "send", channel.sends)] {
            let operation = operation(channel, direction, action, messages);
            operations.insert(format!("{}.{direction}", channel.name), operation);
        }
    }
    let codes = CLOSE_CODES
        .iter()
        .map(|(code, meaning, advice)| (code.to_string(), json!({"meaning": meaning, "client": advice})));
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "papertape",
            "version": version,
            "description": introduction(),
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "this": {
                "host": "{address}", "protocol": "ws",
                "variables": {"address": {"default": "127.0.0.1:8080", "description": "Where the server listens."}},
            },
        },
        "channels": described,
        "operations": operations,
        "components": {
            "schemas": Map::from_iter(components.schemas()),
            "securitySchemes": {
                "key": {
                    "type": "httpApiKey", "in": "header", "name": "X-API-Key",
                    "description": "An API key. A wrong one is refused before the upgrade, with a plain HTTP status.",
                },
                "token": {
                    "type": "httpApiKey", "in": "query", "name": "token",
                    "description": "From POST /v1/keys/ws-token: good for one handshake within 60 seconds. A wrong one \
                        is accepted and closed with 4001.",
                },
            },
        },
        "x-close-codes": Map::from_iter(codes),
    })
}

fn channel(channel: &Channel, components: &mut Components) -> Value {
    let mut messages = Map::new();
    for (direction, message) in both_directions(channel) {
        messages.insert(key(direction, message), self::message(message, components));
    }
    let mut described = json!({
        "address": channel.path,
        "title": channel.name,
        "description": channel.about,
        "messages": messages,
        "bindings": {"ws": binding(channel, components)},
        "x-credentials": channel.credentials.iter().map(|credential| credential.word()).collect::<Vec<_>>(),
    });
    if let Some(bare) = channel.path.strip_prefix("/v1").filter(|_| channel.at_root) {
        described["x-also-at"] = bare.into();
    }
    described
}

fn both_directions(channel: &Channel) -> impl Iterator<Item = (&'static str, &'static Message)> {
    let taken = channel.takes.iter().map(|message| ("takes", message));
    taken.chain(channel.sends.iter().map(|message| ("sends", message)))
}

/// The key of a message in its channel. Both directions may have a message of one name.
fn key(direction: &str, message: &Message) -> String {
    format!("{direction}-{}", message.name)
}

fn binding(channel: &Channel, components: &mut Components) -> Value {
    let mut binding = json!({"method": "GET", "bindingVersion": "0.1.0"});
    for (place, name) in [(ParamIn::Query, "query"), (ParamIn::Header, "headers")] {
        let mut properties = Map::new();
        for param in channel.params.iter().filter(|param| param.place == place) {
            let mut written = components.of(&param.schema);
            written["description"] = param.about.into();
            properties.insert(param.name.to_owned(), written);
        }
        if !properties.is_empty() {
            binding[name] = json!({"type": "object", "properties": properties});
        }
    }
    binding
}

fn message(message: &Message, components: &mut Components) -> Value {
    let example = match message.kind {
        Kind::Text => message.example.text().into(),
        Kind::Json | Kind::Correlated => message.example.value(),
    };
    let mut described = json!({
        "name": message.name,
        "title": message.name,
        "summary": message.about,
        "payload": components.of(&message.schema),
        "examples": [{"payload": example}],
    });
    match message.kind {
        Kind::Json => {}
        Kind::Correlated => described["correlationId"] = json!({"location": "$message.payload#/id"}),
        Kind::Text => described["contentType"] = "text/plain".into(),
    }
    described
}

fn operation(channel: &Channel, direction: &str, action: &str, messages: &[Message]) -> Value {
    let of = |direction: &str, message: &Message| json!({"$ref": format!("#/channels/{}/messages/{}", channel.name, key(direction, message))});
    let at = json!({"$ref": format!("#/channels/{}", channel.name)});
    let named: Vec<_> = messages.iter().map(|message| of(direction, message)).collect();
    let mut operation = json!({"action": action, "channel": at, "messages": named});
    let security: Vec<_> = channel.credentials.iter().filter_map(|credential| credential.scheme()).collect();
    if !security.is_empty() && !channel.credentials.contains(&Credential::Anonymous) {
        let schemes = security.iter().map(|name| json!({"$ref": format!("#/components/securitySchemes/{name}")}));
        operation["security"] = schemes.collect();
    }
    let answers: Vec<_> = channel.sends.iter().filter(|message| message.kind == Kind::Correlated).collect();
    if direction == "takes" && !answers.is_empty() {
        let answers: Vec<_> = answers.into_iter().map(|message| of("sends", message)).collect();
        operation["reply"] = json!({"channel": at, "messages": answers});
    }
    operation
}

impl Credential {
    fn word(self) -> &'static str {
        match self {
            Credential::Anonymous => "none",
            Credential::Key => "key",
            Credential::Ticket => "token",
            Credential::FirstFrame => "key in the first frame",
        }
    }

    fn scheme(self) -> Option<&'static str> {
        match self {
            Credential::Anonymous | Credential::FirstFrame => None,
            Credential::Key => Some("key"),
            Credential::Ticket => Some("token"),
        }
    }
}

/// Close codes, their meaning, and what a client should do (gateway/docs/streams.md §1.3).
pub const CLOSE_CODES: &[(u16, &str, &str)] = &[
    (1000, "normal: the answer to the client's close", "nothing"),
    (1001, "the server stops", "reconnect with backoff"),
    (1002, "a frame that the protocol forbids (RFC 6455)", "fix it"),
    (1003, "a binary frame", "fix it"),
    (1007, "a text that is not UTF-8", "fix it"),
    (1009, "a message over 64 KiB, its fragments counted together", "fix it"),
    (1011, "an internal error", "reconnect"),
    (4001, "token missing, invalid, expired or spent; or the key was revoked", "get a new token, then reconnect"),
    (4002, "the tier's number of sockets is open: the new one is closed", "close another one"),
    (4003, "access restricted, or a permission is missing", "stop"),
    (4004, "no valid auth on /v1/ws/user within 10 s", "fix it"),
    (
        4008,
        "more than 20 bad frames, or more than 30 frames in a second (operations on /v1/ws/trade do not count)",
        "slow down",
    ),
    (4009, "a slow consumer: over 1,024 frames or 4 MiB queued, or no byte taken for 15 s", "reconnect"),
    (4010, "idle: no frame for 60 s, not even a pong, and nothing taken of the queue", "reconnect"),
];

fn introduction() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n\n## Close codes\n\nThe reason of a close is a stable code too.\n\n| Code | Meaning | Client |\n|---|---|---|\n");
    for (code, meaning, advice) in CLOSE_CODES {
        text.push_str(&format!("| {code} | {meaning} | {advice} |\n"));
    }
    text
}

const INTRODUCTION: &str = "The streams of a paper-trading venue for prediction markets. Requests and answers over HTTP \
    are described in /v1/openapi.json.

## Connecting

A key in a header (X-API-Key or an alias) is checked before the upgrade and refused with a plain HTTP status. A token of \
POST /v1/keys/ws-token, in `?token=`, is valid for one handshake within 60 seconds; if it is refused, or a cap is \
reached, the socket is accepted and then closed with a code. An open socket outlives its token. Keys are never taken \
from the query.

## Limits

Sockets per user over all channels: free 1, pro 3, pro_plus 10, enterprise 50. Anonymous sockets: 5 per address; these \
are sockets of the market channel without a credential, and those of the user channel until their `auth` frame. \
Subscriptions per socket: 50 unless the server sets more; further ones are ignored. A message has at most 64 KiB and is \
text. Handshakes and frames do not count as requests; each operation on the trade channel counts as its REST twin does, \
and for nothing else; other frames there count as any frame does.

## Heartbeats

The text `PING` is answered by the text `PONG`; `{\"action\":\"ping\"}` and `{\"type\":\"ping\"}` by a `pong` frame; `{}` is \
ignored. The server sends a protocol ping every 20 s, ahead of the queue, and closes with 4010 after 60 s without any \
frame from a peer that also takes nothing of the queue.

## Order and gaps

Per token, frames are sent in the order in which the book changed, and `timestamp` never decreases. A subscription gets \
its book before any change of it. An open socket has no gap: either every change is sent, or a full book replaces \
skipped ones. Prices are conflated: a newer frame of a market replaces the queued one. Order facts are never dropped. \
Delivery is at most once; REST has the authoritative state.

## Resume

Every order fact of a user has a `user_seq`, counted from 1 and the same after a restart. A handshake with `?from_seq=N` \
on the executions or the user channel first gets what that channel would have sent after N, each fact once, and then \
new ones; a channel has its own kinds of facts only, so the numbers may skip. At least the last 1,000 facts of a user are \
kept; if N is older, a `gap` frame comes first.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ws::close::Close;
    use crate::ws::shape::CHANNELS;

    #[test]
    fn names_are_unique_and_references_resolve() {
        let document = document(CHANNELS, "1");
        let mut references = Vec::new();
        collect(&document, &mut references);
        for reference in &references {
            let pointer = reference.strip_prefix('#').expect("an inner reference");
            assert!(document.pointer(pointer).is_some(), "{reference} has no target");
        }
        let mut messages = 0;
        for channel in CHANNELS {
            let mut keys: Vec<_> =
                both_directions(channel).map(|(direction, message)| key(direction, message)).collect();
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), count, "{}", channel.name);
            messages += count;
        }
        println!("{} channels, {messages} messages, {} references", CHANNELS.len(), references.len());
    }

    #[test]
    fn every_close_code_is_described() {
        let closes = [
            Close::NORMAL,
            Close::GOING_AWAY,
            Close::PROTOCOL,
            Close::BINARY,
            Close::NOT_UTF8,
            Close::TOO_LONG,
            Close::INTERNAL,
            Close::INVALID_KEY,
            Close::CONNECTION_LIMIT,
            Close::RESTRICTED,
            Close::AUTH_TIMEOUT,
            Close::TOO_MANY_FRAMES,
            Close::SLOW_CONSUMER,
            Close::IDLE,
        ];
        let described: Vec<_> = CLOSE_CODES.iter().map(|(code, ..)| *code).collect();
        assert_eq!(described, closes.map(|close| close.code));
    }

    fn collect(value: &Value, references: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str().filter(|_| name == "$ref") {
                        Some(reference) => references.push(reference.to_owned()),
                        None => collect(value, references),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
            _ => {}
        }
    }
}
