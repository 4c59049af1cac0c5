//! `POST /v1/simulation/fill`: one counterfactual fill (gateway/docs/simulation.md §3).

use super::archive::Archive;
use super::provenance::{
    ConfidenceName, FEE_MODEL, FeeModelName, FigureSourceName, FillModelName, Leakage, Provenance, QUEUE_POSITION,
};
use super::{ID_CHARS_MAX, LABEL_CHARS_MAX, archive, books, has_everything, market, needs_everything, outcome, past};
use crate::api::orders::records::SentDecimal;
use crate::api::orders::words::{SIDES, SideName};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::scalar::{Digits, MoneyIn4, PriceIn4, SharesIn4, TokenId};
use engine::amount::{Price, Qty};
use engine::backtest::{self, ArchivedMarket, ArchivedPair, FillModel, FillRequest, FillResult, SHARES_MAX};
use engine::id::Outcome as MarketOutcome;
use engine::order::Side;
use engine::rules::FeeTable;
use engine::time::{MILLISECOND, Timestamp};
use std::borrow::Cow;
use wire::decimal::Decimal;
use wire::fields::Body;
use wire::value::Value;

/// Longest delay between decision and book.
pub const LATENCY_MS_MAX: u64 = 60_000;
/// Longest text of a place in the queue.
const QUEUE_POSITION_CHARS_MAX: usize = 16;

record! {
    /// A fill to compute. Other fields are ignored.
    pub struct NewFill<'a> {
        #[schemars(length(min = 1, max = ID_CHARS_MAX))]
        condition_id: &'a str = "0x5151515151515151515151515151515151515151515151515151515151515151";
        #[schemars(length(max = ID_CHARS_MAX), extend("x-or-null" = true))]
        token_id: Option<&'a str> = None, "A token of the market; without it the outcome decides.", skip_serializing_if;
        #[schemars(length(max = LABEL_CHARS_MAX), extend("x-or-null" = true))]
        outcome: Option<&'a str> = Some("Yes"), "Label of the outcome, in any case. Default `Yes`.", skip_serializing_if;
        side: Option<SideName> = Some("BUY".into()), "Default `BUY`.", skip_serializing_if;
        shares: SentDecimal<'a> = SentDecimal::Text("40"),
            "Above 0 and at most 1,000,000, cut down to four decimals.";
        at: &'a str = "2026-09-30T17:30:00Z", "The moment of the decision; not in the future.";
        fill_model: Option<FillModelName> = Some("depth_walk".into()), "Default `depth_walk`.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        limit_price: Option<SentDecimal<'a>> = None, "Worst price, between 0 and 1.", skip_serializing_if;
        #[schemars(range(max = LATENCY_MS_MAX))]
        latency_ms: Option<u64> = Some(0), "The book of `at` plus this is used.", skip_serializing_if;
        queue_position: Option<SentDecimal<'a>> = None, "0 to 1; it is only repeated.", skip_serializing_if;
    }

    /// A computed fill.
    pub struct SimulatedFill<'a> {
        vwap_fill_price: Option<PriceIn4> = Some(PriceIn4::of("0.32")), "Average price; null: nothing was filled.";
        filled_shares: SharesIn4 = SharesIn4::of("40");
        remaining_shares: SharesIn4 = SharesIn4::of("0");
        slippage_bps: Option<Digits> = Some(Digits(159)),
            "Average price against the midpoint; null: nothing was filled, or a side of the book is empty.";
        impact_bps: Option<Digits> = Some(Digits(0)),
            "Average price against the best price taken; null: nothing was filled.";
        levels_used: u64 = 1;
        fee: MoneyIn4 = MoneyIn4::of("0.4352"), "The taker's fee.";
        book_age_ms: Option<u64> = Some(840), "Since the last message about the token.";
        price_source: FigureSourceName = "archive".into();
        confidence: ConfidenceName = "high".into();
        fill_model: FillModelName = "depth_walk".into();
        fee_model: FeeModelName = FEE_MODEL.into();
        token_id: Option<TokenId<'a>> = Some("81140002".into());
        comp_token_id: Option<TokenId<'a>> = Some("55200077".into()), "The token of the other outcome.";
        provenance: Provenance<'a> = Provenance::example();
        leakage: Leakage<'a> = Leakage::example();
    }
}

pub async fn fill(call: Call) -> Outcome {
    let body = call.json_object()?;
    let wanted = Wanted::read(&body, call.now)?;
    if !wanted.model.is_free() && !has_everything(&call) {
        return Err(needs_everything(&call));
    }
    wanted.answer(archive(&call)?, &call.reads().rules.fees).await
}

/// A request in integers.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    condition: &'a str,
    token: Option<&'a str>,
    outcome: Option<&'a str>,
    side: Side,
    shares: Qty,
    model: FillModel,
    limit: Option<Price>,
    latency_ms: u64,
    queue_position: Cow<'a, str>,
    /// The moment of the book.
    instant: Timestamp,
}

impl<'a> Wanted<'a> {
    /// # Errors
    /// `VALIDATION_FAILED`, then `INVALID_WINDOW`.
    pub(super) fn read(body: &'a Value<'_>, now: Timestamp) -> Result<Wanted<'a>, Refusal> {
        let mut body = Body::new(body);
        let condition = body.text("condition_id", ID_CHARS_MAX);
        if condition.is_none_or(str::is_empty) && body.problems.is_empty() {
            body.missing("condition_id");
        }
        let token = body.text("token_id", ID_CHARS_MAX);
        let outcome = body.text("outcome", LABEL_CHARS_MAX);
        let side = word(&mut body, "side", &SIDES).unwrap_or(Side::Buy);
        let shares = shares(&mut body);
        let at = body.text("at", ID_CHARS_MAX);
        if body.get("at").is_none() {
            body.missing("at");
        }
        let model = word(&mut body, "fill_model", &FillModel::ALL.map(|model| (model.name(), model)));
        let limit = limit(&mut body, side);
        let latency_ms = body.integer("latency_ms", 0..=LATENCY_MS_MAX).unwrap_or(0);
        let queue_position = queue_position(&mut body);
        if !body.problems.is_empty() {
            return Err(Refusal::validation(&body.problems));
        }
        let at = past("at", at.unwrap_or_default(), now)?;
        let instant = at.plus(latency_ms * MILLISECOND);
        if instant > now {
            return Err(Refusal::new(Code::InvalidWindow, "at plus latency_ms is in the future."));
        }
        Ok(Wanted {
            condition: condition.unwrap_or_default(),
            token,
            outcome,
            side,
            shares: shares.unwrap_or_default(),
            model: model.unwrap_or_default(),
            limit,
            latency_ms,
            queue_position,
            instant,
        })
    }

    /// # Errors
    /// `ARCHIVE_NOT_FOUND`, `INVALID_REQUEST`, `CONDITION_HOUR_NOT_COVERED`, `ARCHIVE_UNAVAILABLE`.
    pub(super) async fn answer(self, archive: &dyn Archive, fees: &FeeTable) -> Outcome {
        let market = market(archive, self.condition).await?;
        let outcome = outcome(&market, self.token, self.outcome)?;
        let pair = books(archive, &market, outcome, self.instant).await?;
        let (tariff, Wanted { side, shares, model, limit, .. }) = (fees.of_category(market.category), &self);
        let asked = FillRequest { side: *side, shares: *shares, model: *model, limit: *limit, tariff };
        let result = backtest::fill(&asked, &pair);
        Ok(Reply::json(&SimulatedFill::new(&self, &market, outcome, &pair, result)))
    }
}

/// One of these words, exactly.
pub(super) fn word<T: Copy>(body: &mut Body<'_, '_>, name: &str, words: &[(&str, T)]) -> Option<T> {
    let text = body.text(name, usize::MAX)?;
    let found = words.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        body.problems.add("body", name, "literal_error", format!("is none of {}", words.join(", ")));
    }
    found.map(|(_, meaning)| *meaning)
}

fn shares(body: &mut Body<'_, '_>) -> Option<Qty> {
    if body.get("shares").is_none() {
        body.missing("shares");
    }
    let shares = body.decimal("shares")?;
    if shares > Decimal::from(SHARES_MAX) {
        body.problems.add("body", "shares", "less_than_equal", "is above 1000000");
        return None;
    }
    let (qty, _) = shares.order_qty_down().unwrap_or_default();
    if qty.is_zero() {
        body.problems.add("body", "shares", "greater_than_equal", "is below 0.0001");
        return None;
    }
    Some(qty)
}

/// A limit between 0 and 1, tightened to the grid of prices.
fn limit(body: &mut Body<'_, '_>, side: Side) -> Option<Price> {
    let limit = body.decimal("limit_price")?;
    if !limit.is_positive() || limit >= Decimal::ONE {
        body.problems.add("body", "limit_price", "decimal_range", "is not between 0 and 1");
        return None;
    }
    match side {
        Side::Buy => limit.price_down(),
        Side::Sell => limit.price_up(),
    }
}

/// The text as it was sent.
fn queue_position<'a>(body: &mut Body<'a, '_>) -> Cow<'a, str> {
    let Some(place) = body.decimal("queue_position") else { return QUEUE_POSITION.into() };
    let sent = match body.get("queue_position") {
        Some(Value::Text(text)) => &**text,
        Some(Value::Number(text)) => *text,
        _ => QUEUE_POSITION,
    };
    if place < Decimal::ZERO || place > Decimal::ONE || sent.len() > QUEUE_POSITION_CHARS_MAX {
        body.problems.add("body", "queue_position", "decimal_range", "is not between 0 and 1");
    }
    sent.into()
}

impl<'a> SimulatedFill<'a> {
    fn new(
        wanted: &'a Wanted<'_>,
        market: &'a ArchivedMarket,
        outcome: MarketOutcome,
        pair: &ArchivedPair,
        result: FillResult,
    ) -> SimulatedFill<'a> {
        let book = &pair.own;
        let token = |outcome: MarketOutcome| Some(TokenId::from(&*market.tokens[outcome as usize]));
        SimulatedFill {
            vwap_fill_price: result.vwap.map(PriceIn4),
            filled_shares: SharesIn4(result.filled),
            remaining_shares: SharesIn4(result.remaining),
            slippage_bps: result.slippage_bps.map(|bps| Digits(bps.into())),
            impact_bps: result.impact_bps.map(|bps| Digits(bps.into())),
            levels_used: result.levels.into(),
            fee: MoneyIn4(result.fee),
            book_age_ms: Some(wanted.instant.since(book.last_message) / MILLISECOND),
            price_source: "archive".into(),
            confidence: book.confidence.into(),
            fill_model: wanted.model.into(),
            fee_model: FEE_MODEL.into(),
            token_id: token(outcome),
            comp_token_id: token(outcome.other()),
            provenance: Provenance::of(book),
            leakage: Leakage::of_a_fill(wanted.model, !book.is_empty(), wanted.latency_ms, &wanted.queue_position),
        }
    }
}
