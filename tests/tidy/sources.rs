//! The sources as texts, and which lines of them are code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tests::binary::workspace;

/// One source file.
pub struct Source {
    /// From the root of the workspace, with `/`.
    pub name: String,
    pub text: String,
    /// Whole file belongs to tests: its `mod` line is under `#[cfg(test)]`, or it is in a folder of tests.
    pub for_tests: bool,
}

/// Every Rust file of the packages.
pub fn all() -> Vec<Source> {
    let mut found = Vec::new();
    for package in ["engine", "wal", "gateway", "bench", "tools", "tests"] {
        collect(&workspace().join(package), &mut found);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let of_tests: BTreeSet<String> = found.iter().flat_map(test_modules).collect();
    for source in &mut found {
        source.for_tests |= of_tests.contains(&source.name);
    }
    assert!(found.len() > 10, "the sources were not found");
    found
}

/// Names at the top of the workspace, without those that git ignores.
pub fn top_level() -> Vec<String> {
    let ignored = fs::read_to_string(workspace().join(".gitignore")).unwrap_or_default();
    let ignored: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).collect();
    let mut names: Vec<String> = fs::read_dir(workspace())
        .expect("the workspace can be read")
        .map(|entry| entry.expect("the workspace can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| !ignored.contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

impl Source {
    /// The program's own lines of code: no comments, and nothing from the tests at the end on.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let foot = self.foot();
        self.all_code().take_while(move |(number, _)| *number < foot)
    }

    /// The number of the line where the tests begin; a `mod` line alone does not count.
    fn foot(&self) -> usize {
        if self.for_tests {
            return 0;
        }
        let lines: Vec<&str> = self.text.lines().collect();
        let begins = |at: &usize| {
            lines[*at].trim() == "#[cfg(test)]" && !lines.get(at + 1).is_some_and(|next| next.trim_end().ends_with(';'))
        };
        (0..lines.len()).find(begins).map_or(usize::MAX, |at| at + 1)
    }

    /// The lines that are code, tests included.
    pub fn all_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(number, line)| (number + 1, before_comment(line)))
            .filter(|(_, line)| !line.trim().is_empty())
    }
}

/// The part of a line before `//`, unless that is inside a string.
fn before_comment(line: &str) -> &str {
    let bytes = line.as_bytes();
    let mut in_text = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'/' if !in_text && bytes.get(at + 1) == Some(&b'/') => return &line[..at],
            _ => {}
        }
        at += 1;
    }
    line
}

/// Whether `line` has `word` as a separate word.
pub fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let part_of_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !part_of_name(before) && !part_of_name(after)
    })
}

/// The files of modules that this one declares for tests only.
fn test_modules(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let (folder, file) = source.name.rsplit_once('/').expect("a source is in a folder");
    let folder = match file {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_string(),
        _ => source.name.trim_end_matches(".rs").to_string(),
    };
    let declared = lines.windows(2).filter(|two| two[0].trim() == "#[cfg(test)]").filter_map(|two| {
        let name = two[1].trim().trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?;
        Some(format!("{folder}/{name}.rs"))
    });
    declared.collect()
}

fn collect(dir: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(dir).expect("a package can be read") {
        let path: PathBuf = entry.expect("a package can be read").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name =
                path.strip_prefix(workspace()).expect("it is in the workspace").to_string_lossy().replace('\\', "/");
            let text = fs::read_to_string(&path).expect("a source can be read");
            let for_tests = name.starts_with("tests/") || name.contains("/tests/") || name.ends_with("/tests.rs");
            found.push(Source { name, text, for_tests });
        }
    }
}

#[test]
fn comments_and_words_are_distinguished() {
    assert_eq!(before_comment("let a = 1; // unsafe"), "let a = 1; ");
    assert_eq!(before_comment(r#"let a = "http://x"; // y"#), r#"let a = "http://x"; "#);
    assert!(has_word("unsafe {", "unsafe"));
    assert!(!has_word("unsafe_code", "unsafe"));
    assert!(has_word("a.price()", "price"));
    println!("reading sources: 5 cases");
}
