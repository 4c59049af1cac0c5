//! What a reader should know first: the verdict, the warnings, and how good the bought prices were as forecasts.

use super::text::{Html, change, count, counted, money, percent, scaled, time};
use super::{Context, question};
use engine::amount::Cash;
use engine::backtest::{FillModel, Job, Latency, Reason, Report, Verdict};
use engine::market::terms::Category;
use engine::order::Side;

/// Markets below which a Brier score says nothing.
const BRIER_MARKETS_MIN: u64 = 20;

/// Heading, verdict and warnings.
pub(super) fn write(page: &mut Html, job: &Job, report: &Report, context: &Context<'_>) {
    page.raw("<header><p class=\"kind\">Back-test</p>");
    page.element("h1", class(report.total_pnl), &sentence(job, report));
    page.raw("<p class=\"unit\">");
    if job.markets.len() == 1 {
        page.label(question(job, context.questions, 0)).raw(", ");
    } else {
        page.text(&counted(job.markets.len() as u64, "market", "markets")).raw(", ");
    }
    page.text(&format!("{} to {} UTC", time(job.start), time(job.end))).raw("</p></header>");
    let mut all = warnings(job, report);
    all.extend_from_slice(context.warnings);
    list(page, &all);
}

/// The list of warnings, if there are any.
pub(super) fn list(page: &mut Html, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    page.raw("<section class=\"warnings\"><h2>Warnings</h2><ul>");
    for warning in warnings {
        page.raw("<li>").label(warning).raw("</li>");
    }
    page.raw("</ul></section>");
}

/// What a profit is in a sentence.
pub(super) fn moved(profit: Cash) -> String {
    match profit.0 {
        0 => "neither gained nor lost anything".to_owned(),
        ..0 => format!("lost {} USD", money(Cash(-profit.0))),
        1.. => format!("gained {} USD", money(profit)),
    }
}

/// The class of a heading about a profit.
pub(super) fn class(profit: Cash) -> &'static str {
    match profit.0 {
        0 => "",
        ..0 => "loss",
        1.. => "gain",
    }
}

fn sentence(job: &Job, report: &Report) -> String {
    let comparison = &report.comparison;
    let naive = format!("at midpoints, without fees and delays, it would have {}", moved(comparison.naive_pnl));
    if report.trades.is_empty() {
        return format!("The strategy made no trade; {naive}.");
    }
    let return_ = percent(report.total_pnl.0, job.bankroll.0.max(1) as u64);
    let mut text = format!(
        "The strategy {} ({return_}) with {} USD in {}; {naive}",
        moved(report.total_pnl),
        money(job.bankroll),
        counted(report.trades.len() as u64, "trade", "trades"),
    );
    if let Some([low, _, high]) = comparison.percentiles {
        let seeds = counted(job.seeds.into(), "seed", "seeds");
        text += &format!("; of {seeds}, nine in ten results are between {} and {} USD", change(low), change(high));
    }
    text + "."
}

/// Reasons why the result may be too optimistic or incomplete.
fn warnings(job: &Job, report: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(report.plan.notice());
    match job.strategy.model {
        FillModel::Midpoint => {
            warnings.push("Fills at the midpoint are not realistic: no order pays the spread.".to_owned());
        }
        FillModel::TopOfBook => {
            warnings.push("Fills at the best price alone are not realistic: no order moves the price.".to_owned());
        }
        FillModel::DepthWalk | FillModel::DepthWalkDepletion => {}
    }
    if job.latency == Latency::Constant(0) {
        warnings.push("No delay between decision and order was assumed.".to_owned());
    }
    if job.seeds == 1 {
        warnings.push("One seed: how much of the result is chance is not known.".to_owned());
    }
    let hours = |verdict| job.markets.iter().map(|market| market.coverage.count(verdict)).sum::<u64>();
    if !report.missing.is_empty() {
        let missing = report.missing.len() as u64;
        warnings
            .push(format!("{} had no decisions: no usable books.", counted(missing, "market hour", "market hours")));
    }
    for (verdict, what) in [(Verdict::Degraded, "lost messages"), (Verdict::Partial, "recorded in part")] {
        if hours(verdict) > 0 {
            warnings.push(format!("{}: {what}.", counted(hours(verdict), "market hour", "market hours")));
        }
    }
    let unknown = job.markets.iter().filter(|of| of.market.category == Category::Unknown).count() as u64;
    if unknown > 0 {
        let markets = counted(unknown, "market", "markets");
        warnings.push(format!("The category of {markets} is unknown, and so is the right fee."));
    }
    let open = open_positions(job, report);
    if open > 0 {
        let text = counted(open, "position was", "positions were");
        warnings.push(format!("{text} open at the end, valued at the last midpoint and not sold."));
    }
    warnings
}

fn open_positions(job: &Job, report: &Report) -> u64 {
    let mut held = vec![0_i128; job.markets.len()];
    for trade in &report.trades {
        let shares = i128::from(trade.shares.0);
        held[trade.market] += if trade.side == Side::Buy { shares } else { -shares };
    }
    held.iter().filter(|shares| **shares > 0).count() as u64
}

/// The mean squared distance of the average entry price of a market from what a share paid out, in 10⁻⁴, and the number
/// of markets; `None` for too few.
pub(super) fn brier_score(job: &Job, report: &Report) -> Option<(u64, u64)> {
    let mut entered = vec![(0_i128, 0_i128); job.markets.len()];
    for trade in report.trades.iter().filter(|trade| trade.reason == Reason::Entry) {
        let (notional, shares) = &mut entered[trade.market];
        *notional += i128::from(trade.notional.0);
        *shares += i128::from(trade.shares.0);
    }
    let (mut markets, mut sum) = (0, 0);
    for (market, (notional, shares)) in entered.into_iter().enumerate() {
        let of = &job.markets[market].market;
        let Some(settled) = of.settlement.filter(|settled| shares > 0 && settled.at <= job.end) else { continue };
        let forecast = notional * 1_000_000 / shares;
        let paid = i128::from(settled.resolution.payout(job.traded(market)).0) * 100;
        markets += 1;
        sum += (forecast - paid).pow(2);
    }
    let mean = (markets >= BRIER_MARKETS_MIN).then(|| sum / i128::from(markets))?;
    // From 10⁻¹².
    Some((scaled(mean as u64, 1, 100_000_000), markets))
}

pub(super) fn brier(page: &mut Html, job: &Job, report: &Report) {
    let Some((score, markets)) = brier_score(job, report) else { return };
    page.raw("<section><h2>Brier score</h2><p><strong>");
    page.text(&format!("{}.{:04}", score / 10_000, score % 10_000)).raw("</strong> over ");
    page.text(&count(markets));
    page.raw(
        " settled markets: the mean squared distance of the average entry price from what a share paid out. 0 is a \
         perfect forecast, 0.25 that of a coin.</p></section>",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{entered, job_of};
    use engine::id::Outcome;
    use engine::market::terms::Resolution;

    #[test]
    fn a_brier_score_needs_twenty_settled_markets() {
        // By hand: fifteen at 0.20 that lost, and five at 0.60 that won: (15 × 0.04 + 5 × 0.16) ÷ 20 = 0.07.
        let mut cases = 0;
        for (count, expected) in [(0, None), (1, None), (19, None), (20, Some((700, 20))), (40, Some((700, 40)))] {
            let results: Vec<_> = (0..count)
                .map(|number| match number % 4 {
                    3 => (600_000, Resolution::Winner(Outcome::First)),
                    _ => (200_000, Resolution::Winner(Outcome::Second)),
                })
                .collect();
            let (job, report) = entered(&results);
            assert_eq!(brier_score(&job, &report), expected, "{count} markets");
            let page = {
                let mut page = Html::default();
                brier(&mut page, &job, &report);
                page.end()
            };
            assert_eq!(page.contains("<strong>0.0700</strong>"), expected.is_some(), "{count} markets: {page}");
            assert_eq!(page.is_empty(), expected.is_none());
            cases += 1;
        }
        // A split pays a half: nineteen are exact, one is 0.49995 away. 0.2499500025 ÷ 20 = 0.0124975.
        let splits = [(500_000, Resolution::Split); 19];
        let (job, report) = entered(&[&splits[..], &[(999_950, Resolution::Split)]].concat());
        assert_eq!(brier_score(&job, &report), Some((125, 20)));
        // One that is settled after the window, one that was not entered, and exits do not count.
        let (mut job, mut report) = entered(&[(200_000, Resolution::Winner(Outcome::Second)); 22]);
        job.markets[0].market.settlement = job.markets[0]
            .market
            .settlement
            .map(|settled| engine::backtest::Settled { at: engine::time::Timestamp(job.end.0 + 1), ..settled });
        report.trades.retain(|trade| trade.market != 1);
        assert_eq!(brier_score(&job, &report), Some((400, 20)));
        report.trades.iter_mut().filter(|trade| trade.market == 2).for_each(|trade| trade.reason = Reason::Exit);
        assert_eq!(brier_score(&job, &report), None);
        println!("Brier scores: {} cases", cases + 3);
    }

    #[test]
    fn verdicts() {
        let of = |pnl: i64, naive: i64, percentiles: Option<[i64; 3]>, trades: usize| {
            let (mut job, mut report) = entered(&vec![(200_000, Resolution::Split); trades]);
            if trades == 0 {
                job = job_of(1);
            }
            (job.bankroll, job.seeds) = (Cash::from_dollars(500), if percentiles.is_some() { 20 } else { 1 });
            report.total_pnl = Cash(pnl);
            report.comparison.naive_pnl = Cash(naive);
            report.comparison.percentiles = percentiles.map(|figures| figures.map(Cash));
            sentence(&job, &report)
        };
        let cases = [
            (
                of(2_923_240, 4_000_000, None, 1),
                "The strategy gained 2.92 USD (0.58 %) with 500.00 USD in 1 trade; at midpoints, without fees and delays, it would have gained 4.00 USD.",
            ),
            (
                of(-2_500_000, 0, Some([-5_000_000, 0, 1_000_000]), 2),
                "The strategy lost 2.50 USD (−0.50 %) with 500.00 USD in 2 trades; at midpoints, without fees and delays, it would have neither gained nor lost anything; of 20 seeds, nine in ten results are between −5.00 and +1.00 USD.",
            ),
            (
                of(0, -1_000_000, None, 0),
                "The strategy made no trade; at midpoints, without fees and delays, it would have lost 1.00 USD.",
            ),
        ];
        for (text, expected) in &cases {
            assert_eq!(text, expected);
        }
        println!("verdicts: {} cases", cases.len());
    }
}
