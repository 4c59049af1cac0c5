//! Operations and connections of a bot, as the tasks that read and answer them see them.

use super::kernel;
use super::{LineState, Moments, State};
use std::cell::Cell;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// An operation before it is looked at; ready when it may be.
pub struct Turn {
    pub(super) moments: Arc<Moments>,
    /// `Some` while it is parked.
    pub(super) ticket: Option<u64>,
    pub(super) is_refused: bool,
}

impl Future for Turn {
    /// Whether the operation may be looked at.
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let Some(ticket) = self.ticket else { return Poll::Ready(!self.is_refused) };
        let is_refused = {
            let mut state = self.moments.state.lock();
            if let Some((_, waker)) = state.parked.iter_mut().find(|(of, _)| *of == ticket) {
                *waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            state.refused.contains(&ticket)
        };
        (self.ticket, self.is_refused) = (None, is_refused);
        Poll::Ready(!is_refused)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.moments.state.lock();
        let is_first = state.parked.front().is_some_and(|(of, _)| *of == ticket);
        state.parked.retain(|(of, _)| *of != ticket);
        if is_first {
            // The clock stays where it is: the next one has a round of its own.
            state.round = None;
        }
        self.moments.changed.notify_all();
    }
}

/// An open operation.
pub struct Held(pub(super) Arc<Moments>);

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        self.0.close(&mut state);
    }
}

/// A connection of a bot, for the task that reads and writes it.
pub struct Line {
    moments: Arc<Moments>,
    id: u64,
    is_open: Cell<bool>,
}

impl Line {
    /// A connection with this socket.
    pub fn new(moments: &Arc<Moments>, socket: OwnedFd) -> Line {
        let mut state = moments.state.lock();
        let id = state.id();
        let inode = kernel::inode(socket.as_fd());
        state.lines.push(LineState { id, socket, inode, is_open: false, is_stream: false });
        drop(state);
        Line { moments: Arc::clone(moments), id, is_open: Cell::new(false) }
    }

    fn set(&self, state: &mut State, is_open: bool) {
        self.is_open.set(is_open);
        state.lines.iter_mut().filter(|line| line.id == self.id).for_each(|line| line.is_open = is_open);
    }

    /// Before the task reads: opens an operation, unless this line has one. False while the feed works; the task is
    /// woken afterwards.
    pub fn enter(&self, context: &Context<'_>) -> bool {
        if self.is_open.get() {
            return true;
        }
        let mut state = self.moments.state.lock();
        if state.is_working {
            state.waiting.push(context.waker().clone());
            return false;
        }
        state.open += 1;
        self.set(&mut state, true);
        true
    }

    /// Everything that was read has been answered.
    pub fn leave(&self) {
        if self.is_open.get() {
            let mut state = self.moments.state.lock();
            self.set(&mut state, false);
            self.moments.close(&mut state);
        }
    }

    /// Bytes were read.
    pub fn has_read(&self) {
        self.moments.state.lock().active_at = Instant::now();
    }

    /// A response or a frame is with the kernel; `is_frame`: of a stream.
    pub fn has_sent(&self, is_frame: bool) {
        let mut state = self.moments.state.lock();
        state.active_at = Instant::now();
        state.last_sent_at = Some(self.moments.clock.now());
        state.sent += 1;
        if is_frame {
            state.is_unacknowledged = true;
            state.lines.iter_mut().filter(|line| line.id == self.id).for_each(|line| line.is_stream = true);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.leave();
        let mut state = self.moments.state.lock();
        state.lines.retain(|line| line.id != self.id);
        self.moments.changed.notify_all();
    }
}
