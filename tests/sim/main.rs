//! A seeded world on one thread: the engine's shards and the gateway's committer on a faulty disk, clients, a venue and
//! a clock, checked after each step by a slow, obvious model.
//!
//! `SIM_SEEDS=20000 cargo test -p tests --test sim worlds` runs that many worlds, `SIM_SEED=7` begins with that seed,
//! `SIM_STEPS` sets their length.

mod clients;
mod judge;
mod life;
mod model;
mod planted;
mod store;
mod venue;
mod workload;
mod world;

use planted::Plant;
use std::env;
use store::MovePoint;
use workload::{Step, steps};
use world::{Count, Scenario, run};

/// The default first seed.
const FIRST_SEED: u64 = 1;
/// Steps of a world.
const STEPS: usize = 3_000;
/// Every refusal of the default rules that a world can reach.
const REFUSALS: [&str; 38] = [
    "AboveShareCap",
    "BelowMinimum",
    "BootstrapNotAllowed",
    "DailyLimit",
    "DuplicateClientOrderId",
    "FokNotFilled",
    "IdempotencyKeyReuse",
    "InsufficientBalance",
    "InsufficientPosition",
    "InvalidExpiration",
    "InvalidQuantity",
    "KeyExpired",
    "KeyExpiring",
    "KeyLimit",
    "KeyNotFound",
    "KeyRevoked",
    "MainResetsSpent",
    "MarketClosed",
    "MarketNotFound",
    "NoExecutableDepth",
    "NoRoom",
    "OffTick",
    "OrderNotCancellable",
    "OrderNotFound",
    "PostOnlyType",
    "PostOnlyWouldCross",
    "ResetCoolsDown",
    "ResetNeedsPlan",
    "SandboxLimit",
    "StaleQuote",
    "StillRunning",
    "TierRequiresUpgrade",
    "InvalidTerms",
    "UserNotFound",
    "VenueUnavailable",
    "WaitedTooLong",
    "WalletNotFound",
    "WrongWalletKind",
];
/// Most runs to shorten a failure.
const SHORTENINGS_MAX: usize = 400;

fn number(name: &str, default: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}")),
        Err(_) => default,
    }
}

fn wild(seed: u64) -> Scenario {
    Scenario { seed, shards: None, calm: false, small: true, moves: true, plant: None }
}

/// Removes steps as long as the run still fails.
fn shortened(scenario: Scenario, steps: &[Step], failed_at: usize) -> Vec<Step> {
    let mut kept: Vec<Step> = steps[..(failed_at + 1).min(steps.len())].to_vec();
    let (mut chunk, mut runs) = (kept.len() / 2, 0);
    while chunk > 0 && runs < SHORTENINGS_MAX {
        let mut at = 0;
        while at < kept.len() && runs < SHORTENINGS_MAX {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + chunk).min(kept.len()));
            runs += 1;
            match run(scenario, &fewer) {
                Err((failed_at, _)) => {
                    fewer.truncate(failed_at + 1);
                    kept = fewer;
                }
                Ok(_) => at += chunk,
            }
        }
        chunk /= 2;
    }
    kept
}

/// Prints everything that is needed to repeat a failure.
fn report(scenario: Scenario, steps: &[Step], failed_at: usize, why: &str) -> String {
    let fewer = shortened(scenario, steps, failed_at);
    let last = run(scenario, &fewer).err().map_or(why.to_owned(), |(_, why)| why);
    let list: Vec<String> = fewer.iter().map(|step| format!("  {step:?}")).collect();
    format!(
        "seed {} ({scenario:?}), step {failed_at}: {why}\nshortened to {} steps:\n{}\n{last}",
        scenario.seed,
        fewer.len(),
        list.join("\n")
    )
}

#[test]
fn worlds_agree_with_the_model() {
    let (first, seeds) = (number("SIM_SEED", FIRST_SEED), number("SIM_SEEDS", 200));
    let length = number("SIM_STEPS", STEPS as u64) as usize;
    println!("seeds {first} to {}", first + seeds - 1);
    let mut count = Count::default();
    for seed in first..first + seeds {
        let steps = steps(seed, length, false);
        match run(wild(seed), &steps) {
            Ok(outcome) => count.add(&outcome.count),
            Err((at, why)) => panic!("{}", report(wild(seed), &steps, at, &why)),
        }
        let done = seed + 1 - first;
        if done.is_multiple_of(1_000) && done < seeds {
            println!("{done} worlds, the last one was {seed}");
        }
    }
    println!("{seeds} worlds: {count:#?}");
    let Count { fills, settlements, kills, crashes, sudden, failed_syncs, lost_records, snapshots, .. } = &count;
    let Count { hours, points, generations, prints, prefixes, .. } = &count;
    let Count { moved, failed_moves, dropped, look_ups, completions, unread, waits, digests, move_kills, .. } = &count;
    let happened = [
        fills,
        settlements,
        kills,
        crashes,
        sudden,
        failed_syncs,
        lost_records,
        snapshots,
        hours,
        points,
        generations,
        prints,
        prefixes,
        moved,
        failed_moves,
        dropped,
        look_ups,
        completions,
        unread,
        waits,
        digests,
    ];
    assert!(seeds < 100 || happened.iter().all(|times| **times > 0), "an event never happened");
    assert!(seeds < 100 || move_kills.len() == MovePoint::ALL.len(), "killed at {move_kills:?} only");
    let missing: Vec<&&str> = REFUSALS.iter().filter(|name| !count.refusals.contains_key(**name)).collect();
    assert!(seeds < 100 || missing.is_empty(), "never refused: {missing:?}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    let seeds = 12;
    for seed in 1_000..1_000 + seeds {
        let steps = steps(seed, STEPS, false);
        let outcomes = [0, 1].map(|_| run(wild(seed), &steps));
        let [first, second] = outcomes.map(|outcome| match outcome {
            Ok(outcome) => (outcome.state, outcome.story, outcome.count),
            Err((at, why)) => panic!("{}", report(wild(seed), &steps, at, &why)),
        });
        assert!(first == second, "seed {seed}: two runs differ");
    }
    println!("{seeds} worlds twice");
}

#[test]
fn the_number_of_shards_makes_no_difference() {
    let seeds = 10;
    for seed in 2_000..2_000 + seeds {
        let steps = steps(seed, STEPS, true);
        let digests = [Some(1), Some(2), Some(3), None].map(|shards| {
            let scenario = Scenario { shards, calm: true, small: false, moves: false, ..wild(seed) };
            match run(scenario, &steps) {
                Ok(outcome) => outcome.state,
                Err((at, why)) => panic!("{}", report(scenario, &steps, at, &why)),
            }
        });
        assert!(digests.iter().all(|digest| *digest == digests[0]), "seed {seed}: the digests differ");
    }
    println!("{seeds} worlds with 1, 2, 3 and changing numbers of shards");
}

#[test]
fn rows_that_leave_memory_make_no_difference() {
    let (seeds, mut moved, mut completions, mut look_ups) = (16, 0, 0, 0);
    for seed in 4_000..4_000 + seeds {
        // A calm world finishes each step with a dozen of others.
        let steps = steps(seed, 12 * STEPS, true);
        let [stays, leaves] = [false, true].map(|moves| {
            let scenario = Scenario { calm: true, moves, ..wild(seed) };
            run(scenario, &steps).unwrap_or_else(|(at, why)| panic!("{}", report(scenario, &steps, at, &why)))
        });
        assert_eq!(stays.count.moved, 0);
        assert!(stays.state == leaves.state, "seed {seed}: the digests differ");
        moved += leaves.count.moved;
        completions += leaves.count.completions;
        look_ups += leaves.count.look_ups;
    }
    println!("{seeds} worlds that keep and move rows: {moved} rows, {completions} answers, {look_ups} look-ups");
    assert!(moved > 0 && completions > 0 && look_ups > 0, "nothing has left memory");
}

#[test]
fn planted_mistakes_are_caught() {
    const SEEDS_MAX: u64 = 60;
    let mut missed = Vec::new();
    for plant in Plant::ALL {
        let caught = (3_000..3_000 + SEEDS_MAX).find_map(|seed| {
            let scenario = Scenario { plant: Some(plant), ..wild(seed) };
            run(scenario, &steps(seed, STEPS, false)).err().map(|(at, why)| (seed - 2_999, at, why))
        });
        match caught {
            Some((seeds, at, why)) => {
                println!("{plant:?}: caught in world {seeds}, step {at}: {}", why.lines().next().unwrap_or_default());
            }
            None => missed.push(plant),
        }
    }
    assert!(missed.is_empty(), "nothing noticed {missed:?} in {SEEDS_MAX} worlds");
}
