//! The usage of each key: requests by day and hour, their latency, the last fifty.
//!
//! The counters start at zero with the process. A request costs a few atomic additions and no lock. A key that was
//! never used takes no memory. A key with few requests takes 128 bytes, which hold those requests. From the next one on
//! it takes about 2 KiB, and 768 bytes for each weekday on which it was used. So the memory of many rarely used keys
//! need not be allocated and zeroed.
//!
//! The figures are for people and not exact: counts of two threads at the turn of an hour, or while a key leaves its
//! first requests, may be lost, and a recent request that is being written is left out.

use super::limit::Slots;
use super::route::Route;
use ahash::AHashMap;
use engine::time::{DAY, HOUR, MILLISECOND, Timestamp};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Days and hours that a report may cover.
pub const DAYS_MAX: u64 = 90;
pub const HOURS_MAX: u64 = 168;
/// Requests that are stored one by one.
pub const RECENT: u64 = 50;
/// Upper bounds of the latency buckets in milliseconds; the last one has none.
pub const BUCKETS_MS: [u64; 5] = [50, 100, 250, 500, 1_000];

const DAY_HOURS: u32 = 24;
const BUCKETS: usize = BUCKETS_MS.len() + 1;
/// Days with counters: more than a report may cover.
const DAY_PLACES: usize = 92;
/// Days with counters by the hour: those that 168 hours touch.
const HOUR_DAYS: usize = 8;
const RECENT_PLACES: u64 = 64;
/// Requests of a key that are stored one by one before they are counted.
const FEW: usize = 6;
/// Bits of the fields of a stored request.
const TAG_BITS: u32 = 12;
const ROUTE_BITS: u32 = 12;
const STATUS_BITS: u32 = 10;
const LATENCY_MS_MAX: u64 = (1 << 20) - 1;

/// The figures of every key.
#[derive(Debug)]
pub struct Usage {
    keys: Slots<OnceLock<Box<KeyUsage>>>,
    routes: Vec<&'static Route>,
    /// Index of a route in `routes`, by its address.
    places: AHashMap<usize, u64>,
}

/// The figures of one key.
#[derive(Debug, Default)]
struct KeyUsage {
    /// Requests so far.
    count: AtomicU64,
    /// The first requests. A key has only these until there are more.
    few: [RecentEntry; FEW],
    many: OnceLock<Box<Many>>,
}

/// The figures of a key of more than a few requests.
#[derive(Debug)]
struct Many {
    /// Day number in the upper half, requests in the lower half.
    days: [AtomicU64; DAY_PLACES],
    hours: [OnceLock<Box<[Hour; DAY_HOURS as usize]>>; HOUR_DAYS],
    recent: [RecentEntry; RECENT_PLACES as usize],
}

/// A stored request. Both words end with the low bits of its number, so that a reader can check that they belong together.
#[derive(Debug, Default)]
struct RecentEntry(AtomicU64, AtomicU64);

/// A request as numbers that fit a [`RecentEntry`].
#[derive(Clone, Copy)]
struct Row {
    begun: Timestamp,
    is_head: bool,
    status: u16,
    /// Index of its route.
    route: u64,
    /// Rounded up, which does not change its bucket.
    latency_ms: u64,
}

#[derive(Debug, Default)]
struct Hour {
    /// Hours since 1970.
    number: AtomicU32,
    errors: AtomicU32,
    latency: [AtomicU32; BUCKETS],
}

/// One finished request.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub route: &'static Route,
    pub is_head: bool,
    pub status: u16,
    pub begun: Timestamp,
    pub ended: Timestamp,
}

/// One hour of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourRow {
    /// Start of the hour.
    pub at: Timestamp,
    pub requests: u64,
    /// Requests with a status of 400 or above.
    pub errors: u64,
}

/// A recent request.
#[derive(Clone, Copy, Debug)]
pub struct RecentRow {
    pub status: u16,
    pub method: &'static str,
    pub route: &'static str,
    /// Rounded up.
    pub latency_ms: u64,
    pub at: Timestamp,
}

/// The report of a key.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Start of the UTC day and its requests, oldest first.
    pub days: Vec<(Timestamp, u64)>,
    pub month_to_date: u64,
    /// Oldest first.
    pub hours: Vec<HourRow>,
    /// Of the requests in `hours`.
    pub latency: [u64; BUCKETS],
    /// Newest first.
    pub recent: Vec<RecentRow>,
}

impl Usage {
    /// No usage yet, for these routes.
    pub fn new(tables: &[&'static [Route]]) -> Usage {
        let routes: Vec<&'static Route> = tables.iter().flat_map(|table| table.iter()).collect();
        let places = (0..).zip(&routes).map(|(place, route)| (address(route), place)).collect();
        Usage { keys: Slots::default(), routes, places }
    }

    /// All routes, by their indexes.
    pub fn routes(&self) -> &[&'static Route] {
        &self.routes
    }

    /// The index of a route.
    pub fn place(&self, route: &Route) -> u64 {
        self.places.get(&address(route)).copied().unwrap_or_default()
    }

    /// Counts a request of the key in that slot; returns the index of its route.
    pub fn note(&self, slot: u32, done: Done) -> u64 {
        let used = self.keys.get(slot).get_or_init(Box::default);
        let place = self.place(done.route);
        used.note(Row::of(done, place));
        place
    }

    /// Reads what [`Usage::note`] will write to.
    pub fn warm(&self, slot: u32) -> u64 {
        self.keys.get(slot).get().map_or(0, |used| used.count.load(Relaxed))
    }

    /// The usage of the key in that slot in the last `days` days and `hours` hours, including the current ones.
    pub fn report(&self, slot: Option<u32>, days: u64, hours: u64, now: Timestamp) -> Report {
        let used = slot.and_then(|slot| self.keys.get(slot).get());
        let counted = used.map(|used| used.counted());
        let today = now.0 / DAY;
        let of_day = |day: u64| counted.as_ref().map_or(0, |counted| counted.day(day));
        let this_hour = now.0 / HOUR;
        let mut report = Report {
            days: past(today, days).map(|day| (Timestamp(day * DAY), of_day(day))).collect(),
            month_to_date: past(today, day_of_month(now)).map(of_day).sum(),
            ..Report::default()
        };
        for hour in past(this_hour, hours) {
            let mut row = HourRow { at: Timestamp(hour * HOUR), ..HourRow::default() };
            if let Some(hour) = counted.as_ref().and_then(|counted| counted.hour(hour as u32)) {
                row.errors = hour.errors.load(Relaxed).into();
                for (sum, count) in report.latency.iter_mut().zip(&hour.latency) {
                    let count = u64::from(count.load(Relaxed));
                    *sum += count;
                    row.requests += count;
                }
            }
            report.hours.push(row);
        }
        if let (Some(used), Some(counted)) = (used, &counted) {
            report.recent = counted.recent(used.count.load(Relaxed), &self.routes);
        }
        report
    }
}

/// The last `count` days or hours up to `now`, oldest first.
fn past(now: u64, count: u64) -> std::ops::RangeInclusive<u64> {
    now.saturating_sub(count - 1)..=now
}

/// 1 on the first of a month.
fn day_of_month(now: Timestamp) -> u64 {
    let text = wire::instant::ts_text(now);
    text[8..10].parse().expect("a time has its day at that place")
}

fn address(route: &Route) -> usize {
    std::ptr::from_ref(route) as usize
}

impl Default for Many {
    fn default() -> Many {
        Many {
            days: std::array::from_fn(|_| AtomicU64::new(0)),
            hours: std::array::from_fn(|_| OnceLock::new()),
            recent: std::array::from_fn(|_| RecentEntry::default()),
        }
    }
}

impl KeyUsage {
    fn note(&self, row: Row) {
        let number = self.count.fetch_add(1, Relaxed);
        match self.few.get(number as usize) {
            Some(place) => place.set(number, row),
            None => self.many.get_or_init(|| self.few_counted()).note(number, row),
        }
    }

    /// The few requests, counted.
    fn few_counted(&self) -> Box<Many> {
        let many = Box::<Many>::default();
        for (number, place) in (0..).zip(&self.few) {
            if let Some(row) = place.get(number) {
                many.note(number, row);
            }
        }
        many
    }

    fn counted(&self) -> Counted<'_> {
        self.many.get().map_or_else(|| Counted::Now(self.few_counted()), |many| Counted::Before(many))
    }
}

/// The counts of a key: made with each request, or now where the requests are few.
enum Counted<'a> {
    Before(&'a Many),
    Now(Box<Many>),
}

impl std::ops::Deref for Counted<'_> {
    type Target = Many;

    fn deref(&self) -> &Many {
        match self {
            Counted::Before(many) => many,
            Counted::Now(many) => many,
        }
    }
}

impl Row {
    fn of(done: Done, route: u64) -> Row {
        let latency_ms = done.ended.since(done.begun).div_ceil(MILLISECOND).min(LATENCY_MS_MAX);
        Row { begun: done.begun, is_head: done.is_head, status: done.status, route, latency_ms }
    }
}

impl RecentEntry {
    fn set(&self, number: u64, row: Row) {
        let tag = number & ((1 << TAG_BITS) - 1);
        let mut word = row.latency_ms << 1 | u64::from(row.is_head);
        word = word << STATUS_BITS | u64::from(row.status);
        word = word << ROUTE_BITS | row.route;
        self.0.store(row.begun.0 << TAG_BITS | tag, Relaxed);
        self.1.store(word << TAG_BITS | tag, Relaxed);
    }

    /// The request of that number, unless it is just being written.
    fn get(&self, number: u64) -> Option<Row> {
        let take = |word: &mut u64, bits: u32| {
            let part = *word & ((1 << bits) - 1);
            *word >>= bits;
            part
        };
        let tag = number & ((1 << TAG_BITS) - 1);
        let (mut first, mut second) = (self.0.load(Relaxed), self.1.load(Relaxed));
        if first == 0 || second == 0 || take(&mut first, TAG_BITS) != tag || take(&mut second, TAG_BITS) != tag {
            return None;
        }
        let route = take(&mut second, ROUTE_BITS);
        let status = take(&mut second, STATUS_BITS) as u16;
        let is_head = take(&mut second, 1) == 1;
        Some(Row { begun: Timestamp(first), is_head, status, route, latency_ms: second })
    }
}

impl Many {
    fn note(&self, number: u64, row: Row) {
        let (day, hour) = (row.begun.0 / DAY, (row.begun.0 / HOUR) as u32);
        let place = &self.days[day as usize % DAY_PLACES];
        let counted = |word: u64| if word >> 32 == day { word + 1 } else { day << 32 | 1 };
        // An update that always has a next value cannot fail.
        let _ = place.fetch_update(Relaxed, Relaxed, |word| Some(counted(word)));

        let hours = self.hours[(hour / DAY_HOURS) as usize % HOUR_DAYS].get_or_init(Box::default);
        let counts = &hours[(hour % DAY_HOURS) as usize];
        if counts.number.load(Relaxed) != hour && counts.number.swap(hour, Relaxed) != hour {
            counts.errors.store(0, Relaxed);
            counts.latency.iter().for_each(|count| count.store(0, Relaxed));
        }
        counts.latency[bucket(row.latency_ms)].fetch_add(1, Relaxed);
        if row.status >= 400 {
            counts.errors.fetch_add(1, Relaxed);
        }
        self.recent[(number % RECENT_PLACES) as usize].set(number, row);
    }

    fn day(&self, day: u64) -> u64 {
        let word = self.days[day as usize % DAY_PLACES].load(Relaxed);
        if word >> 32 == day { word & u64::from(u32::MAX) } else { 0 }
    }

    fn hour(&self, hour: u32) -> Option<&Hour> {
        let counts = &self.hours[(hour / DAY_HOURS) as usize % HOUR_DAYS].get()?[(hour % DAY_HOURS) as usize];
        (counts.number.load(Relaxed) == hour).then_some(counts)
    }

    /// The newest of `count` requests.
    fn recent(&self, count: u64, routes: &[&'static Route]) -> Vec<RecentRow> {
        let row = |number: u64| {
            let Row { begun, is_head, status, route, latency_ms } =
                self.recent[(number % RECENT_PLACES) as usize].get(number)?;
            let route = routes.get(route as usize)?;
            let method = if is_head { "HEAD" } else { route.method.text() };
            Some(RecentRow { status, method, route: route.path, latency_ms, at: begun })
        };
        (count.saturating_sub(RECENT)..count).rev().filter_map(row).collect()
    }
}

fn bucket(latency_ms: u64) -> usize {
    BUCKETS_MS.iter().position(|bound| latency_ms <= *bound).unwrap_or(BUCKETS - 1)
}

/// The upper bound of the bucket that has the given percentile, in milliseconds. `None` without samples, and in the
/// bucket without a bound.
pub fn percentile_ms(buckets: &[u64; BUCKETS], percent: u64) -> Option<u64> {
    let samples: u64 = buckets.iter().sum();
    let wanted = (samples * percent).div_ceil(100);
    let mut seen = 0;
    let reached = buckets.iter().position(|count| {
        seen += count;
        samples > 0 && seen >= wanted
    });
    reached.and_then(|bucket| BUCKETS_MS.get(bucket).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::NOW;

    static TABLE: &[Route] = &[Route::get("/v1/a/{id}", "a"), Route::post("/v1/b", "b")];

    fn done(route: usize, status: u16, at: Timestamp, latency_us: u64) -> Done {
        Done { route: &TABLE[route], is_head: route == 0, status, begun: at, ended: at.plus(latency_us) }
    }

    #[test]
    fn a_report_has_the_days_and_hours_of_the_requests() {
        let usage = Usage::new(&[TABLE]);
        // (hours before now, requests, status)
        let rows =
            [(0, 3, 200), (1, 2, 404), (23, 1, 503), (24, 4, 201), (167, 5, 429), (168, 6, 200), (2_200, 7, 200)];
        for (hours, count, status) in rows.iter().rev() {
            for _ in 0..*count {
                usage.note(7, done(0, *status, Timestamp(NOW.0 - hours * HOUR), 1));
            }
        }
        for (hours, requests, errors) in [(1, 3, 0), (2, 5, 2), (24, 6, 3), (25, 10, 3), (168, 15, 8)] {
            let report = usage.report(Some(7), 1, hours, NOW);
            let sums = report.hours.iter().fold((0, 0), |sum, row| (sum.0 + row.requests, sum.1 + row.errors));
            assert_eq!((report.hours.len() as u64, sums), (hours, (requests, errors)), "{hours} hours");
            assert_eq!(report.hours.last().map(|row| row.at), Some(Timestamp(NOW.0 / HOUR * HOUR)));
            assert_eq!(report.latency.iter().sum::<u64>(), requests);
        }
        // It is 09:14 on the second of October.
        for (days, expected) in [(1, vec![5]), (2, vec![5, 5]), (8, vec![11, 0, 0, 0, 0, 0, 5, 5])] {
            let report = usage.report(Some(7), days, 1, NOW);
            let counts: Vec<_> = report.days.iter().map(|(_, count)| *count).collect();
            assert_eq!(counts, expected, "{days} days");
            assert_eq!(report.month_to_date, 10);
        }
        assert!(usage.report(Some(8), 90, 168, NOW).recent.is_empty());
        assert_eq!(usage.report(None, 90, 168, NOW).days.len(), 90);
        println!("usage: 10 cases");
    }

    /// Few requests, kept one by one, and many, counted, give the same report.
    #[test]
    fn few_requests_are_reported_like_many() {
        for total in 0..=3 * FEW as u64 {
            let usage = Usage::new(&[TABLE]);
            // An hour apart, every third one refused, the newest now.
            let at = |number: u64| Timestamp(NOW.0 - (total - 1 - number) * HOUR);
            for number in 0..total {
                let status = if number.is_multiple_of(3) { 404 } else { 200 };
                usage.note(1, done((number % 2) as usize, status, at(number), number * 60 * MILLISECOND));
            }
            let report = usage.report(Some(1), 90, HOURS_MAX, NOW);
            let counted = (
                report.days.iter().map(|day| day.1).sum::<u64>(),
                report.hours.iter().rev().take_while(|row| row.requests == 1).count() as u64,
                report.hours.iter().map(|row| row.errors).sum::<u64>(),
                report.latency.iter().sum::<u64>(),
                report.latency[0],
            );
            assert_eq!(counted, (total, total, total.div_ceil(3), total, total.min(1)), "{total} requests");
            let recent = report.recent.iter().map(|row| (row.at, row.latency_ms, row.method));
            let expected = (0..total)
                .rev()
                .map(|number| (at(number), number * 60, if number.is_multiple_of(2) { "HEAD" } else { "POST" }));
            assert!(recent.eq(expected), "{total} requests: {:?}", report.recent);
        }
        println!("few and many requests: {} cases", 3 * FEW + 1);
    }

    /// The bound of the module's documentation.
    #[test]
    fn a_key_of_few_requests_is_small() {
        assert!(size_of::<KeyUsage>() <= 128, "{} bytes", size_of::<KeyUsage>());
    }

    /// A later day or hour takes over a counter, and the old count is dropped.
    #[test]
    fn old_counts_do_not_come_back() {
        let usage = Usage::new(&[TABLE]);
        let later = NOW.plus(DAY_PLACES as u64 * DAY);
        usage.note(0, done(0, 500, NOW, 1));
        assert_eq!(usage.report(Some(0), 90, 168, later).days.iter().map(|day| day.1).sum::<u64>(), 0);
        usage.note(0, done(0, 200, later, 1));
        let report = usage.report(Some(0), 90, 168, later);
        assert_eq!(report.days.last().map(|day| day.1), Some(1));
        assert_eq!(report.hours.last().map(|row| (row.requests, row.errors)), Some((1, 0)));
        println!("old counts: 2 cases");
    }

    #[test]
    fn the_last_fifty_are_remembered() {
        let usage = Usage::new(&[TABLE]);
        for number in 0..5_000_u64 {
            usage.note(3, done((number % 2) as usize, 200 + (number % 300) as u16, NOW.plus(number), number * 1_000));
            let recent = usage.report(Some(3), 1, 1, NOW).recent;
            assert_eq!(recent.len() as u64, (number + 1).min(RECENT));
            for (back, row) in (0..).zip(&recent) {
                let number = number - back;
                let route = if number.is_multiple_of(2) { ("HEAD", "/v1/a/{id}") } else { ("POST", "/v1/b") };
                assert_eq!((row.method, row.route), route);
                let shown = (row.status, row.latency_ms, row.at);
                assert_eq!(shown, (200 + (number % 300) as u16, number, NOW.plus(number)));
            }
        }
        println!("recent requests: 5000 cases");
    }

    #[test]
    fn percentiles_are_bounds_of_buckets() {
        let rows = [
            ([0, 0, 0, 0, 0, 0], None, None),
            ([1, 0, 0, 0, 0, 0], Some(50), Some(50)),
            ([1, 1, 0, 0, 0, 0], Some(50), Some(100)),
            ([50, 0, 0, 50, 0, 0], Some(50), Some(500)),
            ([49, 0, 2, 0, 49, 0], Some(250), Some(1_000)),
            ([98, 0, 0, 0, 1, 1], Some(50), Some(1_000)),
            ([97, 0, 0, 0, 1, 2], Some(50), None),
            ([0, 0, 0, 0, 0, 9], None, None),
        ];
        for (buckets, p50, p99) in rows {
            assert_eq!((percentile_ms(&buckets, 50), percentile_ms(&buckets, 99)), (p50, p99), "{buckets:?}");
        }
        for (latency_us, expected) in [(0, 0), (50_000, 0), (50_001, 1), (250_000, 2), (1_000_000, 4), (1_000_001, 5)] {
            let row = Row::of(done(0, 200, NOW, latency_us), 0);
            assert_eq!(bucket(row.latency_ms), expected, "{latency_us} µs");
        }
        println!("latency: {} cases", rows.len() + 6);
    }
}
