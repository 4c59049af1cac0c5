//! Polymarket: message shapes and their translation (gateway/docs/live-venues.md §2, §3).

mod announced;
mod catalogue;
pub mod doctor;
pub mod dto;
mod fees;
mod hash;
mod hot;
mod listing;
mod recall;
mod recent;
mod saved;
mod spot;
mod standing;
pub mod stream;
pub mod translate;

pub use translate::Translate;

use crate::FeedUpdate;
use crate::adapters::Registration;
use crate::translators::{Source, Translator};
use engine::market::Market;
use engine::market::terms::{Listing, Venue};
use engine::time::Timestamp;

/// The row of Polymarket in [`crate::adapters::ADAPTERS`].
pub const ADAPTER: Registration = Registration {
    venue: Venue::Polymarket,
    settings: stream::Settings::ROWS,
    markets_max: |settings| stream::Settings::of(settings).tokens_max / 2,
    kept: None,
    translator: |source, skips, names| {
        let mut translate = Translate::new(skips, names);
        if source == Source::Live {
            // The adapter requests them.
            translate.wait_for_rows();
        }
        Box::new(translate)
    },
    adapter: |settings| {
        let settings = stream::Settings::of(&settings.venues);
        Ok(Box::new(move |tools, requests| Box::pin(stream::run(settings, tools, requests))))
    },
    examine: |doctor, config| {
        Box::pin(async move {
            doctor::examine(doctor, &stream::Settings::of(&config.live.venues)).await;
            Ok(())
        })
    },
};

impl Translator for Translate {
    fn frame(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        self.frame(text, connection, received, updates);
    }

    fn rest(&mut self, answer: (&str, u16, &str), connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        self.rest(answer, connection, received, updates);
    }

    fn gap(&mut self, connection: u8, reason: &str, updates: &mut Vec<FeedUpdate>) {
        self.gap(connection, reason, updates);
    }

    fn recall(&mut self, market: &Market, _: Option<&str>) {
        self.recall(market);
    }

    fn forget(&mut self, tokens: &[String; 2]) {
        self.forget(tokens);
    }

    fn save(&self) -> Option<Vec<u8>> {
        self.save()
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        self.restore(saved)
    }

    fn newly_announced(&mut self) -> Vec<&Listing> {
        self.newly_announced().collect()
    }

    fn announced(&self) -> Vec<&Listing> {
        self.announced().collect()
    }
}

#[cfg(test)]
mod tests;
