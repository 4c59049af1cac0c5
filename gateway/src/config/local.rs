//! `[local]`: what accounts get that addresses make on a server which only its own machine reaches.

use super::source::Source;
use super::{Local, TIERS};
use engine::amount::Cash;
use engine::user::Tier;
use wire::decimal::{self, Decimal};

/// Most USD that a new wallet begins with.
const BALANCE_MAX: Cash = Cash::from_dollars(1_000_000_000);

pub(super) fn local(source: &mut Source) -> Local {
    Local {
        tier: source.parsed(
            "local.tier",
            Tier::Enterprise,
            "free, pro, pro_plus or enterprise",
            |text| TIERS.iter().find(|(_, name)| *name == text).map(|(tier, _)| *tier),
            |chosen| TIERS.iter().find(|(tier, _)| tier == chosen).map_or("", |(_, name)| *name).to_owned(),
        ),
        balance: source.parsed(
            "local.balance",
            Cash::from_dollars(25_000),
            "a text of USD from 0 to 1000000000 with at most six decimals, like 25000.00",
            |text| {
                let cash = Decimal::parse(text).ok().and_then(Decimal::cash_exact);
                cash.filter(|cash| (Cash::ZERO..=BALANCE_MAX).contains(cash))
            },
            |cash| decimal::text(|out| decimal::money(out, *cash)),
        ),
    }
}
