//! Live venues behind the feed: adapters hear sockets and REST calls on a thread of their own, the feed translates what
//! they heard with the translators that replay uses, and tells them what it wants.
//!
//! ```text
//!  sockets ─► link ─┐                     ┌─► recorder (lines of upstream.md §7)
//!                   ├─► outlet: captures ─┤
//!  REST ───► fetch ─┘                     └─► Live::poll ─► translators ─► frames ─► feed
//!     ▲                                            │
//!     └────────── adapters (stream.rs) ◄── wants ◄─┴─ roster
//! ```
//!
//! [`ADAPTERS`] has a row for each: a new venue is its folder and its row.

use super::VenueConfig;
use super::category::Names;
use super::doctor::Doctor;
use super::kalshi::{self, Sequence};
use super::live::capture::{Capture, Heard};
use super::live::outlet::FeedWaker;
use super::live::roster::{self, Roster};
use super::live::shelf::Shelf;
use super::live::{Health, Outlet, Pace, Recorder, Subject, Tools, Want, fetch_client, queue};
use super::polymarket;
use super::skips::Skips;
use super::tape::Origin;
use super::translators::Translators;
use super::{FeedUpdate, Frame, NO_CONNECTION, Outages, Polled, Upstream, Venue};
use engine::market::Market;
use engine::market::terms::Listing;
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

/// Most captures that one poll hands out, and the text after which it hands out no more, so that a poll takes
/// milliseconds.
const CAPTURES_PER_POLL_MAX: usize = 1_024;
const BYTES_PER_POLL: usize = 256 << 10;
/// Markets that one question about their standing names at most.
const QUESTION_MAX: usize = 500;

/// How live venues are reached and what is kept of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub polymarket: polymarket::stream::Settings,
    pub kalshi: kalshi::stream::Settings,
    pub pace: Pace,
    /// Where captures are kept, if anywhere.
    pub recording: Option<PathBuf>,
    /// Where is kept what a start without the venue must know beyond the journal, if anywhere.
    pub shelf: Option<PathBuf>,
}

/// A live venue: what there is of it beside its translator.
pub struct Registration {
    pub origin: Origin,
    /// Makes its adapter, before there is a runtime.
    pub adapter: fn(&Settings) -> io::Result<Start>,
    /// Looks how it seems from here.
    pub examine: for<'a> fn(&'a mut Doctor<'_>, &'a VenueConfig) -> Examination<'a>,
}

/// An adapter that is ready to run: until nobody wants anything of it any more.
pub type Start = Box<dyn FnOnce(Tools, UnboundedReceiver<Want>) -> Pin<Box<dyn Future<Output = ()> + Send>>>;

/// What a doctor does with one venue. An error: credentials that cannot be read.
pub type Examination<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + 'a>>;

/// The live venues.
pub const ADAPTERS: &[Registration] = &[polymarket::ADAPTER, kalshi::ADAPTER];

/// The row of a venue.
pub fn registered(origin: Origin) -> &'static Registration {
    ADAPTERS.iter().find(|adapter| adapter.origin == origin).expect("every origin has a row")
}

/// Live venues as one.
pub struct Live {
    translators: Translators,
    captures: queue::Receiver,
    /// Taken and not due yet.
    held: Option<Capture>,
    feed: Arc<FeedWaker>,
    roster: Roster,
    shelf: Option<Shelf>,
    adapters: Vec<Adapter>,
    pace: Pace,
    asked_at: Timestamp,
    venue_now: Timestamp,
    updates: Vec<FeedUpdate>,
    /// Wants that are not told yet, and what was left otherwise than by a frame.
    wants: Vec<Want>,
    left: Vec<FeedUpdate>,
    skips: Arc<Skips>,
    /// Ends the adapters' thread when dropped.
    running: Option<Running>,
}

/// One venue's adapter as the feed sees it.
struct Adapter {
    origin: Origin,
    wants: mpsc::UnboundedSender<Want>,
    health: Arc<Health>,
}

struct Running {
    over: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    /// Ends behind the adapters, so that it keeps their last words.
    recorder: Option<Recorder>,
}

impl Live {
    /// Starts the adapters of these venues; nothing is handed out yet.
    ///
    /// # Errors
    /// No thread, no runtime, no roots of trust, a recording that cannot be written, or credentials that cannot be read.
    pub fn start(origins: &[Origin], settings: Settings, names: &Names, clock: Clock) -> io::Result<Live> {
        // Somebody else in this process may have chosen one; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let skips = Arc::new(Skips::default());
        let (sender, captures) = queue::queue();
        let feed = Arc::new(FeedWaker::default());
        let (recorder, recording) = match &settings.recording {
            Some(folder) => {
                let (recorder, keep) = Recorder::start(folder, clock.clone())?;
                (Some(recorder), Some(keep))
            }
            None => (None, None),
        };
        let client = fetch_client(settings.pace).map_err(io::Error::other)?;
        // Before there is a runtime, which may not be dropped where this is called from.
        let starts: Vec<(Origin, Start)> = origins
            .iter()
            .map(|origin| Ok((*origin, (registered(*origin).adapter)(&settings)?)))
            .collect::<io::Result<_>>()?;
        let outlet = Arc::new(Outlet::new(clock.clone(), sender, feed.clone(), recording));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut adapters = Vec::new();
        for (origin, start) in starts {
            let (wants, wanted) = mpsc::unbounded_channel();
            let health = Arc::new(Health::starting(clock.now()));
            adapters.push(Adapter { origin, wants, health: health.clone() });
            let tools = Tools {
                client: client.clone(),
                outlet: outlet.clone(),
                health,
                pace: settings.pace,
                clock: clock.clone(),
            };
            drop(runtime.spawn(thread::guard_task(start(tools, wanted))));
        }
        let (over, is_over) = oneshot::channel::<()>();
        let thread = thread::spawn("venues", move || {
            // The sender is dropped, not used.
            let _ = runtime.block_on(is_over);
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?;
        let mut translators = Translators::new(Sequence::Checked, &skips, names);
        // The adapter asks for them.
        translators.polymarket.wait_for_rows();
        Ok(Live {
            translators,
            captures,
            held: None,
            feed,
            roster: Roster::new(settings.polymarket.tokens_max / 2),
            shelf: settings.shelf.as_ref().map(|folder| Shelf::open(folder, &skips)),
            adapters,
            pace: settings.pace,
            asked_at: Timestamp::default(),
            venue_now: Timestamp::default(),
            updates: Vec::new(),
            wants: Vec::new(),
            left: Vec::new(),
            skips,
            running: Some(Running { over, thread, recorder }),
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
        // Connections are stamped apart from each other.
        self.venue_now = self.venue_now.max(capture.received);
        let (connection, at) = (capture.source.number, self.venue_now);
        self.updates.clear();
        if let Some(record) = capture.record() {
            self.translators.translate(&record, connection, at, &mut self.updates);
        }
        for update in &self.updates {
            self.roster.note(update, &mut self.wants);
            if let FeedUpdate::Gap { tokens, .. } = update {
                // What a connection lost, its adapter knows; what folding found, only the translator does.
                let mut markets: Vec<&Arc<Subject>> =
                    tokens.iter().filter_map(|token| self.roster.by_token(token)).collect();
                markets.dedup();
                markets.iter().for_each(|market| tell(&self.adapters, Want::Resync((*market).clone())));
            }
        }
        let announced: Vec<_> = self.translators.polymarket.newly_announced().map(subject_of).collect();
        if !announced.is_empty() {
            self.wants.push(Want::Standing(announced));
        }
        self.tell_wants();
        self.updates.append(&mut self.left);
        // A book that was on its way when its market was left has nobody to carry on with it.
        let roster = &self.roster;
        self.updates.retain(|update| match update {
            FeedUpdate::BookSnapshot { token, .. } | FeedUpdate::LastPrice { token, .. } => roster.follows(token),
            _ => true,
        });
        let is_answer = matches!(capture.heard, Heard::Answer { .. });
        frame(Frame { connection, received: at, is_answer, updates: &self.updates });
    }

    /// Tells the adapters what is wanted, and the feed which markets are left by that.
    fn tell_wants(&mut self) {
        for want in self.wants.drain(..) {
            if let Want::Leave(subject) = &want {
                // When it is followed again, the same book is news.
                self.translators.polymarket.forget(&subject.tokens);
                self.left.push(FeedUpdate::Left { tokens: subject.tokens.clone() });
            }
            tell(&self.adapters, want);
        }
    }

    /// Asks how markets stand that have ended or are traded here, or that only a message told of.
    fn ask(&mut self, now: Timestamp) {
        if now.since(self.asked_at) < self.pace.standing_every.as_micros() as u64 {
            return;
        }
        self.asked_at = now;
        let announced = self.translators.polymarket.announced().map(subject_of);
        let questions: Vec<Arc<Subject>> = self.roster.questions(now).cloned().chain(announced).collect();
        for adapter in &self.adapters {
            let of: Vec<_> = questions.iter().filter(|subject| subject.origin == adapter.origin).cloned().collect();
            for some in of.chunks(QUESTION_MAX) {
                let _ = adapter.wants.send(Want::Standing(some.to_vec()));
            }
        }
    }
}

/// A market that is not listed yet, as its adapter is asked about it.
fn subject_of(listing: &Listing) -> Arc<Subject> {
    Arc::new(Subject {
        origin: Origin::Polymarket,
        id: listing.venue_market_id.clone(),
        condition: listing.condition.clone(),
        tokens: listing.tokens.clone(),
    })
}

/// Tells the adapter of the market's venue. One that is gone has told so, and its connections age.
fn tell(adapters: &[Adapter], want: Want) {
    let origin = match &want {
        Want::Books(subject) | Want::Leave(subject) | Want::Resync(subject) | Want::Resubscribe(subject) => {
            subject.origin
        }
        Want::Standing(subjects) | Want::Look(subjects) => match subjects.first() {
            Some(subject) => subject.origin,
            None => return,
        },
    };
    if let Some(adapter) = adapters.iter().find(|adapter| adapter.origin == origin) {
        let _ = adapter.wants.send(want);
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
                self.ask(server_now);
                if let Some(shelf) = &mut self.shelf {
                    shelf.turn(server_now, || self.translators.kalshi.odd_grids());
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
        let Some(origin) = roster::origin(&market.listing) else { return };
        if !self.adapters.iter().any(|adapter| adapter.origin == origin) {
            return;
        }
        match origin {
            Origin::Polymarket => self.translators.polymarket.recall(market),
            Origin::Kalshi => {
                let row = self.shelf.as_ref().and_then(|shelf| shelf.row(&market.listing.venue_market_id));
                self.translators.kalshi.recall(market, row);
            }
        }
        self.roster.recall(market, &mut self.wants);
        self.tell_wants();
    }

    fn stake(&mut self, condition: &str) {
        self.roster.stake(condition, &mut self.wants);
        self.tell_wants();
    }

    fn resync(&mut self, token: &str) {
        if let Some(subject) = self.roster.by_token(token) {
            tell(&self.adapters, Want::Resync(subject.clone()));
        }
    }

    fn look(&mut self, tokens: &[&str]) {
        let subjects = tokens.iter().filter_map(|token| self.roster.by_token(token).cloned());
        tell(&self.adapters, Want::Look(subjects.collect()));
    }

    fn resubscribe(&mut self, token: &str) {
        if let Some(subject) = self.roster.by_token(token) {
            self.translators.polymarket.forget(&subject.tokens);
            tell(&self.adapters, Want::Resubscribe(subject.clone()));
        }
    }

    fn outages(&self, server_now: Timestamp) -> Outages {
        let after = self.pace.outage_after.as_micros() as u64;
        let mut outages = Outages { all: true, unheard: true, ..Outages::default() };
        for adapter in &self.adapters {
            let is_out = adapter.health.is_out(server_now, after);
            match adapter.origin {
                Origin::Polymarket => outages.polymarket = is_out,
                Origin::Kalshi => outages.kalshi = is_out,
            }
            outages.all &= is_out;
            outages.unheard &= !adapter.health.is_heard();
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
        if let Some(shelf) = &mut self.shelf {
            shelf.end(self.translators.kalshi.odd_grids());
        }
        if let Some(Running { over, thread, .. }) = self.running.take() {
            // Adapters that wait for room hear that nobody takes captures any more.
            self.captures.close();
            drop(over);
            // A panic there has been told already.
            let _ = thread.join();
        }
    }
}
