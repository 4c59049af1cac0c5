//! The directory of a log: what its files are called, who owns it, which epoch it is in, and how a log is started in it.
//!
//! The epoch file holds three facts: the random identity of the directory, the last epoch that was started, and a *floor*:
//! an LSN that the log has certainly reached and synced. It is raised at every start, after every roll and at a clean stop,
//! so that a segment which vanishes from the end of the log is missed and not taken for a log that ended there.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;

use crate::Marks;
use crate::error::{Error, Fault};
use crate::log::{Log, LogStart, OpenSegment};
use crate::prepare::Preparer;
use crate::record::Kind;
use crate::recover::{Recovered, Recovery};
use crate::segment::{DEFAULT_SEGMENT_BYTES, MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES};
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader, fill_with_zeros};
use crate::snapshot::{Snapshot, Snapshots};
use crate::storage::{DirectoryLock, Files, SegmentMap, Storage, StoredFile};
use crate::sync::{OPENED_MAX, OpenFile, Opened, Syncer, Waker};
use crate::{Lsn, Point, Points};

/// How a log is run. All of it may change between two starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// Length of new segments: a multiple of 4 KiB from [`MIN_SEGMENT_BYTES`] to [`MAX_SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// Prepared segments to keep ready, 1 to 8.
    pub spares_count: u32,
    /// Bytes of the disk that new segments leave alone.
    pub reserve_bytes: u64,
    /// Crash points, for tests.
    pub points: Points,
}

/// Most spares that may be asked for.
pub const SPARES_MAX: u32 = 8;

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: DEFAULT_SEGMENT_BYTES,
            spares_count: 2,
            reserve_bytes: 256 << 20,
            points: Points::default(),
        }
    }
}

/// A directory owned by this process, on the way to a running log.
pub struct Dir<S: Storage = Files> {
    pub(crate) storage: S,
    pub(crate) lock: Arc<S::Lock>,
    pub(crate) options: Options,
    /// `None` in a directory that never had a log.
    pub(crate) identity: Option<Identity>,
}

/// The parts of a running log. Each belongs to one thread; which one is the caller's choice.
pub struct Running<S: Storage = Files> {
    /// Appends.
    pub log: Log<S>,
    /// Makes durable.
    pub syncer: Syncer<S>,
    /// Prepares and recycles segments.
    pub preparer: Preparer<S>,
    /// Writes and reads snapshots.
    pub snapshots: Snapshots<S>,
    /// Watermarks for everybody.
    pub marks: Marks,
    /// The epoch of this start.
    pub epoch: u32,
    /// Which copy of the directory this is; it stays through starts.
    pub instance: [u8; 16],
}

impl<S: Storage> Dir<S> {
    /// Locks the directory and reads its epoch file. Writes nothing but the lock file.
    ///
    /// # Errors
    /// [`Error::Locked`] with the owner's process id; [`Error::Format`] for a damaged or newer epoch file, or when it is
    /// missing beside segments or snapshots.
    ///
    /// # Panics
    /// When the options are out of their bounds.
    pub fn open(storage: S, options: Options) -> Result<Dir<S>, Error> {
        assert!(
            (MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&options.segment_bytes)
                && options.segment_bytes.is_multiple_of(4096),
            "a segment has a multiple of 4096 bytes from {MIN_SEGMENT_BYTES} to {MAX_SEGMENT_BYTES}, not {}",
            options.segment_bytes
        );
        assert!(
            (1..=SPARES_MAX).contains(&options.spares_count),
            "1 to {SPARES_MAX} spares are kept, not {}",
            options.spares_count
        );
        let lock = Arc::new(storage.lock()?);
        let describe = format!("pid {}\n", std::process::id());
        lock.describe(&describe).map_err(Error::io("write", crate::storage::LOCK_NAME))?;
        let identity = read_identity(&storage)?;
        Ok(Dir { storage, lock, options, identity })
    }

    /// The newest snapshot that is whole, read once from end to end to be sure. Damaged ones are passed over: the one
    /// before and the log since then say the same.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] when a snapshot is of a newer format.
    pub fn newest_snapshot(&self) -> Result<Option<Snapshot>, Error> {
        self.snapshots().newest()
    }

    /// The snapshots of this directory.
    pub fn snapshots(&self) -> Snapshots<S> {
        let id = self.identity.map_or([0; 16], |identity| identity.id);
        Snapshots::new(self.storage.clone(), id, self.options.points.clone())
    }

    /// Starts to read the log behind a snapshot (or from its beginning), to be replayed. `accept_loss` is the operator's
    /// word that the log is to go on although promised records are gone; it is `false` unless a human said otherwise.
    ///
    /// # Errors
    /// [`Error::Format`] when the files do not make up one log, [`Error::Place`] for what is no plain file.
    pub fn recover(&self, snapshot: Option<&Snapshot>, accept_loss: bool) -> Result<Recovery<S>, Error> {
        Recovery::begin(self, snapshot, accept_loss)
    }

    /// Raises the epoch, makes it durable, and opens the log for appending behind what was recovered. `time` (µs since
    /// 1970) goes into the record that marks the start.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::Io`] when there is no room for the first records or for the epoch file, also once a spare
    /// was given up for that.
    pub fn start(self, recovered: Recovered<S>, time: u64, waker: Waker) -> Result<Running<S>, Error> {
        let Dir { storage, lock, options, identity } = self;
        let id = match identity {
            Some(identity) => identity.id,
            None => storage.random_id().map_err(Error::io("read random bytes for", &storage.place()))?,
        };
        let epoch = identity.map_or(0, |identity| identity.epoch).checked_add(1).expect("2^32 starts");
        let open = match recovered.tail {
            Some(tail) => tail.open(&storage)?,
            None => {
                let header = SegmentHeader {
                    directory_id: id,
                    number: recovered.next_number,
                    first_lsn: recovered.last_lsn.next(),
                    previous_crc: recovered.last_crc,
                    bytes: options.segment_bytes,
                };
                create_segment(&storage, &header, &options.points)?
            }
        };
        // Only now: where an epoch file is, there is a segment, and a directory without one has been robbed.
        let instance = identity.map_or(id, |identity| identity.instance);
        let identity = Identity { id, epoch, floor: recovered.last_lsn, instance };
        let mut leftovers = recovered.spares;
        write_identity(&storage, &identity, &options.points).or_else(|error| {
            // On a full disk a spare makes room: what is in the log can be read, cancelled and revoked all the same.
            let Some(spare) = leftovers.pop().filter(|_| error.is_full()) else { return Err(error) };
            storage.remove(&spare).map_err(Error::io("remove", &spare))?;
            storage.sync_directory().map_err(Error::io("sync directory of", &spare))?;
            write_identity(&storage, &identity, &options.points)
        })?;
        let describe = format!("pid {}\nepoch {epoch}\n", std::process::id());
        lock.describe(&describe).map_err(Error::io("write", crate::storage::LOCK_NAME))?;

        let marks = Marks::new(recovered.last_lsn, open.at as u64);
        let (opened_sender, opened) = mpsc::sync_channel::<Opened<S>>(OPENED_MAX as usize);
        let (spare_sender, spares) = mpsc::sync_channel(OPENED_MAX as usize);
        let mut preparer = Preparer::new(storage.clone(), lock.clone(), &options, marks.clone(), spare_sender);
        preparer.take_leftovers(leftovers)?;
        let OpenSegment { file, map, at, header } = open;
        let open = OpenFile {
            file,
            name: segment_name(header.first_lsn),
            is_named: true,
            first_lsn: header.first_lsn,
            base: 0,
            bytes: header.bytes,
            synced_to: at as u64,
        };
        let syncer = Syncer::new(
            storage.clone(),
            lock.clone(),
            marks.clone(),
            opened,
            open,
            identity,
            waker,
            options.points.clone(),
        );
        let mut log = Log::new(LogStart {
            map,
            at,
            header,
            last_lsn: recovered.last_lsn,
            last_crc: recovered.last_crc,
            last_time: recovered.last_time,
            epoch,
            segment_bytes: options.segment_bytes,
            marks: marks.clone(),
            spares,
            opened: opened_sender,
            points: options.points.clone(),
            lock,
        });
        let mut first = vec![(Kind::EpochStart, Vec::new())];
        first.extend(recovered.loss.map(|loss| (Kind::LossAccepted, loss.to_bytes())));
        for (kind, payload) in first {
            if log.append(kind, 0, 0, time, &payload).is_err() {
                preparer.turn()?;
                log.append(kind, 0, 0, time, &payload)?;
            }
        }
        let snapshots = Snapshots::new(storage, id, options.points);
        Ok(Running { log, syncer, preparer, snapshots, marks, epoch, instance })
    }
}

/// What a name in the directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Segment(Lsn),
    Spare(u64),
    Snapshot(Lsn),
    Making,
    Other,
}

pub(crate) const EPOCH_NAME: &str = "epoch";
const EPOCH_MAKING: &str = "epoch.making";

/// Name of a segment's file.
pub fn segment_name(first_lsn: Lsn) -> String {
    format!("{:020}.wal", first_lsn.0)
}

pub(crate) fn spare_name(number: u64) -> String {
    format!("{number:08}.spare")
}

pub(crate) fn making_name(number: u64) -> String {
    format!("{number:08}.making")
}

/// Name of a snapshot's file.
pub fn snapshot_name(lsn: Lsn) -> String {
    format!("{:020}.snapshot", lsn.0)
}

pub(crate) fn lost_name(name: &str) -> String {
    format!("{name}.lost")
}

pub(crate) fn parse_name(name: &str) -> Name {
    let digits = |text: &str, count: usize| -> Option<u64> {
        let plain = text.len() >= count && text.bytes().all(|byte| byte.is_ascii_digit());
        if plain && (text.len() == count || !text.starts_with('0')) { text.parse().ok() } else { None }
    };
    let lsn = |text: &str| digits(text, 20).filter(|number| *number > 0).map(Lsn);
    if let Some(stem) = name.strip_suffix(".wal") {
        return lsn(stem).map_or(Name::Other, Name::Segment);
    }
    if let Some(stem) = name.strip_suffix(".snapshot") {
        return lsn(stem).map_or(Name::Other, Name::Snapshot);
    }
    if let Some(stem) = name.strip_suffix(".spare") {
        // There must be numbers behind it for those that are made next.
        return digits(stem, 8).filter(|number| *number < u64::MAX / 2).map_or(Name::Other, Name::Spare);
    }
    if name.ends_with(".making") { Name::Making } else { Name::Other }
}

/// A segment as it lies in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its name inside the directory.
    pub name: String,
    /// Whether the name says its first LSN. If not, it was taken into use and the first sync of it is still to come.
    pub is_named: bool,
    /// Its length in bytes.
    pub bytes: u64,
    /// First LSN, by the header where that can be read, else by the name.
    pub first_lsn: Lsn,
    /// Its header, or why it cannot be believed.
    pub header: Result<SegmentHeader, Fault>,
}

/// A file with a spare's name and without a believable header: reserve, or torn before anything in it counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpareFile {
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Why it is no segment.
    pub fault: Fault,
}

/// All that the log knows of a directory's contents.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// In the order of their first LSN.
    pub segments: Vec<SegmentFile>,
    /// In the order of their names.
    pub spares: Vec<SpareFile>,
    pub snapshots: Vec<Lsn>,
    pub making: Vec<String>,
}

/// The segments of a directory in the order of their first LSN, without owning it.
///
/// # Errors
/// [`Error::Io`]; [`Error::Format`] when the epoch file is missing or damaged.
pub fn segments<S: Storage>(storage: &S) -> Result<Vec<SegmentFile>, Error> {
    let Some(identity) = read_identity(storage)? else {
        return Ok(Vec::new());
    };
    read_contents(storage, Some(&identity.id)).map(|contents| contents.segments)
}

/// The LSN up to which records lie in sealed segments: those behind which another one has its name. All of them are synced.
///
/// # Errors
/// As [`segments`].
pub fn sealed_lsn<S: Storage>(storage: &S) -> Result<Lsn, Error> {
    let open = segments(storage)?.into_iter().rev().find(|segment| segment.is_named);
    Ok(open.map_or(Lsn::ZERO, |segment| segment.first_lsn.before()))
}

/// Looks at all files of the directory. Beside a running log a file may get another name between the list and the look;
/// then the list is made anew.
pub(crate) fn read_contents<S: Storage>(storage: &S, id: Option<&[u8; 16]>) -> Result<Contents, Error> {
    let mut tries_left = LIST_TRIES;
    loop {
        tries_left -= 1;
        match read_listed(storage, id) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound && tries_left > 0 => {}
            done => return done,
        }
    }
}

const LIST_TRIES: u32 = 8;

fn read_listed<S: Storage>(storage: &S, id: Option<&[u8; 16]>) -> Result<Contents, Error> {
    let mut contents = Contents::default();
    for (name, bytes) in storage.list().map_err(Error::io("list", &storage.place()))? {
        match parse_name(&name) {
            Name::Segment(first_lsn) => {
                let header = read_segment_header(storage, &name, bytes, id)?;
                let header = header.and_then(|header| {
                    if header.first_lsn == first_lsn {
                        Ok(header)
                    } else {
                        Err(Fault::Name { header: header.first_lsn })
                    }
                });
                if header.is_err() {
                    // Given up meanwhile, it is zeroed under another name: then the list is made anew.
                    storage.open(&name).map_err(Error::io("open", &name))?;
                }
                contents.segments.push(SegmentFile { name, is_named: true, bytes, first_lsn, header });
            }
            Name::Spare(_) => match read_segment_header(storage, &name, bytes, id)? {
                Ok(header) => {
                    let first_lsn = header.first_lsn;
                    contents.segments.push(SegmentFile { name, is_named: false, bytes, first_lsn, header: Ok(header) });
                }
                Err(fault) => contents.spares.push(SpareFile { name, bytes, fault }),
            },
            Name::Snapshot(lsn) => contents.snapshots.push(lsn),
            Name::Making => contents.making.push(name),
            Name::Other => {}
        }
    }
    contents.segments.sort_by(|a, b| (a.first_lsn, &a.name).cmp(&(b.first_lsn, &b.name)));
    contents.snapshots.sort();
    contents.spares.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(contents)
}

fn read_segment_header<S: Storage>(
    storage: &S,
    name: &str,
    bytes: u64,
    id: Option<&[u8; 16]>,
) -> Result<Result<SegmentHeader, Fault>, Error> {
    let file = storage.open_to_read(name).map_err(Error::io("open", name))?;
    let mut head = [0; SEGMENT_HEADER_BYTES];
    let read = file.read_at(&mut head, 0).map_err(Error::io("read", name))?;
    if read < head.len() {
        return Ok(Err(Fault::Length { expected: SEGMENT_HEADER_BYTES as u64, found: bytes }));
    }
    Ok(SegmentHeader::decode(&head).and_then(|header| {
        if id.is_some_and(|id| header.directory_id != *id) {
            return Err(Fault::Foreign);
        }
        if header.bytes != bytes {
            return Err(Fault::Length { expected: header.bytes, found: bytes });
        }
        Ok(header)
    }))
}

/// Makes a zeroed segment under a temporary name, gives it this header, and then its name. Durable when done.
fn create_segment<S: Storage>(storage: &S, header: &SegmentHeader, points: &Points) -> Result<OpenSegment<S>, Error> {
    let name = segment_name(header.first_lsn);
    let making = format!("{name}.making");
    let file = create_anew(storage, &making)?;
    fill_with_zeros(&file, &making, header.bytes, |_| {})?;
    file.write_at(&header.encode(), 0).map_err(Error::io("write", &making))?;
    file.sync().map_err(Error::io("sync", &making))?;
    points.pass(Point::Rename);
    storage.rename(&making, &name).map_err(Error::io("rename", &making))?;
    storage.sync_directory().map_err(Error::io("sync directory of", &name))?;
    let mut map = storage.map(&file, header.bytes).map_err(Error::io("map", &name))?;
    map.touch(0, header.bytes as usize);
    Ok(OpenSegment { file, map, at: SEGMENT_HEADER_BYTES, header: *header })
}

/// Creates a file in place of what an interrupted attempt may have left.
pub(crate) fn create_anew<S: Storage>(storage: &S, name: &str) -> Result<S::File, Error> {
    match storage.remove(name) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("remove", name)(error)),
    }
    storage.create(name).map_err(Error::io("create", name))
}

/// What the epoch file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Random; in every segment and snapshot, so that files of another directory are noticed.
    pub id: [u8; 16],
    /// The last epoch that was started.
    pub epoch: u32,
    /// An LSN that is certainly synced.
    pub floor: Lsn,
    /// Which copy of the directory this is: that of `id` in the first one, and a random one in each that was restored.
    pub instance: [u8; 16],
}

const EPOCH_MAGIC: [u8; 8] = *b"WALEPOC\n";
/// 1 has no instance: it ends before it, and the directory's identity stands for it.
const EPOCH_VERSION: u32 = 2;
const EPOCH_BYTES: usize = 64;
const EPOCH_BYTES_1: usize = 48;

impl Identity {
    fn encode(&self) -> [u8; EPOCH_BYTES] {
        let mut bytes = [0; EPOCH_BYTES];
        bytes[0..8].copy_from_slice(&EPOCH_MAGIC);
        bytes[8..12].copy_from_slice(&EPOCH_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.id);
        bytes[32..40].copy_from_slice(&self.floor.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[48..64].copy_from_slice(&self.instance);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[0..12]), &bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Identity, Fault> {
        let Some(head) = bytes.first_chunk::<12>() else {
            return Err(Fault::Structure);
        };
        if head[0..8] != EPOCH_MAGIC {
            return Err(Fault::Magic);
        }
        let version = u32::from_le_bytes(head[8..12].try_into().expect("four bytes"));
        let length = match version {
            1 => EPOCH_BYTES_1,
            EPOCH_VERSION => EPOCH_BYTES,
            found => return Err(Fault::Version { found, known: EPOCH_VERSION }),
        };
        if bytes.len() != length {
            return Err(Fault::Structure);
        }
        let expected = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes"));
        let found = crc32c::crc32c_append(crc32c::crc32c(&bytes[0..12]), &bytes[16..]);
        if expected != found {
            return Err(Fault::Checksum { expected, found });
        }
        let id = bytes[16..32].try_into().expect("sixteen bytes");
        Ok(Identity {
            id,
            instance: bytes.get(48..64).map_or(id, |bytes| bytes.try_into().expect("sixteen bytes")),
            floor: Lsn(u64::from_le_bytes(bytes[32..40].try_into().expect("eight bytes"))),
            epoch: u32::from_le_bytes(bytes[40..44].try_into().expect("four bytes")),
        })
    }
}

pub(crate) fn read_identity<S: Storage>(storage: &S) -> Result<Option<Identity>, Error> {
    let file = match storage.open_to_read(EPOCH_NAME) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", EPOCH_NAME)(error)),
    };
    let mut bytes = [0; EPOCH_BYTES + 1];
    let read = file.read_at(&mut bytes, 0).map_err(Error::io("read", EPOCH_NAME))?;
    Identity::decode(&bytes[..read]).map(Some).map_err(|fault| Error::format(EPOCH_NAME, fault))
}

/// Where the files of a log come from: what its epoch file says of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// In every segment and snapshot: the directory that first had the log, and all that were restored from it.
    pub directory: [u8; 16],
    /// Which of them this is.
    pub instance: [u8; 16],
    /// The last epoch that was started.
    pub epoch: u32,
}

/// The origin of a directory's log, `None` where there is no log yet. Needs no lock.
///
/// # Errors
/// [`Error::Format`] for a damaged or newer epoch file; [`Error::Io`].
pub fn origin<S: Storage>(storage: &S) -> Result<Option<Origin>, Error> {
    let identity = read_identity(storage)?;
    Ok(identity.map(|Identity { id, epoch, instance, .. }| Origin { directory: id, instance, epoch }))
}

/// Makes a log of segments and snapshots that were copied into a directory: writes its epoch file. Records up to `floor`
/// are to be there; without them no start succeeds.
///
/// # Errors
/// [`Error::Io`].
pub fn adopt<S: Storage>(storage: &S, origin: Origin, floor: Lsn) -> Result<(), Error> {
    let Origin { directory, instance, epoch } = origin;
    write_identity(storage, &Identity { id: directory, epoch, floor, instance }, &Points::default())
}

/// Writes the epoch file: a new file, synced, renamed over the old one, and the directory synced.
pub(crate) fn write_identity<S: Storage>(storage: &S, identity: &Identity, points: &Points) -> Result<(), Error> {
    points.pass(Point::EpochWrite);
    let file = create_anew(storage, EPOCH_MAKING)?;
    file.write_at(&identity.encode(), 0).map_err(Error::io("write", EPOCH_MAKING))?;
    file.sync().map_err(Error::io("sync", EPOCH_MAKING))?;
    points.pass(Point::Rename);
    storage.rename(EPOCH_MAKING, EPOCH_NAME).map_err(Error::io("rename", EPOCH_MAKING))?;
    storage.sync_directory().map_err(Error::io("sync directory of", EPOCH_NAME))
}

#[cfg(test)]
mod tests;
