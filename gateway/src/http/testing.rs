//! A small edge for tests: a fake clock, keys of known texts, a shard that answers what the test says.

use super::auth;
use super::front::Front;
use super::pipeline::respond;
use super::route::Route;
use super::server::Connections;
use crate::app::{App, Edge};
use crate::clock::Clock;
use crate::config::{Config, Secret};
use crate::engine_client::{EngineClient, Late};
use crate::history::{Fills, History, Recorder};
use crate::leap::Leap;
use crate::venue::spot::Spot;
use crate::ws::news::News;
use bytes::Bytes;
use engine::book::registry::Books;
use engine::command::{Answer, Command};
use engine::directory::Directory;
use engine::fact;
use engine::id::{KeyId, UserId};
use engine::market::catalog::Catalog;
use engine::mutation::Mutation;
use engine::time::Timestamp;
use engine::user::{Permissions, Tier};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// 2026-10-02T09:14:05Z.
pub(crate) const NOW: Timestamp = Timestamp(1_790_932_445_000_000);
/// Signs session tokens of these tests.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

type Shard = RefCell<Box<dyn FnMut(UserId, Command) -> Result<Answer, Late>>>;

/// An edge with everything a request may touch.
pub(crate) struct World {
    pub(crate) edge: Rc<Edge>,
    pub(crate) clock: Clock,
    shard: Rc<Shard>,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) fills: Fills,
    _past: tempfile::TempDir,
}

/// One answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) body: Bytes,
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("our headers are ASCII"))
    }

    /// Status and code header.
    pub(crate) fn code(&self) -> (u16, &str) {
        (self.status, self.header("x-svc-code").unwrap_or_default())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }
}

impl World {
    pub(crate) fn new(toml: &str, tables: &[&'static [Route]]) -> World {
        let mut config = Config::read(Some(("test", toml)), [], []).expect("a sound configuration");
        config.auth.jwt_secrets = vec![Secret::new(SECRET.to_owned())];
        config.auth.server_secret = Secret::new(SECRET.to_owned());
        let clock = Clock::fake(NOW);
        let (books, fills) = (Arc::new(Books::new()), Fills::default());
        // Its thread ends with the last who may speak to it.
        let past = tempfile::tempdir().expect("a temporary directory");
        let started = History::start(Some(past.path().join("history")), books.clone(), fills.clone());
        let (_, recorder, reader) = started.expect("a thread can be made");
        let app = App {
            rules: Arc::new(config.rules.clone()),
            catalog: Arc::new(Catalog::new()),
            books,
            directory: Arc::new(Directory::new()),
            clock: clock.clone(),
            leap: Arc::new(Leap::none()),
            front: Front::new(&config, tables).expect("a sound table"),
            connections: Arc::new(Connections::new(&config)),
            started_at: NOW,
            instance: "7d4f6a0e-9c21-4b0e-8f57-2a1c3be0d964".to_owned(),
            commit: Arc::default(),
            feed: Arc::default(),
            census: Default::default(),
            history: reader,
            cohort: Default::default(),
            news: Arc::new(News::new(1, config.rules.fees.clone())),
            seats: Arc::default(),
            user_frames: Arc::default(),
            meters: None,
            streams: Arc::default(),
            upstream: Default::default(),
            spot: Spot::of(&config.venue),
            config,
        };
        let shard: Rc<Shard> = Rc::new(RefCell::new(Box::new(|_, command| panic!("not expected: {command:?}"))));
        let asked = Rc::clone(&shard);
        let engine = EngineClient::canned(Rc::new(move |user, command| match command {
            Command::NoteKeyUsed { .. } => Ok(Answer::Done),
            command => (asked.borrow_mut())(user, command),
        }));
        let edge = Rc::new(Edge::new(Arc::new(app), engine));
        World { edge, clock, shard, recorder: RefCell::new(recorder), fills, _past: past }
    }

    /// What the shard does from now on.
    pub(crate) fn shard(&self, answer: impl FnMut(UserId, Command) -> Result<Answer, Late> + 'static) {
        *self.shard.borrow_mut() = Box::new(answer);
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.edge.app.directory
    }

    /// A user with one key; the key's text.
    pub(crate) fn key(&self, tier: Tier, permissions: Permissions) -> String {
        let user = self.directory().reserve_anonymous();
        self.note(user, Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at: NOW }));
        if tier > Tier::Free {
            self.note(user, Mutation::GrantSet(fact::GrantSet { tier, expires_at: None, at: NOW }));
        }
        self.another_key(user, tier, permissions)
    }

    /// One more key of a user.
    pub(crate) fn another_key(&self, user: UserId, tier: Tier, permissions: Permissions) -> String {
        let number = self.directory().keys_count() as u32;
        let text = format!("svc_live_{number:064x}");
        self.note(
            user,
            Mutation::KeyIssued(fact::KeyIssued {
                key: KeyId(user.object(1_000 + number)),
                hash: auth::key_hash(text.as_bytes(), "svc").expect("a well-formed key"),
                alias_hash: [number as u8; 32],
                prefix: text[..16].to_owned(),
                name: None,
                tier,
                permissions,
                beta_until: None,
                at: NOW,
            }),
        );
        text
    }

    pub(crate) fn note(&self, user: UserId, fact: Mutation) {
        self.directory().observe(user, &fact);
    }

    /// Sends one request from `1.2.3.4`.
    pub(crate) fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut request = Request::builder().method(method).uri(target).header("host", "test");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.respond(request.body(Full::new(Bytes::from(body.to_owned()))).expect("a sound request"))
    }

    pub(crate) fn respond<B>(&self, request: Request<B>) -> Answered
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let peer = IpAddr::from([1, 2, 3, 4]);
        let edge = Rc::clone(&self.edge);
        run(async move {
            let (parts, body) = respond(edge, peer, request).await.into_parts();
            let body = body.collect().await.expect("a full body cannot fail").to_bytes();
            Answered { status: parts.status.as_u16(), headers: parts.headers, body }
        })
    }
}

/// Runs a future as an IO thread does.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime of one thread");
    tokio::task::LocalSet::new().block_on(&runtime, future)
}
