//! Markets that a `new_market` message announces (gateway/docs/live-venues.md §3.2). The message has neither the fee
//! type nor the negative-risk flag, and a listing is final, so the market's catalogue row is awaited if a catalogue can
//! be read. A recording may have none; there the message lists the market (gateway/docs/live-venues.md §7).

use super::dto;
use super::fees;
use super::listing;
use super::standing::{Standing, open_state};
use super::translate::Translate;
use crate::FeedUpdate;
use crate::bounds;
use engine::market::terms::{Category, Listing};
use std::collections::VecDeque;

/// Most announced markets that wait for their rows; the oldest is dropped for the newest, and found by the crawl.
const WAITING_MAX: usize = 1_024;

/// Announced markets that are not listed yet.
#[derive(Default)]
pub(super) struct Announced {
    waits: bool,
    /// Oldest first.
    listings: VecDeque<Listing>,
    /// How many of the newest were not returned by [`Translate::newly_announced`] yet.
    new: usize,
}

impl Translate {
    /// Lists new markets by catalogue rows only.
    pub fn wait_for_rows(&mut self) {
        self.announced.waits = true;
    }

    /// Markets announced since the last call, whose rows are to be requested.
    pub fn newly_announced(&mut self) -> impl Iterator<Item = &Listing> {
        let new = std::mem::take(&mut self.announced.new);
        let listings = &self.announced.listings;
        listings.iter().skip(listings.len() - new)
    }

    /// All announced markets whose rows have not come yet.
    pub fn announced(&self) -> impl Iterator<Item = &Listing> {
        self.announced.listings.iter()
    }

    pub(super) fn new_market(&mut self, message: &dto::Message<'_>, updates: &mut Vec<FeedUpdate>) {
        let tick = listing::tick(message.order_price_min_tick_size);
        let state = open_state(true, false, message.active.flag() != Some(false));
        let listing = listing::of_message(message, &self.names);
        match listing.and_then(|listing| bounds::bounded(listing, &self.skips)) {
            Ok(listing) if self.announced.waits => {
                if !self.by_condition.contains_key(&listing.condition) {
                    self.announced.put(listing);
                }
            }
            Ok(listing) => {
                if let Some(number) = self.list(listing, tick, state, Standing::default(), updates) {
                    self.state_fees(number, fees::Source::Message, fees::of_message(message), updates);
                }
            }
            Err(kind) => self.skips.count(kind, || format!("new market {message:?}")),
        }
    }
}

impl Announced {
    fn put(&mut self, listing: Listing) {
        if self.listings.iter().any(|known| known.condition == listing.condition) {
            return;
        }
        if self.listings.len() >= WAITING_MAX {
            self.listings.pop_front();
        }
        self.listings.push_back(listing);
        self.new = (self.new + 1).min(self.listings.len());
    }

    /// The market is listed by a row: drops its announcement, after taking over the tags that the row lacks.
    pub(super) fn merge_into(&mut self, listing: &mut Listing) {
        let Some(at) = self.listings.iter().position(|known| known.condition == listing.condition) else { return };
        if at + self.new >= self.listings.len() {
            self.new -= 1;
        }
        let Some(known) = self.listings.remove(at) else { return };
        if listing.tags.is_empty() {
            listing.tags = known.tags;
            if listing.category == Category::Other {
                listing.category = known.category;
            }
        }
    }
}
