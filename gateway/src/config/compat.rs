//! `[venue]`, the part for clients of the venue's own kind (venue.md).

use super::source::Source;
use super::{Allowance, Compat};

const ALLOWANCES: [(Allowance, &str); 3] =
    [(Allowance::Auto, "auto"), (Allowance::Sentinel, "sentinel"), (Allowance::Real, "real")];

/// `own_machine_only`: nobody but this machine reaches the listener, so that everyone who can sign may have an account.
pub(super) fn compat(source: &mut Source, own_machine_only: bool) -> Compat {
    // The last one names itself on every request, and shows no key where the venue wants none.
    let agents =
        ["py_clob_client", "py_clob_client_v2", "rs_clob_client", "@polymarket/clob-client", "NautilusTrader/"];
    Compat {
        client_agents: source.list(
            "venue.client_agents",
            agents.map(str::to_owned).to_vec(),
            "a list of beginnings of User-Agent texts, none empty",
            |text| (!text.is_empty() && !text.chars().any(char::is_control)).then(|| text.to_owned()),
            String::clone,
        ),
        trade_ids: source.parsed(
            "venue.trade_ids",
            false,
            "none or real",
            |text| match text {
                "none" => Some(false),
                "real" => Some(true),
                _ => None,
            },
            |real| if *real { "real" } else { "none" }.to_owned(),
        ),
        confirmed_trades: source.boolean("venue.confirmed_trades", false),
        root_mount: source.boolean("venue.root_mount", true),
        order_version: source.integer("venue.order_version", 2, 1..=2),
        sentinel_allowance: source.integer(
            "venue.sentinel_allowance",
            1_000_000_000_000,
            0..=1_000_000_000_000_000_000,
        ),
        allowance: source.parsed(
            "venue.allowance",
            Allowance::Auto,
            "auto, sentinel or real",
            |text| ALLOWANCES.iter().find(|(_, name)| *name == text).map(|(allowance, _)| *allowance),
            |chosen| {
                ALLOWANCES.iter().find(|(allowance, _)| allowance == chosen).map_or("", |(_, name)| *name).to_owned()
            },
        ),
        facade: source.boolean("venue.facade", false),
        address_login: source.switch("venue.address_login", own_machine_only),
    }
}
