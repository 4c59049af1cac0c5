//! The parts of alerts outside of the edge: the mailer, the job that delivers, and the port of the routes.

use crate::boot_error::{BootError, io};
use crate::config::{Config, Secret};
use crate::runtime::Inboxes;
use edge::ended_rows::EndedRows;
use engine::market::catalog::Catalog;
use host::clock::Clock;
use integrations::dispatcher::{Dispatcher, Known, Parts};
use integrations::figures::Figures;
use integrations::journal::Deliveries;
use integrations::mailer::Mailer;
use integrations::owing::Owing;
use integrations::sender::Sender;
use integrations::settings::{Mail, Settings};
use integrations::target;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// What the alerts of a server need of its other parts.
pub struct Needs<'a> {
    pub inboxes: &'a Inboxes,
    pub ended: &'a Arc<dyn EndedRows>,
    pub clock: &'a Clock,
    pub catalog: &'a Arc<Catalog>,
    /// True as soon as the markets of the log are in the catalogue.
    pub is_listed: watch::Receiver<bool>,
    pub owing: &'a Owing,
    /// Users with alerts at the start.
    pub known: Vec<Known>,
    pub figures: Arc<Figures>,
}

/// The port of the routes, and the job that serves it.
///
/// # Errors
/// A setting of mail is wrong, or the roots of trust that mail needs cannot be read.
pub fn open(config: &Config, needs: Needs<'_>) -> Result<(Arc<Sender>, Dispatcher), BootError> {
    let settings = settings(config)?;
    let mailer = settings.mail.as_ref().map(|mail| Mailer::new(mail, settings.timeout)).transpose();
    let mailer = mailer.map_err(BootError::Alerts)?;
    let deliveries = Arc::<Deliveries>::default();
    let (sender, requests) = Sender::new(mailer.is_some(), needs.owing.clone(), deliveries.clone());
    let delivers = config.rules.formats.is_newest();
    if !delivers && needs.known.iter().any(|known| known.owes) {
        tracing::warn!("alerts are owed; none is delivered while journal.write_formats is previous");
    }
    let parts = Parts {
        settings,
        owing: needs.owing.clone(),
        requests,
        deliveries,
        figures: needs.figures,
        inboxes: needs.inboxes.to_vec(),
        ended: needs.ended.clone(),
        clock: needs.clock.clone(),
        catalog: needs.catalog.clone(),
        is_listed: needs.is_listed,
        mailer,
        look_up: target::system(),
        known: needs.known,
        delivers,
    };
    Ok((Arc::new(sender), Dispatcher::new(parts)))
}

fn settings(config: &Config) -> Result<Settings, BootError> {
    let email = &config.email;
    let password = email.password_file.as_deref().map(password).transpose()?;
    let credentials = email.user.clone().map(|user| (user, password.unwrap_or_else(|| Secret::new(String::new()))));
    Ok(Settings {
        chat_hosts: config.integrations.chat_hosts.clone(),
        allow_private_targets: config.integrations.allow_private_targets,
        first_retry: config.integrations.first_retry,
        timeout: config.integrations.timeout,
        signature_header: format!("{}-Signature", config.brand.header_prefix),
        mail: email.by.clone().map(|by| Mail { by, from: email.from.clone(), credentials }),
    })
}

fn password(path: &Path) -> Result<Secret, BootError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(io(format!("email.smtp_password_file: {}", path.display())))?;
    Ok(Secret::new(text.trim().to_owned()))
}
