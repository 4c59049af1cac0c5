//! Names and windows of the up-or-down markets (gateway/docs/live-venues.md §3.4), in both directions.
//!
//! A slug contains the family (asset and interval) and, for the short intervals, the start. If a venue gives dates,
//! those decide the window.

use engine::market::terms::{Asset, Interval};
use engine::time::{DAY, HOUR, SECOND, Timestamp};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The parts of the slug of an up-or-down market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    pub asset: Asset,
    pub interval: Interval,
    /// Only in slugs of 5M, 15M and 4H.
    pub start: Option<Timestamp>,
}

/// The length of a window in µs; a daily one is an hour longer or shorter when the clocks change.
pub fn length(interval: Interval) -> u64 {
    match interval {
        Interval::FiveMinutes => 300 * SECOND,
        Interval::FifteenMinutes => 900 * SECOND,
        Interval::Hour => HOUR,
        Interval::FourHours => 4 * HOUR,
        Interval::Daily => DAY,
    }
}

/// The family of a slug; `None` if it is not an up-or-down market.
pub fn family(slug: &str) -> Option<Family> {
    if let Some((asset, rest)) = slug.split_once("-updown-") {
        let (interval, start) = rest.split_once('-')?;
        let interval = match interval {
            "5m" => Interval::FiveMinutes,
            "15m" => Interval::FifteenMinutes,
            "1h" => Interval::Hour,
            "4h" => Interval::FourHours,
            _ => return None,
        };
        let start = start.parse().ok().map(Timestamp::from_secs);
        return Some(Family { asset: asset_of(asset)?, interval, start });
    }
    let (asset, rest) = slug.split_once("-up-or-down-")?;
    let interval = if rest.starts_with("on-") {
        Interval::Daily
    } else if rest.ends_with("am-et") || rest.ends_with("pm-et") {
        Interval::Hour
    } else {
        return None;
    };
    Some(Family { asset: asset_of(asset)?, interval, start: None })
}

fn asset_of(name: &str) -> Option<Asset> {
    Some(match name {
        "btc" | "bitcoin" => Asset::Btc,
        "eth" | "ethereum" => Asset::Eth,
        "sol" | "solana" => Asset::Sol,
        "xrp" => Asset::Xrp,
        "spx" => Asset::Spx,
        "ndx" => Asset::Ndx,
        _ => return None,
    })
}

/// The window that contains `at`: multiples of the length since 1970, and noon to noon in New York for daily ones.
pub fn window(interval: Interval, at: Timestamp) -> (Timestamp, Timestamp) {
    if interval != Interval::Daily {
        let length = length(interval);
        let start = at.0 - at.0 % length;
        return (Timestamp(start), Timestamp(start.saturating_add(length)));
    }
    let local = eastern(at);
    let noon = local.date().at(12, 0, 0, 0);
    let (from, to) = if local < noon { (noon.yesterday(), Ok(noon)) } else { (Ok(noon), noon.tomorrow()) };
    let utc_day = Timestamp(at.0 - at.0 % DAY);
    // At the limits of the calendar, which no clock reaches, the UTC day is used.
    match (from.ok().and_then(utc), to.ok().and_then(utc)) {
        (Some(from), Some(to)) => (from, to),
        _ => (utc_day, utc_day.plus(DAY)),
    }
}

/// The slug of a window.
pub fn slug(asset: Asset, interval: Interval, start: Timestamp, end: Timestamp) -> String {
    let short = match asset {
        Asset::Btc => "btc",
        Asset::Eth => "eth",
        Asset::Sol => "sol",
        Asset::Xrp => "xrp",
        Asset::Spx => "spx",
        Asset::Ndx => "ndx",
    };
    match interval {
        Interval::FiveMinutes => format!("{short}-updown-5m-{}", start.secs()),
        Interval::FifteenMinutes => format!("{short}-updown-15m-{}", start.secs()),
        Interval::FourHours => format!("{short}-updown-4h-{}", start.secs()),
        Interval::Hour => {
            let from = eastern(start);
            let (month, day, year) = (month(from).to_ascii_lowercase(), from.day(), from.year());
            let hour = hour(from).to_ascii_lowercase();
            format!("{}-up-or-down-{month}-{day}-{year}-{hour}-et", long(asset).to_ascii_lowercase())
        }
        Interval::Daily => {
            let to = eastern(end);
            let (month, day, year) = (month(to).to_ascii_lowercase(), to.day(), to.year());
            format!("{}-up-or-down-on-{month}-{day}-{year}", long(asset).to_ascii_lowercase())
        }
    }
}

/// The slug as the venue writes it in families without a year; `None` if it has no year.
pub fn without_year(slug: &str) -> Option<String> {
    let is_year = |part: &str| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts: Vec<&str> = slug.split('-').collect();
    let year = parts.iter().rposition(|part| is_year(part))?;
    parts.remove(year);
    Some(parts.join("-"))
}

/// The title of a window, in New York time.
pub fn title(asset: Asset, interval: Interval, start: Timestamp, end: Timestamp) -> String {
    let (from, to, name) = (eastern(start), eastern(end), long(asset));
    match interval {
        Interval::Hour => format!("{name} Up or Down - {} {}, {} ET", month(from), from.day(), hour(from)),
        Interval::Daily => format!("{name} Up or Down on {} {}?", month(to), to.day()),
        _ => format!("{name} Up or Down - {} {}, {}-{} ET", month(from), from.day(), minute(from), minute(to)),
    }
}

/// The slug of the series that a window belongs to.
pub fn series(asset: Asset, interval: Interval) -> String {
    format!("{}-up-or-down-{}", asset.name().to_ascii_lowercase(), interval.name().to_ascii_lowercase())
}

fn long(asset: Asset) -> &'static str {
    match asset {
        Asset::Btc => "Bitcoin",
        Asset::Eth => "Ethereum",
        Asset::Sol => "Solana",
        Asset::Xrp => "XRP",
        Asset::Spx => "SPX",
        Asset::Ndx => "NDX",
    }
}

/// `6:00 AM-7:00 AM ET`.
pub fn time_range(start: Timestamp, end: Timestamp) -> String {
    let clock = |at: DateTime| {
        let half = if at.hour() < 12 { "AM" } else { "PM" };
        format!("{}:{:02} {half}", (at.hour() + 11) % 12 + 1, at.minute())
    };
    format!("{}-{} ET", clock(eastern(start)), clock(eastern(end)))
}

/// `October 2`, in New York.
pub fn date(at: Timestamp) -> String {
    let at = eastern(at);
    format!("{} {}", month(at), at.day())
}

/// New York's rule since 2007: no time zone database is needed.
fn new_york() -> TimeZone {
    TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").expect("the rule is well-formed: a test reads it")
}

fn eastern(at: Timestamp) -> DateTime {
    let moment = jiff::Timestamp::from_microsecond(i64::try_from(at.0).unwrap_or(i64::MAX));
    new_york().to_datetime(moment.unwrap_or(jiff::Timestamp::MAX))
}

fn utc(local: DateTime) -> Option<Timestamp> {
    let moment = new_york().to_timestamp(local).ok()?.as_microsecond();
    u64::try_from(moment).ok().map(Timestamp)
}

fn month(at: DateTime) -> &'static str {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    MONTHS[at.month() as usize - 1]
}

fn hour(at: DateTime) -> String {
    let half = if at.hour() < 12 { "AM" } else { "PM" };
    format!("{}{half}", (at.hour() + 11) % 12 + 1)
}

fn minute(at: DateTime) -> String {
    let half = if at.hour() < 12 { "AM" } else { "PM" };
    format!("{}:{:02}{half}", (at.hour() + 11) % 12 + 1, at.minute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_contain_their_family() {
        use {Asset::*, Interval::*};
        let start = Some(Timestamp::from_secs(1_773_307_200));
        for (slug, expected) in [
            ("btc-updown-5m-1773307200", Some((Btc, FiveMinutes, start))),
            ("xrp-updown-4h-1773307200", Some((Xrp, FourHours, start))),
            ("bitcoin-up-or-down-march-12-2026-5am-et", Some((Btc, Hour, None))),
            ("solana-up-or-down-march-12-12pm-et", Some((Sol, Hour, None))),
            ("ethereum-up-or-down-on-march-12", Some((Eth, Daily, None))),
            ("spx-up-or-down-on-march-12-2026", Some((Spx, Daily, None))),
            ("doge-updown-5m-1773307200", None),
            ("btc-updown-7m-1773307200", None),
            ("will-bitcoin-be-up-or-down", None),
            ("btc-updown-5m-soon", Some((Btc, FiveMinutes, None))),
        ] {
            let family = family(slug).map(|family| (family.asset, family.interval, family.start));
            assert_eq!(family, expected, "{slug}");
        }
    }

    #[test]
    fn windows_follow_each_other_and_have_slugs() {
        // Spring 2026: the clocks of New York change on 8 March.
        let mut at = Timestamp::from_secs(1_772_800_000);
        for interval in Interval::ALL {
            for _ in 0..5 {
                let (start, end) = window(interval, at);
                assert!(start <= at && at < end);
                assert_eq!(window(interval, end).0, end, "{interval:?} at {at:?}");
                for asset in Asset::ALL {
                    let family = family(&slug(asset, interval, start, end)).unwrap();
                    assert_eq!((family.asset, family.interval), (asset, interval));
                }
                at = end;
            }
        }
        let (start, end) = window(Interval::Daily, Timestamp::from_secs(1_772_950_000));
        assert_eq!(end.since(start), 23 * HOUR);
    }

    #[test]
    fn titles_and_slugs_are_in_new_york_time() {
        let at = Timestamp::from_secs(1_773_307_200);
        let named = |interval| {
            let (start, end) = window(interval, at);
            (slug(Asset::Btc, interval, start, end), title(Asset::Btc, interval, start, end))
        };
        assert_eq!(
            named(Interval::FiveMinutes),
            ("btc-updown-5m-1773307200".into(), "Bitcoin Up or Down - March 12, 5:20AM-5:25AM ET".into())
        );
        assert_eq!(
            named(Interval::Hour),
            ("bitcoin-up-or-down-march-12-2026-5am-et".into(), "Bitcoin Up or Down - March 12, 5AM ET".into())
        );
        let shown = |interval| {
            let (start, end) = window(interval, at);
            (date(start), time_range(start, end))
        };
        assert_eq!(shown(Interval::Hour), ("March 12".into(), "5:00 AM-6:00 AM ET".into()));
        assert_eq!(shown(Interval::Daily), ("March 11".into(), "12:00 PM-12:00 PM ET".into()));
        assert_eq!(shown(Interval::FiveMinutes), ("March 12".into(), "5:20 AM-5:25 AM ET".into()));
        assert_eq!(
            named(Interval::Daily),
            ("bitcoin-up-or-down-on-march-12-2026".into(), "Bitcoin Up or Down on March 12?".into())
        );
    }
}
