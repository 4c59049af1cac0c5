//! The rehearsal of the venue's checks (gateway/docs/rehearsal.md), from a login by an address to the report of the doctor:
//! what `warn` shows, what `enforce` refuses, what administrators declare, and what profiles change.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use std::ffi::OsString;
use std::fs;
use std::process::Output;
use tests::address::Account;
use tests::binary::run;
use tests::cases::Cases;
use tests::eventually;
use tests::exposition::scrape;
use tests::http::{Client, Request, Response};
use tests::json::{at, list, text};
use tests::server::ServerDir;
use tests::tape::Market;
use tests::token::unix_now;
use tests::world::World;

/// A venue client with the key of its address.
struct Trader {
    account: Account,
    client: Client,
    key: String,
    secret: String,
    passphrase: String,
    salt: u64,
}

impl Trader {
    fn log_in(world: &World, number: u64) -> Trader {
        let account = Account::new(number);
        let signed = account.sign(137, unix_now(), 0);
        let request = Request::new("POST", "/v1/auth/api-key");
        let request = signed.headers().iter().fold(request, |request, (name, value)| request.header(name, value));
        let made = world.public().send(&request).expect(200);
        let part = |path: &str| text(&made, path).to_owned();
        let (key, secret, passphrase) = (part("/apiKey"), part("/secret"), part("/passphrase"));
        Trader { account, client: world.public(), key, secret, passphrase, salt: 479_249_096_354 }
    }

    /// BUY of these amounts, signed for the market.
    fn order(&mut self, market: &Market, maker: &str, taker: &str) -> Value {
        self.salt += 1;
        let mut order = json!({
            "salt": self.salt,
            "tokenId": market.yes(),
            "makerAmount": maker,
            "takerAmount": taker,
            "side": "BUY",
            "expiration": "0",
            "signatureType": 0,
            "timestamp": (unix_now() * 1_000).to_string(),
            "metadata": format!("0x{}", "0".repeat(64)),
            "builder": format!("0x{}", "0".repeat(64)),
        });
        self.account.sign_order(&mut order, market.neg_risk, 137);
        json!({"order": order, "owner": self.key, "orderType": "GTC", "deferExec": false, "postOnly": false})
    }

    /// Sends a request that the client's path, without the version, and the secret sign.
    fn send(&mut self, path: &str, body: &Value) -> Response {
        let secret = self.secret.clone();
        self.send_with(path, body, &secret, unix_now())
    }

    fn send_with(&mut self, path: &str, body: &Value, secret: &str, at: u64) -> Response {
        let secret = URL_SAFE.decode(secret).expect("base64");
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).expect("any length");
        mac.update(format!("{at}POST{path}{body}").as_bytes());
        let signature = URL_SAFE.encode(mac.finalize().into_bytes());
        let request = Request::post(&format!("/v1{path}"))
            .header("POLY_ADDRESS", &self.account.address())
            .header("POLY_SIGNATURE", &signature)
            .header("POLY_TIMESTAMP", &at.to_string())
            .header("POLY_API_KEY", &self.key)
            .header("POLY_PASSPHRASE", &self.passphrase)
            .json(body);
        self.client.send(&request)
    }

    /// Its orders in the list of the venue.
    fn orders(&mut self) -> usize {
        let request = Request::get("/v1/data/orders?status=ALL").header("POLY_API_KEY", &self.key);
        list(&self.client.send(&request).expect(200), "/data").len()
    }
}

fn rehearsed(mode: &str, settings: impl FnOnce(&mut ServerDir)) -> World {
    World::start_with(0, |place| {
        place.set("venue", "rehearse", &format!("{mode:?}")).set("admin", "listen", "\"127.0.0.1:0\"");
        settings(place);
    })
}

/// `papertape doctor --rehearse --json` with more arguments.
fn doctor(world: &World, more: &[&str]) -> Output {
    let mut args: Vec<OsString> =
        ["doctor", "--rehearse", "--json", "--data-dir"].into_iter().map(OsString::from).collect();
    args.push(world.place.data().into());
    args.extend(more.iter().map(OsString::from));
    run(args)
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Count and class of a rule in a report.
fn finding<'a>(report: &'a Value, rule: &str) -> Option<&'a Value> {
    list(report, "/findings").iter().find(|row| text(row, "/rule") == rule)
}

/// Ends the server, which journals what waits for the next minute.
fn end(world: &mut World) {
    world.server.terminate();
    eventually("the server ends", || world.server.is_over().then_some(()));
}

/// Rule, code and sentence of a refusal.
type Refusal = (&'static str, &'static str, &'static str);

/// Broken orders with their rules. In this order: the first breaks nothing.
fn broken(trader: &mut Trader, market: &Market) -> Vec<(Value, Option<Refusal>)> {
    let sound = trader.order(market, "3700000", "10000000");
    let mut owner = trader.order(market, "3700000", "10000000");
    owner["owner"] = json!("svc_live_of_another");
    let mut chain = trader.order(market, "3700000", "10000000");
    trader.account.sign_order(&mut chain["order"], market.neg_risk, 80_002);
    let mut first = trader.order(market, "3700000", "10000000");
    let fields = first["order"].as_object_mut().expect("an object");
    fields.remove("timestamp");
    fields.insert("nonce".to_owned(), json!("0"));
    fields.insert("feeRateBps".to_owned(), json!("1000"));
    let decimals = trader.order(market, "3700370", "10001000");
    let tick = trader.order(market, "3750000", "10000000");
    let small = trader.order(market, "370000", "1000000");
    let mut budget = trader.order(market, "500000", "1190400");
    budget["orderType"] = json!("FOK");
    vec![
        (sound, None),
        (owner, Some(("S02", "OWNER_NOT_KEY", "the order owner has to be the owner of the API KEY"))),
        (chain, Some(("S03", "INVALID_SIGNATURE", "invalid signature"))),
        (first, Some(("S01", "ORDER_VERSION_MISMATCH", "order_version_mismatch"))),
        (
            decimals,
            Some((
                "S09",
                "INVALID_AMOUNTS",
                "invalid amounts, the buy orders maker amount supports a max accuracy of 4 decimals, taker amount a max of \
                 2 decimals",
            )),
        ),
        (tick, Some(("S10", "INVALID_ORDER_MIN_TICK_SIZE", "breaks minimum tick size rule: 0.01"))),
        (small, Some(("S10", "INVALID_ORDER_MIN_SIZE", "lower than the minimum: 5"))),
        (budget, Some(("S11", "MARKETABLE_MIN", "invalid amount for a marketable BUY order ($0.5), min size: $1"))),
    ]
}

/// Refusals have the venue's sentence and leave no row; the same signed order is taken once, also after a restart; the
/// facts show all of it.
#[test]
fn enforce_refuses_what_the_venue_refuses() {
    let cases = Cases::of("refusals of the rehearsal");
    let mut world = rehearsed("enforce", |_| {});
    let mut trader = Trader::log_in(&world, 7);
    let rain = world.markets.rain.clone();
    let rows = broken(&mut trader, &rain);
    let mut accepted = 0;
    for (body, refused) in &rows {
        let answer = trader.send("/order", body);
        match refused {
            None => {
                let answer = answer.expect(200);
                assert_eq!((text(&answer, "/status"), at(&answer, "/success")), ("live", &json!(true)), "{answer}");
                accepted += 1;
            }
            Some((rule, code, sentence)) => {
                let answer = answer.refused(400, code);
                assert!(text(&answer, "/error").ends_with(sentence), "{answer}");
                assert_eq!(text(&answer, "/rule"), *rule, "{answer}");
            }
        }
        assert_eq!(trader.orders(), accepted, "a refusal leaves no row: {body}");
        cases.one();
    }
    let (sound, _) = &rows[0];
    for is_restarted in [false, true] {
        if is_restarted {
            end(&mut world);
            world.server = world.place.start();
            trader.client = world.public();
        }
        let answer = trader.send("/order", sound).refused(400, "ORDER_DUPLICATED");
        let sentence = text(&answer, "/error");
        assert!(sentence.starts_with("order 0x") && sentence.ends_with(" is invalid. Duplicated."), "{answer}");
        cases.one();
    }
    // A neg-risk market has the other exchange.
    let coin = world.markets.coin.clone();
    let order = trader.order(&coin, "4000000", "10000000");
    trader.send("/order", &order).expect(200);
    let mut other = trader.order(&coin, "4000000", "10000000");
    trader.account.sign_order(&mut other["order"], false, 137);
    let answer = trader.send("/order", &other).refused(400, "INVALID_SIGNATURE");
    assert!(text(&answer, "/diagnosis").contains("other exchange"), "{answer}");
    // A batch: the sound entry rests, the others have the form of the venue.
    let batch = json!([trader.order(&rain, "3600000", "10000000"), rows[1].0, sound]);
    let entries = trader.send("/orders", &batch).expect(200);
    assert_eq!(text(&entries, "/0/status"), "live", "{entries}");
    for (place, rule) in [("/1", "S02"), ("/2", "S08")] {
        let entry = at(&entries, place);
        assert_eq!((at(entry, "/success"), text(entry, "/status"), text(entry, "/rule")), (&json!(true), "", rule));
        assert!(!text(entry, "/errorMsg").is_empty(), "{entry}");
        cases.one();
    }
    // The request's own signature.
    let order = trader.order(&rain, "3600000", "10000000");
    let answer = trader.send_with("/order", &order, "AAAA", unix_now()).refused(401, "INVALID_KEY");
    assert_eq!((text(&answer, "/error"), text(&answer, "/rule")), ("Unauthorized/Invalid api key", "S15"));
    let secret = trader.secret.clone();
    let old = trader.send_with("/order", &order, &secret, unix_now() - 600);
    assert!(old.header("X-Svc-Strict").is_some_and(|rules| rules.contains("S15")), "{:?}", old.headers);
    old.expect(200);
    let mut more: Vec<Value> = (0..16).map(|_| trader.order(&rain, "3600000", "10000000")).collect();
    trader.send("/orders", &json!(more)).refused(400, "BATCH_LIMIT_EXCEEDED");
    more.truncate(15);
    assert_eq!(list(&trader.send("/orders", &json!(more)).expect(200), "").len(), 15);
    cases.add(6);

    // Native orders are not touched, and neither are the flat ones.
    let mut client = world.public().with_header("X-API-Key", &trader.key);
    let flat = json!({"token_id": rain.yes(), "side": "BUY", "price": "0.35", "size": "5"});
    client.post("/v1/clob/order", &flat).expect(200);
    cases.one();

    // The report of the running server, and of the stopped one: what waited is journaled at the end.
    let live = eventually("the finding is in the log", || {
        Some(doctor(&world, &[])).filter(|output| finding(&report(output), "S11").is_some())
    });
    assert_eq!(live.status.code(), Some(1), "orders were refused: {live:?}");
    end(&mut world);
    let output = doctor(&world, &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown = report(&output);
    for (rule, count) in [("S01", 1), ("S02", 2), ("S03", 2), ("S08", 3), ("S09", 1), ("S10", 2), ("S11", 1)] {
        let row = finding(&shown, rule).unwrap_or_else(|| panic!("no {rule} in {shown}"));
        assert_eq!((at(row, "/count"), text(row, "/class")), (&json!(count), "refused"), "{row}");
        assert!(!text(row, "/cure").is_empty() && !text(row, "/asks").is_empty(), "{row}");
        cases.one();
    }
    let other = doctor(&world, &["--key", "1"]);
    assert_eq!((other.status.code(), at(&report(&other), "/sent")), (Some(0), &json!(0)), "{other:?}");
    let all = doctor(&world, &["--since", "7d"]);
    assert_eq!(
        (at(&report(&all), "/findings"), at(&report(&all), "/sent")),
        (at(&shown, "/findings"), at(&shown, "/sent"))
    );
    for wrong in [&["--since", "1"][..], &["--since", "h"], &["--key", "x"], &["--venue", "polymarket"]] {
        assert_eq!(doctor(&world, wrong).status.code(), Some(2), "{wrong:?}");
        cases.one();
    }
    cases.add(4);
}

/// `warn` changes no body: what is off and what is warned about answer alike, but for ids and times.
#[test]
fn warn_changes_no_body() {
    let cases = Cases::of("answers of both modes");
    let worlds = ["off", "warn"].map(|mode| rehearsed(mode, |_| {}));
    let mut traders = worlds.each_ref().map(|world| Trader::log_in(world, 7));
    let rain = worlds[0].markets.rain.clone();
    let bodies: Vec<Value> = broken(&mut traders[0], &rain).into_iter().map(|(body, _)| body).collect();
    let mut rules = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let [usual, warned] = traders.each_mut().map(|trader| trader.send("/order", body));
        assert_eq!((usual.status, usual.header("X-Svc-Strict")), (warned.status, None), "{body}");
        let without_id = |mut answer: Value| {
            answer.as_object_mut().expect("an object").remove("orderID");
            answer
        };
        assert_eq!(without_id(usual.json()), without_id(warned.json()), "{body}");
        // The owner is the key of the other server.
        let named = warned.header("X-Svc-Strict").unwrap_or_default().to_owned();
        assert!(named.contains("S02"), "{body}: {named}");
        rules.push(named);
        cases.one();
        // A repeat is answered as before, and found.
        if number == 0 {
            let [usual, warned] = traders.each_mut().map(|trader| trader.send("/order", body));
            assert_eq!(usual.json(), warned.json(), "{body}");
            assert_eq!(warned.header("X-Svc-Strict"), Some("S02,S07,S08"), "a repeat");
            cases.one();
        }
    }
    for (rule, count) in [("S01", 1), ("S03", 1), ("S09", 1), ("S10", 2), ("S11", 1)] {
        assert_eq!(rules.iter().filter(|named| named.contains(rule)).count(), count, "{rule}: {rules:?}");
        cases.one();
    }
    let lists = traders.each_mut().map(Trader::orders);
    assert_eq!(lists[0], lists[1]);
    let figure = |world: &World, rule: &str, class: &str| {
        let admin = world.server.admin().expect("an admin listener");
        scrape(admin).get("papertape_strict_findings_total", &[("rule", rule), ("class", class)])
    };
    assert_eq!(figure(&worlds[0], "S07", "depends"), None);
    assert_eq!(figure(&worlds[1], "S02", "refused"), Some(1.0 + bodies.len() as f64));
    assert_eq!(figure(&worlds[1], "S08", "refused"), Some(1.0));
    let of = |number: usize| &worlds[number];
    assert_eq!(at(&report(&doctor(of(0), &[])), "/sent"), &json!(0), "off notes nothing");
    cases.add(4);
}

fn declare(world: &World, address: &str, body: &Value) -> Response {
    let token = fs::read_to_string(world.place.data().join("admin_token")).expect("the server made one");
    let admin = world.server.admin().expect("an admin listener");
    let request = Request::new("PUT", &format!("/v1/admin/addresses/{address}")).json(body);
    Client::new(admin).send(&request.header("Authorization", &format!("Bearer {token}")))
}

/// What an administrator declares is used immediately, is in the log, and is left after restarts.
#[test]
fn declared_addresses_are_kept() {
    let cases = Cases::of("declared addresses");
    let mut world = rehearsed("enforce", |place| _ = place.set("venue", "allowances", "\"declared\""));
    let mut trader = Trader::log_in(&world, 7);
    let (rain, coin) = (world.markets.rain.clone(), world.markets.coin.clone());
    let address = trader.account.address();
    let order = trader.order(&rain, "3700000", "10000000");
    let answer = trader.send("/order", &order).refused(400, "INSUFFICIENT_BALANCE");
    assert_eq!((text(&answer, "/error"), text(&answer, "/rule")), ("not enough balance / allowance", "S14"));
    for (named, body, status, code) in [
        ("0x7", json!({"kind": "eoa"}), 404, "NOT_FOUND"),
        (&*address, json!({"kind": "wallet"}), 422, "VALIDATION_FAILED"),
        (&*address, json!({"kind": "proxy"}), 422, "VALIDATION_FAILED"),
        (&*address, json!([]), 400, "INVALID_BODY"),
    ] {
        declare(&world, named, &body).refused(status, code);
        cases.one();
    }
    let body = json!({"kind": "eoa", "owner": null, "allow": {"exchange": true}});
    let expected =
        json!({"address": address, "kind": "eoa", "owner": null, "allow": {"exchange": true, "neg_risk": false}});
    assert_eq!(declare(&world, &address, &body).expect(200), expected);
    for is_restarted in [false, true] {
        if is_restarted {
            world.crash();
            trader.client = world.public();
        }
        let order = trader.order(&rain, "3700000", "10000000");
        trader.send("/order", &order).expect(200);
        let order = trader.order(&coin, "4000000", "10000000");
        trader.send("/order", &order).refused(400, "INSUFFICIENT_BALANCE");
        cases.add(2);
    }
    // From a snapshot, too: nothing of the log is needed.
    let both = json!({"kind": "eoa", "allow": {"exchange": true, "neg_risk": true}});
    declare(&world, &address, &both).expect(200);
    let order = trader.order(&coin, "4000000", "10000000");
    trader.send("/order", &order).expect(200);
    end(&mut world);
    let (digest, from_nothing) = (world.place.digest(), world.place.digest_from_nothing());
    assert_eq!(digest, from_nothing, "snapshot and log have the same addresses");
    let made = run([OsString::from("snapshot"), "create".into(), world.place.data().into()]);
    assert!(made.status.success(), "{made:?}");
    assert_eq!(world.place.digest(), digest);
    world.server = world.place.start();
    trader.client = world.public();
    let order = trader.order(&coin, "4000000", "10000000");
    trader.send("/order", &order).expect(200);
    cases.add(3);
}

/// The version, the names of trades and the lists of cancels of each profile; it refuses with `enforce` only.
#[test]
fn profiles_follow_the_venue() {
    let cases = Cases::of("profiles");
    // Profile, mode, version, whether trades are named, the most ids of a list of cancels.
    let rows = [
        ("contract", "off", 2, false, 3_000),
        ("2026-03-30", "warn", 1, false, 3_000),
        ("2026-06-15", "off", 2, false, 3_000),
        ("2026-06-15", "enforce", 2, false, 1_000),
        ("2026-08-17", "enforce", 2, true, 1_000),
    ];
    for (profile, mode, version, is_named, most) in rows {
        let world = rehearsed(mode, |place| _ = place.set("venue", "profile", &format!("{profile:?}")));
        let mut trader = Trader::log_in(&world, 7);
        assert_eq!(at(&world.public().get("/v1/version").expect(200), "/version"), &json!(version), "{profile}");
        let rain = world.markets.rain.clone();
        let mut taking = trader.order(&rain, "4200000", "10000000");
        taking["orderType"] = json!("FOK");
        let answer = trader.send("/order", &taking).expect(200);
        assert_eq!(list(&answer, "/tradeIDs").len(), usize::from(is_named), "{profile} {mode}: {answer}");
        assert_eq!(at(&answer, "/transactionsHashes"), &json!([]), "{profile}");
        let resting = trader.order(&rain, "4100000", "10000000");
        let answer = trader.send("/order", &resting).expect(200);
        assert_eq!(at(&answer, "/tradeIDs"), &json!([]), "{profile}: it takes nothing");
        let request = Request::get("/v1/data/trades").header("POLY_API_KEY", &trader.key);
        let trades = trader.client.send(&request).expect(200);
        let status = if is_named { "CONFIRMED" } else { "MATCHED" };
        assert_eq!(text(&trades, "/data/0/status"), status, "{profile}");
        for (count, is_taken) in [(most, true), (most + 1, false)] {
            let ids: Vec<String> = (0..count).map(|id| format!("{}", 1_000_000 + id)).collect();
            let request = Request::new("DELETE", "/v1/orders").header("POLY_API_KEY", &trader.key).json(&json!(ids));
            let answer = trader.client.send(&request);
            assert_eq!(answer.status, if is_taken { 200 } else { 400 }, "{profile} {mode} {count}");
            cases.one();
        }
        cases.add(4);
    }
    let mut place = ServerDir::new();
    place.set("venue", "profile", "\"2026-02-30\"");
    let (status, output) = place.spawn_with(&[], &[]).ended();
    assert!(!status.success() && output.contains("venue.profile"), "{output}");
    cases.one();
}
