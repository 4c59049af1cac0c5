//! Alerts by commands: bounds, refusals, failures in a row, the day of a free plan; the records replayed give the same
//! state.

use super::world::{START, World};
use crate::command::{
    AlertOutcome, Answer, Command, CreateUser, IssueKey, NewAlertTarget, Query, Secret, TargetChange, Wallets,
};
use crate::format::Formats;
use crate::mutation::{Mutation, codec};
use crate::reject::Reject;
use crate::user::alerts::{
    ALERTS_MAX, AlertKind, AlertKinds, Channel, ERROR_CHARS_MAX, FAILURES_MAX, TARGETS_PER_CHANNEL_MAX,
};
use crate::view::{AboutView, AlertsView, OwedAlert};

fn world() -> World {
    world_with(None)
}

fn world_with(email: Option<&str>) -> World {
    let mut world = World::of("");
    let request = CreateUser { sub: None, email: email.map(str::to_owned), grant: None, api_balance: None };
    world.ask(Command::CreateUser(request), 0);
    world
}

fn add(world: &mut World, channel: Channel, kinds: AlertKinds) -> Result<u32, Reject> {
    let url = "https://hooks.example.net/abcdk9Qz".to_owned();
    let new = NewAlertTarget { channel, url, secret: None, label: None, kinds };
    match world.ask(Command::AddAlertTarget(Box::new(new)), 0) {
        Answer::AlertTarget(target) => Ok(target.id),
        Answer::Refused(reject) => Err(reject),
        other => panic!("{other:?}"),
    }
}

fn change(world: &mut World, channel: Channel, target: u32, change: TargetChange) -> Result<bool, Reject> {
    match world.ask(Command::ChangeAlertTarget { channel, target, change }, 0) {
        Answer::AlertTarget(target) => Ok(target.is_enabled),
        Answer::Refused(reject) => Err(reject),
        other => panic!("{other:?}"),
    }
}

fn alerts(world: &mut World) -> AlertsView {
    match world.ask(Command::Query(Query::Alerts), 0) {
        Answer::Alerts(alerts) => *alerts,
        other => panic!("{other:?}"),
    }
}

fn owed(world: &mut World, target: Option<u32>) -> Option<OwedAlert> {
    match world.ask(Command::Query(Query::OwedAlert(target)), 0) {
        Answer::OwedAlert(owed) => owed.map(|owed| *owed),
        other => panic!("{other:?}"),
    }
}

/// Notes an outcome, and returns the number of what is owed next.
fn note(world: &mut World, target: Option<u32>, alert: u64, outcome: AlertOutcome) -> Option<u64> {
    match world.ask(Command::NoteAlert { target, alert, outcome }, 0) {
        Answer::OwedAlert(owed) => owed.map(|owed| owed.alert.number),
        other => panic!("{other:?}"),
    }
}

fn issue(world: &mut World, number: u8) {
    let secret = Secret { hash: [number; 32], alias_hash: [number; 32], prefix: "svc_live_4f0c9d2".to_owned() };
    let issue = IssueKey { secret, name: None, tier: None, permissions: None, bootstrap: false, by: None };
    assert!(matches!(world.ask(Command::IssueKey(issue), 0), Answer::Key(_)));
}

#[test]
fn targets_are_bounded_by_channel_and_found_by_it() {
    use Channel::{Chat, Webhook};
    let mut world = world();
    for count in 1..=TARGETS_PER_CHANNEL_MAX as u32 {
        assert_eq!(add(&mut world, Chat, AlertKinds::ALL), Ok(2 * count - 1));
        assert_eq!(add(&mut world, Webhook, AlertKinds::ALL), Ok(2 * count));
    }
    for channel in [Chat, Webhook] {
        assert_eq!(add(&mut world, channel, AlertKinds::ALL), Err(Reject::TooManyAlertTargets));
    }
    let records = world.out.records.len();
    for (channel, target) in [(Chat, 2), (Webhook, 1), (Chat, 0), (Chat, 11), (Webhook, u32::MAX)] {
        assert_eq!(change(&mut world, channel, target, TargetChange::default()), Err(Reject::AlertTargetNotFound));
        let removed = world.ask(Command::RemoveAlertTarget { channel, target }, 0);
        assert!(matches!(removed, Answer::Refused(Reject::AlertTargetNotFound)));
    }
    // What is so already leaves no record.
    assert_eq!(change(&mut world, Chat, 1, TargetChange::default()), Ok(true));
    let same = TargetChange { label: Some(None), is_enabled: Some(true), kinds: Some(AlertKinds::ALL) };
    assert_eq!(change(&mut world, Chat, 1, same), Ok(true));
    assert_eq!(world.out.records.len(), records);
    let off = TargetChange { is_enabled: Some(false), ..TargetChange::default() };
    assert_eq!(change(&mut world, Chat, 1, off), Ok(false));
    assert!(matches!(world.ask(Command::RemoveAlertTarget { channel: Chat, target: 1 }, 0), Answer::Done));
    // Its id is not used again.
    assert_eq!(add(&mut world, Chat, AlertKinds::ALL), Ok(11));
    assert_eq!(alerts(&mut world).targets.len(), 10);
    world.check().expect("the records give the same state");
}

#[test]
fn failures_in_a_row_switch_a_target_off() {
    let mut world = world();
    let failed = |is_gone| AlertOutcome::Failed { error: "x".repeat(900), gives_up: false, is_gone };
    let hook = add(&mut world, Channel::Webhook, AlertKinds::ALL).expect("below the bound");
    issue(&mut world, 1);
    issue(&mut world, 2);
    for count in 1..FAILURES_MAX {
        assert_eq!(note(&mut world, Some(hook), 1, failed(false)), Some(1), "{count}");
    }
    let view = alerts(&mut world);
    let target = &view.targets[0].target;
    let error = target.last_error.as_deref().map(|error| error.chars().count());
    assert_eq!((target.failures, target.is_enabled, error), (FAILURES_MAX - 1, true, Some(ERROR_CHARS_MAX)));
    // A delivery ends the row.
    assert_eq!(note(&mut world, Some(hook), 1, AlertOutcome::Delivered), Some(2));
    for _ in 1..FAILURES_MAX {
        assert_eq!(note(&mut world, Some(hook), 2, failed(false)), Some(2));
    }
    assert_eq!(note(&mut world, Some(hook), 2, failed(false)), None);
    assert!(!alerts(&mut world).targets[0].target.is_enabled);
    // One that is gone is switched off at the first attempt.
    let other = add(&mut world, Channel::Webhook, AlertKinds::ALL).expect("below the bound");
    issue(&mut world, 3);
    assert_eq!(note(&mut world, Some(other), 3, failed(true)), None);
    assert!(!alerts(&mut world).targets[1].target.is_enabled);
    // What is not owed leaves no record.
    let records = world.out.records.len();
    // Both targets are off.
    for (target, alert) in [(Some(hook), 1), (Some(other), 3), (Some(99), 1), (None, 1)] {
        assert_eq!(note(&mut world, target, alert, failed(true)), None);
        assert_eq!(note(&mut world, target, alert, AlertOutcome::Delivered), None);
    }
    assert_eq!(world.out.records.len(), records);
    world.check().expect("the records give the same state");
}

#[test]
fn failures_count_although_their_alerts_were_dropped() {
    let mut world = World::of("");
    world.rules.keys_max = usize::MAX;
    world.make_user();
    let hook = add(&mut world, Channel::Webhook, AlertKinds::ALL).expect("below the bound");
    for count in 0..=ALERTS_MAX as u32 {
        let hash = std::array::from_fn(|at| count.to_le_bytes().get(at).copied().unwrap_or(0));
        let secret = Secret { hash, alias_hash: hash, prefix: "svc_live_4f0c9d2".to_owned() };
        let issue = IssueKey { secret, name: None, tier: None, permissions: None, bootstrap: false, by: None };
        assert!(matches!(world.ask(Command::IssueKey(issue), 0), Answer::Key(_)));
    }
    assert_eq!(alerts(&mut world).dropped, 1);
    let failed = AlertOutcome::Failed { error: "timed out".to_owned(), gives_up: true, is_gone: false };
    // The first alert was dropped while it was attempted.
    assert_eq!(note(&mut world, Some(hook), 1, failed), Some(2), "nothing else is given up");
    assert_eq!(alerts(&mut world).targets[0].target.failures, 1);
    assert_eq!(note(&mut world, Some(hook), 1, AlertOutcome::Delivered), Some(2));
    assert_eq!(alerts(&mut world).targets[0].target.failures, 0);
    world.check().expect("the records give the same state");
}

#[test]
fn mail_is_chosen_by_kind_and_notices_stay() {
    let mut world = world_with(Some("trader@example.net"));
    let (filled, notice) = (AlertKinds::of(&[AlertKind::OrderFilled]), AlertKinds::of(&[AlertKind::SystemNotice]));
    assert_eq!(alerts(&mut world).mail, AlertKinds::BY_MAIL);
    let choose = |world: &mut World, on, off| match world.ask(Command::ChooseMail { on, off }, 0) {
        Answer::Alerts(view) => view.mail,
        other => panic!("{other:?}"),
    };
    let none = AlertKinds::default();
    assert_eq!(choose(&mut world, none, none), AlertKinds::BY_MAIL);
    assert_eq!(choose(&mut world, filled, none), AlertKinds::BY_MAIL.with(filled));
    assert_eq!(choose(&mut world, none, AlertKinds::ALL), notice);
    assert_eq!(choose(&mut world, AlertKinds::ALL, none), AlertKinds::ALL);
    world.check().expect("the records give the same state");
}

#[test]
fn mail_about_keys_begins_while_mail_goes_out() {
    // (mail goes out, an address, the newest format; the first key of a user is owed by mail)
    for (mails, has_address, is_newest, expected) in
        [(true, true, true, true), (false, true, true, false), (true, false, true, false), (true, true, false, false)]
    {
        let mut world = World::of("");
        world.rules.mails = mails;
        world.rules.formats = if is_newest { Formats::Newest } else { Formats::Previous };
        let email = has_address.then(|| "trader@example.net".to_owned());
        world.ask(Command::CreateUser(CreateUser { sub: None, email, grant: None, api_balance: None }), 0);
        issue(&mut world, 1);
        assert_eq!(owed(&mut world, None).is_some(), expected, "{mails} {has_address} {is_newest}");
        assert_eq!(world.the_user().alerts().is_some(), expected, "{mails} {has_address} {is_newest}");
        if expected {
            let next = owed(&mut world, None).expect("it is owed");
            assert!(matches!(next.about, AboutView::Key(_)) && next.email.as_deref() == Some("trader@example.net"));
            issue(&mut world, 2);
            assert_eq!(note(&mut world, None, 1, AlertOutcome::Delivered), Some(2));
            world.check().expect("the records give the same state");
        }
    }
}

#[test]
fn the_previous_format_has_no_alerts() {
    let mut world = World::of("");
    world.rules.formats = Formats::Previous;
    world.make_user();
    let refused = |answer| matches!(answer, Answer::Refused(Reject::NoAlertStore));
    assert_eq!(add(&mut world, Channel::Chat, AlertKinds::ALL), Err(Reject::NoAlertStore));
    let (on, off) = (AlertKinds::ALL, AlertKinds::default());
    assert!(refused(world.ask(Command::ChooseMail { on, off }, 0)));
    let outcome = AlertOutcome::Delivered;
    assert!(refused(world.ask(Command::NoteAlert { target: None, alert: 1, outcome }, 0)));
    assert_eq!(world.the_user().alerts(), None);
}

#[test]
fn fills_ends_and_the_daily_limit_are_owed_in_order() {
    let mut world = World::of("");
    world.rules.free_daily_orders = 3;
    world.act("book Y bids 0.30x50 asks 0.40x10");
    // Before the first target nothing is owed, and the shard reports nothing.
    assert!(world.act("buy Y 5 limit 0.40").starts_with("FILLED"));
    assert_eq!(world.out.owing, 0);
    let hook = add(&mut world, Channel::Webhook, AlertKinds::ALL).expect("below the bound");
    assert!(world.act("buy Y 20 limit 0.40").starts_with("PENDING 5/20"));
    assert!(world.act("buy Y 10 limit 0.20").starts_with("PENDING 0/10"));
    let reported = world.out.owing;
    assert_eq!(reported, 2, "once for each record that owes: {:?}", world.the_user().alerts());
    assert!(world.act("buy Y 10 limit 0.20").starts_with("DailyLimit 3/3"));
    assert_eq!(world.out.owing, reported, "a refusal owes nothing");
    let cancelled = world.ask(Command::CancelAll { wallets: Wallets::All }, 0);
    assert!(matches!(&cancelled, Answer::Cancelled(swept) if swept.cancelled.len() == 2), "{cancelled:?}");
    let mut kinds = Vec::new();
    while let Some(next) = owed(&mut world, Some(hook)) {
        let is_fill = matches!(next.about, AboutView::Fill(_));
        assert_eq!(is_fill, next.alert.kind == AlertKind::OrderPartiallyFilled, "{:?}", next.alert);
        if let AboutView::DailyLimit { limit, resets_at } = next.about {
            assert_eq!((limit, resets_at), (3, START.day().end()));
        }
        kinds.push(next.alert.kind);
        note(&mut world, Some(hook), next.alert.number, AlertOutcome::Delivered);
    }
    assert_eq!(
        kinds,
        [
            AlertKind::OrderPartiallyFilled,
            AlertKind::DailyLimitReached,
            AlertKind::OrderCancelled,
            AlertKind::OrderCancelled,
        ]
    );
    // An order and the limit that it reaches are one record.
    let has = |record: &[u8], name: &str| {
        let facts = codec::decode::<Mutation>(codec::VERSION, record).expect("a record");
        facts.filter_map(Result::ok).any(|fact| fact.name() == name)
    };
    let of_limit: Vec<_> = world.out.records.iter().filter(|(_, record)| has(record, "DailyLimitReached")).collect();
    assert!(matches!(&of_limit[..], [(_, record)] if has(record, "OrderPlaced")));
    world.check().expect("the records give the same state");
}

/// What a change writes: never the address, the secret, or what stays.
#[test]
fn a_change_writes_only_what_changed() {
    let mut world = world();
    let new = NewAlertTarget {
        channel: Channel::Webhook,
        url: "https://hooks.example.net/abcdk9Qz".to_owned(),
        secret: Some("0123456789abcdef".to_owned()),
        label: Some("old".to_owned()),
        kinds: AlertKinds::ALL,
    };
    assert!(matches!(world.ask(Command::AddAlertTarget(Box::new(new)), 0), Answer::AlertTarget(_)));
    let label = |label: Option<&str>| TargetChange { label: Some(label.map(str::to_owned)), ..TargetChange::default() };
    let kinds = |kinds| TargetChange { kinds: Some(kinds), ..TargetChange::default() };
    let enabled = |is_enabled| TargetChange { is_enabled: Some(is_enabled), ..TargetChange::default() };
    let created = AlertKinds::of(&[AlertKind::KeyCreated]);
    let all = TargetChange { label: Some(Some("last".to_owned())), is_enabled: Some(true), kinds: Some(created) };
    // (change; label, whether the label is taken away, kinds, on or off; `None` writes nothing)
    let rows = [
        (label(Some("old")), None),
        (label(Some("new")), Some((Some("new"), false, None, None))),
        (label(None), Some((None, true, None, None))),
        (label(None), None),
        (label(Some("")), Some((Some(""), false, None, None))),
        (kinds(AlertKinds::ALL), None),
        (kinds(created), Some((None, false, Some(created), None))),
        (enabled(true), None),
        (enabled(false), Some((None, false, None, Some(false)))),
        (all.clone(), Some((Some("last"), false, None, Some(true)))),
        (all, None),
    ];
    for (row, (of, expected)) in rows.iter().enumerate() {
        let before = world.out.records.len();
        change(&mut world, Channel::Webhook, 1, of.clone()).expect("it is there");
        let written: Vec<Mutation> = world.out.records[before..]
            .iter()
            .flat_map(|(_, record)| codec::decode::<Mutation>(codec::VERSION, record).expect("a record"))
            .map(|fact| fact.expect("just written"))
            .collect();
        let expected = expected.map(|(label, clears_label, kinds, is_enabled)| {
            let label = label.map(str::to_owned);
            crate::fact::AlertTargetChanged { target: 1, label, clears_label, kinds, is_enabled, at: world.now }.into()
        });
        assert_eq!(written, expected.into_iter().collect::<Vec<Mutation>>(), "row {row}");
        assert!(!world.out.records[before..].iter().any(|(_, record)| contains(record, b"hooks.example.net")));
    }
    world.check().expect("the records give the same state");
    println!("changes that are written: {} cases", rows.len());
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_notice_is_owed_to_what_takes_it() {
    let notice = AlertKinds::of(&[AlertKind::SystemNotice]);
    let others = AlertKinds::ALL.without(notice);
    // (mail goes out, an address, the kinds of a webhook and whether it is on; owed by mail, owed to the webhook)
    let rows = [
        (true, true, None, true, false),
        (true, true, Some((notice, true)), true, true),
        (true, true, Some((others, true)), true, false),
        (true, false, None, false, false),
        (true, false, Some((notice, true)), false, true),
        (true, false, Some((notice, false)), false, false),
        (true, false, Some((others, true)), false, false),
        (false, true, None, false, false),
        (false, false, Some((AlertKinds::ALL, true)), false, true),
    ];
    for (row, (mails, has_address, hook, by_mail, to_hook)) in rows.into_iter().enumerate() {
        let mut world = World::of("");
        world.rules.mails = mails;
        let email = has_address.then(|| "trader@example.net".to_owned());
        world.ask(Command::CreateUser(CreateUser { sub: None, email, grant: None, api_balance: None }), 0);
        if let Some((kinds, is_enabled)) = hook {
            let target = add(&mut world, Channel::Webhook, kinds).expect("below the bound");
            let to = TargetChange { is_enabled: Some(is_enabled), ..TargetChange::default() };
            change(&mut world, Channel::Webhook, target, to).expect("it is there");
        }
        let (before, reported) = (world.out.records.len(), world.out.owing);
        let text = "Maintenance at 22:00 UTC.".to_owned();
        let answer = world.ask(Command::Notify { text }, 0);
        let is_owed = by_mail || to_hook;
        assert!(matches!(answer, Answer::Notified(owes) if owes == is_owed), "row {row}: {answer:?}");
        assert_eq!(world.out.records.len() - before, usize::from(is_owed), "row {row}: one record");
        assert_eq!(world.out.owing - reported, usize::from(is_owed), "row {row}: it is reported");
        let receivers = [(None, by_mail)].into_iter().chain(hook.map(|_| (Some(1), to_hook)));
        for (target, expected) in receivers {
            let texts = owed(&mut world, target).map(|next| (next.alert.kind, format!("{:?}", next.about)));
            let wanted = (AlertKind::SystemNotice, r#"Notice("Maintenance at 22:00 UTC.")"#.to_owned());
            assert_eq!(texts, expected.then_some(wanted), "row {row} {target:?}");
        }
        world.check().expect("the records give the same state");
    }
    let mut world = World::of("");
    world.rules.formats = Formats::Previous;
    world.make_user();
    let refused = world.ask(Command::Notify { text: "x".to_owned() }, 0);
    assert!(matches!(refused, Answer::Refused(Reject::NoAlertStore)));
    println!("notices: {} cases", rows.len() + 1);
}

#[test]
fn an_address_is_noted_once() {
    // (the address of the first sight, the newest format; the address after two others)
    let rows = [
        (None, true, Some("first@example.net")),
        (Some("trader@example.net"), true, Some("trader@example.net")),
        (None, false, None),
    ];
    for (row, (email, is_newest, expected)) in rows.into_iter().enumerate() {
        let mut world = World::of("");
        world.rules.mails = true;
        world.rules.formats = if is_newest { Formats::Newest } else { Formats::Previous };
        let create = CreateUser { sub: None, email: email.map(str::to_owned), grant: None, api_balance: None };
        world.ask(Command::CreateUser(create), 0);
        for email in ["first@example.net", "second@example.net"] {
            let answer = world.ask(Command::NoteEmail { email: email.to_owned() }, 0);
            assert!(matches!(answer, Answer::Done), "row {row}: {answer:?}");
        }
        assert_eq!(world.the_user().email(), expected, "row {row}");
        // From then on mail about keys goes there.
        issue(&mut world, 1);
        let next = owed(&mut world, None);
        assert_eq!(next.and_then(|next| next.email).as_deref(), expected, "row {row}");
        if is_newest {
            world.check().expect("the records give the same state");
        }
    }
    println!("addresses: {} cases", rows.len());
}
