use super::*;
use crate::id::{MARKETS, MarketId};
use crate::market::mutation::MarketMutation;
use crate::market::terms::MarketState;
use crate::mutation::codec;
use crate::shard::replay::fold;
use crate::user::sample::{Dice, Sample};

/// A random state, folded from records into so many shards.
fn world(seed: u64, records_count: usize, shards_count: usize) -> State {
    let mut sample = Sample::new(seed, 30, 20);
    let mut state = State::new(shards_count);
    let mut payload = Vec::new();
    for market in 0..10 {
        let listed = MarketMutation::MarketListed {
            market: MarketId(market),
            listing: Box::new(codec::tests::listing(&mut Dice(seed + u64::from(market)))),
            state: MarketState::Active,
            at: Timestamp(5),
        };
        payload.clear();
        codec::encode(&[listed], &mut payload);
        assert_eq!(fold(&mut state, MARKETS, codec::VERSION, &payload), Ok(1));
    }
    for _ in 0..records_count {
        let (owner, facts) = sample.record();
        payload.clear();
        codec::encode(&facts, &mut payload);
        assert_eq!(fold(&mut state, owner, codec::VERSION, &payload), Ok(facts.len()));
    }
    state
}

fn digest_of(state: &State) -> [u8; 32] {
    digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
}

fn bytes_of(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&state.markets, &state.users.iter().collect::<Vec<_>>(), &mut bytes).expect("memory takes every byte");
    bytes
}

/// Everything a user holds, rows and indexes alike; beats excepted.
fn shown(user: &User) -> String {
    let trading = user.trading();
    let open: Vec<_> = user.open_orders().map(|order| order.id).collect();
    let held: Vec<_> = user.open_positions().map(|held| held.id).collect();
    let remembered: Vec<_> = trading.requests.iter().flat_map(|requests| requests.rows.iter()).collect();
    let armed: Vec<_> = user.safeguards().iter().map(|armed| (&armed.label, armed.interval_ms)).collect();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {open:?} {held:?} {remembered:?} {armed:?}",
        (user.id, user.created_at, user.order_facts, user.next_object),
        user.identity,
        user.grant,
        user.wallets,
        user.keys,
        user.quota,
        user.orders(),
        user.fills(),
        user.positions(),
        (user.open_orders_count(), &trading.facts),
        trading.held,
    )
}

#[test]
fn a_restored_state_is_the_same_state() {
    for seed in 0..5 {
        println!("seed {seed}");
        let mut state = world(seed, 3_000, 3);
        let bytes = bytes_of(&state);
        let mut restored = read(&mut &bytes[..], 3).expect("just written");
        restored.check_all().expect("every promise holds");
        assert_eq!(digest_of(&restored), digest_of(&state));
        assert_eq!(<[u8; 32]>::from(Sha256::digest(&bytes)), digest_of(&state));
        read_checked(&mut &bytes[..], 2, digest_of(&state)).expect("its own digest");
        assert!(matches!(read_checked(&mut &bytes[..], 2, [7; 32]), Err(SnapshotError::Digest)));
        for (before, after) in state.users.iter().zip(&restored.users) {
            assert!(before.iter().map(shown).eq(after.iter().map(shown)));
            let orders = |users: &Users| -> Vec<_> {
                let resting = users.resting();
                resting.instruments().flat_map(|instrument| resting.orders(instrument)).collect()
            };
            assert_eq!(orders(before), orders(after));
        }
        // And it goes on like the one it was made from.
        let mut sample = Sample::new(seed, 30, 20);
        let records: Vec<_> = (0..4_000).map(|_| sample.record()).collect();
        for (owner, facts) in &records[3_000..] {
            let mut payload = Vec::new();
            codec::encode(facts, &mut payload);
            for state in [&mut state, &mut restored] {
                fold(state, *owner, codec::VERSION, &payload).expect("just encoded");
            }
        }
        assert_eq!(bytes_of(&restored), bytes_of(&state));
    }
}

/// A state as an earlier format wrote it. 3: rows that are not packed. 2: users without order facts, too. 1: positions
/// without the mark of a reset and users without points and resets, too.
fn old_format(version: u16, state: &State) -> Vec<u8> {
    let mut bytes = version.to_le_bytes().to_vec();
    let mut part = Vec::new();
    state.markets.encode(&mut part);
    (part.len() as u64).put(&mut bytes);
    bytes.extend_from_slice(&part);
    let mut users: Vec<&User> = state.users.iter().flat_map(|users| users.unordered()).collect();
    users.sort_unstable_by_key(|user| user.id);
    (users.len() as u64).put(&mut bytes);
    for user in users {
        part.clear();
        user.id.put(&mut part);
        user.created_at.put(&mut part);
        user.order_facts.put(&mut part);
        user.grant.put(&mut part);
        user.quota.put(&mut part);
        user.next_object.put(&mut part);
        user.identity.as_ref().and_then(|identity| identity.sub.clone()).put(&mut part);
        user.identity.as_ref().and_then(|identity| identity.email.clone()).put(&mut part);
        put_list(user.wallets.len(), user.wallets.iter(), &mut part);
        put_list(user.keys.len(), user.keys.iter(), &mut part);
        put_list(user.orders().len(), user.orders().iter(), &mut part);
        put_list(user.fills().len(), user.fills().iter(), &mut part);
        (user.positions().len() as u64).put(&mut part);
        for position in user.positions() {
            position.put(&mut part);
            if version == 1 {
                part.pop();
            }
        }
        let trading = user.trading();
        let requests = trading.requests.iter().flat_map(|requests| requests.rows.iter());
        put_list(requests.clone().count(), requests, &mut part);
        put_list(user.safeguards().len(), user.safeguards().iter(), &mut part);
        if version > 1 {
            put_list(trading.equity.len(), trading.equity.iter(), &mut part);
            put_list(trading.resets.len(), trading.resets.iter(), &mut part);
        }
        if version > 2 {
            trading.facts.put(&mut part);
        }
        (part.len() as u64).put(&mut bytes);
        bytes.extend_from_slice(&part);
    }
    bytes
}

#[test]
fn earlier_formats_are_still_read() {
    let (mut known, mut went_on) = (0, 0);
    for (seed, version) in (0..3).flat_map(|seed| [(seed, 1), (seed, 2), (seed, 3)]) {
        let state = world(seed, 2_000, 2);
        let old = old_format(version, &state);
        let mut read_back = read(&mut &old[..], 3).expect("an earlier format");
        read_back.check_all().expect("every promise holds");
        assert_eq!(old_format(version, &read_back), old, "seed {seed}, format {version}");
        // Its digest is that of its own bytes.
        let digest = Sha256::digest(&old).into();
        read_checked(&mut &old[..], 2, digest).expect("the digest of these bytes");
        assert!(matches!(read_checked(&mut &old[..], 2, digest_of(&read_back)), Err(SnapshotError::Digest)));
        // What is written next is of today's format, and the same state.
        let new = bytes_of(&read_back);
        assert_eq!(u16::from_le_bytes([new[0], new[1]]), VERSION);
        assert_eq!(bytes_of(&read(&mut &new[..], 1).expect("just written")), new);
        assert!(matches!(read(&mut &[&[0, 0], &old[2..]].concat()[..], 1), Err(SnapshotError::Version(0))));
        if version == 3 {
            assert_eq!(new, bytes_of(&state), "nothing is missing in it");
            continue;
        }
        // Order facts of before are not known, and their numbers go on.
        let users = |state: &State| -> Vec<(UserId, u64, u64)> {
            let users = state.users.iter().flat_map(|users| users.iter());
            users.map(|user| (user.id, user.order_facts, user.oldest_fact())).collect()
        };
        let before = users(&read_back);
        assert!(before.iter().all(|(_, newest, oldest)| *oldest == newest + 1));
        let mut sample = Sample::new(seed, 30, 20);
        let records: Vec<_> = (0..2_500).map(|_| sample.record()).collect();
        for (owner, facts) in &records[2_000..] {
            let mut payload = Vec::new();
            codec::encode(facts, &mut payload);
            fold(&mut read_back, *owner, codec::VERSION, &payload).expect("just encoded");
        }
        for (id, newest, oldest) in users(&read_back) {
            let first = before.iter().find(|(known, ..)| *known == id).map_or(1, |(_, newest, _)| newest + 1);
            assert_eq!(oldest, first, "user {id}: none of this run is forgotten yet");
            (known, went_on) = (known + 1, went_on + usize::from(newest >= oldest));
        }
    }
    println!("order facts of {went_on} of {known} users go on behind an earlier format");
    assert!(went_on > 20);
}

#[test]
fn the_digest_does_not_depend_on_the_shard_count() {
    let one = world(7, 4_000, 1);
    let digest = digest_of(&one);
    let mut state = one;
    for shards_count in [2, 3, 7, 1] {
        assert_eq!(digest_of(&world(7, 4_000, shards_count)), digest, "folded into {shards_count} shards");
        state = state.repartition(shards_count);
        state.check_all().expect("every promise holds");
        assert_eq!(state.users.len(), shards_count);
        assert_eq!(digest_of(&state), digest, "moved into {shards_count} shards");
        let bytes = bytes_of(&state);
        assert_eq!(digest_of(&read(&mut &bytes[..], 5).expect("just written")), digest);
    }
}

#[test]
fn any_change_of_the_state_changes_the_digest() {
    let mut sample = Sample::new(8, 30, 20);
    let mut state = State::new(2);
    let mut last = digest_of(&state);
    let mut same = 0;
    for _ in 0..500 {
        let (owner, facts) = sample.record();
        let mut payload = Vec::new();
        codec::encode(&facts, &mut payload);
        fold(&mut state, owner, codec::VERSION, &payload).expect("just encoded");
        let now = digest_of(&state);
        same += usize::from(now == last);
        last = now;
    }
    // Holding what is held, or ending a heartbeat that is not armed, changes nothing.
    assert!(same < 50, "{same} of 500 records left the digest as it was");
}

/// Short reads, wrong lengths, changed bytes: an error or another state, never a panic or an allocation beyond the
/// bytes.
#[test]
fn a_broken_snapshot_is_an_error() {
    let state = world(9, 300, 1);
    let bytes = bytes_of(&state);
    let mut dice = Dice(4);
    for end in (0..bytes.len()).step_by(37) {
        assert!(matches!(read(&mut &bytes[..end], 1), Err(SnapshotError::Length)), "cut at {end}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(read(&mut &longer[..], 1), Err(SnapshotError::Length)));
    let mut newer = bytes.clone();
    newer[0] = 5;
    assert!(matches!(read(&mut &newer[..], 1), Err(SnapshotError::Version(5))));
    // Behind the markets, whose bytes are their own matter.
    let users_at = 2 + 8 + u64::from_le_bytes(*bytes[2..].first_chunk().expect("a length")) as usize;
    let mut errors = 0;
    for _ in 0..3_000 {
        let mut broken = bytes.clone();
        let at = users_at + dice.below((bytes.len() - users_at) as u64) as usize;
        broken[at] ^= 1 << dice.below(8);
        errors += usize::from(read(&mut &broken[..], 1).is_err());
    }
    println!("{errors} of 3000 changes noticed by the reader alone");
    // A number in more bytes than it needs: the same state, and bytes that no build wrote.
    let mut state = State::new(1);
    state.insert(User::new(UserId(1), None, None, Timestamp(7)));
    let mut longer = bytes_of(&state);
    let mut part = Vec::new();
    put_user(state.user(UserId(1)).expect("just made"), &mut part);
    let user_at = longer.len() - part.len();
    assert_eq!(part.pop(), Some(0), "a user's bytes end with the number of its facts");
    part.extend_from_slice(&[0x80, 0]);
    longer.truncate(user_at - 8);
    (part.len() as u64).put(&mut longer);
    longer.extend_from_slice(&part);
    assert!(matches!(read(&mut &longer[..], 1), Err(SnapshotError::Again)));
}

#[test]
fn object_numbers_of_a_user_have_an_end() {
    let mut cases = 0;
    for (next_object, is_read) in [(u32::MAX, false), (1 << OBJECT_BITS, false), ((1 << OBJECT_BITS) - 1, true)] {
        let mut user = User::new(UserId(1), None, None, Timestamp(7));
        user.next_object = next_object;
        let mut bytes = Vec::new();
        put_user(&user, &mut bytes);
        assert_eq!(take_user(&mut &bytes[..], VERSION, &mut Shared::default()).is_ok(), is_read, "{next_object}");
        cases += 1;
    }
    println!("object numbers: {cases} cases");
}
