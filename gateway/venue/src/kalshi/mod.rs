//! Kalshi: message shapes and their translation (gateway/docs/live-venues.md §4, §6).

mod book;
mod catalogue;
mod category;
pub mod doctor;
pub mod dto;
mod fees;
mod hot;
mod listing;
pub(crate) mod metadata;
mod recall;
mod saved;
mod seen;
pub mod stream;
pub mod translate;

pub use translate::{Sequence, Translate};

use crate::FeedUpdate;
use crate::adapters::Registration;
use crate::translators::{Change, Dated, Source, Translator};
use engine::market::Market;
use engine::market::terms::Venue;
use engine::time::Timestamp;

/// The row of Kalshi in [`crate::adapters::ADAPTERS`].
pub const ADAPTER: Registration = Registration {
    venue: Venue::Kalshi,
    settings: stream::Settings::ROWS,
    // Its adapter polls the markets that exceed its sockets.
    markets_max: |_| usize::MAX,
    kept: Some("kalshi-grids.ndjson"),
    translator: |source, skips, names| {
        let sequence = match source {
            Source::Live => Sequence::Checked,
            Source::Recording => Sequence::Ignored,
        };
        Box::new(Translate::new(sequence, skips, names))
    },
    adapter: |settings| {
        let follows_fees = settings.follows_fees;
        let settings = stream::Settings::of(&settings.venues);
        let signer = settings.signer()?;
        Ok(Box::new(move |tools, requests| Box::pin(stream::run(settings, signer, follows_fees, tools, requests))))
    },
    examine: |doctor, config| {
        Box::pin(async move {
            doctor::examine(doctor, &stream::Settings::of(&config.live.venues), &config.categories).await
        })
    },
};

impl Translator for Translate {
    fn frame(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        self.frame(text, connection, received, updates);
    }

    fn rest(
        &mut self,
        (url, status, body): (&str, u16, &str),
        _: u8,
        received: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        self.rest(url, status, body, received, updates);
    }

    fn gap(&mut self, connection: u8, reason: &str, updates: &mut Vec<FeedUpdate>) {
        self.gap(connection, reason, updates);
    }

    fn recall(&mut self, market: &Market, kept: Option<&str>) {
        self.recall(market, kept);
    }

    fn save(&self) -> Option<Vec<u8>> {
        self.save()
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        self.restore(saved)
    }

    fn kept_rows(&self) -> Vec<(&str, String)> {
        self.odd_grids()
    }

    fn metadata(&mut self, text: &str) -> Vec<Dated> {
        self.metadata(text)
    }

    fn change(&mut self, id: &str, change: Change, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        self.change(id, change, at, updates);
    }
}

#[cfg(test)]
mod tests;
