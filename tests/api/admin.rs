//! The admin namespace (gateway/docs/admin.md): which requests are answered and which are not, the report about the
//! node, one control at a time, and a peer of a backup that does not read.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};
use tests::cases::Cases;
use tests::eventually;
use tests::exposition::{ask, scrape};
use tests::http::{Client, Request, ask_raw, connect, send_raw};
use tests::json::{at, int, text};
use tests::server::ServerDir;
use tests::world::{World, limit};

/// A world with an admin listener; its address and its token.
fn guarded(users: usize, settings: impl FnOnce(&mut ServerDir)) -> (World, SocketAddr, String) {
    let world = World::start_with(users, |place| {
        place.set("admin", "listen", "\"127.0.0.1:0\"");
        settings(place);
    });
    let admin = world.server.admin().expect("the banner has the address");
    let token = fs::read_to_string(world.place.data().join("admin_token")).expect("the server created one");
    (world, admin, token)
}

/// More than the buffers of sockets and stream hold for a peer that does not read: the file of incidents, which is
/// copied unchanged, although the server does not read one of that length.
fn bulk(world: &World) -> std::path::PathBuf {
    let path = world.place.data().join("incidents.json");
    let file = File::create(&path).expect("the data directory is a folder");
    file.set_len(64 << 20).expect("a sparse file takes no room");
    path
}

#[test]
fn only_requests_with_the_token_are_answered() {
    let cases = Cases::of("requests of the admin namespace");
    let (world, admin, token) = guarded(1, |_| {});
    let own = admin.to_string();
    let bearer = format!("Authorization: Bearer {token}");
    let bearer = bearer.as_str();
    let key = format!("Authorization: Bearer {}", world.users[0].key);
    let (node, backup) = ("/v1/admin/node", "/v1/admin/backup");
    let json = "Content-Type: application/json";
    let long = "x".repeat(70_000);
    // Method, target, host, headers, body; the status.
    type Row<'a> = (&'a str, &'a str, &'a str, &'a [&'a str], &'a str, u16, &'a str);
    let rows: &[Row<'_>] = &[
        ("GET", node, &own, &[bearer], "", 200, ""),
        ("GET", node, &own, &[], "", 401, "MISSING_AUTH"),
        ("GET", node, &own, &["Authorization:"], "", 401, "MISSING_AUTH"),
        ("GET", node, &own, &[&format!("X-API-Key: {token}")], "", 401, "MISSING_AUTH"),
        ("GET", node, &own, &["Authorization: Bearer x"], "", 401, "INVALID_TOKEN"),
        ("GET", node, &own, &[&key], "", 401, "INVALID_TOKEN"),
        ("GET", node, &own, &[&format!("{bearer}0")], "", 401, "INVALID_TOKEN"),
        ("GET", node, &own, &[&format!("Authorization: Basic {token}")], "", 401, "INVALID_TOKEN"),
        ("GET", node, &own, &[bearer, bearer], "", 401, "INVALID_TOKEN"),
        ("GET", &format!("{node}?token={token}"), &own, &[], "", 401, "MISSING_AUTH"),
        ("POST", backup, &own, &[json], "{}", 401, "MISSING_AUTH"),
        // A request of a browser, with any origin.
        ("GET", node, &own, &[bearer, "Origin: null"], "", 403, "ADMIN_FORBIDDEN"),
        ("GET", node, &own, &[bearer, &format!("Origin: http://{own}")], "", 403, "ADMIN_FORBIDDEN"),
        ("GET", node, &own, &["Origin: https://evil.example"], "", 403, "ADMIN_FORBIDDEN"),
        ("OPTIONS", backup, &own, &["Origin: null", "Access-Control-Request-Method: POST"], "", 403, "ADMIN_FORBIDDEN"),
        // Host names that resolve to this machine.
        ("GET", node, "evil.example", &[bearer], "", 421, "MISDIRECTED_REQUEST"),
        ("GET", node, "evil.example:9464", &[bearer, "Origin: null"], "", 421, "MISDIRECTED_REQUEST"),
        ("GET", &format!("http://evil.example{node}"), &own, &[bearer], "", 421, "MISDIRECTED_REQUEST"),
        ("GET", node, "localhost", &[bearer], "", 200, ""),
        ("GET", node, "[::1]:1", &[bearer], "", 200, ""),
        ("GET", node, "192.0.2.7", &[bearer], "", 200, ""),
        ("GET", node, "papertape", &[bearer], "", 200, ""),
        ("GET", node, &own, &[bearer, "Host: evil.example"], "", 400, "INVALID_REQUEST"),
        ("GET", node, "evil.example", &[bearer, &format!("Host: {own}")], "", 400, "INVALID_REQUEST"),
        // Routes and methods, with the token.
        ("HEAD", node, &own, &[bearer], "", 200, ""),
        ("POST", node, &own, &[bearer, json], "{}", 405, "HTTP_405"),
        ("GET", backup, &own, &[bearer], "", 405, "HTTP_405"),
        ("DELETE", backup, &own, &[bearer], "", 405, "HTTP_405"),
        ("GET", "/v1/admin/nodes", &own, &[bearer], "", 404, "NOT_FOUND"),
        ("GET", "/v1/admin/", &own, &[bearer], "", 404, "NOT_FOUND"),
        ("GET", "/v1/admin/../node", &own, &[bearer], "", 404, "NOT_FOUND"),
        ("GET", "/v1/admin/nodes", &own, &[], "", 401, "MISSING_AUTH"),
        ("OPTIONS", node, &own, &[bearer], "", 405, "HTTP_405"),
        // Bodies.
        ("POST", backup, &own, &[bearer, "Content-Type: text/plain"], "{}", 403, "ADMIN_FORBIDDEN"),
        (
            "POST",
            backup,
            &own,
            &[bearer, "Content-Type: application/x-www-form-urlencoded"],
            "a=b",
            403,
            "ADMIN_FORBIDDEN",
        ),
        ("POST", backup, &own, &[bearer], "{}", 403, "ADMIN_FORBIDDEN"),
        ("GET", node, &own, &[bearer, "Content-Type: text/plain"], "x", 403, "ADMIN_FORBIDDEN"),
        ("POST", backup, &own, &[bearer, json], "{", 400, "INVALID_BODY"),
        ("POST", backup, &own, &[bearer, json], "[]", 400, "INVALID_BODY"),
        ("POST", backup, &own, &[bearer, json], r#"{"with_secrets":"yes"}"#, 422, "VALIDATION_FAILED"),
        ("POST", backup, &own, &[bearer, json], &long, 413, "HTTP_413"),
    ];
    for (method, target, host, headers, body, status, code) in rows {
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}{length}\r\n{body}");
        let shown = request.replace(&token, "TOKEN");
        if *method == "HEAD" {
            let mut stream = connect(admin).expect("the kernel takes it");
            stream.write_all(request.as_bytes()).expect("the kernel takes it");
            let mut head = [0; 15];
            stream.read_exact(&mut head).expect("an answer");
            assert_eq!(&head, b"HTTP/1.1 200 OK", "{shown}");
            cases.one();
            continue;
        }
        let answer = ask_raw(admin, request.as_bytes()).unwrap_or_else(|| panic!("no answer to {shown}"));
        assert_eq!(answer.status, *status, "{shown}: {}", answer.lossy());
        match *status {
            200 => assert_eq!(answer.header("Cache-Control"), Some("private, no-store"), "{shown}"),
            _ => drop(answer.refused(*status, code)),
        }
        if *status == 405 {
            let expected = if *target == node { "GET, HEAD" } else { "POST" };
            assert_eq!(answer.header("Allow"), Some(expected), "{shown}");
        }
        assert_eq!(answer.header("Access-Control-Allow-Origin"), None, "{shown}");
        cases.one();
    }
    // With the token connections are kept alive, and figures are unchanged; without one, each connection ends after a
    // request.
    let head = |target: &str, more: &str| format!("GET {target} HTTP/1.1\r\nHost: {own}\r\n{more}\r\n");
    for (request, closes) in [(head(node, &format!("{bearer}\r\n")), false), (head("/metrics", ""), true)] {
        let answer = send_raw(admin, request.as_bytes());
        assert_eq!(answer.response.as_ref().map(|response| response.status), Some(200));
        assert!(if closes { answer.ends() } else { answer.stays_open() }, "closes: {closes}");
        cases.one();
    }
    assert_eq!(ask(admin, "GET", "/v1/health").expect("an answer").status, 404);
    // The server's own listener has no such routes.
    let mut public = Client::with_token(world.server.address(), &token);
    public.get(node).refused(404, "NOT_FOUND");
    let output = world.server.stop();
    assert!(!output.contains(&token), "the token is not printed");
}

#[test]
fn the_token_is_made_or_given() {
    let cases = Cases::of("admin tokens");
    let (mut world, _, token) = guarded(0, |_| {});
    let file = world.place.data().join("admin_token");
    let mode = fs::metadata(&file).expect("it is there").permissions().mode();
    assert!(token.len() >= 32 && mode & 0o777 == 0o600, "{} bytes, mode {mode:o}", token.len());
    world.crash();
    assert_eq!(fs::read_to_string(&file).expect("it is there"), token, "it stays");
    world.server.kill();
    let given = world.place.root().join("given");
    world.place.set("admin", "token_file", &format!("{given:?}"));
    for (content, expected) in [
        (None, Some("No such file")),
        (Some("short".to_owned()), Some("no secret of at least 32 bytes")),
        (Some("x".repeat(31)), Some("no secret of at least 32 bytes")),
        (Some(format!("{} {}", "x".repeat(20), "x".repeat(20))), Some("not printable")),
        (Some(format!("{}\n", "y".repeat(32))), None),
    ] {
        if let Some(content) = &content {
            fs::write(&given, content).expect("written");
        }
        match expected {
            Some(expected) => {
                let (status, output) = world.place.spawn_with(&[], &[]).ended();
                assert!(!status.success() && output.contains(expected) && output.contains("given"), "{output}");
            }
            None => {
                let server = world.place.start();
                let admin = server.admin().expect("the banner has the address");
                Client::with_token(admin, &token).get("/v1/admin/node").refused(401, "INVALID_TOKEN");
                Client::with_token(admin, &"y".repeat(32)).get("/v1/admin/node").expect(200);
                assert!(server.output().contains(&format!("token in {}", given.display())), "{}", server.output());
            }
        }
        cases.one();
    }
    // The listener is reachable from other machines only with an explicit setting and a configured token.
    world.place.set("admin", "listen", "\"0.0.0.0:0\"");
    for (remote, has_file, starts) in [(false, true, false), (true, false, false), (true, true, true)] {
        world.place.set("admin", "remote", if remote { "true" } else { "false" });
        match has_file {
            true => _ = world.place.set("admin", "token_file", &format!("{given:?}")),
            false => _ = world.place.unset("admin", "token_file"),
        }
        if starts {
            world.place.start();
        } else {
            let (status, output) = world.place.spawn_with(&[], &[]).ended();
            assert!(!status.success() && output.contains("admin.remote = true"), "{output}");
        }
        cases.one();
    }
}

#[test]
fn the_node_is_described() {
    let cases = Cases::of("fields of the node");
    let (mut world, admin, token) = guarded(1, |_| {});
    let (mut client, rain) = (world.user(0), world.markets.rain.clone());
    let before = Client::with_token(admin, &token).get("/v1/admin/node").expect(200);
    for _ in 0..5 {
        client.post("/v1/orders", &limit(&rain, "BUY", "0.02", "5")).expect(200);
    }
    let appended = scrape(admin).value("papertape_journal_appended_lsn", &[]);
    let mut operator = Client::with_token(admin, &token);
    let node = eventually("all of it on the device", || {
        let node = operator.get("/v1/admin/node").expect(200);
        (int(&node, "/lsn/synced") as f64 >= appended).then_some(node)
    });
    let fields: Vec<&str> = node.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected = [
        "version",
        "instance",
        "forked_from",
        "lineage",
        "disposable",
        "lsn",
        "horizon",
        "clock",
        "checkpoints",
        "data_bytes",
    ];
    assert_eq!(fields, expected);
    assert!(int(&node, "/lsn/appended") >= int(&before, "/lsn/appended") + 5, "{before} and {node}");
    assert!(int(&node, "/lsn/synced") <= int(&node, "/lsn/appended"));
    assert_eq!(at(&node, "/lsn/snapshot"), &Value::Null, "there is no snapshot");
    assert_eq!(int(&node, "/horizon/lsn"), 1);
    assert!(text(&node, "/horizon/at").ends_with('Z'), "{node}");
    assert_eq!((text(&node, "/clock"), at(&node, "/disposable")), ("wall", &json!(false)));
    assert_eq!((at(&node, "/lineage"), at(&node, "/checkpoints")), (&json!([]), &json!([])));
    assert_eq!((at(&node, "/forked_from"), text(&node, "/version")), (&Value::Null, env!("CARGO_PKG_VERSION")));
    assert!(int(&node, "/data_bytes") >= 4_194_304, "a segment: {node}");
    cases.add(expected.len());
    // The instance identifies the directory, and is public.
    let instance = text(&node, "/instance").to_owned();
    let parts: Vec<usize> = instance.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12], "{instance}");
    for path in ["/v1/health", "/v1/health/live"] {
        assert_eq!(text(&world.public().get(path).expect(200), "/instance"), instance, "{path}");
        cases.one();
    }
    world.server.kill();
    tests::binary::run_well(["snapshot".into(), "create".into(), world.place.data().into_os_string()]);
    world.server = world.place.start();
    let admin = world.server.admin().expect("the banner has the address");
    let node = Client::with_token(admin, &token).get("/v1/admin/node").expect(200);
    assert_eq!(text(&node, "/instance"), instance);
    let snapshots = fs::read_dir(world.place.data()).expect("a folder").flatten();
    let names = snapshots.filter_map(|entry| entry.file_name().into_string().ok());
    let newest = names.filter_map(|name| name.strip_suffix(".snapshot")?.parse::<i64>().ok()).max();
    assert_eq!(Some(int(&node, "/lsn/snapshot")), newest);
    assert_eq!(int(&node, "/horizon/lsn"), 1, "nothing was given up");
    cases.add(3);
}

/// Starts a backup and reads the head of the answer.
fn begun(admin: SocketAddr, token: &str) -> TcpStream {
    let mut stream = connect(admin).expect("the kernel takes it");
    let request = Request::post("/v1/admin/backup").header("Authorization", &format!("Bearer {token}"));
    stream.write_all(&request.bytes(admin, &[])).expect("the kernel takes it");
    let mut head = [0; 15];
    stream.read_exact(&mut head).expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    stream
}

#[test]
fn one_control_at_a_time() {
    let cases = Cases::of("controls");
    let (world, admin, token) = guarded(1, |_| {});
    let bulk = bulk(&world);
    let first = begun(admin, &token);
    let mut operator = Client::with_token(admin, &token);
    // Requests other than controls do not wait.
    operator.get("/v1/admin/node").expect(200);
    operator.post("/v1/admin/backup", &json!({})).refused(409, "ADMIN_BUSY");
    world.user(0).post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.02", "5")).expect(200);
    cases.add(3);
    // A queued peer that leaves is dropped from the queue.
    let mut waits = connect(admin).expect("the kernel takes it");
    let second = Request::post("/v1/admin/backup").header("Authorization", &format!("Bearer {token}"));
    waits.write_all(&second.bytes(admin, &[])).expect("the kernel takes it");
    let peer = waits.local_addr().expect("an address");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(state(admin, peer).as_deref(), Some(ESTABLISHED), "it waits");
    drop(waits);
    let left = Instant::now();
    eventually("its connection to end", || state(admin, peer).is_none_or(|state| state != CLOSE_WAIT).then_some(()));
    assert!(left.elapsed() < Duration::from_secs(5), "it ended with its turn, after {:?}", left.elapsed());
    cases.one();
    // Its slot is free when the peer has left.
    drop(first);
    fs::remove_file(bulk).expect("removed");
    let taken = operator.post("/v1/admin/backup", &json!({}));
    assert_eq!((taken.status, taken.header("Content-Type")), (200, Some("application/x-tar")), "{}", taken.status);
    assert!(taken.body.len() > 1_024 && taken.body.ends_with(&[0; 1_024]), "a whole tar stream");
    let output = world.server.stop();
    for word in ["the peer has left", "a backup was taken", "another one is running"] {
        assert!(output.contains(word), "{word}: {output}");
        cases.one();
    }
}

/// A head that two parsers may read differently, at each position of a connection. Bytes after it are never
/// answered. Rule and parser are those of the server's own listener.
#[test]
fn a_bare_line_feed_in_a_head_is_refused() {
    let cases = Cases::of("bare line feeds");
    let (_world, admin, token) = guarded(0, |_| {});
    let line = format!("Authorization: Bearer {token}");
    let good = format!("GET /v1/admin/node HTTP/1.1\r\nHost: {admin}\r\n{line}\r\n\r\n");
    let scrape = format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n");
    let hostile = [
        format!("GET /v1/admin/node HTTP/1.1\nHost: {admin}\r\n{line}\r\n\r\n"),
        format!("GET /v1/admin/node HTTP/1.1\r\nHost: {admin}\n{line}\r\n\r\n"),
        format!("GET /v1/admin/node HTTP/1.1\r\nHost: {admin}\r\n{line}\n\r\n"),
        format!("GET /v1/admin/node HTTP/1.1\r\nHost: {admin}\r\n{line}\r\n\n"),
        format!("GET /v1/admin/node HTTP/1.1\nHost: {admin}\n{line}\n\n"),
        format!("\nGET /v1/admin/node HTTP/1.1\r\nHost: {admin}\r\n{line}\r\n\r\n"),
        format!("GET /v1/admin/node HTTP/1.1\r\nHost: {admin}\r\nX-Other: 1\nX-More: 2\r\n{line}\r\n\r\n"),
        format!("POST /v1/admin/backup HTTP/1.1\r\nHost: {admin}\r\n{line}\nContent-Length: 0\r\n\r\n"),
        format!(
            "POST /v1/admin/backup HTTP/1.1\r\nHost: {admin}\r\n{line}\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        format!("GET /metrics HTTP/1.1\nHost: {admin}\r\n\r\n"),
        format!("GET /metrics HTTP/1.1\r\nHost: {admin}\n\r\n"),
        "GET /metrics HTTP/1.0\n\n".to_owned(),
        format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\n\n"),
    ];
    for head in &hostile {
        let shown = head.replace(&token, "TOKEN");
        for behind in [0, 1, 3] {
            let mut stream = connect(admin).expect("the kernel takes it");
            let request = format!("{}{head}{good}", good.repeat(behind));
            let _ = stream.write_all(request.as_bytes());
            let mut came = Vec::new();
            let _ = stream.read_to_end(&mut came);
            let came = String::from_utf8_lossy(&came).into_owned();
            let statuses: Vec<&str> = came.split("HTTP/1.").skip(1).map(|answer| &answer[2..5]).collect();
            let expected: Vec<&str> = std::iter::repeat_n("200", behind).chain(["400"]).collect();
            assert_eq!(statuses, expected, "{shown:?} after {behind}: {came}");
            let last = came.rsplit("HTTP/1.").next().expect("the last answer");
            assert!(last.contains("bare line feed") && last.contains("connection: close"), "{shown:?}: {last}");
            assert!(last.contains("x-request-id: ") && last.contains("x-svc-code: HTTP_400"), "{shown:?}: {last}");
            cases.one();
        }
    }
    // An empty line before a request is not a bare line feed.
    for (request, status) in [(format!("\r\n{good}"), 200), (format!("\r\n{scrape}"), 200)] {
        assert_eq!(ask_raw(admin, request.as_bytes()).map(|answer| answer.status), Some(status));
        cases.one();
    }
}

/// Idle connections keep no other peer out, however many they are.
#[test]
fn idle_connections_give_way() {
    let cases = Cases::of("connections that hold a slot of the admin listener");
    let (world, admin, token) = guarded(1, |_| {});
    let bulk = bulk(&world);
    // A slow answer: its connection is not idle although no request is read from it.
    let taking = begun(admin, &token);
    let node = format!("GET /v1/admin/node HTTP/1.1\r\nHost: {admin}\r\nAuthorization: Bearer {token}\r\n\r\n");
    for (what, request) in [
        ("send nothing", String::new()),
        ("begin a head", "GET /metr".to_owned()),
        ("do not end a head", format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\n")),
        ("were answered", node.clone()),
        ("were answered and begin a head", format!("{node}GET /v1")),
    ] {
        let held: Vec<TcpStream> = (0..40)
            .map(|_| {
                let mut stream = connect(admin).expect("the kernel takes it");
                // It may have been closed already.
                let _ = stream.write_all(request.as_bytes());
                stream
            })
            .collect();
        for _ in 0..3 {
            let begun = Instant::now();
            scrape(admin);
            let answer = ask_raw(admin, node.as_bytes()).map(|answer| answer.status);
            let took = begun.elapsed();
            assert!(
                answer == Some(200) && took < Duration::from_secs(4),
                "{answer:?} in {took:?} beside 40 that {what}"
            );
            cases.one();
        }
        drop(held);
    }
    assert!(is_established(admin, &taking), "a backup keeps its slot");
    drop(taking);
    fs::remove_file(bulk).expect("removed");
    world.server.stop();
}

/// States of a connection in the system's table.
const ESTABLISHED: &str = "01";
/// FIN was received, and not yet sent.
const CLOSE_WAIT: &str = "08";

/// The state of the server's side of a peer's connection, from `/proc/net/tcp`.
fn state(server: SocketAddr, peer: SocketAddr) -> Option<String> {
    let hex = |address: SocketAddr| match address {
        SocketAddr::V4(address) => {
            format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
        }
        SocketAddr::V6(_) => panic!("the tests listen on 127.0.0.1"),
    };
    let (local, remote) = (hex(server), hex(peer));
    let table = fs::read_to_string("/proc/net/tcp").expect("the system's table");
    table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (here, there, state) = (fields.next()?, fields.next()?, fields.next()?);
        (here == local && there == remote).then(|| state.to_owned())
    })
}

/// Whether the server's side of this connection is open.
fn is_established(server: SocketAddr, peer: &TcpStream) -> bool {
    state(server, peer.local_addr().expect("an address")).as_deref() == Some(ESTABLISHED)
}

#[test]
fn a_peer_that_does_not_read_is_cut_off() {
    let cases = Cases::of("slow peers");
    let (world, admin, token) = guarded(1, |place| _ = place.set("admin", "slow_peer_s", "1"));
    let bulk = bulk(&world);
    let mut slow = begun(admin, &token);
    assert!(is_established(admin, &slow));
    eventually("the cut", || world.server.output().contains("takes less than 1 MiB a second").then_some(()));
    // The peer reads nothing meanwhile: one read byte would let the server write again.
    eventually("the end of its connection", || (!is_established(admin, &slow)).then_some(()));
    let mut came = Vec::new();
    let _ = slow.read_to_end(&mut came);
    assert!(came.len() < 64 << 20 && !came.ends_with(b"0\r\n\r\n"), "{} bytes: a clean end", came.len());
    cases.one();
    // The next peer finds a free slot; a peer that reads is not too slow.
    fs::remove_file(bulk).expect("removed");
    let taken = Client::with_token(admin, &token).post("/v1/admin/backup", &json!({"with_secrets": true}));
    assert_eq!(taken.status, 200);
    cases.one();
}
