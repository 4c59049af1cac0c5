//! Shared by the tests of this package.

use crate::tape::Origin;
use engine::amount::TickSize;
use engine::market::terms::{Category, Listing, Venue};
use engine::time::Timestamp;

/// The live venues that the tests record.
pub(crate) const POLYMARKET: Origin = Origin::of(Venue::Polymarket).expect("a live venue");
pub(crate) const KALSHI: Origin = Origin::of(Venue::Kalshi).expect("a live venue");

/// A market of the synthetic venue.
pub(crate) fn listing(number: u8, tokens: [&str; 2]) -> Listing {
    Listing {
        venue: Venue::Synthetic,
        venue_market_id: number.to_string(),
        condition: format!("0x{}", format!("{number:02x}").repeat(32)),
        tokens: tokens.map(str::to_owned),
        outcomes: ["Yes", "No"].map(str::to_owned),
        slug: format!("market-{number}"),
        question: format!("Market {number}?"),
        description: None,
        image: None,
        label: None,
        category: Category::Weather,
        tags: Vec::new(),
        event: None,
        tick: TickSize(100),
        min_order_size: None,
        neg_risk: false,
        start: None,
        end: Some(Timestamp(1_791_072_000_000_000)),
        updown: None,
        sports: false,
    }
}
