//! The route table as an OpenAPI 3.1 document (`gateway/docs/wire.md §10`): `gateway/openapi.json`, and `GET /v1/openapi.json`.
//!
//! Everything in it is derived: operations from the table, refusals of a route from its checks and its `fails`, shapes
//! from the constants beside the handlers. Shapes stand once under `components`, named as in the code.

use super::code::{Code, Effect, Retry};
use super::components::Components;
use super::names::Names;
use super::record::Example;
use super::route::{Auth, BodyKind, Group, Method, Permission, RateClass, Root, Route};
use super::schema::{Gives, Kind, PARQUET, Param, ParamIn};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};

/// What of a server's configuration shows in its description.
pub struct Served<'a> {
    /// Version of the wire.
    pub version: &'a str,
    pub names: &'a Names,
    /// Which routes exist (open gates).
    pub exists: &'a dyn Fn(&Route) -> bool,
    /// Whether the venue's paths answer without `/v1` too.
    pub root_mount: bool,
}

/// Variables of paths, with description and example. A malformed one is answered like an unknown one
/// (`gateway/docs/wire.md §10`), so no schema bounds it.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("condition_id", "The market.", "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4"),
    ("token_id", "The outcome token.", "71321045679252212594626385532706912750332728571942532289631379312455583992563"),
    ("order_id", "The order: decimal, or on venue-shaped routes also 0x and 64 hexadecimal digits.", "268435457"),
    ("client_order_id", "The id that the order was sent with.", "grid-17"),
    ("id", "The object's id.", "268435457"),
    ("slug", "The market's slug.", "rain-in-lisbon-oct-3"),
    (
        "market_or_token",
        "The market by its condition id, or by either of its tokens.",
        "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4",
    ),
    ("symbol", "A symbol in any of its forms.", "BTC"),
    ("chat", "The chat service: the setting `integrations.chat_service`.", "discord"),
    ("job_id", "The back-test.", "0d0b7a1e-5f0e-4c55-9a51-2f1f6f2c9d11"),
    ("code", "A builder's code.", "any"),
    ("token", "What the link of a checkout ends with.", "eyJ1c2VyIjo3fQ"),
];

/// The document of these routes.
///
/// # Panics
/// When two operations have one name, or two shapes of one name differ: a mistake in the table, found by the test that
/// compares the checked-in file.
pub fn document(groups: &[Group], served: &Served<'_>) -> Value {
    let mut components = Components::default();
    let mut paths = Map::new();
    let mut operations = HashSet::new();
    let tags: Vec<_> = groups.iter().map(|group| json!({"name": group.name, "description": group.about})).collect();
    for group in groups {
        for route in group.routes.iter().filter(|route| (served.exists)(route)) {
            assert!(operations.insert(route.name), "two operations are called {}", route.name);
            let (path, _) = paths_of(route, served);
            let item = paths.entry(path).or_insert_with(|| json!({}));
            item[route.method.text().to_ascii_lowercase()] = operation(group, route, served, &mut components);
        }
    }
    let mut schemas = components.schemas();
    schemas.insert("Error".to_owned(), error());
    schemas.insert("StrictError".to_owned(), strict_error());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "papertape",
            "version": served.version,
            "description": INTRODUCTION,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": Map::from_iter(schemas),
            "responses": Map::from_iter(components.refused),
            "headers": headers(),
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "session": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "address": {
                    "type": "apiKey", "in": "header", "name": "POLY_SIGNATURE",
                    "description": "The signature of POLY_ADDRESS over POLY_TIMESTAMP and POLY_NONCE (EIP-712).",
                },
            },
        },
        "x-error-codes": codes(),
    })
}

/// Lines of the checked-in document are about this long.
const LINE_CHARS: usize = 118;

/// The document as it is checked in and served: a value that fits into a line gets one line.
pub fn text(document: &Value) -> Vec<u8> {
    let mut out = String::new();
    laid_out(&mut out, document, 0);
    out.push('\n');
    out.into_bytes()
}

fn laid_out(out: &mut String, value: &Value, depth: usize) {
    let line = value.to_string();
    let taken = out.len() - out.rfind('\n').map_or(0, |end| end + 1);
    let (brackets, items): (_, Vec<(Option<&String>, &Value)>) = match value {
        _ if taken + line.len() <= LINE_CHARS => return out.push_str(&line),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            return out.push_str(&line);
        }
        Value::Object(fields) => (['{', '}'], fields.iter().map(|(name, value)| (Some(name), value)).collect()),
        Value::Array(items) => (['[', ']'], items.iter().map(|item| (None, item)).collect()),
        _ => return out.push_str(&line),
    };
    out.push(brackets[0]);
    for (at, (name, item)) in items.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&" ".repeat(depth + 1));
        if let Some(name) = name {
            out.push_str(&format!("{}: ", Value::from(name.as_str())));
        }
        laid_out(out, item, depth + 1);
    }
    out.push('\n');
    out.push_str(&" ".repeat(depth));
    out.push(brackets[1]);
}

const INTRODUCTION: &str = "A paper-trading venue for prediction markets: virtual money against real order books. \
    Quantities and amounts are decimal strings. Every answer carries X-Request-Id; every refusal carries a stable \
    code in `error` and in the code header. Answers to a recognised key carry its rate limits \
    (X-RateLimit-Limit, -Remaining, -Reset, -Limit-Per-Second, -Remaining-Per-Second, -Tier).";

/// The path that a route is described at, and the other one that it answers at.
///
/// `/v1/` is described as `/` while it answers there: linters refuse a path that ends in a slash.
fn paths_of(route: &Route, served: &Served<'_>) -> (&'static str, Option<&'static str>) {
    let at_root = match route.root {
        Root::Never => false,
        Root::Mounted => served.root_mount,
        Root::Always => true,
    };
    match route.path.strip_prefix("/v1").filter(|_| at_root) {
        Some("/") => ("/", Some(route.path)),
        bare => (route.path, bare),
    }
}

fn operation(group: &Group, route: &Route, served: &Served<'_>, components: &mut Components) -> Value {
    let mut operation = Map::new();
    operation.insert("operationId".into(), route.name.into());
    operation.insert("tags".into(), json!([group.name]));
    operation.insert("summary".into(), route.about.into());
    let described = parameters(route, components);
    if !described.is_empty() {
        operation.insert("parameters".into(), described.into());
    }
    if let Some(takes) = route.takes {
        let schema = components.of(&takes.schema);
        let content = json!({"application/json": {"schema": schema, "example": takes.example.value()}});
        let required = route.body == BodyKind::Required;
        operation.insert("requestBody".into(), json!({"required": required, "content": content}));
    }
    operation.insert("responses".into(), responses(route, served, components));
    operation.insert("security".into(), security(route.auth));
    if let Some(permission) = route.permission {
        let word = match permission {
            Permission::Read => "read",
            Permission::Trade => "trade",
        };
        operation.insert("x-permission".into(), word.into());
    }
    operation.insert("x-rate-class".into(), rate_class(route.rate).into());
    if let (_, Some(other)) = paths_of(route, served) {
        operation.insert("x-also-at".into(), other.into());
    }
    if let Some(gate) = route.gate {
        operation.insert("x-flag".into(), gate.flag().into());
    }
    operation.into()
}

fn security(auth: Auth) -> Value {
    match auth {
        Auth::Public | Auth::KeyUnless(_) => json!([{}, {"key": []}]),
        Auth::Key => json!([{"key": []}]),
        Auth::Jwt => json!([{"session": []}]),
        Auth::KeyOrJwt => json!([{"key": []}, {"session": []}]),
        Auth::KeyOrAddress => json!([{"key": []}, {"address": []}]),
    }
}

fn rate_class(rate: RateClass) -> &'static str {
    match rate {
        RateClass::Exempt => "exempt",
        RateClass::PerAddress => "key or address",
        RateClass::Caller => "caller",
        RateClass::Placement => "caller and placements",
        RateClass::Bootstrap => "caller and bootstraps of the address",
        RateClass::Callback => "address, in windows of its own",
    }
}

fn parameters(route: &Route, components: &mut Components) -> Vec<Value> {
    let variables = route.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let in_path = variables.map(|name| {
        let (_, about, example) = VARIABLES
            .iter()
            .find(|(known, ..)| *known == name)
            .unwrap_or_else(|| panic!("{route:?}: say in VARIABLES what {name} is"));
        json!({
            "name": name, "in": "path", "required": true, "description": about,
            "schema": {"type": "string", "minLength": 1}, "example": example,
        })
    });
    let mut all: Vec<Value> = in_path.collect();
    all.extend(route.params.iter().map(|param| parameter(param, components)));
    all
}

fn parameter(param: &Param, components: &mut Components) -> Value {
    let place = match param.place {
        ParamIn::Query => "query",
        ParamIn::Header => "header",
    };
    json!({
        "name": param.name, "in": place, "required": param.required, "description": param.about,
        "schema": components.of(&param.schema),
    })
}

fn responses(route: &Route, served: &Served<'_>, components: &mut Components) -> Value {
    let mut by_status: BTreeMap<u16, Answers<'_>> = BTreeMap::new();
    for gives in route.gives.iter().flatten() {
        by_status.entry(gives.status).or_default().given.push(gives);
    }
    for code in refusals(route) {
        by_status.entry(code.status().as_u16()).or_default().codes.push(code);
    }
    for (status, code) in route.fails_at {
        by_status.entry(*status).or_default().codes.push(*code);
    }
    let written = by_status.into_iter().map(|(status, answers)| {
        let mut written = answers.written(served, components);
        if route.shows_history && !answers.given.is_empty() {
            written["headers"][served.names.history_from.as_str()] =
                json!({"$ref": "#/components/headers/HistoryFrom"});
        }
        if route.is_rehearsed && !answers.given.is_empty() {
            written["headers"][served.names.strict.as_str()] = json!({"$ref": "#/components/headers/Strict"});
        }
        (status.to_string(), written)
    });
    Value::Object(written.collect())
}

/// What a route answers with one status.
#[derive(Default)]
struct Answers<'r> {
    given: Vec<&'r Gives>,
    codes: Vec<Code>,
}

impl Answers<'_> {
    fn written(&self, served: &Served<'_>, components: &mut Components) -> Value {
        let mut json_schemas = Vec::new();
        let mut content = Map::new();
        let mut example = None;
        for gives in &self.given {
            match &gives.kind {
                Kind::Json(schema) => {
                    json_schemas.push(components.of(schema));
                    example = example.or_else(|| Some(gives.example.value()));
                }
                Kind::Csv => _ = content.insert("text/csv".into(), text_content(&gives.example)),
                Kind::Parquet => {
                    _ = content.insert(PARQUET.into(), json!({"schema": {"type": "string", "format": "binary"}}));
                }
                Kind::Nothing => {}
                Kind::Html => _ = content.insert("text/html".into(), text_content(&gives.example)),
                Kind::Events => _ = content.insert("text/event-stream".into(), text_content(&gives.example)),
            }
        }
        let texts: Vec<_> = self.codes.iter().map(|code| code.text()).collect();
        let mut headers = json!({"X-Request-Id": {"$ref": "#/components/headers/RequestId"}});
        if let Some(first) = self.codes.first() {
            json_schemas.push(json!({
                "allOf": [{"$ref": "#/components/schemas/Error"}, {"properties": {"error": {"enum": texts}}}],
            }));
            json_schemas.push(json!({"$ref": "#/components/schemas/StrictError"}));
            example = example.or_else(|| Some(json!({"error": first.text(), "message": first.message()})));
            headers[served.names.code.as_str()] = json!({"$ref": "#/components/headers/Code"});
        }
        if self.codes.iter().any(|code| matches!(code.retry(), Retry::After(_) | Retry::WindowEnd)) {
            headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"});
        }
        if !json_schemas.is_empty() {
            let schema = if json_schemas.len() == 1 { json_schemas.remove(0) } else { json!({"anyOf": json_schemas}) };
            let mut media = json!({"schema": schema});
            if let Some(example) = example {
                media["example"] = example;
            }
            content.insert("application/json".into(), media);
        }
        let description = if texts.is_empty() { "Done.".to_owned() } else { texts.join(", ") };
        let written = json!({"description": description, "headers": headers, "content": content});
        let name = texts.join("-");
        if self.given.is_empty() && name.len() <= REFUSALS_NAME_CHARS {
            components.refused(name, written)
        } else {
            written
        }
    }
}

/// Answers with the same few refusals stand once, under their codes.
const REFUSALS_NAME_CHARS: usize = 120;

fn text_content(example: &Example) -> Value {
    json!({"schema": {"type": "string"}, "example": example.text()})
}

/// Every code that a route can refuse with: those of the checks before its handler (`gateway/docs/wire.md §7`), then its
/// own.
pub fn refusals(route: &Route) -> Vec<Code> {
    let mut codes = vec![Code::Http400, Code::Http413, Code::MisdirectedRequest, Code::InternalError];
    let mut add = |more: &[Code]| {
        for code in more {
            if !codes.contains(code) {
                codes.push(*code);
            }
        }
    };
    let of_keys = [
        Code::InvalidKey,
        Code::KeyDeactivated,
        Code::KeyExpired,
        Code::KeyOwnerNotFound,
        Code::AccessRestricted,
        Code::ServerBusy,
        Code::PersistenceUnknown,
    ];
    let of_sessions = [
        Code::MissingAuth,
        Code::InvalidToken,
        Code::TokenExpired,
        Code::AccessRestricted,
        Code::AuthStateIncomplete,
        Code::ServerBusy,
        Code::PersistenceUnknown,
    ];
    match route.auth {
        // An unusable key counts as absent here.
        Auth::Public => {}
        Auth::Key | Auth::KeyUnless(_) | Auth::KeyOrAddress => {
            add(&[Code::MissingApiKey]);
            add(&of_keys);
        }
        Auth::Jwt => add(&of_sessions),
        Auth::KeyOrJwt => {
            add(&of_keys);
            add(&of_sessions);
        }
    }
    match route.rate {
        RateClass::Exempt => {}
        RateClass::PerAddress | RateClass::Caller | RateClass::Bootstrap | RateClass::Callback => {
            add(&[Code::RateLimitExceeded])
        }
        RateClass::Placement => add(&[Code::RateLimitExceeded, Code::RateLimited]),
    }
    if route.permission == Some(Permission::Trade) {
        add(&[Code::InsufficientPermission]);
    }
    if route.auth != Auth::Public && route.method != Method::Get {
        add(&[Code::TradeInProgress]);
    }
    match route.body {
        BodyKind::Ignored => {}
        BodyKind::Optional | BodyKind::Required => add(&[Code::Http415, Code::InvalidBody]),
    }
    add(route.fails);
    add(route.also_fails);
    codes
}

fn error() -> Value {
    let code = json!({"type": "string", "description": "A stable machine code: branch on this."});
    let message = json!({"type": "string", "description": "For people; its wording may change."});
    json!({
        "type": "object",
        "description": "Why a request was refused.",
        "required": ["error", "message"],
        "properties": error_fields([("error", code), ("message", message)]),
    })
}

/// The same in the strict dialect.
fn strict_error() -> Value {
    let sentence = "The venue's sentence where it has one, else ours.";
    let fields = [
        ("error", json!({"type": "string", "description": sentence})),
        ("message", json!({"type": "string", "description": "The same."})),
        (
            "code",
            json!({"enum": Code::ALL.iter().map(|code| code.text()).collect::<Vec<_>>(),
            "description": "The stable machine code: branch on this."}),
        ),
    ];
    json!({
        "type": "object",
        "description": "Why a request was refused, in the form that the venue's clients expect: those that `dialect=strict`, a \
            POLY_API_KEY or POLY_ADDRESS header or the User-Agent shows.",
        "required": ["error", "message", "code"],
        "properties": error_fields(fields),
    })
}

/// The fields of an error envelope: `first`, then those that only some codes have.
fn error_fields<const N: usize>(first: [(&str, Value); N]) -> Value {
    let mut fields = json!({
            "feature_key": {"type": "string", "description": "UPGRADE_REQUIRED: the feature that the plan lacks."},
            "upgrade_url": {"type": "string", "description": "UPGRADE_REQUIRED: where plans are changed."},
            "retry_after_ms": {"type": "integer", "description": "RATE_LIMITED: wait this long."},
            "retry_after": {"type": "integer", "description": "VENUE_UNAVAILABLE: wait this many seconds."},
            "source": {"enum": ["pending", "filled"], "description": "DEADLINE_OVERSHOT_BUT_PERSISTED."},
            "supported_intervals": {
                "type": "array", "items": {"type": "string"}, "description": "INVALID_INTERVAL: the supported intervals.",
            },
            "rule": {"type": "string", "description": "The rule of the rehearsal that refused a signed order."},
            "diagnosis": {
                "type": ["string", "null"], "description": "With `rule`: what a closer look at the order showed.",
            },
            "details": {"type": ["object", "null"], "description": "Only when asked for with the verbose header."},
            "request_id": {"type": "string", "description": "Only when asked for with the verbose header."},
    });
    for (name, field) in first {
        fields[name] = field;
    }
    fields
}

fn headers() -> Value {
    json!({
        "RequestId": {
            "description": "The request's id: the caller's when it was well-formed, else a new one.",
            "schema": {"type": "string"},
        },
        "Code": {"description": "The code of the refusal.", "schema": {"type": "string"}},
        "HistoryFrom": {
            "description": "The first day, UTC, that answers about the past show, if the server no longer keeps what ended \
                            before. Also with `ORDER_NOT_FOUND`. Absent while nothing of the account is missing.",
            "schema": {"type": "string", "format": "date"},
        },
        "Strict": {
            "description": "The rules of the rehearsal that found something in a signed order, with commas between them; \
                            absent while the rehearsal is off, and without a finding.",
            "schema": {"type": "string"},
        },
        "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "string", "pattern": "^[0-9]+$"}},
    })
}

/// Every code with what a client needs to know before it sends again.
fn codes() -> Value {
    let rows = Code::ALL.iter().map(|code| {
        let retry = match code.retry() {
            Retry::No => json!("no"),
            Retry::Yes => json!("later"),
            Retry::After(secs) => json!(format!("after {secs} s")),
            Retry::WindowEnd => json!("after the window (Retry-After)"),
            Retry::AfterLookup => json!("look the order up first"),
        };
        let effect = match code.effect() {
            Effect::Nothing => "nothing happened",
            Effect::Unknown => "unknown",
            Effect::Done => "done",
        };
        let row =
            json!({"status": code.status().as_u16(), "retry": retry, "effect": effect, "message": code.message()});
        (code.text().to_owned(), row)
    });
    Value::Object(rows.collect())
}
