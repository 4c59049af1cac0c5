use super::*;

#[test]
fn names_are_read_as_they_are_made() {
    let check = |name: &str, expected: Name| assert_eq!(parse_name(name), expected, "{name}");
    check(&segment_name(Lsn(1)), Name::Segment(Lsn(1)));
    check(&segment_name(Lsn(u64::MAX)), Name::Segment(Lsn(u64::MAX)));
    check(&spare_name(7), Name::Spare(7));
    check(&spare_name(123_456_789), Name::Spare(123_456_789));
    check(&making_name(7), Name::Making);
    check(&snapshot_name(Lsn(900)), Name::Snapshot(Lsn(900)));
    check(&lost_name(&segment_name(Lsn(1))), Name::Other);
    check("1.wal", Name::Other);
    check("00000000000000000000.wal", Name::Other);
    check("99999999999999999999.wal", Name::Other);
    check("000000000000000000001.wal", Name::Other);
    check("+0000000000000000001.wal", Name::Other);
    check("0000000x.spare", Name::Other);
    check("18446744073709551615.spare", Name::Other);
    check("epoch.making", Name::Making);
    check("charts", Name::Other);
}

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
