use super::*;
use crate::ended::testing::world;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes on disk: they do not change.
#[test]
fn keys_and_heads_have_these_bytes() {
    let (user, order) = (UserId(7), OrderId(UserId(7).object(70)));
    let mut head = Vec::new();
    put_head(Head { lsn: 300, day: UtcDay(20_784) }, &mut head);
    let mut of_fill = Vec::new();
    put_order_of(order.0 + 130, order, &mut of_fill);
    let mut in_hash = Vec::new();
    put_order_of(first_object(user), order, &mut in_hash);
    let cases = [
        (object_key(user, order.0), "0000000000000007 0000000070000046"),
        (request_key(user, 0x1234, order), "0000000000000007 0000000000001234 0000000070000046"),
        (hash_key(user, &[0xab; 32]), &format!("0000000000000007 {}", "ab".repeat(32))),
        (market_key(user, MarketId(5), order), "0000000000000007 00000005 0000000070000046"),
        (id_hash("grid-17").to_be_bytes().to_vec(), "7c953cf13a543e0f"),
        (id_hash("").to_be_bytes().to_vec(), "e3b0c44298fc1c14"),
        (head, "01 00 ac02 b0a201"),
        (of_fill, "8e01"),
        (in_hash, "46"),
    ];
    for (bytes, expected) in &cases {
        assert_eq!(hex(bytes), expected.replace(' ', ""));
    }
    for (space, bytes) in [(Space::Orders, 16), (Space::Requests, 24), (Space::ByHash, 40), (Space::ByMarket, 20)] {
        assert_eq!(key_bytes(space), bytes);
    }
    assert_eq!((user_of(&object_key(user, 1)), object_of(&object_key(user, 1))), (Some(user), Some(1)));
    assert_eq!((user_of(&[0; 7]), object_of(&[0; 7])), (None, None));
    println!("bytes of ended rows: {} cases", cases.len() + 6);
}

#[test]
fn only_heads_are_read_as_such() {
    let mut cases = 0;
    for (lsn, day) in [(0, 0), (1, 20_784), (127, 127), (128, 128), (1 << 40, 1), (u64::MAX, u32::MAX)] {
        let mut bytes = Vec::new();
        let head = Head { lsn, day: UtcDay(day) };
        put_head(head, &mut bytes);
        assert_eq!(day_of(&bytes), Some(head.day));
        for end in 0..bytes.len() {
            assert!(matches!(take_head(&mut &bytes[..end]), Err(StoreError::Damaged(_))), "{lsn} cut at {end}");
            assert_eq!(day_of(&bytes[..end]), None, "{lsn} cut at {end}");
            cases += 1;
        }
        bytes.push(9);
        let mut rest = &bytes[..];
        assert_eq!((take_head(&mut rest).expect("a head"), rest), (head, &[9][..]));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let mut rest = &flipped[..];
            // Another head, if it is one at all.
            if let Ok(head) = take_head(&mut rest) {
                assert_eq!(day_of(&flipped), Some(head.day), "bit {bit}");
                let mut again = Vec::new();
                put_head(head, &mut again);
                assert_eq!([&again, rest].concat(), flipped, "bit {bit}");
            }
            cases += 1;
        }
    }
    // A later version, another lineage, a number in more bytes than it needs, and version zero.
    for (bytes, is_later) in [
        (&[2, 0, 1, 1][..], true),
        (&[1, 1, 1, 1], true),
        (&[1, 0x80, 0, 1, 1], false),
        (&[1, 0, 0x81, 0, 1], false),
        (&[1, 0, 1, 0x81, 0], false),
        // A day beyond 32 bits.
        (&[1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x10], false),
        (&[0, 0, 1, 1], false),
    ] {
        let refused = take_head(&mut &bytes[..]).expect_err("no head");
        assert_eq!(matches!(refused, StoreError::Later(_)), is_later, "{bytes:?}: {refused}");
        cases += 1;
    }
    for bytes in [&[][..], &[0x80], &[0x80, 0], &[1, 1], &[0xff; 11]] {
        assert_eq!(take_order_of(5, bytes), None, "{bytes:?}");
        cases += 1;
    }
    println!("heads: {cases} cases");
}

/// Rows of a keyspace ascend, and of several with one key the newest stays.
#[test]
fn rows_have_one_key_each() {
    let (mut world, mut cases) = (world(6, 1, 60), 0);
    let user = UserId(3);
    // One hash for two orders.
    for _ in 0..2 {
        let placed = crate::ended::testing::Placed { order_hash: Some([7; 32]), fills: vec![1], ..Default::default() };
        world.place(user, &placed);
    }
    let leaving = world.all().pop().expect("a user");
    let owner = world.users.get(user).expect("a user");
    for space in Space::ALL {
        let (mut keys, mut newest) = (Vec::new(), None);
        let each = |row: Encoded<'_>| {
            keys.push(row.key.to_vec());
            newest = newest.or(row.key.ends_with(&[7; 32]).then_some(row.of));
            Ok(())
        };
        encode(space, owner, &leaving, 5, each).expect("ended");
        assert!(!keys.is_empty() && keys.is_sorted_by(|key, next| key < next), "{space:?}");
        assert!(keys.iter().all(|key| key.len() == key_bytes(space) && user_of(key) == Some(user)), "{space:?}");
        let expected = leaving.orders.last().map(|order| order.0).filter(|_| space == Space::ByHash);
        assert_eq!(newest, expected, "{space:?}");
        cases += keys.len();
    }
    println!("rows of keyspaces: {cases} cases");
}
