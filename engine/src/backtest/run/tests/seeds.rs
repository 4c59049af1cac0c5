//! Many seeds, alone and in parts.

use super::*;
use crate::backtest::SEEDS_MAX;

/// The bound of seeds is met: every lane is a world of its own.
#[test]
fn as_many_seeds_as_may_be() {
    let mut job = job();
    (job.seeds, job.seed, job.latency) =
        (SEEDS_MAX, u64::MAX >> 1, Latency::LogNormal { p50: 35, p99: 120, max: 1_000 });
    let report = ran(&job, &example());
    assert!(report.comparison.percentiles.is_some());
    assert_eq!(report.trades.len(), 2);
}

/// Two markets, random books, orders on their way, haircuts.
fn busy() -> Job {
    let mut job = trading(|strategy| {
        strategy.entry = vec![when(Field::Price, Operator::Less, "0.62")];
        strategy.exit = vec![when(Field::Price, Operator::Greater, "0.29")];
    });
    job.markets = (0..2).map(|number| market(number, &[Verdict::Valid, Verdict::Valid])).collect();
    (job.seeds, job.latency, job.haircut) = (7, Latency::Uniform(100, 3_000), Haircut(3_000));
    job
}

#[test]
fn parts_of_the_seeds_have_the_report_of_all() {
    let frames = random(5, 1_200);
    let open = || Ok::<_, Infallible>(frames.iter());
    let divisions: [&[u16]; 4] = [&[0, 7], &[0, 1, 7], &[0, 3, 7], &[0, 1, 2, 3, 4, 5, 6, 7]];
    let mut compared = 0;
    for mode in [TickMode::Grid, TickMode::Event] {
        let job = Job { tick_mode: mode, ..busy() };
        let whole = ran(&job, &frames);
        assert!(whole.comparison.fills_honest > 10, "{} fills", whole.comparison.fills_honest);
        for bounds in divisions {
            let part = |bounds: &[u16]| run_part(&job, &Rules::default(), bounds[0]..bounds[1], open, &mut |_| true);
            let parts = bounds.windows(2).map(part).collect::<Result<_, _>>().expect("parts");
            let joined: Report = join::<Infallible>(&job, &Rules::default(), parts).expect("a report");
            assert_eq!(joined, whole, "{mode:?} {bounds:?}");
            compared += 1;
        }
    }
    println!("divisions of seeds: {compared} cases");
}

/// Parts that are each within the bound may be beyond it together.
#[test]
fn the_bound_of_orders_is_that_of_all_parts() {
    let frames = random(5, 1_200);
    let open = || Ok::<_, Infallible>(frames.iter());
    let job = busy();
    for (orders, expected) in [(ORDERS_MAX / 2, true), (ORDERS_MAX / 2 + 1, false)] {
        let part = |seeds| {
            let part = run_part(&job, &Rules::default(), seeds, open, &mut |_| true).expect("a part");
            crate::backtest::Part { orders, ..part }
        };
        let joined = join::<Infallible>(&job, &Rules::default(), vec![part(0..3), part(3..7)]);
        assert_eq!(joined.is_ok(), expected, "{orders}");
    }
}
