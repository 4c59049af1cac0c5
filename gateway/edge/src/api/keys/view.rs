//! Keys on the wire (`gateway/docs/keys.md §1`, `§7`). A raw key is written into the answer that creates it and nowhere else.

use crate::http::auth::{RawKey, permission_words};
use crate::http::record::{Record, record};
use crate::http::scalar::{self, Uuid, words};
use crate::http::ticket;
use crate::settings::{Limits, TIERS};
use engine::id::KeyId;
use engine::time::Timestamp;
use engine::user::key::{Effective, effective};
use engine::user::{Grant, Permissions, Tier};
use engine::view::KeyView;

/// What decides what a key may do now.
#[derive(Clone, Copy)]
pub struct Moment {
    pub now: Timestamp,
    pub grant: Option<Grant>,
    pub free_trade_since: Timestamp,
}

words! {
    pub TierName = "free", "pro", "pro_plus", "enterprise";
    pub PermissionName = "read", "trade";
}

impl From<Tier> for TierName {
    fn from(tier: Tier) -> TierName {
        TIERS[tier as usize].1.into()
    }
}

/// `read`, `trade`, in that order.
pub fn permission_names(permissions: Permissions) -> Vec<PermissionName> {
    permission_words(permissions).iter().map(|word| (*word).into()).collect()
}

record! {
    /// A new key, with its secret: it is never shown again.
    pub struct IssuedKey<'a> {
        id: u64 = 318, "What it is revoked and rotated by.";
        raw_key: &'a str = "svc_live_4f0c9d20000000000000000000000000000000000000000000000000000000000", "The key.";
        key_prefix: &'a str = "svc_live_4f0c9d2", "Its first 16 characters.";
        name: Option<&'a str> = Some("grid bot");
        rate_limit_tier: TierName = "free".into();
        permissions: Vec<PermissionName> = permission_names(Permissions::ReadTrade), "What it may do now.";
        created_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:14:05Z");
        venue_api_key: Uuid<'a> = "5d4c0f6e-8f6b-8d1e-9f3c-2b1a09f8e7d6".into(),
            "The same key for clients that can only hold a UUID.";
    }

    /// The key that replaces another one, with its secret.
    pub struct RotatedKey<'a> {
        id: u64 = 319;
        raw_key: &'a str = IssuedKey::example().raw_key;
        key_prefix: &'a str = "svc_live_4f0c9d2";
        name: Option<&'a str> = Some("grid bot");
        rate_limit_tier: TierName = "free".into();
        permissions: Vec<PermissionName> = permission_names(Permissions::ReadTrade);
        created_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:14:05Z");
        venue_api_key: Uuid<'a> = IssuedKey::example().venue_api_key;
        replaces_key_id: u64 = 318;
        old_key_expires_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-03T09:14:05Z"), "Both keys work until this time.";
    }

    /// A key as it is listed: without its secret.
    pub struct ApiKey<'a> {
        id: u64 = 318;
        key_prefix: &'a str = "svc_live_4f0c9d2";
        name: Option<&'a str> = Some("grid bot");
        rate_limit_tier: TierName = "free".into(), "The tier with which it was issued.";
        permissions: Vec<PermissionName> = permission_names(Permissions::ReadTrade), "What it may do now.";
        is_active: bool = true;
        created_at: scalar::Timestamp = scalar::Timestamp::of("2026-10-02T09:14:05Z");
        expires_at: Option<scalar::Timestamp> = None, "End of the overlap of a rotation, or the beta's cutoff.";
        last_used_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-02T09:20:00Z")),
            "Time of the last request, handshake or `auth` frame accepted with this key, to the minute; null if never used.";
        realism: &'a str = "kind", "The set of realism under which its orders are accepted.";
    }

    /// What a tier may do.
    pub struct KeyTier {
        tier: TierName = "free".into();
        requests_per_second: u32 = 2;
        requests_per_minute: u32 = 120;
        max_ws_connections: u32 = 1, "Per user.";
        max_batch_size: u32 = 1;
    }

    /// What was done.
    pub struct KeyRevoked {
        pub message: String = "Key 318 is revoked.".to_owned(), "For people.";
    }

    /// A token for one handshake.
    pub struct SocketToken<'a> {
        pub token: &'a str = "eyJhbGciOiJIUzI1NiJ9.e30.x", "A JWT of this process.";
        pub expires_in: u64 = ticket::TTL_SECS, "Seconds.";
    }

    /// Fields are ignored.
    pub struct Nothing {}
}

impl<'a> IssuedKey<'a> {
    pub fn new(key: &'a KeyView, raw: &'a RawKey, moment: Moment) -> IssuedKey<'a> {
        IssuedKey {
            id: key.id.0,
            raw_key: raw.expose(),
            key_prefix: &key.prefix,
            name: key.name.as_deref(),
            rate_limit_tier: key.tier.into(),
            permissions: permission_names(served(key, moment).permissions),
            created_at: scalar::Timestamp(key.created_at),
            venue_api_key: raw.expose_alias().into(),
        }
    }
}

impl<'a> RotatedKey<'a> {
    /// `replaced` works until `ends_at`.
    pub fn new(issued: IssuedKey<'a>, replaced: KeyId, ends_at: scalar::Timestamp) -> RotatedKey<'a> {
        RotatedKey {
            id: issued.id,
            raw_key: issued.raw_key,
            key_prefix: issued.key_prefix,
            name: issued.name,
            rate_limit_tier: issued.rate_limit_tier,
            permissions: issued.permissions,
            created_at: issued.created_at,
            venue_api_key: issued.venue_api_key,
            replaces_key_id: replaced.0,
            old_key_expires_at: ends_at,
        }
    }
}

impl<'a> ApiKey<'a> {
    /// The example of a list: a key that lacks what the other one has.
    pub fn listed_example() -> ApiKey<'a> {
        let permissions = permission_names(Permissions::Read);
        ApiKey { name: None, permissions, last_used_at: None, ..ApiKey::example() }
    }

    /// `disabled`: by the administrator; `realism`: the set of keys without a choice.
    pub fn new(key: &'a KeyView, moment: Moment, disabled: bool, realism: &'a str) -> ApiKey<'a> {
        let ended = key.expires_at.is_some_and(|end| end <= moment.now);
        ApiKey {
            id: key.id.0,
            key_prefix: &key.prefix,
            name: key.name.as_deref(),
            rate_limit_tier: key.tier.into(),
            permissions: permission_names(served(key, moment).permissions),
            is_active: !disabled && !ended,
            created_at: scalar::Timestamp(key.created_at),
            expires_at: key.expires_at.or(key.beta_until).map(scalar::Timestamp),
            last_used_at: key.last_used_at.map(scalar::Timestamp),
            realism: key.realism.as_deref().unwrap_or(realism),
        }
    }
}

impl KeyTier {
    /// All tiers with their effective limits, ascending.
    pub fn all(limits: &Limits) -> Vec<KeyTier> {
        let of = |(tier, name): (Tier, &'static str)| {
            let limits = limits.tier(tier);
            KeyTier {
                tier: name.into(),
                requests_per_second: limits.requests_per_second,
                requests_per_minute: limits.requests_per_minute,
                max_ws_connections: limits.max_ws_connections,
                max_batch_size: limits.max_batch_size,
            }
        };
        TIERS.into_iter().map(of).collect()
    }
}

/// What a key may do at this moment.
pub fn served(key: &KeyView, moment: Moment) -> Effective {
    let stored = (key.tier, key.permissions);
    effective(stored, key.created_at, key.beta_until, moment.grant, moment.free_trade_since, moment.now)
}
