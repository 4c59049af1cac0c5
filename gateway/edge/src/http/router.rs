//! Method and path → route. A literal segment takes precedence over a variable. The start fails if two routes match the
//! same requests.
//!
//! The venue's paths have up to three forms: `/v1/book`; `/book`, for clients that are configured with the host only;
//! and `/v1/v1/heartbeats`, which a client makes of a host that ends in `/v1` and a path that begins with it.

use super::route::{Method, Root, Route};
use ahash::AHashMap;
use std::ops::Range;

/// Prefix of every path of the table.
const PREFIX: &str = "/v1";
/// Prefix of a path that has it twice.
const DOUBLED: &str = "/v1/v1/";
/// Most variables of one path.
pub const VARIABLES_MAX: usize = 4;

/// The route table as requests look it up.
#[derive(Debug)]
pub struct Router {
    /// Paths without variables. Most requests match here.
    literal: AHashMap<&'static str, [Option<&'static Route>; 4]>,
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    literals: AHashMap<&'static str, Node>,
    variable: Option<Box<Node>>,
    /// By [`Method`].
    routes: [Option<&'static Route>; 4],
}

/// Values of the path variables, in order, as ranges of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    places: [(u32, u32); VARIABLES_MAX],
    count: usize,
}

/// The result of a lookup.
#[derive(Debug)]
pub enum Match {
    Route(&'static Route, Variables),
    /// The path has other methods only: the value of `Allow`.
    OtherMethods(String),
    Nothing,
}

impl Variables {
    fn push(&mut self, place: Range<usize>) {
        self.places[self.count] = (place.start as u32, place.end as u32);
        self.count += 1;
    }

    /// Path variable number `index` of `path`, percent-encoded.
    pub fn get<'p>(&self, path: &'p str, index: usize) -> Option<&'p str> {
        let (start, end) = self.places[..self.count].get(index)?;
        path.get(*start as usize..*end as usize)
    }
}

impl Router {
    /// A router of these tables. With `root_mount` the venue's paths also match without their prefix.
    ///
    /// # Errors
    /// Two routes have the same method and path, apart from names of variables, or a path is malformed.
    pub fn new(tables: &[&'static [Route]], root_mount: bool) -> Result<Router, String> {
        let mut router = Router { literal: AHashMap::new(), root: Node::default() };
        for route in tables.iter().copied().flatten() {
            router.add(route.path, route)?;
            let at_root = match route.root {
                Root::Never => false,
                Root::Mounted => root_mount,
                Root::Always => true,
            };
            if at_root {
                let bare = route.path.strip_prefix(PREFIX);
                router.add(bare.ok_or_else(|| format!("{route:?}: not under {PREFIX}"))?, route)?;
            }
        }
        Ok(router)
    }

    /// Adds a route with one of its paths.
    fn add(&mut self, whole: &'static str, route: &'static Route) -> Result<(), String> {
        let Some(path) = whole.strip_prefix('/') else { return Err(format!("{route:?}: no leading slash")) };
        let mut node = &mut self.root;
        let mut variables = 0;
        for segment in path.split('/') {
            node = if segment.starts_with('{') && segment.ends_with('}') && segment.len() > 2 {
                variables += 1;
                node.variable.get_or_insert_default()
            } else if segment.contains(['{', '}']) || segment.is_empty() && path.contains("//") {
                return Err(format!("{route:?}: malformed segment {segment:?}"));
            } else {
                node.literals.entry(segment).or_default()
            };
        }
        if variables > VARIABLES_MAX {
            return Err(format!("{route:?}: more than {VARIABLES_MAX} variables"));
        }
        if let Some(earlier) = node.routes[route.method as usize].replace(route) {
            return Err(format!("{route:?} and {earlier:?} match the same requests"));
        }
        if variables == 0 {
            self.literal.insert(whole, node.routes);
        }
        Ok(())
    }

    /// Finds the route of a request. `exists` decides which routes exist, by their gates.
    pub fn find(&self, method: &hyper::Method, path: &str, exists: impl Fn(&Route) -> bool) -> Match {
        let mut variables = Variables::default();
        let doubled = if path.starts_with(DOUBLED) { PREFIX.len() } else { 0 };
        let once = &path[doubled..];
        let routes = self.literal.get(once).filter(|routes| any(routes, &exists));
        let routes = routes.or_else(|| {
            let rest = once.strip_prefix('/')?;
            // Variables are ranges of the path as the client sent it.
            self.root.find(rest, path.len() - rest.len(), &exists, &mut variables)
        });
        let Some(routes) = routes else { return Match::Nothing };
        let found = Method::of(method).and_then(|method| routes[method as usize]).filter(|route| exists(route));
        match found {
            Some(route) => Match::Route(route, variables),
            None => Match::OtherMethods(allow(routes, exists)),
        }
    }
}

fn any(routes: &[Option<&'static Route>; 4], exists: impl Fn(&Route) -> bool) -> bool {
    routes.iter().flatten().any(|route| exists(route))
}

impl Node {
    /// The routes at `rest`, which begins at byte `at` of the path. The depth of the recursion is bounded by the table,
    /// not by the request.
    fn find(
        &self,
        rest: &str,
        at: usize,
        exists: &impl Fn(&Route) -> bool,
        variables: &mut Variables,
    ) -> Option<&[Option<&'static Route>; 4]> {
        let (segment, rest_of_path) = match rest.split_once('/') {
            Some((segment, rest_of_path)) => (segment, Some(rest_of_path)),
            None => (rest, None),
        };
        if let Some(node) = self.literals.get(segment) {
            let before = *variables;
            if let Some(routes) = node.at_or_below(rest_of_path, at + segment.len() + 1, exists, variables) {
                return Some(routes);
            }
            *variables = before;
        }
        let node = self.variable.as_deref().filter(|_| !segment.is_empty())?;
        variables.push(at..at + segment.len());
        node.at_or_below(rest_of_path, at + segment.len() + 1, exists, variables)
    }

    /// The routes of this node, or of the one that `rest_of_path` leads to.
    fn at_or_below(
        &self,
        rest_of_path: Option<&str>,
        at: usize,
        exists: &impl Fn(&Route) -> bool,
        variables: &mut Variables,
    ) -> Option<&[Option<&'static Route>; 4]> {
        match rest_of_path {
            Some(rest_of_path) => self.find(rest_of_path, at, exists, variables),
            None => Some(&self.routes).filter(|routes| any(routes, exists)),
        }
    }
}

/// The value of `Allow` for a path.
fn allow(routes: &[Option<&'static Route>; 4], exists: impl Fn(&Route) -> bool) -> String {
    let mut methods = Vec::new();
    for method in Method::ALL {
        if routes[method as usize].is_some_and(&exists) {
            methods.push(method.text());
            if method == Method::Get {
                methods.push("HEAD");
            }
        }
    }
    methods.push("OPTIONS");
    methods.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::route::Gate;

    const TABLE: &[Route] = &[
        Route::get("/v1/orders", "list"),
        Route::post("/v1/orders", "place"),
        Route::post("/v1/orders/batch", "batch"),
        Route::get("/v1/orders/{order_id}", "detail"),
        Route::delete("/v1/orders/{order_id}", "cancel"),
        Route::get("/v1/orders/by-client-id/{client_order_id}", "by_client_id"),
        Route::get("/v1/markets/{condition_id}", "market"),
        Route::get("/v1/markets/{condition_id}/book", "book"),
        Route::get("/v1/markets/by-slug/{slug}", "by_slug"),
        Route::get("/v1/simulation/fill", "fill").gate(Gate::SimulationApi),
        Route::get("/v1/", "root").at_root(),
        Route::get("/v1/tick-size/{token_id}", "tick_size").at_root(),
        Route::get("/v1/tick-size", "tick_size_by_query").at_root(),
        Route::post("/v1/heartbeats", "beat").at_root(),
        Route::get("/v1/prices/stream", "stream").always_at_root(),
    ];

    fn ask(method: &str, path: &str) -> String {
        ask_of(&Router::new(&[TABLE], false).expect("a sound table"), method, path)
    }

    fn ask_of(router: &Router, method: &str, path: &str) -> String {
        let method = hyper::Method::from_bytes(method.as_bytes()).unwrap();
        match router.find(&method, path, |route| route.gate.is_none()) {
            Match::Route(route, variables) => {
                let values: Vec<_> = (0..VARIABLES_MAX).map_while(|index| variables.get(path, index)).collect();
                format!("{} {}", route.name, values.join(","))
            }
            Match::OtherMethods(allow) => format!("405 {allow}"),
            Match::Nothing => "404".to_owned(),
        }
    }

    #[test]
    fn a_literal_beats_a_variable_and_paths_are_exact() {
        for (method, path, expected) in [
            ("GET", "/v1/orders", "list "),
            ("HEAD", "/v1/orders", "list "),
            ("POST", "/v1/orders", "place "),
            ("PUT", "/v1/orders", "405 GET, HEAD, POST, OPTIONS"),
            ("BREW", "/v1/orders", "405 GET, HEAD, POST, OPTIONS"),
            ("GET", "/v1/orders/90412", "detail 90412"),
            ("HEAD", "/v1/orders/90412", "detail 90412"),
            ("DELETE", "/v1/orders/a%2Fb", "cancel a%2Fb"),
            ("PATCH", "/v1/orders/1", "405 GET, HEAD, DELETE, OPTIONS"),
            ("GET", "/v1/orders/batch", "405 POST, OPTIONS"),
            ("GET", "/v1/orders/by-client-id/g-1", "by_client_id g-1"),
            ("GET", "/v1/orders/by-client-id", "detail by-client-id"),
            ("GET", "/v1/markets/by-slug/book", "by_slug book"),
            ("GET", "/v1/markets/by-slug/x", "by_slug x"),
            ("GET", "/v1/markets/0x1/book", "book 0x1"),
            ("GET", "/v1/markets/by-slug", "market by-slug"),
            ("GET", "/v1/orders/", "404"),
            ("GET", "/v1/orders//", "404"),
            ("GET", "/v1/orders/1/", "404"),
            ("GET", "/v1/Orders", "404"),
            ("GET", "/v1", "404"),
            ("GET", "/v1/", "root "),
            ("GET", "/", "404"),
            ("GET", "", "404"),
            ("OPTIONS", "*", "404"),
            ("GET", "v1/orders", "404"),
            ("GET", "/v1/simulation/fill", "404"),
            ("POST", "/v1/simulation/fill", "404"),
        ] {
            assert_eq!(ask(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn venue_paths_match_at_the_root_and_with_a_doubled_prefix() {
        let (bare, mounted) = (Router::new(&[TABLE], false).unwrap(), Router::new(&[TABLE], true).unwrap());
        // (method, path, without the root mount, with it)
        for (method, path, without, with) in [
            ("GET", "/", "404", "root "),
            ("GET", "/tick-size", "404", "tick_size_by_query "),
            ("GET", "/tick-size/811", "404", "tick_size 811"),
            ("PUT", "/tick-size/811", "404", "405 GET, HEAD, OPTIONS"),
            ("POST", "/heartbeats", "404", "beat "),
            ("GET", "/prices/stream", "stream ", "stream "),
            ("GET", "/v1/prices/stream", "stream ", "stream "),
            ("GET", "/orders", "404", "404"),
            ("GET", "/orders/1", "404", "404"),
            ("GET", "/tick-size/", "404", "404"),
            ("POST", "/v1/v1/heartbeats", "beat ", "beat "),
            ("GET", "/v1/v1/orders", "list ", "list "),
            ("GET", "/v1/v1/tick-size/811", "tick_size 811", "tick_size 811"),
            ("GET", "/v1/v1/", "root ", "root "),
            ("GET", "/v1/v1", "404", "404"),
            ("GET", "/v1/v1/v1/orders", "404", "404"),
            ("GET", "/v1/v1/nothing", "404", "404"),
            ("GET", "/v1//v1/orders", "404", "404"),
        ] {
            assert_eq!(ask_of(&bare, method, path), without, "{method} {path}");
            assert_eq!(ask_of(&mounted, method, path), with, "{method} {path}, mounted");
        }
    }

    #[test]
    fn tables_that_contradict_themselves_are_refused() {
        const SAME: &[Route] = &[Route::get("/v1/a/{x}", "one"), Route::get("/v1/a/{y}", "two")];
        const BROKEN: &[Route] = &[Route::get("/v1/a{x}", "one")];
        const BARE: &[Route] = &[Route::get("v1", "one")];
        const MANY: &[Route] = &[Route::get("/{a}/{b}/{c}/{d}/{e}", "one")];
        const ELSEWHERE: &[Route] = &[Route::get("/api/a", "one").at_root()];
        const TWICE: &[Route] = &[Route::get("/v1/a", "one").at_root(), Route::get("/a", "two")];
        for (table, expected) in [
            (ELSEWHERE, "not under /v1"),
            (TWICE, "match the same requests"),
            (SAME, "GET /v1/a/{y} (two) and GET /v1/a/{x} (one) match the same requests"),
            (BROKEN, "malformed segment"),
            (BARE, "no leading slash"),
            (MANY, "more than 4 variables"),
        ] {
            let refused = Router::new(&[table], true).expect_err("not a table");
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
