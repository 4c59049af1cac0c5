//! The price list: plans, and what is bought once (gateway/docs/billing.md §2, §3).

use crate::amount::Cash;
use crate::bytes::leaf;
use crate::time::DAY;
use crate::user::Tier;
use wincode::{SchemaRead, SchemaWrite};

/// What a subscription is for (gateway/docs/billing.md §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Product {
    Pro,
    ProPlus,
    BacktestingStarter,
    BacktestingPro,
}

/// How often a subscription is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum BillingInterval {
    Monthly,
    Yearly,
}

/// What is bought once (gateway/docs/billing.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Sku {
    Topup500,
    Topup2000,
    Topup10000,
    MainReset,
}

leaf! { Product, BillingInterval, Sku }

impl Product {
    pub const ALL: [Product; 4] =
        [Product::Pro, Product::ProPlus, Product::BacktestingStarter, Product::BacktestingPro];

    /// Its name on the API.
    pub fn name(self) -> &'static str {
        match self {
            Product::Pro => "pro",
            Product::ProPlus => "pro_plus",
            Product::BacktestingStarter => "backtesting_starter",
            Product::BacktestingPro => "backtesting_pro",
        }
    }

    /// Whether it lifts the limits of the simulation only.
    pub fn is_simulation(self) -> bool {
        matches!(self, Product::BacktestingStarter | Product::BacktestingPro)
    }

    /// The plan whose limits it gives.
    pub fn tier(self) -> Tier {
        match self {
            Product::Pro | Product::BacktestingStarter => Tier::Pro,
            Product::ProPlus | Product::BacktestingPro => Tier::ProPlus,
        }
    }
}

impl BillingInterval {
    pub const ALL: [BillingInterval; 2] = [BillingInterval::Monthly, BillingInterval::Yearly];

    /// Its name on the API.
    pub fn name(self) -> &'static str {
        match self {
            BillingInterval::Monthly => "monthly",
            BillingInterval::Yearly => "yearly",
        }
    }

    /// The longest such period, µs.
    pub(super) fn longest(self) -> u64 {
        match self {
            BillingInterval::Monthly => 31 * DAY,
            BillingInterval::Yearly => 366 * DAY,
        }
    }
}

impl Sku {
    pub const ALL: [Sku; 4] = [Sku::Topup500, Sku::Topup2000, Sku::Topup10000, Sku::MainReset];

    /// Its name on the API.
    pub fn name(self) -> &'static str {
        match self {
            Sku::Topup500 => "topup_500",
            Sku::Topup2000 => "topup_2000",
            Sku::Topup10000 => "topup_10000",
            Sku::MainReset => "topup_main_reset",
        }
    }

    /// Its price in US cents.
    pub fn cents(self) -> u64 {
        match self {
            Sku::Topup500 | Sku::MainReset => 299,
            Sku::Topup2000 => 499,
            Sku::Topup10000 => 999,
        }
    }

    /// The cash that it adds to a SANDBOX wallet; zero for what adds none.
    pub fn credit(self) -> Cash {
        Cash::from_dollars(match self {
            Sku::Topup500 => 500,
            Sku::Topup2000 => 2_000,
            Sku::Topup10000 => 10_000,
            Sku::MainReset => 0,
        })
    }
}
