//! A hash of what a recording says about the markets of a file. Files, their order and other markets do not change it.

use engine::book::BookSide;
use engine::time::Timestamp;
use sha2::{Digest as _, Sha256};
use venue::{FeedUpdate, Level};

/// The hash so far.
#[derive(Default)]
pub(super) struct TapeDigest(Sha256);

impl TapeDigest {
    /// Adds an update that was received at this moment. Updates that decide nothing here are left out.
    pub fn add(&mut self, at: Timestamp, update: &FeedUpdate) {
        match update {
            FeedUpdate::BookSnapshot { token, bids, asks, .. } => {
                self.begin(b"book", at).text(token).levels(bids).levels(asks);
            }
            FeedUpdate::BookDelta { token, levels, .. } => {
                let line = self.begin(b"level", at).text(token).number(levels.len() as u64);
                for (side, price, size) in levels {
                    line.number(u64::from(*side == BookSide::Bid)).number(price.0.into()).number(size.0);
                }
            }
            FeedUpdate::LastTrade { token, price, size, taker_buys, id, venue_ts, .. } => {
                let line = self.begin(b"trade", at).text(token).number(price.0.into()).number(size.0);
                line.number(u64::from(*taker_buys)).number(venue_ts.0).text(id.as_deref().unwrap_or_default());
            }
            FeedUpdate::SidelessTrade { token, price, size, .. } => {
                self.begin(b"sideless", at).text(token).number(price.0.into()).number(size.0);
            }
            FeedUpdate::Listed { listing, state } => {
                let line = self.begin(b"listed", at).text(&listing.condition);
                line.texts(&listing.tokens)
                    .number(*state as u64)
                    .number(listing.tick.0.into())
                    .number(listing.end.map_or(0, |end| end.0));
            }
            FeedUpdate::StateChanged { condition, state } => {
                self.begin(b"state", at).text(condition).number(*state as u64);
            }
            FeedUpdate::EndChanged { condition, end } => {
                self.begin(b"end", at).text(condition).number(end.map_or(0, |end| end.0));
            }
            FeedUpdate::TickChanged { condition, tick } => {
                self.begin(b"tick", at).text(condition).number(tick.0.into());
            }
            FeedUpdate::Fees { condition, schedule } => {
                let line = self.begin(b"fees", at).text(condition);
                if let Some(schedule) = schedule {
                    line.number(schedule.rate.into()).number(schedule.exponent.into());
                    line.number(schedule.taker_only.into()).number(schedule.rebate_rate.into());
                }
            }
            FeedUpdate::Resolved { condition, resolution, .. } => {
                let payout = resolution.payout(engine::id::Outcome::First);
                self.begin(b"resolved", at).text(condition).number(payout.0.into());
            }
            FeedUpdate::Gap { tokens, .. } => {
                self.begin(b"gap", at).texts(tokens);
            }
            FeedUpdate::Left { tokens } => {
                self.begin(b"left", at).texts(tokens);
            }
            FeedUpdate::Figures { .. }
            | FeedUpdate::Stated { .. }
            | FeedUpdate::Strike { .. }
            | FeedUpdate::LastPrice { .. }
            | FeedUpdate::Top { .. }
            | FeedUpdate::Spot { .. } => {}
        }
    }

    /// The hash.
    pub fn end(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    fn begin(&mut self, kind: &[u8], at: Timestamp) -> &mut TapeDigest {
        self.0.update(kind);
        self.number(at.0)
    }

    fn number(&mut self, number: u64) -> &mut TapeDigest {
        self.0.update(number.to_le_bytes());
        self
    }

    /// With its length, so that no two lists of texts are the same bytes.
    fn text(&mut self, text: &str) -> &mut TapeDigest {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
        self
    }

    fn texts(&mut self, texts: &[String]) -> &mut TapeDigest {
        self.number(texts.len() as u64);
        for text in texts {
            self.text(text);
        }
        self
    }

    fn levels(&mut self, levels: &[Level]) -> &mut TapeDigest {
        self.number(levels.len() as u64);
        for (price, size) in levels {
            self.number(price.0.into()).number(size.0);
        }
        self
    }
}
