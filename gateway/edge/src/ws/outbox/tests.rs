//! What a queue sends, and what happens at its bounds.

use super::*;
use crate::http::testing::run;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use tokio::io::AsyncReadExt as _;

/// The bytes that a peer reads from a queue that closes.
fn read(outbox: &Outbox) -> Vec<u8> {
    outbox.close(Close::NORMAL);
    run(async {
        let (mut to, mut from) = tokio::io::duplex(64);
        let mut read = Vec::new();
        let writing = async {
            outbox.write(&mut to, || Timestamp(1)).await.expect("the peer reads");
            drop(to);
        };
        let (_, count) = tokio::join!(writing, from.read_to_end(&mut read));
        count.expect("a whole stream");
        read
    })
}

fn frame(text: &str) -> Frame {
    Frame::text(text.as_bytes())
}

fn bytes(texts: &[&str]) -> Vec<u8> {
    let mut out = texts.iter().flat_map(|text| frame(text).bytes().to_vec()).collect::<Vec<u8>>();
    out.extend_from_slice(Frame::close(Close::NORMAL).bytes());
    out
}

#[test]
fn replaced_frames_leave_in_the_order_of_the_newest() {
    let outbox = Outbox::default();
    for (tag, text) in [(1, "a1"), (2, "b1"), (1, "a2"), (3, "c1"), (3, "c2"), (1, "a3")] {
        outbox.replace(Tag(tag), &frame(text));
    }
    outbox.send(&frame("sent"));
    assert_eq!(read(&outbox), bytes(&["b1", "c2", "a3", "sent"]));
    // Replaced any number of times while the peer does not read: dropped frames are removed to make room.
    let outbox = Outbox::default();
    let texts: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    texts.iter().enumerate().for_each(|(number, text)| outbox.replace(Tag(number as u64 % 3), &frame(text)));
    assert!(outbox.waiting() <= QUEUE_FRAMES_MAX);
    assert_eq!(read(&outbox), bytes(&["9997", "9998", "9999"]));
    println!("replaced frames: 10006 cases");
}

#[test]
fn each_kind_of_frame_has_its_own_behaviour_at_the_bound() {
    let outbox = Outbox::default();
    let mut taken = 0;
    while outbox.offer(Tag(taken % 2), &frame("x")) {
        taken += 1;
    }
    assert_eq!(taken, QUEUE_FRAMES_MAX as u64);
    // A response to a peer with a full queue does not end the socket.
    (0..SENT_FRAMES_MORE).for_each(|_| outbox.send(&frame("answer")));
    assert_eq!(outbox.closing(), None);
    outbox.withdraw(Tag(0));
    assert_eq!(outbox.waiting(), QUEUE_FRAMES_MAX / 2 + SENT_FRAMES_MORE);
    while outbox.offer(Tag(1), &frame("x")) {}
    (0..=SENT_FRAMES_MORE).for_each(|_| outbox.send(&frame("answer")));
    assert_eq!(outbox.closing(), Some(Close::SLOW_CONSUMER));
    assert_eq!(read(&outbox), Frame::close(Close::SLOW_CONSUMER).bytes()[..]);
    println!("full queues: 4 cases");
}

/// A queue of this many frames, some of them in one piece, of which 5 bytes are sent when `then` is called. Returns all
/// that the peer reads.
fn half_read(frames: usize, in_piece: usize, then: impl FnOnce(&Outbox)) -> Vec<u8> {
    let outbox = Rc::new(Outbox::default());
    for piece in vec![Frame::text(&[b'x'; 1_000]); frames].chunks(in_piece) {
        assert_eq!(outbox.place(Tag(7), &Frames::join(piece)), Placed::Waits, "the writing task has yet to begin");
    }
    run(async {
        let (mut to, mut from) = tokio::io::duplex(5);
        let queue = Rc::clone(&outbox);
        let writing = tokio::task::spawn_local(async move { queue.write(&mut to, || Timestamp(1)).await });
        tokio::task::yield_now().await;
        assert_eq!(outbox.waiting(), frames - 1);
        then(&outbox);
        outbox.close(Close::NORMAL);
        let mut read = Vec::new();
        from.read_to_end(&mut read).await.expect("a whole stream");
        writing.await.expect("it runs").expect("the peer reads");
        read
    })
}

type Ends = fn(&Outbox);

#[test]
fn a_close_follows_few_queued_bytes() {
    let revoked = Close::INVALID_KEY;
    let rows: [(&str, usize, Ends, usize, Close); 7] = [
        ("a short queue", 10, |outbox| outbox.close(Close::INVALID_KEY), 10, revoked),
        ("a long queue", 1_000, |outbox| outbox.close(Close::INVALID_KEY), 1, revoked),
        ("cut off", 10, |outbox| outbox.cut(Close::INVALID_KEY), 1, revoked),
        ("cut off, long", 1_000, |outbox| outbox.cut(Close::INVALID_KEY), 1, revoked),
        ("as usual", 10, |_| {}, 10, Close::NORMAL),
        ("withdrawn", 10, |outbox| outbox.withdraw(Tag(7)), 1, Close::NORMAL),
        ("a ping before a cut", 10, |outbox| (outbox.ping(&Frame::ping()), outbox.cut(Close::IDLE)).1, 1, Close::IDLE),
    ];
    for (in_piece, (what, frames, then, left, close)) in
        [1, 4, 64].into_iter().flat_map(|size| rows.map(|row| (size, row)))
    {
        let mut expected = Frame::text(&[b'x'; 1_000]).bytes().repeat(left);
        expected.extend_from_slice(Frame::close(close).bytes());
        assert!(half_read(frames, in_piece, then) == expected, "{what}, by {in_piece}");
    }
    println!("closes after queues: {} cases", 3 * rows.len());
}

#[test]
fn a_ping_overtakes_what_is_queued() {
    let one = Frame::text(&[b'x'; 1_000]).bytes().to_vec();
    let twice = |outbox: &Outbox| (0..2).for_each(|_| outbox.ping(&Frame::ping()));
    let expected = [&one, &Frame::ping().bytes()[..], &one, &one, Frame::close(Close::NORMAL).bytes()].concat();
    for in_piece in [1, 3] {
        assert!(half_read(3, in_piece, twice) == expected, "after the partly written frame, and once");
    }
    let outbox = Outbox::default();
    outbox.replace(Tag(1), &frame("old"));
    outbox.ping(&Frame::ping());
    outbox.replace(Tag(1), &frame("new"));
    assert_eq!(read(&outbox), [&Frame::ping().bytes()[..], &bytes(&["new"])].concat());
    println!("pings before queues: 3 cases");
}

#[test]
fn a_refused_producer_is_called_when_the_queue_is_empty() {
    let outbox = Rc::new(Outbox::default());
    let (called, again) = (Rc::new(Cell::new(0)), Rc::clone(&outbox));
    let count = Rc::clone(&called);
    outbox.when_drained(move || {
        count.set(count.get() + 1);
        assert!(again.offer(Tag(1), &frame("fresh")) || again.closing().is_some());
        again.close(Close::NORMAL);
    });
    while outbox.offer(Tag(1), &frame("old")) {}
    outbox.withdraw(Tag(1));
    let read = run(async {
        let (mut to, mut from) = tokio::io::duplex(1 << 20);
        outbox.write(&mut to, || Timestamp(1)).await.expect("room for all");
        drop(to);
        let mut read = Vec::new();
        from.read_to_end(&mut read).await.expect("a whole stream");
        read
    });
    assert_eq!((called.get(), read), (1, bytes(&["fresh"])));
    println!("drained queues: 1 case");
}

/// A writing task that sleeps for the first time. Its wake-ups are counted.
struct Resting {
    outbox: Outbox,
    woken: Arc<AtomicUsize>,
}

struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Resting {
    fn new() -> Resting {
        let resting = Resting { outbox: Outbox::default(), woken: Arc::default() };
        assert!(resting.poll(&mut Peer(0)).is_pending());
        resting
    }

    /// Polls the writing task once.
    fn poll(&self, to: &mut Peer) -> Poll<io::Result<()>> {
        let waker = Arc::new(Count(self.woken.clone())).into();
        self.outbox.poll_write(&mut Context::from_waker(&waker), to, &|| Timestamp(1))
    }

    fn place(&self, texts: &[&str]) -> Placed {
        let frames: Vec<Frame> = texts.iter().map(|text| frame(text)).collect();
        self.outbox.place(Tag(1), &Frames::join(&frames))
    }

    /// Flushes to a peer that takes this many bytes. Returns the bytes that it took.
    fn flush(&self, mut takes: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        self.outbox.flush(|pieces| {
            let offered = pieces.iter().flat_map(|piece| piece.iter().copied());
            let some: Vec<u8> = offered.take(takes).collect();
            takes -= some.len();
            taken.extend_from_slice(&some);
            if some.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(some.len()) }
        });
        taken
    }

    fn woken(&self) -> usize {
        self.woken.swap(0, Ordering::Relaxed)
    }
}

/// Takes this many more bytes and is full then.
struct Peer(usize);

impl AsyncWrite for Peer {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match bytes.len().min(self.0) {
            0 => Poll::Pending,
            count => {
                self.0 -= count;
                Poll::Ready(Ok(count))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn plain(texts: &[&str]) -> Vec<u8> {
    texts.iter().flat_map(|text| frame(text).bytes().to_vec()).collect()
}

#[test]
fn placed_frames_are_flushed_once_and_wake_no_task() {
    let resting = Resting::new();
    assert_eq!(resting.place(&["a", "b"]), Placed::ToFlush);
    assert_eq!(resting.place(&["c"]), Placed::Waits, "one flush is owed");
    assert!(resting.outbox.offer(Tag(2), &frame("d")));
    assert_eq!((resting.outbox.waiting(), resting.woken()), (4, 0));
    assert_eq!(resting.flush(1_000), plain(&["a", "b", "c", "d"]));
    assert_eq!((resting.outbox.waiting(), resting.outbox.waiting_bytes(), resting.woken()), (0, 0, 0));
    assert_eq!(resting.place(&["e"]), Placed::ToFlush, "the next one is owed again");
    resting.outbox.send(&frame("answer"));
    assert_eq!(resting.woken(), 1, "a response does not wait for a flush");
    let mut peer = Peer(1_000);
    assert!(resting.poll(&mut peer).is_pending());
    assert_eq!(1_000 - peer.0, plain(&["e", "answer"]).len());
    assert_eq!((resting.flush(1_000), resting.woken()), (vec![], 0), "nothing is left");
    assert!(resting.outbox.offer(Tag(1), &frame("f")));
    assert_eq!(resting.woken(), 1, "an offer wakes the task itself");
    println!("flushed queues: 5 cases");
}

#[test]
fn the_writing_task_sends_what_the_peer_does_not_take_immediately() {
    let texts = ["first", "second", "third"];
    let all = plain(&texts);
    for takes in 0..all.len() {
        let resting = Resting::new();
        assert_eq!(resting.place(&texts), Placed::ToFlush);
        assert_eq!(resting.flush(takes), all[..takes]);
        assert_eq!((resting.outbox.waiting_bytes(), resting.woken()), (all.len() - takes, 1));
        // The peer is full. There is no further attempt before it has room.
        assert!(resting.poll(&mut Peer(0)).is_pending() && resting.outbox.stuck_since().is_some());
        assert_eq!(resting.place(&["more"]), Placed::Waits);
        assert_eq!((resting.flush(1_000), resting.woken()), (vec![], 1));
        let mut peer = Peer(1_000);
        assert!(resting.poll(&mut peer).is_pending());
        assert_eq!(1_000 - peer.0, all.len() - takes + plain(&["more"]).len());
        assert_eq!((resting.place(&["again"]), resting.flush(1_000)), (Placed::ToFlush, plain(&["again"])));
    }
    println!("partial flushes: {} cases", all.len());
}

#[test]
fn a_flush_leaves_calls_and_closes_to_the_writing_task() {
    // The task calls the function of `when_drained`.
    let resting = Resting::new();
    while resting.place(&["x", "y", "z"]) != Placed::Refused {}
    assert_eq!(resting.outbox.waiting(), QUEUE_FRAMES_MAX / 3 * 3);
    let called = Rc::new(Cell::new(0));
    let count = Rc::clone(&called);
    resting.outbox.when_drained(move || count.set(count.get() + 1));
    assert_eq!(resting.flush(1 << 20).len(), plain(&["x", "y", "z"]).len() * (QUEUE_FRAMES_MAX / 3));
    assert_eq!((resting.woken(), called.get()), (1, 0));
    assert!(resting.poll(&mut Peer(0)).is_pending());
    assert_eq!(called.get(), 1);
    // The task also ends the stream.
    let resting = Resting::new();
    assert_eq!(resting.place(&["last"]), Placed::ToFlush);
    resting.outbox.close(Close::NORMAL);
    assert_eq!(resting.woken(), 1);
    assert_eq!(resting.flush(1_000), b"");
    assert_eq!(resting.place(&["behind"]), Placed::Waits);
    let mut peer = Peer(1_000);
    assert!(resting.poll(&mut peer).is_ready());
    assert_eq!(1_000 - peer.0, bytes(&["last"]).len());
    println!("flushes that are none: 2 cases");
}
