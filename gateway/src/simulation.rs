//! The parts behind the simulation routes.

use crate::config::Config;
use crate::runtime::Inboxes;
use ::simulation::past::Past;
use ::simulation::results::Results;
use ::simulation::run::run;
use ::simulation::runner::{Open, Parts, Runner, Settings, TIME_MAX};
use archive::store::{self, Store};
use engine::rules::Rules;
use host::clock::Clock;
use std::sync::Arc;

/// The archive of the data directory; `None` if the routes are off, or if it cannot be opened.
pub fn past(config: &Config) -> Option<Arc<Past>> {
    if !config.flags.feature_simulation_api_enabled {
        return None;
    }
    let root = config.data.dir.join("archive");
    match Store::open(&root, store::Settings::default()) {
        Ok(store) => Some(Arc::new(Past::new(Arc::new(store), config.venue.categories.clone()))),
        Err(error) => {
            tracing::warn!(%error, "the archive cannot be opened; the simulation routes answer 503 until a restart");
            None
        }
    }
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
