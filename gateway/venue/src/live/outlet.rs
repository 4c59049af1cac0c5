//! The way of what adapters hear: to the recording, if there is one, and to the feed, which is woken.

use super::capture::{Capture, Heard, Source};
use super::health::Health;
use super::recorder::Keep;
use super::{pages, queue};
use crate::tape::Origin;
use engine::book::SINGLE_ANSWERS;
use engine::time::Timestamp;
use host::clock::Clock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// What all adapters of a process share.
pub struct Outlet {
    clock: Clock,
    captures: queue::Sender,
    feed: Arc<FeedWaker>,
    recording: Option<Keep>,
    /// Next number of a connection; beyond the last one they share it.
    next_number: AtomicU8,
}

/// The thread that takes captures, once it has asked for the first.
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

/// The feed is gone: the process is stopping.
#[derive(Debug)]
pub struct Closed;

impl Outlet {
    pub(crate) fn new(clock: Clock, captures: queue::Sender, feed: Arc<FeedWaker>, recording: Option<Keep>) -> Outlet {
        Outlet { clock, captures, feed, recording, next_number: AtomicU8::new(0) }
    }

    /// Server time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A port for one connection of a venue. `name` is that of recordings.
    pub fn port(self: &Arc<Outlet>, origin: Origin, name: &str, health: &Arc<Health>) -> Port {
        let taken =
            self.next_number.fetch_update(Relaxed, Relaxed, |next| (next + 1 < SINGLE_ANSWERS).then_some(next + 1));
        let number = taken.unwrap_or(SINGLE_ANSWERS - 1);
        self.numbered(origin, number, name, health)
    }

    /// A port for answers that belong to no connection: a book that came by one is as old as that answer, whatever
    /// else comes here.
    pub fn answers(self: &Arc<Outlet>, origin: Origin, health: &Arc<Health>) -> Port {
        self.numbered(origin, SINGLE_ANSWERS, "", health)
    }

    fn numbered(self: &Arc<Outlet>, origin: Origin, number: u8, name: &str, health: &Arc<Health>) -> Port {
        let source = Arc::new(Source { origin, number, name: name.into() });
        Port { outlet: self.clone(), source, health: health.clone() }
    }
}

/// A port by itself, and where what is said into it comes out.
#[cfg(test)]
pub fn lone_port(clock: Clock) -> (Port, queue::Receiver) {
    let (sender, captures) = queue::queue();
    let outlet = Arc::new(Outlet::new(clock, sender, Arc::default(), None));
    (outlet.port(Origin::Polymarket, "market-0", &Arc::default()), captures)
}

/// What one connection speaks into.
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

    /// A text frame.
    pub async fn frame(&self, text: Utf8Bytes) -> Result<(), Closed> {
        self.say(Heard::Frame(text)).await
    }

    /// A REST answer. A long page of a catalogue comes to the feed in parts, each as if it were the answer.
    pub async fn answer(&self, url: &str, status: u16, body: Utf8Bytes) -> Result<(), Closed> {
        let is_long = status == 200 && body.len() > pages::PART_BYTES && pages::is_catalogue(url);
        let capture = self.keep(Heard::Answer { url: url.into(), status, body: body.clone() });
        if !is_long {
            return self.pass(capture).await;
        }
        // Not here, where all sockets are heard.
        let parts = tokio::task::spawn_blocking(move || pages::parts(&body)).await;
        let Ok(Some(parts)) = parts else { return self.pass(capture).await };
        for body in parts {
            let heard = Heard::Answer { url: url.into(), status, body };
            self.outlet.captures.send_part(Capture { heard, ..capture.clone() }).await?;
            self.outlet.feed.wake();
        }
        Ok(())
    }

    /// What this connection told is unknown from now on.
    pub async fn gap(&self, reason: &str) -> Result<(), Closed> {
        self.say(Heard::Gap(reason.into())).await
    }

    /// A pong.
    pub async fn alive(&self) -> Result<(), Closed> {
        self.say(Heard::Alive).await
    }

    /// Something is missing before the frame that comes next, as whoever translates that one will find out: a line for
    /// the recording, which cannot see it.
    pub fn missed(&self, reason: &str) {
        self.keep(Heard::Gap(reason.into()));
    }

    async fn say(&self, heard: Heard) -> Result<(), Closed> {
        let capture = self.keep(heard);
        self.pass(capture).await
    }

    /// Gives it to the recording, stamped.
    fn keep(&self, heard: Heard) -> Capture {
        let outlet = &self.outlet;
        let received = outlet.clock.now();
        // A book is heard, whichever way it comes; a catalogue that answers is none.
        let is_life = match &heard {
            Heard::Frame(_) | Heard::Alive => true,
            Heard::Answer { url, status, .. } => *status == 200 && is_book(url),
            Heard::Gap(_) => false,
        };
        if is_life {
            self.health.alive(received);
        }
        let capture = Capture { received, source: self.source.clone(), heard };
        if let Some(recording) = &outlet.recording {
            recording.keep(&capture);
        }
        capture
    }

    /// Gives it to the feed.
    async fn pass(&self, capture: Capture) -> Result<(), Closed> {
        self.outlet.captures.send(capture).await?;
        self.outlet.feed.wake();
        Ok(())
    }
}

/// Whether a call asks for order books.
fn is_book(url: &str) -> bool {
    let path = url.split('?').next().unwrap_or_default();
    matches!(path.rsplit('/').next(), Some("book" | "books" | "orderbook"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_venue_lives_as_long_as_its_books_are_heard() {
        let (sender, mut captures) = queue::queue();
        let clock = Clock::fake(Timestamp(1));
        let outlet = Arc::new(Outlet::new(clock.clone(), sender, Arc::default(), None));
        let answer = |url: &str, status| Heard::Answer { url: url.into(), status, body: "{}".into() };
        let mut cases = 0;
        for (heard, is_life) in [
            (Heard::Frame("{}".into()), true),
            (Heard::Alive, true),
            (Heard::Gap("closed".into()), false),
            (answer("https://host/book?token_id=1", 200), true),
            (answer("https://host/books", 200), true),
            (answer("https://host/trade-api/v2/markets/KX-1/orderbook?depth=0", 200), true),
            // A catalogue goes on while trading stands still.
            (answer("https://host/markets?limit=100", 200), false),
            (answer("https://host/events/book-of-the-year", 200), false),
            (answer("https://host/markets?slug=/book", 200), false),
            // What refuses is no book.
            (answer("https://host/book?token_id=1", 404), false),
            (answer("https://host/books", 429), false),
            (answer("https://host/books", 503), false),
        ] {
            let health = Arc::new(Health::starting(Timestamp(1)));
            let port = outlet.port(Origin::Polymarket, "market-1", &health);
            clock.set(clock.now().plus(1_000_000));
            let what = format!("{heard:?}");
            port.say(heard).await.expect("somebody takes captures");
            assert_eq!(!health.is_out(clock.now(), 500_000), is_life, "{what}");
            assert!(captures.next().is_some(), "the feed hears of it, life or not: {what}");
            cases += 1;
        }
        println!("signs of life: {cases} cases");
    }
}
