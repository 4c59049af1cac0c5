//! Decides about alerts: targets and mail choices of a user, and what became of an attempt to deliver one
//! (gateway/docs/integrations.md §2 to §5). The caller has checked addresses and plans.

use crate::command::{AlertOutcome, NewAlertTarget, TargetChange};
use crate::fact;
use crate::mutation::Mutation;
use crate::reject::Reject;
use crate::rules::Rules;
use crate::time::Timestamp;
use crate::user::alerts::{
    AlertKind, AlertKinds, Channel, ERROR_CHARS_MAX, FAILURES_MAX, HiddenText, TARGETS_PER_CHANNEL_MAX,
};
use crate::user::{AlertTarget, Tier, User};

/// The previous format has no alerts.
fn can_be_kept(rules: &Rules) -> Result<(), Reject> {
    if rules.formats.is_newest() { Ok(()) } else { Err(Reject::NoAlertStore) }
}

/// A new target. Returns its id.
pub fn add(
    user: &User,
    new: NewAlertTarget,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<u32, Reject> {
    let NewAlertTarget { channel, url, secret, label, kinds } = new;
    let targets = user.alerts().map_or(&[][..], |alerts| alerts.targets());
    if targets.iter().filter(|target| target.channel == channel).count() >= TARGETS_PER_CHANNEL_MAX {
        return Err(Reject::TooManyAlertTargets);
    }
    can_be_kept(rules)?;
    let target = user.alerts().map_or(1, |alerts| alerts.next_target());
    let (url, secret) = (HiddenText(url), secret.map(HiddenText));
    let set = fact::AlertTargetSet { target, channel, url, secret, label, kinds, is_enabled: true, at: now };
    facts.push(Mutation::AlertTargetSet(set));
    Ok(target)
}

/// Another label, other kinds, on or off. A target that is as asked for already changes without a fact.
pub fn change(
    user: &User,
    channel: Channel,
    id: u32,
    change: TargetChange,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    let known = target(user, channel, id)?;
    can_be_kept(rules)?;
    let label = change.label.filter(|label| label.as_deref() != known.label.as_deref());
    let kinds = change.kinds.filter(|kinds| *kinds != known.kinds);
    let is_enabled = change.is_enabled.filter(|is_enabled| *is_enabled != known.is_enabled);
    if label.is_none() && kinds.is_none() && is_enabled.is_none() {
        return Ok(());
    }
    let clears_label = label == Some(None);
    let label = label.flatten();
    let changed = fact::AlertTargetChanged { target: id, label, clears_label, kinds, is_enabled, at: now };
    facts.push(Mutation::AlertTargetChanged(changed));
    Ok(())
}

/// Removes a target and what is owed to it.
pub fn remove(
    user: &User,
    channel: Channel,
    id: u32,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    target(user, channel, id)?;
    can_be_kept(rules)?;
    facts.push(Mutation::AlertTargetRemoved(fact::AlertTargetRemoved { target: id, at: now }));
    Ok(())
}

/// The kinds `on` go by mail from here on, the kinds `off` do not. System notices stay on.
pub fn choose_mail(
    user: &User,
    (on, off): (AlertKinds, AlertKinds),
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    let known = user.alerts().map_or(AlertKinds::BY_MAIL, |alerts| alerts.mail());
    let kinds = known.with(on).without(off).with(AlertKinds::of(&[AlertKind::SystemNotice]));
    if kinds == known {
        return Ok(());
    }
    can_be_kept(rules)?;
    facts.push(Mutation::MailChoiceSet(fact::MailChoiceSet { kinds, at: now }));
    Ok(())
}

/// What became of an attempt. Of a target that is switched on it is noted also if the alert was dropped meanwhile: its
/// failures in a row count. Any other attempt at an alert that is not owed any more leaves no fact.
pub fn note(
    user: &User,
    target: Option<u32>,
    alert: u64,
    outcome: AlertOutcome,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    can_be_kept(rules)?;
    let Some(alerts) = user.alerts() else { return Ok(()) };
    let is_on = target.and_then(|id| alerts.target(id)).is_some_and(|target| target.is_enabled);
    if !is_on && !alerts.owed_to(target).any(|owed| owed.number == alert) {
        return Ok(());
    }
    facts.push(match outcome {
        AlertOutcome::Delivered => Mutation::AlertDelivered(fact::AlertDelivered { target, alert, at: now }),
        AlertOutcome::Failed { error, gives_up, is_gone } => {
            let failures = target.and_then(|id| alerts.target(id)).map(|target| target.failures);
            let disables = failures.is_some_and(|failures| is_gone || failures + 1 >= FAILURES_MAX);
            let error = error.chars().take(ERROR_CHARS_MAX).collect();
            Mutation::AlertFailed(fact::AlertFailed { target, alert, error, gives_up, disables, at: now })
        }
    });
    Ok(())
}

/// Before the first key that is created or rotated while mail goes out: from here on the defaults hold. `facts` are
/// those of the command.
pub fn begin(user: &User, rules: &Rules, now: Timestamp, facts: &mut Vec<Mutation>) {
    let is_owed = rules.mails && rules.formats.is_newest() && user.alerts().is_none() && user.has_mail();
    if is_owed && matches!(facts.first(), Some(Mutation::KeyIssued(_))) {
        facts.insert(0, Mutation::AlertsBegun(fact::AlertsBegun { at: now }));
    }
}

/// A notice of the operator, if anything takes it. Returns whether it is owed.
pub fn notify(
    user: &User,
    text: String,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<bool, Reject> {
    can_be_kept(rules)?;
    let notice = AlertKind::SystemNotice;
    let (mail, targets) =
        user.alerts().map_or((AlertKinds::BY_MAIL, &[][..]), |alerts| (alerts.mail(), alerts.targets()));
    let by_mail = rules.mails && user.has_mail() && mail.contains(notice);
    if !by_mail && !targets.iter().any(|target| target.is_enabled && target.kinds.contains(notice)) {
        return Ok(false);
    }
    if user.alerts().is_none() {
        facts.push(Mutation::AlertsBegun(fact::AlertsBegun { at: now }));
    }
    facts.push(Mutation::NoticeRaised(fact::NoticeRaised { text, at: now }));
    Ok(true)
}

/// After an order that uses up the day of a free plan, of a user with alerts.
#[cold]
pub fn note_daily_limit(user: &User, tier: Tier, rules: &Rules, now: Timestamp, facts: &mut Vec<Mutation>) {
    let (today, limit) = (now.day(), rules.free_daily_orders);
    let counts = |fact: &Mutation| matches!(fact, Mutation::OrderPlaced(placed) if placed.counted);
    let is_last = tier == Tier::Free && user.quota.used_on(today) + 1 == limit && facts.iter().any(counts);
    if is_last && rules.formats.is_newest() {
        let resets_at = today.end();
        facts.push(Mutation::DailyLimitReached(fact::DailyLimitReached { limit, resets_at, at: now }));
    }
}

fn target(user: &User, channel: Channel, id: u32) -> Result<&AlertTarget, Reject> {
    let known = user.alerts().and_then(|alerts| alerts.target(id));
    known.filter(|target| target.channel == channel).ok_or(Reject::AlertTargetNotFound)
}
