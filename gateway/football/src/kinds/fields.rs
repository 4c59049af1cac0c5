//! Fields that files of several kinds have, with their bounds.

use crate::reader::{Fields, Item};
use edge::api::football::facts::{CompetitionId, Competitions};
use edge::api::football::records::{ResultLetter, SideName, TeamRef};
use edge::http::scalar::Number;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Characters of a name, of a line of commentary, and of a short word.
pub const NAME_CHARS: usize = 120;
pub const LINE_CHARS: usize = 500;
pub const WORD_CHARS: usize = 40;
/// Entries about matches, and competitions, of a file.
pub const FIXTURES_MAX: usize = 5_000;
pub const COMPETITIONS_MAX: usize = 500;
/// Players of a team or a side, and letters of a form.
pub const PLAYERS_MAX: usize = 100;
pub const FORM_MAX: usize = 20;
/// The largest id of a match or a team: twelve digits.
pub const ID_MAX: i64 = 999_999_999_999;
/// The largest count, such as goals or points.
pub const COUNT_MAX: i64 = 9_999;

/// Fields that several records have. Those that must be there have a value that is never used where they are wrong, so
/// that the other fields of the record are read, too.
pub trait BoundedFields {
    fn id(&self, name: &str) -> u64;
    fn name(&self, name: &str) -> String;
    fn some_text(&self, name: &str, chars_max: usize) -> Option<String>;
    fn count(&self, name: &str) -> u64;
    fn some_count(&self, name: &str, max: i64) -> Option<u64>;
    fn number(&self, name: &str, min: i64, max: i64) -> Number;
    fn some_number(&self, name: &str, min: i64, max: i64) -> Option<Number>;
    fn all<T>(&self, name: &str, len_max: usize, read: fn(Item<'_>) -> Option<T>) -> Vec<T>;
    fn some<T>(&self, name: &str, len_max: usize, read: fn(Item<'_>) -> Option<T>) -> Option<Vec<T>>;
}

impl BoundedFields for Fields<'_> {
    fn id(&self, name: &str) -> u64 {
        self.required(name, |item| item.integer(1, ID_MAX)).unwrap_or_default().unsigned_abs()
    }

    fn name(&self, name: &str) -> String {
        self.required(name, |item| item.text(NAME_CHARS).map(str::to_owned)).unwrap_or_default()
    }

    fn some_text(&self, name: &str, chars_max: usize) -> Option<String> {
        self.optional(name, |item| item.text(chars_max).map(str::to_owned))
    }

    fn count(&self, name: &str) -> u64 {
        self.required(name, |item| item.integer(0, COUNT_MAX)).unwrap_or_default().unsigned_abs()
    }

    fn some_count(&self, name: &str, max: i64) -> Option<u64> {
        self.optional(name, |item| item.integer(0, max)).map(i64::unsigned_abs)
    }

    fn number(&self, name: &str, min: i64, max: i64) -> Number {
        self.required(name, |item| item.number(min, max)).unwrap_or(Number(0))
    }

    fn some_number(&self, name: &str, min: i64, max: i64) -> Option<Number> {
        self.optional(name, |item| item.number(min, max))
    }

    fn all<T>(&self, name: &str, len_max: usize, read: fn(Item<'_>) -> Option<T>) -> Vec<T> {
        self.required(name, |item| Some(item.list(len_max, read))).unwrap_or_default()
    }

    fn some<T>(&self, name: &str, len_max: usize, read: fn(Item<'_>) -> Option<T>) -> Option<Vec<T>> {
        self.optional(name, |item| Some(item.list(len_max, read)))
    }
}

/// Entries by a key that occurs once.
pub fn by_key<K: Ord, T>(
    root: Item<'_>,
    len_max: usize,
    what: &str,
    mut read: impl FnMut(Item<'_>) -> Option<(K, T)>,
) -> Arc<BTreeMap<K, T>> {
    let mut found = BTreeMap::new();
    root.list(len_max, |item| {
        let (key, entry) = read(item)?;
        if found.insert(key, entry).is_some() {
            item.wrong(format!("is the second entry of {what}"));
        }
        Some(())
    });
    Arc::new(found)
}

/// `[{"competitionId": …, NAME: […]}, …]`.
pub fn competitions<T>(
    root: Item<'_>,
    name: &'static str,
    len_max: usize,
    read: fn(Item<'_>) -> Option<T>,
) -> Competitions<T> {
    let mut found: Vec<(CompetitionId, Vec<T>)> = Vec::new();
    root.list(COMPETITIONS_MAX, |item| {
        let entry = item.object(&["competitionId", name], |o| {
            Some((o.required("competitionId", competition_id)?, o.all(name, len_max, read)))
        })??;
        if found.iter().any(|(known, _)| *known == entry.0) {
            item.wrong("is the second entry of a competition");
        }
        found.push(entry);
        Some(())
    });
    Arc::new(found)
}

pub fn competition_id(item: Item<'_>) -> Option<CompetitionId> {
    if !item.is_text() {
        return item.integer(0, 9_999_999_999).map(|number| CompetitionId::Number(number.unsigned_abs()));
    }
    // A number is written as one.
    let read = CompetitionId::read(item.text(WORD_CHARS)?).filter(|id| *id == CompetitionId::WorldCup2026);
    if read.is_none() {
        item.wrong("is neither a number nor \"wc-2026\"");
    }
    read
}

pub fn team(item: Item<'_>) -> Option<TeamRef> {
    item.object(&["id", "name", "countryCode", "shortName"], |o| {
        Some(TeamRef {
            id: o.id("id"),
            name: o.name("name"),
            country_code: o.some_text("countryCode", WORD_CHARS),
            short_name: o.some_text("shortName", WORD_CHARS),
        })
    })?
}

pub fn side(item: Item<'_>) -> Option<SideName> {
    item.word(&["home", "away"]).map(Into::into)
}

pub fn result(item: Item<'_>) -> Option<ResultLetter> {
    item.word(&["W", "D", "L"]).map(Into::into)
}
