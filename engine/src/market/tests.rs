//! Markets as the venue reports them: only what is new becomes a fact, and facts alone make the state.

use super::catalog::{Catalog, EventRow, Figures};
use super::mutation::MarketMutation;
use super::terms::*;
use super::*;
use crate::amount::{Price, Qty};
use crate::book::{BookSide, Books, Depth, publish, publish_all};
use crate::fact;
use crate::id::{InstrumentId, Outcome};
use crate::rehearsal::AddressKind;
use std::sync::Arc;

const AT: Timestamp = Timestamp(1_000);
/// Venue time in these tests.
const NOW: Timestamp = Timestamp(500);

/// The venue's schedule of sports.
const SPORTS: FeeSchedule = FeeSchedule { rate: 30_000, exponent: 1, taker_only: true, rebate_rate: 250_000 };

fn listing(number: u32) -> Listing {
    Listing {
        venue: Venue::Synthetic,
        venue_market_id: number.to_string(),
        condition: format!("0x{number:064x}"),
        tokens: [format!("{number}01"), format!("{number}02")],
        outcomes: ["Yes".to_owned(), "No".to_owned()],
        slug: format!("market-{number}"),
        question: format!("Market {number}?"),
        description: None,
        image: None,
        label: None,
        category: Category::Weather,
        tags: vec!["rain".to_owned()],
        event: None,
        tick: TickSize(100),
        min_order_size: None,
        neg_risk: false,
        start: None,
        end: Some(Timestamp(900)),
        updown: None,
        sports: false,
    }
}

/// Decides, applies, and returns the facts.
fn apply_all(markets: &mut Markets, facts: impl IntoIterator<Item = MarketMutation>) -> Vec<MarketMutation> {
    let facts: Vec<MarketMutation> = facts.into_iter().collect();
    facts.iter().for_each(|fact| markets.apply(fact));
    facts
}

fn listed(count: u32) -> Markets {
    let mut markets = Markets::new();
    for number in 0..count {
        let facts = markets.list(&listing(number), MarketState::Active, NOW, AT);
        apply_all(&mut markets, facts);
    }
    markets
}

#[test]
fn only_changes_become_facts() {
    let mut markets = listed(1);
    let market = MarketId(0);
    let changed =
        |state, ended| MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, state, ended, at: AT });
    let named = |change: &dyn Fn(&mut Listing)| {
        let mut listing = listing(0);
        change(&mut listing);
        listing
    };
    let later = Some(Timestamp(950));
    type Rows = Vec<(&'static str, Listing, MarketState, Timestamp, Vec<MarketMutation>)>;
    let rows: Rows = vec![
        ("unchanged", listing(0), MarketState::Active, NOW, vec![]),
        ("texts stay as listed", named(&|l| l.question.clear()), MarketState::Active, NOW, vec![]),
        ("a state", listing(0), MarketState::Halted, NOW, vec![changed(MarketState::Halted, false)]),
        (
            "a tick",
            named(&|l| l.tick = TickSize(10)),
            MarketState::Halted,
            NOW,
            vec![MarketMutation::TickChanged(fact::TickChanged { market, tick: TickSize(10), at: AT })],
        ),
        (
            "an end, the tick back, a state",
            named(&|l| l.end = later),
            MarketState::Active,
            NOW,
            vec![
                MarketMutation::TickChanged(fact::TickChanged { market, tick: TickSize(100), at: AT }),
                MarketMutation::EndChanged(fact::EndChanged { market, end: later, at: AT }),
                changed(MarketState::Active, false),
            ],
        ),
        (
            "the end passed",
            named(&|l| l.end = later),
            MarketState::Active,
            Timestamp(950),
            vec![changed(MarketState::Active, true)],
        ),
        (
            "the end moved on, and it is closed",
            named(&|l| l.end = Some(Timestamp(2_000))),
            MarketState::Closed,
            Timestamp(951),
            vec![
                MarketMutation::EndChanged(fact::EndChanged { market, end: Some(Timestamp(2_000)), at: AT }),
                changed(MarketState::Closed, false),
            ],
        ),
        (
            "resolved without a resolution is closed",
            named(&|l| l.end = Some(Timestamp(2_000))),
            MarketState::Resolved,
            NOW,
            vec![],
        ),
    ];
    for (name, listing, state, venue_now, facts) in rows {
        let decided = markets.list(&listing, state, venue_now, AT);
        assert_eq!(apply_all(&mut markets, decided), facts, "{name}");
    }
    assert_eq!(markets.len(), 1);
}

#[test]
fn a_market_listed_after_its_end_has_ended() {
    let mut markets = Markets::new();
    let facts = markets.list(&listing(0), MarketState::Active, Timestamp(900), AT);
    assert_eq!(apply_all(&mut markets, facts).len(), 2);
    assert!(markets.market(MarketId(0)).expect("listed").ended);
}

#[test]
fn end_dates_pass_one_by_one() {
    let mut markets = listed(3);
    let ends = [Timestamp(700), Timestamp(600)];
    for (number, end) in ends.into_iter().enumerate() {
        let facts = markets.end(MarketId(number as u32), Some(end), NOW, AT);
        apply_all(&mut markets, facts);
    }
    for (now, next, ended) in [
        (599, Some(600), vec![]),
        (600, Some(700), vec![1]),
        (899, Some(900), vec![0]),
        (900, None, vec![2]),
        (999, None, vec![]),
    ] {
        let facts = markets.end_passed(Timestamp(now), AT);
        let facts = apply_all(&mut markets, facts);
        let of = |fact: &MarketMutation| match fact {
            MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, ended: true, .. }) => market.0,
            other => panic!("not an end: {other:?}"),
        };
        assert_eq!(facts.iter().map(of).collect::<Vec<_>>(), ended, "at {now}");
        assert_eq!(markets.next_end(), next.map(Timestamp), "at {now}");
    }
    // An end that moves into the future opens the market again.
    let facts = markets.end(MarketId(1), Some(Timestamp(5_000)), Timestamp(999), AT);
    assert_eq!(apply_all(&mut markets, facts).len(), 2);
    assert!(!markets.market(MarketId(1)).expect("listed").ended);
    assert_eq!(markets.next_end(), Some(Timestamp(5_000)));
}

#[test]
fn the_first_resolution_counts_and_nothing_changes_after_it() {
    let mut markets = listed(2);
    let market = MarketId(1);
    let first = Resolution::Winner(Outcome::Second);
    assert_eq!(markets.settle(market, AT), None, "not resolved");
    let facts = markets.resolve(market, first, AT);
    apply_all(&mut markets, facts);
    assert_eq!(markets.unsettled().collect::<Vec<_>>(), [market]);
    let frozen = markets.market(market).expect("listed").clone();
    assert_eq!((frozen.state, frozen.resolution), (MarketState::Resolved, Some((first, AT))));

    let mut named = listing(1);
    (named.tick, named.end) = (TickSize(1), None);
    assert_eq!(markets.list(&named, MarketState::Active, Timestamp(9_999), AT), []);
    assert_eq!(markets.resolve(market, Resolution::Split, AT), None);
    assert_eq!(markets.state(market, MarketState::Active, AT), None);
    assert_eq!(markets.tick(market, TickSize(1), AT), []);
    assert_eq!(markets.end(market, None, NOW, AT), []);
    assert!(markets.end_passed(Timestamp(9_999), AT).iter().all(|fact| matches!(
        fact,
        MarketMutation::MarketStateChanged(fact::MarketStateChanged { market: MarketId(0), .. })
    )));

    let settled = markets.settle(market, Timestamp(2_000));
    assert_eq!(
        apply_all(&mut markets, settled),
        [MarketMutation::MarketSettled(fact::MarketSettled { market, at: Timestamp(2_000) })]
    );
    assert_eq!((markets.unsettled().count(), markets.settle(market, AT)), (0, None));
    assert_eq!(markets.market(market), Some(&Market { settled_at: Some(Timestamp(2_000)), ..frozen }));
    for unknown in [MarketId(2), MarketId(u32::MAX)] {
        assert_eq!(markets.state(unknown, MarketState::Closed, AT), None);
        assert_eq!(markets.resolve(unknown, first, AT), None);
    }
}

#[test]
fn a_tape_never_goes_back() {
    let mut markets = Markets::new();
    let (one, other) = ([1; 32], [2; 32]);
    for (tape, reached, news) in [(one, 5, true), (one, 5, false), (one, 4, false), (other, 3, true), (one, 6, true)] {
        let fact = markets.tape(tape, Timestamp(reached));
        assert_eq!(apply_all(&mut markets, fact).len() == 1, news, "{reached}");
    }
    assert_eq!([one, other].map(|tape| markets.tape_reached(&tape)), [Some(Timestamp(6)), Some(Timestamp(3))]);
}

fn every_fact() -> Vec<MarketMutation> {
    let market = MarketId(0);
    vec![
        MarketMutation::MarketListed(fact::MarketListed {
            market,
            listing: Box::new(listing(0)),
            state: MarketState::Active,
            at: AT,
        }),
        MarketMutation::MarketStateChanged(fact::MarketStateChanged {
            market,
            state: MarketState::Halted,
            ended: true,
            at: AT,
        }),
        MarketMutation::TickChanged(fact::TickChanged { market, tick: TickSize(10), at: AT }),
        MarketMutation::EndChanged(fact::EndChanged { market, end: Some(Timestamp(5_000)), at: AT }),
        MarketMutation::TapeReached(fact::TapeReached { tape: [7; 32], reached: AT }),
        MarketMutation::MarketResolved(fact::MarketResolved {
            market,
            resolution: Resolution::Winner(Outcome::First),
            at: AT,
        }),
        MarketMutation::MarketSettled(fact::MarketSettled { market, at: Timestamp(3_000) }),
        MarketMutation::HistoryCut(fact::HistoryCut { day: 20_784, at: AT }),
        MarketMutation::FeeScheduleChanged(fact::FeeScheduleChanged { market, schedule: Some(SPORTS), at: AT }),
        MarketMutation::AddressDeclared(fact::AddressDeclared {
            address: [7; 20],
            declared: DeclaredAddress {
                kind: AddressKind::Proxy,
                owner: Some([9; 20]),
                exchange: true,
                neg_risk: false,
            },
            at: AT,
        }),
    ]
}

#[test]
fn facts_have_one_layout_in_both_codecs() {
    for fact in every_fact() {
        let bytes = bincode::encode_to_vec(&fact, bincode::config::legacy()).expect("memory");
        assert_eq!(wincode::serialize(&fact).expect("memory"), bytes, "{fact:?}");
        assert_eq!(wincode::deserialize::<MarketMutation>(&bytes).expect("our own bytes"), fact);
    }
}

#[test]
fn snapshots_carry_everything_and_depend_on_the_state_alone() {
    let mut markets = Markets::new();
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    for fact in every_fact() {
        markets.apply(&fact);
        bytes.clear();
        markets.encode(&mut bytes);
        let copy = Markets::decode(&bytes).expect("our own bytes");
        again.clear();
        copy.encode(&mut again);
        assert_eq!(bytes, again);
        assert_eq!(
            (&copy.markets, &copy.tapes, &copy.conditions),
            (&markets.markets, &markets.tapes, &markets.conditions)
        );
        assert_eq!((&copy.ends, &copy.unsettled), (&markets.ends, &markets.unsettled));
    }
    assert!(Markets::decode(&bytes[..bytes.len() - 1]).is_err());
    bytes.push(0);
    assert!(Markets::decode(&bytes).is_err());
}

/// A cut never goes back, and takes no byte before the first one.
#[test]
fn history_is_kept_from_the_latest_cut_on() {
    let mut markets = Markets::new();
    let mut before = Vec::new();
    markets.encode(&mut before);
    let cases = [(0, 0), (7, 7), (7, 7), (3, 7), (0, 7), (9, 9), (u32::MAX, u32::MAX)];
    for (day, expected) in cases {
        markets.apply(&MarketMutation::HistoryCut(fact::HistoryCut { day, at: AT }));
        assert_eq!(markets.history_from(), UtcDay(expected));
        let mut bytes = Vec::new();
        markets.encode(&mut bytes);
        let shown = if expected == 0 { Vec::new() } else { expected.to_le_bytes().to_vec() };
        assert_eq!(bytes, [&before[..], &shown].concat());
        assert_eq!(Markets::decode(&bytes).expect("just written").history_from(), UtcDay(expected));
    }
    // Day 0 is not written, and nothing is after a day.
    for rest in [&[0; 4][..], &[7, 0, 0], &[7, 0, 0, 0, 0]] {
        assert!(Markets::decode(&[&before[..], rest].concat()).is_err(), "{rest:?}");
    }
    println!("cuts of the history: {} cases", cases.len() + 3);
}

#[test]
fn only_a_change_of_stated_fees_becomes_a_fact() {
    let mut markets = listed(2);
    let (market, dearer) = (MarketId(0), FeeSchedule { rate: 50_000, rebate_rate: 150_000, ..SPORTS });
    let steps = [
        // what the venue states, whether it is news, what counts then
        (None, false, None),
        (Some(SPORTS), true, Some(SPORTS)),
        (Some(SPORTS), false, Some(SPORTS)),
        (Some(dearer), true, Some(dearer)),
        (None, true, None),
        (None, false, None),
        (Some(FeeSchedule::FREE), true, Some(FeeSchedule::FREE)),
    ];
    for (number, (stated, is_news, expected)) in steps.into_iter().enumerate() {
        let fact = markets.fees(market, stated, AT);
        assert_eq!(apply_all(&mut markets, fact).len() == 1, is_news, "step {number}");
        assert_eq!((markets.fee_schedule(market), markets.fee_schedule(MarketId(1))), (expected, None));
        assert_eq!(markets.has_fee_schedules(), number > 0);
    }
    let resolved = markets.resolve(market, Resolution::Split, AT);
    apply_all(&mut markets, resolved);
    assert_eq!(markets.fees(market, Some(SPORTS), AT), None, "a resolved market never changes");
    assert_eq!(markets.fees(MarketId(7), Some(SPORTS), AT), None, "an unknown market");
    println!("stated fees: {} cases", steps.len() + 2);
}

/// Without stated fees the bytes are those of before; with them they come last, and only one form of them is read.
#[test]
fn stated_fees_are_the_last_bytes_of_a_market_state() {
    let mut markets = listed(2);
    let mut before = Vec::new();
    markets.encode(&mut before);
    let encoded = |markets: &Markets| {
        let mut bytes = Vec::new();
        markets.encode(&mut bytes);
        assert_eq!(bytes[..before.len()], before);
        bytes.split_off(before.len())
    };
    let row = |market: u32, schedule: Option<FeeSchedule>| {
        let mut bytes = market.to_le_bytes().to_vec();
        bytes.push(schedule.is_some().into());
        if let Some(FeeSchedule { rate, exponent, taker_only, rebate_rate }) = schedule {
            bytes.extend(rate.to_le_bytes());
            bytes.extend(exponent.to_le_bytes());
            bytes.push(taker_only.into());
            bytes.extend(rebate_rate.to_le_bytes());
        }
        bytes
    };
    let state = |fact| MarketMutation::FeeScheduleChanged(fact);
    markets.apply(&state(fact::FeeScheduleChanged { market: MarketId(1), schedule: Some(SPORTS), at: AT }));
    let count = |count: u64| count.to_le_bytes().to_vec();
    assert_eq!(encoded(&markets), [vec![0; 4], count(1), row(1, Some(SPORTS))].concat());
    // A market that states nothing usable any more has stated something once.
    markets.apply(&state(fact::FeeScheduleChanged { market: MarketId(0), schedule: None, at: AT }));
    markets.apply(&MarketMutation::HistoryCut(fact::HistoryCut { day: 7, at: AT }));
    let all = [7_u32.to_le_bytes().to_vec(), count(2), row(0, None), row(1, Some(SPORTS))].concat();
    assert_eq!(encoded(&markets), all);
    let copy = Markets::decode(&[&before[..], &all].concat()).expect("our own bytes");
    assert_eq!((copy.fee_schedules, copy.history_from), (markets.fee_schedules.clone(), UtcDay(7)));

    let day = || vec![0; 4];
    let wild = |change: &dyn Fn(&mut FeeSchedule)| {
        let mut schedule = SPORTS;
        change(&mut schedule);
        row(1, Some(schedule))
    };
    let hostile = [
        ("none", [day(), count(0)].concat()),
        ("twice", [day(), count(2), row(1, None), row(1, None)].concat()),
        ("descending", [day(), count(2), row(1, None), row(0, None)].concat()),
        ("unlisted", [day(), count(1), row(2, None)].concat()),
        ("more than counted", [day(), count(1), row(0, None), row(1, None)].concat()),
        ("fewer than counted", [day(), count(3), row(0, None), row(1, None)].concat()),
        ("a count beyond all bytes", [day(), count(u64::MAX), row(0, None)].concat()),
        ("a rate above one", [day(), count(1), wild(&|of| of.rate = 1_000_001)].concat()),
        ("a rebate above one", [day(), count(1), wild(&|of| of.rebate_rate = u32::MAX)].concat()),
        ("an exponent above four", [day(), count(1), wild(&|of| of.exponent = 5)].concat()),
        ("a flag of 2", [day(), count(1), vec![1, 0, 0, 0, 2]].concat()),
    ];
    for (name, bytes) in &hostile {
        assert!(Markets::decode(&[&before[..], bytes].concat()).is_err(), "{name}");
    }
    for end in before.len() + 5..before.len() + all.len() {
        let cut = &[&before[..], &all].concat()[..end];
        assert!(Markets::decode(cut).is_err(), "cut at {end}");
    }
    println!("bytes of stated fees: {} cases", hostile.len() + all.len() - 5);
}

/// The read side packs a schedule into one number.
#[test]
fn the_catalogue_has_the_stated_fees() {
    let catalog = Catalog::new();
    let market = MarketId(0);
    catalog.add(market, &Market::listed(listing(0), MarketState::Active, AT), Some(SPORTS));
    let cell = catalog.market(market).expect("listed");
    assert_eq!(cell.fee_schedule(), Some(SPORTS));
    let mut cases = 0;
    for rate in [0, 1, 30_000, 999_999, 1_000_000] {
        for rebate_rate in [0, 1, 250_000, 1_000_000] {
            for exponent in 0..=FeeSchedule::EXPONENT_MAX {
                for taker_only in [true, false] {
                    let schedule = Some(FeeSchedule { rate, exponent, taker_only, rebate_rate });
                    for stated in [schedule, None] {
                        let fact = fact::FeeScheduleChanged { market, schedule: stated, at: AT };
                        catalog.publish(&MarketMutation::FeeScheduleChanged(fact));
                        assert_eq!(cell.fee_schedule(), stated);
                        cases += 1;
                    }
                }
            }
        }
    }
    println!("fees of the catalogue: {cases} cases");
}

/// The latest declaration of an address counts, and nothing is written before the first.
#[test]
fn an_address_is_what_was_declared_last() {
    let mut markets = Markets::new();
    let mut before = Vec::new();
    markets.encode(&mut before);
    let eoa = DeclaredAddress { kind: AddressKind::Eoa, owner: None, exchange: true, neg_risk: true };
    let safe = DeclaredAddress { kind: AddressKind::Safe, owner: Some([1; 20]), exchange: false, neg_risk: true };
    type Known = Vec<([u8; 20], DeclaredAddress)>;
    let cases: [(u8, DeclaredAddress, Known); 4] = [
        (9, eoa, vec![([9; 20], eoa)]),
        (2, safe, vec![([2; 20], safe), ([9; 20], eoa)]),
        (9, safe, vec![([2; 20], safe), ([9; 20], safe)]),
        (9, safe, vec![([2; 20], safe), ([9; 20], safe)]),
    ];
    let known = |markets: &Markets| markets.addresses().map(|(at, known)| (*at, *known)).collect::<Vec<_>>();
    let mut bytes = Vec::new();
    for (address, declared, expected) in &cases {
        let fact = fact::AddressDeclared { address: [*address; 20], declared: *declared, at: AT };
        markets.apply(&MarketMutation::AddressDeclared(fact));
        assert_eq!(known(&markets), *expected);
        bytes.clear();
        markets.encode(&mut bytes);
        assert_eq!(known(&Markets::decode(&bytes).expect("just written")), *expected);
    }
    // No cut of the bytes is another state, and neither is a list without addresses.
    for end in before.len() + 1..bytes.len() {
        assert!(Markets::decode(&bytes[..end]).is_err(), "{end} bytes");
    }
    assert!(Markets::decode(&[&before[..], &[0; 4 + 8]].concat()).is_err());
    println!("declared addresses: {} cases", cases.len() + bytes.len() - before.len());
}

/// A length beyond the bytes is refused before memory is allocated: a failed allocation would end the process.
#[test]
fn no_length_in_a_snapshot_allocates_more_than_its_bytes() {
    let mut markets = Markets::new();
    every_fact().iter().for_each(|fact| markets.apply(fact));
    let mut bytes = Vec::new();
    markets.encode(&mut bytes);
    for at in 0..bytes.len() - 8 {
        for length in [1 << 40, u64::MAX >> 1, u64::MAX] {
            let mut broken = bytes.clone();
            broken[at..at + 8].copy_from_slice(&u64::to_le_bytes(length));
            // Some fields may have that value; the test is that this returns.
            let _ = Markets::decode(&broken);
        }
    }
}

#[test]
fn read_sides_filled_by_facts_or_at_boot_are_equal() {
    let (mut markets, published, booted) = (Markets::new(), Catalog::new(), Catalog::new());
    let books = [Arc::new(Books::new()), Arc::new(Books::new())];
    let [mut published_books, mut booted_books] = books.map(|books| books.writer().expect("the first"));
    for fact in every_fact() {
        markets.apply(&fact);
        publish(&fact, &published, &mut published_books);
    }
    publish_all(&markets, &booted, &mut booted_books);
    for (catalog, writer) in [(&published, &mut published_books), (&booted, &mut booted_books)] {
        let cell = catalog.market(MarketId(0)).expect("listed");
        let status = cell.status();
        assert_eq!((status.state, status.ended, status.settled), (MarketState::Resolved, true, true));
        assert_eq!((cell.resolution(), cell.resolved_at()), (Some(Resolution::Winner(Outcome::First)), Some(AT)));
        assert_eq!((cell.tick(), cell.end(), cell.tradable()), (TickSize(10), Some(Timestamp(5_000)), false));
        assert_eq!((&cell.listing, cell.listed_at), (&listing(0), AT));
        assert_eq!(cell.fee_schedule(), Some(SPORTS));
        // The ladders have the tick.
        let token = InstrumentId(0);
        writer.frame(0, AT, |frame| frame.delta(token, &[(BookSide::Bid, Price(4_110), Qty(1))], AT));
        let mut depth = Depth::default();
        writer.books().copy(token, 1, &mut depth).expect("known");
        assert_eq!(depth.bids.first().map(|level| level.price), Some(Price(4_110)));
    }
}

#[test]
fn the_catalog_finds_markets_by_all_their_ids() {
    let catalog = Catalog::new();
    for number in 0..1_000 {
        let mut listing = listing(number);
        if number == 999 {
            listing.slug = "market-5".to_owned();
        }
        catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
            market: MarketId(number),
            listing: Box::new(listing),
            state: MarketState::Upcoming,
            at: AT,
        }));
    }
    for number in [0, 1, 500, 999] {
        let listing = &catalog.market(MarketId(number)).expect("listed").listing;
        assert_eq!(catalog.by_condition(&listing.condition), Some(MarketId(number)));
        for outcome in [Outcome::First, Outcome::Second] {
            let instrument = MarketId(number).instrument(outcome);
            assert_eq!(catalog.by_token(&listing.tokens[outcome as usize]), Some(instrument));
            assert_eq!(catalog.of_instrument(instrument).map(|cell| cell.id), Some(MarketId(number)));
        }
    }
    assert_eq!(catalog.by_slug("market-5"), Some(MarketId(5)), "of two the one listed first");
    assert_eq!(catalog.by_slug("market-998"), Some(MarketId(998)));
    for missing in ["", "market-1000", "5"] {
        assert_eq!(
            (catalog.by_slug(missing), catalog.by_token(missing), catalog.by_condition(missing)),
            (None, None, None)
        );
    }
    assert!(catalog.market(MarketId(1_000)).is_none());
}

#[test]
fn tradable_means_active_not_ended_not_resolved() {
    let catalog = Catalog::new();
    let market = MarketId(0);
    catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
        market,
        listing: Box::new(listing(0)),
        state: MarketState::Upcoming,
        at: AT,
    }));
    let cell = catalog.market(market).expect("listed");
    assert!(!cell.tradable());
    for state in [MarketState::Upcoming, MarketState::Active, MarketState::Halted, MarketState::Closed] {
        for ended in [false, true] {
            catalog.publish(&MarketMutation::MarketStateChanged(fact::MarketStateChanged {
                market,
                state,
                ended,
                at: AT,
            }));
            assert_eq!((cell.state(), cell.ended()), (state, ended));
            assert_eq!(cell.tradable(), state == MarketState::Active && !ended);
        }
    }
    for resolution in [Resolution::Winner(Outcome::Second), Resolution::Split] {
        catalog.publish(&MarketMutation::MarketResolved(fact::MarketResolved { market, resolution, at: AT }));
        assert_eq!((cell.resolution(), cell.tradable()), (Some(resolution), false));
    }
}

#[test]
fn lists_are_sorted_by_volume_and_only_when_something_changed() {
    let catalog = Catalog::new();
    let event = |id: &str| {
        Some(EventTerms { id: id.to_owned(), slug: id.to_owned(), title: id.to_owned(), image: None, end: None })
    };
    let window = |start| {
        Some(UpDown { asset: Asset::Btc, interval: Interval::Hour, start: Timestamp(start), end: Timestamp(start + 1) })
    };
    // number → volume, event, up-or-down window
    let rows = [
        (Some(50), event("a"), None),
        (None, event("a"), None),
        (Some(90), event("b"), None),
        (Some(50), None, None),
        (Some(0), event("a"), None),
        (Some(999), event("b"), window(7)),
        (None, None, window(5)),
    ];
    for (number, (volume_total, event, updown)) in rows.into_iter().enumerate() {
        let number = number as u32;
        // Conditions descend, so that equal volumes show the second key.
        let sports = number == 1;
        let condition = format!("0x{:064x}", 100 - number);
        let listing = Listing { event, updown, condition, sports, ..listing(number) };
        let market = MarketId(number);
        catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
            market,
            listing: Box::new(listing),
            state: MarketState::Active,
            at: AT,
        }));
        catalog.figures(market, Figures { volume_total, ..Figures::default() }, Timestamp(3));
    }
    let ids = |markets: &[MarketId]| markets.iter().map(|market| market.0).collect::<Vec<_>>();
    assert!(catalog.ordered().is_empty());
    assert!(catalog.sort());
    assert!(!catalog.sort(), "nothing changed");
    let lists = catalog.lists();
    assert_eq!((ids(&lists.markets), ids(&lists.updown)), (vec![2, 3, 0, 4, 1], vec![6, 5]));
    let row = |row: &EventRow| (row.first.0, row.volume, row.sports, ids(&row.markets));
    let events: Vec<_> = lists.events.iter().map(row).collect();
    assert_eq!(events, [(2, 90, false, vec![2]), (0, 50, true, vec![0, 4, 1])], "without up-or-down markets");

    let figures = Figures { volume_24h: Some(1), volume_total: Some(51), liquidity: None };
    catalog.figures(MarketId(0), figures, Timestamp(4));
    let cell = catalog.market(MarketId(0)).expect("listed");
    assert_eq!((cell.figures(), cell.figures_at()), (figures, Some(Timestamp(4))));
    assert_eq!(ids(&catalog.ordered()), [2, 3, 0, 4, 1], "before the sort");
    assert!(catalog.sort());
    assert_eq!(ids(&catalog.ordered()), [2, 0, 3, 4, 1]);
    assert_eq!(catalog.lists().generation, lists.generation + 1);
    catalog.figures(MarketId(0), figures, Timestamp(5));
    assert!(!catalog.sort(), "the same figures");
}

#[test]
fn the_first_strike_is_kept() {
    let catalog = Catalog::new();
    let market = MarketId(0);
    catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
        market,
        listing: Box::new(listing(0)),
        state: MarketState::Active,
        at: AT,
    }));
    let shown = || {
        let cell = catalog.market(market).expect("listed");
        (cell.strike(), cell.price_to_beat())
    };
    for (strike, price_to_beat, expected) in [
        (None, None, (None, None)),
        (None, Some("2511.40"), (None, Some("2511.40"))),
        (Some("2511.4"), Some("7"), (Some("2511.4"), Some("2511.40"))),
        (Some("8"), None, (Some("2511.4"), Some("2511.40"))),
    ] {
        catalog.strike(market, strike, price_to_beat);
        assert_eq!(shown(), expected);
    }
    catalog.strike(MarketId(1), Some("1"), None);
}
