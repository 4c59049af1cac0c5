//! Identity tokens of the provider, HS256 only (gateway/docs/keys.md §6).
//!
//! The signature is verified before any claim is read. Claims are typed. The time is an argument, without leeway, and
//! is that of the wall clock, because another program wrote the times in a token. Only `alg` and `crit` of the header
//! are read, so a token cannot choose its key.

use crate::http::code::Code;
use crate::http::mailbox::is_mailbox;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::time::Timestamp;
use host::secret::Secret;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};
use wire::decimal::Decimal;
use wire::read;
use wire::value::Value;
use wire::write;

/// Longest token that is read.
pub const TOKEN_BYTES_MAX: usize = 8 * 1_024;
/// Longest `sub`.
pub const SUB_CHARS_MAX: usize = 128;
/// The audience of this server's tokens.
const AUDIENCE: &str = "authenticated";
/// Header of tokens that this server signs.
pub(super) const HEADER: &[u8] = br#"{"alg":"HS256","typ":"JWT"}"#;

/// The bearer, as the token identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The user's id at the identity provider.
    pub sub: String,
    /// `None` without one, for one that the provider calls unverified, and for a text that mail cannot go to.
    pub email: Option<String>,
}

/// Verifies tokens with the configured secrets. There are several while one replaces another.
pub struct Verifier {
    keys: Vec<DecodingKey>,
}

impl Verifier {
    pub fn new(secrets: &[Secret]) -> Verifier {
        Verifier { keys: secrets.iter().map(|secret| DecodingKey::from_secret(secret.expose().as_bytes())).collect() }
    }

    /// Verifies `token` at `now`, a time of the wall clock.
    ///
    /// # Errors
    /// `TOKEN_EXPIRED` for a valid token whose `exp` is not after `now`, else `INVALID_TOKEN`.
    pub fn verify(&self, token: &[u8], now: Timestamp) -> Result<Claims, Code> {
        let claims = self.signed_claims(token).ok_or(Code::InvalidToken)?;
        let claims = read::json(&claims).ok().and_then(|claims| Sound::read(&claims)).ok_or(Code::InvalidToken)?;
        let now_secs = i128::from(now.secs());
        if claims.not_before.is_some_and(|not_before| not_before > now_secs) {
            return Err(Code::InvalidToken);
        }
        if claims.expires <= now_secs { Err(Code::TokenExpired) } else { Ok(claims.who) }
    }

    /// The claims of a token that one of the secrets signed.
    pub(super) fn signed_claims(&self, token: &[u8]) -> Option<Vec<u8>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let token = std::str::from_utf8(token).ok()?;
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let header = URL_SAFE_NO_PAD.decode(header).ok()?;
        let header = read::json(&header).ok()?;
        let named = header.get("alg") == Some(&Value::Text("HS256".into()));
        if !named || header.get("crit").is_some() {
            return None;
        }
        let signed = |key| crypto::verify(signature, message.as_bytes(), key, Algorithm::HS256).unwrap_or(false);
        if !self.keys.iter().any(signed) {
            return None;
        }
        URL_SAFE_NO_PAD.decode(claims).ok()
    }
}

/// Claims that are valid except for their times.
struct Sound {
    who: Claims,
    /// Unix seconds, rounded down.
    expires: i128,
    not_before: Option<i128>,
}

impl Sound {
    fn read(claims: &Value<'_>) -> Option<Sound> {
        let text = |name: &str| match claims.get(name) {
            Some(Value::Text(text)) => Ok(Some(text.as_ref())),
            Some(Value::Null) | None => Ok(None),
            Some(_) => Err(()),
        };
        let secs = |name: &str| match claims.get(name) {
            Some(Value::Number(number)) => Decimal::parse(number).map(|secs| Some(secs.whole())).map_err(drop),
            Some(Value::Null) | None => Ok(None),
            Some(_) => Err(()),
        };
        let audience = |value: &Value<'_>| matches!(value, Value::Text(text) if text == AUDIENCE);
        let for_us = match claims.get("aud")? {
            Value::Array(audiences) => audiences.iter().any(audience),
            one => audience(one),
        };
        let foreign_role = matches!(text("role").ok()?, Some("anon" | "service_role"));
        let sub = text("sub").ok()??;
        let sound_sub =
            !sub.is_empty() && sub.chars().nth(SUB_CHARS_MAX).is_none() && !sub.chars().any(char::is_control);
        if !for_us || foreign_role || !sound_sub {
            return None;
        }
        let email = text("email").ok()?;
        // OpenID Connect Core 1.0 §5.1; some providers send the boolean as text. Anything else does not confirm it.
        let is_verified = match claims.get("email_verified") {
            Some(Value::Bool(is_verified)) => *is_verified,
            Some(Value::Text(text)) => text == "true",
            Some(Value::Null) | None => true,
            Some(_) => false,
        };
        let email = email.filter(|email| is_verified && is_mailbox(email));
        Some(Sound {
            who: Claims { sub: sub.to_owned(), email: email.map(str::to_owned) },
            expires: secs("exp").ok()??,
            not_before: secs("nbf").ok()?,
        })
    }
}

/// A token for `sub` that ends `ttl_secs` after `now`, signed with `secret`.
pub fn sign(secret: &Secret, sub: &str, email: Option<&str>, now: Timestamp, ttl_secs: u64) -> String {
    let mut claims = Vec::new();
    write::object(&mut claims, |o| {
        o.text("sub", sub);
        o.word("aud", AUDIENCE);
        o.word("role", AUDIENCE);
        if let Some(email) = email {
            o.text("email", email);
        }
        o.integer("iat", now.secs());
        o.integer("exp", now.secs().saturating_add(ttl_secs));
    });
    signed(secret, HEADER, &claims)
}

/// Signs a token with this header and these claims.
pub(super) fn signed(secret: &Secret, header: &[u8], claims: &[u8]) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let key = EncodingKey::from_secret(secret.expose().as_bytes());
    let signature = crypto::sign(message.as_bytes(), &key, Algorithm::HS256).expect("HMAC takes any key");
    format!("{message}.{signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HS256: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
    const SOUND: &str = r#"{"sub":"u-1","aud":"authenticated","exp":1001}"#;

    fn secret(letter: &str) -> Secret {
        Secret::new(letter.repeat(32))
    }

    fn verifier() -> Verifier {
        Verifier::new(&[secret("a"), secret("b")])
    }

    fn verify(token: &str) -> Result<Claims, Code> {
        verifier().verify(token.as_bytes(), Timestamp::from_secs(1_000))
    }

    #[test]
    fn a_signed_token_identifies_its_bearer() {
        let token = sign(&secret("b"), "u-1", Some("t@example.net"), Timestamp::from_secs(990), 60);
        let claims = Claims { sub: "u-1".to_owned(), email: Some("t@example.net".to_owned()) };
        assert_eq!(verify(&token), Ok(claims));
        assert_eq!(verifier().verify(token.as_bytes(), Timestamp::from_secs(1_050)), Err(Code::TokenExpired));
    }

    /// The example of RFC 7515, A.1, whose signature another implementation made.
    #[test]
    fn verifies_signatures_made_elsewhere() {
        let key = URL_SAFE_NO_PAD
            .decode("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
            .unwrap();
        let verifier = Verifier { keys: vec![DecodingKey::from_secret(&key)] };
        let token = concat!(
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.",
            "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.",
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        );
        assert!(verifier.signed_claims(token.as_bytes()).is_some());
        assert!(verifier.signed_claims(token.replace("dBj", "dBk").as_bytes()).is_none());
    }

    #[test]
    fn headers_other_than_plain_hs256_are_refused() {
        for (header, accepted) in [
            (HS256, true),
            (r#"{"alg":"HS256"}"#, true),
            (r#"{"alg":"HS256","kid":"../../x","jku":"http://evil","x5u":"x","jwk":{}}"#, true),
            (r#"{"alg":"none"}"#, false),
            (r#"{"alg":"None"}"#, false),
            (r#"{"alg":""}"#, false),
            (r#"{"alg":"hs256"}"#, false),
            (r#"{"alg":"HS384"}"#, false),
            (r#"{"alg":"HS512"}"#, false),
            (r#"{"alg":"RS256"}"#, false),
            (r#"{"alg":["HS256"]}"#, false),
            (r#"{"alg":null}"#, false),
            (r#"{"typ":"JWT"}"#, false),
            (r#"{"alg":"HS256","alg":"none"}"#, false),
            (r#"{"alg":"HS256","crit":["exp"],"exp":1}"#, false),
            ("[]", false),
            ("", false),
            ("x", false),
        ] {
            let token = signed(&secret("a"), header.as_bytes(), SOUND.as_bytes());
            assert_eq!(verify(&token).is_ok(), accepted, "{header}");
        }
    }

    #[test]
    fn claims_are_required_and_typed() {
        use Code::{InvalidToken, TokenExpired};
        for (claims, expected) in [
            (SOUND, Ok("u-1")),
            (r#"{"sub":"u-1","aud":["x","authenticated"],"exp":1001.5}"#, Ok("u-1")),
            (
                r#"{"sub":"u-1","aud":"authenticated","exp":1001,"nbf":1000,"iat":9999,"role":"authenticated"}"#,
                Ok("u-1"),
            ),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1001,"role":null,"email":null,"nbf":null}"#, Ok("u-1")),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1000}"#, Err(TokenExpired)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1000.9}"#, Err(TokenExpired)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":-1}"#, Err(TokenExpired)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1001,"nbf":1001}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1001,"nbf":"1"}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":"1001"}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1e9}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":99999999999999999999}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"authenticated"}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","exp":1001}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"Authenticated","exp":1001}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":[["authenticated"]],"exp":1001}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":[],"exp":1001}"#, Err(InvalidToken)),
            (r#"{"aud":"authenticated","exp":1001}"#, Err(InvalidToken)),
            (r#"{"sub":"","aud":"authenticated","exp":1001}"#, Err(InvalidToken)),
            (r#"{"sub":5,"aud":"authenticated","exp":1001}"#, Err(InvalidToken)),
            (r#"{"sub":"a\u0000b","aud":"authenticated","exp":1001}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1001,"role":"anon"}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1001,"role":"service_role"}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","aud":"authenticated","exp":1001,"role":["anon"]}"#, Err(InvalidToken)),
            (r#"{"sub":"u-1","sub":"u-2","aud":"authenticated","exp":1001}"#, Err(InvalidToken)),
            ("not json", Err(InvalidToken)),
            ("[]", Err(InvalidToken)),
        ] {
            let verified = verify(&signed(&secret("a"), HS256.as_bytes(), claims.as_bytes()));
            assert_eq!(
                verified.as_ref().map(|claims| claims.sub.as_str()),
                expected.as_ref().map(|sub| *sub),
                "{claims}"
            );
        }
        let long = |chars| format!(r#"{{"sub":"{}","aud":"authenticated","exp":1001}}"#, "é".repeat(chars));
        let verified = |claims: String| verify(&signed(&secret("a"), HS256.as_bytes(), claims.as_bytes()));
        assert!(verified(long(128)).is_ok());
        assert_eq!(verified(long(129)), Err(InvalidToken));
    }

    /// An address that is not verified is not the bearer's; without the claim the provider vouches for all it sends. A
    /// text that mail cannot go to is not one.
    #[test]
    fn only_a_verified_address_is_read() {
        let rows = [
            ("", true),
            (r#","email_verified":true"#, true),
            (r#","email_verified":"true""#, true),
            (r#","email_verified":null"#, true),
            (r#","email_verified":false"#, false),
            (r#","email_verified":"false""#, false),
            (r#","email_verified":"TRUE""#, false),
            (r#","email_verified":"""#, false),
            (r#","email_verified":1"#, false),
            (r#","email_verified":[true]"#, false),
            (r#","email_verified":{"email":true}"#, false),
            // Others write what a user chooses into this one.
            (r#","user_metadata":{"email_verified":false}"#, true),
        ];
        for (claim, is_read) in rows {
            let claims = format!(r#"{{"sub":"u-1","aud":"authenticated","exp":1001,"email":"t@example.net"{claim}}}"#);
            let verified = verify(&signed(&secret("a"), HS256.as_bytes(), claims.as_bytes())).expect("a valid token");
            assert_eq!(verified.email.as_deref(), is_read.then_some("t@example.net"), "{claim}");
        }
        let texts = [
            ("first.last+tag@example.net", true),
            ("", false),
            ("trader", false),
            (r#"\"<x>\"@y.z"#, false),
            ("a@[127.0.0.1]", false),
            (r"a@b\r\nBcc: c@d.example", false),
        ];
        for (text, is_read) in texts {
            let claims = format!(r#"{{"sub":"u-1","aud":"authenticated","exp":1001,"email":"{text}"}}"#);
            let verified = verify(&signed(&secret("a"), HS256.as_bytes(), claims.as_bytes())).expect("a valid token");
            assert_eq!(verified.email.as_deref(), is_read.then_some(text), "{text}");
        }
        println!("addresses: {} cases", rows.len() + texts.len());
    }

    #[test]
    fn texts_that_are_not_tokens_are_refused() {
        let good = signed(&secret("a"), HS256.as_bytes(), SOUND.as_bytes());
        let (message, signature) = good.rsplit_once('.').unwrap();
        let foreign = signed(&secret("c"), HS256.as_bytes(), SOUND.as_bytes());
        let huge = signed(&secret("a"), HS256.as_bytes(), format!("{SOUND}{}", " ".repeat(8_192)).as_bytes());
        let padded = format!("{good}=");
        let unsigned = format!("{message}.");
        let twice = format!("{message}.{signature}.{signature}");
        for token in ["", ".", "..", "a.b", "a.b.c", message, &foreign, &huge, &padded, &unsigned, &twice, "é.é.é"] {
            assert_eq!(verify(token), Err(Code::InvalidToken), "{token}");
        }
        assert!(verifier().verify(b"\xff.\xff.\xff", Timestamp(0)).is_err());
        assert!(Verifier::new(&[]).verify(good.as_bytes(), Timestamp(0)).is_err());
    }
}
