//! Exports of the archive: files in a folder, each made once, whole or absent, and removed a day after the last link to
//! it (gateway/docs/simulation.md §7).
//!
//! One file is made at a time, on a thread of low priority. It is made to its end when its request is gone, so that the
//! next request for the same finds it. The folder may hold files of others: only names of exports are looked at.

use crate::past::{Past, PastError};
use archive::events::EventWriter;
use archive::index::TokenRows;
use archive::read::HourFile;
use archive::row::{Condition, Row};
use archive::store::{Hold, HourEntry};
use archive::write::HourWriter;
use edge::api::simulation::archive::{Reading, Unreachable};
use edge::api::simulation::exports::{ExportFile, ExportId, ExportLayout, Exports, Making, NotMade, WantedExport};
use engine::backtest::Hour;
use engine::time::{SECOND, Timestamp};
use host::clock::Clock;
use host::job::{Next, Work};
use host::thread::Stop;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// How long a request waits for its file; the making continues after it.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// How long a file stays after the last link to it.
const KEPT: Duration = Duration::from_secs(24 * 3_600);
/// Free bytes below which nothing is made, besides the settings' own.
const FREE_MIN: u64 = 1 << 30;
/// Exports that are known to be too large, so that they are not made again and again.
const TOO_LARGE_MAX: usize = 256;
/// How far a row may be outside of its hour (gateway/docs/archive.md §3).
const OUTSIDE_MAX: u64 = 5 * SECOND;
/// Rows of the border between two hours that are held in memory.
const BORDER_ROWS_MAX: usize = 1 << 20;
/// What the files look like; another number makes other ids.
const FORMAT: u32 = 1;

const MADE: &str = ".parquet";
const IN_MAKING: &str = ".parquet.making";

/// Where exports are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The folder, which is created if it is absent.
    pub dir: PathBuf,
    /// Bytes of a file at most.
    pub bytes_max: u64,
    /// Free bytes of the disk that exports do not take.
    pub reserve_bytes: u64,
}

/// The exports of an archive.
pub struct ExportFolder {
    maker: Arc<Maker>,
    /// A place for the one file that is being made.
    place: Arc<Semaphore>,
    wait: Duration,
}

/// Makes files; all calls block.
struct Maker {
    past: Arc<Past>,
    settings: Settings,
    clock: Clock,
    /// The newest ones last.
    too_large: Mutex<VecDeque<ExportId>>,
}

/// An export whose hours are known.
struct Plan {
    id: ExportId,
    window: Range<Timestamp>,
    layout: ExportLayout,
    /// The hours with rows that may be in the window, ascending, and those rows by token.
    hours: Vec<(Arc<HourEntry>, Vec<TokenRows>)>,
    /// Keeps them.
    _hold: Hold,
}

/// Removes exports whose day is over.
pub struct Sweep {
    dir: PathBuf,
    clock: Clock,
}

/// A file being written.
enum Output {
    Events(Box<EventWriter>),
    Hour(Box<HourWriter>),
}

struct OpenExport {
    file: Arc<File>,
    bytes: u64,
}

impl ExportFolder {
    /// The exports in a folder.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(past: Arc<Past>, settings: Settings, clock: Clock) -> io::Result<ExportFolder> {
        fs::create_dir_all(&settings.dir)?;
        let maker = Maker { past, settings, clock, too_large: Mutex::default() };
        Ok(ExportFolder { maker: Arc::new(maker), place: Arc::new(Semaphore::new(1)), wait: WAIT_MAX })
    }

    async fn find_or_make(&self, wanted: WantedExport) -> Result<ExportId, NotMade> {
        let maker = self.maker.clone();
        let planned = tokio::task::spawn_blocking(move || maker.plan(wanted)).await;
        let plan = match planned.map_err(|_| NotMade::Unreachable)?? {
            Planned::Made(id) => return Ok(id),
            Planned::Plan(plan) => plan,
        };
        let place = self.place.clone().acquire_owned().await.map_err(|_| NotMade::Unreachable)?;
        self.start(plan, place)?.await.map_err(|_| NotMade::Unreachable)?
    }

    /// Starts the thread that makes a file.
    fn start(
        &self,
        plan: Plan,
        place: OwnedSemaphorePermit,
    ) -> Result<oneshot::Receiver<Result<ExportId, NotMade>>, NotMade> {
        let (tell, made) = oneshot::channel();
        let maker = self.maker.clone();
        let body = move || {
            host::thread::lower_priority();
            let result = maker.make(&plan);
            drop((plan, place));
            // The request may be gone.
            let _ = tell.send(result);
        };
        // A panic was logged by its hook, and drops the place and the channel.
        host::thread::spawn_spare("export", body, || {}).map_err(|error| {
            tracing::warn!(%error, "no thread for an export");
            NotMade::Unreachable
        })?;
        Ok(made)
    }
}

impl Exports for ExportFolder {
    fn make<'a>(&'a self, wanted: &'a WantedExport) -> Making<'a> {
        let making = self.find_or_make(wanted.clone());
        Box::pin(async move { tokio::time::timeout(self.wait, making).await.unwrap_or(Err(NotMade::NotYet)) })
    }

    fn open<'a>(&'a self, id: ExportId) -> Reading<'a, Option<Box<dyn ExportFile>>> {
        let path = path(&self.maker.settings.dir, id);
        Box::pin(async move {
            let opened = tokio::task::spawn_blocking(move || open(&path)).await.map_err(|_| Unreachable)?;
            match opened {
                Ok(export) => Ok(export.map(|export| Box::new(export) as Box<dyn ExportFile>)),
                Err(error) => {
                    tracing::warn!(%error, "an export cannot be opened");
                    Err(Unreachable)
                }
            }
        })
    }
}

/// What a request leads to.
enum Planned {
    Made(ExportId),
    Plan(Plan),
}

impl Maker {
    /// Finds the hours of an export, and the file if it is there.
    fn plan(&self, wanted: WantedExport) -> Result<Planned, NotMade> {
        let plan = self.plan_of(wanted).map_err(|error| {
            tracing::warn!(%error, "an export cannot be planned");
            NotMade::Unreachable
        })?;
        if self.too_large.lock().contains(&plan.id) {
            return Err(NotMade::TooLarge(self.settings.bytes_max));
        }
        Ok(if self.find(plan.id)? { Planned::Made(plan.id) } else { Planned::Plan(plan) })
    }

    fn plan_of(&self, wanted: WantedExport) -> Result<Plan, PastError> {
        let WantedExport { market, window, layout } = wanted;
        let unknown = || PastError::Markets(format!("the archive has no hour of {} any more", market.condition));
        let condition = Condition::parse(&market.condition).ok_or_else(unknown)?;
        let venue = self.past.venue(&condition)?.ok_or_else(unknown)?;
        let store = self.past.store();
        let mut digest = Sha256::new();
        let program = concat!("papertape ", env!("CARGO_PKG_VERSION"));
        let (start, end) = (window.start.0, window.end.0);
        digest.update(format!("{program}\n{FORMAT}\n{condition}\n{start}\n{end}\n{}\n", layout.name()));
        // Rows may be in the hour before theirs, or after it.
        let touched = Hour::touched(window.clone());
        let around = Hour(touched.start.0.saturating_sub(1))..touched.end.next();
        // Held before they are looked at: none is removed in between.
        let hold = store.hold((around.start.0..around.end.0).map(|hour| (venue.to_owned(), Hour(hour))));
        let mut hours = Vec::new();
        for entry in self.past.made(&market.condition, around)?.ok_or_else(unknown)?.entries {
            let Ok(sidecar) = entry.sidecar() else { continue };
            let mut rows = store.tokens(&entry, &condition)?;
            rows.retain(|rows| rows.last >= window.start && rows.first < window.end);
            if !rows.is_empty() {
                digest.update(format!("{venue} {} {}\n", entry.hour, sidecar.parquet.sha256));
                hours.push((entry, rows));
            }
        }
        Ok(Plan { id: ExportId(digest.finalize().into()), window, layout, hours, _hold: hold })
    }

    /// Whether the file is there. Its day begins again.
    fn find(&self, id: ExportId) -> Result<bool, NotMade> {
        let touched = File::options().append(true).open(path(&self.settings.dir, id));
        match touched.and_then(|file| file.set_modified(of_the_system(self.clock.wall_now()))) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                tracing::warn!(%error, "an export cannot be found");
                Err(NotMade::Unreachable)
            }
        }
    }

    /// Makes a file, unless an earlier request in the line has made it.
    fn make(&self, plan: &Plan) -> Result<ExportId, NotMade> {
        if self.find(plan.id)? {
            return Ok(plan.id);
        }
        match self.write(plan) {
            Ok(()) => Ok(plan.id),
            Err(archive::Error::Io(_, error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                let mut too_large = self.too_large.lock();
                if too_large.len() == TOO_LARGE_MAX {
                    too_large.pop_front();
                }
                too_large.push_back(plan.id);
                Err(NotMade::TooLarge(self.settings.bytes_max))
            }
            Err(error) => {
                tracing::warn!(%error, "an export cannot be made");
                Err(NotMade::Unreachable)
            }
        }
    }

    fn write(&self, plan: &Plan) -> Result<(), archive::Error> {
        let path = path(&self.settings.dir, plan.id);
        let bytes_max = self.settings.bytes_max;
        let mut output = match plan.layout {
            ExportLayout::Events => Output::Events(Box::new(EventWriter::create(&path, plan.id.0, bytes_max)?)),
            ExportLayout::V2 => Output::Hour(Box::new(HourWriter::create(&path, Some(plan.id.0))?.at_most(bytes_max))),
        };
        let tokens: BTreeSet<&str> =
            plan.hours.iter().flat_map(|(_, rows)| rows).map(|rows| rows.token.as_str()).collect();
        for token in tokens {
            let mut joined = Joined { output: &mut output, window: &plan.window, border: VecDeque::new() };
            for (entry, rows) in &plan.hours {
                if let Some(rows) = rows.iter().find(|rows| rows.token == token) {
                    self.has_room().map_err(|error| archive::Error::Io(self.settings.dir.clone(), error))?;
                    joined.hour(entry, rows)?;
                }
            }
            joined.end()?;
        }
        output.finish()
    }

    /// # Errors
    /// The disk has too few free bytes.
    fn has_room(&self) -> io::Result<()> {
        let disk = rustix::fs::statvfs(&self.settings.dir)?;
        let needed = self.settings.reserve_bytes.saturating_add(FREE_MIN);
        if disk.f_bavail.saturating_mul(disk.f_frsize) < needed {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

/// Writes the rows of a token from several hours in the order of receipt. Those near the end of an hour wait for the next
/// hour, which may have rows that belong between them.
struct Joined<'a> {
    output: &'a mut Output,
    window: &'a Range<Timestamp>,
    /// Rows near the end of the last hour, ascending.
    border: VecDeque<Row>,
}

impl Joined<'_> {
    fn hour(&mut self, entry: &HourEntry, rows: &TokenRows) -> Result<(), archive::Error> {
        let file = HourFile::open(&entry.path)?;
        self.rows(entry.hour, file.rows(rows.rows.clone()).map(|row| row.map(|(_, row)| row)))
    }

    fn rows(
        &mut self,
        hour: Hour,
        rows: impl Iterator<Item = Result<Row, archive::Error>>,
    ) -> Result<(), archive::Error> {
        let waits_from = Timestamp(hour.end().0 - OUTSIDE_MAX);
        let mut waiting = VecDeque::new();
        for row in rows {
            let row = row?;
            // Of one moment, the rows of the earlier hour come first.
            while self.border.front().is_some_and(|earlier| earlier.received <= row.received)
                && let Some(earlier) = self.border.pop_front()
            {
                self.put(&earlier)?;
            }
            if row.received < waits_from {
                self.put(&row)?;
                continue;
            }
            if waiting.len() == BORDER_ROWS_MAX
                && let Some(first) = waiting.pop_front()
            {
                self.put(&first)?;
            }
            waiting.push_back(row);
        }
        // Rows of the hour before that are later than all of this one.
        waiting.extend(self.border.drain(..));
        self.border = waiting;
        Ok(())
    }

    fn end(mut self) -> Result<(), archive::Error> {
        while let Some(row) = self.border.pop_front() {
            self.put(&row)?;
        }
        Ok(())
    }

    fn put(&mut self, row: &Row) -> Result<(), archive::Error> {
        if self.window.contains(&row.received) { self.output.push(row) } else { Ok(()) }
    }
}

impl Output {
    fn push(&mut self, row: &Row) -> Result<(), archive::Error> {
        match self {
            Output::Events(writer) => writer.push(row),
            Output::Hour(writer) => writer.push(row),
        }
    }

    fn finish(self) -> Result<(), archive::Error> {
        match self {
            Output::Events(writer) => writer.finish().map(drop),
            Output::Hour(writer) => writer.finish().map(drop),
        }
    }
}

impl ExportFile for OpenExport {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, len: usize) -> Reading<'_, Vec<u8>> {
        let file = self.file.clone();
        Box::pin(async move {
            let read = move || {
                let mut piece = vec![0; len];
                file.read_exact_at(&mut piece, at).map(|()| piece)
            };
            match tokio::task::spawn_blocking(read).await {
                Ok(Ok(piece)) => Ok(piece),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "an export cannot be read");
                    Err(Unreachable)
                }
                // A panic was logged by its hook.
                Err(_) => Err(Unreachable),
            }
        })
    }
}

fn path(dir: &Path, id: ExportId) -> PathBuf {
    dir.join(format!("{id}{MADE}"))
}

/// Opens a file of the folder; `None`: it is not there, or is a link or a device.
fn open(path: &Path) -> io::Result<Option<OpenExport>> {
    let is_plain = match fs::symlink_metadata(path) {
        Ok(there) => there.is_file(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if !is_plain {
        return Ok(None);
    }
    match File::open(path) {
        Ok(file) => {
            let bytes = file.metadata()?.len();
            Ok(Some(OpenExport { file: Arc::new(file), bytes }))
        }
        // Its day ended meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Sweep {
    /// The work on the folder of these settings.
    pub fn new(settings: &Settings, clock: Clock) -> Sweep {
        Sweep { dir: settings.dir.clone(), clock }
    }

    /// Removes exports whose day is over at `now`, and what a kill left of one. Returns the number of files.
    fn sweep(&self, now: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        let entries = match fs::read_dir(&self.dir) {
            // Nothing was exported yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if !entry.file_name().to_str().is_some_and(is_export) {
                continue;
            }
            // A file that is gone, or of the future, has no age.
            let age = entry.metadata().ok().filter(|there| there.is_file()).and_then(|there| {
                let modified = there.modified().ok()?;
                now.duration_since(modified).ok()
            });
            if age.is_some_and(|age| age >= KEPT) {
                fs::remove_file(entry.path())?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

impl Work for Sweep {
    type Error = io::Error;
    const FAILED: &'static str = "exports cannot be removed";

    fn take_turn(&mut self, _: &Stop) -> io::Result<Next> {
        let removed = self.sweep(of_the_system(self.clock.wall_now()))?;
        if removed > 0 {
            tracing::debug!(removed, "exports of more than a day ago were removed");
        }
        Ok(Next::Sleep)
    }
}

/// A time as files have it.
fn of_the_system(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(at.0)
}

/// Whether a name is that of an export, or of one in making.
fn is_export(name: &str) -> bool {
    let id = name.strip_suffix(IN_MAKING).or_else(|| name.strip_suffix(MADE));
    id.is_some_and(|id| ExportId::parse(id).is_some())
}

#[cfg(test)]
mod tests;
