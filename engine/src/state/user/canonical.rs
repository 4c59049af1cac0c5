//! The rows of a user as canonical bytes (engine/docs/digest.md): orders with the ids of their fills, fills, episodes
//! with their settlements, remembered requests, also those that have left memory.

use super::idempotency::{FirstAnswer, Remembered};
use super::position::{Position, Settlement};
use super::trading::Trading;
use crate::amount::{Cash, Qty};
use crate::canonical::{Kind, ROWS_TOGETHER, RowBytes, RowHashes};
use crate::departed::EndedOrder;
use crate::id::TradeId;
use crate::mutation::packed::bits;
use crate::order::row::NO_FILL;
use crate::order::{Fill, Order};

impl Trading {
    /// Adds the hashes of all rows, while `goes_on` returns true: it is called after each [`ROWS_TOGETHER`] of them.
    /// `None`: it returned false.
    ///
    /// # Panics
    /// When a request has no order: `derive` refuses such rows.
    pub fn hash_rows(&self, hashes: &mut RowHashes, mut goes_on: impl FnMut() -> bool) -> Option<()> {
        let mut count = 0_usize;
        let mut hashed = || {
            count += 1;
            (!count.is_multiple_of(ROWS_TOGETHER) || goes_on()).then_some(())
        };
        if let Some(departed) = &self.departed {
            hashes.sum.add(&departed.sum.bytes());
        }
        let mut ids = Vec::new();
        for order in &self.orders {
            self.hash_order(order, &mut ids, hashes);
            hashed()?;
        }
        for fill in &self.fills {
            fill.hash(hashes);
            hashed()?;
        }
        for position in &self.positions {
            position.hash(hashes);
            hashed()?;
        }
        for request in self.requests.iter().flat_map(|requests| requests.rows.iter()) {
            let order = self.order_row(request.order).expect("a remembered request has an order");
            request.hash(&self.orders[order], hashes);
            hashed()?;
        }
        Some(())
    }

    /// Adds the hash of an order; `ids` is space for those of its fills.
    pub(super) fn hash_order(&self, order: &Order, ids: &mut Vec<TradeId>, hashes: &mut RowHashes) {
        ids.clear();
        let mut row = order.last_fill;
        while row != NO_FILL {
            let fill = &self.fills[row as usize];
            ids.push(fill.id);
            row = fill.before;
        }
        ids.reverse();
        hashes.add(Kind::Order, |row| order.put_canonical(ids, row));
    }
}

/// The sum of the hashes of rows that have left memory, to compare it with that of a state.
#[derive(Debug, Default)]
pub struct RowSum(RowHashes);

impl RowSum {
    /// Adds an order, and its fills.
    pub fn order(&mut self, EndedOrder { order, fills }: &EndedOrder) {
        let ids: Vec<TradeId> = fills.iter().map(|fill| fill.id).collect();
        self.0.add(Kind::Order, |row| order.put_canonical(&ids, row));
        fills.iter().for_each(|fill| fill.hash(&mut self.0));
    }

    /// Adds a closed position.
    pub fn position(&mut self, position: &Position) {
        position.hash(&mut self.0);
    }

    /// Adds a remembered request of this order.
    pub fn request(&mut self, request: &Remembered, order: &Order) {
        request.hash(order, &mut self.0);
    }

    pub fn bytes(&self) -> [u8; 32] {
        self.0.sum.bytes()
    }
}

impl Fill {
    /// Adds its hash.
    pub(super) fn hash(&self, hashes: &mut RowHashes) {
        hashes.add(Kind::Fill, |row| self.put_canonical(row));
    }
}

impl Position {
    /// Adds its hash.
    pub(super) fn hash(&self, hashes: &mut RowHashes) {
        hashes.add(Kind::Position, |row| self.put_canonical(row));
    }

    fn put_canonical(&self, row: &mut RowBytes<'_>) {
        let Position {
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
        } = self;
        for number in [id.0, wallet.0, instrument.0.into(), qty.0, reserved.0, cost.0 as u64, realized.0 as u64] {
            row.number(number);
        }
        row.number(opened_at.0);
        row.byte((*is_reset).into());
        if *last_open != (Qty::ZERO, Cash::ZERO) {
            row.byte(1);
            row.number(last_open.0.0);
            row.signed(last_open.1.0);
        }
        row.optional(2, closed_at.map(|at| at.0));
        if let Some(settlement) = settlement {
            let Settlement { qty, cost, payout_per_share, payout, at } = &**settlement;
            row.byte(3);
            for number in [qty.0, cost.0 as u64, payout_per_share.0.into(), payout.0 as u64, at.0] {
                row.number(number);
            }
        }
    }
}

impl Remembered {
    /// Adds its hash. `order` is the order that it left.
    ///
    /// The time of the first answer's last fill is that of the fill row, so only its presence is hashed: a correction of
    /// the clock changes the fill, also when the request is no longer in memory.
    pub(crate) fn hash(&self, order: &Order, hashes: &mut RowHashes) {
        let FirstAnswer { status, closed, filled, notional, fee, filled_at, available, position, held } = self.first;
        hashes.add(Kind::Request, |row| {
            row.number(self.order.0);
            row.text(self.id(order).unwrap_or_default().as_bytes());
            row.hash(&self.digest);
            row.byte(status as u8);
            row.byte(bits([held, filled_at.is_some()]));
            for number in [filled.0, notional.0 as u64, fee.0 as u64, available.0 as u64] {
                row.number(number);
            }
            if let Some(reason) = closed {
                row.byte(1);
                row.byte(reason as u8);
            }
            if let Some((qty, cost)) = position {
                row.byte(2);
                row.number(qty.0);
                row.signed(cost.0);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Price;
    use crate::canonical::tests::hex_of;
    use crate::id::{InstrumentId, PositionId, WalletId};
    use crate::time::Timestamp;

    #[test]
    fn the_bytes_of_episodes_are_golden() {
        let numbers = |numbers: &[u64]| -> String {
            numbers.iter().flat_map(|number| number.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
        };
        let mut open = Position::open(PositionId(9), WalletId(1), InstrumentId(7), Timestamp(8));
        open.buy(Qty(30), Cash(12));
        open.set_reserved(Qty(5));
        let mut settled = open.clone();
        settled.set_reserved(Qty::ZERO);
        let mut reset = settled.clone();
        settled.settle(Price(10_000), Cash(30), Timestamp(20));
        reset.reset(Timestamp(21));
        let closed = |at| format!("01{}02{}", numbers(&[30, 12]), numbers(&[at]));
        let rows = [
            (open, format!("03{}00", numbers(&[9, 1, 7, 30, 5, 12, 0, 8]))),
            (
                settled,
                format!(
                    "03{}00{}03{}",
                    numbers(&[9, 1, 7, 0, 0, 0, 18, 8]),
                    closed(20),
                    numbers(&[30, 12, 10_000, 30, 20])
                ),
            ),
            (reset, format!("03{}01{}", numbers(&[9, 1, 7, 0, 0, 0, 0, 8]), closed(21))),
        ];
        for (position, expected) in &rows {
            assert_eq!(hex_of(Kind::Position, |row| position.put_canonical(row)), *expected, "{position:?}");
        }
        println!("bytes of episodes: {} cases", rows.len());
    }
}
