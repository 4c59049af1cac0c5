//! `POST /v1/account/reset-api-balance`: the API wallet begins anew (account.md §4).

use crate::api::refuse::wallet_refused;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::containment::Deed;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Route};
use crate::http::schema::{INTEGER, MONEY, Schema, Shape, TEXT, field};
use engine::command::{Answer, Command};
use engine::time::DAY;
use engine::view::EmptiedWallet;
use wire::decimal;
use wire::value::Value;
use wire::write::Object;

pub const POST: Route = Route::post("/v1/account/reset-api-balance", "reset_api_balance")
    .about("Ends the orders of the API wallet, closes its positions without cash, and gives it its baseline again. Any active key may, read-only ones too, unless keys.readonly_contained is on.")
    .auth(Auth::Key)
    .body(BodyKind::Optional)
    .takes_shape(&Schema::Object(&Shape::new("NoFields", "Nothing is asked for.", &[])), "{}")
    .gives_shape(200, &RESET, EXAMPLE)
    .fails(&[
        Code::InvalidBody,
        Code::InsufficientPermission,
        Code::UpgradeRequired,
        Code::Http429,
        Code::TradeInProgress,
        Code::ServerBusy,
        Code::PersistenceUnknown,
        Code::DeadlineOvershotButPersisted,
    ])
    .run(|call| Box::pin(reset(call)));

const RESET: Schema = Schema::Object(&Shape::new(
    "ApiBalanceReset",
    "An API wallet that began anew.",
    &[
        field("message", TEXT, ""),
        field("new_api_balance", MONEY, ""),
        field("positions_closed", INTEGER, ""),
        field("orders_cancelled", INTEGER, ""),
        field("cooldown_days", INTEGER, "Days until it can be reset again."),
    ],
));

/// The example of account.md §4.
const EXAMPLE: &str = r#"{"message":"API wallet is back at 10000.00 USD","new_api_balance":"10000.00","positions_closed":2,"orders_cancelled":1,"cooldown_days":0}"#;

async fn reset(call: Call) -> Outcome {
    if let Some(other) = call.json()?
        && !matches!(other, Value::Object(_))
    {
        return Err(Refusal::saying(Code::InvalidBody, format!("The body is {}, not an object.", other.kind())));
    }
    call.may(Deed::Reset)?;
    let by = call.caller().key;
    let cooldown_days = call.reads().rules.api_reset_cooldown_us / DAY;
    match call.ask(Command::ResetApiWallet { by }).await? {
        Answer::Emptied(emptied) => Ok(Reply::object(|o| write(o, &emptied, cooldown_days))),
        other => Err(wallet_refused(&call, &other)),
    }
}

fn write(o: &mut Object<'_>, emptied: &EmptiedWallet, cooldown_days: u64) {
    let balance = emptied.wallet.available();
    let mut money = Vec::new();
    decimal::money(&mut money, balance);
    o.text("message", &format!("API wallet is back at {} USD", String::from_utf8_lossy(&money)));
    o.money("new_api_balance", balance);
    o.integer("positions_closed", emptied.positions);
    o.integer("orders_cancelled", emptied.orders);
    o.integer("cooldown_days", cooldown_days);
}
