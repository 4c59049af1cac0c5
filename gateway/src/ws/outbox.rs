//! What waits to leave on one socket: bounded in frames and bytes, written by one task, several frames per write.
//!
//! A peer that does not read costs its queue and nothing more: nobody waits for it. What happens at the bound is said by
//! whoever queues (streams.md §1.6): [`Outbox::send`] never drops and ends the socket, [`Outbox::offer`] is refused,
//! [`Outbox::replace`] drops an older frame of the same tag.

use super::close::Close;
use super::frame::Frame;
use ahash::AHashMap;
use bytes::{Buf as _, Bytes};
use engine::time::Timestamp;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::AsyncWrite;

/// Bounds of what waits on one socket.
pub const QUEUE_FRAMES_MAX: usize = 1_024;
pub const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Room beyond the bounds for what is never dropped: answers and pongs to a peer whose queue is full of other things.
const SENT_FRAMES_MORE: usize = 64;
const SENT_BYTES_MORE: usize = 64 << 10;
/// What may still leave before the close frame; a peer that left more behind was not reading.
const GOODBYE_BYTES_MAX: usize = 64 << 10;
/// Frames that one write takes at most.
const FRAMES_PER_WRITE_MAX: usize = 64;

/// What a queued frame is about, where that matters: an instrument, a market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u64);

/// The queue of one socket.
#[derive(Default)]
pub struct Outbox {
    state: RefCell<State>,
    drained: RefCell<Option<Rc<dyn Fn()>>>,
    /// Server time since when the peer has taken nothing; 0 = it takes.
    stuck_since: Cell<u64>,
    /// Server time at which a peer that had taken nothing took something again; 0 = it never had to.
    took_again: Cell<u64>,
}

#[derive(Default)]
struct State {
    /// The rest of a frame that is half written: nothing may leave before it. Empty when no frame is.
    half: Bytes,
    /// Leaves before the queue: a ping behind a long queue would be answered too late. Empty when none waits.
    ping: Bytes,
    queue: VecDeque<Entry>,
    /// Number of the queue's first entry: an entry's number never changes.
    first: u64,
    /// Of all that waits.
    bytes: usize,
    /// Numbers of replaceable frames that wait.
    latest: AHashMap<Tag, u64>,
    /// An offer was refused since the queue was last empty.
    refused: bool,
    /// Nothing more is queued; the frame of the close is the last one.
    closing: Option<Close>,
    /// The close frame has left, or never will.
    finished: bool,
    writer: Option<Waker>,
    waiting_for_close: Option<Waker>,
}

struct Entry {
    tag: Option<Tag>,
    bytes: Bytes,
}

impl State {
    fn is_full(&self, more: usize) -> bool {
        self.queue.len() >= QUEUE_FRAMES_MAX || self.bytes + more > QUEUE_BYTES_MAX
    }

    fn is_beyond(&self, more: usize) -> bool {
        self.queue.len() >= QUEUE_FRAMES_MAX + SENT_FRAMES_MORE || self.bytes + more > QUEUE_BYTES_MAX + SENT_BYTES_MORE
    }

    fn push(&mut self, tag: Option<Tag>, frame: &Frame) {
        self.bytes += frame.bytes().len();
        self.queue.push_back(Entry { tag, bytes: frame.bytes().clone() });
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    /// Takes dropped frames out of the queue.
    fn compact(&mut self) {
        let (first, mut kept) = (self.first, 0);
        let places: Vec<u64> = (self.queue.iter())
            .map(|entry| {
                let place = first + kept;
                kept += u64::from(!entry.bytes.is_empty());
                place
            })
            .collect();
        self.latest.retain(|_, number| {
            let place = number.checked_sub(first).map(|old| places[old as usize]);
            place.inspect(|place| *number = *place).is_some()
        });
        self.queue.retain(|entry| !entry.bytes.is_empty());
    }

    /// Nothing waits.
    fn is_empty(&self) -> bool {
        self.half.is_empty() && self.ping.is_empty() && self.queue.is_empty()
    }

    /// Forgets what waits, but for a frame that is half written.
    fn clear(&mut self) {
        self.first += self.queue.len() as u64;
        self.queue.clear();
        self.latest.clear();
        self.ping = Bytes::new();
        self.bytes = self.half.len();
    }

    fn close(&mut self, close: Close) {
        if self.closing.is_some() {
            return;
        }
        if self.bytes > GOODBYE_BYTES_MAX {
            self.clear();
        }
        self.push(None, &Frame::close(close));
        self.closing = Some(close);
        if let Some(waiting) = self.waiting_for_close.take() {
            waiting.wake();
        }
    }
}

impl Outbox {
    /// Queues a frame that is never dropped. Somewhat beyond the bound the socket ends as a slow consumer instead.
    pub fn send(&self, frame: &Frame) {
        let mut state = self.state.borrow_mut();
        if state.closing.is_some() {
            return;
        }
        if state.is_beyond(frame.bytes().len()) {
            state.clear();
            return state.close(Close::SLOW_CONSUMER);
        }
        state.push(None, frame);
    }

    /// Sends a ping before all that is queued, behind a frame that is half written. One that still waits is enough.
    pub fn ping(&self, ping: &Frame) {
        let mut state = self.state.borrow_mut();
        if state.closing.is_some() || !state.ping.is_empty() {
            return;
        }
        state.ping = ping.bytes().clone();
        state.bytes += state.ping.len();
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
    }

    /// Queues a frame in its order. False at the bound: it was not taken, and [`Outbox::when_drained`] will be called.
    pub fn offer(&self, tag: Tag, frame: &Frame) -> bool {
        let mut state = self.state.borrow_mut();
        if state.closing.is_some() {
            return true;
        }
        if state.is_full(frame.bytes().len()) {
            state.refused = true;
            return false;
        }
        state.push(Some(tag), frame);
        true
    }

    /// Whether an offer would be taken, before a frame is made for it. If not, [`Outbox::when_drained`] will be called.
    pub fn has_room(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let full = state.closing.is_none() && state.is_full(0);
        state.refused |= full;
        !full
    }

    /// Queues the newest frame of a tag, and drops the one that waits, if one does. Should the queue be full of other
    /// things the frame is dropped; a newer one will come.
    pub fn replace(&self, tag: Tag, frame: &Frame) {
        let state = &mut *self.state.borrow_mut();
        if state.closing.is_some() {
            return;
        }
        if let Some(number) = state.latest.remove(&tag).filter(|number| *number >= state.first) {
            let entry = &mut state.queue[(number - state.first) as usize];
            state.bytes -= entry.bytes.len();
            entry.bytes = Bytes::new();
        }
        if state.is_full(frame.bytes().len()) {
            state.compact();
        }
        if !state.is_full(frame.bytes().len()) {
            state.latest.insert(tag, state.first + state.queue.len() as u64);
            state.push(None, frame);
        }
    }

    /// Drops what waits of a tag, but for a frame that is half written.
    pub fn withdraw(&self, tag: Tag) {
        let state = &mut *self.state.borrow_mut();
        let mut freed = 0;
        state.queue.retain(|entry| {
            let kept = entry.tag != Some(tag);
            freed += if kept { 0 } else { entry.bytes.len() };
            kept
        });
        state.bytes -= freed;
        // Their numbers have moved; a frame too many is sent at worst.
        state.latest.clear();
    }

    /// What to call once the queue is empty after a refused offer.
    pub fn when_drained(&self, call: impl Fn() + 'static) {
        *self.drained.borrow_mut() = Some(Rc::new(call));
    }

    /// Queues the close as the last frame, behind what is queued while that is little. The first one counts.
    pub fn close(&self, close: Close) {
        self.state.borrow_mut().close(close);
    }

    /// The same for a peer that may have nothing more of what is queued.
    pub fn cut(&self, close: Close) {
        let mut state = self.state.borrow_mut();
        if state.closing.is_none() {
            state.clear();
            state.close(close);
        }
    }

    /// Drops everything and ends at once: the peer takes nothing any more.
    pub fn abort(&self, close: Close) {
        let mut state = self.state.borrow_mut();
        state.clear();
        state.close(close);
        state.finished = true;
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
    }

    /// Why the socket ends, once that is decided.
    pub fn closing(&self) -> Option<Close> {
        self.state.borrow().closing
    }

    /// Waits until it is decided that the socket ends.
    pub async fn closed(&self) -> Close {
        std::future::poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            match state.closing {
                Some(close) => Poll::Ready(close),
                None => {
                    state.waiting_for_close = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Frames that wait, without one that is half written, with those that were replaced and not cleared away yet.
    pub fn waiting(&self) -> usize {
        self.state.borrow().queue.len()
    }

    /// Bytes that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.state.borrow().bytes
    }

    /// Since when the peer has taken nothing of what waits.
    pub fn stuck_since(&self) -> Option<Timestamp> {
        Some(Timestamp(self.stuck_since.get())).filter(|since| since.0 > 0)
    }

    /// When the peer last made room for what could not leave before: a sign of life, as no other write is, since what
    /// the system takes may wait there for a peer that is gone. The beginning of time when it never did.
    pub fn took_again(&self) -> Timestamp {
        Timestamp(self.took_again.get())
    }

    /// Writes until the close frame has left; then shuts the writing half down. `now` says server time.
    ///
    /// # Errors
    /// The peer's end of it.
    pub async fn write(&self, to: &mut (impl AsyncWrite + Unpin), now: impl Fn() -> Timestamp) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll_write(context, &mut *to, &now)).await?;
        std::future::poll_fn(|context| Pin::new(&mut *to).poll_shutdown(context)).await
    }

    fn poll_write(
        &self,
        context: &mut Context<'_>,
        to: &mut (impl AsyncWrite + Unpin),
        now: &impl Fn() -> Timestamp,
    ) -> Poll<io::Result<()>> {
        loop {
            {
                let mut state = self.state.borrow_mut();
                if state.finished || (state.is_empty() && state.closing.is_some()) {
                    state.finished = true;
                    return Poll::Ready(Ok(()));
                }
                state.skip_dropped();
                if !state.is_empty() {
                    let written = state.write(context, to);
                    if written.is_pending() {
                        if self.stuck_since.get() == 0 {
                            self.stuck_since.set(now().0.max(1));
                        }
                        // Woken by the socket, or to be aborted.
                        state.writer = Some(context.waker().clone());
                    }
                    match ready!(written)? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        count => state.advance(count),
                    }
                    if self.stuck_since.replace(0) > 0 {
                        self.took_again.set(now().0);
                    }
                    continue;
                }
                state.writer = Some(context.waker().clone());
                state.queue.shrink_to(16);
                if !std::mem::take(&mut state.refused) {
                    return Poll::Pending;
                }
            }
            // Outside the borrow: it queues.
            let drained = self.drained.borrow().clone();
            if let Some(drained) = drained {
                drained();
            }
        }
    }
}

impl State {
    /// Steps over dropped frames: a write of nothing would look like the end of the stream.
    fn skip_dropped(&mut self) {
        while self.queue.front().is_some_and(|entry| entry.bytes.is_empty()) {
            self.queue.pop_front();
            self.first += 1;
        }
    }

    fn write(&self, context: &mut Context<'_>, to: &mut (impl AsyncWrite + Unpin)) -> Poll<io::Result<usize>> {
        let mut pieces = [IoSlice::new(&[]); FRAMES_PER_WRITE_MAX];
        let mut count = 0;
        let ahead = [&self.half, &self.ping].into_iter().filter(|bytes| !bytes.is_empty());
        for (piece, bytes) in pieces.iter_mut().zip(ahead.chain(self.queue.iter().map(|entry| &entry.bytes))) {
            *piece = IoSlice::new(bytes);
            count += 1;
        }
        Pin::new(to).poll_write_vectored(context, &pieces[..count])
    }

    /// So many bytes have left.
    fn advance(&mut self, count: usize) {
        self.bytes -= count;
        let mut left = count;
        while left > 0 {
            let mut frame = if !self.half.is_empty() {
                std::mem::take(&mut self.half)
            } else if !self.ping.is_empty() {
                std::mem::take(&mut self.ping)
            } else {
                self.first += 1;
                self.queue.pop_front().expect("no more leaves than waits").bytes
            };
            if left < frame.len() {
                frame.advance(left);
                self.half = frame;
                return;
            }
            left -= frame.len();
        }
        if self.queue.is_empty() {
            self.latest.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::run;
    use tokio::io::AsyncReadExt as _;

    /// What a peer reads of a queue that closes, in the bytes of its frames.
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
    fn the_newest_of_a_tag_leaves_in_the_order_of_the_newest() {
        let outbox = Outbox::default();
        for (tag, text) in [(1, "a1"), (2, "b1"), (1, "a2"), (3, "c1"), (3, "c2"), (1, "a3")] {
            outbox.replace(Tag(tag), &frame(text));
        }
        outbox.send(&frame("sent"));
        assert_eq!(read(&outbox), bytes(&["b1", "c2", "a3", "sent"]));
        // Replaced for ever by a peer who does not read: room is found among what was dropped.
        let outbox = Outbox::default();
        let texts: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
        texts.iter().enumerate().for_each(|(number, text)| outbox.replace(Tag(number as u64 % 3), &frame(text)));
        assert!(outbox.waiting() <= QUEUE_FRAMES_MAX);
        assert_eq!(read(&outbox), bytes(&["9997", "9998", "9999"]));
        println!("replaced frames: 10006 cases");
    }

    #[test]
    fn each_kind_meets_the_bound_in_its_own_way() {
        let outbox = Outbox::default();
        let mut taken = 0;
        while outbox.offer(Tag(taken % 2), &frame("x")) {
            taken += 1;
        }
        assert_eq!(taken, QUEUE_FRAMES_MAX as u64);
        // An answer to a peer whose queue is full of other things is no reason to end it.
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

    /// Of a queue of so many frames 5 bytes have left when `then` is done to it: all that its peer reads.
    fn half_read(frames: usize, then: impl FnOnce(&Outbox)) -> Vec<u8> {
        let outbox = Rc::new(Outbox::default());
        (0..frames).for_each(|_| outbox.send(&Frame::text(&[b'x'; 1_000])));
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
    fn a_close_comes_behind_little() {
        let revoked = Close::INVALID_KEY;
        let rows: [(&str, usize, Ends, usize, Close); 6] = [
            ("a short queue", 10, |outbox| outbox.close(Close::INVALID_KEY), 10, revoked),
            ("a long queue", 1_000, |outbox| outbox.close(Close::INVALID_KEY), 1, revoked),
            ("cut off", 10, |outbox| outbox.cut(Close::INVALID_KEY), 1, revoked),
            ("cut off, long", 1_000, |outbox| outbox.cut(Close::INVALID_KEY), 1, revoked),
            ("as usual", 10, |_| {}, 10, Close::NORMAL),
            (
                "a ping before a cut",
                10,
                |outbox| (outbox.ping(&Frame::ping()), outbox.cut(Close::IDLE)).1,
                1,
                Close::IDLE,
            ),
        ];
        for (what, frames, then, left, close) in rows {
            let mut expected = Frame::text(&[b'x'; 1_000]).bytes().repeat(left);
            expected.extend_from_slice(Frame::close(close).bytes());
            assert!(half_read(frames, then) == expected, "{what}");
        }
        println!("closes behind queues: {} cases", rows.len());
    }

    #[test]
    fn a_ping_overtakes_what_is_queued() {
        let one = Frame::text(&[b'x'; 1_000]).bytes().to_vec();
        let twice = |outbox: &Outbox| (0..2).for_each(|_| outbox.ping(&Frame::ping()));
        let expected = [&one, &Frame::ping().bytes()[..], &one, &one, Frame::close(Close::NORMAL).bytes()].concat();
        assert!(half_read(3, twice) == expected, "behind what is half written, and once");
        let outbox = Outbox::default();
        outbox.replace(Tag(1), &frame("old"));
        outbox.ping(&Frame::ping());
        outbox.replace(Tag(1), &frame("new"));
        assert_eq!(read(&outbox), [&Frame::ping().bytes()[..], &bytes(&["new"])].concat());
        println!("pings before queues: 2 cases");
    }

    #[test]
    fn whoever_was_refused_is_called_when_the_queue_is_empty() {
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
}
