//! Rows of accounts, names, secrets and limits.

use super::texts;
use crate::config::TIERS;
use crate::config::setting::{Setting, boolean, integer, list, parsed, secret, secrets, text, word};
use edge::settings::DEFAULT_TIERS;
use engine::rules::Rules;
use engine::time::HOUR;
use engine::user::Tier;

pub(super) fn rows() -> Vec<Setting> {
    [names(), core(), limits()].into_iter().flatten().collect()
}

fn names() -> Vec<Setting> {
    vec![
        word("local.tier", Tier::Enterprise, "Plan of a new account, granted without end."),
        parsed("local.balance", "25000.00", texts::BALANCE, "Cash of its API wallet, in USD."),
        text("brand.key_prefix", "svc", texts::KEY_PREFIX, "First part of a key: `svc` makes `svc_live_…`."),
        text("brand.key_env", "live", texts::KEY_ENV, "Second part of a key."),
        text("brand.header_prefix", "X-Svc", texts::HEADER_PREFIX, "Prefix of this server's headers: `X-Svc-Code`, …"),
        list(
            "brand.key_header_aliases",
            &["MKT_API_KEY", "Mkt-API-Key", "POLY_API_KEY"],
            texts::HEADER,
            "Headers that may carry a key besides `X-API-Key`, which is read first.",
        ),
        secrets(
            "auth.jwt_secret",
            "made and kept in the data directory",
            "Secret of identity tokens (HS256). Of a list, which only the file can hold, the first one signs and all \
             verify.",
        ),
        secret(
            "auth.ws_secret",
            "made at each start",
            "Secret of socket tokens. Tokens never outlive the process, so it need not be set.",
        ),
    ]
}

fn core() -> Vec<Setting> {
    vec![
        integer(
            "engine.shards",
            default_shards(),
            1..=64,
            "Threads that decide orders. 1 runs everything on the thread that reads the sockets, the fastest on few \
             processors.",
        )
        .unset("1 up to four processors, else half of them"),
        integer(
            "engine.prefault_bytes",
            journal::prefault::AHEAD_BYTES as u64,
            0..=1 << 30,
            "Memory that is made ready ahead of its use at most, in bytes. 0: none; then an order now and then waits \
             for the kernel. Without effect before Linux 5.14 and where the system does not overcommit memory.",
        ),
    ]
}

/// One shard up to four processors, then half of them.
fn default_shards() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    if cores <= 4 { 1 } else { (cores / 2).min(64) }
}

fn limits() -> Vec<Setting> {
    let one = |key: &'static str, default: u64, meaning: &'static str| integer(key, default, 1..=1_000_000, meaning);
    let mut rows = vec![
        one("limits.public_ip_per_second", 2, "Requests without a key of one source address, per second."),
        one("limits.public_ip_per_minute", 120, "Requests without a key of one source address, per minute."),
        one(
            "limits.callback_ip_per_second",
            50,
            "Events of the payment provider from one source address, with and without a valid signature, per second. A \
             refused one is 429; the provider repeats it.",
        ),
        one("limits.callback_ip_per_minute", 1_200, "The same, per minute."),
        one("limits.bootstrap_per_minute", 1, "First keys that one source address may make, per minute."),
        one("limits.bootstrap_per_hour", 5, "First keys that one source address may make, per hour."),
        one(
            "limits.placements_per_user",
            8,
            "Placements of one user in flight; the next one is refused with 429 `RATE_LIMITED`.",
        ),
        one("limits.placements_per_server", 512, "Placements of all users in flight."),
    ];
    for (tier, name) in TIERS {
        let default = DEFAULT_TIERS[tier as usize];
        let mut one = |field: &str, default: u32, meaning: &'static str| {
            rows.push(integer(format!("limits.tiers.{name}.{field}"), default.into(), 1..=1_000_000, meaning));
        };
        one("requests_per_second", default.requests_per_second, "Requests of one key, per second.");
        one("requests_per_minute", default.requests_per_minute, "Requests of one key, per minute.");
        one("max_ws_connections", default.max_ws_connections, "Sockets of one user.");
        one("max_batch_size", default.max_batch_size, "Orders of one batch.");
        one("in_flight", default.in_flight, "Requests of one key in flight.");
    }
    rows.extend([
        boolean("limits.meter_loopback", false, "Limits by source address count on loopback too."),
        integer(
            "limits.free_daily_orders",
            Rules::default().free_daily_orders.into(),
            1..=1_000_000_000,
            "Accepted orders of a user of the free tier, per UTC day.",
        ),
        integer(
            "limits.client_ids_hours",
            Rules::default().client_ids_us / HOUR,
            1..=8_760,
            "How long a `client_order_id` counts, from the placement of its order, in server time: a repeat of the request \
             is answered with the first response. After it the id is free again. With a larger value ids that were free \
             may count again, as far as they are still in memory.",
        ),
    ]);
    rows
}
