//! `[local]`: the plan of accounts that log in by address on a server that only its own machine reaches.

use super::Local;
use super::source::Values;
use super::table::texts;

pub(super) fn local(values: &Values) -> Local {
    let balance = texts::balance(values.text("local.balance"));
    Local { tier: values.word("local.tier"), balance: balance.expect("the rule of the row has checked it") }
}
