//! The outbox of a user: alerts that are raised by facts, and owed until everything that wants them has them.

use super::{ALERTS_MAX, AlertKind, Alerts, LOW_PARTS, MAIL, User};
use crate::amount::Cash;
use crate::bytes::{Bytes, leaf, row};
use crate::fact;
use crate::id::{KeyId, MarketId, OrderId, PositionId, TradeId, UserId, WalletId};
use crate::mutation::Mutation;
use crate::order::{CloseReason, Order, Status};
use crate::time::Timestamp;
use crate::user::WalletKind;
use sha2::{Digest, Sha256};
use wincode::{SchemaRead, SchemaWrite};

leaf! { About }

/// The objects of an alert, and the numbers that may be others later.
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
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
    /// The text of a notice.
    Notice(String),
}

/// An alert that is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// From 1 for each user, in the order of the facts; never used twice.
    pub number: u64,
    pub kind: AlertKind,
    pub about: About,
    pub at: Timestamp,
    /// When it was raised. Unlike `at` it is never corrected, so that the id stays.
    pub(super) raised_at: Timestamp,
    /// What still wants it: the bits of slots, and of mail.
    pub(super) wanted: u32,
}

row! { Alert { number, kind, about, at, raised_at, wanted } }

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

impl Alerts {
    /// These bits want nothing of the alerts that `which` selects.
    pub(super) fn settle(&mut self, bits: u32, which: impl Fn(&Alert) -> bool) {
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

impl User {
    /// Whether the API wallet is low, with its cash and baseline.
    pub(super) fn low_balance(&self) -> Option<About> {
        let wallet = self.wallet_of(WalletKind::Api)?;
        let (available, baseline) = (wallet.available(), wallet.baseline);
        let is_low = i128::from(available.0) * i128::from(LOW_PARTS) < i128::from(baseline.0);
        is_low.then_some(About::Balance { wallet: wallet.id, available, baseline })
    }

    pub(in crate::state::user) fn deliver_alert(&mut self, delivered: &fact::AlertDelivered) {
        let fact::AlertDelivered { target, alert, at } = *delivered;
        let alerts = self.begin_alerts();
        let bit = alerts.bit(target);
        alerts.settle(bit, |owed| owed.number == alert);
        if let Some(known) = target.and_then(|id| alerts.target_mut(id)) {
            (known.last_delivery_at, known.last_error, known.failures) = (Some(at).into(), None, 0);
        }
    }

    pub(in crate::state::user) fn fail_alert(&mut self, failed: &fact::AlertFailed) {
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
    pub(in crate::state::user) fn raise_alerts(&mut self, fact: &Mutation) {
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
            Mutation::NoticeRaised(fact::NoticeRaised { text, at }) => {
                alerts.raise(has_mail, AlertKind::SystemNotice, About::Notice(text.clone()), *at);
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
