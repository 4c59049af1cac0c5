use super::*;
use crate::archive::hourly::tests::{Chance, FIRST, HOURS, recording, write};
use crate::archive::testing::{built, options};
use archive::store::Settings;
use std::fs;

/// Problems, and hours that were compared and not.
type Found = (usize, u64, u64);

fn compared(root: &Path, tape: &Path, of: Compared, range: Range<u32>) -> (Found, Option<&'static str>) {
    let store = Store::open(root, Settings::default()).expect("an archive");
    let range = Hour(range.start)..Hour(range.end);
    let folder = tempfile::tempdir().expect("a folder");
    let (options, names, stop) = (options(folder.path()), Names::default(), Stop::new());
    let hours = (&store, range.clone());
    let mut comparison = Comparison::with_lines(tape, hours, of, options, &names, &stop).expect("hours");
    let problems = store.verify(range, Some(&mut comparison)).expect("verified");
    assert!(problems.iter().all(|found| found.problem.contains("the recording")), "{problems:?}");
    ((problems.len(), comparison.compared, comparison.left_out), comparison.note)
}

#[test]
fn hours_are_compared_with_their_lines() {
    let place = tempfile::tempdir().expect("a folder");
    let (tape, root) = (place.path().join("tape"), place.path().join("archive"));
    let files = recording(&mut Chance(0x9e37_79b9_7f4a_7c15), false);
    write(&tape, &files, FIRST + HOURS);
    let made = built(&tape, &options(&root)).len() as u64;
    let all = 0..u32::MAX;
    let (recorded, named) = (Compared::Recorded, Compared::All);
    assert_eq!(compared(&root, &tape, recorded, all.clone()), ((0, made, 0), None));
    assert_eq!(compared(&root, &tape, named, all.clone()), ((0, made, 0), None));
    // A part of the hours.
    let ((problems, some, left_out), note) = compared(&root, &tape, recorded, FIRST + 2..FIRST + 4);
    assert!(problems == 0 && (1..made).contains(&some) && left_out == 0 && note.is_none(), "{some} of {made}");
    // Half of an hour.
    let (_, name, text) = &files[2];
    let shorter: String = text.lines().take(text.lines().count() / 2).map(|line| format!("{line}\n")).collect();
    fs::write(tape.join(name), &shorter).expect("a file");
    let ((problems, count, left_out), _) = compared(&root, &tape, recorded, all.clone());
    assert!(problems > 0 && count == made && left_out == 0, "{problems} of {count}");
    fs::write(tape.join(name), text).expect("a file");
    // The last lines are gone.
    let (last, name, text) = files.last().expect("files");
    fs::remove_file(tape.join(name)).expect("removed");
    let ((problems, count, left_out), note) = compared(&root, &tape, recorded, all.clone());
    assert!(problems == 0 && left_out > 0 && count + left_out == made && note.is_none(), "{count}, {left_out}");
    let ((problems, ..), _) = compared(&root, &tape, named, *last..u32::MAX);
    assert_eq!(problems as u64, left_out, "named, and it does not have the hour");
    fs::write(tape.join(name), text).expect("a file");
    // The first ones are gone.
    fs::remove_file(tape.join(&files[0].1)).expect("removed");
    let (found, note) = compared(&root, &tape, recorded, all.clone());
    assert_eq!(found, (0, 0, made));
    assert!(note.is_some_and(|note| note.contains("first recorded hour")), "{note:?}");
    println!("compared hours: 7 cases of {made} hours");
}

#[test]
fn imported_hours_are_compared_on_demand() {
    let place = tempfile::tempdir().expect("a folder");
    let (tape, root) = (place.path().join("tape.ndjson"), place.path().join("archive"));
    fs::write(&tape, crate::tests::both_venues(1_788_001_170_000)).expect("a tape");
    let mut importing = options(&root);
    importing.place.is_recorded = false;
    let made = built(&tape, &importing).len() as u64;
    assert_eq!(compared(&root, &tape, Compared::Recorded, 0..u32::MAX), ((0, 0, made), None));
    assert_eq!(compared(&root, &tape, Compared::All, 0..u32::MAX), ((0, made, 0), None));
    let store = Store::open(&root, Settings::default()).expect("an archive");
    let mut nothing = Comparison::without_lines();
    assert_eq!(store.verify(Hour(0)..Hour(u32::MAX), Some(&mut nothing)).expect("verified"), []);
    assert_eq!((nothing.compared, nothing.left_out), (0, made));
    println!("imported hours: 3 cases");
}
