//! `[venue]`, the part for clients made for the venue (gateway/docs/venue-clients.md).

use super::setting::Word;
use super::source::Values;
use super::{Allowance, Compat};

impl Word for Allowance {
    fn words() -> Vec<(&'static str, Allowance)> {
        vec![("auto", Allowance::Auto), ("sentinel", Allowance::Sentinel), ("real", Allowance::Real)]
    }
}

pub(super) fn compat(values: &Values) -> Compat {
    Compat {
        client_agents: values.list("venue.client_agents").to_vec(),
        trade_ids: values.text("venue.trade_ids") == "real",
        confirmed_trades: values.boolean("venue.confirmed_trades"),
        root_mount: values.boolean("venue.root_mount"),
        order_version: values.number("venue.order_version"),
        sentinel_allowance: values.number("venue.sentinel_allowance"),
        allowance: values.word("venue.allowance"),
        facade: values.boolean("venue.facade"),
        address_login: values.boolean("venue.address_login"),
    }
}
