//! Socket tokens: a request mints one, and one handshake may use it within a minute (gateway/docs/keys.md §8).
//!
//! A token is a JWT with its own secret and audience, so it is not an identity token, and an identity token is not one
//! of these. Used tokens are remembered only in this process. Therefore a token contains the process that minted it,
//! and is not valid after a restart.
//!
//! `iat` and `exp` are times of the wall clock, which may step back. `exp` alone would let a token be used twice, or be
//! valid for long. So a token also contains its second of server time, which never steps back, and is valid for a
//! minute by both clocks.

use super::auth::{permission_words, uuid_text};
use super::call::Caller;
use super::code::Code;
use super::jwt::{self, Verifier};
use crate::settings::TIERS;
use engine::id::{KeyId, UserId};
use engine::time::Timestamp;
use engine::user::{Permissions, Tier};
use host::secret::Secret;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use wire::decimal::Decimal;
use wire::read;
use wire::value::Value;
use wire::write::{object, string};

/// How long a token is valid, in seconds.
pub const TTL_SECS: u64 = 60;
/// The audience of socket tokens.
const AUDIENCE: &str = "ws";
/// Bytes of a `jti` that identify the process, and the offset of the bytes with the second of server time.
const PROCESS_BYTES: usize = 6;
const MINTED_FROM: usize = 12;

/// The bearer of a socket token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub user: UserId,
    /// `None` if a session token minted it.
    pub key: Option<KeyId>,
    /// The tier when the token was minted; it decides how many sockets the user may have.
    pub tier: Tier,
    pub permissions: Permissions,
    id: String,
    /// Unix seconds of the wall clock.
    expires: u64,
    /// Unix seconds of server time, of which 32 bits are stored.
    minted: u32,
}

/// Mints socket tokens and remembers the used ones.
pub struct Tickets {
    secret: Secret,
    verifier: Verifier,
    /// Random; the start of every `jti` of this process.
    process: [u8; PROCESS_BYTES],
    /// Used tokens with the second in which they were minted. One is removed when it is too old to be valid.
    spent: Mutex<BTreeSet<(u32, String)>>,
}

impl Tickets {
    /// Tokens of one process, signed with `secret`, or with a random one.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new(secret: Option<&Secret>) -> Result<Tickets, getrandom::Error> {
        let mut process = [0u8; PROCESS_BYTES];
        getrandom::fill(&mut process)?;
        let secret = match secret {
            Some(secret) => secret.clone(),
            None => Secret::random()?,
        };
        let verifier = Verifier::new(std::slice::from_ref(&secret));
        Ok(Tickets { secret, verifier, process, spent: Mutex::default() })
    }

    /// Mints a token for `caller` that is valid for [`TTL_SECS`] from `now`; `wall` is the same moment by the wall
    /// clock.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn mint(&self, caller: &Caller, now: Timestamp, wall: Timestamp) -> Result<String, getrandom::Error> {
        let mut id = [0u8; 16];
        getrandom::fill(&mut id)?;
        id[..PROCESS_BYTES].copy_from_slice(&self.process);
        id[MINTED_FROM..].copy_from_slice(&second(now).to_be_bytes());
        // A UUIDv8, whose bits have no meaning outside this process.
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        let mut claims = Vec::with_capacity(224);
        object(&mut claims, |o| {
            o.text("sub", &caller.user.0.to_string());
            o.integer("kid", caller.key.map_or(0, |key| key.0));
            o.word("tier", TIERS[caller.tier as usize].1);
            o.array("perm", permission_words(caller.permissions), |out, word| string(out, word));
            o.word("aud", AUDIENCE);
            o.integer("iat", wall.secs());
            o.integer("exp", wall.secs() + TTL_SECS);
            o.text("jti", &uuid_text(&id));
        });
        Ok(jwt::signed(&self.secret, jwt::HEADER, &claims))
    }

    /// Redeems a token. `seat` finds a seat for its bearer; the token is used only if it succeeds.
    ///
    /// # Errors
    /// `TOKEN_EXPIRED`; `INVALID_TOKEN` for a token that this process did not mint or that was used; the error of
    /// `seat`.
    pub fn redeem<T>(
        &self,
        token: &[u8],
        now: Timestamp,
        wall: Timestamp,
        seat: impl FnOnce(&Ticket) -> Result<T, Code>,
    ) -> Result<(Ticket, T), Code> {
        let ticket = self.verify(token, now, wall)?;
        let mut spent = self.spent.lock();
        while spent.first().is_some_and(|(minted, _)| is_over(*minted, now)) {
            spent.pop_first();
        }
        let entry = (ticket.minted, ticket.id.clone());
        if spent.contains(&entry) {
            return Err(Code::InvalidToken);
        }
        let seated = seat(&ticket)?;
        spent.insert(entry);
        Ok((ticket, seated))
    }

    fn verify(&self, token: &[u8], now: Timestamp, wall: Timestamp) -> Result<Ticket, Code> {
        let claims = self.verifier.signed_claims(token).ok_or(Code::InvalidToken)?;
        let ticket = read::json(&claims).ok().and_then(|claims| Ticket::read(&claims)).ok_or(Code::InvalidToken)?;
        let process = uuid_text(&std::array::from_fn(|at| self.process.get(at).copied().unwrap_or_default()));
        // Six bytes are twelve digits and a hyphen.
        if !ticket.id.starts_with(&process[..13]) {
            return Err(Code::InvalidToken);
        }
        let is_over = ticket.expires <= wall.secs() || is_over(ticket.minted, now);
        if is_over { Err(Code::TokenExpired) } else { Ok(ticket) }
    }
}

/// The second of a time, in 32 bits.
fn second(at: Timestamp) -> u32 {
    at.secs() as u32
}

/// Whether a token that was minted in that second of server time is too old.
fn is_over(minted: u32, now: Timestamp) -> bool {
    // Another thread may have minted it a second after this request was read.
    i64::from(second(now).wrapping_sub(minted) as i32) >= TTL_SECS as i64
}

impl Ticket {
    fn read(claims: &Value<'_>) -> Option<Ticket> {
        let text = |name: &str| match claims.get(name)? {
            Value::Text(text) => Some(text.as_ref()),
            _ => None,
        };
        let number = |name: &str| match claims.get(name)? {
            Value::Number(number) => u64::try_from(Decimal::parse(number).ok()?.whole()).ok(),
            _ => None,
        };
        let Some(Value::Array(words)) = claims.get("perm") else { return None };
        let trades = words.iter().any(|word| matches!(word, Value::Text(word) if word == "trade"));
        let tier = text("tier")?;
        (text("aud")? == AUDIENCE).then_some(())?;
        Some(Ticket {
            user: UserId(text("sub")?.parse().ok()?),
            key: Some(KeyId(number("kid")?)).filter(|key| key.0 != 0),
            tier: TIERS.iter().find(|(_, name)| *name == tier)?.0,
            permissions: if trades { Permissions::ReadTrade } else { Permissions::Read },
            id: text("jti")?.to_owned(),
            expires: number("exp")?,
            // The last eight digits.
            minted: u32::from_str_radix(text("jti")?.get(28..36)?, 16).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::NOW;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use engine::time::SECOND;

    fn secret() -> Secret {
        Secret::new("w".repeat(32))
    }

    fn caller(key: Option<u64>, tier: Tier, permissions: Permissions) -> Caller {
        Caller { user: UserId(7), key: key.map(KeyId), tier, permissions, grant: None, expires_at: None }
    }

    fn redeem(tickets: &Tickets, token: &str, now: Timestamp) -> Result<Ticket, Code> {
        tickets.redeem(token.as_bytes(), now, now, |_| Ok(())).map(|(ticket, ())| ticket)
    }

    #[test]
    fn a_token_identifies_its_bearer() {
        use Permissions::{Read, ReadTrade};
        let tickets = Tickets::new(Some(&secret())).unwrap();
        for (key, tier, permissions) in
            [(Some(318), Tier::Free, Read), (Some(9), Tier::Enterprise, ReadTrade), (None, Tier::Pro, ReadTrade)]
        {
            let token = tickets.mint(&caller(key, tier, permissions), NOW, NOW).unwrap();
            let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
            let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
            let mut names: Vec<&str> = claims.as_object().unwrap().keys().map(String::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, ["aud", "exp", "iat", "jti", "kid", "perm", "sub", "tier"]);
            assert_eq!((claims["sub"].as_str(), claims["kid"].as_u64()), (Some("7"), Some(key.unwrap_or(0))));
            assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 60);
            let ticket = redeem(&tickets, &token, NOW).unwrap();
            let shown = (ticket.user, ticket.key, ticket.tier, ticket.permissions);
            assert_eq!(shown, (UserId(7), key.map(KeyId), tier, permissions));
        }
    }

    #[test]
    fn a_token_is_valid_once_and_for_a_minute() {
        let tickets = Tickets::new(None).unwrap();
        let mint = |now: Timestamp| tickets.mint(&caller(Some(1), Tier::Free, Permissions::Read), now, now).unwrap();
        let late = NOW.plus(60 * SECOND);
        let (first, second, third) = (mint(NOW), mint(NOW), mint(late));
        assert_ne!(first, second);
        assert!(redeem(&tickets, &first, NOW).is_ok());
        assert_eq!(redeem(&tickets, &first, NOW), Err(Code::InvalidToken));
        assert_eq!(redeem(&tickets, &first, NOW.plus(59 * SECOND)), Err(Code::InvalidToken));
        assert!(redeem(&tickets, &second, NOW.plus(59 * SECOND)).is_ok());
        assert_eq!(tickets.spent.lock().len(), 2);
        // An expired token needs no memory.
        assert!(redeem(&tickets, &third, late).is_ok());
        assert_eq!(tickets.spent.lock().len(), 1);
        assert_eq!(redeem(&tickets, &first, late), Err(Code::TokenExpired));
    }

    /// The wall clock may be a year off, leap and step back. A token is valid once, and for a minute by each clock.
    #[test]
    fn a_token_is_valid_by_both_clocks_and_never_twice() {
        use Code::{InvalidToken, TokenExpired};
        let year = 365 * 86_400;
        let wall = Timestamp(NOW.0 - year * SECOND);
        let at = |base: Timestamp, seconds: i64| Timestamp((base.0 as i64 + seconds * SECOND as i64) as u64);
        let mut cases = 0;
        // The clocks at each attempt, in seconds since the token was minted, and the result.
        for tries in [
            &[(0, 0, Ok(())), (1, 1, Err(InvalidToken))][..],
            &[(59, 59, Ok(())), (60, 60, Err(TokenExpired))],
            // The wall clock leaps: the token is expired. It steps back: a used token stays used, and expires in a
            // minute.
            &[(5, 3_600, Err(TokenExpired)), (6, 6, Ok(())), (7, -3_600, Err(InvalidToken))],
            &[(5, 5, Ok(())), (61, 3_600, Err(TokenExpired)), (62, -3_600, Err(TokenExpired))],
            &[(60, -3_600, Err(TokenExpired))],
            &[(59, -3_600, Ok(())), (60, -3_600, Err(TokenExpired))],
        ] {
            let tickets = Tickets::new(None).unwrap();
            let minted = |now, wall| tickets.mint(&caller(Some(1), Tier::Free, Permissions::Read), now, wall).unwrap();
            let token = minted(NOW, wall);
            let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
            let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
            assert_eq!(claims["iat"].as_u64(), Some(wall.secs()));
            for (server, outside, expected) in tries {
                let (now, wall) = (at(NOW, *server), at(wall, *outside));
                // Each attempt uses another token, so that expired ones are removed.
                let other = minted(now, wall);
                assert!(tickets.redeem(other.as_bytes(), now, wall, |_| Ok(())).is_ok());
                let redeemed = tickets.redeem(token.as_bytes(), now, wall, |_| Ok(())).map(|_| ());
                assert_eq!(redeemed, *expected, "{server} s, {outside} s");
                cases += 1;
            }
        }
        println!("clocks of a socket token: {cases} cases");
    }

    /// Requests of several threads have the times at which they were read.
    #[test]
    fn a_request_of_the_second_before_revives_no_token() {
        let tickets = Tickets::new(None).unwrap();
        let mint = |now: Timestamp| tickets.mint(&caller(Some(1), Tier::Free, Permissions::Read), now, now).unwrap();
        let before = Timestamp(NOW.0 - SECOND);
        let (spent, other) = (mint(NOW), mint(before));
        assert!(redeem(&tickets, &spent, NOW).is_ok());
        assert!(redeem(&tickets, &other, before).is_ok());
        assert_eq!(redeem(&tickets, &spent, NOW), Err(Code::InvalidToken));
        // A token that seems to come from the future is not older than one of now.
        assert!(redeem(&tickets, &mint(NOW), before).is_ok());
    }

    #[test]
    fn a_bearer_without_a_seat_keeps_the_token() {
        let tickets = Tickets::new(None).unwrap();
        let token = tickets.mint(&caller(None, Tier::Free, Permissions::Read), NOW, NOW).unwrap();
        let full = tickets.redeem(token.as_bytes(), NOW, NOW, |_| Err::<(), Code>(Code::RateLimitExceeded));
        assert_eq!(full, Err(Code::RateLimitExceeded));
        let seated = tickets.redeem(token.as_bytes(), NOW, NOW, |ticket| Ok(ticket.tier));
        assert_eq!(seated.map(|(_, tier)| tier), Ok(Tier::Free));
    }

    #[test]
    fn tokens_of_others_are_refused() {
        let tickets = Tickets::new(Some(&secret())).unwrap();
        let before = Tickets::new(Some(&secret())).unwrap();
        let foreign = Tickets::new(None).unwrap();
        let caller = caller(Some(1), Tier::Free, Permissions::Read);
        let good = tickets.mint(&caller, NOW, NOW).unwrap();
        let claims = |from: &str, to: &str| {
            let claims = URL_SAFE_NO_PAD.decode(good.split('.').nth(1).unwrap()).unwrap();
            let claims = String::from_utf8(claims).unwrap();
            assert!(claims.contains(from), "{from} in {claims}");
            jwt::signed(&secret(), jwt::HEADER, claims.replacen(from, to, 1).as_bytes())
        };
        for (what, token) in [
            ("a restart", before.mint(&caller, NOW, NOW).unwrap()),
            ("another secret", foreign.mint(&caller, NOW, NOW).unwrap()),
            ("an identity token", jwt::sign(&secret(), "7", None, NOW, 60)),
            ("another audience", claims(r#""aud":"ws""#, r#""aud":"authenticated""#)),
            ("another user in words", claims(r#""sub":"7""#, r#""sub":"x""#)),
            ("a user as a number", claims(r#""sub":"7""#, r#""sub":7"#)),
            ("an unknown tier", claims(r#""tier":"free""#, r#""tier":"gold""#)),
            ("no permissions", claims(r#""perm":"#, r#""prem":"#)),
            ("no end", claims(r#""exp":"#, r#""ext":"#)),
            ("no id", claims(r#""jti":"#, r#""jtj":"#)),
            ("a truncated token", good[..good.len() - 1].to_owned()),
            ("an empty text", String::new()),
        ] {
            assert_eq!(redeem(&tickets, &token, NOW), Err(Code::InvalidToken), "{what}");
        }
        assert!(redeem(&tickets, &good, NOW).is_ok());
    }
}
