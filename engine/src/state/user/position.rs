//! Holdings by instrument: one episode from the first buy to zero. Quantity and cost are stored; averages are computed.

use crate::amount::{Cash, Price, Qty, average_half_up};
use crate::bytes::{Bytes, CodecError, leaf};
use crate::id::{InstrumentId, PositionId, WalletId};
use crate::mutation::packed::{Packed, Packer, bits, has, take_byte, take_number, take_signed, take_small, take_step};
use crate::time::Timestamp;
use wincode::{SchemaRead, SchemaWrite};

/// One episode of holding an instrument in a wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub id: PositionId,
    pub wallet: WalletId,
    pub instrument: InstrumentId,
    pub qty: Qty,
    /// Reserved for open SELL orders.
    pub reserved: Qty,
    /// Σ BUY notional of the held shares, fees excluded.
    pub cost: Cash,
    /// Quantity and cost right before the fact that closed it; zero while it is open.
    pub last_open: (Qty, Cash),
    pub realized: Cash,
    pub opened_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub settlement: Option<Box<Settlement>>,
    /// Ended with its wallet's generation, by a reset or an archiving, not by trading.
    pub is_reset: bool,
}

/// The payout of a position at resolution (engine/docs/execution.md §12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
pub struct Settlement {
    pub qty: Qty,
    pub cost: Cash,
    pub payout_per_share: Price,
    pub payout: Cash,
    pub at: Timestamp,
}

leaf! { Box<Settlement> }

/// Optional parts of a position; the bits of its first byte.
const HELD: u32 = 0;
const LAST_OPEN: u32 = 1;
const CLOSED: u32 = 2;
const SETTLED: u32 = 3;
const RESET: u32 = 4;

impl Packed for Position {
    type Shared = ();

    fn pack(&self, before: Option<&Position>, packer: &mut Packer) {
        let Position { id, wallet, instrument, qty, reserved, cost, last_open, realized, opened_at, .. } = self;
        let Position { closed_at, settlement, is_reset, .. } = self;
        let holds = (*qty, *reserved, *cost) != (Qty::ZERO, Qty::ZERO, Cash::ZERO);
        let was_open = *last_open != (Qty::ZERO, Cash::ZERO);
        packer.byte(bits([holds, was_open, closed_at.is_some(), settlement.is_some(), *is_reset]));
        packer.step(before.map_or(0, |before| before.id.0), id.0);
        packer.step(before.map_or(0, |before| before.wallet.0), wallet.0);
        packer.step(before.map_or(0, |before| before.opened_at.0), opened_at.0);
        packer.number(instrument.0.into());
        packer.signed(realized.0);
        if holds {
            packer.number(qty.0);
            packer.number(reserved.0);
            packer.signed(cost.0);
        }
        if was_open {
            packer.number(last_open.0.0);
            packer.signed(last_open.1.0);
        }
        if let Some(closed_at) = closed_at {
            packer.step(opened_at.0, closed_at.0);
        }
        if let Some(settlement) = settlement {
            settlement.put(packer.output());
        }
    }

    fn unpack(before: Option<&Position>, (): &mut (), input: &mut &[u8]) -> Result<Position, CodecError> {
        let shown = take_byte(input)?;
        let id = PositionId(take_step(before.map_or(0, |before| before.id.0), input)?);
        let wallet = WalletId(take_step(before.map_or(0, |before| before.wallet.0), input)?);
        let opened_at = Timestamp(take_step(before.map_or(0, |before| before.opened_at.0), input)?);
        let instrument = InstrumentId(take_small(input)?);
        let realized = Cash(take_signed(input)?);
        let (mut qty, mut reserved, mut cost) = (Qty::ZERO, Qty::ZERO, Cash::ZERO);
        if has(shown, HELD) {
            (qty, reserved, cost) = (Qty(take_number(input)?), Qty(take_number(input)?), Cash(take_signed(input)?));
        }
        let mut last_open = (Qty::ZERO, Cash::ZERO);
        if has(shown, LAST_OPEN) {
            last_open = (Qty(take_number(input)?), Cash(take_signed(input)?));
        }
        let closed_at = if has(shown, CLOSED) { Some(Timestamp(take_step(opened_at.0, input)?)) } else { None };
        let settlement = if has(shown, SETTLED) { Some(Bytes::take(input)?) } else { None };
        let is_reset = has(shown, RESET);
        // Every field by its name: a new one that is not packed does not compile.
        Ok(Position {
            id,
            wallet,
            instrument,
            qty,
            reserved,
            cost,
            last_open,
            realized,
            opened_at,
            closed_at,
            settlement,
            is_reset,
        })
    }
}

impl Position {
    pub(crate) fn open(id: PositionId, wallet: WalletId, instrument: InstrumentId, at: Timestamp) -> Position {
        Position {
            id,
            wallet,
            instrument,
            qty: Qty::ZERO,
            reserved: Qty::ZERO,
            cost: Cash::ZERO,
            last_open: (Qty::ZERO, Cash::ZERO),
            realized: Cash::ZERO,
            opened_at: at,
            closed_at: None,
            settlement: None,
            is_reset: false,
        }
    }

    pub fn is_open(&self) -> bool {
        self.closed_at.is_none()
    }

    /// Whether it ended with a gain; break-even is not a gain.
    pub fn has_won(&self) -> bool {
        self.has_known_exit() && self.realized > Cash::ZERO
    }

    /// Whether it ended by a sale or a payout, at a known price.
    pub fn has_known_exit(&self) -> bool {
        !self.is_open() && !self.is_reset
    }

    /// Shares that can be sold.
    pub fn available(&self) -> Qty {
        self.qty - self.reserved
    }

    /// Cost per share in 10⁻⁶ USD; of the last open state if it is closed.
    pub fn average(&self) -> Option<Cash> {
        let (qty, cost) = if self.is_open() { (self.qty, self.cost) } else { self.last_open };
        average_half_up(cost, qty)
    }

    pub(crate) fn buy(&mut self, qty: Qty, notional: Cash) {
        assert!(self.is_open(), "shares are bought into an open episode: position {}", self.id);
        self.qty += qty;
        self.cost += notional;
    }

    /// Removes sold shares; `reserved` of the remaining ones stay reserved.
    pub(crate) fn sell(&mut self, qty: Qty, notional: Cash, cost_out: Cash, reserved: Qty, at: Timestamp) {
        assert!(self.is_open(), "shares are sold from an open episode: position {}", self.id);
        assert!(qty <= self.qty, "sold shares ≤ held shares: {qty:?} of {:?}, position {}", self.qty, self.id);
        let before = (self.qty, self.cost);
        self.qty -= qty;
        self.cost -= cost_out;
        self.realized += notional - cost_out;
        self.set_reserved(reserved);
        if self.qty.is_zero() {
            assert!(
                self.cost == Cash::ZERO,
                "all cost leaves with the last share: {:?} left, position {}",
                self.cost,
                self.id
            );
            self.last_open = before;
            self.closed_at = Some(at);
        }
    }

    pub(crate) fn set_reserved(&mut self, reserved: Qty) {
        self.reserved = reserved;
        assert!(
            self.reserved <= self.qty,
            "reserved shares ≤ held shares: {:?} of {:?}, position {}",
            self.reserved,
            self.qty,
            self.id
        );
    }

    pub(crate) fn settle(&mut self, payout_per_share: Price, payout: Cash, at: Timestamp) {
        assert!(self.is_open(), "a position is paid out once: position {}", self.id);
        assert!(self.reserved.is_zero(), "orders end before positions are paid out: position {}", self.id);
        self.settlement = Some(Box::new(Settlement { qty: self.qty, cost: self.cost, payout_per_share, payout, at }));
        self.last_open = (self.qty, self.cost);
        self.realized += payout - self.cost;
        self.qty = Qty::ZERO;
        self.cost = Cash::ZERO;
        self.closed_at = Some(at);
    }

    /// Ends without cash.
    pub(crate) fn reset(&mut self, at: Timestamp) {
        assert!(self.is_open(), "a position ends once: position {}", self.id);
        assert!(self.reserved.is_zero(), "orders end before positions are closed: position {}", self.id);
        self.last_open = (self.qty, self.cost);
        self.qty = Qty::ZERO;
        self.cost = Cash::ZERO;
        self.closed_at = Some(at);
        self.is_reset = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_a_closed_episode_is_that_of_its_last_open_state() {
        let mut position = Position::open(PositionId(1), WalletId(2), InstrumentId(3), Timestamp(1));
        position.buy(Qty::from_shares(10), Cash(4_000_000));
        position.buy(Qty::from_shares(10), Cash(5_000_000));
        assert_eq!(position.average(), Some(Cash(450_000)));
        position.sell(Qty::from_shares(5), Cash(3_000_000), Cash(2_250_000), Qty::ZERO, Timestamp(2));
        assert_eq!((position.average(), position.realized), (Some(Cash(450_000)), Cash(750_000)));
        position.sell(Qty::from_shares(15), Cash(6_000_000), Cash(6_750_000), Qty::ZERO, Timestamp(3));
        assert_eq!((position.average(), position.realized), (Some(Cash(450_000)), Cash::ZERO));
        assert_eq!(position.closed_at, Some(Timestamp(3)));
    }

    #[test]
    fn a_payout_records_a_settlement() {
        let mut position = Position::open(PositionId(1), WalletId(2), InstrumentId(3), Timestamp(1));
        position.buy(Qty::from_shares(10), Cash(4_000_000));
        position.settle(Price::ONE, Cash(10_000_000), Timestamp(9));
        let settlement = position.settlement.as_deref().expect("it was settled");
        assert_eq!((settlement.qty, settlement.cost), (Qty::from_shares(10), Cash(4_000_000)));
        assert_eq!((position.qty, position.cost, position.realized), (Qty::ZERO, Cash::ZERO, Cash(6_000_000)));
    }

    #[test]
    fn a_reset_is_neither_gain_nor_loss() {
        let mut position = Position::open(PositionId(1), WalletId(2), InstrumentId(3), Timestamp(1));
        position.buy(Qty::from_shares(10), Cash(4_000_000));
        position.reset(Timestamp(9));
        assert_eq!((position.qty, position.cost, position.realized), (Qty::ZERO, Cash::ZERO, Cash::ZERO));
        assert_eq!((position.average(), position.closed_at), (Some(Cash(400_000)), Some(Timestamp(9))));
        assert!(position.is_reset && !position.has_known_exit() && !position.has_won());
    }

    #[test]
    #[should_panic(expected = "reserved shares ≤ held shares")]
    fn reserved_shares_are_held() {
        let mut position = Position::open(PositionId(1), WalletId(2), InstrumentId(3), Timestamp(1));
        position.buy(Qty(5), Cash(1));
        position.set_reserved(Qty(6));
    }
}
