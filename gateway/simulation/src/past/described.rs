//! What the venues said about their markets, and results that were imported: read again when its files have changed.

use super::PastError;
use archive::row::Condition;
use archive::store::Store;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use venue::archive::catalogue;
use venue::archive::markets::{self, Known};
use venue::archive::settled::{self, Settlement};
use venue::category::Names;
use venue::tape::Origin;

/// The markets of all venues.
pub(super) struct Descriptions {
    names: Names,
    by_venue: Mutex<BTreeMap<Origin, Arc<Slot>>>,
}

/// The newest description of a venue. A thread that reads the files holds it, so that others wait for it.
type Slot = Mutex<Option<Arc<Described>>>;

/// What is known of a venue's markets besides their rows.
pub(super) struct Described {
    stamp: Vec<(PathBuf, u64, Option<SystemTime>)>,
    pub markets: BTreeMap<String, Known>,
    pub settlements: BTreeMap<Condition, Settlement>,
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
        let mut last = of_venue.lock();
        let folder = store.root().join(venue.name());
        let stamp = stamp(&catalogue::folder(&folder));
        if let Some(known) = last.as_ref().filter(|known| known.stamp == stamp) {
            return Ok(known.clone());
        }
        let described = Arc::new(self.read(&folder, stamp)?);
        *last = Some(described.clone());
        Ok(described)
    }

    fn read(&self, folder: &Path, stamp: Vec<(PathBuf, u64, Option<SystemTime>)>) -> Result<Described, PastError> {
        let markets = markets::known(folder, &self.names).map_err(|error| PastError::Markets(error.to_string()))?;
        let given = settled::file(folder);
        let settlements = match given.exists() {
            true => settled::read(&given).map_err(PastError::Markets)?,
            false => BTreeMap::new(),
        };
        Ok(Described { stamp, markets, settlements })
    }
}

/// Names, sizes and times of the files of a folder.
fn stamp(folder: &Path) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut stamp: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let metadata = entry.metadata().ok()?;
            Some((entry.path(), metadata.len(), metadata.modified().ok()))
        })
        .collect();
    stamp.sort();
    stamp
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
        std::fs::write(settled::file(&place.path().join(venue.name())), "").expect("written");
        let changed = descriptions.of(&store, venue);
        assert!(changed.is_err() || changed.is_ok_and(|changed| !Arc::ptr_eq(&changed, &all[0])));
    }
}
