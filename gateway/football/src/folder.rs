//! The port of the routes on a folder, and the work that reads its files again. A file with a defect does not count: what
//! was known before stays, and the log says so once for each change of the file.

use crate::kinds::{BYTES_MAX, Kind, Known};
use edge::api::football::facts::{Facts, Football};
use host::job::{Next, Work};
use host::thread::Stop;
use host::watched_file::{Look, WatchedFile};
use parking_lot::RwLock;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How often the files are looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is known, shared by the routes, the metrics and the work.
#[derive(Default)]
pub struct Almanac {
    /// Locked only to be copied or replaced.
    facts: RwLock<Arc<Facts>>,
    /// Whether the file of each kind has a defect.
    broken: [AtomicBool; Kind::ALL.len()],
}

impl Football for Almanac {
    fn facts(&self) -> Arc<Facts> {
        self.facts.read().clone()
    }
}

impl Almanac {
    /// Each kind with whether its file has a defect now, or cannot be read.
    pub fn broken(&self) -> impl Iterator<Item = (Kind, bool)> {
        Kind::ALL.into_iter().map(|kind| (kind, self.broken[kind as usize].load(Relaxed)))
    }
}

/// Reads the files of a folder again when they change.
pub struct Folder {
    files: [(Kind, WatchedFile); Kind::ALL.len()],
    known: Known,
    almanac: Arc<Almanac>,
    /// Entries about unknown matches at the last read.
    strays: usize,
}

impl Folder {
    /// The folder with what its files hold now. A missing folder, and a file that cannot be read, holds nothing until it
    /// can.
    pub fn open(dir: &Path) -> Folder {
        let file = |kind: Kind| (kind, WatchedFile::new(dir.join(kind.file()), BYTES_MAX));
        let files = Kind::ALL.map(file);
        let mut folder = Folder { files, known: Known::default(), almanac: Arc::default(), strays: 0 };
        folder.look();
        folder
    }

    /// What is known.
    pub fn almanac(&self) -> Arc<Almanac> {
        self.almanac.clone()
    }

    /// Looks at every file, and replaces what the changed ones hold.
    pub fn look(&mut self) {
        let mut has_changed = false;
        for (kind, file) in &mut self.files {
            let broken = &self.almanac.broken[*kind as usize];
            let path = file.path().display().to_string();
            let problem = match file.look() {
                Look::Same => continue,
                Look::Gone => {
                    self.known.clear(*kind);
                    None
                }
                Look::New(content) => self.known.read(*kind, &content).err().map(|defects| {
                    let more = match defects.len() {
                        1 => String::new(),
                        count => format!(" (the first of {count})"),
                    };
                    format!("{}{more}", defects[0])
                }),
                Look::Failed(error) => Some(error.to_string()),
            };
            if let Some(problem) = &problem {
                tracing::warn!(file = path, problem, "a file of football facts is broken; what it held before stays");
            } else if broken.load(Relaxed) {
                tracing::info!(file = path, "a file of football facts is sound again");
            }
            broken.store(problem.is_some(), Relaxed);
            has_changed |= problem.is_none();
        }
        if has_changed {
            *self.almanac.facts.write() = Arc::new(self.known.facts());
            let strays = self.known.strays().len();
            if strays > 0 && strays != self.strays {
                tracing::warn!(strays, "entries of football facts are about matches that fixtures.json does not have");
            }
            self.strays = strays;
        }
    }
}

impl Work for Folder {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        self.look();
        Ok(Next::Sleep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const FIXTURE: &str =
        r#"{"id":1,"competition":"Cup","status":"live","home":{"id":1,"name":"A"},"away":{"id":2,"name":"B"}}"#;

    fn broken(almanac: &Almanac) -> Vec<&'static str> {
        almanac.broken().filter(|(_, is_broken)| *is_broken).map(|(kind, _)| kind.name()).collect()
    }

    #[test]
    fn a_broken_file_keeps_what_was_known() {
        let place = tempfile::tempdir().expect("a folder");
        let dir = place.path().join("facts");
        let mut folder = Folder::open(&dir);
        let almanac = folder.almanac();
        let ids = |almanac: &Almanac| almanac.facts().fixtures.iter().map(|fixture| fixture.id).collect::<Vec<_>>();
        assert_eq!((ids(&almanac), broken(&almanac)), (vec![], vec![]), "a folder that is missing");
        fs::create_dir(&dir).expect("a folder");
        let mut cases = 1;
        let two = FIXTURE.replace("\"id\":1,\"comp", "\"id\":2,\"comp");
        for (text, expected, is_broken) in [
            (Some(format!("[{FIXTURE}]")), &[1][..], false),
            (Some("[".to_owned()), &[1], true),
            (Some(format!("[{FIXTURE},{FIXTURE}]")), &[1], true),
            (Some(format!("[{FIXTURE},{two}]")), &[1, 2], false),
            (Some(String::new()), &[1, 2], true),
            (Some("[]".to_owned()), &[], false),
            (Some(format!("[{two}]")), &[2], false),
            (Some(format!("{}[]", " ".repeat(BYTES_MAX as usize))), &[2], true),
            (None, &[], false),
        ] {
            match &text {
                Some(text) => fs::write(dir.join("fixtures.json"), text).expect("written"),
                None => fs::remove_file(dir.join("fixtures.json")).expect("removed"),
            }
            folder.look();
            assert_eq!(ids(&almanac), expected, "{:?}", text.map(|text| text.chars().take(80).collect::<String>()));
            assert_eq!(broken(&almanac), if is_broken { vec!["fixtures"] } else { vec![] });
            cases += 1;
        }
        // Other kinds do not depend on it.
        fs::write(dir.join("fixtures.json"), "x").expect("written");
        fs::write(dir.join("injuries.json"), r#"[{"fixture":9,"injuries":[]}]"#).expect("written");
        folder.look();
        assert_eq!((almanac.facts().injuries.len(), broken(&almanac)), (1, vec!["fixtures"]));
        println!("changes of a folder: {} cases", cases + 1);
    }

    /// What a match is known for comes from two files, in any order.
    #[test]
    fn a_detail_is_made_of_both_files() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::open(dir.path());
        let almanac = folder.almanac();
        let venue = |almanac: &Almanac| almanac.facts().details.get(&1).map(|detail| detail.more.venue.clone());
        fs::write(dir.path().join("matches.json"), r#"[{"id":1,"venue":"Here"},{"id":7}]"#).expect("written");
        folder.look();
        assert_eq!(venue(&almanac), None);
        fs::write(dir.path().join("fixtures.json"), format!("[{FIXTURE}]")).expect("written");
        folder.look();
        assert_eq!(venue(&almanac), Some(Some("Here".to_owned())));
        fs::remove_file(dir.path().join("matches.json")).expect("removed");
        folder.look();
        assert_eq!(venue(&almanac), Some(None), "a fixture without more is a match, too");
    }
}
