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
use crate::tape::Origin;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// Published limits per [`BUDGET_PER`]: `/events` and `/markets` (900 for both together, 4,000 for all of Gamma), and
/// the lowest limit of a call to the order book's service, `POST /books`. The adapter uses a fifth.
const EVENTS_PUBLISHED: u32 = 500;
const MARKETS_PUBLISHED: u32 = 300;
const CLOB_PUBLISHED: u32 = 500;
const BUDGET_PER: Duration = Duration::from_secs(10);
const SHARE: u32 = 5;

/// Addresses and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// URLs of its services, without a path at the end.
    pub gamma: String,
    pub clob: String,
    pub market_socket: String,
    pub spot_socket: String,
    /// Most tokens that are subscribed.
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

/// Runs until the request channel closes.
pub async fn run(settings: Settings, tools: Tools, requests: UnboundedReceiver<Request>) {
    let port = tools.port(Origin::Polymarket, "");
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
