//! The file of samples. It never refuses a start: a damaged file is moved aside, and without a file the samples are in
//! memory.

use super::samples::{BYTES, Samples};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Its name in the data directory.
pub const FILE: &str = "uptime_minutes";
/// The name that a damaged one gets.
const DAMAGED: &str = "uptime_minutes.damaged";

/// Where samples are kept.
pub struct SampleFile {
    dir: PathBuf,
    /// `None`: it could not be made yet.
    file: Option<File>,
    /// The last failure that was logged.
    failed: Option<String>,
}

impl SampleFile {
    /// The file of a directory, with its samples. One that is not there, or damaged, is made again.
    pub fn open(dir: &Path) -> (SampleFile, Samples) {
        let path = dir.join(FILE);
        let mut kept = SampleFile { dir: dir.to_owned(), file: None, failed: None };
        let samples = match opened(&path) {
            Ok((file, content)) => match Samples::read(&content) {
                Ok((samples, 0)) => {
                    kept.file = Some(file);
                    samples
                }
                Ok((samples, damaged)) => {
                    kept.move_aside(&format!("{damaged} records are damaged"));
                    samples
                }
                Err(_) => {
                    kept.move_aside("it is not a file of samples");
                    Samples::default()
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Samples::default(),
            Err(error) => {
                kept.move_aside(&error.to_string());
                Samples::default()
            }
        };
        if kept.file.is_none() {
            kept.make(&samples);
        }
        (kept, samples)
    }

    /// Writes the record that has changed. A failure is logged once, and the whole file is made again with the next one.
    pub fn write(&mut self, samples: &Samples, number: u32) {
        let Some(file) = &self.file else { return self.make(samples) };
        let (at, record) = samples.record(number);
        if let Err(error) = file.write_all_at(&record, at) {
            self.file = None;
            self.note(&error);
        }
    }

    fn make(&mut self, samples: &Samples) {
        match made(&self.dir, samples) {
            Ok(file) => (self.file, self.failed) = (Some(file), None),
            Err(error) => self.note(&error),
        }
    }

    fn note(&mut self, error: &io::Error) {
        let text = error.to_string();
        if self.failed.as_deref() != Some(&text) {
            tracing::warn!(%error, file = FILE, "samples of the uptime cannot be written; they are in memory only");
            self.failed = Some(text);
        }
    }

    fn move_aside(&self, why: &str) {
        let moved = fs::rename(self.dir.join(FILE), self.dir.join(DAMAGED));
        let error = moved.err().map(|error| error.to_string());
        tracing::warn!(
            file = FILE,
            why,
            error,
            "the file of the uptime is damaged; it is now {DAMAGED}, and its sound \
            records go on"
        );
    }
}

/// The file and its content, one byte longer than it may be at most.
fn opened(path: &Path) -> io::Result<(File, Vec<u8>)> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut content = Vec::with_capacity(BYTES + 1);
    (&mut file).take(BYTES as u64 + 1).read_to_end(&mut content)?;
    Ok((file, content))
}

/// Makes the file under another name, so that a crash leaves none or a whole one.
fn made(dir: &Path, samples: &Samples) -> io::Result<File> {
    // The log removes leftovers of this name.
    let making = dir.join(format!("{FILE}.making"));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(&making)?;
    file.write_all(&samples.bytes())?;
    file.sync_all()?;
    fs::rename(&making, dir.join(FILE))?;
    File::open(dir)?.sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_that_is_not_sound_is_moved_aside() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        let minute = 29_848_320;
        let (mut file, mut samples) = SampleFile::open(dir.path());
        for minute in minute..minute + 300 {
            let number = samples.note(minute, &[Some(true); 4]);
            file.write(&samples, number);
        }
        let sound = fs::read(at(FILE)).expect("it is there");
        assert_eq!((sound.len(), samples.days()[0].services[0].measured), (BYTES, 300));
        assert_eq!(fs::metadata(at(FILE)).expect("it is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(SampleFile::open(dir.path()).1, samples);
        let of_record = samples.record(minute / 120).0 as usize;
        let flipped = |at: usize| {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            bytes
        };
        // What the file holds, the minutes that are left, and whether it is moved.
        let rows: [(Vec<u8>, u16, bool); 6] = [
            (sound.clone(), 300, false),
            (flipped(of_record + 4), 180, true),
            (flipped(0), 0, true),
            (sound[..BYTES - 1].to_vec(), 0, true),
            ([&sound[..], b"x"].concat(), 0, true),
            (Vec::new(), 0, true),
        ];
        for (case, (bytes, left, is_moved)) in rows.into_iter().enumerate() {
            let _ = fs::remove_file(at(DAMAGED));
            fs::write(at(FILE), &bytes).expect("written");
            let (_, found) = SampleFile::open(dir.path());
            let measured: u16 = found.days().iter().map(|day| day.services[0].measured).sum();
            assert_eq!((measured, at(DAMAGED).exists()), (left, is_moved), "case {case}");
            assert_eq!(
                fs::read(at(FILE)).expect("it is there"),
                found.bytes(),
                "case {case}: a sound one is in its place"
            );
            assert!(!is_moved || fs::read(at(DAMAGED)).expect("moved") == bytes, "case {case}");
        }
        println!("files of samples: 6 cases");
    }

    #[test]
    fn without_a_file_samples_are_in_memory() {
        let dir = tempfile::tempdir().expect("a directory");
        let missing = dir.path().join("missing");
        let (mut file, mut samples) = SampleFile::open(&missing);
        let number = samples.note(1_000, &[Some(true); 4]);
        file.write(&samples, number);
        // As soon as it can be made, it has all of them.
        fs::create_dir(&missing).expect("a directory");
        let number = samples.note(1_001, &[Some(true); 4]);
        file.write(&samples, number);
        assert_eq!(SampleFile::open(&missing).1, samples);
        // A folder, and a link to a device, in its place.
        fs::remove_file(missing.join(FILE)).expect("removed");
        fs::create_dir(missing.join(FILE)).expect("a folder");
        assert_eq!(SampleFile::open(&missing).1, Samples::default());
        assert!(missing.join(FILE).is_file() && missing.join(DAMAGED).is_dir());
        fs::remove_dir(missing.join(DAMAGED)).expect("removed");
        fs::remove_file(missing.join(FILE)).expect("removed");
        std::os::unix::fs::symlink("/dev/zero", missing.join(FILE)).expect("a link");
        assert_eq!(SampleFile::open(&missing).1, Samples::default());
        assert!(fs::symlink_metadata(missing.join(FILE)).expect("it is there").is_file());
        println!("directories of samples: 4 cases");
    }
}
