//! Every byte and every length of a small log is damaged once. Recovery may cut what was never promised, or refuse. It
//! must not return a wrong record, nor drop a promised one silently.

use crate::fault::{Faults, Rng};
use crate::tests::{Fact, append, put_changed, recover, snapshot, start, tiny};
use crate::{Dir, Error, Fault, Kind, Loss, Lsn};

/// Several segments in two epochs, two snapshots, spares, and an unsynced tail.
struct Sample {
    world: Faults,
    /// All records, from LSN 1.
    facts: Vec<Fact>,
    synced: Lsn,
}

/// With early or late snapshots: replay starts in the first segment or in one of the last.
fn sample(snapshots_in_life: u32) -> Sample {
    let world = Faults::new(1);
    let mut facts = Vec::new();
    let mut synced = Lsn::ZERO;
    for life in 0..2u32 {
        let (mut running, _) = start(&world, false).expect("nothing is damaged");
        facts.push((running.log.last_lsn(), Kind::EpochStart, Vec::new()));
        for number in 0..50u8 {
            facts.push(append(&mut running, &vec![number; 40 + usize::from(number) * 5]));
            if number == 4 || number == 8 {
                running.syncer.turn().expect("no failure");
                if life == snapshots_in_life {
                    snapshot(&mut running, 0);
                }
            }
            if number == 45 {
                running.syncer.turn().expect("no failure");
                synced = running.marks.synced();
            }
        }
        running.preparer.turn().expect("room");
        world.kill();
    }
    Sample { world, facts, synced }
}

impl Sample {
    /// Damages a copy and checks what recovery does with it. Returns whether it was refused.
    fn check(&self, what: &str, damage: impl FnOnce(&Faults)) -> bool {
        let world = self.world.copy(2);
        damage(&world);
        let found = Dir::open(world.clone(), tiny()).and_then(|dir| recover(&dir, false));
        match found {
            Ok((found, recovered)) => {
                self.check_records(what, &found);
                assert!(
                    recovered.last_lsn >= self.synced,
                    "{what}: promised up to {}, found up to {}",
                    self.synced,
                    recovered.last_lsn
                );
                false
            }
            Err(Error::Lost(_) | Error::Format { .. }) => {
                self.check_override(what, &world);
                true
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }

    fn check_records(&self, what: &str, found: &[Fact]) {
        for fact in found {
            assert_eq!(Some(fact), self.facts.get(fact.0.0 as usize - 1), "{what}: a wrong record");
        }
        assert!(found.windows(2).all(|pair| pair[1].0 == pair[0].0.next()), "{what}: records are dense");
    }

    /// After a refusal an operator can continue with what is left; the log records that permanently and needs no second
    /// override.
    fn check_override(&self, what: &str, world: &Faults) {
        world.kill();
        let (running, found) = match start(world, true) {
            Ok(started) => started,
            // Without its epoch file the origin of the files is unknown.
            Err(Error::Format { file, .. }) if file == "epoch" => return,
            Err(Error::Format { fault: Fault::Version { .. }, .. }) => return,
            Err(error) => panic!("{what}: with the override: {error}"),
        };
        self.check_records(what, &found);
        let last = running.log.last_lsn();
        drop(running);
        world.kill();
        let (_, again) = start(world, false).unwrap_or_else(|error| panic!("{what}: after the override: {error}"));
        let (audit, replayed) = again.split_last().expect("the audit record is there");
        let loss = Loss::from_bytes(&audit.2).expect("it holds the loss");
        assert_eq!((audit.0, audit.1), (last, Kind::LossAccepted), "{what}");
        assert_eq!(replayed.len(), found.len() + 1, "{what}: the same records and the start");
        assert_eq!(&replayed[..found.len()], &found, "{what}");
        assert!(loss.lsn <= loss.synced.max(self.synced).next(), "{what}: {loss:?}");
    }
}

#[test]
fn the_samples_are_whole() {
    for snapshots_in_life in 0..2 {
        let sample = sample(snapshots_in_life);
        let names = sample.world.names();
        let segments = names.iter().filter(|name| name.ends_with(".wal")).count();
        assert!(segments >= 5 && sample.synced.0 < sample.facts.len() as u64, "{names:?}");
        let dir = Dir::open(sample.world.copy(3), tiny()).expect("open");
        let (found, recovered) = recover(&dir, false).expect("whole");
        assert_eq!(recovered.last_lsn.0 as usize, sample.facts.len());
        assert!(!found.is_empty() && recovered.bytes_cut == 0);
    }
}

#[test]
fn every_byte_changed_once() {
    let seed = 0xda_0001;
    let mut rng = Rng::new(seed);
    let (mut cases, mut refused) = (0, 0);
    for snapshots_in_life in 0..2 {
        let sample = sample(snapshots_in_life);
        for name in sample.world.names() {
            for at in 0..sample.world.contents(&name).expect("listed").len() {
                let mask = 1 << rng.below(8);
                refused += u64::from(sample.check(&format!("{name} byte {at} ^ {mask:#x}"), |world| {
                    put_changed(world, &name, |bytes| bytes[at] ^= mask);
                }));
                cases += 1;
            }
        }
    }
    println!("bytes changed: {cases}, refused {refused}, seed {seed:#x}");
    assert!(cases > 40_000 && refused > 8_000 && refused < cases);
}

#[test]
fn every_length_cut_once() {
    let (mut cases, mut refused) = (0, 0);
    for snapshots_in_life in 0..2 {
        let sample = sample(snapshots_in_life);
        for name in sample.world.names() {
            let whole = sample.world.contents(&name).expect("listed").len();
            for length in 0..whole {
                refused += u64::from(sample.check(&format!("{name} cut to {length}"), |world| {
                    put_changed(world, &name, |bytes| bytes.truncate(length));
                }));
                cases += 1;
            }
        }
    }
    println!("lengths cut: {cases}, refused {refused}");
    assert!(cases > 40_000 && refused > 20_000);
}

#[test]
fn sectors_lost_swapped_and_doubled() {
    let seed = 0xda_0002;
    let mut rng = Rng::new(seed);
    let (mut cases, mut refused) = (0, 0);
    for snapshots_in_life in 0..2 {
        let sample = sample(snapshots_in_life);
        let segments: Vec<String> = sample.world.names().into_iter().filter(|name| name.ends_with(".wal")).collect();
        let sector = |rng: &mut Rng| {
            let name = segments[rng.below(segments.len() as u64) as usize].clone();
            (name, rng.below(8) as usize * 512)
        };
        for case in 0..2_000 {
            let (from, to) = (sector(&mut rng), sector(&mut rng));
            let what = format!("case {case} of seed {seed:#x}: {from:?} and {to:?}");
            refused += u64::from(sample.check(&what, |world| {
                let read = |(name, at): &(String, usize)| world.contents(name).expect("listed")[*at..at + 512].to_vec();
                let put = |(name, at): &(String, usize), sector: &[u8]| {
                    put_changed(world, name, |bytes| bytes[*at..at + 512].copy_from_slice(sector));
                };
                let (one, two) = (read(&from), read(&to));
                match case % 3 {
                    0 => put(&from, &[0; 512]),
                    1 => put(&from, &two),
                    _ => {
                        put(&from, &two);
                        put(&to, &one);
                    }
                }
            }));
            cases += 1;
        }
    }
    println!("sectors damaged: {cases}, refused {refused}, seed {seed:#x}");
    assert!(refused > 1_000);
}
