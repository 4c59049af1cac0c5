//! The signature of a handshake (gateway/docs/live-venues.md §4.2): RSA-PSS over SHA-256 of time, method and path, with
//! a salt as long as the digest.
//!
//! `jsonwebtoken` provides it as PS256, whose salt has that length (RFC 7518 §3.5). The key is never printed, and it is
//! wiped when it is dropped.

use super::Settings;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use engine::time::{MILLISECOND, Timestamp};
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use std::io;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use zeroize::Zeroizing;

const KEY_ID: &str = "venue.kalshi.key_id";
const KEY_FILE: &str = "venue.kalshi.private_key_file";

/// Signs handshakes.
pub struct Signer {
    key_id: HeaderValue,
    key: EncodingKey,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

impl Settings {
    /// Reads the credentials, if they are set.
    ///
    /// # Errors
    /// Only one of the two settings is set, or the file cannot be read or is not an RSA private key in PEM (PKCS#1 or
    /// PKCS#8).
    pub fn signer(&self) -> io::Result<Option<Signer>> {
        let wrong = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let (key_id, file) = match (&self.key_id, &self.private_key_file) {
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(wrong(format!("{KEY_FILE}: it must be set when {KEY_ID} is set"))),
            (None, Some(_)) => return Err(wrong(format!("{KEY_ID}: it must be set when {KEY_FILE} is set"))),
            (Some(key_id), Some(file)) => (key_id, file),
        };
        let pem = std::fs::read(file)
            .map_err(|error| io::Error::new(error.kind(), format!("{KEY_FILE}: {}: {error}", file.display())))?;
        // The library's message could contain a part of the file.
        let no_key = || wrong(format!("{KEY_FILE}: {} is not an RSA private key in PEM", file.display()));
        let key = EncodingKey::from_rsa_pem(&Zeroizing::new(pem)).map_err(|_| no_key())?;
        let key_id = HeaderValue::from_str(key_id).map_err(|_| wrong(format!("{KEY_ID}: it must be visible ASCII")))?;
        let signer = Signer { key_id, key };
        // Fails for a public key and for keys of another kind.
        signer.sign("0").map_err(|_| no_key())?;
        Ok(Some(signer))
    }
}

impl Signer {
    /// The headers of a handshake at this time for this path.
    pub fn headers(&self, now: Timestamp, path: &str) -> Vec<(HeaderName, HeaderValue)> {
        let time = (now.0 / MILLISECOND).to_string();
        let Ok(signature) = self.sign(&format!("{time}GET{path}")) else { return Vec::new() };
        let plain = |text: String| HeaderValue::from_str(&text).expect("digits and base64 are visible ASCII");
        vec![
            (HeaderName::from_static("kalshi-access-key"), self.key_id.clone()),
            (HeaderName::from_static("kalshi-access-timestamp"), plain(time)),
            (HeaderName::from_static("kalshi-access-signature"), plain(signature)),
        ]
    }

    fn sign(&self, message: &str) -> Result<String, ()> {
        let signature = crypto::sign(message.as_bytes(), &self.key, Algorithm::PS256).map_err(|_| ())?;
        Ok(STANDARD.encode(URL_SAFE_NO_PAD.decode(signature).map_err(|_| ())?))
    }
}

/// The path of a socket URL, for the signature.
pub fn path_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("/", |at| &rest[at..]);
    path.split(['?', '#']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::pkcs1::EncodeRsaPrivateKey;
    use rsa::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};
    use rsa::pss::{Signature, VerifyingKey};
    use rsa::sha2::Sha256;
    use rsa::signature::Verifier;
    use std::path::PathBuf;

    fn settings(key_id: Option<&str>, file: Option<PathBuf>) -> Settings {
        Settings { key_id: key_id.map(Into::into), private_key_file: file, ..Settings::default() }
    }

    #[test]
    fn both_forms_of_a_key_sign_what_its_public_half_verifies() {
        let folder = tempfile::tempdir().unwrap();
        let private = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1_024).unwrap();
        let verifying = VerifyingKey::<Sha256>::new(private.to_public_key());
        let forms = [
            ("pkcs1.pem", private.to_pkcs1_pem(LineEnding::LF).unwrap().to_string()),
            ("pkcs8.pem", private.to_pkcs8_pem(LineEnding::CRLF).unwrap().to_string()),
        ];
        let mut cases = 0;
        for (name, pem) in &forms {
            let file = folder.path().join(name);
            std::fs::write(&file, pem).unwrap();
            let signer = settings(Some("key-1"), Some(file)).signer().unwrap().unwrap();
            let headers = signer.headers(Timestamp::from_millis(1_700_000_000_123), "/trade-api/ws/v2");
            let value = |name: &str| headers.iter().find(|(known, _)| known == name).unwrap().1.to_str().unwrap();
            assert_eq!((value("kalshi-access-key"), value("kalshi-access-timestamp")), ("key-1", "1700000000123"));
            let signature = STANDARD.decode(value("kalshi-access-signature")).unwrap();
            let signature = Signature::try_from(signature.as_slice()).unwrap();
            // The verifier requires a salt as long as the digest.
            for (text, right) in
                [("1700000000123GET/trade-api/ws/v2", true), ("1700000000124GET/trade-api/ws/v2", false)]
            {
                assert_eq!(verifying.verify(text.as_bytes(), &signature).is_ok(), right, "{name}: {text}");
                cases += 1;
            }
            assert_eq!(format!("{signer:?}"), "Signer");
        }
        println!("signatures: {cases} cases");
    }

    #[test]
    fn credentials_that_cannot_be_used_name_their_setting() {
        let folder = tempfile::tempdir().unwrap();
        let private = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1_024).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let public = private.to_public_key().to_public_key_pem(LineEnding::LF).unwrap();
        let whole = private.to_pkcs8_pem(LineEnding::LF).unwrap();
        let cut = &whole[..whole.len() / 2];
        assert!(settings(None, None).signer().unwrap().is_none());
        let cases = [
            (Some("k"), None, KEY_FILE),
            (None, file("good.pem", &whole), KEY_ID),
            (Some("k"), Some(folder.path().join("missing.pem")), KEY_FILE),
            (Some("k"), file("empty.pem", ""), KEY_FILE),
            (Some("k"), file("text.pem", "not a key"), KEY_FILE),
            (Some("k"), file("public.pem", &public), KEY_FILE),
            (Some("k"), file("cut.pem", cut), KEY_FILE),
            (Some("k\n"), file("good.pem", &whole), KEY_ID),
        ];
        for (key_id, path, setting) in &cases {
            let error = settings(*key_id, path.clone()).signer().unwrap_err().to_string();
            assert!(error.starts_with(setting), "{key_id:?} {path:?}: {error}");
            assert!(!error.contains("MII"), "{error}");
        }
        println!("unusable credentials: {} cases", cases.len());
    }

    #[test]
    fn the_path_is_what_follows_the_host() {
        for (url, path) in [
            ("wss://h.example/trade-api/ws/v2", "/trade-api/ws/v2"),
            ("ws://127.0.0.1:99/x?y=1#z", "/x"),
            ("wss://h.example", "/"),
        ] {
            assert_eq!(path_of(url), path, "{url}");
        }
    }
}
