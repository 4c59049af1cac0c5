//! Sorted runs in files: blocks of ZSTD with checksum. Spilled runs have no names.

use crate::error::{Error, Named};
use crate::varint::{Reader, put, put_signed};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Records of a block, in bytes: of a spilled run, and of one that is kept.
const BLOCK_BYTES: usize = 128 << 10;
const KEPT_BLOCK_BYTES: usize = 1 << 20;
/// Most bytes of a block: one record may be long.
const BLOCK_BYTES_MAX: usize = 16 << 20;
/// Lengths before a block, raw and packed.
const HEAD_BYTES: usize = 8;
const ZSTD_LEVEL: i32 = 1;
const KEPT_ZSTD_LEVEL: i32 = 6;
pub(super) const DAMAGED: &str = "a run of rows is damaged";

pub(super) struct Run {
    file: File,
    /// Where it is in the file.
    begin: u64,
    bytes: u64,
    /// For errors.
    folder: PathBuf,
}

pub(super) struct Writer {
    run: Run,
    zstd: zstd::bulk::Compressor<'static>,
    block_bytes: usize,
    block: Vec<u8>,
    last: u64,
}

/// Runs that are read together.
pub(super) struct Runs {
    readers: Vec<RunReader>,
}

struct RunReader {
    run: Run,
    zstd: zstd::bulk::Decompressor<'static>,
    offset: u64,
    block: Vec<u8>,
    at: usize,
    /// Receipt, name and length of the record at the position.
    next: Option<(u64, u32, usize)>,
    last: u64,
    current: (u64, u32),
    record: Vec<u8>,
}

impl Run {
    /// The run in a part of a file.
    pub(super) fn within(file: File, begin: u64, bytes: u64, folder: &Path) -> Run {
        Run { file, begin, bytes, folder: folder.to_owned() }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Writer {
    pub(super) fn create(folder: &Path) -> Result<Writer, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(folder).of(folder)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("run-{}-{number}{}", std::process::id(), crate::files::MAKING));
        let file = File::options().read(true).write(true).create_new(true).open(&path).of(&path)?;
        fs::remove_file(&path).of(&path)?;
        Writer::of(Run::within(file, 0, 0, folder), ZSTD_LEVEL, BLOCK_BYTES)
    }

    /// Appends a run that is kept to a file, at this offset.
    pub(super) fn append(file: File, begin: u64, folder: &Path) -> Result<Writer, Error> {
        Writer::of(Run::within(file, begin, 0, folder), KEPT_ZSTD_LEVEL, KEPT_BLOCK_BYTES)
    }

    fn of(run: Run, level: i32, block_bytes: usize) -> Result<Writer, Error> {
        let mut zstd = zstd::bulk::Compressor::new(level).of(&run.folder)?;
        zstd.include_checksum(true).of(&run.folder)?;
        Ok(Writer { run, zstd, block_bytes, block: Vec::new(), last: 0 })
    }

    pub(super) fn push(&mut self, received: u64, name: u32, record: &[u8]) -> Result<(), Error> {
        put_signed(&mut self.block, received.wrapping_sub(self.last) as i64);
        put(&mut self.block, name.into());
        put(&mut self.block, record.len() as u64);
        self.block.extend_from_slice(record);
        self.last = received;
        if self.block.len() >= self.block_bytes { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let packed = self.zstd.compress(&self.block).of(&self.run.folder)?;
        let lengths = [self.block.len() as u32, packed.len() as u32].map(u32::to_le_bytes);
        (|| {
            self.run.file.write_all(lengths.as_flattened())?;
            self.run.file.write_all(&packed)
        })()
        .of(&self.run.folder)?;
        self.run.bytes += (HEAD_BYTES + packed.len()) as u64;
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run, Error> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        Ok(self.run)
    }
}

impl Runs {
    pub(super) fn open(runs: Vec<Run>) -> Result<Runs, Error> {
        let readers = runs.into_iter().map(RunReader::open).collect::<Result<_, _>>()?;
        Ok(Runs { readers })
    }

    pub(super) fn len(&self) -> usize {
        self.readers.len()
    }

    /// Receipt and name of the next record of a run.
    pub(super) fn peek(&self, run: usize) -> Option<(u64, u32)> {
        self.readers[run].next.map(|(received, name, _)| (received, name))
    }

    /// Makes the next record of a run the current one.
    pub(super) fn advance(&mut self, run: usize) -> Result<(), Error> {
        self.readers[run].advance()
    }

    /// Receipt, name and bytes of the current record of a run.
    pub(super) fn current(&self, run: usize) -> (u64, u32, &[u8]) {
        let RunReader { current: (received, name), record, .. } = &self.readers[run];
        (*received, *name, record)
    }
}

impl RunReader {
    fn open(run: Run) -> Result<RunReader, Error> {
        let zstd = zstd::bulk::Decompressor::new().of(&run.folder)?;
        let (block, record) = (Vec::new(), Vec::new());
        let offset = run.begin;
        let mut reader = RunReader { run, zstd, offset, block, at: 0, next: None, last: 0, current: (0, 0), record };
        reader.read_next()?;
        Ok(reader)
    }

    fn advance(&mut self) -> Result<(), Error> {
        let Some((received, name, len)) = self.next else { return Ok(()) };
        self.current = (received, name);
        self.record.clear();
        self.record.extend_from_slice(&self.block[self.at..self.at + len]);
        self.at += len;
        self.read_next()
    }

    fn read_next(&mut self) -> Result<(), Error> {
        if self.at == self.block.len() {
            if self.offset == self.run.begin + self.run.bytes {
                self.next = None;
                return Ok(());
            }
            self.read_block().of(&self.run.folder)?;
        }
        let before = self.block.len() - self.at;
        let mut reader = Reader::new(&self.block[self.at..]);
        let head = reader.signed().zip(reader.number()).zip(reader.number());
        let Some(((step, name), len)) = head.filter(|(_, len)| *len <= reader.left() as u64) else {
            return Err(io::Error::other(DAMAGED)).of(&self.run.folder);
        };
        self.last = self.last.wrapping_add(step as u64);
        let (name, len, left) = (name as u32, len as usize, reader.left());
        self.at += before - left;
        self.next = Some((self.last, name, len));
        Ok(())
    }

    fn read_block(&mut self) -> io::Result<()> {
        let mut head = [[0; 4]; 2];
        self.run.file.read_exact_at(head.as_flattened_mut(), self.offset)?;
        let [raw, packed] = head.map(|len| u32::from_le_bytes(len) as usize);
        if raw.max(packed) > BLOCK_BYTES_MAX {
            return Err(io::Error::other(DAMAGED));
        }
        let mut bytes = vec![0; packed];
        self.run.file.read_exact_at(&mut bytes, self.offset + HEAD_BYTES as u64)?;
        self.offset += (HEAD_BYTES + packed) as u64;
        self.block.resize(raw, 0);
        let written = self.zstd.decompress_to_buffer(&bytes, self.block.as_mut_slice())?;
        if written != raw {
            return Err(io::Error::other(DAMAGED));
        }
        self.at = 0;
        Ok(())
    }
}
