//! Texts of requests: heads, bodies, numbers, ids, tokens, frames; and the configuration.

use edge::api::clob::flat::FlatOrder;
use edge::api::clob::ids::{self, OrderIds, SentId};
use edge::api::integrations::message::{LINE_CHARS_MAX, Message};
use edge::api::orders::terms::{Draft, Sender};
use edge::api::simulation::spec::Spec;
use edge::http::dialect::Dialect;
use edge::http::jwt::Verifier;
use edge::http::request_head::{self, Parsed, RequestHead};
use edge::ws::close::Close;
use edge::ws::policy::{Inspector, MESSAGE_BYTES_MAX};
use engine::amount::{Cash, Price, Qty};
use engine::fact;
use engine::id::{KeyId, OrderId, UserId};
use engine::market::catalog::Catalog;
use engine::mutation::Mutation;
use engine::order::EntryRoute;
use engine::time::{SECOND, Timestamp};
use engine::user::alerts::Channel;
use engine::user::{Permissions, Tier, User, Users};
use engine::view::{AboutView, KeyView, OwedAlert};
use gateway::config::{Config, Secret};
use integrations::settings::{MailBy, Settings};
use integrations::target::{self, Rules};
use serde::de::IgnoredAny;
use std::time::Duration;
use wire::cursor::{IdCursor, OffsetCursor, OrderCursor};
use wire::decimal::{self, Decimal};
use wire::query::{self, Query};
use wire::read::{self, NotJson};
use wire::{instant, value::Value};

/// The beginning of the year 10000, which no text of the wire can express.
const YEAR_10000: Timestamp = Timestamp(253_402_300_800 * SECOND);

fn utf8(bytes: &[u8], read: impl FnOnce(&str)) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(text);
    }
}

/// The address of a target or of a mail server is refused, or is one that alerts may go to.
pub fn alert_target(bytes: &[u8]) {
    utf8(bytes, |text| {
        let settings = Settings {
            chat_hosts: vec!["discord.com".to_owned()],
            allow_private_targets: false,
            first_retry: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            signature_header: "X-Svc-Signature".to_owned(),
            mail: None,
        };
        let rules = Rules::new(&settings, target::system());
        if let Ok(url) = rules.read(Channel::Chat, text) {
            assert_eq!((url.scheme(), url.host_str()), ("https", Some("discord.com")), "{text}");
        }
        if let Ok(url) = rules.read(Channel::Webhook, text) {
            assert!(matches!(url.scheme(), "http" | "https") && url.username().is_empty(), "{text}");
            assert!(url.port() != Some(0) && !text.contains([' ', '\r', '\n', '\t', '\0']), "{text:?}");
            let host = url.host_str().expect("it names a host").trim_matches(['[', ']']);
            assert!(host.parse().map_or(true, target::is_public), "{text}");
        }
        if let Some(MailBy::Smtp { host, port, .. }) = MailBy::parse(text) {
            assert!(!host.is_empty() && port > 0 && !host.contains(['@', '/']), "{text}");
        }
    });
}

/// A name from outside makes one line of bounded length, with JSON around it that is read back.
pub fn alert_line(bytes: &[u8]) {
    const USER: UserId = UserId(7);
    utf8(bytes, |text| {
        let mut users = Users::default();
        let (key, at) = (KeyId(USER.object(1)), Timestamp(1));
        let facts = [
            Mutation::from(fact::UserCreated { sub: None, email: Some("a@b.example".to_owned()), at }),
            fact::AlertsBegun { at }.into(),
            Mutation::from(fact::KeyIssued {
                key,
                hash: [1; 32],
                alias_hash: [1; 32],
                prefix: "svc_live_4f0c9d2".to_owned(),
                name: Some(text.to_owned()),
                tier: Tier::Free,
                permissions: Permissions::Read,
                beta_until: None,
                at,
            }),
        ];
        facts.iter().for_each(|fact| users.apply(USER, fact));
        let alerts = users.get(USER).and_then(User::alerts).expect("they have begun");
        let about = AboutView::Key(Box::new(KeyView {
            id: key,
            prefix: "svc_live_4f0c9d2".into(),
            name: Some(text.into()),
            tier: Tier::Free,
            permissions: Permissions::Read,
            created_at: at,
            expires_at: None,
            beta_until: None,
            last_used_at: None,
            realism: None,
        }));
        let alert = alerts.owed().next().expect("the key is an alert").clone();
        let message = Message::of(USER, &OwedAlert { alert, about, email: None, target: None }, &Catalog::new());
        let chat: serde_json::Value = serde_json::from_slice(&message.chat()).expect("it is JSON");
        let line = chat["content"].as_str().expect("a line");
        assert!(line.chars().count() <= LINE_CHARS_MAX && !line.chars().any(char::is_control), "{line:?}");
        // A mention and the scheme of an address are broken.
        let is_broken = line.match_indices('@').all(|(at, _)| line[at + 1..].starts_with('\u{200b}'));
        assert!(is_broken && !line.contains("://"), "{line:?}");
        // So is the name of a host.
        let is_host = |at: usize| {
            let (before, after) = (line[..at].chars().next_back(), line[at + 1..].chars().next());
            before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphabetic)
        };
        assert!(!line.match_indices('.').any(|(at, _)| is_host(at)), "{line:?}");
        let payload: serde_json::Value = serde_json::from_slice(&message.webhook()).expect("it is JSON");
        assert_eq!(payload["data"]["name"], text);
        let mail = message.mail();
        assert!(!mail.contains('\r') && mail.lines().nth(1) == Some(""), "{mail:?}");
    });
}

/// A specification of a back-test is refused, or its stored form is read back as the same.
pub fn backtest(bytes: &[u8]) {
    const NOW: Timestamp = Timestamp(1_790_932_445 * SECOND);
    let Ok(value) = read::json(bytes) else { return };
    let Ok(spec) = Spec::read(&value, NOW) else { return };
    assert!(spec.start < spec.end && spec.end <= NOW && !spec.conditions.is_empty());
    let text = spec.to_json();
    let stored = read::json(text.as_bytes()).expect("it is JSON");
    assert_eq!(Spec::read(&stored, NOW).ok(), Some(spec), "{text}");
}

/// The fast path's head parser agrees with the library, and never accepts a partial head.
pub fn head(bytes: &[u8]) {
    let RequestHead { method, target, host, key, head_bytes, body_bytes, .. } = match request_head::parse(bytes) {
        Parsed::Simple(head) => head,
        Parsed::Framed(whole, _) => return assert!(whole >= 4, "a head has at least its end"),
        Parsed::BareLineFeed => return assert!(bytes.contains(&b'\n'), "no line ends"),
        Parsed::Partial | Parsed::Unframed(_) | Parsed::Unreadable => return,
    };
    let mut room = [httparse::EMPTY_HEADER; 256];
    let mut request = httparse::Request::new(&mut room);
    let whole = request.parse(bytes).expect("the library reads it too");
    assert_eq!(whole, httparse::Status::Complete(head_bytes), "the head ends at another position");
    assert_eq!((request.method, request.path, request.version), (Some(method.text()), Some(target), Some(1)));
    let values = |name: &str| -> Vec<&[u8]> {
        request
            .headers
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
            .collect()
    };
    assert_eq!(values("host"), [host], "a simple head has one Host");
    assert_eq!(values("x-api-key"), key.into_iter().collect::<Vec<_>>());
    let length = values("content-length")
        .first()
        .map_or(0, |digits| std::str::from_utf8(digits).expect("digits").parse::<u64>().expect("a length"));
    assert_eq!(body_bytes, length);
    assert!(values("transfer-encoding").is_empty() && values("upgrade").is_empty() && values("expect").is_empty());
    assert_eq!(request_head::parse(&bytes[..head_bytes - 1]), Parsed::Partial, "the same head without its last byte");
}

/// The body parser accepts what serde_json accepts, except for its own bounds, and its canonical text is a fixed point.
pub fn json(bytes: &[u8]) {
    let ours = read::json(bytes);
    match &ours {
        Ok(value) => {
            let mut once = Vec::new();
            value.canonical(None, &mut once);
            let mut twice = Vec::new();
            read::json(&once).expect("a canonical text is JSON").canonical(None, &mut twice);
            assert_eq!(once, twice, "the canonical text of a canonical text");
            assert!(serde_json::from_slice::<IgnoredAny>(bytes).is_ok(), "serde_json refuses {bytes:?}");
        }
        Err(NotJson::TooDeep | NotJson::TooManyValues | NotJson::DuplicateField(_)) => {}
        Err(error) => {
            let theirs = serde_json::from_slice::<serde_json::Value>(bytes);
            assert!(theirs.is_err(), "{error:?} where serde_json reads {theirs:?}");
        }
    }
    utf8(bytes, |text| {
        // A frame differs from a body in that one field may be nested deeper, and is not parsed.
        if let (Ok(Value::Object(_)), framed) = (ours, read::framed(text, "params")) {
            assert!(framed.is_ok(), "{framed:?}");
        }
    });
}

fn sender(catalog: &Catalog, route: EntryRoute) -> Sender<'_> {
    let (key, max_shares) = (KeyId(1), Qty::from_shares(1_000_000));
    Sender { key, tier: Tier::Free, route, endpoint: "POST /v1/orders", header_id: None, catalog, max_shares }
}

/// A native order: it has terms, or a fault with its reason.
pub fn order(bytes: &[u8]) {
    let Ok(value) = read::json(bytes) else { return };
    let catalog = Catalog::new();
    let draft = Draft::read(&value, &sender(&catalog, EntryRoute::Native));
    assert_eq!(draft.placement.terms.is_ok(), draft.fault.is_none(), "terms or a fault, never both");
}

/// A flat order in the venue's shape.
pub fn flat_order(bytes: &[u8]) {
    let Ok(value) = read::json(bytes) else { return };
    let catalog = Catalog::new();
    let _ = FlatOrder::read(&value, &sender(&catalog, EntryRoute::Venue));
}

/// Decimals agree with rust_decimal, and survive a round trip.
pub fn decimal(bytes: &[u8]) {
    utf8(bytes, |text| {
        let Ok(ours) = Decimal::parse(text) else {
            return;
        };
        // It holds 28 digits; the wire's decimals can have 30.
        if let Ok(theirs) = rust_decimal::Decimal::from_str_exact(text) {
            let micros = theirs.trunc_with_scale(6) * rust_decimal::Decimal::from(1_000_000);
            let expected: Option<i64> = micros.trunc().to_string().parse().ok();
            assert_eq!(ours.cash_down().map(|cash| cash.0), expected, "{text} in 10^-6");
            assert_eq!(ours.is_positive(), theirs > rust_decimal::Decimal::ZERO, "{text}");
            let in_unit = theirs >= rust_decimal::Decimal::ZERO && theirs <= rust_decimal::Decimal::ONE;
            assert_eq!(ours.price_down().is_some(), in_unit, "{text} as a price");
            if let (Some(down), Some(up)) = (ours.price_down(), ours.price_up()) {
                let exact = theirs * rust_decimal::Decimal::from(10_000);
                assert_eq!(down.0.to_string(), exact.floor().normalize().to_string(), "{text} down");
                assert_eq!(up.0.to_string(), exact.ceil().normalize().to_string(), "{text} up");
            }
        }
        if let Some(cash) = ours.cash_exact() {
            assert_eq!(Decimal::parse(&decimal::text(|out| decimal::money(out, cash))), Ok(Decimal::from(cash)));
        }
        if let Some(price) = ours.price_exact() {
            assert_eq!(Decimal::parse(&decimal::text(|out| decimal::price(out, price))), Ok(Decimal::from(price)));
        }
        if let Some((qty, cut)) = ours.order_qty_down() {
            let printed = Decimal::parse(&decimal::text(|out| decimal::qty(out, qty))).expect("a decimal");
            assert_eq!(printed, Decimal::from(qty));
            assert_eq!(cut, printed != ours, "{text}: whether something was cut off");
        }
    });
    // Numbers of the engine, from the same bytes.
    if let Some(raw) = bytes.first_chunk::<8>() {
        let raw = u64::from_le_bytes(*raw);
        let cash = Cash(raw as i64 % 1_000_000_000_000_000_000);
        let printed = decimal::text(|out| decimal::money(out, cash));
        assert_eq!(Decimal::parse(&printed).ok().and_then(Decimal::cash_exact), Some(cash), "{printed}");
        let price = Price((raw % 10_001) as u16);
        let printed = decimal::text(|out| decimal::price(out, price));
        assert_eq!(Decimal::parse(&printed).ok().and_then(Decimal::price_exact), Some(price), "{printed}");
    }
}

/// An accepted cursor survives a round trip.
pub fn cursor(bytes: &[u8]) {
    utf8(bytes, |text| {
        if let Ok(cursor @ OrderCursor::After(created, id)) = OrderCursor::read(text)
            && created < YEAR_10000
        {
            assert_eq!(OrderCursor::read(&OrderCursor::write(created, id)), Ok(cursor), "{text}");
        }
        if let Ok(cursor @ OffsetCursor::At(offset)) = OffsetCursor::read(text) {
            assert_eq!(OffsetCursor::read(&OffsetCursor::write(offset)), Ok(cursor), "{text}");
        }
        if let Ok(cursor) = IdCursor::read(text)
            && let IdCursor::Below(id) = cursor
        {
            assert_eq!(IdCursor::read(&IdCursor::write(id)), Ok(cursor), "{text}");
        }
    });
}

/// Times agree with jiff where both parse the text, and are printed as they were read.
pub fn instant(bytes: &[u8]) {
    utf8(bytes, |text| {
        let Some(at) = instant::read(text) else { return };
        assert!(instant::read_end(text).is_some_and(|end| end >= at), "{text}");
        if at < YEAR_10000 {
            assert_eq!(instant::read(&instant::ts_text(at)), Some(at), "{text}");
        }
        if let Ok(theirs) = text.parse::<jiff::Timestamp>()
            && theirs >= jiff::Timestamp::UNIX_EPOCH
        {
            assert_eq!(i128::from(at.0), theirs.as_nanosecond() / 1_000, "{text}");
        }
    });
}

/// Both forms of an order id, when printed, identify one order.
pub fn order_id(bytes: &[u8]) {
    let ids = OrderIds::new("a secret of the server, thirty-two bytes", UserId(1), Dialect::Strict);
    utf8(bytes, |text| {
        match ids.read(text) {
            Some(SentId::Ours(id)) => {
                let ours = ids.text(id, None);
                assert_eq!(ids.read(&ours), Some(SentId::Ours(id)), "{text}");
                let known =
                    if text.starts_with("0x") { text.eq_ignore_ascii_case(&ours) } else { text == id.0.to_string() };
                assert!(known, "{text} is not a form of {}", id.0);
            }
            Some(SentId::Hash(hash)) => {
                assert!(text.eq_ignore_ascii_case(&ids.text(OrderId(1), Some(&hash))), "{text} is not a hash");
            }
            None => {}
        }
        if let Some(number) = ids::decimal(text) {
            assert_eq!(number.to_string(), text);
        }
    });
    if let Some(raw) = bytes.first_chunk::<8>() {
        let id = OrderId(u64::from_le_bytes(*raw));
        assert_eq!(ids.read(&ids.text(id, None)), Some(SentId::Ours(id)));
    }
}

/// Encoded texts are decoded, and a query has the last value of each field.
pub fn query(bytes: &[u8]) {
    utf8(bytes, |text| {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        assert_eq!(query::decoded(&encoded, true), text);
        assert_eq!(query::decoded(&encoded, false), text);
        let fields = Query::read(text);
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let name = query::decoded(pair.split_once('=').map_or(pair, |(name, _)| name), true);
            assert!(fields.get(&name).is_some(), "{name} of {text}");
        }
    });
}

/// The frame check gives the same result wherever the bytes are split, and agrees with a parser of whole headers.
pub fn frames(bytes: &[u8]) {
    let whole = Inspector::default().inspect(bytes);
    let mut inspector = Inspector::default();
    let mut fault = None;
    for byte in bytes {
        if let Err((_, close)) = inspector.inspect(std::slice::from_ref(byte)) {
            fault = Some(close);
            break;
        }
    }
    let code = |close: &Close| format!("{close:?}");
    assert_eq!(whole.as_ref().err().map(|(_, close)| code(close)), fault.as_ref().map(code), "byte by byte");
    let sound = whole.as_ref().map_or_else(|(sound, _)| *sound, |()| bytes.len());
    assert!(sound <= bytes.len());
    match sound_frames(bytes) {
        Some(end) => assert!(whole.is_ok(), "valid up to {end}, and yet {whole:?}"),
        None => assert!(whole.is_err(), "invalid frames pass"),
    }
}

/// Parses RFC 6455 frames one header at a time. The end of the last complete frame, or `None` for an invalid complete
/// header. A partial header counts as invalid when its first bytes are.
fn sound_frames(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut message) = (0, None::<u64>);
    loop {
        let rest = &bytes[at..];
        let Some(first) = rest.first() else { return Some(at) };
        let (fin, opcode) = (first & 0x80 != 0, first & 0x0f);
        let control = opcode >= 8;
        let known = matches!(opcode, 0 | 1 | 8 | 9 | 10);
        let in_place = match opcode {
            0 => message.is_some(),
            1 => message.is_none(),
            _ => fin,
        };
        if first & 0x70 != 0 || !known || !in_place {
            return None;
        }
        let Some(second) = rest.get(1) else { return Some(at) };
        let short = second & 0x7f;
        if second & 0x80 == 0 || (control && short > 125) {
            return None;
        }
        let (length, head) = match short {
            126 => match rest.get(2..4) {
                Some(two) => (u64::from(u16::from_be_bytes([two[0], two[1]])), 8),
                None => return Some(at),
            },
            127 => match rest.get(2..10) {
                Some(eight) => (u64::from_be_bytes(eight.try_into().expect("eight")), 14),
                None => return Some(at),
            },
            short => (u64::from(short), 6),
        };
        let minimal = match short {
            126 => length > 125,
            127 => length > 0xffff && length < 1 << 63,
            _ => true,
        };
        let so_far = message.unwrap_or(0);
        // A length of one byte is only checked with the mask after it.
        let is_checked = rest.len() > 2;
        if !minimal || (is_checked && !control && so_far.saturating_add(length) > MESSAGE_BYTES_MAX) {
            return None;
        }
        if !control {
            message = if fin { None } else { Some(so_far + length) };
        }
        if (rest.len() as u64) < head + length {
            return Some(at);
        }
        at += (head + length) as usize;
    }
}

/// Any claims, signed with the right secret, and any bytes as a token.
pub fn jwt(bytes: &[u8]) {
    let secret = "a secret of the tests that is long enough";
    let verifier = Verifier::new(&[Secret::new(secret.to_owned())]);
    let now = Timestamp::from_secs(1_790_000_000);
    assert!(verifier.verify(bytes, now).is_err(), "the secret is unknown");
    utf8(bytes, |claims| {
        let signed = tests::token::signed(r#"{"alg":"HS256","typ":"JWT"}"#, claims, secret.as_bytes());
        if let Ok(bearer) = verifier.verify(signed.as_bytes(), now) {
            let value: serde_json::Value = serde_json::from_str(claims).expect("claims are JSON");
            assert_eq!(value["sub"].as_str(), Some(bearer.sub.as_str()));
            let email = bearer.email.as_deref();
            assert!(email.is_none_or(|email| email.contains('@') && !email.contains(char::is_whitespace)), "{claims}");
            assert!(value["exp"].as_f64().is_some_and(|exp| exp > 1_790_000_000.0), "{claims}");
        }
        for other in [r#"{"alg":"none"}"#, r#"{"alg":"HS512"}"#, r#"{"alg":"HS256","crit":["x"]}"#] {
            let signed = tests::token::signed(other, claims, secret.as_bytes());
            assert!(verifier.verify(signed.as_bytes(), now).is_err(), "{other} is taken");
        }
    });
}

/// A configuration is accepted, or refused with a reason for each key.
pub fn config(bytes: &[u8]) {
    utf8(bytes, |text| match Config::read(Some(("fuzz.toml", text)), [], []) {
        Ok(config) => assert!(!config.lines.is_empty()),
        Err(error) => assert!(!error.0.is_empty(), "refused without a reason"),
    });
}
