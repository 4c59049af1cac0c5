//! Back-tests by commands: limits of the month, repeats, ends, refunds; the records replayed give the same state.

use super::world::{START, World};
use crate::command::{Answer, BacktestResult, Command, NewBacktest, Query};
use crate::format::Formats;
use crate::id::KeyId;
use crate::reject::Reject;
use crate::time::DAY;
use crate::user::backtests::{BACKTEST_REQUESTS_BYTES_MAX, BACKTESTS_KEPT_US, BacktestEnd};

fn new(number: u8, charged: u64) -> NewBacktest {
    NewBacktest {
        id: [number; 16],
        spec: format!("{{\"n\":{number}}}"),
        digest: [number; 32],
        request: None,
        charged,
        jobs_max: 3,
        hours_max: 10_000,
        by: KeyId(77),
    }
}

fn world() -> World {
    let mut world = World::of("");
    world.make_user();
    world
}

/// The answer in short: the number of the back-test, or the refusal.
fn create(world: &mut World, new: NewBacktest) -> Result<(u8, bool), Reject> {
    match world.ask(Command::CreateBacktest(Box::new(new)), 0) {
        Answer::Backtest { job, is_replay } => Ok((job.id[0], is_replay)),
        Answer::Refused(reject) => Err(reject),
        other => panic!("{other:?}"),
    }
}

fn end(world: &mut World, number: u8, result: BacktestResult) -> Result<(BacktestEnd, u64), Reject> {
    match world.ask(Command::EndBacktest { job: [number; 16], result }, 0) {
        Answer::Backtest { job, .. } => {
            let ended = job.ended.as_ref().expect("it has ended");
            Ok((ended.end, job.net_charge()))
        }
        Answer::Refused(reject) => Err(reject),
        other => panic!("{other:?}"),
    }
}

fn start(world: &mut World, number: u8) -> Result<bool, Reject> {
    match world.ask(Command::StartBacktest { job: [number; 16] }, 0) {
        Answer::Backtest { job, .. } => Ok(job.started_at.is_some()),
        Answer::Refused(reject) => Err(reject),
        other => panic!("{other:?}"),
    }
}

fn used(world: &mut World) -> (u32, u64) {
    let month = world.now.month();
    match world.ask(Command::Query(Query::BacktestMeter(month)), 0) {
        Answer::BacktestMeter(meter) => (meter.jobs, meter.hours),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_month_has_its_limits() {
    let mut world = world();
    let resets_at = START.next_month();
    assert_eq!(create(&mut world, new(1, 6_000)), Ok((1, false)));
    let spent = Reject::MarketHoursSpent { limit: 10_000, used: 6_000, resets_at };
    assert_eq!(create(&mut world, new(2, 4_001)), Err(spent));
    assert_eq!(create(&mut world, new(2, 4_000)), Ok((2, false)));
    assert_eq!(create(&mut world, new(3, 0)), Ok((3, false)));
    // The count comes before the hours.
    assert_eq!(create(&mut world, new(4, 1)), Err(Reject::BacktestsSpent { limit: 3, resets_at }));
    assert_eq!(used(&mut world), (3, 10_000));
    world.now = world.now.plus(30 * DAY);
    assert_eq!(used(&mut world), (0, 0));
    assert_eq!(create(&mut world, new(4, 10_000)), Ok((4, false)));
    world.check().expect("the records give the same state");
}

/// One that was cancelled counts as long as it is kept.
#[test]
fn the_requests_of_a_user_are_bounded() {
    /// The largest request of the API.
    const LARGE: usize = 64 << 10;
    const FIT: u16 = (BACKTEST_REQUESTS_BYTES_MAX / LARGE) as u16;
    let mut world = world();
    let id = |number: u16| {
        let mut id = [7; 16];
        id[..2].copy_from_slice(&number.to_le_bytes());
        id
    };
    let sized = |number: u16, bytes: usize| NewBacktest {
        id: id(number),
        spec: "x".repeat(bytes),
        jobs_max: 9_999,
        ..new(7, 1)
    };
    let make = |world: &mut World, number, bytes| create(world, sized(number, bytes)).map(|_| ());
    for number in 0..FIT {
        assert_eq!(make(&mut world, number, LARGE), Ok(()), "{number}");
    }
    let full = |until| Err(Reject::BacktestRequestsFull { bytes_max: BACKTEST_REQUESTS_BYTES_MAX as u64, until });
    assert_eq!(make(&mut world, FIT, 1), full(START.next_month()), "none has ended");
    world.now = START.plus(DAY);
    let cancelled = Command::EndBacktest { job: id(3), result: BacktestResult::Cancelled { left: 0 } };
    assert!(matches!(world.ask(cancelled, 0), Answer::Backtest { .. }));
    let until = START.plus(DAY + BACKTESTS_KEPT_US);
    assert_eq!(make(&mut world, FIT, 1), full(until));
    world.now = until;
    assert_eq!(make(&mut world, FIT, LARGE), Ok(()));
    assert_eq!(make(&mut world, FIT + 1, 1), full(until.next_month()), "the others have not ended");
    world.check().expect("the records give the same state");
    println!("bounds of requests: {} cases", FIT + 5);
}

#[test]
fn a_repeat_is_answered_and_writes_nothing() {
    let mut world = world();
    let named = |number, digest| NewBacktest {
        request: Some("k".to_owned()),
        digest: [digest; 32],
        jobs_max: 1,
        ..new(number, 5)
    };
    assert_eq!(create(&mut world, named(1, 1)), Ok((1, false)));
    let records = world.out.records.len();
    // The limit of the month is reached, and does not matter.
    assert_eq!(create(&mut world, named(2, 1)), Ok((1, true)));
    assert_eq!(create(&mut world, named(2, 2)), Err(Reject::IdempotencyKeyReuse));
    assert_eq!(world.out.records.len(), records);
    // An id is used once, if ever.
    assert_eq!(create(&mut world, new(1, 5)), Err(Reject::NoBacktestStore));
    assert_eq!(used(&mut world), (1, 5));
}

#[test]
fn an_end_is_final_and_gives_back_what_was_not_processed() {
    use BacktestEnd::{Cancelled, Failed};
    let failed = |left| BacktestResult::Failed { error: "time_limit".to_owned(), left };
    let cancelled = |left| BacktestResult::Cancelled { left };
    // started; the result; the end and what stays charged of 1 000
    let rows = [
        (false, cancelled(0), (Cancelled, 0)),
        (false, failed(300), (Failed, 0)),
        (true, cancelled(1_000), (Cancelled, 0)),
        (true, cancelled(250), (Cancelled, 750)),
        (true, failed(0), (Failed, 1_000)),
        (true, failed(u16::MAX), (Failed, 0)),
    ];
    for (is_started, result, expected) in &rows {
        let (mut world, expected) = (world(), *expected);
        assert_eq!(create(&mut world, new(1, 1_000)), Ok((1, false)));
        if *is_started {
            assert_eq!(start(&mut world, 1), Ok(true));
            let records = world.out.records.len();
            assert_eq!(start(&mut world, 1), Ok(true), "after a restart it begins again");
            assert_eq!(world.out.records.len(), records);
        }
        assert_eq!(end(&mut world, 1, result.clone()), Ok(expected), "{result:?}");
        assert_eq!(used(&mut world), (1, expected.1));
        // It stays as it is.
        assert_eq!(end(&mut world, 1, cancelled(1_000)), Ok(expected));
        assert_eq!(start(&mut world, 1), Err(Reject::BacktestOver));
        world.check().expect("the records give the same state");
    }
    let mut world = world();
    assert_eq!(start(&mut world, 9), Err(Reject::BacktestNotFound));
    assert_eq!(end(&mut world, 9, cancelled(0)), Err(Reject::BacktestNotFound));
    println!("ends: {} rows", rows.len());
}

/// Numbers of the back-tests that a page, a read of each, and a repeat of each request find.
fn found(world: &mut World, numbers: &[u8]) -> [Vec<u8>; 3] {
    let page = match world.ask(Command::Query(Query::Backtests { before: None, limit: 100 }), 0) {
        Answer::Backtests { jobs, has_more: false } => jobs.iter().rev().map(|job| job.id[0]).collect(),
        other => panic!("{other:?}"),
    };
    let mut of_each = |query: &dyn Fn(u8) -> Query| {
        let is_found = |number: &u8| match world.ask(Command::Query(query(*number)), 0) {
            Answer::Backtest { job, .. } => job.id[0] == *number,
            Answer::Refused(Reject::BacktestNotFound) => false,
            other => panic!("{other:?}"),
        };
        numbers.iter().copied().filter(is_found).collect()
    };
    let read = of_each(&|number| Query::Backtest([number; 16]));
    [page, read, of_each(&|number| Query::BacktestByRequest(format!("k-{number}")))]
}

/// Ninety days after its end a back-test is gone for its user, who need not create another one.
#[test]
fn an_old_back_test_is_not_shown() {
    let mut world = world();
    let named = |number: u8| NewBacktest { request: Some(format!("k-{number}")), ..new(number, 1) };
    for number in [1, 2] {
        assert_eq!(create(&mut world, named(number)), Ok((number, false)));
    }
    let failed = BacktestResult::Failed { error: "time_limit".to_owned(), left: 0 };
    assert!(end(&mut world, 1, failed.clone()).is_ok());
    world.now = START.plus(DAY);
    assert_eq!(create(&mut world, named(3)), Ok((3, false)));
    assert!(end(&mut world, 3, failed).is_ok());
    // The first is over, the second is not, the third ended a day after the first.
    let rows = [
        (START.plus(BACKTESTS_KEPT_US - 1), vec![1, 2, 3]),
        (START.plus(BACKTESTS_KEPT_US), vec![2, 3]),
        (START.plus(DAY + BACKTESTS_KEPT_US - 1), vec![2, 3]),
        (START.plus(DAY + BACKTESTS_KEPT_US), vec![2]),
    ];
    for (now, expected) in &rows {
        world.now = *now;
        assert_eq!(found(&mut world, &[1, 2, 3]), [expected.clone(), expected.clone(), expected.clone()], "{now:?}");
    }
    // A page after one that is gone is empty; its request is a new one.
    let after = Query::Backtests { before: Some([3; 16]), limit: 100 };
    let page = world.ask(Command::Query(after), 0);
    assert!(matches!(&page, Answer::Backtests { jobs, has_more: false } if jobs.is_empty()), "{page:?}");
    let again = NewBacktest { id: [4; 16], ..named(3) };
    assert_eq!(create(&mut world, again), Ok((4, false)));
    world.check().expect("the records give the same state");
    println!("ages: {} rows", rows.len());
}

#[test]
fn the_previous_format_has_no_back_tests() {
    let mut world = World::of("");
    world.rules.formats = Formats::Previous;
    world.make_user();
    assert_eq!(create(&mut world, new(1, 1)), Err(Reject::NoBacktestStore));
    assert_eq!(used(&mut world), (0, 0));
    world.check().expect("the records give the same state");
}

/// Back-tests of the newest format stay as they are while the previous one is written.
#[test]
fn an_open_back_test_waits_for_the_newest_format() {
    let mut world = world();
    for number in [1, 2, 3] {
        assert_eq!(create(&mut world, new(number, 100)), Ok((number, false)));
    }
    assert_eq!(start(&mut world, 2), Ok(true));
    let cancelled = || BacktestResult::Cancelled { left: 1_000 };
    assert_eq!(end(&mut world, 3, cancelled()), Ok((BacktestEnd::Cancelled, 0)));
    let records = world.out.records.len();
    world.rules.formats = Formats::Previous;
    world.restart_from(Formats::Newest);
    for number in [1, 2] {
        assert_eq!(start(&mut world, number), Err(Reject::NoBacktestStore));
        assert_eq!(end(&mut world, number, cancelled()), Err(Reject::NoBacktestStore));
    }
    // What needs no record is answered as before.
    assert_eq!(end(&mut world, 3, cancelled()), Ok((BacktestEnd::Cancelled, 0)));
    assert_eq!(start(&mut world, 3), Err(Reject::BacktestOver));
    assert_eq!(start(&mut world, 9), Err(Reject::BacktestNotFound));
    assert_eq!((world.out.records.len(), used(&mut world)), (records, (3, 200)));
    world.rules.formats = Formats::Newest;
    world.restart();
    assert_eq!(start(&mut world, 1), Ok(true));
    assert_eq!(end(&mut world, 2, cancelled()), Ok((BacktestEnd::Cancelled, 0)));
    world.check().expect("the records give the same state");
    println!("open back-tests under the previous format: 11 cases");
}
