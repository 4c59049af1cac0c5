//! What waits to leave on one socket: bounded in frames and bytes, several frames per write.
//!
//! Two write, never at once: a task of the socket's own, which waits for the peer, and for frames that go to a crowd the
//! hub ([`Outbox::flush`]), which waits for nobody: a task that is woken for each listener costs more than his write.
//!
//! A peer that does not read costs its queue and nothing more: nobody waits for it. What happens at the bound is said by
//! whoever queues (streams.md §1.6): [`Outbox::send`] never drops and ends the socket, [`Outbox::offer`] is refused,
//! [`Outbox::replace`] drops an older frame of the same tag.

mod queue;

use super::close::Close;
use super::frame::{Frame, Frames};
use engine::time::Timestamp;
use queue::Queue;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Bounds of what waits on one socket.
pub const QUEUE_FRAMES_MAX: usize = 1_024;
pub const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Room beyond the bounds for what is never dropped: answers and pongs to a peer whose queue is full of other things.
const SENT_FRAMES_MORE: usize = 64;
const SENT_BYTES_MORE: usize = 64 << 10;
/// What may still leave before the close frame; a peer that left more behind was not reading.
const GOODBYE_BYTES_MAX: usize = 64 << 10;
/// Pieces that one write takes at most, each of one frame or several.
const PIECES_PER_WRITE_MAX: usize = 64;

/// What a queued frame is about, where that matters: an instrument, a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u64);

/// What became of frames that were put into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// There is no room for them.
    Refused,
    /// They leave without anybody's doing, or the socket ends.
    Waits,
    /// They leave with the [`Outbox::flush`] that is owed now.
    ToFlush,
}

/// The queue of one socket.
#[derive(Default)]
pub struct Outbox {
    state: RefCell<Queue>,
    drained: RefCell<Option<Rc<dyn Fn()>>>,
    /// Server time since when the peer has taken nothing; 0 = it takes.
    stuck_since: Cell<u64>,
    /// Server time at which a peer that had taken nothing took something again; 0 = it never had to.
    took_again: Cell<u64>,
}

impl Outbox {
    /// Queues a frame that is never dropped. Somewhat beyond the bound the socket ends as a slow consumer instead.
    pub fn send(&self, frame: &Frame) {
        let mut state = self.state.borrow_mut();
        if state.closing.is_some() {
            return;
        }
        let frame = frame.into();
        if state.is_beyond(&frame) {
            state.clear();
            return state.close(Close::SLOW_CONSUMER);
        }
        state.push(None, frame);
        state.wake();
    }

    /// Sends a ping before all that is queued, behind a frame that is half written. One that still waits is enough.
    pub fn ping(&self, ping: &Frame) {
        let mut state = self.state.borrow_mut();
        if state.closing.is_none() && state.ping(ping) {
            state.wake();
        }
    }

    /// Queues a frame in its order. False at the bound: it was not taken, and [`Outbox::when_drained`] will be called.
    pub fn offer(&self, tag: Tag, frame: &Frame) -> bool {
        let placed = self.place(tag, &frame.into());
        if placed == Placed::ToFlush {
            let mut state = self.state.borrow_mut();
            state.to_flush = false;
            state.wake();
        }
        placed != Placed::Refused
    }

    /// Queues frames in their order, all of them or none, as [`Outbox::offer`] does, and wakes nobody: several may be
    /// placed before the one flush that is owed.
    pub fn place(&self, tag: Tag, frames: &Frames) -> Placed {
        let mut state = self.state.borrow_mut();
        if state.closing.is_some() {
            return Placed::Waits;
        }
        if state.is_full(frames) {
            state.refused = true;
            return Placed::Refused;
        }
        state.push(Some(tag), frames.clone());
        // Whoever waits for the peer is woken by him, and who is awake already will look.
        let sleeps = self.stuck_since.get() == 0 && state.writer.is_some();
        if sleeps && !std::mem::replace(&mut state.to_flush, true) { Placed::ToFlush } else { Placed::Waits }
    }

    /// Writes what waits, as far as `write` takes it at once; the socket's own task sees to the rest, and to whatever is
    /// not an everyday write. Says how many bytes were taken.
    pub fn flush(&self, mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>) -> usize {
        let mut state = self.state.borrow_mut();
        state.to_flush = false;
        if self.stuck_since.get() > 0 || state.closing.is_some() {
            state.wake();
            return 0;
        }
        let mut taken = 0;
        state.skip_dropped();
        while !state.is_empty() {
            let mut offered = 0;
            let written = state.write(|pieces| {
                offered = pieces.iter().map(|piece| piece.len()).sum();
                write(pieces)
            });
            let count = written.unwrap_or(0);
            state.advance(count);
            taken += count;
            if count < offered {
                state.wake();
                return taken;
            }
            state.skip_dropped();
        }
        // It calls whoever was refused.
        if state.refused {
            state.wake();
        }
        taken
    }

    /// Whether an offer would be taken, before a frame is made for it. If not, [`Outbox::when_drained`] will be called.
    pub fn has_room(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let full = state.closing.is_none() && state.has_no_room();
        state.refused |= full;
        !full
    }

    /// Queues the newest frame of a tag, and drops the one that waits, if one does. Should the queue be full of other
    /// things the frame is dropped; a newer one will come.
    pub fn replace(&self, tag: Tag, frame: &Frame) {
        let state = &mut *self.state.borrow_mut();
        if state.closing.is_some() {
            return;
        }
        let frame = frame.into();
        state.drop_latest(tag);
        if state.is_full(&frame) {
            state.compact();
        }
        if !state.is_full(&frame) {
            state.remember(tag);
            state.push(None, frame);
            state.wake();
        }
    }

    /// Drops what waits of a tag, but for a frame that is half written.
    pub fn withdraw(&self, tag: Tag) {
        self.state.borrow_mut().withdraw(tag);
    }

    /// What to call once the queue is empty after a refused offer.
    pub fn when_drained(&self, call: impl Fn() + 'static) {
        *self.drained.borrow_mut() = Some(Rc::new(call));
    }

    /// Queues the close as the last frame, behind what is queued while that is little. The first one counts.
    pub fn close(&self, close: Close) {
        self.state.borrow_mut().close(close);
    }

    /// The same for a peer that may have nothing more of what is queued.
    pub fn cut(&self, close: Close) {
        let mut state = self.state.borrow_mut();
        if state.closing.is_none() {
            state.clear();
            state.close(close);
        }
    }

    /// Drops everything and ends at once: the peer takes nothing any more.
    pub fn abort(&self, close: Close) {
        let mut state = self.state.borrow_mut();
        state.clear();
        state.close(close);
        state.finished = true;
        state.wake();
    }

    /// Why the socket ends, once that is decided.
    pub fn closing(&self) -> Option<Close> {
        self.state.borrow().closing
    }

    /// Waits until it is decided that the socket ends.
    pub async fn closed(&self) -> Close {
        std::future::poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            match state.closing {
                Some(close) => Poll::Ready(close),
                None => {
                    state.waiting_for_close = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Frames that wait, without one that is half written, with those that were replaced and not cleared away yet.
    pub fn waiting(&self) -> usize {
        self.state.borrow().frames
    }

    /// Bytes that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.state.borrow().bytes
    }

    /// Since when the peer has taken nothing of what waits.
    pub fn stuck_since(&self) -> Option<Timestamp> {
        Some(Timestamp(self.stuck_since.get())).filter(|since| since.0 > 0)
    }

    /// When the peer last made room for what could not leave before: a sign of life, as no other write is, since what
    /// the system takes may wait there for a peer that is gone. The beginning of time when it never did.
    pub fn took_again(&self) -> Timestamp {
        Timestamp(self.took_again.get())
    }

    /// Writes until the close frame has left; then shuts the writing half down. `now` says server time.
    ///
    /// # Errors
    /// The peer's end of it.
    pub async fn write(&self, to: &mut (impl AsyncWrite + Unpin), now: impl Fn() -> Timestamp) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll_write(context, &mut *to, &now)).await?;
        std::future::poll_fn(|context| Pin::new(&mut *to).poll_shutdown(context)).await
    }

    fn poll_write(
        &self,
        context: &mut Context<'_>,
        to: &mut (impl AsyncWrite + Unpin),
        now: &impl Fn() -> Timestamp,
    ) -> Poll<io::Result<()>> {
        loop {
            {
                let mut state = self.state.borrow_mut();
                if state.finished || (state.is_empty() && state.closing.is_some()) {
                    state.finished = true;
                    return Poll::Ready(Ok(()));
                }
                state.skip_dropped();
                if !state.is_empty() {
                    let written = state.write(|pieces| match pieces {
                        [piece] => Pin::new(&mut *to).poll_write(context, piece),
                        _ => Pin::new(&mut *to).poll_write_vectored(context, pieces),
                    });
                    if written.is_pending() {
                        if self.stuck_since.get() == 0 {
                            self.stuck_since.set(now().0.max(1));
                        }
                        // Woken by the socket, or to be aborted.
                        state.writer = Some(context.waker().clone());
                    }
                    match ready!(written)? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        count => state.advance(count),
                    }
                    if self.stuck_since.replace(0) > 0 {
                        self.took_again.set(now().0);
                    }
                    continue;
                }
                state.writer = Some(context.waker().clone());
                state.entries.shrink_to(16);
                if !std::mem::take(&mut state.refused) {
                    return Poll::Pending;
                }
            }
            // Outside the borrow: it queues.
            let drained = self.drained.borrow().clone();
            if let Some(drained) = drained {
                drained();
            }
        }
    }
}

#[cfg(test)]
mod tests;
