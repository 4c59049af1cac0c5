use super::*;
use rustix::process::getpriority_process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longer than any test: only a wake-up ends such a sleep.
const NEVER: Duration = Duration::from_secs(100_000);

/// Does what its script says, turn by turn, and then sleeps.
struct Script {
    turns: Vec<Result<Next, &'static str>>,
    log: Arc<Mutex<Vec<String>>>,
    waker: JobWaker,
}

impl Work for Script {
    type Error = &'static str;

    const FAILED: &'static str = "a turn failed";

    fn take_turn(&mut self, _: &Stop) -> Result<Next, &'static str> {
        let next = if self.turns.is_empty() { Ok(Next::Sleep) } else { self.turns.remove(0) };
        self.log.lock().expect("no panic").push(format!("{next:?}"));
        next
    }

    fn end(self) {
        self.log.lock().expect("no panic").push("end".to_owned());
    }

    fn waker(&self) -> Option<&JobWaker> {
        Some(&self.waker)
    }
}

fn script(turns: &[Result<Next, &'static str>]) -> (Script, Arc<Mutex<Vec<String>>>) {
    let log = Arc::<Mutex<Vec<String>>>::default();
    (Script { turns: turns.to_vec(), log: log.clone(), waker: JobWaker::default() }, log)
}

fn wait_for(log: &Mutex<Vec<String>>, count: usize) {
    while log.lock().expect("no panic").len() < count {
        std::thread::yield_now();
    }
}

/// Turns follow each other as the work says, a wake-up and a stop end a sleep, and the end comes once.
#[test]
fn a_job_makes_turns_until_it_is_stopped() {
    let few = Duration::from_millis(1);
    let (work, log) = script(&[Ok(Next::Again), Ok(Next::SleepFor(few)), Err("no room"), Ok(Next::Again)]);
    let (waker, stop) = (work.waker.clone(), Stop::new());
    waker.wake();
    let running = Job::new("script", NEVER, move || work).start(&stop).expect("a thread");
    assert_eq!(running.name(), "script");
    wait_for(&log, 5);
    for woken in 6..10 {
        waker.wake();
        wait_for(&log, woken);
    }
    running.stop();
    // Hangs if the stop does not wake it.
    running.join();
    let log = log.lock().expect("no panic");
    let begun = ["Again", "SleepFor(1ms)", "no room", "Again", "Sleep"];
    assert!(log.iter().zip(begun).all(|(made, expected)| made.contains(expected)), "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("end"));
    assert_eq!(log.iter().filter(|made| *made == "end").count(), 1);
    println!("turns: {}", log.len());
}

#[test]
fn a_job_is_waited_for_within_a_time() {
    let few = Duration::from_millis(5);
    let runtime = crate::runtime::runtime().expect("a runtime");
    let started = || {
        let (work, _) = script(&[]);
        Job::new("script", NEVER, move || work).start(&Stop::new()).expect("a thread")
    };
    for stops in [true, false] {
        let time = if stops { NEVER } else { few };
        let (blocking, waiting) = (started(), started());
        if stops {
            [&blocking, &waiting].into_iter().for_each(RunningJob::stop);
        }
        assert_eq!(blocking.join_within(time), stops);
        assert_eq!(runtime.block_on(waiting.ended_within(time)), stops);
    }
    println!("waits: 4 cases");
}

#[test]
fn a_job_that_is_over_ends_without_a_stop() {
    let (work, log) = script(&[Ok(Next::Wait), Ok(Next::Over), Ok(Next::Again)]);
    let running = Job::new("script", Duration::from_millis(1), move || work).start(&Stop::new()).expect("a thread");
    running.join();
    assert_eq!(*log.lock().expect("no panic"), ["Ok(Wait)", "Ok(Over)", "end"]);
}

struct Panics;

impl Work for Panics {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        panic!("as planned");
    }
}

#[test]
fn a_panic_of_a_spare_job_ends_only_the_job() {
    let lost = Arc::new(AtomicBool::new(false));
    let noted = lost.clone();
    let job = Job::new("panics", NEVER, || Panics).spare("the job has failed", move || {
        noted.store(true, Ordering::Relaxed);
    });
    job.start(&Stop::new()).expect("a thread").join();
    assert!(lost.load(Ordering::Relaxed));
}

/// Notes the priority of its thread.
struct Priority(Arc<Mutex<Vec<i32>>>);

impl Work for Priority {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        self.0.lock().expect("no panic").push(getpriority_process(None).expect("a priority"));
        Ok(Next::Over)
    }
}

#[test]
fn only_the_thread_of_a_low_priority_job_is_lowered() {
    let own = || getpriority_process(None).expect("a priority");
    let (before, noted) = (own(), Arc::<Mutex<Vec<i32>>>::default());
    for is_low in [true, false] {
        let work = Priority(noted.clone());
        let job = Job::new("priority", NEVER, move || work);
        let job = if is_low { job.low_priority() } else { job };
        job.start(&Stop::new()).expect("a thread").join();
    }
    let lowered = thread::lowered(before);
    assert_eq!((own(), &*noted.lock().expect("no panic")), (before, &vec![lowered, before]));
}
