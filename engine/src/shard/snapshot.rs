//! State ↔ bytes, and the digest over them.
//!
//! ```text
//! version u16 │ markets: length u64, bytes │ users u64 │ user: length u64, bytes │ user … in id order
//! ```
//!
//! Orders, fills, positions and remembered requests, which are most of it, are packed
//! (`mutation::packed`); the rest is field after field (`mutation::bytes`).
//!
//! The digest of a state is SHA-256 over exactly these bytes.
//!
//! A user's bytes hold what the journal told and nothing that is derived from it, so they are the same whichever shard
//! the user is in and however the state came about. Lists are in the order of their ids. Framing, checksums and files
//! are not this file's matter.

use super::replay::State;
use super::shard_of;
use crate::id::{OBJECT_BITS, UserId, object_number};
use crate::market::Markets;
use crate::mutation::bytes::{Bytes, put_list, take_list};
use crate::mutation::codec::CodecError;
use crate::mutation::packed::{Packer, put_numbers, put_rows, take_rows};
use crate::time::Timestamp;
use crate::user::facts::Facts;
use crate::user::idempotency::Requests;
use crate::user::rows::Rows;
use crate::user::shared_rows::Shared;
use crate::user::trading::{NOTHING, Trading};
use crate::user::{Identity, Position, Quota, Remembered, Safeguard, User, Users};
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};

/// Format of the snapshots that this build writes.
pub const VERSION: u16 = 4;
/// The oldest format that this build reads: without resets of positions and wallets, and without points of equity. The
/// second is without order facts; their numbers go on from their count. The third has no packed rows.
const OLDEST: u16 = 1;

/// Bytes that are read together at most, and users that room is taken for at once: both before it is known that they are
/// there.
const PART_BYTES: usize = 1 << 20;
const USERS_EXPECTED_MAX: u64 = 1 << 17;

/// Why bytes are no snapshot.
#[derive(Debug)]
pub enum SnapshotError {
    Io(io::Error),
    /// Written by a build that this one cannot read.
    Version(u16),
    /// The bytes end too early, or go on behind the last user.
    Length,
    Markets(String),
    User(CodecError),
    /// Users are in id order, each once.
    Order(UserId),
    /// Another state than the digest names.
    Digest,
    /// A part of today's format that would be written with other bytes.
    Again,
}

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SnapshotError::Io(error) => error.fmt(f),
            SnapshotError::Version(version) => {
                write!(f, "snapshot format {version} is unknown; this build knows {OLDEST} to {VERSION}")
            }
            SnapshotError::Length => f.write_str("the snapshot ends too early or too late"),
            SnapshotError::Markets(why) => write!(f, "markets of the snapshot: {why}"),
            SnapshotError::User(error) => write!(f, "a user of the snapshot: {error}"),
            SnapshotError::Digest => f.write_str("the snapshot's state is not the one its digest names"),
            SnapshotError::Again => f.write_str("a part of the snapshot is not what would be written of it"),
            SnapshotError::Order(user) => write!(f, "users of the snapshot are not in id order: {user}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { SnapshotError::Length } else { SnapshotError::Io(error) }
    }
}

/// Writes the whole state, user by user, and returns its digest; `shards` may be any partition of the users.
///
/// # Errors
/// Those of `out`.
pub fn write(markets: &Markets, shards: &[&Users], out: &mut impl Write) -> io::Result<[u8; 32]> {
    let mut out = Hashing { out, hash: Sha256::new() };
    let mut users: Vec<&User> = shards.iter().flat_map(|users| users.unordered()).collect();
    users.sort_unstable_by_key(|user| user.id);
    let mut bytes = Vec::new();
    out.write_all(&VERSION.to_le_bytes())?;
    markets.encode(&mut bytes);
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(&bytes)?;
    out.write_all(&(users.len() as u64).to_le_bytes())?;
    for user in users {
        bytes.clear();
        put_user(user, &mut bytes);
        out.write_all(&(bytes.len() as u64).to_le_bytes())?;
        out.write_all(&bytes)?;
    }
    Ok(out.hash.finalize().into())
}

/// Reads a state into so many shards, and checks that it is the one with this digest: that of the bytes, which
/// [`read`] finds to be those of the state.
///
/// # Errors
/// [`SnapshotError`].
pub fn read_checked(input: &mut impl Read, shards_count: usize, expected: [u8; 32]) -> Result<State, SnapshotError> {
    let mut hashed = Hashed { input, hash: Sha256::new() };
    let state = read(&mut hashed, shards_count)?;
    let found: [u8; 32] = hashed.hash.finalize().into();
    if found == expected { Ok(state) } else { Err(SnapshotError::Digest) }
}

/// Hashes what was read.
struct Hashed<'a, R> {
    input: &'a mut R,
    hash: Sha256,
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// Reads a state into so many shards. What it allocates is bounded by the bytes that are there, but for
/// four bytes for each object number of a user up to that of the last order (2^28 at most). Of today's format each
/// part is written once more and compared, while it is at hand, so that nothing is lost in the reading; one of an earlier
/// format would be written with other bytes now.
///
/// # Errors
/// [`SnapshotError`].
pub fn read(input: &mut impl Read, shards_count: usize) -> Result<State, SnapshotError> {
    let mut version = [0; 2];
    input.read_exact(&mut version)?;
    let version = u16::from_le_bytes(version);
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(SnapshotError::Version(version));
    }
    let is_todays = version == VERSION;
    let mut state = State::new(shards_count);
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    read_part(input, &mut bytes)?;
    state.markets = Markets::decode(&bytes).map_err(|error| SnapshotError::Markets(error.0))?;
    state.markets.encode(&mut again);
    if is_todays && again != bytes {
        return Err(SnapshotError::Again);
    }
    let users_count = read_u64(input)?;
    for shard in &mut state.users {
        shard.expect(users_count.min(USERS_EXPECTED_MAX) as usize / shards_count.max(1));
    }
    let mut standing = vec![Vec::new(); state.users.len()];
    let (mut last, mut shared) = (UserId(0), Shared::default());
    for _ in 0..users_count {
        read_part(input, &mut bytes)?;
        let mut rest = &bytes[..];
        let user = take_user(&mut rest, version, &mut shared).map_err(SnapshotError::User)?;
        if !rest.is_empty() {
            return Err(SnapshotError::User(CodecError::Rest));
        }
        if user.id <= last {
            return Err(SnapshotError::Order(user.id));
        }
        if is_todays {
            again.clear();
            put_user(&user, &mut again);
            if again != bytes {
                return Err(SnapshotError::Again);
            }
        }
        last = user.id;
        let shard = shard_of(user.id, state.users.len());
        state.users[shard].insert_unlisted(user, &mut standing[shard]);
    }
    if input.read(&mut [0])? != 0 {
        return Err(SnapshotError::Length);
    }
    for (users, standing) in state.users.iter_mut().zip(standing) {
        users.list(standing);
    }
    Ok(state)
}

/// SHA-256 over the snapshot of this state: the same for any partition of the users.
pub fn digest(markets: &Markets, shards: &[&Users]) -> [u8; 32] {
    write(markets, shards, &mut io::sink()).expect("a sink takes every byte")
}

/// Hashes what it hands on, so that a snapshot and its digest are one walk over the state.
struct Hashing<'a, W> {
    out: &'a mut W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn read_u64(input: &mut impl Read) -> Result<u64, SnapshotError> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Reads a length and as many bytes; the buffer grows with what comes, not with what was promised.
fn read_part(input: &mut impl Read, bytes: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let len = usize::try_from(read_u64(input)?).map_err(|_| SnapshotError::Length)?;
    bytes.clear();
    while bytes.len() < len {
        let begin = bytes.len();
        bytes.resize(begin + PART_BYTES.min(len - begin), 0);
        input.read_exact(&mut bytes[begin..])?;
    }
    Ok(())
}

/// Appends the bytes of one user.
pub fn put_user(user: &User, out: &mut Vec<u8>) {
    let User { id, created_at, order_facts, grant, wallets, keys, quota, next_object, watched: _, identity, trading } =
        user;
    id.put(out);
    created_at.put(out);
    order_facts.put(out);
    grant.put(out);
    quota.put(out);
    next_object.put(out);
    identity.as_ref().and_then(|identity| identity.sub.clone()).put(out);
    identity.as_ref().and_then(|identity| identity.email.clone()).put(out);
    put_list(wallets.len(), wallets.iter(), out);
    put_list(keys.len(), keys.iter(), out);
    // A user who armed and ended a heartbeat and nothing else has traded nothing.
    let trading = trading.as_deref().unwrap_or(&NOTHING);
    let mut packer = Packer::onto(out);
    put_rows(&trading.orders, &mut packer);
    put_rows(&trading.fills, &mut packer);
    put_rows(&trading.positions, &mut packer);
    match &trading.requests {
        Some(requests) => put_rows(&requests.rows, &mut packer),
        None => put_numbers(std::iter::empty(), &mut packer),
    }
    let out = packer.behind();
    put_list(trading.safeguards.len(), trading.safeguards.iter(), out);
    put_list(trading.equity.len(), trading.equity.iter(), out);
    put_list(trading.resets.len(), trading.resets.iter(), out);
    trading.facts.pack(&mut packer);
    packer.end();
}

/// Reads one user of a snapshot of that format; derived state is derived anew.
pub(crate) fn take_user(input: &mut &[u8], version: u16, shared: &mut Shared) -> Result<User, CodecError> {
    let mut user = User::new(Bytes::take(input)?, None, None, Timestamp::take(input)?);
    user.order_facts = u64::take(input)?;
    user.grant = Bytes::take(input)?;
    user.quota = Quota::take(input)?;
    user.next_object = u32::take(input)?;
    if user.next_object >= 1 << OBJECT_BITS {
        return Err(CodecError::Reference);
    }
    let identity = Identity { sub: Bytes::take(input)?, email: Bytes::take(input)? };
    if identity.sub.is_some() || identity.email.is_some() {
        user.identity = Some(Box::new(identity));
    }
    take_list(input, |wallet| user.wallets.push(wallet))?;
    take_list(input, |key| user.keys.push(key))?;
    user.wallets.shrink_to_fit();
    user.keys.shrink_to_fit();

    let mut trading = Trading::default();
    if version > 3 {
        trading.orders = take_rows(&mut shared.rares, input)?;
        trading.fills = take_rows(&mut (), input)?;
        trading.positions = take_rows(&mut (), input)?;
    } else {
        take_list(input, |order| _ = trading.orders.push(order))?;
        take_list(input, |fill| _ = trading.fills.push(fill))?;
        for _ in 0..u64::take(input)? {
            let position = if version == 1 { Position::take_unreset(input)? } else { Position::take(input)? };
            trading.positions.push(position);
        }
    }
    let known = |object: u64| UserId::of_object(object) == user.id && object_number(object) < user.next_object;
    if !trading.orders.iter().all(|order| known(order.id.0)) || !trading.positions.iter().all(|held| known(held.id.0)) {
        return Err(CodecError::Reference);
    }
    trading.derive()?;
    let remembered = if version > 3 { take_rows(&mut shared.ids, input)? } else { unpacked_requests(input)? };
    if !remembered.is_empty() {
        let mut requests = Requests::default();
        for row in &remembered {
            let order = trading.order_row(row.order).ok_or(CodecError::Reference)?;
            requests.note(row.id(&trading.orders[order]).ok_or(CodecError::Reference)?);
        }
        requests.rows = remembered;
        trading.requests = Some(Box::new(requests));
    }
    take_list(input, |safeguard| trading.safeguards.push(safeguard))?;
    if version > 1 {
        take_list(input, |equity| trading.equity.push(equity))?;
        take_list(input, |reset| trading.resets.push(reset))?;
    }
    if version > 2 {
        trading.facts = if version > 3 { Facts::unpack(input)? } else { Facts::take(input)? };
        if !trading.facts.fit(user.order_facts, trading.orders.len(), trading.fills.len()) {
            return Err(CodecError::Reference);
        }
    }
    // Snapshots of earlier builds have them in the order of their first points.
    trading.equity.sort_unstable_by_key(|equity| equity.wallet);
    if !trading.equity.iter().all(|equity| equity.ascends() && user.wallet(equity.wallet).is_some()) {
        return Err(CodecError::Reference);
    }
    if !trading.is_empty() {
        user.trading = Some(Box::new(trading));
    }
    user.watched = user.needs_watching();
    Ok(user)
}

fn unpacked_requests(input: &mut &[u8]) -> Result<Rows<Remembered>, CodecError> {
    let mut remembered = Rows::new();
    take_list(input, |row| _ = remembered.push(row))?;
    Ok(remembered)
}

impl Bytes for Safeguard {
    fn put(&self, out: &mut Vec<u8>) {
        self.label.put(out);
        self.interval_ms.put(out);
    }
    /// It has lapsed until `refresh_safeguards`.
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let (label, interval_ms) = (Bytes::take(input)?, u32::take(input)?);
        Ok(Safeguard { label, interval_ms, lapses_at: Timestamp(0), beat: None })
    }
}

#[cfg(test)]
mod tests;
