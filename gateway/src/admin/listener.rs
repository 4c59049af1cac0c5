//! The sockets and the thread of the admin listener, which sleeps until a request comes.
//!
//! `/metrics` is open to every client that reaches the listener, and each such connection serves one request. A
//! connection has ten seconds in all until it has shown the admin token; from then on ten seconds for each request, not
//! counting its response. The number of connections is bounded; at the bound, the longest one without a request in
//! flight ends. A peer cannot use more than that, and the server's own threads are not affected. Heads are read like
//! those of the server's own listener.

use super::backup::Backups;
use super::node::Node;
use super::{Namespace, PREFIX, Token};
use crate::backup::Running;
use crate::config::Secret;
use crate::metrics::gather::{Gather, Sources};
use edge::app::App;
use edge::http::body::Body;
use edge::http::code::Code;
use edge::http::hosts::Hosts;
use edge::http::pipeline::request_id;
use edge::http::reply::Refusal;
use edge::http::response_head::ResponseHead;
use edge::http::server::gate::{Peer, serve_connection};
use edge::http::server::{Connections, Slot};
use host::thread;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, sleep_until};

/// Connections at a time. The next one replaces the longest idle one; if none is idle it waits, and later ones wait in
/// the kernel.
const CONNECTIONS_MAX: usize = 16;
/// How often it then checks for a free place.
const PLACE_CHECK_EVERY: Duration = Duration::from_millis(20);
/// From a connection's first byte to its last; with the admin token, from the end of one answer to the next request.
const CONNECTION_MAX: Duration = Duration::from_secs(10);
/// How often a connection that takes a stream checks whether its writer has ended.
const WRITER_CHECK_EVERY: Duration = Duration::from_secs(1);
/// Pause after an accept that failed for lack of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

const PATH: &str = "/metrics";
/// The type of the text format; readers of the older one read this, too.
const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The listener's thread.
pub struct Admin {
    thread: JoinHandle<()>,
    /// Dropped to end it.
    alive: oneshot::Sender<Infallible>,
}

impl Admin {
    /// Serves `listener` from now on.
    ///
    /// # Errors
    /// The system's, if no thread can be created.
    pub fn start(listener: TcpListener, sources: Sources, token: &Secret, running: Running) -> io::Result<Admin> {
        let config = sources.config.clone();
        let hosts = Hosts::of(listener.local_addr()?, &config.server.hosts);
        let namespace = Namespace {
            token: Token::of(token),
            node: Arc::new(Node::new(sources.app.clone(), running.clone())),
            backups: Backups::new(running, sources.app.reads.clock.clone(), config.admin.slow_peer),
            control: Arc::new(Semaphore::new(1)),
        };
        let (alive, ended) = oneshot::channel();
        let body = move || {
            if let Err(error) = run(listener, sources, namespace, hosts, ended) {
                tracing::error!(%error, "the admin listener has ended; the server continues without it");
            }
        };
        let lost = || tracing::error!("the thread of the admin listener panicked; the server continues without it");
        Ok(Admin { thread: thread::spawn_spare("admin", body, lost)?, alive })
    }

    /// Ends it; responses in progress are cut off.
    pub fn end(self) {
        drop(self.alive);
        // A panic of the thread has been logged.
        let _ = self.thread.join();
    }
}

fn run(
    listener: TcpListener,
    sources: Sources,
    namespace: Namespace,
    hosts: Hosts,
    ended: oneshot::Receiver<Infallible>,
) -> io::Result<()> {
    let runtime = host::runtime::runtime()?;
    let app = sources.app.clone();
    let write_timeout = sources.config.admin.slow_peer + CONNECTION_MAX;
    let answers = Rc::new(Answers { gather: Gather::new(sources), namespace, app, hosts, write_timeout });
    let serving = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            _ = ended => Ok(()),
            never = accept(listener, answers) => match never {},
        }
    };
    LocalSet::new().block_on(&runtime, serving)
}

async fn accept(listener: tokio::net::TcpListener, answers: Rc<Answers>) -> Infallible {
    let connections = Arc::new(Connections::at_most(CONNECTIONS_MAX, CONNECTION_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let place = loop {
                    match connections.enter(peer.ip()) {
                        Some(place) => break place,
                        None => sleep(PLACE_CHECK_EVERY).await,
                    }
                };
                drop(tokio::task::spawn_local(connection(stream, Rc::clone(&answers), place)));
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed on the admin listener");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, answers: Rc<Answers>, place: Slot) {
    let deadline = Rc::new(Deadline::new());
    let shared = Rc::clone(&deadline);
    let (app, write_timeout) = (Arc::clone(&answers.app), answers.write_timeout);
    let answer = move |request, refusal, peer| {
        let (answers, deadline) = (Rc::clone(&answers), Rc::clone(&shared));
        async move { answers.to(request, refusal, &deadline, &peer).await }
    };
    // Errors on a connection concern only its peer.
    tokio::select! {
        () = serve_connection(stream, place, app, write_timeout, answer) => {}
        () = deadline.over() => {}
    }
}

/// How long a connection may still take.
pub(super) struct Deadline {
    /// `None`: a request that showed the token is being answered.
    until: Cell<Option<Instant>>,
    /// The thread that writes that response, if it is a stream.
    writer: RefCell<Option<JoinHandle<()>>>,
}

impl Deadline {
    fn new() -> Deadline {
        Deadline { until: Cell::new(Some(Instant::now() + CONNECTION_MAX)), writer: RefCell::new(None) }
    }

    async fn over(&self) {
        loop {
            let now = Instant::now();
            match self.until.get() {
                Some(until) if until <= now => return,
                Some(until) => sleep_until(until).await,
                None => {
                    sleep_until(now + WRITER_CHECK_EVERY).await;
                    // The rest of its stream is on the way. The body is not polled while the peer takes nothing, so it
                    // cannot report that it was cut.
                    if self.until.get().is_none() && self.writer.borrow().as_ref().is_some_and(JoinHandle::is_finished)
                    {
                        self.until.set(Some(Instant::now() + CONNECTION_MAX));
                    }
                }
            }
        }
    }
}

/// A request that showed the token, until its response has been made; then the deadline for the next one runs.
pub(super) struct Admitted(Rc<Deadline>);

impl Admitted {
    pub(super) fn by(deadline: &Rc<Deadline>) -> Admitted {
        deadline.until.set(None);
        Admitted(Rc::clone(deadline))
    }

    /// The response is a stream that this thread writes: once it has ended, the peer takes the rest or is cut off.
    pub(super) fn is_written_by(&self, writer: JoinHandle<()>) {
        *self.0.writer.borrow_mut() = Some(writer);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.until.set(Some(Instant::now() + CONNECTION_MAX));
        self.0.writer.take();
    }
}

/// The parts that responses are made of.
struct Answers {
    gather: Gather,
    namespace: Namespace,
    app: Arc<App>,
    hosts: Hosts,
    /// A peer that takes nothing of a response for this long is cut off. One that takes too little of a backup is
    /// detected earlier.
    write_timeout: Duration,
}

impl Answers {
    async fn to(
        &self,
        request: Request<Incoming>,
        refusal: Option<Refusal>,
        deadline: &Rc<Deadline>,
        peer: &Peer,
    ) -> Response<Body> {
        let refused = |refusal: Refusal| {
            let names = &self.app.front.names;
            let id = request_id(request.headers().get(&names.request_id));
            ResponseHead::with_id(names, id).response(Err(refusal))
        };
        if let Some(refusal) = refusal {
            return refused(refusal);
        }
        let named = request.headers().get(header::HOST).map(HeaderValue::as_bytes);
        let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        let is_known = named.into_iter().chain(authority).all(|host| self.hosts.admits(host));
        // Exactly one name, or a proxy before this listener may have checked another one (RFC 9112, 3.2).
        let hosts_count = request.headers().get_all(header::HOST).iter().count();
        if request.uri().path().starts_with(PREFIX) {
            let has_one = hosts_count == 1 || (hosts_count == 0 && request.version() == Version::HTTP_10);
            let wrong =
                if has_one { (!is_known).then_some(Code::MisdirectedRequest) } else { Some(Code::InvalidRequest) };
            return match wrong {
                Some(code) => refused(code.into()),
                None => self.namespace.answer(&self.app.front.names, request, deadline, peer).await,
            };
        }
        if hosts_count > 1 {
            return said(StatusCode::BAD_REQUEST, "A request has one Host header.\n");
        }
        if !is_known {
            return said(StatusCode::MISDIRECTED_REQUEST, "This listener does not accept that host name.\n");
        }
        if request.uri().path() != PATH {
            return said(StatusCode::NOT_FOUND, "This listener has /metrics, and /v1/admin/ with the admin token.\n");
        }
        if request.method() != Method::GET {
            let mut response = said(StatusCode::METHOD_NOT_ALLOWED, "/metrics takes GET.\n");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        match self.gather.text().await {
            Ok(text) => last(Response::new(Body::from(text.into_bytes())), CONTENT_TYPE),
            Err(_) => said(StatusCode::INTERNAL_SERVER_ERROR, "The metrics cannot be encoded.\n"),
        }
    }
}

fn said(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.as_bytes().to_vec()));
    *response.status_mut() = status;
    last(response, HeaderValue::from_static("text/plain; charset=utf-8"))
}

/// Makes the response the last one of its connection.
fn last(mut response: Response<Body>, content_type: HeaderValue) -> Response<Body> {
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
