//! All open sockets of one IO thread. Once a second a sweep checks each: pings, idle peers, stuck writers, ended
//! credentials. It runs only while there are sockets.

use super::admit::{self, ChannelKind, Queued};
use super::close::Close;
use super::frame::Frame;
use super::session::{SWEEP_US, Socket};
use crate::app::{App, Edge};
use ahash::AHashMap;
use engine::time::{SECOND, Timestamp};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Interval of the server's pings (gateway/docs/streams.md §1.5).
const PING_EVERY_US: u64 = 20 * SECOND;
/// A peer that sent nothing for this long, not even a pong, and took none of the queued bytes.
const IDLE_US: u64 = 60 * SECOND;
/// A peer that took no byte for this long.
const STUCK_US: u64 = 15 * SECOND;

/// Sockets by id.
#[derive(Default)]
pub struct Sockets {
    open: RefCell<AHashMap<u64, Rc<Socket>>>,
    sweeping: Cell<bool>,
    /// Queued frames and bytes at the last sweep.
    queued: Cell<Queued>,
    ending: Cell<bool>,
    ping: RefCell<Option<Frame>>,
}

/// A socket's entry in the list, removed on drop.
pub(super) struct Entered {
    sockets: Weak<Sockets>,
    app: std::sync::Arc<App>,
    id: u64,
    kind: ChannelKind,
}

impl Entered {
    /// Counts the socket as closed for that reason.
    pub(super) fn ends(self, close: Close) {
        self.app.streams.seats.closes_for(close);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.app.streams.seats.left(self.kind);
        if let Some(sockets) = self.sockets.upgrade() {
            sockets.open.borrow_mut().remove(&self.id);
        }
    }
}

impl Sockets {
    pub(super) fn enter(&self, socket: &Rc<Socket>, kind: ChannelKind, edge: &Rc<Edge>) -> Entered {
        self.open.borrow_mut().insert(socket.id(), Rc::clone(socket));
        edge.app.streams.seats.entered(kind);
        if self.ending.get() {
            socket.close(Close::GOING_AWAY);
        }
        if !self.sweeping.replace(true) {
            tokio::task::spawn_local(sweep(Rc::clone(&edge.sockets), edge.app.clone()));
        }
        Entered { sockets: Rc::downgrade(&edge.sockets), app: edge.app.clone(), id: socket.id(), kind }
    }

    /// Closes all sockets, and those that are opened later, because the server stops.
    pub fn end(&self) {
        self.ending.set(true);
        self.open.borrow().values().for_each(|socket| socket.close(Close::GOING_AWAY));
    }

    /// `server` is server time, `now` the steady time.
    fn check(&self, app: &App, server: Timestamp, now: Timestamp) {
        let ping = self.ping.borrow_mut().get_or_insert_with(Frame::ping).clone();
        let mut queued = Queued::default();
        for socket in self.open.borrow().values() {
            queued.add(socket.outbox());
            let times = &socket.times;
            if socket.outbox().stuck_since().is_some_and(|since| now.since(since) >= STUCK_US) {
                socket.outbox().abort(Close::SLOW_CONSUMER);
            } else if !socket.is_open() {
                continue;
            } else if now.since(times.received.get().max(socket.outbox().unstuck_at())) >= IDLE_US {
                socket.close(Close::IDLE);
            } else if times.auth_until.get().is_some_and(|until| now >= until) {
                socket.close(Close::AUTH_TIMEOUT);
            } else if let Some(close) = socket.bearer().and_then(|bearer| admit::ended(app, &bearer, server)) {
                socket.outbox().cut(close);
            } else if now.since(times.pinged.get()) >= PING_EVERY_US {
                times.pinged.set(now);
                socket.outbox().ping(&ping);
            }
        }
        app.streams.seats.queues(self.queued.replace(queued), queued);
    }
}

async fn sweep(sockets: Rc<Sockets>, app: std::sync::Arc<App>) {
    while !sockets.open.borrow().is_empty() {
        tokio::time::sleep(Duration::from_micros(SWEEP_US)).await;
        let (server, now) = app.reads.clock.both();
        sockets.check(&app, server, now);
    }
    // The queues of the last sockets are gone.
    app.streams.seats.queues(sockets.queued.take(), Queued::default());
    sockets.sweeping.set(false);
}

#[cfg(test)]
mod tests;
