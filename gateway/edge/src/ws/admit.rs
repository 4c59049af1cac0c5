//! Who opens a socket: a key in a header, a minted token, or nobody; and how many sockets he may have (streams.md §1).
//!
//! A wrong header is refused by its HTTP status. What is wrong with a token, or with the number of sockets, is told by
//! a close code behind the 101: clients read that.

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

/// Who a socket belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    pub user: UserId,
    /// `None`: came with a token that a session token minted.
    pub key: Option<KeyId>,
    pub tier: Tier,
    pub permissions: Permissions,
    /// The key's UUID alias, where that was shown.
    pub alias: Option<Rc<str>>,
}

/// Whether a handshake is let in.
pub enum Admitted {
    Open {
        bearer: Option<Bearer>,
        seat: Option<Seat>,
    },
    /// Accepted and closed at once.
    Refused(Close),
}

/// How a channel takes those who show nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nobody {
    /// Closed as one without a token.
    Refused,
    /// Let in and counted by address.
    ByAddress,
    /// The same until he says who he is; counted apart from those who need not, so that they take no place from him.
    UntilAuth,
}

/// Decides about the handshake of `call`.
///
/// # Errors
/// A header that is no usable key; a session token (401, streams.md §1.1).
pub fn admit(call: &Call, nobody: Nobody) -> Result<Admitted, Refusal> {
    // A token is spent by a handshake that succeeds.
    session::check_handshake(call)?;
    let app = call.app();
    let shown = auth::credentials(&call.headers, &app.front.key_aliases, &app.front.settings.brand.key_prefix);
    let query = call.query();
    let token = query.get("token").filter(|token| !token.is_empty());
    Ok(match (shown, token) {
        (Credentials { key: Some(key), .. }, _) => {
            let bearer = by_key(app, key, call.now)?;
            match seated(&call.edge, &bearer, call.now) {
                Some(seat) => Admitted::Open { bearer: Some(bearer), seat: Some(seat) },
                None => Admitted::Refused(Close::CONNECTION_LIMIT),
            }
        }
        (Credentials { token: Some(_), .. }, _) => {
            return Err(Refusal::saying(Code::InvalidKey, "A session token opens no socket; mint one for it."));
        }
        (_, Some(token)) => by_token(&call.edge, token.as_bytes(), call.now),
        (_, None) => match nobody {
            Nobody::Refused => Admitted::Refused(Close::refused(Code::MissingAuth)),
            Nobody::ByAddress | Nobody::UntilAuth if exempt(call) => Admitted::Open { bearer: None, seat: None },
            _ => match app.streams.seats.of_address(call.source.address, nobody == Nobody::UntilAuth) {
                Some(seat) => Admitted::Open { bearer: None, seat: Some(seat) },
                None => Admitted::Refused(Close::CONNECTION_LIMIT),
            },
        },
    })
}

/// Peers of this machine are not counted by address, as with requests (wire.md §8).
fn exempt(call: &Call) -> bool {
    call.source.local && !call.front().settings.limits.meter_loopback
}

/// The bearer of a key's text, or of its UUID alias.
///
/// # Errors
/// Why it is not usable.
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

/// A token is spent by the handshake that gets a seat.
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
            None => match seated(edge, &bearer, now) {
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

/// A place for one more socket of the bearer's user; `None` when his tier allows no more. Whoever gets one has used his key.
pub fn seated(edge: &Edge, bearer: &Bearer, now: Timestamp) -> Option<Seat> {
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

/// Why an open socket's credential no longer holds (keys.md §8: within 5 s).
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
pub enum Which {
    Market,
    User,
    Executions,
    Prices,
    Trade,
}

impl Which {
    pub const ALL: [Which; 5] = [Which::Market, Which::User, Which::Executions, Which::Prices, Which::Trade];

    /// The last part of its path.
    pub const fn word(self) -> &'static str {
        match self {
            Which::Market => "market",
            Which::User => "user",
            Which::Executions => "executions",
            Which::Prices => "prices",
            Which::Trade => "trade",
        }
    }
}

#[derive(Debug, Default)]
struct ChannelSeats {
    open: AtomicU64,
    opened: AtomicU64,
}

/// Sockets of one channel, those that were refused behind their handshake among them.
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
    /// By [`Which`].
    channels: [ChannelSeats; Which::ALL.len()],
    /// Sockets that ended, by reason. Touched once in the life of a socket.
    closes: Mutex<BTreeMap<&'static str, u64>>,
    /// What waits on sockets, as the last sweeps found it.
    frames_queued: AtomicU64,
    bytes_queued: AtomicU64,
    /// Of all threads, so that a connection's id names one socket of the process.
    last_id: AtomicU64,
}

/// A socket's place among the others of its user or address; free again when dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    owner: SeatOwner,
}

#[derive(Clone, Copy, Debug)]
enum SeatOwner {
    User(UserId),
    /// And whether he may still say who he is.
    Address(IpAddr, bool),
}

/// What waits to leave on sockets.
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
    /// One more socket of a user; `None` when his tier allows no more.
    fn of_user(self: &Arc<Self>, front: &Front, bearer: &Bearer) -> Option<Seat> {
        let max = front.settings.limits.tier(bearer.tier).max_ws_connections;
        taken(&self.users, bearer.user, max)
            .then(|| Seat { seats: Arc::clone(self), owner: SeatOwner::User(bearer.user) })
    }

    /// One more socket of an address that shows no credential, or none yet; an IPv6 address counts by its /64.
    pub fn of_address(self: &Arc<Self>, address: IpAddr, until_auth: bool) -> Option<Seat> {
        let address = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        };
        let free = taken(&self.addresses, (address, until_auth), ANONYMOUS_PER_ADDRESS_MAX);
        free.then(|| Seat { seats: Arc::clone(self), owner: SeatOwner::Address(address, until_auth) })
    }

    /// Sockets open now, for health answers.
    pub fn open(&self) -> usize {
        self.channels.iter().map(|seats| seats.open.load(Relaxed) as usize).sum()
    }

    /// Sockets of each channel.
    pub fn channels(&self) -> [(Which, ChannelCount); Which::ALL.len()] {
        Which::ALL.map(|which| {
            let ChannelSeats { open, opened } = &self.channels[which as usize];
            (which, ChannelCount { open: open.load(Relaxed), opened: opened.load(Relaxed) })
        })
    }

    /// Sockets that ended, by reason.
    pub fn closes(&self) -> Vec<(&'static str, u64)> {
        self.closes.lock().iter().map(|(reason, count)| (*reason, *count)).collect()
    }

    /// What waited on all sockets when they were last looked at, within the last second.
    pub fn queued(&self) -> Queued {
        Queued { frames: self.frames_queued.load(Relaxed), bytes: self.bytes_queued.load(Relaxed) }
    }

    /// The sweep of one thread found `now` where it had found `before`.
    pub(super) fn queues(&self, before: Queued, now: Queued) {
        self.frames_queued.fetch_add(now.frames.wrapping_sub(before.frames), Relaxed);
        self.bytes_queued.fetch_add(now.bytes.wrapping_sub(before.bytes), Relaxed);
    }

    /// A number for a socket, never given before in this process; they count from 1.
    pub(super) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Relaxed) + 1
    }

    pub(super) fn entered(&self, which: Which) {
        let seats = &self.channels[which as usize];
        seats.open.fetch_add(1, Relaxed);
        seats.opened.fetch_add(1, Relaxed);
    }

    pub(super) fn left(&self, which: Which) {
        self.channels[which as usize].open.fetch_sub(1, Relaxed);
    }

    /// A socket ends for that reason.
    pub(super) fn closes_for(&self, close: Close) {
        *self.closes.lock().entry(close.name()).or_default() += 1;
    }
}

fn taken<K: Eq + Hash>(table: &Mutex<AHashMap<K, u32>>, whose: K, max: u32) -> bool {
    let mut table = table.lock();
    let count = table.entry(whose).or_default();
    let free = *count < max;
    *count += u32::from(free);
    free
}

fn given_back<K: Eq + Hash>(table: &Mutex<AHashMap<K, u32>>, whose: K) {
    let mut table = table.lock();
    if let std::collections::hash_map::Entry::Occupied(mut entry) = table.entry(whose) {
        *entry.get_mut() -= 1;
        if *entry.get() == 0 {
            entry.remove();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        match self.owner {
            SeatOwner::User(user) => given_back(&self.seats.users, user),
            SeatOwner::Address(address, until_auth) => given_back(&self.seats.addresses, (address, until_auth)),
        }
    }
}
