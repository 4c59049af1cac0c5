//! A run: opens connections, offers operations when they are due, waits for answers.
//!
//! In an open loop operation n is due at n ÷ rate, on connection n modulo connections, independent of the operations
//! before. The client is one thread, so that it leaves the rest of the machine to the server.

use super::course::{Course, Phase};
use super::fate::Fates;
use super::instrument::Instrument;
use super::lane::Lane;
use super::options::Rate;
use super::outcome::STANDSTILL_LEAST;
use super::pace::Pace;
use super::protocol::Transport;
use super::tally::Tally;
use super::trader::Trader;
use crate::Failure;
use crate::machine;
use crate::signals::Signals;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Connections that are opened concurrently.
const OPENED_AT_ONCE: usize = 64;
/// After the last due time: how long waiting operations may still be sent, and how long answers are waited for. A
/// server answers an order within ten seconds.
const SEND_UNTIL: Duration = Duration::from_secs(5);
const ANSWER_UNTIL: Duration = Duration::from_secs(15);
/// The same when the run was interrupted: the sender of a signal may follow it with SIGKILL a few seconds later.
const ANSWER_BRIEFLY: Duration = Duration::from_secs(2);
/// Most operations that wait or are in flight, in all. It bounds the client's memory for rates beyond any server.
const UNDER_WAY_MAX: u64 = 5_000_000;
/// Timeout of cancelling the resting orders of a run.
const CLEAN_UNTIL: Duration = Duration::from_secs(120);
/// The shortest sleep between two looks at the schedule. One timer for each of tens of thousands of operations a second
/// would cost more of the core than the operations. Latency counts from the due time, so it includes this delay
/// (tools/docs/load.md §2).
const REST_LEAST: Duration = Duration::from_micros(50);
/// Interval at which a closed loop checks whether the process was scheduled.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Interval of the progress display.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// A finished run.
pub struct Ran {
    pub tally: Tally,
    /// From the first due time to the last, or the length of the closed loop.
    pub lasted: Duration,
    /// A signal ended the run, or the steps after it.
    pub interrupted: bool,
    /// Connections that were not open when the run began.
    pub unopened: Unopened,
    /// Share of the time in which this client was runnable and had no core.
    pub waited: Option<f64>,
    /// Share of one core that this client used during the run.
    pub cores_used: Option<f64>,
    pub load_before: Option<String>,
    pub load_after: Option<String>,
    /// By connection.
    pub fates: Vec<Fates>,
    /// Places in the keys file of the users who sent orders, by connection.
    pub users_used: Vec<Vec<u32>>,
    /// Own resting orders, as far as the client knows.
    pub resting: u64,
    /// The result of cancelling them, if `--clean` was given.
    pub cleaned: Option<Tally>,
}

/// Connections that are missing, and the error of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unopened {
    pub count: usize,
    pub why: Option<String>,
}

/// How a run is driven.
pub struct Plan {
    pub connections: usize,
    pub rate: Rate,
    pub duration: Duration,
    pub clean: bool,
}

/// The users whose orders a connection carries. HTTP connections share out all users; a socket has one.
fn users_of(connection: usize, connections: usize, users: usize, transport: Transport) -> Vec<u32> {
    let dealt = (connection..users).step_by(connections).map(|user| user as u32);
    match transport {
        Transport::Rest if connection < users => dealt.collect(),
        Transport::Rest | Transport::Ws => vec![(connection % users) as u32],
    }
}

/// Runs it on this thread's runtime, inside a local set. A signal ends the run: operations in flight are waited for
/// briefly, and nothing is cleaned.
///
/// # Errors
/// One sentence when there is no connection at all, and [`crate::signals::Interrupted`] when a signal came before the
/// run.
pub async fn drive(
    course: Rc<Course>,
    plan: &Plan,
    instruments: Rc<[Instrument]>,
    signals: &Signals,
) -> Result<Ran, Failure> {
    let users = course.keys.users.len();
    let lanes: Vec<Rc<Lane>> = (0..plan.connections)
        .map(|number| {
            let users = users_of(number, plan.connections, users, course.protocol.transport);
            let trader = Trader::new(users.clone(), instruments.clone());
            Rc::new(Lane::new(course.clone(), number, users, trader))
        })
        .collect();
    allow_descriptors();
    let pace = Pace::new().map_err(|error| format!("no timer: {error}"))?;
    let (living, unopened) = signals.unless_ended(open(&lanes)).await??;
    let (load_before, ticks_before, waited_before) = (machine::load(), own_ticks(), machine::waited());
    course.begin();
    let bar = Bar::begin(&course, plan.duration);
    let offering = async {
        match plan.rate {
            Rate::PerSecond(rate) => {
                let count = u128::from(rate) * plan.duration.as_nanos() / 1_000_000_000;
                follow(&course, &lanes, &pace, rate, count.max(1) as u64).await
            }
            Rate::Max => {
                course.phase.set(Phase::Closed);
                lanes.iter().for_each(|lane| lane.begin());
                look_at_itself(&course, &pace, plan.duration).await
            }
        }
    };
    let offered = signals.unless_ended(offering).await;
    let cut_short = offered.is_err();
    if let Ok(Err(error)) = offered {
        return Err(format!("no timer: {error}").into());
    }
    course.phase.set(Phase::Handed);
    let lasted = course.now().max(if cut_short { Duration::ZERO } else { plan.duration });
    let cores_used = ticks_before
        .zip(own_ticks())
        .map(|(before, after)| (after - before) as f64 / machine::TICKS_PER_SECOND / course.now().as_secs_f64());
    // An operation that was due in time is still sent for a while: late is better than missing.
    let _ = signals.unless_ended(timeout(SEND_UNTIL, watched(&course, &pace, course.idle()))).await;
    let unsent: u64 = lanes.iter().map(|lane| lane.give_up_waiting()).sum();
    let briefly = async {
        signals.end().await;
        let _ = timeout(ANSWER_BRIEFLY, signals.hurry()).await;
    };
    tokio::select! {
        _ = timeout(ANSWER_UNTIL, watched(&course, &pace, course.idle())) => {}
        () = briefly => {}
    }
    let waited = waited_before.zip(machine::waited());
    let waited = waited.map(|(before, after)| (after - before) as f64 / course.now().as_nanos() as f64);
    bar.end();
    lanes.iter().for_each(|lane| lane.close());
    let load_after = machine::load();
    let mut tally = course.tally.replace(Tally::new(plan.duration));
    tally.unsent += unsent;
    tally.replaced = lanes.iter().map(|lane| lane.with_trader(|trader| trader.replaced)).sum();
    let cleaned = match plan.clean && signals.received().is_none() {
        true => Some(clean(&course, &lanes, plan.duration, signals).await),
        false => None,
    };
    living.iter().for_each(JoinHandle::abort);
    Ok(Ran {
        tally,
        lasted,
        interrupted: signals.received().is_some(),
        unopened,
        waited,
        cores_used,
        load_before,
        load_after,
        fates: lanes.iter().map(|lane| lane.with_trader(|trader| trader.fates.clone())).collect(),
        users_used: lanes.iter().map(|lane| lane.with_trader(|trader| trader.users_used().to_vec())).collect(),
        resting: lanes.iter().map(|lane| lane.with_trader(|trader| trader.open_count() as u64)).sum(),
        cleaned,
    })
}

/// Processor time of this program so far.
fn own_ticks() -> Option<u64> {
    machine::ticks(std::process::id())
}

/// Raises the descriptor limit as far as the system allows: the usual limit is below the number of connections that may
/// be requested.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // If that is too few, each connection that cannot be opened reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Starts every lane. At least one of them must have a connection, or there is nothing to load.
async fn open(lanes: &[Rc<Lane>]) -> Result<(Vec<JoinHandle<()>>, Unopened), String> {
    let (mut living, mut unopened) = (Vec::with_capacity(lanes.len()), Unopened::default());
    for some in lanes.chunks(OPENED_AT_ONCE) {
        let mut opening = Vec::with_capacity(some.len());
        for lane in some {
            let (sender, opened) = oneshot::channel();
            let notify = move |result| drop(sender.send(result));
            living.push(tokio::task::spawn_local(lane.clone().live(notify)));
            opening.push(opened);
        }
        for opened in opening {
            if let Ok(Err(why)) = opened.await {
                unopened.count += 1;
                unopened.why.get_or_insert(why);
            }
        }
    }
    match &unopened.why {
        Some(why) if unopened.count == lanes.len() => {
            Err(format!("not one of {} connections was opened: {why}", lanes.len()))
        }
        _ => Ok((living, unopened)),
    }
}

/// Offers `count` operations as they become due.
async fn follow(course: &Course, lanes: &[Rc<Lane>], pace: &Pace, rate: u32, count: u64) -> io::Result<()> {
    let mut number = 0;
    while number < count {
        let now = course.now();
        let first = number;
        while number < count && due(number, rate) <= now {
            if course.under_way() < UNDER_WAY_MAX {
                let lane = (number % lanes.len() as u64) as usize;
                course.offer();
                let kind = course.mix.kind(lane, number / lanes.len() as u64);
                lanes[lane].offer(kind, due(number, rate), now);
            } else {
                let mut tally = course.tally.borrow_mut();
                tally.offered += 1;
                tally.unsent += 1;
            }
            number += 1;
        }
        let touched = (number - first).min(lanes.len() as u64);
        for place in 0..touched {
            lanes[((first + place) % lanes.len() as u64) as usize].flush();
        }
        if number == count {
            break;
        }
        rest(pace, due(number, rate).saturating_sub(course.now())).await?;
    }
    Ok(())
}

/// A closed loop has no due times that would show a pause of this program. So it compares its own clock with an even
/// schedule; looks that were missed in a pause are all late.
async fn look_at_itself(course: &Course, pace: &Pace, run: Duration) -> io::Result<()> {
    let (mut number, mut due) = (1, LOOK_EVERY);
    while due <= run {
        pace.rest(due.saturating_sub(course.now())).await?;
        let now = course.now();
        while due <= now.min(run) {
            course.tally.borrow_mut().came(due, now);
            number += 1;
            due = LOOK_EVERY * number;
        }
    }
    pace.rest(run.saturating_sub(course.now())).await
}

/// Waits for the operations in flight when nothing more is due. A pause of this program would look like one of the
/// server's, so the loop watches its own clock; only real pauses are recorded.
async fn watched<T>(course: &Course, pace: &Pace, what: impl Future<Output = T>) -> T {
    let looking = async {
        loop {
            let due = course.now() + LOOK_EVERY;
            if pace.rest(LOOK_EVERY).await.is_err() {
                // Without a timer there is nothing to compare; the caller has its own timeout.
                std::future::pending::<()>().await;
            }
            let now = course.now();
            if now.saturating_sub(due) >= STANDSTILL_LEAST {
                course.tally.borrow_mut().came(due, now);
            }
        }
    };
    tokio::select! {
        biased;
        () = looking => unreachable!("the watch ends after the other future"),
        waited = what => waited,
    }
}

/// When an operation is due, since the beginning.
fn due(number: u64, rate: u32) -> Duration {
    let (rate, second) = (u64::from(rate), 1_000_000_000);
    // In parts, so that the longest run at the highest rate does not overflow.
    Duration::new(number / rate, (number % rate * second / rate) as u32)
}

async fn rest(pace: &Pace, time: Duration) -> io::Result<()> {
    if time.is_zero() {
        tokio::task::yield_now().await;
        return Ok(());
    }
    pace.rest(time.max(REST_LEAST)).await
}

/// Cancels the resting orders as fast as the connections allow. Closed connections are waited for while they reconnect.
async fn clean(course: &Course, lanes: &[Rc<Lane>], run: Duration, signals: &Signals) -> Tally {
    course.phase.set(Phase::Clean);
    let resting = || lanes.iter().map(|lane| lane.with_trader(|trader| trader.open_count())).sum::<usize>();
    let cleaning = async {
        let (mut left, mut until) = (resting(), Instant::now() + SEND_UNTIL);
        while left > 0 && Instant::now() < until {
            lanes.iter().for_each(|lane| lane.begin());
            course.idle().await;
            let now_left = resting();
            if now_left < left {
                (left, until) = (now_left, Instant::now() + SEND_UNTIL);
            } else {
                sleep(LOOK_EVERY).await;
            }
        }
    };
    let _ = signals.unless_ended(timeout(CLEAN_UNTIL, cleaning)).await;
    course.phase.set(Phase::Handed);
    lanes.iter().for_each(|lane| lane.close());
    course.tally.replace(Tally::new(run))
}

/// Progress on a terminal; nothing elsewhere.
struct Bar {
    bar: ProgressBar,
    drawing: JoinHandle<()>,
}

impl Bar {
    fn begin(course: &Rc<Course>, run: Duration) -> Bar {
        let bar = ProgressBar::new(run.as_millis() as u64);
        let style = ProgressStyle::with_template("{wide_bar} {msg}").expect("the template is valid");
        bar.set_style(style);
        let (drawn, course) = (bar.clone(), course.clone());
        let drawing = tokio::task::spawn_local(async move {
            let mut before = 0;
            loop {
                tokio::time::sleep(DRAW_EVERY).await;
                let total = course.tally.borrow().total();
                let rate = (total.answered() - before) as f64 / DRAW_EVERY.as_secs_f64();
                before = total.answered();
                drawn.set_position(course.now().as_millis() as u64);
                let (answered, refused, unanswered) = (total.answered(), total.refused, total.unanswered);
                drawn.set_message(format!("{answered} answers, {rate:.0}/s, {refused} refused, {unanswered} lost"));
            }
        });
        Bar { bar, drawing }
    }

    fn end(self) {
        self.drawing.abort();
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fate::Fate;
    use crate::load::keys::{Keys, User};
    use crate::load::options::Mix;
    use crate::load::protocol::Protocol;
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};
    use tokio::task::LocalSet;

    /// A server that answers `answers` requests on each connection with success and closes it at the next one.
    fn moody(answers: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a client");
                std::thread::spawn(move || {
                    let (mut bytes, mut received, mut left) = ([0; 4_096], Vec::new(), answers);
                    while let Ok(count @ 1..) = stream.read(&mut bytes) {
                        received.extend_from_slice(&bytes[..count]);
                        // A client requests health first; that is not an operation.
                        let is_greeting = |received: &[u8]| received.starts_with(b"GET /v1/health ");
                        let end = |received: &[u8]| {
                            let last: &[u8] = if is_greeting(received) { b"\r\n\r\n" } else { b"\"}" };
                            Some(received.windows(last.len()).position(|bytes| bytes == last)? + last.len())
                        };
                        while let Some(bytes) = end(&received) {
                            if !is_greeting(&received) && left == 0 {
                                return;
                            }
                            left -= usize::from(!is_greeting(&received));
                            received.drain(..bytes);
                            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").expect("it listens");
                        }
                    }
                });
            }
        });
        address
    }

    fn run(address: SocketAddr, pipeline: usize, plan: Plan) -> Result<Ran, Failure> {
        let users = [User { user_id: 1, api_key: "k".into(), tier: None }];
        let keys = Keys { file: "f".into(), users: users.into() };
        let protocol = Protocol { transport: Transport::Rest, authority: address.to_string() };
        let mix = Mix::parse("rest=100").expect("the request is valid");
        let tally = Tally::new(plan.duration);
        let course = Rc::new(Course::new(address, protocol, keys, "run".into(), mix, pipeline, tally));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let instruments: Rc<[Instrument]> = vec![Instrument::sample("7")].into();
        LocalSet::new().block_on(&runtime, drive(course, &plan, instruments, &Signals::none()))
    }

    #[test]
    fn what_a_broken_connection_took_along_is_unknown_and_nothing_is_lost() {
        let duration = Duration::from_millis(300);
        let rows = [(1, 1), (2, 1), (1, 4), (3, 8)];
        for (connections, pipeline) in rows {
            let plan = Plan { connections, rate: Rate::PerSecond(200), duration, clean: false };
            let ran = run(moody(10), pipeline, plan).expect("it answers");
            let (tally, total) = (&ran.tally, ran.tally.total());
            assert_eq!(tally.offered, 60);
            assert_eq!(total.succeeded + total.unanswered + tally.unsent, 60, "{connections} x {pipeline}");
            assert!(total.succeeded > 0 && total.unanswered > 0 && tally.reconnects > 0, "{connections} x {pipeline}");
            let count =
                |fate| ran.fates.iter().flat_map(|fates| fates.iter()).filter(|one| *one == fate).count() as u64;
            assert_eq!((count(Fate::Placed), count(Fate::Unknown)), (total.succeeded, total.unanswered));
            assert!(!tally.transport.is_empty(), "the reason of the end");
        }
        println!("broken connections: {} cases", rows.len());
    }

    /// A connection that was idle for two seconds before it ended has lost an answer all the same.
    #[test]
    fn an_end_with_an_operation_in_flight_is_counted() {
        let plan = Plan { connections: 2, rate: Rate::PerSecond(1), duration: Duration::from_secs(4), clean: false };
        let ran = run(moody(1), 1, plan).expect("it answers");
        let (tally, total) = (&ran.tally, ran.tally.total());
        assert_eq!((total.succeeded, total.unanswered, tally.rested), (2, 2, 0));
        assert_eq!(tally.transport.iter().collect::<Vec<_>>(), [(&"closed by the server".to_owned(), &2)]);
        println!("ends after a rest: 1 case");
    }

    #[test]
    fn an_unreachable_server_is_one_sentence() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let plan = Plan { connections: 2, rate: Rate::Max, duration: Duration::from_millis(100), clean: false };
        let error = run(address, 1, plan).err().expect("nothing listens").to_string();
        assert!(error.contains("not one of 2 connections was opened: connection refused"), "{error}");
        println!("closed doors: 1 case");
    }

    #[test]
    fn operations_are_due_at_even_distances() {
        let nanos = Duration::from_nanos;
        let cases = [
            (0, 1, nanos(0)),
            (1, 1, Duration::from_secs(1)),
            (1, 3, nanos(333_333_333)),
            (3, 3, Duration::from_secs(1)),
            (999_999, 1_000_000, nanos(999_999_000)),
            (863_999_999_999, 10_000_000, Duration::new(86_399, 999_999_900)),
        ];
        for (number, rate, expected) in cases {
            assert_eq!(due(number, rate), expected, "{number} at {rate}");
        }
        let rate = 7;
        assert!((1..1_000).all(|number| due(number, rate) > due(number - 1, rate)));
        println!("due times: {} cases", cases.len() + 1);
    }

    #[test]
    fn users_are_dealt_out_to_connections() {
        let cases: [(usize, usize, usize, Transport, &[u32]); 6] = [
            (0, 2, 5, Transport::Rest, &[0, 2, 4]),
            (1, 2, 5, Transport::Rest, &[1, 3]),
            (0, 3, 1, Transport::Rest, &[0]),
            (2, 3, 2, Transport::Rest, &[0]),
            (1, 2, 5, Transport::Ws, &[1]),
            (6, 9, 5, Transport::Ws, &[1]),
        ];
        for (connection, connections, users, transport, expected) in cases {
            assert_eq!(users_of(connection, connections, users, transport), expected, "{connection} of {connections}");
        }
        println!("deals: {} cases", cases.len());
    }
}
