//! What the adapters of live venues are made of: links, calls, captures, and what is wanted of a venue. It names no venue:
//! those are rows of [`crate::adapters::ADAPTERS`].

mod budget;
pub mod capture;
mod fetch;
mod health;
mod link;
pub(crate) mod outlet;
mod pace;
mod pages;
pub(crate) mod queue;
pub mod recorder;
mod room;
pub(crate) mod roster;
pub(crate) mod shelf;

pub use budget::Budget;
pub use fetch::Fetch;
pub(super) use fetch::client as fetch_client;
pub use health::Health;
pub use link::{Link, Talk, keep};
#[cfg(test)]
pub use outlet::lone_port;
pub use outlet::{Closed, Outlet, Port};
pub use pace::Pace;
pub use recorder::Recorder;
pub use roster::{Subject, Want, origin};

use super::tape::Origin;
use engine::time::Timestamp;
use host::clock::Clock;
use std::sync::Arc;

/// What an adapter works with.
#[derive(Clone)]
pub struct Tools {
    pub(crate) client: reqwest::Client,
    pub(crate) outlet: Arc<Outlet>,
    pub health: Arc<Health>,
    pub pace: Pace,
    pub clock: Clock,
}

impl Tools {
    /// A port for one connection; `name` is that of recordings.
    pub fn port(&self, origin: Origin, name: &str) -> Port {
        self.outlet.port(origin, name, &self.health)
    }

    /// A port for answers that belong to no connection.
    pub fn answers(&self, origin: Origin) -> Port {
        self.outlet.answers(origin, &self.health)
    }

    /// The same beside the books: with a health of its own, by which no outage is judged.
    pub fn aside(&self) -> Tools {
        Tools { health: Arc::default(), ..self.clone() }
    }

    /// Server time.
    pub fn now(&self) -> Timestamp {
        self.outlet.now()
    }

    /// A REST service.
    pub fn fetch(&self, base: &str, port: Port, budget: Budget) -> Fetch {
        Fetch::new(self.client.clone(), base, port, budget, self.pace)
    }
}
