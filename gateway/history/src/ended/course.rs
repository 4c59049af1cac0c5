//! Whether the rows are of the same course of events as the log and the state. The identity of a log does not say so: a
//! copy of a data directory has the same, and goes on by itself. The checksum of the record up to which rows moved does: it
//! covers the checksums of all records before it. While the log still has that record, they are compared. If it has been
//! released, rows that the state still has are compared with those of the store.

use super::rows::{object_of, user_of};
use super::{EndedStore, Manifest};
use crate::store::{Space, StoreError};
use engine::departed::Departed as _;
use engine::id::{OrderId, PositionId};
use engine::order::Order;
use engine::user::{Position, Users};

/// The record of the log up to which rows ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upto {
    pub lsn: u64,
    /// Its checksum, which covers that of the record before it; `None`: not known.
    pub crc: Option<u32>,
}

/// A record whose checksum is not known.
impl From<u64> for Upto {
    fn from(lsn: u64) -> Upto {
        Upto { lsn, crc: None }
    }
}

/// The checksum of a record, if the log still has it.
pub type CrcOf = Box<dyn Fn(u64) -> Option<u32> + Send + Sync>;

impl Manifest {
    /// Compares the record of the newest move with a log, if it has that record; else that of the last whole move. Returns
    /// whether one was compared.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] if it is another record.
    fn continues(&self, crc_of: &dyn Fn(u64) -> Option<u32>) -> Result<bool, StoreError> {
        let interrupted = self.interrupted.last_key_value().map(|(lsn, crc)| Upto { lsn: *lsn, crc: *crc });
        let mut moves = [interrupted, Some(Upto { lsn: self.upto, crc: self.crc })];
        moves.sort_by_key(|of| of.map(|upto| upto.lsn));
        for Upto { lsn, crc } in moves.into_iter().rev().flatten() {
            if let Some(crc) = crc
                && let Some(found) = crc_of(lsn)
            {
                return if found == crc { Ok(true) } else { Err(StoreError::Foreign) };
            }
        }
        Ok(false)
    }
}

impl EndedStore {
    /// Compares the rows with a log whenever they are opened from now on, before any of them is read. Those of another course
    /// of events are not read.
    pub fn compare_with(&self, crc_of: CrcOf) {
        // Once in a process.
        let _ = self.crc_of.set(crc_of);
    }

    /// Compares the record up to which rows moved with a log. Returns whether it was compared: the log may have released it,
    /// or no row was moved yet.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] if the log has another one; [`StoreError::Opening`] and [`StoreError::Unusable`].
    pub fn continues(&self, crc_of: impl Fn(u64) -> Option<u32>) -> Result<bool, StoreError> {
        self.opened()?.manifest().map_or(Ok(false), |manifest| manifest.continues(&crc_of))
    }

    /// As [`EndedStore::continues`], of a store that was just opened and a log that was given before.
    pub(super) fn is_of_the_log(&self, manifest: &Manifest) -> Result<(), StoreError> {
        self.crc_of.get().map_or(Ok(()), |crc_of| manifest.continues(crc_of).map(drop))
    }

    /// Compares the newest rows with `users`. Rows of a move whose snapshot was not written are in memory, too; if they are
    /// not, later moves would show rows that never were. A few accesses, and none once the snapshot is there.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] if they differ; those of reading.
    pub fn belongs_to(&self, log: u128, users: &Users) -> Result<(), StoreError> {
        let Some(manifest) = self.opened()?.manifest() else { return Ok(()) };
        let (known, newest) = (users.departed_upto(), manifest.upto);
        if newest <= known {
            return Ok(());
        }
        for (space, probe) in Space::ALL.into_iter().zip(&manifest.newest) {
            let key = probe.as_ref().map(|probe| &probe.key[..]).unwrap_or_default();
            let (Some(owner), Some(id)) = (user_of(key), object_of(key)) else { continue };
            let [before, now] = [known, newest].map(|upto| self.reader(log).of(owner, upto));
            let user = users.get(owner);
            let is_here = match space {
                Space::Orders => match (before.order(OrderId(id)), now.order(OrderId(id))?) {
                    (Ok(None), Some(gone)) => {
                        let here = user.and_then(|user| user.order(OrderId(id)));
                        here.is_some_and(|here| outcome(here) == outcome(&gone.order))
                    }
                    // Rows that are missing say nothing.
                    (Ok(_) | Err(StoreError::Incomplete { .. }), _) => true,
                    (Err(error), _) => return Err(error),
                },
                Space::Positions => match (before.position(PositionId(id)), now.position(PositionId(id))?) {
                    (Ok(None), Some(gone)) => {
                        let here = user.and_then(|user| user.position(PositionId(id)));
                        here.is_some_and(|here| result(here) == result(&gone))
                    }
                    // Rows that are missing say nothing.
                    (Ok(_) | Err(StoreError::Incomplete { .. }), _) => true,
                    (Err(error), _) => return Err(error),
                },
                _ => true,
            };
            if !is_here {
                return Err(StoreError::Foreign);
            }
        }
        Ok(())
    }
}

/// What an order asked for and came to. Not its times: a correction of the clock may have changed them in memory.
fn outcome(order: &Order) -> impl PartialEq {
    let terms = &order.terms;
    let asked = (terms.wallet, terms.instrument, terms.side, terms.limit, terms.quantity);
    (asked, order.filled, order.notional, order.fee, order.is_open())
}

/// What a position came to, also without its times.
fn result(position: &Position) -> impl PartialEq {
    (position.wallet, position.instrument, position.qty, position.realized, position.is_open())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CACHE_BYTES, LOG, World, create, open, world};
    use super::*;
    use crate::store::Store;

    #[test]
    fn rows_of_another_course_are_found() {
        // (what the store has, what is in memory, whether it belongs)
        let (one, other, few) = (world(1, 2, 40), world(2, 2, 40), world(9, 1, 3));
        let rows: [(&World, &World, bool); 5] = [
            (&one, &one, true),
            (&one, &other, false),
            (&one, &few, false),
            (&other, &one, false),
            (&other, &other, true),
        ];
        let mut cases = 0;
        for (stored, here, belongs) in rows {
            let place = tempfile::tempdir().expect("a folder");
            let store = create(place.path());
            assert!(store.belongs_to(LOG, &here.users).is_ok(), "an empty one fits");
            store.writer(LOG).write(&stored.users, &stored.all(), 50).expect("written");
            match store.belongs_to(LOG, &here.users) {
                Ok(()) => assert!(belongs),
                Err(StoreError::Foreign) => assert!(!belongs),
                Err(error) => panic!("{error}"),
            }
            assert!(store.belongs_to(LOG + 1, &here.users).is_err(), "another log");
            cases += 3;
        }
        // A snapshot without the rows is there: they are not compared.
        let place = tempfile::tempdir().expect("a folder");
        let store = create(place.path());
        store.writer(LOG).write(&one.users, &one.all(), 50).expect("written");
        let mut gone = few;
        gone.users.set_departed_upto(50);
        assert!(store.belongs_to(LOG, &gone.users).is_ok());
        println!("rows of another course: {} cases", cases + 1);
    }
    /// A copy of a log that goes on by itself: its store has the same rows as this one, and only the record up to which they
    /// moved is another one.
    #[test]
    fn rows_of_another_copy_are_found_however_they_look() {
        let world = world(3, 2, 40);
        type Log = fn(u64) -> Option<u32>;
        let same: Log = |lsn| Some(lsn as u32 * 7);
        let other: Log = |lsn| Some(if lsn < 30 { lsn as u32 * 7 } else { lsn as u32 * 11 });
        let released: Log = |_| None;
        let only_whole: Log = |lsn| if lsn == 20 { Some(140) } else { None };
        let another_whole: Log = |lsn| if lsn == 20 { Some(141) } else { None };
        // (LSN of the move, whether another one after it was interrupted, the log, whether it belongs and was compared)
        let rows: [(u64, bool, Log, Option<bool>); 10] = [
            (20, false, same, Some(true)),
            (20, false, other, Some(true)),
            (40, false, same, Some(true)),
            (40, false, other, None),
            (40, false, released, Some(false)),
            (20, true, same, Some(true)),
            (20, true, other, None),
            (20, true, released, Some(false)),
            (20, true, only_whole, Some(true)),
            (20, true, another_whole, None),
        ];
        for (nth, (lsn, is_interrupted, log, expected)) in rows.into_iter().enumerate() {
            let place = tempfile::tempdir().expect("a folder");
            let store = create(place.path());
            let of = |lsn: u64| Upto { lsn, crc: Some(lsn as u32 * 7) };
            let all = world.all();
            let first: Vec<_> = all.iter().take(1).cloned().collect();
            store
                .writer(LOG)
                .write(&world.users, if is_interrupted { &first } else { &all }, of(lsn))
                .expect("written");
            if is_interrupted {
                let mut writer = store.writer(LOG);
                writer.watch = Some(Box::new(|step| match step {
                    "orders" => Err(StoreError::Io(std::io::Error::other("as planned"))),
                    _ => Ok(()),
                }));
                assert!(writer.write(&world.users, &all, of(50)).is_err());
            }
            drop(store);
            let store = open(place.path());
            let found = store.continues(log).map_err(|error| error.to_string());
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "row {nth}: {found:?}");
            assert!(found.is_ok() || found.is_err_and(|why| why.contains("another copy")));
            // At the opening in a server: nothing is read or written.
            drop(store);
            let database = Store::open(place.path(), CACHE_BYTES).expect("a sound store");
            let store = EndedStore::opening();
            store.compare_with(Box::new(log));
            store.publish(database.spaces());
            let order = store.reader(LOG).of(all[0].user, lsn).order(all[0].orders[0]);
            let written = store.writer(LOG).write(&world.users, &all, of(60));
            let is_foreign =
                |error: &StoreError| matches!(error, StoreError::Unusable(why) if matches!(**why, StoreError::Foreign));
            assert_eq!(order.as_ref().is_err_and(is_foreign), expected.is_none(), "row {nth}: {order:?}");
            assert_eq!(written.as_ref().is_err_and(is_foreign), expected.is_none(), "row {nth}: {written:?}");
            assert_eq!((order.is_ok(), written.is_ok()), (expected.is_some(), expected.is_some()), "row {nth}");
        }
        // The same LSN again, and another record.
        let place = tempfile::tempdir().expect("a folder");
        let store = create(place.path());
        let mut cases = 0;
        for (crc, is_same) in [(Some(1), true), (Some(1), true), (Some(2), false), (None, true), (Some(2), false)] {
            let written = store.writer(LOG).write(&world.users, &world.all(), Upto { lsn: 9, crc });
            assert_eq!(written.is_ok(), is_same, "{crc:?}: {written:?}");
            cases += 1;
        }
        println!("rows of another copy: {} cases", rows.len() + cases);
    }
}
