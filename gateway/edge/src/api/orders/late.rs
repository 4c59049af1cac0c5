//! Responses while the core is slow (gateway/docs/trading.md §7): the real path from socket to log and back, with every step
//! of the shard, the committer and the disk made by the test. The test sets the time.

mod looked_up;

use crate::api::testing::Town;
use crate::app::Edge;
use crate::ended_rows::{EndedRows, NoEndedRows};
use crate::engine_client::{ANSWER_DEADLINE_US, EngineClient};
use crate::http::auth;
use crate::http::pipeline::respond;
use bytes::Bytes;
use engine::amount::Cash;
use engine::command::Envelope;
use engine::fact;
use engine::id::{UserId, WalletId};
use engine::mutation::{Mutation, codec};
use engine::ring::Ring;
use engine::rules::{UNRELEASED_MAX_US, WAIT_MAX_US};
use engine::shard::Shard;
use engine::time::Timestamp;
use engine::user::{Permissions, Tier, Users, WalletKind};
use host::clock::Clock;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::HeaderMap;
use journal::commit::Durability;
use journal::commit::{CommitFigures, CommitLane, Committer};
use journal::commit::{CommitItem, LogSize, Reply};
use journal::recover::recover;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use wal::{Options, Prepared, Running, Syncer};

/// Requests that the shard's inbox takes.
const INBOX_SLOTS: usize = 4;

/// The core of the threaded layout on one thread, in power durability: every part works when the test calls it.
struct Core {
    town: Town,
    edge: Rc<Edge>,
    inbox: Arc<Ring<Envelope<Reply>>>,
    shard: Shard<Reply>,
    lane: CommitLane,
    ring: Arc<Ring<CommitItem>>,
    committer: Committer,
    syncer: Syncer,
    _place: tempfile::TempDir,
}

struct Received {
    status: u16,
    code: String,
    headers: HeaderMap,
    body: String,
}

impl Core {
    fn new() -> Core {
        Core::with_ended(Arc::new(NoEndedRows))
    }

    /// With a reader of rows that have left memory.
    fn with_ended(ended: Arc<dyn EndedRows>) -> Core {
        let town = Town::new();
        let hash = auth::key_hash(town.key.as_bytes(), "svc").expect("a key");
        let principal = town.world.directory().principal(&hash).expect("known");
        let (segment_bytes, spares_count) = (1 << 20, 2);
        let place = tempfile::tempdir().expect("a temporary folder");
        let options = Options { segment_bytes, spares_count, reserve_bytes: 0, ..Options::default() };
        let recovery = recover(&place.path().join("log"), options, 1).expect("a new directory");
        let now = town.world.clock.now();
        let running = recovery.dir.start(recovery.log, now.0, Box::new(|_| {})).expect("it starts");
        let Running { log, mut preparer, syncer, .. } = running;
        while matches!(preparer.turn().expect("there is room on the disk"), Prepared::One) {}
        let figures = Arc::new(CommitFigures::<()>::default());
        let size = LogSize::of(segment_bytes, spares_count, 1);
        let lane = CommitLane::new(size, figures.clone()).of_shard(0);
        let committer = Committer::new(log, Durability::Power, codec::VERSION, size, figures);
        let app = town.world.edge.app.clone();
        let (rules, books) = (app.reads.rules.clone(), app.reads.books.clone());
        let users = users(principal.user, principal.key, hash, now);
        let shard = Shard::new(0, 1, users, rules, books, app.reads.catalog.clone(), app.reads.directory.clone());
        let inbox = Arc::new(Ring::new(INBOX_SLOTS));
        let engine = EngineClient::threaded(Arc::from([inbox.clone()]), town.world.clock.clone()).with_ended(ended);
        let edge = Rc::new(Edge::new(app, engine));
        let ring = lane.ring().clone();
        Core { town, edge, inbox, shard, lane, ring, committer, syncer, _place: place }
    }

    fn clock(&self) -> &Clock {
        &self.town.world.clock
    }

    /// The shard works off its inbox.
    fn decide(&mut self) {
        let now = self.clock().now();
        while self.shard.turn(&self.inbox, now, &mut self.lane) {}
        self.committer.turn(&self.ring);
    }

    /// The disk confirms, and what waited for it leaves.
    fn sync(&mut self) {
        self.syncer.turn().expect("a sound disk");
        self.committer.turn(&self.ring);
    }

    /// One request on its way.
    fn ask(&self, method: &str, target: &str, body: &str) -> tokio::task::JoinHandle<Received> {
        let request = Request::builder().method(method).uri(target).header("host", "test");
        let request = request.header("x-api-key", &self.town.key).body(Full::new(Bytes::from(body.to_owned())));
        let (edge, request) = (self.edge.clone(), request.expect("a sound request"));
        tokio::task::spawn_local(async move {
            let (parts, body) = respond(edge, IpAddr::from([1, 2, 3, 4]), request, None).await.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            let code = parts.headers.get("x-svc-code").map(|code| code.to_str().expect("ASCII").to_owned());
            Received {
                status: parts.status.as_u16(),
                code: code.unwrap_or_default(),
                headers: parts.headers,
                body: String::from_utf8(body.to_vec()).expect("UTF-8"),
            }
        })
    }

    fn place(&self, client_order_id: &str) -> tokio::task::JoinHandle<Received> {
        self.ask("POST", "/v1/orders", &order(client_order_id))
    }
}

/// A BUY that rests: 5 shares at 0.10.
fn order(client_order_id: &str) -> String {
    format!(
        concat!(
            r#"{{"token_id":"81140002","side":"BUY","order_type":"limit","price":"0.10","quantity":"5","#,
            r#""client_order_id":"{}"}}"#
        ),
        client_order_id
    )
}

fn users(owner: UserId, key: engine::id::KeyId, hash: [u8; 32], at: Timestamp) -> Users {
    let mut users = Users::default();
    let opened = Mutation::WalletOpened(fact::WalletOpened {
        wallet: WalletId(owner.object(1)),
        kind: WalletKind::Api,
        label: None,
        baseline: Cash::from_dollars(100),
        generation: 1,
        parent: None,
        at,
    });
    let issued = Mutation::KeyIssued(fact::KeyIssued {
        key,
        hash,
        alias_hash: [1; 32],
        prefix: "svc_live_0000000".to_owned(),
        name: None,
        tier: Tier::Free,
        permissions: Permissions::ReadTrade,
        beta_until: None,
        at,
    });
    users.apply(owner, &Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at }));
    users.apply(owner, &opened);
    users.apply(owner, &issued);
    users
}

/// Lets every request go as far as it can.
async fn settle() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

/// Runs a test on tokio's paused time: a timer fires when nothing else is left to do.
fn paused(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime"), test);
}

#[test]
fn a_shard_that_comes_late_has_done_nothing() {
    paused(async {
        let mut core = Core::new();
        let waiting = core.place("late-1");
        settle().await;
        let handed_at = core.clock().now();
        core.clock().set(handed_at.plus(WAIT_MAX_US + 1));
        core.decide();
        core.sync();
        let received = waiting.await.expect("an answer");
        assert_eq!((received.status, received.code.as_str()), (409, "TRADE_IN_PROGRESS"), "{}", received.body);
        assert_eq!(received.headers.get("retry-after").expect("advice"), "1");
        // Exactly at the bound it is still taken, and nothing of the first is there.
        let again = core.place("late-1");
        settle().await;
        core.clock().set(core.clock().now().plus(WAIT_MAX_US));
        core.decide();
        core.sync();
        let received = again.await.expect("an answer");
        assert_eq!(received.status, 200, "{}", received.body);
        assert!(received.body.contains(r#""is_replay":false"#), "{}", received.body);
    });
}

/// While the log does not move, the writes of a user wait undecided, at most two seconds, as soon as the user's oldest record
/// is older than a quarter of a second.
#[test]
fn writes_after_one_that_is_not_released_wait_undecided() {
    paused(async {
        let mut cases = 0;
        let cancel_all = ("POST", "/v1/cancel-all?confirm=true", String::new());
        let rows = [
            ("POST", "/v1/orders", order("second")),
            ("POST", "/v1/orders/batch", format!(r#"{{"orders":[{}]}}"#, order("second"))),
            cancel_all.clone(),
        ];
        for (method, target, body) in rows {
            // In a row as long as the log is not late; decided when it has moved; refused when it has not.
            for (age_us, moves, status) in [
                (UNRELEASED_MAX_US, true, 200),
                (UNRELEASED_MAX_US + 1, true, 200),
                (UNRELEASED_MAX_US + 1, false, 409),
            ] {
                let what = format!("{method} {target}, {age_us} µs after the first, the log moves: {moves}");
                let mut core = Core::new();
                let first = core.place("first");
                settle().await;
                core.decide();
                core.clock().set(core.clock().now().plus(age_us));
                let second = core.ask(method, target, &body);
                settle().await;
                let undecided = core.committer.appended();
                core.decide();
                settle().await;
                assert!(!first.is_finished() && !second.is_finished(), "{what}");
                let waits = age_us > UNRELEASED_MAX_US;
                assert_eq!(core.shard.holds_up(), waits, "{what}");
                assert_eq!(core.committer.appended() == undecided, waits, "{what}: it is decided or not");
                if !moves {
                    core.clock().set(core.clock().now().plus(WAIT_MAX_US));
                    core.decide();
                    settle().await;
                    assert!(!second.is_finished(), "{what}: two seconds are not over");
                    core.clock().set(core.clock().now().plus(1));
                    core.decide();
                    let received = second.await.expect("an answer");
                    assert_eq!(
                        (received.status, received.code.as_str()),
                        (status, "TRADE_IN_PROGRESS"),
                        "{what}: {}",
                        received.body
                    );
                    assert_eq!(received.headers.get("retry-after").expect("advice"), "1");
                    assert!(!first.is_finished(), "{what}: the log has not moved");
                    assert_eq!(core.committer.appended(), undecided, "{what}: a refusal leaves nothing");
                    core.sync();
                } else {
                    core.sync();
                    core.decide();
                    core.sync();
                    let received = second.await.expect("an answer");
                    assert_eq!(received.status, status, "{what}: {}", received.body);
                }
                assert_eq!(first.await.expect("an answer").status, 200, "{what}");
                assert!(!core.shard.holds_up(), "{what}");
                cases += 1;
            }
        }
        println!("writes after one that is not released: {cases} cases");
    });
}

#[test]
fn an_id_that_comes_again_while_it_runs_is_a_conflict() {
    paused(async {
        let mut core = Core::new();
        let first = core.place("first");
        settle().await;
        core.decide();
        core.clock().set(core.clock().now().plus(UNRELEASED_MAX_US + 1));
        let second = core.place("second");
        settle().await;
        core.decide();
        // One of a record that is not released, one that is not decided; and reads wait for the log as ever.
        for id in ["first", "second"] {
            let batch = format!(r#"{{"orders":[{}]}}"#, order(id));
            for again in [core.place(id), core.ask("POST", "/v1/orders/batch", &batch)] {
                settle().await;
                core.decide();
                let received = again.await.expect("an answer");
                let received_code = (received.status, received.code.as_str());
                assert_eq!(received_code, (409, "IDEMPOTENCY_CONFLICT_PENDING"), "{id}: {}", received.body);
                assert_eq!(received.headers.get("retry-after").expect("advice"), "1");
            }
        }
        let read = core.ask("GET", "/v1/orders/by-client-id/first", "");
        // Another user is not held up: its response waits for the log, and is not a refusal because of the queue.
        let engine = core.edge.engine.clone();
        let now = core.clock().now();
        let other = tokio::task::spawn_local(async move {
            engine.ask(UserId(1 << 40), engine::command::Command::Cancel { order: engine::id::OrderId(1) }, now).await
        });
        settle().await;
        core.decide();
        core.clock().set(core.clock().now().plus(WAIT_MAX_US + 1));
        core.decide();
        let received = second.await.expect("an answer");
        assert_eq!((received.status, received.code.as_str()), (409, "TRADE_IN_PROGRESS"), "{}", received.body);
        settle().await;
        assert!(!read.is_finished() && !other.is_finished() && !first.is_finished());
        core.sync();
        let answer = other.await.expect("no panic").expect("in time");
        assert!(matches!(answer, engine::command::Answer::Refused(engine::reject::Reject::UserNotFound)), "{answer:?}");
        assert_eq!(read.await.expect("an answer").status, 200);
        assert_eq!(first.await.expect("an answer").status, 200);
        // After it both ids are repeats or new requests (gateway/docs/wire.md §11).
        for (id, is_replay) in [("first", true), ("second", false)] {
            let received = core.place(id);
            settle().await;
            core.decide();
            core.sync();
            let received = received.await.expect("an answer");
            assert!(received.body.contains(&format!(r#""is_replay":{is_replay}"#)), "{id}: {}", received.body);
        }
    });
}

#[test]
fn a_full_queue_is_reported_immediately() {
    paused(async {
        let mut core = Core::new();
        let waiting: Vec<_> = (0..INBOX_SLOTS).map(|number| core.place(&format!("queued-{number}"))).collect();
        settle().await;
        let received = core.place("one too many").await.expect("an answer");
        assert_eq!((received.status, received.code.as_str()), (503, "SERVER_BUSY"), "{}", received.body);
        assert_eq!(received.headers.get("retry-after").expect("advice"), "1");
        core.decide();
        core.sync();
        for one in waiting {
            assert_eq!(one.await.expect("an answer").status, 200);
        }
    });
}

#[test]
fn a_disk_that_does_not_answer_leaves_the_outcome_open() {
    paused(async {
        let mut core = Core::new();
        let waiting = core.place("open-1");
        settle().await;
        core.decide();
        // The disk is silent until the deadline: tokio's paused time jumps to it.
        let received = waiting.await.expect("an answer");
        assert_eq!((received.status, received.code.as_str()), (503, "PERSISTENCE_UNKNOWN"), "{}", received.body);
        assert_eq!(received.headers.get("retry-after"), None, "the order is to be looked up first");
        // A lookup waits for the same disk, and then finds it.
        let lookup = core.ask("GET", "/v1/orders/by-client-id/open-1", "");
        settle().await;
        core.decide();
        settle().await;
        assert!(!lookup.is_finished(), "an answer must not show what a crash could take back");
        core.sync();
        let received = lookup.await.expect("an answer");
        assert_eq!(received.status, 200, "{}", received.body);
        assert!(received.body.contains(r#""status":"PENDING""#), "{}", received.body);
    });
}

#[test]
fn a_commit_after_the_deadline_names_its_order() {
    paused(async {
        for (late_by, status) in [(0, 200), (1, 503)] {
            let mut core = Core::new();
            let read_at = core.clock().now();
            let waiting = core.place("overshot-1");
            settle().await;
            core.decide();
            core.clock().set(read_at.plus(ANSWER_DEADLINE_US + late_by));
            core.sync();
            let received = waiting.await.expect("an answer");
            assert_eq!(received.status, status, "{}", received.body);
            if late_by == 0 {
                continue;
            }
            assert_eq!(received.code, "DEADLINE_OVERSHOT_BUT_PERSISTED", "{}", received.body);
            assert!(received.body.contains(r#""source":"pending""#), "{}", received.body);
            let order = received.headers.get("x-svc-order-id").expect("the order").to_str().expect("ASCII").to_owned();
            let lookup = core.ask("GET", &format!("/v1/orders/{order}"), "");
            settle().await;
            core.decide();
            core.sync();
            assert_eq!(lookup.await.expect("an answer").status, 200);
        }
    });
}
