use super::*;

/// A file of two pages: the first synced, the second not. Returns what a crash left of either.
fn crashed(seed: u64) -> (Vec<u8>, Vec<u8>) {
    let world = Faults::new(seed);
    let file = world.create("file").expect("made");
    file.write_at(&[0; 8192], 0).expect("written");
    file.sync().expect("synced");
    world.sync_directory().expect("synced");
    file.write_at(&[1; 8192], 0).expect("written");
    file.sync_range(0, 4096).expect("synced");
    world.crash();
    let bytes = world.contents("file").expect("its name was synced");
    (bytes[..4096].to_vec(), bytes[4096..].to_vec())
}

#[test]
fn a_crash_keeps_synced_bytes_and_any_sectors_of_the_rest() {
    let (mut nothing, mut everything, mut some) = (0, 0, 0);
    let cases = 200;
    for seed in 0..cases {
        let (synced, unsynced) = crashed(seed);
        assert!(synced == [1; 4096], "seed {seed}");
        let kept: Vec<u8> = unsynced.chunks(512).map(|sector| sector[0]).collect();
        assert!(unsynced.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        match kept.iter().filter(|sector| **sector == 1).count() {
            0 => nothing += 1,
            8 => everything += 1,
            _ => some += 1,
        }
        assert_eq!(crashed(seed), (synced, unsynced), "seed {seed} gives one result");
    }
    println!("crashes: {cases}; of the unsynced page {nothing} kept nothing, {everything} all, {some} some");
    assert!(nothing > 20 && everything > 20 && some > 20);
}

#[test]
fn unsynced_name_changes_survive_or_not() {
    let (mut old, mut new, mut both) = (0, 0, 0);
    for seed in 0..200 {
        let world = Faults::new(seed);
        world.create("old").expect("made");
        world.sync_directory().expect("synced");
        world.rename("old", "new").expect("renamed");
        world.create("other").expect("made");
        world.crash();
        let names = world.names();
        old += u64::from(names == ["old"]);
        new += u64::from(names == ["new"]);
        both += u64::from(names == ["new", "other"]);
    }
    println!("names after a crash: {old} old, {new} new, {both} with the other");
    assert!(old > 20 && new > 20 && both > 20);
}

#[test]
fn a_second_sync_after_a_failed_one_wrongly_succeeds() {
    let world = Faults::new(1);
    let file = world.create("file").expect("made");
    file.write_at(&[0; 4096], 0).expect("written");
    file.sync().expect("synced");
    world.sync_directory().expect("synced");
    file.write_at(b"lost", 0).expect("written");
    world.fail(Call::Sync, 0, libc::EIO);
    file.sync().expect_err("it was made to fail");
    file.sync().expect("the second one succeeds");
    assert_eq!(&world.contents("file").expect("there")[..4], b"lost", "memory still has the bytes");
    world.crash();
    assert_eq!(&world.contents("file").expect("there")[..4], &[0; 4], "the disk never had them");
}

#[test]
fn a_full_disk_refuses_to_grow() {
    let world = Faults::new(1);
    world.set_capacity(Some(8192));
    let file = world.create("file").expect("made");
    file.reserve(8192).expect("room");
    file.write_at(&[1; 8192], 0).expect("reserved");
    let error = file.write_at(&[1], 8192).expect_err("no room");
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(world.free_bytes().expect("known"), 0);
}

#[test]
fn files_of_a_dead_process_do_not_write() {
    let world = Faults::new(1);
    let file = world.create("file").expect("made");
    let lock = world.lock().expect("free");
    assert!(matches!(world.lock(), Err(Error::Locked { .. })));
    world.kill();
    drop(lock);
    let _new = world.lock().expect("a dead process holds no lock");
    let ghost = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| file.write_at(b"boo", 0)));
    assert!(ghost.is_err());
}
