//! Wallets: lifecycle, limits, kinds (gateway/docs/accounts.md §1).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Client, Request};
use tests::json::{at, int, list, text};
use tests::server::User;
use tests::token::{SECRET, claims, sign, unix_now};
use tests::world::{World, changed, limit, market};

/// A world with one user of that tier, and a client with its key.
fn world_of(tier: &str, balance: &str) -> (World, Client) {
    let mut users: Vec<User> = Vec::new();
    let world = World::start_with(0, |place| users = place.seed(1, tier, balance));
    let client = world.server.with_key(&users[0].key);
    (world, client)
}

/// The wallet of a kind in the caller's list.
fn of_kind(client: &mut Client, kind: &str) -> Value {
    let shown = client.get("/v1/me/wallets").expect(200);
    list(&shown, "/wallets").iter().find(|wallet| text(wallet, "/kind") == kind).expect("there is one").clone()
}

fn open(client: &mut Client, label: &str) -> Value {
    client.post("/v1/me/wallets", &json!({"kind": "SANDBOX", "label": label})).expect(201)
}

fn fields(found: &Value, expected: &Value, cases: &Cases) {
    for (field, expected) in expected.as_object().expect("an object") {
        assert_eq!(at(found, &format!("/{field}")), expected, "{field} of {found}");
        cases.one();
    }
}

#[test]
fn a_sandbox_lives_and_ends() {
    let cases = Cases::of("sandbox life");
    let (mut world, mut client) = world_of("pro", "777");
    let rain = world.markets.rain.clone();
    let shown = client.get("/v1/me/wallets").expect(200);
    let kinds: Vec<&str> = list(&shown, "/wallets").iter().map(|wallet| text(wallet, "/kind")).collect();
    assert_eq!(kinds, ["MAIN", "API"]);
    fields(&list(&shown, "/wallets")[1], &json!({"balance": "777.00", "baseline": "777.00", "generation": 1}), &cases);
    let wallet = open(&mut client, "grid test");
    let expected = json!({
        "kind": "SANDBOX", "label": "grid test", "balance": "10000.00", "baseline": "10000.00", "status": "ACTIVE",
        "generation": 1, "parent_wallet_id": null, "competition_id": null, "archived_at": null, "is_legacy": false,
        "managed_by": null, "b2b_account": null
    });
    fields(&wallet, &expected, &cases);
    assert!(text(&wallet, "/created_at").ends_with('Z'));
    let id = int(&wallet, "/id");
    let path = format!("/v1/me/wallets/{id}");
    assert_eq!(client.get(&path).expect(200), wallet);
    // A name of its own, another word for it, and none.
    let named = client.post("/v1/me/wallets", &json!({"kind": "SANDBOX", "name": "other"})).expect(201);
    assert_eq!(text(&named, "/label"), "other");
    for (body, label) in [(json!({"label": "b"}), json!("b")), (json!({"label": null}), Value::Null)] {
        assert_eq!(at(&client.patch(&path, &body).expect(200), "/label"), &label);
        cases.one();
    }
    // Orders, fills and positions of its own.
    let within = |order: &Value| changed(order, &json!({"wallet_id": id}));
    client.post("/v1/orders", &within(&market(&rain, "BUY", "0.42", "50"))).expect(200);
    let resting = client.post("/v1/orders", &within(&limit(&rain, "BUY", "0.30", "10"))).expect(200);
    let selling = client.post("/v1/orders", &within(&limit(&rain, "SELL", "0.90", "30"))).expect(200);
    assert_eq!(int(&resting, "/wallet_id"), id);
    assert_eq!(text(&client.get(&path).expect(200), "/balance"), "9975.391");
    let counts = [
        (format!("/v1/account/positions?wallet_id={id}"), "", 1),
        ("/v1/account/positions".to_owned(), "", 0),
        ("/v1/account/positions?wallet_id=ALL".to_owned(), "", 1),
        (format!("/v1/orders?wallet_id={id}"), "/orders", 3),
        ("/v1/orders".to_owned(), "/orders", 0),
        (format!("/v1/account/history?wallet_id={id}"), "", 1),
    ];
    for (path, rows, count) in &counts {
        assert_eq!(list(&client.get(path).expect(200), rows).len(), *count, "{path}");
        cases.one();
    }
    // Archived: everything in it ends, and it is read-only.
    let archived = client.delete(&path).expect(200);
    fields(&archived, &json!({"id": id, "status": "ARCHIVED", "balance": "9978.391", "generation": 1}), &cases);
    assert!(text(&archived, "/archived_at") >= text(&archived, "/created_at"));
    for order in [&resting, &selling] {
        let ended = client.get(&format!("/v1/orders/{}", int(order, "/order_id"))).expect(200);
        let ended = (text(&ended, "/status").to_owned(), text(&ended, "/cancelled_reason").to_owned());
        assert_eq!(ended, ("CANCELLED".to_owned(), "wallet_archived".to_owned()));
        cases.one();
    }
    let closed = client.get(&format!("/v1/account/positions?wallet_id={id}")).expect(200);
    let expected = json!({
        "status": "CLOSED_BY_RESET", "quantity": "0", "avg_entry_price": "0.42", "realized_pnl": "0.00",
        "market_value": null
    });
    fields(&list(&closed, "")[0], &expected, &cases);
    for (status, count) in [("OPEN", 0), ("CLOSED", 1)] {
        let rows = client.get(&format!("/v1/account/positions?wallet_id={id}&status={status}")).expect(200);
        assert_eq!(list(&rows, "").len(), count, "{status}");
        cases.one();
    }
    client.post("/v1/orders", &within(&limit(&rain, "BUY", "0.30", "10"))).refused(404, "WALLET_NOT_FOUND");
    client.post(&format!("{path}/reset"), &json!({})).refused(400, "INVALID_REQUEST");
    assert_eq!(client.delete(&path).expect(200), archived, "a second time changes nothing");
    for (query, count) in [("", 3), ("?include_archived=true", 4), ("?include_archived=1&limit=2", 2), ("?offset=2", 1)]
    {
        let shown = client.get(&format!("/v1/me/wallets{query}")).expect(200);
        assert_eq!(list(&shown, "/wallets").len(), count, "{query}");
        cases.one();
    }
    // All of it survives a kill.
    let before = client.get("/v1/me/wallets?include_archived=true").expect(200);
    world.crash();
    client.moved_to(world.server.address());
    assert_eq!(client.get("/v1/me/wallets?include_archived=true").expect(200), before);
    assert_eq!(client.get(&format!("/v1/account/positions?wallet_id={id}")).expect(200), closed);
    cases.add(2);
}

#[test]
fn plans_have_so_many_sandboxes() {
    let cases = Cases::of("sandboxes of a plan");
    let mut made: Vec<(User, usize, &str)> = Vec::new();
    let world = World::start_with(0, |place| {
        for (tier, most, baseline) in
            [("free", 0, ""), ("pro", 3, "10000.00"), ("pro_plus", 10, "25000.00"), ("enterprise", 50, "25000.00")]
        {
            made.push((place.seed(1, tier, "10000").remove(0), most, baseline));
        }
    });
    for (user, most, baseline) in &made {
        let mut client = world.server.with_key(&user.key);
        let mut last = 0;
        for _ in 0..*most {
            let wallet = open(&mut client, "x");
            assert_eq!(text(&wallet, "/baseline"), *baseline);
            last = int(&wallet, "/id");
        }
        let refused = client.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).refused(402, "UPGRADE_REQUIRED");
        assert_eq!(text(&refused, "/feature_key"), "wallets.sandbox_baseline");
        assert_eq!(text(&refused, "/upgrade_url"), "/pricing");
        if *most > 0 {
            // An archived one makes room.
            client.delete(&format!("/v1/me/wallets/{last}")).expect(200);
            open(&mut client, "y");
        }
        let shown = client.get("/v1/me/wallets?limit=200").expect(200);
        assert_eq!(list(&shown, "/wallets").len(), most + 2);
        let ids: Vec<i64> = list(&shown, "/wallets").iter().map(|wallet| int(wallet, "/id")).collect();
        assert!(ids.windows(2).all(|two| two[0] < two[1]), "{ids:?}");
        cases.one();
    }
}

#[test]
fn a_sandbox_that_is_reset_is_followed_by_another() {
    let cases = Cases::of("sandbox resets");
    let (mut world, mut client) = world_of("pro", "10000");
    let rain = world.markets.rain.clone();
    let mut parent = open(&mut client, "grid");
    for generation in 2..5 {
        let id = int(&parent, "/id");
        for order in [market(&rain, "BUY", "0.42", "10"), limit(&rain, "BUY", "0.30", "10")] {
            client.post("/v1/orders", &changed(&order, &json!({"wallet_id": id}))).expect(200);
        }
        let next = client.post(&format!("/v1/me/wallets/{id}/reset"), &json!({})).expect(200);
        let expected = json!({
            "kind": "SANDBOX", "label": "grid", "balance": "10000.00", "status": "ACTIVE", "generation": generation,
            "parent_wallet_id": id
        });
        fields(&next, &expected, &cases);
        let old = client.get(&format!("/v1/me/wallets/{id}")).expect(200);
        assert_eq!(text(&old, "/status"), "ARCHIVED");
        let orders = client.get(&format!("/v1/orders?wallet_id={id}")).expect(200);
        let open = list(&orders, "/orders").iter().filter(|order| text(order, "/status") == "PENDING").count();
        assert_eq!(open, 0);
        parent = next;
    }
    world.crash();
    client.moved_to(world.server.address());
    let kept = client.get(&format!("/v1/me/wallets/{}", int(&parent, "/id"))).expect(200);
    assert_eq!(kept, parent);
    cases.one();
}

/// MAIN resets are counted over 30 days; the test advances the time.
#[test]
fn the_main_wallet_is_reset_so_often() {
    let cases = Cases::of("resets of MAIN");
    const DAY: u64 = 86_400;
    for (tier, most) in [("free", Some(1)), ("pro", Some(4)), ("pro_plus", None)] {
        let mut users: Vec<User> = Vec::new();
        let mut world = World::start_with(0, |place| {
            users = place.clock_ahead(0).seed(1, tier, "10000");
        });
        let mut client = world.server.with_key(&users[0].key);
        let main = of_kind(&mut client, "MAIN");
        let id = int(&main, "/id");
        let rain = world.markets.rain.clone();
        let bought = changed(&market(&rain, "BUY", "0.42", "50"), &json!({"wallet_id": id}));
        let resting = changed(&limit(&rain, "BUY", "0.30", "10"), &json!({"wallet_id": id}));
        client.post("/v1/orders", &bought).expect(200);
        let order = client.post("/v1/orders", &resting).expect(200);
        let path = format!("/v1/me/wallets/{id}/reset");
        for count in 0..most.unwrap_or(6) {
            let reset = client.post(&path, &json!({})).expect(200);
            let expected = json!({
                "id": id, "kind": "MAIN", "balance": "1000.00", "baseline": "1000.00", "status": "ACTIVE",
                "generation": count + 2, "parent_wallet_id": null
            });
            fields(&reset, &expected, &cases);
        }
        let ended = client.get(&format!("/v1/orders/{}", int(&order, "/order_id"))).expect(200);
        assert_eq!(text(&ended, "/cancelled_reason"), "balance_reset");
        if most.is_some() {
            let spent = |client: &mut Client| {
                let refused = client.post(&path, &json!({})).refused(402, "UPGRADE_REQUIRED");
                assert_eq!(text(&refused, "/feature_key"), "wallets.main_resets_per_30d");
            };
            spent(&mut client);
            // Restarts keep the count, and after 30 days a reset no longer counts.
            world.place.clock_ahead(30 * DAY - 3_600);
            world.crash();
            client.moved_to(world.server.address());
            spent(&mut client);
            world.place.clock_ahead(30 * DAY + 3_600);
            world.crash();
            client.moved_to(world.server.address());
            client.post(&path, &json!({})).expect(200);
            cases.add(3);
        }
    }
}

#[test]
fn wrong_requests_are_refused() {
    let cases = Cases::of("wrong wallet requests");
    let (_world, mut client) = world_of("pro", "10000");
    let (main, api) = (int(&of_kind(&mut client, "MAIN"), "/id"), int(&of_kind(&mut client, "API"), "/id"));
    let sandbox = int(&open(&mut client, "x"), "/id");
    let long = "x".repeat(65);
    let one = |id: i64| format!("/v1/me/wallets/{id}");
    let list = "/v1/me/wallets".to_owned();
    let rows: Vec<(&str, String, Option<Value>, u16, &str)> = vec![
        ("GET", format!("{list}?limit=0"), None, 422, "VALIDATION_FAILED"),
        ("GET", format!("{list}?limit=201"), None, 422, "VALIDATION_FAILED"),
        ("GET", format!("{list}?offset=-1"), None, 422, "VALIDATION_FAILED"),
        ("GET", format!("{list}?include_archived=perhaps"), None, 422, "VALIDATION_FAILED"),
        ("POST", list.clone(), Some(json!({})), 422, "VALIDATION_FAILED"),
        ("POST", list.clone(), Some(json!({"kind": null})), 422, "VALIDATION_FAILED"),
        ("POST", list.clone(), Some(json!({"kind": 5})), 422, "VALIDATION_FAILED"),
        ("POST", list.clone(), Some(json!({"kind": "SANDBOX", "label": long})), 422, "VALIDATION_FAILED"),
        ("POST", list.clone(), Some(json!({"kind": "SANDBOX", "name": long})), 422, "VALIDATION_FAILED"),
        ("POST", list.clone(), Some(json!({"kind": "SANDBOX", "label": 5})), 422, "VALIDATION_FAILED"),
        ("POST", list.clone(), Some(json!([])), 400, "INVALID_BODY"),
        ("POST", list.clone(), Some(json!({"kind": "MAIN"})), 400, "INVALID_REQUEST"),
        ("POST", list.clone(), Some(json!({"kind": "API"})), 400, "INVALID_REQUEST"),
        ("POST", list.clone(), Some(json!({"kind": "COMPETITION"})), 400, "INVALID_REQUEST"),
        ("POST", list.clone(), Some(json!({"kind": "sandbox"})), 400, "INVALID_REQUEST"),
        ("PATCH", one(sandbox), Some(json!({})), 422, "VALIDATION_FAILED"),
        ("PATCH", one(sandbox), Some(json!({"label": long})), 422, "VALIDATION_FAILED"),
        ("PATCH", one(sandbox), Some(json!({"label": true})), 422, "VALIDATION_FAILED"),
        ("PATCH", one(sandbox), Some(json!("x")), 400, "INVALID_BODY"),
        ("PATCH", one(sandbox + 1_000), Some(json!({"label": "x"})), 404, "WALLET_NOT_FOUND"),
        ("GET", one(sandbox + 1_000), None, 404, "WALLET_NOT_FOUND"),
        ("GET", format!("{list}/x"), None, 404, "WALLET_NOT_FOUND"),
        ("GET", format!("{list}/0{sandbox}"), None, 404, "WALLET_NOT_FOUND"),
        ("DELETE", one(main), None, 400, "INVALID_REQUEST"),
        ("DELETE", one(api), None, 400, "INVALID_REQUEST"),
        ("DELETE", one(sandbox + 1_000), None, 404, "WALLET_NOT_FOUND"),
        ("DELETE", format!("{list}/-1"), None, 404, "WALLET_NOT_FOUND"),
        ("POST", format!("{}/reset", one(api)), None, 400, "INVALID_REQUEST"),
        ("POST", format!("{}/reset", one(sandbox + 1_000)), None, 404, "WALLET_NOT_FOUND"),
        ("POST", format!("{list}/all/reset"), None, 404, "WALLET_NOT_FOUND"),
    ];
    for (method, path, body, status, code) in &rows {
        let request = Request::new(method, path);
        let request = body.iter().fold(request, |request, body| request.json(body));
        let answer = client.send(&request);
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{method} {path} {body:?}");
        answer.assert_envelope();
        cases.one();
    }
    // Refused requests had no effect.
    assert_eq!(text(&client.get(&one(sandbox)).expect(200), "/label"), "x");
    let shown = client.get(&list).expect(200);
    assert_eq!(tests::json::list(&shown, "/wallets").len(), 3);
    cases.add(2);
}

#[test]
fn keys_and_session_tokens_do_what_they_may() {
    let cases = Cases::of("credentials of wallets");
    let world = World::start(1);
    let mut owner = world.user(0);
    let reads = owner.post("/v1/keys", &json!({"permissions": ["read"]})).expect(201);
    let mut reader = world.server.with_key(text(&reads, "/raw_key"));
    let wallet = int(&open(&mut owner, "x"), "/id");
    let path = format!("/v1/me/wallets/{wallet}");
    reader.get("/v1/me/wallets").expect(200);
    reader.get(&path).expect(200);
    reader.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).refused(403, "INSUFFICIENT_PERMISSION");
    reader.patch(&path, &json!({"label": "y"})).refused(403, "INSUFFICIENT_PERMISSION");
    reader.delete(&path).refused(403, "INSUFFICIENT_PERMISSION");
    reader.post(&format!("{path}/reset"), &json!({})).refused(403, "INSUFFICIENT_PERMISSION");
    cases.add(6);
    // A session token may do all of it, within its plan.
    let mut claims = claims("person-1");
    claims["exp"] = json!(unix_now() + 3_600);
    let token = sign(&json!({"alg": "HS256"}), &claims, SECRET.as_bytes());
    let mut session = world.server.with_token(&token);
    let main = int(&of_kind(&mut session, "MAIN"), "/id");
    let mine = format!("/v1/me/wallets/{main}");
    assert_eq!(text(&session.get(&mine).expect(200), "/balance"), "1000.00");
    assert_eq!(text(&session.patch(&mine, &json!({"label": "first"})).expect(200), "/label"), "first");
    assert_eq!(int(&session.post(&format!("{mine}/reset"), &json!({})).expect(200), "/generation"), 2);
    session.post("/v1/me/wallets", &json!({"kind": "SANDBOX"})).refused(402, "UPGRADE_REQUIRED");
    session.get(&path).refused(404, "WALLET_NOT_FOUND");
    cases.add(5);
    // The plan's features apply to session tokens alone.
    let shown = session.get("/v1/account/me/entitlements").expect(200);
    let expected = json!({"plan": "free", "source": "default", "expires_at": null});
    fields(&shown, &expected, &cases);
    let expected = json!({
        "api.tier": "free", "api.daily_order_cap": 100, "api.reset_balance": false, "wallets.sandbox_max": 0,
        "wallets.sandbox_baseline": null, "wallets.main_resets_per_30d": 1, "export.csv": false,
        "analytics.backtesting": true, "dataset.historical_full": false, "backtests_per_month": 10,
        "backtest_max_days": 7, "backtest_max_markets": 5, "market_hours_monthly": 24, "alerts.chat": false
    });
    assert_eq!(at(&shown, "/features"), &expected);
    owner.get("/v1/account/me/entitlements").refused(401, "MISSING_AUTH");
    world.public().get("/v1/account/me/entitlements").refused(401, "MISSING_AUTH");
    cases.add(3);
}

/// More than a thousand orders end in several records, and none is left.
#[test]
fn a_crowded_sandbox_is_put_away_whole() {
    const ORDERS: usize = 2_300;
    let cases = Cases::of("orders of a crowded sandbox");
    let world = World::start_with(1, |place| {
        place.set("limits.tiers.enterprise", "max_batch_size", "100");
    });
    let mut client = world.user(0);
    let wallet = int(&open(&mut client, "crowded"), "/id");
    let entry = changed(&limit(&world.markets.rain, "BUY", "0.01", "5"), &json!({"wallet_id": wallet}));
    for _ in 0..ORDERS / 100 {
        let placed = client.post("/v1/orders/batch", &json!(vec![entry.clone(); 100])).expect(200);
        assert!(list(&placed, "/results").iter().all(|row| text(row, "/status") == "PENDING"), "{placed}");
    }
    assert_eq!(text(&client.get(&format!("/v1/me/wallets/{wallet}")).expect(200), "/balance"), "24885.00");
    let archived = client.delete(&format!("/v1/me/wallets/{wallet}")).expect(200);
    fields(&archived, &json!({"status": "ARCHIVED", "balance": "25000.00"}), &cases);
    let pending = client.get(&format!("/v1/orders?status=PENDING&wallet_id={wallet}")).expect(200);
    assert_eq!(list(&pending, "/orders").len(), 0);
    let ended = client.get(&format!("/v1/orders?status=CANCELLED&wallet_id={wallet}&limit=1")).expect(200);
    assert_eq!(int(&ended, "/total_hint"), ORDERS as i64);
    assert_eq!(text(&list(&ended, "/orders")[0], "/cancelled_reason"), "wallet_archived");
    cases.add(ORDERS);
}
