use super::*;

/// A resting order of 10 shares.
pub(crate) fn resting_order(
    id: u64,
    instrument: InstrumentId,
    side: Side,
    limit: u16,
    expiration: Option<u64>,
) -> Order {
    let terms = OrderTerms {
        wallet: WalletId(1),
        key: KeyId(2),
        instrument,
        side,
        order_type: OrderType::Limit,
        time_in_force: if expiration.is_some() { TimeInForce::Gtd } else { TimeInForce::Gtc },
        limit: Price(limit),
        quantity: Qty::from_shares(10),
        amount: None,
        expiration: expiration.map(Timestamp),
        post_only: false,
        client_order_id: None,
        route: EntryRoute::Native,
        fee_rate: Bps(500),
        marketable: false,
        quality: Quality::default(),
        rounded_from: None,
    };
    Order::new(OrderId(id), &terms, Timestamp(1), &mut SharedRows::new())
}

#[test]
fn an_order_and_its_fill_take_224_bytes() {
    assert_eq!((size_of::<Terms>(), size_of::<Order>(), size_of::<Fill>()), (88, 160, 64));
}

#[test]
fn what_few_orders_have_takes_a_cache_line() {
    assert_eq!((size_of::<Rare>(), size_of::<std::sync::OnceLock<Rare>>()), (56, 64));
}
