//! The admin token.

use crate::refusal::Refusal;
use host::secret::Secret;
use hyper::HeaderMap;
use hyper::header;
use sha2::{Digest as _, Sha256};

const BEARER: &[u8] = b"Bearer ";

/// The token that every request of the namespace must show. Only its hash is kept.
pub struct Token([u8; 32]);

impl Token {
    pub fn of(secret: &Secret) -> Token {
        Token(Sha256::digest(secret.expose()).into())
    }

    /// Checks the token in these headers. Takes the same time for all tokens of one length.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::WrongToken`].
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(first), None) = (shown.next(), shown.next()) else {
            let shown = headers.contains_key(header::AUTHORIZATION);
            return Err(if shown { Refusal::WrongToken } else { Refusal::NoToken });
        };
        let (scheme, token) = first.as_bytes().split_at(first.len().min(BEARER.len()));
        if !scheme.eq_ignore_ascii_case(BEARER) {
            return Err(if first.is_empty() { Refusal::NoToken } else { Refusal::WrongToken });
        }
        let hash = Sha256::digest(token);
        // Compares hashes: the first differing byte reveals nothing about the token.
        let differs = hash.iter().zip(&self.0).fold(0, |differs, (a, b)| differs | (a ^ b));
        if differs == 0 { Ok(()) } else { Err(Refusal::WrongToken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::tests::{Headers, headers};

    #[test]
    fn one_token_opens_and_nothing_else() {
        const TOKEN: &str = "0123456789abcdef0123456789abcdef";
        let token = Token::of(&Secret::new(TOKEN.to_owned()));
        let (right, long) = (format!("Bearer {TOKEN}"), format!("Bearer {TOKEN}0"));
        let (bare, twice) = (TOKEN, [("authorization", right.as_str()), ("authorization", right.as_str())]);
        let rows: &[(Headers<'_>, Result<(), Refusal>)] = &[
            (&[("authorization", &right)], Ok(())),
            (&[("authorization", &format!("bearer {TOKEN}"))], Ok(())),
            (&[], Err(Refusal::NoToken)),
            (&[("authorization", "")], Err(Refusal::NoToken)),
            (&[("x-api-key", &right)], Err(Refusal::NoToken)),
            (&[("authorization", bare)], Err(Refusal::WrongToken)),
            (&[("authorization", "Bearer")], Err(Refusal::WrongToken)),
            (&[("authorization", "Bearer ")], Err(Refusal::WrongToken)),
            (&[("authorization", &format!("Basic {TOKEN}"))], Err(Refusal::WrongToken)),
            (&[("authorization", &format!("Bearer  {TOKEN}"))], Err(Refusal::WrongToken)),
            (&[("authorization", &right[..right.len() - 1])], Err(Refusal::WrongToken)),
            (&[("authorization", &long)], Err(Refusal::WrongToken)),
            (&[("authorization", &right.to_uppercase())], Err(Refusal::WrongToken)),
            (&twice, Err(Refusal::WrongToken)),
        ];
        for (of, expected) in rows {
            assert_eq!(token.check(&headers(of)), *expected, "{of:?}");
        }
        println!("admin tokens: {} cases", rows.len());
    }
}
