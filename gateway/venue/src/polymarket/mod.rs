//! Polymarket: message shapes and their translation (gateway/docs/live-venues.md §2, §3).

mod announced;
mod catalogue;
pub mod doctor;
pub mod dto;
mod hash;
mod hot;
mod listing;
mod recall;
mod recent;
mod spot;
mod standing;
pub mod stream;
pub mod translate;

pub use translate::Translate;

use crate::adapters::Registration;
use crate::tape::Origin;

/// The row of Polymarket in [`crate::adapters::ADAPTERS`].
pub const ADAPTER: Registration = Registration {
    origin: Origin::Polymarket,
    adapter: |settings| {
        let settings = settings.polymarket.clone();
        Ok(Box::new(move |tools, requests| Box::pin(stream::run(settings, tools, requests))))
    },
    examine: |doctor, config| {
        Box::pin(async move {
            doctor::examine(doctor, &config.live.polymarket).await;
            Ok(())
        })
    },
};

#[cfg(test)]
mod tests;
