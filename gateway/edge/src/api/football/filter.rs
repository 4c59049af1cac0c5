//! Parameters of the football routes (gateway/docs/football.md §1). One that misses its pattern is 422.

use super::facts::{CompetitionId, STATUSES};
use super::records::Fixture;
use crate::http::reply::Refusal;
use engine::time::UtcDay;
use wire::fields::{Params, Problems};
use wire::instant;
use wire::query::Query;

pub const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;
/// Digits of the id of a match or a team.
const ID_DIGITS_MAX: usize = 12;

/// Which fixtures the list shows.
#[derive(Debug, PartialEq, Eq)]
pub struct FixtureFilter {
    day: Option<UtcDay>,
    competition: Option<CompetitionId>,
    status: Option<&'static str>,
    pub limit: usize,
}

impl FixtureFilter {
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn read(query: &Query<'_>) -> Result<FixtureFilter, Refusal> {
        let mut params = Params::new(query);
        let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT);
        let status = query.get("status").and_then(|text| {
            let known = STATUSES.into_iter().find(|status| *status == text);
            if known.is_none() {
                let words = STATUSES.join(", ");
                params.problems.add("query", "status", "literal_error", format!("must be one of {words}"));
            }
            known
        });
        let mut problems = params.problems;
        let day = matching(query, "date", "is not a day as YYYY-MM-DD", day, &mut problems);
        let competition = read_competition(query, &mut problems);
        done((), problems)?;
        Ok(FixtureFilter { day, competition, status, limit: limit as usize })
    }

    /// Whether the list has this fixture.
    pub fn shows(&self, fixture: &Fixture) -> bool {
        self.is_about(fixture) && self.status.is_none_or(|status| fixture.status.text() == status)
    }

    /// Whether the list has this fixture in one of its states.
    pub fn is_about(&self, fixture: &Fixture) -> bool {
        self.competition.is_none_or(|competition| fixture.competition_id == Some(competition))
            && self.day.is_none_or(|day| fixture.kickoff_utc.is_some_and(|at| at.0.day() == day))
    }
}

/// The competition of a request.
///
/// # Errors
/// `VALIDATION_FAILED`. Likewise for the functions below.
pub fn competition(query: &Query<'_>) -> Result<Option<CompetitionId>, Refusal> {
    let mut problems = Problems::default();
    let competition = read_competition(query, &mut problems);
    done(competition, problems)
}

/// The match of a request.
pub fn fixture(query: &Query<'_>) -> Result<u64, Refusal> {
    let mut problems = Problems::default();
    let fixture = required(query, "fixture", &mut problems);
    done(fixture.unwrap_or_default(), problems)
}

/// The teams of a request.
pub fn teams(query: &Query<'_>) -> Result<(u64, u64), Refusal> {
    let mut problems = Problems::default();
    let [home, away] = ["home", "away"].map(|name| required(query, name, &mut problems).unwrap_or_default());
    done((home, away), problems)
}

fn done<T>(read: T, problems: Problems) -> Result<T, Refusal> {
    if problems.is_empty() { Ok(read) } else { Err(Refusal::validation(&problems)) }
}

fn read_competition(query: &Query<'_>, problems: &mut Problems) -> Option<CompetitionId> {
    matching(query, "competitionId", "is not a number of at most ten digits or wc-2026", CompetitionId::read, problems)
}

fn required(query: &Query<'_>, name: &str, problems: &mut Problems) -> Option<u64> {
    if query.get(name).is_none() {
        problems.add("query", name, "missing", "is required");
    }
    matching(query, name, "is not a number of at most twelve digits from 1 on", id, problems)
}

/// A parameter that `read` reads; one that it does not is a problem.
fn matching<T>(
    query: &Query<'_>,
    name: &str,
    wrong: &str,
    read: impl FnOnce(&str) -> Option<T>,
    problems: &mut Problems,
) -> Option<T> {
    let read = read(query.get(name)?);
    if read.is_none() {
        problems.add("query", name, "string_pattern_mismatch", wrong);
    }
    read
}

/// `^[1-9]\d{0,11}$`.
fn id(text: &str) -> Option<u64> {
    let digits = text.len() <= ID_DIGITS_MAX && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    digits.then(|| text.parse().ok()).flatten()
}

/// A day of the calendar as `YYYY-MM-DD`.
fn day(text: &str) -> Option<UtcDay> {
    let has_form = text.len() == 10 && text.as_bytes()[4] == b'-';
    has_form.then(|| instant::read(text)).flatten().map(|at| at.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_exact_patterns() {
        let rows = [
            ("", true),
            ("date=2026-06-11", true),
            ("date=2024-02-29", true),
            ("date=2026-02-29", false),
            ("date=2026-6-11", false),
            ("date=2026-06-11T00:00:00Z", false),
            ("date=20260611", false),
            ("date=2026-06-1x", false),
            ("date=1781136000", false),
            ("date=", false),
            ("date=2026-06-3%C3%A9", false),
            ("competitionId=1", true),
            ("competitionId=wc-2026", true),
            ("competitionId=", false),
            ("competitionId=x", false),
            ("competitionId=12345678901", false),
            ("status=live", true),
            ("status=LIVE", false),
            ("status=", false),
            ("limit=1", true),
            ("limit=200", true),
            ("limit=0", false),
            ("limit=201", false),
            ("limit=x", false),
            ("unknown=1", true),
        ];
        for (text, expected) in rows {
            assert_eq!(FixtureFilter::read(&Query::read(text)).is_ok(), expected, "{text}");
        }
        let ids = [
            ("1", Some(1)),
            ("999999999999", Some(999_999_999_999)),
            ("1000000000000", None),
            ("0", None),
            ("01", None),
            ("-1", None),
            ("+1", None),
            ("1.0", None),
            ("", None),
            ("%2e%2e%2f1", None),
            ("1%00", None),
        ];
        for (text, expected) in ids {
            assert_eq!(fixture(&Query::read(&format!("fixture={text}"))).ok(), expected, "{text}");
            let pair = teams(&Query::read(&format!("home={text}&away=7"))).ok();
            assert_eq!(pair, expected.map(|id| (id, 7)), "{text}");
        }
        for absent in ["", "home=1", "away=1"] {
            assert!(teams(&Query::read(absent)).is_err() && fixture(&Query::read(absent)).is_err(), "{absent}");
        }
        println!("football parameters: {} cases", rows.len() + 2 * ids.len() + 6);
    }
}
