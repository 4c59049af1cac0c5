//! A stand-in of a payment provider on loopback, with the shapes that Stripe publishes: customers, checkout and portal
//! sessions, subscriptions, refunds. Customers can be deleted, and pages end. It shows every call that it received, and
//! signs events.

use crate::http::{Request, Response};
use crate::server::{Server, ServerDir};
use crate::token::unix_now;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The secrets of a test: of calls, and of the signatures of events.
pub const SECRET_KEY: &str = "sk_test_0123456789abcdef0123456789abcdef";
pub const WEBHOOK_SECRET: &str = "whsec_0123456789abcdef0123456789abcdef";
/// The price of a plan, `PLAN_INTERVAL` after this.
pub const PRICE_PREFIX: &str = "price_";

/// A call that the provider received.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub form: BTreeMap<String, String>,
    pub authorization: String,
    pub idempotency_key: String,
}

/// What the provider does instead of its answer.
#[derive(Clone, Debug)]
pub enum Fault {
    Status(u16),
    /// A status, for paths with this end.
    At(&'static str, u16),
    /// Another body, with status 200.
    Body(String),
    /// The answer comes later.
    Late(Duration),
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    fault: Option<Fault>,
    made: u64,
    deleted: Vec<String>,
    pages: Vec<Page>,
    /// By idempotency key.
    answers: BTreeMap<String, (u16, String)>,
}

/// A checkout session.
struct Page {
    id: String,
    is_open: bool,
    form: BTreeMap<String, String>,
}

/// The running stand-in; it ends when it is dropped.
pub struct Payments {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Payments {
    pub fn start() -> Payments {
        let state = Arc::new(Mutex::new(State::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (over, is_over) = oneshot::channel::<()>();
        let serving = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = is_over => {}
                    never = accept(listener, serving) => match never {},
                }
            });
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        Payments { address, state, over: Some(over), thread: Some(thread) }
    }

    /// The settings of a server that uses it, with a price of every plan.
    pub fn settings(&self, place: &mut ServerDir) {
        let quoted = |text: &str| format!("{text:?}");
        place.set("billing", "provider", "\"stripe\"");
        place.set("billing", "stripe_base_url", &quoted(&format!("http://{}", self.address)));
        place.set("billing", "secret_key", &quoted(SECRET_KEY));
        place.set("billing", "webhook_secrets", &quoted(WEBHOOK_SECRET));
        for plan in ["pro", "pro_plus", "backtesting_starter", "backtesting_pro"] {
            for interval in ["monthly", "yearly"] {
                let (key, id) = (format!("price_{plan}_{interval}"), format!("{PRICE_PREFIX}{plan}_{interval}"));
                place.set("billing", &key, &quoted(&id));
            }
        }
        for page in ["success", "cancel", "return"] {
            place.set("billing", &format!("{page}_url"), &quoted(&format!("https://paper.example/{page}")));
        }
    }

    /// The calls so far; the next reading begins after them.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().calls)
    }

    /// Every call from now on has this fault; `None`: no more.
    pub fn fail(&self, fault: Option<Fault>) {
        self.lock().fault = fault;
    }

    /// From now on the provider does not have this customer.
    pub fn delete_customer(&self, customer: &str) {
        self.lock().deleted.push(customer.to_owned());
    }

    /// What the open pages sell: a plan, or something that is bought once.
    pub fn open_pages(&self) -> Vec<String> {
        let state = self.lock();
        let open = state.pages.iter().filter(|page| page.is_open);
        let sold = |page: &Page| {
            let names = ["metadata[plan]", "metadata[sku]"];
            names.iter().find_map(|name| page.form.get(*name)).cloned().unwrap_or_default()
        };
        open.map(sold).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }
}

impl Drop for Payments {
    fn drop(&mut self) {
        drop(self.over.take());
        drop(self.thread.take().map(JoinHandle::join));
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) -> Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let answer = service_fn(move |request| answer(request, Arc::clone(&state)));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(
    request: hyper::Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<hyper::Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let call = Call {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: form(parts.uri.query().unwrap_or_default()),
        form: form(std::str::from_utf8(&body).expect("a form is ASCII")),
        authorization: header("authorization"),
        idempotency_key: header("idempotency-key"),
    };
    let fault = {
        let mut state = state.lock().expect("no panic");
        state.calls.push(call.clone());
        state.made += 1;
        state.fault.clone().filter(|fault| !matches!(fault, Fault::At(end, _) if !call.path.ends_with(end)))
    };
    let (status, text) = match fault {
        Some(Fault::Status(status) | Fault::At(_, status)) => {
            (status, json!({"error": {"type": "api_error", "code": "x", "message": "secret"}}).to_string())
        }
        Some(Fault::Body(body)) => (200, body),
        Some(Fault::Late(wait)) => {
            tokio::time::sleep(wait).await;
            state.lock().expect("no panic").answer(&call)
        }
        None => state.lock().expect("no panic").answer(&call),
    };
    let response = hyper::Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(Full::new(Bytes::from(text))).expect("a sound response"))
}

impl State {
    /// Status and text of the answer to a call; of calls with one idempotency key, that of the first.
    fn answer(&mut self, call: &Call) -> (u16, String) {
        if call.idempotency_key.is_empty() {
            return self.made_answer(call);
        }
        if !self.answers.contains_key(&call.idempotency_key) {
            let answer = self.made_answer(call);
            self.answers.insert(call.idempotency_key.clone(), answer);
        }
        self.answers[&call.idempotency_key].clone()
    }

    fn made_answer(&mut self, call: &Call) -> (u16, String) {
        let gone = call.method == "POST" && call.form.get("customer").is_some_and(|known| self.deleted.contains(known));
        if gone {
            let error = json!({"type": "invalid_request_error", "code": "resource_missing", "param": "customer"});
            return (400, json!({ "error": error }).to_string());
        }
        match self.object(call) {
            Ok(object) => (200, object.to_string()),
            Err(status) => (status, json!({"error": {"type": "invalid_request_error"}}).to_string()),
        }
    }

    /// The object that a call makes or reads.
    fn object(&mut self, call: &Call) -> Result<Value, u16> {
        let number = self.made;
        let sessions = call.path.strip_prefix("/v1/checkout/sessions/");
        Ok(match (call.method.as_str(), call.path.as_str()) {
            ("POST", "/v1/customers") => json!({"id": format!("cus_{number}"), "object": "customer"}),
            ("GET", "/v1/checkout/sessions") => {
                assert_eq!(call.query["status"], "open");
                let of_customer = |page: &&Page| page.form.get("customer") == call.query.get("customer");
                let open = self.pages.iter().filter(|page| page.is_open).filter(of_customer);
                json!({"object": "list", "data": open.map(Page::object).collect::<Vec<_>>()})
            }
            ("POST", "/v1/checkout/sessions") => {
                let url = format!("https://pay.example.net/s/{number}");
                let page = Page { id: format!("cs_{number}"), is_open: true, form: call.form.clone() };
                let mut object = page.object();
                object["url"] = json!(url);
                self.pages.push(page);
                object
            }
            ("POST", path) if path.ends_with("/expire") => {
                let id = sessions.and_then(|path| path.strip_suffix("/expire"));
                let page = self.pages.iter_mut().find(|page| page.is_open && Some(page.id.as_str()) == id);
                let page = page.ok_or(400_u16)?;
                page.is_open = false;
                page.object()
            }
            // The page of a payment `pi_1` has the id `cs_pi_1`.
            ("GET", _) if sessions.is_some_and(|id| id.starts_with("cs_pi_")) => {
                let id = sessions.unwrap_or_default();
                json!({"id": id, "object": "checkout.session", "payment_intent": id.trim_start_matches("cs_")})
            }
            ("POST", "/v1/billing_portal/sessions") => {
                json!({"object": "billing_portal.session", "url": format!("https://pay.example.net/p/{number}")})
            }
            ("GET", path) if path.starts_with("/v1/subscriptions/") => {
                // Something else is paid with the same subscription.
                let items = json!([
                    {"id": "si_0", "price": {"id": "support"}},
                    {"id": "si_1", "price": {"id": format!("{PRICE_PREFIX}pro_yearly")}},
                ]);
                json!({"id": path.trim_start_matches("/v1/subscriptions/"), "items": {"data": items}})
            }
            ("POST", "/v1/refunds") => json!({"id": format!("re_{number}"), "object": "refund"}),
            _ => return Err(404),
        })
    }
}

impl Page {
    fn object(&self) -> Value {
        let of_page = |name: &str| self.form.get(name);
        json!({
            "id": self.id, "object": "checkout.session", "status": if self.is_open { "open" } else { "expired" },
            "mode": of_page("mode"), "customer": of_page("customer"),
            "metadata": {"user_id": of_page("metadata[user_id]"), "plan": of_page("metadata[plan]")},
        })
    }
}

/// The fields of a form.
fn form(text: &str) -> BTreeMap<String, String> {
    let decoded = |text: &str| wire::query::decoded(text, true).into_owned();
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// An event about an object.
pub fn event(id: &str, kind: &str, created: u64, object: &Value) -> Value {
    json!({"id": id, "object": "event", "type": kind, "created": created, "data": {"object": object}})
}

/// A subscription as the provider describes it.
pub fn subscription(id: &str, customer: &str, user: i64, plan: &str, status: &str, period_end: u64) -> Value {
    json!({
        "id": id, "object": "subscription", "customer": customer, "status": status, "cancel_at_period_end": false,
        "trial_end": null, "current_period_end": period_end,
        "items": {"data": [{"id": "si_1", "price": {"id": format!("{PRICE_PREFIX}{plan}")}}]},
        "metadata": {"user_id": user.to_string()},
    })
}

/// A paid session of a purchase as the provider describes it.
pub fn paid(payment: &str, customer: &str, user: i64, sku: &str, wallet: Option<i64>, cents: u64) -> Value {
    let mut metadata = json!({"user_id": user.to_string(), "sku": sku});
    if let Some(wallet) = wallet {
        metadata["wallet_id"] = json!(wallet.to_string());
    }
    json!({
        "id": format!("cs_{payment}"), "object": "checkout.session", "mode": "payment", "payment_status": "paid",
        "amount_total": cents, "currency": "usd", "customer": customer, "client_reference_id": user.to_string(),
        "payment_intent": payment, "metadata": metadata,
    })
}

/// A charge that was returned, whole or in part.
pub fn refunded(payment: &str, customer: &str, amount: u64, returned: u64) -> Value {
    json!({
        "id": format!("ch_{payment}"), "object": "charge", "customer": customer, "payment_intent": payment,
        "amount": amount, "amount_refunded": returned, "currency": "usd", "metadata": {},
    })
}

/// A refund of a payment: `succeeded`, `failed` and so on.
pub fn refund(id: &str, payment: &str, cents: u64, status: &str) -> Value {
    json!({
        "id": id, "object": "refund", "payment_intent": payment, "charge": format!("ch_{payment}"), "amount": cents,
        "currency": "usd", "status": status, "metadata": {},
    })
}

/// The header that signs a body at a time.
pub fn signature(body: &str, at: u64) -> String {
    billing::signature::header(&host::secret::Secret::new(WEBHOOK_SECRET.to_owned()), body.as_bytes(), at)
}

/// Sends an event with a sound signature. `ahead`: seconds by which the server's clock is ahead.
pub fn deliver(server: &Server, event: &Value, ahead: u64) -> Response {
    let body = event.to_string();
    let request = Request::post("/v1/billing/webhook").text("application/json", &body);
    server.client().send(&request.header("Stripe-Signature", &signature(&body, unix_now() + ahead)))
}
