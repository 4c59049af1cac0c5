//! The charts of a report.

use super::chart::{Chart, Join};
use super::scale::{Times, Values};
use super::text::{Html, count, counted, money, percent, price, shares, time};
use super::{question, traded};
use engine::amount::Cash;
use engine::backtest::{EquityPoint, Job, Reason, Report, Trade, Verdict};
use std::fmt::Write as _;

/// Markets whose prices are drawn, and dots of one market.
pub(super) const CHARTS_MAX: usize = 12;
pub(super) const DOTS_MAX: usize = 300;
/// Cells of a strip of coverage.
const CELLS_MAX: usize = 500;

pub(super) fn times(job: &Job) -> Times {
    Times(job.start..job.end)
}

/// A value of an axis in 10⁻⁶ USD, with the decimals that its neighbours differ in.
pub(super) fn dollars(values: Values) -> impl Fn(i64) -> String {
    let is_fine = values.high.saturating_sub(values.low) < 50_000;
    move |value| if is_fine { price(Cash(value)) } else { money(Cash(value)) }
}

/// The account over time, over all seeds, and without costs.
pub(super) fn equity(page: &mut Html, job: &Job, report: &Report) {
    let moments = &report.samples.moments;
    let points = || report.points.iter().map(|point| (point.at, point.equity().0));
    let band: Vec<_> =
        moments.iter().filter_map(|sample| sample.band.map(|[low, _, high]| (sample.at, low.0, high.0))).collect();
    let ends = band.iter().flat_map(|(_, low, high)| [*low, *high]);
    let naive = || moments.iter().map(|sample| (sample.at, sample.naive.0));
    let Some(values) = Values::of(points().chain(naive()).map(|(_, value)| value).chain(ends)) else { return };
    let mut chart = Chart::new(times(job), values);
    if !band.is_empty() {
        chart.band("band", &band);
        chart.explain("band", format!("5th to 95th percentile of {}", counted(job.seeds.into(), "seed", "seeds")));
    }
    if !moments.is_empty() {
        chart.line("naive", Join::Steps, naive().map(|(at, value)| (at, Some(value))));
        chart.explain("naive", "Naive: at midpoints, without fees and delays");
    }
    chart.line("run", Join::Steps, points().map(|(at, value)| (at, Some(value))));
    chart.explain("run", format!("Seed {}", job.seed));
    page.raw("<section><h2>Equity</h2><p class=\"unit\">US dollars, UTC</p>");
    chart.end(page, "Equity over time", dollars(values));
    page.raw("</section>");
}

/// How far an account is below its highest value so far, which is `initial` in the beginning.
pub(super) fn drawdown(page: &mut Html, times: Times, initial: Cash, points: &[EquityPoint]) {
    let mut peak = initial.0.max(1);
    let falls: Vec<_> = points
        .iter()
        .map(|point| {
            let equity = point.equity().0;
            peak = peak.max(equity);
            let fall = i128::from(peak - equity) * 1_000_000 / i128::from(peak);
            (point.at, -(fall as i64))
        })
        .collect();
    let deepest = falls.iter().map(|(_, fall)| *fall).min().unwrap_or(0);
    let values = Values { low: (deepest - deepest.abs() / 20).min(-1_000), high: 0 };
    let mut chart = Chart::new(times, values);
    chart.filled("fall", falls.iter().copied(), 0);
    page.raw("<section><h2>Drawdown</h2><p class=\"unit\">Percent below the highest equity so far</p>");
    chart.end(page, "Drawdown over time", |value| percent(value, 1_000_000));
    page.raw("</section>");
}

fn class(reason: Reason) -> &'static str {
    match reason {
        Reason::Entry => "entry",
        Reason::Exit => "exit",
        Reason::Settlement => "settlement",
    }
}

/// The price of each traded token, with the fills in it: the markets with the most trades first.
pub(super) fn prices(page: &mut Html, job: &Job, report: &Report, questions: &[String]) {
    let mut trades: Vec<Vec<&Trade>> = vec![Vec::new(); job.markets.len()];
    for trade in &report.trades {
        trades[trade.market].push(trade);
    }
    let mut markets: Vec<usize> = (0..job.markets.len()).collect();
    // Stable: of equal ones the order of the job.
    markets.sort_by_key(|market| std::cmp::Reverse(trades[*market].len()));
    page.raw("<section><h2>Prices and fills</h2>");
    left_out(page, markets.len(), "market", "markets");
    for market in markets.into_iter().take(CHARTS_MAX) {
        prices_of(page, job, report, questions, market, &trades[market]);
    }
    page.raw("</section>");
}

fn prices_of(page: &mut Html, job: &Job, report: &Report, questions: &[String], market: usize, trades: &[&Trade]) {
    let samples = &report.samples;
    let mids = || {
        let known = samples.mids.get(market).into_iter().flatten();
        samples.moments.iter().zip(known).map(|(sample, mid)| (sample.at, mid.map(|mid| mid.0)))
    };
    page.raw("<h3>").label(question(job, questions, market)).raw("</h3><p class=\"unit\">Token “");
    page.label(traded(job, market)).raw("”, US dollars a share; ");
    page.text(&counted(trades.len() as u64, "trade", "trades"));
    let step = trades.len().div_ceil(DOTS_MAX).max(1);
    if step > 1 {
        let drawn = trades.len().div_ceil(step) as u64;
        page.text(&format!(", of which {} are drawn", count(drawn)));
    }
    page.raw("</p>");
    let values = mids().filter_map(|(_, mid)| mid).chain(trades.iter().map(|trade| trade.price.0));
    let Some(values) = Values::of(values) else {
        page.raw("<p class=\"note\">The archive has no price of it in the window.</p>");
        return;
    };
    let values = Values { low: values.low.max(0), high: values.high.min(1_000_000).max(values.low.max(0) + 1) };
    let mut chart = Chart::new(times(job), values);
    chart.line("price", Join::Straight, mids());
    chart.explain("price", "Midpoint");
    for reason in [Reason::Entry, Reason::Exit, Reason::Settlement] {
        let of_reason = trades.iter().filter(|trade| trade.reason == reason).count() as u64;
        if of_reason > 0 {
            let name = match reason {
                Reason::Entry => "Entry",
                Reason::Exit => "Exit",
                Reason::Settlement => "Settlement",
            };
            chart.explain(class(reason), format!("{name} ({})", count(of_reason)));
        }
    }
    for trade in trades.iter().step_by(step) {
        let title = format!(
            "{}: {} shares at {}, {}",
            trade.reason.name(),
            shares(trade.shares),
            price(trade.price),
            time(trade.at)
        );
        chart.dot(class(trade.reason), trade.at, trade.price.0, &title);
    }
    chart.end(page, "Price over time", |value| price(Cash(value)));
}

/// The hours of each market by their verdict.
pub(super) fn coverage(page: &mut Html, job: &Job, questions: &[String]) {
    page.raw("<section><h2>Coverage</h2><ul class=\"legend\">");
    for verdict in Verdict::ALL {
        page.raw("<li><svg viewBox=\"0 0 20 10\" aria-hidden=\"true\"><path class=\"").raw(verdict.name());
        page.raw("\" d=\"M0 0H20V10H0Z\"/></svg>").raw(verdict.name()).raw("</li>");
    }
    page.raw("</ul>");
    let most = job.markets.iter().map(|market| market.coverage.hours.len()).max().unwrap_or(0);
    let of_a_cell = most.div_ceil(CELLS_MAX).max(1);
    if of_a_cell > 1 {
        let text = format!("A cell is {of_a_cell} hours, and has the colour of the worst of them.");
        page.element("p", "note", &text);
    }
    for (market, of) in job.markets.iter().enumerate() {
        let mut cells: Vec<Verdict> = Vec::new();
        for hours in of.coverage.hours.chunks(of_a_cell) {
            cells.extend(hours.iter().map(|state| state.verdict).max_by_key(|verdict| badness(*verdict)));
        }
        page.raw("<p class=\"strip\">").label(question(job, questions, market)).raw("</p><p class=\"unit\">");
        let counts: Vec<String> = Verdict::ALL
            .into_iter()
            .map(|verdict| (of.coverage.count(verdict), verdict.name()))
            .filter(|(hours, _)| *hours > 0)
            .map(|(hours, name)| format!("{} {name}", count(hours)))
            .collect();
        page.text(&counts.join(" · ")).raw("</p>");
        let width = cells.len().max(1);
        page.raw(&format!(
            "<svg class=\"cells\" viewBox=\"0 0 {width} 1\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Coverage\">"
        ));
        for verdict in Verdict::ALL {
            let drawn = cells_of(&cells, verdict);
            if !drawn.is_empty() {
                page.raw("<path class=\"").raw(verdict.name()).raw("\" d=\"").raw(&drawn).raw("\"/>");
            }
        }
        page.raw("</svg>");
    }
    page.raw("</section>");
}

fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Valid => 0,
        Verdict::Degraded => 1,
        Verdict::Partial => 2,
        Verdict::Missing => 3,
        Verdict::Quarantined => 4,
    }
}

/// The cells with this verdict, as rectangles one high.
fn cells_of(cells: &[Verdict], verdict: Verdict) -> String {
    let mut drawn = String::new();
    let mut at = 0;
    for run in cells.chunk_by(|one, next| one == next) {
        if run[0] == verdict {
            let _ = write!(drawn, "M{at} 0h{0}v1h-{0}z", run.len());
        }
        at += run.len();
    }
    drawn
}

/// Says how many of these have no chart, if there are more than charts.
pub(super) fn left_out(page: &mut Html, all: usize, one: &str, many: &str) {
    if let Some(left) = all.checked_sub(CHARTS_MAX).filter(|left| *left > 0) {
        let left = counted(left as u64, &format!("{one} is"), &format!("{many} are"));
        let text = format!("The {CHARTS_MAX} {many} with the most trades are drawn; {left} left out.");
        page.element("p", "note", &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells() {
        use Verdict::{Missing, Valid};
        let cases: [(&[Verdict], Verdict, &str); 4] = [
            (&[], Valid, ""),
            (&[Valid, Valid, Valid], Valid, "M0 0h3v1h-3z"),
            (&[Valid, Missing, Valid, Valid], Valid, "M0 0h1v1h-1zM2 0h2v1h-2z"),
            (&[Valid, Missing, Valid, Valid], Missing, "M1 0h1v1h-1z"),
        ];
        for (cells, verdict, expected) in cases {
            assert_eq!(cells_of(cells, verdict), expected, "{cells:?}");
        }
        println!("cells: {} cases", cases.len());
    }
}
