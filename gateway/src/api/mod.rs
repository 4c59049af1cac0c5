//! The list of endpoint groups.
use crate::http::route::Route;

/// Every group of routes.
pub const GROUPS: &[&[Route]] = &[];
