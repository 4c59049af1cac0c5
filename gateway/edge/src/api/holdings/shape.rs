//! What positions and trades of the venue's service look like, for the machine description.

use super::{LIMIT_MAX, PAGE_MAX};
use crate::http::schema::{
    BOOLEAN, CONDITION_ID, Field, INTEGER, OFFSET, Param, Schema, Shape, TEXT, TEXT_OR_NULL, TOKEN_ID, VOL, field,
    optional,
};

const ADDRESS: Schema = Schema::Format(&crate::http::schema::Format {
    name: "Address",
    about: "An address: 0x and 40 hexadecimal digits.",
    pattern: r"^0x[0-9a-fA-F]{40}$",
});
const HASH: Schema = Schema::Format(&crate::http::schema::Format {
    name: "TransactionHash",
    about: "0x and 64 hexadecimal digits, made from the trade's id: a paper trade has no transaction.",
    pattern: r"^0x[0-9a-f]{64}$",
});
/// What is not known here, and always there at the venue.
const EMPTY: Schema = Schema::Word(&[""]);
const SIDES: Schema = Schema::Word(&["BUY", "SELL"]);

const USER: Param = Param::query("user", ADDRESS, "The caller's address; there are no rows of another one.");
const MARKETS: Param = Param::query("market", TEXT, "Condition ids, with commas between them; at most 100.");
const MARKET: Param = Param::query("market", TEXT, "A condition id.");
const CONDITIONS: Param = Param::query("condition_id", TEXT, "Condition ids, with commas between them; at most 100.");
const CONDITION: Param = Param::query("condition_id", TEXT, "A condition id.");
const SIDE: Param = Param::query("side", SIDES, "");
const LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 0, max: LIMIT_MAX as i64 }, "Rows of a page; 100 without it.");
const PAGE_LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 1, max: PAGE_MAX as i64 }, "Rows of a page; 100 without it.");
const SKIPPED: Param = Param::query("offset", OFFSET, "Rows that are passed over.");
const CURSOR: Param = Param::query("cursor", TEXT, "`next_cursor` of the page before.");

pub const POSITIONS_ASKED: &[Param] = &[
    USER,
    MARKETS,
    Param::query("sizeThreshold", VOL, "Smaller holdings are left out; 1 without it."),
    Param::query("redeemable", BOOLEAN, "true: none, for what ends is paid out at once."),
    Param::query("mergeable", BOOLEAN, "true: none."),
    LIMIT,
    SKIPPED,
    Param::query(
        "sortBy",
        Schema::Word(&[
            "TOKENS",
            "CURRENT",
            "INITIAL",
            "CASHPNL",
            "PERCENTPNL",
            "PRICE",
            "AVGPRICE",
            "TITLE",
            "RESOLVING",
        ]),
        "Default TOKENS.",
    ),
    Param::query("sortDirection", Schema::Word(&["ASC", "DESC"]), "Default DESC."),
];
pub const TRADES_ASKED: &[Param] = &[USER, MARKET, SIDE, LIMIT, SKIPPED];
pub const VALUE_ASKED: &[Param] = &[USER, MARKETS];
pub const PAGE_ASKED: &[Param] = &[
    USER,
    CONDITIONS,
    Param::query(
        "status",
        Schema::Word(&["OPEN", "CLOSED", "REDEEMABLE", "REDEEMABLE_LOST", "MERGEABLE"]),
        "Only open ones are listed.",
    ),
    PAGE_LIMIT,
    CURSOR,
];
pub const TRADES_PAGE_ASKED: &[Param] = &[USER, CONDITION, SIDE, PAGE_LIMIT, CURSOR];
pub const VALUE_PAGE_ASKED: &[Param] = &[USER, CONDITIONS];

const fn number(name: &'static str, about: &'static str) -> Field {
    field(name, Schema::Number, about)
}

const POSITION: Shape = Shape::new(
    "DataPosition",
    "An open position. Money in USD, without fees.",
    &[
        field("proxyWallet", ADDRESS, "As asked for."),
        field("asset", TOKEN_ID, ""),
        field("conditionId", CONDITION_ID, ""),
        number("size", "Shares."),
        number("avgPrice", ""),
        number("initialValue", "What the held shares cost."),
        number("currentValue", "At the mark; at cost where there is none."),
        number("cashPnl", "Current less initial value."),
        number("percentPnl", "The same, in percent of the initial value."),
        number("totalBought", "The shares that are held."),
        number("realizedPnl", ""),
        number("percentRealizedPnl", ""),
        number("curPrice", "The mark; the average price where there is none."),
        field("redeemable", BOOLEAN, "false"),
        field("mergeable", BOOLEAN, "false"),
        field("title", TEXT, ""),
        field("slug", TEXT, ""),
        field("icon", TEXT, ""),
        field("eventSlug", TEXT, ""),
        optional("eventId", TEXT, ""),
        field("outcome", TEXT, ""),
        field("outcomeIndex", INTEGER, ""),
        field("oppositeOutcome", TEXT, ""),
        field("oppositeAsset", TOKEN_ID, ""),
        field("endDate", TEXT, "A day; empty where no end is known."),
        field("negativeRisk", BOOLEAN, ""),
    ],
);
const SECOND_POSITION: Shape = Shape::new(
    "DataPositionOfPage",
    "An open position. Money in USD, without fees.",
    &[
        field("proxy_wallet", ADDRESS, "As asked for."),
        field("token_id", TOKEN_ID, ""),
        field("condition_id", CONDITION_ID, ""),
        number("current_size", "Shares."),
        number("avg_price", ""),
        number("entry_cost_usdc", "What the held shares cost."),
        number("entry_fees_usdc", "0"),
        number("total_cost_usdc", "The same as `entry_cost_usdc`."),
        number("current_price", "The mark; the average price where there is none."),
        number("current_value", "At the mark; at cost where there is none."),
        number("total_size", "The shares that are held."),
        number("realized_pnl", ""),
        number("unrealized_pnl", "Current value less cost."),
        number("total_pnl", "Realised and unrealised."),
        number("percent_pnl", "Unrealised, in percent of the cost."),
        number("percent_realized_pnl", ""),
        field("status", Schema::Word(&["OPEN"]), ""),
        field("redeemable", BOOLEAN, "false"),
        field("mergeable", BOOLEAN, "false"),
        field("negative_risk", BOOLEAN, ""),
        field("archived", BOOLEAN, "false"),
        field("verified", BOOLEAN, "false"),
        field("title", TEXT, ""),
        field("slug", TEXT, ""),
        field("icon", TEXT, ""),
        field("event_slug", TEXT, ""),
        field("outcome", TEXT, ""),
        field("outcome_index", INTEGER, ""),
        field("opposite_outcome", TEXT, ""),
        field("opposite_token_id", TOKEN_ID, ""),
        field("end_date", TEXT, "A day; empty where no end is known."),
        field("first_entry_at", INTEGER, "Unix seconds."),
    ],
);
const TRADE: Shape = Shape::new(
    "DataTrade",
    "A trade.",
    &[
        field("proxyWallet", ADDRESS, "As asked for."),
        field("asset", TOKEN_ID, ""),
        field("conditionId", CONDITION_ID, ""),
        field("side", SIDES, ""),
        number("size", "Shares."),
        number("price", ""),
        field("timestamp", INTEGER, "Unix seconds."),
        field("outcome", TEXT, ""),
        field("transactionHash", HASH, ""),
        field("title", TEXT, ""),
        field("slug", TEXT, ""),
        field("icon", TEXT, ""),
        field("eventSlug", TEXT, ""),
        field("outcomeIndex", INTEGER, ""),
        field("name", EMPTY, ""),
        field("pseudonym", EMPTY, ""),
        field("bio", EMPTY, ""),
        field("profileImage", EMPTY, ""),
        field("profileImageOptimized", EMPTY, ""),
    ],
);
const SECOND_TRADE: Shape = Shape::new(
    "DataTradeOfPage",
    "A trade.",
    &[
        field("proxy_wallet", ADDRESS, "As asked for."),
        field("token_id", TOKEN_ID, ""),
        field("condition_id", CONDITION_ID, ""),
        field("side", SIDES, ""),
        number("size", "Shares."),
        number("price", ""),
        field("timestamp", INTEGER, "Unix seconds."),
        field("outcome", TEXT, ""),
        field("transaction_hash", HASH, ""),
        field("title", TEXT, ""),
        field("slug", TEXT, ""),
        field("icon", TEXT, ""),
        field("event_slug", TEXT, ""),
        field("outcome_index", INTEGER, ""),
    ],
);
const WORTH: Shape = Shape::new(
    "DataValue",
    "What open positions are worth.",
    &[field("user", ADDRESS, "As asked for."), number("value", "USD, at the marks; at cost where there is none.")],
);
const SECOND_WORTH: Shape = Shape::new(
    "DataValueOfPage",
    "What open positions are worth.",
    &[field("proxy_wallet", TEXT, "As asked for."), number("value", "USD; 0 for an address that is not the caller's.")],
);
const PAGINATION: Schema = Schema::Object(&Shape::new(
    "DataPagination",
    "Where a list stands.",
    &[field("has_more", BOOLEAN, ""), field("next_cursor", TEXT_OR_NULL, "Null on the last page.")],
));

pub const POSITIONS: Schema = Schema::Array(&Schema::Object(&POSITION));
pub const TRADES: Schema = Schema::Array(&Schema::Object(&TRADE));
pub const VALUE: Schema = Schema::List { of: &Schema::Object(&WORTH), min: 0, max: 1 };
pub const POSITIONS_PAGE: Schema = Schema::Object(&Shape::new(
    "DataPositionPage",
    "One page of positions.",
    &[field("data", Schema::Array(&Schema::Object(&SECOND_POSITION)), ""), field("pagination", PAGINATION, "")],
));
pub const TRADES_PAGE: Schema = Schema::Object(&Shape::new(
    "DataTradePage",
    "One page of trades.",
    &[field("data", Schema::Array(&Schema::Object(&SECOND_TRADE)), ""), field("pagination", PAGINATION, "")],
));
pub const VALUE_PAGE: Schema = Schema::Object(&Shape::new(
    "DataValueEnvelope",
    "What open positions are worth, in an envelope.",
    &[field("data", Schema::Object(&SECOND_WORTH), "")],
));

pub const POSITIONS_EXAMPLE: &str = "[]";
pub const TRADES_EXAMPLE: &str = "[]";
pub const VALUE_EXAMPLE: &str = r#"[{"user":"0x56687bf447db6ffa42ffe2204a05edaa20f55839","value":90.3}]"#;
pub const PAGE_EXAMPLE: &str = r#"{"data":[],"pagination":{"has_more":false,"next_cursor":null}}"#;
pub const VALUE_PAGE_EXAMPLE: &str =
    r#"{"data":{"proxy_wallet":"0x56687bf447db6ffa42ffe2204a05edaa20f55839","value":90.3}}"#;
