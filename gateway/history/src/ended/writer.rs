//! A move: rows that leave memory into the keyspaces.
//!
//! 1. What is to be added to each keyspace is counted, and noted in the manifest, durably.
//! 2. The rows of each keyspace are ingested, orders first.
//! 3. Everything is synced, and each row is read back.
//! 4. The manifest says that they are there, durably.
//!
//! A move that finds no room on the disk ends, and a later one repeats it, as after a crash. After a sync that failed it is
//! unknown what is on the disk, and what a later sync would say of it: this process moves nothing more.
//!
//! Rows that are there as they are to be are not written again, so a move that was interrupted, or whose snapshot was not
//! written, can be repeated, also with other rows beside. Rows are encoded for each step, one by one: memory is bounded by
//! the keys of one user in one keyspace.

use super::course::Upto;
use super::cutting::{FreeBytes, Sweeping};
use super::manifest::{Addition, Manifest, Moving, row_hash};
use super::rows::{Encoded, encode, object_key, take_head};
use super::{EndedStore, Opened};
use crate::store::{Space, Spaces, StoreError, Value};
use ahash::AHashSet;
use engine::departed::Leaving;
use engine::id::UserId;
use engine::time::UtcDay;
use engine::user::{User, Users};
use host::thread::Stop;
use std::cell::Cell;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows of earlier moves that are passed by before the next row of this one is looked for by its key.
const PASSED_MAX: usize = 64;

/// Writes ended rows.
pub struct EndedWriter {
    pub(super) store: EndedStore,
    log: u128,
    /// Ends a move between two rows.
    stop: Stop,
    /// Why nothing is written any more.
    refused: Option<Arc<str>>,
    /// The last write found no room on the disk: what it left is not known yet.
    unsettled: Cell<bool>,
    /// `None`: no merge waits for room.
    pub(super) free: Option<FreeBytes>,
    pub(super) sweeping: Option<Sweeping>,
    /// The day of a removal that has ended and is not noted yet, and the rows that were removed.
    pub(super) swept: Option<(UtcDay, u64)>,
    /// A removal has failed.
    pub(super) gave_up: bool,
    /// Called after each step; its error ends the move there, as a crash would.
    #[cfg(test)]
    pub watch: Option<Watch>,
}

#[cfg(test)]
type Watch = Box<dyn FnMut(&str) -> Result<(), StoreError> + Send>;

/// The rows of one move, in the order of their users.
struct Source<'a> {
    rows: Vec<(&'a User, &'a Leaving)>,
    upto: Upto,
    stop: Stop,
}

/// What a move writes.
struct Plan {
    /// Keys that are not written, by keyspace: their rows are there.
    there: [AHashSet<Box<[u8]>>; Space::ALL.len()],
    additions: [Addition; Space::ALL.len()],
}

impl EndedWriter {
    pub(super) fn new(store: EndedStore, log: u128) -> EndedWriter {
        EndedWriter {
            store,
            log,
            stop: Stop::new(),
            refused: None,
            unsettled: Cell::new(false),
            free: None,
            sweeping: None,
            swept: None,
            gave_up: false,
            #[cfg(test)]
            watch: None,
        }
    }

    /// A move ends with [`StoreError::GivenUp`] soon after this stop is set; the next process repeats it.
    pub fn until(self, stop: Stop) -> EndedWriter {
        EndedWriter { stop, ..self }
    }

    /// The LSN up to which rows are there; 0 if nothing was moved yet.
    ///
    /// # Errors
    /// As [`EndedStore::upto`].
    pub fn upto(&self) -> Result<u64, StoreError> {
        self.store.upto()
    }

    /// Whether rows can be written now, as far as that is known before.
    ///
    /// # Errors
    /// [`StoreError::Refused`], [`StoreError::Busy`], [`StoreError::Opening`], [`StoreError::Unusable`].
    pub fn ready(&self) -> Result<(), StoreError> {
        self.opened().map(drop)
    }

    fn opened(&self) -> Result<Arc<Opened>, StoreError> {
        let opened = self.writable()?;
        match opened.spaces.is_busy() {
            true => Err(StoreError::Busy),
            false => Ok(opened),
        }
    }

    /// Stores the rows of `leaving`, which `users` still has, as rows that ended up to the record `upto`. They are durable
    /// and were read back when it returns. Each user is there at most once.
    ///
    /// # Errors
    /// [`StoreError::Busy`], [`StoreError::Opening`]: nothing was written, and a later call may write it; so it may if there
    /// is no room on the disk ([`StoreError::is_full`]), after which parts may be there.
    /// [`StoreError::NotEnded`], [`StoreError::Foreign`], [`StoreError::Ahead`] (an earlier move has a later LSN) and
    /// [`StoreError::Unusable`]: nothing was written. After any other error this writer answers [`StoreError::Refused`];
    /// that of a later process repeats the move.
    pub fn write(&mut self, users: &Users, leaving: &[Leaving], upto: impl Into<Upto>) -> Result<(), StoreError> {
        self.write_upto(users, leaving, upto.into())
    }

    fn write_upto(&mut self, users: &Users, leaving: &[Leaving], upto: Upto) -> Result<(), StoreError> {
        let opened = self.opened()?;
        let source = Source { stop: self.stop.clone(), ..Source::of(users, leaving, upto)? };
        // The engine may panic where files are damaged; its caller has other work.
        let moved = catch_unwind(AssertUnwindSafe(|| {
            let (mut manifest, plan) = self.plan(&opened, &source)?;
            let written = self.write_planned(&opened, &source, &mut manifest, plan);
            Ok::<_, StoreError>((manifest, written))
        }));
        let (manifest, written) = match moved {
            Ok(planned) => planned?,
            Err(_) => return Err(self.refuse(StoreError::Damaged("its files do not fit together".to_owned()))),
        };
        written.map_err(|error| self.failed(error))?;
        opened.set_manifest(manifest);
        Ok(())
    }

    /// The open tables, if they are of this log and no write has failed.
    pub(super) fn writable(&self) -> Result<Arc<Opened>, StoreError> {
        if let Some(why) = &self.refused {
            return Err(StoreError::Refused(why.clone()));
        }
        if self.store.has_failed_sync() {
            return Err(StoreError::Refused("a write to its database could not be made durable".into()));
        }
        let opened = self.store.opened()?;
        if self.unsettled.get() {
            self.settle(&opened)?;
        }
        match opened.manifest() {
            Some(manifest) if manifest.log != self.log => Err(StoreError::Foreign),
            _ => Ok(opened),
        }
    }

    /// Reads again what is there, as a start does.
    fn settle(&self, opened: &Opened) -> Result<(), StoreError> {
        // After some failures the database writes nothing until it is opened again, which the job of the prices does.
        opened.spaces.check_writable()?;
        if let Some(manifest) = Manifest::known(&opened.spaces)? {
            opened.set_manifest(manifest);
        }
        self.unsettled.set(false);
        Ok(())
    }

    /// A write has failed. Without room a later one may succeed; after other errors nothing more is written.
    pub(super) fn failed(&mut self, error: StoreError) -> StoreError {
        if error.is_full() {
            self.store.note_full();
        }
        let may_succeed = error.is_full() || matches!(error, StoreError::Closed) && self.store.was_full();
        if may_succeed && !self.store.has_failed_sync() {
            self.unsettled.set(true);
            return error;
        }
        self.refuse(error)
    }

    pub(super) fn refuse(&mut self, error: StoreError) -> StoreError {
        self.refused = Some(error.to_string().into());
        error
    }

    /// What is to be written. Changes nothing.
    fn plan(&self, opened: &Opened, source: &Source<'_>) -> Result<(Manifest, Plan), StoreError> {
        let manifest = opened.manifest().map_or_else(|| Manifest::new(self.log), |manifest| Manifest::clone(&manifest));
        let Upto { lsn, crc } = source.upto;
        if lsn < manifest.newest_lsn() {
            return Err(StoreError::Ahead { upto: manifest.newest_lsn(), end: lsn });
        }
        if lsn == manifest.upto && crc.zip(manifest.crc).is_some_and(|(crc, known)| crc != known) {
            return Err(StoreError::Foreign);
        }
        let plan = source.plan(opened, manifest.kept_from)?;
        Ok((manifest, plan))
    }

    fn write_planned(
        &mut self,
        opened: &Opened,
        source: &Source<'_>,
        manifest: &mut Manifest,
        plan: Plan,
    ) -> Result<(), StoreError> {
        let spaces = &opened.spaces;
        let Plan { there, additions } = plan;
        let written = additions.each_ref().map(|addition| addition.probe.is_some());
        if !written.contains(&true) && manifest.upto == source.upto.lsn {
            return Ok(());
        }
        manifest.moving = Some(Moving { upto: source.upto, additions });
        if written.contains(&true) {
            spaces.make_all()?;
            self.passed("made")?;
            spaces.put_about(&manifest.write())?;
            self.sync(spaces, "noting")?;
            self.passed("noted")?;
        }
        let spaces_written = || Space::ALL.into_iter().zip(&there).zip(written).filter(|(_, written)| *written);
        for ((space, there), _) in spaces_written() {
            spaces.ingest(space, |write| {
                source.each(space, |_, row| if there.contains(row.key) { Ok(()) } else { write(row.key, row.value) })
            })?;
            self.passed(space.name())?;
        }
        self.sync(spaces, "syncing")?;
        self.passed("synced")?;
        for ((space, there), _) in spaces_written() {
            let mut rows = Rereading::of(spaces, space);
            source.each(space, |user, row| {
                // A merge removes rows of days that were cut.
                if there.contains(row.key) || !manifest.keeps(space, row.day) || rows.has(user, &row)? {
                    return Ok(());
                }
                Err(StoreError::Damaged(format!("{} lacks a row that was just written", space.name())))
            })?;
        }
        self.passed("read back")?;
        manifest.end()?;
        spaces.put_about(&manifest.write())?;
        self.sync(spaces, "ending")?;
        self.passed("ended")
    }

    /// Makes everything durable that was written. After a failure nothing is written any more.
    pub(super) fn sync(&mut self, spaces: &Spaces, step: &str) -> Result<(), StoreError> {
        let synced = self.passed(step).and_then(|()| spaces.sync());
        synced.inspect_err(|error| match error {
            // Nothing was synced, because the disk was full before.
            StoreError::Closed if self.store.was_full() => {}
            _ => self.store.note_failed_sync(),
        })
    }

    /// A step is over.
    #[cfg(test)]
    fn passed(&mut self, step: &str) -> Result<(), StoreError> {
        self.watch.as_mut().map_or(Ok(()), |watch| watch(step))
    }

    #[cfg(not(test))]
    fn passed(&mut self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Reads rows again that were just written, by ascending keys.
struct Rereading<'a> {
    spaces: &'a Spaces,
    space: Space,
    scan: Option<Scan>,
}

/// The rows of one user from some key on.
struct Scan {
    user: UserId,
    rows: Box<dyn Iterator<Item = Result<(Value, Value), StoreError>>>,
}

impl Rereading<'_> {
    fn of(spaces: &Spaces, space: Space) -> Rereading<'_> {
        Rereading { spaces, space, scan: None }
    }

    /// Whether the row is there as it was written.
    fn has(&mut self, user: UserId, row: &Encoded<'_>) -> Result<bool, StoreError> {
        // Rows of a move that have numbers follow each other; those that begin with a hash or a market are far apart.
        if !matches!(self.space, Space::Orders | Space::Fills | Space::Positions) {
            return Ok(self.spaces.get(self.space, row.key)?.as_deref() == Some(row.value));
        }
        let mut passed = 0;
        loop {
            let scan = match &mut self.scan {
                Some(scan) if scan.user == user && passed <= PASSED_MAX => scan,
                scan => {
                    passed = 0;
                    let to = object_key(user, u64::MAX);
                    let keys = (Bound::Included(row.key), Bound::Included(&to[..]));
                    scan.insert(Scan { user, rows: Box::new(self.spaces.scan(self.space, keys)) })
                }
            };
            match scan.rows.next().transpose()? {
                Some((key, _)) if *key < *row.key => passed += 1,
                found => return Ok(found.is_some_and(|(key, value)| *key == *row.key && *value == *row.value)),
            }
        }
    }
}

impl<'a> Source<'a> {
    fn of(users: &'a Users, leaving: &'a [Leaving], upto: Upto) -> Result<Source<'a>, StoreError> {
        let row = |leaving: &'a Leaving| {
            let user = users.get(leaving.user);
            Ok((user.ok_or_else(|| StoreError::NotEnded(format!("user {}", leaving.user)))?, leaving))
        };
        let mut rows = leaving.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
        rows.sort_by_key(|(user, _)| user.id);
        assert!(rows.is_sorted_by(|(user, _), (next, _)| user.id < next.id), "a user leaves once in a move");
        Ok(Source { rows, upto, stop: Stop::new() })
    }

    /// The rows of a keyspace with their users, by ascending keys.
    fn each(
        &self,
        space: Space,
        mut each: impl FnMut(UserId, Encoded<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut each = |user, row: Encoded<'_>| match self.stop.is_set() {
            true => Err(StoreError::GivenUp),
            false => each(user, row),
        };
        self.rows
            .iter()
            .try_for_each(|(user, leaving)| encode(space, user, leaving, self.upto.lsn, |row| each(user.id, row)))
    }

    /// Compares the rows with those that are there. Most are newer than any of their user, and need no look-up.
    fn plan(&self, opened: &Opened, kept_from: UtcDay) -> Result<Plan, StoreError> {
        let spaces = &opened.spaces;
        let mut plan = Plan { there: Default::default(), additions: Default::default() };
        // Orders that are there, in any state: other rows that belong to them may be there, too.
        let mut known = AHashSet::new();
        for (at, space) in Space::ALL.into_iter().enumerate() {
            let has_objects = matches!(space, Space::Orders | Space::Positions);
            let (mut owner, mut newest) = (None, None);
            self.each(space, |user, row| {
                if has_objects && owner.replace(user) != Some(user) {
                    let (from, to) = (object_key(user, 0), object_key(user, u64::MAX));
                    let keys = (Bound::Included(&from[..]), Bound::Included(&to[..]));
                    newest = spaces.scan(space, keys).next_back().transpose()?.map(|(key, _)| key);
                }
                let may_be_there = match space {
                    Space::Orders | Space::Positions => newest.as_deref() >= Some(row.key),
                    // An earlier order may have had the hash.
                    Space::ByHash => true,
                    // The order of a row that is there may have been removed.
                    Space::Fills | Space::Requests | Space::ByMarket => known.contains(&row.of) || row.day < kept_from,
                };
                let found = if may_be_there { spaces.get(space, row.key)? } else { None };
                let hash = row_hash(row.key, row.value);
                let mut replaced = None;
                if let Some(found) = &found {
                    if space == Space::Orders {
                        known.insert(row.of);
                    }
                    let (mut there, mut own) = (&**found, row.value);
                    let day = take_head(&mut there)?.day;
                    if (day, there) == (take_head(&mut own)?.day, own) {
                        plan.there[at].insert(row.key.into());
                        return Ok(());
                    }
                    replaced = Some((row_hash(row.key, found), day));
                }
                plan.additions[at].add(row.key, hash, row.day, replaced);
                Ok(())
            })?;
        }
        Ok(plan)
    }
}
