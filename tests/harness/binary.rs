//! The program under test, built once per test program.
//!
//! `cargo test -p tests` builds no other package's binary, so this does: same profile and same target directory as the
//! test that runs, found from the place of the test itself. `PAPERTAPE_BINARY` names a ready one instead.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long a build may take before the tests say that they wait for it.
const BUILD_TOLD_AFTER: Duration = Duration::from_secs(3);

/// Where `papertape` lies.
pub fn papertape() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match env::var_os("PAPERTAPE_BINARY") {
        Some(ready) => PathBuf::from(ready),
        None => build(),
    })
}

/// A command of `papertape` with nothing of our own environment that could configure it.
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

/// Runs one verb that must succeed; gives its standard output.
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
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests package lies in the workspace")
}

/// The cargo that runs us, without what it told us of our own package. Some build scripts ask for these variables: they, and
/// all that stands on them, would be built anew by us, and once more by whoever runs us next.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Builds the program where the running test lies: …/target/PROFILE/deps/api-0123 → …/target/PROFILE/papertape.
///
/// The target `binary` of the package `tools` is a test, and cargo builds a package's programs for its tests. Asked for
/// with the whole workspace, its dependencies have the same features as in `cargo test --workspace`, which has built
/// it already; then this takes a second.
fn build() -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    let profile_dir = test.ancestors().nth(2).expect("tests lie in target/PROFILE/deps");
    let target_dir = profile_dir.parent().expect("a profile lies in a target directory");
    let release: &[&str] = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => &[],
        Some("release") => &["--release"],
        _ => panic!("{} is no directory of the profiles dev and release", profile_dir.display()),
    };
    let begun = Instant::now();
    let told = told_after(BUILD_TOLD_AFTER);
    let output = cargo()
        .args(["test", "--quiet", "--workspace", "--test", "binary", "--no-run", "--target-dir"])
        .arg(target_dir)
        .args(release)
        .current_dir(workspace())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "papertape does not build:\n{}", String::from_utf8_lossy(&output.stderr));
    if told.load(Ordering::Relaxed) {
        say(&format!("papertape is built, after {} s", begun.elapsed().as_secs()));
    }
    told.store(true, Ordering::Relaxed);
    profile_dir.join("papertape")
}

/// Says that the program is being built, should that take long. True once it was said, or need not be any more.
fn told_after(delay: Duration) -> Arc<AtomicBool> {
    let told = Arc::new(AtomicBool::new(false));
    let later = told.clone();
    std::thread::spawn(move || {
        std::thread::sleep(delay);
        if !later.swap(true, Ordering::Relaxed) {
            say("building the program papertape for these tests");
        }
    });
    told
}

/// Says that the running test is skipped, and why.
pub fn skipped(why: &str) {
    say(&format!("SKIPPED {}: {why}", std::thread::current().name().unwrap_or("a test")));
}

/// Writes a line to standard error itself, which the test runner captures only where a print macro writes it.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
