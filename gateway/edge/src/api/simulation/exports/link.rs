//! Links to exports: `?exp=<unix seconds>&sig=<digits>`. The signature is HMAC-SHA256 with the server's secret over id and
//! end, so that the bearer of a link may read its file until then, and nothing else.

use super::ExportId;
use crate::http::call::{Call, id};
use engine::time::Timestamp;
use hmac::{Hmac, KeyInit as _, Mac as _};
use host::secret::Secret;
use sha2::Sha256;

/// How long a link is valid.
pub const TTL_SECS: u64 = 3_600;
pub const PATH: &str = "/v1/simulation/exports/files/";

/// A valid link from now on.
pub fn make(call: &Call, export: ExportId) -> String {
    let settings = &call.front().settings;
    let ends = call.now.secs() + TTL_SECS;
    let signature: [u8; 32] = mac(&settings.auth.server_secret, export, ends).finalize().into_bytes().into();
    let base = call.base_url();
    format!("{base}{PATH}{export}?exp={ends}&sig={}", digits(&signature))
}

/// The export of a request's link; `None`: the link was not made here, was changed, or has ended.
pub fn verified(call: &Call) -> Option<ExportId> {
    let query = call.query();
    let export = ExportId::parse(&call.variable(0))?;
    let ends = query.get("exp").and_then(id)?;
    let signature = query.get("sig").and_then(digest)?;
    // The comparison takes the same time for every wrong signature.
    mac(&call.front().settings.auth.server_secret, export, ends).verify_slice(&signature).ok()?;
    is_open(ends, call.now).then_some(export)
}

fn is_open(ends: u64, now: Timestamp) -> bool {
    now.secs() < ends
}

fn mac(secret: &Secret, export: ExportId, ends: u64) -> Hmac<Sha256> {
    let secret = secret.expose().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    // The label is first and ends with a colon; the other parts have fixed lengths.
    for part in [&b"export-link:"[..], &export.0, &ends.to_be_bytes()] {
        mac.update(part);
    }
    mac
}

/// Bytes as lower-case hexadecimal digits.
pub fn digits(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of 64 lower-case hexadecimal digits.
pub fn digest(text: &str) -> Option<[u8; 32]> {
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}
