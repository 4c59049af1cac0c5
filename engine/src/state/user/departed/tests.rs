use super::*;
use crate::amount::Cash;
use crate::fact;
use crate::format::Formats;
use crate::id::MARKETS;
use crate::market::mutation::MarketMutation;
use crate::mutation::Mutation;
use crate::mutation::codec;
use crate::shard::digest::digest;
use crate::shard::replay::{self, State, fold};
use crate::shard::snapshot::{read_checked, write};
use crate::user::sample::{Dice, Sample};

fn digest_of(state: &State) -> [u8; 32] {
    digest(&state.markets, &state.users.iter().collect::<Vec<_>>())
}

fn written(state: &State) -> (Vec<u8>, [u8; 32]) {
    let (mut bytes, shards) = (Vec::new(), state.users.iter().collect::<Vec<_>>());
    let digest = write(Formats::Newest, &state.markets, &shards, &mut bytes).expect("memory takes every byte");
    (bytes, digest)
}

fn restored(state: &State, shards_count: usize) -> State {
    let (bytes, digest) = written(state);
    read_checked(&mut &bytes[..], shards_count, digest).expect("just written")
}

fn apply(state: &mut State, owner: UserId, facts: &[Mutation]) {
    let mut payload = Vec::new();
    codec::encode(codec::VERSION, facts, &mut payload);
    fold(state, owner, codec::VERSION, &payload).expect("just encoded");
}

/// Some of the ended rows of each user.
fn some_rows(users: &Users, dice: &mut Dice) -> Vec<Leaving> {
    let percent = [5, 50, 100][dice.below(3) as usize];
    let mut leaving = Vec::new();
    for user in users.iter() {
        let ended = user.orders().iter().filter(|order| !order.is_open());
        let orders: Vec<OrderId> = ended.filter(|_| dice.chance(percent)).map(|order| order.id).collect();
        let closed = user.positions().iter().filter(|position| !position.is_open());
        let positions: Vec<PositionId> = closed.filter(|_| dice.chance(percent)).map(|position| position.id).collect();
        leaving.push(Leaving { user: user.id, orders, positions });
    }
    leaving
}

/// Lets rows leave `hot` and `keeper`, half of the time with the sums that the keeper returns. Returns how many are named.
fn leave(hot: &mut State, keeper: &mut State, leaving: &[Leaving], dice: &mut Dice) -> usize {
    let shards_count = hot.users.len();
    for rows in leaving {
        let users = &mut hot.users[crate::shard::shard_of(rows.user, shards_count)];
        let sum = keeper.users[0].depart(rows);
        match dice.chance(50) {
            true => users.depart_known(rows, &sum),
            false => assert_eq!(users.depart(rows), sum, "of the same rows"),
        }
    }
    leaving.iter().map(|rows| rows.orders.len() + rows.positions.len()).sum()
}

/// What a twin of which all rows are in memory has, too.
fn compare(hot: &State, whole: &State) {
    for (user, twin) in hot.users.iter().flat_map(Users::iter).map(|user| (user, whole.user(user.id).expect("twins"))) {
        assert_eq!(
            (&user.wallets, user.order_facts, user.next_object),
            (&twin.wallets, twin.order_facts, twin.next_object)
        );
        for wallet in &user.wallets {
            assert_eq!(user.trading().tally(wallet.id), twin.trading().tally(wallet.id));
            let left = twin.positions().iter().filter(|held| user.position(held.id).is_none());
            let opened = left.filter(|held| held.wallet == wallet.id).map(|held| held.opened_at).max();
            let known = user.departed().map(|departed| departed.tally(wallet.id).opened_at);
            assert_eq!(known.unwrap_or_default(), opened.unwrap_or_default());
            let opened = twin.positions().iter().filter(|held| held.wallet == wallet.id).map(|held| held.opened_at);
            assert_eq!(user.trading().tally(wallet.id).opened_at, opened.max().unwrap_or_default());
        }
        let departed = user.departed();
        let count = |count: fn(&DepartedRows) -> u32| departed.map_or(0, count) as usize;
        assert_eq!(user.orders().len() + count(|departed| departed.orders), twin.orders().len());
        assert_eq!(user.fills().len() + count(|departed| departed.fills), twin.fills().len());
        assert_eq!(user.positions().len() + count(|departed| departed.positions), twin.positions().len());
        for (number, order) in user.orders().range(0..user.orders().end()) {
            assert_eq!(twin.orders().get(number), Some(order), "with its number");
            assert_eq!(user.fills_of(order).iter().as_slice(), twin.fills_of(order).iter().as_slice());
            let hash = order.terms.order_hash();
            assert!(hash.is_none_or(|hash| user.signed_order(hash).is_some_and(|found| found.id == order.id)));
        }
        for order in twin.orders() {
            let is_there = user.order(order.id).is_some();
            assert!(is_there || !order.is_open());
            if let Some(request) = user.request_of(order.id) {
                assert!(is_there && twin.request_of(order.id) == Some(request));
                let id = request.id(order).expect("a request has an id");
                assert!(user.remembered(id, Timestamp(0)).is_some_and(|found| found.order >= order.id));
            }
            let hash = order.terms.order_hash().filter(|_| !is_there);
            assert!(hash.is_none_or(|hash| user.signed_order(hash).is_none()), "it has left");
        }
        let newest = |moment: Timestamp| [Timestamp(moment.0 - 1), moment, moment.plus(1)];
        for at in
            twin.fills().iter().map(|fill| fill.at).chain(twin.positions().iter().filter_map(|held| held.closed_at))
        {
            assert!(newest(at).iter().all(|at| user.moved_since(*at) == twin.moved_since(*at)));
        }
    }
}

/// One state keeps all rows, its twins let some leave at random turns: they stay equal in everything that is not where a
/// row is. The keeper forgets no request before its order leaves, so the two hash other requests.
#[test]
fn a_state_is_the_same_wherever_its_rows_are() {
    let (mut left, mut cases, mut forgotten, mut prefixes) = (0, 0, 0, 0);
    for seed in 0..12 {
        println!("seed {seed}");
        let mut dice = Dice(seed + 100);
        let shards_count = 1 + (seed % 3) as usize;
        let mut sample = Sample::new(seed, 8, 6).extending(seed % 2 == 1);
        let (mut whole, mut hot, mut keeper) = (State::new(1), State::new(shards_count), State::new(1));
        for turn in 0..1_500 {
            let (owner, facts) = sample.record();
            for state in [&mut whole, &mut hot, &mut keeper] {
                apply(state, owner, &facts);
            }
            if !dice.chance(3) {
                continue;
            }
            let leaving: Vec<Leaving> = match dice.below(3) {
                0 => hot.users.iter().flat_map(|users| some_rows(users, &mut dice)).collect(),
                1 => {
                    let (ended_before, rows_max) =
                        (Timestamp(sample.now.0 - dice.below(1 << 37)), dice.below(60) as usize);
                    hot.users.iter().flat_map(|users| users.leaving(ended_before, rows_max)).collect()
                }
                _ => {
                    let since = Timestamp(sample.now.0 - dice.below(1 << 38));
                    let before: usize = requests(&hot);
                    hot.users.iter_mut().for_each(|users| _ = users.forget_requests(since, 20));
                    forgotten += before - requests(&hot);
                    Vec::new()
                }
            };
            left += leave(&mut hot, &mut keeper, &leaving, &mut dice);
            keeper.check_all().expect("every invariant is kept");
            assert_eq!(digest_of(&keeper), digest_of(&whole), "seed {seed}, turn {turn}");
            hot.check_all().unwrap_or_else(|broken| panic!("seed {seed}, turn {turn}: {broken}"));
            assert_eq!(digest_of(&hot), digest_of(&whole), "seed {seed}, turn {turn}");
            compare(&hot, &whole);
            // A repeat changes nothing.
            let before = written(&hot);
            leave(&mut hot, &mut keeper, &leaving, &mut dice);
            assert!(written(&hot) == before);
            let again = restored(&hot, shards_count);
            again.check_all().expect("every invariant is kept");
            assert_eq!(digest_of(&again), digest_of(&whole));
            assert!(written(&again) == before);
            compare(&again, &whole);
            if dice.chance(50) {
                hot = again.repartition(shards_count);
            }
            cases += 1;
        }
        prefixes += whole.users[0].iter().map(|user| user.granted_prefixes().len()).sum::<usize>();
    }
    println!(
        "rows that left: {cases} cases, {left} rows, {forgotten} requests before their orders, {prefixes} prefixes"
    );
    assert!(left > 5_000 && forgotten > 100 && prefixes > 50);
}

fn requests(state: &State) -> usize {
    let users = state.users.iter().flat_map(Users::iter);
    users.map(|user| user.trading().requests.as_ref().map_or(0, |requests| requests.rows.len())).sum()
}

/// A state of one shard in which rows of several users have ended.
fn sampled(seed: u64, records: usize) -> (State, Sample) {
    let (mut state, mut sample) = (State::new(1), Sample::new(seed, 6, 6));
    for _ in 0..records {
        let (owner, facts) = sample.record();
        apply(&mut state, owner, &facts);
    }
    (state, sample)
}

/// The rule of `leaving`, row by row.
#[test]
fn rows_leave_by_time_and_by_count() {
    let (mut cases, mut stayed) = (0, 0);
    for seed in 0..6 {
        let (state, sample) = sampled(seed, 1_500);
        let users = &state.users[0];
        let mut dice = Dice(seed);
        for _ in 0..40 {
            let ended_before = Timestamp(sample.now.0 - dice.below(1 << 38));
            let rows_max = [0, 1, 5, 40, usize::MAX][dice.below(5) as usize];
            let leaving = users.leaving(ended_before, rows_max);
            assert!(leaving.is_sorted_by(|rows, next| rows.user < next.user));
            assert!(leaving.iter().all(|rows| !rows.orders.is_empty() || !rows.positions.is_empty()));
            for user in users.iter() {
                let of_user = leaving.iter().find(|rows| rows.user == user.id);
                let nothing = Leaving { user: user.id, orders: Vec::new(), positions: Vec::new() };
                let rows = of_user.unwrap_or(&nothing);
                assert!(rows.orders.is_sorted() && rows.positions.is_sorted());
                let mut ended: Vec<_> =
                    user.orders().iter().filter_map(|order| Some((order.ended_at()?, order.id))).collect();
                ended.sort_unstable();
                let kept = ended.len().saturating_sub(rows_max);
                let expected = ended.iter().enumerate().filter(|(nth, (at, _))| *nth < kept || *at < ended_before);
                let mut expected: Vec<OrderId> = expected.map(|(_, (_, id))| *id).collect();
                expected.sort_unstable();
                assert_eq!(rows.orders, expected);
                let mut closed: Vec<_> =
                    user.positions().iter().filter_map(|held| Some((held.closed_at?, held.id))).collect();
                closed.sort_unstable();
                let kept = closed.len().saturating_sub(rows_max);
                for (nth, (at, id)) in closed.iter().enumerate() {
                    let position = user.position(*id).expect("it is there");
                    // Shown by the first answer of an order that stays.
                    let is_shown = user.orders().iter().filter(|order| !rows.orders.contains(&order.id)).any(|order| {
                        let request = user.request_of(order.id).filter(|request| request.first.position.is_some());
                        let terms = &order.terms;
                        let mut same = user.positions().iter().rev().filter(|held| {
                            (held.wallet, held.instrument) == (terms.wallet, terms.instrument)
                                && held.opened_at <= order.created_at
                        });
                        request.is_some() && same.next().map(|held| held.id) == Some(position.id)
                    });
                    let leaves = (nth < kept || *at < ended_before) && !is_shown;
                    assert_eq!(rows.positions.contains(id), leaves, "position {id}");
                    stayed += usize::from(is_shown && (nth < kept || *at < ended_before));
                }
                cases += 1;
            }
        }
    }
    println!("rows that may leave: {cases} cases, {stayed} positions stayed for a first answer");
}

/// The episode that a first answer shows stays with its request, and no other one does.
#[test]
fn a_shown_position_stays_as_long_as_its_request() {
    let mut crowd = Crowd::new();
    let (mut shown, mut cases) = (Vec::new(), 0);
    for round in 0..6 {
        // An earlier episode, which nothing shows; then one that is held while an order is placed that rests.
        let earlier = crowd.trade();
        let held = PositionId(crowd.owner.object(crowd.next + 2));
        crowd.place(false, false, held);
        crowd.next += 1;
        let resting = crowd.place(false, true, held);
        crowd.place(true, false, held);
        shown.push((resting, held));
        let leaving = crowd.users.leaving(Timestamp(u64::MAX), usize::MAX);
        let rows = &leaving[0];
        assert!(rows.positions.contains(&earlier) && !rows.positions.contains(&held), "round {round}");
        assert!(!rows.orders.contains(&resting), "it rests");
        crowd.depart(0);
        let user = crowd.users.get(crowd.owner).expect("it is there");
        assert!(user.positions().iter().map(|held| held.id).eq(shown.iter().map(|(_, held)| *held)));
        for (order, held) in &shown {
            let id = format!("order-{}", order.0);
            let past = crate::look_up::Past { user, found: None };
            let answer = crate::shard::repeats::first_answer(past, &id, Timestamp(0));
            let crate::command::BatchEntry::Placed(view) = answer else { panic!("it rests: {answer:?}") };
            assert_eq!(view.position.map(|position| position.id), Some(*held));
            cases += 1;
        }
    }
    // The requests end with their orders, and the episodes with them.
    let at = crowd.at.plus(9);
    for (order, _) in &shown {
        let closed = fact::OrderClosed { order: *order, reason: crate::order::CloseReason::UserCancelled, at };
        crowd.users.apply(crowd.owner, &closed.into());
    }
    crowd.depart(0);
    crowd.users.check_all().expect("every invariant is kept");
    let user = crowd.users.get(crowd.owner).expect("it is there");
    assert_eq!((user.orders().len(), user.positions().len(), user.trading().requests.is_none()), (0, 0, true));
    println!("shown positions: {cases} cases");
}

/// Replays of all remembered requests in memory are the same when everything that may leave has left.
#[test]
fn first_answers_in_memory_are_the_same() {
    use crate::look_up::Past;
    use crate::shard::repeats::first_answer;
    let mut cases = 0;
    for seed in 0..8 {
        let (mut state, sample) = sampled(seed, 1_200);
        let whole = restored(&state, 1);
        for rows in state.users[0].leaving(Timestamp(sample.now.0 - (1 << 35)), 3) {
            state.users[0].depart(&rows);
        }
        for user in state.users[0].iter() {
            let twin = whole.user(user.id).expect("twins");
            for order in user.orders() {
                let Some(id) = user.request_of(order.id).and_then(|request| request.id(order)) else { continue };
                let of = |user| {
                    let mut answer = format!("{:?}", first_answer(Past { user, found: None }, id, Timestamp(0)));
                    // Rows of memory have no numbers in an answer.
                    answer.retain(|letter| letter != ' ');
                    answer
                };
                assert_eq!(of(user), of(twin), "{id}");
                cases += 1;
            }
        }
    }
    println!("first answers: {cases} cases");
    assert!(cases > 40);
}

#[test]
fn rows_that_an_owed_alert_names_stay() {
    use crate::user::alerts::{About, AlertKinds, Channel, HiddenText};
    let (mut state, mut sample) = sampled(3, 300);
    let owners: Vec<UserId> = state.users[0].ids();
    for owner in &owners {
        let set = fact::AlertTargetSet {
            target: 1,
            channel: Channel::Webhook,
            url: HiddenText("https://hooks.example.net/0".to_owned()),
            secret: None,
            label: None,
            kinds: AlertKinds::ALL,
            is_enabled: true,
            at: sample.now,
        };
        apply(&mut state, *owner, &[fact::AlertsBegun { at: sample.now }.into(), set.into()]);
    }
    for _ in 0..600 {
        let (owner, facts) = sample.record();
        apply(&mut state, owner, &facts);
    }
    let mut cases = 0;
    let leaving = state.users[0].leaving(Timestamp(u64::MAX), 0);
    for owner in owners {
        let user = state.user(owner).expect("it is there");
        let rows = leaving.iter().find(|rows| rows.user == owner);
        for alert in user.alerts().expect("it wants alerts").owed() {
            match alert.about {
                About::Order(order) | About::Fill { order, .. } => {
                    assert!(rows.is_none_or(|rows| !rows.orders.contains(&order)));
                    cases += 1;
                }
                About::Position(position) => {
                    assert!(rows.is_none_or(|rows| !rows.positions.contains(&position)));
                    cases += 1;
                }
                _ => {}
            }
        }
    }
    println!("rows of owed alerts: {cases} cases");
    assert!(cases > 50);
}

/// What must not leave, and what left before.
#[test]
fn a_row_leaves_once_and_not_before_its_end() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let (state, _) = sampled(5, 1_500);
    let users = || restored(&state, 1).users.remove(0);
    let user = state.users[0].iter().max_by_key(|user| user.orders().len().min(user.positions().len())).expect("users");
    let ended: Vec<OrderId> = user.orders().iter().filter(|order| !order.is_open()).map(|order| order.id).collect();
    let closed: Vec<PositionId> = user.positions().iter().filter(|held| !held.is_open()).map(|held| held.id).collect();
    let open = user.open_orders().next().expect("some rest").id;
    let held = user.open_positions().next().expect("some are held").id;
    assert!(ended.len() > 20 && closed.len() > 5);
    let rows = |orders: &[OrderId], positions: &[PositionId]| Leaving {
        user: user.id,
        orders: orders.to_vec(),
        positions: positions.to_vec(),
    };
    let unknown = UserId(99);
    let next = user.id.object(user.next_object);
    // (what left before, what leaves, whether its sum is known, the broken invariant)
    let table: Vec<(Leaving, Leaving, bool, Option<&str>)> = vec![
        (rows(&[], &[]), rows(&ended, &closed), false, None),
        (rows(&[], &[]), rows(&ended, &closed), true, None),
        (rows(&[], &[]), rows(&[], &[]), true, None),
        (rows(&ended, &closed), rows(&ended, &closed), false, None),
        (rows(&ended, &closed), rows(&ended, &closed), true, None),
        (rows(&ended[3..], &closed[..2]), rows(&ended, &closed[..2]), false, None),
        (rows(&ended[3..], &[]), rows(&ended, &[]), true, Some("rows with a known sum leave together")),
        (rows(&[], &[]), rows(&[open], &[]), false, Some("an order ends before it leaves memory")),
        (rows(&[], &[]), rows(&[open], &[]), true, Some("an order ends before it leaves memory")),
        (rows(&[], &[]), rows(&[], &[held]), false, Some("a position is closed before it leaves memory")),
        (rows(&[], &[]), rows(&[OrderId(next)], &[]), false, Some("an order that leaves memory is there")),
        (rows(&ended, &[]), rows(&[OrderId(next)], &[]), true, Some("an order that leaves memory is there")),
        (rows(&ended, &closed), rows(&[], &[PositionId(next)]), false, Some("a position that leaves memory is there")),
        (rows(&[], &[]), Leaving { user: unknown, ..rows(&[], &[]) }, false, Some("rows that leave are of a user")),
        (rows(&[], &[]), rows(&[ended[0], ended[0]], &[]), false, Some("rows that leave are named once, ascending")),
    ];
    let count = table.len();
    for (nth, (before, leaving, is_known, broken)) in table.into_iter().enumerate() {
        let mut users = users();
        let sum = {
            let mut mover = restored(&state, 1).users.remove(0);
            if broken.is_none() { mover.depart(&leaving) } else { [0; 32] }
        };
        users.depart(&before);
        let run = catch_unwind(AssertUnwindSafe(|| {
            match is_known {
                true => users.depart_known(&leaving, &sum),
                false => _ = users.depart(&leaving),
            }
            users
        }));
        match (run, broken) {
            (Ok(users), None) => {
                users.check_all().expect("every invariant is kept");
                assert_eq!(digest(&state.markets, &[&users]), digest_of(&state), "case {nth}");
            }
            (Err(panic), Some(broken)) => {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                let text = panic.downcast_ref::<&str>().map_or(text, |text| (*text).to_owned());
                assert!(text.starts_with(broken), "case {nth}: {text}");
            }
            (run, _) => panic!("case {nth}: {}, not {broken:?}", run.is_ok()),
        }
    }
    println!("rows that leave once: {count} cases");
}

/// A correction of the clock before rows that have left is refused; a later one gives the state that it gives with all
/// rows.
#[test]
fn the_clock_is_not_set_back_before_rows_that_left() {
    let mut cases = 0;
    for seed in 0..4 {
        let (state, sample) = sampled(seed, 900);
        let mut whole = restored(&state, 1);
        let mut hot = restored(&state, 2);
        let middle = Timestamp(sample.now.0 - (1 << 37));
        for users in &mut hot.users {
            let leaving = users.leaving(middle, usize::MAX);
            leaving.iter().for_each(|rows| _ = users.depart(rows));
        }
        let (user, newest) =
            hot.users.iter().filter_map(Users::newest_departed).max_by_key(|(_, at)| *at).expect("some left");
        for at in [Timestamp(newest.0 - 1), Timestamp(1), newest, sample.now.plus(5)] {
            let mut payload = Vec::new();
            let set_back = MarketMutation::ClockSetBack(fact::ClockSetBack { from: sample.now.plus(9), at });
            codec::encode(codec::VERSION_SET_BACK, &[set_back], &mut payload);
            let record = replay::Record { owner: MARKETS, version: codec::VERSION_SET_BACK, payload: &payload };
            assert!(replay::is_set_back(&record) && replay::is_readable(&record));
            let mut hot = restored(&hot, 2);
            let found = replay::fold_batch(&mut hot, &[record]);
            if at < newest {
                let refused = CodecError::SetBack { user, newest, at };
                assert_eq!(found, Err(refused));
                assert_eq!(hot.may_set_back(at), Err(refused));
                let text = refused.to_string();
                assert!(text.contains(&format!("user {user}")) && text.contains("restore a backup"), "{text}");
            } else {
                assert_eq!((found, hot.may_set_back(at)), (Ok(1), Ok(())));
                let mut twin = restored(&whole, 1);
                fold(&mut twin, MARKETS, codec::VERSION_SET_BACK, &payload).expect("all rows are there");
                assert_eq!(digest_of(&hot), digest_of(&twin), "seed {seed}, {at:?}");
                hot.check_all().expect("every invariant is kept");
            }
            cases += 1;
        }
        assert_eq!(whole.may_set_back(Timestamp(1)), Ok(()), "all rows are there");
        whole.set_back(Timestamp(1)).expect("all rows are there");
    }
    println!("corrections of the clock: {cases} cases");
}

/// Orders of one user that came and left.
struct Crowd {
    users: Users,
    owner: UserId,
    next: u32,
    at: Timestamp,
}

impl Crowd {
    fn new() -> Crowd {
        let (owner, at) = (UserId(7), Timestamp(1_790_932_500_000_000));
        let mut users = Users::default();
        let (wallet, kind, baseline) =
            (WalletId(owner.object(1)), crate::user::WalletKind::Api, Cash::from_dollars(9_000_000));
        users.apply(owner, &fact::UserCreated { sub: None, email: None, at }.into());
        let opened = fact::WalletOpened { wallet, kind, label: None, baseline, generation: 1, parent: None, at };
        users.apply(owner, &opened.into());
        Crowd { users, owner, next: 2, at }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.owner.object(self.next - 1)
    }

    /// A signed order with a remembered request that is filled, and sold again each second time: so its episode closes.
    fn place(&mut self, is_sale: bool, rests: bool, position: PositionId) -> OrderId {
        use crate::amount::{Bps, Price, Qty};
        use crate::id::{InstrumentId, KeyId};
        use crate::order::{Liquidity, OrderTerms, PriceSource, Side};
        self.at = self.at.plus(1_000);
        let (order, at) = (OrderId(self.number()), self.at);
        let side = if is_sale { Side::Sell } else { Side::Buy };
        let id = format!("order-{}", order.0);
        let terms = OrderTerms {
            client_order_id: Some(id.clone()),
            order_hash: Some(std::array::from_fn(|at| (order.0 >> (at % 8 * 8)) as u8)),
            ..OrderTerms::limit(WalletId(self.owner.object(1)), KeyId(0), InstrumentId(3), side, Price(5_000), Qty(100))
        };
        self.users.apply(self.owner, &Mutation::OrderPlaced(fact::OrderPlaced { order, terms, counted: true, at }));
        if rests {
            let (reserved_cash, reserved_qty) = (Cash(50), Qty::ZERO);
            let rested =
                fact::OrderRested { order, reserved_cash, reserved_qty, awaiting_book: false, held: false, at };
            self.users.apply(self.owner, &rested.into());
        } else {
            let trade = TradeId(self.number());
            let filled = fact::OrderFilled {
                order,
                trade,
                position,
                qty: Qty(100),
                notional: Cash(50),
                fee: Cash::ZERO,
                fee_rate: Bps(0),
                liquidity: Liquidity::Taker,
                source: PriceSource::BookWalk,
                quote_age_ms: None,
                cost_out: if is_sale { Cash(50) } else { Cash::ZERO },
                reserved_cash: Cash::ZERO,
                reserved_qty: Qty::ZERO,
                levels: Vec::new(),
                at,
                venue_at: None,
            };
            self.users.apply(self.owner, &Mutation::OrderFilled(filled));
        }
        let remembered = fact::RequestRemembered { order, client_order_id: id, digest: [7; 32] };
        self.users.apply(self.owner, &remembered.into());
        order
    }

    /// A buy and a sale of one episode.
    fn trade(&mut self) -> PositionId {
        let position = PositionId(self.owner.object(self.next + 2));
        self.place(false, false, position);
        self.next += 1;
        self.place(true, false, position);
        position
    }

    fn depart(&mut self, rows_max: usize) {
        for leaving in self.users.leaving(Timestamp(0), rows_max) {
            self.users.depart(&leaving);
        }
    }
}

/// After many orders came and left, a user takes what a new one takes, and at most two bytes for each.
#[test]
fn orders_that_left_take_no_memory() {
    let mut taken = Vec::new();
    // (orders, how many stay in the window, how often one rests from then on)
    for (count, window, rests_each) in [(2, 0, 0), (1_000_000, 0, 0), (100_000, 64, 0), (100_000, 64, 10_000)] {
        let mut crowd = None;
        let info = allocation_counter::measure(|| {
            let mut made = Crowd::new();
            let (mut orders, mut since) = (0, 0);
            while orders < count {
                made.trade();
                (orders, since) = (orders + 2, since + 2);
                if rests_each > 0 && orders % rests_each == 0 {
                    made.place(false, true, PositionId(0));
                }
                if since >= 1_000 {
                    made.depart(window);
                    since = 0;
                }
            }
            made.depart(window);
            crowd = Some(made);
        });
        let crowd = crowd.expect("just made");
        crowd.users.check_all().expect("every invariant is kept");
        let user = crowd.users.get(crowd.owner).expect("it is there");
        let departed = user.departed().expect("some left");
        let resting = user.open_orders_count();
        assert_eq!(departed.orders as usize + user.orders().len(), count + resting);
        assert_eq!(user.orders().len(), resting + window);
        println!("{count} orders, {window} in the window, {resting} rest: {} bytes", info.bytes_current);
        taken.push((departed.orders as i64, info.bytes_current, resting as i64));
    }
    let facts = 4 * crate::user::facts::FACTS_KEPT as i64 * 2;
    let left = taken[1].1 - taken[0].1;
    assert!(left <= facts + 2_000, "{left} bytes, {facts} of them order facts, which have a bound");
    // The window's rows, with the space of blocks that are not full.
    assert!(taken[2].1 - taken[1].1 < 64 * 1_000, "{taken:?}");
    // An order that rests keeps a block of orders, of requests and of the index.
    assert!(taken[3].1 - taken[2].1 < taken[3].2 * 10_000, "{taken:?}");
}
