//! The program on the oldest x86-64 processors (`qemu-x86_64` of Debian's `qemu-user`): it runs, with the features that
//! it detects at run time. Without the emulator the test reports that it was skipped; with `PAPERTAPE_REQUIRE_EMULATOR`
//! set it fails.

use std::process::{Command, Output};
use tempfile::TempDir;
use tests::binary::{papertape, skipped};
use tests::cases::Cases;
use tests::server::digest_of;

fn run_on(processor: &str, args: &[&str]) -> std::io::Result<Output> {
    // The emulator would dump its whole memory at an illegal instruction.
    let line = "ulimit -c 0; exec qemu-x86_64 -cpu \"$0\" \"$@\"";
    Command::new("bash").args(["-c", line, processor]).arg(papertape()).args(args).output()
}

#[test]
fn it_runs_on_the_oldest_processors() {
    if cfg!(target_feature = "avx2") {
        return skipped("built for newer processors, as its flags say");
    }
    if run_on("max", &["--version"]).expect("bash runs").status.code() == Some(127) {
        let required = std::env::var_os("PAPERTAPE_REQUIRE_EMULATOR").is_some_and(|value| !value.is_empty());
        assert!(!required, "there is no qemu-x86_64");
        return skipped("there is no qemu-x86_64, which is in Debian's qemu-user");
    }
    let cases = Cases::of("processors");
    let home = TempDir::with_prefix("papertape-processors-").expect("a temporary directory can be made");
    super::start(home.path()).stop();
    let directory = home.path().join("papertape-data");
    let digest = digest_of(&directory);
    let directory = directory.to_str().expect("a text");
    // qemu64 has neither the checksum instruction nor SHA.
    for processor in ["qemu64", "Nehalem", "max"] {
        for (args, wanted) in [
            (&["--version"][..], "papertape"),
            (&["openapi"], "\"openapi\""),
            (&["log", "verify", directory], ""),
            (&["log", "digest", directory], digest.as_str()),
        ] {
            let output = run_on(processor, args).expect("bash runs");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{processor}, {args:?}: {}: {stderr}", output.status);
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(!printed.is_empty() && printed.contains(wanted), "{processor}, {args:?}: {printed}");
            cases.one();
        }
    }
}
