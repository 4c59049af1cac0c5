//! Notices of the operator (gateway/docs/integrations.md §6): to one user and to all, by the route and by the command.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use tests::binary::command;
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{int, list, text};
use tests::receiver::{Behaviour, Receiver};
use tests::server::ServerDir;
use tests::world::World;

const NOTICES: &str = "/v1/admin/notices";
const HOOKS: &str = "/v1/integrations/webhook";
const CHATS: &str = "/v1/integrations/discord";
const TEXT: &str = "Maintenance today from 22:00 to 22:30 UTC: https://status.example.net/7";

/// Targets on loopback, mail into a folder, and an admin listener.
fn settings(place: &mut ServerDir) {
    place.set("admin", "listen", "\"127.0.0.1:0\"");
    place.set("integrations", "allow_private_targets", "true");
    place.set("integrations", "chat_hosts", "[\"127.0.0.1\"]");
    place.set("integrations", "first_retry_ms", "10");
    let dir = place.root().join("mail");
    place.set("email", "smtp_url", &format!("\"file:{}\"", dir.display()));
}

fn arrived(receiver: &Receiver) -> usize {
    receiver.received().len()
}

fn control(world: &World) -> Client {
    let token = fs::read_to_string(world.place.data().join("admin_token")).expect("the server made one");
    Client::with_token(world.server.admin().expect("there is one"), &token)
}

/// Mails about notices.
fn mails(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.place.root().join("mail")).into_iter().flatten().flatten();
    let whole = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "eml"));
    let texts = whole.map(|path: PathBuf| fs::read_to_string(path).expect("a mail is text"));
    texts.filter(|mail| mail.contains("Event: system_notice")).collect()
}

fn verb(world: &World, args: &[&str]) -> (Option<i32>, String) {
    let mut verb = command();
    verb.arg("notice").args(args).arg("--config").arg(world.place.config()).arg("--data-dir").arg(world.place.data());
    let admin = format!("http://{}", world.server.admin().expect("there is one"));
    verb.arg("--admin").arg(admin).arg("--token-file").arg(world.place.data().join("admin_token"));
    let Output { status, stdout, stderr } = verb.output().expect("papertape can be run");
    (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

#[test]
fn a_notice_goes_to_everything_that_takes_it() {
    let cases = Cases::of("notices");
    let [hook, chat, other] = [(); 3].map(|()| Receiver::start(Behaviour::Status(204)));
    let mut world = World::start_with(2, settings);
    let (mut ada, _) = world.mailed("ada", "ada@example.net");
    ada.post(HOOKS, &json!({"url": hook.url("/hook"), "secret": "0123456789abcdef"})).expect(201);
    ada.post(CHATS, &json!({"url": chat.url("/chat"), "event_types": ["system_notice"]})).expect(201);
    // One that takes other events only, and one without anything.
    let mut filler = world.user(0);
    filler.post(HOOKS, &json!({"url": other.url("/hook"), "event_types": ["order_filled"]})).expect(201);
    let mut operator = control(&world);
    let given = operator.post(NOTICES, &json!({"user": "ada", "text": TEXT})).expect(200);
    assert_eq!(given, json!({"users": 1, "owed": 1, "next_after": null}));
    let payload = hook.wait_for_event("system_notice");
    assert_eq!((text(&payload, "/data/text"), &payload["data"]), (TEXT, &json!({"text": TEXT})));
    let line = chat.wait_for_event("system_notice");
    assert_eq!((text(&line, "/content"), text(&line, "/id")), (TEXT, text(&payload, "/id")));
    let mail = eventually("the mail", || mails(&world).into_iter().next());
    let (head, body) = mail.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.contains("Subject: A notice of the server") && head.contains("To: ada@example.net"), "{head}");
    assert!(body.starts_with(TEXT) && !head.contains("Maintenance"), "{mail}");
    cases.add(3);
    // To all: those without anything are counted, and owed nothing.
    let users = int(&operator.post(NOTICES, &json!({"all": true, "text": "One more."})).expect(200), "/users");
    let id = int(&ada.get("/v1/me").expect(200), "/user_id");
    let after = operator.post(NOTICES, &json!({"all": true, "text": "The last.", "after": id - 1})).expect(200);
    assert_eq!((int(&after, "/users"), int(&after, "/owed")), (users - id + 1, 1));
    eventually("both arrive", || {
        (arrived(&hook) == 3 && arrived(&chat) == 3 && mails(&world).len() == 3).then_some(())
    });
    assert_eq!(operator.post(NOTICES, &json!({"all": true, "text": "x", "after": id})).expect(200)["owed"], 0);
    cases.add(3);
    // The address of a user who has never chosen anything.
    let eve = tests::token::token_of("eve", "eve@example.net");
    world.server.with_token(&eve).get("/v1/me").expect(200);
    operator.post(NOTICES, &json!({"user": "eve", "text": "Welcome."})).expect(200);
    eventually("the mail", || mails(&world).iter().any(|mail| mail.contains("To: eve@example.net")).then_some(()));
    cases.one();
    let long = "x".repeat(1_001);
    let refusals: Vec<(Value, u16, &str)> = vec![
        (json!({"user": "nowhere", "text": "x"}), 404, "ACCOUNT_NOT_FOUND"),
        (json!({"user": 4_000_000, "text": "x"}), 404, "ACCOUNT_NOT_FOUND"),
        (json!({"user": 1, "text": "x"}), 400, "INVALID_REQUEST"),
        (json!({"text": "x"}), 422, "VALIDATION_FAILED"),
        (json!({"user": "ada", "all": true, "text": "x"}), 422, "VALIDATION_FAILED"),
        (json!({"user": "ada", "after": 1, "text": "x"}), 422, "VALIDATION_FAILED"),
        (json!({"all": true}), 422, "VALIDATION_FAILED"),
        (json!({"all": true, "text": ""}), 422, "VALIDATION_FAILED"),
        (json!({"all": true, "text": long}), 422, "VALIDATION_FAILED"),
        (json!({"all": true, "text": "a\r\nBcc: eve@example.net"}), 422, "VALIDATION_FAILED"),
        (json!({"all": true, "text": "a\u{0}b"}), 422, "VALIDATION_FAILED"),
        (json!({"all": true, "text": "a\u{2028}b"}), 422, "VALIDATION_FAILED"),
        (json!([]), 400, "INVALID_BODY"),
    ];
    for (body, status, code) in &refusals {
        operator.post(NOTICES, body).refused(*status, code);
        cases.one();
    }
    operator.get(NOTICES).refused(405, "HTTP_405");
    Client::new(world.server.admin().expect("there is one")).post(NOTICES, &json!({})).refused(401, "MISSING_AUTH");
    assert_eq!((arrived(&other), arrived(&hook)), (0, 3));
    assert_eq!(list(&filler.get(HOOKS).expect(200), "/subscriptions")[0]["last_delivery_at"], Value::Null);
    cases.add(3);
}

#[test]
fn the_command_gives_notices() {
    let cases = Cases::of("notices by the command");
    let mut world = World::start_with(1, settings);
    world.mailed("ada", "ada@example.net");
    let rows: [(&[&str], Option<i32>, &str); 8] = [
        (&["--text", TEXT, "--user", "ada"], Some(0), "the notice goes to 1 of 1 users"),
        (&["--text", "To all.", "--all"], Some(0), "the notice goes to 1 of "),
        (&["--text", "x", "--all", "--after", "4000000"], Some(0), "the notice goes to 0 of 0 users"),
        (&["--text", "x", "--user", "nowhere"], Some(1), "ACCOUNT_NOT_FOUND"),
        (&["--text", "two\nlines", "--all"], Some(2), "one line"),
        (&["--text", "x"], Some(2), "--user"),
        (&["--text", "x", "--all", "--user", "ada"], Some(2), "--all"),
        (&["--text", "x", "--user", "ada", "--after", "1"], Some(2), "cannot be used with"),
    ];
    for (args, code, part) in rows {
        let (found, printed) = verb(&world, args);
        assert!(found == code && printed.contains(part), "{args:?}: {found:?} {printed}");
        cases.one();
    }
    eventually("both mails", || (mails(&world).len() == 2).then_some(()));
    assert!(mails(&world).iter().any(|mail| mail.contains(TEXT)));
}

/// While the log writes the format of the build before, no notice is kept.
#[test]
fn the_previous_format_has_no_notices() {
    let cases = Cases::of("notices in the previous format");
    let world = World::start_with(1, |place| {
        settings(place);
        place.set("journal", "write_formats", "\"previous\"");
    });
    let mut operator = control(&world);
    for body in [json!({"user": 1, "text": "x"}), json!({"all": true, "text": "x"})] {
        operator.post(NOTICES, &body).refused(503, "SERVER_BUSY");
        cases.one();
    }
}
