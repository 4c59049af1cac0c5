//! Pictures of a run: what its seeds, and the strategy without costs, were worth at moments spread over the window, and
//! the midpoints of the traded tokens. They decide nothing, and are not part of the hash of a result.

use super::job::Job;
use super::lane::{Ground, Lane};
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

/// Takes samples of a run.
pub(super) struct Sampler {
    step: u64,
    next: Timestamp,
    samples: Samples,
    /// Equity of the seeds at one moment.
    scratch: Vec<Cash>,
}

impl Sampler {
    pub fn new(job: &Job) -> Sampler {
        // The end has a sample of its own.
        let step = job.end.since(job.start).div_ceil(SAMPLES_MAX - 1).max(SECOND);
        let samples = Samples { moments: Vec::new(), mids: vec![Vec::new(); job.markets.len()] };
        Sampler { step, next: job.start, samples, scratch: Vec::new() }
    }

    /// The moment of the next sample.
    pub fn next(&self) -> Timestamp {
        self.next
    }

    /// Takes a sample of lanes that have done everything until `at`: those of the seeds, then the one without costs.
    pub fn take(&mut self, ground: &Ground<'_>, lanes: &[Lane], at: Timestamp) {
        let job = ground.job;
        self.next = at.plus(self.step);
        let equity = |lane: &Lane| {
            let (cash, positions) = lane.worth(job);
            cash + positions
        };
        let (naive, seeds) = lanes.split_last().expect("a run has a lane without costs");
        self.scratch.clear();
        self.scratch.extend(seeds.iter().map(equity));
        let band = percentiles(&mut self.scratch);
        self.samples.moments.push(Sample { at, naive: equity(naive), band });
        for (market, mids) in self.samples.mids.iter_mut().enumerate() {
            let instrument = job.instrument(market);
            let is_settled = job.markets[market].market.settlement.is_some_and(|settled| settled.at <= at);
            // The end of the window is valued by its last moment.
            let within = at.min(Timestamp(job.end.0 - 1));
            let is_known = !is_settled && job.is_covered(market, within) && !ground.books.gap(instrument);
            let top = is_known.then(|| ground.books.effective_top(instrument).unwrap_or_default());
            mids.push(top.and_then(|top| top.midpoint()));
        }
    }

    pub fn end(self) -> Samples {
        self.samples
    }
}
