use super::*;
use edge::testing::{OneOrder, one_ended_order};
use engine::command::Command;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::mpsc;

/// What a source does with the next answer; without an entry it completes it.
enum Step {
    Opening,
    Fails,
    /// The rows are lost.
    Lacks,
    Panics,
    /// Reports that it has begun, and waits.
    Waits(mpsc::Sender<()>, mpsc::Receiver<()>),
    /// Reports that it has begun, and reads until it is given up.
    Scans(mpsc::Sender<()>),
}

struct Source {
    rows: OneOrder,
    next: Arc<Mutex<VecDeque<Step>>>,
}

impl EndedSource for Source {
    type Error = &'static str;

    fn complete(&self, elsewhere: Elsewhere, is_given_up: GivenUp<'_>) -> Result<Answer, &'static str> {
        self.step(is_given_up)?;
        let completed: Result<Answer, Infallible> = elsewhere.complete(&self.rows);
        Ok(completed.unwrap_or_else(|never| match never {}))
    }

    fn look_up(&self, look_up: LookUp, is_given_up: GivenUp<'_>) -> Result<Envelope<()>, &'static str> {
        self.step(is_given_up)?;
        let found: Result<Envelope<()>, Infallible> = look_up.found(&self.rows);
        Ok(found.unwrap_or_else(|never| match never {}))
    }

    fn is_opening(error: &&'static str) -> bool {
        *error == "opening"
    }

    fn is_lost(error: &&'static str) -> bool {
        *error == "lost"
    }
}

impl Source {
    fn step(&self, is_given_up: GivenUp<'_>) -> Result<(), &'static str> {
        let next = self.next.lock().pop_front();
        match next {
            Some(Step::Opening) => Err("opening"),
            Some(Step::Fails) => Err("damaged"),
            Some(Step::Lacks) => Err("lost"),
            Some(Step::Panics) => panic!("planted"),
            Some(Step::Waits(begun, go_on)) => {
                begun.send(()).expect("the test waits for it");
                go_on.recv().expect("the test lets it go on");
                Ok(())
            }
            Some(Step::Scans(begun)) => {
                begun.send(()).expect("the test waits for it");
                while !is_given_up() {
                    std::thread::yield_now();
                }
                Err("given up")
            }
            None => Ok(()),
        }
    }
}

/// Readers of one order, what they do next, and a query about the order.
fn readers(
    count: usize,
    next: Vec<Step>,
    opens_within: Duration,
) -> (EndedReaders, Arc<Mutex<VecDeque<Step>>>, Box<Elsewhere>) {
    let (asked, rows) = one_ended_order();
    let next = Arc::new(Mutex::new(VecDeque::from(next)));
    let source = Source { rows, next: next.clone() };
    (EndedReaders::waiting(count, source, Arc::default(), opens_within).expect("threads"), next, asked)
}

/// Longer than a test runs.
const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn answers_are_completed_or_say_why_not() {
    // What the source does, and for how long it may open; the answers of four queries in a row, `None`: a closed receiver.
    let unread = Some(Err(Unread::Unreadable));
    let done = Some(Ok(()));
    let table = [
        (vec![], LONG, [done, done, done, done]),
        (vec![Step::Opening], LONG, [done, done, done, done]),
        (vec![Step::Opening, Step::Opening, Step::Opening, Step::Fails], LONG, [unread, done, done, done]),
        (vec![Step::Opening, Step::Opening], Duration::ZERO, [unread, unread, done, done]),
        (vec![Step::Fails, Step::Fails], LONG, [unread, unread, done, done]),
        (vec![Step::Panics, Step::Fails, Step::Panics], LONG, [None, unread, None, done]),
    ];
    let mut cases = 0;
    for (next, opens_within, expected) in table {
        let (readers, _, asked) = readers(1, next, opens_within);
        for (nth, expected) in expected.into_iter().enumerate() {
            let found = readers.complete(asked.clone()).blocking_recv().ok();
            let shown =
                found.map(|found| found.map(|answer| assert!(matches!(answer, Answer::Order(_)), "{answer:?}")));
            assert_eq!(shown, expected, "query {nth} of case {cases}");
        }
        cases += 1;
    }
    // A source that is opened again is waited for again, from the next query on.
    let (readers, next, asked) = readers(1, vec![], LONG);
    let ask = || readers.complete(asked.clone()).blocking_recv().ok().map(|found| found.map(drop));
    assert_eq!(ask(), done);
    next.lock().extend([Step::Opening, Step::Opening, Step::Opening]);
    assert_eq!((ask(), ask()), (unread, done));
    assert!(next.lock().is_empty());
    let counts = Outcome::ALL.map(|outcome| readers.figures.answers.of(outcome));
    assert_eq!((counts, readers.figures.answers.took.counted().count), ([2, 0, 1, 0], 3));
    println!("ended rows: {} cases", cases + 1);
}

#[test]
fn a_full_queue_refuses_and_forgets_what_was_given_up() {
    let ((begun, has_begun), (go_on, wait)) = (mpsc::channel(), mpsc::channel());
    let (readers, _, asked) = readers(1, vec![Step::Waits(begun, wait)], LONG);
    let first = readers.complete(asked.clone());
    has_begun.recv().expect("the reader has taken it");
    let mut waiting: Vec<EndedAnswer> = (0..WAITING_MAX).map(|_| readers.complete(asked.clone())).collect();
    let refused = readers.complete(asked.clone()).blocking_recv().expect("an answer");
    assert_eq!(refused.map(drop), Err(Unread::Busy));
    // A request that has given up makes room for one other.
    drop(waiting.remove(WAITING_MAX / 2));
    let next = readers.complete(asked.clone());
    assert_eq!(readers.complete(asked).blocking_recv().expect("an answer").map(drop), Err(Unread::Busy));
    assert_eq!(readers.figures.answers.of(Outcome::Busy), 2);
    go_on.send(()).expect("the reader waits");
    let mut completed = 0;
    for answer in waiting.into_iter().chain([first, next]) {
        assert_eq!(answer.blocking_recv().expect("an answer").map(drop), Ok(()));
        completed += 1;
    }
    println!("a full queue: {completed} answers completed, 2 refused");
    assert_eq!(completed, WAITING_MAX + 1);
}

#[test]
fn several_readers_work_side_by_side_and_end_with_the_pool() {
    let ((begun, has_begun), (go_on, wait)) = (mpsc::channel(), mpsc::channel());
    let (readers, _, asked) = readers(3, vec![Step::Waits(begun, wait)], LONG);
    let slow = readers.complete(asked.clone());
    has_begun.recv().expect("a reader has taken it");
    // Another reader answers meanwhile.
    for _ in 0..100 {
        assert_eq!(readers.complete(asked.clone()).blocking_recv().expect("an answer").map(drop), Ok(()));
    }
    go_on.send(()).expect("the reader waits");
    drop(readers);
    // What was begun is finished.
    assert_eq!(slow.blocking_recv().expect("an answer").map(drop), Ok(()));
}

/// Long answers leave one reader of several to commands.
#[test]
fn one_reader_is_left_to_commands() {
    for count in [2, 3, 5] {
        let ((begun, has_begun), mut go_on, mut steps) = (mpsc::channel(), Vec::new(), Vec::new());
        for _ in 1..count {
            let (go, wait) = mpsc::channel();
            steps.push(Step::Waits(begun.clone(), wait));
            go_on.push(go);
        }
        let (readers, _, asked) = readers(count, steps, LONG);
        let mut answers: Vec<EndedAnswer> = (0..count + 3).map(|_| readers.complete(asked.clone())).collect();
        (1..count).for_each(|_| has_begun.recv().expect("a reader has taken it"));
        for _ in 0..10 {
            assert!(readers.look_up(asked_command()).blocking_recv().expect("an answer").is_ok());
        }
        assert!(answers.iter_mut().all(|answer| answer.try_recv().is_err()), "the others wait");
        go_on.into_iter().for_each(|go| go.send(()).expect("a reader waits"));
        for answer in answers {
            assert_eq!(answer.blocking_recv().expect("an answer").map(drop), Ok(()));
        }
    }
    println!("readers left to commands: 3 cases");
}

/// A reader that scans goes on with the next request when its client has gone, and ends when the process ends.
#[test]
fn a_reader_stops_when_its_answer_is_given_up() {
    let ((begun, has_begun), (again, has_begun_again)) = (mpsc::channel(), mpsc::channel());
    let (readers, _, asked) =
        readers(1, vec![Step::Scans(begun), Step::Scans(again.clone()), Step::Scans(again)], LONG);
    let answer = readers.complete(asked.clone());
    has_begun.recv().expect("the reader has taken it");
    drop(answer);
    let command = readers.look_up(asked_command());
    has_begun_again.recv().expect("the reader has taken it");
    drop(command);
    // The last one is wanted until the end of the readers.
    let wanted = readers.complete(asked);
    has_begun_again.recv().expect("the reader has taken it");
    drop(readers);
    assert!(wanted.blocking_recv().is_err(), "no answer is made up");
    println!("answers that are given up: 3 cases");
}

/// A cancel of an order that has left memory, as a shard hands it back.
fn asked_command() -> Box<LookUp> {
    edge::testing::one_cancel_of_an_ended_order()
}

#[test]
fn commands_are_looked_up_or_say_why_not() {
    let mut cases = 0;
    for (next, expected) in [
        (vec![], Some(Ok(()))),
        (vec![Step::Opening, Step::Opening], Some(Ok(()))),
        (vec![Step::Fails], Some(Err(Unread::Unreadable))),
        (vec![Step::Panics], None),
    ] {
        let (readers, _, _) = readers(1, next, LONG);
        let found = readers.look_up(asked_command()).blocking_recv().ok();
        let shown = found.map(|found| found.map(|found| assert!(matches!(found.command, Command::Found(_)))));
        assert_eq!(shown, expected, "case {cases}");
        cases += 1;
    }
    println!("commands that are looked up: {cases} cases");
}

/// A queue full of answers neither refuses nor delays a command.
#[test]
fn commands_go_before_answers() {
    let ((begun, has_begun), (go_on, wait)) = (mpsc::channel(), mpsc::channel());
    let ((found_begun, has_found), (found_go_on, found_wait)) = (mpsc::channel(), mpsc::channel());
    let steps = vec![Step::Waits(begun, wait), Step::Waits(found_begun, found_wait)];
    let (readers, _, asked) = readers(1, steps, LONG);
    let mut answers: Vec<EndedAnswer> = vec![readers.complete(asked.clone())];
    has_begun.recv().expect("the reader has taken it");
    answers.extend((0..WAITING_MAX).map(|_| readers.complete(asked.clone())));
    assert_eq!(readers.complete(asked).blocking_recv().expect("an answer").map(drop), Err(Unread::Busy));
    let command = readers.look_up(asked_command());
    go_on.send(()).expect("the reader waits");
    has_found.recv().expect("the second that is read");
    assert!(answers[1..].iter_mut().all(|answer| answer.try_recv().is_err()), "none of the others was read before it");
    found_go_on.send(()).expect("the reader waits");
    assert!(command.blocking_recv().expect("an answer").is_ok());
    let mut completed = 0;
    for answer in answers {
        assert_eq!(answer.blocking_recv().expect("an answer").map(drop), Ok(()));
        completed += 1;
    }
    println!("commands before answers: {completed} answers after one command");
}

/// A user whose rows are lost: neither is the source looked at as one that is not open, nor does it fail and recover in turn.
#[test]
fn lost_rows_say_nothing_about_the_source() {
    let (asked, rows) = one_ended_order();
    let next: Arc<Mutex<VecDeque<Step>>> = Arc::default();
    let shared = Shared {
        source: Source { rows, next: next.clone() },
        opens_within: LONG,
        is_open: AtomicBool::new(false),
        has_failed: AtomicBool::new(false),
        figures: Arc::default(),
    };
    let mut cases = 0;
    // (what the source does, if it does not complete; whether it counts as open and as failed then)
    for (step, is_open, has_failed) in [
        (Some(Step::Lacks), true, false),
        (None, true, false),
        (Some(Step::Lacks), true, false),
        (Some(Step::Fails), true, true),
        (Some(Step::Lacks), true, true),
        (None, true, false),
    ] {
        next.lock().extend(step);
        let (receiver, _read) = oneshot::channel();
        let asked = Asked { what: asked.clone(), asked_at: Instant::now(), receiver };
        let figures: (&Reads, fn(&Answer) -> Outcome) = (&shared.figures.answers, |_| Outcome::Found);
        shared.serve_one(asked, &Stop::new(), Source::complete, figures);
        let found = (shared.is_open.load(Ordering::Relaxed), shared.has_failed.load(Ordering::Relaxed));
        assert_eq!(found, (is_open, has_failed), "read {cases}");
        cases += 1;
    }
    assert_eq!(shared.figures.answers.of(Outcome::Unreadable), 4);
    println!("reads of lost rows: {cases} cases");
}
