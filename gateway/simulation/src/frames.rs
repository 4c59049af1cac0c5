//! The rows of a job's markets as frames for the engine, in the order of receipt (gateway/docs/simulation.md §6.1).
//!
//! ```text
//! index: opening books ─► frames before the window
//! hour: pages of each token ─► Sorter (receipt, market) ─┬─► UpdateMaker ─► frames
//! sidecar: gaps; hours that are not usable ─► breaks ────┘
//! ```
//!
//! One hour at a time. Rows become changes by the code of a replay, so an old book and a change without a book are
//! decided as there.

use crate::plan::{Place, Plan};
use ahash::AHashMap;
use archive::row::{Condition, Row};
use archive::sidecar::Sidecar;
use archive::sort::{Order, Sorted, Sorter};
use archive::store::{HourEntry, Store};
use engine::backtest::{BookChange, BookFrame, FrameSource, Hour, JobMarket, Verdict};
use engine::id::Outcome;
use engine::time::{MILLISECOND, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use venue::FeedUpdate;
use venue::archive::rows::UpdateMaker;

/// Rows that are read between two checks whether the run goes on.
const ROWS_BETWEEN_CHECKS: u64 = 1_024;
/// Rows, with their levels, of one frame: a longer moment has several frames, so that memory is bounded.
const FRAME_WEIGHT_MAX: usize = 65_536;
/// Folder of runs that exceed the memory, in that of the archive.
const CACHE: &str = "cache";
const OUTCOMES: [Outcome; 2] = [Outcome::First, Outcome::Second];

/// Why there are no further frames.
#[derive(Debug)]
pub enum FramesError {
    /// A file is damaged or cannot be read.
    Archive(archive::Error),
    /// An hour was removed or replaced since the plan was made.
    HourChanged(Hour),
    /// The run does not go on.
    Ended,
}

impl FramesError {
    /// The name of the reason in `error_message`.
    pub fn name(&self) -> &'static str {
        match self {
            FramesError::Archive(_) => "archive_unavailable",
            FramesError::HourChanged(_) => "hours_gone",
            FramesError::Ended => "ended",
        }
    }
}

impl fmt::Display for FramesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FramesError::Archive(error) => error.fmt(f),
            FramesError::HourChanged(hour) => write!(f, "the hour {hour} was removed or replaced meanwhile"),
            FramesError::Ended => f.write_str("it was ended"),
        }
    }
}

impl std::error::Error for FramesError {}

impl From<archive::Error> for FramesError {
    fn from(error: archive::Error) -> FramesError {
        FramesError::Archive(error)
    }
}

/// The frames of a plan, in one space that each of them reuses.
pub struct Frames<'a> {
    plan: &'a Plan,
    store: &'a Store,
    memory_bytes: u64,
    goes_on: &'a dyn Fn() -> bool,
    /// Index of a market in the job.
    markets: AHashMap<Condition, usize>,
    /// Market and outcome of a token.
    tokens: AHashMap<Arc<str>, (usize, Outcome)>,
    maker: UpdateMaker,
    updates: Vec<FeedUpdate>,
    /// The books at the begin.
    openings: VecDeque<BookFrame>,
    /// The next hour to read.
    next: Hour,
    rows: Option<Sorted>,
    /// The row after the next group.
    ahead: Option<Row>,
    /// Rows of one market with one receipt.
    group: Vec<Row>,
    breaks: VecDeque<Break>,
    /// The last frame.
    frame: BookFrame,
    has_ended: bool,
}

/// An hour with its sidecar.
type Sealed = (Arc<HourEntry>, Arc<Sidecar>);

/// From this moment on, books of a market are unknown until their next whole book.
struct Break {
    at: Timestamp,
    market: usize,
    outcomes: Vec<Outcome>,
}

impl<'a> Frames<'a> {
    /// Opens the frames of a plan. About `memory_bytes` are used for rows; what exceeds them is spilled into the cache
    /// folder of the archive. `goes_on` is asked now and then; false ends the frames.
    ///
    /// # Errors
    /// [`FramesError`].
    pub fn open(
        plan: &'a Plan,
        store: &'a Store,
        memory_bytes: u64,
        goes_on: &'a dyn Fn() -> bool,
    ) -> Result<Frames<'a>, FramesError> {
        let markets = plan.places.iter().enumerate().map(|(number, place)| (place.condition, number)).collect();
        let of_token = |(number, of): (usize, &JobMarket)| {
            OUTCOMES.map(|outcome| (of.market.tokens[outcome as usize].clone(), (number, outcome)))
        };
        let mut frames = Frames {
            plan,
            store,
            memory_bytes,
            goes_on,
            markets,
            tokens: plan.job.markets.iter().enumerate().flat_map(of_token).collect(),
            maker: UpdateMaker::default(),
            updates: Vec::new(),
            openings: VecDeque::new(),
            next: plan.hours.start,
            rows: None,
            ahead: None,
            group: Vec::new(),
            breaks: VecDeque::new(),
            frame: BookFrame { at: Timestamp(0), market: 0, changes: Vec::new() },
            has_ended: false,
        };
        for (place, of) in plan.places.iter().zip(&plan.job.markets) {
            frames.maker.listed(place.condition, of.market.tick);
        }
        frames.read_openings()?;
        Ok(frames)
    }

    /// The books that earlier hours ended with.
    fn read_openings(&mut self) -> Result<(), FramesError> {
        let (plan, first) = (self.plan, self.plan.hours.start);
        let mut openings = Vec::new();
        for (number, place) in plan.places.iter().enumerate() {
            if !(self.goes_on)() {
                return Err(FramesError::Ended);
            }
            let market = &plan.job.markets[number];
            let Some((entry, _)) = self.usable(place, market, first)? else { continue };
            for outcome in OUTCOMES {
                let token = &market.market.tokens[outcome as usize];
                let Some(book) = self.store.opening(&entry, &place.condition, token)? else { continue };
                let view = book.view();
                // Before the window in any case: nothing changes within it.
                let at = book.last_received().min(Timestamp(first.start().0.saturating_sub(MILLISECOND)));
                let change = BookChange::Book { outcome, bids: view.bids.clone(), asks: view.asks.clone() };
                openings.push(BookFrame { at, market: number, changes: vec![change] });
                self.maker.open(&[FeedUpdate::BookSnapshot {
                    token: token.clone(),
                    bids: view.bids,
                    asks: view.asks,
                    venue_ts: book.snapshot_received(),
                    hash: None,
                }]);
            }
        }
        openings.sort_by_key(|frame| frame.at);
        self.openings = openings.into();
        Ok(())
    }

    /// The files of a usable hour; `None`: the job does not use it.
    fn usable(&self, place: &Place, market: &JobMarket, hour: Hour) -> Result<Option<Sealed>, FramesError> {
        let Some((_, digest)) = market.digests.iter().find(|(of, _)| *of == hour) else { return Ok(None) };
        let changed = || FramesError::HourChanged(hour);
        let entry = self.store.hour(&place.venue, hour).ok_or_else(changed)?;
        let sidecar = entry.sidecar().map_err(|_| changed())?;
        match sidecar.parquet.digest() {
            Some(now) if now == *digest => Ok(Some((entry, sidecar))),
            _ => Err(changed()),
        }
    }

    /// Brings the rows and breaks of the next hour into order.
    fn read_hour(&mut self) -> Result<(), FramesError> {
        let (plan, hour) = (self.plan, self.next);
        self.next = hour.next();
        // Half of the memory is for what is decoded and for books.
        let mut sorter = Sorter::new(Order::Time, &self.store.root().join(CACHE), self.memory_bytes / 2);
        let mut breaks = Vec::new();
        for (number, place) in plan.places.iter().enumerate() {
            let market = &plan.job.markets[number];
            match self.usable(place, market, hour)? {
                Some((entry, sidecar)) => {
                    breaks_of(&sidecar, hour, number, place, market, &mut breaks);
                    self.read_rows(&entry, place, market, &mut sorter)?;
                }
                None => breaks.push(Break { at: hour.start(), market: number, outcomes: OUTCOMES.into() }),
            }
        }
        breaks.sort_by_key(|of| of.at);
        self.breaks = breaks.into();
        self.rows = Some(sorter.finish()?);
        self.fill()
    }

    /// Adds the rows of a market's tokens; only their pages are read.
    fn read_rows(
        &self,
        entry: &HourEntry,
        place: &Place,
        market: &JobMarket,
        sorter: &mut Sorter,
    ) -> Result<(), FramesError> {
        let (goes_on, end) = (self.goes_on, self.plan.job.end);
        let is_whole = self.store.with_hour(entry, |file, index| {
            let tokens = market.market.tokens.iter().filter_map(|token| index.token(&place.condition, token));
            let mut tokens: Vec<_> = tokens.collect();
            // The order of the file: ties between the tokens stay in it.
            tokens.sort_by_key(|token| token.rows.start);
            for token in tokens {
                for row in file.rows(token.rows) {
                    let (number, row) = row?;
                    if number % ROWS_BETWEEN_CHECKS == 0 && !goes_on() {
                        return Ok(false);
                    }
                    if row.received >= end {
                        break;
                    }
                    if row.market == place.condition && *row.token == *token.token {
                        sorter.push(&row)?;
                    }
                }
            }
            Ok(goes_on())
        })?;
        if is_whole { Ok(()) } else { Err(FramesError::Ended) }
    }

    /// Reads the rows of the next frame.
    fn fill(&mut self) -> Result<(), FramesError> {
        let Some(sorted) = &mut self.rows else { return Ok(()) };
        self.group.extend(self.ahead.take());
        let mut weight = self.group.first().map_or(0, weight_of);
        for row in sorted {
            let row = row?;
            weight += weight_of(&row);
            let is_other = |first: &Row| (first.received, first.market) != (row.received, row.market);
            if self.group.first().is_some_and(|first| is_other(first) || weight > FRAME_WEIGHT_MAX) {
                self.ahead = Some(row);
                return Ok(());
            }
            self.group.push(row);
        }
        self.rows = None;
        Ok(())
    }

    /// Makes the next frame; false: there is none.
    fn advance(&mut self) -> Result<bool, FramesError> {
        loop {
            if let Some(opening) = self.openings.pop_front() {
                self.frame = opening;
                return Ok(true);
            }
            let rows_at = self.group.first().map(|row| row.received);
            // A break comes before rows of the same moment: a whole book among them ends it.
            if self.breaks.front().is_some_and(|of| rows_at.is_none_or(|rows| of.at <= rows))
                && let Some(of) = self.breaks.pop_front()
            {
                self.make_broken(&of);
                return Ok(true);
            }
            if rows_at.is_some() {
                self.make_changed();
                self.group.clear();
                self.fill()?;
                if !self.frame.changes.is_empty() {
                    return Ok(true);
                }
            } else if self.next < self.plan.hours.end {
                self.read_hour()?;
            } else {
                return Ok(false);
            }
        }
    }

    /// Makes the frame of a break.
    fn make_broken(&mut self, of: &Break) {
        let tokens = &self.plan.job.markets[of.market].market.tokens;
        let tokens: Vec<String> = of.outcomes.iter().map(|outcome| tokens[*outcome as usize].to_string()).collect();
        self.maker.forget(&tokens);
        (self.frame.at, self.frame.market) = (of.at, of.market);
        self.frame.changes.clear();
        self.frame.changes.extend(of.outcomes.iter().copied().map(BookChange::Gap));
    }

    /// Makes the frame of the group; it has no changes if the rows change nothing.
    fn make_changed(&mut self) {
        self.frame.changes.clear();
        let Some(first) = self.group.first() else { return };
        let Some(market) = self.markets.get(&first.market) else { return };
        (self.frame.at, self.frame.market) = (first.received, *market);
        self.maker.frame(&self.group, &mut self.updates);
        let changes = &mut self.frame.changes;
        for update in self.updates.drain(..) {
            match update {
                FeedUpdate::BookSnapshot { token, bids, asks, .. } => {
                    let Some((_, outcome)) = self.tokens.get(&token) else { continue };
                    changes.push(BookChange::Book { outcome: *outcome, bids, asks });
                }
                FeedUpdate::BookDelta { token, levels, .. } => {
                    let Some((_, outcome)) = self.tokens.get(&token) else { continue };
                    let level = |(side, price, size)| BookChange::Level { outcome: *outcome, side, price, size };
                    changes.extend(levels.into_iter().map(level));
                }
                FeedUpdate::TickChanged { tick, .. } => changes.push(BookChange::Tick(tick)),
                // Trades and stated prices change no book; the others are not made of rows.
                FeedUpdate::LastTrade { .. }
                | FeedUpdate::Top { .. }
                | FeedUpdate::Listed { .. }
                | FeedUpdate::StateChanged { .. }
                | FeedUpdate::EndChanged { .. }
                | FeedUpdate::Strike { .. }
                | FeedUpdate::Figures { .. }
                | FeedUpdate::Stated { .. }
                | FeedUpdate::Resolved { .. }
                | FeedUpdate::LastPrice { .. }
                | FeedUpdate::SidelessTrade { .. }
                | FeedUpdate::Spot { .. }
                | FeedUpdate::Gap { .. }
                | FeedUpdate::Left { .. }
                | FeedUpdate::Fees { .. } => {}
            }
        }
    }
}

impl FrameSource for Frames<'_> {
    type Error = FramesError;

    fn next_frame(&mut self) -> Result<Option<&BookFrame>, FramesError> {
        if self.has_ended {
            return Ok(None);
        }
        let advanced = self.advance();
        self.has_ended = !matches!(advanced, Ok(true));
        Ok(advanced?.then_some(&self.frame))
    }
}

/// The breaks of a market in an hour: gaps of the sidecar, and the borders of a recording that begins or ends in it.
fn breaks_of(sidecar: &Sidecar, hour: Hour, number: usize, place: &Place, market: &JobMarket, breaks: &mut Vec<Break>) {
    for gap in &sidecar.gaps {
        let is_of = |outcome: &Outcome| {
            let token = &market.market.tokens[*outcome as usize];
            gap.tokens.as_ref().is_none_or(|tokens| tokens.iter().any(|of| **of == **token))
        };
        let outcomes: Vec<Outcome> = OUTCOMES.into_iter().filter(is_of).collect();
        if !outcomes.is_empty() {
            breaks.push(Break { at: Timestamp::from_millis(gap.from), market: number, outcomes });
        }
    }
    if sidecar.verdict_of(&place.condition) == Verdict::Partial {
        let (begins, ends) = sidecar.recorded(hour);
        let begins = begins.map(|_| hour.start());
        let ends = ends.map(|at| at.plus(MILLISECOND));
        let border = |at| Break { at, market: number, outcomes: OUTCOMES.into() };
        breaks.extend(begins.into_iter().chain(ends).map(border));
    }
}

/// The row itself, and its levels.
fn weight_of(row: &Row) -> usize {
    match &row.event {
        archive::row::Event::Book { bids, asks } => 1 + bids.len() + asks.len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
