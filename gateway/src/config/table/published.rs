//! Rows of what is shown beside markets and accounts.

use super::texts;
use crate::config::setting::{Setting, parsed, path};

pub(super) fn rows() -> Vec<Setting> {
    vec![
        parsed(
            "football.provider",
            "none",
            texts::FOOTBALL,
            "Source of the football routes: `file:DIR`, a folder of JSON files ([football.md](football.md)), which are read \
             again when they change; `none`: their lists are empty.",
        ),
        path(
            "status.incidents_file",
            "File of incidents ([status.md](status.md)), which is read again when it changes. Default: `incidents.json` in the \
             data directory.",
        ),
    ]
}
