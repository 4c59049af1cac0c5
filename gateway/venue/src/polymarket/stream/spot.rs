//! The socket that tells the prices of what up-or-down markets are about (upstream.md §3.3). It says nothing of books:
//! its life is no proof of theirs, and its silence no outage.

use crate::live::{Link, Talk, Tools, keep};
use crate::tape::Origin;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

const PING_EVERY: Duration = Duration::from_secs(5);
/// What is asked for: one list of exchange symbols, and one subscription for each of the oracle's.
const EXCHANGE_SYMBOLS: &str = "btcusdt,ethusdt,solusdt,xrpusdt";
const ORACLE_SYMBOLS: [&str; 4] = ["btc/usd", "eth/usd", "sol/usd", "xrp/usd"];

/// Keeps the socket for as long as the process lives.
pub async fn run(url: &str, tools: &Tools) {
    let port = tools.aside().port(Origin::Polymarket, "spot");
    let link = Link { url: url.into(), port, pace: tools.pace, ping: Some((PING_EVERY, "PING")) };
    // Held open: nothing about it ever changes.
    let (_changes, receiver) = unbounded_channel();
    keep(link, Prices, receiver).await;
}

struct Prices;

impl Talk for Prices {
    type Change = Infallible;

    fn open(&mut self, out: &mut Vec<String>) {
        out.push(subscription());
    }

    fn change(&mut self, change: Infallible, _: &mut Vec<String>) {
        match change {}
    }

    fn listens(&self) -> bool {
        true
    }
}

/// What is said first.
pub fn subscription() -> String {
    let exchange = serde_json::json!({ "topic": "crypto_prices", "type": "update", "filters": EXCHANGE_SYMBOLS });
    let oracle = ORACLE_SYMBOLS.map(|symbol| {
        let filters = serde_json::json!({ "symbol": symbol }).to_string();
        serde_json::json!({ "topic": "crypto_prices_chainlink", "type": "*", "filters": filters })
    });
    let all: Vec<_> = std::iter::once(exchange).chain(oracle).collect();
    serde_json::json!({ "action": "subscribe", "subscriptions": all }).to_string()
}
