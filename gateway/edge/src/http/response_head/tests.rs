use super::*;
use crate::http::code::Code;
use crate::http::reply::{Refusal, Reply};
use http_body_util::BodyExt;

fn names() -> Names {
    Names::new("X-Svc", &["MKT_API_KEY".to_owned()]).expect("a valid prefix")
}

fn head(names: &Names) -> ResponseHead<'_> {
    ResponseHead {
        names,
        request_id: RequestId::Sent(HeaderValue::from_static("r-1")),
        dialect: Dialect::Plain,
        verbose: false,
        is_head: false,
        is_read: true,
        takes_gzip: false,
        cors: None,
        cache: Cache::ByCredential,
        private: true,
        rate: None,
        public_route: false,
        beta_cutoff: None,
        history_from: None,
        closes: false,
        used: Used::default(),
        key_prefix: None,
    }
}

fn body(response: Response<Body>) -> bytes::Bytes {
    let collected = futures_now(response.into_body().collect());
    collected.expect("a full body cannot fail").to_bytes()
}

/// The value of a future that is ready immediately.
fn futures_now<F: Future>(future: F) -> F::Output {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("a full body is ready"),
    }
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().expect("ASCII"))
}

#[test]
fn the_envelope_has_two_fields_unless_verbose() {
    let names = names();
    let response = head(&names).response(Err(Code::MarketClosed.into()));
    assert_eq!(response.status(), 400);
    assert_eq!(header(&response, "x-svc-code"), Some("MARKET_CLOSED"));
    assert_eq!(header(&response, "x-request-id"), Some("r-1"));
    assert_eq!(header(&response, "cache-control"), Some("private, no-store"));
    assert_eq!(body(response), r#"{"error":"MARKET_CLOSED","message":"This market no longer accepts orders."}"#);
    let verbose = ResponseHead { verbose: true, ..head(&names) };
    let refusal = Refusal::placements(250);
    let response = verbose.response(Err(refusal));
    assert_eq!(header(&response, "retry-after"), Some("1"));
    assert_eq!(
        body(response),
        concat!(
            r#"{"error":"RATE_LIMITED","message":"Too many orders in flight.","retry_after_ms":250,"#,
            r#""details":null,"request_id":"r-1"}"#
        )
    );
    // For a client of the venue: first the message, where that client reads it, then the code.
    let strict = ResponseHead { dialect: Dialect::Strict, verbose: true, ..head(&names) };
    let response = strict.response(Err(Refusal::placements(250)));
    assert_eq!(header(&response, "x-svc-code"), Some("RATE_LIMITED"));
    assert_eq!(
        body(response),
        concat!(
            r#"{"error":"Too many orders in flight.","message":"Too many orders in flight.","code":"RATE_LIMITED","#,
            r#""retry_after_ms":250,"details":null,"request_id":"r-1"}"#
        )
    );
}

#[test]
fn body_and_header_differ_for_two_codes_only() {
    let names = names();
    let response = head(&names).response(Err(Refusal::from(Code::InvalidPostOnlyOrder).order_id(7)));
    assert_eq!(header(&response, "x-svc-code"), Some("POST_ONLY_WOULD_CROSS"));
    assert_eq!(header(&response, "x-svc-order-id"), Some("7"));
    assert!(body(response).starts_with(br#"{"error":"INVALID_POST_ONLY_ORDER""#));
}

#[test]
fn caching_follows_route_and_credential() {
    let names = names();
    let ok = || Ok(Reply::json(b"{}".to_vec()));
    for (cache, private, outcome, expected) in [
        (Cache::ByCredential, true, ok(), "private, no-store"),
        (Cache::ByCredential, false, ok(), "public, max-age=5"),
        (Cache::ByCredential, false, Err(Code::MarketNotFound.into()), "no-store"),
        (Cache::NoStore, false, ok(), "no-store"),
        (Cache::NoStore, true, ok(), "no-store"),
        (Cache::Stream, true, ok(), "no-cache, no-transform"),
        (Cache::Stream, false, Err(Code::InvalidRequest.into()), "no-store"),
    ] {
        let response = ResponseHead { cache, private, ..head(&names) }.response(outcome);
        assert_eq!(header(&response, "cache-control"), Some(expected));
    }
    let posted = ResponseHead { private: false, is_read: false, ..head(&names) }.response(ok());
    assert_eq!(header(&posted, "cache-control"), Some("no-store"));
}

#[test]
fn a_report_with_an_error_status_names_it_in_the_header() {
    let names = names();
    let reply = Reply::json(b"{}".to_vec()).with_status(StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(header(&head(&names).response(Ok(reply)), "x-svc-code"), Some("HTTP_503"));
}

#[test]
fn large_bodies_are_compressed_if_the_client_accepts_it() {
    let names = names();
    let large = || Ok(Reply::json(vec![b' '; 2_000]));
    let plain = head(&names).response(large());
    assert_eq!(header(&plain, "content-encoding"), None);
    assert_eq!(header(&plain, "vary"), Some("Accept-Encoding"));
    let packed = ResponseHead { takes_gzip: true, ..head(&names) }.response(large());
    assert_eq!(header(&packed, "content-encoding"), Some("gzip"));
    let mut unpacked = Vec::new();
    let packed = body(packed);
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut unpacked).unwrap();
    assert_eq!(unpacked, vec![b' '; 2_000]);
    let small = ResponseHead { takes_gzip: true, ..head(&names) }.response(Ok(Reply::json(vec![b' '; 1_000])));
    assert_eq!(header(&small, "content-encoding"), None);
    for (accept, takes) in [
        ("gzip", true),
        ("deflate, GZIP;q=0.5", true),
        ("gzip;q=0", false),
        ("gzip; q=0.000", false),
        ("br", false),
        ("x-gzip", false),
        ("", false),
    ] {
        assert_eq!(takes_gzip(Some(&HeaderValue::from_static(accept))), takes, "{accept}");
    }
}

/// Status, sorted lines and body of a written response; `None` if it is left to hyper.
fn written(head: &ResponseHead<'_>, outcome: Outcome) -> Option<(u16, Vec<String>, Vec<u8>)> {
    let mut out = Vec::new();
    let (status, made) = head.write(outcome, &mut out);
    if made.is_some() {
        assert_eq!(out, b"", "all or nothing is written");
        return None;
    }
    let mut room = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut room);
    let httparse::Status::Complete(head_bytes) = head.parse(&out).expect("a sound head") else {
        panic!("half a head: {}", String::from_utf8_lossy(&out));
    };
    assert_eq!((head.code, head.version), (Some(status.as_u16()), Some(1)));
    let line = |header: &httparse::Header<'_>| format!("{}: {}", header.name, String::from_utf8_lossy(header.value));
    let mut lines: Vec<_> = head.headers.iter().map(line).collect();
    lines.sort_unstable();
    Some((status.as_u16(), lines, out[head_bytes..].to_vec()))
}

/// The same of the response that hyper would send.
fn sent(head: &ResponseHead<'_>, outcome: Outcome) -> (u16, Vec<String>, Vec<u8>) {
    let response = head.response(outcome);
    let status = response.status().as_u16();
    let mut lines: Vec<_> =
        response.headers().iter().map(|(name, value)| format!("{name}: {}", value.to_str().expect("ASCII"))).collect();
    let body = body(response).to_vec();
    if status != 204 {
        lines.push(format!("content-length: {}", body.len()));
    }
    lines.push("date: Thu, 01 Jan 1970 00:00:07 GMT".to_owned());
    lines.sort_unstable();
    (status, lines, body)
}

#[test]
fn written_responses_equal_those_of_hyper() {
    let names = names();
    let rate = RateState {
        per_minute: 120,
        remaining: 7,
        reset: 60,
        per_second: 10,
        remaining_per_second: 3,
        tier: engine::user::Tier::Pro,
    };
    let outcomes: [fn() -> Outcome; 8] = [
        || Ok(Reply::json(b"{\"a\":1}".to_vec())),
        || Ok(Reply::json(vec![b' '; 5_000])),
        || Ok(Reply::created(b"{}".to_vec())),
        || Ok(Reply::json(Vec::new()).with_status(StatusCode::NO_CONTENT)),
        || Ok(Reply::json(b"[]".to_vec()).with_header(header::ALLOW, HeaderValue::from_static("GET"))),
        || Err(Code::MarketClosed.into()),
        || Err(Refusal::from(Code::InvalidPostOnlyOrder).order_id(7)),
        || Err(Refusal::placements(250)),
    ];
    let mut cases = 0;
    for outcome in outcomes {
        for bits in 0..32 {
            let on = |bit: u32| bits >> bit & 1 == 1;
            let head = ResponseHead {
                rate: on(0).then_some(rate),
                takes_gzip: on(1),
                private: on(2),
                public_route: on(3),
                beta_cutoff: on(4).then_some(Timestamp::from_secs(9)),
                used: Used { begun: Timestamp::from_secs(7), ..Used::default() },
                ..head(&names)
            };
            assert_eq!(written(&head, outcome()), Some(sent(&head, outcome())));
            cases += 1;
        }
    }
    let ends = ResponseHead { closes: true, ..head(&names) };
    assert_eq!(written(&ends, Ok(Reply::json(Vec::new()))), None);
    assert_eq!(written(&head(&names), Err(Refusal::broken("no"))), None);
    println!("answers: {} cases", cases + 2);
}

#[test]
fn head_has_the_length_and_no_body() {
    let names = names();
    let response = ResponseHead { is_head: true, ..head(&names) }.response(Ok(Reply::json(b"{\"a\":1}".to_vec())));
    assert_eq!(header(&response, "content-length"), Some("7"));
    assert!(body(response).is_empty());
}

/// From when on history is shown is the same text for hyper and on the fast path, also of a refusal.
#[test]
fn the_first_day_of_the_history_is_a_header() {
    let names = names();
    let mut cases = 0;
    for (day, expected) in
        [(None, None), (Some(UtcDay(20_784)), Some("2026-11-27")), (Some(UtcDay(0)), Some("1970-01-01"))]
    {
        let head = ResponseHead { history_from: day, ..head(&names) };
        let outcomes: [fn() -> Outcome; 2] =
            [|| Ok(Reply::json(b"{}".to_vec())), || Err(Refusal::from(Code::OrderNotFound))];
        for outcome in outcomes {
            assert_eq!(header(&head.response(outcome()), "x-svc-history-from"), expected);
            let mut written = Vec::new();
            assert!(head.write(outcome(), &mut written).1.is_none(), "it is written whole");
            let text = String::from_utf8(written).expect("text");
            let line = text.lines().find_map(|line| line.strip_prefix("x-svc-history-from: "));
            assert_eq!(line, expected, "{text}");
            cases += 2;
        }
    }
    println!("first days of histories: {cases} cases");
}
