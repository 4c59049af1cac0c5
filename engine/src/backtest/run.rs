//! One back-test: archived frames in, trades and figures out (gateway/docs/simulation.md §6.1).
//!
//! ```text
//! frames ─► archived books ─┬─► lane of the first seed ─► trades, equity
//!                           ├─► lanes of the other seeds ─► profit and loss
//!                           └─► lane without costs ─► comparison
//! ```
//!
//! Every frame is read once for all lanes of a part; one part has all seeds, unless several threads share them. Between two frames each lane does what is due: orders on their way, then
//! decisions. Results of markets are published at their moments, before anything else of that moment.

use super::chance::{Chance, Haircut, Latency};
use super::fill::FillModel;
use super::job::{BookFrame, Job, ORDERS_MAX, TICKS_MAX, TickMode, TickPlan};
use super::lane::{Conduct, Ground, Lane, Lanes, Stop, write};
use super::quotes::Quotes;
use super::report::{Part, Report};
use super::samples::Sampler;
use super::source::FrameSource;
use crate::book::{BookWriter, Books};
use crate::fact;
use crate::id::MarketId;
use crate::market::Market;
use crate::market::catalog::Catalog;
use crate::market::mutation::MarketMutation;
use crate::market::terms::{Listing, MarketState, Resolution, Venue};
use crate::rules::Rules;
use crate::time::Timestamp;
use std::ops::Range;
use std::sync::Arc;

/// Why a run has no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure<E> {
    Cancelled,
    /// More trades, points of equity or orders than a run may have.
    OutputLimit,
    /// The frames could not be read.
    Frames(E),
}

impl<E> From<Stop> for Failure<E> {
    fn from(stop: Stop) -> Failure<E> {
        match stop {
            Stop::Cancelled => Failure::Cancelled,
            Stop::OutputLimit => Failure::OutputLimit,
        }
    }
}

/// Runs a back-test under these rules. `frames` opens the frames of the job's markets from before its start on, in the
/// order of their receipt; it is called twice in event mode. `proceed` is called with the time reached, at least once a
/// frame and once a tick; false cancels the run.
///
/// # Errors
/// [`Failure`].
///
/// # Panics
/// When a frame names a market that the job does not have.
pub fn run<S: FrameSource>(
    job: &Job,
    rules: &Rules,
    frames: impl FnMut() -> Result<S, S::Error>,
    proceed: &mut dyn FnMut(Timestamp) -> bool,
) -> Result<Report, Failure<S::Error>> {
    join(job, rules, vec![run_part(job, rules, 0..job.seeds, frames, proceed)?])
}

/// Runs some of the seeds of a back-test, for one thread of several. The other arguments, the errors and the panics are
/// those of [`run`].
///
/// # Errors
/// [`Failure`].
pub fn run_part<S: FrameSource>(
    job: &Job,
    rules: &Rules,
    seeds: Range<u16>,
    mut frames: impl FnMut() -> Result<S, S::Error>,
    proceed: &mut dyn FnMut(Timestamp) -> bool,
) -> Result<Part, Failure<S::Error>> {
    let mut open = || frames().map_err(Failure::Frames);
    let plan = match job.tick_mode {
        TickMode::Grid => TickPlan::grid(job),
        TickMode::Event => TickPlan::event(job, count(job, open()?, proceed)?),
    };
    let mut run = Run::new(job, rules, plan, seeds, proceed);
    let mut frames = open()?;
    while let Some(frame) = frames.next_frame().map_err(Failure::Frames)? {
        if frame.at >= job.end {
            break;
        }
        run.frame(frame)?;
    }
    run.pass(job.end)?;
    run.results(Timestamp(job.end.0 + 1))?;
    let Run { mut ground, mut lanes, mut sampler, .. } = run;
    for lane in lanes.iter_mut() {
        lane.finish(&mut ground)?;
    }
    sampler.take(&ground, &lanes, job.end);
    Ok(Part::of(&ground, lanes, sampler.end()))
}

/// The report of all parts of a back-test, in the order of their seeds. It is the one of [`run`], however the seeds were
/// divided.
///
/// # Errors
/// [`Failure::OutputLimit`].
///
/// # Panics
/// Without a part.
pub fn join<E>(job: &Job, rules: &Rules, parts: Vec<Part>) -> Result<Report, Failure<E>> {
    let orders: u64 = parts.iter().map(|part| part.orders).sum();
    match orders > ORDERS_MAX {
        true => Err(Failure::OutputLimit),
        false => Ok(Report::of(job, rules, parts)),
    }
}

/// Changes of books within the window, at most one above the bound.
fn count<S: FrameSource>(
    job: &Job,
    mut frames: S,
    proceed: &mut dyn FnMut(Timestamp) -> bool,
) -> Result<u64, Failure<S::Error>> {
    let mut count = 0;
    while let Some(frame) = frames.next_frame().map_err(Failure::Frames)? {
        if frame.at >= job.end || count > TICKS_MAX {
            break;
        }
        if !proceed(frame.at) {
            return Err(Failure::Cancelled);
        }
        count += u64::from(frame.at >= job.start && frame.extent().has_books);
    }
    Ok(count)
}

/// A run in progress.
struct Run<'a> {
    ground: Ground<'a>,
    writer: BookWriter,
    /// The lane without costs is in the part of the first seed.
    lanes: Lanes,
    /// What the venue decides about markets within the window, in the order of time.
    decisions: Vec<Decision>,
    /// Count of them that are published.
    published: usize,
    /// The time of the last frame.
    reached: Timestamp,
    sampler: Sampler,
}

#[derive(Clone, Copy, Debug)]
struct Decision {
    at: Timestamp,
    market: usize,
    what: Decided,
}

#[derive(Clone, Copy, Debug)]
enum Decided {
    /// Whether its end date has passed.
    Ended(bool),
    Resolved(Resolution),
}

impl<'a> Run<'a> {
    fn new(
        job: &'a Job,
        rules: &Rules,
        plan: TickPlan,
        seeds: Range<u16>,
        proceed: &'a mut dyn FnMut(Timestamp) -> bool,
    ) -> Run<'a> {
        let (books, catalog) = (Arc::new(Books::new()), Arc::new(Catalog::new()));
        let mut writer = books.writer().expect("the books are new");
        let mut decisions = Vec::new();
        for (index, of) in job.markets.iter().enumerate() {
            let id = MarketId(index as u32);
            let listing = Listing {
                venue: Venue::Polymarket,
                venue_market_id: index.to_string(),
                condition: of.market.condition.to_string(),
                tokens: of.market.tokens.each_ref().map(|token| token.to_string()),
                outcomes: of.market.outcomes.each_ref().map(|label| label.to_string()),
                slug: of.market.condition.to_string(),
                question: of.market.condition.to_string(),
                description: None,
                image: None,
                label: None,
                category: of.market.category,
                tags: Vec::new(),
                event: None,
                tick: of.market.tick,
                min_order_size: None,
                neg_risk: false,
                start: None,
                end: of.market.end.known_at(job.start),
                updown: None,
                sports: false,
            };
            catalog.add(id, &Market::listed(listing, MarketState::Active, job.start), None);
            writer.tick(id, of.market.tick);
            let turned = of.market.end.turns(job.end).into_iter();
            let turned = turned.map(|(at, is_over)| (at, Decided::Ended(is_over)));
            let resolved = of.market.settlement.map(|settled| (settled.at, Decided::Resolved(settled.resolution)));
            let decided = turned.chain(resolved).filter(|(at, _)| *at <= job.end);
            decisions.extend(decided.map(|(at, what)| Decision { at, market: index, what }));
        }
        // Stable: the end of a market comes before its result, markets in their order.
        decisions.sort_by_key(|decision| decision.at);
        let (quotes, changed, changed_at) = (Quotes::new(job), Vec::new(), Timestamp(0));
        let ground = Ground { job, plan, books, catalog, quotes, changed, changed_at, proceed, orders: 0 };
        let Job { latency, haircut, .. } = *job;
        let honest = Conduct { model: job.strategy.model, latency, haircut, pays: true, keeps: false };
        let naive = Conduct {
            model: FillModel::Midpoint,
            latency: Latency::Constant(0),
            haircut: Haircut(0),
            pays: false,
            keeps: false,
        };
        let has_first = seeds.contains(&0);
        let seeds = seeds.map(|seed| {
            let conduct = Conduct { keeps: seed == 0, ..honest };
            Lane::new(&ground, rules, Chance::new(job.seed.wrapping_add(seed.into())), conduct)
        });
        let seeds = seeds.collect();
        let naive = has_first.then(|| Lane::new(&ground, rules, Chance::new(0), naive));
        let lanes = Lanes { seeds, naive };
        let sampler = Sampler::new(job);
        Run { ground, writer, lanes, decisions, published: 0, reached: Timestamp(0), sampler }
    }

    /// Does what is due before a frame, then applies it. A receipt time that goes back counts as the highest so far.
    fn frame(&mut self, frame: &BookFrame) -> Result<(), Stop> {
        let at = frame.at.max(self.reached);
        if at > self.reached {
            self.pass(at)?;
            self.reached = at;
            self.ground.changed.clear();
            self.lanes.iter_mut().for_each(Lane::new_moment);
        }
        if !(self.ground.proceed)(at) {
            return Err(Stop::Cancelled);
        }
        let extent = frame.extent();
        if let Some(tick) = extent.tick {
            let fact = fact::TickChanged { market: MarketId(frame.market as u32), tick, at };
            self.ground.catalog.publish(&MarketMutation::TickChanged(fact));
        }
        let has_new_top = write(&mut self.writer, frame, extent, at, |_, _, _, size| size);
        self.lanes.iter_mut().for_each(|lane| lane.frame(frame, extent, at));
        let ground = &mut self.ground;
        if extent.has_books {
            ground.quotes.changed(frame.market, has_new_top);
        }
        let is_tick = ground.plan.mode == TickMode::Event && extent.has_books;
        if is_tick && at >= ground.job.start && !ground.changed.contains(&frame.market) {
            ground.changed_at = at;
            ground.changed.push(frame.market);
        }
        Ok(())
    }

    /// Everything that is due before `until`, with the samples of it.
    fn pass(&mut self, until: Timestamp) -> Result<(), Stop> {
        while self.sampler.next() < until {
            let at = self.sampler.next();
            let after = Timestamp(at.0 + 1);
            self.results(after)?;
            self.advance(after)?;
            self.sampler.take(&self.ground, &self.lanes, at);
        }
        self.results(until)?;
        self.advance(until)
    }

    /// The decisions of the venue before `until`, each after what is due before it.
    fn results(&mut self, until: Timestamp) -> Result<(), Stop> {
        while let Some(decision) = self.decisions.get(self.published).copied().filter(|next| next.at < until) {
            let Decision { at, market, what } = decision;
            self.advance(at)?;
            self.published += 1;
            let id = MarketId(market as u32);
            match what {
                Decided::Ended(ended) => {
                    let fact = fact::MarketStateChanged { market: id, state: MarketState::Active, ended, at };
                    self.ground.catalog.publish(&MarketMutation::MarketStateChanged(fact));
                }
                Decided::Resolved(resolution) => {
                    let fact = fact::MarketResolved { market: id, resolution, at };
                    self.ground.catalog.publish(&MarketMutation::MarketResolved(fact));
                    for lane in self.lanes.iter_mut() {
                        lane.settle(&mut self.ground, market, resolution, at)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn advance(&mut self, until: Timestamp) -> Result<(), Stop> {
        // Silence within a covered hour is not age: the connection was there.
        self.writer.alive(0, until);
        for lane in self.lanes.iter_mut() {
            lane.alive(until);
            lane.advance(&mut self.ground, until)?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests;
