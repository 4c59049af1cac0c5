//! A back-test to run: its markets, its window, and the changes of books that it is fed with (gateway/docs/simulation.md
//! §6.1).

use super::book::ArchivedMarket;
use super::chance::{Haircut, Latency};
use super::hours::{Coverage, Hour};
use super::strategy::Strategy;
use crate::amount::{Cash, Price, Qty, TickSize};
use crate::book::BookSide;
use crate::id::{InstrumentId, MarketId, Outcome};
use crate::order::Side;
use crate::time::{MINUTE, SECOND, Timestamp};

/// Ticks of a run at most, over all markets.
pub const TICKS_MAX: u64 = 200_000;
/// Seeds of a run at most.
pub const SEEDS_MAX: u16 = 256;
/// Trades, and points of equity, of a run at most.
pub const ROWS_MAX: usize = 100_000;
/// Orders of all seeds of a run at most: bounds its memory.
pub const ORDERS_MAX: u64 = 1_000_000;

/// A back-test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// At least one.
    pub markets: Vec<JobMarket>,
    pub start: Timestamp,
    /// After `start`, and not part of the window.
    pub end: Timestamp,
    pub strategy: Strategy,
    pub bankroll: Cash,
    pub tick_mode: TickMode,
    /// The first seed.
    pub seed: u64,
    /// Count of seeds, 1 to [`SEEDS_MAX`].
    pub seeds: u16,
    pub latency: Latency,
    pub haircut: Haircut,
}

/// One market of a back-test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobMarket {
    pub market: ArchivedMarket,
    /// The outcome that the strategy names.
    pub outcome: Outcome,
    /// The hours of the window.
    pub coverage: Coverage,
    /// SHA-256 of each used hour, which the result is tied to.
    pub digests: Vec<(Hour, [u8; 32])>,
}

/// When decisions are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TickMode {
    /// At fixed distances, usually of a minute.
    #[default]
    Grid,
    /// At every change of the market's books.
    Event,
}

/// The ticks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickPlan {
    pub mode: TickMode,
    /// Distance of the ticks of a grid, and of the points of equity at least. µs.
    pub step: u64,
    /// There are fewer ticks than were asked for.
    pub is_degraded: bool,
}

/// All changes of one market with one time of receipt. A run takes them in the order of that time. Those before its
/// start make the opening books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookFrame {
    pub at: Timestamp,
    /// Index in [`Job::markets`].
    pub market: usize,
    pub changes: Vec<BookChange>,
}

/// One change of a market, in the order of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BookChange {
    /// The whole book of a token, levels in any order.
    Book {
        outcome: Outcome,
        bids: Vec<(Price, Qty)>,
        asks: Vec<(Price, Qty)>,
    },
    /// One level: an absolute size, 0 removes it.
    Level {
        outcome: Outcome,
        side: BookSide,
        price: Price,
        size: Qty,
    },
    Tick(TickSize),
    /// Messages may be missing from here to the next whole book of the token.
    Gap(Outcome),
}

/// What a frame changes, of one look at its changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// The last grid of prices.
    pub tick: Option<TickSize>,
    /// It has a whole book or a level.
    pub has_books: bool,
    pub has_gaps: bool,
}

impl BookFrame {
    pub(super) fn extent(&self) -> Extent {
        let mut extent = Extent::default();
        for change in &self.changes {
            match change {
                BookChange::Book { .. } | BookChange::Level { .. } => extent.has_books = true,
                BookChange::Tick(tick) => extent.tick = Some(*tick),
                BookChange::Gap(_) => extent.has_gaps = true,
            }
        }
        extent
    }
}

impl TickMode {
    /// The word in answers.
    pub fn name(self) -> &'static str {
        match self {
            TickMode::Grid => "grid",
            TickMode::Event => "event",
        }
    }

    /// The mode of exactly that word.
    pub fn named(name: &str) -> Option<TickMode> {
        [TickMode::Grid, TickMode::Event].into_iter().find(|mode| mode.name() == name)
    }
}

impl TickPlan {
    /// Ticks of a minute, or of as many minutes as the bound asks for.
    pub(super) fn grid(job: &Job) -> TickPlan {
        let ticks = |minutes: u64| job.end.since(job.start).div_ceil(minutes * MINUTE) * job.markets.len() as u64;
        let mut minutes = ticks(1).div_ceil(TICKS_MAX).max(1);
        while ticks(minutes) > TICKS_MAX {
            minutes += 1;
        }
        TickPlan { mode: TickMode::Grid, step: minutes * MINUTE, is_degraded: minutes > 1 }
    }

    /// The plan for this many changes of books.
    pub(super) fn event(job: &Job, changes: u64) -> TickPlan {
        if changes <= TICKS_MAX {
            return TickPlan { mode: TickMode::Event, step: MINUTE, is_degraded: false };
        }
        TickPlan { is_degraded: true, ..TickPlan::grid(job) }
    }

    /// The notice of a degraded plan.
    pub fn notice(&self) -> Option<String> {
        let text = || format!("A run has at most {TICKS_MAX} ticks: these are {} s apart.", self.step / SECOND);
        self.is_degraded.then(text)
    }
}

impl Job {
    /// The instrument that the strategy trades in a market.
    pub(super) fn instrument(&self, market: usize) -> InstrumentId {
        MarketId(market as u32).instrument(self.traded(market))
    }

    /// The outcome that the strategy trades in a market: SELL buys the other one.
    pub fn traded(&self, market: usize) -> Outcome {
        let named = self.markets[market].outcome;
        match self.strategy.side {
            Side::Buy => named,
            Side::Sell => named.other(),
        }
    }

    /// Whether decisions are made in a market at this moment.
    pub(super) fn is_covered(&self, market: usize, at: Timestamp) -> bool {
        let hours = &self.markets[market].coverage.hours;
        let first = hours.first().map_or(0, |state| state.hour.0);
        let state = at.hour().checked_sub(first).and_then(|hour| hours.get(hour as usize));
        state.is_some_and(|state| state.verdict.is_usable())
    }
}
