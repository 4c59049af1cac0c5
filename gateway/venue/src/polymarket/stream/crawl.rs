//! The catalogue, page by page: the most traded markets first, so that their books come soon, then all of it, then new
//! and traded markets at intervals (gateway/docs/live-venues.md §2).

use crate::live::{Fetch, Tools};
use crate::loose::Loose;
use crate::polymarket::dto;
use engine::market::terms::{Asset, Interval};
use engine::time::Timestamp;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};
use wire::updown;

/// Rows per page, the venue's limit.
const ROWS_MAX: usize = 100;
/// The venue responds with 422 beyond this offset.
const OFFSET_MAX: usize = 10_000;
/// Most pages of one crawl: a list that never ends is abandoned.
const PAGES_MAX: usize = 5_000;
const TRADED_PAGES: usize = 10;
const NEWEST_PAGES: usize = 2;
/// Interval between requests for upcoming windows of up-or-down markets, number of windows after the current one, and
/// most slugs in one call.
const WINDOWS_EVERY: Duration = Duration::from_secs(60);
const WINDOWS_AHEAD: usize = 3;
const SLUGS_MAX: usize = 25;

const OPEN: &str = "active=true&closed=false";

/// Runs until the process stops.
pub async fn run(events: &Fetch, tools: &Tools) {
    let pace = tools.pace;
    traded(events).await;
    tokio::join!(
        whole(events, pace.newest_every),
        every(pace.newest_every, Duration::ZERO, || newest(events)),
        every(pace.traded_every, pace.traded_every, || traded(events)),
        every(WINDOWS_EVERY, Duration::ZERO, || windows(events, tools.now())),
    );
}

async fn every<F: Future<Output = ()>>(period: Duration, first: Duration, work: impl Fn() -> F) {
    sleep(first).await;
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        work().await;
    }
}

/// The most traded events.
async fn traded(events: &Fetch) {
    pages(events, TRADED_PAGES, &format!("{OPEN}&order=volume24hr&ascending=false")).await;
}

/// The newest events.
async fn newest(events: &Fetch) {
    pages(events, NEWEST_PAGES, &format!("{OPEN}&order=id&ascending=false")).await;
}

/// Reads the first pages in an order; stops when a page is not full or missing.
async fn pages(events: &Fetch, count: usize, query: &str) {
    for page in 0..count {
        let path = format!("/events?limit={ROWS_MAX}&offset={}&{query}", page * ROWS_MAX);
        let rows = match events.get(&path).await {
            Some(answer) if answer.status == 200 => rows(&answer.body),
            _ => None,
        };
        if rows.is_none_or(|rows| rows < ROWS_MAX) {
            return;
        }
    }
}

/// The position of a crawl through all events.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    /// After this cursor.
    Cursor(Option<String>),
    /// The older paging, used if the venue has no cursors.
    Offset(usize),
}

/// The step after a page.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Next(Position),
    Done,
    /// No page came; the same one is requested again later.
    Retry,
}

/// Reads all open events once. A missing page is requested again after a pause.
async fn whole(events: &Fetch, pause: Duration) {
    let mut position = Position::Cursor(None);
    for _ in 0..PAGES_MAX {
        let answer = events.get(&position.path()).await;
        match position.step(answer.as_ref().map(|answer| (answer.status, answer.body.as_str()))) {
            Step::Next(next) => position = next,
            Step::Done => return tracing::info!("the catalogue has been read"),
            Step::Retry => sleep(pause).await,
        }
    }
    tracing::warn!(PAGES_MAX, "the catalogue has more pages than are read in one crawl; the rest is ignored");
}

impl Position {
    fn path(&self) -> String {
        match self {
            Position::Cursor(None) => format!("/events/keyset?limit={ROWS_MAX}&{OPEN}"),
            Position::Cursor(Some(cursor)) => {
                format!("/events/keyset?limit={ROWS_MAX}&{OPEN}&after_cursor={}", escaped(cursor))
            }
            Position::Offset(offset) => {
                format!("/events?limit={ROWS_MAX}&offset={offset}&{OPEN}&order=id&ascending=true")
            }
        }
    }

    /// The step after the response to this page.
    fn step(&self, answer: Option<(u16, &str)>) -> Step {
        let Some((status, body)) = answer else { return Step::Retry };
        match (self, status) {
            (Position::Cursor(before), 200) => {
                let Some(page) = Loose::of(body.trim()).object::<dto::Page<'_>>() else { return Step::Retry };
                let rows = page.events.or(page.data).elements().map_or(0, |rows| rows.len());
                match page.next_cursor.owned() {
                    Some(cursor) if rows > 0 && Some(&cursor) != before.as_ref() => {
                        Step::Next(Position::Cursor(Some(cursor)))
                    }
                    _ => Step::Done,
                }
            }
            // The call or its parameters do not exist.
            (Position::Cursor(_), 400..=422) => Step::Next(Position::Offset(0)),
            (Position::Offset(offset), 200) => match rows(body) {
                Some(rows) if rows < ROWS_MAX || offset + ROWS_MAX > OFFSET_MAX => Step::Done,
                Some(_) => Step::Next(Position::Offset(offset + ROWS_MAX)),
                None => Step::Retry,
            },
            (Position::Offset(_), 422) => Step::Done,
            _ => Step::Retry,
        }
    }
}

/// Number of rows of a page that is a bare array.
fn rows(body: &str) -> Option<usize> {
    Loose::of(body.trim()).elements().map(|rows| rows.len())
}

/// A text, percent-encoded for a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

/// Reads the current and the next windows by their slugs.
async fn windows(events: &Fetch, now: Timestamp) {
    for some in slugs(now).chunks(SLUGS_MAX) {
        let query: Vec<String> = some.iter().map(|slug| format!("slug={slug}")).collect();
        // The feed lists them; missing windows are requested again the next time.
        events.get(&format!("/events?limit={ROWS_MAX}&{}", query.join("&"))).await;
    }
}

/// Slugs of the current and the next windows. Some families include the year and some do not.
fn slugs(now: Timestamp) -> Vec<String> {
    let mut slugs = Vec::new();
    for interval in Interval::ALL {
        for asset in Asset::ALL {
            // Indices have daily windows only.
            if matches!(asset, Asset::Spx | Asset::Ndx) && interval != Interval::Daily {
                continue;
            }
            let (mut start, mut end) = updown::window(interval, now);
            for _ in 0..=WINDOWS_AHEAD {
                let slug = updown::slug(asset, interval, start, end);
                let shorter = updown::without_year(&slug);
                slugs.push(slug);
                slugs.extend(shorter);
                (start, end) = updown::window(interval, end);
            }
        }
    }
    slugs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_continues_at_its_position_and_ends() {
        let cursor = |text: &str| Position::Cursor(Some(text.into()));
        let full = format!("[{}]", vec!["{}"; ROWS_MAX].join(","));
        let cases = [
            (Position::Cursor(None), Some((200, r#"{"events":[{}],"next_cursor":"a"}"#)), Step::Next(cursor("a"))),
            (cursor("a"), Some((200, r#"{"events":[{}],"next_cursor":"a"}"#)), Step::Done),
            (cursor("a"), Some((200, r#"{"events":[],"next_cursor":"b"}"#)), Step::Done),
            (cursor("a"), Some((200, r#"{"events":[{}],"next_cursor":""}"#)), Step::Done),
            (cursor("a"), Some((200, r#"{"events":[{}]}"#)), Step::Done),
            (cursor("a"), Some((200, r#"{"data":[{}],"next_cursor":"b"}"#)), Step::Next(cursor("b"))),
            (cursor("a"), Some((200, "{\"events\":[{")), Step::Retry),
            (cursor("a"), Some((500, "no")), Step::Retry),
            (cursor("a"), None, Step::Retry),
            (Position::Cursor(None), Some((404, "no")), Step::Next(Position::Offset(0))),
            (Position::Cursor(None), Some((422, "no")), Step::Next(Position::Offset(0))),
            (Position::Offset(0), Some((200, full.as_str())), Step::Next(Position::Offset(100))),
            (Position::Offset(10_000), Some((200, full.as_str())), Step::Done),
            (Position::Offset(100), Some((200, "[{}]")), Step::Done),
            (Position::Offset(100), Some((200, "[{}")), Step::Retry),
            (Position::Offset(10_100), Some((422, "")), Step::Done),
            (Position::Offset(100), Some((429, "")), Step::Retry),
        ];
        let count = cases.len();
        for (position, answer, expected) in cases {
            assert_eq!(position.step(answer), expected, "{position:?} {answer:?}");
        }
        assert_eq!(cursor("a+/=").path(), "/events/keyset?limit=100&active=true&closed=false&after_cursor=a%2B%2F%3D");
        println!("steps of a crawl: {count} cases");
    }

    #[test]
    fn upcoming_windows_are_named_in_every_form() {
        let slugs = slugs(Timestamp::from_secs(1_773_307_300));
        for slug in [
            "btc-updown-5m-1773307200",
            "btc-updown-5m-1773308100",
            "xrp-updown-15m-1773307800",
            "eth-updown-4h-1773302400",
            "bitcoin-up-or-down-march-12-2026-5am-et",
            "bitcoin-up-or-down-march-12-8am-et",
            "solana-up-or-down-on-march-12",
            "spx-up-or-down-on-march-12-2026",
        ] {
            assert!(slugs.iter().any(|known| known == slug), "{slug} in {slugs:?}");
        }
        assert!(!slugs.iter().any(|slug| slug.starts_with("spx-updown")));
        println!("slugs of upcoming windows: {} cases", slugs.len());
    }
}
