use super::*;

fn probe(byte: u8) -> Option<Probe> {
    Some(Probe { key: vec![byte; 16], hash: u64::from(byte) << 40, day: UtcDay(20_784) })
}

fn manifests() -> Vec<Manifest> {
    let empty = Manifest::new(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
    let mut whole = Manifest { upto: 300, crc: Some(0xffff_ffff), ..empty.clone() };
    let totals = std::array::from_fn(|at| Total { rows: at as u64 * 100, sum: u64::MAX - at as u64 });
    whole.days = BTreeMap::from([(UtcDay(20_783), totals), (UtcDay(20_784), totals)]);
    (whole.kept_from, whole.swept_to, whole.unswept) = (UtcDay(20_780), UtcDay(20_700), 1_000);
    whole.hashes = Total { rows: 3, sum: 9 };
    whole.newest = [probe(1), None, probe(3), None, None, probe(6)];
    whole.interrupted = BTreeMap::from([(5, None), (290, Some(0))]);
    let mut moving = whole.clone();
    let additions = std::array::from_fn(|at| Addition {
        added: Days::from([(UtcDay(20_784), Total { rows: at as u64, sum: 7 })]),
        replaced: if at == 1 { Days::from([(UtcDay(20_783), Total { rows: 1, sum: 5 })]) } else { Days::new() },
        probe: if at % 2 == 0 { probe(at as u8 + 1) } else { None },
    });
    moving.moving = Some(Moving { upto: Upto { lsn: u64::MAX, crc: Some(77) }, additions });
    vec![empty, whole, moving]
}

/// The bytes on disk: they do not change.
#[test]
fn bytes_are_golden() {
    let hex: String = manifests()[0].write().iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = "01 7766554433221100efcdab8967452301 00 00 00 00 00 000000000000000000 00 000000000000 00 00";
    assert_eq!(hex, expected.replace(' ', ""));
    let lengths: Vec<usize> = manifests().iter().map(|manifest| manifest.write().len()).collect();
    assert_eq!(lengths, [40, 258, 452]);
    // In the order of bytes, with what is mixed.
    let hashes = [row_hash(b"", b""), row_hash(b"key", b"value"), row_hash(b"value", b"key")];
    assert_eq!(hashes.map(|hash| format!("{hash:016x}")), ["0000000000000000", "bc0db1a917b08fc6", "c5b6703ff61f694e"]);
}

#[test]
fn manifests_come_back_and_nothing_else_is_read() {
    let mut cases = 0;
    for manifest in manifests() {
        let bytes = manifest.write();
        assert_eq!(Manifest::read(&bytes).expect("just written"), manifest);
        for end in 0..bytes.len() {
            assert!(matches!(Manifest::read(&bytes[..end]), Err(StoreError::Damaged(_))), "cut at {end}");
        }
        assert!(Manifest::read(&[&bytes[..], &[0]].concat()).is_err(), "longer");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match Manifest::read(&flipped) {
                Ok(other) => assert_eq!(other.write(), flipped, "bit {bit}"),
                Err(StoreError::Later(_)) => assert!(flipped[0] > VERSION, "bit {bit}"),
                Err(StoreError::Damaged(_)) => {}
                Err(other) => panic!("bit {bit}: {other}"),
            }
        }
        cases += bytes.len() * 9 + 2;
    }
    // More interrupted moves than bytes.
    let mut bytes = manifests()[0].write();
    bytes.pop();
    bytes.extend([0xff; 9]);
    assert!(Manifest::read(&[&bytes[..], &[1]].concat()).is_err());
    println!("manifests: {} cases", cases + 1);
}

#[test]
fn a_row_in_the_place_of_another_counts_once() {
    let (day, next, mut manifest) = (UtcDay(7), UtcDay(8), Manifest::new(1));
    let mut addition = Addition::default();
    addition.add(b"a", 5, day, None);
    addition.add(b"b", 7, day, None);
    manifest.add(Space::Orders, addition).expect("countable");
    assert_eq!(manifest.total(Space::Orders), Total { rows: 2, sum: 12 });
    // In its place one of another day, which is then the last one.
    let mut addition = Addition::default();
    addition.add(b"a", 11, next, Some((5, day)));
    addition.add(b"c", 1, day, None);
    assert_eq!(addition.probe, Some(Probe { key: b"a".to_vec(), hash: 11, day: next }));
    manifest.add(Space::Orders, addition).expect("countable");
    let of = |manifest: &Manifest, day| manifest.days[&day][Space::Orders as usize];
    assert_eq!((of(&manifest, day), of(&manifest, next)), (Total { rows: 2, sum: 8 }, Total { rows: 1, sum: 11 }));
    let mut total = Total { rows: 2, sum: 18 };
    assert_eq!(total.join(Total { rows: u64::MAX, sum: 1 }), None);
    // More rows go than are there.
    let gone = Addition { replaced: Days::from([(day, Total { rows: 3, sum: 1 })]), ..Addition::default() };
    assert!(manifest.add(Space::Orders, gone).is_err());
    // Rows that swap their values have another sum.
    let sum =
        |rows: [(&[u8], &[u8]); 2]| rows.iter().fold(0_u64, |sum, (key, value)| sum.wrapping_add(row_hash(key, value)));
    assert_ne!(sum([(b"a", b"1"), (b"b", b"2")]), sum([(b"a", b"2"), (b"b", b"1")]));
}

#[test]
fn the_oldest_interrupted_moves_are_forgotten() {
    let place = tempfile::tempdir().expect("a folder");
    let store = crate::store::Store::open(place.path(), 1 << 20).expect("a new store");
    let spaces = store.spaces().expect("none yet");
    spaces.make_all().expect("made");
    let (key, value) = (vec![1; 16], vec![2; 9]);
    spaces.ingest(Space::Orders, |write| write(&key, &value)).expect("written");
    let mut manifest = Manifest::new(1);
    for lsn in 1..=INTERRUPTED_MAX as u64 + 5 {
        let hash = row_hash(&key, &value);
        let mut moving = Moving { upto: lsn.into(), additions: Default::default() };
        moving.additions[0].probe = Some(Probe { key: key.clone(), hash, day: UtcDay(0) });
        // What is not there does not count.
        let added = Days::from([(UtcDay(20_784), Total { rows: 9, sum: 9 })]);
        moving.additions[1] = Addition { added, probe: probe(1), ..Addition::default() };
        manifest.moving = Some(moving);
        manifest.settle(&spaces).expect("readable");
    }
    assert_eq!(
        (manifest.interrupted.len(), manifest.interrupted.first_key_value()),
        (INTERRUPTED_MAX, Some((&6, &None)))
    );
    assert_eq!(manifest.days, BTreeMap::new());
    assert_eq!(manifest.newest_lsn(), INTERRUPTED_MAX as u64 + 5);
}

/// Days before a cut do not count any more, but for hashes of signed orders.
#[test]
fn a_cut_counts_what_is_left() {
    let total = |rows: u64| Total { rows, sum: rows << 32 };
    let mut manifest = Manifest::new(1);
    for day in 1..=5 {
        manifest.days.insert(UtcDay(day), std::array::from_fn(|at| total(u64::from(day) * 10 + at as u64)));
    }
    let mut cases = 0;
    // The same one, an earlier and a later one, and one after all days.
    for (day, first) in [(0, 1), (3, 3), (3, 3), (2, 3), (5, 5), (9, 6)] {
        manifest.cut(UtcDay(day)).expect("countable");
        for space in Space::ALL {
            let of = |day: u32| u64::from(day) * 10 + space as u64;
            let from = if space.is_cut() { first } else { 1 };
            assert_eq!(manifest.total(space), total((from..=5).map(of).sum()), "{day}: {}", space.name());
            cases += 1;
        }
        let cut =
            (1..first).flat_map(|day| (0..6).filter(|at| *at != Space::ByHash as u32).map(move |at| day * 10 + at));
        assert_eq!(manifest.unswept, u64::from(cut.sum::<u32>()), "{day}");
        assert_eq!(Manifest::read(&manifest.write()).expect("just written"), manifest);
    }
    assert_eq!(manifest.kept_from, UtcDay(9));
    // What is added before it does not count, and what is replaced there neither; hashes do.
    for space in Space::ALL {
        let before = manifest.total(space).rows;
        let mut addition = Addition::default();
        addition.add(b"old", 3, UtcDay(8), Some((4, UtcDay(2))));
        addition.add(b"new", 3, UtcDay(9), None);
        manifest.add(space, addition).expect("countable");
        assert_eq!(manifest.total(space).rows, before + 1, "{}", space.name());
        cases += 1;
    }
    println!("cuts of a manifest: {cases} cases");
}
