//! Rows of market data and of clients made for the venue.

use super::texts;
use crate::config::setting::{Setting, boolean, integer, list, parsed, path, switch, text, word, words};
use crate::config::source::Values;
use crate::config::{Accounts, Allowance, Allowances, Profile, Rehearse};
use ::venue::live::Pace;
use ::venue::replay::Speed;
use ::venue::settings::{Kind, Row};
use ::venue::tape::Origin;
use ::venue::{VenueKind, synthetic};
use std::time::Duration;

/// Upper bound of the adapters' intervals and waits, ms.
const PATIENCE_MS_MAX: u64 = 3_600_000;

pub(super) fn rows() -> Vec<Setting> {
    [data(), live(), pace(), clients()].into_iter().flatten().collect()
}

fn data() -> Vec<Setting> {
    vec![
        parsed(
            "venue.kind",
            VenueKind::Synthetic.to_string(),
            texts::venue_kind(),
            "Where market data comes from: a seeded world, a recording, or live venues.",
        ),
        integer("venue.seed", 1, 0..=u64::MAX, "Seed of the synthetic venue: the same seed is the same world."),
        path(
            "venue.tape",
            "The recording of `venue.kind = \"replay\"`: a file or a folder, of lines or of hours of an archive.",
        ),
        path(
            "venue.markets",
            "File of the markets to replay: one condition id a line. Only the replay of an archive takes it.",
        ),
        parsed("venue.from", "", texts::HOUR, "First hour to replay, in UTC. Only the replay of an archive takes it."),
        parsed("venue.to", "", texts::HOUR, "Last hour to replay, in UTC. Only the replay of an archive takes it."),
        parsed(
            "venue.speed",
            Speed::RECORDED.to_string(),
            texts::SPEED,
            "How many times as fast as it was recorded a replay runs; `max`: as fast as it can be read. Only a replay \
             takes \
             it.",
        ),
        boolean("venue.follow", false, "A replay reads files that still grow. Only a replay takes it."),
        integer(
            "venue.liveliness",
            10,
            1..=synthetic::LIVELINESS_MAX,
            "How many times as often as at 1 the books of the synthetic venue change.",
        ),
        boolean(
            "venue.mix",
            false,
            "Accepts a data directory that was used with other venues. The directory remembers its venues, so this is \
             needed once for each further venue.",
        ),
    ]
}

/// The rows that the venues declare.
fn live() -> Vec<Setting> {
    let row = |origin: Origin, row: &Row| {
        let (key, meaning) = (row.key(origin), row.meaning());
        match &row.kind {
            Kind::HttpAddress(default) => text(key, *default, texts::HTTP_ADDRESS, meaning),
            Kind::SocketAddress(default) => text(key, *default, texts::SOCKET_ADDRESS, meaning),
            Kind::KeyId => text(key, "", texts::KEY_ID, meaning),
            Kind::Path => path(key, meaning),
            Kind::Count(default, range) => integer(key, *default, range.clone(), meaning),
        }
    };
    Origin::all().flat_map(|origin| origin.registration().settings.iter().map(move |of| row(origin, of))).collect()
}

fn pace() -> Vec<Setting> {
    let pace = Pace::default();
    let length = |key: &'static str, default: Duration, meaning: &'static str| {
        integer(key, default.as_millis() as u64, 1..=PATIENCE_MS_MAX, meaning)
    };
    vec![
        length(
            "venue.silent_after_ms",
            pace.silent_after,
            "A socket with subscriptions that brings no text for this long is closed and opened again, in \
             milliseconds.",
        ),
        length(
            "venue.quiet_after_ms",
            pace.quiet_after,
            "A token without news for this long, on a socket with news of others, is fetched, in milliseconds.",
        ),
        length(
            "venue.reconnect_first_ms",
            pace.reconnect_first,
            "First wait before a lost connection is opened again, in milliseconds. Waits double, with 50–100 % jitter.",
        ),
        length("venue.reconnect_max_ms", pace.reconnect_max, "Longest such wait, in milliseconds."),
        length(
            "venue.retry_first_ms",
            pace.retry_first,
            "First wait after a call that met 425, 429 or 5xx, in milliseconds; it doubles.",
        ),
        length("venue.call_timeout_ms", pace.call_timeout, "How long one call may take, in milliseconds."),
        length("venue.newest_every_ms", pace.newest_every, "How often new markets are fetched, in milliseconds."),
        length(
            "venue.traded_every_ms",
            pace.traded_every,
            "How often the most traded markets are fetched, in milliseconds.",
        ),
        length(
            "venue.standing_every_ms",
            pace.standing_every,
            "How often the state of markets that have ended or that users trade here is fetched, in milliseconds.",
        ),
        length(
            "venue.outage_after_ms",
            pace.outage_after,
            "Without a live connection to any configured venue for this long, the venue counts as out, in \
             milliseconds.",
        ),
        length(
            "venue.crossed_max_ms",
            pace.crossed_max,
            "How long a book may stay crossed before it is fetched again, in milliseconds.",
        ),
        length(
            "venue.mirror_max_ms",
            pace.mirror_max,
            "How long a book may disagree with that of its complement before both are fetched again, in milliseconds.",
        ),
        path("venue.record", "Folder of the recording that a server makes of a live venue."),
    ]
}

/// Whether only this machine can reach the listener: no other address, and no proxy that forwards requests of others.
pub(in crate::config) fn is_own_machine_only(values: &Values) -> bool {
    let listen: std::net::SocketAddr = values.parsed("server.listen");
    // A proxy makes a loopback listener reachable: one that is trusted, or one that passes on its own host name.
    listen.ip().is_loopback()
        && values.list("http.trusted_proxies").is_empty()
        && values.list("server.hosts").is_empty()
}

fn clients() -> Vec<Setting> {
    vec![
        // The last one names itself on every request, and shows no key where the venue needs none.
        list(
            "venue.client_agents",
            &["py_clob_client", "py_clob_client_v2", "rs_clob_client", "@polymarket/clob-client", "NautilusTrader/"],
            texts::AGENT,
            "Beginnings of `User-Agent` whose requests and sockets are of the strict dialect.",
        ),
        words(
            "venue.trade_ids",
            "none",
            ["none", "real"],
            "Whether the response to a placement of a venue client names its trades. A client that sees them may wait \
             until \
             each is confirmed.",
        ),
        boolean(
            "venue.confirmed_trades",
            false,
            "Trade rows of the strict dialect say `CONFIRMED`, so that clients that wait for settlement continue.",
        ),
        boolean("venue.root_mount", true, "The venue's paths are answered without `/v1` too."),
        integer("venue.order_version", 2, 1..=2, "Version of signed orders that the venue's newer clients build."),
        integer(
            "venue.sentinel_allowance",
            1_000_000_000_000,
            0..=1_000_000_000_000_000_000,
            "The figure of balances and allowances that clients must not size orders from, in millionths of a USD.",
        ),
        word(
            "venue.allowance",
            Allowance::Auto,
            "What `balance-allowance` answers: the wallet's figures, the sentinel, or (`auto`) the figures in the \
             strict \
             dialect and the sentinel in the plain one.",
        ),
        boolean(
            "venue.facade",
            false,
            "Answers for the venue's catalogue service (`/v1/gamma`) and for its service of positions and trades \
             (`/v1/data-api`).",
        ),
        switch(
            "venue.address_login",
            is_own_machine_only,
            "`auto`: only where no other machine reaches the listener",
            "An address that signs for itself is an account.",
        ),
        word(
            "venue.rehearse",
            Rehearse::Off,
            "Checks signed orders as the venue does: `warn` reports what the venue would refuse, `enforce` refuses it.",
        ),
        word(
            "venue.accounts",
            Accounts::Existing,
            "The age of the accounts that the rehearsal assumes: `new` ones may trade with deposit wallets only.",
        ),
        word(
            "venue.allowances",
            Allowances::Granted,
            "What the exchanges may spend in the rehearsal: everything, or (`declared`) what an administrator declared for \
             an address.",
        ),
        word(
            "venue.profile",
            Profile::Contract,
            "The venue that clients meet: that of the contract, or the real one as of a date. A dated profile overrules \
             `venue.order_version`.",
        ),
    ]
}
