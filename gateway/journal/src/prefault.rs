//! Memory that is there before it is needed.
//!
//! The first touch of a page is a fault: the kernel finds a page and clears it, and below a virtual machine its host may
//! have to do so first, so it takes half a microsecond to some ten. An order leaves half a kilobyte, so one order in eight
//! would wait for that. This thread has the kernel do it ahead of the allocator, seven eighths of it in large pages, of
//! which a processor also keeps more in mind at once. To clear one takes up to milliseconds, in which the kernel may not
//! give the core away; so where others want all cores, or there is but one, it makes small pages, few at a time.
//!
//! It knows the allocator only by the large mappings that it reserves and fills from their low ends on. How far it has
//! come is seen by marks: one page of each 16 MiB is left out, and is there once somebody has touched it. While a start
//! reads its log the thread does not rest, as clearing memory would be up to half of that; no single order waits, so there
//! the faults of whoever overtakes it bring large pages, too. From then on they bring small ones, whatever the system's
//! default is, for good, also when the thread has ended.
//!
//! Nothing depends on it. Where the kernel cannot do it (before Linux 5.14), does not tell which pages are there, or has
//! other pages than 4 KiB, nothing is advised and there is no thread; nor does anything happen with an allocator that
//! reserves no large mappings, as where the system does not overcommit memory.

use host::thread::{self, Stop};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wal::memory;

/// How far the thread stays ahead where nothing else is set, bytes.
pub const AHEAD_BYTES: usize = 64 << 20;
/// From one mark to the next, bytes.
const STEP: usize = 16 << 20;
/// What is made at once, bytes: one large page, or some small ones. The thread rests behind each, so that it never has a
/// core for long.
const LARGE: usize = 2 << 20;
const SMALL: usize = 128 << 10;
/// How far beyond what is ready marks are looked at each time, bytes: the allocator keeps stretches of 32 MiB for each kind
/// of block, and takes the next one wherever it likes.
const STRETCHES: usize = 64 << 20;
const PAGE: usize = 4 << 10;
/// Smallest mapping that is taken for the allocator's, bytes.
const REGION_MIN: usize = 256 << 20;

/// What the process has mapped, a line each.
const MAPS: &str = "/proc/self/maps";
/// What is behind each page of the process's addresses.
const PAGEMAP: &str = "/proc/self/pagemap";
/// Bytes of that about one page, and the bits of the last of them that say whether it was touched: it is in memory, or
/// was put out of it.
const ENTRY_BYTES: usize = 8;
const TOUCHED: u8 = 0xc0;
/// Pages that are asked about at once.
const ENTRIES: usize = 8 << 10;

/// Between two large pieces, and between two small ones, which are made where others want the core: 30 MB a second, more
/// than orders take of it at full rate.
const LARGE_EVERY: Duration = Duration::from_millis(1);
const SMALL_EVERY: Duration = Duration::from_millis(4);
/// Between two looks while memory is used, and while none is.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const IDLE_LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks at nothing new behind which the allocator is taken to rest.
const LOOKS_UNTIL_IDLE: u32 = 50;
/// Looks between two searches for what has changed among the mappings.
const LOOKS_PER_SEARCH: u32 = 64;
/// Between two looks while a log is read.
const LOADING_LOOK_EVERY: Duration = Duration::from_millis(1);
/// A wait for a core while a piece is made that says that others want all of them.
const CROWDED: Duration = Duration::from_millis(1);
/// Until the next large page where others want all cores, and until the next try where there was no memory.
const LARGE_AGAIN: Duration = Duration::from_secs(1);
const MEMORY_AGAIN: Duration = Duration::from_secs(5);

/// The thread that makes memory ahead. It ends by itself once this is dropped; nobody waits for that.
#[derive(Debug)]
pub struct Prefaulting {
    stop: Stop,
    loaded: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prefaulting {
    /// Starts it; it stays at most `ahead` bytes before the allocator, and with 0 there is none. Until
    /// [`Prefaulting::loaded`] it takes no rest, and faults bring large pages.
    pub fn start(ahead: usize) -> Prefaulting {
        let (stop, loaded) = (Stop::new(), Arc::new(AtomicBool::new(false)));
        let mut prefaulting = Prefaulting { stop: stop.clone(), loaded: loaded.clone(), thread: None };
        if ahead > 0 && rustix::param::page_size() == PAGE {
            match begin(ahead, loaded, stop) {
                Ok(thread) => prefaulting.thread = Some(thread),
                Err(error) => tracing::debug!(%error, "no memory is made ahead"),
            }
        }
        prefaulting
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
    }
}

fn begin(ahead: usize, loaded: Arc<AtomicBool>, stop: Stop) -> io::Result<JoinHandle<()>> {
    // Before anything is advised that somebody has to take back.
    let pagemap = File::open(PAGEMAP)?;
    let tried = vec![0_u8; 2 * PAGE];
    let page = (tried.as_ptr() as usize).next_multiple_of(PAGE);
    memory::populate(&(page..page + PAGE))?;
    let body = move || {
        // Not of a class that runs only where no other wants to: a process is not gone, and its log not free, before each of
        // its threads has run once more.
        thread::stand_behind();
        let mut ahead = Ahead { pagemap: &pagemap, bytes: ahead, regions: Vec::new(), looks: 0, crowd: None };
        while !loaded.load(Ordering::Acquire) && !stop.is_set() {
            match ahead.turn() {
                Ok(true) => {}
                Ok(false) => std::thread::park_timeout(LOADING_LOOK_EVERY),
                Err(_) => {
                    // It is looked for again, as behind the start.
                    ahead.forget();
                    std::thread::park_timeout(LOOK_EVERY);
                }
            }
        }
        ahead.loaded();
        stay_ahead(ahead, &stop);
    };
    thread::spawn_spare("prefault", body, || tracing::error!("no memory is made ahead any more"))
}

fn stay_ahead(mut ahead: Ahead<'_>, stop: &Stop) {
    let mut quiet = 0;
    while !stop.is_set() {
        match ahead.turn() {
            Ok(true) => {
                quiet = 0;
                std::thread::park_timeout(ahead.rest());
            }
            Ok(false) => {
                quiet += 1;
                std::thread::park_timeout(if quiet < LOOKS_UNTIL_IDLE { LOOK_EVERY } else { IDLE_LOOK_EVERY });
            }
            // No memory is left, or a mapping is gone: it is looked for again.
            Err(error) => {
                tracing::debug!(%error, "no memory could be made ahead");
                ahead.forget();
                std::thread::park_timeout(MEMORY_AGAIN);
            }
        }
    }
}

/// How long this thread has waited for a core so far; nothing where the system does not say.
fn waited_for_a_core() -> Duration {
    let figures = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = figures.split_ascii_whitespace().nth(1).and_then(|waited| waited.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// What is made ahead of the allocator.
struct Ahead<'a> {
    pagemap: &'a File,
    /// Of all regions together, at most.
    bytes: usize,
    regions: Vec<Region>,
    looks: u32,
    /// `None` while a log is read.
    crowd: Option<Crowd>,
}

/// Whether others want the cores.
#[derive(Debug, Default)]
struct Crowd {
    /// There is but one core.
    alone: bool,
    /// When a piece waited for a core last.
    at: Option<Instant>,
}

impl Crowd {
    fn pages(&self, now: Instant) -> Pages {
        let crowded = self.at.is_some_and(|at| now.duration_since(at) < LARGE_AGAIN);
        if self.alone || crowded { Pages::Small } else { Pages::Large }
    }

    /// A piece was made, which waited so long for a core.
    fn note(&mut self, waited: Duration, now: Instant) {
        if waited > CROWDED {
            self.at = Some(now);
        }
    }
}

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    Large,
    Small,
    /// Nobody waits for a single order: everybody's faults bring large pages.
    Loading,
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

impl Ahead<'_> {
    /// Makes one piece at most. False: all that is wanted is there.
    ///
    /// # Errors
    /// The system's: no memory, or no such mapping any more.
    fn turn(&mut self) -> io::Result<bool> {
        if self.looks.is_multiple_of(LOOKS_PER_SEARCH) {
            self.search()?;
        }
        self.looks += 1;
        for region in &mut self.regions {
            region.look(self.pagemap)?;
        }
        let left = self.bytes.saturating_sub(self.regions.iter().map(Region::made).sum());
        let Some(region) = self.regions.iter_mut().find(|region| region.wants(left)) else { return Ok(false) };
        let Some(crowd) = &mut self.crowd else { return region.make_piece(Pages::Loading).map(|()| true) };
        // Of this piece alone: what many looks waited for adds up, and says nothing of a crowd.
        let waited_before = waited_for_a_core();
        region.make_piece(crowd.pages(Instant::now()))?;
        crowd.note(waited_for_a_core().saturating_sub(waited_before), Instant::now());
        Ok(true)
    }

    /// How long to rest behind a piece.
    fn rest(&self) -> Duration {
        match self.crowd.as_ref().map(|crowd| crowd.pages(Instant::now())) {
            Some(Pages::Small) => SMALL_EVERY,
            _ => LARGE_EVERY,
        }
    }

    /// Looks for everything anew.
    fn forget(&mut self) {
        self.regions.clear();
        self.looks = 0;
    }

    /// Leaves out mappings that are gone, takes in new ones, and looks over all of the others.
    fn search(&mut self) -> io::Result<()> {
        let maps = fs::read_to_string(MAPS)?;
        let mapped = stretches(&maps);
        self.regions.retain(|region| {
            mapped.iter().any(|mapped| mapped.start <= region.all.start && region.all.end <= mapped.end)
        });
        for region in &mut self.regions {
            region.look_far(self.pagemap)?;
        }
        let known: Vec<_> = self.regions.iter().map(|region| region.all.clone()).collect();
        for all in beyond(&regions(&maps), &known) {
            let region = Region::new(all, self.pagemap)?;
            if self.crowd.is_none() {
                region.large_but_for_marks();
            }
            self.regions.push(region);
        }
        Ok(())
    }

    /// From here on orders are waited for.
    fn loaded(&mut self) {
        let alone = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
        self.crowd = Some(Crowd { alone, at: None });
        // Of a mapping that is gone by now there is nothing to take back.
        self.regions.iter().for_each(|region| drop(memory::prefer_small_pages(&region.all)));
    }
}

impl Region {
    fn new(all: Range<usize>, pagemap: &File) -> io::Result<Region> {
        // Whoever comes before this thread is to wait for a small page only. Advice, where there are no large ones.
        let _ = memory::prefer_small_pages(&all);
        let mut region = Region { used_to: all.start, ready_to: all.start, all };
        region.look_far(pagemap)?;
        Ok(region)
    }

    /// Looks how far marks were touched.
    fn look(&mut self, pagemap: &File) -> io::Result<()> {
        let first = self.used_to.next_multiple_of(STEP);
        let end = self.all.end.min(self.ready_to + STRETCHES);
        for mark in (first..end).step_by(STEP).rev() {
            if last_touched::<1>(pagemap, &(mark..mark + PAGE))?.is_some() {
                self.has_come_to(mark);
                break;
            }
        }
        Ok(())
    }

    /// Looks at all pages of which nothing is known yet: the allocator may have left any stretch out.
    fn look_far(&mut self, pagemap: &File) -> io::Result<()> {
        if let Some(page) = last_touched::<ENTRIES>(pagemap, &(self.ready_to..self.all.end))? {
            self.has_come_to(page);
        }
        Ok(())
    }

    fn has_come_to(&mut self, page: usize) {
        self.used_to = page + PAGE;
        // The rest of its piece is made, too.
        self.ready_to = self.ready_to.max(page / SMALL * SMALL);
    }

    /// Bytes that are there ahead of the allocator. Where it has come by the last mark nobody sees: a mapping that is ready
    /// to its end counts as used from there on.
    fn made(&self) -> usize {
        let is_used_up = self.ready_to == self.all.end && self.used_to + STEP >= self.all.end;
        if is_used_up { 0 } else { self.ready_to.saturating_sub(self.used_to) }
    }

    /// Whether another piece is to be made, where `left` bytes may be: a mapping of which little is used has no more than
    /// that ahead.
    fn wants(&self, left: usize) -> bool {
        let used = self.used_to - self.all.start;
        left > 0 && self.ready_to < self.all.end && self.ready_to - self.used_to.min(self.ready_to) < used
    }

    /// Has faults bring large pages everywhere but where marks are, which have to be touched one by one.
    fn large_but_for_marks(&self) {
        for step in (self.all.start / STEP * STEP..self.all.end).step_by(STEP) {
            let large = (step + LARGE).max(self.all.start)..(step + STEP).min(self.all.end);
            if !large.is_empty() {
                // Advice: only slower without.
                let _ = memory::prefer_large_pages(&large);
            }
        }
    }

    fn make_piece(&mut self, pages: Pages) -> io::Result<()> {
        let start = self.ready_to;
        let has_mark = start / STEP * STEP + LARGE > start;
        let is_large = pages != Pages::Small && !has_mark && start.is_multiple_of(LARGE);
        let bytes = if is_large { LARGE } else { SMALL };
        // To a whole one, wherever it starts: no piece reaches over a mark.
        let piece = start..((start / bytes + 1) * bytes).min(self.all.end);
        let made = if is_large && pages == Pages::Large {
            // Of this piece alone, and no longer than it takes: whoever comes before this thread is not to wait for one.
            let _ = memory::prefer_large_pages(&piece);
            let made = memory::populate(&piece);
            let _ = memory::prefer_small_pages(&piece);
            made
        } else {
            memory::populate(&(if start.is_multiple_of(STEP) { start + PAGE } else { start }..piece.end))
        };
        made.map(|()| self.ready_to = piece.end)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let _ = memory::prefer_small_pages(&self.all);
    }
}

/// The last page of a range of whole pages that was ever touched; `AT_ONCE` pages are asked about at once.
fn last_touched<const AT_ONCE: usize>(pagemap: &File, range: &Range<usize>) -> io::Result<Option<usize>> {
    let mut entries = [[0; ENTRY_BYTES]; AT_ONCE];
    let mut end = range.end;
    while end > range.start {
        let start = range.start.max(end.saturating_sub(AT_ONCE * PAGE));
        let entries = &mut entries[..(end - start) / PAGE];
        pagemap.read_exact_at(entries.as_flattened_mut(), (start / PAGE * ENTRY_BYTES) as u64)?;
        if let Some(last) = entries.iter().rposition(|entry| entry[ENTRY_BYTES - 1] & TOUCHED != 0) {
            return Ok(Some(start + last * PAGE));
        }
        end = start;
    }
    Ok(None)
}

/// Mappings of `/proc/self/maps` that may be the allocator's.
fn regions(maps: &str) -> Vec<Range<usize>> {
    maps.lines().filter_map(region).filter(|region| region.len() >= REGION_MIN).collect()
}

/// Addresses without gaps: a mapping of which parts were advised otherwise has a line for each.
fn stretches(maps: &str) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for part in maps.lines().filter_map(region) {
        match stretches.last_mut().filter(|before| before.end == part.start) {
            Some(before) => before.end = part.end,
            None => stretches.push(part),
        }
    }
    stretches
}

/// What there is of these besides what is known: a new mapping may have grown together with its neighbour.
fn beyond(regions: &[Range<usize>], known: &[Range<usize>]) -> Vec<Range<usize>> {
    let new = regions.iter().filter_map(|region| {
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
mod tests;
