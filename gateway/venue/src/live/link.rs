//! A socket to a venue that is kept open: it connects, subscribes, receives, detects a dead connection, waits and
//! connects again.
//!
//! Texts are sent and understood by the adapter's [`Protocol`]; the life of a connection is the same for all
//! (gateway/docs/live-venues.md §5).

use super::outlet::{Closed, Port};
use super::pace::Pace;
use futures_util::{SinkExt, StreamExt};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// Timeout of connecting, and of writing a frame.
const CONNECT_MAX: Duration = Duration::from_secs(10);
const WRITE_MAX: Duration = Duration::from_secs(10);
/// Longest message that is read, in bytes: the first books of 400 tokens take a few megabytes.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A socket and its parameters.
pub struct Link {
    pub url: String,
    pub port: Port,
    pub pace: Pace,
    /// A text to send at an interval, if the venue requires one.
    pub ping: Option<(Duration, &'static str)>,
}

/// The texts of one socket.
pub trait Protocol: Send {
    /// A change of the subscriptions while the socket is in use.
    type Change: Send;

    /// Headers of the handshake, made for each attempt.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    /// Appends the first texts of a fresh connection.
    fn open(&mut self, out: &mut Vec<String>);

    /// The connection has ended.
    fn closed(&mut self) {}

    /// Applies a change, and appends the texts for an open connection.
    fn change(&mut self, change: Self::Change, out: &mut Vec<String>);

    /// Sees a text before the feed does, and may append answers. An error breaks the connection with that reason.
    fn receive(&mut self, text: &str, out: &mut Vec<String>) -> Result<(), String> {
        let _ = (text, out);
        Ok(())
    }

    /// The reason of a gap before the last received text, where only that text shows it.
    fn missed(&mut self) -> Option<&'static str> {
        None
    }

    /// Whether anything is subscribed. If not, no connection is made and silence is not a fault.
    fn is_subscribed(&self) -> bool;
}

/// Runs the socket until the sender of changes or the feed is gone.
pub async fn run_link<T: Protocol>(link: Link, mut protocol: T, mut changes: UnboundedReceiver<T::Change>) {
    let mut backoff = Backoff::new(link.pace);
    let mut ignored = Vec::new();
    let mut last_reason = None;
    let mut was_open = false;
    loop {
        while !protocol.is_subscribed() {
            let Some(change) = changes.recv().await else { return };
            protocol.change(change, &mut ignored);
        }
        ignored.clear();
        let opened = Instant::now();
        let mut was_connected = false;
        let ended = match connect(&link, &protocol).await {
            Ok(socket) => {
                tracing::info!(connection = link.port.name(), "connected");
                // Captures that were in flight when the last connection ended do not belong to this one.
                if std::mem::replace(&mut was_open, true) && link.port.gap("reconnected").await.is_err() {
                    return;
                }
                link.port.health.connections.fetch_add(1, Relaxed);
                was_connected = true;
                let ended = exchange(&link, &mut protocol, &mut changes, socket).await;
                protocol.closed();
                link.port.health.connections.fetch_sub(1, Relaxed);
                link.port.health.reconnects.fetch_add(1, Relaxed);
                ended
            }
            Err(reason) => End::Broken(reason),
        };
        let reason = match ended {
            End::Over => return,
            End::Idle => continue,
            End::Broken(reason) => reason,
        };
        if was_connected && link.port.gap(&reason).await.is_err() {
            return;
        }
        let wait = backoff.next(opened.elapsed());
        let again_in_ms = wait.as_millis() as u64;
        // A repeated failure with the same reason is logged once at level `warn`.
        if opened.elapsed() < link.pace.reconnect_max && last_reason.as_ref() == Some(&reason) {
            tracing::debug!(connection = link.port.name(), %reason, again_in_ms, "not connected; the connection is retried");
        } else {
            tracing::warn!(connection = link.port.name(), %reason, again_in_ms, "not connected; the connection is retried");
        }
        last_reason = Some(reason);
        let again = Instant::now() + wait;
        // Changes are applied during the wait, so that the first texts of the next connection are current.
        loop {
            tokio::select! {
                () = sleep_until(again) => break,
                change = changes.recv() => match change {
                    Some(change) => protocol.change(change, &mut ignored),
                    None => return,
                },
            }
        }
    }
}

/// Why a connection ended.
enum End {
    Broken(String),
    /// Nothing is subscribed any more.
    Idle,
    /// The process is stopping.
    Over,
}

impl From<Closed> for End {
    fn from(Closed: Closed) -> End {
        End::Over
    }
}

async fn connect(link: &Link, protocol: &impl Protocol) -> Result<Socket, String> {
    let mut request = link.url.as_str().into_client_request().map_err(|error| error.to_string())?;
    request.headers_mut().extend(protocol.headers());
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES_MAX)).max_frame_size(Some(MESSAGE_BYTES_MAX));
    match timeout(CONNECT_MAX, connect_async_with_config(request, Some(config), true)).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(Error::Http(answer))) => Err(format!("the venue answered {}", answer.status())),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer to the handshake".into()),
    }
}

/// Sends and receives until the connection ends.
async fn exchange<T: Protocol>(
    link: &Link,
    protocol: &mut T,
    changes: &mut UnboundedReceiver<T::Change>,
    mut socket: Socket,
) -> End {
    let Link { port, pace, .. } = link;
    let mut out = Vec::new();
    protocol.open(&mut out);
    let mut last_text = Instant::now();
    let (every, ping) = link.ping.unwrap_or((Duration::from_secs(3_600), ""));
    let mut pings = interval(every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings.tick().await;
    loop {
        for text in out.drain(..) {
            if let Err(reason) = write(&mut socket, Message::text(text)).await {
                return End::Broken(reason);
            }
        }
        let message = tokio::select! {
            message = socket.next() => message,
            change = changes.recv() => {
                let Some(change) = change else { return End::Over };
                let was_subscribed = protocol.is_subscribed();
                protocol.change(change, &mut out);
                match (was_subscribed, protocol.is_subscribed()) {
                    (_, false) => return End::Idle,
                    // Silence counts from the first subscription.
                    (false, true) => last_text = Instant::now(),
                    (true, true) => {}
                }
                continue;
            }
            _ = pings.tick(), if !ping.is_empty() => {
                out.push(ping.into());
                continue;
            }
            () = sleep_until(last_text + pace.silent_after) => {
                return End::Broken(format!("silent for {} ms", pace.silent_after.as_millis()));
            }
        };
        match message {
            Some(Ok(Message::Text(text))) if is_pong(&text) => {
                if port.alive().await.is_err() {
                    return End::Over;
                }
            }
            Some(Ok(Message::Text(text))) => {
                last_text = Instant::now();
                let outcome = protocol.receive(&text, &mut out);
                if let Some(reason) = protocol.missed() {
                    port.missed(reason);
                }
                if port.frame(text).await.is_err() {
                    return End::Over;
                }
                if let Err(reason) = outcome {
                    return End::Broken(reason);
                }
            }
            // The library queues the pong; the flush sends it.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                if port.alive().await.is_err() {
                    return End::Over;
                }
                if let Err(error) = socket.flush().await {
                    return End::Broken(error.to_string());
                }
            }
            Some(Ok(Message::Close(frame))) => {
                let why = frame.map_or_else(String::new, |frame| format!(": {} {}", frame.code, frame.reason));
                return End::Broken(format!("closed by the venue{why}"));
            }
            Some(Ok(Message::Binary(_) | Message::Frame(_))) => {}
            Some(Err(error)) => return End::Broken(error.to_string()),
            None => return End::Broken("the connection ended".into()),
        }
    }
}

fn is_pong(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("pong")
}

async fn write(socket: &mut Socket, message: Message) -> Result<(), String> {
    match timeout(WRITE_MAX, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the venue does not read from the socket".into()),
    }
}

/// Waits between attempts: they double, with jitter, and start again after a connection that lasted.
pub struct Backoff {
    pace: Pace,
    next: Duration,
}

impl Backoff {
    pub fn new(pace: Pace) -> Backoff {
        Backoff { pace, next: pace.reconnect_first }
    }

    /// The wait after a connection that lasted for `lasted`: 50–100 % of the current step.
    pub fn next(&mut self, lasted: Duration) -> Duration {
        if lasted >= self.pace.reconnect_max {
            self.next = self.pace.reconnect_first;
        }
        let step = self.next;
        self.next = (step * 2).min(self.pace.reconnect_max);
        step / 2 + (step / 2).mul_f64(random())
    }
}

/// A random number from 0 to 1. The jitter keeps many clients from reconnecting together.
fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends one text on each connection.
    struct Greeter(&'static str);

    impl Protocol for Greeter {
        type Change = std::convert::Infallible;

        fn open(&mut self, out: &mut Vec<String>) {
            out.push(self.0.into());
        }

        fn change(&mut self, change: Self::Change, _: &mut Vec<String>) {
            match change {}
        }

        fn is_subscribed(&self) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn a_reconnect_reports_a_gap_before_the_first_frame() {
        use crate::live::capture::Payload;
        use crate::live::lone_port;
        use host::clock::Clock;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let (port, mut captures) = lone_port(Clock::fake(engine::time::Timestamp::from_secs(1_788_000_000)));
        let pace = Pace { reconnect_first: Duration::from_millis(2), ..Pace::default() };
        let (_changes, receiver) = tokio::sync::mpsc::unbounded_channel();
        let echoes = async {
            for _ in 0..2 {
                let (stream, _) = listener.accept().await.unwrap();
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                let text = socket.next().await.unwrap().unwrap();
                socket.send(text).await.unwrap();
                socket.close(None).await.unwrap();
            }
        };
        let received = async {
            let mut received = Vec::new();
            while received.len() < 5 {
                match captures.next().map(|capture| capture.payload) {
                    Some(Payload::Frame(text)) => received.push(text.to_string()),
                    Some(Payload::Gap(reason)) => received.push(format!("gap: {reason}")),
                    Some(_) => {}
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
            received
        };
        let received = tokio::select! {
            () = run_link(Link { url, port, pace, ping: None }, Greeter("hello"), receiver) => panic!("the link ended"),
            (received, ()) = async { tokio::join!(received, echoes) } => received,
        };
        let closed = "gap: closed by the venue";
        let prefixes = ["hello", closed, "gap: reconnected", "hello", closed];
        assert!(received.iter().zip(prefixes).all(|(text, prefix)| text.starts_with(prefix)), "{received:?}");
        println!("captures of two connections: {} cases", received.len());
    }

    #[test]
    fn waits_double_up_to_their_bound_and_start_again_after_a_connection_that_lasted() {
        let pace = Pace::default();
        let mut backoff = Backoff::new(pace);
        let mut steps = vec![];
        for lasted in [0, 0, 0, 0, 0, 0, 0, 0, 0, 30, 1] {
            steps.push((lasted, backoff.next(Duration::from_secs(lasted))));
        }
        let whole_ms = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 250, 500];
        for ((lasted, wait), whole_ms) in steps.iter().zip(whole_ms) {
            let whole = Duration::from_millis(whole_ms);
            assert!((whole / 2..=whole).contains(wait), "after {lasted} s: {wait:?} of {whole:?}");
        }
        println!("waits: {} cases", steps.len());
    }
}
