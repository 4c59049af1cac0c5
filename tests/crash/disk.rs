//! A disk that is full, and has room again.

use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{int, list, text};
use tests::server::{ServerDir, Starting};

/// A small file system in memory; `None` where mounting is not permitted.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn mount(at: &Path) -> Option<SmallDisk> {
        fs::create_dir(at).expect("a mount point");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs"]).arg(at).output();
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
    let Some(disk) = SmallDisk::mount(&place.root().join("disk")) else {
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
