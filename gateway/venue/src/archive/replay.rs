//! Hours of an archive as a recording (gateway/docs/archive-tools.md §3).
//!
//! The rows of an hour are brought into order of receipt once, while the hour before it plays, and kept in a file. One
//! line of the recording is all rows of a market with one millisecond of receipt; very many are several lines. The
//! sidecar's gaps make books stale, and so does a missing or unreadable hour. What the venue said about its markets is in
//! lines beside the hours; a market without any is listed by its rows alone.

mod hour;

use super::given;
use super::hours::{by_hour, is_parquet, parquet_files};
use super::known::{self, lines_of};
use super::markets::{Found, list_by_rows};
use super::rows::UpdateMaker;
use super::settled::{self, Settlement};
use crate::category::Names;
use crate::replay::{Lines, Recording, Replay, Speed};
use crate::skips::{Skip, Skips};
use crate::tape::{Origin, TapeError};
use crate::{FeedUpdate, NO_CONNECTION};
use ahash::AHashSet;
use archive::read::HourFile;
use archive::row::Condition;
use engine::market::terms::MarketState;
use engine::time::Timestamp;
use host::thread::Stop;
use hour::{Break, Hour, Making};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a replay of an archive needs besides its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Folder of hours in order of time.
    pub cache: PathBuf,
    /// Bytes of all of them: the oldest are removed.
    pub cache_bytes: u64,
    /// Free bytes of the disk below which no hour is kept in it.
    pub free_bytes_min: u64,
    /// Memory of the sorting, in bytes.
    pub memory_bytes: u64,
    /// File of the markets to replay; empty: all.
    pub markets: PathBuf,
    /// First and last hour to replay, in hours since 1970.
    pub from: Option<u32>,
    pub to: Option<u32>,
}

impl Default for Settings {
    fn default() -> Settings {
        const MEMORY_BYTES: u64 = 512 << 20;
        const CACHE_BYTES: u64 = 4 << 30;
        Settings {
            cache: PathBuf::from("cache"),
            cache_bytes: CACHE_BYTES,
            free_bytes_min: 0,
            memory_bytes: MEMORY_BYTES,
            markets: PathBuf::new(),
            from: None,
            to: None,
        }
    }
}

impl Settings {
    /// Whether only some markets or hours are replayed.
    pub fn selects(&self) -> bool {
        !self.markets.as_os_str().is_empty() || self.from.is_some() || self.to.is_some()
    }
}

/// Whether a tape is an hour or a folder of hours, not lines.
///
/// # Errors
/// The path cannot be read, or a folder has both.
pub fn is_archive(path: &Path) -> Result<bool, TapeError> {
    let io = |error| TapeError::Io { path: path.to_path_buf(), error };
    if !std::fs::metadata(path).map_err(io)?.is_dir() {
        return is_parquet(path).map_err(io);
    }
    let has_lines = path.join("events").is_dir() || crate::tape::has_lines(path).map_err(io)?;
    match parquet_files(path) {
        Ok(hours) if has_lines && !hours.is_empty() => {
            let reason = "the folder has lines and Parquet hours; give the path of one of them".into();
            Err(TapeError::Archive { path: path.to_path_buf(), reason })
        }
        Ok(hours) => Ok(!hours.is_empty()),
        // Folders beside lines are not read.
        Err(_) if has_lines => Ok(false),
        Err(error) => Err(io(error)),
    }
}

/// Opens hours as a venue; hands out nothing yet.
///
/// # Errors
/// There is no hour in the range, or the first one cannot be used, or the lines about its markets.
pub fn open(path: &Path, speed: Speed, settings: &Settings, names: &Names) -> Result<Replay, TapeError> {
    let skips = Arc::new(Skips::default());
    let hours = Hours::open(path, settings, names, &skips)?;
    Ok(Replay::of(Box::new(hours), speed, false, skips))
}

/// Brings an hour into order of time and keeps it, so that no replay has to. Returns whether it was not kept yet.
///
/// # Errors
/// The hour has no good sidecar, or cannot be read, or the cache cannot be written; the text names it.
pub fn fill_cache(hour: &Path, settings: &Settings, stop: &Stop) -> Result<bool, String> {
    Making::of(settings).fill_cache(hour, stop)
}

/// Hours of an archive as a recording.
struct Hours {
    making: Arc<Making>,
    /// Hours that are not read yet, with their files.
    rest: VecDeque<(u32, Vec<PathBuf>)>,
    hours_count: usize,
    /// The hour that plays, and the next one, which is being brought into order.
    current: Hour,
    next: Option<hour::Coming>,
    /// Lines about markets, of each venue's folder. Those from this moment on are after the last hour asked for, as are
    /// results.
    lines: Vec<Lines>,
    until: Timestamp,
    /// Conditions that these lines list at some time.
    described: AHashSet<String>,
    /// Conditions that are listed, and resolved.
    listed: AHashSet<String>,
    resolved: AHashSet<String>,
    settlements: VecDeque<(Condition, Settlement)>,
    maker: UpdateMaker,
    /// Updates of an hour that began: they precede its first line.
    entering: Vec<FeedUpdate>,
    identity: [u8; 32],
    skips: Arc<Skips>,
}

impl Hours {
    fn open(path: &Path, settings: &Settings, names: &Names, skips: &Arc<Skips>) -> Result<Hours, TapeError> {
        let refused = |reason: String| {
            // A reason that begins with the path does not repeat it.
            let reason = reason.strip_prefix(&format!("{}: ", path.display())).map_or(reason.clone(), str::to_owned);
            TapeError::Archive { path: path.to_path_buf(), reason }
        };
        let io = |error| TapeError::Io { path: path.to_path_buf(), error };
        let is_folder = std::fs::metadata(path).map_err(io)?.is_dir();
        let files = if is_folder { parquet_files(path).map_err(io)? } else { vec![path.to_path_buf()] };
        let is_wanted =
            |hour: &u32| settings.from.is_none_or(|from| from <= *hour) && settings.to.is_none_or(|to| *hour <= to);
        let hours = by_hour(files).map_err(|(path, reason)| TapeError::Archive { path, reason })?;
        let mut rest: VecDeque<_> = hours.into_iter().filter(|(hour, _)| is_wanted(hour)).collect();
        let until = settings.to.map_or(Timestamp(u64::MAX), |to| Timestamp::of_hour(to.saturating_add(1)));
        let hours_count = rest.len();
        let Some((hour, files)) = rest.pop_front() else {
            return Err(TapeError::Empty { path: path.to_path_buf() });
        };
        let wanted = match settings.markets.as_os_str().is_empty() {
            true => None,
            false => Some(given::ids(&settings.markets).map_err(refused)?),
        };
        let own_cache = is_folder.then(|| path.join("cache")).filter(|own| own.is_dir());
        let making = Arc::new(Making { wanted, own_cache, ..Making::of(settings) });
        let identity = identity_of(&files[0])?;
        let follows = rest.front().map(|(hour, _)| *hour);
        let current = making.hour(hour, &files, follows, &Default::default()).map_err(refused)?;
        let (mut lines, mut described, mut settlements) = (Vec::new(), AHashSet::new(), Vec::new());
        for folder in venue_folders(files.iter().chain(rest.iter().flat_map(|(_, files)| files))) {
            lines.extend(lines_of(&folder, names, skips)?);
            // A market that is described only later is one without lines here.
            let known = known::known_before(&folder, names, until)?;
            described.extend(known.into_keys().map(|condition| condition.to_string()));
            let given = settled::file(&folder);
            if given.exists() {
                settlements.extend(settled::read(&given).map_err(refused)?);
            }
        }
        settlements.sort_by_key(|(_, settlement)| settlement.at);
        let mut hours = Hours {
            making,
            rest,
            hours_count,
            current,
            next: None,
            lines,
            until,
            described,
            listed: AHashSet::new(),
            resolved: AHashSet::new(),
            settlements: settlements.into(),
            maker: UpdateMaker::default(),
            entering: Vec::new(),
            identity,
            skips: skips.clone(),
        };
        hours.prepare_next();
        hours.settle_on_a_line();
        Ok(hours)
    }

    /// Begins to bring the next hour into order, on a thread of its own.
    fn prepare_next(&mut self) {
        let Some((hour, files)) = self.rest.pop_front() else { return };
        let follows = self.rest.front().map(|(hour, _)| *hour);
        self.next = Some(hour::Coming::start(self.making.clone(), hour, files, follows));
    }

    /// Enters further hours until there is a line, or no hour is left.
    fn settle_on_a_line(&mut self) {
        while self.current.at().is_none() {
            let Some(next) = self.next.take() else { return };
            self.current = next.wait();
            self.prepare_next();
            let mut entering = Vec::new();
            self.enter(&mut entering);
            self.entering.append(&mut entering);
        }
    }

    /// Lists the markets of the current hour that only its rows name, and their finer grids.
    fn enter(&mut self, updates: &mut Vec<FeedUpdate>) {
        if let Some(reason) = &self.current.unreadable {
            self.skips.count(Skip::UnreadableFile, || reason.clone());
        }
        for (market, found) in std::mem::take(&mut self.current.markets) {
            self.list(market, &found, updates);
        }
        let maker = &self.maker;
        self.current.open(self.making.wanted.as_ref(), |token| maker.knows(token));
    }

    fn list(&mut self, market: Condition, found: &Found, updates: &mut Vec<FeedUpdate>) {
        let condition = market.to_string();
        if self.described.contains(&condition) {
            return;
        }
        if self.listed.contains(&condition) {
            updates.extend(self.maker.refine(market, found.tick));
            return;
        }
        let Some(listing) = list_by_rows(market, found) else {
            return self.skips.count(Skip::NotBinary, || format!("{} tokens of {condition}", found.tokens.len()));
        };
        self.maker.listed(market, listing.tick);
        self.listed.insert(condition);
        updates.push(FeedUpdate::Listed { listing: Box::new(listing), state: MarketState::Active });
    }

    /// Keeps of the updates of a line about markets what rows do not have, and each result once.
    fn note_market(&mut self, update: FeedUpdate, updates: &mut Vec<FeedUpdate>) {
        match &update {
            FeedUpdate::Listed { listing, .. } => {
                self.listed.insert(listing.condition.clone());
                if let Some(market) = Condition::parse(&listing.condition) {
                    self.maker.listed(market, listing.tick);
                }
            }
            FeedUpdate::Resolved { condition, .. } if !self.resolved.insert(condition.clone()) => return,
            FeedUpdate::StateChanged { .. }
            | FeedUpdate::EndChanged { .. }
            | FeedUpdate::Strike { .. }
            | FeedUpdate::Figures { .. }
            | FeedUpdate::Stated { .. }
            | FeedUpdate::Fees { .. }
            | FeedUpdate::Resolved { .. } => {}
            FeedUpdate::BookSnapshot { .. }
            | FeedUpdate::BookDelta { .. }
            | FeedUpdate::LastPrice { .. }
            | FeedUpdate::TickChanged { .. }
            | FeedUpdate::LastTrade { .. }
            | FeedUpdate::SidelessTrade { .. }
            | FeedUpdate::Top { .. }
            | FeedUpdate::Spot { .. }
            | FeedUpdate::Gap { .. }
            | FeedUpdate::Left { .. } => return,
        }
        updates.push(update);
    }

    /// The next line about markets: its time, and the folder's number.
    fn line_about_markets(&self) -> Option<(Timestamp, usize)> {
        let lines = self.lines.iter().enumerate();
        lines.filter_map(|(number, lines)| Some((lines.line_at()?, number))).min().filter(|(at, _)| *at < self.until)
    }

    /// When the next given result is known.
    fn settlement_at(&self) -> Option<Timestamp> {
        self.settlements.front().map(|(_, settlement)| settlement.at).filter(|at| *at < self.until)
    }

    /// Takes the next change that is not after `until`; false: there is none.
    fn change(&mut self, until: Timestamp, updates: &mut Vec<FeedUpdate>) -> bool {
        let line = self.line_about_markets().filter(|(at, _)| *at <= until);
        let settlement = self.settlement_at().filter(|at| *at <= until);
        if let Some((at, number)) = line
            && settlement.is_none_or(|settlement| at <= settlement)
        {
            let mut translated = Vec::new();
            self.lines[number].step(at, &mut translated);
            translated.into_iter().for_each(|update| self.note_market(update, updates));
            return true;
        }
        if settlement.is_none() {
            return false;
        }
        let Some((market, Settlement { resolution, at })) = self.settlements.pop_front() else { return false };
        let condition = market.to_string();
        if self.listed.contains(&condition) && self.resolved.insert(condition.clone()) {
            updates.push(FeedUpdate::Resolved { condition, resolution, venue_ts: at });
        }
        true
    }
}

impl Recording for Hours {
    fn begin(&mut self, first: Timestamp, updates: &mut Vec<FeedUpdate>) {
        // Listings by rows come first: a result of such a market may be older than the first row.
        self.enter(updates);
        while self.change(first, updates) {}
        updates.append(&mut self.entering);
    }

    fn line_at(&self) -> Option<Timestamp> {
        self.current.at()
    }

    fn change_at(&self) -> Option<Timestamp> {
        let line = self.line_about_markets().map(|(at, _)| at);
        line.into_iter().chain(self.settlement_at()).min()
    }

    fn step(&mut self, at: Timestamp, updates: &mut Vec<FeedUpdate>) -> Option<u8> {
        updates.append(&mut self.entering);
        let line_at = self.line_at();
        let due = self.change_at().filter(|change| line_at.is_none_or(|line| *change <= line));
        if let Some(due) = due {
            self.change(due, updates);
            return Some(NO_CONNECTION);
        }
        let connection = match self.current.take()? {
            hour::Line::Rows { origin, rows, goes_on } => {
                match goes_on {
                    true => self.maker.part(&rows, updates),
                    false => self.maker.frame(&rows, updates),
                }
                self.current.give_back(rows);
                connection_of(origin)
            }
            hour::Line::Opening { origin, books } => {
                self.maker.open(&books);
                updates.extend(books);
                connection_of(origin)
            }
            hour::Line::Break(Break { origin, tokens, reason, .. }) => {
                self.maker.forget(&tokens);
                updates.push(FeedUpdate::Gap { tokens, reason });
                connection_of(origin)
            }
        };
        if let Some(reason) = self.current.failed.take() {
            self.skips.count(Skip::UnreadableFile, || format!("at {} ms: {reason}", at.millis()));
        }
        self.settle_on_a_line();
        Some(connection)
    }

    fn first_line(&self) -> Option<[u8; 32]> {
        Some(self.identity)
    }

    fn describe(&self) -> String {
        match self.hours_count {
            1 => "1 hour of an archive".into(),
            count => format!("{count} hours of an archive"),
        }
    }
}

/// All rows of a venue share one connection: hours do not name those of the recording.
fn connection_of(origin: Origin) -> u8 {
    origin.index() as u8
}

/// The digest of the hour's sidecar; without one, the hash of the file.
fn identity_of(path: &Path) -> Result<[u8; 32], TapeError> {
    if let Some(sidecar) = hour::sidecar(path) {
        return Ok(sidecar.digest);
    }
    // Its length is checked before its bytes are read.
    match HourFile::open(path).and_then(|_| archive::digest(path)) {
        Ok((digest, _)) => Ok(digest),
        Err(archive::Error::Io(path, error)) => Err(TapeError::Io { path, error }),
        Err(archive::Error::Refused(path, refusal)) => Err(TapeError::Archive { path, reason: refusal.to_string() }),
    }
}

/// The folders of venues that these files are in: those with a folder of markets. An hour is up to three folders deep in
/// one (`YYYY/MM/DD`).
fn venue_folders<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    const DEPTH: usize = 4;
    let mut folders = Vec::new();
    let mut seen: AHashSet<&Path> = AHashSet::new();
    for parent in files.filter_map(|file| file.parent()) {
        if seen.insert(parent) {
            let found = parent.ancestors().take(DEPTH).find(|folder| super::catalogue::folder(folder).is_dir());
            folders.extend(found.map(Path::to_path_buf).filter(|folder| !folders.contains(folder)));
        }
    }
    folders
}

#[cfg(test)]
mod tests;
