//! `GET /v1/simulation/book`: the book of a token at a past moment (gateway/docs/simulation.md §5).

use super::archive::Archive;
use super::provenance::{Leakage, Provenance};
use super::{ID_CHARS_MAX, LABEL_CHARS_MAX, archive, books, condition, market, missing, outcome, past};
use crate::http::call::Call;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::scalar::{ConditionId, PriceIn4, SharesIn4, Timestamp, TokenId};
use crate::http::schema::{Param, Schema, TEXT};
use engine::amount::{Price, Qty};
use engine::backtest::{ArchivedBook, ArchivedMarket};
use engine::id::Outcome as MarketOutcome;
use engine::time::{self, MILLISECOND};
use wire::fields::Params;
use wire::query::Query;

const DEPTH_MAX: u64 = 500;
const DEPTH_DEFAULT: u64 = 10;

pub const PARAMS: &[Param] = &[
    Param::query("condition_id", Schema::Text(ID_CHARS_MAX as u32), "The market.").required(),
    Param::query("at", TEXT, "The moment; not in the future.").required(),
    Param::query("outcome", Schema::Text(LABEL_CHARS_MAX as u32), "Label of the outcome, in any case; default: Yes."),
    Param::query("token_id", Schema::Text(ID_CHARS_MAX as u32), "A token of the market, in place of the outcome."),
    Param::query(
        "depth",
        Schema::Integer { min: 1, max: DEPTH_MAX as i64 },
        "At most this many levels of each side; default: 10.",
    ),
];

record! {
    /// The book of a token at a past moment, best levels first.
    pub struct PastBook<'a> {
        condition_id: ConditionId<'a> = "0x5151515151515151515151515151515151515151515151515151515151515151".into();
        token_id: Option<TokenId<'a>> = Some("81140002".into());
        comp_token_id: Option<TokenId<'a>> = Some("55200077".into()), "The token of the other outcome.";
        at: Timestamp = Timestamp::of("2026-09-30T17:30:00Z");
        depth: u64 = DEPTH_DEFAULT;
        bids: Vec<PastLevel> = vec![PastLevel { price: PriceIn4::of("0.31"), size: SharesIn4::of("100") }];
        asks: Vec<PastLevel> = vec![PastLevel::example()];
        best_bid: Option<PriceIn4> = Some(PriceIn4::of("0.31")), "Null: no bid.";
        best_ask: Option<PriceIn4> = Some(PriceIn4::of("0.32")), "Null: no ask.";
        book_age_ms: Option<u64> = Some(840), "Since the last message about the token.";
        provenance: Provenance<'a> = Provenance::example();
        leakage: Leakage<'a> = Leakage::of_a_read([], true);
    }

    /// A level of a past book.
    pub struct PastLevel {
        price: PriceIn4 = PriceIn4::of("0.32");
        size: SharesIn4 = SharesIn4::of("60.5");
    }
}

pub async fn book(call: Call) -> Outcome {
    let query = call.query();
    let wanted = Wanted::read(&query, call.now)?;
    wanted.answer(archive(&call)?).await
}

/// A request.
pub(super) struct Wanted<'a> {
    condition: &'a str,
    at: time::Timestamp,
    label: Option<&'a str>,
    token: Option<&'a str>,
    depth: u64,
}

impl<'a> Wanted<'a> {
    /// # Errors
    /// `VALIDATION_FAILED`, then `INVALID_WINDOW`.
    pub(super) fn read(query: &'a Query<'_>, now: time::Timestamp) -> Result<Wanted<'a>, Refusal> {
        let mut params = Params::new(query);
        let condition = condition(&mut params);
        let at = params.text("at", ID_CHARS_MAX);
        if query.get("at").is_none() {
            missing(&mut params.problems, "query", "at");
        }
        let label = params.text("outcome", LABEL_CHARS_MAX);
        let token = params.text("token_id", ID_CHARS_MAX);
        let depth = params.integer("depth", 1..=DEPTH_MAX).unwrap_or(DEPTH_DEFAULT);
        if !params.problems.is_empty() {
            return Err(Refusal::validation(&params.problems));
        }
        Ok(Wanted { condition, at: past("at", at.unwrap_or_default(), now)?, label, token, depth })
    }

    /// # Errors
    /// `ARCHIVE_NOT_FOUND`, `INVALID_REQUEST`, `CONDITION_HOUR_NOT_COVERED`, `ARCHIVE_UNAVAILABLE`.
    pub(super) async fn answer(self, archive: &dyn Archive) -> Outcome {
        let market = market(archive, self.condition).await?;
        let outcome = outcome(&market, self.token, self.label)?;
        let pair = books(archive, &market, outcome, self.at).await?;
        Ok(Reply::json(&PastBook::new(&market, outcome, self.at, self.depth, &pair.own)))
    }
}

impl<'a> PastBook<'a> {
    fn new(
        market: &'a ArchivedMarket,
        outcome: MarketOutcome,
        at: time::Timestamp,
        depth: u64,
        book: &ArchivedBook,
    ) -> PastBook<'a> {
        let token = |outcome: MarketOutcome| Some(TokenId::from(&*market.tokens[outcome as usize]));
        let levels = |levels: &[(Price, Qty)]| {
            let level = |(price, size): &(Price, Qty)| PastLevel { price: (*price).into(), size: SharesIn4(*size) };
            levels.iter().take(depth as usize).map(level).collect()
        };
        PastBook {
            condition_id: (&*market.condition).into(),
            token_id: token(outcome),
            comp_token_id: token(outcome.other()),
            at: Timestamp(at),
            depth,
            bids: levels(&book.bids),
            asks: levels(&book.asks),
            best_bid: book.best_bid().map(PriceIn4::from),
            best_ask: book.best_ask().map(PriceIn4::from),
            book_age_ms: Some(at.since(book.last_message) / MILLISECOND),
            provenance: Provenance::of(book),
            leakage: Leakage::of_a_read([], !book.is_empty()),
        }
    }
}
