//! Canaries: secrets are sent everywhere, and searched for everywhere.

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tests::cases::Cases;
use tests::http::{Request, send_raw};
use tests::json::{int, text};
use tests::token::{SECRET, token};
use tests::world::{World, changed, limit};

const SOCKET_SECRET: &str = "another test secret of more than thirty-two bytes";

/// Files under `dir` that contain any of the needles.
fn files_with(dir: &Path, needles: &[(String, Vec<u8>)], found: &mut Vec<String>) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(dir).expect("a directory can be read") {
        let path = entry.expect("a directory can be read").path();
        if path.is_dir() {
            count += files_with(&path, needles, found);
            continue;
        }
        let bytes = fs::read(&path).expect("a file can be read");
        count += 1;
        for (name, needle) in needles {
            if bytes.windows(needle.len()).any(|window| window == needle) {
                found.push(format!("{name} in {}", path.display()));
            }
        }
    }
    count
}

#[test]
fn no_secret_is_written_down() {
    let cases = Cases::of("canaries");
    let mut world = World::start_with(1, |place| _ = place.set("auth", "ws_secret", &format!("{SOCKET_SECRET:?}")));
    let mut owner = world.user(0);
    let person = token("person with a secret");
    let mut by_token = world.server.with_token(&person);
    by_token.get("/v1/me").expect(200);
    let booted = by_token.post("/v1/keys/bootstrap", &json!({"name": "first"})).expect(201);
    let made = owner.post("/v1/keys", &json!({})).expect(201);
    let rotated = owner.post(&format!("/v1/keys/{}/rotate", int(&made, "/id")), &json!({})).expect(201);
    let socket = owner.post("/v1/keys/ws-token", &json!({})).expect(200);
    let mut secrets: Vec<(&str, String)> = vec![
        ("the first key", world.users[0].key.clone()),
        ("an identity token", person.clone()),
        ("its signature", person.rsplit('.').next().expect("three parts").to_string()),
        ("a socket token", text(&socket, "/token").to_string()),
        ("the configured secret", SECRET.to_string()),
        ("the secret of socket tokens", SOCKET_SECRET.to_string()),
    ];
    for (name, record) in [("bootstrapped", &booted), ("made", &made), ("rotated", &rotated)] {
        secrets.push((name, text(record, "/raw_key").to_string()));
        secrets.push((name, text(record, "/venue_api_key").to_string()));
    }
    // Now in all the wrong places: paths, queries, bodies, broken heads, a token instead of a key.
    let rain = limit(&world.markets.rain, "BUY", "0.30", "10");
    for (_, secret) in &secrets {
        let plain: String = secret
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() || b"_-.".contains(&byte) {
                    (byte as char).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect();
        let requests = [
            Request::get(&format!("/v1/orders/{plain}")),
            Request::get(&format!("/v1/{plain}")),
            Request::get(&format!("/v1/me?token={plain}")),
            Request::get("/v1/orders").header("X-API-Key", secret),
            Request::get("/v1/me").header("Authorization", &format!("Bearer {secret}")),
            Request::get("/v1/me").header("Authorization", &format!("Bearer {secret}x")),
            Request::get("/v1/health").header("X-Request-Id", &format!("{secret} ")),
            Request::post("/v1/orders").text("application/json", &format!("{{\"owner\":\"{secret}\"")),
            Request::post("/v1/orders").json(&changed(&rain, &json!({"owner": secret, "quantity": secret}))),
            Request::post("/v1/keys/bootstrap").json(&json!({"name": 7, "secret": secret})),
        ];
        for request in requests {
            owner.send(&request);
            world.public().send(&request);
            cases.one();
        }
        send_raw(
            world.server.address(),
            format!("GET / HTTP/1.1\r\nX-API-Key: {secret}\r\nX-API-Key: {secret}\r\n\r\n").as_bytes(),
        );
        send_raw(world.server.address(), format!("{secret}\r\n\r\n").as_bytes());
        cases.add(2);
    }
    // A crash, a start, a clean stop: everything that is ever written is on disk.
    let mut output = world.server.output();
    world.crash();
    output.push_str(&world.server.output());
    let data = world.place.data();
    output.push_str(&world.server.stop());

    // The raw text, its random half in hex, and the bytes of the hex.
    let mut needles: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, secret) in &secrets {
        needles.push((name.to_string(), secret.as_bytes().to_vec()));
        if let Some(hex) = secret.strip_prefix("svc_live_") {
            needles.push((format!("{name} (hex)"), hex.as_bytes().to_vec()));
            let raw = (0..32).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).expect("hex")).collect();
            needles.push((format!("{name} (bytes)"), raw));
        }
    }
    let mut found = Vec::new();
    let files = files_with(&data, &needles, &mut found);
    assert!(files >= 3, "the data directory was searched");
    assert!(found.is_empty(), "secrets on disk: {found:?}");
    for (name, needle) in &needles {
        let shown = output.as_bytes().windows(needle.len()).any(|window| window == needle);
        assert!(!shown, "{name} was printed:\n{output}");
        cases.one();
    }
    // The search finds what exists.
    let mut control = Vec::new();
    let id = vec![("a key id".to_string(), text(&made, "/key_prefix").as_bytes().to_vec())];
    files_with(&data, &id, &mut control);
    assert!(!control.is_empty(), "the prefix of a key is stored, and found");
}

#[test]
fn only_the_owner_can_read_the_data() {
    let cases = Cases::of("permissions");
    let world = World::start(1);
    let data = world.place.data();
    let mode = |path: &Path| fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700, "{}", data.display());
    for entry in fs::read_dir(&data).expect("the data directory") {
        let path = entry.expect("an entry").path();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expected, "{}", path.display());
        cases.one();
    }
    let keys = fs::read_dir(world.place.root()).expect("the path").filter_map(|entry| {
        let path = entry.expect("an entry").path();
        path.extension().is_some_and(|extension| extension == "jsonl").then_some(path)
    });
    for path in keys {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        cases.one();
    }
}
