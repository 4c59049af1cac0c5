//! Prints: trades of the venue, handed to the shards when an order rests in their market.
//!
//! In a recording the feed waits for the fills, as for matching cycles, so that they are the same at any speed. It
//! journals the position before it hands a print over, so that no later start fills an order with the same print.
//! Prints in the part of a tape that a start only reads again fill nothing.
//!
//! A repeated report of a trade is dropped (`feed/reports.rs`). Trades of markets without resting orders are remembered
//! too, since an order may be placed between two reports. A trade without a taker side is not a print: the side is never
//! inferred. It may explain a smaller level at which orders wait in a queue.

use super::reports::{Report, Reports};
use super::{Desk, FeedFigures, Links, Reply, Stopped};
use crate::{FeedUpdate, Frame};
use engine::book::{LevelChange, LevelNews};
use engine::command::{Command, Envelope};
use engine::id::MARKETS;
use engine::mutation::codec;
use engine::print::{Event, Evidence, Print, PrintLane, SidelessPrint};
use engine::realism::FillModel;
use engine::shard::{Outbox, Room};
use engine::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

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
    recent: Reports,
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
}

impl<L: Links> Desk<L> {
    /// Hands over what has happened at watched levels, at this venue time. A shard looks at it with the next print or
    /// cycle, or when much of it waits.
    pub(super) fn hand_levels(&mut self, at: Timestamp) {
        let Desk { writer, prints, .. } = self;
        let (mut news, mut has_news) = (writer.take_news(), false);
        while let Some(news) = news.next().filter(|_| prints.is_matching) {
            let news = match news {
                LevelNews::Changed(change) => LevelNews::Changed(LevelChange { at, ..change }),
                gap @ LevelNews::Gap { .. } => gap,
            };
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
                self.prints.recent.remember(trade);
            } else if !self.prints.recent.is_repeated(trade) {
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
        let FeedUpdate::LastTrade { token, .. } = update else { return None };
        Report::of(update, self.catalog.by_token(token)?)
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
