//! Refusals of the engine on the wire, each with the figures that verbose errors show (gateway/docs/wire.md §5).

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::Refusal;
use engine::amount::Qty;
use engine::command::Answer;
use engine::order::Order;
use engine::reject::Reject;
use engine::time::{SECOND, Timestamp};
use wire::decimal;
use wire::fields::Problems;
use wire::write::{Object, object};

/// The refusal of a reject at `now`. [`Reject::InvalidTerms`] gets its general code, which a caller that knows the cause
/// replaces.
pub fn rejected(reject: &Reject, now: Timestamp) -> Refusal {
    let refusal = Refusal::from(Code::of(reject));
    match reject {
        Reject::DailyLimit { limit, used, resets_at } => {
            refusal.retry_after(seconds_until(*resets_at, now)).details(details(|o| {
                o.integer("limit", (*limit).into());
                o.integer("used", (*used).into());
                o.ts("resets_at", *resets_at);
            }))
        }
        Reject::BacktestsSpent { limit, resets_at } => {
            refusal.retry_after(seconds_until(*resets_at, now)).details(details(|o| {
                o.integer("limit", *limit);
                o.ts("resets_at", *resets_at);
            }))
        }
        Reject::EndedFull => refusal.with_message(
            "The server is busy: ended orders fill the memory for them (history.hot_bytes_max), because the history store \
             takes none. Nothing was written; cancels are accepted.",
        ),
        Reject::BacktestRequestsFull { bytes_max, until } => refusal
            .with_message(format!("The requests of back-tests that are kept have at most {bytes_max} bytes."))
            .retry_after(seconds_until(*until, now))
            .details(details(|o| {
                o.integer("limit", *bytes_max);
                o.ts("resets_at", *until);
            })),
        Reject::MarketHoursSpent { limit, used, resets_at } => {
            refusal.retry_after(seconds_until(*resets_at, now)).details(details(|o| {
                let hours =
                    |out: &mut Vec<u8>, milli: &u64| decimal::exactly::<3>(out, (*milli as i64).saturating_mul(1_000));
                o.quoted("limit", |out| hours(out, limit));
                o.quoted("used", |out| hours(out, used));
                o.ts("resets_at", *resets_at);
            }))
        }
        Reject::OffTick { tick } => refusal.details(details(|o| {
            let out = o.name("tick_size");
            out.push(b'"');
            decimal::tick(out, *tick);
            out.push(b'"');
        })),
        Reject::BelowMinimum { minimum } => refusal.details(details(|o| o.qty("min_order_size", *minimum))),
        Reject::InsufficientPosition { available, requested } => refusal.details(details(|o| {
            o.qty("available", *available);
            o.qty("requested", *requested);
        })),
        Reject::InsufficientBalance { available, required } => refusal.details(details(|o| {
            o.money("available", *available);
            o.money("required", *required);
        })),
        Reject::StaleQuote { age_ms, max_age_ms } => refusal.details(details(|o| {
            o.integer("quote_age_ms", *age_ms);
            o.integer("max_age_ms", *max_age_ms);
        })),
        Reject::FokNotFilled { order, fillable, requested, limit } => refusal.order_id(order.0).details(details(|o| {
            o.qty("fillable", *fillable);
            o.qty("requested", *requested);
            o.price("limit", *limit);
        })),
        Reject::NoExecutableDepth { order: Some(order) } | Reject::InsufficientLiquidity { order: Some(order) } => {
            refusal.order_id(order.0)
        }
        Reject::VenueUnavailable => refusal.field("retry_after", |out| decimal::integer(out, VENUE_RETRY_SECS)),
        // A quantity above the cap is refused before the engine, so this is an amount.
        Reject::AboveShareCap { cap } => {
            let mut problems = Problems::default();
            problems.add("body", "amount", "less_than_equal", above_cap(*cap));
            Refusal::validation(&problems)
        }
        Reject::GtdUnsupported => Refusal::new(Code::ValidationFailed, "time_in_force: GTD is not supported here"),
        Reject::ResetCoolsDown { until } => {
            let refusal = Refusal::new(Code::Http429, "The API wallet was reset too short a time ago.");
            refusal.retry_after(seconds_until(*until, now))
        }
        Reject::WrongWalletKind => {
            Refusal::new(Code::InvalidRequest, "Wallets of this kind, or in this state, have no such operation.")
        }
        Reject::TooManyWallets => Refusal::new(
            Code::InvalidRequest,
            "There have been too many wallets, archived ones included; no more can be opened.",
        ),
        Reject::TooManySafeguards => {
            Refusal::new(Code::InvalidRequest, "Too many heartbeats with other labels are armed.")
        }
        Reject::TooManyAlertTargets => {
            Refusal::new(Code::InvalidRequest, "The account has five of these already; remove one first.")
        }
        Reject::NoAlertStore => {
            Refusal::new(Code::Http503, "While the server writes the previous format, alerts cannot be chosen.")
        }
        Reject::UnknownRealism => Refusal::new(Code::ValidationFailed, "realism: is not a set of this server"),
        Reject::NoRealismStore => {
            Refusal::new(Code::Http503, "While the server writes the previous format, realism cannot be chosen.")
        }
        Reject::KeyExpiring => Refusal::new(Code::InvalidRequest, "The key was rotated already and is expiring."),
        _ => refusal,
    }
}

/// The message of a size above the share cap.
pub fn above_cap(cap: Qty) -> String {
    format!("is above {} shares", cap.0 / Qty::SHARE.0)
}

/// `retry_after` in the body of a refusal by an outage, whose end is unknown; the same as `Retry-After` of its code.
const VENUE_RETRY_SECS: u64 = 60;

/// The refusal of an immediate order that left a row, or of its replay.
pub fn killed(reject: &Reject, order: &Order, now: Timestamp) -> Refusal {
    rejected(reject, now).order_id(order.id.0)
}

/// The refusal of an answer that a command does not expect: a reject with its own code, any other answer as
/// `INTERNAL_ERROR`.
pub fn unexpected(answer: &Answer, now: Timestamp) -> Refusal {
    match answer {
        Answer::Refused(reject) => rejected(reject, now),
        Answer::Killed { reject, order } => killed(reject, &order.order, now),
        _ => Code::InternalError.into(),
    }
}

/// As [`unexpected`], of a command about wallets: a limit of the plan is named by its feature.
pub fn wallet_refused(call: &Call, answer: &Answer) -> Refusal {
    let feature = match answer {
        Answer::Refused(Reject::SandboxLimit) => "wallets.sandbox_baseline",
        Answer::Refused(Reject::MainResetsSpent) => "wallets.main_resets_per_30d",
        Answer::Refused(Reject::ResetNeedsPlan) => "api.reset_balance",
        other => return unexpected(other, call.now),
    };
    Refusal::upgrade(feature, &call.front().settings.http.upgrade_url)
}

fn details(fields: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    object(&mut out, fields);
    out
}

/// Whole seconds from `now` until `at`, at least one.
fn seconds_until(at: Timestamp, now: Timestamp) -> u32 {
    u32::try_from(at.since(now).div_ceil(SECOND)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A permanent limit does not ask the client to retry.
    #[test]
    fn permanent_limits_are_not_called_busy() {
        for (reject, code, words) in [
            (
                Reject::BacktestRequestsFull { bytes_max: 16 << 20, until: Timestamp(1) },
                Code::BacktestMonthlyCap,
                "at most 16777216 bytes",
            ),
            (Reject::TooManyWallets, Code::InvalidRequest, "too many wallets"),
            (Reject::TooManySafeguards, Code::InvalidRequest, "Too many heartbeats"),
            (Reject::WrongWalletKind, Code::InvalidRequest, "no such operation"),
            (Reject::KeyExpiring, Code::InvalidRequest, "rotated already"),
            (Reject::UnknownRealism, Code::ValidationFailed, "not a set"),
            (Reject::NoRealismStore, Code::Http503, "previous format"),
            (Reject::Busy, Code::ServerBusy, "busy"),
            (Reject::EndedFull, Code::ServerBusy, "history.hot_bytes_max"),
            (Reject::AboveShareCap { cap: Qty::from_shares(7) }, Code::ValidationFailed, "amount: is above 7 shares"),
        ] {
            let refusal = rejected(&reject, Timestamp(0));
            assert_eq!(refusal.code(), code, "{reject:?}");
            assert!(refusal.message().contains(words), "{reject:?}: {}", refusal.message());
        }
    }
}
