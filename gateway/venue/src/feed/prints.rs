//! Trades of the venue, handed to the shards where some order rests in their market.
//!
//! In a recording the feed waits for the fills, as it does for matching cycles, so that they are the same at any speed;
//! and it journals the place reached before it hands a print over, so that no later start fills anything by the same
//! print again. What a start folds of the past fills nothing.
//!
//! A trade may be told once for each token of its market, and once more where sockets overlap. A second telling is left out:
//! it is known by the venue's id of the trade or its transaction; where the venue states none, by the same time and size and
//! the mirrored price and side. A trade of a market in which no order rests is remembered likewise, since an order may be
//! placed between its tellings. One whose taker's side the venue does not state is no print: the side is never inferred.

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

/// Trades of all markets among which the second telling of one is looked for.
const RECENT_MAX: usize = 256;

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
    taker: Side,
    /// The venue's time.
    at: Timestamp,
    id: Option<u64>,
}

impl Told {
    /// The same in the words of the complement.
    fn mirrored(self) -> Told {
        let (instrument, price) = (self.instrument.complement(), self.price.complement());
        Told { instrument, price, taker: self.taker.opposite(), ..self }
    }

    /// Whether both say the same, whenever.
    fn says(&self, other: &Told) -> bool {
        let what = |told: &Told| (told.instrument, told.price, told.size, told.taker);
        what(self) == what(other)
    }
}

impl Prints {
    pub(super) fn new(lanes: Vec<Arc<PrintLane>>, waits: bool) -> Prints {
        Prints { lanes, waits, ..Prints::default() }
    }

    /// Prints that no shard's orders met, counted for each shard.
    pub(super) fn lost(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.lost()).sum()
    }

    /// Whether this was told before, of the complement or of the same token.
    fn is_repeated(&mut self, told: Told) -> bool {
        let mirrored = told.mirrored();
        let is_it = |before: &Told| match (before.id, told.id) {
            // A transaction may have several prices, and each trade of it is told of one token first.
            (Some(before_id), Some(id)) => {
                before_id == id && (before.instrument == mirrored.instrument || before.says(&told))
            }
            _ => before.at == told.at && before.says(&mirrored),
        };
        if let Some(at) = self.recent.iter().position(is_it) {
            // Without an id the same once more is another trade: each telling is matched once.
            if told.id.is_none() {
                self.recent.remove(at);
            }
            return true;
        }
        self.remember(told);
        false
    }

    fn remember(&mut self, told: Told) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(told);
    }
}

impl<L: Links> Desk<L> {
    /// Hands the trades of a frame over whose book part is written down. A trade of a market in which no order rests is
    /// remembered, nothing more.
    pub(super) fn hand_prints(&mut self, frame: &Frame<'_>) -> Result<(), Stopped> {
        let has_trade = self.touched.iter().any(|(_, trade)| trade.is_some());
        if !self.prints.is_matching || self.prints.lanes.is_empty() || !has_trade {
            return Ok(());
        }
        let mut told = Vec::new();
        for update in frame.updates {
            let Some(trade) = self.told(update) else { continue };
            if !self.writer.books().is_watched(trade.instrument.market()) {
                self.prints.remember(trade);
            } else if !self.prints.is_repeated(trade) {
                told.push(trade);
            }
        }
        if told.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
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
        // A live venue's frame may have waited here: orders that came after it never meet it. A recording has another clock.
        let is_on_server_time = !self.prints.waits && !self.stamps_when_taken;
        let taken_at = if is_on_server_time { frame.received.min(now) } else { now };
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
            let command = Command::MeetPrints;
            // A full inbox has its shard awake, which looks at the prints without being asked.
            drop(inbox.push(Envelope { owner: MARKETS, command, received_at: now, reply: Reply::Nobody }));
        }
        Ok(())
    }

    /// What an update says of a trade.
    fn told(&self, update: &FeedUpdate) -> Option<Told> {
        let FeedUpdate::LastTrade { token, price, size, taker_buys, venue_ts, id } = update else { return None };
        let instrument = self.catalog.by_token(token)?;
        let taker = if *taker_buys { Side::Buy } else { Side::Sell };
        Some(Told { instrument, price: *price, size: *size, taker, at: *venue_ts, id: *id })
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
        let told = |instrument, price, size, taker, at, id| Told {
            instrument: InstrumentId(instrument),
            price: Price(price),
            size: Qty(size),
            taker,
            at: Timestamp(at),
            id,
        };
        let (buy, sell) = (Side::Buy, Side::Sell);
        let mut prints = Prints::default();
        for (row, (told, repeated)) in [
            (told(4, 4_000, 7, sell, 1, None), false),
            (told(5, 6_000, 7, buy, 1, None), true),
            // The same once more is another trade.
            (told(5, 6_000, 7, buy, 1, None), false),
            (told(4, 4_000, 7, sell, 1, None), true),
            // Another token's, price, size, side or time.
            (told(4, 4_000, 7, sell, 2, None), false),
            (told(4, 4_000, 7, sell, 2, None), false),
            (told(5, 6_100, 7, buy, 2, None), false),
            (told(5, 6_000, 8, buy, 2, None), false),
            (told(5, 6_000, 7, sell, 2, None), false),
            (told(5, 6_000, 7, buy, 3, None), false),
            (told(7, 6_000, 7, buy, 2, None), false),
            (told(5, 6_000, 7, buy, 2, None), true),
            // One id, whatever the times: of the complement, of the complement again, and of the same token again.
            (told(4, 4_000, 7, sell, 20, Some(9)), false),
            (told(5, 6_000, 7, buy, 21, Some(9)), true),
            (told(5, 6_000, 7, buy, 20, Some(9)), true),
            (told(4, 4_000, 7, sell, 22, Some(9)), true),
            // Another price of the transaction, and another transaction of the same.
            (told(4, 3_900, 7, sell, 20, Some(9)), false),
            (told(5, 6_100, 7, buy, 20, Some(9)), true),
            (told(4, 4_000, 7, sell, 20, Some(8)), false),
            (told(5, 6_000, 7, buy, 20, Some(10)), false),
            // Only one of the two was told with an id.
            (told(5, 6_000, 7, buy, 20, None), true),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(prints.is_repeated(told), repeated, "row {row}");
        }
        (0..2 * RECENT_MAX as u64).for_each(|at| assert!(!prints.is_repeated(told(4, 4_000, 7, sell, 30 + at, None))));
        assert_eq!(prints.recent.len(), RECENT_MAX);
    }
}
