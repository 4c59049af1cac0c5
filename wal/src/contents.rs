//! The files of a log's directory, listed without owning it.

use std::io;

use crate::Lsn;
use crate::epoch::read_identity;
use crate::error::{Error, Fault};
use crate::names::{Name, parse_name};
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::storage::{Storage, StoredFile};

/// A segment in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its name inside the directory.
    pub name: String,
    /// Whether the name is its first LSN. If not, it is in use and its first sync is still to come.
    pub is_named: bool,
    /// Its length in bytes.
    pub bytes: u64,
    /// First LSN, from the header if that is readable, else from the name.
    pub first_lsn: Lsn,
    /// Its header, or what is wrong with it.
    pub header: Result<SegmentHeader, Fault>,
}

/// A file with a spare's name and without a valid header: a reserve, or torn before any of it counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpareFile {
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Why it is not a segment.
    pub fault: Fault,
}

/// All files of a directory that belong to the log.
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

/// The LSN up to which records are in sealed segments: those followed by a named one. All of them are synced.
///
/// # Errors
/// As [`segments`].
pub fn sealed_lsn<S: Storage>(storage: &S) -> Result<Lsn, Error> {
    let open = segments(storage)?.into_iter().rev().find(|segment| segment.is_named);
    Ok(open.map_or(Lsn::ZERO, |segment| segment.first_lsn.before()))
}

/// Reads all files of the directory. In a running log a file may be renamed between the listing and the read; then the
/// listing is repeated.
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
                    // If it was released meanwhile, it is being zeroed under another name: the listing is repeated.
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
