//! Format 6: states with users of several prefixes.

use super::*;
use crate::shard::digest;
use crate::shard::replay::Record;

fn state_digest(state: &State) -> [u8; 32] {
    digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
}

/// Records of users that are granted prefixes, and how many were.
fn records(seed: u64, count: usize) -> (Vec<(UserId, Vec<u8>)>, usize) {
    let mut sample = Sample::new(seed, 8, 10).extending(true);
    let mut prefixes = 0;
    let records = (0..count).map(|_| {
        let (owner, facts) = sample.record();
        prefixes += facts.iter().filter(|fact| matches!(fact, Mutation::NumbersExtended(_))).count();
        let mut payload = Vec::new();
        codec::encode(codec::VERSION, &facts, &mut payload);
        (owner, payload)
    });
    (records.collect(), prefixes)
}

fn folded(records: &[(UserId, Vec<u8>)], mut state: State) -> State {
    for (owner, payload) in records {
        fold(&mut state, *owner, codec::VERSION, payload).expect("just encoded");
    }
    state
}

/// A state is the same from its records, from a snapshot, and from a snapshot and the records after it, in any shards.
#[test]
fn a_state_with_prefixes_is_the_same_wherever_it_comes_from() {
    let (mut cases, mut granted) = (0, 0);
    for seed in 0..6 {
        let (records, prefixes) = records(seed, 1_500);
        let whole = folded(&records, State::new(1));
        whole.check_all().expect("every invariant is kept");
        let (expected, bytes) = (state_digest(&whole), bytes_of(&whole));
        assert_eq!(version_of(&bytes), VERSION);
        let middle = records.len() / 2;
        for shards_count in 1..4 {
            let batch: Vec<_> = records
                .iter()
                .map(|(owner, payload)| Record { owner: *owner, version: codec::VERSION, payload })
                .collect();
            let mut at_once = State::new(shards_count);
            crate::shard::replay::fold_batch(&mut at_once, &batch).expect("just encoded");
            let half = bytes_of(&folded(&records[..middle], State::new(shards_count)));
            let half = read(&mut &half[..], shards_count).expect("just written");
            let states = [
                at_once,
                folded(&records, State::new(shards_count)),
                read(&mut &bytes[..], shards_count).expect("just written"),
                folded(&records[middle..], half),
            ];
            for state in states {
                state.check_all().expect("every invariant is kept");
                assert_eq!((state_digest(&state), bytes_of(&state) == bytes), (expected, true), "seed {seed}");
                let moved = state.repartition(4 - shards_count);
                moved.check_all().expect("every invariant is kept");
                assert_eq!(state_digest(&moved), expected, "seed {seed}");
                cases += 2;
            }
        }
        // No file of format 5 has prefixes.
        let mut mixed = bytes.clone();
        mixed[0] = VERSION_ALL_ROWS as u8;
        mixed.drain(2..10);
        assert!(matches!(read(&mut &mixed[..], 1), Err(SnapshotError::Again)));
        granted += prefixes;
        cases += 1;
    }
    println!("states with prefixes: {cases} cases, {granted} prefixes");
    assert!(granted > 100, "{granted}");
}

/// A user with these prefixes, each granted after one wallet.
fn user_with(state: &mut State, owner: UserId, prefixes: &[u64]) {
    let shard = shard_of(owner, state.users.len());
    let at = Timestamp(7);
    let mut facts: Vec<Mutation> = vec![fact::UserCreated { sub: None, email: None, at }.into()];
    for prefix in [owner].into_iter().chain(prefixes.iter().map(|prefix| UserId(*prefix))) {
        if prefix != owner {
            facts.push(fact::NumbersExtended { prefix, at }.into());
        }
        let (wallet, baseline, kind) =
            (WalletId(prefix.object(1)), crate::amount::Cash(5), crate::user::WalletKind::Api);
        facts.push(fact::WalletOpened { wallet, kind, label: None, baseline, generation: 1, parent: None, at }.into());
    }
    facts.iter().for_each(|fact| state.users[shard].apply(owner, fact));
}

#[test]
fn prefixes_that_no_server_granted_are_refused() {
    let mut cases = 0;
    // (prefixes of the users 1 and 2, whether the snapshot is read)
    for (one, two, is_read) in [
        (&[][..], &[][..], true),
        (&[3], &[], true),
        (&[3, 5], &[4], true),
        (&[3, 9], &[3, 9], false),
        (&[3, 9], &[9], false),
        (&[2], &[], false),
        (&[2, 7], &[5], false),
    ] {
        let mut state = State::new(2);
        user_with(&mut state, UserId(1), one);
        user_with(&mut state, UserId(2), two);
        let bytes = bytes_of(&state);
        for shards_count in 1..4 {
            let found = read(&mut &bytes[..], shards_count);
            assert_eq!(found.is_ok(), is_read, "{one:?}, {two:?}");
            assert!(is_read || matches!(found, Err(SnapshotError::User(CodecError::Reference))), "{one:?}, {two:?}");
            cases += 1;
        }
    }
    let mut state = State::new(1);
    user_with(&mut state, UserId(1), &[9, 12]);
    let user = state.user(UserId(1)).expect("it was made");
    let mut bytes = Vec::new();
    put_user(user, &mut bytes);
    // Golden: the section's number, then the list.
    let section: Vec<u8> = [&8_u32.to_le_bytes()[..], &[2_u64, 9, 12].map(u64::to_le_bytes).concat()[..]].concat();
    assert!(bytes.ends_with(&section), "{bytes:?}");
    let begin = bytes.len() - section.len();
    let taken = |bytes: &[u8]| {
        let mut rest = bytes;
        let user = take_user(&mut rest, &mut Shared::default())?;
        if rest.is_empty() { Ok(user) } else { Err(CodecError::Rest) }
    };
    let read = taken(&bytes).expect("just written");
    assert_eq!((read.granted_prefixes(), read.next_object), (user.granted_prefixes(), user.next_object));
    assert_eq!(read.next_object, 2 << OBJECT_BITS | 2);
    // Without them, and with others than the number of the next object says.
    for end in begin..bytes.len() {
        assert!(taken(&bytes[..end]).is_err(), "cut at {end}");
        cases += 1;
    }
    for prefixes in [&[9_u64][..], &[9, 12, 15], &[12, 9], &[9, 9], &[1, 9], &[9, 1 << 25], &[]] {
        let mut other = bytes[..begin + 4].to_vec();
        put_list(prefixes.len(), prefixes.iter(), &mut other);
        assert!(taken(&other).is_err(), "{prefixes:?}");
        cases += 1;
    }
    println!("prefixes in snapshots: {cases} cases");
}
