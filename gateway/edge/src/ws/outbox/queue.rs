//! What waits on one socket: frames in their order, what of them is half written, and the bounds.

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
    /// The rest of a frame that is half written: nothing may leave before it. Empty when no frame is.
    half: Bytes,
    /// Leaves before the entries: a ping behind a long queue would be answered too late. Empty when none waits.
    ping: Bytes,
    pub entries: VecDeque<Entry>,
    /// Number of the first entry: an entry's number never changes.
    first: u64,
    /// Of all entries, those too that were replaced and not cleared away yet.
    pub frames: usize,
    /// Of all that waits.
    pub bytes: usize,
    /// Numbers of replaceable frames that wait.
    latest: AHashMap<Tag, u64>,
    /// An offer was refused since the queue was last empty.
    pub refused: bool,
    /// Somebody was told to flush, and has not yet.
    pub to_flush: bool,
    /// Nothing more is queued; the frame of the close is the last one.
    pub closing: Option<Close>,
    /// The close frame has left, or never will.
    pub finished: bool,
    pub writer: Option<Waker>,
    pub waiting_for_close: Option<Waker>,
}

pub(super) struct Entry {
    tag: Option<Tag>,
    /// `None`: replaced by a newer one.
    frames: Option<Frames>,
}

impl Queue {
    pub fn is_full(&self, more: &Frames) -> bool {
        self.frames + more.count() > QUEUE_FRAMES_MAX || self.bytes + more.bytes().len() > QUEUE_BYTES_MAX
    }

    /// A frame of any length may be too much.
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

    /// Wakes the writing task, if it sleeps.
    pub fn wake(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    /// False when one waits already.
    pub fn ping(&mut self, ping: &Frame) -> bool {
        let is_first = self.ping.is_empty();
        if is_first {
            self.ping = ping.bytes().clone();
            self.bytes += self.ping.len();
        }
        is_first
    }

    /// Drops the frame of that tag which [`Queue::remember`] knows, if it waits.
    pub fn drop_latest(&mut self, tag: Tag) {
        let Some(number) = self.latest.remove(&tag).filter(|number| *number >= self.first) else { return };
        if let Some(dropped) = self.entries[(number - self.first) as usize].frames.take() {
            self.bytes -= dropped.bytes().len();
        }
    }

    /// What is pushed next is the latest of that tag.
    pub fn remember(&mut self, tag: Tag) {
        self.latest.insert(tag, self.first + self.entries.len() as u64);
    }

    /// Takes dropped frames out of the queue.
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

    /// Drops what waits of a tag, but for a frame that is half written.
    pub fn withdraw(&mut self, tag: Tag) {
        let mut freed = 0;
        self.entries.retain(|entry| {
            let kept = entry.tag != Some(tag);
            freed += entry.frames.as_ref().filter(|_| !kept).map_or(0, |frames| frames.bytes().len());
            kept
        });
        self.bytes -= freed;
        self.count();
        // Their numbers have moved; a frame too many is sent at worst.
        self.latest.clear();
    }

    fn count(&mut self) {
        self.frames = self.entries.iter().map(Entry::count).sum();
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.half.is_empty() && self.ping.is_empty() && self.entries.is_empty()
    }

    /// Forgets what waits, but for a frame that is half written.
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

    /// Steps over dropped frames: a write of nothing would look like the end of the stream.
    pub fn skip_dropped(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.frames.is_none()) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        self.first += 1;
        self.frames -= self.entries.pop_front().as_ref().map_or(0, Entry::count);
    }

    /// Gives to `write` what leaves next, piece by piece.
    pub fn write<T>(&self, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let mut queued = self.entries.iter().filter_map(|entry| entry.frames.as_ref().map(Frames::bytes));
        // A listener who reads has nothing else waiting, and there may be thousands.
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

    /// So many bytes have left.
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

    /// So many bytes of the first entry and those behind it have left; gives how many of those behind it.
    fn advance_entry(&mut self, left: usize) -> usize {
        self.skip_dropped();
        let entry = self.entries.front_mut().expect("no more leaves than waits");
        let frames = entry.frames.as_mut().expect("what is dropped does not leave");
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
    /// One that was replaced counts until it is cleared away.
    fn count(&self) -> usize {
        self.frames.as_ref().map_or(1, Frames::count)
    }
}
