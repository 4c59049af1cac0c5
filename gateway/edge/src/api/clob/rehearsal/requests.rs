//! The signature of a request with the secret of its key (rule S15 of gateway/docs/rehearsal.md §2). It is checked for keys
//! of addresses, whose secret and passphrase this server derives (`address_login.rs`).
//!
//! ```text
//! POLY_SIGNATURE = base64url(HMAC-SHA256(secret, POLY_TIMESTAMP ‖ method ‖ path ‖ body))
//! ```

use super::super::address_login::{self, Credentials};
use super::super::signature::word;
use crate::http::call::Call;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use engine::rehearsal::{Class, Diagnosis};
use engine::time::Timestamp;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::header::HeaderName;
use sha2::Sha256;

/// Nonces for which keys are recognised: clients begin at 0.
const NONCES: u64 = 8;
/// How far from now the time of a request may be.
const TIME_WITHIN_SECS: u64 = 60;
/// Prefix of paths here that the venue's clients do not sign.
const VERSION: &str = "/v1";

/// What the venue would say about the signature of a request; `None`: nothing, or the secret is not known.
pub fn finding(call: &Call) -> Option<(Class, Diagnosis)> {
    let credentials = credentials(call)?;
    let header = |name| call.header(&HeaderName::from_static(name));
    let (Some(sent), Some(timestamp)) = (header("poly_signature"), header("poly_timestamp")) else {
        return Some((Class::Refused, Diagnosis::NoHeader));
    };
    if header("poly_passphrase") != Some(credentials.passphrase.as_str()) {
        return Some((Class::Refused, Diagnosis::Passphrase));
    }
    let secret = URL_SAFE.decode(credentials.secret.as_bytes()).ok()?;
    let sent = URL_SAFE.decode(sent).or_else(|_| STANDARD.decode(sent)).unwrap_or_default();
    let path = call.uri.path();
    let paths = [path, path.strip_prefix(VERSION).unwrap_or(path)];
    let is_signed = paths.into_iter().any(|path| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).expect("HMAC takes keys of any length");
        for part in [timestamp.as_bytes(), call.route.method.text().as_bytes(), path.as_bytes(), &call.body[..]] {
            mac.update(part);
        }
        mac.verify_slice(&sent).is_ok()
    });
    if !is_signed {
        return Some((Class::Refused, Diagnosis::OtherSigner));
    }
    let at: u64 = timestamp.parse().unwrap_or(u64::MAX);
    let is_near = |now: Timestamp| now.secs().abs_diff(at) <= TIME_WITHIN_SECS;
    let is_fresh = is_near(call.now) || is_near(call.reads().clock.wall_now());
    (!is_fresh).then_some((Class::Depends, Diagnosis::Time))
}

/// Those of the key of the request, if it is the key of an address.
fn credentials(call: &Call) -> Option<Credentials> {
    let (directory, key) = (&call.reads().directory, call.key());
    let address = address_login::address_of(directory, call.caller().user)?;
    (0..NONCES)
        .map(|nonce| Credentials::of(call, address, &word(&nonce.to_be_bytes())))
        .find(|credentials| directory.principal(&credentials.key_hash()).is_some_and(|principal| principal.key == key))
}
