//! Pictures of a run: what its seeds, and the strategy without costs, were worth at moments spread over the window, and
//! the midpoints of the traded tokens. They decide nothing, and are not part of the hash of a result.

use super::job::Job;
use super::lane::{Ground, Lane, Lanes};
use super::report::percentiles;
use crate::amount::Cash;
use crate::time::{SECOND, Timestamp};

/// Samples of a run at most.
pub const SAMPLES_MAX: u64 = 1_000;

/// Samples of a run, in the order of time, the last one at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    pub moments: Vec<Sample>,
    /// By market, one for each moment: the midpoint of the traded token in 10⁻⁶ USD; `None`: it is unknown, the moment
    /// is not covered, or the market has its result.
    pub mids: Vec<Vec<Option<Cash>>>,
}

/// What was done until a moment, valued at the midpoints of the last decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub at: Timestamp,
    /// Equity without costs.
    pub naive: Cash,
    /// The 5th, 50th and 95th percentile of the equity over the seeds by nearest rank; `None` for one seed.
    pub band: Option<[Cash; 3]>,
}

/// Takes samples of a part of a run.
pub(super) struct Sampler {
    step: u64,
    next: Timestamp,
    taken: Taken,
}

/// What the lanes of a part were worth.
#[derive(Debug, Default)]
pub(super) struct Taken {
    moments: Vec<Timestamp>,
    /// Equity without costs at these moments; empty in a part without that lane.
    naive: Vec<Cash>,
    mids: Vec<Vec<Option<Cash>>>,
    /// Equity of the seeds of the part: of all at the first moment, then at the next one.
    equity: Vec<Cash>,
}

impl Sampler {
    pub fn new(job: &Job) -> Sampler {
        // The end has a sample of its own.
        let step = job.end.since(job.start).div_ceil(SAMPLES_MAX - 1).max(SECOND);
        let taken = Taken { mids: vec![Vec::new(); job.markets.len()], ..Taken::default() };
        Sampler { step, next: job.start, taken }
    }

    /// The moment of the next sample.
    pub fn next(&self) -> Timestamp {
        self.next
    }

    /// Takes a sample of lanes that have done everything until `at`.
    pub fn take(&mut self, ground: &Ground<'_>, lanes: &Lanes, at: Timestamp) {
        let job = ground.job;
        self.next = at.plus(self.step);
        let equity = |lane: &Lane| {
            let (cash, positions) = lane.worth(job);
            cash + positions
        };
        self.taken.moments.push(at);
        self.taken.equity.extend(lanes.seeds.iter().map(equity));
        let Some(naive) = &lanes.naive else { return };
        self.taken.naive.push(equity(naive));
        for (market, mids) in self.taken.mids.iter_mut().enumerate() {
            let instrument = job.instrument(market);
            let is_settled = job.markets[market].market.settlement.is_some_and(|settled| settled.at <= at);
            // The end of the window is valued by its last moment.
            let within = at.min(Timestamp(job.end.0 - 1));
            let is_known = !is_settled && job.is_covered(market, within) && !ground.books.gap(instrument);
            let top = is_known.then(|| ground.books.effective_top(instrument).unwrap_or_default());
            mids.push(top.and_then(|top| top.midpoint()));
        }
    }

    pub fn end(self) -> Taken {
        self.taken
    }
}

impl Samples {
    /// The samples of all parts of a run, in the order of their seeds.
    pub(super) fn of(mut parts: Vec<Taken>) -> Samples {
        let mids = std::mem::take(&mut parts[0].mids);
        let band = |moment: usize| {
            let of_part = |part: &Taken| {
                let seeds = part.equity.len() / part.moments.len();
                part.equity[moment * seeds..(moment + 1) * seeds].to_vec()
            };
            percentiles(&mut parts.iter().flat_map(of_part).collect::<Vec<_>>())
        };
        let moments = parts[0].moments.iter().zip(&parts[0].naive).enumerate();
        let moments = moments.map(|(number, (at, naive))| Sample { at: *at, naive: *naive, band: band(number) });
        Samples { moments: moments.collect(), mids }
    }
}
