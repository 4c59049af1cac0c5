//! The kernel's figures of this process, under the usual names: memory, processor time, descriptors. Read from
//! `/proc/self`; elsewhere these families have no rows. Also the log lines that could not be written to standard error.

use super::family::{Family, Writer};
use host::output;
use std::fmt::Error;
use std::fs;

const CPU: Family = Family::new("process_cpu_seconds_total", "Processor time of all threads, user and system");
const RESIDENT: Family =
    Family::new("process_resident_memory_bytes", "Memory resident, mapped segments of the log included");
const DESCRIPTORS: Family = Family::new("process_open_fds", "File descriptors open");
const DESCRIPTORS_MAX: Family = Family::new("process_max_fds", "File descriptors that may be open");
const THREADS: Family = Family::new("process_threads", "Threads");
const LINES_LOST: Family =
    Family::new("papertape_log_lines_lost_total", "Log lines that could not be written to standard error");

/// Ticks of `/proc/self/stat` in a second: guaranteed by Linux (`USER_HZ`), independent of its own timer.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn write(out: &mut Writer<'_>) -> Result<(), Error> {
    out.counter(&LINES_LOST, output::log_lines_lost())?;
    let of = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let (status, limits) = (of("status"), of("limits"));
    out.counters(&CPU, cpu_seconds(&of("stat")).map(|seconds| (&[][..], seconds)))?;
    let resident = field(&status, "VmRSS:").map(|kib| kib * 1_024);
    out.gauges(&RESIDENT, resident.map(|bytes| (&[][..], bytes)))?;
    // The listing itself holds one descriptor.
    let open = fs::read_dir("/proc/self/fd").ok().map(|listed| listed.count().saturating_sub(1));
    out.gauges(&DESCRIPTORS, open.map(|count| (&[][..], count)))?;
    out.gauges(&DESCRIPTORS_MAX, field(&limits, "Max open files").map(|count| (&[][..], count)))?;
    out.gauges(&THREADS, field(&status, "Threads:").map(|count| (&[][..], count)))
}

/// User and system time of `/proc/self/stat`: the 14th and 15th field, counted after the name in its brackets.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / TICKS_PER_SECOND)
}

/// The first number of the line that begins with `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let stat = "7 (paper) tape (x) S 1 7 7 0 -1 4194560 900 0 3 0 250 75 0 0 20 0 6 0 100 1000 300";
        assert_eq!(cpu_seconds(stat), Some(3.25));
        let status = "Name:\tpapertape\nVmRSS:\t   12345 kB\nThreads:\t6\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "Threads:")), (Some(12_345), Some(6)));
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 4096  files\n";
        assert_eq!(field(limits, "Max open files"), Some(1_024));
        for (text, name) in [("", "VmRSS:"), ("VmRSS:\n", "VmRSS:"), ("Max open files unlimited", "Max open files")] {
            assert_eq!(field(text, name), None, "{text:?}");
        }
        for stat in ["", "7 (x) S 1", "7 x S 1 7 7 0 -1 4194560 900 0 3 0 a b"] {
            assert_eq!(cpu_seconds(stat), None, "{stat:?}");
        }
        println!("texts of the kernel: 10 cases");
    }
}
