//! Compares answers with the OpenAPI document: after [`watch`] was called, every answer that a [`crate::http::Client`]
//! of this process receives must have a status, a code and a body that the description of its operation allows, to the
//! last field.

use crate::http::{Request, Response};
use edge::description::of_the_default;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

static WATCHED: AtomicBool = AtomicBool::new(false);
static CHECKED: AtomicUsize = AtomicUsize::new(0);
static DESCRIPTION: LazyLock<Description> = LazyLock::new(Description::read);

/// From here on every answer is checked.
pub fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
}

/// Number of answers that were checked.
pub fn checked() -> usize {
    CHECKED.load(Ordering::Relaxed)
}

/// By operation and status; `None` if the answer is not JSON.
type Validators = HashMap<(String, u16), Option<Arc<Validator>>>;

struct Description {
    document: Value,
    /// The components, with every schema closed: an answer may have no other field.
    components: Value,
    operations: Vec<Operation>,
    validators: Mutex<Validators>,
}

struct Operation {
    method: String,
    segments: Vec<String>,
    /// JSON pointer of the operation.
    place: String,
}

impl Description {
    fn read() -> Description {
        let document: Value = serde_json::from_slice(&of_the_default()).expect("the description is JSON");
        let mut components = document["components"].clone();
        for (name, shape) in components["schemas"].as_object_mut().expect("schemas") {
            if !matches!(name.as_str(), "Error" | "StrictError") && shape.get("properties").is_some() {
                shape["additionalProperties"] = json!(false);
            }
        }
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                let answers = operation["responses"].as_object().expect("responses");
                if !answers.keys().any(|status| status.starts_with('2')) {
                    continue;
                }
                let place = format!("/paths/{}/{method}", path.replace('~', "~0").replace('/', "~1"));
                let segments = path.split('/').map(str::to_string).collect();
                operations.push(Operation { method: method.to_uppercase(), segments, place });
            }
        }
        Description { document, components, operations, validators: Mutex::default() }
    }

    /// The operation of a request; a literal beats a variable, as in the server.
    fn find(&self, method: &str, path: &str) -> Option<&Operation> {
        let path = path.split('?').next().unwrap_or_default();
        let method = if method == "HEAD" { "GET" } else { method };
        let of = |path: &str| {
            let segments: Vec<_> = path.split('/').collect();
            let fits = |operation: &&Operation| {
                operation.method == method
                    && operation.segments.len() == segments.len()
                    && operation
                        .segments
                        .iter()
                        .zip(&segments)
                        .all(|(known, sent)| known == sent || (known.starts_with('{') && !sent.is_empty()))
            };
            let variables = |operation: &&Operation| {
                operation.segments.iter().map(|known| known.starts_with('{')).collect::<Vec<_>>()
            };
            self.operations.iter().filter(fits).min_by_key(variables)
        };
        of(path).or_else(|| of(&format!("/v1{path}"))).or_else(|| of(path.strip_prefix("/v1")?))
    }

    /// `None`: the answer with that status is not JSON.
    ///
    /// # Panics
    /// When the operation does not describe the status.
    fn validator(&self, operation: &Operation, status: u16, exchange: &str) -> Option<Arc<Validator>> {
        let mut validators = self.validators.lock().expect("no test panicked in here");
        let known = (operation.place.clone(), status);
        if let Some(validator) = validators.get(&known) {
            return validator.clone();
        }
        let declared = self.document.pointer(&format!("{}/responses/{status}", operation.place));
        let Some(mut declared) = declared else {
            drop(validators);
            panic!("{}: the description has no status {status}: {exchange}", operation.place);
        };
        if let Some(named) = declared.get("$ref").and_then(Value::as_str) {
            let pointer = named.strip_prefix('#').expect("an inner reference");
            declared = self.document.pointer(pointer).expect("a known answer");
        }
        let validator = declared.pointer("/content/application~1json/schema").map(|schema| {
            let root = json!({"allOf": [schema], "components": self.components});
            let validator = jsonschema::draft202012::new(&root);
            Arc::new(validator.unwrap_or_else(|error| panic!("{}: {error}", operation.place)))
        });
        validators.insert(known, validator.clone());
        validator
    }
}

/// Checks one answer if watching is enabled.
///
/// # Panics
/// When the answer does not match the description.
#[track_caller]
pub fn check(request: &Request, response: &Response) {
    if !WATCHED.load(Ordering::Relaxed) || request.method == "OPTIONS" || matches!(response.status, 101 | 405) {
        return;
    }
    let description = &*DESCRIPTION;
    let Some(operation) = description.find(&request.method, &request.path) else { return };
    let exchange = || format!("{} {} → {} {}", request.method, request.path, response.status, response.lossy());
    // A route behind a closed flag is an unknown one, and so is a root path that is switched off.
    if response.status == 404 && response.code() == "NOT_FOUND" {
        return;
    }
    let validator = description.validator(operation, response.status, &exchange());
    if request.method == "HEAD" || response.count("Content-Encoding") > 0 {
        return;
    }
    let is_json = response.header("Content-Type").is_some_and(|kind| kind.starts_with("application/json"));
    let Some(validator) = validator.filter(|_| is_json) else {
        assert!(!is_json, "JSON where none is described: {}", exchange());
        return;
    };
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", exchange()));
    let wrong: Vec<_> =
        validator.iter_errors(&body).take(3).map(|error| format!("{} at {}", error, error.instance_path())).collect();
    assert!(wrong.is_empty(), "not as described ({}): {}", wrong.join("; "), exchange());
    CHECKED.fetch_add(1, Ordering::Relaxed);
}
