//! Rows of the price history as bytes, and blocks: immutable files of rows.
//!
//! A block covers a stretch of time divided into slots: an hour into minutes, or a day into hours. Its rows are sorted
//! by market, then slot. An index by market holds where the rows of each begin, so that a read takes two small reads of
//! the file. A block is written under another name and renamed when it is complete.
//!
//! ```text
//! magic 8 │ slot seconds u32 │ first slot u32 │ through u64 │ markets u32 │ rows u32 │ crc u32 of these 32 bytes
//! markets × (first row u32, crc u32 of market, first row, end, rows) │ rows u32 │ rows × 24
//! ```
//!
//! A market with a wrong checksum is left out; the others are read.

use engine::amount::Qty;
use engine::book::candles::{Candle, Mid};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

const MAGIC: [u8; 8] = *b"PTHIST02";
const HEADER_BYTES: usize = 32;
const CRC_BYTES: usize = 4;
const INDEX_AT: u64 = (HEADER_BYTES + CRC_BYTES) as u64;
/// Bytes of a market in the index.
const ENTRY_BYTES: usize = 8;
/// Bytes of a row: slot, four prices, two volumes of seven bytes.
pub const ROW_BYTES: usize = 24;
/// Bound of the number of markets in the header of a block.
const MARKETS_MAX: u32 = 1 << 24;
/// The largest value of seven bytes.
const VOLUME_MAX: u64 = (1 << 56) - 1;

/// The candle of a market in one slot of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number within the block.
    pub slot: u16,
    pub candle: Candle,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub slot_secs: u32,
    /// Number of the block's first slot since 1970.
    pub first: u32,
    /// Trail frames up to this one are in it, as far as they belong to its time.
    pub through: u64,
    pub markets: u32,
    pub rows: u32,
}

/// An open block.
pub struct Block {
    file: File,
    pub head: Head,
}

impl Row {
    pub fn write(&self, out: &mut Vec<u8>) {
        let Candle { open, high, low, close, volume } = self.candle;
        for number in [self.slot, open.0, high.0, low.0, close.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for volume in volume {
            out.extend_from_slice(&volume.0.min(VOLUME_MAX).to_le_bytes()[..7]);
        }
    }

    /// Reads [`ROW_BYTES`]. Prices above 1 are cut, so that damaged bytes still give a price.
    pub fn read(bytes: &[u8]) -> Row {
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let mid = |at: usize| Mid(number(at)).min(Mid::ONE);
        let volume = |at: usize| {
            let mut wide = [0; 8];
            wide[..7].copy_from_slice(&bytes[at..at + 7]);
            Qty(u64::from_le_bytes(wide))
        };
        let candle =
            Candle { open: mid(2), high: mid(4), low: mid(6), close: mid(8), volume: [volume(10), volume(17)] };
        Row { slot: number(0), candle }
    }
}

impl Head {
    fn write(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.slot_secs.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.through.to_le_bytes());
        out.extend_from_slice(&self.markets.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        let crc = crc(&[&out[at..]]);
        out.extend_from_slice(&crc.to_le_bytes());
    }

    fn read(bytes: &[u8; HEADER_BYTES + CRC_BYTES]) -> Option<Head> {
        let through = u64::from(word(bytes, 16)) | u64::from(word(bytes, 20)) << 32;
        let (markets, rows) = (word(bytes, 24), word(bytes, 28));
        let (head, sum) = bytes.split_at(HEADER_BYTES);
        let sound = head[..8] == MAGIC && crc(&[head]) == word(sum, 0);
        let head = Head { slot_secs: word(bytes, 8), first: word(bytes, 12), through, markets, rows };
        (sound && head.markets <= MARKETS_MAX && head.slot_secs > 0).then_some(head)
    }

    fn rows_at(&self) -> u64 {
        INDEX_AT + u64::from(self.markets) * ENTRY_BYTES as u64 + 4
    }

    fn bytes(&self) -> u64 {
        self.rows_at() + u64::from(self.rows) * ROW_BYTES as u64
    }
}

/// CRC-32 of these parts, one after the other.
pub fn crc(parts: &[&[u8]]) -> u32 {
    let mut crc = flate2::Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Checksum of a market's rows, which have the numbers from..to in the block.
fn crc_of(market: u32, from: u32, to: u32, rows: &[u8]) -> u32 {
    crc(&[&market.to_le_bytes(), &from.to_le_bytes(), &to.to_le_bytes(), rows])
}

/// Rows by market, those of each sorted by slot.
pub type Rows = BTreeMap<u32, Vec<Row>>;

/// Writes a block to `path`.
///
/// # Errors
/// The system's. The file at `path` is then unchanged.
pub fn write(path: &Path, slot_secs: u32, first: u32, through: u64, rows: &Rows) -> io::Result<()> {
    let markets = rows.last_key_value().map_or(0, |(market, _)| market.saturating_add(1));
    let count = u32::try_from(rows.values().map(Vec::len).sum::<usize>());
    let count = count.ok().filter(|_| markets <= MARKETS_MAX);
    let rows_count = count.ok_or_else(|| io::Error::other("too many rows for one block"))?;
    let head = Head { slot_secs, first, through, markets, rows: rows_count };
    let mut out = Vec::with_capacity(head.bytes() as usize);
    head.write(&mut out);
    let mut bytes = Vec::with_capacity(rows_count as usize * ROW_BYTES);
    for market in 0..markets {
        let from = bytes.len();
        rows.get(&market).into_iter().flatten().for_each(|row| row.write(&mut bytes));
        let [before, after] = [from, bytes.len()].map(|at| (at / ROW_BYTES) as u32);
        out.extend_from_slice(&before.to_le_bytes());
        out.extend_from_slice(&crc_of(market, before, after, &bytes[from..]).to_le_bytes());
    }
    out.extend_from_slice(&rows_count.to_le_bytes());
    out.extend_from_slice(&bytes);
    replace(path, &out)
}

/// Replaces the file at `path` by a new one, readable only by its owner.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_data()).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // Leftovers are also removed at the next start.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

impl Block {
    /// Opens a block and checks its header.
    ///
    /// # Errors
    /// The system's; `InvalidData` for a file that is not a complete block.
    pub fn open(path: &Path) -> io::Result<Block> {
        let file = File::open(path)?;
        let mut header = [0; HEADER_BYTES + CRC_BYTES];
        file.read_exact_at(&mut header, 0).map_err(cut_short)?;
        let head = Head::read(&header).filter(|head| file.metadata().is_ok_and(|found| found.len() == head.bytes()));
        Ok(Block { file, head: head.ok_or_else(not_a_block)? })
    }

    /// The rows of one market.
    ///
    /// # Errors
    /// The system's; `InvalidData` if the index is impossible or a checksum is wrong.
    pub fn rows(&self, market: u32) -> io::Result<Vec<Row>> {
        if market >= self.head.markets {
            return Ok(Vec::new());
        }
        // Its entry, and the first row of the next market.
        let mut index = [0; ENTRY_BYTES + 4];
        self.file.read_exact_at(&mut index, INDEX_AT + u64::from(market) * ENTRY_BYTES as u64).map_err(cut_short)?;
        let (from, to) = (word(&index, 0), word(&index, ENTRY_BYTES));
        if from > to || to > self.head.rows {
            return Err(not_a_block());
        }
        let mut bytes = vec![0; (to - from) as usize * ROW_BYTES];
        self.file
            .read_exact_at(&mut bytes, self.head.rows_at() + u64::from(from) * ROW_BYTES as u64)
            .map_err(cut_short)?;
        if crc_of(market, from, to, &bytes) != word(&index, 4) {
            return Err(not_a_block());
        }
        let rows: Vec<Row> = bytes.chunks_exact(ROW_BYTES).map(Row::read).collect();
        let sorted = rows.windows(2).all(|pair| pair[0].slot < pair[1].slot);
        if sorted { Ok(rows) } else { Err(not_a_block()) }
    }

    /// All rows, by market, and the number of markets that are left out because they are damaged.
    ///
    /// # Errors
    /// The system's.
    pub fn all(&self) -> io::Result<(Rows, u32)> {
        let (mut all, mut damaged) = (Rows::new(), 0);
        for market in 0..self.head.markets {
            match self.rows(market) {
                Ok(rows) if rows.is_empty() => {}
                Ok(rows) => _ = all.insert(market, rows),
                Err(error) if is_damage(&error) => damaged += 1,
                Err(error) => return Err(error),
            }
        }
        Ok((all, damaged))
    }
}

/// Whether the error is about the contents of the file and not about reading it.
pub fn is_damage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

fn cut_short(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof { not_a_block() } else { error }
}

fn not_a_block() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a complete block of the price history")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(slot: u16, price: u16) -> Row {
        let candle = Candle { volume: [Qty(u64::from(price)), Qty(VOLUME_MAX)], ..Candle::at(Mid(price)) };
        Row { slot, candle: Candle { high: Mid(20_000), low: Mid(0), ..candle } }
    }

    #[test]
    fn a_block_returns_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b");
        let rows = BTreeMap::from([(1, vec![row(0, 1), row(59, 2)]), (3, vec![row(7, 20_000)])]);
        write(&path, 60, 60 * 497_000, 9, &rows).unwrap();
        let block = Block::open(&path).unwrap();
        assert_eq!((block.head.through, block.head.first, block.head.rows), (9, 60 * 497_000, 3));
        for market in [0, 1, 2, 3, 4, u32::MAX] {
            assert_eq!(block.rows(market).unwrap(), rows.get(&market).cloned().unwrap_or_default());
        }
        assert_eq!(block.all().unwrap(), (rows, 0));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no other file is left");
    }

    #[test]
    fn no_flipped_byte_is_read_as_a_price() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b");
        let rows = BTreeMap::from([(0, vec![row(1, 1)]), (2, vec![row(2, 2), row(3, 3)])]);
        write(&path, 60, 60, 1, &rows).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let (mut cases, mut rest) = (0, 0);
        for at in 0..whole.len() {
            for flip in [0x01, 0x02, 0x03, 0x10, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                std::fs::write(&path, &bytes).unwrap();
                cases += 1;
                let Ok(block) = Block::open(&path) else { continue };
                for market in [0, 1, 2, 3, u32::MAX] {
                    if let Ok(read) = block.rows(market) {
                        assert_eq!(read, rows.get(&market).cloned().unwrap_or_default(), "byte {at} ^ {flip}");
                    }
                }
                let (all, damaged) = block.all().unwrap();
                assert!(damaged > 0 && all.iter().all(|(market, read)| rows[market] == *read), "byte {at} ^ {flip}");
                rest += u32::from(!all.is_empty());
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(Block::open(&path).is_err_and(|error| is_damage(&error)), "{at} bytes are not a block");
            cases += 1;
        }
        assert!(rest > 0, "undamaged markets are read");
        println!("damaged blocks: {cases} cases, of {rest} the rest was read");
    }
}
