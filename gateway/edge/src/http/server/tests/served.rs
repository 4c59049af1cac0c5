//! A server with routes of every kind for the time of a test, and peers that send exact bytes.

use crate::http::call::Call;
use crate::http::reply::Reply;
use crate::http::route::{Auth, BodyKind, RateClass, Route, Running};
use crate::http::server::{Connections, serve};
use crate::http::testing::{World, run};
use engine::user::{Permissions, Tier};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

fn echo(call: Call) -> Running {
    Box::pin(async move {
        call.json()?;
        Ok(Reply::object(|o| o.integer("length", call.body.len() as u64)))
    })
}

fn slow(_: Call) -> Running {
    Box::pin(async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        Ok(Reply::json(b"\"slow\"".to_vec()))
    })
}

fn stuck(_: Call) -> Running {
    Box::pin(std::future::pending())
}

fn large(_: Call) -> Running {
    Box::pin(async { Ok(Reply::json(vec![b' '; 32 << 20])) })
}

fn page(_: Call) -> Running {
    Box::pin(async { Ok(Reply::json(vec![b' '; 32 << 10])) })
}

const TABLE: &[Route] = &[
    Route::get("/v1/page", "page").rate(RateClass::Exempt).run(page),
    Route::get("/v1/time", "time").rate(RateClass::Exempt).run(echo),
    Route::get("/v1/slow", "slow").rate(RateClass::Exempt).run(slow),
    Route::get("/v1/stuck", "stuck").rate(RateClass::Exempt).run(stuck),
    Route::get("/v1/large", "large").rate(RateClass::Exempt).run(large),
    Route::post("/v1/echo", "echo").rate(RateClass::Exempt).body(BodyKind::Optional).run(echo),
    Route::post("/v1/keyed", "keyed").auth(Auth::Key).run(echo),
];

/// The same routes, on the fast path.
pub const HEADLESS: &[Route] = &[
    Route::get("/v1/page", "page").rate(RateClass::Exempt).headless().run(page),
    Route::get("/v1/time", "time").rate(RateClass::Exempt).headless().run(echo),
    Route::get("/v1/slow", "slow").rate(RateClass::Exempt).headless().run(slow),
    Route::get("/v1/stuck", "stuck").rate(RateClass::Exempt).headless().run(stuck),
    Route::get("/v1/large", "large").rate(RateClass::Exempt).headless().run(large),
    Route::post("/v1/echo", "echo").rate(RateClass::Exempt).body(BodyKind::Optional).headless().run(echo),
    Route::post("/v1/keyed", "keyed").auth(Auth::Key).headless().run(echo),
];

/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Served {
    pub address: std::net::SocketAddr,
    pub stop: watch::Sender<bool>,
    pub connections: Arc<Connections>,
    pub server: tokio::task::JoinHandle<usize>,
}

/// Serves the table with this configuration while the test runs: once with hyper alone, once with the fast path.
pub fn with_server(toml: &str, test: impl AsyncFn(Served)) {
    for table in [TABLE, HEADLESS] {
        serve_table(toml, table, &test);
    }
}

pub fn serve_table(toml: &str, table: &'static [Route], test: impl AsyncFn(Served)) {
    let world = World::new(toml, &[table]);
    world.key(Tier::Enterprise, Permissions::ReadTrade);
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        let connections = Arc::new(Connections::new(&world.edge.app.front.settings));
        let serving = serve(listener, Rc::clone(&world.edge), Arc::clone(&connections), stopping);
        let server = tokio::task::spawn_local(serving);
        test(Served { address, stop, connections, server }).await;
    })
}

impl Served {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes on a new connection and reads until the server closes it.
    pub async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The server may close before it has read everything. The test sees that in the response.
        let _ = stream.write_all(bytes).await;
        text_until_closed(&mut stream).await
    }
}

pub async fn text_until_closed(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = async {
        let mut piece = [0; 4_096];
        while let Ok(count @ 1..) = stream.read(&mut piece).await {
            bytes.extend_from_slice(&piece[..count]);
        }
    };
    let closed = tokio::time::timeout(PATIENCE, read).await;
    assert!(closed.is_ok(), "still open after: {}", String::from_utf8_lossy(&bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Statuses of the responses in a text.
pub fn statuses(text: &str) -> Vec<u16> {
    let lines = text.lines().filter_map(|line| line.split("HTTP/1.1 ").nth(1).or(line.split("HTTP/1.0 ").nth(1)));
    lines.filter_map(|rest| rest.get(..3)?.parse().ok()).collect()
}
