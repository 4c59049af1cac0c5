use super::*;
use crate::canonical::ROWS_TOGETHER;
use crate::format::Formats;
use crate::mutation::codec;
use crate::mutation::codec::tests::unhex;
use crate::shard::replay::{State, fold};
use crate::shard::snapshot::tests::{GOLDEN, world};
use crate::shard::snapshot::{read, write};
use crate::user::sample::Sample;

fn digest_of(state: &State) -> [u8; 32] {
    digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
}

fn parts_of(state: &State) -> Vec<Part> {
    let mut parts = Vec::new();
    let keep = |part| {
        parts.extend(part);
        true
    };
    digest_while(&state.markets, &state.users.iter().collect::<Vec<_>>(), keep).expect("all are wanted");
    parts
}

fn restored(state: &State, shards_count: usize) -> State {
    let mut bytes = Vec::new();
    write(Formats::Newest, &state.markets, &state.users.iter().collect::<Vec<_>>(), &mut bytes)
        .expect("memory takes every byte");
    read(&mut &bytes[..], shards_count).expect("just written")
}

#[test]
fn it_does_not_depend_on_shards_or_on_where_rows_are() {
    let mut cases = 0;
    for seed in [7, 8, 9] {
        let one = world(seed, 4_000, 1);
        let (digest, parts) = (digest_of(&one), parts_of(&one));
        let mut state = restored(&one, 4);
        for shards_count in [2, 3, 7, 1] {
            assert_eq!(digest_of(&world(seed, 4_000, shards_count)), digest, "folded into {shards_count} shards");
            state = state.repartition(shards_count);
            assert_eq!((digest_of(&state), parts_of(&state)), (digest, parts.clone()), "in {shards_count} shards");
            assert_eq!(digest_of(&restored(&state, 5)), digest, "from a snapshot");
            cases += 3;
        }
        assert_eq!(parts.len(), 1 + one.users[0].len());
    }
    println!("equal digests: {cases} cases");
}

#[test]
fn any_change_of_the_state_changes_it() {
    let mut sample = Sample::new(8, 30, 20);
    let mut state = State::new(2);
    let (mut last, mut before) = (digest_of(&state), parts_of(&state));
    let (mut same, mut changed) = (0, 0);
    for _ in 0..500 {
        let (owner, facts) = sample.record();
        let mut payload = Vec::new();
        codec::encode(codec::VERSION, &facts, &mut payload);
        fold(&mut state, owner, codec::VERSION, &payload).expect("just encoded");
        let (now, parts) = (digest_of(&state), parts_of(&state));
        assert_eq!(now == last, parts == before, "the digest is that of its parts");
        // A record changes the parts of its user.
        let of_others = |parts: &[Part]| -> Vec<Part> {
            parts.iter().copied().filter(|part| !matches!(part, Part::User { user, .. } if *user == owner)).collect()
        };
        assert_eq!(of_others(&parts), of_others(&before));
        same += usize::from(now == last);
        changed += usize::from(now != last);
        (last, before) = (now, parts);
    }
    // Holding a held order, or ending a heartbeat that is not armed, changes nothing.
    assert!(same < 50, "{same} of 500 records did not change the digest");
    println!("changes: {changed} cases");
}

/// A row of each kind with another value in one place has another hash.
#[test]
fn each_row_counts() {
    let sum = |state: &State| {
        let mut hashes = RowHashes::default();
        state.users[0].iter().for_each(|user| user.trading().hash_rows(&mut hashes, || true).expect("all are wanted"));
        hashes.sum
    };
    let state = world(5, 2_000, 1);
    let (before, mut counts) = (sum(&state), [0; 4]);
    for user in state.users[0].iter() {
        let trading = user.trading();
        let requests = trading.requests.as_ref().map_or(0, |requests| requests.rows.len());
        let lengths = [trading.orders.len(), trading.fills.len(), trading.positions.len(), requests];
        counts.iter_mut().zip(lengths).for_each(|(count, length)| *count += length);
    }
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    let owner = state.users[0].iter().find(|user| user.positions().len() > 1).expect("some trade").id;
    let mut cases = 0;
    for change in 0..6 {
        let mut state = restored(&state, 1);
        let mut user = state.users[0].take(owner).expect("it is there");
        let trading = user.trading_mut();
        match change {
            0 => trading.orders[1].notional.0 += 1,
            1 => trading.orders[1].terms.quantity.0 += 1,
            2 => trading.fills[0].fee.0 += 1,
            3 => trading.positions[1].realized.0 -= 1,
            4 => trading.requests.as_mut().expect("it has some").rows.get_mut(0).expect("a row").digest[31] ^= 1,
            _ => trading.requests.as_mut().expect("it has some").rows.get_mut(0).expect("a row").first.available.0 += 1,
        }
        state.users[0].insert(user);
        assert_ne!(sum(&state), before, "change {change}");
        cases += 1;
    }
    println!("changed rows: {cases} cases");
}

/// The digests of the golden snapshots. A changed line is another encoding, with another number.
#[test]
fn the_digests_of_golden_snapshots_are_golden() {
    let expected = [
        "015a4e82402cffb5dfe2fe2073127376eac5423893b6b4405af28bc6225a521d",
        "549448498b04e2730bec2910fd082d8df1e531280fac6bb9fc8fab1b28d8bd9a",
    ];
    let mut found = Vec::new();
    for (_, golden) in GOLDEN {
        let bytes = unhex(golden.lines().nth(1).expect("a snapshot"));
        let state = read(&mut &bytes[..], 2).expect("it is golden");
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            digest_in(ENCODING_FIRST, &state.markets, &state.users.iter().collect::<Vec<_>>()).map(hex).as_deref(),
            golden.lines().next(),
            "the first encoding is that of the snapshots"
        );
        assert_eq!(digest_in(ENCODING + 1, &state.markets, &[]), None);
        found.push(hex(digest_of(&state)));
    }
    assert_eq!(found, expected);
    println!("golden digests: {} cases", found.len());
}

/// It is asked for each part, and between the rows of a user with many.
#[test]
fn a_digest_that_is_not_wanted_ends_early() {
    let mut cases = 0;
    for (users, records) in [(3, 500), (1, 3_000)] {
        let mut sample = Sample::new(5, users, 20);
        let mut state = State::new(2);
        for _ in 0..records {
            let (owner, facts) = sample.record();
            let mut payload = Vec::new();
            codec::encode(codec::VERSION, &facts, &mut payload);
            fold(&mut state, owner, codec::VERSION, &payload).expect("just encoded");
        }
        let shards: Vec<_> = state.users.iter().collect();
        let rows_of = |user: &User| {
            let trading = user.trading();
            let requests = trading.requests.as_ref().map_or(0, |requests| requests.rows.len());
            trading.orders.len() + trading.fills.len() + trading.positions.len() + requests
        };
        let between = shards.iter().flat_map(|users| users.iter()).map(|user| rows_of(user) / ROWS_TOGETHER);
        let asked = parts_of(&state).len() + between.sum::<usize>();
        assert!(users > 1 || asked > 10, "a user with many rows: {asked}");
        for wanted in 0..=asked {
            let mut seen = 0;
            let goes_on = |_| {
                seen += 1;
                seen <= wanted
            };
            let found = digest_while(&state.markets, &shards, goes_on);
            let expected = (wanted == asked).then(|| digest_of(&state));
            assert_eq!((found, seen), (expected, asked.min(wanted + 1)), "{users} users");
            cases += 1;
        }
    }
    println!("unwanted digests: {cases} cases");
}
