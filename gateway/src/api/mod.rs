//! Endpoint groups: one file (or folder) each, and [`GROUPS`] lists them.

pub mod account;
pub mod books;
pub mod events;
pub mod health;
pub mod keys;
pub mod markets;
pub mod me;
pub mod orders;
pub mod prices;
pub mod quotes;
// What several groups share: refusals of the engine, `wallet_id`, token ids.
pub mod refuse;
pub mod tokens;
pub mod updown;
pub mod wallets;

#[cfg(test)]
pub(crate) mod testing;

use crate::http::route::Route;

/// Every route there is, by group.
pub const GROUPS: &[&[Route]] = &[
    orders::ROUTES,
    account::ROUTES,
    me::ROUTES,
    keys::ROUTES,
    markets::ROUTES,
    books::ROUTES,
    prices::ROUTES,
    quotes::ROUTES,
    events::ROUTES,
    updown::ROUTES,
    health::ROUTES,
];
