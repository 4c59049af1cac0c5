//! Parameters of requests for price history (gateway/docs/market-data.md §10, gateway/docs/venue-clients.md §3).

use crate::api::tokens;
use crate::http::code::Code;
use crate::http::reply::Refusal;
use engine::time::Timestamp;
use std::ops::RangeInclusive;
use wire::query::Query;
use wire::write;

/// Intervals in seconds; `u64::MAX` is the whole history, and a month has 30 days.
const INTERVALS: [(&str, u64); 7] = [
    ("1h", 3_600),
    ("6h", 21_600),
    ("1d", 86_400),
    ("1w", 604_800),
    ("1m", 2_592_000),
    ("max", u64::MAX),
    ("all", u64::MAX),
];
const INTERVAL_SECS_DEFAULT: u64 = 3_600;
const ARCHIVE_FIDELITY_MAX: u64 = 1_440;
const ARCHIVE_FIDELITY_DEFAULT: u64 = 60;

/// The range of history to show.
#[derive(Debug, PartialEq, Eq)]
pub struct HistoryRange {
    /// Unix seconds.
    pub secs: RangeInclusive<u64>,
    /// Minutes of a point.
    pub fidelity: u64,
    pub ohlcv: bool,
}

/// The token that a query names: `market` wins over `token_id`.
///
/// # Errors
/// `INVALID_TOKEN_ID`.
pub fn token<'a>(query: &'a Query<'_>) -> Result<&'a str, Code> {
    let named = query.first_of(&["market", "token_id"]);
    named.filter(|token| tokens::well_formed(token)).ok_or(Code::InvalidTokenId)
}

impl HistoryRange {
    /// A range by its ends; a start without an end goes on until now. Without a start: an interval that ends at `endTs`
    /// or now. With a start the interval is ignored.
    ///
    /// # Errors
    /// `INVALID_WINDOW`, `INVALID_INTERVAL`, `INVALID_REQUEST`.
    pub fn prices(query: &Query<'_>, now: Timestamp) -> Result<HistoryRange, Refusal> {
        let (start, end) = ends(query)?;
        let end = end.unwrap_or(now.secs());
        let start = match start {
            Some(start) => start,
            None => end.saturating_sub(interval(query)?),
        };
        Ok(HistoryRange { secs: start..=end, fidelity: fidelity(query, u64::MAX)?.unwrap_or(1), ohlcv: ohlcv(query) })
    }

    /// A range by its ends, each of which may be left open.
    ///
    /// # Errors
    /// `INVALID_WINDOW`, `INVALID_REQUEST`.
    pub fn archive(query: &Query<'_>) -> Result<HistoryRange, Refusal> {
        let (start, end) = ends(query)?;
        let fidelity = fidelity(query, ARCHIVE_FIDELITY_MAX)?.unwrap_or(ARCHIVE_FIDELITY_DEFAULT);
        Ok(HistoryRange { secs: start.unwrap_or(0)..=end.unwrap_or(u64::MAX), fidelity, ohlcv: ohlcv(query) })
    }
}

/// `startTs` and `endTs`.
fn ends(query: &Query<'_>) -> Result<(Option<u64>, Option<u64>), Refusal> {
    let end = |name| match query.get(name) {
        None => Ok(None),
        Some(text) => match digits(text) {
            Some(secs) => Ok(Some(secs)),
            None => Err(Refusal::new(Code::InvalidWindow, format!("{name} is not a number of unix seconds."))),
        },
    };
    match (end("startTs")?, end("endTs")?) {
        (Some(start), Some(end)) if start > end => Err(Refusal::new(Code::InvalidWindow, "startTs is after endTs.")),
        ends => Ok(ends),
    }
}

fn interval(query: &Query<'_>) -> Result<u64, Refusal> {
    let Some(name) = query.get("interval") else { return Ok(INTERVAL_SECS_DEFAULT) };
    let known = INTERVALS.iter().find(|(word, _)| name.eq_ignore_ascii_case(word));
    known.map(|(_, secs)| *secs).ok_or_else(|| unknown_interval(INTERVALS.iter().map(|(word, _)| *word)))
}

/// `INVALID_INTERVAL` with the known intervals.
pub fn unknown_interval(known: impl Iterator<Item = &'static str>) -> Refusal {
    Refusal::from(Code::InvalidInterval).field("supported_intervals", |out| write::array(out, known, write::string))
}

fn fidelity(query: &Query<'_>, max: u64) -> Result<Option<u64>, Refusal> {
    let Some(text) = query.get("fidelity") else { return Ok(None) };
    let minutes = digits(text).filter(|minutes| (1..=max).contains(minutes));
    let wrong = || Refusal::new(Code::InvalidRequest, "fidelity is not one of the supported numbers of minutes.");
    minutes.map(Some).ok_or_else(wrong)
}

/// Whether the format is `ohlcv`; any other word means the usual form.
fn ohlcv(query: &Query<'_>) -> bool {
    query.get("format") == Some("ohlcv")
}

/// A number of ASCII digits alone.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_932_445;

    #[test]
    fn ranges_and_intervals_are_read() {
        let (now, max) = (Timestamp::from_secs(NOW), u64::MAX);
        let range = |secs, fidelity, ohlcv| Ok(HistoryRange { secs, fidelity, ohlcv });
        let cases = [
            ("", range(NOW - 3_600..=NOW, 1, false)),
            ("interval=6h", range(NOW - 21_600..=NOW, 1, false)),
            ("interval=1d&fidelity=60", range(NOW - 86_400..=NOW, 60, false)),
            ("interval=1W&format=ohlcv", range(NOW - 604_800..=NOW, 1, true)),
            ("interval=1m&format=pm", range(NOW - 2_592_000..=NOW, 1, false)),
            ("interval=max", range(0..=NOW, 1, false)),
            ("interval=all", range(0..=NOW, 1, false)),
            ("startTs=5", range(5..=NOW, 1, false)),
            ("startTs=5&endTs=5&interval=nonsense", range(5..=5, 1, false)),
            ("endTs=7200", range(3_600..=7_200, 1, false)),
            ("endTs=7200&interval=1d", range(0..=7_200, 1, false)),
            ("startTs=0&endTs=18446744073709551615&fidelity=18446744073709551615", range(0..=max, max, false)),
            ("startTs=6&endTs=5", Err(Code::InvalidWindow)),
            ("startTs=", Err(Code::InvalidWindow)),
            ("startTs=-1", Err(Code::InvalidWindow)),
            ("startTs=1.5", Err(Code::InvalidWindow)),
            ("endTs=18446744073709551616", Err(Code::InvalidWindow)),
            ("endTs=%2B5", Err(Code::InvalidWindow)),
            ("endTs=%D9%A3", Err(Code::InvalidWindow)),
            ("interval=2h", Err(Code::InvalidInterval)),
            ("interval=", Err(Code::InvalidInterval)),
            ("fidelity=0", Err(Code::InvalidRequest)),
            ("fidelity=", Err(Code::InvalidRequest)),
            ("fidelity=-1", Err(Code::InvalidRequest)),
            ("fidelity=1e5", Err(Code::InvalidRequest)),
        ];
        for (text, expected) in &cases {
            let read = HistoryRange::prices(&Query::read(text), now).map_err(|refusal| refusal.code());
            assert_eq!(&read, expected, "{text}");
        }
        let archived = [
            ("", range(0..=max, 60, false)),
            ("startTs=1&endTs=2&fidelity=1440", range(1..=2, 1_440, false)),
            ("fidelity=1&interval=x", range(0..=max, 1, false)),
            ("fidelity=1441", Err(Code::InvalidRequest)),
            ("fidelity=0", Err(Code::InvalidRequest)),
            ("startTs=x", Err(Code::InvalidWindow)),
        ];
        for (text, expected) in &archived {
            let read = HistoryRange::archive(&Query::read(text)).map_err(|refusal| refusal.code());
            assert_eq!(&read, expected, "{text}");
        }
        println!("history queries: {} cases", cases.len() + archived.len());
    }
}
