//! The queued frames of one socket in order, the rest of a partly written one, and the bounds.

use super::{
    GOODBYE_BYTES_MAX, PIECES_PER_WRITE_MAX, QUEUE_BYTES_MAX, QUEUE_FRAMES_MAX, SENT_BYTES_MORE, SENT_FRAMES_MORE, Tag,
};
use crate::ws::close::Close;
use crate::ws::frame::{Frame, Frames};
use ahash::AHashMap;
use bytes::{Buf as _, Bytes};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::task::Waker;

#[derive(Default)]
pub(super) struct Queue {
    /// The rest of a partly written frame, which must be sent first. Empty if there is none.
    half: Bytes,
    /// A ping that is sent before the entries, because its answer would be late after a long queue. Empty if there is
    /// none.
    ping: Bytes,
    pub entries: VecDeque<Entry>,
    /// Number of the first entry. The number of an entry never changes.
    first: u64,
    /// Frames of all entries, including replaced ones that are not removed yet.
    pub frames: usize,
    /// Bytes of everything that is queued.
    pub bytes: usize,
    /// Numbers of the queued frames that may be replaced.
    latest: AHashMap<Tag, u64>,
    /// Whether an offer was refused since the queue was last empty.
    pub refused: bool,
    /// Whether a flush was requested and has not happened yet.
    pub to_flush: bool,
    /// Nothing more is queued; the close frame is the last one.
    pub closing: Option<Close>,
    /// The close frame is sent, or never will be.
    pub finished: bool,
    pub writer: Option<Waker>,
    pub waiting_for_close: Option<Waker>,
}

pub(super) struct Entry {
    tag: Option<Tag>,
    /// `None`: replaced by a newer frame.
    frames: Option<Frames>,
}

impl Queue {
    pub fn is_full(&self, more: &Frames) -> bool {
        self.frames + more.count() > QUEUE_FRAMES_MAX || self.bytes + more.bytes().len() > QUEUE_BYTES_MAX
    }

    /// One more frame may be too much even if there is room, because of its length.
    pub fn has_no_room(&self) -> bool {
        self.frames >= QUEUE_FRAMES_MAX || self.bytes > QUEUE_BYTES_MAX
    }

    pub fn is_beyond(&self, more: &Frames) -> bool {
        self.frames + more.count() > QUEUE_FRAMES_MAX + SENT_FRAMES_MORE
            || self.bytes + more.bytes().len() > QUEUE_BYTES_MAX + SENT_BYTES_MORE
    }

    pub fn push(&mut self, tag: Option<Tag>, frames: Frames) {
        self.frames += frames.count();
        self.bytes += frames.bytes().len();
        self.entries.push_back(Entry { tag, frames: Some(frames) });
    }

    /// Wakes the writing task if it sleeps.
    pub fn wake(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    /// Queues a ping. Returns false if one is queued already.
    pub fn ping(&mut self, ping: &Frame) -> bool {
        let is_first = self.ping.is_empty();
        if is_first {
            self.ping = ping.bytes().clone();
            self.bytes += self.ping.len();
        }
        is_first
    }

    /// Drops the frame that [`Queue::remember`] recorded for that tag, if it is queued.
    pub fn drop_latest(&mut self, tag: Tag) {
        let Some(number) = self.latest.remove(&tag).filter(|number| *number >= self.first) else { return };
        if let Some(dropped) = self.entries[(number - self.first) as usize].frames.take() {
            self.bytes -= dropped.bytes().len();
        }
    }

    /// Records that the next push is the latest frame of that tag.
    pub fn remember(&mut self, tag: Tag) {
        self.latest.insert(tag, self.first + self.entries.len() as u64);
    }

    /// Removes dropped frames from the queue.
    pub fn compact(&mut self) {
        let (first, mut kept) = (self.first, 0);
        let places: Vec<u64> = (self.entries.iter())
            .map(|entry| {
                let place = first + kept;
                kept += u64::from(entry.frames.is_some());
                place
            })
            .collect();
        self.latest.retain(|_, number| {
            let place = number.checked_sub(first).map(|old| places[old as usize]);
            place.inspect(|place| *number = *place).is_some()
        });
        self.entries.retain(|entry| entry.frames.is_some());
        self.count();
    }

    /// Drops the queued frames of a tag, except one that is partly written.
    pub fn withdraw(&mut self, tag: Tag) {
        let mut freed = 0;
        self.entries.retain(|entry| {
            let kept = entry.tag != Some(tag);
            freed += entry.frames.as_ref().filter(|_| !kept).map_or(0, |frames| frames.bytes().len());
            kept
        });
        self.bytes -= freed;
        self.count();
        // Entries have new numbers. At worst, a frame that could be replaced is sent too.
        self.latest.clear();
    }

    fn count(&mut self) {
        self.frames = self.entries.iter().map(Entry::count).sum();
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.half.is_empty() && self.ping.is_empty() && self.entries.is_empty()
    }

    /// Drops everything except the rest of a partly written frame.
    pub fn clear(&mut self) {
        self.first += self.entries.len() as u64;
        self.entries.clear();
        self.latest.clear();
        self.ping = Bytes::new();
        (self.frames, self.bytes) = (0, self.half.len());
    }

    pub fn close(&mut self, close: Close) {
        if self.closing.is_some() {
            return;
        }
        if self.bytes > GOODBYE_BYTES_MAX {
            self.clear();
        }
        self.push(None, (&Frame::close(close)).into());
        self.wake();
        self.closing = Some(close);
        if let Some(waiting) = self.waiting_for_close.take() {
            waiting.wake();
        }
    }

    /// Removes dropped frames from the front: a write of no bytes would look like the end of the stream.
    pub fn skip_dropped(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.frames.is_none()) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        self.first += 1;
        self.frames -= self.entries.pop_front().as_ref().map_or(0, Entry::count);
    }

    /// Passes the next pieces to `write`.
    pub fn write<T>(&self, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let mut queued = self.entries.iter().filter_map(|entry| entry.frames.as_ref().map(Frames::bytes));
        // The usual case: a peer that reads has one frame queued, and there may be thousands of such sockets.
        if let (true, true, 1) = (self.half.is_empty(), self.ping.is_empty(), self.entries.len()) {
            return write(&[IoSlice::new(queued.next().map_or(&[], |bytes| bytes))]);
        }
        let mut pieces = [IoSlice::new(&[]); PIECES_PER_WRITE_MAX];
        let mut count = 0;
        let ahead = [&self.half, &self.ping].into_iter().filter(|bytes| !bytes.is_empty());
        for (piece, bytes) in pieces.iter_mut().zip(ahead.chain(queued)) {
            *piece = IoSlice::new(bytes);
            count += 1;
        }
        write(&pieces[..count])
    }

    /// Records that this many bytes are written.
    pub fn advance(&mut self, count: usize) {
        self.bytes -= count;
        let mut left = count;
        while left > 0 {
            if self.half.is_empty() && self.ping.is_empty() {
                left = self.advance_entry(left);
                continue;
            }
            let ahead = if self.half.is_empty() { &mut self.ping } else { &mut self.half };
            let mut bytes = std::mem::take(ahead);
            if left < bytes.len() {
                bytes.advance(left);
                self.half = bytes;
                return;
            }
            left -= bytes.len();
        }
        if self.entries.is_empty() {
            self.latest.clear();
        }
    }

    /// Records that `left` bytes of the first entry, and of those after it, are written. Returns the part after the
    /// first entry.
    fn advance_entry(&mut self, left: usize) -> usize {
        self.skip_dropped();
        let entry = self.entries.front_mut().expect("no more is written than is queued");
        let frames = entry.frames.as_mut().expect("dropped frames are not written");
        if left >= frames.bytes().len() {
            let behind = left - frames.bytes().len();
            self.pop();
            return behind;
        }
        let (half, rest) = frames.split(left);
        self.half = half;
        match rest {
            Some(rest) => {
                self.frames -= frames.count() - rest.count();
                *frames = rest;
            }
            None => self.pop(),
        }
        0
    }
}

impl Entry {
    /// A replaced entry counts until it is removed.
    fn count(&self) -> usize {
        self.frames.as_ref().map_or(1, Frames::count)
    }
}
