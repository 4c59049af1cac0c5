//! The world of a scenario: one venue, one shard, and all its records.

use super::Count;
use super::store::Store;
use super::words::{cash, level, number, price, span, tier, token};
use crate::amount::{Cash, Price, Qty, TickSize};
use crate::book::{BookSide, BookWriter, Books, LastTrade, Stated};
use crate::command::{Answer, Command, CreateUser, Envelope};
use crate::directory::Directory;
use crate::format::Formats;
use crate::id::{InstrumentId, KeyId, MarketId, OrderId, Outcome, UserId, object_number};
use crate::market::Markets;
use crate::market::catalog::Catalog;
use crate::market::terms::{MarketState, Resolution};
use crate::mutation::{Mutation, codec};
use crate::notice::{Notice, OrderFact};
use crate::order::Side;
use crate::print::{Event, Print};
use crate::ring::Ring;
use crate::rules::{NUMBERS_PER_PREFIX, Rules};
use crate::shard::digest;
use crate::shard::{Outbox, Room, Shard};
use crate::time::{SECOND, Timestamp};
use crate::user::{Tier, User, Users};
use std::cell::Cell;
use std::sync::Arc;

/// 2026-10-02T09:15:00Z.
pub const START: Timestamp = Timestamp(1_790_932_500 * SECOND);

/// Users with these ids are no prefixes.
const USERS_MAX: u64 = 100;

/// Runs every scenario of a text.
pub fn run(file: &str, text: &str) -> Count {
    run_with(file, text, NUMBERS_PER_PREFIX)
}

/// The same, where users are granted another prefix after this many object numbers.
pub fn run_with(file: &str, text: &str, numbers_per_prefix: u32) -> Count {
    let mut count = Count::default();
    for scenario in text.split("\n#").map(|part| part.trim_start_matches('#').trim()).filter(|part| !part.is_empty()) {
        count.scenarios += 1;
        let (name, body) = scenario.split_once('\n').unwrap_or((scenario, ""));
        let mut world = World::of(body);
        world.rules.numbers_per_prefix = numbers_per_prefix;
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
            let (action, expected) = match line.split_once("->") {
                Some((action, expected)) => (action.trim(), Some(expected.trim())),
                None => (line, None),
            };
            // Prefixes are granted beside what a command does.
            let got = world.act(action).replace(" NumbersExtended", "");
            if let Some(expected) = expected {
                count.expectations += 1;
                if got.trim() != expected {
                    count
                        .wrong
                        .push(format!("{file} # {name}\n    {action}\n    expected {expected}\n    got      {got}"));
                }
            } else if got.starts_with("error") {
                count.wrong.push(format!("{file} # {name}\n    {action}\n    {got}"));
            }
        }
        if let Err(broken) = world.check() {
            count.wrong.push(format!("{file} # {name}\n    {broken}"));
        }
    }
    count
}

/// The results of the shard.
pub struct Out {
    pub room: Room,
    /// After this many records there is no room at the first check, and room again at the next.
    gap_behind: Cell<Option<usize>>,
    pub records: Vec<(UserId, Vec<u8>)>,
    pub notices: Vec<Notice>,
    /// Reports that a user is owed alerts.
    pub owing: usize,
    pub answers: Vec<(u64, Answer)>,
}

impl Outbox<u64> for Out {
    fn room(&self) -> Room {
        if self.gap_behind.get().is_some_and(|records| self.records.len() >= records) {
            self.gap_behind.set(None);
            return Room::None;
        }
        self.room
    }
    fn record(&mut self, owner: UserId, _now: Timestamp, payload: &[u8]) {
        assert!(!payload.is_empty() && payload.len() < 1 << 20, "a record is small: {}", payload.len());
        self.records.push((owner, payload.to_vec()));
    }
    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
    fn owes(&mut self, _owner: UserId) {
        self.owing += 1;
    }
    fn answer(&mut self, reply: u64, answer: Answer) {
        self.answers.push((reply, answer));
    }
}

pub struct World {
    pub now: Timestamp,
    pub rules: Rules,
    pub markets: Markets,
    pub catalog: Arc<Catalog>,
    pub books: Arc<Books>,
    pub writer: BookWriter,
    pub(super) shard: Option<Shard<u64>>,
    pub inbox: Ring<Envelope<u64>>,
    pub out: Out,
    pub user: UserId,
    pub(super) tier: Tier,
    pub(super) orders: Vec<OrderId>,
    /// First record of the last action.
    last: usize,
    pub(super) next_reply: u64,
    /// A grant applied without the shard, to be replayed first.
    grant: Option<Tier>,
    balance: Option<Cash>,
    /// Time of the last record.
    pub(super) recorded_at: Timestamp,
    /// Rows that have left memory.
    pub(super) store: Option<Store>,
    /// Every answer, in a world that is compared with another.
    pub(super) answered: Option<Vec<String>>,
}

impl World {
    /// An empty world; market 0 is a weather market with tick 0.01 unless the text lists it otherwise.
    pub fn of(text: &str) -> World {
        let books = Arc::new(Books::new());
        let mut writer = books.writer().expect("the only one");
        writer.report_levels();
        let mut world = World {
            now: START,
            rules: Rules::default(),
            markets: Markets::new(),
            catalog: Arc::new(Catalog::new()),
            books,
            writer,
            shard: None,
            inbox: Ring::new(16),
            out: Out {
                room: Room::Ample,
                gap_behind: Cell::new(None),
                records: Vec::new(),
                notices: Vec::new(),
                owing: 0,
                answers: Vec::new(),
            },
            user: UserId(1),
            tier: Tier::Free,
            orders: Vec::new(),
            last: 0,
            next_reply: 1,
            grant: None,
            balance: None,
            recorded_at: START,
            store: None,
            answered: None,
        };
        if !text.lines().any(|line| line.starts_with("market 0 ")) {
            world.act("market 0 weather 0.01");
        }
        world
    }

    pub fn shard(&mut self) -> &mut Shard<u64> {
        if self.shard.is_none() {
            self.shard = Some(self.shard_of(Users::default()));
        }
        self.shard.as_mut().expect("made just now")
    }

    /// A shard of these users. Prefixes are above the ids of all users of a test.
    pub(super) fn shard_of(&self, users: Users) -> Shard<u64> {
        let directory = Directory::default();
        (0..USERS_MAX).for_each(|_| _ = directory.reserve_anonymous());
        users.iter().for_each(|user| directory.add_user(user));
        let (rules, directory) = (Arc::new(self.rules.clone()), Arc::new(directory));
        Shard::new(0, 1, users, rules, self.books.clone(), self.catalog.clone(), directory)
    }

    /// The parts for a test that steps the shard by hand.
    pub fn parts(&mut self) -> (&mut Shard<u64>, &Ring<Envelope<u64>>, &mut Out) {
        self.shard();
        (self.shard.as_mut().expect("made just now"), &self.inbox, &mut self.out)
    }

    pub fn users(&self) -> &Users {
        self.shard.as_ref().expect("there is a shard").users()
    }

    pub(super) fn make_user(&mut self) {
        let user = self.user;
        if self.shard().users().get(user).is_none() {
            let request = CreateUser { sub: None, email: None, grant: self.grant, api_balance: self.balance };
            let room = std::mem::replace(&mut self.out.room, Room::Ample);
            self.ask(Command::CreateUser(request), 0);
            self.out.room = room;
            self.last = self.out.records.len();
        }
    }

    /// Hands the shard what has happened at watched levels since.
    pub fn hand_news(&mut self) {
        self.shard();
        let lane = self.shard.as_ref().expect("made just now").print_lane();
        for news in self.writer.take_news() {
            assert!(lane.push(Event::Level(news)), "the lane has room");
        }
    }

    /// Sends a command and runs the shard until it is answered.
    pub fn ask(&mut self, command: Command, waited: u64) -> Answer {
        self.hand_news();
        let (owner, now, reply) = (self.user, self.now, self.next_reply);
        self.next_reply += 1;
        self.shard();
        let mut envelope = Envelope { owner, command, received_at: Timestamp(now.0 - waited), reply };
        let before = self.out.records.len();
        loop {
            let shard = self.shard.as_mut().expect("made just now");
            shard.take(envelope, now, &mut self.out);
            let Some((to, Answer::LookUp(look_up))) =
                self.out.answers.pop_if(|(to, answer)| *to == reply && matches!(answer, Answer::LookUp(_)))
            else {
                break;
            };
            let found = self.store.as_mut().expect("rows have left memory").look_up(*look_up);
            self.leave_meanwhile();
            let Envelope { owner, command, received_at, reply: () } = found;
            envelope = Envelope { owner, command, received_at, reply: to };
        }
        let shard = self.shard.as_mut().expect("made just now");
        if self.out.records.len() > before {
            self.recorded_at = now;
        }
        let mut turns = 0;
        while self.out.answers.last().is_none_or(|(to, _)| *to != reply) {
            shard.turn(&self.inbox, now, &mut self.out);
            turns += 1;
            assert!(turns < 100_000, "there is an answer");
        }
        // A driver of turns continues while there is more.
        while shard.has_work() && shard.turn(&self.inbox, now, &mut self.out) {}
        let answer = self.out.answers.pop().expect("it was there").1;
        if let Some(answers) = &mut self.answered {
            answers.push(format!("{answer:?}"));
        }
        answer
    }

    /// A trade at the venue, handed to the shard but not processed yet.
    pub fn hand_print(&mut self, instrument: InstrumentId, price: Price, size: Qty, taker: Side) {
        let (now, heard_at) = (self.now, self.books.venue_now(self.now));
        let trade = LastTrade { price, size, taker_buys: taker == Side::Buy, at: heard_at };
        self.writer.frame(0, heard_at, |frame| frame.trade(instrument, trade));
        self.hand_news();
        self.shard().print_lane().push(Print { instrument, price, size, taker, taken_at: now, at: heard_at });
    }

    /// A trade of the orders that a calibration compares, handed to the shard but not processed yet.
    pub fn hand_own(&mut self, instrument: InstrumentId, price: Price, size: Qty, taker: Side) {
        let (taken_at, at) = (self.now, self.books.venue_now(self.now));
        self.hand_news();
        self.shard().print_lane().push(Event::Own(Print { instrument, price, size, taker, taken_at, at }));
    }

    /// Count of notices of fills of resting orders.
    pub fn notified_fills(&self) -> usize {
        let filled = |notice: &&Notice| matches!(notice.what, OrderFact::Filled { resting: true, .. });
        self.out.notices.iter().filter(filled).count()
    }

    pub fn the_user(&self) -> &User {
        self.shard.as_ref().expect("there is a shard").users().get(self.user).expect("there is a user")
    }

    /// Runs a line and returns its result.
    pub fn act(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((verb, rest)) = words.split_first() else { return String::new() };
        match *verb {
            "flag" => self.flag(rest[0], rest[1] == "on"),
            "rule" => self.rule(rest[0], rest[1]),
            "market" => self.list(rest),
            "book" => self.book(rest),
            "level" => {
                let (price, size) = level(rest[2]);
                let side = if rest[1] == "ask" { BookSide::Ask } else { BookSide::Bid };
                let (token, now) = (token(rest[0]), self.books.venue_now(self.now));
                self.writer.frame(0, now, |frame| frame.delta(token, &[(side, price, size)], now));
                String::new()
            }
            "trade" => {
                let now = self.books.venue_now(self.now);
                let (price, size) = (price(rest[1]), Qty::from_shares(1));
                let trade = LastTrade { price, size, taker_buys: true, at: now };
                self.writer.frame(0, now, |frame| frame.trade(token(rest[0]), trade));
                String::new()
            }
            "display" => {
                let (token, mut stated) = (token(rest[0]), Stated::default());
                stated.shown[token.outcome() as usize] = Some(Cash(i64::from(price(rest[1]).0) * 100));
                self.writer.stated(token.market(), &stated);
                String::new()
            }
            "state" => {
                let state = match rest[1] {
                    "upcoming" => MarketState::Upcoming,
                    "active" => MarketState::Active,
                    "halted" => MarketState::Halted,
                    _ => MarketState::Closed,
                };
                let fact = self.markets.state(MarketId(number(rest[0]) as u32), state, self.now);
                self.publish(fact)
            }
            "end" => {
                // The market ends now.
                let market = MarketId(number(rest[0]) as u32);
                let facts = self.markets.end(market, Some(self.now), self.now, self.now);
                self.publish(facts);
                let facts = self.markets.end_passed(self.now, self.now);
                self.publish(facts)
            }
            "tick" => {
                let facts = self.markets.tick(MarketId(number(rest[0]) as u32), TickSize(price(rest[1]).0), self.now);
                self.publish(facts)
            }
            "resolve" => {
                let resolution = match rest[1] {
                    "Y" => Resolution::Winner(Outcome::First),
                    "N" => Resolution::Winner(Outcome::Second),
                    _ => Resolution::Split,
                };
                let fact = self.markets.resolve(MarketId(number(rest[0]) as u32), resolution, self.now);
                self.publish(fact)
            }
            "fees" => self.state_fees(rest),
            "outage" => {
                self.writer.outage(rest[0] == "on");
                String::new()
            }
            "no_contact" => {
                self.writer.no_contact(rest[0] == "on");
                String::new()
            }
            "wait" => {
                self.now = self.now.plus(span(rest[0]));
                String::new()
            }
            "broken" => {
                self.writer.gap(token(rest[0]));
                String::new()
            }
            "alive" => {
                self.writer.alive(0, self.books.venue_now(self.now));
                String::new()
            }
            "room" => {
                self.out.room = match rest[0] {
                    "none" => Room::None,
                    "reserve" => Room::ReserveOnly,
                    _ => Room::Ample,
                };
                String::new()
            }
            "gap" => {
                self.out.gap_behind.set(Some(self.out.records.len() + number(rest[0]) as usize));
                String::new()
            }
            "balance" => {
                self.balance = Some(cash(rest[0]));
                String::new()
            }
            "plan" => {
                self.grant = Some(tier(rest[0]));
                String::new()
            }
            "tier" => {
                self.tier = tier(rest[0]);
                String::new()
            }
            "user" => {
                self.user = UserId(number(rest[0]));
                String::new()
            }
            _ => {
                self.make_user();
                let acts = [
                    "buy", "sell", "late", "batch", "cancel", "cycle", "print", "own", "settle", "beat", "endbeats",
                    "key", "grant", "wallet", "realism",
                ];
                if acts.contains(verb) {
                    self.last = self.out.records.len();
                }
                self.command(verb, rest)
            }
        }
    }

    pub(super) fn key(&self, number_from_1: &str) -> KeyId {
        let index = number(number_from_1) as usize;
        self.the_user().keys.get(index - 1).map_or(KeyId(77), |key| key.id)
    }

    pub(super) fn order(&self, name: &str) -> OrderId {
        let index = number(name.trim_start_matches('#')) as usize;
        self.orders.get(index.wrapping_sub(1)).copied().unwrap_or(OrderId(99))
    }

    pub(super) fn name(&self, id: OrderId) -> String {
        match self.orders.iter().position(|known| *known == id) {
            Some(index) => format!("#{}", index + 1),
            None => format!("?{}", object_number(id.0)),
        }
    }

    /// The process ends before its last records are written.
    pub(super) fn lose(&mut self, count: &str) -> String {
        let left = self.out.records.len() - number(count) as usize;
        self.out.records.truncate(left);
        String::new()
    }

    /// The process ends, and a new one starts from the records.
    pub(super) fn restart(&mut self) -> String {
        self.restart_from(self.rules.formats)
    }

    /// The same, from records of these formats.
    pub(super) fn restart_from(&mut self, formats: Formats) -> String {
        let mut users = Users::default();
        for (owner, payload) in &self.out.records {
            for fact in codec::decode(formats.record(), payload).expect("our own version") {
                users.apply(*owner, &fact.expect("our own bytes"));
            }
        }
        let mut shard = self.shard_of(users);
        shard.resume(self.recorded_at);
        self.shard = Some(shard);
        String::new()
    }

    /// Facts of the last action.
    pub fn last_facts(&self) -> Vec<Mutation> {
        self.facts_from(self.last)
    }

    /// All facts so far.
    pub fn all_facts(&self) -> Vec<Mutation> {
        self.facts_from(0)
    }

    fn facts_from(&self, record: usize) -> Vec<Mutation> {
        let records = &self.out.records[record..];
        let facts = |payload: &[u8]| -> Vec<Mutation> {
            let facts = codec::decode(self.rules.formats.record(), payload).expect("our own version");
            facts.map(|fact| fact.expect("our own bytes")).collect()
        };
        records.iter().flat_map(|(_, payload)| facts(payload)).collect()
    }

    /// All invariants are left, and a replay of the records gives the same state.
    pub fn check(&mut self) -> Result<(), String> {
        let shard = self.shard();
        shard.users().check_all()?;
        let digest = |users: &Users| digest::digest(&Markets::default(), &[users]);
        let live = digest(shard.users());
        let mut replayed = Users::default();
        for (owner, payload) in &self.out.records {
            for fact in codec::decode(self.rules.formats.record(), payload).map_err(|error| error.to_string())? {
                replayed.apply(*owner, &fact.map_err(|error| error.to_string())?);
            }
        }
        replayed.check_all()?;
        if digest(&replayed) != live {
            return Err("the records replayed give another state".to_owned());
        }
        Ok(())
    }
}
