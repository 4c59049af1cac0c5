//! The markets of the world: keys, listings, dates and results, all functions of the seed and a market's key.
//!
//! A plain event is a subject and a generation: on each subject one event follows another. A window is an asset, an
//! interval and a start. Nothing is stored; a restart finds the same markets.

use super::noise::{Paths, mix};
use super::prices::{Ending, Fortune, Shape, Underlying, Window};
use super::subjects::SUBJECTS;
use crate::{category, ids};
use engine::amount::TickSize;
use engine::id::Outcome;
use engine::market::terms::{Asset, EventTerms, Interval, Listing, Resolution, UpDown, Venue};
use engine::time::{DAY, HOUR, SECOND, Timestamp};
use wire::updown;

/// How long before its start a plain event is listed.
const ANNOUNCED: u64 = 600 * SECOND;
/// Time from the end of a market to its resolution. The recorded 5-minute windows took 16 s.
const RESOLVED_AFTER: u64 = 120 * SECOND;
const WINDOW_RESOLVED_AFTER: u64 = 15 * SECOND;

/// The identity of a market in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Plain { subject: u16, generation: u64, market: u8 },
    Window { asset: Asset, interval: Interval, start: Timestamp },
}

/// A series of markets that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Series {
    Subject(u16),
    Windows(Asset, Interval),
}

/// The seed and the settings of a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    pub(super) seed: u64,
    /// Factor on the rates of book changes and trades; not 0.
    pub(super) liveliness: u64,
}

/// The fixed data of a market.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) key: Key,
    pub(super) listed: Timestamp,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) resolved: Timestamp,
    pub(super) resolution: Option<Resolution>,
    /// Whether trading starts with the listing, instead of at the start.
    pub(super) active_when_listed: bool,
    pub(super) tick: TickSize,
    /// The seed of its book.
    pub(super) seed: u64,
    /// That of its world.
    pub(super) liveliness: u64,
    worth: Worth,
}

#[derive(Clone, Debug)]
enum Worth {
    Plain { fortune: Fortune, market: u8 },
    Window { underlying: Underlying, window: Window },
}

impl World {
    /// All series, in the order in which they are listed.
    pub(super) fn series() -> impl Iterator<Item = Series> {
        let subjects = (0..SUBJECTS.len() as u16).map(Series::Subject);
        let windows = Asset::ALL.into_iter().flat_map(|asset| {
            // Stock indices have daily windows only.
            let coin = !matches!(asset, Asset::Spx | Asset::Ndx);
            let intervals = Interval::ALL.into_iter().filter(move |interval| coin || *interval == Interval::Daily);
            intervals.map(move |interval| Series::Windows(asset, interval))
        });
        subjects.chain(windows)
    }

    /// Markets of a series that are listed at `at`, and those that ended less than `recent` before it; oldest first.
    pub(super) fn listed(self, series: Series, at: Timestamp, recent: u64) -> Vec<Key> {
        let from = Timestamp(at.0.saturating_sub(recent));
        match series {
            Series::Subject(subject) => {
                let first = self.generation(subject, from);
                let last = self.generation(subject, at.plus(ANNOUNCED));
                (first..=last).flat_map(|generation| markets(subject, generation)).collect()
            }
            Series::Windows(asset, interval) => {
                let mut keys = Vec::new();
                let (mut start, mut end) = updown::window(interval, from);
                let mut ahead = 0;
                while ahead <= windows_ahead(interval) {
                    keys.push(Key::Window { asset, interval, start });
                    ahead += u32::from(end > at);
                    (start, end) = updown::window(interval, end);
                }
                keys
            }
        }
    }

    /// The next listing of the series after `at`: its time and markets.
    pub(super) fn next_listed(self, series: Series, at: Timestamp) -> (Timestamp, Vec<Key>) {
        match series {
            Series::Subject(subject) => {
                let generation = self.generation(subject, at.plus(ANNOUNCED)) + 1;
                let start = self.span(subject, generation).0;
                (Timestamp(start.0 - ANNOUNCED), markets(subject, generation).collect())
            }
            Series::Windows(asset, interval) => {
                let (_, listed) = updown::window(interval, at);
                let mut start = listed;
                for _ in 0..windows_ahead(interval) {
                    start = updown::window(interval, start).1;
                }
                (listed, vec![Key::Window { asset, interval, start }])
            }
        }
    }

    /// The generation of the event of a subject at `at`.
    fn generation(self, subject: u16, at: Timestamp) -> u64 {
        let (length, offset) = self.rhythm(subject);
        at.0.saturating_sub(offset) / length
    }

    fn span(self, subject: u16, generation: u64) -> (Timestamp, Timestamp) {
        let (length, offset) = self.rhythm(subject);
        let start = offset.saturating_add(generation.saturating_mul(length));
        (Timestamp(start), Timestamp(start.saturating_add(length)))
    }

    /// The length of the events of a subject, and the start of generation 0.
    pub(super) fn rhythm(self, subject: u16) -> (u64, u64) {
        const LENGTHS: [u64; 8] = [6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 30 * DAY];
        let draw = mix(self.seed, 0x5b_0000 + u64::from(subject));
        let length = LENGTHS[(draw % 8) as usize];
        // Whole minutes, for readable end times.
        let minutes = length / (60 * SECOND);
        (length, (draw >> 8) % minutes * 60 * SECOND)
    }

    /// The data of a market; `None` for a key of no market.
    pub(super) fn spec(self, key: Key) -> Option<Spec> {
        let seed = mix(self.seed, hash(key));
        match key {
            Key::Plain { subject, generation, market } => {
                let about = SUBJECTS.get(usize::from(subject))?;
                let markets_count = about.labels.len().max(1) as u8;
                if market >= markets_count {
                    return None;
                }
                let (start, end) = self.span(subject, generation);
                let event = mix(mix(self.seed, 0xe7_0000 + u64::from(subject)), generation);
                let may_split = about.labels.is_empty();
                let fortune = Fortune::new(event, about.shape, markets_count, may_split, (start, end));
                let resolution = match fortune.ending(market) {
                    Ending::Yes => Resolution::Winner(Outcome::First),
                    Ending::No => Resolution::Winner(Outcome::Second),
                    Ending::Split => Resolution::Split,
                };
                Some(Spec {
                    key,
                    listed: Timestamp(start.0.saturating_sub(ANNOUNCED)),
                    start,
                    end,
                    resolved: end.plus(RESOLVED_AFTER),
                    resolution: Some(resolution),
                    active_when_listed: false,
                    tick: plain_tick(subject, about.labels.len()),
                    seed,
                    liveliness: self.liveliness,
                    worth: Worth::Plain { fortune, market },
                })
            }
            Key::Window { asset, interval, start } => {
                let (from, end) = updown::window(interval, start);
                if from != start {
                    return None;
                }
                let underlying = Underlying::new(self.seed, asset);
                let listed = (0..windows_ahead(interval))
                    .fold(start, |start, _| updown::window(interval, Timestamp(start.0.saturating_sub(1))).0);
                Some(Spec {
                    key,
                    listed,
                    start,
                    end,
                    resolved: end.plus(WINDOW_RESOLVED_AFTER),
                    resolution: None,
                    active_when_listed: true,
                    tick: TickSize(100),
                    seed,
                    liveliness: self.liveliness,
                    worth: Worth::Window { underlying, window: underlying.window(interval, start, end) },
                })
            }
        }
    }

    /// The listing of a market.
    pub(super) fn listing(self, spec: &Spec) -> Listing {
        let id = spec.key.to_string();
        let named = |part: &str| format!("synthetic:{}:{id}{part}", self.seed);
        let (condition, tokens) = (ids::condition(&named("")), [ids::token(&named(":0")), ids::token(&named(":1"))]);
        let common = |slug: String, question: String, event: EventTerms| Listing {
            venue: Venue::Synthetic,
            venue_market_id: id.clone(),
            condition,
            tokens,
            outcomes: ["Yes".into(), "No".into()],
            slug,
            question,
            description: None,
            image: None,
            label: None,
            category: engine::market::terms::Category::Unknown,
            tags: Vec::new(),
            event: Some(event),
            tick: spec.tick,
            min_order_size: Some(spec.tick.min_order_size()),
            neg_risk: false,
            start: Some(spec.start),
            end: Some(spec.end),
            updown: None,
            sports: false,
        };
        match spec.key {
            Key::Plain { subject, generation, market } => {
                let about = &SUBJECTS[usize::from(subject)];
                let title = about.title.replace("{}", &date(spec.end));
                let event_slug = format!("{}-{generation}", slugged(&title));
                let label = about.labels.get(usize::from(market)).copied();
                let event = EventTerms {
                    id: format!("synthetic:{}:{subject}.{generation}", self.seed),
                    slug: event_slug.clone(),
                    title: title.clone(),
                    image: None,
                    end: Some(spec.end),
                };
                let slug = label.map_or(event_slug.clone(), |label| format!("{event_slug}-{}", slugged(label)));
                let question = label.map_or(title.clone(), |label| format!("{title}: {label}"));
                let sports = about.category == engine::market::terms::Category::Sports;
                Listing {
                    label: label.map(String::from),
                    description: Some(format!(
                        "A market of the synthetic venue: it ends and is decided by the seed of its world. {title}"
                    )),
                    category: about.category,
                    tags: about.tags.iter().map(|tag| tag.to_string()).collect(),
                    neg_risk: about.shape == Shape::Exclusive,
                    sports,
                    ..common(slug, question, event)
                }
            }
            Key::Window { asset, interval, start } => {
                let (slug, title) =
                    (updown::slug(asset, interval, start, spec.end), updown::title(asset, interval, start, spec.end));
                let event = EventTerms {
                    id: format!("synthetic:{}:{id}", self.seed),
                    slug: slug.clone(),
                    title: title.clone(),
                    image: None,
                    end: Some(spec.end),
                };
                Listing {
                    outcomes: ["Up".into(), "Down".into()],
                    description: Some(
                        "Up when the price at the end of the window is not below the price at its start.".into(),
                    ),
                    category: category::of_asset(asset),
                    tags: vec!["up-or-down".into(), updown::series(asset, interval)],
                    updown: Some(UpDown { asset, interval, start, end: spec.end }),
                    ..common(slug, title, event)
                }
            }
        }
    }
}

impl Spec {
    /// The fair price of the first outcome. `paths` must be those of this market.
    pub(super) fn chance(&self, at: Timestamp, paths: &mut Paths) -> f64 {
        #[cfg(test)]
        super::work::note(super::work::Kind::Chances, 1);
        match &self.worth {
            Worth::Plain { fortune, market } => fortune.chance(*market, at, paths),
            Worth::Window { underlying, window } => underlying.chance(window, at, paths),
        }
    }

    /// The result of the market; called only after its end.
    pub(super) fn resolution(&self) -> Resolution {
        self.resolution.unwrap_or_else(|| {
            let up = match (&self.worth, self.key) {
                (Worth::Window { underlying, .. }, Key::Window { interval, .. }) => {
                    underlying.goes_up(interval, self.start, self.end)
                }
                _ => true,
            };
            Resolution::Winner(if up { Outcome::First } else { Outcome::Second })
        })
    }

    /// Threshold of a window in dollars; `None` for other markets.
    pub(super) fn to_beat(&self) -> Option<f64> {
        match (&self.worth, self.key) {
            (Worth::Window { underlying, .. }, Key::Window { interval, .. }) => {
                Some(underlying.to_beat(interval, self.start))
            }
            _ => None,
        }
    }

    /// When it gets its first book.
    pub(super) fn opens(&self) -> Timestamp {
        if self.active_when_listed { self.listed } else { self.start }
    }
}

fn markets(subject: u16, generation: u64) -> impl Iterator<Item = Key> {
    let count = SUBJECTS[usize::from(subject)].labels.len().max(1) as u8;
    (0..count).map(move |market| Key::Plain { subject, generation, market })
}

/// Number of windows listed ahead of the current one.
fn windows_ahead(interval: Interval) -> u32 {
    match interval {
        Interval::FiveMinutes | Interval::FifteenMinutes => 3,
        Interval::Hour => 2,
        Interval::FourHours | Interval::Daily => 1,
    }
}

/// The tick of a plain market. As at the venue, most have 0.01 and many 0.001; the others are rare.
fn plain_tick(subject: u16, labels_count: usize) -> TickSize {
    TickSize(match subject % 9 {
        // Coarse ticks only where prices are not all near 0 or 1.
        1 | 5 if labels_count == 0 => 1_000,
        4 => 1,
        2 | 6 | 8 => 10,
        _ => 100,
    })
}

fn hash(key: Key) -> u64 {
    match key {
        Key::Plain { subject, generation, market } => mix(mix(u64::from(subject), generation), u64::from(market)),
        Key::Window { asset, interval, start } => mix(mix(asset as u64 + 0x100, interval as u64), start.0),
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Plain { subject, generation, market } => write!(f, "{subject}.{generation}.{market}"),
            Key::Window { asset, interval, start } => {
                write!(f, "{}-{}-{}", asset.name(), interval.name(), start.secs())
            }
        }
    }
}

impl std::str::FromStr for Key {
    type Err = ();

    fn from_str(text: &str) -> Result<Key, ()> {
        let parts: Vec<&str> = text.split(['.', '-']).collect();
        let [first, second, third] = parts.as_slice() else { return Err(()) };
        let number = |text: &str| text.parse::<u64>().map_err(|_| ());
        if let Some(asset) = Asset::ALL.into_iter().find(|asset| asset.name() == *first) {
            let interval = Interval::ALL.into_iter().find(|interval| interval.name() == *second).ok_or(())?;
            return Ok(Key::Window { asset, interval, start: Timestamp::from_secs(number(third)?) });
        }
        Ok(Key::Plain {
            subject: u16::try_from(number(first)?).map_err(|_| ())?,
            generation: number(second)?,
            market: u8::try_from(number(third)?).map_err(|_| ())?,
        })
    }
}

/// `March 12, 2026, 14:05 UTC`, or without the time at midnight.
fn date(at: Timestamp) -> String {
    let time = jiff::Timestamp::from_microsecond(i64::try_from(at.0).unwrap_or(i64::MAX));
    let time = time.unwrap_or(jiff::Timestamp::MAX).to_zoned_datetime(jiff::tz::TimeZone::UTC);
    time.strftime("%B %-d, %Y, %H:%M UTC").to_string()
}

/// Lower case; other characters than letters and digits become single dashes.
fn slugged(title: &str) -> String {
    let mut slug = String::with_capacity(title.len());
    for character in title.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::market::terms::Category;
    use std::collections::BTreeSet;

    const NOW: Timestamp = Timestamp(1_790_000_123 * SECOND);

    #[test]
    fn the_world_has_all_categories_ticks_and_window_families() {
        let world = World { seed: 42, liveliness: 1 };
        let specs: Vec<Spec> =
            World::series().flat_map(|series| world.listed(series, NOW, 0)).filter_map(|key| world.spec(key)).collect();
        let listings: Vec<Listing> = specs.iter().map(|spec| world.listing(spec)).collect();
        assert!((180..260).contains(&listings.len()), "{} markets", listings.len());
        for category in Category::ALL.into_iter().filter(|category| category.name().is_some()) {
            assert!(listings.iter().any(|listing| listing.category == category), "{category:?}");
        }
        let ticks: BTreeSet<u16> = listings.iter().map(|listing| listing.tick.0).collect();
        assert_eq!(ticks, BTreeSet::from([1, 10, 100, 1_000]));
        let families: BTreeSet<(&str, &str)> = listings
            .iter()
            .filter_map(|listing| listing.updown.map(|window| (window.asset.name(), window.interval.name())))
            .collect();
        assert_eq!(families.len(), 22, "{families:?}");
        assert!(listings.iter().filter(|listing| listing.neg_risk).count() > 20);
        let slugs: BTreeSet<&String> = listings.iter().map(|listing| &listing.slug).collect();
        assert_eq!(slugs.len(), listings.len(), "slugs are unique");
    }

    #[test]
    fn keys_read_back_and_series_have_no_gaps() {
        let world = World { seed: 5, liveliness: 1 };
        for series in World::series() {
            let listed = world.listed(series, NOW, 3 * HOUR);
            for key in &listed {
                assert_eq!(key.to_string().parse(), Ok(*key));
                let spec = world.spec(*key).unwrap();
                assert!(spec.listed <= NOW && spec.end > Timestamp(NOW.0 - 3 * HOUR), "{spec:?}");
            }
            let (at, next) = world.next_listed(series, NOW);
            assert!(at > NOW);
            for key in &next {
                assert!(!listed.contains(key));
                assert_eq!(world.spec(*key).unwrap().listed, at, "{key:?}");
            }
            let then: Vec<Key> = world.listed(series, at, 0);
            assert!(next.iter().all(|key| then.contains(key)), "{series:?}");
            let before = world.listed(series, Timestamp(at.0 - 1), 0);
            assert!(!next.iter().any(|key| before.contains(key)), "{series:?}");
        }
        for wrong in ["", "1.2", "BTC-5M-x", "BTC-9M-0", "1.2.999", "DOGE-5M-0", "70000.1.1"] {
            assert_eq!(wrong.parse::<Key>(), Err(()), "{wrong}");
        }
        assert!(world.spec("9999.1.0".parse().unwrap()).is_none());
        assert!(world.spec("BTC-5M-1".parse().unwrap()).is_none());
    }
}
