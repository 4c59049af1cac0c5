//! Credentials: which header of a request counts, how keys are made and hashed.
//!
//! A raw key is in a [`RawKey`], which cannot be printed and is wiped when dropped. Everything else has only hashes.

use engine::command::Secret;
use engine::user::Permissions;
use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// Hex digits of a key after its prefix: 32 random bytes.
const KEY_DIGITS: usize = 64;
/// Characters of a key that are not secret.
const SHOWN_CHARS: usize = 16;

/// The credentials of a request: at most one of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credentials<'a> {
    /// The text of a key, valid or not.
    pub key: Option<&'a [u8]>,
    /// A bearer token that is not a key.
    pub token: Option<&'a [u8]>,
}

/// Reads the credentials: `X-API-Key`, then the aliases in their order, then a bearer that looks like a key. Any other
/// bearer is a token. An empty header counts as absent.
pub fn credentials<'a>(headers: &'a HeaderMap, aliases: &[HeaderName], key_prefix: &str) -> Credentials<'a> {
    let value = |name: &HeaderName| headers.get(name).map(|value| value.as_bytes()).filter(|value| !value.is_empty());
    let bearer = value(&header::AUTHORIZATION).and_then(bearer);
    let is_key = |bearer: &&[u8]| {
        let marker = bearer.get(..=key_prefix.len()).unwrap_or_default();
        marker.split_last().is_some_and(|(last, prefix)| *last == b'_' && prefix == key_prefix.as_bytes())
    };
    let own = HeaderName::from_static("x-api-key");
    let key = value(&own).or_else(|| aliases.iter().find_map(value));
    Credentials { key: key.or(bearer.filter(is_key)), token: bearer.filter(|bearer| !is_key(bearer)) }
}

/// The credential of an `Authorization` header with the bearer scheme.
fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, credential) = authorization.split_at_checked(7)?;
    let credential = credential.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !credential.is_empty()).then_some(credential)
}

/// SHA-256 of a key or of its UUID alias; `None` if the text can be neither. Takes the same time either way.
pub fn key_hash(text: &[u8], key_prefix: &str) -> Option<[u8; 32]> {
    let hash = sha256(text);
    (is_key(text, key_prefix) || is_uuid(text)).then_some(hash)
}

fn is_key(text: &[u8], key_prefix: &str) -> bool {
    let rest = text.strip_prefix(key_prefix.as_bytes()).unwrap_or_default();
    let digits = rest.strip_prefix(b"_live_").or(rest.strip_prefix(b"_test_")).unwrap_or_default();
    digits.len() == KEY_DIGITS && digits.iter().copied().all(is_lower_hex)
}

fn is_uuid(text: &[u8]) -> bool {
    let sound = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => is_lower_hex(*byte),
    };
    text.len() == 36 && text.iter().enumerate().all(sound)
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The permissions in the words of the wire.
pub fn permission_words(permissions: Permissions) -> &'static [&'static str] {
    match permissions {
        Permissions::Read => &["read"],
        Permissions::ReadTrade => &["read", "trade"],
    }
}

/// A new key in clear text. It appears once: in the response that creates it, in the seed file or in the first banner.
/// It has no Debug, Display or Serialize on purpose, and is wiped when dropped.
pub struct RawKey {
    key: Zeroizing<String>,
    alias: Zeroizing<String>,
}

impl RawKey {
    /// Creates a key from 32 random bytes of the system.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn mint(key_prefix: &str, key_env: &str) -> Result<RawKey, getrandom::Error> {
        let mut random = Zeroizing::new([0u8; KEY_DIGITS / 2]);
        getrandom::fill(&mut random[..])?;
        Ok(RawKey::of(key_prefix, key_env, &random))
    }

    /// Creates a key from these bytes, which must not be guessable.
    pub fn of(key_prefix: &str, key_env: &str, random: &[u8; 32]) -> RawKey {
        let mut key = Zeroizing::new(String::with_capacity(key_prefix.len() + key_env.len() + 2 + KEY_DIGITS));
        for part in [key_prefix, "_", key_env, "_"] {
            key.push_str(part);
        }
        hex(&mut key, random);
        let alias = alias(&key);
        RawKey { key, alias }
    }

    /// The text of the key.
    pub fn expose(&self) -> &str {
        &self.key
    }

    /// The UUID alias, for clients that accept only a UUID.
    pub fn expose_alias(&self) -> &str {
        &self.alias
    }

    /// The hashes, which may be stored.
    pub fn secret(&self) -> Secret {
        Secret {
            hash: sha256(self.key.as_bytes()),
            alias_hash: sha256(self.alias.as_bytes()),
            prefix: self.key[..SHOWN_CHARS].to_owned(),
        }
    }
}

/// A UUIDv8 with the bits of SHA-256(`venue-uuid:` + key) at all positions that the format leaves free.
fn alias(key: &str) -> Zeroizing<String> {
    let hash = Zeroizing::new(sha256(Zeroizing::new(format!("venue-uuid:{key}")).as_bytes()));
    let mut bytes = Zeroizing::new([0u8; 16]);
    bytes.copy_from_slice(&hash[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    uuid_text(&bytes)
}

/// The text of a UUID.
pub fn uuid_text(bytes: &[u8; 16]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(36));
    text.push_str(std::str::from_utf8(&*Zeroizing::new(uuid_digits(bytes))).expect("hex digits are ASCII"));
    text
}

fn uuid_digits(bytes: &[u8; 16]) -> [u8; 36] {
    let mut text = [b'-'; 36];
    let places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    for (place, byte) in places.into_iter().zip(bytes) {
        text[place..place + 2].copy_from_slice(&digits_of(*byte));
    }
    text
}

fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.extend(digits_of(*byte).map(char::from));
    }
}

fn digits_of(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// The id of a request, in its response and in the log.
#[derive(Clone, Debug)]
pub enum RequestId {
    /// Chosen by the client.
    Sent(HeaderValue),
    /// Made by the server, as most are. It needs no allocation.
    Made([u8; 36]),
}

impl RequestId {
    /// Makes a new id.
    pub fn made() -> RequestId {
        RequestId::Made(random_uuid())
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            RequestId::Sent(id) => id.as_bytes(),
            RequestId::Made(id) => id,
        }
    }

    /// The id as ASCII text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    pub fn header(&self) -> HeaderValue {
        match self {
            RequestId::Sent(id) => id.clone(),
            RequestId::Made(id) => HeaderValue::from_bytes(id).expect("a UUID is a header value"),
        }
    }
}

/// A random UUIDv4, for names.
pub fn name() -> String {
    String::from_utf8(random_uuid().to_vec()).expect("a UUID is ASCII")
}

fn random_uuid() -> [u8; 36] {
    thread_local! {
        /// Random bytes that are fetched in advance: one system call for many requests.
        static AHEAD: std::cell::RefCell<(usize, [u8; 1_024])> = const { std::cell::RefCell::new((1_024, [0; 1_024])) };
    }
    let mut bytes = AHEAD.with_borrow_mut(|(used, ahead)| {
        if *used == ahead.len() && getrandom::fill(ahead).is_ok() {
            *used = 0;
        }
        let mut bytes = [0u8; 16];
        // Without randomness ids repeat, which affects only the log.
        bytes.copy_from_slice(&ahead[(*used).min(ahead.len() - 16)..][..16]);
        *used = (*used + 16).min(ahead.len());
        bytes
    });
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    uuid_digits(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "svc_live_4f0c9d2a00112233445566778899aabbccddeeff00112233445566778899aabb";

    fn aliases() -> Vec<HeaderName> {
        ["MKT_API_KEY", "Mkt-API-Key", "POLY_API_KEY"].iter().map(|name| HeaderName::try_from(*name).unwrap()).collect()
    }

    #[test]
    fn the_first_header_in_a_fixed_order_counts() {
        // (headers, key, token)
        for (sent, key, token) in [
            (&[][..], None, None),
            (&[("x-api-key", "a")], Some("a"), None),
            (
                &[("poly_api_key", "p"), ("mkt-api-key", "m2"), ("mkt_api_key", "m1"), ("x-api-key", "a")],
                Some("a"),
                None,
            ),
            (&[("poly_api_key", "p"), ("mkt-api-key", "m2"), ("mkt_api_key", "m1")], Some("m1"), None),
            (&[("poly_api_key", "p"), ("mkt-api-key", "m2")], Some("m2"), None),
            (&[("poly_api_key", "p"), ("authorization", "Bearer svc_live_1")], Some("p"), None),
            (&[("x-api-key", ""), ("mkt_api_key", "m1")], Some("m1"), None),
            (&[("x-api-key", ""), ("authorization", "Bearer svc_test_1")], Some("svc_test_1"), None),
            (&[("authorization", "bearer svc_x")], Some("svc_x"), None),
            (&[("authorization", "BEARER  eyJ.x.y ")], None, Some("eyJ.x.y")),
            (&[("authorization", "Bearer svcx")], None, Some("svcx")),
            (&[("authorization", "Bearer svc")], None, Some("svc")),
            (&[("x-api-key", "a"), ("authorization", "Bearer eyJ")], Some("a"), Some("eyJ")),
            (&[("authorization", "Bearer ")], None, None),
            (&[("authorization", "Bearer")], None, None),
            (&[("authorization", "Basic svc_live_1")], None, None),
            (&[("authorization", "svc_live_1")], None, None),
            (&[("authorization", "")], None, None),
            (&[("x-svc-key", "a"), ("api-key", "b")], None, None),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(*name, HeaderValue::from_static(value));
            }
            let expected = Credentials { key: key.map(str::as_bytes), token: token.map(str::as_bytes) };
            assert_eq!(credentials(&headers, &aliases(), "svc"), expected, "{sent:?}");
        }
    }

    #[test]
    fn only_keys_and_their_aliases_are_hashed() {
        let alias = "4f0c9d2a-0011-8233-9455-66778899aabb";
        for (text, sound) in [
            (KEY, true),
            (&KEY.replace("live", "test"), true),
            (alias, true),
            (&KEY.replace("svc", "acme"), false),
            (&KEY.replace("live", "prod"), false),
            (&KEY[..72], false),
            (&format!("{KEY}0"), false),
            (&KEY.to_uppercase(), false),
            (&KEY.replace("4f0c", "4F0C"), false),
            (&format!(" {KEY}"), false),
            (&alias.to_uppercase(), false),
            (&alias.replace('-', "_"), false),
            ("", false),
        ] {
            assert_eq!(key_hash(text.as_bytes(), "svc").is_some(), sound, "{text}");
        }
        assert_eq!(key_hash(b"\xff\xfe", "svc"), None);
    }

    #[test]
    fn a_minted_key_is_random_and_found_by_both_hashes() {
        let one = RawKey::mint("svc", "live").unwrap();
        let other = RawKey::mint("svc", "live").unwrap();
        assert!(one.expose() != other.expose());
        assert_eq!((one.expose().len(), one.expose_alias().len()), (73, 36));
        let kept = one.secret();
        assert_eq!(key_hash(one.expose().as_bytes(), "svc"), Some(kept.hash));
        assert_eq!(key_hash(one.expose_alias().as_bytes(), "svc"), Some(kept.alias_hash));
        assert_eq!(kept.prefix, one.expose()[..16]);
        assert_eq!(&one.expose_alias()[14..15], "8");
    }

    #[test]
    fn the_alias_follows_from_the_key() {
        let key = RawKey::of("svc", "test", &[0; 32]);
        assert_eq!(key.expose(), format!("svc_test_{}", "0".repeat(64)));
        assert_eq!(key.expose_alias(), RawKey::of("svc", "test", &[0; 32]).expose_alias());
        assert!(key.expose_alias() != RawKey::of("svc", "live", &[0; 32]).expose_alias());
    }

    #[test]
    fn request_ids_are_distinct_uuids() {
        let ids: std::collections::HashSet<_> = (0..1_000).map(|_| name()).collect();
        assert_eq!(ids.len(), 1_000);
        for id in ids {
            assert!(is_uuid(id.as_bytes()) && &id[14..15] == "4" && "89ab".contains(&id[19..20]), "{id}");
        }
    }
}
