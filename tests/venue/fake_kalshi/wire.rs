//! The stand-in's connections: REST calls with their faults, the signed handshake, and one task for each socket.

use super::state::{Socket, Venue};
use super::words::now_ms;
use super::{Fault, KEY_ID, Mute, PREFIX, SOCKET_PATH, private_key};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rsa::pss::{Signature, VerifyingKey};
use rsa::sha2::Sha256;
use rsa::signature::Verifier;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::{Message, protocol::Role};

/// Interval of the venue's pings.
const PING_EVERY: Duration = Duration::from_millis(50);

pub async fn accept(listener: TcpListener, venue: Arc<Venue>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let venue = venue.clone();
        let serve = service_fn(move |request| {
            let venue = venue.clone();
            async move { Ok::<_, Infallible>(serve(request, venue).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), serve);
        tokio::spawn(connection.with_upgrades());
    }
}

async fn serve(request: Request<Incoming>, venue: Arc<Venue>) -> Response<Full<Bytes>> {
    if request.uri().path() == SOCKET_PATH {
        return shake_hands(request, venue);
    }
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let fault = {
        let mut state = venue.lock();
        state.calls.push((path.clone(), Instant::now()));
        state.fault_for(&path)
    };
    match fault {
        Some(Fault::Status(status)) => return reply(status, "not now"),
        Some(Fault::TooMany) => {
            let mut answer = reply(429, "too many");
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("0"));
            return answer;
        }
        Some(Fault::Body(body)) => return reply(200, &body),
        Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
        None => {}
    }
    let query = request.uri().query().unwrap_or_default();
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let answer = request.uri().path().strip_prefix(PREFIX).and_then(|path| venue.lock().answer(path, &query));
    match answer {
        Some(answer) => reply(200, &answer.to_string()),
        None => reply(404, r#"{"error":{"code":"not_found","message":"not found"}}"#),
    }
}

fn reply(status: u16, body: &str) -> Response<Full<Bytes>> {
    let body = Full::new(Bytes::from(body.to_owned()));
    Response::builder().status(status).body(body).expect("an answer")
}

/// Opens a socket for a valid signature of time, method and path.
fn shake_hands(mut request: Request<Incoming>, venue: Arc<Venue>) -> Response<Full<Bytes>> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let moment = header("kalshi-access-timestamp");
    let signed = || {
        let signature = STANDARD.decode(header("kalshi-access-signature")).ok()?;
        let signature = Signature::try_from(signature.as_slice()).ok()?;
        let text = format!("{moment}GET{SOCKET_PATH}");
        // Requires a salt of the digest's length.
        VerifyingKey::<Sha256>::new(private_key().to_public_key()).verify(text.as_bytes(), &signature).ok()
    };
    let fresh = moment.parse::<u64>().is_ok_and(|at| now_ms().abs_diff(at) < 30_000);
    let known = header("kalshi-access-key") == KEY_ID && fresh && signed().is_some();
    let mut state = venue.lock();
    if !known || state.refuses {
        state.handshakes_refused += 1;
        return reply(401, r#"{"error":{"code":"authentication_error"}}"#);
    }
    drop(state);
    let accept = derive_accept_key(header(SEC_WEBSOCKET_KEY.as_str()).as_bytes());
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            converse(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await, venue).await;
        }
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accept)
        .body(Full::default())
        .expect("an answer")
}

async fn converse(mut socket: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>, venue: Arc<Venue>) {
    let (out, mut outgoing) = mpsc::unbounded_channel();
    let number = {
        let mut state = venue.lock();
        state.sockets_ever += 1;
        let number = state.sockets_ever;
        state.sockets.insert(number, Socket { out, next_sid: 0, subscriptions: BTreeMap::new() });
        number
    };
    let mut pings = tokio::time::interval(PING_EVERY);
    let mut waiting: VecDeque<Message> = VecDeque::new();
    loop {
        let goes_on = tokio::select! {
            message = outgoing.recv() => match message {
                Some(message) => { waiting.push_back(message); true }
                None => false,
            },
            _ = pings.tick() => {
                if venue.lock().mute != Mute::HalfOpen {
                    waiting.push_back(Message::Ping(Bytes::from_static(b"heartbeat")));
                }
                true
            }
            heard = socket.next() => match heard {
                Some(Ok(Message::Text(text))) => {
                    let command: Value = serde_json::from_str(&text).expect("a command is JSON");
                    venue.lock().command(number, &command);
                    true
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => false,
                Some(Ok(_)) => true,
            },
        };
        let mut sent = goes_on;
        while let Some(message) = waiting.pop_front().filter(|_| sent) {
            let closes = matches!(message, Message::Close(_));
            sent = socket.send(message).await.is_ok() && !closes;
        }
        if !sent {
            break;
        }
    }
    venue.lock().sockets.remove(&number);
}
