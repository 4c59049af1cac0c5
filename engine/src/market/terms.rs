//! Permanent attributes of a market: identity, terms, category, state.

use crate::amount::{Bps, Price, Qty, TickSize};
use crate::describe::record;
use crate::id::Outcome;
use crate::time::Timestamp;
use wincode::{SchemaRead, SchemaWrite};

/// Declares the venues, each with its name in requests, settings and recordings.
macro_rules! venues {
    ($($venue:ident = $name:literal),* $(,)?) => {
        /// The origin of a market.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
        #[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
        pub enum Venue {
            $($venue,)*
        }

        impl Venue {
            /// All venues, in the order of their numbers.
            pub const ALL: &[Venue] = &[$(Venue::$venue),*];
            /// Their names.
            pub const NAMES: &[&str] = &[$($name),*];
            /// Their names in descriptions of the log.
            pub(crate) const WORDS: &[&str] = &[$(stringify!($venue)),*];
        }
    };
}

// The log stores the position, so a new one is appended. The first one is the one without a live connection.
venues! {
    Synthetic = "synthetic",
    Polymarket = "polymarket",
    Kalshi = "kalshi",
}

impl Venue {
    /// The name in requests, settings and recordings.
    pub const fn name(self) -> &'static str {
        Venue::NAMES[self as usize]
    }
}

/// The eleven fee categories, and the default for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Category {
    Sports,
    Finance,
    Politics,
    Mentions,
    Tech,
    Economics,
    Culture,
    Weather,
    Other,
    Crypto,
    Geopolitics,
    Unknown,
}

/// Life of a market as the feed decides it (gateway/docs/live-venues.md §2.3, §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum MarketState {
    /// Listed, not open for orders yet.
    Upcoming,
    Active,
    /// The venue accepts no orders for now.
    Halted,
    /// The venue stopped trading; not resolved.
    Closed,
    Resolved,
}

/// The result of a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Resolution {
    Winner(Outcome),
    /// Each share pays 0.50.
    Split,
}

impl Resolution {
    /// The payout of one share of `outcome`.
    pub fn payout(self, outcome: Outcome) -> Price {
        match self {
            Resolution::Winner(winner) if winner == outcome => Price::ONE,
            Resolution::Winner(_) => Price(0),
            Resolution::Split => Price(5_000),
        }
    }
}

/// Assets of the up-or-down markets (gateway/docs/market-data.md §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Asset {
    Btc,
    Eth,
    Sol,
    Xrp,
    Spx,
    Ndx,
}

/// Intervals of the up-or-down markets (gateway/docs/market-data.md §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Interval {
    FiveMinutes,
    FifteenMinutes,
    Hour,
    FourHours,
    Daily,
}

record! {
    (Copy)
    /// The window of an up-or-down market.
    pub struct UpDown {
        pub asset: Asset,
        pub interval: Interval,
        pub start: Timestamp,
        pub end: Timestamp,
    }
}

record! {
    /// The group of a market.
    pub struct EventTerms {
        pub id: String,
        pub slug: String,
        pub title: String,
        pub image: Option<String>,
        pub end: Option<Timestamp>,
    }
}

record! {
    /// The attributes of a market when it is listed (gateway/docs/live-venues.md §1). Texts are as the API shows them.
    pub struct Listing {
        pub venue: Venue,
        /// The venue's own id: Gamma id, Kalshi ticker, synthetic number.
        pub venue_market_id: String,
        /// `0x` and 64 lower-case hex digits.
        pub condition: String,
        /// Decimal texts of at most 80 digits, in outcome order.
        pub tokens: [String; 2],
        pub outcomes: [String; 2],
        pub slug: String,
        pub question: String,
        pub description: Option<String>,
        pub image: Option<String>,
        /// Label inside the event group.
        pub label: Option<String>,
        pub category: Category,
        pub tags: Vec<String>,
        pub event: Option<EventTerms>,
        pub tick: TickSize,
        /// The venue's minimum; shown on books, decides nothing (engine/docs/execution.md §13).
        pub min_order_size: Option<Qty>,
        pub neg_risk: bool,
        pub start: Option<Timestamp>,
        pub end: Option<Timestamp>,
        pub updown: Option<UpDown>,
        /// Has the venue's sports fields.
        pub sports: bool,
    }
}

record! {
    (Copy)
    /// What a market states about its fees (engine/docs/execution.md §5).
    pub struct FeeSchedule {
        /// 10⁻⁶ of shares × (price × (1 − price))^`exponent`: at most 1,000,000.
        pub rate: u32,
        /// 0 to 4.
        pub exponent: u16,
        /// Makers pay nothing.
        pub taker_only: bool,
        /// The part of its fee formula that a maker gets back, in 10⁻⁶: at most 1,000,000.
        pub rebate_rate: u32,
    }
}

impl FeeSchedule {
    pub const RATE_MAX: u32 = 1_000_000;
    pub const EXPONENT_MAX: u16 = 4;
    /// Without a fee.
    pub const FREE: FeeSchedule = FeeSchedule { rate: 0, exponent: 1, taker_only: true, rebate_rate: 0 };

    /// The rate in basis points, half up.
    pub fn bps(&self) -> Bps {
        Bps((self.rate + 50) / 100)
    }

    /// Whether every number is within its bounds.
    pub fn is_valid(&self) -> bool {
        let FeeSchedule { rate, exponent, taker_only: _, rebate_rate } = *self;
        rate <= Self::RATE_MAX && exponent <= Self::EXPONENT_MAX && rebate_rate <= Self::RATE_MAX
    }
}

impl Category {
    /// All categories, in the order of the fee table.
    pub const ALL: [Category; 12] = [
        Category::Sports,
        Category::Finance,
        Category::Politics,
        Category::Mentions,
        Category::Tech,
        Category::Economics,
        Category::Culture,
        Category::Weather,
        Category::Other,
        Category::Crypto,
        Category::Geopolitics,
        Category::Unknown,
    ];

    /// The API's name; `None` for [`Category::Unknown`].
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Category::Sports => "sports",
            Category::Finance => "finance",
            Category::Politics => "politics",
            Category::Mentions => "mentions",
            Category::Tech => "tech",
            Category::Economics => "economics",
            Category::Culture => "culture",
            Category::Weather => "weather",
            Category::Other => "other",
            Category::Crypto => "crypto",
            Category::Geopolitics => "geopolitics",
            Category::Unknown => return None,
        })
    }

    /// The category of that exact lower-case name.
    pub fn named(name: &str) -> Option<Category> {
        Category::ALL.into_iter().find(|category| category.name() == Some(name))
    }

    /// The default taker rate; 5 percent for an unknown category.
    pub fn default_taker_rate(self) -> Bps {
        Bps(match self {
            Category::Sports => 300,
            Category::Finance | Category::Politics | Category::Mentions | Category::Tech => 400,
            Category::Economics | Category::Culture | Category::Weather | Category::Other | Category::Unknown => 500,
            Category::Crypto => 700,
            Category::Geopolitics => 0,
        })
    }
}

impl Asset {
    pub const ALL: [Asset; 6] = [Asset::Btc, Asset::Eth, Asset::Sol, Asset::Xrp, Asset::Spx, Asset::Ndx];

    pub fn name(self) -> &'static str {
        match self {
            Asset::Btc => "BTC",
            Asset::Eth => "ETH",
            Asset::Sol => "SOL",
            Asset::Xrp => "XRP",
            Asset::Spx => "SPX",
            Asset::Ndx => "NDX",
        }
    }
}

impl Interval {
    pub const ALL: [Interval; 5] =
        [Interval::FiveMinutes, Interval::FifteenMinutes, Interval::Hour, Interval::FourHours, Interval::Daily];

    pub fn name(self) -> &'static str {
        match self {
            Interval::FiveMinutes => "5M",
            Interval::FifteenMinutes => "15M",
            Interval::Hour => "1H",
            Interval::FourHours => "4H",
            Interval::Daily => "daily",
        }
    }
}
