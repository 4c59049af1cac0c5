//! A shard: a set of users with one writer. It takes commands, decides, applies, and hands over records and answers.
//!
//! ```text
//! envelope ─► decide ─► facts ─► apply ─► one record ─► notices ─► answer
//! ```
//!
//! [`Shard::take`] runs one command (inline layout); [`Shard::turn`] drains a ring and continues work that is larger
//! than one turn: prints, the matching cycle, settlements, long sweeps. Both are calculations: time is an argument, and
//! records and answers go to the [`Outbox`], which releases a result only after the records it depends on. A query that
//! needs rows which have left memory is answered in part ([`elsewhere`]). Not here: the thread of a shard, the destination
//! of records, the clients that wait for answers.

mod admission;
mod alerts;
mod backtests;
mod beats;
mod billing;
pub mod bound;
pub mod cycle;
mod departing;
pub mod digest;
pub mod elsewhere;
mod emptying;
pub mod facts;
mod history;
mod hourly;
mod line;
mod lists;
mod lookups;
mod minutes;
mod pages;
mod placing;
mod prints;
pub mod query;
mod queues;
mod rebates;
pub(crate) mod repeats;
pub mod replay;
pub mod snapshot;
mod sweep;
mod venue;
mod wanted;

use crate::book::Books;
use crate::command::{Answer, Command, Envelope, Query, Sweeps};
use crate::decide::cancel::Scope;
use crate::decide::take::Desk;
use crate::decide::{alerts as decide_alerts, keys, numbers, wallets};
use crate::departed::KeptFrom;
use crate::directory::Directory;
use crate::fact;
use crate::fee::FeeSource;
use crate::id::UserId;
use crate::look_up::Findings;
use crate::look_up::filters::Filters;
use crate::market::catalog::Catalog;
use crate::mutation::{Mutation, codec};
use crate::notice::{Notice, OrderFact};
use crate::order::Liquidity;
use crate::print::Evidence;
use crate::queue::of_bps;
use crate::reject::Reject;
use crate::ring::Ring;
use crate::rules::{REQUESTS_FORGOTTEN_PER_TURN_MAX, Rules};
use crate::time::Timestamp;
use crate::user::{User, Users};
use bound::EndedBound;
use cycle::Cycles;
use departing::Departing;
use elsewhere::{Asked, Elsewhere};
use emptying::Emptying;
use hourly::Hourly;
use line::Line;
use minutes::Minutes;
use prints::Prints;
use queues::Queues;
use std::collections::VecDeque;
use std::sync::Arc;
use sweep::{Settling, Sweep};

/// Maximum count of commands that one turn takes from its ring.
const COMMANDS_PER_TURN_MAX: usize = 256;
/// Commands that are prefetched together before they run: an order mostly waits for memory, one access after the other,
/// and the waits of a group overlap.
const COMMANDS_AHEAD: usize = 16;

/// The space left in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Ample,
    /// Reserved for commands that reduce risk: cancels, revocations, heartbeats, settlement.
    ReserveOnly,
    None,
}

/// Receives a shard's results in order: an answer or notice depends on all records before it.
pub trait Outbox<R> {
    fn room(&self) -> Room;
    /// Format of the records' payloads.
    fn version(&self) -> u16 {
        codec::VERSION
    }
    /// The facts of one command about one user. `payload` is read before the call returns.
    fn record(&mut self, owner: UserId, now: Timestamp, payload: &[u8]);
    fn notice(&mut self, notice: Notice);
    fn answer(&mut self, reply: R, answer: Answer);
    /// An answer that does not depend on any record, and so need not wait for one.
    fn answer_at_once(&mut self, reply: R, answer: Answer) {
        self.answer(reply, answer);
    }
    /// A user is owed alerts that it was not owed before; their record may not be released yet.
    fn owes(&mut self, _owner: UserId) {}
    /// When the oldest unreleased record of this shard's users was made; an outbox that releases immediately has none.
    fn oldest_unreleased(&mut self) -> Option<Timestamp> {
        None
    }
    /// The same for the records of one user. Searches all unreleased records.
    fn oldest_unreleased_of(&mut self, _owner: UserId) -> Option<Timestamp> {
        None
    }
}

/// The shard of a user, of `count` shards. Ids come from one counter, so users are spread evenly.
pub fn shard_of(owner: UserId, count: usize) -> usize {
    (owner.0 % count.max(1) as u64) as usize
}

/// One shard. `R` is the destination of an answer.
pub struct Shard<R> {
    index: usize,
    count: usize,
    users: Users,
    rules: Arc<Rules>,
    books: Arc<Books>,
    catalog: Arc<Catalog>,
    directory: Arc<Directory>,
    /// Over the names of orders that have left memory.
    filters: Option<Arc<dyn Filters>>,
    /// Latest time passed in; never goes back.
    now: Timestamp,
    desk: Desk,
    /// Facts of the current command.
    facts: Vec<Mutation>,
    notices: Vec<Notice>,
    /// They raised alerts.
    owes: bool,
    /// Their user needs another prefix for its object numbers.
    ends_numbers: bool,
    /// Retained order facts of all users.
    order_facts: usize,
    /// The user of the present facts has many of them, and all users have too many.
    cuts_order_facts: bool,
    /// The applied ones of them, as bytes.
    record: Vec<u8>,
    /// Commands that were popped and run next; empty between turns.
    ahead: Vec<Envelope<R>>,
    line: Line<R>,
    sweeps: VecDeque<Sweep<R>>,
    emptyings: VecDeque<Emptying<R>>,
    settlings: VecDeque<Settling<R>>,
    prints: Prints<R>,
    queues: Queues,
    /// What fills the orders of the present facts, unless they are takers.
    evidence: Evidence,
    cycles: Cycles<R>,
    /// The sweeps of the last cycle.
    last_sweeps: Sweeps,
    hourly: Hourly,
    minutes: Minutes,
    departing: Departing,
    /// Of memory for ended rows.
    ended_bound: Option<Arc<EndedBound>>,
    /// Rows that have left memory count from this day on.
    kept_from: KeptFrom,
    /// Requests are due to leave memory; looked at with every cycle that sweeps by server time.
    forgets: bool,
}

impl<R> Shard<R> {
    /// A shard with the recovered users of shard `index` of `count`.
    ///
    /// # Panics
    /// When a user belongs to another shard.
    pub fn new(
        index: usize,
        count: usize,
        mut users: Users,
        rules: Arc<Rules>,
        books: Arc<Books>,
        catalog: Arc<Catalog>,
        directory: Arc<Directory>,
    ) -> Shard<R> {
        users.watch(&books);
        for user in users.iter() {
            assert!(shard_of(user.id, count) == index, "a user is in its shard: {} in {index} of {count}", user.id);
        }
        let queues = Queues::recovered(&users, &rules, &books);
        let order_facts = users.iter().map(User::order_facts_kept).sum();
        Shard {
            index,
            count,
            users,
            rules,
            books,
            catalog,
            directory,
            filters: None,
            now: Timestamp(0),
            desk: Desk::default(),
            facts: Vec::new(),
            notices: Vec::new(),
            owes: false,
            ends_numbers: false,
            order_facts,
            cuts_order_facts: false,
            record: Vec::new(),
            ahead: Vec::with_capacity(COMMANDS_AHEAD),
            line: Line::default(),
            sweeps: VecDeque::new(),
            emptyings: VecDeque::new(),
            settlings: VecDeque::new(),
            prints: Prints::default(),
            queues,
            evidence: Evidence::default(),
            cycles: Cycles::default(),
            last_sweeps: Sweeps::All,
            hourly: Hourly::default(),
            minutes: Minutes::default(),
            departing: Departing::default(),
            ended_bound: None,
            kept_from: KeptFrom::default(),
            forgets: false,
        }
    }

    /// After a recovery: the newest time in the journal. Hours that ended after it have no points of equity yet, and
    /// its own hour may lack some.
    pub fn resume(&mut self, newest: Timestamp) {
        self.hourly.resume(newest);
    }

    /// Lists count rows that have left memory from this day on.
    pub fn count_from(&mut self, kept_from: KeptFrom) {
        self.kept_from = kept_from;
    }

    /// The state, for snapshots, digests and tests.
    pub fn users(&self) -> &Users {
        &self.users
    }

    #[cfg(test)]
    pub(crate) fn users_mut(&mut self) -> &mut Users {
        &mut self.users
    }

    /// Other rules from now on.
    #[cfg(test)]
    pub(crate) fn set_rules(&mut self, rules: Arc<Rules>) {
        self.rules = rules;
    }

    #[cfg(test)]
    pub(crate) fn put_first_in_queues(&mut self) {
        self.queues.put_first();
    }

    #[cfg(test)]
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The index of this shard, and the count of shards.
    pub fn place(&self) -> (usize, usize) {
        (self.index, self.count)
    }

    /// Prefetches what a command of that user will read. Changes nothing.
    pub fn warm(&self, owner: UserId) {
        self.users.warm_one(owner);
    }

    /// Runs one command. Its answer is handed over before this returns, unless the command is larger than a turn: then
    /// [`Shard::turn`] continues it.
    pub fn take(&mut self, envelope: Envelope<R>, now: Timestamp, outbox: &mut impl Outbox<R>) {
        self.reach(now);
        if self.may_be_held_up(envelope.owner, &envelope.command, outbox) {
            return self.line_up(envelope, outbox);
        }
        self.take_now(envelope, outbox);
    }

    /// Runs one command now, ahead of the line of waiting commands.
    #[inline]
    fn take_now(&mut self, envelope: Envelope<R>, outbox: &mut impl Outbox<R>) {
        let Envelope { owner, mut command, received_at, reply } = envelope;
        // A usual command stays where it is: it is large, and moving it costs more than this look.
        let mut found = None;
        if matches!(command, Command::Found(_)) {
            found = self.take_back(owner, &mut command);
            if found.is_none() {
                return outbox.answer_at_once(reply, Answer::Refused(Reject::WaitedTooLong));
            }
        }
        let admitted = self.admit(&command, received_at, outbox).and_then(|()| self.key_usable(owner, &command));
        if admitted.is_ok()
            && let Some(wanted) = self.wanted(owner, &command, found.as_deref())
        {
            return self.hand_back((owner, command), received_at, wanted, reply, outbox);
        }
        // What it changes happens after the start of the hour. The reserve is only for commands that change something.
        let background = matches!(
            command,
            Command::Query(_)
                | Command::Depart(_)
                | Command::CutHistory { .. }
                | Command::NoteKeyUsed { .. }
                | Command::NoteStrict { .. }
                | Command::DeclareAddress { .. }
                | Command::EndLookUp { .. }
        );
        if outbox.room() == Room::Ample || !background {
            self.note_early(owner, outbox);
        }
        self.note_minute_early(owner);
        match admitted {
            Err(reject) => outbox.answer(reply, Answer::Refused(reject)),
            Ok(()) => self.run(owner, command, found.as_deref(), reply, outbox),
        }
    }

    /// Drains `inbox` up to a bound, then does one piece of larger work. True when there is more.
    pub fn turn(&mut self, inbox: &Ring<Envelope<R>>, now: Timestamp, outbox: &mut impl Outbox<R>) -> bool {
        self.reach(now);
        self.note_hour(outbox);
        self.note_minute();
        self.move_line(outbox);
        let mut ahead = std::mem::take(&mut self.ahead);
        for _ in 0..COMMANDS_PER_TURN_MAX / COMMANDS_AHEAD {
            ahead.extend(std::iter::from_fn(|| inbox.pop()).take(COMMANDS_AHEAD));
            if ahead.len() > 1 {
                self.users.warm(ahead.iter().map(|envelope| (envelope.owner, envelope.command.ahead())));
            }
            let were_all = ahead.len() < COMMANDS_AHEAD;
            for envelope in ahead.drain(..) {
                self.take(envelope, now, outbox);
            }
            if were_all {
                break;
            }
            self.note_taken(COMMANDS_AHEAD);
        }
        self.ahead = ahead;
        self.work(outbox) || !inbox.is_empty() || self.line.can_move()
    }

    /// One piece of larger work: points of the hour and the minute before anything changes, then rebates, of which there
    /// are few, then sweeps, because clients wait for them. True when there is more and the log has room for it.
    fn work(&mut self, outbox: &mut impl Outbox<R>) -> bool {
        if outbox.room() == Room::None {
            self.prints.lose_all();
            return false;
        }
        if self.note_hour(outbox) {
            return outbox.room() == Room::Ample;
        }
        if self.note_minute() {
            return true;
        }
        if self.pay_rebates(outbox) {
            return true;
        }
        if let Some(sweep) = self.sweeps.pop_front() {
            self.sweep(sweep, outbox);
        } else if let Some(emptying) = self.emptyings.pop_front() {
            self.empty(emptying, outbox);
        } else if self.prints.is_running() {
            self.meet_prints(outbox);
        } else if let Some(settling) = self.settlings.pop_front() {
            self.settle(settling, outbox);
        } else {
            self.forget();
            self.drop_departed();
            self.note_queues(outbox);
            self.cycle(outbox);
        }
        self.is_busy()
    }

    /// Drops some of the remembered requests whose ids count no longer.
    fn forget(&mut self) {
        if self.forgets {
            let since = self.rules.ids_since(self.now);
            self.forgets = self.users.forget_requests(since, REQUESTS_FORGOTTEN_PER_TURN_MAX);
        }
    }

    fn is_busy(&self) -> bool {
        let sweeping = !self.sweeps.is_empty() || !self.emptyings.is_empty();
        sweeping
            || self.prints.is_running()
            || !self.settlings.is_empty()
            || self.cycles.is_running()
            || self.forgets
            || !self.departing.is_empty()
    }

    /// Whether larger work is in progress or waits: [`Shard::turn`] continues it.
    pub fn has_work(&self) -> bool {
        self.is_busy() || self.hourly.is_due(self.now) || self.is_minute_due() || self.rebates_due().is_some()
    }

    /// Time never goes back, even if the caller's clock does.
    fn reach(&mut self, now: Timestamp) {
        if self.now == Timestamp(0) {
            // Beats are not journaled: every heartbeat gets a fresh interval at the first moment.
            self.users.refresh_safeguards(now);
        }
        self.now = self.now.max(now);
        self.hourly.reach(self.now);
    }

    fn run(
        &mut self,
        owner: UserId,
        command: Command,
        found: Option<&Findings>,
        reply: R,
        outbox: &mut impl Outbox<R>,
    ) {
        let answer = match command {
            Command::Place(mut placement) => {
                let placed = self.place_one(owner, &mut placement, found, outbox);
                let killed = |reject, order| Answer::Killed { reject, order };
                self.answer_placed(owner, placed, found, Answer::Order, killed, Answer::Refused)
            }
            Command::PlaceBatch(placements) => self.place_batch(owner, placements, found, outbox),
            Command::Cancel { order } => self.cancel_one(owner, order, found, outbox),
            Command::CancelOrders { orders } => return self.start_cancels(owner, orders, found, reply, outbox),
            Command::EndLookUp { ticket } => {
                self.line.end_look_up(owner, ticket, self.now);
                Answer::Done
            }
            Command::CancelAll { wallets } => {
                return self.start_sweep(owner, Scope::Everything, wallets, reply, outbox);
            }
            Command::CancelMarket { market, instrument, wallets } => {
                return self.start_sweep(owner, Scope::Of { market, instrument }, wallets, reply, outbox);
            }
            Command::ArchiveWallet { .. } | Command::ResetWallet { .. } | Command::ResetApiWallet { .. } => {
                return self.start_emptying(owner, command, reply, outbox);
            }
            Command::Settle { market } => {
                self.settlings.push_back(Settling::new(market, reply));
                self.work(outbox);
                return;
            }
            Command::MeetPrints => {
                self.prints.wait(reply);
                self.work(outbox);
                return;
            }
            Command::Cycle { venue_now, sweeps } => {
                self.hourly.books_are_there();
                self.cycles.start(venue_now, sweeps, reply);
                // A correction of the clock may make ids count again.
                self.forgets = sweeps.by_server_time();
                self.work(outbox);
                return;
            }
            Command::Depart(departures) => self.depart(departures),
            Command::CutHistory { day } => self.cut_history(day, outbox),
            Command::DeclareAddress { address, declared } => self.declare_address(address, declared, outbox),
            Command::Beat { label, interval_ms } => self.beat(owner, label, interval_ms, outbox),
            Command::BeatByName { shown, next } => self.beat_by_name(owner, shown, next, outbox),
            Command::EndBeats => self.end_beats(owner, outbox),
            Command::CreateBacktest(new) => self.create_backtest(owner, *new, outbox),
            Command::StartBacktest { job } => self.start_backtest(owner, job, outbox),
            Command::EndBacktest { job, result } => self.end_backtest(owner, job, result, outbox),
            Command::NoteCustomer { customer, instead_of } => {
                self.note_customer(owner, customer, instead_of.as_deref(), outbox)
            }
            Command::Bill(event) => self.bill(owner, *event, outbox),
            Command::AddAlertTarget(_)
            | Command::ChangeAlertTarget { .. }
            | Command::RemoveAlertTarget { .. }
            | Command::ChooseMail { .. }
            | Command::NoteAlert { .. }
            | Command::Notify { .. } => self.alert_command(owner, command, outbox),
            Command::Query(query) => {
                if let Query::EquityByMinute { wallets } = query {
                    self.follow(owner, wallets);
                }
                match self.users.get(owner) {
                    Some(user) => {
                        let mut asked =
                            query::answer(user, query, &self.minutes, &self.rules, (self.now, self.kept_from.get()));
                        self.show_queues(&mut asked);
                        self.answered(owner, asked)
                    }
                    None => Answer::Refused(Reject::UserNotFound),
                }
            }
            user_command => self.user_command(owner, user_command, outbox),
        };
        outbox.answer(reply, answer);
    }

    /// The answer to a query, or its part, which the holder of the rows that left memory completes.
    fn answered(&self, owner: UserId, asked: Asked) -> Answer {
        let elsewhere = |rest| Answer::Elsewhere(Box::new(Elsewhere::new(owner, self.users.departed_upto(), rest)));
        asked.unwrap_or_else(elsewhere)
    }

    /// Users, keys and wallets (`decide/keys.rs`, `decide/wallets.rs`).
    fn user_command(&mut self, owner: UserId, command: Command, outbox: &mut impl Outbox<R>) -> Answer {
        if let Command::CreateUser(request) = command {
            if self.users.get(owner).is_none() {
                keys::create(owner, request, self.now, &mut self.facts);
                self.commit(owner, outbox);
            }
            return Answer::Created(owner);
        }
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        let (rules, now, facts) = (&*self.rules, self.now, &mut self.facts);
        let decided = match command {
            Command::SetGrant { tier, expires_at } => {
                keys::grant(user, tier, expires_at, now, facts);
                Ok(UserAnswer::Done)
            }
            Command::IssueKey(request) => keys::issue(user, request, rules, now, facts).map(UserAnswer::Key),
            Command::RenameKey { key, name } => {
                keys::rename(user, key, name, now, facts).map(|()| UserAnswer::Key(key))
            }
            Command::ChooseRealism { key, set } => {
                keys::choose_realism(user, key, set, rules, now, facts).map(|()| UserAnswer::Key(key))
            }
            Command::RotateKey { key, replacement, by: _ } => keys::rotate(user, key, replacement, rules, now, facts)
                .map(|(new, until)| UserAnswer::Rotated(new, until)),
            Command::RevokeKey { key } => keys::revoke(user, key, now, facts).map(|()| UserAnswer::Done),
            Command::NoteKeyUsed { .. } if outbox.room() != Room::Ample => Ok(UserAnswer::Done),
            Command::NoteKeyUsed { key } => keys::note_used(user, key, now, facts).map(|()| UserAnswer::Done),
            Command::NoteStrict { .. } if outbox.room() != Room::Ample => Ok(UserAnswer::Done),
            Command::NoteStrict { key, findings } => {
                keys::note_strict(user, key, &findings, rules, now, facts).map(|()| UserAnswer::Done)
            }
            Command::NoteEmail { email } => {
                keys::note_email(user, email, rules, now, facts);
                Ok(UserAnswer::Done)
            }
            Command::OpenWallet { label, by: _ } => wallets::open(user, label, now, facts).map(UserAnswer::Wallet),
            Command::OpenCompetition { label, balance } => {
                wallets::open_competition(user, label, balance, now, facts).map(UserAnswer::Wallet)
            }
            Command::RelabelWallet { wallet, label } => {
                wallets::relabel(user, wallet, label, now, facts).map(|()| UserAnswer::Wallet(wallet))
            }
            other => unreachable!("{other:?} is not a command about users, keys and wallets"),
        };
        match decided {
            Err(reject) => Answer::Refused(reject),
            Ok(done) => {
                decide_alerts::begin(user, rules, now, facts);
                self.commit(owner, outbox);
                let user = self.users.get(owner).expect("users are never removed");
                match done {
                    UserAnswer::Done => Answer::Done,
                    UserAnswer::Wallet(wallet) => match user.wallet(wallet) {
                        Some(wallet) => Answer::Wallet(Box::new(wallet.clone())),
                        None => Answer::Done,
                    },
                    UserAnswer::Key(key) => {
                        query::key(user, key).map_or(Answer::Done, |view| Answer::Key(Box::new(view)))
                    }
                    UserAnswer::Rotated(key, old_expires_at) => match query::key(user, key) {
                        Some(view) => Answer::Rotated { replacement: Box::new(view), old_expires_at },
                        None => Answer::Done,
                    },
                }
            }
        }
    }

    /// Applies the current facts and hands them over as one record, with their notices.
    fn commit(&mut self, owner: UserId, outbox: &mut impl Outbox<R>) {
        self.enact(owner, 0);
        self.seal(owner, outbox);
    }

    /// Applies the facts from `from` on.
    fn enact(&mut self, owner: UserId, from: usize) {
        codec::encode(self.rules.formats.record(), &self.facts[from..], &mut self.record);
        let mut facts = self.facts[from..].iter();
        if let Some(created @ Mutation::UserCreated(_)) = self.facts.get(from) {
            facts.next();
            self.users.apply(owner, created);
            self.directory.observe(owner, created);
        }
        let Some((user, indexes)) = self.users.get_with_indexes(owner) else {
            assert!(facts.len() == 0, "facts are about created users: user {owner}, {:?}", self.facts);
            return;
        };
        let mut user_seq = user.order_facts;
        let next_alert = user.next_alert();
        self.order_facts -= user.order_facts_kept();
        for fact in facts {
            user.apply(fact, indexes);
            let (order, what, at) = match fact {
                Mutation::OrderPlaced(fact::OrderPlaced { order, at, .. }) => (*order, OrderFact::Placed, *at),
                Mutation::OrderFilled(fact::OrderFilled {
                    order, trade, levels, qty, liquidity, fee_rate, at, ..
                }) => {
                    self.desk.deplete(&self.books, owner, levels);
                    let filled = user.order(*order).expect("a fill was applied to its order");
                    let evidence = if *liquidity == Liquidity::Taker { Evidence::Walk } else { self.evidence };
                    let terms = &filled.terms;
                    self.prints.lane.note_fill(self.rules.fill_of(terms).model, evidence);
                    if !filled.is_open() {
                        self.queues.leave(&self.books, *order);
                    }
                    let instrument = terms.instrument;
                    self.minutes.notice(terms.wallet);
                    let resting = user.last_fill_was_resting();
                    let fee = FeeSource::of_table(*fee_rate);
                    (*order, OrderFact::Filled { trade: *trade, resting, instrument, qty: *qty, fee }, *at)
                }
                Mutation::OrderClosed(fact::OrderClosed { order, at, .. }) => {
                    self.queues.leave(&self.books, *order);
                    (*order, OrderFact::Closed, *at)
                }
                Mutation::QueueNoted(fact::QueueNoted { order, ahead, confidence, at, venue_at }) => {
                    let noted = user.order(*order).expect("an order in a queue was placed");
                    let (fill, place) =
                        (self.rules.fill_of(&noted.terms), (*ahead, of_bps(*confidence), venue_at.unwrap_or(*at)));
                    self.queues.enter(&self.books, noted, fill, place);
                    continue;
                }
                Mutation::FillCharged(_) => {
                    // It follows its fill.
                    if let Some(OrderFact::Filled { fee, .. }) = self.notices.last_mut().map(|notice| &mut notice.what)
                    {
                        *fee = FeeSource::MarketSchedule;
                    }
                    continue;
                }
                Mutation::OrderRested(_) | Mutation::RebateAccrued(_) => continue,
                Mutation::SubscriptionNoted(_) | Mutation::SubscriptionPaid(_) => {
                    self.directory.note_plans(user);
                    continue;
                }
                other => {
                    self.directory.observe(owner, other);
                    continue;
                }
            };
            user_seq += 1;
            self.notices.push(Notice { user: owner, user_seq, order, what, at });
        }
        self.owes |= user.next_alert() > next_alert;
        self.prints.lane.watch(self.queues.levels_count());
        self.ends_numbers |= numbers::are_ending(user, &self.rules);
        let kept = user.order_facts_kept();
        self.order_facts += kept;
        let rules = &self.rules;
        self.cuts_order_facts |=
            self.order_facts > rules.order_facts_max && kept >= 2 * rules.order_facts_left && rules.formats.is_newest();
    }

    /// The user keeps its newest order facts only, with the present record.
    #[cold]
    fn cut_order_facts(&mut self, owner: UserId) {
        let Some(user) = self.users.get(owner) else { return };
        let upto = user.order_facts.saturating_sub(self.rules.order_facts_left as u64);
        let from = self.facts.len();
        self.facts.push(Mutation::OrderFactsCut(fact::OrderFactsCut { upto, at: self.now }));
        self.enact(owner, from);
        self.cuts_order_facts = false;
    }

    /// The user gets a prefix that no other user has, with the present record.
    #[cold]
    fn extend_numbers(&mut self, owner: UserId) {
        let Some(user) = self.users.get(owner).filter(|user| numbers::may_extend(user)) else { return };
        let last = user.prefixes().last();
        // One that is too high, or below the last one: the numbers that are left are used up.
        let Some(prefix) = self.directory.reserve_prefix().filter(|prefix| Some(*prefix) > last) else { return };
        let from = self.facts.len();
        self.facts.push(numbers::extended(prefix, self.now));
        self.enact(owner, from);
        self.ends_numbers = false;
    }

    /// Hands over the applied facts as one record.
    fn seal(&mut self, owner: UserId, outbox: &mut impl Outbox<R>) {
        if self.facts.is_empty() {
            return;
        }
        if std::mem::take(&mut self.ends_numbers) {
            self.extend_numbers(owner);
        }
        if std::mem::take(&mut self.cuts_order_facts) {
            self.cut_order_facts(owner);
        }
        outbox.record(owner, self.now, &self.record);
        self.record.clear();
        for notice in self.notices.drain(..) {
            outbox.notice(notice);
        }
        if std::mem::take(&mut self.owes) {
            outbox.owes(owner);
        }
        // In place: moving a fact costs more than reading it.
        self.facts.iter_mut().for_each(|fact| self.desk.recycle_fact(fact));
        self.facts.clear();
    }
}

/// The content of an answer to a command about users, keys and wallets.
enum UserAnswer {
    Done,
    Wallet(crate::id::WalletId),
    Key(crate::id::KeyId),
    Rotated(crate::id::KeyId, Timestamp),
}
