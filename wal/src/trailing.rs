//! The bytes after the end of a log: zeros, remains of unpromised records, or proof that promised records are missing.

use crate::Lsn;
use crate::error::Error;
use crate::record::{self, ALIGN_BYTES, HEADER_BYTES, MAX_RECORD_BYTES};
use crate::segment::{PAGE_BYTES, ZEROS};
use crate::storage::{Storage, StoredFile};

/// Bytes per read: fits into a core's cache together with what the reader does with it.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;

/// Contents of a file after an offset. Offsets are bytes from the start of the file.
#[derive(Debug, Default)]
pub(crate) struct Trailing {
    /// The first byte that is not zero.
    pub first_byte: Option<u64>,
    /// The last one.
    pub last_byte: Option<u64>,
    /// The highest `synced` of a whole record there.
    pub synced: Lsn,
}

/// Reads a file from an offset to its end. Records at or below `hole`, the first LSN that did not verify, prove nothing.
pub(crate) fn read_trailing<S: Storage>(storage: &S, name: &str, offset: u64, hole: Lsn) -> Result<Trailing, Error> {
    let file = storage.open_to_read(name).map_err(Error::io("open", name))?;
    let mut trailing = Trailing::default();
    let end = file.bytes().map_err(Error::io("look at", name))?;
    let mut block = vec![0; (end.saturating_sub(offset) as usize).min(BLOCK_BYTES)];
    let mut at = offset;
    while at < end {
        let bytes = file.read_at(&mut block, at).map_err(Error::io("read", name))?;
        if bytes == 0 {
            break;
        }
        if !is_zero(&block[..bytes]) {
            let first = block[..bytes].iter().position(|byte| *byte != 0).expect("not all zeros");
            let last = block[..bytes].iter().rposition(|byte| *byte != 0).expect("not all zeros");
            trailing.first_byte.get_or_insert(at + first as u64);
            trailing.last_byte = Some(at + last as u64);
        }
        at += bytes as u64;
    }
    let (Some(first), Some(last)) = (trailing.first_byte, trailing.last_byte) else {
        return Ok(trailing);
    };
    // From the last aligned offset at or before the first byte, and far enough past the last one to hold a whole record
    // that ends in zeros. Segments are bounded, and so is this buffer.
    let from = offset + (first - offset) / ALIGN_BYTES as u64 * ALIGN_BYTES as u64;
    let to = end.min(last + 1 + MAX_RECORD_BYTES as u64);
    let mut rest = vec![0; (to - from) as usize];
    let filled = file.read_at(&mut rest, from).map_err(Error::io("read", name))?;
    trailing.synced = highest_synced(&rest[..filled], hole);
    Ok(trailing)
}

/// The start and order of records are unknown here, so every aligned offset is tried, and only checksum and LSN count.
/// The cheap check of a few fields comes first: after a hole most offsets are in the middle of a record.
fn highest_synced(bytes: &[u8], hole: Lsn) -> Lsn {
    let mut highest = Lsn::ZERO;
    let mut at = 0;
    while let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER_BYTES>()) {
        let (length, lsn, synced) = record::claimed(head);
        let is_possible = (HEADER_BYTES..=MAX_RECORD_BYTES).contains(&(length as usize)) && lsn > hole && synced < lsn;
        match is_possible.then(|| record::decode(&bytes[at..])) {
            Some(Ok(record)) => {
                highest = highest.max(record.header.synced);
                at += record::slot_bytes(record.payload.len());
            }
            _ => at += ALIGN_BYTES,
        }
    }
    highest
}

/// Whether a file holds only zeros from an offset on. Stops reading at the first other byte.
pub(crate) fn is_zero_from<S: Storage>(storage: &S, name: &str, offset: u64) -> Result<bool, Error> {
    let file = storage.open_to_read(name).map_err(Error::io("open", name))?;
    let (mut block, mut at) = (vec![0; BLOCK_BYTES], offset);
    loop {
        let bytes = file.read_at(&mut block, at).map_err(Error::io("read", name))?;
        if bytes == 0 || !is_zero(&block[..bytes]) {
            return Ok(bytes == 0);
        }
        at += bytes as u64;
    }
}

pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(PAGE_BYTES).all(|chunk| *chunk == ZEROS[..chunk.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Faults;
    use crate::record::{Header, Kind};

    #[test]
    fn only_whole_records_after_the_hole_prove_a_sync() {
        let encode = |slot: &mut [u8], lsn: u64, synced: u64, payload: &[u8]| {
            let header = Header {
                lsn: Lsn(lsn),
                synced: Lsn(synced),
                time: 0,
                owner: 0,
                epoch: 1,
                previous_crc: 0,
                version: 0,
                kind: Kind::CleanStop,
            };
            record::encode(slot, &header, payload);
        };
        let check = |what: &str, build: &dyn Fn(&mut Vec<u8>), first: Option<u64>, last: Option<u64>, synced: u64| {
            let mut bytes = vec![0; 4096];
            build(&mut bytes);
            let world = Faults::new(1);
            world.put("file", &bytes);
            let trailing = read_trailing(&world, "file", 64, Lsn(7)).expect("readable");
            assert_eq!(
                (trailing.first_byte, trailing.last_byte, trailing.synced),
                (first, last, Lsn(synced)),
                "{what}"
            );
            assert_eq!(is_zero_from(&world, "file", 64).expect("readable"), first.is_none(), "{what}");
        };
        check("nothing", &|_| {}, None, None, 0);
        check("before the place", &|b| b[63] = 1, None, None, 0);
        check("one byte", &|b| b[4095] = 1, Some(4095), Some(4095), 0);
        check("ends in zeros", &|b| encode(&mut b[800..], 9, 8, &[]), Some(800), Some(850), 8);
        check("ends in many zeros", &|b| encode(&mut b[800..], 9, 8, &[0; 2000]), Some(800), Some(850), 8);
        check("at the hole", &|b| encode(&mut b[800..], 7, 6, &[]), Some(800), Some(850), 0);
        check("claims to be synced itself", &|b| encode(&mut b[800..], 9, 9, &[]), Some(800), Some(850), 0);
        check("not aligned", &|b| encode(&mut b[801..], 9, 8, &[]), Some(801), Some(851), 0);
        let two = |b: &mut Vec<u8>| {
            encode(&mut b[800..], 11, 5, &[1; 8]);
            encode(&mut b[1000..], 10, 4, &[1; 8]);
        };
        check("out of order", &two, Some(800), Some(1063), 5);
        let inside = |b: &mut Vec<u8>| {
            let mut payload = vec![0; 64];
            encode(&mut payload, 20, 19, &[1; 8]);
            encode(&mut b[800..], 11, 5, &payload);
        };
        check("one in the payload of another", &inside, Some(800), Some(919), 5);
    }
}
