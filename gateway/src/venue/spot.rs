//! Prices of what up-or-down markets are about. There is one source: the synthetic venue's own underlying, which decides
//! its windows as Chainlink's feed decides the real ones, and bears that name so that clients take it. A recording has
//! none: it tells of markets only.

use super::synthetic::Underlying;
use super::{VenueConfig, VenueKind};
use engine::market::terms::Asset;
use engine::time::{SECOND, Timestamp};

/// Assets whose price is shown.
pub const ASSETS: [Asset; 4] = [Asset::Btc, Asset::Eth, Asset::Sol, Asset::Xrp];
/// The one source's label.
pub const SOURCE: &str = "chainlink";

/// Where spot prices come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Seed of the synthetic world.
    world: Option<u64>,
}

/// Families of sources that a client may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Chainlink,
    Binance,
}

/// A price of one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpotPrice {
    /// In dollars, in 10⁻⁶.
    pub micros: u64,
    pub at: Timestamp,
}

impl Spot {
    /// The source that goes with the configured venue.
    pub fn of(venue: &VenueConfig) -> Spot {
        Spot { world: (venue.kind == VenueKind::Synthetic).then_some(venue.seed) }
    }

    /// The newest price at `now`; one a second. `None` without a source, or from a family that there is none of.
    pub fn price(&self, asset: Asset, family: Option<Family>, now: Timestamp) -> Option<SpotPrice> {
        if family == Some(Family::Binance) || !ASSETS.contains(&asset) {
            return None;
        }
        let at = Timestamp(now.0 - now.0 % SECOND);
        let dollars = Underlying::new(self.world?, asset).price(at);
        // As fine as what a window must beat.
        let steps: f64 = if dollars < 100.0 { 10_000.0 } else { 100.0 };
        Some(SpotPrice { micros: (dollars * steps).round() as u64 * (1_000_000.0 / steps) as u64, at })
    }

    /// Assets that have a price.
    pub fn assets(&self) -> &'static [Asset] {
        if self.world.is_some() { &ASSETS } else { &[] }
    }
}

impl Family {
    /// The family of that name; `None` for any other.
    pub fn named(name: &str) -> Option<Family> {
        match name {
            "chainlink" | "chainlink_rtds" => Some(Family::Chainlink),
            "binance" | "polymarket_rtds" | "relay_binance" => Some(Family::Binance),
            _ => None,
        }
    }
}

/// The asset of a symbol in any of the forms that clients use: `BTC`, `BTCUSDT`, `btc/usd`.
pub fn asset(symbol: &str) -> Option<Asset> {
    let upper = symbol.trim().to_ascii_uppercase();
    let bare = ["USDT", "USDC", "USD"].into_iter().find_map(|quote| upper.strip_suffix(quote)).unwrap_or(&upper);
    let bare = bare.trim_end_matches(['/', '-', '_']);
    ASSETS.into_iter().find(|asset| asset.name() == bare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn symbols_are_known_in_every_form() {
        let cases = [
            ("BTC", Some(Asset::Btc)),
            ("btc/usd", Some(Asset::Btc)),
            ("BTCUSDT", Some(Asset::Btc)),
            ("ETH-USD", Some(Asset::Eth)),
            (" sol ", Some(Asset::Sol)),
            ("XRPUSDC", Some(Asset::Xrp)),
            ("DOGE", None),
            ("SPX", None),
            ("USD", None),
            ("", None),
        ];
        for (symbol, expected) in cases {
            assert_eq!(asset(symbol), expected, "{symbol:?}");
        }
        println!("symbols: {} cases", cases.len());
    }

    #[test]
    fn only_the_synthetic_world_has_prices() {
        let now = Timestamp(1_790_932_445_700_000);
        let synthetic = Spot::of(&Config::defaults().venue);
        for asset in ASSETS {
            let price = synthetic.price(asset, None, now).expect("it has one");
            assert_eq!(price.at, Timestamp(1_790_932_445_000_000));
            assert_eq!(Some(price), synthetic.price(asset, Some(Family::Chainlink), now.plus(100_000)));
            assert_eq!(None, synthetic.price(asset, Some(Family::Binance), now));
        }
        assert_eq!(synthetic.price(Asset::Spx, None, now), None);
        let replay = Spot::of(&VenueConfig { kind: VenueKind::Replay, ..Config::defaults().venue });
        assert_eq!((replay.price(Asset::Btc, None, now), replay.assets()), (None, &[][..]));
    }
}
