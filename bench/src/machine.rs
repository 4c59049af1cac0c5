//! Facts about the machine and the run, without which a figure cannot be interpreted.

use serde_json::{Map, Value, json};
use std::path::Path;
use tools::machine::{self, Machine};

/// Build (`build.rs`), processor, cores, kernel, file system of the logs, load.
pub fn facts() -> Map<String, Value> {
    let Machine { processor, cores, kernel, .. } = Machine::look();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut facts = Map::new();
    let mut fact = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    fact("version", json!(env!("CARGO_PKG_VERSION")));
    fact("commit", json!(env!("BENCH_COMMIT")));
    fact("build", json!(env!("BENCH_PROFILE")));
    fact("features", json!(env!("BENCH_FEATURES")));
    fact("compiler", json!(env!("BENCH_COMPILER")));
    fact("machine", json!(processor));
    fact("cores", json!(cores));
    fact("kernel", json!(kernel));
    fact("file system", json!(file_system(&mounts, &std::env::temp_dir())));
    fact("load", json!(load()));
    facts
}

/// One line of them.
pub fn text(facts: &Map<String, Value>) -> String {
    let words: Vec<_> = facts
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name} {text}"),
            other => format!("{name} {other}"),
        })
        .collect();
    words.join(", ")
}

/// Load average of the last minute, this program included.
pub fn load() -> String {
    machine::load().unwrap_or_else(|| "?".to_owned())
}

/// The type of the mount that holds `place`.
fn file_system(mounts: &str, place: &Path) -> String {
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (at, kind) = (words.next()?.to_owned(), words.next()?.to_owned());
        place.starts_with(&at).then_some((at.len(), kind))
    };
    // Of two mounts at one path the later one is visible.
    let longest = mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length);
    longest.map_or("?".to_owned(), |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_on_the_nearest_mount() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /scratch tmpfs rw 0 0\n/dev/b /scratch/fast xfs rw 0 0\n";
        let cases = [
            ("/", "ext4"),
            ("/scratch", "tmpfs"),
            ("/scratches", "ext4"),
            ("/scratch/fast/x", "xfs"),
            ("/srv/x", "ext4"),
        ];
        for (place, expected) in cases {
            assert_eq!(file_system(mounts, Path::new(place)), expected, "{place}");
        }
        assert_eq!(file_system("", Path::new("/")), "?");
        println!("places: {} cases", cases.len() + 1);
    }

    #[test]
    fn every_fact_is_there() {
        let facts = facts();
        let names =
            ["version", "commit", "build", "features", "compiler", "machine", "cores", "kernel", "file system", "load"];
        for name in names {
            assert!(facts.get(name).is_some_and(|value| *value != json!("")), "{name}: {facts:?}");
        }
        assert!(text(&facts).contains("kernel Linux "), "{}", text(&facts));
        let commit = facts["commit"].as_str().expect("a text");
        let is_commit = |text: &str| text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(commit == "unknown" || is_commit(commit.trim_end_matches('+')), "{commit}");
        let is_with_peers =
            facts["features"].as_str().is_some_and(|names| names.split(' ').any(|name| name == "peers"));
        assert_eq!(is_with_peers, cfg!(feature = "peers"), "{facts:?}");
        println!("facts: {} cases", names.len() + 3);
    }
}
