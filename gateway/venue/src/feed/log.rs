//! What was decided goes to the log, and only then to the read sides.

use super::{Desk, Links, Reply, Stopped};
use engine::command::Answer;
use engine::id::MARKETS;
use engine::shard::{Outbox, Room};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

/// Bytes of facts that one record holds at most: far below the 1 MiB of a record, far above the longest listing.
const FACTS_BYTES_MAX: usize = 256 << 10;
/// How long a start waits for ample room before it goes on without.
const START_ROOM_WAIT: Duration = Duration::from_secs(5);

impl<L: Links> Desk<L> {
    /// How much the log can still take. Where that is little, its keeper and its writer are asked to look again.
    pub(super) fn room(&self) -> Room {
        let room = self.lane.commits.room();
        if room != Room::Ample {
            (self.lane.wake_log)();
        }
        room
    }

    /// At a start spares are still being made: listings and their books should not be late for that. False: it takes
    /// so long that the disk must be full.
    pub(super) fn wait_for_room(&self) -> Result<bool, Stopped> {
        const LOOK_EVERY: Duration = Duration::from_millis(1);
        let begun = std::time::Instant::now();
        while self.room() != Room::Ample {
            if self.stop.is_set() {
                return Err(Stopped);
            }
            if begun.elapsed() > START_ROOM_WAIT {
                return Ok(false);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// Journals what was decided, as far as there is room, waits for its release, then tells the read sides.
    pub(super) fn flush(&mut self) -> Result<(), Stopped> {
        if self.stopped {
            return Err(Stopped);
        }
        let bytes_max = FACTS_BYTES_MAX.min(self.lane.payload_bytes_max);
        while !self.pending.is_empty() {
            let mut payload = Vec::new();
            let facts = self.pending.next(self.lane.commits.version(), self.room(), bytes_max, &mut payload);
            if facts.is_empty() {
                return Ok(());
            }
            let (sender, receiver) = mpsc::sync_channel(1);
            self.lane.commits.record(MARKETS, self.clock.now(), &payload);
            self.lane.commits.answer(Reply::Thread(sender), Answer::Done);
            self.wait(&receiver)?;
            for fact in facts {
                self.publisher.fact(&fact, &mut self.writer, self.venue_now);
            }
            self.show_held();
        }
        Ok(())
    }

    /// Writes down the books of markets that are listed now.
    fn show_held(&mut self) {
        let (catalog, publisher) = (&self.catalog, &self.publisher);
        let (writer, touched) = (&mut self.writer, &mut self.touched);
        self.held.retain(|token, held| {
            let Some(instrument) = catalog.by_token(token) else { return true };
            writer.answer(held.connection, held.received, |books| held.write(books, instrument));
            publisher.book(instrument, writer.books());
            touched.push((instrument, None));
            false
        });
        self.note_prices(self.venue_now);
        if self.pending.is_empty() {
            // Tokens of no listed market.
            self.figures.unlisted.fetch_add(self.held.len() as u64, Ordering::Relaxed);
            self.held.clear();
        }
    }
}
