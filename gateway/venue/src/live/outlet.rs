//! Passes captures of the adapters to the recording, if there is one, and to the feed, which is woken.

use super::capture::{Capture, Payload, Source};
use super::health::Health;
use super::recorder::RecordSender;
use super::{pages, queue};
use crate::tape::Origin;
use engine::book::SINGLE_ANSWERS;
use engine::time::Timestamp;
use host::clock::Clock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// The part that all adapters of a process share.
pub struct Outlet {
    clock: Clock,
    captures: queue::Sender,
    feed: Arc<FeedWaker>,
    recording: Option<RecordSender>,
    /// Number of the next connection; connections beyond the largest number share it.
    next_number: AtomicU8,
}

/// Wakes the thread that takes captures; set when that thread polls for the first time.
#[derive(Default)]
pub struct FeedWaker(OnceLock<Thread>);

impl FeedWaker {
    /// Called by the thread that takes captures.
    pub fn is_me(&self) {
        self.0.get_or_init(std::thread::current);
    }

    fn wake(&self) {
        if let Some(feed) = self.0.get() {
            feed.unpark();
        }
    }
}

/// The feed has ended: the process is stopping.
#[derive(Debug)]
pub struct Closed;

impl Outlet {
    pub(crate) fn new(
        clock: Clock,
        captures: queue::Sender,
        feed: Arc<FeedWaker>,
        recording: Option<RecordSender>,
    ) -> Outlet {
        Outlet { clock, captures, feed, recording, next_number: AtomicU8::new(0) }
    }

    /// Server time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A port for one connection of a venue. `name` is its name in recordings.
    pub fn port(self: &Arc<Outlet>, origin: Origin, name: &str, health: &Arc<Health>) -> Port {
        let taken =
            self.next_number.fetch_update(Relaxed, Relaxed, |next| (next + 1 < SINGLE_ANSWERS).then_some(next + 1));
        let number = taken.unwrap_or(SINGLE_ANSWERS - 1);
        self.numbered(origin, number, name, health)
    }

    /// A port for responses that belong to no connection: a book from such a response is as old as the response,
    /// regardless of later captures of the port.
    pub fn answers(self: &Arc<Outlet>, origin: Origin, health: &Arc<Health>) -> Port {
        self.numbered(origin, SINGLE_ANSWERS, "", health)
    }

    fn numbered(self: &Arc<Outlet>, origin: Origin, number: u8, name: &str, health: &Arc<Health>) -> Port {
        let source = Arc::new(Source { origin, number, name: name.into() });
        Port { outlet: self.clone(), source, health: health.clone() }
    }
}

/// A port for tests, and the queue that it writes to.
#[cfg(test)]
pub fn lone_port(clock: Clock) -> (Port, queue::Receiver) {
    let (sender, captures) = queue::queue();
    let outlet = Arc::new(Outlet::new(clock, sender, Arc::default(), None));
    (outlet.port(crate::testing::POLYMARKET, "market-0", &Arc::default()), captures)
}

/// The sender of one connection.
#[derive(Clone)]
pub struct Port {
    outlet: Arc<Outlet>,
    source: Arc<Source>,
    pub health: Arc<Health>,
}

impl Port {
    /// Name of the connection in logs and recordings.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// Passes a text frame.
    pub async fn frame(&self, text: Utf8Bytes) -> Result<(), Closed> {
        self.send(Payload::Frame(text)).await
    }

    /// Passes a REST response. A long page of a catalogue reaches the feed in parts, each in the form of a whole
    /// response.
    pub async fn answer(&self, url: &str, status: u16, body: Utf8Bytes) -> Result<(), Closed> {
        let is_long = status == 200 && body.len() > pages::PART_BYTES && pages::is_catalogue(url);
        let capture = self.stamp(Payload::Answer { url: url.into(), status, body: body.clone() });
        if !is_long {
            return self.pass(capture).await;
        }
        // Off this thread, which serves all sockets.
        let parts = tokio::task::spawn_blocking(move || pages::parts(&body)).await;
        let Ok(Some(parts)) = parts else { return self.pass(capture).await };
        for body in parts {
            let payload = Payload::Answer { url: url.into(), status, body };
            self.outlet.captures.send_part(Capture { payload, ..capture.clone() }).await?;
            self.outlet.feed.wake();
        }
        Ok(())
    }

    /// The state that this connection reported is unknown from now on.
    pub async fn gap(&self, reason: &str) -> Result<(), Closed> {
        self.send(Payload::Gap(reason.into())).await
    }

    /// Passes a pong.
    pub async fn alive(&self) -> Result<(), Closed> {
        self.send(Payload::Alive).await
    }

    /// Records that a message is missing before the next frame. The translator of the feed sees it in that frame; a
    /// recording needs a line for it.
    pub fn missed(&self, reason: &str) {
        self.stamp(Payload::Gap(reason.into()));
    }

    async fn send(&self, payload: Payload) -> Result<(), Closed> {
        let capture = self.stamp(payload);
        self.pass(capture).await
    }

    /// Stamps the capture and passes it to the recording.
    fn stamp(&self, payload: Payload) -> Capture {
        let outlet = &self.outlet;
        let received = outlet.clock.now();
        // A book from a REST call is a sign of life too; a catalogue page is not.
        let is_life = match &payload {
            Payload::Frame(_) | Payload::Alive => true,
            Payload::Answer { url, status, .. } => *status == 200 && is_book(url),
            Payload::Gap(_) => false,
        };
        if is_life {
            self.health.alive(received);
        }
        let capture = Capture { received, source: self.source.clone(), payload };
        if let Some(recording) = &outlet.recording {
            recording.send(&capture);
        }
        capture
    }

    /// Passes the capture to the feed.
    async fn pass(&self, capture: Capture) -> Result<(), Closed> {
        self.outlet.captures.send(capture).await?;
        self.outlet.feed.wake();
        Ok(())
    }
}

/// Whether a call reads order books.
fn is_book(url: &str) -> bool {
    let path = url.split('?').next().unwrap_or_default();
    matches!(path.rsplit('/').next(), Some("book" | "books" | "orderbook"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_venue_is_alive_while_its_books_arrive() {
        let (sender, mut captures) = queue::queue();
        let clock = Clock::fake(Timestamp(1));
        let outlet = Arc::new(Outlet::new(clock.clone(), sender, Arc::default(), None));
        let answer = |url: &str, status| Payload::Answer { url: url.into(), status, body: "{}".into() };
        let mut cases = 0;
        for (payload, is_life) in [
            (Payload::Frame("{}".into()), true),
            (Payload::Alive, true),
            (Payload::Gap("closed".into()), false),
            (answer("https://host/book?token_id=1", 200), true),
            (answer("https://host/books", 200), true),
            (answer("https://host/trade-api/v2/markets/KX-1/orderbook?depth=0", 200), true),
            // A catalogue may respond while trading has stopped.
            (answer("https://host/markets?limit=100", 200), false),
            (answer("https://host/events/book-of-the-year", 200), false),
            (answer("https://host/markets?slug=/book", 200), false),
            // An error response is not a book.
            (answer("https://host/book?token_id=1", 404), false),
            (answer("https://host/books", 429), false),
            (answer("https://host/books", 503), false),
        ] {
            let health = Arc::new(Health::starting(Timestamp(1)));
            let port = outlet.port(crate::testing::POLYMARKET, "market-1", &health);
            clock.set(clock.now().plus(1_000_000));
            let what = format!("{payload:?}");
            port.send(payload).await.expect("the queue is open");
            assert_eq!(!health.is_out(clock.now(), 500_000), is_life, "{what}");
            assert!(captures.next().is_some(), "the feed gets it in every case: {what}");
            cases += 1;
        }
        println!("signs of life: {cases} cases");
    }
}
