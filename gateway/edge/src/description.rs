//! `GET /v1/openapi.json` describes the routes of this server, `GET /v1/asyncapi.json` its streams.
//!
//! The checked-in `gateway/openapi.json` is the description of a server with the default brand and all gates open.
//! `gateway/asyncapi.json` depends on no setting.

use crate::api::health::API_VERSION;
use crate::groups::GROUPS;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::front::Front;
use crate::http::names::Names;
use crate::http::openapi::{self, Served};
use crate::http::record::Example;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::Route;
use crate::settings::Brand;
use crate::ws::{asyncapi, shape};
use tokio::sync::OnceCell;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/openapi.json", "get_openapi")
        .about("This document.")
        .gives_with::<serde_json::Value>(200, Example::Text(r#"{"openapi":"3.1.0"}"#))
        .run(|call| Box::pin(async move { describe(&call, &call.front().description, of).await })),
    Route::get("/v1/asyncapi.json", "get_asyncapi")
        .about("The streams: an AsyncAPI document.")
        .gives_with::<serde_json::Value>(200, Example::Text(r#"{"asyncapi":"3.0.0"}"#))
        .run(|call| {
            Box::pin(async move { describe(&call, &call.front().streams_description, |_| of_the_streams()).await })
        }),
];

/// Returns a document, which the first request for it makes on another thread: that takes too long for a thread that
/// serves connections.
async fn describe(call: &Call, kept: &OnceCell<Vec<u8>>, make: fn(&Front) -> Vec<u8>) -> Outcome {
    let made = || async {
        let app = call.edge.app.clone();
        tokio::task::spawn_blocking(move || make(&app.front)).await
    };
    // A table that contradicts itself panics there; the runtime also drops the task when the process ends.
    let written = kept.get_or_try_init(made).await.map_err(|_| Code::InternalError)?;
    Ok(Reply::json(written.clone()))
}

/// The OpenAPI document of this server.
fn of(front: &Front) -> Vec<u8> {
    let exists = |route: &Route| route.exists(&front.settings);
    let served = Served {
        version: API_VERSION,
        names: &front.names,
        exists: &exists,
        root_mount: front.settings.compat.root_mount,
    };
    openapi::text(&openapi::document(GROUPS, &served))
}

/// The OpenAPI document of a server with the default brand and every route: `gateway/openapi.json`.
///
/// # Panics
/// If the route tables contradict each other.
pub fn of_the_default() -> Vec<u8> {
    let brand = Brand::default();
    let names =
        Names::new(&brand.header_prefix, &brand.key_header_aliases).expect("the default brand makes header names");
    let served = Served { version: API_VERSION, names: &names, exists: &|_| true, root_mount: true };
    openapi::text(&openapi::document(GROUPS, &served))
}

/// The AsyncAPI document: `gateway/asyncapi.json`.
///
/// # Panics
/// If a declaration contradicts another one.
pub fn of_the_streams() -> Vec<u8> {
    openapi::text(&asyncapi::document(shape::CHANNELS, API_VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::limit::Source;
    use crate::http::route::Execution;
    use crate::http::testing::{World, run};
    use hyper::header::HeaderMap;
    use std::path::Path;
    use std::rc::Rc;

    /// The checked-in documents equal those of the code. `cargo build && target/debug/papertape openapi >
    /// gateway/openapi.json`, and the same with `asyncapi`, updates them.
    #[test]
    fn the_checked_in_documents_equal_those_of_the_tables() {
        for (name, made) in [("openapi.json", of_the_default()), ("asyncapi.json", of_the_streams())] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
            let kept = std::fs::read(&path).unwrap_or_default();
            let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
            let (kept_lines, made_lines) = (lines(&kept), lines(&made));
            let first = made_lines.iter().enumerate().find(|(at, line)| kept_lines.get(*at) != Some(line));
            assert!(kept == made, "gateway/{name} is out of date, first in line {first:?} (counted from 0)");
            println!("{name}: {} lines", made_lines.len());
        }
    }

    /// A document is made once, and not on the thread that serves its connections.
    #[test]
    fn a_document_is_made_on_another_thread() {
        let world = World::new("", &[ROUTES]);
        let call = |route: &'static Route| Call {
            edge: Rc::clone(&world.edge),
            route,
            now: crate::http::testing::NOW,
            uri: route.path.parse().expect("a path"),
            is_head: false,
            headers: HeaderMap::new(),
            typed: false,
            dialect: crate::http::dialect::Dialect::Plain,
            variables: Default::default(),
            source: Source { address: [127, 0, 0, 1].into(), local: true },
            caller: None,
            body: Default::default(),
        };
        let thread = |_: &Front| format!("{:?}", std::thread::current().id()).into_bytes();
        let (call_of_any, kept) = (call(&ROUTES[0]), OnceCell::new());
        let made = run(describe(&call_of_any, &kept, thread)).expect("a document").body;
        assert_ne!(made, thread(&world.edge.app.front));
        let again = run(describe(&call_of_any, &kept, |_| b"another".to_vec())).expect("a document").body;
        assert_eq!(again, made);

        let cases = [(0, "openapi", "3.1.0"), (1, "asyncapi", "3.0.0")];
        for (route, name, version) in cases {
            let route = &ROUTES[route];
            let Execution::Async(handler) = route.execution else { panic!("the route is asynchronous") };
            let reply = run(handler(call(route)));
            let document: serde_json::Value = serde_json::from_slice(&reply.expect("a document").body).expect("JSON");
            assert_eq!(document[name], version);
        }
        println!("descriptions: {} cases", cases.len());
    }
}
