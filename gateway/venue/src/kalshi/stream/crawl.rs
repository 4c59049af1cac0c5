//! The catalogue by REST (upstream.md §4.1): all open events at the start and again every few minutes, new short-lived
//! markets and new events in between, and how single markets stand.
//!
//! **New markets.** Every `newest_every` it asks `/markets` for what closes within the next hour. A new market that
//! lives for days is found early enough by the next crawl; one that lives for a quarter of an hour is not, and is
//! always among those that close soon. The same answer says when such a market opens and closes. No status is named,
//! as the venue takes that filter beside times of close only for closed markets. With a socket, lifecycle messages tell
//! of new markets at once.
//!
//! **Events.** A market is listed once, with title and category of its event (§6), so where a row names an event that
//! is not known, the event is asked for, and it brings the row again. Where an event has no category, its series has
//! it: that is asked for, and then the event once more.

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
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};

/// Events on a page, and pages of one crawl: a venue whose pages never end is left at some point.
const EVENTS_PER_PAGE: usize = 200;
const PAGES_MAX: usize = 2_000;
/// What closes within so long is looked at often; pages of that.
const SOON_S: u64 = 3_600;
const SOON_PAGES_MAX: usize = 5;
/// Events that wait to be asked for; the crawl finds what is left out.
const EVENTS_WAITING_MAX: usize = 2_000;
/// Combinations of other markets. They are made by the thousand, and the list of events leaves them out as well.
const COMBINATIONS: &str = "KXMVE";
/// Longest path of a call.
const PATH_BYTES_MAX: usize = 1_900;

/// What of an answer decides what is asked next.
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

/// Markets whose standing is to be asked for, each once.
#[derive(Default)]
pub struct Questions {
    waiting: Mutex<Waiting>,
    more: Notify,
}

/// Texts in the order in which they came, each once.
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

impl Questions {
    pub fn ask(&self, tickers: impl IntoIterator<Item = String>) {
        let mut waiting = self.waiting.lock();
        tickers.into_iter().for_each(|ticker| waiting.push(ticker));
        drop(waiting);
        self.more.notify_one();
    }

    /// Path of the next call: as many markets as it holds.
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

    /// Asks what is waiting, as it comes. A market whose event is not known is hinted at.
    pub async fn work(self: Arc<Questions>, fetch: Fetch, hints: UnboundedSender<Hint>, known: Arc<Known>) {
        loop {
            let Some(path) = self.next() else {
                self.more.notified().await;
                continue;
            };
            if let Some(answer) = fetch.get(&path).await {
                let page: Page<'_> = serde_json::from_str(&answer.body).unwrap_or_default();
                for event in known.unknown_events(page.markets) {
                    // Nobody listens any more when the process is stopping.
                    let _ = hints.send(Hint::Event(event));
                }
            }
        }
    }
}

/// Events that were told of.
#[derive(Default)]
pub struct Known(Mutex<AHashSet<String>>);

impl Known {
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

/// The catalogue's part of the adapter.
pub struct Crawl {
    fetch: Fetch,
    pace: Pace,
    clock: Clock,
    known: Arc<Known>,
    questions: Arc<Questions>,
    polls: Arc<Polls>,
    hints: UnboundedReceiver<Hint>,
    /// Events to be asked for.
    waiting: Waiting,
    /// Series that were asked for.
    series: AHashSet<String>,
}

/// What the parts of the adapter share.
#[derive(Clone)]
pub struct Shared {
    pub known: Arc<Known>,
    pub questions: Arc<Questions>,
    pub polls: Arc<Polls>,
}

impl Crawl {
    pub fn new(fetch: Fetch, pace: Pace, clock: Clock, shared: &Shared, hints: UnboundedReceiver<Hint>) -> Crawl {
        let Shared { known, questions, polls } = shared;
        Crawl {
            fetch,
            pace,
            clock,
            known: known.clone(),
            questions: questions.clone(),
            polls: polls.clone(),
            hints,
            waiting: Waiting::default(),
            series: AHashSet::new(),
        }
    }

    /// Asks on and on.
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
            }
        }
    }

    fn take(&mut self, hint: Hint) {
        match hint {
            Hint::Market(ticker) => self.questions.ask([ticker]),
            Hint::Event(event) => self.want_event(event),
        }
    }

    fn want_event(&mut self, event: String) {
        if self.waiting.order.len() < EVENTS_WAITING_MAX && !event.starts_with(COMBINATIONS) {
            self.waiting.push(event);
        }
    }

    /// All open events; whether it came to the end of them.
    async fn all(&mut self) -> bool {
        let (mut cursor, mut listed) = (String::new(), AHashSet::new());
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
                // Trading in what is not open any more has ended otherwise than it was told.
                self.questions.ask(self.polls.missing_in(&listed));
                return true;
            }
            cursor = next;
        }
        tracing::warn!(pages = PAGES_MAX, "the venue's list of events does not end");
        true
    }

    /// What closes soon.
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
                self.want_event(event);
            }
            let next = page.cursor.filled().map(|next| encoded(&next)).unwrap_or_default();
            if next.is_empty() || next == cursor {
                return;
            }
            cursor = next;
        }
    }

    /// One event that was hinted at.
    async fn one_event(&mut self) {
        let Some(ticker) = self.waiting.pop() else { return };
        let path = format!("/events/{}?with_nested_markets=true", encoded(&ticker));
        let Some(answer) = self.fetch.get(&path).await else { return };
        // What the venue does not know is not asked for again.
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
                // The next crawl comes back to it.
                self.series.remove(&series);
                self.known.0.lock().remove(&ticker);
            }
        }
    }

    /// Remembers an event, and the markets of a crawled one; answers the series that has its category where it has
    /// none itself.
    fn learn(&mut self, event: Loose<'_>, listed: Option<&mut AHashSet<String>>) -> Option<String> {
        let event: Event<'_> = event.object()?;
        let ticker = event.event_ticker.owned()?;
        if let Some(listed) = listed {
            let rows = event.markets.elements().unwrap_or_default();
            listed.extend(rows.iter().filter_map(|row| row.object::<Row<'_>>()?.ticker.owned()));
            if event.category.filled().is_none() && !self.known.0.lock().contains(&ticker) {
                // It is asked for by itself, and its series with it.
                self.want_event(ticker.clone());
            }
        }
        self.known.0.lock().insert(ticker);
        event.series_ticker.owned().filter(|_| event.category.filled().is_none())
    }
}
