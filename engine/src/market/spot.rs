//! Spot prices of the assets of up-or-down markets: written by the feed, read by all threads. A venue that computes its
//! own prices is called for them instead.

use super::terms::Asset;
use crate::time::{SECOND, Timestamp};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Assets with a spot price.
pub const ASSETS: [Asset; 4] = [Asset::Btc, Asset::Eth, Asset::Sol, Asset::Xrp];
/// Label of the synthetic source, and of the source that decides windows.
pub const SOURCE: &str = "chainlink";
/// A price of this age is stale.
const STALE_AFTER: u64 = 30 * SECOND;

/// The source of spot prices. Cheap to clone: all clones share one board.
#[derive(Clone, Debug)]
pub struct Spot(Source);

#[derive(Clone)]
enum Source {
    /// Computed by the venue for a moment.
    Made(Arc<Made>),
    Board(Arc<RwLock<Board>>),
}

/// The price of an asset at a moment.
type Made = dyn Fn(Asset, Timestamp) -> SpotPrice + Send + Sync;

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Made(_) => f.write_str("Made"),
            Source::Board(board) => board.fmt(f),
        }
    }
}

/// The newest price by asset and family.
type Board = [[Option<SpotPrice>; 2]; ASSETS.len()];

/// Families of sources that a client may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Chainlink,
    Binance,
}

/// A price at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpotPrice {
    /// In dollars, in 10⁻⁶.
    pub micros: u64,
    /// Venue time.
    pub at: Timestamp,
    /// Label of its source.
    pub source: &'static str,
}

impl SpotPrice {
    /// Whether it is too old to use.
    pub fn is_stale(&self, venue_now: Timestamp) -> bool {
        venue_now.since(self.at) > STALE_AFTER
    }
}

impl Spot {
    /// An empty board.
    pub fn board() -> Spot {
        Spot(Source::Board(Arc::default()))
    }

    /// Prices of [`ASSETS`] computed by `price`, all of the family that decides windows.
    pub fn made(price: impl Fn(Asset, Timestamp) -> SpotPrice + Send + Sync + 'static) -> Spot {
        Spot(Source::Made(Arc::new(price)))
    }

    /// Stores a venue's price, unless a newer one is known.
    pub fn tell(&self, asset: Asset, family: Family, micros: u64, at: Timestamp) {
        let (Source::Board(board), Some(row)) = (&self.0, row(asset)) else { return };
        let source = match family {
            Family::Chainlink => "chainlink_rtds",
            Family::Binance => "polymarket_rtds",
        };
        let cell = &mut board.write().unwrap_or_else(PoisonError::into_inner)[row][family as usize];
        if cell.is_none_or(|known| known.at <= at) {
            *cell = Some(SpotPrice { micros, at, source });
        }
    }

    /// The newest price at `now`, of the family that decides windows if both have one. `None` without a source, or from
    /// a family without a price.
    pub fn price(&self, asset: Asset, family: Option<Family>, now: Timestamp) -> Option<SpotPrice> {
        self.prices(asset, family, now).next()
    }

    /// The newest price of each family, or of the given one.
    pub fn prices(&self, asset: Asset, family: Option<Family>, now: Timestamp) -> impl Iterator<Item = SpotPrice> {
        let wanted = move |of: Family| family.is_none_or(|family| family == of);
        [Family::Chainlink, Family::Binance]
            .map(|of| wanted(of).then(|| self.newest(asset, of, now))?)
            .into_iter()
            .flatten()
    }

    fn newest(&self, asset: Asset, family: Family, now: Timestamp) -> Option<SpotPrice> {
        let row = row(asset)?;
        match &self.0 {
            Source::Board(board) => read(board)[row][family as usize],
            Source::Made(_) if family == Family::Binance => None,
            Source::Made(price) => Some(price(asset, now)),
        }
    }

    /// Assets that have a price.
    pub fn assets(&self) -> Vec<Asset> {
        match &self.0 {
            Source::Made(_) => ASSETS.to_vec(),
            Source::Board(board) => {
                let board = read(board);
                let has_price = |row: &[Option<SpotPrice>; 2]| row.iter().any(Option::is_some);
                ASSETS.into_iter().zip(board.iter()).filter(|(_, row)| has_price(row)).map(|(asset, _)| asset).collect()
            }
        }
    }
}

fn read(board: &RwLock<Board>) -> RwLockReadGuard<'_, Board> {
    board.read().unwrap_or_else(PoisonError::into_inner)
}

fn row(asset: Asset) -> Option<usize> {
    ASSETS.iter().position(|known| *known == asset)
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

    #[test]
    fn symbols_are_accepted_in_every_form() {
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
    fn a_board_shows_the_newest_price() {
        use Family::*;
        let board = Spot::board();
        let at = |second: u64| Timestamp::from_secs(1_790_000_000 + second);
        assert_eq!((board.price(Asset::Btc, None, at(0)), board.assets()), (None, vec![]));
        board.tell(Asset::Btc, Binance, 5, at(10));
        board.tell(Asset::Spx, Chainlink, 5, at(10));
        let known = |family| board.price(Asset::Btc, family, at(20)).map(|price| (price.micros, price.source));
        let cases = [
            // stored, then the result of each choice: any, Chainlink, Binance
            (None, Some((5, "polymarket_rtds")), None, Some((5, "polymarket_rtds"))),
            (
                Some((Chainlink, 6, 11)),
                Some((6, "chainlink_rtds")),
                Some((6, "chainlink_rtds")),
                Some((5, "polymarket_rtds")),
            ),
            (
                Some((Chainlink, 7, 9)),
                Some((6, "chainlink_rtds")),
                Some((6, "chainlink_rtds")),
                Some((5, "polymarket_rtds")),
            ),
            (
                Some((Binance, 8, 10)),
                Some((6, "chainlink_rtds")),
                Some((6, "chainlink_rtds")),
                Some((8, "polymarket_rtds")),
            ),
        ];
        for (stored, any, chainlink, binance) in cases {
            if let Some((family, micros, second)) = stored {
                board.clone().tell(Asset::Btc, family, micros, at(second));
            }
            assert_eq!(
                (known(None), known(Some(Chainlink)), known(Some(Binance))),
                (any, chainlink, binance),
                "{stored:?}"
            );
        }
        assert_eq!((board.prices(Asset::Btc, None, at(20)).count(), board.assets()), (2, vec![Asset::Btc]));
        let price = board.price(Asset::Btc, None, at(20)).expect("stored");
        assert_eq!((price.is_stale(at(41)), price.is_stale(at(42))), (false, true));
        println!("a board: {} cases", cases.len());
    }
}
