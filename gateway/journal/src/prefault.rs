//! Prefaulting: memory that is provided before it is needed.
//!
//! The first touch of a page is a fault: the kernel finds a page and clears it, and in a virtual machine the host may
//! have to do so first; it takes between half a microsecond and ten. An order leaves half a kilobyte, so one order in
//! eight would wait for that. This job makes the kernel do it ahead of the allocator, seven eighths of it in large
//! pages, which also need fewer entries of the processor's TLB. Clearing a large page takes up to milliseconds, in
//! which the kernel may not give the core away. If other threads want all cores, or there is only one, it therefore
//! makes small pages, few at a time.
//!
//! It identifies the allocator by its large mappings, which are filled from their low ends on. Marks show the
//! allocator's progress: one page of each 16 MiB is left out, and is resident once it was touched. While a start reads
//! its log the thread does not rest, since clearing memory would be up to half of that time; no single order waits
//! then, and faults ahead of the thread bring large pages, too. From then on they bring small ones, under any
//! default of the system, permanently, even after the thread has ended.
//!
//! Nothing depends on it. If the kernel does not support it (before Linux 5.14), does not report resident pages, or has
//! pages other than 4 KiB, nothing is advised and there is no thread. It also does nothing with an allocator that
//! reserves no large mappings, for instance if the system does not overcommit memory.

use host::job::{JobWaker, Next, Work};
use host::thread::Stop;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wal::memory;

/// Default distance of the thread ahead of the allocator, bytes.
pub const AHEAD_BYTES: usize = 64 << 20;
/// Distance of two marks, bytes.
const STEP: usize = 16 << 20;
/// Bytes that are populated in one step: one large page, or some small ones. The thread rests after each, so that it
/// never holds a core for long.
const LARGE: usize = 2 << 20;
const SMALL: usize = 128 << 10;
/// How far beyond the ready memory marks are checked each time, bytes: the allocator keeps stretches of 32 MiB for each
/// kind of block, and may take the next one anywhere.
const STRETCHES: usize = 64 << 20;
const PAGE: usize = 4 << 10;
/// Smallest mapping that is attributed to the allocator, bytes.
const REGION_MIN: usize = 256 << 20;

/// The mappings of the process, one per line.
const MAPS: &str = "/proc/self/maps";
/// The state of each page of the process's addresses.
const PAGEMAP: &str = "/proc/self/pagemap";
/// Bytes per page in that file, and the bits of the last of them that mean that the page was touched: it is in memory,
/// or was swapped out.
const ENTRY_BYTES: usize = 8;
const TOUCHED: u8 = 0xc0;
/// Pages that are read at a time.
const ENTRIES: usize = 8 << 10;

/// Time between two large pieces, and between two small ones, which are made while other threads want the core: 30 MB a
/// second, more than orders take at full rate.
const LARGE_EVERY: Duration = Duration::from_millis(1);
const SMALL_EVERY: Duration = Duration::from_millis(4);
/// Time between two checks while memory is used, and while none is.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const IDLE_LOOK_EVERY: Duration = Duration::from_millis(100);
/// Checks without progress after which the allocator counts as idle.
const LOOKS_UNTIL_IDLE: u32 = 50;
/// Checks between two searches for changed mappings.
const LOOKS_PER_SEARCH: u32 = 64;
/// Time between two checks while a log is read.
const LOADING_LOOK_EVERY: Duration = Duration::from_millis(1);
/// A wait for a core during a piece that indicates that other threads want all cores.
const CROWDED: Duration = Duration::from_millis(1);
/// Time until the next large page while other threads want all cores.
const LARGE_AGAIN: Duration = Duration::from_secs(1);
/// Time until the next try when there was no memory: the longest sleep of the job.
pub const MEMORY_AGAIN: Duration = Duration::from_secs(5);

/// The job that touches memory before it is needed.
#[derive(Debug)]
pub struct Prefault {
    ahead: Ahead,
    loading: Loading,
    /// Checks since the last progress.
    quiet: u32,
}

/// Whether a start still reads its log. Without a job it has no effect.
#[derive(Clone, Debug, Default)]
pub struct Loading {
    is_over: Arc<AtomicBool>,
    waker: JobWaker,
}

impl Loading {
    /// From here on clients wait for orders: a fault brings a small page, and the job stays ahead.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Prefault {
    /// Stays at most `ahead` bytes ahead of the allocator; with 0 there is no job. Until [`Loading::end`] it does not
    /// rest, and faults bring large pages.
    pub fn new(ahead: usize, loading: &Loading) -> Option<Prefault> {
        if ahead == 0 || rustix::param::page_size() != PAGE {
            return None;
        }
        let tried = try_out().inspect_err(|error| tracing::debug!(%error, "memory is not prefaulted"));
        let ahead = Ahead { pagemap: tried.ok()?, bytes: ahead, regions: Vec::new(), looks: 0, crowd: None };
        Some(Prefault { ahead, loading: loading.clone(), quiet: 0 })
    }

    fn loading_turn(&mut self) -> Next {
        match self.ahead.turn() {
            Ok(true) => Next::Again,
            Ok(false) => Next::SleepFor(LOADING_LOOK_EVERY),
            Err(_) => {
                // The mappings are searched again, as after the start.
                self.ahead.forget();
                Next::SleepFor(LOOK_EVERY)
            }
        }
    }
}

impl Work for Prefault {
    type Error = Infallible;

    fn take_turn(&mut self, _: &Stop) -> Result<Next, Infallible> {
        if self.ahead.crowd.is_none() {
            if !self.loading.is_over.load(Ordering::Acquire) {
                return Ok(self.loading_turn());
            }
            self.ahead.loaded();
        }
        Ok(match self.ahead.turn() {
            Ok(true) => {
                self.quiet = 0;
                Next::SleepFor(self.ahead.rest())
            }
            Ok(false) => {
                self.quiet = self.quiet.saturating_add(1);
                Next::SleepFor(if self.quiet < LOOKS_UNTIL_IDLE { LOOK_EVERY } else { IDLE_LOOK_EVERY })
            }
            // No memory is left, or a mapping is gone: the mappings are searched again.
            Err(error) => {
                tracing::debug!(%error, "memory could not be prefaulted");
                self.ahead.forget();
                Next::SleepFor(MEMORY_AGAIN)
            }
        })
    }

    fn waker(&self) -> Option<&JobWaker> {
        Some(&self.loading.waker)
    }
}

/// Opens the page map and populates a page, before any advice that would have to be taken back.
fn try_out() -> io::Result<File> {
    let pagemap = File::open(PAGEMAP)?;
    let tried = vec![0_u8; 2 * PAGE];
    let page = (tried.as_ptr() as usize).next_multiple_of(PAGE);
    memory::populate(&(page..page + PAGE))?;
    Ok(pagemap)
}

/// How long this thread has waited for a core so far; zero if the system does not report it.
fn waited_for_a_core() -> Duration {
    let figures = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = figures.split_ascii_whitespace().nth(1).and_then(|waited| waited.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// The memory ahead of the allocator.
#[derive(Debug)]
struct Ahead {
    pagemap: File,
    /// Bound for all regions together.
    bytes: usize,
    regions: Vec<Region>,
    looks: u32,
    /// `None` while a log is read.
    crowd: Option<Crowd>,
}

/// Whether other threads want the cores.
#[derive(Debug, Default)]
struct Crowd {
    /// There is only one core.
    alone: bool,
    /// When a piece last waited for a core.
    at: Option<Instant>,
}

impl Crowd {
    fn pages(&self, now: Instant) -> Pages {
        let crowded = self.at.is_some_and(|at| now.duration_since(at) < LARGE_AGAIN);
        if self.alone || crowded { Pages::Small } else { Pages::Large }
    }

    /// Records that a piece waited for a core for `waited`.
    fn note(&mut self, waited: Duration, now: Instant) {
        if waited > CROWDED {
            self.at = Some(now);
        }
    }
}

/// The kind of pages to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    Large,
    Small,
    /// No client waits for an order: all faults bring large pages.
    Loading,
}

/// A mapping of the allocator.
#[derive(Debug)]
struct Region {
    all: Range<usize>,
    /// The allocator has used at least up to here.
    used_to: usize,
    /// Up to here memory is resident, except for the marks.
    ready_to: usize,
}

impl Ahead {
    /// Makes at most one piece. Returns false if all wanted memory is resident.
    ///
    /// # Errors
    /// The system's: no memory, or the mapping is gone.
    fn turn(&mut self) -> io::Result<bool> {
        if self.looks.is_multiple_of(LOOKS_PER_SEARCH) {
            self.search()?;
        }
        self.looks += 1;
        for region in &mut self.regions {
            region.look(&self.pagemap)?;
        }
        let left = self.bytes.saturating_sub(self.regions.iter().map(Region::made).sum());
        let Some(region) = self.regions.iter_mut().find(|region| region.wants(left)) else { return Ok(false) };
        let Some(crowd) = &mut self.crowd else { return region.make_piece(Pages::Loading).map(|()| true) };
        // Of this piece alone: waits during checks add up, and do not indicate a crowd.
        let waited_before = waited_for_a_core();
        region.make_piece(crowd.pages(Instant::now()))?;
        crowd.note(waited_for_a_core().saturating_sub(waited_before), Instant::now());
        Ok(true)
    }

    /// How long to rest after a piece.
    fn rest(&self) -> Duration {
        match self.crowd.as_ref().map(|crowd| crowd.pages(Instant::now())) {
            Some(Pages::Small) => SMALL_EVERY,
            _ => LARGE_EVERY,
        }
    }

    /// Makes the next turn search all mappings again.
    fn forget(&mut self) {
        self.regions.clear();
        self.looks = 0;
    }

    /// Drops mappings that are gone, adds new ones, and checks all of the others completely.
    fn search(&mut self) -> io::Result<()> {
        let maps = fs::read_to_string(MAPS)?;
        let mapped = stretches(&maps);
        self.regions.retain(|region| {
            mapped.iter().any(|mapped| mapped.start <= region.all.start && region.all.end <= mapped.end)
        });
        for region in &mut self.regions {
            region.look_far(&self.pagemap)?;
        }
        let known: Vec<_> = self.regions.iter().map(|region| region.all.clone()).collect();
        for all in beyond(&regions(&maps), &known) {
            let region = Region::new(all, &self.pagemap)?;
            if self.crowd.is_none() {
                region.large_but_for_marks();
            }
            self.regions.push(region);
        }
        Ok(())
    }

    /// From here on clients wait for orders.
    fn loaded(&mut self) {
        let alone = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
        self.crowd = Some(Crowd { alone, at: None });
        // If a mapping is gone by now, there is no advice to take back.
        self.regions.iter().for_each(|region| drop(memory::prefer_small_pages(&region.all)));
    }
}

impl Region {
    fn new(all: Range<usize>, pagemap: &File) -> io::Result<Region> {
        // A fault ahead of this thread should bring only a small page. Advice: without it, only slower.
        let _ = memory::prefer_small_pages(&all);
        let mut region = Region { used_to: all.start, ready_to: all.start, all };
        region.look_far(pagemap)?;
        Ok(region)
    }

    /// Checks which marks were touched.
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

    /// Checks all pages of unknown state: the allocator may have skipped any stretch.
    fn look_far(&mut self, pagemap: &File) -> io::Result<()> {
        if let Some(page) = last_touched::<ENTRIES>(pagemap, &(self.ready_to..self.all.end))? {
            self.has_come_to(page);
        }
        Ok(())
    }

    fn has_come_to(&mut self, page: usize) {
        self.used_to = page + PAGE;
        // The rest of its piece counts as made, too.
        self.ready_to = self.ready_to.max(page / SMALL * SMALL);
    }

    /// Bytes that are resident ahead of the allocator. Its progress after the last mark is unknown: a mapping that is
    /// ready to its end counts as used from there on.
    fn made(&self) -> usize {
        let is_used_up = self.ready_to == self.all.end && self.used_to + STEP >= self.all.end;
        if is_used_up { 0 } else { self.ready_to.saturating_sub(self.used_to) }
    }

    /// Whether another piece is needed, within the `left` bytes that are allowed: a mapping has no more made ahead than
    /// was used of it.
    fn wants(&self, left: usize) -> bool {
        let used = self.used_to - self.all.start;
        left > 0 && self.ready_to < self.all.end && self.ready_to - self.used_to.min(self.ready_to) < used
    }

    /// Makes faults bring large pages everywhere except around marks, which must be touched one by one.
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
        // Up to the next multiple of its size: no piece crosses a mark.
        let piece = start..((start / bytes + 1) * bytes).min(self.all.end);
        let made = if is_large && pages == Pages::Large {
            // For this piece alone, and no longer than it takes: a fault ahead of this thread must not wait for a large
            // page.
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

/// The last page of a range of whole pages that was ever touched; `AT_ONCE` pages are read at a time.
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

/// Mappings of `/proc/self/maps` that may belong to the allocator.
fn regions(maps: &str) -> Vec<Range<usize>> {
    maps.lines().filter_map(region).filter(|region| region.len() >= REGION_MIN).collect()
}

/// Stretches without gaps: a mapping has a line for each part that was advised differently.
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

/// The parts of `regions` that are not in `known`: a new mapping may have merged with its neighbour.
fn beyond(regions: &[Range<usize>], known: &[Range<usize>]) -> Vec<Range<usize>> {
    let new = regions.iter().filter_map(|region| {
        let inside = known.iter().filter(|known| known.start < region.end && region.start < known.end);
        let start = inside.map(|known| known.end).max().map_or(region.start, |end| end.max(region.start));
        (start + REGION_MIN <= region.end).then_some(start..region.end)
    });
    new.collect()
}

/// The addresses of a readable and writable private mapping that has no file, and is not a stack or the heap.
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
