//! The feed with a real core and a real log; the test sets the clock.

mod doubted;
mod printed;
mod quiet;
mod replayed;
mod watched;

use super::*;
use crate::Polled;
use crate::replay::{Replay, Speed};
use crate::synthetic::Synthetic;
use crate::testing::listing;
use engine::amount::{Cash, Price, Qty, TickSize};
use engine::book::{BookSide, Books};
use engine::command::{
    Answer, Command, CreateUser, IssueKey, Placement, PlacementTerms, Query, RequestedPrice, Secret, Size, Sweeps,
    Wallets,
};
use engine::directory::Directory;
use engine::fact;
use engine::id::{KeyId, MARKETS, Outcome, UserId};
use engine::market::mutation::MarketMutation;
use engine::market::terms::{FeeSchedule, Listing, MarketState, Resolution};
use engine::mutation::codec;
use engine::order::{EntryRoute, OrderType, Side, TimeInForce};
use engine::rules::Rules;
use engine::shard::{Outbox, Shard};
use engine::time::HOUR;
use engine::user::Tier;
use host::leap::Leap;
use journal::commit::{CommitFigures, CommitItem, CommitLane, Committer, Durability, LogSize};
use journal::core::Core;
use journal::recover::{Recovery, recover};
use parking_lot::Mutex;
use smallvec::smallvec;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::JoinHandle;
use wal::Options;

const NOW: Timestamp = Timestamp(1_790_000_123 * SECOND);
const SIZE: LogSize = LogSize { segment_bytes: 1 << 20, spares_count: 2, writers_count: 2 };
const OWNER: UserId = UserId(1);
/// The tape of a [`Script`], and one that only fills the log.
const TAPE: [u8; 32] = [7; 32];
const FILLER: [u8; 32] = [8; 32];

/// A venue that hands out the updates of the test, one per frame, and the age of each frame in microseconds.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<Vec<FeedUpdate>>>, Arc<AtomicU64>);

impl Script {
    fn send(&self, updates: impl IntoIterator<Item = FeedUpdate>) {
        self.0.lock().extend(updates);
    }

    /// Frames from now on have waited this long before the feed takes them.
    fn wait(&self, micros: u64) {
        self.1.store(micros, Ordering::Relaxed);
    }
}

impl Venue for Script {
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        let venue_now = server_now.min(until);
        let received = Timestamp(venue_now.0 - self.1.load(Ordering::Relaxed));
        for update in self.0.lock().drain(..) {
            frame(Frame { connection: 0, received, is_answer: false, updates: &[update] });
        }
        Polled { venue_now, wake_at: None }
    }

    fn drives_clock(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "a script".into()
    }

    fn first_line(&self) -> Option<[u8; 32]> {
        Some(TAPE)
    }
}

/// The listing of market `number`, and updates of it and of its first token.
fn listed(number: u8) -> FeedUpdate {
    let listing = Listing { end: None, ..listing(number, [&token(number), &format!("{number}1")]) };
    FeedUpdate::Listed { listing: Box::new(listing), state: MarketState::Active }
}

fn token(number: u8) -> String {
    format!("{number}0")
}

fn condition(number: u8) -> String {
    listing(number, ["", ""]).condition
}

fn snapshot(number: u8, bid: u16, ask: u16) -> FeedUpdate {
    let level = |price| vec![(Price(price), Qty(1_000_000))];
    FeedUpdate::BookSnapshot {
        token: token(number).into(),
        bids: level(bid),
        asks: level(ask),
        venue_ts: NOW,
        hash: None,
    }
}

fn bid(number: u8, price: u16) -> FeedUpdate {
    let levels = smallvec![(BookSide::Bid, Price(price), Qty(1_000_000))];
    FeedUpdate::BookDelta { token: token(number).into(), levels, venue_ts: NOW }
}

/// A feed whose updates no stream listens to.
struct NoListeners;

impl Links for NoListeners {
    type Log = CommitLane;
    type Books = ();
    type Prices = ();
}

fn lane_of(
    commits: &CommitLane,
    inboxes: Vec<Arc<Ring<Envelope<Reply>>>>,
    prints: Vec<Arc<PrintLane>>,
) -> FeedLane<CommitLane> {
    let ring = commits.ring().clone();
    let payload_bytes_max = commits.payload_bytes_max();
    FeedLane { commits: commits.clone(), payload_bytes_max, wake_log: Arc::new(move || ring.wake()), inboxes, prints }
}

/// One run of a server without sockets.
struct Life {
    feed: Feed<NoListeners>,
    clock: Clock,
    catalog: Arc<Catalog>,
    books: Arc<Books>,
    lane: FeedLane<CommitLane>,
    /// Whether spare segments are prepared: the disk has room.
    prepares: Arc<AtomicBool>,
    stop: Stop,
    core: Option<JoinHandle<()>>,
}

impl Life {
    /// Recovers the directory at `now` and starts log and core, but not the feed.
    fn start(directory: &Path, venue: impl Venue + 'static, now: Timestamp) -> Life {
        Life::staked(directory, venue, now, &[])
    }

    /// The same with stakes of users in these markets.
    fn staked(directory: &Path, venue: impl Venue + 'static, now: Timestamp, stakes: &[MarketId]) -> Life {
        Life::with_leap(directory, venue, now, stakes, |_| Leap::none())
    }

    /// The same with a judgement of the clock, made from the time of the newest record.
    fn with_leap(
        directory: &Path,
        venue: impl Venue + 'static,
        now: Timestamp,
        stakes: &[MarketId],
        leap: impl FnOnce(Option<Timestamp>) -> Leap,
    ) -> Life {
        let options = Options {
            segment_bytes: SIZE.segment_bytes,
            spares_count: SIZE.spares_count,
            reserve_bytes: 0,
            ..Options::default()
        };
        let Recovery { dir, log, mut state, .. } = recover(&directory.join("data"), options, 1).expect("a sound log");
        let leap = Arc::new(leap(Some(Timestamp(log.last_time)).filter(|newest| newest.0 > 0)));
        let running = dir.start(log, now.0, Box::new(|_| {})).expect("a writable directory");
        let (books, catalog, stop) = (Arc::new(Books::new()), Arc::new(Catalog::new()), Stop::new());
        let clock = Clock::fake(now);
        let users = state.users.pop().expect("a state of one shard");
        let rules = Arc::new(Rules::default());
        let shard = Shard::new(0, 1, users, rules, books.clone(), catalog.clone(), Arc::new(Directory::new()));
        let prints = shard.print_lane();
        let figures = Arc::new(CommitFigures::<()>::default());
        let committer = Committer::new(running.log, Durability::Process, codec::VERSION, SIZE, figures.clone());
        let commits = CommitLane::new(SIZE, figures);
        let inbox = Arc::new(Ring::new(64));
        let mut core = Core::new(shard, committer, inbox.clone(), commits.ring().clone());
        let mut preparer = running.preparer;
        let prepares = Arc::new(AtomicBool::new(true));
        let core = std::thread::spawn({
            let (stop, clock, prepares) = (stop.clone(), clock.clone(), prepares.clone());
            move || {
                while !stop.is_set() {
                    if prepares.load(Ordering::Relaxed) {
                        preparer.turn().expect("room on the disk");
                    }
                    if !core.turn(clock.now()) {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                }
            }
        });
        let lane = || lane_of(&commits, vec![inbox.clone()], vec![prints.clone()]);
        let feed = Feed::new(FeedParts::<NoListeners> {
            venue: Box::new(venue),
            markets: state.markets,
            catalog: catalog.clone(),
            writer: books.writer().expect("the first one"),
            lane: lane(),
            clock: clock.clone(),
            stop: stop.clone(),
            figures: Arc::default(),
            recorder: (),
            listener: (),
            spot: crate::spot::made(1),
            leap,
            moments: None,
            follows_fees: true,
            match_interval_us: 2 * SECOND,
            pace: Pace::default(),
            stakes: stakes.to_vec(),
        });
        Life { feed, clock, catalog, books, lane: lane(), prepares, stop, core: Some(core) }
    }

    fn call(&self, command: Command) -> Answer {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply = Reply::Thread(sender);
        let envelope = Envelope { owner: OWNER, command, received_at: self.clock.now(), reply };
        assert!(self.lane.inboxes[0].push(envelope).is_ok(), "the inbox has room");
        receiver.recv().expect("the core lives")
    }

    /// One turn, this many seconds later.
    fn turn_after(&mut self, seconds: u64) {
        self.clock.set(self.clock.now().plus(seconds * SECOND));
        self.feed.turn().expect("it runs");
    }

    /// Stops preparing spares and fills the log until only this much room is left.
    fn fill_log(&mut self, until: Room) {
        self.prepares.store(false, Ordering::Relaxed);
        let mut number = self.feed.desk.markets.tape_reached(&FILLER).unwrap_or_default();
        let settled = || {
            // The core may be preparing a spare or appending a record.
            std::thread::sleep(Duration::from_millis(5));
            self.lane.commits.ring().is_empty().then(|| self.lane.commits.room())
        };
        while settled() != Some(until) {
            let mut payload = Vec::new();
            for _ in 0..1_000 {
                number = number.plus(1);
                codec::encode(
                    codec::VERSION,
                    &[MarketMutation::TapeReached(fact::TapeReached { tape: FILLER, reached: number })],
                    &mut payload,
                );
            }
            self.lane.commits.clone().record(MARKETS, self.clock.now(), &payload);
        }
    }

    /// Prepares spares again and waits for ample room.
    fn empty_disk(&mut self) {
        self.prepares.store(true, Ordering::Relaxed);
        while self.lane.commits.room() != Room::Ample {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The best prices of a token, if it is listed and has a book.
    fn best(&self, token: &str) -> Option<[Option<u16>; 2]> {
        let top = self.books.best(self.catalog.by_token(token)?).ok()?;
        Some([BookSide::Bid, BookSide::Ask].map(|side| top.price(side).map(|price| price.0)))
    }

    fn mark(&self) -> Option<Timestamp> {
        self.feed.desk.markets.tape_reached(&TAPE)
    }

    /// Open positions of the user, and the cash of all wallets.
    fn account(&self) -> (usize, Cash) {
        let Answer::Account(account) = self.call(Command::Query(Query::Account { wallets: Wallets::All })) else {
            panic!("not an account");
        };
        (account.positions.len(), account.wallets.iter().map(|wallet| wallet.cash).sum())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.stop.set();
        let ended = self.core.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()), "the core panicked");
    }
}

fn create_user() -> Command {
    let api_balance = Some(Cash(1_000_000_000));
    Command::CreateUser(CreateUser { sub: None, email: None, grant: Some(Tier::Free), api_balance })
}

/// A market order for ten dollars.
fn buy(market: MarketId, outcome: Outcome) -> Command {
    Command::Place(Box::new(Placement::new(
        KeyId(1),
        Tier::Free,
        EntryRoute::Native,
        Ok(PlacementTerms {
            wallet: None,
            instrument: Some(market.instrument(outcome)),
            side: Side::Buy,
            order_type: OrderType::Market,
            time_in_force: TimeInForce::Fak,
            size: Size::Amount(Cash(10_000_000)),
            price: RequestedPrice::At(Price(9_900)),
            expiration: None,
            post_only: false,
        }),
    )))
}

/// What a market states about its fees is a fact after its listing, if fills are charged by it; a start has it again.
#[test]
fn stated_fees_are_facts_of_their_market() {
    let sports = FeeSchedule { rate: 30_000, exponent: 1, taker_only: true, rebate_rate: 250_000 };
    let dearer = FeeSchedule { rate: 50_000, rebate_rate: 150_000, ..sports };
    let stated = |schedule| FeedUpdate::Fees { condition: condition(1), schedule };
    let shown = |life: &Life| life.catalog.market(MarketId(0)).expect("listed").fee_schedule();
    let mut cases = 0;
    for follows in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        let script = Script::default();
        script.send([stated(Some(sports)), listed(1), stated(Some(sports)), snapshot(1, 4_000, 5_000)]);
        let mut life = Life::start(directory.path(), script.clone(), NOW);
        life.feed.desk.follows_fees = follows;
        life.feed.begin().expect("it runs");
        for (news, expected) in [
            (vec![], Some(sports)),
            (vec![stated(Some(dearer)), stated(Some(dearer))], Some(dearer)),
            (vec![stated(Some(sports)), stated(None)], None),
            (vec![stated(Some(dearer))], Some(dearer)),
        ] {
            script.send(news);
            life.turn_after(2);
            assert_eq!(shown(&life), expected.filter(|_| follows));
            cases += 1;
        }
        drop(life);
        let life = Life::start(directory.path(), Script::default(), NOW.plus(60 * SECOND));
        let has_fees = life.feed.desk.markets.has_fee_schedules();
        assert_eq!((shown(&life), has_fees), (Some(dearer).filter(|_| follows), follows));
        cases += 1;
    }
    println!("fees as facts: {cases} cases");
}

#[test]
fn a_market_that_ended_in_a_long_pause_is_resolved_and_paid_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut life = Life::start(directory.path(), Synthetic::new(6, NOW, Default::default()), NOW);
    life.feed.begin().expect("it runs");
    life.call(create_user());
    // It ends within the hour, and the pause is longer than the period that a first poll lists by itself.
    let soon =
        |market: &&engine::market::Market| market.listing.updown.is_some() && market.end < Some(NOW.plus(HOUR / 2));
    let active = |market: &&engine::market::Market| market.state == MarketState::Active;
    let markets = &life.feed.desk.markets;
    let ending: Vec<MarketId> = markets
        .unresolved()
        .filter(soon)
        .filter(active)
        .filter_map(|market| markets.by_condition(&market.listing.condition))
        .collect();
    let held = ending.iter().copied().find(|market| {
        [Outcome::First, Outcome::Second]
            .map(|outcome| life.call(buy(*market, outcome)))
            .iter()
            .all(|answer| matches!(answer, Answer::Order(_)))
    });
    let held = held.expect("both outcomes of some market can be bought");
    let (positions, before) = life.account();
    drop(life);

    let later = NOW.plus(2 * HOUR + HOUR / 2);
    let mut life = Life::start(directory.path(), Synthetic::new(6, later, Default::default()), later);
    assert!(life.catalog.market(held).expect("known").resolution().is_none());
    assert_eq!(life.account(), (positions, before), "the feed has not begun");
    life.feed.begin().expect("it runs");
    for market in &ending {
        let known = life.feed.desk.markets.market(*market).expect("known");
        assert!(known.resolution.is_some() && known.settled_at.is_some(), "{}", known.listing.slug);
        assert!(life.catalog.market(*market).expect("known").resolution().is_some());
    }
    let (positions, after) = life.account();
    assert!(positions == 0 && after > before, "{positions} open; {before:?} became {after:?}");
    println!("{} markets ended in the pause", ending.len());
}

#[test]
fn a_full_disk_stops_new_markets_and_cycles_but_no_book() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = Script::default();
    script.send([listed(1), snapshot(1, 4_000, 5_000)]);
    let mut life = Life::start(directory.path(), script.clone(), NOW);
    life.feed.begin().expect("it runs");
    life.turn_after(2);
    assert_eq!(life.best("10"), Some([Some(4_000), Some(5_000)]));
    let marked = life.mark();
    assert_eq!(marked, Some(NOW.plus(2 * SECOND)));

    // Only the reserve is left: a change of the listed market is journaled, the new market waits with its book.
    life.fill_log(Room::ReserveOnly);
    let tick = FeedUpdate::TickChanged { condition: condition(1), tick: TickSize(10) };
    script.send([listed(2), snapshot(2, 2_000, 3_000), bid(2, 2_500), tick, bid(1, 4_100)]);
    life.turn_after(2);
    assert_eq!(life.best("10"), Some([Some(4_100), Some(5_000)]));
    assert_eq!(life.catalog.market(MarketId(0)).map(|market| market.tick()), Some(TickSize(10)));
    assert_eq!((life.catalog.by_token("20"), life.feed.desk.held.len()), (None, 1));

    // No room at all: books are updated, nothing is journaled, no cycle is started.
    life.fill_log(Room::None);
    let cycled_at = life.feed.desk.figures.last_cycle_at.load(Ordering::Relaxed);
    let resolution = Resolution::Winner(Outcome::First);
    let resolved = |number| FeedUpdate::Resolved { condition: condition(number), resolution, venue_ts: NOW };
    script.send([bid(2, 2_600), resolved(1), bid(1, 4_200)]);
    life.turn_after(2);
    life.turn_after(2);
    assert_eq!(life.best("10"), Some([Some(4_200), Some(5_000)]));
    assert!(life.catalog.market(MarketId(0)).expect("listed").resolution().is_none());
    assert_eq!(life.feed.desk.figures.last_cycle_at.load(Ordering::Relaxed), cycled_at);
    assert_eq!(life.mark(), marked, "no position is journaled while the disk is full");

    // A cycle that had begun ends when there is room.
    let venue_now = life.clock.now();
    let broadcast =
        life.feed.desk.broadcast(|| Command::Cycle { venue_now, sweeps: Sweeps::All }).expect("the core lives");
    life.feed.desk.cycling = Some(Cycling { venue_now, begun: venue_now, broadcast });
    script.send([bid(1, 4_300)]);
    life.turn_after(0);
    assert!(life.feed.desk.cycling.is_some());
    assert_eq!(life.best("10"), Some([Some(4_300), Some(5_000)]));

    life.empty_disk();
    life.turn_after(1);
    assert!(life.feed.desk.cycling.is_none() && life.feed.desk.pending.is_empty() && life.feed.desk.held.is_empty());
    assert_eq!(life.feed.matched_to, venue_now);
    assert_eq!(life.mark(), Some(venue_now));
    assert_eq!(life.best("20"), Some([Some(2_600), Some(3_000)]));
    let market = life.feed.desk.markets.market(MarketId(0)).expect("listed");
    assert!(market.settled_at.is_some() && life.catalog.market(MarketId(0)).expect("listed").resolution().is_some());
    drop(life);
    let life = Life::start(directory.path(), Script::default(), NOW.plus(60 * SECOND));
    assert_eq!((life.feed.desk.markets.len(), life.mark()), (2, Some(venue_now)));
    println!("rooms of the log: 4 cases");
}

#[test]
fn a_tape_is_marked_no_further_than_it_was_matched() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut life = Life::start(directory.path(), Script::default(), NOW);
    life.feed.begin().expect("it runs");
    let mut cases = 0;
    // Cycles are due every two seconds, marks every second.
    for (at, marked) in [(1, None), (2, Some(2)), (3, Some(2)), (4, Some(4)), (5, Some(4)), (9, Some(6)), (10, Some(8))]
    {
        life.clock.set(NOW.plus(at * SECOND));
        life.feed.turn().expect("it runs");
        assert_eq!(life.mark(), marked.map(|at| NOW.plus(at * SECOND)), "after {at} s");
        cases += 1;
    }
    println!("marks of a tape: {cases} cases");
}

#[test]
fn no_tape_line_makes_a_record_too_long() {
    let directory = tempfile::tempdir().expect("a directory");
    let row = |number: u64, id: &str, description: &str| {
        format!(
            r#"{{"id":"{id}","conditionId":"0x{number:064x}","slug":"m-{number}","question":"Q?","description":"{description}",
            "outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"{number}1\",\"{number}2\"]","active":true}}"#
        )
        .replace('\n', "")
    };
    let mut rows: Vec<String> = (1..=300).map(|number| row(number, "1", &"é".repeat(4_000))).collect();
    rows.push(row(301, "1", &"é".repeat(2 << 20)));
    rows.push(row(302, &"9".repeat(2 << 20), "short"));
    let body = rows.join(",");
    let line = format!(r#"{{"r":1788249540000,"v":"polymarket","u":"https://host/markets","s":200,"b":[{body}]}}"#);
    let tape = directory.path().join("tape.ndjson");
    std::fs::write(&tape, line + "\n").expect("a writable directory");
    for start in 0..2 {
        let venue = Replay::open(&tape, Speed::Max, false, &Default::default()).expect("a tape");
        let skips = venue.upstream().skips.expect("it counts");
        let mut life = Life::start(directory.path(), venue, NOW);
        assert_eq!(life.feed.desk.markets.len(), 301 * start);
        life.feed.begin().expect("it runs");
        assert_eq!((life.feed.desk.markets.len(), life.feed.desk.pending.is_empty()), (301, true));
        assert_eq!(skips.nonzero().collect::<Vec<_>>(), [("text_too_long", 2)]);
    }
    println!("starts on a hostile tape: 2 cases");
}

/// Nothing is sent to a log that reports no room.
#[test]
fn nothing_goes_to_a_log_without_room() {
    let figures = Arc::new(CommitFigures::<()>::default());
    // No room has been reported yet.
    let commits = CommitLane::new(SIZE, figures);
    assert_eq!(commits.room(), Room::None);
    let (clock, stop) = (Clock::wall(), Stop::new());
    stop.set();
    let books = Arc::new(Books::new());
    let mut feed = Feed::new(FeedParts::<NoListeners> {
        venue: Box::new(Synthetic::new(1, clock.now(), Default::default())),
        markets: Markets::new(),
        catalog: Arc::new(Catalog::new()),
        writer: books.writer().expect("the first one"),
        lane: lane_of(&commits, Vec::new(), Vec::new()),
        clock,
        stop,
        figures: Arc::new(FeedFigures::default()),
        recorder: (),
        listener: (),
        spot: crate::spot::made(1),
        leap: Arc::new(Leap::none()),
        moments: None,
        follows_fees: true,
        match_interval_us: SECOND,
        pace: Pace::default(),
        stakes: Vec::new(),
    });
    assert!(feed.begin().is_err(), "it waits for room until the process stops");
    let sent = std::iter::from_fn(|| commits.ring().pop());
    let records = sent.filter(|item| matches!(item, CommitItem::Record { .. })).count();
    assert_eq!(records, 0);
    println!("a feed without room: 1 case");
}
