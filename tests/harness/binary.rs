//! The program under test, built once per test program.
//!
//! `cargo test -p tests` builds no other package's binary, so this does: same profile and same target directory as the
//! running test, derived from the test's own path. `PAPERTAPE_BINARY` names an existing one instead.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Time after which a slow build is reported.
const BUILD_REPORTED_AFTER: Duration = Duration::from_secs(3);

/// Path of `papertape`.
pub fn papertape() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match env::var_os("PAPERTAPE_BINARY") {
        Some(ready) => PathBuf::from(ready),
        None => build(),
    })
}

/// A command of `papertape` without environment variables that could configure it.
pub fn command() -> Command {
    let mut command = Command::new(papertape());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("PAPERTAPE_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs one verb to its end.
pub fn run<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>) -> Output {
    command().args(args).output().expect("papertape can be run")
}

/// Runs one verb that must succeed; returns its standard output.
pub fn run_well<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>) -> String {
    let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_os_string()).collect();
    let output = run(&args);
    assert!(
        output.status.success(),
        "papertape {args:?} failed with {}\nstdout: {}\nstderr: {}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("papertape prints UTF-8")
}

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests package is in the workspace")
}

/// Cargo without the variables that it set for this package. Some build scripts read these variables: they, and
/// everything that depends on them, would be rebuilt here, and once more by the next caller.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Builds the program for the profile of the running test: …/target/PROFILE/deps/api-0123 → …/target/PROFILE/papertape.
///
/// The target `binary` of the package `tools` is a test, and cargo builds a package's programs for its tests. Built as
/// part of the whole workspace, its dependencies have the same features as in `cargo test --workspace`, which has built
/// it already; then this takes a second.
fn build() -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    let profile_dir = test.ancestors().nth(2).expect("tests are in target/PROFILE/deps");
    let target_dir = profile_dir.parent().expect("a profile is in a target directory");
    let release: &[&str] = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => &[],
        Some("release") => &["--release"],
        _ => panic!("{} is not a directory of the profiles dev and release", profile_dir.display()),
    };
    let begun = Instant::now();
    let reported = reports_after(BUILD_REPORTED_AFTER);
    let output = cargo()
        .args(["test", "--quiet", "--workspace", "--test", "binary", "--no-run", "--target-dir"])
        .arg(target_dir)
        .args(release)
        .current_dir(workspace())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "papertape does not build:\n{}", String::from_utf8_lossy(&output.stderr));
    if reported.load(Ordering::Relaxed) {
        say(&format!("papertape is built, after {} s", begun.elapsed().as_secs()));
    }
    reported.store(true, Ordering::Relaxed);
    profile_dir.join("papertape")
}

/// Reports a build that takes long. True once it was reported, or is no longer necessary.
fn reports_after(delay: Duration) -> Arc<AtomicBool> {
    let reported = Arc::new(AtomicBool::new(false));
    let later = reported.clone();
    std::thread::spawn(move || {
        std::thread::sleep(delay);
        if !later.swap(true, Ordering::Relaxed) {
            say("building the program papertape for these tests");
        }
    });
    reported
}

/// Reports that the running test is skipped, and why.
pub fn skipped(why: &str) {
    say(&format!("SKIPPED {}: {why}", std::thread::current().name().unwrap_or("a test")));
}

/// Writes a line to standard error directly, since the test runner captures the output of print macros.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
