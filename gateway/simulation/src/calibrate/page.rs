//! The page of live orders against fill models.

use super::orders::LiveOrder;
use super::table::Row;
use super::{Model, ModelOrder, Report};
use crate::report::tables::figure_list;
use crate::report::text::{Html, count, counted, percent, price, shares, time};
use crate::report::{closed, opened};
use engine::amount::Qty;
use engine::order::Side;

/// Orders of a page.
const ORDERS_SHOWN: usize = 500;

/// A calibration, and what it depends on.
#[derive(Clone, Copy, Debug)]
pub struct Calibration<'a> {
    pub orders: &'a [LiveOrder],
    pub models: &'a [Model],
    pub report: &'a Report,
    /// Names and texts of what decides the result, and of the result.
    pub inputs: &'a [(&'a str, String)],
}

/// The page of live orders against fill models. It loads nothing and runs no script; its length has a bound.
pub fn html(of: &Calibration<'_>) -> String {
    let mut page = opened("Calibration");
    write(&mut page, of);
    closed(page)
}

fn write(page: &mut Html, of: &Calibration<'_>) {
    let Calibration { orders, models, report, inputs } = of;
    page.raw("<header><p class=\"kind\">Calibration</p>").element("h1", "", &sentence(of));
    let span = format!("{} to {} UTC", time(report.span.start), time(report.span.end));
    page.element("p", "unit", &span).raw("</header>");
    let mut figures = vec![("Live orders", count(orders.len() as u64)), ("Compared", count(report.compared() as u64))];
    let left_out = report.counts_left_out();
    figures.extend(left_out.iter().filter(|(_, number)| *number > 0).map(|(why, number)| {
        let name = match why.name() {
            "unknown_token" => "Left out: unknown token",
            "no_end" => "Left out: without an end",
            "no_book" => "Left out: no book",
            _ => "Left out: gap",
        };
        (name, count(*number as u64))
    }));
    figure_list(page, figures);
    models_table(page, models, &report.rows);
    orders_table(page, of);
    page.raw("<section><h2>What the result depends on</h2><table class=\"inputs\"><tbody>");
    for (name, text) in inputs.iter() {
        page.raw("<tr><th>").label(name).raw("</th><td>").label(text).raw("</td></tr>");
    }
    page.raw("</tbody></table>");
    page.raw("<p class=\"note\">The result hash covers these, the live orders, and what each model did.</p></section>");
}

/// The model that is right most often.
fn sentence(of: &Calibration<'_>) -> String {
    let best = of
        .models
        .iter()
        .zip(&of.report.rows)
        .reduce(|best, next| if next.1.right().is_above(best.1.right()) { next } else { best });
    match best.filter(|(_, row)| row.orders > 0) {
        None => "No order could be compared.".to_owned(),
        Some((model, row)) => format!(
            "{} decides {} of {} as the venue did ({}).",
            model.name,
            count(row.right().part),
            counted(row.orders, "order", "orders"),
            percent(row.right().part as i64, row.orders),
        ),
    }
}

/// A line for each figure, a column for each model.
fn models_table(page: &mut Html, models: &[Model], rows: &[Row]) {
    page.raw("<section><h2>Models</h2><div class=\"scroll\"><table><thead><tr><th></th>");
    for model in models {
        page.raw("<th class=\"number\">").label(&model.name).raw("</th>");
    }
    page.raw("</tr></thead><tbody>");
    let columns: Vec<_> = rows.iter().map(Row::figures).collect();
    let names = columns.first().map(|figures| figures.clone().map(|(name, _)| name));
    for (line, name) in names.into_iter().flatten().enumerate() {
        page.raw("<tr><th>").text(name).raw("</th>");
        for figures in &columns {
            page.element("td", "number", &figures[line].1);
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
    let unmarked = rows.first().map_or(0, |row| row.unmarked);
    if unmarked > 0 {
        let text = counted(unmarked, "order has", "orders have");
        page.element("p", "note", &format!("{text} a token without a price at the end: not in the profits."));
    }
    page.raw("</section>");
}

fn orders_table(page: &mut Html, of: &Calibration<'_>) {
    let Calibration { orders, models, report, .. } = of;
    page.raw("<section><h2>Orders</h2><div class=\"scroll\"><table><thead><tr>");
    for name in ["Sent, UTC", "Order", "Side", "Price", "Size", "Live"] {
        page.element("th", "", name);
    }
    for model in *models {
        page.raw("<th>").label(&model.name).raw("</th>");
    }
    page.raw("</tr></thead><tbody>");
    for (number, order) in orders.iter().enumerate().take(ORDERS_SHOWN) {
        page.raw("<tr>").element("td", "time", &time(order.sent_at)).raw("<td>").label(&order.id).raw("</td>");
        let side = if order.side == Side::Buy { "buy" } else { "sell" };
        page.element("td", "", side).element(
            "td",
            "number",
            &price(engine::amount::Cash(i64::from(order.price.0) * 100)),
        );
        page.element("td", "number", &shares(order.size)).element("td", "number", &filled(order.filled()));
        match report.left_out[number] {
            Some(why) => {
                page.raw("<td colspan=\"")
                    .text(&models.len().to_string())
                    .raw("\">left out: ")
                    .text(why.name())
                    .raw("</td>");
            }
            None => {
                for ran in &report.models {
                    page.element("td", "number", &outcome(&ran[number]));
                }
            }
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
    if let Some(more) = orders.len().checked_sub(ORDERS_SHOWN).filter(|more| *more > 0) {
        page.element("p", "note", &format!("{} more are in the JSON file.", count(more as u64)));
    }
    page.raw("</section>");
}

fn outcome(order: &ModelOrder) -> String {
    match order.refused {
        Some(code) => code.to_owned(),
        None => filled(order.fills.iter().map(|fill| fill.size).sum()),
    }
}

fn filled(size: Qty) -> String {
    if size.is_zero() { "–".to_owned() } else { shares(size) }
}
