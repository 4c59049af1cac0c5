//! The verbs of administrators.

use super::*;

#[test]
fn administrators_grant_and_open_wallets() {
    let cases = Cases::of("verbs of administrators");
    let mut world = World::start_with(1, |place| _ = place.set("admin", "listen", "\"127.0.0.1:0\""));
    let admin = world.server.admin().expect("there is one");
    let token = fs::read_to_string(world.place.data().join("admin_token")).expect("the server made one");
    let mut session = world.server.with_token(&lasting("ada"));
    let user = int(&session.get("/v1/me").expect(200), "/user_id");
    let mut control = Client::with_header(Client::new(admin), "Authorization", &format!("Bearer {token}"));
    let (grants, wallets) = ("/v1/admin/grants", "/v1/admin/wallets");
    let granted =
        control.post(grants, &json!({"user": "ada", "plan": "pro", "until": "2100-01-01T00:00:00Z"})).expect(200);
    assert_eq!(granted, json!({"user_id": user, "plan": "pro", "expires_at": "2100-01-01T00:00:00Z"}));
    let entitled = session.get("/v1/account/me/entitlements").expect(200);
    assert_eq!((text(&entitled, "/plan"), text(&entitled, "/source")), ("pro", "grant"));
    let body = json!({"user": user, "kind": "competition", "balance": "5000", "label": "cup"});
    let opened = control.post(wallets, &body).expect(200);
    let wallet = int(&opened, "/wallet_id");
    let shown = session.get(&format!("/v1/me/wallets/{wallet}")).expect(200);
    let expected = ("COMPETITION", "cup", "5000.00", "5000.00");
    let found = (text(&shown, "/kind"), text(&shown, "/label"), text(&shown, "/balance"), text(&shown, "/baseline"));
    assert_eq!(found, expected);
    assert_eq!(int(&shown, "/competition_id"), wallet);
    session.post(&format!("/v1/me/wallets/{wallet}/reset"), &json!({})).refused(400, "INVALID_REQUEST");
    let refusals: Vec<(&str, Value, u16, &str)> = vec![
        (grants, json!({"user": "eve", "plan": "pro", "until": "none"}), 404, "ACCOUNT_NOT_FOUND"),
        (grants, json!({"user": 4_000_000, "plan": "pro", "until": "none"}), 404, "ACCOUNT_NOT_FOUND"),
        (grants, json!({"user": "ada", "plan": "gold", "until": "none"}), 422, "VALIDATION_FAILED"),
        (grants, json!({"user": "ada", "plan": "pro"}), 422, "VALIDATION_FAILED"),
        (wallets, json!({"user": "ada", "kind": "main", "balance": "5"}), 422, "VALIDATION_FAILED"),
        (wallets, json!({"user": "ada", "kind": "competition", "balance": "0"}), 422, "VALIDATION_FAILED"),
        (wallets, json!({"user": "eve", "kind": "competition", "balance": "5"}), 404, "ACCOUNT_NOT_FOUND"),
        (wallets, json!([]), 400, "INVALID_BODY"),
    ];
    for (path, body, status, code) in &refusals {
        control.post(path, body).refused(*status, code);
        cases.one();
    }
    Client::new(admin).post(grants, &json!({})).refused(401, "MISSING_AUTH");
    control.get(grants).refused(405, "HTTP_405");
    // The verbs, on the running server by its listener.
    let url = format!("http://{admin}");
    let token_file = world.place.data().join("admin_token");
    let there = ["--admin", &url, "--token-file", token_file.to_str().expect("a path")];
    let output =
        verb(&world, &[&["grant", "--user", "ada", "--plan", "pro_plus", "--until", "none"][..], &there].concat());
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(text(&session.get("/v1/account/me/entitlements").expect(200), "/plan"), "pro_plus");
    let id = user.to_string();
    let open = ["wallet", "--user", &id, "--kind", "competition", "--balance", "7.50"];
    let output = verb(&world, &[&open[..], &there].concat());
    assert!(output.status.success() && printed(&output).contains("7.50 USD"), "{}", printed(&output));
    // Locked by a server whose listener the settings do not name: it says what to do.
    let output = verb(&world, &open);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed(&output).contains("--admin") && printed(&output).contains("stop the server"),
        "{}",
        printed(&output)
    );
    // Malformed ones.
    for args in [
        &["grant", "--user", "ada", "--plan", "gold", "--until", "none"][..],
        &["grant", "--user", "ada", "--plan", "pro", "--until", "soon"],
        &["wallet", "--user", "ada", "--kind", "main", "--balance", "5"],
        &["wallet", "--user", "ada", "--kind", "competition", "--balance", "-5"],
        &["wallet", "--user", "ada"],
    ] {
        assert_eq!(verb(&world, args).status.code(), Some(2), "{args:?}");
        cases.one();
    }
    // On the stopped directory.
    world.server.kill();
    let output = verb(&world, &["grant", "--user", "ada", "--plan", "enterprise", "--until", "none"]);
    assert!(output.status.success(), "{}", printed(&output));
    let output = verb(&world, &open);
    assert!(output.status.success(), "{}", printed(&output));
    let output = verb(&world, &["grant", "--user", "eve", "--plan", "pro", "--until", "none"]);
    assert!(output.status.code() == Some(1) && printed(&output).contains("no user eve"), "{}", printed(&output));
    world.server = world.place.start();
    session.moved_to(world.server.address());
    assert_eq!(text(&session.get("/v1/account/me/entitlements").expect(200), "/plan"), "enterprise");
    let all = session.get("/v1/me/wallets").expect(200);
    let competitions = list(&all, "/wallets").iter().filter(|wallet| text(wallet, "/kind") == "COMPETITION").count();
    assert_eq!(competitions, 3);
    // Orders trade in it like in any other wallet.
    let mut order = market(&world.markets.rain, "BUY", "0.42", "10");
    order["wallet_id"] = json!(wallet);
    let made = session.post("/v1/keys/bootstrap", &json!({})).expect(201);
    world.server.with_key(text(&made, "/raw_key")).post("/v1/orders", &order).expect(200);
    // What is written by a clock that may be wrong does not hide the doubt.
    world.server.kill();
    let doubt = world.place.data().join("clock_doubted");
    assert!(!doubt.exists());
    world.place.clock_ahead(10 * DAY);
    for _ in 0..2 {
        let output = verb(&world, &["grant", "--user", "ada", "--plan", "pro", "--until", "none"]);
        assert!(output.status.success() && doubt.exists(), "{}", printed(&output));
    }
    cases.add(14);
}
