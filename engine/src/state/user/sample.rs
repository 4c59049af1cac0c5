//! Random valid histories for tests: records as `decide` could have made them, and a slow, simple model of cash,
//! reservations and holdings.

mod dice;
mod orders;

use crate::amount::{Cash, Price, Qty, exact_notional, notional_half_up};
use crate::fact;
use crate::id::{InstrumentId, KeyId, OrderId, PositionId, UserId, WalletId};
use crate::mutation::Mutation;
use crate::order::{CloseReason, Side};
use crate::time::{HOUR, Timestamp};
use crate::user::{Permissions, Tier, WalletKind};
pub(crate) use dice::Dice;
use orders::{close, close_some, fill_resting, place, touch_resting};
use std::collections::BTreeMap;

/// The expected state of a user, in plain maps.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelUser {
    next: u32,
    pub cash: BTreeMap<WalletId, i64>,
    pub fees: BTreeMap<WalletId, i64>,
    pub orders: BTreeMap<OrderId, ModelOrder>,
    pub positions: BTreeMap<PositionId, ModelPosition>,
    pub fills: u64,
    pub facts: u64,
    pub keys: Vec<KeyId>,
    pub remembered: Vec<(String, OrderId)>,
    pub armed: BTreeMap<String, u32>,
    /// Cash from outside, less returns: opening cash and resets.
    pub opening: BTreeMap<WalletId, i64>,
    pub baseline: BTreeMap<WalletId, i64>,
    pub archived: Vec<WalletId>,
    pub labels: BTreeMap<WalletId, Option<String>>,
    /// Points: hour, cash, value, baseline.
    pub equity: BTreeMap<WalletId, Vec<(u32, i64, i64, i64)>>,
    opened_at: BTreeMap<WalletId, u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelOrder {
    pub wallet: WalletId,
    pub instrument: InstrumentId,
    pub side: Side,
    pub limit: Price,
    pub qty: u64,
    pub filled: u64,
    pub rests: bool,
    pub awaiting: bool,
    /// Cash of a BUY, shares of a SELL.
    pub reserved: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelPosition {
    pub wallet: WalletId,
    pub instrument: InstrumentId,
    pub qty: u64,
    pub cost: i64,
    pub realized: i64,
    pub open: bool,
}

/// Generates records, one command each.
pub(crate) struct Sample {
    pub dice: Dice,
    pub users: BTreeMap<UserId, ModelUser>,
    pub now: Timestamp,
    users_max: u64,
    instruments: u64,
}

impl ModelUser {
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub fn reserved_cash(&self, wallet: WalletId) -> i64 {
        let open = self.orders.values().filter(|order| order.wallet == wallet && order.side == Side::Buy);
        open.map(|order| order.reserved as i64).sum()
    }

    pub fn reserved_qty(&self, wallet: WalletId, instrument: InstrumentId) -> u64 {
        let open = self.orders.values().filter(|order| order.side == Side::Sell && order.wallet == wallet);
        open.filter(|order| order.instrument == instrument).map(|order| order.reserved).sum()
    }

    fn available(&self, wallet: WalletId) -> i64 {
        self.cash[&wallet] - self.reserved_cash(wallet)
    }

    fn active(&self) -> Vec<WalletId> {
        self.cash.keys().copied().filter(|wallet| !self.archived.contains(wallet)).collect()
    }

    fn held(&self, wallet: WalletId, instrument: InstrumentId) -> Option<PositionId> {
        let mut open = self.positions.iter().filter(|(_, held)| held.open);
        open.find(|(_, held)| held.wallet == wallet && held.instrument == instrument).map(|(id, _)| *id)
    }
}

impl Sample {
    pub fn new(seed: u64, users_max: u64, instruments: u64) -> Sample {
        Sample {
            dice: Dice(seed),
            users: BTreeMap::new(),
            now: Timestamp(1_790_000_000_000_000),
            users_max,
            instruments,
        }
    }

    /// The facts of one more command, and its user. Never empty.
    pub fn record(&mut self) -> (UserId, Vec<Mutation>) {
        loop {
            self.now = self.now.plus(self.dice.below(HOUR / 4));
            let new = (self.users.len() as u64) < self.users_max && self.dice.chance(2);
            if self.users.is_empty() || new {
                return self.create();
            }
            let owner = UserId(1 + self.dice.below(self.users.len() as u64));
            let facts = self.act(owner);
            if !facts.is_empty() {
                return (owner, facts);
            }
        }
    }

    fn create(&mut self) -> (UserId, Vec<Mutation>) {
        let owner = UserId(self.users.len() as u64 + 1);
        let at = self.now;
        let mut user = ModelUser::default();
        let mut facts = vec![Mutation::UserCreated(fact::UserCreated {
            sub: self.dice.maybe(Dice::text),
            email: self.dice.maybe(Dice::text),
            at,
        })];
        for kind in [WalletKind::Main, WalletKind::Api] {
            facts.push(open_wallet(owner, &mut user, kind, 1_000, at));
        }
        facts.push(issue_key(owner, &mut user, &mut self.dice, at));
        self.users.insert(owner, user);
        (owner, facts)
    }

    fn act(&mut self, owner: UserId) -> Vec<Mutation> {
        let at = self.now;
        let user = self.users.get_mut(&owner).expect("created before");
        let dice = &mut self.dice;
        match dice.below(100) {
            0..45 => {
                let instrument = InstrumentId(dice.below(self.instruments) as u32);
                place(owner, user, dice, instrument, at)
            }
            45..65 => fill_resting(owner, user, dice, at),
            65..85 => close_some(user, dice, at),
            85..88 => settle(user, dice, at),
            88..90 => touch_resting(user, dice, at),
            90 | 91 => touch_wallets(user, dice, at),
            92 if user.active().len() < 4 => vec![open_wallet(owner, user, WalletKind::Sandbox, 500, at)],
            93 => vec![Mutation::GrantSet(fact::GrantSet {
                tier: dice.pick(&[Tier::Free, Tier::Pro, Tier::Enterprise]),
                expires_at: dice.maybe(|dice| at.plus(dice.below(HOUR))),
                at,
            })],
            94..98 => touch_keys(owner, user, dice, at),
            _ => touch_safeguards(user, dice, at),
        }
    }
}

fn open_wallet(owner: UserId, user: &mut ModelUser, kind: WalletKind, dollars: i64, at: Timestamp) -> Mutation {
    let wallet = WalletId(owner.object(user.number()));
    let baseline = Cash::from_dollars(dollars);
    user.cash.insert(wallet, baseline.0);
    user.fees.insert(wallet, 0);
    user.opening.insert(wallet, baseline.0);
    user.baseline.insert(wallet, baseline.0);
    user.labels.insert(wallet, None);
    user.opened_at.insert(wallet, at.hour());
    Mutation::WalletOpened(fact::WalletOpened { wallet, kind, label: None, baseline, generation: 1, parent: None, at })
}

/// A wallet gets a name, a point, or an end.
fn touch_wallets(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let wallet = dice.pick(&user.active());
    match dice.below(6) {
        0 => {
            let label = dice.maybe(Dice::text);
            user.labels.insert(wallet, label.clone());
            vec![Mutation::WalletRelabelled(fact::WalletRelabelled { wallet, label, at })]
        }
        1..5 => {
            let (cash, baseline, hour) = (user.cash[&wallet], user.baseline[&wallet], at.hour());
            let points = user.equity.entry(wallet).or_default();
            if points.last().map_or(user.opened_at[&wallet], |last| last.0) >= hour {
                return Vec::new();
            }
            if points.is_empty() {
                points.push((user.opened_at[&wallet], baseline, 0, baseline));
            }
            let value = Cash(dice.below(1_000_000_000) as i64);
            points.push((hour, cash, value.0, baseline));
            vec![Mutation::EquityNoted(fact::EquityNoted { wallet, hour: Timestamp::of_hour(hour), value, at })]
        }
        _ => end_wallet(user, wallet, dice, at),
    }
}

/// Its orders end, its positions close without cash; then it is reset or archived.
fn end_wallet(user: &mut ModelUser, wallet: WalletId, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let open: Vec<OrderId> =
        user.orders.iter().filter(|(_, order)| order.rests && order.wallet == wallet).map(|(id, _)| *id).collect();
    let mut facts: Vec<Mutation> =
        open.into_iter().map(|order| close(user, order, CloseReason::BalanceReset, at)).collect();
    for (id, held) in user.positions.iter_mut().filter(|(_, held)| held.open && held.wallet == wallet) {
        (held.qty, held.cost, held.open) = (0, 0, false);
        facts.push(Mutation::PositionReset(fact::PositionReset { position: *id, at }));
    }
    // The first two are never archived.
    if user.cash.keys().position(|known| *known == wallet) >= Some(2) {
        user.archived.push(wallet);
        facts.push(Mutation::WalletArchived(fact::WalletArchived { wallet, at }));
        return facts;
    }
    let (before, baseline) = (user.cash[&wallet], Cash::from_dollars(500 + dice.below(9) as i64));
    let opening = (user.opened_at[&wallet], user.baseline[&wallet], 0, user.baseline[&wallet]);
    let points = user.equity.entry(wallet).or_default();
    if points.is_empty() {
        points.push(opening);
    }
    *user.opening.get_mut(&wallet).expect("as the cash") += baseline.0 - before;
    user.cash.insert(wallet, baseline.0);
    user.baseline.insert(wallet, baseline.0);
    facts.push(Mutation::WalletReset(fact::WalletReset { wallet, baseline, at }));
    facts
}

fn issue_key(owner: UserId, user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Mutation {
    let key = KeyId(owner.object(user.number()));
    user.keys.push(key);
    Mutation::KeyIssued(fact::KeyIssued {
        key,
        hash: [dice.next() as u8; 32],
        alias_hash: [dice.next() as u8; 32],
        prefix: "svc_live_4f0c9d2".to_owned(),
        name: dice.maybe(Dice::text),
        tier: Tier::Free,
        permissions: Permissions::ReadTrade,
        beta_until: None,
        at,
    })
}

fn touch_keys(owner: UserId, user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let key = dice.pick(&user.keys);
    match dice.below(5) {
        0 => vec![issue_key(owner, user, dice, at)],
        1 => vec![Mutation::KeyRenamed(fact::KeyRenamed { key, name: dice.maybe(Dice::text), at })],
        2 => vec![Mutation::KeyRevoked(fact::KeyRevoked { key, at })],
        3 => vec![Mutation::KeyUsed(fact::KeyUsed { key, at })],
        _ => {
            let issued = issue_key(owner, user, dice, at);
            let replaced_by = *user.keys.last().expect("just issued");
            vec![issued, Mutation::KeyExpiring(fact::KeyExpiring { key, expires_at: at.plus(HOUR), replaced_by, at })]
        }
    }
}

fn touch_safeguards(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let label = dice.pick(&["", "bot", "other"]).to_owned();
    if dice.chance(30) {
        user.armed.remove(&label);
        return vec![Mutation::SafeguardEnded(fact::SafeguardEnded { label, at })];
    }
    let interval_ms = 1_000 + dice.below(59_000) as u32;
    user.armed.insert(label.clone(), interval_ms);
    vec![Mutation::SafeguardArmed(fact::SafeguardArmed { label, interval_ms, at })]
}

/// The market of one of the user's open positions resolves.
fn settle(user: &mut ModelUser, dice: &mut Dice, at: Timestamp) -> Vec<Mutation> {
    let open: Vec<InstrumentId> =
        user.positions.values().filter(|held| held.open).map(|held| held.instrument).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let market = dice.pick(&open).market();
    let concerned: Vec<OrderId> = user
        .orders
        .iter()
        .filter(|(_, order)| order.rests && order.instrument.market() == market)
        .map(|(id, _)| *id)
        .collect();
    let mut facts: Vec<Mutation> =
        concerned.into_iter().map(|order| close(user, order, CloseReason::MarketResolved, at)).collect();
    for (id, held) in user.positions.iter_mut().filter(|(_, held)| held.open && held.instrument.market() == market) {
        let payout_per_share = dice.pick(&[Price(0), Price(5_000), Price::ONE]);
        let payout = notional_half_up(exact_notional(payout_per_share, Qty(held.qty)));
        *user.cash.get_mut(&held.wallet).expect("a position has a wallet") += payout.0;
        held.realized += payout.0 - held.cost;
        (held.qty, held.cost, held.open) = (0, 0, false);
        facts.push(Mutation::PositionSettled(fact::PositionSettled { position: *id, payout_per_share, payout, at }));
    }
    facts
}
