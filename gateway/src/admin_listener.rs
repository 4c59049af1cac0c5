//! The admin listener (`[admin] listen`): `/metrics` for monitors, and the admin namespace for operators, whose routes
//! are in the package `admin`. Its thread sleeps until a request comes.
//!
//! | File | Holds |
//! |---|---|
//! | `node.rs` | this server as the admin namespace sees it |
//! | `answer.rs` | replies and refusals of the namespace as responses |
//!
//! `/metrics` is open to every client that reaches the listener, and each such connection serves one request. A
//! connection has ten seconds in all until it has shown the admin token; from then on ten seconds for each request, not
//! counting its response. The number of connections is bounded; at the bound, the longest one without a request in
//! flight ends. A peer cannot use more than that, and the server's own threads are not affected. Heads are read like
//! those of the server's own listener.

mod answer;
mod node;

use crate::backup::Running;
use crate::config::Secret;
use crate::metrics::gather::{Gather, Sources};
use admin::{CONNECTION_MAX, Deadline, Namespace, PREFIX, Token};
use edge::app::App;
use edge::http::body::Body;
use edge::http::code::Code;
use edge::http::hosts::Hosts;
use edge::http::names::Names;
use edge::http::pipeline::{request_id, wants_details};
use edge::http::reply::Refusal;
use edge::http::response_head::{Cache, ResponseHead};
use edge::http::server::gate::{Peer, serve_connection};
use edge::http::server::{Connections, Slot};
use host::thread;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use node::ServerNode;
pub use node::{command, done};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::sleep;

/// Connections at a time. The next one replaces the longest idle one; if none is idle it waits, and later ones wait in
/// the kernel.
const CONNECTIONS_MAX: usize = 16;
/// How often it then checks for a free place.
const PLACE_CHECK_EVERY: Duration = Duration::from_millis(20);
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
        let node = ServerNode::new(sources.app.clone(), running, sources.inboxes.clone(), sources.instruments.clone());
        let namespace = Namespace::new(Token::of(token), node, config.admin.slow_peer);
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
    namespace: Namespace<ServerNode>,
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
    let deadline = Rc::new(Deadline::begin());
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

/// The parts that responses are made of.
struct Answers {
    gather: Gather,
    namespace: Namespace<ServerNode>,
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
                None => self.of_namespace(&self.app.front.names, request, deadline, peer).await,
            };
        }
        if hosts_count > 1 {
            return plain_text(StatusCode::BAD_REQUEST, "A request has one Host header.\n");
        }
        if !is_known {
            return plain_text(StatusCode::MISDIRECTED_REQUEST, "This listener does not accept that host name.\n");
        }
        if request.uri().path() != PATH {
            return plain_text(
                StatusCode::NOT_FOUND,
                "This listener has /metrics, and /v1/admin/ with the admin token.\n",
            );
        }
        if request.method() != Method::GET {
            let mut response = plain_text(StatusCode::METHOD_NOT_ALLOWED, "/metrics takes GET.\n");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        match self.gather.text().await {
            Ok(text) => last(Response::new(Body::from(text.into_bytes())), CONTENT_TYPE),
            Err(_) => plain_text(StatusCode::INTERNAL_SERVER_ERROR, "The metrics cannot be encoded.\n"),
        }
    }

    /// The response to a request of the admin namespace.
    async fn of_namespace(
        &self,
        names: &Names,
        request: Request<Incoming>,
        deadline: &Rc<Deadline>,
        peer: &Peer,
    ) -> Response<Body> {
        let headers = request.headers();
        let mut head = ResponseHead::with_id(names, request_id(headers.get(&names.request_id)));
        head.verbose = wants_details(names, headers);
        head.is_head = request.method() == Method::HEAD;
        (head.cache, head.private) = (Cache::ByCredential, true);
        let answered = self.namespace.answer(request, deadline, || peer.is_watched()).await;
        head.response(answer::outcome(answered))
    }
}

fn plain_text(status: StatusCode, text: &'static str) -> Response<Body> {
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
