//! Ignored tests: each has a reason, and above it, in one form, the command that runs it.
//!
//! ```text
//! /// `VARIABLE=… cargo test -p PACKAGE --lib NAME -- --ignored --nocapture`
//! #[test]
//! #[ignore = "a reason"]
//! fn NAME() {
//! ```
//!
//! The variables are those that the test needs; `--release` may follow `cargo test`; integration tests have
//! `--test TARGET` in place of `--lib`. A document that names such a command has it in this form.

use crate::citations::documents;
use crate::layers::layer_of;
use crate::sources::{self, has_word};
use tests::cases::Cases;

/// The texts of the planted tests below are here.
const SELF: &str = "tests/tidy/ignored.rs";

/// The options for the package and the program of the tests in a source.
fn target(source: &str) -> String {
    let layer = layer_of(source);
    let parts: Vec<&str> = source[layer.folder.len() + 1..].split('/').collect();
    let program = match parts[..] {
        ["src", ..] => "--lib".to_owned(),
        ["tests", file] => format!("--test {}", file.trim_end_matches(".rs")),
        _ => format!("--test {}", parts[0]),
    };
    format!("-p {} {program}", layer.name)
}

/// The command above the ignored test whose attribute is in line `at`, without its variables.
///
/// # Errors
/// What is wrong.
fn command(source: &str, lines: &[&str], at: usize) -> Result<String, String> {
    let reason = lines[at].strip_prefix("#[ignore = \"").and_then(|rest| rest.strip_suffix("\"]"));
    if reason.is_none_or(str::is_empty) {
        return Err("it has no reason".to_owned());
    }
    let name = lines.get(at + 1).and_then(|line| line.strip_prefix("fn ")?.split_once('('));
    let name = name.ok_or("its function is not in the next line")?.0;
    if at < 2 || lines[at - 1] != "#[test]" {
        return Err(format!("{name}: #[test] is not in the line before"));
    }
    let expected = format!("{} {name} -- --ignored --nocapture", target(source));
    let shown = lines[at - 2].strip_prefix("/// `").and_then(|rest| rest.strip_suffix('`'));
    let (variables, options) = shown.and_then(|shown| shown.split_once("cargo test ")).unwrap_or_default();
    let is_variable = |word: &str| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let is_command = options.strip_prefix("--release ").unwrap_or(options) == expected;
    if !is_command || !variables.split_whitespace().all(is_variable) {
        return Err(format!("{name}: the line before #[test] is not `cargo test {expected}`"));
    }
    Ok(format!("cargo test {options}"))
}

/// The commands of the ignored tests of a source, or what is wrong with them.
fn commands(source: &str, text: &str) -> Vec<Result<String, String>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let found = lines.iter().enumerate().filter_map(|(at, line)| match *line {
        line if line.starts_with("#[cfg_attr(") && has_word(line, "ignore") => {
            Some(Err("it is ignored under a condition".to_owned()))
        }
        line if line.starts_with("#[ignore") => Some(command(source, &lines, at)),
        _ => None,
    });
    found.collect()
}

/// The lines of a text that run ignored tests, but by none of these commands.
fn strays<'a>(text: &'a str, known: &[String]) -> Vec<&'a str> {
    let runs = |line: &&str| line.contains("cargo test ") && line.contains("--ignored");
    let is_known = |line: &str| known.iter().any(|command| line.contains(command.as_str()));
    text.lines().filter(runs).filter(|line| !is_known(line)).collect()
}

#[test]
fn every_ignored_test_has_its_command() {
    let cases = Cases::of("ignored tests");
    let (mut known, mut wrong) = (Vec::new(), Vec::new());
    let sources: Vec<(String, String)> = sources::all()
        .into_iter()
        .filter(|source| source.name != SELF)
        .map(|source| (source.name, source.text))
        .collect();
    for (name, text) in &sources {
        for found in commands(name, text) {
            match found {
                Ok(command) => known.push(command),
                Err(why) => wrong.push(format!("{name}: {why}")),
            }
            cases.one();
        }
    }
    for (name, text) in sources.into_iter().chain(documents()) {
        wrong.extend(strays(&text, &known).into_iter().map(|line| format!("{name}: of no ignored test: {line}")));
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(known.len() > 5, "{} are too few to be all", known.len());
}

#[test]
fn a_missing_command_is_found() {
    let cases = Cases::of("commands of ignored tests");
    let missing = |expected: &str| format!("slow: the line before #[test] is not `cargo test {expected}`");
    let in_lib = "-p venue --lib slow -- --ignored --nocapture";
    let text = |above: &str| format!("/// Measures.\n{above}\n#[test]\n#[ignore = \"slow\"]\nfn slow() {{\n");
    for above in [
        format!("/// `cargo test {in_lib}`"),
        format!("    /// `cargo test --release {in_lib}`"),
        format!("/// `SEED=1 PLACE=… cargo test {in_lib}`"),
    ] {
        let found = commands("gateway/venue/src/tape/tests.rs", &text(&above));
        assert!(matches!(&found[..], [Ok(command)] if command.ends_with(in_lib)), "{above}: {found:?}");
        cases.one();
    }
    for above in [
        "",
        "/// `cargo test -p venue --lib slow -- --ignored`",
        "/// `cargo test -p venue --lib slower -- --ignored --nocapture`",
        "/// `cargo test -p venue slow -- --ignored --nocapture`",
        "/// `cargo test -p edge --lib slow -- --ignored --nocapture`",
        "/// `cargo test -p venue --test tape slow -- --ignored --nocapture`",
        "/// `cargo test -p venue --lib -- --ignored slow`",
        "/// `seed cargo test -p venue --lib slow -- --ignored --nocapture`",
        "/// Run it with `cargo test -p venue --lib slow -- --ignored --nocapture`",
        "// `cargo test -p venue --lib slow -- --ignored --nocapture`",
        "/// cargo test -p venue --lib slow -- --ignored --nocapture",
    ] {
        let found = commands("gateway/venue/src/tape/tests.rs", &text(above));
        assert_eq!(found, [Err(missing(in_lib))], "{above}");
        cases.one();
    }
    for (text, expected) in [
        ("#[test]\n#[ignore]\nfn slow() {", "it has no reason"),
        ("#[test]\n#[ignore = \"\"]\nfn slow() {", "it has no reason"),
        ("#[test]\n#[ignore = \"slow\"]\n#[cfg(unix)]\nfn slow() {", "its function is not in the next line"),
        ("#[ignore = \"slow\"]\n#[test]\nfn slow() {", "its function is not in the next line"),
        ("#[cfg(unix)]\n#[ignore = \"slow\"]\nfn slow() {", "slow: #[test] is not in the line before"),
        ("#[cfg_attr(debug_assertions, ignore)]\nfn slow() {", "it is ignored under a condition"),
    ] {
        assert_eq!(commands("gateway/venue/src/tape/tests.rs", text), [Err(expected.to_owned())], "{text}");
        cases.one();
    }
    for (source, expected) in [
        ("wal/src/sys.rs", "-p wal --lib"),
        ("gateway/src/config/tests.rs", "-p gateway --lib"),
        ("tests/crash/golden/recipe.rs", "-p tests --test crash"),
        ("tools/tests/binary.rs", "-p tools --test binary"),
    ] {
        assert_eq!(target(source), expected);
        cases.one();
    }
    let known = [format!("cargo test {in_lib}")];
    for (line, is_known) in [
        ("| It | `SEED=1 cargo test -p venue --lib slow -- --ignored --nocapture` |", true),
        ("cargo test -p venue --lib slow", true),
        ("//! cargo test -p venue --lib -- --ignored slow", false),
    ] {
        assert_eq!(strays(line, &known).is_empty(), is_known, "{line}");
        cases.one();
    }
}
