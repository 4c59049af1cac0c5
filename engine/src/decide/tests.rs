//! Trading scenarios as text: a book, orders, and the expected results.
//!
//! A scenario starts with `# name`. Every other line is an action with the expected answer after `->`; expectations
//! about the state may follow an action on separate lines. Tokens are `Y`, `N` (market 0) and `Y1`, `N1` (market 1).
//! Orders are numbered from 1 in the order of their rows. [`world::World::act`], [`world::World::command`] and
//! [`world::World::look`] list the verbs. After each scenario the records are replayed into an empty state: equal
//! digest, all invariants kept.

mod alerts;
mod allocations;
mod asks;
mod backtests;
mod billing;
mod departed;
mod departing;
mod equity;
mod fees;
mod flags;
mod ids;
mod keys;
mod limits;
mod look;
mod market;
mod order_facts;
mod pieces;
mod prefixes;
mod prints;
mod property;
mod queues;
mod resting;
mod show;
mod signed;
mod store;
mod venue;
mod wallets;
mod words;
mod world;

use world::run;

#[test]
fn scenarios() {
    let mut count = Count::default();
    for (file, text) in [
        ("market", market::SCENARIOS),
        ("limits", limits::SCENARIOS),
        ("resting", resting::SCENARIOS),
        ("prints", prints::SCENARIOS),
        ("queues", queues::SCENARIOS),
        ("flags", flags::SCENARIOS),
        ("keys", keys::SCENARIOS),
        ("wallets", wallets::SCENARIOS),
        ("equity", equity::SCENARIOS),
        ("fees", fees::SCENARIOS),
    ] {
        let ran = run(file, text);
        assert!(ran.scenarios > 0, "no scenario in {file}");
        count.scenarios += ran.scenarios;
        count.expectations += ran.expectations;
        count.wrong.extend(ran.wrong);
    }
    println!("{} scenarios, {} expectations", count.scenarios, count.expectations);
    assert!(count.wrong.is_empty(), "{} wrong\n{}", count.wrong.len(), count.wrong.join("\n"));
}

/// Counts of a run, and its failures.
#[derive(Default)]
struct Count {
    scenarios: usize,
    expectations: usize,
    wrong: Vec<String>,
}
