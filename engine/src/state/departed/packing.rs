//! Rows that have left memory as bytes: in the packed form of a snapshot, each row by itself, without numbers of rows in
//! memory. A row has one encoding: bytes that no build wrote are an error.

use super::{EndedOrder, EndedRequest};
use crate::bytes::CodecError;
use crate::mutation::packed::{Packed, Packer, take_small};
use crate::order::row::NO_FILL;
use crate::order::{Fill, Order};
use crate::user::shared_rows::Shared;
use crate::user::{Position, Remembered};

/// Memory that decoded rows share. It saves an allocation for each row of a list; the rows keep their part of it alive.
#[derive(Debug, Default)]
pub struct Sharing(Shared);

/// Appends an ended order and its fills, in time order.
pub fn put_order(order: &Order, fills: &[Fill], out: &mut Vec<u8>) {
    let mut order = order.clone();
    order.last_fill = NO_FILL;
    put_row(&order, None, out);
    let mut packer = Packer::onto(out);
    packer.number(fills.len() as u64);
    packer.end();
    let mut before = Fill::origin(&order);
    for fill in fills {
        let mut fill = fill.clone();
        fill.before = NO_FILL;
        put_row(&fill, Some(&before), out);
        before = fill;
    }
}

/// Reads what [`put_order`] wrote.
///
/// # Errors
/// [`CodecError`] for all other bytes, also for an order that has not ended and fills of another one.
pub fn take_order(bytes: &[u8], sharing: &mut Sharing) -> Result<EndedOrder, CodecError> {
    let mut input = bytes;
    let order = Order::unpack(None, &mut sharing.0.rares, &mut input)?;
    let count = take_small::<usize>(&mut input)?;
    // A fill takes several bytes.
    if count > input.len() {
        return Err(CodecError::Length);
    }
    let (mut fills, mut before) = (Vec::with_capacity(count), Fill::origin(&order));
    for _ in 0..count {
        let fill = Fill::unpack(Some(&before), &mut (), &mut input)?;
        if fill.order != order.id || fill.id.0 <= before.id.0 {
            return Err(CodecError::Reference);
        }
        before = fill.clone();
        fills.push(fill);
    }
    if order.is_open() {
        return Err(CodecError::Reference);
    }
    only(bytes, input, |out| put_order(&order, &fills, out))?;
    Ok(EndedOrder { order, fills })
}

/// Appends a closed position.
pub fn put_position(position: &Position, out: &mut Vec<u8>) {
    put_row(position, None, out);
}

/// Reads what [`put_position`] wrote.
///
/// # Errors
/// [`CodecError`] for all other bytes, also for an open position.
pub fn take_position(bytes: &[u8]) -> Result<Position, CodecError> {
    let mut input = bytes;
    let position = Position::unpack(None, &mut (), &mut input)?;
    if position.is_open() {
        return Err(CodecError::Reference);
    }
    only(bytes, input, |out| put_position(&position, out))?;
    Ok(position)
}

/// Appends a remembered request, without its order.
pub fn put_request(request: &Remembered, out: &mut Vec<u8>) {
    put_row(request, None, out);
}

/// Reads what [`put_request`] wrote.
///
/// # Errors
/// [`CodecError`] for all other bytes.
pub fn take_request(bytes: &[u8], sharing: &mut Sharing) -> Result<Remembered, CodecError> {
    let mut input = bytes;
    let request = Remembered::unpack(None, &mut sharing.0.ids, &mut input)?;
    only(bytes, input, |out| put_request(&request, out))?;
    Ok(request)
}

impl EndedRequest {
    /// Its id.
    pub fn id(&self) -> Option<&str> {
        self.request.id(&self.order.order)
    }
}

fn put_row<T: Packed>(row: &T, before: Option<&T>, out: &mut Vec<u8>) {
    let mut packer = Packer::onto(out);
    row.pack(before, &mut packer);
    packer.end();
}

/// Checks that nothing is left of the input, and that the row has these bytes.
fn only(bytes: &[u8], rest: &[u8], put: impl FnOnce(&mut Vec<u8>)) -> Result<(), CodecError> {
    if !rest.is_empty() {
        return Err(CodecError::Rest);
    }
    let mut again = Vec::with_capacity(bytes.len());
    put(&mut again);
    if again == bytes { Ok(()) } else { Err(CodecError::Variant) }
}

#[cfg(test)]
mod tests;
