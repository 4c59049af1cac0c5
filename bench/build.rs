//! Records how this program was built, for the results: a figure without its build has no meaning.
//!
//! The commit is read here and not when a scenario runs, since the sources may have changed in between. It is `unknown`
//! for sources that are not a repository of their own, such as an unpacked archive.

use std::env::var;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources of the program, below the workspace: a change of these reruns this script, and adds a `+` to the commit.
const SOURCES: [&str; 19] = [
    "Cargo.toml",
    "Cargo.lock",
    "bench/Cargo.toml",
    "bench/build.rs",
    "bench/src",
    "engine/Cargo.toml",
    "engine/src",
    "gateway/Cargo.toml",
    "gateway/edge",
    "gateway/history",
    "gateway/host",
    "gateway/journal",
    "gateway/src",
    "gateway/venue",
    "gateway/wire",
    "tools/Cargo.toml",
    "tools/src",
    "wal/Cargo.toml",
    "wal/src",
];

fn main() {
    // Read at run time of the script, not compiled in: a target directory may serve several checkouts.
    let package = var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let workspace = Path::new(&package).parent().expect("the bench is a member of a workspace");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", workspace.join(source).display());
    }
    for setting in ["CARGO_PROFILE_RELEASE_LTO", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS"] {
        println!("cargo:rerun-if-env-changed={setting}");
    }
    let facts = [
        ("BENCH_COMMIT", commit(workspace).unwrap_or_else(|| "unknown".to_owned())),
        ("BENCH_COMPILER", stdout_of(Command::new(var("RUSTC").expect("cargo sets it")).arg("--version"))),
        ("BENCH_PROFILE", profile(workspace)),
        ("BENCH_FEATURES", features()),
    ];
    for (name, value) in facts {
        println!("cargo:rustc-env={name}={value}");
    }
}

/// The commit of the sources, with a plus when they were changed since.
fn commit(workspace: &Path) -> Option<String> {
    let git = |args: &[&str]| {
        let output =
            Command::new("git").env("GIT_OPTIONAL_LOCKS", "0").current_dir(workspace).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // An archive that was unpacked inside another repository does not get that repository's commit.
    let top = fs::canonicalize(git(&["rev-parse", "--show-toplevel"])?).ok()?;
    if top != fs::canonicalize(workspace).ok()? {
        return None;
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    // Git is asked for the path, since `.git` of a second worktree is a file and not a directory.
    let watch = |name: &str| {
        let path = workspace.join(git(&["rev-parse", "--git-path", name])?);
        // The next commit writes a packed reference to a file of its own.
        println!("cargo:rerun-if-changed={}", nearest(path).display());
        Some(())
    };
    watch("HEAD")?;
    if let Some(reference) = git(&["symbolic-ref", "--quiet", "HEAD"]) {
        watch(&reference)?;
    }
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    status.extend(SOURCES);
    let plus = if git(&status)?.is_empty() { "" } else { "+" };
    Some(format!("{commit}{plus}"))
}

/// The path, or its lowest directory that exists.
fn nearest(path: PathBuf) -> PathBuf {
    path.ancestors().find(|place| place.exists()).map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Name of the profile, and the optimisation settings of a release.
fn profile(workspace: &Path) -> String {
    let name = var("PROFILE").expect("cargo sets it");
    if name != "release" {
        return "dev, not for publishing".to_owned();
    }
    let manifest = fs::read_to_string(workspace.join("Cargo.toml")).unwrap_or_default();
    let section = manifest.split_once("[profile.release]").map_or("", |(_, rest)| rest);
    let section = section.split_once("\n[").map_or(section, |(section, _)| section);
    // The environment overrides the manifest.
    let setting = |name: &str, default: &str| {
        let written = section.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='));
        let variable = format!("CARGO_PROFILE_RELEASE_{}", name.replace('-', "_").to_uppercase());
        let value = var(variable).ok().or_else(|| written.map(str::to_owned));
        value.map_or(default.to_owned(), |value| value.trim().trim_matches('"').to_owned())
    };
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\u{1f}', " ");
    let flags = if flags.is_empty() { flags } else { format!(", flags {flags}") };
    format!("release, lto {}, codegen-units {}{flags}", setting("lto", "false"), setting("codegen-units", "16"))
}

/// Enabled features of this package.
fn features() -> String {
    let names = std::env::vars().filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase()));
    let mut names: Vec<_> = names.collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

fn stdout_of(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}
