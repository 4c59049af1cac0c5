//! The epoch file: which log a directory holds, and up to which LSN it is known to be synced.
//!
//! It holds the random identity of the directory, the last epoch that was started, and a *floor*: an LSN up to which
//! the log is known to be synced. The floor is raised at every start, after every roll and at a clean stop. A segment
//! that vanishes from the end of the log is therefore missed, and the log is not taken for one that ended there.

use std::io;

use crate::error::{Error, Fault};
use crate::storage::{Storage, StoredFile};
use crate::{Lsn, Point, Points};

pub(crate) const EPOCH_NAME: &str = "epoch";
const EPOCH_MAKING: &str = "epoch.making";

/// Creates a file, replacing what an interrupted attempt may have left.
pub(crate) fn create_anew<S: Storage>(storage: &S, name: &str) -> Result<S::File, Error> {
    match storage.remove(name) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("remove", name)(error)),
    }
    storage.create(name).map_err(Error::io("create", name))
}

/// The contents of the epoch file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Random; stored in every segment and snapshot, so that files of another directory are detected.
    pub id: [u8; 16],
    /// The last epoch that was started.
    pub epoch: u32,
    /// An LSN that is known to be synced.
    pub floor: Lsn,
    /// Which copy of the directory this is: `id` in the original, a random value in each restored copy.
    pub instance: [u8; 16],
}

const EPOCH_MAGIC: [u8; 8] = *b"WALEPOC\n";
/// Version 1 ends before the instance; the directory's id takes its place.
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

/// Where the files of a log come from, by its epoch file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// In every segment and snapshot: the directory in which the log began, and all copies restored from it.
    pub directory: [u8; 16],
    /// Which of these copies this is.
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

/// Makes a log of segments and snapshots that were copied into a directory: writes its epoch file. Records up to
/// `floor` must be there, or no start succeeds.
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
mod tests {
    use super::*;

    /// Both versions of the epoch file, byte by byte.
    #[test]
    fn golden_bytes_of_the_epoch_file() {
        let identity = Identity { id: *b"0123456789abcdef", epoch: 3, floor: Lsn(41), instance: *b"ABCDEFGHIJKLMNOP" };
        #[rustfmt::skip]
        let golden: [u8; EPOCH_BYTES] = [
            b'W', b'A', b'L', b'E', b'P', b'O', b'C', b'\n',
            2, 0, 0, 0,
            0xb6, 0x25, 0xf5, 0xd4,
            b'0', b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8', b'9', b'a', b'b', b'c', b'd', b'e', b'f',
            41, 0, 0, 0, 0, 0, 0, 0,
            3, 0, 0, 0,
            0, 0, 0, 0,
            b'A', b'B', b'C', b'D', b'E', b'F', b'G', b'H', b'I', b'J', b'K', b'L', b'M', b'N', b'O', b'P',
        ];
        #[rustfmt::skip]
        let golden_1: [u8; EPOCH_BYTES_1] = [
            b'W', b'A', b'L', b'E', b'P', b'O', b'C', b'\n',
            1, 0, 0, 0,
            0xe1, 0x9c, 0x01, 0xc5,
            b'0', b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8', b'9', b'a', b'b', b'c', b'd', b'e', b'f',
            41, 0, 0, 0, 0, 0, 0, 0,
            3, 0, 0, 0,
            0, 0, 0, 0,
        ];
        assert_eq!(identity.encode(), golden);
        assert_eq!(Identity::decode(&golden), Ok(identity));
        assert_eq!(Identity::decode(&golden_1), Ok(Identity { instance: identity.id, ..identity }));
        for golden in [&golden[..], &golden_1[..]] {
            for bit in 0..golden.len() * 8 {
                let mut damaged = golden.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(Identity::decode(&damaged).is_err(), "bit {bit}");
            }
            for length in 0..golden.len() {
                assert!(Identity::decode(&golden[..length]).is_err(), "length {length}");
            }
            let longer: Vec<u8> = golden.iter().copied().chain([0]).collect();
            assert!(Identity::decode(&longer).is_err(), "longer");
        }
    }
}
