//! A world: one server on a faulty disk, its clients, its venue, its clock and its model, on one thread. Everything is
//! drawn from one seed; after each step the model has checked the result.

mod count;
mod death;
mod fuse;
mod hear;
mod reads;
mod turn;

use crate::life::{Life, Setup, recover};
use crate::model::wallets::Hours;
use crate::model::{Expected, Market, Model, User};
use crate::planted::Plant;
use crate::store::{Ended, MovePoint};
use crate::workload::{Death, Disk, Step};
pub use count::Count;
use engine::command::{Answer, Command, Envelope, Placement, Sweeps};
use engine::format::Formats;
use engine::id::{MARKETS, MarketId, UserId};
use engine::market::mutation::MarketMutation;
use engine::print::Print;
use engine::rules::Rules;
use engine::shard::{Room, shard_of};
use engine::time::Timestamp;
use fuse::Fuse;
use journal::commit::Durability;
use journal::commit::Reply;
use reads::{Line, Queued, Read};
use sha2::{Digest, Sha256};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use tests::chance::Chance;
use wal::fault::Faults;
use wal::{Options, Point, Points};

/// 2026-10-02T09:15:00Z.
const BEGINNING: u64 = 1_790_932_500_000_000;
const HOUR: u64 = 3_600_000_000;
/// Time between two resets of an API wallet: short, so that it passes.
const RESET_COOLDOWN: u64 = HOUR;
/// How long client order ids count: short, so that they end.
pub const CLIENT_IDS: u64 = 2 * HOUR;
/// Accepted orders of a free user and day: few, so that the cap is reached.
const FREE_DAILY_ORDERS: u32 = 8;
/// Changes of markets in one record; listings are long, and segments small.
const NEWS_PER_RECORD_MAX: usize = 3;
const EIO: i32 = 5;

/// Variant of a run of a seed.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub seed: u64,
    /// This number of shards in every life; else as the steps say.
    pub shards: Option<usize>,
    /// Only processes are killed; nothing else is lost.
    pub calm: bool,
    /// Segments so small that snapshots are made.
    pub small: bool,
    /// Ended rows leave memory.
    pub moves: bool,
    pub plant: Option<Plant>,
}

/// A world after all its steps.
pub struct Outcome {
    pub count: Count,
    /// Of the final state.
    pub state: [u8; 32],
    /// Digest of all answers.
    pub story: [u8; 32],
}

/// The process was killed at a point: distinguishes this unwinding from a panic.
struct Died;

/// A command on its way to a shard, or an answer on its way back.
struct InFlight {
    owner: UserId,
    command: Command,
    received_at: u64,
    why: Why,
    receiver: Receiver<Answer>,
    /// The answer, if it came before the model had the command.
    early: Option<Answer>,
    /// The model's answer, once a shard has taken it, with the last record that it depends on.
    expected: Option<(Expected, u64)>,
}

/// The client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Client,
    Cycle,
    Print,
    Settle(MarketId),
}

/// The state after a record, by the model.
enum Made {
    User(Box<User>),
    Markets(Vec<Market>),
}

pub(crate) struct World {
    scenario: Scenario,
    setup: Setup,
    pub(crate) storage: Faults,
    /// The history store.
    ended: Ended,
    pub(crate) model: Model,
    pub(crate) life: Life,
    pub(crate) now: u64,
    shard_now: Vec<u64>,
    /// By shard: progress of the points.
    hours: Vec<Hours>,
    /// By number, until they are answered.
    asked: BTreeMap<u64, InFlight>,
    /// Commands that wait for their shard.
    inboxes: Vec<VecDeque<Queued>>,
    /// By shard: writes that wait for a look-up.
    lines: Vec<Line>,
    /// What waits for rows that have left memory.
    reads: Vec<Read>,
    /// The store does not fail any more.
    heals: bool,
    /// Cycles and settlements that a full disk delays, by shard.
    held_up: Vec<(VecDeque<u64>, VecDeque<u64>)>,
    /// Trades that wait for their shard, and their waiters.
    prints: Vec<(Vec<Print>, Vec<u64>)>,
    pub(crate) sent: Vec<(u64, Placement)>,
    /// Keys ever made.
    pub(crate) secrets: u64,
    /// Payments that were made.
    pub(crate) payments: u64,
    /// Time of the newest event of the payment provider.
    pub(crate) billed_at: u64,
    numbers: u64,
    /// LSN before the first record of this life.
    base: u64,
    made: Vec<(u64, Made)>,
    /// Users and markets as the log had them when this life began.
    durable: (BTreeMap<u64, User>, Vec<Market>),
    /// Every record of all lives that is in the log: LSN, owner, payload.
    archive: Vec<(u64, u64, Vec<u8>)>,
    /// Last record that was reported to a client.
    told_lsn: u64,
    /// Markets as the feed has decided them, and its changes that are not in the log yet: facts, and markets after
    /// them.
    pub(crate) decided: Vec<Market>,
    pub(crate) pending: Vec<(Vec<MarketMutation>, Vec<Market>)>,
    flushing: Option<(Receiver<Answer>, Vec<MarketMutation>, Vec<Market>)>,
    settling: Vec<MarketId>,
    disk_fails: bool,
    /// The disk has no room for more segments, across restarts too.
    full: bool,
    /// The last record was written.
    stopping: bool,
    /// How the process is killed when the fuse burns out.
    sudden: Option<Death>,
    /// Kills the process at a point of the log.
    fuse: Arc<Fuse>,
    /// The same for the points of a move.
    move_fuse: Arc<Fuse>,
    count: Count,
    story: Sha256,
}

/// The first error, if any.
type Verdict = Result<(), String>;

/// Runs the steps. On an error returns its step and its text.
pub fn run(scenario: Scenario, steps: &[Step]) -> Result<Outcome, (usize, String)> {
    let mut world = World::begin(scenario);
    for (at, step) in steps.iter().enumerate() {
        world.step(step).map_err(|why| (at, why))?;
    }
    world.end().map_err(|why| (steps.len(), why))
}

impl World {
    fn begin(scenario: Scenario) -> World {
        let mut chance = Chance::seeded(scenario.seed ^ 0x51);
        let mut rules = Rules {
            free_daily_orders: FREE_DAILY_ORDERS,
            api_reset_cooldown_us: RESET_COOLDOWN,
            client_ids_us: CLIENT_IDS,
            ..Rules::default()
        };
        if let Some(plant) = scenario.plant {
            plant.change(&mut rules);
        }
        // Some seeds are servers that write for an older build.
        if scenario.seed % 4 == 3 {
            rules.formats = Formats::Previous;
        }
        let writes_newest = rules.formats.is_newest();
        // Some are servers whose users need many prefixes. Which ones they get depends on the order of shards.
        if scenario.seed % 3 == 1 && !scenario.calm && scenario.plant.is_none() {
            rules.numbers_per_prefix = 24 + scenario.seed as u32 % 64;
        }
        let numbers_per_prefix = writes_newest.then_some(u64::from(rules.numbers_per_prefix));
        let storage = Faults::new(chance.draw());
        storage.set_writeback(chance.below(150) as u64);
        storage.drop_syncs(scenario.plant == Some(Plant::LyingDisk));
        let fuse = Arc::<Fuse>::default();
        let burning = fuse.clone();
        let points = Points::new(move |point| {
            if burning.burns(&Point::ALL, point) {
                resume_unwind(Box::new(Died));
            }
        });
        let move_fuse = Arc::<Fuse>::default();
        let burning = move_fuse.clone();
        let pass = move |point| {
            if burning.burns(&MovePoint::ALL, point) {
                resume_unwind(Box::new(Died));
            }
        };
        let ended = Ended::new(chance.draw(), scenario.plant, Arc::new(pass));
        let durability = if chance.percent(65) || scenario.plant == Some(Plant::EarlyAnswer) {
            Durability::Power
        } else {
            Durability::Process
        };
        let setup = Setup {
            rules: Arc::new(rules),
            durability: if scenario.calm { Durability::Process } else { durability },
            options: Options {
                // Large enough for a record of three shards and the feed. The room promised to each depends on their
                // number: a calm world has plenty.
                segment_bytes: (4_096 * chance.between(5, 8) as u64) << if scenario.small { 0 } else { 8 },
                spares_count: 2,
                reserve_bytes: 0,
                points,
            },
            checkpoint_every: 1 + chance.below(2),
            ended: scenario.moves.then(|| ended.clone()),
            plant: scenario.plant,
        };
        let shards = scenario.shards.unwrap_or(1 + chance.below(3));
        let recovered = recover(&storage, &setup, shards).expect("an empty directory");
        let life = Life::start(&storage, &setup, recovered, BEGINNING).expect("an empty directory");
        let mut world = World {
            scenario,
            setup,
            storage,
            ended,
            model: Model {
                numbers_per_prefix,
                ..Model::new(FREE_DAILY_ORDERS, RESET_COOLDOWN, CLIENT_IDS, writes_newest)
            },
            base: life.marks.appended().0,
            life,
            now: BEGINNING,
            shard_now: Vec::new(),
            hours: Vec::new(),
            asked: BTreeMap::new(),
            inboxes: Vec::new(),
            lines: Vec::new(),
            reads: Vec::new(),
            heals: scenario.calm,
            held_up: Vec::new(),
            prints: Vec::new(),
            sent: Vec::new(),
            secrets: 0,
            payments: 0,
            billed_at: 0,
            numbers: 0,
            made: Vec::new(),
            durable: (BTreeMap::new(), Vec::new()),
            archive: Vec::new(),
            told_lsn: 0,
            decided: Vec::new(),
            pending: Vec::new(),
            flushing: None,
            settling: Vec::new(),
            disk_fails: false,
            full: false,
            stopping: false,
            sudden: None,
            fuse,
            move_fuse,
            count: Count::default(),
            story: Sha256::new(),
        };
        world.settle_in();
        world
    }

    /// The first time of a life.
    fn settle_in(&mut self) {
        let count = self.life.shards.len();
        self.shard_now = vec![0; count];
        let unsure = (self.life.newest > 0).then_some(self.life.newest / HOUR);
        self.hours = vec![Hours { reached: unsure.unwrap_or(self.now / HOUR), unsure, ..Hours::default() }; count];
        self.inboxes = vec![VecDeque::new(); count];
        self.lines = (0..count).map(|_| Line::default()).collect();
        self.reads.clear();
        self.held_up = vec![Default::default(); count];
        self.prints = vec![Default::default(); count];
        for index in 0..count {
            self.life.turn(index, self.now, Room::Ample);
            self.shard_now[index] = self.now;
        }
        self.model.refresh_beats(|_| true, self.now);
    }

    fn step(&mut self, step: &Step) -> Verdict {
        self.count.steps += 1;
        match step {
            Step::Ask { user, action, late_us } => {
                if let Some(command) = self.command(*user, action) {
                    self.ask(UserId(*user), command, self.now - late_us, Why::Client);
                }
            }
            Step::Feed(feed) => self.feed(feed)?,
            Step::Cycle => {
                if self.asked.values().all(|asked| asked.why != Why::Cycle) {
                    let venue_now = Timestamp(self.now);
                    self.ask_all(|| Command::Cycle { venue_now, sweeps: Sweeps::All }, Why::Cycle);
                }
            }
            Step::Turn(shard) => self.turn(shard % self.life.shards.len(), self.now)?,
            Step::TurnAll => {
                // A kill in the middle may change their number.
                let mut shard = 0;
                while shard < self.life.shards.len() {
                    self.turn(shard, self.now)?;
                    shard += 1;
                }
            }
            Step::Back { shard, us } => self.turn(shard % self.life.shards.len(), self.now - us)?,
            Step::Commit => drop(self.guarded(|world| world.life.commit())?),
            Step::Sync => self.sync()?,
            Step::Prepare => self.prepare()?,
            Step::Keep => self.keep()?,
            Step::Read(nth) => self.read(*nth)?,
            Step::ReadAll => self.read_all()?,
            Step::Wait(us) => {
                self.now += us;
                self.advance();
                self.flush()?;
            }
            Step::Disk(disk) => match disk {
                Disk::Fail(call, after) => {
                    self.storage.fail(*call, *after, EIO);
                    self.disk_fails = true;
                }
                Disk::Full(bytes) => {
                    self.full = true;
                    self.fill_disk(*bytes);
                }
                Disk::Roomy => {
                    self.full = false;
                    self.storage.set_capacity(None);
                }
            },
            Step::Die(death) => self.die(*death)?,
            Step::DieAt { point, nth, death } => {
                self.sudden = Some(*death);
                self.fuse.light(&Point::ALL, *point, *nth);
            }
            Step::DieAtMove { point, nth, death } => {
                self.sudden = Some(*death);
                self.move_fuse.light(&MovePoint::ALL, *point, *nth);
            }
            Step::Stop { shards } => self.stop(*shards)?,
        }
        self.hear()
    }

    /// Runs a part of the server that may be killed inside.
    fn guarded<T>(&mut self, part: impl FnOnce(&mut World) -> T) -> Result<Option<T>, String> {
        match catch_unwind(AssertUnwindSafe(|| part(self))) {
            Ok(done) => Ok(Some(done)),
            Err(panic) if panic.is::<Died>() => {
                self.sudden_death()?;
                Ok(None)
            }
            Err(panic) => Err(format!("the server panicked: {}", words(&*panic))),
        }
    }

    fn sudden_death(&mut self) -> Verdict {
        self.count.sudden += 1;
        if let Some(at) = self.move_fuse.burned() {
            *self.count.move_kills.entry(format!("{:?}", MovePoint::ALL[at])).or_default() += 1;
        }
        let usual = Death { power: self.count.sudden.is_multiple_of(2), shards: 2, again_at: None };
        let death = self.sudden.take().unwrap_or(usual);
        self.die(death)
    }

    fn ask_all(&mut self, command: impl Fn() -> Command, why: Why) {
        for shard in 0..self.life.shards.len() {
            self.push(shard, MARKETS, command(), self.now, why);
        }
    }

    fn ask(&mut self, owner: UserId, mut command: Command, received_at: u64, why: Why) {
        if self.scenario.plant == Some(Plant::SkippedIdempotency)
            && let Command::Place(placement) = &mut command
        {
            // The model gets the id.
            let request = placement.request.take();
            let number = self.push(shard_of(owner, self.life.shards.len()), owner, command, received_at, why);
            if let Some(InFlight { command: Command::Place(placement), .. }) =
                number.and_then(|at| self.asked.get_mut(&at))
            {
                placement.request = request;
            }
            return;
        }
        self.push(shard_of(owner, self.life.shards.len()), owner, command, received_at, why);
    }

    fn push(&mut self, shard: usize, owner: UserId, command: Command, received_at: u64, why: Why) -> Option<u64> {
        let (sender, receiver) = sync_channel(1);
        let reply = Reply::Thread(sender);
        let envelope = Envelope { owner, command: command.clone(), received_at: Timestamp(received_at), reply };
        self.life.inboxes[shard].push(envelope).ok()?;
        self.numbers += 1;
        self.inboxes[shard].push_back(Queued::Asked(self.numbers));
        let asked = InFlight { owner, command, received_at, why, receiver, early: None, expected: None };
        self.asked.insert(self.numbers, asked);
        Some(self.numbers)
    }

    pub(crate) fn beginning(&self) -> u64 {
        BEGINNING
    }

    /// Everything is finished, and a last recovery restores it.
    fn end(mut self) -> Result<Outcome, String> {
        self.storage.fail_no_more();
        self.storage.set_capacity(None);
        self.fuse.put_out();
        self.move_fuse.put_out();
        (self.disk_fails, self.full, self.heals) = (false, false, true);
        for _ in 0..8 {
            self.step(&Step::Prepare)?;
            self.step(&Step::Keep)?;
            self.step(&Step::TurnAll)?;
            self.step(&Step::Commit)?;
            self.step(&Step::Sync)?;
            self.step(&Step::Commit)?;
            self.step(&Step::ReadAll)?;
            self.flush()?;
        }
        let is_poisoned = self.life.marks.is_poisoned();
        if !is_poisoned && let Some(asked) = self.asked.values().find(|asked| asked.expected.is_some()) {
            return Err(format!("never answered: {:?}", asked.command));
        }
        let marks = &self.life.marks;
        let is_whole = !is_poisoned && marks.synced() == marks.appended();
        let is_whole = is_whole && self.pending.is_empty() && self.flushing.is_none();
        let before = self.digest();
        self.die(Death { power: true, shards: 1, again_at: None })?;
        self.count.sum(&self.durable.0);
        let state = self.digest();
        if is_whole && state != before {
            return Err("the recovered state has another digest than the one in memory".to_owned());
        }
        self.count.digests += u64::from(is_whole);
        (self.count.moved, self.count.failed_moves) = self.ended.counts();
        Ok(Outcome { count: self.count, state, story: self.story.finalize().into() })
    }
}

impl World {
    /// Of the state in memory.
    fn digest(&self) -> [u8; 32] {
        let shards: Vec<_> = self.life.shards.iter().map(|shard| shard.users()).collect();
        engine::shard::digest::digest(&self.life.markets, &shards)
    }
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
