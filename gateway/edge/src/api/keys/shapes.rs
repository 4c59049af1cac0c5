//! What keys look like on the wire, for the machine description (keys.md §1, §7).

use super::request::NAME_CHARS_MAX;
use crate::http::schema::{
    self, INTEGER, Param, Schema, Shape, TEXT, TEXT_OR_NULL, TS, TS_OR_NULL, UUID, field, optional,
};

const TIER: Schema = Schema::Word(&["free", "pro", "pro_plus", "enterprise"]);
const PERMISSIONS: Schema = Schema::Array(&Schema::Word(&["read", "trade"]));
const NAME: Schema = Schema::Nullable(&Schema::Text(NAME_CHARS_MAX as u32));

pub(super) const LIMIT: Param = Param::query("limit", Schema::Integer { min: 1, max: 200 }, "Rows; 50 without it.");
pub(super) const OFFSET: Param = Param::query("offset", schema::OFFSET, "Rows passed over; 0 without it.");

pub(super) const ASKED: Schema = Schema::Object(&Shape::new(
    "NewKey",
    "A key to be issued. Other fields are ignored.",
    &[
        optional("name", NAME, "A label."),
        optional("tier", Schema::Nullable(&TIER), "At most the plan's; without it the plan's."),
        optional(
            "permissions",
            Schema::Nullable(&Schema::Array(&Schema::Word(&["read", "trade", "admin"]))),
            "Without it both; `trade` implies `read`; `admin` can be named and is never given.",
        ),
    ],
));
pub(super) const ASKED_EXAMPLE: &str = r#"{"name":"grid bot","permissions":["read","trade"]}"#;

pub(super) const ISSUED: Schema = Schema::Object(&Shape::new(
    "IssuedKey",
    "A new key, with its secret: it is never shown again.",
    &[
        field("id", INTEGER, "What it is revoked and rotated by."),
        field("raw_key", TEXT, "The key."),
        field("key_prefix", TEXT, "Its first 16 characters."),
        field("name", TEXT_OR_NULL, ""),
        field("rate_limit_tier", TIER, ""),
        field("permissions", PERMISSIONS, "What it may do now."),
        field("created_at", TS, ""),
        field("venue_api_key", UUID, "The same key for clients that can only hold a UUID."),
    ],
));
pub(super) const ISSUED_EXAMPLE: &str = r#"{"id":318,
"raw_key":"svc_live_4f0c9d20000000000000000000000000000000000000000000000000000000000",
"key_prefix":"svc_live_4f0c9d2","name":"grid bot","rate_limit_tier":"free","permissions":["read","trade"],
"created_at":"2026-10-02T09:14:05Z","venue_api_key":"5d4c0f6e-8f6b-8d1e-9f3c-2b1a09f8e7d6"}"#;

pub(super) const ROTATED: Schema = Schema::Object(&Shape::new(
    "RotatedKey",
    "The key that replaces another one, with its secret.",
    &[
        field("id", INTEGER, ""),
        field("raw_key", TEXT, ""),
        field("key_prefix", TEXT, ""),
        field("name", TEXT_OR_NULL, ""),
        field("rate_limit_tier", TIER, ""),
        field("permissions", PERMISSIONS, ""),
        field("created_at", TS, ""),
        field("venue_api_key", UUID, ""),
        field("replaces_key_id", INTEGER, ""),
        field("old_key_expires_at", TS, "Until then both work."),
    ],
));
pub(super) const ROTATED_EXAMPLE: &str = r#"{"id":319,
"raw_key":"svc_live_4f0c9d20000000000000000000000000000000000000000000000000000000000",
"key_prefix":"svc_live_4f0c9d2","name":"grid bot","rate_limit_tier":"free","permissions":["read","trade"],
"created_at":"2026-10-02T09:14:05Z","venue_api_key":"5d4c0f6e-8f6b-8d1e-9f3c-2b1a09f8e7d6","replaces_key_id":318,
"old_key_expires_at":"2026-10-03T09:14:05Z"}"#;

pub(super) const LISTED: Schema = Schema::Object(&Shape::new(
    "ApiKey",
    "A key as it is listed: without its secret.",
    &[
        field("id", INTEGER, ""),
        field("key_prefix", TEXT, ""),
        field("name", TEXT_OR_NULL, ""),
        field("rate_limit_tier", TIER, "As it was issued."),
        field("permissions", PERMISSIONS, "What it may do now."),
        field("is_active", Schema::Boolean, ""),
        field("created_at", TS, ""),
        field("expires_at", TS_OR_NULL, "End of the overlap of a rotation, or the beta's cutoff."),
        field(
            "last_used_at",
            TS_OR_NULL,
            "When a request, a handshake or an `auth` frame with it was last let in, to the minute; null: never.",
        ),
    ],
));
pub(super) const LISTED_EXAMPLE: &str = r#"{"id":318,"key_prefix":"svc_live_4f0c9d2","name":"grid bot",
"rate_limit_tier":"free","permissions":["read","trade"],"is_active":true,"created_at":"2026-10-02T09:14:05Z",
"expires_at":null,"last_used_at":"2026-10-02T09:20:00Z"}"#;
pub(super) const LIST: Schema = Schema::Array(&LISTED);
pub(super) const LIST_EXAMPLE: &str = r#"[{"id":318,"key_prefix":"svc_live_4f0c9d2","name":null,
"rate_limit_tier":"free","permissions":["read"],"is_active":true,"created_at":"2026-10-02T09:14:05Z",
"expires_at":null,"last_used_at":null}]"#;

pub(super) const RENAMING: Schema = Schema::Object(&Shape::new(
    "KeyName",
    "A new label. Other fields are ignored.",
    &[field("name", NAME, "Null takes the old one away.")],
));

pub(super) const MESSAGE: Schema =
    Schema::Object(&Shape::new("KeyRevoked", "What was done.", &[field("message", TEXT, "For people.")]));

pub(super) const TIERS: Schema = Schema::Array(&Schema::Object(&Shape::new(
    "KeyTier",
    "What a tier may do.",
    &[
        field("tier", TIER, ""),
        field("requests_per_second", INTEGER, ""),
        field("requests_per_minute", INTEGER, ""),
        field("max_ws_connections", INTEGER, "Per user."),
        field("max_batch_size", INTEGER, ""),
    ],
)));
pub(super) const TIERS_EXAMPLE: &str = r#"[{"tier":"free","requests_per_second":2,"requests_per_minute":120,
"max_ws_connections":1,"max_batch_size":1}]"#;

pub(super) const SOCKET_TOKEN: Schema = Schema::Object(&Shape::new(
    "SocketToken",
    "A token for one handshake.",
    &[field("token", TEXT, "A JWT of this process."), field("expires_in", INTEGER, "Seconds.")],
));
/// None, or an empty one.
pub(super) const NOTHING: Schema = Schema::Object(&Shape::new("Nothing", "Fields are ignored.", &[]));
