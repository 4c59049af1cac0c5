//! One opaque blob that replaces all records up to an LSN: written in one stream, verified before it counts.
//!
//! ```text
//!   | header: magic, version, crc, directory id, LSN, crc of that record |
//!   | length, crc, bytes | length, crc, bytes | … | 0, crc |              blocks
//!   | footer: magic, crc, LSN, crc of that record, bytes, blocks, crc of all bytes, digest |
//! ```
//!
//! Written under a temporary name, synced, read back from the device and verified, renamed, the directory synced. So a
//! file with the name of a snapshot was whole once. Every block is checked before a byte of it is returned.
//!
//! The digest belongs to the caller (32 bytes over the state, for instance SHA-256); it is only stored.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use crate::epoch::create_anew;
use crate::error::{Error, Fault};
use crate::files::Files;
use crate::names::{Name, parse_name, snapshot_name};
use crate::storage::{Storage, StoredFile};
use crate::{Lsn, Point, Points};

/// Version of the file format.
pub const SNAPSHOT_VERSION: u32 = 1;

/// Number of snapshots that are kept.
pub const KEPT_COUNT: usize = 2;

const HEADER_MAGIC: [u8; 8] = *b"WALSNAP\n";
const FOOTER_MAGIC: [u8; 8] = *b"WALSNAPE";
const HEADER_BYTES: usize = 48;
const FOOTER_BYTES: usize = 80;
const BLOCK_HEAD_BYTES: usize = 8;
/// Bytes of the blob in one block.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes that are sent to the device together while a snapshot is written, after the bytes before them have arrived.
/// One sync of hundreds of megabytes at the end would block the file system's journal, and with it every append that
/// touches a page of the log for the first time.
const WRITE_BACK_BYTES: u64 = 4 << 20;
const MAKING: &str = "snapshot.making";

/// A snapshot that was read from end to end and is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The last record it covers.
    pub lsn: Lsn,
    /// That record's checksum, which ties it to one log.
    pub record_crc: u32,
    /// The caller's digest of the state.
    pub digest: [u8; 32],
    /// Length of the blob in bytes.
    pub bytes: u64,
}

/// The snapshots of a directory. For the thread that makes checkpoints, and for the start.
pub struct Snapshots<S: Storage = Files> {
    storage: S,
    directory_id: [u8; 16],
    points: Points,
    /// Files that were verified since this was created, so that keeping the last two does not read them again.
    verified: BTreeMap<Lsn, Snapshot>,
}

impl<S: Storage> Snapshots<S> {
    pub(crate) fn new(storage: S, directory_id: [u8; 16], points: Points) -> Snapshots<S> {
        Snapshots { storage, directory_id, points, verified: BTreeMap::new() }
    }

    /// The same snapshots, from here on through another storage of the same directory.
    pub fn through<T: Storage>(self, storage: T) -> Snapshots<T> {
        let Snapshots { storage: _, directory_id, points, verified } = self;
        Snapshots { storage, directory_id, points, verified }
    }

    /// The snapshots of a directory, without owning it: for tools.
    ///
    /// # Errors
    /// [`Error::Format`] if there is no log here.
    pub fn of(storage: &S) -> Result<Snapshots<S>, Error> {
        let identity = crate::epoch::read_identity(storage)?;
        let identity = identity.ok_or_else(|| Error::format(crate::epoch::EPOCH_NAME, Fault::Missing))?;
        Ok(Snapshots::new(storage.clone(), identity.id, Points::default()))
    }

    /// As [`Snapshots::of`], also where there is no log yet.
    ///
    /// # Errors
    /// [`Error::Format`] for a damaged epoch file; [`Error::Io`].
    pub fn of_start(storage: &S) -> Result<Snapshots<S>, Error> {
        let id = crate::epoch::read_identity(storage)?.map_or([0; 16], |identity| identity.id);
        Ok(Snapshots::new(storage.clone(), id, Points::default()))
    }

    /// LSNs of the files with the name of a snapshot, oldest first; whole or not.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn list(&self) -> Result<Vec<Lsn>, Error> {
        let names = self.storage.list().map_err(Error::io("list", &self.storage.place()))?;
        let mut lsns: Vec<Lsn> = names
            .iter()
            .filter_map(|(name, _)| if let Name::Snapshot(lsn) = parse_name(name) { Some(lsn) } else { None })
            .collect();
        lsns.sort();
        Ok(lsns)
    }

    /// The newest whole snapshot; damaged ones are skipped. The system's cache is trusted, as later reads come from it
    /// too; that the bytes reached the device was verified before the file got its name.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] if one is of a newer format, which is a downgrade and not damage.
    pub fn newest(&self) -> Result<Option<Snapshot>, Error> {
        for lsn in self.list()?.into_iter().rev() {
            match self.read_through(&snapshot_name(lsn), Some(lsn), false) {
                Ok(snapshot) => return Ok(Some(snapshot)),
                Err(Error::Format { fault, .. }) if !matches!(fault, Fault::Version { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads a snapshot from end to end, from the device.
    ///
    /// # Errors
    /// [`Error::Format`] for every kind of damage; [`Error::Io`].
    pub fn verify(&self, lsn: Lsn) -> Result<Snapshot, Error> {
        self.read_through(&snapshot_name(lsn), Some(lsn), true)
    }

    /// Opens a snapshot for reading its blob. Damage shows as an error of the read that meets it.
    ///
    /// # Errors
    /// [`Error::Format`], [`Error::Io`].
    pub fn open(&self, lsn: Lsn) -> Result<SnapshotReader<S>, Error> {
        SnapshotReader::open(&self.storage, &snapshot_name(lsn), &self.directory_id, Some(lsn))
    }

    /// Starts to write a snapshot that covers all records up to `lsn`, whose record has this checksum. The records must
    /// be synced. One at a time: a second one replaces the first.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::is_full`] distinguishes a full disk, which is not a reason to stop.
    pub fn create(&self, lsn: Lsn, record_crc: u32) -> Result<SnapshotWriter<S>, Error> {
        let file = create_anew(&self.storage, MAKING)?;
        let mut header = [0; HEADER_BYTES];
        header[0..8].copy_from_slice(&HEADER_MAGIC);
        header[8..12].copy_from_slice(&SNAPSHOT_VERSION.to_le_bytes());
        header[16..32].copy_from_slice(&self.directory_id);
        header[32..40].copy_from_slice(&lsn.0.to_le_bytes());
        header[40..44].copy_from_slice(&record_crc.to_le_bytes());
        seal(&mut header);
        file.write_at(&header, 0).map_err(Error::io("write", MAKING))?;
        let mut block = Vec::with_capacity(BLOCK_HEAD_BYTES + BLOCK_BYTES);
        block.resize(BLOCK_HEAD_BYTES, 0);
        Ok(SnapshotWriter {
            points: self.points.clone(),
            file,
            lsn,
            record_crc,
            at: HEADER_BYTES as u64,
            given_to: 0,
            block,
            bytes: 0,
            blocks: 0,
            crc: 0,
        })
    }

    /// Finishes a snapshot: writes the rest and the footer with the caller's digest, syncs, reads all of it back,
    /// renames it, and removes all but the newest two whole ones. Only then does it count.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`]; the snapshots before it are then unchanged.
    pub fn commit(&mut self, writer: SnapshotWriter<S>, digest: [u8; 32]) -> Result<Snapshot, Error> {
        let lsn = writer.lsn;
        let written = writer.finish(digest)?;
        let name = snapshot_name(lsn);
        let read = self.read_through(MAKING, Some(lsn), true)?;
        assert!(read == written, "a snapshot must read as it was written: {read:?} is not {written:?}");
        self.points.pass(Point::Rename);
        self.storage.rename(MAKING, &name).map_err(Error::io("rename", MAKING))?;
        self.storage.sync_directory().map_err(Error::io("sync directory of", &name))?;
        self.verified.insert(lsn, read);
        self.keep_last_two()?;
        Ok(read)
    }

    /// Removes what is left of a snapshot that was not finished, whose writer is gone: its bytes are free again.
    ///
    /// # Errors
    /// [`Error::Io`]; the next [`Snapshots::create`] removes it.
    pub fn discard(&self) -> Result<(), Error> {
        match self.storage.remove(MAKING) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", MAKING)(error)),
            _ => Ok(()),
        }
    }

    /// The LSN up to which segments may be recycled: that of the older of the two whole snapshots that are kept, or
    /// `None` while there is only one. Pass it to [`crate::Preparer::recycle`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn covered(&mut self) -> Result<Option<Lsn>, Error> {
        let mut whole = Vec::new();
        for lsn in self.list()?.into_iter().rev() {
            if self.is_whole(lsn)? {
                whole.push(lsn);
            }
            if whole.len() == KEPT_COUNT {
                return Ok(whole.pop());
            }
        }
        Ok(None)
    }

    /// Removes every snapshot below the older of the last two whole ones. Damaged ones in between stay for inspection.
    fn keep_last_two(&mut self) -> Result<(), Error> {
        let Some(older) = self.covered()? else {
            return Ok(());
        };
        for lsn in self.list()?.into_iter().filter(|lsn| *lsn < older) {
            self.points.pass(Point::Remove);
            let name = snapshot_name(lsn);
            self.storage.remove(&name).map_err(Error::io("remove", &name))?;
            self.verified.remove(&lsn);
        }
        self.storage.sync_directory().map_err(Error::io("sync", &self.storage.place()))
    }

    fn is_whole(&mut self, lsn: Lsn) -> Result<bool, Error> {
        if self.verified.contains_key(&lsn) {
            return Ok(true);
        }
        match self.verify(lsn) {
            Ok(snapshot) => {
                self.verified.insert(lsn, snapshot);
                Ok(true)
            }
            Err(Error::Format { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read_through(&self, name: &str, lsn: Option<Lsn>, from_device: bool) -> Result<Snapshot, Error> {
        let mut reader = SnapshotReader::open(&self.storage, name, &self.directory_id, lsn)?;
        if from_device {
            // The cache proves nothing about the device.
            reader.file.forget(u64::MAX);
        }
        reader.file.prefetch();
        while reader.load_block()? {}
        Ok(reader.whole.expect("the last block is followed by the footer"))
    }
}

/// Checks whether a file with the name of a snapshot begins as one of this log does; the rest is not read.
///
/// # Errors
/// As [`Snapshots::open`].
pub(crate) fn check_head<S: Storage>(storage: &S, directory_id: &[u8; 16], lsn: Lsn) -> Result<(), Error> {
    SnapshotReader::open(storage, &snapshot_name(lsn), directory_id, Some(lsn)).map(drop)
}

/// Writes a snapshot as a stream. Pass it to [`Snapshots::commit`]; if it is dropped before, there is no snapshot.
pub struct SnapshotWriter<S: Storage = Files> {
    points: Points,
    file: S::File,
    lsn: Lsn,
    record_crc: u32,
    /// Offset of the next block, and the offset up to which blocks were sent to the device.
    at: u64,
    given_to: u64,
    /// Space for a block's head, then its bytes so far.
    block: Vec<u8>,
    bytes: u64,
    blocks: u64,
    crc: u32,
}

impl<S: Storage> SnapshotWriter<S> {
    /// Bytes of the blob written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.points.pass(Point::SnapshotWrite);
        let length = (self.block.len() - BLOCK_HEAD_BYTES) as u32;
        let crc = block_crc(length, self.blocks, &self.block[BLOCK_HEAD_BYTES..]);
        self.block[0..4].copy_from_slice(&length.to_le_bytes());
        self.block[4..8].copy_from_slice(&crc.to_le_bytes());
        self.file.write_at(&self.block, self.at)?;
        self.at += self.block.len() as u64;
        self.blocks += 1;
        self.block.truncate(BLOCK_HEAD_BYTES);
        if self.at - self.given_to >= WRITE_BACK_BYTES {
            self.file.write_back(self.given_to, self.at)?;
            self.given_to = self.at;
        }
        Ok(())
    }

    fn finish(mut self, digest: [u8; 32]) -> Result<Snapshot, Error> {
        let write = Error::io("write", MAKING);
        let ended = if self.block.len() > BLOCK_HEAD_BYTES { self.write_block() } else { Ok(()) };
        // The block of length 0 ends the list of blocks.
        ended.and_then(|()| self.write_block()).map_err(write)?;
        let mut footer = [0; FOOTER_BYTES];
        footer[0..8].copy_from_slice(&FOOTER_MAGIC);
        footer[8..12].copy_from_slice(&self.record_crc.to_le_bytes());
        footer[16..24].copy_from_slice(&self.lsn.0.to_le_bytes());
        footer[24..32].copy_from_slice(&self.bytes.to_le_bytes());
        footer[32..40].copy_from_slice(&self.blocks.to_le_bytes());
        footer[40..44].copy_from_slice(&self.crc.to_le_bytes());
        footer[48..80].copy_from_slice(&digest);
        seal(&mut footer);
        self.file.write_at(&footer, self.at).map_err(Error::io("write", MAKING))?;
        self.file.sync().map_err(Error::io("sync", MAKING))?;
        Ok(Snapshot { lsn: self.lsn, record_crc: self.record_crc, digest, bytes: self.bytes })
    }
}

impl<S: Storage> Write for SnapshotWriter<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() == BLOCK_HEAD_BYTES + BLOCK_BYTES {
            self.write_block()?;
        }
        let taken = &bytes[..bytes.len().min(BLOCK_HEAD_BYTES + BLOCK_BYTES - self.block.len())];
        self.block.extend_from_slice(taken);
        self.bytes += taken.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the blob of a snapshot, block by block, each verified before it is returned.
pub struct SnapshotReader<S: Storage = Files> {
    file: S::File,
    name: String,
    lsn: Lsn,
    record_crc: u32,
    /// Offset of the next block.
    at: u64,
    block: Vec<u8>,
    /// Bytes of the block already returned.
    taken: usize,
    bytes: u64,
    blocks: u64,
    crc: u32,
    whole: Option<Snapshot>,
}

impl<S: Storage> SnapshotReader<S> {
    fn open(storage: &S, name: &str, directory_id: &[u8; 16], lsn: Option<Lsn>) -> Result<SnapshotReader<S>, Error> {
        let file = storage.open_to_read(name).map_err(Error::io("open", name))?;
        let fault = |fault| Error::format(name, fault);
        let mut header = [0; HEADER_BYTES];
        let read = file.read_at(&mut header, 0).map_err(Error::io("read", name))?;
        if read >= 8 && header[0..8] != HEADER_MAGIC {
            return Err(fault(Fault::Magic));
        }
        if read < HEADER_BYTES {
            return Err(fault(Fault::Structure));
        }
        // An unknown version may be a flipped bit, not a newer program: it is trusted only with a correct checksum.
        check_seal(&header).map_err(fault)?;
        let version = u32_at(&header, 8);
        if version != SNAPSHOT_VERSION {
            return Err(fault(Fault::Version { found: version, known: SNAPSHOT_VERSION }));
        }
        if header[16..32] != *directory_id {
            return Err(fault(Fault::Foreign));
        }
        let header_lsn = Lsn(u64_at(&header, 32));
        if lsn.is_some_and(|lsn| lsn != header_lsn) {
            return Err(fault(Fault::Name { header: header_lsn }));
        }
        Ok(SnapshotReader {
            file,
            name: name.to_owned(),
            lsn: header_lsn,
            record_crc: u32_at(&header, 40),
            at: HEADER_BYTES as u64,
            block: Vec::new(),
            taken: 0,
            bytes: 0,
            blocks: 0,
            crc: 0,
            whole: None,
        })
    }

    /// The last record that the snapshot covers.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The checksum of that record.
    pub fn record_crc(&self) -> u32 {
        self.record_crc
    }

    /// The footer, once everything has been read and verified.
    pub fn whole(&self) -> Option<&Snapshot> {
        self.whole.as_ref()
    }

    /// Reads and verifies the next block. Returns `false` after the last one, if the footer matches as well.
    fn load_block(&mut self) -> Result<bool, Error> {
        if self.whole.is_some() {
            return Ok(false);
        }
        let mut head = [0; BLOCK_HEAD_BYTES];
        self.read_exactly(&mut head, self.at)?;
        let length = u32_at(&head, 0);
        if length as usize > BLOCK_BYTES {
            return Err(self.fault(Fault::Structure));
        }
        let mut block = std::mem::take(&mut self.block);
        block.resize(length as usize, 0);
        self.read_exactly(&mut block, self.at + BLOCK_HEAD_BYTES as u64)?;
        let (expected, found) = (u32_at(&head, 4), block_crc(length, self.blocks, &block));
        if expected != found {
            return Err(self.fault(Fault::Checksum { expected, found }));
        }
        self.at += (BLOCK_HEAD_BYTES + block.len()) as u64;
        self.blocks += 1;
        self.bytes += u64::from(length);
        self.crc = crc32c::crc32c_append(self.crc, &block);
        (self.block, self.taken) = (block, 0);
        if length == 0 {
            self.whole = Some(self.read_footer()?);
        }
        Ok(length > 0)
    }

    fn read_footer(&self) -> Result<Snapshot, Error> {
        let mut footer = [0; FOOTER_BYTES];
        self.read_exactly(&mut footer, self.at)?;
        if footer[0..8] != FOOTER_MAGIC {
            return Err(self.fault(Fault::Magic));
        }
        check_seal(&footer).map_err(|fault| self.fault(fault))?;
        let fits = u32_at(&footer, 8) == self.record_crc
            && Lsn(u64_at(&footer, 16)) == self.lsn
            && u64_at(&footer, 24) == self.bytes
            && u64_at(&footer, 32) == self.blocks
            && u32_at(&footer, 40) == self.crc
            && self.file.bytes().map_err(Error::io("stat", &self.name))? == self.at + FOOTER_BYTES as u64;
        if !fits {
            return Err(self.fault(Fault::Structure));
        }
        let digest = footer[48..80].try_into().expect("32 bytes");
        Ok(Snapshot { lsn: self.lsn, record_crc: self.record_crc, digest, bytes: self.bytes })
    }

    fn read_exactly(&self, buffer: &mut [u8], at: u64) -> Result<(), Error> {
        let read = self.file.read_at(buffer, at).map_err(Error::io("read", &self.name))?;
        if read == buffer.len() { Ok(()) } else { Err(self.fault(Fault::Structure)) }
    }

    fn fault(&self, fault: Fault) -> Error {
        Error::format(&self.name, fault)
    }
}

impl<S: Storage> Read for SnapshotReader<S> {
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] with the [`Error`] inside if a block or the footer is damaged.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.block.len() {
            let more = self.load_block().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if !more {
                return Ok(0);
            }
        }
        let bytes = buffer.len().min(self.block.len() - self.taken);
        buffer[..bytes].copy_from_slice(&self.block[self.taken..self.taken + bytes]);
        self.taken += bytes;
        Ok(bytes)
    }
}

/// The number of a block is part of its checksum, so that blocks cannot be swapped.
fn block_crc(length: u32, number: u64, bytes: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&length.to_le_bytes()), &number.to_le_bytes());
    crc32c::crc32c_append(crc, bytes)
}

/// Writes the checksum of a header or footer into its bytes 12..16.
fn seal(bytes: &mut [u8]) {
    let crc = sealed_crc(bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

fn check_seal(bytes: &[u8]) -> Result<(), Fault> {
    let (expected, found) = (u32_at(bytes, 12), sealed_crc(bytes));
    if expected == found { Ok(()) } else { Err(Fault::Checksum { expected, found }) }
}

fn sealed_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[0..12]), &bytes[16..])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
