use super::*;
use crate::amount::{Bps, Cash, Price, Qty, TickSize};
use crate::describe::Words as _;
use crate::fact;
use crate::fee::FeeRounding;
use crate::id::{InstrumentId, KeyId, MarketId, OrderId, Outcome, PositionId, TradeId, UserId, WalletId};
use crate::market::mutation::MarketMutation;
use crate::market::terms::{
    Asset, Category, EventTerms, FeeSchedule, Interval, Listing, MarketState, Resolution, UpDown, Venue,
};
use crate::mutation::Mutation;
use crate::mutation::earlier::{first as earlier, fourth};
use crate::order::{
    CloseReason, EntryRoute, Liquidity, OrderTerms, OrderType, PriceSource, Quality, Side, Taken, TimeInForce,
};
use crate::realism::{FillModel, FillTerms};
use crate::rehearsal::{AddressKind, Class, DeclaredAddress, Diagnosis, Rule};
use crate::time::Timestamp;
use crate::user::alerts::{AlertKinds, Channel, HiddenText};
use crate::user::backtests::{BacktestEnd, BacktestFigures};
use crate::user::billing::{BillingInterval, Product, Sku, SubscriptionStatus};
use crate::user::sample::{Dice, Sample};
use crate::user::{Permissions, Tier, WalletKind};

/// One file per layout, one line per fact: its name, its bytes as hex. A changed line is a broken journal. A new layout
/// gets a new file.
const GOLDEN: [u16; 3] = [VERSION_FIRST, VERSION_FOURTH, VERSION];

fn golden_file(version: u16) -> String {
    format!("{}/src/state/mutation/codec/golden/{version}.txt", env!("CARGO_MANIFEST_DIR"))
}

fn golden(version: u16) -> String {
    std::fs::read_to_string(golden_file(version)).expect("the file is in the repository")
}

/// Every variant once, with values chosen by `dice`.
fn every_variant(dice: &mut Dice) -> Vec<Mutation> {
    let at = Timestamp(dice.next());
    let wallet = WalletId(dice.next());
    let key = KeyId(dice.next());
    let order = OrderId(dice.next());
    vec![
        Mutation::UserCreated(fact::UserCreated { sub: dice.maybe(Dice::text), email: dice.maybe(Dice::text), at }),
        Mutation::GrantSet(fact::GrantSet { tier: tier(dice), expires_at: dice.maybe(moment), at }),
        Mutation::WalletOpened(fact::WalletOpened {
            wallet,
            kind: dice.pick(&[WalletKind::Main, WalletKind::Api, WalletKind::Sandbox, WalletKind::Competition]),
            label: dice.maybe(Dice::text),
            baseline: cash(dice),
            generation: dice.next() as u32,
            parent: dice.maybe(|dice| WalletId(dice.next())),
            at,
        }),
        Mutation::KeyIssued(fact::KeyIssued {
            key,
            hash: [dice.next() as u8; 32],
            alias_hash: [dice.next() as u8; 32],
            prefix: dice.text(),
            name: dice.maybe(Dice::text),
            tier: tier(dice),
            permissions: dice.pick(&[Permissions::Read, Permissions::ReadTrade]),
            beta_until: dice.maybe(moment),
            at,
        }),
        Mutation::KeyRenamed(fact::KeyRenamed { key, name: dice.maybe(Dice::text), at }),
        Mutation::KeyExpiring(fact::KeyExpiring { key, expires_at: moment(dice), replaced_by: KeyId(dice.next()), at }),
        Mutation::KeyRevoked(fact::KeyRevoked { key, at }),
        Mutation::KeyUsed(fact::KeyUsed { key, at }),
        Mutation::OrderPlaced(fact::OrderPlaced { order, terms: terms(dice), counted: dice.chance(50), at }),
        Mutation::OrderFilled(fact::OrderFilled {
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
            venue_at: dice.maybe(moment),
        }),
        Mutation::OrderRested(fact::OrderRested {
            order,
            reserved_cash: cash(dice),
            reserved_qty: Qty(dice.next()),
            awaiting_book: dice.chance(50),
            held: dice.chance(50),
            at,
        }),
        Mutation::OrderClosed(fact::OrderClosed { order, reason: reason(dice), at }),
        Mutation::OrderHeld(fact::OrderHeld { order, held: dice.chance(50), at }),
        Mutation::RequestRemembered(fact::RequestRemembered {
            order,
            client_order_id: dice.text(),
            digest: [dice.next() as u8; 32],
        }),
        Mutation::PositionSettled(fact::PositionSettled {
            position: PositionId(dice.next()),
            payout_per_share: Price(dice.next() as u16),
            payout: cash(dice),
            at,
        }),
        Mutation::SafeguardArmed(fact::SafeguardArmed { label: dice.text(), interval_ms: small(dice), at }),
        Mutation::SafeguardEnded(fact::SafeguardEnded { label: dice.text(), at }),
        Mutation::BaselineRaised(fact::BaselineRaised { wallet, baseline: cash(dice), at }),
        Mutation::WalletRelabelled(fact::WalletRelabelled { wallet, label: dice.maybe(Dice::text), at }),
        Mutation::WalletArchived(fact::WalletArchived { wallet, at }),
        Mutation::WalletReset(fact::WalletReset { wallet, baseline: cash(dice), at }),
        Mutation::PositionReset(fact::PositionReset { position: PositionId(dice.next()), at }),
        Mutation::EquityNoted(fact::EquityNoted { wallet, hour: moment(dice), value: cash(dice), at }),
        Mutation::BacktestCreated(fact::BacktestCreated {
            job: [dice.next() as u8; 16],
            spec: dice.text(),
            digest: [dice.next() as u8; 32],
            request: dice.maybe(Dice::text),
            charged: dice.next(),
            at,
        }),
        Mutation::BacktestStarted(fact::BacktestStarted { job: [dice.next() as u8; 16], at }),
        Mutation::BacktestEnded(fact::BacktestEnded {
            job: [dice.next() as u8; 16],
            end: dice.pick(&[BacktestEnd::Completed, BacktestEnd::Failed, BacktestEnd::Cancelled]),
            error: dice.maybe(Dice::text),
            figures: dice.maybe(|dice| Box::new(figures(dice))),
            refunded: dice.next(),
            at,
        }),
        Mutation::CustomerNoted(fact::CustomerNoted { customer: dice.text(), at }),
        Mutation::BillingEventNoted(fact::BillingEventNoted { event: dice.text(), created: moment(dice), at }),
        Mutation::SubscriptionNoted(fact::SubscriptionNoted {
            subscription: dice.text(),
            product: dice.pick(&Product::ALL),
            interval: dice.pick(&BillingInterval::ALL),
            status: dice.pick(&[
                SubscriptionStatus::Incomplete,
                SubscriptionStatus::Trialing,
                SubscriptionStatus::Active,
                SubscriptionStatus::PastDue,
                SubscriptionStatus::Canceled,
            ]),
            period_end: dice.maybe(moment),
            cancel_at_period_end: dice.chance(50),
            trial_ends_at: dice.maybe(moment),
            event: dice.text(),
            created: moment(dice),
            at,
        }),
        Mutation::SubscriptionPaid(fact::SubscriptionPaid {
            subscription: dice.text(),
            is_paid: dice.chance(50),
            created: moment(dice),
            at,
        }),
        Mutation::PurchaseNoted(fact::PurchaseNoted {
            payment: dice.text(),
            sku: dice.pick(&Sku::ALL),
            wallet: dice.maybe(|dice| WalletId(dice.next())),
            credit: cash(dice),
            at,
        }),
        Mutation::RefundNoted(fact::RefundNoted {
            payment: dice.text(),
            refunded: dice.next(),
            taken: cash(dice),
            is_reset_taken: dice.chance(50),
            at,
        }),
        Mutation::BoughtResetUsed(fact::BoughtResetUsed { wallet, baseline: cash(dice), at }),
        Mutation::AlertsBegun(fact::AlertsBegun { at }),
        Mutation::AlertTargetSet(fact::AlertTargetSet {
            target: small(dice),
            channel: dice.pick(&[Channel::Chat, Channel::Webhook]),
            url: HiddenText(dice.text()),
            secret: dice.maybe(|dice| HiddenText(dice.text())),
            label: dice.maybe(Dice::text),
            kinds: AlertKinds(dice.next() as u16 & AlertKinds::ALL.0),
            is_enabled: dice.chance(50),
            at,
        }),
        Mutation::AlertTargetRemoved(fact::AlertTargetRemoved { target: small(dice), at }),
        Mutation::MailChoiceSet(fact::MailChoiceSet { kinds: AlertKinds(dice.next() as u16 & AlertKinds::ALL.0), at }),
        Mutation::AlertDelivered(fact::AlertDelivered { target: dice.maybe(small), alert: dice.next(), at }),
        Mutation::AlertFailed(fact::AlertFailed {
            target: dice.maybe(small),
            alert: dice.next(),
            error: dice.text(),
            gives_up: dice.chance(50),
            disables: dice.chance(50),
            at,
        }),
        Mutation::DailyLimitReached(fact::DailyLimitReached { limit: small(dice), resets_at: moment(dice), at }),
        Mutation::SubscriptionUnpriced(fact::SubscriptionUnpriced {
            subscription: dice.text(),
            price: dice.maybe(Dice::text),
            status: dice.pick(&[
                SubscriptionStatus::Incomplete,
                SubscriptionStatus::Trialing,
                SubscriptionStatus::Active,
                SubscriptionStatus::PastDue,
                SubscriptionStatus::Canceled,
            ]),
            period_end: dice.maybe(moment),
            cancel_at_period_end: dice.chance(50),
            trial_ends_at: dice.maybe(moment),
            event: dice.text(),
            created: moment(dice),
            at,
        }),
        Mutation::RefundStated(fact::RefundStated {
            payment: dice.text(),
            failed: dice.maybe(Dice::text),
            cents: dice.next(),
            created: moment(dice),
            at,
        }),
        Mutation::RefundUndone(fact::RefundUndone {
            payment: dice.text(),
            refunded: dice.next(),
            wallet: dice.maybe(|dice| WalletId(dice.next())),
            credit: cash(dice),
            is_reset_given: dice.chance(50),
            at,
        }),
        Mutation::AlertTargetChanged(fact::AlertTargetChanged {
            target: small(dice),
            label: dice.maybe(Dice::text),
            clears_label: dice.chance(50),
            kinds: dice.maybe(|dice| AlertKinds(dice.next() as u16 & AlertKinds::ALL.0)),
            is_enabled: dice.maybe(|dice| dice.chance(50)),
            at,
        }),
        Mutation::NoticeRaised(fact::NoticeRaised { text: dice.text(), at }),
        Mutation::EmailNoted(fact::EmailNoted { email: dice.text(), at }),
        Mutation::NumbersExtended(fact::NumbersExtended { prefix: UserId(dice.next()), at }),
        Mutation::FillCharged(fact::FillCharged {
            trade: TradeId(dice.next()),
            schedule: fee_schedule(dice),
            rounding: dice.pick(&[FeeRounding::HalfUp, FeeRounding::Down, FeeRounding::UpToFour]),
            at,
        }),
        Mutation::RebateAccrued(fact::RebateAccrued { trade: TradeId(dice.next()), wallet, amount: cash(dice), at }),
        Mutation::RebatePaid(fact::RebatePaid { wallet, amount: cash(dice), at }),
        Mutation::KeyRealismSet(fact::KeyRealismSet {
            key,
            set: key.0.is_multiple_of(2).then(|| "thin".to_owned()),
            at,
        }),
        Mutation::QueueNoted(fact::QueueNoted {
            order,
            ahead: Qty(wallet.0),
            confidence: Bps(at.0 as u32),
            at,
            venue_at: order.0.is_multiple_of(2).then_some(Timestamp(key.0)),
        }),
        Mutation::StrictFound(fact::StrictFound {
            key,
            rule: dice.pick(Rule::ALL),
            class: dice.pick(Class::ALL),
            diagnosis: dice.pick(Diagnosis::ALL),
            count: small(dice),
            order: dice.maybe(|dice| OrderId(dice.next())),
            at,
        }),
        Mutation::OrderFactsCut(fact::OrderFactsCut { upto: dice.next(), at }),
    ]
}

fn fee_schedule(dice: &mut Dice) -> FeeSchedule {
    FeeSchedule {
        rate: small(dice),
        exponent: dice.next() as u16,
        taker_only: dice.chance(50),
        rebate_rate: small(dice),
    }
}

fn figures(dice: &mut Dice) -> BacktestFigures {
    BacktestFigures {
        total_pnl: cash(dice),
        closed: dice.next(),
        won: dice.next(),
        max_drawdown: dice.next(),
        trades: dice.next(),
        points: dice.next(),
        ticks: dice.next(),
        event_ticks: dice.chance(50),
        step: dice.next(),
        degraded: dice.chance(50),
        settlement_scored: dice.chance(50),
        naive_pnl: cash(dice),
        fills_naive: dice.next(),
        fills_honest: dice.next(),
        percentiles: (0..dice.below(4)).map(|_| cash(dice)).collect(),
        hash: [dice.next() as u8; 32],
    }
}

fn every_market_variant(dice: &mut Dice) -> Vec<MarketMutation> {
    let (market, at) = (MarketId(dice.next() as u32), moment(dice));
    let states =
        [MarketState::Upcoming, MarketState::Active, MarketState::Halted, MarketState::Closed, MarketState::Resolved];
    let resolutions = [Resolution::Winner(Outcome::First), Resolution::Winner(Outcome::Second), Resolution::Split];
    vec![
        MarketMutation::MarketListed(fact::MarketListed {
            market,
            listing: Box::new(listing(dice)),
            state: dice.pick(&states),
            at,
        }),
        MarketMutation::MarketStateChanged(fact::MarketStateChanged {
            market,
            state: dice.pick(&states),
            ended: dice.chance(50),
            at,
        }),
        MarketMutation::TickChanged(fact::TickChanged { market, tick: TickSize(dice.next() as u16), at }),
        MarketMutation::EndChanged(fact::EndChanged { market, end: dice.maybe(moment), at }),
        MarketMutation::MarketResolved(fact::MarketResolved { market, resolution: dice.pick(&resolutions), at }),
        MarketMutation::MarketSettled(fact::MarketSettled { market, at }),
        MarketMutation::TapeReached(fact::TapeReached { tape: [dice.next() as u8; 32], reached: at }),
        MarketMutation::Restored(fact::Restored { instance: [0xa5; 16], parent: [0x5a; 16], lsn: 41, at }),
        MarketMutation::ClockSetBack(fact::ClockSetBack { from: Timestamp(0x0123_4567_89ab_cdef), at }),
        MarketMutation::HistoryCut(fact::HistoryCut { day: 0x0102_0304, at }),
        MarketMutation::FeeScheduleChanged(fact::FeeScheduleChanged { market, schedule: dice.maybe(fee_schedule), at }),
        MarketMutation::AddressDeclared(fact::AddressDeclared {
            address: [dice.next() as u8; 20],
            declared: DeclaredAddress {
                kind: dice.pick(AddressKind::ALL),
                owner: dice.maybe(|dice| [dice.next() as u8; 20]),
                exchange: dice.chance(50),
                neg_risk: dice.chance(50),
            },
            at,
        }),
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
    let mut terms = OrderTerms {
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
        order_hash: dice.maybe(|dice| [dice.next() as u8; 32]),
        fill: None,
    };
    // Of a drawn value: the values that are drawn later stay.
    terms.fill = terms.order_hash.map(|[byte, ..]| FillTerms {
        model: FillModel::ALL[usize::from(byte) % FillModel::ALL.len()],
        cancel_share: Bps(byte.into()),
        ..FillTerms::KIND
    });
    terms
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

fn encoded<F: Fact>(version: u16, fact: &F) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(version, std::slice::from_ref(fact), &mut bytes);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

/// The lines of the newest golden file. New variants are last, so that the values of the others stay.
fn golden_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for seed in [1, 2] {
        let facts = every_variant(&mut Dice(seed));
        lines.extend(facts.iter().map(|fact| format!("{} {}", fact.name(), hex(&encoded(VERSION, fact)))));
        let facts = every_market_variant(&mut Dice(seed));
        lines.extend(facts.iter().map(|fact| format!("{} {}", fact.name(), hex(&encoded(VERSION, fact)))));
    }
    lines.sort();
    lines
}

/// With `WRITE_GOLDEN` in its environment the test writes the file: for a new fact, whose lines are then the only change.
#[test]
fn the_newest_format_has_the_golden_bytes() {
    let now = golden_lines();
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        std::fs::write(golden_file(VERSION), now.join("\n") + "\n").expect("room");
    }
    let golden = golden(VERSION);
    for line in golden.lines() {
        assert!(now.iter().any(|now| now == line), "the journal's bytes changed, old logs cannot be read: {line}");
    }
    let missing: Vec<&String> = now.iter().filter(|now| !golden.lines().any(|line| line == *now)).collect();
    assert!(missing.is_empty(), "lines for golden/{VERSION}.txt:\n{missing:#?}");
    let named = |kinds: &[crate::describe::Kind]| {
        kinds.iter().all(|kind| now.iter().filter(|line| line.split(' ').next() == Some(kind.name)).count() == 2)
    };
    assert!(named(Mutation::KINDS) && named(MarketMutation::KINDS), "each fact has its lines");
}

/// The format of a line of a golden file, and the first format of a fact about a market: some have their own.
fn format_of(name: &str, file: u16) -> u16 {
    match (name, file) {
        ("Restored", VERSION_FIRST) => VERSION_RESTORED,
        ("ClockSetBack", VERSION_FIRST) => VERSION_SET_BACK,
        ("HistoryCut", VERSION_FIRST) => VERSION_FOURTH,
        ("FeeScheduleChanged" | "AddressDeclared", VERSION_FIRST) => VERSION,
        _ => file,
    }
}

/// The first golden file with a fact.
fn file_of(name: &str) -> u16 {
    match first_format(name) {
        VERSION_FIRST..=VERSION_SET_BACK => VERSION_FIRST,
        later => later,
    }
}

fn first_format(name: &str) -> u16 {
    let place = |name: &str| Mutation::KINDS.iter().position(|kind| kind.name == name);
    match place(name) {
        None => format_of(name, VERSION_FIRST),
        number if number >= place("FillCharged") => VERSION,
        number if number >= place("BacktestCreated") => VERSION_FOURTH,
        _ => VERSION_FIRST,
    }
}

/// Every fact of every format can be decoded, encodes to the same bytes in its format, and upgrades to the same fact
/// without later fields.
#[test]
fn golden_bytes_of_every_format_stay_readable_and_writable() {
    fn check<F: Fact + Clone + PartialEq + std::fmt::Debug>(version: u16, bytes: &[u8], line: &str) -> F {
        let facts: Result<Vec<F>, _> = decode(version, bytes).expect("a known format").collect();
        let facts = facts.unwrap_or_else(|error| panic!("format {version}: {error}: {line}"));
        assert_eq!(facts.len(), 1, "{line}");
        assert_eq!(hex(&encoded(version, &facts[0])), hex(bytes), "format {version}: {line}");
        let mut taken = Vec::new();
        assert_eq!(each(version, bytes, |fact: &F| taken.push(fact.clone())), Ok(1), "{line}");
        let upgraded: Result<Vec<F>, _> = decode(VERSION, &encoded(VERSION, &facts[0])).expect("this one").collect();
        assert_eq!((upgraded.as_ref(), &taken), (Ok(&facts), &facts), "{line}");
        facts.into_iter().next().expect("one")
    }
    let mut cases = 0;
    for file in GOLDEN {
        for line in golden(file).lines() {
            let (name, bytes) = line.split_once(' ').expect("a name and its bytes");
            let (version, bytes) = (format_of(name, file), unhex(bytes));
            if MarketMutation::KINDS.iter().any(|kind| kind.name == name) {
                let fact: MarketMutation = check(version, &bytes, line);
                assert_eq!(fact.name(), name);
            } else {
                let fact: Mutation = check(version, &bytes, line);
                assert_eq!(fact.name(), name);
                assert_eq!(without_later(version, fact.clone()), fact, "{line}");
            }
            cases += 1;
        }
    }
    println!("golden facts: {cases}");
    let kinds = || Mutation::KINDS.iter().chain(MarketMutation::KINDS);
    let in_file = |file: u16| kinds().filter(|kind| file_of(kind.name) <= file).count();
    assert_eq!(cases, GOLDEN.iter().map(|file| 2 * in_file(*file)).sum::<usize>());
}

/// A fact with its own format is refused in an earlier one.
#[test]
fn a_fact_before_its_format_is_an_error() {
    let facts = every_market_variant(&mut Dice(1));
    let mut cases = 0;
    for (fact, version) in facts.iter().flat_map(|fact| (VERSION_FIRST..=VERSION).map(move |version| (fact, version))) {
        let first = first_format(fact.name());
        let bytes = encoded(version, fact);
        let read: Vec<_> = decode::<MarketMutation>(version, &bytes).expect("a known format").collect();
        let expected = if version < first { Err(CodecError::Variant) } else { Ok(fact.clone()) };
        assert_eq!(read, [expected], "{} in format {version}", fact.name());
        cases += 1;
    }
    for fact in every_variant(&mut Dice(1)) {
        for version in VERSION_FIRST..VERSION {
            let bytes = encoded(version, &fact);
            let read: Vec<_> = decode::<Mutation>(version, &bytes).expect("a known format").collect();
            let expected = match first_format(fact.name()) {
                first if version < first => Err(CodecError::Variant),
                _ => Ok(without_later(version, fact.clone())),
            };
            assert_eq!(read, [expected], "{} in format {version}", fact.name());
            cases += 1;
        }
    }
    println!("facts and formats: {cases} cases");
}

/// bincode is the reference of the layout: for the newest facts, and for earlier layouts of changed ones.
#[test]
fn wincode_writes_and_reads_the_bytes_of_bincode() {
    let layout = bincode::config::legacy();
    let mut count = 0;
    for seed in 0..2_000 {
        let mut dice = Dice(seed);
        for fact in every_variant(&mut dice) {
            let bytes = encoded(VERSION, &fact);
            assert_eq!(bytes, bincode::encode_to_vec(&fact, layout).expect("memory"), "seed {seed} {}", fact.name());
            let read: Vec<_> = decode::<Mutation>(VERSION, &bytes).expect("this version").collect();
            assert_eq!(read, [Ok(fact.clone())]);
            let (read, len) = bincode::decode_from_slice::<Mutation, _>(&bytes, layout).expect("same layout");
            assert_eq!((&read, len), (&fact, bytes.len()));
            let earlier = match fact.clone() {
                Mutation::OrderPlaced(fact) => {
                    bincode::encode_to_vec((8_u32, earlier::OrderPlaced::from(fact)), layout)
                }
                Mutation::OrderFilled(fact) => {
                    bincode::encode_to_vec((9_u32, earlier::OrderFilled::from(fact)), layout)
                }
                unchanged => bincode::encode_to_vec(unchanged, layout),
            };
            assert_eq!(encoded(VERSION_FIRST, &fact), earlier.expect("memory"), "seed {seed} {}", fact.name());
            let earlier = match fact.clone() {
                Mutation::OrderPlaced(fact) => bincode::encode_to_vec((8_u32, fourth::OrderPlaced::from(fact)), layout),
                unchanged => bincode::encode_to_vec(unchanged, layout),
            };
            assert_eq!(encoded(VERSION_FOURTH, &fact), earlier.expect("memory"), "seed {seed} {}", fact.name());
            count += 1;
        }
        for fact in every_market_variant(&mut dice) {
            let bytes = encoded(VERSION, &fact);
            assert_eq!(bytes, bincode::encode_to_vec(&fact, layout).expect("memory"), "seed {seed}");
            let read: Vec<_> = decode::<MarketMutation>(VERSION, &bytes).expect("this version").collect();
            assert_eq!(read, [Ok(fact)]);
            count += 1;
        }
    }
    println!("{count} facts");
}

#[test]
fn a_record_is_the_sequence_of_its_facts() {
    let mut sample = Sample::new(3, 4, 6);
    for _ in 0..2_000 {
        let (_, facts) = sample.record();
        let mut bytes = vec![1, 2, 3];
        encode(VERSION, &facts, &mut bytes);
        let read: Result<Vec<Mutation>, _> = decode(VERSION, &bytes[3..]).expect("this version").collect();
        assert_eq!(read.as_ref(), Ok(&facts));
        // An earlier format has them without later fields.
        for version in [VERSION_FIRST, VERSION_FOURTH] {
            let mut bytes = Vec::new();
            encode(version, &facts, &mut bytes);
            let read: Result<Vec<Mutation>, _> = decode(version, &bytes).expect("a known format").collect();
            let without: Vec<Mutation> = facts.iter().cloned().map(|fact| without_later(version, fact)).collect();
            assert_eq!(read, Ok(without));
        }
    }
}

/// The fact as in a format.
fn without_later(version: u16, fact: Mutation) -> Mutation {
    match fact {
        Mutation::OrderPlaced(mut placed) => {
            if version < VERSION_FOURTH {
                placed.terms.order_hash = None;
            }
            if version < VERSION {
                placed.terms.fill = None;
            }
            placed.into()
        }
        Mutation::OrderFilled(filled) if version < VERSION_FOURTH => {
            fact::OrderFilled { venue_at: None, ..filled }.into()
        }
        other => other,
    }
}

#[test]
fn an_unknown_version_is_refused_by_name() {
    for found in [0, VERSION + 1, u16::MAX] {
        let refused = Some(CodecError::Version { found, newest: VERSION });
        assert_eq!(decode::<Mutation>(found, &[]).err(), refused);
        assert_eq!(each(found, &[], |_: &Mutation| {}).err(), refused);
    }
}

#[test]
fn a_length_beyond_the_bytes_is_an_error() {
    let order = [9_u8, 0, 0, 0];
    let end = 16_u32.to_le_bytes();
    for (bytes, error) in [
        // SafeguardEnded with a label of 2^63 bytes, of 2^20 + 1, of 9 with 8 left.
        ([&end[..], &(1_u64 << 63).to_le_bytes(), &[0; 8]].concat(), CodecError::Length),
        ([&end[..], &((1_u64 << 20) + 1).to_le_bytes(), &[0; 8]].concat(), CodecError::Length),
        ([&end[..], &9_u64.to_le_bytes(), &[0; 8]].concat(), CodecError::Length),
        ([&end[..], &2_u64.to_le_bytes(), &[0xff, 0xff]].concat(), CodecError::Text),
        ([&(Mutation::KINDS.len() as u32).to_le_bytes()[..], &[0; 64]].concat(), CodecError::Variant),
        (order.to_vec(), CodecError::Length),
        (vec![0], CodecError::Length),
    ] {
        for version in GOLDEN {
            let read: Vec<_> = decode::<Mutation>(version, &bytes).expect("a known format").collect();
            assert_eq!(read, [Err(error)], "{} in format {version}", hex(&bytes));
        }
    }
}

#[test]
fn broken_bytes_are_an_error_or_other_facts() {
    let (mut errors, mut facts_count) = (0, 0);
    for (seed, version) in (0..60).map(|seed| (seed, GOLDEN[seed as usize % GOLDEN.len()])) {
        let mut dice = Dice(seed);
        let facts = every_variant(&mut dice).into_iter().filter(|fact| first_format(fact.name()) <= version);
        let facts: Vec<Mutation> = facts.map(|fact| without_later(version, fact)).collect();
        let mut bytes = Vec::new();
        encode(version, &facts, &mut bytes);
        for end in 0..bytes.len() {
            let read: Vec<_> = decode::<Mutation>(version, &bytes[..end]).expect("a known format").collect();
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
            for fact in decode::<Mutation>(version, &broken).expect("a known format") {
                match fact {
                    Ok(fact) => encode(version, &[fact], &mut written),
                    Err(_) => broke = true,
                }
                facts_count += 1;
            }
            errors += usize::from(broke);
            assert!(broken.starts_with(&written) && (broke || written.len() == broken.len()));
        }
        let market_facts = every_market_variant(&mut dice);
        let mut bytes = Vec::new();
        encode(VERSION, &market_facts, &mut bytes);
        for _ in 0..500 {
            let mut broken = bytes.clone();
            let at = dice.below(broken.len() as u64) as usize;
            broken[at] = dice.next() as u8;
            errors +=
                decode::<MarketMutation>(VERSION, &broken).expect("a known format").filter(Result::is_err).count();
        }
    }
    println!("{errors} errors, {facts_count} facts");
    assert!(errors > 10_000 && facts_count > 10_000);
}
