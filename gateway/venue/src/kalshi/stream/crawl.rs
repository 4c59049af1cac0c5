//! The catalogue by REST (gateway/docs/live-venues.md §4.1): all open events at the start and every few minutes, new
//! short-lived markets and new events in between, and states of single markets.
//!
//! **New markets.** Every `newest_every` the crawl reads `/markets` that close within the next hour. A new market that
//! lives for days is found by the next full crawl; one that lives for 15 minutes is not, but it is always among those
//! that close soon. The same response shows when such a market opens and closes. The status filter is omitted, as the
//! venue accepts it together with close times only for closed markets. With a socket, lifecycle messages report new
//! markets immediately.
//!
//! **Events.** A market is listed once, with title and category of its event (gateway/docs/live-venues.md §6). If a row
//! names an unknown event, the event is requested, and its response contains the row again. If an event has no
//! category, its series has it: the series is requested, and then the event again.
//!
//! **Fees.** Where fills are charged by them, each series of an open event is requested once a day, when nothing else is
//! to be requested.

use super::books::Hint;
use super::encoded;
use super::polling::Polls;
use crate::live::{Fetch, Pace};
use crate::loose::Loose;
use ahash::AHashSet;
use engine::time::SECOND;
use host::clock::Clock;
use parking_lot::Mutex;
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};

/// Events per page, and most pages of one crawl: a list that never ends is abandoned.
const EVENTS_PER_PAGE: usize = 200;
const PAGES_MAX: usize = 2_000;
/// Markets that close within this many seconds are read often; most pages of that.
const SOON_S: u64 = 3_600;
const SOON_PAGES_MAX: usize = 5;
/// Most events that wait to be requested; the next crawl finds the others.
const EVENTS_WAITING_MAX: usize = 2_000;
/// Most series that wait to be requested for their fees; the next crawl finds the others.
const SERIES_WAITING_MAX: usize = 20_000;
/// How long the fees of a series are taken as they were.
const FEES_EVERY: Duration = Duration::from_secs(24 * 3_600);
/// Prefix of combinations of other markets. There are thousands of them, and the list of events omits them too.
const COMBINATIONS: &str = "KXMVE";
/// Longest path of a call, in bytes.
const PATH_BYTES_MAX: usize = 1_900;

/// The fields of a response that decide the next request.
#[derive(Default, Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    cursor: Loose<'a>,
    #[serde(borrow, default)]
    events: Loose<'a>,
    #[serde(borrow, default)]
    event: Loose<'a>,
    #[serde(borrow, default)]
    markets: Loose<'a>,
}

#[derive(Default, Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    event_ticker: Loose<'a>,
    #[serde(borrow, default)]
    series_ticker: Loose<'a>,
    #[serde(borrow, default)]
    category: Loose<'a>,
    #[serde(borrow, default)]
    markets: Loose<'a>,
}

#[derive(Default, Deserialize)]
struct Row<'a> {
    #[serde(borrow, default)]
    ticker: Loose<'a>,
    #[serde(borrow, default)]
    event_ticker: Loose<'a>,
}

/// Markets whose state is to be requested, each once.
#[derive(Default)]
pub struct StatusQueue {
    waiting: Mutex<Waiting>,
    more: Notify,
}

/// Texts in order of arrival, each once.
#[derive(Default)]
struct Waiting {
    order: VecDeque<String>,
    known: AHashSet<String>,
}

impl Waiting {
    fn push(&mut self, text: String) {
        if self.known.insert(text.clone()) {
            self.order.push_back(text);
        }
    }

    fn pop(&mut self) -> Option<String> {
        let text = self.order.pop_front()?;
        self.known.remove(&text);
        Some(text)
    }
}

impl StatusQueue {
    pub fn push(&self, tickers: impl IntoIterator<Item = String>) {
        let mut waiting = self.waiting.lock();
        tickers.into_iter().for_each(|ticker| waiting.push(ticker));
        drop(waiting);
        self.more.notify_one();
    }

    /// Path of the next call, with as many markets as fit.
    pub(super) fn next(&self) -> Option<String> {
        let mut waiting = self.waiting.lock();
        let mut path = String::from("/markets?limit=1000&tickers=");
        let empty = path.len();
        while let Some(next) = waiting.order.front() {
            let next = encoded(next);
            if path.len() > empty {
                if path.len() + 1 + next.len() > PATH_BYTES_MAX {
                    break;
                }
                path.push(',');
            }
            path.push_str(&next);
            waiting.pop();
        }
        (path.len() > empty).then_some(path)
    }

    /// Requests the states of waiting markets. Unknown events in the responses become hints.
    pub async fn work(self: Arc<StatusQueue>, fetch: Fetch, hints: UnboundedSender<Hint>, known: Arc<KnownEvents>) {
        loop {
            let Some(path) = self.next() else {
                self.more.notified().await;
                continue;
            };
            if let Some(answer) = fetch.get(&path).await {
                let page: Page<'_> = serde_json::from_str(&answer.body).unwrap_or_default();
                for event in known.unknown_events(page.markets) {
                    // The receiver is gone when the process is stopping.
                    let _ = hints.send(Hint::Event(event));
                }
            }
        }
    }
}

/// Events that are known.
#[derive(Default)]
pub struct KnownEvents(Mutex<AHashSet<String>>);

impl KnownEvents {
    fn unknown_events(&self, rows: Loose<'_>) -> Vec<String> {
        let known = self.0.lock();
        let rows = rows.elements().unwrap_or_default();
        let events = rows.iter().filter_map(|row| row.object::<Row<'_>>()?.event_ticker.owned());
        let mut events: Vec<String> = events.filter(|event| !known.contains(event)).collect();
        events.sort_unstable();
        events.dedup();
        events
    }
}

/// Crawls the catalogue.
pub struct Crawl {
    fetch: Fetch,
    pace: Pace,
    clock: Clock,
    known: Arc<KnownEvents>,
    status: Arc<StatusQueue>,
    polls: Arc<Polls>,
    hints: UnboundedReceiver<Hint>,
    /// Events to request.
    waiting: Waiting,
    /// Series that were requested.
    series: AHashSet<String>,
    /// Series whose fees are to be requested; `None`: fees are not followed.
    fees: Option<FeeQueue>,
}

/// Series by the state of their fees.
struct FeeQueue {
    waiting: Waiting,
    requested: AHashSet<String>,
    /// When the first of them was requested.
    since: Instant,
}

impl FeeQueue {
    fn new() -> FeeQueue {
        FeeQueue { waiting: Waiting::default(), requested: AHashSet::new(), since: Instant::now() }
    }

    fn want(&mut self, series: String) {
        if !self.requested.contains(&series) && self.waiting.order.len() < SERIES_WAITING_MAX {
            self.waiting.push(series);
        }
    }
}

/// State shared by the tasks of the adapter.
#[derive(Clone)]
pub struct Shared {
    pub known: Arc<KnownEvents>,
    pub status: Arc<StatusQueue>,
    pub polls: Arc<Polls>,
}

impl Crawl {
    pub fn new(fetch: Fetch, pace: Pace, clock: Clock, shared: &Shared, hints: UnboundedReceiver<Hint>) -> Crawl {
        let Shared { known, status, polls } = shared;
        Crawl {
            fetch,
            pace,
            clock,
            known: known.clone(),
            status: status.clone(),
            polls: polls.clone(),
            hints,
            waiting: Waiting::default(),
            series: AHashSet::new(),
            fees: None,
        }
    }

    /// Requests the fees of all series, too.
    pub fn with_fees(self) -> Crawl {
        Crawl { fees: Some(FeeQueue::new()), ..self }
    }

    /// Runs until the hint channel closes.
    pub async fn work(mut self) {
        let (mut all_at, mut soon_at) = (Instant::now(), Instant::now() + self.pace.newest_every);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(all_at) => {
                    let whole = self.all().await;
                    all_at = Instant::now() + if whole { self.pace.traded_every } else { self.pace.newest_every };
                }
                () = sleep_until(soon_at) => {
                    self.soon().await;
                    soon_at = Instant::now() + self.pace.newest_every;
                }
                hint = self.hints.recv() => match hint {
                    Some(hint) => self.take(hint),
                    None => return,
                },
                () = std::future::ready(()), if !self.waiting.order.is_empty() => self.one_event().await,
                () = std::future::ready(()), if self.waits_for_fees() => self.one_series().await,
            }
        }
    }

    fn take(&mut self, hint: Hint) {
        match hint {
            Hint::Market(ticker) => self.status.push([ticker]),
            Hint::Event(event) => self.request_event(event),
        }
    }

    fn request_event(&mut self, event: String) {
        if self.waiting.order.len() < EVENTS_WAITING_MAX && !event.starts_with(COMBINATIONS) {
            self.waiting.push(event);
        }
    }

    fn waits_for_fees(&self) -> bool {
        self.fees.as_ref().is_some_and(|fees| !fees.waiting.order.is_empty())
    }

    /// Requests one waiting series for its fees.
    async fn one_series(&mut self) {
        let Some(fees) = &mut self.fees else { return };
        let Some(series) = fees.waiting.pop() else { return };
        fees.requested.insert(series.clone());
        let answer = self.fetch.get(&format!("/series/{}", encoded(&series))).await;
        if !answer.is_some_and(|answer| matches!(answer.status, 200 | 404))
            && let Some(fees) = &mut self.fees
        {
            // The next crawl tries again.
            fees.requested.remove(&series);
        }
    }

    /// Reads all open events; returns whether the end was reached.
    async fn all(&mut self) -> bool {
        let (mut cursor, mut listed) = (String::new(), AHashSet::new());
        if let Some(fees) = self.fees.as_mut().filter(|fees| fees.since.elapsed() >= FEES_EVERY) {
            *fees = FeeQueue::new();
        }
        for _ in 0..PAGES_MAX {
            let path = format!("/events?status=open&with_nested_markets=true&limit={EVENTS_PER_PAGE}&cursor={cursor}");
            let Some(answer) = self.fetch.get(&path).await.filter(|answer| answer.status == 200) else { return false };
            let Ok(page) = serde_json::from_str::<Page<'_>>(&answer.body) else { return false };
            let Some(events) = page.events.elements() else { return false };
            for event in events {
                self.learn(event, Some(&mut listed));
            }
            let next = page.cursor.filled().map(|next| encoded(&next)).unwrap_or_default();
            if next.is_empty() || next == cursor {
                // Markets that are no longer open ended without a message.
                self.status.push(self.polls.missing_in(&listed));
                return true;
            }
            cursor = next;
        }
        tracing::warn!(
            pages = PAGES_MAX,
            "the venue's list of events has more pages than are read in one crawl; the rest is ignored"
        );
        true
    }

    /// Reads the markets that close soon.
    async fn soon(&mut self) {
        let now = self.clock.now().0 / SECOND;
        let mut cursor = String::new();
        for _ in 0..SOON_PAGES_MAX {
            let path = format!(
                "/markets?limit=1000&mve_filter=exclude&min_close_ts={now}&max_close_ts={}&cursor={cursor}",
                now + SOON_S
            );
            let Some(answer) = self.fetch.get(&path).await.filter(|answer| answer.status == 200) else { return };
            let page: Page<'_> = serde_json::from_str(&answer.body).unwrap_or_default();
            for event in self.known.unknown_events(page.markets) {
                self.request_event(event);
            }
            let next = page.cursor.filled().map(|next| encoded(&next)).unwrap_or_default();
            if next.is_empty() || next == cursor {
                return;
            }
            cursor = next;
        }
    }

    /// Requests one waiting event.
    async fn one_event(&mut self) {
        let Some(ticker) = self.waiting.pop() else { return };
        let path = format!("/events/{}?with_nested_markets=true", encoded(&ticker));
        let Some(answer) = self.fetch.get(&path).await else { return };
        // An event that the venue does not have is not requested again.
        if answer.status == 404 {
            self.known.0.lock().insert(ticker);
            return;
        }
        let page: Page<'_> = serde_json::from_str(&answer.body).unwrap_or_default();
        if let Some(series) = self.learn(page.event, None)
            && self.series.insert(series.clone())
        {
            let answer = self.fetch.get(&format!("/series/{}", encoded(&series))).await;
            if answer.is_some_and(|answer| matches!(answer.status, 200 | 404)) {
                self.waiting.push(ticker);
            } else {
                // The next crawl tries again.
                self.series.remove(&series);
                self.known.0.lock().remove(&ticker);
            }
        }
    }

    /// Stores an event, and the markets of a crawled one. Returns its series if the event has no category.
    fn learn(&mut self, event: Loose<'_>, listed: Option<&mut AHashSet<String>>) -> Option<String> {
        let event: Event<'_> = event.object()?;
        let ticker = event.event_ticker.owned()?;
        if let (Some(fees), Some(series)) = (&mut self.fees, event.series_ticker.owned()) {
            fees.want(series);
        }
        if let Some(listed) = listed {
            let rows = event.markets.elements().unwrap_or_default();
            listed.extend(rows.iter().filter_map(|row| row.object::<Row<'_>>()?.ticker.owned()));
            if event.category.filled().is_none() && !self.known.0.lock().contains(&ticker) {
                // The event and its series are requested separately.
                self.request_event(ticker.clone());
            }
        }
        self.known.0.lock().insert(ticker);
        event.series_ticker.owned().filter(|_| event.category.filled().is_none())
    }
}
