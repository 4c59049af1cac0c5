//! Malformed HTTP: refused and closed, never a crash, never a smuggled request.

use std::io::Write;
use tests::cases::Cases;
use tests::http::{RawAnswer, ask_raw, connect, read_raw, send_raw};
use tests::world::World;

fn key_line(world: &World) -> String {
    format!("X-API-Key: {}\r\n", world.users[0].key)
}

fn post(lines: &str, body: &str) -> Vec<u8> {
    format!("POST /v1/orders HTTP/1.1\r\n{lines}\r\n{body}").into_bytes()
}

fn get(target: &str, lines: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\n{lines}\r\n").into_bytes()
}

/// A refusal is an envelope with its headers, even for bytes that never became a request.
fn assert_refused(name: &str, answer: &RawAnswer, statuses: &[u16]) {
    let Some(response) = &answer.response else {
        assert!(answer.ends(), "{name}: neither an answer nor an end");
        return;
    };
    assert!(statuses.contains(&response.status), "{name}: {} {}", response.status, response.lossy());
    assert!(!response.body.is_empty(), "{name}: a bare {}", response.status);
    response.assert_envelope();
    assert_eq!(response.header("X-Svc-Code"), Some(response.code().as_str()), "{name}");
    assert_eq!((response.count("X-Request-Id"), response.count("Date")), (1, 1), "{name}");
}

#[test]
fn requests_that_could_mean_two_things_are_refused_and_closed() {
    let cases = Cases::of("ambiguous requests");
    let world = World::start(1);
    let key = key_line(&world);
    let host = "Host: x\r\n";
    let json = "Content-Type: application/json\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("length, then chunked", post(&format!("{host}{key}{json}Content-Length: 5\r\n{chunked}"), "0\r\n\r\n")),
        ("two lengths", post(&format!("{host}{key}Content-Length: 2\r\nContent-Length: 3\r\n"), "{}x")),
        ("a list of lengths", post(&format!("{host}{key}Content-Length: 2, 3\r\n"), "{}x")),
        ("length below zero", post(&format!("{host}{key}Content-Length: -1\r\n"), "")),
        ("length with a plus", post(&format!("{host}{key}Content-Length: +2\r\n"), "{}")),
        ("length in hex", post(&format!("{host}{key}Content-Length: 0x2\r\n"), "{}")),
        ("length beyond numbers", post(&format!("{host}{key}Content-Length: 99999999999999999999999\r\n"), "{}")),
        ("gzip coding", post(&format!("{host}{key}Transfer-Encoding: gzip\r\n"), "")),
        ("gzip before chunked", post(&format!("{host}{key}Transfer-Encoding: gzip, chunked\r\n"), "0\r\n\r\n")),
        ("chunked before gzip", post(&format!("{host}{key}Transfer-Encoding: chunked, gzip\r\n"), "0\r\n\r\n")),
        ("identity coding", post(&format!("{host}{key}Transfer-Encoding: identity\r\n"), "")),
        ("chunked twice", post(&format!("{host}{key}{chunked}{chunked}"), "0\r\n\r\n")),
        ("an odd coding", post(&format!("{host}{key}Transfer-Encoding: xchunked\r\n"), "0\r\n\r\n")),
        ("no host", get("/v1/health", &key)),
        ("two hosts", get("/v1/health", "Host: a\r\nHost: b\r\n")),
        ("two keys", get("/v1/orders", &format!("{host}{key}{key}"))),
        (
            "two authorizations",
            get("/v1/orders", &format!("{host}Authorization: Bearer a\r\nAuthorization: Bearer b\r\n")),
        ),
        (
            "two idempotency keys",
            post(&format!("{host}{key}{json}Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n"), "{}"),
        ),
        ("two content types", post(&format!("{host}{key}{json}{json}Content-Length: 2\r\n"), "{}")),
        ("a bell in a key", get("/v1/orders", &format!("{host}X-API-Key: a\u{7}b\r\n"))),
        ("a zero in a header", get("/v1/orders", &format!("{host}X-Request-Id: a\0b\r\n"))),
        ("a bare return", get("/v1/orders", &format!("{host}X-Request-Id: a\rb\r\n"))),
        ("a folded header", get("/v1/health", &format!("{host}X-Request-Id: a\r\n b\r\n"))),
        ("a space before the colon", get("/v1/health", &format!("{host}X-Request-Id : a\r\n"))),
        ("a header without colon", get("/v1/health", &format!("{host}nonsense\r\n"))),
        ("an empty header name", get("/v1/health", &format!("{host}: x\r\n"))),
        ("a method with a bracket", b"G<T /v1/health HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("no method", b" /v1/health HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("no target", b"GET HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("a space in the target", b"GET /v1/ health HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("an unknown version", b"GET /v1/health HTTP/3.7\r\nHost: x\r\n\r\n".to_vec()),
        ("HTTP/2 by surprise", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("noise", (0..=255).cycle().take(4_000).collect()),
        ("65 headers", get("/v1/health", &(0..65).fold(host.to_string(), |all, n| format!("{all}A{n}: x\r\n")))),
        ("a head of 20 KiB", get("/v1/health", &format!("{host}X-Long: {}\r\n", "x".repeat(20_000)))),
        ("a target of 9 KiB", get(&format!("/v1/health?{}", "x".repeat(9_000)), host)),
        ("a chunk without size", post(&format!("{host}{key}{json}{chunked}"), "zz\r\n{}\r\n0\r\n\r\n")),
        ("a chunk beyond numbers", post(&format!("{host}{key}{json}{chunked}"), "fffffffffffffffff\r\n")),
    ];
    for (name, bytes) in rows {
        let answer = send_raw(world.server.address(), &bytes);
        assert_refused(name, &answer, &[400, 413, 414, 431, 505]);
        assert!(answer.ends(), "{name}: the connection is closed");
        cases.one();
    }
    world.public().get("/v1/health").expect(200);
}

#[test]
fn bodies_have_a_size() {
    let cases = Cases::of("body sizes");
    let world = World::start(1);
    let key = key_line(&world);
    let megabyte = "x".repeat(1 << 20);
    let head = |more: &str| format!("Host: x\r\nContent-Type: application/json\r\n{more}");
    // Declared too large: refused before any credential is checked.
    for credential in ["", key.as_str()] {
        let bytes = post(&head(&format!("{credential}Content-Length: {}\r\n", (1 << 20) + 1)), "");
        let answer = send_raw(world.server.address(), &bytes);
        answer.response.expect("an answer").refused(413, "HTTP_413");
        cases.one();
    }
    // Not declared: detected while reading.
    let chunks = format!("100000\r\n{megabyte}\r\n10\r\n{}\r\n0\r\n\r\n", "x".repeat(16));
    let answer =
        send_raw(world.server.address(), &post(&head(&format!("{key}Transfer-Encoding: chunked\r\n")), &chunks));
    if let Some(response) = answer.response {
        response.refused(413, "HTTP_413");
    }
    // Just below the limit: parsed as a body.
    let spaces = " ".repeat((1 << 20) - 2);
    let inside = post(&head(&format!("{key}Content-Length: {}\r\n", 1 << 20)), &format!("{spaces}{{}}"));
    ask_raw(world.server.address(), &inside).expect("an answer").refused(422, "VALIDATION_FAILED");
    cases.add(2);
}

#[test]
fn odd_but_sound_requests_are_answered() {
    let cases = Cases::of("odd requests");
    let world = World::start(1);
    let key = key_line(&world);
    let rows: Vec<(&str, Vec<u8>, &[u16])> = vec![
        ("old protocol", b"GET /v1/health HTTP/1.0\r\nHost: x\r\n\r\n".to_vec(), &[200]),
        ("close requested", get("/v1/health", "Host: x\r\nConnection: close\r\n"), &[200]),
        ("absolute target", get("http://x/v1/health", "Host: x\r\n"), &[200, 400, 404]),
        ("a star", b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &[200, 204, 400, 404]),
        ("a tunnel", b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), &[400, 404, 405]),
        (
            "chunked",
            post(
                &format!("Host: x\r\n{key}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"),
                "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
            ),
            &[422],
        ),
        (
            "chunked in capitals",
            post(
                &format!("Host: x\r\n{key}Content-Type: application/json\r\nTransfer-Encoding: Chunked\r\n"),
                "2\r\n{}\r\n0\r\n\r\n",
            ),
            &[422, 400],
        ),
        ("a body with a GET", b"GET /v1/health HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}".to_vec(), &[200]),
        (
            "an upgrade that is not supported",
            get("/v1/health", "Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"),
            &[200],
        ),
        ("a fragment", get("/v1/health#x", "Host: x\r\n"), &[200, 400, 404]),
        ("percent alone", get("/v1/orders/%", &format!("Host: x\r\n{key}")), &[404]),
        ("percent nonsense", get("/v1/orders/%zz", &format!("Host: x\r\n{key}")), &[404]),
        ("a coded zero", get("/v1/orders/%00", &format!("Host: x\r\n{key}")), &[404]),
        ("coded bytes that are not text", get("/v1/orders/%ff%fe", &format!("Host: x\r\n{key}")), &[404]),
        ("dots", get("/v1/../v1/health", "Host: x\r\n"), &[404]),
        ("coded slash", get("/v1%2fhealth", "Host: x\r\n"), &[404]),
        ("a query of nonsense", get("/v1/book?&&==&%ff=%&token_id=%zz", "Host: x\r\n"), &[400]),
        ("a query that repeats", get("/v1/book?token_id=1&token_id=x", "Host: x\r\n"), &[400]),
    ];
    for (name, bytes, statuses) in rows {
        let response = ask_raw(world.server.address(), &bytes).unwrap_or_else(|| panic!("{name}: no answer"));
        assert!(statuses.contains(&response.status), "{name}: {} {}", response.status, response.lossy());
        if response.status >= 400 && !response.body.is_empty() {
            response.assert_envelope();
        }
        cases.one();
    }
    // Several requests in one packet are answered in order, and nothing is left over.
    let many: Vec<u8> = (0..5).flat_map(|n| get("/v1/health", &format!("Host: x\r\nX-Request-Id: n{n}\r\n"))).collect();
    let stream = connect(world.server.address()).expect("a connection");
    let mut writer = stream.try_clone().expect("one more end");
    writer.write_all(&many).expect("five requests");
    let mut seen = String::new();
    let mut reader = std::io::BufReader::new(stream);
    tests::eventually("five answers", || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut reader, &mut line).expect("more");
        seen.push_str(&line.to_lowercase());
        (0..5).all(|n| seen.contains(&format!("x-request-id: n{n}\r\n"))).then_some(())
    });
    let places: Vec<usize> = (0..5).map(|n| seen.find(&format!("x-request-id: n{n}\r\n")).expect("an id")).collect();
    assert!(places.is_sorted(), "answers keep the order of requests");
    // A client sends its body when the server sends 100 Continue.
    let expecting = post(
        &format!("Host: x\r\n{key}Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"),
        "",
    );
    let mut stream = connect(world.server.address()).expect("a connection");
    stream.write_all(&expecting).expect("a head");
    stream.write_all(b"{}").expect("a body");
    let answer = read_raw(stream).response.expect("an answer");
    answer.refused(422, "VALIDATION_FAILED");
    cases.add(2);
}

/// An idle client cannot hold a connection: half a head and half a body end after their timeouts, which by default and
/// at most are 5 s and 10 s.
#[test]
fn half_a_request_ends() {
    let cases = Cases::of("half requests");
    let world = World::start_with(1, |place| {
        place.set("http", "header_timeout_ms", "300").set("http", "body_timeout_ms", "600");
    });
    let key = key_line(&world);
    let halves = [
        "GET /v1/heal".to_string(),
        "GET /v1/health HTTP/1.1\r\nHost: x\r\nX-".to_string(),
        format!(
            "POST /v1/orders HTTP/1.1\r\nHost: x\r\n{key}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
        ),
        format!("POST /v1/orders HTTP/1.1\r\nHost: x\r\n{key}Transfer-Encoding: chunked\r\n\r\n5\r\n{{"),
    ];
    let address = world.server.address();
    std::thread::scope(|scope| {
        let waiters: Vec<_> = halves
            .iter()
            .map(|half| {
                scope.spawn(move || {
                    let mut stream = connect(address).expect("a connection");
                    stream.write_all(half.as_bytes()).expect("half a request");
                    let answer = read_raw(stream);
                    assert!(answer.ends(), "{half:?} is still open");
                    if let Some(response) = answer.response {
                        assert!((400..500).contains(&response.status), "{half:?}: {}", response.status);
                    }
                })
            })
            .collect();
        // Meanwhile other clients are served.
        world.user(0).get("/v1/orders").expect(200);
        for waiter in waiters {
            waiter.join().expect("an end");
            cases.one();
        }
    });
}

/// A request hidden in the body of another is never answered.
#[test]
fn nothing_is_smuggled() {
    let cases = Cases::of("smuggling");
    let world = World::start(1);
    let key = key_line(&world);
    let hidden = "DELETE /v1/orders/1 HTTP/1.1\r\nHost: x\r\n\r\n";
    let rows: [(Vec<u8>, &[u16]); 3] = [
        (
            post(
                &format!("Host: x\r\n{key}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n", 5 + hidden.len()),
                &format!("0\r\n\r\n{hidden}"),
            ),
            &[400],
        ),
        (
            // hyper drops a length that follows chunked; the empty body is refused nevertheless, and the connection
            // ends.
            post(
                &format!("Host: x\r\n{key}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"),
                &format!("0\r\n\r\n{hidden}"),
            ),
            &[400],
        ),
        (post(&format!("Host: x\r\n{key}Content-Length: 0\r\nContent-Length: {}\r\n", hidden.len()), hidden), &[400]),
    ];
    for (bytes, expected) in rows {
        let mut stream = connect(world.server.address()).expect("a connection");
        stream.write_all(&bytes).expect("all of it");
        let mut all = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut all);
        let text = String::from_utf8_lossy(&all).into_owned();
        let statuses: Vec<u16> =
            text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].parse().expect("a status")).collect();
        assert_eq!(statuses, expected, "{text}");
        cases.one();
    }
}
