//! What the simulation routes read.

use crate::config::Config;
use ::simulation::past::Past;
use ::simulation::reads::Reads;
use ::venue::archive::tail::Tail;
use archive::store::Store;
use edge::api::simulation::archive::Archive;
use parking_lot::Mutex;
use std::sync::Arc;

/// The archive as routes read it, with the hours that are not made yet; `None`: the routes are off.
pub fn archive(config: &Config, store: Arc<Store>, tail: Option<Arc<Mutex<Tail>>>) -> Option<Arc<dyn Archive>> {
    if !config.flags.feature_simulation_api_enabled {
        return None;
    }
    let past = Past::new(store, config.venue.categories.clone());
    let past = match tail {
        Some(tail) => past.with_tail(tail),
        None => past,
    };
    Some(Arc::new(Reads::new(Arc::new(past))))
}
