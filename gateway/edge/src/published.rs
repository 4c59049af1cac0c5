//! What the server shows beside markets and accounts: ports that the process fills. A missing one shows nothing.

use crate::api::football::facts::Football;
use crate::api::status::{Incidents, Uptime};
use std::sync::Arc;

/// Sources of what is shown.
#[derive(Clone, Default)]
pub struct Published {
    /// `None`: no provider of facts of football is set.
    pub football: Option<Arc<dyn Football>>,
    /// `None`: nothing is measured.
    pub uptime: Option<Arc<dyn Uptime>>,
    /// `None`: there are no incidents.
    pub incidents: Option<Arc<dyn Incidents>>,
}
