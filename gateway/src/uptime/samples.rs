//! Samples in memory, and their bytes: a header and a ring of records of 128 bytes, each with a checksum, for 92 days.
//!
//! ```text
//! header   "papertape uptime 1\n", zeros up to byte 128
//! record   number of its two hours since 1970 (u32), 120 minutes of one byte, CRC-32C of both; or zeros
//! minute   two bits for each service: 0 not measured, 1 up, 2 down
//! ```
//!
//! The record of a number is at the number modulo the slots. A record is never across two pages, so a killed process
//! leaves it as it was or as it will be.

use edge::api::status::{DAYS, MeasuredDay, Service, ServiceDay};
use engine::time::UtcDay;
use std::collections::BTreeMap;

/// Bytes of the header, and of a record.
pub const RECORD_BYTES: usize = 128;
/// Minutes of a record.
const SPAN_MINUTES: usize = 120;
const SPANS_PER_DAY: u32 = 12;
/// Two days more than are shown.
pub const SLOTS: u32 = (DAYS + 2) * SPANS_PER_DAY;
/// Bytes of all.
pub const BYTES: usize = RECORD_BYTES * (SLOTS as usize + 1);
const MAGIC: &[u8] = b"papertape uptime 1\n";

/// One minute: whether each service is up, in the order of [`Service::ALL`]; `None`: not measured.
pub type Sample = [Option<bool>; Service::ALL.len()];

/// The minutes of two hours.
type Span = [u8; SPAN_MINUTES];

/// The samples of the last days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples(BTreeMap<u32, Span>);

/// These bytes are not those of a file of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSamples;

impl Samples {
    /// Reads all bytes; returns how many records are damaged, which are left out.
    ///
    /// # Errors
    /// Another length or header.
    pub fn read(bytes: &[u8]) -> Result<(Samples, usize), NotSamples> {
        let is_sound = bytes.len() == BYTES && bytes[..RECORD_BYTES] == header();
        if !is_sound {
            return Err(NotSamples);
        }
        let (mut samples, mut damaged) = (Samples::default(), 0);
        for (slot, record) in bytes.chunks_exact(RECORD_BYTES).skip(1).enumerate() {
            if record.iter().all(|byte| *byte == 0) {
                continue;
            }
            match span_of(record, slot as u32) {
                Some((number, span)) => _ = samples.0.insert(number, span),
                None => damaged += 1,
            }
        }
        Ok((samples, damaged))
    }

    /// All bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        bytes[..RECORD_BYTES].copy_from_slice(&header());
        for number in self.0.keys() {
            let (at, record) = self.record(*number);
            bytes[at as usize..][..RECORD_BYTES].copy_from_slice(&record);
        }
        bytes
    }

    /// The record of two hours, and where it is.
    pub fn record(&self, number: u32) -> (u64, [u8; RECORD_BYTES]) {
        let mut record = [0; RECORD_BYTES];
        if let Some(span) = self.0.get(&number) {
            record[..4].copy_from_slice(&number.to_le_bytes());
            record[4..4 + SPAN_MINUTES].copy_from_slice(span);
            let sum = crc32c::crc32c(&record[..4 + SPAN_MINUTES]);
            record[4 + SPAN_MINUTES..].copy_from_slice(&sum.to_le_bytes());
        }
        (RECORD_BYTES as u64 * (u64::from(number % SLOTS) + 1), record)
    }

    /// Adds a sample of a minute since 1970. A service that was down in an earlier sample of the minute stays down.
    /// Returns the number of the record that has changed; an older one in its place is dropped.
    pub fn note(&mut self, minute: u32, sample: &Sample) -> u32 {
        let number = minute / SPAN_MINUTES as u32;
        self.0.retain(|known, _| *known == number || known % SLOTS != number % SLOTS);
        let span = self.0.entry(number).or_insert([0; SPAN_MINUTES]);
        let byte = &mut span[minute as usize % SPAN_MINUTES];
        for (service, state) in sample.iter().enumerate() {
            let now = state.map_or(0, |is_up| if is_up { UP } else { DOWN });
            let worst = now.max(*byte >> (2 * service) & 3);
            *byte = *byte & !(3 << (2 * service)) | worst << (2 * service);
        }
        number
    }

    /// The days with a sample, oldest first.
    pub fn days(&self) -> Vec<MeasuredDay> {
        let mut days: Vec<MeasuredDay> = Vec::new();
        // The minutes in a row that each service is down, and the minute after the last one of the day.
        let (mut runs, mut next) = ([0_u16; Service::ALL.len()], 0);
        for (number, span) in &self.0 {
            let day = UtcDay(number / SPANS_PER_DAY);
            if days.last().is_none_or(|last| last.day != day) {
                days.push(MeasuredDay { day, services: Default::default() });
                runs = Default::default();
            }
            if *number != next {
                runs = Default::default();
            }
            next = number.saturating_add(1);
            let Some(MeasuredDay { services, .. }) = days.last_mut() else { continue };
            for byte in span {
                for (service, ServiceDay { measured, down, longest }) in services.iter_mut().enumerate() {
                    let state = *byte >> (2 * service) & 3;
                    *measured += u16::from(state != 0);
                    *down += u16::from(state == DOWN);
                    // A minute that is not measured ends a row.
                    runs[service] = if state == DOWN { runs[service] + 1 } else { 0 };
                    *longest = (*longest).max(runs[service]);
                }
            }
        }
        days.retain(|day| day.services.iter().any(|service| service.measured > 0));
        days
    }
}

/// The states of two bits; 0: not measured. The larger one is worse.
const UP: u8 = 1;
const DOWN: u8 = 2;

fn header() -> [u8; RECORD_BYTES] {
    let mut header = [0; RECORD_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    header
}

/// The number and the minutes of a sound record in its slot.
fn span_of(record: &[u8], slot: u32) -> Option<(u32, Span)> {
    let (content, sum) = record.split_at_checked(4 + SPAN_MINUTES)?;
    let (number, minutes) = content.split_first_chunk::<4>()?;
    let number = u32::from_le_bytes(*number);
    let is_state = |byte: &u8| (0..Service::ALL.len()).all(|service| byte >> (2 * service) & 3 != 3);
    let is_sound = crc32c::crc32c(content).to_le_bytes() == sum
        && number % SLOTS == slot
        // Minutes of the time that numbers of 32 bits reach.
        && number <= u32::MAX / SPAN_MINUTES as u32
        && minutes.iter().all(is_state);
    is_sound.then(|| Some((number, minutes.try_into().ok()?))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-10-02T00:00 in minutes.
    const DAY: u32 = 20_728 * 1_440;
    const UP_ALL: Sample = [Some(true); 4];

    fn down(service: usize) -> Sample {
        let mut sample = UP_ALL;
        sample[service] = Some(false);
        sample
    }

    /// (measured, down, longest) of a service on a day.
    fn of(samples: &Samples, day: u32, service: usize) -> Option<(u16, u16, u16)> {
        let days = samples.days();
        let found = days.iter().find(|found| found.day.0 == day)?.services[service];
        Some((found.measured, found.down, found.longest))
    }

    #[test]
    fn minutes_are_counted_by_day() {
        let mut samples = Samples::default();
        samples.note(DAY, &UP_ALL);
        samples.note(DAY, &down(2));
        samples.note(DAY, &UP_ALL);
        assert_eq!(of(&samples, 20_728, 2), Some((1, 1, 1)), "a minute that was down stays down");
        assert_eq!(of(&samples, 20_728, 0), Some((1, 0, 0)));
        // Across two records, and with a minute that is not measured.
        for minute in 115..125 {
            samples.note(DAY + minute, &down(2));
        }
        samples.note(DAY + 126, &down(2));
        samples.note(DAY + 127, &[Some(true), None, None, None]);
        assert_eq!(of(&samples, 20_728, 2), Some((12, 12, 10)));
        assert_eq!(of(&samples, 20_728, 0), Some((13, 0, 0)));
        // A row ends with the day, and with records that are not there.
        samples.note(DAY + 1_439, &down(1));
        samples.note(DAY + 1_440, &down(1));
        samples.note(DAY + 1_440 + 119, &down(1));
        samples.note(DAY + 1_440 + 240, &down(1));
        assert_eq!((of(&samples, 20_728, 1), of(&samples, 20_729, 1)), (Some((13, 1, 1)), Some((3, 3, 1))));
        assert_eq!(of(&samples, 20_730, 1), None);
        println!("days of samples: 7 cases");
    }

    #[test]
    fn bytes_are_read_back() {
        let mut samples = Samples::default();
        for minute in (0..100_000).step_by(7) {
            samples.note(DAY + minute, &down(minute as usize % 4));
        }
        let bytes = samples.bytes();
        assert_eq!(Samples::read(&bytes), Ok((samples.clone(), 0)));
        // One record at a time.
        let number = samples.note(DAY + 100_000, &UP_ALL);
        let (at, record) = samples.record(number);
        let mut changed = bytes.clone();
        changed[at as usize..][..RECORD_BYTES].copy_from_slice(&record);
        assert_eq!(Samples::read(&changed), Ok((samples, 0)));
        for wrong in [&bytes[..BYTES - 1], &[&bytes[..], &[0]].concat(), &[], &[0; BYTES]] {
            assert_eq!(Samples::read(wrong), Err(NotSamples));
        }
        let empty = Samples::default();
        assert_eq!(Samples::read(&empty.bytes()), Ok((empty, 0)));
        println!("bytes of samples: 7 cases");
    }

    /// Every bit of a record counts.
    #[test]
    fn a_damaged_record_is_left_out() {
        let mut samples = Samples::default();
        let (first, second) = (samples.note(DAY, &UP_ALL), samples.note(DAY + 120, &down(3)));
        let bytes = samples.bytes();
        let at = samples.record(first).0 as usize;
        let mut cases = 0;
        for bit in 0..RECORD_BYTES * 8 {
            let mut damaged = bytes.clone();
            damaged[at + bit / 8] ^= 1 << (bit % 8);
            let (read, count) = Samples::read(&damaged).expect("the header is sound");
            assert_eq!((read.0.keys().copied().collect::<Vec<_>>(), count), (vec![second], 1), "{bit}");
            cases += 1;
        }
        // A sound record in another slot.
        let mut moved = bytes.clone();
        moved.copy_within(at..at + RECORD_BYTES, at + 7 * RECORD_BYTES);
        assert_eq!(Samples::read(&moved).map(|(_, count)| count), Ok(1));
        // A record with a sound checksum that no server writes: a state of three, and a number of another slot.
        let forged = |change: &dyn Fn(&mut [u8])| {
            let mut bytes = bytes.clone();
            let record = &mut bytes[at..at + RECORD_BYTES];
            change(record);
            let sum = crc32c::crc32c(&record[..RECORD_BYTES - 4]).to_le_bytes();
            record[RECORD_BYTES - 4..].copy_from_slice(&sum);
            Samples::read(&bytes).map(|(_, count)| count)
        };
        assert_eq!(forged(&|record| record[9] = 0b1100), Ok(1));
        assert_eq!(forged(&|record| record[0] ^= 1), Ok(1));
        assert_eq!(forged(&|record| record[..4].copy_from_slice(&u32::MAX.to_le_bytes())), Ok(1));
        assert_eq!(forged(&|record| record[9] = 0b1001), Ok(0));
        println!("damaged records: {} cases", cases + 5);
    }

    /// A clock that goes back, or leaps by years, overwrites only what is in the same place.
    #[test]
    fn the_ring_takes_any_minute() {
        let mut samples = Samples::default();
        let span = SPAN_MINUTES as u32;
        for (minute, days) in [
            (DAY, 1),
            (DAY + 10 * 1_440, 2),
            (DAY + 3 * 1_440, 3),
            // 92 days later, in the place of the first one.
            (DAY + SLOTS * span, 3),
            (DAY, 3),
            (0, 4),
            (u32::MAX, 5),
        ] {
            samples.note(minute, &UP_ALL);
            assert_eq!(samples.days().len(), days, "{minute}");
            assert_eq!(Samples::read(&samples.bytes()), Ok((samples.clone(), 0)), "{minute}");
        }
        for minute in (0..u32::MAX - 1_000_000).step_by(1_000_003) {
            samples.note(minute, &UP_ALL);
        }
        assert!(samples.0.len() <= SLOTS as usize);
        println!("minutes of a ring: 8 cases");
    }
}
