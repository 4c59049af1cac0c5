//! Alerts by mail against aiosmtpd, a real mail server (gateway/docs/integrations.md §2, §5).

use crate::programs::Clients;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use tests::cases::Cases;
use tests::eventually;
use tests::json::{at, int, list, text};
use tests::world::{World, limit};

const TEST: &str = "/v1/integrations/email/test";

/// A mail server that runs until it is dropped.
struct MailServer {
    child: Child,
    modes: ChildStdin,
    port: u16,
    taken: Arc<Mutex<Vec<Value>>>,
}

impl MailServer {
    fn start(clients: &Clients) -> MailServer {
        let mut command = clients.script("mail.py");
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.expect("the mail server can be started");
        let modes = child.stdin.take().expect("a pipe was requested");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe was requested")).lines();
        let port = lines.next().expect("its port").expect("text").parse().expect("a number");
        let taken = Arc::new(Mutex::new(Vec::new()));
        let kept = taken.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(serde_json::from_str(&line).expect("a mail as JSON"));
            }
        });
        MailServer { child, modes, port, taken }
    }

    /// From here on it does this with mails. A line is read before the next connection is made.
    fn set(&mut self, mode: &str) {
        writeln!(self.modes, "{mode}").expect("it reads modes");
        self.modes.flush().expect("it reads modes");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }

    /// Each mail once: one whose delivery was interrupted comes again, with the same id.
    fn taken(&self) -> Vec<Value> {
        let mut seen = BTreeSet::new();
        let all = self.taken.lock().unwrap().clone();
        all.into_iter().filter(|mail| seen.insert(header(mail, "message-id")[0].to_owned())).collect()
    }

    #[track_caller]
    fn wait_for(&self, count: usize) -> Vec<Value> {
        eventually("mails", || Some(self.taken()).filter(|taken| taken.len() >= count))
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn header<'a>(mail: &'a Value, name: &str) -> Vec<&'a str> {
    let rows = list(mail, "/headers").iter().filter(|row| text(row, "/0").eq_ignore_ascii_case(name));
    rows.map(|row| text(row, "/1")).collect()
}

#[test]
fn mail_goes_through_a_real_server_and_survives_its_failures() {
    let cases = Cases::of("mails by SMTP");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let mut mail = MailServer::start(&clients);
    let port = mail.port;
    let mut world = World::start_with(1, |place| {
        place.set("email", "smtp_url", &format!("\"smtp://127.0.0.1:{port}\""));
        place.set("email", "from", "\"alerts@example.net\"");
        place.set("integrations", "first_retry_ms", "200");
        place.set("integrations", "timeout_ms", "1000");
        place.set("admin", "listen", "\"127.0.0.1:0\"");
    });
    let (mut client, _) = world.mailed("smtp", "trader@example.net");
    // The first key is an alert by default.
    let first = mail.wait_for(1).remove(0);
    assert_eq!((text(&first, "/from"), at(&first, "/to")), ("alerts@example.net", &json!(["trader@example.net"])));
    assert_eq!(header(&first, "subject"), ["An API key was created"]);
    assert_eq!((header(&first, "to"), header(&first, "message-id").len()), (vec!["trader@example.net"], 1));
    assert!(text(&first, "/body").starts_with("A key was created: "), "{first}");
    cases.one();
    let sent = client.post(TEST, &Value::Null).expect(200);
    let test = mail.wait_for(2).remove(1);
    assert_eq!(header(&test, "message-id"), [format!("<{}>", text(&sent, "/message_id"))]);
    cases.one();
    // A later attempt delivers, and orders go on meanwhile.
    let choice = json!({"preferences": {"order_filled": true}});
    client.patch("/v1/integrations/email/preferences", &choice).expect(200);
    let failed = |world: &World| world.figure("papertape_alert_attempts_failed_total{channel=\"mail\"}");
    for (number, mode) in ["refuse", "defer", "stall", "cut"].into_iter().enumerate() {
        mail.set(mode);
        let before = failed(&world);
        let body = limit(&world.markets.vote, "BUY", "0.65", "5");
        let order = client.post("/v1/orders", &body).expect(200);
        assert_eq!(text(&order, "/status"), "FILLED");
        eventually("an attempt that fails", || (failed(&world) > before).then_some(()));
        assert_eq!(mail.taken().len(), 2 + number, "{mode} takes nothing");
        mail.set("take");
        let taken = mail.wait_for(3 + number);
        let last = &taken[2 + number];
        assert_eq!(header(last, "subject"), ["An order was filled"], "{mode}");
        assert!(text(last, "/body").contains(&format!("Order {} filled", int(&order, "/order_id"))), "{mode}: {last}");
        cases.one();
    }
    // A test mail that fails is 502; the minute of the user counts it.
    let (mut other, _) = world.mailed("other", "other@example.net");
    mail.wait_for(7);
    mail.set("refuse");
    let refused = other.post(TEST, &Value::Null).refused(502, "UPSTREAM_UNAVAILABLE");
    assert!(text(&refused, "/message").contains("550"), "{refused}");
    other.post(TEST, &Value::Null).refused(429, "RATE_LIMIT_EXCEEDED");
    cases.add(2);
}
