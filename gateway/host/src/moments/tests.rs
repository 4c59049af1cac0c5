use super::*;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

const T0: Timestamp = Timestamp(1_790_000_000_000_000);
const SECOND: u64 = engine::time::SECOND;

/// A run with a feed of the test, and a thread in place of the one that owns the sockets: it sleeps.
struct Run {
    moments: Arc<Moments>,
    end: mpsc::Sender<()>,
    sockets: Option<JoinHandle<()>>,
}

impl Run {
    fn new(gate: &str) -> Run {
        let clock = Clock::of_recording();
        clock.set(T0);
        let moments = Moments::new(clock, gate.parse().expect("a gate"));
        let (end, ends) = mpsc::channel();
        let (serve, serves) = mpsc::channel();
        let of_thread = Arc::clone(&moments);
        let sockets = std::thread::spawn(move || {
            of_thread.serve_here().expect("a thread has a file");
            of_thread.parks(true);
            serve.send(()).expect("it is awaited");
            let _ = ends.recv();
        });
        serves.recv().expect("it serves");
        Run { moments, end, sockets: Some(sockets) }
    }

    /// The time to which the feed moves within a few calls, if the next thing in the recording is this much later.
    fn moves(&self, later: Option<u64>) -> Option<u64> {
        let now = self.moments.clock.now();
        let following = later.map(|later| Following { at: now.plus(later), what: "event" });
        let at = (0..3).find_map(|_| self.moments.next(following))?;
        self.moments.clock.set(at);
        self.moments.add(Passed { events: 1, ..Passed::default() });
        // Hands out the moment: operations may begin again.
        Some(at.since(now))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.end.send(());
        let _ = self.sockets.take().map(JoinHandle::join);
    }
}

fn is_ready(turn: &mut Turn) -> Option<bool> {
    match Pin::new(turn).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(goes_on) => Some(goes_on),
        Poll::Pending => None,
    }
}

/// A connection and its peer.
fn connected(moments: &Arc<Moments>) -> (Line, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (socket, _) = listener.accept().expect("a peer");
    let line = Line::new(moments, socket.as_fd().try_clone_to_owned().expect("a descriptor"));
    (line, socket, peer)
}

#[test]
fn a_stepped_clock_moves_by_steps_alone() {
    let run = Run::new("stepped");
    assert_eq!(run.moves(Some(1)), None, "no step");
    let mut made = run.moments.step(StepBy::Micros(5)).expect("it is stepped");
    assert_eq!(run.moments.step(StepBy::Micros(5)).err(), Some(StepRefused::Runs), "one at a time");
    // Two in the recording, and the end of the step between two of them.
    assert_eq!([run.moves(Some(2)), run.moves(Some(2)), run.moves(Some(2))], [Some(2), Some(2), Some(1)]);
    assert_eq!(run.moves(Some(1)), None, "it is made");
    let stepped = made.try_recv().expect("the result");
    assert_eq!((stepped.from, stepped.to, stepped.passed.events, stepped.is_end), (T0, T0.plus(5), 3, false));
    assert_eq!(run.moments.step(StepBy::Until(T0.plus(4))).err(), Some(StepRefused::Backwards));
    let mut made = run.moments.step(StepBy::Events(2)).expect("it is stepped");
    assert_eq!([run.moves(Some(7)), run.moves(None)], [Some(7), None]);
    let stepped = made.try_recv().expect("the result");
    assert_eq!((stepped.passed.events, stepped.is_end), (1, true), "the recording has ended");
    println!("steps: 6 cases");
}

#[test]
fn a_round_moves_the_clock_before_its_operation_is_looked_at() {
    let run = Run::new("round:get_book:1s");
    let begin = |operation| {
        let held = run.moments.hold();
        (run.moments.begin(Some(operation)), held)
    };
    assert_eq!(run.moves(Some(SECOND)), None);
    let (mut other, held) = begin("place_order");
    assert_eq!(is_ready(&mut other), Some(true));
    assert_eq!(run.moves(Some(SECOND)), None);
    let (mut first, held_first) = begin("get_book");
    let (mut second, held_second) = begin("get_book");
    assert_eq!((is_ready(&mut first), run.moves(Some(10))), (None, None), "another operation is open");
    drop((other, held));
    assert_eq!([run.moves(Some(400_000)), run.moves(Some(SECOND))], [Some(400_000), Some(600_000)]);
    assert_eq!((run.moves(Some(1)), is_ready(&mut first), is_ready(&mut second)), (None, Some(true), None));
    // The second one has a round of its own, when the first one is answered.
    drop((first, held_first));
    assert_eq!(run.moves(Some(2 * SECOND)), Some(SECOND));
    assert_eq!((run.moves(Some(1)), is_ready(&mut second)), (None, Some(true)));
    drop((second, held_second));
    // A client that leaves takes its round with it.
    let (mut gone, held_gone) = begin("get_book");
    assert_eq!((is_ready(&mut gone), run.moves(Some(5))), (None, Some(5)));
    drop((gone, held_gone));
    assert_eq!(run.moves(Some(5)), None);
    // At the end of the recording the operation is looked at, and the one after it ends the run.
    let (mut last, held_last) = begin("get_book");
    assert_eq!((run.moves(Some(5)), run.moves(None), is_ready(&mut last)), (Some(5), None, Some(true)));
    drop((last, held_last));
    assert!(!run.moments.is_over_within(Duration::ZERO));
    let (mut after, _held) = begin("get_book");
    assert_eq!((run.moves(None), is_ready(&mut after)), (None, Some(false)));
    assert!(run.moments.is_over_within(Duration::ZERO));
    assert_eq!(is_ready(&mut begin("place_order").0), Some(false));
    let Figures { operations, late, .. } = run.moments.figures();
    assert_eq!((operations, late), (7, 0));
    println!("rounds: 12 cases");
}

#[test]
fn a_quiet_clock_waits_after_it_has_sent_something() {
    let run = Run::new("quiet:0.1");
    assert_eq!(run.moves(Some(1)), None, "no bot has come");
    let (line, _socket, _peer) = connected(&run.moments);
    let context = Context::from_waker(Waker::noop());
    assert!(line.enter(&context));
    assert_eq!(is_ready(&mut run.moments.begin(None)), Some(true));
    assert_eq!(run.moves(Some(1)), None, "it is open");
    line.has_sent(false);
    line.leave();
    assert_eq!([run.moves(Some(1)), run.moves(Some(1))], [Some(1), Some(1)]);
    // This process runs all the time, as a bot that calculates does.
    run.moments.watch(std::process::id());
    assert_eq!(run.moves(Some(1)), Some(1), "nothing was sent");
    line.has_sent(false);
    assert_eq!(run.moves(Some(1)), None);
    assert_eq!(run.moments.figures().late, 0);
    println!("silences: 6 cases");
}

#[test]
fn bytes_in_a_socket_keep_the_clock() {
    let run = Run::new("stepped");
    let (line, mut socket, mut peer) = connected(&run.moments);
    let _made = run.moments.step(StepBy::Events(100)).expect("it is stepped");
    assert_eq!(run.moves(Some(1)), Some(1));
    peer.write_all(b"GET ").expect("it is open");
    assert_eq!(run.moves(Some(1)), None, "unread bytes");
    let context = Context::from_waker(Waker::noop());
    assert!(line.enter(&context));
    socket.read_exact(&mut [0; 4]).expect("they are there");
    assert_eq!(run.moves(Some(1)), None, "an operation that is not answered");
    line.leave();
    assert_eq!(run.moves(Some(1)), Some(1));
    // No operation begins while the feed works, and the task is woken afterwards.
    assert!(!line.enter(&context));
    assert_eq!(run.moves(Some(1)), Some(1));
    // The thread that owns the sockets has something to do.
    run.moments.parks(false);
    assert_eq!(run.moves(Some(1)), None);
    run.moments.parks(true);
    // A connection that ends closes its operation.
    assert!(line.enter(&context));
    assert_eq!(run.moves(Some(1)), None);
    drop(line);
    assert_eq!(run.moves(Some(1)), Some(1));
    println!("bytes in sockets: 9 cases");
}

#[test]
fn late_operations_are_counted() {
    let run = Run::new("stepped");
    let (line, _socket, _peer) = connected(&run.moments);
    let late = || {
        drop(run.moments.begin(None));
        run.moments.figures().late
    };
    assert_eq!(late(), 0, "nothing was sent");
    line.has_sent(true);
    assert_eq!(late(), 0, "the same moment");
    let mut made = run.moments.step(StepBy::Events(2)).expect("it is stepped");
    assert_eq!(run.moves(Some(1)), Some(1));
    assert_eq!(late(), 1, "planted: the frame was of the moment before");
    assert_eq!((run.moves(Some(1)), run.moves(Some(1))), (Some(1), None));
    made.try_recv().expect("it is made");
    assert_eq!(late(), 1, "the step was answered at this moment");
    println!("late operations: 4 cases");
}
