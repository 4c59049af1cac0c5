//! The fees of a market, which its series states (gateway/docs/live-venues.md §4.1): quadratic ones are
//! 0.07 × multiplier × price × (1 − price) a contract. Other kinds are not supported.

use super::dto;
use super::translate::Translate;
use crate::FeedUpdate;
use crate::fees::{Statement, millionths};
use crate::skips::Skip;
use engine::market::terms::FeeSchedule;

/// The rate of multiplier 1, in 10⁻⁶.
const RATE: u64 = 70_000;

/// What a series states.
pub(super) fn of_series(series: &dto::Series<'_>) -> Statement {
    let Some(kind) = series.fee_type.filled() else { return Statement::Nothing };
    if !kind.starts_with("quadratic") {
        return Statement::Unusable;
    }
    let read = || {
        let product = RATE * u64::from(millionths(series.fee_multiplier)?);
        let rate = product.is_multiple_of(1_000_000).then_some(product / 1_000_000)?;
        let schedule = FeeSchedule { rate: u32::try_from(rate).ok()?, ..FeeSchedule::FREE };
        schedule.is_valid().then_some(schedule)
    };
    read().map_or(Statement::Unusable, Statement::Is)
}

impl Translate {
    /// Stores the fees and the category of a series; updates name its markets that have other fees now.
    pub(super) fn learn_series(&mut self, ticker: &str, series: &dto::Series<'_>, updates: &mut Vec<FeedUpdate>) {
        let ticker = series.ticker.owned().unwrap_or_else(|| ticker.to_owned());
        let fees = of_series(series);
        if fees == Statement::Unusable {
            self.skips.count(Skip::UnusableFees, || format!("series {ticker}: {series:?}"));
        }
        // Without a category it counts as other.
        self.series.insert(ticker.clone(), series.category.owned().unwrap_or_default());
        let known = self.fees.entry(ticker.clone()).or_default();
        *known = fees.or(*known);
        let markets = self.markets.iter().filter(|(_, market)| market.series.as_deref() == Some(&*ticker));
        let mut markets: Vec<String> = markets.map(|(market, _)| market.clone()).collect();
        markets.sort_unstable();
        markets.iter().for_each(|market| self.state_fees(market, updates));
    }

    /// Notes the series of a market, by its event.
    pub(super) fn note_series(&mut self, ticker: &str, event: &str) {
        let Some(series) = self.events.get(event).and_then(|event| event.series.clone()) else { return };
        if let Some(market) = self.markets.get_mut(ticker) {
            market.series = Some(series);
        }
    }

    /// An update if the fees of a market are known and have changed.
    pub(super) fn state_fees(&mut self, ticker: &str, updates: &mut Vec<FeedUpdate>) {
        let Some(market) = self.markets.get_mut(ticker).filter(|market| market.resolved.is_none()) else { return };
        let stated = market.series.as_ref().and_then(|series| self.fees.get(series)).copied().unwrap_or_default();
        if let Some(schedule) = stated.schedule()
            && market.fees != stated
        {
            market.fees = stated;
            updates.push(FeedUpdate::Fees { condition: market.condition.clone(), schedule });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loose::Loose;

    #[test]
    fn only_quadratic_fees_with_a_fitting_multiplier_are_used() {
        use Statement::{Nothing, Unusable};
        let is = |rate| Statement::Is(FeeSchedule { rate, ..FeeSchedule::FREE });
        let cases = [
            ("\"quadratic\"", "1", is(70_000)),
            ("\"quadratic\"", "0.5", is(35_000)),
            ("\"quadratic_with_maker_fees\"", "\"1.0\"", is(70_000)),
            ("\"quadratic\"", "0", is(0)),
            ("\"quadratic\"", "14", is(980_000)),
            ("\"quadratic\"", "0.0001", is(7)),
            ("", "1", Nothing),
            ("null", "", Nothing),
            ("\"\"", "1", Nothing),
            ("\"flat\"", "1", Unusable),
            ("\"linear_quadratic\"", "1", Unusable),
            ("\"quadratic\"", "", Unusable),
            ("\"quadratic\"", "-1", Unusable),
            ("\"quadratic\"", "15", Unusable),
            ("\"quadratic\"", "0.00001", Unusable),
            ("\"quadratic\"", "1e30", Unusable),
            ("\"quadratic\"", "[1]", Unusable),
            ("\"quadratic\"", "\"one\"", Unusable),
        ];
        for (kind, multiplier, expected) in cases {
            let (fee_type, fee_multiplier) = (Loose::of(kind), Loose::of(multiplier));
            let series = dto::Series { fee_type, fee_multiplier, ..dto::Series::default() };
            assert_eq!(of_series(&series), expected, "{kind} {multiplier}");
        }
        println!("fees of series: {} cases", cases.len());
    }
}
