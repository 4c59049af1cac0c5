//! Kalshi: message shapes and their translation (gateway/docs/live-venues.md §4, §6).

mod book;
mod catalogue;
pub mod doctor;
pub mod dto;
mod hot;
mod listing;
pub mod metadata;
mod recall;
pub mod stream;
pub mod translate;

pub use translate::{Sequence, Translate};

use crate::adapters::Registration;
use crate::tape::Origin;

/// The row of Kalshi in [`crate::adapters::ADAPTERS`].
pub const ADAPTER: Registration = Registration {
    origin: Origin::Kalshi,
    adapter: |settings| {
        let (settings, signer) = (settings.kalshi.clone(), settings.kalshi.signer()?);
        Ok(Box::new(move |tools, requests| Box::pin(stream::run(settings, signer, tools, requests))))
    },
    examine: |doctor, config| Box::pin(doctor::examine(doctor, &config.live.kalshi, &config.categories)),
};

#[cfg(test)]
mod tests;
