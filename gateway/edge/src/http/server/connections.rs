//! Open connections and their caps, shared by all IO threads.
//!
//! At a cap the connection that has been idle longest is closed, so that peers with idle connections cannot block
//! others. A connection is idle while no request is in progress: no complete head, no response, no stream. Bytes of an
//! incomplete head do not change that. If no connection is idle, a new one is refused.

use super::deadline::HeadDeadline;
use crate::settings::{Network, Settings};
use ahash::AHashMap;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// Idle connections that one scan collects, for the next connections that need room.
const CANDIDATES_MAX: usize = 64;
/// Connections that are being closed to make room, at most. This many may be open beyond the cap.
const LEAVING_MAX: usize = 64;
/// Pause after a scan that found no idle connection.
const SCAN_PAUSE: Duration = Duration::from_millis(10);

/// All connections.
#[derive(Debug)]
pub struct Connections {
    total_max: usize,
    per_address_max: usize,
    header_timeout: Duration,
    idle_timeout: Duration,
    /// Addresses that many clients share, for which only the total is limited. Loopback is the same for tests and
    /// benchmarks.
    exempt: Vec<Network>,
    meter_loopback: bool,
    total: AtomicUsize,
    refused: AtomicU64,
    made_room: AtomicU64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: AHashMap<u64, Arc<Seat>>,
    /// Connections that are being closed to make room.
    leaving: usize,
    candidates: Candidates,
    by_address: AHashMap<IpAddr, OfAddress>,
}

#[derive(Debug, Default)]
struct OfAddress {
    /// Without those that are being closed.
    count: usize,
    candidates: Candidates,
}

/// Connections that were idle at the last scan, with the start of their idle time. The longest idle is last.
#[derive(Debug, Default)]
struct Candidates {
    idle: Vec<(u64, u64)>,
    /// Earliest time of the next scan.
    not_before: Option<Instant>,
}

/// State of one connection that others read.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) head: HeadDeadline,
    address: Option<IpAddr>,
    leaves: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Seat {
    /// Registers the task to wake when the connection is to close. Called when the connection is first polled.
    pub(super) fn register(&self, context: &Context<'_>) {
        *self.waker.lock() = Some(context.waker().clone());
    }

    /// Whether the connection is to close as soon as no request is in progress.
    pub(super) fn leaves(&self) -> bool {
        // The lock of the waker orders this load: a task that was not woken loads after `register`.
        self.leaves.load(Ordering::Relaxed)
    }

    fn leave(&self) {
        self.leaves.store(true, Ordering::Relaxed);
        if let Some(waker) = self.waker.lock().as_ref() {
            waker.wake_by_ref();
        }
    }
}

impl Connections {
    pub fn new(config: &Settings) -> Connections {
        Connections {
            total_max: config.http.connections_max,
            per_address_max: config.http.connections_per_address_max,
            header_timeout: config.http.header_timeout,
            idle_timeout: config.http.idle_timeout,
            exempt: config.http.trusted_proxies.clone(),
            meter_loopback: config.limits.meter_loopback,
            total: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            made_room: AtomicU64::new(0),
            taken: Mutex::default(),
        }
    }

    /// A cap of `total_max` connections, each idle for at most `idle_timeout`.
    pub fn at_most(total_max: usize, idle_timeout: Duration) -> Connections {
        Connections {
            total_max,
            per_address_max: usize::MAX,
            header_timeout: idle_timeout,
            idle_timeout,
            exempt: Vec::new(),
            meter_loopback: false,
            total: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            made_room: AtomicU64::new(0),
            taken: Mutex::default(),
        }
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Connections that were refused because a cap was reached.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Idle connections that were closed because a cap was reached.
    pub fn made_room(&self) -> u64 {
        self.made_room.load(Ordering::Relaxed)
    }

    /// Takes a slot for a connection of this peer. `None`: all slots have a request in progress.
    pub fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let address = self.counted(peer);
        let mut taken = self.taken.lock();
        let of_address = address.map_or(0, |address| taken.by_address.get(&address).map_or(0, |of| of.count));
        let has_room = (of_address < self.per_address_max || self.make_room(&mut taken, address))
            && (taken.seats.len() - taken.leaving < self.total_max || self.make_room(&mut taken, None));
        if !has_room {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let head = HeadDeadline::new(self.header_timeout, self.idle_timeout);
        let seat = Arc::new(Seat { head, address, leaves: AtomicBool::new(false), waker: Mutex::new(None) });
        let id = taken.next;
        taken.next += 1;
        taken.seats.insert(id, Arc::clone(&seat));
        if let Some(address) = address {
            taken.by_address.entry(address).or_default().count += 1;
        }
        self.total.store(taken.seats.len(), Ordering::Relaxed);
        Some(Slot { connections: Arc::clone(self), id, seat })
    }

    /// Closes the connection that has been idle longest, of one address or of all. Returns whether one was idle.
    fn make_room(&self, taken: &mut Taken, address: Option<IpAddr>) -> bool {
        if taken.leaving >= LEAVING_MAX {
            return false;
        }
        let Taken { seats, leaving, candidates: of_all, by_address, .. } = taken;
        let candidates = match address {
            Some(address) => &mut by_address.entry(address).or_default().candidates,
            None => of_all,
        };
        let Some(seat) = candidates.longest_idle(seats, address) else { return false };
        let seat = Arc::clone(seat);
        *leaving += 1;
        if let Some(of) = seat.address.and_then(|address| by_address.get_mut(&address)) {
            of.count -= 1;
        }
        seat.leave();
        self.made_room.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The address under which a peer is counted: IPv6 by its /64.
    fn counted(&self, peer: IpAddr) -> Option<IpAddr> {
        let peer = peer.to_canonical();
        let exempt = self.exempt.iter().any(|network| network.contains(peer));
        if exempt || (peer.is_loopback() && !self.meter_loopback) {
            return None;
        }
        Some(match peer {
            IpAddr::V4(_) => peer,
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        })
    }

    #[cfg(test)]
    pub(super) fn addresses(&self) -> usize {
        self.taken.lock().by_address.len()
    }
}

impl Candidates {
    fn longest_idle<'s>(
        &mut self,
        seats: &'s AHashMap<u64, Arc<Seat>>,
        address: Option<IpAddr>,
    ) -> Option<&'s Arc<Seat>> {
        let idle_since = |seat: &Seat| seat.head.idle_since().filter(|_| !seat.leaves());
        for may_scan in [true, false] {
            while let Some((since, id)) = self.idle.pop() {
                // A connection with a request since the scan is no longer idle for longest.
                if let Some(seat) = seats.get(&id).filter(|seat| idle_since(seat) == Some(since)) {
                    return Some(seat);
                }
            }
            let now = Instant::now();
            if !may_scan || self.not_before.is_some_and(|not_before| now < not_before) {
                return None;
            }
            let mine = seats.iter().filter(|(_, seat)| address.is_none() || seat.address == address);
            self.idle.extend(mine.filter_map(|(id, seat)| Some((idle_since(seat)?, *id))));
            if self.idle.len() > CANDIDATES_MAX {
                self.idle.select_nth_unstable(CANDIDATES_MAX);
                self.idle.truncate(CANDIDATES_MAX);
                self.idle.shrink_to_fit();
            }
            self.idle.sort_unstable_by(|a, b| b.cmp(a));
            self.not_before = self.idle.is_empty().then(|| now + SCAN_PAUSE);
        }
        None
    }
}

/// The slot of one connection, returned on drop.
pub struct Slot {
    connections: Arc<Connections>,
    id: u64,
    pub(super) seat: Arc<Seat>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.connections.taken.lock();
        taken.seats.remove(&self.id);
        self.connections.total.store(taken.seats.len(), Ordering::Relaxed);
        let leaves = self.seat.leaves();
        if leaves {
            taken.leaving -= 1;
        }
        let Some(address) = self.seat.address else { return };
        if let Some(of) = taken.by_address.get_mut(&address) {
            of.count -= usize::from(!leaves);
            if of.count == 0 {
                taken.by_address.remove(&address);
            }
        }
    }
}
