//! Pages of a user's order facts, each with its order as of that fact: the content of the streams, live and after a
//! reconnect.

use super::elsewhere::{Asked, Rest};
use crate::amount::{Cash, Qty};
use crate::command::Answer;
use crate::departed::{Departed, EndedOrder};
use crate::id::{OrderId, TradeId};
use crate::order::row::NO_FILL;
use crate::order::{Fill, Order};
use crate::user::facts::Fact;
use crate::user::{FactRow, User};
use crate::view::{FactPage, FactView, Happened};
use ahash::AHashMap;

/// Maximum count of facts in one page: as many as one step of a sweep or a matching cycle makes, so that readers keep
/// up.
pub const FACTS_PER_PAGE_MAX: usize = 1_024;
/// Earlier fills that are read for a page; beyond it the page ends early: some 0.1 ms.
const FILLS_PER_PAGE_MAX: usize = 10_000;

/// The facts numbered above `after`, oldest first, up to the first whose order has left memory.
pub fn page(user: &User, after: u64, limit: usize) -> FactPage {
    gapped(user, after, limit).known()
}

/// The facts numbered above `after`, oldest first.
pub(super) fn answer(user: &User, after: u64, limit: usize) -> Asked {
    let gapped = gapped(user, after, limit);
    match gapped.rows.iter().any(|row| matches!(row, Row::Left { .. })) {
        true => Err(Rest::Facts(gapped).into()),
        false => Ok(Answer::Facts(gapped.known())),
    }
}

/// A page that lacks the facts about orders that have left memory.
#[derive(Clone, Debug)]
pub(super) struct Gapped {
    /// Without facts.
    page: FactPage,
    rows: Vec<Row>,
}

/// One fact of a page.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are known")]
enum Row {
    /// `read_back`: earlier fills that were read for it.
    Known { view: FactView, read_back: usize },
    /// Its order has left memory.
    Left { seq: u64, fact: Named },
}

/// A fact by the ids of its rows.
#[derive(Clone, Copy, Debug)]
enum Named {
    Placed { order: OrderId, rests: bool },
    Filled { fill: TradeId, resting: bool },
    Closed { order: OrderId },
}

impl Named {
    fn of(user: &User, fact: Fact) -> Named {
        let object = |number: u32| user.object(number);
        match fact {
            Fact::Placed { order } => Named::Placed { order: OrderId(object(order)), rests: false },
            Fact::Rested { order } => Named::Placed { order: OrderId(object(order)), rests: true },
            Fact::Taken { fill } => Named::Filled { fill: TradeId(object(fill)), resting: false },
            Fact::Matched { fill } => Named::Filled { fill: TradeId(object(fill)), resting: true },
            Fact::Closed { order } => Named::Closed { order: OrderId(object(order)) },
        }
    }
}

fn gapped(user: &User, after: u64, limit: usize) -> Gapped {
    let (newest, oldest) = (user.order_facts, user.oldest_fact());
    let facts = &user.trading().facts;
    let (mut rows, mut sums) = (Vec::new(), Sums::default());
    let first = after.saturating_add(1).max(oldest);
    for seq in (first..=newest).take(limit.min(FACTS_PER_PAGE_MAX)) {
        if sums.read_back >= FILLS_PER_PAGE_MAX {
            break;
        }
        let index = (seq - oldest) as usize;
        let fact = facts.get(index).expect("all from the oldest to the newest are retained");
        let before = sums.read_back;
        rows.push(match view(user, seq, fact, &mut sums) {
            Some(view) => Row::Known { view, read_back: sums.read_back - before },
            None => Row::Left { seq, fact: Named::of(user, fact) },
        });
    }
    Gapped { page: FactPage { facts: Vec::new(), oldest, newest }, rows }
}

/// `None`: its order has left memory.
fn view(user: &User, seq: u64, fact: Fact, sums: &mut Sums) -> Option<FactView> {
    Some(match (user.row_of(fact), fact) {
        (FactRow::Departed, _) => return None,
        (FactRow::Fill(row, fill, order), _) => {
            let sum = sums.up_to(user, order, row as u32);
            filled(seq, order, fill, sum, matches!(fact, Fact::Matched { .. }))
        }
        (FactRow::Order(_, order), Fact::Closed { .. }) => closed(seq, order),
        (FactRow::Order(_, order), _) => placed(seq, order, matches!(fact, Fact::Rested { .. })),
    })
}

fn placed(seq: u64, order: &Order, rests: bool) -> FactView {
    let untouched = order.as_of((Qty::ZERO, Cash::ZERO, Cash::ZERO, None), None, order.held);
    FactView { seq, order: untouched, what: Happened::Placed { rests } }
}

/// `sum`: the order's totals up to the fill.
fn filled(seq: u64, order: &Order, fill: &Fill, sum: Sum, resting: bool) -> FactView {
    let (qty, notional, fee) = sum;
    let then = order.as_of((qty, notional, fee, Some(fill.at)), None, order.held);
    FactView { seq, order: then, what: Happened::Filled { fill: fill.clone(), resting } }
}

/// An order that has ended does not change.
fn closed(seq: u64, order: &Order) -> FactView {
    FactView { seq, order: order.clone(), what: Happened::Closed }
}

/// The totals of an order up to a fill, read back to the previous page at most.
#[derive(Default)]
struct Sums {
    /// Rows of fills of this page, ascending, with the totals of their orders up to them.
    known: Vec<(u32, Sum)>,
    read_back: usize,
}

type Sum = (Qty, Cash, Cash);

impl Sums {
    fn up_to(&mut self, user: &User, order: &Order, row: u32) -> Sum {
        // Live it is nearly always the order's last fill: its total is the order's.
        if order.last_fill == row {
            let sum = (order.filled, order.notional, order.fee);
            self.known.push((row, sum));
            return sum;
        }
        let mut sum = (Qty::ZERO, Cash::ZERO, Cash::ZERO);
        let mut at = row;
        while at != NO_FILL {
            if let Ok(known) = self.known.binary_search_by_key(&at, |(row, _)| *row) {
                sum = plus(sum, self.known[known].1);
                break;
            }
            let Fill { qty, notional, fee, before, .. } = &user.fills()[at as usize];
            sum = plus(sum, (*qty, *notional, *fee));
            self.read_back += 1;
            at = *before;
        }
        self.known.push((row, sum));
        sum
    }
}

fn plus(one: Sum, other: Sum) -> Sum {
    (one.0 + other.0, one.1 + other.1, one.2 + other.2)
}

impl Gapped {
    /// The facts up to the first whose order has left memory.
    fn known(self) -> FactPage {
        let known = self.rows.into_iter().map_while(|row| match row {
            Row::Known { view, .. } => Some(view),
            Row::Left { .. } => None,
        });
        FactPage { facts: known.collect(), ..self.page }
    }

    /// With the facts about orders that have left memory. Ends where the page would end if they had not.
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Gapped { mut page, rows } = self;
        let mut ended = Ended { departed, orders: AHashMap::new(), of_fill: AHashMap::new(), read_back: 0 };
        for row in rows {
            if ended.read_back >= FILLS_PER_PAGE_MAX {
                break;
            }
            let (seq, view) = match row {
                Row::Known { view, read_back } => {
                    ended.read_back += read_back;
                    (view.seq, Some(view))
                }
                Row::Left { seq, fact } => (seq, ended.view(seq, fact)?),
            };
            match view {
                Some(view) => page.facts.push(view),
                // Its rows are not kept any more, or lost, and so are the facts up to it.
                None => {
                    page.facts.clear();
                    page.oldest = seq + 1;
                }
            }
        }
        Ok(Answer::Facts(page))
    }
}

/// The orders of a page that have left memory.
struct Ended<'a, D> {
    departed: &'a D,
    orders: AHashMap<OrderId, Totals>,
    of_fill: AHashMap<TradeId, OrderId>,
    read_back: usize,
}

/// An order with the totals of the last fill that was shown.
struct Totals {
    ended: EndedOrder,
    shown: Option<(usize, Sum)>,
}

impl<D: Departed> Ended<'_, D> {
    fn view(&mut self, seq: u64, fact: Named) -> Result<Option<FactView>, D::Error> {
        Ok(match fact {
            Named::Placed { order, rests } => self.order(order)?.map(|of| placed(seq, &of.ended.order, rests)),
            Named::Closed { order } => self.order(order)?.map(|of| closed(seq, &of.ended.order)),
            Named::Filled { fill: id, resting } => {
                let of = match self.of_fill.get(&id) {
                    Some(order) => Some(*order),
                    None => kept::<D, _>(self.departed.left_fill(id))?.map(|(_, order)| order.id),
                };
                let Some(of) = of else { return Ok(None) };
                let Some(totals) = self.order(of)? else { return Ok(None) };
                let Some((sum, read_back)) = totals.up_to(id) else { return Ok(None) };
                let EndedOrder { order, fills } = &totals.ended;
                let fill = fills.iter().find(|fill| fill.id == id);
                let view = fill.map(|fill| filled(seq, order, fill, sum, resting));
                self.read_back += read_back;
                view
            }
        })
    }

    fn order(&mut self, id: OrderId) -> Result<Option<&mut Totals>, D::Error> {
        if !self.orders.contains_key(&id) {
            let Some(ended) = kept::<D, _>(self.departed.left(id))? else { return Ok(None) };
            self.of_fill.extend(ended.fills.iter().map(|fill| (fill.id, id)));
            self.orders.insert(id, Totals { ended, shown: None });
        }
        Ok(self.orders.get_mut(&id))
    }
}

/// A row that was found, or `None` if it is not kept any more, or lost.
fn kept<D: Departed, T>(found: Result<Option<T>, D::Error>) -> Result<Option<T>, D::Error> {
    match found {
        Err(error) if D::is_lost(&error) => Ok(None),
        found => found,
    }
}

impl Totals {
    /// The totals up to a fill, and how many fills [`Sums::up_to`] would read back for them.
    fn up_to(&mut self, id: TradeId) -> Option<(Sum, usize)> {
        let EndedOrder { order, fills } = &self.ended;
        let at = fills.iter().position(|fill| fill.id == id)?;
        if at + 1 == fills.len() {
            return Some(((order.filled, order.notional, order.fee), 0));
        }
        let (first, shown) = self.shown.map_or((0, (Qty::ZERO, Cash::ZERO, Cash::ZERO)), |(at, sum)| (at + 1, sum));
        let later = fills.get(first..=at)?;
        let sum = later.iter().fold(shown, |sum, fill| plus(sum, (fill.qty, fill.notional, fill.fee)));
        self.shown = Some((at, sum));
        Some((sum, later.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Bps;
    use crate::fact;
    use crate::id::{InstrumentId, OrderId, PositionId, TradeId, UserId, WalletId};
    use crate::mutation::Mutation;
    use crate::order::row::tests::resting_order;
    use crate::order::{Liquidity, PriceSource, Side, Status};
    use crate::time::Timestamp;
    use crate::user::facts::FACTS_KEPT;
    use crate::user::sample::Sample;
    use crate::user::{Users, WalletKind};
    use std::collections::BTreeMap;

    /// A fact as a reader of the journal would see it.
    #[derive(Clone, Debug, PartialEq)]
    enum JournalFact {
        Placed { order: u64, rests: bool },
        Filled { order: u64, trade: u64, resting: bool, filled: u64, notional: i64, fee: i64 },
        Closed { order: u64 },
    }

    #[derive(Default)]
    struct Reader {
        facts: Vec<JournalFact>,
        /// For each order its totals and whether it rests.
        orders: BTreeMap<u64, (u64, i64, i64, bool)>,
    }

    impl Reader {
        fn read(&mut self, fact: &Mutation) {
            match fact {
                Mutation::OrderPlaced(fact::OrderPlaced { order, .. }) => {
                    self.facts.push(JournalFact::Placed { order: order.0, rests: false });
                }
                Mutation::OrderRested(fact::OrderRested { order, .. }) => {
                    let rests = &mut self.orders.entry(order.0).or_default().3;
                    if std::mem::replace(rests, true) {
                        return;
                    }
                    let placed = JournalFact::Placed { order: order.0, rests: false };
                    let at = self.facts.iter().rposition(|fact| *fact == placed).expect("it was placed");
                    self.facts[at] = JournalFact::Placed { order: order.0, rests: true };
                }
                Mutation::OrderFilled(fact::OrderFilled { order, trade, qty, notional, fee, .. }) => {
                    let known = self.orders.entry(order.0).or_default();
                    *known = (known.0 + qty.0, known.1 + notional.0, known.2 + fee.0, known.3);
                    let (filled, notional, fee, resting) = *known;
                    self.facts.push(JournalFact::Filled {
                        order: order.0,
                        trade: trade.0,
                        resting,
                        filled,
                        notional,
                        fee,
                    });
                }
                Mutation::OrderClosed(fact::OrderClosed { order, .. }) => {
                    self.facts.push(JournalFact::Closed { order: order.0 })
                }
                _ => {}
            }
        }
    }

    fn of_view(view: &FactView) -> JournalFact {
        let order = view.order.id.0;
        let (filled, notional, fee) = (view.order.filled.0, view.order.notional.0, view.order.fee.0);
        match &view.what {
            Happened::Placed { rests } => {
                assert_eq!((filled, notional, fee, view.order.filled_at()), (0, 0, 0, None));
                assert!(!rests || view.order.status() == Status::Pending);
                JournalFact::Placed { order, rests: *rests }
            }
            Happened::Filled { fill, resting } => {
                assert_eq!((view.order.filled_at(), view.order.closed()), (Some(fill.at), None));
                let whole = view.order.filled >= view.order.terms.quantity;
                assert!(!resting || view.order.status() == if whole { Status::Filled } else { Status::Pending });
                JournalFact::Filled { order, trade: fill.id.0, resting: *resting, filled, notional, fee }
            }
            Happened::Closed => {
                assert!(view.order.closed().is_some());
                JournalFact::Closed { order }
            }
        }
    }

    #[test]
    fn facts_equal_those_of_the_journal() {
        let (mut facts_count, mut forgotten, mut pages) = (0, 0, 0);
        for seed in 0..2 {
            // Few users, so that some have more facts than are retained.
            let mut sample = Sample::new(seed, 3, 14).extending(seed % 2 == 1);
            let mut users = Users::default();
            let mut readers: BTreeMap<_, Reader> = BTreeMap::new();
            for step in 0..4_000 {
                let (owner, facts) = sample.record();
                let reader = readers.entry(owner).or_default();
                for fact in &facts {
                    users.apply(owner, fact);
                    reader.read(fact);
                }
                let user = users.get(owner).expect("it has a fact");
                let newest = reader.facts.len() as u64;
                let oldest = newest.saturating_sub(FACTS_KEPT as u64) + 1;
                // From before the oldest, from any position, from the end and from after it.
                for after in
                    [0, oldest.saturating_sub(5), step % (newest + 1), newest.saturating_sub(1), newest, u64::MAX]
                {
                    let page = page(user, after, 1 + (step % 300) as usize);
                    pages += 1;
                    assert_eq!((page.oldest, page.newest), (oldest, newest));
                    let first = after.saturating_add(1).max(oldest);
                    let count = (newest + 1).saturating_sub(first).min(1 + step % 300).min(FACTS_PER_PAGE_MAX as u64);
                    assert_eq!(page.facts.len() as u64, count);
                    for (view, seq) in page.facts.iter().zip(first..) {
                        assert_eq!(
                            (view.seq, of_view(view)),
                            (seq, reader.facts[seq as usize - 1].clone()),
                            "seed {seed}"
                        );
                    }
                }
            }
            facts_count += readers.values().map(|reader| reader.facts.len()).sum::<usize>();
            forgotten += readers.values().map(|reader| reader.facts.len().saturating_sub(FACTS_KEPT)).sum::<usize>();
        }
        println!("{facts_count} order facts, {forgotten} of them no longer retained, {pages} pages");
        assert!(forgotten > 500 && facts_count > 2 * forgotten);
    }

    /// 100 orders with 250 fills each, then one more fill of each: a page of those would read back over 25,000.
    #[test]
    fn a_page_ends_before_it_reads_back_too_far() {
        let (orders, fills): (u64, u64) = (100, 250);
        let (owner, at) = (UserId(7), Timestamp(5));
        let (wallet, position) = (WalletId(owner.object(1)), PositionId(owner.object(200)));
        let order = |nth: u64| OrderId(owner.object(2 + nth as u32));
        let baseline = Cash::from_dollars(1_000_000);
        let (kind, generation, parent) = (WalletKind::Api, 1, None);
        let mut facts = vec![
            Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at }),
            Mutation::WalletOpened(fact::WalletOpened { wallet, kind, label: None, baseline, generation, parent, at }),
        ];
        for nth in 0..orders {
            let mut terms = resting_order(1, InstrumentId(3), Side::Buy, 5_000, None).terms.to_fact();
            terms.wallet = wallet;
            facts.push(Mutation::OrderPlaced(fact::OrderPlaced { order: order(nth), terms, counted: true, at }));
        }
        for fill in 0..(fills + 1) * orders {
            facts.push(Mutation::OrderFilled(fact::OrderFilled {
                order: order(fill % orders),
                trade: TradeId(owner.object(300 + fill as u32)),
                position,
                qty: Qty(100),
                notional: Cash(50),
                fee: Cash(1),
                fee_rate: Bps(0),
                liquidity: Liquidity::Taker,
                source: PriceSource::BookWalk,
                quote_age_ms: None,
                cost_out: Cash::ZERO,
                reserved_cash: Cash::ZERO,
                reserved_qty: Qty::ZERO,
                levels: Vec::new(),
                at,
                venue_at: None,
            }));
        }
        let mut users = Users::default();
        facts.iter().for_each(|fact| users.apply(owner, fact));
        let user = users.get(owner).expect("just made");
        let newest = user.order_facts;
        let (mut after, mut pages) = (newest - 2 * orders, Vec::new());
        while after < newest {
            let page = page(user, after, usize::MAX);
            for view in &page.facts {
                after += 1;
                let so_far = if after > newest - orders { fills + 1 } else { fills };
                let expected = (after, 100 * so_far, so_far as i64);
                assert_eq!((view.seq, view.order.filled.0, view.order.fee.0), expected);
            }
            pages.push(page.facts.len());
        }
        // The order's last fill has the order's total: nothing is read back.
        assert_eq!(pages, [40, 40, 20 + orders as usize]);
        assert_eq!(page(user, newest - orders, usize::MAX).facts.len(), orders as usize);
        assert_eq!(page(user, 0, usize::MAX).oldest, user.order_facts - 1_023);
    }
}
