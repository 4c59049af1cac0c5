//! Wallets of one client under load: acknowledged changes survive a kill, and others have happened completely or not at
//! all. The same for points of equity that were shown.

use crate::memory::Memory;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use tests::chance::Chance;
use tests::http::{Client, Request};
use tests::json::{at, int, list, text};

/// Active SANDBOX wallets of a client.
const SANDBOXES: usize = 4;

/// What one client knows about its wallets.
#[derive(Default)]
pub struct Wallets {
    /// By id, as last shown.
    known: BTreeMap<i64, Value>,
    /// A request without an answer.
    asked: Option<WalletRequest>,
    /// Full hours as they were shown.
    points: BTreeMap<String, Value>,
    next: u64,
}

enum WalletRequest {
    Open(String),
    Name(i64, String),
    Archive(i64),
    Reset(i64),
}

impl Wallets {
    /// One request about wallets. `order`: opens an order in one of them, which matters for nothing else.
    pub fn act(
        &mut self,
        client: &mut Client,
        memory: &mut Memory,
        chance: &mut Chance,
        order: Value,
    ) -> io::Result<()> {
        let mine = |wallet: &&Value| text(wallet, "/status") == "ACTIVE" && text(wallet, "/kind") == "SANDBOX";
        let active: Vec<i64> = self.known.values().filter(mine).map(|wallet| int(wallet, "/id")).collect();
        self.next += 1;
        let label = format!("w-{}", self.next);
        let (asked, request) = if active.len() < SANDBOXES {
            let body = json!({"kind": "SANDBOX", "label": label});
            (WalletRequest::Open(label), Request::post("/v1/me/wallets").json(&body))
        } else {
            let id = *chance.pick(&active);
            let path = format!("/v1/me/wallets/{id}");
            match chance.below(10) {
                0..6 => {
                    let mut order = order;
                    order["wallet_id"] = json!(id);
                    let answer = client.call(&Request::post("/v1/orders").json(&order))?;
                    assert!(answer.status < 500 || answer.status == 503, "{}", answer.lossy());
                    return Ok(());
                }
                6 => {
                    let body = json!({"label": label});
                    (WalletRequest::Name(id, label), Request::new("PATCH", &path).json(&body))
                }
                7 => (WalletRequest::Archive(id), Request::new("DELETE", &path)),
                _ => (WalletRequest::Reset(id), Request::post(&format!("{path}/reset"))),
            }
        };
        memory.note(format!("{} {}", request.method, request.path));
        self.asked = Some(asked);
        let answer = client.call(&request)?;
        memory.note(format!("{} {}: {}", request.method, request.path, answer.status));
        let asked = self.asked.take();
        match answer.status {
            200 | 201 => {
                let shown = answer.json();
                if let Some(WalletRequest::Reset(id)) = asked {
                    assert_eq!(int(&shown, "/parent_wallet_id"), id);
                    let parent = self.known.get_mut(&id).expect("a wallet of ours");
                    parent["status"] = json!("ARCHIVED");
                }
                self.known.insert(int(&shown, "/id"), shown);
            }
            409 | 503 => {}
            status => panic!("{} {}: {status} {}", request.method, request.path, answer.lossy()),
        }
        Ok(())
    }

    /// After a start: compares the wallets with the recorded answers.
    pub fn reconcile(&mut self, client: &mut Client, diary: &str) {
        let found = all(client);
        let asked = self.asked.take();
        for (id, known) in &self.known {
            let shown = found.get(id).unwrap_or_else(|| panic!("wallet {id} was acknowledged and is lost\n{diary}"));
            let may_end = matches!(asked, Some(WalletRequest::Archive(of) | WalletRequest::Reset(of)) if of == *id);
            let may_be_called = match &asked {
                Some(WalletRequest::Name(of, label)) if of == id => Some(label.as_str()),
                _ => None,
            };
            for field in ["/kind", "/generation", "/parent_wallet_id", "/created_at", "/baseline"] {
                assert_eq!(at(shown, field), at(known, field), "{field} of wallet {id}\n{diary}");
            }
            let same_label = at(shown, "/label") == at(known, "/label");
            assert!(same_label || at(shown, "/label").as_str() == may_be_called, "wallet {id}: {shown}\n{diary}");
            let same_status = at(shown, "/status") == at(known, "/status");
            assert!(same_status || (may_end && text(shown, "/status") == "ARCHIVED"), "wallet {id}: {shown}\n{diary}");
        }
        // At the first comparison everything is new.
        let fresh: Vec<&Value> =
            found.iter().filter(|(id, _)| !self.known.contains_key(id)).map(|(_, new)| new).collect();
        let sandboxes: Vec<&&Value> = fresh.iter().filter(|new| text(new, "/kind") == "SANDBOX").collect();
        let is_asked = |new: &Value| match &asked {
            Some(WalletRequest::Open(label)) => text(new, "/label") == label,
            Some(WalletRequest::Reset(id)) => at(new, "/parent_wallet_id") == &json!(id),
            _ => false,
        };
        assert!(
            sandboxes.len() <= 1 && sandboxes.iter().all(|new| is_asked(new)),
            "unknown wallets: {fresh:?}\n{diary}"
        );
        if let Some(WalletRequest::Reset(id)) = &asked {
            let archived = text(&found[id], "/status") == "ARCHIVED";
            assert_eq!(archived, !sandboxes.is_empty(), "half a reset of wallet {id}\n{diary}");
        }
        // An archived wallet is empty.
        let ended = found.values().rev().filter(|wallet| text(wallet, "/status") == "ARCHIVED");
        for id in ended.map(|wallet| int(wallet, "/id")).take(3) {
            for (path, rows) in [("/v1/orders?status=PENDING", "/orders"), ("/v1/account/positions?status=OPEN", "")] {
                let shown = client.get(&format!("{path}&wallet_id={id}")).expect(200);
                assert!(list(&shown, rows).is_empty(), "wallet {id} is archived and not empty: {shown}\n{diary}");
            }
        }
        self.known = found;
        self.check_points(client, diary);
    }

    /// An hour that was shown once never changes.
    fn check_points(&mut self, client: &mut Client, diary: &str) {
        let shown = client.get("/v1/account/equity?days=90").expect(200);
        let (_, hours) = list(&shown, "").split_last().expect("at least the present");
        let found: BTreeMap<String, Value> =
            hours.iter().map(|point| (text(point, "/timestamp").to_owned(), point.clone())).collect();
        // The newest one may still have been open.
        let settled = self.points.len().saturating_sub(1);
        for (hour, point) in self.points.iter().take(settled) {
            assert_eq!(found.get(hour), Some(point), "the point of {hour} changed\n{diary}");
        }
        self.points = found;
    }

    /// Number of wallets ever, and of hours shown.
    pub fn counts(&self) -> (usize, usize) {
        (self.known.len(), self.points.len())
    }
}

fn all(client: &mut Client) -> BTreeMap<i64, Value> {
    let mut found = BTreeMap::new();
    loop {
        let page = client.get(&format!("/v1/me/wallets?include_archived=true&limit=200&offset={}", found.len()));
        let page = page.expect(200);
        let rows = list(&page, "/wallets");
        found.extend(rows.iter().map(|wallet| (int(wallet, "/id"), wallet.clone())));
        if rows.len() < 200 {
            return found;
        }
    }
}
