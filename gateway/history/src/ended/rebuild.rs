//! A new store from what others still have: sound rows of sorted files, and rows that an earlier state has in memory.
//! Orders, positions and requests are read; the other keyspaces follow from them (`derived.rs`), but for hashes of signed
//! orders that were cut, which are read, too. Rows pass one by one: memory is bounded by a block of each file, the rows of a
//! user in an earlier state, and runs of rows that are sorted.
//!
//! The state knows how many rows of each user have left. Of a user some of whose rows ended before the history that is kept
//! it does not know how many of these were cut. The manifest of the old store counts the rows of the days that are kept, of
//! all users together. So if the users without cut rows lack as many rows as are missing of these days, the others lack none.
//!
//! More requests may be found than left memory with their orders: those whose ids ended before, and which a move had stored or
//! an earlier state remembers. Nothing is missing then.

mod derived;
mod sources;

pub use sources::Sources;

use super::course::Upto;
use super::holes::{Hole, Holes};
use super::manifest::{Manifest, row_hash};
use super::rows::{id_hash, key_bytes, object_key, object_of, take_head, user_of};
use crate::store::{Head, Space, Spaces, Store, StoreError};
use derived::Derived;
use engine::departed::{EndedOrder, RowSum, Sharing, take_order, take_position, take_request};
use engine::id::{OrderId, PositionId, UserId};
use engine::time::UtcDay;
use engine::user::{DepartedRows, Users};
use sources::{Opened, Row};
use std::collections::BTreeMap;
use std::path::Path;

/// Memory for what is read of the old store.
const CACHE_BYTES: u64 = 4 << 20;

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
    /// Hashes of signed orders may be missing: of such that were cut, or that are missing themselves.
    pub lacks_hashes: bool,
}

impl UserRows {
    /// Whether rows are missing, or may be.
    pub fn has_holes(&self) -> bool {
        !self.is_whole || self.lacks_hashes
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
    /// Hashes of signed orders, of all users, that the old store had and no source has. `None`: that is not known, or no user
    /// lacks rows or has rows that were cut.
    pub lost_hashes: Option<u64>,
    pub rows: u64,
    /// Sorted files that were read, and places in them that could not be.
    pub files: usize,
    pub damages: u64,
    /// Files that could not be opened.
    pub unreadable: Vec<String>,
}

/// What was found of a user.
#[derive(Default)]
struct Found {
    counts: [u32; 4],
    sum: RowSum,
    /// Some of it is of a source that is doubted.
    is_doubted: bool,
}

/// A store that is being filled.
struct Rebuilding<'a> {
    spaces: &'a Spaces,
    manifest: Manifest,
    state: &'a Users,
    found: BTreeMap<UserId, Found>,
    derived: Derived,
    /// Rows of the first source that are of later moves, which are in memory: orders, fills, positions, remembered requests,
    /// hashes of signed orders.
    later: [u64; 5],
    /// Hashes of signed orders of days that are kept, in the tables of the sources.
    kept_hashes: u64,
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
    let opened = Opened::of(sources)?;
    spaces.make_all()?;
    let manifest = Manifest { upto, crc, kept_from, swept_to: kept_from, ..Manifest::new(log) };
    let (derived, sharing) = (Derived::new(), Sharing::default());
    let mut rebuilding =
        Rebuilding { spaces, manifest, state, found: BTreeMap::new(), derived, later: [0; 5], kept_hashes: 0, sharing };
    for space in [Space::Orders, Space::Positions, Space::Requests] {
        let mut rows = opened.rows(space, state, upto);
        rebuilding.fill(space, |of| {
            loop {
                let ((key, value), source) = rows.next()?;
                if of.takes(space, &key, &value, upto, (source == 0, opened.is_doubted(source))) {
                    let noted = if of.derived.is_full() { of.write_requests() } else { Ok(()) };
                    return Some(noted.map(|()| (key, value)));
                }
            }
        })?;
    }
    if kept_from != UtcDay(0) {
        let rows = opened.rows(Space::ByHash, state, upto);
        rebuilding.add_cut_hashes(rows.map(|(row, _)| row), upto)?;
    }
    rebuilding.derive()?;
    opened.close(&mut rebuilt);
    // Not before: an opening removes files that nothing names.
    rebuilding.end(&mut rebuilt, || counts_of(sources, log, upto, kept_from))?;
    Ok(rebuilt)
}

/// The manifest that counts the rows of each day, and whether it is that of the first source.
fn counts_of(sources: &Sources<'_>, log: u128, upto: u64, kept_from: UtcDay) -> Result<(Manifest, bool), String> {
    let mut why = None;
    for (at, folder) in sources.counted_by.iter().enumerate() {
        match counts_in(folder, log, upto, kept_from) {
            Ok(manifest) => return Ok((manifest, at == 0)),
            Err(error) => _ = why.get_or_insert(error),
        }
    }
    Err(why.unwrap_or_else(|| "there is no old store".to_owned()))
}

fn counts_in(folder: &Path, log: u128, upto: u64, kept_from: UtcDay) -> Result<Manifest, String> {
    let read = || {
        let spaces = Store::open_existing(folder, CACHE_BYTES)?.spaces()?;
        Ok::<_, StoreError>(Manifest::known(&spaces)?.zip(Some(Holes::read(&spaces)?)))
    };
    let unfit = |why: &str| Err(format!("its manifest {why}"));
    match read().map_err(|error| error.to_string())? {
        None => unfit("is missing"),
        Some((manifest, _)) if manifest.log != log => unfit("is of another log"),
        Some((manifest, _)) if manifest.upto < upto => unfit("ends before these rows"),
        Some((manifest, _)) if manifest.kept_from > kept_from => unfit("was cut further than the log says"),
        Some((_, holes)) if holes.kept(kept_from).next().is_some() => unfit("lacks rows since an earlier rebuild"),
        Some((manifest, _)) => Ok(manifest),
    }
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
    fn takes(
        &mut self,
        space: Space,
        key: &[u8],
        value: &[u8],
        upto: u64,
        (is_first, is_doubted): (bool, bool),
    ) -> bool {
        let user = self.taken(space, key, value, (upto, is_first));
        if is_doubted && let Some(user) = user {
            self.found.entry(user).or_default().is_doubted = true;
        }
        user.is_some()
    }

    fn taken(&mut self, space: Space, key: &[u8], value: &[u8], (upto, is_first): (u64, bool)) -> Option<UserId> {
        let (mut body, object) = (value, object_of(key)?);
        let user = user_of(key).filter(|_| key.len() == key_bytes(space))?;
        let head = take_head(&mut body).ok().filter(|head| self.manifest.keeps(space, head.day))?;
        if head.lsn > upto {
            if is_first {
                self.note_later(space, body);
            }
            return None;
        }
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
                let (head, EndedOrder { order, .. }) = self.order(user, request.order)?;
                let hash = request.id(&order).map(id_hash)?;
                if key[8..16] != hash.to_be_bytes() {
                    return None;
                }
                self.derived.request(user, &order, head, hash);
                let found = self.found.entry(user).or_default();
                found.counts[3] += 1;
                found.sum.request(&request, &order);
            }
        }
        Some(user)
    }

    /// Counts a row of a later move, which the old store counts, too.
    fn note_later(&mut self, space: Space, body: &[u8]) {
        let [orders, fills, positions, requests, hashes] = &mut self.later;
        match space {
            Space::Orders => {
                let Ok(ended) = take_order(body, &mut self.sharing) else { return };
                *orders += 1;
                *fills += ended.fills.len() as u64;
                *hashes += u64::from(ended.order.terms.order_hash().is_some());
            }
            Space::Positions => *positions += 1,
            _ => *requests += 1,
        }
    }

    /// An order of the new store.
    fn order(&mut self, user: UserId, id: OrderId) -> Option<(Head, EndedOrder)> {
        let value = self.spaces.get(Space::Orders, &object_key(user, id.0)).ok()??;
        let mut body = &value[..];
        let head = take_head(&mut body).ok()?;
        Some((head, take_order(body, &mut self.sharing).ok()?))
    }

    /// Compares what was found with what has left, and makes the store durable. `counts`: the manifest of the old store.
    fn end(
        mut self,
        rebuilt: &mut Rebuilt,
        counts: impl FnOnce() -> Result<(Manifest, bool), String>,
    ) -> Result<(), StoreError> {
        let left = |of: &DepartedRows| [of.orders, of.fills, of.positions, of.requests];
        let kept_from = self.manifest.kept_from;
        rebuilt.kept_from = kept_from;
        let mut has_doubted = false;
        for user in self.state.iter() {
            let Some(departed) = user.departed().filter(|departed| left(departed) != [0; 4]) else { continue };
            let found = self.found.remove(&user.id).unwrap_or_default();
            let (left, has_cut) = (left(departed), departed.has_ended_before(kept_from));
            let is_proved = found.sum.bytes() == departed.sum();
            let has_all = !found.is_doubted && found.counts.iter().zip(left).all(|(found, left)| *found >= left);
            let (is_whole, lacks_hashes) = (is_proved || has_all, false);
            has_doubted |= found.is_doubted;
            let (user, found) = (user.id, found.counts);
            rebuilt.users.push(UserRows { user, found, left, is_proved, has_cut, is_whole, lacks_hashes });
        }
        let (has_cut, lacks) =
            (rebuilt.users.iter().any(|user| user.has_cut), rebuilt.users.iter().any(|user| !user.is_whole));
        if has_cut || lacks {
            let counts = counts().map(|(counts, is_first)| {
                if !is_first {
                    self.later = [0; 5];
                }
                counts
            });
            let lost = counts.as_ref().ok().map(|counts| self.lost_hashes(counts));
            rebuilt.lost_hashes = lost.map(|[_, of_cut]| of_cut);
            if has_cut {
                let counts = match has_doubted {
                    true => Err("some rows are of a source that may be of another copy".to_owned()),
                    false => counts,
                };
                rebuilt.cut = self.cut_rows(&rebuilt.users, counts);
            }
            let is_whole = rebuilt.cut == CutRows::Whole;
            for user in &mut rebuilt.users {
                // Of some of them all rows may be there that were cut, too.
                user.is_whole |= is_whole && user.has_cut;
                user.lacks_hashes = match user.is_whole {
                    true => user.has_cut && lost.is_none_or(|[_, of_cut]| of_cut > 0),
                    false => lost.is_none_or(|[all, _]| all > 0),
                };
            }
        }
        let mut holes = Holes::default();
        for rows in rebuilt.users.iter().filter(|rows| rows.has_holes()) {
            let Some(departed) = self.state.get(rows.user).and_then(|user| user.departed()) else { continue };
            let hole = match rows.is_whole {
                true => Hole::of_hashes(departed, rebuilt.upto),
                false => Hole::of(departed, rebuilt.upto, rows.lacks_hashes),
            };
            holes.insert(rows.user, hole);
        }
        holes.write(self.spaces)?;
        rebuilt.rows = Space::ALL.iter().map(|space| self.manifest.total(*space).rows).sum();
        self.spaces.sync()?;
        self.spaces.set_about(&self.manifest.write())
    }

    /// Hashes of signed orders that the old store had: how many this one lacks, and how many no source has. Those are not of
    /// orders that are missing, and may be of orders that were cut.
    fn lost_hashes(&self, counts: &Manifest) -> [u64; 2] {
        let [old, new] = [counts, &self.manifest].map(|manifest| manifest.total(Space::ByHash).rows);
        let lost = old.saturating_sub(new).saturating_sub(self.later[4]);
        let kept = new - self.manifest.hashes.rows;
        [lost, lost.saturating_sub(self.kept_hashes.saturating_sub(kept))]
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
            let there = of(&self.manifest, space) + self.later[at];
            let lacking = |rows: &UserRows| u64::from(rows.left[at].saturating_sub(rows.found[at]));
            let lacking: u64 = users.iter().filter(|user| !user.has_cut).map(lacking).sum();
            missing[at] = of(&counts, space).saturating_sub(there).saturating_sub(lacking);
        }
        if missing == [0; 4] { CutRows::Whole } else { CutRows::Unknown { missing } }
    }
}

#[cfg(test)]
mod tests;
