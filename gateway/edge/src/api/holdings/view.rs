//! Positions and trades as the venue's service shows them. All figures are JSON numbers.

use crate::api::clob::ids;
use crate::api::orders::view::fill_price;
use crate::api::orders::words;
use engine::amount::{Cash, Qty};
use engine::id::Outcome;
use engine::mark::{Marks, market_value};
use engine::market::catalog::{Catalog, MarketCell};
use engine::time::Timestamp;
use engine::view::{FillView, PositionView};
use wire::decimal;
use wire::instant;
use wire::write::{Object, object};

/// One hundred percent, in 10⁻⁶ of a percent.
const WHOLE_PERCENT: i128 = 100_000_000;
/// Characters of a date.
const DATE_CHARS: usize = 10;

/// One open position with its figures, in 10⁻⁶ USD.
pub struct Held<'a> {
    view: &'a PositionView,
    cell: Option<&'a MarketCell>,
    pub cost: Cash,
    pub average: Cash,
    /// A position without a mark counts at its average price.
    pub mark: Cash,
    pub value: Cash,
}

impl<'a> Held<'a> {
    pub fn of(view: &'a PositionView, marks: Marks<'a>) -> Held<'a> {
        let held = &view.position;
        let average = view.average.unwrap_or_default();
        let mark = marks.mark(held.instrument);
        Held {
            view,
            cell: marks.catalog.of_instrument(held.instrument),
            cost: held.cost,
            average,
            mark: mark.unwrap_or(average),
            value: mark.map_or(held.cost, |mark| market_value(mark, held.qty)),
        }
    }

    pub fn size_micros(&self) -> i64 {
        micros(self.view.position.qty)
    }

    pub fn pnl(&self) -> i64 {
        self.value.0.saturating_sub(self.cost.0)
    }

    /// In 10⁻⁶ of a percent of the cost.
    pub fn pnl_percent(&self) -> i64 {
        percent(self.pnl(), self.cost.0)
    }

    pub fn title(&self) -> &str {
        self.cell.map_or("", |cell| &cell.listing.question)
    }

    pub fn end(&self) -> Option<Timestamp> {
        self.cell?.end()
    }

    fn outcome(&self) -> Outcome {
        self.view.position.instrument.outcome()
    }

    /// A row of the first generation.
    pub fn write(&self, out: &mut Vec<u8>, user: &str) {
        let Some(cell) = self.cell else { return out.extend_from_slice(b"{}") };
        let outcome = self.outcome();
        object(out, |o| {
            o.text("proxyWallet", user);
            o.text("asset", cell.token(outcome));
            o.text("conditionId", &cell.listing.condition);
            let realized = self.view.position.realized.0;
            for (name, micros) in [
                ("size", self.size_micros()),
                ("avgPrice", self.average.0),
                ("initialValue", self.cost.0),
                ("currentValue", self.value.0),
                ("cashPnl", self.pnl()),
                ("percentPnl", self.pnl_percent()),
                ("totalBought", self.size_micros()),
                ("realizedPnl", realized),
                ("percentRealizedPnl", percent(realized, self.cost.0)),
                ("curPrice", self.mark.0),
            ] {
                signed(o, name, micros);
            }
            o.boolean("redeemable", false);
            o.boolean("mergeable", false);
            names(o, cell, "eventSlug");
            if let Some(event) = cell.event() {
                o.text("eventId", &event.id);
            }
            o.text("outcome", cell.outcome(outcome));
            o.integer("outcomeIndex", outcome as u64);
            o.text("oppositeOutcome", cell.outcome(other(outcome)));
            o.text("oppositeAsset", cell.token(other(outcome)));
            o.text("endDate", &day(cell));
            o.boolean("negativeRisk", cell.listing.neg_risk);
        });
    }

    /// A row of the second generation.
    pub fn write_second(&self, out: &mut Vec<u8>, user: &str) {
        let Some(cell) = self.cell else { return out.extend_from_slice(b"{}") };
        let outcome = self.outcome();
        object(out, |o| {
            o.text("proxy_wallet", user);
            o.text("token_id", cell.token(outcome));
            o.text("condition_id", &cell.listing.condition);
            let realized = self.view.position.realized.0;
            for (name, micros) in [
                ("current_size", self.size_micros()),
                ("avg_price", self.average.0),
                ("entry_cost_usdc", self.cost.0),
                ("entry_fees_usdc", 0),
                ("total_cost_usdc", self.cost.0),
                ("current_price", self.mark.0),
                ("current_value", self.value.0),
                ("total_size", self.size_micros()),
                ("realized_pnl", realized),
                ("unrealized_pnl", self.pnl()),
                ("total_pnl", self.pnl().saturating_add(realized)),
                ("percent_pnl", self.pnl_percent()),
                ("percent_realized_pnl", percent(realized, self.cost.0)),
            ] {
                signed(o, name, micros);
            }
            o.word("status", "OPEN");
            for name in ["redeemable", "mergeable", "archived", "verified"] {
                o.boolean(name, false);
            }
            o.boolean("negative_risk", cell.listing.neg_risk);
            names(o, cell, "event_slug");
            o.text("outcome", cell.outcome(outcome));
            o.integer("outcome_index", outcome as u64);
            o.text("opposite_outcome", cell.outcome(other(outcome)));
            o.text("opposite_token_id", cell.token(other(outcome)));
            o.text("end_date", &day(cell));
            o.integer("first_entry_at", self.view.position.opened_at.secs());
        });
    }
}

/// A trade of the first generation.
pub fn trade(out: &mut Vec<u8>, view: &FillView, user: &str, catalog: &Catalog) {
    let terms = &view.order.terms;
    let Some(cell) = catalog.of_instrument(terms.instrument) else { return out.extend_from_slice(b"{}") };
    let outcome = terms.instrument.outcome();
    object(out, |o| {
        o.text("proxyWallet", user);
        o.text("asset", cell.token(outcome));
        o.text("conditionId", &cell.listing.condition);
        executed(o, view, cell);
        o.text("transactionHash", &ids::paper_transaction_hash(&view.fill.id.0.to_string()));
        names(o, cell, "eventSlug");
        o.integer("outcomeIndex", outcome as u64);
        for name in ["name", "pseudonym", "bio", "profileImage", "profileImageOptimized"] {
            o.word(name, "");
        }
    });
}

/// A trade of the second generation.
pub fn trade_second(out: &mut Vec<u8>, view: &FillView, user: &str, catalog: &Catalog) {
    let terms = &view.order.terms;
    let Some(cell) = catalog.of_instrument(terms.instrument) else { return out.extend_from_slice(b"{}") };
    let outcome = terms.instrument.outcome();
    object(out, |o| {
        o.text("proxy_wallet", user);
        o.text("token_id", cell.token(outcome));
        o.text("condition_id", &cell.listing.condition);
        executed(o, view, cell);
        o.text("transaction_hash", &ids::paper_transaction_hash(&view.fill.id.0.to_string()));
        names(o, cell, "event_slug");
        o.integer("outcome_index", outcome as u64);
    });
}

fn executed(o: &mut Object<'_>, view: &FillView, cell: &MarketCell) {
    let terms = &view.order.terms;
    o.word("side", words::side(terms.side));
    signed(o, "size", micros(view.fill.qty));
    signed(o, "price", fill_price(&view.order, &view.fill).0);
    o.integer("timestamp", view.fill.at.secs());
    o.text("outcome", cell.outcome(terms.instrument.outcome()));
}

/// What the market is called.
fn names(o: &mut Object<'_>, cell: &MarketCell, event_slug: &str) {
    o.text("title", &cell.listing.question);
    o.text("slug", &cell.listing.slug);
    o.text("icon", cell.listing.image.as_deref().unwrap_or_default());
    o.text(event_slug, cell.event().map_or("", |event| event.slug.as_str()));
}

/// The day a market ends on; none: empty.
fn day(cell: &MarketCell) -> String {
    cell.end().map_or_else(String::new, |end| instant::ts_text(end)[..DATE_CHARS].to_owned())
}

fn other(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::First => Outcome::Second,
        Outcome::Second => Outcome::First,
    }
}

/// Shares in 10⁻⁶.
fn micros(qty: Qty) -> i64 {
    i64::try_from(qty.0).unwrap_or(i64::MAX)
}

/// `part` of `whole` in 10⁻⁶ of a percent, towards zero; 0 of nothing.
fn percent(part: i64, whole: i64) -> i64 {
    if whole == 0 {
        return 0;
    }
    let share = i128::from(part) * WHOLE_PERCENT / i128::from(whole);
    i64::try_from(share).unwrap_or(if share > 0 { i64::MAX } else { i64::MIN })
}

/// A figure of 10⁻⁶ as a JSON number.
pub fn signed(o: &mut Object<'_>, name: &str, micros: i64) {
    let out = o.name(name);
    if micros < 0 {
        out.push(b'-');
    }
    decimal::vol(out, micros.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_cost_are_percentages() {
        let cases = [(0, 0, 0), (5, 0, 0), (90_300_000, 82_775_000, 109_090_909), (-1, 3, -33_333_333)];
        for (part, whole, expected) in cases {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
        println!("percentages: {} cases", cases.len());
    }
}
