//! Citations and links: a comment that cites `PACKAGE/docs/NAME.md §N` cites an existing heading, and a link of a
//! document leads to an existing file and heading. A comment cites a section by the path of its document.

use super::sources;
use std::fs;
use std::path::{Component, Path, PathBuf};
use tests::binary::workspace;

/// The target of a citation or a link: a file from the root of the workspace, and a heading in it.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    file: String,
    place: Option<Heading>,
}

#[derive(Debug, PartialEq, Eq)]
enum Heading {
    /// `4.2`: the heading begins with that number.
    Section(String),
    /// The anchor that a heading gets on a page.
    Anchor(String),
}

/// Every `PACKAGE/docs/NAME.md` of a text, with each `§N` after it.
fn citations(text: &str) -> Vec<Target> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("/docs/") {
        let is_of_a_path = |c: &char| c.is_ascii_alphanumeric() || "_-./".contains(*c);
        let before: usize = text[..at].chars().rev().take_while(is_of_a_path).count();
        let after: usize = text[at..].chars().take_while(is_of_a_path).count();
        let path = text[at - before..at + after].trim_end_matches('.');
        let Some(file) = path.strip_suffix(".md").map(|_| path.trim_start_matches("./").to_owned()) else { continue };
        // A link is relative to its document, and is checked as a link; `/docs/…` is the end of a path that a program
        // makes.
        if file.starts_with("../") || file.starts_with('/') {
            continue;
        }
        let mut rest = &text[at - before + path.len()..];
        let mut sections = Vec::new();
        while let Some(more) = rest.trim_start_matches([' ', ',', '`']).strip_prefix('§') {
            let digits = more.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(more.len());
            sections.push(more[..digits].trim_end_matches('.').to_owned());
            rest = &more[digits..];
        }
        if sections.is_empty() {
            found.push(Target { file, place: None });
        } else {
            found.extend(sections.into_iter().map(|n| Target { file: file.clone(), place: Some(Heading::Section(n)) }));
        }
    }
    found
}

/// The documents whose sections a text cites without their path.
fn without_path(text: &str) -> Vec<String> {
    let is_of_a_path = |c: &char| c.is_ascii_alphanumeric() || "_-./".contains(*c);
    let cited = text.match_indices(".md").filter(|(at, _)| {
        let rest = text[at + 3..].trim_start_matches('`');
        rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with('§'))
    });
    let names = cited.map(|(at, _)| {
        let name: Vec<char> = text[..at].chars().rev().take_while(is_of_a_path).collect();
        format!("{}.md", name.into_iter().rev().collect::<String>())
    });
    names.filter(|name| !name.contains('/')).collect()
}

/// The targets of the links of a document, except those to other hosts.
fn links(document: &str, text: &str) -> Vec<Target> {
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets
        .filter(|target| !target.contains("://"))
        .map(|target| {
            let (file, anchor) = match target.split_once('#') {
                Some((file, anchor)) => (file, Some(Heading::Anchor(anchor.to_owned()))),
                None => (target, None),
            };
            let file = if file.is_empty() { PathBuf::from(document) } else { flat(&folder.join(file)) };
            Target { file: file.to_string_lossy().into_owned(), place: anchor }
        })
        .collect()
}

/// Without `..`.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = flat.pop(),
            part => flat.push(part),
        }
    }
    flat
}

/// The headings of a document, without their marks; lines of code are skipped.
fn headings(text: &str) -> Vec<&str> {
    let mut is_code = false;
    text.lines()
        .filter(|line| {
            is_code ^= line.starts_with("```");
            !is_code && line.starts_with('#')
        })
        .map(|line| line.trim_start_matches('#').trim())
        .collect()
}

/// The anchor of a heading, as repository hosts make it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Why a target does not exist, or `None`; `read` returns the text of a file.
fn fault(target: &Target, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let Some(text) = read(&target.file) else { return Some(format!("{} does not exist", target.file)) };
    let has = |is_it: &dyn Fn(&str) -> bool| headings(&text).into_iter().any(is_it);
    match &target.place {
        None => None,
        Some(Heading::Section(number)) => {
            let begins = format!("{number}. ");
            let inner = format!("{number} ");
            let found =
                has(&|heading| heading.starts_with(&begins) || (number.contains('.') && heading.starts_with(&inner)));
            (!found).then(|| format!("{} has no section {number}", target.file))
        }
        Some(Heading::Anchor(wanted)) => {
            (!has(&|heading| anchor(heading) == *wanted)).then(|| format!("{} has no heading #{wanted}", target.file))
        }
    }
}

fn read(file: &str) -> Option<String> {
    let path = workspace().join(file);
    // A folder or a file of another kind exists without headings.
    path.exists().then(|| fs::read_to_string(path).unwrap_or_default())
}

/// Every document of the packages and those at the top.
pub fn documents() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        [".github", "engine", "wal", "gateway", "bench", "tools", "tests"].map(|name| workspace().join(name)).into();
    let mut files = vec![workspace().join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("a package can be read").path();
            match path.is_dir() {
                true if path.ends_with("target") => {}
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let name = path.strip_prefix(workspace()).expect("it is in the workspace").to_string_lossy().into_owned();
        found.push((name, fs::read_to_string(&path).expect("a document can be read")));
    }
    found
}

#[test]
fn every_citation_and_link_resolves() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let documents = documents();
    assert!(documents.len() > 15, "the documents were not found");
    let texts = sources::all().into_iter().map(|source| (source.name, source.text)).chain(documents);
    // The planted ones of this file are not citations.
    for (name, text) in texts.filter(|(name, _)| !name.ends_with("tidy/citations.rs")) {
        let mut targets = citations(&text);
        if name.ends_with(".md") {
            targets.extend(links(&name, &text));
        } else {
            let cited = without_path(&text).into_iter();
            wrong.extend(cited.map(|document| format!("{name}: {document} is cited without its path")));
        }
        count += targets.len();
        wrong.extend(targets.iter().filter_map(|target| fault(target, read)).map(|why| format!("{name}: {why}")));
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 50, "{count} targets are too few to be all");
    println!("citations and links: {count}");
}

#[test]
fn a_wrong_citation_is_found() {
    let read = |file: &str| {
        let text = "# Title\n\n## 3. Fees\n\n```sh\n## 9. no heading\n```\n\n### 3.1 Rates & more\n";
        (file == "engine/docs/a.md").then(|| text.to_owned())
    };
    let cases = [
        ("see engine/docs/a.md §3", None),
        ("(engine/docs/a.md §3.1).", None),
        ("engine/docs/a.md §3, §3.1 and more", None),
        ("engine/docs/a.md", None),
        ("concat!(env!(\"FOLDER\"), \"/docs/b.md\")", None),
        ("engine/docs/a.md §4", Some("engine/docs/a.md has no section 4")),
        ("engine/docs/a.md §3, §9", Some("engine/docs/a.md has no section 9")),
        ("`engine/docs/b.md` §1", Some("engine/docs/b.md does not exist")),
    ];
    for (text, expected) in [
        ("(wire.md §8)", vec!["wire.md"]),
        ("`keys.md` §1 and venue-a.md §2", vec!["keys.md", "venue-a.md"]),
        ("`engine/docs/a.md §3`, and a.md", vec![]),
    ] {
        assert_eq!(without_path(text), expected, "{text}");
    }
    for (text, expected) in cases {
        let found = citations(text).iter().find_map(|target| fault(target, read));
        assert_eq!(found.as_deref(), expected, "{text}");
    }
    let cases = [
        ("[a](a.md)", None),
        ("[a](../docs/a.md#3-fees)", None),
        ("[a](a.md#31-rates--more)", None),
        ("[a](https://example.net/none.md)", None),
        ("[a](a.md#4-none)", Some("engine/docs/a.md has no heading #4-none")),
        ("[a](b.md)", Some("engine/docs/b.md does not exist")),
    ];
    for (text, expected) in cases {
        let found = links("engine/docs/a.md", text).iter().find_map(|target| fault(target, read));
        assert_eq!(found.as_deref(), expected, "{text}");
    }
    println!("citations: 14 cases");
}
