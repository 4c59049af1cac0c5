//! The program as it is started from a shell. This test also makes cargo build the program for `cargo test
//! --workspace`, where the tests of the whole process find it.

use std::process::Command;

fn papertape(args: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_papertape")).args(args).output().expect("the program runs");
    (output.status.success(), String::from_utf8(output.stdout).expect("it prints text"))
}

#[test]
fn version_and_verbs_are_printed() {
    let (well, version) = papertape(&["--version"]);
    assert!(well && version.starts_with("papertape 0."), "{version}");
    let (well, help) = papertape(&["--help"]);
    assert!(well);
    for verb in ["serve", "seed", "load", "log", "snapshot", "token", "key", "record", "doctor"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(verb)), "{verb} in\n{help}");
    }
}

#[test]
fn an_unknown_verb_fails() {
    assert!(!papertape(&["fly"]).0);
}
