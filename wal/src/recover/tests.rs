use super::*;
use crate::Options;
use crate::fault::{Call, Faults};

#[test]
fn zeros_are_written_page_by_page_and_only_over_other_bytes() {
    const PAGE: u64 = PAGE_BYTES as u64;
    /// Pages of the file, offsets that are not zero, from and to, reads and writes.
    type Row = (&'static str, u64, &'static [u64], u64, u64, u64, u64);
    let table: [Row; 8] = [
        ("nothing", 2, &[], 64, 2 * PAGE, 2, 0),
        ("empty", 2, &[64], 64, 64, 0, 0),
        ("the first byte", 2, &[63, 64], 64, 2 * PAGE, 2, 1),
        ("the last byte", 2, &[2 * PAGE - 1], 64, 2 * PAGE, 2, 1),
        ("around the end of a page", 3, &[PAGE - 1, PAGE], 64, 3 * PAGE, 3, 2),
        ("one page of three", 3, &[PAGE - 1, PAGE, 2 * PAGE - 1, 2 * PAGE], PAGE, 2 * PAGE, 1, 1),
        ("inside of a page", 2, &[PAGE + 9, PAGE + 10, PAGE + 19, PAGE + 20], PAGE + 10, PAGE + 20, 1, 1),
        ("a file that is cut", 1, &[], 64, 2 * PAGE, 2, 1),
    ];
    let world = Faults::new(1);
    let dir = Dir::open(world.clone(), Options { segment_bytes: PAGE, ..Options::default() }).expect("open");
    let recovery = dir.recover(None, false).expect("new");
    for (what, pages, places, from, to, reads, writes) in table {
        let mut bytes = vec![0; (pages * PAGE) as usize];
        places.iter().for_each(|at| bytes[*at as usize] = 1);
        world.put("file", &bytes);
        let before = (world.calls(Call::Read), world.calls(Call::Write));
        recovery.zero("file", from, to).expect("no failure");
        let calls = (world.calls(Call::Read) - before.0, world.calls(Call::Write) - before.1);
        bytes.resize(bytes.len().max(to as usize), 0);
        bytes[from as usize..to as usize].fill(0);
        assert_eq!(calls, (reads, writes), "{what}");
        assert!(world.contents("file").expect("there") == bytes, "{what}");
    }
    println!("places made zero: {} cases", table.len());
}
