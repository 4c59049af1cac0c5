//! A request with a common head takes the fast path through the server; an additional unknown header sends the same
//! request through the HTTP library. Two users send the same requests, one on each path: checks, counts and answers
//! must be the same.

use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use tests::cases::Cases;
use tests::http::{Client, Request, Response, connect};
use tests::json::text;
use tests::world::{World, changed, limit, market};

/// An unknown header, so a head with it is not a common one.
const ODD: (&str, &str) = ("X-Nothing", "1");
/// Sent with requests that have no id of their own: the server would generate another one each time.
const REQUEST_ID: (&str, &str) = ("X-Request-Id", "n");
/// Headers that depend on the time.
const AGE: &str = "\"quote_age_ms\":";
/// Digits in a row that are an id or a time; amounts and sizes are shorter.
const ID_DIGITS: usize = 8;

/// An answer without the user's own values: ids and times become `#`. Header values lose all digits, since windows of
/// requests advance between the two requests, and a generated request id is replaced by its length.
fn shape(response: &Response) -> String {
    let shown = |name: &str, value: &str| match name.eq_ignore_ascii_case(REQUEST_ID.0) && value.len() > 16 {
        true => format!("{name}: made, {} bytes", value.len()),
        false => format!("{name}: {}", cut(value, 1)),
    };
    // Headers of different names have no order.
    let mut headers: Vec<_> = response.headers.iter().map(|(name, value)| shown(name, value)).collect();
    headers.sort();
    let body = cut(&response.lossy(), ID_DIGITS);
    let body = match body.split_once(AGE) {
        Some((before, behind)) => format!("{before}{AGE}{}", behind.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => body,
    };
    format!("{}\n{}\n\n{body}", response.status, headers.join("\n"))
}

/// Runs of at least this many digits become `#`, and with them the hex digits and hyphens of an id.
fn cut(text: &str, digits: usize) -> String {
    let (mut out, mut run) = (String::new(), String::new());
    for letter in text.chars().chain(['\n']) {
        if letter.is_ascii_digit() || (!run.is_empty() && digits > 1 && "-:.TZ".contains(letter)) {
            run.push(letter);
            continue;
        }
        let long = run.chars().filter(char::is_ascii_digit).count() >= digits;
        out.push_str(if long { "#" } else { &run });
        run.clear();
        out.push(letter);
    }
    out
}

/// The requests of both. `{order}` is the order of the last placement.
fn requests(world: &World) -> Vec<Request> {
    let m = &world.markets;
    let get = Request::get;
    let delete = |path: &str| Request::new("DELETE", path);
    let post = |body: &Value| Request::post("/v1/orders").json(body);
    let raw = |body: &str| Request::post("/v1/orders").text("application/json", body);
    let rest = limit(&m.rain, "BUY", "0.37", "20");
    let token = m.rain.yes();
    let mut requests = vec![
        // Reads, valid and invalid.
        get("/v1/account/balance"),
        get("/v1/orders"),
        get("/v1/orders?limit=2&status=PENDING"),
        get("/v1/orders?limit=x"),
        get("/v1/orders?limit=2&limit=3"),
        get("/v1/orders?%zz=1"),
        get("/v1/orders/12345"),
        get("/v1/orders/no-number"),
        get("/v1/account/positions"),
        get(&format!("/v1/markets/{}", m.rain.condition)),
        get("/v1/markets?limit=3"),
        get(&format!("/v1/book?token_id={token}")),
        get("/v1/book"),
        get("/v1/book?token_id=1"),
        get("/v1/nothing"),
        get("/v1/orders/"),
        get("//v1/orders"),
        get("/v1/%6frders"),
        Request::new("PATCH", "/v1/orders").json(&json!({})),
        Request::post("/v1/markets").json(&json!({})),
        get("/v1/orders").header("Accept-Encoding", "gzip"),
        get("/v1/account/balance").header("X-Request-Id", "mine-1"),
        get("/v1/account/balance").header("X-Request-Id", "not valid"),
        get("/v1/account/balance").header("X-Request-Id", &"r".repeat(300)),
        // Accepted placements.
        post(&rest),
        get("/v1/orders/{order}"),
        delete("/v1/orders/{order}"),
        delete("/v1/orders/{order}"),
        delete("/v1/orders/1"),
        post(&market(&m.rain, "BUY", "0.42", "20")),
        get("/v1/orders/{order}"),
        post(&changed(&limit(&m.rain, "BUY", "0.42", "100"), &json!({"time_in_force": "FAK"}))),
        post(&limit(&m.rain, "SELL", "0.90", "5")),
        post(&changed(&rest, &json!({"client_order_id": "c1"}))),
        post(&changed(&rest, &json!({"client_order_id": "c1"}))),
        post(&changed(&rest, &json!({"client_order_id": "c1", "price": "0.36"}))),
        post(&rest).header("Idempotency-Key", "k1"),
        post(&rest).header("Idempotency-Key", "k1"),
        post(&limit(&m.vote, "BUY", "0.64", "5")).header("Idempotency-Key", "k1"),
        post(&rest).header("Idempotency-Key", ""),
        post(&rest).header("Idempotency-Key", &"i".repeat(500)),
        // Refused placements.
        post(&changed(&rest, &json!({"price": "0.375"}))),
        post(&changed(&rest, &json!({"price": "2"}))),
        post(&changed(&rest, &json!({"quantity": "0"}))),
        post(&changed(&rest, &json!({"quantity": "1"}))),
        post(&changed(&rest, &json!({"quantity": "99999999"}))),
        post(&changed(&rest, &json!({"side": "UP"}))),
        post(&changed(&rest, &json!({"market_id": "0x00"}))),
        post(&changed(&rest, &json!({"price": null}))),
        post(&limit(&m.halted, "BUY", "0.30", "5")),
        post(&limit(&m.rain, "SELL", "0.50", "5000")),
        raw(""),
        raw("{"),
        raw("[]"),
        raw("\u{feff}{}"),
        raw("{\"market_id\": \"\\ud800\"}"),
        raw(&format!("{}{}", "[".repeat(2_000), "]".repeat(2_000))),
        Request::post("/v1/orders").text("text/plain", &rest.to_string()),
        Request::post("/v1/orders").text("Application/JSON", &rest.to_string()),
        Request::post("/v1/orders"),
        Request::post("/v1/orders/batch").json(&json!({"orders": [rest, {"side": 1}]})),
        Request::post("/v1/heartbeats").json(&json!({"interval_ms": 5_000})),
        delete("/v1/heartbeats"),
        Request::post("/v1/cancel-all").json(&json!({})),
    ];
    // A body in a request that takes none.
    requests.push(get("/v1/account/balance").text("application/json", "{}"));
    requests
}

#[test]
fn both_paths_give_the_same_answer() {
    let cases = Cases::of("requests on both paths");
    let world = World::start(2);
    let (mut plain, mut long) = (world.user(0), world.user(1).with_header(ODD.0, ODD.1));
    let mut accepted = 0;
    let mut orders = [String::new(), String::new()];
    for mut request in requests(&world) {
        if !request.headers.iter().any(|(name, _)| name == REQUEST_ID.0) {
            request = request.header(REQUEST_ID.0, REQUEST_ID.1);
        }
        let ask = |client: &mut Client, order: &mut String| {
            let request = Request { path: request.path.replace("{order}", order), ..request.clone() };
            let answer = client.send(&request);
            if request.path == "/v1/orders"
                && request.method == "POST"
                && let Some(id) = answer.json().get("order_id").and_then(Value::as_u64)
            {
                *order = id.to_string();
            }
            answer
        };
        let [first, second] = &mut orders;
        let (short, library) = (ask(&mut plain, first), ask(&mut long, second));
        accepted += usize::from(short.status < 300);
        assert_eq!(shape(&short), shape(&library), "{} {}", request.method, request.path);
        cases.one();
    }
    assert!(accepted > 15, "most of the reads and some of the placements: {accepted}");
    let account = |client: &mut Client| client.get("/v1/account/balance").json();
    let (one, other) = (account(&mut plain), account(&mut long));
    assert_eq!(text(&one, "/balance"), text(&other, "/balance"), "the same effects: {one} {other}");
}

/// All in one write, the two paths alternating, with bodies of both framings: the answers come in order.
#[test]
fn requests_of_both_paths_in_one_write_are_answered_in_order() {
    let cases = Cases::of("pipelined requests on both paths");
    let world = World::start(1);
    let key = &world.users[0].key;
    let address = world.server.address();
    let body = limit(&world.markets.rain, "BUY", "0.37", "20").to_string();
    for split in [1, 7, 97, 1_000, usize::MAX] {
        let mut bytes = Vec::new();
        let count = 40;
        for number in 0..count {
            let more = ["", "X-Nothing: 1\r\n", "Accept-Encoding: gzip\r\n", "Authorization: Basic x\r\n"][number % 4];
            let head = format!("Host: x\r\nX-API-Key: {key}\r\nX-Request-Id: n{number}\r\n{more}");
            let request = match number % 5 {
                0 => format!("GET /v1/account/balance HTTP/1.1\r\n{head}\r\n"),
                1 => format!("GET /v1/nothing HTTP/1.1\r\n{head}\r\n"),
                2 => format!(
                    "POST /v1/orders HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                ),
                3 => format!(
                    "POST /v1/orders HTTP/1.1\r\n{head}Content-Type: application/json\r\nX-Nothing: 1\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                ),
                _ => format!("HEAD /v1/health HTTP/1.1\r\n{head}\r\n"),
            };
            bytes.extend_from_slice(request.as_bytes());
        }
        // Only the library finds the end of this one, so it is the last of its connection: what follows is not read.
        bytes.extend_from_slice(
            format!(
                "POST /v1/orders HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nX-Request-Id: n{count}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\nGET /v1/account/balance HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nX-Request-Id: n{}\r\nConnection: close\r\n\r\n",
                body.len(),
                count + 1
            )
            .as_bytes(),
        );
        let mut stream = connect(address).expect("the server accepts connections");
        let mut reading = BufReader::new(stream.try_clone().expect("a second handle"));
        let writer = std::thread::spawn(move || {
            for piece in bytes.chunks(split.min(bytes.len())) {
                stream.write_all(piece).expect("the server reads");
            }
            stream
        });
        let mut all = Vec::new();
        reading.read_to_end(&mut all).expect("the server closes after the last answer");
        drop(writer.join().expect("everything was sent"));
        let ids: Vec<String> = all
            .split(|byte| *byte == b'\n')
            .map(|line| String::from_utf8_lossy(line).to_ascii_lowercase())
            .filter_map(|line| line.trim_end().strip_prefix("x-request-id: ").map(str::to_owned))
            .collect();
        let expected: Vec<String> = (0..=count).map(|number| format!("n{number}")).collect();
        assert_eq!(ids, expected, "pieces of {split}");
        cases.add(ids.len());
    }
}
