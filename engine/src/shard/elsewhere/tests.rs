//! Two states get the same facts; rows leave the memory of one of them at random. Every query about it, completed with
//! those rows, has the answer of the other.

use super::*;
use crate::command::{EpisodeSpan, Episodes, FillFilter, FillSpan, MarketFilter, OrderFilter, Query, Statuses};
use crate::command::{VenueFilter, Wallets};
use crate::departed::{EndedRequest, Leaving};
use crate::fact;
use crate::id::MarketId;
use crate::mutation::Mutation;
use crate::order::row::NO_FILL;
use crate::order::row::tests::resting_order;
use crate::order::{CloseReason, Fill, Order, Side, Status, TimeInForce};
use crate::reject::Reject;
use crate::rules::Rules;
use crate::shard::minutes::Minutes;
use crate::shard::query;
use crate::time::UtcDay;
use crate::user::alerts::About;
use crate::user::placement_cash::AtPlacement;
use crate::user::sample::{Dice, Sample};
use crate::user::{Remembered, Users, WalletKind};
use crate::view::AboutView;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

mod cut;
mod hints;
mod lost;

/// The rows of one user that have left memory.
#[derive(Clone, Debug, Default)]
struct Store {
    orders: BTreeMap<OrderId, EndedOrder>,
    fills: BTreeMap<TradeId, OrderId>,
    positions: BTreeMap<PositionId, Position>,
    requests: BTreeMap<OrderId, (String, Remembered)>,
    fault: Option<Fault>,
    /// The first day that is kept.
    cut: UtcDay,
    /// Rows that were read.
    read: Cell<usize>,
}

/// A planted fault of the store.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Lost(u64),
    Twice(u64),
}

impl Store {
    /// Notes what leaves, as a store would: without links to rows of memory.
    fn note(&mut self, user: &User, leaving: &Leaving) {
        for id in &leaving.orders {
            let order = user.order(*id).expect("it is in memory");
            let (mut order, mut fills) = (order.clone(), user.fills_of(order).to_vec());
            order.last_fill = NO_FILL;
            fills.iter_mut().for_each(|fill| fill.before = NO_FILL);
            if let Some(known) = user.request_of(*id) {
                let text = known.id(&order).expect("a request has an id").to_owned();
                self.requests.insert(*id, (text, known.clone()));
            }
            self.fills.extend(fills.iter().map(|fill| (fill.id, *id)));
            self.orders.insert(*id, EndedOrder { order, fills });
        }
        for id in &leaving.positions {
            self.positions.insert(*id, user.position(*id).expect("it is in memory").clone());
        }
    }

    fn is_cut(&self, row: &EndedOrder) -> bool {
        row.order.ended_at().is_some_and(|at| at.day() < self.cut)
    }

    fn is_closed_before(&self, position: &Position) -> bool {
        position.closed_at.is_some_and(|at| at.day() < self.cut)
    }

    /// How often a list returns a row.
    fn times(&self, id: u64) -> usize {
        self.read.set(self.read.get() + 1);
        match self.fault {
            Some(Fault::Lost(lost)) if lost == id => 0,
            Some(Fault::Twice(twice)) if twice == id => 2,
            _ => 1,
        }
    }

    fn rows<'a, T: Clone + 'a>(
        &'a self,
        rows: impl Iterator<Item = (u64, T)> + 'a,
    ) -> impl Iterator<Item = Result<T, Infallible>> + 'a {
        rows.flat_map(|(id, row)| std::iter::repeat_n(Ok(row), self.times(id)))
    }
}

impl Departed for Store {
    type Error = Infallible;

    fn kept_from(&self) -> UtcDay {
        self.cut
    }

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, Infallible> {
        Ok(self.orders.get(&id).filter(|row| !self.is_cut(row) && self.times(id.0) > 0).cloned())
    }

    fn position(&self, id: PositionId) -> Result<Option<Position>, Infallible> {
        Ok(self.positions.get(&id).filter(|row| !self.is_closed_before(row) && self.times(id.0) > 0).cloned())
    }

    fn orders(
        &self,
        market: Option<MarketId>,
        before: Option<OrderId>,
    ) -> impl Iterator<Item = Result<EndedOrder, Infallible>> {
        let below = self.orders.range(..before.unwrap_or(OrderId(u64::MAX))).rev();
        let of_market = move |row: &EndedOrder| {
            !self.is_cut(row) && market.is_none_or(|only| row.order.terms.instrument.market() == only)
        };
        self.rows(below.filter(move |(_, row)| of_market(row)).map(|(id, row)| (id.0, row.clone())))
    }

    fn fills(&self, before: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), Infallible>> {
        let below = self.fills.range(..before.unwrap_or(TradeId(u64::MAX))).rev();
        let below = below.filter(|(_, order)| !self.is_cut(&self.orders[order]));
        self.rows(below.map(|(id, order)| {
            let EndedOrder { order, fills } = &self.orders[order];
            let fill = fills.iter().find(|fill| fill.id == *id).expect("its order has it");
            (id.0, (fill.clone(), order.clone()))
        }))
    }

    fn positions(&self, before: Option<PositionId>) -> impl Iterator<Item = Result<Position, Infallible>> {
        let below = self.positions.range(..before.unwrap_or(PositionId(u64::MAX))).rev();
        let below = below.filter(|(_, row)| !self.is_closed_before(row));
        self.rows(below.map(|(id, row)| (id.0, row.clone())))
    }

    fn request(&self, client_order_id: &str) -> Result<Option<EndedRequest>, Infallible> {
        let newest = self.requests.iter().rev().filter(|(_, (id, _))| id == client_order_id);
        let mut newest = newest.filter(|(order, _)| !self.is_cut(&self.orders[order]));
        let ended = |(order, (_, request)): (&OrderId, &(String, Remembered))| EndedRequest {
            request: request.clone(),
            order: self.orders[order].clone(),
        };
        Ok(newest.next().filter(|(id, _)| self.times(id.0) > 0).map(ended))
    }

    fn request_of(&self, order: &Order) -> Result<Option<Remembered>, Infallible> {
        Ok(self.requests.get(&order.id).map(|(_, request)| request.clone()))
    }

    fn signed_order(&self, hash: &[u8; 32]) -> Result<Option<OrderId>, Infallible> {
        let mut found = self.orders.values().filter(|row| row.order.terms.order_hash() == Some(hash));
        Ok(found.next().map(|row| row.order.id).filter(|id| self.times(id.0) > 0))
    }
}

/// Twin states, and what has left the memory of the second.
struct Twins {
    sample: Sample,
    whole: Users,
    split: Users,
    stores: BTreeMap<UserId, Store>,
    rules: Rules,
    minutes: Minutes,
}

impl Twins {
    fn new(seed: u64) -> Twins {
        Twins {
            sample: Sample::new(seed, 3, 14).extending(seed % 2 == 1),
            whole: Users::default(),
            split: Users::default(),
            stores: BTreeMap::new(),
            rules: Rules::default(),
            minutes: Minutes::default(),
        }
    }

    /// One more record; now and then rows leave, and some are stored that do not leave yet.
    fn step(&mut self) {
        let (owner, facts) = self.sample.record();
        for fact in &facts {
            self.whole.apply(owner, fact);
            self.split.apply(owner, fact);
        }
        let dice = &mut self.sample.dice;
        if dice.chance(4) {
            let ended_before = Timestamp(self.sample.now.0 - dice.below(40) * crate::time::HOUR);
            let rows_max = dice.pick(&[0, 3, 40, 1_000]) as usize;
            let percent = dice.pick(&[100, 100, 60]);
            for mut leaving in self.split.leaving(ended_before, rows_max) {
                let user = self.split.get(leaving.user).expect("it has rows");
                let store = self.stores.entry(leaving.user).or_default();
                // Rows of a move are dropped piece by piece: until then the store and memory have them.
                if dice.chance(50) {
                    store.note(user, &leaving);
                }
                leaving.orders.retain(|_| dice.chance(percent));
                leaving.positions.retain(|_| dice.chance(percent));
                store.note(user, &leaving);
                self.split.depart(&leaving);
            }
        }
    }

    /// The answers of both states; `true`: rows were read that had left.
    fn ask(&self, owner: UserId, query: &Query, store: &Store) -> (String, String, bool) {
        let answer = |users: &Users| {
            let user = users.get(owner).expect("it was created");
            query::answer(user, query.clone(), &self.minutes, &self.rules, (self.sample.now, UtcDay(0)))
        };
        let whole = answer(&self.whole).unwrap_or_else(|_| panic!("nothing has left: {query:?}"));
        match answer(&self.split) {
            Ok(found) => (text(&whole), text(&found), false),
            Err(rest) => {
                let Ok(found) = Elsewhere::new(owner, 0, rest).complete(store);
                (text(&whole), text(&found), true)
            }
        }
    }
}

/// An answer without the links between rows of memory.
fn text(answer: &Answer) -> String {
    unlinked(format!("{answer:?}"))
}

fn unlinked(mut text: String) -> String {
    for name in ["last_fill: ", "before: "] {
        let mut parts = text.split(name);
        let first = parts.next().unwrap_or_default().to_owned();
        text = parts.fold(first, |all, part| all + name + part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// The kinds of queries that may need rows that have left, and some that do not.
const KINDS: [&str; 14] = [
    "order",
    "client id",
    "signed",
    "hashes",
    "orders",
    "positions",
    "fills",
    "fill span",
    "episodes",
    "venue orders",
    "venue trades",
    "facts",
    "account",
    "equity",
];

/// The id of an object of the user, or of a few that will be.
fn any_object(dice: &mut Dice, user: &User) -> u64 {
    let prefixes: Vec<UserId> = user.prefixes().collect();
    let prefix = if prefixes.len() == 1 { user.id } else { dice.pick(&prefixes) };
    prefix.object(dice.below(u64::from(user.numbers_used()) + 3) as u32)
}

/// A query of a kind, about objects that the user has or had, and others.
fn query_of(kind: usize, dice: &mut Dice, user: &User, now: Timestamp, remembered: &[(String, OrderId)]) -> Query {
    let any_order = |dice: &mut Dice| {
        let orders: Vec<OrderId> = user.orders().iter().map(|order| order.id).collect();
        match orders.is_empty() || dice.chance(5) {
            true => OrderId(any_object(dice, user)),
            false => dice.pick(&orders),
        }
    };
    let wallets = match dice.below(5) {
        0 => Wallets::Api,
        1 => Wallets::All,
        2 => Wallets::One(user.wallets[dice.below(user.wallets.len() as u64) as usize].id),
        _ => Wallets::Any,
    };
    let market = MarketId(dice.below(7) as u32);
    let filter = match dice.below(5) {
        0 => Some(MarketFilter::Only(market)),
        1 => dice.chance(10).then_some(MarketFilter::Unknown),
        _ => None,
    };
    let side = dice.chance(30).then(|| dice.pick(&[Side::Buy, Side::Sell]));
    let status = |dice: &mut Dice| dice.pick(&[Status::Pending, Status::Filled, Status::Cancelled, Status::Expired]);
    let moment = |dice: &mut Dice| match dice.chance(50) {
        true => Timestamp(now.0 - dice.below(now.0 - user.created_at.0 + 1)),
        false => user.order(any_order(dice)).map_or(now, |order| order.created_at),
    };
    let limit = dice.pick(&[1, 2, 5, 50, 1_000]);
    let offset = dice.pick(&[0, 0, 0, 1, 7, 60, 5_000]);
    match kind {
        0 => Query::Order(any_order(dice)),
        1 => Query::OrderByClientId(match remembered.is_empty() || dice.chance(5) {
            true => "never sent".to_owned(),
            false => remembered[dice.below(remembered.len() as u64) as usize].0.clone(),
        }),
        2 => Query::SignedOrders(
            (0..dice.below(6))
                .map(|_| {
                    let order = user.order(any_order(dice)).and_then(|order| order.terms.order_hash().copied());
                    order.unwrap_or([dice.below(3) as u8; 32])
                })
                .collect(),
        ),
        3 => Query::OrderHashes((0..dice.below(6)).map(|_| any_order(dice)).collect()),
        4 => {
            let after = dice.chance(40).then(|| {
                let id = any_order(dice);
                let at = user.order(id).map_or(now, |order| order.created_at);
                (if dice.chance(10) { moment(dice) } else { at }, id)
            });
            let status = dice.chance(40).then(|| status(dice));
            Query::Orders(OrderFilter { wallets, status, market: filter, side, after, offset, limit })
        }
        5 => Query::Positions {
            wallets,
            market: dice.chance(20).then_some(market),
            open: dice.chance(60).then(|| dice.chance(30)),
            closed_max: dice.pick(&[usize::MAX, usize::MAX, 0, 1, 4]),
        },
        6 => Query::Fills(FillFilter { wallets, market: filter, side, offset, limit }),
        7 => {
            let (one, other) = (moment(dice), moment(dice));
            let (from, to) = match dice.below(4) {
                0 => (Timestamp(0), Timestamp(u64::MAX)),
                _ => (one.min(other), one.max(other)),
            };
            let fills: Vec<TradeId> = user.fills().iter().map(|fill| fill.id).collect();
            let before = (dice.chance(40) && !fills.is_empty()).then(|| dice.pick(&fills));
            Query::FillSpan(FillSpan { wallets, market: filter, from, to, before, limit, limit_elsewhere: 0 })
        }
        8 => {
            let positions: Vec<PositionId> = user.positions().iter().map(|position| position.id).collect();
            let before = (dice.chance(40) && !positions.is_empty()).then(|| dice.pick(&positions));
            let (one, other) = (moment(dice), moment(dice));
            let which = match dice.below(4) {
                0 | 1 => Episodes::All,
                2 => Episodes::Closed,
                _ => Episodes::Settled { from: one.min(other), to: one.max(other) },
            };
            Query::EpisodeSpan(EpisodeSpan { wallets, market: filter, which, before, limit, limit_elsewhere: 0 })
        }
        9 | 10 => {
            let id = |dice: &mut Dice| match kind {
                9 => any_order(dice).0,
                _ => any_object(dice, user),
            };
            let statuses = dice.pick(&[Statuses::ALL, Statuses::ALL, Statuses::OPEN, Statuses::of(&[Status::Filled])]);
            let filter = VenueFilter {
                wallets,
                statuses,
                market: dice.chance(20).then_some(market),
                instrument: dice.chance(10).then(|| InstrumentId(dice.below(14) as u32)),
                only: dice.chance(15).then(|| id(dice)),
                since: dice.chance(20).then(|| moment(dice)),
                until: dice.chance(20).then(|| moment(dice)),
                after: dice.chance(40).then(|| (moment(dice), id(dice))),
                limit,
            };
            if kind == 9 { Query::VenueOrders(filter) } else { Query::VenueTrades(filter) }
        }
        11 => {
            let after = user.order_facts.saturating_sub(dice.below(user.order_facts.min(1_100) + 2));
            Query::Facts { after, limit }
        }
        12 => Query::Account { wallets },
        _ => Query::Equity { wallets, first: 0 },
    }
}

/// Runs `check` with queries about all users after each of many records.
fn with_queries(seeds: std::ops::Range<u64>, mut check: impl FnMut(&Twins, UserId, usize, &Query)) {
    for seed in seeds {
        let (mut twins, mut dice) = (Twins::new(seed), Dice(seed + 1_000));
        for step in 0..1_500 {
            twins.step();
            if step < 100 || step % 10 > 0 {
                continue;
            }
            for user in twins.whole.iter() {
                let remembered = &twins.sample.users[&user.id].remembered;
                for kind in 0..KINDS.len() {
                    let query = query_of(kind, &mut dice, user, twins.sample.now, remembered);
                    check(&twins, user.id, kind, &query);
                }
            }
        }
    }
}

#[test]
fn an_answer_is_the_same_wherever_its_rows_are() {
    let (mut cases, mut completed, mut twice) = ([0; KINDS.len()], [0; KINDS.len()], 0);
    let nothing = Store::default();
    with_queries(0..6, |twins, owner, kind, query| {
        let store = twins.stores.get(&owner).unwrap_or(&nothing);
        let (whole, found, is_completed) = twins.ask(owner, query, store);
        assert_eq!(found, whole, "{query:?}");
        cases[kind] += 1;
        completed[kind] += usize::from(is_completed);
        let here = twins.split.get(owner).expect("it was created");
        twice += usize::from(is_completed && store.orders.keys().any(|id| here.order(*id).is_some()));
    });
    println!("{twice} of these cases with rows that memory has, too");
    for (name, (cases, completed)) in KINDS.iter().zip(cases.iter().zip(completed)) {
        println!("{name}: {cases} cases, {completed} of them with rows that left");
    }
    // The last two never need such rows.
    assert!(cases.iter().all(|count| *count > 2_000), "{cases:?}");
    assert!(completed[..12].iter().all(|count| *count > 100), "{completed:?}");
    assert_eq!(completed[12..], [0, 0]);
    assert!(twice > 1_000, "{twice}");
}

/// The rows of a traversal that begins with this query, and those of each page.
fn traversed(mut query: Query, ask: impl Fn(&Query) -> Answer) -> (Vec<String>, Vec<usize>) {
    let (mut rows, mut pages) = (Vec::new(), Vec::new());
    loop {
        let (found, next): (Vec<String>, _) = match ask(&query) {
            Answer::FillSpan(page) => (page.rows.iter().map(|row| unlinked(format!("{row:?}"))).collect(), page.next),
            Answer::EpisodeSpan(page) => (page.rows.iter().map(|row| format!("{row:?}")).collect(), page.next),
            other => panic!("{other:?}"),
        };
        pages.push(found.len());
        rows.extend(found);
        match (&mut query, next) {
            (_, None) => return (rows, pages),
            (Query::FillSpan(span), Some(next)) => span.before = Some(TradeId(next)),
            (Query::EpisodeSpan(span), Some(next)) => span.before = Some(PositionId(next)),
            (other, _) => panic!("{other:?}"),
        }
    }
}

/// Pages that are longer where rows have left memory show the same rows as short ones of memory, each of them once.
#[test]
fn long_pages_have_the_rows_of_short_ones() {
    let (mut cases, mut longer, mut bounded) = (0, 0, 0);
    let nothing = Store::default();
    with_queries(19..22, |twins, owner, kind, query| {
        let (mut query, mut dice) = (query.clone(), Dice(twins.sample.now.0));
        let (limit, limit_elsewhere) = match &mut query {
            Query::FillSpan(span) => (&mut span.limit, &mut span.limit_elsewhere),
            Query::EpisodeSpan(span) => (&mut span.limit, &mut span.limit_elsewhere),
            _ => return,
        };
        (*limit, *limit_elsewhere) = (dice.pick(&[1, 2, 5, 20]), dice.pick(&[1, 7, 40, 1_000]));
        let (short, long) = (*limit, (*limit).max(*limit_elsewhere));
        let store = twins.stores.get(&owner).unwrap_or(&nothing);
        let answer = |users: &Users, query: &Query| {
            let user = users.get(owner).expect("it was created");
            query::answer(user, query.clone(), &twins.minutes, &twins.rules, (twins.sample.now, UtcDay(0)))
        };
        if matches!(answer(&twins.whole, &query), Ok(Answer::Refused(_))) {
            return;
        }
        let (whole, of_memory) = traversed(query.clone(), |query| {
            answer(&twins.whole, query).unwrap_or_else(|_| panic!("nothing has left: {query:?}"))
        });
        let (split, pages) = traversed(query.clone(), |query| match answer(&twins.split, query) {
            Ok(answer) => answer,
            Err(rest) => {
                let Ok(answer) = Elsewhere::new(owner, 0, rest).complete(store);
                answer
            }
        });
        assert_eq!(split, whole, "{query:?}");
        assert!(of_memory.iter().all(|rows| *rows <= short) && pages.iter().all(|rows| *rows <= long), "{query:?}");
        assert!(pages.len() <= of_memory.len(), "{query:?}");
        cases += 1;
        longer += usize::from(pages.iter().any(|rows| *rows > short));
        // Not as long as it may be, because of rows of memory that were not visited.
        bounded += usize::from(pages.iter().rev().skip(1).any(|rows| (short + 1..long).contains(rows)));
        assert!(kind == 7 || kind == 8);
    });
    println!("traversals: {cases} cases, {longer} with long pages, {bounded} of them bounded by rows of memory");
    assert!(cases > 1_000 && longer > 300 && bounded > 20, "{cases} {longer} {bounded}");
}

/// The orders of a store that a query names.
fn named(query: &Query, store: &Store) -> Vec<u64> {
    let orders: Vec<OrderId> = match query {
        Query::Order(id) => vec![*id],
        Query::OrderHashes(ids) => ids.clone(),
        Query::OrderByClientId(text) => {
            store.requests.iter().filter(|(_, (id, _))| id == text).map(|(order, _)| *order).collect()
        }
        Query::SignedOrders(hashes) => {
            let has = |row: &EndedOrder| row.order.terms.order_hash().is_some_and(|hash| hashes.contains(hash));
            store.orders.values().filter(|row| has(row)).map(|row| row.order.id).collect()
        }
        _ => Vec::new(),
    };
    orders.into_iter().filter(|id| store.orders.contains_key(id)).map(|id| id.0).collect()
}

/// A store that loses one row, or returns it twice, is found by every kind of query that lists such rows.
#[test]
fn a_row_lost_or_twice_is_found() {
    let mut found = BTreeMap::<(usize, bool), usize>::new();
    with_queries(6..8, |twins, owner, kind, query| {
        let Some(store) = twins.stores.get(&owner) else { return };
        let ids: Vec<u64> = match kind {
            5 | 8 => store.positions.keys().map(|id| id.0).collect(),
            6 | 7 | 10 => store.fills.keys().map(|id| id.0).collect(),
            _ => store.orders.keys().map(|id| id.0).collect(),
        };
        if ids.is_empty() {
            return;
        }
        // A query for single rows finds a fault in one of them.
        let named = named(query, store);
        let ids = if named.is_empty() { ids } else { named };
        let mut dice = Dice(ids.len() as u64 ^ twins.sample.now.0);
        for fault in [Fault::Lost(dice.pick(&ids)), Fault::Twice(dice.pick(&ids))] {
            let faulty = Store { fault: Some(fault), ..store.clone() };
            let (whole, shown, _) = twins.ask(owner, query, &faulty);
            if shown != whole {
                *found.entry((kind, matches!(fault, Fault::Lost(_)))).or_default() += 1;
            }
        }
    });
    println!("planted faults found, by kind and whether the row was lost: {found:?}");
    let lists = [4, 5, 6, 7, 8, 9, 10];
    let missed: Vec<_> = lists.into_iter().flat_map(|kind| [(kind, true), (kind, false)]).collect();
    assert!(missed.iter().all(|kind| found.contains_key(kind)), "{found:?}");
    assert!([0, 1, 2, 3, 11].iter().all(|kind| found.contains_key(&(*kind, true))), "{found:?}");
}

/// Rows of memory above all that left need no store, nor does a user without rows that left.
#[test]
fn recent_rows_need_no_store() {
    let (mut recent, mut unneeded, mut seen) = (0, 0, BTreeSet::new());
    with_queries(8..13, |twins, owner, kind, query| {
        let is_asked = twins.ask(owner, query, twins.stores.get(&owner).unwrap_or(&Store::default())).2;
        let user = twins.split.get(owner).expect("it was created");
        if !user.has_departed_rows() {
            assert!(!is_asked, "{query:?}");
            unneeded += 1;
        }
        let highest = Gone::of(user).orders;
        let Query::Order(id) = query else { return };
        if let Some(order) = user.order(*id)
            && user.request_of(*id).is_some()
            && order.created_at >= twins.rules.ids_since(twins.sample.now)
        {
            assert!(!is_asked, "{query:?}");
            recent += 1;
            seen.insert((kind, highest.is_some_and(|highest| *id < highest)));
        }
    });
    println!("queries without the store: {unneeded} of users without such rows, {recent} of orders with requests");
    assert!(unneeded > 50 && recent > 50 && seen.len() == 2, "{unneeded} {recent} {seen:?}");
}

/// The cash after a placement, where no request has it, is computed from the same facts and rows wherever they are.
#[test]
fn cash_after_a_placement_is_the_same_wherever_its_rows_are() {
    let (mut in_memory, mut elsewhere, mut known, nothing) = (0, 0, 0, Store::default());
    // No request is of this moment or later.
    let since = Timestamp(u64::MAX);
    with_queries(13..17, |twins, owner, _, query| {
        let Query::Order(id) = query else { return };
        let (whole, split) = (twins.whole.get(owner).expect("created"), twins.split.get(owner).expect("created"));
        let store = twins.stores.get(&owner).unwrap_or(&nothing);
        // Of all orders, so that old ones are not the only ones.
        for order in whole.orders().iter().rev().step_by(7).chain(whole.order(*id)) {
            let expected = whole.available_at_placement(order, since).known();
            let undone = match split.order(order.id) {
                Some(row) => match split.available_at_placement(row, since) {
                    AtPlacement::Known(found) => {
                        assert_eq!(found, expected, "{order:?}");
                        in_memory += 1;
                        continue;
                    }
                    AtPlacement::Part(undone) => undone,
                },
                None => split.undone_since(order.id),
            };
            let Ok(found) = undone.complete(order, store);
            assert_eq!(found, expected, "{order:?}");
            elsewhere += 1;
            known += usize::from(found.is_some());
        }
    });
    println!("cash after a placement: {in_memory} from memory, {elsewhere} with rows that left, {known} of them known");
    assert!(in_memory > 100 && known > 500, "{in_memory} {elsewhere} {known}");
}

/// Alerts about orders, fills and positions that have left memory show them.
#[test]
fn alerts_show_rows_that_left() {
    let (mut cases, nothing) = (0, Store::default());
    with_queries(17..19, |twins, owner, kind, _| {
        if kind > 0 {
            return;
        }
        let split = twins.split.get(owner).expect("created");
        let store = twins.stores.get(&owner).unwrap_or(&nothing);
        // Some that are stored are in memory yet.
        let order = store.orders.keys().rev().find(|id| split.order(**id).is_none());
        let position = store.positions.keys().rev().find(|id| split.position(**id).is_none());
        let fill = store.fills.iter().rev().find(|(_, order)| split.order(**order).is_none());
        let abouts = [
            order.map(|id| About::Order(*id)),
            fill.map(|(trade, order)| About::Fill { order: *order, trade: *trade }),
            position.map(|id| About::Position(*id)),
        ];
        for about in abouts.into_iter().flatten() {
            let whole = alerts::about(twins.whole.get(owner).expect("created"), &about);
            assert!(matches!(alerts::about(split, &about), AboutView::Gone) && alerts::may_have_left(split, &about));
            let Ok(found) = alerts::about_departed(&about, store);
            assert_eq!(unlinked(format!("{:?}", found.expect("it left"))), unlinked(format!("{whole:?}")));
            cases += 1;
        }
    });
    println!("alerts about rows that left: {cases} cases");
    assert!(cases > 500);
}
