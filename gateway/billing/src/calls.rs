//! Calls to the provider: on a thread of their own, a bounded number at a time, each with an end.

use edge::api::billing::provider::Failed;
use host::thread;
use reqwest::{Client, Method};
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

/// How long one call may take.
const CALL_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The thread of the calls. It ends with this.
pub struct Calls {
    client: Client,
    runtime: Handle,
    permits: Arc<Semaphore>,
    /// Dropped to end the thread.
    _alive: oneshot::Sender<Infallible>,
}

/// One call.
pub struct Request {
    pub method: Method,
    pub url: String,
    /// The bearer's secret, which no message shows.
    pub secret: host::secret::Secret,
    /// A form; empty for a read.
    pub form: String,
    /// Of calls with the same one the provider makes one object.
    pub idempotency_key: Option<String>,
    /// For messages.
    pub what: &'static str,
}

impl Calls {
    /// `is_plain`: calls go to this machine without TLS. A proxy of the environment would read their secret, so none is
    /// used.
    ///
    /// # Errors
    /// The system's: no thread, no runtime, or no roots of trust.
    pub fn start(calls_max: usize, is_plain: bool) -> io::Result<Calls> {
        // It fails if another part of the process has chosen one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .user_agent(concat!("papertape/", env!("CARGO_PKG_VERSION")))
            .timeout(CALL_WITHIN)
            // A redirect could carry the secret to another host.
            .redirect(reqwest::redirect::Policy::none());
        if is_plain {
            client = client.no_proxy();
        }
        let client = client.build().map_err(io::Error::other)?;
        let runtime = host::runtime::runtime()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel::<Infallible>();
        let body = move || {
            thread::lower_priority();
            let _ = runtime.block_on(ended);
        };
        let lost =
            || tracing::error!("the thread of calls to the payment provider panicked; such calls fail from now on");
        thread::spawn_spare("billing", body, lost)?;
        Ok(Calls { client, runtime: handle, permits: Arc::new(Semaphore::new(calls_max)), _alive: alive })
    }

    /// The JSON answer to a call. If the future is dropped, the call still ends within its time.
    ///
    /// # Errors
    /// [`Failed::Busy`] when as many calls as allowed are in flight; [`Failed::NoCustomer`] for a customer that the
    /// provider does not have; [`Failed::Away`] for every other failure. All but the first are logged.
    pub async fn send(&self, request: Request) -> Result<Value, Failed> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| Failed::Busy)?;
        let (client, what) = (self.client.clone(), request.what);
        let sending = self.runtime.spawn(async move {
            let _permit = permit;
            exchange(client, request).await
        });
        match sending.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Refused { why, failed })) => {
                tracing::warn!(call = what, why, "a call to the payment provider failed");
                Err(failed)
            }
            Err(_) => Err(Failed::Away),
        }
    }
}

/// A call without an answer.
struct Refused {
    /// For the log.
    why: String,
    failed: Failed,
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused { why, failed: Failed::Away }
    }
}

async fn exchange(client: Client, request: Request) -> Result<Value, Refused> {
    let Request { method, url, secret, form, idempotency_key, what: _ } = request;
    let is_post = method == Method::POST;
    let mut builder = client.request(method, url).bearer_auth(secret.expose());
    if !form.is_empty() {
        builder = builder.header("content-type", "application/x-www-form-urlencoded").body(form);
    } else if is_post {
        // Some servers refuse a body of unknown length.
        builder = builder.header("content-length", "0");
    }
    if let Some(key) = idempotency_key {
        builder = builder.header("idempotency-key", key);
    }
    // An error may name the address, which has no secret.
    let mut response = builder.send().await.map_err(|error| error.to_string())?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| error.to_string())? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(format!("the answer has more than {ANSWER_BYTES_MAX} bytes").into());
        }
        body.extend_from_slice(&piece);
    }
    let answer: Value = serde_json::from_slice(&body).map_err(|_| format!("status {status}, and no JSON"))?;
    if status.is_success() {
        return Ok(answer);
    }
    let error = |field: &str| answer["error"][field].as_str().unwrap_or("none").chars().take(64).collect::<String>();
    let (code, param) = (error("code"), error("param"));
    let is_gone = (code.as_str(), param.as_str()) == ("resource_missing", "customer");
    let why = format!("status {status}, type {}, code {code}, field {param}", error("type"));
    Err(Refused { why, failed: if is_gone { Failed::NoCustomer } else { Failed::Away } })
}
