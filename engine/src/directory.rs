//! Directory: from a key's hash to its owner and rights, and from an identity provider's `sub` to a user. The read side
//! of authentication: lookups take no lock.
//!
//! Written from facts after they are applied ([`Directory::observe`]) and at boot ([`Directory::add_user`]). A key is
//! usable when it is applied; a revocation is effective immediately. Entries are never removed: a revoked key keeps its
//! slot, so a slot number is a stable index for rate windows. A key takes about 120 bytes in total, with both its
//! secrets.
//!
//! It stores facts only: the *effective* tier and permissions, and the code of a refusal, are decided by the caller
//! (gateway/docs/keys.md §3).

use crate::fact;
use crate::id::{KeyId, USER_ID_MAX, UserId};
use crate::index::{AppendVec, HashIndex};
use crate::mutation::Mutation;
use crate::time::Timestamp;
use crate::user::key::standing;
use crate::user::{Grant, Permissions, Tier, User};
use ahash::RandomState;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};

/// Keys and users, for authentication on all threads.
#[derive(Default)]
pub struct Directory {
    keys: AppendVec<KeySlot>,
    /// Number = key slot × 2, + 1 for the alias.
    hashes: HashIndex,
    /// By user id − 1, because ids come from one counter. The length is that counter.
    users: AppendVec<UserSlot>,
    /// Count of granted prefixes.
    prefixes: AtomicUsize,
    subs: HashIndex,
    /// The plans of users who ever had a subscription.
    plans: AppendVec<PlanSlot>,
    /// Ids of customers and payments at the payment provider, and their users.
    billed: AppendVec<(Box<str>, UserId)>,
    billed_names: HashIndex,
    hasher: RandomState,
}

/// The bearer of a key at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal {
    pub user: UserId,
    pub key: KeyId,
    /// Dense number of the key, the same for both of its secrets: index of its rate windows. Changes with a restart.
    pub slot: u32,
    /// Stored tier and permissions; the effective ones depend on `grant` and the dates.
    pub tier: Tier,
    pub permissions: Permissions,
    pub created_at: Timestamp,
    /// End of the overlap after a rotation.
    pub expires_at: Option<Timestamp>,
    /// Cutoff of a beta-issued key.
    pub beta_until: Option<Timestamp>,
    pub revoked: bool,
    /// The user's grant, and the plan of the subscription.
    pub grant: Option<Grant>,
    pub plan: Option<Grant>,
    /// The UUID alias was presented.
    pub by_alias: bool,
}

impl Principal {
    /// The grant or subscription in force, or one that has ended.
    #[inline]
    pub fn standing(&self, now: Timestamp) -> Option<Grant> {
        standing(self.grant, self.plan, now)
    }
}

/// The result of a reservation of a `sub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// The user exists.
    Known(UserId),
    /// First sight: the caller creates this user, or returns the id ([`Directory::give_back`]).
    Reserved(UserId),
    /// Another request is creating the user (`AUTH_STATE_INCOMPLETE`).
    Pending,
}

struct KeySlot {
    print: Fingerprint,
    alias_print: Fingerprint,
    key: KeyId,
    created_at: Timestamp,
    /// 0 = none.
    beta_until: Timestamp,
    /// 0 = none.
    expires_at: AtomicU64,
    /// The user's key before this one: slot + 1, 0 = none.
    previous: u32,
    tier: Tier,
    permissions: Permissions,
    revoked: AtomicBool,
}

/// Fingerprint: half of a SHA-256, which identifies a secret. A second secret with the same 128 bits would mean a
/// broken hash. The user has the whole hash.
type Fingerprint = [u8; 16];

struct UserSlot {
    state: AtomicU8,
    /// An address is known.
    has_email: AtomicBool,
    /// The user's newest key: slot + 1, 0 = none. Written by the user's shard alone.
    newest_key: AtomicU32,
    /// The user that was granted this id as a prefix of its objects' ids; 0 = none.
    granted_to: AtomicU32,
    /// Slot of the user's plans + 1, 0 = none. Written by the user's shard alone.
    plans: AtomicU32,
    /// `expiry << 3 | tier + 1` with expiry in µs, [`NO_EXPIRY`] = without end; 0 = no grant.
    grant: AtomicU64,
    /// In a separate box: most users have none.
    sub: OnceLock<Box<Box<str>>>,
}

/// Plans by subscription, packed as a grant.
#[derive(Default)]
struct PlanSlot {
    plan: AtomicU64,
    simulation: AtomicU64,
}

/// States of a user slot.
const VACANT: u8 = 0;
const PENDING: u8 = 1;
const KNOWN: u8 = 2;
const NO_EXPIRY: u64 = u64::MAX >> 3;
const TIERS: [Tier; 4] = [Tier::Free, Tier::Pro, Tier::ProPlus, Tier::Enterprise];

impl Directory {
    pub fn new() -> Directory {
        Directory::default()
    }

    /// The bearer of the key, or of the UUID alias, with this SHA-256; revoked and expired keys too.
    #[inline]
    pub fn principal(&self, hash: &[u8; 32]) -> Option<Principal> {
        let print = print(hash);
        let is_it = |number: u32| self.secret(number).is_some_and(|secret| same(secret, &print));
        let number = self.hashes.find_evenly(index_hash(&print), is_it)?;
        self.bearer(number / 2, number % 2 == 1)
    }

    /// The bearer of a key by its id; revoked and expired ones too.
    pub fn principal_of(&self, key: KeyId) -> Option<Principal> {
        self.bearer(self.slot(key)?, false)
    }

    /// The bearer of the key in that slot, for requests that were admitted before; revoked and expired keys too.
    #[inline]
    pub fn principal_at(&self, slot: u32) -> Option<Principal> {
        self.bearer(slot, false)
    }

    #[inline]
    fn bearer(&self, slot: u32, by_alias: bool) -> Option<Principal> {
        let key = self.keys.get(slot as usize)?;
        let user = self.owner_of(key.key.0);
        Some(Principal {
            user,
            key: key.key,
            slot,
            tier: key.tier,
            permissions: key.permissions,
            created_at: key.created_at,
            expires_at: date(key.expires_at.load(Relaxed)),
            beta_until: date(key.beta_until.0),
            revoked: key.revoked.load(Relaxed),
            grant: self.grant(user),
            plan: self.plan(user),
            by_alias,
        })
    }

    /// The tier that an administrator gave to the user.
    pub fn grant(&self, user: UserId) -> Option<Grant> {
        unpack(self.user(user)?.grant.load(Relaxed))
    }

    /// The plan of the user's subscription.
    #[inline]
    pub fn plan(&self, user: UserId) -> Option<Grant> {
        unpack(self.plans_of(user)?.plan.load(Relaxed))
    }

    /// The plan whose limits the simulation has by a subscription of its own.
    pub fn simulation_plan(&self, user: UserId) -> Option<Grant> {
        unpack(self.plans_of(user)?.simulation.load(Relaxed))
    }

    /// The grant or subscription of the user in force, or one that has ended.
    pub fn standing(&self, user: UserId, now: Timestamp) -> Option<Grant> {
        standing(self.grant(user), self.plan(user), now)
    }

    /// The user of a customer or payment, by its id at the payment provider.
    pub fn by_billed_name(&self, name: &str) -> Option<UserId> {
        let is_it = |number: u32| self.billed.get(number as usize).is_some_and(|(known, _)| **known == *name);
        let number = self.billed_names.find(self.hasher.hash_one(name), is_it)?;
        self.billed.get(number as usize).map(|(_, user)| *user)
    }

    /// Whether the user has a key that works at `now`.
    pub fn holds_key(&self, user: UserId, now: Timestamp) -> bool {
        let mut next = self.user(user).map_or(0, |slot| slot.newest_key.load(Relaxed));
        while let Some(key) = next.checked_sub(1).and_then(|slot| self.keys.get(slot as usize)) {
            let ended = date(key.expires_at.load(Relaxed)).is_some_and(|end| end <= now);
            if !key.revoked.load(Relaxed) && !ended {
                return true;
            }
            next = key.previous;
        }
        false
    }

    /// The dense slot of a key, as in its bearer's [`Principal`]; revoked and expired ones too.
    pub fn slot(&self, key: KeyId) -> Option<u32> {
        let mut next = self.user(self.owner_of(key.0)).map_or(0, |slot| slot.newest_key.load(Relaxed));
        while let Some(slot) = next.checked_sub(1) {
            let found = self.keys.get(slot as usize)?;
            if found.key == key {
                return Some(slot);
            }
            next = found.previous;
        }
        None
    }

    /// Count of users that have a key that works at `now`. Visits every user: for the gate of a capped cohort.
    pub fn holders_count(&self, now: Timestamp) -> usize {
        self.holders_between(1..self.users.len() as u64 + 1, now)
    }

    /// The same for these ids, to count in parts.
    pub fn holders_between(&self, users: std::ops::Range<u64>, now: Timestamp) -> usize {
        users.filter(|user| self.holds_key(UserId(*user), now)).count()
    }

    /// Whether the user exists.
    pub fn exists(&self, user: UserId) -> bool {
        self.user(user).is_some_and(|slot| slot.state.load(Ordering::Acquire) == KNOWN)
    }

    /// Whether the user has an address.
    pub fn has_email(&self, user: UserId) -> bool {
        self.user(user).is_some_and(|slot| slot.has_email.load(Relaxed))
    }

    /// The user of this `sub`, if it exists.
    pub fn by_sub(&self, sub: &str) -> Option<UserId> {
        self.find_sub(sub).filter(|user| self.exists(*user))
    }

    /// The `sub` of a user, if it has one.
    pub fn sub(&self, user: UserId) -> Option<&str> {
        self.user(user)?.sub.get().map(|sub| &***sub)
    }

    /// The user of this `sub`, or a new id for it: of several concurrent callers exactly one gets the id.
    pub fn reserve(&self, sub: &str) -> Reservation {
        let user = self.find_sub(sub).unwrap_or_else(|| {
            let make = || self.add_slot(VACANT, Some(sub)).0 as u32;
            let (user, _) = self.subs.find_or_insert(self.hasher.hash_one(sub), |user| self.has_sub(user, sub), make);
            UserId(u64::from(user))
        });
        // Any thread may have made the slot: this exchange decides between concurrent callers.
        match self.state(user).compare_exchange(VACANT, PENDING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Reservation::Reserved(user),
            Err(KNOWN) => Reservation::Known(user),
            Err(_) => Reservation::Pending,
        }
    }

    /// An id for a user without `sub` (made in bulk, the demo user).
    pub fn reserve_anonymous(&self) -> UserId {
        self.add_slot(PENDING, None)
    }

    /// A prefix for the ids of a user's objects: an id that no user has, and above all before it. `None`: ids with it would
    /// not be exact in JavaScript.
    pub fn reserve_prefix(&self) -> Option<UserId> {
        // A user at its end asks with every record: no slot is made in vain.
        let has_room = (self.users.len() as u64) < USER_ID_MAX;
        has_room.then(|| self.add_slot(PENDING, None)).filter(|prefix| prefix.0 <= USER_ID_MAX)
    }

    /// The user that an object belongs to, if it belongs to any.
    #[inline]
    pub fn owner_of(&self, object: u64) -> UserId {
        let prefix = UserId::of_object(object);
        match self.user(prefix).map_or(0, |slot| slot.granted_to.load(Relaxed)) {
            0 => prefix,
            owner => UserId(owner.into()),
        }
    }

    /// The reserved user was not created: the next caller for the same `sub` may create it.
    pub fn give_back(&self, user: UserId) {
        let _ = self.state(user).compare_exchange(PENDING, VACANT, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Users that exist or are being created, and granted prefixes; the count of ids so far.
    pub fn users_count(&self) -> usize {
        self.users.len()
    }

    /// Count of ids that are prefixes of users.
    pub fn prefixes_count(&self) -> usize {
        self.prefixes.load(Relaxed)
    }

    /// Count of keys ever issued; all slots are below it.
    pub fn keys_count(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    fn plans_of(&self, user: UserId) -> Option<&PlanSlot> {
        let slot = self.user(user)?.plans.load(Ordering::Acquire).checked_sub(1)?;
        self.plans.get(slot as usize)
    }

    fn user(&self, user: UserId) -> Option<&UserSlot> {
        self.users.get(usize::try_from(user.0.checked_sub(1)?).ok()?)
    }

    fn state(&self, user: UserId) -> &AtomicU8 {
        &self.user(user).expect("ids come from this counter").state
    }

    fn secret(&self, number: u32) -> Option<&Fingerprint> {
        let key = self.keys.get(number as usize / 2)?;
        Some(if number.is_multiple_of(2) { &key.print } else { &key.alias_print })
    }

    fn find_sub(&self, sub: &str) -> Option<UserId> {
        let found = self.subs.find(self.hasher.hash_one(sub), |user| self.has_sub(user, sub))?;
        Some(UserId(u64::from(found)))
    }

    fn has_sub(&self, user: u32, sub: &str) -> bool {
        let slot = self.user(UserId(u64::from(user)));
        slot.is_some_and(|slot| slot.sub.get().is_some_and(|known| ***known == *sub))
    }

    fn add_slot(&self, state: u8, sub: Option<&str>) -> UserId {
        UserId(1 + self.users.push(UserSlot::new(state, sub)) as u64)
    }
}

/// Written by the shards, each for its own users.
impl Directory {
    /// Applies a fact about `owner` that was applied to the state.
    ///
    /// # Panics
    /// When a fact about a key precedes its issue: facts of a user come in their order.
    pub fn observe(&self, owner: UserId, fact: &Mutation) {
        match fact {
            Mutation::UserCreated(fact::UserCreated { sub, email, .. }) => {
                self.note_user(owner, sub.as_deref(), email.is_some());
            }
            Mutation::EmailNoted(_) => self.note_email(owner),
            Mutation::NumbersExtended(fact::NumbersExtended { prefix, .. }) => self.note_prefix(owner, *prefix),
            Mutation::GrantSet(fact::GrantSet { tier, expires_at, .. }) => {
                self.note_grant(owner, Some(Grant { tier: *tier, expires_at: *expires_at }));
            }
            Mutation::KeyIssued(fact::KeyIssued {
                key, hash, alias_hash, tier, permissions, beta_until, at, ..
            }) => {
                self.note_key(KeySlot {
                    print: print(hash),
                    alias_print: print(alias_hash),
                    key: *key,
                    created_at: *at,
                    beta_until: beta_until.unwrap_or_default(),
                    expires_at: AtomicU64::new(0),
                    previous: 0,
                    tier: *tier,
                    permissions: *permissions,
                    revoked: AtomicBool::new(false),
                });
            }
            Mutation::KeyExpiring(fact::KeyExpiring { key, expires_at, .. }) => {
                self.key(*key).expires_at.store(expires_at.0, Relaxed)
            }
            Mutation::KeyRevoked(fact::KeyRevoked { key, .. }) => self.key(*key).revoked.store(true, Relaxed),
            Mutation::CustomerNoted(fact::CustomerNoted { customer, .. }) => self.note_billed_name(owner, customer),
            Mutation::PurchaseNoted(fact::PurchaseNoted { payment, .. }) => self.note_billed_name(owner, payment),
            _ => {}
        }
    }

    /// The subscriptions of a user have changed.
    pub fn note_plans(&self, user: &User) {
        let (plan, simulation) = match user.billing() {
            Some(billing) => (billing.plan(), billing.simulation_plan()),
            None => (None, None),
        };
        let owner = self.user(user.id).expect("a plan follows its user");
        let known = owner.plans.load(Relaxed).checked_sub(1).and_then(|slot| self.plans.get(slot as usize));
        match known {
            Some(slot) => {
                slot.plan.store(pack(plan), Relaxed);
                slot.simulation.store(pack(simulation), Relaxed);
            }
            None if plan.is_some() || simulation.is_some() => {
                let slot = PlanSlot { plan: pack(plan).into(), simulation: pack(simulation).into() };
                owner.plans.store(self.plans.push(slot) as u32 + 1, Ordering::Release);
            }
            None => {}
        }
    }

    /// Adds a user at boot, in any order of ids.
    pub fn add_user(&self, user: &User) {
        self.note_user(user.id, user.sub(), user.email().is_some());
        self.note_grant(user.id, user.grant);
        user.granted_prefixes().iter().for_each(|prefix| self.note_prefix(user.id, *prefix));
        if let Some(billing) = user.billing() {
            self.note_plans(user);
            let payments = billing.purchases().iter().map(|bought| &*bought.payment);
            billing
                .customer
                .as_deref()
                .into_iter()
                .chain(payments)
                .for_each(|name| self.note_billed_name(user.id, name));
        }
        for key in &user.keys {
            self.note_key(KeySlot {
                print: print(&key.hash),
                alias_print: print(&key.alias_hash),
                key: key.id,
                created_at: key.created_at,
                beta_until: key.beta_until.get().unwrap_or_default(),
                expires_at: AtomicU64::new(key.expires_at.get().map_or(0, |at| at.0)),
                previous: 0,
                tier: key.tier,
                permissions: key.permissions,
                revoked: AtomicBool::new(key.revoked_at.is_some()),
            });
        }
    }

    /// The slot of an id. At boot ids come in any order, and some were reserved and never used: all below exist as vacant
    /// slots.
    fn slot_of(&self, user: UserId) -> &UserSlot {
        while (self.users.len() as u64) < user.0 {
            self.add_slot(VACANT, None);
        }
        self.user(user).expect("just made")
    }

    fn note_prefix(&self, owner: UserId, prefix: UserId) {
        let owner = u32::try_from(owner.0).expect("fewer users than u32 counts");
        if self.slot_of(prefix).granted_to.swap(owner, Relaxed) == 0 {
            self.prefixes.fetch_add(1, Relaxed);
        }
    }

    fn note_user(&self, user: UserId, sub: Option<&str>, has_email: bool) {
        let slot = self.slot_of(user);
        if let Some(sub) = sub {
            slot.sub.get_or_init(|| Box::new(sub.into()));
            let number = u32::try_from(user.0).expect("fewer users than u32 counts");
            self.subs.find_or_insert(self.hasher.hash_one(sub), |user| self.has_sub(user, sub), || number);
        }
        slot.has_email.store(has_email, Relaxed);
        slot.state.store(KNOWN, Ordering::Release);
    }

    fn note_email(&self, user: UserId) {
        self.user(user).expect("an address follows its user").has_email.store(true, Relaxed);
    }

    fn note_grant(&self, user: UserId, grant: Option<Grant>) {
        self.user(user).expect("a grant follows its user").grant.store(pack(grant), Relaxed);
    }

    /// The first user of a name keeps it.
    fn note_billed_name(&self, user: UserId, name: &str) {
        let is_it = |number: u32| self.billed.get(number as usize).is_some_and(|(known, _)| **known == *name);
        let make = || self.billed.push((name.into(), user)) as u32;
        self.billed_names.find_or_insert(self.hasher.hash_one(name), is_it, make);
    }

    fn note_key(&self, mut key: KeySlot) {
        let owner = self.user(self.owner_of(key.key.0)).expect("a key follows its user");
        key.previous = owner.newest_key.load(Relaxed);
        let slot = self.keys.push(key) as u32;
        owner.newest_key.store(slot + 1, Relaxed);
        for number in [slot * 2, slot * 2 + 1] {
            let secret = self.secret(number).expect("just pushed");
            let is_it = |other: u32| self.secret(other) == Some(secret);
            self.hashes.find_or_insert(index_hash(secret), is_it, || number);
        }
    }

    fn key(&self, key: KeyId) -> &KeySlot {
        let owner = self.user(self.owner_of(key.0)).expect("a key's fact follows its user");
        let mut next = owner.newest_key.load(Relaxed);
        loop {
            let slot = next.checked_sub(1).expect("a key's fact follows its issue");
            let candidate = self.keys.get(slot as usize).expect("slots are dense");
            if candidate.key == key {
                return candidate;
            }
            next = candidate.previous;
        }
    }
}

impl UserSlot {
    fn new(state: u8, sub: Option<&str>) -> UserSlot {
        UserSlot {
            state: AtomicU8::new(state),
            has_email: AtomicBool::new(false),
            newest_key: AtomicU32::new(0),
            granted_to: AtomicU32::new(0),
            plans: AtomicU32::new(0),
            grant: AtomicU64::new(0),
            sub: sub.map_or(OnceLock::new(), |sub| OnceLock::from(Box::new(Box::from(sub)))),
        }
    }
}

fn pack(grant: Option<Grant>) -> u64 {
    grant.map_or(0, |grant| {
        let expiry = grant.expires_at.map_or(NO_EXPIRY, |at| at.0.min(NO_EXPIRY - 1));
        expiry << 3 | (grant.tier as u64 + 1)
    })
}

#[inline]
fn unpack(packed: u64) -> Option<Grant> {
    let tier = TIERS[usize::try_from((packed & 7).checked_sub(1)?).ok()?];
    let expiry = packed >> 3;
    Some(Grant { tier, expires_at: (expiry != NO_EXPIRY).then_some(Timestamp(expiry)) })
}

fn date(micros: u64) -> Option<Timestamp> {
    (micros != 0).then_some(Timestamp(micros))
}

fn print(hash: &[u8; 32]) -> Fingerprint {
    *hash.first_chunk().expect("32 bytes")
}

/// Eight bytes of the SHA-256.
fn index_hash(print: &Fingerprint) -> u64 {
    u64::from_le_bytes(*print.first_chunk().expect("16 bytes"))
}

/// Compares in constant time (gateway/docs/keys.md §9).
fn same(one: &Fingerprint, other: &Fingerprint) -> bool {
    std::hint::black_box(one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b))) == 0
}

#[cfg(test)]
mod tests;
