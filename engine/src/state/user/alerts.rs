//! Alerts of a user: which events go where (mail, chat, webhook), and the outbox of what is owed
//! (gateway/docs/integrations.md §1, §5). Delivering them is not part of the engine.
//!
//! An alert is raised by `apply`, from the fact that it is about, and only if something wants it. It stays in the outbox
//! until everything that wants it has it, has given it up, or is removed. So what is owed survives any end of the
//! process, and is delivered at least once.

use super::User;
use super::wallet::WalletKind;
use crate::amount::Cash;
use crate::bytes::{Bytes, CodecError, leaf, put_list, row, take_list};
use crate::fact;
use crate::id::{KeyId, MarketId, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::mutation::Mutation;
use crate::order::{CloseReason, Order, Status};
use crate::time::{Date, Timestamp};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use wincode::{SchemaRead, SchemaWrite};

/// Maximum count of alerts in the outbox of a user. At the bound the oldest is dropped, and counted.
pub const ALERTS_MAX: usize = 1_000;
/// Maximum count of targets of a user on one channel.
pub const TARGETS_PER_CHANNEL_MAX: usize = 5;
/// Failed attempts in a row after which a target is switched off.
pub const FAILURES_MAX: u32 = 20;
/// Longest stored text of a failure, in characters.
pub const ERROR_CHARS_MAX: usize = 200;

/// The API wallet is low when its free cash is below this part of its baseline.
const LOW_PARTS: i64 = 10;
/// Bit of mail among those of targets.
const MAIL: u32 = 1 << 31;

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum AlertKind {
    OrderFilled,
    OrderPartiallyFilled,
    OrderCancelled,
    OrderExpired,
    PositionSettled,
    MarketResolvedWatch,
    DailyLimitReached,
    LowBalance,
    KeyCreated,
    KeyRotated,
    BacktestFinished,
    SystemNotice,
}

/// Where alerts go besides mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Channel {
    Chat,
    Webhook,
}

/// A set of kinds: bit n is the kind with number n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct AlertKinds(pub u16);

/// A text of a fact that is kept, and shown by nothing: neither by `Debug` nor by an export of the log.
#[derive(Clone, PartialEq, Eq, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub struct HiddenText(pub String);

impl std::fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(HiddenText::SHOWN)
    }
}

impl HiddenText {
    /// What is shown instead.
    pub const SHOWN: &str = "(not shown)";
}

leaf! { AlertKind, Channel, AlertKinds, About, MarketId }

impl AlertKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [AlertKind; 12] = [
        AlertKind::OrderFilled,
        AlertKind::OrderPartiallyFilled,
        AlertKind::OrderCancelled,
        AlertKind::OrderExpired,
        AlertKind::PositionSettled,
        AlertKind::MarketResolvedWatch,
        AlertKind::DailyLimitReached,
        AlertKind::LowBalance,
        AlertKind::KeyCreated,
        AlertKind::KeyRotated,
        AlertKind::BacktestFinished,
        AlertKind::SystemNotice,
    ];
}

impl AlertKinds {
    pub const ALL: AlertKinds = AlertKinds((1 << AlertKind::ALL.len()) - 1);
    /// Those that go by mail unless the user chooses otherwise.
    pub const BY_MAIL: AlertKinds =
        AlertKinds::of(&[AlertKind::KeyCreated, AlertKind::KeyRotated, AlertKind::SystemNotice]);

    pub const fn of(kinds: &[AlertKind]) -> AlertKinds {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u16;
            at += 1;
        }
        AlertKinds(bits)
    }

    pub fn contains(self, kind: AlertKind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    /// These and those.
    pub fn with(self, others: AlertKinds) -> AlertKinds {
        AlertKinds(self.0 | others.0)
    }

    /// These without those.
    pub fn without(self, others: AlertKinds) -> AlertKinds {
        AlertKinds(self.0 & !others.0)
    }

    /// Its kinds, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = AlertKind> {
        AlertKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

/// The objects of an alert, and the numbers that may be others later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
pub enum About {
    /// It ended unfilled, in whole or in part.
    Order(OrderId),
    Fill {
        order: OrderId,
        trade: TradeId,
    },
    Position(PositionId),
    Market(MarketId),
    DailyLimit {
        limit: u32,
        resets_at: Timestamp,
    },
    Balance {
        wallet: WalletId,
        available: Cash,
        baseline: Cash,
    },
    Key(KeyId),
    Rotation {
        old: KeyId,
        new: KeyId,
    },
    Backtest([u8; 16]),
}

/// An alert that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// From 1 for each user, in the order of the facts; never used twice.
    pub number: u64,
    pub kind: AlertKind,
    pub about: About,
    pub at: Timestamp,
    /// When it was raised. Unlike `at` it is never corrected, so that the id stays.
    raised_at: Timestamp,
    /// What still wants it: the bits of slots, and of mail.
    wanted: u32,
}

row! { Alert { number, kind, about, at, raised_at, wanted } }

/// A chat or webhook to which alerts of these kinds go.
#[derive(Clone, PartialEq, Eq)]
pub struct AlertTarget {
    /// From 1 for each user; never used twice.
    pub id: u32,
    pub channel: Channel,
    pub url: Box<str>,
    /// Signs the deliveries.
    pub secret: Option<Box<str>>,
    pub label: Option<Box<str>>,
    pub kinds: AlertKinds,
    pub is_enabled: bool,
    pub created_at: Timestamp,
    pub last_delivery_at: Date,
    /// Why the last attempt failed; `None` after a delivery.
    pub last_error: Option<Box<str>>,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Its bit of [`Alert::wanted`]; below that of mail, and no other target's.
    slot: u32,
}

row! {
    AlertTarget {
        id, channel, url, secret, label, kinds, is_enabled, created_at, last_delivery_at, last_error, failures, slot,
    }
}

/// Shows neither the secret nor the path of the address, which is a secret too.
impl std::fmt::Debug for AlertTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AlertTarget { id, channel, label, kinds, is_enabled, failures, .. } = self;
        let shown = (id, channel, label, kinds, is_enabled, failures);
        f.debug_tuple("AlertTarget").field(&shown).finish()
    }
}

/// What is sent about the events of a user, where it goes, and what is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alerts {
    /// Kinds that go by mail, if the user has an address.
    mail: AlertKinds,
    /// In id order.
    targets: Vec<AlertTarget>,
    /// In the order of their numbers.
    owed: VecDeque<Alert>,
    next_target: u32,
    next_alert: u64,
    /// Alerts that were dropped at the bound.
    dropped: u64,
    /// The API wallet is low: the next alert about that follows after it was not.
    is_low: bool,
    /// The market whose resolution was raised last: it closes several orders and positions.
    resolved: Option<MarketId>,
}

impl Bytes for Alerts {
    fn put(&self, out: &mut Vec<u8>) {
        let Alerts { mail, targets, owed, next_target, next_alert, dropped, is_low, resolved } = self;
        mail.put(out);
        next_target.put(out);
        next_alert.put(out);
        dropped.put(out);
        is_low.put(out);
        resolved.put(out);
        put_list(targets.len(), targets.iter(), out);
        put_list(owed.len(), owed.iter(), out);
    }

    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let mut alerts = Alerts {
            mail: Bytes::take(input)?,
            targets: Vec::new(),
            owed: VecDeque::new(),
            next_target: u32::take(input)?,
            next_alert: u64::take(input)?,
            dropped: u64::take(input)?,
            is_low: bool::take(input)?,
            resolved: Bytes::take(input)?,
        };
        take_list(input, |target| alerts.targets.push(target))?;
        take_list(input, |alert| alerts.owed.push_back(alert))?;
        if alerts.is_sound() { Ok(alerts) } else { Err(CodecError::Reference) }
    }
}

impl Alerts {
    /// Those of a user that has chosen nothing.
    fn new(is_low: bool) -> Alerts {
        Alerts {
            mail: AlertKinds::BY_MAIL,
            targets: Vec::new(),
            owed: VecDeque::new(),
            next_target: 1,
            next_alert: 1,
            dropped: 0,
            is_low,
            resolved: None,
        }
    }

    /// Whether rows that were read may be those of a user.
    fn is_sound(&self) -> bool {
        let slots = self.targets.iter().fold(0_u64, |slots, target| slots | 1 << target.slot.min(63));
        let known = (slots as u32) | MAIL;
        let fits = |kinds: AlertKinds| kinds.without(AlertKinds::ALL) == AlertKinds::default();
        self.targets.is_sorted_by(|target, next| target.id < next.id)
            && self.targets.last().is_none_or(|last| last.id < self.next_target)
            && self.targets.iter().all(|target| target.slot < SLOTS as u32 && fits(target.kinds))
            && slots.count_ones() as usize == self.targets.len()
            && self.owed.len() <= ALERTS_MAX
            && self.owed.iter().is_sorted_by(|alert, next| alert.number < next.number)
            && self.owed.back().is_none_or(|last| last.number < self.next_alert)
            && self.owed.iter().all(|alert| alert.wanted != 0 && alert.wanted & !known == 0)
            && fits(self.mail)
    }

    /// Kinds that go by mail.
    pub fn mail(&self) -> AlertKinds {
        self.mail
    }

    /// All targets, in id order.
    pub fn targets(&self) -> &[AlertTarget] {
        &self.targets
    }

    pub fn target(&self, id: u32) -> Option<&AlertTarget> {
        self.targets.binary_search_by_key(&id, |target| target.id).ok().map(|at| &self.targets[at])
    }

    /// Id of the next new target.
    pub(crate) fn next_target(&self) -> u32 {
        self.next_target
    }

    /// Number of the next alert: it grows with each one that is owed.
    pub(crate) fn next_alert(&self) -> u64 {
        self.next_alert
    }

    /// Alerts that were dropped at the bound.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What is owed to a target, or by mail if `None`, oldest first.
    pub fn owed_to(&self, target: Option<u32>) -> impl Iterator<Item = &Alert> {
        let bit = self.bit(target);
        self.owed.iter().filter(move |alert| alert.wanted & bit != 0)
    }

    /// Everything that is owed, oldest first.
    pub fn owed(&self) -> impl Iterator<Item = &Alert> {
        self.owed.iter()
    }

    /// The bit of a target, or of mail; 0 for an unknown target.
    fn bit(&self, target: Option<u32>) -> u32 {
        match target {
            None => MAIL,
            Some(id) => self.target(id).map_or(0, AlertTarget::bit),
        }
    }

    fn target_mut(&mut self, id: u32) -> Option<&mut AlertTarget> {
        self.targets.binary_search_by_key(&id, |target| target.id).ok().map(|at| &mut self.targets[at])
    }

    /// These bits want nothing of the alerts that `which` selects.
    fn settle(&mut self, bits: u32, which: impl Fn(&Alert) -> bool) {
        self.owed.retain_mut(|alert| {
            if which(alert) {
                alert.wanted &= !bits;
            }
            alert.wanted != 0
        });
    }

    fn raise(&mut self, has_mail: bool, kind: AlertKind, about: About, at: Timestamp) {
        let mut wanted = if has_mail && self.mail.contains(kind) { MAIL } else { 0 };
        for target in self.targets.iter().filter(|target| target.is_enabled && target.kinds.contains(kind)) {
            wanted |= target.bit();
        }
        if wanted == 0 {
            return;
        }
        if self.owed.len() == ALERTS_MAX {
            self.owed.pop_front();
            self.dropped += 1;
        }
        self.owed.push_back(Alert { number: self.next_alert, kind, about, at, raised_at: at, wanted });
        self.next_alert += 1;
    }

    /// A market was resolved; once however many orders and positions end.
    fn raise_resolved(&mut self, has_mail: bool, market: MarketId, at: Timestamp) {
        if self.resolved != Some(market) {
            self.resolved = Some(market);
            self.raise(has_mail, AlertKind::MarketResolvedWatch, About::Market(market), at);
        }
    }

    /// The new key replaces another one: that is raised instead of its creation.
    fn raise_rotated(&mut self, has_mail: bool, old: KeyId, new: KeyId, at: Timestamp) {
        if self.owed.back().is_some_and(|last| last.kind == AlertKind::KeyCreated && last.about == About::Key(new)) {
            self.owed.pop_back();
        }
        self.raise(has_mail, AlertKind::KeyRotated, About::Rotation { old, new }, at);
    }
}

/// Slots of targets: one for each.
const SLOTS: usize = 2 * TARGETS_PER_CHANNEL_MAX;

impl AlertTarget {
    fn bit(&self) -> u32 {
        1 << self.slot
    }
}

impl Alert {
    /// Its id as receivers see it: a UUID of version 8, from SHA-256 over user, number, kind, objects and moment. The same
    /// for each attempt. The number alone would repeat after a restore, with another event.
    pub fn uuid(&self, user: UserId) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(b"papertape alert");
        hash.update(user.0.to_le_bytes());
        hash.update(self.number.to_le_bytes());
        let mut event = Vec::new();
        self.kind.put(&mut event);
        self.about.put(&mut event);
        self.raised_at.put(&mut event);
        hash.update(event);
        let digest = hash.finalize();
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&digest[..16]);
        uuid[6] = (uuid[6] & 0x0f) | 0x80;
        uuid[8] = (uuid[8] & 0x3f) | 0x80;
        uuid
    }
}

impl User {
    /// Alerts, if the user has chosen any or was ever owed one.
    pub fn alerts(&self) -> Option<&Alerts> {
        self.trading().alerts.as_deref()
    }

    /// Number of the next alert; it grows with each one that is owed.
    pub(crate) fn next_alert(&self) -> u64 {
        self.alerts().map_or(1, Alerts::next_alert)
    }

    /// Whether mail can reach the user.
    pub fn has_mail(&self) -> bool {
        self.email().is_some()
    }

    /// Whether the API wallet is low, with its cash and baseline.
    fn low_balance(&self) -> Option<About> {
        let wallet = self.wallet_of(WalletKind::Api)?;
        let (available, baseline) = (wallet.available(), wallet.baseline);
        let is_low = i128::from(available.0) * i128::from(LOW_PARTS) < i128::from(baseline.0);
        is_low.then_some(About::Balance { wallet: wallet.id, available, baseline })
    }

    /// The user's alerts begin, if they have not.
    pub(super) fn begin_alerts(&mut self) -> &mut Alerts {
        let is_low = self.low_balance().is_some();
        self.trading_mut().alerts.get_or_insert_with(|| Box::new(Alerts::new(is_low)))
    }

    pub(super) fn set_alert_target(&mut self, set: &fact::AlertTargetSet) {
        let fact::AlertTargetSet { target, channel, url, secret, label, kinds, is_enabled, at } = set;
        let alerts = self.begin_alerts();
        let label = label.as_deref().map(Box::from);
        if let Some(known) = alerts.target_mut(*target) {
            (known.label, known.kinds) = (label, *kinds);
            let was_enabled = std::mem::replace(&mut known.is_enabled, *is_enabled);
            if *is_enabled && !was_enabled {
                known.failures = 0;
            }
            let bit = known.bit();
            alerts.settle(bit, |alert| !is_enabled || !kinds.contains(alert.kind));
            return;
        }
        let taken = alerts.targets.iter().fold(0, |taken, target| taken | target.bit());
        let slot = (!taken).trailing_zeros();
        assert!((slot as usize) < SLOTS, "the count of targets is bounded: target {target}");
        assert!(*target >= alerts.next_target, "ids of targets ascend: target {target}");
        alerts.next_target = target + 1;
        alerts.targets.push(AlertTarget {
            id: *target,
            channel: *channel,
            url: url.0.as_str().into(),
            secret: secret.as_ref().map(|secret| secret.0.as_str().into()),
            label,
            kinds: *kinds,
            is_enabled: *is_enabled,
            created_at: *at,
            last_delivery_at: Date::NONE,
            last_error: None,
            failures: 0,
            slot,
        });
    }

    pub(super) fn remove_alert_target(&mut self, target: u32) {
        let alerts = self.begin_alerts();
        let bit = alerts.bit(Some(target));
        alerts.settle(bit, |_| true);
        alerts.targets.retain(|known| known.id != target);
    }

    /// A kind that is switched off is not sent any more, even if it is owed.
    pub(super) fn set_mail_choice(&mut self, kinds: AlertKinds) {
        let alerts = self.begin_alerts();
        alerts.mail = kinds;
        alerts.settle(MAIL, |alert| !kinds.contains(alert.kind));
    }

    pub(super) fn deliver_alert(&mut self, delivered: &fact::AlertDelivered) {
        let fact::AlertDelivered { target, alert, at } = *delivered;
        let alerts = self.begin_alerts();
        let bit = alerts.bit(target);
        alerts.settle(bit, |owed| owed.number == alert);
        if let Some(known) = target.and_then(|id| alerts.target_mut(id)) {
            (known.last_delivery_at, known.last_error, known.failures) = (Some(at).into(), None, 0);
        }
    }

    pub(super) fn fail_alert(&mut self, failed: &fact::AlertFailed) {
        let fact::AlertFailed { target, alert, error, gives_up, disables, at: _ } = failed;
        let alerts = self.begin_alerts();
        let bit = alerts.bit(*target);
        if *disables {
            alerts.settle(bit, |_| true);
        } else if *gives_up {
            alerts.settle(bit, |owed| owed.number == *alert);
        }
        if let Some(known) = target.and_then(|id| alerts.target_mut(id)) {
            known.last_error = Some(error.as_str().into());
            known.failures = known.failures.saturating_add(1);
            known.is_enabled &= !*disables;
        }
    }

    /// Raises the alerts of a fact that was applied. Only for a user with [`Alerts`].
    pub(super) fn raise_alerts(&mut self, fact: &Mutation) {
        let taken = self.trading.as_mut().and_then(|trading| trading.alerts.take());
        let Some(mut alerts) = taken else { return };
        let has_mail = self.has_mail();
        match fact {
            Mutation::OrderFilled(fact::OrderFilled { order, trade, at, .. }) => {
                let is_whole = self.order(*order).is_some_and(|order| order.status() != Status::Pending);
                let kind = if is_whole { AlertKind::OrderFilled } else { AlertKind::OrderPartiallyFilled };
                alerts.raise(has_mail, kind, About::Fill { order: *order, trade: *trade }, *at);
                self.raise_low(&mut alerts, has_mail, *at);
            }
            Mutation::OrderClosed(fact::OrderClosed { order, reason, at }) => {
                let closed = self.order(*order);
                if let (Some(order), CloseReason::MarketResolved) = (closed, reason) {
                    alerts.raise_resolved(has_mail, order.terms.instrument.market(), *at);
                }
                if let Some(kind) = closed.and_then(|order| end_of(order, *reason)) {
                    alerts.raise(has_mail, kind, About::Order(*order), *at);
                }
                self.raise_low(&mut alerts, has_mail, *at);
            }
            Mutation::PositionSettled(fact::PositionSettled { position, at, .. }) => {
                if let Some(settled) = self.position(*position) {
                    alerts.raise_resolved(has_mail, settled.instrument.market(), *at);
                }
                alerts.raise(has_mail, AlertKind::PositionSettled, About::Position(*position), *at);
                self.raise_low(&mut alerts, has_mail, *at);
            }
            Mutation::OrderRested(fact::OrderRested { at, .. })
            | Mutation::BaselineRaised(fact::BaselineRaised { at, .. })
            | Mutation::WalletReset(fact::WalletReset { at, .. }) => self.raise_low(&mut alerts, has_mail, *at),
            Mutation::DailyLimitReached(fact::DailyLimitReached { limit, resets_at, at }) => {
                let about = About::DailyLimit { limit: *limit, resets_at: *resets_at };
                alerts.raise(has_mail, AlertKind::DailyLimitReached, about, *at);
            }
            Mutation::KeyIssued(fact::KeyIssued { key, at, .. }) => {
                alerts.raise(has_mail, AlertKind::KeyCreated, About::Key(*key), *at);
            }
            Mutation::KeyExpiring(fact::KeyExpiring { key, replaced_by, at, .. }) => {
                alerts.raise_rotated(has_mail, *key, *replaced_by, *at);
            }
            Mutation::BacktestEnded(fact::BacktestEnded { job, at, .. }) => {
                alerts.raise(has_mail, AlertKind::BacktestFinished, About::Backtest(*job), *at);
            }
            _ => {}
        }
        self.trading_mut().alerts = Some(alerts);
    }

    /// Raises the alert of a low API wallet, once until it is not low any more.
    fn raise_low(&self, alerts: &mut Alerts, has_mail: bool, at: Timestamp) {
        let low = self.low_balance();
        let was_low = std::mem::replace(&mut alerts.is_low, low.is_some());
        if let (Some(about), false) = (low, was_low) {
            alerts.raise(has_mail, AlertKind::LowBalance, about, at);
        }
    }
}

/// The kind of an order's end; `None` if it counts as filled. Expired is what ended because its time had passed, or that
/// of its market.
fn end_of(order: &Order, reason: CloseReason) -> Option<AlertKind> {
    match (order.status(), reason) {
        (Status::Filled | Status::Pending, _) => None,
        (Status::Expired, _) | (_, CloseReason::GtdExpired) => Some(AlertKind::OrderExpired),
        (Status::Cancelled, _) => Some(AlertKind::OrderCancelled),
    }
}

impl Alerts {
    /// No past time is later than `at`.
    pub(super) fn set_back(&mut self, at: Timestamp) {
        for alert in &mut self.owed {
            alert.at = alert.at.min(at);
        }
        for target in &mut self.targets {
            target.created_at = target.created_at.min(at);
            target.last_delivery_at = target.last_delivery_at.get().map(|last| last.min(at)).into();
        }
    }
}

#[cfg(test)]
mod tests;
