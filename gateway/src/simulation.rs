//! The parts of the simulation routes outside of the edge.

use crate::config::Config;
use crate::runtime::Inboxes;
use ::simulation::exports::{self, ExportFolder, Sweep};
use ::simulation::past::Past;
use ::simulation::results::Results;
use ::simulation::run::run;
use ::simulation::runner::{Open, Parts, Runner, Settings, TIME_MAX};
use ::venue::archive::tail::Tail;
use archive::store::Store;
use edge::api::simulation::exports::Exports;
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

/// The runner of back-tests on an archive, with those that were open when the process ended. With 0 threads it runs none,
/// and reads the rows of those that are complete.
pub fn runner(
    config: &Config,
    past: Arc<Past>,
    rules: Arc<Rules>,
    inboxes: &Inboxes,
    clock: Clock,
    open: Vec<Open>,
) -> Arc<Runner> {
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
    Arc::new(Runner::new(parts))
}

/// The exports of an archive; `None` without `simulation.export_dir`.
pub fn exports(config: &Config, past: &Arc<Past>, clock: &Clock) -> Option<Arc<dyn Exports>> {
    match ExportFolder::open(past.clone(), export_settings(config)?, clock.clone()) {
        Ok(folder) => Some(Arc::new(folder)),
        Err(error) => {
            tracing::warn!(%error, "simulation.export_dir cannot be made; exports answer 503 until a restart");
            None
        }
    }
}

fn export_settings(config: &Config) -> Option<exports::Settings> {
    Some(exports::Settings {
        dir: config.simulation.export_dir.clone()?,
        bytes_max: config.simulation.export_bytes_max,
        reserve_bytes: config.journal.reserve_bytes,
    })
}

/// The removal of old exports, if this server makes some.
pub fn sweep(config: &Config, clock: &Clock) -> Option<Sweep> {
    let settings = export_settings(config).filter(|_| config.flags.feature_simulation_api_enabled)?;
    Some(Sweep::new(&settings, clock.clone()))
}
