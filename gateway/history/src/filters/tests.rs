use super::*;
use engine::look_up::filters::id_hash;
use engine::time::HOUR;
use std::collections::BTreeSet;
use std::fs;

const LOG: u128 = 0x7ab1_e000_0000_0000_0000_0000_0000_0001;
/// An hour in 2026.
const NOW: u32 = 497_480;

fn key(user: u64, id: &str, hour: u32) -> FilterKey {
    FilterKey { user: UserId(user), kind: Kind::ClientOrderId, hash: id_hash(id), hour }
}

fn hashed(user: u64, hash: u64, hour: u32) -> FilterKey {
    FilterKey { user: UserId(user), kind: Kind::OrderHash, hash: engine::look_up::filters::mix(hash), hour }
}

fn asked(filters: &OpenFilters, key: FilterKey, since: u32) -> May {
    filters.may_have(key.user, key.kind, key.hash, Timestamp(u64::from(since) * HOUR))
}

/// What the folder of a test is opened as.
fn reopened(folder: &Path, bytes_max: u64) -> Result<(FilterWriter, OpenFilters), FilterError> {
    let filters = OpenFilters::default();
    Ok((FilterWriter::open(folder, LOG, bytes_max, &filters, 0)?, filters))
}

fn created(folder: &Path, bytes_max: u64) -> (FilterWriter, OpenFilters) {
    let filters = OpenFilters::default();
    (FilterWriter::create(folder, LOG, bytes_max, &filters).expect("an empty folder"), filters)
}

/// A million ids over three days: each is found, and of a million others less than one in a hundred.
#[test]
fn a_million_names_have_few_false_positives() {
    let place = tempfile::tempdir().expect("a folder");
    let (mut writer, filters) = created(place.path(), 256 << 20);
    let count = 1_000_000_u32;
    let hour = |number: u32| NOW - 71 + number / (count / 72 + 1);
    for number in 0..count {
        writer.add(key(u64::from(number % 1_000), &format!("order-{number}"), hour(number)));
        if number.is_multiple_of(50_000) {
            writer.sync(u64::from(number) + 1).expect("synced");
        }
    }
    writer.sync(u64::from(count)).expect("synced");
    let since = NOW - 72;
    let (mut false_ones, mut cases) = (0, 0);
    for number in 0..count {
        let known = key(u64::from(number % 1_000), &format!("order-{number}"), 0);
        assert_eq!(asked(&filters, known, since), May::Perhaps, "{number}");
        // The same id of another user, and another id of the same user.
        let others = [
            key(u64::from(number % 1_000) + 1, &format!("order-{number}"), 0),
            key(u64::from(number % 1_000), &format!("order-{}", number + count), 0),
        ];
        false_ones += others.iter().filter(|other| asked(&filters, **other, since) != May::No).count();
        cases += 3;
    }
    let rate = false_ones as f64 / f64::from(2 * count);
    let bits = filters.bytes() as f64 * 8.0 / f64::from(count);
    println!(
        "filters: {cases} cases, {false_ones} false positives ({:.3} %), {} filters, {bits:.1} bits a name",
        rate * 100.0,
        filters.spans()
    );
    assert!(rate < 0.01, "{rate}");
    assert!(filters.spans() <= 12, "{}", filters.spans());
    // A filter that answers yes to everything, or to nothing, would not pass: half of the hours are too old here.
    let too_old =
        (0..1_000).filter(|number| asked(&filters, key(*number, &format!("order-{number}"), 0), NOW) != May::No);
    assert!(too_old.count() < 20, "names of the first hour are not asked for by the last");
}

/// The names of each hour count for questions about it and about earlier hours, before and after a restart.
#[test]
fn a_name_counts_for_times_up_to_its_hour() {
    let place = tempfile::tempdir().expect("a folder");
    let (mut writer, filters) = created(place.path(), 64 << 20);
    let mut cases = 0;
    let names: Vec<FilterKey> = (0..5_000_u32).map(|number| key(7, &number.to_string(), NOW + number / 100)).collect();
    names.iter().for_each(|name| writer.add(*name));
    writer.sync(9).expect("synced");
    let (again, after) = reopened(place.path(), 64 << 20).expect("whole");
    assert_eq!(again.upto(), 9);
    for filters in [&filters, &after] {
        for name in &names {
            for since in [0, NOW, name.hour] {
                assert_eq!(asked(filters, *name, since), May::Perhaps, "{name:?} since {since}");
                cases += 1;
            }
            assert_eq!(asked(filters, *name, NOW + 50), May::No, "{name:?}: no name is as new");
        }
    }
    assert_eq!(asked(&OpenFilters::default(), names[0], 0), May::Unknown, "closed filters know nothing");
    println!("times of names: {cases} cases");
}

/// Names that were synced are there after a kill at any point; names that were not may be.
#[test]
fn a_restart_finds_what_was_synced() {
    let place = tempfile::tempdir().expect("a folder");
    let (mut writer, _) = created(place.path(), 8 << 20);
    let (mut synced, mut cases, mut upto) = (BTreeSet::new(), 0, 0);
    for round in 0..40_u64 {
        // Enough names that spans end and files are written again.
        for number in 0..5_000 {
            let name = key(round, &format!("{round}-{number}"), NOW + round as u32 / 4);
            writer.add(name);
            synced.insert(name);
        }
        writer.add(hashed(round, round, NOW + round as u32 / 4));
        synced.insert(hashed(round, round, NOW + round as u32 / 4));
        upto += 3;
        writer.sync(upto).expect("synced");
        // Not synced.
        writer.add(key(99, &format!("lost {round}"), NOW));
        if round % 5 == 4 {
            drop(writer);
            let (again, filters) = reopened(place.path(), 8 << 20).expect("whole");
            assert_eq!(again.upto(), upto, "round {round}");
            for name in &synced {
                assert_eq!(asked(&filters, *name, NOW), May::Perhaps, "round {round}: {name:?}");
                cases += 1;
            }
            writer = again;
        }
    }
    let files = fs::read_dir(place.path()).expect("readable").count();
    assert!(files < 20, "files that do not count are removed: {files}");
    println!("restarts of filters: {cases} cases");
}

/// Every file damaged at many places, cut and missing: an error, or fewer names with a number that says so.
#[test]
fn damage_is_found() {
    let place = tempfile::tempdir().expect("a folder");
    let names: Vec<FilterKey> = (0..3_000).map(|number| key(7, &format!("{number}"), NOW)).collect();
    {
        let (mut writer, _) = created(place.path(), 1 << 20);
        // The first thousand is in a span's file, each of the others in a batch.
        names[..1_000].iter().for_each(|name| writer.add(*name));
        writer.sync(1).expect("synced");
        writer.write_spans().expect("written");
        for (number, thousand) in names.chunks(1_000).enumerate().skip(1) {
            thousand.iter().for_each(|name| writer.add(*name));
            writer.add(hashed(7, number as u64, NOW));
            writer.sync(number as u64 + 1).expect("synced");
        }
    }
    let files: Vec<_> =
        fs::read_dir(place.path()).expect("readable").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    let whole: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("readable")).collect();
    let (mut refused, mut shorter, mut cases) = (0, 0, 0);
    let mut check = |what: &str, is_names: bool| {
        match reopened(place.path(), 1 << 20) {
            Err(FilterError::Damaged(_) | FilterError::Missing | FilterError::Later | FilterError::Foreign) => {
                refused += 1;
            }
            Err(other) => panic!("{what}: {other}"),
            Ok((writer, filters)) => {
                assert!(is_names, "{what}: only names may end early");
                assert!(writer.upto() < 3, "{what}: {}", writer.upto());
                let kept = writer.upto().max(1) as usize * 1_000;
                assert!(names[..kept].iter().all(|name| asked(&filters, *name, NOW) == May::Perhaps), "{what}");
                shorter += 1;
            }
        }
        cases += 1;
    };
    for (file, bytes) in files.iter().zip(&whole) {
        let (name, is_names) = (file.display(), file.extension().is_some_and(|extension| extension == "names"));
        let restore = || files.iter().zip(&whole).for_each(|(file, bytes)| fs::write(file, bytes).expect("written"));
        let step = (bytes.len() / 150).max(1);
        for at in (0..bytes.len()).step_by(step) {
            for bit in [0, 7] {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                fs::write(file, &damaged).expect("written");
                check(&format!("{name}: bit {bit} of byte {at}"), is_names);
                restore();
            }
            fs::write(file, &bytes[..at]).expect("written");
            check(&format!("{name}: cut at {at}"), is_names);
            restore();
        }
        fs::remove_file(file).expect("removed");
        check(&format!("{name}: missing"), false);
        restore();
        if !is_names {
            fs::write(file, [&bytes[..], &[0; 64]].concat()).expect("written");
            check(&format!("{name}: longer"), false);
            restore();
        }
    }
    assert!(refused > 500 && shorter > 200, "{refused}, {shorter}");
    println!("damaged filters: {cases} cases, {refused} refused, {shorter} shorter");
    // Zeros after the names, as in a file that was made longer and not written, are not names.
    let at = files.iter().position(|file| file.extension().is_some_and(|extension| extension == "names"));
    let at = at.expect("a file of names");
    fs::write(&files[at], [&whole[at][..], &[0; 4_096]].concat()).expect("written");
    assert_eq!(reopened(place.path(), 1 << 20).expect("whole").0.upto(), 3);
}

#[test]
fn filters_of_another_log_or_a_later_program_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    drop(created(place.path(), 1 << 20));
    let filters = OpenFilters::default();
    let error = FilterWriter::open(place.path(), 7, 1 << 20, &filters, 0).expect_err("another log");
    assert!(matches!(error, FilterError::Foreign), "{error}");
    assert_eq!(asked(&filters, key(1, "a", NOW), NOW), May::Unknown, "they stay closed");
    let about = place.path().join("about");
    let mut bytes = fs::read(&about).expect("readable");
    bytes[7] += 1;
    fs::write(&about, bytes).expect("written");
    assert!(matches!(reopened(place.path(), 1 << 20), Err(FilterError::Later)));
    assert!(matches!(reopened(&place.path().join("nothing"), 1 << 20), Err(FilterError::Missing)));
}

/// With a small bound the oldest filters leave: what they covered is unknown, never "no".
#[test]
fn memory_is_bounded_and_what_left_is_unknown() {
    let (bytes_max, mut cases) = (1 << 20, 0);
    let place = tempfile::tempdir().expect("a folder");
    let (mut writer, filters) = created(place.path(), bytes_max);
    let mut names = Vec::new();
    for hour in 0..40 {
        for number in 0..30_000 {
            let name = key(3, &format!("{hour}-{number}"), NOW + hour);
            writer.add(name);
            if number < 50 {
                names.push(name);
            }
        }
        names.push(hashed(3, u64::from(hour), NOW + hour));
        writer.add(hashed(3, u64::from(hour), NOW + hour));
        writer.sync(u64::from(hour) + 1).expect("synced");
        assert!(filters.bytes() <= bytes_max, "{} bytes", filters.bytes());
        for name in &names {
            for since in [name.hour, name.hour.saturating_sub(3), NOW] {
                assert_ne!(asked(&filters, *name, since), May::No, "{name:?} since {since}");
                cases += 1;
            }
        }
    }
    assert_eq!(asked(&filters, names[0], NOW), May::Unknown, "the first hour has left");
    assert_eq!(asked(&filters, key(3, "never", 0), NOW + 39), May::No, "the last hour is there");
    assert_eq!(asked(&filters, hashed(3, 7_777, 0), 0), May::No, "the filter of hashes is whole");
    let (_, after) = reopened(place.path(), bytes_max).expect("whole");
    assert!(after.bytes() <= bytes_max);
    for name in &names {
        assert_ne!(asked(&after, *name, name.hour), May::No, "{name:?}");
        cases += 1;
    }
    // A hash counts for ever: when some have left, the others are of no use and leave, too.
    for number in 0..400_000 {
        writer.add(hashed(3, 1_000 + number, NOW + 39));
        assert!(filters.bytes() <= bytes_max);
    }
    writer.sync(99).expect("synced");
    let (_, after) = reopened(place.path(), bytes_max).expect("whole");
    for filters in [&filters, &after] {
        for number in [0, 7, 1_000, 401_000, 999_999] {
            assert_eq!(asked(filters, hashed(3, number, 0), 0), May::Unknown, "{number}");
            cases += 1;
        }
        assert_eq!(asked(filters, key(3, "39-0", 0), NOW + 39), May::Perhaps, "ids are not concerned");
        assert_eq!(asked(filters, key(3, "never", 0), NOW + 39), May::No, "ids are not concerned");
    }
    println!("bounded filters: {cases} cases, {} bytes", filters.bytes());
}

/// The hash that makes all of them leave is in no filter: none of them may be denied, also after a start that comes before
/// the next files, with the same bound or a higher one.
#[test]
fn hashes_that_have_left_stay_unknown_after_a_start() {
    let place = tempfile::tempdir().expect("a folder");
    let bytes_max = 1 << 20;
    let (mut writer, filters) = created(place.path(), bytes_max);
    let asked_for = |filters: &OpenFilters, number: u64| asked(filters, hashed(3, number, 0), 0);
    let (mut number, mut cases) = (0, 0);
    // Small moves, so that files are written long before the one that matters.
    while asked_for(&filters, 0) != May::Unknown {
        for _ in 0..100 {
            writer.add(hashed(3, number, NOW));
            number += 1;
        }
        writer.sync(number).expect("synced");
        assert!(number < 1_000_000, "they never leave");
    }
    for more in 0..3 {
        for bytes_max in [bytes_max, 64 << 20] {
            let (again, after) = reopened(place.path(), bytes_max).expect("whole");
            assert_eq!(again.upto(), number);
            for number in [0, 1, number / 2, number - 101, number - 100, number - 99, number - 1] {
                assert_ne!(asked_for(&after, number), May::No, "{number} with {bytes_max} bytes after {more}");
                cases += 1;
            }
        }
        writer.add(hashed(3, number, NOW));
        number += 1;
        writer.sync(number).expect("synced");
    }
    println!("hashes that have left: {cases} cases, {number} hashes");
}

/// Ids that count no longer leave; a question about their time is then not answered with no.
#[test]
fn what_counts_no_longer_is_forgotten() {
    let place = tempfile::tempdir().expect("a folder");
    let (mut writer, filters) = created(place.path(), 64 << 20);
    for hour in 0..80 {
        for number in 0..20_000 {
            writer.add(key(3, &format!("{hour}-{number}"), NOW + hour));
        }
    }
    let before = filters.spans();
    writer.forget(NOW + 60);
    assert!(filters.spans() < before, "{} of {before}", filters.spans());
    assert_eq!(asked(&filters, key(3, "0-0", 0), NOW), May::Unknown);
    for hour in 60..80 {
        assert_eq!(asked(&filters, key(3, &format!("{hour}-19999"), 0), NOW + 60), May::Perhaps);
    }
    writer.forget(NOW + 1_000);
    writer.add(key(3, "the next", NOW + 1_001));
    assert_eq!(asked(&filters, key(3, "the next", 0), NOW + 1_000), May::Perhaps);
}

/// Filters made again from the names of a store have the same names, in any order, as far as they count and fit.
#[test]
fn filters_are_rebuilt_from_names() {
    let place = tempfile::tempdir().expect("a folder");
    let names: Vec<FilterKey> = (0..60_000_u64)
        .map(|number| match number % 10 {
            0 => hashed(number % 77, number, NOW - 500 + (number % 500) as u32),
            _ => key(number % 77, &format!("{number}"), NOW - 100 + (number * 7 % 100) as u32),
        })
        .collect();
    let stored = || names.iter().map(|name| Ok::<FilterKey, FilterError>(*name));
    let mut cases = 0;
    for (bytes_max, is_whole) in [(64 << 20, true), (1 << 20, true)] {
        let filters = OpenFilters::default();
        let from = (41, NOW - 72);
        let mut writer =
            FilterWriter::rebuild(place.path(), LOG, bytes_max, &filters, from, stored).expect("readable names");
        assert_eq!(writer.upto(), 41);
        assert!(filters.bytes() <= bytes_max);
        writer.add(key(5, "after", NOW + 1));
        writer.sync(42).expect("synced");
        let (again, after) = reopened(place.path(), bytes_max).expect("whole");
        assert_eq!(again.upto(), 42);
        for filters in [&filters, &after] {
            assert_eq!(asked(filters, key(5, "after", 0), NOW), May::Perhaps);
            for name in &names {
                let counts = name.kind == Kind::OrderHash || name.hour >= NOW - 72;
                if counts {
                    assert_eq!(asked(filters, *name, name.hour) == May::Perhaps, is_whole, "{name:?}");
                    cases += 1;
                }
            }
            let others = (0..10_000).filter(|number| {
                asked(filters, key(1, &format!("other {number}"), 0), NOW - 72) != May::No
                    || asked(filters, hashed(1, 1_000_000 + number, 0), 0) != May::No
            });
            let others = others.count();
            assert!(others < 300, "{others} false positives of 20,000");
        }
        assert_eq!(asked(&after, names[1], NOW - 73), May::Unknown, "ids before that were not added");
    }
    let unreadable = || std::iter::once(Err::<FilterKey, FilterError>(FilterError::Failed));
    let filters = OpenFilters::default();
    let failed = FilterWriter::rebuild(place.path(), LOG, 1 << 20, &filters, (41, 0), unreadable);
    assert!(matches!(failed, Err(FilterError::Failed)));
    assert_eq!(asked(&filters, names[1], NOW), May::Unknown, "they stay closed");
    println!("rebuilt filters: {cases} cases");
}

/// After a write that failed nothing more is promised.
#[test]
fn a_failed_write_is_final() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("filters");
    let (mut writer, _) = created(&folder, 1 << 20);
    for number in 0..200_000 {
        writer.add(key(1, &number.to_string(), NOW));
    }
    // The names go to an open file; the spans need new ones.
    fs::remove_dir_all(&folder).expect("removed");
    assert!(matches!(writer.sync(1), Err(FilterError::Io(_))));
    fs::create_dir_all(&folder).expect("made");
    assert!(matches!(writer.sync(2), Err(FilterError::Failed)));
}

/// A reader on another thread that was notified of an add sees its name.
#[test]
fn readers_see_what_was_added() {
    let place = tempfile::tempdir().expect("a folder");
    let (mut writer, filters) = created(place.path(), 64 << 20);
    let (send, receive) = std::sync::mpsc::channel::<u64>();
    let reader = std::thread::spawn(move || {
        let mut cases = 0;
        while let Ok(number) = receive.recv() {
            assert_eq!(asked(&filters, key(1, &number.to_string(), 0), NOW), May::Perhaps, "{number}");
            cases += 1;
        }
        cases
    });
    for number in 0..300_000_u64 {
        writer.add(key(1, &number.to_string(), NOW));
        send.send(number).expect("the reader runs");
    }
    drop(send);
    println!("names seen by another thread: {} cases", reader.join().expect("no panic"));
}
