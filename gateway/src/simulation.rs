//! The parts behind the simulation routes.

use crate::config::Config;
use ::simulation::past::Past;
use ::simulation::reads::Reads;
use archive::store::{Settings, Store};
use edge::api::simulation::archive::Archive;
use std::sync::Arc;

/// The archive of the data directory; `None` if the routes are off, or if it cannot be opened.
pub fn archive(config: &Config) -> Option<Arc<dyn Archive>> {
    if !config.flags.feature_simulation_api_enabled {
        return None;
    }
    let root = config.data.dir.join("archive");
    match Store::open(&root, Settings::default()) {
        Ok(store) => Some(Arc::new(Reads::new(Arc::new(Past::new(Arc::new(store), config.venue.categories.clone()))))),
        Err(error) => {
            tracing::warn!(%error, "the archive cannot be opened; the simulation routes answer 503 until a restart");
            None
        }
    }
}
