//! The reads without a server: what `papertape simulate` answers. There is no caller, so no plan, and nothing is metered.

use super::archive::Archive;
use super::{book, coverage, fill};
use crate::http::reply::{Outcome, Refusal};
use engine::rules::FeeTable;
use engine::time::Timestamp;
use wire::query::Query;
use wire::value::Value;

/// A question to an archive, with the fields of the route of that name.
#[derive(Clone, Copy, Debug)]
pub enum Question<'a> {
    /// `POST /v1/simulation/fill`: its body.
    Fill(&'a Value<'a>),
    /// `GET /v1/simulation/book`: its query.
    Book(&'a Query<'a>),
    /// `GET /v1/simulation/coverage`: its query.
    Coverage(&'a Query<'a>),
}

/// The body of the route's answer, as of `now`.
///
/// # Errors
/// The route's, except for those about the caller.
pub async fn answer(
    archive: &dyn Archive,
    fees: &FeeTable,
    question: Question<'_>,
    now: Timestamp,
) -> Result<Vec<u8>, Refusal> {
    let outcome: Outcome = match question {
        Question::Fill(body) => fill::Wanted::read(body, now)?.answer(archive, fees).await,
        Question::Book(query) => book::Wanted::read(query, now)?.answer(archive).await,
        Question::Coverage(query) => coverage::Wanted::read(query)?.answer(archive).await,
    };
    Ok(outcome?.body)
}
