//! A directory that is written in the previous formats, then in the newest, then in the previous ones again: records of
//! either keep their meaning, through SIGKILL and snapshots.

use crate::verbs::exported;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use tests::binary::run_well;
use tests::cases::Cases;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::world::{World, market};

/// Formats of the records with facts after this LSN.
fn formats_after(world: &World, lsn: i64) -> BTreeSet<i64> {
    let records = exported(&world.place);
    let written = records.iter().filter(|record| int(record, "/lsn") > lsn && text(record, "/kind") == "Mutations");
    written.map(|record| int(record, "/version")).collect()
}

fn last_lsn(world: &World) -> i64 {
    int(exported(&world.place).last().expect("records"), "/lsn")
}

/// An order of a venue client in the strict dialect: its id.
pub fn sign(world: &World, salt: u64) -> String {
    let order = json!({
        "salt": salt, "maker": "0xA1b2C3d4E5f60718293a4b5c6d7e8f9012345678",
        "signer": "0xA1b2C3d4E5f60718293a4b5c6d7e8f9012345678", "taker": "0x0000000000000000000000000000000000000000",
        "tokenId": world.markets.rain.yes(), "makerAmount": "100000", "takerAmount": "10000000", "expiration": "0",
        "nonce": "0", "feeRateBps": "0", "side": "BUY", "signatureType": 0, "signature": format!("0x{salt:x}"),
    });
    let body = json!({"order": order, "owner": "o", "orderType": "GTC"});
    text(&strict(world).post("/v1/order", &body).expect(200), "/orderID").to_owned()
}

fn strict(world: &World) -> Client {
    world.public().with_header("POLY_API_KEY", &world.users[0].key)
}

fn restart(world: &mut World, formats: &str) {
    world.server.kill();
    world.place.set("journal", "write_formats", &format!("{formats:?}"));
    world.server = world.place.start();
}

/// Fills, newest first, with the time of the recording; and whether each signed order is found by its id.
fn seen(world: &World, ids: &[String]) -> (Vec<Value>, Vec<String>) {
    let fills = world.user(0).get("/v1/account/history?limit=100").expect(200);
    let times = list(&fills, "").iter().map(|fill| at(fill, "/venue_time").clone()).collect();
    let ids =
        ids.iter().map(|id| text(&strict(world).get(&format!("/v1/data/order/{id}")).expect(200), "/id").to_owned());
    (times, ids.collect())
}

#[test]
fn a_directory_goes_through_formats_and_back() {
    let cases = Cases::of("formats");
    let mut world = World::start_with(1, |place| {
        place.set("journal", "write_formats", "\"previous\"");
    });
    let mut ids = Vec::new();
    let mut expected = Vec::new();
    for (round, (formats, versions)) in [("previous", 1), ("newest", 5), ("previous", 1)].into_iter().enumerate() {
        if round > 0 {
            restart(&mut world, formats);
        }
        let begin = if round == 0 { 0 } else { last_lsn(&world) };
        world.user(0).post("/v1/orders", &market(&world.markets.vote, "BUY", "0.66", "5")).expect(200);
        ids.push(sign(&world, 1_000 + round as u64));
        assert_eq!(formats_after(&world, begin), BTreeSet::from([versions]), "{formats}");
        // In the previous formats an order has its earlier id, and no fill has the recording's time.
        let (times, found) = seen(&world, &ids);
        assert_eq!(found, ids, "{formats}");
        assert_eq!(times[0].is_null(), formats == "previous", "{formats}: {times:?}");
        expected.insert(0, times[0].clone());
        assert_eq!(times, expected, "{formats}");
        cases.add(4);
    }
    let account = |id: &str| id[..50].to_owned();
    assert_eq!(account(&ids[0]), account(&ids[2]));
    assert_ne!(account(&ids[0]), account(&ids[1]), "a hash");
    world.server.kill();
    let digest = world.place.digest();
    assert_eq!(world.place.digest_from_nothing(), digest);
    // A snapshot holds the content of the records, in any format.
    let data = world.place.data();
    let snapshot = |verb: &str| run_well([OsString::from("snapshot"), verb.into(), data.clone().into()]);
    snapshot("create");
    assert!(snapshot("verify").contains(&digest));
    for formats in ["newest", "previous"] {
        world.place.set("journal", "write_formats", &format!("{formats:?}"));
        world.server = world.place.start();
        assert_eq!(seen(&world, &ids), (expected.clone(), ids.clone()), "{formats}");
        world.server.kill();
        assert_eq!(world.place.digest_from_nothing(), world.place.digest(), "{formats}");
        cases.add(2);
    }
}
