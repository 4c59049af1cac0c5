//! Facts about the machine of the client and about the server: without them a figure means nothing.

use super::ask::Ask;
use serde_json::{Map, Value, json};

/// Linux counts processor time in hundredths of a second.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// Processor, cores, kernel, and what this client is.
pub fn machine() -> Map<String, Value> {
    let model = read("/proc/cpuinfo");
    let model = model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let profile = if cfg!(debug_assertions) { "dev, not for publishing" } else { "release" };
    let mut facts = Map::new();
    facts.insert("client".into(), json!(format!("papertape {}, {profile} build", env!("CARGO_PKG_VERSION"))));
    facts.insert("processor".into(), json!(model.unwrap_or("?")));
    facts.insert("cores".into(), json!(std::thread::available_parallelism().map_or(0, usize::from)));
    facts.insert("kernel".into(), json!(format!("Linux {}", read("/proc/sys/kernel/osrelease").trim())));
    facts
}

/// What the server says of itself. What it does not say now is left as it was: a load does not fail for the want of it.
pub async fn server(ask: &mut Ask, key: &str, facts: &mut Value) {
    for (name, path) in [("version", "/v1/health/version"), ("status", "/v1/status")] {
        if let Ok(Some(said)) = ask.read_if_there::<Value>(path, key).await {
            facts[name] = said;
        }
    }
}

/// Mean count of busy threads of this machine over the last minute, ours included.
pub fn load() -> Option<String> {
    read("/proc/loadavg").split(' ').next().filter(|load| !load.is_empty()).map(str::to_owned)
}

/// Processor time of this program so far, user's and system's.
pub fn own_ticks() -> Option<u64> {
    let stat = read("/proc/self/stat");
    // Behind the name, which may hold anything: state is field 3, the two times are fields 14 and 15.
    let (_, behind) = stat.rsplit_once(')')?;
    let mut times = behind.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    Some(times.next()?? + times.next()??)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_is_there() {
        let facts = machine();
        for name in ["client", "processor", "cores", "kernel"] {
            assert!(
                facts.get(name).is_some_and(|value| *value != json!("") && *value != json!(0)),
                "{name}: {facts:?}"
            );
        }
        assert!(load().is_some_and(|load| load.parse::<f64>().is_ok()));
        let before = own_ticks().expect("a program has its times");
        assert!(own_ticks().expect("still") >= before);
        println!("facts: 6 cases");
    }
}
