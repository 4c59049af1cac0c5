//! Routes of alerts on a real shard, with a port that answers what a test says.

use super::message::Message;
use super::port::{Delivery, DeliveryOutcome, Integrations, NoTarget, NotSent, SentMail, Waiting};
use crate::api::testing::{Answered, Text as _, Town};
use crate::groups::tables;
use crate::http::testing::{NOW, Ports, World};
use crate::testing::ShardHere;
use engine::command::{AlertOutcome, Answer, Command, IssueKey, Query, Secret};
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::alerts::{AlertKind, Channel};
use engine::user::{AlertTarget, Permissions, Tier};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const HOOKS: &str = "/v1/integrations/webhook";
const CHATS: &str = "/v1/integrations/discord";
const PREFERENCES: &str = "/v1/integrations/email/preferences";
const MAIL_TEST: &str = "/v1/integrations/email/test";
const URL: &str = "https://hooks.example.net/abcdk9Qz";

/// A port with chosen answers.
#[derive(Default)]
struct Port {
    has_mailer: bool,
    mail: Mutex<Option<Result<SentMail, NotSent>>>,
    check: Mutex<Option<NoTarget>>,
    test: Mutex<Option<NotSent>>,
    /// What it was asked.
    asked: Mutex<Vec<String>>,
    deliveries: Vec<Delivery>,
}

impl Port {
    fn note(&self, what: String) {
        self.asked.lock().expect("no panic").push(what);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("no panic"))
    }
}

impl Integrations for Port {
    fn has_mailer(&self) -> bool {
        self.has_mailer
    }

    fn test_mail(&self, user: UserId, to: &str, _: Timestamp) -> Waiting<Result<SentMail, NotSent>> {
        self.note(format!("mail {user} {to}"));
        let answer = self.mail.lock().expect("no panic").clone();
        let sent = SentMail { message_id: "m-1@example.net".to_owned(), at: NOW };
        Box::pin(std::future::ready(answer.unwrap_or(Ok(sent))))
    }

    fn check(&self, _: UserId, channel: Channel, url: &str) -> Waiting<Result<String, NoTarget>> {
        self.note(format!("check {channel:?} {url}"));
        let answer = self.check.lock().expect("no panic").clone();
        Box::pin(std::future::ready(answer.map_or(Ok(url.to_owned()), Err)))
    }

    fn test(&self, user: UserId, target: &AlertTarget, _: Timestamp) -> Waiting<Result<(), NotSent>> {
        self.note(format!("test {user} {}", target.id));
        let answer = self.test.lock().expect("no panic").clone();
        Box::pin(std::future::ready(answer.map_or(Ok(()), Err)))
    }

    fn deliveries(&self, _: UserId, target: u32) -> Vec<Delivery> {
        self.note(format!("deliveries {target}"));
        self.deliveries.clone()
    }

    fn forget(&self, _: UserId, target: u32) {
        self.note(format!("forget {target}"));
    }
}

struct Lab {
    town: Town,
    port: Arc<Port>,
    shard: ShardHere,
    /// The keys of a free plan and of a paid one.
    free: String,
    pro: String,
}

impl Lab {
    fn new() -> Lab {
        Lab::of(Port { has_mailer: true, ..Port::default() }, Some("trader@example.net"))
    }

    /// Every user has this address.
    fn of(port: Port, email: Option<&'static str>) -> Lab {
        let port = Arc::new(port);
        let ports = Ports { integrations: Some(port.clone()), ..Ports::default() };
        let limits = "[limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n\
            [limits.tiers.pro]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n";
        let town = Town::of(World::with_ports(limits, &tables(), ports));
        let shard = ShardHere::new(NOW, town.books.clone(), town.catalog.clone());
        let asked = shard.clone();
        town.world.shard(move |owner, command| Ok(asked.ask(owner, email, command)));
        let free = town.key.clone();
        let pro = town.world.key(Tier::Pro, Permissions::Read);
        Lab { town, port, shard, free, pro }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Answered {
        self.town.world.send(method, path, &[("x-api-key", &self.pro)], body)
    }

    fn add(&self, path: &str, body: Value) -> Answered {
        self.send("POST", path, &body.to_string())
    }

    /// A new target: its id.
    fn added(&self, path: &str) -> u64 {
        let answer = self.add(path, json!({"url": URL}));
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_u64().expect("an id")
    }

    /// A command about the user of the paid plan.
    fn run(&self, command: Command) -> Answer {
        let owner = self.shard.users(|users| users.iter().last().expect("a user").id);
        self.shard.ask(owner, None, command)
    }
}

#[test]
fn a_target_is_added_changed_listed_and_removed() {
    let lab = Lab::new();
    for (path, channel) in [(HOOKS, "Webhook"), (CHATS, "Chat")] {
        assert_eq!(lab.send("GET", path, "").json(), json!({"subscriptions": []}));
        let body = json!({"url": URL, "label": "fills", "event_types": ["position_settled", "order_filled"]});
        let answer = lab.add(path, body);
        assert_eq!(answer.status, 201, "{}", answer.text());
        let added = answer.json();
        let id = added["id"].as_u64().expect("an id");
        assert_eq!(
            added,
            json!({
                "id": id, "label": "fills", "url_masked": "hooks.example.net/…k9Qz",
                "event_types": ["order_filled", "position_settled"], "enabled": true,
                "created_at": "2026-10-02T09:14:05Z", "last_delivery_at": null, "last_error": null, "failures": 0
            })
        );
        assert_eq!(lab.port.asked(), [format!("check {channel} {URL}")]);
        assert_eq!(lab.send("GET", path, "").json(), json!({"subscriptions": [added]}));
        let one = format!("{path}/{id}");
        let changed = lab.send("PATCH", &one, r#"{"label":null,"enabled":false,"event_types":null}"#).json();
        assert_eq!((&changed["label"], &changed["enabled"]), (&Value::Null, &json!(false)));
        assert_eq!(changed["event_types"].as_array().map(Vec::len), Some(12));
        // Absent fields stay.
        assert_eq!(lab.send("PATCH", &one, "{}").json(), changed);
        lab.port.asked();
        let removed = lab.send("DELETE", &one, "");
        assert_eq!((removed.status, removed.json()), (200, json!({"message": "Subscription removed"})));
        assert_eq!(lab.send("DELETE", &one, "").code(), (404, "NOT_FOUND"));
        assert_eq!(lab.port.asked(), [format!("forget {id}")], "its deliveries too, once");
        assert_eq!(lab.send("GET", path, "").json(), json!({"subscriptions": []}));
    }
}

#[test]
fn bodies_are_checked_before_plans_and_addresses() {
    let lab = Lab::new();
    let long = |count: usize| "x".repeat(count);
    // (path, body, code); what passes is added and removed again.
    let rows = [
        (HOOKS, json!({"url": URL}), 201, ""),
        (CHATS, json!({"url": URL, "label": null, "event_types": null, "more": 1}), 201, ""),
        (HOOKS, json!({"url": URL, "secret": long(16)}), 201, ""),
        (HOOKS, json!({"url": URL, "secret": long(128), "label": "é".repeat(120), "event_types": []}), 201, ""),
        // A chat has no secret; the field is one of the others.
        (CHATS, json!({"url": URL, "secret": "short"}), 201, ""),
        (HOOKS, json!({}), 422, "VALIDATION_FAILED"),
        (HOOKS, json!({"url": ""}), 422, "VALIDATION_FAILED"),
        (HOOKS, json!({"url": null}), 422, "VALIDATION_FAILED"),
        (HOOKS, json!({"url": 5}), 422, "VALIDATION_FAILED"),
        (HOOKS, json!({"url": long(2_049)}), 422, "VALIDATION_FAILED"),
        (CHATS, json!({"url": URL, "label": long(121)}), 422, "VALIDATION_FAILED"),
        (CHATS, json!({"url": URL, "label": 1}), 422, "VALIDATION_FAILED"),
        (CHATS, json!({"url": URL, "event_types": ["nothing"]}), 422, "VALIDATION_FAILED"),
        (CHATS, json!({"url": URL, "event_types": "order_filled"}), 422, "VALIDATION_FAILED"),
        (HOOKS, json!({"url": URL, "secret": long(15)}), 422, "VALIDATION_FAILED"),
        (HOOKS, json!({"url": URL, "secret": long(129)}), 422, "VALIDATION_FAILED"),
        (HOOKS, json!({"url": URL, "secret": 7}), 422, "VALIDATION_FAILED"),
        ("/v1/integrations/slack", json!({"url": URL}), 404, "NOT_FOUND"),
        ("/v1/integrations/Discord", json!({"url": URL}), 404, "NOT_FOUND"),
    ];
    for (path, body, status, code) in &rows {
        let answer = lab.add(path, body.clone());
        assert_eq!((answer.status, answer.header("x-svc-code").unwrap_or_default()), (*status, *code), "{path} {body}");
        if *status == 201 {
            let id = answer.json()["id"].as_u64().expect("an id");
            assert_eq!(lab.send("DELETE", &format!("{path}/{id}"), "").status, 200);
        }
    }
    // A wrong body is wrong for a free plan too; a right one needs a paid plan, before the address is looked at.
    lab.port.asked();
    for path in [HOOKS, CHATS] {
        for (body, expected) in [("{}", (422, "VALIDATION_FAILED")), (r#"{"url":"x"}"#, (402, "UPGRADE_REQUIRED"))] {
            let answer = lab.town.world.send("POST", path, &[("x-api-key", &lab.free)], body);
            assert_eq!(answer.code(), expected, "{path} {body}");
        }
        let answer = lab.town.world.send("POST", path, &[("x-api-key", &lab.free)], r#"{"url":"x"}"#);
        assert_eq!(answer.json()["feature_key"], "alerts.chat");
        assert_eq!(lab.town.world.send("GET", path, &[("x-api-key", &lab.free)], "").status, 200, "never gated");
    }
    assert_eq!(lab.port.asked(), Vec::<String>::new());
    println!("bodies: {} cases", rows.len() + 6);
}

#[test]
fn addresses_and_counts_are_bounded() {
    let lab = Lab::new();
    for (answer, expected) in [
        (NoTarget::Wrong("url has an address that is not public.".to_owned()), (400, "INVALID_REQUEST")),
        (NoTarget::Busy, (503, "SERVER_BUSY")),
    ] {
        *lab.port.check.lock().expect("no panic") = Some(answer);
        assert_eq!(lab.add(HOOKS, json!({"url": URL})).code(), expected);
    }
    *lab.port.check.lock().expect("no panic") = None;
    let ids: Vec<u64> = (0..5).flat_map(|_| [lab.added(HOOKS), lab.added(CHATS)]).collect();
    assert_eq!(ids, (1..=10).collect::<Vec<_>>());
    for path in [HOOKS, CHATS] {
        assert_eq!(lab.add(path, json!({"url": URL})).code(), (400, "INVALID_REQUEST"));
    }
    // The targets of the other channel are not found, nor what is not an id.
    for (path, id) in
        [(HOOKS, "2"), (CHATS, "1"), (HOOKS, "0"), (HOOKS, "01"), (HOOKS, "x"), (HOOKS, "4294967297"), (HOOKS, "-1")]
    {
        for (method, more, body) in
            [("PATCH", "", "{}"), ("DELETE", "", ""), ("POST", "/test", ""), ("GET", "/deliveries", "")]
        {
            let answer = lab.send(method, &format!("{path}/{id}{more}"), body);
            assert_eq!(answer.code(), (404, "NOT_FOUND"), "{method} {path}/{id}{more}");
        }
    }
    // A change is checked before its target is looked up.
    for body in [r#"{"enabled":1}"#, r#"{"enabled":null}"#, r#"{"label":[]}"#, r#"{"event_types":[null]}"#] {
        assert_eq!(lab.send("PATCH", &format!("{HOOKS}/99"), body).code(), (422, "VALIDATION_FAILED"), "{body}");
    }
}

#[test]
fn a_target_is_tested_and_its_deliveries_are_shown() {
    let delivery = Delivery {
        at: NOW,
        event: [0x42; 16],
        kind: AlertKind::OrderFilled,
        attempt: 2,
        outcome: DeliveryOutcome::Failed,
        status: Some(503),
        error: Some("the target answered 503".to_owned()),
    };
    let other = Delivery { outcome: DeliveryOutcome::GivenUp, status: None, error: None, ..delivery.clone() };
    let lab = Lab::of(Port { deliveries: vec![delivery, other], ..Port::default() }, None);
    let id = lab.added(HOOKS);
    let test = format!("{HOOKS}/{id}/test");
    let sent = lab.send("POST", &test, "");
    assert_eq!((sent.status, sent.json()), (200, json!({"status": "sent"})));
    for (answer, expected) in [
        (NotSent::Failed("the target answered 500".to_owned()), (502, "UPSTREAM_UNAVAILABLE")),
        (NotSent::Busy, (503, "SERVER_BUSY")),
    ] {
        *lab.port.test.lock().expect("no panic") = Some(answer);
        assert_eq!(lab.send("POST", &test, "").code(), expected);
    }
    issue(&lab, 1);
    issue(&lab, 2);
    let list = lab.send("GET", &format!("{HOOKS}/{id}/deliveries"), "").json();
    let row = json!({
        "at": "2026-10-02T09:14:05Z", "event_id": "42424242-4242-4242-4242-424242424242",
        "event_type": "order_filled", "attempt": 2, "outcome": "failed", "http_status": 503,
        "error": "the target answered 503"
    });
    assert_eq!(list["deliveries"][0], row);
    assert_eq!(list["deliveries"][1]["outcome"], "given_up");
    assert_eq!((&list["owed"], &list["dropped"]), (&json!(2), &json!(0)));
}

/// The user of the paid plan gets a key, which is an alert.
fn issue(lab: &Lab, number: u8) {
    let secret = Secret { hash: [number; 32], alias_hash: [number; 32], prefix: "svc_live_4f0c9d2".to_owned() };
    let name = Some("@everyone\nbot".to_owned());
    let issue = IssueKey { secret, name, tier: None, permissions: None, bootstrap: false, by: None };
    assert!(matches!(lab.run(Command::IssueKey(issue)), Answer::Key(_)));
}

#[test]
fn mail_is_chosen_by_type() {
    let lab = Lab::new();
    let first = lab.send("GET", PREFERENCES, "").json();
    assert_eq!((&first["email"], &first["email_verified"]), (&json!("trader@example.net"), &json!(true)));
    let on = |answer: &Value| -> Vec<String> {
        let rows = answer["preferences"].as_array().expect("a list").iter();
        rows.filter(|row| row["enabled"] == true)
            .map(|row| row["event_type"].as_str().expect("text").to_owned())
            .collect()
    };
    assert_eq!(on(&first), ["key_created", "key_rotated", "system_notice"]);
    let last = &first["preferences"][11];
    assert_eq!(*last, json!({"event_type": "system_notice", "enabled": true, "default": true, "locked": true}));
    let filled = json!({"event_type": "order_filled", "enabled": false, "default": false, "locked": false});
    assert_eq!(first["preferences"][0], filled);
    let change = |choices: Value| lab.send("PATCH", PREFERENCES, &json!({"preferences": choices}).to_string());
    let changed = change(json!({"order_filled": true, "key_created": false}));
    assert_eq!(
        (changed.status, on(&changed.json())),
        (200, vec!["order_filled".to_owned(), "key_rotated".to_owned(), "system_notice".to_owned()])
    );
    assert_eq!(on(&lab.send("GET", PREFERENCES, "").json()), on(&changed.json()));
    assert_eq!(on(&change(json!({})).json()), on(&changed.json()));
    assert_eq!(change(json!({"system_notice": true})).status, 200);
    let rows = [
        (r#"{"preferences":{"nothing":true}}"#, (422, "VALIDATION_FAILED")),
        (r#"{"preferences":{"order_filled":1}}"#, (422, "VALIDATION_FAILED")),
        (r#"{"preferences":{"order_filled":null}}"#, (422, "VALIDATION_FAILED")),
        (r#"{"preferences":{"order_filled":"true"}}"#, (422, "VALIDATION_FAILED")),
        (r#"{"preferences":[]}"#, (422, "VALIDATION_FAILED")),
        (r#"{"preferences":null}"#, (422, "VALIDATION_FAILED")),
        ("{}", (422, "VALIDATION_FAILED")),
        // An unknown type comes before the locked one.
        (r#"{"preferences":{"system_notice":false,"nothing":true}}"#, (422, "VALIDATION_FAILED")),
        (r#"{"preferences":{"system_notice":false}}"#, (400, "INVALID_REQUEST")),
        ("[]", (400, "INVALID_BODY")),
        ("", (400, "INVALID_BODY")),
    ];
    for (body, expected) in rows {
        assert_eq!(lab.send("PATCH", PREFERENCES, body).code(), expected, "{body}");
    }
    assert_eq!(on(&lab.send("GET", PREFERENCES, "").json()), on(&changed.json()), "a refusal changes nothing");
    // Without an address.
    let lab = Lab::of(Port::default(), None);
    let none = lab.send("GET", PREFERENCES, "").json();
    assert_eq!((&none["email"], &none["email_verified"]), (&Value::Null, &json!(false)));
    println!("choices: {} refusals", rows.len());
}

#[test]
fn a_test_mail_has_its_refusals_in_order() {
    let sent = |lab: &Lab| lab.send("POST", MAIL_TEST, "");
    let lab = Lab::of(Port::default(), None);
    assert_eq!(sent(&lab).code(), (404, "NOT_FOUND"), "no mailer comes before no address");
    // Versions before kept any text; mail cannot go to it, and the mailer is not asked.
    let none = [None, Some(""), Some(r#""<x>"@y.z"#), Some("a@[127.0.0.1]"), Some("a@b\r\nBcc: c@d.example")];
    for email in none {
        let lab = Lab::of(Port { has_mailer: true, ..Port::default() }, email);
        assert_eq!(sent(&lab).code(), (400, "INVALID_REQUEST"), "{email:?}");
        assert_eq!(lab.port.asked(), Vec::<String>::new(), "{email:?}");
        let shown = lab.send("GET", PREFERENCES, "").json();
        assert_eq!((&shown["email"], &shown["email_verified"]), (&Value::Null, &json!(false)), "{email:?}");
    }
    let lab = Lab::new();
    let answer = sent(&lab);
    assert_eq!(
        (answer.status, answer.json()),
        (
            200,
            json!({
                "status": "sent", "email": "trader@example.net", "event_type": "system_notice",
                "message_id": "m-1@example.net", "sent_at": "2026-10-02T09:14:05Z"
            })
        )
    );
    for (answer, expected) in [
        (NotSent::TooSoon(42), (429, "RATE_LIMIT_EXCEEDED")),
        (NotSent::Failed("the mail server did not answer in time".to_owned()), (502, "UPSTREAM_UNAVAILABLE")),
        (NotSent::Busy, (503, "SERVER_BUSY")),
    ] {
        *lab.port.mail.lock().expect("no panic") = Some(Err(answer));
        let refused = sent(&lab);
        assert_eq!(refused.code(), expected);
        assert!(expected.0 != 429 || refused.header("retry-after") == Some("42"));
    }
    println!("test mails: {} cases", none.len() + 5);
}

#[test]
fn an_alert_about_a_key_is_a_message() {
    let lab = Lab::new();
    let id = lab.added(HOOKS) as u32;
    issue(&lab, 1);
    let Answer::OwedAlert(Some(owed)) = lab.run(Command::Query(Query::OwedAlert(Some(id)))) else {
        panic!("it is owed")
    };
    let user = lab.shard.users(|users| users.iter().last().expect("a user").id);
    let message = Message::of(user, &owed, &lab.town.catalog);
    let payload: Value = serde_json::from_slice(&message.webhook()).expect("JSON");
    assert_eq!(payload["event_type"], "key_created");
    assert_eq!(payload["user_id"], json!(user.0));
    assert_eq!(
        (&payload["data"]["key_prefix"], &payload["data"]["name"]),
        (&json!("svc_live_4f0c9d2"), &json!("@everyone\nbot"))
    );
    let chat: Value = serde_json::from_slice(&message.chat()).expect("JSON");
    assert_eq!(chat["content"], json!("A key was created: svc\\_live\\_4f0c9d2… (@\u{200b}everyone bot)"));
    assert_eq!(chat["id"], payload["id"]);
    assert!(
        message.mail().starts_with("A key was created: svc_live_4f0c9d2… (@everyone bot)\n\n"),
        "{}",
        message.mail()
    );
    // It is the same message at each attempt, and gone after the delivery.
    assert_eq!(Message::of(user, &owed, &lab.town.catalog), message);
    let note = Command::NoteAlert { target: Some(id), alert: owed.alert.number, outcome: AlertOutcome::Delivered };
    assert!(matches!(lab.run(note), Answer::OwedAlert(None)));
}
