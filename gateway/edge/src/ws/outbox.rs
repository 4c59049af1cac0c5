//! The queue of one socket: bounded in frames and bytes, with several frames in one write.
//!
//! There are two writers, which never write at the same time. A task of the socket waits for the peer. Frames for many
//! sockets are written by the hub ([`Outbox::flush`]), which never waits: waking a task for each socket costs more than
//! its write.
//!
//! A peer that does not read costs its queue and nothing more, and no task waits for it. The producer decides what
//! happens at the bound (gateway/docs/streams.md §1.6): [`Outbox::send`] never drops a frame but ends the socket,
//! [`Outbox::offer`] is refused, [`Outbox::replace`] drops an older frame of the same tag.

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

/// Bounds of one socket's queue.
pub const QUEUE_FRAMES_MAX: usize = 1_024;
pub const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Room beyond the bounds for frames that are never dropped: responses, and pongs to a peer with a full queue.
const SENT_FRAMES_MORE: usize = 64;
const SENT_BYTES_MORE: usize = 64 << 10;
/// Queued bytes that are still sent before the close frame. With more, the peer was not reading.
const GOODBYE_BYTES_MAX: usize = 64 << 10;
/// Most pieces of one write, each of one or several frames.
const PIECES_PER_WRITE_MAX: usize = 64;

/// The subject of a queued frame, such as a market, if frames of that subject may be dropped or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u64);

/// The result of queueing frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// There is no room.
    Refused,
    /// A writer is active or will be woken by the peer, or the socket ends.
    Waits,
    /// The caller must have [`Outbox::flush`] called.
    ToFlush,
}

/// The queue of one socket.
#[derive(Default)]
pub struct Outbox {
    state: RefCell<Queue>,
    drained: RefCell<Option<Rc<dyn Fn()>>>,
    /// Steady time since when the peer takes nothing; 0 if it takes bytes.
    stuck_since: Cell<u64>,
    /// Steady time at which the peer last took bytes after taking nothing; 0 if it never stopped.
    unstuck_at: Cell<u64>,
}

impl Outbox {
    /// Queues a frame that is never dropped. Beyond the bound and its reserve, the socket ends as a slow consumer
    /// instead.
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

    /// Queues a ping before all other frames, but after one that is partly written. Does nothing if one is queued.
    pub fn ping(&self, ping: &Frame) {
        let mut state = self.state.borrow_mut();
        if state.closing.is_none() && state.ping(ping) {
            state.wake();
        }
    }

    /// Queues a frame. Returns false at the bound: the frame is not queued, and [`Outbox::when_drained`] will be
    /// called.
    pub fn offer(&self, tag: Tag, frame: &Frame) -> bool {
        let placed = self.place(tag, &frame.into());
        if placed == Placed::ToFlush {
            let mut state = self.state.borrow_mut();
            state.to_flush = false;
            state.wake();
        }
        placed != Placed::Refused
    }

    /// Queues frames, all or none, as [`Outbox::offer`] does, but wakes no task. Several calls may precede the one
    /// flush.
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
        // A task that waits for the peer is woken by the socket, and an active one looks at the queue again.
        let sleeps = self.stuck_since.get() == 0 && state.writer.is_some();
        if sleeps && !std::mem::replace(&mut state.to_flush, true) { Placed::ToFlush } else { Placed::Waits }
    }

    /// Writes queued frames, as many as `write` takes without waiting. The socket's task does the rest, and everything
    /// except plain writes. Returns the number of bytes written.
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
        // The task calls the function of `when_drained`.
        if state.refused {
            state.wake();
        }
        taken
    }

    /// Whether an offer would be accepted, to be checked before a frame is made. If not, [`Outbox::when_drained`] will
    /// be called.
    pub fn has_room(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let full = state.closing.is_none() && state.has_no_room();
        state.refused |= full;
        !full
    }

    /// Queues a frame in place of a queued one with the same tag. If the queue is full of other frames, the frame is
    /// dropped: a newer one will follow.
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

    /// Drops the queued frames of a tag, except one that is partly written.
    pub fn withdraw(&self, tag: Tag) {
        self.state.borrow_mut().withdraw(tag);
    }

    /// Sets the function to call when the queue is empty after a refused offer.
    pub fn when_drained(&self, call: impl Fn() + 'static) {
        *self.drained.borrow_mut() = Some(Rc::new(call));
    }

    /// Queues the close frame as the last one, after the queued frames if they are few. Only the first call has an
    /// effect.
    pub fn close(&self, close: Close) {
        self.state.borrow_mut().close(close);
    }

    /// As [`Outbox::close`], but drops the queued frames: the peer may not have them any more.
    pub fn cut(&self, close: Close) {
        let mut state = self.state.borrow_mut();
        if state.closing.is_none() {
            state.clear();
            state.close(close);
        }
    }

    /// Drops everything and ends the socket immediately, because the peer takes nothing.
    pub fn abort(&self, close: Close) {
        let mut state = self.state.borrow_mut();
        state.clear();
        state.close(close);
        state.finished = true;
        state.wake();
    }

    /// The close code, once it is decided that the socket ends.
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

    /// Queued frames, without one that is partly written, but with replaced ones that are not removed yet.
    pub fn waiting(&self) -> usize {
        self.state.borrow().frames
    }

    /// Queued bytes.
    pub fn waiting_bytes(&self) -> usize {
        self.state.borrow().bytes
    }

    /// Since when the peer has taken nothing, if bytes are queued.
    pub fn stuck_since(&self) -> Option<Timestamp> {
        Some(Timestamp(self.stuck_since.get())).filter(|since| since.0 > 0)
    }

    /// When the peer last took bytes after taking nothing; zero if it never stopped. Only this is a sign of life: the
    /// system accepts other writes even if the peer is gone.
    pub fn unstuck_at(&self) -> Timestamp {
        Timestamp(self.unstuck_at.get())
    }

    /// Writes until the close frame is sent, then shuts down the writing half. `now` returns the steady time.
    ///
    /// # Errors
    /// The connection failed.
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
                        // Woken by the socket, or by an abort.
                        state.writer = Some(context.waker().clone());
                    }
                    match ready!(written)? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        count => state.advance(count),
                    }
                    if self.stuck_since.replace(0) > 0 {
                        self.unstuck_at.set(now().0);
                    }
                    continue;
                }
                state.writer = Some(context.waker().clone());
                state.entries.shrink_to(16);
                if !std::mem::take(&mut state.refused) {
                    return Poll::Pending;
                }
            }
            // Called outside the borrow, because it queues frames.
            let drained = self.drained.borrow().clone();
            if let Some(drained) = drained {
                drained();
            }
        }
    }
}

#[cfg(test)]
mod tests;
