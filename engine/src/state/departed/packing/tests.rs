use super::*;
use crate::amount::{Cash, Qty};
use crate::id::{InstrumentId, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::order::row::tests::resting_order;
use crate::order::{CloseReason, Liquidity, Side};
use crate::time::Timestamp;
use crate::user::sample::Sample;
use crate::user::{User, Users};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes a row back from its bytes; every prefix and every flipped bit of them is an error or another row with just
/// those bytes. Returns how many bytes were tried.
fn check<T: PartialEq + std::fmt::Debug>(
    row: &T,
    bytes: &[u8],
    take: &mut dyn FnMut(&[u8]) -> Result<T, CodecError>,
    put: &dyn Fn(&T, &mut Vec<u8>),
) -> usize {
    assert_eq!(take(bytes).as_ref(), Ok(row));
    for end in 0..bytes.len() {
        assert!(take(&bytes[..end]).is_err(), "{row:?} cut at {end}");
    }
    assert_eq!(take(&[bytes, &[0]].concat()), Err(CodecError::Rest));
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(other) = take(&flipped) {
            let mut again = Vec::new();
            put(&other, &mut again);
            assert_eq!(again, flipped, "bit {bit} of {row:?}");
        }
    }
    bytes.len() * 9 + 2
}

fn check_order(order: &EndedOrder) -> usize {
    let put = |row: &EndedOrder, out: &mut Vec<u8>| put_order(&row.order, &row.fills, out);
    let (mut bytes, mut sharing) = (Vec::new(), Sharing::default());
    put(order, &mut bytes);
    check(order, &bytes, &mut |bytes| take_order(bytes, &mut sharing), &put)
}

/// As it is stored: without numbers of rows.
fn ended(user: &User, order: &Order) -> EndedOrder {
    let mut ended = EndedOrder { order: order.clone(), fills: user.fills_of(order).to_vec() };
    ended.order.last_fill = NO_FILL;
    ended.fills.iter_mut().for_each(|fill| fill.before = NO_FILL);
    ended
}

fn filled() -> EndedOrder {
    let mut order = resting_order(UserId(7).object(70), InstrumentId(4), Side::Buy, 4_000, None);
    order.created_at = Timestamp(1_790_000_000_000_000);
    order.fill(Qty::from_shares(10), Cash(4_000_000), Cash(500), 3, order.created_at.plus(9));
    let mut first = Fill::origin(&order);
    (first.id, first.qty, first.at) = (TradeId(order.id.0 + 1), Qty::from_shares(10), order.created_at.plus(9));
    (first.notional, first.fee, first.liquidity, first.before) = (Cash(4_000_000), Cash(500), Liquidity::Maker, 2);
    order.last_fill = NO_FILL;
    EndedOrder { order, fills: vec![first] }
}

#[test]
fn bytes_are_golden() {
    let EndedOrder { order, fills } = filled();
    let mut cancelled = resting_order(70, InstrumentId(4), Side::Sell, 4_000, None);
    cancelled.close(CloseReason::UserCancelled, Timestamp(5));
    let position = Position {
        id: PositionId(71),
        wallet: WalletId(3),
        instrument: InstrumentId(4),
        qty: Qty::ZERO,
        reserved: Qty::ZERO,
        cost: Cash::ZERO,
        last_open: (Qty(100), Cash(40)),
        realized: Cash(-3),
        opened_at: Timestamp(4),
        closed_at: Some(Timestamp(9)),
        settlement: None,
        is_reset: false,
    };
    let bytes = |put: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        put(&mut bytes);
        hex(&bytes)
    };
    let head = "9002008c8180800e8080afa2dbffad0680ade20404f403a01f898180800e878180800e80ade20480a4e803e8071200";
    let cases = [
        // The order as in a snapshot, but without the number of its last fill. Its fills: one, with the next id, nine
        // microseconds later.
        (bytes(&|out| put_order(&order, &fills, out)), format!("{head}0181020180ade20480a4e803e8071200000000")),
        (bytes(&|out| put_order(&cancelled, &[], out)), "a003008c010280ade20404f403a01f89018701050800".to_owned()),
        (bytes(&|out| put_position(&position, out)), "068e010608040564500a".to_owned()),
    ];
    for (bytes, expected) in &cases {
        assert_eq!(bytes, expected);
    }
    println!("bytes of departed rows: {} cases", cases.len());
}

/// Orders with their fills, positions and requests of random histories.
#[test]
fn every_row_is_restored_and_no_other_bytes_are_read() {
    let (mut orders, mut positions, mut requests, mut tried) = (0, 0, 0, 0);
    for seed in 0..3 {
        let (mut sample, mut users) = (Sample::new(seed, 6, 9), Users::default());
        for _ in 0..600 {
            let (owner, facts) = sample.record();
            facts.iter().for_each(|fact| users.apply(owner, fact));
        }
        for user in users.iter() {
            let ids: Vec<OrderId> =
                user.orders().iter().filter(|order| !order.is_open()).map(|order| order.id).collect();
            for id in &ids {
                let order = ended(user, user.order(*id).expect("it is there"));
                tried += check_order(&order);
                orders += 1;
                let Some(request) = user.request_of(*id) else { continue };
                assert_eq!(request.order, *id);
                let (mut bytes, mut sharing) = (Vec::new(), Sharing::default());
                put_request(request, &mut bytes);
                tried += check(request, &bytes, &mut |bytes| take_request(bytes, &mut sharing), &put_request);
                let whole = EndedRequest { request: request.clone(), order };
                let since = Timestamp(0);
                let found = user.remembered(whole.id().expect("it has one"), since).map(|row| row.order);
                assert!(found >= Some(*id), "the newest with that id");
                requests += 1;
            }
            for position in user.positions().iter().filter(|position| !position.is_open()) {
                let mut bytes = Vec::new();
                put_position(position, &mut bytes);
                tried += check(position, &bytes, &mut |bytes| take_position(bytes), &put_position);
                positions += 1;
            }
        }
    }
    println!("departed rows: {orders} orders, {positions} positions, {requests} requests: {tried} cases");
    assert!(orders > 100 && positions > 10 && requests > 50);
}

/// Rows that are whole, and do not belong here.
#[test]
fn open_rows_and_foreign_fills_are_refused() {
    let EndedOrder { order, fills } = filled();
    let open = resting_order(70, InstrumentId(4), Side::Buy, 4_000, None);
    let mut foreign = fills[0].clone();
    foreign.order = OrderId(order.id.0 + 5);
    let twice = [fills[0].clone(), fills[0].clone()];
    let cases: [(&Order, &[Fill]); 3] = [(&open, &[]), (&order, &[foreign]), (&order, &twice)];
    for (order, fills) in cases {
        let mut bytes = Vec::new();
        put_order(order, fills, &mut bytes);
        assert_eq!(take_order(&bytes, &mut Sharing::default()), Err(CodecError::Reference), "{order:?} {fills:?}");
    }
    // More fills than there are bytes.
    let mut bytes = Vec::new();
    put_order(&order, &[], &mut bytes);
    assert_eq!(bytes.pop(), Some(0), "the count of its fills");
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(take_order(&bytes, &mut Sharing::default()), Err(CodecError::Length));
    println!("rows that do not belong here: {} cases", cases.len() + 1);
}
