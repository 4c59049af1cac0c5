//! A machine with a wrong clock: what a start reports and does when its log does not fit the clock, and what `papertape
//! clock set-back` makes of the log.

use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};
use tests::address::Account;
use tests::binary::{command, run, run_well};
use tests::cases::Cases;
use tests::chance::Chance;
use tests::eventually;
use tests::exposition::scrape;
use tests::http::{Client, Request};
use tests::json::{int, list, text};
use tests::server::{Server, digest_of, log_of};
use tests::socket::{Got, Socket, token as socket_token};
use tests::token::{SECRET, claims, sign, token, unix_now};
use tests::world::{World, changed, limit};

use crate::kills::copy_dir;

const DAY: u64 = 86_400;

/// A world with a metrics listener, whose books never get too old.
fn world(leap_wait_s: &str) -> World {
    World::start_with(1, |place| {
        place.clock_ahead(0).set("clock", "leap_wait_s", leap_wait_s).set("admin", "listen", "\"127.0.0.1:0\"");
        place.set("flags", "match_interval_ms", "50").set("venue", "address_login", "true");
    })
}

/// A GTD order that expires in this many seconds.
fn gtd(world: &World, price: &str, seconds: u64) -> Value {
    let expiration = json!({"time_in_force": "GTD", "expiration": unix_now() + seconds});
    changed(&limit(&world.markets.rain, "BUY", price, "10"), &expiration)
}

fn place(client: &mut Client, body: &Value) -> i64 {
    int(&client.post("/v1/orders", body).expect(200), "/order_id")
}

fn order(client: &mut Client, id: i64) -> Value {
    client.get(&format!("/v1/orders/{id}")).expect(200)
}

fn clock_of(server: &Server) -> Value {
    server.client().get("/v1/status").expect(200)["clock"].clone()
}

/// The part of `output` from the line with the warning of a start.
fn warnings(output: &str) -> usize {
    output.lines().filter(|line| line.contains("WARN") && line.contains("the wall clock says")).count()
}

fn set_back(data: &Path, more: &[&str]) -> Output {
    let mut args: Vec<OsString> = vec!["clock".into(), "set-back".into(), data.into()];
    args.extend(more.iter().map(OsString::from));
    run(args)
}

fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Seconds between a time in an answer and now.
fn away(moment: &Value) -> i64 {
    let at: jiff::Timestamp = moment.as_str().expect("a moment").parse().expect("RFC 3339");
    at.as_second() - unix_now() as i64
}

/// The server was stopped for days, or its clock is ahead: reported in three places, and ready nevertheless. Nothing
/// expires until the wait is over, and due orders do not fill meanwhile.
#[test]
fn a_leap_is_reported_and_expiry_waits() {
    let cases = Cases::of("effects of a leap ahead");
    let mut world = world("30");
    let clock = clock_of(&world.server);
    assert_eq!((text(&clock, "/start"), text(&clock, "/sweeps")), ("ok", "running"));
    let mut user = world.user(0);
    // Below the best bid, so that nothing of them fills before the asks fall.
    let dying = place(&mut user, &gtd(&world, "0.35", 3_600));
    let lasting = place(&mut user, &gtd(&world, "0.35", 300 * DAY));
    world.server.kill();
    world.place.clock_ahead(100 * DAY);
    let started = Instant::now();
    world.server = world.place.start();
    let mut user = world.user(0);
    assert_eq!(world.public().get("/v1/health/ready").status, 200);
    let clock = clock_of(&world.server);
    assert_eq!((text(&clock, "/start"), text(&clock, "/sweeps")), ("ahead", "waiting"), "{clock}");
    assert!(away(&clock["newest_record_at"]).abs() < 600 && away(&clock["wall_at_start"]) > 99 * DAY as i64);
    assert!(away(&clock["wall_at"]) > 99 * DAY as i64 && clock["venue_at"].is_null(), "{clock}");
    let metrics = scrape(world.server.admin().expect("a metrics listener"));
    assert!(metrics.value("papertape_clock_leap_seconds", &[]) > 99.0 * DAY as f64);
    assert_eq!(metrics.value("papertape_clock_sweeps_waiting", &[]), 1.0);
    assert!(metrics.value("papertape_clock_ahead_seconds", &[]).abs() < 60.0);
    eventually("the warning", || (warnings(&world.server.output()) == 1).then_some(()));
    for part in
        ["100 days before", "If this server was off for that long, nothing is wrong", "clock set-back", "For 30 s"]
    {
        assert!(world.server.output().contains(part), "{part:?} is not in {}", world.server.output());
        cases.one();
    }
    // An ask, and then a trade, that would fill both.
    world.tape.books(&world.markets.rain, &[("0.20", "5")], &[("0.35", "400")]);
    eventually("the lasting order to fill", || (order(&mut user, lasting)["status"] == "FILLED").then_some(()));
    world.tape.trade(&world.markets.rain, 0, "SELL", "0.30", "50");
    // Slightly longer than several cycles.
    std::thread::sleep(Duration::from_millis(400));
    let waiting = order(&mut user, dying);
    assert!(started.elapsed() < Duration::from_secs(30), "the machine is too slow for this test");
    assert_eq!((text(&waiting, "/status"), text(&waiting, "/filled_quantity")), ("PENDING", "0"), "{waiting}");
    cases.one();
    let ended = eventually("the order to expire", || {
        Some(order(&mut user, dying)).filter(|order| order["status"] != "PENDING")
    });
    assert_eq!((text(&ended, "/status"), text(&ended, "/filled_quantity")), ("CANCELLED", "0"), "{ended}");
    assert!(started.elapsed() >= Duration::from_secs(30), "the wait is as long as configured");
    eventually("the status to report it", || (clock_of(&world.server)["sweeps"] == "running").then_some(()));
    assert_eq!(scrape(world.server.admin().expect("a listener")).value("papertape_clock_sweeps_waiting", &[]), 0.0);
    world.server.kill();
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
    // Two days are above the threshold, an hour is not, and requires no wait.
    for (ahead, wait, start, sweeps) in [
        (100 * DAY + 3_600, "60", "ok", "running"),
        (103 * DAY, "60", "ahead", "waiting"),
        // The start before has logged its own time.
        (103 * DAY + 3_600, "60", "ahead", "waiting"),
        (106 * DAY, "0", "ahead", "running"),
        (106 * DAY + 3_600, "60", "ok", "running"),
    ] {
        world.place.clock_ahead(ahead).set("clock", "leap_wait_s", wait);
        world.server = world.place.start();
        let clock = clock_of(&world.server);
        assert_eq!((text(&clock, "/start"), text(&clock, "/sweeps")), (start, sweeps), "{ahead} {wait}");
        world.server.kill();
        cases.one();
    }
}

/// The clock was ahead, and is right again: external tokens are checked against it, independent of the log; and a
/// correction repairs the log.
#[test]
fn a_clock_that_was_ahead_is_put_right() {
    let cases = Cases::of("effects of a clock that was ahead");
    let mut world = world("60");
    let mut user = world.user(0);
    let before = place(&mut user, &limit(&world.markets.rain, "BUY", "0.30", "10"));
    let rests = place(&mut user, &gtd(&world, "0.31", 3_600));
    world.server.kill();
    world.place.clock_ahead(400 * DAY);
    world.server = world.place.start();
    let mut user = world.user(0);
    let ahead = place(&mut user, &limit(&world.markets.vote, "BUY", "0.65", "10"));
    assert!(away(&order(&mut user, ahead)["created_at"]) > 399 * DAY as i64);
    let rotated = {
        let made = user.post("/v1/keys", &json!({"name": "rotated"})).expect(201);
        user.post(&format!("/v1/keys/{}/rotate", int(&made, "/id")), &json!({})).expect(201);
        text(&made, "/raw_key").to_owned()
    };
    // A directory in use is not changed.
    let refused = set_back(&world.place.data(), &[]);
    assert!(
        !refused.status.success() && output_text(&refused).contains("owns the log directory"),
        "{}",
        output_text(&refused)
    );
    world.server.kill();

    // The clock is right again.
    world.place.clock_ahead(0);
    world.server = world.place.start();
    let clock = clock_of(&world.server);
    assert_eq!((text(&clock, "/start"), text(&clock, "/sweeps")), ("behind", "waiting"), "{clock}");
    let metrics = scrape(world.server.admin().expect("a metrics listener"));
    assert!(metrics.value("papertape_clock_leap_seconds", &[]) < -399.0 * DAY as f64);
    assert!(metrics.value("papertape_clock_ahead_seconds", &[]) > 399.0 * DAY as f64);
    eventually("the warning", || (warnings(&world.server.output()) == 1).then_some(()));
    assert!(
        world.server.output().contains("Server time continues from the record, at half speed"),
        "{}",
        world.server.output()
    );
    // External tokens: those of now, and no others.
    let identity = |change: Value| {
        sign(&json!({"alg": "HS256", "typ": "JWT"}), &changed(&claims("outsider"), &change), SECRET.as_bytes())
    };
    let in_a_year = unix_now() + 400 * DAY;
    for (token, code) in [
        (token("outsider"), None),
        (identity(json!({"nbf": unix_now() - 5})), None),
        (identity(json!({"exp": unix_now() - 5})), Some("TOKEN_EXPIRED")),
        (identity(json!({"nbf": in_a_year, "exp": in_a_year + 3_600})), Some("INVALID_TOKEN")),
    ] {
        let answer = world.server.with_token(&token).get("/v1/me");
        match code {
            None => _ = answer.expect(200),
            Some(code) => _ = answer.refused(401, code),
        }
        cases.one();
    }
    let mut outsider = world.server.with_token(&token("outsider"));
    let once = socket_token(&mut outsider);
    Socket::open(world.server.address(), &format!("/v1/ws/prices?token={once}"), &[]).is_alive();
    let mut again = Socket::open(world.server.address(), &format!("/v1/ws/prices?token={once}"), &[]);
    assert_eq!(again.receive(), Got::Close(4001, "INVALID_TOKEN".into()));
    let log_in = |number: u64, signed_at: u64| {
        let signed = Account::new(number).sign(137, signed_at, 0);
        let ask = signed
            .headers()
            .into_iter()
            .fold(Request::post("/v1/auth/api-key"), |ask, (name, value)| ask.header(name, value));
        world.server.client().send(&ask).status
    };
    // By the wall clock, and by the time that the server reports.
    let server_time = world.public().get("/v1/time").json().as_u64().expect("unix seconds");
    assert!(server_time > unix_now() + 399 * DAY, "{server_time}");
    for (signed_at, status) in
        [(unix_now(), 200), (server_time, 200), (unix_now() + 200 * DAY, 401), (unix_now() - 90, 401)]
    {
        assert_eq!(log_in(5, signed_at), status, "signed at {signed_at}");
        cases.one();
    }
    assert_eq!(
        order(&mut world.user(0), rests)["status"],
        "PENDING",
        "an order that is not due by the right clock waits"
    );
    world.server.kill();

    // The correction.
    let (data, digest) = (world.place.data(), world.place.digest());
    let dry = set_back(&data, &["--dry-run"]);
    assert!(dry.status.success() && output_text(&dry).contains("would be set back from"), "{}", output_text(&dry));
    assert_eq!(world.place.digest(), digest, "nothing was written");
    let done = set_back(&data, &[]);
    assert!(done.status.success() && output_text(&done).contains("set back from"), "{}", output_text(&done));
    assert!(log_of(&data, "verify").status.success(), "{}", output_text(&log_of(&data, "verify")));
    let inspected = output_text(&log_of(&data, "inspect"));
    assert_eq!(inspected.matches("ClockSetBack").count(), 1);
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
    assert!(world.place.digest() != digest);
    for more in [&[][..], &["--dry-run"][..]] {
        let refused = set_back(&data, more);
        assert!(
            !refused.status.success() && output_text(&refused).contains("nothing to set back"),
            "{}",
            output_text(&refused)
        );
        cases.one();
    }
    // A snapshot after it, and a backup, have the corrected state.
    run_well([OsString::from("snapshot"), "create".into(), data.clone().into()]);
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
    let (out, restored) = (world.place.root().join("backup.tar"), world.place.root().join("restored"));
    run_well([OsString::from("backup"), data.clone().into(), "--out".into(), out.clone().into()]);
    run_well([OsString::from("restore"), out.into(), "--out".into(), restored.clone().into()]);
    assert_eq!(digest_of(&restored), world.place.digest());
    assert!(log_of(&restored, "verify").status.success());
    cases.one();

    world.server = world.place.start();
    let clock = clock_of(&world.server);
    assert_eq!((text(&clock, "/start"), text(&clock, "/sweeps")), ("ok", "running"), "{clock}");
    assert_eq!(warnings(&world.server.output()), 0);
    let mut user = world.user(0);
    let after = place(&mut user, &limit(&world.markets.vote, "BUY", "0.65", "10"));
    // No time is in the future any more, and the list is in the order of its ids.
    let all = user.get("/v1/orders?limit=50").expect(200);
    let ids = |page: &Value| -> Vec<i64> { list(page, "/orders").iter().map(|row| int(row, "/order_id")).collect() };
    assert_eq!(ids(&all), [after, ahead, rests, before]);
    for id in [before, rests, ahead, after] {
        assert!(away(&order(&mut user, id)["created_at"]) <= 1, "{id}");
        cases.one();
    }
    assert_eq!(order(&mut user, rests)["status"], "PENDING");
    let page = user.get("/v1/orders?limit=2").expect(200);
    let next = user.get(&format!("/v1/orders?limit=2&cursor={}", text(&page, "/next_cursor"))).expect(200);
    assert_eq!(ids(&next), [rests, before], "pages continue across the correction");
    // A GTD order of the right time, which the clock before would have refused.
    let short = place(&mut user, &gtd(&world, "0.30", 3));
    eventually("it to expire", || (order(&mut user, short)["status"] == "CANCELLED").then_some(()));
    // The old half of a rotation ends within a day.
    let listed = user.get("/v1/keys?limit=50").expect(200);
    let ends: Vec<i64> = listed
        .as_array()
        .expect("keys")
        .iter()
        .filter(|key| key["expires_at"].is_string())
        .map(|key| away(&key["expires_at"]))
        .collect();
    assert!(ends.len() == 1 && ends[0] <= DAY as i64, "{ends:?}");
    world.server.with_key(&rotated).get("/v1/account/balance").expect(200);
    world.server.kill();
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
}

/// Places orders until the server has written a snapshot: a few thousand long ids fill a small segment.
pub fn until_a_snapshot(world: &World) {
    let newest = || {
        let files =
            fs::read_dir(world.place.data()).expect("a directory").map(|file| file.expect("a file").file_name());
        files.filter(|name| name.to_string_lossy().ends_with(".snapshot")).max()
    };
    let (before, mut user, mut sent) = (newest(), world.user(0), 0);
    let order = limit(&world.markets.rain, "BUY", "0.01", "10");
    eventually("a snapshot", || {
        let id = |entry: i32| json!({"client_order_id": format!("{:x<250}", format!("{sent}-{entry}-"))});
        let entries: Vec<Value> = (0..20).map(|entry| changed(&order, &id(entry))).collect();
        sent += 1;
        // It may be busy.
        user.post("/v1/orders/batch", &json!({"orders": entries}));
        (newest() > before).then_some(())
    });
}

/// By a clock that is days ahead no id counts, and the server writes snapshots; after the correction ids count again.
#[test]
fn a_correction_loses_no_id() {
    let cases = Cases::of("ids after a correction");
    let mut world = World::start_with(1, |place| {
        place.clock_ahead(0).set("clock", "leap_wait_s", "3600").set("flags", "match_interval_ms", "50");
        place.set("journal", "segment_bytes", "1048576").set("journal", "checkpoint_segments", "1");
    });
    let order = limit(&world.markets.rain, "BUY", "0.01", "10");
    let grid = changed(&order, &json!({"client_order_id": "grid-1"}));
    let first = place(&mut world.user(0), &grid);
    world.server.kill();
    world.place.clock_ahead(4 * DAY);
    world.server = world.place.start();
    let clock = clock_of(&world.server);
    assert_eq!((text(&clock, "/start"), text(&clock, "/sweeps")), ("ahead", "waiting"), "{clock}");
    let mut user = world.user(0);
    assert_eq!(user.get("/v1/orders/by-client-id/grid-1").status, 404, "it does not count by this clock");
    let data = world.place.data();
    until_a_snapshot(&world);
    assert_eq!(clock_of(&world.server)["sweeps"], "waiting", "the machine is too slow for this test");
    world.server.kill();
    world.place.clock_ahead(0);
    let done = set_back(&data, &[]);
    assert!(done.status.success(), "{}", output_text(&done));
    world.server = world.place.start();
    let mut user = world.user(0);
    assert_eq!(int(&user.get("/v1/orders/by-client-id/grid-1").expect(200), "/order_id"), first);
    cases.one();
    let repeated = user.post("/v1/orders", &grid).expect(200);
    assert_eq!((int(&repeated, "/order_id"), &repeated["is_replay"]), (first, &json!(true)), "{repeated}");
    cases.one();
    user.post("/v1/orders", &changed(&grid, &json!({"quantity": "11"}))).refused(409, "DUPLICATE_CLIENT_ORDER_ID");
    cases.one();
}

/// Killed anywhere, the directory is either unchanged or corrected, intact, and the correction can be repeated.
#[test]
fn a_correction_that_is_killed_has_happened_or_not() {
    let cases = Cases::of("corrections killed");
    let mut world = world("60");
    world.server.kill();
    world.place.clock_ahead(400 * DAY);
    world.server = world.place.start();
    let mut user = world.user(0);
    let ids: Vec<i64> = (0..5).map(|_| place(&mut user, &limit(&world.markets.rain, "BUY", "0.30", "10"))).collect();
    world.server.kill();
    world.place.clock_ahead(0);
    let (data, kept) = (world.place.data(), world.place.root().join("kept"));
    copy_dir(&data, &kept);
    let (before, begun) = (digest_of(&data), Instant::now());
    assert!(set_back(&data, &[]).status.success());
    // Kills come later and later until half of them come too late.
    let mut within = begun.elapsed().as_micros() as usize;
    let mut chance = Chance::from_env("SET_BACK_SEED");
    let (mut undone, mut done) = (0, 0);
    for round in 0..40 {
        fs::remove_dir_all(&data).expect("it can be removed");
        copy_dir(&kept, &data);
        let verb = command().args(["clock", "set-back"]).arg(&data).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut verb = verb.expect("papertape can be started");
        std::thread::sleep(Duration::from_micros((within / 2 + chance.below(within / 2)) as u64));
        let _ = verb.kill();
        verb.wait().expect("a child can be waited for");
        let verified = log_of(&data, "verify");
        assert!(verified.status.success(), "round {round}: {}", output_text(&verified));
        let has_happened = output_text(&log_of(&data, "inspect")).contains("ClockSetBack");
        assert_eq!(digest_of(&data) == before, !has_happened, "round {round}");
        let again = set_back(&data, &[]);
        assert_eq!(again.status.success(), !has_happened, "round {round}: {}", output_text(&again));
        assert_eq!(output_text(&log_of(&data, "inspect")).matches("ClockSetBack").count(), 1, "round {round}");
        (undone, done) = (undone + u32::from(!has_happened), done + u32::from(has_happened));
        within = if has_happened { within * 4 / 5 + 1_000 } else { within * 5 / 4 };
        cases.one();
        if round % 10 == 0 {
            let server = world.place.start();
            let mut user = server.with_key(&world.users[0].key);
            for id in &ids {
                assert!(away(&order(&mut user, *id)["created_at"]) <= 1, "round {round}");
            }
            assert_eq!(clock_of(&server)["start"], "ok");
        }
    }
    println!("corrections killed: {undone} had no effect, {done} were complete");
    assert!(undone > 0 && done > 0, "both occur: {undone}, {done}");
}
