//! Translation of messages into updates.

mod books;
mod catalogue;
mod fees;
mod recorded;

use super::*;
use crate::skips::{Skip, Skips};
use crate::suite::{Witness, broken, recorded};
use crate::{FeedUpdate, Frame};
use engine::amount::{Price, Qty, TickSize};
use engine::id::Outcome;
use engine::market::terms::{Asset, Category, Interval, Listing, MarketState, Resolution};
use engine::time::Timestamp;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

const EVENTS: &str = include_str!("fixtures/gamma_events.json");
const WINDOW: &str = include_str!("fixtures/gamma_window.json");
const CLOB: &str = include_str!("fixtures/clob_market.json");
const ADAMS: &str = "0xaa00000000000000000000000000000000000000000000000000000000000001";
/// 2026-08-29.
const NOW: Timestamp = Timestamp(1_788_000_000_000_000);

struct World {
    translate: Translate,
    skips: Arc<Skips>,
}

impl World {
    fn new() -> World {
        let skips = Arc::new(Skips::default());
        World { translate: Translate::new(skips.clone(), Default::default()), skips }
    }

    fn listed() -> World {
        let mut world = World::new();
        world.rest("https://gamma-api.example/events?limit=100", EVENTS);
        world
    }

    /// With an old, empty book of each token, to which changes can be applied.
    fn with_books(mut self) -> World {
        let tokens: Vec<_> = self.translate.by_token.keys().cloned().collect();
        for token in tokens {
            self.frame(&format!(r#"{{"event_type":"book","asset_id":"{token}","timestamp":"1","bids":[],"asks":[]}}"#));
        }
        self
    }

    fn frame(&mut self, text: &str) -> Vec<FeedUpdate> {
        let mut updates = Vec::new();
        self.translate.frame(text, 3, NOW, &mut updates);
        updates
    }

    fn rest(&mut self, url: &str, body: &str) -> Vec<FeedUpdate> {
        let mut updates = Vec::new();
        self.translate.rest((url, 200, body), 0, NOW, &mut updates);
        updates
    }
}

fn listings(updates: &[FeedUpdate]) -> Vec<(&Listing, MarketState)> {
    let listed = updates.iter().filter_map(|update| match update {
        FeedUpdate::Listed { listing, state } => Some((&**listing, *state)),
        _ => None,
    });
    listed.collect()
}

/// A short form of updates.
fn brief(updates: &[FeedUpdate]) -> String {
    let words = updates.iter().map(|update| match update {
        FeedUpdate::Listed { state, .. } => format!("listed {state:?}"),
        FeedUpdate::StateChanged { state, .. } => format!("{state:?}"),
        FeedUpdate::EndChanged { .. } => "end".into(),
        FeedUpdate::TickChanged { tick, .. } => format!("tick {}", tick.0),
        FeedUpdate::Resolved { resolution, .. } => format!("{resolution:?}"),
        FeedUpdate::BookDelta { token, levels, .. } => format!("{token}:{}", levels.len()),
        FeedUpdate::BookSnapshot { token, bids, asks, .. } => format!("{token}={}/{}", bids.len(), asks.len()),
        FeedUpdate::LastTrade { token, .. } => format!("trade {token}"),
        FeedUpdate::SidelessTrade { token, .. } => format!("sideless trade {token}"),
        FeedUpdate::Gap { .. } => "gap".into(),
        FeedUpdate::Left { .. } => "left".into(),
        FeedUpdate::Fees { schedule: Some(of), .. } => format!("fees {} of {}", of.rate, of.rebate_rate),
        FeedUpdate::Fees { schedule: None, .. } => "fees unusable".into(),
        FeedUpdate::Figures { .. } => "figures".into(),
        FeedUpdate::Stated { .. } => "stated".into(),
        FeedUpdate::LastPrice { token, price, decimals, .. } => format!("last {token} {} {decimals:?}", price.0),
        FeedUpdate::Strike { .. } => "strike".into(),
        FeedUpdate::Top { token, bid, ask } => {
            let units = |price: &Option<Price>| price.map_or("none".into(), |price| price.0.to_string());
            format!("top {token} {}/{}", units(bid), units(ask))
        }
        FeedUpdate::Spot { asset, family, micros, at } => {
            format!("{} {family:?} {micros} at {}", asset.name(), at.millis())
        }
    });
    words.filter(|word| word != "figures" && word != "stated").collect::<Vec<_>>().join(" ")
}
