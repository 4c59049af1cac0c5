//! The first answer to a repeated request (gateway/docs/wire.md §11), from rows in memory or from those that were found
//! for a command.

use crate::amount::Qty;
use crate::command::BatchEntry;
use crate::decide::enter::refusal;
use crate::look_up::{Known, Past, is_shown_by};
use crate::order::{CloseReason, Fill};
use crate::reject::Reject;
use crate::time::Timestamp;
use crate::user::{Position, User};
use crate::view::{Fills, OrderView};

/// The first answer to the request that is remembered under this id, if its order was placed at `since` or later.
pub(crate) fn first_answer(past: Past<'_>, client_order_id: &str, since: Timestamp) -> BatchEntry {
    let Some(known) = past.remembered(client_order_id, since) else {
        return BatchEntry::Refused(Reject::OrderNotFound);
    };
    let (first, now) = (&known.request.first, known.order);
    let then = known.request.order_then(now);
    let fills = match known.found {
        Some(found) => first_fills(&found.request.order.fills, then.filled),
        None => first_fills(&past.user.fills_of(now), then.filled),
    };
    let position = first.position.map(|figures| position_then(past.user, known, figures));
    let fillable = now.terms.quality().fillable.unwrap_or(Qty::ZERO);
    let view = OrderView { order: then, fills, available: first.available, position, is_replay: true };
    match first.closed {
        Some(reason @ (CloseReason::FokNotFilled | CloseReason::FakNoFill)) => {
            let requested = (now.terms.quantity, now.terms.limit);
            BatchEntry::Killed { reject: refusal(now.id, reason, fillable, requested.0, requested.1), order: view }
        }
        _ => BatchEntry::Placed(view),
    }
}

/// The first of an order's fills, which are `filled` together.
fn first_fills(fills: &[Fill], filled: Qty) -> Fills {
    let mut sum = Qty::ZERO;
    let in_time = fills.iter().take_while(|fill| {
        let in_time = sum < filled;
        sum += fill.qty;
        in_time
    });
    in_time.cloned().collect()
}

/// The position as in the first answer: its quantity and cost, the rest from the episode.
fn position_then(user: &User, known: Known<'_>, (qty, cost): (Qty, crate::amount::Cash)) -> Position {
    let here = user.positions().iter().rev().find(|position| is_shown_by(position, known.order));
    let gone = known.found.and_then(|found| found.episode.as_ref());
    // An episode that has left memory may be older or newer than one that stayed.
    let episode = here.into_iter().chain(gone).max_by_key(|position| position.id);
    let episode = episode.expect("the episode of a remembered request is in memory, or was found with it");
    Position { qty, cost, closed_at: None, settlement: None, is_reset: false, ..episode.clone() }
}
