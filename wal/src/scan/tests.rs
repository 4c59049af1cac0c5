use super::*;
use crate::segment::SegmentHeader;

/// Segments by number and first LSN; number 0 stands for a damaged header.
fn segments(of: &[(u64, u64)]) -> Vec<SegmentFile> {
    let segment = |(number, lsn): &(u64, u64)| {
        let header = SegmentHeader {
            directory_id: [7; 16],
            number: *number,
            first_lsn: Lsn(*lsn),
            previous_crc: 0,
            bytes: 4_096,
        };
        SegmentFile {
            name: segment_name(Lsn(*lsn)),
            is_named: true,
            bytes: 4_096,
            first_lsn: Lsn(*lsn),
            header: if *number == 0 { Err(Fault::Magic) } else { Ok(header) },
        }
    };
    of.iter().map(segment).collect()
}

#[test]
fn order_is_dense_in_numbers_and_rises_in_records() {
    // Segments, the one where reading begins → the first from which on all up to that one are in order.
    for (of, index, first) in [
        (&[][..], 0, 0),
        (&[(1, 1)], 0, 0),
        (&[(1, 1), (2, 10), (3, 20)], 2, 0),
        (&[(4, 1), (5, 10), (6, 20)], 1, 0),
        (&[(1, 1), (3, 10), (4, 20)], 2, 1),
        (&[(1, 1), (2, 10), (4, 20)], 2, 2),
        (&[(1, 1), (2, 10), (4, 20)], 1, 0),
        (&[(2, 1), (1, 10)], 1, 1),
        (&[(1, 10), (2, 10)], 1, 1),
        (&[(1, 20), (2, 10)], 1, 1),
        (&[(0, 1), (2, 10), (3, 20)], 2, 1),
        (&[(1, 1), (0, 10), (3, 20)], 2, 2),
        (&[(1, 1), (2, 10)], 9, 0),
    ] {
        assert_eq!(first_in_order(&segments(of), index), first, "{of:?} from {index}");
    }
}
