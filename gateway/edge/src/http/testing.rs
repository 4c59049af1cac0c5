//! A small edge for tests: a fake clock, keys with known texts, and a shard whose answers the test gives.

use super::auth;
use super::front::Front;
use super::pipeline::respond;
use super::route::Route;
use crate::api::billing::provider::{Desk, Provider};
use crate::api::health::{Instruments, Playback, Vitals};
use crate::api::integrations::port::Integrations;
use crate::api::simulation::archive::Archive;
use crate::api::simulation::exports::Exports;
use crate::api::simulation::jobs::Jobs;
use crate::app::{App, Edge, Instance};
use crate::ended_rows::{EndedAnswer, EndedRows, FoundCommand, HistoryFrom, NoEndedRows};
use crate::engine_client::{AskError, EngineClient};
use crate::published::Published;
use crate::reads::Reads;
use crate::settings::Settings;
use crate::streams::Streams;
use crate::ws::news::News;
use bytes::Bytes;
use engine::book::registry::Books;
use engine::book::stretches::{HistoryQuery, PriceHistory, Stretches};
use engine::command::{Answer, Command};
use engine::directory::Directory;
use engine::fact;
use engine::id::{KeyId, MarketId, UserId};
use engine::look_up::LookUp;
use engine::market::catalog::Catalog;
use engine::market::spot::{SOURCE, Spot, SpotPrice};
use engine::mutation::Mutation;
use engine::rules::Rules;
use engine::shard::elsewhere::Elsewhere;
use engine::time::{SECOND, Timestamp};
use engine::user::{Permissions, Tier};
#[cfg(test)]
use history::{Fills, History, Reader, Recorder};
use host::clock::Clock;
#[cfg(test)]
use host::job::{Job, RunningJob};
use host::leap::Leap;
use host::secret::Secret;
#[cfg(test)]
use host::thread::Stop;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use std::cell::RefCell;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
#[cfg(test)]
use std::time::Duration;

/// 2026-10-02T09:14:05Z.
pub const NOW: Timestamp = Timestamp(1_790_932_445_000_000);
/// Signs the session tokens of tests.
pub const SECRET: &str = "0123456789abcdef0123456789abcdef";

type Shard = RefCell<Box<dyn FnMut(UserId, Command) -> Result<Answer, AskError>>>;

/// An edge with everything that a request may use.
pub struct World {
    pub edge: Rc<Edge>,
    pub clock: Clock,
    /// From when on answers show history.
    pub shown: Arc<HistoryFrom>,
    shard: Rc<Shard>,
    #[cfg(test)]
    pub past: Past,
}

/// No ended rows, and from when on history is shown.
struct Shown(Arc<HistoryFrom>);

impl EndedRows for Shown {
    fn complete(&self, elsewhere: Box<Elsewhere>) -> EndedAnswer {
        NoEndedRows.complete(elsewhere)
    }

    fn look_up(&self, look_up: Box<LookUp>) -> FoundCommand {
        NoEndedRows.look_up(look_up)
    }

    fn history_from(&self) -> Option<&HistoryFrom> {
        Some(&self.0)
    }
}

/// The price history of a world.
#[cfg(test)]
pub struct Past {
    pub recorder: RefCell<Recorder>,
    pub fills: Fills,
    pub reader: Reader,
    history: RunningJob,
    _folder: tempfile::TempDir,
}

#[cfg(test)]
impl Past {
    fn of(books: Arc<Books>) -> Past {
        let (fills, folder) = (Fills::default(), tempfile::tempdir().expect("a temporary directory"));
        let (history, recorder, reader) =
            History::open(Some(folder.path().join("history")), 1 << 20, books, fills.clone());
        let history = Job::new("history", Duration::from_secs(1), move || history).start(&Stop::new());
        let history = history.expect("a thread can be made");
        Past { recorder: RefCell::new(recorder), fills, reader, history, _folder: folder }
    }
}

#[cfg(test)]
impl Drop for Past {
    fn drop(&mut self) {
        self.history.stop();
    }
}

/// An empty price history and no figures of other parts.
struct Nothing;

impl PriceHistory for Nothing {
    fn is_lost(&self) -> bool {
        false
    }

    fn find(
        &self,
        _: MarketId,
        _: RangeInclusive<u64>,
        _: HistoryQuery,
    ) -> Pin<Box<dyn Future<Output = Option<Stretches>> + '_>> {
        Box::pin(std::future::ready(None))
    }
}

impl Instruments for Nothing {
    fn vitals(&self) -> Vitals {
        Vitals::default()
    }

    fn recording(&self) -> Option<Playback> {
        None
    }
}

/// The ports of the routes that have some.
#[derive(Default)]
pub struct Ports {
    pub archive: Option<Arc<dyn Archive>>,
    pub jobs: Option<Arc<dyn Jobs>>,
    pub exports: Option<Arc<dyn Exports>>,
    pub published: Published,
    pub integrations: Option<Arc<dyn Integrations>>,
}

/// Made spot prices.
fn spot() -> Spot {
    Spot::made(|_, now| SpotPrice { micros: 64_321_500_000, at: Timestamp(now.0 - now.0 % SECOND), source: SOURCE })
}

/// A response in parts.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub headers: hyper::HeaderMap,
    pub body: Bytes,
}

impl Answered {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("our headers are ASCII"))
    }

    /// Status and code header.
    pub fn code(&self) -> (u16, &str) {
        (self.status, self.header("x-svc-code").unwrap_or_default())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }
}

impl World {
    pub fn new(toml: &str, tables: &[&'static [Route]]) -> World {
        World::of(toml, tables, spot(), Ports::default())
    }

    /// As [`World::new`], with these spot prices.
    pub fn with_spot(toml: &str, tables: &[&'static [Route]], spot: Spot) -> World {
        World::of(toml, tables, spot, Ports::default())
    }

    /// As [`World::new`], with an archive and a runner of back-tests.
    pub fn with_archive(
        toml: &str,
        tables: &[&'static [Route]],
        archive: Arc<dyn Archive>,
        jobs: Option<Arc<dyn Jobs>>,
    ) -> World {
        World::with_ports(toml, tables, Ports { archive: Some(archive), jobs, ..Ports::default() })
    }

    /// As [`World::new`], with these ports.
    pub fn with_ports(toml: &str, tables: &[&'static [Route]], ports: Ports) -> World {
        World::of(toml, tables, spot(), ports)
    }

    /// As [`World::new`], with this payment provider.
    pub fn with_billing(toml: &str, tables: &[&'static [Route]], provider: Box<dyn Provider>) -> World {
        World::all_of(toml, tables, spot(), Ports::default(), Some(Desk::new(provider)))
    }

    fn of(toml: &str, tables: &[&'static [Route]], spot: Spot, ports: Ports) -> World {
        World::all_of(toml, tables, spot, ports, None)
    }

    fn all_of(toml: &str, tables: &[&'static [Route]], spot: Spot, ports: Ports, billing: Option<Desk>) -> World {
        let Ports { archive, jobs, exports, published, integrations } = ports;
        let mut config = Settings::of_test(toml);
        config.billing.is_on = billing.is_some();
        config.billing.is_stub = billing.is_some();
        config.auth.jwt_secrets = vec![Secret::new(SECRET.to_owned())];
        config.auth.server_secret = Secret::new(SECRET.to_owned());
        let (clock, rules) = (Clock::fake(NOW), Arc::new(Rules::default()));
        let (books, shown) = (Arc::new(Books::new()), Arc::new(HistoryFrom::default()));
        #[cfg(test)]
        let past = Past::of(books.clone());
        #[cfg(test)]
        let history = Box::new(past.reader.clone());
        #[cfg(not(test))]
        let history = Box::new(Nothing);
        let app = App {
            streams: Streams {
                news: Arc::new(News::new(1, rules.fees.clone())),
                seats: Arc::default(),
                events: Arc::default(),
                user_wakeups: Default::default(),
                user_frames: Arc::default(),
            },
            reads: Reads {
                catalog: Arc::new(Catalog::new()),
                books,
                directory: Arc::new(Directory::new()),
                rules,
                clock: clock.clone(),
                history,
                ended: Arc::new(Shown(shown.clone())),
                spot,
                archive,
                jobs,
                exports,
                integrations,
            },
            front: Front::new(config, tables).expect("a sound table"),
            instance: Instance {
                id: "7d4f6a0e-9c21-4b0e-8f57-2a1c3be0d964".to_owned(),
                started_at: NOW,
                leap: Arc::new(Leap::none()),
                instruments: Box::new(Nothing),
                census: Default::default(),
            },
            published,
            rehearsal: Arc::default(),
            billing,
            moments: None,
        };
        let shard: Rc<Shard> = Rc::new(RefCell::new(Box::new(|_, command| panic!("not expected: {command:?}"))));
        let asked = Rc::clone(&shard);
        let engine = EngineClient::canned(Rc::new(move |user, command| match command {
            Command::NoteKeyUsed { .. } => Ok(Answer::Done),
            command => (asked.borrow_mut())(user, command),
        }));
        let edge = Rc::new(Edge::new(Arc::new(app), engine));
        World {
            edge,
            clock,
            shown,
            shard,
            #[cfg(test)]
            past,
        }
    }

    /// Sets the shard's behaviour.
    pub fn shard(&self, answer: impl FnMut(UserId, Command) -> Result<Answer, AskError> + 'static) {
        *self.shard.borrow_mut() = Box::new(answer);
    }

    pub fn directory(&self) -> &Directory {
        &self.edge.app.reads.directory
    }

    /// Creates a user with one key; returns the key's text.
    pub fn key(&self, tier: Tier, permissions: Permissions) -> String {
        let user = self.directory().reserve_anonymous();
        self.note(user, Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at: NOW }));
        if tier > Tier::Free {
            self.note(user, Mutation::GrantSet(fact::GrantSet { tier, expires_at: None, at: NOW }));
        }
        self.another_key(user, tier, permissions)
    }

    /// Creates another key of a user.
    pub fn another_key(&self, user: UserId, tier: Tier, permissions: Permissions) -> String {
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

    pub fn note(&self, user: UserId, fact: Mutation) {
        self.directory().observe(user, &fact);
    }

    /// Sends one request from `1.2.3.4`.
    pub fn send(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut request = Request::builder().method(method).uri(target).header("host", "test");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.respond(request.body(Full::new(Bytes::from(body.to_owned()))).expect("a sound request"))
    }

    pub fn respond<B>(&self, request: Request<B>) -> Answered
    where
        B: hyper::body::Body<Data = Bytes> + Unpin,
    {
        let peer = IpAddr::from([1, 2, 3, 4]);
        let edge = Rc::clone(&self.edge);
        run(async move {
            let (parts, body) = respond(edge, peer, request, None).await.into_parts();
            let body = body.collect().await.expect("a full body cannot fail").to_bytes();
            Answered { status: parts.status.as_u16(), headers: parts.headers, body }
        })
    }
}

/// Runs a future like an IO thread does.
pub fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime of one thread");
    tokio::task::LocalSet::new().block_on(&runtime, future)
}
