//! Which markets a list shows (gateway/docs/market-data.md §1).

use super::view::{Phase, is_hot};
use crate::http::code::Code;
use crate::http::reply::Refusal;
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use wire::cursor::OffsetCursor;
use wire::fields::Params;
use wire::query::Query;

const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;
const SEARCH_CHARS_MAX: usize = 120;

/// The parameters of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct ListFilter<'a> {
    state: State,
    hot_only: bool,
    category: Option<Needle<'a>>,
    search: Option<Needle<'a>>,
    pub envelope: bool,
    pub limit: usize,
    /// `None`: after the last page.
    pub offset: Option<usize>,
}

/// States of a market that a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Active and not closed.
    Active,
    Open,
    /// Closed, resolved or not.
    Closed,
    Resolved,
    All,
}

impl<'a> ListFilter<'a> {
    /// Reads the query.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`, `INVALID_CURSOR`.
    pub fn read(query: &'a Query<'_>) -> Result<ListFilter<'a>, Refusal> {
        let mut params = Params::new(query);
        let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT);
        let offset = params.offset();
        let hot_only = params.boolean("hot_only").unwrap_or(false);
        let active_only = params.boolean("active_only").unwrap_or(true);
        let closed = params.boolean("closed");
        let status = params.choice(
            "status",
            &[("active", State::Active), ("closed", State::Closed), ("resolved", State::Resolved), ("all", State::All)],
        );
        let envelope = params.boolean("envelope").unwrap_or(false);
        // Has no bound: a text longer than every name of a category matches none.
        let category = query.get("category").and_then(Needle::new);
        let search = params.text("q", SEARCH_CHARS_MAX).or(params.text("search", SEARCH_CHARS_MAX));
        if !params.problems.is_empty() {
            return Err(Refusal::validation(&params.problems));
        }
        let state = status.unwrap_or(match (closed, active_only) {
            (Some(true), _) => State::Closed,
            (Some(false), _) => State::Open,
            (None, true) => State::Active,
            (None, false) => State::All,
        });
        let cursor = query.first_of(&["next_cursor", "cursor"]).filter(|text| envelope && !text.is_empty());
        let offset = match cursor {
            None => Some(offset),
            Some(text) => match OffsetCursor::read(text).map_err(|_| Code::InvalidCursor)? {
                OffsetCursor::At(offset) => Some(offset),
                OffsetCursor::End => None,
            },
        };
        let search = search.and_then(Needle::new);
        Ok(ListFilter { state, hot_only, category, search, envelope, limit: limit as usize, offset })
    }

    /// Whether the list shows this market.
    pub fn shows(&self, cell: &MarketCell, now: Timestamp) -> bool {
        let phase = Phase::of(cell, now);
        let state = match self.state {
            State::Active => phase.active && !phase.closed,
            State::Open => !phase.closed,
            State::Closed => phase.closed,
            State::Resolved => phase.resolved,
            State::All => true,
        };
        let category = || match &self.category {
            None => true,
            Some(needle) => cell.listing.category.name().is_some_and(|name| needle.is_in(name)),
        };
        let search = || match &self.search {
            None => true,
            Some(needle) => needle.is_in(&cell.listing.question) || needle.is_in(&cell.listing.slug),
        };
        // Lists leave out archived markets; a request for one market still shows it.
        state && phase.archived_at.is_none() && (!self.hot_only || is_hot(cell)) && category() && search()
    }
}

/// A text to find in others, in any case.
#[derive(Debug, PartialEq, Eq)]
pub enum Needle<'a> {
    Ascii(&'a [u8]),
    /// Lower case.
    Other(String),
}

impl<'a> Needle<'a> {
    /// `None` for an empty text, which is everywhere.
    pub fn new(text: &'a str) -> Option<Needle<'a>> {
        match text {
            "" => None,
            _ if text.is_ascii() => Some(Needle::Ascii(text.as_bytes())),
            _ => Some(Needle::Other(text.to_lowercase())),
        }
    }

    pub fn is_in(&self, text: &str) -> bool {
        match self {
            Needle::Ascii(needle) => {
                text.as_bytes().windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle))
            }
            Needle::Other(needle) => !text.is_ascii() && text.to_lowercase().contains(needle.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needles_ignore_case() {
        for (needle, text, expected) in [
            ("rain", "Rain in Lisbon", true),
            ("IN LIS", "Rain in Lisbon", true),
            ("lisbons", "Rain in Lisbon", false),
            ("ö", "KÖLN", true),
            ("Ö", "köln", true),
            ("o", "köln", false),
            ("ö", "koln", false),
            ("long needle", "x", false),
        ] {
            assert_eq!(Needle::new(needle).expect("not empty").is_in(text), expected, "{needle} in {text}");
        }
        assert_eq!(Needle::new(""), None);
    }

    #[test]
    fn states_and_pages_are_read() {
        let read = |text: &str| {
            let query = Query::read(text);
            let filter = ListFilter::read(&query);
            filter.map(|filter| (filter.state, filter.limit, filter.offset)).map_err(|refusal| refusal.code())
        };
        for (query, expected) in [
            ("", Ok((State::Active, 50, Some(0)))),
            ("active_only=false", Ok((State::All, 50, Some(0)))),
            ("closed=true", Ok((State::Closed, 50, Some(0)))),
            ("closed=false&active_only=true", Ok((State::Open, 50, Some(0)))),
            ("status=resolved&closed=false", Ok((State::Resolved, 50, Some(0)))),
            ("status=ALL", Ok((State::All, 50, Some(0)))),
            ("limit=200&offset=7&sort=x&ascending=maybe", Ok((State::Active, 200, Some(7)))),
            ("envelope=1&next_cursor=NTA=&offset=7", Ok((State::Active, 50, Some(50)))),
            ("envelope=1&cursor=MA==", Ok((State::Active, 50, Some(0)))),
            ("envelope=1&next_cursor=LTE=", Ok((State::Active, 50, None))),
            ("envelope=1&next_cursor=&offset=3", Ok((State::Active, 50, Some(3)))),
            ("envelope=1&next_cursor=x", Err(Code::InvalidCursor)),
            ("limit=0", Err(Code::ValidationFailed)),
            ("limit=201", Err(Code::ValidationFailed)),
            ("offset=-1", Err(Code::ValidationFailed)),
            ("offset=-0", Err(Code::ValidationFailed)),
            ("offset=9223372036854775808", Err(Code::ValidationFailed)),
            ("hot_only=maybe", Err(Code::ValidationFailed)),
            ("status=open", Err(Code::ValidationFailed)),
        ] {
            assert_eq!(read(query), expected, "{query}");
        }
        let long = |chars: usize| format!("q={}", "x".repeat(chars));
        assert!(read(&long(120)).is_ok());
        assert!(read(&long(121).replace("q=", "category=")).is_ok());
        assert_eq!(read(&long(121)), Err(Code::ValidationFailed));
        assert_eq!(read(&long(121).replace("q=", "search=")), Err(Code::ValidationFailed));
    }
}
