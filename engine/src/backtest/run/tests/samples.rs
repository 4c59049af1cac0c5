//! Samples of runs: they show a run, and change nothing of it.

use super::*;
use crate::backtest::{SAMPLES_MAX, Samples};

/// The sample at a moment or the last one before it.
fn index(samples: &Samples, at: Timestamp) -> usize {
    samples.moments.partition_point(|sample| sample.at <= at) - 1
}

#[test]
fn samples_show_the_example() {
    let report = ran(&job(), &example());
    let samples = &report.samples;
    let count = samples.moments.len();
    assert!(count as u64 <= SAMPLES_MAX && count > 990, "{count}");
    assert_eq!(samples.moments[0].at, FIRST.start());
    assert_eq!(samples.moments.last().expect("the end").at, job().end);
    assert!(samples.moments.is_sorted_by(|one, next| one.at < next.at));
    assert!(samples.moments.iter().all(|sample| sample.band.is_none()), "one seed");
    // Naive: in at 0.30, worth that until 18:10, then out at 0.46. The midpoint before was 0.32.
    let cases = [
        (at(0, 0), 500_000_000, Some(320_000)),
        (at(21, 0), 500_000_000, Some(320_000)),
        (at(21, 45), 500_000_000, Some(300_000)),
        (at(69, 30), 500_000_000, Some(300_000)),
        (at(70, 30), 504_000_000, Some(460_000)),
        (at(120, 0), 504_000_000, Some(460_000)),
    ];
    for (moment, naive, mid) in cases {
        let number = index(samples, moment);
        assert_eq!(samples.moments[number].naive, Cash(naive), "{moment:?}");
        assert_eq!(samples.mids[0][number], mid.map(Cash), "{moment:?}");
    }
    assert_eq!(samples.moments[count - 1].naive - job().bankroll, report.comparison.naive_pnl);
    println!("samples: {} cases", cases.len());
}

#[test]
fn samples_are_what_was_done_until_their_moment() {
    // Without costs and with one seed the naive lane is the run itself.
    let mut free = trading(|strategy| strategy.model = FillModel::Midpoint);
    free.markets = (0..2).map(|number| market(number, &[Verdict::Valid, Verdict::Valid])).collect();
    free.strategy.entry = vec![when(Field::Price, Operator::Less, "0.62")];
    free.strategy.exit = vec![when(Field::Price, Operator::Greater, "0.29")];
    let mut rules = Rules::default();
    Category::ALL.into_iter().for_each(|of| rules.fees.set(of, crate::amount::Bps(0)));
    let frames = random(6, 1_200);
    let open = || Ok::<_, Infallible>(frames.iter());
    let report = run(&free, &rules, open, &mut |_| true).expect("it ends");
    assert!(report.points.len() > 50, "{} points", report.points.len());
    let mut compared = 0;
    for sample in &report.samples.moments {
        let until = report.points.partition_point(|point| point.at <= sample.at);
        assert_eq!(sample.naive, report.points[until - 1].equity(), "{:?}", sample.at);
        compared += 1;
    }
    println!("samples: {compared} equal to points");
}

#[test]
fn the_band_is_that_of_the_seeds() {
    let mut many = trading(|strategy| strategy.exit.clear());
    (many.seeds, many.latency, many.haircut) = (40, Latency::Uniform(100, 60_000), Haircut(5_000));
    let report = ran(&many, &example());
    let bands: Vec<[Cash; 3]> = report.samples.moments.iter().map(|sample| sample.band.expect("seeds")).collect();
    assert!(bands.iter().all(|[low, median, high]| low <= median && median <= high));
    assert!(bands.iter().any(|[low, _, high]| low < high), "seeds differ");
    assert_eq!(bands[0], [many.bankroll; 3], "nothing was done yet");
    let last = bands.last().expect("the end").map(|equity| equity - many.bankroll);
    assert_eq!(Some(last), report.comparison.percentiles);
    println!("bands: {} samples", bands.len());
}

#[test]
fn an_unknown_price_has_no_sample() {
    let mut gone = job();
    gone.markets = vec![market(0x51, &[Verdict::Missing, Verdict::Valid])];
    gone.markets[0].market.settlement =
        Some(Settled { resolution: Resolution::Split, at: at(100, 0), source: SettlementSource::Upstream });
    let mut frames = example();
    frames.push(BookFrame { at: at(80, 0), market: 0, changes: vec![BookChange::Gap(Outcome::First)] });
    frames.push(book(at(90, 0), &[(4_500, 100)], &[(4_700, 100)]));
    let samples = ran(&gone, &frames).samples;
    // Not covered, known, in a gap, known again, paid out.
    let cases = [(30, None), (59, None), (61, Some(300_000)), (79, Some(460_000)), (81, None), (89, None)];
    let later = [(91, Some(460_000)), (99, Some(460_000)), (101, None), (120, None)];
    for (minute, mid) in cases.into_iter().chain(later) {
        assert_eq!(samples.mids[0][index(&samples, at(minute, 30).min(gone.end))], mid.map(Cash), "minute {minute}");
    }
    println!("unknown prices: {} cases", cases.len() + later.len());
}

/// The figures before there were samples: taking them changes no order, and is not in the hash.
#[test]
fn samples_are_not_in_the_hash() {
    let mut job = trading(|strategy| {
        strategy.entry = vec![when(Field::Price, Operator::Less, "0.62")];
        strategy.exit = vec![when(Field::Price, Operator::Greater, "0.29")];
    });
    job.markets = (0..2).map(|number| market(number, &[Verdict::Valid, Verdict::Valid])).collect();
    job.markets[1].market.settlement =
        Some(Settled { resolution: Resolution::Split, at: at(100, 0), source: SettlementSource::Upstream });
    (job.seeds, job.latency, job.haircut) = (5, Latency::Uniform(100, 3_000), Haircut(3_000));
    let mut hashes = Vec::new();
    for mode in [TickMode::Grid, TickMode::Event] {
        job.tick_mode = mode;
        let report = ran(&job, &random(5, 1_200));
        assert!(!report.samples.moments.is_empty());
        hashes.push(report.hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    assert_eq!(
        hashes,
        [
            "4e2e9034fac32b3d0cdb6dc91041501d82d817b2d4f4ce7914c8048e433e0520",
            "09567c40268a479c8e8fe3c6b4fb2833cc3ad2801f269f022d868b230089b4eb",
        ]
    );
}
