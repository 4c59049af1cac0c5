//! The page of a run of a bot. Such a run has one course, so there is no band, no naive line and no Brier score; what the
//! prices were between its trades is in the recording.

use super::chart::{Chart, Join};
use super::charts::{self, CHARTS_MAX, DOTS_MAX};
use super::scale::{Times, Values};
use super::tables::{self, trade_table};
use super::text::{Html, change, count, counted, money, percent, price, shares, time};
use super::verdict;
use engine::amount::{Cash, Qty};
use engine::backtest::EquityPoint;
use engine::order::{Liquidity, Side};
use engine::time::Timestamp;
use std::collections::BTreeMap;
use std::ops::Range;

/// Inputs of a page.
const INPUTS_SHOWN: usize = 200;

/// A run of a bot.
#[derive(Clone, Debug)]
pub struct BotRun<'a> {
    /// From the first moment to the last.
    pub span: Range<Timestamp>,
    /// The bot ended well, or was ended.
    pub is_completed: bool,
    /// Of all wallets with orders, in the beginning.
    pub initial: Cash,
    /// The same wallets together, oldest first; the last one is the end.
    pub points: &'a [EquityPoint],
    pub orders: u64,
    /// Oldest first.
    pub fills: &'a [BotFill],
    /// Names and texts of what decides the result, and of the result.
    pub inputs: &'a [(&'a str, String)],
    pub warnings: &'a [String],
}

/// A fill of a bot's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BotFill {
    pub at: Timestamp,
    pub side: Side,
    pub condition: String,
    /// Label of the outcome.
    pub outcome: String,
    pub shares: Qty,
    pub notional: Cash,
    pub fee: Cash,
    pub liquidity: Liquidity,
}

impl BotFill {
    /// Average price of a share, half up.
    fn price(&self) -> Cash {
        let shares = i128::from(self.shares.0.max(1));
        let scaled = (2 * i128::from(self.notional.0) * 1_000_000 + shares) / (2 * shares);
        Cash(i64::try_from(scaled).unwrap_or(i64::MAX))
    }

    fn side(&self) -> &'static str {
        match self.side {
            Side::Buy => "buy",
            Side::Sell => "sell",
        }
    }
}

impl BotRun<'_> {
    fn profit(&self) -> Cash {
        Cash(self.points.last().map_or(0, |point| point.equity().0.saturating_sub(self.initial.0)))
    }

    fn times(&self) -> Times {
        Times(self.span.clone())
    }
}

pub(super) fn write(page: &mut Html, run: &BotRun<'_>) {
    let profit = run.profit();
    page.raw("<header><p class=\"kind\">Back-test with a bot</p>").element(
        "h1",
        verdict::class(profit),
        &sentence(run),
    );
    let span = format!("{} to {} UTC", time(run.span.start), time(run.span.end));
    page.element("p", "unit", &span).raw("</header>");
    verdict::list(page, run.warnings);
    let fees: Cash = run.fills.iter().map(|fill| fill.fee).sum();
    let makers = run.fills.iter().filter(|fill| fill.liquidity == Liquidity::Maker).count() as u64;
    let bankroll = run.initial.0.max(1) as u64;
    tables::figure_list(
        page,
        vec![
            ("Profit, USD", change(profit)),
            ("Return", percent(profit.0, bankroll)),
            ("Orders", count(run.orders)),
            ("Fills", count(run.fills.len() as u64)),
            ("Fills as maker", count(makers)),
            ("Fees paid, USD", money(fees)),
        ],
    );
    equity(page, run);
    charts::drawdown(page, run.times(), run.initial, run.points);
    prices(page, run);
    let columns = ["Time, UTC", "Side", "Outcome", "Shares", "Price", "Fee", "Role", "Market"];
    trade_table(page, columns, run.fills, |page, fill| {
        page.raw("<tr>").element("td", "time", &time(fill.at)).element("td", "", fill.side());
        page.raw("<td>").label(&fill.outcome).raw("</td>").element("td", "number", &shares(fill.shares));
        page.element("td", "number", &price(fill.price())).element("td", "number", &price(fill.fee));
        let role = if fill.liquidity == Liquidity::Maker { "maker" } else { "taker" };
        page.element("td", "", role);
        page.raw("<td class=\"market\">").label(&fill.condition).raw("</td></tr>");
    });
    inputs(page, run);
}

fn sentence(run: &BotRun<'_>) -> String {
    let failed = if run.is_completed { "" } else { " before it failed" };
    if run.fills.is_empty() {
        return format!("The bot made no trade{failed}.");
    }
    let profit = run.profit();
    format!(
        "The bot {} ({}) with {} USD in {}{failed}.",
        verdict::moved(profit),
        percent(profit.0, run.initial.0.max(1) as u64),
        money(run.initial),
        counted(run.fills.len() as u64, "trade", "trades"),
    )
}

fn equity(page: &mut Html, run: &BotRun<'_>) {
    let points = || run.points.iter().map(|point| (point.at, point.equity().0));
    let Some(values) = Values::of(points().map(|(_, value)| value)) else { return };
    let mut chart = Chart::new(run.times(), values);
    chart.line("run", Join::Steps, points().map(|(at, value)| (at, Some(value))));
    page.raw("<section><h2>Equity</h2><p class=\"unit\">US dollars, UTC</p>");
    chart.end(page, "Equity over time", charts::dollars(values));
    page.raw("</section>");
}

/// The fills of each token, those with the most first.
fn prices(page: &mut Html, run: &BotRun<'_>) {
    let mut tokens: BTreeMap<(&str, &str), Vec<&BotFill>> = BTreeMap::new();
    for fill in run.fills {
        tokens.entry((&fill.condition, &fill.outcome)).or_default().push(fill);
    }
    if tokens.is_empty() {
        return;
    }
    let mut tokens: Vec<_> = tokens.into_iter().collect();
    tokens.sort_by_key(|(_, fills)| std::cmp::Reverse(fills.len()));
    page.raw("<section><h2>Prices and fills</h2>");
    charts::left_out(page, tokens.len(), "token", "tokens");
    for ((condition, outcome), fills) in tokens.into_iter().take(CHARTS_MAX) {
        page.raw("<h3>").label(condition).raw("</h3><p class=\"unit\">Token “").label(outcome);
        page.raw("”, US dollars a share; ").text(&counted(fills.len() as u64, "trade", "trades"));
        let step = fills.len().div_ceil(DOTS_MAX).max(1);
        if step > 1 {
            page.text(&format!(", of which {} are drawn", count(fills.len().div_ceil(step) as u64)));
        }
        page.raw("</p>");
        let Some(values) = Values::of(fills.iter().map(|fill| fill.price().0)) else { continue };
        let mut chart = Chart::new(run.times(), values);
        for (side, class, name) in [(Side::Buy, "entry", "Bought"), (Side::Sell, "exit", "Sold")] {
            let of_side = fills.iter().filter(|fill| fill.side == side).count() as u64;
            if of_side > 0 {
                chart.explain(class, format!("{name} ({})", count(of_side)));
            }
        }
        for fill in fills.iter().step_by(step) {
            let class = if fill.side == Side::Buy { "entry" } else { "exit" };
            let (amount, paid) = (shares(fill.shares), price(fill.price()));
            let title = format!("{}: {amount} shares at {paid}, {}", fill.side(), time(fill.at));
            chart.dot(class, fill.at, fill.price().0, &title);
        }
        chart.end(page, "Fills over time", |value| price(Cash(value)));
    }
    page.raw("</section>");
}

fn inputs(page: &mut Html, run: &BotRun<'_>) {
    page.raw("<section><h2>What the result depends on</h2><table class=\"inputs\"><tbody>");
    for (name, text) in run.inputs.iter().take(INPUTS_SHOWN) {
        page.raw("<tr><th>").label(name).raw("</th><td>").label(text).raw("</td></tr>");
    }
    page.raw("</tbody></table>");
    if let Some(more) = run.inputs.len().checked_sub(INPUTS_SHOWN).filter(|more| *more > 0) {
        page.element("p", "note", &format!("{} more are left out.", count(more as u64)));
    }
    page.raw("<p class=\"note\">The result hash covers inputs, orders, trades and equity.</p></section>");
}
