//! One life of the server, from recovery to death, on one thread: the engine's shards, the gateway's committer, lanes,
//! spares and keeper, the log's syncer, all on the faulty storage. The world schedules them.

use crate::planted::Plant;
use crate::store::Ended;
use crate::workload::USERS;
use engine::book::{BookWriter, Books, publish_all};
use engine::command::{Answer, Envelope};
use engine::directory::Directory;
use engine::id::{MARKETS, UserId};
use engine::market::Markets;
use engine::market::catalog::Catalog;
use engine::market::mutation::MarketMutation;
use engine::mutation::codec;
use engine::notice::Notice;
use engine::ring::Ring;
use engine::rules::Rules;
use engine::shard::replay::State;
use engine::shard::{Outbox, Room, Shard};
use engine::time::Timestamp;
use journal::checkpoint::Keeper;
use journal::commit::Durability;
use journal::commit::{CommitFigures, CommitLane, Committer, LogSize, Reply};
use journal::recover::{RecoverError, Recovery, Report, recover_from};
use journal::spares::{Covered, Spares};
use std::sync::Arc;
use wal::fault::Faults;
use wal::{Marks, Options, Running, Syncer};

/// Most queued commands of one shard.
const INBOX_SLOTS: usize = 1_024;
/// Records that may wait for the committer before it must take them: segments are small here.
const WAITING_RECORDS_MAX: usize = 4;

/// The configuration of a server; the same in all its lives.
#[derive(Clone)]
pub struct Setup {
    pub rules: Arc<Rules>,
    pub durability: Durability,
    pub options: Options,
    /// Sealed segments between two checkpoints.
    pub checkpoint_every: usize,
    /// Where ended rows go; `None`: they stay.
    pub ended: Option<Ended>,
    pub plant: Option<Plant>,
}

/// A running server.
pub struct Life {
    pub shards: Vec<Shard<Reply>>,
    pub inboxes: Vec<Arc<Ring<Envelope<Reply>>>>,
    pub committer: Committer<Faults>,
    pub syncer: Syncer<Faults>,
    pub spares: Spares<Faults>,
    pub keeper: Keeper<Faults>,
    pub marks: Marks,
    pub catalog: Arc<Catalog>,
    pub writer: BookWriter,
    /// The feed's.
    pub markets: Markets,
    /// The newest time in the log at the start of this life.
    pub newest: u64,
    lane: CommitLane,
    plant: Option<Plant>,
    /// Records written in this life, in order: owner and payload.
    pub tape: Vec<(u64, Vec<u8>)>,
}

/// The result of recovery, before the server runs.
pub struct Recovered {
    pub report: Report,
    pub state: State,
    dir: wal::Dir<Faults>,
    log: wal::Recovered<Faults>,
}

/// Reads the directory.
pub fn recover(storage: &Faults, setup: &Setup, shards: usize) -> Result<Recovered, RecoverError> {
    let Recovery { dir, log, state, report } = recover_from(storage.clone(), setup.options.clone(), shards)?;
    Ok(Recovered { report, state, dir, log })
}

impl Life {
    /// Starts the server on the recovered state; its last record is the end of the log.
    pub fn start(storage: &Faults, setup: &Setup, recovered: Recovered, now: u64) -> Result<Life, RecoverError> {
        let Recovered { state, dir, log, .. } = recovered;
        let newest = log.last_time;
        let Running { log, syncer, preparer, snapshots, marks, .. } = dir.start(log, now, Box::new(|_| {}))?;
        let (books, catalog, directory) =
            (Arc::new(Books::new()), Arc::new(Catalog::new()), Arc::new(Directory::new()));
        // The clients choose the ids of users.
        (0..=USERS).for_each(|_| _ = directory.reserve_anonymous());
        state.users.iter().flat_map(|users| users.iter()).for_each(|user| directory.add_user(user));
        let mut writer = books.writer().expect("the first one");
        // The books are a recording's, so that fills have its time.
        writer.recording(Timestamp(now / 2));
        publish_all(&state.markets, &catalog, &mut writer);
        let count = state.users.len();
        let inboxes: Vec<_> = (0..count).map(|_| Arc::new(Ring::new(INBOX_SLOTS))).collect();
        let filters = setup.ended.as_ref().and_then(Ended::filters);
        let shard = |(index, users)| {
            let (rules, books) = (setup.rules.clone(), books.clone());
            let mut shard = Shard::new(index, count, users, rules, books, catalog.clone(), directory.clone());
            shard.resume(Timestamp(newest));
            filters.iter().for_each(|filters| shard.filter_with(filters.clone()));
            shard
        };
        let figures = Arc::new(CommitFigures::default());
        let size = LogSize::of(setup.options.segment_bytes, setup.options.spares_count, count);
        let covered = Covered::default();
        let formats = setup.rules.formats;
        let keeper = Keeper::new(storage.clone(), snapshots, marks.clone(), setup.checkpoint_every, covered.clone())
            .writing(formats)
            .forgetting(setup.rules.client_ids_us);
        let keeper = match &setup.ended {
            Some(ended) => keeper.moving(ended.mover(&inboxes)),
            None => keeper,
        };
        Ok(Life {
            shards: state.users.into_iter().enumerate().map(shard).collect(),
            inboxes,
            committer: Committer::new(log, setup.durability, formats.record(), size, figures.clone()),
            syncer,
            spares: Spares::new(preparer, covered),
            keeper,
            marks,
            writer,
            markets: state.markets,
            lane: CommitLane::new(size, figures).writing(formats.record()),
            plant: setup.plant,
            tape: Vec::new(),
            newest,
            catalog,
        })
    }

    /// Shard and committer share a thread (gateway/docs/decisions.md §14).
    fn inline(&self) -> bool {
        self.shards.len() == 1
    }

    /// Free space of the log, as writers see it.
    pub fn room(&self) -> Room {
        if self.inline() { self.committer.room() } else { self.lane.room() }
    }

    /// One shard takes its turn.
    pub fn turn(&mut self, index: usize, now: u64, room: Room) {
        let (now, inbox) = (Timestamp(now), &self.inboxes[index]);
        if self.inline() {
            let mut tap = Tap { inner: &mut self.committer, room, plant: self.plant, tape: &mut self.tape };
            self.shards[index].turn(inbox, now, &mut tap);
        } else {
            let mut tap = Tap { inner: &mut self.lane.clone(), room, plant: self.plant, tape: &mut self.tape };
            self.shards[index].turn(inbox, now, &mut tap);
        }
    }

    /// Whether the committer must take waiting records before others are added.
    pub fn is_behind(&self) -> bool {
        self.lane.ring().len() > WAITING_RECORDS_MAX
    }

    /// The committer takes waiting records and releases answers.
    pub fn commit(&mut self) {
        self.committer.turn(self.lane.ring());
    }

    /// The feed writes facts to the log; `reply` receives their release.
    pub fn record_markets(&mut self, facts: &[MarketMutation], now: u64, reply: Reply) {
        let mut payload = Vec::new();
        codec::encode(self.lane.version(), facts, &mut payload);
        let room = self.room();
        let mut tap = Tap { inner: &mut self.lane.clone(), room, plant: self.plant, tape: &mut self.tape };
        tap.record(MARKETS, Timestamp(now), &payload);
        tap.answer(reply, Answer::Done);
        if self.inline() {
            // One order of records, for all writers.
            self.commit();
        }
    }
}

/// Inspects the output of a shard, and makes the planted mistakes.
struct Tap<'a, O> {
    inner: &'a mut O,
    /// The free space when the turn began: a turn needs less than the reserve.
    room: Room,
    plant: Option<Plant>,
    tape: &'a mut Vec<(u64, Vec<u8>)>,
}

impl<O: Outbox<Reply>> Outbox<Reply> for Tap<'_, O> {
    fn room(&self) -> Room {
        self.room
    }

    fn version(&self) -> u16 {
        self.inner.version()
    }

    fn record(&mut self, owner: UserId, now: Timestamp, payload: &[u8]) {
        let tampered = self.plant.and_then(|plant| plant.tamper(self.inner.version(), owner, payload));
        self.tape.push((owner.0, tampered.as_deref().unwrap_or(payload).to_vec()));
        if self.plant == Some(Plant::SwallowedRecord) && self.tape.len().is_multiple_of(16) {
            return;
        }
        let (_, payload) = self.tape.last().expect("pushed just now");
        self.inner.record(owner, now, payload);
    }

    fn notice(&mut self, notice: Notice) {
        self.inner.notice(notice);
    }

    fn answer(&mut self, reply: Reply, answer: Answer) {
        match (self.plant, reply) {
            (Some(Plant::EarlyAnswer), Reply::Thread(sender)) => drop(sender.try_send(answer)),
            (_, reply) => self.inner.answer(reply, answer),
        }
    }

    fn answer_at_once(&mut self, reply: Reply, answer: Answer) {
        self.inner.answer_at_once(reply, answer);
    }
}
