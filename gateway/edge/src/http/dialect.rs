//! The dialect of venue-shaped rows in a response (gateway/docs/venue-clients.md §0.2).

use super::auth;
use super::route::VenueShape;
use crate::http::front::Front;
use hyper::header::{self, HeaderMap};
use wire::query::Query;

/// Headers that only the venue's own clients send.
const CLIENT_HEADERS: [&str; 2] = ["poly_api_key", "poly_address"];

/// The prefix of all header names of the venue's clients.
const CLIENT_HEADER_PREFIX: &str = "poly_";

/// `User-Agent` prefix of the venue's TypeScript client on public reads. It names itself only on signed requests.
const TRANSPORT: &[u8] = b"axios/";

/// The two dialects of venue-shaped rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The types of the contract.
    Plain,
    /// The venue's types, which strictly typed clients need.
    Strict,
}

impl Dialect {
    /// The dialect of a request. `?dialect=` with `strict` or `plain` decides; other values are ignored. Otherwise it
    /// is strict for a request with a header of the venue's clients, or with a `User-Agent` that starts with one of
    /// `client_agents`.
    pub fn of(headers: &HeaderMap, requested: Option<&str>, client_agents: &[String]) -> Dialect {
        Dialect::parse(requested).unwrap_or_else(|| {
            match CLIENT_HEADERS.iter().any(|name| headers.contains_key(*name)) {
                true => Dialect::Strict,
                false => Dialect::of_agent(agent(headers), client_agents),
            }
        })
    }

    /// Parses the value of `?dialect=`.
    pub fn parse(word: Option<&str>) -> Option<Dialect> {
        match word {
            Some("strict") => Some(Dialect::Strict),
            Some("plain") => Some(Dialect::Plain),
            _ => None,
        }
    }

    /// The dialect of a request of which only the `User-Agent` is known.
    pub fn of_agent(agent: &[u8], client_agents: &[String]) -> Dialect {
        let is_client = client_agents.iter().any(|known| agent.starts_with(known.as_bytes()));
        if is_client { Dialect::Strict } else { Dialect::Plain }
    }

    /// The dialect that a WebSocket handshake decides: `?dialect=`, else strict if these headers make a request strict,
    /// or if there is any header of the venue's clients. `None`: the key decides, and a UUID makes it strict.
    pub fn of_handshake(headers: &HeaderMap, requested: Option<&str>, client_agents: &[String]) -> Option<Dialect> {
        if requested == Some("plain") {
            return Some(Dialect::Plain);
        }
        let is_client = headers.keys().any(|name| name.as_str().starts_with(CLIENT_HEADER_PREFIX));
        (is_client || Dialect::of(headers, requested, client_agents).is_strict()).then_some(Dialect::Strict)
    }

    pub fn is_strict(self) -> bool {
        self == Dialect::Strict
    }
}

/// Whether a route with two shapes answers this request in the venue's shape.
pub fn in_venue_shape(front: &Front, shape: VenueShape, headers: &HeaderMap, query: &Query<'_>) -> bool {
    let keyless = || is_keyless(front, headers);
    venue_shaped(shape, headers, query, &front.settings.compat.client_agents, keyless)
}

/// Whether a plain request may come from the venue's TypeScript client, which does not name itself on public reads: it
/// has the `User-Agent` of that client's HTTP library, no key, and no `?dialect=`.
pub fn is_nameless_client(front: &Front, headers: &HeaderMap, query: &Query<'_>) -> bool {
    is_of_a_transport(agent(headers)) && query.get("dialect").is_none() && is_keyless(front, headers)
}

fn is_keyless(front: &Front, headers: &HeaderMap) -> bool {
    auth::credentials(headers, &front.key_aliases, &front.settings.brand.key_prefix).key.is_none()
}

/// `keyless`: the request shows no key, so the native shape would be a refusal.
fn venue_shaped(
    shape: VenueShape,
    headers: &HeaderMap,
    query: &Query<'_>,
    client_agents: &[String],
    keyless: impl FnOnce() -> bool,
) -> bool {
    // The native list refuses a value that is not a boolean.
    let enveloped = |text: &str| !(text == "0" || text.eq_ignore_ascii_case("false"));
    let page = || query.get("next_cursor").is_some() && !query.get("envelope").is_some_and(enveloped);
    let requested = query.get("dialect");
    Dialect::of(headers, requested, client_agents).is_strict()
        || (is_of_a_transport(agent(headers)) && requested.is_none() && keyless())
        || (shape == VenueShape::StrictOrPage && page())
}

/// Whether this `User-Agent` is the HTTP library of the venue's TypeScript client, which does not name itself on public
/// reads.
pub fn is_of_a_transport(agent: &[u8]) -> bool {
    agent.starts_with(TRANSPORT)
}

fn agent(headers: &HeaderMap) -> &[u8] {
    headers.get(header::USER_AGENT).map_or(&b""[..], |agent| agent.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use hyper::header::{HeaderName, HeaderValue};

    #[test]
    fn headers_agents_and_the_query_choose() {
        let agents = Settings::defaults().compat.client_agents;
        // (headers, `?dialect=`, strict)
        let cases = [
            (&[][..], None, false),
            (&[("poly_api_key", "svc_live_1")], None, true),
            (&[("POLY_API_KEY", "svc_live_1")], None, true),
            (&[("poly_address", "0xA1")], None, true),
            (&[("poly_address", "")], None, true),
            (&[("poly-address", "0xA1"), ("x-api-key", "svc_live_1"), ("poly_signature", "0x1")], None, false),
            (&[("user-agent", "py_clob_client")], None, true),
            (&[("user-agent", "py_clob_client_v2")], None, true),
            (&[("user-agent", "rs_clob_client/0.3")], None, true),
            (&[("user-agent", "@polymarket/clob-client")], None, true),
            (&[("user-agent", "Mozilla/5.0 py_clob_client")], None, false),
            (&[("user-agent", "py_clob")], None, false),
            (&[("user-agent", "")], None, false),
            (&[], Some("strict"), true),
            (&[], Some("plain"), false),
            (&[], Some("STRICT"), false),
            (&[], Some(""), false),
            (&[("poly_api_key", "svc_live_1"), ("user-agent", "py_clob_client")], Some("plain"), false),
            (&[("poly_api_key", "svc_live_1")], Some("loose"), true),
        ];
        for (sent, requested, strict) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                headers.append(name, HeaderValue::from_static(value));
            }
            assert_eq!(Dialect::of(&headers, requested, &agents).is_strict(), strict, "{sent:?} {requested:?}");
        }
        assert!(!Dialect::of(&HeaderMap::new(), None, &[]).is_strict());
        println!("{} cases", cases.len() + 1);
    }

    #[test]
    fn a_handshake_settles_the_dialect_or_leaves_it_to_the_key() {
        let agents = Settings::defaults().compat.client_agents;
        let (strict, plain) = (Some(Dialect::Strict), Some(Dialect::Plain));
        let cases = [
            (&[][..], None, None),
            (&[("user-agent", "python-websockets"), ("x-api-key", "svc_live_1")], None, None),
            (&[("poly_api_key", "svc_live_1")], None, strict),
            (&[("POLY_PASSPHRASE", "svc")], None, strict),
            (&[("poly-passphrase", "svc")], None, None),
            (&[("user-agent", "py_clob_client_v2/1.2")], None, strict),
            (&[], Some("strict"), strict),
            (&[], Some("loose"), None),
            (&[("poly_api_key", "svc_live_1"), ("user-agent", "py_clob_client")], Some("plain"), plain),
        ];
        for (sent, requested, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static(value));
            }
            assert_eq!(Dialect::of_handshake(&headers, requested, &agents), expected, "{sent:?} {requested:?}");
        }
        println!("{} cases", cases.len());
    }

    #[test]
    fn a_route_of_two_shapes_looks_at_the_request() {
        // (query, headers, strict only, page too)
        let cases = [
            ("", false, false, false),
            ("next_cursor=MA==", false, false, true),
            ("next_cursor=", false, false, true),
            ("next_cursor=MA==&envelope=true", false, false, false),
            ("next_cursor=MA==&envelope=False", false, false, true),
            ("next_cursor=MA==&envelope=0", false, false, true),
            ("next_cursor=MA==&envelope=x", false, false, false),
            ("cursor=MA==", false, false, false),
            ("dialect=strict", false, true, true),
            ("dialect=plain", true, false, false),
            ("dialect=plain&next_cursor=MA==", true, false, true),
            ("", true, true, true),
            ("envelope=true", true, true, true),
        ];
        for (query, client, strict, page) in cases {
            let mut headers = HeaderMap::new();
            if client {
                headers.insert("poly_address", HeaderValue::from_static("0xA1"));
            }
            let is_shaped = |shape| venue_shaped(shape, &headers, &Query::read(query), &[], || true);
            assert_eq!(
                (is_shaped(VenueShape::Strict), is_shaped(VenueShape::StrictOrPage)),
                (strict, page),
                "{query} {client}"
            );
        }
        // Other clients use this library too. So the response is strict only where a plain one would be a refusal.
        let transports = [
            ("axios/1.13.2", "", true, true),
            ("axios/1.13.2", "", false, false),
            ("axios/1.13.2", "dialect=plain", true, false),
            ("node axios/1.13.2", "", true, false),
        ];
        for (agent, query, keyless, strict) in transports {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
            let shape = venue_shaped(VenueShape::Strict, &headers, &Query::read(query), &[], || keyless);
            assert_eq!(shape, strict, "{agent} {query} {keyless}");
        }
        println!("{} cases", cases.len() + transports.len());
    }
}
