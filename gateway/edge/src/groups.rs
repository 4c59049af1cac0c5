//! All endpoints, by group.

use crate::api::{
    account, beta, billing, books, candles, clob, events, export, football, gamma, health, history, holdings,
    integrations, keys, markets, me, orders, prices, quotes, simulation, status, updown,
};
use crate::http::route::{Group, Route};
use crate::ws::live;
use crate::{description, ws};

/// All routes, by group.
pub const GROUPS: &[Group] = &[
    Group { name: "orders", about: "Place, look up and cancel orders.", routes: orders::ROUTES },
    Group { name: "clob", about: "Trading in the shapes of the venue's own clients.", routes: clob::ROUTES },
    Group { name: "account", about: "Balance, positions and history.", routes: account::ROUTES },
    Group { name: "settlements", about: "Positions that a resolution paid out.", routes: account::settlements::ROUTES },
    Group { name: "export", about: "Trades and settlements as CSV.", routes: export::ROUTES },
    Group { name: "me", about: "The caller's identity and plan.", routes: me::ROUTES },
    Group { name: "keys", about: "API keys and their limits.", routes: keys::ROUTES },
    Group { name: "integrations", about: "Alerts by mail, to chats and to webhooks.", routes: integrations::ROUTES },
    Group { name: "markets", about: "Markets: lists and details.", routes: markets::ROUTES },
    Group { name: "books", about: "Order books.", routes: books::ROUTES },
    Group { name: "prices", about: "Prices and parameters by outcome token.", routes: prices::ROUTES },
    Group { name: "live prices", about: "Spot prices, and prices as they change.", routes: live::ROUTES },
    Group { name: "quotes", about: "Quotes of several markets.", routes: quotes::ROUTES },
    Group { name: "events", about: "Groups of markets.", routes: events::ROUTES },
    Group { name: "history", about: "Price histories.", routes: history::ROUTES },
    Group { name: "candles", about: "Candles of a market.", routes: candles::ROUTES },
    Group { name: "updown", about: "Up-or-down markets and their windows.", routes: updown::ROUTES },
    Group { name: "venue prices", about: "Prices of several tokens.", routes: clob::prices::ROUTES },
    Group { name: "venue markets", about: "Markets in the venue's shape.", routes: clob::markets::ROUTES },
    Group { name: "venue keys", about: "Credentials of venue clients.", routes: clob::credentials::ROUTES },
    Group {
        name: "venue housekeeping",
        about: "Other requests of venue clients; many are not supported.",
        routes: clob::housekeeping::ROUTES,
    },
    Group { name: "gamma", about: "The venue's catalogue service, while `venue.facade` is on.", routes: gamma::ROUTES },
    Group {
        name: "data api",
        about: "The venue's service of positions and trades, while `venue.facade` is on.",
        routes: holdings::ROUTES,
    },
    Group {
        name: "simulation",
        about: "Fills, books and coverage of the past, while `flags.feature_simulation_api_enabled` is on.",
        routes: simulation::ROUTES,
    },
    Group { name: "football", about: "Facts of football, while `football.provider` is set.", routes: football::ROUTES },
    Group {
        name: "billing",
        about: "Plans and top-ups; without a payment provider only reads.",
        routes: billing::ROUTES,
    },
    Group { name: "beta", about: "State of the beta.", routes: beta::ROUTES },
    Group { name: "health", about: "Health and status of the server.", routes: health::ROUTES },
    Group { name: "status", about: "Uptime of the last 90 days, and incidents.", routes: status::ROUTES },
    Group { name: "description", about: "Machine-readable descriptions of this server.", routes: description::ROUTES },
];

/// The tables of [`GROUPS`], and the channels.
pub fn tables() -> Vec<&'static [Route]> {
    GROUPS.iter().map(|group| group.routes).chain(ws::TABLES.iter().copied()).collect()
}
