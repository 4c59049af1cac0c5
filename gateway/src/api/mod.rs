//! Endpoint groups: one file (or folder) each, and [`GROUPS`] lists them. What several groups share is named below.

pub mod orders;
pub mod refuse;
pub mod wallets;

use crate::http::route::Route;

/// Every route there is, by group.
pub const GROUPS: &[&[Route]] = &[orders::ROUTES];
