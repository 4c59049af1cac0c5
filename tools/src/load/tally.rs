//! The counts of a run: latencies, outcomes, and the number of answers in each interval.

use super::kind::Kind;
use super::stalls::Stalls;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest latency that is distinguished from a longer one.
const LATENCY_MAX: Duration = Duration::from_secs(3_600);
/// Approximate number of intervals of a run.
const STRETCHES: u64 = 120;
/// The last interval, which counts every later answer: no run waits that long for one.
const STRETCHES_MAX: usize = 10_000;

/// All counts of a run.
pub struct Tally {
    /// By kind, in nanoseconds; of every answer, refusals included.
    pub latency: [Histogram<u64>; Kind::COUNT],
    pub kinds: [Counts; Kind::COUNT],
    pub statuses: BTreeMap<u16, u64>,
    /// Refusals by error code.
    pub codes: BTreeMap<String, u64>,
    /// Ends of connections and failed attempts to open one, by error.
    pub transport: BTreeMap<String, u64>,
    pub reconnects: u64,
    /// Connections that ended while idle: closed by the server, or gone with its process. Each was reopened
    /// immediately.
    pub rested: u64,
    /// Delay between an operation's due time and its arrival at its connection, in nanoseconds: the client's own delay.
    /// Waiting at the connection is the server's time. In a closed loop, which has no due times: delays of looks at the
    /// client's clock.
    pub lag: Histogram<u64>,
    pub series: Series,
    pub stalls: Stalls,
    /// When the last answer came, since the beginning.
    pub last_answer: Duration,
    /// Due in an open loop, or begun in a closed one.
    pub offered: u64,
    /// Due and given up, because the connections had no room until the end.
    pub unsent: u64,
    /// Cancels that were sent as resting orders.
    pub replaced: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub succeeded: u64,
    pub refused: u64,
    /// Sent on a connection that ended before the answer.
    pub unanswered: u64,
}

impl Counts {
    pub fn answered(self) -> u64 {
        self.succeeded + self.refused
    }

    fn plus(self, other: Counts) -> Counts {
        Counts {
            succeeded: self.succeeded + other.succeeded,
            refused: self.refused + other.refused,
            unanswered: self.unanswered + other.unanswered,
        }
    }
}

/// Answers over time.
pub struct Series {
    pub width: Duration,
    pub stretches: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    pub succeeded: u64,
    pub refused: u64,
}

impl Series {
    fn new(run: Duration) -> Series {
        // Tenths of a second, times 1, 2 or 5 and a power of ten.
        let wished = run.as_millis() as u64 / STRETCHES;
        let width =
            (2..).flat_map(|power| [1, 2, 5].map(|step| step * 10u64.pow(power))).find(|width| *width >= wished);
        Series { width: Duration::from_millis(width.expect("some power is large enough")), stretches: Vec::new() }
    }

    fn at(&mut self, moment: Duration) -> &mut Stretch {
        let place = (moment.as_nanos() / self.width.as_nanos()) as usize;
        let place = place.min(STRETCHES_MAX - 1);
        if place >= self.stretches.len() {
            self.stretches.resize(place + 1, Stretch::default());
        }
        &mut self.stretches[place]
    }
}

impl Tally {
    pub fn new(run: Duration) -> Tally {
        Tally {
            latency: [nanoseconds(), nanoseconds(), nanoseconds()],
            kinds: [Counts::default(); Kind::COUNT],
            statuses: BTreeMap::new(),
            codes: BTreeMap::new(),
            transport: BTreeMap::new(),
            reconnects: 0,
            rested: 0,
            lag: nanoseconds(),
            series: Series::new(run),
            stalls: Stalls::default(),
            last_answer: Duration::ZERO,
            offered: 0,
            unsent: 0,
            replaced: 0,
        }
    }

    /// An answer at `now` to an operation that was due at `due`, both since the beginning.
    pub fn answered(
        &mut self,
        kind: Kind,
        due: Duration,
        now: Duration,
        status: u16,
        code: Option<&str>,
        succeeded: bool,
    ) {
        let latency = now.saturating_sub(due);
        self.latency[kind as usize].saturating_record(latency.as_nanos() as u64);
        self.last_answer = self.last_answer.max(now);
        self.stalls.answered(due, now);
        *self.statuses.entry(status).or_default() += 1;
        let (counts, stretch) = (&mut self.kinds[kind as usize], self.series.at(now));
        if succeeded {
            counts.succeeded += 1;
            stretch.succeeded += 1;
        } else {
            counts.refused += 1;
            stretch.refused += 1;
            count(&mut self.codes, code.unwrap_or("without a code"));
        }
    }

    /// A connection that ended, or could not be opened.
    pub fn broken(&mut self, what: &str) {
        count(&mut self.transport, what);
    }

    /// The client handled at `now` what was due at `due`, both since the beginning; the difference is its own delay.
    pub fn came(&mut self, due: Duration, now: Duration) {
        self.lag.saturating_record(now.saturating_sub(due).as_nanos() as u64);
        self.stalls.came(due, now);
    }

    pub fn total(&self) -> Counts {
        self.kinds.iter().copied().fold(Counts::default(), Counts::plus)
    }

    pub fn total_latency(&self) -> Histogram<u64> {
        let mut total = nanoseconds();
        for latency in &self.latency {
            total.add(latency).expect("histograms of one kind");
        }
        total
    }
}

fn count(counts: &mut BTreeMap<String, u64>, what: &str) {
    match counts.get_mut(what) {
        Some(count) => *count += 1,
        None => drop(counts.insert(what.to_owned(), 1)),
    }
}

fn nanoseconds() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX.as_nanos() as u64, 3).expect("the bounds are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_about_a_hundred_stretches_of_a_round_length() {
        let cases = [(1, 100), (10, 100), (12, 100), (13, 200), (60, 500), (600, 5_000), (86_400, 1_000_000)];
        for (seconds, millis) in cases {
            let series = Series::new(Duration::from_secs(seconds));
            assert_eq!(series.width, Duration::from_millis(millis), "{seconds} s");
        }
        println!("stretches: {} cases", cases.len());
    }

    #[test]
    fn latency_counts_from_the_due_time() {
        let mut tally = Tally::new(Duration::from_secs(1));
        let millis = Duration::from_millis;
        tally.answered(Kind::Rest, millis(100), millis(2_100), 200, None, true);
        tally.answered(Kind::Cancel, millis(2_000), millis(2_101), 404, Some("ORDER_NOT_FOUND"), false);
        tally.answered(Kind::Cancel, millis(2_000), millis(2_199), 503, None, false);
        let max = Duration::from_nanos(tally.latency[Kind::Rest as usize].max());
        assert!(max >= millis(2_000) && max < millis(2_010), "{max:?}");
        assert_eq!(tally.total(), Counts { succeeded: 1, refused: 2, unanswered: 0 });
        assert_eq!(tally.total_latency().len(), 3);
        assert_eq!(tally.series.stretches[21], Stretch { succeeded: 1, refused: 2 });
        assert_eq!(tally.series.stretches.len(), 22);
        assert_eq!(tally.statuses, BTreeMap::from([(200, 1), (404, 1), (503, 1)]));
        assert_eq!(tally.codes.keys().map(String::as_str).collect::<Vec<_>>(), ["ORDER_NOT_FOUND", "without a code"]);
        assert_eq!(tally.last_answer, millis(2_199));
        println!("tallies: 7 cases");
    }
}
