//! Commands that need rows which have left memory: the same responses as from memory, and what they are while the rows
//! cannot be read.

use super::*;
use crate::ended_rows::{EndedAnswer, FoundCommand, Unread, answered};
use engine::departed::{Departed, EndedOrder, EndedRequest};
use engine::format::Formats;
use engine::id::{MarketId, OrderId, PositionId, TradeId};
use engine::look_up::LookUp;
use engine::look_up::filters::{Filters, Kind, May, id_hash};
use engine::market::Markets;
use engine::order::{Fill, Order};
use engine::shard::elsewhere::Elsewhere;
use engine::shard::snapshot;
use engine::user::Position;
use std::convert::Infallible;
use std::sync::Mutex;
use tokio::sync::oneshot;

/// A reader that works when the test calls it.
#[derive(Default)]
struct Reader {
    waiting: Mutex<Vec<(Box<LookUp>, FoundSender)>>,
    rows: Mutex<Rows>,
    /// It refuses.
    refuses: Mutex<Option<Unread>>,
}

type FoundSender = oneshot::Sender<Result<Envelope<()>, Unread>>;

/// Rows that have left memory.
#[derive(Default)]
struct Rows {
    orders: Vec<EndedOrder>,
    requests: Vec<EndedRequest>,
}

impl EndedRows for Reader {
    fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer {
        let Ok(answer) = elsewhere.complete(&*self.rows.lock().expect("no panic"));
        answered(Ok(answer))
    }

    fn look_up(&self, look_up: Box<LookUp>) -> FoundCommand {
        if let Some(unread) = *self.refuses.lock().expect("no panic") {
            return answered(Err(unread));
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().expect("no panic").push((look_up, sender));
        receiver
    }
}

impl Reader {
    /// Reads for all that wait; returns how many did.
    fn work(&self) -> usize {
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("no panic"));
        let count = waiting.len();
        for (look_up, sender) in waiting {
            let Ok(found) = look_up.found(&*self.rows.lock().expect("no panic"));
            // The client may have gone.
            let _ = sender.send(Ok(found));
        }
        count
    }

    /// A reader that fails: it panicked.
    fn drop_all(&self) {
        self.waiting.lock().expect("no panic").clear();
    }
}

impl Departed for Rows {
    type Error = Infallible;

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, Infallible> {
        Ok(self.orders.iter().find(|ended| ended.order.id == id).cloned())
    }

    fn position(&self, _: PositionId) -> Result<Option<Position>, Infallible> {
        Ok(None)
    }

    fn orders(&self, _: Option<MarketId>, _: Option<OrderId>) -> impl Iterator<Item = Result<EndedOrder, Infallible>> {
        self.orders.iter().rev().cloned().map(Ok)
    }

    fn fills(&self, _: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), Infallible>> {
        std::iter::empty()
    }

    fn positions(&self, _: Option<PositionId>) -> impl Iterator<Item = Result<Position, Infallible>> {
        std::iter::empty()
    }

    fn request(&self, client_order_id: &str) -> Result<Option<EndedRequest>, Infallible> {
        let has_it = |known: &&EndedRequest| known.request.id(&known.order.order) == Some(client_order_id);
        Ok(self.requests.iter().rev().find(has_it).cloned())
    }

    fn signed_order(&self, _: &[u8; 32]) -> Result<Option<OrderId>, Infallible> {
        Ok(None)
    }
}

/// The filter has the id `old` alone.
#[derive(Debug)]
struct OldOnly;

impl Filters for OldOnly {
    fn may_have(&self, _: UserId, kind: Kind, hash: u64, _: Timestamp) -> May {
        if (kind, hash) == (Kind::ClientOrderId, id_hash("old")) { May::Perhaps } else { May::No }
    }
}

impl Core {
    /// Every ended row leaves memory, as after a restart.
    fn depart(&mut self, reader: &Reader) {
        let (mut rows, mut bytes) = (Rows::default(), Vec::new());
        let users = self.shard.users();
        let leaving = users.leaving(Timestamp(u64::MAX), 0);
        for gone in &leaving {
            let user = users.get(gone.user).expect("a user");
            for id in &gone.orders {
                let order = user.order(*id).expect("in memory").clone();
                let ended = EndedOrder { fills: user.fills_of(&order).to_vec(), order };
                rows.orders.push(ended.clone());
                let request = user.request_of(*id).cloned();
                rows.requests.extend(request.map(|request| EndedRequest { request, order: ended }));
            }
        }
        assert!(!rows.requests.is_empty(), "a request leaves memory");
        snapshot::write(Formats::Newest, &Markets::default(), &[users], &mut bytes).expect("memory takes every byte");
        let mut state = snapshot::read(&mut &bytes[..], 1).expect("just written");
        let mut users = std::mem::take(&mut state.users[0]);
        users.set_departed_upto(1);
        leaving.iter().for_each(|gone| _ = users.depart(gone));
        let reads = &self.edge.app.reads;
        let (catalog, directory) = (reads.catalog.clone(), reads.directory.clone());
        self.shard = Shard::new(0, 1, users, reads.rules.clone(), reads.books.clone(), catalog, directory);
        self.shard.filter_with(Arc::new(OldOnly));
        *reader.rows.lock().expect("no panic") = rows;
    }

    /// The response to one request, with all that it needs.
    async fn respond(&mut self, reader: &Reader, method: &str, target: &str, body: &str) -> (Received, usize) {
        let (waiting, mut look_ups) = (self.ask(method, target, body), 0);
        for _ in 0..3 {
            settle().await;
            self.decide();
            self.sync();
            settle().await;
            look_ups += reader.work();
        }
        (waiting.await.expect("an answer"), look_ups)
    }
}

/// A core with a cancelled order of id `old`, and the order's id.
async fn with_old() -> (Core, Arc<Reader>, String) {
    let reader = Arc::new(Reader::default());
    let mut core = Core::with_ended(reader.clone());
    let (placed, _) = core.respond(&reader, "POST", "/v1/orders", &order("old")).await;
    assert_eq!(placed.status, 200, "{}", placed.body);
    let id = core.shard.users().iter().find_map(|user| user.orders().iter().next()).expect("an order").id.to_string();
    let (cancelled, _) = core.respond(&reader, "DELETE", &format!("/v1/orders/{id}"), "").await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
    (core, reader, id)
}

#[test]
fn responses_are_the_same_when_rows_have_left_memory() {
    paused(async {
        let (mut core, reader, id) = with_old().await;
        let other_body = order("old").replace(r#""quantity":"5""#, r#""quantity":"6""#);
        let batch = format!(r#"{{"orders":[{}]}}"#, order("old"));
        let single = format!("/v1/orders/{id}");
        // Requests that leave no row, and how many of them are looked up.
        let requests = [
            ("POST", "/v1/orders", order("old"), 1),
            ("POST", "/v1/orders", other_body, 1),
            ("POST", "/v1/orders/batch", batch, 1),
            ("DELETE", &*single, String::new(), 1),
            ("DELETE", "/v1/orders/999999999", String::new(), 0),
        ];
        let mut before = Vec::new();
        for (method, target, body, _) in &requests {
            let (received, look_ups) = core.respond(&reader, method, target, body).await;
            assert_eq!(look_ups, 0, "{method} {target}: everything is in memory");
            before.push((received.status, received.code, received.body));
        }
        assert!(before[0].2.contains(r#""is_replay":true"#), "{}", before[0].2);
        core.depart(&reader);
        for ((method, target, body, expected), before) in requests.iter().zip(before) {
            let (received, look_ups) = core.respond(&reader, method, target, body).await;
            assert_eq!(look_ups, *expected, "{method} {target}");
            // The id of the request is in the body of an error.
            let (one, other) = (without_request_id(&received.body), without_request_id(&before.2));
            assert_eq!((received.status, received.code, one), (before.0, before.1, other), "{method} {target}");
        }
        let (received, look_ups) = core.respond(&reader, "POST", "/v1/orders", &order("new")).await;
        assert_eq!((received.status, look_ups), (200, 0), "a new id is not looked up: {}", received.body);
        println!("responses from rows that have left memory: {} cases", requests.len() + 1);
    });
}

fn without_request_id(body: &str) -> String {
    let Some((before, rest)) = body.split_once(r#""request_id":""#) else { return body.to_owned() };
    let (_, after) = rest.split_once('"').expect("a text ends");
    format!("{before}{after}")
}

#[test]
fn a_request_whose_rows_cannot_be_read_has_no_effect() {
    paused(async {
        let mut cases = 0;
        for (unread, status, code) in [
            (Some(Unread::Unreadable), 503, "PERSISTENCE_UNKNOWN"),
            (Some(Unread::Busy), 503, "SERVER_BUSY"),
            (None, 503, "PERSISTENCE_UNKNOWN"),
        ] {
            let (mut core, reader, id) = with_old().await;
            core.depart(&reader);
            *reader.refuses.lock().expect("no panic") = unread;
            let written = core.committer.appended();
            for (method, target) in [("POST", "/v1/orders".to_owned()), ("DELETE", format!("/v1/orders/{id}"))] {
                let body = if method == "POST" { order("old") } else { String::new() };
                let waiting = core.ask(method, &target, &body);
                settle().await;
                core.decide();
                settle().await;
                // `None`: the reader failed.
                reader.drop_all();
                let received = waiting.await.expect("an answer");
                assert_eq!((received.status, received.code.as_str()), (status, code), "{}", received.body);
                assert_eq!(core.committer.appended(), written, "nothing was decided");
                cases += 1;
            }
            // Others go on, and so does this user.
            let (received, _) = core.respond(&reader, "POST", "/v1/orders", &order("new")).await;
            assert_eq!(received.status, 200, "{}", received.body);
            *reader.refuses.lock().expect("no panic") = None;
            let (received, _) = core.respond(&reader, "POST", "/v1/orders", &order("old")).await;
            assert!(received.body.contains(r#""is_replay":true"#), "{}", received.body);
        }
        println!("rows that cannot be read: {cases} cases");
    });
}

/// The disk is slow: later requests of the user wait, and all of them are refused after two seconds.
#[test]
fn a_look_up_without_an_answer_is_refused_after_two_seconds() {
    paused(async {
        let (mut core, reader, _) = with_old().await;
        core.depart(&reader);
        let old = core.place("old");
        settle().await;
        core.decide();
        let behind = core.place("new");
        let again = core.place("old");
        settle().await;
        core.decide();
        let received = again.await.expect("an answer");
        assert_eq!(
            (received.status, received.code.as_str()),
            (409, "IDEMPOTENCY_CONFLICT_PENDING"),
            "{}",
            received.body
        );
        assert!(!old.is_finished() && !behind.is_finished() && core.shard.holds_up());
        // Tokio's paused time jumps to the end of the wait.
        let received = old.await.expect("an answer");
        assert_eq!((received.status, received.code.as_str()), (409, "TRADE_IN_PROGRESS"), "{}", received.body);
        assert_eq!(received.headers.get("retry-after").expect("advice"), "1");
        // That ended the look-up, so the next one goes on.
        settle().await;
        core.decide();
        core.sync();
        assert_eq!(behind.await.expect("an answer").status, 200);
        assert_eq!(reader.work(), 1, "its reader comes too late");
        settle().await;
        assert!(core.inbox.is_empty());
    });
}

/// A client that goes away does not hold up the other requests of its user.
#[test]
fn a_client_that_goes_ends_its_look_up() {
    paused(async {
        let (mut core, reader, _) = with_old().await;
        core.depart(&reader);
        let old = core.place("old");
        settle().await;
        core.decide();
        settle().await;
        let behind = core.place("new");
        settle().await;
        core.decide();
        assert!(core.shard.holds_up());
        old.abort();
        settle().await;
        core.decide();
        core.sync();
        let received = behind.await.expect("an answer");
        assert_eq!(received.status, 200, "{}", received.body);
        assert!(!core.shard.holds_up());
    });
}
