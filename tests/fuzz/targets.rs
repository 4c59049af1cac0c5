//! One function for each parser of external bytes. Each returns for every input without a panic, and checks what is
//! cheap to check of its result: that it survives a round trip, or that a slower parser agrees.
//!
//! The same functions run in `cargo test` (seeded mutations of the corpus) and under libFuzzer (`libfuzzer.rs`).

mod archive;
mod billing;
mod journal;
mod published;
mod text;
mod venues;

pub use archive::sound_files as archive_files;
pub use journal::sound_files as journal_files;

/// A parser under test.
pub type Target = fn(&[u8]);

/// Name of a target, which is also its folder in `corpus`, and its function.
pub const TARGETS: [(&str, Target); 32] = [
    ("alert_line", text::alert_line),
    ("alert_target", text::alert_target),
    ("archive_index", archive::index),
    ("archive_parquet", archive::parquet),
    ("archive_sidecar", archive::sidecar),
    ("backtest", text::backtest),
    ("billing_event", billing::event),
    ("billing_signature", billing::signature),
    ("config", text::config),
    ("cursor", text::cursor),
    ("decimal", text::decimal),
    ("epoch", journal::epoch),
    ("facts", journal::facts),
    ("flat_order", text::flat_order),
    ("football", published::football),
    ("frames", text::frames),
    ("head", text::head),
    ("incidents", published::incidents),
    ("instant", text::instant),
    ("json", text::json),
    ("jwt", text::jwt),
    ("kalshi", venues::kalshi),
    ("order", text::order),
    ("order_id", text::order_id),
    ("polymarket", venues::polymarket),
    ("query", text::query),
    ("record", journal::record),
    ("recording_state", archive::recording_state),
    ("segment", journal::segment),
    ("snapshot", journal::snapshot),
    ("tape", venues::tape),
    ("uptime", published::uptime),
];
