//! The parts that adapters of live venues are built from: links, calls, captures, and requests of the feed. This module
//! names no venue: venues are rows of [`crate::adapters::ADAPTERS`].

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
pub(crate) use fetch::{reason, retry_after};
pub use health::Health;
pub use link::{Link, Protocol, run_link};
#[cfg(test)]
pub use outlet::lone_port;
pub use outlet::{Closed, Outlet, Port};
pub use pace::Pace;
pub use recorder::Recorder;
pub use roster::{Request, Subject};

use super::tape::Origin;
use engine::time::Timestamp;
use host::clock::Clock;
use std::sync::Arc;

/// The shared parts that an adapter works with.
#[derive(Clone)]
pub struct Tools {
    pub origin: Origin,
    pub(crate) client: reqwest::Client,
    pub(crate) outlet: Arc<Outlet>,
    pub health: Arc<Health>,
    pub pace: Pace,
    pub clock: Clock,
}

impl Tools {
    /// A port for one connection; `name` is its name in recordings.
    pub fn port(&self, name: &str) -> Port {
        self.outlet.port(self.origin, name, &self.health)
    }

    /// A port for responses that belong to no connection.
    pub fn answers(&self) -> Port {
        self.outlet.answers(self.origin, &self.health)
    }

    /// The same for a connection that carries no books: its health is separate and decides no outage.
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
