//! The admin listener: one path, one method, a thread of its own that sleeps until somebody asks. Nobody is asked who he
//! is, so it belongs on loopback or behind something that asks.
//!
//! One connection is one request, and has ten seconds in all; so many at a time. Whatever a peer does, that is what he
//! can take: the server's own threads know nothing of it.

use super::gather::{Gather, Sources};
use crate::http::hosts::Hosts;
use crate::layout;
use crate::thread;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::LocalSet;

/// Connections at a time; further ones wait for a place, in the kernel.
const CONNECTIONS_MAX: usize = 16;
/// From a connection's first byte to its last.
const CONNECTION_MAX: Duration = Duration::from_secs(10);
/// A scrape has a short head.
const BUFFER_BYTES: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
/// After an accept that failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

const PATH: &str = "/metrics";
/// What the text format is called; whoever reads the older one reads this, too.
const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The listener's thread; ends when told to.
pub struct Admin {
    thread: JoinHandle<()>,
    /// Dropped to end it.
    alive: oneshot::Sender<Infallible>,
}

impl Admin {
    /// Serves `listener` from now on.
    ///
    /// # Errors
    /// The system's, when no thread can be made.
    pub fn start(listener: TcpListener, sources: Sources) -> io::Result<Admin> {
        let server = &sources.app.config.server;
        let hosts = Hosts::of(listener.local_addr()?, &server.hosts);
        let (alive, ended) = oneshot::channel();
        let body = move || {
            if let Err(error) = run(listener, sources, hosts, ended) {
                tracing::error!(%error, "there are no metrics any more; serving goes on");
            }
        };
        let lost = || tracing::error!("the thread of the metrics panicked; serving goes on without them");
        Ok(Admin { thread: thread::spawn_spare("admin", body, lost)?, alive })
    }

    /// Ends it; what is being answered is cut off.
    pub fn end(self) {
        drop(self.alive);
        // A panic there was told of.
        let _ = self.thread.join();
    }
}

fn run(listener: TcpListener, sources: Sources, hosts: Hosts, ended: oneshot::Receiver<Infallible>) -> io::Result<()> {
    let runtime = layout::runtime()?;
    let serving = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            _ = ended => Ok(()),
            never = accept(listener, Rc::new(Answers { gather: Gather::new(sources), hosts })) => match never {},
        }
    };
    LocalSet::new().block_on(&runtime, serving)
}

async fn accept(listener: tokio::net::TcpListener, answers: Rc<Answers>) -> Infallible {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await.expect("nobody closes it");
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::task::spawn_local(connection(stream, Rc::clone(&answers), place))),
            Err(error) => {
                tracing::warn!(%error, "accept failed on the admin listener");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, answers: Rc<Answers>, place: OwnedSemaphorePermit) {
    let service = service_fn(move |request| {
        let answers = Rc::clone(&answers);
        async move { Ok::<_, Infallible>(answers.to(&request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).half_close(true).max_buf_size(BUFFER_BYTES).max_headers(HEADERS_MAX);
    builder.timer(TokioTimer::new()).header_read_timeout(CONNECTION_MAX);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    // What goes wrong on a connection is the peer's affair.
    let _ = tokio::time::timeout(CONNECTION_MAX, serving).await;
    drop(place);
}

/// What answers are made of.
struct Answers {
    gather: Gather,
    hosts: Hosts,
}

impl Answers {
    async fn to(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let named = request.headers().get(header::HOST).map(HeaderValue::as_bytes);
        let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        if !named.into_iter().chain(authority).all(|host| self.hosts.admits(host)) {
            return said(StatusCode::MISDIRECTED_REQUEST, "This listener is not known by that host name.\n");
        }
        if request.uri().path() != PATH {
            return said(StatusCode::NOT_FOUND, "There is /metrics here and nothing else.\n");
        }
        if request.method() != Method::GET {
            let mut response = said(StatusCode::METHOD_NOT_ALLOWED, "/metrics takes GET.\n");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        match self.gather.text().await {
            Ok(text) => {
                let mut response = Response::new(Full::from(text));
                response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
                response
            }
            Err(_) => said(StatusCode::INTERNAL_SERVER_ERROR, "The figures cannot be written.\n"),
        }
    }
}

fn said(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
