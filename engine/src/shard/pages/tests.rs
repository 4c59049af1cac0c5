use super::*;
use crate::user::sample::Dice;
use std::convert::Infallible;

/// A row of a list, and whether it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    key: Key,
    fits: bool,
}

/// Ascending ids and times; some times are those of several rows.
fn rows(dice: &mut Dice) -> Vec<Row> {
    let (mut id, mut at) = (dice.below(3), dice.below(5));
    let fitting = dice.pick(&[0, 10, 50, 90, 100]);
    let next = |_| {
        (id, at) = (id + 1 + dice.below(4), at + dice.below(3));
        Row { key: (Timestamp(at), id), fits: dice.chance(fitting) }
    };
    let count = Dice(fitting).below(7) * 10;
    (0..count).map(next).collect()
}

fn keys(dice: &mut Dice, rows: &[Row]) -> Keys {
    let near = |dice: &mut Dice| match rows.is_empty() || dice.chance(30) {
        true => (Timestamp(dice.below(90)), dice.below(130)),
        false => dice.pick(rows).key,
    };
    let mut keys = Keys::ALL;
    if dice.chance(30) {
        keys.from = near(dice).0;
    }
    if dice.chance(10) {
        keys.first = near(dice).1;
    }
    if dice.chance(50) {
        let (at, id) = near(dice);
        // A key of a row, of a moment, and one that no row has.
        let other = near(dice);
        keys = keys.below(Some(dice.pick(&[(at, id), (at, 0), (at, u64::MAX), (at, id + 1), other])));
    }
    if dice.chance(30) {
        keys = keys.before(Some(near(dice).1));
    }
    keys
}

/// The rows that have left, as a store returns them.
fn below(left: &[Row], before: u64) -> impl Iterator<Item = Result<Row, Infallible>> {
    left.iter().rev().filter(move |row| row.key.1 < before).map(|row| Ok(*row))
}

fn filled<P: Page<Row = Row>>(page: P, keys: Keys, gone: Option<u64>, memory: &[Row]) -> Paged<P> {
    let list: Rows<Row> = memory.iter().copied().collect();
    let rows = newest_first(&list, keys, |row: &Row| row.key);
    walk(page, keys, gone, rows, |row| row.key, |row| row.fits, |row| *row)
}

/// The page of all rows in memory, and that of memory and store. `None`: the store was not asked.
fn both<P: Page<Row = Row> + Clone>(
    page: P,
    keys: Keys,
    all: &[Row],
    memory: &[Row],
    left: &[Row],
    gone: Option<u64>,
) -> (P, P, bool) {
    let Paged::Whole(whole) = filled(page.clone(), keys, None, all) else { panic!("nothing has left") };
    let part = filled(page, keys, gone, memory);
    let is_part = matches!(part, Paged::Part(_));
    let Ok(completed) = part.complete(|before| below(left, before), |row| row.key, |row| row.fits, |row| row);
    (whole, completed, is_part)
}

/// A list split at random: rows of memory, and rows that have left, of which some are in memory, too.
fn split(dice: &mut Dice, all: &[Row]) -> (Vec<Row>, Vec<Row>, Option<u64>) {
    let (percent, recent) = (dice.pick(&[10, 50, 90]), all.len() - dice.below(all.len() as u64 + 1) as usize);
    let (mut memory, mut left, mut gone) = (Vec::new(), Vec::new(), None);
    for (at, row) in all.iter().enumerate() {
        if at < recent && dice.chance(percent) {
            left.push(*row);
            gone = Some(row.key.1);
            if dice.chance(90) {
                continue;
            }
        }
        memory.push(*row);
    }
    (memory, left, gone)
}

#[test]
fn a_page_is_the_same_wherever_its_rows_are() {
    let (mut cases, mut completed) = ([0; 3], [0; 3]);
    for seed in 0..12_000 {
        let dice = &mut Dice(seed);
        let all = rows(dice);
        let (memory, left, gone) = split(dice, &all);
        let keys = keys(dice, &all);
        let (limit, visits) = (dice.below(8) as usize, dice.below(40) as usize);
        let kind = dice.below(3) as usize;
        let (whole, found, is_part) = match kind {
            0 => {
                let page = Listed::new(dice.below(12) as usize, limit);
                let (whole, found, is_part) = both(page, keys, &all, &memory, &left, gone);
                let shown = |page: Listed<Row>| (page.rows, page.has_more);
                (format!("{:?}", shown(whole)), format!("{:?}", shown(found)), is_part)
            }
            1 => {
                let page = Stretch::new(limit, visits);
                let (whole, found, is_part) = both(page, keys, &all, &memory, &left, gone);
                (format!("{:?}", whole.into_page()), format!("{:?}", found.into_page()), is_part)
            }
            _ => {
                let page = VenueList::new(limit, visits);
                let (whole, found, is_part) = both(page, keys, &all, &memory, &left, gone);
                (format!("{:?}", whole.into_page()), format!("{:?}", found.into_page()), is_part)
            }
        };
        assert_eq!(found, whole, "seed {seed}: {keys:?} of {memory:?} and {left:?}");
        cases[kind] += 1;
        completed[kind] += usize::from(is_part);
    }
    println!("pages: {cases:?} cases, {completed:?} of them with rows that left");
    assert!(completed.iter().all(|count| *count > 500), "{completed:?}");
}

/// A row that a store loses or returns twice changes pages: the comparison finds it.
#[test]
fn a_row_lost_or_twice_is_found() {
    let (mut lost, mut twice) = (0, 0);
    for seed in 0..2_000 {
        let dice = &mut Dice(seed);
        let all = rows(dice);
        let (memory, left, gone) = split(dice, &all);
        let only_left: Vec<Row> = left.iter().copied().filter(|row| row.fits && !memory.contains(row)).collect();
        if only_left.is_empty() {
            continue;
        }
        let picked = dice.pick(&only_left);
        let at = left.iter().position(|row| *row == picked).expect("it has left");
        let mut faulty = left.clone();
        let is_lost = dice.chance(50);
        match is_lost {
            true => drop(faulty.remove(at)),
            false => faulty.insert(at, left[at]),
        }
        let (whole, found, _) = both(Listed::new(0, all.len() + 1), Keys::ALL, &all, &memory, &faulty, gone);
        assert_ne!(found.rows, whole.rows, "seed {seed}");
        *(if is_lost { &mut lost } else { &mut twice }) += 1;
    }
    println!("planted faults: {lost} rows lost, {twice} twice");
    assert!(lost > 200 && twice > 200);
}

/// A page that may be longer because rows have left, and whose rows that left end before it is full, goes on with the rows of
/// memory below those that it saw.
#[test]
fn a_long_page_leaves_no_row_of_memory() {
    let row = |id: u64| Row { key: (Timestamp(id), id), fits: true };
    // (rows of memory, rows that left, limit, limit with rows that left)
    type Case<'a> = (Vec<u64>, &'a [u64], usize, usize);
    let cases: [Case<'_>; 6] = [
        ((1..=20).collect(), &[25], 5, 7),
        ((1..=20).collect(), &[25], 5, 40),
        ((1..=20).collect(), &[24, 25], 5, 7),
        ((1..=20).collect(), &[12, 25], 5, 40),
        ((1..=6).collect(), &[9], 5, 40),
        ((1..=20).collect(), &[20, 25], 5, 40),
    ];
    for (memory, left, limit, longer) in &cases {
        let [memory, left] = [memory, &left.to_vec()].map(|ids| ids.iter().copied().map(row).collect::<Vec<Row>>());
        let gone = left.last().map(|row| row.key.1);
        let (mut before, mut found, mut pages) = (None, Vec::new(), Vec::new());
        loop {
            let keys = Keys::ALL.before(before);
            let gone = gone.filter(|_| before.is_none_or(|before| left[0].key.1 < before));
            let page = match filled(Stretch::new(*limit, 1_000), keys, gone, &memory).whole() {
                Ok(page) => page,
                Err(part) => {
                    let Ok(page) = part.widened(*longer).complete(
                        |before| below(&left, before),
                        |row| row.key,
                        |row| row.fits,
                        |row| row,
                    );
                    page
                }
            };
            let page = page.into_page();
            pages.push(page.rows.len());
            found.extend(page.rows.iter().map(|row| row.key.1));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        let mut all: Vec<u64> = memory.iter().chain(&left).map(|row| row.key.1).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all.dedup();
        assert_eq!(found, all, "{memory:?} and {left:?}");
        assert!(pages.iter().all(|rows| rows <= longer), "{pages:?}");
    }
    println!("long pages: {} cases", cases.len());
}

/// The rows of a store below any bounds begin where a search through all of them says, after few probes.
#[test]
fn bounds_are_sought() {
    let (mut cases, mut most) = (0, 0);
    for seed in 0..20_000 {
        let dice = &mut Dice(seed);
        let all = rows(dice);
        let keys = keys(dice, &all);
        let highest = all.last().map_or(0, |row| row.key.1) + dice.below(3);
        let mut probes = 0;
        let probe = |before| {
            probes += 1;
            Ok::<_, Infallible>(below(&all, before).next().transpose()?.map(|row| row.key))
        };
        let Ok(before) = keys.seek(highest, probe);
        let found: Vec<Row> = all.iter().copied().filter(|row| row.key.1 < before).collect();
        let expected: Vec<Row> = all.iter().copied().filter(|row| keys.is_below(row.key)).collect();
        assert_eq!(found, expected, "seed {seed}: {keys:?} of {all:?}");
        cases += 1;
        most = most.max(probes);
    }
    // Ids of a user are numbers below 2²⁸ above a multiple of it.
    let id = |number: u64| (7 << 28) + number;
    let key = |number: u64| (Timestamp(number / 3), id(number));
    let probe =
        |before: u64| Ok::<_, Infallible>(before.checked_sub(id(0) + 1).map(|number| key(number.min(99_999_999))));
    for number in [0, 1, 2, 3_000_000, 99_999_998, 99_999_999] {
        for below in [(Timestamp(number / 3), 0), key(number)] {
            let mut probes = 0;
            let Ok(before) = Keys::ALL.below(Some(below)).seek(id(99_999_999), |at| {
                probes += 1;
                probe(at)
            });
            let expected = if below.1 == 0 { id(number / 3 * 3) } else { id(number) };
            assert_eq!(before.max(id(0)), expected, "{below:?}");
            assert!(probes <= 40, "{probes} for {below:?}");
            (cases, most) = (cases + 1, most.max(probes));
        }
    }
    println!("bounds: {cases} cases, at most {most} probes");
}
