//! Shared by live adapters and replay: one translator per venue, and the dispatch of records to them.

use super::FeedUpdate;
use super::category::Names;
use super::skips::Skips;
use super::tape::{Origin, Record};
use engine::market::Market;
use engine::market::terms::{Listing, Resolution};
use engine::time::Timestamp;
use std::sync::Arc;

/// Where the messages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The venue itself: its messages are complete, and its adapter makes the requests of the translator.
    Live,
    /// A recording, which may hold a part of the messages. Nothing can be requested.
    Recording,
}

/// Translates the messages of one venue. Without sockets and clock, so that a recording translates as the venue did.
/// What cannot be used is counted and dropped; no message may panic.
pub trait Translator: Send {
    /// Appends the updates of a text frame.
    fn frame(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>);

    /// Appends the updates of a REST response: the URL of the call, its status and its body.
    fn rest(&mut self, answer: (&str, u16, &str), connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>);

    /// The connection was interrupted: its books are unreliable until their next snapshots.
    fn gap(&mut self, connection: u8, reason: &str, updates: &mut Vec<FeedUpdate>);

    /// Adds a market of the journal, with its row of [`Translator::kept_rows`] of the run before, if any. Later messages
    /// are changes of it.
    fn recall(&mut self, market: &Market, kept: Option<&str>);

    /// These tokens are no longer followed, or are subscribed again: their next books are applied even if they are equal
    /// to the last ones.
    fn forget(&mut self, tokens: &[String; 2]) {
        let _ = tokens;
    }

    /// Markets that messages announced since the last call, whose rows of the catalogue are to be requested.
    fn newly_announced(&mut self) -> Vec<&Listing> {
        Vec::new()
    }

    /// All announced markets whose rows have not come yet.
    fn announced(&self) -> Vec<&Listing> {
        Vec::new()
    }

    /// What a start without the venue needs beyond the journal: JSON objects with the venue's id of the market in
    /// `ticker`, sorted by it. Stored in the file `kept` of the registration.
    fn kept_rows(&self) -> Vec<(&str, String)> {
        Vec::new()
    }

    /// All that later messages depend on, for [`Translator::restore`]; `None`: it is too large.
    fn save(&self) -> Option<Vec<u8>>;

    /// Continues after the messages before [`Translator::save`], on a translator without markets. False: the bytes are
    /// not such; the translator is as it was.
    fn restore(&mut self, saved: &[u8]) -> bool;

    /// Lists the markets of a metadata file beside a recording.
    fn metadata(&mut self, text: &str) -> Vec<Dated> {
        let _ = text;
        Vec::new()
    }

    /// Applies a change of such a market, by the venue's id.
    fn change(&mut self, id: &str, change: Change, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let _ = (id, change, at, updates);
    }
}

/// A listed market of a metadata file and its changes by time.
pub struct Dated {
    /// The venue's id.
    pub id: String,
    pub listing: Listing,
    pub changes: Vec<(Timestamp, Change)>,
}

/// A change in a market's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Open,
    Close,
    Settle(Resolution),
}

/// The translators of all venues, in the order of their rows.
pub struct Translators(Vec<Box<dyn Translator>>);

impl Translators {
    /// Translators without markets; they count what they skip in `skips`.
    pub fn new(source: Source, skips: &Arc<Skips>, names: &Names) -> Translators {
        let make = |origin: Origin| (origin.registration().translator)(source, skips.clone(), names.clone());
        Translators(Origin::all().map(make).collect())
    }

    /// The translator of a venue.
    pub fn of(&mut self, origin: Origin) -> &mut dyn Translator {
        &mut *self.0[origin.index()]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Translator> {
        self.0.iter().map(|translator| &**translator)
    }

    /// [`Translator::save`] of all, by name of the venue; `None`: one is too large.
    pub fn save(&self) -> Option<Vec<(String, Vec<u8>)>> {
        let saved =
            |(origin, translator): (Origin, &dyn Translator)| Some((origin.name().to_owned(), translator.save()?));
        Origin::all().zip(self.iter()).map(saved).collect()
    }

    /// [`Translator::restore`] of all. False: a venue is unknown, or its bytes are not such.
    pub fn restore(&mut self, saved: &[(String, Vec<u8>)]) -> bool {
        saved.iter().all(|(name, bytes)| Origin::named(name).is_some_and(|origin| self.of(origin).restore(bytes)))
    }

    /// Appends the updates of a record that arrived on this connection at this time.
    pub fn translate(&mut self, record: &Record<'_>, connection: u8, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        match record {
            Record::Frame { origin, body, .. } => self.of(*origin).frame(body, connection, at, updates),
            Record::Answer { origin, url, status, body, .. } => {
                self.of(*origin).rest((url, *status, body), connection, at, updates);
            }
            Record::Gap { origin, reason, .. } => self.of(*origin).gap(connection, reason, updates),
        }
    }
}
