//! Sets the commit that the program is built from: `PAPERTAPE_GIT_SHA` if it is set, else the commit of this working
//! tree. Without git, or outside of a clone, the commit is `unknown` and the build succeeds.

use std::fs;
use std::path::Path;
use std::process::Command;

const NAME: &str = "PAPERTAPE_GIT_SHA";

fn main() {
    println!("cargo:rerun-if-env-changed={NAME}");
    println!("cargo:rerun-if-changed=build.rs");
    // The compiler reads the variable itself.
    if option_env!("PAPERTAPE_GIT_SHA").is_some_and(|set| !set.is_empty()) {
        return;
    }
    // Read at run time of the script, not compiled in: a target directory may serve several checkouts.
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let workspace = Path::new(&package).parent().expect("the package is in the workspace");
    if let Some(sha) = head(workspace) {
        println!("cargo:rustc-env={NAME}={sha}");
    }
}

/// The commit of a working tree.
fn head(workspace: &Path) -> Option<String> {
    // A copy without a history inside another repository does not get that repository's commit.
    let root = git(workspace, &["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(root).ok()? != fs::canonicalize(workspace).ok()? {
        return None;
    }
    for name in ["HEAD", "logs/HEAD"] {
        let path = workspace.join(git(workspace, &["rev-parse", "--git-path", name])?);
        // A path that does not exist would rerun this script with every build.
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(workspace, &["rev-parse", "--verify", "HEAD"])
}

fn git(workspace: &Path, args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // A git hook runs with the variables of its own repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(name);
    }
    let output = git.arg("-C").arg(workspace).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
