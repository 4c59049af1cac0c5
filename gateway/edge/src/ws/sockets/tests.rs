//! The sweep with peers that are slow, stuck or silent. The test sets the clock, and each sweep is one second.

use super::*;
use crate::http::testing::{NOW, World, run};
use crate::ws::outbox::QUEUE_BYTES_MAX;
use tokio::io::{AsyncReadExt as _, DuplexStream};

const FRAME_BYTES: usize = 1_000;

/// A socket whose peer reads only in [`Peer::second`].
struct Peer {
    world: World,
    socket: Rc<Socket>,
    stream: DuplexStream,
    read: Vec<u8>,
    at: Timestamp,
    _entered: Entered,
}

impl Peer {
    /// The system takes this many bytes for a peer that does not read.
    fn new(taken: usize) -> Peer {
        let world = World::new("", &[]);
        let socket = Rc::new(Socket::new(1, None, None, world.clock.clone()));
        let entered = world.edge.sockets.enter(&socket, ChannelKind::Market, &world.edge);
        let (mut ours, stream) = tokio::io::duplex(taken);
        let (writing, clock) = (Rc::clone(&socket), world.clock.clone());
        tokio::task::spawn_local(async move { writing.outbox().write(&mut ours, || clock.now()).await });
        Peer { world, socket, stream, read: Vec::new(), at: NOW, _entered: entered }
    }

    /// Advances by one second, in which the peer reads at most this many bytes.
    async fn second(&mut self, bytes: usize) {
        self.at = self.at.plus(SECOND);
        self.world.clock.set(self.at);
        // The reads make room, and the writer runs.
        let mut left = bytes;
        loop {
            tokio::task::yield_now().await;
            if left == 0 {
                break;
            }
            let mut piece = vec![0; left];
            let Ok(count) = tokio::time::timeout(Duration::ZERO, self.stream.read(&mut piece)).await else { break };
            let count = count.expect("the stream is sound");
            if count == 0 {
                break;
            }
            self.read.extend_from_slice(&piece[..count]);
            left -= count;
        }
        self.world.edge.sockets.check(&self.world.edge.app, self.at, self.at);
        tokio::task::yield_now().await;
    }

    fn send(&self, frames: usize) {
        (0..frames).for_each(|_| self.socket.send(&Frame::text(&[b'x'; FRAME_BYTES])));
    }

    fn closing(&self) -> Option<Close> {
        self.socket.outbox().closing()
    }

    /// Pings among the complete frames that were read.
    fn pings(&self) -> usize {
        let (mut bytes, mut pings) = (&self.read[..], 0);
        let (text, ping) = (Frame::text(&[b'x'; FRAME_BYTES]), Frame::ping());
        loop {
            bytes = if let Some(rest) = bytes.strip_prefix(&text.bytes()[..]) {
                rest
            } else if let Some(rest) = bytes.strip_prefix(&ping.bytes()[..]) {
                pings += 1;
                rest
            } else {
                assert!(text.bytes().starts_with(bytes), "a whole frame, or the beginning of one");
                return pings;
            };
        }
    }
}

#[test]
fn a_slow_peer_is_pinged_and_stays_open_until_it_is_stuck() {
    run(async {
        let mut peer = Peer::new(512);
        peer.send(1_000);
        for second in 1..=300 {
            peer.second(600).await;
            assert_eq!(peer.closing(), None, "second {second}");
        }
        assert_eq!(peer.pings(), 14, "one each 20 s, but for the last that has just left");
        assert!(peer.socket.outbox().waiting() > 500, "it was slow all the time");
        // From now on the peer takes nothing.
        for second in 1..15 {
            peer.second(0).await;
            assert_eq!(peer.closing(), None, "second {second} without a byte");
        }
        peer.second(0).await;
        assert_eq!(peer.closing(), Some(Close::SLOW_CONSUMER));
        println!("slow peers: 316 cases");
    });
}

/// Bytes that the system takes say nothing about the peer.
#[test]
fn a_silent_peer_is_closed() {
    run(async {
        for sends in [0, 1] {
            let mut peer = Peer::new(QUEUE_BYTES_MAX);
            for second in 1..60 {
                peer.send(sends);
                peer.second(0).await;
                assert_eq!(peer.closing(), None, "second {second}");
            }
            peer.second(0).await;
            assert_eq!(peer.closing(), Some(Close::IDLE));
        }
        println!("silent peers: 2 cases");
    });
}

#[test]
fn a_close_does_not_wait_for_a_long_queue() {
    run(async {
        let mut peer = Peer::new(512);
        peer.send(1_000);
        peer.second(0).await;
        peer.world.edge.sockets.end();
        peer.second(1 << 20).await;
        let whole = Frame::text(&[b'x'; FRAME_BYTES]);
        assert!(peer.read == [&whole.bytes()[..], Frame::close(Close::GOING_AWAY).bytes()].concat());
        println!("last words behind a queue: 1 case");
    });
}

#[test]
fn queued_frames_and_bytes_are_counted() {
    run(async {
        let mut peer = Peer::new(512);
        peer.send(1_000);
        let mut cases = 0;
        for (bytes, is_empty) in [(0, false), (600_000, false), (1 << 20, true), (0, true)] {
            peer.second(bytes).await;
            let outbox = peer.socket.outbox();
            let expected = Queued { frames: outbox.waiting() as u64, bytes: outbox.waiting_bytes() as u64 };
            // Reads after the sweep made room that the next sweep sees.
            peer.world.edge.sockets.check(&peer.world.edge.app, peer.at, peer.at);
            assert_eq!(peer.world.edge.app.streams.seats.queued(), expected, "{bytes}");
            assert_eq!(expected == Queued::default(), is_empty, "{bytes}: {expected:?}");
            cases += 1;
        }
        // A second thread adds its own sockets to the figures and removes them again.
        let seats = &peer.world.edge.app.streams.seats;
        for (before, now, expected) in
            [((0, 0), (5, 500), (5, 500)), ((5, 500), (2, 20), (2, 20)), ((2, 20), (0, 0), (0, 0))]
        {
            let queued = |(frames, bytes)| Queued { frames, bytes };
            seats.queues(queued(before), queued(now));
            assert_eq!(seats.queued(), queued(expected));
            cases += 1;
        }
        println!("queues counted: {cases} cases");
    });
}
