//! `[venue]`: the source of market data, and the connections of live venues.

use super::source::Values;
use super::table::texts;
use ::venue::VenueConfig;
use ::venue::adapters;
use ::venue::archive::room::Room;
use ::venue::archive::{hours, replay};
use ::venue::live::Pace;
use ::venue::settings::{self, Kind, Value};
use ::venue::tape::Origin;
use engine::rules::Rules;

pub(super) fn venue(values: &Values, rules: &Rules) -> VenueConfig {
    VenueConfig {
        kind: values.parsed("venue.kind"),
        seed: values.number("venue.seed"),
        tape: values.path("venue.tape").unwrap_or_default(),
        speed: values.parsed("venue.speed"),
        follow: values.boolean("venue.follow"),
        archive: replay::Settings {
            // Set by boot.rs to a folder of the archive.
            cache: Default::default(),
            memory_bytes: values.number("archive.memory_bytes"),
            cache_bytes: values.number("archive.cache_bytes"),
            free_bytes_min: Room::beside_log(values.number("journal.reserve_bytes")).needed(),
            markets: values.path("venue.markets").unwrap_or_default(),
            from: values.optional("venue.from").and_then(hours::parse_hour),
            to: values.optional("venue.to").and_then(hours::parse_hour),
        },
        liveliness: values.number("venue.liveliness"),
        mix: values.boolean("venue.mix"),
        categories: texts::categories(values.entries("fees.category_map")),
        live: adapters::Settings {
            venues: venues(values),
            pace: pace(values),
            recording: values.path("venue.record"),
            // Set by boot.rs to a folder of the data directory.
            shelf: None,
            follows_fees: rules.follows_schedules(),
        },
    }
}

/// The values of the rows that the venues declare.
fn venues(values: &Values) -> settings::Values {
    let mut read = settings::Values::default();
    for origin in Origin::all() {
        for row in origin.registration().settings {
            let key = row.key(origin);
            let value = match row.kind {
                // Paths are appended.
                Kind::HttpAddress(_) | Kind::SocketAddress(_) => {
                    Value::Text(values.text(&key).trim_end_matches('/').to_owned())
                }
                Kind::KeyId | Kind::Path => Value::Text(values.text(&key).to_owned()),
                Kind::Count(..) => Value::Count(values.number(&key)),
            };
            read.set(key, value);
        }
    }
    read
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
