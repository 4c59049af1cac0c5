mod incremental;
mod listing;

use super::*;
use crate::replay::{Replay, Speed};
use crate::suite::{Witness, recorded};
use engine::id::Outcome;
use engine::market::Market as KnownMarket;
use engine::market::terms::{Category, Interval, Resolution};
use std::collections::BTreeMap;

const NOW: Timestamp = Timestamp(1_790_000_123 * SECOND);
const FOREVER: Timestamp = Timestamp(u64::MAX);

fn run(seed: u64, from: Timestamp, secs: u64, step: u64) -> Witness {
    let mut venue = Synthetic::new(seed, from, Default::default());
    let mut witness = Witness::default();
    witness.run(&mut venue, from, from.plus(secs * SECOND), step);
    witness
}

#[test]
fn the_first_poll_lists_the_world_with_all_its_books() {
    let mut venue = Synthetic::new(1, NOW, Default::default());
    let mut witness = Witness::default();
    let begin = std::time::Instant::now();
    let mut frames = Vec::new();
    let polled = venue.poll(NOW, FOREVER, &mut |frame| frames.push(frame.updates.to_vec()));
    let took = begin.elapsed();
    assert_eq!(polled.venue_now, NOW);
    for updates in &frames {
        witness.see(&Frame { connection: 0, received: NOW, is_answer: false, updates });
    }
    let open = witness.states.values().filter(|state| **state == MarketState::Active).count();
    println!("{} listed, {open} open, in {took:?}: {:?}", witness.listings.len(), witness.counts);
    assert!(open >= 180, "{open}");
    assert_eq!(witness.count("snapshot") as usize, open * 2);
    assert!(witness.count("resolved") > 40, "too few results of the last hour");
    witness.assert_mirrored();
}

#[test]
fn a_world_keeps_its_guarantees_over_an_hour() {
    let witness = run(2, NOW, 3_900, 150 * MILLISECOND);
    println!("{:?}, at most {} levels", witness.counts, witness.levels_max);
    witness.assert_mirrored();
    for kind in ["listed", "state", "resolved", "snapshot", "delta", "trade", "tick", "figures"] {
        assert!(witness.count(kind) > 0, "{kind}");
    }
    let updates: u64 = witness.counts.values().sum();
    assert!((60..400).contains(&(updates / 3_900)), "{} updates a second", updates / 3_900);
    // Every window that ended longer ago than the delay is resolved; no other one is.
    let end = NOW.plus(3_900 * SECOND);
    for (condition, listing) in &witness.listings {
        let Some(window) = listing.updown else { continue };
        let due = window.end.plus(15 * SECOND);
        assert_eq!(witness.resolutions.contains_key(condition), due <= end, "{}", listing.slug);
        if let Some((_, _, seen)) = witness.resolutions.get(condition).filter(|_| due > NOW) {
            assert_eq!(*seen, due);
        }
    }
    let fives = witness.listings.values().filter(|listing| {
        listing.updown.is_some_and(|window| window.interval == Interval::FiveMinutes)
            && listing.category == Category::Crypto
    });
    assert!(fives.count() > 4 * 24);
}

#[test]
fn the_same_seed_is_the_same_world_at_any_poll_interval() {
    let (slow, fast) = (run(3, NOW, 240, 2 * SECOND), run(3, NOW, 240, 70 * MILLISECOND));
    assert_eq!(slow.digest(), fast.digest());
    assert_ne!(slow.digest(), run(4, NOW, 240, SECOND).digest());
}

/// A hash of the world's books, trades, ticks and results, independent of their representation in memory.
fn fingerprint(seed: u64, liveliness: u64, secs: u64) -> u64 {
    let mut venue = Synthetic::new(seed, NOW, Default::default()).with_liveliness(liveliness);
    let (mut now, until, mut hash) = (NOW, NOW.plus(secs * SECOND), 0);
    let mut see = |frame: Frame<'_>| {
        let mut add = |number: u64| hash = noise::mix(hash, number);
        add(frame.received.0);
        let level = |side: BookSide, price: Price, size: Qty| (side as u64) << 62 | u64::from(price.0) << 48 | size.0;
        for update in frame.updates {
            match update {
                FeedUpdate::BookSnapshot { token, bids, asks, venue_ts, .. } => {
                    token.bytes().for_each(|byte| add(byte.into()));
                    bids.iter().for_each(|(price, size)| add(level(BookSide::Bid, *price, *size)));
                    asks.iter().for_each(|(price, size)| add(level(BookSide::Ask, *price, *size)));
                    add(venue_ts.0);
                }
                FeedUpdate::BookDelta { token, levels, venue_ts } => {
                    token.bytes().for_each(|byte| add(byte.into()));
                    levels.iter().for_each(|(side, price, size)| add(level(*side, *price, *size)));
                    add(venue_ts.0);
                }
                FeedUpdate::LastTrade { token, price, size, taker_buys, venue_ts, .. } => {
                    token.bytes().for_each(|byte| add(byte.into()));
                    [price.0.into(), size.0, u64::from(*taker_buys), venue_ts.0].into_iter().for_each(&mut add);
                }
                FeedUpdate::TickChanged { condition, tick } => {
                    condition.bytes().for_each(|byte| add(byte.into()));
                    add(tick.0.into());
                }
                FeedUpdate::Figures { condition, figures } => {
                    condition.bytes().for_each(|byte| add(byte.into()));
                    add(figures.liquidity.unwrap_or_default());
                }
                FeedUpdate::Resolved { condition, resolution, .. } => {
                    condition.bytes().for_each(|byte| add(byte.into()));
                    add(u64::from(*resolution == Resolution::Winner(Outcome::First)));
                }
                _ => {}
            }
        }
    };
    while venue.poll(now, until, &mut see).venue_now < until {
        now = now.plus(100 * MILLISECOND);
    }
    hash
}

/// A later version must continue the world of a seed unchanged.
#[test]
fn a_world_is_the_same_in_every_version() {
    for (seed, liveliness, secs, expected) in
        [(1, 1, 400, 0xd797_4eb3_7c1e_b904), (2, 10, 60, 0x4212_0c03_d570_7ac5), (3, 100, 6, 0x8bb5_fcd4_5e62_ebe0)]
    {
        let hash = fingerprint(seed, liveliness, secs);
        assert_eq!(hash, expected, "seed {seed} at {liveliness}: {hash:#018x}");
    }
}

#[test]
fn a_restart_finds_the_current_books() {
    let before = run(5, NOW, 700, SECOND);
    let after = run(5, NOW.plus(700 * SECOND), 0, SECOND);
    let mut compared = 0;
    for (condition, listing) in &after.listings {
        if after.states[condition] != MarketState::Active {
            continue;
        }
        let earlier = &before.listings[condition];
        assert_eq!((&earlier.tokens, &earlier.slug, earlier.end), (&listing.tokens, &listing.slug, listing.end));
        for token in &listing.tokens {
            assert_eq!(before.touch(token), after.touch(token), "{}", listing.slug);
            assert_eq!(before.levels(token), after.levels(token), "{}", listing.slug);
        }
        compared += 1;
    }
    assert!(compared >= 180, "{compared}");
    for (condition, (resolution, at, _)) in &after.resolutions {
        if let Some((earlier, earlier_time, _)) = before.resolutions.get(condition) {
            assert_eq!((resolution, at), (earlier, earlier_time));
        }
    }
}

#[test]
fn results_are_known_after_any_pause() {
    let before = run(6, NOW, 0, SECOND);
    let day = NOW.plus(DAY);
    let mut venue = Synthetic::new(6, day, Default::default());
    let unresolved = before.listings.values().filter(|listing| !before.resolutions.contains_key(&listing.condition));
    unresolved.for_each(|listing| venue.recall(&KnownMarket::listed(listing.clone(), MarketState::Active, NOW)));
    let mut stranger = before.listings.values().next().unwrap().clone();
    stranger.condition = "0x00".into();
    venue.recall(&KnownMarket::listed(stranger, MarketState::Active, NOW));
    let mut reported = BTreeMap::new();
    venue.poll(day, FOREVER, &mut |frame| {
        for update in frame.updates {
            match update {
                FeedUpdate::Resolved { condition, resolution, .. } => {
                    assert!(reported.insert(condition.clone(), Some(*resolution)).is_none_or(|known| known.is_none()));
                }
                FeedUpdate::Listed { listing, .. } => {
                    reported.entry(listing.condition.clone()).or_insert(None);
                }
                _ => {}
            }
        }
    });
    for (condition, listing) in &before.listings {
        if before.resolutions.contains_key(condition) {
            continue;
        }
        let ended = listing.end.unwrap().plus(120 * SECOND) <= day;
        assert_eq!(reported.get(condition).copied().flatten().is_some(), ended, "{}", listing.slug);
    }
    assert!(!reported.contains_key("0x00"));
}

#[test]
fn a_window_pays_by_its_underlying_price() {
    let witness = run(7, NOW, 1_300, SECOND);
    let venue = Synthetic::new(7, NOW, Default::default());
    let mut checked = 0;
    for (condition, (resolution, _, _)) in &witness.resolutions {
        let Some(window) = witness.listings[condition].updown else { continue };
        let up = venue.underlying(window.asset).goes_up(window.interval, window.start, window.end);
        let winner = if up { Outcome::First } else { Outcome::Second };
        assert_eq!(*resolution, Resolution::Winner(winner));
        checked += 1;
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn changes_and_trades_scale_with_the_liveliness() {
    let counts = |liveliness| {
        let mut venue = Synthetic::new(3, NOW, Default::default()).with_liveliness(liveliness);
        let mut witness = Witness::default();
        witness.run(&mut venue, NOW, NOW.plus(300 * SECOND), 100 * MILLISECOND);
        witness.assert_mirrored();
        let listed: Vec<String> = witness.listings.keys().cloned().collect();
        (witness.count("delta") as f64, witness.count("trade") as f64, listed)
    };
    let (calm, lively) = (counts(1), counts(10));
    let (changes, trades) = (lively.0 / calm.0, lively.1 / calm.1);
    println!("{changes:.1} times the changes, {trades:.1} times the trades");
    assert!((7.0..13.0).contains(&changes) && (7.0..13.0).contains(&trades), "{changes} {trades}");
    assert_eq!(calm.2, lively.2, "the markets depend on the liveliness");
}

#[test]
fn a_market_always_resolves_within_five_minutes() {
    let witness = run(4, NOW, 1_300, SECOND);
    let mut resolved: Vec<Timestamp> = witness.resolutions.values().map(|(_, _, seen)| *seen).collect();
    resolved.sort_unstable();
    resolved.retain(|at| *at >= NOW);
    let (mut from, mut longest) = (NOW, 0);
    for at in resolved.into_iter().chain([NOW.plus(1_300 * SECOND)]) {
        longest = longest.max(at.since(from));
        from = at;
    }
    assert!(longest <= 300 * SECOND, "{} s without a resolution", longest / SECOND);
}

#[test]
fn prices_approach_their_result_and_ticks_get_finer() {
    // The touch of every 5-minute window in its last seconds.
    let mut venue = Synthetic::new(8, NOW, Default::default());
    let mut witness = Witness::default();
    let (mut last, mut right, mut fine) = (BTreeMap::new(), 0, 0);
    for second in 0..1_800 {
        let now = NOW.plus(second * SECOND);
        venue.poll(now, FOREVER, &mut |frame| witness.see(&frame));
        for (condition, listing) in &witness.listings {
            let ends = listing.end.unwrap();
            if witness.states[condition] == MarketState::Active && ends.since(now) <= 2 * SECOND {
                last.insert(condition.clone(), witness.touch(&listing.tokens[0]));
            }
        }
    }
    for (condition, (bid, ask)) in &last {
        let Some((Resolution::Winner(winner), ..)) = witness.resolutions.get(condition) else { continue };
        let middle = (bid.map_or(0, |bid| bid.0) + ask.map_or(10_000, |ask| ask.0)) / 2;
        right += u32::from((middle > 5_000) == (*winner == Outcome::First));
        fine += u32::from([bid, ask].into_iter().flatten().any(|price| !price.0.is_multiple_of(100)));
    }
    let count = last.len() as u32;
    assert!(count > 30 && right * 10 >= count * 9, "{right} of {count} are known at the end");
    assert!(fine > 0, "no market ended on a finer grid");
    assert!(last.values().flat_map(|(bid, ask)| [bid, ask]).flatten().all(|price| *price < Price(10_000)));
}

#[test]
fn a_server_continues_with_the_current_books_after_a_pause() {
    let mut venue = Synthetic::new(5, NOW, Default::default());
    let mut witness = Witness::default();
    venue.poll(NOW, FOREVER, &mut |frame| witness.see(&frame));
    let woken = NOW.plus(9 * HOUR);
    let mut frames = 0;
    while venue.poll(woken, FOREVER, &mut |frame| witness.see(&frame)).venue_now < woken {
        frames += 1;
    }
    println!("{frames} polls, {} frames", witness.frames);
    assert!(witness.frames < 200_000, "{}", witness.frames);
    let fresh = run(5, woken, 0, SECOND);
    for (condition, listing) in &fresh.listings {
        let window = fresh.resolutions.contains_key(condition);
        assert_eq!(witness.resolutions.contains_key(condition), window, "{}", listing.slug);
        if fresh.states[condition] == MarketState::Active {
            assert_eq!(witness.levels(&listing.tokens[0]), fresh.levels(&listing.tokens[0]), "{}", listing.slug);
        }
    }
}

/// The source of the constants in `books.rs`: the same figures of the recorded tapes and of this world.
/// `PAPERTAPE_VENUE_DATA=… cargo test -p venue --lib shapes_of_recorded_books -- --ignored --nocapture`
#[test]
#[ignore = "an analysis"]
fn shapes_of_recorded_books() {
    let shape = |venue: &mut dyn Venue, name: &str, from: Timestamp, until: Timestamp, each: u64| {
        let (mut witness, mut seen) = (Witness::default(), 0_u64);
        let (mut spreads, mut levels, mut touch, mut trades) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut now, mut deltas) = (from, 0_u64);
        loop {
            let polled = venue.poll(now, until, &mut |frame| {
                witness.see(&frame);
                for update in frame.updates {
                    match update {
                        FeedUpdate::LastTrade { size, .. } => trades.push(size.0),
                        FeedUpdate::BookDelta { token, .. } => {
                            deltas += 1;
                            seen += 1;
                            let (bids, asks) = witness.levels(token);
                            let best = bids.iter().next_back().zip(asks.iter().next());
                            if let Some(((bid, size), (ask, _))) = best.filter(|_| seen.is_multiple_of(each)) {
                                spreads.push(u64::from(ask.0 - bid.0));
                                levels.push((bids.len() + asks.len()) as u64);
                                touch.push(size.0);
                            }
                        }
                        _ => {}
                    }
                }
            });
            if polled.venue_now >= until {
                break;
            }
            now = now.plus(SECOND);
        }
        let quantiles = |values: &mut Vec<u64>, scale: f64| {
            values.sort();
            [10, 50, 90, 99].map(|percent| values[values.len() * percent / 100] as f64 / scale)
        };
        println!("{name}: {deltas} deltas, {} trades", trades.len());
        println!("  spread in cents {:?}", quantiles(&mut spreads, 100.0));
        println!("  levels {:?}", quantiles(&mut levels, 1.0));
        println!("  shares at the touch {:?}", quantiles(&mut touch, 1e6));
        println!("  shares of a trade {:?}", quantiles(&mut trades, 1e6));
    };
    if let Some(path) = recorded("kalshi_ws") {
        let mut replay = Replay::open(&path, Speed::Max, false, &Default::default()).unwrap();
        shape(&mut replay, "recorded", NOW, Timestamp::from_secs(1_786_420_000), 199);
    }
    shape(&mut Synthetic::new(1, NOW, Default::default()), "synthetic", NOW, NOW.plus(1_800 * SECOND), 19);
}

/// The cost of an idle server.
/// `cargo test --release -p venue --lib cost_of_an_idle_world -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn cost_of_an_idle_world() {
    let mut venue = Synthetic::new(9, NOW, Default::default());
    let (mut now, mut polls, mut frames, mut updates) = (NOW, 0_u64, 0_u64, 0_usize);
    venue.poll(now, FOREVER, &mut |_| {});
    let begin = std::time::Instant::now();
    while now < NOW.plus(600 * SECOND) {
        let polled = venue.poll(now, FOREVER, &mut |frame| {
            frames += 1;
            updates += frame.updates.len();
        });
        (now, polls) = (polled.wake_at.unwrap(), polls + 1);
    }
    let took = begin.elapsed();
    println!("600 s of venue time: {polls} polls, {frames} frames, {updates} updates in {took:?}");
    println!("{:.3} % of a core", took.as_secs_f64() / 6.0);
}
