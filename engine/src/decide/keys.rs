//! Decisions about users and keys: first sight, grants, issuing, rotation, renaming, revocation, last use.
//!
//! The caller has checked what needs lists or flags of the server (gateway/docs/keys.md §3); the checks here need only
//! the user's own state. Nothing here changes state: the result is a list of facts.

use crate::amount::Cash;
use crate::command::{CreateUser, IssueKey, Secret};
use crate::decide::numbers::Numbers;
use crate::fact;
use crate::id::{KeyId, UserId, WalletId};
use crate::mutation::Mutation;
use crate::rehearsal::Finding;
use crate::reject::Reject;
use crate::rules::{self, KEY_USED_EVERY_US, KEYS_PER_USER_MAX, ROTATION_OVERLAP_US, Rules};
use crate::time::Timestamp;
use crate::user::key::grant_ended;
use crate::user::{ApiKey, Permissions, Tier, User, WalletKind};

/// A new user: row, grant, MAIN wallet and API wallet in one record (gateway/docs/keys.md §6).
pub fn create(owner: UserId, request: CreateUser, now: Timestamp, facts: &mut Vec<Mutation>) {
    let tier = request.grant.unwrap_or(Tier::Free);
    let mut numbers = Numbers::first(owner);
    facts.push(Mutation::UserCreated(fact::UserCreated { sub: request.sub, email: request.email, at: now }));
    if let Some(tier) = request.grant {
        facts.push(Mutation::GrantSet(fact::GrantSet { tier, expires_at: None, at: now }));
    }
    for kind in [WalletKind::Main, WalletKind::Api] {
        let baseline = match (kind, request.api_balance) {
            (WalletKind::Api, Some(balance)) => balance.max(Cash::ZERO),
            _ => rules::baseline(kind, tier),
        };
        facts.push(Mutation::WalletOpened(fact::WalletOpened {
            wallet: WalletId(numbers.take()),
            kind,
            label: None,
            baseline,
            generation: 1,
            parent: None,
            at: now,
        }));
    }
}

/// The address of a user that has none. It cannot be kept in the previous format.
pub fn note_email(user: &User, email: String, rules: &Rules, now: Timestamp, facts: &mut Vec<Mutation>) {
    if user.email().is_none() && rules.formats.is_newest() {
        facts.push(Mutation::EmailNoted(fact::EmailNoted { email, at: now }));
    }
}

/// Grants a plan to a user. A better plan raises the baseline of the API wallet; its cash stays (engine/docs/account.md
/// §4).
pub fn grant(user: &User, tier: Tier, expires_at: Option<Timestamp>, now: Timestamp, facts: &mut Vec<Mutation>) {
    facts.push(Mutation::GrantSet(fact::GrantSet { tier, expires_at, at: now }));
    let baseline = rules::baseline(WalletKind::Api, tier);
    if let Some(wallet) = user.wallet_of(WalletKind::Api)
        && tier > user.entitlement(now)
        && wallet.baseline < baseline
    {
        facts.push(Mutation::BaselineRaised(fact::BaselineRaised { wallet: wallet.id, baseline, at: now }));
    }
}

/// Issues a key (gateway/docs/keys.md §2, §3). A second request with the same secret returns the same key: only derived
/// keys have equal secrets, by concurrent requests.
pub fn issue(
    user: &User,
    request: IssueKey,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<KeyId, Reject> {
    if let Some(known) = user.keys.iter().find(|key| key.hash == request.secret.hash) {
        return known.usable(now).map(|()| known.id);
    }
    let active_count = user.active_keys_count();
    if request.bootstrap && active_count > 0 {
        return Err(Reject::BootstrapNotAllowed);
    }
    let entitled = user.entitlement(now);
    let tier = request.tier.unwrap_or(entitled);
    let lapsed = grant_ended(user.standing(now), now);
    if tier > entitled || (lapsed && request.permissions == Some(Permissions::ReadTrade)) {
        return Err(Reject::TierRequiresUpgrade);
    }
    if active_count >= rules.keys_max {
        return Err(Reject::KeyLimit);
    }
    let default = if lapsed { Permissions::Read } else { Permissions::ReadTrade };
    let key = next_key(user)?;
    facts.push(issued(
        key,
        request.secret,
        request.name,
        tier,
        request.permissions.unwrap_or(default),
        rules.beta(now),
        now,
    ));
    Ok(key)
}

/// Replaces a key by a new one of the same kind; the old one stays valid for 24 h (gateway/docs/keys.md §4).
pub fn rotate(
    user: &User,
    key: KeyId,
    replacement: Secret,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(KeyId, Timestamp), Reject> {
    let old = listed(user, key)?;
    if old.expires_at.is_some() {
        return Err(Reject::KeyExpiring);
    }
    let new = next_key(user)?;
    let expires_at = now.plus(ROTATION_OVERLAP_US);
    // A beta key stays one: the cutoff moves along, so that a rotation does not evade it.
    let beta_until = old.beta_until.get().or(rules.beta(now));
    let permissions = user.effective(old, rules.free_trade_since, now).permissions;
    let name = old.name.as_deref().map(str::to_owned);
    facts.push(issued(new, replacement, name, old.tier, permissions, beta_until, now));
    facts.push(Mutation::KeyExpiring(fact::KeyExpiring { key, expires_at, replaced_by: new, at: now }));
    if let Some(set) = user.realism_of(key) {
        let set = Some(set.to_owned());
        facts.push(Mutation::KeyRealismSet(fact::KeyRealismSet { key: new, set, at: now }));
    }
    Ok((new, expires_at))
}

/// Changes or clears the name of a key.
pub fn rename(
    user: &User,
    key: KeyId,
    name: Option<String>,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    listed(user, key)?;
    facts.push(Mutation::KeyRenamed(fact::KeyRenamed { key, name, at: now }));
    Ok(())
}

/// Chooses the set of realism of a key; `None`: the one of keys without a choice. The previous formats cannot hold it.
pub fn choose_realism(
    user: &User,
    key: KeyId,
    set: Option<String>,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    listed(user, key)?;
    if !rules.formats.is_newest() {
        return Err(Reject::NoRealismStore);
    }
    if set.as_deref().is_some_and(|set| rules.realism.get(set).is_none()) {
        return Err(Reject::UnknownRealism);
    }
    if user.realism_of(key) != set.as_deref() {
        facts.push(Mutation::KeyRealismSet(fact::KeyRealismSet { key, set, at: now }));
    }
    Ok(())
}

/// Revokes a key. A key that is revoked already is not found.
pub fn revoke(user: &User, key: KeyId, now: Timestamp, facts: &mut Vec<Mutation>) -> Result<(), Reject> {
    listed(user, key)?;
    facts.push(Mutation::KeyRevoked(fact::KeyRevoked { key, at: now }));
    Ok(())
}

/// Records the use of a key, at most once a minute.
pub fn note_used(user: &User, key: KeyId, now: Timestamp, facts: &mut Vec<Mutation>) -> Result<(), Reject> {
    let due = listed(user, key)?.last_used_at.get().is_none_or(|last| now.since(last) >= KEY_USED_EVERY_US);
    if due {
        facts.push(Mutation::KeyUsed(fact::KeyUsed { key, at: now }));
    }
    Ok(())
}

/// Records what a rehearsal of the venue's checks found in orders of a key.
pub fn note_strict(
    user: &User,
    key: KeyId,
    findings: &[Finding],
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    listed(user, key)?;
    if rules.formats.is_newest() {
        facts.extend(findings.iter().map(|&Finding { rule, class, diagnosis, count, order }| {
            Mutation::StrictFound(fact::StrictFound { key, rule, class, diagnosis, count, order, at: now })
        }));
    }
    Ok(())
}

/// A key that is listed: not revoked.
fn listed(user: &User, key: KeyId) -> Result<&ApiKey, Reject> {
    user.keys.iter().find(|known| known.id == key && known.revoked_at.is_none()).ok_or(Reject::KeyNotFound)
}

fn next_key(user: &User) -> Result<KeyId, Reject> {
    if user.keys.len() >= KEYS_PER_USER_MAX {
        return Err(Reject::Busy);
    }
    Numbers::of(user).map(|mut numbers| KeyId(numbers.take())).ok_or(Reject::Busy)
}

fn issued(
    key: KeyId,
    secret: Secret,
    name: Option<String>,
    tier: Tier,
    permissions: Permissions,
    beta_until: Option<Timestamp>,
    now: Timestamp,
) -> Mutation {
    Mutation::KeyIssued(fact::KeyIssued {
        key,
        hash: secret.hash,
        alias_hash: secret.alias_hash,
        prefix: secret.prefix,
        name,
        tier,
        permissions,
        beta_until,
        at: now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Formats;
    use crate::user::Users;

    const OWNER: UserId = UserId(1);
    const NOW: Timestamp = Timestamp(1_790_932_445_000_000);

    fn ask(hash: u8) -> IssueKey {
        let secret = Secret { hash: [hash; 32], alias_hash: [hash + 100; 32], prefix: "svc_live_0000000".to_owned() };
        IssueKey { secret, name: None, tier: None, permissions: None, bootstrap: false, by: None }
    }

    fn applied(users: &mut Users, facts: &mut Vec<Mutation>) {
        facts.drain(..).for_each(|fact| users.apply(OWNER, &fact));
    }

    /// A choice is journaled once, moves to the key that replaces this one, and can be taken back.
    #[test]
    fn a_set_is_chosen_per_key() {
        let (mut users, mut rules, mut facts) = (Users::default(), Rules::default(), Vec::new());
        let request = CreateUser { sub: None, email: None, grant: None, api_balance: None };
        create(OWNER, request, NOW, &mut facts);
        applied(&mut users, &mut facts);
        let first = issue(users.get(OWNER).expect("created"), ask(1), &rules, NOW, &mut facts).expect("the first");
        applied(&mut users, &mut facts);
        let (set, none) = (|name: &str| Some(name.to_owned()), None::<String>);
        // (key, set) → result, facts, choice
        let rows = [
            (first, set("venue"), Ok(()), 1, Some("venue")),
            (first, set("venue"), Ok(()), 0, Some("venue")),
            (first, set("Venue"), Err(Reject::UnknownRealism), 0, Some("venue")),
            (first, set(""), Err(Reject::UnknownRealism), 0, Some("venue")),
            (first, none.clone(), Ok(()), 1, None),
            (first, none, Ok(()), 0, None),
            (KeyId(77), set("thin"), Err(Reject::KeyNotFound), 0, None),
            (first, set("thin"), Ok(()), 1, Some("thin")),
        ];
        println!("chosen sets: {} cases", rows.len() + 2);
        for (key, set, result, count, choice) in rows {
            let user = users.get(OWNER).expect("created");
            assert_eq!(choose_realism(user, key, set.clone(), &rules, NOW, &mut facts), result, "{key} {set:?}");
            assert_eq!(facts.len(), count, "{key} {set:?}: {facts:?}");
            applied(&mut users, &mut facts);
            assert_eq!(users.get(OWNER).expect("created").realism_of(first), choice);
        }
        let user = users.get(OWNER).expect("created");
        let (second, _) = rotate(user, first, ask(2).secret, &rules, NOW, &mut facts).expect("it has no end");
        applied(&mut users, &mut facts);
        let user = users.get(OWNER).expect("created");
        assert_eq!(user.realism_choices().collect::<Vec<_>>(), [(first, "thin"), (second, "thin")]);
        rules.formats = Formats::Previous;
        let refused = choose_realism(user, second, None, &rules, NOW, &mut facts);
        assert_eq!((refused, facts.len()), (Err(Reject::NoRealismStore), 0));
    }

    /// A derived key may be requested twice, even if the limit of keys is reached.
    #[test]
    fn the_same_secret_is_the_same_key() {
        let (mut users, rules, mut facts) = (Users::default(), Rules::default(), Vec::new());
        let request = CreateUser { sub: None, email: None, grant: None, api_balance: None };
        create(OWNER, request, NOW, &mut facts);
        applied(&mut users, &mut facts);
        let mut issued = Vec::new();
        for hash in 0..rules.keys_max as u8 {
            let user = users.get(OWNER).expect("created");
            issued.push(issue(user, ask(hash), &rules, NOW, &mut facts).expect("below the limit"));
            applied(&mut users, &mut facts);
        }
        let user = users.get(OWNER).expect("created");
        for (hash, key) in issued.iter().enumerate() {
            assert_eq!(issue(user, ask(hash as u8), &rules, NOW, &mut facts), Ok(*key));
        }
        assert_eq!(issue(user, ask(99), &rules, NOW, &mut facts), Err(Reject::KeyLimit));
        assert!(facts.is_empty(), "no new fact: {facts:?}");
        revoke(user, issued[0], NOW, &mut facts).expect("known");
        applied(&mut users, &mut facts);
        let user = users.get(OWNER).expect("created");
        assert_eq!(issue(user, ask(0), &rules, NOW, &mut facts), Err(Reject::KeyRevoked));
        assert!(facts.is_empty(), "a revoked key stays revoked: {facts:?}");
    }
}
