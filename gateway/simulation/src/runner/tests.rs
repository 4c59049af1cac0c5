use super::*;
use crate::run::run;
use crate::testing::{Shelf, rising, spec};
use edge::testing::ShardThread;
use engine::command::{NewBacktest, Query};
use engine::id::KeyId;
use engine::user::backtests::BacktestEnd;
use serde_json::{Value, json};
use std::sync::atomic::AtomicU64;

/// 2026-10-02T09:15:00Z.
const NOW: Timestamp = Timestamp(1_790_932_500_000_000);
const MEMORY: u64 = 32 << 20;

/// A shard on a thread, an archive, and a runner on both.
struct Lab {
    shelf: Shelf,
    shard: ShardThread,
    runner: Arc<Runner>,
    stop: Stop,
}

impl Lab {
    fn new() -> Lab {
        Lab::with(Box::new(run), TIME_MAX)
    }

    fn with(run: RunPlan, time_max: Duration) -> Lab {
        let shelf = Shelf::new();
        rising(&shelf, 1, 3);
        let shard = ShardThread::start(NOW, 2);
        let runner = Lab::runner(&shelf, &shard.inbox, (run, time_max), 2, Vec::new());
        Lab { shelf, shard, runner, stop: Stop::new() }
    }

    fn runner(
        shelf: &Shelf,
        inbox: &Arc<Ring<Envelope<Reply>>>,
        (run, time_max): (RunPlan, Duration),
        threads: usize,
        open: Vec<Open>,
    ) -> Arc<Runner> {
        Arc::new(Runner::new(Parts {
            past: Arc::new(shelf.past()),
            rules: Arc::new(Rules::default()),
            results: Results::new(shelf.folder.path().join("jobs")),
            inboxes: vec![inbox.clone()],
            clock: Clock::fake(NOW),
            settings: Settings { threads, memory_bytes: MEMORY, time_max },
            open,
            run,
        }))
    }

    /// The process after a start: another runner on the same shard.
    fn restarted(&mut self, run: RunPlan) {
        let open = self.shard.users(|users| Open::of([users]));
        self.runner = Lab::runner(&self.shelf, &self.shard.inbox, (run, TIME_MAX), 2, open);
    }

    fn ask(&self, user: i64, command: impl Fn() -> Command) -> Answer {
        self.runner.shards.ask(UserId(user as _), command, &Stop::new()).expect("an answer")
    }

    /// Creates a back-test as the route does.
    fn create(&self, user: i64, number: u8, changes: &Value) -> [u8; 16] {
        let spec = spec(&[1], 3, changes);
        let new = || {
            Command::CreateBacktest(Box::new(NewBacktest {
                id: [number; 16],
                spec: spec.to_json(),
                digest: [number; 32],
                request: None,
                charged: 3_000,
                jobs_max: 100,
                hours_max: 1_000_000,
                by: KeyId(0),
            }))
        };
        let answer = self.ask(user, new);
        assert!(matches!(answer, Answer::Backtest { .. }), "{answer:?}");
        self.runner.created(UserId(user as _), [number; 16]);
        [number; 16]
    }

    fn one(&self, user: i64, job: [u8; 16]) -> Backtest {
        match self.ask(user, || Command::Query(Query::Backtest(job))) {
            Answer::Backtest { job, .. } => *job,
            other => panic!("{other:?}"),
        }
    }

    /// One turn of a worker on this thread.
    fn turn(&self) -> Next {
        let mut worker = self.runner.workers().remove(0);
        worker.take_turn(&self.stop).expect("turns do not fail")
    }

    /// How a back-test ended: end, error, and the part of 3,000 given back.
    fn end(&self, user: i64, job: [u8; 16]) -> (BacktestEnd, Option<String>, u64) {
        let ended = self.one(user, job).ended.expect("it ended");
        (ended.end, ended.error.map(String::from), ended.refunded)
    }
}

fn block<T>(reading: impl Future<Output = T>) -> T {
    host::runtime::runtime().expect("a runtime").block_on(reading)
}

#[test]
fn a_back_test_runs_and_its_rows_are_read() {
    let lab = Lab::new();
    assert_eq!(lab.turn(), Next::Sleep);
    let job = lab.create(1, 7, &json!({}));
    assert!(lab.one(1, job).started_at.is_none() && lab.runner.progress(UserId(1), job).is_none());
    assert_eq!(lab.turn(), Next::Again);
    assert_eq!(lab.end(1, job), (BacktestEnd::Completed, None, 0));
    let done = lab.one(1, job);
    assert!(done.started_at.is_some());
    let figures = done.ended.as_ref().and_then(|ended| ended.figures.clone()).expect("figures");
    // The same run elsewhere has the same result.
    let plan = Plan::of(&spec(&[1], 3, &json!({})), &lab.shelf.past(), &|| true).expect("a plan");
    let report =
        run(&plan, &lab.shelf.store, &Rules::default(), MEMORY, &Progress::default(), &|| true).expect("a report");
    assert_eq!(figures, crate::run::figures(&report));
    assert!(figures.trades >= 2 && figures.closed >= 1, "{figures:?}");
    let trades = block(lab.runner.trades(UserId(1), &done, 0, 100)).expect("trades");
    assert_eq!(trades.iter().map(|row| row.trade).collect::<Vec<_>>(), report.trades);
    let points = block(lab.runner.points(UserId(1), &done, 1, 100)).expect("points");
    assert_eq!(points, report.points[1..]);
    for rows in [JobRows::Trades, JobRows::Equity] {
        assert!(block(lab.runner.file(UserId(1), &done, rows)).expect("a file").starts_with(b"PAR1"));
    }
    assert_eq!(lab.turn(), Next::Sleep);
}

#[test]
fn limits_and_panics_fail_a_back_test_alone() {
    let output: RunPlan = Box::new(|_, _, _, _, _, _| Err(RunError::OutputLimit));
    let panicking: RunPlan = Box::new(|_, _, _, _, _, _| panic!("a test"));
    let half: RunPlan = Box::new(|plan, store, rules, memory, progress, goes_on| {
        run(plan, store, rules, memory, progress, &|| goes_on() && progress.now().done < 500)
    });
    let rows: [(RunPlan, Duration, Value, &str, u64); 6] = [
        (Box::new(run), Duration::ZERO, json!({}), "time_limit", 3_000),
        (output, TIME_MAX, json!({}), "output_limit", 3_000),
        (panicking, TIME_MAX, json!({}), "internal_error", 3_000),
        (half, TIME_MAX, json!({}), "time_limit", 1_500),
        (Box::new(run), TIME_MAX, json!({"strategy": {"outcome": "Yes", "size": "5"}}), "outcome_unknown", 3_000),
        (Box::new(run), TIME_MAX, json!({"end": "2026-10-01T23:00:00Z"}), "hours_gone", 3_000),
    ];
    let cases = rows.len();
    for (run, time_max, changes, error, refunded) in rows {
        let lab = Lab::with(run, time_max);
        let job = lab.create(1, 1, &changes);
        assert_eq!(lab.turn(), Next::Again);
        let (end, reason, back) = lab.end(1, job);
        assert_eq!((end, reason.as_deref()), (BacktestEnd::Failed, Some(error)));
        assert!(back <= refunded && back + 20 >= refunded, "{error}: {back} of {refunded}");
        // The next one runs.
        let other = lab.create(1, 2, &changes);
        assert_eq!(lab.turn(), Next::Again);
        assert_eq!(lab.end(1, other).1.as_deref(), Some(error));
    }
    println!("failures: {cases} cases");
}

#[test]
fn one_of_a_user_runs_and_the_others_wait_in_the_order_of_creation() {
    let lab = Lab::new();
    let created = [(1, 1), (1, 2), (2, 3), (1, 4), (2, 5)];
    for (user, number) in created {
        lab.create(user, number, &json!({}));
    }
    let take = || lab.runner.take().map(|(task, running)| (task.job[0], running));
    let (first, of_first) = take().expect("a task");
    let (second, of_second) = take().expect("a task");
    assert_eq!((first, second), (1, 3));
    assert!(take().is_none(), "both users have one that runs");
    lab.runner.give_back(&of_first);
    let (third, of_third) = take().expect("a task");
    assert_eq!(third, 2);
    assert!(take().is_none());
    lab.runner.give_back(&of_second);
    let (fourth, _) = take().expect("a task");
    assert_eq!(fourth, 5);
    lab.runner.give_back(&of_third);
    assert_eq!(take().expect("a task").0, 4);
    assert!(take().is_none());
}

/// A run that goes on until it is ended, and says when it has begun.
fn endless(begun: Arc<AtomicU64>) -> RunPlan {
    Box::new(move |_, _, _, _, _, goes_on| {
        begun.fetch_add(1, Relaxed);
        while goes_on() {
            std::thread::yield_now();
        }
        Err(RunError::Ended)
    })
}

fn until(is_there: impl Fn() -> bool) {
    while !is_there() {
        std::thread::yield_now();
    }
}

#[test]
fn a_cancelled_back_test_ends_before_and_while_it_runs() {
    let begun = Arc::new(AtomicU64::new(0));
    let lab = Lab::with(endless(begun.clone()), TIME_MAX);
    let cancel = |job| {
        let end = || Command::EndBacktest { job, result: BacktestResult::Cancelled { left: 250 } };
        assert!(matches!(lab.ask(1, end), Answer::Backtest { .. }));
        lab.runner.cancelled(UserId(1), job);
    };
    let (waiting, running) = (lab.create(1, 1, &json!({})), lab.create(1, 2, &json!({})));
    cancel(waiting);
    assert_eq!(lab.end(1, waiting), (BacktestEnd::Cancelled, None, 3_000));
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| lab.turn());
        until(|| begun.load(Relaxed) == 1);
        assert!(lab.one(1, running).started_at.is_some() && lab.runner.progress(UserId(1), running).is_some());
        // That of another user.
        lab.runner.cancelled(UserId(2), running);
        assert!(!worker.is_finished());
        cancel(running);
        assert_eq!(worker.join().expect("no panic"), Next::Again);
    });
    assert_eq!(lab.end(1, running), (BacktestEnd::Cancelled, None, 750));
    assert_eq!(lab.turn(), Next::Sleep, "the first one is not run");
    assert_eq!(begun.load(Relaxed), 1);
    // One that was cancelled, but whose runner was not notified.
    let unnoticed = lab.create(1, 3, &json!({}));
    let end = || Command::EndBacktest { job: unnoticed, result: BacktestResult::Cancelled { left: 1_000 } };
    lab.ask(1, end);
    assert_eq!((lab.turn(), begun.load(Relaxed)), (Next::Again, 1));
}

/// A back-test that completes after it was cancelled stays cancelled, and has no rows.
#[test]
fn the_first_end_counts() {
    let lab = Lab::new();
    let job = lab.create(1, 1, &json!({}));
    let (task, running) = lab.runner.take().expect("a task");
    let started = lab.ask(1, || Command::StartBacktest { job });
    let Answer::Backtest { job: known, .. } = started else { panic!("{started:?}") };
    let (plan, report) = lab.runner.compute(&known, &running, &lab.stop).expect("a result");
    lab.runner.keep(&job, &plan, &report).expect("kept");
    lab.ask(1, || Command::EndBacktest { job, result: BacktestResult::Cancelled { left: 0 } });
    lab.runner.give_back(&running);
    drop(task);
    // As a worker that did not notice the cancellation: its start is refused.
    lab.runner.created(UserId(1), job);
    assert_eq!(lab.turn(), Next::Again);
    assert_eq!(lab.end(1, job).0, BacktestEnd::Cancelled);
    let done = lab.one(1, job);
    assert_eq!(block(lab.runner.trades(UserId(1), &done, 0, 9)), Ok(Vec::new()));
}

#[test]
fn open_back_tests_run_again_after_a_restart() {
    let begun = Arc::new(AtomicU64::new(0));
    let mut lab = Lab::with(endless(begun.clone()), TIME_MAX);
    let (first, second, other) =
        (lab.create(1, 9, &json!({})), lab.create(1, 2, &json!({})), lab.create(2, 5, &json!({})));
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| lab.turn());
        until(|| begun.load(Relaxed) == 1);
        lab.stop.set();
        assert_eq!(worker.join().expect("no panic"), Next::Again);
    });
    assert!(lab.one(1, first).is_open() && lab.one(1, first).started_at.is_some(), "a stop ends no back-test");
    lab.stop = Stop::new();
    lab.restarted(Box::new(run));
    let mut ended = 0;
    while lab.turn() == Next::Again {
        ended += 1;
    }
    assert_eq!(ended, 3);
    let hashes = [(1, first), (1, second), (2, other)].map(|(user, job)| {
        let done = lab.one(user, job).ended.expect("it ended");
        (done.end, done.figures.expect("figures").hash)
    });
    assert!(hashes.iter().all(|hash| *hash == hashes[0] && hash.0 == BacktestEnd::Completed), "{hashes:?}");
    println!("restarts: {ended} cases");
}

#[test]
fn missing_rows_are_made_again_if_the_result_is_the_same() {
    let lab = Lab::new();
    let job = lab.create(1, 1, &json!({}));
    lab.turn();
    let done = lab.one(1, job);
    let rows = || block(lab.runner.points(UserId(1), &done, 0, 1_000));
    let before = rows().expect("rows");
    let folder = lab.shelf.folder.path().join("jobs");
    let again = |is_made: bool| {
        std::fs::remove_dir_all(&folder).expect("removed");
        std::thread::scope(|scope| {
            let reader = scope.spawn(rows);
            // A worker finds the task when the reader has asked.
            until(|| lab.turn() == Next::Again);
            let found = reader.join().expect("no panic");
            assert_eq!(found.is_ok(), is_made);
            assert!(!is_made || found.as_ref() == Ok(&before));
        });
    };
    again(true);
    assert_eq!(lab.one(1, job), done, "the journal has nothing new");
    // The hours were replaced: another result, which is not shown as that of this back-test.
    lab.shelf.hour(1, vec![crate::testing::row(3_600_000, 1, 0, crate::testing::book(&[(2_000, 5)], &[]))]);
    again(false);
    // It is not tried again for a while.
    assert_eq!(rows(), Err(Unreachable));
    assert_eq!(lab.turn(), Next::Sleep);
    println!("rows again: 3 cases");
}

/// With no thread none is run, and the rows of those that are complete are read.
#[test]
fn without_threads_what_is_complete_stays_readable() {
    let mut lab = Lab::new();
    let job = lab.create(1, 1, &json!({}));
    lab.turn();
    let done = lab.one(1, job);
    lab.runner = Lab::runner(&lab.shelf, &lab.shard.inbox, (Box::new(run), TIME_MAX), 0, Vec::new());
    let jobs = lab.shelf.folder.path().join("jobs");
    let old = jobs.join("00000000-0000-4000-8000-000000000001");
    std::fs::create_dir(&old).expect("a folder");
    std::fs::File::open(&old).and_then(|old| old.set_modified(std::time::UNIX_EPOCH)).expect("a time");
    let readable = || {
        [
            block(lab.runner.trades(UserId(1), &done, 0, 9)).is_ok_and(|rows| !rows.is_empty()),
            block(lab.runner.points(UserId(1), &done, 0, 9)).is_ok_and(|rows| !rows.is_empty()),
            block(lab.runner.file(UserId(1), &done, JobRows::Trades)).is_ok(),
            block(lab.runner.file(UserId(1), &done, JobRows::Equity)).is_ok(),
            block(lab.runner.report(UserId(1), &done)).is_ok(),
        ]
    };
    assert!(!lab.runner.runs());
    assert_eq!(readable(), [true; 5]);
    // One that waits goes on waiting. Old rows are removed.
    let waiting = lab.create(1, 2, &json!({}));
    assert_eq!((lab.runner.workers().len(), lab.turn(), old.exists()), (1, Next::Sleep, false));
    assert!(lab.one(1, waiting).started_at.is_none() && lab.runner.queue.lock().waiting.len() == 1);
    lab.runner.cancelled(UserId(1), waiting);
    assert!(lab.runner.queue.lock().waiting.is_empty());
    // Rows that are missing cannot be made again: the read ends without a wait for it.
    std::fs::remove_dir_all(&jobs).expect("removed");
    assert_eq!(readable(), [false; 5]);
    assert!(lab.runner.queue.lock().readers.is_empty());
    println!("without threads: {} reads", 2 * readable().len());
}

/// A full queue and a shard without time are asked again; a stop ends the wait.
#[test]
fn commands_are_sent_until_they_are_answered() {
    let inbox: Arc<Ring<Envelope<Reply>>> = Arc::new(Ring::new(1));
    let shards = Shards { inboxes: vec![inbox.clone()], clock: Clock::fake(NOW) };
    let command = || Command::StartBacktest { job: [1; 16] };
    let stop = Stop::new();
    let full = Envelope { owner: UserId(1), command: command(), received_at: NOW, reply: Reply::Discard };
    assert!(inbox.push(full).is_ok());
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| shards.ask(UserId(1), command, &stop));
        let next = || loop {
            if let Some(envelope) = inbox.pop() {
                return envelope.reply;
            }
            std::thread::yield_now();
        };
        drop(next());
        for refused in [Reject::Busy, Reject::NoRoom, Reject::WaitedTooLong] {
            next().fill(Answer::Refused(refused));
        }
        // A log that has failed drops its answers.
        drop(next());
        next().fill(Answer::Refused(Reject::BacktestOver));
        assert!(matches!(asking.join().expect("no panic"), Some(Answer::Refused(Reject::BacktestOver))));
        let ending = scope.spawn(|| shards.ask(UserId(1), command, &stop));
        let unanswered = next();
        stop.set();
        assert!(ending.join().expect("no panic").is_none());
        drop(unanswered);
    });
    println!("commands: 6 cases");
}
