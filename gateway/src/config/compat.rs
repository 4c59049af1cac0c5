//! `[venue]`, the part for clients made for the venue (gateway/docs/venue-clients.md).

use super::setting::Word;
use super::source::Values;
use super::{Accounts, Allowance, Allowances, Compat, Profile, Rehearsal, Rehearse};

impl Word for Allowance {
    fn words() -> Vec<(&'static str, Allowance)> {
        vec![("auto", Allowance::Auto), ("sentinel", Allowance::Sentinel), ("real", Allowance::Real)]
    }
}

impl Word for Rehearse {
    fn words() -> Vec<(&'static str, Rehearse)> {
        vec![("off", Rehearse::Off), ("warn", Rehearse::Warn), ("enforce", Rehearse::Enforce)]
    }
}

impl Word for Accounts {
    fn words() -> Vec<(&'static str, Accounts)> {
        vec![("existing", Accounts::Existing), ("new", Accounts::New)]
    }
}

impl Word for Allowances {
    fn words() -> Vec<(&'static str, Allowances)> {
        vec![("granted", Allowances::Granted), ("declared", Allowances::Declared)]
    }
}

impl Word for Profile {
    fn words() -> Vec<(&'static str, Profile)> {
        Profile::ALL.to_vec()
    }
}

pub(super) fn compat(values: &Values) -> Compat {
    let profile: Profile = values.word("venue.profile");
    Compat {
        client_agents: values.list("venue.client_agents").to_vec(),
        trade_ids: values.text("venue.trade_ids") == "real",
        confirmed_trades: values.boolean("venue.confirmed_trades") || profile.names_trades(),
        root_mount: values.boolean("venue.root_mount"),
        order_version: profile.order_version().unwrap_or_else(|| values.number("venue.order_version")),
        sentinel_allowance: values.number("venue.sentinel_allowance"),
        allowance: values.word("venue.allowance"),
        facade: values.boolean("venue.facade"),
        address_login: values.boolean("venue.address_login"),
        rehearsal: Rehearsal {
            mode: values.word("venue.rehearse"),
            accounts: values.word("venue.accounts"),
            allowances: values.word("venue.allowances"),
            profile,
        },
    }
}
