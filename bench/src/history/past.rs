//! Worlds with a past: orders that have ended and left memory for a history store. They are made in process by the parts
//! of a server: its shard, its log, its checkpoint keeper, its mover, and its store.

use crate::chance::Chance;
use crate::journal::Journal;
use crate::world::{Out, Terms, World};
use edge::engine_client::Reply;
use engine::amount::Price;
use engine::book::Books;
use engine::command::{Command, Envelope, IdSource, RequestIdentity};
use engine::departed::Leaving;
use engine::id::{MarketId, OrderId, Outcome, UserId};
use engine::look_up::filters::{Filters, Kind, May};
use engine::mutation::codec;
use engine::order::Side;
use engine::ring::Ring;
use engine::shard::bound::EndedBound;
use engine::time::Timestamp;
use engine::user::{User, Users};
use gateway::config::Config;
use gateway::metrics::history::EndedFigures;
use gateway::moving::{self, Needed};
use history::filters::OpenFilters;
use history::{EndedReader, Fills, History};
use host::clock::Clock;
use host::job::Work as _;
use host::leap::Leap;
use host::thread::Stop;
use journal::checkpoint::Keeper;
use journal::mover::{EndedStore, Mover, Window};
use journal::spares::Covered;
use std::cell::RefCell;
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wal::{Files, Lsn, Snapshots};

/// Orders between two checkpoints.
const ORDERS_PER_MOVE: usize = 1 << 16;
/// A user buys this many times in a market, then sells as often; the books are shown again before its orders reach
/// another level.
const RUN: usize = 16;
const ORDERS_PER_SHOWING: usize = 8;
/// Orders between two showings of the books.
const CHUNK: usize = 4_096;
const SHARES: u64 = 5;
/// Orders that are remembered by their ids.
const SAMPLES_MAX: usize = 20_000;
/// A store that has too many files to merge takes more rows later.
const MOVES_WITHIN: Duration = Duration::from_secs(600);
const MOVES_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Writes a record to the log.
pub type Record = Box<dyn FnMut(UserId, Timestamp, &[u8])>;

/// Where rows go that leave memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    History,
    /// They are gone: for measuring memory without a store.
    Nowhere,
}

/// A world, its log, and the store of what has ended in it.
pub struct Past {
    pub world: World,
    pub out: Out<Record>,
    pub journal: Rc<RefCell<Journal>>,
    keeper: Keeper,
    covered: Covered,
    /// What the mover hands to the shard.
    inbox: Arc<Ring<Envelope<Reply>>>,
    /// `None`: rows that leave memory are gone.
    history: Option<(History, EndedReader)>,
    chance: Chance,
    /// Orders that have ended.
    made: usize,
    /// Some of them, with their users.
    pub samples: Vec<(UserId, OrderId)>,
}

impl Past {
    /// A new data directory with the world that `make` creates.
    pub fn create(data: &Path, segment_bytes: u64, store: Store, make: impl FnOnce(&mut Record) -> World) -> Past {
        let journal = Rc::new(RefCell::new(Journal::create(data, segment_bytes)));
        let log = journal.clone();
        let mut record: Record = Box::new(move |owner, now, payload| {
            log.borrow_mut().append(codec::VERSION, owner.0, now.0, payload);
        });
        let mut world = make(&mut record);
        let storage = Files::open_existing(data).expect("the log was just made");
        let inbox = Arc::new(Ring::new(8));
        let clock = Clock::fake(world.now);
        let history = (store == Store::History).then(|| {
            let folder = Some(data.join("history"));
            let (mut history, ..) = History::open(folder, 8 << 20, Arc::new(Books::new()), Fills::default());
            // The first turn opens the store.
            history.take_turn(&Stop::new()).expect("a history does not fail");
            history
        });
        let mut reader = None;
        let mover = match &history {
            None => {
                // There is nothing to look up.
                world.filter_with(Arc::new(Nowhere));
                Mover::new(Box::new(Nowhere), WINDOW, drop_into(inbox.clone()))
            }
            Some(history) => {
                let origin = wal::origin(&storage).expect("it can be read").expect("a log has an origin");
                let needed = Needed { log: u128::from_be_bytes(origin.directory), upto: 0, end: 0 };
                let flags = [("data.dir".to_owned(), data.display().to_string())];
                let mut config = Config::load(None, flags).expect("a directory is enough");
                config.history.window = WINDOW;
                let filters = OpenFilters::default();
                world.filter_with(Arc::new(filters.clone()));
                reader = Some(history.ended().reader(needed.log));
                let figures = EndedFigures {
                    bound: Arc::new(EndedBound::new(config.history.hot_bytes_max, 1)),
                    mover: Arc::default(),
                    reads: Arc::default(),
                    store: history.ended(),
                    filters,
                };
                moving::mover(
                    &config,
                    &figures,
                    needed,
                    std::slice::from_ref(&inbox),
                    &clock,
                    (Arc::default(), Arc::new(Leap::none()), &Stop::new()),
                )
            }
        };
        let snapshots = Snapshots::of_start(&storage).expect("the log was just made");
        let marks = journal.borrow().running.marks.clone();
        let covered = Covered::default();
        let keeper = Keeper::new(storage, snapshots, marks, 1, covered.clone()).moving(mover);
        Past {
            world,
            out: Out::new(record),
            journal,
            keeper,
            covered,
            inbox,
            history: history.zip(reader),
            chance: Chance::seeded(41),
            made: 0,
            samples: Vec::new(),
        }
    }

    /// Adds filled orders of these traders, each with a client order id and one fill; all of them leave memory.
    pub fn live(&mut self, count: usize, traders: Range<usize>) {
        let chunk = (ORDERS_PER_SHOWING * traders.len()).min(CHUNK);
        // Small ones move several times, too.
        let per_move = (count / 4).clamp(1, ORDERS_PER_MOVE);
        let every = (count / SAMPLES_MAX).max(1);
        self.out.orders = vec![OrderId(0)];
        let mut unmoved = 0;
        for first in (0..count).step_by(chunk) {
            let size = chunk.min(count - first);
            for market in 0..self.world.state().0.len() as u32 {
                self.world.show_books(MarketId(market));
            }
            for _ in 0..size {
                let trader = traders.start + self.made % traders.len();
                let envelope = self.filled(trader, self.made / traders.len());
                let owner = envelope.owner;
                self.world.take(envelope, &mut self.out);
                self.look_up();
                if self.made.is_multiple_of(every) {
                    self.samples.push((owner, self.out.orders[0]));
                }
                self.made += 1;
            }
            unmoved += size;
            if unmoved >= per_move {
                self.depart();
                unmoved = 0;
            }
        }
        self.depart();
        assert_eq!(self.out.refused, 0, "every order is filled: {:?}", self.out.refusal);
        assert_eq!(self.out.look_ups.len(), 0, "no order waits");
    }

    /// The next order of a trader, which had this many before.
    fn filled(&mut self, trader: usize, before: usize) -> Envelope<usize> {
        let is_buy = (before / RUN).is_multiple_of(2);
        let market = (before / (2 * RUN) + trader) % self.world.state().0.len();
        let mut digest = [0; 32];
        digest.chunks_mut(8).for_each(|part| part.copy_from_slice(&self.chance.next().to_le_bytes()));
        // A UUID, as bots send them.
        let (high, low) = (self.chance.next(), self.chance.next());
        let client_order_id = format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        );
        let command = self.world.order(Terms {
            trader,
            instrument: MarketId(market as u32).instrument(Outcome::First),
            side: if is_buy { Side::Buy } else { Side::Sell },
            price: Price(if is_buy { 6_000 } else { 4_000 }),
            shares: SHARES,
            request: Some(RequestIdentity { client_order_id, digest, source: IdSource::Body }),
        });
        Envelope { owner: self.world.traders[trader].user, command, received_at: self.world.now, reply: 0 }
    }

    /// Runs commands that were handed back. Returns their count.
    fn look_up(&mut self) -> usize {
        match &self.history {
            Some((_, reader)) => look_up(reader, &mut self.world, &mut self.out),
            None => 0,
        }
    }

    /// Reads the rows that have left memory; `None` if they are gone.
    pub fn reader(&self) -> Option<EndedReader> {
        self.history.as_ref().map(|(_, reader)| reader.clone())
    }

    /// Makes a checkpoint with which everything that has ended leaves memory.
    pub fn depart(&mut self) {
        let begun = Instant::now();
        loop {
            let upto = {
                let mut journal = self.journal.borrow_mut();
                journal.tend();
                journal.running.marks.synced()
            };
            self.keeper.checkpoint(Lsn::ZERO, upto).expect("room for a snapshot");
            while let Some(envelope) = self.inbox.pop() {
                let Command::Depart(departures) = envelope.command else { panic!("a mover hands over rows only") };
                self.world.depart(departures, &mut self.out);
            }
            let recycled = self.journal.borrow_mut().running.preparer.recycle(self.covered.get());
            recycled.expect("segments that were covered can be used again");
            let (_, users) = self.world.state();
            let open: usize = users.iter().map(User::open_orders_count).sum();
            if users.orders_count() == open {
                return;
            }
            assert!(begun.elapsed() < MOVES_WITHIN, "what has ended leaves memory");
            std::thread::sleep(MOVES_AGAIN_AFTER);
        }
    }

    /// Ends the log and closes the store, as a clean stop does. Returns the sampled orders.
    pub fn close(self) -> Vec<(UserId, OrderId)> {
        let Past { out, journal, keeper, history, samples, .. } = self;
        drop((out, keeper));
        if let Some((history, _)) = history {
            history.end();
        }
        Rc::into_inner(journal).expect("nothing writes to the log any more").into_inner().end();
        samples
    }
}

/// Reads what commands need of the store, as the readers of a server do, and runs them. Returns their count.
pub fn look_up(reader: &EndedReader, world: &mut World, out: &mut Out<Record>) -> usize {
    let mut count = 0;
    while !out.look_ups.is_empty() {
        for (step, look_up) in std::mem::take(&mut out.look_ups) {
            count += 1;
            let rows = reader.of(look_up.owner(), look_up.upto());
            let Envelope { owner, command, received_at, .. } = look_up.found(&rows).expect("the store is whole");
            world.take(Envelope { owner, command, received_at, reply: step }, out);
        }
        world.go_on(out);
    }
    count
}

/// Nothing that has ended stays in memory after a checkpoint.
const WINDOW: Window = Window { hot_us: 0, rows_max: 0, orders_max: usize::MAX };

/// Hands rows to the queue of the one shard.
fn drop_into(inbox: Arc<Ring<Envelope<Reply>>>) -> journal::mover::DropRows {
    Box::new(move |departures| {
        let command = Command::Depart(departures.clone());
        let (owner, received_at) = (engine::id::MARKETS, Timestamp(0));
        inbox.push(Envelope { owner, command, received_at, reply: Reply::Discard }).is_ok()
    })
}

/// Keeps nothing.
#[derive(Debug)]
struct Nowhere;

impl Filters for Nowhere {
    fn may_have(&self, _: UserId, _: Kind, _: u64, _: Timestamp) -> May {
        May::No
    }
}

impl EndedStore for Nowhere {
    fn write(&mut self, _: &Users, _: &[Leaving], _: Lsn, _: u32) -> Result<(), Box<dyn Error>> {
        Ok(())
    }
}
