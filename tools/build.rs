//! Says which commit the program is built from: `PAPERTAPE_GIT_SHA` where that is set, else what git knows of this very
//! tree. Without git, or outside of a clone, it stays unknown, and nothing fails.

use std::fs;
use std::path::Path;
use std::process::Command;

const NAME: &str = "PAPERTAPE_GIT_SHA";

fn main() {
    println!("cargo:rerun-if-env-changed={NAME}");
    println!("cargo:rerun-if-changed=build.rs");
    // What is set is seen by the compiler as it is.
    if option_env!("PAPERTAPE_GIT_SHA").is_some_and(|set| !set.is_empty()) {
        return;
    }
    // Asked now and not when this was compiled: a target directory may serve several checkouts.
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says it");
    let workspace = Path::new(&package).parent().expect("the package lies in the workspace");
    if let Some(sha) = head(workspace) {
        println!("cargo:rustc-env={NAME}={sha}");
    }
}

/// The commit of a working tree.
fn head(workspace: &Path) -> Option<String> {
    // A copy without a history that lies inside of another repository is none of that one's commits.
    let root = git(workspace, &["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(root).ok()? != fs::canonicalize(workspace).ok()? {
        return None;
    }
    for name in ["HEAD", "logs/HEAD"] {
        let path = workspace.join(git(workspace, &["rev-parse", "--git-path", name])?);
        // One that is not there would have this run with every build.
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(workspace, &["rev-parse", "--verify", "HEAD"])
}

fn git(workspace: &Path, args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // A hook runs with those of its own repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    let output = git.arg("-C").arg(workspace).args(args).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
