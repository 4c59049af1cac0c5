//! Keys on the wire (keys.md §1, §7). A raw key is written into the answer that creates it and nowhere else.

use crate::http::auth::{RawKey, permission_words};
use crate::settings::{Limits, TIERS};
use engine::id::KeyId;
use engine::time::Timestamp;
use engine::user::key::effective;
use engine::user::{Grant, Permissions, Tier};
use engine::view::KeyView;
use wire::write::{Object, array, object, string};

/// What decides what a key may do now.
#[derive(Clone, Copy)]
pub struct Moment {
    pub now: Timestamp,
    pub grant: Option<Grant>,
    pub free_trade_since: Timestamp,
}

/// `"permissions"`: `read`, `trade`, in that order.
pub fn permissions(o: &mut Object<'_>, permissions: Permissions) {
    o.array("permissions", permission_words(permissions), |out, word| string(out, word));
}

/// What replaced which key.
#[derive(Clone, Copy)]
pub struct Replaced {
    pub key: KeyId,
    pub expires_at: Timestamp,
}

/// The record of creation and rotation: the only place where a raw key is shown.
pub fn created(out: &mut Vec<u8>, key: &KeyView, raw: &RawKey, moment: Moment, replaced: Option<Replaced>) {
    object(out, |o| {
        o.integer("id", key.id.0);
        o.text("raw_key", raw.expose());
        shown(o, key, moment);
        o.ts("created_at", key.created_at);
        o.text("venue_api_key", raw.expose_alias());
        if let Some(replaced) = replaced {
            o.integer("replaces_key_id", replaced.key.0);
            o.ts("old_key_expires_at", replaced.expires_at);
        }
    });
}

/// The record of the list; `disabled` by the administrator.
pub fn listed(out: &mut Vec<u8>, key: &KeyView, moment: Moment, disabled: bool) {
    let ended = key.expires_at.is_some_and(|end| end <= moment.now);
    object(out, |o| {
        o.integer("id", key.id.0);
        shown(o, key, moment);
        o.boolean("is_active", !disabled && !ended);
        o.ts("created_at", key.created_at);
        o.ts_or_null("expires_at", key.expires_at.or(key.beta_until));
        o.ts_or_null("last_used_at", key.last_used_at);
    });
}

fn shown(o: &mut Object<'_>, key: &KeyView, moment: Moment) {
    let stored = (key.tier, key.permissions);
    let served = effective(stored, key.created_at, key.beta_until, moment.grant, moment.free_trade_since, moment.now);
    o.text("key_prefix", &key.prefix);
    o.text_or_null("name", key.name.as_deref());
    o.word("rate_limit_tier", TIERS[key.tier as usize].1);
    permissions(o, served.permissions);
}

/// The tier whose limits a key has at this moment.
pub fn served_tier(key: &KeyView, moment: Moment) -> Tier {
    let stored = (key.tier, key.permissions);
    effective(stored, key.created_at, key.beta_until, moment.grant, moment.free_trade_since, moment.now).tier
}

/// All tiers with their effective limits, ascending.
pub fn tiers(out: &mut Vec<u8>, limits: &Limits) {
    array(out, TIERS, |out, (tier, name)| {
        let limits = limits.tier(tier);
        object(out, |o| {
            o.word("tier", name);
            o.integer("requests_per_second", limits.requests_per_second.into());
            o.integer("requests_per_minute", limits.requests_per_minute.into());
            o.integer("max_ws_connections", limits.max_ws_connections.into());
            o.integer("max_batch_size", limits.max_batch_size.into());
        });
    });
}
