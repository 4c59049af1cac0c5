//! The available cash in the first answer to an order (gateway/docs/trading.md §2, `account_balance`), for later
//! lookups of the order.
//!
//! It is stored with a request that has an id, for its replay, as long as the id counts. For other orders it is computed
//! from the wallet's present cash and the later order facts, fills, payouts, deposits and refunds. Some of them may be
//! about rows that have left memory: their part is computed from those rows ([`Undone::complete`]).

use super::facts::Fact;
use super::trading::Trading;
use super::{FactRow, User};
use crate::amount::{Cash, Qty};
use crate::departed::Departed;
use crate::id::{OrderId, PositionId, TradeId, WalletId};
use crate::order::reservation::as_maker;
use crate::order::{CloseReason, Fill, Order, Side};
use crate::time::Timestamp;
use crate::user::Position;
use ahash::AHashMap;
use std::cmp::Ordering;

/// Maximum count of order facts and positions that are read: the shard, and so all its users, wait meanwhile.
const FACTS_MAX: usize = 4_096;
const POSITIONS_MAX: usize = 4_096;

/// Available cash after a placement.
#[derive(Clone, Debug)]
pub(crate) enum AtPlacement {
    /// `None`: it cannot be computed.
    Known(Option<Cash>),
    /// Rows that have left memory are missing.
    Part(Undone),
}

/// The present cash of wallets without what came after a placement, as far as it is about rows in memory.
#[derive(Clone, Debug)]
pub(crate) struct Undone {
    /// The order that was placed.
    order: OrderId,
    /// The wallets that it may belong to, in id order. None: its cash cannot be computed.
    wallets: Vec<Holdings>,
    /// Later facts about orders that have left memory, newest first.
    left: Vec<Left>,
    /// Whether positions that have left memory may have been paid out later.
    has_left_payouts: bool,
}

/// A wallet.
#[derive(Clone, Debug)]
struct Holdings {
    wallet: WalletId,
    available: Cash,
    /// Its last reset or payment of rebates.
    reset_at: Option<Timestamp>,
    /// Deposits and refunds.
    moves: Vec<(Timestamp, Cash)>,
    /// Payouts, in the order of their positions.
    paid: Vec<Paid>,
}

#[derive(Clone, Copy, Debug)]
struct Paid {
    position: PositionId,
    at: Timestamp,
    payout: Cash,
}

/// A fact about an order that has left memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Taken(TradeId),
    Matched(TradeId),
    Closed(OrderId),
}

impl User {
    /// Available cash of the order's wallet right after its placement. Ids of orders that were placed at `ids_since` or
    /// later count, whether or not older requests are still in memory.
    ///
    /// It cannot be computed if the order has no client order id that counts, and 4,096 order facts of the user are newer
    /// than its placement, or the user has had more than 4,096 positions, its wallet was reset or paid rebates since, or a
    /// deposit or a refund is of the same moment. Two amounts are missing from the rows and count as available: the fee
    /// that a resting BUY reserved, as a taker until its first book made it a maker, or as a maker that pays, and a payout
    /// that the shard made in the same turn as the placement.
    pub(crate) fn available_at_placement(&self, order: &Order, ids_since: Timestamp) -> AtPlacement {
        if let Some(known) = self.request_of(order.id).filter(|_| order.created_at >= ids_since) {
            return AtPlacement::Known(Some(known.first.available));
        }
        match self.undone(order.id, Some(order)) {
            None => AtPlacement::Known(None),
            Some(undone) if undone.left.is_empty() && !undone.has_left_payouts => {
                AtPlacement::Known(undone.with(order, None, Cash::ZERO))
            }
            Some(undone) => AtPlacement::Part(undone),
        }
    }

    /// The same for an order that is not in memory, and without regard to its request.
    pub(crate) fn undone_since(&self, order: OrderId) -> Undone {
        let unknown = || Undone { order, wallets: Vec::new(), left: Vec::new(), has_left_payouts: false };
        self.undone(order, None).unwrap_or_else(unknown)
    }

    /// `own`: the order, if it is in memory. `None`: its placement is not among the newest facts, or there are too many
    /// positions, or the order's wallet was reset or credited.
    fn undone(&self, order: OrderId, own: Option<&Order>) -> Option<Undone> {
        let trading = self.trading();
        // First the check that ends most look-ups of old orders, and needs no row.
        let placed = |fact| match fact {
            Fact::Placed { order: number } | Fact::Rested { order: number } => self.object(number) == order.0,
            Fact::Taken { .. } | Fact::Matched { .. } | Fact::Closed { .. } => false,
        };
        let mut newest = (0..trading.facts.len()).rev().take(FACTS_MAX);
        if !newest.any(|at| trading.facts.get(at).is_some_and(placed)) || trading.positions.end() > POSITIONS_MAX {
            return None;
        }
        let wallets = self.wallets.iter().filter(|wallet| own.is_none_or(|own| own.terms.wallet == wallet.id));
        let wallets: Vec<Holdings> = wallets.map(|wallet| self.holdings(wallet.id, wallet.available())).collect();
        if let Some(own) = own {
            wallets.first()?.unmoved_since(own.created_at)?;
        }
        let left = Vec::new();
        let mut undone = Undone { order, wallets, left, has_left_payouts: self.has_left_payouts(order, own) };
        undone.undo(self, trading)?;
        for position in &trading.positions {
            let Some(settled) = position.settlement.as_deref() else { continue };
            let paid = Paid { position: position.id, at: settled.at, payout: settled.payout };
            if own.is_none_or(|own| paid.is_later(own))
                && let Some(held) = undone.wallet_mut(position.wallet)
            {
                held.paid.push(paid);
            }
        }
        Some(undone)
    }

    fn holdings(&self, wallet: WalletId, available: Cash) -> Holdings {
        let rebated_at = self.wallet(wallet).map(|wallet| wallet.rebates().paid_at).filter(|at| *at != Timestamp(0));
        Holdings {
            wallet,
            available,
            reset_at: self.resets(wallet).chain(self.bought_resets(wallet)).chain(rebated_at).max(),
            moves: self.cash_moves(wallet).collect(),
            paid: Vec::new(),
        }
    }

    /// Whether positions that have left memory may have been paid out after a placement.
    fn has_left_payouts(&self, order: OrderId, own: Option<&Order>) -> bool {
        let Some(departed) = self.departed() else { return false };
        let Some(highest) = departed.newest_position() else { return false };
        highest.0 > order.0 || own.is_none_or(|own| departed.moved_at().is_some_and(|at| at > own.created_at))
    }
}

#[cfg(test)]
impl AtPlacement {
    /// The cash, of an order whose facts are all about rows in memory.
    pub fn known(self) -> Option<Cash> {
        match self {
            AtPlacement::Known(available) => available,
            AtPlacement::Part(undone) => panic!("rows are missing: {undone:?}"),
        }
    }
}

impl Undone {
    /// Takes the facts after the placement out of the cash of the wallets; keeps those about orders that have left.
    /// `None`: the placement is not among the newest facts.
    fn undo(&mut self, user: &User, trading: &Trading) -> Option<()> {
        // BUY orders whose reservations changed since, and their later fills.
        let mut since = AHashMap::<OrderId, Qty>::new();
        for at in (0..trading.facts.len()).rev().take(FACTS_MAX) {
            let fact = trading.facts.get(at)?;
            let (of, fill) = match user.row_of(fact) {
                FactRow::Order(_, of) => (of, None),
                FactRow::Fill(_, fill, of) => (of, Some(fill)),
                FactRow::Departed => match self.note_left(user, fact) {
                    true => return self.reserve(user, since),
                    false => continue,
                },
            };
            if of.id == self.order {
                match fact {
                    Fact::Placed { .. } | Fact::Rested { .. } => return self.reserve(user, since),
                    Fact::Taken { .. } => continue,
                    Fact::Closed { .. } if ended_at_placement(of) => continue,
                    Fact::Matched { .. } | Fact::Closed { .. } => {}
                }
            }
            let Some(held) = self.wallet_mut(of.terms.wallet) else { continue };
            if let Some(fill) = fill {
                held.available += cash_of(of, fill);
            }
            if of.terms.side == Side::Buy {
                let filled = since.entry(of.id).or_default();
                if let (Fact::Matched { .. }, Some(fill)) = (fact, fill) {
                    *filled += fill.qty;
                }
            }
        }
        None
    }

    /// Keeps a fact about an order that has left memory. Returns whether it is the placement.
    fn note_left(&mut self, user: &User, fact: Fact) -> bool {
        let object = |number: u32| user.object(number);
        self.left.push(match fact {
            // A later order, of which nothing is reserved now: its fills are all.
            Fact::Placed { order } | Fact::Rested { order } => return object(order) == self.order.0,
            Fact::Closed { order } if object(order) > self.order.0 => return false,
            Fact::Closed { order } => Left::Closed(OrderId(object(order))),
            Fact::Taken { fill } => Left::Taken(TradeId(object(fill))),
            Fact::Matched { fill } => Left::Matched(TradeId(object(fill))),
        });
        false
    }

    /// Undoes the changes of reservations of orders in memory.
    fn reserve(&mut self, user: &User, since: AHashMap<OrderId, Qty>) -> Option<()> {
        for (id, filled) in since {
            let of = user.order(id)?;
            let change = of.reserved_cash() - self.reserved_then(of, filled);
            if let Some(held) = self.wallet_mut(of.terms.wallet) {
                held.available += change;
            }
        }
        Some(())
    }

    /// The reservation of a BUY right after the placement; it was filled with `filled` since.
    fn reserved_then(&self, of: &Order, filled: Qty) -> Cash {
        let rest = of.terms.quantity.0.saturating_sub(of.filled.0.saturating_sub(filled.0));
        if of.id > self.order { Cash::ZERO } else { as_maker(&of.terms, Qty(rest)).cash }
    }

    fn wallet_mut(&mut self, wallet: WalletId) -> Option<&mut Holdings> {
        let at = self.wallets.binary_search_by_key(&wallet, |held| held.wallet).ok()?;
        Some(&mut self.wallets[at])
    }

    /// The available cash after the placement of `order`, with `left` taken out of it and less `paid`.
    fn with(&self, order: &Order, left: Option<Cash>, paid: Cash) -> Option<Cash> {
        let at = self.wallets.binary_search_by_key(&order.terms.wallet, |held| held.wallet).ok()?;
        let held = &self.wallets[at];
        let moved = held.unmoved_since(order.created_at)?;
        let known: Cash = held.paid.iter().filter(|paid| paid.is_later(order)).map(|paid| paid.payout).sum();
        Some(held.available + left.unwrap_or_default() - known - paid - moved)
    }

    /// The available cash after the placement of `order`, with the rows that have left memory. `None`: it cannot be
    /// computed, also because the history of that day was cut.
    ///
    /// # Errors
    /// Those of `departed`.
    pub fn complete<D: Departed>(self, order: &Order, departed: &D) -> Result<Option<Cash>, D::Error> {
        let known = |held: &Holdings| held.wallet == order.terms.wallet;
        // What came after the placement ended after it, and is there, unless the history was cut since.
        let is_cut = order.created_at.day() < departed.kept_from();
        if is_cut || !self.wallets.iter().any(known) {
            return Ok(None);
        }
        let Some(left) = self.undo_left(order, departed)? else { return Ok(None) };
        let paid = if self.has_left_payouts { self.paid_left(order, departed)? } else { Cash::ZERO };
        Ok(self.with(order, Some(left), paid))
    }

    /// What facts about orders that have left memory take out of the cash. `None`: a row is missing.
    fn undo_left<D: Departed>(&self, order: &Order, departed: &D) -> Result<Option<Cash>, D::Error> {
        let mut change = Cash::ZERO;
        let mut since = AHashMap::<OrderId, (Order, Qty)>::new();
        let is_concerned = |of: &Order| of.terms.wallet == order.terms.wallet;
        let is_reserved = |of: &Order| is_concerned(of) && of.terms.side == Side::Buy && of.id <= order.id;
        let mut named = self.left.iter().filter_map(|left| match left {
            Left::Taken(fill) => Some((*fill, false)),
            Left::Matched(fill) => Some((*fill, true)),
            Left::Closed(_) => None,
        });
        if let Some(first) = named.next() {
            let mut next = Some(first);
            for row in departed.fills(Some(TradeId(first.0.0 + 1))) {
                let Some((id, is_matched)) = next else { break };
                let (fill, of) = row?;
                match fill.id.cmp(&id) {
                    // A row that is in memory, too.
                    Ordering::Greater => continue,
                    Ordering::Less => break,
                    Ordering::Equal => next = named.next(),
                }
                if !is_concerned(&of) || of.id == order.id && !is_matched {
                    continue;
                }
                change += cash_of(&of, &fill);
                if is_matched && is_reserved(&of) {
                    since.entry(of.id).or_insert((of, Qty::ZERO)).1 += fill.qty;
                }
            }
            if next.is_some() {
                return Ok(None);
            }
        }
        for left in &self.left {
            let Left::Closed(id) = left else { continue };
            if since.contains_key(id) {
                continue;
            }
            let Some(ended) = departed.order(*id)? else { return Ok(None) };
            let of = ended.order;
            if is_reserved(&of) && !(of.id == order.id && ended_at_placement(&of)) {
                since.insert(of.id, (of, Qty::ZERO));
            }
        }
        for (of, filled) in since.values() {
            change += of.reserved_cash() - self.reserved_then(of, *filled);
        }
        Ok(Some(change))
    }

    /// Later payouts of positions that have left memory.
    fn paid_left<D: Departed>(&self, order: &Order, departed: &D) -> Result<Cash, D::Error> {
        let held = self.wallets.iter().find(|held| held.wallet == order.terms.wallet);
        let known = held.map_or(&[][..], |held| &held.paid);
        let mut sum = Cash::ZERO;
        for position in departed.positions(None) {
            let Position { id, wallet, settlement, .. } = position?;
            let Some(settled) = settlement.filter(|_| wallet == order.terms.wallet) else { continue };
            let paid = Paid { position: id, at: settled.at, payout: settled.payout };
            if paid.is_later(order) && known.binary_search_by_key(&id, |paid| paid.position).is_err() {
                sum += paid.payout;
            }
        }
        Ok(sum)
    }
}

impl Holdings {
    /// What was paid into the wallet after a moment, without what refunds have taken out after it. `None`: some of it
    /// may be of before the moment, or the wallet was reset after it.
    fn unmoved_since(&self, moment: Timestamp) -> Option<Cash> {
        if self.reset_at.is_some_and(|at| at >= moment) || self.moves.iter().any(|(at, _)| *at == moment) {
            return None;
        }
        Some(self.moves.iter().filter(|(at, _)| *at > moment).map(|(_, amount)| *amount).sum())
    }
}

impl Paid {
    /// Whether it came after the placement of an order.
    fn is_later(&self, order: &Order) -> bool {
        self.position.0 > order.id.0 || self.at > order.created_at
    }
}

/// What a fill took out of the available cash of its wallet.
fn cash_of(order: &Order, fill: &Fill) -> Cash {
    match order.terms.side {
        Side::Buy => fill.notional + fill.fee,
        Side::Sell => fill.fee - fill.notional,
    }
}

/// Whether the order ended in the record that placed it.
fn ended_at_placement(order: &Order) -> bool {
    let ends = |reason| matches!(reason, CloseReason::FakRest | CloseReason::FakNoFill | CloseReason::FokNotFilled);
    order.closed().is_some_and(|(reason, _)| ends(reason))
}
