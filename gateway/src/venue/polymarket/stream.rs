//! Polymarket's adapter: catalogue crawl, order-book sockets, prices of up-or-down markets (upstream.md §2, §3).

use crate::venue::live::{Tools, Want};
use tokio::sync::mpsc::UnboundedReceiver;

/// How Polymarket is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses of its services, without a path at the end.
    pub gamma: String,
    pub clob: String,
    pub market_socket: String,
    pub spot_socket: String,
    /// Tokens that are subscribed at most.
    pub tokens_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            gamma: "https://gamma-api.polymarket.com".into(),
            clob: "https://clob.polymarket.com".into(),
            market_socket: "wss://ws-subscriptions-clob.polymarket.com/ws/market".into(),
            spot_socket: "wss://ws-live-data.polymarket.com".into(),
            tokens_max: 40_000,
        }
    }
}

/// Runs until nobody wants anything any more.
pub async fn run(settings: Settings, tools: Tools, mut wants: UnboundedReceiver<Want>) {
    let _ = (settings, tools);
    while wants.recv().await.is_some() {}
}
