use super::*;
use crate::archive::hourly::tests::{Chance, FIRST, HOURS, due, recording, write};
use archive::fold::Folded;
use archive::row::Row;
use archive::store::Settings;
use std::fs::{self, OpenOptions};
use std::io::Write;

/// Small, so that rows are in many blocks and anchors are dropped.
const SMALL: Bounds = Bounds { block_bytes: 120, blocks_bytes: 1_500, anchors_bytes: 2_000 };

fn read_all(tail: &mut Tail) {
    tail.begin().expect("it begins");
    tail.look_again();
    while tail.read_some().expect("lines") {}
    assert!(tail.is_caught_up());
}

/// The book of a token at a moment of an hour that is made, from its rows.
fn folded(opening: Option<Folded>, rows: &[Row], at: Timestamp) -> Folded {
    let mut folded = opening.unwrap_or_default();
    for row in rows.iter().filter(|row| row.received <= at) {
        folded.apply(row.received, row.source, &row.event);
    }
    folded
}

/// Books of the hours that were open, from the tail as it was then, compared with the rows of these hours when they are
/// made. Returns how many were compared, and how many of them are stale.
fn compare(seed: u64, bounds: Bounds) -> (usize, usize) {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let files = recording(&mut chance, false);
    let place = tempfile::tempdir().expect("a folder");
    let (folder, root) = (place.path().join("tape"), place.path().join("archive"));
    // Two hours are open: the one that is over and not made, and the one after it.
    let open = FIRST + 1 + chance.below(u64::from(HOURS) - 3) as u32;
    write(&folder, &files, open);
    due(&folder, &root, open);
    let store = || Arc::new(Store::open(&root, Settings::default()).expect("an archive"));
    let mut tail = Tail::new(store(), &folder, Names::default(), bounds);
    read_all(&mut tail);
    // The rest of the hour comes in pieces, and then the next hour.
    for (hour, name, text) in files.iter().filter(|(hour, ..)| *hour == open || *hour == open + 1) {
        let path = folder.join(name);
        let mut at = if *hour == open { text.len() / 2 } else { 0 };
        let mut file = OpenOptions::new().create(true).append(true).open(&path).expect("a file");
        while at < text.len() {
            let end = (at + 1 + chance.below(4_000) as usize).min(text.len());
            file.write_all(&text.as_bytes()[at..end]).expect("written");
            at = end;
            if chance.one_in(3) {
                read_all(&mut tail);
            }
        }
    }
    read_all(&mut tail);
    assert!(tail.memory() <= bounds.blocks_bytes + bounds.anchors_bytes + 64 * 1_024, "{}", tail.memory());
    fs::create_dir_all(&folder).expect("a folder");
    due(&folder, &root, open + 2);
    let store = store();
    let (mut compared, mut stale) = (0, 0);
    for venue in ["polymarket", "kalshi"] {
        for hour in [open, open + 1] {
            let Some(entry) = store.hour(venue, Hour(hour)) else { continue };
            let sidecar = entry.sidecar().expect("a sidecar");
            let rows = store
                .with_hour(&entry, |file, _| file.all_rows().map(|row| Ok(row?.1)).collect::<Result<Vec<Row>, _>>());
            let rows = rows.expect("rows");
            for of_token in rows.chunk_by(|one, next| (one.market, &one.token) == (next.market, &next.token)) {
                let (market, token) = (of_token[0].market, &of_token[0].token);
                let opening =
                    store.with_hour(&entry, |_, index| index.opening_state(&market, token)).expect("an index");
                let moments = of_token
                    .iter()
                    .flat_map(|row| [row.received, row.received.plus(1_000), Timestamp(row.received.0 - 1_000)]);
                for at in moments.filter(|at| at.hour() == hour && of_token[0].received <= *at) {
                    let expected = folded(opening.clone(), of_token, at);
                    let found = tail.book_at(&market, token, at).expect("a read");
                    let what = || format!("seed {seed}, {venue} {} token {token} at {}", Hour(hour), at.millis());
                    // Whether an hour before is usable is known when it is made: then it may hand on no book.
                    if opening.is_none() && expected.snapshot_received().hour() != hour {
                        continue;
                    }
                    let Some(found) = found else {
                        assert!(!expected.is_known(), "{}", what());
                        continue;
                    };
                    let view = expected.view();
                    assert_eq!((&found.bids, &found.asks), (&view.bids, &view.asks), "{}", what());
                    assert_eq!(found.last_message, expected.last_received(), "{}", what());
                    assert_eq!(found.crossed_dropped, view.crossed_dropped, "{}", what());
                    let before = opening.as_ref().map(Folded::deduped);
                    let is_same = before.is_none_or(|before| found.deduped == expected.deduped() - before);
                    assert!(is_same, "{}", what());
                    let is_stale = sidecar.has_gap(token, expected.snapshot_received().millis(), at.millis());
                    if expected.snapshot_received().hour() == hour {
                        assert_eq!(found.is_stale, is_stale, "{}", what());
                    }
                    compared += 1;
                    stale += usize::from(found.is_stale);
                }
                assert_eq!(tail.hours(&market, Hour(hour)..Hour(hour + 1)).len(), 1);
                assert!(tail.market(&market).is_some_and(|of| of.tokens.contains(token)));
            }
        }
    }
    // What is made is dropped.
    tail.forget_before(Hour(open + 1));
    assert!(tail.all_hours().is_empty() || tail.all_hours().start.0 > open, "{:?}", tail.all_hours());
    tail.end();
    assert!(tail.all_hours().is_empty());
    (compared, stale)
}

#[test]
fn books_of_open_hours_are_those_of_the_hours_when_they_are_made() {
    let (mut compared, mut stale) = (0, 0);
    for seed in 1..=20 {
        for bounds in [SMALL, Bounds::default()] {
            let (more, of_gaps) = compare(seed, bounds);
            (compared, stale) = (compared + more, stale + of_gaps);
        }
    }
    println!("open hours: {compared} books, {stale} of them stale");
    assert!(compared > 3_000 && stale > 50, "{compared} {stale}");
}
