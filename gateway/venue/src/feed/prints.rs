//! Trades of the venue, handed to the shards where some order rests in their market.
//!
//! In a recording the feed waits for the fills, as it does for matching cycles, so that they are the same at any speed;
//! and it journals the place reached before it hands a print over, so that no later start fills anything by the same
//! print again. What a start folds of the past fills nothing.
//!
//! A trade may be told once for each token of its market. The second telling is known by the same time and size and the
//! mirrored price and side, and is left out.

use super::{Desk, Links, Reply, Stopped};
use crate::{FeedUpdate, Frame};
use engine::amount::{Price, Qty};
use engine::command::{Command, Envelope};
use engine::id::{InstrumentId, MARKETS};
use engine::mutation::codec;
use engine::order::Side;
use engine::print::{Print, PrintLane};
use engine::shard::{Outbox, Room};
use engine::time::Timestamp;
use std::collections::VecDeque;
use std::sync::Arc;

/// Trades of watched markets among which the second telling of one is looked for.
const RECENT_MAX: usize = 64;

/// What the feed knows of prints.
#[derive(Default)]
pub(super) struct Prints {
    /// One for each shard; none where prints fill nothing.
    lanes: Vec<Arc<PrintLane>>,
    /// The past is folded, and what comes now is new.
    pub(super) is_matching: bool,
    /// A recording, and the hash of its first line, once there is one.
    pub(super) waits: bool,
    pub(super) tape: Option<[u8; 32]>,
    lacks_room: bool,
    recent: VecDeque<Told>,
}

/// A trade as it was told of one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    instrument: InstrumentId,
    price: Price,
    size: Qty,
    taker: Option<Side>,
    /// The venue's time.
    at: Timestamp,
}

impl Prints {
    pub(super) fn new(lanes: Vec<Arc<PrintLane>>, waits: bool) -> Prints {
        Prints { lanes, waits, ..Prints::default() }
    }

    /// Prints that no shard's orders met, counted for each shard.
    pub(super) fn lost(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.lost()).sum()
    }

    /// Whether this was told of the complement before. Each telling is matched once.
    fn is_repeated(&mut self, told: Told) -> bool {
        let (instrument, price) = (told.instrument.complement(), told.price.complement());
        let mirrored = Told { instrument, price, taker: told.taker.map(Side::opposite), ..told };
        if let Some(at) = self.recent.iter().position(|before| *before == mirrored) {
            self.recent.remove(at);
            return true;
        }
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(told);
        false
    }
}

impl<L: Links> Desk<L> {
    /// Hands the trades of a frame over whose book part is written down. Costs a load for a trade of a market in which
    /// no order rests.
    pub(super) fn hand_prints(&mut self, frame: &Frame<'_>) -> Result<(), Stopped> {
        let books = self.writer.books();
        let is_sideless = |update: &FeedUpdate| matches!(update, FeedUpdate::SidelessTrade { .. });
        let is_watched = |(instrument, trade): &(InstrumentId, Option<Price>)| {
            let is_trade = trade.is_some() || frame.updates.iter().any(is_sideless);
            is_trade && books.is_watched(instrument.market())
        };
        if !self.prints.is_matching || self.prints.lanes.is_empty() || !self.touched.iter().any(is_watched) {
            return Ok(());
        }
        let taken_at = self.clock.now();
        let told: Vec<Told> = frame.updates.iter().filter_map(|update| self.told(update)).collect();
        let told: Vec<Told> = told.into_iter().filter(|told| !self.prints.is_repeated(*told)).collect();
        if told.is_empty() {
            return Ok(());
        }
        if self.prints.waits {
            // End dates up to this trade have passed, however many lines this poll has read before.
            self.advance(frame.received, true);
            self.flush()?;
            // A full disk is waited for once, not at every trade.
            self.prints.lacks_room = self.room() != Room::Ample && (self.prints.lacks_room || !self.wait_for_room()?);
            if !self.mark_print(frame.received) {
                self.prints.lanes.iter().for_each(|lane| lane.lose(told.len() as u64));
                return Ok(());
            }
        }
        for Told { instrument, price, size, taker, .. } in told {
            let print = Print { instrument, price, size, taker, taken_at };
            for lane in &self.prints.lanes {
                // The lane counts what it loses.
                let _ = lane.push(print);
            }
        }
        if self.prints.waits {
            let mut asked = self.ask_all(|| Command::MeetPrints)?;
            // Without room the prints are lost, and nobody waits for them.
            self.finish(&mut asked)?;
            return Ok(());
        }
        for inbox in &self.lane.inboxes {
            let (command, received_at) = (Command::MeetPrints, taken_at);
            // A full inbox has its shard awake, which looks at the prints without being asked.
            drop(inbox.push(Envelope { owner: MARKETS, command, received_at, reply: Reply::Nobody }));
        }
        Ok(())
    }

    /// What an update says of a trade in a watched market.
    fn told(&self, update: &FeedUpdate) -> Option<Told> {
        let (token, price, size, taker, at) = match update {
            FeedUpdate::LastTrade { token, price, size, taker_buys, venue_ts } => {
                (token, price, size, Some(if *taker_buys { Side::Buy } else { Side::Sell }), venue_ts)
            }
            FeedUpdate::SidelessTrade { token, price, size, venue_ts } => (token, price, size, None, venue_ts),
            _ => return None,
        };
        let instrument = self.catalog.by_token(token)?;
        let told = Told { instrument, price: *price, size: *size, taker, at: *at };
        self.writer.books().is_watched(instrument.market()).then_some(told)
    }

    /// Journals that the recording was played up to here. Its order in the log is enough: fills come later in it. False:
    /// the log has no room.
    fn mark_print(&mut self, reached: Timestamp) -> bool {
        if self.room() != Room::Ample || !self.pending.is_empty() {
            return false;
        }
        let Some(fact) = self.prints.tape.and_then(|tape| self.markets.tape(tape, reached)) else { return true };
        self.markets.apply(&fact);
        let mut payload = Vec::new();
        codec::encode(self.lane.commits.version(), &[fact], &mut payload);
        self.lane.commits.record(MARKETS, self.clock.now(), &payload);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trade_told_of_both_tokens_is_one() {
        let told = |instrument, price, size, taker, at| Told {
            instrument: InstrumentId(instrument),
            price: Price(price),
            size: Qty(size),
            taker,
            at: Timestamp(at),
        };
        let (buy, sell) = (Some(Side::Buy), Some(Side::Sell));
        let mut prints = Prints::default();
        for (row, (told, repeated)) in [
            (told(4, 4_000, 7, sell, 1), false),
            (told(5, 6_000, 7, buy, 1), true),
            // The same once more is another trade.
            (told(5, 6_000, 7, buy, 1), false),
            (told(4, 4_000, 7, sell, 1), true),
            // Another token's, price, size, side or time.
            (told(4, 4_000, 7, sell, 2), false),
            (told(4, 4_000, 7, sell, 2), false),
            (told(5, 6_100, 7, buy, 2), false),
            (told(5, 6_000, 8, buy, 2), false),
            (told(5, 6_000, 7, sell, 2), false),
            (told(5, 6_000, 7, buy, 3), false),
            (told(7, 6_000, 7, buy, 2), false),
            (told(5, 6_000, 7, buy, 2), true),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(prints.is_repeated(told), repeated, "row {row}");
        }
        (0..2 * RECENT_MAX as u64).for_each(|at| assert!(!prints.is_repeated(told(4, 4_000, 7, sell, 10 + at))));
        assert_eq!(prints.recent.len(), RECENT_MAX);
    }
}
