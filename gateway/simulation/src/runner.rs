//! The runner of back-tests (gateway/docs/simulation.md §6): worker threads that run one back-test of a user at a time,
//! in the order of creation, and journal its start and end.
//!
//! A back-test that runs when the process ends begins again at the next start. Its rows are written before its end is
//! journaled, so a completed one has them; rows that are missing are made again from the stored request, and kept if the
//! result has the same hash.

use crate::past::Past;
use crate::plan::{Plan, PlanError};
use crate::report::{self, Context};
use crate::results::Results;
use crate::run::{Progress, RunError, figures};
use ahash::AHashMap;
use archive::store::Store;
use edge::api::simulation::archive::{Reading, Unreachable};
use edge::api::simulation::jobs::{JobProgress, JobRows, JobTrade, Jobs};
use edge::api::simulation::spec::Spec;
use edge::engine_client::Reply;
use engine::backtest::{EquityPoint, Report};
use engine::command::{Answer, BacktestResult, Command, Envelope};
use engine::id::UserId;
use engine::reject::Reject;
use engine::ring::Ring;
use engine::rules::Rules;
use engine::shard::shard_of;
use engine::time::Timestamp;
use engine::user::{Backtest, Users};
use host::clock::Clock;
use host::job::{JobWaker, Next, Work};
use host::thread::Stop;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Longest run of one back-test.
pub const TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Longest sleep of a worker.
pub const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Interval at which a wait for a shard checks whether the process ends, and the pause before a command is sent again.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// How long a read waits for rows that are made again.
const AGAIN_WITHIN: Duration = Duration::from_secs(20);
/// Rows that could not be made again are not tried for this long.
const AGAIN_AFTER: Duration = Duration::from_secs(600);
/// Results whose rows wait to be made again.
const AGAIN_MAX: usize = 256;
const SWEEP_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Runs a plan; [`crate::run::run`] outside of tests.
pub type RunPlan =
    Box<dyn Fn(&Plan, &Store, &Rules, u64, &Progress, &dyn Fn() -> bool) -> Result<Report, RunError> + Send + Sync>;

/// What a runner is made of.
pub struct Parts {
    pub past: Arc<Past>,
    pub rules: Arc<Rules>,
    pub results: Results,
    /// Of each shard.
    pub inboxes: Vec<Arc<Ring<Envelope<Reply>>>>,
    pub clock: Clock,
    pub settings: Settings,
    /// Back-tests that were open when the process ended.
    pub open: Vec<Open>,
    pub run: RunPlan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Threads that run back-tests. With 0 none is run; rows that are there are read.
    pub threads: usize,
    /// Memory of the rows of one run, in bytes.
    pub memory_bytes: u64,
    /// Longest run.
    pub time_max: Duration,
}

/// A back-test that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    pub user: UserId,
    pub job: [u8; 16],
    pub created_at: Timestamp,
}

/// Runs back-tests. Its workers are jobs of the server.
pub struct Runner {
    past: Arc<Past>,
    rules: Arc<Rules>,
    results: Arc<Results>,
    shards: Shards,
    settings: Settings,
    run: RunPlan,
    queue: Mutex<Queue>,
    wakers: Vec<JobWaker>,
    swept_at: Mutex<Option<Instant>>,
}

/// The queues to the shards.
struct Shards {
    inboxes: Vec<Arc<Ring<Envelope<Reply>>>>,
    clock: Clock,
}

#[derive(Default)]
struct Queue {
    /// In the order of creation.
    waiting: VecDeque<Task>,
    running: Vec<Arc<Running>>,
    /// Readers that wait for rows, by back-test.
    readers: AHashMap<[u8; 16], Vec<oneshot::Sender<()>>>,
    /// Rows that could not be made again, and when.
    lost: AHashMap<[u8; 16], Instant>,
}

struct Task {
    user: UserId,
    job: [u8; 16],
    /// The rows of this completed back-test are made again; `None`: the back-test is run.
    again: Option<Box<Backtest>>,
}

struct Running {
    user: UserId,
    job: [u8; 16],
    is_cancelled: AtomicBool,
    progress: Progress,
}

/// Why a run has no result.
#[derive(Debug)]
enum Failed {
    /// It was cancelled, or the process ends.
    Ended,
    /// The reason that its user reads.
    Because(String),
}

/// What a read of rows is about.
struct Wanted {
    job: [u8; 16],
    hash: [u8; 32],
    conditions: Vec<String>,
}

/// One worker thread.
pub struct Worker {
    runner: Arc<Runner>,
    waker: JobWaker,
}

impl Open {
    /// The open back-tests of these users.
    pub fn of<'a>(users: impl IntoIterator<Item = &'a Users>) -> Vec<Open> {
        let of_user = |user: &'a engine::user::User| {
            let open = user.backtests().iter().filter(|job| job.is_open());
            open.map(|job| Open { user: user.id, job: job.id, created_at: job.created_at })
        };
        users.into_iter().flat_map(Users::iter).flat_map(of_user).collect()
    }
}

impl Runner {
    pub fn new(parts: Parts) -> Runner {
        let Parts { past, rules, results, inboxes, clock, settings, mut open, run } = parts;
        open.sort_by_key(|of| (of.created_at, of.job));
        let task = |Open { user, job, .. }| Task { user, job, again: None };
        let waiting = open.into_iter().map(task).collect();
        Runner {
            past,
            rules,
            results: Arc::new(results),
            shards: Shards { inboxes, clock },
            settings,
            run,
            queue: Mutex::new(Queue { waiting, ..Queue::default() }),
            // One of no thread runs nothing, and removes old rows.
            wakers: (0..settings.threads.max(1)).map(|_| JobWaker::default()).collect(),
            swept_at: Mutex::new(None),
        }
    }

    /// The work of each thread; with 0 threads, the removal of old rows is the work of one.
    pub fn workers(self: &Arc<Runner>) -> Vec<Worker> {
        self.wakers.iter().map(|waker| Worker { runner: self.clone(), waker: waker.clone() }).collect()
    }

    fn wake(&self) {
        self.wakers.iter().for_each(JobWaker::wake);
    }

    /// The first task whose user has none that runs.
    fn take(&self) -> Option<(Task, Arc<Running>)> {
        if !self.runs() {
            return None;
        }
        let mut queue = self.queue.lock();
        let Queue { waiting, running, .. } = &mut *queue;
        let at = waiting.iter().position(|task| running.iter().all(|other| other.user != task.user))?;
        let task = waiting.remove(at)?;
        let of = Running {
            user: task.user,
            job: task.job,
            is_cancelled: AtomicBool::new(false),
            progress: Progress::default(),
        };
        let of = Arc::new(of);
        running.push(of.clone());
        Some((task, of))
    }

    /// A task is over: the next one of its user may run.
    fn give_back(&self, of: &Arc<Running>) {
        self.queue.lock().running.retain(|other| !Arc::ptr_eq(other, of));
        self.wake();
    }

    /// Runs a back-test from its start to its journaled end.
    fn run_job(&self, running: &Running, stop: &Stop) {
        let (user, id) = (running.user, running.job);
        let job = match self.shards.ask(user, || Command::StartBacktest { job: id }, stop) {
            Some(Answer::Backtest { job, .. }) => job,
            // It was cancelled before it ran; or the process ends.
            _ => return,
        };
        let result = match self.compute(&job, running, stop) {
            Ok((plan, report)) => {
                if let Err(error) = self.keep(&id, &plan, &report) {
                    tracing::warn!(%error, "rows of a back-test cannot be kept; they are made again when they are read");
                }
                BacktestResult::Completed(Box::new(figures(&report)))
            }
            Err(Failed::Because(error)) => {
                let left = 1_000 - running.progress.now().done.min(1_000);
                BacktestResult::Failed { error, left }
            }
            Err(Failed::Ended) => return,
        };
        let end = || Command::EndBacktest { job: id, result: result.clone() };
        let is_completed = match self.shards.ask(user, end, stop) {
            Some(Answer::Backtest { job, .. }) => job.ended.is_some_and(|ended| ended.figures.is_some()),
            // The next start runs it again.
            None => return,
            Some(other) => {
                tracing::warn!(answer = ?other, "the end of a back-test was refused");
                false
            }
        };
        // One that was cancelled meanwhile has none.
        if !is_completed {
            self.results.remove(&id);
        }
    }

    /// Keeps the files of a result.
    fn keep(&self, job: &[u8; 16], plan: &Plan, report: &Report) -> io::Result<()> {
        self.results.keep(job, plan, report, &page(plan, report, &self.rules))
    }

    /// Makes the rows of a completed back-test again.
    fn run_again(&self, job: &Backtest, running: &Running, stop: &Stop) {
        let hash = job.ended.as_ref().and_then(|ended| Some(ended.figures.as_ref()?.hash));
        let is_kept = match self.compute(job, running, stop) {
            Ok((plan, report)) if Some(report.hash) == hash => match self.keep(&job.id, &plan, &report) {
                Ok(()) => true,
                Err(error) => {
                    tracing::warn!(%error, "rows of a back-test cannot be kept");
                    false
                }
            },
            Ok(_) => {
                tracing::warn!("a back-test has another result now: its hours were replaced or removed");
                false
            }
            Err(Failed::Because(error)) => {
                tracing::warn!(%error, "rows of a back-test cannot be made again");
                false
            }
            Err(Failed::Ended) => false,
        };
        let mut queue = self.queue.lock();
        let readers = queue.readers.remove(&job.id).unwrap_or_default();
        if is_kept {
            for reader in readers {
                // One that has left needs no rows.
                let _ = reader.send(());
            }
        } else {
            queue.lost.retain(|_, at| at.elapsed() < AGAIN_AFTER);
            queue.lost.insert(job.id, Instant::now());
        }
    }

    /// The result of a back-test. A panic fails it alone.
    fn compute(&self, job: &Backtest, running: &Running, stop: &Stop) -> Result<(Plan, Report), Failed> {
        // The files and the queue are as they were: a run changes neither.
        let computed = catch_unwind(AssertUnwindSafe(|| self.attempt(job, running, stop)));
        // The panic was logged by its hook.
        computed.unwrap_or_else(|_| Err(Failed::Because("internal_error".to_owned())))
    }

    fn attempt(&self, job: &Backtest, running: &Running, stop: &Stop) -> Result<(Plan, Report), Failed> {
        let because = |reason: &str| Failed::Because(reason.to_owned());
        let spec = spec_of(job).ok_or_else(|| because("spec_unreadable"))?;
        let (started, time_max) = (Instant::now(), self.settings.time_max);
        let is_over = || running.is_cancelled.load(Relaxed) || stop.is_set();
        let goes_on = || !is_over() && started.elapsed() < time_max;
        let ended = || if is_over() { Failed::Ended } else { because("time_limit") };
        let plan = match Plan::of(&spec, &self.past, &goes_on) {
            Ok(plan) => plan,
            Err(PlanError::Ended) => return Err(ended()),
            Err(error) => {
                tracing::warn!(%error, "a back-test cannot be run");
                return Err(because(error.name()));
            }
        };
        let Settings { memory_bytes, .. } = self.settings;
        let ran = (self.run)(&plan, self.past.store(), &self.rules, memory_bytes, &running.progress, &goes_on);
        match ran {
            Ok(report) => Ok((plan, report)),
            Err(RunError::Ended) => Err(ended()),
            Err(error) => {
                tracing::info!(%error, "a back-test has failed");
                Err(because(error.name()))
            }
        }
    }

    /// Rows of a completed back-test; if they are missing, they are made again first.
    async fn rows<T: Send + 'static>(
        &self,
        user: UserId,
        job: &Backtest,
        read: impl Fn(&Results, &Wanted) -> Option<Vec<T>> + Clone + Send + 'static,
    ) -> Result<Vec<T>, Unreachable> {
        let hash = job.ended.as_ref().and_then(|ended| Some(ended.figures.as_ref()?.hash));
        // Only a completed one has rows.
        let Some(hash) = hash else { return Ok(Vec::new()) };
        let conditions = spec_of(job).ok_or(Unreachable)?.conditions;
        let wanted = Arc::new(Wanted { job: job.id, hash, conditions });
        let read = || {
            let (results, wanted, read) = (self.results.clone(), wanted.clone(), read.clone());
            tokio::task::spawn_blocking(move || read(&results, &wanted))
        };
        // A panic was logged by its hook.
        if let Some(rows) = read().await.map_err(|_| Unreachable)? {
            return Ok(rows);
        }
        let made = self.want_again(user, job).ok_or(Unreachable)?;
        match tokio::time::timeout(AGAIN_WITHIN, made).await {
            Ok(Ok(())) => read().await.map_err(|_| Unreachable)?.ok_or(Unreachable),
            _ => Err(Unreachable),
        }
    }

    /// Asks for the rows of a back-test to be made again; `None`: no thread runs any, they could not be made lately, or
    /// too many wait.
    fn want_again(&self, user: UserId, job: &Backtest) -> Option<oneshot::Receiver<()>> {
        if !self.runs() {
            return None;
        }
        let mut queue = self.queue.lock();
        let is_lost = queue.lost.get(&job.id).is_some_and(|at| at.elapsed() < AGAIN_AFTER);
        let is_new = !queue.readers.contains_key(&job.id);
        if is_lost || (is_new && queue.readers.len() >= AGAIN_MAX) {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        queue.readers.entry(job.id).or_default().push(sender);
        if is_new {
            queue.waiting.push_back(Task { user, job: job.id, again: Some(Box::new(job.clone())) });
            drop(queue);
            self.wake();
        }
        Some(receiver)
    }

    /// Removes old rows, once a day.
    fn sweep(&self) {
        let mut swept_at = self.swept_at.lock();
        if swept_at.is_none_or(|at| at.elapsed() >= SWEEP_EVERY) {
            *swept_at = Some(Instant::now());
            if let Err(error) = self.results.sweep(self.shards.clock.wall_now()) {
                tracing::warn!(%error, "old rows of back-tests cannot be removed");
            }
        }
    }
}

/// A result as a page for people.
pub fn page(plan: &Plan, report: &Report, rules: &Rules) -> String {
    let program = concat!("papertape ", env!("CARGO_PKG_VERSION"));
    report::html(&plan.job, report, &Context { questions: &[], fees: &rules.fees, program, warnings: &[] })
}

/// What a stored back-test was asked for. Its window is in the past at any time.
fn spec_of(job: &Backtest) -> Option<Spec> {
    let value = wire::read::json(job.spec.as_bytes()).ok()?;
    Spec::read(&value, Timestamp(u64::MAX)).ok()
}

impl Shards {
    /// The answer of the user's shard; the command is sent again until there is one. `None`: the process ends.
    fn ask(&self, owner: UserId, command: impl Fn() -> Command, stop: &Stop) -> Option<Answer> {
        let inbox = &self.inboxes[shard_of(owner, self.inboxes.len())];
        loop {
            let (sender, answered) = sync_channel(1);
            let reply = Reply::Thread(sender);
            let envelope = Envelope { owner, command: command(), received_at: self.clock.now(), reply };
            if inbox.push(envelope).is_ok() {
                let answer = loop {
                    match answered.recv_timeout(CHECK_EVERY) {
                        Err(RecvTimeoutError::Timeout) if !stop.is_set() => {}
                        answer => break answer.ok(),
                    }
                };
                match answer {
                    // A shard without time or room, or a log that has failed.
                    None | Some(Answer::Refused(Reject::NoRoom | Reject::Busy | Reject::WaitedTooLong)) => {}
                    answer => return answer,
                }
            }
            if stop.is_set() {
                return None;
            }
            std::thread::sleep(CHECK_EVERY);
        }
    }
}

impl Work for Worker {
    type Error = Infallible;

    fn take_turn(&mut self, stop: &Stop) -> Result<Next, Infallible> {
        let runner = &self.runner;
        let Some((task, running)) = runner.take() else {
            runner.sweep();
            return Ok(Next::Sleep);
        };
        match &task.again {
            Some(job) => runner.run_again(job, &running, stop),
            None => runner.run_job(&running, stop),
        }
        runner.give_back(&running);
        Ok(Next::Again)
    }

    fn waker(&self) -> Option<&JobWaker> {
        Some(&self.waker)
    }
}

impl Jobs for Runner {
    fn runs(&self) -> bool {
        self.settings.threads > 0
    }

    fn created(&self, user: UserId, job: [u8; 16]) {
        self.queue.lock().waiting.push_back(Task { user, job, again: None });
        self.wake();
    }

    fn cancelled(&self, user: UserId, job: [u8; 16]) {
        let mut queue = self.queue.lock();
        queue.waiting.retain(|task| (task.user, task.job) != (user, job) || task.again.is_some());
        for running in queue.running.iter().filter(|of| (of.user, of.job) == (user, job)) {
            running.is_cancelled.store(true, Relaxed);
        }
    }

    fn progress(&self, user: UserId, job: [u8; 16]) -> Option<JobProgress> {
        let queue = self.queue.lock();
        let running = queue.running.iter().find(|of| (of.user, of.job) == (user, job))?;
        Some(running.progress.now())
    }

    fn trades<'a>(&'a self, user: UserId, job: &'a Backtest, from: usize, limit: usize) -> Reading<'a, Vec<JobTrade>> {
        Box::pin(
            self.rows(user, job, move |results, of| results.trades(&of.job, &of.hash, &of.conditions, (from, limit))),
        )
    }

    fn points<'a>(
        &'a self,
        user: UserId,
        job: &'a Backtest,
        from: usize,
        limit: usize,
    ) -> Reading<'a, Vec<EquityPoint>> {
        Box::pin(self.rows(user, job, move |results, of| results.points(&of.job, &of.hash, (from, limit))))
    }

    fn report<'a>(&'a self, user: UserId, job: &'a Backtest) -> Reading<'a, String> {
        Box::pin(async move {
            let page = self.rows(user, job, |results, of| results.page(&of.job, &of.hash)).await?;
            String::from_utf8(page).map_err(|_| Unreachable)
        })
    }

    fn file<'a>(&'a self, user: UserId, job: &'a Backtest, rows: JobRows) -> Reading<'a, Vec<u8>> {
        Box::pin(self.rows(user, job, move |results, of| results.file(&of.job, &of.hash, rows.into())))
    }
}

#[cfg(test)]
mod tests;
