//! Answers and figures as short texts, for comparison with a scenario.

use super::world::{START, World};
use crate::amount::{Cash, Qty, average_half_up};
use crate::command::{Answer, BatchEntry};
use crate::id::OrderId;
use crate::mutation::Mutation;
use crate::order::Order;
use crate::reject::Reject;
use crate::time::{MILLISECOND, SECOND};
use crate::view::{KeyView, OrderView};

impl World {
    pub(super) fn answer_text(&mut self, answer: Answer) -> String {
        match answer {
            Answer::Done => "done".to_owned(),
            Answer::Created(_) => "created".to_owned(),
            Answer::Order(view) => self.order_text(&view),
            Answer::Killed { reject, order } => {
                let order = self.order_text(&order);
                format!("{} | {order}", reject_text(&reject))
            }
            Answer::Refused(reject) => reject_text(&reject),
            Answer::Batch(entries) => {
                let texts: Vec<String> = entries
                    .into_iter()
                    .map(|entry| match entry {
                        BatchEntry::Placed(view) => self.order_text(&view),
                        BatchEntry::Killed { reject, order } => {
                            self.order_text(&order);
                            reject_text(&reject)
                        }
                        BatchEntry::Refused(reject) => reject_text(&reject),
                    })
                    .collect();
                texts.join(" | ")
            }
            Answer::Cancelled(swept) => {
                let names = |ids: &[OrderId]| ids.iter().map(|id| self.name(*id)).collect::<Vec<_>>().join(" ");
                let released = format!("{} and {}", text(swept.released.1), shares(swept.released.0));
                format!("cancelled {} released {released}", names(&swept.cancelled)).replace("  ", " ")
            }
            Answer::Cycled { looked_at, fills, closed, .. } => {
                format!("looked {looked_at} filled {fills} closed {closed}")
            }
            Answer::Settled { positions, orders } => format!("paid {positions} expired {orders}"),
            Answer::Beating { lapses_at } => format!("lapses in {} ms", lapses_at.since(self.now) / MILLISECOND),
            Answer::Key(key) => key_text(&key),
            Answer::Rotated { replacement, old_expires_at } => {
                format!(
                    "{} old ends in {} h",
                    key_text(&replacement),
                    old_expires_at.since(self.now) / (3_600 * SECOND)
                )
            }
            Answer::Keys(keys) => keys.iter().map(key_text).collect::<Vec<_>>().join(" | "),
            other => format!("{other:?}"),
        }
    }

    pub(super) fn order_text(&mut self, view: &OrderView) -> String {
        let order = &view.order;
        if !self.orders.contains(&order.id) {
            self.orders.push(order.id);
        }
        let mut line = format!("{:?}", order.status()).to_uppercase();
        if let Some((reason, _)) = order.closed() {
            line += &format!(" {reason:?}");
        }
        line += &format!(" {}/{}", shares(order.filled), shares(order.terms.quantity));
        if let Some(average) = average_half_up(order.notional, order.filled) {
            line += &format!(" @{} fee {}", text(average), text(order.fee));
        }
        if order.reserved_cash() != Cash::ZERO {
            line += &format!(" reserved {}", text(order.reserved_cash()));
        }
        if !order.reserved_qty().is_zero() {
            line += &format!(" reserved {} shares", shares(order.reserved_qty()));
        }
        for (word, is) in [("awaiting", order.awaiting_book), ("held", order.held), ("replay", view.is_replay)] {
            if is {
                line += &format!(" {word}");
            }
        }
        if view.is_replay {
            let position = view.position.as_ref().map_or("nothing".to_owned(), |held| shares(held.qty));
            line += &format!(" available {} holding {position} fills {}", text(view.available), view.fills.len());
            let quality = order.terms.quality();
            assert_eq!((quality.spread_bps, quality.impact_bps, quality.book_walk_levels), (None, None, None));
        }
        line
    }
}

pub(super) fn kind(fact: &Mutation) -> &'static str {
    fact.name()
}

pub(super) fn quality_text(order: &Order) -> String {
    let quality = order.terms.quality();
    let mut line = String::new();
    let figures = [
        ("age", quality.quote_age_ms),
        ("spread", quality.spread_bps),
        ("slippage", quality.slippage_bps),
        ("impact", quality.impact_bps),
        ("levels", quality.book_walk_levels.map(u32::from)),
    ];
    line += &format!("displayed {}", quality.displayed.map_or("none".to_owned(), text));
    for (name, figure) in figures {
        if let Some(figure) = figure {
            line += &format!(" {name} {figure}");
        }
    }
    for (word, is) in [("high", quality.high_slippage), ("stale", quality.stale_quote)] {
        if is {
            line += &format!(" {word}");
        }
    }
    line
}

pub(super) fn key_text(key: &KeyView) -> String {
    let mut line = format!("{} {:?} {:?}", key.name.as_deref().unwrap_or("-"), key.tier, key.permissions);
    for (word, is) in
        [("ends", key.expires_at.is_some()), ("beta", key.beta_until.is_some()), ("used", key.last_used_at.is_some())]
    {
        if is {
            line += &format!(" {word}");
        }
    }
    line
}

pub fn reject_text(reject: &Reject) -> String {
    match reject {
        Reject::DailyLimit { limit, used, resets_at } => {
            format!("DailyLimit {used}/{limit} resets {}", resets_at.since(START) / SECOND)
        }
        Reject::OffTick { tick } => format!("OffTick {}", text(Cash(i64::from(tick.0) * 100))),
        Reject::AboveShareCap { cap } => format!("AboveShareCap {}", shares(*cap)),
        Reject::BelowMinimum { minimum } => format!("BelowMinimum {}", shares(*minimum)),
        Reject::InsufficientPosition { available, requested } => {
            format!("InsufficientPosition {} < {}", shares(*available), shares(*requested))
        }
        Reject::StaleQuote { age_ms, max_age_ms } => format!("StaleQuote {age_ms} > {max_age_ms}"),
        Reject::ResetCoolsDown { until } => format!("ResetCoolsDown until {} h", until.since(START) / (3_600 * SECOND)),
        Reject::NoExecutableDepth { .. } => "NoExecutableDepth".to_owned(),
        Reject::InsufficientLiquidity { .. } => "InsufficientLiquidity".to_owned(),
        Reject::FokNotFilled { fillable, requested, limit, .. } => {
            let limit = text(Cash(i64::from(limit.0) * 100));
            format!("FokNotFilled {} < {} at {limit}", shares(*fillable), shares(*requested))
        }
        Reject::InsufficientBalance { available, required } => {
            format!("InsufficientBalance {} < {}", text(*available), text(*required))
        }
        other => format!("{other:?}"),
    }
}

/// A decimal without trailing zeros.
pub fn text(cash: Cash) -> String {
    let sign = if cash.0 < 0 { "-" } else { "" };
    sign.to_owned() + &shares(Qty(cash.0.unsigned_abs()))
}

pub fn shares(qty: Qty) -> String {
    let text = format!("{}.{:06}", qty.0 / 1_000_000, qty.0 % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
