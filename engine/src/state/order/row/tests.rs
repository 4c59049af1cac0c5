use super::*;
use crate::mutation::packed::{Packed, Packer};

/// A resting order of 10 shares.
pub(crate) fn resting_order(
    id: u64,
    instrument: InstrumentId,
    side: Side,
    limit: u16,
    expiration: Option<u64>,
) -> Order {
    let terms = OrderTerms {
        time_in_force: if expiration.is_some() { TimeInForce::Gtd } else { TimeInForce::Gtc },
        expiration: expiration.map(Timestamp),
        ..OrderTerms::limit(WalletId(1), KeyId(2), instrument, side, Price(limit), Qty::from_shares(10))
    };
    Order::new(OrderId(id), &terms, Timestamp(1), &mut SharedRows::new())
}

#[test]
fn an_order_and_its_fill_take_232_bytes() {
    assert_eq!((size_of::<Terms>(), size_of::<Order>(), size_of::<Fill>()), (88, 160, 72));
}

#[test]
fn rare_fields_take_64_bytes() {
    assert_eq!((size_of::<Rare>(), size_of::<std::sync::OnceLock<Rare>>()), (56, 64));
}

/// Every field has a different value.
fn full_terms() -> OrderTerms {
    OrderTerms {
        wallet: WalletId(0x0101_0000_0000_0002),
        key: KeyId(0x0101_0000_0000_0003),
        instrument: InstrumentId(7),
        side: Side::Sell,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Fok,
        limit: Price(4_321),
        quantity: Qty(123_456_789),
        amount: Some(Cash(5_000_000)),
        expiration: Some(Timestamp(1_790_932_500_000_000)),
        post_only: true,
        client_order_id: Some("grid-17".to_owned()),
        route: EntryRoute::Venue,
        fee_rate: Bps(500),
        marketable: false,
        quality: Quality {
            displayed: Some(Cash(420_000)),
            quote_age_ms: Some(12),
            spread_bps: Some(13),
            slippage_bps: Some(14),
            impact_bps: Some(15),
            book_walk_levels: Some(16),
            fillable: Some(Qty(17)),
            high_slippage: true,
            stale_quote: false,
        },
        rounded_from: Some("123.4567891".to_owned()),
        order_hash: None,
        fill: None,
    }
}

/// Snapshots contain these bytes.
#[test]
fn the_bytes_of_every_field_are_golden() {
    let golden = "8f4b0592808080808080810280b0a698feb5ae06959aef3a07f403e1210d0b80ade2048084af5fa1d1190d0e0f1011071107677269\
                  642d31370b3132332e34353637383931";
    let order_of = |terms: &OrderTerms| {
        let (id, at) = (OrderId(0x0101_0000_0000_0009), Timestamp(1_790_932_400_000_000));
        Order::new(id, terms, at, &mut SharedRows::new())
    };
    let bytes_of = |order: &Order| {
        let mut bytes = Vec::new();
        let mut packer = Packer::onto(&mut bytes);
        order.pack(None, &mut packer);
        packer.end();
        bytes
    };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let order = order_of(&full_terms());
    let bytes = bytes_of(&order);
    assert_eq!(hex(&bytes), golden);
    assert_eq!(Order::unpack(None, &mut SharedRows::new(), &mut bytes.as_slice()).as_ref(), Ok(&order));
    assert_eq!(order.terms.to_fact(), full_terms(), "no field is lost");

    // The two warnings are two bits of the third byte.
    let mut terms = full_terms();
    (terms.quality.high_slippage, terms.quality.stale_quote) = (false, true);
    let other = bytes_of(&order_of(&terms));
    assert_eq!((bytes[2] & 0b1100, other[2] & 0b1100), (0b0100, 0b1000));
}
