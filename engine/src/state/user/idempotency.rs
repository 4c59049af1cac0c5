//! Remembered requests: client order id → order, with a digest of the body and the first answer (gateway/docs/wire.md
//! §11). Its id counts for `[limits] client_ids_hours` from the placement of its order; then the row leaves memory, oldest
//! first, unless it has left before with its order. Whether an id counts follows from the time of the request alone, never
//! from what is in memory.

use super::keyed::Keyed;
use super::rows::Rows;
use super::shared_rows::{SharedRow, SharedRows};
use crate::amount::{Cash, Qty};
use crate::bytes::CodecError;
use crate::id::OrderId;
use crate::mutation::packed::{
    Numbered, Packed, Packer, bits, has, take_byte, take_bytes, take_number, take_signed, take_step, take_text,
};
use crate::order::text::Text;
use crate::order::{CloseReason, Order, Status};
use crate::time::Timestamp;

/// A request that left an order row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub order: OrderId,
    /// SHA-256 over method, path and canonical body without `client_order_id`.
    pub digest: [u8; 32],
    pub first: FirstAnswer,
    /// The id if it is not the order's client order id (signed orders have an implicit one).
    id: Option<SharedRow<Text>>,
}

/// The parts of the first answer that later events may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstAnswer {
    pub status: Status,
    pub closed: Option<CloseReason>,
    pub filled: Qty,
    pub notional: Cash,
    pub fee: Cash,
    pub filled_at: Option<Timestamp>,
    /// Available cash of the wallet after the order.
    pub available: Cash,
    /// Quantity and cost of the position after the order.
    pub position: Option<(Qty, Cash)>,
    pub held: bool,
}

/// Optional parts of a remembered request; the bits of its first byte.
const FILLED: u32 = 0;
const FILLED_AT: u32 = 1;
const CLOSED: u32 = 2;
const POSITION: u32 = 3;
const HELD: u32 = 4;
const ID: u32 = 5;

impl Packed for Remembered {
    type Shared = SharedRows<Text>;

    fn pack(&self, before: Option<&Remembered>, packer: &mut Packer) {
        let Remembered { order, digest, first, id } = self;
        let FirstAnswer { status, closed, filled, notional, fee, filled_at, available, position, held } = first;
        let has_filled = (*filled, *notional, *fee) != (Qty::ZERO, Cash::ZERO, Cash::ZERO);
        let shown = [has_filled, filled_at.is_some(), closed.is_some(), position.is_some(), *held, id.is_some()];
        // The two highest bits are the status.
        packer.byte(bits(shown) | (*status as u8) << 6);
        packer.step(before.map_or(0, |before| before.order.0), order.0);
        packer.step(before.map_or(0, |before| before.first.available.0 as u64), available.0 as u64);
        if let Some(reason) = closed {
            packer.byte(*reason as u8);
        }
        if has_filled {
            packer.number(filled.0);
            packer.signed(notional.0);
            packer.signed(fee.0);
        }
        if let Some(filled_at) = filled_at {
            packer.number(filled_at.0);
        }
        if let Some((qty, cost)) = position {
            packer.number(qty.0);
            packer.signed(cost.0);
        }
        packer.output().extend_from_slice(digest);
        if let Some(id) = id {
            packer.text(id.as_bytes());
        }
    }

    fn unpack(
        before: Option<&Remembered>,
        ids: &mut SharedRows<Text>,
        input: &mut &[u8],
    ) -> Result<Remembered, CodecError> {
        let shown = take_byte(input)?;
        let order = OrderId(take_step(before.map_or(0, |before| before.order.0), input)?);
        let available = Cash(take_step(before.map_or(0, |before| before.first.available.0 as u64), input)? as i64);
        let closed = if has(shown, CLOSED) { Some(CloseReason::of_number(take_byte(input)?)?) } else { None };
        let (mut filled, mut notional, mut fee) = (Qty::ZERO, Cash::ZERO, Cash::ZERO);
        if has(shown, FILLED) {
            (filled, notional, fee) = (Qty(take_number(input)?), Cash(take_signed(input)?), Cash(take_signed(input)?));
        }
        let filled_at = if has(shown, FILLED_AT) { Some(Timestamp(take_number(input)?)) } else { None };
        let position = match has(shown, POSITION) {
            true => Some((Qty(take_number(input)?), Cash(take_signed(input)?))),
            false => None,
        };
        let status = Status::of_number(shown >> 6)?;
        let first = FirstAnswer {
            status,
            closed,
            filled,
            notional,
            fee,
            filled_at,
            available,
            position,
            held: has(shown, HELD),
        };
        let digest = take_bytes(input)?;
        let id = if has(shown, ID) { Some(ids.push(Text::new(take_text(input)?))) } else { None };
        Ok(Remembered { order, digest, first, id })
    }
}

impl Remembered {
    fn new(order: &Order, id: Option<SharedRow<Text>>, digest: [u8; 32], after: After) -> Remembered {
        Remembered {
            order: order.id,
            digest,
            first: FirstAnswer {
                status: order.status(),
                closed: order.closed().map(|(reason, _)| reason),
                filled: order.filled,
                notional: order.notional,
                fee: order.fee,
                filled_at: order.filled_at(),
                available: after.available,
                position: after.position,
                held: order.held,
            },
            id,
        }
    }

    /// The order as in the first answer.
    pub fn order_then(&self, order: &Order) -> Order {
        let first = &self.first;
        order.as_of((first.filled, first.notional, first.fee, first.filled_at), first.closed, first.held)
    }

    /// Whether it is remembered under `id`.
    pub(crate) fn has_id(&self, order: &Order, id: &str) -> bool {
        match &self.id {
            Some(own) => own.as_bytes() == id.as_bytes(),
            None => order.terms.is_client_order_id(id),
        }
    }

    /// Its id.
    pub fn id<'a>(&'a self, order: &'a Order) -> Option<&'a str> {
        self.id.as_ref().map(|id| id.as_str()).or(order.terms.client_order_id())
    }
}

/// The state of an order's wallet after its placement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    pub available: Cash,
    /// Quantity and cost of the position in the order's instrument.
    pub position: Option<(Qty, Cash)>,
}

/// All remembered requests of a user.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// In the order of their orders.
    pub rows: Rows<Remembered>,
    /// Derived: row numbers by the keys of the ids.
    by_id: Keyed,
}

impl Requests {
    /// Adds the request of this order. An id that equals the order's client order id is not stored twice; others are in
    /// `ids`.
    pub fn remember(&mut self, order: &Order, id: &str, digest: [u8; 32], after: After, ids: &mut SharedRows<Text>) {
        let is_own = order.terms.is_client_order_id(id);
        let key = self.by_id.key(id);
        let id = (!is_own).then(|| ids.push(Text::new(id)));
        let row = self.rows.push(Remembered::new(order, id, digest, after));
        self.by_id.insert(key, row as u32);
    }

    /// Requests from a snapshot. `None`: one has no id, or `order_of` does not find its order.
    pub fn of_rows<'a>(rows: Rows<Remembered>, order_of: impl Fn(OrderId) -> Option<&'a Order>) -> Option<Requests> {
        let mut by_id = Keyed::default();
        for (number, row) in rows.range(0..rows.end()) {
            by_id.insert(by_id.key(row.id(order_of(row.order)?)?), number as u32);
        }
        Some(Requests { rows, by_id })
    }

    /// Removes a request of this order.
    pub fn remove(&mut self, number: usize, order: &Order) {
        if let Some(row) = self.rows.remove(number) {
            self.by_id.remove(self.by_id.key(row.id(order).unwrap_or_default()), number as u32);
        }
    }

    /// The request of this order, with its number.
    pub fn of_order(&self, order: OrderId) -> Option<(usize, &Remembered)> {
        let number = self.rows.partition_point(|row| row.order < order);
        self.rows.get(number).filter(|row| row.order == order).map(|row| (number, row))
    }

    /// Prefetches the index entry of `id` and the end of the list, where the next row goes.
    pub fn warm(&self, id: &str) -> usize {
        let newest = self.by_id.newest(self.by_id.key(id)).map_or(0, |row| row as usize);
        newest ^ self.rows.last().map_or(0, |row| row.order.0 as usize)
    }

    /// The newest request remembered under `id`; `has_it` tests a row.
    pub fn find(&self, id: &str, has_it: impl Fn(&Remembered) -> bool) -> Option<&Remembered> {
        let found = self.by_id.find(self.by_id.key(id), |row| self.rows.get(row as usize).is_some_and(&has_it))?;
        self.rows.get(found as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::InstrumentId;
    use crate::mutation::packed::{put_rows, take_rows};
    use crate::order::Side;
    use crate::order::row::tests::resting_order;
    use crate::user::rows::Rows;
    use std::collections::HashMap;

    fn order(client_order_id: Option<&str>) -> Order {
        let order = resting_order(70, InstrumentId(4), Side::Buy, 4_000, None);
        let mut terms = order.terms.to_fact();
        terms.client_order_id = client_order_id.map(str::to_owned);
        Order::new(order.id, &terms, order.created_at, &mut SharedRows::new())
    }

    /// A request whose order rests, and whose wallet has 900 left.
    fn resting() -> Remembered {
        let after = After { available: Cash(900), position: None };
        Remembered::new(&order(None), None, [0xd1; 32], after)
    }

    #[test]
    fn the_bytes_of_every_part_are_golden() {
        let digest = "d1".repeat(32);
        let rests = resting().first;
        let filled = |filled, notional, fee| FirstAnswer {
            filled: Qty(filled),
            notional: Cash(notional),
            fee: Cash(fee),
            ..rests
        };
        let (closed, position) = (Some(CloseReason::CancelAll), Some((Qty(7), Cash(-3))));
        // The first byte, the bytes before the digest and after it.
        let table = [
            (rests, None, "00", "", ""),
            (filled(300, 0, 0), None, "01", "ac020000", ""),
            (filled(0, -1, 0), None, "01", "000100", ""),
            (filled(0, 0, 1), None, "01", "000002", ""),
            (FirstAnswer { filled_at: Some(Timestamp(5)), ..rests }, None, "02", "05", ""),
            (FirstAnswer { closed, ..rests }, None, "04", "05", ""),
            (FirstAnswer { position, ..rests }, None, "08", "0705", ""),
            (FirstAnswer { held: true, ..rests }, None, "10", "", ""),
            (rests, Some("ab"), "20", "", "026162"),
            (FirstAnswer { status: Status::Filled, ..rests }, None, "40", "", ""),
            (FirstAnswer { status: Status::Cancelled, closed, ..rests }, None, "84", "05", ""),
            (FirstAnswer { status: Status::Expired, position, ..filled(1, 2, 3) }, Some(""), "e9", "0104060705", "00"),
        ];
        let mut rows = Rows::new();
        for (number, (first, id, flags, before, after)) in table.into_iter().enumerate() {
            let id = id.map(|id| SharedRow::alone(Text::new(id)));
            let mut row = Remembered { first, id, ..resting() };
            let mut bytes = Vec::new();
            let mut packer = Packer::onto(&mut bytes);
            row.pack(None, &mut packer);
            packer.end();
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, format!("{flags}8c01880e{before}{digest}{after}"), "{first:?}");
            // In a list each of them follows another one.
            (row.order, row.first.available) = (OrderId(70 + number as u64 * 5), Cash(900 - number as i64 * 7));
            rows.push(row);
        }
        let mut bytes = Vec::new();
        let mut packer = Packer::onto(&mut bytes);
        put_rows(rows.len(), rows.iter(), &mut packer);
        packer.end();
        let read = |input: &mut &[u8]| take_rows::<Remembered>(&mut SharedRows::new(), input);
        let input = &mut &bytes[..];
        assert_eq!((read(input).as_ref(), input.len()), (Ok(&rows), 0));
        for end in 0..bytes.len() {
            assert!(read(&mut &bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_request_is_remembered_under_its_id() {
        // The order's id, the request's id.
        for (own, sent) in [(Some("grid-17"), "grid-17"), (Some("grid-17"), "0xfeed"), (None, "0xfeed")] {
            let order = order(own);
            let mut requests = Requests::default();
            let after = After { available: Cash(900), position: None };
            requests.remember(&order, sent, [0; 32], after, &mut SharedRows::new());
            let row = requests.rows.first().expect("just remembered");
            assert_eq!((row.id(&order), row.id.is_none()), (Some(sent), own == Some(sent)), "stored once: {own:?}");
            for id in ["grid-17", "0xfeed", ""] {
                assert_eq!(row.has_id(&order, id), id == sent, "{id:?} of {own:?}, sent as {sent:?}");
            }
        }
    }

    #[test]
    fn ids_with_equal_hashes_are_distinguished() {
        let (mut requests, mut ids, order) = (Requests::default(), SharedRows::new(), order(None));
        // Of some hundred thousand ids two share 32 bits.
        let mut known = HashMap::new();
        let (one, two) = (0_u32..)
            .map(|number| number.to_string())
            .find_map(|id| known.insert(requests.by_id.key(id.as_str()), id.clone()).map(|other| (other, id)))
            .expect("ids outnumber hashes");
        // Ids sent in order → the newest row of either id.
        for (row, (id, of_one, of_two)) in
            [(&one, Some(0), None), (&two, Some(0), Some(1)), (&one, Some(2), Some(1)), (&one, Some(3), Some(1))]
                .into_iter()
                .enumerate()
        {
            let after = After { available: Cash(row as i64), position: None };
            requests.remember(&order, id, [0; 32], after, &mut ids);
            let found = |id: &str| requests.find(id, |row| row.has_id(&order, id)).map(|row| row.first.available.0);
            assert_eq!((found(&one), found(&two)), (of_one, of_two), "{row}");
            assert_eq!(found("never sent"), None);
        }
    }

    /// The oldest leave, and of several with one id the newest is found as long as it is there.
    #[test]
    fn dropped_requests_are_not_found() {
        let (mut requests, mut ids, mut cases) = (Requests::default(), SharedRows::new(), 0);
        let order = order(None);
        let after = |row: usize| After { available: Cash(row as i64), position: None };
        let (sent, kept) = (3_000, 40);
        let id = |row: usize| if row.is_multiple_of(5) { "again".to_owned() } else { row.to_string() };
        for row in 0..sent {
            requests.remember(&order, &id(row), [0; 32], after(row), &mut ids);
            let found = |id: &str| requests.find(id, |row| row.has_id(&order, id)).map(|row| row.first.available.0);
            assert_eq!(found(&id(row)), Some(row as i64));
            if let Some(old) = row.checked_sub(kept) {
                requests.remove(old, &order);
                let found = |id: &str| requests.find(id, |row| row.has_id(&order, id)).map(|row| row.first.available.0);
                assert_eq!(found("again"), Some((row / 5 * 5) as i64));
                assert_eq!(found(&id(old)).is_some(), old.is_multiple_of(5), "{old}");
                assert!(found(&id(old + 1)).is_some(), "{old}");
                assert_eq!(requests.rows.len(), kept);
                cases += 1;
            }
        }
        while let Some((number, _)) = requests.rows.at_or_after(0) {
            requests.remove(number, &order);
        }
        assert!(requests.by_id.is_empty());
        for row in 0..sent {
            assert!(requests.find(&id(row), |_| true).is_none(), "{row}");
        }
        println!("dropped requests: {cases} cases");
    }
}
