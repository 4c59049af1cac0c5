//! Markets as the venue shows them (gateway/docs/venue-clients.md §1.5, §2): whole and simplified lists, one market, and the
//! short form that newer clients build their orders from.
//!
//! A page goes through the catalogue in the order of listing, which never changes: rows neither repeat nor vanish while
//! volumes move. Its cursor is the place in that order.

use crate::api::account::valuation::Marks;
use crate::api::books::view as book;
use crate::api::markets::view::Phase;
use crate::api::prices::{base_fee, top_of};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{Record as _, record};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::Route;
use crate::http::scalar::{self, ConditionId, Number, TokenId};
use crate::http::schema::{Param, TEXT};
use crate::http::turns::{LongList, Turns};
use crate::reads::Reads;
use engine::amount::Cash;
use engine::id::{MarketId, Outcome as MarketOutcome};
use engine::market::catalog::MarketCell;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use std::borrow::Cow;
use wire::cursor::{self, OffsetCursor};

/// Rows of a page, in every list.
const PAGE_ROWS: usize = 1_000;
/// Markets that are read, and rows that are written, before other tasks of the thread run.
const MARKETS_PER_TURN: usize = 2_000;
const ROWS_PER_TURN: usize = 100;
/// The price of a token that was never quoted: typed clients read a number only.
const UNQUOTED: Cash = Cash(500_000);
const OUTCOMES: [MarketOutcome; 2] = [MarketOutcome::First, MarketOutcome::Second];

/// The page of a list.
pub const NEXT_CURSOR: &[Param] = &[
    Param::query("next_cursor", TEXT, "Where the page begins: MA==, or that of the page before."),
    Param::query("cursor", TEXT, "The same as `next_cursor`, which overrides it."),
];
const MARKET: &str = "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4";

record! {
    /// One outcome.
    pub struct VenueToken<'a> {
        token_id: TokenId<'a> = "81140002".into(), "The outcome token.";
        outcome: &'a str = "Yes", "Its label.";
        price: Number = Number::of("0.415"), "Display price; 0.5 when it was never quoted.";
        winner: bool = false, "It won; only after the resolution.";
    }

    /// There are no rewards.
    pub struct VenueRewards {
        rates: () = (), "None.";
        #[schemars(range(max = 0))]
        min_size: u8 = 0, "Always 0.";
        #[schemars(range(max = 0))]
        max_spread: u8 = 0, "Always 0.";
    }

    /// A market in the venue's shape.
    pub struct VenueMarket<'a> {
        condition_id: ConditionId<'a> = MARKET.into(), "The market.";
        question_id: ConditionId<'a> = MARKET.into(), "The same.";
        question: &'a str = "Rain in Lisbon on 3 October?", "What it is about.";
        description: &'a str = "", "Its rules; may be empty.";
        market_slug: &'a str = "rain-in-lisbon-oct-3", "Its name in addresses.";
        active: bool = true, "It accepts orders, or did until now.";
        closed: bool = false, "Trading has ended.";
        archived: bool = false, "Resolved for more than 30 days.";
        tokens: [VenueToken<'a>; 2] = VenueToken::both(), "The outcomes, in their order.";
        neg_risk: bool = false, "Belongs to a group of markets with one winner.";
        enable_order_book: bool = true, "Always true.";
        accepting_orders: bool = true, "Whether new orders are accepted.";
        accepting_order_timestamp: Option<scalar::Timestamp> = None, "Since when.";
        minimum_order_size: Number = Number::of("5"), "Shares.";
        minimum_tick_size: Number = Number::of("0.01"), "The grid of prices.";
        end_date_iso: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-10-04T00:00:00Z")), "When it ends.";
        game_start_time: () = (), "Not known.";
        #[schemars(range(max = 0))]
        seconds_delay: u8 = 0, "Always 0.";
        #[schemars(range(max = 0))]
        maker_base_fee: u8 = 0, "Always 0.";
        #[schemars(range(max = 1_000))]
        taker_base_fee: u64 = 1_000, "1000 where takers pay a fee.";
        notifications_enabled: bool = false, "Always false.";
        is_50_50_outcome: bool = false, "It was resolved as a split.";
        #[schemars(length(max = 0))]
        neg_risk_market_id: &'static str = "", "Empty.";
        #[schemars(length(max = 0))]
        neg_risk_request_id: &'static str = "", "Empty.";
        #[schemars(length(max = 0))]
        fpmm: &'static str = "", "Empty.";
        icon: &'a str = "", "Address of its image; may be empty.";
        image: &'a str = "", "The same.";
        rewards: VenueRewards = VenueRewards::example(), "None.";
        tags: &'a [String] = &[], "The venue's tags of the market.";
    }

    /// A market in the venue's shape, simplified.
    pub struct VenueSimplifiedMarket<'a> {
        condition_id: ConditionId<'a> = MARKET.into(), "The market.";
        tokens: [VenueToken<'a>; 2] = VenueToken::both(), "The outcomes, in their order.";
        rewards: VenueRewards = VenueRewards::example(), "None.";
        active: bool = true, "It accepts orders, or did until now.";
        closed: bool = false, "Trading has ended.";
        archived: bool = false, "Resolved for more than 30 days.";
        accepting_orders: bool = true, "Whether new orders are accepted.";
    }

    /// A page of markets in the venue's shape.
    pub struct VenueMarketPage<'a> {
        #[schemars(range(min = 1_000, max = 1_000))]
        limit: usize = PAGE_ROWS, "Rows of a page.";
        #[schemars(range(max = 1_000))]
        count: usize = 0, "Rows of this page.";
        next_cursor: Cow<'a, str> = cursor::END.into(), "Of the next page; LTE= after the last one.";
        data: Vec<VenueMarket<'a>> = Vec::new(), "The rows, in the order of their listing.";
    }

    /// A page of simplified markets.
    pub struct VenueSimplifiedPage<'a> {
        #[schemars(range(min = 1_000, max = 1_000))]
        limit: usize = PAGE_ROWS, "Rows of a page.";
        #[schemars(range(max = 1_000))]
        count: usize = 0, "Rows of this page.";
        next_cursor: Cow<'a, str> = cursor::END.into(), "Of the next page; LTE= after the last one.";
        data: Vec<VenueSimplifiedMarket<'a>> = Vec::new(), "The rows, in the order of their listing.";
    }

    /// One outcome.
    pub struct ClobToken<'a> {
        t: TokenId<'a> = "81140002".into(), "The outcome token.";
        o: &'a str = "Yes", "Its label.";
    }

    /// The fee of takers.
    pub struct ClobFee {
        r: Number = Number::of("0.04"), "The rate that a fill is charged now: basis points / 10000.";
        e: u64 = 1, "The exponent of the fee curve.";
        to: bool = true, "Only takers pay.";
    }

    /// An object without fields: there are no rewards.
    pub struct ClobRewards {}

    /// What newer venue clients build their orders from.
    pub struct ClobMarket<'a> {
        c: ConditionId<'a> = MARKET.into(), "The market.";
        t: [ClobToken<'a>; 2] = [ClobToken::example(), ClobToken { t: "55200077".into(), o: "No" }],
            "The outcomes, in their order.";
        mts: Number = Number::of("0.01"), "The grid of prices.";
        mos: Number = Number::of("5"), "The least number of shares.";
        nr: bool = false, "Belongs to a group of markets with one winner.";
        #[schemars(range(max = 0))]
        mbf: u8 = 0, "Base fee of makers.";
        #[schemars(range(max = 1_000))]
        tbf: u64 = 1_000, "Base fee of takers.";
        fd: Option<ClobFee> = Some(ClobFee::example()), "The fee; left out where there is none.", skip_serializing_if;
        r: ClobRewards = ClobRewards {}, "Rewards: an empty object.";
        gst: () = (), "Start of the game. Always null.";
        ao: bool = true, "Whether new orders are accepted.";
        cbos: bool = false, "Whether the book is cleared at the start. Always false.";
        ibce: bool = false, "Whether orders are screened. Always false.";
        rfqe: bool = false, "Whether quotes can be requested. Always false.";
        #[schemars(range(max = 0))]
        oas: u8 = 0, "Minimum age of an order in seconds. Always 0.";
    }
}

pub const ROUTES: &[Route] = &[
    Route::get("/v1/simplified-markets", "list_simplified_markets")
        .about("Every market, simplified.")
        .at_root()
        .params(NEXT_CURSOR)
        .gives::<VenueSimplifiedPage<'_>>(200)
        .fails(&[Code::InvalidCursor])
        .run(|call| Box::pin(list(call, every, simplified))),
    Route::get("/v1/sampling-markets", "list_sampling_markets")
        .about("Active markets with bids and asks.")
        .at_root()
        .params(NEXT_CURSOR)
        .gives::<VenueMarketPage<'_>>(200)
        .fails(&[Code::InvalidCursor])
        .run(|call| Box::pin(list(call, sampled, whole))),
    Route::get("/v1/sampling-simplified-markets", "list_sampling_simplified_markets")
        .about("Active markets with bids and asks, simplified.")
        .at_root()
        .params(NEXT_CURSOR)
        .gives::<VenueSimplifiedPage<'_>>(200)
        .fails(&[Code::InvalidCursor])
        .run(|call| Box::pin(list(call, sampled, simplified))),
    Route::get("/v1/clob-markets/{condition_id}", "get_clob_market")
        .about("What newer venue clients build their orders from.")
        .at_root()
        .gives::<ClobMarket<'_>>(200)
        .fails(&[Code::MarketNotFound])
        .answer(clob_market),
];

/// `GET /v1/markets` for venue clients: a page of all markets.
pub async fn page(call: Call) -> Outcome {
    list(call, every, whole).await
}

/// `GET /v1/markets/{condition_id}` for venue clients.
pub fn one(call: &Call) -> Outcome {
    Ok(Reply::json(&VenueMarket::new(named(call)?, call.reads(), call.now)))
}

/// Whether a list has a market.
type MarketPredicate = fn(&MarketCell, &Reads, Timestamp) -> bool;
/// Writes the row of a market.
type PushRow = fn(&mut LongList, &MarketCell, &Reads, Timestamp);

/// All but archived markets, which have no list.
fn every(cell: &MarketCell, _: &Reads, now: Timestamp) -> bool {
    Phase::of(cell, now).archived_at.is_none()
}

/// Active markets with bids and asks: those that the venue samples for its rewards, which do not exist here.
fn sampled(cell: &MarketCell, reads: &Reads, now: Timestamp) -> bool {
    let phase = Phase::of(cell, now);
    let two_sided =
        || top_of(reads, cell.instrument(MarketOutcome::First), cell).is_some_and(|top| top.midpoint().is_some());
    phase.active && !phase.closed && two_sided()
}

async fn list(call: Call, is_listed: MarketPredicate, push: PushRow) -> Outcome {
    let query = call.query();
    let cursor = OffsetCursor::read(query.first_of(&["next_cursor", "cursor"]).unwrap_or_default())
        .map_err(|_| Code::InvalidCursor)?;
    let (rows, next) = match cursor {
        OffsetCursor::At(place) => gathered(&call, is_listed, place).await,
        OffsetCursor::End => (Vec::new(), None),
    };
    let reads = call.reads();
    let next_cursor = next.map_or(cursor::END.into(), |place| OffsetCursor::write(place).into());
    // The page is the same for all kinds of rows.
    let head = VenueMarketPage { limit: PAGE_ROWS, count: rows.len(), next_cursor, data: Vec::new() };
    let mut list = LongList::in_page(&head, "data", ROWS_PER_TURN);
    for cell in rows.iter().filter_map(|market| reads.catalog.market(*market)) {
        list.turns.work(1).await;
        push(&mut list, cell, reads, call.now);
    }
    Ok(list.reply())
}

/// The markets of the page that begins at a place of the catalogue, and the place of the next page.
async fn gathered(call: &Call, is_listed: MarketPredicate, place: usize) -> (Vec<MarketId>, Option<usize>) {
    let reads = call.reads();
    let (mut rows, mut turns) = (Vec::new(), Turns::of(MARKETS_PER_TURN));
    for at in place..reads.catalog.len() {
        turns.work(1).await;
        let market = MarketId(at as u32);
        if !reads.catalog.market(market).is_some_and(|cell| is_listed(cell, reads, call.now)) {
            continue;
        }
        if rows.len() == PAGE_ROWS {
            return (rows, Some(at));
        }
        rows.push(market);
    }
    (rows, None)
}

/// The market of the path.
fn named(call: &Call) -> Result<&MarketCell, Refusal> {
    let catalog = &call.reads().catalog;
    let market = catalog.by_condition(&call.variable(0)).and_then(|market| catalog.market(market));
    market.ok_or_else(|| Refusal::new(Code::MarketNotFound, "market not found"))
}

fn whole(list: &mut LongList, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    list.push(&VenueMarket::new(cell, reads, now));
}

fn simplified(list: &mut LongList, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    let phase = Phase::of(cell, now);
    list.push(&VenueSimplifiedMarket {
        condition_id: cell.listing.condition.as_str().into(),
        tokens: VenueToken::of(cell, reads),
        rewards: VenueRewards::NONE,
        active: phase.active,
        closed: phase.closed,
        archived: phase.archived_at.is_some(),
        accepting_orders: phase.accepting_orders,
    });
}

impl VenueRewards {
    pub const NONE: VenueRewards = VenueRewards { rates: (), min_size: 0, max_spread: 0 };
}

impl<'a> VenueMarket<'a> {
    fn new(cell: &'a MarketCell, reads: &Reads, now: Timestamp) -> VenueMarket<'a> {
        let (listing, phase) = (&cell.listing, Phase::of(cell, now));
        let image = listing.image.as_deref().unwrap_or_default();
        VenueMarket {
            condition_id: listing.condition.as_str().into(),
            question_id: listing.condition.as_str().into(),
            question: &listing.question,
            description: listing.description.as_deref().unwrap_or_default(),
            market_slug: &listing.slug,
            active: phase.active,
            closed: phase.closed,
            archived: phase.archived_at.is_some(),
            tokens: VenueToken::of(cell, reads),
            neg_risk: listing.neg_risk,
            enable_order_book: true,
            accepting_orders: phase.accepting_orders,
            accepting_order_timestamp: listing.start.map(scalar::Timestamp),
            minimum_order_size: book::min_order_size(cell).into(),
            minimum_tick_size: cell.tick().into(),
            end_date_iso: cell.end().map(scalar::Timestamp),
            game_start_time: (),
            seconds_delay: 0,
            maker_base_fee: 0,
            taker_base_fee: base_fee(reads.rules.fees.shown(cell).bps().0),
            notifications_enabled: false,
            is_50_50_outcome: cell.resolution() == Some(Resolution::Split),
            neg_risk_market_id: "",
            neg_risk_request_id: "",
            fpmm: "",
            icon: image,
            image,
            rewards: VenueRewards::NONE,
            tags: &listing.tags,
        }
    }
}

impl<'a> VenueToken<'a> {
    /// The tokens of a market. Prices are numbers, and there is a winner only after the resolution.
    fn of(cell: &'a MarketCell, reads: &Reads) -> [VenueToken<'a>; 2] {
        let marks = Marks { catalog: &reads.catalog, books: &reads.books };
        OUTCOMES.map(|outcome| VenueToken {
            token_id: cell.token(outcome).into(),
            outcome: cell.outcome(outcome),
            price: marks.mark(cell.instrument(outcome)).unwrap_or(UNQUOTED).into(),
            winner: cell.resolution() == Some(Resolution::Winner(outcome)),
        })
    }

    /// Those of an example.
    fn both() -> [VenueToken<'a>; 2] {
        let second =
            VenueToken { token_id: "55200077".into(), outcome: "No", price: Number::of("0.585"), winner: false };
        [VenueToken::example(), second]
    }
}

fn clob_market(call: &Call) -> Outcome {
    let cell = named(call)?;
    let fees = call.reads().rules.fees.shown(cell);
    Ok(Reply::json(&ClobMarket {
        c: cell.listing.condition.as_str().into(),
        t: OUTCOMES.map(|outcome| ClobToken { t: cell.token(outcome).into(), o: cell.outcome(outcome) }),
        mts: cell.tick().into(),
        mos: book::min_order_size(cell).into(),
        nr: cell.listing.neg_risk,
        mbf: 0,
        tbf: base_fee(fees.bps().0),
        fd: (fees.rate > 0).then(|| ClobFee {
            r: Number(fees.rate.into()),
            e: fees.exponent.into(),
            to: fees.taker_only,
        }),
        r: ClobRewards {},
        gst: (),
        ao: Phase::of(cell, call.now).accepting_orders,
        // None of the features that these switch on exists here.
        cbos: false,
        ibce: false,
        rfqe: false,
        oas: 0,
    }))
}
