use super::*;
use crate::order::row::tests::resting_order;

fn ids(orders: impl Iterator<Item = OrderId>) -> Vec<u64> {
    orders.map(|order| order.0).collect()
}

#[test]
fn the_best_price_comes_first_and_then_the_order_id() {
    let mut resting = Resting::default();
    let (yes, no) = (InstrumentId(4), InstrumentId(5));
    let orders = [
        resting_order(7, yes, Side::Buy, 40, None),
        resting_order(3, yes, Side::Buy, 41, None),
        resting_order(2, yes, Side::Buy, 40, None),
        resting_order(1, yes, Side::Buy, 30, None),
        resting_order(9, yes, Side::Sell, 60, None),
        resting_order(8, yes, Side::Sell, 61, Some(50)),
        resting_order(5, no, Side::Sell, 60, Some(40)),
    ];
    for order in &orders {
        resting.put(order, false);
    }
    assert_eq!(resting.len(), 7);
    assert_eq!(ids(resting.crossing(yes, Side::Buy, Price(40))), [3, 2, 7]);
    assert_eq!(ids(resting.crossing(yes, Side::Buy, Price(42))), [0_u64; 0]);
    assert_eq!(ids(resting.crossing(yes, Side::Sell, Price(60))), [9]);
    assert_eq!(ids(resting.orders(yes)), [3, 2, 7, 1, 9, 8]);
    assert_eq!(ids(resting.orders_of_market(MarketId(2))), [3, 2, 7, 1, 9, 8, 5]);
    assert_eq!(ids(resting.expired(Timestamp(40))), [5]);
    assert_eq!(ids(resting.expired(Timestamp(50))), [5, 8]);
    assert_eq!(resting.best(yes, Side::Buy), Some(Price(41)));
    resting.remove(&orders[1]);
    assert_eq!(resting.best(yes, Side::Buy), Some(Price(40)));
    resting.remove(&orders[6]);
    assert_eq!(resting.instruments().collect::<Vec<_>>(), [yes]);
    assert_eq!(resting.next_expiration(), Some(Timestamp(50)));
}

#[test]
fn a_bulk_list_equals_single_inserts() {
    let sides = [Side::Buy, Side::Sell];
    let order = |id: u64| {
        let expiration = id.is_multiple_of(5).then_some(id);
        let instrument = InstrumentId(u32::MAX - id as u32 % 3);
        let price = [40, 41, 9_999][id as usize % 7 % 3];
        let mut order = resting_order(id, instrument, sides[id as usize % 2], price, expiration);
        order.awaiting_book = id.is_multiple_of(11);
        order
    };
    let orders: Vec<Order> = (1..2_000).map(|number| order(number * 77 % 2_003)).collect();
    let (mut at_once, mut one_by_one, mut standing) = (Resting::default(), Resting::default(), Vec::new());
    for order in &orders {
        at_once.put_unlisted(order, &mut standing);
        one_by_one.put(order, false);
    }
    at_once.list(standing.clone());
    for resting in [&at_once, &one_by_one] {
        assert!(resting.lists(standing.clone()) && orders.iter().all(|order| resting.holds(order)));
        assert!(!resting.lists(standing[1..].to_vec()), "one more is listed");
        let mut other = standing.clone();
        other.push(Standing::of(&order(5_000)));
        assert!(!resting.lists(other), "one is missing");
        let mut other = standing.clone();
        other[7].place ^= 1;
        assert!(!resting.lists(other), "one has another price");
    }
    let shown = |resting: &Resting| {
        let all: Vec<u64> = resting.instruments().flat_map(|instrument| ids(resting.orders(instrument))).collect();
        (all, resting.len(), ids(resting.expired(Timestamp(u64::MAX))), resting.awaiting().collect::<Vec<_>>())
    };
    assert_eq!(shown(&at_once), shown(&one_by_one));
    for order in &orders {
        at_once.remove(order);
    }
    assert!(at_once.is_empty() && at_once.instruments().next().is_none());
}

#[test]
fn an_order_waits_for_a_book_until_it_is_put_again() {
    let mut resting = Resting::default();
    let mut order = resting_order(1, InstrumentId(0), Side::Buy, 40, None);
    order.awaiting_book = true;
    resting.put(&order, false);
    assert_eq!(ids(resting.awaiting_in(InstrumentId(0))), [1]);
    order.awaiting_book = false;
    resting.put(&order, true);
    assert_eq!((resting.awaiting().count(), resting.len()), (0, 1));
}

#[test]
fn held_orders_are_counted_per_instrument() {
    let (one, other) = (InstrumentId(0), InstrumentId(1));
    let mut orders =
        [one, one, other].map(|instrument| resting_order(instrument.0.into(), instrument, Side::Buy, 40, None));
    (0..).zip(&mut orders).for_each(|(id, order)| order.id = OrderId(id));
    orders[1].held = true;
    let mut standing = Vec::new();
    let (mut one_by_one, mut at_once) = (Resting::default(), Resting::default());
    for order in &orders {
        one_by_one.put(order, false);
        at_once.put_unlisted(order, &mut standing);
    }
    at_once.list(standing);
    let held = |resting: &Resting| {
        let in_each = [one, other].map(|instrument| [false, true].map(|held| resting.is_held_in(instrument, held)));
        ([false, true].map(|held| resting.is_held(held)), in_each)
    };
    let mut cases = 0;
    // The order that changes its hold, the order that ends; then the result for all, for the first instrument, for the
    // other one.
    let steps: [(Option<usize>, Option<usize>, _); 6] = [
        (None, None, ([false, false], [[false, false], [true, false]])),
        (Some(0), None, ([false, false], [[false, true], [true, false]])),
        (Some(2), None, ([false, true], [[false, true], [false, true]])),
        (Some(1), None, ([false, false], [[false, false], [false, true]])),
        (None, Some(0), ([false, false], [[true, false], [false, true]])),
        (None, Some(2), ([true, false], [[true, false], [true, true]])),
    ];
    for (turns, ends, expected) in steps {
        for resting in [&mut one_by_one, &mut at_once] {
            if let Some(at) = turns {
                let mut turned = orders[at].clone();
                turned.held = !turned.held;
                resting.hold(&turned);
            }
            if let Some(at) = ends {
                resting.remove(&orders[at]);
            }
            assert_eq!(held(resting), expected, "{turns:?} turns, {ends:?} ends");
            cases += 1;
        }
        if let Some(at) = turns {
            orders[at].held = !orders[at].held;
        }
    }
    println!("held orders: {cases} cases");
}

#[test]
fn a_thousand_prices_come_and_go() {
    let mut resting = Resting::default();
    for round in 0..3 {
        for price in 1..1_000 {
            resting.put(&resting_order(round * 1_000 + price, InstrumentId(0), Side::Sell, price as u16, None), false);
        }
        for price in 1..1_000 {
            let order = resting_order(round * 1_000 + price, InstrumentId(0), Side::Sell, price as u16, None);
            assert_eq!(ids(resting.orders(InstrumentId(0))).len() as u64, 1_000 - price);
            resting.remove(&order);
        }
    }
    assert!(resting.is_empty() && resting.instruments().next().is_none());
}
