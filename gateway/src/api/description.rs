//! `GET /v1/openapi.json`: this server for machines (wire.md §10). The checked-in `gateway/openapi.json` is the same
//! document of a server with the default configuration.

use super::GROUPS;
use super::health::API_VERSION;
use crate::config::Config;
use crate::http::call::Call;
use crate::http::openapi::{self, Served};
use crate::http::reply::{Names, Outcome, Reply};
use crate::http::route::Route;
use crate::http::schema::Schema;

pub const ROUTES: &[Route] = &[Route::get("/v1/openapi.json", "get_openapi")
    .about("This document.")
    .gives(200, &Schema::Any, r#"{"openapi":"3.1.0"}"#)
    .run(|call| Box::pin(describe(call)))];

async fn describe(call: Call) -> Outcome {
    let app = call.app();
    let written = app.front.description.get_or_init(|| {
        let exists = |route: &Route| route.gate.is_none_or(|gate| gate.open(&app.config.flags));
        let served = Served { version: API_VERSION, names: &app.front.names, exists: &exists };
        openapi::text(&openapi::document(GROUPS, &served))
    });
    Ok(Reply::json(written.clone()))
}

/// The document of a server with the default brand and every route: `gateway/openapi.json`.
///
/// # Panics
/// When the table contradicts itself.
pub fn of_the_default() -> Vec<u8> {
    let brand = Config::defaults().brand;
    let names = Names::new(&brand.header_prefix, &brand.key_header_aliases).expect("the default brand names headers");
    let served = Served { version: API_VERSION, names: &names, exists: &|_| true };
    openapi::text(&openapi::document(GROUPS, &served))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The checked-in description is that of the code: `cargo run -- openapi > gateway/openapi.json` makes it so.
    #[test]
    fn the_checked_in_document_is_that_of_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
        let kept = std::fs::read(&path).unwrap_or_default();
        let made = of_the_default();
        let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
        let (kept_lines, made_lines) = (lines(&kept), lines(&made));
        let first = made_lines.iter().enumerate().find(|(at, line)| kept_lines.get(*at) != Some(line));
        assert!(kept == made, "gateway/openapi.json is out of date, first in line {first:?} (counted from 0)");
        println!("{} lines", made_lines.len());
    }
}
