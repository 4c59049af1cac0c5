//! `GET /v1/openapi.json`: this server for machines (wire.md §10). The checked-in `gateway/openapi.json` is the same
//! document of a server with the default configuration.

use super::GROUPS;
use super::health::API_VERSION;
use crate::app::App;
use crate::config::Config;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::names::Names;
use crate::http::openapi::{self, Served};
use crate::http::reply::{Outcome, Reply};
use crate::http::route::Route;
use crate::http::schema::Schema;
use crate::thread;

pub const ROUTES: &[Route] = &[Route::get("/v1/openapi.json", "get_openapi")
    .about("This document.")
    .gives(200, &Schema::Any, r#"{"openapi":"3.1.0"}"#)
    .run(|call| Box::pin(describe(call)))];

/// The first time the document is made on another thread: it takes too long for one that serves everybody.
async fn describe(call: Call) -> Outcome {
    let made = || async {
        let app = call.edge.app.clone();
        tokio::task::spawn_blocking(move || thread::guard(|| of(&app))).await
    };
    // Nobody takes the work off that thread before it has begun, unless the process is ending.
    let written = call.app().front.description.get_or_try_init(made).await.map_err(|_| Code::InternalError)?;
    Ok(Reply::json(written.clone()))
}

/// The document of this server.
fn of(app: &App) -> Vec<u8> {
    let exists = |route: &Route| route.gate.is_none_or(|gate| gate.open(&app.config.flags));
    let served = Served { version: API_VERSION, names: &app.front.names, exists: &exists };
    openapi::text(&openapi::document(GROUPS, &served))
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
    use crate::http::limit::Source;
    use crate::http::testing::{World, run};
    use hyper::header::HeaderMap;
    use std::path::Path;
    use std::rc::Rc;

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

    /// While the document is made whoever asks waits for it, and others have their turns.
    #[test]
    fn the_document_is_made_on_another_thread() {
        let world = World::new("", &[ROUTES]);
        let call = || Call {
            edge: Rc::clone(&world.edge),
            route: &ROUTES[0],
            now: crate::http::testing::NOW,
            uri: "/v1/openapi.json".parse().expect("a path"),
            headers: HeaderMap::new(),
            variables: Default::default(),
            source: Source { address: [127, 0, 0, 1].into(), local: true },
            caller: None,
            body: Default::default(),
        };
        let cases = [("the first", true), ("the second", false)];
        for (asks, waits) in cases {
            let mut pending = false;
            let reply = run(async {
                let mut describing = std::pin::pin!(describe(call()));
                std::future::poll_fn(|context| {
                    let described = describing.as_mut().poll(context);
                    pending |= described.is_pending();
                    described
                })
                .await
            });
            let document: serde_json::Value = serde_json::from_slice(&reply.expect("a document").body).expect("JSON");
            assert_eq!((pending, &document["openapi"]), (waits, &"3.1.0".into()), "{asks}");
        }
        println!("descriptions: {} cases", cases.len());
    }
}
