//! Messages of venues, and lines of recordings.

use engine::amount::Price;
use engine::time::Timestamp;
use std::sync::Arc;
use venue::category::Names;
use venue::skips::Skips;
use venue::tape::Record;
use venue::translators::{Source, Translators};
use venue::{FeedUpdate, kalshi, polymarket};

const NOW: Timestamp = Timestamp(1_790_000_000_000_000);

/// Markets in the messages of the corpus.
const GAMMA: &str = include_str!("../corpus/polymarket/gamma");
const KALSHI: &str = include_str!("../corpus/kalshi/events");

/// Invariants of translated updates.
fn check(updates: &[FeedUpdate]) {
    let inside = |price: Price| price >= Price::LOWEST && price <= Price::HIGHEST;
    for update in updates {
        match update {
            FeedUpdate::BookSnapshot { bids, asks, .. } => {
                assert!(bids.iter().chain(asks).all(|(price, _)| inside(*price)), "{update:?}");
                assert!(bids.windows(2).all(|two| two[0].0 >= two[1].0), "best first: {update:?}");
                assert!(asks.windows(2).all(|two| two[0].0 <= two[1].0), "best first: {update:?}");
            }
            FeedUpdate::BookDelta { levels, .. } => {
                assert!(levels.iter().all(|(_, price, _)| inside(*price)), "{update:?}");
            }
            FeedUpdate::Listed { listing, .. } => assert!(!listing.condition.is_empty()),
            FeedUpdate::Fees { schedule, .. } => assert!(schedule.is_none_or(|of| of.is_valid()), "{update:?}"),
            _ => {}
        }
    }
}

fn of_polymarket() -> polymarket::Translate {
    polymarket::Translate::new(Arc::new(Skips::default()), Names::default())
}

fn of_kalshi(sequence: kalshi::Sequence) -> kalshi::Translate {
    kalshi::Translate::new(sequence, Arc::new(Skips::default()), Names::default())
}

/// A frame, and an answer of each kind.
pub fn polymarket(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (mut translate, mut updates) = (of_polymarket(), Vec::new());
    translate.rest(("/events", 200, GAMMA), 0, NOW, &mut updates);
    for line in text.split('\n') {
        translate.frame(line, 0, NOW, &mut updates);
    }
    for path in ["/events", "/markets", "/clob-markets/x", "/book", "/books", "/markets/slug/x"] {
        translate.rest((path, 200, text), 0, NOW, &mut updates);
    }
    translate.gap(0, "the end", &mut updates);
    check(&updates);
}

/// A frame, and an answer of each kind.
pub fn kalshi(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for sequence in [kalshi::Sequence::Checked, kalshi::Sequence::Ignored] {
        let (mut translate, mut updates) = (of_kalshi(sequence), Vec::new());
        translate.rest("/trade-api/v2/events", 200, KALSHI, NOW, &mut updates);
        for line in text.split('\n') {
            translate.frame(line, 0, NOW, &mut updates);
        }
        for path in ["/events", "/events/X", "/markets", "/markets/X", "/series/X", "/markets/X/orderbook"] {
            translate.rest(path, 200, text, NOW, &mut updates);
        }
        translate.gap(0, "the end", &mut updates);
        check(&updates);
    }
}

/// Lines of a recording, through the translators of all venues.
pub fn tape(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let skips = Arc::new(Skips::default());
    let (mut translators, mut updates) = (Translators::new(Source::Recording, &skips, &Names::default()), Vec::new());
    for line in text.split('\n') {
        let Some(record) = Record::parse(line) else { continue };
        translators.translate(&record, 0, NOW, &mut updates);
    }
    check(&updates);
}
