//! Deliberate mistakes, between the parts of the server and never in them: the model must detect each, or it checks
//! nothing.

use engine::amount::Cash;
use engine::fact;
use engine::id::{MARKETS, UserId};
use engine::mutation::{Mutation, codec};
use engine::order::CloseReason;
use engine::realism::FillModel;
use engine::rules::Rules;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The disk answers syncs and does nothing.
    LyingDisk,
    /// Answers leave before the release mark has passed their records.
    EarlyAnswer,
    /// Some record never reaches the log.
    SwallowedRecord,
    /// A fill is written to the log twice.
    DoubleFill,
    /// The end of a cancelled order is not written, so nothing is released.
    LostRelease,
    /// Fees are written with four decimals, rounded down.
    FeeRoundedDown,
    /// The remainder of a reservation after a partial fill is one unit too small.
    ReservationShort,
    /// Remembered requests are lost in a restart.
    ForgottenRequest,
    /// Ids count as long as their orders exist.
    EndlessIds,
    /// Placements lose their id on the way to the shard.
    SkippedIdempotency,
    /// Accepted orders are not counted for the daily cap.
    UncountedOrder,
    /// A revoked key works again after a restart.
    LostRevocation,
    /// A settlement pays one unit too much.
    WrongPayout,
    /// A snapshot lacks the last record that it covers.
    SnapshotBehind,
    /// A level can be taken repeatedly.
    NoDepletion,
    /// Trades of the venue fill no resting order.
    DeafToPrints,
    /// Resting orders fill at the book's price, not at their own.
    MakerAtBook,
    /// Post-only orders take.
    PostOnlyTakes,
    /// One category is charged a basis point less.
    WrongRate,
    /// The reset of a wallet is not written.
    LostReset,
    /// A position that a reset closed stays open after a restart.
    LostResetPosition,
    /// A point of an hour is one unit too high.
    WrongPoint,
    /// Shards drop rows before the snapshot without them counts.
    DropBeforeSnapshot,
    /// A snapshot lacks rows that the history store has not synced.
    StoreNotSynced,
    /// Answers and look-ups read the store as it was before its newest move.
    OldStore,
    /// An id is free as soon as its order has left memory.
    IdsFreedEarly,
    /// Lists of the store have some rows twice.
    RowTwice,
    /// A later write of the user runs while an earlier one is looked up.
    Overtaking,
    /// The store lacks a row that it was given.
    LostRow,
    /// Shards get another sum of hashes than that of the rows they drop.
    WrongSum,
    /// The hash of a signed order is free as soon as the order has left memory.
    HashesFreed,
}

impl Plant {
    pub const ALL: [Plant; 31] = [
        Plant::EndlessIds,
        Plant::LyingDisk,
        Plant::EarlyAnswer,
        Plant::SwallowedRecord,
        Plant::DoubleFill,
        Plant::LostRelease,
        Plant::FeeRoundedDown,
        Plant::ReservationShort,
        Plant::ForgottenRequest,
        Plant::SkippedIdempotency,
        Plant::UncountedOrder,
        Plant::LostRevocation,
        Plant::WrongPayout,
        Plant::SnapshotBehind,
        Plant::NoDepletion,
        Plant::DeafToPrints,
        Plant::MakerAtBook,
        Plant::PostOnlyTakes,
        Plant::WrongRate,
        Plant::LostReset,
        Plant::LostResetPosition,
        Plant::WrongPoint,
        Plant::DropBeforeSnapshot,
        Plant::StoreNotSynced,
        Plant::OldStore,
        Plant::IdsFreedEarly,
        Plant::RowTwice,
        Plant::Overtaking,
        Plant::LostRow,
        Plant::WrongSum,
        Plant::HashesFreed,
    ];

    /// Mistakes of configuration.
    pub fn change(self, rules: &mut Rules) {
        match self {
            Plant::NoDepletion => rules.flags.book_impact_depletion = false,
            Plant::DeafToPrints => rules.realism.set_kind_model(FillModel::Touch),
            Plant::MakerAtBook => rules.flags.maker_fill_at_limit = false,
            Plant::EndlessIds => rules.client_ids_us = u64::MAX / 2,
            Plant::PostOnlyTakes => rules.flags.post_only_enforced = false,
            Plant::WrongRate => {
                let category = engine::market::terms::Category::Crypto;
                rules.fees.set(category, engine::amount::Bps(rules.fees.rate(category).0 - 1));
            }
            _ => {}
        }
    }

    /// The payload of that format as the log gets it, if it differs.
    pub fn tamper(self, version: u16, owner: UserId, payload: &[u8]) -> Option<Vec<u8>> {
        if owner == MARKETS {
            return None;
        }
        let facts = codec::decode::<Mutation>(version, payload).expect("written just now");
        let mut changed = Vec::new();
        for fact in facts {
            self.change_fact(fact.expect("written just now"), &mut changed);
        }
        let mut bytes = Vec::new();
        codec::encode(version, &changed, &mut bytes);
        (bytes != payload).then_some(bytes)
    }

    fn change_fact(self, mut fact: Mutation, facts: &mut Vec<Mutation>) {
        match (self, &mut fact) {
            (Plant::DoubleFill, Mutation::OrderFilled(_)) => facts.push(fact.clone()),
            (Plant::LostRelease, Mutation::OrderClosed(fact::OrderClosed { reason, .. }))
                if *reason == CloseReason::UserCancelled =>
            {
                return;
            }
            (Plant::FeeRoundedDown, Mutation::OrderFilled(fact::OrderFilled { fee, .. })) => fee.0 -= fee.0 % 100,
            (Plant::ReservationShort, Mutation::OrderFilled(fact::OrderFilled { reserved_cash, .. }))
                if reserved_cash.0 > 0 =>
            {
                *reserved_cash -= Cash(1);
            }
            (Plant::ForgottenRequest, Mutation::RequestRemembered(_)) => return,
            (Plant::UncountedOrder, Mutation::OrderPlaced(fact::OrderPlaced { counted, .. })) => *counted = false,
            (Plant::LostRevocation, Mutation::KeyRevoked(_)) => return,
            (Plant::LostReset, Mutation::WalletReset(_)) => return,
            (Plant::LostResetPosition, Mutation::PositionReset(_)) => return,
            (Plant::WrongPoint, Mutation::EquityNoted(fact::EquityNoted { value, .. })) => *value += Cash(1),
            (Plant::WrongPayout, Mutation::PositionSettled(fact::PositionSettled { payout, .. })) => *payout += Cash(1),
            _ => {}
        }
        facts.push(fact);
    }
}
