//! The lines of a tape, through the same translators as live messages.
//!
//! The agenda of a Kalshi recording holds the changes of its metadata (open, close, settle) with their times. It is
//! merged into the lines by time and continues after the last line.

use super::recording::Recording;
use crate::category::Names;
use crate::skips::{Skip, Skips};
use crate::tape::{Origin, Part, Record, Tape, TapeError, UNNAMED};
use crate::translators::{Change, Dated, Source, Translators};
use crate::{FeedUpdate, NO_CONNECTION};
use engine::book::SINGLE_ANSWERS;
use engine::market::terms::MarketState;
use engine::time::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wincode::{SchemaRead, SchemaWrite};

/// The lines of a tape as a recording.
pub(crate) struct Lines {
    tape: Tape,
    pub(super) translators: Translators,
    /// Connections by number.
    connections: Vec<(Origin, String)>,
    /// Changes of markets by time, and how many are done.
    agenda: Vec<(Timestamp, String, Change)>,
    agenda_done: usize,
    /// Markets to list before the first line.
    listed: Vec<Dated>,
    skips: Arc<Skips>,
}

/// What later lines of a recording depend on.
#[derive(SchemaWrite, SchemaRead)]
pub(crate) struct Saved {
    /// Venue and name of each connection, by number.
    connections: Vec<(String, String)>,
    /// By name of the venue.
    translators: Vec<(String, Vec<u8>)>,
}

/// What one step handed out.
pub(crate) enum Stepped<'a> {
    /// A change of the agenda.
    Change,
    /// A line that has none of the known forms; it is counted.
    Unknown,
    /// A line of this connection, from this file of the tape, with the time that it states.
    Line { connection: u8, record: Record<'a>, file: usize, stated_at: Timestamp, text: &'a str },
}

impl Lines {
    /// Opens a tape. With `follow` it may grow. Counts in `skips` what is skipped.
    pub(crate) fn open(path: &Path, follow: bool, names: &Names, skips: &Arc<Skips>) -> Result<Lines, TapeError> {
        let tape = Tape::open(path, follow, skips.clone())?;
        let mut translators = Translators::new(Source::Recording, skips, names);
        let mut listed = Vec::new();
        for path in tape.metadata() {
            match std::fs::read_to_string(path) {
                Ok(text) => listed.extend(translators.of(UNNAMED).metadata(&text)),
                Err(error) => skips.count(Skip::UnreadableFile, || format!("{}: {error}", path.display())),
            }
        }
        let changes =
            listed.iter().flat_map(|dated| dated.changes.iter().map(|(at, change)| (*at, dated.id.clone(), *change)));
        let mut agenda: Vec<_> = changes.collect();
        agenda.sort_by_key(|(at, _, _)| *at);
        Ok(Lines { tape, translators, connections: Vec::new(), agenda, agenda_done: 0, listed, skips: skips.clone() })
    }

    /// The lines of these files, after those of `saved`, if any. `None`: what was saved is not usable.
    pub(crate) fn of_parts(
        parts: Vec<Part>,
        names: &Names,
        skips: &Arc<Skips>,
        saved: Option<&Saved>,
    ) -> Option<Lines> {
        let mut translators = Translators::new(Source::Recording, skips, names);
        let mut connections = Vec::new();
        if let Some(saved) = saved {
            let connection = |(venue, name): &(String, String)| Some((Origin::named(venue)?, name.clone()));
            connections = saved.connections.iter().map(connection).collect::<Option<_>>()?;
            if !translators.restore(&saved.translators) {
                return None;
            }
        }
        Some(Lines {
            tape: Tape::of_parts(parts, skips.clone()),
            translators,
            connections,
            agenda: Vec::new(),
            agenda_done: 0,
            listed: Vec::new(),
            skips: skips.clone(),
        })
    }

    /// The same lines, and those that are added to the files of a folder; not those of these files.
    pub(crate) fn following(mut self, folder: &Path, known: Vec<PathBuf>) -> Lines {
        self.tape.follow(folder, known);
        self
    }

    /// What the lines after those read so far depend on; `None`: it is too large.
    pub(crate) fn save(&self) -> Option<Saved> {
        let connection = |(origin, name): &(Origin, String)| (origin.name().to_owned(), name.clone());
        Some(Saved {
            connections: self.connections.iter().map(connection).collect(),
            translators: self.translators.save()?,
        })
    }

    /// Translates the lines of another folder before this moment as if they came first: what a venue said about its
    /// markets before the oldest file. Hands out the updates of each.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn recall(
        &mut self,
        folder: &Path,
        before: Timestamp,
        each: &mut dyn FnMut(&[FeedUpdate]),
    ) -> Result<(), TapeError> {
        let mut tape = Tape::open(folder, true, self.skips.clone())?;
        let mut updates = Vec::new();
        while let Some(line) = tape.next_at().filter(|at| *at < before).and_then(|_| tape.next_line()) {
            let Some(record) = Record::parse(line.text) else { continue };
            let connection = number(&mut self.connections, record.origin(), record.connection());
            updates.clear();
            self.translators.translate(&record, connection, line.received, &mut updates);
            each(&updates);
        }
        Ok(())
    }

    pub(crate) fn tape(&self) -> &Tape {
        &self.tape
    }

    /// [`Recording::step`], with what was handed out.
    pub(crate) fn advance(&mut self, at: Timestamp, updates: &mut Vec<FeedUpdate>) -> Stepped<'_> {
        let line_at = self.tape.next_at();
        if let Some((due, ticker, change)) = self.agenda.get(self.agenda_done)
            && line_at.is_none_or(|line| *due <= line)
        {
            self.agenda_done += 1;
            self.translators.of(UNNAMED).change(ticker, *change, *due, updates);
            return Stepped::Change;
        }
        let Some(line) = self.tape.next_line() else { return Stepped::Unknown };
        let Some(record) = Record::parse(line.text) else {
            self.skips.count(Skip::UnknownLine, || line.text.into());
            return Stepped::Unknown;
        };
        let connection = number(&mut self.connections, record.origin(), record.connection());
        self.translators.translate(&record, connection, at, updates);
        Stepped::Line { connection, record, file: line.file, stated_at: line.received, text: line.text }
    }
}

impl Recording for Lines {
    fn look_again(&mut self) {
        self.tape.look_again();
    }

    fn begin(&mut self, first: Timestamp, updates: &mut Vec<FeedUpdate>) {
        self.agenda_done = self.agenda.partition_point(|(at, _, _)| *at <= first);
        for dated in self.listed.drain(..) {
            let (mut state, mut past) = (MarketState::Upcoming, Vec::new());
            for (at, change) in dated.changes.iter().filter(|(at, _)| *at <= first) {
                self.translators.of(UNNAMED).change(&dated.id, *change, *at, &mut past);
            }
            past.retain(|update| match update {
                FeedUpdate::StateChanged { state: later, .. } => {
                    state = *later;
                    false
                }
                _ => true,
            });
            updates.push(FeedUpdate::Listed { listing: Box::new(dated.listing), state });
            updates.append(&mut past);
        }
    }

    fn line_at(&self) -> Option<Timestamp> {
        self.tape.next_at()
    }

    fn change_at(&self) -> Option<Timestamp> {
        self.agenda.get(self.agenda_done).map(|(at, _, _)| *at)
    }

    fn step(&mut self, at: Timestamp, updates: &mut Vec<FeedUpdate>) -> Option<u8> {
        match self.advance(at, updates) {
            Stepped::Change => Some(NO_CONNECTION),
            Stepped::Unknown => None,
            Stepped::Line { connection, .. } => Some(connection),
        }
    }

    fn first_line(&self) -> Option<[u8; 32]> {
        self.tape.first_line()
    }

    fn describe(&self) -> String {
        match self.tape.files_count() {
            1 => "1 tape".into(),
            count => format!("{count} tapes"),
        }
    }
}

/// The number of a connection, assigned in order of appearance; connections beyond the largest number share it.
fn number(connections: &mut Vec<(Origin, String)>, origin: Origin, name: &str) -> u8 {
    let known = connections.iter().position(|(of, known)| *of == origin && known == name);
    let number = known.unwrap_or_else(|| {
        if connections.len() < usize::from(SINGLE_ANSWERS) {
            connections.push((origin, name.into()));
        }
        connections.len() - 1
    });
    number as u8
}
