//! The program under test, built once per test program.
//!
//! `cargo test` builds no other package's binary, so this does: same profile and same target directory as the test
//! that runs, found from the place of the test itself. `PAPERTAPE_BINARY` names a ready one instead.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

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

/// …/target/PROFILE/deps/api-0123 → build into …/target with that profile.
fn build() -> PathBuf {
    let test = env::current_exe().expect("a running test has a path");
    let profile_dir = test.ancestors().nth(2).expect("tests lie in target/PROFILE/deps");
    let target_dir = profile_dir.parent().expect("a profile lies in a target directory");
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => panic!("no profile in {}", profile_dir.display()),
    };
    let output = cargo()
        .args(["build", "--quiet", "--package", "tools", "--bin", "papertape", "--profile", profile])
        .arg("--target-dir")
        .arg(target_dir)
        .current_dir(workspace())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "papertape does not build:\n{}", String::from_utf8_lossy(&output.stderr));
    profile_dir.join("papertape")
}
