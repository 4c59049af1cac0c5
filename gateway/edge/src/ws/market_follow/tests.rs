//! Frames of a socket when news are lost in the outlet, or when its queue is full.

use super::*;
use crate::api::testing::Town;
use crate::http::testing::run;
use crate::ws::publish::BookNews;
use engine::amount::{Price, Qty};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use venue::feed::publish::Publisher;
use venue::{BookSide, FeedUpdate};

const TOKEN: &str = "81140002";
const AT: Timestamp = Timestamp(1_790_932_446_000_000);

/// One socket that follows the first token of the town's market.
struct Subscribed {
    town: Town,
    publisher: Publisher<BookNews>,
    follower: Rc<Follower>,
}

impl Subscribed {
    fn new() -> Subscribed {
        let town = Town::new();
        let app = &town.edge.app;
        let publisher =
            Publisher::new(BookNews::new(app.streams.news.clone(), town.catalog.clone()), town.catalog.clone());
        let socket = Rc::new(Socket::new(1, None, None, app.reads.clock.clone()));
        let follower = Follower::new(socket, Rc::clone(&town.edge.hub));
        let first = town.market.instrument(Outcome::First);
        follower.follow(first);
        follower.dump(&[first]);
        Subscribed { town, publisher, follower }
    }

    /// Sets the size of the level at 0.40.
    fn set_size(&self, size: u64) {
        let levels = vec![(BookSide::Bid, Price(4_000), Qty::from_shares(size))];
        let mut writer = self.town.writer.borrow_mut();
        writer.frame(0, AT, |books| books.delta(self.town.market.instrument(Outcome::First), &levels, AT));
        let update = FeedUpdate::BookDelta { token: TOKEN.into(), levels: levels.into(), venue_ts: AT };
        self.publisher.frame(&[update], writer.books(), AT, |_| false);
    }

    /// Lets the hub deliver all news.
    async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets the peer read until it has seen that size. Returns every frame.
    async fn read_to(&self, size: &str) -> Vec<Value> {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 16);
        let socket = Rc::clone(&self.follower.socket);
        let writing = tokio::task::spawn_local(async move {
            let _ = socket.outbox().write(&mut ours, || AT).await;
        });
        let (mut bytes, mut frames) = (Vec::new(), Vec::new());
        loop {
            while let Some((text, rest)) = frame(&bytes) {
                let (value, rest) = (serde_json::from_slice(text).expect("JSON"), rest.to_vec());
                frames.push(value);
                bytes = rest;
            }
            if frames.last().is_some_and(|last| shows(last, size)) {
                writing.abort();
                return frames;
            }
            assert!(theirs.read_buf(&mut bytes).await.expect("open") > 0, "the stream ended");
        }
    }
}

/// The text of the first complete frame, and the bytes after it.
fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, length) = match *bytes.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().expect("two bytes")))),
        short => (2, usize::from(short)),
    };
    Some((bytes.get(head..head + length)?, &bytes[head + length..]))
}

/// Whether a frame has that size for the level at 0.40.
fn shows(frame: &Value, size: &str) -> bool {
    let level = json!({"price": "0.40", "size": size});
    frame["bids"].as_array().is_some_and(|bids| bids.contains(&level)) || frame["price_changes"][0]["size"] == size
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    let kind = |frame: &'_ Value| if frame.is_array() { "first" } else { "" };
    frames.iter().map(|frame| frame["event_type"].as_str().unwrap_or(kind(frame))).collect()
}

#[test]
fn full_books_replace_lost_news() {
    run(async {
        let subscribed = Subscribed::new();
        // Nothing is delivered in the meantime: more changes than the outlet holds.
        (1..=9_000).for_each(|size| subscribed.set_size(size));
        subscribed.settle().await;
        let frames = subscribed.read_to("9000").await;
        assert_eq!(kinds(&frames), ["first", "book"]);
        // Every later change follows.
        subscribed.set_size(9_001);
        subscribed.set_size(9_002);
        subscribed.settle().await;
        assert_eq!(kinds(&subscribed.read_to("9002").await), ["price_change", "price_change"]);
    });
}

#[test]
fn a_full_book_replaces_the_changes_of_a_full_queue() {
    run(async {
        let subscribed = Subscribed::new();
        for size in 1..=3_000 {
            subscribed.set_size(size);
            if size % 500 == 0 {
                subscribed.settle().await;
            }
        }
        let frames = subscribed.read_to("3000").await;
        // The queued changes are dropped, like those without room.
        assert_eq!(kinds(&frames), ["first", "book"]);
        subscribed.set_size(3_001);
        subscribed.settle().await;
        assert_eq!(kinds(&subscribed.read_to("3001").await), ["price_change"]);
    });
}

#[test]
fn changes_in_the_copy_are_not_sent_again() {
    run(async {
        let subscribed = Subscribed::new();
        subscribed.set_size(1);
        subscribed.set_size(2);
        // The copy is made before the changes are delivered.
        subscribed.follower.dump(&[subscribed.town.market.instrument(Outcome::First)]);
        subscribed.set_size(3);
        subscribed.settle().await;
        assert_eq!(kinds(&subscribed.read_to("3").await), ["first", "first", "price_change"]);
    });
}

/// A peer that reads gets every change, with any number of peers and changes: no queue fills up because other sockets
/// are written first.
#[test]
fn readers_do_not_fall_behind_a_backlog() {
    const CHANGES: u64 = 3_000;
    let mut cases = 0;
    for crowd in [1, 10, 150] {
        run(async {
            let subscribed = Subscribed::new();
            let edge = &subscribed.town.edge;
            let first = subscribed.town.market.instrument(Outcome::First);
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
            let mut peers = Vec::new();
            let mut listening = Vec::new();
            for number in 0..crowd {
                let peer =
                    tokio::net::TcpStream::connect(listener.local_addr().expect("bound")).await.expect("it listens");
                let (stream, _) = listener.accept().await.expect("just connected");
                let socket = Rc::new(Socket::new(10 + number, None, None, edge.app.reads.clock.clone()));
                let write = stream.into_split().1;
                tokio::task::spawn_local(Rc::clone(&socket).write_to(write, Rc::clone(&edge.write_batch)));
                let follower = Follower::new(socket, Rc::clone(&edge.hub));
                follower.follow(first);
                follower.dump(&[first]);
                listening.push(follower);
                peers.push(tokio::task::spawn_local(read_changes(peer, CHANGES)));
            }
            (1..=CHANGES).for_each(|size| subscribed.set_size(size));
            for peer in peers {
                let sizes = peer.await.expect("it reads to the end");
                assert!(sizes.into_iter().eq(1..=CHANGES), "each change, in order, to {crowd} sockets");
                cases += 1;
            }
        });
    }
    println!("readers of a backlog: {cases} cases");
}

/// The sizes of the level at 0.40 that a peer receives, until there are `count` of them or another `book` arrives.
async fn read_changes(mut peer: tokio::net::TcpStream, count: u64) -> Vec<u64> {
    let (mut bytes, mut sizes) = (Vec::new(), Vec::new());
    while (sizes.len() as u64) < count {
        assert!(peer.read_buf(&mut bytes).await.expect("open") > 0, "it ended");
        let mut rest = &bytes[..];
        while let Some((text, behind)) = frame(rest) {
            let value: Value = serde_json::from_slice(text).expect("JSON");
            match value["price_changes"][0]["size"].as_str() {
                Some(size) => sizes.push(size.parse().expect("whole shares")),
                None if sizes.is_empty() => {}
                None => return sizes,
            }
            rest = behind;
        }
        bytes = rest.to_vec();
    }
    sizes
}

/// Sockets with different subscriptions, of which one begins in the middle.
struct Crowd {
    subscribed: Subscribed,
    others: Vec<Rc<Follower>>,
    /// Whether the hub delivers each change before the next one.
    one_at_a_time: bool,
}

const SECOND_TOKEN: &str = "55200077";

impl Crowd {
    fn join(&mut self, outcomes: &[Outcome], is_custom: bool, is_shown_books: bool) {
        let town = &self.subscribed.town;
        let socket = Rc::new(Socket::new(2, None, None, town.edge.app.reads.clock.clone()));
        let follower = Follower::new(socket, Rc::clone(&town.edge.hub));
        if is_custom {
            follower.enable_custom_events();
        }
        let instruments: Vec<_> = outcomes.iter().map(|outcome| town.market.instrument(*outcome)).collect();
        instruments.iter().for_each(|instrument| follower.follow(*instrument));
        if is_shown_books {
            follower.dump(&instruments);
        }
        self.others.push(follower);
    }

    async fn set_level(&self, outcome: Outcome, side: BookSide, price: u16, shares: u64) {
        let Subscribed { town, publisher, .. } = &self.subscribed;
        let levels = vec![(side, Price(price), Qty::from_shares(shares))];
        let token = [TOKEN, SECOND_TOKEN][outcome as usize].into();
        let update = FeedUpdate::BookDelta { token, levels: levels.clone().into(), venue_ts: AT };
        {
            let mut writer = town.writer.borrow_mut();
            writer.frame(0, AT, |books| books.delta(town.market.instrument(outcome), &levels, AT));
            publisher.frame(&[update], writer.books(), AT, |_| false);
        }
        self.handed_out().await;
    }

    async fn trade(&self, shares: u64) {
        let Subscribed { town, publisher, .. } = &self.subscribed;
        let size = Qty::from_shares(shares);
        let trade = FeedUpdate::LastTrade {
            token: TOKEN.into(),
            price: Price(4_200),
            size,
            taker_buys: true,
            venue_ts: AT,
            id: None,
            fee_rate_bps: None,
        };
        publisher.frame(&[trade], town.writer.borrow().books(), AT, |_| false);
        self.handed_out().await;
    }

    async fn show_second(&self) {
        let Subscribed { town, publisher, .. } = &self.subscribed;
        let (bids, asks) = (vec![(Price(5_600), Qty(1))], vec![(Price(5_900), Qty(1))]);
        {
            let mut writer = town.writer.borrow_mut();
            let second = town.market.instrument(Outcome::Second);
            writer.frame(0, AT, |books| books.snapshot(second, &bids, &asks, AT, None));
            let update = FeedUpdate::BookSnapshot { token: SECOND_TOKEN.into(), bids, asks, venue_ts: AT, hash: None };
            publisher.frame(&[update], writer.books(), AT, |_| false);
        }
        self.handed_out().await;
    }

    async fn handed_out(&self) {
        if self.one_at_a_time {
            self.subscribed.settle().await;
        }
    }
}

/// The bytes sent to each of several sockets.
fn sent_to_sockets(one_at_a_time: bool) -> Vec<Vec<u8>> {
    use Outcome::{First, Second};
    run(async {
        let mut crowd = Crowd { subscribed: Subscribed::new(), others: Vec::new(), one_at_a_time };
        // Two of each kind, so that shared frames are sent.
        for _ in 0..2 {
            crowd.join(&[First], false, true);
            crowd.join(&[First, Second], false, true);
            crowd.join(&[Second], true, true);
            crowd.join(&[First, Second], true, false);
        }
        crowd.set_level(First, BookSide::Bid, 4_000, 7).await;
        crowd.set_level(First, BookSide::Ask, 4_200, 0).await;
        crowd.trade(3).await;
        crowd.show_second().await;
        crowd.set_level(Second, BookSide::Bid, 5_700, 2).await;
        // These sockets have other best prices than the earlier ones, and must not get changes that their copy
        // contains.
        crowd.join(&[First, Second], true, true);
        crowd.join(&[First], true, false);
        crowd.set_level(First, BookSide::Ask, 4_200, 1).await;
        crowd.trade(4).await;
        // The copy depends on when it is made, and decides which changes are left out.
        crowd.subscribed.settle().await;
        crowd.others[0].dump(&[crowd.subscribed.town.market.instrument(First)]);
        crowd.others[1].unfollow(crowd.subscribed.town.market.instrument(First));
        for shares in 1..=100 {
            crowd.set_level(if shares % 3 == 0 { Second } else { First }, BookSide::Bid, 3_900, shares).await;
        }
        crowd.subscribed.settle().await;
        let mut sent = Vec::new();
        for follower in &crowd.others {
            let outbox = follower.socket.outbox();
            outbox.close(Close::NORMAL);
            let mut bytes = std::io::Cursor::new(Vec::new());
            outbox.write(&mut bytes, || AT).await.expect("a list takes all");
            sent.push(bytes.into_inner());
        }
        sent
    })
}

#[test]
fn changes_in_a_batch_are_sent_as_if_they_came_alone() {
    let (alone, together) = (sent_to_sockets(true), sent_to_sockets(false));
    let kinds = |bytes: &[u8]| {
        let (mut bytes, mut frames) = (bytes.to_vec(), Vec::new());
        while let Some((text, rest)) = frame(&bytes).filter(|_| bytes[0] == 0x81) {
            frames.push(serde_json::from_slice(text).expect("JSON"));
            bytes = rest.to_vec();
        }
        let kinds = kinds(&frames);
        let count = |kind| kinds.iter().filter(|other| **other == kind).count();
        ["first", "book", "price_change", "last_trade_price", "best_bid_ask"].map(count)
    };
    for (number, (alone, together)) in alone.iter().zip(&together).enumerate() {
        assert_eq!(kinds(alone), kinds(together), "{number}");
        assert!(alone == together, "{number}");
    }
    // Two books; two levels, then one again and two in three of those after it; two trades.
    assert_eq!(kinds(&together[0]), [2, 0, 70, 2, 0]);
    // Without a requested book: the second book is sent in full, then a level and one in three of those after it.
    assert_eq!(kinds(&together[7]), [0, 1, 104, 2, 5]);
    println!("crowds: {} cases", alone.len());
}
