//! The texts that settings allow.

use crate::config::Network;
use crate::config::setting::Rule;
use ::integrations::settings::MailBy;
use ::venue::archive::hours;
use ::venue::category::Names;
use ::venue::origin::choices;
use ::venue::{Speed, VenueKind};
use engine::amount::Cash;
use engine::market::terms::Category;
use engine::realism::SET_NAME_CHARS_MAX;
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;
use wal::Point;
use wire::decimal::{self, Decimal};

/// Largest balance of a new wallet.
const BALANCE_MAX: Cash = Cash::from_dollars(1_000_000_000);

pub(super) const LISTEN: Rule = Rule {
    what: "address",
    allowed: "an address with a port, like 127.0.0.1:8080",
    read: |text| text.parse().ok().map(|address: SocketAddr| address.to_string()),
};

pub(super) const ADMIN_LISTEN: Rule = Rule {
    what: "address",
    allowed: "an address with a port, like 127.0.0.1:9464; \"\" for none",
    read: |text| if text.is_empty() { Some(String::new()) } else { (LISTEN.read)(text) },
};

pub(super) const HOST: Rule = Rule {
    what: "list",
    allowed: "a list of host names without a port",
    read: |text| {
        let is_sound = (1..=253).contains(&text.len())
            && !text.starts_with('.')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        is_sound.then(|| text.trim_end_matches('.').to_owned())
    },
};

pub(super) const FOOTBALL: Rule = Rule {
    what: "source",
    allowed: "none, or file: with a folder",
    read: |text| same(text, text == "none" || text.strip_prefix("file:").is_some_and(|dir| !dir.is_empty())),
};

/// A name in lower case: of an environment variable only the letters are known.
pub(super) const SET_NAME: Rule = Rule {
    what: "name",
    allowed: "the name of a set: letters from a to z, digits, - and _",
    read: |text| same(text, is_set_name(text)),
};

/// Whether a text can be the name of a set of realism.
pub(in crate::config) fn is_set_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=SET_NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_part)
}

/// The reader of the section checks the values.
pub(super) const ANY: Rule = Rule { what: "text", allowed: "a text or a number", read: |text| Some(text.to_owned()) };

pub(super) const NETWORK: Rule = Rule {
    what: "list",
    allowed: "a list of addresses and CIDR networks",
    read: |text| Network::parse(text).map(|network| network.show()),
};

pub(super) const ORIGIN: Rule = Rule {
    what: "list",
    allowed: "[\"*\"] or a list of origins like https://example.net",
    read: |text| same(text, text == "*" || (text.contains("://") && !text.ends_with('/') && text.is_ascii())),
};

pub(super) const PRINTABLE: Rule = Rule {
    what: "text",
    allowed: "a text without control characters",
    read: |text| same(text, !text.chars().any(char::is_control)),
};

/// Must not be empty: an empty path is not a folder.
pub(super) const DATA_DIR: Rule = Rule {
    what: "path",
    allowed: "the path of a folder (without the setting it is papertape-data)",
    read: |text| same(text, !text.is_empty()),
};

pub(super) const SEGMENT_BYTES: Rule = Rule {
    what: "integer",
    allowed: "a multiple of 4096 from 1048576 to 1073741824",
    read: |text| {
        let bytes = text.parse().ok().filter(|bytes| (1 << 20..=1 << 30).contains(bytes));
        bytes.filter(|bytes: &u64| bytes.is_multiple_of(4_096)).map(|bytes| bytes.to_string())
    },
};

pub(super) const CRASH_AT: Rule = Rule {
    what: "text",
    allowed: "empty, or a place of the log with a count, like roll:3",
    read: |text| same(text, text.is_empty() || crash_at(text).is_some()),
};

/// A crash point of the log, and the number of the pass that ends the process.
pub(in crate::config) fn crash_at(text: &str) -> Option<(Point, u64)> {
    let (name, count) = text.split_once(':')?;
    let point = Point::ALL.into_iter().find(|point| point.name() == name)?;
    count.parse().ok().filter(|count| *count > 0).map(|count| (point, count))
}

pub(super) fn venue_kind() -> Rule {
    static ALLOWED: LazyLock<String> = LazyLock::new(|| format!("synthetic, replay, {}", choices("")));
    Rule { what: "word", allowed: &ALLOWED, read: |text| text.parse().ok().map(|kind: VenueKind| kind.to_string()) }
}

pub(super) const SPEED: Rule = Rule {
    what: "number or word",
    allowed: "a number from 0.001 to 1000000 with at most three decimals, or max",
    read: |text| match text.parse().ok()? {
        Speed::Max => Some("max".to_owned()),
        speed => Some(speed.to_string()),
    },
};

pub(super) const HOUR: Rule = Rule {
    what: "hour",
    allowed: "an hour like 2026-09-30T17, or \"\" for no bound",
    read: |text| same(text, text.is_empty() || hours::parse_hour(text).is_some()),
};

pub(super) const HTTP_ADDRESS: Rule = Rule {
    what: "address",
    allowed: "an address that begins with https:// or http://",
    read: |text| service(text, ["https://", "http://"]),
};

pub(super) const ARCHIVE_ADDRESS: Rule = Rule {
    what: "address",
    allowed: "an address that begins with https://, or with http:// and an address of this machine",
    read: archive_address,
};

/// Without a final slash, since names are appended.
fn archive_address(text: &str) -> Option<String> {
    let is_own = |host: &str| {
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let name = name.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    let is_allowed = match text.split_once("://") {
        None => text.is_empty(),
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or_default();
            // A user name before the host would hide it.
            let is_host = !host.is_empty() && !host.contains('@');
            is_host && (scheme == "https" || scheme == "http" && is_own(host))
        }
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#'));
    (is_allowed && is_plain).then(|| text.trim_end_matches('/').to_owned())
}

pub(super) const CALLS_ADDRESS: Rule = Rule {
    what: "address",
    allowed: "an address that begins with https://, or with http:// and an address of this machine",
    read: |text| archive_address(text).filter(|text| !text.is_empty()),
};

pub(super) const PRICE: Rule = Rule {
    what: "text",
    allowed: "ids of at most 255 characters, in visible ASCII, with commas between them; \"\" for none",
    read: |text| {
        let is_id = |id: &str| (1..=255).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
        same(text, text.is_empty() || text.split(',').all(is_id))
    },
};

pub(super) const CONDITION: Rule =
    Rule { what: "list", allowed: "a list of texts without control characters", read: PRINTABLE.read };

pub(super) const SOCKET_ADDRESS: Rule = Rule {
    what: "address",
    allowed: "an address that begins with wss:// or ws://",
    read: |text| service(text, ["wss://", "ws://"]),
};

pub(super) const PUBLIC_URL: Rule = Rule {
    what: "address",
    allowed: "an address that begins with https:// or http://, without ? and #; \"\" for none",
    read: |text| {
        let text = text.trim_end_matches('/');
        let is_url = !text.contains(['?', '#', '"', '\\']) && service(text, ["https://", "http://"]).is_some();
        same(text, text.is_empty() || is_url)
    },
};

/// The address of a service of a venue.
fn service(text: &str, schemes: [&str; 2]) -> Option<String> {
    let rest = schemes.iter().find_map(|scheme| text.strip_prefix(scheme))?;
    same(text, !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic()))
}

pub(super) const SMTP_URL: Rule = Rule {
    what: "address",
    allowed: "file:<dir>, smtp://host[:port] or smtps://host[:port], without a user; \"\" for none",
    read: |text| same(text, text.is_empty() || MailBy::parse(text).is_some()),
};

/// A sender is checked as a whole when the mailer is made; here as far as it must not begin another header.
pub(super) const MAIL_ADDRESS: Rule = Rule {
    what: "address",
    allowed: "an email address",
    read: |text| {
        let is_address = text.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && !domain.is_empty());
        same(text, is_address && text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['<', '>', ',']))
    },
};

pub(super) const CHAT_SERVICE: Rule = Rule {
    what: "text",
    allowed: "1 to 32 lower-case letters and digits, and neither email nor webhook",
    read: |text| {
        let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        same(text, (1..=32).contains(&text.len()) && is_word && !matches!(text, "email" | "webhook"))
    },
};

pub(super) const KEY_ID: Rule = Rule {
    what: "text",
    allowed: "the id of a key, in visible ASCII",
    read: |text| same(text, text.bytes().all(|byte| byte.is_ascii_graphic())),
};

pub(super) const AGENT: Rule = Rule {
    what: "list",
    allowed: "a list of beginnings of User-Agent texts, none empty",
    read: |text| same(text, !text.is_empty() && !text.chars().any(char::is_control)),
};

pub(super) const BALANCE: Rule = Rule {
    what: "text",
    allowed: "a text of USD from 0 to 1000000000 with at most six decimals, like 25000.00",
    read: |text| balance(text).map(|cash| decimal::text(|out| decimal::money(out, cash))),
};

/// Cash of a new wallet.
pub(in crate::config) fn balance(text: &str) -> Option<Cash> {
    let cash = Decimal::parse(text).ok().and_then(Decimal::cash_exact);
    cash.filter(|cash| (Cash::ZERO..=BALANCE_MAX).contains(cash))
}

pub(super) const KEY_PREFIX: Rule = Rule {
    what: "text",
    allowed: "1 to 16 lower-case letters and digits",
    read: |text| {
        let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        same(text, (1..=16).contains(&text.len()) && is_word)
    },
};

pub(super) const KEY_ENV: Rule =
    Rule { what: "word", allowed: "live or test", read: |text| same(text, matches!(text, "live" | "test")) };

pub(super) const HEADER_PREFIX: Rule =
    Rule { what: "text", allowed: "letters, digits and -, at most 64", read: |text| same(text, is_token(text)) };

pub(super) const HEADER: Rule =
    Rule { what: "list", allowed: "a list of header names", read: |text| same(text, is_token(text)) };

fn is_token(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

pub(super) const CATEGORY: Rule = Rule {
    what: "section of texts",
    allowed: "the name of a fee category: sports, finance, politics, mentions, tech, economics, culture, weather, \
        other, crypto or geopolitics",
    read: |text| same(text, Category::named(text).is_some()),
};

/// Category names of venues in addition to the built-in ones.
pub(in crate::config) fn categories(entries: &[(String, String)]) -> Names {
    let meant = |(name, value): &(String, String)| Some((name.to_lowercase(), Category::named(value)?));
    entries.iter().filter_map(meant).collect()
}

pub(super) const ACCOUNT: Rule = Rule {
    what: "list",
    allowed: "a list of JWT subjects and user ids",
    read: |text| same(text, (1..=128).contains(&text.len())),
};

pub(super) const KEY: Rule =
    Rule { what: "list", allowed: "a list of key ids", read: |text| text.parse().ok().map(|id: u64| id.to_string()) };

/// The text, if it is allowed.
fn same(text: &str, is_allowed: bool) -> Option<String> {
    is_allowed.then(|| text.to_owned())
}
