//! The hint of a list of orders: how many there are, wherever they are.

use super::*;

/// The hint of a list without a filter, which is not counted row by row, is the count of its rows.
#[test]
fn a_hint_without_a_filter_is_the_count() {
    let (mut cases, mut left, mut some, nothing) = (0, 0, 0, Store::default());
    with_queries(23..27, |twins, owner, kind, _| {
        // Once at each moment.
        if kind > 0 {
            return;
        }
        let (whole, split) = (twins.whole.get(owner).expect("created"), twins.split.get(owner).expect("created"));
        let store = twins.stores.get(&owner).unwrap_or(&nothing);
        // Nothing is cut, or everything that has left.
        let (kept, cut) = (UtcDay(0), UtcDay(twins.sample.now.day().0 + 1));
        let each = whole.wallets.iter().map(|wallet| Wallets::One(wallet.id));
        for wallets in [Wallets::Api, Wallets::All, Wallets::Any].into_iter().chain(each) {
            let chosen: Vec<WalletId> = whole.wallets_in(wallets).map(|wallet| wallet.id).collect();
            let counted = |user: &User| {
                let rows = user.orders().iter().filter(|order| chosen.contains(&order.terms.wallet));
                Some(rows.count())
            };
            let hint = |user: &User, kept_from: UtcDay| {
                let (market, side, status, after) = (None, None, None, None);
                let filter = OrderFilter { wallets, status, market, side, after, offset: 0, limit: 1 };
                let asked = lists::orders(user, filter, kept_from);
                let Ok(answer) = asked.or_else(|rest| Elsewhere::new(owner, 0, rest).complete(store));
                let Answer::Orders(page) = answer else { panic!("a list") };
                page.total_hint
            };
            assert_eq!(hint(whole, kept), counted(whole), "{wallets:?}");
            assert_eq!(hint(split, kept), counted(whole), "{wallets:?}");
            assert_eq!(hint(split, cut), counted(split), "{wallets:?}");
            cases += 3;
            left += usize::from(counted(split) < counted(whole));
            some += usize::from(counted(split) > Some(0) && counted(split) < Some(split.orders().len()));
        }
    });
    println!("hints without a filter: {cases} cases, {left} with orders that left, {some} of some wallets with orders");
    assert!(left > 500 && some > 500, "{left} {some}");
}

/// The hint counts up to a bound, wherever the orders are.
#[test]
fn hints_count_rows_that_left() {
    let owner = UserId(7);
    let (wallet, at) = (WalletId(owner.object(1)), Timestamp(5));
    let baseline = Cash::from_dollars(1_000_000);
    let (kind, generation, parent) = (WalletKind::Api, 1, None);
    let mut users = Users::default();
    users.apply(owner, &Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at }));
    let opened = fact::WalletOpened { wallet, kind, label: None, baseline, generation, parent, at };
    users.apply(owner, &Mutation::WalletOpened(opened));
    let order = |nth: u32| OrderId(owner.object(2 + nth));
    let place = |users: &mut Users, nth: u32| {
        let side = if nth.is_multiple_of(100) { Side::Sell } else { Side::Buy };
        let mut terms = resting_order(1, InstrumentId(3), side, 5_000, None).terms.to_fact();
        (terms.wallet, terms.time_in_force) = (wallet, TimeInForce::Ioc);
        users.apply(owner, &Mutation::OrderPlaced(fact::OrderPlaced { order: order(nth), terms, counted: true, at }));
        let closed = fact::OrderClosed { order: order(nth), reason: CloseReason::FakNoFill, at };
        users.apply(owner, &Mutation::OrderClosed(closed));
    };
    let count = |users: &Users, store: &Store, market: Option<MarketFilter>, side: Option<Side>| {
        let (wallets, limit) = (Wallets::Any, 5);
        let filter = OrderFilter { wallets, status: None, market, side, after: None, offset: 0, limit };
        let asked = lists::orders(users.get(owner).expect("created"), filter, UtcDay(0));
        let Ok(answer) = asked.or_else(|rest| Elsewhere::new(owner, 0, rest).complete(store));
        let Answer::Orders(page) = answer else { panic!("a list") };
        assert_eq!(page.orders.len(), 5);
        page.total_hint
    };
    let (mut store, mut placed, mut left, mut cases) = (Store::default(), 0, 0, 0);
    // Orders placed, and how many of the oldest have left; the hints without a filter and of the few SELL orders.
    for (total, leaving, all, sells) in [
        (9_999, 0, Some(9_999), Some(100)),
        (9_999, 9_000, Some(9_999), Some(100)),
        (10_000, 9_999, Some(10_000), Some(100)),
        (10_001, 9_999, None, Some(101)),
        (10_001, 10_001, None, Some(101)),
        (100_000, 10_001, None, Some(1_000)),
        (100_000, 99_000, None, Some(1_000)),
        (100_001, 99_000, None, None),
        (100_001, 100_001, None, None),
    ] {
        (placed..total).for_each(|nth| place(&mut users, nth));
        let leave = Leaving { user: owner, orders: (left..leaving).map(order).collect(), positions: Vec::new() };
        store.note(users.get(owner).expect("created"), &leave);
        users.depart(&leave);
        (placed, left) = (total, leaving);
        let own = InstrumentId(3).market();
        for market in [None, Some(MarketFilter::Only(own))] {
            store.read.set(0);
            assert_eq!(count(&users, &store, market, None), all, "{left} of {placed}, {market:?}");
            assert_eq!(count(&users, &store, market, Some(Side::Sell)), sells, "{left} of {placed}, {market:?}");
            // A page of each: without a market nothing is read for the hint.
            let read = store.read.get();
            assert!(market.is_some() || read < 1_200, "{read} rows read, {left} of {placed}");
            cases += 2;
        }
    }
    println!("hints: {cases} cases");
}
