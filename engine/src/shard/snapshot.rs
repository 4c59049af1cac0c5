//! Snapshots: state as bytes, and the digest over them.
//!
//! ```text
//! version u16 │ markets: length u64, version, bytes │ users u64 │ user: length u64, bytes │ user … in id order
//! version 6   │ LSN u64 up to which rows have left memory │ markets …
//! ```
//!
//! Orders, fills, positions and remembered requests, the largest part, are packed (`mutation::packed`); the rest is
//! field by field (`bytes`). The back-tests of a user come after it, and then sections with a number each, if there are
//! any.
//!
//! Format 6 is that of states of which orders or positions have left memory; also if their history was cut or a market
//! has stated its fees, which the market state says then, or if a user has more than one prefix. A section has what is
//! known of these rows, and the numbers of those that are there; order facts name object numbers, not rows. Another has
//! the prefixes of a user.
//!
//! The digest of a snapshot, which its file carries, is SHA-256 over the bytes of format 4: the version is 4, and the
//! market state names no version; of format 6 the LSN follows. A later field takes no byte in a row without it. So a state without later fields has
//! the digest that all earlier builds computed, in every file format; a state with later fields has a digest that no
//! earlier build can compute. Encoding 1 of a state's digest is the same; [`super::digest`] has the present one.
//!
//! A user's bytes contain journaled fields and no derived ones, so they do not depend on the user's shard or on the
//! history of the process. Lists are in id order. Framing, checksums and files are the caller's.

use super::replay::State;
use super::shard_of;
use crate::bytes::{Bytes, CodecError, put_list, take_list};
use crate::canonical::Sum;
use crate::format::Formats;
use crate::id::UserId;
use crate::market::{self, Markets};
use crate::mutation::packed::{Packer, put_numbers, put_rows, take_rows};
use crate::order::{Fill, Order};
use crate::time::Timestamp;
use crate::user::facts::{Fact, Facts};
use crate::user::idempotency::Requests;
use crate::user::rows::Rows;
use crate::user::shared_rows::Shared;
use crate::user::trading::Trading;
use crate::user::{
    DepartedRows, FactRow, Identity, Position, Quota, Rebates, Remembered, Safeguard, User, Users, Wallet,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};

/// The newest format, of states of which orders or positions have left memory, whose history was cut, with a user of several
/// prefixes, or of which a market has stated its fees: before it has, no fill is charged by them, and nothing earns a rebate.
pub const VERSION: u16 = 6;
/// The newest format of other states. Its additions: orders may have the hash of a signed order, fills the recording's
/// time, users back-tests and sections, and the market state names its version.
const VERSION_ALL_ROWS: u16 = 5;
/// The previous format.
const VERSION_FIRST: u16 = 4;
/// The version that digests are made with. It does not change with the format, so that one state has one digest.
const DIGEST_VERSION: u16 = VERSION_FIRST;

/// Maximum count of bytes read together, and of users for which space is reserved, before their presence is known.
const PART_BYTES: usize = 1 << 20;
const USERS_EXPECTED_MAX: u64 = 1 << 17;

/// Why bytes are not a snapshot.
#[derive(Debug)]
pub enum SnapshotError {
    Io(io::Error),
    /// A format that this build cannot read.
    Version(u16),
    /// The bytes end too early, or continue after the last user.
    Length,
    Markets(CodecError),
    User(CodecError),
    /// Users are not in id order, or one is repeated.
    Order(UserId),
    /// The state does not have the expected digest.
    Digest,
    /// A part whose state would be written with other bytes.
    Again,
}

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SnapshotError::Io(error) => error.fmt(f),
            SnapshotError::Version(version) => {
                write!(f, "snapshot format {version} is unknown; this build reads {VERSION_FIRST} to {VERSION}")
            }
            SnapshotError::Length => f.write_str("the snapshot ends too early or too late"),
            SnapshotError::Markets(why) => write!(f, "markets in the snapshot: {why}"),
            SnapshotError::User(error) => write!(f, "a user in the snapshot: {error}"),
            SnapshotError::Digest => f.write_str("the snapshot does not have the expected digest"),
            SnapshotError::Again => f.write_str("a part of the snapshot would be written with other bytes"),
            SnapshotError::Order(user) => write!(f, "users in the snapshot are not in id order: {user}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { SnapshotError::Length } else { SnapshotError::Io(error) }
    }
}

/// Writes the whole state, user by user, and returns the snapshot's digest; `shards` may be any partition of the users. A state
/// that the previous format cannot represent is written in the newest that it needs.
///
/// # Errors
/// I/O errors of `out`.
pub fn write(formats: Formats, markets: &Markets, shards: &[&Users], out: &mut impl Write) -> io::Result<[u8; 32]> {
    // Rows of every shard are in the store up to there; a row that is still in memory, too, is equal to that one.
    let departed_upto = shards.iter().map(|users| users.departed_upto()).max().unwrap_or(0);
    write_upto(formats, markets, shards, departed_upto, out)
}

fn write_upto(
    formats: Formats,
    markets: &Markets,
    shards: &[&Users],
    departed_upto: u64,
    out: &mut impl Write,
) -> io::Result<[u8; 32]> {
    let mut users: Vec<&User> = shards.iter().flat_map(|users| users.unordered()).collect();
    users.sort_unstable_by_key(|user| user.id);
    let has_left = departed_upto != 0 || users.iter().any(|user| user.departed().is_some());
    let has_prefixes = users.iter().any(|user| !user.granted_prefixes().is_empty());
    let version = if has_left || has_prefixes || markets.needs_newest_format() {
        VERSION
    } else if formats.is_newest() || users.iter().any(|user| user.needs_newest_format()) {
        VERSION_ALL_ROWS
    } else {
        VERSION_FIRST
    };
    let mut out = Hashing { out, hash: Sha256::new() };
    let mut bytes = Vec::new();
    out.write_beside(&version.to_le_bytes(), &DIGEST_VERSION.to_le_bytes())?;
    if version == VERSION {
        out.write_all(&departed_upto.to_le_bytes())?;
    }
    if version != VERSION_FIRST {
        market::put_version(&mut bytes);
    }
    let begin = bytes.len();
    markets.encode(&mut bytes);
    let hashed = &bytes[begin..];
    out.write_beside(&(bytes.len() as u64).to_le_bytes(), &(hashed.len() as u64).to_le_bytes())?;
    out.write_beside(&bytes, hashed)?;
    out.write_all(&(users.len() as u64).to_le_bytes())?;
    for user in users {
        bytes.clear();
        put_user(user, &mut bytes);
        out.write_all(&(bytes.len() as u64).to_le_bytes())?;
        out.write_all(&bytes)?;
    }
    Ok(out.hash.finalize().into())
}

/// Reads a state into `shards_count` shards, and checks the snapshot's digest. It is computed over the bytes read, which
/// [`read`] verifies against the state.
///
/// # Errors
/// [`SnapshotError`].
pub fn read_checked(input: &mut impl Read, shards_count: usize, expected: [u8; 32]) -> Result<State, SnapshotError> {
    let mut hash = Sha256::new();
    let state = read_parts(input, shards_count, |bytes| hash.update(bytes))?;
    let found: [u8; 32] = hash.finalize().into();
    if found == expected { Ok(state) } else { Err(SnapshotError::Digest) }
}

/// Reads a state into `shards_count` shards. Allocations are bounded by the length of the input. Each part is encoded
/// again and compared, so that no data is lost.
///
/// # Errors
/// [`SnapshotError`].
pub fn read(input: &mut impl Read, shards_count: usize) -> Result<State, SnapshotError> {
    read_parts(input, shards_count, |_| {})
}

/// As [`read`]; `digested` receives the bytes of the digest.
fn read_parts(
    input: &mut impl Read,
    shards_count: usize,
    mut digested: impl FnMut(&[u8]),
) -> Result<State, SnapshotError> {
    let mut version = [0; 2];
    input.read_exact(&mut version)?;
    let version = u16::from_le_bytes(version);
    if !(VERSION_FIRST..=VERSION).contains(&version) {
        return Err(SnapshotError::Version(version));
    }
    digested(&DIGEST_VERSION.to_le_bytes());
    let mut state = State::new(shards_count);
    if version == VERSION {
        let departed_upto = read_u64(input)?;
        digested(&departed_upto.to_le_bytes());
        state.users.iter_mut().for_each(|users| users.set_departed_upto(departed_upto));
    }
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    read_part(input, &mut bytes)?;
    let (markets_version, markets) = market::take_version(&bytes).map_err(SnapshotError::Markets)?;
    if (markets_version == 1) != (version == VERSION_FIRST) {
        return Err(SnapshotError::Again);
    }
    digested(&(markets.len() as u64).to_le_bytes());
    digested(markets);
    state.markets = Markets::decode(markets).map_err(SnapshotError::Markets)?;
    state.markets.encode(&mut again);
    if again != markets || (version != VERSION && state.markets.needs_newest_format()) {
        return Err(SnapshotError::Again);
    }
    let users_count = read_u64(input)?;
    digested(&users_count.to_le_bytes());
    for shard in &mut state.users {
        shard.expect(users_count.min(USERS_EXPECTED_MAX) as usize / shards_count.max(1));
    }
    let mut standing = vec![Vec::new(); state.users.len()];
    let (mut last, mut shared) = (UserId(0), Shared::default());
    let mut prefixes = BTreeSet::new();
    for _ in 0..users_count {
        read_part(input, &mut bytes)?;
        digested(&(bytes.len() as u64).to_le_bytes());
        digested(&bytes);
        let mut rest = &bytes[..];
        let user = take_user(&mut rest, &mut shared).map_err(SnapshotError::User)?;
        if !rest.is_empty() {
            return Err(SnapshotError::User(CodecError::Rest));
        }
        if user.id <= last {
            return Err(SnapshotError::Order(user.id));
        }
        again.clear();
        put_user(&user, &mut again);
        let is_later = (version == VERSION_FIRST && user.needs_newest_format())
            || (version != VERSION
                && (user.departed().is_some() || !user.granted_prefixes().is_empty() || user.has_stated_fees()));
        if again != bytes || is_later {
            return Err(SnapshotError::Again);
        }
        if !user.granted_prefixes().iter().all(|prefix| prefixes.insert(*prefix)) {
            return Err(SnapshotError::User(CodecError::Reference));
        }
        last = user.id;
        let shard = shard_of(user.id, state.users.len());
        state.users[shard].insert_unlisted(user, &mut standing[shard]);
    }
    if input.read(&mut [0])? != 0 {
        return Err(SnapshotError::Length);
    }
    if prefixes.iter().any(|prefix| state.user(*prefix).is_some()) {
        return Err(SnapshotError::User(CodecError::Reference));
    }
    for (users, standing) in state.users.iter_mut().zip(standing) {
        users.list(standing);
    }
    Ok(state)
}

/// The digest of a state in encoding 1, for those that an earlier build stored: equal for any partition of the users. A
/// state of which rows have left has none that an earlier build could have stored.
pub fn first_digest(markets: &Markets, shards: &[&Users]) -> [u8; 32] {
    write_upto(Formats::Newest, markets, shards, 0, &mut io::sink()).expect("a sink takes every byte")
}

/// Hashes what it writes, so that a snapshot and its digest take one pass over the state.
struct Hashing<'a, W> {
    out: &'a mut W,
    hash: Sha256,
}

impl<W: Write> Hashing<'_, W> {
    /// Writes `bytes` while the digest covers `hashed`.
    fn write_beside(&mut self, bytes: &[u8], hashed: &[u8]) -> io::Result<()> {
        self.hash.update(hashed);
        self.out.write_all(bytes)
    }
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

/// Reads a length and that many bytes; the buffer grows with the input, not with the stated length.
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

impl User {
    /// Whether the schedule of a market has charged one of its fills, or given it a rebate.
    fn has_stated_fees(&self) -> bool {
        let is_rebated = |wallet: &Wallet| wallet.rebates() != Rebates::default();
        self.fills().iter().any(|fill| fill.by_schedule) || self.wallets.iter().any(is_rebated)
    }

    /// Whether it has fields that the previous format cannot represent.
    fn needs_newest_format(&self) -> bool {
        self.orders().iter().any(|order| order.terms.order_hash().is_some() || order.terms.fill().is_some())
            || self.fills().iter().any(|fill| fill.venue_at().is_some())
            || self.trading().backtests.is_some()
            || self.billing.is_some()
            || self.trading().alerts.is_some()
            || self.trading().realism.is_some()
            || self.trading().departed.is_some()
    }
}

/// Numbers of the sections, ascending. Back-tests, which have no number, begin with a month, which is larger.
const BILLING: u32 = 1;
const ALERTS: u32 = 2;
const BILLING_LATER: u32 = 3;
const REALISM: u32 = 4;
/// Before the sections whose object numbers need it.
const PREFIXES: u32 = 8;
/// Not parts of the digest's rest: they are in the sum of the rows. So they are the last ones, and a user has one of
/// them: the sum of the requests that left, or everything that is known of rows that left.
const DEPARTED: u32 = 9;
const DEPARTED_ROWS: u32 = 10;
const SECTION_MAX: u32 = DEPARTED_ROWS;

/// Appends the bytes of one user.
pub fn put_user(user: &User, out: &mut Vec<u8>) {
    put_account(user, out);
    let trading = user.trading();
    let mut packer = Packer::onto(out);
    put_rows(trading.orders.len(), trading.orders.iter(), &mut packer);
    put_rows(trading.fills.len(), trading.fills.iter(), &mut packer);
    put_rows(trading.positions.len(), trading.positions.iter(), &mut packer);
    match &trading.requests {
        Some(requests) => put_rows(requests.rows.len(), requests.rows.iter(), &mut packer),
        None => put_numbers(std::iter::empty(), &mut packer),
    }
    put_lists(trading, packer.output());
    trading.facts.pack(|fact| fact_number(user, fact), &mut packer);
    packer.end();
    put_sections(user, out);
    if let Some(departed) = &trading.departed {
        match departed.has_rows() {
            true => {
                DEPARTED_ROWS.put(out);
                user.put_departed(departed, out);
            }
            false => {
                DEPARTED.put(out);
                departed.sum.bytes().put(out);
            }
        }
    }
}

/// The number that a snapshot has for an order fact: that of its row while all rows are there, else that of the object.
fn fact_number(user: &User, fact: Fact) -> u32 {
    if user.departed().is_some() {
        return fact.number();
    }
    match user.row_of(fact) {
        FactRow::Order(row, _) | FactRow::Fill(row, ..) => row as u32,
        FactRow::Departed => panic!("all rows are in memory: {fact:?} of user {}", user.id),
    }
}

/// The facts of a snapshot by object numbers; `None`: one is about a row that never was.
fn facts_by_objects(facts: Facts, trading: &Trading, next_object: u32) -> Option<Facts> {
    let departed = trading.departed.as_deref().filter(|departed| departed.has_rows());
    facts.with_numbers(|fact| {
        let number = fact.number();
        let is_order = matches!(fact, Fact::Placed { .. } | Fact::Rested { .. } | Fact::Closed { .. });
        let Some(departed) = departed else {
            let row = number as usize;
            return match is_order {
                true => trading.orders.get(row).map(|order| trading.prefixes.number(order.id.0)),
                false => trading.fills.get(row).map(|fill| trading.prefixes.number(fill.id.0)),
            };
        };
        let newest = match is_order {
            true => departed.newest_order().map(|id| id.0),
            false => departed.newest_fill().map(|id| id.0),
        };
        let has_left = newest.is_some_and(|newest| number <= trading.prefixes.number(newest));
        let is_there = if is_order { trading.order_at(number).is_some() } else { trading.fill_at(number).is_some() };
        ((has_left || is_there) && number < next_object).then_some(number)
    })
}

/// Appends what a user without orders has, too.
pub(super) fn put_account(user: &User, out: &mut Vec<u8>) {
    let User {
        id,
        created_at,
        order_facts,
        grant,
        wallets,
        keys,
        quota,
        next_object,
        watched: _,
        identity,
        // A user that only armed and ended a heartbeat has no trading state.
        trading: _,
        billing: _,
    } = user;
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
}

/// Appends the lists of a user that are not packed.
pub(super) fn put_lists(trading: &Trading, out: &mut Vec<u8>) {
    put_list(trading.safeguards.len(), trading.safeguards.iter(), out);
    put_list(trading.equity.len(), trading.equity.iter(), out);
    put_list(trading.resets.len(), trading.resets.iter(), out);
}

/// Appends what few users have. A user without any has no byte for them, so that its digest is that of earlier builds.
pub(super) fn put_sections(user: &User, out: &mut Vec<u8>) {
    let trading = user.trading();
    if let Some(backtests) = &trading.backtests {
        backtests.put(out);
    }
    if let Some(billing) = &user.billing {
        BILLING.put(out);
        billing.put(out);
    }
    if let Some(alerts) = &trading.alerts {
        ALERTS.put(out);
        alerts.put(out);
    }
    if let Some(billing) = user.billing.as_ref().filter(|billing| billing.has_later()) {
        BILLING_LATER.put(out);
        billing.put_later(out);
    }
    if let Some(realism) = &trading.realism {
        REALISM.put(out);
        realism.put(out);
    }
    if !trading.prefixes.granted().is_empty() {
        PREFIXES.put(out);
        trading.prefixes.put(out);
    }
}

/// Reads one user of a snapshot, and derives the other fields.
pub(crate) fn take_user(input: &mut &[u8], shared: &mut Shared) -> Result<User, CodecError> {
    let mut user = User::new(Bytes::take(input)?, None, None, Timestamp::take(input)?);
    user.order_facts = u64::take(input)?;
    user.grant = Bytes::take(input)?;
    user.quota = Quota::take(input)?;
    user.next_object = u32::take(input)?;
    let identity = Identity { sub: Bytes::take(input)?, email: Bytes::take(input)? };
    if identity.sub.is_some() || identity.email.is_some() {
        user.identity = Some(Box::new(identity));
    }
    take_list(input, |wallet| user.wallets.push(wallet))?;
    take_list(input, |key| user.keys.push(key))?;
    user.wallets.shrink_to_fit();
    user.keys.shrink_to_fit();

    let mut trading = Trading::default();
    let mut orders: Rows<Order> = take_rows(&mut shared.rares, input)?;
    let mut fills: Rows<Fill> = take_rows(&mut (), input)?;
    let mut positions: Rows<Position> = take_rows(&mut (), input)?;
    let remembered: Rows<Remembered> = take_rows(&mut shared.ids, input)?;
    take_list(input, |safeguard| trading.safeguards.push(safeguard))?;
    take_list(input, |equity| trading.equity.push(equity))?;
    take_list(input, |reset| trading.resets.push(reset))?;
    let facts = Facts::unpack(input)?;
    if !input.is_empty() && next_section(input).is_none() {
        trading.backtests = Some(Box::new(Bytes::take(input)?));
    }
    // In the order of their numbers; others are refused, because they would be written differently.
    while let Some(section) = next_section(input) {
        *input = &input[size_of::<u32>()..];
        match section {
            BILLING => user.billing = Some(Box::new(Bytes::take(input)?)),
            ALERTS => trading.alerts = Some(Box::new(Bytes::take(input)?)),
            BILLING_LATER => user.billing.as_mut().ok_or(CodecError::Reference)?.take_later(input)?,
            REALISM => trading.realism = Some(Box::new(Bytes::take(input)?)),
            PREFIXES => trading.prefixes = Bytes::take(input)?,
            DEPARTED => {
                let sum = Sum::of_bytes(&Bytes::take(input)?);
                trading.departed = Some(Box::new(DepartedRows::of_requests(sum)));
            }
            DEPARTED_ROWS if trading.departed.is_none() && trading.prefixes.are_of(user.id, user.next_object) => {
                let there = [orders.len(), fills.len(), positions.len()];
                let numbers = (&trading.prefixes, user.next_object);
                let (departed, runs) = DepartedRows::take(input, user.id, numbers, there)?;
                let ends = [departed.orders, departed.fills, departed.positions].map(|count| count as usize);
                orders = orders.with_numbers(&runs[0], there[0] + ends[0]);
                fills = fills.with_numbers(&runs[1], there[1] + ends[1]);
                positions = positions.with_numbers(&runs[2], there[2] + ends[2]);
                trading.departed = Some(Box::new(departed));
            }
            _ => return Err(CodecError::Variant),
        }
    }
    let prefixes = &trading.prefixes;
    let known = |object: u64| prefixes.number_of(user.id, object).is_some_and(|number| number < user.next_object);
    let fine = prefixes.are_of(user.id, user.next_object)
        && orders.iter().all(|order| known(order.id.0))
        && fills.iter().all(|fill| known(fill.id.0))
        && positions.iter().all(|held| known(held.id.0))
        && facts.len() as u64 <= user.order_facts;
    if !fine {
        return Err(CodecError::Reference);
    }
    (trading.orders, trading.fills, trading.positions) = (orders, fills, positions);
    trading.derive()?;
    trading.facts = facts_by_objects(facts, &trading, user.next_object).ok_or(CodecError::Reference)?;
    if !remembered.is_empty() {
        let order_of = |id| trading.order_row(id).map(|row| &trading.orders[row]);
        let requests = Requests::of_rows(remembered, order_of).ok_or(CodecError::Reference)?;
        trading.requests = Some(Box::new(requests));
    }
    let rests = |order| trading.order_row(order).is_some_and(|row| trading.orders[row].resting);
    if trading.realism.as_ref().is_some_and(|realism| !realism.is_sound(|key| user.key(key).is_some(), rests)) {
        return Err(CodecError::Reference);
    }
    if !trading.equity.is_sorted_by(|equity, next| equity.wallet < next.wallet) {
        return Err(CodecError::Reference);
    }
    if !trading.equity.iter().all(|equity| equity.ascends() && user.wallet(equity.wallet).is_some()) {
        return Err(CodecError::Reference);
    }
    if !trading.is_empty() {
        user.trading = Some(Box::new(trading));
    }
    user.watched = user.needs_watching();
    Ok(user)
}

/// The number of the section that comes next.
fn next_section(input: &[u8]) -> Option<u32> {
    let number = u32::from_le_bytes(*input.first_chunk()?);
    (number <= SECTION_MAX).then_some(number)
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
pub(super) mod tests;
