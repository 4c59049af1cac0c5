//! Polymarket's adapter: catalogue crawl, order-book sockets, prices of up-or-down markets (gateway/docs/live-venues.md
//! §2, §3).
//!
//! ```text
//!  crawl ── GET /events ──┐                           ┌─► books: sockets of 400 tokens, POST /books for missing books
//!  status ─ GET /markets ─┼─► captures ─► feed ─ requests
//!  spot ─── RTDS socket ──┘                           └─► status: states of single markets
//! ```

mod books;
mod crawl;
mod missing;
mod spot;
mod status;

pub(super) use spot::subscription as spot_subscription;

use crate::live::{Budget, Request, Tools};
use crate::settings::{Kind, settings};
use engine::market::terms::Venue;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// Published limits per [`BUDGET_PER`]: `/events` and `/markets` (900 for both together, 4,000 for all of Gamma), and
/// the lowest limit of a call to the order book's service, `POST /books`. The adapter uses a fifth.
const EVENTS_PUBLISHED: u32 = 500;
const MARKETS_PUBLISHED: u32 = 300;
const CLOB_PUBLISHED: u32 = 500;
const BUDGET_PER: Duration = Duration::from_secs(10);
const SHARE: u32 = 5;

settings! {
    /// Addresses and limits.
    pub struct Settings of Venue::Polymarket;
    /// Catalogue service of Polymarket.
    gamma: String = Kind::HttpAddress("https://gamma-api.polymarket.com");
    /// Book service of Polymarket.
    clob: String = Kind::HttpAddress("https://clob.polymarket.com");
    /// Socket of its books.
    market_socket: String = Kind::SocketAddress("wss://ws-subscriptions-clob.polymarket.com/ws/market");
    /// Socket of spot prices.
    spot_socket: String = Kind::SocketAddress("wss://ws-live-data.polymarket.com");
    /// The largest number of tokens whose books are followed. If the venue has more, markets with positions or orders
    /// come first, then up-or-down windows, then the most traded markets.
    tokens_max: usize = Kind::Count(40_000, 2..=80_000);
}

/// Runs until the request channel closes.
pub async fn run(settings: Settings, tools: Tools, requests: UnboundedReceiver<Request>) {
    let port = tools.port("");
    let service =
        |base: &str, published: u32| tools.fetch(base, port.clone(), Budget::new(published / SHARE, BUDGET_PER));
    let events = service(&settings.gamma, EVENTS_PUBLISHED);
    let markets = service(&settings.gamma, MARKETS_PUBLISHED);
    let clob = service(&settings.clob, CLOB_PUBLISHED);
    let queue = status::StatusQueue::default();
    tokio::select! {
        // Ends when the feed is gone; the other tasks never end.
        () = books::run(&settings, &tools, &clob, &queue, requests) => {}
        () = crawl::run(&events, &tools) => {}
        () = status::run(&queue, &markets, &clob) => {}
        () = spot::run(&settings.spot_socket, &tools) => {}
    }
}
