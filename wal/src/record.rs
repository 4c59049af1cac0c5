//! One record as bytes: header, checksum, bounds. Pure: uses no file and no log.
//!
//! ```text
//!   0        4      8     16       24     32      40      44         48        50     52        56
//!   | length | crc | lsn | synced | time | owner | epoch | previous | version | kind | reserved | payload … | 0-pad to 8
//! ```
//!
//! Little-endian. `length` counts header and payload, not the padding; length 0 means "nothing was written here".
//! `crc` is CRC32C over all other bytes of the record: the four of `length`, then everything from `lsn` on.
//!
//! Whether a record is the *right* one is not decided here: `scan` checks density, epoch and chain.

use crate::{Lsn, sys};

/// Bytes of a record before its payload.
pub const HEADER_BYTES: usize = 56;

/// Largest record, header included, in bytes. A length above it is damage and is never used to address memory.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

/// Largest payload, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = MAX_RECORD_BYTES - HEADER_BYTES;

/// Records start at multiples of this many bytes.
pub const ALIGN_BYTES: usize = 8;

/// The purpose of a record, as far as the log distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Kind {
    /// The facts of one command; opaque here.
    Mutations = 1,
    /// First record of every start of the writing process. Empty payload.
    EpochStart = 2,
    /// Last record of a clean stop. Empty payload.
    CleanStop = 3,
    /// Fills space so that what follows begins at a block of the device. The payload has no meaning.
    Padding = 4,
    /// An operator started the log although synced records were lost; the payload is the loss ([`crate::Loss`]).
    LossAccepted = 5,
}

impl Kind {
    /// The kind with this number, or `None`: a record of a newer format, which must be refused and not skipped.
    pub fn from_number(number: u16) -> Option<Kind> {
        Some(match number {
            1 => Kind::Mutations,
            2 => Kind::EpochStart,
            3 => Kind::CleanStop,
            4 => Kind::Padding,
            5 => Kind::LossAccepted,
            _ => return None,
        })
    }
}

/// The fields of a record that are stored with its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Dense number, from 1.
    pub lsn: Lsn,
    /// Highest LSN covered by a successful sync when this record was appended. For recovery it proves that these were
    /// promised.
    pub synced: Lsn,
    /// Microseconds since 1970; below that of the record before only if [`crate::Log::append_set_back`] wrote it.
    pub time: u64,
    /// The entity that the payload belongs to; opaque here.
    pub owner: u64,
    /// Number of the process start that wrote it, from 1.
    pub epoch: u32,
    /// `crc` of LSN − 1; 0 in LSN 1.
    pub previous_crc: u32,
    /// Format of the payload; opaque here.
    pub version: u16,
    /// The purpose of the record.
    pub kind: Kind,
}

/// A record decoded from a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its stored fields.
    pub header: Header,
    /// Its checksum, which the next record repeats.
    pub crc: u32,
    /// The payload passed to append.
    pub payload: &'a [u8],
}

/// Why a slice does not begin with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Length 0: nothing was written here.
    Empty,
    /// Length below that of a header or above [`MAX_RECORD_BYTES`].
    Length(u32),
    /// The slice ends before the record does; the number of bytes needed.
    Short(usize),
    /// The bytes are not those that were written.
    Checksum {
        /// The checksum in the record.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// The checksum is right, but the kind is unknown: a newer program wrote it.
    Kind(u16),
    /// The checksum is right, but a field that must be 0 is not: a newer program wrote it.
    Reserved(u32),
}

/// Bytes a record takes in its segment: header, payload, and zeros up to the next multiple of [`ALIGN_BYTES`].
#[inline]
pub const fn slot_bytes(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).next_multiple_of(ALIGN_BYTES)
}

/// Writes header and payload at the start of `slot` and returns the record's checksum.
///
/// The padding is not written: a slot is in a zero-filled segment.
///
/// # Panics
/// When the slot is shorter than the record, or the record is longer than [`MAX_RECORD_BYTES`].
#[inline]
pub fn encode(slot: &mut [u8], header: &Header, payload: &[u8]) -> u32 {
    let length = HEADER_BYTES + payload.len();
    assert!(length <= MAX_RECORD_BYTES, "a record has at most {MAX_RECORD_BYTES} bytes, this one {length}");
    let words = [
        header.lsn.0,
        header.synced.0,
        header.time,
        header.owner,
        u64::from(header.epoch) | u64::from(header.previous_crc) << 32,
        u64::from(header.version) | (header.kind as u64) << 16,
    ];
    // From the arguments and not from the slot: a load of bytes that were just stored in smaller pieces waits until the
    // stores have reached the cache, and the page is cold.
    let crc = checksum(length as u32, &words, payload);
    let (head, body) = slot[..length].split_at_mut(HEADER_BYTES);
    let (head, _) = head.as_chunks_mut::<8>();
    head[0] = (length as u64 | u64::from(crc) << 32).to_le_bytes();
    for (place, word) in head[1..].iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    body.copy_from_slice(payload);
    crc
}

/// Reads the record at the start of `bytes`; ignores what follows it.
#[inline(always)] // Its result is large; built in place it costs a fifth less.
pub fn decode(bytes: &[u8]) -> Result<Record<'_>, Damage> {
    let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(short_of_header(bytes));
    };
    let length = u32_at(head, 0);
    if !(HEADER_BYTES as u32..=MAX_RECORD_BYTES as u32).contains(&length) {
        return Err(if length == 0 { Damage::Empty } else { Damage::Length(length) });
    }
    let Some(record) = bytes.get(..length as usize) else {
        return Err(Damage::Short(length as usize));
    };
    let stored = u32_at(head, 4);
    let computed = checksum(length, &[], &record[8..]);
    if stored != computed {
        return Err(Damage::Checksum { stored, computed });
    }
    let number = u16_at(head, 50);
    let Some(kind) = Kind::from_number(number) else {
        return Err(Damage::Kind(number));
    };
    let reserved = u32_at(head, 52);
    if reserved != 0 {
        return Err(Damage::Reserved(reserved));
    }
    Ok(Record {
        header: Header {
            lsn: Lsn(u64_at(head, 8)),
            synced: Lsn(u64_at(head, 16)),
            time: u64_at(head, 24),
            owner: u64_at(head, 32),
            epoch: u32_at(head, 40),
            previous_crc: u32_at(head, 44),
            version: u16_at(head, 48),
            kind,
        },
        crc: stored,
        payload: &record[HEADER_BYTES..],
    })
}

/// Length, LSN and `synced` at the start of `bytes`, unchecked: a cheap test before the cost of a checksum.
#[inline]
pub(crate) fn claimed(bytes: &[u8; HEADER_BYTES]) -> (u32, Lsn, Lsn) {
    (u32_at(bytes, 0), Lsn(u64_at(bytes, 8)), Lsn(u64_at(bytes, 16)))
}

#[cold]
fn short_of_header(bytes: &[u8]) -> Damage {
    // Fewer bytes than a header cannot hold a record; zeros there mean that nothing was written.
    if bytes.iter().all(|byte| *byte == 0) { Damage::Empty } else { Damage::Short(HEADER_BYTES) }
}

/// CRC32C of the four bytes of `length`, the bytes of `head`, and `body`.
#[inline]
fn checksum(length: u32, head: &[u64], body: &[u8]) -> u32 {
    if let Some(crc) = sys::checksum(length, head, body) {
        return crc;
    }
    let crc = crc32c::crc32c(&length.to_le_bytes());
    let crc = head.iter().fold(crc, |crc, word| crc32c::crc32c_append(crc, &word.to_le_bytes()));
    crc32c::crc32c_append(crc, body)
}

#[inline]
fn u16_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

#[inline]
fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[inline]
fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Rng;

    fn header() -> Header {
        Header {
            lsn: Lsn(0x0102_0304_0506_0708),
            synced: Lsn(0x1112_1314_1516_1718),
            time: 0x2122_2324_2526_2728,
            owner: 0x3132_3334_3536_3738,
            epoch: 0x4142_4344,
            previous_crc: 0x5152_5354,
            version: 0x6162,
            kind: Kind::Mutations,
        }
    }

    /// Version 1 of the record format, byte by byte. Old logs stay readable as long as this test is not touched.
    #[test]
    fn golden_bytes() {
        let mut slot = vec![0u8; slot_bytes(5)];
        let crc = encode(&mut slot, &header(), b"hello");
        #[rustfmt::skip]
        let golden: [u8; 64] = [
            61, 0, 0, 0,
            0x9b, 0x41, 0xa2, 0x01,
            8, 7, 6, 5, 4, 3, 2, 1,
            0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
            0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
            0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
            0x44, 0x43, 0x42, 0x41,
            0x54, 0x53, 0x52, 0x51,
            0x62, 0x61,
            1, 0,
            0, 0, 0, 0,
            b'h', b'e', b'l', b'l', b'o', 0, 0, 0,
        ];
        assert_eq!(slot, golden);
        let mut plain = golden[0..4].to_vec();
        plain.extend_from_slice(&golden[8..61]);
        assert_eq!(crc, crc32c::crc32c(&plain), "the checksum is plain CRC32C over the bytes around it");
        let record = decode(&slot).expect("golden bytes are a record");
        assert_eq!((record.header, record.payload, record.crc), (header(), b"hello".as_slice(), crc));
    }

    #[test]
    fn every_kind_keeps_its_number() {
        let kinds = [Kind::Mutations, Kind::EpochStart, Kind::CleanStop, Kind::Padding, Kind::LossAccepted];
        for (number, kind) in (1u16..).zip(kinds) {
            assert_eq!((kind as u16, Kind::from_number(number)), (number, Some(kind)));
        }
        assert_eq!((Kind::from_number(0), Kind::from_number(6)), (None, None));
    }

    #[test]
    fn round_trip_of_every_size_around_the_edges() {
        let sizes = (0..300).chain([4095, 4096, 4097, MAX_PAYLOAD_BYTES - 1, MAX_PAYLOAD_BYTES]);
        let mut cases = 0;
        for payload_bytes in sizes {
            let payload: Vec<u8> = (0..payload_bytes).map(|at| at as u8).collect();
            let mut slot = vec![0u8; slot_bytes(payload_bytes)];
            let crc = encode(&mut slot, &header(), &payload);
            let record = decode(&slot).expect("round trip");
            assert_eq!((record.header, record.payload, record.crc), (header(), payload.as_slice(), crc));
            cases += 1;
        }
        println!("record round trips: {cases}");
        assert!(cases > 300);
    }

    #[test]
    fn each_changed_bit_is_detected() {
        let mut slot = vec![0u8; slot_bytes(24)];
        encode(&mut slot, &header(), &[7; 24]);
        let whole = slot.clone();
        let mut cases = 0;
        for bit in 0..slot.len() * 8 {
            slot[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&slot).is_err(), "bit {bit} changed and was not detected");
            slot.copy_from_slice(&whole);
            cases += 1;
        }
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut]).is_err(), "cut at {cut} was not detected");
            cases += 1;
        }
        println!("damaged records: {cases}");
    }

    #[test]
    fn refusals_have_names() {
        let check = |change: &dyn Fn(&mut Vec<u8>), expected: Damage| {
            let mut slot = vec![0u8; slot_bytes(8)];
            encode(&mut slot, &header(), &[1; 8]);
            change(&mut slot);
            assert_eq!(decode(&slot), Err(expected));
        };
        let seal = |slot: &mut Vec<u8>| {
            let crc = checksum(64, &[], &slot[8..]);
            slot[4..8].copy_from_slice(&crc.to_le_bytes());
        };
        check(&|slot| slot[0..4].fill(0), Damage::Empty);
        check(&|slot| slot[0..4].copy_from_slice(&55u32.to_le_bytes()), Damage::Length(55));
        check(&|slot| slot[0..4].fill(0xff), Damage::Length(u32::MAX));
        check(&|slot| slot[0..4].copy_from_slice(&(1u32 << 20).to_le_bytes()), Damage::Short(1 << 20));
        check(&|slot| slot[0..4].copy_from_slice(&((1u32 << 20) + 1).to_le_bytes()), Damage::Length((1 << 20) + 1));
        check(&|slot| slot.truncate(40), Damage::Short(56));
        check(
            &|slot| {
                slot[50] = 9;
                seal(slot);
            },
            Damage::Kind(9),
        );
        check(
            &|slot| {
                slot[52] = 1;
                seal(slot);
            },
            Damage::Reserved(1),
        );
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let seed = 0x5eed_0001;
        println!("seed {seed:#x}");
        let mut rng = Rng::new(seed);
        let cases = 200_000;
        for _ in 0..cases {
            let mut bytes = vec![0u8; rng.below(200) as usize];
            bytes.iter_mut().for_each(|byte| *byte = rng.next() as u8);
            if bytes.len() > 4 && rng.below(2) == 0 {
                let length = rng.below(220) as u32;
                bytes[0..4].copy_from_slice(&length.to_le_bytes());
            }
            assert!(decode(&bytes).is_err());
        }
        println!("hostile slices: {cases}");
    }
}
