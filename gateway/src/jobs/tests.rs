use super::*;
use host::job::{Next, Work};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

/// Notes its end.
struct Noting(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Work for Noting {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        Ok(Next::Sleep)
    }

    fn end(self) {
        self.1.lock().expect("no panic").push(self.0);
    }
}

/// Ends when the test says so.
struct Held(std::sync::mpsc::Receiver<()>);

impl Work for Held {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        let _ = self.0.recv();
        Ok(Next::Over)
    }
}

const ALL: [(&str, End); ENDS] = [
    ("feeds", End::BeforeShards),
    ("reads", End::AfterLog),
    ("locks", End::AfterSnapshot),
    ("writes", End::Last),
    ("helps", End::WithProcess),
];

/// Each phase ends its own jobs, and only a phase that was reached.
#[test]
fn a_stop_ends_the_jobs_of_its_phases_in_order() {
    let (mut jobs, ended) = (Jobs::default(), Arc::<Mutex<Vec<&str>>>::default());
    let rows = ALL.map(|(name, end)| {
        let work = Noting(name, ended.clone());
        // Longer than any test: only a wake-up ends the sleep.
        Row { end, job: Job::new(name, Duration::from_secs(100_000), move || work) }
    });
    jobs.start(rows.into()).expect("threads");
    for (at, (name, end)) in ALL[..4].iter().enumerate() {
        assert_eq!(ended.lock().expect("no panic").len(), at, "{name} runs until its phase");
        jobs.end(*end);
        assert!(jobs.stops().of(*end).is_set() && ended.lock().expect("no panic").last() == Some(name));
    }
    let (unwaited, running) = (jobs.stops().of(End::WithProcess).clone(), jobs.running.len());
    assert_eq!((unwaited.is_set(), running), (false, 1));
    drop(jobs);
    assert!(unwaited.is_set(), "the flag of those that nothing waits for");
    println!("phases: {} cases", ALL.len());
}

#[test]
fn a_stop_continues_without_a_job_that_does_not_end() {
    let (mut jobs, (release, held)) = (Jobs::default(), std::sync::mpsc::channel());
    let row = Row { end: End::BeforeShards, job: Job::new("held", Duration::ZERO, move || Held(held)) };
    jobs.start(vec![row]).expect("a thread");
    let runtime = host::runtime::runtime().expect("a runtime");
    runtime.block_on(jobs.end_within(End::BeforeShards, Duration::from_millis(5)));
    assert!(jobs.running.is_empty());
    // Does not block.
    jobs.end(End::BeforeShards);
    drop(release);
}
