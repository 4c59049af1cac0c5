//! Wallets and equity in the model (gateway/docs/accounts.md §1, engine/docs/account.md §5): everything is
//! recalculated, hour by hour.

use super::{Expected, Model, Moment, User, Wallet, half_up};
use engine::command::Command;
use engine::order::CloseReason;
use engine::reject::Reject;
use engine::user::{Tier, WalletKind};
use std::collections::BTreeMap;

const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;

/// The worth of a wallet at a full hour: cash, positions, baseline.
pub type Worth = (i128, i128, i128);

/// Progress of a shard's points.
#[derive(Clone, Debug, Default)]
pub struct Hours {
    /// The hour up to which all users have theirs.
    pub reached: u64,
    /// The hour in which the life before ended, until its points are made again.
    pub unsure: Option<u64>,
    /// A cycle has run.
    pub has_books: bool,
    /// The hour up to which a user has points that could not wait for the others.
    pub early: BTreeMap<u64, u64>,
}

impl Hours {
    pub fn is_due(&self, now: u64) -> bool {
        self.has_books && (self.unsure.is_some() || self.reached < now / HOUR)
    }
}

impl Wallet {
    pub fn new(id: u64, kind: WalletKind, baseline: i128, at: u64) -> Wallet {
        Wallet {
            id,
            kind,
            label: None,
            baseline,
            cash: baseline,
            deposits: 0,
            paid_in_at: Vec::new(),
            generation: 1,
            parent: None,
            opened_at: at,
            archived_at: None,
            opening: baseline,
            points: Vec::new(),
            resets: Vec::new(),
        }
    }

    /// Its worth at an hour after its opening.
    pub fn worth_at(&self, hour: u64) -> Worth {
        let last = self.points.iter().rev().find(|(of, _)| *of <= hour);
        last.map_or((self.opening, 0, self.opening), |(_, worth)| *worth)
    }

    /// The full hours since its opening, up to one.
    pub fn hours(&self, first: u64, last: u64) -> std::ops::RangeInclusive<u64> {
        first.max(self.opened_at / HOUR + 1)..=last
    }
}

/// gateway/docs/accounts.md §1.
fn sandboxes(tier: Tier) -> (usize, i128) {
    match tier {
        Tier::Free => (0, 0),
        Tier::Pro => (3, 10_000_000_000),
        Tier::ProPlus => (10, 25_000_000_000),
        Tier::Enterprise => (50, 25_000_000_000),
    }
}

impl User {
    fn known(&mut self, id: u64) -> Result<&mut Wallet, Reject> {
        self.wallets.iter_mut().find(|wallet| wallet.id == id).ok_or(Reject::WalletNotFound)
    }

    /// Whether cash or shares have changed since a time.
    fn moved_since(&self, moment: u64) -> bool {
        let fills = self.orders.values().flat_map(|order| &order.fills).map(|fill| fill.at);
        let ended = self.positions.iter().filter_map(|held| held.closed_at);
        let resets = self.wallets.iter().flat_map(|wallet| wallet.resets.iter().copied());
        let billed = self.purchases.iter().map(|bought| bought.at);
        fills.chain(ended).chain(resets).chain(billed).any(|at| at >= moment)
    }

    fn open_sandbox(&mut self, baseline: i128, label: Option<String>, at: u64) -> Wallet {
        let opened = Wallet { label, ..Wallet::new(self.take_id(), WalletKind::Sandbox, baseline, at) };
        self.wallets.push(opened.clone());
        opened
    }

    /// Ends all that is open in a wallet: number of orders and positions.
    fn empty(&mut self, wallet: u64, reason: CloseReason, at: u64) -> (u64, u64) {
        let open: Vec<u64> = self.open_orders().filter(|order| order.wallet == wallet).map(|order| order.id).collect();
        open.iter().for_each(|order| self.close(*order, reason, at));
        let mut positions = 0;
        for held in self.positions.iter_mut().filter(|held| held.wallet == wallet && held.closed_at.is_none()) {
            (held.qty, held.cost, held.closed_at, held.reset) = (0, 0, Some(at), true);
            positions += 1;
        }
        (open.len() as u64, positions)
    }

    /// The same wallet, its next generation.
    fn begin_anew(&mut self, wallet: u64, at: u64) -> Result<Expected, Reject> {
        let (orders, positions) = self.empty(wallet, CloseReason::BalanceReset, at);
        let known = self.known(wallet)?;
        known.cash = known.baseline;
        known.generation += 1;
        known.resets.push(at);
        Ok(Expected::Emptied { wallet: known.clone(), orders, positions })
    }

    /// All these wallets at each full hour of any of their lives.
    pub fn equity(&self, wallets: &[u64], first: u64, last: u64) -> Vec<(u64, Worth)> {
        let chosen = || self.wallets.iter().filter(|wallet| wallets.contains(&wallet.id));
        let mut rows = Vec::new();
        for hour in first..=last {
            let alive = chosen().filter(|wallet| wallet.hours(first, last).contains(&hour));
            let worths: Vec<Worth> = alive.map(|wallet| wallet.worth_at(hour)).collect();
            if !worths.is_empty() {
                let sum = |part: fn(&Worth) -> i128| worths.iter().map(part).sum();
                rows.push((hour, (sum(|worth| worth.0), sum(|worth| worth.1), sum(|worth| worth.2))));
            }
        }
        rows
    }
}

impl Model {
    /// A command about wallets; `Err` changes nothing. False: nothing changed.
    pub(super) fn change_wallets(
        &mut self,
        owner: u64,
        command: &Command,
        Moment { now, .. }: Moment,
    ) -> Result<(Expected, bool), Reject> {
        let user = self.users.get_mut(&owner).expect("checked by the caller");
        let (entitled, cooldown) = (user.entitled(now), self.reset_cooldown);
        let (most, plan) = sandboxes(entitled);
        let expected = match command {
            Command::OpenWallet { label, .. } => {
                let kind = WalletKind::Sandbox;
                let mine = user.wallets.iter().filter(|wallet| wallet.kind == kind && wallet.archived_at.is_none());
                if mine.count() >= most {
                    return Err(Reject::SandboxLimit);
                }
                Expected::Wallet(user.open_sandbox(plan, label.clone(), now), 0)
            }
            Command::RelabelWallet { wallet, label } => {
                let reserved = user.reserved(wallet.0);
                let known = user.known(wallet.0)?;
                let changed = known.label != *label;
                known.label = label.clone();
                return Ok((Expected::Wallet(known.clone(), reserved), changed));
            }
            Command::ArchiveWallet { wallet } => {
                let known = user.known(wallet.0)?;
                if known.kind != WalletKind::Sandbox {
                    return Err(Reject::WrongWalletKind);
                }
                if known.archived_at.is_some() {
                    return Ok((Expected::Emptied { wallet: known.clone(), orders: 0, positions: 0 }, false));
                }
                let (orders, positions) = user.empty(wallet.0, CloseReason::WalletArchived, now);
                let known = user.known(wallet.0)?;
                known.archived_at = Some(now);
                Expected::Emptied { wallet: known.clone(), orders, positions }
            }
            Command::ResetWallet { wallet, .. } => {
                let known = user.known(wallet.0)?.clone();
                match known.kind {
                    WalletKind::Main => {
                        let recent = known.resets.iter().filter(|at| now - **at < 30 * DAY).count();
                        let allowed = match entitled {
                            Tier::Free => 1,
                            Tier::Pro => 4,
                            Tier::ProPlus | Tier::Enterprise => usize::MAX,
                        };
                        if recent >= allowed {
                            return Err(Reject::MainResetsSpent);
                        }
                        user.begin_anew(wallet.0, now)?
                    }
                    WalletKind::Sandbox if known.archived_at.is_none() => {
                        let (orders, positions) = user.empty(wallet.0, CloseReason::WalletArchived, now);
                        user.known(wallet.0)?.archived_at = Some(now);
                        let next = user.open_sandbox(known.baseline.max(plan), known.label, now).id;
                        let opened = user.known(next)?;
                        (opened.generation, opened.parent) = (known.generation + 1, Some(known.id));
                        Expected::Emptied { wallet: opened.clone(), orders, positions }
                    }
                    _ => return Err(Reject::WrongWalletKind),
                }
            }
            Command::ResetApiWallet { .. } => {
                let api = user.wallet_of(WalletKind::Api).ok_or(Reject::WalletNotFound)?.clone();
                if entitled == Tier::Free {
                    return Err(Reject::ResetNeedsPlan);
                }
                let until = api.resets.last().map(|last| last + cooldown);
                if let Some(until) = until.filter(|until| now < *until) {
                    return Err(Reject::ResetCoolsDown { until: engine::time::Timestamp(until) });
                }
                user.begin_anew(api.id, now)?
            }
            other => unreachable!("{other:?} is not about wallets"),
        };
        Ok((expected, true))
    }

    /// The points that are due for the users of one shard.
    pub fn note_hours(&mut self, of_shard: impl Fn(u64) -> bool, hours: &mut Hours, now: u64) {
        let owners: Vec<u64> = self.users.keys().copied().filter(|id| of_shard(*id)).collect();
        owners.into_iter().for_each(|owner| self.note_user(owner, hours, now));
        (hours.reached, hours.unsure) = (now / HOUR, None);
        hours.early.retain(|_, had| *had > now / HOUR);
    }

    /// The points of a user before one of its values changes, while the points of all users wait for room.
    pub fn note_early(&mut self, owner: u64, hours: &mut Hours, now: u64) {
        if hours.is_due(now) {
            self.note_user(owner, hours, now);
            hours.early.insert(owner, now / HOUR);
        }
    }

    /// Those of the hour before a restart that the user lacks, unless something changed since; then the first that
    /// ended after all that have theirs.
    fn note_user(&mut self, owner: u64, hours: &Hours, now: u64) {
        let had = hours.early.get(&owner);
        if let Some(hour) = hours.unsure.filter(|_| had.is_none()) {
            let moved = self.users.get(&owner).is_some_and(|user| user.moved_since(hour * HOUR));
            if !moved {
                self.note_hour(owner, hour, |last, worth| (last.0, last.1) != (worth.0, worth.1));
            }
        }
        let first = had.map_or(hours.reached, |had| hours.reached.max(*had)) + 1;
        if first <= now / HOUR {
            self.note_hour(owner, first, |last, worth| last != worth);
        }
    }

    /// The points of a full hour: of each wallet whose worth differs from before.
    fn note_hour(&mut self, owner: u64, hour: u64, is_news: impl Fn(Worth, Worth) -> bool) {
        let Some(mut user) = self.users.get(&owner).cloned() else { return };
        let mut noted = false;
        for wallet in 0..user.wallets.len() {
            let known = &user.wallets[wallet];
            let mine = user.positions.iter().filter(|held| held.wallet == known.id && held.closed_at.is_none());
            let value = |held: &super::Position| {
                self.mark(held.token).map_or(held.cost, |mark| half_up(mark * held.qty, 1_000_000))
            };
            let worth = (known.cash, mine.map(value).sum(), known.baseline + known.deposits);
            let has_it = known.points.last().is_some_and(|(of, _)| *of >= hour);
            if known.opened_at / HOUR < hour && !has_it && is_news(known.worth_at(hour), worth) {
                user.wallets[wallet].points.push((hour, worth));
                noted = true;
            }
        }
        if noted {
            self.users.insert(owner, user);
            self.record(owner);
        }
    }

    /// engine/docs/account.md §2: its payout once resolved, else the book's price.
    fn mark(&self, token: u32) -> Option<i128> {
        let resolution = self.markets.get(token as usize / 2).and_then(|market| market.resolution);
        let payout = resolution.map(|how| how.payout(engine::id::InstrumentId(token).outcome()));
        payout.map(|payout| super::cents(payout.0)).or_else(|| self.books.displayed(token))
    }
}
