//! One HTTP request to a target (gateway/docs/integrations.md §5): no redirect is followed, no proxy is used, every
//! connection goes to a checked address, and only the head of the answer is read.

use crate::settings::Settings;
use crate::target::{NotPublic, Rules};
use edge::api::integrations::message::Message;
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::AlertTarget;
use engine::user::alerts::Channel;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use sha2::Sha256;
use std::sync::OnceLock;
use std::time::Duration;

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// In words, without the address of the target.
    pub error: String,
}

impl Failed {
    /// Without an answer.
    pub fn because(error: impl Into<String>) -> Failed {
        Failed { status: None, error: error.into() }
    }

    /// Whether the target wants no more (410).
    pub fn is_gone(&self) -> bool {
        self.status == Some(StatusCode::GONE.as_u16())
    }
}

/// Sends to targets.
pub struct Poster {
    /// Made by the first request: it reads the roots of trust, which a server without targets does not need.
    client: OnceLock<Result<Client, String>>,
    rules: Rules,
    signature: HeaderName,
    timeout: Duration,
}

impl Poster {
    pub fn new(settings: &Settings, rules: Rules) -> Poster {
        let signature = HeaderName::try_from(settings.signature_header.as_str());
        // The prefix was checked with the settings of the brand.
        let signature = signature.expect("a prefix of headers and a suffix are a name");
        Poster { client: OnceLock::new(), rules, signature, timeout: settings.timeout }
    }

    fn client(&self) -> Result<&Client, Failed> {
        let made = self.client.get_or_init(|| {
            // Another part of the process may have chosen one.
            let _ = rustls::crypto::ring::default_provider().install_default();
            Client::builder()
                .user_agent(concat!("papertape/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                .no_proxy()
                .no_gzip()
                .referer(false)
                // A connection that is kept is not checked again.
                .pool_max_idle_per_host(0)
                .dns_resolver(self.rules.clone())
                .build()
                .map_err(|error| error.to_string())
        });
        made.as_ref().map_err(|why| Failed::because(format!("this server cannot send: {why}")))
    }

    /// Sends a message of a user, signed at `now` if the target has a secret. Returns the status of the answer.
    ///
    /// # Errors
    /// [`Failed`]: no answer in time, or another status than 2xx.
    pub async fn send(
        &self,
        user: UserId,
        target: &AlertTarget,
        message: &Message,
        now: Timestamp,
    ) -> Result<u16, Failed> {
        // The rules of the server may have changed since the target was added.
        let url =
            self.rules.read(target.channel, &target.url).map_err(|_| Failed::because("the address is not allowed"))?;
        let body = match target.channel {
            Channel::Chat => message.chat(),
            Channel::Webhook => message.webhook(),
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        let mut request = self.client()?.post(url).header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(secret) = &target.secret {
            request = request.header(&self.signature, signature(secret, now.secs(), &body));
        }
        // The head decides, and the body is not read. The connection is not used again.
        let exchange = async {
            let _held = self.rules.hold(user, &host).await.map_err(|error| match error.is::<NotPublic>() {
                true => NOT_PUBLIC,
                false => NO_CONNECTION,
            })?;
            request.body(body).send().await.map(|answer| answer.status()).map_err(|error| reason(&error))
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(status)) if status.is_success() => Ok(status.as_u16()),
            Ok(Ok(status)) => {
                let error = match status.is_redirection() {
                    true => format!("the target answered {}; redirects are not followed", status.as_u16()),
                    false => format!("the target answered {}", status.as_u16()),
                };
                Err(Failed { status: Some(status.as_u16()), error })
            }
            Ok(Err(reason)) => Err(Failed::because(reason)),
            Err(_) => Err(Failed::because(format!("no answer within {} ms", self.timeout.as_millis()))),
        }
    }
}

/// `t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over the seconds, a point and the body.
pub fn signature(secret: &str, seconds: u64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

const NOT_PUBLIC: &str = "the address of the target is not public";
const NO_CONNECTION: &str = "no connection to the target";

/// Why a request has no answer, without its address.
fn reason(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        NO_CONNECTION
    } else {
        "the target broke the connection, or its answer is not HTTP"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference is `printf '1790932445.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef`.
    #[test]
    fn signatures_are_those_of_openssl() {
        assert_eq!(
            signature("0123456789abcdef", 1_790_932_445, br#"{"a":1}"#),
            "t=1790932445,v1=712af82128912e416c8891e15cdbdea144a82f83dd89087c7b40fbfa2193e9df"
        );
    }
}
