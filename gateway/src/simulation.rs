//! The parts of the simulation routes outside of the edge.

use crate::config::Config;
use ::simulation::exports::{self, ExportFolder, Sweep};
use ::simulation::past::Past;
use ::simulation::reads::Reads;
use archive::store::{Settings, Store};
use edge::api::simulation::archive::Archive;
use edge::api::simulation::exports::Exports;
use host::clock::Clock;
use std::sync::Arc;

/// What the routes need; all `None` if they are off, or if the archive cannot be opened.
#[derive(Default)]
pub struct Ports {
    pub archive: Option<Arc<dyn Archive>>,
    /// Needs `simulation.export_dir`.
    pub exports: Option<Arc<dyn Exports>>,
}

/// The ports on the archive of the data directory.
pub fn ports(config: &Config, clock: &Clock) -> Ports {
    let Some(past) = past(config) else { return Ports::default() };
    Ports { exports: exports(config, &past, clock), archive: Some(Arc::new(Reads::new(past))) }
}

fn past(config: &Config) -> Option<Arc<Past>> {
    if !config.flags.feature_simulation_api_enabled {
        return None;
    }
    let root = config.data.dir.join("archive");
    match Store::open(&root, Settings::default()) {
        Ok(store) => Some(Arc::new(Past::new(Arc::new(store), config.venue.categories.clone()))),
        Err(error) => {
            tracing::warn!(%error, "the archive cannot be opened; the simulation routes answer 503 until a restart");
            None
        }
    }
}

fn exports(config: &Config, past: &Arc<Past>, clock: &Clock) -> Option<Arc<dyn Exports>> {
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
