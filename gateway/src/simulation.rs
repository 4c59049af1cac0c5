//! What the simulation routes read.

use crate::config::Config;
use crate::runtime::Inboxes;
use ::simulation::past::Past;
use ::simulation::results::Results;
use ::simulation::run::run;
use ::simulation::runner::{Open, Parts, Runner, Settings, TIME_MAX};
use ::venue::archive::tail::Tail;
use archive::store::Store;
use engine::rules::Rules;
use host::clock::Clock;
use parking_lot::Mutex;
use std::sync::Arc;

/// The archive as simulations read it, with the hours that are not made yet; `None`: the routes are off.
pub fn past(config: &Config, store: Arc<Store>, tail: Option<Arc<Mutex<Tail>>>) -> Option<Arc<Past>> {
    if !config.flags.feature_simulation_api_enabled {
        return None;
    }
    let past = Past::new(store, config.venue.categories.clone());
    Some(Arc::new(match tail {
        Some(tail) => past.with_tail(tail),
        None => past,
    }))
}

/// The runner of back-tests on an archive, with those that were open when the process ended; `None`: no thread may run
/// any.
pub fn runner(
    config: &Config,
    past: Arc<Past>,
    rules: Arc<Rules>,
    inboxes: &Inboxes,
    clock: Clock,
    open: Vec<Open>,
) -> Option<Arc<Runner>> {
    let settings = Settings {
        threads: config.simulation.threads,
        memory_bytes: config.simulation.job_memory_bytes,
        time_max: TIME_MAX,
    };
    let parts = Parts {
        past,
        rules,
        results: Results::new(config.data.dir.join("jobs")),
        inboxes: inboxes.to_vec(),
        clock,
        settings,
        open,
        run: Box::new(run),
    };
    (settings.threads > 0).then(|| Arc::new(Runner::new(parts)))
}
