//! Facts of football, read only (gateway/docs/football.md). Without a provider, and while it fails, every list is empty.
//!
//! | File | Holds |
//! |---|---|
//! | [`facts`] | the port of a provider, and what it knows |
//! | [`records`] | the records of the answers |
//! | `filter.rs` | parameters, and which fixtures a list shows |

pub mod facts;
mod filter;
pub mod records;

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::write_record;
use crate::http::reply::{Fresh, Outcome, Reply};
use crate::http::route::Route;
use crate::http::scalar::{CompetitionChoice, DateText, FixtureNumber};
use crate::http::schema::{Param, Schema};
use facts::{Facts, STATUSES, of_competition};
use filter::{FixtureFilter, LIMIT_MAX, competition, fixture, teams};
use records::{Bracket, Fixture, HeadToHead, Injury, Lineups, MatchDetail, Scorer, StandingGroup, TeamSquad};
use serde::Serialize;
use std::sync::Arc;

const FIXTURE: Param = Param::query("fixture", Schema::of::<FixtureNumber<'static>>(), "The match.").required();

pub const ROUTES: &[Route] = &[
    Route::get("/v1/football/fixtures", "list_football_fixtures")
        .about("Matches by their time.")
        .params(&[
            Param::query("date", Schema::of::<DateText<'static>>(), "Those that begin on this day of UTC."),
            Param::query("competitionId", Schema::of::<CompetitionChoice<'static>>(), "Those of this competition."),
            Param::query("status", Schema::Word(&STATUSES), "Those in this state."),
            Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "Rows at most; default: 50."),
        ])
        .gives::<Vec<Fixture>>(200)
        .fails(&[Code::ValidationFailed])
        .answer(fixtures),
    Route::get("/v1/football/matches/{id}", "get_football_match")
        .about("One match with all that is known of it.")
        .gives::<MatchDetail>(200)
        .fails(&[Code::NotFound])
        .answer(detail),
    Route::get("/v1/football/standings", "list_football_standings")
        .about("Tables of a competition.")
        .params(&[Param::query(
            "competitionId",
            Schema::of::<CompetitionChoice<'static>>(),
            "Default: the first competition with tables.",
        )])
        .gives::<Vec<StandingGroup>>(200)
        .fails(&[Code::ValidationFailed])
        .answer(standings),
    Route::get("/v1/football/bracket", "get_football_bracket")
        .about("The bracket of a competition.")
        .params(&[Param::query(
            "competitionId",
            Schema::of::<CompetitionChoice<'static>>(),
            "Default: the first competition with a bracket.",
        )])
        .gives::<Bracket>(200)
        .fails(&[Code::ValidationFailed])
        .answer(bracket),
    Route::get("/v1/football/h2h", "get_football_head_to_head")
        .about("What two teams did against each other.")
        .params(&[
            Param::query("home", Schema::of::<FixtureNumber<'static>>(), "A team.").required(),
            Param::query("away", Schema::of::<FixtureNumber<'static>>(), "The other team.").required(),
        ])
        .gives::<HeadToHead>(200)
        .fails(&[Code::ValidationFailed])
        .answer(head_to_head),
    Route::get("/v1/football/scorers", "list_football_scorers")
        .about("Scorers of a competition.")
        .params(&[Param::query(
            "competitionId",
            Schema::of::<CompetitionChoice<'static>>(),
            "Default: the first competition with scorers.",
        )])
        .gives::<Vec<Scorer>>(200)
        .fails(&[Code::ValidationFailed])
        .answer(scorers),
    Route::get("/v1/football/teams/{id}/squad", "get_football_squad")
        .about("The squad of a team.")
        .gives::<TeamSquad>(200)
        .fails(&[Code::NotFound])
        .answer(squad),
    Route::get("/v1/football/injuries", "list_football_injuries")
        .about("Players who miss a match.")
        .params(&[FIXTURE])
        .gives::<Vec<Injury>>(200)
        .fails(&[Code::ValidationFailed])
        .answer(injuries),
    Route::get("/v1/football/lineups", "get_football_lineups")
        .about("Line-ups of a match.")
        .params(&[FIXTURE])
        .gives::<Lineups>(200)
        .fails(&[Code::ValidationFailed])
        .answer(lineups),
];

/// The facts of the provider; without one, none.
fn known(call: &Call) -> Arc<Facts> {
    call.published().football.as_ref().map_or_else(Arc::default, |football| football.facts())
}

/// An answer that may be kept for ten minutes, or for 15 seconds if it is about a match that is played.
fn kept(body: &impl Serialize, is_played: bool) -> Outcome {
    let mut text = Vec::with_capacity(1_024);
    write_record(&mut text, body);
    let fresh = if is_played { Fresh::FifteenSeconds } else { Fresh::TenMinutes };
    Ok(Reply::json(text).fresh_for(fresh))
}

fn fixtures(call: &Call) -> Outcome {
    let query = call.query();
    let filter = FixtureFilter::read(&query)?;
    let facts = known(call);
    let shown: Vec<&Fixture> = facts.fixtures.iter().filter(|row| filter.shows(row)).take(filter.limit).collect();
    // A match that begins soon may be added to the list of those that are played.
    let is_played = |row: &Fixture| filter.is_about(row) && row.is_played(call.now);
    let is_near = facts.fixtures.iter().any(is_played);
    kept(&shown, is_near)
}

fn detail(call: &Call) -> Outcome {
    let facts = known(call);
    let found = call.id().and_then(|id| facts.details.get(&id)).ok_or(Code::NotFound)?;
    kept(found, found.fixture.is_played(call.now))
}

fn standings(call: &Call) -> Outcome {
    let wanted = competition(&call.query())?;
    let facts = known(call);
    kept(&of_competition(&facts.standings, wanted).map_or(&[][..], Vec::as_slice), false)
}

fn bracket(call: &Call) -> Outcome {
    let wanted = competition(&call.query())?;
    let facts = known(call);
    match of_competition(&facts.brackets, wanted) {
        Some(bracket) => kept(bracket, false),
        None => kept(&Bracket::default(), false),
    }
}

fn head_to_head(call: &Call) -> Outcome {
    let (home, away) = teams(&call.query())?;
    kept(&known(call).head_to_head(home, away), false)
}

fn scorers(call: &Call) -> Outcome {
    let wanted = competition(&call.query())?;
    let facts = known(call);
    kept(&of_competition(&facts.scorers, wanted).map_or(&[][..], Vec::as_slice), false)
}

fn squad(call: &Call) -> Outcome {
    let facts = known(call);
    let found = call.id().and_then(|id| facts.squads.get(&id)).ok_or(Code::NotFound)?;
    kept(found, false)
}

fn injuries(call: &Call) -> Outcome {
    let id = fixture(&call.query())?;
    let facts = known(call);
    kept(&facts.injuries.get(&id).map_or(&[][..], Vec::as_slice), facts.is_played(id, call.now))
}

fn lineups(call: &Call) -> Outcome {
    let id = fixture(&call.query())?;
    let facts = known(call);
    let is_played = facts.is_played(id, call.now);
    match facts.lineups.get(&id) {
        Some(lineups) => kept(lineups, is_played),
        None => kept(&Lineups::default(), is_played),
    }
}

#[cfg(test)]
mod tests;
