//! Polymarket's adapter: catalogue crawl, order-book sockets, prices of up-or-down markets (upstream.md §2, §3).
//!
//! ```text
//!  crawl ── GET /events ──┐                          books: sockets of 400 tokens, POST /books for what they lack
//!  ask ──── GET /markets ─┼─► answers ─► feed ─ wants ─┤
//!  spot ─── RTDS socket ──┘                          ask: how these markets stand
//! ```

mod ask;
mod books;
mod crawl;
mod lacking;
mod spot;

pub(super) use spot::subscription as spot_subscription;

use crate::live::{Budget, Tools, Want};
use crate::tape::Origin;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// What the venue publishes, each per [`BUDGET_PER`]: `/events`, `/markets` (900 for both together, 4,000 for all of
/// Gamma), and of the order book's service the scarcest call made here, `POST /books`. A fifth of it is taken.
const EVENTS_PUBLISHED: u32 = 500;
const MARKETS_PUBLISHED: u32 = 300;
const CLOB_PUBLISHED: u32 = 500;
const BUDGET_PER: Duration = Duration::from_secs(10);
const SHARE: u32 = 5;

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
pub async fn run(settings: Settings, tools: Tools, wants: UnboundedReceiver<Want>) {
    let port = tools.port(Origin::Polymarket, "");
    let service =
        |base: &str, published: u32| tools.fetch(base, port.clone(), Budget::new(published / SHARE, BUDGET_PER));
    let events = service(&settings.gamma, EVENTS_PUBLISHED);
    let markets = service(&settings.gamma, MARKETS_PUBLISHED);
    let clob = service(&settings.clob, CLOB_PUBLISHED);
    let questions = ask::Questions::default();
    tokio::select! {
        // Ends when the feed has gone; the others never do.
        () = books::run(&settings, &tools, &clob, &questions, wants) => {}
        () = crawl::run(&events, &tools) => {}
        () = ask::run(&questions, &markets, &clob) => {}
        () = spot::run(&settings.spot_socket, &tools) => {}
    }
}
