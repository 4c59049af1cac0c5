//! Decisions about wallets: opening, naming, archiving and resetting (engine/docs/account.md §4).
//!
//! Archiving and resetting first empty the wallet: its orders end, its positions close without cash. A long list takes
//! several pieces; the request is checked before the first one, and the decision is final.

use crate::amount::Cash;
use crate::decide::cancel::closed;
use crate::decide::numbers::Numbers;
use crate::fact;
use crate::id::WalletId;
use crate::mutation::Mutation;
use crate::order::CloseReason;
use crate::reject::Reject;
use crate::rules::{
    self, CASH_MAX, MAIN_RESETS_WINDOW_US, Rules, SWEEP_ORDERS_PER_RECORD_MAX, WALLETS_PER_USER_MAX, main_resets_max,
    sandboxes_max,
};
use crate::time::Timestamp;
use crate::user::Tier;
use crate::user::{User, Wallet, WalletKind};

/// The end of an emptied wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A SANDBOX wallet is archived.
    Archive,
    /// A SANDBOX wallet is archived and replaced by a new one.
    Replace,
    /// MAIN or API: the same wallet starts its next generation.
    Restart,
    /// MAIN: as `Restart`, by a bought reset (gateway/docs/billing.md §3).
    BoughtRestart,
}

/// The result of one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emptied {
    pub orders: usize,
    pub positions: usize,
    /// The wallet is empty.
    pub done: bool,
}

/// Opens a SANDBOX wallet.
///
/// # Errors
/// [`Reject::SandboxLimit`] when the plan allows no more of them; [`Reject::TooManyWallets`].
pub fn open(user: &User, label: Option<String>, now: Timestamp, facts: &mut Vec<Mutation>) -> Result<WalletId, Reject> {
    let tier = user.entitlement(now);
    let active = user.wallets.iter().filter(|wallet| wallet.kind == WalletKind::Sandbox && wallet.is_active());
    if active.count() >= sandboxes_max(tier) {
        return Err(Reject::SandboxLimit);
    }
    room(user)?;
    let wallet = next(user)?;
    let baseline = rules::baseline(WalletKind::Sandbox, tier);
    facts.push(opened(wallet, WalletKind::Sandbox, label, baseline, 1, None, now));
    Ok(wallet)
}

/// Opens a COMPETITION wallet with this cash.
///
/// # Errors
/// [`Reject::TooManyWallets`].
pub fn open_competition(
    user: &User,
    label: Option<String>,
    balance: Cash,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<WalletId, Reject> {
    room(user)?;
    let wallet = next(user)?;
    let balance = balance.clamp(Cash::ZERO, CASH_MAX);
    facts.push(opened(wallet, WalletKind::Competition, label, balance, 1, None, now));
    Ok(wallet)
}

/// Changes or clears the label of a wallet, archived or not.
///
/// # Errors
/// [`Reject::WalletNotFound`].
pub fn relabel(
    user: &User,
    wallet: WalletId,
    label: Option<String>,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    let known = user.wallet(wallet).ok_or(Reject::WalletNotFound)?;
    if known.label() != label.as_deref() {
        facts.push(Mutation::WalletRelabelled(fact::WalletRelabelled { wallet, label, at: now }));
    }
    Ok(())
}

/// Whether a wallet may be archived. `None`: it is archived already, nothing to do.
///
/// # Errors
/// [`Reject::WalletNotFound`]; [`Reject::WrongWalletKind`] unless it is a SANDBOX wallet.
pub fn archive(user: &User, wallet: WalletId) -> Result<Option<Ending>, Reject> {
    let known = user.wallet(wallet).ok_or(Reject::WalletNotFound)?;
    match known.kind {
        WalletKind::Sandbox => Ok(known.is_active().then_some(Ending::Archive)),
        _ => Err(Reject::WrongWalletKind),
    }
}

/// Whether a MAIN or SANDBOX wallet may be reset.
///
/// # Errors
/// [`Reject::WalletNotFound`]; [`Reject::WrongWalletKind`] for other kinds and an archived one;
/// [`Reject::MainResetsSpent`]; [`Reject::TooManyWallets`].
pub fn reset(user: &User, wallet: WalletId, rules: &Rules, now: Timestamp) -> Result<Ending, Reject> {
    let known = user.wallet(wallet).ok_or(Reject::WalletNotFound)?;
    match known.kind {
        WalletKind::Main => {
            let recent = user.resets(wallet).filter(|at| now.since(*at) < MAIN_RESETS_WINDOW_US).count();
            match main_resets_max(user.entitlement(now)) {
                // The previous format has no bought resets.
                Some(most) if recent >= most => match user.main_resets_left() {
                    1.. if rules.formats.is_newest() => Ok(Ending::BoughtRestart),
                    _ => Err(Reject::MainResetsSpent),
                },
                _ => Ok(Ending::Restart),
            }
        }
        WalletKind::Sandbox if known.is_active() => {
            room(user)?;
            next(user).map(|_| Ending::Replace)
        }
        WalletKind::Sandbox | WalletKind::Api | WalletKind::Competition => Err(Reject::WrongWalletKind),
    }
}

/// The wallet of a reset of the API balance, if a reset is allowed now.
///
/// # Errors
/// [`Reject::ResetNeedsPlan`] on the free plan, [`Reject::ResetCoolsDown`] if the last one is too recent.
pub fn reset_api(user: &User, rules: &Rules, now: Timestamp) -> Result<WalletId, Reject> {
    let wallet = user.wallet_of(WalletKind::Api).ok_or(Reject::WalletNotFound)?;
    if user.entitlement(now) == Tier::Free {
        return Err(Reject::ResetNeedsPlan);
    }
    let until = user.resets(wallet.id).max().map(|last| last.plus(rules.api_reset_cooldown_us));
    match until.filter(|until| now < *until) {
        Some(until) => Err(Reject::ResetCoolsDown { until }),
        None => Ok(wallet.id),
    }
}

/// One piece of emptying a wallet: orders first, because reserved shares cannot close.
pub fn empty(user: &User, wallet: WalletId, ending: Ending, now: Timestamp, facts: &mut Vec<Mutation>) -> Emptied {
    let reason = match ending {
        Ending::Archive | Ending::Replace => CloseReason::WalletArchived,
        Ending::Restart | Ending::BoughtRestart => CloseReason::BalanceReset,
    };
    let budget = SWEEP_ORDERS_PER_RECORD_MAX;
    let mut open = user.open_orders().filter(|order| order.terms.wallet == wallet);
    let before = facts.len();
    facts.extend(open.by_ref().take(budget).map(|order| closed(order.id, reason, now)));
    let orders = facts.len() - before;
    if open.next().is_some() {
        return Emptied { orders, ..Emptied::default() };
    }
    let mut held = user.open_positions().filter(|held| held.wallet == wallet);
    let mark = facts.len();
    let positions = held.by_ref().take(budget - orders);
    facts.extend(positions.map(|held| Mutation::PositionReset(fact::PositionReset { position: held.id, at: now })));
    Emptied { orders, positions: facts.len() - mark, done: held.next().is_none() }
}

/// Ends the emptied wallet; returns the wallet that continues.
///
/// # Errors
/// [`Reject::WalletNotFound`]; [`Reject::Busy`] when the object numbers of a user are used up.
pub fn end(
    user: &User,
    wallet: WalletId,
    ending: Ending,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<WalletId, Reject> {
    let known = user.wallet(wallet).ok_or(Reject::WalletNotFound)?;
    match ending {
        Ending::Archive => facts.push(Mutation::WalletArchived(fact::WalletArchived { wallet, at: now })),
        Ending::Restart => {
            facts.push(Mutation::WalletReset(fact::WalletReset { wallet, baseline: known.baseline, at: now }))
        }
        Ending::BoughtRestart => facts.push(fact::BoughtResetUsed { wallet, baseline: known.baseline, at: now }.into()),
        Ending::Replace => {
            let new = next(user)?;
            facts.push(Mutation::WalletArchived(fact::WalletArchived { wallet, at: now }));
            let label = known.label().map(str::to_owned);
            let baseline = renewed(user, known, now);
            facts.push(opened(new, known.kind, label, baseline, known.generation + 1, Some(wallet), now));
            return Ok(new);
        }
    }
    Ok(wallet)
}

/// The opening cash of the next generation of a SANDBOX wallet: as before, or that of the present plan if it is more.
fn renewed(user: &User, wallet: &Wallet, now: Timestamp) -> Cash {
    wallet.baseline.max(rules::baseline(wallet.kind, user.entitlement(now)))
}

/// Whether the user may have one more wallet.
fn room(user: &User) -> Result<(), Reject> {
    if user.wallets.len() >= WALLETS_PER_USER_MAX { Err(Reject::TooManyWallets) } else { Ok(()) }
}

fn next(user: &User) -> Result<WalletId, Reject> {
    Numbers::of(user).map(|mut numbers| WalletId(numbers.take())).ok_or(Reject::Busy)
}

fn opened(
    wallet: WalletId,
    kind: WalletKind,
    label: Option<String>,
    baseline: Cash,
    generation: u32,
    parent: Option<WalletId>,
    at: Timestamp,
) -> Mutation {
    Mutation::WalletOpened(fact::WalletOpened { wallet, kind, label, baseline, generation, parent, at })
}
