//! A disk that is full, and has room again.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::cases::Cases;
use tests::departing::leaving_soon;
use tests::eventually;
use tests::http::{Client, Response};
use tests::json::{int, list, text};
use tests::server::{ServerDir, Starting};
use tests::world::{World, changed, limit, market};
use wal::{Files, Storage as _};

/// A small file system in memory; `None` where mounting is not permitted.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn mount(at: &Path, mebibytes: u32) -> Option<SmallDisk> {
        fs::create_dir(at).expect("a mount point");
        let options = format!("size={mebibytes}m,mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| SmallDisk(at.to_path_buf()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_orders_and_nothing_else() {
    let cases = Cases::of("full disk");
    let mut place = ServerDir::new();
    let Some(disk) = SmallDisk::mount(&place.root().join("disk"), 24) else {
        tests::binary::skipped("no small file system can be mounted here");
        cases.one();
        return;
    };
    let data = disk.0.join("data");
    place.set("data", "dir", &format!("{:?}", data)).set("journal", "segment_bytes", "1048576");
    place.set("journal", "reserve_bytes", "4194304").set("venue", "seed", "5");
    let mut serve = tests::binary::command();
    serve.arg("serve").arg("--config").arg(place.config());
    let server = Starting::spawn(serve).ready().expect("it starts on an empty disk");
    let key = server.demo_key().expect("the demo key");
    let mut client = server.with_key(&key);
    let markets = client.get("/v1/markets?limit=1").expect(200);
    let order = json!({
        "token_id": text(&markets, "/0/clob_token_ids/0"), "side": "BUY", "order_type": "limit", "price": "0.01",
        "quantity": "5", "time_in_force": "GTC"
    });
    let key_to_revoke = int(&client.post("/v1/keys", &json!({})).expect(201), "/id");
    // Another program fills the disk.
    let filler = disk.0.join("filler");
    let _ = Command::new("dd")
        .args(["if=/dev/zero", "bs=64k", "count=1000"])
        .arg(format!("of={}", filler.display()))
        .output();
    let mut placed = Vec::new();
    // A segment of a mebibyte holds about a thousand orders, fewer with long names; three are prepared.
    let refused = (0..20_000).find_map(|n| {
        let mut order = order.clone();
        order["client_order_id"] = json!(format!("{n:0>256}"));
        let answer = client.post("/v1/orders", &order);
        if answer.status != 200 {
            return Some(answer);
        }
        placed.push(int(&answer.json(), "/order_id"));
        None
    });
    let refused = refused.expect("a refusal");
    refused.refused(503, "SERVER_BUSY");
    assert_eq!(refused.header("Retry-After"), Some("1"));
    println!("{} orders found room before the refusal", placed.len());
    cases.add(placed.len());
    // Refused orders leave nothing; everything else continues.
    let mut reader: Client = server.with_key(&key);
    assert_eq!(int(&reader.get("/v1/orders?limit=1").expect(200), "/total_hint") as usize, placed.len());
    reader.get("/v1/account/balance").expect(200);
    reader.get("/v1/health").expect(200);
    for id in placed.iter().rev().take(20) {
        let cancelled = reader.delete(&format!("/v1/orders/{id}")).expect(200);
        assert_eq!(text(&cancelled, "/status"), "CANCELLED");
        cases.one();
    }
    reader.delete(&format!("/v1/keys/{key_to_revoke}")).expect(200);
    reader.post("/v1/orders", &order).refused(503, "SERVER_BUSY");
    reader.post("/v1/orders/batch", &json!([order])).refused(503, "SERVER_BUSY");
    // Back to normal without a restart.
    fs::remove_file(&filler).expect("the filler can be removed");
    eventually("room again", || (reader.post("/v1/orders", &order).status == 200).then_some(()));
    // Orders that were acknowledged on the full disk survive a crash.
    let mut server = server;
    server.kill();
    let mut serve = tests::binary::command();
    serve.arg("serve").arg("--config").arg(place.config());
    let server = Starting::spawn(serve).ready().expect("it starts again");
    let mut reader = server.with_key(&key);
    for (n, id) in placed.iter().rev().enumerate().take(40) {
        let row = reader.get(&format!("/v1/orders/{id}")).expect(200);
        assert_eq!(text(&row, "/status"), if n < 20 { "CANCELLED" } else { "PENDING" });
        cases.one();
    }
    let keys = reader.get("/v1/keys").expect(200);
    assert!(list(&keys, "").iter().all(|row| int(row, "/id") != key_to_revoke), "a revocation is never lost");
    drop(server);
}

/// Orders that end as they are placed, in batches, until one is refused because ended orders fill their memory. The log may
/// be busy meanwhile.
fn fill_memory(client: &mut Client, order: &Value) -> Response {
    for batch in 0..2_000 {
        let named = |entry: usize| changed(order, &json!({"client_order_id": format!("full-{batch}-{entry}")}));
        let answer = client.post("/v1/orders/batch", &json!({"orders": (0..20).map(named).collect::<Vec<_>>()}));
        if answer.status == 503 && answer.lossy().contains("history.hot_bytes_max") {
            return answer;
        }
        assert!(answer.status == 200 || answer.status == 503, "{}", answer.lossy());
    }
    panic!("forty thousand ended orders fill a mebibyte");
}

/// Everything but placements works, and the status says that something does not.
fn is_full(client: &mut Client, order: &Value, open: &[i64], cases: &Cases) {
    let refused = client.post("/v1/orders", order);
    assert!(refused.lossy().contains("history.hot_bytes_max"), "{}", refused.lossy());
    refused.refused(503, "SERVER_BUSY");
    assert_eq!(refused.header("Retry-After"), Some("1"));
    for id in open {
        let cancelled = client.delete(&format!("/v1/orders/{id}")).expect(200);
        assert_eq!(text(&cancelled, "/status"), "CANCELLED");
        cases.one();
    }
    client.get("/v1/orders?limit=3").expect(200);
    client.get("/v1/account/balance").expect(200);
    assert_eq!(text(&client.get("/v1/status").expect(200), "/status"), "degraded");
    assert_eq!(text(&client.get("/v1/health/ready").expect(200), "/status"), "degraded");
    cases.add(5);
}

/// A store that takes nothing does not stop trading before its ended orders fill the memory for them; when it takes some,
/// orders are taken again.
#[test]
fn ended_orders_that_cannot_move_fill_their_memory_and_no_more() {
    let cases = Cases::of("full memory");
    let mut world = World::start_with(1, |place| {
        leaving_soon(place);
        place.set("history", "hot_bytes_max", "1048576");
    });
    let version = world.place.data().join("history/store/version");
    let sound = eventually("the store, which is made beside the start", || fs::read(&version).ok());
    world.server.stop();
    // Of a later program: it is neither read nor written.
    fs::write(&version, b"FJL\x04").expect("written");
    world.server = world.place.start();
    let rain = &world.markets.rain;
    let resting = limit(rain, "BUY", "0.01", "10");
    let ended = changed(&limit(rain, "BUY", "0.20", "10"), &json!({"time_in_force": "FOK"}));
    let mut client = world.user(0);
    let open: Vec<i64> = (0..20).map(|_| int(&client.post("/v1/orders", &resting).expect(200), "/order_id")).collect();
    client.post("/v1/orders", &market(rain, "BUY", "0.42", "20")).expect(200);
    fill_memory(&mut client, &ended);
    is_full(&mut client, &resting, &open, &cases);
    assert!(world.figure("papertape_ended_refused_total") >= 2);
    assert!(world.figure("papertape_ended_memory_bytes") >= world.figure("papertape_ended_memory_limit_bytes"));
    assert!(world.figure("papertape_ended_in_memory{kind=\"orders\"}") > 1_000);
    eventually("an attempt to move", || (world.figure("papertape_history_failing") == 1).then_some(()));
    assert_eq!(world.figure("papertape_ended_moved_total{kind=\"orders\"}"), 0);
    cases.add(5);
    let before = client.get("/v1/orders?limit=200&status=CANCELLED").expect(200);
    drop(client);
    world.server.stop();
    fs::write(&version, sound).expect("written");
    // The same state is full at the start, moves, and has room.
    world.server = world.place.start();
    let mut client = world.user(0);
    eventually("room in memory", || (client.post("/v1/orders", &resting).status == 200).then_some(()));
    assert!(world.figure("papertape_ended_moved_total{kind=\"orders\"}") > 1_000);
    assert_eq!(world.figure("papertape_history_failing"), 0);
    assert_eq!(client.get("/v1/orders?limit=200&status=CANCELLED").expect(200), before, "from the store");
    let is_healthy = || (text(&client.get("/v1/status").expect(200), "/status") == "healthy").then_some(());
    eventually("a healthy server", is_healthy);
    cases.add(4);
}

/// A disk with room for the log, and none for the history store: nothing moves until there is room.
#[test]
fn a_disk_with_little_room_keeps_ended_orders_in_memory() {
    let cases = Cases::of("a disk with little room");
    let mut place = ServerDir::new();
    let Some(disk) = SmallDisk::mount(&place.root().join("disk"), 192) else {
        tests::binary::skipped("no small file system can be mounted here");
        cases.one();
        return;
    };
    let data = disk.0.join("data");
    leaving_soon(&mut place);
    place.set("data", "dir", &format!("{data:?}")).set("journal", "reserve_bytes", "4194304");
    place.set("history", "hot_bytes_max", "1048576").set("venue", "seed", "5");
    let mut serve = tests::binary::command();
    serve.arg("serve").arg("--config").arg(place.config());
    let server = Starting::spawn(serve).ready().expect("it starts");
    let mut client = server.with_key(&server.demo_key().expect("the demo key"));
    let markets = client.get("/v1/markets?limit=1").expect(200);
    let order = |price: &str, force: &str| {
        json!({
            "token_id": text(&markets, "/0/clob_token_ids/0"), "side": "BUY", "order_type": "limit", "price": price,
            "quantity": "10", "time_in_force": force
        })
    };
    let resting = order("0.01", "GTC");
    let open: Vec<i64> = (0..20).map(|_| int(&client.post("/v1/orders", &resting).expect(200), "/order_id")).collect();
    // Another program leaves the log 36 MiB beyond its reserve, and the store too little.
    let filler = disk.0.join("filler");
    let free = Files::open_existing(&data).expect("a log").free_bytes().expect("known");
    let mebibytes = (free >> 20).checked_sub(40).expect("the disk is larger");
    let filled = Command::new("dd")
        .args(["if=/dev/zero", "bs=1M", &format!("count={mebibytes}")])
        .arg(format!("of={}", filler.display()))
        .output()
        .expect("dd runs");
    assert!(filled.status.success(), "{}", String::from_utf8_lossy(&filled.stderr));
    fill_memory(&mut client, &order("0.01", "FOK"));
    is_full(&mut client, &resting, &open, &cases);
    // Back to normal without a restart.
    fs::remove_file(&filler).expect("the filler can be removed");
    eventually("room in memory", || (client.post("/v1/orders", &resting).status == 200).then_some(()));
    let is_healthy = || (text(&client.get("/v1/status").expect(200), "/status") == "healthy").then_some(());
    eventually("a healthy server", is_healthy);
    cases.add(2);
    drop(server);
}
