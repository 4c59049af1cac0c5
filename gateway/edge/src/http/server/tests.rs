//! What a peer can do to a connection, byte by byte, over real sockets.

mod served;

use served::{HEADLESS, PATIENCE, Served, serve_table, statuses, text_until_closed, with_server};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SHORT: &str =
    "[http]\nheader_timeout_ms = 100\nidle_timeout_ms = 300\nbody_timeout_ms = 100\nwrite_timeout_ms = 200";

#[test]
fn malformed_requests_are_answered_and_the_connection_ends() {
    let many_headers = format!("GET /v1/time HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(64));
    let large_head = format!("GET /v1/time HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "b".repeat(17_000));
    let long_target = format!("GET /v1/time?{} HTTP/1.1\r\nHost: x\r\n\r\n", "b".repeat(8_200));
    let chunked_too_large = format!(
        "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        format!("400\r\n{}\r\n", " ".repeat(1_024)).repeat(1_100)
    );
    with_server(SHORT, async |served: Served| {
        for (request, expected) in [
            ("GARBAGE\r\n\r\n", &[400][..]),
            ("GET /v1/time HTTP/1.1\r\n\r\n", &[400]),
            ("GET /v1/time HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", &[400]),
            ("GET /v1/time HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", &[400]),
            ("GET /v1/time HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n", &[400]),
            ("GET /v1/time HTTP/1.1\r\nHost : x\r\n\r\n", &[400]),
            ("GET /v1/time HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n", &[400]),
            ("GET /v1/ti me HTTP/1.1\r\nHost: x\r\n\r\n", &[400]),
            ("GET /v1/time HTTP/3.0\r\nHost: x\r\n\r\n", &[400]),
            ("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", &[400]),
            ("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}", &[400]),
            ("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", &[400]),
            ("POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", &[400]),
            ("POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", &[400]),
            ("POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", &[400]),
            ("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n{}", &[413]),
            (&many_headers, &[431]),
            (&large_head, &[431]),
            (&long_target, &[400]),
            (&chunked_too_large, &[413]),
            // A smuggled second request is never answered.
            (
                "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n",
                &[400],
            ),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[]),
        ] {
            let text = served.exchange(request.as_bytes()).await;
            let found = statuses(&text);
            let shown = &request[..request.len().min(90)];
            assert!(found == expected || (expected.is_empty() && found.iter().all(|s| *s >= 400)), "{shown:?}: {text}");
            if expected.is_empty() && text.is_empty() {
                continue;
            }
            // The response has the same form for every cause, even if little of the head could be read.
            let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{shown:?}: {text:?}"));
            let code = format!("HTTP_{}", found[0]);
            assert!(body.starts_with(&format!("{{\"error\":\"{code}\",\"message\":\"")), "{shown:?}: {text}");
            for line in
                [&format!("x-svc-code: {code}"), "x-request-id: ", "connection: close", "content-type: ", "date: "]
            {
                assert_eq!(head.matches(line).count(), 1, "{shown:?}: {line} in {text}");
            }
            assert!(head.contains(&format!("content-length: {}", body.len())), "{shown:?}: {text}");
        }
        assert_eq!(served.connections.open(), 0);
    });
}

/// Parsers that take bare line feeds and parsers that do not would read different requests from such a head. Each one
/// is answered with 400 and ends the connection, on both ways of reading: the fast path, and hyper because of a header,
/// a version, a transfer coding or an earlier request of the connection.
#[test]
fn a_line_of_a_head_that_ends_with_a_bare_line_feed_is_refused() {
    let chunked = "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let odd = "GET /v1/time HTTP/1.1\r\nHost: x\r\nX-Other: 1\r\n\r\n";
    let plain = "GET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n";
    let hostile = [
        "GET /v1/time HTTP/1.1\nHost: x\r\n\r\n",
        "GET /v1/time HTTP/1.1\r\nHost: x\n\r\n",
        "GET /v1/time HTTP/1.1\r\nHost: x\r\n\n",
        "GET /v1/time HTTP/1.1\nHost: x\n\n",
        "\nGET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /v1/time HTTP/1.1\r\nHost: x\r\nX-Other: 1\nX-More: 2\r\n\r\n",
        "GET /v1/time HTTP/1.0\nHost: x\n\n",
        "GET /v1/time HTTP/1.1\nHost: x\nConnection: close\n\n",
        "HEAD /v1/time HTTP/1.1\nHost: x\r\n\r\n",
        "POST /v1/echo HTTP/1.1\r\nHost: x\nContent-Length: 2\r\n\r\n{}",
        "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "POST /v1/echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\nContent-Length: 2\r\n\r\n",
        "GET /v1/time HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\nUpgrade: websocket\r\n\r\n",
    ];
    with_server(SHORT, async |served: Served| {
        for head in hostile {
            for (before, answered) in [("", 0), (plain, 1), (odd, 1), (&plain.repeat(40), 40)] {
                // The request after the refused one is never answered.
                let text = served.exchange(format!("{before}{head}{plain}").as_bytes()).await;
                let expected: Vec<u16> = std::iter::repeat_n(200, answered).chain([400]).collect();
                assert_eq!(statuses(&text), expected, "{head:?} after {answered}: {text}");
                assert!(text.contains("connection: close"), "{text}");
                assert!(head.starts_with("HEAD") || text.contains("bare line feed"), "{text}");
            }
            // A request whose end only hyper can find is the last of its connection.
            let text = served.exchange(format!("{chunked}{head}").as_bytes()).await;
            assert_eq!(statuses(&text), [200], "{head:?}: {text}");
        }
        let text = served.exchange(format!("\r\n{plain}{odd}\r\n{chunked}").as_bytes()).await;
        assert_eq!(statuses(&text), [200; 3], "{text}");
    });
    println!("bare line feeds: {} cases", 2 * (5 * hostile.len() + 1));
}

/// A page whose name was made to resolve to 127.0.0.1 gets no response from a loopback listener, on both ways of
/// reading and at any point of a connection.
#[test]
fn a_listener_on_loopback_answers_to_its_own_names() {
    let get = |host: &str, more: &str| format!("GET /v1/time HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
    let good = ["127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "localhost:1", "papertape", "trade.example:443"];
    let bad = ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"];
    let lines = ["", "X-Other: 1\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n", "Connection: keep-alive\r\n"];
    with_server("[server]\nhosts = [\"trade.example\"]", async |served: Served| {
        let end = "GET /v1/time HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        for more in lines {
            for host in good {
                // The second request uses the cached host.
                let text = served.exchange(format!("{}{}{end}", get(host, more), get(host, more)).as_bytes()).await;
                assert_eq!(statuses(&text), [200; 3], "{host}: {text}");
                for other in bad {
                    let requests = format!("{}{}{}{end}", get(host, more), get(other, more), get(host, more));
                    let text = served.exchange(requests.as_bytes()).await;
                    assert_eq!(statuses(&text), [200, 421, 200, 200], "{other} after {host}: {text}");
                    assert!(text.contains("{\"error\":\"MISDIRECTED_REQUEST\",\"message\":"), "{text}");
                    assert!(text.contains("x-svc-code: MISDIRECTED_REQUEST\r\n"), "{text}");
                }
            }
        }
        for (request, status) in [
            ("GET /v1/time HTTP/1.0\r\n\r\n", 200),
            ("GET /v1/time HTTP/1.0\r\nHost: evil.example\r\n\r\n", 421),
            ("GET /v1/time HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nX-Request-Id: mine\r\n\r\n", 421),
            ("GET http://evil.example/v1/time HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 421),
            ("GET http://localhost:80/v1/time HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200),
            ("POST /v1/echo HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 421),
            ("POST /v1/echo HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", 421),
        ] {
            let text = served.exchange(request.as_bytes()).await;
            assert_eq!(statuses(&text), [status], "{request:?}: {text}");
            assert!(!request.contains("mine") || text.contains("x-request-id: mine\r\n"), "{text}");
        }
    });
    with_server("[server]\nlisten = \"0.0.0.0:8080\"", async |served: Served| {
        let text = served.exchange(get("evil.example", "Connection: close\r\n").as_bytes()).await;
        assert_eq!(statuses(&text), [200], "a listener that others reach");
    });
    println!("hosts of a loopback listener: {} cases", 2 * (lines.len() * good.len() * (1 + bad.len()) + 8));
}

#[test]
fn what_follows_a_body_of_two_lengths_is_never_answered() {
    with_server(SHORT, async |served: Served| {
        let smuggled = "GET /v1/time HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        for pair in
            ["Content-Length: 6\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 6"]
        {
            // By the coding, the body is empty and a request follows; by the length, the body includes the start of it.
            let request = format!("POST /v1/echo HTTP/1.1\r\nHost: x\r\n{pair}\r\n\r\n0\r\n\r\n{smuggled}");
            let text = served.exchange(request.as_bytes()).await;
            assert!(matches!(statuses(&text)[..], [400] | [200]), "{pair}: {text}");
        }
    });
}

#[test]
fn slow_peers_meet_their_deadlines() {
    with_server(SHORT, async |served: Served| {
        // Nothing at all, and half a head: 100 ms. A body that does not arrive: 100 ms and an error envelope.
        for (sent, at_least, status) in [
            ("", 90, None),
            ("GET /v1/time HT", 90, None),
            ("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{", 90, Some(400)),
            // Answered, then idle: 300 ms.
            ("GET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n", 290, Some(200)),
        ] {
            let started = Instant::now();
            let text = served.exchange(sent.as_bytes()).await;
            let took = started.elapsed().as_millis();
            assert!(took >= at_least, "{sent:?} took {took} ms");
            assert_eq!(statuses(&text).first().copied().filter(|s| *s != 408), status, "{sent:?}: {text}");
        }
        // A head that arrives in drips still has a deadline, also on a connection that was idle before.
        let mut stream = served.connect().await;
        stream.write_all(b"GET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut piece = [0; 1_024];
        assert!(stream.read(&mut piece).await.unwrap() > 0);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let (mut reading, mut writing) = stream.into_split();
        let drips = async {
            let _ = writing.write_all(b"GET /v1/time?").await;
            while writing.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let end = async { while reading.read(&mut piece).await.is_ok_and(|count| count > 0) {} };
        let ended = async {
            tokio::select! { () = end => {}, () = drips => {} }
        };
        assert!(tokio::time::timeout(PATIENCE, ended).await.is_ok(), "an endless head is still read");
    });
}

#[test]
fn a_peer_that_does_not_read_is_disconnected() {
    with_server(SHORT, async |served: Served| {
        let mut stream = served.connect().await;
        stream.write_all(b"GET /v1/large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let started = Instant::now();
        while served.connections.open() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        while served.connections.open() > 0 {
            assert!(started.elapsed() < PATIENCE, "still held");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(stream);
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    with_server("", async |served: Served| {
        let mut requests = String::new();
        for length in 2..22 {
            let body = format!("{}{{}}", " ".repeat(length - 2));
            requests.push_str(&format!("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"));
        }
        requests.push_str("GET /v1/time HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let text = served.exchange(requests.as_bytes()).await;
        assert_eq!(statuses(&text), vec![200; 21]);
        let lengths: Vec<u64> =
            text.split("{\"length\":").skip(1).map(|rest| rest.split('}').next().unwrap().parse().unwrap()).collect();
        assert_eq!(lengths, (2..22).chain([0]).collect::<Vec<_>>());
    });
}

/// A repeated head has the same meaning; one that differs in a byte has its own.
#[test]
fn a_repeated_head_has_the_same_meaning() {
    // (last part of the path, number of the key, another header line, bytes of the body, status). Only key 0 exists,
    // and echo needs none.
    let rows = [
        ("keyed", 0, "", 2, 200),
        ("keyed", 0, "", 2, 200),
        ("keyed", 0, "", 3, 200),
        ("keyed", 0, "", 3, 200),
        ("keyed", 7, "", 3, 401),
        ("keyed", 7, "", 3, 401),
        ("keyed", 0, "", 3, 200),
        ("keyed", 0, "X-Request-Id: mine-1\r\n", 2, 200),
        ("keyed", 0, "", 2, 200),
        ("keyed", 0, "Accept: */*\r\n", 2, 200),
        ("keyed", 0, "X-Other: 1\r\n", 2, 200),
        ("keyed", 0, "Accept: */*\r\n", 2, 200),
        ("keyed", 0, "", 2, 200),
        ("echo", 7, "", 2, 200),
        ("keyed", 7, "", 2, 401),
        ("echo", 7, "", 2, 200),
        ("echo", 7, "Idempotency-Key: once\r\n", 2, 200),
        ("echo", 7, "", 2, 200),
        ("none", 7, "", 2, 404),
        ("none", 7, "", 2, 404),
        ("keyed", 0, "", 2, 200),
    ];
    serve_table("", HEADLESS, async |served: Served| {
        let mut requests = String::new();
        for (path, key, line, length, _) in rows {
            let body = format!("{}{{}}", " ".repeat(length - 2));
            requests.push_str(&format!(
                "POST /v1/{path} HTTP/1.1\r\nHost: x\r\nX-API-Key: svc_live_{key:064x}\r\n{line}Content-Length: {length}\r\n\r\n{body}"
            ));
        }
        requests.push_str("GET /v1/time HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let text = served.exchange(requests.as_bytes()).await;
        assert_eq!(statuses(&text), rows.iter().map(|(.., status)| *status).chain([200]).collect::<Vec<_>>());
        let lengths: Vec<usize> =
            text.split("{\"length\":").skip(1).map(|rest| rest.split('}').next().unwrap().parse().unwrap()).collect();
        let sound = rows.iter().filter(|(.., status)| *status == 200);
        assert_eq!(lengths, sound.map(|(_, _, _, length, _)| *length).chain([0]).collect::<Vec<_>>());
        assert_eq!(text.matches("mine-1").count(), 1, "{text}");
    });
    println!("heads that come again: {} cases", rows.len());
}

/// Each connection gets its own responses although they are written together, and a peer that breaks its connection
/// does not affect the others.
#[test]
fn each_of_many_connections_gets_its_own_responses() {
    let mut cases = 0;
    for count in [1, 2, 31, 32, 33, 64, 100] {
        with_server("[http]\nwrite_timeout_ms = 200", async |served: Served| {
            let mut streams = Vec::new();
            for _ in 0..count {
                streams.push(served.connect().await);
            }
            for round in 0..3 {
                // All are written before any is read. Among them are a peer that is gone and one that reads nothing.
                let mut gone = served.connect().await;
                gone.set_zero_linger().unwrap();
                gone.write_all(b"GET /v1/page HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
                let mut stuck = served.connect().await;
                stuck.write_all(b"GET /v1/large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
                for (index, stream) in streams.iter_mut().enumerate() {
                    let length = 2 + round + index;
                    let body = format!("{}{{}}", " ".repeat(length - 2));
                    let request =
                        format!("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
                    stream.write_all(request.as_bytes()).await.unwrap();
                }
                drop(gone);
                for (index, stream) in streams.iter_mut().enumerate() {
                    let (mut text, mut piece) = (String::new(), [0; 4_096]);
                    while !text.ends_with('}') {
                        let read = stream.read(&mut piece).await.unwrap();
                        assert!(read > 0, "{index} of {count} was cut: {text}");
                        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
                    }
                    let expected = format!("{{\"length\":{}}}", 2 + round + index);
                    assert!(text.ends_with(&expected), "{index} of {count}: {text}");
                }
            }
        });
        cases += 2;
    }
    println!("connections that are answered together: {cases} cases");
}

/// A connection may be idle as long as any other, however many requests arrived at the same time.
#[test]
fn a_connection_may_be_idle_after_any_number_of_requests() {
    let mut cases = 0;
    for count in [1, 31, 32, 33, 64, 65, 200] {
        with_server("[http]\nheader_timeout_ms = 300\nidle_timeout_ms = 20000", async |served: Served| {
            let mut stream = served.connect().await;
            let request = "GET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n";
            for _ in 0..2 {
                stream.write_all(request.repeat(count).as_bytes()).await.unwrap();
                let (mut text, mut piece) = (String::new(), [0; 4_096]);
                while statuses(&text).len() < count {
                    let read = stream.read(&mut piece).await.unwrap();
                    assert!(read > 0, "cut after {} of {count}", statuses(&text).len());
                    text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
                }
                tokio::time::sleep(Duration::from_millis(700)).await;
            }
        });
        cases += 2;
    }
    println!("connections that rest: {cases} cases");
}

/// A peer that reads slowly is not cut off as one that sends no head.
#[test]
fn a_peer_that_reads_late_gets_all_responses() {
    with_server("[http]\nheader_timeout_ms = 300\nidle_timeout_ms = 300", async |served: Served| {
        let mut stream = served.connect().await;
        let count = 600;
        let (mut reading, mut writing) = stream.split();
        let requests = format!("{}{}", "GET /v1/page HTTP/1.1\r\nHost: x\r\n\r\n".repeat(count - 1), LAST_PAGE);
        let late = async {
            tokio::time::sleep(Duration::from_millis(1_200)).await;
            let mut bytes = Vec::new();
            reading.read_to_end(&mut bytes).await.unwrap();
            bytes
        };
        let (written, bytes) = tokio::join!(writing.write_all(requests.as_bytes()), late);
        written.unwrap();
        assert_eq!(statuses(&String::from_utf8_lossy(&bytes)), vec![200; count]);
    });
}

const LAST_PAGE: &str = "GET /v1/page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[test]
fn a_head_is_too_long_however_its_bytes_arrive() {
    with_server("", async |served: Served| {
        for (length, status) in [(15_000, 200), (17_000, 431), (40_000, 431)] {
            let agent = "u".repeat(length);
            let request = format!("GET /v1/time HTTP/1.1\r\nHost: x\r\nUser-Agent: {agent}\r\n\r\n{LAST_PAGE}");
            let text = served.exchange(request.as_bytes()).await;
            assert_eq!(statuses(&text).first(), Some(&status), "{length} bytes");
        }
    });
}

#[test]
fn answers_before_a_malformed_request_are_not_lost() {
    with_server("", async |served: Served| {
        let good = "GET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n";
        let text = served.exchange(format!("{good}{good}{good}BROKEN\r\n\r\n").as_bytes()).await;
        assert_eq!(statuses(&text), [200, 200, 200, 400]);
        // They also do not wait for a request that is incomplete.
        let mut stream = served.connect().await;
        stream.write_all(format!("{good}GET /v1/ti").as_bytes()).await.unwrap();
        let mut piece = [0; 1_024];
        let count = tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await.unwrap().unwrap();
        assert_eq!(statuses(&String::from_utf8_lossy(&piece[..count])), [200]);
        stream.write_all(b"me HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        assert_eq!(statuses(&text_until_closed(&mut stream).await), [200]);
    });
}

#[test]
fn the_older_protocol_closes_after_its_answer() {
    with_server("", async |served: Served| {
        let text = served.exchange(b"GET /v1/time HTTP/1.0\r\n\r\n").await;
        assert_eq!(statuses(&text), [200]);
        let text = served.exchange(b"HEAD /v1/time HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(text.contains("content-length: 12\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    });
}

#[test]
fn large_answers_arrive_whole() {
    with_server("", async |served: Served| {
        let text = served.exchange(b"GET /v1/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body.len(), 32 << 20);
    });
}

#[test]
fn a_peer_that_closes_its_sending_half_gets_its_response() {
    with_server("", async |served: Served| {
        let mut stream = served.connect().await;
        stream.write_all(b"GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(statuses(&text_until_closed(&mut stream).await), [200]);
    });
}

#[test]
fn an_expected_continue_is_sent_and_refusals_come_before_the_body() {
    with_server("", async |served: Served| {
        let key = format!("svc_live_{:064x}", 0);
        let expecting = |key: &str| {
            format!(
                "POST /v1/keyed HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
            )
        };
        let mut stream = served.connect().await;
        stream.write_all(expecting(&key).as_bytes()).await.unwrap();
        let mut piece = [0; 256];
        let count = stream.read(&mut piece).await.unwrap();
        assert_eq!(statuses(&String::from_utf8_lossy(&piece[..count])), [100]);
        stream.write_all(b"{}").await.unwrap();
        assert_eq!(statuses(&text_until_closed(&mut stream).await), [200]);
        assert_eq!(statuses(&served.exchange(expecting("wrong").as_bytes()).await), [401]);
    });
}

/// At a cap of idle connections, the one that has been idle longest is closed. At a cap of busy ones, a new one is
/// refused.
#[test]
fn the_longest_idle_connection_makes_room() {
    let total = "[http]\nconnections_max = 4\nidle_timeout_ms = 60000\nheader_timeout_ms = 5000";
    let address = "[http]\nconnections_per_address_max = 4\nidle_timeout_ms = 60000\n[limits]\nmeter_loopback = true";
    async fn asks(stream: &mut TcpStream, lines: &str) -> bool {
        let request = format!("GET /v1/time HTTP/1.1\r\nHost: x\r\n{lines}\r\n");
        let _ = stream.write_all(request.as_bytes()).await;
        stream.read(&mut [0; 1_024]).await.is_ok_and(|count| count > 0)
    }
    for toml in [total, address] {
        for lines in ["", "X-Other: 1\r\n"] {
            with_server(toml, async |served: Served| {
                // One without a request; one that was answered; one that was answered and has sent part of another
                // head; one whose response is being made.
                let mut silent = served.connect().await;
                tokio::time::sleep(Duration::from_millis(5)).await;
                let mut asked = served.connect().await;
                assert!(asks(&mut asked, lines).await);
                let mut begun = served.connect().await;
                let one_and_a_part = format!("GET /v1/time HTTP/1.1\r\nHost: x\r\n{lines}\r\nGET /v1/time HT");
                begun.write_all(one_and_a_part.as_bytes()).await.unwrap();
                assert!(begun.read(&mut [0; 1_024]).await.unwrap() > 0);
                let mut busy = served.connect().await;
                busy.write_all(format!("GET /v1/slow HTTP/1.1\r\nHost: x\r\n{lines}\r\n").as_bytes()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
                assert_eq!((served.connections.open(), served.connections.made_room()), (4, 0));

                let mut first = served.connect().await;
                assert!(asks(&mut first, lines).await, "there was room for one more");
                assert_eq!(text_until_closed(&mut silent).await, "", "the longest idle one ended");
                assert!(asks(&mut asked, lines).await, "the others stay");
                tokio::time::sleep(Duration::from_millis(5)).await;
                // Part of a head keeps no slot, even if more of it follows.
                begun.write_all(b"T").await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
                let mut second = served.connect().await;
                assert!(asks(&mut second, lines).await);
                assert_eq!(text_until_closed(&mut begun).await, "", "an incomplete head is not a request");
                // `first` has been idle for longer than `asked` now.
                let mut third = served.connect().await;
                assert!(asks(&mut third, lines).await);
                assert_eq!(text_until_closed(&mut first).await, "");
                assert_eq!((served.connections.open(), served.connections.refused()), (4, 0));
                assert!(
                    busy.read(&mut [0; 1_024]).await.unwrap() > 0,
                    "a connection with a request in progress is not idle"
                );
                drop((asked, second, third, busy));
                while served.connections.open() > 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }

                // Four busy connections: the fifth is refused.
                let mut busy = Vec::new();
                for _ in 0..4 {
                    let mut stream = served.connect().await;
                    stream.write_all(b"GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
                    busy.push(stream);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                assert_eq!(served.exchange(b"GET /v1/time HTTP/1.1\r\nHost: x\r\n\r\n").await, "");
                assert_eq!((served.connections.open(), served.connections.refused()), (4, 1));
                for mut stream in busy {
                    assert!(stream.read(&mut [0; 1_024]).await.unwrap() > 0, "each has its answer");
                }
                // Many connect at the same time: none is refused, and the cap holds in the end.
                let mut crowd = Vec::new();
                for _ in 0..100 {
                    let mut stream = served.connect().await;
                    assert!(asks(&mut stream, lines).await, "{} came", crowd.len());
                    crowd.push(stream);
                }
                assert_eq!(served.connections.refused(), 1);
                drop(crowd);
                while served.connections.open() > 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                assert_eq!(served.connections.addresses(), 0);
            });
        }
    }
    println!("connections at a cap: {} cases", 2 * 2 * 2 * 9);
}

#[test]
fn a_stop_waits_for_requests_but_not_for_stuck_ones() {
    with_server("[server]\ndrain_ms = 4000", async |served: Served| {
        let mut busy = served.connect().await;
        busy.write_all(b"GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut stuck = served.connect().await;
        stuck.write_all(b"GET /v1/stuck HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut idle = served.connect().await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        served.stop.send(true).unwrap();
        let text = text_until_closed(&mut busy).await;
        assert_eq!(statuses(&text), [200]);
        assert_eq!(text_until_closed(&mut idle).await, "");
        assert_eq!(text_until_closed(&mut stuck).await, "");
        assert_eq!(served.server.await.unwrap(), 1);
        assert!(TcpStream::connect(served.address).await.is_err());
    });
}
