use super::*;
use crate::fact;
use crate::mutation::Mutation;
use std::mem::size_of;

fn secret(number: u64) -> [u8; 32] {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    hash[24..].copy_from_slice(&number.to_le_bytes());
    hash
}

fn created(sub: Option<&str>) -> Mutation {
    Mutation::UserCreated(fact::UserCreated { sub: sub.map(str::to_owned), email: None, at: Timestamp(1) })
}

fn issued(key: KeyId, number: u64) -> Mutation {
    Mutation::KeyIssued(fact::KeyIssued {
        key,
        hash: secret(number),
        alias_hash: secret(number + (1 << 40)),
        prefix: "svc_live_4f0c9d2".to_owned(),
        name: None,
        tier: Tier::Pro,
        permissions: Permissions::ReadTrade,
        beta_until: Some(Timestamp(77)),
        at: Timestamp(10),
    })
}

#[test]
fn a_key_and_its_alias_are_one_bearer_until_revoked() {
    let (directory, user) = (Directory::new(), UserId(1));
    let (first, second) = (KeyId(user.object(3)), KeyId(user.object(4)));
    assert_eq!(directory.principal(&secret(5)), None);
    for fact in [created(None), issued(first, 5), issued(second, 6)] {
        directory.observe(user, &fact);
    }
    let principal = Principal {
        user,
        key: first,
        slot: 0,
        tier: Tier::Pro,
        permissions: Permissions::ReadTrade,
        created_at: Timestamp(10),
        expires_at: None,
        beta_until: Some(Timestamp(77)),
        revoked: false,
        grant: None,
        plan: None,
        by_alias: false,
    };
    assert_eq!(directory.principal(&secret(5)), Some(principal));
    let by_alias = Principal { by_alias: true, ..principal };
    assert_eq!(directory.principal(&secret(5 + (1 << 40))), Some(by_alias));
    assert_eq!(directory.principal(&secret(6)).map(|other| (other.key, other.slot)), Some((second, 1)));
    assert_eq!(directory.principal(&secret(7)), None);

    let grant = Grant { tier: Tier::Enterprise, expires_at: Some(Timestamp(900)) };
    directory.observe(
        user,
        &Mutation::GrantSet(fact::GrantSet { tier: grant.tier, expires_at: grant.expires_at, at: Timestamp(2) }),
    );
    let expiring = Mutation::KeyExpiring(fact::KeyExpiring {
        key: first,
        expires_at: Timestamp(500),
        replaced_by: second,
        at: Timestamp(2),
    });
    directory.observe(user, &expiring);
    directory.observe(user, &Mutation::KeyRevoked(fact::KeyRevoked { key: second, at: Timestamp(3) }));
    let changed = Principal { expires_at: Some(Timestamp(500)), grant: Some(grant), ..principal };
    assert_eq!(directory.principal(&secret(5)), Some(changed));
    assert!(directory.principal(&secret(6)).is_some_and(|other| other.revoked));
    directory
        .observe(user, &Mutation::GrantSet(fact::GrantSet { tier: Tier::Free, expires_at: None, at: Timestamp(4) }));
    assert_eq!(directory.grant(user), Some(Grant { tier: Tier::Free, expires_at: None }));
}

#[test]
fn a_sub_is_reserved_for_one_and_can_be_given_back() {
    let directory = Directory::new();
    assert_eq!(directory.reserve("ada"), Reservation::Reserved(UserId(1)));
    assert_eq!(directory.reserve("ada"), Reservation::Pending);
    assert_eq!(directory.reserve("bob"), Reservation::Reserved(UserId(2)));
    assert_eq!((directory.by_sub("ada"), directory.exists(UserId(1))), (None, false));
    directory.give_back(UserId(1));
    assert_eq!(directory.reserve("ada"), Reservation::Reserved(UserId(1)));
    directory.observe(UserId(1), &created(Some("ada")));
    directory.give_back(UserId(1));
    assert_eq!(directory.reserve("ada"), Reservation::Known(UserId(1)));
    assert_eq!((directory.by_sub("ada"), directory.by_sub("eve")), (Some(UserId(1)), None));
    assert_eq!(directory.reserve_anonymous(), UserId(3));
    assert_eq!(directory.users_count(), 3);
}

#[test]
fn at_boot_users_come_in_any_order_and_ids_continue_after_the_last() {
    let directory = Directory::new();
    for (user, sub) in [(7, Some("grace")), (2, None), (5, Some("alan"))] {
        directory.observe(UserId(user), &created(sub));
    }
    assert_eq!(directory.by_sub("grace"), Some(UserId(7)));
    assert_eq!(
        (directory.sub(UserId(7)), directory.sub(UserId(70)), directory.sub(UserId(0))),
        (Some("grace"), None, None)
    );
    assert_eq!([1, 2, 5, 6, 7, 8].map(|user| directory.exists(UserId(user))), [false, true, true, false, true, false]);
    assert_eq!(directory.reserve("new"), Reservation::Reserved(UserId(8)));
}

#[test]
fn of_many_concurrent_callers_one_creates() {
    const THREADS: usize = 4;
    let directory = Directory::new();
    for round in 0..500 {
        let sub = format!("user {round}");
        let ask = || directory.reserve(&sub);
        let answers: Vec<Reservation> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let reserved = answers.iter().filter(|answer| matches!(answer, Reservation::Reserved(_))).count();
        let pending = answers.iter().filter(|answer| **answer == Reservation::Pending).count();
        assert_eq!((reserved, pending), (1, THREADS - 1), "{answers:?}");
    }
    assert_eq!(directory.users_count(), 500);
}

/// A prefix is an id that no user gets; objects with it belong to the user that it was granted to.
#[test]
fn objects_with_a_granted_prefix_belong_to_its_user() {
    let directory = Directory::new();
    let users = [0, 1].map(|_| directory.reserve_anonymous());
    users.iter().for_each(|user| directory.observe(*user, &created(None)));
    let mut cases = 0;
    // Granted alternately.
    for nth in 0..4_u64 {
        let owner = users[nth as usize % 2];
        let prefix = directory.reserve_prefix().expect("the counter is far from its end");
        assert_eq!((prefix, directory.owner_of(prefix.object(5))), (UserId(3 + nth), prefix));
        directory.observe(owner, &fact::NumbersExtended { prefix, at: Timestamp(3) }.into());
        for number in [0, 5, (1 << 28) - 1] {
            assert_eq!(directory.owner_of(prefix.object(number)), owner);
            cases += 1;
        }
        let key = KeyId(prefix.object(7));
        directory.observe(owner, &issued(key, 90 + nth));
        for known in [directory.principal(&secret(90 + nth)), directory.principal_of(key)] {
            assert_eq!(known.map(|known| (known.user, known.key)), Some((owner, key)));
            cases += 1;
        }
        directory.observe(
            owner,
            &fact::KeyExpiring { key, expires_at: Timestamp(50), replaced_by: key, at: Timestamp(4) }.into(),
        );
        assert_eq!(directory.principal_of(key).and_then(|known| known.expires_at), Some(Timestamp(50)));
        assert!(!directory.exists(prefix) && !directory.holds_key(prefix, Timestamp(9)));
        assert!(directory.holds_key(owner, Timestamp(9)));
    }
    assert_eq!(directory.reserve("new"), Reservation::Reserved(UserId(7)));
    assert_eq!((directory.users_count(), directory.prefixes_count()), (7, 4));
    // At boot a prefix may be the highest id.
    let directory = Directory::new();
    directory.observe(UserId(2), &created(None));
    directory.observe(UserId(2), &fact::NumbersExtended { prefix: UserId(9), at: Timestamp(3) }.into());
    assert_eq!((directory.owner_of(UserId(9).object(1)), directory.users_count()), (UserId(2), 9));
    assert_eq!((directory.reserve_prefix(), directory.reserve_anonymous()), (Some(UserId(10)), UserId(11)));
    for id in [0, 1, 8, 10, 11, 12, USER_ID_MAX] {
        assert_eq!(directory.owner_of(UserId(id).object(1)), UserId(id), "no prefix");
        cases += 1;
    }
    println!("objects with prefixes: {cases} cases");
}

/// Secrets with the same index hash are distinguished by each stored byte.
#[test]
fn similar_secrets_are_different_keys() {
    let directory = Directory::new();
    let user = UserId(1);
    directory.observe(user, &created(None));
    let issue = |number: u64, hash: [u8; 32]| {
        let mut fact = issued(KeyId(user.object(number as u32)), number);
        let Mutation::KeyIssued(fact::KeyIssued { hash: known, .. }) = &mut fact else {
            unreachable!("a key was issued")
        };
        *known = hash;
        directory.observe(user, &fact);
    };
    issue(0, [7; 32]);
    for byte in 0..16 {
        let mut other = [7; 32];
        other[byte] = 8;
        assert_eq!(directory.principal(&other), None, "byte {byte}");
        issue(1 + byte as u64, other);
        let found = |hash: &[u8; 32]| directory.principal(hash).map(|principal| principal.slot);
        assert_eq!((found(&[7; 32]), found(&other)), (Some(0), Some(1 + byte as u32)), "byte {byte}");
    }
}

#[test]
fn a_hundred_thousand_keys_are_found_and_stay_small() {
    const USERS: u64 = 100_000;
    let directory = Directory::new();
    for user in 1..=USERS {
        let user = UserId(user);
        directory.observe(user, &created(None));
        directory.observe(user, &issued(KeyId(user.object(0)), user.0));
    }
    for user in (1..=USERS).step_by(37) {
        let found = directory.principal(&secret(user)).expect("issued");
        assert_eq!((found.user, u64::from(found.slot)), (UserId(user), user - 1));
    }
    assert_eq!(directory.keys_count() as u64, USERS);
    // Both secrets are entries of eight bytes in an index that is 3/8 full at worst.
    let per_key = size_of::<OnceLock<KeySlot>>() as u64 * 9 / 8 + 2 * 8 * 8 / 3;
    println!("{per_key} bytes a key, {} bytes a user", size_of::<OnceLock<UserSlot>>());
    assert!(per_key <= 140, "{per_key}");
}
