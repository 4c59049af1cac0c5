use super::*;
use crate::user::sample::Dice;
use std::collections::BTreeMap;
use std::rc::Rc;

#[test]
fn rows_behave_like_a_vec() {
    let mut rows: Rows<usize> = Rows::new();
    for i in 0..50 {
        assert_eq!((rows.len(), rows.end()), (i, i));
        assert_eq!(rows.push(i * 10), i);
        assert_eq!(rows.last(), Some(&(i * 10)));
    }
    assert_eq!(rows.iter().copied().collect::<Vec<_>>(), (0..50).map(|i| i * 10).collect::<Vec<_>>());
    assert_eq!((rows.first(), rows.iter().next_back()), (Some(&0), Some(&490)));
    assert_eq!((rows.get(49), rows.get(50)), (Some(&490), None));
    for below in [0, 1, 17, 50] {
        assert_eq!(rows.partition_point(|row| *row < below * 10), below);
    }
    rows[7] = 1;
    assert_eq!(rows[7], 1);
    assert_eq!((&rows).into_iter().count(), 50);
    assert!(rows.runs().eq(std::iter::once(0..50)));
    // Reserving changes nothing else, for any count.
    for coming in [0, 1, 5, 16, 17, 40, 100] {
        let (mut roomy, mut grown) = (Rows::<_>::new(), Rows::<_>::new());
        for i in 0..40_usize {
            assert_eq!((roomy.push_first_of(coming.max(i) - i, i), grown.push(i)), (i, i));
            assert_eq!(roomy.last(), grown.last());
        }
        assert_eq!(roomy, grown, "{coming}");
    }
    // The same with blocks of another size.
    let count = 6 * NUMBERS_PER_BLOCK + 5;
    let number = |nth: usize| std::num::NonZeroU32::new(nth as u32 + 1).expect("not zero");
    let mut numbers = Numbers::new();
    (0..count).for_each(|nth| assert_eq!(numbers.push(number(nth)), nth));
    assert!(numbers.iter().copied().eq((0..count).map(number)) && numbers.last() == Some(&number(count - 1)));
    assert!((0..count).all(|nth| numbers[nth] == number(nth)) && numbers.get(count).is_none());
}

/// A row that counts those in memory.
type Row = (usize, Rc<()>);

/// Everything that can be read of `rows` is that of `known`, whose next number is `end`.
fn compare(rows: &Rows<Row>, known: &BTreeMap<usize, usize>, end: usize, dice: &mut Dice) {
    let of = |found: Option<&Row>| found.map(|row| row.0);
    assert_eq!((rows.len(), rows.is_empty(), rows.end()), (known.len(), known.is_empty(), end));
    assert_eq!(of(rows.first()), known.values().next().copied());
    assert_eq!(of(rows.last()), known.values().next_back().copied());
    let number = dice.below(end as u64 + 40) as usize;
    assert_eq!(of(rows.get(number)), known.get(&number).copied(), "{number}");
    let next = rows.at_or_after(number).map(|(number, row)| (number, row.0));
    assert_eq!(next, known.range(number..).next().map(|(number, row)| (*number, *row)));
    let before = rows.before(number).map(|(number, row)| (number, row.0));
    assert_eq!(before, known.range(..number).next_back().map(|(number, row)| (*number, *row)));
    // Values ascend with their numbers.
    let found = rows.partition_point(|row| row.0 < number);
    assert_eq!(found, known.iter().find(|(_, row)| **row >= number).map_or(end, |(number, _)| *number), "{number}");
}

/// The same, with every row.
fn compare_all(rows: &Rows<Row>, known: &BTreeMap<usize, usize>, dice: &mut Dice) {
    assert!(rows.iter().map(|row| row.0).eq(known.values().copied()));
    assert!(rows.iter().rev().map(|row| row.0).eq(known.values().rev().copied()));
    let from = dice.below(rows.end() as u64 + 1) as usize;
    let span = from..from + dice.below(rows.end() as u64 + 1) as usize;
    let expected = || known.range(span.clone()).map(|(number, row)| (*number, *row));
    assert!(rows.range(span.clone()).map(|(number, row)| (number, row.0)).eq(expected()));
    assert!(rows.range(span.clone()).rev().map(|(number, row)| (number, row.0)).eq(expected().rev()));
    // From both ends alternately, each row is visited once.
    let (mut both, mut seen) = (rows.range(span.clone()), 0);
    while (if seen % 2 == 0 { both.next() } else { both.next_back() }).is_some() {
        seen += 1;
    }
    assert_eq!(seen, expected().count());
    let runs: Vec<_> = rows.runs().collect();
    assert!(runs.iter().cloned().flatten().eq(known.keys().copied()));
    assert!(runs.windows(2).all(|two| two[0].end < two[1].start), "{runs:?}");
    let again: Rows<Row> = rows.iter().cloned().collect();
    assert_eq!(again.with_numbers(&runs, rows.end()), *rows);
    assert_eq!(rows.clone(), *rows);
}

/// Bytes that the list holds, without its rows' own.
fn places<T, const BLOCK: usize>(rows: &Rows<T, BLOCK>) -> (usize, usize) {
    let old = rows.old.iter().flat_map(|old| &old.0).map(|(_, block)| block.capacity()).sum::<usize>();
    let slots = old + rows.recent.iter().map(Vec::capacity).sum::<usize>() + rows.last.capacity();
    (slots, rows.recent.capacity() + rows.old.as_ref().map_or(0, |old| old.0.capacity()))
}

#[test]
fn rows_leave_in_any_order_and_keep_their_numbers() {
    let (mut cases, mut dice) = (0, Dice(3));
    // Per mille in each round: appended, numbers skipped, put before the end, removed oldest first, removed anywhere.
    let mixes = [
        [900, 0, 0, 0, 50],
        [700, 0, 0, 500, 100],
        [500, 0, 0, 900, 0],
        [600, 300, 200, 300, 300],
        [500, 900, 500, 500, 200],
        [900, 5, 0, 890, 0],
        [600, 2, 2, 0, 610],
    ];
    for mix in mixes {
        let (mut rows, mut known) = (Rows::<Row>::new(), BTreeMap::new());
        let alive = Rc::new(());
        let mut end = 0;
        for round in 0..6_000 {
            let mut happens = |nth: usize| dice.below(1_000) < mix[nth];
            let [appends, skips, puts, leaves, leaves_anywhere] = std::array::from_fn(&mut happens);
            if skips {
                // Mostly a few, rarely many blocks.
                let gap = if dice.chance(2) { dice.below(5_000) } else { dice.below(40) };
                end += gap as usize;
            }
            if appends {
                match skips {
                    true => rows.put(end, (end, alive.clone())),
                    false => assert_eq!(rows.push((end, alive.clone())), end),
                }
                known.insert(end, end);
                end += 1;
            } else if skips {
                end = rows.end();
            }
            if puts && end > 0 {
                let number = dice.below(end as u64) as usize;
                if let std::collections::btree_map::Entry::Vacant(place) = known.entry(number) {
                    rows.put(number, (number, alive.clone()));
                    place.insert(number);
                }
            }
            if leaves && let Some((number, _)) = known.pop_first() {
                assert_eq!(rows.remove(number).map(|row| row.0), Some(number));
            }
            if leaves_anywhere && !known.is_empty() {
                let nth = dice.below(known.len() as u64) as usize;
                let number = *known.keys().nth(nth).expect("as many");
                assert_eq!(rows.remove(number).map(|row| row.0), known.remove(&number));
                assert!(rows.remove(number).is_none(), "it has left");
            }
            compare(&rows, &known, end, &mut dice);
            if let Some(number) = known.keys().nth(known.len() / 2) {
                rows[*number].0 = *number;
            }
            assert_eq!(Rc::strong_count(&alive) - 1, known.len());
            if round % 500 == 0 {
                compare_all(&rows, &known, &mut dice);
            }
            cases += 1;
        }
        compare_all(&rows, &known, &mut dice);
        // Then all leave, and numbers go on.
        let numbers: Vec<usize> = known.keys().copied().collect();
        numbers.iter().for_each(|number| assert!(rows.remove(*number).is_some()));
        assert_eq!((places(&rows), rows.len(), rows.end()), ((0, 0), 0, end), "no memory is left of them");
        assert_eq!((rows.push((end, alive.clone())), rows.len()), (end, 1), "numbers go on");
    }
    println!("rows that leave: {cases} cases");
}

/// After a burst has left, the list takes what a list of the rows that stayed takes, wherever they are.
#[test]
fn memory_is_that_of_the_rows_that_stay() {
    let (count, mut cases) = (200_000_usize, 0);
    let stays: [(&str, &dyn Fn(usize) -> bool); 6] = [
        ("none", &|_| false),
        ("the first", &|number| number == 0),
        ("the last", &|number| number + 1 == count),
        ("the newest 300", &|number| number + 300 >= count),
        ("each thousandth", &|number| number % 1_000 == 7),
        ("each thousandth and the newest 300", &|number| number % 1_000 == 7 || number + 300 >= count),
    ];
    for (name, stays) in stays {
        for is_oldest_first in [true, false] {
            let mut rows: Rows<u64> = (0..count as u64).collect();
            let mut leaving: Vec<usize> = (0..count).filter(|number| !stays(*number)).collect();
            if !is_oldest_first {
                leaving.reverse();
            }
            leaving.iter().for_each(|number| assert!(rows.remove(*number).is_some()));
            let blocks = (0..count / ROWS_PER_BLOCK)
                .filter(|block| (0..ROWS_PER_BLOCK).any(|slot| stays(block * ROWS_PER_BLOCK + slot)))
                .count();
            let (slots, listed) = places(&rows);
            assert!(slots <= (blocks + 1) * ROWS_PER_BLOCK, "{name}: {slots} places in {blocks} blocks");
            assert!(listed <= 4 * blocks + 4, "{name}: {listed} of {blocks} blocks");
            assert!(rows.iter().map(|row| *row as usize).eq((0..count).filter(|number| stays(*number))), "{name}");
            assert_eq!(rows.push(9), count);
            cases += 1;
        }
    }
    println!("memory after a burst: {cases} cases of {count} rows");
}

#[test]
#[should_panic(expected = "a number has one row")]
fn a_number_has_one_row() {
    let mut rows: Rows<u64> = (0..40).collect();
    rows.put(17, 5);
}

/// The mark that a place has no row takes no space.
#[test]
fn a_place_takes_as_much_as_its_row() {
    fn bytes<T>() -> (usize, usize) {
        (size_of::<Option<T>>(), size_of::<T>())
    }
    use crate::order::{Fill, Order};
    use crate::user::{Position, Remembered};
    let rows = [bytes::<Order>(), bytes::<Fill>(), bytes::<Position>(), bytes::<Remembered>()];
    for (place, row) in rows.into_iter().chain([bytes::<std::num::NonZeroU32>()]) {
        assert_eq!(place, row, "{rows:?}");
    }
    println!("places: {rows:?}");
}
