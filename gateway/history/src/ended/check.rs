//! The check of every ended row of a stopped store: whether it can be read, belongs where it is, and fits the others; and
//! whether all of them are what the manifest says.

use super::manifest::Days;
use super::rows::{
    Head, day_of, first_object, hash_key, id_hash, key_bytes, market_key, object_key, object_of, take_head,
    take_order_of, take_request_hash, user_of,
};
use super::{Hole, Holes, Manifest, row_hash};
use crate::store::{Space, Spaces, StoreError};
use engine::departed::{EndedOrder, EndedRequest, Sharing, take_order, take_position, take_request};
use engine::id::{OrderId, UserId};
use engine::time::{Timestamp, UtcDay};
use std::ops::Bound;

/// Name of the table with the manifest.
const ABOUT: &str = "about";
/// The place of all days before the first one that is kept.
const BEFORE: UtcDay = UtcDay(0);

/// What a keyspace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Rows that are kept, and the users that have some.
    pub rows: u64,
    pub users: u64,
    /// Rows of days that were cut and are still there.
    pub cut_rows: u64,
}

/// Counts the rows of a keyspace.
pub fn count(spaces: &Spaces, space: Space, manifest: Option<&Manifest>) -> Result<Counted, StoreError> {
    let (mut counted, mut last) = (Counted::default(), None);
    for row in spaces.scan(space, (Bound::Unbounded, Bound::Unbounded)) {
        let (key, value) = row?;
        if is_cut(manifest, space, &value) {
            counted.cut_rows += 1;
            continue;
        }
        let user = user_of(&key);
        counted.rows += 1;
        counted.users += u64::from(last.replace(user) != Some(user));
    }
    Ok(counted)
}

/// Whether a row is of a day that was cut. Bytes that are no row are not.
fn is_cut(manifest: Option<&Manifest>, space: Space, value: &[u8]) -> bool {
    manifest.zip(day_of(value)).is_some_and(|(manifest, day)| !manifest.keeps(space, day))
}

/// The check, and what it passes its findings to: table, user, problem.
pub struct Check<'a, N: FnMut(&'static str, Option<UserId>, String)> {
    spaces: &'a Spaces,
    manifest: Option<Manifest>,
    sharing: Sharing,
    note: N,
    /// Rows that were read.
    pub rows: u64,
}

impl<'a, N: FnMut(&'static str, Option<UserId>, String)> Check<'a, N> {
    pub fn new(spaces: &'a Spaces, mut note: N) -> Check<'a, N> {
        let manifest = Manifest::known(spaces).unwrap_or_else(|error| {
            note(ABOUT, None, error.to_string());
            None
        });
        // What was lost before a rebuild is missing, although this store is not damaged.
        let kept_from = manifest.as_ref().map_or(UtcDay(0), |manifest| manifest.kept_from);
        match Holes::read(spaces) {
            Ok(holes) => {
                for (user, Hole { upto, newest, .. }) in holes.kept(kept_from) {
                    let (space, what) = match newest {
                        0 => (Space::ByHash, "hashes of signed orders that left memory"),
                        _ => (Space::Orders, "rows that left memory"),
                    };
                    let problem = format!("{what} up to LSN {upto} are missing since it was rebuilt");
                    note(space.name(), Some(user), problem);
                }
            }
            Err(error) => note(ABOUT, None, error.to_string()),
        }
        // What does not fit is looked for all the same.
        if let Some(Err(error)) = manifest.as_ref().map(|manifest| manifest.fits(spaces)) {
            note(ABOUT, None, error.to_string());
        }
        Check { spaces, manifest, sharing: Sharing::default(), note, rows: 0 }
    }

    /// The first day that is kept, if earlier ones were cut.
    pub fn from(&self) -> Option<UtcDay> {
        self.manifest.as_ref().map(|manifest| manifest.kept_from).filter(|day| *day != UtcDay(0))
    }

    pub fn run(&mut self) {
        for space in Space::ALL {
            let (mut days, mut rows, mut from, mut step, mut is_whole) = (Days::new(), 0, Some(0), 1_u64, true);
            while let Some(user) = from {
                let before = rows;
                from = self.users(space, user, &mut days, &mut rows).and_then(|last| last.checked_add(step));
                is_whole &= from.is_none();
                // What is damaged may hold many users, whose numbers are unknown.
                step = if rows > before { 1 } else { step.saturating_mul(2) };
            }
            self.rows += rows;
            if is_whole {
                self.compare(space, &days);
            }
        }
    }

    /// Compares the rows of each day with the manifest.
    fn compare(&mut self, space: Space, days: &Days) {
        let Some(manifest) = &self.manifest else { return };
        let mut expected: Days =
            manifest.days.iter().map(|(day, of)| (*day, of[space as usize])).filter(|(_, of)| of.rows > 0).collect();
        if !space.is_cut() && manifest.hashes.rows > 0 {
            expected.insert(BEFORE, manifest.hashes);
        }
        if *days == expected {
            return;
        }
        let rows = |days: &Days| days.values().map(|of| of.rows).sum::<u64>();
        let (there, expected) = (rows(days), rows(&expected));
        let problem = match there == expected {
            true => "its rows are not those that were written".to_owned(),
            false => format!("{there} of {expected} rows"),
        };
        (self.note)(space.name(), None, problem);
    }

    /// Checks the rows from a user on, up to an error. Returns the last user before it. Rows that were cut are passed over.
    fn users(&mut self, space: Space, from: u64, days: &mut Days, rows: &mut u64) -> Option<u64> {
        let (mut last, first) = (from, from.to_be_bytes());
        for row in self.spaces.scan(space, (Bound::Included(&first[..]), Bound::Unbounded)) {
            let (key, value) = match row {
                Ok(row) => row,
                Err(error) => {
                    (self.note)(space.name(), None, error.to_string());
                    return Some(last);
                }
            };
            if is_cut(self.manifest.as_ref(), space, &value) {
                last = user_of(&key).map_or(last, |user| user.0);
                continue;
            }
            *rows += 1;
            let day = day_of(&value).unwrap_or_default();
            let day = if self.manifest.as_ref().is_some_and(|known| day < known.kept_from) { BEFORE } else { day };
            days.entry(day).or_default().add(row_hash(&key, &value));
            let user = user_of(&key).filter(|_| key.len() == key_bytes(space));
            last = user.map_or(last, |user| user.0);
            let checked = match user {
                Some(user) => self.row(space, user, &key, &value),
                None => Err(format!("a key of {} bytes", key.len())),
            };
            if let Err(problem) = checked {
                (self.note)(space.name(), user, problem);
            }
        }
        None
    }

    fn row(&mut self, space: Space, user: UserId, key: &[u8], value: &[u8]) -> Result<(), String> {
        let mut body = value;
        let Head { lsn, day } = take_head(&mut body).map_err(of)?;
        let upto = self.manifest.as_ref().map_or(u64::MAX, Manifest::newest_lsn);
        if lsn > upto {
            return Err(format!("a row of LSN {lsn}, after that of the last move"));
        }
        let object = object_of(key).ok_or("a key without an object")?;
        let unreadable = || format!("row {object} cannot be read");
        match space {
            Space::Orders => {
                let order = take_order(body, &mut self.sharing).map_err(|error| format!("order {object}: {error}"))?;
                if order.order.id.0 != object {
                    return Err(format!("order {object} is order {}", order.order.id));
                }
                is_of_day(order.order.ended_at(), day)?;
                // An interrupted move wrote the order, and not yet what names it.
                let is_interrupted = self.manifest.as_ref().is_some_and(|known| known.interrupted.contains_key(&lsn));
                if is_interrupted { Ok(()) } else { self.is_named(user, &order) }
            }
            Space::Positions => {
                let position = take_position(body).map_err(|error| format!("position {object}: {error}"))?;
                match position.id.0 == object {
                    true => is_of_day(position.closed_at, day),
                    false => Err(format!("position {object} is position {}", position.id)),
                }
            }
            Space::Fills => {
                let order = self.order(user, take_order_of(object, body).ok_or_else(unreadable)?, day)?;
                match order.fills.iter().any(|fill| fill.id.0 == object) {
                    true => Ok(()),
                    false => Err(format!("order {} lacks its fill {object}", order.order.id)),
                }
            }
            Space::Requests => {
                let request = take_request(body, &mut self.sharing).map_err(|error| format!("{object}: {error}"))?;
                let found = EndedRequest { order: self.order(user, OrderId(object), day)?, request };
                let hash = found.id().map(id_hash).filter(|_| found.request.order.0 == object);
                if hash.is_none_or(|hash| key[8..16] != hash.to_be_bytes()) {
                    return Err(format!("the request of order {object} is under another id"));
                }
                self.is_found(user, &found)
            }
            Space::ByHash => {
                // Its key ends with the hash.
                let order = take_order_of(first_object(user), body).ok_or("a hash that cannot be read")?;
                if self.manifest.as_ref().is_some_and(|known| day < known.kept_from) {
                    return Ok(());
                }
                let found = self.order(user, order, day)?;
                match found.order.terms.order_hash().is_some_and(|hash| key[8..] == *hash) {
                    true => Ok(()),
                    false => Err(format!("order {order} has another hash")),
                }
            }
            Space::ByMarket => {
                let found = self.order(user, OrderId(object), day)?;
                let own = market_key(user, found.order.terms.instrument.market(), found.order.id);
                if own == key && take_request_hash(body).is_some() {
                    Ok(())
                } else {
                    Err(format!("order {object} is not of this market"))
                }
            }
        }
    }

    /// The order that another row names, and that ended on its day.
    fn order(&mut self, user: UserId, id: OrderId, day: UtcDay) -> Result<EndedOrder, String> {
        let found = self.spaces.get(Space::Orders, &object_key(user, id.0)).map_err(of)?;
        let found = found.ok_or_else(|| format!("order {id} is missing"))?;
        let mut body = &found[..];
        let head = take_head(&mut body).map_err(of)?;
        if head.day != day {
            return Err(format!("order {id} ended on another day"));
        }
        take_order(body, &mut self.sharing).map_err(|error| format!("order {id}: {error}"))
    }

    /// Checks that the order finds its request.
    fn is_found(&self, user: UserId, found: &EndedRequest) -> Result<(), String> {
        let EndedOrder { order, .. } = &found.order;
        if found.id() == order.terms.client_order_id() {
            return Ok(());
        }
        let key = market_key(user, order.terms.instrument.market(), order.id);
        let Some(row) = self.spaces.get(Space::ByMarket, &key).map_err(of)? else {
            // An interrupted move wrote the request, and not yet what the order finds it by.
            return Ok(());
        };
        let mut body = &row[..];
        take_head(&mut body).map_err(of)?;
        match take_request_hash(body).flatten() == found.id().map(id_hash) {
            true => Ok(()),
            false => Err(format!("order {} does not find its request", order.id)),
        }
    }

    /// Checks that everything that names an order is there.
    fn is_named(&self, user: UserId, EndedOrder { order, fills }: &EndedOrder) -> Result<(), String> {
        let named = |space: Space, key: &[u8]| self.spaces.get(space, key).map_err(of);
        let missing = |space: Space| format!("order {} is not in {}", order.id, space.name());
        let fills = fills.iter().map(|fill| (Space::Fills, object_key(user, fill.id.0)));
        let market = market_key(user, order.terms.instrument.market(), order.id);
        for (space, key) in fills.chain([(Space::ByMarket, market)]) {
            named(space, &key)?.ok_or_else(|| missing(space))?;
        }
        if let Some(hash) = order.terms.order_hash() {
            named(Space::ByHash, &hash_key(user, hash))?.ok_or_else(|| missing(Space::ByHash))?;
        }
        Ok(())
    }
}

fn is_of_day(ended_at: Option<Timestamp>, day: UtcDay) -> Result<(), String> {
    if ended_at.map(Timestamp::day) == Some(day) { Ok(()) } else { Err("it ended on another day".to_owned()) }
}

fn of(error: StoreError) -> String {
    error.to_string()
}
