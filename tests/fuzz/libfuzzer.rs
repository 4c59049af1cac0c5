//! The targets under libFuzzer. `FUZZ_TARGET` names the one to run; tests/README.md has the command.
#![no_main]

mod targets;

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use targets::{TARGETS, Target};

fn target() -> Target {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let found = TARGETS.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("FUZZ_TARGET is one of {:?}", TARGETS.map(|(name, _)| name))).1
    })
}

fuzz_target!(|input: &[u8]| target()(input));
