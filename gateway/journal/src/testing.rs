//! Shared by the tests of several packages.

use engine::amount::{Bps, Price, Qty};
use engine::fact;
use engine::id::{InstrumentId, KeyId, OrderId, UserId, WalletId};
use engine::mutation::Mutation;
use engine::order::{OrderTerms, Side};
use engine::time::{SECOND, Timestamp};

/// 2026-10-02T09:15:00Z.
pub const START: Timestamp = Timestamp(1_790_932_500 * SECOND);

/// An order of 5 shares at 0.10 with that object number; its wallet is object 1.
pub fn placed(owner: UserId, number: u32) -> Mutation {
    let (wallet, key) = (WalletId(owner.object(1)), KeyId(owner.object(0)));
    let five = OrderTerms::limit(wallet, key, InstrumentId(0), Side::Buy, Price(1_000), Qty::from_shares(5));
    let terms = OrderTerms { fee_rate: Bps(0), ..five };
    Mutation::OrderPlaced(fact::OrderPlaced { order: OrderId(owner.object(number)), terms, counted: true, at: START })
}
