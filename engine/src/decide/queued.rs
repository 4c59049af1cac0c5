//! The place of an order in the queue of its level when it comes to rest (engine/docs/execution.md §17).

use crate::amount::{Price, Qty};
use crate::book::Unavailable;
use crate::decide::take::{Ground, own_side};
use crate::fact;
use crate::id::{InstrumentId, OrderId};
use crate::mutation::Mutation;
use crate::order::Side;
use crate::realism::{FillTerms, WHOLE};
use crate::reject::Reject;

/// The place as a fact: everything that its level shows is before it. `None`: its model has no queue.
///
/// # Errors
/// [`Reject::Busy`] when the book was being written at every try.
pub fn queue_noted(
    ground: &Ground<'_>,
    order: OrderId,
    (instrument, side, limit): (InstrumentId, Side, Price),
    fill: FillTerms,
) -> Result<Option<Mutation>, Reject> {
    if !fill.model.is_queued() {
        return Ok(None);
    }
    let ahead = match ground.books.shown_at(instrument, own_side(side), limit) {
        Ok((size, _)) => size,
        Err(Unavailable::Unknown) => Qty::ZERO,
        Err(Unavailable::Contended) => return Err(Reject::Busy),
    };
    let (at, venue_at) = (ground.now, ground.venue_at());
    Ok(Some(Mutation::QueueNoted(fact::QueueNoted { order, ahead, confidence: WHOLE, at, venue_at })))
}
