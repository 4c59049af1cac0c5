//! Rows that are not in a block yet, as an append-only file of frames: a kill loses what was not written, and a torn
//! last frame is cut off at the next start.
//!
//! ```text
//! length u32 │ crc u32 of the rest │ sequence u64 │ rows: market u32, minute u32, row 24
//! ```
//!
//! Each row replaces earlier ones of the same market and minute. Not synced: the price history makes no promise for its
//! last seconds.

use super::block::{ROW_BYTES, Row, crc, replace};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const HEAD_BYTES: usize = 8;
const SEQUENCE_BYTES: usize = 8;
const ENTRY_BYTES: usize = 8 + ROW_BYTES;
/// Most rows of one frame.
const FRAME_ROWS_MAX: usize = 4_096;
const FRAME_BYTES_MAX: usize = SEQUENCE_BYTES + FRAME_ROWS_MAX * ENTRY_BYTES;

/// One row of the trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub market: u32,
    /// Since 1970; the row's slot is the minute of its hour.
    pub minute: u32,
    pub row: Row,
}

/// The open trail.
pub struct Trail {
    path: PathBuf,
    file: File,
    /// Bytes of complete frames.
    length: u64,
    /// Number of the last frame.
    sequence: u64,
}

impl Trail {
    /// Opens or creates the trail: passes every entry of every complete frame on with the frame's number, and cuts off
    /// what follows the last complete one.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path, mut entry: impl FnMut(u64, Entry)) -> io::Result<Trail> {
        let file = File::options().read(true).append(true).create(true).mode(0o600).open(path)?;
        let bytes = std::fs::read(path)?;
        let (mut length, mut sequence) = (0, 0);
        while let Some((number, entries, next)) = frame(&bytes, length).filter(|(number, ..)| *number > sequence) {
            entries.chunks_exact(ENTRY_BYTES).for_each(|bytes| entry(number, read(bytes)));
            (length, sequence) = (next, number);
        }
        if length < bytes.len() {
            let (cut, name) = (bytes.len() - length, path.display());
            if is_half_a_frame(&bytes[length..]) || length > 0 && bytes[length..].iter().all(|byte| *byte == 0) {
                tracing::info!(
                    bytes = cut,
                    "the price history ended in an incomplete row, as after a crash; that row is removed"
                );
            } else if length == 0 {
                tracing::warn!(bytes = cut, file = %name, "the newest file of the price history is damaged and is not read");
            } else {
                tracing::warn!(bytes = cut, kept = length, file = %name, "the newest file of the price history is \
                    damaged; the rest of it is removed");
            }
            file.set_len(length as u64)?;
        }
        Ok(Trail { path: path.to_owned(), file, length: length as u64, sequence })
    }

    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// Number of the last frame.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Makes later numbers larger than this one: blocks name numbers that the trail no longer has.
    pub fn not_before(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
    }

    /// Appends the entries.
    ///
    /// # Errors
    /// The system's. A part that was written is cut off again.
    pub fn append(&mut self, entries: &[Entry]) -> io::Result<()> {
        let (out, sequence) = self.frames(entries);
        if let Err(error) = self.file.write_all(&out) {
            // Otherwise the next append would follow a torn frame and be unreachable.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        (self.length, self.sequence) = (self.length + out.len() as u64, sequence);
        Ok(())
    }

    /// Restarts the trail with only these entries.
    ///
    /// # Errors
    /// The system's. The trail is then unchanged.
    pub fn restart(&mut self, entries: &[Entry]) -> io::Result<()> {
        let (out, sequence) = self.frames(entries);
        replace(&self.path, &out)?;
        self.file = File::options().append(true).open(&self.path)?;
        (self.length, self.sequence) = (out.len() as u64, sequence);
        Ok(())
    }

    fn frames(&self, entries: &[Entry]) -> (Vec<u8>, u64) {
        let mut out = Vec::with_capacity(entries.len() * ENTRY_BYTES + 64);
        let mut sequence = self.sequence;
        for entries in entries.chunks(FRAME_ROWS_MAX) {
            sequence += 1;
            let at = out.len();
            out.extend_from_slice(&[0; HEAD_BYTES]);
            out.extend_from_slice(&sequence.to_le_bytes());
            for entry in entries {
                out.extend_from_slice(&entry.market.to_le_bytes());
                out.extend_from_slice(&entry.minute.to_le_bytes());
                entry.row.write(&mut out);
            }
            let body = &out[at + HEAD_BYTES..];
            let (length, crc) = (body.len() as u32, crc(&[body]));
            out[at..at + 4].copy_from_slice(&length.to_le_bytes());
            out[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
        }
        (out, sequence)
    }
}

/// The frame at `at`: its number, its entries, and the offset of the next one.
fn frame(bytes: &[u8], at: usize) -> Option<(u64, &[u8], usize)> {
    let head = bytes.get(at..at + HEAD_BYTES)?;
    let length = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
    let sound =
        length > SEQUENCE_BYTES && length <= FRAME_BYTES_MAX && (length - SEQUENCE_BYTES).is_multiple_of(ENTRY_BYTES);
    let body = bytes.get(at + HEAD_BYTES..at + HEAD_BYTES + length).filter(|_| sound)?;
    if crc(&[body]).to_le_bytes() != head[4..] {
        return None;
    }
    let (sequence, entries) = body.split_at(SEQUENCE_BYTES);
    Some((u64::from_le_bytes(sequence.try_into().ok()?), entries, at + HEAD_BYTES + length))
}

/// Whether a frame begins there that is longer than the rest of the file, as a kill leaves it.
fn is_half_a_frame(rest: &[u8]) -> bool {
    let length = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
    length.is_none_or(|length| length <= FRAME_BYTES_MAX && rest.len() < HEAD_BYTES + length)
}

fn read(bytes: &[u8]) -> Entry {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Entry { market: word(0), minute: word(4), row: Row::read(&bytes[8..]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::book::candles::{Candle, Mid};

    fn entry(market: u32, minute: u32) -> Entry {
        Entry { market, minute, row: Row { slot: (minute % 60) as u16, candle: Candle::at(Mid(market as u16)) } }
    }

    fn open(path: &Path) -> (Trail, Vec<(u64, Entry)>) {
        let mut found = Vec::new();
        let trail = Trail::open(path, |number, entry| found.push((number, entry))).unwrap();
        (trail, found)
    }

    #[test]
    fn whole_frames_come_back_and_torn_ones_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut trail, found) = open(&path);
        assert!(found.is_empty());
        trail.append(&[entry(1, 100), entry(2, 100)]).unwrap();
        let first = trail.bytes() as usize;
        trail.append(&[entry(3, 101)]).unwrap();
        trail.append(&[]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let all = vec![(1, entry(1, 100)), (1, entry(2, 100)), (2, entry(3, 101))];
        assert_eq!(open(&path).1, all);
        let mut cases = 0;
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut trail, found) = open(&path);
            let kept = if length == whole.len() { 3 } else { 2 * usize::from(length >= first) };
            assert_eq!(found, all[..kept], "{length} bytes");
            let rest = &whole[if length < first { 0 } else { first }..length];
            assert!(length == whole.len() || is_half_a_frame(rest), "{length} bytes");
            // Entries appended after a cut are found again.
            trail.append(&[entry(9, 9)]).unwrap();
            assert_eq!(open(&path).1.last().map(|(_, entry)| *entry), Some(entry(9, 9)));
            cases += 1;
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&path, &bytes).unwrap();
            let kept = if at < first { 0 } else { 2 };
            assert_eq!(open(&path).1, all[..kept], "byte {at}");
            let begin = if at < first { 0 } else { first };
            // A wrong length may look like a longer frame.
            assert!(at < begin + 4 || !is_half_a_frame(&bytes[begin..]), "byte {at} is damage");
            cases += 1;
        }
        println!("torn trails: {cases} cases");
    }

    #[test]
    fn a_restart_keeps_its_entries_and_continues_the_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut trail, _) = open(&path);
        let many: Vec<Entry> = (0..10_000).map(|number| entry(number, 100)).collect();
        trail.append(&many).unwrap();
        assert_eq!(trail.sequence(), 3);
        trail.restart(&many[..5]).unwrap();
        trail.append(&many[5..6]).unwrap();
        let (mut trail, found) = open(&path);
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [4, 4, 4, 4, 4, 5]);
        trail.restart(&[]).unwrap();
        assert_eq!((trail.sequence(), trail.bytes()), (5, 0));
        trail.not_before(8);
        trail.append(&many[..1]).unwrap();
        assert_eq!(open(&path).1, [(9, many[0])]);
    }
}
