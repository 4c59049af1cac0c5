//! Settings, route table, header names, limits, token secrets and access lists of the edge. All IO threads share them,
//! and they do not change after the start.

use super::cohort::Cohort;
use super::hosts::Hosts;
use super::jwt::Verifier;
use super::limit::Limits;
use super::names::Names;
use super::refusals::Refusals;
use super::route::Route;
use super::router::Router;
use super::server::Connections;
use super::ticket::Tickets;
use super::usage::Usage;
use crate::meters::EdgeMeters;
use crate::settings::{Access, Settings};
use engine::directory::Directory;
use engine::id::UserId;
use hyper::header::{HeaderName, HeaderValue};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Settings, route table, limits and secrets of the edge.
pub struct Front {
    pub settings: Settings,
    pub connections: Arc<Connections>,
    /// Counters for a monitor, if metrics are on.
    pub meters: Option<EdgeMeters>,
    pub router: Router,
    pub names: Names,
    /// Headers that may carry a key, after `X-API-Key`, in their order.
    pub key_aliases: Vec<HeaderName>,
    pub limits: Arc<Limits>,
    pub usage: Usage,
    pub cohort: Cohort,
    pub identity: Verifier,
    /// Socket tokens.
    pub tickets: Tickets,
    pub gatekeeper: Gatekeeper,
    pub cors: Cors,
    pub refusals: Refusals,
    /// Names that a request may have as `Host`.
    pub hosts: Hosts,
    /// The descriptions of routes and streams. The first request makes them.
    pub description: OnceCell<Vec<u8>>,
    pub streams_description: OnceCell<Vec<u8>>,
}

impl Front {
    /// Creates the edge with these route tables. The secrets of `settings` must be complete.
    ///
    /// # Errors
    /// The route tables contradict each other, the brand makes no header names, or the system has no randomness.
    pub fn new(settings: Settings, tables: &[&'static [Route]]) -> Result<Front, String> {
        let config = &settings;
        let brand = &config.brand;
        let alias = |name: &String| HeaderName::try_from(name).map_err(|error| format!("{name}: {error}"));
        Ok(Front {
            router: Router::new(tables, config.compat.root_mount)?,
            names: Names::new(&brand.header_prefix, &brand.key_header_aliases)
                .ok_or_else(|| format!("brand.header_prefix: {:?} cannot begin a header name", brand.header_prefix))?,
            key_aliases: brand.key_header_aliases.iter().map(alias).collect::<Result<_, _>>()?,
            limits: Arc::new(Limits::new(config.limits.clone(), config.http.trusted_proxies.clone())),
            usage: Usage::new(tables),
            cohort: Cohort::default(),
            identity: Verifier::new(&config.auth.jwt_secrets),
            tickets: Tickets::new(config.auth.ws_secret.as_ref()).map_err(|error| format!("no randomness: {error}"))?,
            gatekeeper: Gatekeeper { access: config.access.clone(), allowlist_on: config.flags.allowlist_enabled },
            cors: Cors::new(&config.http.cors_origins),
            refusals: Refusals::default(),
            hosts: Hosts::of(config.server.listen, &config.server.hosts),
            description: OnceCell::new(),
            streams_description: OnceCell::new(),
            connections: Arc::new(Connections::new(config)),
            meters: None,
            settings,
        })
    }
}

/// Users and keys that are refused by setting.
pub struct Gatekeeper {
    access: Access,
    allowlist_on: bool,
}

impl Gatekeeper {
    /// Whether the user is flagged, or is not on the allowlist while that is on.
    pub fn restricts(&self, user: UserId, directory: &Directory) -> bool {
        names(&self.access.flagged, user, directory) || (self.allowlist_on && !self.lists(user, directory))
    }

    /// As [`Gatekeeper::restricts`], for a subject without an account. So a refused request does not create one.
    pub fn restricts_newcomer(&self, sub: &str) -> bool {
        let is_named = |list: &[String]| list.iter().any(|entry| entry == sub);
        is_named(&self.access.flagged) || (self.allowlist_on && !is_named(&self.access.allowlist))
    }

    /// Whether the allowlist has a subject without an account.
    pub fn lists_newcomer(&self, sub: &str) -> bool {
        self.access.allowlist.iter().any(|entry| entry == sub)
    }

    /// Whether the user is on the allowlist.
    pub fn lists(&self, user: UserId, directory: &Directory) -> bool {
        names(&self.access.allowlist, user, directory)
    }

    /// Whether the operator deactivated the key.
    pub fn disables(&self, key: engine::id::KeyId) -> bool {
        self.access.disabled_keys.contains(&key.0)
    }
}

/// Whether a list of user ids and subjects has that user.
fn names(list: &[String], user: UserId, directory: &Directory) -> bool {
    list.iter().any(|entry| entry.parse() == Ok(user.0) || directory.by_sub(entry) == Some(user))
}

/// Browser origins that may read responses.
pub enum Cors {
    Any,
    Listed(Vec<HeaderValue>),
}

impl Cors {
    fn new(origins: &[String]) -> Cors {
        if origins.iter().any(|origin| origin == "*") {
            return Cors::Any;
        }
        Cors::Listed(origins.iter().filter_map(|origin| HeaderValue::try_from(origin).ok()).collect())
    }

    /// The value of `Access-Control-Allow-Origin` for a request from `origin`.
    pub fn allows(&self, origin: Option<&HeaderValue>) -> Option<HeaderValue> {
        let origin = origin?;
        match self {
            Cors::Any => Some(HeaderValue::from_static("*")),
            Cors::Listed(origins) => origins.contains(origin).then(|| origin.clone()),
        }
    }
}
