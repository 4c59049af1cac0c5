//! Identity tokens (gateway/docs/keys.md §6): valid ones, and every kind of invalid one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

/// The secret that test servers are configured with.
pub const SECRET: &str = "a test secret of more than thirty-two bytes";

/// A valid token for `sub`, for an hour.
pub fn token(sub: &str) -> String {
    sign(&json!({"alg": "HS256", "typ": "JWT"}), &claims(sub), SECRET.as_bytes())
}

/// A valid token for `sub` with an email address, for an hour.
pub fn token_of(sub: &str, email: &str) -> String {
    token_with(sub, &[("email", json!(email))])
}

/// A valid token for `sub` with further claims, for an hour.
pub fn token_with(sub: &str, more: &[(&str, Value)]) -> String {
    let mut claims = claims(sub);
    for (name, value) in more {
        claims[*name] = value.clone();
    }
    sign(&json!({"alg": "HS256", "typ": "JWT"}), &claims, SECRET.as_bytes())
}

/// The claims of a valid token.
pub fn claims(sub: &str) -> Value {
    json!({"sub": sub, "aud": "authenticated", "exp": unix_now() + 3_600, "role": "authenticated"})
}

/// Any header and claims under any secret, signed with HMAC-SHA256.
pub fn sign(header: &Value, claims: &Value, secret: &[u8]) -> String {
    signed(&header.to_string(), &claims.to_string(), secret)
}

/// The same of any texts, JSON or not.
pub fn signed(header: &str, claims: &str, secret: &[u8]) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = hmac_sha256(secret, signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

pub fn encode(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs()
}

/// RFC 2104 over SHA-256.
fn hmac_sha256(secret: &[u8], message: &[u8]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut key = [0_u8; BLOCK];
    if secret.len() > BLOCK {
        key[..32].copy_from_slice(&Sha256::digest(secret));
    } else {
        key[..secret.len()].copy_from_slice(secret);
    }
    let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::hmac_sha256;

    /// RFC 4231, cases 2 and 6 (a key longer than a block).
    #[test]
    fn the_signature_is_the_standard_one() {
        let rows: [(&[u8], &[u8], &str); 2] = [
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (secret, message, expected) in rows {
            let hex: String = hmac_sha256(secret, message).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected);
        }
        println!("signatures: {} cases", rows.len());
    }
}
