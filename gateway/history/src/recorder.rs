//! The feed's half of the price history: collects prices and sends them in batches.
//!
//! A note costs a few instructions and an entry of a table by market. The feed never waits: while the history has not
//! taken the last batches, further prices join the current batch, which grows with markets and minutes, not with
//! messages.

use super::prices::MinuteCandle;
use super::{Message, Messages};
use engine::book::candles::{Candle, Mid};
use engine::book::listener::PriceListener;
use engine::id::MarketId;
use engine::time::{SECOND, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A batch is sent this long after its first note (server time), or when it has this many rows.
const HAND_OVER_AFTER_US: u64 = SECOND / 2;
const HAND_OVER_ROWS: usize = 8_192;
/// Batches that may be in flight.
const IN_FLIGHT_MAX: usize = 2;
/// Most rows of a batch that cannot be sent; further minutes are dropped.
const ROWS_MAX: usize = 1 << 18;

/// Collects prices for the history.
pub struct Recorder {
    messages: Messages,
    in_flight: Arc<AtomicUsize>,
    batch: Vec<MinuteCandle>,
    /// By market: the index of its latest row in the batch, + 1; 0 = none.
    rows: Vec<u32>,
    /// Server time of the batch's first note.
    since: Timestamp,
    /// Start of the newest minute of the history as it was opened, venue time in seconds; 0 until then.
    known_to: Arc<AtomicU64>,
    /// Notes before that are skipped. The history skips those that come before it is opened.
    is_replay: bool,
}

impl Recorder {
    pub(super) fn new(messages: Messages, known_to: Arc<AtomicU64>) -> Recorder {
        Recorder {
            messages,
            in_flight: Arc::default(),
            batch: Vec::new(),
            rows: Vec::new(),
            since: Timestamp(0),
            known_to,
            is_replay: false,
        }
    }

    /// A recorder whose batches go nowhere.
    #[cfg(any(test, feature = "testing"))]
    pub fn nowhere() -> Recorder {
        Recorder::new(Messages::channel().0, Arc::default())
    }

    /// Sends everything, however slow the history is.
    #[cfg(any(test, feature = "testing"))]
    pub fn flush(&mut self) {
        while !self.batch.is_empty() {
            self.hand_over();
            std::thread::yield_now();
        }
    }
}

impl PriceListener for Recorder {
    /// Prices that follow were reported in an earlier run: those that the history has are skipped.
    fn begin_replay(&mut self) {
        self.is_replay = true;
        // The receiver is gone only when the process ends.
        let _ = self.messages.send(Message::Replay);
    }

    /// Records that the first outcome's price became `mid` at `venue_now`.
    fn note(&mut self, market: MarketId, venue_now: Timestamp, mid: Mid) {
        if self.is_replay && venue_now.secs() < self.known_to.load(Ordering::Relaxed) {
            return;
        }
        let index = market.0 as usize;
        if self.rows.len() <= index {
            self.rows.resize(index + 1, 0);
        }
        let minute = u32::try_from(venue_now.secs() / 60).unwrap_or(u32::MAX);
        let latest = (self.rows[index] as usize).checked_sub(1).map(|row| &mut self.batch[row]);
        if let Some(known) = latest.filter(|known| known.minute == minute) {
            return known.candle.join(&Candle::at(mid));
        }
        if self.batch.len() < ROWS_MAX {
            self.batch.push(MinuteCandle { market: market.0, minute, candle: Candle::at(mid) });
            self.rows[index] = self.batch.len() as u32;
        }
    }

    /// Sends the batch when it is due.
    fn turn(&mut self, now: Timestamp) {
        if self.batch.is_empty() {
            self.since = now;
        } else if self.batch.len() >= HAND_OVER_ROWS || now.since(self.since) >= HAND_OVER_AFTER_US {
            self.hand_over();
            self.since = now;
        }
    }

    /// Sends the batch unless too many are in flight.
    fn hand_over(&mut self) {
        if self.batch.is_empty() || self.in_flight.load(Ordering::Relaxed) >= IN_FLIGHT_MAX {
            return;
        }
        for candle in &self.batch {
            self.rows[candle.market as usize] = 0;
        }
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let candles = std::mem::take(&mut self.batch);
        // The receiver is gone only when the process ends.
        let _ = self.messages.send(Message::Prices(candles, self.in_flight.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(1_790_932_440 + secs)
    }

    #[test]
    fn notes_of_a_minute_are_one_row_and_the_feed_never_waits() {
        let (messages, receiver) = Messages::channel();
        let mut recorder = Recorder::new(messages, Arc::default());
        let taken = || match receiver.try_recv() {
            Ok(Message::Prices(candles, _)) => candles.len(),
            _ => 0,
        };
        for (secs, mid) in [(0, 5), (1, 9), (59, 3), (60, 4)] {
            recorder.note(MarketId(7), at(secs), Mid(mid));
        }
        recorder.note(MarketId(0), at(60), Mid(1));
        let whole = Candle { open: Mid(5), high: Mid(9), low: Mid(3), close: Mid(3), ..Candle::default() };
        assert_eq!(recorder.batch[0], MinuteCandle { market: 7, minute: 29_848_874, candle: whole });
        assert_eq!(recorder.batch.len(), 3);
        recorder.turn(at(100));
        assert_eq!(taken(), 3);
        recorder.turn(at(101));
        assert_eq!(taken(), 0, "nothing new");
        // At most two are in flight; further prices are kept.
        recorder.note(MarketId(7), at(61), Mid(2));
        recorder.hand_over();
        assert_eq!(taken(), 1);
        recorder.note(MarketId(7), at(62), Mid(8));
        recorder.hand_over();
        recorder.note(MarketId(7), at(63), Mid(6));
        recorder.hand_over();
        assert_eq!((taken(), recorder.batch.len()), (0, 1));
        assert_eq!(recorder.batch[0].candle.close, Mid(6));
        recorder.in_flight.store(0, Ordering::Relaxed);
        recorder.hand_over();
        assert_eq!(taken(), 1);
    }

    #[test]
    fn known_prices_are_skipped_when_they_are_repeated() {
        let (messages, receiver) = Messages::channel();
        let mut recorder = Recorder::new(messages, Arc::new(AtomicU64::new(at(0).secs())));
        for (again, secs, count) in [(false, -60, 1), (true, -1, 1), (true, 0, 2), (true, 60, 3)] {
            if again {
                recorder.begin_replay();
            }
            recorder.note(MarketId(1), Timestamp((at(0).0 as i64 + secs * 1_000_000) as u64), Mid(1));
            assert_eq!(recorder.batch.len(), count, "{secs}");
        }
        assert!(matches!(receiver.try_recv(), Ok(Message::Replay)), "the history skips them, too");
    }

    #[test]
    fn a_batch_that_cannot_be_sent_is_bounded() {
        let (messages, _receiver) = Messages::channel();
        let mut recorder = Recorder::new(messages, Arc::default());
        recorder.in_flight.store(IN_FLIGHT_MAX, Ordering::Relaxed);
        for minute in 0..ROWS_MAX as u64 + 10 {
            recorder.note(MarketId(1), Timestamp::from_secs(minute * 60), Mid(1));
        }
        recorder.turn(at(1_000_000));
        assert_eq!(recorder.batch.len(), ROWS_MAX);
    }
}
