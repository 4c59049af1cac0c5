//! What the venues said about their markets, and results that were imported: files are read again when they have changed.

use super::PastError;
use archive::row::Condition;
use archive::store::Store;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use venue::archive::catalogue;
use venue::archive::known::{KnownMarkets, Reader};
use venue::archive::settled::{self, Settlement};
use venue::category::Names;
use venue::tape::Origin;

/// The markets of all venues.
pub(super) struct Descriptions {
    names: Names,
    by_venue: Mutex<BTreeMap<Origin, Arc<Mutex<OfVenue>>>>,
}

/// The newest description of a venue. A thread that reads the files holds it, so that others wait for it.
#[derive(Default)]
struct OfVenue {
    reader: Reader,
    last: Option<Arc<Described>>,
}

type Settlements = BTreeMap<Condition, Settlement>;

/// What is known of a venue's markets besides their rows.
pub(super) struct Described {
    files: Vec<FileState>,
    pub markets: KnownMarkets,
    pub settlements: Arc<Settlements>,
}

/// A file, and what its content is recognised by: inode, bytes, time of change.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FileState {
    path: PathBuf,
    content: (u64, u64, Option<SystemTime>),
}

impl Descriptions {
    /// `names`: categories of the venues' own words.
    pub fn new(names: Names) -> Descriptions {
        Descriptions { names, by_venue: Mutex::default() }
    }

    /// What is known of a venue's markets.
    pub fn of(&self, store: &Store, venue: Origin) -> Result<Arc<Described>, PastError> {
        let of_venue = self.by_venue.lock().entry(venue).or_default().clone();
        // Held while files are read, which takes seconds if there are many: readers that miss together read them once.
        let mut of_venue = of_venue.lock();
        let folder = store.root().join(venue.name());
        let files = files(&catalogue::folder(&folder));
        if let Some(known) = of_venue.last.as_ref().filter(|known| known.files == files) {
            return Ok(known.clone());
        }
        let settlements = of_venue.settlements(&settled::file(&folder), &files)?;
        let markets = of_venue.reader.read(&folder, &self.names);
        let markets = markets.map_err(|error| PastError::Markets(error.to_string()))?;
        let described = Arc::new(Described { files, markets, settlements });
        of_venue.last = Some(described.clone());
        Ok(described)
    }
}

impl OfVenue {
    /// The imported results, which are read again if their file is not the one of the last description.
    fn settlements(&self, path: &Path, files: &[FileState]) -> Result<Arc<Settlements>, PastError> {
        let find = |files: &[FileState]| files.iter().find(|file| file.path == path).cloned();
        let Some(now) = find(files) else { return Ok(Arc::default()) };
        match self.last.as_ref().filter(|last| find(&last.files) == Some(now)) {
            Some(last) => Ok(last.settlements.clone()),
            None => Ok(Arc::new(settled::read(path).map_err(PastError::Markets)?)),
        }
    }
}

/// The files of a folder as they are now.
fn files(folder: &Path) -> Vec<FileState> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let metadata = entry.metadata().ok()?;
            let content = (metadata.ino(), metadata.len(), metadata.modified().ok());
            Some(FileState { path: entry.path(), content })
        })
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::store::Settings;

    #[test]
    fn files_are_read_once_until_they_change() {
        let place = tempfile::tempdir().expect("a folder");
        let store = Store::open(place.path(), Settings::default()).expect("an archive");
        let venue = Origin::named("polymarket").expect("a live venue");
        let folder = catalogue::folder(&place.path().join(venue.name()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let descriptions = Descriptions::new(Names::default());
        let read = || descriptions.of(&store, venue).expect("it can be read");
        // Eight that miss together share one.
        let all: Vec<Arc<Described>> = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
            readers.into_iter().map(|reader| reader.join().expect("no panic")).collect()
        });
        assert!(all.iter().all(|one| Arc::ptr_eq(one, &all[0])));
        assert!(Arc::ptr_eq(&read(), &all[0]));
        let results = settled::file(&place.path().join(venue.name()));
        let id = format!("0x{}", "51".repeat(32));
        let text = format!("condition_id,winner,at\n{id},0,2026-09-30T17:00:00Z\n");
        std::fs::write(&results, &text).expect("written");
        let with_results = read();
        assert!(!Arc::ptr_eq(&with_results, &all[0]) && with_results.settlements.len() == 1);
        // A file of a day more: the results are not read again.
        std::fs::write(folder.join("2026-09-30.ndjson"), "{}\n").expect("written");
        let next_day = read();
        assert!(!Arc::ptr_eq(&next_day, &with_results));
        assert!(Arc::ptr_eq(&next_day.settlements, &with_results.settlements));
        // Another file of results, and a wrong one.
        std::fs::write(&results, text.replace(",0,", ",split,")).expect("written");
        let replaced = read();
        assert!(!Arc::ptr_eq(&replaced.settlements, &with_results.settlements));
        std::fs::write(&results, "").expect("written");
        assert!(descriptions.of(&store, venue).is_err());
        std::fs::remove_file(&results).expect("removed");
        assert!(read().settlements.is_empty());
        println!("descriptions: 7 reads");
    }
}
