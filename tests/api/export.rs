//! CSV exports (gateway/docs/accounts.md §5).

use engine::order::Side;
use engine::time::Timestamp;
use engine::user::WalletKind;
use std::fs;
use std::io::{Read, Write};
use tests::cases::Cases;
use tests::history::Trade;
use tests::http::{Client, Request, Response, connect};
use tests::json::{at, int, text};
use tests::token::token;
use tests::world::{World, limit, market};

/// 2026-03-01T12:00:00Z.
const NOON: u64 = 1_772_366_400_000_000;
const DAY: u64 = 86_400_000_000;

const TRADES: &str = "trade_id,order_id,client_order_id,wallet_id,filled_at,market_id,market_question,token_id,outcome,\
side,order_type,time_in_force,liquidity,price,quantity,notional,fee,fee_rate_bps,price_source,venue_time,fee_source";
const SETTLEMENTS: &str = "position_id,wallet_id,market_id,market_question,outcome,token_id,quantity,avg_entry_price,\
cost_basis,payout,payout_per_share,realized_pnl,result,resolved_outcome,settled_at";

/// The lines after the header of an export.
#[track_caller]
fn lines(client: &mut Client, target: &str) -> Vec<String> {
    let answer = client.get(target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.lossy());
    assert!(answer.text().ends_with("\r\n"), "every line has a line end");
    let mut lines = answer.text().split_terminator("\r\n").map(str::to_string);
    let header = lines.next().expect("a header line");
    assert_eq!(header, if target.contains("trades") { TRADES } else { SETTLEMENTS });
    lines.collect()
}

/// A buy of one share at ten cents.
fn bought(at: u64, world: &mut World) {
    world.past(0, |history, markets| {
        let instrument = history.instrument(&markets.rain, 0);
        for number in 0..3 {
            let trade = Trade {
                instrument,
                wallet: if number == 1 { WalletKind::Main } else { WalletKind::Api },
                side: Side::Buy,
                qty: 1_000_000,
                notional: 100_000,
                fee: 1_000,
                at: Timestamp(at + number * DAY),
            };
            history.trade(trade);
        }
        let other = history.instrument(&markets.coin, 1);
        let trade = Trade {
            instrument: other,
            wallet: WalletKind::Api,
            side: Side::Buy,
            qty: 2_500_000,
            notional: 500_000,
            fee: 0,
            at: Timestamp(at + 3 * DAY),
        };
        history.trade(trade);
    });
}

#[test]
fn an_export_shows_what_the_account_shows() {
    let cases = Cases::of("export rows");
    let world = World::start(1);
    let mut client = world.user(0);
    assert!(lines(&mut client, "/v1/export/trades.csv").is_empty(), "only the header when there is nothing");
    assert!(lines(&mut client, "/v1/export/settlements.csv").is_empty());
    cases.add(2);
    let mut body = limit(&world.markets.rain, "BUY", "0.42", "10");
    body["client_order_id"] = "-bot, \"one\"".into();
    client.post("/v1/orders", &body).expect(200);
    client.post("/v1/orders", &market(&world.markets.rain, "SELL", "0.40", "5")).expect(200);
    let rows = client.get("/v1/account/history").expect(200);
    let shown = lines(&mut client, "/v1/export/trades.csv");
    assert_eq!(shown.len(), 2);
    for (row, line) in rows.as_array().unwrap().iter().zip(&shown) {
        let id = match row["client_order_id"].as_str() {
            Some(_) => "\"'-bot, \"\"one\"\"\"",
            None => "",
        };
        let expected = format!(
            "{},{},{id},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            int(row, "/trade_id"),
            int(row, "/order_id"),
            int(row, "/wallet_id"),
            text(row, "/filled_at"),
            text(row, "/market_id"),
            world.markets.rain.question,
            text(row, "/token_id"),
            text(row, "/outcome"),
            text(row, "/side"),
            if text(row, "/side") == "BUY" { "limit" } else { "market" },
            if text(row, "/side") == "BUY" { "GTC" } else { "IOC" },
            text(row, "/liquidity"),
            text(row, "/price"),
            text(row, "/quantity"),
            text(row, "/notional"),
            text(row, "/fee"),
            int(row, "/fee_rate_bps"),
            text(row, "/price_source"),
            text(row, "/venue_time"),
            text(row, "/fee_source"),
        );
        assert_eq!(text(row, "/fee_source"), "category_table");
        let same_tif = |line: &str| line.replace(",FOK,", ",IOC,").replace(",GTC,", ",IOC,");
        assert_eq!(same_tif(line), same_tif(&expected));
        cases.one();
    }
}

#[test]
fn parameters_choose_the_rows() {
    let cases = Cases::of("export parameters");
    let mut world = World::start(2);
    bought(NOON, &mut world);
    let mut client = world.user(0);
    let main = lines(&mut client, "/v1/export/trades.csv?wallet_id=all")[2].split(',').nth(3).unwrap().to_string();
    let rain = world.markets.rain.condition.clone();
    let coin = world.markets.coin.condition.clone();
    // The days of the shown rows, newest first.
    let rows: Vec<(String, &[&str])> = vec![
        (String::new(), &["04", "03", "02", "01"]),
        ("?wallet_id=ALL".into(), &["04", "03", "02", "01"]),
        ("?wallet_id=api".into(), &["04", "03", "01"]),
        (format!("?wallet_id={main}"), &["02"]),
        (format!("?market_id={rain}"), &["03", "02", "01"]),
        (format!("?market_id={coin}&wallet_id=api"), &["04"]),
        ("?market_id=0x00".into(), &[]),
        ("?market_id=".into(), &["04", "03", "02", "01"]),
        ("?from=2026-03-02".into(), &["04", "03", "02"]),
        ("?to=2026-03-02".into(), &["02", "01"]),
        ("?from=2026-03-02&to=2026-03-02".into(), &["02"]),
        ("?from=2026-03-02T12:00:00Z".into(), &["04", "03", "02"]),
        ("?from=2026-03-02T12:00:00.000001Z".into(), &["04", "03"]),
        ("?to=2026-03-02T12:00:00Z".into(), &["02", "01"]),
        ("?to=2026-03-02T11:59:59.999999Z".into(), &["01"]),
        ("?from=1772366400&to=1772452800".into(), &["02", "01"]),
        ("?from=2026-03-04&to=2026-03-02".into(), &[]),
        ("?from=2030-01-01".into(), &[]),
        ("?limit=1".into(), &["04", "03", "02", "01"]),
    ];
    for (query, days) in rows {
        let shown = lines(&mut client, &format!("/v1/export/trades.csv{query}"));
        let seen: Vec<_> = shown.iter().map(|line| line.split(',').nth(4).unwrap()[8..10].to_string()).collect();
        assert_eq!(seen, days, "{query}");
        cases.one();
    }
    for name in ["trades", "settlements"] {
        for (query, status, code) in [
            ("from=yesterday", 422, "VALIDATION_FAILED"),
            ("from=", 422, "VALIDATION_FAILED"),
            ("to=2026-02-30", 422, "VALIDATION_FAILED"),
            ("wallet_id=x", 422, "VALIDATION_FAILED"),
            ("wallet_id=", 422, "VALIDATION_FAILED"),
            ("wallet_id=12345", 404, "WALLET_NOT_FOUND"),
        ] {
            client.get(&format!("/v1/export/{name}.csv?{query}")).refused(status, code);
            cases.one();
        }
        // Another user's wallet is an unknown one, and its trades belong to that user.
        let theirs = world.user(1).get(&format!("/v1/export/{name}.csv?wallet_id={main}"));
        theirs.refused(404, "WALLET_NOT_FOUND");
        assert!(lines(&mut world.user(1), &format!("/v1/export/{name}.csv")).is_empty());
        cases.add(2);
    }
}

#[test]
fn who_may_export() {
    let cases = Cases::of("export callers");
    let world = World::start(1);
    let (mut free, person) = world.newcomer("free person");
    let mut by_token = world.server.with_token(&person);
    for name in ["trades", "settlements"] {
        let target = format!("/v1/export/{name}.csv");
        for client in [&mut free, &mut by_token] {
            let refused = client.get(&target).refused(402, "UPGRADE_REQUIRED");
            assert_eq!((text(&refused, "/feature_key"), text(&refused, "/upgrade_url")), ("export.csv", "/pricing"));
            // An error of the request is reported first.
            client.get(&format!("{target}?from=x")).refused(422, "VALIDATION_FAILED");
        }
        world.public().get(&target).refused(401, "MISSING_AUTH");
        world.server.with_token(&token("x")[1..]).get(&target).refused(401, "INVALID_TOKEN");
        // A free key of a paying user counts as paid.
        let made = world.user(0).post("/v1/keys", &serde_json::json!({"tier": "free", "permissions": ["read"]}));
        let made = made.expect(201);
        assert!(lines(&mut world.server.with_key(text(&made, "/raw_key")), &target).is_empty());
        cases.add(7);
    }
}

#[test]
fn the_outside_of_an_export() {
    let cases = Cases::of("export headers");
    let mut world = World::start(1);
    bought(NOON, &mut world);
    let mut client = world.user(0);
    for (name, rows) in [("trades", 4), ("settlements", 0)] {
        let target = format!("/v1/export/{name}.csv");
        let plain = client.get(&target);
        let check = |answer: &Response| {
            assert_eq!(answer.header("Content-Type"), Some("text/csv; charset=utf-8"));
            let attachment = format!("attachment; filename=\"{name}.csv\"");
            assert_eq!(answer.header("Content-Disposition"), Some(attachment.as_str()));
            assert_eq!(answer.header("Cache-Control"), Some("private, no-store"));
            assert_eq!(answer.header("Vary"), Some("Accept-Encoding"));
            assert!(answer.header("X-RateLimit-Limit").is_some() && answer.header("X-Svc-RateLimit-Limit").is_some());
            assert_eq!(answer.header("X-Request-Id"), Some("r-1"), "{:?}", answer.headers);
        };
        let send = |client: &mut Client, method: &str, gzip: bool| {
            let mut request = Request::new(method, &target).header("X-Request-Id", "r-1");
            if gzip {
                request = request.header("Accept-Encoding", "gzip");
            }
            client.send(&request)
        };
        let whole = send(&mut client, "GET", false);
        check(&whole);
        assert_eq!(whole.header("Transfer-Encoding"), Some("chunked"));
        assert_eq!((whole.text(), whole.text().lines().count()), (plain.text(), rows + 1));
        let packed = send(&mut client, "GET", true);
        check(&packed);
        assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut unpacked).expect("gzip");
        assert_eq!(unpacked, plain.text());
        let head = send(&mut client, "HEAD", false);
        check(&head);
        assert_eq!((head.status, head.header("Content-Length"), head.body.len()), (200, None, 0));
        // The connection continues after a HEAD and after a stream.
        assert_eq!(client.get("/v1/account/balance").status, 200);
        cases.add(4);
    }
    // Without chunks the end of the connection is the end of the file.
    let mut old = connect(world.server.address()).expect("the server accepts connections");
    let request = format!("GET /v1/export/trades.csv HTTP/1.0\r\nX-API-Key: {}\r\n\r\n", world.users[0].key);
    old.write_all(request.as_bytes()).expect("it is read");
    let mut received = String::new();
    old.read_to_string(&mut received).expect("it ends");
    let body = received.split_once("\r\n\r\n").expect("a head").1;
    assert_eq!(body, client.get("/v1/export/trades.csv").text());
    cases.one();
}

#[test]
fn a_truncated_export_is_marked() {
    let cases = Cases::of("export row cap");
    let mut world = World::start_with(1, |place| _ = place.set("export", "max_rows", "3"));
    bought(NOON, &mut world);
    let mut client = world.user(0);
    let shown = lines(&mut client, "/v1/export/trades.csv");
    assert_eq!(shown.len(), 4);
    assert!(shown[3].starts_with("# truncated: "), "{}", shown[3]);
    let days: Vec<_> = shown[..3].iter().map(|line| &line.split(',').nth(4).unwrap()[8..10]).collect();
    assert_eq!(days, ["04", "03", "02"], "the newest are shown");
    // A full cap is still a complete export.
    assert_eq!(lines(&mut client, "/v1/export/trades.csv?wallet_id=api").len(), 3);
    assert_eq!(lines(&mut client, "/v1/export/trades.csv?to=2026-03-03").len(), 3);
    cases.add(3);
}

/// Kibibytes of anonymous memory that a process has now; the kernel keeps no peak of it. Pages of files are excluded:
/// those of the log come and go after a start.
fn memory(pid: u32) -> i64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let found = status.lines().find_map(|text| text.strip_prefix("RssAnon:")).expect("the kernel reports it");
    found.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn three_hundred_thousand_trades_take_no_memory() {
    const TRADES_COUNT: usize = 300_000;
    const GROWTH_KIB_MAX: i64 = 8 << 10;
    let cases = Cases::of("long export");
    let mut world = World::start_with(1, |place| {
        place.set("export", "max_rows", "1000000");
        // A background checkpoint would take memory of its own, and so would prefaulting.
        place.set("journal", "checkpoint_segments", "1000").set("engine", "prefault_bytes", "0");
    });
    world.past(0, |history, markets| {
        let instrument = history.instrument(&markets.rain, 0);
        for number in 0..TRADES_COUNT as u64 {
            let side = if number % 2 == 0 { Side::Buy } else { Side::Sell };
            let trade = Trade {
                instrument,
                wallet: WalletKind::Api,
                side,
                qty: 10_000_000,
                notional: 4_200_000,
                fee: 1_000,
                at: Timestamp(NOON + number * 1_000_000),
            };
            history.trade(trade);
        }
    });
    let pid = world.server.pid();
    let mut client = world.user(0);
    // A small one first, so that the permanent allocations of a first export exist.
    lines(&mut client, "/v1/export/trades.csv?from=2026-03-01&to=2026-03-01T12:00:59Z");
    let before = memory(pid);
    for gzip in ["identity", "gzip"] {
        let mut stream = connect(world.server.address()).expect("the server accepts connections");
        let head = format!(
            "GET /v1/export/trades.csv HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: {gzip}\r\n\
             X-API-Key: {}\r\n\r\n",
            world.users[0].key
        );
        stream.write_all(head.as_bytes()).expect("it is read");
        let mut first = [0; 4_096];
        stream.read_exact(&mut first).expect("the first bytes");
        // The client stops reading for now, and the others are served.
        let mut other = world.user(0);
        for _ in 0..50 {
            other.get("/v1/account/balance").expect(200);
        }
        // The chunks made ahead for a slow reader exist now; the next ones are made as it reads.
        let mut most = memory(pid);
        let mut rest = vec![0; 1 << 16];
        let (mut lines, mut bytes) = (count(&first), first.len());
        loop {
            match stream.read(&mut rest).expect("the rest") {
                0 => break,
                read => {
                    lines += count(&rest[..read]);
                    bytes += read;
                }
            }
            most = most.max(memory(pid));
        }
        if gzip == "identity" {
            assert!(lines > TRADES_COUNT, "{lines} lines");
        }
        let growth = most - before;
        println!("{bytes} bytes ({gzip}), peak memory {growth} KiB above {before}");
        assert!(growth < GROWTH_KIB_MAX, "{growth} KiB");
        cases.one();
    }
    let shown = lines(&mut client, "/v1/export/trades.csv");
    assert_eq!(shown.len(), TRADES_COUNT);
    let ids: Vec<u64> = shown.iter().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older), "each trade once, newest first");
    assert_eq!(at(&client.get("/v1/account/portfolio").expect(200), "/total_trades"), TRADES_COUNT);
    cases.one();
}

fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}
