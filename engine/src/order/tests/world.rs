//! A small world that a scenario acts on: one venue, one shard, records kept.

use super::Count;
use crate::amount::{Cash, Price, Qty, TickSize, average_half_up};
use crate::book::{BookSide, BookWriter, Books, LastTrade};
use crate::command::{
    Answer, AskedPrice, BatchEntry, Command, CreateUser, Envelope, IdSource, IssueKey, MarketFilter, OrderFilter,
    Placement, PlacementTerms, Query, RequestIdentity, Secret, Size, Unsound, Wallets,
};
use crate::directory::Directory;
use crate::id::{InstrumentId, KeyId, MarketId, OrderId, Outcome, UserId, WalletId, object_number};
use crate::market::catalog::Catalog;
use crate::market::mutation::MarketMutation;
use crate::market::terms::{Asset, Category, Interval, Listing, MarketState, Resolution, UpDown, Venue};
use crate::market::{Markets, publish};
use crate::mutation::{Mutation, codec};
use crate::notice::Notice;
use crate::order::{EntryRoute, Order, OrderType, Side, Status, TimeInForce};
use crate::reject::Reject;
use crate::ring::Ring;
use crate::rules::Rules;
use crate::shard::snapshot::put_user;
use crate::shard::{Outbox, Room, Shard};
use crate::time::{MILLISECOND, SECOND, Timestamp};
use crate::user::{Permissions, Tier, User, Users, WalletKind};
use crate::view::OrderView;
use std::sync::Arc;

/// 2026-10-02T09:15:00Z.
pub const START: Timestamp = Timestamp(1_790_932_500 * SECOND);

/// Runs every scenario of a text.
pub fn run(file: &str, text: &str) -> Count {
    let mut count = Count::default();
    for scenario in text.split("\n#").map(|part| part.trim_start_matches('#').trim()).filter(|part| !part.is_empty()) {
        count.scenarios += 1;
        let (name, body) = scenario.split_once('\n').unwrap_or((scenario, ""));
        let mut world = World::of(body);
        for line in body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
            let (action, expected) = match line.split_once("->") {
                Some((action, expected)) => (action.trim(), Some(expected.trim())),
                None => (line, None),
            };
            let got = world.act(action);
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

/// What the shard handed over.
pub struct Out {
    pub room: Room,
    pub records: Vec<(UserId, Vec<u8>)>,
    pub notices: Vec<Notice>,
    pub answers: Vec<(u64, Answer)>,
}

impl Outbox<u64> for Out {
    fn room(&self) -> Room {
        self.room
    }
    fn record(&mut self, owner: UserId, _now: Timestamp, payload: &[u8]) {
        assert!(!payload.is_empty() && payload.len() < 1 << 20, "a record is small: {}", payload.len());
        self.records.push((owner, payload.to_vec()));
    }
    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
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
    shard: Option<Shard<u64>>,
    pub inbox: Ring<Envelope<u64>>,
    pub out: Out,
    pub user: UserId,
    tier: Tier,
    orders: Vec<OrderId>,
    /// First record of the last action.
    last: usize,
    next_reply: u64,
    /// Facts put in past the shard's back, to be replayed first.
    grant: Option<Tier>,
    balance: Option<Cash>,
}

impl World {
    /// An empty world; market 0 is a weather market with tick 0.01 unless the text lists it otherwise.
    pub fn of(text: &str) -> World {
        let books = Arc::new(Books::new());
        let writer = books.writer().expect("the first");
        let mut world = World {
            now: START,
            rules: Rules::default(),
            markets: Markets::new(),
            catalog: Arc::new(Catalog::new()),
            books,
            writer,
            shard: None,
            inbox: Ring::new(16),
            out: Out { room: Room::Ample, records: Vec::new(), notices: Vec::new(), answers: Vec::new() },
            user: UserId(1),
            tier: Tier::Free,
            orders: Vec::new(),
            last: 0,
            next_reply: 1,
            grant: None,
            balance: None,
        };
        if !text.lines().any(|line| line.starts_with("market 0 ")) {
            world.act("market 0 weather 0.01");
        }
        world
    }

    pub fn shard(&mut self) -> &mut Shard<u64> {
        if self.shard.is_none() {
            let shard = Shard::new(
                0,
                1,
                Users::default(),
                Arc::new(self.rules.clone()),
                self.books.clone(),
                self.catalog.clone(),
                Arc::new(Directory::default()),
            );
            self.shard = Some(shard);
        }
        self.shard.as_mut().expect("made just now")
    }

    /// What a test needs to step the shard by hand.
    pub fn parts(&mut self) -> (&mut Shard<u64>, &Ring<Envelope<u64>>, &mut Out) {
        self.shard();
        (self.shard.as_mut().expect("made just now"), &self.inbox, &mut self.out)
    }

    pub fn users(&self) -> &Users {
        self.shard.as_ref().expect("there is a shard").users()
    }

    fn make_user(&mut self) {
        let user = self.user;
        if self.shard().users().get(user).is_none() {
            let asked = CreateUser { sub: None, email: None, grant: self.grant, api_balance: self.balance };
            let room = std::mem::replace(&mut self.out.room, Room::Ample);
            self.ask(Command::CreateUser(asked), 0);
            self.out.room = room;
            self.last = self.out.records.len();
        }
    }

    /// Asks the shard and works until the answer is there.
    pub fn ask(&mut self, command: Command, waited: u64) -> Answer {
        let (owner, now, reply) = (self.user, self.now, self.next_reply);
        self.next_reply += 1;
        self.shard();
        let envelope = Envelope { owner, command, received_at: Timestamp(now.0 - waited), reply };
        let shard = self.shard.as_mut().expect("made just now");
        shard.take(envelope, now, &mut self.out);
        let mut turns = 0;
        while self.out.answers.last().is_none_or(|(to, _)| *to != reply) {
            shard.turn(&self.inbox, now, &mut self.out);
            turns += 1;
            assert!(turns < 100_000, "an answer comes");
        }
        self.out.answers.pop().expect("it was there").1
    }

    pub fn the_user(&self) -> &User {
        self.shard.as_ref().expect("there is a shard").users().get(self.user).expect("there is a user")
    }

    /// Does what a line says and tells what came of it.
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
                self.writer.display(token(rest[0]), Some(price(rest[1])));
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
                // The end date is this moment.
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
            "outage" => {
                self.writer.outage(rest[0] == "on");
                String::new()
            }
            "wait" => {
                self.now = self.now.plus(span(rest[0]));
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
                let acts =
                    ["buy", "sell", "late", "batch", "cancel", "cycle", "settle", "beat", "endbeats", "key", "grant"];
                if acts.contains(verb) {
                    self.last = self.out.records.len();
                }
                self.command(verb, rest)
            }
        }
    }

    fn command(&mut self, verb: &str, rest: &[&str]) -> String {
        match verb {
            "hold" => {
                // Bought at a price, without fee, as if in an earlier life: then the book is taken away again.
                let rules = self.rules.clone();
                assert!(self.shard.is_some());
                let text = format!("{} asks {}x{}", rest[0], rest[2], rest[1]);
                self.book(&text.split_whitespace().collect::<Vec<_>>());
                let line = format!("buy {} {} limit {} fok", rest[0], rest[1], rest[2]);
                let got = self.act(&line);
                self.orders.pop();
                self.book(&[rest[0]]);
                self.rules = rules;
                if got.starts_with("FILLED") { String::new() } else { format!("error {got}") }
            }
            "buy" | "sell" => {
                let placement = self.placement(verb, rest);
                let answer = self.ask(Command::Place(Box::new(placement)), 0);
                self.answer_text(answer)
            }
            "late" => {
                let placement = self.placement(rest[0], &rest[1..]);
                let answer = self.ask(Command::Place(Box::new(placement)), 2 * SECOND + 1);
                self.answer_text(answer)
            }
            "batch" => {
                let entries: Vec<Placement> = rest
                    .split(|word| *word == "|")
                    .filter(|entry| !entry.is_empty())
                    .map(|entry| self.placement(entry[0], &entry[1..]))
                    .collect();
                let answer = self.ask(Command::PlaceBatch(entries), 0);
                self.answer_text(answer)
            }
            "cancel" => {
                let wallets = |word: Option<&&str>| match word.copied() {
                    Some("all") => Wallets::All,
                    Some("foreign") => Wallets::One(WalletId(1)),
                    Some("main") => Wallets::One(self.the_user().wallet_of(WalletKind::Main).expect("there").id),
                    _ => Wallets::Api,
                };
                let command = match rest[0] {
                    "all" => Command::CancelAll { wallets: wallets(rest.get(1)) },
                    "market" => Command::CancelMarket {
                        market: Some(MarketId(number(rest[1]) as u32)),
                        instrument: rest.get(2).map(|name| token(name)),
                        wallets: Wallets::Api,
                    },
                    "token" => {
                        Command::CancelMarket { market: None, instrument: Some(token(rest[1])), wallets: Wallets::Api }
                    }
                    "nothing" => Command::CancelMarket { market: None, instrument: None, wallets: Wallets::Api },
                    one => Command::Cancel { order: self.order(one) },
                };
                let answer = self.ask(command, 0);
                self.answer_text(answer)
            }
            "cycle" => {
                let venue_now = self.books.venue_now(self.now);
                let answer = self.ask(Command::Cycle { venue_now }, 0);
                self.answer_text(answer)
            }
            "settle" => {
                let answer = self.ask(Command::Settle { market: MarketId(number(rest[0]) as u32) }, 0);
                self.answer_text(answer)
            }
            "beat" => {
                let label = rest[0].to_owned();
                let answer = self.ask(Command::Beat { label, interval_ms: number(rest[1]) as u32 }, 0);
                self.answer_text(answer)
            }
            "endbeats" => {
                let answer = self.ask(Command::EndBeats, 0);
                self.answer_text(answer)
            }
            "key" => self.key_command(rest),
            "grant" => {
                let expires_at = rest.get(1).map(|word| self.now.plus(span(word)));
                let answer = self.ask(Command::SetGrant { tier: tier(rest[0]), expires_at }, 0);
                self.answer_text(answer)
            }
            "order" => {
                let order = self.order(rest[0]);
                let answer = self.ask(Command::Query(Query::Order(order)), 0);
                self.answer_text(answer)
            }
            "client" => {
                let answer = self.ask(Command::Query(Query::OrderByClientId(rest[0].to_owned())), 0);
                self.answer_text(answer)
            }
            "orders" => self.list_orders(rest),
            "money" => {
                let kind = if rest.first() == Some(&"main") { WalletKind::Main } else { WalletKind::Api };
                let wallet = self.the_user().wallet_of(kind).expect("there");
                format!("{} of {}", text(wallet.available()), text(wallet.cash))
            }
            "baseline" => text(self.the_user().wallet_of(WalletKind::Api).expect("there").baseline),
            "holding" => {
                let wallet = self.the_user().wallet_of(WalletKind::Api).expect("there").id;
                match self.the_user().open_position(wallet, token(rest[0])) {
                    None => "nothing".to_owned(),
                    Some(held) => {
                        let reserved = if held.reserved.is_zero() {
                            String::new()
                        } else {
                            format!(" reserved {}", shares(held.reserved))
                        };
                        let realized = if held.realized == Cash::ZERO {
                            String::new()
                        } else {
                            format!(" realized {}", text(held.realized))
                        };
                        format!("{} cost {}{reserved}{realized}", shares(held.qty), text(held.cost))
                    }
                }
            }
            "closed" => {
                let answer = self.ask(
                    Command::Query(Query::Positions { wallets: Wallets::Api, market: None, open: Some(false) }),
                    0,
                );
                let Answer::Positions(rows) = answer else { return "error".to_owned() };
                let row = |row: &crate::view::PositionView| {
                    let settled = row.position.settlement.as_ref().map_or(String::new(), |settled| {
                        format!(
                            " paid {} at {}",
                            text(settled.payout),
                            text(Cash(i64::from(settled.payout_per_share.0) * 100))
                        )
                    });
                    let average = row.average.map_or("none".to_owned(), text);
                    format!("avg {average} realized {}{settled}", text(row.position.realized))
                };
                rows.iter().map(row).collect::<Vec<_>>().join(" | ")
            }
            "fills" => {
                let order = self.order(rest[0]);
                let user = self.the_user();
                let Some(order) = user.order(order) else { return "error".to_owned() };
                let fill = |fill: &crate::order::Fill| {
                    format!(
                        "{:?} {:?} {} for {} fee {} at {} bps",
                        fill.liquidity,
                        fill.source,
                        shares(fill.qty),
                        text(fill.notional),
                        text(fill.fee),
                        fill.fee_rate.0
                    )
                };
                user.fills_of(order).iter().map(fill).collect::<Vec<_>>().join(" | ")
            }
            "levels" => {
                let mut rows = Vec::new();
                for fact in self.last_facts() {
                    if let Mutation::OrderFilled { levels, .. } = fact {
                        rows.extend(levels.iter().map(|row| {
                            let mark = if row.mirrored { "~" } else { "" };
                            format!("{mark}{}x{}", text(Cash(i64::from(row.price.0) * 100)), shares(row.qty))
                        }));
                    }
                }
                rows.join(" ")
            }
            "quality" => {
                let order = self.order(rest[0]);
                let Some(order) = self.the_user().order(order) else { return "error".to_owned() };
                quality_text(order)
            }
            "terms" => {
                let order = self.order(rest[0]);
                let Some(order) = self.the_user().order(order) else { return "error".to_owned() };
                let terms = &order.terms;
                format!(
                    "{:?} {:?} limit {} rate {}{}{}{}",
                    terms.order_type,
                    terms.time_in_force.normalised(),
                    text(Cash(i64::from(terms.limit.0) * 100)),
                    terms.fee_rate.0,
                    if terms.post_only { " post" } else { "" },
                    if terms.marketable { " marketable" } else { "" },
                    if terms.expiration().is_some() { " expires" } else { "" },
                )
            }
            "facts" => self.last_facts().iter().map(kind).collect::<Vec<_>>().join(" "),
            "records" => (self.out.records.len()).to_string(),
            "quota" => self.the_user().quota.used.to_string(),
            "notices" => {
                let notices: Vec<String> = self
                    .out
                    .notices
                    .drain(..)
                    .map(|notice| {
                        let what = match notice.what {
                            crate::notice::OrderFact::Placed => "placed",
                            crate::notice::OrderFact::Filled { resting: false, .. } => "filled",
                            crate::notice::OrderFact::Filled { resting: true, .. } => "filled-resting",
                            crate::notice::OrderFact::Closed => "closed",
                        };
                        format!("{}:{what}", notice.user_seq)
                    })
                    .collect();
                notices.join(" ")
            }
            "account" => {
                let answer = self.ask(Command::Query(Query::Account { wallets: Wallets::All }), 0);
                let Answer::Account(account) = answer else { return "error".to_owned() };
                format!(
                    "{} wallets {} positions {} fills {} closed {} won",
                    account.wallets.len(),
                    account.positions.len(),
                    account.fills_count,
                    account.closed_count,
                    account.won_count
                )
            }
            "history" => {
                let filter = crate::command::FillFilter {
                    wallets: Wallets::Api,
                    market: None,
                    side: None,
                    offset: 0,
                    limit: number(rest[0]) as usize,
                };
                let Answer::Fills(page) = self.ask(Command::Query(Query::Fills(filter)), 0) else {
                    return "error".to_owned();
                };
                let rows: Vec<String> = page
                    .fills
                    .iter()
                    .map(|row| {
                        format!("{:?} {} for {}", row.order.terms.side, shares(row.fill.qty), text(row.fill.notional))
                    })
                    .collect();
                format!("{}{}", rows.join(" | "), if page.has_more { " …" } else { "" })
            }
            other => format!("error: no such word {other}"),
        }
    }

    /// `key issue NAME [tier] [read|trade|bootstrap]`, `key rotate N`, `key revoke N`, `key rename N NAME`,
    /// `key used N`, `key list`. Keys are numbered from 1.
    fn key_command(&mut self, words: &[&str]) -> String {
        let seed = self.next_reply as u8;
        let secret = Secret { hash: [seed; 32], alias_hash: [seed ^ 0x80; 32], prefix: format!("svc_live_{seed:07}") };
        let key = |world: &World, word: &str| {
            let index = number(word) as usize;
            world.the_user().keys.get(index - 1).map_or(KeyId(77), |key| key.id)
        };
        let command = match words[0] {
            "issue" => Command::IssueKey(IssueKey {
                secret,
                name: Some(words[1].to_owned()),
                tier: words.iter().find_map(|word| match *word {
                    "free" => Some(Tier::Free),
                    "pro" => Some(Tier::Pro),
                    _ => None,
                }),
                permissions: words.iter().find_map(|word| match *word {
                    "read" => Some(Permissions::Read),
                    "trade" => Some(Permissions::ReadTrade),
                    _ => None,
                }),
                bootstrap: words.contains(&"bootstrap"),
            }),
            "rotate" => Command::RotateKey { key: key(self, words[1]), replacement: secret },
            "revoke" => Command::RevokeKey { key: key(self, words[1]) },
            "rename" => {
                Command::RenameKey { key: key(self, words[1]), name: words.get(2).map(|name| (*name).to_owned()) }
            }
            "used" => Command::NoteKeyUsed { key: key(self, words[1]) },
            _ => Command::Query(Query::Keys),
        };
        let answer = self.ask(command, 0);
        self.answer_text(answer)
    }

    /// `orders [pending|filled|cancelled|expired] [limit=N] [after=#N] [offset=N] [market=M]`.
    fn list_orders(&mut self, words: &[&str]) -> String {
        let mut filter = OrderFilter {
            wallets: Wallets::Api,
            status: None,
            market: None,
            side: None,
            after: None,
            offset: 0,
            limit: 50,
        };
        for word in words {
            match word.split_once('=') {
                Some(("limit", n)) => filter.limit = number(n) as usize,
                Some(("offset", n)) => filter.offset = number(n) as usize,
                Some(("market", "?")) => filter.market = Some(MarketFilter::Unknown),
                Some(("market", n)) => filter.market = Some(MarketFilter::Only(MarketId(number(n) as u32))),
                Some(("after", n)) => {
                    let id = self.order(n);
                    filter.after = self.the_user().order(id).map(|order| (order.created_at, id));
                }
                _ => match *word {
                    "pending" => filter.status = Some(Status::Pending),
                    "filled" => filter.status = Some(Status::Filled),
                    "cancelled" => filter.status = Some(Status::Cancelled),
                    "buy" => filter.side = Some(Side::Buy),
                    "sell" => filter.side = Some(Side::Sell),
                    "foreign" => filter.wallets = Wallets::One(WalletId(3)),
                    _ => filter.status = Some(Status::Expired),
                },
            }
        }
        match self.ask(Command::Query(Query::Orders(filter)), 0) {
            Answer::Orders(page) => {
                let ids: Vec<String> = page.orders.iter().map(|view| self.name(view.order.id)).collect();
                let more = if page.has_more { " …" } else { "" };
                let hint = page.total_hint.map_or("?".to_owned(), |hint| hint.to_string());
                format!("{}{more} of {hint}", ids.join(" "))
            }
            other => self.answer_text(other),
        }
    }

    /// `buy TOKEN SIZE market|limit PRICE [words]`; see the body for the words.
    fn placement(&self, side: &str, words: &[&str]) -> Placement {
        let side = if side == "buy" { Side::Buy } else { Side::Sell };
        let order_type = if words[2] == "market" { OrderType::Market } else { OrderType::Limit };
        let mut terms = PlacementTerms {
            wallet: None,
            instrument: (words[0] != "?").then(|| token(words[0])),
            side,
            order_type,
            time_in_force: if order_type == OrderType::Market { TimeInForce::Fok } else { TimeInForce::Gtc },
            size: match words[1].strip_prefix('$') {
                Some(amount) => Size::Amount(cash(amount)),
                None => Size::Shares { qty: qty(words[1]), rounded_from: None },
            },
            price: if words[3] == "off" { AskedPrice::OffGrid } else { AskedPrice::At(price(words[3])) },
            expiration: None,
            post_only: false,
        };
        let (mut tier, mut route, mut unsound) = (self.tier, EntryRoute::Native, false);
        let (mut id, mut source, mut body) = (None, IdSource::Body, 1);
        for word in &words[4..] {
            match word.split_once('=') {
                Some(("exp", at)) => {
                    terms.expiration = Some(match at.strip_prefix('-') {
                        Some(before) => Timestamp(self.now.0 - span(before)),
                        None => self.now.plus(span(at.trim_start_matches('+'))),
                    });
                }
                Some(("id", text)) => id = Some(text.to_owned()),
                Some(("body", n)) => body = number(n) as u8,
                Some(("from", "main")) => {
                    terms.wallet = self.the_user().wallet_of(WalletKind::Main).map(|wallet| wallet.id);
                }
                Some(("from", _)) => terms.wallet = Some(WalletId(4_711)),
                Some(("rounded", text)) => {
                    if let Size::Shares { rounded_from, .. } = &mut terms.size {
                        *rounded_from = Some(text.to_owned());
                    }
                }
                _ => match *word {
                    "gtc" => terms.time_in_force = TimeInForce::Gtc,
                    "gtd" => terms.time_in_force = TimeInForce::Gtd,
                    "fok" => terms.time_in_force = TimeInForce::Fok,
                    "fak" => terms.time_in_force = TimeInForce::Fak,
                    "ioc" => terms.time_in_force = TimeInForce::Ioc,
                    "post" => terms.post_only = true,
                    "header" => source = IdSource::Header,
                    "implicit" => source = IdSource::Implicit,
                    "venue" => route = EntryRoute::Venue,
                    "pro" => tier = Tier::Pro,
                    "unsound" => unsound = true,
                    other => panic!("no such word: {other}"),
                },
            }
        }
        Placement {
            key: KeyId(5),
            tier,
            route,
            request: id.map(|client_order_id| RequestIdentity { client_order_id, digest: [body; 32], source }),
            terms: if unsound { Err(Unsound) } else { Ok(terms) },
        }
    }

    fn list(&mut self, words: &[&str]) -> String {
        let market = number(words[0]);
        let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let end = option("end").map(|after| self.now.plus(span(after)));
        let interval =
            option("updown").map(|name| Interval::ALL.into_iter().find(|known| known.name() == name).expect("known"));
        let listing = Listing {
            venue: Venue::Synthetic,
            venue_market_id: market.to_string(),
            condition: format!("0x{market:064x}"),
            tokens: [(market * 2 + 100).to_string(), (market * 2 + 101).to_string()],
            outcomes: ["Yes".to_owned(), "No".to_owned()],
            slug: format!("market-{market}"),
            question: format!("Market {market}?"),
            description: None,
            image: None,
            label: None,
            category: Category::named(words[1]).unwrap_or(Category::Unknown),
            tags: Vec::new(),
            event: None,
            tick: TickSize(price(words[2]).0),
            min_order_size: None,
            neg_risk: false,
            start: None,
            end,
            updown: interval.map(|interval| UpDown {
                asset: Asset::Btc,
                interval,
                start: self.now,
                end: self.now.plus(300 * SECOND),
            }),
            sports: false,
        };
        let facts = self.markets.list(&listing, MarketState::Active, self.now, self.now);
        self.publish(facts)
    }

    fn publish(&mut self, facts: impl IntoIterator<Item = MarketMutation>) -> String {
        for fact in facts {
            self.markets.apply(&fact);
            publish(&fact, &self.catalog, &mut self.writer);
        }
        String::new()
    }

    /// `book TOKEN bids P×S … asks P×S …`.
    fn book(&mut self, words: &[&str]) -> String {
        let (mut bids, mut asks, mut side) = (Vec::new(), Vec::new(), None);
        for word in &words[1..] {
            match (*word, side) {
                ("bids", _) => side = Some(BookSide::Bid),
                ("asks", _) => side = Some(BookSide::Ask),
                (text, Some(BookSide::Bid)) => bids.push(level(text)),
                (text, _) => asks.push(level(text)),
            }
        }
        let (token, now) = (token(words[0]), self.books.venue_now(self.now));
        self.writer.frame(0, now, |frame| frame.snapshot(token, &bids, &asks, now, None));
        String::new()
    }

    fn flag(&mut self, name: &str, on: bool) -> String {
        assert!(self.shard.is_none(), "flags come first");
        let flags = &mut self.rules.flags;
        let flag = match name {
            "fak_partial_fills" => &mut flags.fak_partial_fills,
            "fok_depth_aware" => &mut flags.fok_depth_aware,
            "gtd_auto_expiry" => &mut flags.gtd_auto_expiry,
            "post_only_enforced" => &mut flags.post_only_enforced,
            "min_order_size_enforced" => &mut flags.min_order_size_enforced,
            "book_impact_depletion" => &mut flags.book_impact_depletion,
            "maker_fill_at_limit" => &mut flags.maker_fill_at_limit,
            "require_book_depth" => &mut self.rules.require_book_depth,
            "quote_age_enforced" => &mut self.rules.quote_age_enforced,
            "emergency_exit" => &mut self.rules.emergency_exit,
            "sync_gtc_match" => &mut self.rules.sync_gtc_match,
            "depletion_covers_market_orders" => &mut self.rules.depletion_covers_market_orders,
            other => panic!("no such flag: {other}"),
        };
        *flag = on;
        String::new()
    }

    fn rule(&mut self, name: &str, value: &str) -> String {
        match name {
            "fok_shortfall" => self.rules.fok_shortfall = qty(value),
            "max_shares" => self.rules.max_shares_per_order = qty(value),
            "free_daily_orders" => self.rules.free_daily_orders = number(value) as u32,
            "beta_until" => self.rules.beta_until = Some(self.now.plus(span(value))),
            "free_trade_since" => self.rules.free_trade_since = self.now.plus(span(value)),
            other => panic!("no such rule: {other}"),
        }
        String::new()
    }

    fn order(&self, name: &str) -> OrderId {
        let index = number(name.trim_start_matches('#')) as usize;
        self.orders.get(index.wrapping_sub(1)).copied().unwrap_or(OrderId(99))
    }

    fn name(&self, id: OrderId) -> String {
        match self.orders.iter().position(|known| *known == id) {
            Some(index) => format!("#{}", index + 1),
            None => format!("?{}", object_number(id.0)),
        }
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
            let facts = codec::decode(codec::VERSION, payload).expect("our own version");
            facts.map(|fact| fact.expect("our own bytes")).collect()
        };
        records.iter().flat_map(|(_, payload)| facts(payload)).collect()
    }

    fn answer_text(&mut self, answer: Answer) -> String {
        match answer {
            Answer::Done => "done".to_owned(),
            Answer::Created(_) => "created".to_owned(),
            Answer::Order(view) => self.order_text(&view),
            Answer::Killed { reject, order } => {
                let order = self.order_text(&order);
                format!("{} | {order}", reject_text(&reject))
            }
            Answer::Refused(reject) => reject_text(&reject),
            Answer::Batch(entries) => {
                let texts: Vec<String> = entries
                    .into_iter()
                    .map(|entry| match entry {
                        BatchEntry::Placed(view) => self.order_text(&view),
                        BatchEntry::Killed { reject, order } => {
                            self.order_text(&order);
                            reject_text(&reject)
                        }
                        BatchEntry::Refused(reject) => reject_text(&reject),
                    })
                    .collect();
                texts.join(" | ")
            }
            Answer::Cancelled(swept) => {
                let names = |ids: &[OrderId]| ids.iter().map(|id| self.name(*id)).collect::<Vec<_>>().join(" ");
                let released = format!("{} and {}", text(swept.released.1), shares(swept.released.0));
                format!("cancelled {} released {released}", names(&swept.cancelled)).replace("  ", " ")
            }
            Answer::Cycled { looked_at, fills, closed } => format!("looked {looked_at} filled {fills} closed {closed}"),
            Answer::Settled { positions, orders } => format!("paid {positions} expired {orders}"),
            Answer::Beating { lapses_at } => format!("lapses in {} ms", lapses_at.since(self.now) / MILLISECOND),
            Answer::Key(key) => key_text(&key),
            Answer::Rotated { replacement, old_expires_at } => {
                format!(
                    "{} old ends in {} h",
                    key_text(&replacement),
                    old_expires_at.since(self.now) / (3_600 * SECOND)
                )
            }
            Answer::Keys(keys) => keys.iter().map(key_text).collect::<Vec<_>>().join(" | "),
            other => format!("{other:?}"),
        }
    }

    fn order_text(&mut self, view: &OrderView) -> String {
        let order = &view.order;
        if !self.orders.contains(&order.id) {
            self.orders.push(order.id);
        }
        let mut line = format!("{:?}", order.status()).to_uppercase();
        if let Some((reason, _)) = order.closed() {
            line += &format!(" {reason:?}");
        }
        line += &format!(" {}/{}", shares(order.filled), shares(order.terms.quantity));
        if let Some(average) = average_half_up(order.notional, order.filled) {
            line += &format!(" @{} fee {}", text(average), text(order.fee));
        }
        if order.reserved_cash() != Cash::ZERO {
            line += &format!(" reserved {}", text(order.reserved_cash()));
        }
        if !order.reserved_qty().is_zero() {
            line += &format!(" reserved {} shares", shares(order.reserved_qty()));
        }
        for (word, is) in [("awaiting", order.awaiting_book), ("held", order.held), ("replay", view.is_replay)] {
            if is {
                line += &format!(" {word}");
            }
        }
        if view.is_replay {
            let position = view.position.as_ref().map_or("nothing".to_owned(), |held| shares(held.qty));
            line += &format!(" available {} holding {position} fills {}", text(view.available), view.fills.len());
            let quality = order.terms.quality();
            assert_eq!((quality.spread_bps, quality.impact_bps, quality.book_walk_levels), (None, None, None));
        }
        line
    }

    /// All promises are kept, and the records alone give the same state.
    pub fn check(&mut self) -> Result<(), String> {
        let shard = self.shard();
        shard.users().check_all()?;
        let digest = |users: &Users| {
            let mut bytes = Vec::new();
            users.iter().for_each(|user| put_user(user, &mut bytes));
            bytes
        };
        let live = digest(shard.users());
        let mut replayed = Users::default();
        for (owner, payload) in &self.out.records {
            for fact in codec::decode(codec::VERSION, payload).map_err(|error| error.to_string())? {
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

fn kind(fact: &Mutation) -> String {
    let text = format!("{fact:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

fn quality_text(order: &Order) -> String {
    let quality = order.terms.quality();
    let mut line = String::new();
    let figures = [
        ("age", quality.quote_age_ms),
        ("spread", quality.spread_bps),
        ("slippage", quality.slippage_bps),
        ("impact", quality.impact_bps),
        ("levels", quality.book_walk_levels.map(u32::from)),
    ];
    line += &format!("displayed {}", quality.displayed.map_or("none".to_owned(), text));
    for (name, figure) in figures {
        if let Some(figure) = figure {
            line += &format!(" {name} {figure}");
        }
    }
    for (word, is) in [("high", quality.high_slippage), ("stale", quality.stale_quote)] {
        if is {
            line += &format!(" {word}");
        }
    }
    line
}

fn key_text(key: &crate::view::KeyView) -> String {
    let mut line = format!("{} {:?} {:?}", key.name.as_deref().unwrap_or("-"), key.tier, key.permissions);
    for (word, is) in
        [("ends", key.expires_at.is_some()), ("beta", key.beta_until.is_some()), ("used", key.last_used_at.is_some())]
    {
        if is {
            line += &format!(" {word}");
        }
    }
    line
}

pub fn reject_text(reject: &Reject) -> String {
    match reject {
        Reject::DailyLimit { limit, used, resets_at } => {
            format!("DailyLimit {used}/{limit} resets {}", resets_at.since(START) / SECOND)
        }
        Reject::OffTick { tick } => format!("OffTick {}", text(Cash(i64::from(tick.0) * 100))),
        Reject::BelowMinimum { minimum } => format!("BelowMinimum {}", shares(*minimum)),
        Reject::InsufficientPosition { available, requested } => {
            format!("InsufficientPosition {} < {}", shares(*available), shares(*requested))
        }
        Reject::StaleQuote { age_ms, max_age_ms } => format!("StaleQuote {age_ms} > {max_age_ms}"),
        Reject::NoExecutableDepth { .. } => "NoExecutableDepth".to_owned(),
        Reject::InsufficientLiquidity { .. } => "InsufficientLiquidity".to_owned(),
        Reject::FokNotFilled { fillable, requested, limit, .. } => {
            let limit = text(Cash(i64::from(limit.0) * 100));
            format!("FokNotFilled {} < {} at {limit}", shares(*fillable), shares(*requested))
        }
        Reject::InsufficientBalance { available, required } => {
            format!("InsufficientBalance {} < {}", text(*available), text(*required))
        }
        other => format!("{other:?}"),
    }
}

/// A decimal without trailing zeros.
pub fn text(cash: Cash) -> String {
    let sign = if cash.0 < 0 { "-" } else { "" };
    sign.to_owned() + &shares(Qty(cash.0.unsigned_abs()))
}

pub fn shares(qty: Qty) -> String {
    let text = format!("{}.{:06}", qty.0 / 1_000_000, qty.0 % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn micros(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = format!("{part:0<6}");
    whole.parse::<u64>().expect("a number") * 1_000_000 + part.parse::<u64>().expect("at most six decimals")
}

fn number(text: &str) -> u64 {
    text.parse().expect("a whole number")
}

fn qty(text: &str) -> Qty {
    Qty(micros(text))
}

fn cash(text: &str) -> Cash {
    Cash(micros(text) as i64)
}

fn price(text: &str) -> Price {
    Price((micros(text) / 100) as u16)
}

fn level(text: &str) -> (Price, Qty) {
    let (at, size) = text.split_once('x').expect("PRICExSIZE");
    (price(at), qty(size))
}

fn token(name: &str) -> InstrumentId {
    let outcome = if name.starts_with('Y') { Outcome::First } else { Outcome::Second };
    let market = if name.len() > 1 { number(&name[1..]) } else { 0 };
    MarketId(market as u32).instrument(outcome)
}

fn tier(name: &str) -> Tier {
    match name {
        "pro" => Tier::Pro,
        "pro_plus" => Tier::ProPlus,
        "enterprise" => Tier::Enterprise,
        _ => Tier::Free,
    }
}

fn span(text: &str) -> u64 {
    let digits = text.trim_end_matches(char::is_alphabetic);
    number(digits)
        * match &text[digits.len()..] {
            "us" => 1,
            "ms" => MILLISECOND,
            "h" => 3_600 * SECOND,
            _ => SECOND,
        }
}
