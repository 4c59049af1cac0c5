//! An hour in order of time in a file, so that it is sorted once.
//!
//! Numbers are little-endian: header of 60 bytes (`PTAPETIM`; version u32; SHA-256 of the Parquet file; rows u64; names
//! u32; their bytes u32) · names (market 32 bytes, tick of the market u16, length u8 and text of the token) · rows as in a
//! spilled run · SHA-256 of all that comes before. The file is whole or not there, and is checked as a whole when it is
//! opened.

use super::run::{DAMAGED, Run, Runs, Writer};
use super::{Names, Order, Sorted, Source};
use crate::error::{Error, Named, Refusal};
use crate::files::Making;
use crate::parquet_file::footer::ROWS_MAX;
use crate::parquet_file::source::plain_file;
use crate::row::{Condition, is_tick, is_token};
use engine::amount::TickSize;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"PTAPETIM";
const VERSION: u32 = 1;
const HEADER_LEN: usize = 60;
const DIGEST_LEN: usize = 32;
/// Bytes of a name without its text.
const NAME_LEN: usize = 35;
/// How the names of such files begin and end; in between is the digest of the Parquet file.
const NAME_BEGINS: &str = "time-";
const NAME_ENDS: &str = ".rows";
/// Tokens of an hour.
const NAMES_MAX: usize = 1_000_000;

/// An hour in order of time.
pub struct Kept {
    pub rows: Sorted,
    /// All its tokens, each with its market and the tick of that.
    pub tokens: Vec<(Condition, Arc<str>, TickSize)>,
}

/// A file that is not what it should be.
pub(super) fn damaged() -> Error {
    Error::Refused(PathBuf::new(), Refusal::new(DAMAGED))
}

fn path(folder: &Path, parquet: &[u8; 32]) -> PathBuf {
    folder.join(format!("{NAME_BEGINS}{}{NAME_ENDS}", crate::hex(parquet)))
}

/// Keeps the rows of the Parquet file with this digest, which are in order of time. `tick` gives the tick of a market.
///
/// # Errors
/// The rows cannot be read, or the file cannot be written.
pub fn keep(
    folder: &Path,
    parquet: [u8; 32],
    mut rows: Sorted,
    tick: impl Fn(&Condition) -> TickSize,
) -> Result<(), Error> {
    fs::create_dir_all(folder).of(folder)?;
    let path = path(folder, &parquet);
    let making = Making::create_apart(&path)?;
    let mut names = Vec::new();
    for (market, token) in &rows.names.all {
        names.extend_from_slice(&market.0);
        names.extend_from_slice(&tick(market).0.to_le_bytes());
        names.push(token.len() as u8);
        names.extend_from_slice(token.as_bytes());
    }
    let begin = (HEADER_LEN + names.len()) as u64;
    let mut file = making.file().try_clone().of(&path)?;
    file.seek(SeekFrom::Start(begin)).of(&path)?;
    let mut writer = Writer::append(file, begin, folder)?;
    let mut count = 0_u64;
    while let Some((received, name, record)) = rows.source.next(rows.order, &rows.ranks)? {
        writer.push(received, name, record)?;
        count += 1;
    }
    let end = begin + writer.finish()?.bytes();
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..44].copy_from_slice(&parquet);
    header[44..52].copy_from_slice(&count.to_le_bytes());
    header[52..56].copy_from_slice(&(rows.names.all.len() as u32).to_le_bytes());
    header[56..60].copy_from_slice(&(names.len() as u32).to_le_bytes());
    let written = (|| {
        let mut file = making.file();
        file.write_all_at(&header, 0)?;
        file.write_all_at(&names, HEADER_LEN as u64)?;
        let digest = digest_of(file, end)?;
        file.seek(SeekFrom::Start(end))?;
        file.write_all(&digest)
    })();
    written.of(&path)?;
    making.finish()
}

impl Kept {
    /// Opens the rows of the Parquet file with this digest; `None`: they are not kept.
    ///
    /// # Errors
    /// Refused: the file is damaged.
    pub fn open(folder: &Path, parquet: [u8; 32]) -> Result<Option<Kept>, Error> {
        let path = path(folder, &parquet);
        let file = match plain_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.of(&path)?,
        };
        let bytes = file.metadata().of(&path)?.len();
        let refused = |what: &str| Error::Refused(path.clone(), Refusal::new(what));
        let end = bytes.checked_sub(DIGEST_LEN as u64).filter(|end| *end >= HEADER_LEN as u64);
        let end = end.ok_or_else(|| refused("the rows in order of time are truncated"))?;
        let mut header = [0; HEADER_LEN];
        file.read_exact_at(&mut header, 0).of(&path)?;
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if header[..8] != MAGIC[..] || number(8) != VERSION || header[12..44] != parquet[..] {
            return Err(refused("the rows in order of time are of another file"));
        }
        let rows = u64::from(number(44)) | u64::from(number(48)) << 32;
        let (names_count, names_len) = (number(52) as usize, number(56) as usize);
        let begin = (HEADER_LEN + names_len) as u64;
        if rows > ROWS_MAX || names_count > NAMES_MAX || names_count * NAME_LEN > names_len || begin > end {
            return Err(refused("the counts of the rows in order of time are beyond their bounds"));
        }
        let mut digest = [0; DIGEST_LEN];
        file.read_exact_at(&mut digest, end).of(&path)?;
        if digest_of(&file, end).of(&path)? != digest {
            return Err(refused("the rows in order of time have another digest"));
        }
        let mut names = vec![0; names_len];
        file.read_exact_at(&mut names, HEADER_LEN as u64).of(&path)?;
        let tokens =
            tokens(&names, names_count).ok_or_else(|| refused("the rows in order of time name a wrong token"))?;
        let all = tokens.iter().map(|(market, token, _)| (*market, token.clone())).collect();
        let run = Runs::open(vec![Run::within(file, begin, end - begin, folder)])?;
        let names = Names { all, ..Names::default() };
        let source = Source::Kept { run, left: rows };
        Ok(Some(Kept { rows: Sorted { order: Order::Time, names, ranks: Vec::new(), source }, tokens }))
    }

    /// Removes the oldest such files of a folder while all have more bytes than `bytes_max`.
    ///
    /// # Errors
    /// The system's.
    pub fn trim(folder: &Path, bytes_max: u64) -> Result<(), Error> {
        let is_ours = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(NAME_BEGINS) && name.ends_with(NAME_ENDS)
        };
        crate::files::trim(folder, bytes_max, is_ours).map(drop)
    }

    /// Removes the file, if it is there.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(folder: &Path, parquet: [u8; 32]) -> Result<(), Error> {
        crate::files::remove(&path(folder, &parquet))
    }
}

fn tokens(mut names: &[u8], count: usize) -> Option<Vec<(Condition, Arc<str>, TickSize)>> {
    let mut tokens = Vec::with_capacity(count);
    while !names.is_empty() {
        let (head, rest) = names.split_at_checked(NAME_LEN)?;
        let (text, rest) = rest.split_at_checked(usize::from(head[NAME_LEN - 1]))?;
        let market = Condition(head[..32].try_into().ok()?);
        let tick = TickSize(u16::from_le_bytes([head[32], head[33]]));
        if !is_token(text) || !is_tick(tick) {
            return None;
        }
        tokens.push((market, Arc::from(std::str::from_utf8(text).ok()?), tick));
        names = rest;
    }
    (tokens.len() == count).then_some(tokens)
}

/// SHA-256 of the first bytes of a file.
fn digest_of(mut file: &File, len: u64) -> io::Result<[u8; 32]> {
    const PIECE_BYTES: usize = 256 << 10;
    file.seek(SeekFrom::Start(0))?;
    let (mut digest, mut piece, mut input) = (Sha256::new(), vec![0; PIECE_BYTES], file.take(len));
    loop {
        match input.read(&mut piece) {
            Ok(0) => return Ok(digest.finalize().into()),
            Ok(read) => digest.update(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;
    use crate::sort::Sorter;
    use crate::testing::{Chance, row};

    const PARQUET: [u8; 32] = [7; 32];
    const TICK: TickSize = TickSize(10);

    fn rows_of(count: usize) -> Vec<Row> {
        let mut chance = Chance::seeded(70);
        (0..count).map(|_| row(&mut chance, 4, 3_600_000)).collect()
    }

    fn sorted(rows: &[Row], folder: &Path) -> Sorted {
        let mut sorter = Sorter::new(Order::Time, folder, 64 << 20);
        rows.iter().for_each(|row| sorter.push(row).expect("pushed"));
        sorter.finish().expect("sorted")
    }

    fn kept(folder: &Path) -> Result<Option<Vec<Row>>, Error> {
        Kept::open(folder, PARQUET)?.map(|kept| kept.rows.collect()).transpose()
    }

    #[test]
    fn kept_rows_are_the_sorted_ones() {
        let mut cases = 0;
        for count in [0, 1, 500, 60_000] {
            let folder = tempfile::tempdir().expect("a folder");
            let at = folder.path().join("cache");
            let rows = rows_of(count);
            assert!(kept(&at).expect("nothing").is_none());
            keep(&at, PARQUET, sorted(&rows, &at), |_| TICK).expect("kept");
            let expected: Vec<Row> = sorted(&rows, &at).map(|row| row.expect("a row")).collect();
            assert!(kept(&at).expect("read").expect("there") == expected, "{count}");
            let tokens = Kept::open(&at, PARQUET).expect("read").expect("there").tokens;
            assert!(rows.iter().all(|row| tokens.contains(&(row.market, row.token.clone(), TICK))));
            assert_eq!(fs::read_dir(&at).expect("a folder").count(), 1, "only the file");
            assert!(Kept::open(&at, [8; 32]).expect("nothing").is_none());
            Kept::remove(&at, PARQUET).expect("removed");
            assert!(kept(&at).expect("nothing").is_none());
            cases += count.max(1);
        }
        println!("kept rows: {cases} cases");
    }

    /// A damaged file is refused, also one with a digest that fits its damage.
    #[test]
    fn damaged_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let rows = rows_of(300);
        keep(at, PARQUET, sorted(&rows, at), |_| TICK).expect("kept");
        let path = path(at, &PARQUET);
        let good = fs::read(&path).expect("a file");
        let mut cases = 0;
        let mut check = |bytes: &[u8], what: &str| {
            fs::write(&path, bytes).expect("written");
            match kept(at) {
                Err(Error::Refused(..) | Error::Io(..)) => {}
                Ok(found) => panic!("{what}: {:?} rows", found.map(|rows| rows.len())),
            }
            cases += 1;
        };
        for len in (0..good.len()).step_by(good.len() / 200 + 1) {
            check(&good[..len], &format!("{len} bytes"));
        }
        for place in (0..good.len()).step_by(good.len() / 300 + 1) {
            let mut bytes = good.clone();
            bytes[place] ^= 0x41;
            check(&bytes, &format!("byte {place}"));
        }
        check(&[&good[..], b"x"].concat(), "a byte more");
        // With their own digest: counts, names, and rows that are not such.
        let body = &good[..good.len() - DIGEST_LEN];
        let mut check_own = |change: &dyn Fn(&mut Vec<u8>), what: &str| {
            let mut bytes = body.to_vec();
            change(&mut bytes);
            let digest = Sha256::digest(&bytes);
            bytes.extend_from_slice(&digest);
            check(&bytes, what);
        };
        let names_end = HEADER_LEN + u32::from_le_bytes(good[56..60].try_into().expect("four")) as usize;
        check_own(&|bytes| bytes[44..52].copy_from_slice(&u64::MAX.to_le_bytes()), "rows");
        check_own(&|bytes| bytes[44..52].copy_from_slice(&301_u64.to_le_bytes()), "one row more");
        check_own(&|bytes| bytes[44..52].copy_from_slice(&299_u64.to_le_bytes()), "one row less");
        check_own(&|bytes| bytes[52..56].copy_from_slice(&u32::MAX.to_le_bytes()), "names");
        check_own(&|bytes| bytes[52..56].copy_from_slice(&0_u32.to_le_bytes()), "no names");
        check_own(&|bytes| bytes[56..60].copy_from_slice(&u32::MAX.to_le_bytes()), "bytes of names");
        check_own(&|bytes| bytes[HEADER_LEN + 32..HEADER_LEN + 34].fill(0), "a tick of 0");
        check_own(&|bytes| bytes[HEADER_LEN + 35] = b'x', "a token of letters");
        check_own(&|bytes| bytes[HEADER_LEN + 34] = 255, "a long token");
        check_own(&|bytes| bytes[names_end..names_end + 4].fill(0xff), "a long block");
        check_own(&|bytes| bytes[names_end + 4..names_end + 8].fill(0xff), "a long packed block");
        check_own(&|bytes| bytes.truncate(names_end + 20), "half a block");
        // Rows of unknown tokens, of another age, with prices that are none.
        let mut hostile = |name: u32, received: u64, record: &[u8], what: &str| {
            let mut bytes = body[..names_end].to_vec();
            bytes[44..52].copy_from_slice(&1_u64.to_le_bytes());
            let scratch = folder.path().join("scratch");
            let file =
                File::options().read(true).write(true).create(true).truncate(true).open(&scratch).expect("a file");
            let mut writer = Writer::append(file, 0, at).expect("a writer");
            writer.push(received, name, record).expect("pushed");
            writer.finish().expect("finished");
            bytes.extend(fs::read(&scratch).expect("a file"));
            let digest = Sha256::digest(&bytes);
            bytes.extend_from_slice(&digest);
            check(&bytes, what);
        };
        hostile(u32::MAX, 1_000, &[1, 0, 10, 1], "a token that is not there");
        hostile(0, u64::MAX, &[1, 0, 10, 1], "a receipt in another age");
        hostile(0, 1_000, &[1, 0, 0, 1], "a price of 0");
        println!("damaged files: {cases} cases");
    }
}
