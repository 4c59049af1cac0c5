//! Files that an operator writes or the server keeps: facts of football, incidents, samples of the uptime.

use edge::http::record::write_record;
use football::kinds::{Kind, Known};
use gateway::incidents;
use gateway::uptime::samples::{self, Samples};

/// A file of each kind is refused with at least one defect, or its records are read back as the same.
pub fn football(bytes: &[u8]) {
    for kind in Kind::ALL {
        let mut known = Known::default();
        match known.read(kind, bytes) {
            Err(defects) => {
                assert!(!defects.is_empty() && defects.len() <= 101, "{}: {} defects", kind.name(), defects.len());
                assert!(known.facts().fixtures.is_empty() && known.strays().is_empty(), "a broken file counts");
            }
            Ok(()) => {
                let facts = known.facts();
                let mut text = Vec::new();
                match kind {
                    Kind::Fixtures => write_record(&mut text, &facts.fixtures.iter().collect::<Vec<_>>()),
                    Kind::Squads => write_record(&mut text, &facts.squads.values().collect::<Vec<_>>()),
                    _ => continue,
                }
                let mut again = Known::default();
                again.read(kind, &text).unwrap_or_else(|defects| panic!("{}: {defects:?}", kind.name()));
                let mut rewritten = Vec::new();
                match kind {
                    Kind::Fixtures => {
                        write_record(&mut rewritten, &again.facts().fixtures.iter().collect::<Vec<_>>());
                    }
                    _ => write_record(&mut rewritten, &again.facts().squads.values().collect::<Vec<_>>()),
                }
                assert_eq!(text, rewritten, "{}", kind.name());
            }
        }
    }
}

/// A file of incidents is refused with a defect, or its text is read back as the same.
pub fn incidents(bytes: &[u8]) {
    match incidents::read(bytes) {
        Err(defect) => assert!(!defect.is_empty()),
        Ok(read) => assert_eq!(incidents::read(incidents::text(&read).as_bytes()), Ok(read)),
    }
}

/// A record of samples in any place, after a sound header: it is left out, or its bytes are written back as they were.
pub fn uptime(bytes: &[u8]) {
    assert!(bytes.len() >= samples::BYTES || Samples::read(bytes).is_err(), "a short file is read");
    let mut file = Samples::default().bytes();
    let first = samples::RECORD_BYTES;
    // Its own number says where a record is.
    let number = bytes.first_chunk::<4>().map_or(0, |number| u32::from_le_bytes(*number));
    let at = first * (number % samples::SLOTS + 1) as usize;
    let len = bytes.len().min(first);
    file[at..at + len].copy_from_slice(&bytes[..len]);
    let (read, damaged) = Samples::read(&file).expect("the header is sound");
    assert!(damaged <= 1);
    for day in read.days() {
        for service in day.services {
            assert!(service.down <= service.measured && service.longest <= service.down && service.measured <= 1_440);
        }
    }
    if damaged == 0 {
        assert_eq!(read.bytes(), file);
    }
}
