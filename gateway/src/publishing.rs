//! What a server shows beside markets and accounts: facts of football, its uptime, and incidents.

use crate::config::Config;
use crate::uptime::{Ask, Measurements, Measuring};
use ::football::folder::{Almanac, Folder};
use edge::api::football::facts::Football;
use edge::api::status::{Incidents, Uptime};
use edge::published::Published;
use host::clock::Clock;
use std::sync::Arc;

/// The jobs that read and measure it.
#[derive(Default)]
pub struct Publishing {
    /// `None`: there is no provider.
    pub football: Option<Folder>,
    /// `None`: nothing is measured.
    pub status: Option<Measuring>,
}

/// What these jobs fill.
pub struct Shown {
    pub almanac: Option<Arc<Almanac>>,
    pub measurements: Option<Arc<Measurements>>,
}

impl Publishing {
    /// `asks`: requests of measures to each IO thread.
    pub fn open(config: &Config, clock: &Clock, asks: Vec<Ask>) -> Publishing {
        let (dir, incidents) = (&config.data.dir, &config.published.incidents_file);
        let status = Measuring::open(dir, incidents, clock.clone(), asks, config.engine.shards == 1);
        Publishing { football: config.published.football_dir.as_deref().map(Folder::open), status: Some(status) }
    }

    pub fn shown(&self) -> Shown {
        Shown {
            almanac: self.football.as_ref().map(Folder::almanac),
            measurements: self.status.as_ref().map(Measuring::measurements),
        }
    }
}

impl Shown {
    /// As the routes read it.
    pub fn published(self) -> Published {
        let Shown { almanac, measurements } = self;
        Published {
            football: almanac.map(|almanac| almanac as Arc<dyn Football>),
            uptime: measurements.clone().map(|measured| measured as Arc<dyn Uptime>),
            incidents: measurements.map(|measured| measured as Arc<dyn Incidents>),
        }
    }
}
