//! The memory of a build: an hour of 75 million rows from its lines, in a process of its own, whose greatest resident size
//! the system knows. Its pages of the program count as well.

use crate::hour;
use crate::report::{Report, Size, timed};
use crate::role::Role;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

/// The scenario's name; `all` does not include it: its lines take 17 GB.
pub const NAME: &str = "large_hour";
pub const QUESTION: &str = "how much memory does a build of 75 million rows take?";

/// Memory of the sort, bytes.
const MEMORY_BYTES: u64 = 256 << 20;

/// The task of the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    tape: PathBuf,
    root: PathBuf,
}

impl Task {
    /// Builds the hour, and prints its seconds, the greatest resident size in bytes, and the digest of its Parquet.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        let (seconds, path) = timed(|| hour::built(&self.tape, &self.root, MEMORY_BYTES));
        println!("{seconds} {} {}", peak_bytes()?, path.display());
        Ok(())
    }
}

/// The greatest resident size of this process so far.
fn peak_bytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    Ok(1_024 * kilobytes.ok_or("the system does not know the greatest resident size")?.parse::<u64>()?)
}

pub fn run(size: Size, report: &mut Report) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (tape, root) = (place.path().join("tape.ndjson"), place.path().join("archive"));
    let frames = size.pick(2_000, 37_500_000);
    hour::write_tape(&tape, None, frames);
    let output = Role::Build(Task { tape, root }).command().output().expect("this program can be started");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let words: Vec<&str> = stdout.split_whitespace().collect();
    let [seconds, peak, path] = words[..] else { panic!("three words: {stdout:?}") };
    let seconds: f64 = seconds.parse().expect("seconds");
    let peak: f64 = peak.parse().expect("bytes");
    let rows = 2 * frames;
    report.figure("rows", rows as f64, "");
    report.figure("built from lines", rows as f64 / seconds, "rows a second");
    report.figure("greatest resident size", peak, "bytes");
    report.figure("beyond the memory of the sort", (peak - MEMORY_BYTES as f64) / f64::from(1 << 20), "MiB");
    report.figure("Parquet of the hour", fs::metadata(path).expect("an hour").len() as f64, "bytes");
    report.computed(fs::read(path).expect("an hour"));
    report.rate_note(crate::report::ONE_BY_ONE);
    report.durability("files of an hour are synced before they get their names");
    report.not_included("writing the lines");
}
