//! The reports of several sources about the end of a market, and the resulting state (gateway/docs/live-venues.md
//! §2.3).
//!
//! A market is resolved when it is closed, its prices are exactly one and zero (or half and half), a source beside the
//! prices confirms it, and no source disagrees. Prices near one and zero alone settle nothing.

use engine::id::Outcome;
use engine::market::terms::{MarketState, Resolution};

/// Reports about the end of a market, by source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// Whether Gamma and the order book's service report it as closed.
    pub(super) gamma_closed: bool,
    pub(super) clob_closed: bool,
    /// Final prices that each of them reports.
    pub(super) gamma_prices: Option<Resolution>,
    pub(super) clob_prices: Option<Resolution>,
    /// The oracle has settled, or the market has resolved automatically.
    pub(super) settled: bool,
    /// The token that the order book's service marks as winner.
    pub(super) clob_winner: Option<Outcome>,
    /// The token named in a `market_resolved` message.
    pub(super) announced: Option<Outcome>,
}

/// The resulting state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Open,
    Closed,
    /// Closed, and sources report different results.
    Disputed,
    Resolved(Resolution),
}

impl Standing {
    pub(super) fn verdict(&self) -> Verdict {
        let winners = [self.clob_winner, self.announced].map(|winner| winner.map(Resolution::Winner));
        let prices = [self.gamma_prices, self.clob_prices];
        if !self.gamma_closed && !self.clob_closed && self.announced.is_none() {
            return Verdict::Open;
        }
        let confirmed = self.settled || winners.iter().any(Option::is_some);
        let mut claims = prices.into_iter().chain(winners).flatten();
        let Some(claim) = claims.next() else { return Verdict::Closed };
        match (claims.all(|other| other == claim), confirmed && prices.iter().any(Option::is_some)) {
            (false, _) => Verdict::Disputed,
            (true, true) => Verdict::Resolved(claim),
            (true, false) => Verdict::Closed,
        }
    }
}

/// The state of a market that is not closed.
pub(super) fn open_state(accepts_orders: bool, abandoned: bool, active: bool) -> MarketState {
    match () {
        _ if !accepts_orders || abandoned => MarketState::Halted,
        _ if active => MarketState::Active,
        _ => MarketState::Upcoming,
    }
}

/// The result that final prices mean; prices in 10⁻⁶ dollars.
pub(super) fn final_prices(prices: [u64; 2]) -> Option<Resolution> {
    match prices {
        [1_000_000, 0] => Some(Resolution::Winner(Outcome::First)),
        [0, 1_000_000] => Some(Resolution::Winner(Outcome::Second)),
        [500_000, 500_000] => Some(Resolution::Split),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_market_resolves_only_closed_confirmed_and_undisputed() {
        const YES: Resolution = Resolution::Winner(Outcome::First);
        const NO: Resolution = Resolution::Winner(Outcome::Second);
        let closed = Standing { gamma_closed: true, ..Standing::default() };
        let priced = Standing { gamma_prices: Some(YES), ..closed };
        for (standing, verdict) in [
            (Standing::default(), Verdict::Open),
            (Standing { gamma_prices: Some(YES), settled: true, ..Standing::default() }, Verdict::Open),
            (closed, Verdict::Closed),
            (priced, Verdict::Closed),
            (Standing { settled: true, ..closed }, Verdict::Closed),
            (Standing { settled: true, ..priced }, Verdict::Resolved(YES)),
            (Standing { clob_winner: Some(Outcome::First), ..priced }, Verdict::Resolved(YES)),
            (Standing { announced: Some(Outcome::First), ..priced }, Verdict::Resolved(YES)),
            (Standing { announced: Some(Outcome::First), ..Standing::default() }, Verdict::Closed),
            (Standing { announced: Some(Outcome::Second), ..priced }, Verdict::Disputed),
            (Standing { settled: true, clob_prices: Some(NO), ..priced }, Verdict::Disputed),
            (
                Standing { settled: true, gamma_prices: Some(Resolution::Split), ..closed },
                Verdict::Resolved(Resolution::Split),
            ),
            (
                Standing { gamma_prices: Some(Resolution::Split), clob_winner: Some(Outcome::First), ..closed },
                Verdict::Disputed,
            ),
            (
                Standing {
                    clob_closed: true,
                    clob_prices: Some(NO),
                    clob_winner: Some(Outcome::Second),
                    ..Standing::default()
                },
                Verdict::Resolved(NO),
            ),
        ] {
            assert_eq!(standing.verdict(), verdict, "{standing:?}");
        }
        for (prices, expected) in [
            ([1_000_000, 0], Some(YES)),
            ([0, 1_000_000], Some(NO)),
            ([500_000, 500_000], Some(Resolution::Split)),
            ([0, 0], None),
            ([999_500, 500], None),
        ] {
            assert_eq!(final_prices(prices), expected);
        }
    }
}
