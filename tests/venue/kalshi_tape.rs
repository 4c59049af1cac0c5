//! One evening of recorded Kalshi depth, end to end.
//!
//! The recordings are not part of the project: `PAPERTAPE_VENUE_DATA` names their folder, `../shared/data/venue` is the
//! default. Without them these tests report that they were skipped; with `PAPERTAPE_REQUIRE_VENUE_DATA` set they fail.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use tests::binary::workspace;
use tests::cases::Cases;
use tests::http::Client;
use tests::json::{at, int, list, micros_at, text};
use tests::server::{Server, ServerDir};

/// Metadata of a recorded market, fetched after it had ended.
#[derive(Debug, Clone)]
struct Recorded {
    ticker: String,
    /// `Yes` or `No`.
    winner: &'static str,
    open: String,
    settled_ms: u64,
    last_price: String,
}

/// The folder of the recordings, or `None` after reporting that it is missing.
pub fn tapes() -> Option<PathBuf> {
    let root =
        env::var_os("PAPERTAPE_VENUE_DATA").map_or_else(|| workspace().join("../shared/data/venue"), PathBuf::from);
    let folder = root.join("kalshi_ws");
    if folder.is_dir() {
        return Some(folder);
    }
    let required = env::var_os("PAPERTAPE_REQUIRE_VENUE_DATA").is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!required, "recordings are required and not in {}", folder.display());
    tests::binary::skipped(&format!("no recordings in {}", folder.display()));
    None
}

/// The recorded markets of a folder that have a tape, by slug.
fn recorded(folder: &Path) -> BTreeMap<String, Recorded> {
    let tapes: Vec<String> = fs::read_dir(folder.join("events"))
        .expect("tapes")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder.join("metadata")).expect("metadata") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("metadata can be read");
        let event: Value = serde_json::from_str(&text).expect("metadata is JSON");
        for market in list(&event, "/response/markets") {
            let ticker = self::text(market, "/ticker").to_string();
            if !tapes.iter().any(|name| name.starts_with(&ticker)) {
                continue;
            }
            let winner = if self::text(market, "/result") == "yes" { "Yes" } else { "No" };
            let recorded = Recorded {
                winner,
                open: self::text(market, "/open_time").to_string(),
                settled_ms: millis(self::text(market, "/settlement_ts")),
                last_price: self::text(market, "/last_price_dollars").to_string(),
                ticker: ticker.clone(),
            };
            found.insert(ticker.to_lowercase(), recorded);
        }
    }
    assert!(!found.is_empty(), "no recorded market in {}", folder.display());
    found
}

/// `2026-08-05T04:00:04.828502Z` as unix milliseconds. (Days by the civil calendar; no leap seconds, as on the wire.)
fn millis(instant: &str) -> u64 {
    let part = |from: usize, to: usize| instant[from..to].parse::<i64>().unwrap_or_else(|_| panic!("{instant}"));
    let (year, month, day) = (part(0, 4), part(5, 7), part(8, 10));
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = y.div_euclid(400);
    let of_era = (y - era * 400) * 365 + (y - era * 400) / 4 - (y - era * 400) / 100 + (153 * m + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era - 719_468;
    let seconds = ((days * 24 + part(11, 13)) * 60 + part(14, 16)) * 60 + part(17, 19);
    let fraction: String =
        instant[19..].chars().skip(1).take_while(char::is_ascii_digit).chain("000".chars()).take(3).collect();
    (seconds * 1_000 + fraction.parse::<i64>().expect("digits")) as u64
}

#[test]
fn instants_are_read() {
    assert_eq!(millis("1970-01-01T00:00:00Z"), 0);
    assert_eq!(millis("2026-08-10T22:46:09.379425Z"), 1_786_401_969_379);
    assert_eq!(millis("2024-02-29T12:00:00.5Z"), 1_709_208_000_500);
    println!("instants: 3 cases");
}

/// A folder of its own with a few of the tapes and their metadata.
fn some_tapes(from: &Path, place: &ServerDir, tickers: &[&str]) -> PathBuf {
    let folder = place.root().join("tapes");
    for (name, wanted) in [("events", true), ("metadata", false)] {
        fs::create_dir_all(folder.join(name)).expect("a folder");
        for entry in fs::read_dir(from.join(name)).expect("recordings") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            // Tapes are named by the market, metadata by its event.
            let stem = file.trim_end_matches(".json");
            let mine =
                tickers.iter().any(|ticker| if wanted { file.starts_with(ticker) } else { ticker.starts_with(stem) });
            if mine {
                fs::copy(&path, folder.join(name).join(&file)).expect("a copy");
            }
        }
    }
    folder
}

fn start(place: &ServerDir, tape: &Path, speed: &str) -> Server {
    let tape = tape.to_str().expect("a path of ours");
    place.start_with(&["--venue", "replay", "--tape", tape, "--speed", speed], &[])
}

fn markets(client: &mut Client) -> Vec<Value> {
    let page = client.get("/v1/markets?status=all&limit=200").expect(200);
    list(&page, "").to_vec()
}

#[test]
fn a_whole_evening_resolves_as_it_was_recorded() {
    let cases = Cases::of("resolutions of an evening");
    let Some(folder) = tapes() else { return cases.one() };
    let mut place = ServerDir::new();
    place.set("venue", "kind", "\"replay\"");
    let user = place.seed(1, "enterprise", "10000").remove(0);
    let recorded = recorded(&folder);
    let server = start(&place, &folder, "max");
    let mut client = server.with_key(&user.key);
    let mut pasts: Vec<(String, Value)> = Vec::new();
    for market in recorded.values() {
        let path = format!("/v1/markets/by-slug/{}", market.ticker.to_lowercase());
        let detail = tests::eventually(&path, || {
            let answer = client.get(&path);
            if answer.status == 404 {
                return None;
            }
            Some(answer.expect(200)).filter(|detail| at(detail, "/resolved_outcome").is_string())
        });
        assert_eq!(text(&detail, "/resolved_outcome"), market.winner, "{}", market.ticker);
        let winners: Vec<bool> = list(&detail, "/tokens").iter().map(|token| token["winner"] == true).collect();
        assert_eq!(winners, [market.winner == "Yes", market.winner == "No"], "{}", market.ticker);
        assert_eq!((text(&detail, "/category"), at(&detail, "/closed")), ("finance", &json!(true)));
        client
            .get(&format!("/v1/book?token_id={}", text(&detail, "/clob_token_ids/0")))
            .refused(404, "BOOK_UNAVAILABLE");
        let token = text(&detail, "/clob_token_ids/0");
        pasts.push((format!("/v1/prices-history?market={token}&interval=max&format=ohlcv"), Value::Null));
        cases.one();
    }
    // Prices are published shortly after the books.
    for (path, past) in &mut pasts {
        *past = tests::eventually(path, || Some(client.get(path).expect(200)).filter(|past| list(past, "").len() > 10));
    }
    // A resolved market stays resolved, and the tape is not replayed.
    drop(server);
    let server = start(&place, &folder, "max");
    let mut client = server.with_key(&user.key);
    let resolved = markets(&mut client).iter().filter(|market| at(market, "/closed") == true).count();
    assert!(resolved >= recorded.len(), "{resolved} of {}", recorded.len());
    // Nor is the past: known facts are not repeated.
    for (path, past) in &pasts {
        let again = client.get(path).expect(200);
        let again = list(&again, "");
        assert!(list(past, "").iter().all(|candle| again.contains(candle)), "{past} in {again:?}");
    }
    cases.add(1 + pasts.len());
}

/// One view of a market.
struct Look {
    detail: Value,
    /// Newest venue time of any book afterwards.
    venue_ms: u64,
}

/// Every public view of a market, with the clock of the recording read after it.
fn look(client: &mut Client, slug: &str, all_tokens: &[String]) -> Option<Look> {
    let answer = client.get(&format!("/v1/markets/by-slug/{slug}"));
    if answer.status == 404 {
        return None;
    }
    let detail = answer.expect(200);
    let mut venue_ms = 0;
    for token in all_tokens {
        let book = client.get(&format!("/v1/book?token_id={token}"));
        if book.status == 200 {
            venue_ms = venue_ms.max(text(&book.json(), "/timestamp").parse().expect("milliseconds"));
        }
    }
    Some(Look { detail, venue_ms })
}

/// No answer about an undecided market reveals its result.
fn assert_undecided(look: &Look, market: &Recorded) {
    let detail = &look.detail;
    assert_eq!(at(detail, "/resolved_outcome"), &Value::Null, "{detail}");
    for token in list(detail, "/tokens") {
        assert_ne!(token["winner"], json!(true), "{detail}");
    }
    let text = detail.to_string().to_lowercase();
    for word in ["settlement_value", "\"result\"", "finalized", "expiration_value", "settlement_ts"] {
        assert!(!text.contains(word), "{word} in {detail}");
    }
    // Figures in the metadata from the end of the day.
    for field in ["/volume_24h", "/volume_total"] {
        assert_eq!(at(detail, field), &Value::Null, "{field} of {}", market.ticker);
    }
}

#[test]
fn three_markets_are_traded_killed_resumed_and_paid_out() {
    let cases = Cases::of("a traded tape");
    let Some(folder) = tapes() else { return cases.one() };
    let mut place = ServerDir::new();
    place.set("venue", "kind", "\"replay\"");
    let user = place.seed(1, "enterprise", "10000").remove(0);
    let all = recorded(&folder);
    let mut by_opening: Vec<&Recorded> = all.values().collect();
    by_opening.sort_by(|a, b| a.open.cmp(&b.open));
    let chosen: Vec<Recorded> = by_opening.into_iter().take(3).cloned().collect();
    let tickers: Vec<&str> = chosen.iter().map(|market| market.ticker.as_str()).collect();
    let tape = some_tapes(&folder, &place, &tickers);
    let speed = "240";
    let mut server = start(&place, &tape, speed);
    let mut client = server.with_key(&user.key);

    // All are listed from the start, without facts of their end.
    let listed = markets(&mut client);
    assert_eq!(listed.len(), 3, "{listed:?}");
    let mut tokens = Vec::new();
    for market in &listed {
        tokens.extend(list(market, "/clob_token_ids").iter().map(|token| token.as_str().expect("a token").to_string()));
    }
    for market in &chosen {
        let look = look(&mut client, &market.ticker.to_lowercase(), &tokens).expect("it is listed");
        assert_undecided(&look, market);
        if look.venue_ms < millis(&market.open) {
            assert_ne!(at(&look.detail, "/last_price").as_str(), Some(market.last_price.as_str()), "{}", market.ticker);
        }
        cases.one();
    }

    // Trade each as it comes, watch all, kill twice on the way.
    let mut paid = BTreeMap::new();
    let mut held: BTreeMap<String, (String, i64)> = BTreeMap::new();
    let mut kills = 0;
    tests::eventually("all three to resolve", || {
        for market in &chosen {
            let slug = market.ticker.to_lowercase();
            let seen = look(&mut client, &slug, &tokens).expect("a listed market stays listed");
            if at(&seen.detail, "/resolved_outcome").is_null() {
                assert_undecided(&seen, market);
                cases.one();
            } else if !paid.contains_key(&slug) {
                // Not early: the clock of the recording, read later, may not be before the settlement.
                assert!(seen.venue_ms == 0 || seen.venue_ms + 1_000 >= market.settled_ms, "{slug} resolved too early");
                assert_eq!(text(&seen.detail, "/resolved_outcome"), market.winner, "{slug}");
                paid.insert(slug.clone(), market.winner);
            }
            if !held.contains_key(&slug) {
                let token = text(&seen.detail, "/clob_token_ids/0");
                let order = json!({"token_id": token, "side": "BUY", "order_type": "market", "price": "0.99", "quantity": "10", "time_in_force": "FAK"});
                let answer = client.post("/v1/orders", &order);
                if answer.status == 200 {
                    let filled = micros_at(&answer.json(), "/filled_quantity");
                    let rest = json!({"token_id": token, "side": "BUY", "order_type": "limit", "price": "0.01", "quantity": "10"});
                    let resting = client.post("/v1/orders", &rest);
                    println!("{slug}: bought {filled}, resting {}", resting.status);
                    held.insert(slug.clone(), (token.to_string(), filled));
                    cases.one();
                }
            }
        }
        // In the middle of the second market, and again of the third.
        if held.len() > kills + 1 {
            kills += 1;
            let before = client.get("/v1/account/positions").expect(200);
            server.kill();
            server = start(&place, &tape, speed);
            client = server.with_key(&user.key);
            let after = client.get("/v1/account/positions").expect(200);
            for row in list(&before, "") {
                let again = list(&after, "").iter().find(|other| int(other, "/id") == int(row, "/id"));
                let again = again.unwrap_or_else(|| panic!("a position is lost: {row}"));
                assert_eq!(at(again, "/avg_entry_price"), at(row, "/avg_entry_price"));
            }
            cases.one();
        }
        (paid.len() == 3).then_some(())
    });
    assert!(!held.is_empty() && kills > 0, "something was traded and killed: {held:?}");

    // Every share was paid by its recorded result; nothing is reserved any more.
    let history = client.get("/v1/account/history?limit=200").expect(200);
    let mut expected = 10_000_000_000;
    let mut shares: BTreeMap<String, i64> = BTreeMap::new();
    for fill in list(&history, "") {
        expected -= micros_at(fill, "/notional") + micros_at(fill, "/fee");
        *shares.entry(text(fill, "/token_id").to_string()).or_default() += micros_at(fill, "/quantity");
    }
    for (slug, (token, _)) in &held {
        if paid[slug] == "Yes" {
            expected += shares.get(token).copied().unwrap_or_default();
        }
    }
    tests::eventually("the payouts", || {
        let account = client.get("/v1/account/balance").expect(200);
        (micros_at(&account, "/balance") == expected && text(&account, "/reserved") == "0.00").then_some(())
    });
    let open = client.get("/v1/account/positions?status=OPEN").expect(200);
    assert_eq!(at(&open, ""), &json!([]));
    let left = client.get("/v1/orders?status=PENDING").expect(200);
    assert_eq!(at(&left, "/orders"), &json!([]));
    server.kill();
    let from_nothing = tests::binary::run_well([
        std::ffi::OsString::from("log"),
        "digest".into(),
        "--from-nothing".into(),
        place.data().into(),
    ]);
    assert!(from_nothing.contains(&place.digest()), "{from_nothing}");
    cases.one();
}

#[test]
fn no_answer_depends_on_the_result_before_it_is_known() {
    let cases = Cases::of("two ends of one tape");
    let Some(folder) = tapes() else { return cases.one() };
    let market = recorded(&folder).into_values().max_by(|a, b| a.open.cmp(&b.open)).expect("a market");
    // The same evening twice; once all facts from after the end say the opposite.
    let shown: Vec<Vec<(String, Value)>> = [false, true]
        .into_iter()
        .map(|turned| {
            let mut place = ServerDir::new();
            place.set("venue", "kind", "\"replay\"");
            let user = place.seed(1, "enterprise", "10000").remove(0);
            let tape = some_tapes(&folder, &place, &[&market.ticker]);
            if turned {
                turn_results(&tape);
            }
            let server = start(&place, &tape, "1");
            let mut client = server.with_key(&user.key);
            let slug = market.ticker.to_lowercase();
            let detail = client.get(&format!("/v1/markets/by-slug/{slug}")).expect(200);
            let condition = text(&detail, "/condition_id").to_string();
            let token = text(&detail, "/clob_token_ids/0").to_string();
            let paths = [
                "/v1/markets?status=all".to_string(),
                format!("/v1/markets/{condition}"),
                format!("/v1/markets/{condition}?include_book=true"),
                format!("/v1/markets-by-token/{token}"),
                format!("/v1/tick-size?token_id={token}"),
                format!("/v1/fee-rate?token_id={token}"),
                format!("/v1/neg-risk?token_id={token}"),
            ];
            paths
                .into_iter()
                .map(|path| {
                    let shown = client.get(&path).expect(200);
                    (path, timeless(shown))
                })
                .collect()
        })
        .collect();
    for ((path, one), (_, other)) in shown[0].iter().zip(&shown[1]) {
        assert_eq!(one, other, "{path} reveals the end");
        cases.one();
    }
}

/// Metadata with the opposite result, and other figures from the end of the day.
fn turn_results(tape: &Path) {
    for entry in fs::read_dir(tape.join("metadata")).expect("metadata") {
        let path = entry.expect("an entry").path();
        let mut event: Value = serde_json::from_str(&fs::read_to_string(&path).expect("readable")).expect("JSON");
        for market in event.pointer_mut("/response/markets").and_then(Value::as_array_mut).expect("markets") {
            let yes = market["result"] == "yes";
            market["result"] = json!(if yes { "no" } else { "yes" });
            market["settlement_value_dollars"] = json!(if yes { "0.0000" } else { "1.0000" });
            for field in ["last_price_dollars", "yes_bid_dollars", "no_bid_dollars", "previous_price_dollars"] {
                market[field] = json!("0.1234");
            }
            for field in ["volume_fp", "volume_24h_fp", "open_interest_fp"] {
                market[field] = json!("77.00");
            }
            market["expiration_value"] = json!("1.00");
            market["status"] = json!("closed");
        }
        fs::write(&path, event.to_string()).expect("writable");
    }
}

/// Without values that change with the clock: current books and prices.
fn timeless(mut shown: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(fields) => {
                for moving in ["live_price", "order_book", "last_price", "updated_at", "synced_at", "tokens"] {
                    fields.remove(moving);
                }
                fields.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    strip(&mut shown);
    shown
}
