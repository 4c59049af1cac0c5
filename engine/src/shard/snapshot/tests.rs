use super::*;
use crate::amount::{Bps, Qty};
use crate::fact;
use crate::id::{MARKETS, MarketId, OBJECT_BITS, WalletId};
use crate::market::mutation::MarketMutation;
use crate::market::terms::MarketState;
use crate::mutation::Mutation;
use crate::mutation::codec;
use crate::mutation::codec::tests::unhex;
use crate::order::CloseReason;
use crate::realism::RealismSets;
use crate::shard::replay::fold;
use crate::user::sample::{Dice, Sample};

/// A random state, folded from records into `shards_count` shards.
pub fn world(seed: u64, records_count: usize, shards_count: usize) -> State {
    world_of(seed, records_count, shards_count, codec::VERSION)
}

/// The same from records in that format.
pub fn world_of(seed: u64, records_count: usize, shards_count: usize, version: u16) -> State {
    let mut sample = Sample::new(seed, 30, 20);
    let mut state = State::new(shards_count);
    let mut payload = Vec::new();
    for market in 0..10 {
        let listed = MarketMutation::MarketListed(fact::MarketListed {
            market: MarketId(market),
            listing: Box::new(codec::tests::listing(&mut Dice(seed + u64::from(market)))),
            state: MarketState::Active,
            at: Timestamp(5),
        });
        payload.clear();
        codec::encode(version, &[listed], &mut payload);
        assert_eq!(fold(&mut state, MARKETS, version, &payload), Ok(1));
    }
    for _ in 0..records_count {
        let (owner, facts) = sample.record();
        payload.clear();
        codec::encode(version, &facts, &mut payload);
        assert_eq!(fold(&mut state, owner, version, &payload), Ok(facts.len()));
    }
    state
}

fn digest_of(state: &State) -> [u8; 32] {
    first_digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
}

fn bytes_of(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    let users: Vec<_> = state.users.iter().collect();
    write(Formats::Newest, &state.markets, &users, &mut bytes).expect("memory takes every byte");
    bytes
}

/// All of a user, rows and indexes; except for beats.
fn shown(user: &User) -> String {
    let trading = user.trading();
    let open: Vec<_> = user.open_orders().map(|order| order.id).collect();
    let held: Vec<_> = user.open_positions().map(|held| held.id).collect();
    let remembered: Vec<_> = trading.requests.iter().flat_map(|requests| requests.rows.iter()).collect();
    let armed: Vec<_> = user.safeguards().iter().map(|armed| (&armed.label, armed.interval_ms)).collect();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {open:?} {held:?} {remembered:?} {armed:?}",
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
        user.billing,
    )
}

#[test]
fn a_restored_state_is_the_same_state() {
    for seed in 0..5 {
        println!("seed {seed}");
        let mut state = world(seed, 3_000, 3);
        let bytes = bytes_of(&state);
        let mut restored = read(&mut &bytes[..], 3).expect("just written");
        restored.check_all().expect("every invariant is kept");
        assert_eq!(digest_of(&restored), digest_of(&state));
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
        // And it continues like the original.
        let mut sample = Sample::new(seed, 30, 20);
        let records: Vec<_> = (0..4_000).map(|_| sample.record()).collect();
        for (owner, facts) in &records[3_000..] {
            let mut payload = Vec::new();
            codec::encode(codec::VERSION, facts, &mut payload);
            for state in [&mut state, &mut restored] {
                fold(state, *owner, codec::VERSION, &payload).expect("just encoded");
            }
        }
        assert_eq!(bytes_of(&restored), bytes_of(&state));
    }
}

fn written(formats: Formats, state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    let digest = write(formats, &state.markets, &state.users.iter().collect::<Vec<_>>(), &mut bytes);
    assert_eq!(digest.expect("memory takes every byte"), digest_of(state));
    bytes
}

fn version_of(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}

/// The first bytes of a snapshot in the previous format: no market state names its version.
fn unversioned(newest: &[u8]) -> Vec<u8> {
    let len = u64::from_le_bytes(*newest[2..].first_chunk().expect("a length"));
    let (named, markets) = newest[10..].split_at(10);
    assert_eq!(named, [255, 255, 255, 255, 255, 255, 255, 255, 2, 0]);
    [&VERSION_FIRST.to_le_bytes()[..], &(len - 10).to_le_bytes(), markets].concat()
}

#[test]
fn a_state_without_later_fields_has_its_digest_in_either_format() {
    for seed in 0..3 {
        let state = world_of(seed, 2_000, 2, codec::VERSION_FIRST);
        let (previous, newest) = (written(Formats::Previous, &state), written(Formats::Newest, &state));
        assert_eq!((version_of(&previous), version_of(&newest)), (VERSION_FIRST, VERSION_ALL_ROWS));
        assert_eq!(unversioned(&newest), previous, "and the rest is the same");
        // Earlier builds computed the digest of the file's own bytes.
        assert_eq!(<[u8; 32]>::from(Sha256::digest(&previous)), digest_of(&state));
        for bytes in [&previous, &newest] {
            let read = read_checked(&mut &bytes[..], 3, digest_of(&state)).expect("just written");
            read.check_all().expect("every invariant is kept");
            assert_eq!(written(Formats::Newest, &read), newest);
        }
    }
}

#[test]
fn a_state_with_later_fields_is_in_the_newest_format() {
    let state = world(5, 2_000, 2);
    let bytes = written(Formats::Previous, &state);
    assert_eq!((version_of(&bytes), &bytes), (VERSION_ALL_ROWS, &written(Formats::Newest, &state)));
    read_checked(&mut &bytes[..], 1, digest_of(&state)).expect("just written");
    assert!(matches!(read(&mut &unversioned(&bytes)[..], 1), Err(SnapshotError::Again)), "no build wrote this");
    // A market state with a version in the previous format, one without in the newest, an unknown version.
    let mut mixed = bytes.clone();
    mixed[0] = VERSION_FIRST as u8;
    assert!(matches!(read(&mut &mixed[..], 1), Err(SnapshotError::Again)));
    let mut mixed = unversioned(&bytes);
    mixed[0] = VERSION_ALL_ROWS as u8;
    assert!(matches!(read(&mut &mixed[..], 1), Err(SnapshotError::Again)));
    let mut unknown = bytes.clone();
    unknown[18] = 3;
    let refused = SnapshotError::Markets(CodecError::Version { found: 3, newest: 2 });
    assert_eq!(read(&mut &unknown[..], 1).unwrap_err().to_string(), refused.to_string());
}

/// Digest and bytes of a small state in each format, as hex. A changed line means a directory that cannot be read.
pub const GOLDEN: [(Formats, &str); 2] =
    [(Formats::Previous, include_str!("golden/4.txt")), (Formats::Newest, include_str!("golden/5.txt"))];

#[test]
fn golden_snapshots_of_every_format_stay_readable_and_writable() {
    for (formats, golden) in GOLDEN {
        let mut lines = golden.lines().map(unhex);
        let (digest, bytes) = (lines.next().expect("a digest"), lines.next().expect("a snapshot"));
        let digest = <[u8; 32]>::try_from(digest).expect("32 bytes");
        let state = read_checked(&mut &bytes[..], 2, digest).expect("the digest of these bytes");
        state.check_all().expect("every invariant is kept");
        assert_eq!(written(formats, &state), bytes, "{formats:?}");
        let users = || state.users.iter().flat_map(|users| users.iter());
        assert_eq!(
            users().any(|user| user.needs_newest_format()),
            formats.is_newest(),
            "each has the fields of its format"
        );
        assert!(users().map(|user| user.orders().len()).sum::<usize>() > 20);
        for order in users().flat_map(|user| user.orders()) {
            let hash = order.terms.order_hash();
            let owner = state.user(UserId::of_object(order.id.0)).expect("its user");
            assert!(hash.is_none_or(|hash| owner.signed_order(hash).is_some_and(|found| found.id == order.id)));
        }
    }
}

/// Chosen sets and places in queues are restored, are in the digest, and take no byte where there are none.
#[test]
fn realism_is_restored_and_takes_no_byte_where_there_is_none() {
    let mut state = world_of(23, 600, 2, codec::VERSION);
    let (before, plain, at) = (digest_of(&state), bytes_of(&state), Timestamp(1_790_932_500_000_000));
    let users = || state.users.iter().flat_map(Users::unordered);
    let keys: Vec<_> = users().flat_map(|user| user.keys.iter().take(2).map(|key| (user.id, key.id))).collect();
    let orders: Vec<_> = users().flat_map(|user| user.open_orders().take(3).map(|order| (user.id, order.id))).collect();
    assert!(keys.len() > 3 && orders.len() > 3);
    fn apply(state: &mut State, id: UserId, fact: Mutation) {
        let shard = shard_of(id, state.users.len());
        state.users[shard].apply(id, &fact);
    }
    let restored = |state: &State| {
        let bytes = bytes_of(state);
        let read = read_checked(&mut &bytes[..], 1, digest_of(state)).expect("just written");
        assert_eq!(bytes_of(&read), bytes);
        read
    };
    let choose = |state: &mut State, set: Option<&str>| {
        for (id, key) in &keys {
            let set = set.map(str::to_owned);
            apply(state, *id, fact::KeyRealismSet { key: *key, set, at }.into());
        }
    };
    choose(&mut state, Some("mine"));
    assert_ne!(digest_of(&state), before);
    let read = restored(&state);
    assert!(keys.iter().all(|(id, key)| read.user(*id).and_then(|user| user.realism_of(*key)) == Some("mine")));
    let sets = RealismSets::default();
    assert_eq!(state.unknown_realism(&sets).map(|(_, set)| set), Some("mine".to_owned()));
    choose(&mut state, None);
    assert_eq!((digest_of(&state), bytes_of(&state) == plain, state.unknown_realism(&sets)), (before, true, None));
    for (id, order) in &orders {
        let (ahead, confidence) = (Qty(order.0), Bps(8_500));
        let noted = fact::QueueNoted { order: *order, ahead, confidence, at, venue_at: Some(Timestamp(7)) };
        apply(&mut state, *id, noted.into());
    }
    assert_ne!(digest_of(&state), before);
    let read = restored(&state);
    assert!(orders.iter().all(|(id, order)| {
        let note = read.user(*id).and_then(|user| user.queue_note(*order));
        note.is_some_and(|note| (note.ahead, note.venue_time()) == (Qty(order.0), Timestamp(7)))
    }));
    for (id, order) in &orders {
        apply(&mut state, *id, fact::OrderClosed { order: *order, reason: CloseReason::UserCancelled, at }.into());
        assert!(state.user(*id).is_some_and(|user| user.queue_note(*order).is_none()), "it has ended");
    }
    println!("realism in snapshots: {} cases", keys.len() + orders.len());
}

/// `cargo test -p engine --lib golden_snapshots_are_printed -- --ignored --nocapture`
#[test]
#[ignore = "prints the golden snapshots of a new format"]
fn golden_snapshots_are_printed() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (formats, version) in [(Formats::Previous, codec::VERSION_FIRST), (Formats::Newest, codec::VERSION)] {
        let state = world_of(11, 40, 1, version);
        println!("{formats:?}\n{}\n{}", hex(&digest_of(&state)), hex(&written(formats, &state)));
    }
}

#[test]
fn the_digest_does_not_depend_on_the_shard_count() {
    let one = world(7, 4_000, 1);
    let digest = digest_of(&one);
    let mut state = one;
    for shards_count in [2, 3, 7, 1] {
        assert_eq!(digest_of(&world(7, 4_000, shards_count)), digest, "folded into {shards_count} shards");
        state = state.repartition(shards_count);
        state.check_all().expect("every invariant is kept");
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
        codec::encode(codec::VERSION, &facts, &mut payload);
        fold(&mut state, owner, codec::VERSION, &payload).expect("just encoded");
        let now = digest_of(&state);
        same += usize::from(now == last);
        last = now;
    }
    // Holding a held order, or ending a heartbeat that is not armed, changes nothing.
    assert!(same < 50, "{same} of 500 records did not change the digest");
}

/// Short reads, wrong lengths, changed bytes: an error or another state, never a panic or an allocation larger than the
/// input.
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
    for unknown in [VERSION_FIRST - 1, VERSION + 1] {
        newer[0] = unknown as u8;
        let read = read(&mut &newer[..], 1);
        assert!(matches!(read, Err(SnapshotError::Version(found)) if found == unknown));
    }
    // After the markets, whose bytes have their own tests.
    let users_at = 2 + 8 + u64::from_le_bytes(*bytes[2..].first_chunk().expect("a length")) as usize;
    let mut errors = 0;
    for _ in 0..3_000 {
        let mut broken = bytes.clone();
        let at = users_at + dice.below((bytes.len() - users_at) as u64) as usize;
        broken[at] ^= 1 << dice.below(8);
        errors += usize::from(read(&mut &broken[..], 1).is_err());
    }
    println!("{errors} of 3000 changes detected by the reader alone");
    // A number in more bytes than necessary: the same state, and bytes that no build wrote.
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
fn object_numbers_of_a_user_are_bounded() {
    let mut cases = 0;
    for (next_object, is_read) in [(u32::MAX, false), (1 << OBJECT_BITS, false), ((1 << OBJECT_BITS) - 1, true)] {
        let mut user = User::new(UserId(1), None, None, Timestamp(7));
        user.next_object = next_object;
        let mut bytes = Vec::new();
        put_user(&user, &mut bytes);
        assert_eq!(take_user(&mut &bytes[..], &mut Shared::default()).is_ok(), is_read, "{next_object}");
        cases += 1;
    }
    println!("object numbers: {cases} cases");
}

/// The facts of a back-test that ended.
fn backtest_facts(number: u8) -> [Mutation; 3] {
    use crate::user::backtests::BacktestEnd;
    let (job, at) = ([number; 16], Timestamp(1_790_932_500_000_000));
    let created = fact::BacktestCreated {
        job,
        spec: "{}".to_owned(),
        digest: [number; 32],
        request: Some("id-1".to_owned()),
        charged: 2_000,
        at,
    };
    let (end, error) = (BacktestEnd::Failed, Some("time_limit".to_owned()));
    let ended = fact::BacktestEnded { job, end, error, figures: None, refunded: 500, at };
    [created.into(), fact::BacktestStarted { job, at }.into(), ended.into()]
}

#[test]
fn back_tests_are_restored_and_take_no_byte_where_there_is_none() {
    let mut state = world(7, 500, 2);
    let (before, users) = (digest_of(&state), state.users.iter().flat_map(Users::iter).count());
    assert!(users > 2);
    let owner = state.users[1].iter().next().expect("it has users").id;
    for fact in &backtest_facts(1) {
        let mut payload = Vec::new();
        codec::encode(codec::VERSION, std::slice::from_ref(fact), &mut payload);
        assert_eq!(fold(&mut state, owner, codec::VERSION, &payload), Ok(1));
    }
    assert_ne!(digest_of(&state), before);
    for formats in [Formats::Previous, Formats::Newest] {
        let bytes = written(formats, &state);
        assert_eq!(version_of(&bytes), VERSION_ALL_ROWS, "the previous format has no back-tests");
        let restored = read_checked(&mut &bytes[..], 2, digest_of(&state)).expect("its own digest");
        let user = restored.users[1].get(owner).expect("it is there");
        assert_eq!(user.backtests(), state.users[1].get(owner).expect("it is there").backtests());
        assert_eq!(user.backtest_meter(202_610).hours, 1_500);
        assert_eq!(bytes_of(&restored), bytes_of(&state));
    }
    // A user with back-tests alone.
    let mut alone = Users::default();
    let created = fact::UserCreated { sub: None, email: None, at: Timestamp(1) };
    alone.apply(UserId(9), &created.into());
    let mut empty = Vec::new();
    put_user(alone.get(UserId(9)).expect("it was created"), &mut empty);
    backtest_facts(2).iter().for_each(|fact| alone.apply(UserId(9), fact));
    let mut bytes = Vec::new();
    put_user(alone.get(UserId(9)).expect("it was created"), &mut bytes);
    assert!(bytes.starts_with(&empty) && bytes.len() > empty.len());
    let read = take_user(&mut &bytes[..], &mut Shared::default()).expect("just written");
    assert_eq!(read.backtests().len(), 1);
    for len in empty.len() + 1..bytes.len() {
        assert!(take_user(&mut &bytes[..len], &mut Shared::default()).is_err(), "{len}");
    }
    println!("back-tests: {} cut lengths", bytes.len() - empty.len() - 1);
}

/// The facts of a customer with a subscription, a purchase and a refund.
fn billing_facts(wallet: WalletId) -> Vec<Mutation> {
    use crate::amount::Cash;
    use crate::user::billing::{BillingInterval, Product, Sku, SubscriptionStatus};
    let at = Timestamp(1_790_932_500_000_000);
    let (created, payment) = (Timestamp(1_790_932_400_000_000), "pi_1".to_owned());
    let credit = Cash::from_dollars(500);
    vec![
        fact::CustomerNoted { customer: "cus_1".to_owned(), at }.into(),
        fact::BillingEventNoted { event: "evt_1".to_owned(), created, at }.into(),
        fact::SubscriptionNoted {
            subscription: "sub_1".to_owned(),
            product: Product::Pro,
            interval: BillingInterval::Monthly,
            status: SubscriptionStatus::Active,
            period_end: Some(at.plus(30)),
            cancel_at_period_end: false,
            trial_ends_at: None,
            event: "evt_1".to_owned(),
            created,
            at,
        }
        .into(),
        fact::SubscriptionPaid { subscription: "sub_1".to_owned(), is_paid: false, created: created.plus(5), at }
            .into(),
        fact::PurchaseNoted { payment: payment.clone(), sku: Sku::Topup500, wallet: Some(wallet), credit, at }.into(),
        fact::RefundNoted { payment, refunded: 299, taken: Cash(7), is_reset_taken: false, at }.into(),
        fact::RefundNoted { payment: "pi_0".to_owned(), refunded: 1, taken: Cash::ZERO, is_reset_taken: false, at }
            .into(),
    ]
}

#[test]
fn billing_is_restored_and_takes_no_byte_where_there_is_none() {
    let mut state = world(7, 500, 2);
    let before = digest_of(&state);
    let owner = state.users[1].iter().next().expect("it has users");
    let (owner, wallet) = (owner.id, owner.wallets[0].id);
    for (number, fact) in billing_facts(wallet).into_iter().enumerate() {
        let (last, mut payload) = (digest_of(&state), Vec::new());
        codec::encode(codec::VERSION, &[fact], &mut payload);
        assert_eq!(fold(&mut state, owner, codec::VERSION, &payload), Ok(1));
        assert_ne!(digest_of(&state), last, "fact {number} changes the state");
    }
    assert_ne!(digest_of(&state), before);
    for formats in [Formats::Previous, Formats::Newest] {
        let bytes = written(formats, &state);
        assert_eq!(version_of(&bytes), VERSION_ALL_ROWS, "the previous format has no billing");
        let restored = read_checked(&mut &bytes[..], 2, digest_of(&state)).expect("its own digest");
        let (user, known) = (restored.users[1].get(owner), state.users[1].get(owner));
        let (user, known) = (user.expect("it is there"), known.expect("it is there"));
        assert_eq!((user.billing(), &user.wallets), (known.billing(), &known.wallets));
        assert_eq!(user.wallets[0].deposits(), crate::amount::Cash(500_000_000 - 7));
        assert_eq!(bytes_of(&restored), bytes_of(&state));
        restored.check_all().expect("every invariant is kept");
    }
    // With and without back-tests, every cut is an error.
    let mut cut = 0;
    for has_backtests in [false, true] {
        let mut alone = Users::default();
        let created = fact::UserCreated { sub: None, email: None, at: Timestamp(1) };
        alone.apply(UserId(9), &created.into());
        let (kind, label, parent, generation) = (crate::user::WalletKind::Sandbox, None, None, 1);
        let (wallet, baseline) = (WalletId(UserId(9).object(1)), crate::amount::Cash(5));
        let opened = fact::WalletOpened { wallet, kind, label, baseline, generation, parent, at: Timestamp(1) };
        alone.apply(UserId(9), &opened.into());
        if has_backtests {
            backtest_facts(2).iter().for_each(|fact| alone.apply(UserId(9), fact));
        }
        let without = |users: &Users| {
            let mut bytes = Vec::new();
            put_user(users.get(UserId(9)).expect("it was created"), &mut bytes);
            bytes
        };
        let len_before = without(&alone).len();
        billing_facts(wallet).iter().for_each(|fact| alone.apply(UserId(9), fact));
        let bytes = without(&alone);
        let read = take_user(&mut &bytes[..], &mut Shared::default()).expect("just written");
        assert_eq!(read.billing(), alone.get(UserId(9)).and_then(User::billing));
        // The deposits take eight bytes before the section.
        for len in len_before + 8 + 1..bytes.len() {
            let mut rest = &bytes[..len];
            let read = take_user(&mut rest, &mut Shared::default());
            assert!(read.is_err() || !rest.is_empty(), "{len}");
            cut += 1;
        }
        let mut unknown = bytes.clone();
        unknown[len_before + 8] = 2;
        assert!(matches!(take_user(&mut &unknown[..], &mut Shared::default()), Err(CodecError::Variant)));
    }
    println!("billing: {cut} cut lengths");
    assert!(cut > 200);
}

/// The facts of a subscription without a known price, and of refunds of which one failed.
fn later_billing_facts(wallet: WalletId) -> Vec<Mutation> {
    use crate::amount::Cash;
    use crate::user::billing::SubscriptionStatus;
    let (at, created) = (Timestamp(1_790_932_500_000_000), Timestamp(1_790_932_400_000_000));
    let stated = |payment: &str, failed: Option<&str>, cents, created| {
        let (payment, failed) = (payment.to_owned(), failed.map(str::to_owned));
        Mutation::from(fact::RefundStated { payment, failed, cents, created, at })
    };
    vec![
        fact::SubscriptionUnpriced {
            subscription: "sub_2".to_owned(),
            price: Some("price_new".to_owned()),
            status: SubscriptionStatus::Active,
            period_end: Some(at.plus(30)),
            cancel_at_period_end: true,
            trial_ends_at: None,
            event: "evt_2".to_owned(),
            created,
            at,
        }
        .into(),
        stated("pi_0", None, 5, created),
        stated("pi_1", Some("re_1"), 299, created),
        fact::RefundUndone {
            payment: "pi_1".to_owned(),
            refunded: 0,
            wallet: Some(wallet),
            credit: Cash(7),
            is_reset_given: false,
            at,
        }
        .into(),
    ]
}

/// They are in a section of their own: a user without them has the bytes of earlier builds.
#[test]
fn later_lists_of_billing_are_restored_and_take_no_byte_where_there_are_none() {
    let mut alone = Users::default();
    let created = fact::UserCreated { sub: None, email: None, at: Timestamp(1) };
    alone.apply(UserId(9), &created.into());
    let (kind, label, parent, generation) = (crate::user::WalletKind::Sandbox, None, None, 1);
    let (wallet, baseline) = (WalletId(UserId(9).object(1)), crate::amount::Cash(5));
    let opened = fact::WalletOpened { wallet, kind, label, baseline, generation, parent, at: Timestamp(1) };
    alone.apply(UserId(9), &opened.into());
    billing_facts(wallet).iter().for_each(|fact| alone.apply(UserId(9), fact));
    let bytes = |users: &Users| {
        let mut bytes = Vec::new();
        put_user(users.get(UserId(9)).expect("it was created"), &mut bytes);
        bytes
    };
    let later = |users: &Users| {
        let mut section = Vec::new();
        let billing = users.get(UserId(9)).and_then(User::billing).expect("it has some");
        billing.put_later(&mut section);
        (billing.has_later(), section.len() + size_of::<u32>())
    };
    assert!(!later(&alone).0 && bytes(&alone).ends_with(&0_u64.to_le_bytes()), "the list of resets is last");
    for fact in later_billing_facts(wallet) {
        let before = bytes(&alone);
        alone.apply(UserId(9), &fact);
        assert_ne!(bytes(&alone), before, "{}", fact.name());
    }
    let (has_later, len) = later(&alone);
    let whole = bytes(&alone);
    assert!(has_later);
    let mut rest = &whole[..];
    let read = take_user(&mut rest, &mut Shared::default()).expect("just written");
    let known = alone.get(UserId(9)).expect("it was created");
    assert_eq!((read.billing(), &read.wallets, rest.len()), (known.billing(), &known.wallets, 0));
    let mut cases = 0;
    for cut in whole.len() - len + 1..whole.len() {
        let mut rest = &whole[..cut];
        let read = take_user(&mut rest, &mut Shared::default());
        assert!(read.is_err() || !rest.is_empty(), "{cut}");
        cases += 1;
    }
    // Without the section of billing, and with nothing in it, it is refused.
    let mut empty = Users::default();
    empty.apply(UserId(9), &fact::UserCreated { sub: None, email: None, at: Timestamp(1) }.into());
    let mut orphan = bytes(&empty);
    orphan.extend_from_slice(&whole[whole.len() - len..]);
    let mut none = whole[..whole.len() - len].to_vec();
    none.extend_from_slice(&[3, 0, 0, 0]);
    none.extend_from_slice(&[0; 16]);
    for wrong in [orphan, none] {
        assert!(matches!(take_user(&mut &wrong[..], &mut Shared::default()), Err(CodecError::Reference)));
        cases += 1;
    }
    println!("later lists of billing: {cases} cases");
}

#[test]
fn the_sum_of_departed_rows_is_restored_and_takes_no_byte_where_there_is_none() {
    let of = |state: &State| super::super::digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>());
    let mut state = world_of(7, 1_500, 2, codec::VERSION_FIRST);
    let before = of(&state);
    let requests = |state: &State| -> usize {
        let users = state.users.iter().flat_map(|users| users.iter());
        users.map(|user| user.trading().requests.as_ref().map_or(0, |requests| requests.rows.len())).sum()
    };
    let known = requests(&state);
    let mut moments: Vec<_> =
        state.users.iter().flat_map(|users| users.iter()).filter_map(|user| user.trading().oldest_request()).collect();
    moments.sort_unstable();
    // A part of the requests of the older half of the users, then all.
    let mut cases = 0;
    for (since, most) in [(moments[moments.len() / 2], 40), (Timestamp(u64::MAX), 7), (Timestamp(u64::MAX), usize::MAX)]
    {
        let left: Vec<bool> = state.users.iter_mut().map(|users| users.forget_requests(since, most)).collect();
        assert!(most == 40 || left == [most == 7; 2], "{left:?} after {most}");
        state.check_all().expect("every invariant is kept");
        assert!(requests(&state) < known);
        assert_eq!(of(&state), before, "the digest counts all rows");
        for formats in [Formats::Previous, Formats::Newest] {
            let bytes = written(formats, &state);
            assert_eq!(version_of(&bytes), VERSION_ALL_ROWS, "the previous format has no such sum");
            let restored = read_checked(&mut &bytes[..], 3, digest_of(&state)).expect("its own digest");
            restored.check_all().expect("every invariant is kept");
            assert_eq!((of(&restored), requests(&restored)), (before, requests(&state)));
            assert_eq!(bytes_of(&restored), bytes_of(&state));
            cases += 1;
        }
    }
    assert_eq!(requests(&state), 0);
    // Every cut of a user's bytes within the section is an error.
    let owner = state.users[0].iter().find(|user| user.trading().departed.is_some()).expect("some user forgot");
    let mut bytes = Vec::new();
    put_user(owner, &mut bytes);
    let section = bytes.len() - 36;
    assert_eq!(bytes[section..section + 4], DEPARTED.to_le_bytes());
    for len in section + 1..bytes.len() {
        let mut rest = &bytes[..len];
        let read = take_user(&mut rest, &mut Shared::default());
        assert!(read.is_err() || !rest.is_empty(), "{len}");
        cases += 1;
    }
    println!("departed rows: {cases} cases");
}

mod departed;
mod prefixes;
mod resets;
