//! Metrics (gateway/docs/metrics.md): every family with the figures of known actions, bounded labels, and a listener
//! that hostile peers cannot harm.

use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::exposition::{Exposition, ask, documented, scrape};
use tests::http::{Request, connect, send_raw};
use tests::json::{int, text};
use tests::server::ServerDir;
use tests::socket::{Got, Socket};
use tests::world::{World, changed, limit, market};

/// A world with a metrics listener.
fn watched(users: usize, settings: impl FnOnce(&mut ServerDir)) -> (World, SocketAddr) {
    let world = World::start_with(users, |place| {
        place.set("admin", "listen", "\"127.0.0.1:0\"").set("flags", "match_interval_ms", "100");
        settings(place);
    });
    let admin = world.server.admin().expect("the banner has the address of the metrics");
    (world, admin)
}

/// Waits for figures that `ready` accepts.
#[track_caller]
fn scrape_until(admin: SocketAddr, what: &str, ready: impl Fn(&Exposition) -> bool) -> Exposition {
    eventually(what, || Some(scrape(admin)).filter(&ready))
}

/// A row by its name and labels, and its value.
type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

/// Listening TCP sockets of a program.
fn listening(pid: u32) -> usize {
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("the kernel's table");
    let listed: BTreeSet<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(3) == Some(&"0A"))
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect();
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("the program's descriptors");
    let links = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|link| listed.contains(&link.to_string_lossy().into_owned())).count()
}

#[test]
fn every_family_counts_known_actions() {
    let cases = Cases::of("families");
    let layouts: [fn(&mut ServerDir); 3] = [
        |_| {},
        |place| _ = place.set("journal", "durability", "\"power\""),
        |place| _ = place.set("engine", "shards", "2").set("journal", "durability", "\"power\""),
    ];
    for layout in layouts {
        every_family(&cases, layout);
    }
}

fn every_family(cases: &Cases, layout: fn(&mut ServerDir)) {
    let (mut world, admin) = watched(2, layout);
    assert_eq!(listening(world.server.pid()), 2);
    let first = scrape(admin);
    let of = |metrics: &Exposition, operation: &str, status: &str| {
        metrics.get("papertape_requests_total", &[("operation", operation), ("status", status)]).unwrap_or(0.0)
    };
    assert_eq!((of(&first, "place_order", "2xx"), first.value("papertape_orders_placed_total", &[])), (0.0, 0.0));
    let (rain, mut client) = (world.markets.rain.clone(), world.user(0));

    // Three are accepted: one fills immediately, one rests and is cancelled, one rests until the market reaches it.
    client.post("/v1/orders", &market(&rain, "BUY", "0.42", "20")).expect(200);
    let metrics = scrape(admin);
    assert_eq!(metrics.value("papertape_orders_placed_total", &[]), 1.0, "an answered order is counted immediately");
    let cancelled = client.post("/v1/orders", &limit(&rain, "BUY", "0.05", "20")).expect(200);
    client.delete(&format!("/v1/orders/{}", int(&cancelled, "/order_id"))).expect(200);
    client.delete(&format!("/v1/orders/{}", int(&cancelled, "/order_id"))).refused(400, "ORDER_NOT_CANCELLABLE");
    client.post("/v1/orders", &limit(&rain, "BUY", "0.37", "12")).expect(200);
    // Two are refused: one by the engine, one by the edge.
    client.post("/v1/orders", &limit(&rain, "BUY", "0.41", "999999")).refused(400, "INSUFFICIENT_BALANCE");
    world.public().post("/v1/orders", &limit(&rain, "BUY", "0.41", "5")).refused(401, "MISSING_API_KEY");
    world.public().get("/v1/no/such/route").refused(404, "NOT_FOUND");

    // A fourth comes over a socket, and another socket follows the market.
    let key = [("X-API-Key", world.users[1].key.as_str())];
    let at = world.server.address();
    let mut trade = Socket::open(at, "/v1/ws/trade", &key);
    let placed = json!({"id": 1, "op": "order.place", "params": limit(&rain, "BUY", "0.03", "10")});
    trade.send(&placed);
    assert_eq!(int(&trade.json(), "/status"), 200);
    let mut follower = Socket::open(at, "/v1/ws/market", &[]);
    follower.send(&json!({"type": "market", "assets_ids": [rain.yes()]}));
    follower.text();
    let prices = Socket::open(at, "/v1/ws/prices", &key);
    let executions = Socket::open(at, "/v1/ws/executions", &key);
    let mut refused = Socket::open(at, "/v1/ws/executions?token=wrong", &[]);
    assert_eq!(refused.receive(), Got::Close(4001, "INVALID_TOKEN".into()));
    let mut gone = Socket::open(at, "/v1/ws/market", &[]);
    gone.send_close(1000, "");
    assert!(matches!(gone.receive(), Got::Close(..)));
    let mut stream = connect(at).expect("the server listens");
    let head = format!("GET /v1/prices/stream?condition_ids={} HTTP/1.1\r\nHost: {at}\r\n\r\n", rain.condition);
    stream.write_all(head.as_bytes()).expect("the server takes a head");
    stream.read_exact(&mut [0; 512]).expect("a stream begins");

    // The market reaches the resting order.
    let frames = scrape(admin).value("papertape_feed_frames_total", &[]);
    world.tape.books(&rain, &[("0.30", "10")], &[("0.36", "100")]);
    let metrics = scrape_until(admin, "figures of all that was done", |metrics| {
        let closed = |reason| metrics.get("papertape_sockets_closed_total", &[("reason", reason)]);
        metrics.value("papertape_fills_total", &[("side", "resting")]) == 1.0
            && closed("NORMAL") == Some(1.0)
            && closed("INVALID_TOKEN") == Some(1.0)
            && metrics.value("papertape_fan_out_lag_seconds_count", &[]) >= 1.0
            && metrics.value("papertape_orders_resting", &[]) == 1.0
            && metrics.value("papertape_journal_unsynced_bytes", &[]) == 0.0
    });

    let place = |outcome| [("kind", "place"), ("outcome", outcome)];
    let cancel = |outcome| [("kind", "cancel"), ("outcome", outcome)];
    let exact: &[Row<'_>] = &[
        ("papertape_requests_total", &[("operation", "place_order"), ("status", "2xx")], 4.0),
        ("papertape_requests_total", &[("operation", "place_order"), ("status", "4xx")], 2.0),
        ("papertape_requests_total", &[("operation", "cancel_order"), ("status", "2xx")], 1.0),
        ("papertape_requests_total", &[("operation", "cancel_order"), ("status", "4xx")], 1.0),
        ("papertape_requests_total", &[("operation", "unrouted"), ("status", "4xx")], 1.0),
        ("papertape_requests_total", &[("operation", "ws_market"), ("status", "1xx")], 2.0),
        ("papertape_refusals_total", &[("code", "INSUFFICIENT_BALANCE")], 1.0),
        ("papertape_refusals_total", &[("code", "ORDER_NOT_CANCELLABLE")], 1.0),
        ("papertape_refusals_total", &[("code", "MISSING_API_KEY")], 1.0),
        ("papertape_refusals_total", &[("code", "NOT_FOUND")], 1.0),
        ("papertape_ack_seconds_count", &place("accepted"), 4.0),
        ("papertape_ack_seconds_count", &place("refused"), 2.0),
        ("papertape_ack_seconds_count", &cancel("accepted"), 1.0),
        ("papertape_ack_seconds_count", &cancel("refused"), 1.0),
        ("papertape_placements_in_flight", &[], 0.0),
        ("papertape_connections_refused_total", &[], 0.0),
        ("papertape_users", &[], 2.0),
        ("papertape_keys_issued", &[], 2.0),
        ("papertape_orders_placed_total", &[], 4.0),
        ("papertape_fills_total", &[("side", "taking")], 1.0),
        ("papertape_fills_total", &[("side", "resting")], 1.0),
        ("papertape_fills_by_fee_source_total", &[("source", "category_table")], 1.0),
        ("papertape_fills_by_fee_source_total", &[("source", "none")], 1.0),
        ("papertape_fills_by_fee_source_total", &[("source", "market_schedule")], 0.0),
        ("papertape_orders_closed_total", &[], 1.0),
        ("papertape_orders_resting", &[], 1.0),
        ("papertape_orders_open", &[], 1.0),
        ("papertape_socket_frames_queued", &[], 0.0),
        ("papertape_socket_queued_bytes", &[], 0.0),
        ("papertape_sockets_open", &[("channel", "market")], 1.0),
        ("papertape_sockets_open", &[("channel", "trade")], 1.0),
        ("papertape_sockets_open", &[("channel", "prices")], 1.0),
        ("papertape_sockets_open", &[("channel", "executions")], 1.0),
        ("papertape_sockets_open", &[("channel", "user")], 0.0),
        ("papertape_sockets_open", &[("channel", "prices_stream")], 1.0),
        ("papertape_sockets_opened_total", &[("channel", "market")], 2.0),
        ("papertape_sockets_opened_total", &[("channel", "executions")], 2.0),
        ("papertape_fan_out_lost_total", &[], 0.0),
        ("papertape_fan_out_queued", &[], 0.0),
        ("papertape_queue_slots", &[("queue", "shard_longest")], 4_096.0),
        ("papertape_queue_slots", &[("queue", "commit")], 8_192.0),
        ("papertape_journal_poisoned", &[], 0.0),
        ("papertape_journal_room_state", &[], 2.0),
        ("papertape_journal_segments", &[], 1.0),
        ("papertape_journal_log_bytes", &[], 4_194_304.0),
        ("papertape_snapshot_lsn", &[], 0.0),
        ("papertape_recovery_cut_bytes", &[], 0.0),
        ("papertape_recovery_snapshot_lsn", &[], 0.0),
        ("papertape_feed_outage", &[], 0.0),
        ("papertape_markets", &[], 10.0),
    ];
    for (name, labels, expected) in exact {
        assert_eq!(metrics.value(name, labels), *expected, "{name}{labels:?}");
        cases.one();
    }
    // Which of them are above zero depends on the machine.
    for (name, labels) in [
        ("papertape_uptime_seconds", &[][..]),
        ("papertape_feed_frames_total", &[]),
        ("papertape_markets_tradable", &[]),
        ("papertape_connections_open", &[]),
        ("papertape_journal_appended_lsn", &[]),
        ("papertape_journal_synced_lsn", &[]),
        ("papertape_journal_room_bytes", &[]),
        ("papertape_journal_sync_seconds_count", &[]),
        ("papertape_disk_free_bytes", &[]),
        ("papertape_ack_seconds_sum", &place("accepted")),
        ("process_resident_memory_bytes", &[]),
        ("process_open_fds", &[]),
        ("process_max_fds", &[]),
        ("process_threads", &[]),
        ("process_start_time_seconds", &[]),
    ] {
        assert!(metrics.value(name, labels) > 0.0, "{name}{labels:?}");
        cases.one();
    }
    assert!(metrics.value("papertape_feed_frames_total", &[]) > frames);
    let appended = metrics.value("papertape_journal_appended_lsn", &[]);
    assert_eq!(metrics.value("papertape_journal_synced_lsn", &[]), appended);
    let timed = metrics.value("papertape_journal_append_seconds_count", &[]);
    assert!(timed <= appended / 64.0 + 1.0, "{timed} of {appended} appends");
    for (row, value) in first.rising() {
        let labels: Vec<(&str, &str)> = row.1.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert!(metrics.value(&row.0, &labels) >= value, "{row:?} fell");
        cases.one();
    }

    let names = metrics.names();
    // Those of live venues are compared in tests/venue/both_live.rs.
    let of_live_venues = |name: &String| {
        let of_recordings = ["papertape_recording_", "papertape_archive_"];
        name.starts_with("papertape_venue_") && !names.contains(name)
            || of_recordings.iter().any(|prefix| name.starts_with(prefix))
    };
    let documented: BTreeSet<String> = documented().into_iter().filter(|name| !of_live_venues(name)).collect();
    assert_eq!(names.difference(&documented).collect::<Vec<_>>(), Vec::<&String>::new(), "not in metrics.md");
    assert_eq!(documented.difference(&names).collect::<Vec<_>>(), Vec::<&String>::new(), "only in metrics.md");
    cases.add(names.len());
    drop((trade, follower, prices, executions, stream));
    recovered_facts(cases, world, appended);
}

/// A start reports its recovery; counters of orders start from zero.
fn recovered_facts(cases: &Cases, mut world: World, appended: f64) {
    for (is_clean, clean_stop) in [(true, 1.0), (false, 0.0)] {
        if is_clean {
            world.server.terminate();
            eventually("a clean stop", || world.server.is_over().then_some(()));
        } else {
            world.server.kill();
        }
        world.server = world.place.start();
        let metrics = scrape(world.server.admin().expect("the banner has the address of the metrics"));
        assert_eq!(metrics.value("papertape_recovery_clean_stop", &[]), clean_stop);
        assert!(metrics.value("papertape_recovery_records", &[]) >= appended);
        assert_eq!(metrics.value("papertape_orders_placed_total", &[]), 0.0);
        assert_eq!(metrics.value("papertape_users", &[]), 2.0);
        cases.add(4);
    }
}

#[test]
fn labels_are_bounded_for_any_request() {
    let cases = Cases::of("random requests");
    let (world, admin) = watched(1, |_| {});
    let mut chance = Chance::seeded(0x6d65_7472);
    let paths = ["/v1/orders/X", "/v1/X", "/X", "/v1/markets/X/X", "/v1/book?token_id=X", "/v1/orders/by-client-id/X"];
    let methods = ["GET", "POST", "DELETE", "PATCH", "HEAD", "X"];
    let mut client = world.public();
    let mut strays = |count: usize| {
        for _ in 0..count {
            let stray = format!("stray{:x}", chance.draw());
            let path = chance.pick(&paths).replace('X', &stray);
            let method = chance.pick(&methods).replace('X', &stray.to_uppercase());
            let key = if chance.percent(50) { stray } else { format!("svc_live_{:064x}", chance.draw()) };
            let request = Request::new(&method, &path).header("X-API-Key", &key);
            // A refused connection ends; the next request opens another one.
            let _ = client.call(&request);
            cases.one();
        }
    };
    strays(1_000);
    let before = scrape(admin).rows();
    strays(1_000);
    let after = scrape(admin);
    let more: Vec<String> = after.rows().difference(&before).cloned().collect();
    assert!(more.is_empty(), "the second thousand added rows that the first had not: {more:?}");
    assert!(after.rows().iter().all(|row| !row.to_lowercase().contains("stray")), "{:#?}", after.rows());
    assert!(after.value("papertape_requests_total", &[("operation", "unrouted"), ("status", "4xx")]) > 100.0);
}

#[test]
fn there_is_no_listener_by_default() {
    let cases = Cases::of("listeners");
    for (listen, expected) in [(None, 1), (Some("\"\""), 1), (Some("\"127.0.0.1:0\""), 2), (Some("\"0.0.0.0:0\""), 2)] {
        let world = World::start_with(0, |place| {
            let token = place.root().join("token");
            fs::write(&token, "x".repeat(32)).expect("written");
            place.set("admin", "remote", "true").set("admin", "token_file", &format!("{token:?}"));
            if let Some(listen) = listen {
                place.set("admin", "listen", listen);
            }
        });
        assert_eq!(listening(world.server.pid()), expected, "{listen:?}");
        world.public().get("/metrics").refused(404, "NOT_FOUND");
        let warned = world.server.output().contains("the metrics of the admin listener need no token");
        assert_eq!(warned, listen == Some("\"0.0.0.0:0\""), "{}", world.server.output());
        cases.one();
    }
}

#[test]
fn a_wrong_address_stops_the_start() {
    let cases = Cases::of("wrong addresses");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it has an address").port();
    for (server, admin, expected) in [
        (0, format!("\"127.0.0.1:{port}\""), format!("listening on 127.0.0.1:{port} (admin.listen): ")),
        (port, format!("\"127.0.0.1:{port}\""), format!("admin.listen: allowed is another port than {port}, ")),
        (0, "\"metrics\"".into(), "admin.listen (".into()),
        (0, "9464".into(), "admin.listen (".into()),
        (0, "true".into(), "admin.listen (".into()),
    ] {
        let mut place = ServerDir::new();
        place.set("server", "listen", &format!("\"127.0.0.1:{server}\"")).set("admin", "listen", &admin);
        let (status, output) = place.spawn_with(&[], &[]).ended();
        assert!(!status.success(), "{admin}: {output}");
        let lines: Vec<&str> = output.lines().filter(|line| line.contains("admin.listen")).collect();
        assert!(matches!(lines[..], [line] if line.contains(&expected)), "{admin}: one sentence, not {output}");
        cases.one();
    }
}

#[test]
fn there_is_one_path_and_one_method() {
    let cases = Cases::of("paths and methods");
    let (_world, admin) = watched(0, |_| {});
    let long = format!("/{}", "x".repeat(4_000));
    for path in ["/", "/metrics/", "//metrics", "/metricsx", "/v1/health", "/v1/orders", "/%6detrics", "*", &long] {
        for method in ["GET", "POST", "OPTIONS"] {
            let answer = ask(admin, method, path).expect("an answer");
            assert_eq!(answer.status, 404, "{method} {path}");
            cases.one();
        }
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "ANY"] {
        let answer = ask(admin, method, "/metrics").expect("an answer");
        assert_eq!((answer.status, answer.header("Allow")), (405, Some("GET")), "{method}");
        cases.one();
    }
    for head in [
        "GET /metrics?name=x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /metrics HTTP/1.0\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain;version=0.0.4\r\nAccept-Encoding: gzip\r\n\r\n",
        "GET http://a/metrics HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\nabc",
        // Its body may mean anything: nothing after it is read.
        "GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\nzz",
        "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\nGET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let answer = send_raw(admin, head.as_bytes());
        let response = answer.response.as_ref().expect("an answer");
        assert!(answer.ends() && response.status == 200, "{head:?}: {}", response.status);
        Exposition::read(response.text()).unwrap_or_else(|why| panic!("{head:?}: {why}"));
        cases.one();
    }
}

#[test]
fn hostile_peers_take_nothing_from_the_server() {
    let cases = Cases::of("hostile peers of the admin listener");
    let (world, admin) = watched(1, |_| {});
    let (mut client, rain) = (world.user(0), world.markets.rain.clone());
    let mut chance = Chance::seeded(7);
    let noise: Vec<u8> = (0..20_000).map(|_| chance.draw() as u8).collect();
    let fields = (0..200).map(|number| format!("X-{number}: y\r\n")).collect::<String>();
    let garbage: [Vec<u8>; 7] = [
        noise,
        b"\r\n\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(40),
        format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(100_000)).into_bytes(),
        format!("GET /metrics HTTP/1.1\r\n{fields}\r\n").into_bytes(),
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)).into_bytes(),
    ];
    for bytes in garbage {
        let answer = send_raw(admin, &bytes);
        let status = answer.response.as_ref().map(|response| response.status);
        assert!(status.is_none_or(|status| status >= 400), "{status:?} for {} bytes", bytes.len());
        scrape(admin);
        cases.one();
    }
    // More than the maximum, which send nothing or half of something, or do not read; the server continues meanwhile.
    let silent: Vec<TcpStream> = (0..40)
        .map(|number: usize| {
            let mut stream = connect(admin).expect("the kernel takes it");
            let bytes: &[u8] = [&b""[..], b"GET /met", b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"][number % 3];
            stream.write_all(bytes).expect("the kernel takes it");
            stream
        })
        .collect();
    for _ in 0..200 {
        client.post("/v1/orders", &limit(&rain, "BUY", "0.02", "5")).expect(200);
        cases.one();
    }
    // Each has ten seconds in all, so a peer that waits after them is answered within the bound of a broken server.
    let metrics = scrape(admin);
    assert_eq!(metrics.value("papertape_orders_placed_total", &[]), 200.0);
    cases.add(silent.len());
    world.server.stop();
}

#[test]
fn a_scrape_under_load_is_whole_and_only_rises() {
    let cases = Cases::of("scrapes under load");
    const ORDERS: usize = 300;
    for shards in ["1", "3"] {
        let (world, admin) = watched(4, |place| _ = place.set("engine", "shards", shards));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let placing: Vec<_> = (0..4)
                .map(|user| {
                    let (mut client, rain) = (world.user(user), &world.markets.rain);
                    scope.spawn(move || {
                        for number in 0..ORDERS {
                            let body = changed(
                                &limit(rain, "BUY", "0.02", "5"),
                                &json!({"client_order_id": format!("{user}-{number}")}),
                            );
                            client.post("/v1/orders", &body).expect(200);
                        }
                    })
                })
                .collect();
            let is_over = &is_over;
            let scraping = scope.spawn(move || {
                let (mut before, mut scrapes) = (scrape(admin), 1);
                while !is_over.load(Ordering::Relaxed) {
                    let metrics = scrape(admin);
                    for ((name, labels), value) in before.rising() {
                        let labels: Vec<(&str, &str)> =
                            labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                        assert!(metrics.value(name, &labels) >= value, "{name}{labels:?} fell below {value}");
                    }
                    before = metrics;
                    scrapes += 1;
                }
                scrapes
            });
            placing.into_iter().for_each(|user| user.join().expect("every order is taken"));
            is_over.store(true, Ordering::Relaxed);
            cases.add(scraping.join().expect("every scrape is whole"));
        });
        let metrics = scrape(admin);
        let accepted = [("kind", "place"), ("outcome", "accepted")];
        let expected = (4 * ORDERS) as f64;
        assert_eq!(metrics.value("papertape_ack_seconds_count", &accepted), expected);
        assert_eq!(metrics.value("papertape_orders_placed_total", &[]), expected);
        // A shard publishes its open orders after its turn, possibly after the last answer.
        scrape_until(admin, "all orders to be open", |metrics| metrics.value("papertape_orders_open", &[]) == expected);
        let placed = [("operation", "place_order"), ("status", "2xx")];
        assert_eq!(metrics.value("papertape_requests_total", &placed), expected);
        assert!(metrics.value("papertape_journal_append_seconds_count", &[]) >= (expected / 64.0).floor());
        let version = world.public().get("/v1/health/version").expect(200);
        let build = metrics.rows().into_iter().find(|row| row.starts_with("papertape_build_info"));
        assert!(build.is_some_and(|row| row.contains(text(&version, "/version"))));
        cases.add(5);
    }
}
