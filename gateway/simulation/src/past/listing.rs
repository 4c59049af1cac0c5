//! When the hours on disk are listed again: other processes import and remove hours, too.
//!
//! The files of an hour are created, replaced and removed in the folder of its day, which changes the time of that folder.
//! So the times of these folders decide whether all files have to be listed.

use super::PastError;
use archive::store::Store;
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long no look is taken.
const AGE_MAX: Duration = Duration::from_secs(10);
/// The clock of a disk has steps: a folder that changed within the last moment may change again without a new time.
const UNSURE: Duration = Duration::from_secs(2);

/// The state of the folders at the last list.
pub(super) struct DiskListing {
    looked_at: Mutex<Instant>,
    /// Empty if they have to be listed in any case.
    days: Mutex<Vec<(PathBuf, SystemTime)>>,
    age_max: Duration,
}

impl Default for DiskListing {
    fn default() -> DiskListing {
        DiskListing::of_age(AGE_MAX)
    }
}

impl DiskListing {
    fn of_age(age_max: Duration) -> DiskListing {
        DiskListing { looked_at: Mutex::new(Instant::now()), days: Mutex::default(), age_max }
    }

    /// Lists the hours on disk again if the last look is old and a folder has changed since. True: they were listed.
    pub fn renew(&self, store: &Store) -> Result<bool, PastError> {
        {
            let mut looked_at = self.looked_at.lock();
            if looked_at.elapsed() < self.age_max {
                return Ok(false);
            }
            *looked_at = Instant::now();
        }
        // Other readers go on with the hours that are known.
        let Some(mut known) = self.days.try_lock() else { return Ok(false) };
        let days = days(store.root()).unwrap_or_default();
        if !days.is_empty() && *known == days {
            return Ok(false);
        }
        known.clear();
        store.refresh()?;
        // The times are from before the list: what changed meanwhile is found by the next look.
        let newest = days.iter().map(|(_, changed)| *changed).max();
        if newest.is_some_and(|newest| newest.elapsed().is_ok_and(|age| age > UNSURE)) {
            *known = days;
        }
        Ok(true)
    }
}

/// The folders of the days of all venues, and when they changed.
fn days(root: &Path) -> io::Result<Vec<(PathBuf, SystemTime)>> {
    let mut days = Vec::new();
    for venue in folders(root, false)? {
        for year in folders(&venue, true)? {
            for month in folders(&year, true)? {
                for day in folders(&month, true)? {
                    let changed = fs::metadata(&day)?.modified()?;
                    days.push((day, changed));
                }
            }
        }
    }
    Ok(days)
}

/// The folders in a folder, by name; `are_numbers`: only those whose name is a number.
fn folders(folder: &Path, are_numbers: bool) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_number = name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        if (is_number || !are_numbers) && entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FIRST, Shelf, VENUE, rising};
    use archive::store::{Settings, parquet_path};
    use engine::backtest::Hour;

    /// Moves the times of all folders of days into the past, as if their hours were old.
    fn age(root: &Path, seconds: u64) {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        for (day, _) in days(root).expect("folders") {
            fs::File::open(day).and_then(|day| day.set_modified(then)).expect("a folder has a time");
        }
    }

    #[test]
    fn hours_of_other_processes_are_found_when_a_folder_changes() {
        let shelf = Shelf::new();
        rising(&shelf, 1, 2);
        let root = shelf.store.root();
        let other = Store::open(root, Settings::default()).expect("an archive");
        let listing = DiskListing::of_age(Duration::ZERO);
        let renew = || listing.renew(&other).expect("it can be listed");
        let has = |hour: u32| other.hour(VENUE, Hour(FIRST.0 + hour)).is_some();
        // A folder that has just changed may change again.
        assert!(renew() && renew());
        age(root, 60);
        assert!(renew() && !renew() && !renew(), "nothing changes");
        // An hour more, then one less.
        rising(&shelf, 1, 3);
        assert!(!has(2) && renew() && has(2));
        age(root, 50);
        assert!(renew() && !renew());
        fs::remove_file(parquet_path(root, VENUE, FIRST)).expect("removed");
        assert!(has(0) && renew() && !has(0));
        // Within its age a look is not repeated.
        let listing = DiskListing::of_age(Duration::from_secs(3_600));
        assert!(!listing.renew(&other).expect("no look"));
        // An archive without hours is listed each time.
        let empty = Shelf::new();
        let listing = DiskListing::of_age(Duration::ZERO);
        assert!(listing.renew(&empty.store).expect("listed") && listing.renew(&empty.store).expect("listed"));
    }
}
