//! `[local]`: what accounts get that addresses make on a server which only its own machine reaches.

use super::Local;
use super::source::Values;
use super::table::texts;

pub(super) fn local(values: &Values) -> Local {
    let balance = texts::balance(values.text("local.balance"));
    Local { tier: values.word("local.tier"), balance: balance.expect("the rule of the row has read it") }
}
