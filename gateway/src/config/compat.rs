//! `[venue]`, the part for clients of the venue's own kind (venue.md).

use super::source::Source;

/// How requests of venue clients are answered.
#[derive(Clone, Debug)]
pub struct Compat {
    /// Beginnings of the `User-Agent` of clients that need the strict dialect (venue.md §0.2).
    pub client_agents: Vec<String>,
    /// Whether a placement names its trades (`real`); clients that see names wait for each to be confirmed.
    pub trade_ids: bool,
    /// Whether strict trade rows say `CONFIRMED`, so that clients that wait for settlement end.
    pub confirmed_trades: bool,
}

pub(super) fn compat(source: &mut Source) -> Compat {
    let agents = ["py_clob_client", "py_clob_client_v2", "rs_clob_client", "@polymarket/clob-client"];
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
    }
}
