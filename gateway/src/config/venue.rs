//! `[venue]`: where market data comes from, and how the live venues are reached.

use super::read::{millis, path};
use super::source::Source;
use ::venue::category::Names;
use ::venue::live::{self, Pace};
use ::venue::replay::Speed;
use ::venue::{VenueConfig, VenueKind, kalshi, polymarket, synthetic};
use engine::market::terms::Category;
use std::time::Duration;

/// Longest length of time that a setting of the adapters' patience may name.
const PATIENCE_MS_MAX: u64 = 3_600_000;

pub(super) fn venue(source: &mut Source) -> VenueConfig {
    let kind = source.parsed(
        "venue.kind",
        VenueKind::Synthetic,
        "synthetic, replay, polymarket, kalshi, or polymarket,kalshi",
        |text| text.parse().ok(),
        VenueKind::to_string,
    );
    VenueConfig {
        kind,
        seed: source.integer("venue.seed", 1, 0..=u64::MAX),
        tape: path(source, "venue.tape").unwrap_or_default(),
        speed: source.parsed(
            "venue.speed",
            Speed::RECORDED,
            "a number from 0.001 to 1000000 with at most three decimals, or max",
            |text| text.parse().ok(),
            Speed::to_string,
        ),
        follow: source.boolean("venue.follow", false),
        liveliness: source.integer("venue.liveliness", 10, 1..=synthetic::LIVELINESS_MAX),
        mix: source.boolean("venue.mix", false),
        categories: category_map(source),
        live: live::Settings {
            polymarket: polymarket(source),
            kalshi: kalshi(source),
            pace: pace(source),
            recording: path(source, "venue.record"),
            // In the data directory of a server (boot.rs).
            shelf: None,
        },
    }
}

fn polymarket(source: &mut Source) -> polymarket::stream::Settings {
    let default = polymarket::stream::Settings::default();
    polymarket::stream::Settings {
        gamma: address(source, "venue.polymarket.gamma", &default.gamma, &["https", "http"]),
        clob: address(source, "venue.polymarket.clob", &default.clob, &["https", "http"]),
        market_socket: address(source, "venue.polymarket.market_socket", &default.market_socket, &["wss", "ws"]),
        spot_socket: address(source, "venue.polymarket.spot_socket", &default.spot_socket, &["wss", "ws"]),
        tokens_max: source.integer("venue.polymarket.tokens_max", default.tokens_max as u64, 2..=80_000) as usize,
    }
}

fn kalshi(source: &mut Source) -> kalshi::stream::Settings {
    let default = kalshi::stream::Settings::default();
    let key_id = source.text("venue.kalshi.key_id", "", "the id of a key, in visible ASCII", |text| {
        text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    kalshi::stream::Settings {
        api: address(source, "venue.kalshi.api", &default.api, &["https", "http"]),
        socket: address(source, "venue.kalshi.socket", &default.socket, &["wss", "ws"]),
        key_id: Some(key_id).filter(|id| !id.is_empty()),
        private_key_file: path(source, "venue.kalshi.private_key_file"),
        markets_max: source.integer("venue.kalshi.markets_max", default.markets_max as u64, 1..=50_000) as usize,
    }
}

/// The address of a service of a venue.
fn address(source: &mut Source, key: &str, default: &str, schemes: &[&str]) -> String {
    let allowed = format!(
        "an address that begins with {}",
        schemes.iter().map(|scheme| format!("{scheme}://")).collect::<Vec<_>>().join(" or ")
    );
    let sound = |text: &str| {
        let rest = schemes.iter().find_map(|scheme| text.strip_prefix(scheme)?.strip_prefix("://"));
        rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic()))
    };
    source.text(key, default, &allowed, sound).trim_end_matches('/').to_owned()
}

fn pace(source: &mut Source) -> Pace {
    let default = Pace::default();
    let mut length =
        |key: &str, default: Duration| millis(source, key, default.as_millis() as u64, 1..=PATIENCE_MS_MAX);
    Pace {
        silent_after: length("venue.silent_after_ms", default.silent_after),
        quiet_after: length("venue.quiet_after_ms", default.quiet_after),
        reconnect_first: length("venue.reconnect_first_ms", default.reconnect_first),
        reconnect_max: length("venue.reconnect_max_ms", default.reconnect_max),
        retry_first: length("venue.retry_first_ms", default.retry_first),
        call_timeout: length("venue.call_timeout_ms", default.call_timeout),
        newest_every: length("venue.newest_every_ms", default.newest_every),
        traded_every: length("venue.traded_every_ms", default.traded_every),
        standing_every: length("venue.standing_every_ms", default.standing_every),
        outage_after: length("venue.outage_after_ms", default.outage_after),
        crossed_max: length("venue.crossed_max_ms", default.crossed_max),
        mirror_max: length("venue.mirror_max_ms", default.mirror_max),
    }
}

/// Category names of venues beside our own.
fn category_map(source: &mut Source) -> Names {
    let allowed = "the name of a fee category: sports, finance, politics, mentions, tech, economics, culture, weather, other, crypto or geopolitics";
    let entries = source.map("fees.category_map", allowed, |_, value| Category::named(value).is_some());
    let meant = |(name, value): (String, String)| Some((name.to_lowercase(), Category::named(&value)?));
    entries.into_iter().filter_map(meant).collect()
}
