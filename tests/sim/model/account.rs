//! Users, keys and queries in the model (gateway/docs/keys.md §2–§4, gateway/docs/accounts.md §1).

use super::{Expected, ExpectedOrder, Key, Model, Moment, Order, Position, User, Wallet};
use engine::command::{Command, CreateUser, IssueKey, MarketFilter, Query, Wallets};
use engine::reject::Reject;
use engine::shard::Room;
use engine::user::{Permissions, Tier, WalletKind};

const DAY: u64 = 86_400_000_000;

/// gateway/docs/accounts.md §1, in whole dollars.
fn baseline(kind: WalletKind, tier: Tier) -> i128 {
    1_000_000
        * match (kind, tier) {
            (WalletKind::Main, _) => 1_000,
            (_, Tier::Free) => 100,
            (_, Tier::Pro) => 10_000,
            (_, Tier::ProPlus | Tier::Enterprise) => 25_000,
        }
}

impl User {
    pub(super) fn entitled(&self, now: u64) -> Tier {
        self.grant.filter(|(_, end)| end.is_none_or(|end| now < end)).map_or(Tier::Free, |(tier, _)| tier)
    }

    /// A paid plan has ended: keys are read-only.
    fn lapsed(&self, now: u64) -> bool {
        self.grant.is_some_and(|(tier, end)| tier > Tier::Free && end.is_some_and(|end| end <= now))
    }

    pub fn active_keys(&self) -> usize {
        self.keys.iter().filter(|key| key.revoked_at.is_none() && key.expires_at.is_none()).count()
    }

    fn add_key(&mut self, key: Key) -> Key {
        let key = Key { id: self.take_id(), ..key };
        self.keys.push(key.clone());
        key
    }

    fn listed(&mut self, id: u64) -> Result<&mut Key, Reject> {
        let found = self.keys.iter_mut().find(|key| key.id == id && key.revoked_at.is_none());
        found.ok_or(Reject::KeyNotFound)
    }

    fn with_reserved(&self, held: &Position) -> (Position, i128) {
        (held.clone(), self.reserved_of(held))
    }
}

impl Model {
    /// The first request of a user; the second time nothing happens.
    pub(super) fn create(&mut self, owner: u64, asked: &CreateUser, now: u64) {
        if self.users.contains_key(&owner) {
            return;
        }
        let mut user = User::new(owner, asked.sub.clone());
        user.grant = asked.grant.map(|tier| (tier, None));
        let tier = user.entitled(now);
        for kind in [WalletKind::Main, WalletKind::Api] {
            let asked = asked.api_balance.filter(|_| kind == WalletKind::Api).map(|cash| i128::from(cash.0));
            let baseline = asked.unwrap_or(baseline(kind, tier));
            let id = user.take_id();
            user.wallets.push(Wallet::new(id, kind, baseline, now));
        }
        self.users.insert(owner, user);
        self.record(owner);
    }

    /// Grants and keys. A refused command changes nothing.
    pub(super) fn account_command(&mut self, owner: u64, command: &Command, moment: Moment) -> Expected {
        let before = self.users[&owner].next;
        let (expected, changed) = match self.change_account(owner, command, moment) {
            Ok(done) => done,
            Err(reject) => {
                assert_eq!(self.users[&owner].next, before, "a refusal changes nothing in the model");
                return Expected::Refused(reject);
            }
        };
        if changed {
            self.record(owner);
        }
        expected
    }

    fn change_account(
        &mut self,
        owner: u64,
        command: &Command,
        Moment { now, room }: Moment,
    ) -> Result<(Expected, bool), Reject> {
        if matches!(
            command,
            Command::OpenWallet { .. }
                | Command::RelabelWallet { .. }
                | Command::ArchiveWallet { .. }
                | Command::ResetWallet { .. }
                | Command::ResetApiWallet { .. }
        ) {
            return self.change_wallets(owner, command, Moment { now, room });
        }
        if let Command::Bill(event) = command {
            return self.bill(owner, event, now);
        }
        let user = self.users.get_mut(&owner).expect("checked by the caller");
        let expected = match command {
            Command::SetGrant { tier, expires_at } => {
                let better = *tier > user.entitled(now);
                user.grant = Some((*tier, expires_at.map(|at| at.0)));
                let raised = baseline(WalletKind::Api, *tier);
                let api = user.wallets.iter_mut().find(|wallet| wallet.kind == WalletKind::Api);
                if let Some(wallet) = api.filter(|wallet| better && wallet.baseline < raised) {
                    wallet.baseline = raised;
                }
                Expected::Done
            }
            Command::IssueKey(asked) => Expected::Key(issue(user, asked, now)?),
            Command::RenameKey { key, name } => {
                let key = user.listed(key.0)?;
                key.name = name.clone();
                Expected::Key(key.clone())
            }
            Command::RotateKey { key, replacement, .. } => {
                let (entitled, lapsed) = (user.entitled(now), user.lapsed(now));
                let old = user.listed(key.0)?;
                if old.expires_at.is_some() {
                    return Err(Reject::KeyExpiring);
                }
                let until = now + DAY;
                old.expires_at = Some(until);
                let only_reads = lapsed || (old.tier > Tier::Free && entitled == Tier::Free);
                let replaced = Key {
                    prefix: replacement.prefix.clone(),
                    permissions: if only_reads { Permissions::Read } else { old.permissions },
                    created_at: now,
                    expires_at: None,
                    last_used_at: None,
                    ..old.clone()
                };
                Expected::Rotated(user.add_key(replaced), until)
            }
            Command::RevokeKey { key } => {
                user.listed(key.0)?.revoked_at = Some(now);
                Expected::Done
            }
            Command::NoteKeyUsed { .. } if room != Room::Ample => return Ok((Expected::Done, false)),
            Command::NoteKeyUsed { key } => {
                let key = user.listed(key.0)?;
                let due = key.last_used_at.is_none_or(|last| now - last >= 60_000_000);
                if due {
                    key.last_used_at = Some(now);
                }
                return Ok((Expected::Done, due));
            }
            other => unreachable!("{other:?} is not about accounts"),
        };
        Ok((expected, true))
    }

    pub(super) fn look(&self, owner: u64, query: &Query, now: u64) -> Expected {
        let user = &self.users[&owner];
        let wallets = match query {
            Query::Orders(filter) => filter.wallets,
            Query::Fills(filter) => filter.wallets,
            Query::Account { wallets } | Query::Equity { wallets, .. } | Query::Positions { wallets, .. } => *wallets,
            _ => Wallets::Any,
        };
        let chosen = user.wallets_in(wallets);
        if matches!(wallets, Wallets::One(_)) && chosen.is_empty() {
            return Expected::Refused(Reject::WalletNotFound);
        }
        let of_market = |filter: Option<MarketFilter>, token: u32| match filter {
            None => true,
            Some(MarketFilter::Only(market)) => token / 2 == market.0,
            Some(MarketFilter::Unknown) => false,
        };
        let found = |id: Option<u64>| match id.filter(|id| user.orders.contains_key(id)) {
            Some(id) => Expected::Order(Box::new(user.look_up(id, now, self.client_ids))),
            None => Expected::Refused(Reject::OrderNotFound),
        };
        match query {
            Query::User => Expected::User { wallets: user.wallets.clone(), active_keys: user.active_keys() },
            Query::Keys => {
                let listed = user.keys.iter().rev().filter(|key| key.revoked_at.is_none());
                Expected::Keys(listed.cloned().collect())
            }
            Query::Order(id) => found(Some(id.0)),
            Query::SignedOrders(hashes) => {
                Expected::Signed(hashes.iter().map(|hash| user.signed(hash).map(|order| order.id)).collect())
            }
            Query::OrderByClientId(id) => {
                let known = user.request(id, now, self.client_ids);
                found(known.map(|known| known.first.order.id))
            }
            Query::Orders(filter) => {
                let fits = |order: &&Order| {
                    filter.status.is_none_or(|status| order.status() == status)
                        && filter.side.is_none_or(|side| order.side == side)
                        && of_market(filter.market, order.token)
                        && chosen.contains(&order.wallet)
                };
                let all: Vec<&Order> = user.orders.values().rev().filter(fits).collect();
                let page: Vec<ExpectedOrder> =
                    all.iter().skip(filter.offset).take(filter.limit).map(|order| user.show(order.id)).collect();
                let has_more = all.len() > filter.offset + filter.limit;
                Expected::Orders { rows: page, has_more, count: all.len() }
            }
            Query::Fills(filter) => {
                let fits = |order: &&Order| {
                    filter.side.is_none_or(|side| order.side == side)
                        && of_market(filter.market, order.token)
                        && chosen.contains(&order.wallet)
                };
                let orders = user.orders.values().filter(fits);
                let mut ids: Vec<u64> = orders.flat_map(|order| order.fills.iter().map(|fill| fill.id)).collect();
                ids.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
                let has_more = ids.len() > filter.offset + filter.limit;
                Expected::Fills { ids: ids.into_iter().skip(filter.offset).take(filter.limit).collect(), has_more }
            }
            Query::Account { .. } => {
                let of = |held: &&Position| chosen.contains(&held.wallet);
                let ended: Vec<&Position> =
                    user.positions.iter().filter(of).filter(|held| held.closed_at.is_some() && !held.reset).collect();
                let mut open: Vec<&Position> =
                    user.positions.iter().filter(of).filter(|held| held.closed_at.is_none()).collect();
                open.sort_by_key(|held| (held.token, held.wallet));
                let mine = |wallet: &&Wallet| chosen.contains(&wallet.id);
                let of_wallet = |order: &&Order| chosen.contains(&order.wallet);
                Expected::Account {
                    wallets: user
                        .wallets
                        .iter()
                        .filter(mine)
                        .map(|wallet| (wallet.clone(), user.reserved(wallet.id)))
                        .collect(),
                    positions: open.into_iter().map(|held| user.with_reserved(held)).collect(),
                    fills: user.orders.values().filter(of_wallet).map(|order| order.fills.len()).sum(),
                    closed: ended.len(),
                    won: ended.iter().filter(|held| held.realized > 0).count(),
                }
            }
            Query::Equity { first, .. } => {
                Expected::Equity(user.equity(&chosen, u64::from(*first), now / 3_600_000_000))
            }
            Query::Positions { market, open, .. } => {
                let fits = |held: &&Position| {
                    chosen.contains(&held.wallet)
                        && market.is_none_or(|market| held.token / 2 == market.0)
                        && open.is_none_or(|open| open == held.closed_at.is_none())
                };
                let mut rows: Vec<&Position> = user.positions.iter().filter(fits).collect();
                rows.sort_by_key(|held| (held.closed_at.is_some(), std::cmp::Reverse(held.id)));
                Expected::Positions(rows.into_iter().map(|held| user.with_reserved(held)).collect())
            }
            Query::Facts { after, limit } => {
                let newest = user.facts.len() as u64;
                let first = after.saturating_add(1).max(user.oldest_fact());
                let asked = (first..=newest).take(*limit).map(|number| user.facts[number as usize - 1].clone());
                Expected::Facts(asked.collect(), first, newest)
            }
            other => unreachable!("the workload does not send {other:?}"),
        }
    }
}

/// gateway/docs/keys.md §3, rows 5 and 7.
fn issue(user: &mut User, asked: &IssueKey, now: u64) -> Result<Key, Reject> {
    if asked.bootstrap && user.active_keys() > 0 {
        return Err(Reject::BootstrapNotAllowed);
    }
    let (entitled, lapsed) = (user.entitled(now), user.lapsed(now));
    let tier = asked.tier.unwrap_or(entitled);
    if tier > entitled || (lapsed && asked.permissions == Some(Permissions::ReadTrade)) {
        return Err(Reject::TierRequiresUpgrade);
    }
    if user.active_keys() >= 5 {
        return Err(Reject::KeyLimit);
    }
    let usual = if lapsed { Permissions::Read } else { Permissions::ReadTrade };
    Ok(user.add_key(Key {
        id: 0,
        prefix: asked.secret.prefix.clone(),
        name: asked.name.clone(),
        tier,
        permissions: asked.permissions.unwrap_or(usual),
        created_at: now,
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    }))
}
