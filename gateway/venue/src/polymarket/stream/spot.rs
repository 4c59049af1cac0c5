//! The socket with prices of the underlyings of up-or-down markets (gateway/docs/live-venues.md §3.3). It carries no
//! books: it is not a sign of life for them, and its silence is not an outage.

use crate::live::{Link, Protocol, Tools, run_link};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

const PING_EVERY: Duration = Duration::from_secs(5);
/// The subscriptions: one list of exchange symbols, and one subscription per oracle symbol.
const EXCHANGE_SYMBOLS: &str = "btcusdt,ethusdt,solusdt,xrpusdt";
const ORACLE_SYMBOLS: [&str; 4] = ["btc/usd", "eth/usd", "sol/usd", "xrp/usd"];

/// Runs the socket until the process stops.
pub async fn run(url: &str, tools: &Tools) {
    let port = tools.aside().port("spot");
    let link = Link { url: url.into(), port, pace: tools.pace, ping: Some((PING_EVERY, "PING")) };
    // The sender is kept so that the channel stays open; the subscriptions never change.
    let (_changes, receiver) = unbounded_channel();
    run_link(link, Prices, receiver).await;
}

struct Prices;

impl Protocol for Prices {
    type Change = Infallible;

    fn open(&mut self, out: &mut Vec<String>) {
        out.push(subscription());
    }

    fn change(&mut self, change: Infallible, _: &mut Vec<String>) {
        match change {}
    }

    fn is_subscribed(&self) -> bool {
        true
    }
}

/// The first text of a connection.
pub fn subscription() -> String {
    let exchange = serde_json::json!({ "topic": "crypto_prices", "type": "update", "filters": EXCHANGE_SYMBOLS });
    let oracle = ORACLE_SYMBOLS.map(|symbol| {
        let filters = serde_json::json!({ "symbol": symbol }).to_string();
        serde_json::json!({ "topic": "crypto_prices_chainlink", "type": "*", "filters": filters })
    });
    let all: Vec<_> = std::iter::once(exchange).chain(oracle).collect();
    serde_json::json!({ "action": "subscribe", "subscriptions": all }).to_string()
}
