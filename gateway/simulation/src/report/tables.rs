//! Figures, trades, and everything that the result depends on.

use super::text::{Html, change, count, counted, money, percent, price, shares, time};
use super::{Context, question, traded};
use engine::amount::Cash;
use engine::backtest::{Hour, Job, Latency, Operator, Predicate, Reason, Report, Trade};
use engine::market::terms::Category;
use engine::order::Side;
use engine::time::{MINUTE, SECOND};
use std::collections::BTreeSet;
use wire::decimal;

/// Trades of a page: this many of the first, and of the last.
const TRADES_SHOWN: usize = 500;
/// Digests of a page.
const DIGESTS_SHOWN: usize = 2_000;

/// The figures at a glance.
pub(super) fn figures(page: &mut Html, job: &Job, report: &Report) {
    let comparison = &report.comparison;
    let fees: Cash = report.trades.iter().map(|trade| trade.fee).sum();
    let bankroll = job.bankroll.0.max(1) as u64;
    let won = match report.won {
        Some((won, closed)) if closed > 0 => {
            let rate = decimal::text(|out| decimal::win_rate(out, won, closed));
            format!("{} of {}, {rate}", count(won), count(closed))
        }
        _ => "none closed".to_owned(),
    };
    let available: u64 = job.markets.iter().map(|of| of.coverage.available()).sum();
    let asked: u64 = job.markets.iter().map(|of| of.coverage.asked()).sum();
    let mut rows = vec![
        ("Profit, USD", change(report.total_pnl)),
        ("Return", percent(report.total_pnl.0, bankroll)),
        ("Naive profit, USD", change(comparison.naive_pnl)),
        ("Taken by costs, USD", money(comparison.gap())),
        ("Deepest drawdown", percent(report.max_drawdown as i64, 10_000)),
        ("Positions that gained", won),
        ("Fills", format!("{} (naive {})", count(comparison.fills_honest), count(comparison.fills_naive))),
        ("Fees paid, USD", money(fees)),
        ("Covered hours", percent(available as i64, asked)),
    ];
    if let Some(figures) = comparison.percentiles {
        let [low, median, high] = figures.map(change);
        rows.push(("5th, 50th, 95th percentile, USD", format!("{low} · {median} · {high}")));
    }
    figure_list(page, rows);
}

/// Figures with their names.
pub(crate) fn figure_list(page: &mut Html, rows: Vec<(&str, String)>) {
    page.raw("<section><dl class=\"figures\">");
    for (name, value) in rows {
        let is_wide = value.len() > 20;
        page.raw(if is_wide { "<div class=\"wide\">" } else { "<div>" })
            .element("dt", "", name)
            .element("dd", "", &value)
            .raw("</div>");
    }
    page.raw("</dl></section>");
}

/// The trades.
pub(super) fn trades(page: &mut Html, job: &Job, report: &Report, questions: &[String]) {
    let columns = ["Time, UTC", "Reason", "Side", "Outcome", "Shares", "Price", "Fee", "Market"];
    trade_table(page, columns, &report.trades, |page, of| trade(page, job, questions, of));
}

/// A list of trades, the middle of a long one left out.
pub(super) fn trade_table<T, const N: usize>(
    page: &mut Html,
    columns: [&str; N],
    trades: &[T],
    row: impl Fn(&mut Html, &T),
) {
    page.raw("<section><h2>Trades</h2>");
    if trades.is_empty() {
        page.raw("<p class=\"note\">There are none.</p></section>");
        return;
    }
    let left_out = trades.len().saturating_sub(2 * TRADES_SHOWN);
    if left_out > 0 {
        let text = format!(
            "The first and the last {TRADES_SHOWN} of {} trades are listed; {} in the middle are left out.",
            count(trades.len() as u64),
            count(left_out as u64)
        );
        page.element("p", "note", &text);
    }
    page.raw("<div class=\"scroll\"><table><thead><tr>");
    for name in columns {
        page.element("th", if is_number(name) { "number" } else { "" }, name);
    }
    page.raw("</tr></thead><tbody>");
    let (first, last) = match left_out {
        0 => (trades, &trades[..0]),
        _ => (&trades[..TRADES_SHOWN], &trades[trades.len() - TRADES_SHOWN..]),
    };
    first.iter().for_each(|of| row(page, of));
    if left_out > 0 {
        page.raw(&format!("<tr><td colspan=\"{N}\" class=\"gap\">…</td></tr>"));
    }
    last.iter().for_each(|of| row(page, of));
    page.raw("</tbody></table></div></section>");
}

fn is_number(column: &str) -> bool {
    matches!(column, "Shares" | "Price" | "Fee")
}

fn trade(page: &mut Html, job: &Job, questions: &[String], trade: &Trade) {
    let side = match (trade.reason, trade.side) {
        (Reason::Settlement, _) => "payout",
        (_, Side::Buy) => "buy",
        (_, Side::Sell) => "sell",
    };
    page.raw("<tr>").element("td", "time", &time(trade.at));
    page.raw("<td>").element("span", trade.reason.name(), trade.reason.name()).raw("</td>");
    page.element("td", "", side).raw("<td>").label(traded(job, trade.market)).raw("</td>");
    page.element("td", "number", &shares(trade.shares)).element("td", "number", &price(trade.price));
    page.element("td", "number", &price(trade.fee));
    page.raw("<td class=\"market\">").label(question(job, questions, trade.market)).raw("</td></tr>");
}

/// Everything that decides the result.
pub(super) fn inputs(page: &mut Html, job: &Job, report: &Report, context: &Context<'_>) {
    page.raw("<section><h2>What the result depends on</h2><table class=\"inputs\"><tbody>");
    let mut row = |name: &str, write: &mut dyn FnMut(&mut Html)| {
        page.raw("<tr>").element("th", "", name).raw("<td>");
        write(page);
        page.raw("</td></tr>");
    };
    let strategy = &job.strategy;
    let verb = match strategy.side {
        Side::Buy => "buys",
        Side::Sell => "buys the other outcome than",
    };
    row("Strategy", &mut |page| {
        page.text(&format!("{verb} “")).label(&strategy.outcome);
        page.text(&format!("”, {} shares an entry", shares(strategy.size)));
    });
    row("Enters when", &mut |page| _ = page.text(&conditions(&strategy.entry, "at the first decision")));
    row("Leaves when", &mut |page| _ = page.text(&conditions(&strategy.exit, "never: held to the end")));
    row("Window, UTC", &mut |page| _ = page.text(&format!("{} to {}", time(job.start), time(job.end))));
    row("Bankroll, USD", &mut |page| _ = page.text(&money(job.bankroll)));
    row("Fill model", &mut |page| _ = page.text(strategy.model.name()));
    let step = report.plan.step;
    row("Decisions", &mut |page| {
        let decisions = counted(report.ticks_evaluated, "decision", "decisions");
        let every = match step % MINUTE {
            0 => counted(step / MINUTE, "minute", "minutes"),
            _ => counted(step / SECOND, "second", "seconds"),
        };
        page.text(&match report.plan.mode.name() {
            "event" => format!("{decisions}, at each change of a book"),
            _ => format!("{decisions}, every {every}"),
        });
    });
    row("Latency", &mut |page| _ = page.text(&latency(job.latency)));
    row("Haircut of levels", &mut |page| _ = page.text(&format!("up to {}", percent(job.haircut.0.into(), 10_000))));
    row("Seeds", &mut |page| {
        let last = job.seed.saturating_add(u64::from(job.seeds).saturating_sub(1));
        page.text(&if job.seeds == 1 { job.seed.to_string() } else { format!("{} to {last}", job.seed) });
    });
    row("Taker fees", &mut |page| {
        for (number, category) in categories(job).into_iter().enumerate() {
            let name = category.name().unwrap_or("unknown category");
            let rate = percent(context.fees.rate(category).0.into(), 10_000);
            page.text(&format!("{}{name} {rate}", if number > 0 { " · " } else { "" }));
        }
        page.text(" of price × (1 − price)");
    });
    row("Program", &mut |page| _ = page.text(context.program));
    row("Result hash", &mut |page| _ = page.element("code", "", &digits(&report.hash)));
    page.raw("</tbody></table>");
    digests(page, job);
    page.raw(
        "<p class=\"note\">Equal inputs have one result hash: the same request run again shows the same one. It \
        covers request, hours, results of markets, fees, rules, trades and equity.</p></section>",
    );
}

/// The categories of the markets, each once.
fn categories(job: &Job) -> Vec<Category> {
    Category::ALL.into_iter().filter(|category| job.markets.iter().any(|of| of.market.category == *category)).collect()
}

fn conditions(predicates: &[Predicate], none: &str) -> String {
    if predicates.is_empty() {
        return none.to_owned();
    }
    let condition = |of: &Predicate| {
        let operator = match of.operator {
            Operator::Less => "<",
            Operator::LessOrEqual => "≤",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => "≥",
            Operator::Equal => "=",
        };
        format!("{} {operator} {}", of.field.name(), picos(of.value.0))
    };
    predicates.iter().map(condition).collect::<Vec<_>>().join(" and ")
}

/// A number of 10⁻¹² as a decimal without trailing zeros.
fn picos(picos: i128) -> String {
    let one = 1_000_000_000_000_u128;
    let (sign, magnitude) = (if picos < 0 { "−" } else { "" }, picos.unsigned_abs());
    let text = format!("{sign}{}.{:012}", magnitude / one, magnitude % one);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn latency(latency: Latency) -> String {
    match latency {
        Latency::Constant(0) => "none".to_owned(),
        Latency::Constant(millis) => format!("{millis} ms"),
        Latency::Uniform(from, to) => format!("{from} to {to} ms, evenly spread"),
        Latency::LogNormal { p50, p99, max } => {
            format!("log-normal: median {p50} ms, 99 of 100 below {p99} ms, at most {max} ms")
        }
    }
}

/// The digests of the hours that were used, each once: markets of a venue share its hours.
fn digests(page: &mut Html, job: &Job) {
    let all: BTreeSet<(Hour, [u8; 32])> = job.markets.iter().flat_map(|of| of.digests.iter().copied()).collect();
    page.raw("<details><summary>").text(&format!("Digests of {}", counted(all.len() as u64, "hour", "hours")));
    page.raw("</summary><p class=\"digests\">");
    for (hour, digest) in all.iter().take(DIGESTS_SHOWN) {
        page.text(&format!("{hour} ")).element("code", "", &digits(digest)).raw("<br/>");
    }
    page.raw("</p>");
    if let Some(more) = all.len().checked_sub(DIGESTS_SHOWN).filter(|more| *more > 0) {
        page.element("p", "note", &format!("{} more are in the result hash.", count(more as u64)));
    }
    page.raw("</details>");
}

fn digits(bytes: &[u8]) -> String {
    archive::hex(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::backtest::{Field, Threshold};

    #[test]
    fn conditions_are_sentences() {
        let of = |field, operator, value| Predicate { field, operator, value: Threshold(value) };
        let cases = [
            (vec![], "never"),
            (vec![of(Field::Price, Operator::LessOrEqual, 310_000_000_000)], "price ≤ 0.31"),
            (
                vec![of(Field::Mid, Operator::Greater, 0), of(Field::Depth, Operator::Equal, 5_000_000_000_000)],
                "mid > 0 and depth = 5",
            ),
            (vec![of(Field::TimeToResolutionHours, Operator::Less, -1)], "time_to_resolution_hours < −0.000000000001"),
        ];
        for (predicates, expected) in &cases {
            assert_eq!(conditions(predicates, "never"), *expected);
        }
        println!("conditions: {} cases", cases.len());
    }
}
