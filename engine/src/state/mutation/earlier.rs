//! Layouts of facts in earlier formats, and the conversions from each to the next.
//!
//! A layout is added here when the next one replaces it, and never changes: journals contain it. A fact is decoded in
//! the layout of its record's format and then converted to the next format, up to the newest. Later fields are absent
//! in it. In the other direction, for a process that writes the previous format, nothing is lost either: fields that
//! the format lacks are then not decided ([`crate::format`]).

use super::codec::{Fact, VERSION, VERSION_FIRST, VERSION_FOURTH, VERSION_RESTORED, VERSION_SET_BACK, number_of};
use super::{Mutation, fact};
use crate::bytes::{CodecError, read, write};
use crate::market::mutation::MarketMutation;

/// Numbers of the facts that have changed since the first format.
const ORDER_PLACED: u32 = 8;
const ORDER_FILLED: u32 = 9;
const _: () = assert!(matches!(Mutation::KINDS[ORDER_PLACED as usize].name.as_bytes(), b"OrderPlaced"));
const _: () = assert!(matches!(Mutation::KINDS[ORDER_FILLED as usize].name.as_bytes(), b"OrderFilled"));

/// Numbers of the first facts that the formats before do not have. They are not decided while a process writes an earlier
/// format.
const FIRST_OF_FOURTH: u32 = 23;
const FIRST_OF_NEWEST: u32 = 47;
const _: () = assert!(matches!(Mutation::KINDS[FIRST_OF_FOURTH as usize].name.as_bytes(), b"BacktestCreated"));
const _: () = assert!(matches!(Mutation::KINDS[FIRST_OF_NEWEST as usize].name.as_bytes(), b"FillCharged"));

/// Declares a struct as in an earlier format: its fields, then the later ones with their absent values.
macro_rules! earlier {
    ($name:ident of $now:path { $($field:ident: $type:ty),* $(,)? } later { $($later:ident: $absent:expr),* $(,)? }) => {
        #[derive(wincode::SchemaWrite, wincode::SchemaRead)]
        #[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
        pub struct $name {
            $($field: $type,)*
        }

        impl From<$name> for $now {
            fn from(earlier: $name) -> $now {
                $now { $($field: earlier.$field.into(),)* $($later: $absent,)* }
            }
        }

        impl From<$now> for $name {
            fn from(now: $now) -> $name {
                $name { $($field: now.$field.into(),)* }
            }
        }
    };
}

/// Formats 1 to 3: orders without the hash of a signed order, fills without the recording's time.
pub(super) mod first {
    use crate::amount::{Bps, Cash, Price, Qty};
    use crate::fact;
    use crate::id::{InstrumentId, KeyId, OrderId, PositionId, TradeId, WalletId};
    use crate::order::{EntryRoute, Liquidity, OrderType, PriceSource, Quality, Side, Taken, TimeInForce};
    use crate::time::Timestamp;

    earlier! {
        OrderTerms of crate::order::OrderTerms {
            wallet: WalletId,
            key: KeyId,
            instrument: InstrumentId,
            side: Side,
            order_type: OrderType,
            time_in_force: TimeInForce,
            limit: Price,
            quantity: Qty,
            amount: Option<Cash>,
            expiration: Option<Timestamp>,
            post_only: bool,
            client_order_id: Option<String>,
            route: EntryRoute,
            fee_rate: Bps,
            marketable: bool,
            quality: Quality,
            rounded_from: Option<String>,
        }
        later { order_hash: None, fill: None }
    }

    earlier! {
        OrderPlaced of fact::OrderPlaced { order: OrderId, terms: OrderTerms, counted: bool, at: Timestamp }
        later {}
    }

    earlier! {
        OrderFilled of fact::OrderFilled {
            order: OrderId,
            trade: TradeId,
            position: PositionId,
            qty: Qty,
            notional: Cash,
            fee: Cash,
            fee_rate: Bps,
            liquidity: Liquidity,
            source: PriceSource,
            quote_age_ms: Option<u32>,
            cost_out: Cash,
            reserved_cash: Cash,
            reserved_qty: Qty,
            levels: Vec<Taken>,
            at: Timestamp,
        }
        later { venue_at: None }
    }
}

/// Format 4: orders that do not say how they fill.
pub(super) mod fourth {
    use crate::amount::{Bps, Cash, Price, Qty};
    use crate::fact;
    use crate::id::{InstrumentId, KeyId, OrderId, WalletId};
    use crate::order::{EntryRoute, OrderType, Quality, Side, TimeInForce};
    use crate::time::Timestamp;

    earlier! {
        OrderTerms of crate::order::OrderTerms {
            wallet: WalletId,
            key: KeyId,
            instrument: InstrumentId,
            side: Side,
            order_type: OrderType,
            time_in_force: TimeInForce,
            limit: Price,
            quantity: Qty,
            amount: Option<Cash>,
            expiration: Option<Timestamp>,
            post_only: bool,
            client_order_id: Option<String>,
            route: EntryRoute,
            fee_rate: Bps,
            marketable: bool,
            quality: Quality,
            rounded_from: Option<String>,
            order_hash: Option<[u8; 32]>,
        }
        later { fill: None }
    }

    earlier! {
        OrderPlaced of fact::OrderPlaced { order: OrderId, terms: OrderTerms, counted: bool, at: Timestamp }
        later {}
    }
}

impl Fact for Mutation {
    fn write_earlier(&self, version: u16, out: &mut Vec<u8>) {
        match self {
            Mutation::OrderPlaced(placed) => {
                write(&ORDER_PLACED, out);
                match version {
                    VERSION_FOURTH => write(&fourth::OrderPlaced::from(placed.clone()), out),
                    _ => write(&first::OrderPlaced::from(placed.clone()), out),
                }
            }
            Mutation::OrderFilled(filled) if version < VERSION_FOURTH => {
                write(&ORDER_FILLED, out);
                write(&first::OrderFilled::from(filled.clone()), out);
            }
            unchanged => write(unchanged, out),
        }
    }

    fn read_earlier(version: u16, input: &mut &[u8]) -> Result<Mutation, CodecError> {
        match number_of(input)? {
            (ORDER_PLACED, rest) => {
                *input = rest;
                let placed: fact::OrderPlaced = match version {
                    VERSION_FOURTH => read::<fourth::OrderPlaced>(input)?.into(),
                    _ => read::<first::OrderPlaced>(input)?.into(),
                };
                Ok(placed.into())
            }
            (ORDER_FILLED, rest) if version < VERSION_FOURTH => {
                *input = rest;
                let earlier: first::OrderFilled = read(input)?;
                Ok(fact::OrderFilled::from(earlier).into())
            }
            (FIRST_OF_NEWEST.., _) => Err(CodecError::Variant),
            (FIRST_OF_FOURTH.., _) if version < VERSION_FOURTH => Err(CodecError::Variant),
            _ => read(input),
        }
    }
}

impl Fact for MarketMutation {
    fn write_earlier(&self, _version: u16, out: &mut Vec<u8>) {
        write(self, out);
    }

    /// Five facts came with a format; no build wrote them in an earlier one.
    fn read_earlier(version: u16, input: &mut &[u8]) -> Result<MarketMutation, CodecError> {
        let fact = read(input)?;
        let first = match fact {
            MarketMutation::Restored(_) => VERSION_RESTORED,
            MarketMutation::ClockSetBack(_) => VERSION_SET_BACK,
            MarketMutation::HistoryCut(_) => VERSION_FOURTH,
            MarketMutation::FeeScheduleChanged(_) | MarketMutation::AddressDeclared(_) => VERSION,
            _ => VERSION_FIRST,
        };
        if version < first { Err(CodecError::Variant) } else { Ok(fact) }
    }
}
