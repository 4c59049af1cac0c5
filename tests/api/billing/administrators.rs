//! The verbs of administrators.

use super::*;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;

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

/// A verb that cannot work says why, and leaves nothing.
#[test]
fn a_verb_says_why_it_does_nothing() {
    let cases = Cases::of("verbs that do nothing");
    let mut world = World::start_with(1, |place| _ = place.set("admin", "listen", "\"127.0.0.1:0\""));
    world.server.with_token(&lasting("ada")).get("/v1/me").expect(200);
    let data = world.place.data().to_owned();
    let token_file = data.join("admin_token");
    let token_file = token_file.to_str().expect("a path");
    // No process listens at this address.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let url = format!("http://{closed}");
    let grant = ["grant", "--user", "ada", "--plan", "pro", "--until", "none"];
    let wallet = ["wallet", "--user", "ada", "--kind", "competition", "--balance", "5"];
    let refund = ["refund", "--user", "ada", "--purchase", "pi_1"];
    let there = ["--admin", &url, "--token-file", token_file];
    // Of a server whose listener is not known, or does not answer.
    for (args, words) in [
        (grant.to_vec(), "another process has"),
        (wallet.to_vec(), "another process has"),
        ([&grant[..], &there].concat(), "no admin listener answers at"),
        ([&refund[..], &there].concat(), "works on a running server only, and none answers at"),
        (refund.to_vec(), "works on a running server only, and the settings name no admin listener"),
    ] {
        let output = verb(&world, &args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(printed(&output).contains(words), "{args:?}: {}", printed(&output));
        assert!(!printed(&output).contains("a server has"), "{args:?}: {}", printed(&output));
        cases.one();
    }
    // The same by an address of the settings, of a directory that another process has, and of one that has stopped.
    let listening = |verb: &[&str]| {
        let mut command = command();
        command.args(verb).arg("--config").arg(world.place.config()).arg("--data-dir").arg(&data);
        command.env("PAPERTAPE_ADMIN_LISTEN", closed.to_string()).output().expect("papertape can be run")
    };
    let output = listening(&grant);
    let words = ["another process has", &format!("no admin listener answers at {url}")];
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(words.iter().all(|word| printed(&output).contains(word)), "{}", printed(&output));
    world.server.kill();
    let output = listening(&refund);
    let words = format!("works on a running server only, and none answers at {url}");
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(printed(&output).contains(&words), "{}", printed(&output));
    cases.add(2);
    // A plan that has ended is called so.
    for (until, words) in [
        ("2020-01-01T00:00:00Z", "had the plan pro until 2020-01-01T00:00:00Z: it has ended"),
        ("2100-01-01T00:00:00Z", "has the plan pro, until 2100-01-01T00:00:00Z"),
        ("none", "has the plan pro, without end"),
    ] {
        let output = verb(&world, &["grant", "--user", "ada", "--plan", "pro", "--until", until]);
        assert!(output.status.success() && printed(&output).contains(words), "{until}: {}", printed(&output));
        cases.one();
    }
    // A directory that is not there, or is empty, stays so.
    let (absent, empty) = (data.with_file_name("absent"), data.with_file_name("empty"));
    fs::DirBuilder::new().mode(0o700).create(&empty).expect("it can be made");
    for dir in [&absent, &empty] {
        for args in [&grant[..], &wallet, &refund] {
            let mut verb = command();
            let output = verb.args(args).arg("--config").arg(world.place.config()).arg("--data-dir").arg(dir);
            let output = output.output().expect("papertape can be run");
            assert_eq!(output.status.code(), Some(1), "{args:?}: {}", printed(&output));
            assert!(!absent.exists(), "{args:?}");
            assert_eq!(fs::read_dir(&empty).expect("it is there").count(), 0, "{args:?}");
            cases.one();
        }
    }
}
