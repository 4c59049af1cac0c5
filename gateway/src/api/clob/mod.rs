//! The venue's own REST shape (venue.md), for clients that were written for the venue.

pub mod markets;
pub mod prices;
pub mod tokens;
