//! The manifest of a backup: its last file, so that a backup without one is incomplete.

use crate::{directory_venue, incidents, uptime};
use engine::shard::digest;
use host::leap;
use serde::{Deserialize, Serialize};
use wal::Lsn;

/// Its name in a backup.
pub const MANIFEST: &str = "manifest.json";
/// Format of a backup that this build writes. It also reads the first, whose manifests name no encoding of the digest.
pub const FORMAT: u32 = 2;
pub const FORMAT_FIRST: u32 = 1;
/// Bound of a manifest; an entry is some 200 bytes, and files of the history store have up to 64 MiB.
pub const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// The manifest of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// Version of the program that took the backup.
    pub program: String,
    /// Server time at which it was taken, RFC 3339.
    pub taken_at: String,
    /// Hex: the copy of the log that was backed up, and the directory in which that log began.
    pub instance: String,
    pub directory: String,
    /// The last epoch of that copy.
    pub epoch: u32,
    /// The last record in the backup.
    pub lsn: u64,
    /// Hex: the digest of the state up to that record, as `papertape log digest` prints it.
    pub digest: String,
    /// The encoding of that digest (engine/docs/digest.md).
    #[serde(default = "first_encoding")]
    pub digest_encoding: u32,
    /// Whether the secrets of the server are among the files.
    pub with_secrets: bool,
    /// Why the price history is not among the files, if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_left_out: Option<String>,
    /// In copying order.
    pub files: Vec<FileEntry>,
}

fn first_encoding() -> u32 {
    digest::ENCODING_FIRST
}

/// One file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    /// Bytes in the backup.
    pub bytes: u64,
    /// Bytes after the restore: the last segment, which is copied as far as it is written, is filled with zeros.
    pub length: u64,
    /// Hex, over the bytes in the backup.
    pub sha256: String,
}

/// The meaning of a name in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A segment, by its first record.
    Segment(Lsn),
    Snapshot(Lsn),
    History,
    Kept,
    Secret,
}

/// Files beside the log: the venues of the directory and a doubt of the clock, which a start checks; samples of the uptime
/// and incidents, of which a start takes what is sound. One that is missing in the backup of an earlier program is created
/// by the start, as for a directory of that time.
pub const KEPT: [&str; 4] = [directory_venue::FILE, leap::DOUBT_FILE, uptime::FILE, incidents::FILE];

/// Files with secrets; copied only on request.
pub const SECRETS: [&str; 4] = ["server_secret", "server_secret.check", "jwt_secret", "jwt_secret.check"];

impl Part {
    /// The part with that name. Other names are in no backup, so a path cannot lead out of a directory.
    pub fn of(name: &str) -> Option<Part> {
        let lsn = |stem: &str| stem.parse().ok().map(Lsn);
        if let Some(file) = name.strip_prefix("history/") {
            return is_history(file).then_some(Part::History);
        }
        if let Some(lsn) = name.strip_suffix(".wal").and_then(lsn) {
            return (wal::segment_name(lsn) == name).then_some(Part::Segment(lsn));
        }
        if let Some(lsn) = name.strip_suffix(".snapshot").and_then(lsn) {
            return (wal::snapshot_name(lsn) == name).then_some(Part::Snapshot(lsn));
        }
        if KEPT.contains(&name) {
            return Some(Part::Kept);
        }
        SECRETS.contains(&name).then_some(Part::Secret)
    }
}

/// Whether a file below the history's folder belongs to its store, or is one of the format before the store.
fn is_history(file: &str) -> bool {
    history::is_store_file(file) || history::is_earlier(file)
}

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The sixteen bytes of 32 hex digits.
pub fn sixteen(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_a_backup_are_parts() {
        let rows = [
            ("00000000000000000001.wal", Some(Part::Segment(Lsn(1)))),
            ("00000000000000000900.snapshot", Some(Part::Snapshot(Lsn(900)))),
            ("history/trail", Some(Part::History)),
            ("history/minutes-400000", Some(Part::History)),
            ("history/hours-12", Some(Part::History)),
            ("history/store/0.jnl", Some(Part::History)),
            ("history/store/keyspaces/1/tables/7", Some(Part::History)),
            ("history/store/keyspaces/1/tables/../../7", None),
            ("history/store.making/version", None),
            ("history/store/0.damaged", None),
            ("server_secret", Some(Part::Secret)),
            ("jwt_secret.check", Some(Part::Secret)),
            ("venue_kinds", Some(Part::Kept)),
            ("clock_doubted", Some(Part::Kept)),
            ("uptime_minutes", Some(Part::Kept)),
            ("incidents.json", Some(Part::Kept)),
            ("uptime_minutes.damaged", None),
            ("incidents.json.lock", None),
            ("venue_kinds.part", None),
            ("clock_doubted.making", None),
            ("history/venue_kinds", None),
            ("1.wal", None),
            ("../00000000000000000001.wal", None),
            ("history/../epoch", None),
            ("history/minutes-x", None),
            ("history/minutes-1/2", None),
            ("/etc/passwd", None),
            ("epoch", None),
            ("lock", None),
            ("00000007.spare", None),
            ("manifest.json", None),
            ("", None),
        ];
        for (name, expected) in rows {
            assert_eq!(Part::of(name), expected, "{name:?}");
        }
        let bytes = *b"0123456789abcdef";
        assert_eq!(sixteen(&hex(&bytes)), Some(bytes));
        for wrong in ["", "00", "zz", &"é".repeat(16), &"0".repeat(33)] {
            assert_eq!(sixteen(wrong), None, "{wrong:?}");
        }
        println!("names of a backup: {} cases", rows.len() + 6);
    }
}
