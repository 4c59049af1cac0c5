//! What tests of several files share.

use crate::earlier::Step;
use crate::ended::EndedStore;
use crate::files::store_files;
use crate::opening::Opening;
use crate::prices::Prices;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

impl Prices {
    /// Opens the prices of a folder as the job does; without a usable one they are kept only in memory.
    pub fn open(folder: Option<&Path>, cache_bytes: u64) -> Prices {
        let Some(folder) = folder else { return Prices::in_memory() };
        let mut opening = Opening::new(folder.to_owned(), cache_bytes, EndedStore::opening());
        while opening.step() != Step::Over {
            std::thread::yield_now();
        }
        opening.end()
    }
}

/// Copies the store of a history as it is at this moment, and as a kill would leave it.
pub fn copy_running(from: &Path, to: &Path) {
    for file in store_files(from).expect("readable") {
        let path = to.join(&file.name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let mut bytes = Vec::new();
        file.file.take(file.bytes).read_to_end(&mut bytes).expect("readable");
        // A journal that was not closed ends in zeros.
        bytes.extend(if file.name.ends_with("jnl") { &[0; 5_000][..] } else { &[] });
        fs::write(path, bytes).expect("written");
    }
}

/// Copies a folder that nothing uses.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, into) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &into),
            false => _ = fs::copy(&path, &into).expect("a file"),
        }
    }
}

/// All files of a folder, by their paths.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            true => {
                found.extend(contents(&entry.path()).into_iter().map(|(of, bytes)| (format!("{name}/{of}"), bytes)))
            }
            false => _ = found.insert(name, fs::read(entry.path()).expect("readable")),
        }
    }
    found
}

/// Places in a file at which a bit is flipped.
const FLIPS: usize = 10;

/// Calls `check` with a copy of the folder for each way in which one of its files may be damaged.
pub fn damage(whole: &Path, check: impl FnMut(&Path, &str)) {
    damage_of(whole, |_| true, check);
}

/// The same for the files with some names.
pub fn damage_of(whole: &Path, is_damaged: impl Fn(&str) -> bool, mut check: impl FnMut(&Path, &str)) {
    for (name, bytes) in contents(whole).into_iter().filter(|(name, _)| is_damaged(name)) {
        let flips = (0..FLIPS).map(|number| bytes.len() * number / FLIPS);
        let flips: Vec<String> = flips.map(|at| format!("a flipped bit at {at}")).collect();
        let kinds = ["empty", "cut", "noise", "a folder", "gone", "zeros"].into_iter();
        for what in kinds.chain(flips.iter().map(String::as_str)) {
            let place = tempfile::tempdir().expect("a temporary directory");
            copy(whole, place.path());
            let path = place.path().join(&name);
            fs::remove_file(&path).expect("it was there");
            let written = match what {
                "empty" => fs::write(&path, b""),
                "cut" => fs::write(&path, &bytes[..bytes.len() / 2]),
                "noise" => fs::write(&path, bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<_>>()),
                "zeros" => fs::write(&path, vec![0; bytes.len()]),
                "a folder" => fs::create_dir(&path),
                "gone" => Ok(()),
                flip => {
                    let mut bytes = bytes.clone();
                    let at: usize = flip.rsplit(' ').next().and_then(|at| at.parse().ok()).expect("a place");
                    bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 0x10);
                    fs::write(&path, bytes)
                }
            };
            written.expect("written");
            check(place.path(), &format!("{name}: {what}"));
        }
    }
}
