//! Alerts of a user: which events go where (mail, chat, webhook), and the outbox of what is owed
//! (gateway/docs/integrations.md §1, §5). Delivering them is not part of the engine.
//!
//! An alert is raised by `apply`, from the fact that it is about, and only if something wants it. It stays in the outbox
//! until everything that wants it has it, has given it up, or is removed. So what is owed survives any end of the
//! process, and is delivered at least once.
//!
//! | File | Holds |
//! |---|---|
//! | `kinds.rs` | what alerts are about, as kinds and as sets of kinds |
//! | `targets.rs` | chats and webhooks |
//! | `outbox.rs` | what is owed: raised by facts, delivered, given up |

mod kinds;
mod outbox;
mod targets;

pub use kinds::{AlertKind, AlertKinds};
pub use outbox::{About, Alert};
pub use targets::{AlertTarget, Channel};

use super::User;
use crate::bytes::{Bytes, CodecError, leaf, put_list, take_list};
use crate::id::MarketId;
use crate::time::Timestamp;
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

leaf! { MarketId }

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
}

/// Slots of targets: one for each.
const SLOTS: usize = 2 * TARGETS_PER_CHANNEL_MAX;

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

    /// The user's alerts begin, if they have not.
    pub(super) fn begin_alerts(&mut self) -> &mut Alerts {
        let is_low = self.low_balance().is_some();
        self.trading_mut().alerts.get_or_insert_with(|| Box::new(Alerts::new(is_low)))
    }

    /// A kind that is switched off is not sent any more, even if it is owed.
    pub(super) fn set_mail_choice(&mut self, kinds: AlertKinds) {
        let alerts = self.begin_alerts();
        alerts.mail = kinds;
        alerts.settle(MAIL, |alert| !kinds.contains(alert.kind));
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
