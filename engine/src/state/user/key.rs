//! API keys: their stored fields, and their rights at a given moment.

use crate::bytes::{leaf, row};
use crate::id::KeyId;
use crate::reject::Reject;
use crate::time::{Date, Timestamp};
use wincode::{SchemaRead, SchemaWrite};

/// Plan of a user or key (gateway/docs/keys.md §7), in ascending order.
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy, PartialOrd, Ord, Hash)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Tier {
    Free,
    Pro,
    ProPlus,
    Enterprise,
}

/// What a key may do; `trade` implies `read` (gateway/docs/keys.md §1).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Permissions {
    Read,
    ReadTrade,
}

leaf! { Tier, Permissions, Grant, Prefix }

/// A plan of a user: given by an administrator, or by a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
pub struct Grant {
    pub tier: Tier,
    /// `None` = without end.
    pub expires_at: Option<Timestamp>,
}

/// An API key; of the secret only its hash is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    pub id: KeyId,
    /// SHA-256 of the whole key, and of its UUID alias.
    pub hash: [u8; 32],
    pub alias_hash: [u8; 32],
    pub prefix: Prefix,
    pub name: Option<Box<str>>,
    pub tier: Tier,
    pub permissions: Permissions,
    pub created_at: Timestamp,
    /// End of the overlap after a rotation. Never set at creation.
    pub expires_at: Date,
    /// Cutoff of a beta-issued key (gateway/docs/keys.md §5): from then on free and read-only.
    pub beta_until: Date,
    pub revoked_at: Date,
    pub last_used_at: Date,
}

row!(ApiKey {
    id,
    hash,
    alias_hash,
    prefix,
    name,
    tier,
    permissions,
    created_at,
    expires_at,
    beta_until,
    revoked_at,
    last_used_at,
});

/// The first 16 characters of a key, which are ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
pub struct Prefix([u8; 16]);

impl Prefix {
    /// At most 16 bytes of `text`, whole characters.
    pub fn new(text: &str) -> Prefix {
        let mut bytes = [0; 16];
        let end = (0..=text.len().min(bytes.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Prefix(bytes)
    }

    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        std::str::from_utf8(&self.0[..len]).unwrap_or("")
    }
}

impl ApiKey {
    /// Whether it may be used at `now`: neither revoked nor past its overlap.
    ///
    /// # Errors
    /// [`Reject::KeyRevoked`], [`Reject::KeyExpired`].
    pub fn usable(&self, now: Timestamp) -> Result<(), Reject> {
        match (self.revoked_at.get(), self.expires_at.get()) {
            (Some(_), _) => Err(Reject::KeyRevoked),
            (None, Some(end)) if end <= now => Err(Reject::KeyExpired),
            _ => Ok(()),
        }
    }

    /// Counts for the limit of active keys: the old half of a rotation does not (gateway/docs/keys.md §3).
    pub fn counts_as_active(&self) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none()
    }
}

/// Of an administrator's grant and a subscription, the one that decides: a paid grant that has not ended, else a
/// subscription that has not, else a paid one that has. A grant of the free plan never hides a subscription.
#[inline]
pub fn standing(grant: Option<Grant>, plan: Option<Grant>, now: Timestamp) -> Option<Grant> {
    let Some(plan) = plan else { return grant };
    match grant.filter(|grant| grant.tier > Tier::Free) {
        Some(grant) if grant.expires_at.is_none_or(|end| now < end) => Some(grant),
        _ => Some(plan),
    }
}

/// The plan of a user at a moment: a grant that has not ended, else free (gateway/docs/keys.md §3).
pub fn entitlement(grant: Option<Grant>, now: Timestamp) -> Tier {
    match grant {
        Some(grant) if grant.expires_at.is_none_or(|end| now < end) => grant.tier,
        _ => Tier::Free,
    }
}

/// Whether a paid grant has ended: all keys of the user are then free and read-only (gateway/docs/keys.md §3).
pub fn grant_ended(grant: Option<Grant>, now: Timestamp) -> bool {
    grant.is_some_and(|grant| grant.tier > Tier::Free && grant.expires_at.is_some_and(|end| end <= now))
}

/// The effective rights of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective {
    pub tier: Tier,
    pub permissions: Permissions,
    /// Its beta cutoff has been reached (header `X-API-Beta-Cutoff`).
    pub beta_cut_off: bool,
}

/// Effective tier and permissions of a key at a moment (gateway/docs/keys.md §3 to §5). `free_trade_since`: free keys
/// issued before it are read-only.
pub fn effective(
    key: (Tier, Permissions),
    created_at: Timestamp,
    beta_until: Option<Timestamp>,
    grant: Option<Grant>,
    free_trade_since: Timestamp,
    now: Timestamp,
) -> Effective {
    let (tier, permissions) = key;
    let beta_cut_off = beta_until.is_some_and(|until| until <= now);
    let entitled = entitlement(grant, now);
    // On the free plan again, by the end of a grant or by a new one: earlier paid keys are read-only.
    let ended = grant_ended(grant, now) || (tier > Tier::Free && entitled == Tier::Free);
    let legacy = tier == Tier::Free && created_at < free_trade_since;
    Effective {
        tier: if beta_cut_off { Tier::Free } else { tier.min(entitled) },
        permissions: if beta_cut_off || ended || legacy { Permissions::Read } else { permissions },
        beta_cut_off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_sixteen_characters_at_most() {
        for (text, prefix) in [
            ("svc_live_4f0c9d2a", "svc_live_4f0c9d2"),
            ("svc_live_4f0c9d2", "svc_live_4f0c9d2"),
            ("short", "short"),
            ("", ""),
            ("aaaaaaaaaaaaaaaé", "aaaaaaaaaaaaaaa"),
        ] {
            assert_eq!(Prefix::new(text).as_str(), prefix);
        }
    }

    #[test]
    fn a_grant_comes_before_a_subscription() {
        use Tier::{Enterprise, Free, Pro, ProPlus};
        let grant = |tier, end: Option<u64>| Some(Grant { tier, expires_at: end.map(Timestamp) });
        let now = Timestamp(5_000);
        // (grant, subscription) → (entitlement, a paid plan has ended)
        let rows = [
            (None, None, (Free, false)),
            (None, grant(Pro, None), (Pro, false)),
            (None, grant(Pro, Some(5_001)), (Pro, false)),
            (None, grant(Pro, Some(5_000)), (Free, true)),
            (grant(Pro, None), grant(ProPlus, None), (Pro, false)),
            (grant(Enterprise, Some(5_001)), grant(Pro, None), (Enterprise, false)),
            (grant(Enterprise, Some(5_000)), grant(Pro, None), (Pro, false)),
            (grant(Pro, None), grant(ProPlus, Some(1)), (Pro, false)),
            (grant(Enterprise, Some(5_000)), grant(Pro, Some(4_000)), (Free, true)),
            (grant(Free, None), grant(Pro, None), (Pro, false)),
            (grant(Free, None), grant(Pro, Some(5_000)), (Free, true)),
            (grant(Free, None), None, (Free, false)),
        ];
        println!("standing plans: {} cases", rows.len());
        for (grant, plan, expected) in rows {
            let standing = standing(grant, plan, now);
            assert_eq!((entitlement(standing, now), grant_ended(standing, now)), expected, "{grant:?} {plan:?}");
        }
    }

    #[test]
    fn a_key_has_the_present_entitlement() {
        use Permissions::{Read, ReadTrade};
        use Tier::{Enterprise, Free, Pro, ProPlus};
        let grant = |tier, end: Option<u64>| Some(Grant { tier, expires_at: end.map(Timestamp) });
        let (since, now) = (Timestamp(1_000), Timestamp(5_000));
        // (stored tier, created, beta cutoff, grant) → (tier, permissions)
        for (tier, created, beta, grant, expected) in [
            (Free, 1_000, None, None, (Free, ReadTrade)),
            (Free, 999, None, None, (Free, Read)),
            (Free, 999, None, grant(Pro, None), (Free, Read)),
            (Pro, 999, None, grant(Pro, None), (Pro, ReadTrade)),
            (Pro, 2_000, None, grant(Pro, Some(5_001)), (Pro, ReadTrade)),
            (Pro, 2_000, None, grant(Pro, Some(5_000)), (Free, Read)),
            (Free, 2_000, None, grant(Pro, Some(5_000)), (Free, Read)),
            (Enterprise, 2_000, None, grant(ProPlus, None), (ProPlus, ReadTrade)),
            (Pro, 2_000, None, grant(Free, None), (Free, Read)),
            (Pro, 2_000, Some(5_000), grant(Pro, None), (Free, Read)),
            (Pro, 2_000, Some(5_001), grant(Pro, None), (Pro, ReadTrade)),
        ] {
            let at = effective((tier, ReadTrade), Timestamp(created), beta.map(Timestamp), grant, since, now);
            assert_eq!((at.tier, at.permissions), expected, "{tier:?} {created} {beta:?} {grant:?}");
        }
    }
}
