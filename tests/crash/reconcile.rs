//! After a start: compares the server with the record of a client.
//!
//! Nothing answered is lost or changed, nothing happened twice, nothing exists that was never sent, and every unknown
//! request is settled by sending it again under the same id.

use crate::memory::{Fate, Known, id_of};
use crate::money::{Account, Ledger, all_orders};
use crate::trader::Trader;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tests::http::{Client, Request};
use tests::json::{at, int, list, micros_at, text};

/// Figures of one reconciliation.
#[derive(Default, Clone, Copy)]
pub struct Reconciled {
    pub rows: usize,
    /// Unanswered requests that had happened, and that had not.
    pub happened: usize,
    pub not_happened: usize,
}

/// One client's own account beside its record.
#[derive(Default)]
pub struct Books {
    pub ledger: Ledger,
    /// Rows in a final state, as first seen: they never change again.
    finals: BTreeMap<i64, Value>,
}

/// Compares everything, and settles unknown requests. `all`: also rows that were settled before.
pub fn reconcile(trader: &mut Trader, books: &mut Books, all: bool) -> Reconciled {
    let mut figures = Reconciled::default();
    let rows = order_rows(trader, books, all);
    figures.rows = rows.len();
    check_batch(trader, &rows);
    check_sweep(trader, &rows);
    settle_orders(trader, &mut figures);
    settle_cancels(trader);
    reconcile_keys(trader);
    trader.wallets.reconcile(&mut trader.client, &trader.memory.last_lines());
    // Settling placed orders and cancelled some: compare again, now that nothing is unknown.
    let rows = order_rows(trader, books, all);
    check_rows(trader, books, &rows);
    let account = Account::read(&mut trader.client, &mut books.ledger);
    account.check(&books.ledger, &mut trader.client);
    check_fills(books, &rows);
    if all {
        let mut from_the_start = Ledger::default();
        from_the_start.catch_up(&mut trader.client);
        books.ledger.catch_up(&mut trader.client);
        if from_the_start.newest_trade == books.ledger.newest_trade {
            assert_eq!(from_the_start, books.ledger, "earlier fills have changed");
        }
    }
    figures
}

/// Rows by the client's id: those not known as final, or all.
fn order_rows(trader: &mut Trader, books: &Books, all: bool) -> BTreeMap<String, Value> {
    let newest_final = books.finals.keys().next_back().copied().unwrap_or_default();
    let mut rows: Vec<Value> = Vec::new();
    if all {
        rows = all_orders(&mut trader.client, "");
    } else {
        let (mut cursor, mut more) = ("MA==".to_string(), true);
        while more && cursor != "LTE=" {
            let page = trader.client.get(&format!("/v1/orders?limit=100&cursor={cursor}")).expect(200);
            more = list(&page, "/orders").last().is_some_and(|row| int(row, "/order_id") > newest_final);
            rows.extend(list(&page, "/orders").iter().cloned());
            cursor = text(&page, "/next_cursor").to_string();
        }
        let seen: BTreeSet<i64> = rows.iter().map(|row| int(row, "/order_id")).collect();
        rows.extend(
            all_orders(&mut trader.client, "status=PENDING")
                .into_iter()
                .filter(|row| !seen.contains(&int(row, "/order_id"))),
        );
        // Older ones that were open when last seen and are final now.
        let seen: BTreeSet<i64> = rows.iter().map(|row| int(row, "/order_id")).collect();
        let missing: Vec<i64> = trader
            .memory
            .by_id
            .keys()
            .filter(|id| !seen.contains(id) && !books.finals.contains_key(id))
            .copied()
            .collect();
        for id in missing {
            rows.push(list_row(&mut trader.client, id));
        }
    }
    let mut by_name = BTreeMap::new();
    for row in rows {
        let name = at(&row, "/client_order_id")
            .as_str()
            .unwrap_or_else(|| panic!("an order that was never sent: {row}"))
            .to_string();
        assert!(trader.memory.orders.contains_key(&name), "an order that was never sent: {row}");
        let before = by_name.insert(name, row.clone());
        assert!(
            before.is_none_or(|before| before == row || text(&before, "/status") == "PENDING"),
            "two orders of one id: {row}"
        );
    }
    by_name
}

/// The row of one order as lists show it.
fn list_row(client: &mut Client, id: i64) -> Value {
    let detail = client.get(&format!("/v1/orders/{id}"));
    assert_eq!(detail.status, 200, "order {id} was acknowledged and is lost: {}", detail.lossy());
    let mut row = detail.json();
    row["quantity"] = row["requested_quantity"].clone();
    row
}

/// A batch is one command per entry, in order: the existing entries are a prefix of it.
fn check_batch(trader: &mut Trader, rows: &BTreeMap<String, Value>) {
    let names = std::mem::take(&mut trader.memory.unknown_batch);
    let there: Vec<bool> = names.iter().map(|name| rows.contains_key(name)).collect();
    // A request without a row had no effect.
    let lookups: Vec<String> = names
        .iter()
        .map(|name| trader.client.get(&format!("/v1/orders/by-client-id/{name}")))
        .map(|answer| format!("{} {}", answer.status, answer.lossy()))
        .collect();
    for (lookup, there) in lookups.iter().zip(&there) {
        assert!(lookup.starts_with(if *there { "200" } else { "404" }), "{lookup}");
    }
    // Entries refused for lack of money leave no row; then the gaps prove nothing.
    if there.windows(2).any(|two| !two[0] && two[1]) {
        let account = trader.client.get("/v1/account/balance").expect(200);
        let poor = micros_at(&account, "/balance") < 1_000_000;
        let diary = trader.memory.last_lines();
        assert!(
            poor,
            "a later entry of a batch exists without an earlier one: {names:?} {there:?} {lookups:#?}\n{diary}"
        );
    }
}

/// A cancel-all is one command: all of it or nothing.
fn check_sweep(trader: &mut Trader, rows: &BTreeMap<String, Value>) {
    let Some(open) = trader.memory.unknown_sweep.take() else { return };
    let names: Vec<String> = open.iter().map(|id| trader.memory.by_id[id].clone()).collect();
    let state = |name: &String| rows.get(name).map(|row| (text(row, "/status"), at(row, "/cancelled_reason").as_str()));
    let (mut swept, mut left) = (Vec::new(), Vec::new());
    for name in names {
        match state(&name) {
            Some(("CANCELLED", Some("cancel_all"))) => swept.push(name),
            Some(("PENDING", _)) => left.push(name),
            _ => {}
        }
    }
    assert!(swept.is_empty() || left.is_empty(), "half a cancel-all: {swept:?} cancelled, {left:?} left");
    // They are final now; otherwise the next unanswered one would seem to have cancelled them.
    for name in swept {
        trader.memory.order(&name).cancel = Known::Done;
    }
}

/// Repeats every placement without an answer.
fn settle_orders(trader: &mut Trader, figures: &mut Reconciled) {
    let unknown: Vec<(String, Value)> = trader
        .memory
        .orders
        .iter()
        .filter(|(_, sent)| matches!(sent.fate, Fate::Unknown))
        .map(|(name, sent)| (name.clone(), sent.body.clone()))
        .collect();
    for (name, body) in unknown {
        let known = trader.client.get(&format!("/v1/orders/by-client-id/{name}"));
        let in_batch = body.get("time_in_force").is_none();
        let response = if in_batch {
            trader.client.send(&Request::post("/v1/orders/batch").json(&serde_json::json!([body])))
        } else {
            trader.client.send(&Request::post("/v1/orders").json(&body))
        };
        let (id, is_replay) = match (response.status, in_batch) {
            (200, true) => {
                let body = response.json();
                (int(&body, "/results/0/order_id"), at(&body, "/results/0/is_replay").as_bool().unwrap_or(false))
            }
            (200, false) => (id_of(&response.json()), response.json()["is_replay"] == true),
            _ => (response.header("X-Svc-Order-Id").map_or(0, |id| id.parse().expect("a number")), known.status == 200),
        };
        if known.status == 200 {
            let known = known.json();
            assert_eq!(id, int(&known, "/order_id"), "{name} happened, and again: {}", response.lossy());
            assert!(is_replay, "{name} happened, but the repeat did it again: {}", response.lossy());
            figures.happened += 1;
        } else {
            known.refused(404, "ORDER_NOT_FOUND");
            assert!(!is_replay, "{name} had not happened, but is called a replay: {}", response.lossy());
            figures.not_happened += 1;
        }
        if in_batch && response.status == 200 {
            let fate = if id == 0 { None } else { Some(response.json()["results"][0].clone()) };
            match fate {
                Some(answer) => trader.memory.row(&name, id, Fate::Placed(answer)),
                None => trader.memory.order(&name).fate = Fate::Refused,
            }
        } else {
            trader.remember_placement(&name, &response);
        }
    }
}

/// Cancels without an answer: cancelled or not, and cancelled after a repeat.
fn settle_cancels(trader: &mut Trader) {
    let asked: Vec<i64> = trader
        .memory
        .by_id
        .iter()
        .filter(|(_, name)| trader.memory.orders[*name].cancel == Known::Requested)
        .map(|(id, _)| *id)
        .collect();
    for id in asked {
        let answer = trader.client.delete(&format!("/v1/orders/{id}"));
        match answer.status {
            200 => {}
            _ => _ = answer.refused(400, "ORDER_NOT_CANCELLABLE"),
        }
        let row = trader.client.get(&format!("/v1/orders/{id}")).expect(200);
        assert_ne!(text(&row, "/status"), "PENDING", "cancelled, asked twice: {row}");
        let name = trader.memory.by_id[&id].clone();
        let cancelled = at(&row, "/cancelled_reason") == "user_cancelled";
        trader.memory.order(&name).cancel = if cancelled { Known::Done } else { Known::Not };
    }
}

/// Every row against the recorded answer.
fn check_rows(trader: &mut Trader, books: &mut Books, rows: &BTreeMap<String, Value>) {
    let diary = trader.memory.last_lines();
    for (name, row) in rows {
        let (id, status) = (int(row, "/order_id"), text(row, "/status"));
        let reason = at(row, "/cancelled_reason").as_str();
        let sent = &trader.memory.orders[name];
        let fail = |what: &str| -> ! { panic!("{what}: {row}\n{diary}") };
        match &sent.fate {
            Fate::Unknown => fail("still unknown"),
            Fate::Refused => fail("it was refused, and exists"),
            Fate::Killed(order) => {
                if *order != id || status != "CANCELLED" {
                    fail("it was killed, and is not");
                }
            }
            Fate::Placed(answer) => {
                if id_of(answer) != id {
                    fail("another id than in the answer");
                }
                let said_filled = answer["status"] == "FILLED";
                if said_filled && status != "FILLED" {
                    fail("the answer says filled, the row does not");
                }
                if micros_at(row, "/filled_quantity") < micros_at(answer, "/filled_quantity") {
                    fail("less is filled than in the answer");
                }
                if said_filled {
                    for (shown, answered) in [("/fill_price", "/price"), ("/filled_at", "/filled_at")] {
                        if row.pointer(shown).is_some() && at(row, shown) != at(answer, answered) {
                            fail("filled otherwise than in the answer");
                        }
                    }
                }
            }
        }
        match (status, reason, sent.cancel) {
            ("CANCELLED", Some("user_cancelled"), Known::Not) => fail("cancelled without a request"),
            ("CANCELLED", Some("cancel_all"), Known::Not) if !sent.swept => fail("swept without a request"),
            ("CANCELLED", Some("user_cancelled" | "cancel_all" | "fok_not_filled" | "fak_no_fill"), _) => {}
            ("CANCELLED", _, _) => fail("cancelled for another reason"),
            ("PENDING" | "FILLED", _, Known::Done) => fail("the cancel was acknowledged, and is lost"),
            _ => {}
        }
        if status != "PENDING" {
            let before = books.finals.entry(id).or_insert_with(|| row.clone());
            for field in ["status", "quantity", "filled_quantity", "cancelled_reason", "side", "token_id"] {
                if before[field] != row[field] {
                    fail("a final order changed");
                }
            }
        }
    }
    // Every answered placement has its row; final ones were compared before and stay in the full comparison.
    for (id, name) in &trader.memory.by_id {
        assert!(
            rows.contains_key(name) || books.finals.contains_key(id),
            "order {id} ({name}) was acknowledged and is lost\n{diary}"
        );
    }
}

/// The filled quantity of an order is the sum of its fills.
fn check_fills(books: &Books, rows: &BTreeMap<String, Value>) {
    for row in rows.values() {
        let filled = books.ledger.by_order.get(&int(row, "/order_id")).map_or(0, |(quantity, ..)| *quantity);
        // An order may have been filled further since its row was read.
        let shown = micros_at(row, "/filled_quantity");
        let settled = text(row, "/status") != "PENDING";
        assert!(filled == shown || (!settled && filled > shown), "{filled} by its fills: {row}");
    }
}

/// Keys: acknowledged changes persist; keys without an answer are found and ended.
fn reconcile_keys(trader: &mut Trader) {
    let address = trader.client.address();
    let shown = trader.client.get("/v1/keys?limit=200").expect(200);
    let mut listed: BTreeMap<i64, Value> = list(&shown, "").iter().map(|row| (int(row, "/id"), row.clone())).collect();
    let diary = trader.memory.last_lines();
    // The first key is never changed.
    let first = *listed.keys().next().expect("the first key is listed");
    listed.remove(&first);
    let mut adopted = Vec::new();
    let mut gone = Vec::new();
    for (place, key) in trader.memory.keys.iter_mut().enumerate() {
        let Some(id) = key.id else {
            // Its creation was not answered: it exists under its name, or was never made.
            let found = listed.iter().find(|(_, row)| at(row, "/name") == &key.name).map(|(id, _)| *id);
            match found {
                Some(id) => adopted.push(id),
                None => gone.push(place),
            }
            gone.extend(found.map(|_| place));
            continue;
        };
        let row = listed.remove(&id);
        match key.revoked {
            Known::Done => assert!(row.is_none(), "key {id} was revoked, and is listed\n{diary}"),
            Known::Requested if row.is_none() => key.revoked = Known::Done,
            Known::Requested | Known::Not => {
                let row = row.unwrap_or_else(|| panic!("key {id} was acknowledged and is lost\n{diary}"));
                key.revoked = Known::Not;
                let name = text(&row, "/name");
                let expected = name == key.name || key.maybe_name.as_deref() == Some(name);
                assert!(expected, "key {id} is called {name}, not {} or {:?}\n{diary}", key.name, key.maybe_name);
                key.name = name.to_string();
                key.maybe_name = None;
                match (key.rotated, at(&row, "/expires_at").is_string()) {
                    (Known::Done, false) => panic!("key {id} was rotated, and has no end\n{diary}"),
                    (Known::Not, true) => panic!("key {id} ends without a rotation\n{diary}"),
                    (Known::Requested, true) => {
                        key.rotated = Known::Done;
                        // Its replacement is listed, with the same name, and its secret is lost.
                        let twin = listed.iter().find(|(_, row)| at(row, "/name") == name).map(|(id, _)| *id);
                        adopted.push(twin.unwrap_or_else(|| panic!("key {id} ends without a replacement\n{diary}")));
                    }
                    (Known::Requested, false) => key.rotated = Known::Not,
                    _ => {}
                }
            }
        }
        if let Some(raw) = &key.raw {
            let answer = Client::with_key(address, raw).get("/v1/me");
            match key.revoked {
                Known::Done => _ = answer.refused(401, "INVALID_KEY"),
                _ => _ = answer.expect(200),
            }
        }
    }
    for id in &adopted {
        assert!(listed.remove(id).is_some(), "a replacement was found twice\n{diary}");
        trader.client.delete(&format!("/v1/keys/{id}")).expect(200);
    }
    // Replacements of known keys come later in the list than their originals, so all are removed by now.
    assert!(listed.is_empty(), "unknown keys: {listed:?}\n{diary}");
    gone.sort_unstable();
    gone.dedup();
    for place in gone.into_iter().rev() {
        trader.memory.keys.remove(place);
    }
    // Revoked and verified before: not checked again.
    let kept = trader.memory.keys.len().saturating_sub(12);
    let mut place = 0;
    trader.memory.keys.retain(|key| {
        place += 1;
        place > kept || key.revoked != Known::Done
    });
}
