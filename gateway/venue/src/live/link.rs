//! One socket to a venue, kept open: connect, say what is wanted, hear, notice death, wait, connect again.
//!
//! What is said and understood is the adapter's ([`Talk`]); how a connection lives and dies is the same for all
//! (upstream.md §5).

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

/// How long a connection may take to be made, and a frame to be written.
const CONNECT_MAX: Duration = Duration::from_secs(10);
const WRITE_MAX: Duration = Duration::from_secs(10);
/// Longest message that is read: an initial dump of 400 tokens is a few megabytes.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A socket and how it is kept.
pub struct Link {
    pub url: String,
    pub port: Port,
    pub pace: Pace,
    /// A text that is sent every so often, where the venue wants one.
    pub ping: Option<(Duration, &'static str)>,
}

/// What is said on a socket.
pub trait Talk: Send {
    /// What may change about it while it lives.
    type Change: Send;

    /// Headers of the handshake, made for each attempt.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    /// What to say first on a fresh connection.
    fn open(&mut self, out: &mut Vec<String>);

    /// The connection that was opened has ended.
    fn closed(&mut self) {}

    /// Takes a change over; what to say about it, if the connection is open.
    fn change(&mut self, change: Self::Change, out: &mut Vec<String>);

    /// Sees a text before the feed does. May answer; an error breaks the connection for that reason.
    fn hear(&mut self, text: &str, out: &mut Vec<String>) -> Result<(), String> {
        let _ = (text, out);
        Ok(())
    }

    /// What is missing before the text just heard, where that shows in it and nowhere else.
    fn missed(&mut self) -> Option<&'static str> {
        None
    }

    /// Whether there is anything to hear: without it no connection is made, and silence is no sign of death.
    fn listens(&self) -> bool;
}

/// Keeps the socket until nobody can change it any more or the feed is gone.
pub async fn keep<T: Talk>(link: Link, mut talk: T, mut changes: UnboundedReceiver<T::Change>) {
    let mut backoff = Backoff::new(link.pace);
    let mut ignored = Vec::new();
    let mut told = None;
    let mut was_open = false;
    loop {
        while !talk.listens() {
            let Some(change) = changes.recv().await else { return };
            talk.change(change, &mut ignored);
        }
        ignored.clear();
        let opened = Instant::now();
        let mut told_anything = false;
        let ended = match connect(&link, &talk).await {
            Ok(socket) => {
                tracing::info!(connection = link.port.name(), "connected");
                // Nothing that was on its way when the last connection ended belongs to this one.
                if std::mem::replace(&mut was_open, true) && link.port.gap("connected anew").await.is_err() {
                    return;
                }
                link.port.health.connections.fetch_add(1, Relaxed);
                told_anything = true;
                let ended = converse(&link, &mut talk, &mut changes, socket).await;
                talk.closed();
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
        if told_anything && link.port.gap(&reason).await.is_err() {
            return;
        }
        let wait = backoff.next(opened.elapsed());
        let again_in_ms = wait.as_millis() as u64;
        // What goes on for the same reason is told once.
        if opened.elapsed() < link.pace.reconnect_max && told.as_ref() == Some(&reason) {
            tracing::debug!(connection = link.port.name(), %reason, again_in_ms, "not connected");
        } else {
            tracing::warn!(connection = link.port.name(), %reason, again_in_ms, "not connected");
        }
        told = Some(reason);
        let again = Instant::now() + wait;
        // Changes are taken meanwhile, so that what is said first is what is wanted then.
        loop {
            tokio::select! {
                () = sleep_until(again) => break,
                change = changes.recv() => match change {
                    Some(change) => talk.change(change, &mut ignored),
                    None => return,
                },
            }
        }
    }
}

/// Why a conversation ended.
enum End {
    Broken(String),
    /// Nothing is wanted on it any more.
    Idle,
    /// Nobody wants anything any more.
    Over,
}

impl From<Closed> for End {
    fn from(Closed: Closed) -> End {
        End::Over
    }
}

async fn connect(link: &Link, talk: &impl Talk) -> Result<Socket, String> {
    let mut request = link.url.as_str().into_client_request().map_err(|error| error.to_string())?;
    request.headers_mut().extend(talk.headers());
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES_MAX)).max_frame_size(Some(MESSAGE_BYTES_MAX));
    match timeout(CONNECT_MAX, connect_async_with_config(request, Some(config), true)).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(Error::Http(answer))) => Err(format!("the venue answered {}", answer.status())),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer to the handshake".into()),
    }
}

/// Speaks and hears until the connection ends.
async fn converse<T: Talk>(
    link: &Link,
    talk: &mut T,
    changes: &mut UnboundedReceiver<T::Change>,
    mut socket: Socket,
) -> End {
    let Link { port, pace, .. } = link;
    let mut out = Vec::new();
    talk.open(&mut out);
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
                let listened = talk.listens();
                talk.change(change, &mut out);
                match (listened, talk.listens()) {
                    (_, false) => return End::Idle,
                    // What comes now counts from now.
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
                let heard = talk.hear(&text, &mut out);
                if let Some(reason) = talk.missed() {
                    port.missed(reason);
                }
                if port.frame(text).await.is_err() {
                    return End::Over;
                }
                if let Err(reason) = heard {
                    return End::Broken(reason);
                }
            }
            // The library answers pings by itself, at the next write or read.
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
        Err(_) => Err("the venue does not read".into()),
    }
}

/// Waits between attempts: doubling, with jitter, from the first again once a connection has lasted.
pub struct Backoff {
    pace: Pace,
    next: Duration,
}

impl Backoff {
    pub fn new(pace: Pace) -> Backoff {
        Backoff { pace, next: pace.reconnect_first }
    }

    /// How long to wait behind a connection that lasted for so long: between half and the whole of the current step.
    pub fn next(&mut self, lasted: Duration) -> Duration {
        if lasted >= self.pace.reconnect_max {
            self.next = self.pace.reconnect_first;
        }
        let step = self.next;
        self.next = (step * 2).min(self.pace.reconnect_max);
        step / 2 + (step / 2).mul_f64(chance())
    }
}

/// A number from 0 to 1, so that many clients do not come back together.
fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says one text on each connection.
    struct Says(&'static str);

    impl Talk for Says {
        type Change = std::convert::Infallible;

        fn open(&mut self, out: &mut Vec<String>) {
            out.push(self.0.into());
        }

        fn change(&mut self, change: Self::Change, _: &mut Vec<String>) {
            match change {}
        }

        fn listens(&self) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn what_crosses_a_reconnect_is_told_to_be_broken_before_the_first_frame() {
        use crate::live::capture::Heard;
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
                let said = socket.next().await.unwrap().unwrap();
                socket.send(said).await.unwrap();
                socket.close(None).await.unwrap();
            }
        };
        let told = async {
            let mut told = Vec::new();
            while told.len() < 5 {
                match captures.next().map(|capture| capture.heard) {
                    Some(Heard::Frame(text)) => told.push(text.to_string()),
                    Some(Heard::Gap(reason)) => told.push(format!("gap: {reason}")),
                    Some(_) => {}
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
            told
        };
        let told = tokio::select! {
            () = keep(Link { url, port, pace, ping: None }, Says("hello"), receiver) => panic!("it goes on"),
            (told, ()) = async { tokio::join!(told, echoes) } => told,
        };
        let closed = "gap: closed by the venue";
        let begins = ["hello", closed, "gap: connected anew", "hello", closed];
        assert!(told.iter().zip(begins).all(|(told, begin)| told.starts_with(begin)), "{told:?}");
        println!("captures of two connections: {} cases", told.len());
    }

    #[test]
    fn waits_double_up_to_their_bound_and_start_again_behind_a_connection_that_lasted() {
        let pace = Pace::default();
        let mut backoff = Backoff::new(pace);
        let mut steps = vec![];
        for lasted in [0, 0, 0, 0, 0, 0, 0, 0, 0, 30, 1] {
            steps.push((lasted, backoff.next(Duration::from_secs(lasted))));
        }
        let whole_ms = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 250, 500];
        for ((lasted, wait), whole_ms) in steps.iter().zip(whole_ms) {
            let whole = Duration::from_millis(whole_ms);
            assert!((whole / 2..=whole).contains(wait), "behind {lasted} s: {wait:?} of {whole:?}");
        }
        println!("waits: {} cases", steps.len());
    }
}
