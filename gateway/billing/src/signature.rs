//! The signature of an event: `t=SECONDS,v1=HEX[,v1=HEX]`, HMAC-SHA256 over `SECONDS.BODY` (gateway/docs/billing.md §4).

use crate::hex::hex;
use hmac::{Hmac, KeyInit as _, Mac as _};
use host::secret::Secret;
use sha2::Sha256;

/// How far the time of a signature may be from now, either way, seconds.
pub const TOLERANCE_SECS: u64 = 300;
/// Longest header, and most signatures in it: a provider sends one for each of its secrets.
pub const HEADER_BYTES_MAX: usize = 4_096;
const SIGNATURES_MAX: usize = 16;

/// A signature header, parsed.
struct Signed<'a> {
    /// As it was sent, since it is part of what is signed.
    seconds: &'a str,
    signatures: Vec<[u8; 32]>,
}

/// Whether one of the secrets signed the body at a time near `now_secs`. Takes the same time for every wrong signature
/// that states such a time.
pub fn is_genuine(header: &[u8], body: &[u8], secrets: &[Secret], now_secs: u64) -> bool {
    let Some(Signed { seconds, signatures }) = parse(header) else { return false };
    // First, so that an old or invented header costs no MAC.
    if !seconds.parse::<u64>().is_ok_and(|at| at.abs_diff(now_secs) <= TOLERANCE_SECS) {
        return false;
    }
    let macs = secrets.iter().map(|secret| mac(secret, seconds, body));
    macs.fold(false, |found, mac| {
        signatures.iter().fold(found, |found, signature| found | mac.clone().verify_slice(signature).is_ok())
    })
}

/// The header of a body that this secret signs.
pub fn header(secret: &Secret, body: &[u8], at_secs: u64) -> String {
    let seconds = at_secs.to_string();
    let signature = mac(secret, &seconds, body).finalize().into_bytes();
    format!("t={seconds},v1={}", hex(&signature))
}

fn mac(secret: &Secret, seconds: &str, body: &[u8]) -> Hmac<Sha256> {
    let secret = secret.expose().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    for part in [seconds.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac
}

/// One time, and at least one signature of version 1. Other versions and names are passed over.
fn parse(header: &[u8]) -> Option<Signed<'_>> {
    if header.len() > HEADER_BYTES_MAX {
        return None;
    }
    let (mut seconds, mut signatures) = (None, Vec::new());
    for part in std::str::from_utf8(header).ok()?.split(',') {
        match part.trim_matches(' ').split_once('=')? {
            ("t", digits) => {
                let is_sound = !digits.is_empty() && digits.len() <= 12 && digits.bytes().all(|b| b.is_ascii_digit());
                if !is_sound || seconds.replace(digits).is_some() {
                    return None;
                }
            }
            ("v1", digits) => {
                signatures.push(digest(digits)?);
                if signatures.len() > SIGNATURES_MAX {
                    return None;
                }
            }
            _ => {}
        }
    }
    Some(Signed { seconds: seconds?, signatures }).filter(|signed| !signed.signatures.is_empty())
}

/// The bytes of 64 hexadecimal digits.
fn digest(text: &str) -> Option<[u8; 32]> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_932_500;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    #[test]
    fn a_signature_is_of_this_body_by_these_secrets_about_now() {
        let (old, new) = (secret("whsec_old"), secret("whsec_new"));
        let body = br#"{"id":"evt_1"}"#;
        let of = |secret: &Secret, at| header(secret, body, at);
        let digits = |header: &str| header.split_once("v1=").expect("it has one").1.to_owned();
        let wrong = "0".repeat(64);
        let good = of(&new, NOW);
        let rows: Vec<(String, bool)> = vec![
            (good.clone(), true),
            (of(&old, NOW), true),
            (of(&secret("other"), NOW), false),
            (of(&new, NOW - TOLERANCE_SECS), true),
            (of(&new, NOW + TOLERANCE_SECS), true),
            (of(&new, NOW - TOLERANCE_SECS - 1), false),
            (of(&new, NOW + TOLERANCE_SECS + 1), false),
            (format!("t={NOW},v1={wrong},v1={}", digits(&good)), true),
            (format!("t={NOW},v1={},v1={wrong}", digits(&good)), true),
            (format!("v1={},t={NOW}", digits(&good)), true),
            (format!("t={NOW}, v1={}", digits(&good)), true),
            (format!("t={NOW},v0={wrong},v1={},scheme=x", digits(&good)), true),
            (format!("t={NOW},v1={}", digits(&good).to_uppercase()), true),
            (format!("t={NOW},v0={}", digits(&good)), false),
            (format!("t={},v1={}", NOW + 1, digits(&good)), false),
            (format!("t=0{NOW},v1={}", digits(&good)), false),
            (format!("t={NOW},t={NOW},v1={}", digits(&good)), false),
            (format!("t=+{NOW},v1={}", digits(&good)), false),
            (format!("t=,v1={}", digits(&good)), false),
            (format!("v1={}", digits(&good)), false),
            (format!("t={NOW}"), false),
            (format!("t={NOW},v1={}0", digits(&good)), false),
            (format!("t={NOW},v1=é{}", &digits(&good)[2..]), false),
            (format!("t={NOW},v1={},", digits(&good)), false),
            (format!("t={NOW},{}v1={}", format!("v1={wrong},").repeat(16), digits(&good)), false),
            (format!("{good},x={}", "y".repeat(HEADER_BYTES_MAX)), false),
            (String::new(), false),
            ("t=v1=,".to_owned(), false),
        ];
        println!("signatures: {} cases", rows.len());
        for (header, expected) in rows {
            let found = is_genuine(header.as_bytes(), body, &[old.clone(), new.clone()], NOW);
            assert_eq!(found, expected, "{header}");
        }
        assert!(!is_genuine(good.as_bytes(), br#"{"id":"evt_2"}"#, std::slice::from_ref(&new), NOW), "another body");
        assert!(!is_genuine(&[0xff, b'=', 0xfe], body, &[new], NOW));
        assert!(!is_genuine(good.as_bytes(), body, &[], NOW), "no secret verifies nothing");
    }

    /// Computed with another program: `hmac.new(b"whsec_test", b"1492774577.{}", "sha256")` of Python.
    #[test]
    fn a_known_signature_is_genuine() {
        let known = "t=1492774577,v1=0d0602f6611bd2252dd4b74b58a4528355a7380639a15e6cc21e3059d56d5b8b";
        assert_eq!(header(&secret("whsec_test"), b"{}", 1_492_774_577), known);
        assert!(is_genuine(known.as_bytes(), b"{}", &[secret("whsec_test")], 1_492_774_577));
    }
}
