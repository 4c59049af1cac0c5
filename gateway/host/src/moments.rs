//! One clock for a server, a recording and the bot of a back-test (gateway/docs/backtest-bot.md).
//!
//! The clock goes from *moment* to moment: the next receipt of the recording, the next matching cycle. The feed hands
//! out a moment completely, then waits here until the clock may leave it ([`Moments::next`]):
//!
//! ```text
//!   feed works ──────────► operations are looked at ──────────► settled, and the gate lets go ──► feed works …
//!   (no operation begins)                                        (the clock is set to the next moment)
//! ```
//!
//! Settled: no operation of a bot is open, no socket has unread bytes, the thread that owns the sockets has done
//! everything and sleeps, and peers of streams have acknowledged every frame. An operation is open from its first byte
//! until the last byte of its response is with the kernel. One that waits for the clock (of a `round` gate) is *parked*,
//! and is not counted while it waits.
//!
//! All state is under one lock, and the feed decides and closes under it: no operation can begin between its decision
//! and the next moment. Only a back-test has this; a server without it has a branch for each turn of a connection.

mod gate;
mod kernel;
mod operations;

pub use gate::Gate;
pub use kernel::has_running_thread;
pub use operations::{Held, Line, Turn};

use crate::clock::Clock;
use engine::time::Timestamp;
use kernel::Thread;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// Longest call of [`Moments::next`]: a stop of the feed is noticed within it.
const NEXT_WITHIN: Duration = Duration::from_millis(50);
/// Checks without a pause, and the pause of later ones.
const CHECKS_WITHOUT_PAUSE: u32 = 400;
const CHECK_PAUSE: Duration = Duration::from_micros(20);

/// The clock of a back-test, its gate, and the operations of its bots. Shared by feed, sockets and operators.
pub struct Moments {
    clock: Clock,
    gate: Gate,
    /// Whether the thread that owns the sockets has nothing to do and waits.
    is_parked: AtomicBool,
    state: Mutex<State>,
    /// Notified when an operation ends or is parked, a step begins, or the run ends.
    changed: Condvar,
    /// Notified when the run has ended.
    ended: Notify,
}

struct State {
    /// The feed hands out a moment: no operation may begin.
    is_working: bool,
    /// Wakers of those that wanted to begin one meanwhile.
    waiting: Vec<Waker>,
    /// Operations that are open, parked ones too.
    open: u32,
    /// Operations that wait for the clock, in their order.
    parked: VecDeque<(u64, Option<Waker>)>,
    /// Those that were parked when the run ended.
    refused: Vec<u64>,
    lines: Vec<LineState>,
    next_id: u64,
    /// Operations that began, and those of them that were late.
    begun: u64,
    late: u64,
    /// Server time at which the bot last got a response or a frame; `None`: it got none.
    last_sent_at: Option<Timestamp>,
    /// Responses and frames so far, and how many when the present moment began; 0 before the first one.
    sent: u64,
    sent_before: u64,
    /// Whether a stream got a frame whose acknowledgement was not seen.
    is_unacknowledged: bool,
    /// When something was last read from a bot, or sent to it.
    active_at: Instant,
    /// Where the clock goes for the first parked operation.
    round: Option<Timestamp>,
    step: Option<Step>,
    following: Option<Following>,
    sockets: Option<Thread>,
    /// The process of the bot's command.
    process: Option<u32>,
    passed: Passed,
    progress: Progress,
}

/// How far the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Runs,
    /// The last moment is over: operations are refused.
    Over,
    /// The run was ended.
    Ended,
}

/// A connection as the kernel knows it.
struct LineState {
    id: u64,
    socket: OwnedFd,
    inode: Option<u64>,
    is_open: bool,
    is_stream: bool,
}

/// What moments consisted of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Lines of the recording.
    pub events: u64,
    /// Matching cycles, and what they did to resting orders.
    pub cycles: u64,
    pub fills: u64,
    pub closed: u64,
}

impl Passed {
    fn add(&mut self, more: Passed) {
        self.events += more.events;
        self.cycles += more.cycles;
        self.fills += more.fills;
        self.closed += more.closed;
    }
}

/// How far a step goes; in whole moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepBy {
    /// Until this many lines, or matching cycles, have passed.
    Events(u64),
    Cycles(u64),
    /// For this many microseconds, or until a time.
    Micros(u64),
    Until(Timestamp),
}

/// Why there is no step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRefused {
    /// The gate is another one, or a step is being made: the clock moves.
    Runs,
    /// The time is before the present one.
    Backwards,
}

/// A step that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stepped {
    pub from: Timestamp,
    pub to: Timestamp,
    pub passed: Passed,
    /// The recording ended before what was asked for.
    pub is_end: bool,
}

struct Step {
    from: Timestamp,
    by: StepBy,
    passed: Passed,
    done: oneshot::Sender<Stepped>,
}

/// The next moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    pub at: Timestamp,
    /// What it is: `event`, `cycle` or `market_end`.
    pub what: &'static str,
}

/// What an operator sees of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// A step is being made.
    pub is_stepping: bool,
    /// `None` at the end of the recording.
    pub following: Option<Following>,
}

/// What the bot did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub operations: u64,
    /// Operations that began after the clock had left the moment of the last response or frame.
    pub late: u64,
    pub passed: Passed,
}

/// What the feed wants to do.
enum Wanted {
    /// To leave for this time, once everything is settled.
    Leave(Timestamp),
    /// To end the step, or the run, once everything is settled.
    EndStep {
        is_end: bool,
    },
    EndRun,
    /// To look again soon.
    Check,
    /// To wait for an operation or a step.
    Wait,
}

impl Moments {
    /// A run that has not begun; `clock` is one of a recording.
    pub fn new(clock: Clock, gate: Gate) -> Arc<Moments> {
        let state = State {
            is_working: true,
            waiting: Vec::new(),
            open: 0,
            parked: VecDeque::new(),
            refused: Vec::new(),
            lines: Vec::new(),
            next_id: 0,
            begun: 0,
            late: 0,
            last_sent_at: None,
            sent: 0,
            sent_before: 0,
            is_unacknowledged: false,
            active_at: Instant::now(),
            round: None,
            step: None,
            following: None,
            sockets: None,
            process: None,
            passed: Passed::default(),
            progress: Progress::Runs,
        };
        Arc::new(Moments {
            clock,
            gate,
            is_parked: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
            ended: Notify::new(),
        })
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Called by the thread that owns the sockets, before it serves. The clock leaves no moment before that.
    ///
    /// # Errors
    /// The system's.
    pub fn serve_here(&self) -> io::Result<()> {
        let thread = Thread::current()?;
        self.state.lock().sockets = Some(thread);
        Ok(())
    }

    /// Called by the runtime of that thread when it begins to wait for events, and when it has stopped waiting.
    pub fn parks(&self, parks: bool) {
        self.is_parked.store(parks, SeqCst);
    }

    /// From now on the clock waits while a thread of this process, or of one that it started, runs.
    pub fn watch(&self, process: u32) {
        self.state.lock().process = Some(process);
    }

    /// Adds a moment that was handed out.
    pub fn add(&self, passed: Passed) {
        let mut state = self.state.lock();
        state.passed.add(passed);
        if let Some(step) = &mut state.step {
            step.passed.add(passed);
        }
    }

    /// Called by the feed when a moment is handed out: lets operations begin, and waits until the clock may leave.
    /// Returns the time of the next moment, which is `following` or earlier; from then on no operation begins until the
    /// next call. `None`: not yet, call again. `following` is `None` at the end of the recording.
    pub fn next(&self, following: Option<Following>) -> Option<Timestamp> {
        let begun = Instant::now();
        let mut state = self.state.lock();
        state.following = following;
        let following = following.map(|following| following.at);
        state.is_working = false;
        state.waiting.drain(..).for_each(Waker::wake);
        let mut checks = 0;
        while begun.elapsed() < NEXT_WITHIN {
            match self.wanted(&mut state, following) {
                Wanted::Wait => {
                    self.changed.wait_for(&mut state, NEXT_WITHIN);
                    continue;
                }
                Wanted::Check => {}
                // What was in progress may have sent the bot something: the gate is asked again.
                _ if self.is_settled(&mut state) => match self.wanted(&mut state, following) {
                    Wanted::Leave(at) => {
                        state.is_working = true;
                        state.sent_before = state.sent;
                        return Some(at);
                    }
                    Wanted::EndStep { is_end } => self.end_step(&mut state, is_end),
                    Wanted::EndRun => {
                        state.progress = Progress::Over;
                        state.refuse_parked();
                        self.changed.notify_all();
                    }
                    Wanted::Check | Wanted::Wait => {}
                },
                _ => {}
            }
            checks += 1;
            MutexGuard::unlocked(&mut state, || match checks < CHECKS_WITHOUT_PAUSE {
                true => std::thread::yield_now(),
                false => std::thread::sleep(CHECK_PAUSE),
            });
        }
        None
    }

    fn wanted(&self, state: &mut State, following: Option<Timestamp>) -> Wanted {
        if state.progress != Progress::Runs || state.sockets.is_none() {
            return Wanted::Wait;
        }
        let now = self.clock.now();
        match &self.gate {
            Gate::Stepped => {
                let Some(step) = &state.step else { return Wanted::Wait };
                let (is_made, goal) = match step.by {
                    StepBy::Events(count) => (step.passed.events >= count, None),
                    StepBy::Cycles(count) => (step.passed.cycles >= count, None),
                    StepBy::Micros(micros) => (now >= step.from.plus(micros), Some(step.from.plus(micros))),
                    StepBy::Until(at) => (now >= at, Some(at)),
                };
                match following {
                    _ if is_made => Wanted::EndStep { is_end: false },
                    Some(following) => Wanted::Leave(goal.map_or(following, |goal| goal.min(following))),
                    None => Wanted::EndStep { is_end: true },
                }
            }
            Gate::Round { by, .. } => match (state.round, following) {
                (Some(goal), Some(following)) if now < goal => Wanted::Leave(goal.min(following)),
                (Some(_), _) => {
                    state.round = None;
                    state.release();
                    Wanted::Check
                }
                (None, _) if state.parked.is_empty() => Wanted::Wait,
                // The bot has seen the last moment, and asks for another one.
                (None, None) => Wanted::EndRun,
                (None, Some(following)) => {
                    let goal = now.plus(*by);
                    if state.open == state.parked.len() as u32 {
                        state.round = Some(goal);
                        return Wanted::Leave(goal.min(following));
                    }
                    Wanted::Check
                }
            },
            Gate::Quiet { for_us } => {
                let has_sent = state.sent != state.sent_before;
                // The end of the bot ends the run at this moment, not at a later one.
                let is_gone = || (has_sent || state.sent == 0) && state.process.is_some_and(kernel::has_ended);
                if state.begun == 0 || is_gone() {
                    return Wanted::Wait;
                }
                let is_quiet = || {
                    state.active_at.elapsed() >= Duration::from_micros(*for_us)
                        && !state.process.is_some_and(has_running_thread)
                };
                // At the end it is the last answer that counts.
                match following {
                    _ if state.open > 0 || ((has_sent || following.is_none()) && !is_quiet()) => Wanted::Check,
                    Some(following) => Wanted::Leave(following),
                    None => Wanted::EndRun,
                }
            }
        }
    }

    /// Whether nothing is in progress.
    fn is_settled(&self, state: &mut State) -> bool {
        let is_unread = |line: &LineState| !line.is_open && kernel::has_unread(line.socket.as_fd());
        if state.open != state.parked.len() as u32 || state.lines.iter().any(is_unread) {
            return false;
        }
        // Between the two looks the thread may run, but then it waits for this lock and is not parked.
        let is_parked = || self.is_parked.load(SeqCst);
        let Some(sockets) = &state.sockets else { return false };
        if !(is_parked() && sockets.sleeps() && is_parked()) {
            return false;
        }
        if state.is_unacknowledged {
            let streams = state.lines.iter().filter(|line| line.is_stream);
            let streams: Vec<u64> = streams.filter_map(|line| line.inode).collect();
            state.is_unacknowledged = !streams.is_empty() && kernel::has_unacknowledged(&streams);
        }
        !state.is_unacknowledged
    }

    fn end_step(&self, state: &mut State, is_end: bool) {
        let Some(Step { from, passed, done, .. }) = state.step.take() else { return };
        let to = self.clock.now();
        // The answer to the step is one to the client.
        state.last_sent_at = Some(to);
        // The operator may have left.
        let _ = done.send(Stepped { from, to, passed, is_end });
    }

    /// Begins a step. The receiver gets its result.
    ///
    /// # Errors
    /// [`StepRefused`].
    pub fn step(&self, by: StepBy) -> Result<oneshot::Receiver<Stepped>, StepRefused> {
        let mut state = self.state.lock();
        if self.gate != Gate::Stepped || state.step.is_some() {
            return Err(StepRefused::Runs);
        }
        let from = self.clock.now();
        if matches!(by, StepBy::Until(at) if at < from) {
            return Err(StepRefused::Backwards);
        }
        let (done, made) = oneshot::channel();
        state.step = Some(Step { from, by, passed: Passed::default(), done });
        self.changed.notify_all();
        Ok(made)
    }

    pub fn view(&self) -> View {
        let state = self.state.lock();
        View { is_stepping: state.step.is_some(), following: state.following }
    }

    pub fn figures(&self) -> Figures {
        let state = self.state.lock();
        Figures { operations: state.begun, late: state.late, passed: state.passed }
    }

    /// Waits at most this long until the recording is over and the bot has seen its last moment. Returns whether it is;
    /// never with a `stepped` gate, where an operator learns of the end.
    pub fn is_over_within(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        if state.progress == Progress::Runs {
            self.changed.wait_for(&mut state, time);
        }
        state.progress != Progress::Runs
    }

    /// Ends the run: the clock stays, and operations are refused once everything that was sent before has been answered,
    /// for which this waits at most this long. Parked operations are refused.
    pub fn end(&self, within: Duration) {
        let begun = Instant::now();
        let mut state = self.state.lock();
        state.refuse_parked();
        while begun.elapsed() < within && !self.is_settled(&mut state) {
            MutexGuard::unlocked(&mut state, || std::thread::sleep(CHECK_PAUSE));
        }
        state.progress = Progress::Ended;
        state.refuse_parked();
        self.changed.notify_all();
        self.ended.notify_one();
    }

    /// Returns when the run has ended.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Begins an operation of that name. The result is to be awaited before anything of it is looked at; false: the run
    /// is over, and the operation is refused.
    pub fn begin(self: &Arc<Self>, operation: Option<&str>) -> Turn {
        let now = self.clock.now();
        let mut state = self.state.lock();
        if state.progress != Progress::Ended {
            state.begun += 1;
            state.late += u64::from(state.last_sent_at.is_some_and(|at| at < now));
        }
        if state.progress != Progress::Runs {
            return Turn { moments: Arc::clone(self), ticket: None, is_refused: true };
        }
        let is_parked = match &self.gate {
            Gate::Round { operation: of_round, .. } => operation == Some(of_round.as_str()),
            Gate::Stepped | Gate::Quiet { .. } => false,
        };
        let ticket = is_parked.then(|| {
            let ticket = state.id();
            state.parked.push_back((ticket, None));
            ticket
        });
        self.changed.notify_all();
        Turn { moments: Arc::clone(self), ticket, is_refused: false }
    }

    /// Keeps an operation open until the result is dropped, for one that no connection waits for.
    pub fn hold(self: &Arc<Self>) -> Held {
        self.state.lock().open += 1;
        Held(Arc::clone(self))
    }

    fn close(&self, state: &mut State) {
        state.open -= 1;
        self.changed.notify_all();
    }
}

impl State {
    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn refuse_parked(&mut self) {
        self.refused.extend(self.parked.iter().map(|(ticket, _)| *ticket));
        while !self.parked.is_empty() {
            self.release();
        }
    }

    /// Lets the first parked operation continue.
    fn release(&mut self) {
        if let Some((_, waker)) = self.parked.pop_front() {
            self.active_at = Instant::now();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests;
