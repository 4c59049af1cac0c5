//! The live adapter of Kalshi against a stand-in with its wire format: the real process lists, follows, trades, loses
//! and finds markets, and pays.

use crate::fake_kalshi::{Fake, Fault, KEY_ID, iso, key_file, now_s};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{at, list, micros, micros_at, text};
use tests::server::{Server, ServerDir, User};

pub const RAIN: &str = "KXRAIN-26NOV-T3";

/// A server connected to a stand-in, with a user. The server ends first.
pub struct Scene {
    pub server: Server,
    pub user: User,
    pub place: ServerDir,
    pub fake: Fake,
}

impl Scene {
    pub fn client(&self) -> Client {
        self.server.with_key(&self.user.key)
    }

    pub fn start(fake: Fake, signs: bool, settings: impl FnOnce(&mut ServerDir)) -> Scene {
        let mut place = place(&fake, signs);
        settings(&mut place);
        let user = place.seed(1, "enterprise", "10000").remove(0);
        let server =
            place.spawn_with(&[], &[]).listening().unwrap_or_else(|output| panic!("no server; its output:\n{output}"));
        Scene { server, user, place, fake }
    }
}

/// Settings for that stand-in, with short timeouts.
pub fn place(fake: &Fake, signs: bool) -> ServerDir {
    let mut place = ServerDir::new();
    place.set("venue", "kind", "\"kalshi\"");
    place.set("venue.kalshi", "api", &format!("{:?}", fake.api()));
    place.set("venue.kalshi", "socket", &format!("{:?}", fake.socket()));
    if signs {
        let file = key_file(place.root());
        place.set("venue.kalshi", "key_id", &format!("{KEY_ID:?}"));
        place.set("venue.kalshi", "private_key_file", &format!("{file:?}"));
    }
    for (name, ms) in [
        ("silent_after_ms", "1200"),
        ("reconnect_first_ms", "20"),
        ("reconnect_max_ms", "200"),
        ("retry_first_ms", "50"),
        ("newest_every_ms", "700"),
        ("standing_every_ms", "500"),
        ("traded_every_ms", "1500"),
        ("outage_after_ms", "60000"),
    ] {
        place.set("venue", name, ms);
    }
    place
}

/// One event with one market, and a book.
pub fn rain() -> Fake {
    let fake = Fake::start();
    fake.event("KXRAIN-26NOV", "Rain in Lisbon", Some("Climate and Weather"));
    fake.market("KXRAIN-26NOV", RAIN, json!({}));
    fake.book(RAIN, &[(4_000, 50_000), (3_900, 1_250)], &[(5_500, 30_000), (5_000, 700)]);
    fake
}

fn sha(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// A big-endian number in decimal digits.
fn decimal(bytes: &[u8]) -> String {
    let mut digits = vec![0_u32];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            let value = *digit * 256 + carry;
            (*digit, carry) = (value % 10, value / 10);
        }
        while carry > 0 {
            digits.push(carry % 10);
            carry /= 10;
        }
    }
    digits.iter().rev().map(ToString::to_string).collect()
}

pub fn tokens(ticker: &str) -> [String; 2] {
    ["yes", "no"].map(|side| decimal(&sha(&format!("kalshi:{ticker}:{side}"))))
}

/// The market, once it is listed.
pub fn listed(client: &mut Client, ticker: &str) -> Value {
    let path = format!("/v1/markets/by-slug/{}", ticker.to_lowercase());
    eventually(&path, || {
        let answer = client.get(&path);
        (answer.status == 200).then(|| answer.json())
    })
}

type Bids = [BTreeMap<i64, i64>; 2];

/// Both tokens' books in the stand-in's units, and whether they are fresh.
pub fn shown(client: &mut Client, ticker: &str) -> Option<([Bids; 2], bool)> {
    let mut fresh = true;
    let mut books = Vec::new();
    for token in tokens(ticker) {
        let answer = client.get(&format!("/v1/book?token_id={token}"));
        if answer.status != 200 {
            return None;
        }
        let book = answer.json();
        fresh &= at(&book, "/stale") == false;
        let side = |name: &str| -> BTreeMap<i64, i64> {
            let level = |level: &Value| (micros(text(level, "/price")) / 100, micros(text(level, "/size")) / 10_000);
            list(&book, name).iter().map(level).collect()
        };
        books.push([side("/bids"), side("/asks")]);
    }
    Some((books.try_into().expect("two tokens"), fresh))
}

fn mirrored(bids: &BTreeMap<i64, i64>) -> BTreeMap<i64, i64> {
    bids.iter().map(|(price, size)| (10_000 - price, *size)).collect()
}

/// The server's expected view of these bids.
pub fn expected(bids: &Bids) -> [Bids; 2] {
    let [yes, no] = bids.clone();
    [[yes.clone(), mirrored(&no)], [no, mirrored(&yes)]]
}

/// Waits until the server shows the venue's book, and as fresh.
pub fn right(client: &mut Client, fake: &Fake, ticker: &str, when: &str) {
    let mut last = None;
    let start = std::time::Instant::now();
    while start.elapsed() < tests::PATIENCE {
        last = shown(client, ticker);
        if last.as_ref().is_some_and(|(books, fresh)| *fresh && *books == expected(&fake.bids(ticker))) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{when}: {ticker} shows {last:?} instead of {:?}", expected(&fake.bids(ticker)));
}

pub fn buy(client: &mut Client, ticker: &str, quantity: &str) -> Value {
    let order = json!({"token_id": tokens(ticker)[0], "side": "BUY", "order_type": "market", "price": "0.99",
        "quantity": quantity, "time_in_force": "FAK"});
    client.post("/v1/orders", &order).expect(200)
}

/// Listed, and with its book.
pub fn right_after_listing(client: &mut Client, fake: &Fake, ticker: &str) {
    listed(client, ticker);
    right(client, fake, ticker, "at first");
}

#[test]
fn markets_are_listed_followed_and_traded() {
    let cases = Cases::of("a live market");
    let fake = rain();
    fake.pages_of(1);
    fake.event("KXBTC-26NOV", "Bitcoin above", None);
    fake.series("KXBTC", "Crypto");
    let tapered = json!({"price_ranges": [{"start": "0", "end": "0.1", "step": "0.001"},
        {"start": "0.1", "end": "0.9", "step": "0.01"}, {"start": "0.9", "end": "1", "step": "0.001"}]});
    fake.market("KXBTC-26NOV", "KXBTC-26NOV-T9", tapered);
    fake.book("KXBTC-26NOV-T9", &[(4_000, 100)], &[(5_000, 100)]);
    fake.event("KXTEMP-26NOV", "Degrees", Some("Climate and Weather"));
    fake.market("KXTEMP-26NOV", "KXTEMP-26NOV-S", json!({"market_type": "scalar"}));
    fake.market("KXTEMP-26NOV", "KXTEMP-26NOV-U", json!({"status": "initialized"}));
    let scene = Scene::start(fake, true, |_| {});
    let (fake, mut client) = (&scene.fake, scene.client());

    let market = listed(&mut client, RAIN);
    let hex: String = sha(&format!("kalshi:{RAIN}")).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text(&market, "/condition_id"), format!("0x{hex}"));
    assert_eq!(at(&market, "/clob_token_ids"), &json!(tokens(RAIN)));
    assert_eq!(text(&market, "/question"), "Rain in Lisbon: More than 3");
    assert_eq!((text(&market, "/category"), text(&market, "/slug")), ("weather", "kxrain-26nov-t3"));
    let other = listed(&mut client, "KXBTC-26NOV-T9");
    assert_eq!((text(&other, "/category"), text(&other, "/question")), ("crypto", "Bitcoin above: More than 3"));
    listed(&mut client, "KXTEMP-26NOV-U");
    client.get("/v1/markets/by-slug/kxtemp-26nov-s").expect(404);
    cases.add(4);

    right(&mut client, fake, RAIN, "at first");
    right(&mut client, fake, "KXBTC-26NOV-T9", "at first");
    let tick = format!("/v1/tick-size?token_id={}", tokens("KXBTC-26NOV-T9")[0]);
    eventually("the tick of the middle", || {
        (*at(&client.get(&tick).expect(200), "/minimum_tick_size") == 0.01).then_some(())
    });
    for (side, price, change) in [(0, 4_100, 2_000), (1, 5_500, -30_000), (1, 5_600, 12_345), (0, 3_900, -1_250)] {
        fake.change(RAIN, side, price, change);
        right(&mut client, fake, RAIN, "behind a change");
        cases.one();
    }
    let order = buy(&mut client, RAIN, "10");
    assert_eq!((micros_at(&order, "/filled_quantity"), micros_at(&order, "/price")), (10_000_000, 440_000), "{order}");
    fake.trade(RAIN, 4_300, 500);
    let traded = format!("/v1/last-trade-price?token_id={}", tokens(RAIN)[0]);
    eventually("the trade", || (text(&client.get(&traded).expect(200), "/price") == "0.43").then_some(()));
    // Another grid, by REST alone.
    fake.set(RAIN, &json!({"price_ranges": [{"start": "0", "end": "1", "step": "0.001"}]}));
    let tick = format!("/v1/tick-size?token_id={}", tokens(RAIN)[0]);
    eventually("the finer tick", || (*at(&client.get(&tick).expect(200), "/minimum_tick_size") == 0.001).then_some(()));
    cases.add(4);
}

#[test]
fn without_credentials_books_come_by_rest_and_age() {
    let cases = Cases::of("books by REST");
    let fake = rain();
    fake.market("KXRAIN-26NOV", "KXRAIN-26NOV-T4", json!({}));
    fake.book("KXRAIN-26NOV-T4", &[(2_000, 100)], &[]);
    let begun = std::time::Instant::now();
    let scene = Scene::start(fake, false, |place| {
        place.set("book", "stale_after_s", "5");
        // Nothing else takes from the budget.
        for name in ["newest_every_ms", "standing_every_ms", "traded_every_ms"] {
            place.set("venue", name, "60000");
        }
    });
    let (fake, mut client) = (&scene.fake, scene.client());
    for ticker in [RAIN, "KXRAIN-26NOV-T4"] {
        listed(&mut client, ticker);
        right(&mut client, fake, ticker, "requested");
    }
    fake.change(RAIN, 0, 4_000, -1_000);
    right(&mut client, fake, RAIN, "requested again");
    let order = buy(&mut client, RAIN, "10");
    assert_eq!(micros_at(&order, "/filled_quantity"), 10_000_000, "{order}");
    cases.add(4);
    // One of them is not answered any more: answers about the other do not refresh it.
    fake.fault("T4/orderbook", usize::MAX, Fault::Status(500));
    let stale = |client: &mut Client, ticker: &str| shown(client, ticker).is_some_and(|(_, fresh)| !fresh);
    eventually("one stale book beside a fresh one", || {
        (stale(&mut client, "KXRAIN-26NOV-T4") && !stale(&mut client, RAIN)).then_some(())
    });
    cases.one();
    assert_eq!(fake.sockets(), (0, 0, 0));
    // Four calls a second, counted over ten seconds; a slow machine makes fewer.
    let calls = fake.call_times();
    for (number, call) in calls.iter().enumerate() {
        let allowed = 40.0 * (1.0 + call.duration_since(begun).as_secs_f64() / 10.0);
        assert!(((number + 1) as f64) <= allowed, "call {number} of {} came too early", calls.len());
    }
    assert!(calls.len() > 10, "{}", calls.len());
    cases.add(calls.len());
}

#[test]
fn no_more_markets_are_followed_than_configured() {
    let cases = Cases::of("a bound of markets");
    let fake = rain();
    for number in 0..4 {
        let ticker = format!("KXRAIN-26NOV-U{number}");
        fake.market("KXRAIN-26NOV", &ticker, json!({}));
        fake.book(&ticker, &[(4_000, 100)], &[(5_000, 100)]);
    }
    // A channel that the venue does not have is skipped.
    fake.without_channel("trade");
    let scene = Scene::start(fake, true, |place| {
        place.set("venue.kalshi", "markets_max", "2");
    });
    let (fake, mut client) = (&scene.fake, scene.client());
    let all: Vec<String> = (0..4).map(|number| format!("KXRAIN-26NOV-U{number}")).chain([RAIN.to_owned()]).collect();
    all.iter().for_each(|ticker| drop(listed(&mut client, ticker)));
    let followed = || all.iter().filter(|ticker| fake.is_followed(ticker)).cloned().collect::<Vec<_>>();
    let first = eventually("two markets", || Some(followed()).filter(|followed| followed.len() == 2));
    first.iter().for_each(|ticker| right(&mut client, fake, ticker, "followed"));
    assert_eq!(followed(), first);
    // When one is settled, another takes its place.
    fake.set(&first[0], &json!({"status": "finalized", "result": "yes", "settlement_value_dollars": "1.0000"}));
    fake.lifecycle(&first[0], "settled", &json!({"result": "yes"}));
    let then =
        eventually("another market", || Some(followed()).filter(|then| then.len() == 2 && !then.contains(&first[0])));
    then.iter().for_each(|ticker| right(&mut client, fake, ticker, "followed then"));
    cases.add(4);
}

#[test]
fn new_markets_are_found_between_two_crawls() {
    let cases = Cases::of("new markets");
    let scene = Scene::start(rain(), true, |_| {});
    let (fake, mut client) = (&scene.fake, scene.client());
    right_after_listing(&mut client, fake, RAIN);
    // Closing soon, in an event that the list of events will show only at the next crawl.
    fake.event("KXGOLD15M-26NOV", "Gold in 15 minutes", Some("Commodities"));
    fake.hide("KXGOLD15M-26NOV");
    fake.market("KXGOLD15M-26NOV", "KXGOLD15M-26NOV-00", json!({"close_time": iso(now_s() + 900)}));
    fake.book("KXGOLD15M-26NOV-00", &[(4_000, 100)], &[(5_000, 100)]);
    let gold = listed(&mut client, "KXGOLD15M-26NOV-00");
    assert_eq!((text(&gold, "/category"), text(&gold, "/question")), ("finance", "Gold in 15 minutes: More than 3"));
    right(&mut client, fake, "KXGOLD15M-26NOV-00", "found");
    // Announced on the socket, closing late.
    fake.event("KXSNOW-27", "Snow in Oslo", None);
    fake.series("KXSNOW", "Climate and Weather");
    fake.hide("KXSNOW-27");
    fake.market("KXSNOW-27", "KXSNOW-27-T1", json!({}));
    fake.book("KXSNOW-27-T1", &[(4_000, 100)], &[(5_000, 100)]);
    let metadata = json!({"event_ticker": "KXSNOW-27", "title": "Snow"});
    fake.lifecycle("KXSNOW-27-T1", "created", &json!({"additional_metadata": metadata}));
    // Combinations of other markets are not requested.
    let combination = json!({"additional_metadata": {"event_ticker": "KXMVESPORTS-1", "title": "Both"}});
    fake.lifecycle("KXMVESPORTS-1-A", "created", &combination);
    let snow = listed(&mut client, "KXSNOW-27-T1");
    assert_eq!((text(&snow, "/category"), text(&snow, "/question")), ("weather", "Snow in Oslo: More than 3"));
    right(&mut client, fake, "KXSNOW-27-T1", "announced");
    assert_eq!((fake.calls("/series/KXSNOW"), fake.calls("KXMVE")), (1, 0));
    // Of a known event: with its own grid.
    let finer = json!({"price_ranges": [{"start": "0", "end": "1", "step": "0.001"}]});
    fake.market("KXSNOW-27", "KXSNOW-27-T2", finer);
    fake.book("KXSNOW-27-T2", &[(4_005, 100)], &[(5_000, 100)]);
    let metadata = json!({"event_ticker": "KXSNOW-27", "title": "Snow", "yes_sub_title": "More than 3"});
    fake.lifecycle("KXSNOW-27-T2", "created", &json!({"additional_metadata": metadata}));
    let snow = listed(&mut client, "KXSNOW-27-T2");
    assert_eq!(text(&snow, "/question"), "Snow in Oslo: More than 3");
    right(&mut client, fake, "KXSNOW-27-T2", "announced");
    let tick = format!("/v1/tick-size?token_id={}", tokens("KXSNOW-27-T2")[0]);
    eventually("its tick", || (*at(&client.get(&tick).expect(200), "/minimum_tick_size") == 0.001).then_some(()));
    cases.add(3);
}

#[test]
fn settlement_pays_what_is_final() {
    let cases = Cases::of("settlements");
    let fake = rain();
    let tickers = ["YES", "NO", "HALF", "PART", "TURNED", "EARLY"].map(|name| format!("KXRAIN-26NOV-{name}"));
    for ticker in &tickers {
        fake.market("KXRAIN-26NOV", ticker, json!({}));
        fake.book(ticker, &[(4_000, 10_000)], &[(5_000, 10_000)]);
    }
    let mut scene = Scene::start(fake, true, |_| {});
    let mut client = scene.client();
    let fake = &scene.fake;
    for ticker in &tickers {
        right_after_listing(&mut client, fake, ticker);
        assert_eq!(micros_at(&buy(&mut client, ticker, "10"), "/filled_quantity"), 10_000_000);
    }
    let balance = |client: &mut Client| micros_at(&client.get("/v1/account/balance").expect(200), "/balance");
    let before = balance(&mut client);
    let [yes, no, half, part, turned, early] = &tickers;
    let row = |status: &str, result: &str, value: &str| json!({"status": status, "result": result, "settlement_value_dollars": value, "close_time": iso(now_s() - 5)});
    // By the socket alone; the row follows.
    fake.lifecycle(yes, "determined", &json!({"result": "yes"}));
    fake.lifecycle(yes, "settled", &json!({}));
    fake.lifecycle(no, "determined", &json!({"result": "no"}));
    fake.lifecycle(no, "settled", &json!({"result": "no"}));
    fake.set(yes, &row("finalized", "yes", "1.0000"));
    fake.set(no, &row("finalized", "no", "0.0000"));
    // By REST alone.
    fake.set(half, &row("finalized", "scalar", "0.5000"));
    fake.set(part, &row("finalized", "scalar", "0.3000"));
    fake.set(early, &row("finalized", "yes", "1.0000"));
    // Announced, disputed, and final with another result.
    fake.lifecycle(turned, "determined", &json!({"result": "yes"}));
    fake.set(turned, &row("disputed", "yes", "1.0000"));
    let detail = |client: &mut Client, ticker: &str| {
        client.get(&format!("/v1/markets/by-slug/{}", ticker.to_lowercase())).expect(200)
    };
    for (ticker, outcome) in [(yes, "Yes"), (no, "No"), (early, "Yes")] {
        eventually(ticker, || (at(&detail(&mut client, ticker), "/resolved_outcome") == outcome).then_some(()));
        cases.one();
    }
    eventually("what was paid", || (balance(&mut client) == before + 25_000_000).then_some(()));
    for ticker in [part, turned] {
        eventually(ticker, || (at(&detail(&mut client, ticker), "/closed") == true).then_some(()));
        assert!(at(&detail(&mut client, ticker), "/resolved_outcome").is_null(), "{ticker}");
        cases.one();
    }
    fake.set(turned, &row("finalized", "no", "0.0000"));
    eventually("the other end", || (at(&detail(&mut client, turned), "/resolved_outcome") == "No").then_some(()));
    // A final result stays, here and after a restart; nothing is paid twice.
    fake.set(yes, &row("finalized", "no", "0.0000"));
    scene.server.kill();
    let fake = &scene.fake;
    fake.set(part, &row("finalized", "yes", "1.0000"));
    let server = scene.place.start();
    let mut client = server.with_key(&scene.user.key);
    eventually("the market left open", || (at(&detail(&mut client, part), "/resolved_outcome") == "Yes").then_some(()));
    assert_eq!(at(&detail(&mut client, yes), "/resolved_outcome"), "Yes");
    eventually("its payout", || (balance(&mut client) == before + 35_000_000).then_some(()));
    let _ = fake;
    cases.add(4);
}
