use super::*;
use host::job::Job;
use std::sync::{Mutex, PoisonError};

const MIB: usize = 1 << 20;

/// A thread that makes memory ahead does so in all mappings of the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn mappings_of_an_allocator_are_distinguished_from_others() {
    let (start, end) = (0x200_0000_0000, 0x200_4000_0000);
    let cases = [
        ("20000000000-20040000000 rw-p 00000000 00:00 0 ", Some(start..end)),
        ("20000000000-20040000000 rw-p 00000000 00:00 0                  [anon:mimalloc]", Some(start..end)),
        ("20000000000-20040000000 rw-p 00000000 00:00 0                  [stack]", None),
        ("20000000000-20040000000 rw-p 00000000 00:00 0                  [heap]", None),
        ("20000000000-20040000000 rw-s 00000000 00:01 7                  /dev/zero (deleted)", None),
        ("20000000000-20040000000 rw-p 00000000 fd:00 42                 /srv/log/1.wal", None),
        ("20000000000-20040000000 r--p 00000000 00:00 0 ", None),
        ("20000000000-20040000000 ---p 00000000 00:00 0 ", None),
        ("20040000000-20000000000 rw-p 00000000 00:00 0 ", None),
        ("20000000001-20040000000 rw-p 00000000 00:00 0 ", None),
        ("20000000000 rw-p 00000000 00:00 0 ", None),
        ("20000000000-2004000000g rw-p 00000000 00:00 0 ", None),
        ("20000000000-fffffffffffffffff rw-p 00000000 00:00 0 ", None),
        ("20000000000-20040000000 rw-p", None),
        ("", None),
        ("-", None),
    ];
    for (line, expected) in &cases {
        assert_eq!(region(line), *expected, "{line}");
    }
    println!("lines: {}", cases.len());
}

#[test]
fn known_regions_are_left_out() {
    let maps = "10000000-10400000 rw-p 00000000 00:00 0 \n20000000-60000000 rw-p 00000000 00:00 0 \nnonsense\n";
    let (low, high) = (0x2000_0000, 0x6000_0000);
    // From and to, of known and of found regions.
    type Ranges<'a> = &'a [(usize, usize)];
    let cases: [(Ranges<'_>, Ranges<'_>); 6] = [
        // The first line is too small for an allocator.
        (&[], &[(low, high)]),
        (&[(low, high)], &[]),
        (&[(0, low)], &[(low, high)]),
        // It has grown at its end.
        (&[(low, 0x4000_0000)], &[(0x4000_0000, high)]),
        (&[(low, 0x4000_0000), (0x4000_0000, 0x5000_0000)], &[(0x5000_0000, high)]),
        // By less than counts.
        (&[(low, 0x5800_0000)], &[]),
    ];
    for (known, expected) in cases {
        let known: Vec<_> = known.iter().map(|(from, to)| *from..*to).collect();
        let found = beyond(&regions(maps), &known);
        let found: Vec<_> = found.into_iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(found, expected, "{known:x?}");
    }
    println!("cases: {}", cases.len());
}

/// Parts of a mapping that were advised differently are one stretch; a neighbour with a gap is not part of it.
#[test]
fn parts_of_a_mapping_are_one_stretch() {
    let cases: [(&str, &[(usize, usize)]); 4] = [
        ("", &[]),
        ("1000-2000 rw-p 00000000 00:00 0 \n", &[(0x1000, 0x2000)]),
        (
            "1000-2000 rw-p 0 00:00 0 \n2000-5000 rw-p 0 00:00 0 \n6000-7000 rw-p 0 00:00 0 \n",
            &[(0x1000, 0x5000), (0x6000, 0x7000)],
        ),
        (
            "1000-2000 rw-p 0 00:00 0 \n2000-5000 r--p 0 00:00 0 \n5000-7000 rw-p 0 00:00 0 \n",
            &[(0x1000, 0x2000), (0x5000, 0x7000)],
        ),
    ];
    for (maps, expected) in cases {
        let found: Vec<_> = stretches(maps).into_iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(found, expected, "{maps}");
    }
    println!("cases: {}", cases.len());
}

/// Pages of a range that are resident.
fn touched_count(pagemap: &File, range: Range<usize>) -> usize {
    let is_there = |page: &usize| last_touched::<1>(pagemap, &(*page..*page + PAGE)).expect("it is open").is_some();
    range.step_by(PAGE).filter(is_there).count()
}

/// Whether this kernel supports it.
fn is_possible() -> bool {
    let tried = vec![0_u8; 2 * PAGE];
    let page = (tried.as_ptr() as usize).next_multiple_of(PAGE);
    let possible = memory::populate(&(page..page + PAGE)).is_ok();
    if !possible {
        println!("SKIPPED: this kernel cannot populate memory");
    }
    possible
}

#[test]
fn memory_is_resident_ahead_of_its_use_and_keeps_its_contents() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if is_possible() {
        let rows: usize = [Pages::Small, Pages::Large, Pages::Loading].into_iter().map(filled).sum();
        println!("rows: {rows}");
    }
}

/// Fills a mapping. Returns the number of rows that were compared.
fn filled(pages: Pages) -> usize {
    const AHEAD: usize = 32 * MIB;
    let pagemap = File::open(PAGEMAP).expect("the page map is readable");
    let mut memory = memmap2::MmapMut::map_anon(768 * MIB).expect("addresses for it");
    let first = memory.as_ptr() as usize;
    memory[..8 * MIB].fill(7);
    let all = regions(&fs::read_to_string(MAPS).expect("a list")).into_iter().find(|all| all.contains(&first));
    let region = Region::new(all.expect("it is large enough"), &pagemap).expect("its pages can be read");
    if pages == Pages::Loading {
        region.large_but_for_marks();
    }
    // Other mappings are left alone.
    let crowd = (pages != Pages::Loading).then_some(Crowd { alone: pages == Pages::Small, at: None });
    let of_ahead = pagemap.try_clone().expect("it is open");
    let mut ahead = Ahead { pagemap: of_ahead, bytes: AHEAD, regions: vec![region], looks: 1, crowd };
    let mut rows = 0;
    // The range that is used, and how much must be resident beyond the known part of it: no more than is used, and as
    // much after a leap, however far.
    for (from, to, expected) in
        [(0, 8, 8 * MIB), (8, 40, AHEAD), (40, 60, AHEAD), (100, 120, AHEAD), (500, 501, AHEAD), (501, 560, AHEAD)]
    {
        let used = to * MIB;
        memory[from * MIB..used].fill(7);
        if from == 500 {
            // As a search does: no mark near the ready memory was touched.
            ahead.regions[0].look_far(&pagemap).expect("its pages can be read");
        }
        assert!(ahead.turn().expect("there is memory"), "{used} bytes are used");
        while ahead.turn().expect("there is memory") {
            ahead.looks = 1;
        }
        let Region { used_to, ready_to, ref all, .. } = ahead.regions[0];
        let end = first + used;
        // A large page that another first touch brought counts as used.
        let brought = if pages == Pages::Loading { LARGE } else { 0 };
        let known = used_to <= end + brought && end <= used_to + STEP + LARGE;
        assert!(known, "{used}: the progress is known");
        let made = ready_to - used_to;
        assert!(ready_to >= end && made <= expected + LARGE && made + LARGE >= expected, "{used}: {made} ahead");
        let (marks, pages) = (
            (end..ready_to).step_by(PAGE).filter(|page| page.is_multiple_of(STEP)).count(),
            (end..ready_to).len() / PAGE,
        );
        assert_eq!(touched_count(&pagemap, end..ready_to), pages - marks, "{used}: all but the marks are resident");
        let beyond = ready_to..all.end.min(ready_to + LARGE);
        assert_eq!(touched_count(&pagemap, beyond), 0, "{used}: and nothing after it");
        rows += 1;
    }
    let written = memory.iter().filter(|byte| **byte == 7).count();
    let rest = memory.iter().filter(|byte| **byte == 0).count();
    assert_eq!((written, written + rest), (140 * MIB, memory.len()), "the contents are unchanged");
    ahead.loaded();
    // Unmapped regions are forgotten.
    drop(memory);
    ahead.looks = 0;
    ahead.turn().expect("an unmapped region is not an error");
    assert!(ahead.regions.iter().all(|region| !region.all.contains(&first)), "it is gone");
    rows
}

#[test]
fn large_pages_are_made_while_no_thread_waits_for_a_core() {
    let now = Instant::now();
    let (little, much) = (CROWDED, CROWDED + Duration::from_nanos(1));
    // One core only; how long pieces waited for a core, and how long ago; the pages that are made now.
    type Waits<'a> = &'a [(Duration, Duration)];
    let rows: [(&str, bool, Waits<'_>, Pages); 6] = [
        ("at first", false, &[], Pages::Large),
        ("one core", true, &[], Pages::Small),
        ("little", false, &[(little, Duration::ZERO)], Pages::Large),
        ("much", false, &[(much, Duration::ZERO)], Pages::Small),
        ("much, and little since", false, &[(much, LARGE_AGAIN / 2), (little, Duration::ZERO)], Pages::Small),
        ("much, long ago", false, &[(much, LARGE_AGAIN)], Pages::Large),
    ];
    for (name, alone, waits, expected) in rows {
        let later = now + LARGE_AGAIN;
        let mut crowd = Crowd { alone, at: None };
        waits.iter().for_each(|(waited, ago)| crowd.note(*waited, later - *ago));
        assert_eq!(crowd.pages(later), expected, "{name}");
    }
    println!("rows: {}", rows.len());
}

/// A mapping that is used up does not count for the bytes ahead of the next one.
#[test]
fn a_used_up_mapping_does_not_count() {
    let all = 10 * STEP + PAGE..74 * STEP;
    // Used and ready so far, and the bytes that count as made ahead.
    let rows = [
        (all.start, all.start + LARGE, LARGE),
        (20 * STEP + PAGE, 24 * STEP, 4 * STEP - PAGE),
        (72 * STEP + PAGE, all.end, 2 * STEP - PAGE),
        (73 * STEP + PAGE, all.end, 0),
        (all.end, all.end, 0),
        // A touch came before the thread.
        (30 * STEP + PAGE, 30 * STEP, 0),
    ];
    for (used_to, ready_to, expected) in rows {
        assert_eq!(Region { all: all.clone(), used_to, ready_to }.made(), expected, "{used_to:x} {ready_to:x}");
    }
    println!("rows: {}", rows.len());
}

#[test]
fn a_stop_ends_the_job_while_a_log_is_read_and_later() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let possible = is_possible();
    for (ahead, is_loaded) in [(0, true), (MIB, false), (MIB, true)] {
        let loading = Loading::default();
        let prefault = Prefault::new(ahead, &loading);
        assert_eq!(prefault.is_some(), possible && ahead > 0);
        let Some(prefault) = prefault else { continue };
        let running = Job::new("prefault", MEMORY_AGAIN, move || prefault).start(&Stop::new()).expect("a thread");
        if is_loaded {
            loading.end();
        }
        running.stop();
        // Hangs if it does not end.
        running.join();
    }
    println!("ends: 3");
}
