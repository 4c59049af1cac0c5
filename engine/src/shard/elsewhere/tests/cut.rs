//! The history of one of the twins was cut: its lists are those of the other without the rows that are not kept, on every
//! page, and what needs such a row is not known.

use super::*;
use std::fmt::Debug;

/// Rows of a page that is not bounded.
const ALL: usize = 100_000;

impl Store {
    /// The same with a cut.
    fn cut(&self, day: UtcDay) -> Store {
        Store { cut: day, ..self.clone() }
    }

    /// Whether a row is not shown. Those that are in memory yet are.
    fn hides(&self, memory: &User, object: u64) -> bool {
        let order = self.orders.get(&OrderId(object)).or_else(|| self.orders.get(self.fills.get(&TradeId(object))?));
        let position = self.positions.get(&PositionId(object));
        order.is_some_and(|row| self.is_cut(row) && memory.order(row.order.id).is_none())
            || position.is_some_and(|row| self.is_closed_before(row) && memory.position(row.id).is_none())
    }
}

/// Asks for one page after the other, and returns the ids of all rows. `page` makes the query of the rows after a cursor;
/// `rows` returns the ids of its answer, and the next cursor.
fn pages<C: Copy + Debug>(
    ask: impl Fn(Query) -> Answer,
    page: impl Fn(Option<C>) -> Query,
    rows: impl Fn(Answer) -> (Vec<u64>, Option<C>),
) -> Vec<u64> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    for _ in 0..ALL {
        let (found, next) = rows(ask(page(cursor)));
        ids.extend(found);
        cursor = next;
        if cursor.is_none() {
            return ids;
        }
    }
    panic!("the pages do not end: {cursor:?}");
}

/// The ids of all rows of a list, in pages of `limit` rows; and the hint of the list of orders.
fn listed(kind: usize, limit: usize, wallets: Wallets, ask: &impl Fn(Query) -> Answer) -> (Vec<u64>, Option<usize>) {
    let (market, side, status) = (None, None, None);
    let ids = match kind {
        4 => {
            let after = |after| Query::Orders(OrderFilter { wallets, status, market, side, after, offset: 0, limit });
            let ids = pages(ask, after, |answer| {
                let Answer::Orders(page) = answer else { panic!("a list of orders: {answer:?}") };
                let last = page.orders.last().map(|row| (row.order.created_at, row.order.id));
                (page.orders.iter().map(|row| row.order.id.0).collect(), last.filter(|_| page.has_more))
            });
            let Answer::Orders(page) = ask(after(None)) else { panic!("a list of orders") };
            return (ids, page.total_hint);
        }
        5 => pages(
            ask,
            |_: Option<()>| Query::Positions { wallets, market: None, open: None, closed_max: usize::MAX },
            |answer| {
                let Answer::Positions(rows) = answer else { panic!("a list of positions: {answer:?}") };
                (rows.iter().map(|row| row.position.id.0).collect(), None)
            },
        ),
        6 => pages(
            ask,
            |offset| Query::Fills(FillFilter { wallets, market, side, offset: offset.unwrap_or(0), limit }),
            |answer| {
                let Answer::Fills(page) = answer else { panic!("a list of fills: {answer:?}") };
                (page.fills.iter().map(|row| row.fill.id.0).collect(), page.has_more.then_some(ALL))
            },
        ),
        7 => {
            let (from, to) = (Timestamp(0), Timestamp(u64::MAX));
            let before = |before: Option<u64>| FillSpan {
                wallets,
                market,
                from,
                to,
                before: before.map(TradeId),
                limit,
                limit_elsewhere: 0,
            };
            pages(
                ask,
                |cursor| Query::FillSpan(before(cursor)),
                |answer| {
                    let Answer::FillSpan(page) = answer else { panic!("fills: {answer:?}") };
                    (page.rows.iter().map(|row| row.fill.id.0).collect(), page.next)
                },
            )
        }
        8 => {
            let which = Episodes::All;
            let before = |before: Option<u64>| EpisodeSpan {
                wallets,
                market,
                which,
                before: before.map(PositionId),
                limit,
                limit_elsewhere: 0,
            };
            pages(
                ask,
                |cursor| Query::EpisodeSpan(before(cursor)),
                |answer| {
                    let Answer::EpisodeSpan(page) = answer else { panic!("episodes: {answer:?}") };
                    (page.rows.iter().map(|row| row.position.id.0).collect(), page.next)
                },
            )
        }
        _ => {
            let filter = |after| VenueFilter {
                wallets,
                statuses: Statuses::ALL,
                market: None,
                instrument: None,
                only: None,
                since: None,
                until: None,
                after,
                limit,
            };
            let page =
                |after| if kind == 9 { Query::VenueOrders(filter(after)) } else { Query::VenueTrades(filter(after)) };
            pages(ask, page, |answer| match answer {
                Answer::VenueOrders(page) => (page.rows.iter().map(|row| row.order.id.0).collect(), page.more_after),
                Answer::VenueTrades(page) => (page.rows.iter().map(|row| row.fill.id.0).collect(), page.more_after),
                other => panic!("rows of the venue: {other:?}"),
            })
        }
    };
    (ids, None)
}

#[test]
fn lists_are_those_of_the_whole_state_without_what_was_cut() {
    let (mut cases, mut hidden, mut unknown, mut hints, mut unread) = (0, 0, 0, 0, 0);
    for seed in 20..24 {
        let (mut twins, mut dice) = (Twins::new(seed), Dice(seed));
        let first = twins.sample.now.day();
        for step in 0..1_200 {
            twins.step();
            if step < 300 || step % 60 > 0 {
                continue;
            }
            let today = twins.sample.now.day();
            for whole in twins.whole.iter() {
                let Some(store) = twins.stores.get(&whole.id) else { continue };
                let day = UtcDay(first.0 + dice.below(u64::from(today.0 - first.0) + 2) as u32);
                let store = store.cut(day);
                let split = twins.split.get(whole.id).expect("created");
                let has_hidden = store.orders.keys().any(|id| store.hides(split, id.0))
                    || store.positions.keys().any(|id| store.hides(split, id.0));
                let departed = split.departed().is_some_and(|departed| departed.has_ended_before(day));
                assert_eq!(departed, has_hidden, "day {day:?}");
                let answer = |user: &User, query: &Query| {
                    let asked =
                        query::answer(user, query.clone(), &twins.minutes, &twins.rules, (twins.sample.now, day));
                    let Ok(answer) = asked.or_else(|rest| Elsewhere::new(whole.id, 0, rest).complete(&store));
                    answer
                };
                let wallets = dice.pick(&[Wallets::Any, Wallets::All, Wallets::Api]);
                for (kind, name) in KINDS.iter().enumerate().take(11).skip(4) {
                    let (all, _) = listed(kind, ALL, wallets, &|query| answer(whole, &query));
                    let expected: Vec<u64> = all.iter().copied().filter(|id| !store.hides(split, *id)).collect();
                    // Fills are listed by an offset, which one page shows as well.
                    let limit = if kind == 6 { ALL } else { dice.pick(&[1, 2, 7, 50, ALL as u64]) as usize };
                    let (found, hint) = listed(kind, limit, wallets, &|query| answer(split, &query));
                    assert_eq!(found, expected, "{name}: {limit} rows a page, day {day:?}");
                    if kind == 4 {
                        // Some of the rows that left are kept: they are not counted without reading them.
                        let is_known = !departed || split.departed().is_some_and(|of| of.newest().day() < day);
                        assert_eq!(hint, is_known.then_some(expected.len()), "the hint counts what is listed");
                        hints += usize::from(is_known && departed);
                    }
                    hidden += all.len() - expected.len();
                    cases += 1;
                }
                // A page of rows that are above all that left reads nothing, also after a cut.
                let gone = Gone::of(split).orders;
                let above = |limit: usize| split.orders().iter().rev().take(limit).all(|order| Some(order.id) > gone);
                for limit in [1, 3].into_iter().filter(|limit| split.orders().len() > *limit && above(limit + 1)) {
                    let (market, side, status, after) = (None, None, None, None);
                    let filter = OrderFilter { wallets, status, market, side, after, offset: 0, limit };
                    if matches!(wallets, Wallets::Any) {
                        assert!(lists::orders(split, filter, day).is_ok(), "{limit} rows, day {day:?}");
                        unread += usize::from(departed);
                    }
                }
                for order in whole.orders().iter().step_by(3) {
                    let query = Query::Order(order.id);
                    let (all, found) = (answer(whole, &query), answer(split, &query));
                    if store.hides(split, order.id.0) {
                        assert!(matches!(found, Answer::Refused(Reject::OrderNotFound)), "{found:?}");
                    } else if order.created_at.day() >= day || !has_hidden {
                        assert_eq!(text(&found), text(&all));
                    } else {
                        // The cash after its placement may depend on rows that are gone.
                        let shown = |answer: Answer| match answer {
                            Answer::Order(view) => {
                                unlinked(format!("{:?} {:?} {:?}", view.order, view.fills, view.position))
                            }
                            other => panic!("an order: {other:?}"),
                        };
                        assert_eq!(shown(found), shown(all));
                        unknown += 1;
                    }
                    cases += 1;
                }
            }
        }
    }
    println!("lists after a cut: {cases} cases, {hidden} rows hidden, {unknown} orders with unknown cash");
    println!("lists after a cut: {hints} hints of users whose rows that left are all cut, {unread} pages read nothing");
    assert!(cases > 5_000 && hidden > 5_000 && unknown > 20);
    assert!(hints > 20 && unread > 20, "{hints} {unread}");
}
