//! Objects that several answers share: where figures come from, and what they may have used.

use crate::http::record::{Record as _, record};
use crate::http::scalar::{HourText, words};
use engine::backtest::{ArchivedBook, Confidence, FillModel, Hour, Verdict};
use std::borrow::Cow;

words! {
    pub VerdictName = "valid", "degraded", "quarantined", "partial", "missing";
    pub ConfidenceName = "high", "medium", "low", "provisional";
    pub FillModelName = "midpoint", "top_of_book", "depth_walk", "depth_walk_depletion";
    pub LeakageModelName = "midpoint", "top_of_book", "depth_walk", "depth_walk_depletion", "n/a";
    pub FeeModelName = "category_taker_v1";
    pub FigureSourceName = "archive";
    pub SlippageModelName = "none", "book_walk";
}

impl From<Verdict> for VerdictName {
    fn from(verdict: Verdict) -> VerdictName {
        verdict.name().into()
    }
}

impl From<Confidence> for ConfidenceName {
    fn from(confidence: Confidence) -> ConfidenceName {
        confidence.name().into()
    }
}

impl From<FillModel> for FillModelName {
    fn from(model: FillModel) -> FillModelName {
        model.name().into()
    }
}

/// The label of the fees: the taker's fee by the category of the market.
pub const FEE_MODEL: &str = "category_taker_v1";
/// The place in the queue of an answer that was asked for none.
pub const QUEUE_POSITION: &str = "1.0";

record! {
    /// The hour of the archive that an answer was made of.
    pub struct Provenance<'a> {
        hour_status: VerdictName = "valid".into();
        bbo_confidence: ConfidenceName = "high".into();
        ghost_guard_triggered: bool = false, "Levels that crossed the other side were dropped.";
        deduped_events: u64 = 0, "Messages that came twice and were counted once.";
        hour: Option<HourText<'a>> = Some("2026-09-30T17".into()), "The hour that was read.";
        stale: bool = false, "The moment is in a gap of the recording.";
    }

    /// What an answer was computed from.
    pub struct Leakage<'a> {
        data_source: FigureSourceName = "archive".into();
        missing_periods: Vec<HourText<'a>> = Vec::new(), "Hours without usable books.";
        fill_model: LeakageModelName = "depth_walk".into(), "`n/a` where nothing is filled.";
        fee_model: FeeModelName = FEE_MODEL.into();
        book_depth_available: bool = true;
        signals_used_pre_decision_data_only: bool = true, "Nothing after the moment asked about is used.";
        slippage_model: SlippageModelName = "book_walk".into();
        latency_ms: u64 = 0;
        queue_position: Cow<'a, str> = QUEUE_POSITION.into();
        queue_position_note: &'static str = note(QUEUE_POSITION);
    }
}

impl Provenance<'_> {
    pub fn of(book: &ArchivedBook) -> Provenance<'static> {
        Provenance {
            hour_status: book.verdict.into(),
            bbo_confidence: book.confidence.into(),
            ghost_guard_triggered: book.crossed_dropped > 0,
            deduped_events: book.deduped.into(),
            hour: Some(hour_text(book.hour)),
            stale: book.is_stale,
        }
    }
}

impl<'a> Leakage<'a> {
    /// Of an answer that fills nothing.
    pub fn of_a_read(missing: impl IntoIterator<Item = Hour>, has_depth: bool) -> Leakage<'static> {
        Leakage {
            missing_periods: missing.into_iter().map(hour_text).collect(),
            fill_model: "n/a".into(),
            book_depth_available: has_depth,
            slippage_model: "none".into(),
            ..Leakage::example()
        }
    }

    /// Of a fill.
    pub fn of_a_fill(model: FillModel, has_depth: bool, latency_ms: u64, queue_position: &'a str) -> Leakage<'a> {
        Leakage {
            fill_model: model.name().into(),
            slippage_model: if model.walks_the_book() { "book_walk" } else { "none" }.into(),
            latency_ms,
            queue_position: queue_position.into(),
            queue_position_note: note(queue_position),
            ..Leakage::of_a_read([], has_depth)
        }
    }
}

fn note(queue_position: &str) -> &'static str {
    if queue_position == QUEUE_POSITION {
        "Assumes last place at each price."
    } else {
        "Not used: a fill takes liquidity and waits in no queue."
    }
}

pub fn hour_text(hour: Hour) -> HourText<'static> {
    hour.to_string().into()
}
