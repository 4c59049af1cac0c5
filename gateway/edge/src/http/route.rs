//! The vocabulary of the route table: one endpoint is one value with everything that the edge needs of it.
//!
//! Tables are constants built by `const fn` steps; the function that runs is a plain function pointer.

use super::call::Call;
use super::code::Code;
use super::record::{Example, Record};
use super::reply::Outcome;
use super::response_head::Cache;
use super::schema::{Gives, Kind, Param, Schema, Takes};
use crate::settings::Settings;
use std::pin::Pin;

/// What a handler returns: a future that stays on the thread of its connection.
pub type Running = Pin<Box<dyn Future<Output = Outcome>>>;

/// How the handler of a route runs.
#[derive(Clone, Copy)]
pub enum Execution {
    /// It waits for nothing: a read of what is in memory needs no future.
    Immediate(fn(&Call) -> Outcome),
    Async(fn(Call) -> Running),
}

/// One endpoint.
#[derive(Clone, Copy)]
pub struct Route {
    pub method: Method,
    /// Segments between slashes; `{name}` is a variable.
    pub path: &'static str,
    /// Names the operation in the machine description, logs and figures.
    pub name: &'static str,
    /// One line for the machine description.
    pub about: &'static str,
    /// Whether the path answers without its `/v1` too.
    pub root: Root,
    pub auth: Auth,
    pub permission: Option<Permission>,
    pub rate: RateClass,
    pub gate: Option<Gate>,
    pub body: BodyKind,
    pub cache: Cache,
    /// The handler reads no header but `Idempotency-Key`: the fast path discards all others.
    pub headless: bool,
    /// It answers about orders, fills or positions that may have ended: it says from when on these are shown.
    pub shows_history: bool,
    /// It takes signed orders, which the rehearsal looks at: its answers may have the header of the rehearsal.
    pub is_rehearsed: bool,
    /// Parameters of the query string, and headers that this route reads.
    pub params: &'static [Param],
    pub takes: Option<Takes>,
    /// Responses that are not refusals: at most three, the usual one first.
    pub gives: [Option<Gives>; 3],
    /// Codes that the handler can refuse with, besides those of the checks before it.
    pub fails: &'static [Code],
    /// Those of code that several routes share.
    pub also_fails: &'static [Code],
    /// Codes with another status than elsewhere.
    pub fails_at: &'static [(u16, Code)],
    pub execution: Execution,
}

/// Methods of the contract. HEAD is answered wherever GET is, OPTIONS everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

/// Whether a path under `/v1` answers without that prefix too: venue clients append their paths to the
/// configured host (`gateway/docs/venue-clients.md §0`). It is one route with one path; the router finds it under both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    Never,
    /// While `[venue] root_mount` is on.
    Mounted,
    /// With any setting.
    Always,
}

/// Which credential a route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// None is needed; a usable key is recognised and counts (`gateway/docs/wire.md §8`).
    Public,
    Key,
    /// A session token; a key alone is not enough.
    Jwt,
    /// Either; the key wins when both are sent.
    KeyOrJwt,
    /// A key, except for requests that are answered in the venue's shape, which are public
    /// (`gateway/docs/venue-clients.md §2`). Headers and query decide this before a credential is looked for.
    KeyUnless(VenueShape),
    /// A key; without one, while `[venue] address_login` is on, the signature of an address, which the handler
    /// verifies (`gateway/docs/venue-clients.md §8`). Such a request counts against its source address.
    KeyOrAddress,
}

/// Which requests a route of two shapes answers in the venue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueShape {
    /// Those of the strict dialect.
    Strict,
    /// Those too that ask for a page by `next_cursor`, without `envelope`.
    StrictOrPage,
}

/// What the key must be allowed to do. Routes without one take any credential of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Read,
    Trade,
}

/// What a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// Nothing: health.
    Exempt,
    /// The key when there is a usable one, else the source address.
    PerAddress,
    /// The key or the user.
    Caller,
    /// As `Caller`, and the placement limiter (`gateway/docs/wire.md §8`).
    Placement,
    /// As `Caller`, and the bootstrap windows of the source address.
    Bootstrap,
    /// The source address, in windows of its own: requests that another service sends. A credential is not looked for.
    Callback,
}

/// The setting that makes a route exist. It is off by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Reads of the archive, and back-tests on it.
    SimulationApi,
    ChartArchive,
    /// Services of the venue that its clients ask beside its order books.
    Facade,
    /// Pages and events of a payment provider.
    Billing,
    /// Links of the payment provider for development.
    BillingStub,
}

impl Gate {
    /// The setting that opens it.
    pub const fn flag(self) -> &'static str {
        match self {
            Gate::SimulationApi => "flags.feature_simulation_api_enabled",
            Gate::ChartArchive => "flags.chart_archive_read_enabled",
            Gate::Facade => "venue.facade",
            Gate::Billing | Gate::BillingStub => "billing.provider",
        }
    }

    /// Whether its routes ask for a credential before they answer that they do not exist.
    pub const fn asks_first(self) -> bool {
        matches!(self, Gate::SimulationApi)
    }

    /// Whether the routes of this gate exist.
    pub fn open(self, config: &Settings) -> bool {
        match self {
            Gate::SimulationApi => config.flags.feature_simulation_api_enabled,
            Gate::ChartArchive => config.flags.chart_archive_read_enabled,
            Gate::Facade => config.compat.facade,
            Gate::Billing => config.billing.is_on,
            Gate::BillingStub => config.billing.is_stub,
        }
    }
}

/// What a route does with a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Not looked at.
    Ignored,
    /// JSON, or none.
    Optional,
    /// JSON.
    Required,
}

impl Method {
    pub const ALL: [Method; 4] = [Method::Get, Method::Post, Method::Patch, Method::Delete];

    pub const fn text(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    /// The request method that it is named after.
    pub fn hyper(self) -> hyper::Method {
        match self {
            Method::Get => hyper::Method::GET,
            Method::Post => hyper::Method::POST,
            Method::Patch => hyper::Method::PATCH,
            Method::Delete => hyper::Method::DELETE,
        }
    }

    /// The route method that answers a request method.
    pub fn of(method: &hyper::Method) -> Option<Method> {
        match *method {
            hyper::Method::GET | hyper::Method::HEAD => Some(Method::Get),
            hyper::Method::POST => Some(Method::Post),
            hyper::Method::PATCH => Some(Method::Patch),
            hyper::Method::DELETE => Some(Method::Delete),
            _ => None,
        }
    }
}

/// Endpoints that belong together: one file or folder of `api`, one tag of the machine description.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub name: &'static str,
    pub about: &'static str,
    pub routes: &'static [Route],
}

/// Two tables as one of `N` routes.
///
/// # Panics
/// While compiling, when they do not have `N` routes.
pub const fn joined<const N: usize>(first: &[Route], second: &[Route]) -> [Route; N] {
    assert!(first.len() + second.len() == N);
    let mut routes = [Route::get("", ""); N];
    let mut at = 0;
    while at < N {
        routes[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    routes
}

/// Steps that build a route; see [`Route::get`].
impl Route {
    /// A public GET without a body.
    pub const fn get(path: &'static str, name: &'static str) -> Route {
        Route::new(Method::Get, path, name, BodyKind::Ignored)
    }

    /// A public POST with a required JSON body.
    pub const fn post(path: &'static str, name: &'static str) -> Route {
        Route::new(Method::Post, path, name, BodyKind::Required)
    }

    /// A public PATCH with a required JSON body.
    pub const fn patch(path: &'static str, name: &'static str) -> Route {
        Route::new(Method::Patch, path, name, BodyKind::Required)
    }

    /// A public DELETE without a body.
    pub const fn delete(path: &'static str, name: &'static str) -> Route {
        Route::new(Method::Delete, path, name, BodyKind::Ignored)
    }

    const fn new(method: Method, path: &'static str, name: &'static str, body: BodyKind) -> Route {
        Route {
            method,
            path,
            name,
            about: "",
            root: Root::Never,
            auth: Auth::Public,
            permission: None,
            rate: RateClass::PerAddress,
            gate: None,
            body,
            cache: Cache::ByCredential,
            headless: false,
            shows_history: false,
            is_rehearsed: false,
            params: &[],
            takes: None,
            gives: [None; 3],
            fails: &[],
            also_fails: &[],
            fails_at: &[],
            execution: Execution::Immediate(|_| Err(Code::InternalError.into())),
        }
    }

    /// Takes this credential; counts against the caller unless said otherwise.
    pub const fn auth(mut self, auth: Auth) -> Route {
        self.auth = auth;
        if !matches!(auth, Auth::Public) {
            self.rate = RateClass::Caller;
        }
        self
    }

    /// A path of the venue: answers at the root too, while `[venue] root_mount` is on.
    pub const fn at_root(mut self) -> Route {
        self.root = Root::Mounted;
        self
    }

    /// Answers at the root too, with any value of `[venue] root_mount`.
    pub const fn always_at_root(mut self) -> Route {
        self.root = Root::Always;
        self
    }

    pub const fn needs(mut self, permission: Permission) -> Route {
        self.permission = Some(permission);
        self
    }

    /// Whether it exists with these settings.
    pub fn exists(&self, settings: &Settings) -> bool {
        self.gate.is_none_or(|gate| gate.open(settings))
    }

    pub const fn rate(mut self, rate: RateClass) -> Route {
        self.rate = rate;
        self
    }

    pub const fn gate(mut self, gate: Gate) -> Route {
        self.gate = Some(gate);
        self
    }

    pub const fn body(mut self, body: BodyKind) -> Route {
        self.body = body;
        self
    }

    pub const fn no_store(mut self) -> Route {
        self.cache = Cache::NoStore;
        self
    }

    /// Its handler reads no header but `Idempotency-Key`.
    pub const fn headless(mut self) -> Route {
        self.headless = true;
        self
    }

    /// It answers about orders, fills or positions that may have ended.
    pub const fn shows_history(mut self) -> Route {
        self.shows_history = true;
        self
    }

    /// It takes signed orders.
    pub const fn is_rehearsed(mut self) -> Route {
        self.is_rehearsed = true;
        self
    }

    /// Answers with server-sent events.
    pub const fn streamed(mut self) -> Route {
        self.cache = Cache::Stream;
        self
    }

    /// What the operation is for, in one line.
    pub const fn about(mut self, about: &'static str) -> Route {
        self.about = about;
        self
    }

    pub const fn params(mut self, params: &'static [Param]) -> Route {
        self.params = params;
        self
    }

    /// The JSON body: a record of this type. Its example works as it is.
    pub const fn takes<T: Record>(self) -> Route {
        self.takes_with::<T>(Example::of::<T>())
    }

    /// As [`Route::takes`], with another example than that of the type.
    pub const fn takes_with<T: Record>(mut self, example: Example) -> Route {
        self.takes = Some(Takes { schema: Schema::of::<T>(), example });
        self
    }

    /// A JSON answer with this status: a record of this type.
    pub const fn gives<T: Record>(self, status: u16) -> Route {
        self.gives_with::<T>(status, Example::of::<T>())
    }

    /// As [`Route::gives`], with another example than that of the type.
    pub const fn gives_with<T: Record>(self, status: u16, example: Example) -> Route {
        self.gives_one(Gives { status, kind: Kind::Json(Schema::of::<T>()), example })
    }

    /// An answer of another kind than JSON.
    pub const fn gives_kind(self, status: u16, kind: Kind, example: &'static str) -> Route {
        self.gives_one(Gives { status, kind, example: Example::Text(example) })
    }

    /// # Panics
    /// While compiling, when a fourth answer is declared.
    const fn gives_one(mut self, gives: Gives) -> Route {
        let mut place = 0;
        while self.gives[place].is_some() {
            place += 1;
        }
        self.gives[place] = Some(gives);
        self
    }

    pub const fn fails(mut self, codes: &'static [Code]) -> Route {
        self.fails = codes;
        self
    }

    pub const fn also_fails(mut self, codes: &'static [Code]) -> Route {
        self.also_fails = codes;
        self
    }

    /// Codes which this route also answers with a status that is not theirs elsewhere.
    pub const fn fails_at(mut self, codes: &'static [(u16, Code)]) -> Route {
        self.fails_at = codes;
        self
    }

    pub const fn run(mut self, run: fn(Call) -> Running) -> Route {
        self.execution = Execution::Async(run);
        self
    }

    /// Its handler waits for nothing.
    pub const fn answer(mut self, answer: fn(&Call) -> Outcome) -> Route {
        self.execution = Execution::Immediate(answer);
        self
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.method.text(), self.path, self.name)
    }
}
