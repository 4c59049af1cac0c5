//! Facts about this machine and its programs (Linux), without which a figure cannot be interpreted.

/// Linux counts processor time in hundredths of a second.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// Facts that do not change while a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub kernel: String,
    /// How this program was built.
    pub build: &'static str,
}

impl Machine {
    /// Of this machine. An unknown value is a question mark.
    pub fn look() -> Machine {
        let cpus = read("/proc/cpuinfo");
        let model = cpus.lines().find_map(|line| Some(line.strip_prefix("model name")?.split_once(": ")?.1));
        Machine {
            processor: model.unwrap_or("?").to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            build: if cfg!(debug_assertions) { "dev, not for publishing" } else { "release" },
        }
    }
}

/// Load average of the last minute, this program included.
pub fn load() -> Option<String> {
    read("/proc/loadavg").split(' ').next().filter(|load| !load.is_empty()).map(str::to_owned)
}

/// Processor time of a program so far, user and system time of all its threads, in ticks; `None` when it has ended.
pub fn ticks(pid: u32) -> Option<u64> {
    let stat = read(&format!("/proc/{pid}/stat"));
    // After the name, which may contain any character: state is field 3, the two times are fields 14 and 15.
    let (_, behind) = stat.rsplit_once(')')?;
    let mut times = behind.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    Some(times.next()?? + times.next()??)
}

/// How long this program's first thread was runnable without a core, so far, in nanoseconds.
pub fn waited() -> Option<u64> {
    read("/proc/self/schedstat").split_whitespace().nth(1)?.parse().ok()
}

/// Resident anonymous memory of a program, in bytes; `None` when it has ended.
pub fn anonymous_bytes(pid: u32) -> Option<u64> {
    kibibytes(&read(&format!("/proc/{pid}/status")), "RssAnon:")
}

/// Bytes that programs may still allocate before the system runs short of memory.
pub fn available_bytes() -> Option<u64> {
    kibibytes(&read("/proc/meminfo"), "MemAvailable:")
}

/// The value of a line with that name, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let words = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1_024 * words.split_whitespace().next()?.parse::<u64>().ok()?)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_is_there() {
        let Machine { processor, cores, kernel, build } = Machine::look();
        assert!(!processor.is_empty() && cores > 0 && kernel.len() > "Linux ".len() && !build.is_empty());
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
        assert!(load().is_some_and(|load| load.parse::<f64>().is_ok()));
        assert!(waited() <= waited(), "it only grows");
        println!("facts: 7 cases");
    }

    #[test]
    fn a_program_is_seen_until_it_is_gone() {
        let me = std::process::id();
        let before = ticks(me).expect("a running program has times");
        let anonymous = anonymous_bytes(me);
        assert!(anonymous.is_some_and(|bytes| bytes > 0), "{anonymous:?}");
        let held = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(anonymous_bytes(me) >= anonymous.map(|bytes| bytes + (60 << 20)), "written memory is resident");
        drop(held);
        assert!(ticks(me).expect("still") >= before);
        let nobody = u32::MAX;
        assert_eq!((ticks(nobody), anonymous_bytes(nobody)), (None, None));
        println!("programs: 4 cases");
    }
}
