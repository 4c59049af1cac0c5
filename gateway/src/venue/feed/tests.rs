//! The feed on a real core with a real log, its clock in the test's hand.

use super::*;
use crate::commit::{CommitFigures, CommitItem, Committer};
use crate::config::Durability;
use crate::core::Core;
use crate::recover::{Recovery, recover};
use crate::venue::synthetic::Synthetic;
use engine::amount::{Cash, Price};
use engine::book::Books;
use engine::command::{AskedPrice, CreateUser, Placement, PlacementTerms, Query, Size, Wallets};
use engine::directory::Directory;
use engine::id::{KeyId, Outcome, UserId};
use engine::market::terms::MarketState;
use engine::order::{EntryRoute, OrderType, Side, TimeInForce};
use engine::rules::Rules;
use engine::shard::Shard;
use engine::time::HOUR;
use engine::user::Tier;
use std::path::Path;
use std::thread::JoinHandle;
use wal::Options;

const NOW: Timestamp = Timestamp(1_790_000_123 * SECOND);
/// Bytes of a segment and number of spares.
const SIZE: (u64, u32) = (1 << 20, 2);
const OWNER: UserId = UserId(1);

/// One run of a server without sockets.
struct Life {
    feed: Feed,
    clock: Clock,
    catalog: Arc<Catalog>,
    lane: FeedLane,
    stop: Stop,
    core: Option<JoinHandle<()>>,
}

impl Life {
    /// Recovers the directory at `now` and starts log and core; the feed has not begun.
    fn start(directory: &Path, venue: impl Venue + 'static, now: Timestamp) -> Life {
        let options = Options { segment_bytes: SIZE.0, spares_count: SIZE.1, reserve_bytes: 0, ..Options::default() };
        let Recovery { dir, log, mut state, .. } = recover(&directory.join("data"), options, 1).expect("a sound log");
        let running = dir.start(log, now.0, Box::new(|_| {})).expect("a writable directory");
        let (books, catalog, stop) = (Arc::new(Books::new()), Arc::new(Catalog::new()), Stop::new());
        let clock = Clock::fake(now);
        let users = state.users.pop().expect("a state of one shard");
        let rules = Arc::new(Rules::default());
        let shard = Shard::new(0, 1, users, rules, books.clone(), catalog.clone(), Arc::new(Directory::new()));
        let figures = Arc::new(CommitFigures::default());
        let committer = Committer::new(running.log, Durability::Process, codec::VERSION, SIZE, figures.clone());
        let commits = CommitLane::new(SIZE, figures);
        let inbox = Arc::new(Ring::new(64));
        let mut core = Core::new(shard, committer, inbox.clone(), commits.ring().clone());
        let mut preparer = running.preparer;
        let core = std::thread::spawn({
            let (stop, clock) = (stop.clone(), clock.clone());
            move || {
                while !stop.is_set() {
                    preparer.turn().expect("room on the disk");
                    if !core.turn(clock.now()) {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                }
            }
        });
        let lane = || FeedLane { commits: commits.clone(), inboxes: vec![inbox.clone()] };
        let feed = Feed::new(FeedParts {
            venue: Box::new(venue),
            markets: state.markets,
            catalog: catalog.clone(),
            writer: books.writer().expect("the first one"),
            lane: lane(),
            clock: clock.clone(),
            stop: stop.clone(),
            figures: Arc::default(),
            match_interval_us: 2 * SECOND,
        });
        Life { feed, clock, catalog, lane: lane(), stop, core: Some(core) }
    }

    fn ask(&self, command: Command) -> Answer {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply = Reply::Thread(sender);
        let envelope = Envelope { owner: OWNER, command, received_at: self.clock.now(), reply };
        assert!(self.lane.inboxes[0].push(envelope).is_ok(), "the inbox has room");
        receiver.recv().expect("the core lives")
    }

    /// Open positions of the user, and the cash of all wallets.
    fn account(&self) -> (usize, Cash) {
        let Answer::Account(account) = self.ask(Command::Query(Query::Account { wallets: Wallets::All })) else {
            panic!("an account was asked for");
        };
        (account.positions.len(), account.wallets.iter().map(|wallet| wallet.cash).sum())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.stop.set();
        let ended = self.core.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()), "the core ended in order");
    }
}

fn create_user() -> Command {
    let api_balance = Some(Cash(1_000_000_000));
    Command::CreateUser(CreateUser { sub: None, email: None, grant: Some(Tier::Free), api_balance })
}

/// Ten dollars at once, at any price.
fn buy(market: MarketId, outcome: Outcome) -> Command {
    Command::Place(Box::new(Placement {
        key: KeyId(1),
        tier: Tier::Free,
        route: EntryRoute::Native,
        request: None,
        terms: Ok(PlacementTerms {
            wallet: None,
            instrument: Some(market.instrument(outcome)),
            side: Side::Buy,
            order_type: OrderType::Market,
            time_in_force: TimeInForce::Fak,
            size: Size::Amount(Cash(10_000_000)),
            price: AskedPrice::At(Price(9_900)),
            expiration: None,
            post_only: false,
        }),
    }))
}

#[test]
fn a_market_that_ended_in_a_long_pause_is_resolved_and_paid_at_the_start() {
    let place = tempfile::tempdir().expect("a directory");
    let mut life = Life::start(place.path(), Synthetic::new(6, NOW), NOW);
    life.feed.begin().expect("it runs");
    life.ask(create_user());
    // It ends within the hour, and the pause is longer than what a first poll lists by itself.
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
            .map(|outcome| life.ask(buy(*market, outcome)))
            .iter()
            .all(|answer| matches!(answer, Answer::Order(_)))
    });
    let held = held.expect("both outcomes of some market can be bought");
    let (positions, before) = life.account();
    drop(life);

    let later = NOW.plus(2 * HOUR + HOUR / 2);
    let mut life = Life::start(place.path(), Synthetic::new(6, later), later);
    assert!(life.catalog.market(held).expect("known").resolution().is_none());
    assert_eq!(life.account(), (positions, before), "the start has not begun");
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

/// A log that says it has no room gets nothing, however much the venue has to tell.
#[test]
fn nothing_goes_to_a_log_without_room() {
    let figures = Arc::new(CommitFigures::default());
    // Nobody has published any room yet.
    let commits = CommitLane::new(SIZE, figures);
    assert_eq!(commits.room(), Room::None);
    let (clock, stop) = (Clock::wall(), Stop::new());
    stop.set();
    let books = Arc::new(Books::new());
    let mut feed = Feed::new(FeedParts {
        venue: Box::new(Synthetic::new(1, clock.now())),
        markets: Markets::new(),
        catalog: Arc::new(Catalog::new()),
        writer: books.writer().expect("the first one"),
        lane: FeedLane { commits: commits.clone(), inboxes: Vec::new() },
        clock,
        stop,
        figures: Arc::new(FeedFigures::default()),
        match_interval_us: SECOND,
    });
    assert!(feed.begin().is_err(), "it waits for room until the process stops");
    let sent = std::iter::from_fn(|| commits.ring().pop());
    let records = sent.filter(|item| matches!(item, CommitItem::Record { .. })).count();
    assert_eq!(records, 0);
    println!("a feed without room: 1 case");
}
