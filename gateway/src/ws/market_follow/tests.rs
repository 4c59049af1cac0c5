//! What a socket is sent when news come faster than they are handed out, or when its queue is full.

use super::*;
use crate::api::testing::Town;
use crate::http::testing::run;
use crate::venue::feed::publish::Publisher;
use crate::venue::{BookSide, FeedUpdate};
use engine::amount::Qty;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

const TOKEN: &str = "81140002";
const AT: Timestamp = Timestamp(1_790_932_446_000_000);

/// One socket that follows the first token of the town's market.
struct Subscribed {
    town: Town,
    publisher: Publisher,
    follower: Rc<Follower>,
}

impl Subscribed {
    fn new() -> Subscribed {
        let town = Town::new();
        let app = &town.edge.app;
        let publisher = Publisher::new(app.news.clone(), town.catalog.clone());
        let socket = Rc::new(Socket::new(1, None, None, app.clock.clone()));
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
