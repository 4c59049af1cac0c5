//! What tests of several packages need.

use engine::amount::{Bps, Price, Qty};
use engine::id::{InstrumentId, KeyId, OrderId, UserId, WalletId};
use engine::mutation::Mutation;
use engine::order::{EntryRoute, OrderTerms, OrderType, Quality, Side, TimeInForce};
use engine::time::{SECOND, Timestamp};

/// 2026-10-02T09:15:00Z.
pub const START: Timestamp = Timestamp(1_790_932_500 * SECOND);

/// An order of 5 shares at 0.10 with that object number; its wallet is object 1.
pub fn placed(owner: UserId, number: u32) -> Mutation {
    let terms = OrderTerms {
        wallet: WalletId(owner.object(1)),
        key: KeyId(owner.object(0)),
        instrument: InstrumentId(0),
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Gtc,
        limit: Price(1_000),
        quantity: Qty::from_shares(5),
        amount: None,
        expiration: None,
        post_only: false,
        client_order_id: None,
        route: EntryRoute::Native,
        fee_rate: Bps(0),
        marketable: false,
        quality: Quality::default(),
        rounded_from: None,
    };
    Mutation::OrderPlaced { order: OrderId(owner.object(number)), terms, counted: true, at: START }
}
