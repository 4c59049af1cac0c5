//! The analysis on the wire.

use super::figures::{self, Figure, TooLarge, average, drawdown, extremes, gain, percent, ratio, since};
use super::{Held, Inputs};
use crate::api::account::valuation::{Balance, Marks};
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words;
use crate::http::call::Caller;
use crate::settings::TIERS;
use engine::amount::Cash;
use engine::time::{DAY, Timestamp};
use engine::view::FillView;
use rust_decimal::prelude::{Decimal, RoundingStrategy};
use std::collections::BTreeMap;
use wire::decimal;
use wire::write::{Object, object, separate};

/// Positions that are written before others get their turn.
const ROWS_PER_PIECE: usize = 256;
/// Places of `pct` and of plain ratios (wire.md §1).
const PERCENT_PLACES: u32 = 2;
const RATIO_PLACES: u32 = 6;

/// The whole answer.
pub(super) async fn answer(found: &Inputs, caller: &Caller, marks: Marks<'_>) -> Result<Vec<u8>, TooLarge> {
    let mut out = Vec::with_capacity(8_192 + 512 * found.held.len());
    let median = found.trades.median().await;
    let (mut failed, mut open) = (Ok(()), vec![b'[']);
    for (index, held) in found.held.iter().enumerate() {
        if index % ROWS_PER_PIECE == ROWS_PER_PIECE - 1 {
            tokio::task::yield_now().await;
        }
        separate(&mut open);
        position(&mut open, held, found, marks)?;
    }
    open.push(b']');
    object(&mut out, |o| {
        o.ts("analysis_generated_at", found.now);
        o.word("analysis_version", "1.0.0");
        o.text("natural_language_summary", &summary(found));
        o.object("profile", |o| profile(o, found, caller));
        let mut section = |name: &str, o: &mut Object<'_>, write: &dyn Fn(&mut Object<'_>) -> Result<(), TooLarge>| {
            o.object(name, |o| failed = failed.and_then(|()| write(o)));
        };
        section("balance", o, &|o| balance(o, found));
        o.name("open_positions").extend_from_slice(&open);
        section("trading_stats", o, &|o| trading(o, found, median));
        section("risk_metrics", o, &|o| risk(o, found, marks));
        section("equity_timeline", o, &|o| timeline(o, found));
        let exposure = exposure(found, marks);
        o.array("category_exposure", &exposure, |out, (category, (count, value))| {
            object(out, |o| {
                o.text("category", category);
                o.integer("position_count", *count);
                o.money("total_value", *value);
                let weight = percent(i128::from(value.0), found.spread.total);
                failed = failed.and_then(|()| pct(o, "weight_percentage", weight));
            });
        });
        o.array("recent_trades", &found.recent, |out, row| trade(out, row, marks));
    });
    failed.map(|()| out)
}

fn summary(found: &Inputs) -> String {
    let Inputs { trades, outcomes, held, chosen, .. } = found;
    let count = |number: u64, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let mut text = format!(
        "{} in {}; {} of {} won. ",
        count(trades.count(), "trade"),
        count(trades.markets_count() as u64, "market"),
        outcomes.wins,
        count(outcomes.closed, "closed position"),
    );
    text.push_str(&count(held.len() as u64, "position"));
    let total = decimal::text(|out| decimal::money(out, chosen.total));
    text.push_str(&format!(" open; the portfolio is worth {total} USD."));
    text
}

fn profile(o: &mut Object<'_>, found: &Inputs, caller: &Caller) {
    let user = &found.user;
    o.integer("user_id", user.id.0);
    for unknown in ["username", "display_name", "bio", "avatar_url", "auth_provider"] {
        o.null(unknown);
    }
    o.ts("account_created_at", user.created_at);
    o.integer("account_age_days", found.now.since(user.created_at) / DAY);
    o.word("api_key_tier", TIERS[caller.tier as usize].1);
    o.word("profile_visibility", "public");
}

fn balance(o: &mut Object<'_>, found: &Inputs) -> Result<(), TooLarge> {
    let Inputs { ui, api, chosen, .. } = found;
    o.word("currency", "USD");
    o.money("ui_balance", ui.available);
    o.money("api_balance", api.available);
    o.money("starting_ui_balance", ui.starting);
    o.money("starting_api_balance", api.starting);
    o.money("ui_pnl", ui.unrealized);
    o.money("api_pnl", api.unrealized);
    let of_start = |balance: &Balance| percent(i128::from(balance.unrealized.0), i128::from(balance.starting.0));
    pct(o, "ui_pnl_percentage", of_start(ui))?;
    pct(o, "api_pnl_percentage", of_start(api))?;
    o.money("total_portfolio_value", chosen.total);
    let gain = |held: &Held| i128::from(held.value.0) - i128::from(held.view.position.cost.0);
    o.money("unrealized_pnl", figures::cash(figures::exact(found.held.iter().map(gain).sum())?)?);
    o.money("realized_pnl", figures::cash(figures::exact(found.outcomes.realized)?)?);
    Ok(())
}

fn position(out: &mut Vec<u8>, held: &Held, found: &Inputs, marks: Marks<'_>) -> Result<(), TooLarge> {
    let position = &held.view.position;
    let texts = Texts::of(marks.catalog, position.instrument);
    // Without a mark nothing was gained or lost that anybody knows of.
    let value = held.mark.map(|_| held.value);
    let mut written = Ok(());
    object(out, |o| {
        o.integer("position_id", position.id.0);
        o.text("market_id", texts.market());
        o.text_or_null("market_question", texts.question());
        o.text("market_category", category(held, marks));
        o.text("outcome", texts.outcome());
        o.qty("quantity", position.qty);
        o.average("avg_entry_price", held.view.average.unwrap_or_default());
        o.or_null("current_price", held.mark, Object::average);
        o.money("cost_basis", position.cost);
        o.money_or_null("market_value", value);
        o.money_or_null("unrealized_pnl", value.map(|value| value - position.cost));
        let gain = match value {
            Some(value) => percent(i128::from(value.0) - i128::from(position.cost.0), i128::from(position.cost.0)),
            None => Ok(None),
        };
        written = pct(o, "unrealized_pnl_percentage", gain);
        o.word("status", "OPEN");
        let weight = percent(i128::from(held.value.0), found.spread.total);
        written = written.and_then(|()| pct(o, "weight_percentage", weight));
    });
    written
}

fn trading(o: &mut Object<'_>, found: &Inputs, median: Option<Cash>) -> Result<(), TooLarge> {
    let Inputs { trades, outcomes, .. } = found;
    o.integer("total_trades", trades.count());
    o.integer("total_buys", trades.buys);
    o.integer("total_sells", trades.sells);
    o.integer("total_wins", outcomes.wins);
    o.integer("total_losses", outcomes.losses);
    o.integer("active_trading_days", trades.days);
    o.integer("unique_markets_traded", trades.markets_count() as u64);
    number(o, "buy_sell_ratio", ratio(trades.buys.into(), trades.sells.into()))?;
    o.money("total_volume", figures::cash(figures::exact(trades.volume)?)?);
    o.money_or_null("avg_trade_size", average(trades.volume, trades.count())?);
    o.money_or_null("median_trade_size", median);
    o.money_or_null("largest_trade", trades.largest());
    o.money_or_null("smallest_trade", trades.smallest());
    o.money("total_fees_paid", figures::cash(figures::exact(trades.fees)?)?);
    match outcomes.closed {
        0 => o.null("win_rate"),
        closed => {
            let out = o.name("win_rate");
            out.push(b'"');
            decimal::win_rate(out, outcomes.wins, closed);
            out.push(b'"');
        }
    }
    o.money_or_null("best_trade_pnl", outcomes.best);
    o.money_or_null("worst_trade_pnl", outcomes.worst);
    o.money_or_null("avg_win_pnl", average(outcomes.profit, outcomes.wins)?);
    o.money_or_null("avg_loss_pnl", average(-outcomes.loss, outcomes.losses)?);
    number(o, "profit_factor", ratio(outcomes.profit, outcomes.loss))?;
    o.ts_or_null("first_trade_at", trades.first_at);
    o.ts_or_null("last_trade_at", trades.last_at);
    number(o, "avg_trades_per_day", ratio(trades.count().into(), trades.days.into()))
}

fn risk(o: &mut Object<'_>, found: &Inputs, marks: Marks<'_>) -> Result<(), TooLarge> {
    let Inputs { spread, held, chosen, .. } = found;
    o.integer("open_position_count", held.len() as u64);
    pct(o, "largest_position_weight", spread.concentration(1))?;
    let largest = held.first().map(|held| Texts::of(marks.catalog, held.view.position.instrument).market());
    o.text_or_null("largest_position_market", largest);
    pct(o, "top_3_concentration", spread.concentration(3))?;
    number(o, "portfolio_diversity_score", spread.diversity())?;
    o.money_or_null("avg_position_size", spread.average()?);
    let total = i128::from(chosen.total.0);
    let cash = i128::from(chosen.available.0) + i128::from(chosen.reserved.0);
    pct(o, "cash_percentage", percent(cash, total))?;
    pct(o, "invested_percentage", percent(spread.total, total))?;
    pct(o, "max_drawdown_7d", drawdown(since(&found.points, ago(found, 7))))?;
    pct(o, "max_drawdown_30d", drawdown(since(&found.points, ago(found, 30))))
}

fn timeline(o: &mut Object<'_>, found: &Inputs) -> Result<(), TooLarge> {
    let window = since(&found.points, found.equity_from);
    pct(o, "return_7d", gain(since(&found.points, ago(found, 7))))?;
    pct(o, "return_30d", gain(since(&found.points, ago(found, 30))))?;
    pct(o, "return_all_time", gain(&found.points))?;
    let (peak, trough) = extremes(window).unzip();
    for (value, date, point) in [("peak_value", "peak_date", peak), ("trough_value", "trough_date", trough)] {
        o.money_or_null(value, point.map(|(_, value)| value));
        o.ts_or_null(date, point.map(|(at, _)| at));
    }
    o.money("current_value", found.chosen.total);
    o.integer("snapshots_available", window.len() as u64);
    o.ts_or_null("latest_snapshot_at", window.last().map(|(at, _)| *at));
    Ok(())
}

fn ago(found: &Inputs, days: u64) -> Timestamp {
    Timestamp(found.now.0.saturating_sub(days * DAY))
}

/// Positions and their value by category, by name.
fn exposure(found: &Inputs, marks: Marks<'_>) -> BTreeMap<&'static str, (u64, Cash)> {
    let mut exposure: BTreeMap<&'static str, (u64, Cash)> = BTreeMap::new();
    for held in &found.held {
        let (count, value) = exposure.entry(category(held, marks)).or_default();
        *count += 1;
        value.0 = value.0.saturating_add(held.value.0);
    }
    exposure
}

fn category(held: &Held, marks: Marks<'_>) -> &'static str {
    let cell = marks.catalog.of_instrument(held.view.position.instrument);
    cell.and_then(|cell| cell.listing.category.name()).unwrap_or("unknown")
}

fn trade(out: &mut Vec<u8>, view: &FillView, marks: Marks<'_>) {
    let FillView { fill, order } = view;
    let texts = Texts::of(marks.catalog, order.terms.instrument);
    object(out, |o| {
        o.integer("order_id", order.id.0);
        o.text("market_id", texts.market());
        o.text_or_null("market_question", texts.question());
        o.word("side", words::side(order.terms.side));
        o.text("outcome", texts.outcome());
        o.average("price", fill_price(order, fill));
        o.qty("quantity", fill.qty);
        o.money("notional", fill.notional);
        o.ts("filled_at", fill.at);
    });
}

/// Format `pct` without its sign: two places.
fn pct(o: &mut Object<'_>, name: &str, figure: Figure) -> Result<(), TooLarge> {
    rounded(o, name, figure?, PERCENT_PLACES);
    Ok(())
}

/// A plain ratio: two to six places.
fn number(o: &mut Object<'_>, name: &str, figure: Figure) -> Result<(), TooLarge> {
    rounded(o, name, figure?, RATIO_PLACES);
    Ok(())
}

fn rounded(o: &mut Object<'_>, name: &str, figure: Option<Decimal>, places_max: u32) {
    let Some(figure) = figure else { return o.null(name) };
    let mut figure = figure.round_dp_with_strategy(places_max, RoundingStrategy::MidpointAwayFromZero).normalize();
    if figure.scale() < 2 {
        figure.rescale(2);
    }
    if figure.is_zero() {
        figure.set_sign_positive(true);
    }
    o.text(name, &figure.to_string());
}
