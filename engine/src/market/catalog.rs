//! Catalog: the read side of the markets. Lookups by id, condition, token and slug, and the sorted lists of the list
//! endpoints.
//!
//! Lookups take no lock. The mutable parts of a market (state, tick, end, figures) are atomics in its cell. One thread
//! publishes released facts here, in log order. A market is never removed: closed and resolved ones stay readable
//! (gateway/docs/market-data.md §2).

use crate::amount::TickSize;
use crate::fact;
use crate::id::{InstrumentId, MarketId, Outcome};
use crate::index::{AppendVec, HashIndex};
use crate::market::Market;
use crate::market::mutation::MarketMutation;
use crate::market::terms::{Category, EventTerms, FeeSchedule, Listing, MarketState, Resolution};
use crate::time::Timestamp;
use ahash::{AHashMap, RandomState};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// All published markets.
#[derive(Default)]
pub struct Catalog {
    cells: AppendVec<MarketCell>,
    conditions: HashIndex,
    tokens: HashIndex,
    /// A market had its first trade since the feed last checked.
    newly_staked: AtomicBool,
    slugs: HashIndex,
    hasher: RandomState,
    /// A sort key of the lists has changed.
    unsorted: AtomicBool,
    /// A lock for list endpoints (cold path), held while an `Arc` is cloned.
    lists: RwLock<Arc<Lists>>,
}

/// One market.
pub struct MarketCell {
    pub id: MarketId,
    /// As first listed; the cell has the present tick and end.
    pub listing: Listing,
    pub listed_at: Timestamp,
    /// `settled << 6 | resolution << 4 | ended << 3 | state`: one atomic, so they are always consistent.
    status: AtomicU32,
    tick: AtomicU32,
    /// [`packed_fees`].
    fees: AtomicU64,
    /// µs; 0 = none.
    end: AtomicU64,
    /// µs; stored before the `status` with the resolution.
    resolved_at: AtomicU64,
    /// [`NOT_REPORTED`] = none.
    volume_24h: AtomicU64,
    volume_total: AtomicU64,
    liquidity: AtomicU64,
    figures_at: AtomicU64,
    /// What the price must beat in an up-or-down market, as the venue writes it: the market's own threshold, and that
    /// of its event. The first value is kept. Never journaled.
    strike: OnceLock<Box<str>>,
    price_to_beat: OnceLock<Box<str>>,
    /// A user has traded here.
    staked: AtomicBool,
}

/// Figures that the venue reports for a market outside of its book, in 10⁻⁶ of their unit; `None` = not reported. Never
/// journaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub volume_24h: Option<u64>,
    pub volume_total: Option<u64>,
    pub liquidity: Option<u64>,
}

/// The sorted lists at one moment.
#[derive(Debug, Default)]
pub struct Lists {
    /// Count of sorts: the pages of one list use the order of one generation.
    pub generation: u64,
    /// Without up-or-down markets: total volume descending, not reported last, then condition id
    /// (gateway/docs/market-data.md §1).
    pub markets: Arc<[MarketId]>,
    /// Up-or-down markets, earliest end of the window first, then condition id (gateway/docs/market-data.md §5).
    pub updown: Arc<[MarketId]>,
    /// Event groups of all other markets: summed volume descending, then event id (gateway/docs/market-data.md §4).
    pub events: Box<[EventRow]>,
}

/// A group of markets.
#[derive(Debug)]
pub struct EventRow {
    /// The market whose listing describes the event.
    pub first: MarketId,
    /// Σ of the total volumes reported.
    pub volume: u64,
    /// One of its markets is about sports.
    pub sports: bool,
    /// Total volume descending, not reported last, then condition id.
    pub markets: Box<[MarketId]>,
}

const NOT_REPORTED: u64 = u64::MAX;
const STATES: [MarketState; 5] =
    [MarketState::Upcoming, MarketState::Active, MarketState::Halted, MarketState::Closed, MarketState::Resolved];

/// State, ended, resolution and settled of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketStatus {
    pub state: MarketState,
    /// Venue time has passed the end date: a fact of the feed, not a comparison with a clock.
    pub ended: bool,
    pub resolution: Option<Resolution>,
    /// Every position is paid out.
    pub settled: bool,
}

impl MarketStatus {
    /// Orders are accepted: active, and the end date has not passed (gateway/docs/market-data.md §2).
    pub fn tradable(self) -> bool {
        self.state == MarketState::Active && !self.ended && self.resolution.is_none()
    }

    fn pack(self) -> u32 {
        let resolution = match self.resolution {
            None => 0,
            Some(Resolution::Winner(Outcome::First)) => 1,
            Some(Resolution::Winner(Outcome::Second)) => 2,
            Some(Resolution::Split) => 3,
        };
        u32::from(self.settled) << 6 | resolution << 4 | u32::from(self.ended) << 3 | self.state as u32
    }

    fn unpack(packed: u32) -> MarketStatus {
        MarketStatus {
            state: STATES[(packed & 7) as usize],
            ended: packed >> 3 & 1 == 1,
            resolution: match packed >> 4 & 3 {
                0 => None,
                1 => Some(Resolution::Winner(Outcome::First)),
                2 => Some(Resolution::Winner(Outcome::Second)),
                _ => Some(Resolution::Split),
            },
            settled: packed >> 6 & 1 == 1,
        }
    }
}

impl Catalog {
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// The market with that id.
    #[inline]
    pub fn market(&self, market: MarketId) -> Option<&MarketCell> {
        self.cells.get(market.0 as usize)
    }

    /// The market of an instrument.
    #[inline]
    pub fn of_instrument(&self, instrument: InstrumentId) -> Option<&MarketCell> {
        self.market(instrument.market())
    }

    /// The market with that condition id (`0x` and 64 lower-case hex digits).
    pub fn by_condition(&self, condition: &str) -> Option<MarketId> {
        let is_it = |market| self.cell(market).is_some_and(|cell| cell.listing.condition == condition);
        self.conditions.find(self.hasher.hash_one(condition), is_it).map(MarketId)
    }

    /// The instrument with that token id (decimal text).
    #[inline]
    pub fn by_token(&self, token: &str) -> Option<InstrumentId> {
        let is_it = |instrument| {
            let instrument = InstrumentId(instrument);
            self.of_instrument(instrument).is_some_and(|cell| cell.token(instrument.outcome()) == token)
        };
        self.tokens.find(self.hasher.hash_one(token), is_it).map(InstrumentId)
    }

    /// The market with that slug; of several the one listed first.
    pub fn by_slug(&self, slug: &str) -> Option<MarketId> {
        let is_it = |market| self.cell(market).is_some_and(|cell| cell.listing.slug == slug);
        self.slugs.find(self.hasher.hash_one(slug), is_it).map(MarketId)
    }

    /// A user trades in this market: the feed should query its venue for the market's state.
    #[inline]
    pub fn stake(&self, cell: &MarketCell) {
        // Read first: orders of all shards execute this, and a store would take the cache line from other cores.
        if !cell.staked.load(Relaxed) {
            cell.staked.store(true, Relaxed);
            // Release pairs with the swap below: a reader that sees this sees the mark of the market.
            self.newly_staked.store(true, Ordering::Release);
        }
    }

    /// Whether a market had its first trade since the last call.
    pub fn take_newly_staked(&self) -> bool {
        self.newly_staked.load(Relaxed) && self.newly_staked.swap(false, Ordering::AcqRel)
    }

    /// Count of markets; ids below it can be read.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// All markets in the order of their listing.
    pub fn iter(&self) -> impl Iterator<Item = &MarketCell> {
        self.cells.iter()
    }

    /// The sorted lists of the last [`Catalog::sort`].
    pub fn lists(&self) -> Arc<Lists> {
        self.lists.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The list of `GET /v1/markets`.
    pub fn ordered(&self) -> Arc<[MarketId]> {
        self.lists().markets.clone()
    }

    fn cell(&self, market: u32) -> Option<&MarketCell> {
        self.market(MarketId(market))
    }
}

/// The publishing half: one thread, in log order.
impl Catalog {
    /// Publishes a released fact.
    ///
    /// # Panics
    /// When the fact is about a market that was not listed before.
    pub fn publish(&self, fact: &MarketMutation) {
        let cell = |market: &MarketId| self.market(*market).expect("a fact about a market follows its listing");
        match fact {
            MarketMutation::MarketListed(fact::MarketListed { market, listing, state, at }) => {
                let status = MarketStatus { state: *state, ended: false, resolution: None, settled: false };
                self.add_cell(*market, MarketCell::new(*market, listing, *at, status));
            }
            MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, state, ended, .. }) => {
                cell(market).change(|status| (status.state, status.ended) = (*state, *ended));
            }
            MarketMutation::TickChanged(fact::TickChanged { market, tick, .. }) => {
                cell(market).tick.store(u32::from(tick.0), Relaxed)
            }
            MarketMutation::EndChanged(fact::EndChanged { market, end, .. }) => cell(market).set_end(*end),
            MarketMutation::FeeScheduleChanged(fact::FeeScheduleChanged { market, schedule, .. }) => {
                cell(market).set_fees(*schedule);
            }
            MarketMutation::MarketResolved(fact::MarketResolved { market, resolution, at }) => {
                cell(market).resolve(*resolution, *at)
            }
            MarketMutation::MarketSettled(fact::MarketSettled { market, .. }) => {
                cell(market).change(|status| status.settled = true)
            }
            MarketMutation::TapeReached(_)
            | MarketMutation::Restored(_)
            | MarketMutation::ClockSetBack(_)
            | MarketMutation::HistoryCut(_)
            | MarketMutation::AddressDeclared(_) => {}
        }
    }

    /// Adds a market at boot, with the fees that it states.
    ///
    /// # Panics
    /// When ids are not dense from 0.
    pub fn add(&self, id: MarketId, market: &Market, fees: Option<FeeSchedule>) {
        let status = MarketStatus {
            state: market.state,
            ended: market.ended,
            resolution: None,
            settled: market.settled_at.is_some(),
        };
        let cell = MarketCell::new(id, &market.listing, market.listed_at, status);
        cell.tick.store(u32::from(market.tick.0), Relaxed);
        cell.set_end(market.end);
        cell.set_fees(fees);
        if let Some((resolution, at)) = market.resolution {
            cell.resolve(resolution, at);
        }
        self.add_cell(id, cell);
    }

    fn add_cell(&self, id: MarketId, cell: MarketCell) {
        let listing = cell.listing.clone();
        let index = self.cells.push(cell);
        assert!(index == id.0 as usize, "market ids are dense: {} of {index}", id.0);
        let insert =
            |index: &HashIndex, key: &str, number: u32, same: &dyn Fn(&MarketCell) -> bool, per_token: bool| {
                let of = |number: u32| if per_token { number / 2 } else { number };
                index.find_or_insert(self.hasher.hash_one(key), |at| self.cell(of(at)).is_some_and(same), || number);
            };
        insert(&self.conditions, &listing.condition, id.0, &|cell| cell.listing.condition == listing.condition, false);
        insert(&self.slugs, &listing.slug, id.0, &|cell| cell.listing.slug == listing.slug, false);
        for outcome in [Outcome::First, Outcome::Second] {
            let token = &listing.tokens[outcome as usize];
            insert(&self.tokens, token, id.instrument(outcome).0, &|cell| cell.listing.tokens.contains(token), true);
        }
        self.unsorted.store(true, Relaxed);
    }

    /// Updates the figures of a market, which are not journaled. The lists change at the next [`Catalog::sort`].
    pub fn figures(&self, market: MarketId, figures: Figures, at: Timestamp) {
        let Some(cell) = self.market(market) else { return };
        let set = |to: &AtomicU64, figure: Option<u64>| to.swap(figure.unwrap_or(NOT_REPORTED), Relaxed);
        set(&cell.volume_24h, figures.volume_24h);
        set(&cell.liquidity, figures.liquidity);
        cell.figures_at.store(at.0, Relaxed);
        let before = set(&cell.volume_total, figures.volume_total);
        if before != figures.volume_total.unwrap_or(NOT_REPORTED) {
            self.unsorted.store(true, Relaxed);
        }
    }

    /// Sets what the price must beat in a market, which is not journaled. The first value is kept.
    pub fn strike(&self, market: MarketId, strike: Option<&str>, price_to_beat: Option<&str>) {
        let Some(cell) = self.market(market) else { return };
        for (known, value) in [(&cell.strike, strike), (&cell.price_to_beat, price_to_beat)] {
            if let Some(value) = value {
                known.get_or_init(|| value.into());
            }
        }
    }

    /// Sorts the lists if a sort key has changed; returns whether it did. Takes tens of milliseconds for a hundred
    /// thousand markets: for a background thread, every few seconds, one call at a time.
    pub fn sort(&self) -> bool {
        if !self.unsorted.swap(false, Relaxed) {
            return false;
        }
        let lists = Lists::of(self, self.lists().generation + 1);
        *self.lists.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(lists);
        true
    }
}

impl MarketCell {
    fn new(id: MarketId, listing: &Listing, listed_at: Timestamp, status: MarketStatus) -> MarketCell {
        let end = listing.end.map_or(0, |end| end.0);
        MarketCell {
            id,
            listing: listing.clone(),
            listed_at,
            status: AtomicU32::new(status.pack()),
            tick: AtomicU32::new(u32::from(listing.tick.0)),
            fees: AtomicU64::new(packed_fees(None)),
            end: AtomicU64::new(end),
            resolved_at: AtomicU64::new(0),
            volume_24h: AtomicU64::new(NOT_REPORTED),
            volume_total: AtomicU64::new(NOT_REPORTED),
            liquidity: AtomicU64::new(NOT_REPORTED),
            figures_at: AtomicU64::new(0),
            strike: OnceLock::new(),
            price_to_beat: OnceLock::new(),
            staked: AtomicBool::new(false),
        }
    }

    /// State, ended, resolution and settled, read together.
    #[inline]
    pub fn status(&self) -> MarketStatus {
        // Pairs with the `Release` in `resolve`: a reader that sees a resolution sees its time.
        MarketStatus::unpack(self.status.load(Ordering::Acquire))
    }

    pub fn state(&self) -> MarketState {
        self.status().state
    }

    pub fn ended(&self) -> bool {
        self.status().ended
    }

    pub fn resolution(&self) -> Option<Resolution> {
        self.status().resolution
    }

    /// See [`MarketStatus::tradable`].
    pub fn tradable(&self) -> bool {
        self.status().tradable()
    }

    /// When the resolution was decided, server time.
    pub fn resolved_at(&self) -> Option<Timestamp> {
        self.resolution().map(|_| Timestamp(self.resolved_at.load(Relaxed)))
    }

    /// The present price grid.
    #[inline]
    pub fn tick(&self) -> TickSize {
        TickSize(self.tick.load(Relaxed) as u16)
    }

    /// The present end date.
    pub fn end(&self) -> Option<Timestamp> {
        match self.end.load(Relaxed) {
            0 => None,
            end => Some(Timestamp(end)),
        }
    }

    /// The fees that the market states, if they can be used.
    #[inline]
    pub fn fee_schedule(&self) -> Option<FeeSchedule> {
        unpacked_fees(self.fees.load(Relaxed))
    }

    pub fn figures(&self) -> Figures {
        let figure = |from: &AtomicU64| Some(from.load(Relaxed)).filter(|figure| *figure != NOT_REPORTED);
        Figures {
            volume_24h: figure(&self.volume_24h),
            volume_total: figure(&self.volume_total),
            liquidity: figure(&self.liquidity),
        }
    }

    /// Time of the last report of figures.
    pub fn figures_at(&self) -> Option<Timestamp> {
        Some(Timestamp(self.figures_at.load(Relaxed))).filter(|at| at.0 != 0)
    }

    /// What the price must beat, by the market's own threshold.
    pub fn strike(&self) -> Option<&str> {
        self.strike.get().map(Box::as_ref)
    }

    /// What the price must beat, by the event.
    pub fn price_to_beat(&self) -> Option<&str> {
        self.price_to_beat.get().map(Box::as_ref)
    }

    /// Whether it is about sports, by its category or by the venue's own fields.
    pub fn is_sports(&self) -> bool {
        self.listing.sports || self.listing.category == Category::Sports
    }

    /// Whether a user has traded here ([`Catalog::stake`]).
    pub fn is_staked(&self) -> bool {
        self.staked.load(Relaxed)
    }

    /// The token id of an outcome.
    pub fn token(&self, outcome: Outcome) -> &str {
        &self.listing.tokens[outcome as usize]
    }

    /// The label of an outcome.
    pub fn outcome(&self, outcome: Outcome) -> &str {
        &self.listing.outcomes[outcome as usize]
    }

    /// The instrument of an outcome.
    pub fn instrument(&self, outcome: Outcome) -> InstrumentId {
        self.id.instrument(outcome)
    }

    /// The event group that the market belongs to.
    pub fn event(&self) -> Option<&EventTerms> {
        self.listing.event.as_ref()
    }

    fn set_end(&self, end: Option<Timestamp>) {
        self.end.store(end.map_or(0, |end| end.0), Relaxed);
    }

    fn set_fees(&self, schedule: Option<FeeSchedule>) {
        self.fees.store(packed_fees(schedule), Relaxed);
    }

    fn resolve(&self, resolution: Resolution, at: Timestamp) {
        self.resolved_at.store(at.0, Relaxed);
        self.change(|status| (status.state, status.resolution) = (MarketState::Resolved, Some(resolution)));
    }

    fn change(&self, change: impl FnOnce(&mut MarketStatus)) {
        let mut status = self.status();
        change(&mut status);
        self.status.store(status.pack(), Ordering::Release);
    }
}

/// Bits of a rate in [`packed_fees`].
const RATE_BITS: u32 = 20;
const _: () = assert!(FeeSchedule::RATE_MAX < 1 << RATE_BITS && FeeSchedule::EXPONENT_MAX < 1 << 3);

/// `rebate rate << 25 | rate << 5 | exponent << 2 | taker_only << 1 | 1`; 0: none.
fn packed_fees(schedule: Option<FeeSchedule>) -> u64 {
    let Some(FeeSchedule { rate, exponent, taker_only, rebate_rate }) = schedule else { return 0 };
    u64::from(rebate_rate) << (RATE_BITS + 5)
        | u64::from(rate) << 5
        | u64::from(exponent) << 2
        | u64::from(taker_only) << 1
        | 1
}

fn unpacked_fees(packed: u64) -> Option<FeeSchedule> {
    let rate = |shift: u32| (packed >> shift) as u32 & ((1 << RATE_BITS) - 1);
    (packed != 0).then(|| FeeSchedule {
        rate: rate(5),
        exponent: (packed >> 2 & 7) as u16,
        taker_only: packed >> 1 & 1 == 1,
        rebate_rate: rate(RATE_BITS + 5),
    })
}

impl Lists {
    fn of(catalog: &Catalog, generation: u64) -> Lists {
        // Figures may change during the sort: each is read once.
        let volumes: Vec<Option<u64>> = catalog.iter().map(|cell| cell.figures().volume_total).collect();
        let cells: Vec<&MarketCell> = catalog.cells.iter().take(volumes.len()).collect();
        let condition = |market: &MarketId| cells[market.0 as usize].listing.condition.as_str();
        let mut all: Vec<MarketId> = cells.iter().map(|cell| cell.id).collect();
        // `None` is below every figure, so it comes last.
        all.sort_unstable_by_key(|market| (Reverse(volumes[market.0 as usize]), condition(market)));

        let window = |market: &MarketId| cells[market.0 as usize].listing.updown.map(|updown| updown.end);
        let (mut updown, markets): (Vec<MarketId>, Vec<MarketId>) =
            all.iter().partition(|market| window(market).is_some());
        updown.sort_unstable_by_key(|market| (window(market), condition(market)));

        let mut groups: AHashMap<&str, EventRow> = AHashMap::new();
        let mut members: AHashMap<&str, Vec<MarketId>> = AHashMap::new();
        for market in &markets {
            let Some(event) = cells[market.0 as usize].event() else { continue };
            let row = groups.entry(&event.id).or_insert(EventRow {
                first: *market,
                volume: 0,
                sports: false,
                markets: Box::default(),
            });
            row.first = row.first.min(*market);
            row.sports |= cells[market.0 as usize].is_sports();
            row.volume = row.volume.saturating_add(volumes[market.0 as usize].unwrap_or(0));
            members.entry(&event.id).or_default().push(*market);
        }
        let mut events: Vec<(&str, EventRow)> = groups.into_iter().collect();
        events.sort_unstable_by_key(|(id, row)| (Reverse(row.volume), *id));
        let events = events
            .into_iter()
            .map(|(id, row)| EventRow { markets: members.remove(id).unwrap_or_default().into_boxed_slice(), ..row });
        Lists { generation, events: events.collect(), markets: markets.into(), updown: updown.into() }
    }
}
