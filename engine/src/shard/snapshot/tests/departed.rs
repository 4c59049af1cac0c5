//! Format 6: states of which rows have left memory.

use super::*;
use crate::departed::Leaving;
use crate::id::{OBJECT_BITS, OrderId};
use crate::mutation::packed::take_numbers;
use crate::rehearsal::{AddressKind, DeclaredAddress};
use crate::shard::digest;
use crate::time::DAY;

/// The file's digest, its bytes, and the digest of its state, as hex.
const GOLDEN_DEPARTED: &str = include_str!("../golden/6.txt");

fn state_digest(state: &State) -> [u8; 32] {
    digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
}

/// Everything that has ended leaves, but for the newest `rows_max` rows of each user.
fn leave(state: &mut State, rows_max: usize) {
    for users in &mut state.users {
        for rows in users.leaving(Timestamp(0), rows_max) {
            users.depart(&rows);
        }
    }
}

/// A state with all rows, and a snapshot of which some have left.
fn golden_state() -> (State, State) {
    let (whole, mut hot) = (world(11, 120, 1), world(11, 120, 1));
    leave(&mut hot, 1);
    hot.users[0].set_departed_upto(0x0123_4567);
    (whole, hot)
}

#[test]
fn a_golden_snapshot_without_rows_that_left_stays_readable_and_writable() {
    let mut lines = GOLDEN_DEPARTED.lines().map(unhex);
    let (file_digest, bytes) = (lines.next().expect("a digest"), lines.next().expect("a snapshot"));
    let file_digest = <[u8; 32]>::try_from(file_digest).expect("32 bytes");
    let expected = lines.next().expect("a digest");
    assert_eq!(version_of(&bytes), VERSION);
    let state = read_checked(&mut &bytes[..], 2, file_digest).expect("the digest of these bytes");
    state.check_all().expect("every invariant is kept");
    for formats in [Formats::Previous, Formats::Newest] {
        let (mut again, shards) = (Vec::new(), state.users.iter().collect::<Vec<_>>());
        let digest = write(formats, &state.markets, &shards, &mut again).expect("memory takes every byte");
        assert_eq!((digest, &again), (file_digest, &bytes), "{formats:?}");
    }
    // When it was made, the same state with all rows had this digest.
    assert_eq!(state_digest(&state)[..], expected);
    assert!(state.users.iter().all(|users| users.departed_upto() == 0x0123_4567));
    let users = || state.users.iter().flat_map(Users::iter);
    let left: u32 = users().filter_map(User::departed).map(|departed| departed.orders).sum();
    let there: usize = users().map(|user| user.orders().len()).sum();
    println!("golden rows: {left} orders left, {there} are there");
    assert!(left > 20 && there > 0, "{left}, {there}");
    assert!(state.repartition(3).users.iter().all(|users| users.departed_upto() == 0x0123_4567));
}

/// `cargo test -p engine --lib a_golden_snapshot_without_rows_is_printed -- --ignored --nocapture`
#[test]
#[ignore = "prints the golden snapshot of a new format"]
fn a_golden_snapshot_without_rows_is_printed() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (whole, hot) = golden_state();
    let (mut bytes, shards) = (Vec::new(), hot.users.iter().collect::<Vec<_>>());
    let digest = write(Formats::Newest, &hot.markets, &shards, &mut bytes).expect("memory takes every byte");
    println!("{}\n{}\n{}", hex(&digest), hex(&bytes), hex(&state_digest(&whole)));
}

/// The format is that of what left: requests alone need none, the LSN alone does.
#[test]
fn only_a_state_of_which_rows_left_is_in_the_newest_format() {
    let mut state = world_of(7, 800, 2, codec::VERSION_FIRST);
    let before = state_digest(&state);
    let version = |state: &State, formats| {
        let (mut bytes, shards) = (Vec::new(), state.users.iter().collect::<Vec<_>>());
        let digest = write(formats, &state.markets, &shards, &mut bytes).expect("memory takes every byte");
        let read = read_checked(&mut &bytes[..], 1, digest).expect("just written");
        assert_eq!(state_digest(&read), before);
        // A file of format 6 that says another version is refused, and so is another LSN.
        if version_of(&bytes) == VERSION {
            for wrong in [VERSION_FIRST, VERSION_ALL_ROWS] {
                let mut mixed = bytes.clone();
                mixed[0] = wrong as u8;
                assert!(super::read(&mut &mixed[..], 1).is_err());
                mixed.drain(2..10);
                let refused = super::read(&mut &mixed[..], 1);
                let has_rows_left = state.users.iter().flat_map(Users::iter).any(|user| user.departed().is_some());
                assert_eq!(refused.is_err(), wrong == VERSION_FIRST || has_rows_left);
            }
            let mut other = bytes.clone();
            other[2] ^= 1;
            assert!(matches!(read_checked(&mut &other[..], 1, digest), Err(SnapshotError::Digest)));
        }
        version_of(&bytes)
    };
    let formats = [Formats::Previous, Formats::Newest];
    let of = |state: &State| formats.map(|formats| version(state, formats));
    let mut found = vec![of(&state)];
    state.users[1].set_departed_upto(9);
    found.push(of(&state));
    state.users[1].set_departed_upto(0);
    state.users.iter_mut().for_each(|users| _ = users.forget_requests(Timestamp(u64::MAX), 50));
    found.push(of(&state));
    leave(&mut state, 3);
    found.push(of(&state));
    assert_eq!(found, [[4, 5], [6, 6], [5, 5], [6, 6]]);
    // A cut alone needs it, too, and is in the digest. So does a declared address.
    let cut = fact::HistoryCut { day: 20_784, at: Timestamp(5) };
    let declared = DeclaredAddress { kind: AddressKind::Safe, owner: Some([4; 20]), exchange: true, neg_risk: false };
    let address = fact::AddressDeclared { address: [3; 20], declared, at: Timestamp(5) };
    for (fact, formats) in [
        (MarketMutation::HistoryCut(cut.clone()), formats[0]),
        (MarketMutation::HistoryCut(cut), formats[1]),
        (MarketMutation::AddressDeclared(address.clone()), formats[0]),
        (MarketMutation::AddressDeclared(address), formats[1]),
    ] {
        let mut cut = world_of(7, 800, 2, codec::VERSION_FIRST);
        cut.markets.apply(&fact);
        assert_ne!(state_digest(&cut), before);
        let (mut bytes, shards) = (Vec::new(), cut.users.iter().collect::<Vec<_>>());
        let digest = write(formats, &cut.markets, &shards, &mut bytes).expect("memory takes every byte");
        let read = read_checked(&mut &bytes[..], 1, digest).expect("just written");
        let is_cut = matches!(fact, MarketMutation::HistoryCut(_));
        assert_eq!((version_of(&bytes), read.markets.history_from().0), (VERSION, if is_cut { 20_784 } else { 0 }));
        let known: Vec<_> = read.markets.addresses().map(|(address, known)| (*address, *known)).collect();
        assert_eq!(known, if is_cut { Vec::new() } else { vec![([3; 20], declared)] });
        assert_eq!(state_digest(&read), state_digest(&cut));
        // No file of format 5 has it.
        let mut mixed = bytes.clone();
        mixed[0] = VERSION_ALL_ROWS as u8;
        mixed.drain(2..10);
        assert!(super::read(&mut &mixed[..], 1).is_err());
        found.push([6, 6]);
    }
    println!("formats: {} cases", found.len() * 2);
}

/// The section of a user is as a table of numbers: each that contradicts another one is refused, and every cut.
#[test]
fn a_section_that_contradicts_itself_is_refused() {
    let mut state = world(9, 2_500, 1);
    leave(&mut state, 4);
    let user = state.users[0].iter().max_by_key(|user| user.departed().map_or(0, |departed| departed.fills));
    let user = user.expect("users");
    let departed = user.departed().expect("many left");
    assert!(departed.fills > 10 && departed.positions > 2 && departed.requests > 2);
    let mut bytes = Vec::new();
    put_user(user, &mut bytes);
    let mut section = Vec::new();
    user.put_departed(departed, &mut section);
    let begin = bytes.len() - section.len();
    assert_eq!(bytes[begin - 4..begin], DEPARTED_ROWS.to_le_bytes());
    let read = |bytes: &[u8]| {
        let mut rest = bytes;
        let user = take_user(&mut rest, &mut Shared::default())?;
        if rest.is_empty() { Ok(user) } else { Err(CodecError::Rest) }
    };
    let again = read(&bytes).expect("just written");
    assert_eq!(again.departed(), Some(departed));
    let mut cases = 0;
    for len in begin - 4 + 1..bytes.len() {
        assert!(read(&bytes[..len]).is_err(), "cut at {len}");
        cases += 1;
    }
    // The lists of numbers after the sum.
    let lists_of = |mut input: &[u8]| -> Vec<Vec<u64>> {
        std::iter::from_fn(|| (!input.is_empty()).then(|| take_numbers(&mut input).expect("just written"))).collect()
    };
    let lists = lists_of(&section[32..]);
    assert_eq!((lists.len(), lists[0].len()), (6, 10));
    let with = |lists: &[Vec<u64>]| {
        let mut bytes = bytes[..begin + 32].to_vec();
        let mut packer = Packer::onto(&mut bytes);
        lists.iter().for_each(|list| put_numbers(list.iter().copied(), &mut packer));
        packer.end();
        bytes
    };
    assert_eq!(with(&lists), bytes);
    type Change<'a> = (&'a str, Box<dyn Fn(&mut Vec<Vec<u64>>)>);
    let figure = |name, nth: usize, value: u64| -> Change<'_> { (name, Box::new(move |lists| lists[0][nth] = value)) };
    let next = u64::from(user.next_object);
    let table: Vec<Change<'_>> = vec![
        figure("one order fewer", 0, lists[0][0] - 1),
        figure("no orders", 0, 0),
        figure("too many orders", 0, 1 << OBJECT_BITS),
        figure("far too many", 0, u64::MAX),
        figure("one fill fewer", 1, lists[0][1] - 1),
        figure("one fill more", 1, lists[0][1] + 1),
        figure("one position fewer", 2, 0),
        figure("more requests than orders", 3, lists[0][0] + 1),
        figure("fills after the newest time", 5, lists[0][4] + 1),
        figure("a first end after the newest time", 6, lists[0][4] / DAY + 1),
        figure("a day beyond 32 bits", 6, 1 << 32),
        figure("no newest order", 7, 0),
        figure("an order of the future", 7, next),
        figure("no newest fill", 8, 0),
        figure("a fill of the future", 8, next),
        figure("a position of the future", 9, 1 << OBJECT_BITS),
        ("a figure is missing", Box::new(|lists| _ = lists[0].pop())),
        ("a figure is too many", Box::new(|lists| lists[0].push(1))),
        ("a wallet is missing", Box::new(|lists| lists[1].clear())),
        ("a wallet is cut", Box::new(|lists| _ = lists[1].pop())),
        ("a wallet without number", Box::new(|lists| lists[1][0] = 0)),
        ("a wallet of the future", Box::new(move |lists| lists[1][0] = next)),
        ("other fills of a wallet", Box::new(|lists| lists[1][1] += 1)),
        ("more closed than positions", Box::new(|lists| lists[1][2] += 1 << 20)),
        ("more won than closed", Box::new(|lists| lists[1][3] = lists[1][2] + 1)),
        ("an opening after the newest time", Box::new(|lists| lists[1][4] = lists[0][4] + 1)),
        (
            "more wallets that opened than positions",
            Box::new(move |lists| {
                let first = next - (lists[0][2] + 1);
                lists[1].extend((first..next).flat_map(|wallet| [wallet, 0, 0, 0, 1]));
            }),
        ),
        ("a wallet without rows", Box::new(move |lists| lists[1].extend([next - 1, 0, 0, 0, 0]))),
        (
            "the same wallet again",
            Box::new(|lists| {
                let first = lists[1][0];
                lists[1].extend([first, 0, 0, 0, 1]);
            }),
        ),
        ("a wallet with orders is missing", Box::new(|lists| lists[2].clear())),
        ("a wallet with orders is cut", Box::new(|lists| _ = lists[2].pop())),
        ("a wallet with orders without number", Box::new(|lists| lists[2][0] = 0)),
        ("a wallet with orders of the future", Box::new(move |lists| lists[2][0] = next)),
        ("other orders of a wallet", Box::new(|lists| lists[2][1] += 1)),
        ("far too many orders of a wallet", Box::new(|lists| lists[2][1] = u64::MAX)),
        ("a wallet without orders", Box::new(move |lists| lists[2].extend([next - 1, 0, 0, 0, 0, 0, 0]))),
        (
            "the same wallet with orders again",
            Box::new(|lists| {
                let first = lists[2][0];
                lists[2][1] -= 1;
                lists[2].extend([first, 1, 0, 0, 0, 0, 0]);
            }),
        ),
        ("no orders are there", Box::new(|lists| lists[3].clear())),
        ("a run is cut", Box::new(|lists| _ = lists[3].pop())),
        ("a run too long", Box::new(|lists| lists[3][1] += 1)),
        ("a run without rows", Box::new(|lists| lists[3].extend([1, 0]))),
        ("a run at the end of numbers", Box::new(|lists| lists[3][0] = u64::MAX)),
        ("a run of all numbers", Box::new(|lists| lists[3][1] = u64::MAX)),
        ("a run after the end", Box::new(|lists| lists[3][0] += 1 << 20)),
        (
            "runs that touch",
            Box::new(|lists| {
                let (at, length) = (lists[3][0], lists[3][1]);
                lists[3].splice(0..2, [at, length - 1, 0, 1]);
            }),
        ),
        ("fills elsewhere", Box::new(|lists| lists[4][0] += 1)),
        ("one list more", Box::new(|lists| lists.push(vec![1]))),
        ("a list is missing", Box::new(|lists| _ = lists.pop())),
    ];
    let mut accepted = Vec::new();
    for (name, change) in &table {
        let mut lists = lists.clone();
        change(&mut lists);
        // What is read would be written with other bytes, which the reader of a snapshot refuses.
        let bytes = with(&lists);
        if let Ok(user) = read(&bytes) {
            let mut again = Vec::new();
            put_user(&user, &mut again);
            if again == bytes {
                accepted.push(*name);
            }
        }
        cases += 1;
    }
    assert!(accepted.is_empty(), "{accepted:?}");
    // Any changed bit is an error or a state that is written with the same bytes.
    let (mut dice, mut errors, flips) = (Dice(6), 0, 6_000);
    for _ in 0..flips {
        let mut broken = bytes.clone();
        let at = dice.below(bytes.len() as u64) as usize;
        broken[at] ^= 1 << dice.below(8);
        match read(&broken) {
            Err(_) => errors += 1,
            Ok(user) => {
                let mut again = Vec::new();
                put_user(&user, &mut again);
                errors += usize::from(again != broken);
            }
        }
    }
    println!("sections: {cases} cases, {errors} of {flips} changed bits detected by the reader alone");
}

/// Order facts that name a row which never was are refused.
#[test]
fn facts_name_rows_that_are_there_or_have_left() {
    let mut state = world(9, 1_500, 1);
    leave(&mut state, 4);
    let mut cases = 0;
    for user in state.users[0].iter().filter(|user| user.departed().is_some()) {
        let facts = || {
            let mut bytes = Vec::new();
            let mut packer = Packer::onto(&mut bytes);
            user.trading().facts.pack(Fact::number, &mut packer);
            packer.end();
            Facts::unpack(&mut &bytes[..]).expect("just written")
        };
        let of = |facts: Facts| facts_by_objects(facts, user.trading(), user.next_object);
        assert!(of(facts()).is_some());
        let changed = |to: u32, which: &dyn Fn(Fact) -> bool| {
            let facts = facts().with_numbers(|fact| Some(if which(fact) { to } else { fact.number() }));
            facts.and_then(of).is_some()
        };
        let is_fill = |fact: Fact| matches!(fact, Fact::Taken { .. } | Fact::Matched { .. });
        let left = user.departed().expect("some left").newest_order().and_then(|id| user.number_of(id.0)).unwrap_or(0);
        assert!(!changed(user.next_object, &is_fill) && !changed(user.next_object, &|fact| !is_fill(fact)));
        assert!(!changed((1 << OBJECT_BITS) - 1, &|_| true));
        assert!(changed(left, &|fact| !is_fill(fact)), "an order that left");
        // A fill that is there is not an order.
        let newest = user.fills().last().and_then(|fill| user.number_of(fill.id.0)).filter(|fill| *fill > left);
        assert!(newest.is_none_or(|fill| !changed(fill, &|fact| !is_fill(fact))));
        cases += 5;
    }
    println!("facts of rows that left: {cases} cases");
    assert!(cases > 50);
}

/// A list of rows with gaps everywhere takes memory for the rows that are there.
#[test]
fn numbers_far_apart_take_no_memory() {
    let mut state = world(9, 2_500, 1);
    let owner = state.users[0].iter().max_by_key(|user| user.orders().len()).expect("users").id;
    let user = state.users[0].get(owner).expect("it is there");
    let ended = user.orders().iter().filter(|order| !order.is_open());
    // Each third stays.
    let orders: Vec<OrderId> =
        ended.map(|order| order.id).enumerate().filter(|(nth, _)| nth % 3 != 0).map(|(_, id)| id).collect();
    let left = orders.len();
    state.users[0].depart(&Leaving { user: owner, orders, positions: Vec::new() });
    let user = state.users[0].get(owner).expect("it is there");
    let (mut bytes, departed) = (Vec::new(), user.departed().expect("some left"));
    put_user(user, &mut bytes);
    let mut section = Vec::new();
    user.put_departed(departed, &mut section);
    let begin = bytes.len() - section.len();
    let mut input = &section[32..];
    let mut lists: Vec<Vec<u64>> =
        std::iter::from_fn(|| (!input.is_empty()).then(|| take_numbers(&mut input).expect("just written"))).collect();
    // The same rows, but 2^16 numbers further from each other; all of those in between have left.
    let runs = lists[3].len() / 2;
    lists[3].iter_mut().step_by(2).for_each(|distance| *distance += 1 << 16);
    lists[0][0] += (runs as u64) << 16;
    lists[2][1] += (runs as u64) << 16;
    bytes.truncate(begin + 32);
    let mut packer = Packer::onto(&mut bytes);
    lists.iter().for_each(|list| put_numbers(list.iter().copied(), &mut packer));
    packer.end();
    let mut read = None;
    let info = allocation_counter::measure(|| read = Some(take_user(&mut &bytes[..], &mut Shared::default())));
    let read = read.expect("just set").expect("as many rows are there");
    assert_eq!(read.orders().len(), user.orders().len());
    assert!(read.orders().iter().eq(user.orders().iter()));
    let rows = user.orders().len() as u64;
    println!("{runs} runs of {rows} rows, {left} have left: at most {} bytes", info.bytes_max);
    assert!(info.bytes_max < rows * 4_096 + (1 << 20), "{} bytes for {rows} rows", info.bytes_max);
}
