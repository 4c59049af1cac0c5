//! Shapes of the book routes.

use crate::http::schema::{
    BOOLEAN, CONDITION_ID, DECIMAL, Field, MILLIS, PRICE, PRICE_OR_NULL, Param, QTY, Schema, Shape, TEXT, TOKEN_ID,
    field, optional,
};

const LEVEL: Schema = Schema::Object(&Shape::new(
    "BookLevel",
    "All orders at one price.",
    &[field("price", PRICE, "US dollars per share."), field("size", QTY, "Shares.")],
));
/// The price of the last trade; before the first one null, and an empty text in the strict dialect.
const LAST_TRADE: Schema = Schema::Nullable(&Schema::OneOf(&[DECIMAL, Schema::Word(&[""])]));

pub const BOOK: Schema = Schema::Object(&Shape::new(
    "Book",
    "The venue's own book of one outcome token. In the strict dialect it has the venue's ten fields alone, in the venue's \
     order, so that its clients verify `hash` as they are given it.",
    BOOK_FIELDS,
));
const BOOK_FIELDS: &[Field] = &[
    field("token_id", TOKEN_ID, "The outcome token."),
    field("asset_id", TOKEN_ID, "The same."),
    field("market", CONDITION_ID, "Its market."),
    field(
        "hash",
        Schema::Text(64),
        "SHA-1 of the venue's ten fields as they are shown, in the venue's order, with an empty hash.",
    ),
    field("bids", Schema::Array(&LEVEL), "Ascending: the best is last."),
    field("asks", Schema::Array(&LEVEL), "Descending: the best is last."),
    field("min_order_size", QTY, "The least number of shares the venue takes."),
    field("tick_size", DECIMAL, "The grid of prices."),
    field("neg_risk", BOOLEAN, "Belongs to a group of markets with one winner."),
    field(
        "last_trade_price",
        LAST_TRADE,
        "Of the last trade at the venue, seen or stated by it. Before the first one null; in the strict dialect empty.",
    ),
    field("mid", PRICE_OR_NULL, "Half way between the best prices; null when a side is empty."),
    field("spread", PRICE_OR_NULL, "Best ask less best bid; null when a side is empty."),
    field("timestamp", MILLIS, "When the venue last changed the book."),
    field("stale", BOOLEAN, "Nothing was heard of it for too long."),
    field("source", Schema::Word(&["clob"]), "An opaque label."),
];
pub const BOOK_EXAMPLE: &str = r#"{
    "token_id": "81140002", "asset_id": "81140002",
    "market": "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4", "hash": "9ae1",
    "bids": [{"price": "0.40", "size": "310"}, {"price": "0.41", "size": "85"}],
    "asks": [{"price": "0.44", "size": "120"}, {"price": "0.42", "size": "60.5"}],
    "min_order_size": "5", "tick_size": "0.01", "neg_risk": false, "last_trade_price": "0.42", "mid": "0.415",
    "spread": "0.01", "timestamp": "1790932499120", "stale": false, "source": "clob"
}"#;
pub const BOOKS: Schema = Schema::Array(&BOOK);

const DEPTH_LEVELS: Schema = Schema::Integer { min: 1, max: 500 };
pub const DEPTH: Param = Param::query("depth", DEPTH_LEVELS, "The best levels of each side; all when left out.");

const WANTED: Schema = Schema::Object(&Shape::new(
    "BookRequest",
    "One token of a batch.",
    &[
        field("token_id", TOKEN_ID, "The outcome token."),
        optional("depth", Schema::Nullable(&DEPTH_LEVELS), "The best levels of each side."),
        optional("side", Schema::Any, "Not looked at."),
    ],
));
const WANTED_LIST: Schema = Schema::List { of: &WANTED, min: 1, max: 500 };
pub const BATCH: Schema = Schema::OneOf(&[
    WANTED_LIST,
    Schema::Object(&Shape::new(
        "BookRequests",
        "The tokens of a batch.",
        &[field("items", WANTED_LIST, "The tokens.")],
    )),
]);

pub const OUTCOME: Param = Param::query("outcome", TEXT, "Label of the outcome; the first one when left out.");
