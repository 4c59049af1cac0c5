use super::*;
use engine::time::SECOND;
use std::collections::BTreeSet;
use std::fs;

/// 2026-08-29T10 in UTC.
const FIRST: Hour = Hour(496_666);
const SEAL_AFTER: u64 = 600 * SECOND;

struct Place {
    folder: tempfile::TempDir,
    clock: Clock,
}

impl Place {
    fn new(hour: Hour) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("tape")).expect("a folder");
        Place { folder, clock: Clock::fake(Timestamp::of_hour(hour.0)) }
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("archive")
    }

    fn tape(&self) -> std::path::PathBuf {
        self.folder.path().join("tape")
    }

    /// The job of a server with these settings besides.
    fn job(&self, more: &[(&str, &str)]) -> (Keeping, Arc<Store>, Arc<Figures>) {
        let root = self.root().display().to_string();
        let flags = [("archive.dir", root.as_str()), ("journal.reserve_bytes", "0")];
        let flags = flags.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let config = Config::read(None, [], flags).expect("settings");
        let store = Arc::new(open(&config.archive).expect("an archive"));
        let figures = Arc::<Figures>::default();
        let job = Keeping::new(&config, store.clone(), Some(self.tape()), self.clock.clone(), figures.clone());
        (job, store, figures)
    }

    /// Records an hour: a market with its book, and changes until its end.
    fn record(&self, hour: Hour) {
        let begin = Timestamp::of_hour(hour.0).millis();
        let condition = format!("0x{:064x}", 7);
        let mut text = format!(
            "{{\"r\":{begin},\"v\":\"polymarket\",\"u\":\"/markets\",\"s\":200,\"b\":[{{\"id\":\"7\",\"conditionId\":\"{condition}\",\
             \"slug\":\"s\",\"clobTokenIds\":\"[\\\"71\\\",\\\"72\\\"]\",\"active\":true,\"closed\":false,\"acceptingOrders\":true,\
             \"endDate\":\"2030-11-03T00:00:00Z\"}}]}}\n"
        );
        for minute in 0..60 {
            let at = begin + minute * 60_000 + 1;
            let event = match minute {
                0 => format!(
                    "\"event_type\":\"book\",\"asset_id\":\"71\",\"timestamp\":\"{at}\",\"bids\":[[\"0.3\",\"5\"]],\"asks\":[]"
                ),
                minute => format!(
                    "\"event_type\":\"price_change\",\"timestamp\":\"{at}\",\"price_changes\":[{{\"asset_id\":\"71\",\"price\":\"0.3\",\
                     \"size\":\"{minute}\",\"side\":\"BUY\"}}]"
                ),
            };
            let event = event.replace("[[\"0.3\",\"5\"]]", "[{\"price\":\"0.3\",\"size\":\"5\"}]");
            text += &format!("{{\"r\":{at},\"v\":\"polymarket\",\"c\":\"ws-1\",\"m\":{{{event}}}}}\n");
        }
        fs::write(self.tape().join(format!("tape-{hour}.ndjson")), text).expect("a file");
    }

    fn recorded(&self) -> BTreeSet<String> {
        let names = fs::read_dir(self.tape()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        names.map(|name| name.into_string().expect("a name")).collect()
    }
}

fn hours_of(store: &Store) -> Vec<u32> {
    store.all("polymarket").iter().filter(|entry| entry.sidecar().is_ok()).map(|entry| entry.hour.0 - FIRST.0).collect()
}

fn turn(job: &mut Keeping) -> Duration {
    match job.take_turn(&Stop::new()) {
        Ok(Next::SleepFor(time)) => time,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_hour_is_made_when_it_is_due_and_nothing_is_done_before() {
    let place = Place::new(Hour(FIRST.0 + 1));
    place.record(FIRST);
    let (mut job, store, figures) = place.job(&[]);
    let end = Timestamp::of_hour(FIRST.0 + 1);
    assert_eq!(turn(&mut job), Duration::from_micros(SEAL_AFTER));
    assert!(hours_of(&store).is_empty());
    place.clock.set(end.plus(SEAL_AFTER - 1));
    assert_eq!(turn(&mut job), Duration::from_micros(1));
    place.clock.set(end.plus(SEAL_AFTER));
    assert_eq!(turn(&mut job), Duration::from_secs(3_600));
    assert_eq!(hours_of(&store), [0], "readers of the same store see it");
    let read = |figure: &AtomicU64| figure.load(Relaxed);
    assert_eq!((read(&figures.hours), read(&figures.newest)), (1, Timestamp::of_hour(FIRST.0).secs()));
    assert!(read(&figures.bytes) > 0 && !figures.is_building.load(Relaxed));
    // Until the next hour is due, no folder is read: without them nothing fails.
    fs::remove_dir_all(place.tape()).expect("removed");
    place.clock.set(end.plus(SEAL_AFTER).plus(3_599 * SECOND));
    assert_eq!(turn(&mut job), Duration::from_secs(1));
    assert_eq!(read(&figures.failed), 0);
    // When it is due, a failure is counted, and tried again after a minute.
    let due = end.plus(SEAL_AFTER).plus(3_600 * SECOND);
    for (seconds, failed) in [(0, 1), (0, 1), (59, 1), (60, 2), (119, 2), (120, 3)] {
        place.clock.set(due.plus(seconds * SECOND));
        assert_eq!(turn(&mut job), AGAIN_AFTER - Duration::from_secs(seconds % 60), "{seconds} s");
        assert_eq!(read(&figures.failed), failed, "{seconds} s");
    }
    println!("due hours: 12 cases");
}

#[test]
fn a_start_takes_up_what_was_recorded_before() {
    let place = Place::new(Hour(FIRST.0 + 5));
    (0..4).for_each(|number| place.record(Hour(FIRST.0 + number)));
    let (mut job, store, figures) = place.job(&[("archive.threads", "2")]);
    turn(&mut job);
    assert_eq!(hours_of(&store), [0, 1, 2, 3]);
    // The next process makes nothing again.
    let (mut job, store, again) = place.job(&[]);
    turn(&mut job);
    assert_eq!((figures.hours.load(Relaxed), again.hours.load(Relaxed)), (4, 0));
    assert_eq!(store.verify(Hour(0)..Hour(u32::MAX), None).expect("verified"), []);
    // Off: nothing is made.
    place.record(Hour(FIRST.0 + 4));
    place.clock.set(Timestamp::of_hour(FIRST.0 + 7));
    let (mut job, store, _) = place.job(&[("archive.build", "off")]);
    turn(&mut job);
    assert_eq!(hours_of(&store), [0, 1, 2, 3]);
    println!("starts: 3 cases");
}

#[test]
fn another_process_and_a_full_disk_are_waited_for() {
    let place = Place::new(Hour(FIRST.0 + 2));
    place.record(FIRST);
    let (mut job, store, figures) = place.job(&[]);
    let lock = open_again(&place).lock().expect("the lock");
    assert_eq!((turn(&mut job), turn(&mut job)), (AGAIN_AFTER, AGAIN_AFTER));
    assert!(hours_of(&store).is_empty());
    drop(lock);
    // No disk has so much room.
    let text = (1_u64 << 50).to_string();
    let (mut full, _, of_full) = place.job(&[("journal.reserve_bytes", &text), ("archive.raw_keep_days", "1")]);
    place.clock.set(Timestamp::of_hour(FIRST.0 + 50));
    assert_eq!(turn(&mut full), AGAIN_AFTER);
    assert_eq!((of_full.refused.load(Relaxed), of_full.raw_removed.load(Relaxed)), (1, 0));
    assert!(hours_of(&store).is_empty() && place.recorded().len() == 1, "what is not made stays");
    turn(&mut job);
    assert_eq!((hours_of(&store), figures.failed.load(Relaxed)), (vec![0], 0));
    println!("hindrances: 3 cases");
}

/// Without room on the disk, hours that are not made are not read either; with it they are again.
#[test]
fn the_end_of_a_recording_needs_room() {
    let place = Place::new(Hour(FIRST.0 + 1));
    place.record(FIRST);
    let (mut job, ..) = place.job(&[]);
    let tail = job.tail().expect("hours are made");
    turn(&mut job);
    assert!(tail.lock().has_begun());
    let reserve_bytes = std::mem::replace(&mut job.reserve_bytes, u64::MAX);
    turn(&mut job);
    assert!(!tail.lock().has_begun());
    job.reserve_bytes = reserve_bytes;
    turn(&mut job);
    assert!(tail.lock().has_begun());
    println!("the end of a recording and room: 3 turns");
}

/// What hinders the reading of hours that are not made is over long before the next hour is due: it is tried again.
#[test]
fn the_end_of_a_recording_is_read_again_after_a_failure() {
    let place = Place::new(Hour(FIRST.0 + 1));
    place.record(FIRST);
    let (mut job, _, figures) = place.job(&[]);
    let tail = job.tail().expect("hours are made");
    turn(&mut job);
    assert!(tail.lock().has_begun());
    let begun = place.clock.now();
    // The next hour is due in ten minutes. Seconds since the failure, whether the folder is there, whether the hours are
    // read, failures.
    let rows =
        [(0, false, false, 1), (5, true, false, 1), (59, true, false, 1), (60, true, true, 1), (65, true, true, 1)];
    for (seconds, is_there, is_read, failed) in rows {
        match is_there {
            true if !place.tape().exists() => {
                fs::create_dir(place.tape()).expect("a folder");
                place.record(FIRST);
            }
            true => {}
            false => {
                tail.lock().end();
                fs::remove_dir_all(place.tape()).expect("removed");
            }
        }
        place.clock.set(begun.plus(seconds * SECOND));
        assert_eq!(turn(&mut job), TAIL_EVERY, "{seconds} s");
        assert_eq!((tail.lock().has_begun(), figures.failed.load(Relaxed)), (is_read, failed), "{seconds} s");
    }
    println!("the end of a recording after a failure: {} turns", rows.len());
}

fn open_again(place: &Place) -> Store {
    Store::open(&place.root(), store::Settings::default()).expect("an archive")
}

#[test]
fn old_hours_go_unless_they_are_pinned_held_or_not_made() {
    let place = Place::new(Hour(FIRST.0 + 6));
    (0..5).for_each(|number| place.record(Hour(FIRST.0 + number)));
    let settings = [("archive.keep_days", "2"), ("archive.raw_keep_days", "1")];
    let (mut job, store, figures) = place.job(&settings);
    turn(&mut job);
    assert_eq!((hours_of(&store), place.recorded().len()), (vec![0, 1, 2, 3, 4], 5));
    // Pinned by another process, and in use by this one.
    open_again(&place).pin("polymarket", Hour(FIRST.0 + 1)).expect("pinned");
    let hold = store.hold([("polymarket".to_owned(), Hour(FIRST.0 + 2))]);
    place.record(Hour(FIRST.0 + 40));
    // A day later the older files of the recording go; the hours stay for another day.
    place.clock.set(Timestamp::of_hour(FIRST.0 + 27).plus(SEAL_AFTER));
    turn(&mut job);
    let kept = |numbers: &[u32]| -> BTreeSet<String> {
        numbers.iter().map(|number| format!("tape-{}.ndjson", Hour(FIRST.0 + number))).collect()
    };
    assert_eq!(place.recorded(), kept(&[1, 2, 3, 4, 40]));
    assert_eq!(hours_of(&store), [0, 1, 2, 3, 4]);
    place.clock.set(Timestamp::of_hour(FIRST.0 + 52).plus(SEAL_AFTER));
    turn(&mut job);
    assert_eq!(place.recorded(), kept(&[1, 2, 40]));
    assert_eq!(hours_of(&store), [1, 2, 4, 40]);
    drop(hold);
    open_again(&place).unpin("polymarket", Hour(FIRST.0 + 1)).expect("unpinned");
    place.clock.set(Timestamp::of_hour(FIRST.0 + 53).plus(SEAL_AFTER));
    turn(&mut job);
    assert_eq!((place.recorded(), hours_of(&store)), (kept(&[40]), vec![40]));
    assert_eq!((figures.removed.load(Relaxed), figures.raw_removed.load(Relaxed)), (5, 5));
    // An hour of another source is not that of the recording, whose file therefore stays.
    let name = format!("tape-{}.ndjson", Hour(FIRST.0 + 40));
    assert!(rename_source(&store), "its sidecar is changed");
    place.clock.set(Timestamp::of_hour(FIRST.0 + 70).plus(SEAL_AFTER));
    turn(&mut job);
    assert!(place.recorded().contains(&name), "{:?}", place.recorded());
    println!("retention: 5 cases");
}

/// Makes the only hour one that was imported.
fn rename_source(store: &Store) -> bool {
    let entry = store.all("polymarket").pop().expect("an hour");
    let path = ::archive::store::sidecar_path(&entry.path);
    let mut sidecar = ::archive::sidecar::Sidecar::clone(&*entry.sidecar().expect("a sidecar"));
    sidecar.source.kind = "imported".into();
    sidecar.write(&path).is_ok() && store.refresh().is_ok()
}

#[test]
fn the_job_exists_where_there_is_something_to_keep() {
    let read = |flags: &[(&str, &str)]| {
        let flags = flags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Config::read(None, [], flags).expect("settings")
    };
    let cases = [
        // settings, whether it records, whether there is a job
        (vec![], true, true),
        (vec![], false, false),
        (vec![("archive.build", "off")], true, false),
        (vec![("archive.build", "off"), ("archive.raw_keep_days", "3")], true, true),
        (vec![("archive.build", "off"), ("archive.raw_keep_days", "3")], false, false),
        (vec![("archive.keep_days", "3")], false, true),
        (vec![("archive.bytes_max", "3")], false, true),
    ];
    for (flags, is_recording, is_needed) in &cases {
        assert_eq!(Keeping::is_needed(&read(flags), *is_recording), *is_needed, "{flags:?} {is_recording}");
    }
    println!("needs: {} cases", cases.len());
}
