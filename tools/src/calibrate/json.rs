//! The result of a calibration as JSON (gateway/docs/calibrate.md §5). Amounts are decimal texts.

use crate::settings::hex;
use ::simulation::calibrate::control::Controlled;
use ::simulation::calibrate::orders::LiveOrder;
use ::simulation::calibrate::table::{Row, bps};
use ::simulation::calibrate::{Comparison, Model, ModelOrder, Report};
use engine::amount::{Bps, Cash, Price, Qty, average_half_up};
use engine::order::Side;
use engine::time::Timestamp;
use serde_json::{Map, Value, json};
use wire::decimal;
use wire::instant::ts_text;

/// The whole result.
pub fn of(compared: &Comparison<'_>, report: &Report) -> Value {
    let left_out: Map<String, Value> =
        report.counts_left_out().into_iter().map(|(why, number)| (why.name().to_owned(), json!(number))).collect();
    let orders: Vec<Value> = (0..compared.orders.len()).map(|number| order(compared, report, number)).collect();
    json!({
        "settings": {
            "models": compared.models.iter().map(model).collect::<Vec<Value>>(),
            "self": if compared.removes_own { "on" } else { "off" },
            "seed": compared.seed,
            "fee_source": compared.rules.fees.source.name(),
            "match_interval_ms": compared.rules.match_interval_us / 1_000,
            "ack_after_us": compared.ack_after,
        },
        "tape": {"digest": hex(&report.tape), "from": ts_text(report.span.start), "to": ts_text(report.span.end)},
        "num_orders": compared.orders.len(),
        "num_compared": report.compared(),
        "left_out": left_out,
        "models": rows(compared.models, &report.rows),
        "orders": orders,
        "result_hash": hex(&report.hash),
    })
}

/// The result of a control.
pub fn of_control(seed: u64, controlled: &Controlled) -> Value {
    let check = |check: &::simulation::calibrate::control::Check| json!({"what": check.what, "seen": check.is_seen, "figures": check.figures});
    let shifted = controlled.models.first().map(|model| row(model, &controlled.shifted));
    json!({
        "seed": seed,
        "passed": controlled.is_passed(),
        "checks": controlled.checks.iter().map(check).collect::<Vec<Value>>(),
        "models": rows(&controlled.models, &controlled.report.rows),
        "shifted": shifted,
        "tape": {"digest": hex(&controlled.report.tape)},
        "result_hash": hex(&controlled.report.hash),
    })
}

/// A share in 10⁻⁴ as a decimal.
pub fn share(bps: Bps) -> String {
    decimal::text(|out| decimal::size(out, Qty(u64::from(bps.0) * 100)))
}

fn model(model: &Model) -> Value {
    let fill = model.fill;
    json!({
        "name": model.name,
        "fill_model": fill.model.name(),
        "n": fill.n,
        "cancel_share": share(fill.cancel_share),
        "depth_share": share(fill.depth_share),
        "match_window_ms": fill.match_window_ms,
        "half_life_s": fill.half_life_s,
    })
}

fn rows(models: &[Model], rows: &[Row]) -> Vec<Value> {
    models.iter().zip(rows).map(|(model, of)| row(model, of)).collect()
}

fn row(model: &Model, row: &Row) -> Value {
    let [median, p90] = row.time_error.map_or([None; 2], |both| both.map(Some));
    json!({
        "name": model.name,
        "orders": row.orders,
        "filled_both": row.both,
        "filled_only_live": row.only_live,
        "filled_only_model": row.only_model,
        "filled_neither": row.neither,
        "refused": row.refused,
        "precision": row.precision().text(),
        "recall": row.recall().text(),
        "live_shares": shares(row.live_shares),
        "model_shares": shares(row.model_shares),
        "shares_ratio": row.shares().text(),
        "live_time_to_fill_us": row.live_fills_after,
        "model_time_to_fill_us": row.model_fills_after,
        "time_error_median_us": median,
        "time_error_p90_us": p90,
        "price_error_bps": row.price_error.map(bps),
        "live_pnl": money(row.live_pnl),
        "model_pnl": money(row.model_pnl),
        "pnl_difference": money(row.difference()),
        "pnl_difference_90": row.interval.map(money),
        "unmarked": row.unmarked,
        "fees_unknown": row.fees_unknown,
    })
}

fn order(compared: &Comparison<'_>, report: &Report, number: usize) -> Value {
    let live: &LiveOrder = &compared.orders[number];
    let by_model = compared.models.iter().zip(&report.models);
    let models: Map<String, Value> =
        by_model.map(|(model, ran)| (model.name.clone(), modelled(&ran[number]))).collect();
    // A price times shares is in 10⁻¹² USD.
    let notional = live.fills.iter().map(|fill| i128::from(fill.price.0) * i128::from(fill.size.0)).sum::<i128>();
    let fees = live.fills.iter().map(|fill| i128::from(fill.fee.unwrap_or_default().0)).sum::<i128>();
    json!({
        "order_id": live.id,
        "token_id": live.token,
        "side": if live.side == Side::Buy { "BUY" } else { "SELL" },
        "type": live.kind.name(),
        "price": decimal::text(|out| decimal::price(out, Price(live.price.0))),
        "size": shares(live.size),
        "post_only": live.post_only,
        "entered_at": ts_text(compared.entered_at(live)),
        "left_out": report.left_out[number].map(|why| why.name()),
        "mark": report.marks[number].map(money),
        "live": did(live.filled(), notional / 1_000_000, fees, live.fills.first().map(|fill| fill.at)),
        "models": models,
    })
}

fn modelled(order: &ModelOrder) -> Value {
    let filled: Qty = order.fills.iter().map(|fill| fill.size).sum();
    let notional = order.fills.iter().map(|fill| i128::from(fill.notional.0)).sum::<i128>();
    let fees = order.fills.iter().map(|fill| i128::from(fill.fee.0)).sum::<i128>();
    let mut value = did(filled, notional, fees, order.fills.first().map(|fill| fill.at));
    value["refused"] = json!(order.refused);
    value
}

/// Filled shares, with amounts in 10⁻⁶ USD.
fn did(filled: Qty, notional: i128, fees: i128, first_at: Option<Timestamp>) -> Value {
    let [notional, fees] = [notional, fees].map(engine::amount::nearest);
    json!({
        "filled": shares(filled),
        "average_price": average_half_up(notional, filled).map(money),
        "fee": money(fees),
        "first_fill_at": first_at.map(ts_text),
    })
}

fn money(cash: Cash) -> String {
    decimal::text(|out| decimal::money(out, cash))
}

fn shares(size: Qty) -> String {
    decimal::text(|out| decimal::size(out, size))
}
