//! Identities: one integer newtype per noun, so that the compiler keeps them apart.
//!
//! A user id comes from one counter. Every object of a user (wallet, key, order, trade, position) has the id
//! `user × 2²⁸ + the user's next number`: unique in the whole server without coordination between shards, the same for
//! any shard count, never reused, and below 2⁵³ (JavaScript's exact integers) for 33 million users.
//!
//! A user whose numbers come to their end is granted another prefix from the counter of user ids, which no user has
//! (`Mutation::NumbersExtended`); its next ids are `prefix × 2²⁸ + number`. A later prefix is a higher one, so ids of a
//! user ascend with their age, also over prefixes (`state/user/prefixes.rs`).

use wincode::{SchemaRead, SchemaWrite};

/// Bits of an object id for its number within its user.
pub const OBJECT_BITS: u32 = 28;
/// Largest user id whose objects have ids below 2⁵³.
pub const USER_ID_MAX: u64 = (1 << (53 - OBJECT_BITS)) - 1;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
        #[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// A user, from 1. 0 is the owner of records about markets ([`MARKETS`]).
    UserId(u64);
    /// A wallet of a user.
    WalletId(u64);
    /// An API key of a user: its handle, not the secret.
    KeyId(u64);
    /// An order.
    OrderId(u64);
    /// One fill of an order (the wire's `trade_id`).
    TradeId(u64);
    /// One episode of holding an instrument, from first buy to zero.
    PositionId(u64);
    /// A binary market, dense from 0 in the order of listing.
    MarketId(u32);
    /// One outcome token: `market × 2 + outcome index`.
    InstrumentId(u32);
}

/// Owner of the records about markets.
pub const MARKETS: UserId = UserId(0);

impl UserId {
    /// The id of this user's object number `number`.
    ///
    /// # Panics
    /// When `number` does not fit [`OBJECT_BITS`]; `decide` refuses long before that.
    pub fn object(self, number: u32) -> u64 {
        assert!(number < 1 << OBJECT_BITS, "object numbers are below 2^28, got {number}");
        (self.0 << OBJECT_BITS) | u64::from(number)
    }

    /// The prefix of an object id: the user that it belongs to, unless the prefix was granted to another one, which
    /// [`crate::user::Users::owner_of`] and [`crate::directory::Directory::owner_of`] know.
    pub fn of_object(object: u64) -> UserId {
        UserId(object >> OBJECT_BITS)
    }
}

/// The number of an object within its prefix.
pub fn object_number(object: u64) -> u32 {
    (object & ((1 << OBJECT_BITS) - 1)) as u32
}

impl MarketId {
    /// The token of outcome 0 or 1.
    pub fn instrument(self, outcome: Outcome) -> InstrumentId {
        InstrumentId(self.0 * 2 + outcome as u32)
    }
}

impl InstrumentId {
    /// The market that this token belongs to.
    pub fn market(self) -> MarketId {
        MarketId(self.0 / 2)
    }

    /// Which outcome of the market this token is.
    pub fn outcome(self) -> Outcome {
        if self.0.is_multiple_of(2) { Outcome::First } else { Outcome::Second }
    }

    /// The other token of the same market.
    pub fn complement(self) -> InstrumentId {
        InstrumentId(self.0 ^ 1)
    }
}

/// First (Yes, Up) or second (No, Down) outcome of a binary market, in token order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Outcome {
    First = 0,
    Second = 1,
}

impl Outcome {
    pub fn other(self) -> Outcome {
        match self {
            Outcome::First => Outcome::Second,
            Outcome::Second => Outcome::First,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_ids_name_their_user_and_stay_exact_in_javascript() {
        for (user, number) in [(1, 0), (1, 1), (7, 268_435_455), (USER_ID_MAX, 268_435_455)] {
            let id = UserId(user).object(number);
            assert_eq!((UserId::of_object(id).0, object_number(id)), (user, number));
            assert!(id < 1 << 53, "{id}");
        }
    }

    #[test]
    fn the_two_tokens_of_a_market_are_each_others_complement() {
        let market = MarketId(21);
        let (yes, no) = (market.instrument(Outcome::First), market.instrument(Outcome::Second));
        assert_eq!((yes.complement(), no.complement()), (no, yes));
        assert_eq!((yes.market(), no.market()), (market, market));
        assert_eq!((yes.outcome(), no.outcome()), (Outcome::First, Outcome::Second));
    }
}
