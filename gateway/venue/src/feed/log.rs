//! Journaling of the feed's decisions: facts go to the log first, and are published after their release.

use super::{Desk, Links, Reply, Stopped};
use engine::command::Answer;
use engine::id::MARKETS;
use engine::shard::{Outbox, Room};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

/// Most bytes of facts in one record: far below the 1 MiB of a record, far above the longest listing.
const FACTS_BYTES_MAX: usize = 256 << 10;
/// How long a start waits for ample room before it continues without.
const START_ROOM_WAIT: Duration = Duration::from_secs(5);

impl<L: Links> Desk<L> {
    /// Returns the last known room of the log. If it is not ample, wakes the owner of the log to update it.
    pub(super) fn room(&self) -> Room {
        let room = self.lane.commits.room();
        if room != Room::Ample {
            (self.lane.wake_log)();
        }
        room
    }

    /// Waits for ample room, since spare segments are still being prepared at a start. False: the wait timed out, so
    /// the disk is probably full.
    pub(super) fn wait_for_room(&self) -> Result<bool, Stopped> {
        const LOOK_EVERY: Duration = Duration::from_millis(1);
        let start = std::time::Instant::now();
        while self.room() != Room::Ample {
            if self.stop.is_set() {
                return Err(Stopped);
            }
            if start.elapsed() > START_ROOM_WAIT {
                return Ok(false);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// Journals the pending facts as far as there is room, waits for their release, then publishes them.
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

    /// Writes the books that were held back because their markets were not listed, and now are.
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
            // Their tokens belong to no listed market.
            self.figures.unlisted.fetch_add(self.held.len() as u64, Ordering::Relaxed);
            self.held.clear();
        }
    }
}
