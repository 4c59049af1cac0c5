use super::*;
use crate::amount::{Bps, Cash, Price, Qty, exact_notional, notional_half_up, reservation_rounded_up};
use crate::fact;
use crate::format::Formats;
use crate::id::{InstrumentId, KeyId, MarketId, OrderId, PositionId, TradeId, WalletId};
use crate::mutation::codec::{self, encode};
use crate::order::resting::Resting;
use crate::order::{CloseReason, Liquidity, OrderTerms, PriceSource, Quality, Side};
use crate::shard::{digest, snapshot};
use crate::time::Timestamp;
use crate::user::sample::Sample;
use crate::user::{Permissions, Tier, WalletKind};
use std::time::Duration;

#[test]
fn folding_the_same_records_twice_gives_the_same_state() {
    let digest = || {
        let mut sample = Sample::new(11, 20, 12);
        let mut state = State::new(2);
        let (mut facts_count, mut payload) = (0, Vec::new());
        for _ in 0..3_000 {
            let (owner, facts) = sample.record();
            payload.clear();
            encode(codec::VERSION, &facts, &mut payload);
            facts_count += fold(&mut state, owner, codec::VERSION, &payload).expect("just encoded");
        }
        state.check_all().expect("every invariant is kept");
        println!("{facts_count} facts");
        digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
    };
    assert_eq!(digest(), digest());
}

#[test]
fn a_batch_equals_its_records_one_by_one() {
    // One shard prefetches, several do not.
    for shards in [1, 3] {
        fold_a_batch(shards);
    }
}

/// The clock is set back within a long log: however it is folded, and wherever a snapshot is taken, the state is the
/// same, every invariant is kept, and later records continue from there.
#[test]
fn a_clock_that_was_set_back_is_part_of_the_state() {
    let mut sample = Sample::new(31, 12, 8);
    let mut records: Vec<(UserId, u16, Vec<u8>)> = Vec::new();
    let mut moments = Vec::new();
    let mut take = |sample: &mut Sample, records: &mut Vec<_>| {
        let (owner, facts) = sample.record();
        let mut payload = Vec::new();
        encode(codec::VERSION, &facts, &mut payload);
        records.push((owner, codec::VERSION, payload));
        moments.push(sample.now);
    };
    (0..500).for_each(|_| take(&mut sample, &mut records));
    let right = sample.now;
    sample.now = right.plus(400 * 24 * 3_600_000_000);
    (0..400).for_each(|_| take(&mut sample, &mut records));
    let (from, at) = (sample.now, right.plus(3_600_000_000));
    let mut payload = Vec::new();
    encode(codec::VERSION_SET_BACK, &[MarketMutation::ClockSetBack(fact::ClockSetBack { from, at })], &mut payload);
    records.push((MARKETS, codec::VERSION_SET_BACK, payload));
    let set_back = records.len();
    sample.now = at;
    (0..400).for_each(|_| take(&mut sample, &mut records));

    let digest = |state: &State| digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>());
    let record = |(owner, version, payload): &(UserId, u16, Vec<u8>)| (*owner, *version, payload.clone());
    let (mut digests, mut cases) = (Vec::new(), 0);
    for shards in [1, 3] {
        let mut one = State::new(shards);
        for (number, (owner, version, payload)) in records.iter().map(record).enumerate() {
            fold(&mut one, owner, version, &payload).expect("just encoded");
            if number + 1 == set_back {
                one.check_all().expect("every invariant is kept");
                let orders = one.users.iter().flat_map(Users::iter).flat_map(|user| user.orders());
                assert_eq!(
                    orders.map(|order| order.created_at).max(),
                    Some(at),
                    "later placements are limited to that time"
                );
            }
        }
        one.check_all().expect("every invariant is kept");
        for user in one.users.iter().flat_map(Users::iter) {
            let ids_and_times = user.orders().iter().map(|order| (order.id, order.created_at));
            assert!(ids_and_times.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1), "they ascend together");
        }
        digests.push(digest(&one));
        let borrowed: Vec<Record<'_>> = records
            .iter()
            .map(|(owner, version, payload)| Record { owner: *owner, version: *version, payload })
            .collect();
        // Unlisted and in batches with the correction among other records, with a snapshot before and after it.
        for cut in [0, set_back - 40, set_back - 1, set_back, set_back + 40] {
            let mut state = State::new(shards);
            state.unlist();
            fold_batch(&mut state, &borrowed[..cut]).expect("just encoded");
            let (mut bytes, users) = (Vec::new(), state.users.iter().collect::<Vec<_>>());
            let whole =
                snapshot::write(Formats::Newest, &state.markets, &users, &mut bytes).expect("memory takes every byte");
            let mut state = snapshot::read_checked(&mut &bytes[..], shards, whole).expect("just written");
            fold_batch(&mut state, &borrowed[cut..]).expect("just encoded");
            state.list_again();
            state.check_all().expect("every invariant is kept");
            digests.push(digest(&state));
            cases += 1;
        }
    }
    assert!(digests.iter().all(|one| *one == digests[0]), "{digests:?}");
    println!("set back: {cases} cases of {} records, {} moments", records.len(), moments.len());
}

/// A market that ended by the wrong clock is open again, unless it was paid out.
#[test]
fn markets_end_again_when_the_clock_was_set_back() {
    use crate::market::terms::{MarketState, Resolution};
    let (at, hour) = (Timestamp(1_790_932_500_000_000), 3_600_000_000);
    let year = at.plus(365 * 24 * hour);
    let mut state = State::new(1);
    let mut dice = crate::user::sample::Dice(5);
    let mut fold_all = |facts: &[MarketMutation], version| {
        let mut payload = Vec::new();
        encode(codec::VERSION, facts, &mut payload);
        fold(&mut state, MARKETS, version, &payload).expect("just encoded");
    };
    // (end, resolved) → ended after the correction
    let rows = [(at.plus(hour), false, false), (Timestamp(at.0 - hour), false, true), (at.plus(hour), true, true)];
    for (number, (end, resolved, _)) in rows.iter().enumerate() {
        let mut listing = codec::tests::listing(&mut dice);
        (listing.condition, listing.end) = (format!("c{number}"), Some(*end));
        let market = MarketId(number as u32);
        let (listing, state) = (Box::new(listing), MarketState::Active);
        let mut facts = vec![
            MarketMutation::MarketListed(fact::MarketListed { market, listing, state, at: year }),
            MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, state, ended: true, at: year }),
        ];
        if *resolved {
            facts.push(MarketMutation::MarketResolved(fact::MarketResolved {
                market,
                resolution: Resolution::Split,
                at: year,
            }));
            facts.push(MarketMutation::MarketSettled(fact::MarketSettled { market, at: year }));
        }
        fold_all(&facts, codec::VERSION);
    }
    fold_all(&[MarketMutation::ClockSetBack(fact::ClockSetBack { from: year, at })], codec::VERSION_SET_BACK);
    for (market, &(_, resolved, ended)) in state.markets.iter().zip(&rows) {
        assert_eq!((market.ended, market.listed_at), (ended, at));
        assert_eq!(market.resolution, resolved.then_some((Resolution::Split, at)));
        assert_eq!(market.settled_at, resolved.then_some(at));
    }
    assert_eq!(state.markets.next_end(), Some(at.plus(hour)), "its end is scheduled again");
    println!("markets: {} cases", rows.len());
}

fn fold_a_batch(shards: usize) {
    let mut sample = Sample::new(12, 20, 12);
    let records: Vec<(UserId, Vec<u8>)> = (0..2_000)
        .map(|_| {
            let (owner, facts) = sample.record();
            let mut payload = Vec::new();
            encode(codec::VERSION, &facts, &mut payload);
            (owner, payload)
        })
        .collect();
    let digest = |state: &State| digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>());
    let (mut one, mut all) = (State::new(shards), State::new(shards));
    let mut facts_count = 0;
    for (owner, payload) in &records {
        facts_count += fold(&mut one, *owner, codec::VERSION, payload).expect("just encoded");
    }
    let records: Vec<Record<'_>> =
        records.iter().map(|(owner, payload)| Record { owner: *owner, version: codec::VERSION, payload }).collect();
    assert_eq!(fold_batch(&mut all, &records), Ok(facts_count));
    all.check_all().expect("every invariant is kept");
    assert_eq!(digest(&all), digest(&one));

    // Wherever listing stops and starts again, the lists are the same.
    let mut cases = 0;
    for (from, to) in [(0, 2_000), (0, 700), (700, 1_400), (1_999, 2_000), (2_000, 2_000)] {
        let mut state = State::new(shards);
        fold_batch(&mut state, &records[..from]).expect("just encoded");
        state.unlist();
        fold_batch(&mut state, &records[from..to]).expect("just encoded");
        state.check_all().expect("every invariant but that of the lists");
        state.list_again();
        state.check_all().expect("every invariant is kept");
        fold_batch(&mut state, &records[to..]).expect("just encoded");
        state.list_again();
        state.check_all().expect("every invariant is kept");
        assert_eq!(digest(&state), digest(&one), "unlisted from {from} to {to}");
        for (users, expected) in state.users.iter().zip(&one.users) {
            let (lists, expected) = (users.resting(), expected.resting());
            assert!(lists.instruments().eq(expected.instruments()), "unlisted from {from} to {to}");
            assert!(lists.awaiting().eq(expected.awaiting()) && lists.len() == expected.len());
            let dead = |resting: &Resting| resting.expired(Timestamp(u64::MAX)).collect::<Vec<_>>();
            assert_eq!(dead(lists), dead(expected), "unlisted from {from} to {to}");
        }
        cases += 1;
    }
    println!("unlisted, {shards} shards: {cases} cases");
}

#[test]
fn a_record_that_cannot_be_read_is_an_error() {
    let mut state = State::new(1);
    assert_eq!(fold(&mut state, UserId(1), 9, &[]), Err(CodecError::Version { found: 9, newest: codec::VERSION }));
    assert_eq!(fold(&mut state, UserId(1), codec::VERSION, &[0, 0]), Err(CodecError::Length));
    assert_eq!(fold(&mut state, MARKETS, codec::VERSION, &[99, 0, 0, 0]), Err(CodecError::Variant));
}

/// Records of many users as bytes.
struct Tape {
    bytes: Vec<u8>,
    records: Vec<(UserId, usize)>,
    facts_count: usize,
}

impl Tape {
    fn new() -> Tape {
        Tape { bytes: Vec::new(), records: Vec::new(), facts_count: 0 }
    }

    fn push(&mut self, owner: UserId, facts: &[Mutation]) {
        encode(codec::VERSION, facts, &mut self.bytes);
        self.records.push((owner, self.bytes.len()));
        self.facts_count += facts.len();
    }

    /// Nanoseconds per fact, in batches of a segment.
    fn fold_batches_onto(&self, state: &mut State) -> f64 {
        let started = ran();
        let (mut start, mut at) = (0, 0);
        while at < self.records.len() {
            let (mut records, segment) = (Vec::new(), start);
            while at < self.records.len() && start - segment < 8 << 20 {
                let (owner, end) = self.records[at];
                records.push(Record { owner, version: codec::VERSION, payload: &self.bytes[start..end] });
                (start, at) = (end, at + 1);
            }
            fold_batch(state, &records).expect("just encoded");
        }
        (ran() - started).as_nanos() as f64 / self.facts_count as f64
    }

    /// Nanoseconds per fact.
    fn fold_onto(&self, state: &mut State) -> f64 {
        let started = ran();
        let mut start = 0;
        for (owner, end) in &self.records {
            fold(state, *owner, codec::VERSION, &self.bytes[start..*end]).expect("just encoded");
            start = *end;
        }
        (ran() - started).as_nanos() as f64 / self.facts_count as f64
    }
}

/// A user of the measurements.
struct Trader {
    id: UserId,
    next: u32,
    position: Option<PositionId>,
    open: Vec<(OrderId, Price)>,
}

const SHARES: Qty = Qty::from_shares(1);

impl Trader {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.id.object(self.next)
    }

    fn create(id: UserId) -> (Trader, Vec<Mutation>) {
        let mut trader = Trader { id, next: 0, position: None, open: Vec::new() };
        let at = Timestamp(1);
        let mut facts = vec![Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at })];
        for kind in [WalletKind::Main, WalletKind::Api] {
            facts.push(Mutation::WalletOpened(fact::WalletOpened {
                wallet: WalletId(trader.number()),
                kind,
                label: None,
                baseline: Cash::from_dollars(1_000_000),
                generation: 1,
                parent: None,
                at,
            }));
        }
        facts.push(Mutation::KeyIssued(fact::KeyIssued {
            key: KeyId(trader.number()),
            hash: [1; 32],
            alias_hash: [2; 32],
            prefix: "svc_live_4f0c9d2".to_owned(),
            name: None,
            tier: Tier::Free,
            permissions: Permissions::ReadTrade,
            beta_until: None,
            at,
        }));
        (trader, facts)
    }

    fn place(&mut self, limit: Price) -> (OrderId, Mutation) {
        let order = OrderId(self.number());
        let (wallet, key) = (WalletId(self.id.object(2)), KeyId(self.id.object(3)));
        let quality = Quality { displayed: Some(Cash(420_000)), quote_age_ms: Some(12), ..Quality::default() };
        let limit = OrderTerms::limit(wallet, key, InstrumentId(0), Side::Buy, limit, SHARES);
        let terms = OrderTerms { marketable: true, quality, ..limit };
        (order, Mutation::OrderPlaced(fact::OrderPlaced { order, terms, counted: true, at: Timestamp(9) }))
    }

    fn rest(&mut self, limit: Price) -> Vec<Mutation> {
        let (order, placed) = self.place(limit);
        self.open.push((order, limit));
        let reserved_cash = reservation_rounded_up(limit, SHARES);
        let rested = Mutation::OrderRested(fact::OrderRested {
            order,
            reserved_cash,
            reserved_qty: Qty::ZERO,
            awaiting_book: false,
            held: false,
            at: Timestamp(9),
        });
        vec![placed, rested]
    }

    fn filled(&mut self, order: OrderId, limit: Price, liquidity: Liquidity) -> Mutation {
        let trade = TradeId(self.number());
        let position = match self.position {
            Some(position) => position,
            None => *self.position.insert(PositionId(self.id.object(self.next + 1))),
        };
        if position.0 == self.id.object(self.next + 1) {
            self.next += 1;
        }
        Mutation::OrderFilled(fact::OrderFilled {
            order,
            trade,
            position,
            qty: SHARES,
            notional: notional_half_up(exact_notional(limit, SHARES)),
            fee: Cash::ZERO,
            fee_rate: Bps(0),
            liquidity,
            source: PriceSource::BookWalk,
            quote_age_ms: Some(12),
            cost_out: Cash::ZERO,
            reserved_cash: Cash::ZERO,
            reserved_qty: Qty::ZERO,
            levels: Vec::new(),
            at: Timestamp(9),
            venue_at: None,
        })
    }

    fn take(&mut self, limit: Price) -> Vec<Mutation> {
        let (order, placed) = self.place(limit);
        vec![placed, self.filled(order, limit, Liquidity::Taker)]
    }

    fn close_one(&mut self, which: u64) -> Option<Vec<Mutation>> {
        let at = (which % self.open.len().max(1) as u64) as usize;
        let (order, _) = (at < self.open.len()).then(|| self.open.swap_remove(at))?;
        Some(vec![Mutation::OrderClosed(fact::OrderClosed {
            order,
            reason: CloseReason::UserCancelled,
            at: Timestamp(9),
        })])
    }

    fn fill_one(&mut self, which: u64) -> Option<Vec<Mutation>> {
        let at = (which % self.open.len().max(1) as u64) as usize;
        let (order, limit) = (at < self.open.len()).then(|| self.open.swap_remove(at))?;
        Some(vec![self.filled(order, limit, Liquidity::Maker)])
    }
}

/// CPU time of this thread, so that other load counts less.
fn ran() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Resident bytes of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Makes the allocator keep memory that was touched before, so that the first touch of pages is not measured.
fn warmed(bytes: usize) -> Box<u8> {
    let blocks: Vec<Box<[u8; 4096]>> = (0..bytes / 4096).map(|_| Box::new([1; 4096])).collect();
    // Above the rest: while it is allocated, the allocator returns nothing below it.
    let pin = Box::new(blocks[0][0]);
    drop(blocks);
    pin
}

/// Memory of a user and an order, and the time to fold.
/// `cargo test --release -p engine --lib measure_folding_and_memory -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn measure_folding_and_memory() {
    use crate::user::sample::Dice;
    let users_count = 10_000;
    println!("size of a mutation: {} B", size_of::<Mutation>());

    let mut state = State::new(1);
    let mut traders: Vec<Trader> = Vec::new();
    let mut tape = Tape::new();
    for id in 1..=users_count {
        let (trader, facts) = Trader::create(UserId(id));
        traders.push(trader);
        tape.push(UserId(id), &facts);
    }
    let before = resident();
    let ns = tape.fold_onto(&mut state);
    println!("{users_count} idle users: {} B each, {ns:.0} ns a fact", (resident() - before) / users_count as usize);

    let mut dice = Dice(5);
    let mut tape = Tape::new();
    for _ in 0..100 {
        for trader in &mut traders {
            let facts = trader.take(Price(1 + dice.below(99) as u16));
            tape.push(trader.id, &facts);
        }
    }
    let before = resident();
    let ns = tape.fold_onto(&mut state);
    let bytes = (resident() - before) / 1_000_000;
    println!(
        "1 M orders placed and filled: {bytes} B each with its fill, {ns:.0} ns a fact, {:.1} M facts/s",
        1e3 / ns
    );

    let mut out = Vec::with_capacity(400 << 20);
    let started = ran();
    snapshot::write(Formats::Newest, &state.markets, &state.users.iter().collect::<Vec<_>>(), &mut out)
        .expect("memory");
    println!("snapshot of that: {} MB in {:?}", out.len() >> 20, (ran() - started));
    let started = ran();
    let digest = digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>());
    println!("digest: {:?}", (ran() - started));
    let started = ran();
    let restored = snapshot::read(&mut &out[..], 1).expect("just written");
    println!("restored in {:?}", (ran() - started));
    assert_eq!(digest::digest(&restored.markets, &restored.users.iter().collect::<Vec<_>>()), digest);
    drop((restored, out, state));
    let pin = warmed(2 << 30);

    for (users_count, name) in [(10, "10 users"), (1_000, "1 000 users"), (10_000, "10 000 users")] {
        let mut state = State::new(1);
        let mut traders: Vec<Trader> = Vec::new();
        let mut tape = Tape::new();
        for id in 1..=users_count {
            let (trader, facts) = Trader::create(UserId(id));
            traders.push(trader);
            tape.push(UserId(id), &facts);
        }
        tape.fold_onto(&mut state);
        let created = std::mem::replace(&mut tape, Tape::new());
        for _ in 0..1_000_000 {
            let trader = &mut traders[dice.below(users_count) as usize];
            let facts = match dice.below(100) {
                0..50 => Some(trader.rest(Price(10 * (1 + dice.below(96)) as u16))),
                50..90 => trader.close_one(dice.next()),
                _ => trader.fill_one(dice.next()),
            };
            if let Some(facts) = facts {
                tape.push(trader.id, &facts);
            }
        }
        let started = ran();
        let mut start = 0;
        for (_, end) in &tape.records {
            let payload = &tape.bytes[start..*end];
            codec::each(codec::VERSION, payload, |fact: &Mutation| _ = std::hint::black_box(fact)).expect("encoded");
            start = *end;
        }
        println!("decoding alone: {:.1} ns a fact", (ran() - started).as_nanos() as f64 / tape.facts_count as f64);
        let ns = tape.fold_onto(&mut state);
        println!(
            "mix of 1 M operations, {name}: {} facts of {} B, {ns:.0} ns a fact, {:.1} M facts/s, {:.0} ns an operation",
            tape.facts_count,
            tape.bytes.len() / tape.facts_count,
            1e3 / ns,
            ns * tape.facts_count as f64 / tape.records.len() as f64
        );
        state.check_all().expect("every invariant is kept");
        let mut batched = State::new(1);
        created.fold_onto(&mut batched);
        let ns = tape.fold_batches_onto(&mut batched);
        println!("  in batches: {ns:.0} ns a fact, {:.1} M facts/s", 1e3 / ns);
        let digest = |state: &State| digest::digest(&state.markets, &state.users.iter().collect::<Vec<_>>());
        assert_eq!(digest(&batched), digest(&state));
    }
    drop(pin);
}
