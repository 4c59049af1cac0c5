use super::*;

fn probe(byte: u8) -> Option<Probe> {
    Some(Probe { key: vec![byte; 16], hash: u64::from(byte) << 40 })
}

fn manifests() -> Vec<Manifest> {
    let empty = Manifest::new(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
    let mut whole = Manifest { upto: 300, ..empty.clone() };
    whole.totals = std::array::from_fn(|at| Total { rows: at as u64 * 100, sum: u64::MAX - at as u64 });
    whole.newest = [probe(1), None, probe(3), None, None, probe(6)];
    whole.interrupted = BTreeSet::from([5, 290]);
    let mut moving = whole.clone();
    let additions = std::array::from_fn(|at| Addition {
        total: Total { rows: at as u64, sum: 7 },
        probe: if at % 2 == 0 { probe(at as u8 + 1) } else { None },
    });
    moving.moving = Some(Moving { lsn: u64::MAX, additions });
    let mut rebuilt = whole.clone();
    let hole = |newest| Hole { upto: 300, newest, at: Timestamp(1_790_000_000_000_000) };
    rebuilt.set_holes(BTreeMap::from([(UserId(7), hole(0x7000_0046)), (UserId(300), hole(9))]));
    vec![empty, whole, moving, rebuilt]
}

/// The bytes on disk: they do not change.
#[test]
fn bytes_are_golden() {
    let hex: String = manifests()[0].write().iter().map(|byte| format!("{byte:02x}")).collect();
    let totals = "000000000000000000".repeat(SPACES);
    assert_eq!(hex, format!("0177665544332211 00efcdab8967452301 00 {totals} 000000000000 00 00 00").replace(' ', ""));
    let lengths: Vec<usize> = manifests().iter().map(|manifest| manifest.write().len()).collect();
    assert_eq!(lengths, [81, 161, 303, 190]);
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
    let mut total = Total::default();
    total.add(5, None);
    total.add(7, None);
    total.add(11, Some(5));
    assert_eq!(total, Total { rows: 2, sum: 18 });
    assert_eq!(total.join(Total { rows: u64::MAX, sum: 1 }), None);
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
        let mut moving = Moving { lsn, additions: Default::default() };
        moving.additions[0].probe = Some(Probe { key: key.clone(), hash });
        // What is not there does not count.
        moving.additions[1] = Addition { total: Total { rows: 9, sum: 9 }, probe: probe(1) };
        manifest.moving = Some(moving);
        manifest.settle(&spaces).expect("readable");
    }
    assert_eq!((manifest.interrupted.len(), manifest.interrupted.first()), (INTERRUPTED_MAX, Some(&6)));
    assert_eq!(manifest.totals, [Total::default(); SPACES]);
    assert_eq!(manifest.newest_lsn(), INTERRUPTED_MAX as u64 + 5);
}
