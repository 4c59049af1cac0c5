//! The venue's own REST shape (venue.md), for clients that were written for the venue.

pub mod address_login;
pub mod credentials;
pub mod housekeeping;
pub mod markets;
pub mod prices;
pub mod signature;
pub mod tokens;
