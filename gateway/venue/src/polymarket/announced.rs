//! Markets that a `new_market` message announces (upstream.md §3.2). It tells neither the kind of fee nor whether the
//! market is one of several that exclude each other, and what is listed stays listed as it was: so where a catalogue can
//! be asked, its row is waited for. A recording may have none; there the message lists the market (§7).

use super::dto;
use super::listing;
use super::standing::{Standing, open_state};
use super::translate::Translate;
use crate::FeedUpdate;
use crate::bounds;
use engine::market::terms::{Category, Listing};
use std::collections::VecDeque;

/// Announced markets that are waited for at most; the oldest is given up for the newest, and found by the crawl.
const WAITING_MAX: usize = 1_024;

/// What was announced and is not listed.
#[derive(Default)]
pub(super) struct Announced {
    waits: bool,
    /// Oldest first.
    listings: VecDeque<Listing>,
    /// How many of the last ones nobody was told of.
    new: usize,
}

impl Translate {
    /// New markets are listed by rows of the catalogue alone, which is asked for them.
    pub fn wait_for_rows(&mut self) {
        self.announced.waits = true;
    }

    /// Markets that the catalogue is to be asked for, since the last call.
    pub fn newly_announced(&mut self) -> impl Iterator<Item = &Listing> {
        let new = std::mem::take(&mut self.announced.new);
        let listings = &self.announced.listings;
        listings.iter().skip(listings.len() - new)
    }

    /// All of those whose row has not come yet.
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
                self.list(listing, tick, state, Standing::default(), updates);
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

    /// A row lists the market: what was announced of it is of no more use, but for tags that the row lacks.
    pub(super) fn take_in(&mut self, listing: &mut Listing) {
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
