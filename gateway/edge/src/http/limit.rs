//! Request limits: fixed windows by the clock, and caps on requests in flight (gateway/docs/wire.md §8).
//!
//! A request counts in both windows (second and minute) or in neither. Keys have a dense slot of atomics. Addresses and
//! JWT users have an entry in a bounded table; those that find it full share one meter. Time is an argument. The
//! counters start at zero with the process.

use super::reply::Refusal;
use crate::settings::{Limits as Settings, Network, TIERS, TierLimits};
use ahash::AHashMap;
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::Tier;
use hyper::header::HeaderValue;
use parking_lot::Mutex;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Entries of a table of addresses or JWT users.
const TABLE_ENTRIES_MAX: usize = 65_536;
/// Retry advice for a placement over the cap, in milliseconds.
const PLACEMENT_RETRY_MS: u32 = 250;

/// One window: its number since 1970 in the upper bits, its count in the lower [`COUNT_BITS`].
#[derive(Debug, Default)]
struct Window(AtomicU64);

/// Counts stay below 2²⁴: the largest limit is a million.
const COUNT_BITS: u32 = 24;

impl Window {
    fn split(word: u64) -> (u64, u32) {
        (word >> COUNT_BITS, (word & ((1 << COUNT_BITS) - 1)) as u32)
    }

    /// Counts one in window `number`, or in a later one that another thread began. Returns the count, or `None` at
    /// `cap`.
    fn take(&self, number: u64, cap: u32) -> Option<u32> {
        let mut word = self.0.load(Relaxed);
        loop {
            let (current, count) = Window::split(word);
            let (number, count) = if current >= number { (current, count) } else { (number, 0) };
            if count >= cap {
                return None;
            }
            let next = number << COUNT_BITS | u64::from(count + 1);
            match self.0.compare_exchange_weak(word, next, Relaxed, Relaxed) {
                Ok(_) => return Some(count + 1),
                Err(now) => word = now,
            }
        }
    }

    /// Undoes one [`Window::take`] of the same window.
    fn give_back(&self, number: u64) {
        // If the window is a later one, there is nothing to undo.
        let _ = self.0.fetch_update(Relaxed, Relaxed, |word| {
            let (current, count) = Window::split(word);
            (current == number && count > 0).then(|| word - 1)
        });
    }

    fn used(&self, number: u64) -> u32 {
        let (current, count) = Window::split(self.0.load(Relaxed));
        if current >= number { count } else { 0 }
    }
}

/// The limits of a meter: two windows of fixed length in seconds.
#[derive(Clone, Copy, Debug)]
struct Caps {
    short: (u64, u32),
    long: (u64, u32),
}

/// Which windows were full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Full {
    short: bool,
    long: bool,
}

/// The counters of one key, user or address.
#[derive(Debug, Default)]
pub struct Meter {
    short: Window,
    long: Window,
    in_flight: AtomicU32,
    /// Unix minute in which the key's use was last noted.
    noted: AtomicU32,
}

impl Meter {
    /// Counts one in both windows, or in none.
    fn take(&self, now_secs: u64, caps: &Caps) -> Result<(u32, u32), Full> {
        let (short, long) = (now_secs / caps.short.0, now_secs / caps.long.0);
        match (self.short.take(short, caps.short.1), self.long.take(long, caps.long.1)) {
            (Some(in_short), Some(in_long)) => Ok((in_short, in_long)),
            (in_short, in_long) => {
                if in_short.is_some() {
                    self.short.give_back(short);
                }
                if in_long.is_some() {
                    self.long.give_back(long);
                }
                Err(Full { short: in_short.is_none(), long: in_long.is_none() })
            }
        }
    }

    fn enter(&self, cap: u32) -> bool {
        self.in_flight.fetch_update(Relaxed, Relaxed, |count| (count < cap).then_some(count + 1)).is_ok()
    }

    fn idle(&self, now_secs: u64, caps: &Caps) -> bool {
        self.in_flight.load(Relaxed) == 0 && self.long.used(now_secs / caps.long.0) == 0
    }
}

/// Seconds to the end of the window of `length` that contains `now_secs`, at least 1.
fn to_end(now_secs: u64, length: u64) -> u64 {
    (now_secs / length + 1) * length - now_secs
}

/// The values of the rate headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    pub per_minute: u32,
    pub remaining: u32,
    /// Unix second at which the minute window ends.
    pub reset: u64,
    pub per_second: u32,
    pub remaining_per_second: u32,
    pub tier: Tier,
}

impl RateState {
    /// The six values, in the order of [`super::names::Names::rate`].
    pub fn values(&self) -> [HeaderValue; 6] {
        [
            HeaderValue::from(self.per_minute),
            HeaderValue::from(self.remaining),
            HeaderValue::from(self.reset),
            HeaderValue::from(self.per_second),
            HeaderValue::from(self.remaining_per_second),
            HeaderValue::from_static(TIERS[self.tier as usize].1),
        ]
    }

    fn of(limits: &TierLimits, tier: Tier, now_secs: u64, (in_second, in_minute): (u32, u32)) -> RateState {
        RateState {
            per_minute: limits.requests_per_minute,
            remaining: limits.requests_per_minute.saturating_sub(in_minute),
            reset: (now_secs / 60 + 1) * 60,
            per_second: limits.requests_per_second,
            remaining_per_second: limits.requests_per_second.saturating_sub(in_second),
            tier,
        }
    }
}

/// The meter in which a request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payer {
    /// A key, by its dense slot.
    Key(u32),
    /// A user with a JWT.
    User(UserId),
}

/// All meters of the edge, shared by its threads.
#[derive(Debug)]
pub struct Limits {
    settings: Settings,
    trusted_proxies: Vec<Network>,
    keys: Slots<Meter>,
    users: Table<UserId>,
    addresses: Table<Address>,
    bootstraps: Table<Address>,
    callbacks: Table<Address>,
    /// By the user's number, which is far below `u32::MAX`. Four bytes each, never freed.
    placements: Slots<AtomicU32>,
    placements_now: AtomicU32,
}

impl Limits {
    pub fn new(settings: Settings, trusted_proxies: Vec<Network>) -> Limits {
        Limits {
            settings,
            trusted_proxies,
            keys: Slots::default(),
            users: Table::default(),
            addresses: Table::default(),
            bootstraps: Table::default(),
            callbacks: Table::default(),
            placements: Slots::default(),
            placements_now: AtomicU32::new(0),
        }
    }

    /// Counts one request of that payer, and admits it while its tier has room in flight. A refused request does not
    /// count.
    pub fn request(
        self: &Arc<Self>,
        payer: Payer,
        tier: Tier,
        now: Timestamp,
    ) -> Result<(RateState, InFlight), (RateState, Refusal)> {
        let limits = *self.settings.tier(tier);
        let caps = Caps { short: (1, limits.requests_per_second), long: (60, limits.requests_per_minute) };
        let secs = now.secs();
        self.with_meter(payer, secs, |meter| {
            let entered = meter.enter(limits.in_flight);
            match meter.take(secs, &caps) {
                Ok(used) if entered => {
                    let state = RateState::of(&limits, tier, secs, used);
                    Ok((state, InFlight { limits: Arc::clone(self), payer }))
                }
                taken => {
                    if taken.is_ok() {
                        meter.short.give_back(secs);
                        meter.long.give_back(secs / 60);
                    }
                    if entered {
                        meter.in_flight.fetch_sub(1, Relaxed);
                    }
                    let used = (meter.short.used(secs), meter.long.used(secs / 60));
                    Err((RateState::of(&limits, tier, secs, used), refusal(taken.err(), &limits, now)))
                }
            }
        })
    }

    /// The state of a payer, for refusals before its request counts.
    pub fn peek(&self, payer: Payer, tier: Tier, now: Timestamp) -> RateState {
        let secs = now.secs();
        let used = self.with_meter(payer, secs, |meter| (meter.short.used(secs), meter.long.used(secs / 60)));
        RateState::of(self.settings.tier(tier), tier, secs, used)
    }

    /// Whether the use of that key is to be written now: once in each minute of the clock.
    pub fn note_used(&self, slot: u32, now: Timestamp) -> bool {
        let minute = (now.secs() / 60) as u32;
        let noted = &self.keys.get(slot).noted;
        noted.load(Relaxed) != minute && noted.swap(minute, Relaxed) != minute
    }

    /// Prefetches the counters of the next placement of that key and user.
    pub fn warm(&self, slot: u32, user: UserId) -> u64 {
        u64::from(self.keys.get(slot).noted.load(Relaxed) ^ self.placements.get(user.0 as u32).load(Relaxed))
    }

    /// Requests of that payer in flight now.
    pub fn in_flight(&self, payer: Payer) -> u32 {
        self.with_meter(payer, 0, |meter| meter.in_flight.load(Relaxed))
    }

    fn with_meter<T>(&self, payer: Payer, now_secs: u64, then: impl FnOnce(&Meter) -> T) -> T {
        match payer {
            Payer::Key(slot) => then(self.keys.get(slot)),
            Payer::User(user) => self.users.with(user, now_secs, 60, then),
        }
    }

    /// Counts one request on a public route by its source address.
    pub fn public(&self, source: Source, now: Timestamp) -> Result<(), Refusal> {
        let caps =
            Caps { short: (1, self.settings.public_ip_per_second), long: (60, self.settings.public_ip_per_minute) };
        self.by_address(&self.addresses, source, &caps, now)
    }

    /// Counts one bootstrap by its source address.
    pub fn bootstrap(&self, source: Source, now: Timestamp) -> Result<(), Refusal> {
        let caps =
            Caps { short: (60, self.settings.bootstrap_per_minute), long: (3_600, self.settings.bootstrap_per_hour) };
        self.by_address(&self.bootstraps, source, &caps, now)
    }

    /// Counts one request of another service by its source address: a provider sends many from few addresses, and
    /// repeats those that are refused.
    pub fn callback(&self, source: Source, now: Timestamp) -> Result<(), Refusal> {
        let caps =
            Caps { short: (1, self.settings.callback_ip_per_second), long: (60, self.settings.callback_ip_per_minute) };
        self.by_address(&self.callbacks, source, &caps, now)
    }

    fn by_address(&self, table: &Table<Address>, source: Source, caps: &Caps, now: Timestamp) -> Result<(), Refusal> {
        if source.local && !self.settings.meter_loopback {
            return Ok(());
        }
        let secs = now.secs();
        let taken = table.with(Address::of(source.address), secs, caps.long.0, |meter| meter.take(secs, caps));
        taken.map(|_| ()).map_err(|full| {
            let (length, cap) = if full.long { caps.long } else { caps.short };
            let wait = to_end(secs, length);
            let window = match length {
                1 => "second",
                60 => "minute",
                _ => "hour",
            };
            Refusal::rate_limit(window, cap, Timestamp::from_secs(secs + wait), wait as u32)
        })
    }

    /// Placements in flight now.
    pub fn placements_in_flight(&self) -> u32 {
        self.placements_now.load(Relaxed)
    }

    /// Admits a placement while its user and the server have room.
    pub fn placement(self: &Arc<Self>, user: UserId) -> Result<Placement, Refusal> {
        let cap = self.settings.placements_per_server;
        let entered = self.placements_now.fetch_update(Relaxed, Relaxed, |now| (now < cap).then_some(now + 1));
        if entered.is_err() {
            return Err(Refusal::placements(PLACEMENT_RETRY_MS));
        }
        let cap = self.settings.placements_per_user;
        let own = self.placements.get(user.0 as u32);
        if own.fetch_update(Relaxed, Relaxed, |now| (now < cap).then_some(now + 1)).is_err() {
            self.placements_now.fetch_sub(1, Relaxed);
            return Err(Refusal::placements(PLACEMENT_RETRY_MS));
        }
        Ok(Placement { limits: Arc::clone(self), user })
    }

    /// The source of a request: the peer or, behind a trusted proxy, the right-most untrusted hop of `X-Forwarded-For`
    /// with all its lines joined.
    pub fn source<'a>(&self, peer: IpAddr, forwarded: impl DoubleEndedIterator<Item = &'a HeaderValue>) -> Source {
        let peer = peer.to_canonical();
        let trusted = |address| self.trusted_proxies.iter().any(|network| network.contains(address));
        if self.trusted_proxies.is_empty() || !trusted(peer) {
            return Source { address: peer, local: peer.is_loopback() };
        }
        let mut nearest = peer;
        for line in forwarded.rev() {
            for hop in line.to_str().unwrap_or_default().rsplit(',') {
                // If a trusted proxy did not write an address, neither this hop nor those before it can be trusted.
                let Ok(hop) = hop.trim().parse::<IpAddr>() else { return Source { address: nearest, local: false } };
                nearest = hop.to_canonical();
                if !trusted(nearest) {
                    return Source { address: nearest, local: false };
                }
            }
        }
        Source { address: nearest, local: false }
    }
}

fn refusal(full: Option<Full>, limits: &TierLimits, now: Timestamp) -> Refusal {
    let secs = now.secs();
    match full {
        Some(Full { long: true, .. }) => {
            let wait = to_end(secs, 60);
            Refusal::rate_limit("minute", limits.requests_per_minute, Timestamp::from_secs(secs + wait), wait as u32)
        }
        Some(_) => Refusal::rate_limit("second", limits.requests_per_second, Timestamp::from_secs(secs + 1), 1),
        None => Refusal::rate_limit("concurrency", limits.in_flight, Timestamp::from_secs(secs + 1), 1),
    }
}

/// The source of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    pub address: IpAddr,
    /// Whether the peer is on loopback and not a trusted proxy. Limits by address do not apply to it unless
    /// `meter_loopback` is on.
    pub local: bool,
}

/// A request in flight on its payer's meter, until it is dropped.
#[derive(Debug)]
pub struct InFlight {
    limits: Arc<Limits>,
    payer: Payer,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.limits.with_meter(self.payer, 0, |meter| {
            // A full table may have moved the payer to the shared meter in the meantime.
            let _ = meter.in_flight.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1));
        });
    }
}

/// A placement in flight, until it is dropped.
#[derive(Debug)]
pub struct Placement {
    limits: Arc<Limits>,
    user: UserId,
}

impl Drop for Placement {
    fn drop(&mut self) {
        self.limits.placements_now.fetch_sub(1, Relaxed);
        self.limits.placements.get(self.user.0 as u32).fetch_sub(1, Relaxed);
    }
}

/// One value for each dense number. Bucket `b` holds 1024 × 2^b values, allocated on first use and never moved.
#[derive(Debug, Default)]
pub(super) struct Slots<T> {
    buckets: [OnceLock<Box<[T]>>; 22],
}

impl<T: Default> Slots<T> {
    pub(super) fn get(&self, slot: u32) -> &T {
        let place = u64::from(slot) + 1_024;
        let bucket = place.ilog2() - 10;
        let length = 1_024usize << bucket;
        let values = self.buckets[bucket as usize].get_or_init(|| (0..length).map(|_| T::default()).collect());
        &values[place as usize - length]
    }
}

/// An address as it is counted: IPv6 by its /64, the usual allocation of one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Address {
    V4(u32),
    V6Net(u64),
}

impl Address {
    fn of(address: IpAddr) -> Address {
        match address.to_canonical() {
            IpAddr::V4(address) => Address::V4(address.to_bits()),
            IpAddr::V6(address) => Address::V6Net((address.to_bits() >> 64) as u64),
        }
    }
}

/// Meters by payer or address; entries whose long window has passed are removed when the table is full.
#[derive(Debug)]
struct Table<K> {
    entries: Mutex<Entries<K>>,
    /// The meter of all that find the table full.
    shared: Meter,
}

#[derive(Debug)]
struct Entries<K> {
    meters: AHashMap<K, Meter>,
    swept_at_secs: u64,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Table { entries: Mutex::new(Entries { meters: AHashMap::new(), swept_at_secs: 0 }), shared: Meter::default() }
    }
}

impl<K: Hash + Eq> Table<K> {
    fn with<T>(&self, who: K, now_secs: u64, long_secs: u64, then: impl FnOnce(&Meter) -> T) -> T {
        let mut entries = self.entries.lock();
        if let Some(meter) = entries.meters.get(&who) {
            return then(meter);
        }
        if entries.meters.len() >= TABLE_ENTRIES_MAX && now_secs > entries.swept_at_secs {
            entries.swept_at_secs = now_secs;
            let caps = Caps { short: (1, 0), long: (long_secs, 0) };
            entries.meters.retain(|_, meter| !meter.idle(now_secs, &caps));
        }
        if entries.meters.len() >= TABLE_ENTRIES_MAX {
            drop(entries);
            return then(&self.shared);
        }
        then(entries.meters.entry(who).or_default())
    }
}

#[cfg(test)]
mod tests;
