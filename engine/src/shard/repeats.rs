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
    let position = match first.position {
        None => None,
        Some((qty, cost)) => match episode(past.user, known) {
            // As it was: its quantity and cost, the rest from the episode.
            Some(episode) => {
                Some(Position { qty, cost, closed_at: None, settlement: None, is_reset: false, ..episode.clone() })
            }
            None => return BatchEntry::Refused(Reject::RowMissing),
        },
    };
    let fillable = now.terms.quality().fillable.unwrap_or(Qty::ZERO);
    let view = OrderView { order: then, fills, available: first.available, position, is_replay: true, queue: None };
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

/// The episode that the first answer shows. It is in memory as long as the request is.
fn episode<'a>(user: &'a User, known: Known<'a>) -> Option<&'a Position> {
    let here = user.positions().iter().rev().find(|position| is_shown_by(position, known.order));
    let Some(found) = known.found else {
        return Some(here.expect("an episode stays in memory as long as the request that shows it"));
    };
    // An episode that has left memory may be older or newer than one that stayed.
    here.into_iter().chain(&found.episode).max_by_key(|position| position.id)
}
