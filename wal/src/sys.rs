//! The few system calls without a safe wrapper: the SIGBUS handler, the time slice of the sync thread, the barrier that
//! keeps an append cheap, advice about memory, and the file system's type and free space. Also the processor's CRC
//! instruction.
//!
//! Linux only, like the log. Calls that the standard library wraps safely are used from there.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Once;

const FAULT_LINE: &[u8] = b"log: a page of a mapped segment could not be read or written (SIGBUS); aborting\n";

extern "C" fn on_fault(_signal: libc::c_int) {
    let mut stderr = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: `poll`, `write` and `abort` may be called inside a signal handler (signal-safety(7)). The line is a
    // constant, so nothing is allocated, locked or formatted here. A full pipe without a reader would block the handler
    // for ever, so `poll` first checks that it accepts the line.
    unsafe {
        if libc::poll(&mut stderr, 1, 0) == 1 {
            libc::write(libc::STDERR_FILENO, FAULT_LINE.as_ptr().cast(), FAULT_LINE.len());
        }
        libc::abort();
    }
}

/// Makes a failing page of a mapping end the process with one fixed line instead of silently. Installed once per
/// process, by the first mapping. The process cannot continue: an append was interrupted in the middle.
pub(crate) fn install_fault_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `action` is zeroed, which is a valid `sigaction` with an empty mask, and its handler has the
        // signature required without SA_SIGINFO. `on_fault` makes only signal-safe calls and never returns.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

/// The layout of `struct sched_attr`, first version (48 bytes); see sched_setattr(2).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const SLICE_NS: u64 = 100_000;

/// Requests a time slice of 100 µs for the calling thread, so that it runs again soon after a sync although other
/// threads keep the cores busy (measured: ten times the syncs on a loaded machine). Needs no privilege. Returns whether
/// the kernel accepted it; an old kernel or a sandbox may not, and then nothing has changed.
pub fn take_short_slice() -> bool {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>() as libc::c_uint;
    // SAFETY: both calls concern the calling thread (id 0) and get a pointer to a `sched_attr` together with its size;
    // the kernel writes at most that many bytes and reads no others.
    unsafe {
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0) != 0 {
            return false;
        }
        if attr.policy != libc::SCHED_OTHER as u32 {
            // A better scheduling policy has been set already.
            return false;
        }
        attr.size = size;
        attr.runtime_ns = SLICE_NS;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) == 0
    }
}

const MEMBARRIER_PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Registers the process for [`barrier_on_all_threads`]. `false` when the kernel has no such call.
pub(crate) fn register_barrier() -> bool {
    // SAFETY: membarrier takes three integers and accesses no memory of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 }
}

/// Makes every running thread of the process pass a full memory barrier. Costs microseconds here and nothing there: the
/// thread that is about to sleep pays, so that an append needs no barrier.
///
/// # Panics
/// If [`register_barrier`] did not succeed before.
pub(crate) fn barrier_on_all_threads() {
    // SAFETY: as above.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) };
    assert!(done == 0, "membarrier was registered and cannot fail");
}

/// The user this process acts as.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Bytes of a page of the system's memory.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: passes and returns integers, and the name exists on every system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0)
}

/// The file system's type number, and the bytes on it that are free for this user.
pub(crate) fn file_system(file: &File) -> io::Result<(u64, u64)> {
    // SAFETY: `stat` is a valid zeroed `statfs` that lives through the call, and the descriptor is open.
    let stat = unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(file.as_raw_fd(), &raw mut stat) != 0 {
            return Err(io::Error::last_os_error());
        }
        stat
    };
    Ok((stat.f_type as u64, stat.f_bavail.saturating_mul(stat.f_bsize as u64)))
}

/// Reserves blocks for the first `bytes` of the file, so that a full disk is reported here. A file system without the
/// call counts as success: the zeros written next reserve them too.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    // SAFETY: integers only, and the descriptor is open.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EOPNOTSUPP) { Ok(()) } else { Err(error) }
}

/// Advises the kernel how cached pages of the first `bytes` bytes of the file will be used. Correctness does not depend
/// on it.
pub(crate) fn advise(file: &File, bytes: u64, advice: libc::c_int) {
    // A length of 0 means all.
    let length = libc::off_t::try_from(bytes).unwrap_or(0);
    // SAFETY: integers only, and the descriptor is open.
    unsafe {
        libc::posix_fadvise(file.as_raw_fd(), 0, length, advice);
    }
}

/// Starts to write `from..to` of the file to the device, and waits for writes that were started before it. The kernel
/// reports a failure once, here or in the sync that follows.
#[cfg(target_os = "linux")]
pub(crate) fn write_back(file: &File, from: u64, to: u64) -> io::Result<()> {
    let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE;
    for (from, to, how) in [(0, from, wait), (from, to, libc::SYNC_FILE_RANGE_WRITE)] {
        // A length of 0 would mean all.
        if from < to {
            // SAFETY: integers only, and the descriptor is open.
            let done = unsafe { libc::sync_file_range(file.as_raw_fd(), from as i64, (to - from) as i64, how) };
            if done != 0 {
                let error = io::Error::last_os_error();
                // A file system that cannot do it in parts does it in the sync.
                let cannot = matches!(error.raw_os_error(), Some(libc::ESPIPE | libc::ENOSYS));
                return if cannot { Ok(()) } else { Err(error) };
            }
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn write_back(_: &File, _: u64, _: u64) -> io::Result<()> {
    Ok(())
}

/// Advice about memory that changes no byte of it.
#[derive(Clone, Copy)]
enum Advice {
    /// Provide memory now.
    Populate,
    /// How much a first touch provides.
    LargePages,
    SmallPages,
}

/// Makes the kernel provide memory for a range of whole pages now instead of at their first touch (Linux 5.14). Their
/// contents do not change; pages of a shared file mapping count as written to.
///
/// # Errors
/// The system's: an older kernel, pages that are not mapped, no memory.
pub fn populate(range: &Range<usize>) -> io::Result<()> {
    advise_memory(range, Advice::Populate)
}

/// Makes the first touch of a range of whole pages provide a large page if one is free.
///
/// # Errors
/// The system's: a kernel without large pages, pages that are not mapped.
pub fn prefer_large_pages(range: &Range<usize>) -> io::Result<()> {
    advise_memory(range, Advice::LargePages)
}

/// The opposite of [`prefer_large_pages`]. Existing large pages stay.
///
/// # Errors
/// As for [`prefer_large_pages`].
pub fn prefer_small_pages(range: &Range<usize>) -> io::Result<()> {
    advise_memory(range, Advice::SmallPages)
}

fn advise_memory(range: &Range<usize>, advice: Advice) -> io::Result<()> {
    let advice = match advice {
        Advice::Populate => libc::MADV_POPULATE_WRITE,
        Advice::LargePages => libc::MADV_HUGEPAGE,
        Advice::SmallPages => libc::MADV_NOHUGEPAGE,
    };
    // SAFETY: each of the three changes when and how pages get their memory, and never their contents, for memory of any
    // owner; the kernel refuses addresses that are not mapped.
    let done = unsafe { libc::madvise(std::ptr::without_provenance_mut(range.start), range.len(), advice) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// CRC32C of the four bytes of `length`, then the bytes of `head`, then `body`, by the processor's instructions; `None`
/// if it lacks them, or if `body` is too long for the table.
///
/// The instruction waits three cycles for its own last result, so one chain over a record of 128 bytes takes 45 cycles;
/// the checksum crate does that below 768 bytes. Three chains in parallel take 18, and 12 to be combined. That also
/// shortens the wait of a record for the checksum of the one before it, which it repeats.
#[inline]
pub(crate) fn checksum(length: u32, head: &[u64], body: &[u8]) -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    if body.len() <= CHAINED_BYTES_MAX && is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: both features were just detected.
        return Some(unsafe { three_chains(length, head, body) });
    }
    let _ = (length, head, body);
    None
}

/// Longest input of [`three_chains`], bytes.
#[cfg(target_arch = "x86_64")]
const CHAINED_BYTES_MAX: usize = 4_096;

/// `SHIFT[n]`: x^(64 n − 33) modulo the polynomial, bits reflected. A checksum multiplied by it, and passed through the
/// instruction as a word, is that checksum after `n` words of zeros. The first entry is unused.
#[cfg(target_arch = "x86_64")]
static SHIFT: [u32; CHAINED_BYTES_MAX / 8 + 1] = {
    let mut table = [0; CHAINED_BYTES_MAX / 8 + 1];
    // x^31.
    let mut power: u32 = 1;
    let mut words = 1;
    while words < table.len() {
        table[words] = power;
        let mut bit = 0;
        while bit < 64 {
            power = (power >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(power & 1));
            bit += 1;
        }
        words += 1;
    }
    table
};

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn three_chains(length: u32, head: &[u64], body: &[u8]) -> u32 {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
        _mm_xor_si128,
    };
    let (words, odd) = body.as_chunks::<8>();
    // The first chain already has the head; the other two share the rest, and at most one word remains.
    let with_head = ((words.len() + head.len()) / 3).saturating_sub(head.len());
    let each = (words.len() - with_head) / 2;
    let (first, words) = (&words[..with_head], &words[with_head..]);
    let (second, third) = (&words[..each], &words[each..2 * each]);
    let mut chains = [u64::from(_mm_crc32_u32(!0, length)), 0, 0];
    for word in head {
        chains[0] = _mm_crc32_u64(chains[0], *word);
    }
    for word in first {
        chains[0] = _mm_crc32_u64(chains[0], u64::from_le_bytes(*word));
    }
    // By index: the compiler does not always inline two iterators into a function with target features.
    for at in 0..each {
        chains[1] = _mm_crc32_u64(chains[1], u64::from_le_bytes(second[at]));
        chains[2] = _mm_crc32_u64(chains[2], u64::from_le_bytes(third[at]));
    }
    let mut crc = chains[0];
    if each > 0 {
        let later = |crc: u64, words: usize| {
            let (crc, shift) = (_mm_cvtsi64_si128(crc as i64), _mm_cvtsi64_si128(i64::from(SHIFT[words])));
            _mm_clmulepi64_si128::<0>(crc, shift)
        };
        let both = _mm_xor_si128(later(chains[0], 2 * each), later(chains[1], each));
        crc = _mm_crc32_u64(0, _mm_cvtsi128_si64(both) as u64) ^ chains[2];
    }
    if let Some(word) = words.get(2 * each) {
        crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
    }
    let mut crc = crc as u32;
    for byte in odd {
        crc = _mm_crc32_u8(crc, *byte);
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_processor_and_the_crate_agree_on_every_length() {
        let mut rng = crate::fault::Rng::new(0xc4c);
        let bytes: Vec<u8> = (0..CHECKED_BYTES).map(|_| rng.next() as u8).collect();
        let (mut cases, mut left) = (0, 0);
        for end in 0..=bytes.len() {
            // At different alignments, too.
            let body = &bytes[(end / 8 % 8).min(end)..end];
            let length = rng.next() as u32;
            let head: Vec<u64> = (0..end % 7).map(|_| rng.next()).collect();
            let mut plain = length.to_le_bytes().to_vec();
            head.iter().for_each(|word| plain.extend(word.to_le_bytes()));
            plain.extend(body);
            match checksum(length, &head, body) {
                Some(found) => assert_eq!(found, crc32c::crc32c(&plain), "{} words, {} bytes", head.len(), body.len()),
                None => left += 1,
            }
            cases += 1;
        }
        println!("checksums: {cases} cases, {left} of them left to the crate");
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("sse4.2") && std::is_x86_feature_detected!("pclmulqdq") {
            assert!(left < 200, "only inputs longer than the table are left");
        }
    }

    const CHECKED_BYTES: usize = 4_200;

    #[test]
    fn a_short_slice_is_accepted_or_refused() {
        std::thread::spawn(|| println!("short slice: {}", take_short_slice())).join().expect("no panic");
    }

    #[test]
    fn populated_memory_keeps_its_contents() {
        const PAGE: usize = 4_096;
        // Part of it is written to, most of it never touched: an allocator might return memory that was used before.
        let mut memory = memmap2::MmapMut::map_anon(128 * PAGE).expect("addresses for it");
        let first = memory.as_ptr() as usize;
        let whole = first..first + 128 * PAGE;
        // Where the system gives every process large pages, a store would make all of it resident.
        let has_small_pages = prefer_small_pages(&whole).is_ok();
        memory[..2 * PAGE].fill(7);
        let there = || {
            let mut pages = [0_u8; 128];
            // SAFETY: the range is of whole pages that belong to `memory`, and the vector has a byte for each.
            let asked = unsafe {
                libc::mincore(std::ptr::without_provenance_mut(whole.start), whole.len(), pages.as_mut_ptr())
            };
            assert_eq!(asked, 0);
            pages.iter().filter(|page| **page & 1 == 1).count()
        };
        let before = there();
        match populate(&whole) {
            Ok(()) => {
                assert_eq!(there(), 128);
                assert!(before < 128 || !has_small_pages, "all were resident before");
            }
            Err(error) => println!("SKIPPED: {error}"),
        }
        if let (Err(error), _) | (_, Err(error)) = (prefer_large_pages(&whole), prefer_small_pages(&whole)) {
            println!("SKIPPED: {error}");
        }
        let held = (0..128 * PAGE).all(|at| memory[at] == if at < 2 * PAGE { 7 } else { 0 });
        assert!(held, "the contents are unchanged");
        // Unmapped: the last pages below the kernel's half.
        let nobodys = (1 << 47) - 2 * PAGE..(1 << 47) - PAGE;
        assert!(populate(&nobodys).is_err() && prefer_large_pages(&nobodys).is_err());
        assert!(populate(&(first + 1..first + PAGE)).is_err(), "half a page");
    }

    #[test]
    fn a_barrier_passes() {
        if register_barrier() {
            barrier_on_all_threads();
        } else {
            println!("SKIPPED: this kernel has no membarrier");
        }
    }

    #[test]
    fn the_file_system_is_known() {
        let file = tempfile::tempfile().expect("temporary file");
        let (kind, free_bytes) = file_system(&file).expect("fstatfs");
        assert!(kind != 0 && free_bytes > 0);
        reserve(&file, 8192).expect("8 KiB");
        advise(&file, u64::MAX, libc::POSIX_FADV_DONTNEED);
    }

    /// The process that dies: stores past the end of a file that shrank under its mapping.
    /// `cargo test -p wal --lib store_into_a_missing_page -- --ignored --nocapture`
    #[test]
    #[ignore = "aborts; started by the test below"]
    fn store_into_a_missing_page() {
        use crate::storage::SegmentMap;
        let file = tempfile::tempfile().expect("temporary file");
        file.set_len(8192).expect("grow");
        let mut map = crate::segment::FileMap::new(&file, 8192).expect("map");
        file.set_len(0).expect("shrink");
        map.write(4096, 8, |bytes| bytes.fill(1));
    }

    #[test]
    fn a_fault_in_a_mapping_prints_one_line_and_aborts() {
        let test = std::env::current_exe().expect("path of this test");
        let output = Command::new(test)
            .args(["--exact", "sys::tests::store_into_a_missing_page", "--ignored", "--nocapture"])
            .output()
            .expect("run");
        assert!(!output.status.success());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("(SIGBUS); aborting"), "stderr was {stderr:?}");
    }
}
