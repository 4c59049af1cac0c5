//! The layers of the project: which package, and within a package which folder, may name which. Cargo checks packages
//! as well; this test names the layer, and it covers folders, which Cargo does not.

use crate::sources::{self, Source};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tests::binary::{cargo, workspace};
use tests::cases::Cases;

/// One package.
pub struct Layer {
    pub name: &'static str,
    pub folder: &'static str,
    /// Packages that it may name.
    pub may: &'static [&'static str],
    /// Packages that only its tests may name.
    pub tests_may: &'static [&'static str],
}

const fn layer(
    name: &'static str,
    folder: &'static str,
    may: &'static [&'static str],
    tests_may: &'static [&'static str],
) -> Layer {
    Layer { name, folder, may, tests_may }
}

const ALL_OF_THE_GATEWAY: &[&str] = &[
    "engine",
    "wal",
    "wire",
    "host",
    "history",
    "journal",
    "archive",
    "venue",
    "edge",
    "admin",
    "simulation",
    "football",
    "billing",
    "integrations",
];
const ALL: &[&str] = &[
    "engine",
    "wal",
    "wire",
    "host",
    "history",
    "journal",
    "archive",
    "venue",
    "edge",
    "admin",
    "simulation",
    "football",
    "billing",
    "integrations",
    "gateway",
    "tools",
];

/// From the bottom up.
pub const LAYERS: [Layer; 18] = [
    layer("engine", "engine", &[], &[]),
    layer("wal", "wal", &[], &[]),
    layer("wire", "gateway/wire", &["engine"], &[]),
    layer("host", "gateway/host", &["engine", "wire"], &[]),
    layer("history", "gateway/history", &["engine", "wire", "host"], &[]),
    layer("journal", "gateway/journal", &["engine", "wal", "host"], &[]),
    layer("archive", "gateway/archive", &["engine", "wire", "host"], &[]),
    layer("venue", "gateway/venue", &["engine", "wire", "host", "archive"], &["journal", "wal"]),
    layer("edge", "gateway/edge", &["engine", "wire", "host"], &["history", "journal", "venue", "wal"]),
    // The thread of a backup, with its priority and its stop flag, and the token are values of `host`.
    layer("admin", "gateway/admin", &["engine", "wire", "host"], &[]),
    layer("simulation", "gateway/simulation", &["engine", "wire", "host", "archive", "venue", "edge"], &[]),
    layer("football", "gateway/football", &["engine", "wire", "host", "edge"], &[]),
    layer("billing", "gateway/billing", &["engine", "wire", "host", "edge"], &[]),
    layer("integrations", "gateway/integrations", &["engine", "wire", "host", "edge"], &[]),
    layer("gateway", "gateway", ALL_OF_THE_GATEWAY, &[]),
    layer("tools", "tools", ALL, &[]),
    layer("bench", "bench", ALL, &[]),
    layer("tests", "tests", ALL, &[]),
];

/// Folders of a package that may name only these other folders of it. A folder without an entry may name every folder,
/// except in a circle.
const FOLDERS: [(&str, &str, &[&str]); 20] = [
    ("engine", "market", &[]),
    ("engine", "fee", &["market"]),
    ("engine", "book", &["fee", "market"]),
    ("engine", "state", &["book", "fee", "market"]),
    ("engine", "look_up", &["book", "fee", "market", "state"]),
    ("engine", "decide", &["book", "fee", "look_up", "market", "state"]),
    ("edge", "settings", &[]),
    ("edge", "http", &["settings"]),
    ("edge", "api", &["http", "settings"]),
    ("edge", "ws", &["api", "http", "settings"]),
    ("venue", "tape", &[]),
    ("venue", "synthetic", &[]),
    ("venue", "live", &["tape"]),
    ("venue", "feed", &["live", "tape"]),
    ("venue", "polymarket", &["live", "tape"]),
    ("venue", "kalshi", &["live", "tape"]),
    ("venue", "replay", &["tape"]),
    ("venue", "archive", &["kalshi", "live", "replay", "tape"]),
    ("journal", "commit", &[]),
    ("journal", "prefault", &[]),
];

/// The layer of a source: the innermost package around it.
pub fn layer_of(source: &str) -> &'static Layer {
    let holds = |layer: &&Layer| source.strip_prefix(layer.folder).is_some_and(|rest| rest.starts_with('/'));
    LAYERS.iter().filter(holds).max_by_key(|layer| layer.folder.len()).expect("a source is in a package")
}

/// Names before `::` on a line, where a path may begin: not after another `::`, a dot or a letter.
fn roots(line: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices("::").filter_map(move |(at, _)| {
        let begin = line[..at].rfind(|c| !is_name(c)).map_or(0, |before| before + 1);
        let before = &line[..begin];
        let is_absolute = before.ends_with("::") && !before.trim_end_matches("::").ends_with(is_name);
        let begins = begin < at && (!before.ends_with("::") || is_absolute) && !before.ends_with('.');
        begins.then(|| &line[begin..at])
    })
}

/// The violations of a line of a package: the layers that it must not name.
fn wrong_packages(layer: &Layer, line: &str, for_tests: bool, hidden: &BTreeSet<String>) -> Vec<String> {
    let is_package = |name: &&str| LAYERS.iter().any(|layer| layer.name == *name);
    // A local module or alias of the same name takes precedence, unless the path starts with `::`.
    let is_meant = |name: &&str| line.contains(&format!("use ::{name}::")) || !hidden.contains(*name);
    let named = roots(line).filter(is_package).filter(is_meant);
    let is_allowed =
        |name: &&str| *name == layer.name || layer.may.contains(name) || (for_tests && layer.tests_may.contains(name));
    named
        .filter(|name| !is_allowed(name))
        .map(|name| format!("the layer {} must not name the layer {name}", layer.name))
        .collect()
}

/// Names of modules anywhere in a package: they hide packages of the same name.
fn modules(layer: &Layer, all: &[Source]) -> BTreeSet<String> {
    let own = all.iter().filter(|source| std::ptr::eq(layer_of(&source.name), layer));
    own.flat_map(|source| {
        source.name.trim_end_matches(".rs").rsplit('/').take(2).map(str::to_owned).collect::<Vec<_>>()
    })
    .filter(|name| name != "src")
    .collect()
}

#[test]
fn packages_depend_only_on_lower_layers() {
    let cases = Cases::of("dependencies among packages");
    for (package, on, for_tests) in dependencies() {
        if !LAYERS.iter().any(|layer| layer.name == on) {
            continue;
        }
        let layer = LAYERS.iter().find(|layer| layer.name == package).expect("a package of the project");
        // A package may enable a feature of a package that it depends on anyway.
        let allowed = layer.may.contains(&on.as_str()) || (for_tests && layer.tests_may.contains(&on.as_str()));
        assert!(allowed, "the layer {package} must not depend on the layer {on} (tests included: {for_tests})");
        cases.one();
    }
}

#[test]
fn sources_name_only_lower_layers() {
    let cases = Cases::of("paths in sources");
    let all = sources::all();
    let modules: BTreeMap<&str, BTreeSet<String>> =
        LAYERS.iter().map(|layer| (layer.name, modules(layer, &all))).collect();
    for source in &all {
        let layer = layer_of(&source.name);
        let hides = |name: &str| {
            modules[layer.name].contains(name)
                || [';', ',', '}'].iter().any(|end| source.text.contains(&format!(" as {name}{end}")))
        };
        let hidden: BTreeSet<String> =
            LAYERS.iter().filter(|layer| hides(layer.name)).map(|layer| layer.name.to_owned()).collect();
        let program: BTreeSet<usize> = source.code().map(|(number, _)| number).collect();
        for (number, line) in source.all_code() {
            let wrong = wrong_packages(layer, line, !program.contains(&number), &hidden);
            assert!(wrong.is_empty(), "{}:{number}: {}: {line}", source.name, wrong.join(", "));
        }
        cases.one();
    }
}

/// Imports that must fail, each with the layers that the failure names.
#[test]
fn planted_imports_fail_with_the_name_of_the_layer() {
    let cases = Cases::of("planted imports");
    for (package, line, on) in [
        ("venue", "use edge::ws::news::News;", "edge"),
        ("venue", "    let reply = journal::commit::Reply::Discard;", "journal"),
        ("venue", "use gateway::config::Config;", "gateway"),
        ("edge", "use venue::Upstream;", "venue"),
        ("edge", "use ::history::Reader;", "history"),
        ("edge", "pub fn at(lsn: wal::Lsn) {}", "wal"),
        ("journal", "use wire::decimal;", "wire"),
        ("journal", "use edge::ws::user_wakeups::UserWakeups;", "edge"),
        ("history", "use venue::feed::Feed;", "venue"),
        ("admin", "use edge::http::reply::Refusal;", "edge"),
        ("admin", "use wal::Scan;", "wal"),
        ("football", "use venue::feed::Feed;", "venue"),
        ("edge", "use football::folder::Almanac;", "football"),
        ("archive", "use venue::FeedUpdate;", "venue"),
        ("edge", "use archive::row::Row;", "archive"),
        ("admin", "    let digests = journal::digests::Digests::channel();", "journal"),
        ("host", "use journal::recover::Report;", "journal"),
        ("wire", "use host::clock::Clock;", "host"),
        ("engine", "use wal::Lsn;", "wal"),
        ("wal", "use engine::id::UserId;", "engine"),
    ] {
        let layer = LAYERS.iter().find(|layer| layer.name == package).expect("a package of the project");
        let wrong = wrong_packages(layer, line, false, &BTreeSet::new());
        assert_eq!(wrong, [format!("the layer {package} must not name the layer {on}")], "{line}");
        cases.one();
    }
    let edge = LAYERS.iter().find(|layer| layer.name == "edge").expect("the edge");
    for (line, for_tests) in [
        ("use venue::Upstream;", true),
        ("use crate::ws::news::News;", false),
        ("use super::venue::Kind;", false),
        ("self.venue.poll()", false),
        ("let dialect = call.venue::<Strict>();", false),
    ] {
        assert_eq!(wrong_packages(edge, line, for_tests, &BTreeSet::new()), [""; 0], "{line}");
        cases.one();
    }
}

/// Pairs of folders of one package, the first of which names the second, with one location each.
type Names = BTreeMap<(String, String), String>;

/// The folders of a package by the names that paths use for them: their own, and those of the modules that `lib.rs`
/// re-exports from one.
type Folders = BTreeMap<String, String>;

/// The folders that a source names on a line. `below` is its path below `src/`; it is inside a folder itself.
fn folders_named<'a>(below: &str, line: &str, folders: &'a Folders) -> Vec<&'a str> {
    let path: Vec<&str> = below.trim_end_matches(".rs").split('/').filter(|part| *part != "mod").collect();
    let mut found = Vec::new();
    for (at, prefix) in line.match_indices("crate::").chain(line.match_indices("super::")) {
        // How many levels the path goes up, and its next part.
        let (mut up, mut rest) = (usize::from(prefix == "super::"), &line[at + prefix.len()..]);
        if prefix == "super::" && line[..at].ends_with("super::") {
            continue;
        }
        while let Some(further) = rest.strip_prefix("super::") {
            (up, rest) = (up + 1, further);
        }
        if prefix == "super::" && up < path.len() {
            continue;
        }
        let folder = |text: &str| {
            let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
            folders.get(&text[..end]).map(String::as_str)
        };
        match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split('}').next().unwrap_or_default();
                found.extend(list.split(',').filter_map(|item| folder(item.trim())));
            }
            None => found.extend(folder(rest)),
        }
    }
    found.retain(|folder| path.first() != Some(folder));
    found
}

/// The folders of a package below `src/`.
fn folders(layer: &Layer, all: &[Source]) -> Folders {
    let inside = format!("{}/src/", layer.folder);
    let below = all.iter().filter_map(|source| source.name.strip_prefix(&inside));
    let names = below.filter_map(|below| Some(below.split_once('/')?.0.to_owned())).filter(|name| name != "tests");
    let mut folders: Folders = names.map(|name| (name.clone(), name)).collect();
    let root = all.iter().find(|source| source.name.strip_prefix(&inside) == Some("lib.rs"));
    for (_, line) in root.iter().flat_map(|source| source.code()) {
        let Some((folder, names)) = re_exported(line) else { continue };
        if folders.contains_key(folder) {
            folders.extend(names.map(|name| (name.to_owned(), folder.to_owned())));
        }
    }
    folders
}

/// The folder and the names of `pub use folder::{a, b};`.
fn re_exported(line: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let (folder, names) = line.strip_prefix("pub use ")?.strip_suffix(';')?.split_once("::")?;
    Some((folder, names.trim_matches(['{', '}']).split(',').map(str::trim)))
}

fn names_among(layer: &Layer, all: &[Source]) -> Names {
    let (inside, folders) = (format!("{}/src/", layer.folder), folders(layer, all));
    let mut names = Names::new();
    for source in all {
        let Some(below) = source.name.strip_prefix(&inside) else { continue };
        let own = below.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if folders.get(own).is_none_or(|folder| folder != own) || below.contains("testing") {
            continue;
        }
        for (number, line) in source.code() {
            for named in folders_named(below, line, &folders) {
                let place = format!("{}:{number}", source.name);
                names.entry((own.to_owned(), named.to_owned())).or_insert(place);
            }
        }
    }
    names
}

/// The violations of the folders of a package.
fn wrong_folders(package: &str, names: &Names) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> =
        FOLDERS.iter().filter(|(of, _, _)| *of == package).map(|(_, folder, may)| (*folder, *may)).collect();
    let is_wrong =
        |(from, to): &(String, String)| allowed.get(from.as_str()).is_some_and(|may| !may.contains(&to.as_str()));
    let tell = |((from, to), place): (&(String, String), &String)| {
        format!("{place}: the layer {package}/{from} must not name the layer {package}/{to}")
    };
    names.iter().filter(|(names, _)| is_wrong(names)).map(tell).collect()
}

/// A circle among the folders, as their names in order.
fn circle(names: &Names) -> Option<Vec<String>> {
    let mut named: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in names.keys() {
        named.entry(from).or_default().push(to);
    }
    // A folder that names only removed ones is removed; the rest is in a circle or above one.
    let mut left: BTreeSet<&str> = named.keys().copied().collect();
    loop {
        let done: Vec<&str> =
            left.iter().filter(|from| named[*from].iter().all(|to| !left.contains(to))).copied().collect();
        if done.is_empty() {
            break;
        }
        left.retain(|from| !done.contains(from));
    }
    let mut way = vec![*left.first()?];
    loop {
        let next =
            named[way[way.len() - 1]].iter().find(|to| left.contains(**to)).expect("it is in a circle or above one");
        if let Some(at) = way.iter().position(|seen| seen == next) {
            return Some(way[at..].iter().map(|name| (*name).to_owned()).collect());
        }
        way.push(next);
    }
}

#[test]
fn folders_name_only_lower_folders_and_form_no_circle() {
    let cases = Cases::of("folders");
    let all = sources::all();
    for layer in &LAYERS {
        let names = names_among(layer, &all);
        let wrong = wrong_folders(layer.name, &names);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let found = circle(&names);
        assert!(found.is_none(), "{}: a circle of folders: {found:?}", layer.name);
        cases.one();
    }
}

#[test]
fn planted_folders_fail_with_the_name_of_the_layer() {
    let mut folders: Folders = ["api", "http", "settings", "ws"].map(|name| (name.to_owned(), name.to_owned())).into();
    let (folder, names) = re_exported("pub use ws::{hub, sse};").expect("a re-export");
    folders.extend(names.map(|name| (name.to_owned(), folder.to_owned())));
    let cases = Cases::of("planted folders");
    for (below, line, named) in [
        ("http/call.rs", "use crate::ws::hub::Hub;", &["ws"][..]),
        ("http/server/drive.rs", "use super::super::super::api::keys;", &["api"]),
        ("http/mod.rs", "use super::api::keys;", &["api"]),
        ("api/live/mod.rs", "use crate::{ws::sse, http::call::Call};", &["ws", "http"]),
        ("http/call.rs", "use crate::hub::Hub;", &["ws"]),
        ("http/call.rs", "use crate::{sse, http::call::Call};", &["ws"]),
        ("ws/hub.rs", "use crate::sse::Sse;", &[]),
        ("http/server/drive.rs", "use super::ws::Thing;", &[]),
        ("api/keys.rs", "use crate::app::App;", &[]),
        ("api/keys.rs", "use crate::api::tokens;", &[]),
    ] {
        assert_eq!(folders_named(below, line, &folders), named, "{below}: {line}");
        cases.one();
    }
    let names = |pairs: &[(&str, &str)]| -> Names {
        pairs.iter().map(|(from, to)| (((*from).to_owned(), (*to).to_owned()), "a.rs:1".to_owned())).collect()
    };
    let wrong = wrong_folders("edge", &names(&[("http", "ws"), ("ws", "http")]));
    assert_eq!(wrong, ["a.rs:1: the layer edge/http must not name the layer edge/ws"]);
    assert_eq!(circle(&names(&[("ws", "api"), ("api", "http"), ("ws", "http")])), None);
    let found = circle(&names(&[("ws", "api"), ("api", "http"), ("http", "api"), ("a", "ws")])).expect("a circle");
    assert_eq!(found, ["api", "http"]);
}

/// Each dependency of each package: the package, its dependency, and whether only its tests use it.
pub fn dependencies() -> Vec<(String, String, bool)> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = dependency["name"].as_str().expect("a name").to_owned();
            found.push((name.to_owned(), on, dependency["kind"].as_str() == Some("dev")));
        }
    }
    found
}
