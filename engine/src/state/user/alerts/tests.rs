use super::*;
use crate::amount::Cash;
use crate::fact;
use crate::id::{KeyId, OrderId, PositionId, UserId, WalletId};
use crate::mutation::Mutation;
use crate::order::CloseReason;
use crate::shard::snapshot::{put_user, take_user};
use crate::user::sample::{Dice, Sample};
use crate::user::shared_rows::Shared;
use crate::user::{Users, WalletKind};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// 2026-10-02T09:15:00Z.
const NOW: Timestamp = Timestamp(1_790_932_500_000_000);

fn target(target: u32, kinds: AlertKinds) -> fact::AlertTargetSet {
    fact::AlertTargetSet {
        target,
        channel: if target.is_multiple_of(2) { Channel::Chat } else { Channel::Webhook },
        url: HiddenText(format!("https://hooks.example.net/{target}")),
        secret: (target == 1).then(|| HiddenText("0123456789abcdef".to_owned())),
        label: None,
        kinds,
        is_enabled: true,
        at: NOW,
    }
}

fn user(email: Option<&str>) -> User {
    User::new(UserId(1), None, email, NOW)
}

fn issued(key: u64) -> Mutation {
    Mutation::KeyIssued(fact::KeyIssued {
        key: KeyId(UserId(1).object(key as u32)),
        hash: [key as u8; 32],
        alias_hash: [key as u8; 32],
        prefix: "svc_live_4f0c9d2".to_owned(),
        name: None,
        tier: crate::user::Tier::Free,
        permissions: crate::user::Permissions::Read,
        beta_until: None,
        at: NOW,
    })
}

fn expiring(key: u64, replaced_by: u64) -> Mutation {
    let [key, replaced_by] = [key, replaced_by].map(|key| KeyId(UserId(1).object(key as u32)));
    Mutation::KeyExpiring(fact::KeyExpiring { key, expires_at: NOW, replaced_by, at: NOW })
}

fn apply(user: &mut User, facts: impl IntoIterator<Item = Mutation>) {
    let mut indexes = Default::default();
    facts.into_iter().for_each(|fact| user.apply(&fact, &mut indexes));
}

fn owed(user: &User, target: Option<u32>) -> Vec<(u64, AlertKind)> {
    let alerts = user.alerts().expect("it has alerts");
    alerts.owed_to(target).map(|alert| (alert.number, alert.kind)).collect()
}

#[test]
fn nothing_is_owed_before_alerts_begin() {
    let mut user = user(Some("trader@example.net"));
    apply(&mut user, [issued(1)]);
    assert_eq!(user.alerts(), None);
    apply(&mut user, [Mutation::AlertsBegun(fact::AlertsBegun { at: NOW }), issued(2)]);
    assert_eq!(owed(&user, None), [(1, AlertKind::KeyCreated)]);
    // Without an address nothing goes by mail.
    let mut other = self::user(None);
    apply(&mut other, [Mutation::AlertsBegun(fact::AlertsBegun { at: NOW }), issued(1)]);
    assert_eq!(owed(&other, None), []);
}

#[test]
fn a_rotation_is_one_alert() {
    let mut user = user(None);
    let kinds = AlertKinds::of(&[AlertKind::KeyCreated, AlertKind::KeyRotated]);
    let only = AlertKinds::of(&[AlertKind::KeyRotated]);
    apply(&mut user, [target(1, kinds).into(), target(2, only).into(), issued(1), issued(2), expiring(1, 2)]);
    let rotated = |number| (number, AlertKind::KeyRotated);
    assert_eq!(owed(&user, Some(1)), [(1, AlertKind::KeyCreated), rotated(3)]);
    assert_eq!(owed(&user, Some(2)), [rotated(3)]);
}

#[test]
fn the_outbox_has_a_bound() {
    let mut user = user(Some("trader@example.net"));
    apply(&mut user, [target(1, AlertKinds::ALL).into()]);
    let count = ALERTS_MAX as u64 + 7;
    apply(&mut user, (1..=count).map(issued));
    let alerts = user.alerts().expect("it has alerts");
    assert_eq!((alerts.owed().count(), alerts.dropped()), (ALERTS_MAX, 7));
    assert_eq!(alerts.owed().next().map(|alert| alert.number), Some(8), "the oldest were dropped");
    assert_eq!(user.next_alert(), count + 1);
}

#[test]
fn each_target_has_what_it_is_owed() {
    let mut user = user(Some("trader@example.net"));
    let created = AlertKinds::of(&[AlertKind::KeyCreated]);
    apply(&mut user, [target(1, created).into(), target(2, AlertKinds::default()).into(), issued(1), issued(2)]);
    let delivered = |target, alert| Mutation::from(fact::AlertDelivered { target, alert, at: NOW });
    let failed = |target, alert, gives_up, disables| {
        let error = "the target answered 500".to_owned();
        Mutation::from(fact::AlertFailed { target, alert, error, gives_up, disables, at: NOW })
    };
    let numbers = |user: &User, target| owed(user, target).into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(
        (numbers(&user, Some(1)), numbers(&user, None), numbers(&user, Some(2))),
        (vec![1, 2], vec![1, 2], vec![])
    );
    apply(&mut user, [delivered(Some(1), 1)]);
    assert_eq!((numbers(&user, Some(1)), numbers(&user, None)), (vec![2], vec![1, 2]));
    apply(&mut user, [failed(Some(1), 2, false, false)]);
    let state = |user: &User| {
        let target = user.alerts().and_then(|alerts| alerts.target(1)).expect("it is there");
        (target.failures, target.last_error.is_some(), target.last_delivery_at.is_some(), target.is_enabled)
    };
    assert_eq!((numbers(&user, Some(1)), state(&user)), (vec![2], (1, true, true, true)));
    apply(&mut user, [failed(Some(1), 2, true, false)]);
    assert_eq!((numbers(&user, Some(1)), state(&user)), (vec![], (2, true, true, true)));
    apply(&mut user, [issued(3), failed(Some(1), 3, false, true), issued(4)]);
    assert_eq!((numbers(&user, Some(1)), state(&user)), (vec![], (3, true, true, false)), "it is off");
    // On again, it begins with what happens then.
    apply(&mut user, [target(1, created).into(), issued(5)]);
    assert_eq!((numbers(&user, Some(1)), state(&user)), (vec![5], (0, true, true, true)));
    apply(&mut user, [delivered(Some(1), 5)]);
    assert_eq!(state(&user), (0, false, true, true));
    // An alert that is not owed any more, and a target that is not there.
    apply(&mut user, [delivered(Some(1), 5), delivered(Some(9), 1), failed(Some(9), 1, true, true)]);
    assert_eq!(numbers(&user, None), [1, 2, 3, 4, 5]);
    apply(&mut user, [Mutation::from(fact::MailChoiceSet { kinds: AlertKinds::default(), at: NOW })]);
    assert_eq!(user.alerts().expect("it has alerts").owed().count(), 0, "a kind that is off is not sent");
    // A slot is used again, without the debts of the one before.
    apply(&mut user, [issued(6), Mutation::from(fact::AlertTargetRemoved { target: 1, at: NOW })]);
    apply(&mut user, [target(3, created).into()]);
    let alerts = user.alerts().expect("it has alerts");
    let slots: Vec<_> = alerts.targets().iter().map(|target| (target.id, target.slot)).collect();
    assert_eq!((slots, alerts.owed().count()), (vec![(2, 1), (3, 0)], 0));
}

/// Each part of a change alone, and all together, leave the rest as it was.
#[test]
fn a_change_carries_only_what_changed() {
    let kinds = AlertKinds::of(&[AlertKind::KeyCreated]);
    let nothing = fact::AlertTargetChanged {
        target: 1,
        label: None,
        clears_label: false,
        kinds: None,
        is_enabled: None,
        at: NOW,
    };
    let renamed = fact::AlertTargetChanged { label: Some("b".to_owned()), ..nothing.clone() };
    let cleared = fact::AlertTargetChanged { clears_label: true, ..nothing.clone() };
    let other = fact::AlertTargetChanged { kinds: Some(AlertKinds::BY_MAIL), ..nothing.clone() };
    let off = fact::AlertTargetChanged { is_enabled: Some(false), ..nothing.clone() };
    let unknown = fact::AlertTargetChanged { target: 9, ..off.clone() };
    let all = fact::AlertTargetChanged { kinds: other.kinds, is_enabled: Some(false), ..renamed.clone() };
    // (change; label, kinds, whether it is on, what it is owed)
    let rows = [
        (nothing, Some("a"), kinds, true, 1),
        (renamed, Some("b"), kinds, true, 1),
        (cleared, None, kinds, true, 1),
        (other, Some("a"), AlertKinds::BY_MAIL, true, 1),
        (off, Some("a"), kinds, false, 0),
        (unknown, Some("a"), kinds, true, 1),
        (all, Some("b"), AlertKinds::BY_MAIL, false, 0),
    ];
    for (row, (change, label, kinds_after, is_enabled, owed)) in rows.iter().enumerate() {
        let mut user = user(None);
        let first = fact::AlertTargetSet { label: Some("a".to_owned()), ..target(1, kinds) };
        apply(&mut user, [first.into(), issued(1), change.clone().into()]);
        let alerts = user.alerts().expect("it has alerts");
        let known = alerts.target(1).expect("it is there");
        assert_eq!(
            (known.label.as_deref(), known.kinds, known.is_enabled),
            (*label, *kinds_after, *is_enabled),
            "{row}"
        );
        assert_eq!((&*known.url, known.secret.is_some()), ("https://hooks.example.net/1", true), "{row}");
        assert_eq!(alerts.owed_to(Some(1)).count(), *owed, "{row}");
    }
    println!("changes of targets: {} cases", rows.len());
}

#[test]
fn ids_are_stable_and_differ() {
    let mut user = user(None);
    apply(&mut user, [target(1, AlertKinds::ALL).into(), issued(1), issued(2)]);
    let alerts: Vec<Alert> = user.alerts().expect("it has alerts").owed().cloned().collect();
    let hex = |uuid: [u8; 16]| uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    // Of version 8.
    let (first, second) = (hex(alerts[0].uuid(UserId(1))), hex(alerts[1].uuid(UserId(1))));
    assert_ne!(first, second);
    assert_ne!(first, hex(alerts[0].uuid(UserId(2))));
    for id in [&first, &second] {
        assert!(id[12..13] == *"8" && ["8", "9", "a", "b"].contains(&&id[16..17]), "{id}");
    }
    // The correction of a clock does not change it; another event with the same number has another one.
    assert_eq!(alerts[0].uuid(UserId(1)), Alert { at: Timestamp(1), ..alerts[0].clone() }.uuid(UserId(1)));
    let others = [
        Alert { raised_at: Timestamp(1), ..alerts[0].clone() },
        Alert { about: alerts[1].about.clone(), ..alerts[0].clone() },
        Alert { kind: AlertKind::LowBalance, ..alerts[0].clone() },
    ];
    for other in others {
        assert_ne!(other.uuid(UserId(1)), alerts[0].uuid(UserId(1)), "{other:?}");
    }
}

#[test]
fn bytes_are_read_back_and_checked() {
    let mut user = user(Some("trader@example.net"));
    apply(&mut user, [target(1, AlertKinds::ALL).into(), target(2, AlertKinds::BY_MAIL).into()]);
    apply(&mut user, (1..=4).map(issued));
    let failed = fact::AlertFailed {
        target: Some(2),
        alert: 1,
        error: "é".to_owned(),
        gives_up: false,
        disables: false,
        at: NOW,
    };
    let notice = fact::NoticeRaised { text: "é".to_owned(), at: NOW };
    apply(&mut user, [failed.into(), notice.into()]);
    let alerts = user.alerts().expect("it has alerts").clone();
    let mut bytes = Vec::new();
    alerts.put(&mut bytes);
    assert_eq!(Alerts::take(&mut &bytes[..]), Ok(alerts.clone()));
    for len in 0..bytes.len() {
        assert!(Alerts::take(&mut &bytes[..len]).is_err(), "{len}");
    }
    let wrong: [fn(&mut Alerts); 9] = [
        |alerts| alerts.targets[1].id = 1,
        |alerts| alerts.targets[1].slot = 0,
        |alerts| alerts.targets[1].slot = SLOTS as u32,
        |alerts| alerts.next_target = 2,
        |alerts| alerts.next_alert = 5,
        |alerts| alerts.owed[0].number = 2,
        |alerts| alerts.owed[0].wanted = 0,
        |alerts| alerts.owed[0].wanted = 1 << 7,
        |alerts| alerts.mail = AlertKinds(1 << 12),
    ];
    for (row, change) in wrong.into_iter().enumerate() {
        let mut alerts = alerts.clone();
        change(&mut alerts);
        let mut bytes = Vec::new();
        alerts.put(&mut bytes);
        assert_eq!(Alerts::take(&mut &bytes[..]), Err(CodecError::Reference), "row {row}");
    }
    println!("alerts: {} cut lengths, {} wrong states", bytes.len(), wrong.len());
    // A whole user, without and with back-tests.
    let created = fact::BacktestCreated {
        job: [1; 16],
        spec: "{}".to_owned(),
        digest: [1; 32],
        request: None,
        charged: 1,
        at: NOW,
    };
    for has_backtests in [false, true] {
        if has_backtests {
            apply(&mut user, [created.clone().into()]);
        }
        let mut bytes = Vec::new();
        put_user(&user, &mut bytes);
        let read = take_user(&mut &bytes[..], &mut Shared::default()).expect("just written");
        assert_eq!((read.alerts(), read.backtests()), (user.alerts(), user.backtests()));
        let mut again = Vec::new();
        put_user(&read, &mut again);
        assert_eq!(again, bytes);
    }
}

#[test]
fn no_moment_is_later_than_a_correction() {
    let mut user = user(Some("trader@example.net"));
    apply(&mut user, [target(1, AlertKinds::ALL).into(), issued(1), issued(2)]);
    apply(&mut user, [fact::AlertDelivered { target: Some(1), alert: 1, at: NOW }.into()]);
    user.set_back(Timestamp(NOW.0 - 1));
    let alerts = user.alerts().expect("it has alerts");
    assert!(alerts.owed().all(|alert| alert.at < NOW));
    let target = alerts.target(1).expect("it is there");
    assert!(target.created_at < NOW && target.last_delivery_at.get() < Some(NOW));
}

/// What is owed, in plain lists: the set of each alert's receivers.
#[derive(Default)]
struct Model {
    mail: BTreeSet<AlertKind>,
    has_mail: bool,
    targets: BTreeMap<u32, (BTreeSet<AlertKind>, bool)>,
    owed: Vec<(u64, AlertKind, About, BTreeSet<Option<u32>>)>,
    next: u64,
    dropped: u64,
    is_low: bool,
    resolved: Option<MarketId>,
    orders: BTreeMap<OrderId, ModelOrder>,
    positions: BTreeMap<PositionId, MarketId>,
}

struct ModelOrder {
    market: MarketId,
    qty: u64,
    filled: u64,
    is_immediate: bool,
}

impl Model {
    fn raise(&mut self, kind: AlertKind, about: About) {
        let mut receivers: BTreeSet<Option<u32>> = BTreeSet::new();
        if self.has_mail && self.mail.contains(&kind) {
            receivers.insert(None);
        }
        let wants = self.targets.iter().filter(|(_, (kinds, is_on))| *is_on && kinds.contains(&kind));
        receivers.extend(wants.map(|(id, _)| Some(*id)));
        if !receivers.is_empty() {
            if self.owed.len() == ALERTS_MAX {
                self.owed.remove(0);
                self.dropped += 1;
            }
            self.owed.push((self.next, kind, about, receivers));
            self.next += 1;
        }
    }

    fn drop_owed(&mut self, receiver: Option<u32>, which: impl Fn(u64, AlertKind) -> bool) {
        for (number, kind, _, receivers) in &mut self.owed {
            if which(*number, *kind) {
                receivers.remove(&receiver);
            }
        }
        self.owed.retain(|(.., receivers)| !receivers.is_empty());
    }

    fn resolve(&mut self, market: MarketId) {
        if self.resolved != Some(market) {
            self.resolved = Some(market);
            self.raise(AlertKind::MarketResolvedWatch, About::Market(market));
        }
    }

    /// After a fact; `api`: id, available cash and baseline of the API wallet.
    fn follow(&mut self, fact: &Mutation, api: Option<(WalletId, Cash, Cash)>) {
        match fact {
            Mutation::OrderPlaced(placed) => {
                let terms = &placed.terms;
                let order = ModelOrder {
                    market: terms.instrument.market(),
                    qty: terms.quantity.0,
                    filled: 0,
                    is_immediate: terms.time_in_force.immediate(),
                };
                self.orders.insert(placed.order, order);
            }
            Mutation::OrderFilled(filled) => {
                let order = self.orders.get_mut(&filled.order).expect("it was placed");
                order.filled += filled.qty.0;
                let is_whole = order.is_immediate || order.filled >= order.qty;
                self.positions.insert(filled.position, order.market);
                let kind = if is_whole { AlertKind::OrderFilled } else { AlertKind::OrderPartiallyFilled };
                self.raise(kind, About::Fill { order: filled.order, trade: filled.trade });
            }
            Mutation::OrderClosed(closed) => {
                if closed.reason == CloseReason::MarketResolved {
                    self.resolve(self.orders[&closed.order].market);
                }
                let kind = match closed.reason {
                    CloseReason::FakRest => None,
                    CloseReason::GtdExpired | CloseReason::MarketResolved | CloseReason::MarketClosed => {
                        Some(AlertKind::OrderExpired)
                    }
                    _ => Some(AlertKind::OrderCancelled),
                };
                kind.into_iter().for_each(|kind| self.raise(kind, About::Order(closed.order)));
            }
            Mutation::PositionSettled(settled) => {
                self.resolve(self.positions[&settled.position]);
                self.raise(AlertKind::PositionSettled, About::Position(settled.position));
            }
            Mutation::NoticeRaised(notice) => self.raise(AlertKind::SystemNotice, About::Notice(notice.text.clone())),
            Mutation::KeyIssued(issued) => self.raise(AlertKind::KeyCreated, About::Key(issued.key)),
            Mutation::KeyExpiring(expiring) => {
                let new = About::Key(expiring.replaced_by);
                self.owed.retain(|(_, kind, about, _)| *kind != AlertKind::KeyCreated || *about != new);
                self.raise(AlertKind::KeyRotated, About::Rotation { old: expiring.key, new: expiring.replaced_by });
            }
            _ => {}
        }
        if let Some((wallet, available, baseline)) = api {
            let is_low = available.0 * 10 < baseline.0;
            if is_low && !self.is_low {
                self.raise(AlertKind::LowBalance, About::Balance { wallet, available, baseline });
            }
            self.is_low = is_low;
        }
    }
}

fn kinds(dice: &mut Dice) -> AlertKinds {
    AlertKinds(dice.next() as u16 & AlertKinds::ALL.0)
}

fn set(kinds: AlertKinds) -> BTreeSet<AlertKind> {
    kinds.iter().collect()
}

/// One change of targets, choices or debts; returns its fact.
fn touch(dice: &mut Dice, model: &mut Model, next_target: u32, at: Timestamp) -> Option<Mutation> {
    let some = |dice: &mut Dice, model: &Model| {
        let ids: Vec<u32> = model.targets.keys().copied().collect();
        if ids.is_empty() { None } else { Some(dice.pick(&ids)) }
    };
    Some(match dice.below(8) {
        0 if model.targets.len() < SLOTS => {
            let kinds = kinds(dice);
            model.targets.insert(next_target, (set(kinds), true));
            target(next_target, kinds).into()
        }
        1 => {
            let id = some(dice, model)?;
            let changed = fact::AlertTargetChanged {
                target: id,
                label: None,
                clears_label: dice.chance(50),
                kinds: dice.maybe(kinds),
                is_enabled: dice.maybe(|dice| dice.chance(70)),
                at,
            };
            let (known, is_on) = model.targets.get_mut(&id)?;
            *known = changed.kinds.map_or(known.clone(), set);
            *is_on = changed.is_enabled.unwrap_or(*is_on);
            let (kinds, is_enabled) = (known.clone(), *is_on);
            model.drop_owed(Some(id), |_, kind| !is_enabled || !kinds.contains(&kind));
            // As an earlier build wrote it, at times.
            let is_whole = changed.kinds.is_some() && changed.is_enabled.is_some() && dice.chance(50);
            if is_whole {
                let kinds = changed.kinds.unwrap_or_default();
                fact::AlertTargetSet { is_enabled, ..target(id, kinds) }.into()
            } else {
                changed.into()
            }
        }
        2 if dice.chance(20) => {
            let id = some(dice, model)?;
            model.targets.remove(&id);
            model.drop_owed(Some(id), |_, _| true);
            fact::AlertTargetRemoved { target: id, at }.into()
        }
        3 => {
            let kinds = kinds(dice);
            model.mail = set(kinds);
            model.drop_owed(None, |_, kind| !kinds.contains(kind));
            fact::MailChoiceSet { kinds, at }.into()
        }
        _ => {
            let (number, .., receivers) = model.owed.first()?;
            let (number, receiver) = (*number, *receivers.first()?);
            if dice.chance(70) {
                model.drop_owed(receiver, |other, _| other == number);
                return Some(fact::AlertDelivered { target: receiver, alert: number, at }.into());
            }
            let (gives_up, disables) = (dice.chance(50), receiver.is_some() && dice.chance(10));
            if disables {
                model.drop_owed(receiver, |_, _| true);
                model.targets.get_mut(&receiver?)?.1 = false;
            } else if gives_up {
                model.drop_owed(receiver, |other, _| other == number);
            }
            let error = "timed out".to_owned();
            fact::AlertFailed { target: receiver, alert: number, error, gives_up, disables, at }.into()
        }
    })
}

#[test]
fn the_outbox_agrees_with_a_slow_model() {
    let (mut raised, mut seen, mut touched) = (0, BTreeSet::new(), 0);
    for seed in 0..30 {
        let (mut sample, mut users) = (Sample::new(seed, 4, 10), Users::default());
        let mut models: BTreeMap<UserId, Model> = BTreeMap::new();
        let mut dice = Dice(seed + 1_000);
        for _ in 0..1_500 {
            let (owner, facts) = sample.record();
            for fact in &facts {
                users.apply(owner, fact);
                let user = users.get(owner).expect("created");
                let api = user.wallet_of(WalletKind::Api);
                let api = api.map(|wallet| (wallet.id, wallet.available(), wallet.baseline));
                if let Some(model) = models.get_mut(&owner) {
                    model.follow(fact, api);
                }
            }
            if let Entry::Vacant(new) = models.entry(owner) {
                let has_mail = users.get(owner).expect("created").has_mail();
                new.insert(Model { mail: set(AlertKinds::BY_MAIL), has_mail, next: 1, ..Model::default() });
                users.apply(owner, &fact::AlertsBegun { at: sample.now }.into());
            }
            if dice.chance(5) {
                let notice = fact::NoticeRaised { text: dice.text(), at: sample.now }.into();
                users.apply(owner, &notice);
                models.get_mut(&owner).expect("just made").follow(&notice, None);
            }
            if dice.chance(5) {
                let (model, user) = (models.get_mut(&owner), users.get(owner).expect("created"));
                let api = user.wallet_of(WalletKind::Api).expect("it was opened").clone();
                // So that it is low, or not.
                let baseline = Cash(api.available().0 * if dice.chance(50) { 11 } else { 2 });
                let raised = fact::BaselineRaised { wallet: api.id, baseline, at: sample.now }.into();
                users.apply(owner, &raised);
                model.expect("just made").follow(&raised, Some((api.id, api.available(), baseline)));
            }
            let next = users.get(owner).and_then(User::alerts).map_or(1, Alerts::next_target);
            let model = models.get_mut(&owner).expect("just made");
            if dice.chance(30)
                && let Some(fact) = touch(&mut dice, model, next, sample.now)
            {
                users.apply(owner, &fact);
                touched += 1;
            }
            let alerts = users.get(owner).and_then(User::alerts).expect("begun");
            let shown: Vec<_> = alerts
                .owed()
                .map(|alert| {
                    let bit = |id| alert.wanted & alerts.bit(id) != 0;
                    let mail = [None].into_iter().filter(|id| bit(*id));
                    let receivers = mail.chain(alerts.targets().iter().map(|of| Some(of.id)).filter(|id| bit(*id)));
                    (alert.number, alert.kind, alert.about.clone(), receivers.collect::<BTreeSet<_>>())
                })
                .collect();
            assert_eq!((&shown, alerts.dropped()), (&model.owed, model.dropped), "seed {seed}, user {owner}");
            assert!(alerts.is_sound());
            seen.extend(shown.iter().map(|(_, kind, ..)| *kind));
        }
        raised += models.values().map(|model| model.next - 1).sum::<u64>();
    }
    println!("{raised} alerts of {} kinds, {touched} changes", seen.len());
    // The sample has neither back-tests nor daily limits.
    let missing: Vec<_> = AlertKind::ALL.into_iter().filter(|kind| !seen.contains(kind)).collect();
    assert_eq!(missing, [AlertKind::DailyLimitReached, AlertKind::BacktestFinished]);
    assert!(raised > 10_000 && touched > 3_000);
}
