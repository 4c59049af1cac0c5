//! The catalogue, page by page: busy markets first so that their books come soon, then all of it, then what is new and
//! what is traded, over and over (upstream.md §2).

use crate::live::{Fetch, Tools};
use crate::loose::Loose;
use crate::polymarket::dto;
use engine::market::terms::{Asset, Interval};
use engine::time::Timestamp;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};
use wire::updown;

/// Rows of a page: what the venue gives at most.
const ROWS_MAX: usize = 100;
/// Beyond this offset the venue answers 422.
const OFFSET_MAX: usize = 10_000;
/// Pages of one crawl: a venue that never ends one is not followed for ever.
const PAGES_MAX: usize = 5_000;
const TRADED_PAGES: usize = 10;
const NEWEST_PAGES: usize = 2;
/// How often the coming windows of up-or-down markets are asked for, how many of them beside the one that runs, and how
/// many slugs one call names.
const WINDOWS_EVERY: Duration = Duration::from_secs(60);
const WINDOWS_AHEAD: usize = 3;
const SLUGS_MAX: usize = 25;

const OPEN: &str = "active=true&closed=false";

/// Crawls for as long as the process lives.
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

/// The first pages of an order; ends early where there are no more or none comes.
async fn pages(events: &Fetch, count: usize, what: &str) {
    for page in 0..count {
        let path = format!("/events?limit={ROWS_MAX}&offset={}&{what}", page * ROWS_MAX);
        let rows = match events.get(&path).await {
            Some(answer) if answer.status == 200 => rows(&answer.body),
            _ => None,
        };
        if rows.is_none_or(|rows| rows < ROWS_MAX) {
            return;
        }
    }
}

/// Where a crawl through everything stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Behind this cursor.
    Cursor(Option<String>),
    /// The older way, for where the venue has no cursors.
    Offset(usize),
}

/// What follows a page of it.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    On(Place),
    Done,
    /// No page came; the same one is asked for again later.
    Again,
}

/// All open events, once. A page that does not come is asked for again after a while.
async fn whole(events: &Fetch, patience: Duration) {
    let mut place = Place::Cursor(None);
    for _ in 0..PAGES_MAX {
        let answer = events.get(&place.path()).await;
        match place.step(answer.as_ref().map(|answer| (answer.status, answer.body.as_str()))) {
            Step::On(next) => place = next,
            Step::Done => return tracing::info!("the catalogue has been read"),
            Step::Again => sleep(patience).await,
        }
    }
    tracing::warn!(PAGES_MAX, "the catalogue does not end; the rest of it is left");
}

impl Place {
    fn path(&self) -> String {
        match self {
            Place::Cursor(None) => format!("/events/keyset?limit={ROWS_MAX}&{OPEN}"),
            Place::Cursor(Some(cursor)) => {
                format!("/events/keyset?limit={ROWS_MAX}&{OPEN}&after_cursor={}", escaped(cursor))
            }
            Place::Offset(offset) => {
                format!("/events?limit={ROWS_MAX}&offset={offset}&{OPEN}&order=id&ascending=true")
            }
        }
    }

    /// What comes behind this page, which was answered so.
    fn step(&self, answer: Option<(u16, &str)>) -> Step {
        let Some((status, body)) = answer else { return Step::Again };
        match (self, status) {
            (Place::Cursor(before), 200) => {
                let Some(page) = Loose::of(body.trim()).object::<dto::Page<'_>>() else { return Step::Again };
                let rows = page.events.or(page.data).elements().map_or(0, |rows| rows.len());
                match page.next_cursor.owned() {
                    Some(cursor) if rows > 0 && Some(&cursor) != before.as_ref() => {
                        Step::On(Place::Cursor(Some(cursor)))
                    }
                    _ => Step::Done,
                }
            }
            // No such call, or not with these parameters.
            (Place::Cursor(_), 400..=422) => Step::On(Place::Offset(0)),
            (Place::Offset(offset), 200) => match rows(body) {
                Some(rows) if rows < ROWS_MAX || offset + ROWS_MAX > OFFSET_MAX => Step::Done,
                Some(_) => Step::On(Place::Offset(offset + ROWS_MAX)),
                None => Step::Again,
            },
            (Place::Offset(_), 422) => Step::Done,
            _ => Step::Again,
        }
    }
}

/// Rows of a page that is a bare array.
fn rows(body: &str) -> Option<usize> {
    Loose::of(body.trim()).elements().map(|rows| rows.len())
}

/// A text as it stands in a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

/// The windows that run and the next ones, by their slugs.
async fn windows(events: &Fetch, now: Timestamp) {
    for some in slugs(now).chunks(SLUGS_MAX) {
        let query: Vec<String> = some.iter().map(|slug| format!("slug={slug}")).collect();
        // What comes is the feed's; windows that are not there yet are asked for again.
        events.get(&format!("/events?limit={ROWS_MAX}&{}", query.join("&"))).await;
    }
}

/// Slugs of those windows. Some families write the year and some do not.
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
    fn a_crawl_goes_on_where_it_was_and_ends() {
        let cursor = |text: &str| Place::Cursor(Some(text.into()));
        let full = format!("[{}]", vec!["{}"; ROWS_MAX].join(","));
        let cases = [
            (Place::Cursor(None), Some((200, r#"{"events":[{}],"next_cursor":"a"}"#)), Step::On(cursor("a"))),
            (cursor("a"), Some((200, r#"{"events":[{}],"next_cursor":"a"}"#)), Step::Done),
            (cursor("a"), Some((200, r#"{"events":[],"next_cursor":"b"}"#)), Step::Done),
            (cursor("a"), Some((200, r#"{"events":[{}],"next_cursor":""}"#)), Step::Done),
            (cursor("a"), Some((200, r#"{"events":[{}]}"#)), Step::Done),
            (cursor("a"), Some((200, r#"{"data":[{}],"next_cursor":"b"}"#)), Step::On(cursor("b"))),
            (cursor("a"), Some((200, "{\"events\":[{")), Step::Again),
            (cursor("a"), Some((500, "no")), Step::Again),
            (cursor("a"), None, Step::Again),
            (Place::Cursor(None), Some((404, "no")), Step::On(Place::Offset(0))),
            (Place::Cursor(None), Some((422, "no")), Step::On(Place::Offset(0))),
            (Place::Offset(0), Some((200, full.as_str())), Step::On(Place::Offset(100))),
            (Place::Offset(10_000), Some((200, full.as_str())), Step::Done),
            (Place::Offset(100), Some((200, "[{}]")), Step::Done),
            (Place::Offset(100), Some((200, "[{}")), Step::Again),
            (Place::Offset(10_100), Some((422, "")), Step::Done),
            (Place::Offset(100), Some((429, "")), Step::Again),
        ];
        let count = cases.len();
        for (place, answer, expected) in cases {
            assert_eq!(place.step(answer), expected, "{place:?} {answer:?}");
        }
        assert_eq!(cursor("a+/=").path(), "/events/keyset?limit=100&active=true&closed=false&after_cursor=a%2B%2F%3D");
        println!("steps of a crawl: {count} cases");
    }

    #[test]
    fn coming_windows_are_named_in_every_form() {
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
        println!("slugs of coming windows: {} cases", slugs.len());
    }
}
