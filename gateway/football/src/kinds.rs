//! The kinds of facts. Each is a JSON file of the folder, with a bound on its bytes and on the items of each list, and has
//! a module of its own; `fields` has what several of them share.

mod bracket;
mod fields;
mod fixtures;
mod head_to_head;
mod injuries;
mod lineups;
mod matches;
mod scorers;
mod squads;
mod standings;

use crate::reader::{Defect, Defects, Item};
use edge::api::football::facts::{CompetitionId, Facts};
use edge::api::football::records::{Bracket, BracketRound, Fixture, MatchDetail, MatchFacts};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::read::{self, NotJson};

/// Bytes of a file, at most.
pub const BYTES_MAX: u64 = 16 << 20;
/// JSON values of a file, at most: bounds the memory of a read.
const VALUES_MAX: usize = 1_000_000;

/// A kind of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fixtures,
    Matches,
    Standings,
    Bracket,
    HeadToHead,
    Scorers,
    Squads,
    Injuries,
    Lineups,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::Fixtures,
        Kind::Matches,
        Kind::Standings,
        Kind::Bracket,
        Kind::HeadToHead,
        Kind::Scorers,
        Kind::Squads,
        Kind::Injuries,
        Kind::Lineups,
    ];

    /// Its name: that of its file without `.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Fixtures => "fixtures",
            Kind::Matches => "matches",
            Kind::Standings => "standings",
            Kind::Bracket => "bracket",
            Kind::HeadToHead => "h2h",
            Kind::Scorers => "scorers",
            Kind::Squads => "squads",
            Kind::Injuries => "injuries",
            Kind::Lineups => "lineups",
        }
    }

    /// The name of its file.
    pub fn file(self) -> String {
        format!("{}.json", self.name())
    }
}

/// The content of the files. A match has its own facts in another file than its time and score.
#[derive(Clone, Debug, Default)]
pub struct Known {
    facts: Facts,
    matches: Arc<BTreeMap<u64, MatchFacts>>,
}

impl Known {
    /// The facts as the routes read them.
    pub fn facts(&self) -> Facts {
        self.facts.clone()
    }

    /// Replaces one kind by the content of its file.
    ///
    /// # Errors
    /// Every defect of the file; then nothing is replaced.
    pub fn read(&mut self, kind: Kind, content: &[u8]) -> Result<(), Vec<Defect>> {
        let text = std::str::from_utf8(content).map_err(|_| vec![Defect::of_file("is not UTF-8")])?;
        let value = read::json_within(text, VALUES_MAX).map_err(|error| vec![not_json(text, &error)])?;
        let (defects, mut read) = (Defects::default(), self.clone());
        read.set(kind, Item::root(&value, &defects));
        match defects.into_all() {
            none if none.is_empty() => {
                *self = read;
                Ok(())
            }
            defects => Err(defects),
        }
    }

    /// Replaces one kind by nothing: its file is gone.
    pub fn clear(&mut self, kind: Kind) {
        self.read(kind, b"[]").expect("every file may be an empty list");
    }

    fn set(&mut self, kind: Kind, root: Item<'_>) {
        let facts = &mut self.facts;
        match kind {
            Kind::Fixtures => facts.fixtures = fixtures::read(root).into(),
            Kind::Matches => self.matches = matches::read(root),
            Kind::Standings => facts.standings = standings::read(root),
            Kind::Bracket => {
                let rounds = bracket::read(root);
                let bracket =
                    |(id, rounds): &(CompetitionId, Vec<BracketRound>)| (*id, Bracket { rounds: rounds.clone() });
                facts.brackets = Arc::new(rounds.iter().map(bracket).collect());
            }
            Kind::HeadToHead => facts.meetings = head_to_head::read(root),
            Kind::Scorers => facts.scorers = scorers::read(root),
            Kind::Squads => facts.squads = squads::read(root),
            Kind::Injuries => facts.injuries = injuries::read(root),
            Kind::Lineups => facts.lineups = lineups::read(root),
        }
        if matches!(kind, Kind::Fixtures | Kind::Matches) {
            let detail = |fixture: &Fixture| {
                let more = self.matches.get(&fixture.id).cloned().unwrap_or_default();
                (fixture.id, MatchDetail { fixture: fixture.clone(), more })
            };
            self.facts.details = Arc::new(self.facts.fixtures.iter().map(detail).collect());
        }
    }

    /// Entries about matches that no fixture has, with the kind of their file.
    pub fn strays(&self) -> Vec<(Kind, u64)> {
        let Facts { details, injuries, lineups, .. } = &self.facts;
        let of = |kind, ids: Vec<u64>| ids.into_iter().map(move |id| (kind, id));
        let all = of(Kind::Matches, self.matches.keys().copied().collect())
            .chain(of(Kind::Injuries, injuries.keys().copied().collect()))
            .chain(of(Kind::Lineups, lineups.keys().copied().collect()));
        all.filter(|(_, id)| !details.contains_key(id)).collect()
    }
}

/// Why a text is not JSON, with line and column.
fn not_json(text: &str, error: &NotJson) -> Defect {
    let problem = match error {
        NotJson::Empty => "is empty".to_owned(),
        NotJson::NotUtf8 => "is not UTF-8".to_owned(),
        NotJson::Syntax(at) => {
            let before = &text.as_bytes()[..*at];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            format!("is not JSON, at line {line}, byte {}", at - begin + 1)
        }
        NotJson::TooDeep => format!("is nested deeper than {} levels", read::DEPTH_MAX),
        NotJson::TooManyValues => format!("has more than {VALUES_MAX} values"),
        NotJson::DuplicateField(name) => format!("has the field {name:?} twice in one object"),
    };
    Defect::of_file(problem)
}

#[cfg(test)]
mod tests;
