//! Memory that is there before it is needed.
//!
//! The first touch of a page is a fault of 1 to 11 µs: the kernel finds the page and clears it, and below a virtual
//! machine so does its host. An order leaves half a kilobyte, so one order in eight would wait for that. This thread has
//! the kernel do it ahead of the allocator, in large pages, of which a processor also keeps more in mind at once.
//!
//! It knows the allocator only by the large mappings that it reserves and fills from their low ends on. How far it has
//! come is seen by marks: one page of each [`STEP`] is left out, and is there once somebody has touched it. While a start
//! reads its log no single order waits, so there the faults themselves bring large pages.
//!
//! All of it is advice: on a kernel before 5.14, or with another allocator, nothing happens. What is ahead counts as
//! resident memory of the process.

use crate::thread::{self, Stop};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use wal::{large_pages, populate, yield_to_all};

/// How far the thread stays ahead where nothing else is set, bytes.
pub const AHEAD_BYTES: usize = 64 << 20;
/// From one mark to the next, bytes.
const STEP: usize = 16 << 20;
/// How far beyond what is ready it looks for marks, bytes: a stretch of the allocator has 32 MiB.
const STRETCHES: usize = 64 << 20;
/// What is made at once, bytes: one large page. The thread rests behind each, so that it never has a core for long.
const PIECE: usize = 2 << 20;
const PAGE: usize = 4 << 10;
/// Smallest mapping that is taken for the allocator's, bytes.
const REGION_MIN: usize = 256 << 20;
/// What the process has mapped, a line each.
const MAPS: &str = "/proc/self/maps";
/// Bytes of `/proc/self/pagemap` about one page, and the bit of the last of them that says whether it is there.
const ENTRY_BYTES: usize = 8;
const PRESENT: u8 = 0x80;
/// Pages that are asked about at once.
const ENTRIES: usize = 8 << 10;

/// Between two pieces.
const PIECE_EVERY: Duration = Duration::from_millis(1);
/// Between two looks while memory is used, and while none is.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const IDLE_LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks at nothing new behind which the allocator is taken to rest.
const LOOKS_UNTIL_IDLE: u32 = 50;
/// Looks between two searches for further mappings.
const LOOKS_PER_SEARCH: u32 = 64;
/// Between two searches while a log is read.
const SEARCH_EVERY: Duration = Duration::from_millis(20);

/// The thread that makes memory ahead.
#[derive(Debug)]
pub struct Prefaulting {
    stop: Stop,
    loaded: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prefaulting {
    /// Starts it; it stays at most `ahead` bytes before the allocator, and with 0 there is none. Until
    /// [`Prefaulting::loaded`] every fault brings a large page instead.
    pub fn start(ahead: usize) -> Prefaulting {
        let (stop, loaded) = (Stop::new(), Arc::new(AtomicBool::new(false)));
        let mut thread = None;
        if ahead > 0 {
            // Before anything is read.
            let mut known = Vec::new();
            advise_new(&mut known);
            let (stop, loaded) = (stop.clone(), loaded.clone());
            let spawned = thread::spawn("prefault", move || run(ahead, known, &loaded, &stop));
            thread = spawned.inspect_err(|error| tracing::debug!(%error, "no memory is made ahead")).ok();
        }
        Prefaulting { stop, loaded, thread }
    }

    /// From here on orders are waited for: a fault brings a small page, and the thread stays ahead.
    pub fn loaded(&self) {
        self.loaded.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Prefaulting {
    fn drop(&mut self) {
        self.stop.set();
        self.wake();
        // A panic in it has aborted the process.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

fn run(ahead: usize, mut known: Vec<Range<usize>>, loaded: &AtomicBool, stop: &Stop) {
    while !loaded.load(Ordering::Acquire) && !stop.is_set() {
        std::thread::park_timeout(SEARCH_EVERY);
        advise_new(&mut known);
    }
    // Clearing a large page takes a millisecond in which no order is to wait for it.
    if !yield_to_all() {
        tracing::debug!("the thread that makes memory ahead has its share of a core like others");
    }
    let stay_ahead = || -> io::Result<()> {
        let (mut prefault, mut quiet) = (Prefault::new(ahead)?, 0);
        while !stop.is_set() {
            if prefault.turn()? {
                quiet = 0;
                std::thread::sleep(PIECE_EVERY);
            } else {
                quiet += 1;
                std::thread::park_timeout(if quiet < LOOKS_UNTIL_IDLE { LOOK_EVERY } else { IDLE_LOOK_EVERY });
            }
        }
        Ok(())
    };
    if let Err(error) = stay_ahead() {
        tracing::debug!(%error, "no memory is made ahead");
    }
}

/// Asks for large pages in mappings that are not `known` yet.
fn advise_new(known: &mut Vec<Range<usize>>) {
    // Without the list there is nothing to advise.
    let new = fs::read_to_string(MAPS).map_or(Vec::new(), |maps| beyond(&maps, known));
    for region in &new {
        // Only slower without.
        let _ = large_pages(region, true);
    }
    known.extend(new);
}

/// Makes memory ahead of the allocator.
#[derive(Debug)]
pub struct Prefault {
    pagemap: File,
    ahead: usize,
    regions: Vec<Region>,
    looks: u32,
}

/// A mapping of the allocator.
#[derive(Debug)]
struct Region {
    all: Range<usize>,
    /// The allocator has come so far at least.
    used_to: usize,
    /// So far memory is there, but for the marks.
    ready_to: usize,
}

impl Prefault {
    /// Stays at most `ahead` bytes before the allocator.
    ///
    /// # Errors
    /// The system's, when it does not tell which pages are there.
    pub fn new(ahead: usize) -> io::Result<Prefault> {
        let pagemap = File::open("/proc/self/pagemap")?;
        let mut prefault = Prefault { pagemap, ahead, regions: Vec::new(), looks: 0 };
        prefault.search()?;
        Ok(prefault)
    }

    /// Makes one piece at most. False: all that is wanted is there.
    ///
    /// # Errors
    /// The system's; a kernel that cannot do it says so the first time.
    pub fn turn(&mut self) -> io::Result<bool> {
        for at in 0..self.regions.len() {
            let region = &mut self.regions[at];
            region.look(&self.pagemap)?;
            if region.ready_to < region.wanted_to(self.ahead) {
                match region.make_piece() {
                    Ok(()) => return Ok(true),
                    // It was given back, or there is no memory; it is found again if it is there.
                    Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                        self.regions.swap_remove(at);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS_PER_SEARCH) || self.regions.iter().all(|region| region.is_ready()) {
            self.search()?;
        }
        Ok(false)
    }

    /// Takes in mappings that are new since the last time.
    fn search(&mut self) -> io::Result<()> {
        let known: Vec<_> = self.regions.iter().map(|region| region.all.clone()).collect();
        for all in beyond(&fs::read_to_string(MAPS)?, &known) {
            self.regions.push(Region::new(all, &self.pagemap)?);
        }
        Ok(())
    }
}

impl Region {
    fn new(all: Range<usize>, pagemap: &File) -> io::Result<Region> {
        // Whoever comes before this thread waits for a small page, as a large one takes long to clear.
        large_pages(&all, false)?;
        let used_to = last_present(pagemap, &all)?.map_or(all.start, |page| page + PAGE);
        let ready_to = used_to.next_multiple_of(PIECE).min(all.end);
        Ok(Region { all, used_to, ready_to })
    }

    /// Looks how far marks were touched, also where nothing is ready yet: the allocator keeps a stretch for each kind of
    /// block and begins the next one wherever it likes.
    fn look(&mut self, pagemap: &File) -> io::Result<()> {
        let first = (self.used_to + 1).next_multiple_of(STEP);
        let end = self.all.end.min(self.ready_to + STRETCHES);
        for mark in (first..end).step_by(STEP).rev() {
            if last_present(pagemap, &(mark..mark + PAGE))?.is_some() {
                self.used_to = mark;
                self.ready_to = self.ready_to.max(mark + PIECE);
                break;
            }
        }
        Ok(())
    }

    /// How far memory is to be there: a process that uses little has no more of it ahead than that.
    fn wanted_to(&self, ahead: usize) -> usize {
        let used = self.used_to - self.all.start;
        self.all.end.min(self.used_to + ahead.min(used))
    }

    fn make_piece(&mut self) -> io::Result<()> {
        let piece = self.ready_to..(self.ready_to + PIECE).min(self.all.end);
        self.ready_to = piece.end;
        if piece.start.is_multiple_of(STEP) {
            return populate(&(piece.start + PAGE..piece.end));
        }
        large_pages(&piece, true)?;
        populate(&piece)?;
        // What the allocator gives back here comes again as small pages.
        large_pages(&piece, false)
    }

    fn is_ready(&self) -> bool {
        self.ready_to >= self.all.end
    }
}

/// The last page of a range of whole pages that is there.
fn last_present(pagemap: &File, range: &Range<usize>) -> io::Result<Option<usize>> {
    let mut entries = [0; ENTRIES * ENTRY_BYTES];
    let mut end = range.end;
    while end > range.start {
        let start = range.start.max(end.saturating_sub(ENTRIES * PAGE));
        let entries = &mut entries[..(end - start) / PAGE * ENTRY_BYTES];
        pagemap.read_exact_at(entries, (start / PAGE * ENTRY_BYTES) as u64)?;
        let is_there = |entry: &[u8]| entry[ENTRY_BYTES - 1] & PRESENT != 0;
        if let Some(last) = entries.chunks(ENTRY_BYTES).rposition(is_there) {
            return Ok(Some(start + last * PAGE));
        }
        end = start;
    }
    Ok(None)
}

/// Mappings of `/proc/self/maps` that may be the allocator's, without what is known of them: a new one may have grown
/// together with its neighbour.
fn beyond(maps: &str, known: &[Range<usize>]) -> Vec<Range<usize>> {
    let regions = maps.lines().filter_map(region);
    let new = regions.filter_map(|region| {
        let inside = known.iter().filter(|known| known.start < region.end && region.start < known.end);
        let start = inside.map(|known| known.end).max().map_or(region.start, |end| end.max(region.start));
        (start + REGION_MIN <= region.end).then_some(start..region.end)
    });
    new.collect()
}

/// The addresses of a private mapping of no file that may be read and written, and is none of the process's own stacks
/// or heap.
fn region(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).ok());
    let (start, end) = (start?, end?);
    let (rights, _offset, _device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let of_no_file = inode == "0" && words.next().is_none_or(|name| name.starts_with("[anon:"));
    let whole = start.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
    (rights == "rw-p" && of_no_file && whole && start < end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn mappings_of_an_allocator_are_told_from_others() {
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
    fn what_is_known_is_left_out() {
        let maps = "10000000-10400000 rw-p 00000000 00:00 0 \n20000000-60000000 rw-p 00000000 00:00 0 \nnonsense\n";
        let (low, high) = (0x2000_0000, 0x6000_0000);
        // From and to, of what is known and of what is found.
        type Ranges<'a> = &'a [(usize, usize)];
        let cases: [(Ranges<'_>, Ranges<'_>); 6] = [
            // The first line is too small to be an allocator's.
            (&[], &[(low, high)]),
            (&[(low, high)], &[]),
            (&[(0, low)], &[(low, high)]),
            // It has grown behind what is known.
            (&[(low, 0x4000_0000)], &[(0x4000_0000, high)]),
            (&[(low, 0x4000_0000), (0x4000_0000, 0x5000_0000)], &[(0x5000_0000, high)]),
            // By less than counts.
            (&[(low, 0x5800_0000)], &[]),
        ];
        for (known, expected) in cases {
            let known: Vec<_> = known.iter().map(|(from, to)| *from..*to).collect();
            let found: Vec<_> = beyond(maps, &known).into_iter().map(|range| (range.start, range.end)).collect();
            assert_eq!(found, expected, "{known:x?}");
        }
        println!("cases: {}", cases.len());
    }

    /// Pages of a range that are there.
    fn present_count(pagemap: &File, range: Range<usize>) -> usize {
        let is_there = |page: &usize| last_present(pagemap, &(*page..*page + PAGE)).expect("it was opened").is_some();
        range.step_by(PAGE).filter(is_there).count()
    }

    #[test]
    fn memory_is_there_ahead_of_whoever_fills_it_and_holds_what_it_held() {
        const AHEAD: usize = 32 * MIB;
        let mut memory = Vec::<u8>::with_capacity(512 * MIB);
        let first = memory.as_ptr() as usize;
        memory.resize(8 * MIB, 7);
        let (mut prefault, mut rows) = (Prefault::new(AHEAD).expect("pages can be asked about"), 0);
        let at = prefault.regions.iter().position(|region| region.all.contains(&first));
        prefault.regions = vec![prefault.regions.swap_remove(at.expect("it is large enough"))];
        // What is used, and how much there is to be ahead of it at most: no more than is used; and behind a leap, too.
        for (used, ahead) in [(8 * MIB, 8 * MIB), (40 * MIB, AHEAD), (60 * MIB, AHEAD), (200 * MIB, AHEAD)] {
            memory.resize(used, 7);
            match prefault.turn() {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    println!("SKIPPED: this kernel makes no memory ahead");
                    return;
                }
                turned => assert!(turned.expect("memory can be had"), "{used} bytes are used"),
            }
            while prefault.turn().expect("memory can be had") {}
            let [Region { used_to, ready_to, ref all }] = prefault.regions[..] else { panic!("one region is known") };
            let end = (first + used).next_multiple_of(PAGE);
            assert!(used_to <= end && end - used_to <= STEP + PIECE, "{used}: it is known how far it has come");
            assert!(
                ready_to >= end && ready_to - used_to <= ahead + PIECE,
                "{used}: {used_to:x}, {end:x}, {ready_to:x}"
            );
            let ahead = end..ready_to;
            let marks = ahead.clone().step_by(PAGE).filter(|page| page.is_multiple_of(STEP)).count();
            let pages = ahead.len() / PAGE;
            assert_eq!(present_count(&prefault.pagemap, ahead), pages - marks, "{used}: all but the marks are there");
            let beyond = ready_to..all.end.min(ready_to + PIECE);
            assert_eq!(present_count(&prefault.pagemap, beyond), 0, "{used}: and nothing behind it");
            rows += 1;
        }
        assert!(memory.iter().all(|byte| *byte == 7), "nothing that was written has changed");
        println!("rows: {rows}");
    }

    #[test]
    fn the_thread_ends_when_nobody_wants_it_any_more() {
        for (ahead, is_loaded) in [(0, true), (MIB, false), (MIB, true)] {
            let prefaulting = Prefaulting::start(ahead);
            if is_loaded {
                prefaulting.loaded();
            }
            assert_eq!(prefaulting.thread.is_some(), ahead > 0);
            // Hangs if it does not.
            drop(prefaulting);
        }
        println!("ends: 3");
    }
}
