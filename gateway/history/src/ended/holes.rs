//! Users some of whose rows are missing since the store was rebuilt. Each is a row of the table `about`, which a rebuild
//! writes and nothing changes: the manifest, which each move writes, does not grow with them.
//!
//! ```text
//! about       `hole`, user     version │ LSN │ object │ time │ whether hashes of signed orders may be missing
//! ```
//!
//! Rows that ended before the history that is kept are not missing. So a hole whose newest time is before it is over, but
//! for hashes of signed orders, which are never removed.

use crate::row::{read_leb, write_leb};
use crate::store::{Spaces, StoreError};
use engine::id::UserId;
use engine::time::{Timestamp, UtcDay};
use engine::user::DepartedRows;
use std::collections::BTreeMap;

/// Version of the row of a [`Hole`].
const VERSION: u8 = 1;

/// Rows of a user that are missing since the store was rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// They left memory up to this LSN.
    pub upto: u64,
    /// The highest id of an order, fill or position among all that had left by then; 0: no such row is missing.
    pub newest: u64,
    /// The newest time in them.
    pub at: Timestamp,
    /// Hashes of signed orders may be missing.
    pub has_hashes: bool,
}

impl Hole {
    /// Some of these rows are missing.
    pub fn of(departed: &DepartedRows, upto: u64, has_hashes: bool) -> Hole {
        let objects = [
            departed.newest_order().map(|id| id.0),
            departed.newest_fill().map(|id| id.0),
            departed.newest_position().map(|id| id.0),
        ];
        let newest = objects.into_iter().flatten().max().unwrap_or(0);
        Hole { upto, newest, at: departed.newest(), has_hashes }
    }

    /// Hashes of signed orders alone are missing.
    pub fn of_hashes(departed: &DepartedRows, upto: u64) -> Hole {
        Hole { newest: 0, ..Hole::of(departed, upto, true) }
    }

    /// What is missing of the history that is kept from a day on.
    fn kept(self, kept_from: UtcDay) -> Option<Hole> {
        let newest = if self.at.day() < kept_from { 0 } else { self.newest };
        (newest != 0 || self.has_hashes).then_some(Hole { newest, ..self })
    }

    fn write(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        [self.upto, self.newest, self.at.0].into_iter().for_each(|number| write_leb(number, &mut out));
        out.push(self.has_hashes.into());
        out
    }

    /// `None` for bytes that [`Hole::write`] does not write.
    fn read(bytes: &[u8]) -> Option<Hole> {
        let (_, mut rest) = bytes.split_first()?;
        let (upto, newest) = (read_leb(&mut rest)?, read_leb(&mut rest)?);
        let hole = Hole { upto, newest, at: Timestamp(read_leb(&mut rest)?), has_hashes: rest == [1] };
        (hole.write() == bytes).then_some(hole)
    }
}

/// The holes of a store, by user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holes(BTreeMap<UserId, Hole>);

impl Holes {
    /// Notes a user's.
    pub fn insert(&mut self, user: UserId, hole: Hole) {
        self.0.insert(user, hole);
    }

    /// That of a user, in the history that is kept from a day on.
    pub fn of(&self, user: UserId, kept_from: UtcDay) -> Option<Hole> {
        self.0.get(&user)?.kept(kept_from)
    }

    /// Whether no row is missing, as mostly.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in the history that is kept from a day on.
    pub fn kept(&self, kept_from: UtcDay) -> impl Iterator<Item = (UserId, Hole)> {
        self.0.iter().filter_map(move |(user, hole)| Some((*user, hole.kept(kept_from)?)))
    }

    /// Reads them from a store.
    ///
    /// # Errors
    /// [`StoreError`]: a later version, or damage.
    pub fn read(spaces: &Spaces) -> Result<Holes, StoreError> {
        let mut holes = Holes::default();
        for row in spaces.holes() {
            let (user, bytes) = row?;
            if let Some(version) = bytes.first().filter(|version| **version > VERSION) {
                return Err(StoreError::Later(format!("version {version} of its missing rows")));
            }
            let hole = Hole::read(&bytes);
            let damaged = || StoreError::Damaged(format!("the missing rows of user {user} cannot be read"));
            holes.insert(user, hole.ok_or_else(damaged)?);
        }
        Ok(holes)
    }

    /// Adds them to a store that has none, durably.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn write(&self, spaces: &Spaces) -> Result<(), StoreError> {
        spaces.add_holes(self.0.iter().map(|(user, hole)| (*user, hole.write())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ended::testing::{CACHE_BYTES, create, open};
    use crate::store::Store;
    use engine::time::DAY;

    fn hole(number: u64) -> Hole {
        Hole { upto: 300 + number, newest: number << 28 | 5, at: Timestamp(number * DAY), has_hashes: number % 2 == 1 }
    }

    #[test]
    fn holes_come_back_and_nothing_else_is_read() {
        let mut cases = 0;
        // The bytes on disk: they do not change.
        assert_eq!(hole(1).write(), [&[1, 0xad, 2, 0x85, 0x80, 0x80, 0x80, 1], &leb(DAY)[..], &[1]].concat());
        for number in [0, 1, 2, 300, 20_000] {
            let bytes = hole(number).write();
            assert_eq!(Hole::read(&bytes), Some(hole(number)));
            for end in 0..bytes.len() {
                assert_eq!(Hole::read(&bytes[..end]), None, "cut at {end}");
            }
            assert_eq!(Hole::read(&[&bytes[..], &[0]].concat()), None, "longer");
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let found = Hole::read(&flipped);
                assert!(found.is_none_or(|found| found.write() == flipped && found != hole(number)), "bit {bit}");
            }
            cases += bytes.len() * 9 + 2;
        }
        println!("rows of holes: {cases} cases");
    }

    fn leb(number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write_leb(number, &mut out);
        out
    }

    /// More users than fit into the manifest: each is found by itself, also after an opening.
    #[test]
    fn each_of_many_users_has_a_hole_of_its_own() {
        const USERS: u64 = 20_000;
        let place = tempfile::tempdir().expect("a folder");
        drop(create(place.path()));
        let mut holes = Holes::default();
        (1..=USERS).for_each(|user| holes.insert(UserId(user * 2), hole(user)));
        let spaces = Store::open_existing(place.path(), CACHE_BYTES).expect("sound").spaces().expect("open");
        holes.write(&spaces).expect("written");
        drop(spaces);
        let store = open(place.path());
        let opened = store.opened().expect("open");
        let found = &opened.holes;
        assert_eq!(*found, holes);
        let mut cases = 0;
        for user in 1..=USERS {
            assert_eq!(found.of(UserId(user * 2), UtcDay(0)), Some(hole(user)));
            assert_eq!(found.of(UserId(user * 2 + 1), UtcDay(0)), None, "a user beside it");
            cases += 2;
        }
        assert_eq!(found.of(UserId(0), UtcDay(0)), None);
        // What ended before the first day is not missing, but for hashes.
        for (number, day, newest) in
            [(4, 4, Some(4 << 28 | 5)), (4, 5, None), (5, 5, Some(5 << 28 | 5)), (5, 6, Some(0))]
        {
            let kept = found.of(UserId(number * 2), UtcDay(day));
            assert_eq!(kept.map(|kept| kept.newest), newest, "{number} from day {day}");
            cases += 1;
        }
        assert_eq!(found.kept(UtcDay(0)).count() as u64, USERS);
        assert_eq!(found.kept(UtcDay(u32::MAX)).count() as u64, USERS / 2);
        println!("users with holes: {cases} cases");
    }

    #[test]
    fn holes_that_cannot_be_read_close_the_rows() {
        let sound = hole(3).write();
        let later = [&[VERSION + 1], &sound[1..]].concat();
        let rows = [(sound.clone(), ""), (later, "later program"), (sound[..4].to_vec(), "user 7 cannot be read")];
        for (bytes, expected) in &rows {
            let place = tempfile::tempdir().expect("a folder");
            drop(create(place.path()));
            let spaces = Store::open_existing(place.path(), CACHE_BYTES).expect("sound").spaces().expect("open");
            spaces.add_holes([(UserId(7), bytes.clone())].into_iter()).expect("written");
            drop(spaces);
            let opened = crate::ended::EndedStore::open(place.path(), CACHE_BYTES);
            match opened {
                Ok(_) => assert!(expected.is_empty()),
                Err(error) => assert!(!expected.is_empty() && error.to_string().contains(expected), "{error}"),
            }
        }
        println!("holes that cannot be read: {} cases", rows.len());
    }
}
