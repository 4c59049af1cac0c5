//! Targets of alerts: chats and webhooks of a user.

use super::{AlertKinds, Alerts, SLOTS, User};
use crate::bytes::{leaf, row};
use crate::fact;
use crate::time::{Date, Timestamp};
use wincode::{SchemaRead, SchemaWrite};

leaf! { Channel }

/// Where alerts go besides mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Channel {
    Chat,
    Webhook,
}

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
    /// Its bit among those of [`super::Alert`] that want it; below that of mail, and no other target's.
    pub(super) slot: u32,
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

impl AlertTarget {
    pub(super) fn bit(&self) -> u32 {
        1 << self.slot
    }
}

impl Alerts {
    pub(super) fn target_mut(&mut self, id: u32) -> Option<&mut AlertTarget> {
        self.targets.binary_search_by_key(&id, |target| target.id).ok().map(|at| &mut self.targets[at])
    }

    /// Another label, other kinds, on or off. What is not wanted any more is dropped.
    fn change_target(
        &mut self,
        id: u32,
        label: Option<Option<&str>>,
        kinds: Option<AlertKinds>,
        is_enabled: Option<bool>,
    ) {
        let Some(known) = self.target_mut(id) else { return };
        if let Some(label) = label {
            known.label = label.map(Box::from);
        }
        known.kinds = kinds.unwrap_or(known.kinds);
        let was_enabled = known.is_enabled;
        known.is_enabled = is_enabled.unwrap_or(was_enabled);
        if known.is_enabled && !was_enabled {
            known.failures = 0;
        }
        let (bit, kinds, is_enabled) = (known.bit(), known.kinds, known.is_enabled);
        self.settle(bit, |alert| !is_enabled || !kinds.contains(alert.kind));
    }
}

impl User {
    /// Adds a target. Earlier builds wrote the same fact for a change.
    pub(in crate::state::user) fn set_alert_target(&mut self, set: &fact::AlertTargetSet) {
        let fact::AlertTargetSet { target, channel, url, secret, label, kinds, is_enabled, at } = set;
        let alerts = self.begin_alerts();
        if alerts.target(*target).is_some() {
            return alerts.change_target(*target, Some(label.as_deref()), Some(*kinds), Some(*is_enabled));
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
            label: label.as_deref().map(Box::from),
            kinds: *kinds,
            is_enabled: *is_enabled,
            created_at: *at,
            last_delivery_at: Date::NONE,
            last_error: None,
            failures: 0,
            slot,
        });
    }

    pub(in crate::state::user) fn change_alert_target(&mut self, changed: &fact::AlertTargetChanged) {
        let fact::AlertTargetChanged { target, label, clears_label, kinds, is_enabled, at: _ } = changed;
        let label = if *clears_label { Some(None) } else { label.as_deref().map(Some) };
        self.begin_alerts().change_target(*target, label, *kinds, *is_enabled);
    }

    pub(in crate::state::user) fn remove_alert_target(&mut self, target: u32) {
        let alerts = self.begin_alerts();
        let bit = alerts.bit(Some(target));
        alerts.settle(bit, |_| true);
        alerts.targets.retain(|known| known.id != target);
    }
}
