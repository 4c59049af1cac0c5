//! Rows of what the simulation routes use.

use crate::config::setting::{Setting, integer, path};

pub(super) fn rows() -> Vec<Setting> {
    vec![
        integer(
            "simulation.threads",
            1,
            0..=16,
            "Threads that run back-tests, below the priority of orders. 0: none is created, 503 `JOB_STORE_UNAVAILABLE`; those that are complete stay readable.",
        ),
        integer(
            "simulation.job_memory_bytes",
            256 << 20,
            32 << 20..=16 << 30,
            "Memory for the rows of one back-test, in bytes; what exceeds it is spilled into `cache/` of `archive.dir`. It bounds \
                 neither books nor results (`gateway/docs/simulation.md` §6.1).",
        ),
        path(
            "simulation.export_dir",
            "Folder of exports, each of which is removed after a day. Without it `POST /v1/simulation/exports` answers 503 \
                 `ARCHIVE_UNAVAILABLE`.",
        ),
        integer(
            "simulation.export_bytes_max",
            2 << 30,
            1 << 20..=1 << 40,
            "Bytes of one export at most; a larger one is refused with 422 `VALIDATION_FAILED`.",
        ),
    ]
}
