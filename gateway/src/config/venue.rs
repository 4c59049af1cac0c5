//! `[venue]`: the source of market data, and the connections of live venues.

use super::source::Values;
use super::table::texts;
use ::venue::adapters;
use ::venue::archive::{hours, replay};
use ::venue::live::Pace;
use ::venue::{VenueConfig, kalshi, polymarket};

pub(super) fn venue(values: &Values) -> VenueConfig {
    VenueConfig {
        kind: values.parsed("venue.kind"),
        seed: values.number("venue.seed"),
        tape: values.path("venue.tape").unwrap_or_default(),
        speed: values.parsed("venue.speed"),
        follow: values.boolean("venue.follow"),
        archive: replay::Settings {
            // Set by boot.rs to a folder of the data directory.
            cache: Default::default(),
            markets: values.path("venue.markets").unwrap_or_default(),
            from: values.optional("venue.from").and_then(hours::parse_hour),
            to: values.optional("venue.to").and_then(hours::parse_hour),
            ..Default::default()
        },
        liveliness: values.number("venue.liveliness"),
        mix: values.boolean("venue.mix"),
        categories: texts::categories(values.entries("fees.category_map")),
        live: adapters::Settings {
            polymarket: polymarket(values),
            kalshi: kalshi(values),
            pace: pace(values),
            recording: values.path("venue.record"),
            // Set by boot.rs to a folder of the data directory.
            shelf: None,
        },
    }
}

fn polymarket(values: &Values) -> polymarket::stream::Settings {
    polymarket::stream::Settings {
        gamma: address(values, "venue.polymarket.gamma"),
        clob: address(values, "venue.polymarket.clob"),
        market_socket: address(values, "venue.polymarket.market_socket"),
        spot_socket: address(values, "venue.polymarket.spot_socket"),
        tokens_max: values.number("venue.polymarket.tokens_max"),
    }
}

fn kalshi(values: &Values) -> kalshi::stream::Settings {
    kalshi::stream::Settings {
        api: address(values, "venue.kalshi.api"),
        socket: address(values, "venue.kalshi.socket"),
        key_id: values.optional("venue.kalshi.key_id").map(str::to_owned),
        private_key_file: values.path("venue.kalshi.private_key_file"),
        markets_max: values.number("venue.kalshi.markets_max"),
    }
}

/// The address of a service, to which paths are appended.
fn address(values: &Values, key: &str) -> String {
    values.text(key).trim_end_matches('/').to_owned()
}

fn pace(values: &Values) -> Pace {
    Pace {
        silent_after: values.millis("venue.silent_after_ms"),
        quiet_after: values.millis("venue.quiet_after_ms"),
        reconnect_first: values.millis("venue.reconnect_first_ms"),
        reconnect_max: values.millis("venue.reconnect_max_ms"),
        retry_first: values.millis("venue.retry_first_ms"),
        call_timeout: values.millis("venue.call_timeout_ms"),
        newest_every: values.millis("venue.newest_every_ms"),
        traded_every: values.millis("venue.traded_every_ms"),
        standing_every: values.millis("venue.standing_every_ms"),
        outage_after: values.millis("venue.outage_after_ms"),
        crossed_max: values.millis("venue.crossed_max_ms"),
        mirror_max: values.millis("venue.mirror_max_ms"),
    }
}
