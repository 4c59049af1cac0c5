//! Texts and numbers with a syntax of their own (`gateway/docs/wire.md` §1, §2): each is a type, from which come its
//! text and its schema. In the OpenAPI file it is a component of the same name.
//!
//! Values of examples are read from their texts: `Price::of("0.42")`.

use engine::amount::{self, Cash, Qty, TickSize};
use engine::time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::RefCell;
use wire::{decimal, instant};

/// Calls `then` with the text that `write` writes, without an allocation.
fn with_text<R>(write: impl FnOnce(&mut Vec<u8>), then: impl FnOnce(&str) -> R) -> R {
    thread_local! {
        static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    TEXT.with_borrow_mut(|text| {
        text.clear();
        write(text);
        then(str::from_utf8(text).expect("these texts are ASCII"))
    })
}

/// The schema of a type: a component of this name.
macro_rules! component {
    ($type:ty, $name:expr, $text:literal, $pattern:literal) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "description": $text, "pattern": $pattern})
            }
        }
    };
}

/// Declares scalars that are written from a value of the engine: the type of that value, the description, the pattern
/// (anchored, ECMA 262), and what writes the text.
macro_rules! scalars {
    ($($(#[$about:meta])* $name:ident($vis:vis $inner:ty): $text:literal, $pattern:literal, $write:expr;)*) => {$(
        #[doc = $text]
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name($vis $inner);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                with_text(|out| $write(out, self.0), |text| serializer.serialize_str(text))
            }
        }

        component!($name, stringify!($name), $text, $pattern);
    )*};
}

scalars! {
    Money(pub Cash): "US dollars as a decimal string with two to six decimals.",
        r"^-?(0|[1-9][0-9]*)\.[0-9]{2,6}$", decimal::money;
    /// Also an average or a midpoint, which may be finer than a price that can be traded at.
    Price(pub Cash): "A price per share in US dollars, at least two decimals.",
        r"^(0|[1-9][0-9]*)\.[0-9]{2,6}$", decimal::money;
    /// From a [`Qty`] it is cut to the four decimals of orders; [`Quantity::uncut`] has six.
    Quantity(Qty): "Shares as a decimal string without trailing zeros.",
        r"^(0|[1-9][0-9]*)(\.[0-9]{1,6})?$", decimal::size;
    /// In 10⁻⁶.
    Volume(pub u64): "A traded volume as a decimal string.",
        r"^(0|[1-9][0-9]*)(\.[0-9]+)?$", decimal::vol;
    /// Of the simulation routes: rounded half up.
    PriceIn4(pub Cash): "A price per share in US dollars with four decimals.",
        r"^(0|[1-9][0-9]*)\.[0-9]{4}$", decimal_of_cash::<4>;
    /// Of the simulation routes: cut down.
    SharesIn4(pub Qty): "Shares with four decimals.",
        r"^(0|[1-9][0-9]*)\.[0-9]{4}$", shares_in_4;
    /// Of the simulation routes.
    MoneyIn4(pub Cash): "US dollars with four decimals.",
        r"^-?(0|[1-9][0-9]*)\.[0-9]{4}$", decimal_of_cash::<4>;
    /// Of the simulation routes.
    MoneyIn2(pub Cash): "US dollars with two decimals.",
        r"^-?(0|[1-9][0-9]*)\.[0-9]{2}$", decimal_of_cash::<2>;
    /// In thousandths.
    MarketHours(pub u64): "Market hours with three decimals.",
        r"^(0|[1-9][0-9]*)\.[0-9]{3}$", thousandths;
    /// In thousandths.
    Progress(pub u64): "A part of the whole, from 0.000 to 1.000.",
        r"^(0\.[0-9]{3}|1\.000)$", thousandths;
    Timestamp(pub time::Timestamp): "A moment in UTC, with microseconds where they are not zero.",
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z$", instant::ts;
    Milliseconds(pub u64): "Unix milliseconds as a string.",
        r"^[0-9]{1,16}$", decimal::integer;
    Seconds(pub u64): "Unix seconds as a string.",
        r"^[0-9]{1,13}$", decimal::integer;
    /// Of the WebSocket channels. It is written with milliseconds.
    Instant(pub time::Timestamp): "A moment in UTC.",
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3}([0-9]{3})?)?Z$", instant::ts_millis;
    /// Of the routes of spot prices.
    StreamTime(pub time::Timestamp): "A moment in UTC with milliseconds.",
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$", instant::ts_millis;
    Digits(pub u64): "An integer as a string.",
        r"^(0|[1-9][0-9]*)$", decimal::integer;
    BaseUnits(pub u64): "An amount in base units (10⁻⁶) as a string.",
        r"^(0|[1-9][0-9]*)$", decimal::integer;
}

fn decimal_of_cash<const DECIMALS: u32>(out: &mut Vec<u8>, cash: Cash) {
    decimal::exactly::<DECIMALS>(out, cash.0);
}

fn thousandths(out: &mut Vec<u8>, thousandths: u64) {
    decimal::exactly::<3>(out, (thousandths as i64).saturating_mul(1_000));
}

fn shares_in_4(out: &mut Vec<u8>, qty: Qty) {
    decimal::exactly::<4>(out, qty.floored_to_order_step().0 as i64);
}

/// Declares scalars that have their text already: the description and the pattern (anchored, ECMA 262).
macro_rules! texts {
    ($($(#[$about:meta])* $name:ident: $text:literal, $pattern:literal;)*) => {$(
        #[doc = $text]
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub struct $name<'a>(pub Cow<'a, str>);

        impl<'a> From<&'a str> for $name<'a> {
            fn from(text: &'a str) -> $name<'a> {
                $name(Cow::Borrowed(text))
            }
        }

        impl From<String> for $name<'_> {
            fn from(text: String) -> Self {
                $name(Cow::Owned(text))
            }
        }

        component!($name<'_>, stringify!($name), $text, $pattern);
    )*};
}

texts! {
    Rate: "A percentage with one decimal and its sign.", r"^(0|[1-9][0-9]*)\.[0-9]%$";
    Percentage: "A percentage with two decimals, without its sign.", r"^-?(0|[1-9][0-9]*)\.[0-9]{2}$";
    /// It has no unit of its own: a ratio, a score.
    Decimal: "A decimal number as a string.", r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$";
    HourText: "An hour of UTC.", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}$";
    DateText: "A day in UTC.", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$";
    FixtureNumber: "A match of the football routes.", r"^[1-9][0-9]{0,11}$";
    CompetitionChoice: "A competition of the football routes.", r"^([0-9]{1,10}|wc-2026)$";
    TokenId: "An outcome token.", r"^[0-9]{1,80}$";
    ConditionId: "A market.", r"^0x[0-9a-f]{64}$";
    OrderHexId: "An order in its venue-shaped form: 0x and 64 hexadecimal digits.", r"^0x[0-9a-f]{64}$";
    TransactionHash: "0x and 64 hexadecimal digits, made from the trade's id: a paper trade has no transaction.",
        r"^0x[0-9a-f]{64}$";
    WalletChoice: "`api`, `all` (the active ones together), or the number of a wallet.",
        "^([aA][pP][iI]|[aA][lL][lL]|-?[0-9]{1,18})$";
    Uuid: "A UUID in lower case.", r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
}

/// A figure of 10⁻⁶ as a JSON number in its shortest form: `0.01`, `5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(pub i64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let write = |out: &mut Vec<u8>| {
            if self.0 < 0 {
                out.push(b'-');
            }
            decimal::vol(out, self.0.unsigned_abs());
        };
        // A float would write 5 as 5.0.
        with_text(write, |text| {
            serde_json::from_str::<&RawValue>(text).map_err(S::Error::custom)?.serialize(serializer)
        })
    }
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number"})
    }
}

impl From<Cash> for Number {
    fn from(cash: Cash) -> Number {
        Number(cash.0)
    }
}

impl From<Qty> for Number {
    fn from(qty: Qty) -> Number {
        Number(qty.0 as i64)
    }
}

impl From<TickSize> for Number {
    fn from(tick: TickSize) -> Number {
        Price::from(amount::Price(tick.0)).0.into()
    }
}

impl From<amount::Price> for Price {
    fn from(price: amount::Price) -> Price {
        // 10⁻⁴ USD to 10⁻⁶ USD.
        Price(Cash(i64::from(price.0) * 100))
    }
}

impl From<amount::Price> for PriceIn4 {
    fn from(price: amount::Price) -> PriceIn4 {
        PriceIn4(Price::from(price).0)
    }
}

impl From<Qty> for Quantity {
    fn from(qty: Qty) -> Quantity {
        Quantity(qty.floored_to_order_step())
    }
}

impl Quantity {
    /// With all six decimals: the size of a book's level.
    pub fn uncut(qty: Qty) -> Quantity {
        Quantity(qty)
    }
}

/// Values of examples.
///
/// # Panics
/// When the text is not one of the type.
impl Money {
    pub fn of(text: &str) -> Money {
        let decimal = decimal::Decimal::parse(text).ok();
        Money(decimal.and_then(decimal::Decimal::cash_exact).unwrap_or_else(|| panic!("{text} is not an amount")))
    }
}

impl Price {
    /// As [`Money::of`].
    pub fn of(text: &str) -> Price {
        Price(Money::of(text).0)
    }
}

impl PriceIn4 {
    /// As [`Money::of`].
    pub fn of(text: &str) -> PriceIn4 {
        PriceIn4(Money::of(text).0)
    }
}

impl MoneyIn2 {
    /// As [`Money::of`].
    pub fn of(text: &str) -> MoneyIn2 {
        MoneyIn2(Money::of(text).0)
    }
}

impl MoneyIn4 {
    /// As [`Money::of`].
    pub fn of(text: &str) -> MoneyIn4 {
        MoneyIn4(Money::of(text).0)
    }
}

impl SharesIn4 {
    /// As [`Money::of`].
    pub fn of(text: &str) -> SharesIn4 {
        SharesIn4(Quantity::of(text).0)
    }
}

impl Quantity {
    /// As [`Money::of`].
    pub fn of(text: &str) -> Quantity {
        Quantity(Qty(Money::of(text).0.0.unsigned_abs()))
    }
}

impl Volume {
    /// As [`Money::of`].
    pub fn of(text: &str) -> Volume {
        Volume(Money::of(text).0.0.unsigned_abs())
    }
}

impl Number {
    /// As [`Money::of`].
    pub fn of(text: &str) -> Number {
        Number(Money::of(text).0.0)
    }
}

impl Timestamp {
    /// As [`Money::of`].
    pub fn of(text: &str) -> Timestamp {
        Timestamp(instant::read(text).unwrap_or_else(|| panic!("{text} is not a time")))
    }
}

impl Instant {
    /// As [`Money::of`].
    pub fn of(text: &str) -> Instant {
        Instant(Timestamp::of(text).0)
    }
}

impl StreamTime {
    /// As [`Money::of`].
    pub fn of(text: &str) -> StreamTime {
        StreamTime(Timestamp::of(text).0)
    }
}

/// Declares texts that are one of a few words, in the order of the description.
///
/// ```ignore
/// words! {
///     /// The tier of a key.
///     pub TierName = "free", "pro", "pro_plus", "enterprise";
/// }
/// ```
///
/// `in` and an expression stands for a list that is declared elsewhere. Such a type is made from a constant word; a word
/// that is not in its list is a mistake, which debug builds, and so all tests, panic at.
macro_rules! words {
    ($($(#[$about:meta])* $vis:vis $name:ident = $($word:literal),+;)*) => {
        $( $crate::http::scalar::words! { $(#[$about])* $vis $name in &[$($word),+]; } )*
    };
    ($(#[$about:meta])* $vis:vis $name:ident in $words:expr;) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ::serde::Serialize)]
        #[serde(transparent)]
        $vis struct $name(&'static str);

        impl $name {
            const ALL: &'static [&'static str] = $words;
        }

        impl From<&'static str> for $name {
            fn from(word: &'static str) -> $name {
                debug_assert!($name::ALL.contains(&word), "{word} is not a {}", stringify!($name));
                $name(word)
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({"type": "string", "enum": $name::ALL})
            }
        }
    };
}
pub(crate) use words;

words! {
    /// A field that the venue always has, and that has nothing to say here.
    pub Blank = "";
    pub Zero = "0";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "unknown is not a Zero")]
    fn a_word_that_is_not_described_is_a_mistake() {
        let _ = Zero::from("unknown");
    }

    fn text(scalar: &impl Serialize) -> String {
        let text = serde_json::to_string(scalar).expect("a scalar");
        // The same by way of a value, as in examples.
        assert_eq!(serde_json::to_value(scalar).expect("a scalar").to_string(), text);
        text
    }

    #[test]
    fn scalars_are_written_as_by_the_writers() {
        for (written, expected) in [
            (text(&Money::of("-3.2")), r#""-3.20""#),
            (text(&Money(Cash(418_333))), r#""0.418333""#),
            (text(&Price::from(amount::Price(4_200))), r#""0.42""#),
            (text(&Price::from(amount::Price(6_450))), r#""0.645""#),
            (text(&Price(Cash(418_333))), r#""0.418333""#),
            (text(&Quantity::from(Qty(23_809_523))), r#""23.8095""#),
            (text(&Quantity::from(Qty(12_000_000))), r#""12""#),
            (text(&Quantity::uncut(Qty(23_809_523))), r#""23.809523""#),
            (text(&PriceIn4::from(amount::Price(3_200))), r#""0.3200""#),
            (text(&PriceIn4(Cash(323_350))), r#""0.3234""#),
            (text(&SharesIn4(Qty(23_809_599))), r#""23.8095""#),
            (text(&MoneyIn4::of("0.43525")), r#""0.4353""#),
            (text(&MoneyIn2::of("-2.925")), r#""-2.93""#),
            (text(&MarketHours(3_250)), r#""3.250""#),
            (text(&Progress(1_000)), r#""1.000""#),
            (text(&HourText::from("2026-09-30T17")), r#""2026-09-30T17""#),
            (text(&Volume::of("48210.75")), r#""48210.75""#),
            (text(&Timestamp::of("2026-10-02T09:14:05.12Z")), r#""2026-10-02T09:14:05.120000Z""#),
            (text(&Milliseconds(1_793_871_202_417)), r#""1793871202417""#),
            (text(&Seconds(1_793_871_202)), r#""1793871202""#),
            (text(&StreamTime::of("2026-10-02T09:14:05Z")), r#""2026-10-02T09:14:05.000Z""#),
            (text(&Instant::of("2026-10-02T09:14:05.12Z")), r#""2026-10-02T09:14:05.120Z""#),
            (text(&TokenId::from("721503")), r#""721503""#),
            (text(&Number::from(TickSize(25))), "0.0025"),
            (text(&Number::of("5")), "5"),
            (text(&Number(-500_000)), "-0.5"),
        ] {
            assert_eq!(written, expected);
        }
    }
}
