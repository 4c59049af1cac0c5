//! What a socket is sent when news come faster than they are handed out, or when its queue is full.

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

    /// The level at 0.40 becomes so large.
    fn tell(&self, size: u64) {
        let levels = vec![(BookSide::Bid, Price(4_000), Qty::from_shares(size))];
        let mut writer = self.town.writer.borrow_mut();
        writer.frame(0, AT, |books| books.delta(self.town.market.instrument(Outcome::First), &levels, AT));
        let update = FeedUpdate::BookDelta { token: TOKEN.into(), levels: levels.into(), venue_ts: AT };
        self.publisher.frame(&[update], writer.books(), AT, |_| false);
    }

    /// Lets the hub hand out what there is.
    async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets the peer read until it has seen that size; answers every frame.
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
            assert!(theirs.read_buf(&mut bytes).await.expect("open") > 0, "it ended");
        }
    }
}

/// The text of the first whole frame, and what is behind it.
fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, length) = match *bytes.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().expect("two bytes")))),
        short => (2, usize::from(short)),
    };
    Some((bytes.get(head..head + length)?, &bytes[head + length..]))
}

/// Whether a frame shows the level at 0.40 with that size.
fn shows(frame: &Value, size: &str) -> bool {
    let level = json!({"price": "0.40", "size": size});
    frame["bids"].as_array().is_some_and(|bids| bids.contains(&level)) || frame["price_changes"][0]["size"] == size
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    let kind = |frame: &'_ Value| if frame.is_array() { "first" } else { "" };
    frames.iter().map(|frame| frame["event_type"].as_str().unwrap_or(kind(frame))).collect()
}

#[test]
fn lost_news_are_made_up_for_by_fresh_books() {
    run(async {
        let subscribed = Subscribed::new();
        // Nobody hands anything out meanwhile: more than the outlet holds.
        (1..=9_000).for_each(|size| subscribed.tell(size));
        subscribed.settle().await;
        let frames = subscribed.read_to("9000").await;
        assert_eq!(kinds(&frames), ["first", "book"]);
        // It goes on with every change.
        subscribed.tell(9_001);
        subscribed.tell(9_002);
        subscribed.settle().await;
        assert_eq!(kinds(&subscribed.read_to("9002").await), ["price_change", "price_change"]);
    });
}

#[test]
fn a_full_queue_is_made_up_for_by_a_fresh_book() {
    run(async {
        let subscribed = Subscribed::new();
        for size in 1..=3_000 {
            subscribed.tell(size);
            if size % 500 == 0 {
                subscribed.settle().await;
            }
        }
        let frames = subscribed.read_to("3000").await;
        // The changes that waited are gone with those that found no room.
        assert_eq!(kinds(&frames), ["first", "book"]);
        subscribed.tell(3_001);
        subscribed.settle().await;
        assert_eq!(kinds(&subscribed.read_to("3001").await), ["price_change"]);
    });
}

#[test]
fn what_the_copy_holds_is_not_sent_again() {
    run(async {
        let subscribed = Subscribed::new();
        subscribed.tell(1);
        subscribed.tell(2);
        // The copy is made before the changes are handed out.
        subscribed.follower.dump(&[subscribed.town.market.instrument(Outcome::First)]);
        subscribed.tell(3);
        subscribed.settle().await;
        assert_eq!(kinds(&subscribed.read_to("3").await), ["first", "first", "price_change"]);
    });
}

/// Whoever reads is told everything, however many read and however much comes at once: nobody's queue fills up because
/// others are written to first.
#[test]
fn readers_do_not_fall_behind_a_backlog() {
    const CHANGES: u64 = 3_000;
    let mut told = 0;
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
            (1..=CHANGES).for_each(|size| subscribed.tell(size));
            for peer in peers {
                let sizes = peer.await.expect("it reads to the end");
                assert!(sizes.into_iter().eq(1..=CHANGES), "each change, in order, {crowd} listen");
                told += 1;
            }
        });
    }
    println!("readers of a backlog: {told} cases");
}

/// The sizes that a peer is told of the level at 0.40, until so many were told or a book came again.
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

/// Those who listen in different ways, and one who comes in the middle.
struct Crowd {
    subscribed: Subscribed,
    others: Vec<Rc<Follower>>,
    /// The hub hands out each change before the next one comes.
    one_at_a_time: bool,
}

const SECOND_TOKEN: &str = "55200077";

impl Crowd {
    fn join(&mut self, outcomes: &[Outcome], is_custom: bool, is_shown_books: bool) {
        let town = &self.subscribed.town;
        let socket = Rc::new(Socket::new(2, None, None, town.edge.app.reads.clock.clone()));
        let follower = Follower::new(socket, Rc::clone(&town.edge.hub));
        if is_custom {
            follower.want_custom();
        }
        let instruments: Vec<_> = outcomes.iter().map(|outcome| town.market.instrument(*outcome)).collect();
        instruments.iter().for_each(|instrument| follower.follow(*instrument));
        if is_shown_books {
            follower.dump(&instruments);
        }
        self.others.push(follower);
    }

    async fn say(&self, outcome: Outcome, side: BookSide, price: u16, shares: u64) {
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

/// What each of a crowd is sent.
fn told_to_a_crowd(one_at_a_time: bool) -> Vec<Vec<u8>> {
    use Outcome::{First, Second};
    run(async {
        let mut crowd = Crowd { subscribed: Subscribed::new(), others: Vec::new(), one_at_a_time };
        // Two of each kind: what is made for one is sent to the other.
        for _ in 0..2 {
            crowd.join(&[First], false, true);
            crowd.join(&[First, Second], false, true);
            crowd.join(&[Second], true, true);
            crowd.join(&[First, Second], true, false);
        }
        crowd.say(First, BookSide::Bid, 4_000, 7).await;
        crowd.say(First, BookSide::Ask, 4_200, 0).await;
        crowd.trade(3).await;
        crowd.show_second().await;
        crowd.say(Second, BookSide::Bid, 5_700, 2).await;
        // They know other best prices than those who were there before, and nothing of what the copy holds is told twice.
        crowd.join(&[First, Second], true, true);
        crowd.join(&[First], true, false);
        crowd.say(First, BookSide::Ask, 4_200, 1).await;
        crowd.trade(4).await;
        // What a copy holds is left out, so it depends on when it is made.
        crowd.subscribed.settle().await;
        crowd.others[0].dump(&[crowd.subscribed.town.market.instrument(First)]);
        crowd.others[1].unfollow(crowd.subscribed.town.market.instrument(First));
        for shares in 1..=100 {
            crowd.say(if shares % 3 == 0 { Second } else { First }, BookSide::Bid, 3_900, shares).await;
        }
        crowd.subscribed.settle().await;
        let mut told = Vec::new();
        for follower in &crowd.others {
            let outbox = follower.socket.outbox();
            outbox.close(Close::NORMAL);
            let mut bytes = std::io::Cursor::new(Vec::new());
            outbox.write(&mut bytes, || AT).await.expect("a list takes all");
            told.push(bytes.into_inner());
        }
        told
    })
}

#[test]
fn what_comes_together_is_told_as_if_it_came_alone() {
    let (alone, together) = (told_to_a_crowd(true), told_to_a_crowd(false));
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
    // Shown twice; two levels, one again and two in three of those behind it; two trades.
    assert_eq!(kinds(&together[0]), [2, 0, 70, 2, 0]);
    // Never asked for a book: the second comes whole, with a level and one in three of those behind it.
    assert_eq!(kinds(&together[7]), [0, 1, 104, 2, 5]);
    println!("crowds: {} cases", alone.len());
}
