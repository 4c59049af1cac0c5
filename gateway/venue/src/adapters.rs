//! Live venues: adapters read sockets and make REST calls on a thread of their own. The feed translates the captured
//! messages with the translators that replay uses, and sends requests back to the adapters.
//!
//! ```text
//!  sockets ─► link ─┐                     ┌─► recorder (lines of gateway/docs/live-venues.md §7)
//!                   ├─► outlet: captures ─┤
//!  REST ───► fetch ─┘                     └─► Live::poll ─► translators ─► frames ─► feed
//!     ▲                                            │
//!     └───────── adapters (stream.rs) ◄ requests ◄─┴─ roster
//! ```
//!
//! [`ADAPTERS`] has a row for each venue.

use super::VenueConfig;
use super::category::Names;
use super::doctor::Doctor;
use super::kalshi;
use super::live::capture::{Capture, Payload};
use super::live::outlet::FeedWaker;
use super::live::roster::Roster;
use super::live::shelf::Shelf;
use super::live::{Health, Outlet, Pace, Recorder, Request, Subject, Tools, fetch_client, queue};
use super::origin::{Origin, Origins};
use super::polymarket;
use super::settings::{Row, Values};
use super::skips::Skips;
use super::translators::{Source, Translator, Translators};
use super::{FeedUpdate, Frame, NO_CONNECTION, Outages, Polled, Upstream, Venue};
use engine::market::Market;
use engine::market::terms::{self, Listing};
use engine::time::Timestamp;
use host::clock::Clock;
use host::thread;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{mpsc, oneshot};

/// Most captures that one poll hands out, and the amount of text after which it stops, so that a poll takes a few
/// milliseconds.
const CAPTURES_PER_POLL_MAX: usize = 1_024;
const BYTES_PER_POLL: usize = 256 << 10;
/// Most markets in one status request.
const STATUS_MARKETS_MAX: usize = 500;

/// How live venues are reached and what is stored about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The settings of each venue.
    pub venues: Values,
    pub pace: Pace,
    /// Folder of the recording, if captures are recorded.
    pub recording: Option<PathBuf>,
    /// Folder for what a start without the venue needs beyond the journal, if it is stored.
    pub shelf: Option<PathBuf>,
    /// The fees of markets are requested where the catalogue does not have them.
    pub follows_fees: bool,
}

/// A live venue.
pub struct Registration {
    /// The origin of its markets.
    pub venue: terms::Venue,
    /// Its settings.
    pub settings: &'static [Row],
    /// Most markets whose books are followed.
    pub markets_max: fn(&Values) -> usize,
    /// The file of [`Translator::kept_rows`], if it has any.
    pub kept: Option<&'static str>,
    /// Makes its translator, without markets.
    pub translator: fn(Source, Arc<Skips>, Names) -> Box<dyn Translator>,
    /// Makes its adapter; called before the runtime exists.
    pub adapter: fn(&Settings) -> io::Result<Start>,
    /// Checks from this machine that the venue behaves as expected.
    pub examine: for<'a> fn(&'a mut Doctor<'_>, &'a VenueConfig) -> Examination<'a>,
}

/// An adapter that is ready to run; it ends when the request channel closes.
pub type Start = Box<dyn FnOnce(Tools, UnboundedReceiver<Request>) -> Pin<Box<dyn Future<Output = ()> + Send>>>;

/// The checks of one venue. An error: credentials that cannot be read.
pub type Examination<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + 'a>>;

/// The live venues, in the order in which settings and messages name them.
pub const ADAPTERS: &[Registration] = &[polymarket::ADAPTER, kalshi::ADAPTER];

/// All live venues as one [`Venue`].
pub struct Live {
    translators: Translators,
    captures: queue::Receiver,
    /// Taken from the queue and not due yet.
    held: Option<Capture>,
    feed: Arc<FeedWaker>,
    roster: Roster,
    /// What is stored for the next start, by venue.
    shelves: Vec<(Origin, Shelf)>,
    adapters: Vec<Adapter>,
    pace: Pace,
    status_requested_at: Timestamp,
    venue_now: Timestamp,
    updates: Vec<FeedUpdate>,
    /// Requests that are not sent yet, and updates that belong to no frame.
    requests: Vec<Request>,
    left: Vec<FeedUpdate>,
    skips: Arc<Skips>,
    /// Ends the adapters' thread when dropped.
    running: Option<Running>,
}

/// One venue's adapter as the feed sees it.
struct Adapter {
    origin: Origin,
    requests: mpsc::UnboundedSender<Request>,
    health: Arc<Health>,
}

struct Running {
    end: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    /// Ends after the adapters, so that their last captures are recorded.
    recorder: Option<Recorder>,
}

impl Live {
    /// Starts the adapters of these venues; hands out nothing yet.
    ///
    /// # Errors
    /// The thread, the runtime or the recording cannot be created, or roots of trust or credentials cannot be read.
    pub fn start(origins: Origins, settings: Settings, names: &Names, clock: Clock) -> io::Result<Live> {
        // Another part of this process may have installed a provider; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let skips = Arc::new(Skips::default());
        let (sender, captures) = queue::queue();
        let feed = Arc::new(FeedWaker::default());
        let (recorder, recording) = match &settings.recording {
            Some(folder) => {
                let (recorder, record) = Recorder::start(folder, clock.clone())?;
                (Some(recorder), Some(record))
            }
            None => (None, None),
        };
        let client = fetch_client(settings.pace).map_err(io::Error::other)?;
        // Before the runtime exists: a runtime must not be dropped in an async context, and this call may come from
        // one.
        let starts: Vec<(Origin, Start)> = origins
            .iter()
            .map(|origin| Ok((origin, (origin.registration().adapter)(&settings)?)))
            .collect::<io::Result<_>>()?;
        let outlet = Arc::new(Outlet::new(clock.clone(), sender, feed.clone(), recording));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut adapters = Vec::new();
        for (origin, start) in starts {
            let (requests, receiver) = mpsc::unbounded_channel();
            let health = Arc::new(Health::starting(clock.now()));
            adapters.push(Adapter { origin, requests, health: health.clone() });
            let tools = Tools {
                origin,
                client: client.clone(),
                outlet: outlet.clone(),
                health,
                pace: settings.pace,
                clock: clock.clone(),
            };
            drop(runtime.spawn(thread::guard_task(start(tools, receiver))));
        }
        let (end, is_ended) = oneshot::channel::<()>();
        let thread = thread::spawn("venues", move || {
            // The sender is only ever dropped.
            let _ = runtime.block_on(is_ended);
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?;
        let shelf = |origin: Origin| {
            let path = settings.shelf.as_ref()?.join(origin.registration().kept?);
            Some((origin, Shelf::open(path, &skips)))
        };
        Ok(Live {
            translators: Translators::new(Source::Live, &skips, names),
            captures,
            held: None,
            feed,
            roster: Roster::new(ADAPTERS.iter().map(|adapter| (adapter.markets_max)(&settings.venues))),
            shelves: origins.iter().filter_map(shelf).collect(),
            adapters,
            pace: settings.pace,
            status_requested_at: Timestamp::default(),
            venue_now: Timestamp::default(),
            updates: Vec::new(),
            requests: Vec::new(),
            left: Vec::new(),
            skips,
            running: Some(Running { end, thread, recorder }),
        })
    }

    /// The next capture that is not after `until`.
    fn next(&mut self, until: Timestamp) -> Option<Capture> {
        let capture = self.held.take().or_else(|| self.captures.next())?;
        if capture.received > until {
            self.held = Some(capture);
            return None;
        }
        Some(capture)
    }

    fn hand_out(&mut self, capture: &Capture, frame: &mut dyn FnMut(Frame<'_>)) {
        // Timestamps of different connections are not ordered against each other.
        self.venue_now = self.venue_now.max(capture.received);
        let (connection, at) = (capture.source.number, self.venue_now);
        self.updates.clear();
        if let Some(record) = capture.record() {
            self.translators.translate(&record, connection, at, &mut self.updates);
        }
        for update in &self.updates {
            self.roster.note(update, &mut self.requests);
            if let FeedUpdate::Gap { tokens, .. } = update {
                // The adapter sees the gaps of its connections itself; gaps found by folding are seen only here.
                let mut markets: Vec<&Arc<Subject>> =
                    tokens.iter().filter_map(|token| self.roster.by_token(token)).collect();
                markets.dedup();
                markets.iter().for_each(|market| send(&self.adapters, Request::Resync((*market).clone())));
            }
        }
        let translator = self.translators.of(capture.source.origin);
        let announced: Vec<_> = translator.newly_announced().into_iter().filter_map(subject_of).collect();
        if !announced.is_empty() {
            self.requests.push(Request::Status(announced));
        }
        self.send_requests();
        self.updates.append(&mut self.left);
        // Drops a book that was in flight when its market was left: no later message would keep it current.
        let roster = &self.roster;
        self.updates.retain(|update| match update {
            FeedUpdate::BookSnapshot { token, .. } | FeedUpdate::LastPrice { token, .. } => roster.follows(token),
            _ => true,
        });
        let is_answer = matches!(capture.payload, Payload::Answer { .. });
        frame(Frame { connection, received: at, is_answer, updates: &self.updates });
    }

    /// Sends the pending requests to the adapters, and notes the markets that they leave.
    fn send_requests(&mut self) {
        for request in self.requests.drain(..) {
            if let Request::Unsubscribe(subject) = &request {
                // After the next subscription the same book must be handed out again.
                self.translators.of(subject.origin).forget(&subject.tokens);
                self.left.push(FeedUpdate::Left { tokens: subject.tokens.clone() });
            }
            send(&self.adapters, request);
        }
    }

    /// Requests the state of markets that have ended, that users trade, or that only a message announced.
    fn request_status(&mut self, now: Timestamp) {
        if now.since(self.status_requested_at) < self.pace.standing_every.as_micros() as u64 {
            return;
        }
        self.status_requested_at = now;
        let announced = self.translators.iter().flat_map(Translator::announced);
        let announced = announced.filter_map(subject_of);
        let markets: Vec<Arc<Subject>> = self.roster.status_due(now).cloned().chain(announced).collect();
        for adapter in &self.adapters {
            let of: Vec<_> = markets.iter().filter(|subject| subject.origin == adapter.origin).cloned().collect();
            for some in of.chunks(STATUS_MARKETS_MAX) {
                let _ = adapter.requests.send(Request::Status(some.to_vec()));
            }
        }
    }
}

/// A market that is not listed yet, for a request to its adapter.
fn subject_of(listing: &Listing) -> Option<Arc<Subject>> {
    Some(Arc::new(Subject {
        origin: Origin::of(listing.venue)?,
        id: listing.venue_market_id.clone(),
        condition: listing.condition.clone(),
        tokens: listing.tokens.clone(),
    }))
}

/// Sends a request to the adapter of the market's venue. An adapter that has ended has logged it, and its connections
/// age.
fn send(adapters: &[Adapter], request: Request) {
    let origin = match &request {
        Request::Subscribe(subject)
        | Request::Unsubscribe(subject)
        | Request::Resync(subject)
        | Request::Resubscribe(subject) => subject.origin,
        Request::Status(subjects) | Request::Check(subjects) => match subjects.first() {
            Some(subject) => subject.origin,
            None => return,
        },
    };
    if let Some(adapter) = adapters.iter().find(|adapter| adapter.origin == origin) {
        let _ = adapter.requests.send(request);
    }
}

impl Venue for Live {
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled {
        self.feed.is_me();
        let due = server_now.min(until);
        if !self.left.is_empty() {
            let left = std::mem::take(&mut self.left);
            frame(Frame { connection: NO_CONNECTION, received: self.venue_now, is_answer: false, updates: &left });
        }
        let (mut captures, mut bytes) = (0, 0);
        while captures < CAPTURES_PER_POLL_MAX && bytes < BYTES_PER_POLL {
            let Some(capture) = self.next(due) else {
                self.venue_now = self.venue_now.max(due);
                self.request_status(server_now);
                for (origin, shelf) in &mut self.shelves {
                    shelf.turn(server_now, || self.translators.of(*origin).kept_rows());
                }
                let wake_at = self.held.as_ref().map_or(until, |held| held.received.min(until));
                return Polled { venue_now: self.venue_now, wake_at: Some(wake_at) };
            };
            self.hand_out(&capture, frame);
            (captures, bytes) = (captures + 1, bytes + capture.text_bytes());
        }
        Polled { venue_now: self.venue_now, wake_at: Some(server_now) }
    }

    fn drives_clock(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.adapters.iter().map(|adapter| adapter.origin.name()).collect();
        format!("live: {}", names.join(" and "))
    }

    fn recall(&mut self, market: &Market) {
        let Some(origin) = Origin::of(market.listing.venue) else { return };
        if !self.adapters.iter().any(|adapter| adapter.origin == origin) {
            return;
        }
        let shelf = self.shelves.iter().find(|(of, _)| *of == origin);
        let kept = shelf.and_then(|(_, shelf)| shelf.row(&market.listing.venue_market_id));
        self.translators.of(origin).recall(market, kept);
        self.roster.recall(market, &mut self.requests);
        self.send_requests();
    }

    fn stake(&mut self, condition: &str) {
        self.roster.stake(condition, &mut self.requests);
        self.send_requests();
    }

    fn resync(&mut self, token: &str) {
        if let Some(subject) = self.roster.by_token(token) {
            send(&self.adapters, Request::Resync(subject.clone()));
        }
    }

    fn check(&mut self, tokens: &[&str]) {
        let subjects = tokens.iter().filter_map(|token| self.roster.by_token(token).cloned());
        send(&self.adapters, Request::Check(subjects.collect()));
    }

    fn resubscribe(&mut self, token: &str) {
        if let Some(subject) = self.roster.by_token(token) {
            self.translators.of(subject.origin).forget(&subject.tokens);
            send(&self.adapters, Request::Resubscribe(subject.clone()));
        }
    }

    fn outages(&self, server_now: Timestamp) -> Outages {
        let after = self.pace.outage_after.as_micros() as u64;
        let mut outages = Outages { all: true, no_contact: true, ..Outages::default() };
        for adapter in &self.adapters {
            let is_out = adapter.health.is_out(server_now, after);
            if is_out {
                outages.out.insert(adapter.origin);
            }
            outages.all &= is_out;
            outages.no_contact &= !adapter.health.was_alive();
        }
        outages
    }

    fn has_news(&self) -> bool {
        self.held.is_none() && !self.captures.is_empty()
    }

    fn upstream(&self) -> Upstream {
        Upstream {
            venues: self.adapters.iter().map(|adapter| (adapter.origin, adapter.health.clone())).collect(),
            skips: Some(self.skips.clone()),
            recording: self.running.as_ref().and_then(|running| Some(running.recorder.as_ref()?.figures())),
            playback: None,
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        for (origin, shelf) in &mut self.shelves {
            shelf.end(self.translators.of(*origin).kept_rows());
        }
        if let Some(Running { end, thread, .. }) = self.running.take() {
            // Wakes adapters that wait for room with an error.
            self.captures.close();
            drop(end);
            // A panic of the thread has been logged already.
            let _ = thread.join();
        }
    }
}
