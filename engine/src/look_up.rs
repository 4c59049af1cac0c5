//! Commands that need rows which left memory. The engine never reads the history store: it hands the command back as a
//! [`LookUp`]; the caller reads what is wanted and sends the command again with its findings, which are decided as
//! if the rows were in memory.
//!
//! ```text
//! command ─► shard ─► Answer::LookUp ─► caller reads the store ─► Command::Found ─► shard ─► answer
//! ```
//!
//! Until then later commands of the user wait (`shard/line.rs`). If more rows have left memory in the meantime, the
//! shard asks again. The log has the outcome only.

pub mod filters;

use crate::command::{Command, Envelope};
use crate::departed::{Departed, EndedRequest};
use crate::id::{OrderId, PositionId, UserId};
use crate::order::Order;
use crate::time::Timestamp;
use crate::user::{Position, Remembered, User};
use std::collections::BTreeMap;

/// A command whose decision needs rows that may have left memory.
#[derive(Clone, Debug)]
pub struct LookUp {
    pub(crate) owner: UserId,
    pub(crate) command: Command,
    pub(crate) received_at: Timestamp,
    /// Distinguishes it from other look-ups of its user.
    pub(crate) ticket: u64,
    /// The log's number up to which rows have left memory.
    pub(crate) upto: u64,
    pub(crate) wanted: Wanted,
}

/// The rows that a command needs, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Client order ids.
    pub requests: Vec<String>,
    /// Hashes of signed orders.
    pub signed: Vec<[u8; 32]>,
    pub orders: Vec<OrderId>,
}

/// A command that was looked up.
#[derive(Clone, Debug)]
pub struct Found {
    pub(crate) ticket: u64,
    pub(crate) command: Command,
    pub(crate) findings: Box<Findings>,
}

/// What was found of a command's rows, or that nothing was.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// The log's number up to which the store was searched.
    pub upto: u64,
    pub requests: BTreeMap<String, Option<FoundRequest>>,
    pub signed: BTreeMap<[u8; 32], Option<FoundSigned>>,
    /// Whether there was such an order.
    pub orders: BTreeMap<OrderId, bool>,
}

/// A remembered request that has left memory.
#[derive(Clone, Debug)]
pub(crate) struct FoundRequest {
    pub request: EndedRequest,
    /// The newest departed episode of its order's instrument that was open at its placement or before, if its first
    /// answer shows a position.
    pub episode: Option<Position>,
}

/// A signed order that has left memory.
#[derive(Clone, Debug)]
pub(crate) struct FoundSigned {
    /// The client order id of the order, if there is one and the order is still stored.
    pub client_order_id: Option<String>,
}

impl Found {
    /// Whether any of the wanted rows is there.
    pub fn has_rows(&self) -> bool {
        let Findings { requests, signed, orders, .. } = &*self.findings;
        let has_names = requests.values().any(Option::is_some) || signed.values().any(Option::is_some);
        has_names || orders.values().any(|is_there| *is_there)
    }
}

impl Wanted {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.signed.is_empty() && self.orders.is_empty()
    }
}

impl LookUp {
    /// The user whose rows are wanted.
    pub fn owner(&self) -> UserId {
        self.owner
    }

    /// The log's number up to which rows have left memory: those with higher ones are not wanted.
    pub fn upto(&self) -> u64 {
        self.upto
    }

    /// When the command first arrived, server time. Its waiting time counts from then.
    pub fn received_at(&self) -> Timestamp {
        self.received_at
    }

    /// Searches the rows of the owner that left memory up to [`LookUp::upto`]. Returns the command with what was found,
    /// to be sent to the same shard. Takes a few accesses for each id; a request that opened no position of its own also
    /// passes over the episodes between its order and the one that it shows.
    ///
    /// # Errors
    /// That of the search. The command must then be ended by [`LookUp::end`].
    pub fn found<D: Departed>(self, departed: &D) -> Result<Envelope<()>, D::Error> {
        let LookUp { owner, command, received_at, ticket, upto, wanted } = self;
        let mut findings =
            Findings { upto, requests: BTreeMap::new(), signed: BTreeMap::new(), orders: BTreeMap::new() };
        for id in wanted.requests {
            let found = departed.request(&id)?.map(|request| FoundRequest::with_episode(request, departed));
            findings.requests.insert(id, found.transpose()?);
        }
        for hash in wanted.signed {
            let found = departed.signed_order(&hash)?.map(|id| FoundSigned::of(id, departed));
            findings.signed.insert(hash, found.transpose()?);
        }
        for id in wanted.orders {
            findings.orders.insert(id, departed.order(id)?.is_some());
        }
        let found = Found { ticket, command, findings: Box::new(findings) };
        Ok(Envelope { owner, command: Command::Found(Box::new(found)), received_at, reply: () })
    }

    /// The command that ends this look-up without an outcome: the rows cannot be read, or the client has gone. Later
    /// commands of the user then go on. Without it they wait until the look-up is overdue.
    pub fn end(&self) -> Command {
        Command::EndLookUp { ticket: self.ticket }
    }
}

impl FoundRequest {
    fn with_episode<D: Departed>(request: EndedRequest, departed: &D) -> Result<FoundRequest, D::Error> {
        let episode = match request.request.first.position {
            Some(_) => episode(departed, &request.order.order)?,
            None => None,
        };
        Ok(FoundRequest { request, episode })
    }
}

impl FoundSigned {
    fn of<D: Departed>(id: OrderId, departed: &D) -> Result<FoundSigned, D::Error> {
        let order = departed.order(id)?;
        let id = order.as_ref().and_then(|found| found.order.terms.client_order_id());
        Ok(FoundSigned { client_order_id: id.map(str::to_owned) })
    }
}

/// Whether an episode may be the one that the first answer to this order's placement shows. It is the newest of them.
pub(crate) fn is_shown_by(position: &Position, order: &Order) -> bool {
    let terms = &order.terms;
    (position.wallet, position.instrument) == (terms.wallet, terms.instrument) && position.opened_at <= order.created_at
}

/// The newest departed episode that [`is_shown_by`] this order.
fn episode<D: Departed>(departed: &D, order: &Order) -> Result<Option<Position>, D::Error> {
    // Ids and opening times ascend together, and the episode is seldom much newer than the order.
    let newest_below = |before| departed.positions(before).next().transpose();
    let is_later = |position: &Position| position.opened_at > order.created_at;
    let mut before = None;
    if newest_below(None)?.as_ref().is_some_and(is_later) {
        for ahead in (4..64).step_by(4) {
            before = Some(PositionId(order.id.0.saturating_add(1 << ahead)));
            if newest_below(before)?.as_ref().is_some_and(is_later) {
                break;
            }
        }
    }
    for position in departed.positions(before) {
        let position = position?;
        if is_shown_by(&position, order) {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

/// What is known of a user's past: rows in memory, and those found for a command.
#[derive(Clone, Copy)]
pub(crate) struct Past<'a> {
    pub user: &'a User,
    pub found: Option<&'a Findings>,
}

/// A remembered request with its order.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub request: &'a Remembered,
    pub order: &'a Order,
    /// It has left memory.
    pub found: Option<&'a FoundRequest>,
}

impl<'a> Past<'a> {
    /// The newest request remembered under an id, if its order was placed at `since` or later.
    pub fn remembered(self, id: &str, since: Timestamp) -> Option<Known<'a>> {
        let here = |since| {
            let request = self.user.remembered(id, since)?;
            Some(Known { request, order: self.user.order(request.order)?, found: None })
        };
        let Some(found) = self.found.and_then(|found| found.requests.get(id)?.as_ref()) else { return here(since) };
        let EndedRequest { request, order } = &found.request;
        let gone = Known { request, order: &order.order, found: Some(found) };
        let newest = here(Timestamp(0)).filter(|here| here.order.id >= gone.order.id).unwrap_or(gone);
        (newest.order.created_at >= since).then_some(newest)
    }

    /// Whether the user has a signed order with this hash.
    pub fn has_signed(self, hash: &[u8; 32]) -> bool {
        self.user.signed_order(hash).is_some() || self.found_signed(hash).is_some()
    }

    /// Whether the user's signed order with this hash has this client order id.
    pub fn has_signed_as(self, hash: &[u8; 32], client_order_id: &str) -> bool {
        match self.user.signed_order(hash) {
            Some(order) => order.terms.is_client_order_id(client_order_id),
            None => {
                let id = self.found_signed(hash).and_then(|found| found.client_order_id.as_deref());
                id == Some(client_order_id)
            }
        }
    }

    /// Whether an order that is not in memory has ended.
    pub fn has_ended(self, order: OrderId) -> bool {
        self.found.is_some_and(|found| found.orders.get(&order) == Some(&true))
    }

    fn found_signed(self, hash: &[u8; 32]) -> Option<&'a FoundSigned> {
        self.found?.signed.get(hash)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::{Cash, Qty};
    use crate::departed::EndedOrder;
    use crate::id::{InstrumentId, MarketId, TradeId, WalletId};
    use crate::order::row::tests::resting_order;
    use crate::order::{Fill, Side};
    use crate::user::sample::Dice;
    use std::cell::Cell;
    use std::convert::Infallible;

    /// Departed positions, and how many were read.
    struct Positions(Vec<Position>, Cell<usize>);

    impl Departed for Positions {
        type Error = Infallible;

        fn order(&self, _: OrderId) -> Result<Option<EndedOrder>, Infallible> {
            Ok(None)
        }

        fn position(&self, _: PositionId) -> Result<Option<Position>, Infallible> {
            Ok(None)
        }

        fn orders(
            &self,
            _: Option<MarketId>,
            _: Option<OrderId>,
        ) -> impl Iterator<Item = Result<EndedOrder, Infallible>> {
            std::iter::empty()
        }

        fn fills(&self, _: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), Infallible>> {
            std::iter::empty()
        }

        fn positions(&self, before: Option<PositionId>) -> impl Iterator<Item = Result<Position, Infallible>> {
            let below = self.0.iter().rev().filter(move |position| before.is_none_or(|before| position.id < before));
            below.map(|position| {
                self.1.set(self.1.get() + 1);
                Ok(position.clone())
            })
        }

        fn request(&self, _: &str) -> Result<Option<EndedRequest>, Infallible> {
            Ok(None)
        }

        fn signed_order(&self, _: &[u8; 32]) -> Result<Option<OrderId>, Infallible> {
            Ok(None)
        }
    }

    fn position(id: u64, instrument: u32, opened_at: u64) -> Position {
        Position {
            id: PositionId(id),
            wallet: WalletId(1),
            instrument: InstrumentId(instrument),
            qty: Qty::ZERO,
            reserved: Qty::ZERO,
            cost: Cash::ZERO,
            last_open: (Qty::ZERO, Cash::ZERO),
            realized: Cash::ZERO,
            opened_at: Timestamp(opened_at),
            closed_at: Some(Timestamp(opened_at)),
            settlement: None,
            is_reset: false,
        }
    }

    /// The search that begins near the order finds the same as one that begins with the newest.
    #[test]
    fn the_episode_of_a_first_answer_is_found() {
        let (mut dice, mut cases, mut found) = (Dice(7), 0, 0);
        for _ in 0..300 {
            let (mut id, mut at) = (1_u64 << 28, 1_000);
            // What was there at each moment; several objects may have one.
            let mut moments = vec![(id, at)];
            let mut positions = Vec::new();
            for _ in 0..dice.below(80) {
                let scale = dice.below(12);
                id += 1 + dice.below(1 << scale);
                at += dice.below(3);
                moments.push((id, at));
                if dice.chance(60) {
                    positions.push(position(id, dice.below(4) as u32, at));
                }
            }
            let departed = Positions(positions, Cell::new(0));
            for _ in 0..20 {
                let (id, at) = moments[dice.below(moments.len() as u64) as usize];
                let mut order = resting_order(id + 1, InstrumentId(dice.below(4) as u32), Side::Buy, 4_000, None);
                order.created_at = Timestamp(at);
                let expected = departed.0.iter().rev().find(|position| is_shown_by(position, &order));
                let Ok(shown) = episode(&departed, &order);
                assert_eq!(shown.as_ref(), expected, "order {id} at {at}");
                found += usize::from(shown.is_some());
                cases += 1;
            }
        }
        println!("episodes of first answers: {cases} cases, {found} found");
        assert!(found > 1_000);
        // The many newer ones are not read.
        let departed =
            Positions((0..100_000).map(|at| position((1 << 28) + at * 3, 0, 1_000 + at)).collect(), Cell::new(0));
        let mut order = resting_order((1 << 28) + 300, InstrumentId(0), Side::Buy, 4_000, None);
        order.created_at = Timestamp(1_100);
        let Ok(shown) = episode(&departed, &order);
        assert_eq!(shown.map(|position| position.opened_at), Some(Timestamp(1_100)));
        assert!(departed.1.get() < 100, "{}", departed.1.get());
    }
}
