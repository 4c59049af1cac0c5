//! A back-test as one page of HTML (gateway/docs/simulation.md §6.5), and the parts of such pages. A page loads nothing and runs
//! no script: charts are SVG in the page, and its own policy forbids everything else. It is well-formed XML, too.
//!
//! | File | Holds |
//! |---|---|
//! | `text.rs` | texts, escaped; numbers and times as people read them |
//! | `scale.rs` | positions and round labels of axes |
//! | `chart.rs` | one chart: axes, lines, areas, dots |
//! | `charts.rs` | the charts of a report: equity, drawdown, prices, coverage |
//! | `verdict.rs` | the verdict in one sentence, warnings, and the Brier score |
//! | `tables.rs` | figures, trades, and what the result depends on |
//! | `bot.rs` | the page of a run of a bot: those of the parts that such a run has |
//!
//! Pure: the same arguments give the same page. Its length has a bound: lists are cut, which the page says, and lines are
//! thinned to what can be seen.

mod bot;
mod chart;
mod charts;
mod scale;
pub(crate) mod tables;
pub(crate) mod text;
mod verdict;

pub use bot::{BotFill, BotRun};
use engine::backtest::{Job, Report};
use engine::rules::FeeTable;
use text::Html;

/// Bytes of a page at most.
pub const BYTES_MAX: usize = 5 << 20;

const STYLE: &str = include_str!("style.css");
/// Nothing is loaded, sent or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// What a page shows besides the back-test.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Questions of the markets in the order of the job; where one is missing, the condition stands for it.
    pub questions: &'a [String],
    /// Fees of the run.
    pub fees: &'a FeeTable,
    /// Program, version and commit.
    pub program: &'a str,
    /// What else a reader should know.
    pub warnings: &'a [String],
}

/// The page of a finished back-test.
pub fn html(job: &Job, report: &Report, context: &Context<'_>) -> String {
    let mut page = opened("Back-test");
    verdict::write(&mut page, job, report, context);
    tables::figures(&mut page, job, report);
    charts::equity(&mut page, job, report);
    charts::drawdown(&mut page, charts::times(job), job.bankroll, &report.points);
    charts::prices(&mut page, job, report, context.questions);
    tables::trades(&mut page, job, report, context.questions);
    verdict::brier(&mut page, job, report);
    charts::coverage(&mut page, job, context.questions);
    tables::inputs(&mut page, job, report, context);
    closed(page)
}

/// The page of a run of a bot.
pub fn bot_html(run: &BotRun<'_>) -> String {
    let mut page = opened("Back-test");
    bot::write(&mut page, run);
    closed(page)
}

/// The beginning of a page.
pub(crate) fn opened(title: &str) -> Html {
    let mut page = Html::default();
    page.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>");
    page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"").raw(POLICY).raw("\"/>");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\"/>");
    page.element("title", "", title).raw("<style>").raw(STYLE).raw("</style></head><body><main>");
    page
}

/// The whole page.
pub(crate) fn closed(mut page: Html) -> String {
    page.raw("</main></body></html>\n");
    page.end()
}

/// The name of a market on a page.
fn question<'a>(job: &'a Job, questions: &'a [String], market: usize) -> &'a str {
    let condition = &job.markets[market].market.condition;
    questions.get(market).map(String::as_str).filter(|text| !text.is_empty()).unwrap_or(condition)
}

/// The label of the traded outcome.
fn traded(job: &Job, market: usize) -> &str {
    &job.markets[market].market.outcomes[job.traded(market) as usize]
}

#[cfg(test)]
mod tests;
