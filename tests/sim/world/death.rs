//! The disk of a world, the kills of its server, and recovery: it must restore the model's state after some record that
//! is not before the promised one.

use super::{Died, Made, Verdict, World, words};
use crate::judge;
use crate::life::{Life, Recovered, recover};
use crate::planted::Plant;
use crate::store::{MovePoint, Rows};
use crate::workload::Death;
use engine::id::{MarketId, UserId};
use engine::shard::replay::{State, fold};
use engine::time::Timestamp;
use host::job::{Next, Work as _};
use host::thread::Stop;
use journal::commit::Durability;
use journal::recover::digest;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wal::Point;

impl World {
    pub(super) fn sync(&mut self) -> Verdict {
        match self.guarded(|world| world.life.syncer.turn())? {
            Some(Err(error)) if !self.disk_fails => Err(format!("a sync failed: {error}")),
            Some(Err(_)) => {
                // The process reports it to its clients, and ends.
                self.count.failed_syncs += 1;
                self.guarded(|world| world.life.commit())?;
                self.hear()?;
                self.sudden_death()
            }
            _ => Ok(()),
        }
    }

    pub(super) fn prepare(&mut self) -> Verdict {
        let before = self.segments();
        match self.guarded(|world| world.life.spares.turn())? {
            Some(Err(error)) if !self.disk_fails && !error.is_full() => {
                return Err(format!("the spares failed: {error}"));
            }
            _ => {}
        }
        if self.segments() < before && self.move_fuse.burns(&MovePoint::ALL, MovePoint::SegmentRecycled) {
            return self.sudden_death();
        }
        Ok(())
    }

    pub(super) fn keep(&mut self) -> Verdict {
        if self.scenario.plant == Some(Plant::SnapshotBehind) {
            return self.keep_behind();
        }
        let before = self.snapshots();
        let kept = self.guarded(|world| world.life.keeper.take_turn(&Stop::new()))?;
        if let Some(why) = self.ended.wrong() {
            return Err(why);
        }
        match kept {
            Some(Err(error)) if !self.disk_fails && !is_full(&error) => Err(format!("the keeper failed: {error}")),
            Some(Ok(Next::Over)) => Err("the keeper found a state that breaks an invariant".to_owned()),
            Some(_) => {
                self.count.snapshots += u64::from(self.snapshots() != before);
                if self.scenario.plant == Some(Plant::DropBeforeSnapshot)
                    && let Some(newest) = self.snapshots().last().filter(|newest| **newest == self.ended.upto())
                {
                    // As if it did not count yet when the rows were handed over.
                    self.storage.take(&format!("{newest:020}.snapshot"));
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn segments(&self) -> usize {
        self.storage.names().iter().filter(|name| name.ends_with(".wal")).count()
    }

    /// Leaves room for this many more bytes.
    pub(super) fn fill_disk(&mut self, bytes: u64) {
        let names = self.storage.names();
        let used: usize = names.iter().filter_map(|name| self.storage.contents(name)).map(|file| file.len()).sum();
        self.storage.set_capacity(Some(used as u64 + bytes));
    }

    /// LSNs of the existing snapshots.
    pub(super) fn snapshots(&self) -> Vec<u64> {
        let names = self.storage.names();
        names.iter().filter_map(|name| name.strip_suffix(".snapshot")?.parse().ok()).collect()
    }

    /// The planted keeper: its snapshot claims one record more than it has.
    fn keep_behind(&mut self) -> Verdict {
        let synced = self.life.marks.synced();
        let newest = wal::Lsn(self.snapshots().last().copied().unwrap_or(0));
        if synced.0 < newest.0 + 20 {
            return Ok(());
        }
        let made: Vec<&(u64, u64, Vec<u8>)> = self.archive.iter().filter(|(lsn, ..)| *lsn < synced.0).collect();
        let here = self.life.tape.iter().zip(self.base + 1..).filter(|(_, lsn)| *lsn < synced.0);
        let records = made.into_iter().map(|(_, owner, payload)| (*owner, payload.as_slice()));
        let version = self.setup.rules.formats.record();
        let state = replay(records.chain(here.map(|((owner, payload), _)| (*owner, payload.as_slice()))), version, 1)?;
        let mut scan = wal::Scan::open(&self.storage, newest).map_err(|error| error.to_string())?.until(synced);
        while scan.next().map_err(|error| error.to_string())?.is_some() {}
        let crc = scan.last_crc();
        let mut snapshots = wal::Snapshots::of(&self.storage).map_err(|error| error.to_string())?;
        let written =
            journal::checkpoint::write_snapshot(engine::format::Formats::Newest, &mut snapshots, &state, synced, crc);
        written.map(drop).map_err(|error| error.to_string())
    }

    pub(super) fn stop(&mut self, shards: usize) -> Verdict {
        let now = Timestamp(self.now);
        self.stopping = true;
        let stopped = self.guarded(|world| {
            world.life.commit();
            world.life.committer.stop(now);
            world.life.syncer.turn()
        })?;
        match stopped {
            None => Ok(()),
            Some(Err(error)) if !self.disk_fails => Err(format!("the last sync failed: {error}")),
            Some(_) => {
                self.guarded(|world| world.life.commit())?;
                self.hear()?;
                self.die(Death { power: false, shards, again_at: None })
            }
        }
    }

    /// Kills the process and recovers; the recovered state must be the model's at some record that is not before the
    /// promised one.
    pub(super) fn die(&mut self, death: Death) -> Verdict {
        let Death { power, again_at, .. } = death;
        let shards = self.scenario.shards.unwrap_or(death.shards);
        self.fuse.put_out();
        self.move_fuse.put_out();
        let marks = self.life.marks.clone();
        let (appended, synced, poisoned) = (marks.appended().0, marks.synced().0, marks.is_poisoned());
        let mut at_least = synced;
        if !poisoned && !power {
            at_least = appended;
        }
        if self.setup.durability == Durability::Power {
            at_least = at_least.max(self.told_lsn);
        }
        self.count.kills += u64::from(!power);
        self.count.crashes += u64::from(power);
        self.storage.fail_no_more();
        self.storage.set_capacity(None);
        self.disk_fails = false;
        if power {
            self.storage.crash()
        } else {
            self.storage.kill()
        }
        self.ended.die(power);
        if let Some(nth) = again_at {
            self.fuse.light(&Point::ALL, Point::Recovery, nth);
            let cut_short = catch_unwind(AssertUnwindSafe(|| recover(&self.storage, &self.setup, shards).is_ok()));
            self.fuse.put_out();
            match cut_short {
                Err(panic) if !panic.is::<Died>() => return Err(format!("recovery panicked: {}", words(&*panic))),
                _ if power => self.storage.crash(),
                _ => self.storage.kill(),
            }
        }
        let recovered = catch_unwind(AssertUnwindSafe(|| recover(&self.storage, &self.setup, shards)));
        let recovered = recovered.map_err(|panic| format!("recovery panicked: {}", words(&*panic)))?;
        let recovered = recovered.map_err(|error| format!("recovery refused: {error}"))?;
        let lsn = recovered.report.lsn.0;
        if lsn < at_least || lsn > appended {
            return Err(format!("{at_least} to {appended} records were promised, recovery found {lsn}"));
        }
        self.count.lost_records += appended - lsn;
        self.go_back_to(lsn);
        self.compare(&recovered.state)?;
        self.compare_digests(digest(&recovered.state))?;
        self.rebirth(recovered)
    }

    /// The model returns to its state after this record.
    fn go_back_to(&mut self, lsn: u64) {
        let kept = (lsn.saturating_sub(self.base) as usize).min(self.made.len());
        let (users, markets) = &mut self.durable;
        for (owner, made) in self.made.drain(..).take(kept) {
            match made {
                Made::User(user) => drop(users.insert(owner, *user)),
                Made::Markets(all) => *markets = all,
            }
        }
        let tape = std::mem::take(&mut self.life.tape);
        let numbered = tape.into_iter().zip(self.base + 1..);
        self.archive.extend(numbered.map(|((owner, payload), lsn)| (lsn, owner, payload)));
        self.archive.retain(|(at, ..)| *at <= lsn);
    }

    fn compare(&self, found: &State) -> Verdict {
        found.check_all()?;
        let upto = found.users.iter().map(|users| users.departed_upto()).max().unwrap_or(0);
        if upto > self.ended.upto() {
            return Err(format!("rows up to {upto} have left, the store has them up to {}", self.ended.upto()));
        }
        let (users, markets) = &self.durable;
        judge::markets(markets, &found.markets).map_err(|why| format!("after recovery: {why}"))?;
        let count: usize = found.users.iter().map(|users| users.len()).sum();
        if count != users.len() {
            return Err(format!("after recovery: {} users are right, found {count}", users.len()));
        }
        for (id, expected) in users {
            let found = found.user(UserId(*id)).ok_or_else(|| format!("after recovery: user {id} is missing"))?;
            let judge = |rows: &Rows<'_>| judge::user(expected, found, rows, self.now, false);
            let judged = self.ended.judged(UserId(*id), upto, judge);
            judged.map_err(|why| format!("after recovery: user {id}: {why}"))?;
        }
        Ok(())
    }

    /// A replay from nothing gives the same state, with any number of shards.
    fn compare_digests(&self, found: [u8; 32]) -> Verdict {
        for shards in 1..=3 {
            let records = self.archive.iter().map(|(_, owner, payload)| (*owner, payload.as_slice()));
            let version = self.setup.rules.formats.record();
            if digest(&replay(records, version, shards)?) != found {
                return Err(format!("a replay from nothing in {shards} shards has another digest"));
            }
        }
        Ok(())
    }

    fn rebirth(&mut self, recovered: Recovered) -> Verdict {
        let life = Life::start(&self.storage, &self.setup, recovered, self.now);
        self.life = life.map_err(|error| format!("the start failed: {error}"))?;
        self.base = self.life.marks.appended().0;
        if self.full {
            self.fill_disk(0);
        }
        self.count.unknown += self.asked.values().filter(|asked| asked.expected.is_some()).count() as u64;
        self.asked.clear();
        self.flushing = None;
        self.stopping = false;
        self.pending.clear();
        self.settling.clear();
        let (users, markets) = self.durable.clone();
        self.decided = markets.clone();
        self.model.restart(users, markets);
        self.settle_in();
        let unsettled: Vec<MarketId> = self.life.markets.unsettled().collect();
        unsettled.into_iter().for_each(|market| self.settle(market));
        self.bring_books_anew();
        self.advance();
        self.flush()
    }
}

fn replay<'a>(records: impl Iterator<Item = (u64, &'a [u8])>, version: u16, shards: usize) -> Result<State, String> {
    let mut state = State::new(shards);
    for (owner, payload) in records {
        fold(&mut state, UserId(owner), version, payload).map_err(|error| error.to_string())?;
    }
    Ok(state)
}

fn is_full(error: &journal::recover::RecoverError) -> bool {
    matches!(error, journal::recover::RecoverError::Log(error) if error.is_full())
}
