//! Prices of the underlyings of up-or-down markets. The synthetic venue computes its own. They decide its windows as
//! Chainlink's feed decides the real ones, and carry that source name, so that clients accept them. The feed publishes
//! the prices of live venues and recordings.

use super::synthetic::Underlying;
use super::{VenueConfig, VenueKind};
use engine::market::spot::{SOURCE, Spot, SpotPrice};
use engine::market::terms::Asset;
use engine::time::{SECOND, Timestamp};

/// The source of prices for the configured venue.
pub fn of(venue: &VenueConfig) -> Spot {
    match venue.kind {
        VenueKind::Synthetic => made(venue.seed),
        VenueKind::Replay | VenueKind::Live(_) => Spot::board(),
    }
}

/// Prices of the synthetic world with this seed, one per second.
pub fn made(seed: u64) -> Spot {
    Spot::made(move |asset: Asset, now: Timestamp| {
        let at = Timestamp(now.0 - now.0 % SECOND);
        let dollars = Underlying::new(seed, asset).price(at);
        // With the precision of a window's threshold.
        let steps: f64 = if dollars < 100.0 { 10_000.0 } else { 100.0 };
        let micros = (dollars * steps).round() as u64 * (1_000_000.0 / steps) as u64;
        SpotPrice { micros, at, source: SOURCE }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::market::spot::{ASSETS, Family};

    #[test]
    fn the_synthetic_world_has_prices_of_its_own() {
        let now = Timestamp(1_790_932_445_700_000);
        let synthetic = made(1);
        for asset in ASSETS {
            let price = synthetic.price(asset, None, now).expect("a price");
            assert_eq!((price.at, price.source), (Timestamp(1_790_932_445_000_000), "chainlink"));
            assert_eq!(Some(price), synthetic.price(asset, Some(Family::Chainlink), now.plus(100_000)));
            assert_eq!(None, synthetic.price(asset, Some(Family::Binance), now));
            synthetic.tell(asset, Family::Chainlink, 1, now.plus(SECOND));
            assert_eq!(Some(price), synthetic.price(asset, None, now), "a published price has no effect");
        }
        assert_eq!(synthetic.price(Asset::Spx, None, now), None);
    }
}
