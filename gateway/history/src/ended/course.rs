//! Whether rows that the state still has are of the same course of events as those of the store. The identity of a log
//! does not say so: a copy of a data directory has the same, and goes on by itself.

use super::EndedStore;
use super::rows::{object_of, user_of};
use crate::store::{Space, StoreError};
use engine::departed::Departed as _;
use engine::id::{OrderId, PositionId};
use engine::order::Order;
use engine::user::{Position, Users};

impl EndedStore {
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
    use super::super::testing::{LOG, World, world};
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
            drop(Store::open(place.path(), 4 << 20).expect("a new store"));
            let store = EndedStore::open(place.path(), 4 << 20).expect("a sound store");
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
        drop(Store::open(place.path(), 4 << 20).expect("a new store"));
        let store = EndedStore::open(place.path(), 4 << 20).expect("a sound store");
        store.writer(LOG).write(&one.users, &one.all(), 50).expect("written");
        let mut gone = few;
        gone.users.set_departed_upto(50);
        assert!(store.belongs_to(LOG, &gone.users).is_ok());
        println!("rows of another course: {} cases", cases + 1);
    }
}
