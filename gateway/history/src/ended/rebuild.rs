//! A new store from what others still have: sound rows of sorted files, and rows that an earlier state has in memory.
//! Orders, positions and requests are read; the other keyspaces follow from them. Rows pass one by one: memory is bounded
//! by the keys of one user in one keyspace, and by a block of each file.
//!
//! The state knows how many rows of each user have left. Of a user some of whose rows ended before the history that is kept
//! it does not know how many of these were cut. The manifest of the old store counts the rows of the days that are kept, of
//! all users together. So if the users without cut rows lack as many rows as are missing of these days, the others lack none.

use super::course::Upto;
use super::manifest::{Hole, Manifest, row_hash};
use super::rows::{
    encode, first_object, hash_key, id_hash, key_bytes, market_key, object_key, object_of, put_head, put_order_of,
    take_head, user_of,
};
use crate::store::{Opener, Rows, Space, Spaces, Store, StoreError, Value, loose_files};
use engine::departed::{EndedOrder, Leaving, RowSum, Sharing, take_order, take_position, take_request};
use engine::id::{MarketId, OrderId, PositionId, UserId};
use engine::order::Order;
use engine::time::UtcDay;
use engine::user::{DepartedRows, User, Users};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;
use std::path::PathBuf;

/// Memory for what is read of the old store.
const CACHE_BYTES: u64 = 4 << 20;
/// Rows that show the keyspace of a file.
const LOOKED_AT: usize = 16;

/// Where rows are searched.
#[derive(Default)]
pub struct Sources<'a> {
    /// Folders of stores, of the same log.
    pub stores: Vec<PathBuf>,
    /// Earlier states of the same log.
    pub states: Vec<&'a Users>,
    /// The folder of the history whose manifest counts the rows by day. It is opened, as by a start, when all sources were
    /// read.
    pub counted_by: Option<PathBuf>,
}

/// The rows of a user that were found, and how many have left memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRows {
    pub user: UserId,
    /// Orders, fills, positions, remembered requests.
    pub found: [u32; 4],
    pub left: [u32; 4],
    /// The hashes of what was found are those of what has left. They also differ if requests left before their orders.
    pub is_proved: bool,
    /// Some of what has left ended before the history that is kept. How much is not known: `left` includes it.
    pub has_cut: bool,
    /// No row is missing that is kept. Of a user with cut rows this is known only from [`Rebuilt::cut`].
    pub is_whole: bool,
}

impl UserRows {
    /// Whether rows are missing, or may be.
    pub fn has_holes(&self) -> bool {
        !self.is_whole
    }
}

/// What is known of users who have rows that were cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CutRows {
    /// There is no such user.
    #[default]
    None,
    /// None of their rows that are kept is missing: other users lack as many rows as are missing of the days that are kept.
    Whole,
    /// Their rows of these days cannot be distinguished from those of others: all of these users count as lacking rows.
    Unknown {
        /// Rows of the days that are kept that are missing, and belong to such users at least in part: orders, fills,
        /// positions, remembered requests.
        missing: [u64; 4],
    },
    /// The old store does not say how many rows the days have, for this reason: all of these users count as lacking rows.
    Uncounted(String),
}

/// What a new store has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// The LSN up to which rows have left memory.
    pub upto: u64,
    /// Users with such rows.
    pub users: Vec<UserRows>,
    /// The first day that is kept; day 0: all are.
    pub kept_from: UtcDay,
    pub cut: CutRows,
    pub rows: u64,
    /// Sorted files that were read, and places in them that could not be.
    pub files: usize,
    pub damages: u64,
    /// Files that could not be opened.
    pub unreadable: Vec<String>,
}

/// A row on its way: key, value.
type Row = (Value, Value);
type Stream<'a> = Box<dyn Iterator<Item = Row> + 'a>;

/// Streams of rows, each by ascending keys, as one. Of several rows with one key the one of the latest move counts.
struct Merged<'a> {
    streams: Vec<Stream<'a>>,
    heads: BinaryHeap<Reverse<(Value, Value, usize)>>,
}

impl<'a> Merged<'a> {
    fn of(streams: Vec<Stream<'a>>) -> Merged<'a> {
        let mut merged = Merged { heads: BinaryHeap::new(), streams };
        (0..merged.streams.len()).for_each(|at| merged.pull(at));
        merged
    }

    fn pull(&mut self, at: usize) {
        self.heads.extend(self.streams[at].next().map(|(key, value)| Reverse((key, value, at))));
    }
}

impl Iterator for Merged<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let lsn_of = |value: &Value| take_head(&mut &value[..]).map_or(0, |head| head.lsn);
        let Reverse((key, mut value, at)) = self.heads.pop()?;
        self.pull(at);
        while self.heads.peek().is_some_and(|Reverse((other, ..))| *other == key)
            && let Some(Reverse((_, other, at))) = self.heads.pop()
        {
            self.pull(at);
            if lsn_of(&other) > lsn_of(&value) {
                value = other;
            }
        }
        Some((key, value))
    }
}

/// What was found of a user.
#[derive(Default)]
struct Found {
    counts: [u32; 4],
    sum: RowSum,
}

/// A store that is being filled.
struct Rebuilding<'a> {
    spaces: &'a Spaces,
    manifest: Manifest,
    state: &'a Users,
    found: BTreeMap<UserId, Found>,
    sharing: Sharing,
}

/// The keyspaces with the rows that are counted, as in [`UserRows::found`].
const COUNTED: [Space; 4] = [Space::Orders, Space::Fills, Space::Positions, Space::Requests];

/// Fills a new store with the rows that have left the memory of `state`, all users, up to the record `upto` of this log, and
/// that ended on the day `kept_from` or later.
///
/// # Errors
/// [`StoreError`] if the new store cannot be written. Damage of the sources is in the result.
pub fn rebuild(
    spaces: &Spaces,
    (log, Upto { lsn: upto, crc }, kept_from): (u128, Upto, UtcDay),
    state: &Users,
    sources: &Sources<'_>,
) -> Result<Rebuilt, StoreError> {
    let mut rebuilt = Rebuilt { upto, ..Rebuilt::default() };
    let (mut opener, mut files) = (Opener::new(), Vec::new());
    for store in &sources.stores {
        for path in loose_files(store)? {
            match opener.open(&path) {
                Ok(file) => files.push(file),
                Err(error) => rebuilt.unreadable.push(format!("{}: {error}", path.display())),
            }
        }
    }
    rebuilt.files = files.len();
    spaces.make_all()?;
    let manifest = Manifest { upto, crc, kept_from, swept_to: kept_from, ..Manifest::new(log) };
    let mut rebuilding = Rebuilding { spaces, manifest, state, found: BTreeMap::new(), sharing: Sharing::default() };
    for space in [Space::Orders, Space::Positions, Space::Requests] {
        // Whose damages are counted while they are read.
        let damages = std::cell::Cell::new(0);
        let mut streams: Vec<Stream<'_>> = Vec::new();
        for file in files.iter().filter(|file| space_of(file.rows()) == Some(space)) {
            streams.push(Box::new(Counting { rows: file.rows(), damages: &damages }));
        }
        streams.extend(sources.states.iter().map(|earlier| rows_of(space, earlier, state, upto)));
        let mut rows = Merged::of(streams);
        rebuilding.fill(space, |of| {
            loop {
                let (key, value) = rows.next()?;
                if of.takes(space, &key, &value, upto) {
                    return Some(Ok((key, value)));
                }
            }
        })?;
        drop(rows);
        rebuilt.damages += damages.get();
    }
    for space in [Space::Fills, Space::ByHash, Space::ByMarket] {
        rebuilding.derive(space)?;
    }
    drop(files);
    // Not before: an opening removes files that nothing names.
    rebuilding.end(&mut rebuilt, || counts_of(sources, log, upto, kept_from))?;
    Ok(rebuilt)
}

/// The manifest that counts the rows of each day.
fn counts_of(sources: &Sources<'_>, log: u128, upto: u64, kept_from: UtcDay) -> Result<Manifest, String> {
    let Some(folder) = &sources.counted_by else { return Err("there is no old store".to_owned()) };
    let read = || Manifest::known(&Store::open_existing(folder, CACHE_BYTES)?.spaces()?);
    let unfit = |why: &str| Err(format!("its manifest {why}"));
    match read().map_err(|error| error.to_string())? {
        None => unfit("is missing"),
        Some(manifest) if manifest.log != log => unfit("is of another log"),
        Some(manifest) if manifest.upto < upto => unfit("ends before these rows"),
        Some(manifest) if manifest.kept_from > kept_from => unfit("was cut further than the log says"),
        Some(manifest) if !manifest.holes.is_empty() => unfit("lacks rows since an earlier rebuild"),
        Some(manifest) => Ok(manifest),
    }
}

/// Rows of a file, whose damaged places are counted.
struct Counting<'a> {
    rows: Rows,
    damages: &'a std::cell::Cell<u64>,
}

impl Iterator for Counting<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let before = self.rows.damages;
        let row = self.rows.next();
        self.damages.set(self.damages.get() + self.rows.damages - before);
        row
    }
}

/// The keyspace of a file, by its first rows; `None` for those that follow from others, and for prices.
fn space_of(rows: Rows) -> Option<Space> {
    let mut sharing = Sharing::default();
    rows.take(LOOKED_AT).find_map(|(key, value)| {
        let mut body = &value[..];
        take_head(&mut body).ok()?;
        let object = object_of(&key)?;
        match key.len() {
            length if length == key_bytes(Space::Requests) => {
                let request = take_request(body, &mut sharing).ok()?;
                (request.order.0 == object).then_some(Space::Requests)
            }
            length if length == key_bytes(Space::Orders) => {
                let is_order = take_order(body, &mut sharing).is_ok_and(|found| found.order.id.0 == object);
                let is_position = take_position(body).is_ok_and(|found| found.id.0 == object);
                if is_order { Some(Space::Orders) } else { is_position.then_some(Space::Positions) }
            }
            _ => None,
        }
    })
}

/// The rows of an earlier state that have left since.
fn rows_of<'a>(space: Space, earlier: &'a Users, state: &'a Users, upto: u64) -> Stream<'a> {
    let of_user = move |user: &'a User| {
        let mut rows = Vec::new();
        let Some(now) = state.get(user.id) else { return rows };
        let has_left = |order: &&Order| !order.is_open() && now.order(order.id).is_none();
        let orders = user.orders().iter().filter(has_left).map(|order| order.id).collect();
        let closed = user.positions().iter().filter(|held| !held.is_open() && now.position(held.id).is_none());
        let leaving = Leaving { user: user.id, orders, positions: closed.map(|held| held.id).collect() };
        let encoded = encode(space, user, &leaving, upto, |row| {
            rows.push((row.key.into(), row.value.into()));
            Ok(())
        });
        encoded.expect("rows that have ended are in memory");
        rows
    };
    Box::new(earlier.iter().collect::<Vec<_>>().into_iter().flat_map(of_user))
}

impl Rebuilding<'_> {
    /// Writes rows with ascending keys.
    fn fill(
        &mut self,
        space: Space,
        mut next: impl FnMut(&mut Self) -> Option<Result<Row, StoreError>>,
    ) -> Result<(), StoreError> {
        let Some(first) = next(self) else { return Ok(()) };
        let mut row = Some(first);
        self.spaces.ingest(space, |write| {
            while let Some(next_row) = row.take() {
                let (key, value) = next_row?;
                write(&key, &value)?;
                let day = take_head(&mut &value[..])?.day;
                self.manifest.note(space, &key, row_hash(&key, &value), day);
                row = next(self);
            }
            Ok(())
        })
    }

    /// Counts a row that has left memory. False: it has not, or cannot be read.
    fn takes(&mut self, space: Space, key: &[u8], value: &[u8], upto: u64) -> bool {
        self.taken(space, key, value, upto).is_some()
    }

    fn taken(&mut self, space: Space, key: &[u8], value: &[u8], upto: u64) -> Option<()> {
        let (mut body, object) = (value, object_of(key)?);
        let user = user_of(key).filter(|_| key.len() == key_bytes(space))?;
        take_head(&mut body).ok().filter(|head| head.lsn <= upto && self.manifest.keeps(space, head.day))?;
        let now = self.state.get(user)?;
        let departed = now.departed()?;
        match space {
            Space::Orders => {
                let ended = take_order(body, &mut self.sharing).ok().filter(|ended| ended.order.id.0 == object)?;
                let id = ended.order.id;
                if now.order(id).is_some() || Some(id) > departed.newest_order() {
                    return None;
                }
                let found = self.found.entry(user).or_default();
                found.counts[0] += 1;
                found.counts[1] += ended.fills.len() as u32;
                found.sum.order(&ended);
            }
            Space::Positions => {
                let position = take_position(body).ok().filter(|position| position.id.0 == object)?;
                if now.position(position.id).is_some() || Some(PositionId(object)) > departed.newest_position() {
                    return None;
                }
                let found = self.found.entry(user).or_default();
                found.counts[2] += 1;
                found.sum.position(&position);
            }
            _ => {
                let request = take_request(body, &mut self.sharing).ok().filter(|of| of.order.0 == object)?;
                let EndedOrder { order, .. } = self.order(user, request.order)?;
                let hash = request.id(&order).map(id_hash)?;
                if key[8..16] != hash.to_be_bytes() {
                    return None;
                }
                let found = self.found.entry(user).or_default();
                found.counts[3] += 1;
                found.sum.request(&request, &order);
            }
        }
        Some(())
    }

    /// An order of the new store.
    fn order(&mut self, user: UserId, id: OrderId) -> Option<EndedOrder> {
        let value = self.spaces.get(Space::Orders, &object_key(user, id.0)).ok()??;
        let mut body = &value[..];
        take_head(&mut body).ok()?;
        take_order(body, &mut self.sharing).ok()
    }

    /// Fills a keyspace that follows from the orders and requests.
    fn derive(&mut self, space: Space) -> Result<(), StoreError> {
        let users: Vec<UserId> = self.found.keys().copied().collect();
        let (mut users, mut rows) = (users.into_iter(), Vec::new().into_iter());
        self.fill(space, |of| {
            loop {
                if let Some(row) = rows.next() {
                    return Some(Ok(row));
                }
                match of.derived(space, users.next()?) {
                    Ok(derived) => rows = derived.into_iter(),
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }

    /// The rows of a user in such a keyspace.
    fn derived(&mut self, space: Space, user: UserId) -> Result<Vec<Row>, StoreError> {
        let all = |space| {
            let (from, to) = (user.0.to_be_bytes(), object_key(user, u64::MAX));
            // Longer keys of the user sort after that one.
            let to = [&to[..], &[u8::MAX; 8]].concat();
            self.spaces.scan(space, (Bound::Included(&from[..]), Bound::Included(&to[..])))
        };
        // Orders whose requests have ids of their own.
        let mut hashes = BTreeMap::new();
        if space == Space::ByMarket {
            for row in all(Space::Requests) {
                let (key, _) = row?;
                let (hash, order) = (key[8..16].first_chunk().copied(), object_of(&key));
                hashes.extend(order.zip(hash).map(|(order, hash)| (order, u64::from_be_bytes(hash))));
            }
        }
        let mut rows: BTreeMap<Vec<u8>, Value> = BTreeMap::new();
        let mut sharing = Sharing::default();
        for row in all(Space::Orders) {
            let (_, value) = row?;
            let mut body = &value[..];
            let mut head = Vec::new();
            put_head(take_head(&mut body)?, &mut head);
            let ended = take_order(body, &mut sharing);
            let EndedOrder { order, fills } = ended.map_err(|error| StoreError::Damaged(error.to_string()))?;
            match space {
                Space::Fills => {
                    for fill in &fills {
                        let mut value = head.clone();
                        put_order_of(fill.id.0, order.id, &mut value);
                        rows.insert(object_key(user, fill.id.0), value.into());
                    }
                }
                Space::ByHash => {
                    if let Some(hash) = order.terms.order_hash() {
                        put_order_of(first_object(user), order.id, &mut head);
                        // Orders ascend: of several with one hash the newest counts.
                        rows.insert(hash_key(user, hash), head.into());
                    }
                }
                _ => {
                    let own = order.terms.client_order_id().map(id_hash);
                    if let Some(hash) = hashes.get(&order.id.0).filter(|hash| Some(**hash) != own) {
                        head.extend_from_slice(&hash.to_be_bytes());
                    }
                    let market: MarketId = order.terms.instrument.market();
                    rows.insert(market_key(user, market, order.id), head.into());
                }
            }
        }
        Ok(rows.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// Compares what was found with what has left, and makes the store durable. `counts`: the manifest of the old store.
    fn end(
        mut self,
        rebuilt: &mut Rebuilt,
        counts: impl FnOnce() -> Result<Manifest, String>,
    ) -> Result<(), StoreError> {
        let left = |of: &DepartedRows| [of.orders, of.fills, of.positions, of.requests];
        let kept_from = self.manifest.kept_from;
        rebuilt.kept_from = kept_from;
        for user in self.state.iter() {
            let Some(departed) = user.departed().filter(|departed| left(departed) != [0; 4]) else { continue };
            let found = self.found.remove(&user.id).unwrap_or_default();
            let (left, has_cut) = (left(departed), departed.has_ended_before(kept_from));
            let (is_proved, is_whole) = (found.sum.bytes() == departed.sum(), found.counts == left);
            rebuilt.users.push(UserRows { user: user.id, found: found.counts, left, is_proved, has_cut, is_whole });
        }
        if rebuilt.users.iter().any(|user| user.has_cut) {
            rebuilt.cut = self.cut_rows(&rebuilt.users, counts());
            // Of some of them all rows may be there that were cut, too.
            let is_whole = rebuilt.cut == CutRows::Whole;
            rebuilt.users.iter_mut().filter(|user| user.has_cut).for_each(|user| user.is_whole |= is_whole);
        }
        let hole = |rows: &UserRows| Some(Hole::of(self.state.get(rows.user)?.departed()?, rebuilt.upto));
        let lacking = rebuilt.users.iter().filter(|rows| rows.has_holes());
        let holes = lacking.filter_map(|rows| Some((rows.user, hole(rows)?))).collect();
        self.manifest.set_holes(holes);
        rebuilt.rows = Space::ALL.iter().map(|space| self.manifest.total(*space).rows).sum();
        self.spaces.sync()?;
        self.spaces.set_about(&self.manifest.write())
    }

    /// Whether users who have rows that were cut lack others. What is missing of the days that are kept is missing of these
    /// users, unless the others, whose rows are all counted, lack as much.
    fn cut_rows(&self, users: &[UserRows], counts: Result<Manifest, String>) -> CutRows {
        let counts = match counts {
            Ok(counts) => counts,
            Err(why) => return CutRows::Uncounted(why),
        };
        let of = |manifest: &Manifest, space: Space| {
            let days = manifest.days.range(self.manifest.kept_from..);
            days.map(|(_, of)| of[space as usize].rows).sum::<u64>()
        };
        let mut missing = [0; 4];
        for (at, space) in COUNTED.into_iter().enumerate() {
            // The old store may count rows of a move that was interrupted, which are in memory: they seem to be missing.
            let there = of(&self.manifest, space);
            let lacking = |rows: &UserRows| u64::from(rows.left[at].saturating_sub(rows.found[at]));
            let lacking: u64 = users.iter().filter(|user| !user.has_cut).map(lacking).sum();
            missing[at] = of(&counts, space).saturating_sub(there).saturating_sub(lacking);
        }
        if missing == [0; 4] { CutRows::Whole } else { CutRows::Unknown { missing } }
    }
}

#[cfg(test)]
mod tests;
