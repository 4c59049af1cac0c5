use super::*;
use crate::amount::{Bps, Cash, Price, Qty, TickSize};
use crate::id::{InstrumentId, KeyId, MarketId, OrderId, Outcome, PositionId, TradeId, WalletId};
use crate::market::mutation::MarketMutation;
use crate::market::terms::{Asset, Category, EventTerms, Interval, Listing, MarketState, Resolution, UpDown, Venue};
use crate::mutation::Mutation;
use crate::order::{
    CloseReason, EntryRoute, Liquidity, OrderTerms, OrderType, PriceSource, Quality, Side, Taken, TimeInForce,
};
use crate::time::Timestamp;
use crate::user::sample::{Dice, Sample};
use crate::user::{Permissions, Tier, WalletKind};

/// One line a variant: its name, its bytes as hex. A changed line is a broken journal.
const GOLDEN: &str = include_str!("golden.txt");

/// Names a variant; a new one does not compile until it is named here, and fails until its bytes are in the file.
fn name(fact: &Mutation) -> &'static str {
    match fact {
        Mutation::UserCreated { .. } => "UserCreated",
        Mutation::GrantSet { .. } => "GrantSet",
        Mutation::WalletOpened { .. } => "WalletOpened",
        Mutation::KeyIssued { .. } => "KeyIssued",
        Mutation::KeyRenamed { .. } => "KeyRenamed",
        Mutation::KeyExpiring { .. } => "KeyExpiring",
        Mutation::KeyRevoked { .. } => "KeyRevoked",
        Mutation::KeyUsed { .. } => "KeyUsed",
        Mutation::OrderPlaced { .. } => "OrderPlaced",
        Mutation::OrderFilled { .. } => "OrderFilled",
        Mutation::OrderRested { .. } => "OrderRested",
        Mutation::OrderClosed { .. } => "OrderClosed",
        Mutation::OrderHeld { .. } => "OrderHeld",
        Mutation::RequestRemembered { .. } => "RequestRemembered",
        Mutation::PositionSettled { .. } => "PositionSettled",
        Mutation::SafeguardArmed { .. } => "SafeguardArmed",
        Mutation::SafeguardEnded { .. } => "SafeguardEnded",
        Mutation::BaselineRaised { .. } => "BaselineRaised",
        Mutation::WalletRelabelled { .. } => "WalletRelabelled",
        Mutation::WalletArchived { .. } => "WalletArchived",
        Mutation::WalletReset { .. } => "WalletReset",
        Mutation::PositionReset { .. } => "PositionReset",
        Mutation::EquityNoted { .. } => "EquityNoted",
    }
}

fn market_name(fact: &MarketMutation) -> &'static str {
    match fact {
        MarketMutation::MarketListed { .. } => "MarketListed",
        MarketMutation::MarketStateChanged { .. } => "MarketStateChanged",
        MarketMutation::TickChanged { .. } => "TickChanged",
        MarketMutation::EndChanged { .. } => "EndChanged",
        MarketMutation::MarketResolved { .. } => "MarketResolved",
        MarketMutation::MarketSettled { .. } => "MarketSettled",
        MarketMutation::TapeReached { .. } => "TapeReached",
        MarketMutation::Restored { .. } => "Restored",
        MarketMutation::ClockSetBack { .. } => "ClockSetBack",
    }
}

/// Every variant once, with values that `dice` chooses.
fn every_variant(dice: &mut Dice) -> Vec<Mutation> {
    let at = Timestamp(dice.next());
    let wallet = WalletId(dice.next());
    let key = KeyId(dice.next());
    let order = OrderId(dice.next());
    vec![
        Mutation::UserCreated { sub: dice.maybe(Dice::text), email: dice.maybe(Dice::text), at },
        Mutation::GrantSet { tier: tier(dice), expires_at: dice.maybe(moment), at },
        Mutation::WalletOpened {
            wallet,
            kind: dice.pick(&[WalletKind::Main, WalletKind::Api, WalletKind::Sandbox, WalletKind::Competition]),
            label: dice.maybe(Dice::text),
            baseline: cash(dice),
            generation: dice.next() as u32,
            parent: dice.maybe(|dice| WalletId(dice.next())),
            at,
        },
        Mutation::KeyIssued {
            key,
            hash: [dice.next() as u8; 32],
            alias_hash: [dice.next() as u8; 32],
            prefix: dice.text(),
            name: dice.maybe(Dice::text),
            tier: tier(dice),
            permissions: dice.pick(&[Permissions::Read, Permissions::ReadTrade]),
            beta_until: dice.maybe(moment),
            at,
        },
        Mutation::KeyRenamed { key, name: dice.maybe(Dice::text), at },
        Mutation::KeyExpiring { key, expires_at: moment(dice), replaced_by: KeyId(dice.next()), at },
        Mutation::KeyRevoked { key, at },
        Mutation::KeyUsed { key, at },
        Mutation::OrderPlaced { order, terms: terms(dice), counted: dice.chance(50), at },
        Mutation::OrderFilled {
            order,
            trade: TradeId(dice.next()),
            position: PositionId(dice.next()),
            qty: Qty(dice.next()),
            notional: cash(dice),
            fee: cash(dice),
            fee_rate: Bps(dice.next() as u32),
            liquidity: dice.pick(&[Liquidity::Taker, Liquidity::Maker]),
            source: source(dice),
            quote_age_ms: dice.maybe(small),
            cost_out: cash(dice),
            reserved_cash: cash(dice),
            reserved_qty: Qty(dice.next()),
            levels: (0..dice.below(4))
                .map(|_| Taken {
                    price: Price(dice.next() as u16),
                    qty: Qty(dice.next()),
                    fee: cash(dice),
                    mirrored: dice.chance(50),
                })
                .collect(),
            at,
        },
        Mutation::OrderRested {
            order,
            reserved_cash: cash(dice),
            reserved_qty: Qty(dice.next()),
            awaiting_book: dice.chance(50),
            held: dice.chance(50),
            at,
        },
        Mutation::OrderClosed { order, reason: reason(dice), at },
        Mutation::OrderHeld { order, held: dice.chance(50), at },
        Mutation::RequestRemembered { order, client_order_id: dice.text(), digest: [dice.next() as u8; 32] },
        Mutation::PositionSettled {
            position: PositionId(dice.next()),
            payout_per_share: Price(dice.next() as u16),
            payout: cash(dice),
            at,
        },
        Mutation::SafeguardArmed { label: dice.text(), interval_ms: small(dice), at },
        Mutation::SafeguardEnded { label: dice.text(), at },
        Mutation::BaselineRaised { wallet, baseline: cash(dice), at },
        Mutation::WalletRelabelled { wallet, label: dice.maybe(Dice::text), at },
        Mutation::WalletArchived { wallet, at },
        Mutation::WalletReset { wallet, baseline: cash(dice), at },
        Mutation::PositionReset { position: PositionId(dice.next()), at },
        Mutation::EquityNoted { wallet, hour: moment(dice), value: cash(dice), at },
    ]
}

fn every_market_variant(dice: &mut Dice) -> Vec<MarketMutation> {
    let (market, at) = (MarketId(dice.next() as u32), moment(dice));
    let states =
        [MarketState::Upcoming, MarketState::Active, MarketState::Halted, MarketState::Closed, MarketState::Resolved];
    let resolutions = [Resolution::Winner(Outcome::First), Resolution::Winner(Outcome::Second), Resolution::Split];
    vec![
        MarketMutation::MarketListed { market, listing: Box::new(listing(dice)), state: dice.pick(&states), at },
        MarketMutation::MarketStateChanged { market, state: dice.pick(&states), ended: dice.chance(50), at },
        MarketMutation::TickChanged { market, tick: TickSize(dice.next() as u16), at },
        MarketMutation::EndChanged { market, end: dice.maybe(moment), at },
        MarketMutation::MarketResolved { market, resolution: dice.pick(&resolutions), at },
        MarketMutation::MarketSettled { market, at },
        MarketMutation::TapeReached { tape: [dice.next() as u8; 32], reached: at },
        MarketMutation::Restored { instance: [0xa5; 16], parent: [0x5a; 16], lsn: 41, at },
        MarketMutation::ClockSetBack { from: Timestamp(0x0123_4567_89ab_cdef), at },
    ]
}

/// A random listing.
pub(crate) fn listing(dice: &mut Dice) -> Listing {
    Listing {
        venue: dice.pick(&[Venue::Synthetic, Venue::Polymarket, Venue::Kalshi]),
        venue_market_id: dice.text(),
        condition: dice.text(),
        tokens: [dice.text(), dice.text()],
        outcomes: [dice.text(), dice.text()],
        slug: dice.text(),
        question: dice.text(),
        description: dice.maybe(Dice::text),
        image: dice.maybe(Dice::text),
        label: dice.maybe(Dice::text),
        category: dice.pick(&Category::ALL),
        tags: (0..dice.below(4)).map(|_| dice.text()).collect(),
        event: dice.maybe(|dice| EventTerms {
            id: dice.text(),
            slug: dice.text(),
            title: dice.text(),
            image: dice.maybe(Dice::text),
            end: dice.maybe(moment),
        }),
        tick: TickSize(dice.next() as u16),
        min_order_size: dice.maybe(|dice| Qty(dice.next())),
        neg_risk: dice.chance(50),
        start: dice.maybe(moment),
        end: dice.maybe(moment),
        updown: dice.maybe(|dice| UpDown {
            asset: dice.pick(&Asset::ALL),
            interval: dice.pick(&Interval::ALL),
            start: moment(dice),
            end: moment(dice),
        }),
        sports: dice.chance(50),
    }
}

fn terms(dice: &mut Dice) -> OrderTerms {
    use TimeInForce::{Fak, Fok, Gtc, Gtd, Ioc};
    OrderTerms {
        wallet: WalletId(dice.next()),
        key: KeyId(dice.next()),
        instrument: InstrumentId(dice.next() as u32),
        side: dice.pick(&[Side::Buy, Side::Sell]),
        order_type: dice.pick(&[OrderType::Market, OrderType::Limit]),
        time_in_force: dice.pick(&[Gtc, Gtd, Fok, Fak, Ioc]),
        limit: Price(dice.next() as u16),
        quantity: Qty(dice.next()),
        amount: dice.maybe(cash),
        expiration: dice.maybe(moment),
        post_only: dice.chance(50),
        client_order_id: dice.maybe(Dice::text),
        route: dice.pick(&[EntryRoute::Native, EntryRoute::Batch, EntryRoute::Venue, EntryRoute::Clob]),
        fee_rate: Bps(small(dice)),
        marketable: dice.chance(50),
        quality: Quality {
            displayed: dice.maybe(cash),
            quote_age_ms: dice.maybe(small),
            spread_bps: dice.maybe(small),
            slippage_bps: dice.maybe(small),
            impact_bps: dice.maybe(small),
            book_walk_levels: dice.maybe(|dice| dice.next() as u16),
            fillable: dice.maybe(|dice| Qty(dice.next())),
            high_slippage: dice.chance(50),
            stale_quote: dice.chance(50),
        },
        rounded_from: dice.maybe(Dice::text),
    }
}

fn moment(dice: &mut Dice) -> Timestamp {
    Timestamp(dice.next())
}

fn cash(dice: &mut Dice) -> Cash {
    Cash(dice.next() as i64)
}

fn small(dice: &mut Dice) -> u32 {
    dice.next() as u32
}

fn tier(dice: &mut Dice) -> Tier {
    dice.pick(&[Tier::Free, Tier::Pro, Tier::ProPlus, Tier::Enterprise])
}

fn source(dice: &mut Dice) -> PriceSource {
    dice.pick(&[
        PriceSource::BookWalk,
        PriceSource::MatchingEngine,
        PriceSource::BestAsk,
        PriceSource::BestBid,
        PriceSource::ClobMidpointCached,
        PriceSource::LastTrade,
        PriceSource::Display,
        PriceSource::EmergencyExitEntryPrice,
        PriceSource::EmergencyExitEntryPricePostExpiry,
    ])
}

fn reason(dice: &mut Dice) -> CloseReason {
    dice.pick(&[
        CloseReason::FokNotFilled,
        CloseReason::FakNoFill,
        CloseReason::FakRest,
        CloseReason::ExecutionFailed,
        CloseReason::UserCancelled,
        CloseReason::CancelAll,
        CloseReason::CancelMarket,
        CloseReason::GtdExpired,
        CloseReason::HeartbeatLapsed,
        CloseReason::AutoCancelled,
        CloseReason::BalanceReset,
        CloseReason::WalletArchived,
        CloseReason::MarketResolved,
        CloseReason::MarketClosed,
    ])
}

fn encoded<F: Fact>(fact: &F) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(std::slice::from_ref(fact), &mut bytes);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The lines of the golden file. New variants come last, so that the values of the others stay.
fn golden_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for seed in [1, 2] {
        let facts = every_variant(&mut Dice(seed));
        lines.extend(facts.iter().map(|fact| format!("{} {}", name(fact), hex(&encoded(fact)))));
        let facts = every_market_variant(&mut Dice(seed));
        lines.extend(facts.iter().map(|fact| format!("{} {}", market_name(fact), hex(&encoded(fact)))));
    }
    lines.sort();
    lines
}

#[test]
fn golden_bytes_stay_readable_and_writable() {
    let now = golden_lines();
    for line in GOLDEN.lines() {
        assert!(now.iter().any(|now| now == line), "the journal's bytes changed, old logs cannot be read: {line}");
    }
    let missing: Vec<&String> = now.iter().filter(|now| !GOLDEN.lines().any(|line| line == *now)).collect();
    assert!(missing.is_empty(), "lines for golden.txt:\n{missing:#?}");
}

#[test]
fn wincode_writes_and_reads_the_bytes_of_bincode() {
    let layout = bincode::config::legacy();
    let mut count = 0;
    for seed in 0..2_000 {
        let mut dice = Dice(seed);
        for fact in every_variant(&mut dice) {
            let bytes = encoded(&fact);
            assert_eq!(bytes, bincode::encode_to_vec(&fact, layout).expect("memory"), "seed {seed} {}", name(&fact));
            let read: Vec<_> = decode::<Mutation>(VERSION, &bytes).expect("this version").collect();
            assert_eq!(read, [Ok(fact.clone())]);
            let (read, len) = bincode::decode_from_slice::<Mutation, _>(&bytes, layout).expect("same layout");
            assert_eq!((read, len), (fact, bytes.len()));
            count += 1;
        }
        for fact in every_market_variant(&mut dice) {
            let bytes = encoded(&fact);
            assert_eq!(bytes, bincode::encode_to_vec(&fact, layout).expect("memory"), "seed {seed}");
            let read: Vec<_> = decode::<MarketMutation>(VERSION, &bytes).expect("this version").collect();
            assert_eq!(read, [Ok(fact)]);
            count += 1;
        }
    }
    println!("{count} facts");
}

#[test]
fn a_record_is_its_facts_one_behind_the_other() {
    let mut sample = Sample::new(3, 4, 6);
    for _ in 0..2_000 {
        let (_, facts) = sample.record();
        let mut bytes = vec![1, 2, 3];
        encode(&facts, &mut bytes);
        let read: Result<Vec<Mutation>, _> = decode(VERSION, &bytes[3..]).expect("this version").collect();
        assert_eq!(read, Ok(facts));
    }
}

#[test]
fn an_unknown_version_is_refused_by_name() {
    for version in [0, VERSION_NEWEST + 1, u16::MAX] {
        assert_eq!(decode::<Mutation>(version, &[]).err(), Some(CodecError::Version(version)));
    }
}

#[test]
fn a_length_beyond_the_bytes_is_an_error() {
    let order = [9_u8, 0, 0, 0];
    let end = 16_u32.to_le_bytes();
    for (bytes, error) in [
        // SafeguardEnded with a label of 2^63 bytes, of 2^20 + 1, of 9 where 8 are left.
        ([&end[..], &(1_u64 << 63).to_le_bytes(), &[0; 8]].concat(), CodecError::Length),
        ([&end[..], &((1_u64 << 20) + 1).to_le_bytes(), &[0; 8]].concat(), CodecError::Length),
        ([&end[..], &9_u64.to_le_bytes(), &[0; 8]].concat(), CodecError::Length),
        ([&end[..], &2_u64.to_le_bytes(), &[0xff, 0xff]].concat(), CodecError::Text),
        ([&[23, 0, 0, 0][..], &[0; 64]].concat(), CodecError::Variant),
        (order.to_vec(), CodecError::Length),
        (vec![0], CodecError::Length),
    ] {
        let read: Vec<_> = decode::<Mutation>(VERSION, &bytes).expect("this version").collect();
        assert_eq!(read, [Err(error)], "{}", hex(&bytes));
    }
}

/// Truncated anywhere, and with bytes changed anywhere: an error or facts, never a panic; and what decodes is what
/// encodes to the same bytes.
#[test]
fn broken_bytes_are_an_error_or_other_facts() {
    let (mut errors, mut facts_count) = (0, 0);
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let facts = every_variant(&mut dice);
        let mut bytes = Vec::new();
        encode(&facts, &mut bytes);
        for end in 0..bytes.len() {
            let read: Vec<_> = decode::<Mutation>(VERSION, &bytes[..end]).expect("this version").collect();
            let whole = read.iter().filter(|fact| fact.is_ok()).count();
            assert!(read[..whole].iter().zip(&facts).all(|(read, fact)| read.as_ref() == Ok(fact)));
            errors += read.len() - whole;
        }
        for _ in 0..2_000 {
            let mut broken = bytes.clone();
            for _ in 0..1 + dice.below(4) {
                let at = dice.below(broken.len() as u64) as usize;
                broken[at] ^= 1 << dice.below(8);
            }
            let mut written = Vec::new();
            let mut broke = false;
            for fact in decode::<Mutation>(VERSION, &broken).expect("this version") {
                match fact {
                    Ok(fact) => encode(&[fact], &mut written),
                    Err(_) => broke = true,
                }
                facts_count += 1;
            }
            errors += usize::from(broke);
            assert!(broken.starts_with(&written) && (broke || written.len() == broken.len()));
        }
        let market_facts = every_market_variant(&mut dice);
        let mut bytes = Vec::new();
        encode(&market_facts, &mut bytes);
        for _ in 0..500 {
            let mut broken = bytes.clone();
            let at = dice.below(broken.len() as u64) as usize;
            broken[at] = dice.next() as u8;
            errors += decode::<MarketMutation>(VERSION, &broken).expect("this version").filter(Result::is_err).count();
        }
    }
    println!("{errors} errors, {facts_count} facts");
    assert!(errors > 10_000 && facts_count > 10_000);
}
