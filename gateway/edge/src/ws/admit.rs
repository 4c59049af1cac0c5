//! Admission of a socket: by a key in a header, by a minted token, or anonymously; and the caps on sockets
//! (gateway/docs/streams.md §1).
//!
//! An invalid header is refused by its HTTP status. For an invalid token, or too many sockets, the socket opens and
//! closes with a code, because clients read close codes.

use super::close::Close;
use super::outbox::Outbox;
use super::session;
use crate::app::{App, Edge};
use crate::http::admission::Key;
use crate::http::auth::{self, Credentials};
use crate::http::call::{Call, Caller};
use crate::http::code::Code;
use crate::http::front::Front;
use crate::http::reply::Refusal;
use ahash::AHashMap;
use engine::id::{KeyId, UserId};
use engine::time::Timestamp;
use engine::user::{Permissions, Tier};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sockets of one address without a credential.
pub const ANONYMOUS_PER_ADDRESS_MAX: u32 = 5;

/// The owner of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    pub user: UserId,
    /// `None` if the token was minted by a session token.
    pub key: Option<KeyId>,
    pub tier: Tier,
    pub permissions: Permissions,
    /// The key's UUID alias, if the client showed it.
    pub alias: Option<Rc<str>>,
}

/// The decision about a handshake.
pub enum Admitted {
    Open {
        bearer: Option<Bearer>,
        seat: Option<Seat>,
    },
    /// The socket opens and closes immediately.
    Refused(Close),
}

/// How a channel treats a handshake without a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Closed like one without a token.
    Refused,
    /// Admitted, and counted by address.
    ByAddress,
    /// Admitted until the deadline of its `auth` frame. These sockets are counted apart from [`Anonymous::ByAddress`],
    /// so that neither kind uses the other's cap.
    UntilAuth,
}

/// Decides about the handshake of `call`.
///
/// # Errors
/// A header with an unusable key, or a session token: 401 (gateway/docs/streams.md §1.1).
pub fn admit(call: &Call, anonymous: Anonymous) -> Result<Admitted, Refusal> {
    // Only a handshake that succeeds uses its token up.
    session::check_handshake(call)?;
    let app = &*call.edge.app;
    let shown = auth::credentials(&call.headers, &app.front.key_aliases, &app.front.settings.brand.key_prefix);
    let query = call.query();
    let token = query.get("token").filter(|token| !token.is_empty());
    Ok(match (shown, token) {
        (Credentials { key: Some(key), .. }, _) => {
            let bearer = by_key(app, key, call.now)?;
            match take_seat(&call.edge, &bearer, call.now) {
                Some(seat) => Admitted::Open { bearer: Some(bearer), seat: Some(seat) },
                None => Admitted::Refused(Close::CONNECTION_LIMIT),
            }
        }
        (Credentials { token: Some(_), .. }, _) => {
            return Err(Refusal::new(
                Code::InvalidKey,
                "A session token cannot open a socket; use it to mint a socket token.",
            ));
        }
        (_, Some(token)) => by_token(&call.edge, token.as_bytes(), call.now),
        (_, None) => match anonymous {
            Anonymous::Refused => Admitted::Refused(Close::refused(Code::MissingAuth)),
            Anonymous::ByAddress | Anonymous::UntilAuth if exempt(call) => Admitted::Open { bearer: None, seat: None },
            _ => match app.streams.seats.of_address(call.source.address, anonymous == Anonymous::UntilAuth) {
                Some(seat) => Admitted::Open { bearer: None, seat: Some(seat) },
                None => Admitted::Refused(Close::CONNECTION_LIMIT),
            },
        },
    })
}

/// Limits by address do not apply to peers on loopback (gateway/docs/wire.md §8).
fn exempt(call: &Call) -> bool {
    call.source.local && !call.front().settings.limits.meter_loopback
}

/// The bearer of a key, by its text or its UUID alias.
///
/// # Errors
/// Why the key is not usable.
pub fn by_key(app: &App, text: &[u8], now: Timestamp) -> Result<Bearer, Code> {
    let key = Key::find(app, text, now).ok_or(Code::InvalidKey)?;
    if let Some(code) = key.refusal(&app.front, now) {
        return Err(code);
    }
    let by_alias = key.is_alias().then(|| String::from_utf8_lossy(text).as_ref().into());
    let Caller { user, key, tier, permissions, .. } = *key.caller();
    if !app.reads.directory.exists(user) {
        return Err(Code::KeyOwnerNotFound);
    }
    if app.front.gatekeeper.restricts(user, &app.reads.directory) {
        return Err(Code::AccessRestricted);
    }
    Ok(Bearer { user, key, tier, permissions, alias: by_alias })
}

/// Only a handshake that gets a seat uses its token up.
fn by_token(edge: &Edge, token: &[u8], now: Timestamp) -> Admitted {
    let app = &*edge.app;
    let mut full = false;
    let redeemed = app.front.tickets.redeem(token, now, app.reads.clock.wall_now(), |ticket| {
        let bearer = Bearer {
            user: ticket.user,
            key: ticket.key,
            tier: ticket.tier,
            permissions: ticket.permissions,
            alias: None,
        };
        match ended(app, &bearer, now) {
            Some(_) if app.front.gatekeeper.restricts(bearer.user, &app.reads.directory) => Err(Code::AccessRestricted),
            Some(_) => Err(Code::InvalidKey),
            None => match take_seat(edge, &bearer, now) {
                Some(seat) => Ok((bearer, seat)),
                None => {
                    full = true;
                    Err(Code::RateLimitExceeded)
                }
            },
        }
    });
    match redeemed {
        Ok((_, (bearer, seat))) => Admitted::Open { bearer: Some(bearer), seat: Some(seat) },
        Err(_) if full => Admitted::Refused(Close::CONNECTION_LIMIT),
        Err(code) => Admitted::Refused(Close::refused(code)),
    }
}

/// A seat for a socket of the bearer's user, which counts as a use of the key. `None` at the cap of the tier.
pub fn take_seat(edge: &Edge, bearer: &Bearer, now: Timestamp) -> Option<Seat> {
    let app = &*edge.app;
    let seat = app.streams.seats.of_user(&app.front, bearer)?;
    if let Some(key) = bearer.key
        && let Some(slot) = app.reads.directory.slot(key)
        && app.front.limits.note_used(slot, now)
    {
        edge.last_used.add(bearer.user, key);
    }
    Some(seat)
}

/// Why the credential of an open socket is no longer valid. Sockets are checked every second (gateway/docs/keys.md §8).
pub fn ended(app: &App, bearer: &Bearer, now: Timestamp) -> Option<Close> {
    if app.front.gatekeeper.restricts(bearer.user, &app.reads.directory) {
        return Some(Close::RESTRICTED);
    }
    match app.reads.directory.principal_of(bearer.key?).map(|principal| Key::of(&app.reads, principal, now)) {
        Some(key) => key.refusal(&app.front, now).map(Close::refused),
        None => Some(Close::INVALID_KEY),
    }
}

/// The channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    Market,
    User,
    Executions,
    Prices,
    Trade,
}

impl ChannelKind {
    pub const ALL: [ChannelKind; 5] =
        [ChannelKind::Market, ChannelKind::User, ChannelKind::Executions, ChannelKind::Prices, ChannelKind::Trade];

    /// The last part of the path.
    pub const fn word(self) -> &'static str {
        match self {
            ChannelKind::Market => "market",
            ChannelKind::User => "user",
            ChannelKind::Executions => "executions",
            ChannelKind::Prices => "prices",
            ChannelKind::Trade => "trade",
        }
    }
}

#[derive(Debug, Default)]
struct ChannelSeats {
    open: AtomicU64,
    opened: AtomicU64,
}

/// Sockets of one channel, including those closed right after their handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelCount {
    pub open: u64,
    /// Since the start.
    pub opened: u64,
}

/// Open sockets, by user and by address; shared by all IO threads.
#[derive(Debug, Default)]
pub struct Seats {
    users: Mutex<AHashMap<UserId, u32>>,
    addresses: Mutex<AHashMap<(IpAddr, bool), u32>>,
    /// By [`ChannelKind`].
    channels: [ChannelSeats; ChannelKind::ALL.len()],
    /// Closed sockets by reason. Written once in the life of a socket.
    closes: Mutex<BTreeMap<&'static str, u64>>,
    /// Frames and bytes in the queues of all sockets, as the last sweeps found them.
    frames_queued: AtomicU64,
    bytes_queued: AtomicU64,
    /// Shared by all threads, so that a connection id names one socket of the process.
    last_id: AtomicU64,
}

/// The seat of a socket among those of its user or address, returned on drop.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    owner: SeatOwner,
}

#[derive(Clone, Copy, Debug)]
enum SeatOwner {
    User(UserId),
    /// The address, and whether the socket may still send its `auth` frame.
    Address(IpAddr, bool),
}

/// Frames and bytes in the queues of sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    pub frames: u64,
    pub bytes: u64,
}

impl Queued {
    pub(super) fn add(&mut self, outbox: &Outbox) {
        self.frames += outbox.waiting() as u64;
        self.bytes += outbox.waiting_bytes() as u64;
    }
}

impl Seats {
    /// A seat for a socket of a user; `None` at the cap of the tier.
    fn of_user(self: &Arc<Self>, front: &Front, bearer: &Bearer) -> Option<Seat> {
        let max = front.settings.limits.tier(bearer.tier).max_ws_connections;
        take_slot(&self.users, bearer.user, max)
            .then(|| Seat { seats: Arc::clone(self), owner: SeatOwner::User(bearer.user) })
    }

    /// A seat for a socket of an address that has shown no credential; `None` at the cap. An IPv6 address counts by its
    /// /64.
    pub fn of_address(self: &Arc<Self>, address: IpAddr, until_auth: bool) -> Option<Seat> {
        let address = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        };
        let free = take_slot(&self.addresses, (address, until_auth), ANONYMOUS_PER_ADDRESS_MAX);
        free.then(|| Seat { seats: Arc::clone(self), owner: SeatOwner::Address(address, until_auth) })
    }

    /// Open sockets, for health responses.
    pub fn open(&self) -> usize {
        self.channels.iter().map(|seats| seats.open.load(Relaxed) as usize).sum()
    }

    /// Sockets of each channel.
    pub fn channels(&self) -> [(ChannelKind, ChannelCount); ChannelKind::ALL.len()] {
        ChannelKind::ALL.map(|kind| {
            let ChannelSeats { open, opened } = &self.channels[kind as usize];
            (kind, ChannelCount { open: open.load(Relaxed), opened: opened.load(Relaxed) })
        })
    }

    /// Closed sockets by reason.
    pub fn closes(&self) -> Vec<(&'static str, u64)> {
        self.closes.lock().iter().map(|(reason, count)| (*reason, *count)).collect()
    }

    /// Frames and bytes in the queues of all sockets, at most a second old.
    pub fn queued(&self) -> Queued {
        Queued { frames: self.frames_queued.load(Relaxed), bytes: self.bytes_queued.load(Relaxed) }
    }

    /// Records the sweep of one thread over its sockets: `now` replaces `before`, the result of its last sweep.
    pub(super) fn queues(&self, before: Queued, now: Queued) {
        self.frames_queued.fetch_add(now.frames.wrapping_sub(before.frames), Relaxed);
        self.bytes_queued.fetch_add(now.bytes.wrapping_sub(before.bytes), Relaxed);
    }

    /// A number for a socket, unique in this process, counted from 1.
    pub(super) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Relaxed) + 1
    }

    pub(super) fn entered(&self, kind: ChannelKind) {
        let seats = &self.channels[kind as usize];
        seats.open.fetch_add(1, Relaxed);
        seats.opened.fetch_add(1, Relaxed);
    }

    pub(super) fn left(&self, kind: ChannelKind) {
        self.channels[kind as usize].open.fetch_sub(1, Relaxed);
    }

    /// Counts a closed socket.
    pub(super) fn closes_for(&self, close: Close) {
        *self.closes.lock().entry(close.name()).or_default() += 1;
    }
}

fn take_slot<K: Eq + Hash>(table: &Mutex<AHashMap<K, u32>>, key: K, max: u32) -> bool {
    let mut table = table.lock();
    let count = table.entry(key).or_default();
    let free = *count < max;
    *count += u32::from(free);
    free
}

fn return_slot<K: Eq + Hash>(table: &Mutex<AHashMap<K, u32>>, key: K) {
    let mut table = table.lock();
    if let std::collections::hash_map::Entry::Occupied(mut entry) = table.entry(key) {
        *entry.get_mut() -= 1;
        if *entry.get() == 0 {
            entry.remove();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        match self.owner {
            SeatOwner::User(user) => return_slot(&self.seats.users, user),
            SeatOwner::Address(address, until_auth) => return_slot(&self.seats.addresses, (address, until_auth)),
        }
    }
}
