//! Description of journaled data for readers outside of the program: names, types and meanings of fields, and their
//! values.
//!
//! `papertape log export` and `engine/docs/facts.md` are generated from it. This package has no JSON: a [`Value`] is a
//! tree that the caller serialises. The tables that declare facts and their parts (`record`, `facts`, `words`) generate
//! the journal's layout and this description together, so they cannot differ.

use crate::fee::FeeRounding;
use crate::id::Outcome;
use crate::market::terms::{Asset, Category, Interval, MarketState, Resolution, Venue};
use crate::order::{CloseReason, EntryRoute, Liquidity, OrderType, PriceSource, Side, Status, TimeInForce};
use crate::realism::FillModel;
use crate::rehearsal::{AddressKind, Class, Diagnosis, Rule};
use crate::user::alerts::{AlertKinds, Channel, HiddenText};
use crate::user::backtests::BacktestEnd;
use crate::user::billing::{BillingInterval, Product, Sku, SubscriptionStatus};
use crate::user::{Permissions, Tier, WalletKind};

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An optional field that is absent.
    Nothing,
    Flag(bool),
    Number(u64),
    Signed(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    List(Vec<Value<'a>>),
    Record(Vec<(&'static str, Value<'a>)>),
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Flag,
    /// A whole number from 0 to `max`, and its unit.
    Number {
        unit: &'static str,
        max: u64,
    },
    /// A signed whole number, and its unit.
    Signed {
        unit: &'static str,
    },
    Text,
    /// One of these texts.
    Word(&'static [&'static str]),
    /// This count of bytes.
    Bytes(usize),
    /// May be absent.
    Option(&'static Shape),
    List(&'static Shape),
    Record(&'static [Field]),
}

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    /// Its meaning; empty if name and type suffice.
    pub meaning: &'static str,
    pub shape: Shape,
}

/// A kind of fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    pub meaning: &'static str,
    pub shape: Shape,
}

/// A type with a description.
pub trait Described {
    const SHAPE: Shape;
    fn value(&self) -> Value<'_>;
}

/// Words in the order of their numbers, which are permanent: journal and snapshots store them. A new one is appended.
pub trait Words: Copy + 'static {
    const ALL: &'static [Self];
    const NAMES: &'static [&'static str];
}

/// Declares a struct that is journaled, with its layout and its description. Traits beyond those of every record are in
/// parentheses first.
macro_rules! record {
    (
        $(($($derived:ident),+))?
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $( $(#[doc = $meaning:literal])* pub $field:ident: $type:ty ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, ::wincode::SchemaWrite, ::wincode::SchemaRead)]
        $(#[derive($($derived),+)])?
        #[cfg_attr(test, derive(::bincode::Encode, ::bincode::Decode))]
        pub struct $name {
            $( $(#[doc = $meaning])* pub $field: $type, )*
        }

        impl $crate::describe::Described for $name {
            const SHAPE: $crate::describe::Shape = $crate::describe::Shape::Record(&[
                $( $crate::describe::Field {
                    name: stringify!($field),
                    meaning: concat!($($meaning),*),
                    shape: <$type as $crate::describe::Described>::SHAPE,
                }, )*
            ]);
            fn value(&self) -> $crate::describe::Value<'_> {
                $crate::describe::Value::Record(vec![
                    $( (stringify!($field), $crate::describe::Described::value(&self.$field)), )*
                ])
            }
        }
    };
}
pub(crate) use record;

/// Declares facts: a record each, and the enum of all of them. A fact's position in the table is its number in the
/// journal, so a new one is appended.
macro_rules! facts {
    (
        $(#[doc = $enum_doc:literal])*
        pub enum $enum:ident {
            $(
                $(#[doc = $doc:literal])*
                $fact:ident {
                    $( $(#[doc = $meaning:literal])* $field:ident: $type:ty ),* $(,)?
                }
            ),* $(,)?
        }
    ) => {
        $(#[doc = $enum_doc])*
        #[derive(Clone, Debug, PartialEq, Eq, ::wincode::SchemaWrite, ::wincode::SchemaRead)]
        #[cfg_attr(test, derive(::bincode::Encode, ::bincode::Decode))]
        pub enum $enum {
            $( $(#[doc = $doc])* $fact(fact::$fact), )*
        }

        /// The fields of each fact.
        pub mod fact {
            use super::*;

            $( $crate::describe::record! {
                $(#[doc = $doc])*
                pub struct $fact {
                    $( $(#[doc = $meaning])* pub $field: $type, )*
                }
            } )*
        }

        $( impl From<fact::$fact> for $enum {
            fn from(fact: fact::$fact) -> $enum {
                $enum::$fact(fact)
            }
        } )*

        impl $enum {
            /// All kinds, in the order of their numbers.
            pub const KINDS: &'static [$crate::describe::Kind] = &[
                $( $crate::describe::Kind {
                    name: stringify!($fact),
                    meaning: concat!($($doc),*),
                    shape: <fact::$fact as $crate::describe::Described>::SHAPE,
                }, )*
            ];

            /// The name of its kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $( $enum::$fact(_) => stringify!($fact), )*
                }
            }

            /// Its fields and their values.
            pub fn value(&self) -> $crate::describe::Value<'_> {
                match self {
                    $( $enum::$fact(fact) => $crate::describe::Described::value(fact), )*
                }
            }
        }
    };
}
pub(crate) use facts;

/// Words that are journaled, in the order of their numbers.
macro_rules! words {
    ($($name:ty: $($word:ident),*;)*) => {
        $(
            impl $crate::describe::Words for $name {
                const ALL: &'static [$name] = &[$(<$name>::$word),*];
                const NAMES: &'static [&'static str] = &[$(stringify!($word)),*];
            }

            impl $crate::describe::Described for $name {
                const SHAPE: $crate::describe::Shape =
                    $crate::describe::Shape::Word(<$name as $crate::describe::Words>::NAMES);
                fn value(&self) -> $crate::describe::Value<'_> {
                    $crate::describe::Value::Text(match self {
                        $( <$name>::$word => stringify!($word), )*
                    })
                }
            }
        )*

        #[cfg(test)]
        fn every_word_has_its_number() -> usize {
            let mut count = 0;
            $(for (number, word) in <$name as $crate::describe::Words>::ALL.iter().enumerate() {
                assert_eq!(*word as usize, number, "{word:?}");
                count += 1;
            })*
            count
        }
    };
}

/// Whole numbers with their units.
macro_rules! numbers {
    ($($name:ty: $largest:expr, $unit:literal;)*) => {$(
        impl Described for $name {
            const SHAPE: Shape = Shape::Number { unit: $unit, max: $largest as u64 };
            fn value(&self) -> Value<'_> {
                Value::Number(self.0.into())
            }
        }
    )*};
}

numbers! {
    crate::id::UserId: u64::MAX, "a user's id";
    crate::id::WalletId: u64::MAX, "a wallet's id";
    crate::id::KeyId: u64::MAX, "a key's id";
    crate::id::OrderId: u64::MAX, "an order's id";
    crate::id::TradeId: u64::MAX, "a trade's id";
    crate::id::PositionId: u64::MAX, "a position's id";
    crate::id::MarketId: u32::MAX, "a market's number, from 0 in the order of listing";
    crate::id::InstrumentId: u32::MAX, "an outcome token: market × 2 + outcome";
    crate::amount::Price: u16::MAX, "10⁻⁴ USD a share";
    crate::amount::TickSize: u16::MAX, "10⁻⁴ USD a share";
    crate::amount::Qty: u64::MAX, "10⁻⁶ shares";
    crate::amount::Bps: u32::MAX, "10⁻⁴";
    crate::time::Timestamp: u64::MAX, "µs since 1970";
    crate::user::alerts::AlertKinds: AlertKinds::ALL.0, "a set of kinds of alerts: bit n is the kind n";
}

impl Described for crate::amount::Cash {
    const SHAPE: Shape = Shape::Signed { unit: "10⁻⁶ USD" };
    fn value(&self) -> Value<'_> {
        Value::Signed(self.0)
    }
}

/// Whole numbers whose unit is in the name of their field.
macro_rules! plain_numbers {
    ($($name:ty),*) => {$(
        impl Described for $name {
            const SHAPE: Shape = Shape::Number { unit: "", max: <$name>::MAX as u64 };
            fn value(&self) -> Value<'_> {
                Value::Number((*self).into())
            }
        }
    )*};
}

plain_numbers!(u16, u32, u64);

impl Described for bool {
    const SHAPE: Shape = Shape::Flag;
    fn value(&self) -> Value<'_> {
        Value::Flag(*self)
    }
}

impl Described for String {
    const SHAPE: Shape = Shape::Text;
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Described for HiddenText {
    const SHAPE: Shape = Shape::Text;
    fn value(&self) -> Value<'_> {
        Value::Text(HiddenText::SHOWN)
    }
}

impl<const COUNT: usize> Described for [u8; COUNT] {
    const SHAPE: Shape = Shape::Bytes(COUNT);
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Described for [String; 2] {
    const SHAPE: Shape = Shape::List(&Shape::Text);
    fn value(&self) -> Value<'_> {
        Value::List(self.iter().map(Described::value).collect())
    }
}

impl<T: Described> Described for Option<T> {
    const SHAPE: Shape = Shape::Option(&T::SHAPE);
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Nothing, T::value)
    }
}

impl<T: Described> Described for Vec<T> {
    const SHAPE: Shape = Shape::List(&T::SHAPE);
    fn value(&self) -> Value<'_> {
        Value::List(self.iter().map(T::value).collect())
    }
}

impl<T: Described> Described for Box<T> {
    const SHAPE: Shape = T::SHAPE;
    fn value(&self) -> Value<'_> {
        T::value(self)
    }
}

words! {
    Side: Buy, Sell;
    OrderType: Market, Limit;
    TimeInForce: Gtc, Gtd, Fok, Fak, Ioc;
    FeeRounding: HalfUp, Down, UpToFour;
    EntryRoute: Native, Batch, Venue, Clob;
    CloseReason: FokNotFilled, FakNoFill, FakRest, ExecutionFailed, UserCancelled, CancelAll, CancelMarket, GtdExpired,
        HeartbeatLapsed, AutoCancelled, BalanceReset, WalletArchived, MarketResolved, MarketClosed;
    Liquidity: Taker, Maker;
    PriceSource: BookWalk, MatchingEngine, BestAsk, BestBid, ClobMidpointCached, LastTrade, Display,
        EmergencyExitEntryPrice, EmergencyExitEntryPricePostExpiry;
    Status: Pending, Filled, Cancelled, Expired;
    Tier: Free, Pro, ProPlus, Enterprise;
    Permissions: Read, ReadTrade;
    WalletKind: Main, Api, Sandbox, Competition;
    BacktestEnd: Completed, Failed, Cancelled;
    Product: Pro, ProPlus, BacktestingStarter, BacktestingPro;
    BillingInterval: Monthly, Yearly;
    SubscriptionStatus: Incomplete, Trialing, Active, PastDue, Canceled;
    Sku: Topup500, Topup2000, Topup10000, MainReset;
    Channel: Chat, Webhook;
    Outcome: First, Second;
    Category: Sports, Finance, Politics, Mentions, Tech, Economics, Culture, Weather, Other, Crypto, Geopolitics, Unknown;
    MarketState: Upcoming, Active, Halted, Closed, Resolved;
    Asset: Btc, Eth, Sol, Xrp, Spx, Ndx;
    Interval: FiveMinutes, FifteenMinutes, Hour, FourHours, Daily;
    FillModel: Touch, Cross, Through, Queue, QueueProb;
    Rule: Orders, S01, S02, S03, S04, S05, S06, S07, S08, S09, S10, S11, S12, S13, S14, S15, S16, S17, S18;
    Class: Clean, Unverifiable, Depends, Refused;
    Diagnosis: Plain, FirstGeneration, SecondGeneration, OtherExchange, OtherChain, OtherExchangeAndChain, FirstVersion,
        ThirdVersion, Length, HighS, NoPoint, OtherSigner, Fields, MakerIsNotSigner, OtherOwner, NoOwner, SessionKey,
        OtherContents, NoAddress, NoHeader, Passphrase, Time;
    AddressKind: Eoa, Proxy, Safe, Deposit;
}

/// Declared with their names, in one table.
impl Words for Venue {
    const ALL: &'static [Venue] = Venue::ALL;
    const NAMES: &'static [&'static str] = Venue::WORDS;
}

impl Described for Venue {
    const SHAPE: Shape = Shape::Word(Venue::WORDS);
    fn value(&self) -> Value<'_> {
        Value::Text(Venue::WORDS[*self as usize])
    }
}

/// The winning outcome, or a payout of one half per share.
impl Described for Resolution {
    const SHAPE: Shape = Shape::Word(&["First", "Second", "Split"]);
    fn value(&self) -> Value<'_> {
        match self {
            Resolution::Winner(outcome) => outcome.value(),
            Resolution::Split => Value::Text("Split"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_numbers() {
        assert_eq!(
            every_word_has_its_number(),
            2 + 2
                + 5
                + 3
                + 4
                + 14
                + 2
                + 9
                + 4
                + 4
                + 2
                + 4
                + 3
                + 4
                + 2
                + 5
                + 4
                + 2
                + 2
                + 12
                + 5
                + 6
                + 5
                + 5
                + 19
                + 4
                + 22
                + 4
        );
        for (number, venue) in Venue::ALL.iter().enumerate() {
            assert_eq!((*venue as usize, venue.value()), (number, Value::Text(&format!("{venue:?}"))));
            assert_eq!(venue.name(), format!("{venue:?}").to_ascii_lowercase());
        }
    }

    record! {
        /// A record of a test.
        pub struct Sample {
            /// What it is
            /// called.
            pub name: Option<String>,
            pub sides: Vec<Side>,
            pub at: crate::time::Timestamp,
        }
    }

    #[test]
    fn a_record_describes_its_fields() {
        let Shape::Record(fields) = Sample::SHAPE else { panic!("a struct is a record") };
        let names: Vec<_> = fields.iter().map(|field| (field.name, field.meaning)).collect();
        assert_eq!(names, [("name", " What it is called."), ("sides", ""), ("at", "")]);
        assert_eq!(fields[0].shape, Shape::Option(&Shape::Text));
        let mut sample = Sample { name: None, sides: vec![Side::Sell], at: crate::time::Timestamp(7) };
        let value =
            |name, sides| Value::Record(vec![("name", name), ("sides", Value::List(sides)), ("at", Value::Number(7))]);
        assert_eq!(sample.value(), value(Value::Nothing, vec![Value::Text("Sell")]));
        (sample.name, sample.sides) = (Some("é".to_owned()), Vec::new());
        assert_eq!(sample.value(), value(Value::Text("é"), Vec::new()));
    }
}
