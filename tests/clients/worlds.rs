//! The servers of the client tests, and the content of the recordings of these servers.

use serde_json::{Value, json};
use std::env;
use std::fs;
use std::path::PathBuf;
use tests::binary::workspace;
use tests::json::{list, text};
use tests::server::{Server, ServerDir};
use tests::tape::Market;
use tests::world::World;

/// Facts for the clients' comparisons; host and key are added for each.
pub struct Facts {
    pub value: Value,
}

/// Markets besides those of the world: two pages of a thousand.
const MORE_MARKETS: u64 = 1_005;
/// With the one of the batch and the six elsewhere, orders for three pages of a hundred.
const RESTING: usize = 210;

/// The world of the tests, in which every figure is known in advance.
pub fn known() -> (World, Facts) {
    known_with(|_| {})
}

/// The same with other settings.
pub fn known_with(settings: impl FnOnce(&mut ServerDir)) -> (World, Facts) {
    let mut world = World::start_with(1, settings);
    let more: Vec<Market> =
        (0..MORE_MARKETS).map(|number| Market::new(100 + number, &format!("more-{number}"), "other", 0.01)).collect();
    world.tape.list(&more.iter().collect::<Vec<_>>());
    // After a changed level the venue's hash no longer applies: from here on the server computes it, and clients can
    // check it.
    let rain = world.markets.rain.clone();
    world.tape.level(&rain, 0, "BUY", "0.40", "300");
    world.tape.level(&rain, 1, "SELL", "0.60", "300");
    world.until(&format!("/v1/book?token_id={}", rain.yes()), |book| book["bids"][0]["size"] == "300");
    world.until(&format!("/v1/book?token_id={}", rain.no()), |book| book["asks"][0]["size"] == "300");

    let markets = &world.markets;
    let other = |market: &Market, tick: &str, base_fee: u32, fee_bps: u32| {
        json!({
            "condition": market.condition, "yes": market.yes(), "no": market.no(),
            "tick": tick, "neg_risk": market.neg_risk, "base_fee": base_fee, "fee_bps": fee_bps
        })
    };
    let mut market = other(&rain, "0.01", 1000, 500);
    market["bids"] = json!([["0.41", "85"], ["0.40", "300"]]);
    market["asks"] = json!([["0.42", "60.5"], ["0.44", "120"]]);
    market["last"] = json!({"price": "0.42", "side": "BUY"});
    market["hash_is_ours"] = json!(true);
    let value = json!({
        "chain_id": 137,
        "markets": markets.all().len() as u64 + MORE_MARKETS,
        "market": market,
        "others": [
            other(&markets.coin, "0.01", 1000, 700),
            other(&markets.vote, "0.001", 1000, 400),
            other(&markets.treaty, "0.0001", 0, 0),
            other(&markets.game, "0.1", 1000, 300),
        ],
        "resting": RESTING,
        "fak_dollars": 30,
        // 5 ÷ 0.42 = 11.9047…; × 0.42 = 4.999974; × 0.05 × 0.42 × 0.58 = 0.1449992… → 0.14500; 60.5 − 11.9047.
        "pencil": {
            "fok_shares": "11.9047", "fok_dollars": "4.999974", "fok_fee": "0.145", "fak_shares": "48.5953"
        }
    });
    (world, Facts { value })
}

/// The first book of a recorded market of the second venue, held constant; `None` after reporting that it is missing.
pub fn recorded() -> Option<(ServerDir, Server, Facts)> {
    const TICKER: &str = "KXGOLD15M-26AUG101800";
    let root =
        env::var_os("PAPERTAPE_VENUE_DATA").map_or_else(|| workspace().join("../shared/data/venue"), PathBuf::from);
    let folder = root.join("kalshi_ws");
    if !folder.is_dir() {
        let required =
            env::var_os("PAPERTAPE_REQUIRE_VENUE_DATA").is_some_and(|value| !value.is_empty() && value != "0");
        assert!(!required, "recordings are required and not in {}", folder.display());
        tests::binary::skipped(&format!("no recordings in {}", folder.display()));
        return None;
    }
    let place = ServerDir::new();
    let tape = place.root().join("tape");
    for name in ["events", "metadata"] {
        fs::create_dir_all(tape.join(name)).expect("a folder");
        for entry in fs::read_dir(folder.join(name)).expect("recordings") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            if file.starts_with(TICKER) {
                fs::copy(&path, tape.join(name).join(&file)).expect("a copy");
            }
        }
    }
    let user = place.seed(1, "enterprise", "100").remove(0);
    // A second of the recording takes a thousand: the book is constant while the clients read it.
    let tape = tape.to_str().expect("a path of ours");
    let server = place.start_with(&["--venue", "replay", "--tape", tape, "--speed", "0.001"], &[]);
    let mut client = server.with_key(&user.key);
    let (detail, book) = tests::eventually("the recorded book", || {
        let markets = client.get("/v1/markets?status=all&limit=200");
        let markets = if markets.status == 200 { markets.json() } else { return None };
        list(&markets, "").iter().find_map(|market| {
            let token = text(market, "/clob_token_ids/0");
            let book = client.get(&format!("/v1/book?token_id={token}"));
            (book.status == 200).then(|| (market.clone(), book.json()))
        })
    });
    let best_first = |side: &str| -> Value {
        let levels = list(&book, side).iter().rev();
        levels.map(|level| json!([level["price"], level["size"]])).collect()
    };
    let value = json!({
        "chain_id": 137,
        "markets": 1,
        "market": {
            "condition": book["market"], "yes": text(&detail, "/clob_token_ids/0"), "no": text(&detail, "/clob_token_ids/1"),
            "tick": "0.01", "neg_risk": false, "base_fee": 1000, "fee_bps": 400,
            "bids": best_first("/bids"), "asks": best_first("/asks"), "last": null, "hash_is_ours": true
        },
        "others": [],
        "resting": RESTING,
        "fak_dollars": 10,
        "pencil": null
    });
    Some((place, server, Facts { value }))
}
