//! Prints: trades of the venue, handed to the shards when an order rests in their market.
//!
//! In a recording the feed waits for the fills, as for matching cycles, so that they are the same at any speed. It
//! journals the position before it hands a print over, so that no later start fills an order with the same print.
//! Prints in the part of a tape that a start only reads again fill nothing.
//!
//! A venue may report a trade once for each token of its market, and again when sockets overlap. A repeated report is
//! dropped. It is recognised by the venue's id of the trade or its transaction, or, without an id, by equal time and
//! size and mirrored price and side. Trades of markets without resting orders are remembered too, since an order may be
//! placed between two reports. A trade without a taker side is not a print: the side is never inferred. It may explain a
//! smaller level at which orders wait in a queue.

use super::{Desk, FeedFigures, Links, Reply, Stopped};
use crate::{FeedUpdate, Frame};
use engine::amount::{Price, Qty};
use engine::command::{Command, Envelope};
use engine::id::{InstrumentId, MARKETS};
use engine::mutation::codec;
use engine::order::Side;
use engine::print::{Event, Evidence, Print, PrintLane, SidelessPrint};
use engine::realism::FillModel;
use engine::shard::{Outbox, Room};
use engine::time::Timestamp;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Number of recent trades, over all markets, that repeated reports are compared with.
const RECENT_MAX: usize = 256;

/// Events that wait in the lane of a shard when the feed wakes it.
const WAKES_AT: usize = 8_192;

/// State of the feed for prints.
#[derive(Default)]
pub(super) struct Prints {
    /// One for each shard; empty when prints fill nothing.
    lanes: Vec<Arc<PrintLane>>,
    /// False while a start reads again what an earlier run has processed.
    pub(super) is_matching: bool,
    /// Set in a recording; `tape` is the hash of its first line, once there is one.
    pub(super) waits: bool,
    pub(super) tape: Option<[u8; 32]>,
    lacks_room: bool,
    recent: VecDeque<Report>,
}

/// A trade as reported for one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    instrument: InstrumentId,
    price: Price,
    size: Qty,
    taker: Side,
    /// The venue's time.
    at: Timestamp,
    /// A hash of the venue's id.
    id: Option<u64>,
}

/// A hash of the venue's id of a trade or of its transaction. It identifies two reports of the same trade.
fn hash_of(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(id.as_bytes());
    hasher.finish()
}

impl Report {
    /// The same trade in terms of the complement.
    fn mirrored(self) -> Report {
        let (instrument, price) = (self.instrument.complement(), self.price.complement());
        Report { instrument, price, taker: self.taker.opposite(), ..self }
    }

    /// Whether both report the same trade, apart from its time.
    fn is_same_trade(&self, other: &Report) -> bool {
        let terms = |report: &Report| (report.instrument, report.price, report.size, report.taker);
        terms(self) == terms(other)
    }
}

impl Prints {
    pub(super) fn new(lanes: Vec<Arc<PrintLane>>, waits: bool) -> Prints {
        Prints { lanes, waits, ..Prints::default() }
    }

    /// Reports what the shards counted.
    pub(super) fn report(&self, figures: &FeedFigures) {
        let sum = |of: &dyn Fn(&PrintLane) -> u64| self.lanes.iter().map(|lane| of(lane)).sum();
        figures.prints_lost.store(sum(&PrintLane::lost), Relaxed);
        figures.queue_events_lost.store(sum(&PrintLane::events_lost), Relaxed);
        figures.watched_levels.store(sum(&|lane| lane.watched_levels() as u64), Relaxed);
        for (model, row) in FillModel::ALL.into_iter().zip(&figures.fills) {
            for (evidence, cell) in Evidence::ALL.into_iter().zip(row) {
                cell.store(sum(&|lane| lane.fills(model, evidence)), Relaxed);
            }
        }
    }

    /// Whether this trade was reported before, for the complement or for the same token.
    fn is_repeated(&mut self, report: Report) -> bool {
        let mirrored = report.mirrored();
        let is_same = |before: &Report| match (before.id, report.id) {
            // A transaction may have several prices; each of its trades is reported for one token first.
            (Some(before_id), Some(id)) => {
                before_id == id && (before.instrument == mirrored.instrument || before.is_same_trade(&report))
            }
            _ => before.at == report.at && before.is_same_trade(&mirrored),
        };
        if let Some(at) = self.recent.iter().position(is_same) {
            // Without an id, a third report is another trade: each report is matched once.
            if report.id.is_none() {
                self.recent.remove(at);
            }
            return true;
        }
        self.remember(report);
        false
    }

    fn remember(&mut self, report: Report) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(report);
    }
}

impl<L: Links> Desk<L> {
    /// Hands over what has happened at watched levels. A shard looks at it with the next print or cycle, or when much of it
    /// waits.
    pub(super) fn hand_levels(&mut self) {
        let Desk { writer, prints, .. } = self;
        let (mut news, mut has_news) = (writer.take_news(), false);
        while let Some(news) = news.next().filter(|_| prints.is_matching) {
            for lane in &prints.lanes {
                // The lane counts the loss.
                let _ = lane.push(Event::Level(news));
            }
            has_news = true;
        }
        drop(news);
        if has_news && self.prints.lanes.iter().any(|lane| lane.len() >= WAKES_AT) {
            self.wake_for_prints();
        }
    }

    /// Asks every shard to look at its prints. One with a full inbox is awake, and looks at them anyway.
    fn wake_for_prints(&self) {
        let received_at = self.clock.now();
        for inbox in &self.lane.inboxes {
            let command = Command::MeetPrints;
            drop(inbox.push(Envelope { owner: MARKETS, command, received_at, reply: Reply::Discard }));
        }
    }

    /// Hands over the trades of a frame whose takers have no side.
    fn hand_sideless(&self, frame: &Frame<'_>) {
        for update in frame.updates {
            let FeedUpdate::SidelessTrade { token, price, size, .. } = update else { continue };
            let Some(instrument) = self.catalog.by_token(token) else { continue };
            if self.writer.books().is_watched(instrument.market()) {
                let (price, size, at) = (*price, *size, frame.received);
                let print = SidelessPrint { instrument, price, size, at };
                for lane in &self.prints.lanes {
                    // The lane counts the loss.
                    let _ = lane.push(Event::Sideless(print));
                }
            }
        }
    }

    /// Hands over the trades of a frame whose book part is written. A trade of a market without resting orders is only
    /// remembered.
    pub(super) fn hand_prints(&mut self, frame: &Frame<'_>) -> Result<(), Stopped> {
        let has_trade = self.touched.iter().any(|(_, trade)| trade.is_some());
        if !self.prints.is_matching || self.prints.lanes.is_empty() {
            return Ok(());
        }
        self.hand_sideless(frame);
        if !has_trade {
            return Ok(());
        }
        let mut report = Vec::new();
        for update in frame.updates {
            let Some(trade) = self.report(update) else { continue };
            if !self.writer.books().is_watched(trade.instrument.market()) {
                self.prints.remember(trade);
            } else if !self.prints.is_repeated(trade) {
                report.push(trade);
            }
        }
        if report.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        if self.prints.waits {
            // Applies the end dates before this trade; this poll may have read many lines already.
            self.advance(frame.received, true);
            self.flush()?;
            // Waits once for a full disk, not for every trade.
            self.prints.lacks_room = self.room() != Room::Ample && (self.prints.lacks_room || !self.wait_for_room()?);
            if !self.mark_print(frame.received) {
                self.prints.lanes.iter().for_each(|lane| lane.lose(report.len() as u64));
                return Ok(());
            }
        }
        // A frame of a live venue may have waited: it must not fill orders that came after it. A recording has another
        // clock.
        let is_on_server_time = !self.prints.waits && !self.stamps_when_taken;
        let taken_at = if is_on_server_time { frame.received.min(now) } else { now };
        for Report { instrument, price, size, taker, .. } in report {
            let print = Print { instrument, price, size, taker, taken_at, at: frame.received };
            for lane in &self.prints.lanes {
                // The lane counts the loss.
                let _ = lane.push(print);
            }
        }
        if self.prints.waits {
            let mut broadcast = self.broadcast(|| Command::MeetPrints)?;
            // Without room the prints are lost, and no wait is needed.
            self.finish(&mut broadcast)?;
            return Ok(());
        }
        self.wake_for_prints();
        Ok(())
    }

    /// The trade in an update, if any.
    fn report(&self, update: &FeedUpdate) -> Option<Report> {
        let FeedUpdate::LastTrade { token, price, size, taker_buys, venue_ts, id, .. } = update else { return None };
        let instrument = self.catalog.by_token(token)?;
        let taker = if *taker_buys { Side::Buy } else { Side::Sell };
        Some(Report { instrument, price: *price, size: *size, taker, at: *venue_ts, id: id.as_deref().map(hash_of) })
    }

    /// Journals the position of the recording. The order within the log suffices, since fills come later in it. False:
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
    fn a_trade_reported_for_both_tokens_is_one() {
        let report = |instrument, price, size, taker, at, id| Report {
            instrument: InstrumentId(instrument),
            price: Price(price),
            size: Qty(size),
            taker,
            at: Timestamp(at),
            id,
        };
        let (buy, sell) = (Side::Buy, Side::Sell);
        let mut prints = Prints::default();
        for (row, (report, repeated)) in [
            (report(4, 4_000, 7, sell, 1, None), false),
            (report(5, 6_000, 7, buy, 1, None), true),
            // The same once more is another trade.
            (report(5, 6_000, 7, buy, 1, None), false),
            (report(4, 4_000, 7, sell, 1, None), true),
            // Another token's, price, size, side or time.
            (report(4, 4_000, 7, sell, 2, None), false),
            (report(4, 4_000, 7, sell, 2, None), false),
            (report(5, 6_100, 7, buy, 2, None), false),
            (report(5, 6_000, 8, buy, 2, None), false),
            (report(5, 6_000, 7, sell, 2, None), false),
            (report(5, 6_000, 7, buy, 3, None), false),
            (report(7, 6_000, 7, buy, 2, None), false),
            (report(5, 6_000, 7, buy, 2, None), true),
            // One id with different times: for the complement, for the complement again, and for the same token again.
            (report(4, 4_000, 7, sell, 20, Some(9)), false),
            (report(5, 6_000, 7, buy, 21, Some(9)), true),
            (report(5, 6_000, 7, buy, 20, Some(9)), true),
            (report(4, 4_000, 7, sell, 22, Some(9)), true),
            // Another price of the transaction, and another transaction at the same price.
            (report(4, 3_900, 7, sell, 20, Some(9)), false),
            (report(5, 6_100, 7, buy, 20, Some(9)), true),
            (report(4, 4_000, 7, sell, 20, Some(8)), false),
            (report(5, 6_000, 7, buy, 20, Some(10)), false),
            // Only one of the two reports has an id.
            (report(5, 6_000, 7, buy, 20, None), true),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(prints.is_repeated(report), repeated, "row {row}");
        }
        (0..2 * RECENT_MAX as u64)
            .for_each(|at| assert!(!prints.is_repeated(report(4, 4_000, 7, sell, 30 + at, None))));
        assert_eq!(prints.recent.len(), RECENT_MAX);
    }
}
