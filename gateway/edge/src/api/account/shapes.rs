//! What balance, positions, portfolio and history look like (account.md §4), for the machine description.

use crate::http::schema::{
    Field, INTEGER, MONEY, MONEY_OR_NULL, PRICE, PRICE_OR_NULL, QTY, RATE_OR_NULL, Schema, Shape, TEXT, TEXT_OR_NULL,
    TOKEN_ID, TS, TS_OR_NULL, VENUE_TIME, field,
};

pub const BALANCE: Schema = Schema::Object(&Shape::new(
    "Balance",
    "What wallets have and are worth.",
    &[
        field("balance", MONEY, "Available cash, after reservations."),
        field("currency", Schema::Word(&["USD"]), ""),
        field(
            "unrealized_pnl",
            MONEY,
            "total_value less starting_balance: all that was won and lost since the start, realised or not, with fees.",
        ),
        field("total_value", MONEY, "Cash and open positions at their marks."),
        field("starting_balance", MONEY, "Baselines of the present generations."),
        field("reserved", MONEY, "Cash set aside for open orders."),
    ],
));

pub const POSITION: Schema =
    Schema::Object(&Shape::new("Position", "An outcome held, from first buy to its end.", POSITION_FIELDS));

const POSITION_FIELDS: &[Field] = &[
    field("id", INTEGER, ""),
    field("market_id", TEXT, "Condition id of the market."),
    field("outcome", TEXT, ""),
    field("quantity", QTY, "Shares held, those reserved included; 0 when closed."),
    field("avg_entry_price", PRICE, "Of the last open state."),
    field("current_price", PRICE_OR_NULL, "The mark; null where there is none."),
    field(
        "unrealized_pnl",
        MONEY_OR_NULL,
        "Market value less cost of what is held, without fees; null without a mark, and when closed.",
    ),
    field("market_value", MONEY_OR_NULL, "Mark times quantity; null without a mark, and when closed."),
    field("status", Schema::Word(&["OPEN", "CLOSED", "CLOSED_BY_RESET"]), ""),
    field("market_question", TEXT_OR_NULL, ""),
    field("token_id", TOKEN_ID, ""),
    field("wallet_id", INTEGER, ""),
    field("reserved_quantity", QTY, "Shares set aside for open orders."),
    field("realized_pnl", MONEY, ""),
    field("opened_at", TS, ""),
    field("closed_at", TS_OR_NULL, ""),
];

pub const POSITIONS: Schema = Schema::OneOf(&[Schema::Array(&POSITION), POSITION_PAGE]);

const POSITION_PAGE: Schema = Schema::Object(&Shape::new(
    "PositionPage",
    "Positions with `envelope`.",
    &[
        field("limit", INTEGER, ""),
        field("count", INTEGER, ""),
        field("next_cursor", Schema::Word(&[""]), "All are in one page."),
        field("data", Schema::Array(&POSITION), ""),
    ],
));

pub const PORTFOLIO: Schema = Schema::Object(&Shape::new(
    "Portfolio",
    "Balance and open positions.",
    &[
        field("balance", BALANCE, ""),
        field("positions", Schema::Array(&POSITION), "Open ones."),
        field("total_trades", INTEGER, "Fills."),
        field("win_rate", RATE_OR_NULL, "Wins of the positions that closed at a known price; null when none did."),
    ],
));

const FILL: Schema = Schema::Object(&Shape::new(
    "Fill",
    "One fill of an order.",
    &[
        field("order_id", INTEGER, ""),
        field("market_id", TEXT, "Condition id of the market."),
        field("side", Schema::Word(&["BUY", "SELL"]), ""),
        field("outcome", TEXT, ""),
        field("price", PRICE, "Average over the levels taken."),
        field("quantity", QTY, ""),
        field("notional", MONEY, ""),
        field("fee", MONEY, ""),
        field("status", Schema::Word(&["FILLED"]), ""),
        field("price_source", TEXT, ""),
        field("price_age_ms", Schema::Nullable(&INTEGER), "Age of the quote at the fill."),
        field("filled_at", TS, ""),
        field("created_at", TS, "Of the order."),
        field("trade_id", INTEGER, ""),
        field("token_id", TOKEN_ID, ""),
        field("liquidity", Schema::Word(&["TAKER", "MAKER"]), ""),
        field("fee_rate_bps", INTEGER, ""),
        field("wallet_id", INTEGER, ""),
        field("client_order_id", TEXT_OR_NULL, ""),
        field("venue_time", TS_OR_NULL, VENUE_TIME),
    ],
));

pub const HISTORY: Schema = Schema::OneOf(&[Schema::Array(&FILL), HISTORY_PAGE]);

const HISTORY_PAGE: Schema = Schema::Object(&Shape::new(
    "HistoryPage",
    "Fills with `envelope`.",
    &[field("data", Schema::Array(&FILL), ""), field("next_cursor", TEXT, "The next offset, or empty.")],
));

pub const BALANCE_EXAMPLE: &str = r#"{"balance":"81.40","currency":"USD","unrealized_pnl":"-1.10","total_value":"98.90","starting_balance":"100.00","reserved":"0.00"}"#;
pub const POSITIONS_EXAMPLE: &str = r#"[{"id":7001,"market_id":"0x5151515151515151515151515151515151515151515151515151515151515151","outcome":"Yes","quantity":"50","avg_entry_price":"0.42","current_price":"0.415","unrealized_pnl":"-0.25","market_value":"20.75","status":"OPEN","market_question":"Rain in Lisbon on 3 October?","token_id":"81140002","wallet_id":3,"reserved_quantity":"0","realized_pnl":"0.00","opened_at":"2026-10-02T09:15:00Z","closed_at":null}]"#;
pub const PORTFOLIO_EXAMPLE: &str = r#"{"balance":{"balance":"100.00","currency":"USD","unrealized_pnl":"0.00","total_value":"100.00","starting_balance":"100.00","reserved":"0.00"},"positions":[],"total_trades":0,"win_rate":null}"#;
pub const HISTORY_EXAMPLE: &str = r#"[{"order_id":90412,"market_id":"0x5151515151515151515151515151515151515151515151515151515151515151","side":"BUY","outcome":"Yes","price":"0.42","quantity":"50","notional":"21.00","fee":"0.609","status":"FILLED","price_source":"book_walk","price_age_ms":310,"filled_at":"2026-10-02T09:15:00.004211Z","created_at":"2026-10-02T09:15:00.001100Z","trade_id":51233,"token_id":"81140002","liquidity":"TAKER","fee_rate_bps":500,"wallet_id":3,"client_order_id":"m-1","venue_time":null}]"#;
