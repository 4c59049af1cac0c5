//! File names of a log's directory.

use crate::Lsn;

/// The meaning of a file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Segment(Lsn),
    Spare(u64),
    Snapshot(Lsn),
    Making,
    Other,
}

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
        // Spares that are made next need higher numbers.
        return digits(stem, 8).filter(|number| *number < u64::MAX / 2).map_or(Name::Other, Name::Spare);
    }
    if name.ends_with(".making") { Name::Making } else { Name::Other }
}

#[cfg(test)]
mod tests {
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
}
